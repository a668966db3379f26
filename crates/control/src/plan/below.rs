//! What is older than the outputs of a plan and shares keys with them.
//!
//! 1. [`older_than`] finds it in a version.
//! 2. The job copies key ranges and sizes out of that. [`CompactionPlan::grandparents`] are those
//!    right below, above which [`CompactionPlan::output_cutter`] says where tables end.
//! 3. [`CompactionPlan::below`] is all. With it [`KeysBelow`] answers key by key whether a
//!    tombstone is still needed.
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
    /// The claims of this plan must hold. O(tables found).
    #[must_use]
    pub fn below(&self, version: &Version) -> Vec<Below> {
        self.below_where(version, |_| true).collect()
    }

    /// Returns the tables in `version` that lie right below the outputs and share keys with them.
    /// There are none for outputs in level 0: these are later merged with all of the base level, so
    /// their overlap does not matter.
    #[must_use]
    pub fn grandparents(&self, version: &Version) -> Arc<[KeysOf]> {
        let of = self.grandparents_level();
        self.grandparents_of(self.below_where(version, |level| Some(level) == of))
    }

    /// Returns the same out of what is below.
    #[must_use]
    pub fn grandparents_of(&self, below: impl IntoIterator<Item = Below>) -> Arc<[KeysOf]> {
        let of = self.grandparents_level();
        let found = below.into_iter().find(|below| Some(below.level) == of);
        found.map(|below| below.tables).unwrap_or_default()
    }

    fn grandparents_level(&self) -> Option<u8> {
        (self.output_level > 0).then(|| self.output_level + 1)
    }

    fn below_where(
        &self,
        version: &Version,
        wanted: impl Fn(u8) -> bool,
    ) -> impl Iterator<Item = Below> {
        let replaced = self.inputs().filter(|input| input.level == self.output_level);
        let oldest = replaced.map(|input| input.epoch).min().unwrap_or(self.output_epoch);
        let ranges = self.ranges();
        let runs = older_than(version, self.output_level, oldest);
        runs.filter(move |(level, _)| wanted(*level)).filter_map(move |(level, run)| {
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
        })
    }

    /// Returns the cutter that decides where the job's output tables end above `grandparents`.
    #[must_use]
    pub fn output_cutter(&self, grandparents: Arc<[KeysOf]>) -> OutputCutter {
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
