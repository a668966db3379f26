//! Keys with timestamps that the user gives: several versions of a key, read as of a timestamp.
//!
//! 1. [`entry`] says how a version is stored: the timestamp is the end of the stored key, and the
//!    comparator ([`Comparator::timestamped`]) has newer versions first.
//! 2. [`TimestampedFamily`] writes versions and reads keys as of a timestamp.
//! 3. [`cursor`] walks over keys as of a timestamp, or over all versions.
//! 4. [`trim`] deletes the versions after a timestamp.
//! 5. [`transaction`] writes versions that get their timestamp at the commit.
//!
//! What must stay true: the engine below knows nothing of this. Each version is a key of its own
//! there, and a deletion is a version, too. So snapshots, transactions of the engine, checkpoints
//! and backups need no rule for them.

pub(crate) mod cursor;
pub(crate) mod entry;
mod transaction;
mod trim;

use sateen_control::{Comparator, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::BatchItem;

pub use self::cursor::TimestampedCursor;
pub use self::transaction::TimestampedTransaction;

use self::entry::{Version, check, key_of, value_of, whole_key};
use crate::batch::WriteBatch;
use crate::db::Db;
use crate::db::family::ColumnFamily;
use crate::options::{ReadOptions, WriteOptions};

/// The stored key of the oldest timestamp that may be read. It is shorter than a timestamp, so it
/// is no key of a version, and comes first.
const HISTORY_LOW: &[u8] = b"";

/// A value of a key, and the timestamp that it was written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamped {
    /// The value.
    pub value: Vec<u8>,
    /// Its timestamp.
    pub timestamp: Vec<u8>,
}

impl ColumnFamily {
    /// Returns the column family as one whose keys have timestamps. `None` if its comparator is not
    /// made by [`Comparator::timestamped`].
    #[must_use]
    pub fn timestamped(&self) -> Option<TimestampedFamily> {
        let bytes = self.comparator().timestamp_bytes();
        (bytes > 0).then(|| TimestampedFamily { family: self.clone() })
    }
}

/// A column family whose keys have timestamps. RocksDB: user-defined timestamps.
///
/// A write adds a version of a key. A read as of a timestamp sees the newest version that is not
/// after it. Made by [`ColumnFamily::timestamped`].
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
/// let (write, read) = (WriteOptions::default(), ReadOptions::default());
/// let at = |time: u64| time.to_be_bytes();
/// prices.put("fig", at(1), "10", &write)?;
/// prices.put("fig", at(5), "12", &write)?;
/// prices.delete("fig", at(9), &write)?;
/// assert_eq!(prices.get("fig", at(4), &read)?.unwrap().value, b"10");
/// assert_eq!(prices.get("fig", at(5), &read)?.unwrap().timestamp, at(5));
/// assert_eq!(prices.get("fig", at(9), &read)?, None);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TimestampedFamily {
    family: ColumnFamily,
}

impl TimestampedFamily {
    fn comparator(&self) -> &Comparator {
        self.family.comparator()
    }

    /// Adds a version of `key` with this value.
    ///
    /// # Errors
    /// As [`Db::put`]. `InvalidArgument` if the timestamp has not the length of the comparator's.
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key_of(self.comparator(), key.as_ref(), timestamp.as_ref())?;
        self.family.writing(options).put(key, value_of(Version::Value(value.as_ref())))
    }

    /// Adds a version of `key` without a value: reads as of it, and after it, see none.
    ///
    /// # Errors
    /// As [`TimestampedFamily::put`].
    pub fn delete(
        &self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key_of(self.comparator(), key.as_ref(), timestamp.as_ref())?;
        self.family.writing(options).put(key, value_of(Version::Deleted))
    }

    /// Returns the newest version of `key` that is not after `at`; `None` if there is none, or if
    /// it is a deletion.
    ///
    /// # Errors
    /// As [`Db::get`]. `InvalidArgument` if `at` has not the length of the comparator's timestamps,
    /// or is before [`TimestampedFamily::history_low`].
    pub fn get(
        &self,
        key: impl AsRef<[u8]>,
        at: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Timestamped>> {
        let mut cursor = self.cursor(at, None::<&[u8]>, options)?;
        cursor.seek(key.as_ref());
        cursor.status()?;
        let found = cursor.valid() && cursor.key() == key.as_ref();
        Ok(found.then(|| Timestamped {
            value: cursor.value().to_vec(),
            timestamp: cursor.timestamp().to_vec(),
        }))
    }

    /// Returns a cursor over the keys as of `at`. With `from` it shows all versions from that
    /// timestamp to `at`, newer ones of a key first, and deletions, too. The bounds in `options`
    /// are keys without a timestamp.
    ///
    /// # Errors
    /// As [`TimestampedFamily::get`] and [`Db::cursor`].
    pub fn cursor(
        &self,
        at: impl AsRef<[u8]>,
        from: Option<impl AsRef<[u8]>>,
        options: &ReadOptions,
    ) -> Result<TimestampedCursor> {
        let (at, from) = (at.as_ref(), from.as_ref().map(AsRef::as_ref));
        check(self.comparator(), at)?;
        from.map_or(Ok(()), |from| check(self.comparator(), from))?;
        if let Some(low) = self.history_low(options)?
            && entry::is_before(self.comparator(), at, &low)
        {
            return Err(Error::InvalidArgument(format!(
                "the timestamp {} is before the oldest one that may be read in the column family \
                 {}, {}",
                at.escape_ascii(),
                self.family.name(),
                low.escape_ascii()
            )));
        }
        TimestampedCursor::new(&self.family, at, from, options)
    }

    /// Returns the oldest timestamp that may be read, if one was set. RocksDB:
    /// `GetFullHistoryTsLow`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn history_low(&self, options: &ReadOptions) -> Result<Option<Vec<u8>>> {
        self.family.reading(options).get(HISTORY_LOW)
    }

    /// Has reads as of timestamps before `low` fail from now on. It never becomes smaller. RocksDB:
    /// `IncreaseFullHistoryTsLow`.
    ///
    /// # Errors
    /// As [`Db::put`]. `InvalidArgument` if `low` is before the present one, or has not the length
    /// of the comparator's timestamps.
    pub fn raise_history_low(&self, low: impl AsRef<[u8]>) -> Result<()> {
        let low = low.as_ref();
        check(self.comparator(), low)?;
        loop {
            let mut transaction = self.family.db().transaction();
            let mut of_family = transaction.to(&self.family);
            if let Some(present) = of_family.get_for_update(HISTORY_LOW)?
                && entry::is_before(self.comparator(), low, &present)
            {
                return Err(Error::InvalidArgument(format!(
                    "the oldest timestamp that may be read in the column family {} is {} and does \
                     not become smaller, {}",
                    self.family.name(),
                    present.escape_ascii(),
                    low.escape_ascii()
                )));
            }
            of_family.put(HISTORY_LOW, low)?;
            match transaction.commit() {
                Err(Error::Busy { .. } | Error::TryAgain { .. }) => {}
                done => return done,
            }
        }
    }
}

impl Db {
    /// Writes `batch`, whose keys of column families with timestamps end with one. Its puts and
    /// deletions there are versions of the keys. RocksDB: a batch of `Put` and `Delete` with
    /// timestamps.
    ///
    /// # Errors
    /// As [`Db::write`]. `InvalidArgument` if such a column family gets another kind of write, or a
    /// key that is shorter than a timestamp.
    pub fn write_timestamped(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        let timestamped = |id| {
            let family = self.column_family_by_id(id)?;
            (family.comparator().timestamp_bytes() > 0).then_some(family)
        };
        if !batch.iter().any(|entry| timestamped(entry.column_family).is_some()) {
            return self.write(batch, options);
        }
        let mut stored = WriteBatch::with_value_bytes_max(usize::MAX);
        for item in batch.items() {
            let BatchItem::Write(entry) = item else {
                stored.add_item(&item)?;
                continue;
            };
            let Some(family) = timestamped(entry.column_family) else {
                stored.add_item(&item)?;
                continue;
            };
            let key = whole_key(&family, entry.key)?;
            let version = match entry.kind {
                ValueKind::Put => Version::Value(entry.value),
                ValueKind::Delete | ValueKind::SingleDelete => Version::Deleted,
                _ => return Err(refused(&family)),
            };
            stored.to(&family).put(key, value_of(version))?;
        }
        self.write(&stored, options)
    }
}

fn refused(family: &ColumnFamily) -> Error {
    Error::InvalidArgument(format!(
        "the keys of the column family {} have timestamps: there are no merges and no range \
         deletions",
        family.name()
    ))
}
