//! What the methods of a transaction share: checks, tracking, locking, reads and writes of any
//! column family.

use sateen_control::{SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchEntry, KEY_BYTES_MAX};

use super::{Transaction, TransactionOptions};
use crate::db::family::ColumnFamily;
use crate::db::{Db, check_family};
use crate::options::ReadOptions;
use crate::snapshot::Snapshot;
use crate::txn::batch_with_index::{BatchReading, WriteBatchWithIndex};
use crate::txn::locks::Locks;
use crate::txn::prepared;
use crate::txn::tracked::Tracked;

impl Transaction {
    pub(super) fn check(&self) -> Result<()> {
        self.ended.map_or(Ok(()), |how| Err(Error::TransactionOver(how)))
    }

    /// Fails if the transaction is over, or the family is dropped or of another database.
    pub(super) fn check_use(&self, family: &ColumnFamily) -> Result<()> {
        self.check()?;
        check_family(&family.data)?;
        if !family.belongs_to(self.default.db()) {
            return Err(Error::InvalidArgument(format!(
                "the column family {} belongs to another database, {}",
                family.name(),
                family.db().path().display()
            )));
        }
        Ok(())
    }

    /// Fails if the transaction is over or prepared.
    pub(super) fn check_change(&self) -> Result<()> {
        self.check()?;
        if self.is_prepared {
            let text = "the transaction is prepared: it can only be committed or rolled back";
            return Err(Error::InvalidArgument(text.into()));
        }
        Ok(())
    }

    /// Returns the prepared transaction `name`.
    pub(in crate::txn) fn prepared(
        db: &Db,
        options: &TransactionOptions,
        batch: WriteBatchWithIndex,
        locks: Locks,
        name: Vec<u8>,
    ) -> Transaction {
        let mut transaction = db.transaction_with(options);
        transaction.batch = batch;
        transaction.locks = Some(locks);
        transaction.name = Some(name);
        transaction.is_prepared = true;
        transaction.has_versions = true;
        transaction
    }

    pub(super) fn end(&mut self, how: &'static str) {
        if let Some(name) = self.name.take() {
            self.default.db().core().writes.prepared.forget(&name);
        }
        self.is_prepared = false;
        self.left = None;
        self.ended = Some(how);
        self.forget_writes();
        self.snapshot = None;
    }

    /// Forgets all writes, save points and tracked keys, and releases all locks.
    pub(super) fn forget_writes(&mut self) {
        self.batch.clear();
        self.tracked.truncate(0);
        self.locks.iter_mut().for_each(|locks| locks.truncate(0));
        self.points.clear();
    }

    /// Fails if a write with `bytes` of key and value would make the batch larger than it may be.
    pub(super) fn check_size(&self, bytes: usize) -> Result<()> {
        let Some(max) = self.write_bytes_max else { return Ok(()) };
        let size = (self.batch.batch().len_bytes() as u64).saturating_add(bytes as u64);
        if size > max { Err(Error::TransactionSize { bytes: size, max }) } else { Ok(()) }
    }

    /// Returns the family as the transaction sees it.
    pub(super) fn seeing<'a>(&'a self, family: &'a ColumnFamily) -> BatchReading<'a> {
        let options = self.snapshot.as_ref().map(ReadOptions::at).unwrap_or_default();
        self.batch.reading(family, options)
    }

    pub(super) fn get_in(&self, family: &ColumnFamily, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_use(family)?;
        self.seeing(family).get(key)
    }

    pub(super) fn get_for_update_in(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        exclusive: bool,
    ) -> Result<Option<Vec<u8>>> {
        self.track(family, key, exclusive, true)?;
        self.get_in(family, key)
    }

    /// Returns the value that the transaction itself has put to `key`.
    pub(crate) fn get_own_in(&self, family: &ColumnFamily, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_use(family)?;
        self.batch.get_over(family, key, || Ok(None))
    }

    /// Locks `key`. If `unchanged` fails then, the transaction does not hold the lock, unless it
    /// had it before.
    pub(crate) fn lock_if(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        exclusive: bool,
        unchanged: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let before = self.locks.as_ref().map_or(0, Locks::len);
        self.track(family, key, exclusive, true)?;
        let checked = unchanged();
        if let (Err(_), Some(locks)) = (&checked, &mut self.locks) {
            locks.truncate(before);
        }
        checked
    }

    /// Has the commit fail if others write `key` before it, or locks it. `validated`: it must be
    /// unchanged since the snapshot, too.
    pub(super) fn track(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        exclusive: bool,
        validated: bool,
    ) -> Result<()> {
        self.check_use(family)?;
        self.check_change()?;
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "a key of {} bytes exceeds the limit of {KEY_BYTES_MAX} bytes",
                key.len()
            )));
        }
        let Some(locks) = &mut self.locks else {
            if validated {
                self.tracked.track(&family.data, key, self.sees());
            }
            return Ok(());
        };
        let core = self.default.db().core();
        prepared::load(core)?;
        let before = locks.len();
        let is_new = locks.take(&family.data, key, exclusive, &core.env)?;
        if !validated {
            if is_new {
                locks.set_unchecked(&family.data, key, core.writes.pipeline.visible_seqno());
            }
            return Ok(());
        }
        // A key that the transaction had locked before may never have been compared.
        let Some(snapshot) = self.snapshot.as_ref().map(Snapshot::seqno) else { return Ok(()) };
        if is_new || locks.is_unchecked(&family.data, key, snapshot) {
            let conflicts = core.writes.pipeline.conflicts();
            let checked = Tracked::check(&family.data, key, snapshot, conflicts);
            // Held for nothing.
            checked.inspect_err(|_| locks.truncate(before))?;
            locks.set_checked(&family.data, key, snapshot);
        }
        Ok(())
    }

    /// Returns the newest sequence number that reads see now.
    pub(super) fn sees(&self) -> SeqNo {
        let visible = || self.default.db().core().writes.pipeline.visible_seqno();
        self.snapshot.as_ref().map_or_else(visible, Snapshot::seqno)
    }

    pub(super) fn own(
        &mut self,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        tracked: bool,
    ) -> Result<()> {
        let family = self.default.clone();
        self.write(&family, kind, key, value, tracked)
    }

    pub(super) fn write(
        &mut self,
        family: &ColumnFamily,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        tracked: bool,
    ) -> Result<()> {
        self.check_use(family)?;
        self.check_change()?;
        self.check_size(key.len() + value.len())?;
        let entry = BatchEntry { column_family: family.data.id(), kind, key, value };
        let before = self.locks.as_ref().map(Locks::len);
        if before.is_some() {
            self.track(family, key, true, tracked)?;
        }
        let added = self.batch.add(family.comparator(), &entry);
        if let (Err(_), Some(locks), Some(before)) = (&added, &mut self.locks, before) {
            locks.truncate(before);
        }
        added?;
        self.has_versions |= family.comparator().timestamp_bytes() > 0;
        // Only after that, so that a write that is refused tracks nothing. This cannot fail.
        if before.is_none() { self.track(family, key, true, tracked) } else { Ok(()) }
    }
}
