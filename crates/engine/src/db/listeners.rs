//! The trait of listeners, and the adapter through which the engine calls them.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use sateen_store::base::error::Error;

use super::Db;
use crate::core::DbCore;
use crate::events::{
    Announcement, CompactionInfo, ErrorReason, FlushInfo, Hears, IngestInfo, Listeners,
    MakesHandle, SealInfo, StallInfo, ValueFileInfo,
};

/// Callbacks for the events of a database. Any thread of the database or of the program may call a
/// method, several threads at once. It should return soon, because the calling thread waits for it.
/// It may read, write and ask for background work, but must not wait for that work. The handle that
/// it receives does not keep the database open. RocksDB: `EventListener`.
pub trait EventListener: Send + Sync {
    /// Called when a flush begins.
    fn flush_begins(&self, db: &Db, flush: &FlushInfo) {
        let _ = (db, flush);
    }
    /// Called when the tables of a flush are installed.
    fn flush_ended(&self, db: &Db, flush: &FlushInfo) {
        let _ = (db, flush);
    }
    /// Called when a compaction begins.
    fn compaction_begins(&self, db: &Db, compaction: &CompactionInfo) {
        let _ = (db, compaction);
    }
    /// Called when the result of a compaction is installed, or when the compaction has failed.
    fn compaction_ended(&self, db: &Db, compaction: &CompactionInfo) {
        let _ = (db, compaction);
    }
    /// Called when a file was ingested.
    fn file_ingested(&self, db: &Db, file: &IngestInfo) {
        let _ = (db, file);
    }
    /// Called when a value file of this column family was written and its values are part of the
    /// database, before the end of the flush or compaction that wrote it. RocksDB:
    /// `OnBlobFileCreated`.
    fn value_file_created(&self, db: &Db, column_family: &str, file: &ValueFileInfo) {
        let _ = (db, column_family, file);
    }
    /// Called when a value file was removed from its directory. Files that a close or a later open
    /// removes are not reported. RocksDB: `OnBlobFileDeleted`.
    fn value_file_deleted(&self, db: &Db, file: &Path) {
        let _ = (db, file);
    }
    /// Called when a memtable was sealed.
    fn memtable_sealed(&self, memtable: &SealInfo) {
        let _ = memtable;
    }
    /// Called when the admission of a column family's writers changes.
    fn stall_changed(&self, stall: &StallInfo) {
        let _ = stall;
    }
    /// Called when an error stops writes, or damage was found.
    fn background_error(&self, reason: ErrorReason, error: &Error) {
        let _ = (reason, error);
    }
    /// Called when the database has recovered from an error.
    fn recovered(&self) {}
}

impl Listeners {
    /// Adds a listener.
    pub fn add(&mut self, listener: Arc<dyn EventListener>) {
        self.0.push(Arc::new(Adapter(listener)));
    }
}

/// Calls the method of a listener that belongs to the event.
struct Adapter(Arc<dyn EventListener>);

impl Hears for Adapter {
    fn hear(&self, handle: &dyn Any, told: &Announcement<'_>) {
        let Some(db) = handle.downcast_ref::<Db>() else { return };
        let listener = &self.0;
        match *told {
            Announcement::FlushBegins(info) => listener.flush_begins(db, info),
            Announcement::FlushEnded(info) => listener.flush_ended(db, info),
            Announcement::CompactionBegins(info) => listener.compaction_begins(db, info),
            Announcement::CompactionEnded(info) => listener.compaction_ended(db, info),
            Announcement::FileIngested(info) => listener.file_ingested(db, info),
            Announcement::ValueFileCreated(family, file) => {
                listener.value_file_created(db, family, file);
            }
            Announcement::ValueFileDeleted(file) => listener.value_file_deleted(db, file),
            Announcement::MemtableSealed(info) => listener.memtable_sealed(info),
            Announcement::StallChanged(info) => listener.stall_changed(info),
            Announcement::BackgroundError(reason, error) => {
                listener.background_error(reason, error);
            }
            Announcement::Recovered => listener.recovered(),
        }
    }
}

impl MakesHandle for DbCore {
    fn handle(self: Arc<Self>) -> Box<dyn Any> {
        Box::new(Db::borrowed(self))
    }
}
