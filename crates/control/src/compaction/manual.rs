//! A client's request to compact a range. It takes a few tables at a time, so that other work can
//! go on. Tables that the request itself has written are not rewritten again.
//!
//! 1. The control plane asks [`ManualCompaction::step`] for the next plan, and reports its end with
//!    [`ManualCompaction::done`].
//! 2. A request to drop tables, or to compact named files, is served by [`CoveredTables`] or
//!    [`ChosenFiles`].
//! 3. The policy says how a range is compacted ([`ManualPath`]). Level by level: level 0 is
//!    compacted at once ([`ManualCompaction::step_level0`]). Each level below goes into the next
//!    ([`ManualCompaction::step_level`]), until no deeper level has any of the range. That level is
//!    rewritten in place if the client wants it ([`ManualCompaction::step_bottommost`]). A policy
//!    that keeps all tables in level 0 has nothing to do.
//! 4. At once: tables that share keys go from all levels into the deepest one, one group after the
//!    other in key order ([`ManualCompaction::step_groups`]). If the disk has no space for a group,
//!    the policy chooses a part of it.

use std::sync::Arc;

use super::chosen_files::ChosenFiles;
use super::covered::CoveredTables;
use super::step::ManualStep;
use crate::geometry::{Bounds, Span, closure, hull, union};
use crate::options::BottommostLevelCompaction;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::leveled::level0_closure;
use crate::policy::{ManualPath, PickContext};
use crate::types::{Epoch, RequestId, TableId, UserKey};
use crate::version::{Level, Run, TableMeta, Version};

/// The state of a request.
#[derive(Clone, Debug)]
pub struct ManualCompaction {
    /// The client's number.
    pub request: RequestId,
    begin: Option<UserKey>,
    end: Option<UserKey>,
    bottommost: BottommostLevelCompaction,
    /// Tables with larger ids were written after the request.
    table_id_max: TableId,
    level: u8,
    /// The largest key that is done: of this level, or of all levels if they are compacted at once.
    cursor: Option<UserKey>,
    /// Whether all levels are compacted at once.
    at_once: bool,
    /// Whether the plan left out a part of its inputs because the disk had no space for all of
    /// them.
    is_partial: bool,
    /// The tables to drop, if the request drops tables.
    dropped: Option<CoveredTables>,
    /// The files to compact, if the request names files.
    files: Option<ChosenFiles>,
}

impl ManualCompaction {
    /// Returns a request about `begin..=end` as of `version`.
    #[must_use]
    pub fn new(
        request: RequestId,
        begin: Option<UserKey>,
        end: Option<UserKey>,
        bottommost: BottommostLevelCompaction,
        version: &Version,
    ) -> ManualCompaction {
        let table_id_max = version.table_id_max();
        ManualCompaction {
            request,
            begin,
            end,
            bottommost,
            table_id_max,
            level: 0,
            cursor: None,
            at_once: false,
            is_partial: false,
            dropped: None,
            files: None,
        }
    }

    /// Returns a request to compact `files`, by one compaction.
    #[must_use]
    pub fn of_files(request: RequestId, files: ChosenFiles, version: &Version) -> ManualCompaction {
        let bottommost = BottommostLevelCompaction::Skip;
        let compaction = ManualCompaction::new(request, None, None, bottommost, version);
        ManualCompaction { files: Some(files), ..compaction }
    }

    /// Returns a request to drop the tables below level 0 whose keys all lie in `begin..=end`.
    #[must_use]
    pub fn dropping(
        request: RequestId,
        begin: Option<UserKey>,
        end: Option<UserKey>,
        version: &Version,
    ) -> ManualCompaction {
        let dropped = CoveredTables::within(version, begin.as_ref(), end.as_ref());
        let bottommost = BottommostLevelCompaction::Skip;
        let compaction = ManualCompaction::new(request, begin, end, bottommost, version);
        ManualCompaction { dropped: Some(dropped), ..compaction }
    }

    /// Moves on behind `plan`, which was installed.
    pub fn done(&mut self, plan: &CompactionPlan) {
        if let Some(files) = &mut self.files {
            files.is_done = true;
            return;
        }
        // The rest of the group is still in its place.
        if self.dropped.is_some() || self.at_once && self.is_partial {
            return;
        }
        if self.at_once {
            let last = plan.inputs().flat_map(|input| &input.tables).map(|t| &t.largest).max();
            self.cursor = last.cloned().max(self.cursor.take());
        } else if self.level == 0 {
            // The plan took everything of the range that was in level 0 at the request, or its
            // oldest runs.
            self.level = u8::from(!self.is_partial);
        } else if plan.start_level() == self.level {
            let inputs = plan.inputs().filter(|input| input.level == self.level);
            let last = inputs.filter_map(|input| input.tables.last()).map(|t| &t.largest).max();
            self.cursor = last.cloned().max(self.cursor.take());
        }
    }

    /// Returns the next step of the request.
    pub fn step(&mut self, context: &PickContext<'_>) -> ManualStep {
        if let Some(dropped) = &mut self.dropped {
            // Tables that another job has claimed stay.
            let plan = dropped.pick(context);
            return plan.map_or(ManualStep::Done, |plan| {
                let plan = CompactionPlan { reason: CompactionReason::Manual, ..plan };
                ManualStep::Plan(Box::new(plan))
            });
        }
        if let Some(files) = &self.files {
            return files.step(self.request, context);
        }
        let path = context.options.policy().manual_path(context.version);
        self.at_once = path != ManualPath::LevelByLevel;
        match path {
            ManualPath::Stays => return ManualStep::Done,
            ManualPath::AtOnce { into } => {
                return self.step_groups(context, into).unwrap_or(ManualStep::Done);
            }
            ManualPath::LevelByLevel => {}
        }
        loop {
            let plan = if self.level == 0 {
                self.step_level0(context)
            } else if self.is_lowest(context.version) {
                return self.step_bottommost(context).unwrap_or(ManualStep::Done);
            } else {
                self.step_level(context)
            };
            if let Some(step) = plan {
                return step;
            }
            self.level += 1;
            self.cursor = None;
            if self.level > context.last_level() {
                return ManualStep::Done;
            }
        }
    }

    /// Returns true if no deeper level has any of the range.
    fn is_lowest(&self, version: &Version) -> bool {
        let deeper = version.levels().get(usize::from(self.level) + 1..).unwrap_or_default();
        !deeper.iter().flat_map(|level| level.runs()).any(|run| {
            let from = self.begin.as_ref().map_or(0, |begin| run.lower_bound(begin.bytes()));
            run.get(from).is_some_and(|table| self.begins_inside(table))
        })
    }

    /// Returns true if the table begins within the range.
    fn begins_inside(&self, table: &TableMeta) -> bool {
        self.end.as_ref().is_none_or(|end| table.smallest <= *end)
    }

    /// Returns a plan for all tables of level 0 in the range, and those that overlap them, into the
    /// base level. This is done once, because later flushes are younger than the request.
    fn step_level0(&mut self, context: &PickContext<'_>) -> Option<ManualStep> {
        let base = context.targets.base_level;
        let wanted: Vec<Bounds<'_>> = context
            .version
            .level(0)
            .runs()
            .iter()
            .flat_map(|run| {
                let from = self.begin.as_ref().map_or(0, |begin| run.lower_bound(begin.bytes()));
                run.range(from..run.len()).take_while(|table| self.begins_inside(table))
            })
            .map(|table| (&table.smallest, &table.largest))
            .collect();
        let mut bounds = *wanted.first()?;
        for next in wanted {
            bounds = union(bounds, Some(next));
        }
        if context.in_flight.level0_running(context.cf()) {
            return Some(ManualStep::Blocked);
        }
        let inputs = level0_closure(context.version.level(0).runs(), bounds);
        let all = inputs.len();
        let mut inputs = context.oldest_of_level0(inputs);
        self.is_partial = inputs.len() < all;
        let below = context.overlap(base, hull(&inputs)?);
        inputs.extend(below);
        if !context.may_take(&inputs, base) {
            return Some(ManualStep::Blocked);
        }
        let one = inputs.len() == 1 && context.moves_as_is(0, base);
        let (rewrite, settle) = if one { (vec![], inputs) } else { (inputs, vec![]) };
        let plan = context.plan(CompactionReason::Manual, &rewrite, &settle, (base, Epoch(0)))?;
        Some(ManualStep::Plan(Box::new(plan)))
    }

    /// Returns a plan for the next tables of all levels that share keys, into the level `target` as
    /// its oldest run. A level with several runs cannot be compacted a few tables at a time.
    fn step_groups(&mut self, context: &PickContext<'_>, target: u8) -> Option<ManualStep> {
        loop {
            let group = whole_group(context.version, |run| self.first_rank(run))?;
            let (smallest, largest) = hull(&group)?;
            if self.end.as_ref().is_some_and(|end| end < smallest) {
                return None;
            }
            if !context.may_take(&group, target) {
                return Some(ManualStep::Blocked);
            }
            let fits = context.fits(&group);
            let policy = context.options.policy();
            let part = if fits { None } else { policy.part_of(context, &group) };
            self.is_partial = part.is_some();
            if let Some(plan) = part {
                let plan = CompactionPlan { reason: CompactionReason::Manual, ..plan };
                return Some(ManualStep::Plan(Box::new(plan)));
            }
            let alone = group.len() == 1 && !group.iter().any(|span| self.rewrites(span));
            let arrived = |span: &Span<'_>| (span.level, span.run.epoch()) == (target, Epoch(0));
            if alone && group.iter().all(arrived) {
                self.cursor = Some(largest.clone());
                continue;
            }
            // A part of the group that the request itself has written kept tombstones because of
            // tables that were below it.
            let tombstones = self.bottommost != BottommostLevelCompaction::Skip
                && group.iter().flat_map(Span::tables).any(|table| table.tombstones > 0);
            let same = |span: &Span<'_>| context.moves_as_is(span.level, target);
            let settles = alone && !tombstones && group.iter().all(same);
            let (rewrite, settle) = if settles { (vec![], group) } else { (group, vec![]) };
            let output = (target, Epoch(0));
            let plan = context.plan(CompactionReason::Manual, &rewrite, &settle, output)?;
            return Some(ManualStep::Plan(Box::new(plan)));
        }
    }

    fn rewrites(&self, span: &Span<'_>) -> bool {
        span.tables().any(|table| self.is_rewritten(table))
    }

    /// Returns a plan for the next tables of this level into the level below, as many as one
    /// compaction may take.
    fn step_level(&self, context: &PickContext<'_>) -> Option<ManualStep> {
        let bytes_max = context.bytes_max();
        let run = context.version.level(self.level).sorted()?;
        let from = self.first_rank(run);
        let first = run.get(from).filter(|table| self.begins_inside(table))?;
        let mut start = Span { level: self.level, run, ranks: from..from + 1 };
        let mut below = context.overlap(self.level + 1, (&first.smallest, &first.largest));
        for table in run.range(from + 1..run.len()) {
            let wider = Span { ranks: from..start.ranks.end + 1, ..start.clone() };
            let wider_below = context.overlap(self.level + 1, wider.bounds()?);
            let bytes = wider.bytes() + wider_below.as_ref().map_or(0, Span::bytes);
            if !self.begins_inside(table) || bytes > bytes_max {
                break;
            }
            (start, below) = (wider, wider_below);
        }
        if !context.may_take(std::iter::once(&start).chain(&below), self.level + 1) {
            return Some(ManualStep::Blocked);
        }
        let settle = below.is_none() && context.moves_as_is(self.level, self.level + 1);
        let inputs: Vec<_> = [Some(start), below].into_iter().flatten().collect();
        let (rewrite, settle) = if settle { (vec![], inputs) } else { (inputs, vec![]) };
        let output = (self.level + 1, Epoch(0));
        let plan = context.plan(CompactionReason::Manual, &rewrite, &settle, output)?;
        Some(ManualStep::Plan(Box::new(plan)))
    }

    /// Returns a plan for the next tables of the lowest level that must be rewritten.
    fn step_bottommost(&self, context: &PickContext<'_>) -> Option<ManualStep> {
        let run = context.version.level(self.level).sorted()?;
        let mut ranks = None;
        let from = self.first_rank(run);
        let mut bytes = 0;
        for (rank, table) in (from..).zip(run.range(from..run.len())) {
            if !self.begins_inside(table) {
                break;
            }
            bytes += table.size_bytes;
            match (&mut ranks, self.is_rewritten(table)) {
                (None, false) => bytes = 0,
                (None, true) => ranks = Some(rank..rank + 1),
                (Some(_), false) => break,
                (Some(_), true) if bytes > context.bytes_max() => break,
                (Some(ranks), true) => ranks.end = rank + 1,
            }
        }
        let span = Span { level: self.level, run, ranks: ranks? };
        if !context.may_take([&span], self.level) {
            return Some(ManualStep::Blocked);
        }
        let output = (self.level, Epoch(0));
        let plan = context.plan(CompactionReason::ManualBottommost, &[span], &[], output)?;
        Some(ManualStep::Plan(Box::new(plan)))
    }

    /// Returns true if the request must rewrite the table in the lowest level.
    fn is_rewritten(&self, table: &TableMeta) -> bool {
        let old = table.id <= self.table_id_max;
        match self.bottommost {
            BottommostLevelCompaction::Skip => false,
            BottommostLevelCompaction::IfTombstones => old && table.tombstones > 0,
            BottommostLevelCompaction::Force => old,
        }
    }

    /// Returns the rank of the first table of the range behind the cursor.
    fn first_rank(&self, run: &Run) -> usize {
        let begin = self.begin.as_ref().map_or(0, |begin| run.lower_bound(begin.bytes()));
        let behind = self.cursor.as_ref().map_or(0, |cursor| {
            let at = run.lower_bound(cursor.bytes());
            // A table that only begins before the cursor is new, and may have keys behind it.
            at + usize::from(run.get(at).is_some_and(|table| table.largest == *cursor))
        });
        begin.max(behind)
    }
}

/// Returns the tables of all levels that are connected by overlap with the first table, newest
/// first. In each run only tables from the rank that `first` returns count.
fn whole_group<'a>(version: &'a Version, first: impl Fn(&Run) -> usize) -> Option<Vec<Span<'a>>> {
    let levels = || (0u8..).zip(version.levels());
    let of_level =
        |(number, level): (u8, &'a Arc<Level>)| level.runs().iter().map(move |run| (number, run));
    let runs = || levels().flat_map(of_level);
    let seeds = runs().filter_map(|(_, run)| run.get(first(run)));
    let seed = seeds.min_by(|a, b| a.smallest.cmp(&b.smallest))?;
    Some(closure(runs, (&seed.smallest, &seed.largest)))
}
