//! What is older than the outputs of a plan and shares keys with them.
//!
//! 1. [`older_than`] finds it in a version.
//! 2. [`CompactionPlan::below`] copies key ranges and sizes out of it when the job begins.
//! 3. [`KeysBelow`] answers key by key whether a tombstone is still needed, and
//!    [`CompactionPlan::output_cutter`] says where tables end.
//!
//! What must stay true: nothing here holds a table. A job may take long, and tables that other jobs
//! replace meanwhile would otherwise keep their space until it ends.
//!
//! It does not matter when the job looks between its plan and its end. Claims keep other keys out
//! of what is below, so keys only move there from run to run, or go.

use std::sync::Arc;

use super::CompactionPlan;
use crate::geometry::{KeysOf, OutputCutter};
use crate::types::Epoch;
use crate::version::{Run, Version};

/// A run older than a plan's outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// The run's level.
    pub level: u8,
    /// Its tables that share keys with the outputs, ascending. Never empty.
    pub tables: Arc<[KeysOf]>,
}

/// Returns the runs of `version` that are older than what is written into `level`. `oldest`: the
/// oldest run of `level` that the outputs replace, or else the run they join.
pub(crate) fn older_than(
    version: &Version,
    level: u8,
    oldest: Epoch,
) -> impl Iterator<Item = (u8, &Run)> {
    let levels = (0..).zip(version.levels()).skip(level.into());
    let runs = levels.flat_map(|(number, of)| of.runs().iter().map(move |run| (number, run)));
    runs.filter(move |(number, run)| *number > level || run.epoch() < oldest)
}

impl CompactionPlan {
    /// Returns everything in `version` that is older than the outputs and shares keys with them.
    /// The claims of this plan must hold.
    #[must_use]
    pub fn below(&self, version: &Version) -> Vec<Below> {
        let replaced = self.inputs().filter(|input| input.level == self.output_level);
        let oldest = replaced.map(|input| input.epoch).min().unwrap_or(self.output_epoch);
        let ranges = self.ranges();
        let below = |(level, run): (u8, &Run)| {
            let mut tables = Vec::new();
            let mut behind = 0;
            for (smallest, largest) in &ranges {
                let overlap = run.overlap(smallest.bytes(), largest.bytes());
                // A table may reach into two ranges.
                let overlap = overlap.start.max(behind)..overlap.end;
                behind = behind.max(overlap.end);
                tables.extend(run.range(overlap).map(KeysOf::from));
            }
            (!tables.is_empty()).then(|| Below { level, tables: tables.into() })
        };
        older_than(version, self.output_level, oldest).filter_map(below).collect()
    }

    /// Returns the cutter that decides where the job's output tables end.
    #[must_use]
    pub fn output_cutter(&self, below: &[Below]) -> OutputCutter {
        // Outputs in level 0 are later merged with all of the base level, so their overlap does not
        // matter.
        let level = self.output_level;
        let below = below.iter().find(|below| level > 0 && below.level == level + 1);
        let grandparents = below.map(|below| below.tables.clone()).unwrap_or_default();
        OutputCutter::new(&self.split, grandparents, &self.breaks)
    }
}

/// Tells for ascending keys whether anything older than a plan's outputs may hold them. A tombstone
/// may be dropped if nothing older holds its key and no snapshot needs it.
#[derive(Clone, Debug)]
pub struct KeysBelow {
    /// The tables of each older run, with the rank of the first that can still matter.
    runs: Vec<(Arc<[KeysOf]>, usize)>,
}

impl KeysBelow {
    /// Returns a cursor that stands in front of all keys.
    #[must_use]
    pub fn new(below: &[Below]) -> KeysBelow {
        KeysBelow { runs: below.iter().map(|below| (below.tables.clone(), 0)).collect() }
    }

    /// Returns true if anything older may hold `user_key`. Keys must not descend between calls.
    pub fn may_contain(&mut self, user_key: &[u8]) -> bool {
        self.runs.iter_mut().any(|(tables, at)| {
            while tables.get(*at).is_some_and(|table| table.largest < *user_key) {
                *at += 1;
            }
            tables.get(*at).is_some_and(|table| table.smallest <= *user_key)
        })
    }
}
