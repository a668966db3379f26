//! `db import` reads another store's database through its own library and writes a new database.
//!
//! Invariant: the target appears when it is complete and durable. It is built in a [`Workplace`]
//! beside its place, checked, and then renamed.

mod source;

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use sateen::{
    ColumnFamily, DEFAULT_COLUMN_FAMILY, Db, ReadOptions, WriteBatch, WriteOptions, shown_path,
    text_of_bytes,
};
use sateen_peers::{LevelDb, RocksDb, Source};

use crate::copied::{BATCH_BYTES, Copied, Watch, summary, total};
use crate::failure::{Failure, Result};
use crate::place::Place;
use crate::progress::Progress;
use crate::store::{self, Access, Limits};
use crate::workplace::Workplace;
use source::SourceLock;

/// The store whose database is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    Rocksdb,
    Leveldb,
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Rocksdb => "RocksDB",
            Peer::Leveldb => "LevelDB",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Import a database of this store
    #[arg(value_enum)]
    peer: Peer,
    /// Read the database in this directory; no process may have it open for writing
    from: PathBuf,
    /// Create the new database in this directory
    to: PathBuf,
    /// Load this shared library to read the source: librocksdb.so or libleveldb.so
    #[arg(long, value_name = "FILE")]
    library: PathBuf,
    /// Open the source with these RocksDB options (NAME=VALUE;…), over its own
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    source_options: String,
    /// Compare all keys and values with the source after they are stored
    #[arg(long)]
    verify: bool,
    /// Start from the options of a profile: sateen, rocksdb, leveldb, …
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Set an option of the new database, such as block_bytes=16KiB; may be repeated
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = crate::place::bytes())]
    settings: Vec<String>,
}

pub(crate) fn run(import: &Import, json: bool, output: &mut dyn Write) -> Result<()> {
    let watch = Watch::begin(&import.to)?;
    let began = Instant::now();
    if import.peer == Peer::Leveldb && !import.source_options.is_empty() {
        let text = "--source-options: LevelDB has no options that reading needs";
        return Err(Failure::usage(text));
    }
    let workplace = Workplace::begin(&import.to, "import")?;
    let mut place = Place {
        db: workplace.database(),
        profile: import.profile.clone(),
        settings: import.settings.clone(),
    };
    if store::options(&place)?.column_family.ttl.is_some() {
        // Expired values would be missing when they are counted and compared.
        place.settings.push("ttl=0s".to_owned());
    }
    // Wrong options fail before anything is read.
    source::check_logs(store::options(&place)?.wal_dir.as_deref())?;
    let lock = SourceLock::take(&import.from, import.peer.name())?;
    let source = open(import, &workplace)?;
    let work = Work { import, source: source.as_ref(), watch };
    let imported = work.copy(&place)?;
    work.check(&place, &imported)?;
    drop(source);
    drop(lock);
    workplace.publish()?;
    let seconds = began.elapsed().as_secs_f64();
    report(import, &imported, seconds, json, output)
}

fn open(import: &Import, workplace: &Workplace) -> Result<Box<dyn Source>> {
    let spinner = Progress::spinner("opening");
    let (library, from, scratch) = (&import.library, &import.from, workplace.scratch());
    let source: Box<dyn Source> = match import.peer {
        Peer::Rocksdb => Box::new(RocksDb::open(library, from, &scratch, &import.source_options)?),
        Peer::Leveldb => Box::new(LevelDb::open(library, from, &scratch)?),
    };
    drop(spinner);
    Ok(source)
}

impl From<sateen_peers::Error> for Failure {
    fn from(error: sateen_peers::Error) -> Failure {
        match error {
            sateen_peers::Error::Usage(text) => Failure::usage(text),
            sateen_peers::Error::Failed(text) => Failure::failed(text),
        }
    }
}

/// Bytes of the time at the end of a value that RocksDB's `DBWithTTL` wrote.
const TIME_BYTES: usize = 4;

struct Work<'a> {
    import: &'a Import,
    source: &'a dyn Source,
    watch: Watch<'a>,
}

impl Work<'_> {
    /// Copies all column families, and makes them durable.
    fn copy(&self, place: &Place) -> Result<Vec<Copied>> {
        let db = store::open(place, Access::Create)?;
        let mut imported = Vec::new();
        for (number, name) in self.source.families().iter().enumerate() {
            let name = text_of_bytes(name);
            let family = if name == DEFAULT_COLUMN_FAMILY {
                db.default_column_family()
            } else {
                db.create_column_family(&name, db.options().column_family)?
            };
            imported.push(self.copy_family(&db, &family, number)?);
        }
        let _spinner = Progress::spinner("storing");
        db.flush_all()?;
        db.close()?;
        Ok(imported)
    }

    fn copy_family(&self, db: &Db, family: &ColumnFamily, number: usize) -> Result<Copied> {
        let limits = Limits::of(&db.options());
        let options = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        let mut batch = limits.batch();
        let mut batch_bytes = 0;
        let mut done = Copied { family: family.name().to_owned(), ..Copied::default() };
        let progress = Progress::keys("importing", self.source.keys_estimated(number));
        let mut cursor = self.source.cursor(number)?;
        while let Some((key, value)) = cursor.entry() {
            limits.check(key, value).map_err(|what| self.failed(family.name(), &what))?;
            batch.to(family).put(key, value)?;
            batch_bytes += done.count(key, value);
            if batch_bytes >= BATCH_BYTES {
                self.store(db, family, &batch, &options)?;
                batch.clear();
                batch_bytes = 0;
            }
            self.watch.look(&done, &progress)?;
            cursor.advance();
        }
        cursor.status().map_err(|error| self.failed(family.name(), &error.to_string()))?;
        self.store(db, family, &batch, &options)?;
        Ok(done)
    }

    /// Writes a batch. With a `ttl` the values have their times already.
    fn store(
        &self,
        db: &Db,
        family: &ColumnFamily,
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        db.write_with_times(batch, options).map_err(|error| match error {
            error @ sateen::Error::InvalidArgument(_) => {
                self.failed(family.name(), &error.to_string())
            }
            error => error.into(),
        })
    }

    /// Checks the number of stored keys, and with `--verify` each key and value.
    fn check(&self, place: &Place, imported: &[Copied]) -> Result<()> {
        let db = store::open(place, Access::Read)?;
        for (number, expected) in imported.iter().enumerate() {
            let name = &expected.family;
            let family = db.column_family(name).ok_or_else(|| self.failed(name, "is missing"))?;
            let tables = family.live_tables();
            let stored: u64 = tables.iter().map(|table| table.entries).sum();
            if stored != expected.keys {
                let text = format!("{} keys were read, but {stored} are stored", expected.keys);
                return Err(self.failed(name, &text));
            }
            if self.import.verify {
                self.compare(&family, number, expected.keys)?;
            }
        }
        Ok(db.close()?)
    }

    /// Compares all keys and values of a column family with those of the source.
    fn compare(&self, family: &ColumnFamily, number: usize, keys: u64) -> Result<()> {
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut stored = family.cursor(&options)?;
        let mut cursor = self.source.cursor(number)?;
        stored.seek_to_first();
        let time_bytes = if family.options().ttl.is_some() { TIME_BYTES } else { 0 };
        let differs = |key| self.failed(family.name(), &format!("differs at the key {key}"));
        self.watch
            .first_difference(&mut stored, &mut cursor, time_bytes, keys, Failure::from)?
            .map_or(Ok(()), |key| Err(differs(key)))
    }

    fn failed(&self, family: &str, what: &str) -> Failure {
        Failure::failed(format!(
            "{}, column family {family}: {what}",
            shown_path(&self.import.from)
        ))
    }
}

fn report(
    import: &Import,
    imported: &[Copied],
    seconds: f64,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    if json {
        let summary = summary(imported, seconds, import.verify);
        return Ok(writeln!(output, "{summary}")?);
    }
    let (keys, bytes) = total(imported);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    if imported.len() > 1 {
        for family in imported {
            let Copied { family, keys, bytes } = family;
            writeln!(output, "{family}: {keys} keys, {:.1} MiB", mib(*bytes))?;
        }
    }
    let how = if import.verify { ", all compared" } else { "" };
    let (rate, mib) = (mib(bytes) / seconds.max(1e-9), mib(bytes));
    let text = format!("imported {keys} keys, {mib:.1} MiB, in {seconds:.1} s ({rate:.1} MiB/s)");
    Ok(writeln!(output, "{text}{how}")?)
}
