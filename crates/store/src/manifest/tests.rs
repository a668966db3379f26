//! Tests of the manifest. Edits come back equal. A manifest gives a prefix of what was appended, or
//! an error that names it. CURRENT is whole or refused.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::coding::{put_slice, put_varint};
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;
use crate::wal::test_vfs::TestVfs;
use proptest::prelude::*;
use sateen_control::version::{
    AddedTable, DurableLog, KeySketch, Placement, RangeTombstone, Region, RemovedTable, TableMeta,
    ValueRef, ValueRefs, VersionEdit,
};
use sateen_control::{
    ColumnFamilyId, Comparator, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey,
};

use super::codec::EditError;
use super::*;

const UID: u64 = 0xdeca_f000_0000_0007;
const DIRECTORY: &str = "/db";

fn path(number: u64) -> PathBuf {
    crate::files::manifest_file_name(Path::new(DIRECTORY), FileId(number))
}

fn bytes() -> impl Strategy<Value = UserKey> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(UserKey::bytewise)
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![
        any::<u64>().prop_map(|file| Placement::WholeFile(FileId(file))),
        (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(file, offset, length)| {
            Placement::Slice { file: FileId(file), offset: offset.into(), length: length.into() }
        }),
        (any::<[u64; 2]>(), any::<u32>(), any::<u32>()).prop_map(
            |([file, values], offset, length)| Placement::Log {
                file: FileId(file),
                offset: offset.into(),
                length: length.into(),
                values: FileId(values),
            }
        ),
    ]
}

fn table() -> impl Strategy<Value = Arc<TableMeta>> {
    let seqnos = (0..=SeqNo::MAX.0, 0..=SeqNo::MAX.0);
    (any::<u64>(), placement(), bytes(), bytes(), seqnos, any::<[u64; 6]>(), 0..=SeqNo::MAX.0)
        .prop_map(
            |(
                id,
                placement,
                a,
                b,
                seqnos,
                [size_bytes, entries, tombstones, merges, raw_bytes, tail_bytes],
                ranges_applied,
            )| {
                Arc::new(TableMeta {
                    id: TableId(id),
                    placement,
                    size_bytes,
                    smallest: a.clone().min(b.clone()),
                    largest: a.max(b),
                    seqno_min: SeqNo(seqnos.0.min(seqnos.1)),
                    seqno_max: SeqNo(seqnos.0.max(seqnos.1)),
                    entries,
                    tombstones,
                    merges,
                    ranges_applied: SeqNo(ranges_applied),
                    global_seqno: SeqNo(raw_bytes % 3),
                    raw_bytes,
                    tail_bytes,
                    sketch: (entries % 2 == 0).then(|| {
                        let mut sketch = KeySketch::default();
                        sketch.add(raw_bytes);
                        sketch
                    }),
                    values: ValueRefs {
                        files: (0..tombstones % 3)
                            .map(|n| ValueRef {
                                file: FileId(n * 5 + id % 4),
                                bytes: merges / 2,
                                file_bytes: merges,
                            })
                            .collect(),
                        encoded: tombstones % 2 == 1,
                    },
                })
            },
        )
}

prop_compose! {
    fn edit()(
        (column_family, create, drop, style) in
            (any::<u32>(), any::<Option<String>>(), any::<bool>(), any::<Option<String>>()),
        removed in prop::collection::vec((any::<u8>(), any::<u64>(), bytes(), any::<u64>()), 0..4),
        added in prop::collection::vec((any::<u8>(), any::<u64>(), table()), 0..4),
        pointers in prop::collection::vec((any::<u8>(), bytes()), 0..3),
        numbers in any::<[Option<u64>; 4]>(),
        seqnos in prop::array::uniform2(prop::option::of(0..=SeqNo::MAX.0)),
        next_column_family in any::<Option<u32>>(),
        shared in prop::collection::vec(any::<u64>(), 0..3),
        region in prop::option::of((any::<u32>(), bytes())),
        ranges in prop::collection::vec((bytes(), bytes(), 0..=SeqNo::MAX.0), 0..3),
        retired in prop::collection::vec(0..=SeqNo::MAX.0, 0..3),
        comparator in prop::option::of("[a-z.]{1,9}"),
        value_times in any::<Option<bool>>(),
    ) -> VersionEdit {
        VersionEdit {
            column_family: ColumnFamilyId(column_family),
            create,
            region: region.map(|(of, begin)| Region { of: ColumnFamilyId(of), begin }),
            drop,
            comparator: comparator.map(|name| Comparator::custom(name, |a, b| a.cmp(b))),
            value_times,
            style,
            removed: removed
                .into_iter()
                .map(|(level, epoch, smallest, id)| RemovedTable {
                    level,
                    epoch: Epoch(epoch),
                    smallest,
                    id: TableId(id),
                })
                .collect(),
            added: added
                .into_iter()
                .map(|(level, epoch, table)| AddedTable { level, epoch: Epoch(epoch), table })
                .collect(),
            range_tombstones: ranges
                .into_iter()
                .filter(|(begin, end, _)| begin < end)
                .map(|(begin, end, seqno)| RangeTombstone { begin, end, seqno: SeqNo(seqno) })
                .collect(),
            retired_ranges: retired.into_iter().map(SeqNo).collect(),
            compact_pointers: pointers,
            log_number: numbers[0].map(LogNumber),
            flushed_seqno: seqnos[0].map(SeqNo),
            durable_log: numbers[3].map(|n| DurableLog { log: LogNumber(n), bytes: n / 2 }),
            last_seqno: seqnos[1].map(SeqNo),
            next_file: numbers[1].map(FileId),
            next_table: numbers[2].map(TableId),
            next_epoch: numbers[3].map(Epoch),
            next_column_family: next_column_family.map(ColumnFamilyId),
            shared_files: shared.into_iter().map(FileId).collect(),
        }
    }
}

/// Returns an edit with the number `n`.
fn numbered(n: u64) -> VersionEdit {
    VersionEdit { next_file: Some(FileId(n)), ..VersionEdit::default() }
}

fn create(vfs: &TestVfs) -> ManifestWriter {
    ManifestWriter::create(vfs, &path(1), 1, UID).unwrap()
}

/// Writes a manifest with a snapshot of two records, synced, and three deltas of which the first is
/// synced. Returns the edits of all records, and the file's length at each sync.
fn small(vfs: &TestVfs) -> (Vec<Vec<VersionEdit>>, [u64; 2]) {
    let mut writer = create(vfs);
    let mut all = Vec::new();
    let mut add = |writer: &mut ManifestWriter, edits: Vec<VersionEdit>| {
        writer.append(&edits).unwrap();
        all.push(edits);
    };
    add(&mut writer, vec![numbered(1)]);
    add(&mut writer, vec![numbered(2), numbered(3)]);
    writer.end_snapshot().unwrap();
    let snapshot = writer.sync().unwrap();
    add(&mut writer, vec![numbered(4)]);
    let synced = writer.sync().unwrap();
    add(&mut writer, vec![numbered(5)]);
    add(&mut writer, vec![numbered(6)]);
    assert_eq!(writer.size_bytes(), vfs.bytes(&path(1)).len() as u64);
    (all, [snapshot, synced])
}

fn read(vfs: &TestVfs, floor: u64) -> Result<Vec<Vec<VersionEdit>>> {
    let mut reader = ManifestReader::open(vfs, &path(1), 1, Some(UID), floor)?;
    let mut all = Vec::new();
    while let Some(edits) = reader.next()? {
        all.push(edits);
    }
    assert!(reader.tail().is_some() && reader.db_uid() == Some(UID));
    Ok(all)
}

/// Reading must give a prefix of `all` with the whole snapshot, or an error that names the file.
fn prefix_or_error(vfs: &TestVfs, all: &[Vec<VersionEdit>], floor: u64) -> Option<usize> {
    match read(vfs, floor) {
        Ok(read) => {
            assert!(read.len() >= 2, "half a snapshot was taken for a whole one");
            assert!(all.starts_with(&read), "not a prefix: {read:?}");
            Some(read.len())
        }
        Err(Error::Corruption { path: named, .. }) => {
            assert_eq!(named, path(1));
            None
        }
        Err(other) => panic!("another error: {other}"),
    }
}

#[test]
fn appended_edits_are_read_back() {
    let vfs = TestVfs::default();
    let (all, _) = small(&vfs);
    assert_eq!(read(&vfs, 0).unwrap(), all);
    let believed = ManifestReader::open(&vfs, &path(1), 1, None, 0).unwrap();
    assert_eq!(believed.db_uid(), Some(UID));
}

#[test]
fn cut_anywhere_a_manifest_gives_a_prefix_with_its_snapshot_or_an_error() {
    let vfs = TestVfs::default();
    let (all, [snapshot, synced]) = small(&vfs);
    let bytes = vfs.bytes(&path(1));
    for cut in 0..bytes.len() {
        vfs.replace(&path(1), &bytes[..cut]);
        let outcome = prefix_or_error(&vfs, &all, 0);
        assert_eq!(outcome.is_some(), cut as u64 >= snapshot, "cut at {cut}");
        assert!(cut < usize::try_from(synced).unwrap() || outcome >= Some(3));
        let floored = prefix_or_error(&vfs, &all, synced);
        assert_eq!(floored.is_some(), cut as u64 >= synced, "cut at {cut}, floor {synced}");
    }
}

#[test]
fn every_flipped_bit_gives_a_prefix_or_an_error_and_of_a_synced_edit_an_error() {
    let vfs = TestVfs::default();
    let (all, [_, synced]) = small(&vfs);
    let bytes = vfs.bytes(&path(1));
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        vfs.replace(&path(1), &damaged);
        let outcome = prefix_or_error(&vfs, &all, 0);
        assert_eq!(outcome.is_none(), (bit as u64) / 8 < synced, "bit {bit}, synced {synced}");
    }
}

#[test]
fn the_mark_behind_a_sync_protects_the_last_edit() {
    let vfs = TestVfs::default();
    let mut writer = create(&vfs);
    writer.append(&[numbered(1)]).unwrap();
    writer.end_snapshot().unwrap();
    // A delta. Without the mark its loss would leave a manifest that is whole but older.
    writer.append(&[numbered(2)]).unwrap();
    let synced = writer.sync().unwrap();
    let bytes = vfs.bytes(&path(1));
    for byte in 0..usize::try_from(synced).unwrap() {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 4;
        vfs.replace(&path(1), &damaged);
        assert!(read(&vfs, 0).unwrap_err().is_corruption(), "byte {byte}");
    }
}

#[test]
fn an_unfinished_snapshot_is_never_taken_for_a_whole_one() {
    let vfs = TestVfs::default();
    let mut writer = create(&vfs);
    writer.append(&[numbered(1)]).unwrap();
    writer.sync().unwrap();
    let error = read(&vfs, 0).unwrap_err();
    assert!(error.to_string().contains("snapshot"), "{error}");
}

#[test]
fn a_missing_manifest_is_an_error() {
    let error = read(&TestVfs::default(), 0).unwrap_err();
    assert!(error.to_string().contains("missing file"), "{error}");
}

#[test]
fn after_a_failed_sync_or_write_the_manifest_is_dead() {
    let vfs = TestVfs::default();
    let mut writer = create(&vfs);
    vfs.switches.fail_syncs.store(true, Ordering::SeqCst);
    assert!(writer.sync().is_err());
    vfs.switches.fail_syncs.store(false, Ordering::SeqCst);
    let writes = vfs.switches.writes.load(Ordering::SeqCst);
    assert!(writer.append(&[numbered(1)]).is_err());
    assert!(writer.sync().is_err());
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 1);
    assert_eq!(vfs.switches.writes.load(Ordering::SeqCst), writes);

    let vfs = TestVfs::default();
    let mut writer = create(&vfs);
    vfs.switches.fail_writes.store(true, Ordering::SeqCst);
    assert!(writer.append(&[numbered(1)]).unwrap_err().is_no_space());
    vfs.switches.fail_writes.store(false, Ordering::SeqCst);
    assert!(writer.append(&[numbered(2)]).unwrap_err().is_no_space());
    assert!(writer.sync().is_err());
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 0);
}

#[test]
fn a_sync_without_edits_costs_no_barrier() {
    let vfs = TestVfs::default();
    let mut writer = create(&vfs);
    let synced = writer.sync().unwrap();
    assert_eq!(writer.sync().unwrap(), synced);
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 1);
    writer.append(&[numbered(1)]).unwrap();
    assert!(writer.sync().unwrap() > synced);
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 2);
}

/// Returns the payload of a record with one edit of the fields (tag, bytes).
fn payload(fields: &[(u64, &[u8])]) -> Vec<u8> {
    let mut edit = Vec::new();
    for (tag, value) in fields {
        put_varint(&mut edit, *tag);
        put_slice(&mut edit, value);
    }
    let mut out = Vec::new();
    put_slice(&mut out, &edit);
    out
}

#[test]
fn unknown_fields_are_skipped_if_optional_and_refused_by_number_if_not() {
    let known: (u64, &[u8]) = (2, &[0]);
    let optional = payload(&[known, (2 * 99 + 1, b"from the future")]);
    assert_eq!(decode_edits(&optional), Ok(vec![VersionEdit::default()]));
    let required = payload(&[known, (2 * 99, b"from the future")]);
    assert_eq!(decode_edits(&required), Err(EditError::NewerField(99)));
}

#[test]
fn edits_that_make_no_sense_are_malformed() {
    for (fields, why) in [
        (vec![], "no column family"),
        (vec![(2, &[0][..]), (2, &[1])], "two column families"),
        (vec![(2, &[])], "no number"),
        (vec![(2, &[0, 0])], "a number and more"),
        (vec![(2, &[0]), (6, &[1])], "a drop with a value"),
        (vec![(2, &[0]), (4, &[0xff])], "a name that is no text"),
        (vec![(2, &[0]), (18, &[0xff; 8])], "a seqno beyond 56 bits"),
        (vec![(2, &[0]), (12, &[0, 0, 0])], "half a table"),
    ] {
        let decoded = decode_edits(&payload(&fields));
        assert!(matches!(decoded, Err(EditError::Malformed(_))), "{why}: {decoded:?}");
    }
    assert_eq!(decode_edits(&[]), Ok(vec![]));
    assert!(decode_edits(&[5, 1]).is_err(), "an edit longer than the record");
}

#[test]
fn current_comes_back_and_any_damage_of_it_is_seen() {
    let vfs = TestVfs::default();
    let directory = Path::new(DIRECTORY);
    assert_eq!(read_current(&vfs, directory).unwrap(), None);
    for (number, copy) in [(7, 0), (u64::MAX, 0), (8, u64::MAX)] {
        let identity = Identity { uid: UID, copy };
        let current = Current { manifest: number, identity, synced: 4711 };
        write_current(&vfs, directory, &current).unwrap();
        assert_eq!(read_current(&vfs, directory).unwrap(), Some(current));
    }
    assert_eq!(vfs.list(directory).unwrap(), [PathBuf::from("CURRENT")]);
    let path = directory.join("CURRENT");
    let bytes = vfs.bytes(&path);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        vfs.replace(&path, &damaged);
        let error = read_current(&vfs, directory).unwrap_err();
        assert!(error.to_string().contains("CURRENT"), "bit {bit}: {error}");
    }
    for cut in 0..bytes.len() {
        vfs.replace(&path, &bytes[..cut]);
        assert!(read_current(&vfs, directory).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_half_written_current_does_no_harm() {
    let vfs = TestVfs::default();
    let directory = Path::new(DIRECTORY);
    let old = Current { manifest: 1, identity: Identity::of_uid(UID), synced: 0 };
    write_current(&vfs, directory, &old).unwrap();
    vfs.switches.fail_writes.store(true, Ordering::SeqCst);
    let new = Current { manifest: 2, ..old };
    assert!(write_current(&vfs, directory, &new).is_err());
    vfs.switches.fail_writes.store(false, Ordering::SeqCst);
    assert_eq!(read_current(&vfs, directory).unwrap(), Some(old));
    write_current(&vfs, directory, &new).unwrap();
    assert_eq!(read_current(&vfs, directory).unwrap(), Some(new));
}

#[test]
fn databases_of_other_programs_are_recognised() {
    let recognise = |names: &[&str], current: Option<&str>| {
        let listing: Vec<_> = names.iter().map(PathBuf::from).collect();
        recognise_foreign(&listing, current.map(str::as_bytes))
    };
    let manifest = Some("MANIFEST-000005\n");
    let rocksdb = ["000004.log", "CURRENT", "IDENTITY", "MANIFEST-000005", "OPTIONS-000007"];
    assert_eq!(recognise(&rocksdb, manifest), Some("a RocksDB database"));
    assert_eq!(recognise(&["000004.sst", "CURRENT"], manifest), Some("a RocksDB database"));
    assert_eq!(recognise(&["000004.ldb", "CURRENT"], manifest), Some("a LevelDB database"));
    assert_eq!(recognise(&["CURRENT"], manifest), Some("a LevelDB or RocksDB database"));
    assert_eq!(recognise(&["MANIFEST-000005"], None), Some("a LevelDB or RocksDB database"));
    let pebble = ["marker.manifest.000001.MANIFEST-000001", "MANIFEST-000001", "OPTIONS-000003"];
    assert_eq!(recognise(&pebble, None), Some("a Pebble database"));
    assert_eq!(recognise(&["000001.wal", "000002.manifest", "CURRENT"], Some("sateen 1\n")), None);
    assert_eq!(recognise(&["MANIFEST-x", "notes.txt", "a.sst"], None), None);

    let vfs = TestVfs::default();
    vfs.replace(&Path::new(DIRECTORY).join("CURRENT"), b"MANIFEST-000005\n");
    vfs.replace(&Path::new(DIRECTORY).join("IDENTITY"), b"whoever");
    let error = read_current(&vfs, Path::new(DIRECTORY)).unwrap_err();
    assert!(matches!(error, Error::IncompatibleDirectory { .. }));
    let import = format!("a RocksDB database; `sateen db import rocksdb {DIRECTORY} NEW");
    assert!(error.to_string().contains(&import), "{error}");
    let reason = |what| foreign_reason(what, Path::new("old"));
    assert!(reason("a LevelDB database").contains("`sateen db import leveldb old NEW"));
    assert!(reason("a LevelDB or RocksDB database").contains("import rocksdb|leveldb old NEW"));
    assert_eq!(reason("a Pebble database"), "it is a Pebble database");
}

proptest! {
    #[test]
    fn any_edits_come_back(edits in prop::collection::vec(edit(), 0..5)) {
        let mut encoded = Vec::new();
        edits.iter().for_each(|edit| encode_edit(edit, &mut encoded));
        prop_assert_eq!(decode_edits(&encoded), Ok(edits));
        fuzz_edit(&encoded);
    }

    #[test]
    fn damaged_edits_are_read_without_panic(
        edits in prop::collection::vec(edit(), 1..3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut encoded = Vec::new();
        edits.iter().for_each(|edit| encode_edit(edit, &mut encoded));
        for (at, byte) in damage {
            let at = at.index(encoded.len());
            encoded[at] = byte;
        }
        fuzz_edit(&encoded);
        fuzz_edit(&encoded[..cut.index(encoded.len())]);
        fuzz(&encoded);
    }
}
