//! Databases that share a runtime: none waits for another, and thousands cost little.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use sateen::vfs::{Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{
    CompactRangeOptions, Db, EventListener, FlushInfo, Health, Options, Runtime, SealInfo, WalMode,
};

use crate::support::common::{assert_sound, own_test, tiny};

/// After this on any machine what does not hang has come to an end.
const PATIENCE: Duration = Duration::from_secs(120);

fn options(runtime: &Runtime) -> Options {
    Options { background_threads: 1, runtime: Some(runtime.clone()), ..tiny() }
}

fn open(vfs: &Arc<dyn Vfs>, path: &str, options: Options) -> Db {
    Db::open_with(vfs.clone(), path, options, &[]).unwrap()
}

fn vfs() -> Arc<dyn Vfs> {
    Arc::new(MemVfs::new())
}

/// Writes into `db` as fast as it takes it, until told to stop.
fn overload(db: &Db, stop: &AtomicBool) {
    let mut n = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        db.put((n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes(), [7; 200]).unwrap();
        n += 1;
    }
}

/// Runs `act` while `db` is overloaded, and has written something.
fn beside(db: &Db, act: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| overload(db, &stop));
        while db.metrics().flushes.entries_in == 0 {
            std::thread::yield_now();
        }
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        stop.store(true, Ordering::Relaxed);
        acted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn an_overloaded_database_does_not_keep_another_from_its_flush() {
    let (vfs, runtime) = (vfs(), Runtime::builder().threads(1).build());
    let [busy, calm] = ["/busy", "/calm"].map(|path| open(&vfs, path, options(&runtime)));
    assert_eq!((runtime.databases(), runtime.running_threads()), (2, 4));
    beside(&busy, || {
        for n in 0..20_u32 {
            calm.put(n.to_be_bytes(), "value").unwrap();
            calm.flush().unwrap();
        }
        calm.wait_idle().unwrap();
    });
    assert_eq!(calm.iter().unwrap().count(), 20);
    busy.close().unwrap();
    calm.close().unwrap();
    assert_eq!((runtime.databases(), runtime.running_threads()), (0, 0));
}

#[test]
fn databases_come_and_go_while_others_work() {
    let (vfs, runtime) = (vfs(), Runtime::new());
    let busy = open(&vfs, "/busy", options(&runtime));
    beside(&busy, || {
        for n in 0..20_u32 {
            let path = format!("/{n}");
            let other = open(&vfs, &path, options(&runtime));
            (0..200_u32).for_each(|n| other.put(n.to_be_bytes(), [7; 200]).unwrap());
            // Dropped with work that has begun, or closed.
            if n % 2 == 0 {
                drop(other)
            } else {
                other.close().unwrap()
            }
            let again = open(&vfs, &path, options(&runtime));
            assert_eq!(again.iter().unwrap().count(), 200);
        }
    });
    assert_eq!(runtime.databases(), 1);
    busy.flush().unwrap();
    busy.wait_idle().unwrap();
}

#[test]
fn a_paused_database_holds_up_no_other() {
    let (vfs, runtime) = (vfs(), Runtime::builder().threads(1).build());
    let [paused, other] = ["/paused", "/other"].map(|path| open(&vfs, path, options(&runtime)));
    paused.pause_background_work().unwrap();
    (0..50_u32).for_each(|n| {
        let _stalls = paused
            .writing(sateen::WriteOptions { no_slowdown: true, ..sateen::WriteOptions::default() })
            .put(n.to_be_bytes(), [7; 500]);
    });
    for n in 0..500_u32 {
        other.put(n.to_be_bytes(), [7; 200]).unwrap();
    }
    other.flush().unwrap();
    other.wait_idle().unwrap();
    paused.continue_background_work().unwrap();
    paused.flush().unwrap();
}

#[test]
fn a_full_disk_of_one_is_no_error_of_another() {
    let faults = FaultVfs::new(vfs());
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let runtime = Runtime::builder().threads(1).build();
    let [full, other] = ["/full", "/other"].map(|path| open(&vfs, path, options(&runtime)));
    full.put("key", "value").unwrap();
    let rule = FaultRule::new(Fault::NoSpace).on(VfsOperation::Write).path_contains("full/");
    faults.add(rule);
    let begun = Instant::now();
    while full.health().0 == Health::Ok {
        let _fails = full.put("key", [7; 3000]).and_then(|()| full.flush());
        assert!(begun.elapsed() < PATIENCE, "nothing failed");
    }
    for n in 0..20_u32 {
        other.put(n.to_be_bytes(), [7; 3000]).unwrap();
        other.flush().unwrap();
    }
    assert_eq!(other.health().0, Health::Ok);
    faults.clear();
    full.resume().unwrap();
    full.put("again", "value").unwrap();
    full.flush().unwrap();
}

#[test]
fn a_panic_of_one_is_no_end_of_another() {
    let faults = FaultVfs::new(vfs());
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let runtime = Runtime::builder().threads(1).build();
    let [broken, other] = ["/broken", "/other"].map(|path| open(&vfs, path, options(&runtime)));
    let rule = FaultRule::new(Fault::Panic).on(VfsOperation::Write).path_contains("broken/");
    faults.add(rule.class(sateen::vfs::IoClass::Flush));
    broken.put("key", "value").unwrap();
    assert!(broken.flush().is_err());
    assert_eq!(broken.health().0, Health::ReadOnly);
    other.put("key", "value").unwrap();
    other.flush().unwrap();
    faults.clear();
    drop(broken);
    other.put("more", "value").unwrap();
    other.flush().unwrap();
}

/// The threads of a device end with its last database. Those of the next one keep time by
/// themselves, although a handle of the first is still there.
#[test]
fn the_next_database_of_a_device_syncs_in_time() {
    let faults = FaultVfs::new(vfs());
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let runtime = Runtime::new();
    let often = WalMode::SyncInterval(Duration::from_millis(1));
    let options = Options { wal: often, ..options(&runtime) };
    let mut closed = Vec::new();
    for round in 0..12 {
        // Its thread may be just waiting for the next sync.
        let first = open(&vfs, &format!("/first{round}"), options.clone());
        first.put("key", "value").unwrap();
        first.close().unwrap();
        let db = open(&vfs, &format!("/next{round}"), options.clone());
        let (began, synced) = (Instant::now(), faults.calls(VfsOperation::Sync));
        db.put("key", "value").unwrap();
        while faults.calls(VfsOperation::Sync) == synced {
            // A thread that nobody calls and that does not watch looks once a minute.
            assert!(began.elapsed() < Duration::from_secs(40), "round {round}: not synced");
            std::thread::sleep(Duration::from_millis(1));
        }
        db.close().unwrap();
        closed.extend([first, db]);
    }
}

#[test]
fn databases_that_are_scheduled_differently_share_no_threads() {
    let (vfs, runtime) = (vfs(), Runtime::new());
    let first = open(&vfs, "/first", options(&runtime));
    let _alike = open(&vfs, "/alike", options(&runtime));
    let other = Options { device_bandwidth: Some(100 << 20), ..options(&runtime) };
    let other = open(&vfs, "/other", other);
    let metrics = runtime.metrics();
    assert_eq!((metrics.databases, metrics.devices.len()), (3, 2));
    assert_eq!(first.runtime_metrics().databases, 2);
    assert_eq!(other.runtime_metrics().databases, 1);
    assert_eq!(other.runtime_metrics().devices[0].write_bytes_per_second, 100 << 20);
    // What one changes holds for those that share with it, and the next one finds its group.
    first.set_options(&[("device_bandwidth", "100MiB")]).unwrap();
    let last = Options { device_bandwidth: Some(100 << 20), ..options(&runtime) };
    let last = open(&vfs, "/last", last);
    assert!(last.runtime_metrics().databases > 1);
}

/// Fills databases with 2 MiB each and compacts them. Returns the bytes a second that flushes and
/// compactions of all wrote, at most.
fn written_a_second(databases: &[Db]) -> u64 {
    let started = Instant::now();
    for db in databases {
        for n in 0..2048 {
            // No compression makes it smaller.
            let mixed = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
            let value: Vec<u8> =
                (0..128).flat_map(|i| mixed(mixed(n << 8 | i)).to_be_bytes()).collect();
            db.put(mixed(n).to_be_bytes(), value).unwrap();
        }
    }
    for db in databases {
        db.flush().unwrap();
        let rewrite = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
        db.compact_range(None, None, &rewrite).unwrap();
    }
    let took = started.elapsed();
    let written = |db: &Db| {
        let metrics = db.metrics();
        metrics.flushes.bytes_out + metrics.compactions.iter().map(|of| of.bytes_out).sum::<u64>()
    };
    let written: u64 = databases.iter().map(written).sum();
    assert!(written > 3 * 1024 * 1024 * databases.len() as u64, "{written}");
    (written as f64 / took.as_secs_f64()) as u64
}

#[test]
fn limits_of_bandwidth_are_kept_by_one_database_and_by_several() {
    const LIMIT: u64 = 4 << 20;
    let runtime = Runtime::builder().build();
    let plain = Options { background_threads: 2, ..Options::default() };
    let ceiling = Options { bandwidth_ceiling: LIMIT, ..plain.clone() };
    let limited = Options { rate_limit_bytes_per_second: LIMIT, ..plain };
    let shared = Options { runtime: Some(runtime.clone()), ..limited.clone() };
    // A period's bytes and a step may go beyond it.
    let most = LIMIT + LIMIT / 2;
    for (options, count) in [(ceiling, 1), (limited, 1), (shared, 2)] {
        let databases: Vec<_> = (0..count).map(|_| open(&vfs(), "/db", options.clone())).collect();
        let rate = written_a_second(&databases);
        assert!(rate <= most, "{rate} bytes a second: {count}");
        databases.iter().for_each(assert_sound);
    }
}

#[test]
fn databases_share_only_if_they_are_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str, runtime: Option<&Runtime>| {
        let options = Options { background_threads: 1, runtime: runtime.cloned(), ..tiny() };
        Db::open(directory.path().join(name), options).unwrap()
    };
    let runtime = Runtime::new();
    let [first, second] = ["first", "second"].map(|name| open(name, Some(&runtime)));
    let [third, fourth] = ["third", "fourth"].map(|name| open(name, None));
    assert_eq!(first.runtime_metrics().databases, 2);
    for alone in [&third, &fourth] {
        assert_eq!(alone.runtime_metrics().databases, 1);
    }
    second.put("key", "value").unwrap();
    second.flush().unwrap();
    let totals = first.runtime_metrics().totals;
    assert_eq!(totals.user_bytes, 8);
    assert!(totals.written_bytes > 8);
    assert_eq!(third.runtime_metrics().totals.user_bytes, 0);
    drop(second);
    assert_eq!(first.runtime_metrics().databases, 1);
}

/// A listener whose call says that it has begun, and ends when it is told to.
struct Held {
    begun: Mutex<mpsc::Sender<()>>,
    end: Mutex<mpsc::Receiver<()>>,
}

impl EventListener for Held {
    fn flush_begins(&self, _: &Db, _: &FlushInfo) {
        let _gone = self.begun.lock().unwrap().send(());
        let _gone = self.end.lock().unwrap().recv();
    }
}

#[test]
fn a_close_waits_for_no_step_of_another_database() {
    let (vfs, runtime) = (vfs(), Runtime::builder().threads(2).build());
    let (begun, has_begun) = mpsc::channel();
    let (go_on, end) = mpsc::channel();
    let mut held = options(&runtime);
    held.listeners.add(Arc::new(Held { begun: Mutex::new(begun), end: Mutex::new(end) }));
    let held = open(&vfs, "/held", held);
    let last = open(&vfs, "/last", options(&runtime));
    std::thread::scope(|scope| {
        held.put("key", "value").unwrap();
        scope.spawn(|| held.flush());
        has_begun.recv_timeout(PATIENCE).unwrap();
        // Its close waits for the step.
        scope.spawn(|| held.close());
        while runtime.databases() > 1 {
            std::thread::yield_now();
        }
        let (closed, is_closed) = mpsc::channel();
        let last = &last;
        scope.spawn(move || closed.send(last.close()));
        let closed = is_closed.recv_timeout(PATIENCE);
        go_on.send(()).unwrap();
        closed.expect("the last one waits for the other").unwrap();
    });
    assert_eq!((runtime.databases(), runtime.running_threads()), (0, 0));
}

/// Listeners of several databases, each of which waits until all were called.
struct Meeting {
    of_flushes: bool,
    missing: Mutex<usize>,
    came: Condvar,
}

impl Meeting {
    fn meet(&self) {
        let mut missing = self.missing.lock().unwrap();
        *missing = missing.saturating_sub(1);
        self.came.notify_all();
        let waits = |missing: &mut usize| *missing > 0;
        let _met = self.came.wait_timeout_while(missing, PATIENCE, waits).unwrap();
    }
}

impl EventListener for Meeting {
    fn flush_begins(&self, _: &Db, _: &FlushInfo) {
        if self.of_flushes {
            self.meet();
        }
    }
    fn memtable_sealed(&self, _: &SealInfo) {
        if !self.of_flushes {
            self.meet();
        }
    }
}

#[test]
fn callbacks_that_wait_for_other_databases_come_to_an_end() {
    for of_flushes in [true, false] {
        let (vfs, runtime) = (vfs(), Runtime::builder().threads(1).build());
        let many = 6;
        let missing = Mutex::new(many);
        let meeting = Arc::new(Meeting { of_flushes, missing, came: Condvar::new() });
        let databases: Vec<_> = (0..many)
            .map(|n| {
                let mut options = options(&runtime);
                options.listeners.add(meeting.clone());
                open(&vfs, &format!("/{n}"), options)
            })
            .collect();
        std::thread::scope(|scope| {
            for db in &databases {
                scope.spawn(|| {
                    db.put("key", "value").unwrap();
                    db.flush().unwrap();
                });
            }
        });
        let begun = Instant::now();
        while *meeting.missing.lock().unwrap() > 0 {
            assert!(begun.elapsed() < PATIENCE, "a callback was never called");
            std::thread::yield_now();
        }
        drop(databases);
        assert_eq!(runtime.running_threads(), 0);
    }
}

#[test]
fn memory_is_shared_if_the_runtime_has_any() {
    let runtime = Runtime::builder().memory_budget(8 << 20).build();
    assert_eq!(runtime.block_cache().unwrap().capacity(), 8 << 20);
    let vfs = vfs();
    let [first, second] = ["/first", "/second"].map(|path| open(&vfs, path, options(&runtime)));
    let memtables = runtime.write_buffer_manager().unwrap();
    assert_eq!(memtables.limit_bytes(), 4 << 20);
    let before = memtables.memory_bytes();
    first.put("key", [7; 2000]).unwrap();
    second.put("key", [7; 2000]).unwrap();
    assert!(memtables.memory_bytes() >= before);
    first.flush().unwrap();
    assert!(first.get("key").unwrap().is_some());
    assert!(runtime.block_cache().unwrap().usage_bytes() > 0);
}

/// What the process has: threads, and descriptors.
fn costs() -> (usize, usize) {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    (count("task"), count("fd"))
}

#[test]
fn a_thousand_databases_have_few_threads_and_descriptors() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &own_test(module_path!(), "opens_many"), "--nocapture"])
        .status()
        .unwrap();
    assert!(child.success());
}

/// In a process of its own, in which nothing else has threads or files.
#[test]
#[ignore = "run by the test above"]
fn opens_many() {
    const MANY: usize = 100;
    let directory = tempfile::tempdir().unwrap();
    let open = |n: usize| {
        let options = Options { runtime: Some(Runtime::process()), ..Options::default() };
        let db = Db::open(directory.path().join(n.to_string()), options).unwrap();
        db.put("key", "value").unwrap();
        db
    };
    // A thread that has done I/O keeps a descriptor that tells how long it waits for processors.
    drop(open(0));
    let before = costs();
    let mut databases: Vec<_> = (0..8).map(open).collect();
    let threads = costs().0;
    databases.extend((8..MANY).map(open));
    // Threads that are held on a slow machine are relieved, by at most 16 workers and 16 others.
    assert!(costs().0 <= threads + 32, "an open database costs no thread");
    assert!(threads <= before.0 + 8 + 32, "{threads}");
    // At rest each has the lock, the manifest, the WAL and the next one. Files that were prepared
    // for more are gone. Each thread may have one that tells how long it waits for processors.
    let begun = Instant::now();
    while costs().1 > before.1 + 4 * MANY + 40 {
        assert!(begun.elapsed() < PATIENCE, "{} descriptors", costs().1);
        std::thread::sleep(Duration::from_millis(20));
    }
    // They are at rest, and wake.
    for db in &databases {
        db.put("more", "value").unwrap();
        db.flush().unwrap();
    }
    drop(databases);
    let left = costs();
    assert_eq!(left.0, before.0, "the last one ends the threads");
    assert!(left.1 <= before.1, "{left:?}, before {before:?}");
}

/// What a thousand databases cost. Not a test: `cargo test --release -p sateen --test it
/// features::runtime::measure -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure() {
    const MANY: usize = 1000;
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
    };
    let directory = tempfile::tempdir().unwrap();
    let (before, memory, begun) = (costs(), resident(), Instant::now());
    let open = |n: usize| {
        let options = Options { runtime: Some(Runtime::process()), ..Options::default() };
        let db = Db::open(directory.path().join(n.to_string()), options).unwrap();
        db.put("key", [7; 100]).unwrap();
        db
    };
    let databases: Vec<_> = (0..MANY).map(open).collect();
    let opened = begun.elapsed();
    std::thread::sleep(Duration::from_secs(10));
    let (now, rest) = (costs(), cpu());
    std::thread::sleep(Duration::from_secs(10));
    let rest = (cpu() - rest).as_secs_f64() * 10.0;
    let resting = Runtime::process().metrics().resting;
    println!(
        "{MANY} databases: created in {opened:.1?}, {} threads, {:.1} descriptors and {} KiB each, \
         {resting} at rest with {rest:.2} % of a processor",
        now.0 - before.0,
        (now.1 - before.1) as f64 / MANY as f64,
        (resident() - memory) / MANY,
    );
    let begun = Instant::now();
    drop(databases);
    println!("closed in {:.1?}", begun.elapsed());
    let begun = Instant::now();
    let databases: Vec<_> = (0..MANY).map(open).collect();
    println!("opened again in {:.1?}", begun.elapsed());
    drop(databases);
}
