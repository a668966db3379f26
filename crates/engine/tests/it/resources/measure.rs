//! Figures that no workload of the benchmark shows. Not tests: run them by hand with
//! `cargo test --release -p sateen --test it resources::measure -- --ignored --nocapture`.

use std::time::Instant;

use sateen::{Db, Options, WalMode};

/// How long a database takes to open whose process was killed with full logs: everything written
/// since the last flush is in the log alone.
#[test]
#[ignore = "a measurement"]
fn reopen_after_a_kill() {
    for megabytes in [64_u64, 256] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options { wal: WalMode::Buffered, ..Options::default() };
        // Large enough that nothing is flushed before the end.
        options.column_family.memtable_bytes = 1 << 30;
        let db = Db::open(directory.path(), options.clone()).unwrap();
        let entries = megabytes * 1000;
        for i in 0..entries {
            let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            db.put(key, [7; 1040]).unwrap();
        }
        // The directory as a kill would leave it: what the process wrote, nothing more.
        let copy = tempfile::tempdir().unwrap();
        let mut log_bytes = 0;
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "LOCK" {
                let copied =
                    std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
                if entry.path().extension().is_some_and(|ending| ending == "wal") {
                    log_bytes += copied;
                }
            }
        }
        drop(db);
        options.column_family.memtable_bytes = 64 << 20;
        let started = Instant::now();
        let db = Db::open(copy.path(), options).unwrap();
        let took = started.elapsed();
        assert!(
            db.get((entries - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes())
                .unwrap()
                .is_some()
        );
        println!(
            "{} MiB of log: opened in {:.3} s, {:.3} s for 64 MiB",
            log_bytes >> 20,
            took.as_secs_f64(),
            took.as_secs_f64() * f64::from(64 << 20) / log_bytes as f64
        );
    }
}

/// Nanoseconds of processor time of this process, all threads together.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap());
    seconds * 1_000_000_000 + rest
}

/// What column families cost that nobody writes to.
#[test]
#[ignore = "a measurement"]
fn many_families() {
    for count in [1_usize, 100, 1000] {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path(), Options::default()).unwrap();
        let family_options = Options::default().column_family;
        let started = Instant::now();
        let families: Vec<_> = (0..count)
            .map(|i| db.create_column_family(&format!("f{i}"), family_options.clone()).unwrap())
            .collect();
        let made = started.elapsed();
        let put = |seconds: u64| {
            let (started, cpu) = (Instant::now(), cpu_ns());
            let mut writes = 0_u64;
            while started.elapsed().as_secs() < seconds {
                for _ in 0..100 {
                    let mut batch = sateen::WriteBatch::new();
                    for family in families.iter().take(2) {
                        batch.to(family).put(writes.to_be_bytes(), [7; 100]).unwrap();
                    }
                    db.write(&batch, &sateen::WriteOptions::default()).unwrap();
                    writes += 1;
                }
            }
            (writes / seconds, (cpu_ns() - cpu) / writes)
        };
        let (rate, cpu_each) = put(5);
        db.flush_all().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        let (idle, cpu) = (Instant::now(), cpu_ns());
        std::thread::sleep(std::time::Duration::from_secs(5));
        let part = (cpu_ns() - cpu) as f64 / idle.elapsed().as_nanos() as f64;
        println!(
            "{count} families: made in {made:.1?}, {rate} batches/s, {cpu_each} ns of CPU each, \
             idle {:.2} % of a processor, {} MiB in memory",
            part * 100.0,
            db.metrics().memory.total() >> 20
        );
    }
}
