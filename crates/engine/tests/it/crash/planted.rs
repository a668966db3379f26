//! Tests for bugs that were planted and that no other test found (`cargo xtask rel planted`).

use std::path::Path;
use std::process::Command;

use sateen::vfs::{
    CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation,
};
use sateen::{Compression, Db, Options, ReadOptions};

use crate::resources::space::{shapes, store, store_half};
use crate::support::common::{Contents, as_vfs, assert_sound, own_test, read_all, tiny};
use crate::support::extents::wasted_bytes;

/// What could not be punched is punched later.
#[test]
fn space_is_given_back_though_a_punch_failed() {
    let vfs = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&vfs));
    let options = shapes().remove(0);
    let db = Db::open_with(std::sync::Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
    store(&db, 0..2000, "old");
    let iterator = db.cursor(&ReadOptions::default()).unwrap();
    store_half(&db, 2000);
    let rule = FaultRule::new(Fault::Io).on(VfsOperation::PunchHole);
    let rule = faulty.add(rule);
    drop(iterator);
    db.wait_idle().unwrap();
    assert!(faulty.happened(rule) > 0, "there was something to punch");
    faulty.clear();
    // What has failed waits for its time; a close does not.
    db.wait_idle().unwrap();
    db.close().unwrap();
    assert_eq!(wasted_bytes(&vfs, Path::new("/db")), 0, "after an orderly end");
}

/// What an iterator keeps from being given back is told.
#[test]
fn what_a_long_iterator_pins_is_told() {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    store(&db, 0..500, "old");
    let iterator = db.cursor(&ReadOptions::default()).unwrap();
    store(&db, 0..500, "new");
    let pinned = db.metrics().obsolete_bytes;
    assert!(pinned > 20_000, "{pinned} bytes of tables are kept for the iterator");
    drop(iterator);
    db.wait_idle().unwrap();
    assert_eq!(db.metrics().obsolete_bytes, 0);
}

/// Pieces of a file of tables change places with those behind them, of every size: among them are
/// its blocks, whose checksums are right, but elsewhere.
#[test]
fn blocks_in_each_others_place_are_not_taken_for_each_other() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.column_family.memtable_bytes = 64 << 10;
    options.column_family.table_bytes = 64 << 10;
    options.column_family.restart_interval = 1;
    options.column_family.compression = vec![Compression::None];
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    // Of one size, so that blocks are, too.
    (0..100).for_each(|key| db.put(format!("key{key:03}"), format!("{key:040}")).unwrap());
    db.flush_all().unwrap();
    let family = db.default_column_family();
    let expected = read_all(&family, &ReadOptions::default());
    db.close().unwrap();
    let listed = vfs.list(Path::new("/db")).unwrap();
    let table = listed.iter().find(|name| name.extension().is_some_and(|kind| kind == "sat"));
    let path = Path::new("/db").join(table.unwrap());
    let contents = vfs.contents(&path).unwrap();
    let mut refused = 0;
    for size in 100..1000 {
        let image = vfs.crash_image(CrashChoice::Everything);
        let file = image.open(&path, OpenOptions::WRITE).unwrap();
        // Tables begin behind the header's page.
        let (one, other) = (4096, 4096 + size);
        let write = |from: usize, to: usize| {
            file.write_at(&contents[from..from + size], to as u64, IoClass::Client).unwrap();
        };
        write(one, other);
        write(other, one);
        file.sync_data(IoClass::Client).unwrap();
        match read_or_refuse(&image, &options) {
            Ok(found) => assert!(found == expected, "pieces of {size} bytes: wrong contents"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 800, "{refused} of 900 are told");
}

fn read_or_refuse(vfs: &MemVfs, options: &Options) -> sateen::Result<Contents> {
    let db = Db::open_with(as_vfs(vfs), "/db", options.clone(), &[])?;
    let mut found = Contents::new();
    for key in (0..100).map(|key| format!("key{key:03}")) {
        if let Some(value) = db.get(&key)? {
            found.insert(key.into_bytes(), value);
        }
    }
    Ok(found)
}

const CUT_SHORT: &str = "SATEEN_TEST_CUT_SHORT";

/// What the other process does, whose files may not grow beyond a limit; as a test of its own it
/// does nothing.
#[test]
fn writer_that_is_cut_short() {
    let Ok(directory) = std::env::var(CUT_SHORT) else { return };
    let db = Db::open(&directory, writes_that_grow()).unwrap();
    for number in 0..1000 {
        // No whole number of them fits the limit: one is cut.
        if let Err(error) = db.put(format!("key{number:04}"), vec![b'x'; 997]) {
            println!("refused: {error}");
            return;
        }
        println!("written {number}.");
    }
    panic!("files had no limit");
}

fn writes_that_grow() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 16 << 20;
    options
}

/// A write that the system cut short, as it does where a disk or a limit ends, is not taken for
/// whole.
#[test]
fn a_write_that_was_cut_short_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("db");
    // The signal that says so is to be ignored, by the writer, too: then calls are cut, and fail.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &own_test(module_path!(), "writer_that_is_cut_short"), "--nocapture"])
        .env(CUT_SHORT, &directory)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("refused: "), "{said}");
    let written = said.lines().filter(|line| line.starts_with("written ")).count();
    assert!(written > 10, "{written} were written before the limit");
    let db = Db::open(&directory, writes_that_grow()).unwrap();
    for number in 0..written {
        let found = db.get(format!("key{number:04}")).unwrap();
        assert_eq!(found.map(|value| value.len()), Some(997), "key{number:04} was acknowledged");
    }
    assert_sound(&db);
}
