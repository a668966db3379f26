//! Tests of writes that are in the WAL and that no reader sees.

use std::path::Path;
use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::error::Error;
use sateen_store::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, Vfs, VfsOperation};

use crate::batch::WriteBatch;
use crate::db::Db;
use crate::options::Options;
use crate::secondary::tests::append;

#[test]
fn what_is_in_the_log_and_not_visible_is_not_shown() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(vfs, Path::new("/db"), options, &[]).unwrap();
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").unwrap();
    batch.put("c", "3").unwrap();
    let pipeline = &db.core().writes.pipeline;
    pipeline.exclusive(|stage| stage.append_unseen(&batch));
    let mut updates = db.updates_since(1).unwrap();
    updates.next();
    assert!(!updates.valid() && updates.status().is_ok());
    pipeline.show(SeqNo(2));
    updates.next();
    assert!(!updates.valid(), "a part of it is not visible");
    pipeline.show(SeqNo(3));
    updates.next();
    assert_eq!((updates.sequence_number(), updates.last_sequence_number()), (2, 3));
    assert_eq!(updates.batch(), Some(&batch));
}

/// The write failed, and is in the WAL nevertheless. Its sequence number is used again by another
/// write.
#[test]
fn what_failed_and_is_in_the_log_is_not_shown() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(Arc::new(mem.clone()));
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(Arc::new(faulty.clone()), Path::new("/db"), options, &[]).unwrap();
    db.put("a", "1").unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
    db.put("failed", "2").unwrap_err();
    faulty.clear();
    let mut batch = WriteBatch::new();
    batch.put("failed", "2").unwrap();
    append(&mem, &db, &batch);
    let mut updates = db.updates_since(1).unwrap();
    assert_eq!(updates.sequence_number(), 1);
    updates.next();
    assert!(!updates.valid() && updates.status().is_ok());
    db.resume().unwrap();
    db.put("b", "3").unwrap();
    assert_eq!(db.latest_sequence_number(), 2);
    updates.next();
    assert!(!updates.valid(), "{updates:?}");
    assert!(matches!(updates.status(), Err(Error::NotInLog(_))), "{:?}", updates.status());
}

/// Log data alone has no sequence number that could tell it apart.
#[test]
fn log_data_of_a_write_that_failed_is_not_shown() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(Arc::new(mem.clone()));
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(Arc::new(faulty.clone()), Path::new("/db"), options, &[]).unwrap();
    db.put("a", "1").unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
    let mut batch = WriteBatch::new();
    batch.put_log_data("failed").unwrap();
    db.write(&batch, &Default::default()).unwrap_err();
    faulty.clear();
    append(&mem, &db, &batch);
    let mut updates = db.updates_since(1).unwrap();
    updates.next();
    assert!(!updates.valid() && updates.status().is_ok(), "{updates:?}");
}
