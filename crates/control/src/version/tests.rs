//! The tree against a sorted vector, and edits that contradict their version.

use proptest::prelude::*;

use super::*;
use crate::types::SeqNo;

fn key(n: u32) -> UserKey {
    UserKey::bytewise(n.to_be_bytes())
}

fn table(id: u64, from: u32, to: u32, size_bytes: u64) -> Arc<TableMeta> {
    Arc::new(TableMeta {
        seqno_min: SeqNo(id),
        seqno_max: SeqNo(id),
        ..TableMeta::of_one(id, [key(from), key(to)], size_bytes)
    })
}

fn added(level: u8, epoch: u64, table: Arc<TableMeta>) -> AddedTable {
    AddedTable { level, epoch: Epoch(epoch), table }
}

fn removed(level: u8, epoch: u64, table: &TableMeta) -> RemovedTable {
    RemovedTable { level, epoch: Epoch(epoch), smallest: table.smallest.clone(), id: table.id }
}

fn edit(removed: Vec<RemovedTable>, added: Vec<AddedTable>) -> VersionEdit {
    VersionEdit { removed, added, ..VersionEdit::default() }
}

/// A slot is a place for one table: keys `10 * slot` to `10 * slot + 7` at most.
#[derive(Clone, Debug)]
enum Op {
    Add { slot: u32, width: u32, size: u64 },
    Remove { nth: usize },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let add = (0u32..600, 0u32..8, 1u64..1000).prop_map(|(slot, width, size)| Op::Add {
        slot,
        width,
        size,
    });
    let remove = any::<usize>().prop_map(|nth| Op::Remove { nth });
    // Phases of growth and of shrinking, so that nodes split and join at every depth.
    let phase = (any::<bool>(), prop::collection::vec((0u8..10, add, remove), 0..300));
    prop::collection::vec(phase, 1..5).prop_map(|phases| {
        let pick = |grows: bool, (dice, add, remove): (u8, Op, Op)| {
            if (dice < 8) == grows { add } else { remove }
        };
        phases
            .into_iter()
            .flat_map(|(grows, ops)| ops.into_iter().map(move |op| pick(grows, op)))
            .collect()
    })
}

fn same(run: &Run, model: &[Arc<TableMeta>], probes: impl Iterator<Item = u32>) {
    run.check();
    assert_eq!(run.len(), model.len());
    assert_eq!(run.bytes(), model.iter().map(|t| t.size_bytes).sum::<u64>());
    assert!(run.iter().eq(model));
    for (index, table) in model.iter().enumerate() {
        assert_eq!(run.get(index), Some(table));
    }
    assert_eq!(run.get(model.len()), None);
    for probe in probes {
        let at = model.partition_point(|t| t.largest < key(probe));
        assert_eq!(run.lower_bound(key(probe).bytes()), at);
        let inside = model.get(at).filter(|t| t.smallest <= key(probe));
        assert_eq!(run.find(key(probe).bytes()), inside);
        let hi = key(probe + probe % 97);
        let touched: Vec<_> =
            model.iter().filter(|t| t.largest >= key(probe) && t.smallest <= hi).collect();
        assert_eq!(run.overlapping(key(probe).bytes(), hi.bytes()).collect::<Vec<_>>(), touched);
        let bytes = touched.iter().map(|t| t.size_bytes).sum::<u64>();
        assert_eq!(run.bytes_in(run.overlap(key(probe).bytes(), hi.bytes())), bytes);
        assert_eq!(run.overlapping(key(probe).bytes(), hi.bytes()).len(), touched.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_a_sorted_vector(ops in ops(), probes in prop::collection::vec(0u32..6100, 20)) {
        let mut run = Run::new(Epoch(0));
        let mut model: Vec<Arc<TableMeta>> = Vec::new();
        for (id, op) in (1..).zip(ops) {
            let before = (run.clone(), model.clone());
            match op {
                Op::Add { slot, width, size } => {
                    let new = table(id, slot * 10, slot * 10 + width, size);
                    let at = model.partition_point(|t| t.smallest < new.smallest);
                    let taken = model.get(at).is_some_and(|t| t.smallest == new.smallest);
                    assert_eq!(run.insert(&new).is_err(), taken);
                    if !taken {
                        model.insert(at, new);
                    }
                }
                Op::Remove { nth } if !model.is_empty() => {
                    let gone = model.remove(nth % model.len());
                    assert_eq!(run.remove(gone.smallest.bytes(), gone.id), Some(gone.clone()));
                    assert_eq!(run.remove(gone.smallest.bytes(), gone.id), None);
                }
                Op::Remove { .. } => {}
            }
            if id % 64 == 0 {
                same(&run, &model, probes.iter().copied());
                // The version from which it was cloned has not changed.
                same(&before.0, &before.1, probes.iter().copied());
            }
        }
        same(&run, &model, 0..6100);
        let at_once = Run::from_tables(Epoch(0), model.iter().rev().cloned().collect()).unwrap();
        same(&at_once, &model, probes.into_iter());
    }

    #[test]
    fn a_version_is_what_its_edits_say(
        edits in prop::collection::vec(
            prop::collection::vec((0u8..4, 0u32..40, any::<bool>()), 1..12),
            1..40,
        )
    ) {
        // The model: which table is in which level and slot. Level 0 has a run for every ten slots.
        let mut model = std::collections::BTreeMap::<(u8, u64, u32), Arc<TableMeta>>::new();
        let mut version = Version::new(ColumnFamilyId(0), 4);
        let mut id = 0;
        for changes in edits {
            let mut change = VersionEdit::default();
            let before = model.clone();
            for (level, slot, add) in changes {
                let epoch = if level == 0 { 1 + u64::from(slot) / 10 } else { 0 };
                let place = (level, epoch, slot);
                // Removals come first in an edit, so a place changes at most once.
                let smallest = key(slot * 10);
                let is_here = |a: &AddedTable| a.level == level && a.table.smallest == smallest;
                let here = change.added.iter().any(is_here);
                if here {
                    continue;
                }
                let old = before.get(&place);
                if let Some(old) = old.filter(|old| model.get(&place) == Some(*old)) {
                    change.removed.push(removed(level, epoch, old));
                    model.remove(&place);
                }
                if add {
                    id += 1;
                    let new = table(id, slot * 10, slot * 10 + 5, u64::from(slot) + 1);
                    change.added.push(added(level, epoch, new.clone()));
                    model.insert(place, new);
                }
            }
            let next = version.apply(&change).unwrap();
            next.validate().unwrap();
            version.validate().unwrap();
            prop_assert_eq!(next.number(), version.number() + 1);
            version = next;
            let mut all: Vec<_> = version.tables().map(|(level, _, t)| (level, t.id)).collect();
            let mut expected: Vec<_> = model.iter().map(|(place, t)| (place.0, t.id)).collect();
            all.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(all, expected);
            prop_assert_eq!(version.bytes(), model.values().map(|t| t.size_bytes).sum::<u64>());
            let epochs: Vec<_> = version.level(0).runs().iter().map(Run::epoch).collect();
            prop_assert!(epochs.windows(2).all(|pair| pair[0] > pair[1]));
        }
        let again = Version::new(ColumnFamilyId(0), 4).apply(&version.snapshot_edit()).unwrap();
        again.validate().unwrap();
        prop_assert!(again.levels() == version.levels());
    }
}

fn two_levels() -> Version {
    Version::new(ColumnFamilyId(0), 3)
        .apply(&edit(
            vec![],
            vec![
                added(0, 2, table(1, 0, 9, 5)),
                added(0, 1, table(2, 0, 9, 5)),
                added(1, 0, table(3, 0, 4, 5)),
                added(1, 0, table(4, 10, 14, 5)),
            ],
        ))
        .unwrap()
}

#[test]
fn a_contradiction_is_named() {
    let version = two_levels();
    let fails = |edit: &VersionEdit| version.apply(edit).unwrap_err();
    let (level, epoch) = (1, Epoch(0));
    let add = |level, epoch, table| edit(vec![], vec![added(level, epoch, table)]);

    let gone = removed(1, 0, &table(9, 0, 4, 5));
    let missing = EditError::Missing { level, epoch, table: TableId(9) };
    assert_eq!(fails(&edit(vec![gone], vec![])), missing);
    let elsewhere = removed(0, 7, &table(1, 0, 9, 5));
    let missing = EditError::Missing { level: 0, epoch: Epoch(7), table: TableId(1) };
    assert_eq!(fails(&edit(vec![elsewhere], vec![])), missing);

    let overlap = EditError::Overlap { level, epoch, table: TableId(4), other: TableId(9) };
    assert_eq!(fails(&add(1, 0, table(9, 14, 20, 5))), overlap);
    assert_eq!(fails(&add(1, 0, table(4, 10, 14, 5))), EditError::Duplicate { table: TableId(4) });
    assert_eq!(fails(&add(1, 0, table(9, 8, 7, 5))), EditError::Bounds { table: TableId(9) });
    assert_eq!(fails(&add(3, 0, table(9, 8, 9, 5))), EditError::Level { level: 3, levels: 3 });
    let epoch_error = |level, epoch| EditError::Epoch { level, epoch: Epoch(epoch) };
    assert_eq!(fails(&add(1, 5, table(9, 6, 7, 5))), epoch_error(1, 5));
    assert_eq!(fails(&add(0, 0, table(9, 6, 7, 5))), epoch_error(0, 0));
    // Two tables of one edit that overlap in a run that did not exist.
    let pair = vec![added(2, 0, table(8, 0, 5, 1)), added(2, 0, table(9, 5, 6, 1))];
    let overlap = EditError::Overlap { level: 2, epoch, table: TableId(8), other: TableId(9) };
    assert_eq!(fails(&edit(vec![], pair)), overlap);
    let other = VersionEdit { column_family: ColumnFamilyId(3), ..VersionEdit::default() };
    let (cf0, cf3) = (ColumnFamilyId(0), ColumnFamilyId(3));
    assert_eq!(fails(&other), EditError::ColumnFamily { version: cf0, edit: cf3 });
    // None of these edits left a trace.
    version.validate().unwrap();
    assert_eq!(version, two_levels());
}

#[test]
fn a_table_twice_is_found() {
    let again = edit(vec![], vec![added(2, 0, table(3, 0, 4, 5))]);
    let version = two_levels().apply(&again).unwrap();
    assert_eq!(version.validate(), Err(EditError::Duplicate { table: TableId(3) }));
}

#[test]
fn a_table_moves_and_an_empty_run_goes() {
    let version = two_levels();
    let moved = table(2, 0, 9, 5);
    let next = version
        .apply(&VersionEdit {
            compact_pointers: vec![(1, key(4))],
            log_number: Some(LogNumber(7)),
            shared_files: vec![FileId(2)],
            ..edit(vec![removed(0, 1, &moved)], vec![added(2, 0, moved)])
        })
        .unwrap();
    next.validate().unwrap();
    assert_eq!(next.level(0).runs().len(), 1);
    assert_eq!(next.level(2).tables(), 1);
    assert_eq!(next.compact_pointer(1), Some(&key(4)));
    assert_eq!((version.compact_pointer(1), next.compact_pointer(9)), (None, None));
    assert_eq!(next.log_number(), LogNumber(7));
    assert!(next.shared_files().contains(&FileId(2)) && version.shared_files().is_empty());
    assert_eq!(next.table_id_max(), TableId(4));
    // A log number never goes back.
    let back = VersionEdit { log_number: Some(LogNumber(3)), ..VersionEdit::default() };
    assert_eq!(next.apply(&back).unwrap().log_number(), LogNumber(7));
}

/// An edit that only moves tables need not be durable at once, so no other edit may be taken for
/// one.
#[test]
fn an_edit_only_moves_tables_if_the_same_tables_come_and_go() {
    let (one, other) = (table(1, 0, 10, 100), table(2, 11, 20, 100));
    let moved = edit(vec![removed(1, 0, &one)], vec![added(2, 0, one.clone())]);
    assert!(moved.only_moves());
    assert!(!edit(vec![], vec![]).only_moves());
    assert!(!edit(vec![removed(1, 0, &one)], vec![]).only_moves());
    assert!(!edit(vec![], vec![added(2, 0, one.clone())]).only_moves());
    assert!(!edit(vec![removed(1, 0, &one)], vec![added(2, 0, other.clone())]).only_moves());
    let more = vec![added(2, 0, one.clone()), added(2, 0, other)];
    assert!(!edit(vec![removed(1, 0, &one)], more).only_moves());
    for says_more in [
        VersionEdit { create: Some("family".into()), ..moved.clone() },
        VersionEdit { drop: true, ..moved.clone() },
        VersionEdit { style: Some("leveled".into()), ..moved.clone() },
        VersionEdit { log_number: Some(LogNumber(3)), ..moved.clone() },
        VersionEdit { flushed_seqno: Some(SeqNo(3)), ..moved.clone() },
        VersionEdit { shared_files: vec![FileId(3)], ..moved.clone() },
    ] {
        assert!(!says_more.only_moves(), "{says_more:?}");
    }
}

#[test]
fn an_edit_is_applied_in_the_order_of_the_column_family() {
    let reverse = Comparator::reverse_bytewise();
    let version = Version::new(ColumnFamilyId(0), 3).with_comparator(reverse.clone());
    let tables = [(1, 9, 7), (2, 5, 2)].map(|(id, from, to)| added(1, 0, table(id, from, to, 1)));
    let mut edit = edit(Vec::new(), tables.to_vec());
    let refused = version.apply(&edit).unwrap_err();
    assert_eq!(refused, EditError::Comparator { table: TableId(1) });
    edit.compare_by(&reverse);
    let version = version.apply(&edit).unwrap();
    version.validate().unwrap();
    let run = &version.level(1).runs()[0];
    let ids: Vec<_> = run.iter().map(|table| table.id.0).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(run.find(key(3).bytes()).map(|table| table.id.0), Some(2));
    assert_eq!(run.find(key(6).bytes()), None);
}
