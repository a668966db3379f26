//! A merge equals the sorted union of its children, with any mixture of directions.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use sateen_control::ValueKind;

use super::*;
use crate::iter::vec_iter::{Fault, VecIter, internal};

/// One move of a cursor over internal keys.
#[derive(Clone, Debug)]
enum Move {
    First,
    Last,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    Next,
    Prev,
}

fn any_internal() -> impl Strategy<Value = Vec<u8>> {
    // Short alphabets and lengths around eight make equal prefixes and zero padding frequent.
    (vec(prop_oneof![Just(0_u8), Just(1), Just(0xff)], 0..10), 0_u64..4, any::<bool>()).prop_map(
        |(key, seqno, put)| {
            internal(&key, seqno, if put { ValueKind::Put } else { ValueKind::Delete })
        },
    )
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => any_internal().prop_map(Move::Seek),
        2 => any_internal().prop_map(Move::SeekForPrev),
        8 => Just(Move::Next),
        8 => Just(Move::Prev),
    ]
}

/// Returns all entries of `children`, merged, with the index of their child as the value.
fn merged(children: &[Vec<Vec<u8>>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (index, child) in children.iter().enumerate() {
        all.extend(child.iter().map(|key| (key.clone(), vec![index as u8])));
    }
    all.sort_by(|a, b| key::compare(&Comparator::BYTEWISE, &a.0, &b.0).then(a.1.cmp(&b.1)));
    all
}

fn children_of(lists: &[Vec<Vec<u8>>], fault: &Fault) -> Vec<VecIter> {
    let child = |(index, list): (usize, &Vec<Vec<u8>>)| {
        let entries = list.iter().map(|key| (key.clone(), vec![index as u8])).collect();
        VecIter::with_fault(Arc::new(entries), fault.clone())
    };
    lists.iter().enumerate().map(child).collect()
}

fn sorted(mut list: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    list.sort_by(|a, b| key::compare(&Comparator::BYTEWISE, a, b));
    list.dedup();
    list
}

/// Returns where `step` leads from `at` in `all`.
fn model_move(all: &[(Vec<u8>, Vec<u8>)], at: Option<usize>, step: &Move) -> Option<usize> {
    let first_from = |target: &[u8]| {
        all.partition_point(|entry| key::compare(&Comparator::BYTEWISE, &entry.0, target).is_lt())
    };
    let end_of = |target: &[u8]| {
        all.partition_point(|e| key::compare(&Comparator::BYTEWISE, &e.0, target).is_le())
    };
    let position = match step {
        Move::First => Some(0),
        Move::Last => all.len().checked_sub(1),
        Move::Seek(target) => Some(first_from(target)),
        Move::SeekForPrev(target) => end_of(target).checked_sub(1),
        Move::Next => at.map(|at| at + 1),
        Move::Prev => at.and_then(|at| at.checked_sub(1)),
    };
    position.filter(|&position| position < all.len())
}

fn apply(iter: &mut MergingIter<VecIter>, step: &Move) -> Result<()> {
    match step {
        Move::First => iter.seek_to_first(),
        Move::Last => iter.seek_to_last(),
        Move::Seek(target) => iter.seek(target),
        Move::SeekForPrev(target) => iter.seek_for_prev(target),
        Move::Next if iter.valid() => iter.next(),
        Move::Prev if iter.valid() => iter.prev(),
        Move::Next | Move::Prev => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// After any moves, the merge stands where a cursor over the sorted union stands. Equal keys of
    /// several children come in the order of the children, in both directions.
    #[test]
    fn the_merge_is_the_sorted_union(
        lists in vec(vec(any_internal(), 0..12).prop_map(sorted), 0..7),
        moves in vec(any_move(), 1..60),
    ) {
        let all = merged(&lists);
        let children = children_of(&lists, &Fault::default());
        let mut iter = MergingIter::new(children, &Comparator::BYTEWISE);
        prop_assert!(!iter.valid());
        let mut at = None;
        for (index, step) in moves.iter().enumerate() {
            at = model_move(&all, at, step);
            apply(&mut iter, step).unwrap();
            prop_assert_eq!(iter.valid(), at.is_some(), "move {} {:?}", index, step);
            if let Some(at) = at {
                prop_assert_eq!(iter.key(), &all[at].0, "move {} {:?}", index, step);
                prop_assert_eq!(iter.value(), &all[at].1, "move {} {:?}", index, step);
            }
        }
    }

    /// A move during which a child fails returns the error and makes the merge invalid. The next
    /// seek works again.
    #[test]
    fn a_failing_child_is_reported_at_once(
        lists in vec(vec(any_internal(), 0..12).prop_map(sorted), 1..5),
        moves in vec(any_move(), 1..40),
        fail_after in 0_u32..60,
    ) {
        let all = merged(&lists);
        let fault = Fault::default();
        fault.after(fail_after);
        let mut iter = MergingIter::new(children_of(&lists, &fault), &Comparator::BYTEWISE);
        let mut at = None;
        for step in &moves {
            let armed = fault.is_armed();
            at = model_move(&all, at, step);
            let result = apply(&mut iter, step);
            prop_assert_eq!(result.is_err(), armed && !fault.is_armed());
            if result.is_err() {
                at = None;
            }
            prop_assert_eq!(iter.valid(), at.is_some());
            if let Some(at) = at {
                prop_assert_eq!(iter.key(), &all[at].0);
            }
        }
    }
}
