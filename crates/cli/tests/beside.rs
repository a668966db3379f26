//! The command beside another process that writes the database: which process it names, where it
//! reads from by default, and that all verbs end with the same codes.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use tempfile::TempDir;

const KEYS: u64 = 1_000;

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn sateen(folder: &Path, arguments: &[&str]) -> Run {
    let output = command(folder, arguments).output().unwrap();
    Run {
        code: output.status.code().expect("not ended by a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn key(number: u64) -> String {
    format!("key{number:05}")
}

/// Returns the value of a key in a round. It is long and belongs to this key alone.
fn value(number: u64, round: u64) -> String {
    format!("{number} {round} ").repeat(40)
}

fn record(number: u64, round: u64) -> String {
    format!("{}\t{}\n", key(number), value(number, round))
}

/// A process that overwrites all keys in rounds until it is told to stop.
struct Writer {
    child: Child,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    feeder: JoinHandle<()>,
}

impl Writer {
    fn start(folder: &Path, settings: &[&str]) -> Writer {
        let small = ["memtable_bytes=64KiB", "level0_trigger=2", "manifest_bytes_max=16KiB"];
        let settings: Vec<&str> =
            small.iter().chain(settings).flat_map(|setting| ["--set", setting]).collect();
        let load = [&["db", "load", "d"][..], &settings].concat();
        let mut child = command(folder, &load).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, told) = (stop.clone(), rounds.clone());
        let feeder = std::thread::spawn(move || {
            for round in 1.. {
                for number in 0..KEYS {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    input.write_all(record(number, round).as_bytes()).unwrap();
                }
                told.store(round, Ordering::Relaxed);
            }
        });
        let writer = Writer { child, stop, rounds, feeder };
        writer.wait_for(2);
        writer
    }

    fn wait_for(&self, rounds: u64) {
        while self.rounds.load(Ordering::Relaxed) < rounds {
            std::thread::yield_now();
        }
    }

    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.feeder.join().unwrap();
        let ended = self.child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        self.rounds.load(Ordering::Relaxed)
    }
}

fn first_load(folder: &Path) {
    let records: String = (0..KEYS).map(|number| record(number, 0)).collect();
    fs::write(folder.join("first.tsv"), records).unwrap();
    let load = sateen(folder, &["db", "load", "d", "first.tsv"]);
    assert_eq!(load.code, 0, "{}", load.err);
}

/// Checks that each key appears once, in order, with a value of its own.
fn assert_whole(scan: &Run, reverse: bool) {
    assert_eq!(scan.code, 0, "{}", scan.err);
    assert!(!scan.err.contains("corruption"), "{}", scan.err);
    let mut numbers: Vec<u64> = Vec::new();
    for line in scan.out.lines() {
        let (name, text) = line.split_once('\t').unwrap();
        let mut words = text.split(' ');
        let number: u64 = words.next().unwrap().parse().unwrap();
        let round: u64 = words.next().unwrap().parse().unwrap();
        assert!(name == key(number) && text == value(number, round), "{line}");
        numbers.push(number);
    }
    if reverse {
        numbers.reverse();
    }
    assert!(numbers.into_iter().eq(0..KEYS), "{}", scan.err);
}

#[test]
fn scans_beside_a_process_that_overwrites() {
    let unleased: [&[&str]; 2] = [&[], &["reader_lease_bytes=0", "reader_lease_seconds=0"]];
    for settings in unleased {
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        first_load(at);
        let writer = Writer::start(at, settings);
        let mut notes = 0;
        for number in 0..12 {
            let reverse = number % 3 == 2;
            let scan = ["db", "scan", "d", "--reverse"];
            let scan = sateen(at, if reverse { &scan } else { &scan[..3] });
            assert_whole(&scan, reverse);
            notes += usize::from(!scan.err.is_empty());
            let got = sateen(at, &["db", "get", "d", &key(number * 7)]);
            assert_eq!(got.code, 0, "{}", got.err);
            assert!(got.out.starts_with(&format!("{} ", number * 7)), "{}", got.out);
            for verb in ["stats", "properties", "families"] {
                let run = sateen(at, &["db", verb, "d"]);
                assert_eq!((run.code, &*run.err), (0, ""), "{verb}");
            }
        }
        let check = sateen(at, &["db", "check", "d"]);
        assert_eq!(check.code, 0, "{}{}", check.out, check.err);
        let rounds = writer.stop();
        println!("{settings:?}: {rounds} rounds, {notes} scans of several moments");
        if settings.is_empty() {
            assert_eq!(notes, 0, "with a lease a scan is of one moment");
        }
        assert_whole(&sateen(at, &["db", "scan", "d"]), false);
    }
}

#[test]
fn the_process_that_has_a_database_open_is_named() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    first_load(at);
    let stats = sateen(at, &["db", "stats", "d"]);
    assert!(stats.out.starts_with("counters and times are those of this command"), "{}", stats.out);
    assert!(!stats.out.contains("has it open"), "{}", stats.out);
    let writer = Writer::start(at, &[]);
    let name = format!("sateen (pid {})", writer.child.id());
    for verb in [&["db", "put", "d", "k", "v"][..], &["db", "compact", "d"], &["db", "repair", "d"]]
    {
        let refused = sateen(at, verb);
        assert_eq!(refused.code, 1, "{}", refused.err);
        assert!(refused.err.contains(&format!("already open in {name}")), "{}", refused.err);
    }
    let stats = sateen(at, &["db", "stats", "d"]);
    assert!(stats.out.lines().next().unwrap().contains(&name), "{}", stats.out);
    let stats = sateen(at, &["db", "stats", "d", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats.out).unwrap();
    assert_eq!(stats["open_in"], name);
    let prometheus = sateen(at, &["db", "stats", "d", "--prometheus"]);
    let first = prometheus.out.lines().next().unwrap();
    assert!(first.starts_with("# ") && first.contains(&name), "{first}");
    writer.stop();
    let stats = sateen(at, &["db", "stats", "d", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats.out).unwrap();
    assert!(stats["open_in"].is_null());
}

#[test]
fn a_load_without_a_file_reads_standard_input() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let mut child = command(at, &["db", "load", "d"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a\t1\nb\t2\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sateen(at, &["db", "scan", "d"]).out, "a\t1\nb\t2\n");
}

/// 1: a named file or database cannot be used. 2: the command line is wrong, or an argument is
/// refused. 3: the database does not have the key, column family, property or LOG.
#[test]
fn exit_codes_are_the_same_for_all_verbs() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let put = sateen(at, &["db", "put", "d", "k", "v"]);
    assert_eq!(put.code, 0, "{}", put.err);
    fs::create_dir(at.join("empty")).unwrap();
    fs::write(at.join("file"), "text").unwrap();
    let rest: BTreeMap<&str, &[&str]> = [
        ("get", &["k"][..]),
        ("delete", &["k"]),
        ("scan", &[]),
        ("stats", &[]),
        ("check", &[]),
        ("scrub", &[]),
        ("checkpoint", &["copy"]),
        ("compact", &[]),
        ("repair", &[]),
        ("properties", &[]),
        ("families", &[]),
        ("options", &[]),
    ]
    .into();
    let ends = |arguments: &[&str], code: i32| {
        let run = sateen(at, arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}{}", run.out, run.err);
        assert!(!run.err.contains("panicked"), "{}", run.err);
    };
    for (verb, rest) in &rest {
        for place in ["nosuch", "empty", "file"] {
            ends(&[&["db", verb, place], *rest].concat(), 1);
        }
        ends(&[&["db", verb, "d"], *rest, &["--nosuch"]].concat(), 2);
        if *verb != "options" {
            ends(&[&["db", verb, "d"], *rest, &["--set", "nosuch=1"]].concat(), 2);
            ends(&[&["db", verb, "d"], *rest, &["--profile", "nosuch"]].concat(), 2);
        }
    }
    for noun in ["table", "wal", "manifest"] {
        for place in ["nosuch", "empty", "file"] {
            ends(&[noun, "dump", place], 1);
        }
        ends(&[noun, "dump"], 2);
    }
    for place in ["nosuch.tsv", "empty"] {
        ends(&["db", "load", "d", place, "--format", "tsv"], 1);
    }
    ends(&["db", "load", "d", "file"], 2);
    ends(&["db", "put", "d", "0", "v", "--encoding", "hex"], 2);
    ends(&["db", "options", "--profile", "nosuch"], 2);
    ends(&["db", "get", "d", "nosuch"], 3);
    ends(&["db", "get", "d", "k", "--cf", "nosuch"], 3);
    ends(&["db", "properties", "d", "nosuch"], 3);
    ends(&["log", "d"], 3);
    ends(&["db", "create-family", "d", "default"], 2);
    ends(&["db", "checkpoint", "d", "empty"], 2);
    ends(&["db", "checkpoint", "d", "nosuch/copy"], 2);
    ends(&["db", "backup", "d", "nosuch/backups"], 2);
    ends(&["bench", "--nosuch"], 2);
    ends(&["sim", "--nosuch"], 2);
    ends(&["demo", "--rate", "nosuch"], 2);
    let left: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

/// Keys may have another encoding than values, also where one record is named.
#[test]
fn records_with_keys_that_are_numbers_are_read_and_deleted_by_key() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("in.tsv"), "7\tseven\n300\tmany\n").unwrap();
    let done = |line: &str| {
        let run = sateen(at, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((run.code, &*run.err), (0, ""), "{line}");
        run.out
    };
    done("db load d in.tsv --key-type u64");
    assert_eq!(done("db get d 300 --key-type u64"), "many\n");
    assert_eq!(done("db get d 7 --key-type u64 --value-type hex"), "736576656e\n");
    let json: serde_json::Value =
        serde_json::from_str(&done("db get d 7 --key-type u64 --json")).unwrap();
    assert_eq!((&json["key_u64"], &json["value"]), (&7.into(), &"seven".into()));
    done("db put d 8 6569676874 --key-type u64 --value-type hex");
    assert_eq!(done("db get d 0000000000000008 --key-type hex"), "eight\n");
    done("db delete d 7 --key-type u64");
    done("db delete-range d 256 400 --key-type u64");
    assert_eq!(done("db scan d --key-type u64"), "8\teight\n");
    done("db compact d --from 0 --to 9 --key-type u64");
    done("db size d 0 9 --key-type u64");
}
