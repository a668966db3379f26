//! Batches: writes that are applied together or not at all, encoded as the WAL stores them
//! (`sateen_store::batch`). A commit group in the WAL is a sequence of such encodings.
//!
//! What must stay true: a `WriteBatch` holds only entries that decode and keep the limits (format
//! rule F11), so that nothing behind `put` can fail on them. Decoding untrusted bytes never panics.

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::base::coding;
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{
    BATCH_BYTES_MAX, BatchEntry, BatchItem, BatchReader, KEY_BYTES_MAX, VALUE_BYTES_MAX,
    VALUE_BYTES_MAX_DEFAULT,
};

mod items;
pub(crate) mod rocksdb;
mod timestamps;

pub use items::BatchItems;

/// A list of writes that are applied in order and atomically, across column families.
///
/// If it writes a key twice, the later write wins. [`WriteBatch::clear`] empties it and keeps its
/// memory.
///
/// ```
/// use sateen::WriteBatch;
///
/// # fn main() -> sateen::Result<()> {
/// let mut batch = WriteBatch::new();
/// batch.put(b"apple", b"red")?;
/// batch.delete(b"pear")?;
/// assert_eq!(batch.count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WriteBatch {
    data: Vec<u8>,
    count: u32,
    /// Length of the longest value or log data inside, and the longest that is accepted.
    value_bytes_largest: usize,
    value_bytes_max: usize,
    save_points: Vec<SavePoint>,
}

/// The lengths to which a batch is cut back.
#[derive(Clone, Copy, Debug)]
struct SavePoint {
    data_bytes: usize,
    count: u32,
    value_bytes_largest: usize,
}

impl Default for WriteBatch {
    fn default() -> WriteBatch {
        WriteBatch::with_value_bytes_max(VALUE_BYTES_MAX_DEFAULT)
    }
}

/// Two batches are equal if they have the same writes and log data. Limits and save points are not
/// compared.
impl PartialEq for WriteBatch {
    fn eq(&self, other: &WriteBatch) -> bool {
        self.data == other.data
    }
}

impl Eq for WriteBatch {}

impl WriteBatch {
    /// Returns an empty batch.
    ///
    /// ```
    /// assert!(sateen::WriteBatch::new().is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Returns an empty batch with room for `bytes` of encoded entries.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> WriteBatch {
        WriteBatch { data: Vec::with_capacity(bytes), ..WriteBatch::default() }
    }

    /// Returns an empty batch that accepts values of up to `bytes`, at most [`VALUE_BYTES_MAX`].
    /// The database has a limit of its own.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::with_value_bytes_max(3);
    /// assert!(batch.put("fig", "four").is_err());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn with_value_bytes_max(bytes: usize) -> WriteBatch {
        WriteBatch {
            data: Vec::new(),
            count: 0,
            value_bytes_largest: 0,
            value_bytes_max: bytes.min(VALUE_BYTES_MAX),
            save_points: Vec::new(),
        }
    }

    /// Sets `key` of the default column family to `value`.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key, the value or the batch would exceed its limit. The
    /// batch is unchanged then.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_in(ColumnFamilyId(0), key.as_ref(), value.as_ref())
    }

    /// Deletes `key` from the default column family, whether it exists or not.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.delete("fig")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_in(ColumnFamilyId(0), key.as_ref())
    }

    /// Merges `operand` into the value of `key` in the default column family.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.merge("fig", "1")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_in(ColumnFamilyId(0), key.as_ref(), operand.as_ref())
    }

    /// Deletes `key` as [`Db::single_delete`](crate::Db::single_delete) does.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.single_delete("fig")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_in(ColumnFamilyId(0), key.as_ref())
    }

    /// Deletes all keys from `begin` (inclusive) to `end` (exclusive) from the default column
    /// family, as [`Db::delete_range`](crate::Db::delete_range) does.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.delete_range("a", "g")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. A range whose end comes before its begin is refused when the batch
    /// is written.
    #[inline]
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_in(ColumnFamilyId(0), begin.as_ref(), end.as_ref())
    }

    #[inline]
    pub(crate) fn put_in(
        &mut self,
        column_family: ColumnFamilyId,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.add_value(ValueKind::Put, column_family, key, value)
    }

    #[inline]
    pub(crate) fn merge_in(
        &mut self,
        column_family: ColumnFamilyId,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        self.add_value(ValueKind::Merge, column_family, key, operand)
    }

    #[inline]
    fn add_value(
        &mut self,
        kind: ValueKind,
        column_family: ColumnFamilyId,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if value.len() > self.value_bytes_max {
            return Err(too_large("a value", value.len(), self.value_bytes_max));
        }
        self.add(kind, column_family, key, Some(value))?;
        self.value_bytes_largest = self.value_bytes_largest.max(value.len());
        Ok(())
    }

    /// Deletes `key` from a column family.
    #[inline]
    pub(crate) fn delete_in(&mut self, column_family: ColumnFamilyId, key: &[u8]) -> Result<()> {
        self.add(ValueKind::Delete, column_family, key, None)
    }

    #[inline]
    pub(crate) fn single_delete_in(
        &mut self,
        column_family: ColumnFamilyId,
        key: &[u8],
    ) -> Result<()> {
        self.add(ValueKind::SingleDelete, column_family, key, None)
    }

    pub(crate) fn delete_range_in(
        &mut self,
        column_family: ColumnFamilyId,
        begin: &[u8],
        end: &[u8],
    ) -> Result<()> {
        if end.len() > KEY_BYTES_MAX {
            return Err(too_large("a key", end.len(), KEY_BYTES_MAX));
        }
        self.add(ValueKind::RangeDelete, column_family, begin, Some(end))
    }

    /// Adds a write of another batch, from [`WriteBatch::iter`].
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// let mut copy = sateen::WriteBatch::new();
    /// for entry in &batch {
    ///     copy.add_entry(&entry)?;
    /// }
    /// assert_eq!(copy, batch);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn add_entry(&mut self, entry: &BatchEntry<'_>) -> Result<()> {
        let BatchEntry { column_family, kind, key, value } = *entry;
        match kind {
            ValueKind::Put | ValueKind::Merge => self.add_value(kind, column_family, key, value),
            ValueKind::RangeDelete => self.delete_range_in(column_family, key, value),
            ValueKind::Delete | ValueKind::SingleDelete => self.add(kind, column_family, key, None),
        }
    }

    /// Appends the writes and log data of `other`, to be applied after those of this batch.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// let mut all = batch.clone();
    /// all.append(&batch)?;
    /// assert_eq!(all.count(), 2);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the batch or a value would exceed the limits of this batch.
    pub fn append(&mut self, other: &WriteBatch) -> Result<()> {
        if other.value_bytes_largest > self.value_bytes_max {
            return Err(too_large("a value", other.value_bytes_largest, self.value_bytes_max));
        }
        self.check_room(other.data.len())?;
        self.data.extend_from_slice(&other.data);
        self.count += other.count;
        self.value_bytes_largest = self.value_bytes_largest.max(other.value_bytes_largest);
        Ok(())
    }

    /// Removes all writes, log data and save points. The memory is kept.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.data.clear();
        self.count = 0;
        self.value_bytes_largest = 0;
        self.save_points.clear();
    }

    /// Returns the number of writes.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// batch.delete("fig")?;
    /// assert_eq!(batch.count(), 2);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns true if there are no writes. There may still be log data.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// assert!(batch.is_empty());
    /// batch.delete("fig")?;
    /// assert!(!batch.is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the bytes of the writes and log data, as encoded for the WAL.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// assert_eq!(batch.len_bytes(), batch.data().len());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.data.len()
    }

    /// Returns the length of the longest value or log data, in bytes.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "123")?;
    /// assert_eq!(batch.value_bytes_largest(), 3);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn value_bytes_largest(&self) -> usize {
        self.value_bytes_largest
    }

    /// Returns the encoded writes and log data, for [`WriteBatch::from_data`].
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// assert_eq!(sateen::WriteBatch::from_data(batch.data().to_vec())?, batch);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Decodes a batch from the result of [`WriteBatch::data`].
    ///
    /// ```
    /// # use sateen::WriteBatch;
    /// # fn main() -> sateen::Result<()> {
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"k", b"v")?;
    /// let sent = batch.data().to_vec();
    /// assert_eq!(WriteBatch::from_data(sent)?, batch);
    /// assert!(WriteBatch::from_data(b"no batch".to_vec()).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the bytes are not a batch that this version can apply. The
    /// text says why, and at which offset.
    pub fn from_data(data: Vec<u8>) -> Result<WriteBatch> {
        if data.len() > BATCH_BYTES_MAX {
            return Err(too_large("a batch", data.len(), BATCH_BYTES_MAX));
        }
        let (mut count, mut value_bytes_largest) = (0, 0);
        let mut entries = BatchReader::new(&data);
        loop {
            let offset = data.len() - entries.remaining();
            let invalid =
                |e| Error::InvalidArgument(format!("not a batch: {e} at offset {offset}"));
            let Some(item) = entries.next_item().map_err(invalid)? else { break };
            let value = match item {
                BatchItem::Write(entry) => {
                    count += 1;
                    if entry.kind == ValueKind::RangeDelete { &[] } else { entry.value }
                }
                BatchItem::LogData(data) => data,
            };
            value_bytes_largest = value_bytes_largest.max(value.len());
        }
        let value_bytes_max = value_bytes_largest.max(VALUE_BYTES_MAX_DEFAULT);
        Ok(WriteBatch {
            data,
            count,
            value_bytes_largest,
            value_bytes_max,
            save_points: Vec::new(),
        })
    }

    /// Returns the writes in order. [`WriteBatch::items`] returns log data as well.
    ///
    /// ```
    /// # use sateen::WriteBatch;
    /// # fn main() -> sateen::Result<()> {
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"k", b"v")?;
    /// for entry in &batch {
    ///     assert_eq!((entry.key, entry.value), (&b"k"[..], &b"v"[..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn iter(&self) -> WriteBatchIter<'_> {
        WriteBatchIter { entries: BatchReader::new(&self.data), left: self.count }
    }

    /// Sets a save point for [`WriteBatch::rollback_to_save_point`]. Save points nest.
    ///
    /// ```
    /// # use sateen::WriteBatch;
    /// # fn main() -> sateen::Result<()> {
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"kept", b"1")?;
    /// batch.set_save_point();
    /// batch.put(b"undone", b"2")?;
    /// batch.rollback_to_save_point()?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_save_point(&mut self) {
        self.save_points.push(SavePoint {
            data_bytes: self.data.len(),
            count: self.count,
            value_bytes_largest: self.value_bytes_largest,
        });
    }

    /// Undoes the writes and log data since the newest save point, and removes that save point.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.set_save_point();
    /// batch.put("fig", "1")?;
    /// batch.rollback_to_save_point()?;
    /// assert!(batch.is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSavePoint`] if there is none.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        let point = self.take_save_point()?;
        self.data.truncate(point.data_bytes);
        self.count = point.count;
        self.value_bytes_largest = point.value_bytes_largest;
        Ok(())
    }

    /// Removes the newest save point. The writes since then stay.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.set_save_point();
    /// batch.put("fig", "1")?;
    /// batch.pop_save_point()?;
    /// assert!(batch.rollback_to_save_point().is_err());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSavePoint`] if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.take_save_point().map(drop)
    }

    fn take_save_point(&mut self) -> Result<SavePoint> {
        self.save_points.pop().ok_or(Error::NoSavePoint)
    }

    #[inline]
    fn check_room(&self, bytes: usize) -> Result<()> {
        let bytes = self.data.len().saturating_add(bytes);
        if bytes > BATCH_BYTES_MAX {
            return Err(too_large("a batch", bytes, BATCH_BYTES_MAX));
        }
        Ok(())
    }

    /// Encodes one write at the end of the batch.
    #[inline]
    fn add(
        &mut self,
        kind: ValueKind,
        column_family: ColumnFamilyId,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        if key.len() > KEY_BYTES_MAX {
            return Err(too_large("a key", key.len(), KEY_BYTES_MAX));
        }
        // Kind, column family (at most 5 bytes), key length (at most 3), value length (at most 5).
        let bytes = 14 + key.len() + value.map_or(0, <[u8]>::len);
        self.check_room(bytes)?;
        self.data.reserve(bytes);
        self.data.push(kind as u8);
        coding::put_varint(&mut self.data, column_family.0.into());
        coding::put_slice(&mut self.data, key);
        if let Some(value) = value {
            coding::put_slice(&mut self.data, value);
        }
        self.count += 1;
        Ok(())
    }
}

impl<'a> IntoIterator for &'a WriteBatch {
    type Item = BatchEntry<'a>;
    type IntoIter = WriteBatchIter<'a>;
    fn into_iter(self) -> WriteBatchIter<'a> {
        self.iter()
    }
}

#[cold]
pub(crate) fn too_large(what: &str, bytes: usize, limit: usize) -> Error {
    Error::InvalidArgument(format!("{what} of {bytes} bytes exceeds the limit of {limit} bytes"))
}

/// The writes of a [`WriteBatch`] in order.
#[derive(Clone, Debug)]
pub struct WriteBatchIter<'a> {
    entries: BatchReader<'a>,
    left: u32,
}

impl<'a> Iterator for WriteBatchIter<'a> {
    type Item = BatchEntry<'a>;

    #[inline]
    fn next(&mut self) -> Option<BatchEntry<'a>> {
        // A batch holds only what decodes.
        let entry = self.entries.next().ok().flatten();
        self.left = self.left.saturating_sub(1);
        entry
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

/// Fuzz entry: decodes `data` as a batch. It must not panic, and an accepted batch must encode to
/// the same items.
#[cfg(any(test, feature = "test-support"))]
pub(crate) fn fuzz(data: &[u8]) {
    if let Ok(batch) = WriteBatch::from_data(data.to_vec()) {
        assert_eq!(batch.iter().count(), batch.iter().size_hint().0, "it holds what it counts");
        let mut again = WriteBatch::with_value_bytes_max(VALUE_BYTES_MAX);
        for item in batch.items() {
            assert!(again.add_item(&item).is_ok(), "an item is within the limits");
        }
        assert!(again.items().eq(batch.items()), "items come back");
    }
}

#[cfg(test)]
mod tests;
