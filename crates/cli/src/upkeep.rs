//! The commands that check, scrub, repair and destroy a database.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::timeline::{RunningJob, Timeline};
use sateen::{
    CheckReport, ColumnFamily, CompactRangeOptions, Db, RepairListener, ScrubReport, shown_path,
};
use serde_json::json;

use crate::failure::{Failure, INTERRUPTED, Result};
use crate::interrupt;
use crate::place::Place;
use crate::progress::{JobBytes, Progress};
use crate::store::{self, Access, finding};
use crate::text::bytes::json_path;

pub(crate) fn check(place: &Place, json: bool, output: &mut dyn Write) -> Result<()> {
    let bar = Progress::bytes("checking", Some(0));
    let interrupted = interrupt::watch()?;
    let report = store::check(place, |done, total| {
        bar.of(done, total);
        if interrupted.load(Ordering::Relaxed) {
            bar.clear();
            let failure = Failure::interrupted("the check was interrupted; it changed nothing");
            failure.report(json);
            // A check holds nothing that has to be given back, and the engine's has no other end.
            std::process::exit(INTERRUPTED.into());
        }
    })?;
    drop(bar);
    if json {
        writeln!(output, "{}", check_json(&report))?;
    } else {
        check_text(&report, &place.db, output)?;
    }
    verdict(report.problems.len(), report.unreadable.len())
}

fn check_text(report: &CheckReport, db: &Path, output: &mut dyn Write) -> Result<()> {
    report.problems.iter().try_for_each(|problem| writeln!(output, "{problem}"))?;
    for error in &report.unreadable {
        writeln!(output, "could not read: {error}")?;
    }
    report.notes.iter().try_for_each(|note| writeln!(output, "note: {note}"))?;
    for orphan in &report.orphans {
        let what = "not part of the database: left by a crash, or being written now";
        writeln!(output, "note: {}: {what}", shown_path(orphan))?;
    }
    let CheckReport { tables, entries, bytes, logs, log_records, live_bytes, disk_bytes, .. } =
        report;
    let looked_at = format!(
        "{tables} tables, {entries} entries, {bytes} bytes; {logs} WALs, {log_records} commits; \
         table files take {disk_bytes} bytes, {live_bytes} of them in use"
    );
    let verdict = match (report.problems.is_empty(), report.unreadable.is_empty()) {
        (false, _) => "damaged",
        (true, false) => "not everything could be read",
        (true, true) => "sound",
    };
    Ok(writeln!(output, "{}: {verdict}: {looked_at}", shown_path(db))?)
}

fn check_json(report: &CheckReport) -> serde_json::Value {
    json!({
        "ok": report.is_sound(),
        "findings": report.problems.iter().map(finding).collect::<Vec<_>>(),
        "unreadable": report.unreadable.iter().map(finding).collect::<Vec<_>>(),
        "notes": report.notes,
        "orphans": report.orphans.iter().map(json_path).collect::<Vec<_>>(),
        "manifest": report.manifest.as_ref().map(json_path),
        "tables": report.tables,
        "entries": report.entries,
        "bytes": report.bytes,
        "logs": report.logs,
        "log_records": report.log_records,
        "live_bytes": report.live_bytes,
        "disk_bytes": report.disk_bytes,
    })
}

pub(crate) fn scrub(
    place: &Place,
    rate: Option<u64>,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    let db = store::open(place, Access::Write)?;
    let wanted = interrupt::watch()?;
    let spinner = Progress::spinner("verifying");
    // Without a rate the scrub is not limited.
    let rate = rate.map_or(0, |rate| rate.saturating_mul(1_000_000));
    // A scrub ends when its database is closed.
    let closing = db.clone();
    let stop = move || drop(closing.close());
    let (report, stopped) = interrupt::stopping(&wanted, stop, || db.scrub(Some(rate)));
    drop(spinner);
    let report = match report {
        Err(sateen::Error::Closed) if stopped => {
            let text = "the scrub was interrupted; it changed nothing";
            return Err(Failure::interrupted(text));
        }
        report => report?,
    };
    db.close()?;
    let ScrubReport { tables, logs, bytes, problems, unreadable, .. } = &report;
    if json {
        let findings = |errors: &[sateen::Error]| errors.iter().map(finding).collect::<Vec<_>>();
        let done = json!({
            "ok": report.is_sound(), "findings": findings(problems),
            "unreadable": findings(unreadable), "tables": tables, "logs": logs, "bytes": bytes,
        });
        writeln!(output, "{done}")?;
    } else {
        problems.iter().try_for_each(|problem| writeln!(output, "{problem}"))?;
        for error in unreadable {
            writeln!(output, "could not read: {error}")?;
        }
        writeln!(output, "verified {tables} tables and {logs} WALs, {bytes} bytes")?;
    }
    verdict(problems.len(), unreadable.len())
}

/// Compacts a range of keys, from the first of the bounds to the second, until `wanted` is set.
pub(crate) fn compact(
    wanted: &AtomicBool,
    db: &Db,
    family: &ColumnFamily,
    [from, to]: [Option<&[u8]>; 2],
    options: &CompactRangeOptions,
) -> Result<()> {
    let what = "compacting";
    let spinner = Progress::spinner(what);
    let stop = || db.pause_manual_compactions();
    let compact = || family.compact_range(from, to, options);
    let mut timeline = Timeline::default();
    let jobs = || manual_jobs(db, &mut timeline);
    let (done, stopped) =
        spinner.of_jobs(what, jobs, || interrupt::stopping(wanted, stop, compact));
    drop(spinner);
    match done {
        Err(sateen::Error::ManualCompactionPaused) if stopped => {
            db.close()?;
            let text = "the compaction was interrupted; the database has all records, and another \
                        compaction goes on from here";
            Err(Failure::interrupted(text))
        }
        done => Ok(done.and_then(|()| db.close())?),
    }
}

/// Returns the running compactions that this command has asked for.
fn manual_jobs(db: &Db, timeline: &mut Timeline) -> Vec<JobBytes> {
    db.extend_timeline(timeline);
    timeline.forget_before(timeline.until_ns);
    let manual = |job: &&RunningJob| job.info.reason.is_some_and(|reason| reason.is_manual());
    let jobs = timeline.running.iter().filter(manual);
    let bytes = |job: &RunningJob| JobBytes {
        job: job.info.job.0,
        read: job.read_bytes,
        input: job.info.input_bytes,
    };
    jobs.map(bytes).collect()
}

/// Returns the result of a command that found this many damaged and unreadable things.
pub(crate) fn verdict(damaged: usize, unreadable: usize) -> Result<()> {
    let things = |count: usize, verb: &str| match count {
        1 => format!("1 thing {}", verb.replace("are", "is")),
        _ => format!("{count} things {verb}"),
    };
    match (damaged, unreadable) {
        (0, 0) => Ok(()),
        (0, _) => {
            let text = things(unreadable, "could not be read");
            Err(Failure::unreadable(format!("{text}; nothing is known to be damaged")))
        }
        (_, 0) => Err(Failure::failed(things(damaged, "are damaged"))),
        _ => {
            let unreadable = things(unreadable, "could not be read");
            Err(Failure::failed(format!("{}; {unreadable}", things(damaged, "are damaged"))))
        }
    }
}

/// Shows how much a repair has read, and ends it once the user wants that.
struct RepairWatch {
    bar: Progress,
    interrupted: Arc<AtomicBool>,
}

impl RepairListener for RepairWatch {
    fn progress(&self, bytes_read: u64) {
        self.bar.at(bytes_read);
    }

    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

pub(crate) fn repair(
    place: &Place,
    give_up_unreadable: bool,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    let bar = Progress::bytes("repairing", None);
    let watch = Arc::new(RepairWatch { bar, interrupted: interrupt::watch()? });
    let report = store::repair(place, give_up_unreadable, watch.clone())?;
    drop(watch);
    if json {
        let ranges: Vec<_> = report.lost_ranges.iter().map(range_json).collect();
        let done = json!({
            "manifest": report.manifest.as_ref().map(json_path),
            "tables_kept": report.tables_kept,
            "entries_salvaged": report.entries_salvaged,
            "log_entries_salvaged": report.log_entries_salvaged,
            "losses": report.losses.iter().map(finding).collect::<Vec<_>>(),
            "lost_ranges": ranges,
            "notes": report.notes,
            "moved": report.moved.iter().map(json_path).collect::<Vec<_>>(),
        });
        writeln!(output, "{done}")?;
    } else {
        match &report.manifest {
            Some(manifest) => writeln!(output, "used {}", shown_path(manifest))?,
            None => writeln!(output, "found no usable manifest; used the tables and WALs alone")?,
        }
        writeln!(output, "kept {} tables", report.tables_kept)?;
        let (all, of_wals) = (report.entries_salvaged, report.log_entries_salvaged);
        writeln!(output, "rewrote {all} entries, {of_wals} of them from WALs")?;
        report.notes.iter().try_for_each(|note| writeln!(output, "note: {note}"))?;
        let moved = |file: &std::path::PathBuf| format!("moved to lost: {}", shown_path(file));
        report.moved.iter().try_for_each(|file| writeln!(output, "{}", moved(file)))?;
        report.losses.iter().try_for_each(|error| writeln!(output, "damaged: {error}"))?;
        report.lost_ranges.iter().try_for_each(|range| writeln!(output, "lost: {range}"))?;
    }
    match report.losses.len() {
        0 => Ok(()),
        1 => Err(Failure::failed("repaired; 1 thing was damaged")),
        count => Err(Failure::failed(format!("repaired; {count} things were damaged"))),
    }
}

pub(crate) fn destroy(place: &Place, yes: bool, json: bool, output: &mut dyn Write) -> Result<()> {
    let db = shown_path(&place.db);
    if !yes {
        return Err(Failure::usage(format!("{db}: give --yes to remove the database for good")));
    }
    let report = store::destroy(place)?;
    if json {
        let done = json!({
            "removed": report.removed.iter().map(json_path).collect::<Vec<_>>(),
            "left": report.left.iter().map(json_path).collect::<Vec<_>>(),
            "directory_removed": report.directory_removed,
        });
        writeln!(output, "{done}")?;
    } else {
        let removed = |path| writeln!(output, "removed {}", shown_path(path));
        report.removed.iter().try_for_each(removed)?;
        report.left.iter().try_for_each(|path| writeln!(output, "left {}", shown_path(path)))?;
        if report.directory_removed {
            writeln!(output, "removed {db}")?;
        }
    }
    if report.removed.is_empty() && !report.directory_removed {
        return Err(Failure::failed(format!("{db}: there is no database")));
    }
    Ok(())
}

fn range_json(range: &sateen::LostRange) -> serde_json::Value {
    let text = |key: &[u8]| key.escape_ascii().to_string();
    json!({
        "column_family": range.column_family,
        "file": json_path(&range.file),
        "first": text(&range.first),
        "last": text(&range.last),
        "first_hex": hex(&range.first),
        "last_hex": hex(&range.last),
    })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    crate::text::bytes::to_hex(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}
