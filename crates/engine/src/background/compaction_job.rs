//! A compaction: what a plan says, done in steps.
//!
//! What must stay true: the inputs stay pinned by their version for as long as the job lives; the
//! edit names exactly the plan's inputs and what was made of them; a user key's versions end up in
//! one table.

use std::sync::Arc;

use sateen_control::compaction::{CompactionPlan, Input, OutputCutter};
use sateen_control::version::{AddedTable, TableMeta, Version};
use sateen_control::{FileId, SeqNo, UserKey};

use super::compaction_iter::{CompactionIter, CompactionStats, Pulled};
use super::output::{Output, OutputContext};
use super::{Step, StepBytes};
use crate::column_family::ColumnFamilyData;
use crate::error::Result;
use crate::key;
use crate::manifest::version_set::Counters;
use crate::metrics::CompactionDone;
use crate::read::bounds::IterBounds;
use crate::read::level_iter::{LevelIter, OpenTable, SortedRun};
use crate::read::merging_iter::MergingIter;
use crate::read::table_cache::TableCache;
use crate::table::{TableIter, TableIterOptions};
use crate::timeline::local::step_read_bytes;

/// The tables of one input run.
pub(crate) struct InputRun(Vec<Arc<TableMeta>>);

impl SortedRun for InputRun {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.0.get(index)
    }
    fn lower_bound(&self, user_key: &[u8]) -> usize {
        self.0.partition_point(|table| table.largest.as_ref() < user_key)
    }
}

/// Opens inputs for one pass from end to end, past the block cache.
pub(crate) struct OpenInput {
    tables: Arc<TableCache>,
    options: TableIterOptions,
}

impl OpenTable for OpenInput {
    type Iter = TableIter;
    fn open(&self, table: &Arc<TableMeta>) -> Result<TableIter> {
        let options = self.options.clone();
        Ok(self.tables.get(table, options.class)?.iter(options))
    }
}

type Bottommost = Box<dyn FnMut(&[u8]) -> bool + Send>;
type Merged = CompactionIter<MergingIter<LevelIter<InputRun, OpenInput>>, Bottommost>;

/// A compaction under way.
pub(crate) struct CompactionJob {
    pub(crate) family: Arc<ColumnFamilyData>,
    pub(crate) plan: Arc<CompactionPlan>,
    /// Keeps the inputs from being reclaimed.
    _version: Arc<Version>,
    input: Option<Merged>,
    cutter: OutputCutter,
    /// Where it may end before its time, once it is to.
    finish_early: Option<EarlyEnd>,
    output: Output,
    /// The next input run to be opened; None once all are.
    to_open: Option<usize>,
    stats: CompactionStats,
    buffer_bytes: u64,
    bytes_out: u64,
    started: std::time::Instant,
}

/// What a compaction needs besides its plan.
pub(crate) struct CompactionContext {
    pub(crate) output: OutputContext,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) read: TableIterOptions,
    pub(crate) snapshots: Vec<SeqNo>,
    pub(crate) version: Arc<Version>,
}

impl CompactionJob {
    pub(crate) fn new(
        family: Arc<ColumnFamilyData>,
        plan: Arc<CompactionPlan>,
        context: CompactionContext,
    ) -> CompactionJob {
        let open = |input: &Input| {
            let opener =
                OpenInput { tables: context.tables.clone(), options: context.read.clone() };
            LevelIter::new(InputRun(input.tables.clone()), opener, IterBounds::all())
        };
        let chunk_bytes = context.read.chunk_bytes as u64;
        let runs: Vec<_> = plan.rewrite.iter().map(open).collect();
        // A chunk of each input run, and the output's.
        let buffer_bytes = runs.len() as u64 * chunk_bytes + super::output::BUFFER_BYTES;
        let mut below = plan.keys_below();
        let bottommost: Bottommost = Box::new(move |user_key| !below.may_contain(user_key));
        let input = (!runs.is_empty()).then(|| {
            CompactionIter::new(
                MergingIter::new(runs),
                IterBounds::all(),
                context.snapshots,
                bottommost,
            )
        });
        CompactionJob {
            family,
            cutter: plan.output_cutter(),
            plan,
            _version: context.version,
            input,
            finish_early: None,
            output: Output::new(context.output),
            to_open: Some(0),
            stats: CompactionStats::default(),
            buffer_bytes,
            bytes_out: 0,
            started: std::time::Instant::now(),
        }
    }

    /// What it holds in memory to read and write through, about.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// Moves about `bytes`.
    pub(crate) fn step(&mut self, bytes: u64, counters: &Counters) -> Result<Step> {
        let Some(mut input) = self.input.take() else {
            return self.finish(0);
        };
        let start = self.output.bytes_written();
        // Each reads a chunk: many are too much for one step.
        while let Some(next) = self.to_open {
            self.to_open = input.open_run(next)?.then_some(next + 1);
            if self.to_open.is_some() && step_read_bytes() >= bytes {
                self.input = Some(input);
                return Ok(Step::More(StepBytes::default()));
            }
        }
        let start_in = input.stats().bytes_in;
        loop {
            let moved = input.stats().bytes_in - start_in;
            if moved >= bytes {
                break;
            }
            match input.pull(bytes - moved)? {
                Pulled::Entry => {
                    let (key, value) = (input.key(), input.value());
                    if input.starts_user_key() {
                        if let Some(end) = &mut self.finish_early
                            && self.output.has_written()
                            && end.may_end_before(key::user_key(key))
                        {
                            self.stats = *input.stats();
                            let next = key::user_key(key).to_vec();
                            return self.finish_part(start, &next);
                        }
                        let open_bytes = self.output.table_bytes();
                        let cut = self.cutter.cut_before(key::user_key(key), open_bytes);
                        if cut && self.output.has_open_table() {
                            self.output.end_table()?;
                        }
                    }
                    self.output.add(counters, key, value)?;
                }
                Pulled::Paused => break,
                Pulled::End => {
                    self.stats = *input.stats();
                    return self.finish(start);
                }
            }
        }
        self.input = Some(input);
        Ok(Step::More(StepBytes::written(self.output.bytes_written() - start)))
    }

    /// To be brought to an end where what is written by then can stand by itself. Not out of level
    /// 0: of two of its runs the older must not stay while the newer goes below it.
    pub(crate) fn finish_early(&mut self) {
        if self.finish_early.is_none() && self.plan.start_level() > 0 {
            self.finish_early = Some(EarlyEnd::of(&self.plan));
        }
    }

    /// Installs what has been written. Of the inputs goes what lies wholly before `next`, the first
    /// user key that was not; a table of a level above that reaches beyond stays, and with it a
    /// second copy of what it holds before: it says the same as what is now below it.
    fn finish_part(&mut self, start: u64, next: &[u8]) -> Result<Step> {
        let mut step = self.finish(start)?;
        if let Step::Done(_, edit) = &mut step {
            let stays = |id| {
                let mut rewritten = self.plan.rewrite.iter().flat_map(|input| &input.tables);
                rewritten.any(|table| table.id == id && *table.largest >= *next)
            };
            edit.removed.retain(|removed| !stays(removed.id));
            edit.compact_pointers.clear();
        }
        Ok(step)
    }

    fn finish(&mut self, start: u64) -> Result<Step> {
        let tables = self.output.finish()?;
        self.bytes_out = tables.iter().map(|table| table.size_bytes).sum();
        let mut edit = self.plan.edit();
        let (level, epoch) = (self.plan.output_level, self.plan.output_epoch);
        edit.added.extend(tables.into_iter().map(|table| AddedTable { level, epoch, table }));
        let moved = StepBytes::written(self.output.bytes_written() - start);
        Ok(Step::Done(moved, Box::new(edit)))
    }

    /// What it did, for the metrics.
    pub(crate) fn done(&self) -> CompactionDone {
        let level = self.plan.output_level;
        let bytes = |same: bool| {
            let inputs = self.plan.rewrite.iter().filter(|input| (input.level == level) == same);
            inputs.map(Input::bytes).sum()
        };
        CompactionDone {
            output_level: level,
            bytes_in_above: bytes(false),
            bytes_in_level: bytes(true),
            bytes_out: self.bytes_out,
            bytes_moved: self.plan.settle.iter().map(Input::bytes).sum(),
            entries_in: self.stats.entries_in(),
            entries_dropped: self.stats.entries_dropped(),
            duration: self.started.elapsed(),
        }
    }

    /// The file that is being written, or was.
    pub(crate) fn file_id(&self) -> Option<FileId> {
        self.output.file_id()
    }

    pub(crate) fn abandon(&mut self) {
        self.input = None;
        self.output.abandon();
    }
}

/// Finds the keys before which a compaction may end early: where no table of the output level is
/// read in part, so that what stays of that level and what was written for it do not overlap; and
/// not before a table of a level above is read wholly, or all would have to be done again.
struct EarlyEnd {
    /// The least of the largest keys above.
    above: Option<UserKey>,
    /// The inputs in the output level, ascending.
    below: Vec<Arc<TableMeta>>,
    /// The first of them that reaches to the last key asked for.
    at: usize,
}

impl EarlyEnd {
    fn of(plan: &CompactionPlan) -> EarlyEnd {
        let below = plan.rewrite.iter().filter(|input| input.level == plan.output_level);
        let above = plan.rewrite.iter().filter(|input| input.level != plan.output_level);
        let above = above.flat_map(|input| &input.tables).map(|table| &table.largest).min();
        EarlyEnd {
            above: above.cloned(),
            below: below.flat_map(|input| input.tables.iter().cloned()).collect(),
            at: 0,
        }
    }

    /// Asked for ascending keys.
    fn may_end_before(&mut self, user_key: &[u8]) -> bool {
        while self.below.get(self.at).is_some_and(|table| *table.largest < *user_key) {
            self.at += 1;
        }
        self.above.as_ref().is_some_and(|largest| **largest < *user_key)
            && self.below.get(self.at).is_none_or(|table| *table.smallest >= *user_key)
    }
}
