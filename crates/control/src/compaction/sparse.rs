//! Sparse files: files that hold little for the space that they take. Their tables are rewritten
//! into their own level, and the file is removed (BoLT §3.1 keeps it with its holes for good).
//!
//! 1. The driver measures all compaction files. [`sparse_files`] chooses those with very many holes
//!    or very few live bytes, and then the worst ones until few dead bytes are left in files that
//!    cannot be punched.
//! 2. [`SparseTables::of`] finds their tables in a version.
//! 3. [`SparseTables::with_garbage`] finds the tables that refer to value files with much garbage.
//! 4. [`SparseTables::pick`] makes a plan for those of one run, when there is nothing else to
//!    compact.

use std::collections::BTreeSet;

use crate::geometry::Span;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::{PickContext, ValueOptions};
use crate::types::{FileId, TableId, UserKey};
use crate::version::{Run, TableMeta, Version};

/// Dead bytes in files that cannot be punched may be this part of all live bytes.
const KEPT_BACK_PART: u64 = 10;
/// The largest number of holes in a file. With more it costs the file system more than it is worth.
const HOLES_MAX: u32 = 64;
/// A file of at least this size is sparse if at most this part of it is live.
const LITTLE_LEFT_OF: u64 = 16 << 20;
const LITTLE_LEFT_PART: u64 = 16;
/// The most bytes of such a compaction, with the values that it copies, if it has more than one
/// table. It cannot end early, and level 0 may have to wait for it.
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
    /// Whether dead bytes are freed before the file is removed.
    pub gives_back: bool,
    /// Bytes that were freed by punching holes.
    pub punched_bytes: u64,
    /// Number of these holes.
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

/// Tables that should be rewritten in their level: level, smallest key and id of each.
#[derive(Clone, Debug)]
pub(crate) struct SparseTables {
    tables: Vec<(u8, UserKey, TableId)>,
    reason: CompactionReason,
}

impl Default for SparseTables {
    fn default() -> SparseTables {
        SparseTables { tables: Vec::new(), reason: CompactionReason::SparseFile }
    }
}

impl SparseTables {
    /// Returns the tables of `version` in `files`. Tables in level 0 are left out, because they
    /// leave it soon.
    pub(crate) fn of(version: &Version, files: &BTreeSet<FileId>) -> SparseTables {
        if files.is_empty() {
            return SparseTables::default();
        }
        let of_file = |table: &TableMeta| files.contains(&table.placement.file());
        SparseTables::that(version, CompactionReason::SparseFile, of_file)
    }

    /// Returns the tables of `version` that refer to old value files, if these have so much garbage
    /// that it is collected for its own sake.
    pub(crate) fn with_garbage(version: &Version, options: &ValueOptions) -> SparseTables {
        let (files, part) = (version.value_files(), options.garbage_age_cutoff);
        let threshold = options.garbage_force_threshold;
        if files.is_empty() || !options.garbage_collection || !files.is_due(part, threshold) {
            return SparseTables::default();
        }
        let garbage = files.to_collect(part);
        let refers =
            |table: &TableMeta| table.values.files.iter().any(|one| garbage.contains(&one.file));
        SparseTables::that(version, CompactionReason::ValueGarbage, refers)
    }

    fn that(
        version: &Version,
        reason: CompactionReason,
        is_wanted: impl Fn(&TableMeta) -> bool,
    ) -> SparseTables {
        let tables = version.tables().filter(|(level, _, table)| *level > 0 && is_wanted(table));
        let tables = tables.map(|(level, _, table)| (level, table.smallest.clone(), table.id));
        SparseTables { tables: tables.collect(), reason }
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Forgets tables that are not in `version` any more.
    fn keep_those_of(&mut self, version: &Version) {
        self.tables.retain(|(level, smallest, id)| {
            version.level(*level).locate(smallest.bytes(), *id).is_some()
        });
    }

    /// Returns a plan for the next of them, all of one run.
    pub(crate) fn pick(&mut self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        self.keep_those_of(context.version);
        let levels: BTreeSet<_> = self.tables.iter().map(|table| table.0).collect();
        levels.into_iter().find_map(|level| {
            let runs = context.version.level(level).runs();
            runs.iter().find_map(|run| self.pick_run(context, level, run))
        })
    }

    fn pick_run(&self, context: &PickContext<'_>, level: u8, run: &Run) -> Option<CompactionPlan> {
        let bytes_max = context.options.compaction_input_max().min(PLAN_BYTES_MAX);
        let (mut bytes, copied) = (0_u64, context.files_to_collect());
        let mut spans: Vec<Span<'_>> = Vec::new();
        // The tables are in key order, as in the version.
        for (_, smallest, id) in self.tables.iter().filter(|table| table.0 == level) {
            let Some((rank, table)) = run.locate(smallest.bytes(), *id) else { continue };
            let span = Span { level, run, ranks: rank..rank + 1 };
            if !context.may_take([&span], level) {
                continue;
            }
            let values = table.values.files.iter().filter(|one| copied.contains(&one.file));
            bytes += table.size_bytes + values.map(|one| one.bytes).sum::<u64>();
            if bytes > bytes_max && !spans.is_empty() {
                break;
            }
            // The table joins its neighbour only if no other job writes into the gap between them.
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
        let mut plan = context.plan(self.reason, &spans, &[], output)?;
        let starts = spans.iter().skip(1).filter_map(Span::bounds);
        plan.score = 0.0;
        plan.breaks = starts.map(|bounds| bounds.0.clone()).collect();
        Some(plan)
    }
}
