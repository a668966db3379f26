//! Figures that no workload of the benchmark shows. Not tests: run them by hand with
//! `cargo test --release -p sateen --test it measure -- --ignored --nocapture`.

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
