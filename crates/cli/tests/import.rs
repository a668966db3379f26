//! The import of databases that RocksDB and LevelDB made. C programs in `tests/c` make them and
//! print what the stores themselves read.
//!
//! A test without its library prints: SKIPPED.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod peers;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sateen::{ColumnFamilyOptions, Db, Options, ReadOptions};
use tempfile::TempDir;

/// Values in hexadecimal by column family number and key.
type Entries = BTreeMap<(usize, String), String>;

struct Peer {
    folder: TempDir,
    library: PathBuf,
    maker: PathBuf,
}

impl Peer {
    /// Builds the program that makes databases with the library.
    fn new(name: &str, library: PathBuf) -> Peer {
        let folder = TempDir::new().unwrap();
        let maker = folder.path().join("maker");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new("cc")
            .args(["-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(here.join("../capi/include"))
            .arg(here.join(format!("tests/c/{name}.c")))
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()))
            .args(["-Wl,--allow-shlib-undefined", "-o"])
            .arg(&maker)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Peer { folder, library, maker }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a database of `kind` under that name. Returns what the store itself reads in it.
    fn make(&self, kind: &str, keys: u32) -> Entries {
        let output = Command::new(&self.maker)
            .args([kind, self.at(kind).to_str().unwrap(), &keys.to_string()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| {
                let mut fields = line.split('\t').map(str::to_owned);
                let family = fields.next().unwrap().parse().unwrap();
                ((family, fields.next().unwrap()), fields.next().unwrap())
            })
            .collect()
    }

    /// Returns `sateen db import` of this store with `library`.
    fn command(&self, from: &str, to: &str, more: &[&str]) -> Command {
        let peer = if self.maker_is_of("rocksdb") { "rocksdb" } else { "leveldb" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
        command.current_dir(self.folder.path());
        command.args(["db", "import", peer, from, to, "--library"]);
        command.arg(&self.library).args(more);
        command
    }

    fn maker_is_of(&self, name: &str) -> bool {
        self.library.file_name().unwrap().to_string_lossy().contains(name)
    }

    /// Imports and checks for success.
    fn import(&self, from: &str, to: &str, more: &[&str]) -> String {
        let output = self.command(from, to, more).output().unwrap();
        assert_eq!(said(&output), (0, String::new()));
        assert!(!self.at(&format!("{to}.importing")).exists());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Checks that an import fails with `code` and `says`, and leaves nothing.
    fn refused(&self, from: &str, to: &str, more: &[&str], code: i32, says: &[&str]) {
        let there = self.at(to).exists();
        let (was, text) = said(&self.command(from, to, more).output().unwrap());
        assert_eq!(was, code, "{text}");
        for part in says {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("panicked"), "{text}");
        assert_eq!(self.at(to).exists(), there);
        assert!(!self.at(&format!("{to}.importing")).exists());
    }

    /// Starts the maker of a database that stays open until the child's input ends.
    fn open_elsewhere(&self) -> Child {
        let mut child = Command::new(&self.maker)
            .args(["open", self.at("open").to_str().unwrap(), "10"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "open\n");
        child
    }
}

fn said(output: &Output) -> (i32, String) {
    let code = output.status.code().expect("not ended by a signal");
    (code, String::from_utf8(output.stderr.clone()).unwrap())
}

fn rocksdb() -> Option<Peer> {
    peers::rocksdb().map(|library| Peer::new("rocksdb", library))
}

fn leveldb() -> Option<Peer> {
    peers::leveldb().map(|library| Peer::new("leveldb", library))
}

/// Returns the contents of the database at `path`, its column families numbered in the order of
/// `names`.
fn contents(path: &Path, names: &[&str]) -> Entries {
    let options = Options { create_if_missing: false, ..Options::default() };
    let db = Db::open(path, options).unwrap();
    let mut expected: Vec<&str> = names.to_vec();
    let mut there = db.column_families();
    expected.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, expected);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut entries = Entries::new();
    for (number, name) in names.iter().enumerate() {
        let family = db.column_family(name).unwrap();
        let mut iter = family.cursor(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        while iter.valid() {
            entries.insert((number, hex(iter.key())), hex(iter.value()));
            iter.next();
        }
        iter.status().unwrap();
    }
    let report = db.check(&mut |_, _| ()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    db.close().unwrap();
    entries
}

/// Returns the files of a directory with their bytes.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
    });
    named.collect()
}

fn assert_same(left: &Entries, right: &Entries) {
    assert_eq!(left.len(), right.len());
    let other = left.iter().zip(right).find(|(left, right)| left != right);
    assert_eq!(other, None);
}

#[test]
fn all_column_families_of_rocksdb_come_and_it_stays_as_it_is() {
    let Some(peer) = rocksdb() else { return };
    let expected = peer.make("families", 20_000);
    // The store's own reading shows that awkward keys exist and deleted ones do not.
    assert!(expected.contains_key(&(2, String::new())));
    assert_eq!(expected[&(1, "7477696365".to_owned())], "7365636f6e64");
    assert!(!expected.contains_key(&(0, "676f6e65".to_owned())));
    assert!(!expected.contains_key(&(0, "7264".to_owned())));
    assert!(expected.contains_key(&(0, "726d".to_owned())));
    let before = files(&peer.at("families"));
    let out = peer.import("families", "new", &["--verify"]);
    assert!(out.contains(&format!("imported {} keys", expected.len())), "{out}");
    assert!(out.contains("all compared"), "{out}");
    assert!(files(&peer.at("families")) == before, "the source was changed");
    let names = ["default", "users", "résumés of \t all"];
    assert_same(&contents(&peer.at("new"), &names), &expected);

    // Options for the new database, and an empty directory as its place.
    fs::create_dir(peer.at("regions")).unwrap();
    let more = ["--profile", "rocksdb", "--set", "regions=4;compression=zstd", "--json"];
    let out = peer.import("families", "regions", &more);
    let summary: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(summary["keys"].as_u64(), Some(expected.len() as u64));
    assert_eq!(summary["column_families"].as_array().unwrap().len(), 3);
    assert_same(&contents(&peer.at("regions"), &names), &expected);
    let db = Db::open(peer.at("regions"), Options::default()).unwrap();
    let options: ColumnFamilyOptions = db.column_family("users").unwrap().options();
    assert_eq!(options.regions.count(), 4);
}

#[test]
fn what_rocksdb_knows_of_itself_is_used() {
    let Some(peer) = rocksdb() else { return };
    // Operands of an operator of the program's own, blobs, tables of another format, WALs in
    // another place.
    for (kind, keys) in [("adds", 0), ("blobs", 2000), ("prefixes", 2000), ("logs-elsewhere", 2000)]
    {
        fs::create_dir(peer.at(&format!("{kind}.logs"))).unwrap();
        let expected = peer.make(kind, keys);
        assert!(expected.len() >= 2, "{kind}");
        peer.import(kind, &format!("{kind}.new"), &["--verify"]);
        assert_same(&contents(&peer.at(&format!("{kind}.new")), &["default"]), &expected);
    }
}

#[test]
fn what_is_missing_is_named() {
    let Some(peer) = rocksdb() else { return };
    peer.make("own-merge", 0);
    peer.make("own-order", 0);
    let merge = ["merge operands", "--source-options merge_operator="];
    peer.refused("own-merge", "new", &[], 1, &merge);
    // The error says that a full compaction helps.
    let expected = peer.make("own-merge-compacted", 0);
    peer.import("own-merge-compacted", "compacted", &["--verify"]);
    assert_same(&contents(&peer.at("compacted"), &["default"]), &expected);
    let order = ["own.Backwards", "order of their bytes"];
    peer.refused("own-order", "new", &[], 1, &order);
    let logs = peer.at("logs-elsewhere.logs");
    fs::create_dir(&logs).unwrap();
    let expected = peer.make("logs-elsewhere", 100);
    fs::rename(&logs, peer.at("moved")).unwrap();
    peer.refused("logs-elsewhere", "new", &[], 1, &["--source-options wal_dir=DIRECTORY"]);
    let moved = ["--source-options", "wal_dir=moved"];
    peer.import("logs-elsewhere", "from-moved", &moved);
    assert_same(&contents(&peer.at("from-moved"), &["default"]), &expected);
    let wrong = ["--source-options", "no_such_option=1"];
    peer.refused("own-merge", "new", &wrong, 2, &["no_such_option"]);
}

#[test]
fn what_cannot_be_imported_or_made_is_refused() {
    let Some(peer) = rocksdb() else { return };
    let expected = peer.make("families", 100);
    peer.refused("absent", "new", &[], 1, &["absent", "No such file"]);
    fs::create_dir(peer.at("empty")).unwrap();
    peer.refused("empty", "new", &[], 1, &["empty: not a database of RocksDB", "CURRENT"]);
    peer.refused("families", "new", &["--set", "nonsense=1"], 2, &["nonsense"]);
    let small = ["--set", "value_bytes_max=1MiB"];
    peer.refused("families", "new", &small, 1, &["default", "3000000 bytes", "value_bytes_max"]);
    // A new database must not remove another one's WALs.
    fs::create_dir(peer.at("logs")).unwrap();
    fs::write(peer.at("logs/000007.wal"), "a log").unwrap();
    let logs = ["--set", "wal_dir=logs"];
    peer.refused("families", "new", &logs, 1, &["logs/000007.wal is a log of another database"]);
    assert_eq!(fs::read(peer.at("logs/000007.wal")).unwrap(), b"a log");
    fs::create_dir(peer.at("full")).unwrap();
    fs::write(peer.at("full/a-file"), "").unwrap();
    peer.refused("families", "full", &[], 1, &["full: is not empty"]);
    peer.refused("families", "full/a-file", &[], 1, &["is not a directory"]);
    peer.refused("families", "families", &[], 1, &["families: is not empty"]);
    let no_library = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .current_dir(peer.folder.path())
        .args(["db", "import", "rocksdb", "families", "new", "--library", "librocksdb.so"])
        .output()
        .unwrap();
    let (code, text) = said(&no_library);
    assert!(code == 2 && text.contains("librocksdb.so: there is no such file"), "{text}");

    fs::write(peer.at("no-library.so"), "text").unwrap();
    let broken = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .current_dir(peer.folder.path())
        .args(["db", "import", "rocksdb", "families", "new", "--library", "no-library.so"])
        .output()
        .unwrap();
    let (code, text) = said(&broken);
    assert!(code == 1 && text.contains("no-library.so: cannot be loaded: "), "{text}");
    assert!(text.contains("header") || text.contains("too short"), "the reason: {text}");

    // A database that a program has open with RocksDB itself.
    let mut open = peer.open_elsewhere();
    peer.refused("open", "new", &[], 1, &["open: another program has it open"]);
    drop(open.stdin.take());
    assert!(open.wait().unwrap().success());

    // The remains of another import are never taken for a database, nor removed without being
    // asked.
    fs::create_dir_all(peer.at("new.importing/database")).unwrap();
    let (code, text) = said(&peer.command("families", "new", &[]).output().unwrap());
    assert!(code == 1 && text.contains("new.importing is what an import left"), "{text}");
    fs::remove_dir_all(peer.at("new.importing")).unwrap();
    peer.import("families", "new", &[]);
    let names = ["default", "users", "résumés of \t all"];
    assert_same(&contents(&peer.at("new"), &names), &expected);
}

/// Runs `sateen rocksdb export` with the peer's library.
fn export(peer: &Peer, from: &str, to: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sateen"));
    command.current_dir(peer.folder.path());
    command.args(["rocksdb", "export", from, to, "--library"]).arg(&peer.library).args(more);
    command
}

#[test]
fn an_export_gives_rocksdb_what_it_had_before_the_import() {
    let Some(peer) = rocksdb() else { return };
    let expected = peer.make("families", 20_000);
    peer.import("families", "new", &[]);
    // A write that RocksDB never had is in a WAL here, and must come along.
    let put = ["db", "put", "new", "from sateen", "x", "--cf", "users"];
    let put = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .current_dir(peer.folder.path())
        .args(put)
        .output()
        .unwrap();
    assert_eq!(said(&put), (0, String::new()));
    let more = ["--verify", "--json", "--target-options", "write_buffer_size=1000000"];
    let output = export(&peer, "new", "back", &more).output().unwrap();
    assert_eq!(said(&output), (0, String::new()));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["keys"].as_u64(), Some(expected.len() as u64 + 1));
    assert_eq!(summary["verified"], true);
    assert!(!peer.at("back.exporting").exists());
    // No file has the name of the place where it was made.
    for (name, bytes) in files(&peer.at("back")) {
        let is_options = name.starts_with("OPTIONS-");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!is_options || !text.contains("exporting"), "{name}: {text}");
    }
    // RocksDB reads it again by itself, without the directory in which it was made.
    peer.import("back", "again", &["--verify"]);
    let mut expected = expected;
    expected.insert((1, "66726f6d2073617465656e".to_owned()), "78".to_owned());
    let names = ["default", "users", "résumés of \t all"];
    assert_same(&contents(&peer.at("again"), &names), &expected);
}

#[test]
fn what_cannot_be_exported_is_refused_and_leaves_nothing() {
    let Some(peer) = rocksdb() else { return };
    peer.make("families", 100_000);
    peer.import("families", "new", &[]);
    let refused = |from: &str, to: &str, more: &[&str], code: i32, says: &str| {
        let (was, text) = said(&export(&peer, from, to, more).output().unwrap());
        assert!(was == code && text.contains(says) && !text.contains("panicked"), "{was}: {text}");
        assert!(!peer.at(&format!("{to}.exporting")).exists());
    };
    refused("absent", "back", &[], 1, "absent");
    refused("new", "families", &[], 1, "families: is not empty");
    refused("new", "back", &["--target-options", "no_such_option=1"], 2, "no_such_option");
    let put = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .current_dir(peer.folder.path())
        .args(["db", "put", "backwards", "k", "v", "--set", "comparator=reverse-bytewise"])
        .output()
        .unwrap();
    assert_eq!(said(&put), (0, String::new()));
    refused("backwards", "back", &[], 1, "order of their bytes");

    let mut child = export(&peer, "new", "back", &[]).stderr(Stdio::piped()).spawn().unwrap();
    while !peer.at("back.exporting/database/CURRENT").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, text) = said(&child.wait_with_output().unwrap());
    assert!(code == 130 && text.contains("back was not created"), "{code}: {text}");
    assert!(!peer.at("back").exists() && !peer.at("back.exporting").exists());

    fs::create_dir(peer.at("back.exporting")).unwrap();
    let (code, text) = said(&export(&peer, "new", "back", &[]).output().unwrap());
    assert!(code == 1 && text.contains("back.exporting is what an export left"), "{text}");
    assert!(peer.at("back.exporting").exists());
}

/// Starts an import and waits until it writes.
fn begun(peer: &Peer, from: &str, to: &str) -> Child {
    let mut child = peer.command(from, to, &[]).stderr(Stdio::piped()).spawn().unwrap();
    let current = peer.at(to).with_extension("importing").join("database/CURRENT");
    while !current.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::yield_now();
    }
    child
}

#[test]
fn an_interrupted_import_leaves_nothing() {
    let Some(peer) = rocksdb() else { return };
    peer.make("many", 300_000);
    let child = begun(&peer, "many", "new");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, text) = said(&child.wait_with_output().unwrap());
    assert_eq!(code, 130, "{text}");
    assert!(text.contains("new was not created"), "{text}");
    assert!(!peer.at("new").exists() && !peer.at("new.importing").exists());

    // A killed import cannot clean up. The next one says what to do.
    let mut child = begun(&peer, "many", "new");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(!peer.at("new").exists());
    let (code, text) = said(&peer.command("many", "new", &[]).output().unwrap());
    assert!(code == 1 && text.contains("remove it and import again"), "{text}");
    fs::remove_dir_all(peer.at("new.importing")).unwrap();
    let out = peer.import("many", "new", &["--verify"]);
    assert!(out.contains("imported 300000 keys"), "{out}");
}

#[test]
fn leveldb_comes_and_stays_as_it_is() {
    let Some(peer) = leveldb() else { return };
    let expected = peer.make("plain", 20_000);
    let before = files(&peer.at("plain"));
    assert!(before.keys().any(|name| name.ends_with(".ldb")), "{:?}", before.keys());
    peer.import("plain", "new", &["--verify", "--profile", "leveldb"]);
    assert!(files(&peer.at("plain")) == before, "the source was changed");
    assert_same(&contents(&peer.at("new"), &["default"]), &expected);

    peer.make("own-order", 100);
    peer.refused("own-order", "newer", &[], 1, &["own.Backwards", "order of their bytes"]);
    let options = ["--source-options", "a=b"];
    peer.refused("plain", "newer", &options, 2, &["--source-options"]);
    let mut open = peer.open_elsewhere();
    peer.refused("open", "newer", &[], 1, &["open: another program has it open"]);
    drop(open.stdin.take());
    assert!(open.wait().unwrap().success());
}

/// Damage of the source ends the import, because a part of a database would pass for the whole.
#[test]
fn a_damaged_source_is_not_imported() {
    let of_rocksdb = rocksdb().map(|peer| (peer, "many", ".sst"));
    let of_leveldb = leveldb().map(|peer| (peer, "plain", ".ldb"));
    for (peer, kind, ending) in of_rocksdb.into_iter().chain(of_leveldb) {
        peer.make(kind, 100_000);
        let mut tables = files(&peer.at(kind)).into_iter();
        let (name, mut bytes) = tables.find(|(name, _)| name.ends_with(ending)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(peer.at(kind).join(name), bytes).unwrap();
        peer.refused(kind, "new", &[], 1, &["orruption"]);
    }
}

/// The error for opening a RocksDB database says how to import it.
#[test]
fn the_way_is_named_where_it_is_missed() {
    let Some(peer) = rocksdb() else { return };
    peer.make("families", 10);
    let output = Command::new(env!("CARGO_BIN_EXE_sateen"))
        .current_dir(peer.folder.path())
        .args(["db", "scan", "families"])
        .output()
        .unwrap();
    let (code, text) = said(&output);
    assert_eq!(code, 1);
    let place = peer.folder.path().join("families");
    let way = format!("a RocksDB database; `sateen db import rocksdb {}", place.display());
    assert!(text.contains(&way), "{text}");
}
