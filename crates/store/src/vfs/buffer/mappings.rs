//! Mappings of buffers that are gone, for the next buffers.
//!
//! What must stay true: all together they take at most [`KEPT_BYTES_MAX`], however many threads and
//! databases there are.

use std::sync::Mutex;

use memmap2::MmapMut;

use crate::base::sync::leaf::lock;

/// The most that is kept, and the largest mapping that is: the longest read of a compaction, 2 MiB.
const KEPT_BYTES_MAX: usize = 16 << 20;
const MAPPING_BYTES_MAX: usize = (2 << 20) + STEP_BYTES;
/// Lengths are multiples of this, so that a mapping fits many buffers.
const STEP_BYTES: usize = 128 << 10;

/// The mappings of the process's buffers.
pub(super) static KEPT: Mappings = Mappings(Mutex::new(Vec::new()));

/// Mappings that are not in use, the one that was used last at the end.
pub(super) struct Mappings(Mutex<Vec<MmapMut>>);

impl Mappings {
    /// Returns a mapping of at least `bytes`; `None` if the system makes none.
    pub(super) fn take(&self, bytes: usize) -> Option<MmapMut> {
        let length = bytes.checked_next_multiple_of(STEP_BYTES)?;
        let kept = {
            let mut kept = lock(&self.0);
            // At most twice the length, so that a small buffer does not use up a large mapping.
            let fits = |mapping: &MmapMut| mapping.len() >= length && mapping.len() / 2 <= length;
            kept.iter().rposition(fits).map(|at| kept.remove(at))
        };
        kept.or_else(|| MmapMut::map_anon(length).ok())
    }

    /// Keeps `mapping` instead of those that are unused for longest. Frees it if it is too large.
    pub(super) fn give_back(&self, mapping: MmapMut) {
        if mapping.len() > MAPPING_BYTES_MAX {
            return;
        }
        let mut kept = lock(&self.0);
        kept.push(mapping);
        let mut bytes: usize = kept.iter().map(|mapping| mapping.len()).sum();
        let oldest = kept.iter().take_while(|mapping| {
            let more = bytes > KEPT_BYTES_MAX;
            bytes = bytes.saturating_sub(mapping.len());
            more
        });
        let freed = oldest.count();
        let freed: Vec<_> = kept.drain(..freed).collect();
        drop(kept);
        drop(freed);
    }

    /// Frees all that is kept.
    pub(super) fn free(&self) {
        let freed = std::mem::take(&mut *lock(&self.0));
        drop(freed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "nothing is mapped")]
    fn mappings_serve_again_within_their_limit() {
        let mappings = Mappings(Mutex::new(Vec::new()));
        let kept = || lock(&mappings.0).iter().map(|mapping| mapping.len()).collect::<Vec<_>>();
        let take = |bytes| mappings.take(bytes).expect("there is memory");

        let mut first = take(1 << 20);
        first.fill(7);
        mappings.give_back(first);
        assert_eq!(kept(), [1 << 20]);
        assert_eq!(take(100).len(), STEP_BYTES, "the kept one is too large");
        let again = take((1 << 20) - 5);
        assert!(again.iter().all(|byte| *byte == 7) && kept().is_empty());

        mappings.give_back(take(MAPPING_BYTES_MAX + 1));
        assert!(kept().is_empty(), "too large");
        let small = take(STEP_BYTES);
        let many: Vec<_> = (0..20).map(|_| take(1 << 20)).collect();
        mappings.give_back(small);
        many.into_iter().for_each(|mapping| mappings.give_back(mapping));
        assert_eq!(kept(), [1 << 20; 16], "the oldest one went first");
        mappings.free();
        assert!(kept().is_empty());
    }
}
