//! Loom models: every interleaving of a few operations on the skip list and its arena.
//! `RUSTFLAGS="--cfg loom" cargo test -p sateen-store --release loom`
//!
//! Under loom a list has two levels, and a node reads a loom cell whenever its bytes are read, so
//! that a missing release or acquire fails the model.

use std::cmp::Ordering as Order;

use loom::sync::Arc;
use loom::thread;
use sateen_control::{Comparator, SeqNo, ValueKind};

use super::arena::Arena;
use super::skiplist::{Cursor, Finger, SkipList, Target};
use crate::base::key::{self, pack};

fn put(list: &SkipList, finger: &mut Finger, user_key: &[u8], seqno: u64) {
    let target = Target::new(&Comparator::BYTEWISE, user_key, pack(SeqNo(seqno), ValueKind::Put));
    list.insert(&target, user_key, finger);
}

fn has(list: &SkipList, user_key: &[u8]) -> bool {
    let target = Target::new(&Comparator::BYTEWISE, user_key, pack(SeqNo::MAX, ValueKind::MAX));
    list.get(&target).is_some_and(|entry| entry.value() == user_key)
}

/// Checks every interleaving with at most `preemptions_max` involuntary thread switches.
fn model(preemptions_max: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(check);
}

fn new_list() -> Arc<SkipList> {
    Arc::new(SkipList::new(1 << 10, None, Comparator::BYTEWISE))
}

/// Returns the user keys in order, after checks in both directions.
fn keys(list: &Arc<SkipList>) -> Vec<Vec<u8>> {
    let mut cursor = Cursor::new(Arc::clone(list));
    let mut keys: Vec<Vec<u8>> = Vec::new();
    cursor.move_to_first();
    while let Some(entry) = cursor.entry() {
        if let Some(before) = keys.last() {
            assert_eq!(key::compare(&Comparator::BYTEWISE, before, entry.key()), Order::Less);
        }
        keys.push(entry.key().to_vec());
        cursor.move_on();
    }
    keys
}

fn user_keys(list: &Arc<SkipList>) -> Vec<Vec<u8>> {
    keys(list).iter().map(|key| key::user_key(key).to_vec()).collect()
}

#[test]
fn loom_two_insert_at_the_same_place() {
    model(3, || {
        let list = new_list();
        let other = Arc::clone(&list);
        let thread = thread::spawn(move || put(&other, &mut Finger::new(), b"b", 1));
        put(&list, &mut Finger::new(), b"a", 2);
        assert!(has(&list, b"a"));
        thread.join().unwrap();
        assert_eq!(user_keys(&list), [b"a", b"b"]);
        assert!(has(&list, b"a") && has(&list, b"b"));
    });
}

#[test]
fn loom_versions_of_one_key_at_the_same_place() {
    model(3, || {
        let list = new_list();
        let other = Arc::clone(&list);
        let thread = thread::spawn(move || put(&other, &mut Finger::new(), b"k", 1));
        put(&list, &mut Finger::new(), b"k", 2);
        thread.join().unwrap();
        let seqnos: Vec<u64> = keys(&list).iter().map(|key| key::seqno(key).0).collect();
        assert_eq!(seqnos, [2, 1]);
    });
}

#[test]
fn loom_three_insert() {
    model(1, || {
        let list = new_list();
        let threads: Vec<_> = [(b"a", 2), (b"n", 3)]
            .into_iter()
            .map(|(key, seqno)| {
                let list = Arc::clone(&list);
                thread::spawn(move || put(&list, &mut Finger::new(), key, seqno))
            })
            .collect();
        put(&list, &mut Finger::new(), b"o", 4);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(user_keys(&list), [b"a", b"n", b"o"]);
    });
}

#[test]
fn loom_insert_against_iteration() {
    model(2, || {
        let list = new_list();
        let mut finger = Finger::new();
        put(&list, &mut finger, b"b", 1);
        let other = Arc::clone(&list);
        let thread = thread::spawn(move || {
            let mut finger = Finger::new();
            put(&other, &mut finger, b"a", 2);
            put(&other, &mut finger, b"c", 3);
        });
        let seen = user_keys(&list);
        assert!(seen.contains(&b"b".to_vec()));
        if seen.contains(&b"c".to_vec()) {
            // The same thread inserted it before `c`.
            assert!(has(&list, b"a"));
        }
        let mut cursor = Cursor::new(Arc::clone(&list));
        cursor.move_to_last();
        let mut back = Vec::new();
        while let Some(entry) = cursor.entry() {
            back.push(key::user_key(entry.key()).to_vec());
            cursor.move_back();
        }
        assert!(back.is_sorted_by(|a, b| a > b) && back.contains(&b"b".to_vec()));
        thread.join().unwrap();
        assert_eq!(user_keys(&list), [b"a", b"b", b"c"]);
    });
}

#[test]
fn loom_arena_grows_once() {
    model(3, || {
        let arena = Arc::new(Arena::new(1 << 10, None));
        let take = |arena: &Arena| {
            let space = arena.allocate(1000, 1000);
            (space.node.addr().get(), space.value.addr().get())
        };
        let other = Arc::clone(&arena);
        let thread = thread::spawn(move || [take(&other), take(&other)]);
        let own = [take(&arena)];
        let mut starts: Vec<usize> = Vec::new();
        for (node, value) in own.into_iter().chain(thread.join().unwrap()) {
            starts.extend([node, value]);
        }
        starts.sort_unstable();
        assert!(starts.is_sorted_by(|a, b| a + 1000 <= *b), "{starts:?}");
        assert_eq!(arena.reserved_bytes(), 1 << 14);
        assert!(arena.used_bytes() <= arena.reserved_bytes());
    });
}

#[test]
fn loom_large_blocks_do_not_lose_each_other() {
    model(3, || {
        let arena = Arc::new(Arena::new(1 << 10, None));
        let other = Arc::clone(&arena);
        let thread = thread::spawn(move || {
            other.allocate(64, 5_000);
        });
        arena.allocate(5_000, 5_000);
        thread.join().unwrap();
        assert!(arena.reserved_bytes() > 15_000);
    });
}
