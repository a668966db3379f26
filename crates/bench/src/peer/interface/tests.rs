//! A stub of a peer in C, compiled with the header, beside what the benchmark expects of a peer.

use super::*;
use crate::engine::Engine;
use crate::peer::{Kind, kind};
use crate::store::{Compression, PeerCache};
use std::path::PathBuf;
use tempfile::TempDir;

/// Compiles the stub with these definitions.
fn built(folder: &TempDir, name: &str, definitions: &[&str]) -> PathBuf {
    let (source, library) = (folder.path().join("stub.c"), folder.path().join(name));
    std::fs::write(&source, include_str!("stub.c")).unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Werror", "-I"]);
    compiler.arg(header).args(definitions).arg("-o").arg(&library).arg(&source);
    assert!(compiler.status().unwrap().success());
    library
}

fn about_of(library: &Path) -> About {
    match kind(library).unwrap() {
        Kind::Other(about) => about,
        other => panic!("{other:?}"),
    }
}

fn failure<T>(result: Result<T>) -> String {
    result.err().unwrap().to_string()
}

fn buffered() -> StoreConfig {
    StoreConfig { wal: Some(Wal::Buffered), ..StoreConfig::nothing() }
}

#[test]
fn a_library_is_told_by_its_functions_and_its_version_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let library = built(&folder, "librocksdb.so", &[]);
    assert_eq!(about_of(&library).name(), "stub");
    let engine = Engine::of_library(&library).unwrap();
    assert_eq!(engine.name(), "stub");
    // The task of a child process brings what the library said.
    let task = serde_json::to_string(&engine).unwrap();
    assert_eq!(serde_json::from_str::<Engine>(&task).unwrap(), engine);

    let error = failure(kind(&built(&folder, "newer.so", &["-DABI=7"])));
    assert!(error.contains("newer.so: version 7"), "{error}");
    assert!(error.contains("calls version 1") && error.contains("sateen_peer.h"), "{error}");
    let error = failure(kind(&built(&folder, "part.so", &["-DNO_WAIT"])));
    assert!(error.contains("part.so") && error.contains("sateen_peer_wait_idle"), "{error}");
    let error = failure(kind(&built(&folder, "mine.so", &["-DNAME=\"sateen\""])));
    assert!(error.contains("mine.so") && error.contains("another engine's"), "{error}");
    let error = failure(kind(&built(&folder, "dots.so", &["-DNAME=\"../x\""])));
    assert!(error.contains("\"../x\""), "{error}");
}

#[test]
fn texts_without_a_meaning_are_named() {
    let parsed = |settings: &str| About::parse("a", settings, "").map(drop);
    assert_eq!(parsed("wal=off|sync; jobs;"), Ok(()));
    assert!(parsed("memory").unwrap_err().contains("memory"));
    assert!(parsed("compression=snappy").unwrap_err().contains("no value snappy"));
    assert!(parsed("jobs=many").unwrap_err().contains("no value many"));
}

#[test]
fn what_a_store_cannot_do_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let about = about_of(&built(&folder, "stub.so", &[]));
    assert!(about.check(&buffered()).is_ok());
    let followed = StoreConfig {
        memtables: Some(3),
        block_cache_bytes: Some(1),
        compression: Some(Compression::Lz4),
        peer_options: Some("size=1; colour=blue".to_owned()),
        ..buffered()
    };
    assert!(about.check(&followed).is_ok());
    let refused = [
        (StoreConfig { wal: Some(Wal::Off), ..buffered() }, "--wal off: stub has only buffered"),
        (StoreConfig { wal: None, ..buffered() }, "add --wal buffered or --wal sync"),
        (StoreConfig { direct: Some(true), ..buffered() }, "no --direct"),
        (StoreConfig { memtable_bytes: Some(1), ..buffered() }, "no --memtable-size"),
        (StoreConfig { memtables: Some(2), ..buffered() }, "--memtables 2: stub has only 3"),
        (StoreConfig { bloom_bits: Some(10.0), ..buffered() }, "no --bloom-bits"),
        (StoreConfig { jobs: Some(4), ..buffered() }, "no --jobs"),
        (
            StoreConfig { compression: Some(Compression::Zstd), ..buffered() },
            "--compression zstd: stub has only none, lz4",
        ),
        (StoreConfig { peer_rate_limit: Some(1), ..buffered() }, "--peer-rate-limit"),
        (StoreConfig { peer_cache: Some(PeerCache::Lru), ..buffered() }, "--peer-cache"),
        (
            StoreConfig { peer_options: Some("shape=round".to_owned()), ..buffered() },
            "shape=round: stub has no such option; it has colour, size",
        ),
        (StoreConfig { peer_options: Some("size".to_owned()), ..buffered() }, "A=B"),
    ];
    for (config, part) in refused {
        let error = failure(about.check(&config));
        assert!(error.contains(part), "{error}");
    }
    let none = About::parse("a", "wal=sync", "").unwrap();
    let own = StoreConfig { wal: None, peer_options: Some("a=1".to_owned()), ..buffered() };
    assert!(failure(none.check(&own)).contains("add --wal sync"));
    let own = StoreConfig { wal: Some(Wal::Sync), ..own };
    assert!(failure(none.check(&own)).contains("no options of its own"));
}

#[test]
fn a_setting_has_the_default_of_the_benchmark_if_the_store_has_it() {
    let about = About::parse("a", "memtables=5;block_cache;compression=lz4|none;wal=sync", "b");
    let about = about.unwrap();
    let given = StoreConfig {
        profile: Some("leveldb".to_owned()),
        peer_options: Some("b=1".to_owned()),
        ..StoreConfig::nothing()
    };
    // A profile brings Sateen's WAL, so the store's own is no surprise.
    about.check(&given).unwrap();
    let adapted = about.adapt(given.filled());
    assert_eq!((adapted.memtables, adapted.wal), (Some(5), Some(Wal::Sync)));
    assert_eq!(adapted.compression, Some(Compression::None));
    assert_eq!((adapted.memtable_bytes, adapted.direct, adapted.jobs), (None, None, None));
    assert_eq!(
        about.text(&adapted),
        "memtables=5;block_cache=268435456;compression=none;wal=sync;b=1"
    );
    let absent = ["memtable_size", "bloom_bits", "direct", "jobs"];
    assert_eq!(about.absent(), absent);
}

#[test]
fn operations_reach_the_store_and_its_errors_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let library = built(&folder, "stub.so", &[]);
    let engine = Engine::of_library(&library).unwrap();
    let opened = |own: Option<&str>| {
        let own = own.map(str::to_owned);
        let given = StoreConfig { wal: Some(Wal::Sync), peer_options: own, ..buffered() };
        engine.open(folder.path(), &engine.adapt(given))
    };
    let error = failure(opened(Some("colour=red")));
    assert!(error.contains("stub, ") && error.ends_with("colour=red: only blue"), "{error}");

    let store = opened(Some("size=2")).unwrap();
    assert_eq!(store.version(), "Stub 1.2");
    let notes = store.notes();
    let settings = "memtables=3;block_cache=268435456;compression=none;wal=sync;size=2";
    assert_eq!(notes[0], settings);
    assert!(notes[1].contains("does not have: memtable_size, bloom_bits, direct, jobs"));
    // The stub fails without saying why until it is flushed.
    assert!(failure(store.wait_idle()).contains("does not say why"));
    store.flush().unwrap();
    store.wait_idle().unwrap();

    let mut client = store.client();
    let mut value = Vec::new();
    assert!(!client.get(b"b", &mut value).unwrap());
    for key in [b"b", b"a", b"d"] {
        client.put(key, &key.repeat(30)).unwrap();
    }
    assert!(client.get(b"a", &mut value).unwrap());
    assert_eq!(value, b"a".repeat(30));
    // A value that does not fit is read again.
    let mut small = Vec::with_capacity(1);
    assert!(client.get(b"d", &mut small).unwrap());
    assert_eq!(small, b"d".repeat(30));
    client.write_batch(&[(b"c", Some(b"")), (b"b", None)]).unwrap();
    assert_eq!(client.multi_get(&[b"a", b"b", b"c", b"d"]).unwrap(), 3);
    assert_eq!(client.scan(b"b", 10).unwrap(), 2);
    assert_eq!(client.scan(b"", 2).unwrap(), 2);
    assert_eq!(client.scan(b"e", 2).unwrap(), 0);
    client.delete(b"d").unwrap();
    assert_eq!(client.scan(b"b", 10).unwrap(), 1);
    // Every one of the six changes so far was synced.
    let counters = store.counters();
    let expected = ClassBytes { class: "flush".to_owned(), read: 0, written: 7 };
    assert_eq!(counters.io, [expected]);
    assert_eq!((counters.barriers, counters.running_jobs), (Some(6), Some(2)));
    assert_eq!((counters.stall_count, counters.cache_bytes), (None, None));

    client.put(b"bad", b"").unwrap();
    assert!(failure(client.scan(b"a", 10)).contains("stub: a block is damaged"));
    client.put(b"huge", b"").unwrap();
    assert!(failure(client.get(b"huge", &mut value)).contains("1099511627776 bytes"));
    for key in b'0'..b'4' {
        client.put(&[key], b"").unwrap();
    }
    assert!(failure(client.put(b"x", b"")).contains("stub: the disk of the stub is full"));
}

#[test]
fn batches_of_a_store_without_them_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::of_library(&built(&folder, "stub.so", &["-DNO_BATCHES"])).unwrap();
    let store = engine.open(folder.path(), &buffered()).unwrap();
    let error = failure(store.client().write_batch(&[(b"c", None)]));
    assert!(error.contains("stub has no atomic batches"), "{error}");
}
