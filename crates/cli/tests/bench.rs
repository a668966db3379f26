//! `sateen bench` with other engines, from end to end. A test without its library prints: SKIPPED.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod peers;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Runs the benchmark with a peer on a few keys.
fn bench(folder: &Path, library: &Path, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["bench", "-n", "4000", "--key-size", "16", "--report-interval", "0", "--no-settle"])
        .arg("--peer")
        .arg(library)
        .args(words.split_whitespace())
        .arg("--json")
        .arg(folder.join("report.json"))
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Returns the runs of a benchmark that must succeed, and what it printed.
fn runs(library: &Path, words: &str) -> (Vec<Value>, String) {
    let folder = TempDir::new().unwrap();
    let output = bench(folder.path(), library, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = std::fs::read(folder.path().join("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&text).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    (report["runs"].as_array().unwrap().clone(), printed)
}

fn number(run: &Value, name: &str) -> f64 {
    run["measured"][name].as_f64().unwrap_or_else(|| panic!("{name}: {run}"))
}

/// Checks what must hold for reads and scans of keys that were all loaded.
fn check_reads(runs: &[Value]) {
    for run in runs {
        assert_eq!(number(run, "not_found"), 0.0, "{run}");
        assert!(number(run, "done") > 0.0, "{run}");
    }
    let scans = runs.iter().find(|run| run["workload"] == "seekrandom").unwrap();
    assert!(number(scans, "scanned") > 0.0, "{scans}");
}

#[test]
fn leveldb_is_measured_and_its_stalls_are_observed() {
    let Some(library) = peers::leveldb() else { return };
    let (runs, printed) = runs(
        &library,
        "-w fillrandom,readrandom,seekrandom --ops 4000 --wal buffered --memtable-size 64K \
         --peer-options max_file_size=1M;block_size=2K --device-limit 10M",
    );
    assert_eq!(runs.len(), 3);
    check_reads(&runs[1..]);
    let fill = &runs[0];
    assert_eq!(fill["engine"], "leveldb");
    assert!(fill["version"].as_str().unwrap().starts_with("LevelDB 1."), "{fill}");
    assert_eq!((&fill["config"]["jobs"], &fill["config"]["memtables"]), (&1.into(), &2.into()));
    // 4 MB arrive much faster than a device of 10 MB/s can store them in memtables of 64 KB.
    assert!(number(fill, "stall_count") > 0.0 && number(fill, "stall_ns") > 0.0, "{fill}");
    // Each flush syncs a table.
    assert!(number(fill, "barriers") >= 4_000_000.0 / 65_536.0 / 2.0, "{fill}");
    assert_eq!(fill["measured"]["io_classes"], serde_json::json!(["flush", "compaction"]));
    assert!(number(fill, "database_bytes") > 1e6, "{fill}");
    assert!(printed.contains("one background thread"), "{printed}");
}

#[test]
fn leveldb_runs_beside_sateen_with_the_same_settings() {
    let Some(library) = peers::leveldb() else { return };
    let (runs, _) = runs(
        &library,
        "-w fillseq --compare --rounds 1 --wal sync --ops 200 -t 1 --barrier-cost 2",
    );
    let engines: Vec<&str> = runs.iter().map(|run| run["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["sateen", "leveldb"]);
    for run in &runs {
        // Each write is synced, and each sync takes 2 ms or more.
        assert!(number(run, "barriers") >= 200.0, "{run}");
        assert!(number(run, "seconds") >= 0.4, "{run}");
    }
}

#[test]
fn what_leveldb_cannot_do_is_refused_before_anything_runs() {
    let Some(library) = peers::leveldb() else { return };
    let folder = TempDir::new().unwrap();
    for (words, part) in [
        ("", "--wal buffered"),
        ("--wal off", "--wal buffered"),
        ("--wal buffered --direct", "--direct"),
        ("--wal buffered --jobs 4", "--jobs"),
        ("--wal buffered --compression lz4", "compression=snappy"),
        ("--wal buffered --peer-rate-limit 10M", "--peer-rate-limit"),
        ("--wal buffered --peer-options level0_stop=4", "level0_stop"),
    ] {
        let output = bench(folder.path(), &library, words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(part), "{words}: {said}");
    }
}

#[test]
fn rocksdb_is_measured() {
    let Some(library) = peers::rocksdb() else { return };
    let (runs, _) = runs(
        &library,
        "-w fillrandom,readrandom,seekrandom --ops 4000 --wal buffered --device-limit 50M \
         --peer-rate-limit 40M --peer-options target_file_size_base=1048576",
    );
    check_reads(&runs[1..]);
    let fill = &runs[0];
    assert_eq!(fill["engine"], "rocksdb");
    assert!(fill["version"].as_str().unwrap().starts_with("RocksDB "), "{fill}");
    assert!(number(fill, "barriers") > 0.0, "{fill}");
}

#[test]
fn a_library_that_is_no_peer_is_refused() {
    let folder = TempDir::new().unwrap();
    let output = bench(folder.path(), Path::new("/no/lib.so"), "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--peer /no/lib.so: there is no such file"), "{said}");
}

#[test]
fn a_bench_that_fails_early_leaves_no_directory() {
    let folder = TempDir::new().unwrap();
    for more in [&[][..], &["--keep"], &["--use-existing"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_sateen"))
            .args(["bench", "-w", "readrandom", "-n", "100", "--ops", "100"])
            .args(["--db", "new/deep", "--set", "wal_dir=/dev/null/nowhere"])
            .args(more)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(!run.status.success() && said.contains("/dev/null/nowhere"), "{said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{more:?}");
    }
    // What was there stays.
    std::fs::create_dir(folder.path().join("new")).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["bench", "-w", "fillseq", "-n", "100", "--db", "new/deep"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(std::fs::read_dir(folder.path().join("new")).unwrap().count(), 0);
}
