//! The claims of running compactions: their input tables, and the key ranges of their outputs in
//! the output level. Two claims never touch.
//!
//! 1. [`InFlight::claim`] refuses a plan that touches a claim, and claims nothing then.
//! 2. Policies ask which tables are claimed and which job writes where, and leave those alone.
//! 3. [`InFlight::release`] releases a claim when its job ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{CompactionPlan, CompactionReason};
use crate::types::{ColumnFamilyId, Epoch, JobId, TableId, UserKey};
use crate::version::TableMeta;

/// The claim of one job.
#[derive(Clone, Debug)]
struct Claim {
    cf: ColumnFamilyId,
    reason: CompactionReason,
    /// Level, run, bytes and tables of each input.
    inputs: Vec<(u8, Epoch, u64, Vec<TableId>)>,
    output_level: u8,
    /// The key ranges that it takes in the output level.
    ranges: Vec<(UserKey, UserKey)>,
}

impl Claim {
    /// Returns true if outputs may go to `level` within `lo..=hi`.
    fn writes(&self, level: u8, lo: &[u8], hi: &[u8]) -> bool {
        let meets = |(smallest, largest): &(UserKey, UserKey)| *smallest <= *hi && *lo <= *largest;
        self.output_level == level && self.ranges.iter().any(meets)
    }

    fn takes_from_level0(&self) -> bool {
        self.inputs.iter().any(|input| input.0 == 0)
    }
}

/// The reason for which a plan cannot be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// The plan has no input.
    Empty,
    /// The job already has a claim.
    Job(JobId),
    /// Another job has the table as input.
    Table(TableId),
    /// Another job writes into the same level and range.
    Range {
        /// The other job.
        job: JobId,
        /// The level.
        level: u8,
    },
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimError::Empty => f.write_str("a plan without inputs"),
            ClaimError::Job(job) => write!(f, "{job} holds a claim already"),
            ClaimError::Table(table) => write!(f, "{table} is being compacted"),
            ClaimError::Range { job, level } => {
                write!(f, "{job} writes into the same range of level {level}")
            }
        }
    }
}

impl std::error::Error for ClaimError {}

/// Tables and key ranges claimed by running compactions, in all column families. There are few
/// jobs, so questions about ranges look at each of them.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    claims: BTreeMap<JobId, Claim>,
    tables: BTreeSet<TableId>,
}

impl InFlight {
    /// Claims the tables and ranges of `plan` for `job`.
    ///
    /// # Errors
    /// If another job holds some of them. Nothing is claimed then.
    pub fn claim(&mut self, job: JobId, plan: &CompactionPlan) -> Result<(), ClaimError> {
        if self.claims.contains_key(&job) {
            return Err(ClaimError::Job(job));
        }
        let ranges = plan.ranges();
        if ranges.is_empty() {
            return Err(ClaimError::Empty);
        }
        let mut tables = plan.inputs().flat_map(|input| &input.tables);
        if let Some(table) = tables.find(|table| self.tables.contains(&table.id)) {
            return Err(ClaimError::Table(table.id));
        }
        // Level 0 orders runs by epoch, not by key, so outputs there touch only their own inputs.
        let level = plan.output_level;
        let writer = ranges
            .iter()
            .filter(|_| level > 0)
            .find_map(|r| self.writer(plan.cf, level, r.0.bytes(), r.1.bytes()));
        if let Some(job) = writer {
            return Err(ClaimError::Range { job, level });
        }
        let claim = Claim {
            cf: plan.cf,
            reason: plan.reason,
            inputs: plan
                .inputs()
                .map(|input| {
                    let ids = input.tables.iter().map(|table| table.id).collect();
                    (input.level, input.epoch, input.bytes(), ids)
                })
                .collect(),
            output_level: plan.output_level,
            ranges,
        };
        self.tables.extend(claim.inputs.iter().flat_map(|input| &input.3));
        self.claims.insert(job, claim);
        Ok(())
    }

    /// Releases the claim of `job`. Returns true if it had one.
    pub fn release(&mut self, job: JobId) -> bool {
        let Some(claim) = self.claims.remove(&job) else { return false };
        for table in claim.inputs.iter().flat_map(|input| &input.3) {
            self.tables.remove(table);
        }
        true
    }

    /// Returns true if a job has `table` as input.
    #[must_use]
    pub fn is_claimed(&self, table: &TableMeta) -> bool {
        self.tables.contains(&table.id)
    }

    /// Returns a job whose outputs may go to `level` within `lo..=hi`.
    #[must_use]
    pub fn writer(&self, cf: ColumnFamilyId, level: u8, lo: &[u8], hi: &[u8]) -> Option<JobId> {
        self.of(cf).find(|(_, claim)| claim.writes(level, lo, hi)).map(|(job, _)| job)
    }

    /// Returns the jobs that have one of `tables` as input, or write into `level` within `lo..=hi`.
    #[must_use]
    pub fn holders(
        &self,
        cf: ColumnFamilyId,
        tables: &[TableId],
        (level, lo, hi): (u8, &[u8], &[u8]),
    ) -> Vec<JobId> {
        let holds = |claim: &Claim| {
            claim.writes(level, lo, hi)
                || claim.inputs.iter().flat_map(|input| &input.3).any(|id| tables.contains(id))
        };
        self.of(cf).filter(|(_, claim)| holds(claim)).map(|(job, _)| job).collect()
    }

    /// Returns true if a compaction with inputs in level 0 is running.
    #[must_use]
    pub fn level0_running(&self, cf: ColumnFamilyId) -> bool {
        self.of(cf).any(|(_, claim)| claim.takes_from_level0())
    }

    /// Returns how many compactions run because level 0 has many runs. Manual ones do not count:
    /// they may take long, and later flushes do not wait for them.
    #[must_use]
    pub fn level0_jobs(&self, cf: ColumnFamilyId) -> usize {
        self.of(cf).filter(|(_, claim)| claim.reason.is_level0()).count()
    }

    /// Returns true if a compaction out of level 0 into a deeper level is running.
    #[must_use]
    pub fn level0_going_down(&self, cf: ColumnFamilyId) -> bool {
        self.of(cf).any(|(_, claim)| claim.output_level > 0 && claim.takes_from_level0())
    }

    /// Returns the bytes of `level` that are being compacted.
    #[must_use]
    pub fn bytes(&self, cf: ColumnFamilyId, level: u8) -> u64 {
        let inputs = self.of(cf).flat_map(|(_, claim)| &claim.inputs);
        inputs.filter(|input| input.0 == level).map(|input| input.2).sum()
    }

    /// Returns how many runs of level 0 are being compacted, wholly or in part.
    #[must_use]
    pub fn level0_runs(&self, cf: ColumnFamilyId) -> usize {
        let inputs = self.of(cf).flat_map(|(_, claim)| &claim.inputs);
        inputs.filter(|input| input.0 == 0).map(|input| input.1).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of jobs that have a claim.
    #[must_use]
    pub fn len(&self) -> usize {
        self.claims.len()
    }

    /// Returns true if no job has a claim.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.tables.is_empty()
    }

    fn of(&self, cf: ColumnFamilyId) -> impl Iterator<Item = (JobId, &Claim)> {
        self.claims
            .iter()
            .filter(move |(_, claim)| claim.cf == cf)
            .map(|(job, claim)| (*job, claim))
    }
}
