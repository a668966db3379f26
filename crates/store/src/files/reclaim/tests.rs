//! Tests of reclaiming: all dead space is freed, in steps beside clients, and files with another
//! name keep every byte.

use sateen_control::version::{Placement, ValueRef, ValueRefs};
use sateen_control::{SeqNo, TableId, UserKey};
use tempfile::TempDir;

use super::super::{CompactionFileWriter, DirectoryEntry};
use super::*;
use crate::files::CompactionFile;
use crate::table::table_cache::TableCache;
use crate::table::table_cache::TableCacheOptions;
use crate::vfs::{Fault, FaultRule, FaultVfs, PosixVfs, VfsLock, VfsOperation};

const FILE: FileId = FileId(7);
const PACED: ReclaimPace = ReclaimPace { rate: Some(40 << 20), haste: ReclaimHaste::Later };
const IN_A_HURRY: ReclaimPace = ReclaimPace { haste: ReclaimHaste::Now, ..PACED };
const UNPACED: ReclaimPace = ReclaimPace { rate: None, haste: ReclaimHaste::Later };

struct Fixture {
    directory: TempDir,
    reclaimer: Reclaimer,
}

impl Fixture {
    /// Makes a file with tables of the given sizes, which nothing pins.
    fn new(tables: &[u64]) -> (Fixture, Vec<Arc<TableMeta>>) {
        Fixture::on(Arc::new(PosixVfs::new()), tables)
    }

    /// The same on the caller's file system.
    fn on(vfs: Arc<dyn Vfs>, tables: &[u64]) -> (Fixture, Vec<Arc<TableMeta>>) {
        let directory = TempDir::new_in(std::env::current_exe().unwrap().parent().unwrap());
        let directory = directory.unwrap();
        let cache = TableCache::new(TableCacheOptions {
            vfs: vfs.clone(),
            directory: directory.path().to_owned(),
            db_uid: 1,
            direct: false,
            open_files_max: 10,
            memory_bytes_max: u64::MAX,
            images: None,
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
        smallest: UserKey::bytewise(b"a".as_slice()),
        largest: UserKey::bytewise(b"b".as_slice()),
        seqno_min: SeqNo(1),
        seqno_max: SeqNo(1),
        entries: 1,
        tombstones: 0,
        merges: 0,
        ranges_applied: SeqNo(0),
        global_seqno: SeqNo(0),
        raw_bytes: 1,
        tail_bytes: 0,
        sketch: None,
        values: Default::default(),
    }
}

#[test]
fn beside_clients_a_file_goes_step_by_step() {
    let (fixture, metas) = Fixture::new(&[3 << 20, (2 << 20) + 4096]);
    fixture.reclaimer.retire(metas.into_iter());
    assert_eq!(fixture.reclaimer.obsolete_bytes(), (5 << 20) + 4096);
    let no_holes = || fixture.reclaimer.no_holes.load(Ordering::Relaxed);
    let mut now = Instant(0);
    let mut sizes = Vec::new();
    while let Some(next) = fixture.reclaimer.reclaim(now, PACED).unwrap() {
        sizes.push(fixture.allocated());
        assert!(next.since(now) >= Duration::from_millis(25), "{next:?}");
        // Nothing happens before it is due.
        assert_eq!(fixture.reclaimer.reclaim(now, PACED).unwrap(), Some(next));
        assert_eq!(fixture.allocated(), sizes.last().copied().unwrap());
        let content = std::fs::read(fixture.path()).unwrap();
        assert_eq!(content.last(), Some(&1), "its end goes last");
        assert!(no_holes() || content.first() == Some(&0));
        now = next;
    }
    assert!(sizes.len() >= 2 && sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    assert_eq!((fixture.length(), fixture.reclaimer.obsolete_bytes()), (None, 0));
    assert_eq!(fixture.reclaimer.counters.files_unlinked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_pause_ends_earlier_once_there_is_haste() {
    let (fixture, metas) = Fixture::new(&[5 << 20]);
    fixture.reclaimer.retire(metas.into_iter());
    let next = |pace| fixture.reclaimer.reclaim(Instant(0), pace).unwrap().unwrap();
    let slow = ReclaimPace { rate: Some(1 << 20), ..PACED };
    let first = next(slow);
    assert!(first.since(Instant(0)) >= Duration::from_secs(1));
    let earlier = next(IN_A_HURRY);
    assert!(earlier < first, "{earlier:?}");
    assert_eq!(next(slow), earlier, "a pause never becomes longer");
}

#[test]
fn where_holes_cannot_be_a_file_is_cut_shorter_step_by_step() {
    let (fixture, metas) = Fixture::new(&[5 << 20]);
    fixture.reclaimer.no_holes.store(true, Ordering::Relaxed);
    fixture.reclaimer.retire(metas.into_iter());
    let mut now = Instant(0);
    let mut lengths = Vec::new();
    while let Some(next) = fixture.reclaimer.reclaim(now, PACED).unwrap() {
        lengths.push(fixture.length().unwrap());
        now = next;
    }
    assert!(lengths.len() >= 2 && lengths.is_sorted_by(|a, b| a > b), "{lengths:?}");
    assert_eq!((fixture.length(), fixture.reclaimer.obsolete_bytes()), (None, 0));
}

#[test]
fn holes_are_punched_step_by_step() {
    let (fixture, mut metas) = Fixture::new(&[4 << 20, 1 << 20]);
    let live = metas.pop();
    fixture.reclaimer.retire(metas.into_iter());
    let mut now = Instant(0);
    let mut steps = 0;
    while let Some(next) = fixture.reclaimer.reclaim(now, PACED).unwrap() {
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
    assert_eq!(fixture.reclaimer.reclaim(Instant(0), UNPACED).unwrap(), None);
    assert_eq!(fixture.length(), None);
}

#[test]
fn another_name_of_a_file_keeps_its_bytes() {
    // Another name made by a checkpoint, which says so, or by something else.
    for told in [true, false] {
        let (fixture, mut metas) = Fixture::new(&[4 << 20, 4 << 20]);
        let other = fixture.directory.path().join("other");
        std::fs::hard_link(fixture.path(), &other).unwrap();
        if told {
            fixture.reclaimer.mark_shared([FILE].into_iter(), Instant(0));
        }
        let last = metas.pop();
        fixture.reclaimer.retire(metas.into_iter());
        let (reclaimer, minute) = (&fixture.reclaimer, |n: u64| Instant(n * 60_000_000_000));
        reclaim_until(reclaimer, minute(0), minute(1));
        // Without clients, too.
        assert!(reclaimer.reclaim(minute(1), UNPACED).unwrap().is_some());
        reclaimer.retire(last.into_iter());
        assert_eq!(reclaim_until(reclaimer, minute(1), minute(2)), None);
        assert_eq!(fixture.length(), None);
        assert!(std::fs::read(&other).unwrap() == vec![1; 8 << 20]);
    }
}

#[test]
fn dead_ranges_are_freed_once_the_other_name_is_gone() {
    let (fixture, mut metas) = Fixture::new(&[4 << 20, 4 << 20]);
    let other = fixture.directory.path().join("other");
    std::fs::hard_link(fixture.path(), &other).unwrap();
    let (reclaimer, minute) = (&fixture.reclaimer, |n: u64| Instant(n * 60_000_000_000));
    let _live = metas.pop();
    reclaimer.retire(metas.into_iter());
    for n in 0..25 {
        reclaim_until(reclaimer, minute(n), minute(n + 1));
        assert_eq!(fixture.allocated(), 8 << 20);
    }
    std::fs::remove_file(&other).unwrap();
    for n in 25..36 {
        reclaim_until(reclaimer, minute(n), minute(n + 1));
    }
    if reclaimer.can_punch() {
        assert_eq!(fixture.allocated(), 4 << 20);
    }
}

/// Runs every step that is due until then.
fn reclaim_until(reclaimer: &Reclaimer, mut now: Instant, until: Instant) -> Option<Instant> {
    loop {
        let next = reclaimer.reclaim(now, PACED).unwrap();
        match next {
            Some(next) if next <= until => now = next,
            next => return next,
        }
    }
}

#[test]
fn tables_that_die_one_after_the_other_leave_one_hole() {
    let (fixture, metas) = Fixture::new(&[1 << 20, 1 << 20, 1 << 20, 1 << 20]);
    let reclaimer = &fixture.reclaimer;
    let mut metas: Vec<_> = metas.into_iter().map(Some).collect();
    let mut dies = |table: usize| reclaimer.retire(metas[table].take().into_iter());
    let second = |n: u64| Instant(n * 1_000_000_000);
    dies(1);
    assert_eq!(reclaim_until(reclaimer, second(1), second(3)), Some(second(11)));
    dies(0);
    assert_eq!(reclaim_until(reclaimer, second(4), second(10)), Some(second(11)));
    assert_eq!(reclaimer.obsolete_bytes(), 2 << 20);
    assert_eq!(fixture.allocated(), 4 << 20);
    reclaim_until(reclaimer, second(11), second(13));
    let space = *reclaimer.spaces().first().unwrap();
    assert_eq!(space.live_bytes, 2 << 20);
    if reclaimer.can_punch() {
        assert_eq!((space.dead_bytes, space.punched_bytes, space.holes), (0, 2 << 20, 1));
        assert_eq!(fixture.allocated(), 2 << 20);
    } else {
        assert_eq!((space.dead_bytes, space.gives_back), (2 << 20, false));
    }
    // If the rest dies before the wait is over, the file is unlinked and no hole is punched.
    let holes = reclaimer.counters.holes_punched.load(Ordering::Relaxed);
    dies(2);
    assert_eq!(reclaim_until(reclaimer, second(20), second(22)), Some(second(30)));
    dies(3);
    assert_eq!(reclaim_until(reclaimer, second(23), second(25)), None);
    assert_eq!((fixture.length(), reclaimer.spaces()), (None, vec![]));
    assert_eq!(reclaimer.counters.holes_punched.load(Ordering::Relaxed), holes);
}

#[test]
fn in_haste_dead_tables_do_not_wait_for_their_neighbours() {
    for haste in [ReclaimHaste::Soon, ReclaimHaste::Now] {
        without_wait(ReclaimPace { haste, ..PACED });
    }
}

fn without_wait(pace: ReclaimPace) {
    let (fixture, mut metas) = Fixture::new(&[4 << 20, 1 << 20]);
    let (reclaimer, _live) = (&fixture.reclaimer, metas.pop());
    reclaimer.retire(metas.into_iter());
    let mut now = Instant(0);
    assert_eq!(reclaimer.reclaim(now, PACED).unwrap(), Some(now + Duration::from_secs(10)));
    assert_eq!(reclaimer.reclaimable_bytes(), 4 << 20);
    // Holes may be impossible here.
    while reclaimer.can_punch()
        && reclaimer.reclaimable_bytes() > 0
        && let Some(next) = reclaimer.reclaim(now, pace).unwrap()
    {
        assert!(next.since(now) < Duration::from_secs(5), "{next:?}");
        now = next;
    }
    assert!(!reclaimer.can_punch() || fixture.allocated() == 1 << 20);
}

#[test]
fn what_a_reader_or_a_hold_keeps_cannot_be_given_back() {
    let (fixture, metas) = Fixture::new(&[1 << 20, 2 << 20]);
    let reclaimer = &fixture.reclaimer;
    let pinned = metas.clone();
    reclaimer.retire(metas.into_iter());
    let reclaimable = || {
        reclaimer.reclaim(Instant(0), PACED).unwrap();
        reclaimer.reclaimable_bytes()
    };
    assert_eq!((reclaimable(), reclaimer.obsolete_bytes()), (0, 3 << 20));
    let [first, second] = <[_; 2]>::try_from(pinned).unwrap();
    drop(first);
    assert_eq!((reclaimable(), reclaimer.obsolete_bytes()), (1 << 20, 3 << 20));
    let hold = reclaimer.hold();
    assert_eq!((reclaimable(), reclaimer.obsolete_bytes()), (0, 3 << 20));
    drop((hold, second));
    reclaimer.reclaim(Instant(0), UNPACED).unwrap();
    assert_eq!((reclaimer.reclaimable_bytes(), reclaimer.obsolete_bytes()), (0, 0));
}

#[test]
fn where_holes_cannot_be_what_is_dead_is_known() {
    let (fixture, mut metas) = Fixture::new(&[1 << 20, 1 << 20]);
    fixture.reclaimer.no_holes.store(true, Ordering::Relaxed);
    let live = metas.pop();
    fixture.reclaimer.retire(metas.into_iter());
    assert_eq!(fixture.reclaimer.reclaim(Instant(0), UNPACED).unwrap(), None);
    let space = *fixture.reclaimer.spaces().first().unwrap();
    assert_eq!((space.live_bytes, space.dead_bytes, space.gives_back), (1 << 20, 1 << 20, false));
    drop(live);
}

/// Writes a file with `tables` tables of 1 MiB each at the fixture's place.
fn written(fixture: &Fixture, tables: u64) -> Vec<Arc<TableMeta>> {
    let vfs = fixture.reclaimer.vfs.as_ref();
    std::fs::remove_file(fixture.path()).unwrap();
    let class = IoClass::Deep(1);
    let mut writer =
        CompactionFileWriter::create(vfs, &fixture.path(), FILE, 1, false, class).unwrap();
    let mut metas = Vec::new();
    for table in (0..tables).map(TableId) {
        writer.begin_table(table).unwrap();
        writer.append(&vec![1; 1 << 20]).unwrap();
        let entry = DirectoryEntry { table, ..DirectoryEntry::default() };
        let (offset, length) = writer.finish_table(&entry).unwrap();
        metas.push(Arc::new(meta(table, offset, length)));
    }
    writer.finish().unwrap();
    metas
}

#[test]
fn ranges_dead_at_open_are_found_and_freed() {
    let (fixture, _) = Fixture::new(&[]);
    let vfs = &fixture.reclaimer.vfs;
    let metas = written(&fixture, 4);
    let live: Vec<_> = [0, 2].map(|table: usize| metas[table].clone()).into();
    // The second time the space is freed already, and is not freed again.
    for again in [false, true] {
        let cache = fixture.reclaimer.tables.clone();
        let directory = fixture.directory.path().to_owned();
        let reclaimer = Reclaimer::new(directory, vfs.clone(), cache);
        reclaimer.found(live.iter());
        assert!(reclaimer.has_due_work());
        assert!(!reclaimer.look_at_found_files(16, Instant(0)));
        reclaimer.reclaim(Instant(0), UNPACED).unwrap();
        let punched = reclaimer.counters.bytes_punched.load(Ordering::Relaxed);
        if reclaimer.can_punch() {
            assert_eq!(punched, if again { 0 } else { 2 << 20 });
            let space = *reclaimer.spaces().first().unwrap();
            assert_eq!((space.dead_bytes, space.punched_bytes, space.holes), (0, 2 << 20, 2));
            assert!(fixture.allocated() < 3 << 20);
        }
        assert!(!reclaimer.has_due_work());
    }
    let bytes = std::fs::read(fixture.path()).unwrap();
    for table in &live {
        let range = Extents::of(table).unwrap();
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert!(bytes[range].iter().all(|&byte| byte == 1));
    }
    // The file's directory is still there.
    let file = vfs.open(&fixture.path(), OpenOptions::READ).unwrap();
    assert_eq!(CompactionFile::open(&file, &fixture.path(), FILE).unwrap().tables.len(), 4);
}

#[test]
fn an_unreadable_file_is_examined_again_and_blocks_no_other() {
    let faults = FaultVfs::new(Arc::new(PosixVfs::new()));
    let (fixture, _) = Fixture::on(Arc::new(faults.clone()), &[]);
    let mut metas = written(&fixture, 4);
    let opened = || {
        let cache = fixture.reclaimer.tables.clone();
        Reclaimer::new(fixture.directory.path().to_owned(), Arc::new(faults.clone()), cache)
    };
    let reclaimer = opened();
    // The second table is dead from the beginning. The first dies before the file is examined.
    metas.remove(1);
    reclaimer.found(metas.iter());
    faults.add(FaultRule::new(Fault::Io).path(fixture.path()).on(VfsOperation::Read));
    assert!(!reclaimer.look_at_found_files(16, Instant(0)));
    assert!(!reclaimer.has_due_work() && !reclaimer.has_work());
    let again = reclaimer.looks_again_at().unwrap();
    assert_eq!(again, Instant(0) + LOOK_AGAIN_AFTER);
    assert!(!reclaimer.look_at_found_files(16, again));
    assert_eq!(reclaimer.looks_again_at(), Some(again + LOOK_AGAIN_AFTER));
    faults.clear();
    reclaimer.retire(std::iter::once(metas.remove(0)));
    reclaimer.reclaim_all(again);
    let reads = faults.calls(VfsOperation::Read);
    assert!(!reclaimer.look_at_found_files(16, again));
    assert_eq!(faults.calls(VfsOperation::Read), reads, "looked at before its time");
    assert!(!reclaimer.look_at_found_files(16, again + LOOK_AGAIN_AFTER));
    assert_eq!((reclaimer.looks_again_at(), reclaimer.has_work()), (None, reclaimer.can_punch()));
    reclaimer.reclaim_all(again);
    if reclaimer.can_punch() {
        assert_eq!(reclaimer.counters.bytes_punched.load(Ordering::Relaxed), 2 << 20);
        assert!(fixture.allocated() < 3 << 20);
    }
    // A file that is gone is ignored.
    let reclaimer = opened();
    reclaimer.found(metas.iter());
    faults.add(FaultRule::new(Fault::Io).path(fixture.path()).on(VfsOperation::Read));
    assert!(!reclaimer.look_at_found_files(16, Instant(0)));
    assert!(reclaimer.looks_again_at().is_some());
    reclaimer.retire(metas.into_iter());
    reclaimer.reclaim_all(again);
    assert_eq!(fixture.length(), None);
    assert!(!reclaimer.look_at_found_files(16, again));
    assert_eq!(reclaimer.looks_again_at(), None);
}

#[test]
fn where_holes_turn_out_not_to_be_nothing_stays_due() {
    // A paced step frees a part of the dead bytes, and so does a large one without clients.
    for (pace, mib) in [(PACED, 8), (UNPACED, 256)] {
        let faults = FaultVfs::new(Arc::new(PosixVfs::new()));
        faults.add(FaultRule::new(Fault::Unsupported).on(VfsOperation::PunchHole));
        let (fixture, mut metas) = Fixture::on(Arc::new(faults), &[4096, 4096]);
        let live = metas.pop();
        // The file is as long as the table claims to be.
        let long = Arc::new(meta(TableId(7), 0, mib << 20));
        fixture.reclaimer.add([long.clone()].iter());
        fixture.reclaimer.retire([long].into_iter());
        let mut now = Instant(0);
        let mut steps = 0;
        while let Some(next) = fixture.reclaimer.reclaim(now, pace).unwrap() {
            now = now.max(next);
            steps += 1;
            assert!(steps < 10, "it does not end");
        }
        assert!(!fixture.reclaimer.can_punch() && !fixture.reclaimer.has_due_work());
        let space = *fixture.reclaimer.spaces().first().unwrap();
        assert_eq!((space.dead_bytes, space.gives_back), (mib << 20, false));
        drop((live, metas));
    }
}

#[test]
fn a_file_that_cannot_be_punched_does_not_block_others() {
    for pace in [PACED, IN_A_HURRY, UNPACED] {
        let faults = FaultVfs::new(Arc::new(PosixVfs::new()));
        let (fixture, mut metas) = Fixture::on(Arc::new(faults.clone()), &[1 << 20, 1 << 20]);
        faults.add(FaultRule::new(Fault::Io).on(VfsOperation::PunchHole).path(fixture.path()));
        let other = FileId(8);
        let path = table_file_name(fixture.directory.path(), other);
        std::fs::write(&path, vec![1; 2 << 20]).unwrap();
        let of_other = |id: u64, offset: u64| {
            let placement = Placement::Slice { file: other, offset, length: 1 << 20 };
            Arc::new(TableMeta { placement, ..meta(TableId(id), offset, 1 << 20) })
        };
        let others = [of_other(10, 0), of_other(11, 1 << 20)];
        fixture.reclaimer.add(others.iter());
        let [dead, live] = others;
        let kept = metas.pop();
        fixture.reclaimer.retire(metas.into_iter());
        fixture.reclaimer.retire([dead].into_iter());
        let mut now = Instant(0);
        let punched = || fixture.reclaimer.counters.bytes_punched.load(Ordering::Relaxed);
        for _ in 0..100 {
            now = now + Duration::from_secs(1);
            // The error is reported each time.
            let _failed = fixture.reclaimer.reclaim(now, pace);
        }
        assert_eq!(punched(), 1 << 20, "that of the other file");
        faults.clear();
        for _ in 0..100 {
            now = now + Duration::from_secs(1);
            fixture.reclaimer.reclaim(now, pace).unwrap();
        }
        assert_eq!(punched(), 2 << 20);
        drop((kept, live));
    }
}

/// Each call may fail beside clients: all dead space is freed anyway, and nothing else.
#[test]
fn a_failed_call_does_not_stop_freeing() {
    use VfsOperation as Op;
    let mut happened = BTreeMap::<Op, u64>::new();
    for operation in [Op::Open, Op::Links, Op::PunchHole, Op::Truncate, Op::Sync, Op::Remove] {
        for (fault, no_holes) in [Fault::Io, Fault::Interrupted, Fault::NoSpace]
            .into_iter()
            .flat_map(|fault| [(fault, false), (fault, true)])
        {
            for (for_good, live) in [(false, false), (true, false), (false, true)] {
                let faults = FaultVfs::new(Arc::new(PosixVfs::new()));
                let (fixture, mut metas) = Fixture::on(Arc::new(faults.clone()), &[3 << 20; 2]);
                fixture.reclaimer.no_holes.store(no_holes, Ordering::Relaxed);
                let live = live.then(|| metas.pop());
                let rule = FaultRule::new(fault).on(operation);
                let rule = faults.add(if for_good { rule } else { rule.nth(1) });
                fixture.reclaimer.retire(metas.into_iter());
                let mut now = Instant(0);
                for round in 0..80 {
                    now = now + Duration::from_secs(1);
                    // The error is reported each time.
                    let _failed = fixture.reclaimer.reclaim(now, PACED);
                    if round == 40 {
                        *happened.entry(operation).or_default() += faults.remove_rule(rule);
                    }
                }
                let what = format!("{operation:?} {fault:?}, no holes: {no_holes}");
                match live {
                    None => assert_eq!(fixture.length(), None, "{what}"),
                    Some(_) => {
                        let content = std::fs::read(fixture.path()).unwrap();
                        assert!(content[3 << 20..].iter().all(|byte| *byte == 1), "{what}");
                        let dead = fixture.reclaimer.obsolete_bytes();
                        let stays = fixture.reclaimer.no_holes.load(Ordering::Relaxed);
                        assert_eq!(dead > 0, stays, "{what}: {dead} bytes");
                    }
                }
            }
        }
    }
    for (operation, count) in happened {
        assert!(count > 0, "{operation:?} never failed");
    }
}

/// The lock file of a database with one reader. Whether its marks can be read varies.
#[derive(Debug, Default)]
struct Marked(AtomicBool);

impl VfsLock for Marked {
    fn marks(&self) -> std::io::Result<Vec<u64>> {
        let fails = self.0.load(Ordering::Relaxed);
        if fails { Err(std::io::Error::other("no memory")) } else { Ok(vec![9]) }
    }
}

#[test]
fn readers_keep_their_tables_while_their_marks_cannot_be_read() {
    let (fixture, metas) = Fixture::new(&[1 << 20]);
    let marked = Arc::new(Marked::default());
    let lock_file: Arc<dyn VfsLock> = marked.clone();
    fixture.reclaimer.respect_leases(Arc::downgrade(&lock_file));
    let limits = LeaseLimits { time: Duration::from_secs(60), bytes: u64::MAX };
    fixture.reclaimer.limit_leases(limits);
    let look = |second: u64| {
        fixture.reclaimer.look_at_leases(Instant(second * 1_000_000_000));
        fixture.reclaimer.reclaim_all(Instant(second * 1_000_000_000));
        fixture.length().is_some()
    };
    assert!(look(1));
    fixture.reclaimer.retire(metas.into_iter());
    marked.0.store(true, Ordering::Relaxed);
    assert!(look(2) && look(3));
    marked.0.store(false, Ordering::Relaxed);
    assert!(look(4), "the reader is still there");
    assert!(!look(61), "its lease is over");
}

/// A compaction writes places of the same values anew, and its inputs may be pinned.
#[test]
fn values_count_once_whichever_tables_refer_to_them() {
    let (fixture, metas) = Fixture::new(&[8192]);
    let values = FileId(9);
    let table = |id| {
        let refers = ValueRef { file: values, bytes: 90_000, file_bytes: 102_400 };
        let refs = ValueRefs { files: vec![refers], encoded: true };
        Arc::new(TableMeta { values: refs, ..meta(TableId(id), 8192, 4096) })
    };
    let tables = [table(1), table(2)];
    fixture.reclaimer.add(tables.iter());
    assert_eq!(fixture.reclaimer.used_bytes().0, 8192 + 2 * 4096 + 102_400);
    let live = |space: FileSpace| (space.file == values).then_some(space.live_bytes);
    assert_eq!(fixture.reclaimer.spaces().into_iter().find_map(live), Some(102_400));
    let mut holes = Extents::default();
    holes.insert(4096..12_288);
    lock(&fixture.reclaimer.state).accounts.add_holes(values, &holes);
    assert_eq!(fixture.reclaimer.used_bytes().0, 8192 + 2 * 4096 + 102_400 - 8192);
    drop(metas);
}
