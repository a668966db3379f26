//! A compaction as a value: what is rewritten, what changes level as it is, what goes, and how the
//! output is cut.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{OutputCutter, union};

use crate::options::CompressionCode;
use crate::types::{ColumnFamilyId, Epoch, IoClass, RequestId, UserKey};
use crate::version::{AddedTable, RemovedTable, Run, TableMeta, VersionEdit};

/// Tables of one run, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Their level.
    pub level: u8,
    /// Their run.
    pub epoch: Epoch,
    /// The tables: never empty.
    pub tables: Vec<Arc<TableMeta>>,
}

impl Input {
    /// The sum of the tables' `size_bytes`.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.size_bytes).sum()
    }
}

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompactionReason {
    /// Level 0 has many runs.
    Level0Runs,
    /// Level 0 has many runs, and their way down is blocked or not worth its bytes.
    IntraLevel0,
    /// A level is over its target.
    LevelSize,
    /// A level is in use that the data does not need.
    UnneededLevel,
    /// A file holds too little for what it takes: its tables are written anew where they are.
    SparseFile,
    /// Deletions of ranges leave nothing of tables: they go, unread.
    RangeDeleted,
    /// A client asked.
    Manual,
    /// A client asked: the lowest level is rewritten in place.
    ManualBottommost,
    /// A client chose the files.
    ManualFiles,
}

impl CompactionReason {
    /// The name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CompactionReason::Level0Runs => "level0-runs",
            CompactionReason::IntraLevel0 => "intra-level0",
            CompactionReason::LevelSize => "level-size",
            CompactionReason::UnneededLevel => "unneeded-level",
            CompactionReason::SparseFile => "sparse-file",
            CompactionReason::RangeDeleted => "range-deleted",
            CompactionReason::Manual => "manual",
            CompactionReason::ManualBottommost => "manual-bottommost",
            CompactionReason::ManualFiles => "manual-files",
        }
    }

    /// Whether a client asked.
    #[must_use]
    pub fn is_manual(self) -> bool {
        use CompactionReason::{Manual, ManualBottommost, ManualFiles};
        matches!(self, Manual | ManualBottommost | ManualFiles)
    }

    /// Whether level 0 has too many runs.
    pub(crate) fn is_level0(self) -> bool {
        matches!(self, CompactionReason::Level0Runs | CompactionReason::IntraLevel0)
    }
}

/// Where output tables end. What is cut where is decided by [`OutputCutter`](super::OutputCutter).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputSplit {
    /// By size, looking at the level below the output.
    BySize {
        /// The size aimed at.
        target_bytes: u64,
        /// The most that an output table may overlap with the level below the output.
        grandparent_overlap_bytes_max: u64,
        /// Tables may become larger or smaller than the target to end where a table below ends.
        at_grandparent_boundaries: bool,
        /// A sixteenth of the target is enough to end at a gap between keys that is far wider than
        /// what the table spans.
        at_gaps: bool,
    },
    /// By overlap with the level below the output (vLSM §4.2.1): from the smallest size on as soon
    /// as it overlaps more than so many times its own size.
    ByOverlap {
        /// The smallest table.
        bytes_min: u64,
        /// The largest table.
        bytes_max: u64,
        /// How many times its own size a table may overlap.
        times: u64,
    },
    /// At guards, and by size between them (PebblesDB).
    AtGuards {
        /// Those that are known, ascending.
        guards: Vec<UserKey>,
        /// One key in two to the power of this is one, whether it is known or not.
        bits: u32,
        /// The size aimed at.
        target_bytes: u64,
    },
}

/// A compaction: a value that says everything a job needs to know, and prints as one line.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionPlan {
    /// Whose tables.
    pub cf: ColumnFamilyId,
    /// Why.
    pub reason: CompactionReason,
    /// Tables that are merged and written anew: newest data first (the order of the runs is the
    /// order in which a merge prefers equal sequence numbers).
    pub rewrite: Vec<Input>,
    /// Tables that join the output level as they are.
    pub settle: Vec<Input>,
    /// Tables that go, unread.
    pub drop: Vec<Input>,
    /// Where the outputs go.
    pub output_level: u8,
    /// The run that the outputs join: `Epoch(0)` below level 0.
    pub output_epoch: Epoch,
    /// Where output tables end.
    pub split: OutputSplit,
    /// Keys that no output table goes across: each begins another one at or after it. Ascending.
    /// Inputs on both sides of one have nothing to do with each other, and the output level may
    /// have tables between them that are none of this plan's.
    pub breaks: Vec<UserKey>,
    /// How outputs are compressed.
    pub compression: CompressionCode,
    /// For whom the I/O is done.
    pub class: IoClass,
    /// The level's cursor once this is done.
    pub compact_pointer: Option<(u8, UserKey)>,
    /// The score that made it urgent; 0 if it was asked for.
    pub score: f64,
    /// Everything older than the outputs that shares keys with them, when the plan was made.
    /// Claims make sure that no key joins these runs before the plan is over.
    pub below: Vec<Below>,
    /// The request whose answer tells what this made.
    pub request: Option<RequestId>,
}

/// A run older than a plan's outputs, and the tables of it that share keys with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// Its level.
    pub level: u8,
    /// The run, as it was when the plan was made.
    pub run: Run,
    /// The ranks of the tables that share keys with the outputs: never empty.
    pub overlap: Range<usize>,
}

impl CompactionPlan {
    /// Every input: rewritten, settled, dropped.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.rewrite.iter().chain(&self.settle).chain(&self.drop)
    }

    /// The bytes that the job reads.
    #[must_use]
    pub fn rewrite_bytes(&self) -> u64 {
        self.rewrite.iter().map(Input::bytes).sum()
    }

    /// Whether nothing is read or written: only the manifest changes.
    #[must_use]
    pub fn is_trivial_move(&self) -> bool {
        self.rewrite.is_empty()
    }

    /// The ranges of keys that the inputs and the outputs take, ascending: one, or as many as
    /// breaks make of it.
    #[must_use]
    pub fn ranges(&self) -> Vec<(UserKey, UserKey)> {
        let mut ranges: Vec<Option<(&UserKey, &UserKey)>> = vec![None; self.breaks.len() + 1];
        for table in self.inputs().flat_map(|input| &input.tables) {
            let at = self.breaks.partition_point(|key| *key <= table.smallest);
            if let Some(range) = ranges.get_mut(at) {
                let bounds = (&table.smallest, &table.largest);
                *range = Some(union(bounds, *range));
            }
        }
        let ranges = ranges.into_iter().flatten();
        ranges.map(|(smallest, largest)| (smallest.clone(), largest.clone())).collect()
    }

    /// The lowest input level that is not the output level; the output level if there is none.
    #[must_use]
    pub fn start_level(&self) -> u8 {
        self.inputs().map(|input| input.level).min().unwrap_or(self.output_level)
    }

    /// Whether nothing older shares any key with the outputs: all tombstones that no snapshot needs
    /// may go. If not, ask [`CompactionPlan::keys_below`] key by key.
    #[must_use]
    pub fn is_bottommost(&self) -> bool {
        self.below.is_empty()
    }

    /// Answers for ascending keys whether anything older may hold them: a tombstone for a key that
    /// nothing older holds, and that no snapshot needs, may go.
    #[must_use]
    pub fn keys_below(&self) -> KeysBelow {
        let runs = self.below.iter().map(|below| (below.run.clone(), below.overlap.start, None));
        KeysBelow { runs: runs.collect() }
    }

    /// Decides where the job's output tables end.
    #[must_use]
    pub fn output_cutter(&self) -> OutputCutter {
        OutputCutter::new(self)
    }

    /// The edit of this plan, without the tables that the job writes: add them to `added` at
    /// `output_level` and `output_epoch`.
    #[must_use]
    pub fn edit(&self) -> VersionEdit {
        let removed = self.inputs().flat_map(|input| {
            input.tables.iter().map(|table| RemovedTable {
                level: input.level,
                epoch: input.epoch,
                smallest: table.smallest.clone(),
                id: table.id,
            })
        });
        let settled = self.settle.iter().flat_map(|input| &input.tables).map(|table| AddedTable {
            level: self.output_level,
            epoch: self.output_epoch,
            table: table.clone(),
        });
        VersionEdit {
            column_family: self.cf,
            removed: removed.collect(),
            added: settled.collect(),
            compact_pointers: self.compact_pointer.iter().cloned().collect(),
            ..VersionEdit::default()
        }
    }
}

impl fmt::Display for CompactionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} score={:.2}", self.cf, self.reason.name(), self.score)?;
        for (verb, inputs) in
            [("rewrite", &self.rewrite), ("settle", &self.settle), ("drop", &self.drop)]
        {
            for (at, input) in inputs.iter().enumerate() {
                write!(
                    f,
                    "{}L{}",
                    if at == 0 { format!(" {verb} ") } else { "+".into() },
                    input.level
                )?;
                if input.level == 0 || input.epoch != Epoch(0) {
                    write!(f, ".{}", input.epoch)?;
                }
                let ids: Vec<_> = input.tables.iter().map(|table| table.id.to_string()).collect();
                write!(f, "[{}]", ids.join(" "))?;
            }
        }
        write!(f, " -> L{}", self.output_level)?;
        if self.output_level == 0 || self.output_epoch != Epoch(0) {
            write!(f, ".{}", self.output_epoch)?;
        }
        if !self.breaks.is_empty() {
            let keys: Vec<_> =
                self.breaks.iter().map(|key| key.bytes().escape_ascii().to_string()).collect();
            write!(f, " breaks=[{}]", keys.join(" "))?;
        }
        if let OutputSplit::AtGuards { guards, .. } = &self.split {
            write!(f, " guards={}", guards.len())?;
        }
        write!(f, " class={}", self.class)?;
        if self.is_bottommost() {
            write!(f, " bottommost")?;
        }
        Ok(())
    }
}

/// See [`CompactionPlan::keys_below`].
#[derive(Clone, Debug)]
pub struct KeysBelow {
    /// Each older run, the rank of its first table that can still matter, and that table.
    runs: Vec<(Run, usize, Option<Arc<TableMeta>>)>,
}

impl KeysBelow {
    /// Whether anything older may hold `user_key`. Keys must not descend from call to call.
    pub fn may_contain(&mut self, user_key: &[u8]) -> bool {
        self.runs.iter_mut().any(|(run, at, table)| {
            if table.is_none() {
                *table = run.get(*at).cloned();
            }
            while table.as_ref().is_some_and(|table| table.largest < *user_key) {
                *at += 1;
                *table = run.get(*at).cloned();
            }
            table.as_ref().is_some_and(|table| table.smallest <= *user_key)
        })
    }
}
