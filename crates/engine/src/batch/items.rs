//! Log data of a batch: bytes that go to the WAL with the writes and change nothing. Only readers
//! of the WAL see them.
//!
//! What must stay true: code that applies, counts or replays writes never sees log data. Code that
//! copies a batch ([`WriteBatch::items`]) keeps it between the same writes.

use sateen_control::ColumnFamilyId;
use sateen_store::base::error::Result;
use sateen_store::batch::{BatchEntry, BatchItem, BatchReader, encode_entry, encode_log_data};

use super::{WriteBatch, too_large};

impl WriteBatch {
    /// Adds log data: bytes that go to the WAL with the writes, and that only readers of the WAL
    /// see ([`Db::updates_since`](crate::Db::updates_since)). They are not a write: they have no
    /// sequence number, and [`WriteBatch::count`] and [`WriteBatch::iter`] skip them.
    ///
    /// A batch of log data alone is written to the WAL as well. Without a WAL
    /// ([`disable_wal`](crate::WriteOptions::disable_wal)) log data is lost. It lives as long as
    /// the WAL that holds it.
    ///
    /// ```
    /// # use sateen::{BatchItem, WriteBatch};
    /// # fn main() -> sateen::Result<()> {
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"k", b"v")?;
    /// batch.put_log_data(b"of client 7")?;
    /// assert_eq!(batch.count(), 1);
    /// assert_eq!(batch.items().last(), Some(BatchItem::LogData(b"of client 7")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. The limit is that of values.
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        let data = data.as_ref();
        if data.len() > self.value_bytes_max {
            return Err(too_large("log data", data.len(), self.value_bytes_max));
        }
        // The kind, and a length of at most 5 bytes.
        self.check_room(6 + data.len())?;
        encode_log_data(&mut self.data, data);
        self.value_bytes_largest = self.value_bytes_largest.max(data.len());
        Ok(())
    }

    /// Adds an item of another batch, from [`WriteBatch::items`].
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// let mut copy = sateen::WriteBatch::new();
    /// for item in batch.items() {
    ///     copy.add_item(&item)?;
    /// }
    /// assert_eq!(copy, batch);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn add_item(&mut self, item: &BatchItem<'_>) -> Result<()> {
        match item {
            BatchItem::Write(entry) => self.add_entry(entry),
            BatchItem::LogData(data) => self.put_log_data(data),
        }
    }

    /// Returns a batch with these writes in the column families that `to` names for each: one, or
    /// several for a range.
    ///
    /// # Errors
    /// `InvalidArgument` if the ids of the column families make the batch too large.
    pub(crate) fn moved(
        &self,
        to: impl Fn(&BatchEntry<'_>) -> Vec<ColumnFamilyId>,
    ) -> Result<WriteBatch> {
        let mut moved = WriteBatch::with_value_bytes_max(self.value_bytes_max);
        moved.data.reserve(self.data.len());
        moved.value_bytes_largest = self.value_bytes_largest;
        for item in self.items() {
            let entry = match item {
                BatchItem::Write(entry) => entry,
                BatchItem::LogData(data) => {
                    encode_log_data(&mut moved.data, data);
                    continue;
                }
            };
            for family in to(&entry) {
                encode_entry(&mut moved.data, family, entry.kind, entry.key, entry.value);
                moved.count += 1;
            }
        }
        moved.check_room(0)?;
        Ok(moved)
    }

    /// Returns the writes in order, and the log data between them.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// assert_eq!(batch.items().count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> BatchItems<'_> {
        BatchItems(BatchReader::new(&self.data))
    }
}

/// The writes of a [`WriteBatch`] in order, and the log data between them.
#[derive(Clone, Debug)]
pub struct BatchItems<'a>(BatchReader<'a>);

impl<'a> Iterator for BatchItems<'a> {
    type Item = BatchItem<'a>;

    #[inline]
    fn next(&mut self) -> Option<BatchItem<'a>> {
        // A batch holds only what decodes.
        self.0.next_item().ok().flatten()
    }
}
