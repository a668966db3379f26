//! The tree without bytes: versions, and the tables that jobs add to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::compaction::{CompactionPlan, LevelTargets};
use sateen_control::version::{AddedTable, Placement};
use sateen_control::{
    CfOptions, ColumnFamilyId, ControlPlane, Epoch, FileId, SeqNo, TableId, TableMeta, Version,
    VersionEdit,
};
use sateen_workload::Rng;

use crate::error::{Error, Result};
use crate::merge::{self, Output, key, spread};

/// Each region has tables with numbers of its own: this many bits of them.
const TABLE_BITS: u32 = 40;

/// The size of the levels above the last at the start, in percent of their targets.
const SETTLED_PERCENT: u64 = 95;

/// Returns the bytes that wait for compaction, in all regions.
pub(crate) fn debt_bytes(plane: &ControlPlane, trees: &[Tree]) -> u64 {
    trees.iter().filter_map(|tree| plane.pending_compaction_bytes(tree.family)).sum()
}

/// The bytes of tables that were added and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) loaded: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// The tree of one region, which is a column family.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) family: ColumnFamilyId,
    pub(crate) version: Arc<Version>,
    /// Keys are the numbers below this.
    pub(crate) keys: u64,
    /// Bytes of an entry in a table.
    pub(crate) entry_bytes: u64,
    pub(crate) ledger: Ledger,
    /// Tables of level 0 that are in memory, with their bytes, and the bytes that may be.
    in_memory: BTreeMap<TableId, u64>,
    pub(crate) in_memory_max: u64,
    last_table: u64,
    last_epoch: u64,
    last_seqno: u64,
}

impl Tree {
    /// Builds a tree whose last level holds each of `keys` once. The levels above hold what a long
    /// load of overwrites leaves there.
    pub(crate) fn load(
        family: ColumnFamilyId,
        options: &CfOptions,
        keys: u64,
        entry_bytes: u64,
        seed: u64,
    ) -> Result<Tree> {
        let style = options.compaction_style.name().to_owned();
        let mut tree = Tree {
            family,
            version: Arc::new(Version::new(family, options.level_count()).with_style(style)),
            keys: keys.max(1),
            entry_bytes: entry_bytes.max(1),
            ledger: Ledger::default(),
            in_memory: BTreeMap::new(),
            in_memory_max: 0,
            last_table: u64::from(family.0) << TABLE_BITS,
            last_epoch: 0,
            last_seqno: 0,
        };
        let mut rng = Rng::stream(seed, 0x7472_6565 + u64::from(family.0));
        let bytes = keys.saturating_mul(entry_bytes);
        let deepest = options.level_count() - 1;
        let fixed = LevelTargets::new(&tree.version, options);
        let last = if options.dynamic_level_bytes {
            deepest
        } else {
            let fits = (1..deepest).find(|level| bytes <= fixed.bytes_max(*level as u8));
            fits.unwrap_or(deepest)
        };
        tree.fill(options, last as u8, bytes, &mut rng)?;
        let targets = LevelTargets::new(&tree.version, options);
        for level in targets.base_level..last as u8 {
            let part = targets.bytes_max(level) / 100 * SETTLED_PERCENT;
            tree.fill(options, level, part.min(bytes), &mut rng)?;
        }
        tree.ledger = Ledger { loaded: tree.version.bytes(), ..Ledger::default() };
        Ok(tree)
    }

    /// Adds a run of about `bytes` bytes over all keys, in tables of unequal sizes.
    fn fill(&mut self, options: &CfOptions, level: u8, bytes: u64, rng: &mut Rng) -> Result<()> {
        let base = LevelTargets::new(&self.version, options).base_level.min(level);
        let table_bytes = options.target_file_size(level, base);
        let mut tables =
            spread(self.keys, &[], bytes / self.entry_bytes, self.entry_bytes, table_bytes);
        // The boundaries of different levels must differ.
        for at in 1..tables.len() {
            let (before, after) = (tables[at - 1], tables[at]);
            let width = (after.largest - after.smallest) / 3;
            let moved = rng.below(width.max(1));
            let density = after.entries as f64 / (after.largest - after.smallest + 1) as f64;
            let entries = ((density * moved as f64) as u64).min(after.entries.saturating_sub(1));
            tables[at - 1] = Output {
                largest: before.largest + moved,
                entries: before.entries + entries,
                ..before
            };
            tables[at] = Output {
                smallest: after.smallest + moved,
                entries: after.entries - entries,
                ..after
            };
        }
        let range = (SeqNo(1), SeqNo(1));
        let added = tables.iter().map(|table| self.added(level, Epoch(0), table, range)).collect();
        let column_family = self.family;
        self.install(&VersionEdit { column_family, added, ..VersionEdit::default() })
    }

    /// Returns a table in the form in which an edit adds it.
    pub(crate) fn added(
        &mut self,
        level: u8,
        epoch: Epoch,
        output: &Output,
        (seqno_min, seqno_max): (SeqNo, SeqNo),
    ) -> AddedTable {
        self.last_table += 1;
        let size_bytes = output.entries * self.entry_bytes;
        let table = Arc::new(TableMeta {
            id: TableId(self.last_table),
            placement: Placement::WholeFile(FileId(self.last_table)),
            size_bytes,
            smallest: key(output.smallest),
            largest: key(output.largest),
            seqno_min,
            seqno_max,
            entries: output.entries,
            tombstones: 0,
            merges: 0,
            ranges_applied: SeqNo(0),
            global_seqno: SeqNo(0),
            raw_bytes: size_bytes,
            tail_bytes: 0,
            sketch: None,
            values: Default::default(),
        });
        AddedTable { level, epoch, table }
    }

    /// Returns the epoch of a new run of level 0.
    pub(crate) fn epoch(&mut self) -> Epoch {
        self.last_epoch += 1;
        Epoch(self.last_epoch)
    }

    /// Returns the first and last sequence number of the next `writes` writes.
    pub(crate) fn seqnos(&mut self, writes: u64) -> (SeqNo, SeqNo) {
        let first = self.last_seqno + 1;
        self.last_seqno += writes.max(1);
        (SeqNo(first), SeqNo(self.last_seqno))
    }

    /// Applies `edit` and makes the result the current version.
    pub(crate) fn install(&mut self, edit: &VersionEdit) -> Result<()> {
        let before = self.version.bytes();
        let next = self.version.apply(edit);
        let next = next.map_err(|error| Error::broken(format!("an edit does not fit: {error}")))?;
        let added: u64 = edit.added.iter().map(|added| added.table.size_bytes).sum();
        self.ledger.added += added;
        self.ledger.removed += before + added - next.bytes();
        self.version = Arc::new(next);
        for gone in edit.removed.iter().filter(|gone| gone.level == 0) {
            self.in_memory.remove(&gone.id);
        }
        for AddedTable { table, .. } in edit.added.iter().filter(|added| added.level == 0) {
            let all = self.in_memory.values().sum::<u64>() + table.size_bytes;
            if all <= self.in_memory_max {
                self.in_memory.insert(table.id, table.size_bytes);
            }
        }
        Ok(())
    }

    /// Returns the mean number of runs of level 0 with a table whose key range has a key, and how
    /// many of them are not in memory, in thousandths.
    pub(crate) fn level0_searched(&self) -> (u64, u64) {
        let tables = self.version.level(0).runs().iter().flat_map(|run| run.iter());
        let mut covered = [0, 0];
        for table in tables {
            let (smallest, largest) = (&table.smallest, &table.largest);
            let width = merge::number(largest.bytes()) + 1 - merge::number(smallest.bytes());
            covered[usize::from(self.in_memory.contains_key(&table.id))] += width;
        }
        let [on_device, in_memory] =
            covered.map(|width| (width as f64 / self.keys as f64 * 1000.0).round() as u64);
        (on_device + in_memory, on_device)
    }

    /// Returns how many bytes of the tables that `plan` rewrites are in memory.
    pub(crate) fn bytes_in_memory(&self, plan: &CompactionPlan) -> u64 {
        let tables = plan.rewrite.iter().flat_map(|input| &input.tables);
        tables.filter_map(|table| self.in_memory.get(&table.id)).sum()
    }

    /// Checks that the live bytes are those added less those removed, and that no table has more
    /// keys than its range.
    pub(crate) fn check(&self) -> Result<()> {
        self.version.validate().map_err(|error| Error::broken(error.to_string()))?;
        let Ledger { loaded, added, removed } = self.ledger;
        if self.version.bytes() + removed != loaded + added {
            return Err(Error::broken(format!(
                "{} bytes of tables are not {loaded} + {added} - {removed}",
                self.version.bytes()
            )));
        }
        for (level, _, table) in self.version.tables() {
            let fit = merge::number(table.largest.bytes()) - merge::number(table.smallest.bytes());
            if table.entries == 0 || table.entries > fit + 1 {
                return Err(Error::broken(format!("{} of level {level} is too full", table.id)));
            }
        }
        Ok(())
    }
}
