//! The door of a running database: what it answers, and that no client holds anything up.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use sateen::{Db, Options};
use sateen_inspect::{Client, ClientError, SOCKET};
use serde_json::json;

fn open(path: &Path) -> Db {
    sateen_inspect::install();
    Db::open(path, Options { inspect: true, ..Options::default() }).unwrap()
}

fn refused(error: ClientError) -> (u16, String) {
    match error {
        ClientError::Refused(status, text) => (status, text),
        other => panic!("{other}"),
    }
}

#[test]
fn the_socket_lives_as_long_as_the_database_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let client = Client::of_database(&path);
    assert!(matches!(client.status().unwrap_err(), ClientError::NotServed(_)));
    let db = open(&path);
    let found = std::fs::metadata(path.join(SOCKET)).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    db.put("fig", "1").unwrap();
    db.get("fig").unwrap();
    let status = client.status().unwrap();
    assert_eq!((status.protocol, status.pid), (1, std::process::id()));
    assert_eq!((status.health.as_str(), status.families[0].name.as_str()), ("ok", "default"));
    assert!(status.databases.contains(&path.display().to_string()));
    let count = |name: &str| status.operations.iter().find(|it| it.name == name).unwrap().count;
    assert_eq!((count("write"), count("get")), (1, 1));
    assert_eq!(status.written_bytes, 4);
    // A reader in this process serves nothing, and does not disturb.
    drop(Db::open_read_only(&path, Options { inspect: true, ..Options::default() }).unwrap());
    client.status().unwrap();
    db.close().unwrap();
    assert!(!path.join(SOCKET).exists());
    assert!(matches!(client.status().unwrap_err(), ClientError::NotServed(_)));
    // Another open binds it again, and a dropped handle closes it.
    drop(open(&path));
    assert!(!path.join(SOCKET).exists());
}

#[test]
fn everything_can_be_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    db.put("fig", "1").unwrap();
    let client = Client::of_database(directory.path());
    let text = |path: &str| String::from_utf8(client.get(path).unwrap()).unwrap();
    assert!(text("/v1/metrics").contains("sateen_writes_total 1\n"));
    for path in ["/v1/timeline", "/v1/timeline?format=trace", "/v1/explain", "/v1/ping"] {
        let _value: serde_json::Value = serde_json::from_str(&text(path)).unwrap();
    }
    assert!(!text("/v1/explain?format=text&since=60").is_empty());
    assert!(!client.explain(Duration::from_secs(60)).unwrap().text.is_empty());
    assert!(text("/").starts_with("<!doctype html>"));
    let options: serde_json::Value = serde_json::from_str(&text("/v1/options")).unwrap();
    assert_eq!(options["database"]["inspect"], "true");
    assert!(options["column_families"]["default"]["memtable_bytes"].is_string());
    for (path, status) in
        [("/v2/status", 404), ("/v1/explain?since=x", 400), ("/v1/timeline?format=x", 400)]
    {
        assert_eq!(refused(client.get(path).unwrap_err()).0, status, "{path}");
    }
}

#[test]
fn options_change_and_work_is_done_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("db"));
    db.put("fig", "1").unwrap();
    let client = Client::of_database(db.path());
    client.post("/v1/options", &json!({ "set": { "block_cache_bytes": "16MiB" } })).unwrap();
    assert_eq!(db.options().block_cache_bytes, 16 << 20);
    let of_family = json!({ "set": { "level0_trigger": 7 }, "column_family": "default" });
    client.post("/v1/options", &of_family).unwrap();
    assert_eq!(db.default_column_family().options().level0_trigger, 7);

    client.post("/v1/flush", &json!({})).unwrap();
    assert_eq!(db.live_tables().len(), 1);
    client.post("/v1/compact", &json!({ "column_family": "default" })).unwrap();
    let copy = directory.path().join("copy");
    client.post("/v1/checkpoint", &json!({ "path": copy })).unwrap();
    assert!(Db::open(&copy, Options::default()).unwrap().contains_key("fig").unwrap());
    let backups = directory.path().join("backups");
    let made = client.post("/v1/backup", &json!({ "path": backups, "note": "n" })).unwrap();
    assert_eq!(made["id"], 1);

    for (path, arguments, status, what) in [
        ("/v1/options", json!({ "set": { "no_such": "1" } }), 400, "no_such"),
        ("/v1/options", json!({ "set": { "wal_dir": "/tmp" } }), 400, "wal_dir"),
        ("/v1/options", json!({}), 400, "set"),
        ("/v1/options", json!({ "set": {}, "column_family": "no" }), 404, "no"),
        ("/v1/flush", json!({ "path": "/" }), 400, "path"),
        ("/v1/flush", json!([]), 400, "object"),
        ("/v1/checkpoint", json!({ "path": "copy" }), 400, "begin with /"),
        ("/v1/checkpoint", json!({}), 400, "path"),
        ("/v1/compact", json!({ "column_family": "no" }), 404, "no"),
        ("/v1/nothing", json!({}), 404, "no such path"),
    ] {
        let (got, text) = refused(client.post(path, &arguments).unwrap_err());
        assert!(got == status && text.contains(what), "{path} {arguments}: {got} {text}");
    }
}

#[test]
fn stuck_and_hostile_clients_hold_up_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let socket = directory.path().join(SOCKET);
    let client = Client::of_database(directory.path());
    // Half a request on every connection there may be: one more is told so.
    let mut stuck: Vec<UnixStream> = Vec::new();
    let told = loop {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let _told = stream.write_all(b"GET /v1/st");
        match client.get("/v1/ping") {
            Ok(_) => stuck.push(stream),
            Err(error) => break refused(error),
        }
        assert!(stuck.len() < 100);
    };
    assert_eq!(told.0, 503, "{}", told.1);
    // The database does not notice.
    db.put("fig", "1").unwrap();
    // They are given up after a while, each with an answer.
    let mut text = String::new();
    stuck[0].read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    drop(stuck);
    let mut answered = client.get("/v1/ping");
    while answered.is_err() {
        std::thread::yield_now();
        answered = client.get("/v1/ping");
    }
    // Garbage is refused. What goes away is forgotten.
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&[b'x'; 20_000]).unwrap();
    let mut bytes = Vec::new();
    let _reset = stream.read_to_end(&mut bytes);
    assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 4"));
    drop(UnixStream::connect(&socket).unwrap());
    // One that does not take its answer does not keep the database from closing.
    let mut lazy = UnixStream::connect(&socket).unwrap();
    lazy.write_all(b"GET /v1/timeline HTTP/1.1\r\n\r\n").unwrap();
    db.close().unwrap();
    assert!(!socket.exists());
}

#[test]
fn a_deep_directory_is_served_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a".repeat(90)).join("b".repeat(90));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _db = open(&path);
    assert_eq!(Client::of_database(&path).status().unwrap().health, "ok");
}

#[test]
fn what_is_in_the_way_of_the_socket_is_named_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let way = directory.path().join(SOCKET);
    std::fs::write(&way, "mine").unwrap();
    let options = Options { inspect: true, ..Options::default() };
    let error = Db::open(directory.path(), options).unwrap_err();
    assert!(error.is_environment() && error.to_string().contains("INSPECT"), "{error}");
    assert_eq!(std::fs::read(&way).unwrap(), b"mine");
    // The failed open has let go of the database.
    drop(Db::open(directory.path(), Options::default()).unwrap());
}

#[test]
fn destroy_removes_the_socket_of_a_dead_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    drop(open(&path));
    drop(std::os::unix::net::UnixListener::bind(path.join(SOCKET)).unwrap());
    let report = sateen::destroy(&path, &Options::default()).unwrap();
    assert!(report.directory_removed && report.left.is_empty(), "{report:?}");
}

fn over_tcp(address: std::net::SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn over_tcp_one_may_look_and_no_page_of_the_web_may() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    db.put("fig", "1").unwrap();
    let own = sateen_inspect::prometheus(&db, "127.0.0.1:0").unwrap();
    let relay =
        sateen_inspect::relay(Client::of_database(directory.path()), "127.0.0.1:0").unwrap();
    for address in [own.address(), relay.address()] {
        let get = |path: &str, more: &str| {
            over_tcp(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}{more}"))
        };
        let metrics = get("/metrics", "");
        assert!(metrics.starts_with("HTTP/1.1 200 ") && metrics.contains("sateen_writes_total 1"));
        assert!(metrics.contains("Content-Type: text/plain; version=0.0.4"));
        assert!(get("/v1/status", "").contains("\"protocol\":1"));
        assert!(get("/", "").contains("<!doctype html>"));
        assert!(get("/v1/options", "").starts_with("HTTP/1.1 404 "));
        assert!(get("/metrics", "\r\nOrigin: null").starts_with("HTTP/1.1 403 "));
        let rebound = over_tcp(address, "GET /metrics HTTP/1.1\r\nHost: evil.example");
        assert!(rebound.starts_with("HTTP/1.1 403 "));
        let post = format!("POST /v1/flush HTTP/1.1\r\nHost: {address}");
        assert!(over_tcp(address, &post).starts_with("HTTP/1.1 405 "));
    }
    drop(own);
    db.close().unwrap();
    let gone =
        over_tcp(relay.address(), &format!("GET /metrics HTTP/1.1\r\nHost: {}", relay.address()));
    assert!(gone.starts_with("HTTP/1.1 503 "), "{gone}");
}
