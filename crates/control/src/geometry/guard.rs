//! Guards: keys at which the runs of a level are cut (PebblesDB). Guards are not stored.
//!
//! 1. [`is_guard`] hashes a key. The key is a guard if the hash begins with enough zero bits.
//! 2. A level asks for fewer bits the deeper it is, so a guard of one level is a guard of all
//!    levels below it.

use crate::arithmetic::mix;

/// Returns true if `user_key` is a guard of a level where one key in 2^`bits` is a guard. A guard
/// for more bits is also a guard for fewer.
pub(crate) fn is_guard(user_key: &[u8], bits: u32) -> bool {
    let hash =
        user_key.iter().fold(user_key.len() as u64, |hash, byte| mix(hash ^ u64::from(*byte)));
    mix(hash).leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_in_so_many_is_a_guard_and_guards_of_a_level_are_guards_below_it() {
        let keys = || (0..40_000_u32).map(|n| format!("user{n:08}"));
        for bits in [0_u32, 1, 4, 8] {
            let guards: Vec<_> = keys().filter(|key| is_guard(key.as_bytes(), bits)).collect();
            let expected = 40_000 >> bits;
            assert!(guards.len().abs_diff(expected) <= expected / 5, "{bits}: {}", guards.len());
            let below = bits.saturating_sub(2);
            assert!(guards.iter().all(|key| is_guard(key.as_bytes(), below)), "{bits}");
        }
    }
}
