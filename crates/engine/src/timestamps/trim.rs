//! Trims history: deletes the versions after a timestamp.
//!
//! [`TimestampedFamily::trim_history`] works in three steps:
//!
//! 1. It walks over the versions that are there when it begins.
//! 2. It deletes those after the timestamp, in batches of about [`BATCH_BYTES`].
//! 3. It flushes the column family, so that the deletions are durable, whatever the WAL is.
//!
//! What must stay true: a version that is not after the timestamp is never touched. So a trim that
//! an error or a crash cut short is completed by the next one.

use sateen_store::base::error::Result;

use super::TimestampedFamily;
use super::entry::{check, is_before, split};
use crate::batch::WriteBatch;
use crate::options::{ReadOptions, WriteOptions};

/// Size of the batches of deletions. They are small beside a memtable.
const BATCH_BYTES: usize = 64 << 10;

impl TimestampedFamily {
    /// Fails if `timestamp` cannot be one of this column family.
    ///
    /// # Errors
    /// `InvalidArgument` if it has not the length of the comparator's.
    pub fn check_timestamp(&self, timestamp: impl AsRef<[u8]>) -> Result<()> {
        check(self.comparator(), timestamp.as_ref())
    }

    /// Deletes all versions after `latest`, for good and for reads as of any timestamp. The column
    /// family is then as if nobody had written after `latest`. Returns the number of versions that
    /// were deleted. RocksDB: `OpenAndTrimHistory`.
    ///
    /// The deletions are durable when it returns. They are not one atomic write: after an error or
    /// a crash some versions after `latest` may be gone and others not, and another call deletes
    /// the rest. Versions that others write meanwhile may stay. Compactions give the bytes back.
    ///
    /// ```
    /// use sateen::{ColumnFamilyOptions, Comparator, ReadOptions, WriteOptions};
    ///
    /// // By key, and newer versions of a key first. Timestamps are big-endian numbers.
    /// let comparator = Comparator::timestamped("by key", 8, |a, b| {
    ///     let ((a, a_time), (b, b_time)) = (a.split_at(a.len() - 8), b.split_at(b.len() - 8));
    ///     a.cmp(b).then_with(|| b_time.cmp(a_time))
    /// });
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let options = ColumnFamilyOptions { comparator, ..ColumnFamilyOptions::default() };
    /// let prices = db.create_column_family("prices", options)?.timestamped().unwrap();
    /// let at = |time: u64| time.to_be_bytes();
    /// prices.put("fig", at(1), "10", &WriteOptions::default())?;
    /// prices.put("fig", at(5), "12", &WriteOptions::default())?;
    /// assert_eq!(prices.trim_history(at(4))?, 1);
    /// assert_eq!(prices.get("fig", at(9), &ReadOptions::default())?.unwrap().value, b"10");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the timestamp has not the length of the comparator's. As
    /// [`Db::cursor`](crate::Db::cursor), [`Db::write`](crate::Db::write) and
    /// [`Db::flush`](crate::Db::flush).
    pub fn trim_history(&self, latest: impl AsRef<[u8]>) -> Result<u64> {
        let latest = latest.as_ref();
        let comparator = self.comparator();
        self.check_timestamp(latest)?;
        let db = self.family.db();
        let reading = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut cursor = self.family.cursor(&reading)?;
        let (mut batch, mut deleted) = (WriteBatch::new(), 0);
        cursor.seek_to_first();
        while cursor.valid() {
            let after = split(cursor.key(), comparator.timestamp_bytes())
                .is_some_and(|(_, timestamp)| is_before(comparator, latest, timestamp));
            if after {
                batch.to(&self.family).delete(cursor.key())?;
                deleted += 1;
            }
            if batch.len_bytes() >= BATCH_BYTES {
                db.write(&batch, &WriteOptions::default())?;
                batch.clear();
            }
            cursor.next();
        }
        cursor.status()?;
        db.write(&batch, &WriteOptions::default())?;
        // Also if nothing was left to delete: an earlier call may have failed before its flush.
        self.family.flush()?;
        Ok(deleted)
    }
}
