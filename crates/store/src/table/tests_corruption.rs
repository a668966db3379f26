//! Damaged bytes: every change of a table or compaction file is detected or does no harm, and the
//! error names the file.

use sateen_control::{FileId, SeqNo};

use super::OnMiss;
use super::tests::{CLASS, DB, Entries, FILE, open, options, path, write};
use super::{TableBuilderOptions, TableIterOptions, TableSummary, hash_key};
use crate::base::error::{Error, Result};
use crate::base::iterator::InternalIterator;
use crate::base::key;
use crate::files::CompactionFile;
use crate::table::Compression;
use crate::vfs::{MemVfs, OpenOptions, Vfs};

fn small_entries() -> Entries {
    (0..30u8).map(|i| (key::seek_key(&[b'k', i], SeqNo(u64::from(i) + 1)), vec![i; 20])).collect()
}

/// Reads everything in the file's tables: by directory, by scan, by point reads.
fn read_all(vfs: &MemVfs, summaries: &[TableSummary]) -> Result<Vec<Entries>> {
    let file = vfs.open(path(), OpenOptions::READ).unwrap();
    crate::files::check_header(&file, path(), FILE, DB, CLASS)?;
    let directory = CompactionFile::open(&file, path(), FILE)?;
    assert_eq!(directory.tables.len(), summaries.len());
    let mut all = Vec::new();
    for summary in summaries {
        let table = open(vfs, summary)?;
        let mut entries = Entries::new();
        let mut iter = table.iter(TableIterOptions::compaction(CLASS, 700));
        iter.seek_to_first()?;
        while iter.valid() {
            entries.push((iter.key().to_vec(), iter.value().to_vec()));
            iter.next()?;
        }
        let mut iter = table.iter(TableIterOptions::client(None, OnMiss::Read));
        iter.seek_to_last()?;
        for (key, value) in entries.iter().rev() {
            assert_eq!((iter.key(), iter.value()), (key.as_slice(), value.as_slice()));
            iter.prev()?;
        }
        for (internal, value) in &entries {
            let user = key::user_key(internal);
            let found = table.get(user, SeqNo::MAX, hash_key(user), None, OnMiss::Read)?;
            assert_eq!(&*found.unwrap().2, &**value);
        }
        all.push(entries);
    }
    Ok(all)
}

fn contents(vfs: &MemVfs) -> Vec<u8> {
    let file = vfs.open(path(), OpenOptions::READ).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0, CLASS).unwrap();
    bytes
}

fn replaced(bytes: &[u8]) -> MemVfs {
    let vfs = MemVfs::new();
    vfs.open(path(), OpenOptions::CREATE).unwrap().write_at(bytes, 0, CLASS).unwrap();
    vfs
}

fn small_file(compression: Compression) -> (Vec<TableSummary>, Vec<u8>, Vec<Entries>) {
    let vfs = MemVfs::new();
    let small = |id| TableBuilderOptions { compression, block_bytes: 128, ..options(id) };
    let (one, two) = (small_entries(), small_entries().split_off(20));
    let summaries = write(&vfs, &[(small(1), &one), (small(2), &two)]);
    assert_eq!(read_all(&vfs, &summaries).unwrap(), [one.clone(), two.clone()]);
    (summaries, contents(&vfs), vec![one, two])
}

#[test]
fn no_changed_byte_changes_an_answer() {
    // Every byte of the plain file, and a sample of the compressed ones, which differ only in the
    // blocks.
    for (compression, step) in
        [(Compression::None, 1), (Compression::Lz4, 5), (Compression::Zstd, 5)]
    {
        let (summaries, bytes, expected) = small_file(compression);
        let mut detected = 0;
        for i in (0..bytes.len()).step_by(step) {
            for byte in [bytes[i] ^ (1 << (i % 8)), 0, 0xff] {
                let mut bad = bytes.clone();
                bad[i] = byte;
                match read_all(&replaced(&bad), &summaries) {
                    Ok(entries) => assert_eq!(entries, expected, "byte {i} := {byte}"),
                    Err(error) => {
                        assert!(error.to_string().contains("000005.sat"), "{error}");
                        detected += 1;
                    }
                }
            }
        }
        // Everything except padding is covered: header, both tables, directory, footer.
        let covered = 4096 + summaries.iter().map(|s| s.size_bytes).sum::<u64>() + 200;
        assert!(detected > covered * 2 / step as u64, "{detected} of {covered}");
    }
}

#[test]
fn every_truncation_and_every_zeroed_sector_is_seen() {
    let (summaries, bytes, expected) = small_file(Compression::None);
    for length in (0..bytes.len()).step_by(7) {
        assert!(read_all(&replaced(&bytes[..length]), &summaries).is_err(), "{length}");
    }
    for sector in 0..bytes.len() / 512 {
        let mut bad = bytes.clone();
        bad[sector * 512..][..512].fill(0);
        if let Ok(entries) = read_all(&replaced(&bad), &summaries) {
            assert_eq!((&bad, entries), (&bytes, expected.clone()), "sector {sector}");
        }
    }
}

#[test]
fn swapped_and_moved_blocks_are_seen() {
    let (summaries, bytes, _) = small_file(Compression::None);
    let vfs = replaced(&bytes);
    let table = open(&vfs, &summaries[0]).unwrap();
    let handles: Vec<_> = (0..table.blocks()).map(|i| table.index.handle(i).unwrap()).collect();
    let start = usize::try_from(summaries[0].offset).unwrap();
    let mut swapped = 0;
    for (i, a) in handles.iter().enumerate() {
        for b in &handles[i + 1..] {
            if a.size == b.size {
                let range = |h: &super::format::BlockHandle| {
                    start + usize::try_from(h.offset).unwrap()
                        ..start + usize::try_from(h.end()).unwrap()
                };
                let mut bad = bytes.clone();
                let (first, second) = (bytes[range(a)].to_vec(), bytes[range(b)].to_vec());
                bad[range(a)].copy_from_slice(&second);
                bad[range(b)].copy_from_slice(&first);
                assert!(read_all(&replaced(&bad), &summaries).is_err());
                swapped += 1;
            }
        }
    }
    assert!(swapped > 10);
    // A whole table in another's place, and the file under another name or in another database.
    let other = TableSummary { offset: summaries[1].offset, ..summaries[0].clone() };
    assert!(open(&vfs, &other).is_err());
    let file = vfs.open(path(), OpenOptions::READ).unwrap();
    let check = |id, db| crate::files::check_header(&file, path(), id, db, CLASS).unwrap_err();
    assert!(check(FileId(6), DB).to_string().contains("this is file f5, not file f6"));
    assert!(check(FILE, 1).to_string().contains("another database"));
}

#[test]
fn a_newer_format_is_named_as_such() {
    let (_, mut bytes, _) = small_file(Compression::None);
    bytes[8] = 2;
    let seed = crate::files::seal::Seed::of_file(DB, FILE);
    let checksum = seed.checksum(&bytes[..4088], 0);
    bytes[4088..4096].copy_from_slice(&checksum.to_le_bytes());
    let file = replaced(&bytes).open(path(), OpenOptions::READ).unwrap();
    let error = CompactionFile::open(&file, path(), FILE).unwrap_err();
    assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error}");
    assert!(error.to_string().contains("format 2"), "{error}");
}
