//! Readers see exactly what the filter decided.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use sateen_control::{Comparator, ValueKind};
use sateen_store::base::key;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::vec_iter::{VecIter, internal};

use super::*;
use crate::background::compaction::iter::{CompactionIter, Pulled};
use crate::operators::merge::appending;

type Entry = (Vec<u8>, Vec<u8>);

fn any_history() -> impl Strategy<Value = Vec<(Vec<u8>, ValueKind)>> {
    let kind = prop_oneof![
        6 => Just(ValueKind::Put),
        2 => Just(ValueKind::Delete),
        2 => Just(ValueKind::Merge),
    ];
    vec((vec(0_u8..3, 0..3), kind), 0..40)
}

fn entries_of(history: &[(Vec<u8>, ValueKind)]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for ((key, kind), seqno) in history.iter().zip(1_u64..) {
        let value = if kind.has_value() { format!("{seqno}").into_bytes() } else { vec![] };
        entries.push((internal(key, seqno, *kind), value));
    }
    entries.sort_by(|a, b| key::compare(&Comparator::BYTEWISE, &a.0, &b.0));
    entries
}

/// Returns what a reader of `user_key` at `snapshot` finds in `entries` above `deeper`.
fn read(
    entries: &[Entry],
    user_key: &[u8],
    snapshot: u64,
    deeper: Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut value = deeper;
    let visible = |(k, _): &&Entry| key::user_key(k) == user_key && key::seqno(k).0 <= snapshot;
    for (internal_key, stored) in entries.iter().rev().filter(visible) {
        value = match key::kind(internal_key).unwrap() {
            ValueKind::Put => Some(stored.clone()),
            ValueKind::Merge => Some([value.unwrap_or_default(), stored.clone()].concat()),
            _ => None,
        };
    }
    value
}

/// Decides by the last digit: a third of the values is removed, a third is changed.
fn decide(value: &[u8]) -> Decision {
    match value.last().map(|digit| digit % 3) {
        Some(0) => Decision::Remove,
        Some(1) => Decision::Change([b"changed ", value].concat()),
        _ => Decision::Keep,
    }
}

struct ByDigit {
    operands: bool,
    asked: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
}

impl CompactionFilter for ByDigit {
    fn filter(&mut self, level: u8, key: &[u8], value: &[u8]) -> Decision {
        assert_eq!(level, 3);
        self.asked.lock().unwrap().push(key.to_vec());
        decide(value)
    }
    fn filter_operand(&mut self, _level: u8, _key: &[u8], operand: &[u8]) -> Decision {
        if self.operands { decide(operand) } else { Decision::Keep }
    }
}

fn compact(
    input: &[Entry],
    snapshots: &[u64],
    newest_snapshot: Option<u64>,
    below: &BTreeSet<Vec<u8>>,
    filter: ByDigit,
) -> Vec<Entry> {
    let iter = VecIter::new(Arc::new(input.to_vec()));
    let bottommost = |user_key: &[u8]| !below.contains(user_key);
    let list = snapshots.iter().copied().map(SeqNo).collect();
    let mut iter = CompactionIter::new(iter, IterBounds::all(), list, bottommost)
        .with_merging(Some(appending()));
    iter.filter_by(Some(ActiveFilter {
        filter: Box::new(filter),
        name: "by digit".into(),
        level: 3,
        newest_snapshot: newest_snapshot.map(SeqNo),
    }));
    iter.start().unwrap();
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        match iter.pull(50).unwrap() {
            Pulled::Entry => entries.push((iter.key().to_vec(), iter.value().to_vec())),
            Pulled::Paused => {}
            Pulled::End => break,
        }
    }
    let stats = iter.stats();
    assert_eq!(stats.entries_in(), input.len() as u64);
    assert_eq!(stats.entries_out(), entries.len() as u64);
    assert_eq!(stats.entries_dropped(), stats.entries_in() - stats.entries_out());
    entries
}

/// Returns the input with the filter's decisions applied.
fn filtered(input: &[Entry], from: u64, visible: u64, operands: bool) -> Vec<Entry> {
    let mut expected = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    for (internal_key, value) in input {
        let (user_key, seqno) = (key::user_key(internal_key), key::seqno(internal_key).0);
        let newest = last.as_deref() != Some(user_key);
        last = Some(user_key.to_vec());
        let kind = key::kind(internal_key).unwrap();
        let is_asked = match kind {
            ValueKind::Put => newest,
            ValueKind::Merge => operands,
            _ => false,
        };
        let decision = if is_asked && seqno > from && seqno <= visible {
            decide(value)
        } else {
            Decision::Keep
        };
        match decision {
            Decision::Keep => expected.push((internal_key.clone(), value.clone())),
            Decision::Change(value) => expected.push((internal_key.clone(), value)),
            Decision::Remove if kind == ValueKind::Merge => {}
            Decision::Remove => {
                expected.push((internal(user_key, seqno, ValueKind::Delete), vec![]));
            }
        }
    }
    expected
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// Readers at snapshots see what they saw before. All others see the newest values as the
    /// filter decided about them, and nothing older than a removed one.
    #[test]
    fn readers_see_what_was_decided(
        history in any_history(),
        held in vec(0.0..1.0, 0..3),
        visible in 0.5..1.1,
        below in btree_set(vec(0_u8..3, 0..3), 0..6),
        operands in any::<bool>(),
    ) {
        let last = history.len() as f64;
        let visible = ((last * visible) as u64).min(history.len() as u64);
        let mut snapshots: Vec<u64> = held.iter().map(|at| (last * at) as u64).collect();
        snapshots.retain(|snapshot| *snapshot <= visible);
        snapshots.sort_unstable();
        let newest = snapshots.last().copied();
        snapshots.push(visible);
        snapshots.dedup();

        let input = entries_of(&history);
        let asked = Arc::default();
        let filter = ByDigit { operands, asked: Arc::clone(&asked) };
        let output = compact(&input, &snapshots, newest, &below, filter);
        let order = |a: &[u8], b: &[u8]| key::compare(&Comparator::BYTEWISE, a, b);
        prop_assert!(output.is_sorted_by(|a, b| order(&a.0, &b.0).is_lt()));
        prop_assert!(asked.lock().unwrap().is_sorted_by(|a, b| a < b), "once a key, ascending");

        let decided = filtered(&input, newest.unwrap_or(0), visible, operands);
        let keys: BTreeSet<&[u8]> = input.iter().map(|(k, _)| key::user_key(k)).collect();
        for user_key in keys {
            let deeper = || below.contains(user_key).then(|| b"below".to_vec());
            for snapshot in &snapshots[..snapshots.len() - 1] {
                let before = read(&input, user_key, *snapshot, deeper());
                prop_assert_eq!(before, read(&output, user_key, *snapshot, deeper()));
            }
            for reader in visible..=history.len() as u64 {
                let expected = read(&decided, user_key, reader, deeper());
                prop_assert_eq!(expected, read(&output, user_key, reader, deeper()));
            }
        }
    }
}

#[test]
fn what_is_removed_leaves_nothing_where_nothing_is_below() {
    let entries = |below: bool| {
        let key = b"key".to_vec();
        let input = [(internal(&key, 5, ValueKind::Put), b"0".to_vec())];
        let below = below.then(|| key.clone()).into_iter().collect();
        let filter = ByDigit { operands: false, asked: Arc::default() };
        compact(&input, &[9], None, &below, filter)
    };
    assert_eq!(entries(false), []);
    assert_eq!(entries(true), [(internal(b"key", 5, ValueKind::Delete), vec![])]);
}

#[test]
fn a_panic_is_an_error_of_its_name() {
    let filtering = Filtering::by("fragile", |_, _, _| panic!("of {}", "glass"));
    let context = CompactionFilterContext {
        is_full_compaction: true,
        is_manual_compaction: false,
        column_family: ColumnFamilyId(0),
        output_level: 1,
    };
    let to_be = FilterToBe { filtering, context, level: 0, newest_snapshot: None };
    let mut filter = to_be.create().unwrap().unwrap();
    let error = filter.value(SeqNo(1), b"key", b"value").unwrap_err();
    assert_eq!(error.to_string(), "the compaction filter fragile failed: it panicked: of glass");
}
