//! Checkpoints and backups beside changes that no WAL has: ingestions and new column families. A
//! copy that has a write also has everything that was done before it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::vfs::MemVfs;
use sateen::{
    BackupEngine, ColumnFamilyOptions, Db, DirectoryStore, IngestOptions, Options, RestoreOptions,
    SstFileWriter, WriteBatch, WriteOptions,
};

use crate::support::common::{as_vfs, assert_sound, tiny};

const COPIES: usize = 12;

fn number(db: &Db, key: &str) -> u64 {
    db.get(key).unwrap().map_or(0, |value| String::from_utf8_lossy(&value).parse().unwrap())
}

/// Calls `change` with 1, 2, and so on in a thread, and meanwhile makes checkpoints and backups.
/// Looks at each of these with `look`.
fn beside(change: impl Fn(&Db, &MemVfs, u64) + Send + 'static, look: impl Fn(&Db)) {
    let disk = MemVfs::new();
    let options = Options { background_threads: 2, ..tiny() };
    let db = Db::open_with(as_vfs(&disk), "/db", options.clone(), &[]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (db, disk, stop) = (db.clone(), disk.clone(), stop.clone());
        std::thread::spawn(move || {
            let changes = (1..).take_while(|_| !stop.load(Ordering::Relaxed));
            changes.for_each(|n| change(&db, &disk, n));
        })
    };
    let target = Arc::new(DirectoryStore::new(as_vfs(&MemVfs::new()), "/backups"));
    let mut engine = BackupEngine::open_with(target).unwrap();
    let copies = (0..COPIES).map(|copy| {
        let path = format!("/copy{copy}");
        db.checkpoint(&path).unwrap();
        (path, engine.create(&db).unwrap().id)
    });
    let copies: Vec<_> = copies.collect();
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    db.close().unwrap();
    let look_at = |disk: &MemVfs, path: &str| {
        let copy = Db::open_with(as_vfs(disk), path, options.clone(), &[]).unwrap();
        assert_sound(&copy);
        look(&copy);
    };
    for (path, id) in copies {
        look_at(&disk, &path);
        let memory = MemVfs::new();
        engine.restore_with(as_vfs(&memory), id, "/restored", &RestoreOptions::default()).unwrap();
        look_at(&memory, "/restored");
    }
}

#[test]
fn a_copy_with_a_write_has_the_ingestion_before_it() {
    let change = |db: &Db, disk: &MemVfs, n: u64| {
        let path = Path::new("/ingested");
        let mut writer = SstFileWriter::create_with(as_vfs(disk), path, &tiny()).unwrap();
        writer.put(b"ingested", n.to_string().as_bytes()).unwrap();
        writer.finish().unwrap();
        let options = IngestOptions { move_files: true, ..IngestOptions::default() };
        db.ingest(&[path], &options).unwrap();
        db.put("written", n.to_string()).unwrap();
    };
    beside(change, |copy| {
        let (ingested, written) = (number(copy, "ingested"), number(copy, "written"));
        let fits = (written..=written + 1).contains(&ingested);
        assert!(fits, "ingested {ingested}, wrote {written}");
    });
}

#[test]
fn a_copy_with_half_of_a_batch_has_all_of_it() {
    let change = |db: &Db, _: &MemVfs, n: u64| {
        let family = db.create_column_family(&format!("f{n}"), ColumnFamilyOptions::default());
        let mut batch = WriteBatch::new();
        batch.put("newest", n.to_string()).unwrap();
        batch.to(&family.unwrap()).put("in it", "1").unwrap();
        db.write(&batch, &WriteOptions::default()).unwrap();
    };
    beside(change, |copy| {
        let newest = number(copy, "newest");
        if newest > 0 {
            let family = copy.column_family(&format!("f{newest}")).unwrap();
            assert!(family.get("in it").unwrap().is_some(), "f{newest}");
        }
    });
}
