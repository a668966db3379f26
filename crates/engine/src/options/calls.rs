//! Options of single calls: reads, writes, flushes and manual compactions.

use std::borrow::Cow;
use std::time::Duration;

use sateen_control::SeqNo;

use crate::options::table_filter::TableFilter;
use crate::snapshot::Snapshot;

/// Options of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The first key that an iterator may show. Default: none. RocksDB: `iterate_lower_bound`.
    pub lower_bound: Option<Vec<u8>>,
    /// The key at which an iterator ends; it shows smaller keys only. Default: none. RocksDB:
    /// `iterate_upper_bound`.
    pub upper_bound: Option<Vec<u8>>,
    /// The beginning of all keys that an iterator shows. Default: none.
    pub prefix: Option<Vec<u8>>,
    /// Whether an iterator shows only keys with the same prefix as the key of its last seek. The
    /// column family's `prefix_extractor` defines the prefix; without one the iterator shows
    /// nothing. Default: false. RocksDB: `prefix_same_as_start`.
    pub prefix_same_as_start: bool,
    /// Whether the block cache keeps blocks that the read loads from disk. Default: true. Set it to
    /// false for a scan of everything. RocksDB: `fill_cache`.
    pub fill_cache: bool,
    /// Largest number of bytes that an iterator reads ahead. 0: the readahead starts small and
    /// grows while the iterator moves on. Default: 0. RocksDB: `readahead_size`.
    pub readahead_bytes: u64,
    /// Whether a read ignores range tombstones. It then returns deleted entries that no compaction
    /// has removed yet. Default: false. RocksDB: `ignore_range_deletions`.
    pub ignore_range_deletions: bool,
    /// Whether the read uses memtables and the block cache alone. It fails with
    /// [`Error::NotInMemory`](crate::Error::NotInMemory) if it needs a block from disk. Default:
    /// false. RocksDB: `read_tier`.
    pub memory_only: bool,
    /// Filter of the tables that an iterator reads; it skips those that the filter rejects.
    /// Default: none. RocksDB: `table_filter`.
    pub table_filter: Option<TableFilter>,
    /// Largest number of entries (tombstones and hidden versions) that one move of an iterator may
    /// skip. A move that must skip more fails with
    /// [`Error::TooManySkipped`](crate::Error::TooManySkipped). 0: no limit. Default: 0. RocksDB:
    /// `max_skippable_internal_keys`.
    pub skipped_max: u64,
    /// Snapshot that the read sees. Default: none; the read sees the newest data. RocksDB:
    /// `snapshot`.
    pub snapshot: Option<Snapshot>,
}

impl ReadOptions {
    /// Returns the options of a read that sees `snapshot`.
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
    /// Whether the write is durable before the call returns, whatever
    /// [`Options::wal`](crate::Options::wal) says. Default: false. RocksDB: `sync`.
    pub sync: bool,
    /// Whether the write bypasses the WAL. A crash before the flush of its memtable loses it.
    /// Default: false. RocksDB: `disableWAL`.
    pub disable_wal: bool,
    /// Longest time that the write may wait because background work is behind. Then it fails with
    /// `WouldStall` and writes nothing. With zero it never waits. Default: none; it waits.
    pub deadline: Option<Duration>,
    /// Whether the write never waits, as with a `deadline` of zero. Default: false. RocksDB:
    /// `no_slowdown`.
    pub no_slowdown: bool,
    /// Whether the write is bulk work beside clients. While writers are slowed down, all such
    /// writes together get an eighth of the rate. Default: false. RocksDB: `low_pri`.
    pub low_priority: bool,
    /// Whether the write skips entries of missing column families and stores the rest. Otherwise
    /// such a write fails as a whole. Default: false. RocksDB:
    /// `ignore_missing_column_families`.
    pub ignore_missing_column_families: bool,
}

impl WriteOptions {
    /// Returns the options of a write that is durable before the call returns.
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
    /// Whether the call returns when the flush has ended, not when it has begun. Default: true.
    /// RocksDB: `wait`.
    pub wait: bool,
}

impl Default for FlushOptions {
    fn default() -> Self {
        FlushOptions { wait: true }
    }
}

/// Options of a manual compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactRangeOptions {
    /// Whether the call returns when the compaction has ended, not when it has begun. Default:
    /// true.
    pub wait: bool,
    /// Whether it flushes the memtables first, so that the newest writes take part. Default: true.
    pub flush: bool,
    /// Whether it also rewrites tables of the last level that overlap no other table. That removes
    /// their tombstones and their old compression. With a compaction filter it always does.
    /// Default: false. RocksDB: `bottommost_level_compaction`.
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
