//! Reads: single keys, many keys at one moment, iterators and snapshots.
//!
//! A point read (`Db::find`):
//!
//! 1. It takes the super version of the tree that holds the key, then a sequence number. The order
//!    matters (`tree/super_version.rs`).
//! 2. `SuperVersion::get` searches memtables and tables.
//! 3. `Explainer` tells damage from a table that another process has replaced.
//! 4. `shown` hides values that have expired, and removes the stored time.

use std::borrow::Cow;
use std::sync::Arc;

use sateen_store::base::error::Result;
use sateen_store::base::perf::{self, PerfMetric};

use super::behind::Explainer;
use super::{Db, check_family};
use crate::db::calls::Reading;
use crate::db::cursor::Cursor;
use crate::db::iter::{Iter, KeyRange};
use crate::metrics::Operation;
use crate::options::ReadOptions;
use crate::read::lookup::{Copy, Pin, PinnedSlice, ValueSink};
use crate::snapshot::Snapshot;
use crate::tree::families::ColumnFamilyData;
use crate::ttl;

/// Reading.
impl Db {
    /// Returns the value of `key` in the default column family, or `None` if there is none.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert_eq!(db.get("fig")?.as_deref(), Some(&b"1"[..]));
    /// assert_eq!(db.get("date")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` or `Corruption` if a table cannot be read.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.find(&self.core.tree.default_family, key.as_ref(), &ReadOptions::default(), Copy)
    }

    /// Returns what [`Db::get`] does, without copying a value that is in a block.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert_eq!(db.get_pinned("fig")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        self.find(&self.core.tree.default_family, key.as_ref(), &ReadOptions::default(), Pin)
    }

    /// Returns the values of many keys at one moment, in the order of `keys`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let values = db.multi_get(&["date", "fig"]);
    /// assert!(values[0].as_ref().unwrap().is_none() && values[1].as_ref().unwrap().is_some());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`], each key for itself.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<PinnedSlice>>> {
        self.find_many(&self.core.tree.default_family, keys, &ReadOptions::default())
    }

    /// Reads many keys at one moment, in key order, and blocks of them at the same time. The
    /// answers are in the order of `keys`.
    pub(super) fn find_many<K: AsRef<[u8]>>(
        &self,
        family: &Arc<ColumnFamilyData>,
        keys: &[K],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        let core = &self.core;
        let timer = core.env.metrics.start(Operation::MultiGet);
        let (mut hits, mut value_bytes) = (0, 0);
        let checked = core.env.check_open().and_then(|()| check_family(family));
        if core.env.tracing.is_on() && checked.is_ok() {
            core.env.tracing.multi_get(family.id(), keys);
        }
        let _blocks = core.env.point_reads(true, options);
        // In key order, neighbours share blocks.
        let mut order: Vec<usize> = (0..keys.len()).collect();
        let comparator = family.comparator();
        order.sort_unstable_by(|a, b| comparator.compare(keys[*a].as_ref(), keys[*b].as_ref()));
        // The super versions of several trees are taken one after the other, so they have no moment
        // in common. A snapshot from before the first of them is one that all can show.
        let several = options.snapshot.is_none() && family.region_begins().len() > 0;
        let (checked, view) = match checked.and_then(|()| core.view(options)) {
            Ok(view) => (Ok(()), view),
            Err(error) => (Err(error), None),
        };
        let before = several.then(|| core.writes.snapshot());
        // The super versions first, then the sequence number.
        let mut trees = Vec::new();
        let mut places = Vec::with_capacity(keys.len());
        for at in order {
            let tree = family.tree(keys[at].as_ref());
            if trees.last().is_none_or(|(last, _)| *last != tree.id()) {
                trees.push((tree.id(), tree.super_version()));
            }
            places.push((at, trees.len() - 1));
        }
        let seqno = before.as_ref().map(Snapshot::seqno).or(options.seqno());
        let seqno = seqno.unwrap_or_else(|| core.writes.pipeline.visible_seqno());
        drop(view);
        let lookup = core.lookup(family, options);
        let mut answers: Vec<Result<Option<PinnedSlice>>> = Vec::new();
        answers.resize_with(keys.len(), || Ok(None));
        match checked {
            Ok(()) => {
                let reads = places.iter().map(|(at, tree)| (&**trees[*tree].1, keys[*at].as_ref()));
                let found = lookup.find_all(reads, seqno);
                places.into_iter().zip(found).for_each(|((at, _), found)| answers[at] = found);
            }
            Err(error) => answers.fill_with(|| Err(error.clone())),
        }
        let hidden_before = core.hidden_before(family);
        for answer in &mut answers {
            let found = std::mem::replace(answer, Ok(None));
            let found = found.and_then(|found| shown::<Pin>(family, found, hidden_before));
            *answer = found.map_err(|error| Explainer { core }.explain(error));
            if let Ok(Some(value)) = answer {
                hits += 1;
                value_bytes += value.len() as u64;
            }
        }
        perf::add(PerfMetric::MultigetReadBytes, value_bytes);
        core.env.metrics.record_multi_get(timer, keys.len() as u64, hits, value_bytes);
        answers
    }

    /// Returns the value of `key`, in the form that `sink` makes of it.
    #[inline]
    pub(super) fn find<S: ValueSink>(
        &self,
        family: &Arc<ColumnFamilyData>,
        key: &[u8],
        options: &ReadOptions,
        sink: S,
    ) -> Result<Option<S::Out>> {
        let core = &self.core;
        core.env.check_open()?;
        if core.env.tracing.is_on() && !family.is_dropped() {
            core.env.tracing.get(family.id(), key);
        }
        let _blocks = core.env.point_reads(false, options);
        let timer = core.env.metrics.start(Operation::Get);
        let view = core.view(options)?;
        // The super version first, then the sequence number.
        let super_version = family.tree(key).super_version();
        let seqno = options.seqno().unwrap_or_else(|| core.writes.pipeline.visible_seqno());
        drop(view);
        let found = super_version.get(key, seqno, &core.lookup(family, options), sink);
        let found = found.map_err(|error| Explainer { core }.explain(error))?;
        let found = shown::<S>(family, found, core.hidden_before(family))?;
        let value_bytes = found.as_ref().map(|value| value.as_ref().len());
        if let Some(bytes) = value_bytes {
            perf::add(PerfMetric::GetReadBytes, bytes as u64);
        }
        core.env.metrics.record_get(timer, value_bytes);
        Ok(found)
    }

    /// Returns true if `key` was written after the snapshot of `options`.
    pub(super) fn is_superseded_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<bool> {
        let core = &self.core;
        core.env.check_open()?;
        let Some(since) = options.seqno() else { return Ok(false) };
        let _blocks = core.env.point_reads(false, options);
        let view = core.view(options)?;
        let super_version = family.tree(key).super_version();
        let visible = core.writes.pipeline.visible_seqno();
        drop(view);
        let newest = super_version.newest_seqno(key, visible, &core.lookup(family, options));
        Ok(newest.map_err(|error| Explainer { core }.explain(error))? > since)
    }

    /// Returns true if `key` has a value in the default column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "")?;
    /// assert!(db.contains_key("fig")? && !db.contains_key("date")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_pinned(key)?.is_some())
    }

    /// Returns the entries of a range of keys of the default column family, in order and from both
    /// ends ([`Iter`]).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("apple", "1")?;
    /// db.put("banana", "2")?;
    /// for entry in db.range("a".."b")? {
    ///     let (key, value) = entry?;
    ///     assert_eq!((&key[..], &value[..]), (&b"apple"[..], &b"1"[..]));
    /// }
    /// let last = db.range(..)?.next_back().transpose()?;
    /// assert_eq!(last.unwrap().0, b"banana");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins.
    pub fn range(&self, range: impl KeyRange) -> Result<Iter> {
        let options = ReadOptions::default();
        Iter::range(&self.core, &self.core.tree.default_family, &options, &range)
    }

    /// Returns the entries of the default column family whose keys begin with `prefix`, in order
    /// and from both ends.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// for key in ["user/1", "user/2", "users"] {
    ///     db.put(key, "")?;
    /// }
    /// assert_eq!(db.prefix("user/")?.count(), 2);
    /// let newest = db.prefix("user/")?.next_back().transpose()?;
    /// assert_eq!(newest.unwrap().0, b"user/2");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the column family does not compare keys as bytes.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        let options = ReadOptions::default();
        Iter::prefix(&self.core, &self.core.tree.default_family, &options, prefix.as_ref())
    }

    /// Returns all entries of the default column family, in order and from both ends.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let keys: Vec<_> = db.iter()?.map(|entry| entry.map(|(key, _)| key)).rev().collect();
    /// assert_eq!(keys.len(), 2);
    /// assert_eq!(keys[0].as_ref().unwrap(), b"b");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn iter(&self) -> Result<Iter> {
        self.range(..)
    }

    /// Returns the default column family as it was at `snapshot`, for reads such as
    /// `db.at(&snapshot).range(..)`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let snapshot = db.snapshot();
    /// db.put("fig", "2")?;
    /// assert_eq!(db.at(&snapshot).get("fig")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn at(&self, snapshot: &Snapshot) -> Reading<'_> {
        self.reading(ReadOptions::at(snapshot))
    }

    /// Returns the default column family, to be read with these options.
    ///
    /// ```
    /// use sateen::ReadOptions;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// // A scan that leaves the block cache to others:
    /// let scan = db.reading(ReadOptions { fill_cache: false, ..ReadOptions::default() });
    /// assert_eq!(scan.iter()?.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn reading<'a>(&'a self, options: impl Into<Cow<'a, ReadOptions>>) -> Reading<'a> {
        Reading::new(self, &self.core.tree.default_family, options.into())
    }

    /// Returns a cursor over the default column family. It must be moved to a key before use.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek("f");
    /// assert_eq!((cursor.key(), cursor.value()), (&b"fig"[..], &b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the options' bounds are reversed.
    pub fn cursor(&self, options: &ReadOptions) -> Result<Cursor> {
        Cursor::new(&self.core, &self.core.tree.default_family, options)
    }

    /// Returns a consistent view of all column families at this moment.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let snapshot = db.snapshot();
    /// db.put("fig", "2")?;
    /// assert_eq!(db.at(&snapshot).get("fig")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.core.writes.snapshot()
    }
}

/// Returns a value as clients see it: without its time, and `None` if it was written before the
/// second `hidden_before`.
#[inline]
fn shown<S: ValueSink>(
    family: &ColumnFamilyData,
    found: Option<S::Out>,
    hidden_before: u64,
) -> Result<Option<S::Out>> {
    if !family.has_times() {
        return Ok(found);
    }
    let Some(found) = found else { return Ok(None) };
    ttl::check(found.as_ref())?;
    if ttl::is_from_before(found.as_ref(), hidden_before) {
        return Ok(None);
    }
    Ok(Some(S::without_time(found)))
}
