//! `db scan` prints records in order, as text that `db load` reads.
//!
//! Invariant: each key is printed once, in order, even if another process writes to the database. A
//! note says when the records are not from one moment.

use std::io::{BufWriter, Write};

use sateen::{ColumnFamily, ReadOptions};
use serde_json::json;

use crate::args::Scan;
use crate::failure::{Failure, Result};
use crate::key::bound;
use crate::progress::Progress;
use crate::store::{self, Access, BEHIND_MAX};
use crate::text::{Format, RecordWriter};

const OUTPUT_BUFFER_BYTES: usize = 1 << 18;
/// Records between two updates of the progress.
const PROGRESS_RECORDS: u64 = 4096;

pub(crate) fn run(scan: &Scan, json: bool, output: &mut dyn Write) -> Result<()> {
    let options = ReadOptions {
        lower_bound: bound(scan.from.as_deref(), scan.encoding)?,
        upper_bound: bound(scan.to.as_deref(), scan.encoding)?,
        prefix: bound(scan.prefix.as_deref(), scan.encoding)?,
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
    let format = scan.format.unwrap_or(if json { Format::Jsonl } else { Format::Tsv });
    let progress = Progress::bytes("scanning", None);
    let buffered = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, output);
    let mut printer = Printer {
        writer: RecordWriter::new(buffered, format, scan.encoding),
        reverse: scan.reverse,
        left: scan.limit.unwrap_or(u64::MAX),
        last: None,
        records: 0,
        bytes: 0,
        progress,
    };
    let (mut in_vain, mut moments) = (0, 1);
    let printed = loop {
        let before = printer.records;
        let opened = store::open_family(&scan.family, Access::Read, false);
        let printed = opened.and_then(|(_, family)| printer.print(&family, &options));
        in_vain = if printer.records > before { 0 } else { in_vain + 1 };
        match printed {
            Err(failure) if failure.behind && in_vain < BEHIND_MAX => {
                moments += u64::from(printer.records > before);
            }
            printed => break printed,
        }
    };
    // Records that were read before an error are printed before it.
    printer.writer.finish()?;
    if moments > 1 {
        tell(moments, json);
    }
    printed
}

/// Prints records, and continues behind the last one after the database was opened again.
struct Printer<W: Write> {
    writer: RecordWriter<W>,
    reverse: bool,
    /// The number of records that may still be printed.
    left: u64,
    /// The key that was printed last.
    last: Option<Vec<u8>>,
    records: u64,
    bytes: u64,
    progress: Progress,
}

impl<W: Write> Printer<W> {
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
            self.records += 1;
            self.bytes += (iter.key().len() + iter.value().len()) as u64;
            if self.records.is_multiple_of(PROGRESS_RECORDS) {
                self.progress.at(self.bytes);
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
fn tell(moments: u64, json: bool) {
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
