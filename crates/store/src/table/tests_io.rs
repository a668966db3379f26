//! How tables and compaction files do I/O: whole pages if the file needs them, and few large reads
//! in a scan.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use sateen_control::{FileId, IoClass, SeqNo, UserKey};

use super::OnMiss;
use super::tests::{CLASS, DB, Entries, FILE, options, path, ways};
use super::{
    LevelScans, ScanLengths, Table, TableBuilder, TableIterOptions, TableSource, hash_key,
};
use crate::base::iterator::InternalIterator;
use crate::base::key;
use crate::block_cache::BlockCache;
use crate::files::{CompactionFile, CompactionFileWriter};
use crate::vfs::{MemVfs, OpenOptions, Vfs, VfsFile};

/// A file with the rules of direct I/O: only whole pages at page boundaries, from and to memory at
/// page boundaries. It counts the reads, and their bytes.
#[derive(Debug)]
struct Direct(Arc<dyn VfsFile>, AtomicU64, AtomicU64);

impl Direct {
    fn check(bytes: &[u8], offset: u64) {
        assert_eq!((bytes.len() % 4096, offset % 4096), (0, 0));
        assert_eq!(bytes.as_ptr().align_offset(4096), 0);
    }
}

impl VfsFile for Direct {
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        Direct::check(buffer, offset);
        self.1.fetch_add(1, Ordering::Relaxed);
        self.2.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.0.read_at(buffer, offset, class)
    }
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        Direct::check(bytes, offset);
        self.0.write_at(bytes, offset, class)
    }
    fn alignment(&self) -> usize {
        4096
    }
    crate::pass_on! {
        0: sync_data start_writeback finish_writeback punch_hole preallocate truncate len
    }
}

/// Makes about 5 MB in one table on a [`Direct`] file.
fn direct_table() -> (Arc<Direct>, Arc<Table>, Entries) {
    let file = MemVfs::new().open(path(), OpenOptions::CREATE).unwrap();
    let file = Arc::new(Direct(file, AtomicU64::new(0), AtomicU64::new(0)));
    let mut writer = CompactionFileWriter::on(file.clone(), path(), FILE, DB, CLASS).unwrap();
    let entries: Entries = (0..5_000u64)
        .map(|i| (key::seek_key(&i.to_be_bytes(), SeqNo(i)), vec![i.to_le_bytes()[0]; 1000]))
        .collect();
    let mut builder = TableBuilder::new(options(1)).unwrap();
    for (key, value) in &entries {
        builder.add(&mut writer, key, value).unwrap();
    }
    let summary = builder.finish(&mut writer).unwrap();
    assert_eq!(writer.finish().unwrap(), file.len().unwrap());
    let as_file: Arc<dyn VfsFile> = file.clone();
    let directory = CompactionFile::open(&as_file, path(), FILE).unwrap();
    assert_eq!(directory.tables[0].length, summary.size_bytes);
    let source = TableSource {
        file: as_file,
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
    (file, Arc::new(Table::open(source, CLASS).unwrap()), entries)
}

#[test]
fn direct_files_are_read_and_written_in_whole_pages() {
    let (_, table, entries) = direct_table();
    for way in ways() {
        let mut iter = table.iter(way);
        iter.seek_to_first().unwrap();
        for (key, value) in &entries {
            assert!(iter.key() == key && iter.value() == value);
            iter.next().unwrap();
        }
        assert!(!iter.valid());
    }
    for (internal, value) in entries.iter().step_by(13) {
        let user = key::user_key(internal);
        let found = table.get(user, SeqNo::MAX, hash_key(user), None, OnMiss::Read).unwrap();
        assert_eq!(&*found.unwrap().2, &**value);
    }
}

#[test]
fn scans_read_ahead_in_both_directions_and_point_reads_do_not() {
    let (file, table, entries) = direct_table();
    let reads = || file.1.swap(0, Ordering::Relaxed);
    assert!(table.blocks() > 1000);
    reads();
    let mut iter = table.iter(TableIterOptions::client(None, OnMiss::Read));
    iter.seek_to_first().unwrap();
    while iter.valid() {
        iter.next().unwrap();
    }
    // Two blocks, then 16 KiB doubling to 256 KiB: about 5 MB / 256 KiB and the way there.
    let forward = reads();
    assert!((20..30).contains(&forward), "{forward}");
    assert_eq!(iter.readahead_bytes(), 256 << 10);
    iter.seek_to_last().unwrap();
    while iter.valid() {
        iter.prev().unwrap();
    }
    // The last chunk is still there, and the cursor still knows that it scans.
    let backward = reads();
    assert!((17..30).contains(&backward), "{backward}");
    let mut iter = table.iter(TableIterOptions::compaction(CLASS, 1 << 20));
    iter.seek_to_first().unwrap();
    while iter.valid() {
        iter.next().unwrap();
    }
    let chunks = reads();
    assert!((5..8).contains(&chunks), "{chunks}");
    let mut iter = table.iter(TableIterOptions::client(None, OnMiss::Read));
    for (internal, _) in entries.iter().step_by(1000).rev() {
        iter.seek(internal).unwrap();
        assert_eq!(reads(), 1);
        let user = key::user_key(internal);
        table.get(user, SeqNo::MAX, hash_key(user), None, OnMiss::Read).unwrap();
        assert_eq!(reads(), 1);
    }
}

#[test]
fn nothing_is_read_ahead_beyond_the_bounds() {
    let (file, table, entries) = direct_table();
    let user_key = |i: usize| UserKey::bytewise(key::user_key(&entries[i].0));
    file.2.swap(0, Ordering::Relaxed);
    for forward in [true, false] {
        let mut iter = table.iter(TableIterOptions {
            readahead_bytes: 256 << 10,
            bounds: (Some(user_key(1000)), Some(user_key(1020))),
            ..TableIterOptions::client(None, OnMiss::Read)
        });
        iter.seek(&entries[if forward { 1000 } else { 1019 }].0).unwrap();
        for _ in 1..20 {
            if forward { iter.next().unwrap() } else { iter.prev().unwrap() }
        }
        assert_eq!(iter.key(), &*entries[if forward { 1019 } else { 1000 }].0);
        // 20 entries of about 1 KB, and the rest of their blocks and pages.
        let bytes = file.2.swap(0, Ordering::Relaxed);
        assert!((20_000..36_000).contains(&bytes), "{forward}: {bytes}");
    }
}

#[test]
fn a_cursor_learns_how_far_scans_go() {
    let (file, table, entries) = direct_table();
    let lengths: Arc<ScanLengths> = Arc::default();
    let scan = |from: usize| {
        file.1.swap(0, Ordering::Relaxed);
        let mut iter = table.iter(TableIterOptions {
            scans: Some(LevelScans { lengths: lengths.clone(), level: 1 }),
            ..TableIterOptions::client(None, OnMiss::Read)
        });
        iter.seek(&entries[from].0).unwrap();
        for i in 1..50 {
            iter.next().unwrap();
            assert_eq!(iter.key(), &*entries[from + i].0);
        }
        drop(iter);
        file.1.swap(0, Ordering::Relaxed)
    };
    assert_eq!(scan(50), 4);
    for from in (100..2500).step_by(100) {
        scan(from);
    }
    let reads = scan(3001);
    assert!(reads <= 2, "{reads}");
}

#[test]
fn a_scan_that_fills_the_cache_leaves_nothing_to_read() {
    let (file, table, entries) = direct_table();
    let cache = Arc::new(BlockCache::new(64 << 20));
    for fill in [true, false] {
        let mut iter =
            table.iter(TableIterOptions::client(Some(cache.clone()), OnMiss::of(fill, false)));
        iter.seek_to_first().unwrap();
        while iter.valid() {
            iter.next().unwrap();
        }
    }
    file.1.store(0, Ordering::Relaxed);
    for (internal, _) in &entries {
        let user = key::user_key(internal);
        let got = table.get(user, SeqNo::MAX, hash_key(user), Some(&cache), OnMiss::Read).unwrap();
        assert!(got.is_some());
    }
    assert_eq!(file.1.load(Ordering::Relaxed), 0);
    assert!(cache.usage_bytes() > 5_000_000);
}

#[test]
fn a_fuzzers_seed_is_a_file_that_opens() {
    for compression in 0..2 {
        let bytes = super::fuzz::seed(compression);
        let file = MemVfs::new().open(path(), OpenOptions::CREATE).unwrap();
        file.write_at(&bytes, 0, CLASS).unwrap();
        let directory = CompactionFile::open(&file, path(), FileId(1)).unwrap();
        assert_eq!(directory.tables[0].entries, 40);
        super::fuzz::compaction_file(&bytes);
    }
}
