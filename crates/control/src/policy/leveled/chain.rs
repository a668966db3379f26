//! The chain of compactions that a flush could wait for (vLSM §2.3): what has to move, level after
//! level, before a full level 0 has room for another flush.
//!
//! 1. The chain begins with the next compaction out of level 0 ([`next_out_of_level0`]).
//! 2. What it brings makes the base level give away its surplus, if it has no room for that. This
//!    rewrites a part of the next level, and so on down the levels.
//! 3. The chain ends at the first level with room.

use super::level0::next_out_of_level0;
use crate::geometry::Span;
use crate::policy::{CompactionChain, PickContext};

/// Returns the longest chain that this version could ask for, if level 0 were full.
pub(super) fn chain(context: &PickContext<'_>) -> CompactionChain {
    let Some(inputs) = next_out_of_level0(context) else { return CompactionChain::default() };
    let level0 = inputs.iter().filter(|span| span.level == 0);
    let mut moving = level0.map(Span::bytes).sum::<u64>();
    let bytes = inputs.iter().map(Span::bytes).sum();
    let mut chain = CompactionChain { length: 1, bytes };
    let version = context.version;
    for level in context.targets.base_level..context.last_level() {
        let own = version.level(level).bytes();
        moving = (own + moving).saturating_sub(context.targets.bytes_max(level)).min(moving);
        if moving == 0 {
            break;
        }
        let below = version.level(level + 1).bytes();
        let rewritten = u128::from(moving) * u128::from(below) / u128::from(own.max(1));
        chain.length += 1;
        chain.bytes += moving + u64::try_from(rewritten).unwrap_or(u64::MAX).min(below);
    }
    chain
}
