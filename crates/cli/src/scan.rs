//! `db scan` prints records in order, as text that `db load` reads.
//!
//! Invariant: each key is printed once, in order, even if another process writes to the database. A
//! note says when the records are not from one moment.

use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::{ColumnFamily, ReadOptions};
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::key::bound;
use crate::progress::Progress;
use crate::records::Scan;
use crate::store::{self, Access, BEHIND_MAX};
use crate::text::{Format, RecordWriter};

const OUTPUT_BUFFER_BYTES: usize = 1 << 18;
/// Records between two updates of the progress.
const PROGRESS_RECORDS: u64 = 4096;

pub(crate) fn run(scan: &Scan, json: bool, output: &mut dyn Write) -> Result<()> {
    let format = scan.format.unwrap_or(if json { Format::Jsonl } else { Format::Tsv });
    let progress = Progress::bytes("scanning", None);
    let interrupted = interrupt::watch()?;
    // What the buffer still has is lost, so the number of printed records is not known.
    let late = || Failure::interrupted("interrupted; the output may end within a record");
    let scanned = || records(scan, format, output, progress, &interrupted);
    let (printed, moments) = interrupt::ending(&interrupted, late, json, scanned)?;
    if moments > 1 {
        tell(moments, json);
    }
    printed.map(drop)
}

/// The records that were printed, and the bytes of their keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// Prints the records that `scan` asks for, until they end or `interrupted` is set. Returns what
/// became of that, and the number of moments
/// that the records are from.
///
/// # Errors
/// If the arguments are wrong, or the output fails at the end. Records that were read before
/// another error are printed before it.
pub(crate) fn records(
    scan: &Scan,
    format: Format,
    output: impl Write,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<(Result<Printed>, u64)> {
    let keys = scan.typed.keys();
    let options = ReadOptions {
        lower_bound: bound(scan.from.as_deref(), keys)?,
        upper_bound: bound(scan.to.as_deref(), keys)?,
        prefix: bound(scan.prefix.as_deref(), keys)?,
        // A scan reads each block once, so caching would only evict useful blocks.
        fill_cache: false,
        ..ReadOptions::default()
    };
    if let (Some(from), Some(to)) = (&scan.from, &scan.to)
        && options.lower_bound > options.upper_bound
    {
        let text = format!("--from {from:?} is after --to {to:?}; --reverse reverses the order");
        return Err(Failure::usage(text));
    }
    let buffered = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, output);
    let mut printer = Printer {
        writer: RecordWriter::new(buffered, format, keys).with_values(scan.typed.values()),
        reverse: scan.reverse,
        left: scan.limit.unwrap_or(u64::MAX),
        last: None,
        printed: Printed::default(),
        progress,
        interrupted,
    };
    let (mut in_vain, mut moments) = (0, 1);
    let printed = loop {
        let before = printer.printed.records;
        let opened = store::open_family(&scan.family, Access::Read, false);
        let printed = opened.and_then(|(_, family)| printer.print(&family, &options));
        let goes_on = printer.printed.records > before;
        in_vain = if goes_on { 0 } else { in_vain + 1 };
        match printed {
            Err(failure) if failure.behind && in_vain < BEHIND_MAX => {
                moments += u64::from(goes_on);
            }
            printed => break printed,
        }
    };
    printer.writer.finish()?;
    Ok((printed.map(|()| printer.printed), moments))
}

/// Prints records, and continues behind the last one after the database was opened again.
struct Printer<'a, W: Write> {
    writer: RecordWriter<W>,
    reverse: bool,
    /// The number of records that may still be printed.
    left: u64,
    /// The key that was printed last.
    last: Option<Vec<u8>>,
    printed: Printed,
    progress: Progress,
    /// Whether to stop, and how many records were printed.
    interrupted: &'a AtomicBool,
}

impl<W: Write> Printer<'_, W> {
    fn print(&mut self, family: &ColumnFamily, options: &ReadOptions) -> Result<()> {
        let mut iter = family.cursor(options)?;
        match (&self.last, self.reverse) {
            (None, false) => iter.seek_to_first(),
            (None, true) => iter.seek_to_last(),
            (Some(last), false) => iter.seek(last),
            (Some(last), true) => iter.seek_for_prev(last),
        }
        // The last key was printed already.
        if iter.valid() && self.last.as_deref() == Some(iter.key()) {
            if self.reverse { iter.prev() } else { iter.next() }
        }
        while iter.valid() && self.left > 0 {
            self.writer.write(iter.key(), iter.value())?;
            self.left -= 1;
            self.printed.records += 1;
            self.printed.bytes += (iter.key().len() + iter.value().len()) as u64;
            if self.printed.records.is_multiple_of(PROGRESS_RECORDS) {
                self.progress.at(self.printed.bytes);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                let text = format!("interrupted after {} records", self.printed.records);
                return Err(Failure::interrupted(text));
            }
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(iter.key());
            if self.reverse {
                iter.prev();
            } else {
                iter.next();
            }
        }
        Ok(iter.status()?)
    }
}

/// Says on standard error that the records are from several moments. A closed standard error is
/// ignored.
pub(crate) fn tell(moments: u64, json: bool) {
    let text = format!(
        "the records are from {moments} moments, not from one: another process replaced the files \
         that the scan was reading. Its options reader_lease_seconds and reader_lease_bytes set \
         how long it keeps them"
    );
    let mut errors = std::io::stderr().lock();
    let _nobody = if json {
        writeln!(errors, "{}", json!({ "note": text }))
    } else {
        writeln!(errors, "sateen: note: {text}")
    };
}
