//! Small databases with files of every kind, and what is in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sateen::vfs::{CrashChoice, MemVfs, Vfs};
use sateen::{
    ColumnFamily, ColumnFamilyOptions, Db, Error, FlushOptions, Options, WriteBatch, WriteOptions,
};

use crate::support::common::{Contents, Random, appended, appending, as_vfs};

pub(super) const MARK: &[u8] = b"~commit";

/// What a golden database is made with.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) options: Options,
    /// What the first part of it was written with, before it was opened with those.
    pub(super) before: Option<Options>,
    /// The column families besides the default one.
    pub(super) families: Vec<(&'static str, ColumnFamilyOptions)>,
    pub(super) keys: u64,
    /// Commits that are compacted, and how often they are flushed.
    pub(super) compacted: usize,
    pub(super) flush_every: usize,
    /// Commits of one more run in level 0, and then of the log.
    pub(super) flushed: usize,
    pub(super) logged: usize,
}

impl Shape {
    /// Under these options, with another column family like the default one.
    pub(super) fn of(mut options: Options) -> Shape {
        let family = &mut options.column_family;
        family.memtable_bytes = 20 << 10;
        family.level_base_bytes = 2 << 10;
        family.table_bytes = 1 << 10;
        family.memtables_max = 6;
        family.merge_operator = Some(appending());
        let families = vec![("other", family.clone())];
        let (keys, compacted, flush_every, flushed, logged) = (90, 300, 20, 8, 24);
        let before = None;
        Shape { options, before, families, keys, compacted, flush_every, flushed, logged }
    }

    /// The same, but under these options at first.
    pub(super) fn begun_with(self, options: Options) -> Shape {
        Shape { before: Some(Shape::of(options).options), ..self }
    }

    /// The same, but as little of it as has everything.
    pub(super) fn small(self) -> Shape {
        let mut small =
            Shape { keys: 24, compacted: 12, flush_every: 12, flushed: 4, logged: 12, ..self };
        let families = small.families.iter_mut().map(|(_, family)| family);
        for family in families.chain([&mut small.options.column_family]) {
            family.level0_stripe_bytes = 0;
            family.flush_table_bytes = 0;
        }
        small
    }

    /// Tables in each of the places where tables can be: with others in a file, in files of their
    /// own, with their values in the log, and with their values in value files.
    pub(super) fn of_every_placement(options: Options) -> Shape {
        let mut shape = Shape::of(options).small();
        let family = &shape.options.column_family;
        let alone = ColumnFamilyOptions { compaction_files: false, ..family.clone() };
        let in_log = ColumnFamilyOptions { values_stay_in_log: true, ..family.clone() };
        let apart = ColumnFamilyOptions { value_separation_bytes: 8, ..family.clone() };
        shape.families = vec![("alone", alone), ("in log", in_log), ("apart", apart)];
        shape
    }

    /// With leave to make what column families are not there: a catalogue that has lost one must
    /// not get by with that.
    pub(super) fn open(&self, vfs: &MemVfs) -> sateen::Result<Db> {
        let options = Options { create_missing_column_families: true, ..self.options.clone() };
        Db::open_with(as_vfs(vfs), "/db", options, &self.families)
    }
}

/// A database that was not closed, and all that is known of it.
pub(super) struct Golden {
    pub(super) shape: Shape,
    pub(super) vfs: MemVfs,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Contents that its files, and those that are gone, had earlier; each once.
    pub(super) older: Vec<(String, Vec<u8>)>,
    /// The contents of all families after so many commits.
    pub(super) states: Vec<Vec<Contents>>,
    /// Commits that are in tables.
    pub(super) stored: usize,
    /// For each later commit: the log that it is in, and where it ends there.
    pub(super) ends: Vec<(usize, String, u64)>,
    /// Of each log: up to here its own later records prove that it was durable.
    pub(super) proven: BTreeMap<String, u64>,
    /// Logs of which a later log proves that they were durable to their end.
    pub(super) proven_whole: Vec<String>,
}

pub(super) fn path(file: &str) -> PathBuf {
    Path::new("/db").join(file)
}

pub(super) fn files_of(vfs: &MemVfs) -> BTreeMap<String, Vec<u8>> {
    let names = vfs.list(Path::new("/db")).unwrap();
    let names = names.iter().map(|name| name.to_str().unwrap().to_owned());
    names.map(|name| (name.clone(), vfs.contents(&path(&name)).unwrap())).collect()
}

fn newest_log(vfs: &MemVfs) -> (String, u64) {
    let logs = files_of(vfs).into_iter().filter(|(name, _)| name.ends_with(".wal"));
    let lengths = logs.map(|(name, bytes)| (name, bytes.len() as u64));
    lengths.filter(|(_, length)| *length > 64).max().unwrap_or_default()
}

struct Writer<'a> {
    db: &'a Db,
    families: Vec<ColumnFamily>,
    random: Random,
    keys: u64,
    states: Vec<Vec<Contents>>,
    older: Vec<(String, Vec<u8>)>,
}

impl Writer<'_> {
    fn commit(&mut self, sync: bool) -> Result<(), Error> {
        let number = self.states.len();
        let mut state = self.states[number - 1].clone();
        let mut batch = WriteBatch::new();
        for _ in 0..=self.random.below(4) {
            let place = self.random.below(self.keys);
            let key = format!("key{place:03}").into_bytes();
            let chosen = self.random.below(2 * self.families.len() as u64) as usize;
            let (family, contents) = (chosen.saturating_sub(self.families.len()), &mut state);
            let (family, contents) = (&self.families[family], &mut contents[family]);
            // Mostly of one length, so that there are blocks and records of one length, too.
            let length = if self.random.one_in(3) { self.random.below(60) as usize } else { 40 };
            let fill = vec![b'a' + (self.random.below(26) as u8); length];
            match self.random.below(16) {
                0..3 => {
                    batch.to(family).delete(&key)?;
                    contents.remove(&key);
                }
                3..5 => {
                    batch.to(family).merge(&key, &fill)?;
                    let merged = appended(contents.get(&key).map(Vec::as_slice), &fill);
                    contents.insert(key, merged);
                }
                5 if self.random.one_in(2) => {
                    let end = format!("key{:03}", place + 3).into_bytes();
                    batch.to(family).delete_range(&key, &end)?;
                    contents.retain(|other, _| *other < key || *other >= end);
                }
                _ => {
                    batch.to(family).put(&key, &fill)?;
                    contents.insert(key, fill);
                }
            }
        }
        // Long enough to stay in the log.
        let mark = format!("{number:040}").into_bytes();
        for (family, contents) in self.families.iter().zip(&mut state) {
            batch.to(family).put(MARK, &mark)?;
            contents.insert(MARK.to_vec(), mark.clone());
        }
        self.states.push(state);
        self.db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() })
    }

    fn remember(&mut self, vfs: &MemVfs) {
        self.older.extend(files_of(vfs));
    }
}

impl Golden {
    pub(super) fn new(seed: u64, shape: &Shape) -> Golden {
        Golden::make(seed, shape).unwrap()
    }

    fn make(seed: u64, shape: &Shape) -> Result<Golden, Error> {
        let vfs = MemVfs::new();
        let first = shape.before.as_ref().unwrap_or(&shape.options);
        let mut db = Db::open_with(as_vfs(&vfs), "/db", first.clone(), &[])?;
        let mut families = vec![db.default_column_family()];
        for (name, options) in &shape.families {
            families.push(db.create_column_family(name, options.clone())?);
        }
        let states = vec![vec![Contents::new(); families.len()]];
        let (random, older) = (Random::new(seed), Vec::new());
        let mut writer = Writer { db: &db, families, random, keys: shape.keys, states, older };
        for i in 0..shape.compacted {
            writer.commit(false)?;
            if i % shape.flush_every == 0 {
                writer.remember(&vfs);
                db.flush_all()?;
            }
            db.step()?;
        }
        db.flush_all()?;
        db.wait_idle()?;
        let Writer { mut families, random, keys, states, older, .. } = writer;
        if shape.before.is_some() {
            let names: Vec<_> = families.iter().map(|family| family.name().to_owned()).collect();
            drop(families);
            db.close()?;
            drop(db);
            db = shape.open(&vfs)?;
            families = names.iter().filter_map(|name| db.column_family(name)).collect();
        }
        let mut writer = Writer { db: &db, families, random, keys, states, older };
        for _ in 0..shape.flushed {
            writer.commit(false)?;
        }
        // One more run in level 0, and not compacted.
        writer.remember(&vfs);
        db.flush_all()?;
        let stored = writer.states.len() - 1;
        let (mut ends, mut proven) = (Vec::new(), BTreeMap::new());
        let mut synced: Option<(String, u64)> = None;
        for i in 0..shape.logged {
            if i == shape.logged / 2 {
                // A memtable that waits for its flush: its log is not the newest one.
                let nobody_waits = FlushOptions { wait: false };
                db.flush_with(&nobody_waits)?;
            }
            writer.commit(i % 5 == 3)?;
            writer.remember(&vfs);
            let (log, end) = newest_log(&vfs);
            if let Some((synced_log, synced_end)) = &synced
                && *synced_log == log
            {
                proven.insert(log.clone(), *synced_end);
            }
            if i % 5 == 3 {
                synced = Some((log.clone(), end));
            }
            ends.push((writer.states.len() - 1, log, end));
        }
        let newest = ends.last().map(|end| end.1.clone()).unwrap_or_default();
        let mut proven_whole = Vec::new();
        if proven.contains_key(&newest) {
            proven_whole =
                ends.iter().map(|end| end.1.clone()).filter(|log| *log != newest).collect();
            proven_whole.dedup();
        }
        let Writer { states, mut older, .. } = writer;
        let image = vfs.crash_image(CrashChoice::Everything);
        drop(db);
        let files = files_of(&image);
        let changed =
            |(name, bytes): &(String, Vec<u8>)| !bytes.is_empty() && files.get(name) != Some(bytes);
        older.sort();
        older.dedup();
        older.retain(changed);
        let shape = shape.clone();
        Ok(Golden { shape, vfs: image, files, older, states, stored, ends, proven, proven_whole })
    }

    /// The commits that were made.
    pub(super) fn all(&self) -> usize {
        self.states.len() - 1
    }

    /// It has what it is for.
    pub(super) fn assert_rich(&self) {
        let files = |kind: &str| self.files.keys().filter(|name| name.ends_with(kind)).count();
        assert!(files(".sat") >= 3, "{:?}", self.files.keys());
        for kind in ["CURRENT", "OPTIONS", "LOCK"] {
            assert!(self.files.contains_key(kind), "{kind}: {:?}", self.files.keys());
        }
        assert!(self.ends.iter().any(|end| end.1 != self.ends[0].1), "commits in two logs");
        assert!(!self.proven.is_empty(), "a synced commit with another behind it");
        println!(
            "{} bytes: {:?}",
            self.files.values().map(Vec::len).sum::<usize>(),
            self.files.iter().map(|(name, bytes)| (name, bytes.len())).collect::<Vec<_>>(),
        );
    }

    /// Tables with their values in a log, which is a file of theirs then.
    pub(super) fn has_tables_in_log(&self) -> bool {
        let mut tables = self.files.iter().filter(|(name, _)| name.ends_with(".sat"));
        tables.any(|(_, bytes)| bytes.starts_with(b"SATEENwl"))
    }
}
