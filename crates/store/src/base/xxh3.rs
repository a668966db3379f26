//! XXH3 with 64 bits, the checksum of everything that is stored, by the widest instructions that
//! the processor has.

use twox_hash::XxHash3_64;

/// The hash of `bytes` without a seed.
#[inline]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The hash of `bytes` with `seed`.
#[inline]
pub fn xxh3_64_with_seed(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another implementation agrees, whatever the length: files are read by other builds.
    #[test]
    fn it_is_the_hash_that_others_know() {
        let bytes: Vec<u8> = (0..5000_u32).map(|i| (i * 7 % 251) as u8).collect();
        for length in (0..300).chain((300..bytes.len()).step_by(97)) {
            let bytes = &bytes[..length];
            let seed = (length as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert_eq!(xxh3_64(bytes), xxhash_rust::xxh3::xxh3_64(bytes), "{length}");
            let other = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed);
            assert_eq!(xxh3_64_with_seed(bytes, seed), other, "{length}");
        }
    }
}
