//! Tests of tables and compaction files with random entries, options and damaged bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use proptest::collection::vec;
use proptest::prelude::*;
use sateen_control::{ColumnFamilyId, FileId, IoClass, SeqNo, TableId, ValueKind};

use super::OnMiss;
use super::{
    Table, TableBuilder, TableBuilderOptions, TableIterOptions, TableSource, TableSummary, hash_key,
};
use crate::base::error::{Error, Result};
use crate::base::iterator::InternalIterator;
use crate::base::key;
use crate::block_cache::BlockCache;
use crate::files::{CompactionFile, CompactionFileWriter};
use crate::table::Compression;
use crate::vfs::{MemVfs, OpenOptions, Vfs};

pub(super) const DB: u64 = 0xDB;
pub(super) const FILE: FileId = FileId(5);
pub(super) const CLASS: IoClass = IoClass::Flush;

/// Entries in the order of tables: internal key and value.
pub(super) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn path() -> &'static Path {
    Path::new("/000005.sat")
}

pub(super) fn options(id: u64) -> TableBuilderOptions {
    TableBuilderOptions::new(TableId(id), ColumnFamilyId(0))
}

/// Writes one file with a table for each element.
pub(super) fn write(vfs: &MemVfs, tables: &[(TableBuilderOptions, &Entries)]) -> Vec<TableSummary> {
    let mut file = CompactionFileWriter::create(vfs, path(), FILE, DB, false, CLASS).unwrap();
    let summaries = tables
        .iter()
        .map(|(options, entries)| {
            let mut builder = TableBuilder::new(options.clone()).unwrap();
            for (key, value) in *entries {
                builder.add(&mut file, key, value).unwrap();
            }
            builder.finish(&mut file).unwrap()
        })
        .collect();
    assert_eq!(file.finish().unwrap() % 4096, 0);
    summaries
}

pub(super) fn open(vfs: &MemVfs, summary: &TableSummary) -> Result<Arc<Table>> {
    let source = TableSource {
        file: vfs.open(path(), OpenOptions::READ).unwrap(),
        path: path().into(),
        table: summary.id,
        file_id: FILE,
        db_uid: DB,
        offset: summary.offset,
        length: summary.size_bytes,
        tail_bytes: 0,
        global_seqno: SeqNo(0),
        comparator: None,
        image: Weak::new(),
    };
    Table::open(source, CLASS).map(Arc::new)
}

fn table_of(options: TableBuilderOptions, entries: &Entries) -> Arc<Table> {
    let vfs = MemVfs::new();
    let summaries = write(&vfs, &[(options, entries)]);
    open(&vfs, &summaries[0]).unwrap()
}

/// Returns the ways to read a table, which must give the same result.
pub(super) fn ways() -> Vec<TableIterOptions> {
    let cache = Arc::new(BlockCache::new(1 << 20));
    let tiny = Arc::new(BlockCache::new(1));
    vec![
        TableIterOptions::client(None, OnMiss::Read),
        TableIterOptions::client(Some(cache.clone()), OnMiss::ReadAndCache),
        TableIterOptions::client(Some(cache), OnMiss::ReadAndCache),
        TableIterOptions::client(Some(tiny), OnMiss::ReadAndCache),
        TableIterOptions { readahead_bytes: 1, ..TableIterOptions::client(None, OnMiss::Read) },
        TableIterOptions::compaction(CLASS, 1),
        TableIterOptions::compaction(CLASS, 1000),
        TableIterOptions::compaction(CLASS, 1 << 20),
    ]
}

/// The order of internal keys for a map: user key, then newest first.
type Model = BTreeMap<(Vec<u8>, u64), Vec<u8>>;
type ModelEntry<'a> = (&'a (Vec<u8>, u64), &'a Vec<u8>);

fn model_key(internal: &[u8]) -> (Vec<u8>, u64) {
    (key::user_key(internal).to_vec(), !key::trailer(internal))
}

fn model(entries: &Entries) -> Model {
    entries.iter().map(|(key, value)| (model_key(key), value.clone())).collect()
}

fn check_at<'a>(
    iter: &impl InternalIterator,
    expected: Option<ModelEntry<'a>>,
) -> std::result::Result<(), TestCaseError> {
    let found = iter.valid().then(|| (model_key(iter.key()), iter.value().to_vec()));
    prop_assert_eq!(found, expected.map(|(key, value)| (key.clone(), value.clone())));
    Ok(())
}

/// Keys that share prefixes, are prefixes of each other, and have several versions.
fn user_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0), Just(0xff)], 0..12),
        2 => (0u32..1000).prop_map(|i| format!("user/{i:08}/profile").into_bytes()),
        1 => vec(any::<u8>(), 0..300),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => Just(Vec::new()),
        6 => vec(any::<u8>(), 0..40),
        2 => (any::<u8>(), 0usize..3000).prop_map(|(byte, n)| vec![byte; n]),
    ]
}

fn entries() -> impl Strategy<Value = Entries> {
    let entry = (user_key(), 1u64..200, 0u8..2, value());
    vec(entry, 1..200).prop_map(|list| {
        let mut sorted = Model::new();
        let mut seen = std::collections::BTreeSet::new();
        for (user, seqno, kind, value) in list {
            let kind = ValueKind::from_byte(kind).unwrap();
            // Each sequence number is used once.
            if seen.insert((user.clone(), seqno)) {
                let value = if kind == ValueKind::Delete { Vec::new() } else { value };
                sorted.insert((user, !key::pack(SeqNo(seqno), kind)), value);
            }
        }
        let internal =
            |(user, flipped): (Vec<u8>, u64)| [user.as_slice(), &(!flipped).to_le_bytes()].concat();
        sorted.into_iter().map(|(key, value)| (internal(key), value)).collect()
    })
}

fn builder_options() -> impl Strategy<Value = TableBuilderOptions> {
    let compression =
        prop_oneof![Just(Compression::None), Just(Compression::Lz4), Just(Compression::Zstd)];
    let block = prop_oneof![Just(1usize), Just(64), Just(300), Just(4096), Just(1 << 16)];
    let interval = prop_oneof![Just(1u32), Just(2), Just(3), Just(16), Just(1000)];
    let bits = prop_oneof![Just(0u32), Just(1), Just(10)];
    (compression, block, interval, bits).prop_map(|(compression, block, interval, bits)| {
        TableBuilderOptions {
            compression,
            block_bytes: block,
            restart_interval: interval,
            filter_bits_per_key: bits,
            ..options(9)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cursors_move_as_a_map_does(
        entries in entries(),
        options in builder_options(),
        targets in vec((user_key(), 0u64..201), 0..30),
    ) {
        let table = table_of(options, &entries);
        let model = model(&entries);
        for way in ways() {
            let mut iter = table.iter(way);
            iter.seek_to_first().unwrap();
            for expected in &model {
                check_at(&iter, Some(expected))?;
                iter.next().unwrap();
            }
            check_at(&iter, None)?;
            iter.seek_to_last().unwrap();
            for expected in model.iter().rev() {
                check_at(&iter, Some(expected))?;
                iter.prev().unwrap();
            }
            check_at(&iter, None)?;
            let present = entries.iter().step_by(7).map(|(key, _)| key.clone());
            let asked = targets.iter().map(|(user, seqno)| key::seek_key(user, SeqNo(*seqno)));
            for target in present.chain(asked) {
                let at = model_key(&target);
                iter.seek(&target).unwrap();
                check_at(&iter, model.range(at.clone()..).next())?;
                if iter.valid() {
                    iter.prev().unwrap();
                    check_at(&iter, model.range(..at.clone()).next_back())?;
                }
                iter.seek_for_prev(&target).unwrap();
                check_at(&iter, model.range(..=at.clone()).next_back())?;
                if iter.valid() {
                    iter.next().unwrap();
                    let behind = (std::ops::Bound::Excluded(at), std::ops::Bound::Unbounded);
                    check_at(&iter, model.range(behind).next())?;
                }
            }
        }
    }

    #[test]
    fn point_reads_find_the_newest_visible_version(
        entries in entries(),
        options in builder_options(),
        others in vec(user_key(), 0..20),
    ) {
        let table = table_of(options, &entries);
        let cache = BlockCache::new(1 << 20);
        let present = entries.iter().map(|(key, _)| key::user_key(key).to_vec());
        for user in present.chain(others) {
            for snapshot in [0, 1, 50, 100, 199, 1 << 50] {
                let expected = entries
                    .iter()
                    .find(|(key, _)| key::user_key(key) == user && key::seqno(key).0 <= snapshot);
                for cache in [None, Some(&cache)] {
                    let hash = hash_key(&user);
                    let fill = OnMiss::ReadAndCache;
                    let found = table.get(&user, SeqNo(snapshot), hash, cache, fill).unwrap();
                    let found = found.map(|(seqno, kind, value)| (seqno, kind, value.to_vec()));
                    let expected = expected.map(|(internal, value)| {
                        (key::seqno(internal), key::kind(internal).unwrap(), value.clone())
                    });
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn summary_directory_and_properties_say_what_was_added(
        first in entries(),
        second in entries(),
        mut one in builder_options(),
        mut two in builder_options(),
    ) {
        one.table = TableId(3);
        one.level = 4;
        one.column_family = ColumnFamilyId(12);
        two.table = TableId(4);
        let vfs = MemVfs::new();
        let summaries = write(&vfs, &[(one.clone(), &first), (two.clone(), &second)]);
        let file = vfs.open(path(), OpenOptions::READ).unwrap();
        let directory = CompactionFile::open(&file, path(), FILE).unwrap();
        prop_assert_eq!(directory.db_uid, DB);
        prop_assert_eq!(directory.tables.len(), 2);
        let all = summaries.iter().zip(&directory.tables).zip([&first, &second]).zip([one, two]);
        for (((summary, entry), entries), options) in all {
            let seqnos = entries.iter().map(|(key, _)| key::seqno(key));
            let is_delete = |key: &[u8]| key::kind(key) == Some(ValueKind::Delete);
            let deleted = |(key, _): &&(Vec<u8>, Vec<u8>)| is_delete(key);
            prop_assert_eq!(summary.entries, entries.len() as u64);
            prop_assert_eq!(summary.tombstones, entries.iter().filter(deleted).count() as u64);
            prop_assert_eq!(summary.seqno_min, seqnos.clone().min().unwrap());
            prop_assert_eq!(summary.seqno_max, seqnos.max().unwrap());
            prop_assert_eq!(summary.smallest.bytes(), key::user_key(&entries[0].0));
            prop_assert_eq!(summary.largest.bytes(), key::user_key(&entries.last().unwrap().0));
            let raw: usize = entries.iter().map(|(key, value)| key.len() - 8 + value.len()).sum();
            prop_assert_eq!(summary.raw_bytes, raw as u64);
            prop_assert_eq!(summary.offset % 4096, 0);
            prop_assert_eq!((entry.table, entry.offset), (summary.id, summary.offset));
            prop_assert_eq!((entry.length, entry.entries), (summary.size_bytes, summary.entries));
            prop_assert_eq!(entry.level, options.level);
            prop_assert_eq!(entry.column_family, options.column_family);
            prop_assert_eq!(&*entry.smallest, summary.smallest.bytes());
            prop_assert_eq!(&*entry.largest, summary.largest.bytes());
            let table = open(&vfs, summary).unwrap();
            let properties = table.properties();
            prop_assert_eq!((properties.table, properties.entries), (summary.id, summary.entries));
            prop_assert_eq!(properties.seqno_max, summary.seqno_max);
            prop_assert_eq!(properties.data_blocks, table.blocks() as u64);
            prop_assert!(table.memory_bytes() > 0);
            let mut iter = table.iter(TableIterOptions::compaction(CLASS, 1 << 16));
            iter.seek_to_first().unwrap();
            for (key, value) in entries {
                prop_assert_eq!((iter.key(), iter.value()), (key.as_slice(), value.as_slice()));
                iter.next().unwrap();
            }
            prop_assert!(!iter.valid());
        }
    }

    #[test]
    fn hostile_bytes_are_walked_without_panic(
        bytes in vec(any::<u8>(), 0..400),
        cut in 0usize..400,
    ) {
        super::fuzz::block(&bytes);
        super::fuzz::filter(&bytes);
        super::fuzz::table(&bytes);
        super::fuzz::compaction_file(&bytes);
        // A block that is right except for a few bytes gets further.
        let mut builder = super::block::BlockBuilder::new(2, 100);
        for i in 0..10u8 {
            builder.add(0, &[b'k', i, 0, 0, 0, 0, 0, 0, 0, 1], &bytes[..bytes.len().min(9)]);
        }
        let mut block = builder.finish().clone();
        for (i, byte) in bytes.iter().enumerate().take(3) {
            let at = (cut * (i + 1)) % block.len();
            block[at] = *byte;
        }
        super::fuzz::block(&block);
    }
}

#[test]
fn the_longest_keys_and_large_values_come_back() {
    let long = vec![b'k'; super::KEY_BYTES_MAX];
    let mut longer = long.clone();
    longer[65_534] = b'l';
    let entries: Entries = vec![
        (key::seek_key(b"", SeqNo(9)), vec![1; 16 << 20]),
        (key::seek_key(b"", SeqNo(8)), Vec::new()),
        (key::seek_key(&long, SeqNo(7)), vec![2; 5]),
        (key::seek_key(&longer, SeqNo(6)), vec![3; 16 << 20]),
    ];
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let table = table_of(TableBuilderOptions { compression, ..options(1) }, &entries);
        for way in
            [TableIterOptions::client(None, OnMiss::Read), TableIterOptions::compaction(CLASS, 1)]
        {
            let mut iter = table.iter(way);
            iter.seek_to_first().unwrap();
            for (key, value) in &entries {
                assert!(iter.valid() && iter.key() == key && iter.value() == value);
                iter.next().unwrap();
            }
            assert!(!iter.valid());
        }
        let found = table.get(&longer, SeqNo(6), hash_key(&longer), None, OnMiss::Read).unwrap();
        assert_eq!(found.unwrap().2.len(), 16 << 20);
    }
}

#[test]
fn entries_that_a_table_cannot_hold_are_refused() {
    let vfs = MemVfs::new();
    let mut file = CompactionFileWriter::create(&vfs, path(), FILE, DB, false, CLASS).unwrap();
    let mut builder = TableBuilder::new(options(1)).unwrap();
    let refused = |result: Result<()>| matches!(result, Err(Error::InvalidArgument(_)));
    let too_long = key::seek_key(&vec![0; super::KEY_BYTES_MAX + 1], SeqNo(1));
    assert!(refused(builder.add(&mut file, &too_long, b"")));
    builder.add(&mut file, &key::seek_key(b"b", SeqNo(5)), b"").unwrap();
    for (key, seqno) in [(b"b".as_slice(), 5), (b"b", 6), (b"a", 1), (b"", 1), (b"a\xff", 9)] {
        assert!(refused(builder.add(&mut file, &key::seek_key(key, SeqNo(seqno)), b"")), "{key:?}");
    }
    builder.add(&mut file, &key::seek_key(b"b", SeqNo(4)), b"").unwrap();
    builder.add(&mut file, &key::seek_key(b"b\0", SeqNo(9)), b"").unwrap();
    assert!(file.begin_table(TableId(2)).is_err());
    builder.finish(&mut file).unwrap();
    assert!(TableBuilder::new(options(2)).unwrap().finish(&mut file).is_err());
    file.finish().unwrap();
}

#[test]
fn the_estimate_is_near_the_size() {
    let value = [7; 100];
    let vfs = MemVfs::new();
    let mut file = CompactionFileWriter::create(&vfs, path(), FILE, DB, false, CLASS).unwrap();
    let mut builder = TableBuilder::new(options(1)).unwrap();
    for i in 0..5_000u64 {
        builder.add(&mut file, &key::seek_key(&i.to_be_bytes(), SeqNo(i)), &value).unwrap();
    }
    let estimate = builder.estimated_size();
    let size = builder.finish(&mut file).unwrap().size_bytes;
    assert!(estimate.abs_diff(size) < size / 50, "estimated {estimate}, is {size}");
}

/// A point read reads one block, and from the device only the pages that contain it.
#[test]
fn most_point_reads_are_of_one_page() {
    for (bytes, pages_max) in [(20, 1.3), (100, 1.3), (500, 1.3), (1000, 1.3), (2000, 1.6)] {
        let entry = |i: u64| (key::seek_key(&i.to_be_bytes(), SeqNo(i)), vec![7; bytes]);
        let entries: Entries = (0..2_000).map(entry).collect();
        let table = table_of(options(1), &entries);
        let order = &sateen_control::Comparator::BYTEWISE;
        let pages: u64 = (0..2_000u64)
            .map(|i| {
                let at = table.index.find(order, &i.to_be_bytes());
                let block = table.index.handle(at).unwrap();
                (block.end() - 1) / 4096 - block.offset / 4096 + 1
            })
            .sum();
        let mean = pages as f64 / 2_000.0;
        assert!(mean <= pages_max, "{mean} pages a read of values of {bytes} bytes");
    }
}
