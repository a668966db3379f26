//! Fuzz targets with whole databases in memory: the input is a sequence of calls, whose results are
//! compared with a map, or a file that is ingested.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use sateen_store::vfs::{CrashChoice, IoClass, MemVfs, OpenOptions, Vfs};

use crate::{
    CompactRangeOptions, Db, IngestOptions, Merging, Options, ReadOptions, Snapshot, SstFileWriter,
    WriteBatch, WriteOptions,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Longer sequences find nothing that shorter ones do not.
const CALLS_MAX: usize = 100;

/// Returns the result, or panics with the error.
fn must<T>(result: sateen_store::base::error::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Bytes that are consumed one by one. Behind the end there are zeros.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns one of few keys, some of which are prefixes of others.
    fn key(&mut self) -> Vec<u8> {
        let byte = self.byte();
        let key = [b'a' + byte % 5, b'a' + (byte >> 3) % 7, byte];
        key[..usize::from(byte >> 6).max(1)].to_vec()
    }

    fn value(&mut self) -> Vec<u8> {
        let byte = self.byte();
        vec![byte; usize::from(byte).pow(2) / 128]
    }
}

/// A database, and the map that says what it must contain.
struct Calls<'a> {
    input: Input<'a>,
    vfs: MemVfs,
    options: Options,
    db: Db,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

/// Runs a sequence of calls of a database, each encoded in a few bytes, and checks the database.
pub fn api(bytes: &[u8]) {
    let mut input = Input(bytes);
    let options = options(input.byte());
    let vfs = MemVfs::new();
    let db = must(Db::open_with(Arc::new(vfs.clone()), "/db", options.clone(), &[]));
    let (model, snapshots) = (Model::new(), Vec::new());
    let mut calls = Calls { input, vfs, options, db, model, snapshots };
    for _ in 0..CALLS_MAX {
        if calls.input.0.is_empty() {
            break;
        }
        calls.call();
    }
    calls.look(ReadOptions::default(), &calls.model);
    let report = must(calls.db.check(&mut |_, _| {}));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Returns options of one of several shapes, so small that a few calls reach every part.
fn options(shape: u8) -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.block_cache_bytes = 16 << 10;
    options.manifest_bytes_max = if shape & 1 == 0 { 1 } else { 4 << 10 };
    options.slice_bytes_max = 4 << 10;
    let family = &mut options.column_family;
    family.memtable_bytes = 1 << 10;
    family.level0_trigger = 2;
    family.level_base_bytes = 4 << 10;
    family.level_multiplier = 3.0;
    family.table_bytes = 1 << 10;
    family.block_bytes = 128;
    family.restart_interval = 2;
    family.compaction_files = shape & 2 == 0;
    family.values_stay_in_log = shape & 4 != 0;
    family.dynamic_level_bytes = shape & 8 == 0;
    if shape & 32 != 0 {
        family.value_separation_bytes = 8;
        family.value_garbage_collection = true;
        family.value_garbage_age_cutoff = 1.0;
        family.value_garbage_force_threshold = 0.3;
    }
    if shape & 16 != 0 {
        family.compaction_style = crate::CompactionStyle::Guards;
        family.dynamic_level_bytes = false;
    }
    family.merge_operator = Some(Merging::associative("append", |_, before, operand| {
        Some([before.unwrap_or_default(), operand].concat())
    }));
    options
}

impl Calls<'_> {
    fn call(&mut self) {
        match self.input.byte() % 16 {
            0..4 => {
                let (key, value) = (self.input.key(), self.input.value());
                must(self.db.put(&key, &value));
                self.model.insert(key, value);
            }
            4 => {
                let key = self.input.key();
                must(self.db.delete(&key));
                self.model.remove(&key);
            }
            5 => {
                let (key, operand) = (self.input.key(), self.input.value());
                must(self.db.merge(&key, &operand));
                self.model.entry(key).or_default().extend_from_slice(&operand);
            }
            6 => self.delete_range(),
            7 => self.batch(),
            8 => {
                let key = self.input.key();
                assert_eq!(must(self.db.get(&key)).as_ref(), self.model.get(&key), "{key:?}");
            }
            9 => self.iterate(),
            10 => must(self.db.flush()),
            11 => {
                let (from, to) = (self.input.key(), self.input.key());
                let options = CompactRangeOptions::default();
                let range = (from.clone().min(to.clone()), from.max(to));
                let family = self.db.default_column_family();
                must(family.compact_range(Some(&range.0), Some(&range.1), &options));
            }
            12 => {
                for _ in 0..self.input.byte() % 8 {
                    must(self.db.step());
                }
            }
            13 => self.snapshots.push((self.db.snapshot(), self.model.clone())),
            14 if !self.snapshots.is_empty() => {
                let nth = usize::from(self.input.byte()) % self.snapshots.len();
                let (snapshot, model) = self.snapshots.swap_remove(nth);
                self.look(ReadOptions::at(&snapshot), &model);
            }
            _ => self.open_again(),
        }
    }

    fn delete_range(&mut self) {
        let (begin, end) = (self.input.key(), self.input.key());
        let deleted = self.db.delete_range(&begin, &end);
        if begin > end {
            assert!(deleted.is_err(), "{begin:?} to {end:?}");
            return;
        }
        must(deleted);
        self.model.retain(|key, _| *key < begin || *key >= end);
    }

    fn batch(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..self.input.byte() % 5 {
            let key = self.input.key();
            match self.input.byte() % 3 {
                0 => {
                    must(batch.delete(&key));
                    self.model.remove(&key);
                }
                1 => {
                    let operand = self.input.value();
                    must(batch.merge(&key, &operand));
                    self.model.entry(key).or_default().extend_from_slice(&operand);
                }
                _ => {
                    let value = self.input.value();
                    must(batch.put(&key, &value));
                    self.model.insert(key, value);
                }
            }
        }
        let sync = self.input.byte().is_multiple_of(4);
        must(self.db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() }));
    }

    /// Moves an iterator to and fro within bounds, and compares it with a position in the map.
    fn iterate(&mut self) {
        let (one, other) = (self.input.key(), self.input.key());
        let (low, high) = (one.clone().min(other.clone()), one.max(other));
        let bounds = ReadOptions {
            lower_bound: Some(low.clone()),
            upper_bound: Some(high.clone()),
            ..ReadOptions::default()
        };
        let mut iter = must(self.db.cursor(&bounds));
        let within: Vec<_> =
            self.model.range((Bound::Included(low), Bound::Excluded(high))).collect();
        // The position in `within`; `None` behind the last entry and in front of the first one.
        let mut at = None;
        for _ in 0..self.input.byte() % 16 {
            match self.input.byte() % 6 {
                0 => {
                    iter.seek_to_first();
                    at = (!within.is_empty()).then_some(0);
                }
                1 => {
                    iter.seek_to_last();
                    at = within.len().checked_sub(1);
                }
                2 => {
                    let key = self.input.key();
                    iter.seek(&key);
                    let first = within.partition_point(|(other, _)| **other < key);
                    at = (first < within.len()).then_some(first);
                }
                3 => {
                    let key = self.input.key();
                    iter.seek_for_prev(&key);
                    at = within.partition_point(|(other, _)| **other <= key).checked_sub(1);
                }
                4 if at.is_some() => {
                    iter.next();
                    at = at.map(|at| at + 1).filter(|at| *at < within.len());
                }
                5 if at.is_some() => {
                    iter.prev();
                    at = at.and_then(|at| at.checked_sub(1));
                }
                _ => {}
            }
            let shown = iter.valid().then(|| (iter.key(), iter.value()));
            let expected = at.and_then(|at| within.get(at));
            let expected = expected.map(|(key, value)| (key.as_slice(), value.as_slice()));
            assert_eq!(shown, expected, "{within:?}");
        }
        must(iter.status());
    }

    /// Closes and opens the database, or opens what a killed process would leave.
    fn open_again(&mut self) {
        self.snapshots.clear();
        if self.input.byte().is_multiple_of(2) {
            must(self.db.close());
        } else {
            self.vfs = self.vfs.crash_image(CrashChoice::Everything);
        }
        let vfs = Arc::new(self.vfs.clone());
        self.db = must(Db::open_with(vfs, "/db", self.options.clone(), &[]));
    }

    /// Compares everything that an iterator with `options` shows with `model`.
    fn look(&self, options: ReadOptions, model: &Model) {
        let mut iter = must(self.db.cursor(&options));
        iter.seek_to_first();
        for (key, value) in model {
            assert!(iter.valid(), "{key:?} is not shown");
            assert_eq!((iter.key(), iter.value()), (key.as_slice(), value.as_slice()));
            iter.next();
        }
        assert!(!iter.valid(), "{:?} is shown", iter.valid().then(|| iter.key().to_vec()));
        must(iter.status());
    }
}

/// Ingests a file, then reads and compacts the database.
pub fn ingest(bytes: &[u8]) {
    let (vfs, path) = (MemVfs::new(), Path::new("/file.sst"));
    let written = vfs
        .open(path, OpenOptions::CREATE)
        .and_then(|file| file.write_at(bytes, 0, IoClass::Client));
    must(written.map_err(|error| sateen_store::base::error::Error::io("write", path, error)));
    let options = options(0);
    let db = must(Db::open_with(Arc::new(vfs), "/db", options, &[]));
    must(db.put("a", "1"));
    let family = db.default_column_family();
    if family.ingest(&[path], &IngestOptions::default()).is_err() {
        assert_eq!(must(db.get("a")).as_deref(), Some(&b"1"[..]), "nothing was taken in");
        return;
    }
    // The contents of the file may still be refused here.
    if let Ok(mut iter) = db.cursor(&ReadOptions::default()) {
        iter.seek_to_first();
        for _ in 0..bytes.len() {
            if !iter.valid() {
                break;
            }
            iter.next();
        }
        iter.seek_to_last();
    }
    let _read = db.get("a");
    let _looked_at = db.check(&mut |_, _| {});
    let _compacted = family.compact_range(None, None, &CompactRangeOptions::default());
}

/// Returns sequences that reach something, and a file that can be ingested.
pub(super) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    // A fixed formula instead of a random generator, so that the seeds are always the same.
    for (shape, step) in [(0_u8, 37_u8), (3, 101), (5, 59), (16, 83), (31, 7)] {
        let mut bytes = vec![shape];
        bytes.extend((0..200_u32).map(|nth| {
            let nth = nth.wrapping_mul(u32::from(step)) ^ (nth >> 3).wrapping_mul(31);
            (nth ^ (nth >> 7)) as u8
        }));
        seeds.push(("api", bytes));
    }
    let file = || -> sateen_store::base::error::Result<Vec<u8>> {
        let (vfs, path) = (MemVfs::new(), Path::new("/seed.sst"));
        let options = options(0);
        let mut writer = SstFileWriter::create_with(Arc::new(vfs.clone()), path, &options)?;
        for nth in 0..30_u8 {
            match nth % 5 {
                0 => writer.delete([b'k', nth])?,
                1 => writer.merge([b'k', nth], [nth; 5])?,
                _ => writer.put([b'k', nth], vec![nth; usize::from(nth)])?,
            }
        }
        writer.delete_range("x", "y")?;
        writer.finish()?;
        vfs.contents(path)
            .map_err(|error| sateen_store::base::error::Error::io("read", path, error))
    };
    seeds.push(("ingest", file().unwrap_or_default()));
    seeds
}
