//! Compaction chains (vLSM §2.3): what has to move, level after level, before a full level 0 has
//! room for another flush.

use super::level0::next_out_of_level0;
use super::{PickContext, Span};
use crate::options::CompactionStyle;

/// The longest chain that a version could ask for, if level 0 were full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionChain {
    /// Compactions that depend on each other, one for each level.
    pub length: u32,
    /// Bytes that they read: the chain's width.
    pub bytes: u64,
}

impl CompactionChain {
    /// The chain that begins with the next compaction out of level 0. What it brings makes the
    /// level below give away as much, if that has no room for it, and so on.
    #[must_use]
    pub fn of(context: &PickContext<'_>) -> CompactionChain {
        let Some(inputs) = next_out_of_level0(context) else { return CompactionChain::default() };
        let level0 = inputs.iter().filter(|span| span.level == 0);
        let mut moving = level0.map(Span::bytes).sum::<u64>();
        let bytes = inputs.iter().map(Span::bytes).sum();
        let mut chain = CompactionChain { length: 1, bytes };
        // Where nothing below is rewritten nothing has to make room.
        if context.options.compaction_style == CompactionStyle::Guards {
            return chain;
        }
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
}
