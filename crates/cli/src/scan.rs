//! `db scan`: records in order, as text that `db load` takes back.

use std::io::{BufWriter, Write};

use sateen::ReadOptions;

use crate::args::Scan;
use crate::db::bound;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::store::{self, Access};
use crate::text::{Format, RecordWriter};

const OUTPUT_BUFFER_BYTES: usize = 1 << 18;
/// Progress moves once in so many records.
const PROGRESS_RECORDS: u64 = 4096;

pub(crate) fn run(scan: &Scan, json: bool, output: &mut dyn Write) -> Result<()> {
    let options = ReadOptions {
        lower_bound: bound(scan.from.as_deref(), scan.encoding)?,
        upper_bound: bound(scan.to.as_deref(), scan.encoding)?,
        prefix: bound(scan.prefix.as_deref(), scan.encoding)?,
        // Everything once: it would only push out what others read again.
        fill_cache: false,
        ..ReadOptions::default()
    };
    if let (Some(from), Some(to)) = (&scan.from, &scan.to)
        && options.lower_bound > options.upper_bound
    {
        let text = format!("--from {from:?} is after --to {to:?}; --reverse turns the order");
        return Err(Failure::usage(text));
    }
    let format = scan.format.unwrap_or(if json { Format::Jsonl } else { Format::Tsv });
    let (db, family) = store::open_family(&scan.family, Access::Read, false)?;
    let progress = Progress::bytes("scanning", None);
    let buffered = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, output);
    let mut writer = RecordWriter::new(buffered, format, scan.encoding);
    let mut iter = db.iter_cf(&family, &options)?;
    if scan.reverse {
        iter.seek_to_last();
    } else {
        iter.seek_to_first();
    }
    let (mut records, mut bytes) = (0, 0);
    while iter.valid() && scan.limit.is_none_or(|limit| records < limit) {
        writer.write(iter.key(), iter.value())?;
        records += 1;
        bytes += (iter.key().len() + iter.value().len()) as u64;
        if records % PROGRESS_RECORDS == 0 {
            progress.at(bytes);
        }
        if scan.reverse {
            iter.prev();
        } else {
            iter.next();
        }
    }
    // What was read before an error is printed before it.
    writer.finish()?;
    iter.status()?;
    Ok(())
}
