//! Files that hold too little for the space they take: their tables are rewritten into the level
//! they are in, and the file goes (BoLT §3.1 leaves it with its holes for good).
//!
//! 1. The driver measures all compaction files. [`sparse_files`] chooses those with very many holes
//!    or very little left, and then the worst until little space is kept back.
//! 2. [`SparseTables::of`] finds their tables in a version.
//! 3. [`SparseTables::pick`] makes a plan of those of one run, when nothing else is to be
//!    compacted.

use std::collections::BTreeSet;

use crate::geometry::Span;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::types::{FileId, TableId, UserKey};
use crate::version::{Run, Version};

/// Files that do not give back dead bytes may keep back one part in this many of all live bytes.
const KEPT_BACK_PART: u64 = 10;
/// The most holes that a file may have. With more it costs its file system more than it is worth.
const HOLES_MAX: u32 = 64;
/// A file of this size goes when at most one part in `LITTLE_LEFT_PART` of it is left.
const LITTLE_LEFT_OF: u64 = 16 << 20;
const LITTLE_LEFT_PART: u64 = 16;
/// The most that one such compaction takes, if it has more than one table. It cannot end early, and
/// level 0 may have to wait for it.
const PLAN_BYTES_MAX: u64 = 32 << 20;

/// The live and dead bytes of a compaction file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSpace {
    /// The file.
    pub file: FileId,
    /// Bytes of live tables.
    pub live_bytes: u64,
    /// Bytes of dead tables that still take space.
    pub dead_bytes: u64,
    /// True if dead bytes are given back before the file goes.
    pub gives_back: bool,
    /// Bytes given back.
    pub punched_bytes: u64,
    /// The holes that these bytes are.
    pub holes: u32,
}

impl FileSpace {
    fn has_little_left(&self) -> bool {
        let bytes = self.live_bytes + self.dead_bytes + self.punched_bytes;
        bytes >= LITTLE_LEFT_OF && self.live_bytes <= bytes / LITTLE_LEFT_PART
    }

    /// Returns the dead bytes for each byte that would have to be rewritten.
    fn gain(&self) -> u64 {
        self.dead_bytes.saturating_mul(1 << 10) / self.live_bytes.max(1)
    }
}

/// Returns the files whose tables should be rewritten.
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

/// Tables that should be rewritten where they are: level, smallest key and id of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseTables(Vec<(u8, UserKey, TableId)>);

impl SparseTables {
    /// Returns the tables of `version` in `files`. Tables in level 0 leave it soon enough.
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

    /// Forgets tables that are gone.
    fn keep_those_of(&mut self, version: &Version) {
        self.0.retain(|(level, smallest, id)| {
            let runs = version.level(*level).runs();
            runs.iter().any(|run| run.locate(smallest.bytes(), *id).is_some())
        });
    }

    /// Returns a plan for the next of them, all of one run.
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
        // They are in key order, as the version gave them.
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
            // It joins its neighbour only if no other job writes into the gap between them.
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
