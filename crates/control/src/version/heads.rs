//! Sorted entries that are searched by their largest keys. The search reads few cache lines: keys
//! lie all over the memory, but eight bytes of each are kept side by side.
//!
//! 1. `shared` is what all keys begin with, as far as the last change could tell cheaply.
//! 2. The head of a key is the eight bytes behind that, as a number. Missing bytes are zeros.
//! 3. [`Entries::search`] compares heads. Only entries with the head of the wanted key are compared
//!    by their keys.
//!
//! What must stay true: there is a head for each entry, and it is the head of its largest key. With
//! a comparator of the user there are none, because bytes say nothing about its order.

use std::cmp::Ordering;
use std::ops::Range;

use crate::user_key::UserKey;

/// Has a largest key.
pub(super) trait Bounded {
    fn largest(&self) -> &UserKey;
}

/// Entries whose largest keys ascend.
#[derive(Clone, Debug)]
pub(super) struct Entries<T> {
    all: Vec<T>,
    shared: Box<[u8]>,
    heads: Vec<u64>,
}

/// Returns up to eight bytes as a number that has their order.
#[inline]
fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(eight)
        }
    }
}

impl<T: Bounded> Entries<T> {
    pub(super) fn new(all: Vec<T>) -> Entries<T> {
        let ends = all.first().zip(all.last());
        let shared = ends.filter(|(first, _)| first.largest().comparator().is_bytewise());
        let shared = shared.map(|(first, last)| {
            let (first, last) = (first.largest().bytes(), last.largest().bytes());
            let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            &first[..same]
        });
        let heads = shared.map(|shared| {
            let keys = all.iter().map(|entry| entry.largest().bytes());
            keys.map(|key| head(&key[shared.len()..])).collect()
        });
        let shared = shared.unwrap_or_default().into();
        Entries { all, shared, heads: heads.unwrap_or_default() }
    }

    /// Returns the head of the largest key of `entry`; `None` if it needs other `shared` bytes.
    fn head_of(&self, entry: &T) -> Option<u64> {
        let key = entry.largest();
        key.comparator().is_bytewise().then_some(key.bytes().strip_prefix(&*self.shared)?).map(head)
    }

    /// Inserts `entry` at `index`.
    pub(super) fn insert(&mut self, index: usize, entry: T) {
        let head = self.head_of(&entry).filter(|_| self.heads.len() == self.all.len());
        self.all.insert(index, entry);
        match head {
            Some(head) => self.heads.insert(index, head),
            None => return self.renew(),
        }
        // Then all keys share more by now.
        if self.heads.len() > 1 && self.heads.first() == self.heads.last() {
            self.renew();
        }
    }

    /// Removes the entry at `index`, which must exist.
    pub(super) fn remove(&mut self, index: usize) -> T {
        if index < self.heads.len() {
            self.heads.remove(index);
        }
        self.all.remove(index)
    }

    /// Changes the entry at `index`, if there is one. Its largest key keeps its place.
    pub(super) fn change<R>(&mut self, index: usize, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let done = act(self.all.get_mut(index)?);
        match self.all.get(index).and_then(|entry| self.head_of(entry)) {
            Some(head) if index < self.heads.len() => self.heads[index] = head,
            _ => self.renew(),
        }
        Some(done)
    }

    /// Puts `entries` in the place of those in `range`.
    pub(super) fn replace(&mut self, range: Range<usize>, entries: impl IntoIterator<Item = T>) {
        self.all.splice(range, entries);
        self.renew();
    }

    /// Returns the second half of the entries, which are removed.
    pub(super) fn split_off(&mut self, index: usize) -> Entries<T> {
        let second = Entries::new(self.all.split_off(index));
        self.renew();
        second
    }

    fn renew(&mut self) {
        *self = Entries::new(std::mem::take(&mut self.all));
    }

    /// Returns the index of the first entry whose largest key is at or above `key`; the number of
    /// entries if there is none.
    #[inline]
    pub(super) fn search(&self, key: &[u8]) -> usize {
        let same = self.with_head_of(key);
        same.start + self.all[same].partition_point(|entry| *entry.largest() < *key)
    }

    /// Returns the range of the entries that have the head of `key`. Those before it are below
    /// `key`, and those behind it above.
    #[inline]
    fn with_head_of(&self, key: &[u8]) -> Range<usize> {
        let all = self.all.len();
        if self.heads.len() != all {
            return 0..all;
        }
        let rest = if self.shared.is_empty() {
            key
        } else {
            let begin = &key[..key.len().min(self.shared.len())];
            match begin.cmp(&self.shared) {
                Ordering::Less => return 0..0,
                Ordering::Greater => return all..all,
                Ordering::Equal => &key[self.shared.len()..],
            }
        };
        let head = head(rest);
        let start = self.heads.partition_point(|other| *other < head);
        let same = self.heads[start..].iter().take_while(|other| **other == head).count();
        start..start + same
    }

    /// Checks that the heads are those of the entries.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let heads: Option<Vec<u64>> = self.all.iter().map(|entry| self.head_of(entry)).collect();
        assert_eq!(self.heads, heads.unwrap_or_default());
    }
}

impl<T> std::ops::Deref for Entries<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::user_key::Comparator;

    impl Bounded for UserKey {
        fn largest(&self) -> &UserKey {
            self
        }
    }

    /// Keys of few different bytes, some of which begin with others.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0), Just(1), Just(b'a'), Just(0xff)];
        let begin = prop::sample::select(vec!["", "user", "a long begin of all keys"]);
        let end = prop::collection::vec(byte, 0..14);
        (begin, end).prop_map(|(begin, end)| [begin.as_bytes(), &end].concat())
    }

    proptest! {
        #[test]
        fn a_search_finds_what_comparing_all_keys_finds(
            inserted in prop::collection::vec(keys(), 0..60),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            wanted in prop::collection::vec(keys(), 1..20),
            split in any::<prop::sample::Index>(),
            reversed in any::<bool>(),
        ) {
            let order = match reversed {
                true => Comparator::reverse_bytewise(),
                false => Comparator::BYTEWISE,
            };
            let mut entries = Entries::new(Vec::new());
            for key in inserted {
                let at = entries.search(&key);
                if entries.get(at).is_none_or(|other| *other != *key) {
                    entries.insert(at, order.key(&key));
                }
                entries.check();
            }
            for index in removed {
                if !entries.is_empty() {
                    let at = index.index(entries.len());
                    entries.remove(at);
                    entries.check();
                    // A neighbour becomes larger, but not as large as the next one.
                    if at > 0 && !reversed {
                        let mut key = entries[at - 1].bytes().to_vec();
                        key.push(0);
                        if entries.get(at).is_none_or(|next| *next > *key) {
                            entries.change(at - 1, |entry| *entry = order.key(&key));
                        }
                    }
                    entries.check();
                }
            }
            let mut parts = vec![entries];
            if !parts[0].is_empty() {
                let at = split.index(parts[0].len());
                let second = parts[0].split_off(at);
                parts.push(second);
            }
            for part in &parts {
                part.check();
                prop_assert!(part.windows(2).all(|pair| pair[0] < pair[1]));
                for key in &wanted {
                    let expected = part.iter().filter(|entry| **entry < **key).count();
                    prop_assert_eq!(part.search(key), expected);
                }
            }
        }
    }
}
