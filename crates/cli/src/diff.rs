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
use crate::text::bytes::escape;
use crate::text::{Coded, json_field};

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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
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
                    self.print('-', family, left.key(), [Some(left.value()), None])?;
                    left.next();
                }
                Ordering::Greater => {
                    self.counts.added += 1;
                    self.print('+', family, right.key(), [None, Some(right.value())])?;
                    right.next();
                }
                Ordering::Equal => {
                    if left.value() == right.value() {
                        self.counts.same += 1;
                    } else {
                        self.counts.changed += 1;
                        let values = [Some(left.value()), Some(right.value())];
                        self.print('~', family, left.key(), values)?;
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

    /// Prints a difference. `values` are those of the first database and of the second.
    fn print(
        &mut self,
        sign: char,
        family: &str,
        key: Option<&[u8]>,
        values: [Option<&[u8]>; 2],
    ) -> Result<()> {
        let encoding = self.arguments.coded.both();
        let values = if self.arguments.keys { [None; 2] } else { values };
        let members = [("key", key), ("first", values[0]), ("second", values[1])];
        let members = members.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)));
        let mut line = Vec::new();
        if self.json {
            let name = serde_json::Value::from(family);
            write!(line, r#"{{"sign":"{sign}","column_family":{name}"#)?;
            for (name, bytes) in members {
                line.push(b',');
                json_field(name, encoding, bytes, &mut line)?;
            }
            line.push(b'}');
        } else {
            let family = if self.many { sateen::shown(family) + "\t" } else { "".into() };
            write!(line, "{sign} {family}")?;
            for (name, bytes) in members {
                if name != "key" {
                    line.push(b'\t');
                }
                encoding.encode(bytes, &mut line, escape).map_err(Failure::failed)?;
            }
        }
        line.push(b'\n');
        Ok(self.output.write_all(&line)?)
    }

    /// Prints the counts. Two databases that differ are a failure, for scripts.
    fn end(mut self) -> Result<()> {
        let Counts { same, removed, added, changed } = self.counts;
        let found = self.counts.differences();
        let limited = self.arguments.limit.is_some_and(|limit| found >= limit);
        if self.json {
            let line = json!({
                "same": same, "removed": removed, "added": added, "changed": changed,
                "limited": limited,
            });
            writeln!(self.output, "{line}")?;
        } else if found == 0 {
            writeln!(self.output, "the same {same} records")?;
        }
        self.output.flush()?;
        drop(self.progress);
        if found == 0 {
            return Ok(());
        }
        let at_least = if limited { "at least " } else { "" };
        let records = if found == 1 { "record differs" } else { "records differ" };
        let text = format!(
            "{at_least}{found} {records}: {removed} only in the first, {added} only in the \
             second, {changed} with another value"
        );
        Err(Failure { code: FAILED, quiet: self.json, ..Failure::failed(text) })
    }
}
