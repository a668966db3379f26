//! A compaction: it carries out a plan, one step at a time.
//!
//! 1. [`CompactionJob::new`] makes an iterator over each input run, merges them ([`MergingIter`])
//!    and decides through [`CompactionIter`] which entries are kept.
//! 2. The first steps open the input runs, one after the other.
//! 3. [`CompactionJob::step`] pulls entries and adds them to the output, until the grant is used
//!    up. The cutter says where tables end.
//! 4. A job that control told to end early ends before the first key at which the plan allows it
//!    ([`CompactionJob::finish_early`]).
//! 5. `finish` makes the outputs durable and returns the edit. [`CompactionJob::dropped_values`]
//!    returns the places in value files that the outputs do not keep.
//!
//! What must stay true:
//!
//! - The plan pins the inputs for the life of the job. The job holds no other table: it may take
//!   long.
//! - The edit removes exactly the plan's inputs, or after an early end those that are done. It adds
//!   their outputs.
//! - All versions of a user key end up in one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::compaction::{Below, CompactionPlan, EarlyEnd, Input, KeysBelow, OutputCutter};
use sateen_control::version::{AddedTable, RangeTombstones, TableMeta, ValueFiles, VersionEdit};
use sateen_control::{FileId, SeqNo};
use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::{AtomicUsize, Ordering};
use sateen_store::base::waited::step_read_bytes;
use sateen_store::base::{clock, key};
use sateen_store::files::Extents;
use sateen_store::files::counters::Counters;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::covered_iter::SeenRanges;
use sateen_store::iter::level_iter::{LevelIter, OpenTable, SortedRun};
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::table::table_cache::TableCache;
use sateen_store::table::{TableIter, TableIterOptions, ValueMode};

use super::iter::{CompactionIter, CompactionStats, EncodedValues, Pulled};
use super::remote::Remote;
use crate::background::driver::step::{Step, StepBytes};
use crate::background::output::{Output, OutputContext};
use crate::background::value_output::{EncodedInput, ValueCount};
use crate::metrics::CompactionDone;
use crate::operators::compaction_filter::{CompactionFilterContext, FilterToBe};
use crate::tree::families::ColumnFamilyData;

/// A step reads chunks of at most this part of its grant, but of at least `CHUNK_BYTES_MIN`.
const CHUNKS_OF_STEP: u64 = 2;
const CHUNK_BYTES_MIN: u64 = 64 << 10;

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
        self.0.partition_point(|table| table.largest < *user_key)
    }
}

/// Opens input tables for one pass from end to end, past the block cache.
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

/// A running compaction.
pub(crate) struct CompactionJob {
    pub(crate) family: Arc<ColumnFamilyData>,
    pub(crate) plan: Arc<CompactionPlan>,
    /// Set if another process may do the work, or does it.
    pub(super) remote: Option<Remote>,
    input: Option<Merged>,
    /// The filter that the first step creates. That calls the user's code, which may take a while.
    filter: Option<FilterToBe>,
    is_filtered: bool,
    /// What is older than the outputs, if it was given.
    below: Option<Vec<Below>>,
    /// Where outputs end. The first step makes it.
    cutter: Option<OutputCutter>,
    /// The keys at which the job may end early, once it was told to.
    finish_early: Option<EarlyEnd>,
    pub(super) output: Output,
    /// The next input run to be opened; `None` once all are open.
    to_open: Option<usize>,
    stats: CompactionStats,
    /// Places in value files that the outputs do not keep.
    dropped_values: BTreeMap<FileId, Extents>,
    /// How many these are, by their file.
    garbage: BTreeMap<FileId, ValueCount>,
    /// Largest read of an input run in this step, in bytes.
    chunk_bytes: Arc<AtomicUsize>,
    /// Limit on the above by the options.
    chunk_bytes_max: u64,
    /// The largest of them so far.
    chunk_bytes_most: u64,
    /// Number of input runs.
    runs: u64,
    bytes_out: u64,
    started: std::time::Instant,
}

/// What a compaction needs besides its plan.
pub(crate) struct CompactionContext {
    pub(crate) output: OutputContext,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) read: TableIterOptions,
    pub(crate) snapshots: Vec<SeqNo>,
    /// The newest snapshot that a client holds.
    pub(crate) newest_snapshot: Option<SeqNo>,
    /// What is older than the outputs; `None`: what the version has when the job needs it.
    pub(crate) below: Option<Vec<Below>>,
    pub(crate) value_files: Arc<ValueFiles>,
    pub(crate) ranges: Arc<RangeTombstones>,
    /// Whether the inputs are all tables of the column family.
    pub(crate) is_full: bool,
}

impl CompactionJob {
    /// Creates a compaction by `plan`. Nothing is read yet.
    pub(crate) fn new(
        family: Arc<ColumnFamilyData>,
        plan: Arc<CompactionPlan>,
        mut context: CompactionContext,
    ) -> CompactionJob {
        let chunk_bytes = Arc::new(AtomicUsize::new(context.read.chunk_bytes));
        context.read.chunk_bytes_now = Some(chunk_bytes.clone());
        let encoded = encoded_input(&plan, &context);
        if encoded.is_some() {
            context.read.values = ValueMode::Encoded;
        }
        let ranges = context.ranges.clone();
        let oldest_reader = context.snapshots.first().copied().unwrap_or_default();
        let seen = SeenRanges { ranges: ranges.clone(), as_of: oldest_reader };
        let seen = Some(seen).filter(|seen| !seen.ranges.is_empty());
        let open = |input: &Input| {
            let opener =
                OpenInput { tables: context.tables.clone(), options: context.read.clone() };
            let run = InputRun(input.tables.clone());
            LevelIter::new(run, opener, IterBounds::all()).without(seen.clone())
        };
        let runs: Vec<_> = plan.rewrite.iter().map(open).collect();
        let runs_count = runs.len() as u64;
        let bottommost = bottommost(&family, &plan, context.below.clone());
        let filter = filter_to_be(&family, &plan, &context);
        let class = context.output.class;
        let values = encoded.as_ref().map(|input| EncodedValues::new(input.files.clone(), class));
        let mut output = Output::of_encoded(context.output, encoded);
        output.applies_ranges(ranges.newest(oldest_reader).unwrap_or_default());
        let input = (!runs.is_empty()).then(|| {
            CompactionIter::new(
                MergingIter::new(runs, family.comparator()),
                IterBounds::all(),
                context.snapshots,
                bottommost,
            )
            .compared_by(family.comparator())
            .with_merging(family.options().stored_merging())
            .with_ranges(&ranges)
            .with_encoded(values)
        });
        CompactionJob {
            family,
            below: context.below,
            cutter: None,
            plan,
            remote: None,
            input,
            is_filtered: filter.is_some(),
            filter,
            finish_early: None,
            output,
            to_open: Some(0),
            stats: CompactionStats::default(),
            dropped_values: BTreeMap::new(),
            garbage: BTreeMap::new(),
            chunk_bytes,
            chunk_bytes_max: context.read.chunk_bytes as u64,
            chunk_bytes_most: 0,
            runs: runs_count,
            bytes_out: 0,
            started: clock::now(),
        }
    }

    /// Returns the approximate bytes of the buffers that the job reads and writes through: one
    /// chunk for each input run, and the output's.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.runs * self.chunk_bytes_most + crate::background::output::BUFFER_BYTES
    }

    /// Has `remote` do the work, if it can.
    pub(crate) fn sent_by(self, remote: Option<Remote>) -> CompactionJob {
        CompactionJob { remote, ..self }
    }

    /// Notes what another process has done.
    pub(super) fn ended_elsewhere(&mut self, stats: CompactionStats, bytes_out: u64) {
        (self.input, self.stats, self.bytes_out) = (None, stats, bytes_out);
    }

    /// Does at most about `bytes` bytes of work. A plan without inputs to rewrite is done at once.
    pub(crate) fn step(&mut self, bytes: u64, counters: &Counters) -> Result<Step> {
        if let Some(stepped) = self.step_remote(bytes, counters) {
            return stepped;
        }
        let Some(mut input) = self.input.take() else {
            return self.finish(0, self.plan.edit());
        };
        if let Some(filter) = self.filter.take() {
            input.filter_by(filter.create()?);
        }
        let chunk_bytes = (bytes / CHUNKS_OF_STEP).max(CHUNK_BYTES_MIN);
        self.chunk_bytes
            .store(usize::try_from(chunk_bytes).unwrap_or(usize::MAX), Ordering::Relaxed);
        self.chunk_bytes_most = self.chunk_bytes_most.max(chunk_bytes.min(self.chunk_bytes_max));
        let start = self.output.bytes_written();
        // Opening a run reads a chunk, so that opening many of them takes several steps.
        while let Some(next) = self.to_open {
            self.to_open = input.open_run(next)?.then_some(next + 1);
            if self.to_open.is_some() && step_read_bytes() >= bytes {
                self.input = Some(input);
                return Ok(Step::More(StepBytes::default()));
            }
        }
        let cutter = self.cutter.get_or_insert_with(|| {
            let grandparents = match self.below.take() {
                Some(below) => self.plan.grandparents_of(below),
                None => self.plan.grandparents(&self.family.super_version().version),
            };
            self.plan.output_cutter(grandparents)
        });
        let start_in = input.stats().bytes_in;
        let mut has_read_its_grant;
        loop {
            let moved = input.stats().bytes_in - start_in;
            // Many runs may reach the end of their chunks at about the same key, and read the next
            // ones.
            has_read_its_grant = moved > 0 && step_read_bytes() >= bytes;
            if moved >= bytes || has_read_its_grant {
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
                            let edit = self.plan.edit_before(key::user_key(key));
                            self.end_input(&mut input, false);
                            return self.finish(start, edit);
                        }
                        let open_bytes = self.output.table_bytes();
                        let cut = cutter.cut_before(key::user_key(key), open_bytes);
                        if cut && self.output.has_open_table() {
                            self.output.end_table()?;
                        }
                    }
                    self.output.add(counters, key, value)?;
                    if let Some(kept) = self.output.kept_place()
                        && let Some(encoded) = input.encoded()
                    {
                        encoded.keep(kept);
                    }
                }
                Pulled::Paused => break,
                Pulled::End => {
                    self.end_input(&mut input, true);
                    return self.finish(start, self.plan.edit());
                }
            }
        }
        self.input = Some(input);
        let written = self.output.bytes_written() - start;
        Ok(Step::More(StepBytes { written, has_read_its_grant, ..StepBytes::default() }))
    }

    /// Takes from the input what is known of it, once the job needs no more of it.
    fn end_input(&mut self, input: &mut Merged, examined_all: bool) {
        self.stats = *input.stats();
        if let Some(encoded) = input.encoded() {
            self.dropped_values = encoded.take_dropped(examined_all);
            self.garbage = encoded.take_garbage();
        }
    }

    /// Returns the places in value files that the inputs have and the outputs do not keep.
    pub(crate) fn dropped_values(&mut self) -> BTreeMap<FileId, Extents> {
        std::mem::take(&mut self.dropped_values)
    }

    /// Returns how many values of value files the finished job dropped, by their file.
    pub(crate) fn garbage(&self) -> impl Iterator<Item = (FileId, ValueCount)> {
        self.garbage.iter().map(|(file, count)| (*file, *count))
    }

    /// Returns the value files that the finished job wrote.
    pub(crate) fn value_files(&self) -> impl Iterator<Item = (FileId, ValueCount)> {
        self.output.value_files()
    }

    /// Tells the job to end as soon as its result can be installed by itself. A filtered compaction
    /// cannot end early: the inputs that stay above would still have the unfiltered entries.
    pub(crate) fn finish_early(&mut self) {
        if self.finish_early.is_none() && !self.is_filtered {
            self.finish_early = self.plan.early_end();
        }
    }

    /// Ends the output and adds its tables to `edit`.
    fn finish(&mut self, start: u64, mut edit: VersionEdit) -> Result<Step> {
        let tables = self.output.finish()?;
        let tables_out = tables.iter().map(|table| table.size_bytes).sum::<u64>();
        self.bytes_out = tables_out + self.output.value_bytes();
        let (level, epoch) = (self.plan.output_level, self.plan.output_epoch);
        edit.added.extend(tables.into_iter().map(|table| AddedTable { level, epoch, table }));
        let moved = StepBytes::written(self.output.bytes_written() - start);
        Ok(Step::Done(moved, Box::new(edit)))
    }

    /// Returns what the job did, for the metrics.
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
            duration: clock::since(self.started),
        }
    }

    /// Returns all files of the job, finished or not.
    pub(crate) fn files(&self) -> &[FileId] {
        self.output.files()
    }

    pub(crate) fn abandon(&mut self) {
        self.cancel_remote();
        self.input = None;
        self.output.abandon();
    }
}

/// Returns a function that tells for ascending keys whether nothing older than the outputs may hold
/// them. It looks that up at the first key, which few jobs ask about.
fn bottommost(
    family: &Arc<ColumnFamilyData>,
    plan: &Arc<CompactionPlan>,
    below: Option<Vec<Below>>,
) -> Bottommost {
    let (family, plan) = (family.clone(), plan.clone());
    let look = move || below.clone().unwrap_or_else(|| plan.below(&family.super_version().version));
    let mut keys: Option<KeysBelow> = None;
    Box::new(move |user_key| {
        !keys.get_or_insert_with(|| KeysBelow::new(&look())).may_contain(user_key)
    })
}

/// Returns what is known of the value files of the inputs; `None` if they have none.
fn encoded_input(plan: &CompactionPlan, context: &CompactionContext) -> Option<EncodedInput> {
    let mut tables = plan.rewrite.iter().flat_map(|input| &input.tables);
    if tables.all(|table| table.values.is_empty()) {
        return None;
    }
    Some(EncodedInput {
        files: context.tables.values().clone(),
        collect: plan.collect.clone(),
        sizes: context.value_files.iter().map(|(id, file)| (id, file.bytes)).collect(),
    })
}

/// Returns the filter of a compaction by `plan`; `None` if its column family has none.
fn filter_to_be(
    family: &ColumnFamilyData,
    plan: &CompactionPlan,
    context: &CompactionContext,
) -> Option<FilterToBe> {
    let filtering = family.options().stored_filtering(&context.output.options.wall_clock)?;
    Some(FilterToBe {
        filtering,
        context: CompactionFilterContext {
            is_full_compaction: context.is_full,
            is_manual_compaction: plan.reason.is_manual(),
            column_family: family.whole(),
            output_level: plan.output_level,
        },
        level: plan.start_level(),
        newest_snapshot: context.newest_snapshot,
    })
}
