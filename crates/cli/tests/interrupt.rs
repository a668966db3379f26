//! Ctrl-C and SIGTERM at each command that can take long: it ends with 130 and one line that says
//! what there is now. What was there before stays, and nothing unfinished is left.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

/// Attempts to interrupt a command that may be faster than the signal.
const ATTEMPTS: usize = 100;

fn command(at: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.current_dir(at).args(line.split(' ')).stdin(Stdio::null());
    command
}

fn done(at: &Path, line: &str) -> String {
    let output = command(at, line).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until the process has a handler for the signals that would end it, or has ended.
fn waits_for_signals(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        let wanted = 1 << (Signal::INT.as_raw() - 1) | 1 << (Signal::TERM.as_raw() - 1);
        if caught & wanted == wanted {
            return;
        }
        std::thread::yield_now();
    }
}

/// Starts a command and sends it the signal as soon as it has a handler.
fn signalled(at: &Path, line: &str, signal: Signal) -> Output {
    let mut command = command(at, line);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    waits_for_signals(&mut child);
    let _ended = kill_process(Pid::from_child(&child), signal);
    child.wait_with_output().unwrap()
}

/// Returns what an interrupted command says on standard error. `again` undoes one that was faster
/// than the signal.
fn interrupted(at: &Path, line: &str, again: impl Fn()) -> String {
    // A repair of damage ends with 1.
    let faster = if line.starts_with("db repair") { 1 } else { 0 };
    for attempt in 0..ATTEMPTS {
        let signal = if attempt % 2 == 0 { Signal::INT } else { Signal::TERM };
        let output = signalled(at, line, signal);
        let said = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(130) => return said,
            Some(code) if code == faster => again(),
            _ => panic!("{line}: {:?}: {said}", output.status),
        }
    }
    panic!("{line}: never interrupted");
}

fn says(said: &str, what: &str) {
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("sateen: ") && said.contains(what), "{said}");
}

/// Creates the database `d` with some twenty MB that barely compress. Returns its text.
fn database(at: &Path) -> String {
    let mut state = 1_u64;
    let mut digits = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:016x}", state ^ (state >> 29))
    };
    let mut text = String::new();
    for key in 0..40_000 {
        let value: String = (0..32).map(|_| digits()).collect();
        text.push_str(&format!("{key:06}\t{value}\n"));
    }
    fs::write(at.join("in.tsv"), &text).unwrap();
    done(at, "db load d in.tsv");
    text
}

/// Returns the files of a directory with their lengths, but for LOCK and LOG.
fn files(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name != "LOCK" && !name.starts_with("LOG") {
            found.insert(entry.path(), entry.metadata().unwrap().len());
        }
    }
    found
}

#[test]
fn a_repair_that_is_interrupted_has_changed_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    database(at);
    // Without its manifest the repair has to write all records again.
    for entry in fs::read_dir(at.join("d")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    fs::rename(at.join("d"), at.join("damaged")).unwrap();
    let damaged = || {
        let _none = fs::remove_dir_all(at.join("d"));
        fs::create_dir(at.join("d")).unwrap();
        for path in files(&at.join("damaged")).into_keys() {
            fs::copy(&path, at.join("d").join(path.file_name().unwrap())).unwrap();
        }
    };
    damaged();
    let before = files(&at.join("d"));
    let said = interrupted(at, "db repair d", damaged);
    says(&said, "the repair was interrupted; it changed nothing");
    assert_eq!(files(&at.join("d")), before);
    let said = interrupted(at, "db repair d --json", damaged);
    assert!(said.starts_with('{') && said.contains("\"code\":130"), "{said}");
    let _losses = command(at, "db repair d").output().unwrap();
    done(at, "db check d");
    assert_eq!(done(at, "db scan d").lines().count(), 40_000);
}

#[test]
fn a_scrub_that_is_interrupted_ends_and_says_so() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // At 1 MB/s it takes more than a few seconds.
    database(at);
    let scrub = "db scrub d --rate 1";
    for (line, says) in
        [(scrub.to_owned(), "sateen: the scrub was"), (format!("{scrub} --json"), "\"code\":130")]
    {
        let output = signalled(at, &line, Signal::INT);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{error}");
        assert!(error.contains(says) && error.contains("interrupted"), "{error}");
    }
    done(at, "db check d");
}

#[test]
fn a_scan_that_is_interrupted_prints_whole_lines_and_says_how_many() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let text = database(at);
    for line in ["db scan d", "db scan d --format tsv"] {
        let mut command = command(at, line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = String::new();
        output.read_line(&mut lines).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        output.read_to_string(&mut lines).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{said}");
        let printed = lines.lines().count();
        says(&said, &format!("interrupted after {printed} records"));
        assert!(printed < 40_000 && lines.ends_with('\n') && text.starts_with(&lines));
    }
}

#[test]
fn a_scan_whose_reader_takes_nothing_can_be_interrupted() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    database(at);
    let mut command = command(at, "db scan d");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 1]).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    // Nothing is read any more, and the pipe stays open.
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    says(&said, "interrupted; the output may end within a record");
    drop(output);
}

#[test]
fn a_checkpoint_that_is_interrupted_leaves_no_directory() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    database(at);
    // On another file system every table has to be copied.
    let shm = Path::new("/dev/shm");
    let elsewhere = if shm.is_dir() { TempDir::new_in(shm) } else { TempDir::new() };
    let elsewhere = elsewhere.unwrap();
    let target = elsewhere.path().join("copy");
    let line = format!("db checkpoint d {}", target.display());
    let said = interrupted(at, &line, || fs::remove_dir_all(&target).unwrap());
    says(&said, "was not created");
    assert!(said.contains("interrupted") && said.contains("copy") && !target.exists(), "{said}");
    done(at, &line);
    done(at, &format!("db diff d {}", target.display()));
}

#[test]
fn work_in_the_process_that_has_the_database_open_goes_on_without_the_command() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("d")).unwrap();
    // A process that takes its time.
    let process = UnixListener::bind(at.join("d/INSPECT")).unwrap();
    for (line, what) in [
        ("db checkpoint d copy", "copy will be complete or not there"),
        ("db compact d", "goes on with the compaction"),
    ] {
        let mut child = command(at, line).stderr(Stdio::piped()).spawn().unwrap();
        let asked = process.accept().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let code = child.wait().unwrap().code();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(code, Some(130), "{said}");
        says(&said, what);
        drop(asked);
    }
}

#[test]
fn top_gives_the_terminal_back_before_it_says_why_it_ends() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    done(at, "db put d key value");
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let theirs = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = fs::OpenOptions::new().read(true).write(true).open(theirs).unwrap();
    let clone = || theirs.try_clone().unwrap();
    let mut command = command(at, "top d");
    let mut child = command.stdin(clone()).stdout(clone()).stderr(clone()).spawn().unwrap();
    drop((command, theirs));
    let mut screen = fs::File::from(ours);
    let mut drawn = Vec::new();
    // The first screen is there once its last line is.
    while !String::from_utf8_lossy(&drawn).contains("next database") {
        let mut part = [0; 4096];
        let got = screen.read(&mut part).unwrap();
        drawn.extend_from_slice(&part[..got]);
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    // It ends with an error: the other side is closed.
    let _closed = screen.read_to_end(&mut drawn);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let drawn = String::from_utf8_lossy(&drawn);
    let (back, says) = (drawn.rfind("\x1b[?1049l"), drawn.find("sateen: ended by a signal"));
    assert!(back.is_some() && back < says, "{drawn:?}");
}

#[test]
fn backups_restores_and_verifications_that_are_interrupted_leave_nothing_unfinished() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    database(at);
    // At 1 MB/s each takes many seconds.
    let said = interrupted(at, "db backup d kept --rate 1", || ());
    says(&said, "the backup was interrupted; earlier backups are as they were");
    assert_eq!(done(at, "db backups kept"), "");
    done(at, "db backup d kept");
    let said = interrupted(at, "db restore kept new --rate 1", || ());
    says(&said, "the restore was interrupted; nothing is restored");
    assert!(!at.join("new").exists());
    let said = interrupted(at, "db backups kept --verify", || ());
    says(&said, "was interrupted; it changed nothing");
    done(at, "db restore kept new");
    done(at, "db diff d new");
}

#[test]
fn checks_comparisons_compactions_and_exports_that_are_interrupted_say_so() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    database(at);
    done(at, "db checkpoint d copy");
    says(&interrupted(at, "db check d", || ()), "the check was interrupted; it changed nothing");
    says(&interrupted(at, "db diff d copy", || ()), "interrupted: not everything was compared");
    let said = interrupted(at, "db compact d --rewrite-last-level", || ());
    says(&said, "the compaction was interrupted; the database has all records");
    let said = interrupted(at, "db export d out.tsv", || {
        fs::remove_file(at.join("out.tsv")).unwrap();
    });
    assert!(said.contains("interrupted after ") && said.contains("out.tsv was not written"));
    assert!(!at.join("out.tsv").exists() && !at.join("out.tsv.exporting").exists());
    let said = interrupted(at, "db load other in.tsv", || {
        done(at, "db destroy other --yes");
    });
    assert!(said.contains("interrupted") && said.contains("loaded"), "{said}");
    done(at, "db check d");
    done(at, "db diff d copy");
}
