//! The engine itself under a scheduler that chooses who goes on at each lock, wait and atomic:
//! `cargo xtask rel sched`, which builds with `--cfg shuttle`. Small workloads in memory; what must
//! hold is the contract, and that all come to an end.
//!
//! Not under the scheduler are the memtable (loom has it), the file system in memory, counters and
//! times, and the crates that swap and cache pointers: what happens in them happens at once.
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

#[path = "it/support"]
#[allow(dead_code, reason = "other suites use the rest")]
mod support {
    pub(crate) mod process;
    pub(crate) mod rel;
}

use std::sync::Arc;

use sateen::vfs::{MemVfs, Vfs};
use sateen::{Db, Error, Options, ReadOptions, WriteBatch, WriteOptions};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};

/// Schedules of a case.
const SCHEDULES: usize = 20;
/// How many times a schedule of the second kind takes the processor from who runs.
const PREEMPTIONS: usize = 4;
/// Longer than any schedule: whoever needs more waits for what does not come.
const STEPS_MAX: usize = 3_000_000;
const STACK_BYTES: usize = 1 << 20;

/// The number of a case says which model, which scheduler and what seed; see `it/rel.rs`.
#[test]
#[ignore = "run by cargo xtask rel sched"]
fn rel() {
    let models = [
        commits_are_published_whole_and_in_order as fn(),
        memtables_switch,
        pins_hold_what_is_read,
        work_is_preempted_and_goes_on,
        a_close_among_writers,
        threads_of_its_own,
    ];
    support::rel::Suite::new("sched", "schedules").run(
        support::rel::processors(),
        |suite, case| {
            let model = models[case as usize % models.len()];
            let mut config = Config::new();
            config.stack_size = STACK_BYTES;
            config.failure_persistence = FailurePersistence::None;
            config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
            config.silence_warnings = true;
            if case as usize / models.len() % 2 == 0 {
                let scheduler = RandomScheduler::new_from_seed(case, SCHEDULES);
                Runner::new(scheduler, config).run(model);
            } else {
                let scheduler = PctScheduler::new_from_seed(case, PREEMPTIONS, SCHEDULES);
                Runner::new(scheduler, config).run(model);
            }
            suite.count("schedules", SCHEDULES as u64);
        },
    );
}

/// A few writes fill a memtable, a few of those a level.
fn tiny() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.background_thread_nice = 0;
    options.block_cache_bytes = 16 << 10;
    // A new one after each edit.
    options.manifest_bytes_max = 1;
    options.slice_bytes_max = 4 << 10;
    let family = &mut options.column_family;
    family.memtable_bytes = 4 << 10;
    family.memtables_max = 3;
    family.level0_trigger = 2;
    family.level_base_bytes = 8 << 10;
    family.table_bytes = 2 << 10;
    family.block_bytes = 512;
    options
}

fn open(vfs: &MemVfs, options: Options) -> Arc<Db> {
    let vfs: Arc<dyn Vfs> = Arc::new(vfs.clone());
    Arc::new(Db::open_with(vfs, "/db", options, &[]).unwrap())
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap()))
}

fn value(number: u64, length: usize) -> Vec<u8> {
    let mut value = vec![b'.'; length.max(8)];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn spawn(work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(work)
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn assert_sound(db: &Db) {
    let report = db.check(&mut |_, _| {}).unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
}

/// Commit and publish: a batch is seen whole, commits in their order, and one's own at once.
fn commits_are_published_whole_and_in_order() {
    let db = open(&MemVfs::new(), tiny());
    let mut threads = Vec::new();
    for writer in 0..3_u64 {
        let db = db.clone();
        threads.push(spawn(move || {
            for commit in 1..3_u64 {
                let mut batch = WriteBatch::new();
                for half in ["a", "b"] {
                    batch.put(format!("{writer}{half}"), value(commit, 8)).unwrap();
                }
                let options = WriteOptions { sync: writer == 0, ..WriteOptions::default() };
                db.write(&batch, &options).unwrap();
                let seen = number(db.get(format!("{writer}b")).unwrap());
                assert_eq!(seen, commit, "a writer sees what it wrote");
            }
        }));
    }
    for _ in 0..2 {
        let db = db.clone();
        threads.push(spawn(move || {
            let mut last = [0; 3];
            for _ in 0..3 {
                let snapshot = db.snapshot();
                let options = ReadOptions::at(&snapshot);
                let family = db.default_column_family();
                let read = |key: String| number(family.reading(&options).get(key).unwrap());
                for writer in 0..3 {
                    let [a, b] = ["a", "b"].map(|half| read(format!("{writer}{half}")));
                    assert_eq!(a, b, "half a batch is seen");
                    assert!(a >= last[writer], "a commit is seen no more");
                    last[writer] = a;
                }
            }
        }));
    }
    join(threads);
    (0..3).for_each(|writer| assert_eq!(number(db.get(format!("{writer}a")).unwrap()), 2));
}

/// Memtables are sealed and stored among writers: what was written is there at all times.
fn memtables_switch() {
    let vfs = MemVfs::new();
    let db = open(&vfs, tiny());
    let over = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for writer in 0..3_u64 {
        let db = db.clone();
        threads.push(spawn(move || {
            for commit in 1..5_u64 {
                db.put(format!("key{writer}{commit}"), value(commit, 1200)).unwrap();
                for before in 1..=commit {
                    let found = number(db.get(format!("key{writer}{before}")).unwrap());
                    assert_eq!(found, before, "what was written is gone");
                }
            }
        }));
    }
    let stepper = {
        let (db, over) = (db.clone(), over.clone());
        spawn(move || {
            while !over.load(Ordering::SeqCst) {
                db.step().unwrap();
                thread::yield_now();
            }
        })
    };
    join(threads);
    over.store(true, Ordering::SeqCst);
    stepper.join().unwrap();
    db.flush_all().unwrap();
    db.wait_idle().unwrap();
    let all = |db: &Db| {
        for (writer, commit) in (0..3).flat_map(|writer| (1..5).map(move |commit| (writer, commit)))
        {
            let found = number(db.get(format!("key{writer}{commit}")).unwrap());
            assert_eq!(found, commit, "key{writer}{commit}, once all is stored");
        }
    };
    all(&db);
    assert_sound(&db);
    db.close().unwrap();
    drop(db);
    all(&open(&vfs, tiny()));
}

/// Iterators pin what they read while it is written over, compacted and given back.
fn pins_hold_what_is_read() {
    let db = open(&MemVfs::new(), tiny());
    let fill = |db: &Db, number: u64| {
        for key in 0..8 {
            db.put(format!("key{key}"), value(number, 800)).unwrap();
        }
        db.flush().unwrap();
    };
    fill(&db, 1);
    let reader = {
        let db = db.clone();
        spawn(move || {
            for _ in 0..2 {
                let mut iter = db.cursor(&ReadOptions::default()).unwrap();
                let mut seen = Vec::new();
                iter.seek_to_first();
                while iter.valid() {
                    seen.push(number(Some(iter.value().to_vec())));
                    thread::yield_now();
                    iter.next();
                }
                iter.status().unwrap();
                assert_eq!(seen.len(), 8);
                // Written from the first to the last.
                assert!(seen.is_sorted_by(|a, b| a >= b) && seen[0] <= seen[7] + 1, "{seen:?}");
            }
        })
    };
    let writer = {
        let db = db.clone();
        spawn(move || {
            for round in 2..4 {
                fill(&db, round);
                let family = db.default_column_family();
                family.compact_range(None, None, &Default::default()).unwrap();
                // Gives back what nobody needs.
                db.wait_idle().unwrap();
            }
        })
    };
    join(vec![reader, writer]);
    assert_sound(&db);
}

/// Flushes take precedence over compactions, which are paused by hand, too: at rest there is
/// nothing left of any of them.
fn work_is_preempted_and_goes_on() {
    let vfs = MemVfs::new();
    let db = open(&vfs, tiny());
    let mut threads = Vec::new();
    for writer in 0..2_u64 {
        let db = db.clone();
        threads.push(spawn(move || {
            for commit in 1..8_u64 {
                db.put(format!("key{writer}{}", commit % 4), value(commit, 1200)).unwrap();
            }
        }));
    }
    for _ in 0..2 {
        let db = db.clone();
        threads.push(spawn(move || {
            for _ in 0..12 {
                db.step().unwrap();
            }
        }));
    }
    threads.push({
        let db = db.clone();
        spawn(move || {
            let family = db.default_column_family();
            match family.compact_range(None, None, &Default::default()) {
                Ok(()) | Err(Error::ManualCompactionPaused) => {}
                Err(error) => panic!("{error}"),
            }
        })
    });
    threads.push({
        let db = db.clone();
        spawn(move || {
            db.pause_manual_compactions();
            thread::yield_now();
            db.resume_manual_compactions();
        })
    });
    join(threads);
    db.flush_all().unwrap();
    db.wait_idle().unwrap();
    for name in ["num-running-flushes", "num-running-compactions", "num-immutable-mem-table"] {
        let found = db.property(&format!("sateen.{name}"));
        assert_eq!(found.as_deref(), Some("0"), "{name}, at rest");
    }
    let all = |db: &Db| {
        (0..2).for_each(|writer| assert_eq!(number(db.get(format!("key{writer}3")).unwrap()), 7));
        assert_sound(db);
    };
    all(&db);
    db.close().unwrap();
    drop(db);
    all(&open(&vfs, tiny()));
}

/// A close among writers: each write is refused, or is there when the database is opened again.
fn a_close_among_writers() {
    let vfs = MemVfs::new();
    closes_among_writers(&vfs, tiny());
}

/// The same with a worker and chores of its own.
fn threads_of_its_own() {
    let vfs = MemVfs::new();
    closes_among_writers(&vfs, Options { background_threads: 1, ..tiny() });
}

fn closes_among_writers(vfs: &MemVfs, options: Options) {
    let db = open(vfs, options);
    let written: Vec<_> = (0..2).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let mut threads = Vec::new();
    for (writer, written) in written.iter().enumerate() {
        let (db, written) = (db.clone(), written.clone());
        threads.push(spawn(move || {
            for commit in 1..6_u64 {
                match db.put(format!("key{writer}"), value(commit, 1200)) {
                    Ok(()) => written.store(commit, Ordering::SeqCst),
                    Err(Error::Closed) => return,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    threads.push({
        let db = db.clone();
        spawn(move || {
            for _ in 0..20 {
                thread::yield_now();
            }
            db.close().unwrap();
        })
    });
    join(threads);
    drop(db);
    let db = open(vfs, tiny());
    for (writer, written) in written.iter().enumerate() {
        let found = number(db.get(format!("key{writer}")).unwrap());
        let written = written.load(Ordering::SeqCst);
        assert!(found == written || found == written + 1, "{written} written, {found} there");
    }
    assert_sound(&db);
}
