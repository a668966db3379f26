//! A million tables: what an edit, a lookup, a score and a pick cost, and what a poll costs when
//! nothing has changed.
#![expect(clippy::unwrap_used, reason = "a benchmark stops when its set-up is wrong")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use sateen_control::compaction::{InFlight, LevelTargets, PickContext, TreeView};
use sateen_control::version::{AddedTable, Placement, RemovedTable};
use sateen_control::{
    CfOptions, ColumnFamilyId, ControlOptions, ControlPlane, Epoch, Event, FileId, Instant, JobId,
    SeqNo, TableId, TableMeta, UserKey, Version, VersionEdit,
};

const TABLES: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

fn key(n: u64) -> UserKey {
    UserKey::bytewise(format!("{n:016}").as_bytes())
}

fn table(id: u64, from: u64, to: u64) -> Arc<TableMeta> {
    Arc::new(TableMeta {
        id: TableId(id),
        placement: Placement::WholeFile(FileId(id)),
        size_bytes: MIB,
        smallest: key(from),
        largest: key(to),
        seqno_min: SeqNo(id),
        seqno_max: SeqNo(id),
        entries: 1000,
        tombstones: 0,
        merges: 0,
        ranges_applied: SeqNo(0),
        global_seqno: SeqNo(0),
        raw_bytes: MIB,
        tail_bytes: 0,
        sketch: None,
        values: Default::default(),
    })
}

/// A terabyte in tables of 1 MiB: nine tenths in level 6, the next tenth in level 5, and so on.
fn terabyte() -> VersionEdit {
    let mut added = Vec::new();
    let mut id = 0;
    for (level, share) in [(6u8, 900_000u64), (5, 90_000), (4, 9_000), (3, 1_000)] {
        let width = TABLES * 1000 / share;
        for i in 0..share {
            id += 1;
            let table = table(id, i * width, i * width + width - 1);
            added.push(AddedTable { level, epoch: Epoch(0), table });
        }
    }
    VersionEdit { added, ..VersionEdit::default() }
}

fn versions(c: &mut Criterion) {
    let edit = terabyte();
    let empty = Version::new(ColumnFamilyId(0), 7);
    let mut group = c.benchmark_group("million-tables");
    group.sample_size(10);
    group.bench_function("recover", |b| b.iter(|| empty.apply(black_box(&edit)).unwrap()));
    let version = empty.apply(&edit).unwrap();
    drop(edit);
    let mut at = 0;
    group.sample_size(50);
    group.bench_function("edit-of-20-tables", |b| {
        b.iter_batched(
            || {
                at = (at + 7919) % 890_000;
                let run = version.level(6).sorted().unwrap();
                let old: Vec<_> = run.range(at..at + 10).cloned().collect();
                let removed = |t: &Arc<TableMeta>| RemovedTable {
                    level: 6,
                    epoch: Epoch(0),
                    smallest: t.smallest.clone(),
                    id: t.id,
                };
                let added =
                    |t: &Arc<TableMeta>| AddedTable { level: 6, epoch: Epoch(0), table: t.clone() };
                VersionEdit {
                    removed: old.iter().map(removed).collect(),
                    added: old.iter().map(added).collect(),
                    ..VersionEdit::default()
                }
            },
            |edit| version.apply(&edit).unwrap(),
            BatchSize::SmallInput,
        );
    });
    let keys: Vec<_> = (0..4096u64).map(|i| key(i * 104_729_717 % (TABLES * 1000))).collect();
    let mut next = 0;
    group.bench_function("find-in-900k", |b| {
        let run = version.level(6).sorted().unwrap();
        b.iter(|| {
            next = (next + 1) % keys.len();
            run.find(black_box(keys[next].bytes())).map(|table| table.id)
        });
    });
    group.finish();
    picks(c, &version);
}

fn picks(c: &mut Criterion, version: &Version) {
    let options =
        CfOptions { level_base_bytes: 256 * MIB, table_bytes: MIB, ..CfOptions::default() };
    let mut group = c.benchmark_group("million-tables");
    group.bench_function("targets-scores-debt", |b| {
        let in_flight = InFlight::default();
        b.iter(|| {
            let targets = LevelTargets::new(version, &options);
            let view = TreeView { version, options: &options, targets: &targets };
            (options.policy().scores(&view, &in_flight), options.policy().debt(&view))
        });
    });
    let targets = LevelTargets::new(version, &options);
    let mut in_flight = InFlight::default();
    let view = TreeView { version, options: &options, targets: &targets };
    let scores = options.policy().scores(&view, &in_flight);
    let pick = |in_flight: &InFlight| {
        let context = PickContext {
            version,
            options: &options,
            targets: &targets,
            scores: &scores,
            stripes: &[],
            in_flight,
            group_bytes_max: u64::MAX,
            input_bytes_max: u64::MAX,
            level0_only: false,
            more_comes: false,
            level0_first: false,
        };
        options.policy().pick(&context).unwrap()
    };
    group.bench_function("pick", |b| b.iter(|| pick(&in_flight)));
    let plan = pick(&in_flight);
    in_flight.claim(JobId(1), &plan).unwrap();
    group.bench_function("pick-beside-another", |b| b.iter(|| pick(&in_flight)));

    let mut plane = ControlPlane::new(ControlOptions::default());
    let (options, version) = (Arc::new(options.clone()), Arc::new(version.clone()));
    plane.handle(Instant(0), Event::ColumnFamilyAdded { options, version });
    while plane.poll(Instant(0)).is_some() {}
    group.bench_function("step-and-grant", |b| {
        b.iter(|| {
            let job = JobId(1);
            let event = Event::JobStepped { job, read_bytes: MIB, written_bytes: MIB, cpu_ns: 0 };
            plane.handle(Instant(0), event);
            while plane.poll(Instant(0)).is_some() {}
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_secs(1))
        .without_plots();
    targets = versions
}
criterion_main!(benches);
