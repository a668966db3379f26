//! Scenarios of checks and repairs: what they read and move when a database is damaged as well.

use std::path::Path;

use sateen::vfs::{Fault, IoClass, OpenOptions, Vfs, VfsOperation};
use sateen::{check_with, destroy_with, repair_with};

use super::run::{Run, Start};
use super::scenarios::{closed, remove, repair, unclosed};

const WRITE: OpenOptions = OpenOptions::WRITE;

fn files(start: &Start, kind: &str) -> Vec<std::path::PathBuf> {
    let names = start.mem.list(Path::new("/db")).unwrap();
    let of_kind = names.iter().filter(|name| name.to_str().unwrap().ends_with(kind));
    of_kind.map(|name| Path::new("/db").join(name)).collect()
}

/// All is well: every byte is read once more.
pub(super) fn scrub(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, true)?;
    let report = run.insist(&db, |db| db.scrub(None))?;
    let well = report.is_sound();
    assert!(!well || report.tables > 0 && report.logs > 0, "{}: {report:?}", run.what);
    assert!(well || run.has_struck(), "{}: {report:?}", run.what);
    run.finish(db)
}

/// Options cannot be stored at first.
pub(super) fn options_are_not_stored(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.fail_once(Fault::Io, VfsOperation::Write, "OPTIONS");
    run.insist(&db, |db| db.set_options(&[("manifest_bytes_max", "3KiB")]))?;
    run.finish(db)
}

/// A page of every file of tables is a hole.
pub(super) fn with_holes() -> Start {
    let start = closed();
    for path in files(&start, ".sat") {
        let file = start.mem.open(&path, WRITE).unwrap();
        file.write_at(&[0; 4096], 4096, IoClass::Client).unwrap();
    }
    start
}

/// What is damaged is told, whatever else fails.
pub(super) fn check_damaged(run: &mut Run) -> Option<()> {
    run.fails_by_itself = true;
    let report =
        run.insist_alone_with(|vfs, options| check_with(vfs, "/db", options, &[], &mut |_, _| {}))?;
    assert!(!report.is_sound(), "{}: {report:?}", run.what);
    Some(())
}

/// Nothing is left but logs, the first of which has no header any more, and what is no file of
/// tables.
pub(super) fn logs_alone() -> Start {
    let start = unclosed();
    remove(&start, |name| match name {
        "000900.sat" => false,
        name => {
            ["MANIFEST", "CURRENT", "0"].iter().any(|begin| name.starts_with(begin))
                && !name.ends_with(".wal")
        }
    });
    let logs = files(&start, ".wal");
    assert!(logs.len() > 1, "{logs:?}");
    let file = start.mem.open(&logs[0], WRITE).unwrap();
    file.write_at(&[7; 16], 0, IoClass::Client).unwrap();
    start
}

/// Files cannot have second names.
pub(super) fn repair_without_links(run: &mut Run) -> Option<()> {
    run.fail_until_told(Fault::Unsupported, VfsOperation::HardLink, "/db");
    repair(run)
}

/// What is lost is told; what is left can be opened and is sound.
pub(super) fn repair_damaged(run: &mut Run) -> Option<()> {
    run.fails_by_itself = true;
    let report = run.insist_alone_with(|vfs, options| repair_with(vfs, "/db", options))?;
    // A repair that failed after it was done leaves the next one nothing to tell.
    assert!(!report.losses.is_empty() || run.has_struck(), "{}: {report:?}", run.what);
    if let Some((_, problems)) = run.after_repair() {
        run.assert_well(&problems);
    }
    Some(())
}

/// A repair has put files aside, and logs are in a directory of their own.
pub(super) fn with_lost() -> Start {
    let mut start = closed();
    start.mem.create_dir_all(Path::new("/db/lost")).unwrap();
    start.mem.create_dir_all(Path::new("/logs")).unwrap();
    for path in files(&start, ".sat") {
        let lost = Path::new("/db/lost").join(path.file_name().unwrap());
        start.mem.hard_link(&path, &lost).unwrap();
    }
    for path in files(&start, ".wal") {
        start.mem.rename(&path, &Path::new("/logs").join(path.file_name().unwrap())).unwrap();
    }
    start.options.wal_dir = Some("/logs".into());
    start
}

/// Nothing of the database is left, however often a call failed before.
pub(super) fn destroy(run: &mut Run) -> Option<()> {
    run.insist_alone_with(|vfs, options| destroy_with(vfs.as_ref(), "/db", options))?;
    let honest = run.is_honest();
    for directory in ["/db", "/db/lost", "/logs"] {
        let left = run.mem.list(Path::new(directory)).unwrap_or_default();
        assert!(left.is_empty() || !honest, "{}: {left:?} in {directory}", run.what);
    }
    Some(())
}
