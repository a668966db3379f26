//! The operations on transactions and batches with an index.

use super::{FAMILIES, SLOTS};
use crate::op::{Rng, value};

/// What may be done with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    None,
    Open,
    Prepared,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Begin,
    Put,
    Merge,
    Delete,
    Get,
    GetForUpdate,
    Scan,
    Save,
    RollbackToSave,
    Rollback,
    Commit,
    Prepare,
    Rebuild,
    Bytes,
    PlainPut,
    PlainDelete,
    PlainBatch,
    IndexPut,
    IndexMerge,
    IndexDelete,
    IndexGet,
    IndexGetAbove,
    IndexScan,
    IndexSave,
    IndexRollback,
    IndexWrite,
    Reopen,
}

const WEIGHTS: [(Act, u64); 27] = [
    (Act::Begin, 40),
    (Act::Put, 60),
    (Act::Merge, 20),
    (Act::Delete, 30),
    (Act::Get, 40),
    (Act::GetForUpdate, 40),
    (Act::Scan, 20),
    (Act::Save, 15),
    (Act::RollbackToSave, 12),
    (Act::Rollback, 6),
    (Act::Commit, 30),
    (Act::Prepare, 6),
    (Act::Rebuild, 6),
    (Act::Bytes, 6),
    (Act::PlainPut, 20),
    (Act::PlainDelete, 8),
    (Act::PlainBatch, 8),
    (Act::IndexPut, 20),
    (Act::IndexMerge, 8),
    (Act::IndexDelete, 8),
    (Act::IndexGet, 10),
    (Act::IndexGetAbove, 10),
    (Act::IndexScan, 8),
    (Act::IndexSave, 6),
    (Act::IndexRollback, 5),
    (Act::IndexWrite, 4),
    (Act::Reopen, 1),
];

/// One operation, with what it needs.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) act: Act,
    pub(super) slot: usize,
    pub(super) family: usize,
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) bits: u64,
}

impl Op {
    pub(super) fn of(rng: &mut Rng) -> Op {
        let mut at = rng.below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
        let found = WEIGHTS.iter().find(|(_, weight)| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        Op {
            act: found.map_or(Act::Get, |(act, _)| *act),
            slot: rng.index(SLOTS),
            family: rng.index(FAMILIES.len()),
            key: format!("k{:02}", rng.below(12)).into_bytes(),
            value: value(rng),
            bits: rng.next(),
        }
    }
}
