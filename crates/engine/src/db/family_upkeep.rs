//! Flushes, compactions, options and observation of one column family, through its handle.

use std::path::Path;
use std::time::Duration;

use sateen_store::base::error::Result;

use super::check_family;
use super::family::ColumnFamily;
use crate::background::compaction::chosen::CompactFilesOptions;
use crate::events::CompactionInfo;
use crate::live_table::LiveTable;
use crate::options::{ColumnFamilyOptions, CompactRangeOptions, FlushOptions};

/// Upkeep. Nothing here is needed for reads and writes.
impl ColumnFamily {
    /// Flushes its memtable. With [`atomic_flush`](crate::Options::atomic_flush), those of all
    /// column families are flushed.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// loans.flush()?;
    /// assert_eq!(loans.live_tables().len(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Background` with the cause if the flush fails; `NoSuchColumnFamily`.
    pub fn flush(&self) -> Result<()> {
        self.flush_with(&FlushOptions::default())
    }

    /// Flushes as [`ColumnFamily::flush`] does. The options say whether to wait for the end.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.flush_with(&sateen::FlushOptions { wait: false })?; // it is begun
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::flush`].
    pub fn flush_with(&self, options: &FlushOptions) -> Result<()> {
        self.db().flush_memtables_of(&self.data, options)
    }

    /// Compacts the keys from `begin` to `end`, as [`Db::compact_range`](crate::Db::compact_range)
    /// does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// loans.compact_range(None, None, &sateen::CompactRangeOptions::default())?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::compact_range`](crate::Db::compact_range).
    pub fn compact_range(
        &self,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.db().compact_range_of(&self.data, begin, end, options)
    }

    /// Compacts chosen files into a level, as [`Db::compact_files`](crate::Db::compact_files) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let none = loans.compact_files(&["000099.sat"], 1, &Default::default());
    /// assert!(none.is_err(), "the error names the file that is not there");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::compact_files`](crate::Db::compact_files).
    pub fn compact_files<P: AsRef<Path>>(
        &self,
        files: &[P],
        output_level: u8,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        self.db().compact_files_of(&self.data, files, output_level, options)
    }

    /// Ingests files of sorted entries, as [`Db::ingest`](crate::Db::ingest) does.
    ///
    /// ```
    /// use sateen::{IngestOptions, SstFileWriter};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path().join("db"), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// # let file = directory.path().join("loans.sst");
    /// let mut writer = SstFileWriter::create(&file, &db.options())?;
    /// writer.put("walden", "Ishmael")?;
    /// writer.finish()?;
    /// loans.ingest(&[&file], &IngestOptions::default())?;
    /// assert_eq!(loans.get("walden")?.as_deref(), Some(&b"Ishmael"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::ingest`](crate::Db::ingest).
    pub fn ingest<P: AsRef<Path>>(
        &self,
        paths: &[P],
        options: &crate::IngestOptions,
    ) -> Result<()> {
        self.db().ingest_into(&self.data, paths, options)
    }

    /// Begins a bulk load, as [`Db::bulk_load`](crate::Db::bulk_load) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// let load = loans.bulk_load()?;
    /// let mut part = load.part();
    /// part.put("emma", "Ahab")?;
    /// part.put("walden", "Ishmael")?;
    /// part.finish()?;
    /// load.finish()?;
    /// assert_eq!(loans.get("walden")?.as_deref(), Some(&b"Ishmael"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::bulk_load`](crate::Db::bulk_load).
    pub fn bulk_load(&self) -> Result<crate::BulkLoad<'_>> {
        self.db().bulk_load_into(&self.data)
    }

    /// Returns its options in force.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.set_options(&[("memtable_bytes", "16MiB")])?;
    /// assert_eq!(loans.options().memtable_bytes, 16 << 20);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn options(&self) -> ColumnFamilyOptions {
        (*self.data.options()).clone()
    }

    /// Changes its options, all or none. [`ColumnFamily::options`] has an example.
    ///
    /// # Errors
    /// `InvalidArgument` names the option that is unknown, has a wrong value, or is fixed at open.
    /// `Io` if they could not be stored, for example on a full disk; then they are as before.
    pub fn set_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        check_family(&self.data)?;
        self.db().core().set_family_options(&self.data, changes)
    }

    /// Returns a property by name, as [`Db::property`](crate::Db::property) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert_eq!(loans.property("sateen.num-files-at-level0").as_deref(), Some("0"));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn property(&self, name: &str) -> Option<String> {
        self.db().property_of(&self.data, name)
    }

    /// Returns its tables, as [`Db::live_tables`](crate::Db::live_tables) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert!(loans.live_tables().is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn live_tables(&self) -> Vec<LiveTable> {
        self.db().tables_of(&self.data)
    }

    /// Returns about how many bytes of tables hold the keys from `begin` (inclusive) to `end`
    /// (exclusive).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert_eq!(loans.approximate_size(b"a", b"z"), 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn approximate_size(&self, begin: &[u8], end: &[u8]) -> u64 {
        self.db().table_bytes_in(&self.data, begin, end)
    }

    /// Bytes of keys and values from `begin` up to, not including, `end` that are only in
    /// memtables: see [`Db::memtable_size`](crate::Db::memtable_size).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// assert!(loans.memtable_size(b"a", b"z") > 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn memtable_size(&self, begin: &[u8], end: &[u8]) -> u64 {
        self.db().memtable_bytes_in(&self.data, begin, end)
    }

    /// Drops tables that have nothing but keys of a range: see
    /// [`Db::delete_files_in_range`](crate::Db::delete_files_in_range).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.delete_files_in_range(None, Some(b"m"))?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::delete_files_in_range`](crate::Db::delete_files_in_range); `NoSuchColumnFamily` if
    /// the family was dropped.
    pub fn delete_files_in_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.db().drop_tables_of(&self.data, begin, end)
    }

    /// Returns how long it takes until writes to it stop, as
    /// [`Db::time_to_stall`](crate::Db::time_to_stall) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// if let Some(left) = loans.time_to_stall() {
    ///     println!("writes stop in {left:?} if all goes on as now");
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn time_to_stall(&self) -> Option<Duration> {
        self.db().time_to_stall_of(&self.data)
    }

    /// Returns the bytes per second that background work keeps up with, as
    /// [`Db::sustainable_write_rate`](crate::Db::sustainable_write_rate) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// if let Some(rate) = loans.sustainable_write_rate() {
    ///     println!("{rate} bytes a second");
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn sustainable_write_rate(&self) -> Option<u64> {
        self.db().sustainable_write_rate_of(&self.data)
    }
}
