//! Offset-value codes: a key relative to a smaller key, in 19 bits.
//!
//! For a key `k` and a smaller key `base`, the code contains the first bit in which they differ,
//! and the bits of `k` behind it. Only the first [`PREFIX_BYTES`] bytes of a key, padded with
//! zeros, take part. Keys that do not differ there have the code 0.
//!
//! 1. [`Prefix::new`] copies the first bytes of a key.
//! 2. [`Prefix::code`] makes a code once the first different bit is known, and
//!    [`Prefix::code_after_zeros`] one relative to the head of a list.
//! 3. [`Prefix::code_after_next`] makes the code relative to the next key from two codes that are
//!    known, without reading that key. This is what makes a step of the skip list cheap.
//!
//! What must stay true: of two keys that are both above `base`, the one with the smaller code
//! relative to `base` is the smaller key. Equal codes decide nothing.

/// Bytes of a key that take part.
pub(super) const PREFIX_BYTES: usize = 32;
/// Bits of the key behind the first different bit in a code.
const VALUE_BITS: u32 = 11;
/// Number of bits in which a difference can be recorded. The last bit of the prefix is not one of
/// them.
const OFFSETS: usize = 255;

/// The code of a key relative to a smaller one.
///
/// High 8 bits: 255 minus the number of bits before the first different one. Low 11 bits: the bits
/// of the larger key behind that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code(u32);

impl Code {
    /// The largest code.
    pub(super) const MAX: Code = Code((1 << 19) - 1);

    /// Returns the code of a key that differs from a smaller one first in bit `bit` of the prefix.
    /// `high` is the word of the key's prefix that contains bit `bit + 1`, `low` the word behind
    /// it.
    #[inline]
    pub(super) fn new(bit: usize, high: u64, low: u64) -> Code {
        if bit >= OFFSETS {
            return Code(0);
        }
        let both = u128::from(high) << 64 | u128::from(low);
        let value = (both << ((bit + 1) % 64)) >> (128 - VALUE_BITS);
        Code(((OFFSETS - bit) as u32) << VALUE_BITS | value as u32)
    }

    #[inline]
    pub(super) const fn bits(self) -> usize {
        self.0 as usize
    }

    /// Returns the code in the low 19 bits of `bits`.
    #[inline]
    pub(super) fn from_bits(bits: usize) -> Code {
        Code(bits as u32 & Code::MAX.0)
    }

    /// Returns true if this key differs from the base earlier than the key with the code `other`.
    #[inline]
    pub(super) fn differs_before(self, other: Code) -> bool {
        self.0 >> VALUE_BITS > other.0 >> VALUE_BITS
    }
}

/// The first [`PREFIX_BYTES`] bytes of a key.
pub(super) struct Prefix {
    /// Zeros follow the key, and eight more bytes so that eight bytes can be read anywhere.
    bytes: [u8; PREFIX_BYTES + 8],
}

impl Prefix {
    #[inline]
    pub(super) fn new(key: &[u8]) -> Prefix {
        let mut bytes = [0; PREFIX_BYTES + 8];
        match key.first_chunk::<16>() {
            // The most common length, without a call.
            Some(first) if key.len() == 16 => bytes[..16].copy_from_slice(first),
            _ => {
                let len = key.len().min(PREFIX_BYTES);
                bytes[..len].copy_from_slice(&key[..len]);
            }
        }
        Prefix { bytes }
    }

    /// Returns eight bytes as a number. `index` is below [`PREFIX_BYTES`] / 8.
    #[inline]
    pub(super) fn word(&self, index: usize) -> u64 {
        self.word_at(index * 8)
    }

    #[inline]
    fn word_at(&self, byte: usize) -> u64 {
        let rest = self.bytes.get(byte..).unwrap_or_default();
        rest.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// Returns the code relative to a smaller key that differs first in bit `bit`.
    #[inline]
    pub(super) fn code(&self, bit: usize) -> Code {
        if bit >= OFFSETS {
            return Code(0);
        }
        let next = bit + 1;
        let value = (self.word_at(next / 8) << (next % 8)) >> (64 - VALUE_BITS);
        Code(((OFFSETS - bit) as u32) << VALUE_BITS | value as u32)
    }

    /// Returns the code relative to a prefix of zeros.
    #[inline]
    pub(super) fn code_after_zeros(&self) -> Code {
        for index in 0..PREFIX_BYTES / 8 {
            let word = self.word(index);
            if word != 0 {
                return self.code(index * 64 + word.leading_zeros() as usize);
            }
        }
        Code(0)
    }

    /// Returns the code relative to `next`, a smaller key. `own` and `next` are the codes of both
    /// keys relative to the same base, and `own` is the larger.
    #[inline]
    pub(super) fn code_after_next(&self, own: Code, next: Code) -> Code {
        let different = own.0 ^ next.0;
        if different >> VALUE_BITS != 0 {
            // Up to the bit where this key differs from the base, `next` equals the base.
            return own;
        }
        let offset = OFFSETS - (own.0 >> VALUE_BITS) as usize;
        let same = different.leading_zeros() as usize - (32 - VALUE_BITS as usize);
        self.code(offset + 1 + same)
    }
}
