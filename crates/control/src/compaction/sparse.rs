//! Compaction files that hold too little for what they take: their tables are written anew, into
//! the level they are in, and the file goes (BoLT §3.1 leaves it with its holes for good).

use std::collections::BTreeSet;

use super::plan::{CompactionPlan, CompactionReason};
use super::{PickContext, Span};
use crate::types::{FileId, TableId, UserKey};
use crate::version::{Run, Version};

/// Of all that is live so much may be kept back by files that do not give back what is dead: one
/// part in so many.
const KEPT_BACK_PART: u64 = 10;
/// With so many holes a file costs its file system more than its tables are worth.
const HOLES_MAX: u32 = 64;
/// A file of this size or more goes when it has no more left than one part in so many.
const LITTLE_LEFT_OF: u64 = 16 << 20;
const LITTLE_LEFT_PART: u64 = 16;
/// One such compaction takes so much, or a table: it cannot end early, and level 0 may come to wait
/// for it.
const PLAN_BYTES_MAX: u64 = 32 << 20;

/// What a compaction file holds, and what it does not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSpace {
    /// Which.
    pub file: FileId,
    /// Bytes of tables that are needed.
    pub live_bytes: u64,
    /// Bytes of others that it takes all the same.
    pub dead_bytes: u64,
    /// Whether those are given back before the file goes.
    pub gives_back: bool,
    /// Bytes given back.
    pub punched_bytes: u64,
    /// The holes that those are.
    pub holes: u32,
}

impl FileSpace {
    fn has_little_left(&self) -> bool {
        let bytes = self.live_bytes + self.dead_bytes + self.punched_bytes;
        bytes >= LITTLE_LEFT_OF && self.live_bytes <= bytes / LITTLE_LEFT_PART
    }

    /// What it keeps back for each byte that would have to be written.
    fn gain(&self) -> u64 {
        self.dead_bytes.saturating_mul(1 << 10) / self.live_bytes.max(1)
    }
}

/// The files whose tables should be written anew.
#[must_use]
pub fn sparse_files(files: &[FileSpace]) -> BTreeSet<FileId> {
    let sparse = files.iter().filter(|file| file.holes > HOLES_MAX || file.has_little_left());
    let mut sparse: BTreeSet<_> = sparse.map(|file| file.file).collect();
    let live: u64 = files.iter().map(|file| file.live_bytes).sum();
    let kept_back = |file: &&FileSpace| !file.gives_back && !sparse.contains(&file.file);
    let mut others: Vec<_> = files.iter().filter(kept_back).collect();
    others.sort_unstable_by_key(|file| (file.gain(), file.file));
    let mut dead: u64 = others.iter().map(|file| file.dead_bytes).sum();
    while dead > live / KEPT_BACK_PART
        && let Some(worst) = others.pop()
    {
        dead -= worst.dead_bytes;
        sparse.insert(worst.file);
    }
    sparse
}

/// Tables that should be written anew where they are: level, smallest key and number of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseTables(Vec<(u8, UserKey, TableId)>);

impl SparseTables {
    /// Those of `version` in `files`. What is in level 0 leaves it soon enough.
    pub(crate) fn of(version: &Version, files: &BTreeSet<FileId>) -> SparseTables {
        if files.is_empty() {
            return SparseTables::default();
        }
        let tables = version
            .tables()
            .filter(|(level, _, table)| *level > 0 && files.contains(&table.placement.file()));
        SparseTables(
            tables.map(|(level, _, table)| (level, table.smallest.clone(), table.id)).collect(),
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets those that are gone.
    fn keep_those_of(&mut self, version: &Version) {
        self.0.retain(|(level, smallest, id)| {
            let runs = version.level(*level).runs();
            runs.iter().any(|run| run.locate(smallest.bytes(), *id).is_some())
        });
    }

    /// The next of them, all of one run.
    pub(crate) fn pick(&mut self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        self.keep_those_of(context.version);
        let levels: BTreeSet<_> = self.0.iter().map(|table| table.0).collect();
        levels.into_iter().find_map(|level| {
            let runs = context.version.level(level).runs();
            runs.iter().find_map(|run| self.pick_run(context, level, run))
        })
    }

    fn pick_run(&self, context: &PickContext<'_>, level: u8, run: &Run) -> Option<CompactionPlan> {
        let bytes_max = context.options.compaction_bytes_max().min(PLAN_BYTES_MAX);
        let mut bytes = 0;
        let mut spans: Vec<Span<'_>> = Vec::new();
        // In the order of their keys, as the version gave them.
        for (_, smallest, id) in self.0.iter().filter(|table| table.0 == level) {
            let Some((rank, table)) = run.locate(smallest.bytes(), *id) else { continue };
            let span = Span { level, run, ranks: rank..rank + 1 };
            if !context.may_take([&span], level) {
                continue;
            }
            bytes += table.size_bytes;
            if bytes > bytes_max && !spans.is_empty() {
                break;
            }
            // With its neighbour only if the gap between them is nobody's either.
            match spans.last_mut() {
                Some(last) if last.ranks.end == rank => {
                    let wider = Span { ranks: last.ranks.start..rank + 1, ..last.clone() };
                    if context.may_take([&wider], level) {
                        *last = wider;
                    } else {
                        spans.push(span);
                    }
                }
                _ => spans.push(span),
            }
        }
        let output = (level, run.epoch());
        let mut plan = context.plan(CompactionReason::SparseFile, &spans, &[], output)?;
        let starts = spans.iter().skip(1).filter_map(Span::bounds);
        plan.score = 0.0;
        plan.breaks = starts.map(|bounds| bounds.0.clone()).collect();
        Some(plan)
    }
}
