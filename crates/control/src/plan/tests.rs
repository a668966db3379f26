//! Tests of where output tables end, which claims are refused, and what a plan's edit contains.

use super::*;
use crate::geometry::OverlapLimit;
use crate::types::{FileId, JobId, TableId};
use crate::version::{ValueRef, ValueRefs, Version};

fn key(n: u64) -> UserKey {
    UserKey::bytewise(n.to_be_bytes())
}

fn table(id: u64, from: u64, to: u64, size_bytes: u64) -> Arc<TableMeta> {
    Arc::new(TableMeta::of_one(id, [key(from), key(to)], size_bytes))
}

/// Returns a plan from level 1 to level 2.
fn plan(inputs: Vec<Arc<TableMeta>>, split: OutputSplit) -> CompactionPlan {
    CompactionPlan {
        cf: ColumnFamilyId(0),
        reason: CompactionReason::LevelSize,
        rewrite: vec![Input { level: 1, epoch: Epoch(0), tables: inputs }],
        settle: vec![],
        drop: vec![],
        output_level: 2,
        output_epoch: Epoch(0),
        split,
        breaks: vec![],
        compression: CompressionCode(0),
        path: 0,
        class: IoClass::Deep(1),
        compact_pointer: None,
        collect: Default::default(),
        request: None,
        score: 1.0,
        is_bottommost: true,
    }
}

/// Returns a version with tables in level 3.
fn with_grandparents(tables: Vec<Arc<TableMeta>>) -> Version {
    let added = tables.into_iter().map(|table| AddedTable { level: 3, epoch: Epoch(0), table });
    let edit = VersionEdit { added: added.collect(), ..VersionEdit::default() };
    Version::new(ColumnFamilyId(0), 5).apply(&edit).unwrap()
}

fn by_size(target_bytes: u64, overlap_max: u64, aligned: bool) -> OutputSplit {
    OutputSplit::BySize {
        target_bytes,
        grandparent_overlap_bytes_max: overlap_max,
        at_grandparent_boundaries: aligned,
        at_gaps: false,
    }
}

/// Returns the first keys of the output tables if each key adds ten bytes.
fn cuts(
    plan: &CompactionPlan,
    grandparents: &[Arc<TableMeta>],
    keys: impl IntoIterator<Item = u64>,
) -> Vec<u64> {
    let version = with_grandparents(grandparents.to_vec());
    let mut cutter = plan.output_cutter(plan.grandparents(&version));
    let mut bytes = 0;
    let mut cuts = Vec::new();
    for n in keys {
        if cutter.cut_before(key(n).bytes(), bytes) {
            assert!(bytes > 0, "an empty table was cut");
            bytes = 0;
        }
        if bytes == 0 {
            cuts.push(n);
        }
        bytes += 10;
    }
    cuts
}

#[test]
fn tables_end_at_their_size() {
    let plan = plan(vec![table(1, 0, 99, 1)], by_size(200, 1000, true));
    assert_eq!(cuts(&plan, &[], 0..100), [0, 20, 40, 60, 80]);
}

#[test]
fn tables_end_where_tables_below_end() {
    let grandparents: Vec<_> = (0..10).map(|i| table(10 + i, i * 15, i * 15 + 14, 10)).collect();
    let plan = plan(vec![table(1, 0, 99, 1)], by_size(200, 10_000, true));
    // Of a target of 200 bytes, 150 are enough to end at a boundary. Without boundaries only the
    // size counts.
    assert_eq!(cuts(&plan, &grandparents, 0..60), [0, 15, 30, 45]);
    let unaligned = CompactionPlan { split: by_size(200, 10_000, false), ..plan };
    assert_eq!(cuts(&unaligned, &grandparents, 0..60), [0, 20, 40]);
}

#[test]
fn tables_overlap_no_more_below_than_they_may() {
    let grandparents: Vec<_> = (0..10).map(|i| table(10 + i, i * 10, i * 10 + 9, 100)).collect();
    let plan = plan(vec![table(1, 0, 99, 1)], by_size(100_000, 400, false));
    // Three tables below and 300 bytes of its own would exceed the limit.
    let starts = cuts(&plan, &grandparents, 0..100);
    assert_eq!(starts, [0, 20, 40, 60, 80]);
    // Sparse keys also overlap what lies between them.
    assert_eq!(cuts(&plan, &grandparents, [0, 5, 45, 46, 99]), [0, 45, 99]);
}

#[test]
fn a_table_below_that_is_jumped_over_is_left_untouched() {
    let grandparents = vec![table(10, 0, 10, 50), table(11, 20, 30, 500), table(12, 40, 50, 50)];
    let plan = plan(vec![table(1, 0, 99, 1)], by_size(1000, 100_000, true));
    assert_eq!(cuts(&plan, &grandparents, [1, 2, 3, 41, 42]), [1, 41]);
    // The table is not skipped if a key falls into it.
    assert_eq!(cuts(&plan, &grandparents, [1, 2, 3, 25, 41, 42]), [1]);
}

#[test]
fn tables_end_at_gaps_once_they_are_large_enough() {
    let OutputSplit::BySize { target_bytes, grandparent_overlap_bytes_max, .. } =
        by_size(1600, u64::MAX, false)
    else {
        unreachable!()
    };
    let split = OutputSplit::BySize {
        target_bytes,
        grandparent_overlap_bytes_max,
        at_grandparent_boundaries: false,
        at_gaps: true,
    };
    let with_gaps = plan(vec![table(1, 0, 99, 1)], split);
    let without = plan(vec![table(1, 0, 99, 1)], by_size(1600, u64::MAX, false));
    // Two streams, and a third one that is too short to end a table.
    let keys = || (0..50).chain(1_000_000..1_000_005).chain(2_000_000..2_000_050);
    assert_eq!(cuts(&with_gaps, &[], keys()), [0, 1_000_000]);
    assert_eq!(cuts(&without, &[], keys()), [0]);
    // Evenly spread keys have no gaps.
    assert_eq!(cuts(&with_gaps, &[], (0..100).map(|n| n * 1000)), [0]);
}

#[test]
fn breaks_and_overlap_cut_too() {
    let mut broken = plan(vec![table(1, 0, 99, 1)], by_size(1000, 1000, false));
    broken.breaks = vec![key(10), key(20), key(30)];
    assert_eq!(cuts(&broken, &[], [1, 2, 10, 11, 35]), [1, 10, 35]);
    let grandparents: Vec<_> =
        (0..10).map(|i| table(10 + i, i * 10, i * 10 + 9, if i < 5 { 500 } else { 10 })).collect();
    // Two of the first five tables below are too much, unless one of them is small.
    let by_overlap = |tables, bytes| {
        let limit = OverlapLimit { tables, bytes };
        let split = OutputSplit::ByOverlap { bytes_min: 50, bytes_max: 300, limit };
        plan(vec![table(1, 0, 99, 1)], split)
    };
    assert_eq!(cuts(&by_overlap(1, 600), &grandparents, 0..100), [0, 10, 20, 30, 40, 70]);
    // Each of them alone is too much: tables end at the smallest size there.
    let starts = cuts(&by_overlap(0, 100), &grandparents, 0..100);
    assert_eq!(starts, [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 80]);
}

/// Returns the percentage of poor tables among those that a full level 1 is cut into, for keys
/// spread evenly over a level 2 that is `times` as large. Tables have at most 8 MB.
fn poor_percent(times: u64) -> u64 {
    const MB: u64 = 1 << 20;
    const TABLES: u64 = 512;
    const KEYS_PER_TABLE: u64 = 640;
    // Tables of level 2 are not all full.
    let below = (0..TABLES).map(|nth| {
        let begin = nth * KEYS_PER_TABLE;
        table(10 + nth, begin, begin + KEYS_PER_TABLE - 1, 7 * MB + nth % 3 * MB / 2)
    });
    let limit = OverlapLimit { tables: 8, bytes: 64 * MB };
    let split = OutputSplit::ByOverlap { bytes_min: MB, bytes_max: 8 * MB, limit };
    let keys = TABLES * KEYS_PER_TABLE;
    let plan = plan(vec![table(1, 0, keys - 1, 1)], split);
    let version = with_grandparents(below.collect());
    let mut cutter = plan.output_cutter(plan.grandparents(&version));
    let per_key = 8 * MB / KEYS_PER_TABLE / times;
    let (mut bytes, mut all, mut poor) = (0, 0, 0);
    for n in 0..keys {
        if cutter.cut_before(key(n).bytes(), bytes) {
            all += 1;
            // A table that ends at the smallest size was poor before the next key.
            poor += u64::from(bytes < MB + per_key);
            bytes = 0;
        }
        bytes += per_key;
    }
    100 * poor / all
}

/// vLSM's Fig. 13b: 10 % of the tables are poor where level 2 is 32 times as large as level 1, and
/// 94 % where it is 64 times as large.
#[test]
fn tables_turn_poor_where_the_step_to_level_2_is_as_wide_as_two_steps() {
    let percents = [8, 16, 32, 64, 128].map(poor_percent);
    assert!(percents[..3].iter().all(|percent| *percent <= 10), "{percents:?}");
    assert!(percents[3..].iter().all(|percent| *percent >= 90), "{percents:?}");
}

#[test]
fn what_is_below_is_known_key_by_key() {
    let grandparents = vec![table(10, 5, 10, 1), table(11, 20, 30, 1)];
    let plan = plan(vec![table(1, 0, 99, 1)], by_size(1, 1, true));
    let below = plan.below(&with_grandparents(grandparents));
    assert_eq!(plan.grandparents_of(below.clone()).len(), 2);
    let mut below = KeysBelow::new(&below);
    let found: Vec<_> = (0..40).filter(|n| below.may_contain(key(*n).bytes())).collect();
    assert_eq!(found, (5..=10).chain(20..=30).collect::<Vec<_>>());
}

#[test]
fn claims_refuse_what_touches() {
    let split = by_size(1, 1, true);
    let first = plan(vec![table(1, 10, 19, 7)], split.clone());
    let same_table = plan(vec![table(1, 10, 19, 7)], split.clone());
    let same_range = plan(vec![table(2, 19, 25, 7)], split.clone());
    let apart = plan(vec![table(3, 20, 25, 7)], split.clone());
    let elsewhere = CompactionPlan { cf: ColumnFamilyId(1), ..same_range.clone() };
    let deeper = CompactionPlan { output_level: 3, ..same_range.clone() };
    let empty = CompactionPlan { rewrite: vec![], ..first.clone() };
    let mut claims = InFlight::default();
    claims.claim(JobId(1), &first).unwrap();
    assert_eq!(claims.claim(JobId(1), &apart), Err(ClaimError::Job(JobId(1))));
    assert_eq!(claims.claim(JobId(2), &same_table), Err(ClaimError::Table(TableId(1))));
    let range = ClaimError::Range { job: JobId(1), level: 2 };
    assert_eq!(claims.claim(JobId(2), &same_range), Err(range));
    assert_eq!(claims.claim(JobId(2), &empty), Err(ClaimError::Empty));
    assert_eq!((claims.bytes(ColumnFamilyId(0), 1), claims.len()), (7, 1));
    claims.claim(JobId(2), &apart).unwrap();
    claims.claim(JobId(3), &elsewhere).unwrap();
    assert!(claims.is_claimed(&table(3, 20, 25, 7)));
    assert_eq!(claims.bytes(ColumnFamilyId(0), 1), 14);
    assert!(claims.release(JobId(1)) && !claims.release(JobId(1)));
    assert!(claims.release(JobId(3)) && claims.release(JobId(2)));
    claims.claim(JobId(4), &deeper).unwrap();
    assert!(claims.release(JobId(4)) && claims.is_empty());
}

#[test]
fn an_edit_moves_what_settles_and_removes_all_inputs() {
    let version = Version::new(ColumnFamilyId(0), 4);
    let tables = [table(1, 0, 5, 7), table(2, 6, 9, 7)];
    let added =
        tables.iter().map(|table| AddedTable { level: 1, epoch: Epoch(0), table: table.clone() });
    let edit = VersionEdit { added: added.collect(), ..VersionEdit::default() };
    let version = version.apply(&edit).unwrap();
    let mut plan = plan(vec![tables[0].clone()], by_size(1, 1, true));
    plan.settle = vec![Input { level: 1, epoch: Epoch(0), tables: vec![tables[1].clone()] }];
    plan.compact_pointer = Some((1, key(9)));
    let next = version.apply(&plan.edit()).unwrap();
    next.validate().unwrap();
    assert_eq!((next.level(1).tables(), next.level(2).tables()), (0, 1));
    assert_eq!(next.level(2).sorted().unwrap().get(0), Some(&tables[1]));
    assert_eq!(next.compact_pointer(1), Some(&key(9)));
}

/// A job that ended early leaves a second copy of what it read of a table above. Merge operands
/// and places in value files must not be copied.
#[test]
fn a_job_does_not_end_early_within_operands_or_values_apart() {
    let with = |merges, files: &[ValueRef]| {
        let values = ValueRefs { files: files.to_vec(), encoded: true };
        let above = table(1, 10, 30, 100);
        let above = Arc::new(TableMeta { merges, values, ..(*above).clone() });
        let first = table(2, 0, 5, 100);
        let mut plan = plan(vec![first, above], by_size(100, 0, false));
        plan.rewrite.push(Input {
            level: 2,
            epoch: Epoch(0),
            tables: vec![table(3, 0, 12, 100), table(4, 20, 40, 100)],
        });
        let mut end = plan.early_end().unwrap();
        (6..=41).filter(|n| end.may_end_before(key(*n).bytes())).collect::<Vec<_>>()
    };
    assert_eq!(with(0, &[]), [13, 14, 15, 16, 17, 18, 19, 20, 41]);
    assert_eq!(with(1, &[]), [41]);
    assert_eq!(with(0, &[ValueRef { file: FileId(9), bytes: 1, file_bytes: 2 }]), [41]);
}
