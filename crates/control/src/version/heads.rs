//! Sorted entries that are searched by their largest keys. The search reads few cache lines: keys
//! lie all over the memory, but eight bytes of each are kept side by side.
//!
//! 1. `shared` is what all largest keys begin with, as far as the last change could tell cheaply.
//! 2. The head of a key is the eight bytes behind that, as a number. Missing bytes are zeros.
//! 3. [`Entries::search`] compares heads. Only entries with the head of the wanted key are compared
//!    by their keys. [`Entries::find`] also looks whether the key is in the entry.
//!
//! What must stay true: there are two heads for each entry, those of its largest and its smallest
//! key. With a comparator of the user there are none, because bytes say nothing about its order.

use std::cmp::Ordering;
use std::ops::Range;

use crate::user_key::UserKey;

/// Has a range of keys.
pub(super) trait Bounded {
    fn largest(&self) -> &UserKey;
    /// Returns the smallest key; `None` if it is not known.
    fn smallest(&self) -> Option<&UserKey>;
}

/// Entries whose largest keys ascend.
#[derive(Clone, Debug)]
pub(super) struct Entries<T> {
    all: Vec<T>,
    shared: Box<[u8]>,
    /// The heads of the largest keys.
    heads: Vec<u64>,
    /// The heads of the smallest keys; 0 for those that are unknown or do not begin with `shared`.
    begins: Vec<u64>,
}

/// Where a key is, by its first bytes alone.
#[derive(Clone, Copy)]
enum Wanted {
    /// There are no heads.
    Unknown,
    /// Below all keys with the shared bytes.
    Below,
    Above,
    /// It has the shared bytes and this head.
    Head(u64),
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
            // One largest key alone shares all of itself, which would leave no head.
            let begin = first.smallest().filter(|_| all.len() == 1).unwrap_or(first.largest());
            let (first, last) = (begin.bytes(), last.largest().bytes());
            let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            first[..same].into()
        });
        let mut entries = Entries { shared: [].into(), heads: Vec::new(), begins: Vec::new(), all };
        if let Some(shared) = shared {
            entries.shared = shared;
            entries.heads = entries.all.iter().filter_map(|entry| entries.head_of(entry)).collect();
            entries.begins = entries.all.iter().map(|entry| entries.begin_of(entry)).collect();
        }
        entries
    }

    /// Returns the head of the largest key of `entry`; `None` if it needs other `shared` bytes.
    fn head_of(&self, entry: &T) -> Option<u64> {
        let key = entry.largest();
        key.comparator().is_bytewise().then_some(key.bytes().strip_prefix(&*self.shared)?).map(head)
    }

    /// Returns the head of the smallest key of `entry`.
    fn begin_of(&self, entry: &T) -> u64 {
        let rest = entry.smallest().and_then(|key| key.bytes().strip_prefix(&*self.shared));
        rest.map_or(0, head)
    }

    /// Inserts `entry` at `index`.
    pub(super) fn insert(&mut self, index: usize, entry: T) {
        let head = self.head_of(&entry).filter(|_| self.heads.len() == self.all.len());
        let begin = self.begin_of(&entry);
        self.all.insert(index, entry);
        let Some(head) = head else { return self.renew() };
        self.heads.insert(index, head);
        self.begins.insert(index, begin);
        // Then all keys share more by now.
        if self.heads.len() > 1 && self.heads.first() == self.heads.last() {
            self.renew();
        }
    }

    /// Removes the entry at `index`, which must exist.
    pub(super) fn remove(&mut self, index: usize) -> T {
        if index < self.heads.len() {
            self.heads.remove(index);
            self.begins.remove(index);
        }
        self.all.remove(index)
    }

    /// Changes the entry at `index`, if there is one. It keeps its place.
    pub(super) fn change<R>(&mut self, index: usize, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let done = act(self.all.get_mut(index)?);
        let entry = &self.all[index];
        match self.head_of(entry) {
            Some(head) if index < self.heads.len() => {
                self.begins[index] = self.begin_of(entry);
                self.heads[index] = head;
            }
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
        self.search_by(key, self.head_of_wanted(key))
    }

    /// Returns the entry with `key` in its range.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<&T> {
        let head = self.head_of_wanted(key);
        let at = self.search_by(key, head);
        let entry = self.all.get(at)?;
        let begins_before = match (head, self.begins.get(at)) {
            (Wanted::Head(head), Some(begin)) if head != *begin => *begin < head,
            _ => entry.smallest().is_some_and(|smallest| *smallest <= *key),
        };
        begins_before.then_some(entry)
    }

    #[inline]
    fn head_of_wanted(&self, key: &[u8]) -> Wanted {
        if self.heads.len() != self.all.len() {
            return Wanted::Unknown;
        }
        if self.shared.is_empty() {
            return Wanted::Head(head(key));
        }
        match key[..key.len().min(self.shared.len())].cmp(&self.shared) {
            Ordering::Less => Wanted::Below,
            Ordering::Greater => Wanted::Above,
            Ordering::Equal => Wanted::Head(head(&key[self.shared.len()..])),
        }
    }

    #[inline]
    fn search_by(&self, key: &[u8], wanted: Wanted) -> usize {
        let same = match wanted {
            Wanted::Unknown => 0..self.all.len(),
            Wanted::Below => return 0,
            Wanted::Above => return self.all.len(),
            Wanted::Head(head) => {
                let start = self.heads.partition_point(|other| *other < head);
                let same = self.heads[start..].iter().take_while(|other| **other == head).count();
                start..start + same
            }
        };
        same.start + self.all[same].partition_point(|entry| *entry.largest() < *key)
    }

    /// Checks that the heads are those of the entries.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let heads: Option<Vec<u64>> = self.all.iter().map(|entry| self.head_of(entry)).collect();
        assert_eq!(self.heads, heads.unwrap_or_default());
        let begins = self.all.iter().map(|entry| self.begin_of(entry));
        assert_eq!(self.begins, begins.take(self.heads.len()).collect::<Vec<_>>());
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

    /// The smallest and the largest key.
    #[derive(Clone, Debug)]
    struct Span(UserKey, UserKey);

    impl Bounded for Span {
        fn largest(&self) -> &UserKey {
            &self.1
        }
        fn smallest(&self) -> Option<&UserKey> {
            Some(&self.0)
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
            inserted in prop::collection::vec((keys(), keys()), 0..60),
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
            for (one, other) in inserted {
                let (one, other) = (order.key(&one), order.key(&other));
                let span = Span(one.clone().min(other.clone()), one.max(other));
                let at = entries.search(span.0.bytes());
                if entries.get(at).is_none_or(|next: &Span| next.0 > span.1) {
                    entries.insert(at, span);
                }
                entries.check();
            }
            for index in removed {
                if !entries.is_empty() {
                    let at = index.index(entries.len());
                    let Span(_, largest) = entries.remove(at);
                    entries.check();
                    // The one before takes its keys as well.
                    if at > 0 {
                        entries.change(at - 1, |span| span.1 = largest);
                        entries.check();
                    }
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
                prop_assert!(part.windows(2).all(|pair| pair[0].1 < pair[1].0));
                let ends = part.iter().flat_map(|span| [span.0.bytes(), span.1.bytes()]);
                for key in wanted.iter().map(Vec::as_slice).chain(ends) {
                    let expected = part.iter().filter(|span| span.1 < *key).count();
                    prop_assert_eq!(part.search(key), expected);
                    let found = part.iter().find(|span| span.0 <= *key && span.1 >= *key);
                    prop_assert_eq!(part.find(key).map(|it| &it.1), found.map(|it| &it.1));
                }
            }
        }
    }
}
