//! What was taken is given back: by a database at rest, in its directory, and by its file system
//! once it is closed. By the process, see `process.rs`.
//!
//! A suite calls [`end`] with a database that it is done with. Where one part of it cannot hold,
//! after faults for instance, it calls the others by themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::Db;
use sateen::vfs::{MemVfs, PathsVfs, Vfs};

use crate::support::common::assert_sound;
use crate::support::extents::{named, wasted};

/// What a file of tables may take beyond them: nothing.
pub(crate) const EXACTLY: u64 = 0;
/// The same after a crash: a file that was found at open is not looked at for 64 KiB, and by what
/// it takes on disk, of which a page or two of its own may be holes.
pub(crate) const AFTER_A_CRASH: u64 = (64 << 10) + (8 << 10);

/// Brings `db` to rest and closes it: everything is given back. All snapshots, iterators and
/// column families' handles are gone already. `waste` is what each file of tables may take beyond
/// them.
pub(crate) fn end(db: Db, mem: &MemVfs, directory: &Path, waste: u64) {
    let options = db.options();
    let others = options.paths.iter().map(|path| path.directory.clone());
    let number = |name: &str| name.strip_suffix(".sat")?.parse().ok();
    let vfs = PathsVfs::new(Arc::new(mem.clone()), directory, others, number);
    // Where logs are kept for those who read them, nobody knows how many there are.
    let keeps_logs = options.wal_ttl_seconds > 0 || options.wal_size_limit_bytes > 0;
    bring_to_rest(&db);
    assert_at_rest(&db);
    assert_sound(&db);
    if !keeps_logs {
        assert_directory(&vfs, directory, options.wal_dir.as_deref(), waste);
    }
    db.close().unwrap();
    drop(db);
    assert_closed(mem);
}

/// Stores what is in memory, and does all background work there is.
pub(crate) fn bring_to_rest(db: &Db) {
    db.flush_all().unwrap();
    let mut steps = 0;
    while db.options().background_threads == 0 && db.step().unwrap() {
        steps += 1;
        assert!(steps < 1_000_000, "background work does not end");
    }
    db.wait_idle().unwrap();
}

/// No job, no slot, no reader, no pin, no buffer is left of those who worked and read.
pub(crate) fn assert_at_rest(db: &Db) {
    let held = db.held();
    let counts = [
        ("jobs", held.jobs),
        ("inputs of jobs", held.inputs),
        ("jobs given up", held.given_up),
        ("requests", held.requests),
        ("holds on files", held.holds),
        ("files made in advance", held.spare_files),
        ("tables that somebody still reads", held.retired_tables),
        ("readers", held.readers),
    ];
    for (what, count) in counts {
        assert_eq!(count, 0, "{what} at rest: {held:?}");
    }
    let metrics = db.metrics();
    // Others may read what they share.
    let shared = db.options().shared_block_cache.is_some();
    let bytes = [
        ("of buffers of jobs", metrics.memory.job_buffers),
        ("of blocks that readers hold", if shared { 0 } else { metrics.memory.pinned_blocks }),
        ("of files that nothing needs", metrics.obsolete_bytes),
        ("of memtables that wait", metrics.memory.immutable_memtables),
    ];
    for (what, bytes) in bytes {
        assert_eq!(bytes, 0, "bytes {what}, at rest: {:?}", metrics.memory);
    }
    let scheduler = &metrics.scheduler;
    assert_eq!(scheduler.paused_jobs, 0, "paused jobs, at rest");
    assert_eq!(metrics.snapshots, 0, "snapshots, at rest");
    assert_eq!((metrics.running_flushes, metrics.running_compactions), (0, 0), "at rest");
    assert!(metrics.stalls.iter().all(|stall| stall.waiting == 0), "writers that wait, at rest");
    // What is open is what is there.
    let files: BTreeSet<u64> = db.table_files().iter().map(|file| file.number).collect();
    let stale: Vec<_> = held.open_files.iter().filter(|file| !files.contains(file)).collect();
    assert!(stale.is_empty(), "open files that hold nothing: {stale:?} beside {files:?}");
    assert!(held.open_tables <= db.live_tables().len(), "open tables that are not there: {held:?}");
    if held.open_tables == 0 {
        assert_eq!(metrics.memory.indexes_and_filters, 0, "memory of tables that are not open");
    }
}

/// Every file of the directory is one that its manifest names, and what its files take is what its
/// tables do. The database is at rest, or closed.
pub(crate) fn assert_directory(
    vfs: &dyn Vfs,
    directory: &Path,
    wal_directory: Option<&Path>,
    waste: u64,
) {
    let named = named(vfs, directory);
    let (mut tables, mut logs, mut manifests) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut names = vfs.list(directory).unwrap();
    names.extend(wal_directory.into_iter().flat_map(|other| vfs.list(other).unwrap()));
    for name in names {
        let text = name.to_string_lossy().into_owned();
        match text.rsplit_once('.').map(|(_, extension)| extension) {
            Some("wal") => logs.push(text),
            Some("sat") => drop(tables.insert(directory.join(&name))),
            _ if text.starts_with("MANIFEST-") => manifests.push(text),
            _ => assert!(
                ["CURRENT", "LOCK", "OPTIONS", "DIRECTORIES", "DEVICE"].contains(&&*text),
                "what is {text}?"
            ),
        }
    }
    let expected: BTreeSet<PathBuf> = named.extents.keys().cloned().collect();
    assert_eq!(tables, expected, "the files that are there, and those that the manifest names");
    assert_eq!(manifests.len(), 1, "manifests: {manifests:?}");
    // The one in use, one made in advance, and one that the newest flush has just left.
    assert!(logs.len() <= 3, "logs that nothing needs: {logs:?}");
    let wasted = wasted(vfs, directory);
    let too_much = wasted.iter().find(|(_, bytes)| **bytes > waste);
    assert_eq!(too_much, None, "bytes that a file takes and its tables do not, of {wasted:?}");
}

/// Nobody has a file open any more, or holds a lock.
pub(crate) fn assert_closed(mem: &MemVfs) {
    assert_eq!(mem.open_handles(), (0, 0), "open handles and locks of a closed database");
    assert!(mem.breaches().is_empty(), "{:?}", mem.breaches());
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use sateen::ReadOptions;
    use sateen::vfs::OpenOptions;

    use super::*;
    use crate::support::common::{as_vfs, tiny};

    fn fails(what: impl FnOnce()) -> String {
        let failed = catch_unwind(AssertUnwindSafe(what)).expect_err("a leak is seen");
        crate::support::rel::said(failed.as_ref())
    }

    #[test]
    fn what_is_not_given_back_is_seen() {
        let vfs = MemVfs::new();
        let directory = Path::new("/db");
        let db = Db::open_with(as_vfs(&vfs), directory, tiny(), &[]).unwrap();
        let fill = || (0..200).for_each(|n| db.put(format!("key{n}"), [7; 100]).unwrap());
        fill();
        bring_to_rest(&db);
        assert_at_rest(&db);
        // A reader of what is there, and one of what is not any more.
        let mut iterator = db.cursor(&ReadOptions::default()).unwrap();
        iterator.seek_to_first();
        assert!(fails(|| assert_at_rest(&db)).contains("readers"));
        fill();
        bring_to_rest(&db);
        assert!(fails(|| assert_at_rest(&db)).contains("tables that somebody still reads"));
        drop(iterator);
        bring_to_rest(&db);
        assert_at_rest(&db);
        let snapshot = db.snapshot();
        assert!(fails(|| assert_at_rest(&db)).contains("snapshots"));
        drop(snapshot);
        db.disable_file_deletions();
        assert!(fails(|| assert_at_rest(&db)).contains("holds on files"));
        db.enable_file_deletions();
        db.put("key", "value").unwrap();
        db.wait_idle().unwrap();
        assert_at_rest(&db);
        // What lies about.
        let check = || assert_directory(&vfs, directory, None, EXACTLY);
        check();
        for stray in ["000099.sat", "MANIFEST-000099", "stray"] {
            let path = directory.join(stray);
            drop(vfs.open(&path, OpenOptions::CREATE).unwrap());
            fails(check);
            vfs.remove(&path).unwrap();
        }
        check();
        // What stays open.
        let handle = vfs.open(&directory.join("CURRENT"), OpenOptions::READ).unwrap();
        let again = vfs.clone();
        assert!(fails(move || end(db, &again, directory, EXACTLY)).contains("open handles"));
        drop(handle);
        assert_closed(&vfs);
    }

    #[test]
    fn bytes_that_no_table_has_are_seen() {
        let vfs = MemVfs::new();
        let directory = Path::new("/db");
        let mut options = tiny();
        options.column_family.memtable_bytes = 64 << 10;
        let db = Db::open_with(as_vfs(&vfs), directory, options, &[]).unwrap();
        (0..2000).for_each(|n| db.put(format!("key{n:05}"), [7; 100]).unwrap());
        bring_to_rest(&db);
        let family = db.default_column_family();
        let all = Default::default();
        family.compact_range(None, None, &all).unwrap();
        let image = vfs.crash_image(sateen::vfs::CrashChoice::Everything);
        (500..800).for_each(|n| db.put(format!("key{n:05}"), [8; 100]).unwrap());
        family.compact_range(Some(b"key00500"), Some(b"key00799"), &all).unwrap();
        drop(family);
        bring_to_rest(&db);
        assert_directory(&vfs, directory, None, EXACTLY);
        // A hole that was not punched.
        let holes = |file: &&sateen::metrics::TableFile| file.holes > 0;
        let files = db.table_files();
        let file = files.iter().find(holes).expect("something was given back in part");
        let path = directory.join(format!("{:06}.sat", file.number));
        let before = crate::support::extents::contents(&image, &path).unwrap();
        let after = crate::support::extents::contents(&vfs, &path).unwrap();
        let at = (0..after.len()).find(|at| after[*at] != before[*at]).unwrap();
        let handle = vfs.open(&path, OpenOptions::WRITE).unwrap();
        handle.write_at(&before[at..=at], at as u64, sateen::vfs::IoClass::Client).unwrap();
        drop(handle);
        assert!(fails(|| assert_directory(&vfs, directory, None, EXACTLY)).contains("4096"));
        db.close().unwrap();
    }
}
