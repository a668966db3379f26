//! What is done while calls fail: each scenario is short, and together they pass every call.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sateen::test_support::clock::{advance, virtual_time};
use sateen::vfs::{CrashChoice, Fault, IoClass, OpenOptions, Vfs, VfsOperation};
use sateen::{
    CompactRangeOptions, Db, Error, FlushOptions, Health, IngestOptions, LiveFilesOptions,
    LogLevel, Options, ReadOptions, SstFileWriter, WalMode, dump, repair_with,
};

use super::run::{MARK, OTHER, Run, Start, TAKEN_IN, open};
use super::{backups, damaged, directories, loads, remote, transactions};
use crate::support::common::{as_vfs, small, tiny};

pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) start: fn() -> Start,
    /// `None` if it was given up because of what is on the disk.
    pub(super) act: fn(&mut Run) -> Option<()>,
}

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "life", start: || Start::fresh(tiny()), act: life },
    Scenario { name: "logs", start: logs, act: life },
    Scenario { name: "values in logs", start: values_in_logs, act: life },
    Scenario { name: "values apart", start: values_apart, act: life },
    Scenario { name: "several directories", start: directories::some, act: life },
    Scenario { name: "own directory", start: directories::some, act: directories::one },
    Scenario { name: "directories gone", start: directories::closed, act: directories::destroy },
    Scenario { name: "kept logs", start: kept_logs, act: kept },
    Scenario { name: "a readable log", start: readable_log, act: life },
    Scenario { name: "recovery", start: unclosed, act: recovery },
    Scenario { name: "recovery that fails half way", start: unclosed, act: recovery_cut_short },
    Scenario { name: "copies", start: closed, act: copies },
    Scenario { name: "listed files", start: closed, act: listed },
    Scenario { name: "destroyed", start: damaged::with_lost, act: damaged::destroy },
    Scenario { name: "files from outside", start: closed, act: from_outside },
    Scenario { name: "a load", start: closed, act: loads::load },
    Scenario { name: "beside", start: unclosed, act: beside },
    Scenario { name: "looking on", start: unclosed, act: looking_on },
    Scenario { name: "repair", start: without_manifest, act: repair },
    Scenario { name: "nothing to store", start: values_in_logs, act: nothing_to_store },
    Scenario { name: "cut short", start: closed, act: cut_short },
    Scenario { name: "a dead catalogue", start: closed, act: dead_catalogue },
    Scenario { name: "a dead log", start: logs, act: dead_log },
    Scenario { name: "a full disk", start: closed, act: full_disk },
    Scenario { name: "dead bytes", start: dead_bytes, act: recovery },
    Scenario { name: "a large flush", start: loads::large_memtables, act: loads::large_flush },
    Scenario { name: "what is no database", start: || Start::fresh(tiny()), act: no_database },
    Scenario { name: "a device", start: device, act: device_is_known },
    Scenario { name: "scrub", start: closed, act: damaged::scrub },
    Scenario {
        name: "options that are not stored",
        start: closed,
        act: damaged::options_are_not_stored,
    },
    Scenario { name: "holes", start: damaged::with_holes, act: damaged::check_damaged },
    Scenario { name: "no manifest", start: without_manifest, act: damaged::check_damaged },
    Scenario { name: "no links", start: without_manifest, act: damaged::repair_without_links },
    Scenario { name: "backups", start: closed, act: backups::made },
    Scenario { name: "backups of values apart", start: values_apart, act: backups::made },
    Scenario { name: "backups of values in logs", start: values_in_logs, act: backups::made },
    Scenario { name: "transactions", start: || Start::fresh(tiny()), act: transactions::commits },
    Scenario {
        name: "transactions in small logs",
        start: transactions::small_logs,
        act: transactions::commits,
    },
    Scenario {
        name: "other processes",
        start: || Start::fresh(tiny()),
        act: remote::life_elsewhere,
    },
    Scenario { name: "logs alone", start: damaged::logs_alone, act: damaged::repair_damaged },
];

/// Each write is synced, logs are elsewhere, and each change of the catalogue begins another.
fn logs() -> Start {
    let mut options = Options { wal: WalMode::SyncEachWrite, ..tiny() };
    options.wal_dir = Some(PathBuf::from("/logs"));
    options.manifest_bytes_max = 1;
    options.max_total_wal_bytes = 6 << 10;
    options.wal_bytes_per_sync = 1 << 10;
    Start::fresh(options)
}

fn values_in_logs() -> Start {
    Start::fresh(small("triad", 2 << 10))
}

fn values_apart() -> Start {
    let mut options = tiny();
    options.column_family.value_separation_bytes = 20;
    Start::fresh(options)
}

/// What happens is written to `LOG`, of which there are three files.
fn readable_log() -> Start {
    let mut options = tiny();
    options.log_level = LogLevel::Debug;
    // Each line begins a file.
    options.log_file_bytes_max = 1;
    options.log_files_max = 3;
    Start::fresh(options)
}

fn kept_logs() -> Start {
    let mut options = tiny();
    options.wal_size_limit_bytes = 8 << 10;
    Start::fresh(options)
}

/// What somebody left who was killed, with files that nobody needs.
pub(super) fn unclosed() -> Start {
    let mut start = Start::fresh(tiny());
    start.options.column_family.memtables_max = 6;
    let mut run = start.run("unclosed".to_owned(), None);
    let db = run.open().unwrap();
    for number in 1..=30 {
        run.commit(&db, number == 20).unwrap();
        if number == 12 {
            run.flush(&db).unwrap();
        }
        if number % 8 == 0 && number < 20 {
            run.steps(&db, 2).unwrap();
        }
        if number == 24 {
            let nobody_waits = FlushOptions { wait: false };
            db.flush_with(&nobody_waits).unwrap();
        }
    }
    let mem = run.mem.crash_image(CrashChoice::Everything);
    for name in ["000900.sat", "CURRENT.tmp", "OPTIONS.tmp", "DEVICE.tmp", "MANIFEST-000901"] {
        let file = mem.open(&Path::new("/db").join(name), OpenOptions::CREATE).unwrap();
        file.write_at(b"left behind", 0, IoClass::Client).unwrap();
    }
    let (states, durable) = run.into_states();
    Start { mem, states, durable, options: start.options }
}

pub(super) fn closed() -> Start {
    let start = unclosed();
    let mut run = start.run("closed".to_owned(), None);
    let db = run.open().unwrap();
    db.flush_all().unwrap();
    run.steps(&db, 4).unwrap();
    run.commit(&db, true).unwrap();
    db.close().unwrap();
    drop(db);
    let mem = run.mem.crash_image(CrashChoice::Everything);
    let (states, durable) = run.into_states();
    Start { mem, states, durable, options: start.options }
}

pub(super) fn without_manifest() -> Start {
    let start = closed();
    remove(&start, |name| name.starts_with("MANIFEST"));
    start
}

/// Removes files from what a scenario begins with.
pub(super) fn remove(start: &Start, is_meant: impl Fn(&str) -> bool) {
    for name in start.mem.list(Path::new("/db")).unwrap() {
        if is_meant(name.to_str().unwrap()) {
            start.mem.remove(&Path::new("/db").join(name)).unwrap();
        }
    }
}

fn compact(db: &Db) -> Result<(), Error> {
    let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
    for family in [db.default_column_family(), db.column_family(OTHER).unwrap()] {
        family.compact_range(None, None, &options)?;
    }
    Ok(())
}

pub(super) fn life(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    for number in 1..=36 {
        run.commit(&db, number % 7 == 0)?;
        if number % 3 == 0 {
            run.steps(&db, 1)?;
        }
        match number {
            10 => run.flush(&db)?,
            20 => run.insist(&db, compact)?,
            24 => doom(run, &db)?,
            28 => run.insist(&db, |db| db.set_options(&[("manifest_bytes_max", "2KiB")]))?,
            32 => run.insist(&db, Db::sync_wal)?,
            _ => {}
        }
    }
    run.close(db);
    let db = run.open()?;
    // Somebody reads in another process.
    let reader = run.mem.mark(Path::new("/db/LOCK"), 1).unwrap();
    for number in 1..=12 {
        run.commit(&db, number % 5 == 0)?;
        run.steps(&db, 2)?;
    }
    run.insist(&db, compact)?;
    drop(reader);
    run.finish(db)
}

/// A column family comes and goes.
fn doom(run: &mut Run, db: &Db) -> Option<()> {
    let doomed = run.insist(db, |db| match db.column_family("doomed") {
        Some(doomed) => Ok(doomed),
        None => db.create_column_family("doomed", db.options().column_family),
    })?;
    run.insist(db, |_| doomed.put("key", "value"))?;
    run.insist(db, |_| doomed.flush())?;
    run.insist(db, |db| match db.column_family("doomed") {
        Some(doomed) => db.drop_column_family(&doomed),
        None => Ok(()),
    })
}

/// Reads the log from its beginning, as far as it is kept.
fn read_log(db: &Db) -> Result<(), Error> {
    let mut updates = db.updates_available_since(0)?;
    while updates.valid() {
        updates.next();
    }
    updates.status()
}

fn kept(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    for number in 1..=40 {
        run.commit(&db, number % 7 == 0)?;
        run.steps(&db, 1)?;
        if number % 10 == 0 {
            run.flush(&db)?;
            run.steps(&db, 4)?;
            run.insist(&db, read_log)?;
        }
    }
    run.close(db);
    let db = run.open()?;
    run.insist(&db, read_log)?;
    run.commit(&db, true)?;
    run.finish(db)
}

fn recovery(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, false)?;
    run.commit(&db, true)?;
    run.steps(&db, 4)?;
    run.finish(db)
}

/// The tables of the first column family are removed when those of the second cannot be written.
fn recovery_cut_short(run: &mut Run) -> Option<()> {
    run.fail_nth(Fault::NoSpace, VfsOperation::Create, ".sat", 2);
    recovery(run)
}

fn copies(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    for (name, clones) in [("/link", false), ("/clone", true)] {
        run.mem.set_clones_supported(clones);
        run.commit(&db, false)?;
        // What failed has left nothing that is in the way.
        run.insist(&db, |db| db.checkpoint(name))?;
        run.look_at_copy(name, run.done);
    }
    // Two names of one file: nothing of it is given back.
    run.insist(&db, compact)?;
    run.steps(&db, 4)?;
    run.look_at_copy("/link", run.done - 1);
    run.finish(db)
}

fn listed(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, true)?;
    let files = run.insist(&db, |db| db.live_files(&LiveFilesOptions::default()))?;
    assert!(files.len() >= 4, "{}: {files:?}", run.what);
    let mut tries = 0;
    let exported = run.insist(&db, |db| {
        tries += 1;
        db.default_column_family().export(format!("/export{tries}"))
    })?;
    assert_eq!(exported.len(), 1, "{}: {exported:?}", run.what);
    run.finish(db)
}

fn from_outside(run: &mut Run) -> Option<()> {
    run.mem.create_dir_all(Path::new("/outside")).unwrap();
    let db = run.open()?;
    let mut files = 0;
    for move_files in [false, true] {
        let (vfs, options): (Arc<dyn Vfs>, _) = (run.vfs(), run.options.clone());
        let key = |nth: u32| [TAKEN_IN, &[b'0' + nth as u8, b'0' + u8::from(move_files)]].concat();
        run.insist(&db, |db| {
            files += 1;
            let path = format!("/outside/{files}.sst");
            let mut writer = SstFileWriter::create_with(vfs.clone(), &path, &options)?;
            for nth in 0..8 {
                writer.put(key(nth), [b'v'; 300])?;
            }
            writer.finish()?;
            let how = IngestOptions { move_files, ..IngestOptions::default() };
            db.ingest(&[path], &how)
        })?;
        for nth in 0..8 {
            let found = run.insist(&db, |db| db.get(key(nth)))?;
            assert_eq!(found.as_deref(), Some(&[b'v'; 300][..]), "{}: {nth}", run.what);
        }
    }
    run.commit(&db, true)?;
    run.finish(db)
}

/// Somebody else reads along; only that one's disk fails.
fn beside(run: &mut Run) -> Option<()> {
    let primary = open(&as_vfs(&run.mem), &run.options).unwrap();
    let family = run.options.column_family.clone();
    let secondary = run.insist_alone_with(|vfs, options| {
        let families = [(OTHER, family.clone())];
        Db::open_secondary_with(vfs, "/db", options.clone(), &families)
    })?;
    for number in 0..24 {
        run.commit(&primary, false)?;
        if number % 6 == 5 {
            // What is not read before it is gone cannot be read then.
            run.insist_alone(|| secondary.try_catch_up_with_primary())?;
            run.commit(&primary, false)?;
            compact(&primary).unwrap();
            while primary.step().unwrap() {}
            run.look_behind(&secondary);
        }
        if number % 4 == 1 {
            run.insist_alone(|| secondary.try_catch_up_with_primary())?;
            run.look_beside(&secondary)?;
        }
    }
    // What it has not read yet is damaged: is it told that it is behind?
    for _ in 0..6 {
        run.commit(&primary, false)?;
    }
    primary.flush_all().unwrap();
    run.insist_alone(|| secondary.try_catch_up_with_primary())?;
    run.damage_tables();
    run.look_behind(&secondary);
    Some(())
}

/// Everything that reads files without a database.
fn looking_on(run: &mut Run) -> Option<()> {
    run.insist_alone_with(|vfs, _| Db::list_column_families_with(vfs.as_ref(), "/db"))?;
    let mut names = run.mem.list(Path::new("/db")).unwrap();
    names.sort();
    for name in names.iter().filter(|name| !name.to_str().unwrap().contains("90")) {
        let path = Path::new("/db").join(name);
        let text = name.to_str().unwrap();
        run.insist_alone_with(|vfs, _| {
            let go_on = ControlFlow::Continue(());
            if text.ends_with(".wal") {
                dump::wal_with(vfs.as_ref(), &path, &mut |_| go_on)
            } else if text.ends_with(".sat") {
                dump::table_with(vfs.as_ref(), &path, &mut |_| go_on)
            } else if text.starts_with("MANIFEST") {
                dump::manifest_with(vfs.as_ref(), &path, &mut |_| go_on)
            } else {
                Ok(())
            }
        })?;
    }
    let db =
        run.insist_alone_with(|vfs, options| Db::open_read_only_with(vfs, "/db", options.clone()))?;
    run.insist_alone(|| db.get(MARK))?;
    run.insist_alone(|| {
        let mut iter = db.cursor(&ReadOptions::default())?;
        iter.seek_to_last();
        while iter.valid() {
            iter.prev();
        }
        iter.status()
    })?;
    Some(())
}

pub(super) fn repair(run: &mut Run) -> Option<()> {
    let report = run.insist_alone_with(|vfs, options| repair_with(vfs, "/db", options))?;
    run.look_at_repaired(&report)
}

/// Memtables of which nothing is stored need no table, and no log for their values: all stays in
/// memory, or was deleted.
fn nothing_to_store(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    let family = db.default_column_family();
    run.insist(&db, |_| family.set_options(&[("memtable_hot_part", "0.5")]))?;
    // Not flushed on demand, which would store all.
    for nth in 0..60_u8 {
        run.insist(&db, |db| db.put([TAKEN_IN, b"hot"].concat(), [nth; 100]))?;
        run.steps(&db, 1)?;
    }
    run.flush(&db)?;
    for nth in 0..4_u8 {
        run.insist(&db, |db| db.put([TAKEN_IN, &[nth]].concat(), [nth; 100]))?;
    }
    run.insist(&db, |db| db.delete_range(TAKEN_IN, b"~io"))?;
    run.flush(&db)?;
    run.finish(db)
}

/// Work that fails half way is taken back.
fn cut_short(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, false)?;
    run.fail_once(Fault::Io, VfsOperation::SyncDir, "/copy");
    let mut tries = 0;
    run.insist(&db, |db| {
        // What is left of one that failed may be in the way of another.
        tries += 1;
        db.checkpoint(format!("/copy{tries}"))
    })?;
    run.fail_once(Fault::Io, VfsOperation::Sync, ".sat");
    run.flush(&db)?;
    run.insist(&db, |db| db.set_options(&[("manifest_bytes_max", "1")]))?;
    for (on, path, nth) in [
        (VfsOperation::Write, "MANIFEST", 1),
        (VfsOperation::Sync, "MANIFEST", 1),
        (VfsOperation::Sync, "MANIFEST", 2),
        (VfsOperation::Sync, "MANIFEST", 3),
        (VfsOperation::Create, "CURRENT", 1),
    ] {
        run.fail_nth(Fault::Io, on, path, nth);
        for _ in 0..2 {
            run.commit(&db, false)?;
            run.flush(&db)?;
            run.steps(&db, 4)?;
        }
    }
    // The second is that of the names, once the manifest itself is whole.
    for nth in 2..5 {
        run.fail_nth(Fault::Io, VfsOperation::SyncDir, "/db", nth);
        run.commit(&db, false)?;
        run.flush(&db)?;
        run.steps(&db, 6)?;
    }
    run.finish(db)
}

/// An edit fails: the files that it was about are removed when there is another manifest.
fn dead_catalogue(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    for _ in 0..2 {
        run.commit(&db, false)?;
        run.fail_once(Fault::Io, VfsOperation::Write, "MANIFEST");
        run.flush(&db)?;
        run.steps(&db, 4)?;
    }
    run.finish(db)
}

/// A log fails, and so does what is tried then.
fn dead_log(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    for (fault, on, path) in [
        (Fault::NoSpace, VfsOperation::Preallocate, ".wal"),
        (Fault::Io, VfsOperation::Preallocate, ".wal"),
        (Fault::Io, VfsOperation::SyncDir, "/logs"),
    ] {
        run.fail_once(fault, on, path);
        for _ in 0..3 {
            run.commit(&db, true)?;
            run.flush(&db)?;
            run.steps(&db, 4)?;
        }
    }
    run.commit(&db, true)?;
    run.fail_once(Fault::Io, VfsOperation::Write, ".wal");
    run.fail_once(Fault::Io, VfsOperation::Write, ".sat");
    for _ in 0..2 {
        run.commit(&db, true)?;
    }
    run.finish(db)
}

/// The database sees by itself that there is space again.
fn full_disk(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, true)?;
    let full = run.fail_until_told(Fault::NoSpace, VfsOperation::Write, ".sat");
    if let Err(error) = db.flush_all() {
        run.told(&error);
    }
    // A lying device may have been found out before it was full.
    assert!(
        db.health().0 == Health::Degraded || !run.is_honest(),
        "{}: {:?}",
        run.what,
        db.health()
    );
    let now = || virtual_time().expect("scenarios have virtual time");
    let begun = now();
    while db.health().0 != Health::Ok && now() < begun + Duration::from_secs(20) {
        run.steps(&db, 1)?;
        advance(Duration::from_millis(20));
        // It is looked for space after half a second.
        if now() > begun + Duration::from_millis(700) {
            run.faulty.remove_rule(full);
            run.mend();
        }
    }
    run.faulty.remove_rule(full);
    run.commit(&db, true)?;
    run.finish(db)
}

/// A file most of which nobody needs, as somebody left it who was killed.
fn dead_bytes() -> Start {
    let mut start = Start::fresh(tiny());
    start.options.column_family.memtable_bytes = 1 << 20;
    let mut run = start.run("dead bytes".to_owned(), None);
    let db = run.open().unwrap();
    for nth in 0..400_u32 {
        let key = [TAKEN_IN, &nth.to_be_bytes()].concat();
        db.put(key, vec![nth as u8; 500]).unwrap();
    }
    run.commit(&db, true).unwrap();
    compact(&db).unwrap();
    let mut pinned = db.cursor(&ReadOptions::default()).unwrap();
    pinned.seek_to_first();
    let most = [TAKEN_IN, &350_u32.to_be_bytes()].concat();
    db.delete_files_in_range(Some(TAKEN_IN), Some(&most)).unwrap();
    let mem = run.mem.crash_image(CrashChoice::Everything);
    drop(pinned);
    let (states, durable) = run.into_states();
    Start { mem, states, durable, options: start.options }
}

/// Directories that are refused, each for its reason.
fn no_database(run: &mut Run) -> Option<()> {
    let refused = |opened: Result<Db, Error>| match opened {
        Ok(_) => panic!("there is no database"),
        Err(Error::IncompatibleDirectory { .. } | Error::Corruption { .. }) => Ok(()),
        Err(error) => Err(error),
    };
    let make = |run: &Run, name: &str, bytes: &[u8]| {
        let path = Path::new(name);
        run.mem.create_dir_all(path.parent().unwrap()).unwrap();
        let file = run.mem.open(path, OpenOptions::CREATE).unwrap();
        file.write_at(bytes, 0, IoClass::Client).unwrap();
    };
    make(run, "/empty/LOCK", b"");
    run.insist_alone_with(|vfs, options| {
        refused(Db::open_read_only_with(vfs, "/empty", options.clone()))
    })?;
    make(run, "/damaged/CURRENT", b"what is this?");
    run.insist_alone_with(|vfs, options| {
        refused(Db::open_read_only_with(vfs, "/damaged", options.clone()))
    })?;
    // Somebody was about to make one.
    make(run, "/db/MANIFEST-000001", b"SATEEN");
    let db = run.open()?;
    run.commit(&db, true)?;
    run.finish(db)
}

fn device() -> Start {
    let mut start = Start::fresh(tiny());
    start.options.device_bandwidth = Some(123 << 20);
    start
}

/// What is known of the device is kept for the next time.
fn device_is_known(run: &mut Run) -> Option<()> {
    for _ in 0..2 {
        let db = run.open()?;
        run.commit(&db, true)?;
        run.insist(&db, |db| db.set_options(&[("device_bandwidth", "none")]))?;
        run.close(db);
    }
    let db = run.open()?;
    run.finish(db)
}
