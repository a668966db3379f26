//! Timestamps of a transaction: its writes to column families whose keys have timestamps get theirs
//! at the commit.
//!
//! 1. A write has the key with a *placeholder* for its timestamp ([`placeholder`]): all bytes 0xff.
//!    So two transactions that write a key lock the same bytes.
//! 2. A prepare stores the batch with its placeholders.
//! 3. `stamped` returns the batch of the commit: each placeholder is replaced by the timestamp.
//!
//! What must stay true: no placeholder is ever written to its column family.

use sateen_control::{ColumnFamilyId, Comparator};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchEntry, BatchItem};

use super::Transaction;
use crate::batch::WriteBatch;
use crate::options::WriteOptions;

/// Returns the key that stands for `key` at a timestamp that is not known yet.
pub(crate) fn placeholder(comparator: &Comparator, key: &[u8]) -> Vec<u8> {
    [key, &vec![0xff; comparator.timestamp_bytes()]].concat()
}

/// Returns the key without its placeholder; `None` if it has none.
pub(crate) fn without_placeholder<'a>(comparator: &Comparator, key: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = comparator.timestamp_bytes();
    let (whole, end) = key.split_at_checked(key.len().checked_sub(bytes)?)?;
    (bytes > 0 && end.iter().all(|byte| *byte == 0xff)).then_some(whole)
}

impl Transaction {
    /// Commits as [`Transaction::commit`] does. The writes to column families with timestamps
    /// ([`TimestampedFamily::within`](crate::TimestampedFamily::within)) get this timestamp.
    /// RocksDB: `SetCommitTimestamp` and `Commit`.
    ///
    /// # Errors
    /// As [`Transaction::commit`]. `InvalidArgument` if the timestamp has not the length of a
    /// comparator's.
    pub fn commit_at(&mut self, timestamp: impl AsRef<[u8]>) -> Result<()> {
        let write = self.write.clone();
        self.commit_stamped(Some(timestamp.as_ref()), &write)
    }

    /// Commits at `timestamp`. `None` is an error if a write needs one.
    pub(super) fn commit_stamped(
        &mut self,
        timestamp: Option<&[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.check()?;
        let stamped = self.stamped(timestamp)?;
        self.write_commit(stamped.as_ref().unwrap_or(self.batch.batch()), options)?;
        self.end("committed");
        Ok(())
    }

    /// Returns the batch with `timestamp` in place of all placeholders; `None` if it has none.
    fn stamped(&self, timestamp: Option<&[u8]>) -> Result<Option<WriteBatch>> {
        if !self.has_versions {
            return Ok(None);
        }
        let families = self.default.db().core().tree.families();
        let bare = |entry: &BatchEntry<'_>| {
            let comparator = families.by_id(entry.column_family)?.comparator();
            without_placeholder(comparator, entry.key).map(<[u8]>::len)
        };
        if !self.batch.batch().iter().any(|it| bare(&it).is_some()) {
            return Ok(None);
        }
        let Some(timestamp) = timestamp else {
            let text = "the transaction has written keys with timestamps: its commit needs one";
            return Err(Error::InvalidArgument(text.into()));
        };
        let mut whole = WriteBatch::with_value_bytes_max(usize::MAX);
        for item in self.batch.batch().items() {
            let BatchItem::Write(entry) = item else {
                whole.add_item(&item)?;
                continue;
            };
            let Some(length) = bare(&entry) else {
                whole.add_item(&item)?;
                continue;
            };
            check_length(entry.column_family, entry.key.len() - length, timestamp)?;
            let key = [entry.key.get(..length).unwrap_or_default(), timestamp].concat();
            whole.add_entry(&BatchEntry { key: &key, ..entry })?;
        }
        Ok(Some(whole))
    }
}

fn check_length(family: ColumnFamilyId, bytes: usize, timestamp: &[u8]) -> Result<()> {
    if timestamp.len() == bytes {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "a timestamp of {} bytes: the keys of the column family number {} have timestamps of \
         {bytes}",
        timestamp.len(),
        family.0
    )))
}
