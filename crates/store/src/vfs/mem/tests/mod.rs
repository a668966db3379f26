//! The file system in memory behaves like the real one, its crash images follow the model, and it
//! panics on every breach that its documentation lists.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::*;

mod agreement;

const CLASS: IoClass = IoClass::Client;

fn path(name: &str) -> &Path {
    Path::new(name)
}

/// Makes a file whose `bytes` and name are durable.
fn durable(vfs: &MemVfs, name: &str, bytes: &[u8]) -> Arc<dyn VfsFile> {
    let file = vfs.open(path(name), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0, CLASS).unwrap();
    file.sync_data(CLASS).unwrap();
    vfs.sync_dir(path(name).parent().unwrap()).unwrap();
    file
}

fn create(vfs: &MemVfs, name: &str) -> Arc<dyn VfsFile> {
    vfs.open(path(name), OpenOptions::CREATE).unwrap()
}

/// Returns the contents of `name` after a crash with `choice`; `None` if it does not exist.
fn after(vfs: &MemVfs, choice: CrashChoice, name: &str) -> Option<Vec<u8>> {
    vfs.crash_image(choice).contents(path(name)).ok()
}

fn names(vfs: &MemVfs, directory: &str) -> Vec<String> {
    let names = vfs.list(path(directory)).unwrap();
    names.into_iter().map(|name| name.to_str().unwrap().to_owned()).collect()
}

fn breaches(vfs: &MemVfs, what: impl FnOnce()) -> bool {
    let before = vfs.breaches().len();
    let panicked = catch_unwind(AssertUnwindSafe(what)).is_err();
    assert_eq!(panicked, vfs.breaches().len() > before, "a breach is both listed and a panic");
    panicked
}

// --- What survives ---

#[test]
fn data_survives_by_the_sync_of_the_file_and_names_by_that_of_the_directory() {
    let vfs = MemVfs::new();
    let file = create(&vfs, "f");
    file.write_at(b"data", 0, CLASS).unwrap();
    file.sync_data(CLASS).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "f"), None, "the name was not synced");
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "f").unwrap(), b"data");

    let other = create(&vfs, "g");
    other.write_at(b"data", 0, CLASS).unwrap();
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "g").unwrap(), b"", "the data was not synced");
    assert_eq!(after(&vfs, CrashChoice::Everything, "g").unwrap(), b"data");
}

#[test]
fn each_write_survives_for_itself() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"......");
    for (n, byte) in [b"a", b"b", b"c"].into_iter().enumerate() {
        file.write_at(byte, n as u64 * 2, CLASS).unwrap();
    }
    let check = |choice, expected: &[u8]| {
        assert_eq!(after(&vfs, choice, "f").unwrap(), expected, "{choice:?}");
    };
    check(CrashChoice::SyncedOnly, b"......");
    check(CrashChoice::Everything, b"a.b.c.");
    check(CrashChoice::DropOne(1), b"a...c.");
    check(CrashChoice::KeepOne(1), b"..b...");
    check(CrashChoice::Prefix(2), b"a.b...");
    check(CrashChoice::Mask(0b101), b"a...c.");
    check(CrashChoice::DataOnly, b"a.b.c.");
    check(CrashChoice::NamesOnly, b"......");
    let subsets: BTreeSet<_> =
        (0..64).map(|seed| after(&vfs, CrashChoice::Subset(seed), "f")).collect();
    assert_eq!(subsets.len(), 8, "64 seeds find all subsets of three writes");
    // The loss of a later write uncovers the earlier one.
    file.write_at(b"A", 0, CLASS).unwrap();
    check(CrashChoice::DropOne(3), b"a.b.c.");
    check(CrashChoice::DropOne(0), b"A.b.c.");
    file.sync_data(CLASS).unwrap();
    check(CrashChoice::SyncedOnly, b"A.b.c.");
}

#[test]
fn a_lost_write_before_a_kept_one_reads_as_zeros() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"12");
    file.write_at(b"34", 2, CLASS).unwrap();
    file.write_at(b"56", 4, CLASS).unwrap();
    assert_eq!(after(&vfs, CrashChoice::DropOne(0), "f").unwrap(), b"12\x00\x0056");
    assert_eq!(after(&vfs, CrashChoice::DropOne(1), "f").unwrap(), b"1234");
}

#[test]
fn the_last_write_is_torn_between_sectors_of_the_file() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", &[b'.'; 1000]);
    file.write_at(b"first", 0, CLASS).unwrap();
    // From the middle of the second sector to the middle of the fourth.
    file.write_at(&[b'x'; 1000], 700, CLASS).unwrap();
    let check = |choice, end: usize, written: Range<usize>| {
        let found = after(&vfs, choice, "f").unwrap();
        let mut expected = vec![b'.'; 1000];
        expected[..5].copy_from_slice(b"first");
        expected.resize(end, 0);
        expected[written].fill(b'x');
        assert_eq!(found, expected, "{choice:?}");
    };
    check(CrashChoice::TornLast { bytes: 0 }, 1000, 700..700);
    check(CrashChoice::TornLast { bytes: 512 }, 1024, 700..1024);
    check(CrashChoice::TornLast { bytes: 1024 }, 1536, 700..1536);
    check(CrashChoice::TornLast { bytes: 1536 }, 1700, 700..1700);
    check(CrashChoice::TornLastTail { bytes: 512 }, 1700, 1024..1700);
    check(CrashChoice::TornLastTail { bytes: 2048 }, 1000, 700..700);
    let torn = vfs.choices(0).into_iter().filter(|c| matches!(c, CrashChoice::TornLast { .. }));
    let expected = [512, 1024].map(|bytes| CrashChoice::TornLast { bytes });
    assert_eq!(torn.collect::<Vec<_>>(), expected);
}

#[test]
fn sectors_survive_in_any_combination_and_whole() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", &[b'.'; 1536]);
    file.write_at(&[b'x'; 1536], 0, CLASS).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        let found = after(&vfs, CrashChoice::Sectors(seed), "f").unwrap();
        assert!(found.chunks(512).all(|sector| sector.iter().all(|&byte| byte == sector[0])));
        seen.insert(found);
    }
    assert_eq!(seen.len(), 8);
}

#[test]
fn a_file_may_grow_without_its_data() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"12");
    file.write_at(b"34", 2, CLASS).unwrap();
    file.write_at(b"56", 4, CLASS).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SizeExtendedZero(1), "f").unwrap(), b"1234\0\0");
    assert_eq!(after(&vfs, CrashChoice::SizeExtendedZero(0), "f").unwrap(), b"12\x00\x0056");
    // Where the file was long enough already, nothing of the write is left.
    file.write_at(b"xx", 0, CLASS).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SizeExtendedZero(2), "f").unwrap(), b"123456");
}

#[test]
fn a_hole_is_done_undone_or_half_done() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", &[b'x'; 16_384]);
    file.punch_hole(4096, 8192, CLASS).unwrap();
    let check = |choice, hole: Range<usize>| {
        let mut expected = vec![b'x'; 16_384];
        expected[hole].fill(0);
        assert_eq!(after(&vfs, choice, "f").unwrap(), expected, "{choice:?}");
    };
    check(CrashChoice::Everything, 4096..12_288);
    check(CrashChoice::DropOne(0), 0..0);
    check(CrashChoice::HalfPunch(0), 4096..8192);
    check(CrashChoice::HalfPunchTail(0), 8192..12_288);
    assert_eq!(vfs.used_bytes(), 8192);
    assert_eq!(vfs.crash_image(CrashChoice::SyncedOnly).used_bytes(), 16_384);
}

#[test]
fn a_truncation_survives_or_not() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"123456");
    file.truncate(2).unwrap();
    file.truncate(4).unwrap();
    assert_eq!(after(&vfs, CrashChoice::Everything, "f").unwrap(), b"12\0\0");
    assert_eq!(after(&vfs, CrashChoice::KeepOne(0), "f").unwrap(), b"12");
    assert_eq!(after(&vfs, CrashChoice::KeepOne(1), "f").unwrap(), b"1234");
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "f").unwrap(), b"123456");
}

#[test]
fn a_rename_is_one_change_and_pending_until_the_directory_is_synced() {
    let vfs = MemVfs::new();
    durable(&vfs, "CURRENT", b"old");
    let file = create(&vfs, "tmp");
    file.write_at(b"new", 0, CLASS).unwrap();
    file.sync_data(CLASS).unwrap();
    vfs.rename(path("tmp"), path("CURRENT")).unwrap();
    let seen = |choice| {
        let image = vfs.crash_image(choice);
        (image.contents(path("CURRENT")).unwrap(), names(&image, "").len())
    };
    assert_eq!(seen(CrashChoice::SyncedOnly), (b"old".to_vec(), 1));
    assert_eq!(seen(CrashChoice::Prefix(1)), (b"old".to_vec(), 2), "created, not renamed");
    assert_eq!(seen(CrashChoice::KeepOne(1)), (b"new".to_vec(), 1), "renamed without a creation");
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(seen(CrashChoice::SyncedOnly), (b"new".to_vec(), 1));
}

#[test]
fn a_removed_file_may_come_back_with_its_contents() {
    let vfs = MemVfs::new();
    drop(durable(&vfs, "f", b"data"));
    vfs.remove(path("f")).unwrap();
    assert!(!vfs.exists(path("f")).unwrap());
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "f").unwrap(), b"data");
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "f"), None);
    assert_eq!(lock(&vfs.live).state.files().count(), 0, "the file is unreachable");
}

#[test]
fn an_unlinked_file_lives_while_it_is_open() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"data");
    vfs.remove(path("f")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    file.write_at(b"more", 4, CLASS).unwrap();
    let mut buffer = [0; 8];
    file.read_exact_at(&mut buffer, 0, CLASS).unwrap();
    assert_eq!(&buffer, b"datamore");
    assert_eq!(vfs.used_bytes(), 4096);
    assert_eq!(vfs.pending(), vec![], "no power loss can bring it back");
    drop(file);
    assert_eq!(vfs.used_bytes(), 0);
    assert_eq!(lock(&vfs.live).state.files().count(), 0);
}

#[test]
fn hard_links_share_contents_and_what_is_pending() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "a", b"data");
    vfs.create_dir_all(path("checkpoint")).unwrap();
    vfs.hard_link(path("a"), path("checkpoint/a")).unwrap();
    file.write_at(b"D", 0, CLASS).unwrap();
    assert_eq!(vfs.contents(path("checkpoint/a")).unwrap(), b"Data");
    vfs.sync_dir(path("checkpoint")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "checkpoint/a"), None, "parent not synced");
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "checkpoint/a").unwrap(), b"data");
    vfs.remove(path("a")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    file.sync_data(CLASS).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "checkpoint/a").unwrap(), b"Data");
}

#[test]
fn a_rename_between_directories_is_never_half_done() {
    let vfs = MemVfs::new();
    vfs.create_dir_all(path("x")).unwrap();
    vfs.create_dir_all(path("y")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    drop(create(&vfs, "x/f"));
    vfs.rename(path("x/f"), path("y/f")).unwrap();
    // One sync suffices for both sides, and for the creation before.
    vfs.sync_dir(path("y")).unwrap();
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    assert_eq!((names(&image, "x").len(), names(&image, "y").len()), (0, 1));
    assert_eq!(vfs.pending(), vec![]);
    vfs.rename(path("y"), path("z")).unwrap();
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    assert_eq!(names(&image, ""), ["x", "y"]);
    let image = vfs.crash_image(CrashChoice::Everything);
    assert_eq!((names(&image, ""), names(&image, "z").len()), (vec!["x".into(), "z".into()], 1));
}

#[test]
fn a_forgotten_directory_takes_what_is_pending_with_it() {
    let vfs = MemVfs::new();
    vfs.create_dir_all(path("d")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    drop(durable(&vfs, "d/f", b"data"));
    vfs.remove(path("d/f")).unwrap();
    vfs.remove_dir(path("d")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "d/f").unwrap(), b"data");
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(vfs.pending(), vec![]);
    assert!(names(&vfs.crash_image(CrashChoice::Everything), "").is_empty());
}

#[test]
fn a_clone_is_pending_as_a_whole() {
    let vfs = MemVfs::new();
    drop(durable(&vfs, "a", b"data"));
    let refused = vfs.clone_file(path("a"), path("b")).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
    vfs.set_clones_supported(true);
    vfs.clone_file(path("a"), path("b")).unwrap();
    assert_eq!(vfs.contents(path("b")).unwrap(), b"data");
    assert_eq!(after(&vfs, CrashChoice::Prefix(1), "b").unwrap(), b"");
    assert_eq!(after(&vfs, CrashChoice::Everything, "b").unwrap(), b"data");
    vfs.open(path("b"), OpenOptions::READ).unwrap().sync_data(CLASS).unwrap();
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "b").unwrap(), b"data");
}

#[test]
fn a_forgotten_directory_takes_those_with_it_that_were_only_pending_in_it() {
    let vfs = MemVfs::new();
    vfs.create_dir_all(path("d/e")).unwrap();
    drop(create(&vfs, "d/e/f"));
    vfs.remove(path("d/e/f")).unwrap();
    vfs.remove_dir(path("d/e")).unwrap();
    vfs.remove_dir(path("d")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(vfs.pending(), vec![]);
    assert_eq!(lock(&vfs.live).state.files().count(), 0);
}

#[test]
fn pending_changes_vanish_with_a_directory_that_another_replaces() {
    let vfs = MemVfs::new();
    vfs.create_dir_all(path("new")).unwrap();
    vfs.create_dir_all(path("old")).unwrap();
    create(&vfs, "old/f");
    vfs.remove(path("old/f")).unwrap();
    vfs.rename(path("new"), path("old")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(vfs.pending(), vec![]);
}

// --- Failed syncs and breaches ---

#[test]
fn no_later_sync_saves_changes_that_a_failed_sync_lost() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"....");
    file.write_at(b"a", 0, CLASS).unwrap();
    vfs.fail_next_sync(path("f")).unwrap();
    assert!(file.sync_data(CLASS).is_err());
    assert!(breaches(&vfs, || drop(file.sync_data(CLASS))), "a second sync");
    assert!(breaches(&vfs, || drop(file.write_at(b"b", 1, CLASS))), "a write");
    assert!(breaches(&vfs, || drop(file.truncate(0))), "a truncation");
    // A sync through another handle saves only later changes.
    let write = OpenOptions { create_new: false, ..OpenOptions::CREATE };
    let other = vfs.open(path("f"), write).unwrap();
    other.write_at(b"b", 1, CLASS).unwrap();
    other.sync_data(CLASS).unwrap();
    assert_eq!(after(&vfs, CrashChoice::SyncedOnly, "f").unwrap(), b".b..");
    assert_eq!(after(&vfs, CrashChoice::Everything, "f").unwrap(), b"ab..");
    let mut buffer = [0; 4];
    file.read_exact_at(&mut buffer, 0, CLASS).unwrap();
    assert_eq!(&buffer, b"ab..", "what was lost still reads");
}

#[test]
fn a_guard_is_asked_before_bytes_or_names_go() {
    let vfs = MemVfs::new();
    let (f, g) = (durable(&vfs, "f", &[b'x'; 16_384]), durable(&vfs, "g", b"x"));
    // A guard's ranges are protected, and the guard may look at the file system.
    vfs.set_guard(Some(Guard::new(|vfs, _| {
        let late = vfs.taken().punches > 0;
        let range = if late { 0..4096 } else { 4096..8192 };
        let ranges = [("f", range), ("not there", 0..1)];
        let ranges = ranges.into_iter().map(|(path, range)| (PathBuf::from(path), vec![range]));
        vec![Arc::new(ranges.collect())]
    })));
    f.punch_hole(0, 4096, CLASS).unwrap();
    assert!(breaches(&vfs, || drop(f.punch_hole(0, 1, CLASS))), "it is asked each time");
    f.punch_hole(4096, 4096, CLASS).unwrap();
    assert!(breaches(&vfs, || drop(f.truncate(100))));
    assert!(breaches(&vfs, || drop(vfs.remove(path("f")))));
    assert!(breaches(&vfs, || drop(vfs.rename(path("g"), path("f")))));
    vfs.remove(path("g")).unwrap();
    drop(g);
    assert_eq!(vfs.taken(), Taken { punches: 3, cuts: 1, names: 2 });
    assert_eq!(vfs.open_handles(), (1, 0));
    drop(f);
    assert_eq!(vfs.open_handles(), (0, 0));
    vfs.set_guard(None);
    vfs.remove(path("f")).unwrap();
}

#[test]
fn a_file_says_how_many_names_it_has() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"x");
    vfs.hard_link(path("f"), path("g")).unwrap();
    assert_eq!(file.links().unwrap(), 2);
    vfs.remove(path("f")).unwrap();
    assert_eq!(file.links().unwrap(), 1);
}

#[test]
fn protected_bytes_can_not_be_taken_away() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", &[1; 16_384]);
    vfs.protect(path("f"), 4096..8192).unwrap();
    assert!(breaches(&vfs, || drop(file.punch_hole(0, 4097, CLASS))));
    assert!(breaches(&vfs, || drop(file.punch_hole(8191, 1, CLASS))));
    assert!(breaches(&vfs, || drop(file.write_at(b"x", 5000, CLASS))));
    assert!(breaches(&vfs, || drop(file.truncate(8191))));
    assert!(breaches(&vfs, || drop(vfs.remove(path("f")))));
    drop(create(&vfs, "over"));
    assert!(breaches(&vfs, || drop(vfs.rename(path("over"), path("f")))));
    assert_eq!(vfs.contents(path("f")).unwrap(), [1; 16_384]);

    assert!(!breaches(&vfs, || file.punch_hole(0, 4096, CLASS).unwrap()));
    assert!(!breaches(&vfs, || file.punch_hole(8192, 8192, CLASS).unwrap()));
    // A second name is protected in the same way; the first name may go.
    vfs.hard_link(path("f"), path("g")).unwrap();
    assert!(!breaches(&vfs, || vfs.remove(path("f")).unwrap()));
    assert!(breaches(&vfs, || drop(vfs.remove(path("g")))));
    vfs.set_protected(path("g"), vec![]).unwrap();
    assert!(!breaches(&vfs, || vfs.remove(path("g")).unwrap()));
}

#[test]
fn a_short_read_leaves_garbage_behind_it() {
    let vfs = MemVfs::new();
    let file = durable(&vfs, "f", b"data");
    let mut buffer = [0; 8];
    assert_eq!(file.read_at(&mut buffer, 2, CLASS).unwrap(), 2);
    assert_eq!(&buffer[..2], b"ta");
    assert_eq!(&buffer[2..], [GARBAGE; 6]);
}

#[test]
fn directories_are_real() {
    let vfs = MemVfs::new();
    let missing = vfs.open(path("no/f"), OpenOptions::CREATE).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert_eq!(vfs.sync_dir(path("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(vfs.list(path("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
    vfs.create_dir_all(path("/a/b")).unwrap();
    drop(create(&vfs, "/a/b/f"));
    assert_eq!(names(&vfs, "/a/./b"), ["f"]);
    let again = vfs.open(path("a/b/f"), OpenOptions::CREATE).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn a_lock_is_held_until_dropped_and_not_across_a_crash() {
    let vfs = MemVfs::new();
    let held = vfs.lock(path("LOCK")).unwrap();
    assert_eq!(vfs.lock(path("LOCK")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    vfs.crash_image(CrashChoice::Everything).lock(path("LOCK")).unwrap();
    drop(held);
    vfs.lock(path("LOCK")).unwrap();
}

#[test]
fn a_full_disk_takes_what_fits_and_refuses_the_rest() {
    let vfs = MemVfs::new();
    vfs.set_capacity(Some(3 * 4096));
    let file = create(&vfs, "f");
    assert_eq!(vfs.free_space(path("")).unwrap(), 3 * 4096);
    file.write_at(&[1; 100], 4000, CLASS).unwrap();
    assert_eq!(vfs.free_space(path("")).unwrap(), 4096);
    let full = |result: io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    };
    full(file.preallocate(0, 4 * 4096));
    full(file.write_at(&[2; 8192], 4100, CLASS));
    assert_eq!(file.len().unwrap(), 3 * 4096, "what fitted was written");
    full(create(&vfs, "g").write_at(&[3], 0, CLASS));
    // An overwrite needs no space, and a hole frees some.
    file.write_at(&[4; 4096], 4096, CLASS).unwrap();
    file.punch_hole(0, 4096, CLASS).unwrap();
    file.write_at(&[5], 3 * 4096, CLASS).unwrap();
    vfs.set_capacity(None);
    file.write_at(&[6; 100_000], 0, CLASS).unwrap();
}

// --- Recording ---

#[test]
fn every_moment_of_a_recording_can_be_made_again_in_any_order() {
    let vfs = MemVfs::new();
    drop(durable(&vfs, "before", b"here already"));
    let recording = vfs.record();
    let start = vfs.operations();
    let mut moments = vec![vfs.fingerprint()];
    let file = create(&vfs, "f");
    moments.push(vfs.fingerprint());
    for n in 0..20u64 {
        file.write_at(&n.to_le_bytes(), n * 700, CLASS).unwrap();
        moments.push(vfs.fingerprint());
    }
    file.sync_data(CLASS).unwrap();
    moments.push(vfs.fingerprint());
    assert_eq!(recording.len() as u64, vfs.operations() - start);
    assert_eq!(recording.describe(0).unwrap(), "create f (file 2)");
    for n in (0..moments.len()).chain([3, 17, 0, 22]) {
        let image = recording.image_at(n, CrashChoice::Everything);
        assert_eq!(image.fingerprint(), moments[n], "after {n} operations");
        assert!(image.exists(path("before")).unwrap());
    }
    assert_eq!(recording.pending_at(3).len(), 3);
    assert_eq!(recording.pending_at(22).len(), 1, "only the name is left after the sync");
    assert_eq!(recording.choices_at(0, 9), [CrashChoice::SyncedOnly]);
}

#[test]
fn the_choices_cover_every_subset_or_every_neighbour() {
    let vfs = MemVfs::new();
    let file = create(&vfs, "f");
    file.write_at(b"1", 0, CLASS).unwrap();
    file.punch_hole(0, 1, CLASS).unwrap();
    let few = vfs.choices(5);
    assert_eq!(few.iter().filter(|c| matches!(c, CrashChoice::Mask(_))).count(), 6);
    assert!(few.contains(&CrashChoice::SizeExtendedZero(1)));
    assert!(few.contains(&CrashChoice::HalfPunch(2)));
    assert!(few.contains(&CrashChoice::HalfPunchTail(2)));
    for n in 0..17 {
        file.write_at(b"1", n * 10, CLASS).unwrap();
    }
    let many = vfs.choices(5);
    for n in 0..20 {
        assert!(many.contains(&CrashChoice::DropOne(n)) && many.contains(&CrashChoice::KeepOne(n)));
    }
    assert!(many.contains(&CrashChoice::Subset(4)) && many.contains(&CrashChoice::Sectors(4)));
}
