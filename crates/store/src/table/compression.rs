//! Compresses and decompresses blocks.
//!
//! What must stay true: a compressed block begins with the length of its content. That length is
//! trusted only within what the method can achieve at best, so that a few hostile bytes never
//! reserve much memory.

use super::format::BLOCK_BYTES_MAX;
use crate::base::decoder::to_usize;
use crate::base::error::{CorruptionKind, Error, Result};

/// The compression of a table's blocks. The order of the variants is part of the on-disk format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard: smaller and slower. Needs the feature `zstd`.
    Zstd,
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        })
    }
}

/// A compression method with the state that it keeps from block to block.
pub(super) enum Compressor {
    None,
    Lz4(Box<lz4_flex::block::CompressTable>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// Returns the compressor of a method. `level` is Zstandard's; the others ignore it.
    pub(super) fn new(method: Compression, level: i32) -> Result<Compressor> {
        match method {
            Compression::None => Ok(Compressor::None),
            Compression::Lz4 => Ok(Compressor::Lz4(Box::default())),
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                zstd::bulk::Compressor::new(level).map(Compressor::Zstd).map_err(|source| {
                    Error::InvalidArgument(format!("compression level {level}: {source}"))
                })
            }
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => Err(Error::InvalidArgument(format!(
                "compression zstd (level {level}): this build lacks it; build with feature `zstd`"
            ))),
        }
    }

    /// Puts the compressed form of `raw`, with its length in front, into `out`. Returns `None` if
    /// that saves less than an eighth, and the block must be stored uncompressed.
    pub(super) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<Compression> {
        let length = u32::try_from(raw.len()).ok()?;
        let method = match self {
            Compressor::None => return None,
            Compressor::Lz4(_) => Compression::Lz4,
            #[cfg(feature = "zstd")]
            Compressor::Zstd(_) => Compression::Zstd,
        };
        // Both methods refuse to start with a smaller output buffer.
        let bound = 4 + lz4_flex::block::get_maximum_output_size(raw.len()) + 1024;
        if out.len() < bound {
            out.resize(bound, 0);
        }
        let (head, body) = out.split_first_chunk_mut()?;
        *head = length.to_le_bytes();
        let written = match self {
            Compressor::None => None,
            Compressor::Lz4(table) => {
                lz4_flex::block::compress_into_with_table(raw, body, table).ok()
            }
            #[cfg(feature = "zstd")]
            Compressor::Zstd(context) => context.compress_to_buffer(raw, body).ok(),
        }?;
        if 4 + written > raw.len() - raw.len() / 8 {
            return None;
        }
        out.truncate(4 + written);
        Some(method)
    }
}

/// The state that decompression keeps from block to block. Each thread has one.
#[derive(Default)]
pub(super) struct Decompressor {
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Decompressor {
    /// Decompresses `payload` into the front of `out`, which grows if needed. Returns the length.
    /// `compression` must not be 0.
    pub(super) fn decompress(
        &mut self,
        compression: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, CorruptionKind> {
        let (length, body) = payload.split_first_chunk().ok_or(CorruptionKind::Truncated)?;
        let length = to_usize(u32::from_le_bytes(*length));
        let (best, slack) = match compression {
            1 => (255, 64),
            2 => (40_000, 1 << 16),
            _ => return Err(CorruptionKind::Malformed("unknown compression type")),
        };
        if length > BLOCK_BYTES_MAX || length > body.len().saturating_mul(best) + slack {
            return Err(CorruptionKind::Malformed("impossible length of a compressed block"));
        }
        if out.len() < length {
            out.resize(length, 0);
        }
        let target = out.get_mut(..length).unwrap_or_default();
        let written = match compression {
            1 => lz4_flex::block::decompress_into(body, target).ok(),
            _ => self.zstd(body, target)?,
        };
        if written != Some(length) {
            return Err(CorruptionKind::Malformed("compressed block cannot be decompressed"));
        }
        Ok(length)
    }

    /// Decompresses with Zstandard, whose context is made at the first use.
    #[cfg(feature = "zstd")]
    fn zstd(&mut self, body: &[u8], target: &mut [u8]) -> Result<Option<usize>, CorruptionKind> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Decompressor::new().ok();
        }
        let context =
            self.zstd.as_mut().ok_or(CorruptionKind::Malformed("no memory to decompress"))?;
        Ok(context.decompress_to_buffer(body, target).ok())
    }

    #[cfg(not(feature = "zstd"))]
    fn zstd(&mut self, _: &[u8], _: &mut [u8]) -> Result<Option<usize>, CorruptionKind> {
        Err(CorruptionKind::Malformed(
            "compressed with zstd; this build lacks it, build with the feature `zstd`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_blocks_round_trip() {
        let raw: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 50).to_le_bytes()).collect();
        for method in [Compression::Lz4, Compression::Zstd] {
            let mut compressor = Compressor::new(method, 3).unwrap();
            let (mut small, mut back) = (Vec::new(), Vec::new());
            for length in [64, 4096, raw.len(), 1000] {
                small.clear();
                let used = compressor.compress(&raw[..length], &mut small);
                assert_eq!(used, Some(method), "{length}");
                let n = Decompressor::default().decompress(method as u8, &small, &mut back);
                assert_eq!(n, Ok(length));
                assert_eq!(&back[..length], &raw[..length]);
            }
        }
    }

    #[test]
    fn blocks_that_do_not_shrink_stay_uncompressed() {
        let mut state = 1u64;
        let noise: Vec<u8> = (0..4096)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        for method in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let mut compressor = Compressor::new(method, 1).unwrap();
            assert_eq!(compressor.compress(&noise, &mut Vec::new()), None);
            assert_eq!(compressor.compress(&[], &mut Vec::new()), None);
        }
    }

    #[test]
    fn a_claimed_length_beyond_reason_reserves_nothing() {
        let mut out = Vec::new();
        let mut claim = (1u32 << 30).to_le_bytes().to_vec();
        claim.extend_from_slice(&[0; 100]);
        for method in [1, 2, 3, 255] {
            assert!(Decompressor::default().decompress(method, &claim, &mut out).is_err());
        }
        assert!(out.capacity() < 1 << 16);
    }
}
