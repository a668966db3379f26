//! Memory of indexes and filters that serves again, for all threads.
//!
//! A table is opened by the thread that wrote it and closed by any. The allocator keeps freed
//! memory for the thread that had allocated it. So the heap of each thread would grow to the most
//! that its own tables ever took at a time.
//!
//! What must stay true: the memory kept of a kind has a limit.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::base::sync::leaf::try_lock;

/// Bytes and number of vectors that are kept of a kind, the youngest.
const BYTES_MAX: usize = 1 << 20;
const VECTORS_MAX: usize = 256;
/// A larger one would take the place of too many.
const VECTOR_BYTES_MAX: usize = BYTES_MAX / 8;
/// Capacities are multiples of so many bytes. More vectors fit then.
const STEP_BYTES: usize = 512;

/// Vectors of closed tables, the youngest last. Nobody waits for them: where another thread is at
/// them, memory is allocated and freed as usual.
pub(super) struct Kept<T>(Mutex<VecDeque<Vec<T>>>);

impl<T> Kept<T> {
    const STEP: usize = if size_of::<T>() < STEP_BYTES { STEP_BYTES / size_of::<T>() } else { 1 };

    pub(super) const fn new() -> Kept<T> {
        Kept(Mutex::new(VecDeque::new()))
    }

    /// Returns an empty vector with room for `len` elements.
    pub(super) fn take(&self, len: usize) -> Vec<T> {
        let capacity = len.next_multiple_of(Self::STEP);
        // A much larger one would waste the rest.
        let fits = |one: &Vec<T>| (len..=capacity + capacity / 8).contains(&one.capacity());
        let found = try_lock(&self.0).and_then(|mut kept| {
            let at = kept.iter().rposition(fits)?;
            kept.remove(at)
        });
        found.unwrap_or_else(|| Vec::with_capacity(capacity))
    }

    /// Keeps the memory of a vector.
    pub(super) fn give_back(&self, mut vector: Vec<T>) {
        vector.clear();
        if !(1..=VECTOR_BYTES_MAX).contains(&bytes_of(&vector)) {
            return;
        }
        let mut oldest = Vec::new();
        let Some(mut kept) = try_lock(&self.0) else { return };
        kept.push_back(vector);
        let mut bytes: usize = kept.iter().map(bytes_of).sum();
        while bytes > BYTES_MAX || kept.len() > VECTORS_MAX {
            let Some(one) = kept.pop_front() else { break };
            bytes -= bytes_of(&one);
            oldest.push(one);
        }
        // They are freed without the lock.
        drop(kept);
    }
}

/// Returns the bytes of a vector's elements, and of those that it has room for.
pub(super) fn bytes_of<T>(vector: &Vec<T>) -> usize {
    vector.capacity() * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the capacities of what is kept.
    fn capacities(kept: &Kept<u64>) -> Vec<usize> {
        kept.0.lock().unwrap().iter().map(Vec::capacity).collect()
    }

    #[test]
    fn memory_serves_again_if_it_fits() {
        let kept = Kept::<u64>::new();
        let mut one = kept.take(100);
        assert_eq!(one.capacity(), 128);
        one.push(1);
        kept.give_back(one);
        // Neither for more than it has room for, nor where it would be wasted.
        assert_eq!((kept.take(129).capacity(), kept.take(10).capacity()), (192, 64));
        assert_eq!(capacities(&kept), [128]);
        let again = kept.take(127);
        assert_eq!((again.len(), again.capacity()), (0, 128));
        assert!(capacities(&kept).is_empty());
    }

    #[test]
    fn the_oldest_are_freed_beyond_the_limits() {
        let most = VECTOR_BYTES_MAX / size_of::<u64>();
        for (len, count) in [(64, VECTORS_MAX), (most, 8)] {
            let kept = Kept::<u64>::new();
            kept.give_back(Vec::with_capacity(len - 1));
            (0..300).for_each(|_| kept.give_back(Vec::with_capacity(len)));
            assert_eq!(capacities(&kept), vec![len; count]);
            // One that is too large displaces none.
            kept.give_back(Vec::with_capacity(most + 1));
            assert_eq!(capacities(&kept), vec![len; count]);
        }
    }

    #[test]
    fn nobody_waits() {
        let kept = Kept::<u64>::new();
        let held = kept.0.lock().unwrap();
        kept.give_back(kept.take(10));
        drop(held);
        assert!(capacities(&kept).is_empty());
    }
}
