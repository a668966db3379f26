//! What dead tables take until they are given back: a part of the space that has a limit
//! (`space_amplification_max`).
//!
//! 1. Each sample says how many bytes of dead tables can be given back ([`DeadTables`]). Waiting
//!    would not free what a snapshot, an iterator, a lease or a checkpoint keeps, so those bytes
//!    hold up nobody.
//! 2. [`ControlPlane::pressure`] adds to each column family its part of them, in proportion to the
//!    bytes of its tables. So writers are slowed down for them as for levels beyond their targets.
//! 3. [`ControlPlane::reclaim_pace`] has them given back sooner if they are a 256th of the other
//!    tables, and in a hurry from half of the limit on, where writers begin to be slowed down.
//!    There the column families have one limit together. It also hurries if dead tables are a sixth
//!    of the others, because the limit of a small database is many times its size.
//!
//! What must stay true: writers of a column family without a limit, or without targets of levels,
//! are not slowed down for dead tables.

use std::collections::BTreeMap;

use super::ControlPlane;
use crate::arithmetic::scale;
use crate::column_family::ColumnFamily;
use crate::event::Processors;
use crate::scheduler::{ReclaimHaste, ReclaimPace};
use crate::types::ColumnFamilyId;
use crate::write_controller::{Pressure, excess_of, is_spacious};

/// Dead tables of this part of the other tables' bytes are given back soon, but not fewer than
/// `DEAD_MIN_SOON` bytes.
const DEAD_PART_SOON: u64 = 256;
const DEAD_MIN_SOON: u64 = 16 << 20;
/// Those of this part are given back in a hurry, but not fewer than `DEAD_MIN` bytes. While other
/// programs have the processors, steps take long, and the pauses after them, too.
const DEAD_PART: u64 = 6;
const DEAD_PART_BUSY: u64 = 24;
const DEAD_MIN: u64 = 128 << 20;

/// The dead tables at the last sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadTables {
    /// Bytes that can be given back.
    bytes: u64,
    /// Bytes of the tables and values of all column families.
    of: u64,
}

impl DeadTables {
    pub(super) fn of(bytes: u64, families: &BTreeMap<ColumnFamilyId, ColumnFamily>) -> DeadTables {
        let of = if bytes == 0 { 0 } else { data_bytes(families.values()) };
        DeadTables { bytes, of }
    }
}

fn data_bytes<'a>(families: impl Iterator<Item = &'a ColumnFamily>) -> u64 {
    families.map(ColumnFamily::data_bytes).sum()
}

impl ControlPlane {
    /// Returns the state of a column family on which its writers' rate depends.
    pub(super) fn pressure(&self, family: &ColumnFamily) -> Pressure {
        let mut pressure = family.pressure();
        let DeadTables { bytes, of } = self.dead;
        if of > 0 && family.is_limited_in_space() {
            pressure.dead_bytes = scale(bytes, family.data_bytes().min(of), of);
        }
        pressure
    }

    /// Returns the pace at which dead tables are reclaimed. `backlog` is what that costs, in bytes.
    #[must_use]
    pub fn reclaim_pace(&self, backlog: u64) -> ReclaimPace {
        self.scheduler.reclaim_pace(backlog, self.reclaim_haste())
    }

    /// Returns how soon dead tables are given back: in a hurry if they are many against the others,
    /// or if they and levels beyond their targets take more than half of their limit, and dead
    /// tables a quarter. Fewer would not be worth a slower device.
    fn reclaim_haste(&self) -> ReclaimHaste {
        let limited = || self.families.values().filter(|family| family.is_limited_in_space());
        if limited().next().is_none() {
            return ReclaimHaste::Later;
        }
        let (excess, most) = limited().fold((0_u64, 0_u64), |(excess, most), family| {
            let (beyond, largest) = family.excess();
            let own = excess_of(family.options(), largest);
            (excess.saturating_add(beyond), most.saturating_add(own))
        });
        let DeadTables { bytes, of } = self.dead;
        // Without tables all that is dead was theirs.
        let live = data_bytes(limited());
        let dead = if of == 0 { bytes } else { scale(bytes, live.min(of), of) };
        let part = if self.is_short_of_processor() { DEAD_PART_BUSY } else { DEAD_PART };
        let few = is_spacious(dead.saturating_mul(2), most);
        let is_short = !few && !is_spacious(excess.saturating_add(dead), most);
        if is_short || dead >= (live / part).max(DEAD_MIN) {
            ReclaimHaste::Now
        } else if dead >= (live / DEAD_PART_SOON).max(DEAD_MIN_SOON) {
            ReclaimHaste::Soon
        } else {
            ReclaimHaste::Later
        }
    }

    /// Returns how the machine's processors were used lately.
    #[must_use]
    pub fn processors(&self) -> Processors {
        self.scheduler.processors().0
    }

    /// Returns true while other programs have most of the machine's processors and nothing is left.
    #[must_use]
    pub fn is_short_of_processor(&self) -> bool {
        self.scheduler.processors().1
    }
}
