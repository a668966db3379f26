//! Memory of indexes and filters that serves again, for all threads.
//!
//! A table is opened by the thread that wrote it and closed by any. The allocator keeps freed memory
//! for the thread that had allocated it. So the heap of each thread would grow to the most that its
//! own tables ever took at a time.
//!
//! What must stay true: the memory kept of a kind has a limit.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::base::sync::leaf::lock;

/// Bytes and number of vectors that are kept of a kind, the youngest.
const BYTES_MAX: usize = 1 << 20;
const VECTORS_MAX: usize = 256;
/// Capacities are multiples of so many elements. More vectors fit then.
const ELEMENTS: usize = 64;

/// Vectors of closed tables, the youngest last.
pub(super) struct Kept<T>(Mutex<VecDeque<Vec<T>>>);

impl<T> Kept<T> {
    pub(super) const fn new() -> Kept<T> {
        Kept(Mutex::new(VecDeque::new()))
    }

    /// Returns an empty vector with room for `len` elements.
    pub(super) fn take(&self, len: usize) -> Vec<T> {
        let capacity = len.next_multiple_of(ELEMENTS);
        let mut kept = lock(&self.0);
        // A much larger one would waste the rest.
        let fits = |one: &Vec<T>| (len..=capacity + capacity / 8).contains(&one.capacity());
        let found = kept.iter().rposition(fits).and_then(|at| kept.remove(at));
        found.unwrap_or_else(|| Vec::with_capacity(capacity))
    }

    /// Keeps the memory of a vector.
    pub(super) fn give_back(&self, mut vector: Vec<T>) {
        vector.clear();
        if vector.capacity() == 0 {
            return;
        }
        let mut kept = lock(&self.0);
        kept.push_back(vector);
        let mut bytes: usize = kept.iter().map(bytes_of).sum();
        while bytes > BYTES_MAX || kept.len() > VECTORS_MAX {
            bytes -= kept.pop_front().map_or(bytes, |oldest| bytes_of(&oldest));
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
        assert!(lock(&kept.0).is_empty());
    }

    #[test]
    fn the_oldest_are_freed_beyond_the_limits() {
        for (len, count) in [(64, VECTORS_MAX), (16 << 10, BYTES_MAX / (128 << 10))] {
            let kept = Kept::<u64>::new();
            for extra in 0..300 {
                kept.give_back(Vec::with_capacity(len + usize::from(extra == 0)));
            }
            assert_eq!(lock(&kept.0).len(), count);
            assert!(lock(&kept.0).iter().all(|one| one.capacity() == len));
        }
    }
}
