//! Pieces of memory that serve again, for all threads. The allocator keeps freed memory for the
//! thread that had it, and a page that was unmapped costs a fault when it is mapped again.
//!
//! What must stay true: what is kept has a limit, and nobody who takes or gives back waits. Where
//! another thread is at the list, memory is allocated and freed as usual.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::sync::leaf::{lock, try_lock};

/// Pieces that are not in use, the youngest last.
pub struct Reused<P> {
    pieces: Mutex<VecDeque<P>>,
    bytes_of: fn(&P) -> usize,
    bytes_max: usize,
    pieces_max: usize,
}

impl<P> Reused<P> {
    /// Returns a list that keeps at most so many bytes and pieces. `bytes_of` measures a piece.
    pub const fn new(bytes_of: fn(&P) -> usize, bytes_max: usize, pieces_max: usize) -> Reused<P> {
        Reused { pieces: Mutex::new(VecDeque::new()), bytes_of, bytes_max, pieces_max }
    }

    /// Returns the youngest piece that fits.
    pub fn take(&self, fits: impl Fn(&P) -> bool) -> Option<P> {
        let mut pieces = try_lock(&self.pieces)?;
        let at = pieces.iter().rposition(fits)?;
        pieces.remove(at)
    }

    /// Keeps `piece` instead of the oldest ones beyond the limits.
    pub fn give_back(&self, piece: P) {
        let mut oldest = Vec::new();
        let Some(mut pieces) = try_lock(&self.pieces) else { return };
        pieces.push_back(piece);
        let mut bytes: usize = pieces.iter().map(self.bytes_of).sum();
        while bytes > self.bytes_max || pieces.len() > self.pieces_max {
            let Some(piece) = pieces.pop_front() else { break };
            bytes -= (self.bytes_of)(&piece);
            oldest.push(piece);
        }
        // They are freed without the lock.
        drop(pieces);
    }

    /// Frees all that is kept.
    pub fn free(&self) {
        let freed = std::mem::take(&mut *lock(&self.pieces));
        drop(freed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(bytes_max: usize, pieces_max: usize) -> Reused<Vec<u8>> {
        Reused::new(Vec::capacity, bytes_max, pieces_max)
    }

    /// Returns the sizes of what is kept.
    fn sizes(list: &Reused<Vec<u8>>) -> Vec<usize> {
        lock(&list.pieces).iter().map(Vec::capacity).collect()
    }

    #[test]
    fn the_youngest_that_fits_serves_again() {
        let list = list(1000, 10);
        for size in [100, 200, 200, 300] {
            list.give_back(Vec::with_capacity(size));
        }
        assert!(list.take(|piece| piece.capacity() > 300).is_none());
        assert!(list.take(|piece| piece.capacity() <= 200).is_some());
        assert_eq!(sizes(&list), [100, 200, 300]);
        list.free();
        assert!(sizes(&list).is_empty());
    }

    #[test]
    fn the_oldest_are_freed_beyond_the_limits() {
        for (bytes_max, pieces_max, left) in [(256, 100, 4), (10_000, 7, 7)] {
            let list = list(bytes_max, pieces_max);
            list.give_back(Vec::with_capacity(32));
            (0..20).for_each(|_| list.give_back(Vec::with_capacity(64)));
            assert_eq!(sizes(&list), vec![64; left]);
        }
    }

    #[test]
    fn nobody_waits() {
        let list = list(1000, 10);
        list.give_back(Vec::with_capacity(10));
        let held = lock(&list.pieces);
        assert!(list.take(|_| true).is_none());
        list.give_back(Vec::with_capacity(20));
        drop(held);
        assert_eq!(sizes(&list), [10]);
    }
}
