//! What must hold of giving space back: all of it goes, in steps beside clients, and what has
//! another name keeps every byte.

use sateen_control::TableId;
use sateen_control::{SeqNo, UserKey};
use tempfile::TempDir;

use super::*;
use crate::read::table_cache::TableCacheOptions;
use crate::vfs::PosixVfs;

const FILE: FileId = FileId(7);
const RATE: u64 = 40 << 20;

struct Fixture {
    directory: TempDir,
    reclaimer: Reclaimer,
}

impl Fixture {
    /// A file of tables of so many bytes, with nobody who holds them.
    fn new(tables: &[u64]) -> (Fixture, Vec<Arc<TableMeta>>) {
        let directory = TempDir::new_in(std::env::current_exe().unwrap().parent().unwrap());
        let directory = directory.unwrap();
        let vfs: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
        let cache = TableCache::new(TableCacheOptions {
            vfs: vfs.clone(),
            directory: directory.path().to_owned(),
            db_uid: 1,
            direct: false,
            open_files_max: 10,
            memory_bytes_max: u64::MAX,
        });
        let bytes = usize::try_from(tables.iter().sum::<u64>()).unwrap();
        std::fs::write(table_file_name(directory.path(), FILE), vec![1; bytes]).unwrap();
        let mut offset = 0;
        let mut metas = Vec::new();
        for (index, &length) in tables.iter().enumerate() {
            metas.push(Arc::new(meta(TableId(index as u64), offset, length)));
            offset += length;
        }
        let reclaimer = Reclaimer::new(directory.path().to_owned(), vfs, Arc::new(cache));
        reclaimer.add(metas.iter());
        (Fixture { directory, reclaimer }, metas)
    }

    fn path(&self) -> PathBuf {
        table_file_name(self.directory.path(), FILE)
    }

    fn length(&self) -> Option<u64> {
        std::fs::metadata(self.path()).ok().map(|metadata| metadata.len())
    }

    fn allocated(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(self.path()).unwrap().blocks() * 512
    }
}

fn meta(id: TableId, offset: u64, length: u64) -> TableMeta {
    TableMeta {
        id,
        placement: Placement::Slice { file: FILE, offset, length },
        size_bytes: length,
        smallest: UserKey::from(b"a".as_slice()),
        largest: UserKey::from(b"b".as_slice()),
        seqno_min: SeqNo(1),
        seqno_max: SeqNo(1),
        entries: 1,
        tombstones: 0,
        raw_bytes: 1,
        tail_bytes: 0,
    }
}

#[test]
fn neighbouring_holes_become_one() {
    let file = FileId(7);
    let holes = vec![(file, 8192, 4096), (FileId(8), 12288, 4096), (file, 4096, 4096)];
    let joined = coalesce(holes);
    assert_eq!(joined, vec![(file, 4096, 8192), (FileId(8), 12288, 4096)]);
}

#[test]
fn beside_clients_a_file_goes_step_by_step() {
    let (fixture, metas) = Fixture::new(&[3 << 20, (2 << 20) + 4096]);
    fixture.reclaimer.retire(metas.into_iter());
    assert_eq!(fixture.reclaimer.obsolete_bytes(), (5 << 20) + 4096);
    let no_holes = || fixture.reclaimer.no_holes.load(Ordering::Relaxed);
    let mut now = Instant(0);
    let mut sizes = Vec::new();
    while let Some(next) = fixture.reclaimer.reclaim(now, Some(RATE)).unwrap() {
        sizes.push(fixture.allocated());
        assert!(next.since(now) >= Duration::from_millis(25), "{next:?}");
        // Not before it is due.
        assert_eq!(fixture.reclaimer.reclaim(now, Some(RATE)).unwrap(), Some(next));
        assert_eq!(fixture.allocated(), sizes.last().copied().unwrap());
        let content = std::fs::read(fixture.path()).unwrap();
        assert_eq!(content.last(), Some(&1), "its end goes last");
        assert!(no_holes() || content.first() == Some(&0));
        now = next;
    }
    assert!(sizes.len() >= 4 && sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    assert_eq!((fixture.length(), fixture.reclaimer.obsolete_bytes()), (None, 0));
    assert_eq!(fixture.reclaimer.counters.files_unlinked.load(Ordering::Relaxed), 1);
}

#[test]
fn where_holes_cannot_be_a_file_is_cut_shorter_step_by_step() {
    let (fixture, metas) = Fixture::new(&[5 << 20]);
    fixture.reclaimer.no_holes.store(true, Ordering::Relaxed);
    fixture.reclaimer.retire(metas.into_iter());
    let mut now = Instant(0);
    let mut lengths = Vec::new();
    while let Some(next) = fixture.reclaimer.reclaim(now, Some(RATE)).unwrap() {
        lengths.push(fixture.length().unwrap());
        now = next;
    }
    assert!(lengths.len() >= 4 && lengths.is_sorted_by(|a, b| a > b), "{lengths:?}");
    assert_eq!((fixture.length(), fixture.reclaimer.obsolete_bytes()), (None, 0));
}

#[test]
fn holes_are_punched_step_by_step() {
    let (fixture, mut metas) = Fixture::new(&[4 << 20, 1 << 20]);
    let live = metas.pop();
    fixture.reclaimer.retire(metas.into_iter());
    let mut now = Instant(0);
    let mut steps = 0;
    while let Some(next) = fixture.reclaimer.reclaim(now, Some(RATE)).unwrap() {
        now = next;
        steps += 1;
    }
    assert!(steps >= 2 || fixture.reclaimer.no_holes.load(Ordering::Relaxed));
    if !fixture.reclaimer.no_holes.load(Ordering::Relaxed) {
        assert!(fixture.allocated() < 2 << 20);
    }
    assert_eq!(fixture.length(), Some(5 << 20));
    drop(live);
}

#[test]
fn without_clients_all_goes_at_once() {
    let (fixture, metas) = Fixture::new(&[8 << 20]);
    fixture.reclaimer.retire(metas.into_iter());
    assert_eq!(fixture.reclaimer.reclaim(Instant(0), None).unwrap(), None);
    assert_eq!(fixture.length(), None);
}

#[test]
fn another_name_of_a_file_keeps_its_bytes() {
    // Made by a checkpoint, which says so, or by somebody else.
    for told in [true, false] {
        let (fixture, mut metas) = Fixture::new(&[4 << 20, 4 << 20]);
        let other = fixture.directory.path().join("other");
        std::fs::hard_link(fixture.path(), &other).unwrap();
        if told {
            fixture.reclaimer.mark_shared([FILE].into_iter());
        }
        let last = metas.pop();
        fixture.reclaimer.retire(metas.into_iter());
        let mut now = Instant(0);
        while let Some(next) = fixture.reclaimer.reclaim(now, Some(RATE)).unwrap() {
            now = next;
        }
        fixture.reclaimer.retire(last.into_iter());
        while let Some(next) = fixture.reclaimer.reclaim(now, Some(RATE)).unwrap() {
            now = next;
        }
        assert_eq!(fixture.length(), None);
        assert!(std::fs::read(&other).unwrap() == vec![1; 8 << 20]);
    }
}
