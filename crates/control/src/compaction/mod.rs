//! Which tables are compacted next. A picker is a function of what it is shown and has no memory:
//! what it must remember (a round-robin cursor) is part of the version.

mod chain;
mod chosen_files;
mod covered;
mod cutter;
mod early_end;
mod gap;
mod group;
mod guards;
mod in_flight;
mod level0;
mod leveled;
mod manual;
mod plan;
mod score;
mod sparse;
mod stripes;
mod tiny;

use std::ops::Range;
use std::sync::Arc;

pub use chain::CompactionChain;
pub use chosen_files::ChosenFiles;
pub(crate) use covered::CoveredTables;
pub use cutter::OutputCutter;
pub use early_end::EarlyEnd;
pub use guards::GuardsPicker;
pub use in_flight::{ClaimError, InFlight};
pub use leveled::LeveledPicker;
pub use manual::{ManualCompaction, ManualStep};
pub use plan::{Below, CompactionPlan, CompactionReason, Input, KeysBelow, OutputSplit};
pub use score::{
    LevelScore, LevelTargets, good_bytes, level0_runs, levels_to_lift, pending_compaction_bytes,
    scores,
};
pub(crate) use sparse::SparseTables;
pub use sparse::{FileSpace, sparse_files};
pub use stripes::{Stripes, stripes};
pub(crate) use tiny::tiny_urgency;

use crate::options::{CfOptions, CompactionStyle};
use crate::types::{ColumnFamilyId, Epoch, IoClass, JobId, UserKey};
use crate::version::{Run, TableMeta, Version};

/// Chooses the next compaction of one column family.
pub trait CompactionPicker: Send + std::fmt::Debug {
    /// The compaction style's name.
    fn name(&self) -> &'static str;

    /// The most urgent compaction that touches nothing in flight; `None` if there is none.
    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan>;

    /// Whether level 0 stays where it is until more of it is there.
    fn level0_stays(&self, context: &PickContext<'_>) -> bool {
        let _ = context;
        false
    }

    /// The jobs whose claims keep level 0 from being compacted into the level below.
    fn level0_blockers(&self, context: &PickContext<'_>) -> Vec<JobId> {
        let _ = context;
        Vec::new()
    }
}

/// All that a picker sees.
#[derive(Clone, Copy, Debug)]
pub struct PickContext<'a> {
    /// What is where.
    pub version: &'a Version,
    /// What is wanted.
    pub options: &'a CfOptions,
    /// What is wanted of each level of this version.
    pub targets: &'a LevelTargets,
    /// The levels by urgency, without what is in flight.
    pub scores: &'a [LevelScore],
    /// Where level 0 is cut; empty if it goes down as it hangs together.
    pub stripes: &'a [UserKey],
    /// What is being compacted, in all column families.
    pub in_flight: &'a InFlight,
    /// A group takes no more in, with what it overlaps, but for its first table.
    pub group_bytes_max: u64,
    /// On a full disk a compaction takes no more than this, if it can take less: it gives nothing
    /// back before all of it is written.
    pub input_bytes_max: u64,
    /// Whether more will soon be in level 0: what it should not do yet for what is there can wait.
    pub more_comes: bool,
    /// Whether only a compaction out of level 0 may start.
    pub level0_only: bool,
    /// Whether level 0 goes down before all else, however urgent that is: what it waits for is told
    /// to end for it, and nothing may take its place.
    pub level0_first: bool,
}

/// Tables of one run that stand together, by rank.
#[derive(Clone, Debug)]
struct Span<'a> {
    level: u8,
    run: &'a Run,
    ranks: Range<usize>,
}

impl<'a> Span<'a> {
    fn tables(&self) -> impl Iterator<Item = &'a Arc<TableMeta>> + use<'a> {
        self.run.range(self.ranks.clone())
    }

    fn bytes(&self) -> u64 {
        self.run.bytes_in(self.ranks.clone())
    }

    fn bounds(&self) -> Option<Bounds<'a>> {
        let first = self.run.get(self.ranks.start)?;
        let last = self.run.get(self.ranks.end.checked_sub(1)?)?;
        (!self.ranks.is_empty()).then_some((&first.smallest, &last.largest))
    }
}

/// The inputs that `spans` are: those of one run that follow each other are one.
fn inputs(spans: &[Span<'_>]) -> Vec<Input> {
    let same_run = |a: &Span<'_>, b: &Span<'_>| {
        (a.level, a.run.epoch()) == (b.level, b.run.epoch()) && a.ranks.end <= b.ranks.start
    };
    let input = |spans: &[Span<'_>]| {
        let first = spans.first()?;
        let tables = spans.iter().flat_map(Span::tables).cloned().collect();
        Some(Input { level: first.level, epoch: first.run.epoch(), tables })
    };
    spans.chunk_by(same_run).filter_map(input).collect()
}

/// The smallest and the largest key of something, both inclusive.
type Bounds<'a> = (&'a UserKey, &'a UserKey);

fn union<'a>(a: Bounds<'a>, b: Option<Bounds<'a>>) -> Bounds<'a> {
    b.map_or(a, |b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The hull of all spans.
fn hull<'a: 's, 's>(spans: impl IntoIterator<Item = &'s Span<'a>>) -> Option<Bounds<'a>> {
    let bounds = spans.into_iter().filter_map(Span::bounds);
    bounds.reduce(|hull, next| union(hull, Some(next)))
}

/// Who picks where tables are arranged like that.
#[must_use]
pub fn picker(style: CompactionStyle) -> Box<dyn CompactionPicker> {
    match style {
        CompactionStyle::Leveled => Box::new(LeveledPicker),
        CompactionStyle::Guards => Box::new(GuardsPicker),
    }
}

/// The tables of `runs`, each with its level, that share keys with `bounds`, and those that share
/// keys with them, and so on; in the order of the runs.
fn closure<'a, I: Iterator<Item = (u8, &'a Run)>>(
    runs: impl Fn() -> I,
    mut bounds: Bounds<'a>,
) -> Vec<Span<'a>> {
    loop {
        let spans: Vec<Span<'a>> = runs()
            .map(|(level, run)| Span {
                level,
                run,
                ranks: run.overlap(bounds.0.bytes(), bounds.1.bytes()),
            })
            .filter(|span| !span.ranks.is_empty())
            .collect();
        let wider = union(bounds, hull(&spans));
        if wider == bounds {
            return spans;
        }
        bounds = wider;
    }
}

impl<'a> PickContext<'a> {
    /// Whose compaction is picked.
    #[must_use]
    pub fn cf(&self) -> ColumnFamilyId {
        self.version.column_family()
    }

    fn last_level(&self) -> u8 {
        u8::try_from(self.version.levels().len() - 1).unwrap_or(u8::MAX)
    }

    /// The tables of a sorted level that share keys with `bounds`, if any.
    fn overlap(&self, level: u8, bounds: Bounds<'_>) -> Option<Span<'a>> {
        let run = self.version.level(level).sorted()?;
        let ranks = run.overlap(bounds.0.bytes(), bounds.1.bytes());
        (!ranks.is_empty()).then_some(Span { level, run, ranks })
    }

    /// The most bytes that a compaction takes which can take less.
    fn bytes_max(&self) -> u64 {
        self.options.compaction_bytes_max().min(self.input_bytes_max)
    }

    /// The oldest runs of what hangs together in level 0, newest first: as many as fit on the disk
    /// with what they overlap in the base level.
    fn oldest_of_level0(&self, inputs: Vec<Span<'a>>) -> Vec<Span<'a>> {
        self.oldest_that_fit(inputs, 1, |inputs| {
            self.overlap(self.targets.base_level, hull(inputs)?)
        })
    }

    /// The oldest runs of `inputs`, which hang together, newest first: as many as fit on the disk
    /// with what they take along, and `least` in any case. What is newer may stay above them.
    fn oldest_that_fit(
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

    /// Whether a compaction of these may find space on the disk.
    fn fits<'s>(&self, inputs: impl IntoIterator<Item = &'s Span<'a>>) -> bool
    where
        'a: 's,
    {
        inputs.into_iter().map(Span::bytes).sum::<u64>() <= self.input_bytes_max
    }

    fn any_claimed(&self, span: &Span<'_>) -> bool {
        span.tables().any(|table| self.in_flight.is_claimed(table))
    }

    /// Whether outputs of the range may go to `level`: nobody else writes there.
    fn may_write(&self, level: u8, bounds: Bounds<'_>) -> bool {
        self.in_flight.writer(self.cf(), level, bounds.0.bytes(), bounds.1.bytes()).is_none()
    }

    /// Whether a compaction may take `spans` and write into `level` all over their hull: none of
    /// them is in flight, and nobody else writes there.
    fn may_take<'s>(
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

    /// Whether tables keep their compression when they move from `from` to `to`.
    fn same_compression(&self, from: u8, to: u8) -> bool {
        let base = self.targets.base_level;
        self.options.compression(from, base) == self.options.compression(to, base)
    }

    /// Whether `table` overlaps so little of the level below `level` that it may settle there.
    fn may_settle(&self, table: &TableMeta, level: u8) -> bool {
        // Values that are in a log would keep it for as long as the table lives.
        if table.placement.values().is_some() {
            return false;
        }
        let grandparents = self
            .overlap(level + 1, (&table.smallest, &table.largest))
            .map_or(0, |span| span.bytes());
        grandparents + table.size_bytes <= self.options.grandparent_overlap_bytes_max()
    }

    /// Puts a plan together. `rewrite` and `settle` are newest data first.
    fn plan(
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
        let score = self.scores.iter().find(|score| score.level == start_level);
        Some(CompactionPlan {
            cf: self.cf(),
            reason,
            rewrite: inputs(rewrite),
            settle: inputs(settle),
            drop: Vec::new(),
            output_level,
            output_epoch,
            split: self.split(output_level, bounds),
            breaks: Vec::new(),
            compression: self.options.compression(output_level, base_level),
            class: if start_level == 0 { IoClass::L0 } else { IoClass::Deep(start_level) },
            compact_pointer: None,
            score: score.map_or(0.0, |score| score.score),
            below: self.below(output_level, oldest, bounds),
            request: None,
        })
    }

    /// Where tables that are written into `level` within `bounds` end.
    fn split(&self, level: u8, bounds: Bounds<'_>) -> OutputSplit {
        if self.options.compaction_style == CompactionStyle::Guards {
            return guards::split(self, level, bounds);
        }
        let target_bytes = self.options.target_file_size(level, self.targets.base_level);
        if self.options.overlap_aware && level == self.targets.base_level {
            let times = self.options.good_overlap();
            return OutputSplit::ByOverlap {
                bytes_min: target_bytes / times,
                bytes_max: target_bytes,
                times,
            };
        }
        OutputSplit::BySize {
            target_bytes,
            grandparent_overlap_bytes_max: self.options.grandparent_overlap_bytes_max(),
            at_grandparent_boundaries: self.options.level_compaction_dynamic_file_size,
            at_gaps: self.options.cut_at_gaps,
        }
    }

    /// Everything older than what is written into `level` that shares keys with `bounds`. `oldest`:
    /// of what that replaces in `level`, or itself.
    fn below(&self, level: u8, oldest: Epoch, bounds: Bounds<'_>) -> Vec<Below> {
        let older = self.version.level(level).runs().iter();
        let older = older.filter(|run| run.epoch() < oldest).map(|run| (level, run));
        let deeper = (level + 1..=self.last_level())
            .flat_map(|level| self.version.level(level).runs().iter().map(move |run| (level, run)));
        older
            .chain(deeper)
            .map(|(level, run)| (level, run, run.overlap(bounds.0.bytes(), bounds.1.bytes())))
            .filter(|(.., overlap)| !overlap.is_empty())
            .map(|(level, run, overlap)| Below { level, run: run.clone(), overlap })
            .collect()
    }
}

#[cfg(test)]
mod tests;
