//! `sateen log`: the lines of the file LOG and of those that it followed.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::store;

/// How much a line must matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// Everything that was written
    Debug,
    /// Jobs, memtables, options, warnings and errors
    Info,
    /// Stalls and other warnings, and errors
    Warn,
    /// Errors alone
    Error,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Print the log of the database in this directory
    db: PathBuf,
    /// Print at most this many lines, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    lines: usize,
    /// Print lines of this level and above
    #[arg(long, value_enum, default_value = "debug")]
    level: Level,
    /// Print each line as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &Log, output: &mut dyn Write) -> Result<()> {
    store::refuse_missing(&arguments.db)?;
    let mut lines: Vec<String> = Vec::new();
    // From the newest file back, until there are enough.
    for file in files(&arguments.db)?.into_iter().rev() {
        let bytes = std::fs::read(&file).map_err(|error| Failure::file(&file, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        if is_foreign(&text) {
            let text = "is a log, but none of a Sateen database";
            return Err(Failure::failed(format!("{} {text}", sateen::shown_path(&file))));
        }
        let own = text.lines().filter(|line| level(line) >= Some(arguments.level));
        let mut own: Vec<String> = own.map(str::to_owned).collect();
        own.append(&mut lines);
        lines = own;
        if lines.len() >= arguments.lines {
            break;
        }
    }
    let first = lines.len().saturating_sub(arguments.lines);
    for line in lines.iter().skip(first) {
        if arguments.json {
            let (time, rest) = line.split_once(' ').unwrap_or(("", line));
            let (level, text) = rest.split_once(' ').unwrap_or(("", rest));
            let line = json!({ "time": time, "level": level, "text": text.trim_start() });
            writeln!(output, "{line}")?;
        } else {
            writeln!(output, "{line}")?;
        }
    }
    Ok(())
}

/// Returns the level of a line; `None` for the first line of a file.
fn level(line: &str) -> Option<Level> {
    match line.split(' ').nth(1)? {
        "DEBUG" => Some(Level::Debug),
        "INFO" => Some(Level::Info),
        "WARN" => Some(Level::Warn),
        "ERROR" => Some(Level::Error),
        _ => None,
    }
}

/// Returns true if another program wrote this.
fn is_foreign(text: &str) -> bool {
    // A crash may have left the first line alone, a part of it, or zeros.
    let first = text.lines().next().unwrap_or_default().trim_matches('\0');
    let begins = first.starts_with("sateen ") || "sateen ".starts_with(first);
    !begins && text.lines().all(|line| level(line).is_none())
}

/// Returns the files of a log, oldest first.
fn files(db: &Path) -> Result<Vec<PathBuf>> {
    let listing = std::fs::read_dir(db).map_err(|error| Failure::file(db, &error))?;
    let mut numbered = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|error| Failure::file(db, &error))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let number = match name.strip_prefix("LOG.old.") {
            Some(digits) => digits.parse::<u64>().ok(),
            None => (name == "LOG").then_some(u64::MAX),
        };
        numbered.extend(number.map(|number| (number, entry.path())));
    }
    if numbered.is_empty() {
        let current = db.join("CURRENT");
        if !current.try_exists().map_err(|error| Failure::file(&current, &error))? {
            let name = sateen::shown_path(db);
            return Err(Failure::failed(format!("{name}: there is no database here")));
        }
        let text = "there is no LOG: the option log_level of the database is off";
        return Err(Failure::not_found(format!("{}: {text}", sateen::shown_path(db))));
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}
