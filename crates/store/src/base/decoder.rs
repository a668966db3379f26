//! The decoder for untrusted bytes of tables, and the 32-bit varints that it reads.
//!
//! What must stay true: decoding never panics and never allocates. If the input ends early, it
//! returns `None`.

/// Takes little-endian numbers and slices from the front of untrusted bytes; `None` at their end.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    /// Returns true if every byte was taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes `N` bytes.
    #[inline]
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.chunk().map(|[byte]| byte)
    }

    /// Takes a little-endian `u16`.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    /// Takes a little-endian `u32`.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    /// Takes a little-endian `u64`.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// Takes a `u32` in LEB128. Returns `None` if it takes more than five bytes or exceeds 32 bits.
    #[inline]
    pub fn varint(&mut self) -> Option<u32> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(u32::from(first));
        }
        self.varint_long()
    }

    fn varint_long(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    /// Takes a varint length and then that number of bytes.
    pub fn slice(&mut self) -> Option<&'a [u8]> {
        let n = self.varint()?;
        self.take(to_usize(n))
    }
}

/// Writes `value` in LEB128 to the front of `out`. Returns the number of bytes written.
#[inline]
pub fn put_varint(out: &mut [u8; 5], mut value: u32) -> usize {
    let mut n = 0;
    while value >= 0x80 {
        out[n] = value.to_le_bytes()[0] | 0x80;
        value >>= 7;
        n += 1;
    }
    out[n] = value.to_le_bytes()[0];
    n + 1
}

/// Appends `value` in LEB128.
#[inline]
pub fn push_varint(out: &mut Vec<u8>, value: u32) {
    if let Ok(byte @ 0..0x80) = u8::try_from(value) {
        out.push(byte);
        return;
    }
    let mut bytes = [0; 5];
    let n = put_varint(&mut bytes, value);
    out.extend_from_slice(&bytes[..n]);
}

/// Converts a `u32` to an index. Every supported target has at least 32-bit indices.
#[inline]
pub fn to_usize(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns the length of the common prefix of `a` and `b`.
#[inline]
pub fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut n = 0;
    let (mut words_a, mut words_b) = (a.chunks_exact(8), b.chunks_exact(8));
    for (x, y) in words_a.by_ref().zip(words_b.by_ref()) {
        if let (Some(x), Some(y)) = (x.first_chunk(), y.first_chunk()) {
            let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
            if differ != 0 {
                return n + to_usize(differ.trailing_zeros() / 8);
            }
        }
        n += 8;
    }
    let (rest_a, rest_b) = (a.get(n..).unwrap_or_default(), b.get(n..).unwrap_or_default());
    n + rest_a.iter().zip(rest_b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_overlong_ones_are_refused() {
        for value in [0, 1, 127, 128, 16383, 16384, 1 << 21, 1 << 28, u32::MAX] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, value);
            let mut decoder = Decoder(&bytes);
            assert_eq!(decoder.varint(), Some(value));
            assert!(decoder.is_empty());
        }
        assert_eq!(Decoder(&[0x80, 0x80, 0x80, 0x80, 0x10]).varint(), None);
        assert_eq!(Decoder(&[0x80; 9]).varint(), None);
        assert_eq!(Decoder(&[0x80]).varint(), None);
    }

    #[test]
    fn shared_prefix_agrees_with_a_byte_by_byte_count() {
        let a: Vec<u8> = (0..40).collect();
        for differ in 0..40 {
            for len in 0..40 {
                let mut b = a[..len].to_vec();
                if differ < len {
                    b[differ] ^= 0x80;
                }
                assert_eq!(shared_prefix(&a, &b), differ.min(len));
                assert_eq!(shared_prefix(&b, &a), differ.min(len));
            }
        }
    }
}
