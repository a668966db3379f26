//! Lists of operations, and what they are drawn from. An operation is a kind and a seed, and
//! nothing else, so that a list from which some are left out still means the same.

use std::time::{Duration, Instant};

use sateen::vfs::FaultRule;

use super::model::Value;
use crate::support::common::Random;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op<Kind> {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
}

/// The kinds of operations with their weights.
macro_rules! kinds {
    ($($kind:ident $weight:literal)*) => {
        /// What an operation does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($kind),* }
        const KINDS: &[(Kind, u64)] = &[$((Kind::$kind, $weight)),*];
        /// The names of all kinds, in their order.
        #[allow(dead_code, reason = "not every suite counts them")]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($kind)),*];
    };
}
pub(crate) use kinds;

/// A list of so many operations, by the weights that `weight` makes of those of `kinds`.
pub(crate) fn list<Kind: Copy>(
    random: &mut Random,
    count: u64,
    kinds: &[(Kind, u64)],
    weight: impl Fn(&(Kind, u64)) -> u64,
) -> Vec<Op<Kind>> {
    let total: u64 = kinds.iter().map(&weight).sum();
    let mut draw = || {
        let mut at = random.below(total);
        let found = kinds.iter().find(|entry| {
            let hit = at < weight(entry);
            at = at.saturating_sub(weight(entry));
            hit
        });
        Op { kind: found.expect("it is below the sum").0, seed: random.next() }
    };
    (0..count).map(|_| draw()).collect()
}

/// Leaves out of a list that fails what the failure does not need, for so long at the most. `run`
/// says at which operation a list fails.
pub(crate) fn shrink<Op: Clone>(
    mut ops: Vec<Op>,
    most: Duration,
    run: impl Fn(&[Op]) -> Option<usize>,
) -> Vec<Op> {
    let start = Instant::now();
    let mut size = ops.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < ops.len() && start.elapsed() < most {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(fewer.len()));
            match run(&fewer) {
                Some(failed_at) => {
                    fewer.truncate(failed_at + 1);
                    ops = fewer;
                }
                None => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    ops
}

/// A key of the series.
pub(crate) fn numbered(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// `length` bytes: half compressible, half not.
pub(crate) fn bytes(random: &mut Random, length: u64) -> Value {
    let fill = random.next();
    let noisy = random.one_in(2);
    let byte = |at: u64| {
        if noisy {
            (fill.wrapping_mul(at | 1) >> 32) as u8
        } else {
            fill.to_le_bytes()[(at % 8) as usize]
        }
    };
    (0..length).map(byte).collect()
}

/// The rule, from some call on, at one, or now and then.
pub(crate) fn at_times(mut rule: FaultRule, random: &mut Random) -> FaultRule {
    rule = match random.below(4) {
        0 => rule.nth(1 + random.below(6)),
        1 => rule.from_nth(1 + random.below(10)),
        _ => rule.probability(0.02 + 0.3 * (random.below(100) as f64 / 100.0), random.next()),
    };
    if random.one_in(2) { rule.once() } else { rule }
}
