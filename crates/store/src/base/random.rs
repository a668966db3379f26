//! Numbers that nothing else has, for identities.

use std::hash::{BuildHasher, Hasher};

use crate::base::clock;

/// Returns a number that nothing else has, with high probability.
pub fn random_uid() -> u64 {
    if let Some(number) = clock::next_random() {
        return number.max(1);
    }
    // The standard library seeds each state from the operating system.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}
