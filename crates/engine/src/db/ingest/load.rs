//! Bulk load: sorted entries of the caller go straight into tables of the database, without the
//! WAL, the memtable or a file in between.
//!
//! 1. [`BulkLoad::part`] begins a part. Threads may write parts at the same time.
//! 2. [`BulkPart::put`] checks the order and the length of an entry and adds it to a table.
//! 3. [`BulkPart::finish`] makes the tables of the part durable and hands them to the load.
//! 4. [`BulkLoad::finish`] checks that no parts overlap, and all tables join the database together
//!    ([`super::join`]).
//!
//! What must stay true:
//!
//! - All entries become visible together or not at all.
//! - The files of a part or load that is dropped are removed, but not in a child of fork: they may
//!   be files of the parent's database by then.

use std::sync::Arc;

use sateen_control::{SeqNo, UserKey, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::key;
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::batch::KEY_BYTES_MAX;

use super::Ingestion;
use super::join::{Extent, Joining};
use super::trees::{TreeTables, TreesWriter};
use super::writer::descending;
use crate::batch::too_large;
use crate::operators::wall_clock::WallClock;
use crate::tree::families::ColumnFamilyData;
use crate::ttl;

/// A load of many entries, which [`Db::bulk_load`](crate::Db::bulk_load) begins. Dropped without
/// [`BulkLoad::finish`], it leaves nothing behind.
///
/// The directory of the database stays locked until the load is finished or dropped, even if the
/// database is closed.
pub struct BulkLoad<'a> {
    ingestion: Ingestion<'a>,
    family: Arc<ColumnFamilyData>,
    parts: Mutex<Vec<Finished>>,
}

/// A part that was finished.
struct Finished {
    extent: Extent,
    writer: TreesWriter,
    tables: Vec<TreeTables>,
}

/// A range of entries of a [`BulkLoad`], in ascending order. Dropped without [`BulkPart::finish`],
/// it leaves nothing behind.
pub struct BulkPart<'a> {
    load: &'a BulkLoad<'a>,
    /// `None` after an error.
    writer: Option<TreesWriter>,
    value_bytes_max: usize,
    /// The clock for the times of values, if they have times.
    times: Option<WallClock>,
    smallest: Option<UserKey>,
    /// The internal key of the last entry, if there is one.
    internal: Vec<u8>,
}

impl<'a> BulkLoad<'a> {
    pub(crate) fn new(ingestion: Ingestion<'a>, family: Arc<ColumnFamilyData>) -> BulkLoad<'a> {
        BulkLoad { ingestion, family, parts: Mutex::new(Vec::new()) }
    }

    /// Begins a part. [`Db::bulk_load`](crate::Db::bulk_load) has an example.
    #[must_use]
    pub fn part(&self) -> BulkPart<'_> {
        let options = self.ingestion.core.env.options.load();
        BulkPart {
            load: self,
            writer: Some(TreesWriter::new(self.ingestion.core, &self.family)),
            value_bytes_max: usize::try_from(options.value_bytes_max).unwrap_or(usize::MAX),
            times: self.family.has_times().then(|| options.wall_clock.clone()),
            smallest: None,
            internal: Vec::new(),
        }
    }

    /// Adds the entries of all finished parts to the database. They become visible together, and
    /// are durable when this returns.
    ///
    /// # Errors
    /// `InvalidArgument` if parts overlap. `TimedOut` if keys in their range are written all the
    /// time. `NoSuchColumnFamily`, `Io`, `Background`, `Closed`. Nothing is loaded then.
    pub fn finish(self) -> Result<()> {
        let mut parts = std::mem::take(&mut *lock(&self.parts));
        let joined = self.join(&mut parts);
        if let Err(error) = &joined {
            let mut writers: Vec<_> = parts.into_iter().map(|part| part.writer).collect();
            self.ingestion.give_up(&mut writers, error);
        }
        joined
    }

    fn join(&self, parts: &mut [Finished]) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        parts.sort_by(|a, b| a.extent.smallest.cmp(&b.extent.smallest));
        let overlap = parts
            .windows(2)
            .find(|two| matches!(two, [first, second] if first.extent.overlaps(&second.extent)));
        if let Some([first, second]) = overlap {
            let key = |key: &UserKey| key.bytes().escape_ascii().to_string();
            return Err(Error::InvalidArgument(format!(
                "parts of a load overlap: one ends with {}, and another begins with {}",
                key(&first.extent.largest),
                key(&second.extent.smallest),
            )));
        }
        let mut tables: Vec<TreeTables> = Vec::new();
        for mut of_tree in parts.iter_mut().flat_map(|part| part.tables.drain(..)) {
            match tables.last_mut().filter(|last| last.tree.id() == of_tree.tree.id()) {
                Some(last) => last.tables.append(&mut of_tree.tables),
                None => tables.push(of_tree),
            }
        }
        let joining = Joining {
            family: &self.family,
            layers: vec![parts.iter().map(|part| &part.extent).collect()],
            tables: &[tables],
            allow_flush: true,
        };
        self.ingestion.join(&joining, || {
            self.ingestion.core.env.check_writable("a bulk load")?;
            crate::db::check_family(&self.family)
        })
    }
}

impl Drop for BulkLoad<'_> {
    fn drop(&mut self) {
        let parts = std::mem::take(&mut *lock(&self.parts));
        parts.into_iter().for_each(|part| drop_files(&self.ingestion, part.writer));
    }
}

impl BulkPart<'_> {
    /// Adds an entry, whose key must be greater than that of the entry before.
    ///
    /// # Errors
    /// `InvalidArgument` if the key does not come after the one before, or key or value is too
    /// long; the entry is left out then. `Io`, after which the part refuses everything.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), value.as_ref())
    }

    fn add(&mut self, user_key: &[u8], value: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Err(failed()) };
        if user_key.len() > KEY_BYTES_MAX {
            return Err(too_large("a key", user_key.len(), KEY_BYTES_MAX));
        }
        if value.len() > self.value_bytes_max {
            return Err(too_large("a value", value.len(), self.value_bytes_max));
        }
        let comparator = self.load.family.comparator();
        if self.smallest.is_some() {
            let last = key::user_key(&self.internal);
            if comparator.compare(user_key, last).is_le() {
                return Err(descending(user_key, last));
            }
        }
        let timed = self.times.as_ref().map(|clock| ttl::timed(value, clock)).transpose()?;
        if self.smallest.is_none() {
            self.smallest = Some(comparator.key(user_key));
        }
        self.internal.clear();
        key::append(&mut self.internal, user_key, SeqNo(0), ValueKind::Put);
        let added = writer.add(&self.internal, timed.as_deref().unwrap_or(value));
        if added.is_err() {
            self.give_up();
        }
        added
    }

    /// Ends the part and makes its tables durable. They become visible with [`BulkLoad::finish`].
    ///
    /// # Errors
    /// `Io`. `InvalidArgument` if an earlier call failed with another error than `InvalidArgument`.
    pub fn finish(mut self) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Err(failed()) };
        let Some(smallest) = self.smallest.take() else { return Ok(()) };
        // An error drops this part, and its files with it.
        let tables = writer.finish()?;
        let largest = self.load.family.comparator().key(key::user_key(&self.internal));
        let extent = Extent { smallest, largest, ranges: Vec::new() };
        if let Some(writer) = self.writer.take() {
            lock(&self.load.parts).push(Finished { extent, writer, tables });
        }
        Ok(())
    }

    fn give_up(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop_files(&self.load.ingestion, writer);
        }
    }
}

impl Drop for BulkPart<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Removes the files of `writer`.
fn drop_files(ingestion: &Ingestion<'_>, mut writer: TreesWriter) {
    if !ingestion.core.env.is_of_parent() {
        writer.abandon();
    }
}

#[cold]
fn failed() -> Error {
    Error::InvalidArgument("an earlier call failed, so this part of a load is lost".into())
}

impl std::fmt::Debug for BulkLoad<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoad")
            .field("column_family", &self.family.name())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for BulkPart<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkPart").field("load", self.load).finish_non_exhaustive()
    }
}
