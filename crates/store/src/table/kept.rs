//! Memory of indexes and filters that serves again, for all threads.
//!
//! A table is opened by the thread that wrote it and closed by any. The allocator keeps freed
//! memory for the thread that had allocated it. So the heap of each thread would grow to the most
//! that its own tables ever took at a time.

use crate::base::reused::Reused;

/// Bytes and number of vectors that are kept of a kind.
const BYTES_MAX: usize = 1 << 20;
const VECTORS_MAX: usize = 256;
/// A larger one would take the place of too many.
const VECTOR_BYTES_MAX: usize = BYTES_MAX / 8;
/// Capacities are multiples of so many bytes. More vectors fit then.
const STEP_BYTES: usize = 512;

/// Vectors of closed tables.
pub(super) struct Kept<T>(Reused<Vec<T>>);

impl<T> Kept<T> {
    const STEP: usize = if size_of::<T>() < STEP_BYTES { STEP_BYTES / size_of::<T>() } else { 1 };

    pub(super) const fn new() -> Kept<T> {
        Kept(Reused::new(bytes_of, BYTES_MAX, VECTORS_MAX))
    }

    /// Returns an empty vector with room for `len` elements.
    pub(super) fn take(&self, len: usize) -> Vec<T> {
        let capacity = len.next_multiple_of(Self::STEP);
        // A much larger one would waste the rest.
        let fits = |one: &Vec<T>| (len..=capacity + capacity / 8).contains(&one.capacity());
        self.0.take(fits).unwrap_or_else(|| Vec::with_capacity(capacity))
    }

    /// Keeps the memory of a vector.
    pub(super) fn give_back(&self, mut vector: Vec<T>) {
        vector.clear();
        if (1..=VECTOR_BYTES_MAX).contains(&bytes_of(&vector)) {
            self.0.give_back(vector);
        }
    }
}

/// Returns the bytes of a vector's elements, and of those that it has room for.
pub(super) fn bytes_of<T>(vector: &Vec<T>) -> usize {
    vector.capacity() * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_serves_again_if_it_fits() {
        let kept = Kept::<u64>::new();
        let mut one = kept.take(100);
        assert_eq!(one.capacity(), 128);
        one.push(1);
        kept.give_back(one);
        // Neither for more than it has room for, nor where it would be wasted.
        assert_eq!((kept.take(129).capacity(), kept.take(10).capacity()), (192, 64));
        let again = kept.take(127);
        assert_eq!((again.len(), again.capacity()), (0, 128));
        assert!(kept.0.take(|_| true).is_none());
    }

    #[test]
    fn neither_large_nor_empty_ones_are_kept() {
        let kept = Kept::<u64>::new();
        kept.give_back(Vec::new());
        kept.give_back(Vec::with_capacity(VECTOR_BYTES_MAX / size_of::<u64>() + 1));
        assert!(kept.0.take(|_| true).is_none());
        kept.give_back(Vec::with_capacity(VECTOR_BYTES_MAX / size_of::<u64>()));
        assert!(kept.0.take(|_| true).is_some());
    }
}
