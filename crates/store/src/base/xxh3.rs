//! XXH3 with 64 bits, the checksum of all stored data, with the widest vector instructions of the
//! processor.
//!
//! What must stay true: the hash is the standard one, because other builds read the files.

use twox_hash::XxHash3_64;

/// Returns the hash of `bytes` without a seed.
#[inline]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// Returns the hash of `bytes` with `seed`.
#[inline]
pub fn xxh3_64_with_seed(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a second implementation at many lengths, because other builds read the files.
    #[test]
    fn the_hash_is_the_standard_one() {
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
