//! `sateen db diff`: the records in which two databases differ.
//!
//! 1. Both are opened for reading. A column family that only one has is compared with an empty one.
//! 2. Two cursors go through each column family in the order of its keys, the one behind moves.
//! 3. Each difference is a line: `-` only in the first, `+` only in the second, `~` another value.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as AtomicOrdering};

use clap::Args;
use sateen::{ColumnFamily, Comparator, Cursor, Db, ReadOptions};
use serde_json::json;

use crate::failure::{FAILED, Failure, Result};
use crate::interrupt;
use crate::place::Place;
use crate::progress::Progress;
use crate::store;
use crate::text::Coded;
use crate::text::bytes::escape;

/// Records between two updates of the progress.
const PROGRESS_RECORDS: u64 = 4096;

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Compare the database in this directory
    first: PathBuf,
    /// Compare it with the one in this directory
    second: PathBuf,
    #[command(flatten)]
    coded: Coded,
    /// Print keys alone
    #[arg(long)]
    keys: bool,
    /// Stop after this many differences
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// The differences that were found.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    same: u64,
    removed: u64,
    added: u64,
    changed: u64,
}

impl Counts {
    fn differences(self) -> u64 {
        self.removed + self.added + self.changed
    }
}

pub(crate) fn run(arguments: &Diff, json: bool, output: &mut dyn Write) -> Result<()> {
    let open = |path: &PathBuf| {
        let place = Place { db: path.clone(), profile: None, settings: Vec::new() };
        store::open_as_it_was(&place)
    };
    let (first, second) = (open(&arguments.first)?, open(&arguments.second)?);
    let names = first.column_families().into_iter().chain(second.column_families());
    let names: BTreeSet<String> = names.collect();
    let mut printer = Printer {
        output: BufWriter::new(output),
        arguments,
        json,
        many: names.len() > 1,
        counts: Counts::default(),
        progress: Progress::keys("comparing", None),
        interrupted: interrupt::watch()?,
    };
    for name in &names {
        let (mut left, mut right) = (Side::new(&first, name)?, Side::new(&second, name)?);
        printer.compare(name, &mut left, &mut right)?;
    }
    printer.end()
}

/// A column family of one database; without a cursor if that database does not have it.
struct Side {
    cursor: Option<Cursor>,
    comparator: Option<Comparator>,
}

impl Side {
    fn new(db: &Db, name: &str) -> Result<Side> {
        // Each block is read once, so caching would only evict useful ones.
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let family: Option<ColumnFamily> = db.column_family(name);
        let Some(family) = family else { return Ok(Side { cursor: None, comparator: None }) };
        let mut cursor = family.cursor(&options)?;
        cursor.seek_to_first();
        Ok(Side { cursor: Some(cursor), comparator: Some(family.comparator().clone()) })
    }

    fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref().filter(|cursor| cursor.valid()).map(Cursor::key)
    }

    fn value(&self) -> &[u8] {
        self.cursor.as_ref().filter(|cursor| cursor.valid()).map_or(&[], Cursor::value)
    }

    fn next(&mut self) {
        self.cursor.iter_mut().for_each(Cursor::next);
    }

    fn status(&self) -> Result<()> {
        Ok(self.cursor.as_ref().map_or(Ok(()), Cursor::status)?)
    }
}

struct Printer<'a> {
    output: BufWriter<&'a mut dyn Write>,
    arguments: &'a Diff,
    json: bool,
    /// True if lines name the column family.
    many: bool,
    counts: Counts,
    progress: Progress,
    interrupted: Arc<AtomicBool>,
}

impl Printer<'_> {
    fn compare(&mut self, family: &str, left: &mut Side, right: &mut Side) -> Result<()> {
        let comparator = match (&left.comparator, &right.comparator) {
            (Some(first), Some(second)) if first != second => {
                let family = sateen::shown(family);
                let (first, second) = (first.name(), second.name());
                let text =
                    format!("{family}: ordered by {first} in one and by {second} in the other");
                return Err(Failure::failed(text));
            }
            (first, second) => {
                first.clone().or_else(|| second.clone()).unwrap_or(Comparator::BYTEWISE)
            }
        };
        let limit = self.arguments.limit.unwrap_or(u64::MAX);
        while self.counts.differences() < limit {
            let order = match (left.key(), right.key()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(first), Some(second)) => comparator.compare(first, second),
            };
            match order {
                Ordering::Less => {
                    self.counts.removed += 1;
                    self.print('-', family, left.key(), left.value(), None)?;
                    left.next();
                }
                Ordering::Greater => {
                    self.counts.added += 1;
                    self.print('+', family, right.key(), right.value(), None)?;
                    right.next();
                }
                Ordering::Equal => {
                    if left.value() == right.value() {
                        self.counts.same += 1;
                    } else {
                        self.counts.changed += 1;
                        self.print('~', family, left.key(), left.value(), Some(right.value()))?;
                    }
                    left.next();
                    right.next();
                }
            }
            let seen = self.counts.same + self.counts.differences();
            if seen.is_multiple_of(PROGRESS_RECORDS) {
                self.progress.at(seen);
                if self.interrupted.load(AtomicOrdering::Relaxed) {
                    self.output.flush()?;
                    return Err(Failure::interrupted("interrupted: not everything was compared"));
                }
            }
        }
        left.status().and(right.status())
    }

    fn print(
        &mut self,
        sign: char,
        family: &str,
        key: Option<&[u8]>,
        value: &[u8],
        other: Option<&[u8]>,
    ) -> Result<()> {
        let encoding = self.arguments.coded.both();
        let text = |bytes: &[u8]| {
            let mut text = Vec::new();
            encoding.encode(bytes, &mut text, escape).map_err(Failure::failed)?;
            Result::Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let key = text(key.unwrap_or_default())?;
        let values = [Some(value), other].into_iter().flatten();
        let values: Vec<String> = match self.arguments.keys {
            true => Vec::new(),
            false => values.map(text).collect::<Result<_>>()?,
        };
        if self.json {
            let line = json!({
                "sign": sign.to_string(), "column_family": family, "key": key, "values": values,
            });
            return Ok(writeln!(self.output, "{line}")?);
        }
        let family = if self.many { sateen::shown(family) + "\t" } else { "".into() };
        let parts = [&[key][..], &values].concat();
        Ok(writeln!(self.output, "{sign} {family}{}", parts.join("\t"))?)
    }

    /// Prints the counts. Two databases that differ are a failure, for scripts.
    fn end(mut self) -> Result<()> {
        let Counts { same, removed, added, changed } = self.counts;
        let found = self.counts.differences();
        if self.json {
            let line =
                json!({ "same": same, "removed": removed, "added": added, "changed": changed });
            writeln!(self.output, "{line}")?;
        } else if found == 0 {
            writeln!(self.output, "the same {same} records")?;
        }
        self.output.flush()?;
        drop(self.progress);
        if found == 0 {
            return Ok(());
        }
        let limited = self.arguments.limit.is_some_and(|limit| found >= limit);
        let at_least = if limited { "at least " } else { "" };
        let text = format!(
            "{at_least}{found} records differ: {removed} only in the first, {added} only in the \
             second, {changed} with another value"
        );
        Err(Failure { code: FAILED, quiet: self.json, ..Failure::failed(text) })
    }
}
