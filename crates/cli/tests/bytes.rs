//! Paths, column families and keys that are not UTF-8, and input that is not text or never ends.
//! Each verb takes them, and its output leads back to the bytes.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

struct Run {
    code: i32,
    out: Vec<u8>,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap()
    }
}

/// Returns an argument in which `%` stands for the byte e9 and `&` for e8.
fn os(text: &str) -> OsString {
    let byte = |byte| match byte {
        b'%' => 0xe9,
        b'&' => 0xe8,
        other => other,
    };
    OsStr::from_bytes(&text.bytes().map(byte).collect::<Vec<_>>()).to_owned()
}

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.args(line.split(' ').map(os)).current_dir(folder).stdin(Stdio::null());
    command
}

fn sateen(folder: &Path, line: &str) -> Run {
    let output = command(folder, line).output().unwrap();
    let mut err = String::from_utf8(output.stderr).expect("messages are UTF-8");
    if line.ends_with("--json") && !err.is_empty() {
        let error: Value = serde_json::from_str(&err).unwrap();
        err = error["error"].as_str().unwrap().to_owned();
    }
    let code = output.status.code().expect("not ended by a signal");
    assert!(code != 101 && !err.contains("panicked"), "{line}: {err}");
    Run { code, out: output.stdout, err }
}

fn done(folder: &Path, line: &str) -> Run {
    let run = sateen(folder, line);
    assert_eq!((run.code, &*run.err), (0, ""), "{line}");
    run
}

/// Returns the path that a string in JSON stands for.
fn path(value: &Value) -> PathBuf {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is a string"));
    OsStr::from_bytes(&sateen::bytes_of_text(text)).into()
}

fn file(folder: &Path, database: &str, part: &str) -> PathBuf {
    let names = fs::read_dir(folder.join(os(database))).unwrap();
    let mut paths = names.map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_string_lossy().contains(part)).unwrap()
}

#[test]
fn directories_are_bytes_to_every_verb() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put caf% key of-e9");
    done(at, "db put caf& key of-e8");
    assert_eq!(done(at, "db get caf% key").out, b"of-e9\n");
    assert_eq!(done(at, "db get caf& key").out, b"of-e8\n");
    fs::write(at.join(os("in%.tsv")), "k1\tv1\nk2\tv2\n").unwrap();
    done(at, "db load caf% in%.tsv");
    for json in ["", " --json"] {
        for verb in ["stats", "check", "scrub", "compact", "properties", "families", "options"] {
            done(at, &format!("db {verb} caf%{json}"));
        }
        done(at, &format!("db scan caf%{json}"));
        done(at, &format!("db delete caf% gone{json}"));
        for (noun, part) in [("table", ".sat"), ("wal", ".wal"), ("manifest", "MANIFEST")] {
            let name = file(at, "caf%", part);
            let name = name.file_name().unwrap().to_str().unwrap();
            done(at, &format!("{noun} dump caf%/{name}{json}"));
        }
    }
    assert_eq!(done(at, "db checkpoint caf% text%").out, os("text%\n").as_bytes());
    let made = done(at, "db checkpoint caf% json% --json").json();
    assert_eq!(path(&made["checkpoint"]), os("json%"));
    assert_eq!(done(at, "db get json% k2").out, b"v2\n");
    // An error names the directory so that it can be told from others.
    for json in ["", " --json"] {
        let run = sateen(at, &format!("db get none% k{json}"));
        assert!(run.code == 1 && run.err.contains("none\\xe9"), "{}", run.err);
        let run = sateen(at, &format!("db put in%.tsv k v{json}"));
        assert!(run.code == 1 && run.err.contains("in\\xe9.tsv"), "{}", run.err);
        let run = sateen(at, &format!("db get caf% no%{json}"));
        assert!(run.code == 3 && run.err.contains("no\\xe9"), "{}", run.err);
    }
}

#[test]
fn damage_in_a_directory_of_bytes_is_told() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("in.tsv"), "k1\tv1\nk2\tv2\n").unwrap();
    done(at, "db load caf% in.tsv");
    fs::write(at.join(os("caf%/900000.sat")), "an orphan").unwrap();
    let orphan = at.join(os("caf%/900000.sat"));
    let report = done(at, "db check caf% --json").json();
    assert_eq!(at.join(path(&report["orphans"][0])), orphan);
    assert!(at.join(path(&report["manifest"])).exists());
    assert!(String::from_utf8(done(at, "db check caf%").out).unwrap().contains("caf\\xe9/900000"));
    fs::remove_file(&orphan).unwrap();
    let table = file(at, "caf%", ".sat");
    let bytes = fs::read(&table).unwrap();
    let damaged: Vec<u8> =
        bytes.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 4100)).collect();
    fs::write(&table, damaged).unwrap();
    let run = sateen(at, "db check caf%");
    assert!(run.code == 1 && String::from_utf8(run.out).unwrap().contains("caf\\xe9/"));
    let run = sateen(at, "db check caf% --json");
    assert_eq!((run.code, at.join(path(&run.json()["findings"][0]["file"]))), (1, table.clone()));
    let run = sateen(at, "db scrub caf% --json");
    assert_eq!((run.code, at.join(path(&run.json()["findings"][0]["file"]))), (1, table.clone()));
    done(at, "db checkpoint caf% copy%");
    let text = sateen(at, "db repair copy%");
    assert!(text.code == 1 && String::from_utf8(text.out).unwrap().contains("copy\\xe9/"));
    let run = sateen(at, "db repair caf% --json");
    let report = run.json();
    assert_eq!(run.code, 1);
    assert_eq!(at.join(path(&report["lost_ranges"][0]["file"])), table);
    assert!(at.join(path(&report["moved"][0])).exists() && report["losses"][0]["file"].is_string());
}

#[test]
fn destroying_removes_the_database_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put caf% k v --set wal_dir=logs%");
    done(at, "db put caf& k v");
    fs::write(at.join(os("caf%/notes%.txt")), "mine").unwrap();
    let run = sateen(at, "db destroy caf%");
    assert!(run.code == 2 && run.err.contains("--yes"), "{}", run.err);
    let report = done(at, "db destroy caf% --yes --json").json();
    assert_eq!(path(&report["left"][0]), os("caf%/notes%.txt"));
    assert!(report["directory_removed"] == false && !at.join(os("logs%")).exists(), "{report}");
    assert_eq!(fs::read_dir(at.join(os("caf%"))).unwrap().count(), 1);
    let run = sateen(at, "db destroy caf% --yes");
    assert!(run.code == 1 && run.err.contains("caf\\xe9: there is no database"), "{}", run.err);
    let text = String::from_utf8(done(at, "db destroy caf& --yes").out).unwrap();
    assert!(text.ends_with("removed caf\\xe8\n") && !at.join(os("caf&")).exists(), "{text}");
}

#[test]
fn column_families_and_keys_are_bytes() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put d k% 1 --cf % --create-cf");
    done(at, "db put d k% 2 --cf & --create-cf");
    done(at, "db put d k& 3 --cf &");
    assert_eq!(done(at, "db get d k% --cf %").out, b"1\n");
    assert_eq!(done(at, "db get d k% --cf &").out, b"2\n");
    assert_eq!(done(at, "db scan d --cf & --from k& --to k%").out, b"k\\xe8\t3\n");
    let mut names: Vec<_> =
        done(at, "db families d").out.split(|byte| *byte == b'\n').map(<[u8]>::to_owned).collect();
    names.sort();
    assert_eq!(names, [&b""[..], b"default", b"\xe8", b"\xe9"]);
    let json = done(at, "db families d --json").json();
    let names: Vec<_> = json.as_array().unwrap().iter().map(path).collect();
    assert!(names.contains(&os("%").into()) && names.contains(&os("&").into()), "{json}");
    let run = sateen(at, "db get d k --cf %%");
    assert!(
        run.code == 3 && run.err.contains("\\xe9\\xe9") && run.err.contains("\\xe8"),
        "{}",
        run.err
    );
    let text = String::from_utf8(done(at, "db stats d").out).unwrap();
    assert!(text.contains("** \\xe9 **") && !text.contains('\0'), "{text}");
    let text = String::from_utf8(done(at, "db options d").out).unwrap();
    assert!(text.contains("[column family \\xe9]") && !text.contains('\0'));
    assert_eq!(done(at, "db properties d sateen.estimate-num-keys --cf &").code, 0);
}

#[test]
fn a_log_directory_of_bytes_is_stored_with_the_options() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put d k v --set wal_dir=logs%");
    assert!(fs::read_dir(at.join(os("logs%"))).unwrap().count() > 0);
    let text = String::from_utf8(done(at, "db options d").out).unwrap();
    assert!(text.contains(&format!("wal_dir = {}/logs\\xe9\n", at.display())), "{text}");
    let json = done(at, "db options d --json").json();
    assert_eq!(path(&json["database"]["wal_dir"]), at.join(os("logs%")));
    // It opens with the stored options.
    done(at, "db stats d");
    assert_eq!(done(at, "db get d k --set wal_dir=logs%").out, b"v\n");
}

fn signal(child: &Child, signal: Signal) {
    let process = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

/// Waits until the process ends or `done` returns a value, up to a limit.
fn wait_for<T>(child: &mut Child, mut done: impl FnMut(&mut Child) -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = done(child) {
            return answer;
        }
        if began.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::yield_now();
    }
}

/// Waits until the process has a handler for the signal TERM.
fn wait_for_its_handlers(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    wait_for(child, |_| {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        (caught & 1 << (15 - 1) != 0).then_some(())
    });
}

#[test]
fn a_load_from_a_pipe_that_nobody_writes_to_can_be_ended() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    assert!(Command::new("mkfifo").arg(at.join("pipe.tsv")).status().unwrap().success());
    for wanted in [Signal::INT, Signal::TERM] {
        let mut child = command(at, "db load d pipe.tsv").stderr(Stdio::null()).spawn().unwrap();
        wait_for_its_handlers(&mut child);
        signal(&child, wanted);
        let status = wait_for(&mut child, |child| child.try_wait().unwrap());
        assert_eq!(status.code(), Some(130), "{wanted:?}");
    }
    // The load also waits for a late writer.
    let mut child = command(at, "db load d pipe.tsv").stdout(Stdio::null()).spawn().unwrap();
    wait_for_its_handlers(&mut child);
    let mut pipe = OpenOptions::new().write(true).open(at.join("pipe.tsv")).unwrap();
    pipe.write_all(b"k1\tv1\n").unwrap();
    pipe.write_all(b"k2\tv2\n").unwrap();
    drop(pipe);
    let status = wait_for(&mut child, |child| child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert_eq!(done(at, "db get d k2").out, b"v2\n");
}

#[test]
fn a_line_without_end_is_refused_by_its_number() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for (format, limit) in [("tsv", 4), ("csv", 2), ("jsonl", 6)] {
        let line = format!("db load d /dev/zero --format {format} --set value_bytes_max=100000");
        let run = sateen(at, &line);
        let limit = limit * (100_000 + 65_535) + 4096;
        let said = format!("/dev/zero:1: the line is longer than {limit} bytes");
        assert!(run.code == 1 && run.err.contains(&said), "{}", run.err);
        assert!(run.err.contains("165535 bytes together at most"), "{}", run.err);
    }
    // A field of several lines, too.
    let lines = format!("k,\"{}", "line\n".repeat(100_000));
    fs::write(at.join("long.csv"), lines).unwrap();
    let run = sateen(at, "db load d long.csv --set value_bytes_max=1000");
    assert!(run.code == 1 && run.err.contains("the quoted field is longer"), "{}", run.err);
    // The largest possible record, with every byte escaped, is accepted.
    let record = format!("{}\t{}\n", "\\x41".repeat(65_535), "\\x42".repeat(1000));
    fs::write(at.join("large.tsv"), record).unwrap();
    done(at, "db load d large.tsv --dry-run --set value_bytes_max=1000");
}

/// A lack of memory for a line must not abort the process.
#[test]
fn a_line_that_is_too_large_for_the_memory_is_refused() {
    let folder = TempDir::new().unwrap();
    let binary = env!("CARGO_BIN_EXE_sateen");
    let line =
        format!("ulimit -v 150000; exec {binary} db load d /dev/zero --format tsv --dry-run");
    let output =
        Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/dev/zero:1: there is no memory for a line of more than"), "{said}");
}

#[test]
fn only_objects_are_records_of_json_lines() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let bad = [r#"["k",null,null,"v",null,null]"#, r#""k""#, "3", "null", "true"];
    for text in bad {
        fs::write(at.join("in.jsonl"), format!("  {text}\n")).unwrap();
        let run = sateen(at, "db load d in.jsonl");
        let said = "in.jsonl:1: column 3: an object begins with {";
        assert!(run.code == 1 && run.err.contains(said), "{text}: {}", run.err);
    }
    assert!(!at.join("d").exists());
}

#[test]
fn numbers_that_mean_nothing_are_a_wrong_command_line() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let bench = ["compression-ratio", "duration", "peak-seconds", "valley-seconds", "bloom-bits"];
    let sim = ["duration", "peak-seconds", "valley-seconds"];
    for value in ["nan", "inf", "-inf", "-1", "1e300"] {
        for option in bench.iter().chain(&["barrier-cost"]) {
            let run = sateen(at, &format!("bench -w bursts -n 10 --ops 10 --{option}={value}"));
            assert!(run.code == 2 && run.err.contains(option), "{option} {value}: {}", run.err);
        }
        for option in sim {
            let run = sateen(at, &format!("sim --{option}={value}"));
            assert!(run.code == 2 && run.err.contains(option), "{option} {value}: {}", run.err);
        }
        let run = sateen(at, &format!("db put d k v --set level_multiplier={value}"));
        assert!(run.code == 2 || value == "1e300", "{value}: {}", run.err);
    }
}
