//! Log data: what goes to the log with the writes of a batch and changes nothing, for those who
//! read the log.
//!
//! What must stay true: who applies, counts or replays writes never sees it; what makes a batch of
//! another one ([`WriteBatch::items`]) carries it along, between the same writes.

use sateen_control::ColumnFamilyId;
use sateen_store::base::error::Result;
use sateen_store::batch::{BatchEntry, BatchItem, BatchReader, encode_entry, encode_log_data};

use super::{WriteBatch, too_large};

impl WriteBatch {
    /// Adds bytes that go to the log with the writes, for those who read it
    /// ([`Db::updates_since`](crate::Db::updates_since)), and nowhere else: they are no write, so
    /// that they have no sequence number and [`WriteBatch::count`] and [`WriteBatch::iter`] pass
    /// them by.
    ///
    /// A batch that has nothing else is written to the log, too, and lost where nothing goes to
    /// one ([`disable_wal`](crate::WriteOptions::disable_wal)). What was written with a batch stays
    /// in the log as long as that does, and is in no table.
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
    /// As [`WriteBatch::put`]; the limit is that of values.
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        let data = data.as_ref();
        if data.len() > self.value_bytes_max {
            return Err(too_large("log data", data.len(), self.value_bytes_max));
        }
        // Kind, and length (5 at most).
        self.check_room(6 + data.len())?;
        encode_log_data(&mut self.data, data);
        self.value_bytes_largest = self.value_bytes_largest.max(data.len());
        Ok(())
    }

    /// Adds an item as [`WriteBatch::items`] of another batch shows it.
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

    /// These writes in the column families that `to` names for each: one, or several for a range.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if their numbers make it too large.
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

    /// The writes in order, and the log data between them.
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
