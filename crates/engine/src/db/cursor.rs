//! The cursor: the entries of a column family in order, as of one moment.
//!
//! [`Cursor::new`]:
//!
//! 1. It checks the bounds and finds the trees that they touch: the family itself, or regions.
//! 2. It pins the super version of each, then takes a sequence number. With several trees, it takes
//!    a snapshot before.
//! 3. [`OpenForRead`] opens memtables and tables as one [`Source`].
//! 4. Entries of a batch or transaction, if there are any, are merged above it ([`Overlay`]).
//! 5. A [`DbIter`] over that source shows what the sequence number sees.
//!
//! On top of it, each move ends the iteration where a prefix ends ([`PrefixSeek`]), and skips
//! expired values (`end_move`), and is charged to a table for seek compaction. Moves are counted.

use std::sync::Arc;

use sateen_control::ColumnFamilyId;
use sateen_control::version::TableMeta;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::iter::bounds::IterBounds;
use sateen_store::table::OnMiss;
use sateen_store::table::{TableIterOptions, ValueMode};

use super::behind::Explainer;
use super::overlay::Overlay;
use super::sources::{OpenForRead, Source};
use crate::core::DbCore;
use crate::live_table::LiveTable;
use crate::metrics::{IterDone, OpTimer, Operation};
use crate::options::ReadOptions;
use crate::read::charging::ScanCharging;
use crate::read::db_iter::{DbIter, DbIterStats};
use crate::read::prefix_seek::PrefixSeek;
use crate::read::regions_iter::RegionsIter;
use crate::snapshot::Snapshot;
use crate::tree::families::{ColumnFamilyData, PREPARED};
use crate::tree::super_version::SuperVersion;
use crate::ttl::{self, TIME_BYTES};

/// A cursor over the keys of a column family in order, as of its creation or of the snapshot in its
/// options. What it sees is kept until it is dropped.
///
/// It stands on no key until the first seek. After an error it is not `valid`, and
/// [`Cursor::status`] returns the error, so that a failure is not taken for the end of the data.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// db.put("a", "1")?;
/// db.put("b", "2")?;
/// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
/// cursor.seek_to_first();
/// while cursor.valid() {
///     println!("{:?} = {:?}", cursor.key(), cursor.value());
///     cursor.next();
/// }
/// cursor.status()?;
/// # Ok::<(), sateen::Error>(())
/// ```
pub struct Cursor {
    inner: DbIter<Source>,
    core: Arc<DbCore>,
    /// The column family, for traces; `None` if clients do not see it.
    traced: Option<ColumnFamilyId>,
    /// The super version that it reads. With regions, the source holds theirs.
    _pinned: Option<Arc<SuperVersion>>,
    prefix: Option<PrefixSeek>,
    /// Number of bytes at the end of each stored value that hold its time and are not shown.
    time_bytes: usize,
    /// The second before which values have expired and are not shown.
    hidden_before: u64,
    /// Number of calls of `next` and `prev`.
    steps: u64,
    /// The charges for seek compaction, if that is on.
    charging: Option<Box<ScanCharging>>,
}

impl Cursor {
    /// Returns a cursor over `family`, as of the snapshot in `options` or of now. Fails if the
    /// bounds are reversed, or if a prefix is given and keys are not compared as bytes.
    pub(crate) fn new(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
    ) -> Result<Cursor> {
        Cursor::over(core, family, options, None)
    }

    /// Returns a cursor over `family`, below the entries of `overlay`.
    pub(crate) fn over(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
        overlay: Option<&Overlay>,
    ) -> Result<Cursor> {
        core.env.check_open()?;
        if let (Some(lower), Some(upper)) = (&options.lower_bound, &options.upper_bound)
            && family.comparator().compare(lower, upper).is_gt()
        {
            return Err(Error::reversed_bounds(lower, upper));
        }
        let comparator = family.comparator();
        let bound = |key: &Option<Vec<u8>>| key.as_deref().map(|key| comparator.key(key));
        let mut bounds = IterBounds::new(bound(&options.lower_bound), bound(&options.upper_bound));
        if let Some(prefix) = &options.prefix {
            if !comparator.is_bytewise() {
                return Err(Error::InvalidArgument(format!(
                    "prefix: keys of the column family {} are compared by {}, not as bytes",
                    family.name(),
                    comparator.name()
                )));
            }
            bounds = bounds.with_prefix(prefix);
        }
        let (lower, upper) = (bounds.lower(), bounds.upper());
        let mut trees = family.trees_between(lower, upper).peekable();
        // Several super versions are taken one after the other, so they have no moment in common. A
        // snapshot from before the first of them is one that all can show.
        let several = options.snapshot.is_none() && family.region_begins().len() > 0;
        let view = core.view(options)?;
        let before = several.then(|| core.writes.snapshot());
        // The super versions first, then the sequence number.
        let first = trees.next().unwrap_or(family).pin_super_version();
        let regions: Vec<_> = trees
            .filter_map(|tree| Some((tree.region()?.begin.clone(), tree.pin_super_version())))
            .collect();
        let seqno = before.as_ref().map(Snapshot::seqno).or(options.seqno());
        let seqno = seqno.unwrap_or_else(|| core.writes.pipeline.visible_seqno());
        drop(view);
        let table_options = TableIterOptions {
            readahead_bytes: options.readahead_bytes,
            values: ValueMode::OnDemand,
            ..TableIterOptions::client(
                Some(core.tree.blocks.clone()),
                OnMiss::of(options.fill_cache, options.memory_only),
            )
        };
        let (prefix, wanted) = match family.options().prefix_extractor.clone() {
            Some(by) => {
                let same_as_start = options.prefix_same_as_start;
                let seek = PrefixSeek::new(by, bounds.clone(), same_as_start, comparator);
                (Some(seek.0), Some(seek.1))
            }
            None => (None, None),
        };
        // The client's filter is asked once for each table, not at each seek.
        let unwanted = options.table_filter.as_ref().map(|filter| {
            let pinned = std::iter::once(&first).chain(regions.iter().map(|(_, pinned)| pinned));
            let name = core.tree.name_of(family);
            let wanted = |level, table: &TableMeta| {
                let (vfs, directory) = (core.env.vfs.as_ref(), &core.env.directory);
                filter.wants(&LiveTable::of(vfs, directory, &name, level, table))
            };
            let tables = pinned.flat_map(|pinned| pinned.version.tables());
            let unwanted = tables.filter(|(level, _, table)| !wanted(*level, table));
            Arc::new(unwanted.map(|(.., table)| table.id).collect())
        });
        let open = OpenForRead {
            unwanted,
            core: core.clone(),
            options: table_options,
            scans: family.scans().clone(),
            wanted,
            as_of: seqno,
            ignore_ranges: options.ignore_range_deletions,
        };
        let (source, pinned) = if regions.is_empty() {
            (Source::from(open.tree(&first, &bounds)), Some(first))
        } else {
            let (begins, others): (Vec<_>, Vec<_>) = regions.into_iter().unzip();
            let pinned: Vec<_> = std::iter::once(first).chain(others).collect();
            let of_regions = bounds.clone();
            let open = move |at: usize| open.tree(&pinned[at], &of_regions);
            (Source::Regions(RegionsIter::new(Box::new(open), begins)), None)
        };
        let time = family.has_times().then(|| ttl::time(&core.env.options.load().wall_clock));
        let (source, as_of) = match overlay {
            Some(overlay) => (overlay.over(source, seqno, time, comparator), overlay.through),
            None => (source, seqno),
        };
        let inner = DbIter::new(source, as_of, bounds, family.options().stored_merging())
            .compared_by(comparator)
            .skipping_at_most(options.skipped_max);
        let time_bytes = if family.has_times() { TIME_BYTES } else { 0 };
        Ok(Cursor {
            inner,
            prefix,
            time_bytes,
            hidden_before: core.hidden_before(family),
            core: core.clone(),
            traced: (family.name() != PREPARED).then(|| family.id()),
            _pinned: pinned,
            steps: 0,
            charging: ScanCharging::new(family),
        })
    }

    /// Returns true if the cursor stands on a key.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// assert!(!cursor.valid(), "not before the first seek");
    /// cursor.seek("b");
    /// assert!(cursor.valid());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn valid(&self) -> bool {
        self.inner.valid()
    }

    /// Returns the error that made the cursor invalid, if one did.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek("d");
    /// assert!(!cursor.valid());
    /// cursor.status()?; // the end, not an error
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.inner.status().map_err(|error| Explainer { core: &self.core }.explain(error))
    }

    /// Moves to the first key within the bounds.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_to_first();
    /// assert_eq!(cursor.key(), b"a");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn seek_to_first(&mut self) {
        self.core.env.metrics.timeline.iterated();
        let begun = self.begin_seek();
        self.trace_end(false);
        self.prefix.iter_mut().for_each(PrefixSeek::seek_to_end);
        self.inner.seek_to_first();
        self.end_move(false);
        self.start_at_end();
        self.end_seek(begun);
    }

    /// Moves to the last key within the bounds.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn seek_to_last(&mut self) {
        self.core.env.metrics.timeline.iterated();
        let begun = self.begin_seek();
        self.trace_end(true);
        self.prefix.iter_mut().for_each(PrefixSeek::seek_to_end);
        self.inner.seek_to_last();
        self.end_move(true);
        self.start_at_end();
        self.end_seek(begun);
    }

    /// Moves to the first key at or after `key`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek("b");
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.core.env.metrics.timeline.iterated();
        let begun = self.begin_seek();
        self.trace_seek(key.as_ref(), false);
        self.prefix.iter_mut().for_each(|prefix| prefix.seek(key.as_ref(), false));
        self.inner.seek(key.as_ref());
        self.end_with_prefix();
        self.end_move(false);
        self.end_seek(begun);
    }

    /// Moves to the last key at or before `key`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_for_prev("b");
    /// assert_eq!(cursor.key(), b"a");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        self.core.env.metrics.timeline.iterated();
        let begun = self.begin_seek();
        self.trace_seek(key.as_ref(), true);
        self.prefix.iter_mut().for_each(|prefix| prefix.seek(key.as_ref(), true));
        self.inner.seek_for_prev(key.as_ref());
        self.end_with_prefix();
        self.end_move(true);
        self.end_seek(begun);
    }

    /// Moves to the next key. Does nothing unless `valid`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_to_first();
    /// cursor.next();
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[inline]
    pub fn next(&mut self) {
        if self.inner.valid() {
            if perf::is_on() { self.step_counted(false) } else { self.step(false) }
        }
    }

    /// Moves to the previous key. Does nothing unless `valid`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_to_last();
    /// cursor.prev();
    /// assert_eq!(cursor.key(), b"a");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[inline]
    pub fn prev(&mut self) {
        if self.inner.valid() {
            if perf::is_on() { self.step_counted(true) } else { self.step(true) }
        }
    }

    #[inline]
    fn step(&mut self, backwards: bool) {
        self.steps += 1;
        self.step_once(backwards);
        self.end_move(backwards);
    }

    #[inline]
    fn step_once(&mut self, backwards: bool) {
        if self.prefix.is_some() {
            self.step_by_prefix(backwards);
        } else if backwards {
            self.inner.prev();
        } else {
            self.inner.next();
        }
    }

    /// Ends a move: moves on while the cursor stands on an expired value, and charges what was
    /// read. A value without the time that it should have is an error, as for a get.
    #[inline]
    fn end_move(&mut self, backwards: bool) {
        if self.time_bytes > 0 {
            self.pass_all_expired(backwards);
        }
        if self.charging.is_some() {
            self.charge();
        }
    }

    /// Charges the entry that the cursor stands on.
    fn charge(&mut self) {
        let (key, value) = (self.inner.key(), self.inner.value());
        if let Some(charging) = &mut self.charging {
            let bytes = (key.len() + value.len()) as u64;
            charging.passes(key, bytes, &self.core.tree.tables);
        }
    }

    fn pass_all_expired(&mut self, backwards: bool) {
        while self.inner.valid() && ttl::is_from_before(self.inner.value(), self.hidden_before) {
            self.step_once(backwards);
        }
        if self.inner.valid()
            && let Err(error) = ttl::check(self.inner.value())
        {
            self.inner.fail(error);
        }
    }

    /// Moves one key, and counts for the thread's performance context.
    #[cold]
    fn step_counted(&mut self, backwards: bool) {
        let before = self.inner.stats();
        self.step(backwards);
        let moved = if backwards { PerfMetric::IterPrevCount } else { PerfMetric::IterNextCount };
        self.count(moved, &before);
    }

    /// Records a seek, if a trace is recorded.
    #[inline]
    fn trace_seek(&self, key: &[u8], backwards: bool) {
        let tracing = &self.core.env.tracing;
        if tracing.is_on()
            && let Some(family) = self.traced
        {
            tracing.seek(family, key, self.inner.bounds(), backwards);
        }
    }

    /// Records a seek to the first or last key as one to the bound there. The first key without a
    /// bound is at or after the empty one, if keys are compared as bytes. RocksDB records neither.
    #[inline]
    fn trace_end(&self, last: bool) {
        if !self.core.env.tracing.is_on() {
            return;
        }
        let (lower, upper) = self.inner.bounds();
        let first = || lower.or(self.inner.is_bytewise().then_some(&[][..]));
        if let Some(key) = if last { upper } else { first() } {
            self.trace_seek(key, last);
        }
    }

    fn begin_seek(&self) -> (OpTimer, perf::Timed, DbIterStats) {
        let timed = perf::time(PerfMetric::SeekInternalSeekTime);
        (self.core.env.metrics.start(Operation::Seek), timed, self.inner.stats())
    }

    fn end_seek(&self, (timer, timed, before): (OpTimer, perf::Timed, DbIterStats)) {
        self.core.env.metrics.record_seek(timer);
        drop(timed);
        if perf::is_on() {
            self.count(PerfMetric::IterSeekCount, &before);
        }
    }

    /// Counts a finished move for the thread's performance context.
    #[cold]
    #[inline(never)]
    fn count(&self, moved: PerfMetric, before: &DbIterStats) {
        perf::add(moved, 1);
        perf::add(PerfMetric::IterReadBytes, (self.key().len() + self.value().len()) as u64);
        let now = self.inner.stats();
        let (deletions, newer) = (now.deletions - before.deletions, now.newer - before.newer);
        let skipped = (now.skipped - before.skipped).saturating_sub(deletions + newer);
        // A step also passes the entry that the cursor stood on.
        let left = u64::from(moved != PerfMetric::IterSeekCount);
        perf::add(PerfMetric::InternalKeySkippedCount, skipped + left);
        perf::add(PerfMetric::InternalDeleteSkippedCount, deletions);
        perf::add(PerfMetric::InternalRecentSkippedCount, newer);
        perf::add(PerfMetric::InternalMergeCount, now.operands - before.operands);
    }

    /// Moves one key. Seeks to the current key first if tables were skipped that the step may need.
    fn step_by_prefix(&mut self, backwards: bool) {
        if self.prefix.as_mut().is_some_and(|prefix| prefix.leaves(backwards)) {
            let here = self.inner.key().to_vec();
            self.inner.seek(&here);
        }
        if backwards {
            self.inner.prev();
        } else {
            self.inner.next();
        }
        self.end_with_prefix();
    }

    /// Notes the prefix of the key that a seek to the first or last key found.
    fn start_at_end(&mut self) {
        if let Some(prefix) = &mut self.prefix
            && self.inner.valid()
        {
            prefix.found(self.inner.key());
        }
    }

    /// Ends iteration if the cursor has left the prefix that it must stay in.
    fn end_with_prefix(&mut self) {
        if let Some(prefix) = &self.prefix
            && self.inner.valid()
            && prefix.ends_before(self.inner.key())
        {
            self.inner.end();
        }
    }

    /// Returns the key, which lives until the next move. Empty unless `valid`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Returns the value, which lives until the next move. Empty unless `valid`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("a", "1")?;
    /// db.put("c", "2")?;
    /// let mut cursor = db.cursor(&sateen::ReadOptions::default())?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.value(), b"2");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        let stored = self.inner.value();
        stored.get(..stored.len().saturating_sub(self.time_bytes)).unwrap_or_default()
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let stats = self.inner.stats();
        self.core.env.metrics.record_iter(IterDone {
            steps: self.steps,
            skipped: stats.skipped,
            reseeks: stats.reseeks,
        });
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}
