//! Options of single calls: reads, writes, flushes and compactions by hand.

use std::borrow::Cow;
use std::time::Duration;

use sateen_control::SeqNo;

use crate::options::table_filter::TableFilter;
use crate::snapshot::Snapshot;

/// Options of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// An iterator shows no key before this one. Default: none. RocksDB: `iterate_lower_bound`.
    pub lower_bound: Option<Vec<u8>>,
    /// An iterator shows no key at or after this one. Default: none. RocksDB:
    /// `iterate_upper_bound`.
    pub upper_bound: Option<Vec<u8>>,
    /// An iterator shows only keys that begin so. Default: none.
    pub prefix: Option<Vec<u8>>,
    /// An iterator shows only keys of the prefix of the one it was sought to, as the column
    /// family's `prefix_extractor` says; nothing if it has none. Default: false. RocksDB:
    /// `prefix_same_as_start`.
    pub prefix_same_as_start: bool,
    /// What is read from the disk stays in the block cache. Default: true. A scan of everything
    /// should not. RocksDB: `fill_cache`.
    pub fill_cache: bool,
    /// Bytes that an iterator reads ahead at most; 0: it starts small and grows as it goes.
    /// Default: 0. RocksDB: `readahead_size`.
    pub readahead_bytes: u64,
    /// What was deleted with its range is read as long as it is still there. Default: false.
    /// RocksDB: `ignore_range_deletions`.
    pub ignore_range_deletions: bool,
    /// What is in neither memtables nor the block cache is not read from the disk: the read fails
    /// with [`Error::NotInMemory`](crate::Error::NotInMemory) where it would have to be. Default:
    /// false. RocksDB: `read_tier`.
    pub memory_only: bool,
    /// An iterator passes by the tables that this does not want. Default: none, it shows all.
    /// RocksDB: `table_filter`.
    pub table_filter: Option<TableFilter>,
    /// Entries that one move of an iterator may pass over (deletions and hidden versions). A move
    /// that comes to another entry after more than this fails with
    /// [`Error::TooManySkipped`](crate::Error::TooManySkipped). 0: no limit. Default: 0. RocksDB:
    /// `max_skippable_internal_keys`.
    pub skipped_max: u64,
    /// Read as of this snapshot. Default: none, the newest. RocksDB: `snapshot`.
    pub snapshot: Option<Snapshot>,
}

impl ReadOptions {
    /// Read as of `snapshot`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let snapshot = db.snapshot();
    /// db.put("fig", "1")?;
    /// let before = sateen::ReadOptions::at(&snapshot);
    /// assert_eq!(db.reading(before).get("fig")?, None);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn at(snapshot: &Snapshot) -> ReadOptions {
        ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() }
    }

    #[inline]
    pub(crate) fn seqno(&self) -> Option<SeqNo> {
        self.snapshot.as_ref().map(Snapshot::seqno)
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            lower_bound: None,
            upper_bound: None,
            prefix: None,
            prefix_same_as_start: false,
            fill_cache: true,
            readahead_bytes: 0,
            ignore_range_deletions: false,
            memory_only: false,
            table_filter: None,
            skipped_max: 0,
            snapshot: None,
        }
    }
}

/// Options of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Durable before the call returns, whatever [`Options::wal`](crate::Options::wal) says.
    /// Default: false. RocksDB: `sync`.
    pub sync: bool,
    /// Not in the log: lost in a crash that comes before its memtable is flushed. Default: false.
    /// RocksDB: `disableWAL`.
    pub disable_wal: bool,
    /// The longest that the write may be held back because background work is behind; then it
    /// fails with `WouldStall` and nothing is written. Zero never waits. Default: none, it waits.
    pub deadline: Option<Duration>,
    /// The same as a `deadline` of zero. Default: false. RocksDB: `no_slowdown`.
    pub no_slowdown: bool,
    /// While writers are slowed down, all writes like this one together get an eighth of the rate:
    /// for bulk work beside clients. Default: false. RocksDB: `low_pri`.
    pub low_priority: bool,
    /// Entries of column families that do not exist (any more) are left out, and the rest is
    /// written. Without it such a write fails as a whole. Default: false. RocksDB:
    /// `ignore_missing_column_families`.
    pub ignore_missing_column_families: bool,
}

impl WriteOptions {
    /// A write that is durable before the call returns.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.writing(sateen::WriteOptions::sync()).put("fig", "1")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn sync() -> WriteOptions {
        WriteOptions { sync: true, ..WriteOptions::default() }
    }
}

/// Options of a flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlushOptions {
    /// Return when it is done, not when it is begun. Default: true. RocksDB: `wait`.
    pub wait: bool,
}

impl Default for FlushOptions {
    fn default() -> Self {
        FlushOptions { wait: true }
    }
}

/// Options of a compaction by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactRangeOptions {
    /// Return when it is done, not when it is begun. Default: true.
    pub wait: bool,
    /// Flush the memtables first, so that what was just written takes part. Default: true.
    pub flush: bool,
    /// Rewrite tables of the last level, too, which have nothing to merge with: their deleted
    /// entries and old compression go. Default: false, but where there is a compaction filter they
    /// always are. RocksDB: `bottommost_level_compaction`.
    pub rewrite_last_level: bool,
}

impl Default for CompactRangeOptions {
    fn default() -> Self {
        CompactRangeOptions { wait: true, flush: true, rewrite_last_level: false }
    }
}

/// Lets callers give the options of a call or lend them.
macro_rules! given_or_lent {
    ($($options:ident)*) => { $(
        impl<'a> From<$options> for Cow<'a, $options> {
            fn from(options: $options) -> Cow<'a, $options> {
                Cow::Owned(options)
            }
        }

        impl<'a> From<&'a $options> for Cow<'a, $options> {
            fn from(options: &'a $options) -> Cow<'a, $options> {
                Cow::Borrowed(options)
            }
        }
    )* };
}

given_or_lent! { ReadOptions WriteOptions }
