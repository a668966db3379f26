//! Tests with a primary on a faulty file system: writes that failed and are in the WAL all the
//! same.

use std::path::Path;
use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::sync::lock;
use sateen_store::vfs::{
    Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation,
};
use sateen_store::wal::WalReader;
use sateen_store::wal::frame::{
    FORMAT_VERSION, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader, RecordKind,
};

use super::Follower;
use crate::batch::WriteBatch;
use crate::db::Db;
use crate::db::ingest::{IngestOptions, SstFileWriter};
use crate::options::Options;

/// Appends a commit group to the active WAL, without its writer.
pub(crate) fn append(vfs: &MemVfs, db: &Db, batch: &WriteBatch) {
    let (number, _) = db.core().writes.pipeline.live_logs().pop().unwrap();
    let path = sateen_store::files::wal_file_name(Path::new("/db"), number);
    let db_uid = db.core().tree.versions.db_uid();
    let mut reader = WalReader::open(vfs, &path, number, Some(db_uid), 0).unwrap();
    while reader.next().unwrap().is_some() {}
    let position = reader.position();
    let seed = FileHeader { version: FORMAT_VERSION, db_uid, number: number.0 }.seed(FileKind::Wal);
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record.extend_from_slice(batch.data());
    let header = RecordHeader {
        kind: RecordKind::Data,
        length: u32::try_from(batch.len_bytes()).unwrap(),
        synced_offset: 0,
        first_seqno: position.next_seqno,
        count: batch.count(),
    };
    header.seal(&mut record, seed, position.end, position.chain);
    let options = OpenOptions::WRITE;
    vfs.open(&path, options).unwrap().write_at(&record, position.end, IoClass::Wal).unwrap();
}

/// The failed write disappears once the primary goes on without it. The next write gets its
/// sequence number and is not taken for it.
#[test]
fn a_failed_write_that_was_seen_is_taken_back() {
    let mem = MemVfs::new();
    let shared: Arc<dyn Vfs> = Arc::new(mem.clone());
    let faulty = FaultVfs::new(shared.clone());
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
    db.put("a", "1").unwrap();
    let secondary = Db::open_secondary_with(shared, "/db", options, &[]).unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
    db.put("failed", "2").unwrap_err();
    faulty.clear();
    let mut batch = WriteBatch::new();
    batch.put("failed", "2").unwrap();
    batch.delete_range("a", "b").unwrap();
    append(&mem, &db, &batch);
    assert!(secondary.try_catch_up_with_primary().unwrap());
    assert_eq!(secondary.get("failed").unwrap().unwrap(), b"2");
    assert_eq!(secondary.get("a").unwrap(), None);
    db.resume().unwrap();
    db.put("b", "3").unwrap();
    assert!(secondary.try_catch_up_with_primary().unwrap());
    assert_eq!(secondary.get("failed").unwrap(), None);
    assert_eq!(secondary.get("a").unwrap().unwrap(), b"1");
    assert_eq!(secondary.get("b").unwrap().unwrap(), b"3");
    assert_eq!(SeqNo(secondary.latest_sequence_number()), SeqNo(2));
    assert!(!secondary.try_catch_up_with_primary().unwrap());
}

/// An edit between the look at the manifest and the look at the WALs is not missed.
#[test]
fn a_manifest_that_goes_on_is_looked_at_again() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
    db.put("a", "1").unwrap();
    let secondary = Db::open_secondary_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
    let core = secondary.core();
    let mut file = SstFileWriter::create_with(vfs, "/file", &options).unwrap();
    file.put("a", "file").unwrap();
    file.finish().unwrap();
    {
        let follower = Follower { env: &core.env, tree: &core.tree, writes: &core.writes };
        let mut following = lock(&core.secondary.as_ref().unwrap().following);
        assert!(!following.manifest.advance().unwrap());
        let family = db.default_column_family();
        family.ingest(&["/file"], &IngestOptions::default()).unwrap();
        db.put("b", "later than the file").unwrap();
        assert!(!following.round(&follower).unwrap(), "the log has what is newer than the file");
        assert!(following.round(&follower).unwrap());
    }
    assert_eq!(secondary.get("a").unwrap().unwrap(), b"1", "nothing is seen before all is there");
    assert_eq!(secondary.get("b").unwrap(), None);
    assert!(secondary.try_catch_up_with_primary().unwrap());
    assert_eq!(secondary.get("a").unwrap().unwrap(), b"file");
    assert!(secondary.get("b").unwrap().is_some());
}
