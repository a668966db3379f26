//! The command as a user sees it: output, its stream, and the exit code. Each test has its own
//! directory and runs the real binary.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

struct Run {
    code: i32,
    out: Vec<u8>,
    err: String,
}

impl Run {
    fn out(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }
}

/// Runs `sateen` in `folder`, with `input` on standard input.
fn sateen_with(folder: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that does not read its input may have ended already.
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().expect("not ended by a signal"),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn sateen(folder: &Path, arguments: &[&str]) -> Run {
    sateen_with(folder, arguments, b"")
}

/// Runs it and checks that it succeeds and prints nothing on standard error.
fn done(folder: &Path, arguments: &[&str]) -> Run {
    let run = sateen(folder, arguments);
    assert_eq!((run.code, &*run.err), (0, ""), "{arguments:?}");
    run
}

/// Runs it and checks that it fails with `code`, prints `says`, and shows no stack trace.
fn refused(folder: &Path, arguments: &[&str], code: i32, says: &[&str]) {
    let run = sateen(folder, arguments);
    assert_eq!(run.code, code, "{arguments:?}: {}", run.err);
    for part in says {
        assert!(run.err.contains(part), "{arguments:?}: {}", run.err);
    }
    assert!(!run.err.contains("panicked") && !run.err.contains("backtrace"), "{}", run.err);
}

#[test]
fn what_was_put_is_got_until_it_is_deleted() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, &["db", "put", "library", "walden", "Thoreau, 1854"]);
    assert_eq!(done(at, &["db", "get", "library", "walden"]).out(), "Thoreau, 1854\n");
    let json = done(at, &["db", "--json", "get", "library", "walden"]);
    assert_eq!(json.out(), "{\"key\":\"walden\",\"value\":\"Thoreau, 1854\"}\n");
    done(at, &["db", "put", "library", "00ff", "cafe", "--encoding", "hex", "--sync"]);
    let hex = done(at, &["db", "get", "library", "00ff", "--encoding", "hex"]);
    assert_eq!(hex.out(), "cafe\n");
    done(at, &["db", "delete", "library", "walden", "never-there"]);
    refused(at, &["db", "get", "library", "walden"], 3, &["no such key: walden"]);
}

#[test]
fn a_value_without_argument_is_standard_input() {
    let folder = TempDir::new().unwrap();
    let value = b"\x89PNG\0\xFF\n";
    let run = sateen_with(folder.path(), &["db", "put", "d", "cover"], value);
    assert_eq!((run.code, &*run.err), (0, ""));
    let got = done(folder.path(), &["db", "get", "d", "cover"]);
    assert_eq!(got.out, [&value[..], b"\n"].concat());
}

#[test]
fn a_user_s_mistakes_are_named_and_change_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for verb in ["get", "delete"] {
        refused(at, &["db", verb, "missing", "k"], 1, &["missing: there is no database"]);
    }
    refused(at, &["db", "load", "new", "absent.tsv"], 1, &["absent.tsv: No such file"]);
    fs::write(at.join("books"), "a\tb\n").unwrap();
    refused(at, &["db", "load", "new", "books"], 2, &["books", "--format"]);
    refused(at, &["db", "put", "new", "k", "v", "--set", "nonsense=1"], 2, &["nonsense"]);
    refused(at, &["db", "put", "new", "k", "v", "--profile", "triadd"], 2, &["unknown profile"]);
    refused(at, &["db", "put", "new", "0", "v", "--encoding", "hex"], 2, &["0: an odd number"]);
    refused(at, &["db", "gett", "new", "k"], 2, &["'gett'", "did you mean `sateen db get`?"]);
    refused(at, &["get", "new", "k"], 2, &["did you mean `sateen db get`?"]);
    assert!(!at.join("new").exists() && !at.join("missing").exists());
    done(at, &["db", "put", "d", "k", "v"]);
    refused(at, &["db", "scan", "d", "--from", "b", "--to", "a"], 2, &["--from", "--to"]);
    refused(at, &["db", "get", "d", "k", "--cf", "x"], 3, &["\"x\"", "default"]);
    refused(at, &["db", "get", "books", "k"], 1, &["books"]);
}

#[test]
fn json_errors_are_json() {
    let folder = TempDir::new().unwrap();
    let run = sateen(folder.path(), &["db", "get", "missing", "k", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!((run.code, error["code"].as_i64()), (1, Some(1)));
    assert!(error["error"].as_str().unwrap().contains("missing"));
}

/// Records that are awkward in every format.
fn awkward() -> String {
    let mut lines = String::from("\t\nempty\t\n");
    for byte in 0..=255 {
        lines.push_str(&format!("k\\x{byte:02x}\tv\\x{byte:02x},\\t\\n\\r\"{{}}é\n"));
    }
    lines
}

#[test]
fn what_scan_prints_load_takes_back_in_every_format() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("first.tsv"), awkward()).unwrap();
    let loaded = done(at, &["db", "load", "first", "first.tsv"]);
    assert!(loaded.out().starts_with("loaded 258 records"), "{}", loaded.out());
    let reference = done(at, &["db", "scan", "first"]).out;
    assert_eq!(reference.iter().filter(|byte| **byte == b'\n').count(), 258);
    for format in ["tsv", "csv", "jsonl"] {
        for encoding in ["text", "hex", "base64"] {
            let options = ["--format", format, "--encoding", encoding];
            let scan = [&["db", "scan", "first"][..], &options].concat();
            let name = format!("{format}-{encoding}");
            fs::write(at.join(&name), done(at, &scan).out).unwrap();
            let copy = format!("copy-{name}");
            let load = [&["db", "load", &copy, &name][..], &options].concat();
            done(at, &load);
            assert_eq!(done(at, &["db", "scan", &copy]).out, reference, "{name}");
        }
    }
}

#[test]
fn scan_keeps_to_its_bounds_in_both_directions() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let run = sateen_with(at, &["db", "load", "d", "-"], b"a\t1\nab\t2\nb\t3\nba\t4\nc\t5\n");
    assert_eq!(run.code, 0, "{}", run.err);
    let keys = |arguments: &[&str]| -> String {
        let scan = [&["db", "scan", "d"][..], arguments].concat();
        let text = done(at, &scan).out().to_owned();
        text.lines().map(|line| line.split('\t').next().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&[]), "a ab b ba c");
    assert_eq!(keys(&["--reverse"]), "c ba b ab a");
    assert_eq!(keys(&["--from", "ab", "--to", "c"]), "ab b ba");
    assert_eq!(keys(&["--from", "ab", "--to", "c", "--reverse", "--limit", "2"]), "ba b");
    assert_eq!(keys(&["--prefix", "a"]), "a ab");
    assert_eq!(keys(&["--prefix", "b", "--reverse"]), "ba b");
    assert_eq!(keys(&["--limit", "0"]), "");
}

#[test]
fn a_bad_line_is_named_and_everything_before_it_is_loaded() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let long = "k".repeat(70_000);
    for (name, bad) in [("a.tsv", "no tab here"), ("b.tsv", &*format!("{long}\tv"))] {
        let db = format!("db-{name}");
        fs::write(at.join(name), format!("one\t1\ntwo\t2\n{bad}\nthree\t3\n")).unwrap();
        let says = format!("{name}:3: ");
        refused(at, &["db", "load", &db, name], 1, &[&says, "up to line 2", "2 records"]);
        assert_eq!(done(at, &["db", "scan", &db]).out(), "one\t1\ntwo\t2\n");
    }
    refused(at, &["db", "load", "dry", "a.tsv", "--dry-run"], 1, &["a.tsv:3: ", "nothing was"]);
    assert!(!at.join("dry").exists());
}

#[test]
fn column_families_are_apart() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, &["db", "put", "d", "k", "of default"]);
    done(at, &["db", "put", "d", "k", "of loans", "--cf", "loans", "--create-cf"]);
    assert_eq!(done(at, &["db", "get", "d", "k"]).out(), "of default\n");
    assert_eq!(done(at, &["db", "get", "d", "k", "--cf", "loans"]).out(), "of loans\n");
    assert_eq!(done(at, &["db", "families", "d"]).out(), "default\nloans\n");
}

#[test]
fn compaction_keeps_what_is_there() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let text: String = (0..2000).map(|i| format!("key{i:05}\tvalue{i}\n")).collect();
    let run = sateen_with(at, &["db", "load", "d", "-"], text.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    done(at, &["db", "delete", "d", "key00007"]);
    let before = done(at, &["db", "scan", "d"]).out;
    done(at, &["db", "compact", "d"]);
    done(at, &["db", "compact", "d", "--from", "key00100", "--to", "key00200"]);
    assert_eq!(done(at, &["db", "scan", "d"]).out, before);
}

#[test]
fn a_checkpoint_is_a_database_and_check_finds_nothing_wrong() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let run = sateen_with(at, &["db", "load", "d", "-"], b"a\t1\nb\t2\n");
    assert_eq!(run.code, 0, "{}", run.err);
    done(at, &["db", "put", "d", "c", "3"]);
    done(at, &["db", "checkpoint", "d", "copy"]);
    done(at, &["db", "put", "d", "later", "4"]);
    assert_eq!(done(at, &["db", "scan", "copy"]).out(), "a\t1\nb\t2\nc\t3\n");
    assert!(done(at, &["db", "check", "copy"]).out().contains("sound"));
    refused(at, &["db", "checkpoint", "d", "copy"], 2, &["copy"]);
    let stats = done(at, &["db", "stats", "d", "--prometheus"]);
    assert!(stats.out().contains("sateen_"), "{}", stats.out());
    let properties = done(at, &["db", "properties", "d", "sateen.num-snapshots"]);
    assert_eq!(properties.out(), "sateen.num-snapshots = 0\n");
    refused(at, &["db", "properties", "d", "sateen.x"], 3, &["sateen.x", "sateen.stats"]);
}

#[test]
fn damage_is_found_and_named() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let text: String = (0..500).map(|i| format!("key{i:05}\tvalue{i}\n")).collect();
    let run = sateen_with(at, &["db", "load", "d", "-"], text.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    let mut largest = (0, std::path::PathBuf::new());
    for entry in fs::read_dir(at.join("d")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|extension| extension == "sat") {
            largest = largest.max((entry.metadata().unwrap().len(), entry.path()));
        }
    }
    let mut bytes = fs::read(&largest.1).unwrap();
    bytes[100] ^= 1;
    fs::write(&largest.1, bytes).unwrap();
    let run = sateen(at, &["db", "check", "d"]);
    assert_eq!(run.code, 1, "{}", run.err);
    let name = largest.1.file_name().unwrap().to_str().unwrap();
    assert!(format!("{}{}", run.out(), run.err).contains(name), "{} {}", run.out(), run.err);
    let scan = sateen(at, &["db", "scan", "d"]);
    assert_eq!(scan.code, 1);
    assert!(scan.err.contains(name) && !scan.err.contains("panicked"), "{}", scan.err);
}

/// Returns the files of database `d` with this extension.
fn files(at: &Path, extension: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(at.join("d"))
        .unwrap()
        .map(|entry| format!("d/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|name| name.ends_with(extension) || name.contains(extension))
        .collect();
    names.sort();
    names
}

#[test]
fn files_are_dumped_as_text_and_json() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    assert_eq!(sateen_with(at, &["db", "load", "d", "-"], b"a\t1\nb\t2\nc\t\\xff\n").code, 0);
    done(at, &["db", "delete", "d", "b"]);
    let table = files(at, ".sat").remove(0);
    let run = done(at, &["table", "dump", &table, "--values"]);
    assert!(run.out().starts_with("file ") && run.out().contains("family 0, level 0, entries 3"));
    assert!(
        run.out().contains("\tput\t1\n") && run.out().contains("\tput\t\\xff\n"),
        "{}",
        run.out()
    );
    let run = done(at, &["table", "dump", &table, "--limit", "1", "--json", "--values"]);
    let lines: Vec<serde_json::Value> =
        run.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{}", run.out());
    assert_eq!((&lines[0]["item"], &lines[1]["entries"]), (&"file".into(), &3.into()));
    assert_eq!((&lines[2]["key"], &lines[2]["value"]), (&"a".into(), &"1".into()));
    let run = done(at, &["table", "dump", &table, "--values", "--hex"]);
    assert!(run.out().contains("61\t") && run.out().contains("\tput\t31\n"), "{}", run.out());
    let run = done(at, &["table", "dump", &table, "--limit", "1", "--hex", "--json"]);
    assert!(run.out().contains("\"key_hex\":\"61\""), "{}", run.out());
    let manifest = files(at, "MANIFEST").pop().unwrap();
    let run = done(at, &["manifest", "dump", &manifest, "--hex"]);
    assert!(run.out().contains("keys 61 to 63"), "{}", run.out());
    let run = done(at, &["manifest", "dump", &manifest]);
    assert!(run.out().contains("create default") && run.out().contains("ends at"), "{}", run.out());
    done(at, &["manifest", "dump", &manifest, "--json"]);
    // A WAL is not a table, and damage of a table is reported after the sound part.
    for log in files(at, ".wal") {
        assert!(done(at, &["wal", "dump", &log]).out().starts_with("WAL "));
        refused(at, &["table", "dump", &log], 1, &[&log]);
    }
    refused(at, &["wal", "dump", "d/missing"], 1, &["d/missing"]);
    refused(at, &["wal", "dump", "d"], 1, &["directory"]);
    let mut bytes = fs::read(at.join(&table)).unwrap();
    bytes[4096] ^= 1;
    fs::write(at.join(&table), bytes).unwrap();
    let run = sateen(at, &["table", "dump", &table]);
    assert_eq!(run.code, 1);
    assert!(run.out().starts_with("file "), "{}", run.out());
    assert!(run.err.contains(&table) && run.err.contains("offset 4096"), "{}", run.err);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // More than a pipe holds, so that the writer meets the closed end.
    let text: String = (0..20_000).map(|i| format!("key{i:05}\t{}\n", "v".repeat(50))).collect();
    let run = sateen_with(at, &["db", "load", "d", "-"], text.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    let mut child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["db", "scan", "d"])
        .current_dir(at)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut output = BufReader::with_capacity(64, child.stdout.take().unwrap());
    output.read_line(&mut first).unwrap();
    drop(output);
    assert!(first.starts_with("key00000\t"));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*errors), (Some(0), ""));
}

#[test]
fn help_has_examples_and_exit_codes() {
    let folder = TempDir::new().unwrap();
    let help = done(folder.path(), &["--help"]);
    assert!(help.out().contains("Exit codes:") && help.out().contains("  3  "));
    let help = done(folder.path(), &["db", "load", "--help"]);
    assert!(help.out().contains("Examples:\n  sateen db load library books.tsv"));
    let options = done(folder.path(), &["db", "options", "--profile", "leveldb", "--json"]);
    let values: serde_json::Value = serde_json::from_str(options.out()).unwrap();
    assert_eq!(values["memtable_bytes"], "4MiB");
}

#[test]
fn the_options_of_a_database_are_shown() {
    let folder = TempDir::new().unwrap();
    done(folder.path(), &["db", "put", "library", "key", "value", "--set", "level0_trigger=9"]);
    let options = done(folder.path(), &["db", "options", "library"]);
    assert!(options.out().starts_with("[database]\nprofile = "));
    assert!(options.out().contains("\n\n[column family default]\n"), "{}", options.out());
    assert!(options.out().contains("\nlevel0_trigger = 9\n"));
    let options = done(folder.path(), &["db", "options", "library", "--json"]);
    let values: serde_json::Value = serde_json::from_str(options.out()).unwrap();
    assert_eq!(values["column_families"]["default"]["level0_trigger"], "9");
    let nothing = sateen(folder.path(), &["db", "options", "elsewhere"]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.err.contains("there is no database"), "{}", nothing.err);
}

#[test]
fn a_simulation_is_the_same_each_time_and_tells_mistakes() {
    let folder = TempDir::new().unwrap();
    let arguments =
        ["sim", "--policy", "silk,rocksdb", "--rate", "5k", "--duration", "3", "--json", "-"];
    let one = done(folder.path(), &arguments);
    assert_eq!(one.out(), done(folder.path(), &arguments).out());
    let reports: serde_json::Value = serde_json::from_str(one.out()).unwrap();
    assert_eq!(reports[0]["policy"], "silk");
    assert_eq!(reports[1]["series"].as_array().unwrap().len(), 3);
    let text = done(folder.path(), &["sim", "--rate", "1k", "--duration", "1"]);
    assert!(text.out().starts_with("policy") && text.out().contains("rocksdb"));
    for (wrong, says) in [
        (["--policy", "rocksbd"], "rocksbd"),
        (["--workload", "ycsb-z"], "ycsb-z"),
        (["--set", "colour=red"], "colour"),
        (["--duration", "0"], "--duration"),
    ] {
        refused(folder.path(), &["sim", wrong[0], wrong[1]], 2, &[says]);
    }
}

/// Interrupts the process as Ctrl-C does.
fn interrupt(child: &Child) {
    let process = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(process, Signal::INT).unwrap();
}

#[test]
fn an_interrupted_load_keeps_what_was_read_and_says_how_much() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["db", "load", "d", "-"])
        .current_dir(at)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The text is more than a pipe holds, so that the load is well under way when all is written.
    let text: String = (0..50_000).map(|i| format!("key{i:05}\t{}\n", "v".repeat(50))).collect();
    stdin.write_all(text.as_bytes()).unwrap();
    stdin.write_all(b"half a li").unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted") && said.contains("loaded up to line"), "{said}");
    assert!(done(at, &["db", "check", "d"]).out().contains("sound"));
    let stored = done(at, &["db", "scan", "d"]).out;
    let records = stored.iter().filter(|byte| **byte == b'\n').count();
    assert!(said.contains(&format!("{records} records")), "{records}: {said}");
    assert!(text.as_bytes().starts_with(&stored), "a prefix of the file");
}

#[test]
fn an_interrupted_benchmark_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["bench", "-w", "overwrite", "-n", "1000", "-d", "600", "--rate", "1000"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    // The first message tells that the measurement's process has its database open.
    errors.read_line(&mut said).unwrap();
    assert!(!listing(folder.path()).is_empty());
    interrupt(&child);
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("sateen: interrupted"), "{said}");
    assert_eq!(listing(folder.path()), Vec::<String>::new());
}

fn listing(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn statistics_are_values_in_json() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, &["db", "put", "d", "k", "v"]);
    let run = done(at, &["db", "stats", "d", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(run.out()).unwrap();
    assert_eq!(stats["health"], "ok");
    let family = &stats["column_families"][0];
    assert_eq!((&family["name"], family["levels"][0].is_object()), (&"default".into(), true));
}

/// Returns a row for each of `count` keys from `first` on.
fn rows(first: u32, count: u32) -> String {
    (first..first + count).map(|i| format!("key{i:05}\tvalue {i:080}\n")).collect()
}

#[test]
fn what_files_hold_is_told_whoever_asks() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let small = ["--set", "table_bytes=16KiB", "--set", "flush_table_bytes=16KiB"];
    let load = |text: &str| {
        let run =
            sateen_with(at, &[&["db", "load", "d", "-"], &small[..]].concat(), text.as_bytes());
        assert_eq!(run.code, 0, "{}", run.err);
    };
    load(&rows(0, 3_000));
    done(at, &[&["db", "compact", "d"], &small[..]].concat());
    load(&rows(1_000, 500));
    done(at, &[&["db", "compact", "d"], &small[..]].concat());
    let run = done(at, &["db", "stats", "d", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(run.out()).unwrap();
    let sum = |of: &str| {
        stats["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file[of].as_u64().unwrap())
            .sum::<u64>()
    };
    let (live, gone) = (sum("live_bytes"), sum("dead_bytes") + sum("punched_bytes"));
    assert!(live > 100_000 && gone > 10_000, "{}", run.out());
    let levels = stats["column_families"][0]["levels"].as_array().unwrap();
    assert!(levels.iter().any(|level| level["target_bytes"].as_u64() > Some(0)), "{}", run.out());
    let text = done(at, &["db", "stats", "d"]);
    assert!(text.out().contains("given back    holes\n"), "{}", text.out());
    let prometheus = done(at, &["db", "stats", "d", "--prometheus"]);
    let told = |state: &str| {
        let name = format!("sateen_table_file_bytes{{state=\"{state}\"}} ");
        let value = prometheus.out().lines().find_map(|line| line.strip_prefix(&name));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap()
    };
    assert_eq!((told("live"), told("dead") + told("punched")), (live, gone));
}

#[test]
fn the_command_that_a_refusal_names_makes_it_open() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let guards = [
        "--profile",
        "pebblesdb",
        "--set",
        "memtable_bytes=64KiB",
        "--set",
        "table_bytes=64KiB",
        "--set",
        "level_base_bytes=256KiB",
    ];
    done(
        at,
        &[&["db", "put", "d", "k", "v", "--cf", "other", "--create-cf"], &guards[..]].concat(),
    );
    for first in [0, 1, 0, 2, 5, 7, 9, 11] {
        let load = [&["db", "load", "d", "-", "--cf", "other"], &guards[..]].concat();
        let run = sateen_with(at, &load, rows(first, 4_000).as_bytes());
        assert_eq!(run.code, 0, "{}", run.err);
    }
    // Read-only commands still work.
    let get = ["db", "get", "d", "key00003", "--cf", "other"];
    assert!(done(at, &get).out().starts_with("value 0"));
    assert!(done(at, &["db", "stats", "d"]).out().contains("** other **"));
    let put = ["db", "put", "d", "k", "w", "--cf", "other"];
    let run = sateen_with(at, &put, b"");
    assert_eq!(run.code, 2, "{}", run.err);
    let (_, command) = run.err.split_once("compact it first: sateen ").unwrap();
    let words: Vec<_> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    done(at, &words);
    done(at, &put);
    assert!(done(at, &get).out().starts_with("value 0"));
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_measuring() {
    let folder = TempDir::new().unwrap();
    let report = "missing/report.html";
    refused(folder.path(), &["demo", "--html", report, "--seconds", "1"], 1, &[report, "No such"]);
    assert_eq!(listing(folder.path()), Vec::<String>::new());
}

#[test]
fn what_is_no_database_is_not_repaired() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("other")).unwrap();
    fs::write(at.join("other/file"), "text").unwrap();
    refused(at, &["db", "repair", "other"], 1, &["other", "no database here"]);
    assert_eq!(listing(&at.join("other")), ["file"]);
}
