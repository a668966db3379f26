//! The sources of a cursor: the memtables and tables of one tree, or of the regions of a column
//! family.
//!
//! 1. [`OpenForRead::tree`] merges the memtables and the runs of a super version. If there are
//!    range tombstones, it hides what they cover.
//! 2. A [`LevelIter`] opens the tables of a run when it comes to them. It asks `look` first, which
//!    skips a table that the table filter or the prefix filter excludes.
//! 3. Entries that are not committed form a layer above all that ([`super::overlay`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use sateen_control::version::{Run, TableMeta};
use sateen_control::{SeqNo, TableId, UserKey};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::{key, perf};
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::covered_iter::{CoveredIter, SeenRanges};
use sateen_store::iter::level_iter::{LevelIter, Look, OpenTable};
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::memtable::MemTableIter;
use sateen_store::table::OnMiss;
use sateen_store::table::{LevelScans, ScanLengths, TableIter, TableIterOptions};

use super::overlay::Layer;
use crate::core::DbCore;
use crate::metrics::FiltersAsked;
use crate::read::prefix_seek::SharedWanted;
use crate::read::regions_iter::RegionsIter;
use crate::tree::super_version::SuperVersion;

/// Opens tables for a client's iterator.
#[derive(Clone)]
pub(crate) struct OpenForRead {
    pub(super) core: Arc<DbCore>,
    pub(super) options: TableIterOptions,
    /// What is known of the column family's scans.
    pub(super) scans: Arc<ScanLengths>,
    /// The sequence number at which range tombstones count.
    pub(super) as_of: SeqNo,
    /// True if range tombstones do not count.
    pub(super) ignore_ranges: bool,
    /// The prefix that the iterator stays in, if it does.
    pub(super) wanted: Option<SharedWanted>,
    /// Tables that the caller's table filter excludes.
    pub(super) unwanted: Option<Arc<BTreeSet<TableId>>>,
}

impl OpenForRead {
    /// Returns the entries of `pinned` within `bounds`, in order.
    pub(super) fn tree(&self, pinned: &SuperVersion, bounds: &IterBounds) -> Tree {
        let ranges = if self.ignore_ranges { None } else { pinned.ranges() };
        let seen = ranges.map(|ranges| SeenRanges { ranges: Arc::new(ranges), as_of: self.as_of });
        let mut children: Vec<Child> = std::iter::once(&pinned.active)
            .chain(&pinned.sealed)
            .filter(|memtable| memtable.entries() > 0)
            .map(|memtable| Child::Memory(memtable.iter()))
            .collect();
        for (at, level) in pinned.version.levels().iter().enumerate() {
            for run in level.runs() {
                let mut open = self.clone();
                open.options.scans = Some(LevelScans { lengths: self.scans.clone(), level: at });
                open.options.bounds = bounds.keys();
                let iter = LevelIter::new(run.clone(), open, bounds.clone());
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
        Ok(self
            .core
            .tree
            .tables
            .get_for_client(table, self.options.on_miss)?
            .iter(self.options.clone()))
    }

    fn look(&self, table: &Arc<TableMeta>, backwards: bool) -> Result<Look> {
        if self.unwanted.as_ref().is_some_and(|unwanted| unwanted.contains(&table.id)) {
            return Ok(Look::Pass);
        }
        let Some(wanted) = &self.wanted else { return Ok(Look::Open) };
        let wanted = wanted.load();
        let Some(wanted) = &*wanted else { return Ok(Look::Open) };
        // Beyond the prefix, no further table of the run can have it.
        let is_past = if backwards { wanted.is_behind(table) } else { wanted.is_before(table) };
        if is_past {
            return Ok(Look::Stop);
        }
        let said = wanted.ask(&*self.core.tree.tables.get_for_client(table, self.options.on_miss)?);
        let passes = said == Some(false);
        let (checks, negatives) = (u64::from(said.is_some()), u64::from(passes));
        let asked = FiltersAsked { checks, negatives, ..FiltersAsked::default() };
        self.core.env.metrics.record_filters(&asked);
        perf::filters_asked(checks, negatives);
        Ok(if passes { Look::Pass } else { Look::Open })
    }
}

/// Returns true if `pinned` has an entry from `smallest` to `largest`, a tombstone included. Range
/// tombstones count if they touch that range.
pub(crate) fn has_entries(
    core: &Arc<DbCore>,
    pinned: &SuperVersion,
    smallest: &UserKey,
    largest: &UserKey,
) -> Result<bool> {
    let open = OpenForRead {
        core: core.clone(),
        options: TableIterOptions::client(Some(core.tree.blocks.clone()), OnMiss::Read),
        scans: Arc::default(),
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

/// A source of a merge. A match dispatches it, which is faster than a pointer.
#[expect(clippy::large_enum_variant, reason = "few of them, and a box costs every step")]
pub(crate) enum Child {
    Memory(MemTableIter),
    Run(LevelIter<Run, OpenForRead>),
}

/// The merged entries of one tree.
pub(crate) enum Tree {
    /// Without range tombstones.
    Whole(MergingIter<Child>),
    /// Without the entries that range tombstones cover.
    Covered(CoveredIter<MergingIter<Child>>),
}

/// The entries that a cursor goes through: of one tree, or of several regions.
pub(crate) enum Source {
    Whole(MergingIter<Child>),
    Covered(CoveredIter<MergingIter<Child>>),
    Regions(RegionsIter<Tree>),
    /// One of the others, below entries that are not committed.
    Overlaid(MergingIter<Layer>),
    OverlaidCovered(CoveredIter<MergingIter<Layer>>),
}

impl From<Tree> for Source {
    fn from(tree: Tree) -> Source {
        match tree {
            Tree::Whole(iter) => Source::Whole(iter),
            Tree::Covered(iter) => Source::Covered(iter),
        }
    }
}

/// Implements [`InternalIterator`] for an enum whose variants each hold one.
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
            fn load_value(&mut self) -> Result<()> {
                match self {
                    $($which::$one(iter) => iter.load_value()),+
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
one_of_them_is_an_iterator!(Source: Whole, Covered, Regions, Overlaid, OverlaidCovered);
one_of_them_is_an_iterator!(Layer: Own, Stored);
