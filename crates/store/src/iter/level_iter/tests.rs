//! A level reads like one sorted sequence, and opens no table that it does not need.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use sateen_control::version::Placement;
use sateen_control::{Comparator, FileId, SeqNo, TableId, UserKey, ValueKind};

use super::*;
use crate::iter::vec_iter::{Entries, Fault, VecIter, internal};

/// A run whose tables are lists of entries. A table's id is its index.
#[derive(Clone)]
struct TestRun(Arc<Vec<(Arc<TableMeta>, Entries)>>);

impl TestRun {
    /// Makes tables with the given user keys, each with the given versions.
    fn new(tables: &[Vec<(Vec<u8>, u64)>]) -> TestRun {
        let table = |(index, keys): (usize, &Vec<(Vec<u8>, u64)>)| {
            let mut entries = Vec::new();
            for (key, versions) in keys {
                for seqno in (1..=*versions).rev() {
                    entries
                        .push((internal(key, seqno, ValueKind::Put), seqno.to_le_bytes().into()));
                }
            }
            let meta = TableMeta {
                id: TableId(index as u64),
                placement: Placement::WholeFile(FileId(index as u64)),
                size_bytes: 1,
                smallest: UserKey::bytewise(keys[0].0.as_slice()),
                largest: UserKey::bytewise(keys[keys.len() - 1].0.as_slice()),
                seqno_min: SeqNo(1),
                seqno_max: SeqNo(9),
                entries: entries.len() as u64,
                tombstones: 0,
                merges: 0,
                ranges_applied: SeqNo(0),
                global_seqno: SeqNo(0),
                raw_bytes: 1,
                tail_bytes: 0,
                sketch: None,
                values: Default::default(),
            };
            (Arc::new(meta), Arc::new(entries))
        };
        TestRun(Arc::new(tables.iter().enumerate().map(table).collect()))
    }
}

impl SortedRun for TestRun {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        self.0.get(index).map(|(meta, _)| meta)
    }

    fn lower_bound(&self, user_key: &[u8]) -> usize {
        self.0.partition_point(|(meta, _)| meta.largest < *user_key)
    }
}

/// Returns an opener for tables of a [`TestRun`] that records which tables it opens.
fn opener(
    run: &TestRun,
    opened: &Rc<RefCell<Vec<u64>>>,
    fault: &Fault,
) -> impl Fn(&Arc<TableMeta>) -> Result<VecIter> + use<> {
    let (run, opened, fault) = (run.clone(), Rc::clone(opened), fault.clone());
    move |meta| {
        fault.check()?;
        opened.borrow_mut().push(meta.id.0);
        let entries = &run.0[usize::try_from(meta.id.0).unwrap()].1;
        Ok(VecIter::with_fault(Arc::clone(entries), fault.clone()))
    }
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

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    vec(0_u8..3, 0..4)
}

fn any_move() -> impl Strategy<Value = Move> {
    let target = || (any_key(), 0_u64..5).prop_map(|(k, s)| internal(&k, s, ValueKind::Put));
    prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => target().prop_map(Move::Seek),
        2 => target().prop_map(Move::SeekForPrev),
        6 => Just(Move::Next),
        6 => Just(Move::Prev),
    ]
}

/// Sorted keys with their numbers of versions, cut into tables.
fn any_tables() -> impl Strategy<Value = Vec<Vec<(Vec<u8>, u64)>>> {
    (proptest::collection::btree_map(any_key(), 1_u64..4, 0..25), 1_usize..5).prop_map(
        |(keys, per_table)| {
            let keys: Vec<_> = keys.into_iter().collect();
            keys.chunks(per_table).map(<[_]>::to_vec).collect()
        },
    )
}

fn any_bounds() -> impl Strategy<Value = IterBounds> {
    (proptest::option::of(any_key()), proptest::option::of(any_key())).prop_map(|(lower, upper)| {
        IterBounds::new(lower.map(UserKey::bytewise), upper.map(UserKey::bytewise))
    })
}

fn apply<O: OpenTable>(iter: &mut LevelIter<TestRun, O>, step: &Move) -> Result<()> {
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

fn model_move(all: &[(Vec<u8>, Vec<u8>)], at: Option<usize>, step: &Move) -> Option<usize> {
    let position = match step {
        Move::First => Some(0),
        Move::Last => all.len().checked_sub(1),
        Move::Seek(t) => {
            Some(all.partition_point(|e| key::compare(&Comparator::BYTEWISE, &e.0, t).is_lt()))
        }
        Move::SeekForPrev(t) => all
            .partition_point(|e| key::compare(&Comparator::BYTEWISE, &e.0, t).is_le())
            .checked_sub(1),
        Move::Next => at.map(|at| at + 1),
        Move::Prev => at.and_then(|at| at.checked_sub(1)),
    };
    position.filter(|&position| position < all.len())
}

/// Returns the tables of `run` that reach into `bounds`.
fn inside(run: &TestRun, bounds: &IterBounds) -> Vec<usize> {
    let reaches = |meta: &TableMeta| {
        !bounds.is_below(meta.largest.bytes()) && !bounds.is_above(meta.smallest.bytes())
    };
    (0..run.len()).filter(|&index| reaches(&run.0[index].0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// After any moves, the level equals the concatenation of the tables that reach into the
    /// bounds. No other table is opened, and each error of an open or a read is returned by the
    /// move that met it.
    #[test]
    fn a_level_is_the_tables_within_bounds(
        tables in any_tables(),
        bounds in any_bounds(),
        moves in vec(any_move(), 1..50),
        fail_after in proptest::option::of(0_u32..40),
    ) {
        let run = TestRun::new(&tables);
        let inside = inside(&run, &bounds);
        let all: Vec<_> =
            inside.iter().flat_map(|&index| run.0[index].1.iter().cloned()).collect();
        let (opened, fault) = (Rc::default(), Fault::default());
        if let Some(moves) = fail_after {
            fault.after(moves);
        }
        let mut iter = LevelIter::new(run.clone(), opener(&run, &opened, &fault), bounds);
        let mut at = None;
        for step in &moves {
            let armed = fault.is_armed();
            at = model_move(&all, at, step);
            let result = apply(&mut iter, step);
            prop_assert_eq!(result.is_err(), armed && !fault.is_armed());
            if result.is_err() {
                at = None;
            }
            prop_assert_eq!(iter.valid(), at.is_some(), "{:?}", step);
            if let Some(at) = at {
                prop_assert_eq!(iter.key(), &all[at].0, "{:?}", step);
                prop_assert_eq!(iter.value(), &all[at].1, "{:?}", step);
            }
        }
        for &id in opened.borrow().iter() {
            prop_assert!(inside.contains(&usize::try_from(id).unwrap()), "opened table {id}");
        }
    }
}

#[test]
fn tables_are_opened_one_by_one_and_not_twice_in_a_row() {
    let tables: Vec<_> = (0_u8..5).map(|n| vec![(vec![n, 0], 1), (vec![n, 9], 1)]).collect();
    let run = TestRun::new(&tables);
    let (opened, fault) = (Rc::default(), Fault::default());
    let mut iter = LevelIter::new(run.clone(), opener(&run, &opened, &fault), IterBounds::all());
    assert!(opened.borrow().is_empty());
    iter.seek(&internal(&[1], 9, ValueKind::MAX)).unwrap();
    iter.next().unwrap();
    iter.seek(&internal(&[1, 9], 9, ValueKind::MAX)).unwrap();
    iter.prev().unwrap();
    assert_eq!(*opened.borrow(), [1]);
    iter.next().unwrap();
    iter.next().unwrap();
    assert_eq!(*opened.borrow(), [1, 2]);
    assert_eq!(key::user_key(iter.key()), [2, 0]);
}
