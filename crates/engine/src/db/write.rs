//! Writes: single entries and batches.
//!
//! 1. The sizes of keys and values are checked, and the existence of the column families.
//! 2. Values of column families with a `ttl` get the time of the write.
//! 3. Entries of a column family with regions go to the region that holds their key. A range
//!    tombstone goes to each region that it touches.
//! 4. `DbCore::write` admits and commits the write.

use std::borrow::Cow;
use std::sync::Arc;

use sateen_control::{SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchEntry, KEY_BYTES_MAX};

use super::{Db, check_family, check_merges, check_range};
use crate::batch::WriteBatch;
use crate::db::calls::Writing;
use crate::options::WriteOptions;
use crate::tree::families::ColumnFamilyData;
use crate::ttl;
use crate::write::{CommitPipeline, Logging, Payload};

/// Writing. Each call is atomic. With [`WriteOptions::default`], the `wal` option decides about
/// syncs.
impl Db {
    /// Sets `key` to `value` in the default column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.put(b"fig", [0xff; 4])?; // anything that is bytes
    /// assert_eq!(db.get("fig")?, Some(vec![0xff; 4]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if key or value are too large. `Background` if the database refuses
    /// writes.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (family, key, value) = (&self.core.tree.default_family, key.as_ref(), value.as_ref());
        self.single(family, ValueKind::Put, key, value, &WriteOptions::default())
    }

    /// Deletes `key` in the default column family, whether it exists or not.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.delete("fig")?;
    /// assert_eq!(db.get("fig")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let family = &self.core.tree.default_family;
        self.single(family, ValueKind::Delete, key.as_ref(), &[], &WriteOptions::default())
    }

    /// Merges `operand` into the value of `key` in the default column family, with the merge
    /// operator of its options. This reads nothing: the merge is done by reads and compactions.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, Merging, Options};
    ///
    /// let mut options = Options::default();
    /// let append = |_key: &[u8], before: Option<&[u8]>, operand: &[u8]| {
    ///     Some([before.unwrap_or_default(), operand].concat())
    /// };
    /// options.column_family.merge_operator = Some(Merging::associative("append", append));
    /// let db = Db::open(directory.path(), options)?;
    /// db.merge("fig", "1,")?;
    /// db.merge("fig", "2,")?;
    /// assert_eq!(db.get("fig")?.as_deref(), Some(&b"1,2,"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]. [`Error::NoMergeOperator`] if the column family has none.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (family, key, operand) =
            (&self.core.tree.default_family, key.as_ref(), operand.as_ref());
        check_merges(family)?;
        self.single(family, ValueKind::Merge, key, operand, &WriteOptions::default())
    }

    /// Deletes `key` in the default column family, as [`Db::delete`] does. RocksDB requires that
    /// the key was put at most once since its last deletion and was not merged. Sateen does not
    /// depend on that, and only stores which kind of deletion it was.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.single_delete("fig")?;
    /// assert_eq!(db.get("fig")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let family = &self.core.tree.default_family;
        let options = WriteOptions::default();
        self.single(family, ValueKind::SingleDelete, key.as_ref(), &[], &options)
    }

    /// Deletes all keys of the default column family from `begin` (inclusive) to `end` (exclusive)
    /// with one write, however many there are. Tables that hold only deleted keys are not read any
    /// more.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("log/1", "old")?;
    /// db.put("log/2", "new")?;
    /// db.delete_range("log/", "log/2")?;
    /// assert_eq!(db.get("log/1")?, None);
    /// assert_eq!(db.get("log/2")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]. `InvalidArgument` if `end` comes before `begin`. If they are equal, nothing
    /// is deleted.
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let family = &self.core.tree.default_family;
        self.delete_keys(family, begin.as_ref(), end.as_ref(), &WriteOptions::default())
    }

    /// Deletes a range of keys in a column family.
    pub(super) fn delete_keys(
        &self,
        family: &ColumnFamilyData,
        begin: &[u8],
        end: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        if !options.ignore_missing_column_families {
            check_family(family)?;
        }
        let mut batch = WriteBatch::new();
        batch.delete_range_in(family.id(), begin, end)?;
        self.write(&batch, options)
    }

    /// Returns the default column family, to be written with these options.
    ///
    /// ```
    /// use sateen::WriteOptions;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.writing(WriteOptions::sync()).put("fig", "1")?; // durable before it returns
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn writing<'a>(&'a self, options: impl Into<Cow<'a, WriteOptions>>) -> Writing<'a> {
        Writing::new(self, &self.core.tree.default_family, options.into())
    }

    /// Applies all of `batch` or nothing. With [`WriteOptions::ignore_missing_column_families`],
    /// entries of column families that do not exist are left out.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// use sateen::{WriteBatch, WriteOptions};
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put("walden", "lent")?;
    /// batch.to(&loans).put("walden", "Ishmael")?;
    /// db.write(&batch, &WriteOptions::sync())?; // both, durably, or neither
    /// assert!(db.contains_key("walden")? && loans.contains_key("walden")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::put`]. On `InvalidArgument` and `NoSuchColumnFamily` nothing was done.
    pub fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.write_by(batch, options, |pipeline, batch, logging| {
            pipeline.commit(&Payload::Batch(batch), logging)
        })
    }

    /// Applies all of `batch` or nothing, as [`Db::write`] does. In column families with the option
    /// `ttl` each value of the batch ends with the time of its write already: four bytes, the
    /// seconds since 1970, little-endian. RocksDB's `DBWithTTL` stores the same.
    ///
    /// # Errors
    /// As [`Db::write`]. `InvalidArgument` if a value does not end with a time.
    pub fn write_with_times(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        let value_bytes_max = self.core.env.options.load().value_bytes_max;
        let of = (Times::InBatch, value_bytes_max);
        self.write_present(batch, options, of, |pipeline, batch, logging| {
            pipeline.commit(&Payload::Batch(batch), logging)
        })
    }

    /// Writes `batch` as [`Db::write`] does, with another way to commit it.
    pub(crate) fn write_by(
        &self,
        batch: &WriteBatch,
        options: &WriteOptions,
        commit: impl Fn(&CommitPipeline, &WriteBatch, Logging) -> Result<SeqNo>,
    ) -> Result<()> {
        let value_bytes_max = self.core.env.options.load().value_bytes_max;
        self.write_present(batch, options, (Times::Now, value_bytes_max), commit)
    }

    /// Writes `batch`, which was accepted before, as [`Db::write`] does. Its values may be larger
    /// than `value_bytes_max`, which may have been lowered since.
    pub(crate) fn write_accepted(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.write_present(batch, options, (Times::Now, u64::MAX), |pipeline, batch, logging| {
            pipeline.commit(&Payload::Batch(batch), logging)
        })
    }

    /// Writes `batch`, or only the entries whose column families exist if `options` say so. `of`
    /// says where the times of values come from, and how large a value may be.
    fn write_present(
        &self,
        batch: &WriteBatch,
        options: &WriteOptions,
        of: (Times, u64),
        commit: impl Fn(&CommitPipeline, &WriteBatch, Logging) -> Result<SeqNo>,
    ) -> Result<()> {
        if !options.ignore_missing_column_families {
            return self.write_all(batch, options, of, &commit);
        }
        // If a column family is dropped meanwhile, nothing was applied, and the families are looked
        // up again.
        loop {
            match self.write_all(&self.of_present_families(batch)?, options, of, &commit) {
                Err(Error::NoSuchColumnFamily(_)) => {}
                done => return done,
            }
        }
    }

    /// Returns the entries of `batch` whose column families exist, and its log data.
    fn of_present_families(&self, batch: &WriteBatch) -> Result<WriteBatch> {
        let families = self.core.tree.families();
        batch.moved(|entry| {
            let family = families.by_id(entry.column_family);
            let is_present = family.is_some_and(|family| family.region().is_none());
            if is_present { vec![entry.column_family] } else { Vec::new() }
        })
    }

    /// Writes one entry to a column family.
    #[inline]
    pub(super) fn single_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        in_family(family, kind, options, (), || self.single(family, kind, key, value, options))
    }

    /// Applies all of `batch` or nothing.
    fn write_all(
        &self,
        batch: &WriteBatch,
        options: &WriteOptions,
        (times, value_bytes_max): (Times, u64),
        commit: impl Fn(&CommitPipeline, &WriteBatch, Logging) -> Result<SeqNo>,
    ) -> Result<()> {
        if batch.value_bytes_largest() as u64 > value_bytes_max {
            return Err(too_large(
                "a value",
                batch.value_bytes_largest(),
                value_bytes_max,
                " (value_bytes_max)",
            ));
        }
        let families = self.core.tree.families();
        let mut known = &self.core.tree.default_family;
        let (mut in_place, mut has_times) = (true, false);
        for entry in batch {
            if entry.column_family != known.id() {
                let family = families.by_id(entry.column_family);
                let family = family.filter(|family| family.region().is_none());
                let gone = || Error::NoSuchColumnFamily(families.name_of(entry.column_family));
                known = family.ok_or_else(gone)?;
            }
            if entry.kind == ValueKind::Merge {
                check_merges(known)?;
            }
            if times == Times::InBatch && known.has_times() && entry.kind.has_value() {
                ttl::check(entry.value).map_err(|_| untimed(entry.key))?;
            }
            if entry.kind == ValueKind::RangeDelete {
                check_range(known.comparator(), entry.key, entry.value)?;
                in_place &= known.region_begins().len() == 0;
            }
            has_times |= known.has_times();
            in_place &= Arc::ptr_eq(known.tree(entry.key), known);
        }
        let timed;
        let batch = if has_times && times == Times::Now {
            let has_times = |id| families.by_id(id).is_some_and(|family| family.has_times());
            timed = ttl::timed_batch(batch, has_times, &self.core.env.options.load().wall_clock)?;
            &timed
        } else {
            batch
        };
        // Each entry goes to the region that holds its key.
        let region = |entry: &BatchEntry<'_>| {
            let Some(family) = families.by_id(entry.column_family) else {
                return vec![entry.column_family];
            };
            if entry.kind == ValueKind::RangeDelete {
                let trees = family.trees_between(Some(entry.key), Some(entry.value));
                return trees.map(|tree| tree.id()).collect();
            }
            vec![family.tree(entry.key).id()]
        };
        let moved = if in_place { None } else { Some(batch.moved(region)?) };
        let batch = moved.as_ref().unwrap_or(batch);
        let (payload, bytes) = (Payload::Batch(batch), batch.len_bytes() as u64);
        self.core.write_by(&payload, bytes, options, |pipeline, logging| {
            commit(pipeline, batch, logging)
        })
    }

    /// Writes one entry to a column family, if nothing has to be waited for. Otherwise it does
    /// nothing and returns false.
    #[inline]
    pub(super) fn try_single_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<bool> {
        in_family(family, kind, options, true, || {
            self.with_payload(family, kind, key, value, |payload, bytes| {
                self.core.try_write(payload, bytes, options)
            })
        })
    }

    /// Writes one entry to a column family that is known to exist.
    #[inline]
    fn single(
        &self,
        family: &Arc<ColumnFamilyData>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        self.with_payload(family, kind, key, value, |payload, bytes| {
            self.core.write(payload, bytes, options)
        })
    }

    /// Calls `write` with an entry as the column family stores it, and its number of bytes.
    #[inline]
    fn with_payload<T>(
        &self,
        family: &Arc<ColumnFamilyData>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        write: impl FnOnce(&Payload<'_>, u64) -> Result<T>,
    ) -> Result<T> {
        if key.len() > KEY_BYTES_MAX {
            return Err(too_large("a key", key.len(), KEY_BYTES_MAX as u64, ""));
        }
        let value_bytes_max = self.core.env.options.load().value_bytes_max;
        if value.len() as u64 > value_bytes_max {
            return Err(too_large("a value", value.len(), value_bytes_max, " (value_bytes_max)"));
        }
        let timed;
        let value = if family.has_times() && kind.has_value() {
            timed = ttl::timed(value, &self.core.env.options.load().wall_clock)?;
            &timed
        } else {
            value
        };
        let payload = Payload::Single { family: family.tree(key).id(), kind, key, value };
        write(&payload, (key.len() + value.len()) as u64)
    }

    /// Makes all writes so far durable, whatever options they were made with.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.sync_wal()?; // it survives a loss of power from here on
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if the WAL cannot be synced. Then the WAL is not used any more, and writes are refused
    /// until [`Db::resume`] succeeds, or until there is space again if the disk was full.
    pub fn sync_wal(&self) -> Result<()> {
        self.core.env.check_writable("a sync")?;
        self.core.background.driver.sync_log().map(drop)
    }
}

/// Where the times of values come from, in column families that have them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// From the clock.
    Now,
    /// From the batch, whose values end with them.
    InBatch,
}

/// Returns the error for a value that should end with a time.
#[cold]
fn untimed(key: &[u8]) -> Error {
    let key = key.escape_ascii();
    let text = format!("the value of the key {key} does not end with the time of its write");
    Error::InvalidArgument(text)
}

/// Calls `write` if an entry of `kind` may be written to `family`. A family that is gone counts as
/// written to, with `done`, if the options ignore that.
#[inline]
fn in_family<T>(
    family: &Arc<ColumnFamilyData>,
    kind: ValueKind,
    options: &WriteOptions,
    done: T,
    write: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let written = check_family(family).and_then(|()| {
        if kind == ValueKind::Merge {
            check_merges(family)?;
        }
        write()
    });
    match written {
        Err(Error::NoSuchColumnFamily(_)) if options.ignore_missing_column_families => Ok(done),
        written => written,
    }
}

/// `option` names the option that sets the limit, if there is one.
#[cold]
fn too_large(what: &str, bytes: usize, limit: u64, option: &str) -> Error {
    let text = format!("{what} of {bytes} bytes exceeds the limit of {limit} bytes{option}");
    Error::InvalidArgument(text)
}
