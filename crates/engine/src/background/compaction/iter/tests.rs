//! A compaction keeps exactly what some reader can still see: tests against a model, and by hand
//! for special cases.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use sateen_control::UserKey;
use sateen_control::version::RangeTombstone;
use sateen_store::iter::vec_iter::{Fault, VecIter, internal};

use super::*;
use crate::operators::merge::MergeOperator;
use crate::operators::merge::appending;

type Entry = (Vec<u8>, Vec<u8>);

type Write = (Vec<u8>, ValueKind);

/// Returns the range tombstones of a history. The end of each depends on its begin.
fn ranges_of(history: &[Write]) -> Arc<RangeTombstones> {
    let ranges =
        history.iter().zip(1_u64..).filter(|((_, kind), _)| *kind == ValueKind::RangeDelete);
    let tombstone = |((key, _), seqno): (&Write, u64)| {
        let mut end = key.clone();
        end.extend([1, 1]);
        let (begin, end) = (UserKey::bytewise(key.as_slice()), UserKey::bytewise(end));
        RangeTombstone { begin, end, seqno: SeqNo(seqno) }
    };
    Arc::new(RangeTombstones::new(ranges.map(tombstone).collect()))
}

/// Generates writes in commit order, with sequence numbers from 1.
fn any_history() -> impl Strategy<Value = Vec<Write>> {
    let kind = prop_oneof![
        5 => Just(ValueKind::Put),
        3 => Just(ValueKind::Delete),
        1 => Just(ValueKind::SingleDelete),
        4 => Just(ValueKind::Merge),
        1 => Just(ValueKind::RangeDelete),
    ];
    vec((vec(0_u8..3, 0..3), kind), 0..60)
}

/// Appends, but only to a value, or if it is certain that there is none.
struct Late;

impl MergeOperator for Late {
    fn name(&self) -> &str {
        "append late"
    }
    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some([existing.unwrap_or_default(), &operands.concat()].concat())
    }
}

/// Generates no operator, one that merges everything, one that needs a value, and one that refuses.
fn any_operator() -> impl Strategy<Value = Option<Merging>> {
    prop_oneof![
        1 => Just(None),
        4 => Just(Some(appending())),
        2 => Just(Some(Merging::new(Late))),
        1 => Just(Some(Merging::associative("never", |_, _, _| None))),
    ]
}

fn value_of(seqno: u64) -> Vec<u8> {
    format!("value {seqno}").into_bytes()
}

fn entries_of(history: &[Write]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for ((key, kind), seqno) in history.iter().zip(1_u64..) {
        if *kind == ValueKind::RangeDelete {
            continue;
        }
        let value = if kind.has_value() { value_of(seqno) } else { vec![] };
        entries.push((internal(key, seqno, *kind), value));
    }
    entries.sort_by(|a, b| key::compare(&Comparator::BYTEWISE, &a.0, &b.0));
    entries
}

/// Returns what a reader of `user_key` at `snapshot` finds in `entries` above `deeper`.
fn read(
    entries: &[Entry],
    ranges: &RangeTombstones,
    user_key: &[u8],
    snapshot: u64,
    deeper: Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let deleted = ranges.over(user_key, SeqNo(snapshot)).unwrap_or_default();
    let mut value = deeper.filter(|_| deleted == SeqNo(0));
    let visible = |(k, _): &&Entry| key::user_key(k) == user_key && key::seqno(k).0 <= snapshot;
    for (internal_key, stored) in entries.iter().rev().filter(visible) {
        if key::seqno(internal_key) < deleted {
            continue;
        }
        value = match key::kind(internal_key).unwrap() {
            ValueKind::Put => Some(stored.clone()),
            ValueKind::Merge => Some([value.unwrap_or_default(), stored.clone()].concat()),
            _ => None,
        };
    }
    value
}

struct Outcome {
    entries: Vec<Entry>,
    stats: CompactionStats,
    asked: Vec<Vec<u8>>,
}

/// Runs the iterator to its end with pulls of `budget` bytes.
fn compact(
    input: &[Entry],
    ranges: &Arc<RangeTombstones>,
    snapshots: &[u64],
    below: &BTreeSet<Vec<u8>>,
    budget: u64,
    merging: Option<Merging>,
) -> Result<Outcome> {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let writer = Rc::clone(&asked);
    let bottommost = move |user_key: &[u8]| {
        writer.borrow_mut().push(user_key.to_vec());
        !below.contains(user_key)
    };
    let largest = input.iter().map(|(k, v)| k.len() + v.len()).max().unwrap_or(0) as u64;
    let iter = VecIter::new(Arc::new(input.to_vec()));
    let snapshots = snapshots.iter().copied().map(SeqNo).collect();
    let mut iter = CompactionIter::new(iter, IterBounds::all(), snapshots, bottommost)
        .with_merging(merging)
        .with_ranges(ranges);
    iter.start()?;
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let before = iter.stats().bytes_in;
        let pulled = iter.pull(budget)?;
        assert!(
            iter.stats().bytes_in - before <= budget.saturating_add(largest),
            "one pull is bounded"
        );
        match pulled {
            Pulled::Entry => {
                let new_key = entries
                    .last()
                    .is_none_or(|(last, _)| key::user_key(last) != key::user_key(iter.key()));
                assert_eq!(iter.starts_user_key(), new_key);
                entries.push((iter.key().to_vec(), iter.value().to_vec()));
            }
            Pulled::Paused => assert!(iter.stats().bytes_in > before, "a pause follows progress"),
            Pulled::End => break,
        }
    }
    assert_eq!(iter.pull(budget)?, Pulled::End);
    let stats = *iter.stats();
    drop(iter);
    Ok(Outcome { entries, stats, asked: asked.take() })
}

fn check_stats(input: &[Entry], outcome: &Outcome) {
    let bytes = |entries: &[Entry]| entries.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum();
    let stats = &outcome.stats;
    assert_eq!(stats.entries_in(), input.len() as u64);
    assert_eq!(stats.entries_out(), outcome.entries.len() as u64);
    assert_eq!(stats.entries_dropped(), stats.entries_in() - stats.entries_out());
    assert_eq!(stats.puts_in, stats.puts_out + stats.puts_dropped);
    assert_eq!((stats.bytes_in, stats.bytes_out), (bytes(input), bytes(&outcome.entries)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Every snapshot of the list, and every one at or above the visible sequence number, reads the
    /// same from the output and what lies below it as from the input and what lies below it.
    /// Nothing is kept that no snapshot needs. The size of the slices changes nothing.
    #[test]
    fn every_snapshot_reads_the_same(
        history in any_history(),
        snapshots in vec(0.0..1.0, 0..4),
        visible in 0.5..1.1,
        below in proptest::collection::btree_set(vec(0_u8..3, 0..3), 0..6),
        budget in prop_oneof![Just(0_u64), 1_u64..100, Just(u64::MAX)],
        operator in any_operator(),
    ) {
        let last = history.len() as f64;
        let visible = ((last * visible) as u64).min(history.len() as u64);
        let mut snapshots: Vec<u64> = snapshots.iter().map(|at| (last * at) as u64).collect();
        snapshots.retain(|&snapshot| snapshot < visible);
        snapshots.push(visible);
        snapshots.sort_unstable();
        snapshots.dedup();

        let input = entries_of(&history);
        let ranges = ranges_of(&history);
        let compacted = compact(&input, &ranges, &snapshots, &below, budget, operator.clone());
        let outcome = compacted.unwrap();
        let output = &outcome.entries;
        check_stats(&input, &outcome);
        let order = |a: &[u8], b: &[u8]| key::compare(&Comparator::BYTEWISE, a, b);
        prop_assert!(output.is_sorted_by(|a, b| order(&a.0, &b.0).is_lt()));
        prop_assert!(outcome.asked.is_sorted_by(|a, b| a < b), "asked once a key, ascending");

        let keys: BTreeSet<&[u8]> = input.iter().map(|(k, _)| key::user_key(k)).collect();
        let readers = snapshots.iter().copied().chain(visible..=history.len() as u64);
        for snapshot in readers {
            for user_key in &keys {
                let deeper = below.contains(*user_key).then(|| b"below".to_vec());
                let before = read(&input, &ranges, user_key, snapshot, deeper.clone());
                let after = read(output, &ranges, user_key, snapshot, deeper);
                prop_assert_eq!(before, after, "key {:?} at {}", user_key, snapshot);
            }
        }
        if ranges.is_empty() && operator.is_some_and(|operator| operator.name() == "append") {
            check_nothing_superfluous(output, &snapshots, &below);
        }
    }

    /// Without snapshots and with nothing below, exactly the live values remain, with sequence
    /// number 0.
    #[test]
    fn without_snapshots_only_live_values_remain(history in any_history()) {
        let input = entries_of(&history);
        let now = history.len() as u64;
        let merging = Some(appending());
        let ranges = ranges_of(&history);
        let none = BTreeSet::new();
        let outcome = compact(&input, &ranges, &[now], &none, u64::MAX, merging).unwrap();
        let keys: BTreeSet<&[u8]> = input.iter().map(|(k, _)| key::user_key(k)).collect();
        let expected: Vec<Entry> = keys
            .into_iter()
            .filter_map(|k| {
                let value = read(&input, &ranges, k, now, None)?;
                let newest = input.iter().find(|(other, _)| key::user_key(other) == k);
                let under = ranges.over(k, SeqNo(now)).and(newest);
                let seqno = under.map_or(0, |(newest, _)| key::seqno(newest).0);
                Some((internal(k, seqno, ValueKind::Put), value))
            })
            .collect();
        prop_assert_eq!(outcome.entries, expected);
    }

    /// A failed read is returned by the pull that met it, and by every later one. It never looks
    /// like the end of the input.
    #[test]
    fn an_error_is_final(history in any_history(), fail_after in 0_u32..70) {
        let input = entries_of(&history);
        let fault = Fault::default();
        fault.after(fail_after);
        let iter = VecIter::with_fault(Arc::new(input), fault.clone());
        let snapshots = vec![SeqNo(history.len() as u64)];
        let mut iter = CompactionIter::new(iter, IterBounds::all(), snapshots, |_: &[u8]| false);
        let mut result = iter.start().map(|()| Pulled::Paused);
        while matches!(result, Ok(Pulled::Entry | Pulled::Paused)) {
            result = iter.pull(30);
        }
        prop_assert_eq!(result.is_err(), !fault.is_armed());
        if result.is_err() {
            prop_assert!(iter.pull(u64::MAX).is_err());
        }
    }
}

/// Each stratum has at most one entry. If nothing lies below, every deletion hides an older value,
/// and values that every reader sees have sequence number 0.
fn check_nothing_superfluous(output: &[Entry], snapshots: &[u64], below: &BTreeSet<Vec<u8>>) {
    let visible = snapshots[snapshots.len() - 1];
    let stratum = |seqno: u64| snapshots.iter().filter(|&&snapshot| snapshot < seqno).count();
    for (index, (internal_key, _)) in output.iter().enumerate() {
        let (user_key, seqno) = (key::user_key(internal_key), key::seqno(internal_key).0);
        let kind = key::kind(internal_key);
        let older = output.get(index + 1).filter(|(k, _)| key::user_key(k) == user_key);
        if seqno > visible {
            continue;
        }
        if let Some((older, _)) = older {
            assert_ne!(stratum(seqno), stratum(key::seqno(older).0), "two of one stratum");
        }
        if below.contains(user_key) {
            assert_ne!(seqno, 0, "a seqno may become 0 only where nothing lies below");
        } else if kind == Some(ValueKind::Merge) {
            // It belongs to an entry of an older stratum, which may be a deletion that was dropped.
            assert!(seqno > snapshots[0], "an operand on nothing is a value");
        } else if kind == Some(ValueKind::Put) {
            assert!(seqno == 0 || seqno > snapshots[0], "a value that all see has seqno 0");
        } else {
            let hides = older.is_some_and(|(k, _)| key::kind(k).unwrap().has_value());
            assert!(hides, "a deletion that hides nothing is dropped");
        }
    }
}

#[test]
fn bounds_restrict_the_input() {
    let input: Vec<Entry> =
        (0_u8..9).map(|n| (internal(&[n], 1 + u64::from(n), ValueKind::Put), vec![n])).collect();
    let bounds = IterBounds::new(Some(UserKey::bytewise([3])), Some(UserKey::bytewise([6])));
    let iter = VecIter::new(Arc::new(input));
    let mut iter = CompactionIter::new(iter, bounds, vec![SeqNo(9)], |_: &[u8]| false);
    iter.start().unwrap();
    let mut seen = Vec::new();
    while iter.pull(u64::MAX).unwrap() == Pulled::Entry {
        seen.extend_from_slice(iter.value());
    }
    assert_eq!(seen, [3, 4, 5]);
}

#[test]
fn disorder_and_foreign_kinds_are_refused() {
    let foreign = [(internal(b"a", 1, ValueKind::RangeDelete), vec![])];
    let error = compact(&foreign, &Arc::default(), &[9], &BTreeSet::new(), u64::MAX, None);
    assert!(error.is_err_and(|error| error.to_string().contains("range tombstone")));
    let list = Arc::new(vec![(internal(b"b", 1, ValueKind::Put), vec![])]);
    let mut iter =
        CompactionIter::new(VecIter::new(list), IterBounds::all(), vec![SeqNo(9)], |_: &[u8]| {
            false
        });
    iter.start().unwrap();
    assert_eq!(iter.pull(0).unwrap(), Pulled::Entry);
    // A repeated entry is a copy, and is dropped.
    iter.start().unwrap();
    iter.resume = Resume::Examine;
    assert_eq!(iter.pull(0).unwrap(), Pulled::Paused);
    assert_eq!(iter.stats().entries_dropped(), 1);
    // An older key, or a newer version of the key, is out of order.
    for (key, seqno) in [(b"a", 1), (b"b", 2)] {
        let list = Arc::new(vec![(internal(key, seqno, ValueKind::Put), vec![])]);
        iter.input = VecIter::new(list);
        iter.input.seek_to_first().unwrap();
        iter.resume = Resume::Examine;
        let pulled = iter.pull(0);
        assert!(pulled.is_err_and(|error| error.is_corruption()), "{key:?} {seqno}");
        iter.failed = None;
    }
}
