//! Listeners of the program, and how the engine calls them.

use std::any::Any;
use std::sync::Arc;

use sateen_store::base::error::Error;

use super::Db;
use crate::core::DbCore;
use crate::events::{
    Announcement, CompactionInfo, ErrorReason, FlushInfo, Hears, IngestInfo, Listeners,
    MakesHandle, SealInfo, StallInfo,
};

/// Hears what a database does. Each method may be called by any thread of the database or of the
/// program, several at once. It should return soon: the thread that calls it does nothing else
/// meanwhile. It may read, write and ask for background work, but must not wait for that work. The
/// handle that it is given does not keep the database open. RocksDB: `EventListener`.
pub trait EventListener: Send + Sync {
    /// A flush begins.
    fn flush_begins(&self, db: &Db, flush: &FlushInfo) {
        let _ = (db, flush);
    }
    /// A flush is part of the database.
    fn flush_ended(&self, db: &Db, flush: &FlushInfo) {
        let _ = (db, flush);
    }
    /// A compaction begins.
    fn compaction_begins(&self, db: &Db, compaction: &CompactionInfo) {
        let _ = (db, compaction);
    }
    /// A compaction is part of the database, or failed.
    fn compaction_ended(&self, db: &Db, compaction: &CompactionInfo) {
        let _ = (db, compaction);
    }
    /// A file was taken in.
    fn file_ingested(&self, db: &Db, file: &IngestInfo) {
        let _ = (db, file);
    }
    /// A memtable takes no more writes.
    fn memtable_sealed(&self, memtable: &SealInfo) {
        let _ = memtable;
    }
    /// Writers are admitted in another way.
    fn stall_changed(&self, stall: &StallInfo) {
        let _ = stall;
    }
    /// Something failed that keeps the database from working, or damage was found.
    fn background_error(&self, reason: ErrorReason, error: &Error) {
        let _ = (reason, error);
    }
    /// All is well again.
    fn recovered(&self) {}
}

impl Listeners {
    /// Adds a listener.
    pub fn add(&mut self, listener: Arc<dyn EventListener>) {
        self.0.push(Arc::new(Adapter(listener)));
    }
}

/// Calls the method of a listener that fits what is told.
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
