//! Damage as a user sees it: found, named, and repaired as far as possible.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn sateen(at: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.args(arguments).current_dir(at).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the exit code and the output of a command.
fn run(at: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = sateen(at, arguments);
    let code = output.status.code().unwrap();
    let error = text(&output.stderr);
    assert!(!error.contains("panicked"), "{error}");
    (code, text(&output.stdout), error)
}

fn json(at: &Path, arguments: &[&str]) -> (i32, Value) {
    let (code, out, error) = run(at, arguments);
    let line = out.lines().next().unwrap_or_else(|| panic!("{arguments:?}: {error}"));
    (code, serde_json::from_str(line).unwrap())
}

/// Makes a database with a few tables and records in its WAL.
fn made() -> TempDir {
    let folder = TempDir::new().unwrap();
    let lines = |from: u32| (from..from + 500).map(|i| format!("key{i:05}\tvalue {i}\n"));
    for from in [0, 500] {
        fs::write(folder.path().join("in.tsv"), lines(from).collect::<String>()).unwrap();
        assert_eq!(run(folder.path(), &["db", "load", "d", "in.tsv"]).0, 0);
    }
    for i in 0..5 {
        let key = format!("logged{i}");
        assert_eq!(run(folder.path(), &["db", "put", "d", &key, "value", "--sync"]).0, 0);
    }
    folder
}

fn file(at: &Path, part: &str) -> PathBuf {
    let entries = fs::read_dir(at.join("d")).unwrap().map(|entry| entry.unwrap().path());
    let fits = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(part);
    entries.filter(fits).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0xFF;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_database_that_is_open_is_checked_beside_its_owner() {
    let folder = made();
    let at = folder.path();
    let db = sateen::Db::open(at.join("d"), sateen::Options::default()).unwrap();
    for i in 0..2000 {
        db.put(format!("key{i:05}"), "another value").unwrap();
    }
    db.flush().unwrap();
    let (code, report) = json(at, &["db", "check", "d", "--json"]);
    assert_eq!((code, &report["ok"]), (0, &Value::Bool(true)), "{report}");
    assert!(report["tables"].as_u64().unwrap() >= 1, "{report}");
    let (code, _, error) = run(at, &["db", "scrub", "d"]);
    assert!(code == 1 && error.contains("already open"), "{error}");
    let (code, _, error) = run(at, &["db", "repair", "d"]);
    assert!(code == 1 && error.contains("already open"), "{error}");
    db.put("goes", "on").unwrap();
    db.close().unwrap();
}

#[test]
fn findings_have_file_offset_and_kind() {
    let folder = made();
    let at = folder.path();
    assert_eq!(run(at, &["db", "scrub", "d", "--rate", "100"]).0, 0);
    let table = file(at, ".sat");
    flip(&table, 4096 + 10);
    let (code, report) = json(at, &["db", "check", "d", "--json"]);
    assert_eq!((code, &report["ok"]), (1, &Value::Bool(false)), "{report}");
    let found = &report["findings"][0];
    assert_eq!(found["file"], table.to_str().unwrap());
    assert_eq!((&found["offset"], &found["kind"]), (&4096.into(), &"checksum mismatch".into()));
    let (code, report) = json(at, &["db", "scrub", "d", "--json"]);
    assert_eq!((code, &report["findings"][0]["offset"]), (1, &4096.into()), "{report}");
    let (code, out, error) = run(at, &["db", "check", "d"]);
    assert!(code == 1 && out.contains("damaged") && error.contains("1 thing"), "{out}{error}");
    flip(&table, 4096 + 10);
    let manifest = file(at, "MANIFEST");
    flip(&manifest, 200);
    let (code, report) = json(at, &["db", "check", "d", "--json"]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["findings"][0]["file"], manifest.to_str().unwrap());
    assert!(report["tables"].as_u64().unwrap() >= 1, "the tables are read all the same: {report}");
    let (code, _, error) = run(at, &["db", "check", "nowhere"]);
    assert!(code == 1 && error.contains("nowhere"), "{error}");
}

#[test]
fn a_repair_says_what_is_lost_and_a_check_is_content_with_it() {
    let folder = made();
    let at = folder.path();
    flip(&file(at, ".sat"), 4096 + 10);
    let (code, report) = json(at, &["db", "repair", "d", "--json"]);
    assert_eq!(code, 1, "{report}");
    assert!(report["entries_salvaged"].as_u64().unwrap() > 100, "{report}");
    let range = &report["lost_ranges"][0];
    assert_eq!(range["column_family"], "default");
    assert!(range["first"].as_str().unwrap().starts_with("key"), "{report}");
    assert!(range["last_hex"].as_str().unwrap().starts_with("6b6579"), "{report}");
    let moved = report["moved"].as_array().unwrap();
    assert!(moved.iter().all(|file| at.join(file.as_str().unwrap()).exists()), "{report}");
    assert_eq!(json(at, &["db", "check", "d", "--json"]).0, 0);
    let (code, out, _) = run(at, &["db", "scan", "d"]);
    assert!(code == 0 && out.contains("logged4\tvalue") && out.contains("key00999"), "{out}");
    let (code, out, error) = run(at, &["db", "repair", "d"]);
    assert_eq!((code, &*error), (0, ""), "there is nothing left to lose: {out}");
}

/// Makes a database with this many table files.
fn of_many_files(files: usize) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut options = sateen::Options { background_threads: 0, ..sateen::Options::default() };
    options.column_family.disable_auto_compactions = true;
    let db = sateen::Db::open(folder.path().join("d"), options).unwrap();
    for i in 0..files {
        db.put(format!("key{i:05}"), "value").unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    folder
}

/// Returns the names and contents of all files but LOCK.
fn everything(at: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![at.join("d")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path.clone());
                found.push((path, Vec::new()));
            } else if !path.ends_with("LOCK") {
                found.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Returns the exit code and the output of a command under a limit on open files.
fn run_limited(at: &Path, open_files: u32, arguments: &str) -> (i32, String, String) {
    let sateen = env!("CARGO_BIN_EXE_sateen");
    let script = format!("ulimit -n {open_files} && exec {sateen} {arguments}");
    let output = Command::new("sh").args(["-c", &script]).current_dir(at).output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_low_limit_of_open_files_is_enough_and_a_lower_one_is_no_damage() {
    let folder = of_many_files(60);
    let at = folder.path();
    let before = everything(at);
    // Standard streams, the lock, and one file at a time.
    for limit in [5, 8, 32] {
        let (code, out, error) = run_limited(at, limit, "db check d");
        assert!(code == 0 && out.contains("sound: 60 tables"), "{limit}: {out}{error}");
    }
    let (code, out, error) = run_limited(at, 4, "db check d");
    assert!(code == 4 && error.contains("Too many open files"), "{out}{error}");
    assert!(!error.contains("damage"), "{error}");
    for limit in [4, 5] {
        let (code, _, error) = run_limited(at, limit, "db repair d");
        assert!(code == 4 && error.contains("Too many open files"), "{limit}: {error}");
        assert!(error.contains("ulimit -n"), "{error}");
        assert!(everything(at) == before, "a repair with {limit} open files has changed something");
    }
    let (code, out, error) = run_limited(at, 32, "db repair d");
    assert!(code == 0 && out.contains("kept 60 tables"), "{out}{error}");
    assert_eq!(run(at, &["db", "scan", "d"]).1.lines().count(), 60);
}

/// Files without read permission. Root may read everything, so the test runs the command as another
/// user.

#[test]
fn a_table_that_the_system_does_not_open_is_unreadable_and_not_damaged() {
    let folder = of_many_files(60);
    let at = folder.path();
    let entries = fs::read_dir(at.join("d")).unwrap().map(|entry| entry.unwrap().path());
    let table =
        entries.filter(|path| path.extension().is_some_and(|of| of == "sat")).min().unwrap();
    let away = at.join("away");
    fs::rename(&table, &away).unwrap();
    // A link to itself fails to open with "too many levels of symbolic links".
    std::os::unix::fs::symlink(table.file_name().unwrap(), &table).unwrap();
    let (code, out, error) = run(at, &["db", "check", "d"]);
    assert_eq!(code, 4, "{out}{error}");
    assert!(!out.contains("damaged") && out.contains("could not read: "), "{out}");
    assert!(out.contains("d: not everything could be read: "), "{out}");
    assert!(error.contains("nothing is known to be damaged"), "{error}");
    let (code, out, _) = run(at, &["db", "check", "d", "--json"]);
    let report: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((code, &report["ok"]), (4, &Value::Bool(false)), "{report}");
    assert_eq!(report["findings"].as_array().unwrap().len(), 0, "{report}");
    let first = &report["unreadable"][0];
    assert!(first["text"].as_str().unwrap().contains("symbolic links"), "{report}");
    let (code, _, error) = run(at, &["db", "repair", "d"]);
    assert!(code == 4 && error.contains("changed nothing"), "{error}");
    fs::remove_file(&table).unwrap();
    fs::rename(&away, &table).unwrap();
    let (code, out, error) = run(at, &["db", "check", "d"]);
    assert!(code == 0 && out.contains("sound: 60 tables"), "{out}{error}");
}

#[test]
fn files_that_may_not_be_read_are_not_damaged() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let folder = of_many_files(5);
    let at = folder.path();
    let is_root = fs::metadata(at).unwrap().uid() == 0;
    // The program is copied beside the database, because other users may not reach its own place.
    let program = at.join("program");
    fs::copy(env!("CARGO_BIN_EXE_sateen"), &program).unwrap();
    let table = file(at, ".sat");
    let before = everything(at);
    fs::set_permissions(&table, fs::Permissions::from_mode(0o0)).unwrap();
    if is_root {
        let mut paths: Vec<PathBuf> = before.iter().map(|(path, _)| path.clone()).collect();
        paths.extend([at.to_owned(), at.join("d"), at.join("d/LOCK")]);
        paths.iter().for_each(|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
    }
    let run = |verb: &str| {
        let mut command = Command::new(&program);
        command.args(["db", verb, "d"]).current_dir(at);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, error) = run("check");
    assert_eq!(code, 4, "{out}{error}");
    assert!(out.contains("could not read: ") && out.contains("Permission denied"), "{out}{error}");
    assert!(!out.contains("damaged"), "{out}{error}");
    let (code, out, error) = run("repair");
    assert!(code == 4 && error.contains("Permission denied"), "{out}{error}");
    fs::set_permissions(&table, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(everything(at) == before, "the repair has changed something");
    let (code, out, error) = run("repair");
    assert!(code == 0 && out.contains("kept 5 tables"), "{out}{error}");
}
