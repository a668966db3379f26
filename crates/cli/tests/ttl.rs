//! Column families with a `ttl`: the commands use the form in which values are stored, and refuse
//! the other one.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn sateen(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs it and returns what it printed.
fn done(folder: &Path, words: &[&str]) -> String {
    let run = sateen(folder, words);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success() && said.is_empty(), "{words:?}: {said}");
    String::from_utf8(run.stdout).unwrap()
}

/// Runs it and checks that it fails and names `says`.
fn refused(folder: &Path, words: &[&str], says: &str) {
    let run = sateen(folder, words);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success() && said.contains(says), "{words:?}: {said}");
}

#[test]
fn a_ttl_is_refused_where_values_have_no_times() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::write(at.join("fruit.tsv"), "fruit-red\tred\nfruit-texas\ttexas\n").unwrap();
    done(at, &["db", "load", "t3", "fruit.tsv"]);
    let all = done(at, &["db", "scan", "t3"]);
    for words in [&["scan", "t3"][..], &["get", "t3", "fruit-red"], &["compact", "t3"]] {
        let words: Vec<_> =
            ["db"].iter().chain(words).chain(&["--set", "ttl=720h"]).copied().collect();
        refused(at, &words, "ttl=720h: the values of the column family default are stored without");
    }
    assert_eq!(done(at, &["db", "scan", "t3"]), all);
    assert!(all.contains("texas"), "{all}");
    // A new column family may have one all the same.
    done(at, &["db", "create-family", "t3", "short", "--set", "ttl=1h"]);
    done(at, &["db", "put", "t3", "key", "value", "--cf", "short", "--set", "ttl=2h"]);
    done(at, &["db", "put", "t3", "k", "", "--cf", "short"]);
    done(at, &["db", "compact", "t3", "--cf", "short"]);
    assert_eq!(done(at, &["db", "get", "t3", "key", "--cf", "short"]).trim_end(), "value");
    let none = ["db", "get", "t3", "key", "--cf", "short", "--set", "ttl=none"];
    refused(at, &none, "ttl=none: the values of the column family short are stored with");
    refused(at, &["db", "put", "t3", "x", "y", "--set", "ttl=1h"], "the column family default");
    assert_eq!(done(at, &["db", "scan", "t3"]), all);
}

#[test]
fn commands_read_and_write_as_it_is_stored() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    done(at, &["db", "put", "library", "a", "apple", "--set", "ttl=1h"]);
    done(at, &["db", "put", "library", "b", "beech"]);
    done(at, &["db", "create-family", "library", "plain"]);
    done(at, &["db", "put", "library", "k", "oak", "--cf", "plain"]);
    for _ in 0..2 {
        for (words, shown) in [
            (&["get", "library", "a"][..], "apple"),
            (&["get", "library", "b"], "beech"),
            (&["get", "library", "k", "--cf", "plain"], "oak"),
        ] {
            let words: Vec<_> = ["db"].iter().chain(words).copied().collect();
            assert_eq!(done(at, &words).trim_end(), shown);
        }
        let scanned = done(at, &["db", "scan", "library"]);
        assert!(scanned.lines().all(|line| line.ends_with("apple") || line.ends_with("beech")));
        assert!(done(at, &["db", "scan", "library", "--cf", "plain"]).trim_end().ends_with("oak"));
        done(at, &["db", "compact", "library"]);
        done(at, &["db", "compact", "library", "--cf", "plain"]);
        done(at, &["db", "check", "library"]);
        // Neither the options in the directory nor their absence change anything.
        let _was_there = fs::remove_file(at.join("library/OPTIONS"));
    }
    done(at, &["db", "checkpoint", "library", "copy"]);
    done(at, &["db", "diff", "library", "copy"]);
    let none = ["db", "scan", "library", "--set", "ttl=none"];
    refused(at, &none, "ttl=none: the values of the column family default are stored with");
}
