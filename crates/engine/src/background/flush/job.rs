//! A flush: the oldest sealed memtables of a column family become one run of level 0.
//!
//! 1. `start` merges the memtables, newest first, with the hot keys that stay in memory
//!    ([`FlushJob::keep`]) above them.
//! 2. [`FlushJob::step`] pulls entries through a [`CompactionIter`], which drops those that no
//!    snapshot needs. The cutter ends tables at stripes and sizes.
//! 3. Values that stay in the WAL are replaced by references ([`LogValues::stands_for`]).
//! 4. `finish` makes the tables durable. The edit adds them and the range tombstones, and says
//!    which WAL is the oldest that is needed.

use std::path::Path;
use std::sync::Arc;

use sateen_control::compaction::{OutputCutter, Stripes};
use sateen_control::version::{AddedTable, RangeTombstone, RangeTombstones, VersionEdit};
use sateen_control::{Epoch, FileId, LogNumber, SeqNo, ValueKind};
use sateen_store::base::error::Result;
use sateen_store::base::{clock, key};
use sateen_store::files::counters::Counters;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::memtable::{MemTable, MemTableIter};

use super::log_values::LogValues;
use crate::background::compaction::iter::{CompactionIter, Pulled};
use crate::background::driver::step::{Step, StepBytes};
use crate::background::output::{Output, OutputContext};
use crate::background::value_output::ValueCount;
use crate::metrics::FlushDone;
use crate::options::control;
use crate::tree::families::{ColumnFamilyData, Sealed};

type Input = CompactionIter<MergingIter<MemTableIter>, fn(&[u8]) -> bool>;

/// Bytes of a step in [`FlushJob::run`].
const STEP_BYTES: u64 = 8 << 20;

/// A running flush.
pub(crate) struct FlushJob {
    pub(crate) family: Arc<ColumnFamilyData>,
    memtables: Vec<Sealed>,
    /// The hot keys that stay in memory, with the sequence numbers of their newer entries.
    kept: Option<Arc<MemTable>>,
    /// Where the values are that stay in the WAL.
    values: Option<LogValues>,
    input: Option<Input>,
    snapshots: Vec<SeqNo>,
    /// The range tombstones of the memtables.
    ranges: Arc<RangeTombstones>,
    output: Output,
    cutter: OutputCutter,
    /// True if a limit on the space of tables counts.
    checks_space: bool,
    started: std::time::Instant,
    done: FlushDone,
}

impl FlushJob {
    /// Creates a flush of `memtables`, oldest first, into tables that end at `stripes`. An entry is
    /// dropped if none of `snapshots` can tell it from a newer one.
    pub(crate) fn new(
        family: Arc<ColumnFamilyData>,
        memtables: Vec<Sealed>,
        stripes: &Stripes,
        snapshots: Vec<SeqNo>,
        context: OutputContext,
    ) -> FlushJob {
        let options = control::column_family(&context.options, &context.family_options);
        let cutter = options.flush_cutter(stripes);
        let output = Output::new(context);
        FlushJob {
            family,
            memtables,
            kept: None,
            values: None,
            input: None,
            snapshots,
            ranges: Arc::default(),
            output,
            cutter,
            checks_space: false,
            started: clock::now(),
            done: FlushDone::default(),
        }
    }

    /// Has the flush fail as it begins if a limit on the space of tables is reached.
    pub(crate) fn checking_space(self) -> FlushJob {
        FlushJob { checks_space: true, ..self }
    }

    /// Returns the directory of the tables.
    pub(crate) fn directory(&self) -> &Path {
        self.output.directory()
    }

    /// Returns the bytes of the memtables' entries.
    pub(crate) fn input_bytes(&self) -> u64 {
        self.memtables.iter().map(|sealed| sealed.memtable.used_bytes() as u64).sum()
    }

    /// Returns the number of memtables.
    pub(crate) fn memtables(&self) -> usize {
        self.memtables.len()
    }

    /// Returns the sequence number of the newest entry that this flush stores.
    pub(crate) fn last_seqno(&self) -> SeqNo {
        self.memtables.last().map_or(SeqNo(0), |sealed| sealed.last_seqno)
    }

    /// Returns true if a step was done. After that no entry or value can be left out.
    pub(crate) fn has_begun(&self) -> bool {
        self.input.is_some() || self.output.has_written()
    }

    /// Returns true if a client waits until all entries are in tables.
    pub(crate) fn must_store(&self) -> bool {
        self.family.is_to_store(self.last_seqno())
    }

    pub(crate) fn sealed(&self) -> &[Sealed] {
        &self.memtables
    }

    /// Leaves out the keys of `kept`, which newer entries have in memory. Those entries are durable
    /// in a WAL before this flush is installed. `snapshots` are those of now, so that a snapshot
    /// taken since then reads the newer entries.
    pub(crate) fn keep(&mut self, kept: Arc<MemTable>, snapshots: Vec<SeqNo>) {
        (self.kept, self.snapshots) = (Some(kept), snapshots);
    }

    /// Returns the oldest WAL that has an entry of the memtables.
    pub(crate) fn oldest_log(&self) -> Option<LogNumber> {
        self.memtables.first().map(|sealed| sealed.log)
    }

    /// Leaves these values in the WAL.
    pub(crate) fn leave_values(&mut self, values: LogValues) {
        self.output.separate_values(values.file);
        self.values = Some(values);
    }

    /// Returns true if it leaves values in the WAL.
    pub(crate) fn leaves_values(&self) -> bool {
        self.values.is_some()
    }

    /// Returns true if the flush leaves out entries or values that only a WAL has.
    pub(crate) fn needs_log(&self) -> bool {
        self.kept.is_some() || self.values.is_some()
    }

    /// Opens the memtables as one merged input.
    fn start(&mut self) -> Result<Input> {
        if self.checks_space {
            self.output.check_space()?;
        }
        let memtables = self.memtables.iter().rev().map(|sealed| &sealed.memtable);
        let iters = self.kept.iter().chain(memtables).map(MemTable::iter).collect();
        let ranges = self.memtables.iter().filter_map(|sealed| sealed.memtable.ranges());
        let ranges: Vec<_> = ranges.collect();
        if !ranges.is_empty() {
            let all = ranges.iter().flat_map(|ranges| ranges.iter()).cloned();
            self.ranges = Arc::new(RangeTombstones::new(all.collect()));
            let oldest_reader = self.snapshots.first().copied().unwrap_or_default();
            self.output.applies_ranges(self.ranges.newest(oldest_reader).unwrap_or_default());
        }
        let snapshots = self.snapshots.clone();
        let nothing_is_bottommost: fn(&[u8]) -> bool = |_| false;
        let merged = MergingIter::new(iters, self.family.comparator());
        let mut input =
            CompactionIter::new(merged, IterBounds::all(), snapshots, nothing_is_bottommost)
                .compared_by(self.family.comparator())
                .with_merging(self.family.options().stored_merging())
                .with_ranges(&self.ranges);
        input.start()?;
        Ok(input)
    }

    /// Runs the flush to its end, for callers that no job waits behind.
    pub(crate) fn run(&mut self, counters: &Counters) -> Result<VersionEdit> {
        loop {
            if let Step::Done(_, edit) = self.step(STEP_BYTES, counters)? {
                return Ok(*edit);
            }
        }
    }

    /// Does at most about `bytes` bytes of work.
    pub(crate) fn step(&mut self, bytes: u64, counters: &Counters) -> Result<Step> {
        let mut input = match self.input.take() {
            Some(input) => input,
            None => self.start()?,
        };
        let start = self.output.bytes_written();
        let last_seqno = self.last_seqno();
        // Entries that are still in the buffer count, too. A grant limits the work, not only the
        // writes.
        let mut moved = 0;
        while moved < bytes {
            match input.pull(bytes - moved)? {
                Pulled::Entry => {
                    let (key, value) = (input.key(), input.value());
                    if input.starts_user_key() {
                        let open_bytes = self.output.table_bytes();
                        if self.cutter.cut_before(key::user_key(key), open_bytes) {
                            self.output.end_table()?;
                        }
                    }
                    // A newer number belongs to a hot key, which only hides older entries.
                    let seqno = key::seqno(key);
                    if seqno <= last_seqno {
                        let value = match &mut self.values {
                            Some(values) if key::kind(key) == Some(ValueKind::Put) => {
                                values.stands_for(seqno, value)
                            }
                            _ => value,
                        };
                        self.output.add(counters, key, value)?;
                    }
                    moved += (key.len() + value.len()) as u64;
                }
                Pulled::Paused => break,
                Pulled::End => {
                    let stats = input.stats();
                    let kept = self.kept.as_ref().map_or(0, |kept| kept.entries() as u64);
                    self.done.entries_in = stats.entries_in() - kept;
                    self.done.keys_kept = kept;
                    self.done.bytes_in = stats.bytes_in;
                    return self.finish(start);
                }
            }
        }
        self.input = Some(input);
        Ok(Step::More(StepBytes::written(self.output.bytes_written() - start)))
    }

    /// Ends the output and returns the edit.
    fn finish(&mut self, start: u64) -> Result<Step> {
        let tables = self.output.finish()?;
        self.done.tables_out = tables.len() as u64;
        let tables_out = tables.iter().map(|table| table.stored_bytes()).sum::<u64>();
        self.done.bytes_out = tables_out + self.output.value_bytes();
        let epoch = Epoch::at_install(0);
        let added = tables.into_iter().map(|table| AddedTable { level: 0, epoch, table }).collect();
        let (range_tombstones, retired_ranges) = self.range_changes();
        let edit = VersionEdit {
            column_family: self.family.id(),
            added,
            range_tombstones,
            retired_ranges,
            log_number: Some(self.family.oldest_log_after(self.memtables.len())),
            flushed_seqno: Some(self.last_seqno()),
            ..VersionEdit::default()
        };
        let moved = StepBytes::written(self.output.bytes_written() - start);
        Ok(Step::Done(moved, Box::new(edit)))
    }

    /// Returns the range tombstones to be stored, and the numbers of stored ones that they make
    /// obsolete.
    fn range_changes(&self) -> (Vec<RangeTombstone>, Vec<SeqNo>) {
        if self.ranges.is_empty() {
            return Default::default();
        }
        let mut added: Vec<_> = self.ranges.iter().cloned().collect();
        let version = self.family.super_version().version.clone();
        let stored = version.range_tombstones();
        let mut needless = stored.changed(&added, &[]).superseded(&self.snapshots);
        added.retain(|one| !needless.contains(&one.seqno));
        needless.retain(|seqno| stored.iter().any(|one| one.seqno == *seqno));
        (added, needless)
    }

    /// Returns what the flush did, for the metrics.
    pub(crate) fn done(&self) -> FlushDone {
        FlushDone { duration: clock::since(self.started), ..self.done }
    }

    /// Returns all files of the flush, finished or not.
    pub(crate) fn files(&self) -> &[FileId] {
        self.output.files()
    }

    /// Returns the value files that the finished flush wrote.
    pub(crate) fn value_files(&self) -> impl Iterator<Item = (FileId, ValueCount)> {
        self.output.value_files()
    }

    pub(crate) fn abandon(&mut self) {
        self.input = None;
        self.output.abandon();
    }
}
