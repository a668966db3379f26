//! `sateen demo` as a user runs it: its output, the files it leaves, and its errors.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Returns the demo on a few keys, with its temporary files in `home`.
fn demo(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.args(["demo", "--keys", "1000", "--rate", "500"]).args(words);
    command.env("TMPDIR", home).env_remove("SATEEN_ROCKSDB_LIB").stdin(Stdio::null());
    command
}

fn listing(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn without_a_terminal_it_prints_plain_lines_and_leaves_the_report_alone() {
    let home = TempDir::new().unwrap();
    let output = demo(home.path(), &["--seconds", "2", "--json"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(['\x1b', '\r']), "{said}");
    assert!(said.contains("removes it") && said.contains("p99"), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["verdict"].as_str().unwrap().contains("wait more than 100 ms"), "{json}");
    assert!(json["busy"].is_boolean() && json["others_cpus"].is_number(), "{json}");
    assert!(["rocksdb", "profile"].contains(&json["opponent"]["kind"].as_str().unwrap()));
    assert_eq!(json["device"]["bytes_per_second"], 200_000_000);
    let engines = json["engines"].as_array().unwrap();
    assert_eq!(engines.len(), 2);
    for engine in engines {
        assert_eq!(engine["timeline"].as_array().unwrap().len(), 2, "{engine}");
        assert!(engine["done"].as_u64().unwrap() > 0, "{engine}");
    }
    let report = json["report"].as_str().unwrap();
    let page = fs::read_to_string(report).unwrap();
    assert!(page.contains("200 MB/s of reads") && page.contains("wait more than 100 ms"));
    assert_eq!(listing(home.path()).len(), 1, "the report's directory alone");
    assert_eq!(listing(Path::new(report).parent().unwrap()), ["report.html"]);
}

#[test]
fn an_interrupted_demo_leaves_no_file_and_no_process() {
    let home = TempDir::new().unwrap();
    let mut parent = demo(home.path(), &["--seconds", "600"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(parent.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("loaded in") {
        assert!(errors.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let children = fs::read_to_string(children).unwrap_or_default();
    assert!(!listing(home.path()).is_empty());
    kill_process(Pid::from_child(&parent), Signal::INT).unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(parent.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("sateen: interrupted"), "{said}");
    assert_eq!(listing(home.path()), Vec::<String>::new());
    for child in children.split_whitespace() {
        assert!(!Path::new("/proc").join(child).exists(), "process {child} is left");
    }
}

#[test]
fn a_place_or_library_that_will_not_do_is_refused_before_anything_runs() {
    let home = TempDir::new().unwrap();
    // Not even root can make a directory there.
    let run = demo(Path::new("/proc"), &["--seconds", "1"]).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("/proc: cannot make a directory") && said.contains("--db"), "{said}");
    let run = demo(home.path(), &["--peer", "/no/lib.so"]).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("/no/lib.so: there is no such file"), "{said}");
    let mut by_variable = demo(home.path(), &[]);
    let run = by_variable.env("SATEEN_ROCKSDB_LIB", "/no/lib.so").output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("SATEEN_ROCKSDB_LIB /no/lib.so"), "{said}");
    assert_eq!(listing(home.path()), Vec::<String>::new());
}
