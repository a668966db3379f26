//! Compares the iterator with a sorted map of the visible keys, over moves in any mixture of
//! directions.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use sateen_control::UserKey;
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::iter::vec_iter::{Fault, VecIter, internal};

use super::*;
use crate::operators::merge::appending;

/// One write: its key and kind, and the child that holds it. If it is `copied`, the next child has
/// a copy of it, as after a compaction that ended early. Merge operands are never copied.
#[derive(Clone, Debug)]
struct Write {
    key: Vec<u8>,
    kind: ValueKind,
    child: usize,
    copied: bool,
}

#[derive(Clone, Debug)]
enum Move {
    First,
    Last,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    Next,
    Prev,
}

const CHILDREN: usize = 4;

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0_u8), Just(1), Just(0xff)], 0..3)
}

fn any_kind() -> impl Strategy<Value = ValueKind> {
    prop_oneof![
        4 => Just(ValueKind::Put),
        1 => Just(ValueKind::Delete),
        1 => Just(ValueKind::SingleDelete),
        3 => Just(ValueKind::Merge),
    ]
}

/// Writes in commit order, often many to one key.
fn any_history() -> impl Strategy<Value = Vec<Write>> {
    let times = prop_oneof![4 => Just(1_usize), 1 => 5_usize..25];
    let write = (any_key(), any_kind(), 0..CHILDREN, times, proptest::bool::weighted(0.25));
    vec(write, 0..25).prop_map(|writes| {
        let mut history = Vec::new();
        for (key, kind, child, times, copied) in writes {
            let copied = copied && kind != ValueKind::Merge;
            for _ in 0..times {
                history.push(Write { key: key.clone(), kind, child, copied });
            }
        }
        history
    })
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => any_key().prop_map(Move::Seek),
        2 => any_key().prop_map(Move::SeekForPrev),
        8 => Just(Move::Next),
        8 => Just(Move::Prev),
    ]
}

fn any_bounds() -> impl Strategy<Value = IterBounds> {
    let bound = || proptest::option::of(any_key().prop_map(UserKey::bytewise));
    (bound(), bound(), proptest::option::weighted(0.3, any_key())).prop_map(|(l, u, prefix)| {
        let bounds = IterBounds::new(l, u);
        match prefix {
            Some(prefix) => bounds.with_prefix(&prefix),
            None => bounds,
        }
    })
}

fn value_of(seqno: u64) -> Vec<u8> {
    format!("value {seqno}").into_bytes()
}

/// Returns the children that hold `history` (sequence numbers from 1), and the visible pairs at
/// `snapshot`. For each key in `zeroed`, the oldest entry has sequence number 0, as compactions
/// leave it, if it is a visible value.
fn build(
    history: &[Write],
    snapshot: u64,
    zeroed: &[Vec<u8>],
    fault: &Fault,
) -> (Vec<VecIter>, BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut lists = vec![Vec::new(); CHILDREN];
    let mut model = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for (write, seqno) in history.iter().zip(1_u64..) {
        let oldest = seen.insert(&write.key);
        let put = write.kind == ValueKind::Put;
        let zero = oldest && put && seqno <= snapshot && zeroed.contains(&write.key);
        let value = if write.kind.has_value() { value_of(seqno) } else { Vec::new() };
        let stored = if zero { 0 } else { seqno };
        let children = if write.copied { 2 } else { 1 };
        for child in (write.child..).take(children) {
            let list = &mut lists[child % CHILDREN];
            list.push((internal(&write.key, stored, write.kind), value.clone()));
        }
        if seqno <= snapshot {
            let before: Option<Vec<u8>> = model.remove(&write.key);
            let after = match write.kind {
                ValueKind::Put => value,
                ValueKind::Merge => [before.unwrap_or_default(), value].concat(),
                _ => continue,
            };
            model.insert(write.key.clone(), after);
        }
    }
    let children = lists.into_iter().map(|mut list| {
        list.sort_by(|a, b| key::compare(&Comparator::BYTEWISE, &a.0, &b.0));
        VecIter::with_fault(Arc::new(list), fault.clone())
    });
    (children.collect(), model)
}

/// Returns where `step` leads from `at` among the visible keys.
fn model_move(keys: &[&Vec<u8>], at: Option<usize>, step: &Move) -> Option<usize> {
    let position = match step {
        Move::First => Some(0),
        Move::Last => keys.len().checked_sub(1),
        Move::Seek(target) => Some(keys.partition_point(|key| *key < target)),
        Move::SeekForPrev(target) => keys.partition_point(|key| *key <= target).checked_sub(1),
        Move::Next => at.map(|at| at + 1),
        Move::Prev => at.and_then(|at| at.checked_sub(1)),
    };
    position.filter(|&position| position < keys.len())
}

fn apply<I: InternalIterator>(iter: &mut DbIter<I>, step: &Move) {
    match step {
        Move::First => iter.seek_to_first(),
        Move::Last => iter.seek_to_last(),
        Move::Seek(target) => iter.seek(target),
        Move::SeekForPrev(target) => iter.seek_for_prev(target),
        Move::Next => iter.next(),
        Move::Prev => iter.prev(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// At any snapshot, within any bounds and after any moves, the iterator shows the same as a
    /// sorted map of the visible pairs. If a read fails, the move that needed it reports the error,
    /// and the iterator shows nothing until the next seek.
    #[test]
    fn a_reader_sees_the_visible_pairs(
        history in any_history(),
        snapshot_at in 0.0..1.2,
        bounds in any_bounds(),
        zeroed in vec(any_key(), 0..8),
        moves in vec(any_move(), 1..50),
        fail_after in proptest::option::weighted(0.4, 0_u32..80),
    ) {
        let snapshot = (history.len() as f64 * snapshot_at) as u64;
        let fault = Fault::default();
        let (children, model) = build(&history, snapshot, &zeroed, &fault);
        let keys: Vec<&Vec<u8>> = model
            .keys()
            .filter(|key| !bounds.is_below(key) && !bounds.is_above(key))
            .collect();
        if let Some(moves) = fail_after {
            fault.after(moves);
        }
        let children = MergingIter::new(children, &Comparator::BYTEWISE);
        let mut iter = DbIter::new(children, SeqNo(snapshot), bounds, Some(appending()));
        let (mut at, mut failed) = (None, false);
        for (index, step) in moves.iter().enumerate() {
            let armed = fault.is_armed();
            at = model_move(&keys, at, step);
            apply(&mut iter, step);
            let seeks = !matches!(step, Move::Next | Move::Prev);
            failed = (armed && !fault.is_armed()) || (failed && !seeks);
            if failed {
                at = None;
            }
            prop_assert_eq!(iter.status().is_err(), failed, "move {} {:?}", index, step);
            prop_assert_eq!(iter.valid(), at.is_some(), "move {} {:?}", index, step);
            if let Some(at) = at {
                prop_assert_eq!(iter.key(), keys[at], "move {} {:?}", index, step);
                prop_assert_eq!(iter.value(), &model[keys[at]], "move {} {:?}", index, step);
            } else {
                prop_assert_eq!((iter.key(), iter.value()), (&[][..], &[][..]));
            }
        }
    }
}

/// Counts the moves of its child.
struct Counting(VecIter, u64);

impl InternalIterator for Counting {
    fn valid(&self) -> bool {
        self.0.valid()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.1 += 1;
        self.0.seek_to_first()
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.1 += 1;
        self.0.seek_to_last()
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.1 += 1;
        self.0.seek(target)
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.1 += 1;
        self.0.seek_for_prev(target)
    }
    fn next(&mut self) -> Result<()> {
        self.1 += 1;
        self.0.next()
    }
    fn prev(&mut self) -> Result<()> {
        self.1 += 1;
        self.0.prev()
    }
    fn key(&self) -> &[u8] {
        self.0.key()
    }
    fn value(&self) -> &[u8] {
        self.0.value()
    }
}

/// Keys a, b and c, b with seqnos 2 to 1001.
fn many_versions(snapshot: u64) -> DbIter<Counting> {
    let mut list = vec![(internal(b"a", 1, ValueKind::Put), value_of(1))];
    list.extend((2..=1001).rev().map(|s| (internal(b"b", s, ValueKind::Put), value_of(s))));
    list.push((internal(b"c", 1, ValueKind::Put), value_of(1)));
    let iter = Counting(VecIter::new(Arc::new(list)), 0);
    DbIter::new(iter, SeqNo(snapshot), IterBounds::all(), Some(appending()))
}

#[test]
fn many_versions_of_a_key_cost_a_seek_not_a_walk() {
    for snapshot in [1, 2, 500, 1001] {
        let visible: &[&[u8]] = if snapshot == 1 { &[b"a", b"c"] } else { &[b"a", b"b", b"c"] };
        let mut iter = many_versions(snapshot);
        let mut seen = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            seen.push(iter.key().to_vec());
            iter.next();
        }
        assert_eq!(seen, visible, "snapshot {snapshot}");
        seen.clear();
        iter.seek_to_last();
        while iter.valid() {
            seen.insert(0, iter.key().to_vec());
            if iter.key() == b"b" {
                assert_eq!(iter.value(), value_of(snapshot));
            }
            iter.prev();
        }
        assert_eq!(seen, visible, "snapshot {snapshot}, backwards");
        assert!(iter.stats().reseeks >= 2, "snapshot {snapshot}");
        assert!(iter.iter.1 < 100, "{} moves at snapshot {snapshot}", iter.iter.1);
    }
}

/// An unreadable entry between two readable keys is an error in both directions, not a gap.
fn check_unreadable(kind: ValueKind, merging: Option<&Merging>) {
    let list = vec![
        (internal(b"a", 1, ValueKind::Put), value_of(1)),
        (internal(b"b", 2, kind), value_of(2)),
        (internal(b"c", 3, ValueKind::Put), value_of(3)),
    ];
    let new = || {
        let list = VecIter::new(Arc::new(list.clone()));
        DbIter::new(list, SeqNo(9), IterBounds::all(), merging.cloned())
    };
    let mut iter = new();
    iter.seek_to_first();
    assert_eq!(iter.key(), b"a");
    iter.next();
    assert!(!iter.valid() && iter.status().is_err());
    let mut iter = new();
    iter.seek_to_last();
    assert_eq!(iter.key(), b"c");
    iter.prev();
    assert!(!iter.valid() && iter.status().is_err());
    iter.seek(b"c");
    assert!(iter.valid() && iter.status().is_ok());
}

#[test]
fn what_cannot_be_read_is_an_error_not_a_gap() {
    check_unreadable(ValueKind::RangeDelete, Some(&appending()));
    check_unreadable(ValueKind::Merge, None);
    let refuses = Merging::associative("never", |_, _, _| None);
    check_unreadable(ValueKind::Merge, Some(&refuses));
}
