//! The cursor: a merge of memtables and tables, seen at one moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use sateen_control::version::{Run, TableMeta};
use sateen_control::{IoClass, SeqNo, TableId, UserKey};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::base::tier::MemoryOnly;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::covered_iter::{CoveredIter, SeenRanges};
use sateen_store::iter::level_iter::{LevelIter, Look, OpenTable};
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::memtable::MemTableIter;
use sateen_store::table::{TableIter, TableIterOptions};

use super::behind::Explainer;
use crate::core::DbCore;
use crate::live_table::LiveTable;
use crate::metrics::{FiltersAsked, IterDone, OpTimer, Operation};
use crate::options::ReadOptions;
use crate::read::db_iter::{DbIter, DbIterStats};
use crate::read::prefix_seek::{PrefixSeek, SharedWanted};
use crate::read::regions_iter::RegionsIter;
use crate::snapshot::Snapshot;
use crate::tree::families::ColumnFamilyData;
use crate::tree::super_version::SuperVersion;
use crate::ttl::{self, TIME_BYTES};

/// Opens tables for a client's iterator.
#[derive(Clone)]
pub(crate) struct OpenForRead {
    core: Arc<DbCore>,
    options: TableIterOptions,
    as_of: SeqNo,
    ignore_ranges: bool,
    wanted: Option<SharedWanted>,
    /// Tables that are passed by.
    unwanted: Option<Arc<BTreeSet<TableId>>>,
}

impl OpenForRead {
    /// All that `pinned` has within `bounds`, in order.
    fn tree(&self, pinned: &SuperVersion, bounds: &IterBounds) -> Tree {
        let ranges = if self.ignore_ranges { None } else { pinned.ranges() };
        let seen = ranges.map(|ranges| SeenRanges { ranges: Arc::new(ranges), as_of: self.as_of });
        let mut children: Vec<Child> = std::iter::once(&pinned.active)
            .chain(&pinned.sealed)
            .filter(|memtable| memtable.entries() > 0)
            .map(|memtable| Child::Memory(memtable.iter()))
            .collect();
        for level in pinned.version.levels() {
            for run in level.runs() {
                let iter = LevelIter::new(run.clone(), self.clone(), bounds.clone());
                children.push(Child::Run(iter.without(seen.clone())));
            }
        }
        let merged = MergingIter::new(children, pinned.version.comparator());
        match seen {
            Some(seen) => Tree::Covered(CoveredIter::new(merged, seen)),
            None => Tree::Whole(merged),
        }
    }
}

impl OpenTable for OpenForRead {
    type Iter = TableIter;
    fn open(&self, table: &Arc<TableMeta>) -> Result<TableIter> {
        Ok(self.core.tree.tables.get(table, IoClass::Client)?.iter(self.options.clone()))
    }

    fn look(&self, table: &Arc<TableMeta>, backwards: bool) -> Result<Look> {
        if self.unwanted.as_ref().is_some_and(|unwanted| unwanted.contains(&table.id)) {
            return Ok(Look::Pass);
        }
        let Some(wanted) = &self.wanted else { return Ok(Look::Open) };
        let wanted = wanted.load();
        let Some(wanted) = &*wanted else { return Ok(Look::Open) };
        let is_past = if backwards { wanted.is_behind(table) } else { wanted.is_before(table) };
        if is_past {
            return Ok(Look::Stop);
        }
        let said = wanted.ask(&*self.core.tree.tables.get(table, IoClass::Client)?);
        let passes = said == Some(false);
        let (checks, negatives) = (u64::from(said.is_some()), u64::from(passes));
        let asked = FiltersAsked { checks, negatives, ..FiltersAsked::default() };
        self.core.env.metrics.record_filters(&asked);
        perf::filters_asked(checks, negatives);
        Ok(if passes { Look::Pass } else { Look::Open })
    }
}

/// Whether a tree has an entry, a deletion included, from `smallest` to `largest`, as `pinned`
/// shows it. Ranges of keys that are deleted count if they touch that.
pub(crate) fn has_entries(
    core: &Arc<DbCore>,
    pinned: &SuperVersion,
    smallest: &UserKey,
    largest: &UserKey,
) -> Result<bool> {
    let open = OpenForRead {
        core: core.clone(),
        options: TableIterOptions::client(Some(core.tree.blocks.clone()), false),
        as_of: SeqNo::MAX,
        ignore_ranges: true,
        wanted: None,
        unwanted: None,
    };
    if let Some(ranges) = pinned.ranges()
        && ranges.iter().any(|range| range.touches(smallest.bytes(), largest.bytes()))
    {
        return Ok(true);
    }
    let mut tree = open.tree(pinned, &IterBounds::new(None, None));
    tree.seek(&key::seek_key(smallest.bytes(), SeqNo::MAX))?;
    Ok(tree.valid() && *key::user_key(tree.key()) <= *largest)
}

/// One of the sources of a merge: dispatched by a match, not through a pointer.
#[expect(clippy::large_enum_variant, reason = "few of them, and a box costs every step")]
pub(crate) enum Child {
    Memory(MemTableIter),
    Run(LevelIter<Run, OpenForRead>),
}

/// All of one tree that a reader sees.
pub(crate) enum Tree {
    Whole(MergingIter<Child>),
    Covered(CoveredIter<MergingIter<Child>>),
}

/// What an iterator goes through: one tree, or those of regions.
enum Source {
    Whole(MergingIter<Child>),
    Covered(CoveredIter<MergingIter<Child>>),
    Regions(RegionsIter<Tree>),
}

impl From<Tree> for Source {
    fn from(tree: Tree) -> Source {
        match tree {
            Tree::Whole(iter) => Source::Whole(iter),
            Tree::Covered(iter) => Source::Covered(iter),
        }
    }
}

/// What is one of several iterators is one.
macro_rules! one_of_them_is_an_iterator {
    ($which:ident: $($one:ident),+) => {
        impl InternalIterator for $which {
            #[inline]
            fn valid(&self) -> bool {
                match self {
                    $($which::$one(iter) => iter.valid()),+
                }
            }
            fn seek_to_first(&mut self) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.seek_to_first()),+
                }
            }
            fn seek_to_last(&mut self) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.seek_to_last()),+
                }
            }
            fn seek(&mut self, target: &[u8]) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.seek(target)),+
                }
            }
            fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.seek_for_prev(target)),+
                }
            }
            #[inline(always)]
            fn next(&mut self) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.next()),+
                }
            }
            #[inline]
            fn prev(&mut self) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.prev()),+
                }
            }
            fn leap(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
                match self {
                    $($which::$one(iter) => iter.leap(target, newer_than)),+
                }
            }
            fn leap_back(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
                match self {
                    $($which::$one(iter) => iter.leap_back(target, newer_than)),+
                }
            }
            #[inline]
            fn key(&self) -> &[u8] {
                match self {
                    $($which::$one(iter) => iter.key()),+
                }
            }
            #[inline]
            fn value(&self) -> &[u8] {
                match self {
                    $($which::$one(iter) => iter.value()),+
                }
            }
        }
    };
}

one_of_them_is_an_iterator!(Child: Memory, Run);
one_of_them_is_an_iterator!(Tree: Whole, Covered);
one_of_them_is_an_iterator!(Source: Whole, Covered, Regions);

/// A cursor over the keys of a column family in order, as they were when it was made (or at the
/// snapshot of its options). It keeps what it sees from being reclaimed until it is dropped.
///
/// It stands on no key until the first seek. After an error it is not `valid` and
/// [`Cursor::status`] says why: the end of the data and a failure are never the same answer.
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
    /// What it sees; that of regions is held by their source.
    _pinned: Option<Arc<SuperVersion>>,
    prefix: Option<PrefixSeek>,
    /// Behind each value, and not shown.
    time_bytes: usize,
    /// Values from before this second are not shown.
    hidden_before: u64,
    memory_only: bool,
    steps: u64,
}

impl Cursor {
    pub(crate) fn new(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
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
        // One after the other is no moment that they share: what is seen is of a moment before.
        let several = options.snapshot.is_none() && family.region_begins().len() > 0;
        let view = core.view(options)?;
        let before = several.then(|| core.writes.snapshot());
        // The order matters: see `SuperVersion`.
        let first = trees.next().unwrap_or(family).pin_super_version();
        let regions: Vec<_> = trees
            .filter_map(|tree| Some((tree.region()?.begin.clone(), tree.pin_super_version())))
            .collect();
        let seqno = before.as_ref().map(Snapshot::seqno).or(options.seqno());
        let seqno = seqno.unwrap_or_else(|| core.writes.pipeline.visible_seqno());
        drop(view);
        let table_options = TableIterOptions {
            readahead_bytes: options.readahead_bytes,
            ..TableIterOptions::client(Some(core.tree.blocks.clone()), options.fill_cache)
        };
        let (prefix, wanted) = match family.options().prefix_extractor.clone() {
            Some(by) => {
                let same_as_start = options.prefix_same_as_start;
                let seek = PrefixSeek::new(by, bounds.clone(), same_as_start, comparator);
                (Some(seek.0), Some(seek.1))
            }
            None => (None, None),
        };
        let unwanted = options.table_filter.as_ref().map(|filter| {
            let pinned = std::iter::once(&first).chain(regions.iter().map(|(_, pinned)| pinned));
            let name = core.tree.name_of(family);
            let wanted = |level, table: &TableMeta| {
                filter.wants(&LiveTable::of(&core.env.directory, &name, level, table))
            };
            let tables = pinned.flat_map(|pinned| pinned.version.tables());
            let unwanted = tables.filter(|(level, _, table)| !wanted(*level, table));
            Arc::new(unwanted.map(|(.., table)| table.id).collect())
        });
        let open = OpenForRead {
            unwanted,
            core: core.clone(),
            options: table_options,
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
        let inner = DbIter::new(source, seqno, bounds, family.options().stored_merging())
            .compared_by(comparator)
            .skipping_at_most(options.skipped_max);
        let time_bytes = if family.has_times() { TIME_BYTES } else { 0 };
        Ok(Cursor {
            inner,
            prefix,
            time_bytes,
            hidden_before: core.hidden_before(family),
            memory_only: options.memory_only,
            core: core.clone(),
            _pinned: pinned,
            steps: 0,
        })
    }

    /// True if the iterator stands on a key.
    #[inline]
    #[must_use]
    pub fn valid(&self) -> bool {
        self.inner.valid()
    }

    /// The error that made the iterator invalid, if one did.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.inner.status().map_err(|error| Explainer { core: &self.core }.explain(error))
    }

    /// Moves to the first key within the bounds.
    pub fn seek_to_first(&mut self) {
        self.core.env.metrics.timeline.iterated();
        let _tier = MemoryOnly::when(self.memory_only);
        let begun = self.begin_seek();
        self.prefix.iter_mut().for_each(PrefixSeek::seek_to_end);
        self.inner.seek_to_first();
        self.pass_expired(false);
        self.start_at_end();
        self.end_seek(begun);
    }

    /// Moves to the last key within the bounds.
    pub fn seek_to_last(&mut self) {
        self.core.env.metrics.timeline.iterated();
        let _tier = MemoryOnly::when(self.memory_only);
        let begun = self.begin_seek();
        self.prefix.iter_mut().for_each(PrefixSeek::seek_to_end);
        self.inner.seek_to_last();
        self.pass_expired(true);
        self.start_at_end();
        self.end_seek(begun);
    }

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.core.env.metrics.timeline.iterated();
        let _tier = MemoryOnly::when(self.memory_only);
        let begun = self.begin_seek();
        self.prefix.iter_mut().for_each(|prefix| prefix.seek(key.as_ref(), false));
        self.inner.seek(key.as_ref());
        self.end_with_prefix();
        self.pass_expired(false);
        self.end_seek(begun);
    }

    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        self.core.env.metrics.timeline.iterated();
        let _tier = MemoryOnly::when(self.memory_only);
        let begun = self.begin_seek();
        self.prefix.iter_mut().for_each(|prefix| prefix.seek(key.as_ref(), true));
        self.inner.seek_for_prev(key.as_ref());
        self.end_with_prefix();
        self.pass_expired(true);
        self.end_seek(begun);
    }

    /// Moves to the next key. Does nothing unless `valid`.
    #[inline]
    pub fn next(&mut self) {
        if self.inner.valid() {
            if perf::is_on() { self.step_counted(false) } else { self.step(false) }
        }
    }

    /// Moves to the key before. Does nothing unless `valid`.
    #[inline]
    pub fn prev(&mut self) {
        if self.inner.valid() {
            if perf::is_on() { self.step_counted(true) } else { self.step(true) }
        }
    }

    #[inline]
    fn step(&mut self, backwards: bool) {
        let _tier = MemoryOnly::when(self.memory_only);
        self.steps += 1;
        self.step_once(backwards);
        self.pass_expired(backwards);
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

    /// Goes on while the iterator stands on a value whose time is over.
    #[inline]
    fn pass_expired(&mut self, backwards: bool) {
        if self.hidden_before > 0 {
            self.pass_all_expired(backwards);
        }
    }

    fn pass_all_expired(&mut self, backwards: bool) {
        while self.inner.valid() && ttl::is_from_before(self.inner.value(), self.hidden_before) {
            self.step_once(backwards);
        }
    }

    #[cold]
    fn step_counted(&mut self, backwards: bool) {
        let before = self.inner.stats();
        self.step(backwards);
        let moved = if backwards { PerfMetric::IterPrevCount } else { PerfMetric::IterNextCount };
        self.count(moved, &before);
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

    /// Counts a move that is over.
    #[cold]
    #[inline(never)]
    fn count(&self, moved: PerfMetric, before: &DbIterStats) {
        perf::add(moved, 1);
        perf::add(PerfMetric::IterReadBytes, (self.key().len() + self.value().len()) as u64);
        let now = self.inner.stats();
        let (deletions, newer) = (now.deletions - before.deletions, now.newer - before.newer);
        let skipped = (now.skipped - before.skipped).saturating_sub(deletions + newer);
        // A step goes past what the iterator stood on.
        let left = u64::from(moved != PerfMetric::IterSeekCount);
        perf::add(PerfMetric::InternalKeySkippedCount, skipped + left);
        perf::add(PerfMetric::InternalDeleteSkippedCount, deletions);
        perf::add(PerfMetric::InternalRecentSkippedCount, newer);
        perf::add(PerfMetric::InternalMergeCount, now.operands - before.operands);
    }

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

    fn start_at_end(&mut self) {
        if let Some(prefix) = &mut self.prefix
            && self.inner.valid()
        {
            prefix.found(self.inner.key());
        }
    }

    fn end_with_prefix(&mut self) {
        if let Some(prefix) = &self.prefix
            && self.inner.valid()
            && prefix.ends_before(self.inner.key())
        {
            self.inner.end();
        }
    }

    /// The key; empty unless `valid`. Lives until the next move.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The value; empty unless `valid`. Lives until the next move.
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
