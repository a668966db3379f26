//! The commands that make, restore, list and delete backups.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use sateen::vfs::PosixVfs;
use sateen::{
    BackupEngine, BackupInfo, BackupListener, BackupProgress, CreateBackupOptions, Error,
    RestoreOptions, VerifyBackupOptions, VerifyBackupReport, shown, shown_path,
};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::place::{Place, bytes};
use crate::progress::Progress;
use crate::store::{self, finding};
use crate::text::bytes::json_path;
use crate::upkeep::verdict;
use crate::{interrupt, live};

#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    place: Place,
    /// Keep the backup in this directory, beside earlier ones
    target: PathBuf,
    /// Keep this text with the backup
    #[arg(long, value_name = "TEXT", value_parser = bytes())]
    note: Option<String>,
    /// Copy at most this many MB a second
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Restore a backup of this directory
    target: PathBuf,
    /// Create the database in this directory, which must be missing or empty
    path: PathBuf,
    /// Restore this backup [default: the newest]
    #[arg(long, value_name = "N")]
    id: Option<u64>,
    /// Skip the WALs: restore what was in tables when the backup was made
    #[arg(long)]
    no_wal: bool,
    /// Copy at most this many MB a second
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Backups {
    /// Use the backups in this directory
    target: PathBuf,
    /// Verify every byte of all backups, or of those listed with --id
    #[arg(long, conflicts_with_all = ["purge", "delete"])]
    verify: bool,
    /// Verify only this backup
    #[arg(long, value_name = "N", requires = "verify")]
    id: Option<u64>,
    /// Keep the newest N backups and delete the others
    #[arg(long, value_name = "N", conflicts_with = "delete")]
    purge: Option<usize>,
    /// Delete this backup
    #[arg(long, value_name = "N")]
    delete: Option<u64>,
    /// Delete all backups, with --purge 0
    #[arg(long, requires = "purge")]
    yes: bool,
}

/// Shows the progress, and ends the operation once the user wants that.
struct Watch {
    bar: Progress,
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    fn new(what: &str) -> Result<Arc<Watch>> {
        let interrupted = interrupt::watch()?;
        Ok(Arc::new(Watch { bar: Progress::bytes(what, Some(0)), interrupted }))
    }
}

impl BackupListener for Watch {
    fn progress(&self, progress: &BackupProgress) {
        self.bar.of(progress.bytes, progress.total_bytes.max(progress.bytes));
    }

    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// Returns an error of a backup as the failure of a command. `state` says what there is now.
fn failure(error: Error, state: &str) -> Failure {
    match error {
        Error::Cancelled(what) => Failure::interrupted(format!("{what} was interrupted; {state}")),
        Error::NoSuchBackup(_) => Failure::not_found(error.to_string()),
        Error::BackupDeleted(_) => Failure::not_found(format!("{error}; {state}")),
        error => error.into(),
    }
}

/// Returns a rate in bytes a second; 0 for no limit.
fn bytes_per_second(rate: Option<u64>) -> u64 {
    rate.map_or(0, |rate| rate.saturating_mul(1_000_000))
}

pub(crate) fn create(arguments: &Backup, json: bool, output: &mut dyn Write) -> Result<()> {
    store::refuse_missing(&arguments.place.db)?;
    if let Some(made) = made_by_process(arguments, json)? {
        return print(&made, json, output);
    }
    // The database is opened first: a wrong name must not leave an empty place for backups.
    let db = store::beside_writer(|| store::open_as_it_was(&arguments.place))?;
    let mut engine = BackupEngine::open(&arguments.target)?;
    let watch = Watch::new("copying")?;
    let listener: Arc<dyn BackupListener> = watch.clone();
    let options = CreateBackupOptions {
        rate: bytes_per_second(arguments.rate),
        note: arguments.note.clone().unwrap_or_default(),
        listener: Some(listener),
        ..CreateBackupOptions::default()
    };
    let made = engine.create_with(&db, &options);
    drop(options);
    drop(watch);
    let made = made.map_err(|error| failure(error, "earlier backups are as they were"))?;
    db.close()?;
    print(&made, json, output)
}

/// Has the process that serves the database make the backup, because it knows what its clients need
/// of the device. Returns `None` if there is no such process.
fn made_by_process(arguments: &Backup, json: bool) -> Result<Option<BackupInfo>> {
    let target = &arguments.target;
    let Some(path) = live::path_argument(target)? else { return Ok(None) };
    let wanted = json!({
        "path": path, "note": arguments.note, "rate": bytes_per_second(arguments.rate),
    });
    let spinner = Progress::spinner("the process that has the database open makes the backup");
    let goes_on = "goes on, and the backup will be complete or not there";
    let answer = live::asked(&arguments.place, "backup", &wanted, goes_on, &spinner, json)?;
    drop(spinner);
    let Some(answer) = answer else { return Ok(None) };
    let id = answer["id"].as_u64().unwrap_or(0);
    let made = BackupEngine::open_read_only(target)?.list()?;
    let made = made.into_iter().find(|made| made.id == id);
    made.map(Some).ok_or_else(|| failure(Error::NoSuchBackup(id), ""))
}

fn print(made: &BackupInfo, json: bool, output: &mut dyn Write) -> Result<()> {
    if json {
        return Ok(writeln!(output, "{}", info_json(made))?);
    }
    let BackupInfo { id, tables, bytes, own_bytes, .. } = made;
    Ok(writeln!(
        output,
        "backup {id}: {tables} tables, {bytes} bytes, {own_bytes} of them not in other backups"
    )?)
}

pub(crate) fn restore(arguments: &Restore, json: bool, output: &mut dyn Write) -> Result<()> {
    let engine = BackupEngine::open_read_only(&arguments.target)?;
    let nothing = |error| failure(error, "nothing is restored");
    let id = arguments.id.map_or_else(|| engine.latest(), Ok).map_err(nothing)?;
    let watch = Watch::new("restoring")?;
    let listener: Arc<dyn BackupListener> = watch.clone();
    let options = RestoreOptions {
        wal: !arguments.no_wal,
        rate: bytes_per_second(arguments.rate),
        listener: Some(listener),
        ..RestoreOptions::default()
    };
    let restored = engine.restore_with(Arc::new(PosixVfs::new()), id, &arguments.path, &options);
    drop(options);
    drop(watch);
    restored.map_err(nothing)?;
    if json {
        let done = json!({ "id": id, "path": json_path(&arguments.path) });
        return Ok(writeln!(output, "{done}")?);
    }
    Ok(writeln!(output, "restored backup {id} to {}", shown_path(&arguments.path))?)
}

pub(crate) fn backups(arguments: &Backups, json: bool, output: &mut dyn Write) -> Result<()> {
    let target = &arguments.target;
    if arguments.verify {
        return verify(target, arguments.id, json, output);
    }
    if arguments.purge == Some(0) && !arguments.yes {
        let text = "--purge 0 deletes all backups: give --yes as well";
        return Err(Failure::usage(format!("{}: {text}", shown_path(target))));
    }
    let deleted = match (arguments.purge, arguments.delete) {
        (Some(keep), _) => Some(writer(target)?.purge(keep)?),
        (None, Some(id)) => {
            writer(target)?.delete(id).map_err(|error| failure(error, ""))?;
            Some(vec![id])
        }
        (None, None) => None,
    };
    let engine = BackupEngine::open_read_only(target)?;
    let there = engine.list()?;
    if json {
        let backups: Vec<_> = there.iter().map(info_json).collect();
        let mut done = json!({ "backups": backups });
        if let Some(deleted) = deleted {
            done["deleted"] = json!(deleted);
        }
        return Ok(writeln!(output, "{done}")?);
    }
    if let Some(deleted) = deleted {
        deleted.iter().try_for_each(|id| writeln!(output, "deleted backup {id}"))?;
        return Ok(());
    }
    list(&there, output)
}

/// Opens the backups in an existing directory for changing them.
fn writer(target: &Path) -> Result<BackupEngine> {
    // A directory without backups must stay as it is.
    BackupEngine::open_read_only(target)?;
    Ok(BackupEngine::open(target)?)
}

fn list(backups: &[BackupInfo], output: &mut dyn Write) -> Result<()> {
    if backups.is_empty() {
        return Ok(());
    }
    writeln!(
        output,
        "backup  made (UTC)              tables           bytes        its own  note"
    )?;
    for backup in backups {
        let BackupInfo { id, created, tables, bytes, own_bytes, note, damage, .. } = backup;
        if let Some(damage) = damage {
            writeln!(output, "{id:<6}  damaged: {damage}")?;
            continue;
        }
        let (made, note) = (utc(*created), shown(note));
        let line = format!("{id:<6}  {made}  {tables:>8} {bytes:>15} {own_bytes:>14}  {note}");
        writeln!(output, "{}", line.trim_end())?;
    }
    Ok(())
}

fn verify(target: &Path, id: Option<u64>, json: bool, output: &mut dyn Write) -> Result<()> {
    let engine = BackupEngine::open_read_only(target)?;
    let there = engine.list()?;
    let chosen: Vec<_> =
        there.iter().filter(|backup| id.is_none_or(|id| id == backup.id)).collect();
    if let (Some(id), true) = (id, chosen.is_empty()) {
        return Err(failure(Error::NoSuchBackup(id), ""));
    }
    let watch = Watch::new("verifying")?;
    let (mut problems, mut unreadable, mut found) = (0, 0, Vec::new());
    let mut deleted = Vec::new();
    for backup in chosen {
        let listener: Arc<dyn BackupListener> = watch.clone();
        let options = VerifyBackupOptions { rate: 0, listener: Some(listener) };
        let report = match engine.verify_with(backup.id, &options) {
            Ok(report) => report,
            Err(error @ Error::Cancelled(_)) => return Err(failure(error, "it changed nothing")),
            Err(Error::NoSuchBackup(gone) | Error::BackupDeleted(gone)) if id.is_none() => {
                deleted.push(gone);
                continue;
            }
            Err(error @ (Error::NoSuchBackup(_) | Error::BackupDeleted(_))) => {
                return Err(failure(error, "it was not verified"));
            }
            Err(error) => {
                let mut report = VerifyBackupReport::default();
                let refused = error.is_environment();
                if refused { &mut report.unreadable } else { &mut report.problems }.push(error);
                report
            }
        };
        problems += report.problems.len();
        unreadable += report.unreadable.len();
        found.push((backup.id, report));
    }
    drop(watch);
    for id in deleted {
        let line = if json {
            json!({ "id": id, "deleted": true }).to_string()
        } else {
            format!("backup {id}: deleted meanwhile")
        };
        writeln!(output, "{line}")?;
    }
    for (id, report) in &found {
        write_report(*id, report, json, output)?;
    }
    verdict(problems, unreadable)
}

fn write_report(
    id: u64,
    report: &VerifyBackupReport,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    let VerifyBackupReport { objects, bytes, problems, unreadable, .. } = report;
    if json {
        let findings = |errors: &[Error]| errors.iter().map(finding).collect::<Vec<_>>();
        let done = json!({
            "id": id, "ok": report.is_sound(), "objects": objects, "bytes": bytes,
            "findings": findings(problems), "unreadable": findings(unreadable),
        });
        return Ok(writeln!(output, "{done}")?);
    }
    problems.iter().try_for_each(|problem| writeln!(output, "backup {id}: {problem}"))?;
    for error in unreadable {
        writeln!(output, "backup {id}: could not read: {error}")?;
    }
    let verdict = match (problems.is_empty(), unreadable.is_empty()) {
        (false, _) => "damaged",
        (true, false) => "not everything could be read",
        (true, true) => "sound",
    };
    Ok(writeln!(output, "backup {id}: {verdict}: {objects} objects, {bytes} bytes verified")?)
}

fn info_json(backup: &BackupInfo) -> Value {
    json!({
        "id": backup.id,
        "created": backup.created,
        "seqno": backup.seqno,
        "tables": backup.tables,
        "files": backup.files,
        "bytes": backup.bytes,
        "own_bytes": backup.own_bytes,
        "note": backup.note,
        "damage": backup.damage.as_ref().map(finding),
    })
}

/// Returns seconds since 1970 as a date and a time.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // The era of 400 years has 146,097 days; years begin in March, so that a leap day is the last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (date, month) =
        (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn moments_are_shown_as_dates() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_735_689_599, "2024-12-31 23:59:59"),
            (1_735_689_600, "2025-01-01 00:00:00"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(seconds), shown);
        }
    }
}
