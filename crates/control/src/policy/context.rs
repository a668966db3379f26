//! What a policy is shown, and how a plan is put together.
//!
//! 1. A [`TreeView`] shows a version, its options and its targets: enough for pressure.
//! 2. A [`PickContext`] adds scores, stripes, claims and limits: enough for a pick.
//! 3. [`PickContext::overlap`] finds tables of a sorted level, [`PickContext::may_take`] tells
//!    whether a compaction may take spans, [`PickContext::oldest_that_fit`] limits them to the
//!    disk.
//! 4. [`PickContext::plan`] makes a plan of spans. The policy says where its outputs end.

use std::collections::BTreeSet;

use super::{CfOptions, LevelScore, LevelTargets};
use crate::geometry::{Bounds, Span, hull};
use crate::plan::{CompactionPlan, CompactionReason, InFlight, inputs, older_than};
use crate::types::{ColumnFamilyId, Epoch, FileId, IoClass, UserKey};
use crate::version::{Run, Version};

/// A version with what is wanted of it.
#[derive(Clone, Copy, Debug)]
pub struct TreeView<'a> {
    /// Which tables are where.
    pub version: &'a Version,
    /// The options of the column family.
    pub options: &'a CfOptions,
    /// The targets of the levels of this version.
    pub targets: &'a LevelTargets,
}

/// All that a pick depends on.
#[derive(Clone, Copy, Debug)]
pub struct PickContext<'a> {
    /// Which tables are where.
    pub version: &'a Version,
    /// The options of the column family.
    pub options: &'a CfOptions,
    /// The targets of the levels of this version.
    pub targets: &'a LevelTargets,
    /// The levels by urgency, without what is in flight.
    pub scores: &'a [LevelScore],
    /// The keys at which level 0 is cut; empty if it is not.
    pub stripes: &'a [UserKey],
    /// Tables claimed by running compactions, in all column families.
    pub in_flight: &'a InFlight,
    /// The most input bytes, with what they overlap, at which a group takes in another table.
    pub group_bytes_max: u64,
    /// The most input bytes while the disk is nearly full, for a compaction that can take less: it
    /// frees nothing before all of it is written.
    pub input_bytes_max: u64,
    /// True if level 0 will soon have more: work that is not yet worth its cost can wait.
    pub more_comes: bool,
    /// True if only a compaction out of level 0 may start.
    pub level0_only: bool,
    /// True if level 0 goes down before all else: compactions in its way are told to end early, and
    /// nothing may take their place.
    pub level0_first: bool,
}

impl<'a> PickContext<'a> {
    /// Returns the part of the context that pressure depends on.
    #[must_use]
    pub fn view(&self) -> TreeView<'a> {
        TreeView { version: self.version, options: self.options, targets: self.targets }
    }

    /// Returns the column family.
    #[must_use]
    pub fn cf(&self) -> ColumnFamilyId {
        self.version.column_family()
    }

    pub(crate) fn last_level(&self) -> u8 {
        u8::try_from(self.version.levels().len() - 1).unwrap_or(u8::MAX)
    }

    /// Returns the tables of a sorted level that share keys with `bounds`; `None` if there are
    /// none.
    pub(crate) fn overlap(&self, level: u8, bounds: Bounds<'_>) -> Option<Span<'a>> {
        let run = self.version.level(level).sorted()?;
        let ranks = run.overlap(bounds.0.bytes(), bounds.1.bytes());
        (!ranks.is_empty()).then_some(Span { level, run, ranks })
    }

    /// Returns the most bytes that a compaction takes in which can take less.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.options.compaction_input_max().min(self.input_bytes_max)
    }

    /// Returns the oldest runs of `inputs`, a closure in level 0, newest first: as many as fit on
    /// the disk with what they overlap in the base level.
    pub(crate) fn oldest_of_level0(&self, inputs: Vec<Span<'a>>) -> Vec<Span<'a>> {
        self.oldest_that_fit(inputs, 1, |inputs| {
            self.overlap(self.targets.base_level, hull(inputs)?)
        })
    }

    /// Returns the oldest runs of `inputs`, a closure, newest first: as many as fit on the disk
    /// with the tables that `along` returns for them, but at least `least`. Newer runs may stay
    /// above.
    pub(crate) fn oldest_that_fit(
        &self,
        mut inputs: Vec<Span<'a>>,
        least: usize,
        along: impl Fn(&[Span<'a>]) -> Option<Span<'a>>,
    ) -> Vec<Span<'a>> {
        while inputs.len() > least && self.input_bytes_max < u64::MAX {
            if self.fits(inputs.iter().chain(&along(&inputs))) {
                break;
            }
            inputs.remove(0);
        }
        inputs
    }

    /// Returns true if a compaction of these spans may find space on the disk.
    pub(crate) fn fits<'s>(&self, inputs: impl IntoIterator<Item = &'s Span<'a>>) -> bool
    where
        'a: 's,
    {
        inputs.into_iter().map(Span::bytes).sum::<u64>() <= self.input_bytes_max
    }

    pub(crate) fn any_claimed(&self, span: &Span<'_>) -> bool {
        span.tables().any(|table| self.in_flight.is_claimed(table))
    }

    /// Returns true if no other job writes into `level` within `bounds`.
    pub(crate) fn may_write(&self, level: u8, bounds: Bounds<'_>) -> bool {
        self.in_flight.writer(self.cf(), level, bounds.0.bytes(), bounds.1.bytes()).is_none()
    }

    /// Returns true if a compaction may take `spans` and write into `level` all over their hull:
    /// none of their tables is claimed, and no other job writes there.
    pub(crate) fn may_take<'s>(
        &self,
        spans: impl IntoIterator<Item = &'s Span<'a>, IntoIter: Clone>,
        level: u8,
    ) -> bool
    where
        'a: 's,
    {
        let mut spans = spans.into_iter();
        let may_write = hull(spans.clone()).is_some_and(|bounds| self.may_write(level, bounds));
        may_write && !spans.any(|span| self.any_claimed(span))
    }

    /// Returns true if tables may move from `from` to `to` as they are: they keep their compression
    /// and their directory.
    pub(crate) fn moves_as_is(&self, from: u8, to: u8) -> bool {
        let base = self.targets.base_level;
        self.options.compression_at(from, base) == self.options.compression_at(to, base)
            && self.options.policy().keeps_path(&self.view(), from, to)
    }

    /// Returns a plan that rewrites and settles spans, both newest data first, into the level and
    /// run `output`; `None` without spans.
    pub(crate) fn plan(
        &self,
        reason: CompactionReason,
        rewrite: &[Span<'a>],
        settle: &[Span<'a>],
        output: (u8, Epoch),
    ) -> Option<CompactionPlan> {
        let (output_level, output_epoch) = output;
        let all: Vec<_> = rewrite.iter().chain(settle).cloned().collect();
        let bounds = hull(&all)?;
        let start_level = all.iter().map(|span| span.level).min()?;
        let base_level = self.targets.base_level;
        let replaced = all.iter().filter(|span| span.level == output_level);
        let oldest = replaced.map(|span| span.run.epoch()).min().unwrap_or(output_epoch);
        let mut older = older_than(self.version, output_level, oldest);
        let shares = |run: &Run| !run.overlap(bounds.0.bytes(), bounds.1.bytes()).is_empty();
        let score = self.scores.iter().find(|score| score.level == start_level);
        let bytes = rewrite.iter().map(Span::bytes).sum();
        Some(CompactionPlan {
            cf: self.cf(),
            reason,
            rewrite: inputs(rewrite),
            settle: inputs(settle),
            drop: Vec::new(),
            output_level,
            output_epoch,
            split: self.options.policy().split(self, output_level, bounds),
            breaks: Vec::new(),
            compression: self.options.compression_at(output_level, base_level),
            path: self.options.policy().path(&self.view(), output_level, bytes),
            class: if start_level == 0 { IoClass::L0 } else { IoClass::Deep(start_level) },
            compact_pointer: None,
            score: score.map_or(0.0, |score| score.score),
            is_bottommost: !older.any(|(_, run)| shares(run)),
            collect: self.collect(rewrite),
            request: None,
        })
    }

    /// Returns the value files out of which compactions copy the values that they meet.
    pub(crate) fn files_to_collect(&self) -> BTreeSet<FileId> {
        let (files, options) = (self.version.value_files(), &self.options.values);
        if files.is_empty() || !options.garbage_collection {
            return BTreeSet::new();
        }
        files.to_collect(options.garbage_age_cutoff)
    }

    /// Returns the value files out of which a compaction of `spans` copies values.
    fn collect(&self, spans: &[Span<'a>]) -> BTreeSet<FileId> {
        let garbage = self.files_to_collect();
        let tables = spans.iter().flat_map(Span::tables);
        let files = tables.flat_map(|table| &table.values.files).map(|one| one.file);
        files.filter(|file| garbage.contains(file)).collect()
    }
}
