//! Encodes and decodes integers and byte strings in batches, WALs and the manifest.
//!
//! What must stay true: decoding never panics and never allocates. If the input ends early, it
//! returns `None`.

/// The most bytes that a varint of 64 bits takes.
#[cfg(test)]
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` in LEB128: seven bits a byte, least significant first.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Returns the number of bytes that [`put_varint`] appends for `value`.
#[inline]
#[cfg(test)]
pub fn varint_bytes(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Appends the length of `bytes` and `bytes`.
pub fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes one byte off the front of `input`.
#[inline]
pub fn take_u8(input: &mut &[u8]) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

/// Takes a varint off the front of `input`; `None` if it ends early or exceeds 64 bits.
#[inline]
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
    match *input {
        [byte, rest @ ..] if *byte < 0x80 => {
            *input = rest;
            Some(u64::from(*byte))
        }
        _ => take_long_varint(input),
    }
}

fn take_long_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = take_u8(input)?;
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << shift;
        if shifted >> shift != bits {
            return None;
        }
        value |= shifted;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes a varint of at most 32 bits.
#[inline]
pub fn take_varint_u32(input: &mut &[u8]) -> Option<u32> {
    u32::try_from(take_varint(input)?).ok()
}

/// Takes `count` bytes off the front of `input`.
#[inline]
pub fn take<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(taken)
}

/// Takes a byte string that [`put_slice`] wrote.
#[inline]
pub fn take_slice<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = usize::try_from(take_varint(input)?).ok()?;
    take(input, count)
}

/// Takes a little-endian `u32`.
#[inline]
pub fn take_u32(input: &mut &[u8]) -> Option<u32> {
    let (taken, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(u32::from_le_bytes(*taken))
}

/// Takes a little-endian `u64`.
#[inline]
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    let (taken, rest) = input.split_first_chunk::<8>()?;
    *input = rest;
    Some(u64::from_le_bytes(*taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_take_the_predicted_bytes() {
        for value in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_bytes(value));
            assert!(bytes.len() <= VARINT_BYTES_MAX);
            let mut input = bytes.as_slice();
            assert_eq!(take_varint(&mut input), Some(value));
            assert!(input.is_empty());
            assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None, "cut short");
        }
    }

    #[test]
    fn a_varint_beyond_64_bits_is_refused() {
        assert_eq!(take_varint(&mut [0xff; 11].as_slice()), None);
        let mut too_wide = [0xff; 10];
        too_wide[9] = 2;
        assert_eq!(take_varint(&mut too_wide.as_slice()), None);
    }
}
