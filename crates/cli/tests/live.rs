//! Commands that look at a database while another process has it open.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use serde_json::Value;

fn sateen(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sateen")).args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A process that has a database open, until its input ends.
struct Open {
    child: Child,
    input: Option<ChildStdin>,
}

impl Open {
    fn new(db: &Path, more: &[&str], variable: Option<&str>) -> Open {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
        command.args(["db", "load", db.to_str().unwrap(), "-"]).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        if let Some(value) = variable {
            command.env("SATEEN_INSPECT", value);
        }
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"fig\t1\n").unwrap();
        let open = Open { child, input: Some(input) };
        let lock = db.join("LOCK");
        while !lock.exists()
            || sateen(&["db", "families", db.to_str().unwrap()]).status.code() != Some(0)
        {
            std::thread::yield_now();
        }
        open
    }

    fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.input = None;
        let _ended = self.child.wait();
    }
}

/// Asks until the process serves the database.
fn served(words: &[&str]) -> Output {
    loop {
        let output = sateen(words);
        if output.status.success() && !text(&output).contains("\"served\":false") {
            return output;
        }
        std::thread::yield_now();
    }
}

#[test]
fn top_why_and_options_of_a_running_process() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db");
    let path = db.to_str().unwrap();
    let open = Open::new(&db, &["--set", "inspect=true", "--set", "log_level=info"], None);

    let status: Value = serde_json::from_str(&text(&served(&["top", path, "--json"]))).unwrap();
    assert_eq!(status["status"]["health"], "ok");
    assert_eq!(status["status"]["pid"], open.child.id());
    assert!(status["a_second"]["operations"]["write"].is_u64());
    let screen = text(&sateen(&["top", path, "--once"]));
    assert!(screen.contains("OPERATIONS") && screen.contains("MEMORY"), "{screen}");
    let by_socket = db.join("INSPECT");
    let by_socket = sateen(&["top", "--socket", by_socket.to_str().unwrap(), "--once"]);
    assert!(text(&by_socket).contains("OPERATIONS"));

    let why = sateen(&["why", path, "--since", "1h"]);
    assert!(why.status.success() && text(&why).ends_with(".\n"), "{}", text(&why));
    let why: Value = serde_json::from_str(&text(&sateen(&["why", path, "--json"]))).unwrap();
    assert!(why["episodes"].is_array());

    let set = sateen(&["db", "set-option", path, "block_cache_bytes=16MiB", "scrub_rate=1MiB"]);
    assert!(set.status.success());
    let options = sateen(&["db", "options", path, "--json"]);
    assert!(text(&options).contains("16MiB"), "{}", text(&options));
    for (setting, code) in [("no_such=1", 2), ("wal_dir=/tmp", 2), ("no equals sign", 2)] {
        assert_eq!(
            sateen(&["db", "set-option", path, setting]).status.code(),
            Some(code),
            "{setting}"
        );
    }
    // The process makes the checkpoint, which this command could not.
    let copy = directory.path().join("copy");
    let made = sateen(&["db", "checkpoint", path, copy.to_str().unwrap()]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(sateen(&["db", "check", copy.to_str().unwrap()]).status.success());
    assert!(sateen(&["db", "compact", path]).status.success());
    open.end();

    let log = text(&sateen(&["log", path, "--level", "info"]));
    assert!(
        log.contains(" is open, options differ") && log.ends_with("the database is closed\n"),
        "{log}"
    );
    let closed = text(&sateen(&["top", path, "--once"]));
    assert!(closed.contains("no process serves this database"), "{closed}");
    assert!(
        closed.contains("On disk: ") && closed.contains("L0") || closed.contains("L6"),
        "{closed}"
    );
    let closed = sateen(&["why", path]);
    assert_eq!(closed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&closed.stderr).contains("SATEEN_INSPECT=1"));
    assert_eq!(sateen(&["log", copy.to_str().unwrap()]).status.code(), Some(3));
    for words in [
        &["top", "nowhere", "--once"][..],
        &["top", "nowhere", "--json"],
        &["why", "nowhere"],
        &["log", "nowhere"],
        &["db", "set-option", "nowhere", "level0_trigger=4"],
    ] {
        let missing = sateen(words);
        let said = String::from_utf8_lossy(&missing.stderr);
        assert_eq!(missing.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("nowhere: there is no database"), "{words:?}: {said}");
    }
}

#[test]
fn a_variable_serves_a_process_that_knows_nothing_of_it_and_its_metrics() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db");
    let path = db.to_str().unwrap();
    let dark = Open::new(&db, &[], Some("0"));
    let closed = text(&sateen(&["top", path, "--once"]));
    let holder = format!("It is open in process {}", dark.child.id());
    assert!(closed.contains("which does not serve it"), "{closed}\n{holder}");
    dark.end();

    let open = Open::new(&db, &[], Some("1"));
    served(&["top", path, "--json"]);
    let mut serving = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["serve-metrics", path, "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("sateen_health{state=\"ok\"} 1"), "{answer}");
    serving.kill().unwrap();
    serving.wait().unwrap();
    open.end();
}

#[test]
fn the_log_of_what_is_no_database_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let refused = |says: &str| {
        let log = sateen(&["log", path]);
        let said = String::from_utf8(log.stderr).unwrap();
        assert_eq!((log.status.code(), log.stdout.len()), (Some(1), 0), "{said}");
        assert!(said.contains(path) && said.contains(says), "{said}");
    };
    refused("there is no database here");
    // RocksDB's file has the same name.
    let line = "2026/11/28-06:07:51.000012 139872 RocksDB version: 9.10.0\n";
    std::fs::write(directory.path().join("LOG"), line).unwrap();
    refused("LOG is a log, but none of a Sateen database");
    std::fs::write(directory.path().join("LOG"), "sat").unwrap();
    assert!(sateen(&["log", path]).status.success(), "a crash left the beginning of a line");
}

/// The socket of another user: one that refuses as the server does. It is told of at the start and
/// by each scrape, and the scrapes go on once it may be asked.
#[test]
fn metrics_of_the_socket_of_another_user() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("INSPECT");
    let listener = UnixListener::bind(&socket).unwrap();
    let answers = [403, 403, 200].map(|status: u16| {
        let body = if status == 200 { "sateen_up 1\n" } else { "{\"error\":\"not you\"}" };
        format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let answering = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut some = [0; 1024];
            assert!(stream.read(&mut some).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut serving = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .args(["serve-metrics", directory.path().to_str().unwrap(), "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut said, mut line) = (String::new(), String::new());
    BufReader::new(serving.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let user = format!("user {} may not open this socket", rustix::process::geteuid().as_raw());
    assert!(said.contains(socket.to_str().unwrap()) && said.contains(&user), "{said}");
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let scrape = || {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let refused = scrape();
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains(&user), "{refused}");
    let allowed = scrape();
    assert!(allowed.starts_with("HTTP/1.1 200 ") && allowed.contains("sateen_up 1"), "{allowed}");
    serving.kill().unwrap();
    serving.wait().unwrap();
    answering.join().unwrap();
}
