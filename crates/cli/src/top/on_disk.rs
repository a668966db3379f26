//! What can be said of a database that no process serves: what is on disk.

use std::fmt::Write;
use std::path::Path;

use sateen::vfs::{PosixVfs, Vfs};
use sateen::{Db, Options};

use super::units::size;

/// Describes the database in `directory`, in a few lines.
pub(super) fn describe(directory: &Path) -> String {
    let mut text = String::new();
    if let Some(holder) = PosixVfs::new().lock_holder(&directory.join("LOCK")) {
        // Writing to a string does not fail.
        let _infallible = writeln!(text, "It is open in {holder}, which does not serve it.");
    }
    if directory.try_exists().is_ok_and(|exists| !exists) {
        return "There is no database here.\n".to_owned();
    }
    let options = Options { create_if_missing: false, ..Options::default() };
    let db = match Db::open_read_only(directory, options) {
        Ok(db) => db,
        Err(error) => return text + &error.to_string() + "\n",
    };
    let metrics = db.metrics();
    let files = metrics.table_files;
    let _infallible = writeln!(
        text,
        "On disk: {} table files with {} live and {} dead, WALs of {}.",
        files.files,
        size(files.live_bytes),
        size(files.dead_bytes),
        size(metrics.live_wal_bytes),
    );
    for family in &metrics.column_families {
        let _infallible = writeln!(text, "\n{}", sateen::shown(&family.name));
        for (number, level) in family.levels.iter().enumerate().filter(|(_, it)| it.tables > 0) {
            let (runs, tables, bytes) = (level.runs, level.tables, size(level.bytes));
            let _infallible = writeln!(text, "  L{number}  {runs} runs  {tables} tables  {bytes}");
        }
    }
    text
}
