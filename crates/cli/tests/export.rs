//! `db export` and the way back, and the types of keys.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn sateen(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs it and returns what it printed, without the end of the last line.
fn done(folder: &Path, words: &[&str]) -> String {
    let run = sateen(folder, words);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success() && said.is_empty(), "{words:?}: {said}");
    String::from_utf8(run.stdout).unwrap().trim_end().to_owned()
}

/// Runs it and returns what it said about its failure.
fn failed(folder: &Path, words: &[&str], code: i32) -> String {
    let run = sateen(folder, words);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(code), "{words:?}: {said}");
    said
}

#[test]
fn an_export_in_each_format_is_the_same_database_again() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    for key in ["0", "7", "18446744073709551615"] {
        done(at, &["db", "put", "library", key, "1", "--encoding", "u64"]);
    }
    for name in ["keys.csv", "keys.tsv", "keys.jsonl"] {
        let types = ["--key-type", "u64", "--value-type", "hex"];
        let said = done(at, &[&["db", "export", "library", name][..], &types].concat());
        assert!(said.starts_with("exported 3 records"), "{said}");
        let text = fs::read_to_string(at.join(name)).unwrap();
        assert!(text.contains("18446744073709551615") && text.contains("0000000000000001"));
        let copy = format!("copy-of-{name}");
        done(at, &[&["db", "load", &copy, name][..], &types].concat());
        done(at, &["db", "diff", "library", &copy]);
        assert!(!at.join(format!("{name}.exporting")).exists());
    }
    let json = fs::read_to_string(at.join("keys.jsonl")).unwrap();
    let first = json.lines().next();
    assert_eq!(first, Some(r#"{"key_u64":0,"value_hex":"0000000000000001"}"#));
    assert_eq!(
        done(at, &["db", "get", "library", "0000000000000007", "--hex"]),
        "0000000000000001"
    );
    assert_eq!(done(at, &["db", "get", "library", "7", "--encoding", "u64"]), "1");
}

#[test]
fn an_export_that_fails_leaves_nothing_and_says_why() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    done(at, &["db", "put", "library", "walden", "Thoreau"]);
    let said = failed(at, &["db", "export", "library", "out.csv", "--key-type", "u64"], 1);
    assert!(
        said.contains("key: 6 bytes, and a u64 has 8") && said.contains("out.csv was not written")
    );
    let said = failed(at, &["db", "export", "library", "out.parquet"], 2);
    assert!(said.contains("--format tsv, csv or jsonl"), "{said}");
    let said = failed(at, &["db", "export", "nowhere", "out.csv"], 1);
    assert!(said.contains("there is no database"), "{said}");
    let left: Vec<_> = fs::read_dir(at).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["library"]);
    fs::write(at.join("out.csv"), "mine").unwrap();
    let said = failed(at, &["db", "export", "library", "out.csv"], 1);
    assert!(said.contains("--overwrite"), "{said}");
    assert_eq!(fs::read_to_string(at.join("out.csv")).unwrap(), "mine");
    done(at, &["db", "export", "library", "out.csv", "--overwrite"]);
    assert_eq!(fs::read_to_string(at.join("out.csv")).unwrap(), "walden,Thoreau\n");
}

#[test]
fn an_interrupted_export_ends_with_its_code_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    let mut text = String::new();
    for number in 0..300_000 {
        text.push_str(&format!("{number:08}\t{number}\n"));
    }
    fs::write(at.join("in.tsv"), text).unwrap();
    done(at, &["db", "load", "library", "in.tsv"]);
    let draft = at.join("out.tsv.exporting");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["db", "export", "library", "out.tsv"])
        .current_dir(at)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !draft.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let _ended = kill_process(Pid::from_child(&child), Signal::INT);
    let run = child.wait_with_output().unwrap();
    // The export may have been faster than the signal.
    let complete = at.join("out.tsv").exists();
    assert_eq!(run.status.code(), Some(if complete { 0 } else { 130 }));
    assert!(!draft.exists());
}

#[test]
fn one_export_at_a_time_writes_a_file() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    done(at, &["db", "put", "library", "walden", "Thoreau"]);
    let draft = at.join("out.tsv.exporting");
    let other = fs::File::create(&draft).unwrap();
    other.lock().unwrap();
    let said = failed(at, &["db", "export", "library", "out.tsv"], 1);
    assert!(said.contains("out.tsv: an export to it is under way"), "{said}");
    assert!(draft.exists());
    // What a killed one left is written anew.
    fs::write(&draft, "half of an old export, which is longer").unwrap();
    drop(other);
    done(at, &["db", "export", "library", "out.tsv"]);
    assert_eq!(fs::read_to_string(at.join("out.tsv")).unwrap(), "walden\tThoreau\n");
    assert!(!draft.exists());
}

#[test]
fn the_device_is_measured_and_nothing_is_left() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    done(at, &["db", "put", "library", "a", "1"]);
    let before = fs::read_dir(at.join("library")).unwrap().count();
    let json = done(at, &["db", "bench-device", "library", "--seconds", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["measured"]["write_bytes_per_second"].as_u64() > Some(0), "{json}");
    assert!(json["learned"]["read_bytes_per_second"].as_u64() > Some(0), "{json}");
    assert_eq!(json["profile"], "sateen");
    assert_eq!(fs::read_dir(at.join("library")).unwrap().count(), before);
    let said = failed(at, &["db", "bench-device", "none"], 1);
    assert!(said.contains("none: No such file"), "{said}");
}

#[test]
fn column_families_and_ranges_by_the_names_of_ldb() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    for key in ["a", "b", "c"] {
        done(at, &["db", "put", "library", key, "1"]);
    }
    done(at, &["db", "deleterange", "library", "a", "c"]);
    assert_eq!(done(at, &["db", "scan", "library"]), "c\t1");
    done(at, &["db", "create_column_family", "library", "users"]);
    done(at, &["db", "put", "library", "ann", "2", "--cf", "users"]);
    done(at, &["db", "compact", "library", "--cf", "users"]);
    let size = done(at, &["db", "approxsize", "library", "a", "z", "--cf", "users"]);
    assert!(size.parse::<u64>().unwrap() > 0, "{size}");
    let said = failed(at, &["db", "drop-family", "library", "users"], 2);
    assert!(said.contains("--yes"), "{said}");
    done(at, &["db", "drop_column_family", "library", "users", "--yes"]);
    assert_eq!(done(at, &["db", "families", "library"]), "default");
    let said = failed(at, &["db", "drop-family", "library", "users", "--yes"], 3);
    assert!(said.contains("users"), "{said}");
    failed(at, &["db", "drop-family", "library", "default", "--yes"], 2);
}
