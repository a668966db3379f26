//! Backups as a user sees them: output, exit codes, and what is left after Ctrl-C.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

fn output(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.args(line.split(' ')).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// Runs it and returns what it prints.
fn done(folder: &Path, line: &str) -> String {
    let output = output(folder, line);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*err), (Some(0), ""), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs it, and checks the code and the error.
fn fails(folder: &Path, line: &str, code: i32, says: &str) -> String {
    let output = output(folder, line);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{line}: {err}");
    assert!(err.contains(says), "{line}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_database_is_backed_up_and_restored() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put library walden 1854 --set level0_trigger=7");
    assert!(done(at, "db backup library kept --note first").starts_with("backup 1: "));
    done(at, "db put library walden 2024 --set level0_trigger=7");
    let second = json(&done(at, "db backup library kept --json"));
    assert_eq!((&second["id"], &second["damage"]), (&2.into(), &Value::Null));
    assert!(done(at, "db backups kept").contains("first"));

    assert_eq!(done(at, "db restore kept old --id 1"), "restored backup 1 to old\n");
    assert_eq!(done(at, "db get old walden"), "1854\n");
    assert!(done(at, "db options old").contains("level0_trigger = 7"), "its options come along");
    done(at, "db restore kept new");
    assert_eq!(done(at, "db get new walden"), "2024\n");
    assert!(done(at, "db check new").starts_with("new: sound"));
    fails(at, "db restore kept new", 2, "new exists already and is not empty");
    fails(at, "db restore kept other --id 9", 3, "there is no backup 9");

    let verified = done(at, "db backups kept --verify --json");
    let lines: Vec<_> = verified.lines().map(json).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line["ok"] == true), "{verified}");
    assert_eq!(json(&done(at, "db backups kept --purge 1 --json"))["deleted"][0], 1);
    assert_eq!(done(at, "db backups kept --delete 2"), "deleted backup 2\n");
    fails(at, "db backups kept --delete 2", 3, "there is no backup 2");
    fails(at, "db restore kept other", 3, "there is no backup");
    // The next one has an id of its own, and not all go without a word.
    assert!(done(at, "db backup library kept").starts_with("backup 3: "));
    fails(at, "db backups kept --purge 0", 2, "kept: --purge 0 deletes all backups: give --yes");
    fails(at, "db backups kept --yes", 2, "--purge");
    assert_eq!(done(at, "db backups kept --purge 0 --yes"), "deleted backup 3\n");
}

/// The restore waits behind a rate while the backup is deleted.
#[test]
fn a_restore_whose_backup_is_deleted_says_so_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("text.tsv"), noise()).unwrap();
    done(at, "db load library text.tsv --set compression=none --set table_bytes=256KiB");
    done(at, "db compact library");
    done(at, "db backup library kept");
    let child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["db", "restore", "kept", "new", "--rate", "1"])
        .current_dir(at)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has looked for all objects once the marker is there.
    while !at.join("new/RESTORING").exists() {
        std::thread::yield_now();
    }
    assert_eq!(done(at, "db backups kept --delete 1"), "deleted backup 1\n");
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    let says = "sateen: backup 1 was deleted while it was being read; nothing is restored\n";
    assert_eq!(err, says);
    assert!(!at.join("new").exists());
}

#[test]
fn targets_in_the_directory_of_the_database() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put library walden 1854");
    for line in ["db checkpoint library library/lost", "db backup library library/000099.sat"] {
        fails(at, line, 2, "gives this name to files of its own");
    }
    fails(at, "db export library library/all.tsv", 1, "library/all.tsv: the directory library is");
    fails(at, "db export library library/CURRENT --overwrite --format tsv", 1, "library/CURRENT");
    done(at, "db checkpoint library library/copy");
    assert!(done(at, "db destroy library --yes").contains("left library/copy\n"));
    assert_eq!(done(at, "db get library/copy walden"), "1854\n");
}

#[test]
fn damage_has_a_name_and_an_exit_code() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put library walden 1854");
    done(at, "db compact library");
    done(at, "db backup library kept");
    let shared = at.join("kept/shared");
    let mut objects = fs::read_dir(&shared).unwrap().map(|entry| entry.unwrap().path());
    let table = objects.find(|path| path.extension().unwrap() == "table").unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[3] ^= 1;
    fs::write(&table, &bytes).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    let out = fails(at, "db backups kept --verify", 1, "1 thing is damaged");
    assert!(out.contains(name) && out.contains("offset 0: checksum mismatch"), "{out}");
    fails(at, "db restore kept library.restored", 1, name);
    assert!(!at.join("library.restored").exists());
}

#[test]
fn what_is_no_place_for_backups_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put library walden 1854");
    fails(at, "db backup library library", 1, "is no place for backups");
    fails(at, "db backup nothing kept", 1, "nothing");
    assert!(!at.join("kept").exists());
    for line in ["db backups library", "db backups library --purge 1", "db restore library new"] {
        fails(at, line, 1, "library");
    }
    fs::create_dir(at.join("empty")).unwrap();
    fails(at, "db backups empty --purge 0 --yes", 1, "there are no backups here");
    assert_eq!(fs::read_dir(at.join("empty")).unwrap().count(), 0);
    assert_eq!(done(at, "db get library walden"), "1854\n");
}

#[test]
fn an_interrupted_backup_leaves_earlier_ones_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("text.tsv"), noise()).unwrap();
    done(at, "db put library walden 1854");
    done(at, "db backup library kept");
    done(at, "db load library text.tsv --set compression=none");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["db", "backup", "library", "kept", "--rate", "1"])
        .current_dir(at)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun once there is an object that is not finished.
    let private = at.join("kept/private");
    let begun = || {
        let mut names = fs::read_dir(&private).unwrap().flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("000002"))
    };
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("the backup was interrupted; earlier backups are as they were"), "{err}");
    assert_eq!(fs::read_dir(&private).unwrap().count(), 2, "those of the first backup");
    assert!(done(at, "db backups kept --verify").contains("backup 1: sound"));
}

/// Lines of text that are several MiB together.
fn noise() -> String {
    let line = |number: u64| {
        let noise = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!("{noise:016x}\t{}\n", format!("{noise:016x}").repeat(60))
    };
    (1..8000).map(line).collect()
}
