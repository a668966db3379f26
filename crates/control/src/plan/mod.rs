//! Compactions as values, and the claims of those that run.
//!
//! 1. A policy, or a manual compaction, makes a [`CompactionPlan`]. It names the tables to rewrite,
//!    to settle (move to another level as they are) and to drop, and says where outputs end.
//! 2. The control plane claims its tables and key ranges ([`InFlight::claim`]).
//! 3. The job looks up what is older than its outputs (`below`). With that it asks
//!    [`CompactionPlan::output_cutter`] where tables end, and [`KeysBelow`] whether a tombstone may
//!    be dropped. [`CompactionPlan::early_end`] says where it may stop.
//! 4. [`CompactionPlan::edit`] returns the change of the version. The job adds its output tables.

mod below;
mod early_end;
mod in_flight;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub(crate) use below::older_than;
pub use below::{Below, KeysBelow};
pub use early_end::EarlyEnd;
pub use in_flight::{ClaimError, InFlight};

use crate::geometry::{OutputSplit, Span, union};
use crate::types::{ColumnFamilyId, CompressionCode, Epoch, FileId, IoClass, RequestId, UserKey};
use crate::version::{AddedTable, RemovedTable, TableMeta, VersionEdit};

/// Tables of one run, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The run's level.
    pub level: u8,
    /// The run.
    pub epoch: Epoch,
    /// The tables. Never empty.
    pub tables: Vec<Arc<TableMeta>>,
}

impl Input {
    /// Returns the sum of the tables' `size_bytes`.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.size_bytes).sum()
    }
}

/// The reason for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompactionReason {
    /// Level 0 has many runs.
    Level0Runs,
    /// Level 0 has many runs, and a compaction out of it is blocked or would rewrite too much.
    IntraLevel0,
    /// A level is over its target.
    LevelSize,
    /// A level is in use that the data does not need.
    UnneededLevel,
    /// Reads looked into a table in vain too often.
    Charged,
    /// A file holds little for the space that it takes, so its tables are rewritten in their level.
    SparseFile,
    /// Value files hold much garbage, so values are copied out of them.
    ValueGarbage,
    /// Range tombstones hide all of a table, which is dropped unread.
    RangeDeleted,
    /// A client asked for it.
    Manual,
    /// A client asked for it, and the lowest level is rewritten in place.
    ManualBottommost,
    /// A client chose the files.
    ManualFiles,
}

impl CompactionReason {
    /// Returns the name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CompactionReason::Level0Runs => "level0-runs",
            CompactionReason::IntraLevel0 => "intra-level0",
            CompactionReason::LevelSize => "level-size",
            CompactionReason::UnneededLevel => "unneeded-level",
            CompactionReason::Charged => "charged",
            CompactionReason::SparseFile => "sparse-file",
            CompactionReason::ValueGarbage => "value-garbage",
            CompactionReason::RangeDeleted => "range-deleted",
            CompactionReason::Manual => "manual",
            CompactionReason::ManualBottommost => "manual-bottommost",
            CompactionReason::ManualFiles => "manual-files",
        }
    }

    /// Returns true if a client asked for it.
    #[must_use]
    pub fn is_manual(self) -> bool {
        use CompactionReason::{Manual, ManualBottommost, ManualFiles};
        matches!(self, Manual | ManualBottommost | ManualFiles)
    }

    /// Returns true if the reason is the number of runs in level 0.
    pub(crate) fn is_level0(self) -> bool {
        matches!(self, CompactionReason::Level0Runs | CompactionReason::IntraLevel0)
    }
}

/// A compaction: a value with everything that a job needs to know. It prints as one line.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionPlan {
    /// The column family.
    pub cf: ColumnFamilyId,
    /// The reason.
    pub reason: CompactionReason,
    /// Tables that are merged and rewritten, newest data first. Where sequence numbers are equal,
    /// the merge prefers the earlier input.
    pub rewrite: Vec<Input>,
    /// Tables that join the output level as they are.
    pub settle: Vec<Input>,
    /// Tables that are dropped unread.
    pub drop: Vec<Input>,
    /// The level of the outputs.
    pub output_level: u8,
    /// The run that the outputs join.
    pub output_epoch: Epoch,
    /// Where output tables end.
    pub split: OutputSplit,
    /// Keys at which output tables end, ascending. Inputs on both sides of one share no keys. The
    /// output level may have tables between them that the plan does not take.
    pub breaks: Vec<UserKey>,
    /// The compression of the outputs.
    pub compression: CompressionCode,
    /// The directory of the outputs: an index of the column family's `paths`.
    pub path: usize,
    /// The class of the job's I/O.
    pub class: IoClass,
    /// The level's round-robin cursor after the compaction.
    pub compact_pointer: Option<(u8, UserKey)>,
    /// The score of the level in which it starts; 0 if a client asked for it.
    pub score: f64,
    /// Whether nothing older shares a key with the outputs. Then all tombstones that no snapshot
    /// needs may be dropped.
    pub is_bottommost: bool,
    /// Value files out of which the job copies the values that it keeps, because they have garbage.
    pub collect: BTreeSet<FileId>,
    /// The client's request whose answer names the outputs.
    pub request: Option<RequestId>,
}

impl CompactionPlan {
    /// Returns every input: rewritten, settled, dropped.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.rewrite.iter().chain(&self.settle).chain(&self.drop)
    }

    /// Returns the bytes that the job reads.
    #[must_use]
    pub fn rewrite_bytes(&self) -> u64 {
        self.rewrite.iter().map(Input::bytes).sum()
    }

    /// Returns true if only the manifest changes, and nothing is read or written.
    #[must_use]
    pub fn is_trivial_move(&self) -> bool {
        self.rewrite.is_empty()
    }

    /// Returns true if another process can do the work: tables are rewritten, and no value of them
    /// is in another file.
    #[must_use]
    pub fn can_be_sent(&self) -> bool {
        let mut tables = self.rewrite.iter().flat_map(|input| &input.tables);
        !self.rewrite.is_empty()
            && self.collect.is_empty()
            && tables.all(|table| table.values.is_empty() && table.placement.values().is_none())
    }

    /// Returns the key ranges that the inputs and the outputs take, ascending. Breaks divide them.
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

    /// Returns the uppermost input level; the output level if there is no input.
    #[must_use]
    pub fn start_level(&self) -> u8 {
        self.inputs().map(|input| input.level).min().unwrap_or(self.output_level)
    }

    /// Returns the edit of this plan without the output tables. The job adds them to `added` at
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
        if !self.collect.is_empty() {
            let files: Vec<_> = self.collect.iter().map(FileId::to_string).collect();
            write!(f, " collect=[{}]", files.join(" "))?;
        }
        if self.path > 0 {
            write!(f, " path={}", self.path)?;
        }
        write!(f, " class={}", self.class)?;
        if self.is_bottommost {
            write!(f, " bottommost")?;
        }
        Ok(())
    }
}

/// Returns the inputs for `spans`. Successive spans of one run become one input.
pub(crate) fn inputs(spans: &[Span<'_>]) -> Vec<Input> {
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
