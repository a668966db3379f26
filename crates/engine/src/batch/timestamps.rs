//! Timestamps that are set after the writes: the ends of the keys in a batch are overwritten.

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchEntry, BatchItem};

use super::WriteBatch;

impl WriteBatch {
    /// Writes `timestamp` over the end of every key in the column families whose keys have
    /// timestamps. `bytes_of` returns the length of the timestamps of a column family, 0 if its
    /// keys have none. RocksDB: `WriteBatch::UpdateTimestamps`.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig\0\0\0\0", "1")?; // room for a timestamp of four bytes
    /// batch.update_timestamps(7_u32.to_be_bytes(), |_family| 4)?;
    /// assert_eq!(batch.iter().next().unwrap().key, b"fig\0\0\0\x07");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `bytes_of` returns another length than that of `timestamp`, or if a key
    /// is shorter. The batch is then as before.
    pub fn update_timestamps(
        &mut self,
        timestamp: impl AsRef<[u8]>,
        mut bytes_of: impl FnMut(ColumnFamilyId) -> usize,
    ) -> Result<()> {
        let timestamp = timestamp.as_ref();
        let mut stamped = WriteBatch::with_value_bytes_max(self.value_bytes_max);
        for item in self.items() {
            let BatchItem::Write(BatchEntry { column_family, kind, key, value }) = item else {
                stamped.add_item(&item)?;
                continue;
            };
            let bytes = bytes_of(column_family);
            if bytes == 0 {
                stamped.add_item(&item)?;
                continue;
            }
            if bytes != timestamp.len() {
                return Err(Error::InvalidArgument(format!(
                    "a timestamp of {} bytes: the keys of the column family number {} have \
                     timestamps of {bytes}",
                    timestamp.len(),
                    column_family.0
                )));
            }
            let key = end_with(key, timestamp)?;
            let entry = |value| BatchEntry { column_family, kind, key: &key, value };
            if kind == ValueKind::RangeDelete {
                stamped.add_entry(&entry(&end_with(value, timestamp)?))?;
            } else {
                stamped.add_entry(&entry(value))?;
            }
        }
        // Save points are offsets. A batch that another encoder made may become shorter.
        if stamped.data.len() != self.data.len() && !self.save_points.is_empty() {
            let text = "a batch with save points whose encoding is not the shortest";
            return Err(Error::InvalidArgument(text.into()));
        }
        self.data = stamped.data;
        Ok(())
    }
}

/// Returns `key` with its end replaced by `timestamp`.
fn end_with(key: &[u8], timestamp: &[u8]) -> Result<Vec<u8>> {
    match key.len().checked_sub(timestamp.len()) {
        Some(at) => Ok([&key[..at], timestamp].concat()),
        None => Err(Error::InvalidArgument(format!(
            "a key of {} bytes has no room for a timestamp of {} bytes",
            key.len(),
            timestamp.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_keys_are_replaced_where_there_are_timestamps() {
        let (timed, plain) = (ColumnFamilyId(3), ColumnFamilyId(4));
        let mut batch = WriteBatch::new();
        batch.put_in(timed, b"a\0\0", b"1").unwrap();
        batch.put_log_data("log").unwrap();
        batch.set_save_point();
        batch.delete_in(timed, b"b\0\0").unwrap();
        batch.delete_range_in(timed, b"c\0\0", b"d\0\0").unwrap();
        batch.put_in(plain, b"e", b"2").unwrap();
        let before = batch.clone();
        let bytes_of = |family| if family == timed { 2 } else { 0 };
        assert!(batch.update_timestamps("123", bytes_of).is_err());
        assert!(batch.update_timestamps("12", |_| 2).is_err(), "a key is too short");
        assert_eq!(batch, before);
        batch.update_timestamps("12", bytes_of).unwrap();
        let keys: Vec<_> = batch.iter().map(|entry| (entry.key, entry.value)).collect();
        let wanted: [(&[u8], &[u8]); 4] =
            [(b"a12", b"1"), (b"b12", b""), (b"c12", b"d12"), (b"e", b"2")];
        assert_eq!(keys, wanted);
        assert_eq!(batch.count(), 4);
        batch.rollback_to_save_point().unwrap();
        let left: Vec<_> = batch.items().collect();
        assert_eq!(left.len(), 2);
        assert_eq!(left[1], BatchItem::LogData(b"log"));
    }
}
