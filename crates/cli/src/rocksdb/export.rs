//! `sateen rocksdb export` writes a new RocksDB database with the records of one of Sateen's.
//!
//! 1. Sateen's database is opened for reading, and RocksDB creates one in a [`Workplace`].
//! 2. Each column family is copied in key order, in batches that bypass RocksDB's WAL (`copy`).
//! 3. RocksDB flushes and closes its database. With `--verify` it opens it again, and both are
//!    compared (`compare`).
//! 4. A rename gives the database its name.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use sateen::{ColumnFamily, Cursor, Db, ReadOptions, bytes_of_text, shown_path};
use sateen_peers::{RocksDb, RocksDbWriter, Source};

use crate::copied::{BATCH_BYTES, Copied, Watch, summary, total};
use crate::failure::{Failure, Result};
use crate::place::Place;
use crate::progress::Progress;
use crate::store;
use crate::workplace::Workplace;

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    place: Place,
    /// Create the RocksDB database in this directory
    to: PathBuf,
    /// Load this shared library to write it: librocksdb.so
    #[arg(long, value_name = "FILE")]
    library: PathBuf,
    /// Give it these RocksDB options (NAME=VALUE;…)
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    target_options: String,
    /// Read it with RocksDB when it is complete, and compare all keys and values
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(export: &Export, json: bool, output: &mut dyn Write) -> Result<()> {
    let watch = Watch::begin(&export.to)?;
    let began = Instant::now();
    let db = store::open_as_it_was(&export.place)?;
    let names = families(&db, &export.place)?;
    let workplace = Workplace::begin(&export.to, "export")?;
    let work = Work { export, db: &db, watch };
    let exported = work.copy(&names, &workplace)?;
    if export.verify {
        work.compare(&exported, &workplace)?;
    }
    workplace.publish()?;
    report(export, &exported, began.elapsed().as_secs_f64(), json, output)
}

/// Returns the names of the column families. RocksDB orders keys by their bytes, so each must.
fn families(db: &Db, place: &Place) -> Result<Vec<String>> {
    let names = db.column_families();
    for name in &names {
        let Some(family) = db.column_family(name) else { continue };
        let order = family.comparator();
        if !order.is_bytewise() {
            let (at, family) = (shown_path(&place.db), sateen::shown(name));
            let text = format!(
                "{at}, column family {family}: ordered by {}; only keys in the order of their \
                 bytes can be exported",
                order.name()
            );
            return Err(Failure::failed(text));
        }
    }
    Ok(names)
}

struct Work<'a> {
    export: &'a Export,
    db: &'a Db,
    watch: Watch<'a>,
}

impl Work<'_> {
    /// Writes all column families, and makes them durable.
    fn copy(&self, names: &[String], workplace: &Workplace) -> Result<Vec<Copied>> {
        let Export { library, target_options, .. } = self.export;
        let mut target = RocksDbWriter::create(library, &workplace.database(), target_options)?;
        let mut exported = Vec::new();
        for name in names {
            exported.push(self.copy_family(&mut target, name)?);
        }
        let _spinner = Progress::spinner("storing");
        target.finish()?;
        Ok(exported)
    }

    fn copy_family(&self, target: &mut RocksDbWriter, name: &str) -> Result<Copied> {
        let number = target.family(&bytes_of_text(name))?;
        let (mut cursor, keys) = self.cursor(name)?;
        let progress = Progress::keys("exporting", Some(keys));
        let mut done = Copied { family: name.to_owned(), ..Copied::default() };
        let mut batch_bytes = 0;
        while cursor.valid() {
            let (key, value) = (cursor.key(), cursor.value());
            target.put(number, key, value)?;
            batch_bytes += done.count(key, value);
            if batch_bytes >= BATCH_BYTES {
                target.commit()?;
                batch_bytes = 0;
            }
            self.watch.look(&done, &progress)?;
            cursor.next();
        }
        cursor.status().map_err(|error| self.ended(error))?;
        target.commit()?;
        Ok(done)
    }

    /// Compares all keys and values with what RocksDB reads.
    fn compare(&self, exported: &[Copied], workplace: &Workplace) -> Result<()> {
        let library = &self.export.library;
        let target = RocksDb::open(library, &workplace.database(), &workplace.scratch(), "")?;
        for expected in exported {
            let bytes = bytes_of_text(&expected.family);
            let number = target.families().iter().position(|name| **name == *bytes);
            let Some(number) = number else {
                return Err(self.differs(&expected.family, "the column family is missing"));
            };
            let mut there = target.cursor(number)?;
            let (mut here, _) = self.cursor(&expected.family)?;
            let failed = |error| self.ended(error);
            let key =
                self.watch.first_difference(&mut here, &mut there, 0, expected.keys, failed)?;
            if let Some(key) = key {
                return Err(self.differs(&expected.family, &format!("the key {key}")));
            }
        }
        Ok(())
    }

    /// Returns a cursor at the first key of a column family, and about how many keys it has.
    fn cursor(&self, name: &str) -> Result<(Cursor, u64)> {
        let family: Option<ColumnFamily> = self.db.column_family(name);
        let family = family.ok_or_else(|| self.differs(name, "the column family is gone"))?;
        // Each block is read once or twice, so caching would only evict useful ones.
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut cursor = family.cursor(&options)?;
        cursor.seek_to_first();
        let keys = family.live_tables().iter().map(|table| table.entries).sum();
        Ok((cursor, keys))
    }

    /// Returns the failure of reading. A writer that replaced files ends an export, because its
    /// records must be from one moment.
    fn ended(&self, error: sateen::Error) -> Failure {
        let failure = Failure::from(error);
        if !failure.behind {
            return failure;
        }
        let path = shown_path(&self.export.place.db);
        let text = format!(
            "{}\nAnother process writes to {path}: make a checkpoint (`sateen db checkpoint`) and \
             export that",
            failure.message
        );
        Failure { message: text, ..failure }
    }

    fn differs(&self, family: &str, what: &str) -> Failure {
        let to = shown_path(&self.export.to);
        let family = sateen::shown(family);
        let text = format!("{to}, column family {family}: RocksDB reads something else: {what}");
        Failure::failed(format!("{text}. {to} was not created"))
    }
}

fn report(
    export: &Export,
    exported: &[Copied],
    seconds: f64,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    if json {
        let summary = summary(exported, seconds, export.verify);
        return Ok(writeln!(output, "{summary}")?);
    }
    let (keys, bytes) = total(exported);
    let mib = bytes as f64 / f64::from(1 << 20);
    let how = if export.verify { ", all compared" } else { "" };
    let families = exported.len();
    let text = format!("exported {keys} keys of {families} column families, {mib:.1} MiB");
    Ok(writeln!(output, "{text}, in {seconds:.1} s{how}")?)
}
