//! The bytes of one file in shared chunks. A copy of a file costs its table of segments, and a
//! write costs the chunks that it touches.
//!
//! What must stay true: bytes beyond the length are zero.

use std::sync::Arc;

/// Unit of sharing, copying and holes.
pub(super) const CHUNK_BYTES: usize = 4096;
const CHUNKS_PER_SEGMENT: usize = 64;

type Chunk = Arc<[u8]>;

/// A group of chunks, so that a copy of a file shares most of its table.
#[derive(Clone, Debug)]
struct Segment([Option<Chunk>; CHUNKS_PER_SEGMENT]);

/// The bytes of a file. An absent chunk reads as zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    len: u64,
    segments: Vec<Option<Arc<Segment>>>,
    /// Number of chunks that are present.
    chunks: u64,
}

impl Contents {
    /// Returns the length.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes that the file would take on a disk.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.chunks * CHUNK_BYTES as u64
    }

    /// Returns how many more bytes the file would take on a disk after a write of this range.
    pub(super) fn growth_bytes(&self, offset: u64, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        let chunks = chunk_of(offset)..=chunk_of(offset + length - 1);
        chunks.filter(|&chunk| self.chunk(chunk).is_none()).count() as u64 * CHUNK_BYTES as u64
    }

    /// Copies bytes from `offset` to `buffer`, and returns their number.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let available = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        for (chunk, within, piece) in pieces(offset, available) {
            let target = &mut buffer[piece.clone()];
            match self.chunk(chunk) {
                Some(bytes) => target.copy_from_slice(&bytes[within..within + piece.len()]),
                None => target.fill(0),
            }
        }
        available
    }

    /// Writes bytes, and extends the file if they end behind its end.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        for (chunk, within, piece) in pieces(offset, bytes.len()) {
            self.write_piece(chunk, within, &bytes[piece]);
        }
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
    }

    /// Writes a part of one chunk. A shared chunk is copied first.
    fn write_piece(&mut self, chunk: usize, within: usize, bytes: &[u8]) {
        let (slot, allocated) = self.slot(chunk);
        *allocated += u64::from(slot.is_none());
        match slot {
            Some(chunk) if bytes.len() < CHUNK_BYTES => {
                Arc::make_mut(chunk)[within..within + bytes.len()].copy_from_slice(bytes);
            }
            _ if bytes.len() == CHUNK_BYTES => *slot = Some(Arc::from(bytes)),
            _ => {
                let mut fresh = [0; CHUNK_BYTES];
                fresh[within..within + bytes.len()].copy_from_slice(bytes);
                *slot = Some(Arc::from(&fresh[..]));
            }
        }
    }

    /// Makes the range zero and frees its whole chunks. The length stays.
    pub(super) fn punch(&mut self, offset: u64, length: u64) {
        let end = self.segments.len() as u64 * (CHUNKS_PER_SEGMENT * CHUNK_BYTES) as u64;
        let length = length.min(end.saturating_sub(offset)) as usize;
        for (chunk, within, piece) in pieces(offset, length) {
            if self.chunk(chunk).is_none() {
                continue;
            }
            let (slot, allocated) = self.slot(chunk);
            if piece.len() == CHUNK_BYTES {
                *slot = None;
                *allocated -= 1;
            } else if let Some(chunk) = slot {
                Arc::make_mut(chunk)[within..within + piece.len()].fill(0);
            }
        }
    }

    /// Sets the length, and frees all chunks behind it.
    pub(super) fn truncate(&mut self, length: u64) {
        if length < self.len {
            // Up to the end of the last chunk, so that all chunks behind the new end are freed.
            let rest = (self.len - length).next_multiple_of(CHUNK_BYTES as u64);
            self.punch(length, rest + CHUNK_BYTES as u64);
            let per_segment = (CHUNKS_PER_SEGMENT * CHUNK_BYTES) as u64;
            self.segments.truncate(length.div_ceil(per_segment) as usize);
        }
        self.len = length;
    }

    /// Iterates over the chunks that are present, with their index.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segments.iter().enumerate().flat_map(|(segment, chunks)| {
            let chunks = chunks.iter().flat_map(|segment| segment.0.iter().enumerate());
            chunks.filter_map(move |(chunk, bytes)| {
                let place = (segment * CHUNKS_PER_SEGMENT + chunk) as u64;
                bytes.as_deref().map(|bytes| (place, bytes))
            })
        })
    }

    /// Returns a chunk, if it is present.
    fn chunk(&self, chunk: usize) -> Option<&Chunk> {
        let segment = self.segments.get(chunk / CHUNKS_PER_SEGMENT)?.as_ref()?;
        segment.0[chunk % CHUNKS_PER_SEGMENT].as_ref()
    }

    /// Returns the place of a chunk, unshared, and the chunk counter to be updated with it.
    fn slot(&mut self, chunk: usize) -> (&mut Option<Chunk>, &mut u64) {
        let segment = chunk / CHUNKS_PER_SEGMENT;
        if segment >= self.segments.len() {
            self.segments.resize(segment + 1, None);
        }
        let segment = self.segments[segment]
            .get_or_insert_with(|| Arc::new(Segment([const { None }; CHUNKS_PER_SEGMENT])));
        (&mut Arc::make_mut(segment).0[chunk % CHUNKS_PER_SEGMENT], &mut self.chunks)
    }
}

fn chunk_of(offset: u64) -> usize {
    (offset / CHUNK_BYTES as u64) as usize
}

/// Cuts a range at chunk boundaries. Yields (chunk, offset in the chunk, part of the range).
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < length).then(|| {
            let position = offset + done as u64;
            let within = (position % CHUNK_BYTES as u64) as usize;
            let piece = done..length.min(done + CHUNK_BYTES - within);
            done = piece.end;
            (chunk_of(position), within, piece)
        })
    })
}
