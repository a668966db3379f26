//! Mappings of buffers that are gone, for the next buffers of all threads and databases.

use memmap2::MmapMut;

use crate::base::reused::Reused;

/// The most that is kept, and the largest mapping that is: the longest read of a compaction, 2 MiB.
const KEPT_BYTES_MAX: usize = 16 << 20;
const MAPPING_BYTES_MAX: usize = (2 << 20) + STEP_BYTES;
/// Lengths are multiples of this, so that a mapping fits many buffers.
const STEP_BYTES: usize = 128 << 10;

/// The mappings of the process's buffers.
pub(super) static KEPT: Mappings = Mappings::new();

/// Mappings that are not in use.
pub(super) struct Mappings(Reused<MmapMut>);

impl Mappings {
    const fn new() -> Mappings {
        Mappings(Reused::new(length_of, KEPT_BYTES_MAX, KEPT_BYTES_MAX / STEP_BYTES))
    }

    /// Returns a mapping of at least `bytes`; `None` if the system makes none.
    pub(super) fn take(&self, bytes: usize) -> Option<MmapMut> {
        let length = bytes.checked_next_multiple_of(STEP_BYTES)?;
        // At most twice the length, so that a small buffer does not use up a large mapping.
        let fits = |mapping: &MmapMut| mapping.len() >= length && mapping.len() / 2 <= length;
        self.0.take(fits).or_else(|| MmapMut::map_anon(length).ok())
    }

    /// Keeps `mapping`. Frees it if it is too large.
    pub(super) fn give_back(&self, mapping: MmapMut) {
        if mapping.len() <= MAPPING_BYTES_MAX {
            self.0.give_back(mapping);
        }
    }

    /// Frees all that is kept.
    pub(super) fn free(&self) {
        self.0.free();
    }
}

fn length_of(mapping: &MmapMut) -> usize {
    mapping.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "nothing is mapped")]
    fn mappings_serve_again_within_their_limit() {
        let mappings = Mappings::new();
        let none_is_kept = || mappings.0.take(|_| true).is_none();
        let take = |bytes| mappings.take(bytes).expect("there is memory");

        let mut first = take(1 << 20);
        first.fill(7);
        mappings.give_back(first);
        assert_eq!(take(100).len(), STEP_BYTES, "the kept one is too large");
        let again = take((1 << 20) - 5);
        assert!(again.iter().all(|byte| *byte == 7) && none_is_kept());

        mappings.give_back(take(MAPPING_BYTES_MAX + 1));
        assert!(none_is_kept(), "too large");
        let many: Vec<_> = (0..20).map(|_| take(1 << 20)).collect();
        many.into_iter().for_each(|mapping| mappings.give_back(mapping));
        let kept = std::iter::from_fn(|| mappings.0.take(|_| true));
        assert_eq!(kept.map(|mapping| mapping.len()).sum::<usize>(), KEPT_BYTES_MAX);
    }
}
