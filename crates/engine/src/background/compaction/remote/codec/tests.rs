//! Tests of what jobs and results are as bytes, and of bytes that are refused.

use sateen_control::version::Placement;
use sateen_control::{FileId, TableId};

use super::*;

fn table(number: u64) -> Arc<TableMeta> {
    let key = |at: u64| UserKey::bytewise((10 * number + at).to_be_bytes());
    Arc::new(TableMeta {
        id: TableId(number),
        placement: Placement::Slice { file: FileId(3), offset: 4096, length: 900 },
        size_bytes: 900,
        smallest: key(0),
        largest: key(5),
        seqno_min: SeqNo(1),
        seqno_max: SeqNo(7),
        entries: 9,
        tombstones: 1,
        merges: 2,
        ranges_applied: SeqNo(0),
        global_seqno: SeqNo(0),
        raw_bytes: 1000,
        tail_bytes: 50,
        sketch: None,
        values: Default::default(),
    })
}

fn input(split: OutputSplit) -> JobInput {
    let key = |bytes: &[u8]| UserKey::bytewise(bytes);
    let tables = |numbers: Range<u64>| numbers.map(table).collect::<Vec<_>>();
    let older = tables(1..4).iter().map(KeysOf::from).collect();
    let plan = CompactionPlan {
        cf: ColumnFamilyId(4),
        reason: CompactionReason::Manual,
        rewrite: vec![
            Input { level: 0, epoch: Epoch(9), tables: tables(2..3) },
            Input { level: 1, epoch: Epoch(0), tables: tables(1..4) },
        ],
        settle: Vec::new(),
        drop: Vec::new(),
        output_level: 1,
        output_epoch: Epoch(0),
        split,
        breaks: vec![key(b"m")],
        compression: CompressionCode(1),
        path: 0,
        class: IoClass::L0,
        compact_pointer: None,
        score: 0.0,
        is_bottommost: false,
        collect: BTreeSet::new(),
        request: None,
    };
    let range = RangeTombstone { begin: key(b"a"), end: key(b"b"), seqno: SeqNo(5) };
    JobInput {
        job: u64::MAX,
        db_uid: 77,
        family: "default".into(),
        whole: ColumnFamilyId(0),
        options: Options::default(),
        seconds: 1_700_000_000,
        plan,
        below: vec![Below { level: 2, tables: older }],
        ranges: vec![range],
        is_full: true,
        snapshots: vec![SeqNo(3), SeqNo(8)],
        newest_snapshot: Some(SeqNo(0)),
        files: 10..11,
        tables: 20..60,
    }
}

fn inputs() -> Vec<JobInput> {
    let splits = [
        OutputSplit::BySize {
            target_bytes: 1 << 20,
            grandparent_overlap_bytes_max: u64::MAX,
            at_grandparent_boundaries: true,
            at_gaps: false,
        },
        OutputSplit::ByOverlap {
            bytes_min: 1,
            bytes_max: 2,
            limit: sateen_control::compaction::OverlapLimit { tables: 3, bytes: 4 },
        },
        OutputSplit::AtGuards { guards: vec![UserKey::bytewise(*b"g")], bits: 9, target_bytes: 5 },
    ];
    splits.into_iter().map(input).collect()
}

fn result() -> JobResult {
    JobResult {
        job: 5,
        directory: "/out put;x".into(),
        tables: vec![table(1), table(2)],
        entries_in: 100,
        entries_dropped: 90,
    }
}

#[test]
fn jobs_and_results_come_back() {
    for input in inputs() {
        let found = JobInput::decode(&input.encode(), &ColumnFamilyOptions::default());
        assert_eq!(format!("{:?}", found.unwrap()), format!("{input:?}"));
    }
    let found = JobResult::decode(&result().encode(), &Comparator::BYTEWISE);
    assert_eq!(found.unwrap(), result());
}

#[test]
fn a_result_of_another_job_or_directory_is_refused() {
    let of = |job: u64, directory: &str| {
        let result = JobResult { job, directory: directory.into(), ..result() };
        JobResult::of_job(&result.encode(), &Comparator::BYTEWISE, 5)
    };
    assert!(of(5, "/output/compaction-5").is_ok());
    assert!(of(6, "/output/compaction-6").unwrap_err().to_string().contains("another job"));
    for directory in ["/db", "/output/compaction-6", "/output/compaction-5/..", "/", "compaction-5"]
    {
        let error = of(5, directory).unwrap_err().to_string();
        assert!(error.contains("is not the directory of the job"), "{error}");
    }
}

/// Bytes whose checksum fits are read without a panic, whatever they are.
#[test]
fn hostile_bytes_are_refused_or_read() {
    let objects = ColumnFamilyOptions::default();
    let tried = |first_line: &[u8], bytes: &[u8], read: &dyn Fn(&[u8]) -> bool| {
        let content = &bytes[first_line.len() + 8..];
        for at in 0..content.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut content = content.to_vec();
                content[at] = value;
                read(&seal(first_line, &content));
            }
            assert!(!read(&seal(first_line, &content[..at])), "cut at {at}");
        }
    };
    let Some(input) = inputs().pop() else { return };
    tried(INPUT, &input.encode(), &|bytes| JobInput::decode(bytes, &objects).is_ok());
    tried(RESULT, &result().encode(), &|bytes| {
        JobResult::decode(bytes, &Comparator::BYTEWISE).is_ok()
    });
}
