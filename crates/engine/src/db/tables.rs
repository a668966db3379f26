//! The public face of a database: the tables that it consists of, and the work on them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sateen_store::base::error::Result;

use super::ingest::Ingestion;
use super::{Db, check_family};
use crate::background::compaction::chosen::CompactFilesOptions;
use crate::core::DbCore;
use crate::db::family::ColumnFamily;
use crate::events::CompactionInfo;
use crate::live_table::LiveTable;
use crate::options::ReadOptions;
use crate::tree::families::ColumnFamilyData;

/// How to wait for background work ([`Db::wait_for_compact`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitForCompactOptions {
    /// Store what is in memory first. Default: false. RocksDB: `flush`.
    pub flush: bool,
    /// Close the database afterwards. Default: false. RocksDB: `close_db`.
    pub close: bool,
    /// Fail if background work is paused, instead of waiting for its end. Default: false. RocksDB:
    /// `abort_on_pause`.
    pub abort_on_pause: bool,
    /// How long at most; `None`: as long as it takes. Default: none. RocksDB: `timeout`.
    pub timeout: Option<Duration>,
}

/// Tables, and the work on them.
impl Db {
    /// A handle that does not keep the database from being closed.
    pub(crate) fn borrowed(core: Arc<DbCore>) -> Db {
        Db { core, _closer: None }
    }

    /// The tables of all column families: level by level, of each run in the order of their keys.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// let tables = db.live_tables();
    /// assert_eq!((tables.len(), tables[0].level), (1, 0));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn live_tables(&self) -> Vec<LiveTable> {
        let families = self.core.tree.families();
        families.named().flat_map(|family| self.tables_of(family)).collect()
    }

    /// The tables of a column family.
    ///
    /// The same by the handle: [`ColumnFamily::live_tables`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert!(db.live_tables_cf(&loans).is_empty());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn live_tables_cf(&self, family: &ColumnFamily) -> Vec<LiveTable> {
        self.tables_of(&family.data)
    }

    fn tables_of(&self, family: &Arc<ColumnFamilyData>) -> Vec<LiveTable> {
        let mut tables = Vec::new();
        for tree in family.trees() {
            let version = tree.super_version().version.clone();
            let all = version.tables();
            let live = |(level, _, table): (_, _, &Arc<_>)| {
                LiveTable::of(&self.core.env.directory, family.name(), level, table)
            };
            tables.extend(all.map(live));
        }
        tables.sort_by_key(|table| table.level);
        tables
    }

    /// A UUID that tells this database from all others. It stays the same for as long as the
    /// database exists. A checkpoint has its own, unless
    /// [`checkpoint_keeps_identity`](crate::Options::checkpoint_keeps_identity) is on; what copies
    /// the files copies the identity. RocksDB: `GetDbIdentity`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.identity().len(), 36);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn identity(&self) -> String {
        self.core.tree.versions.identity().uuid()
    }

    /// False if `key` is not there for sure. It costs no I/O: the memtables and the filters of
    /// tables that are open are asked. RocksDB: `KeyMayExist`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// assert!(!db.may_contain(&loans, "walden", &sateen::ReadOptions::default())?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchColumnFamily` if the family was dropped.
    pub fn may_contain(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<bool> {
        check_family(&family.data)?;
        self.core.env.check_open()?;
        let key = key.as_ref();
        let _view = self.core.view(options)?;
        // The order matters: see `SuperVersion`.
        let super_version = family.data.tree(key).super_version();
        let seqno = options.seqno().unwrap_or_else(|| self.core.writes.pipeline.visible_seqno());
        super_version.may_contain(key, seqno, &self.core.lookup(&family.data, options))
    }

    /// True if the value of `key` is in a memtable, so that reading it costs no I/O. RocksDB:
    /// `value_found` of `KeyMayExist`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// loans.put("walden", "Ishmael")?;
    /// assert!(db.has_in_memory(&loans, "walden", &sateen::ReadOptions::default())?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchColumnFamily` if the family was dropped.
    pub fn has_in_memory(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<bool> {
        check_family(&family.data)?;
        self.core.env.check_open()?;
        let key = key.as_ref();
        // The order matters: see `SuperVersion`.
        let super_version = family.data.tree(key).super_version();
        let seqno = options.seqno().unwrap_or_else(|| self.core.writes.pipeline.visible_seqno());
        let lookup = self.core.lookup(&family.data, options);
        let is_there = super_version.has_in_memory(key, seqno, &lookup)?;
        drop(super_version);
        if !is_there || !family.data.has_times() {
            return Ok(is_there);
        }
        // Its time may be over.
        Ok(self.get_pinned_cf(family, key, options)?.is_some())
    }

    /// Drops the tables below level 0 that have nothing but keys from `begin` to `end` (both
    /// inclusive; `None`: all), at once and without reading them. What of the range is elsewhere
    /// stays, so that older values of a key may be seen again: to delete a range there is
    /// [`Db::delete_range`], which lets go of such tables, too. RocksDB: `DeleteFilesInRange`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// db.delete_files_in_range(&loans, None, Some(b"m"))?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `begin` is above `end`; `Background` if the database refuses writes.
    pub fn delete_files_in_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        check_family(&family.data)?;
        self.core.background.drop_tables(&family.data, begin, end)
    }

    /// Takes in files that an [`SstFileWriter`](crate::SstFileWriter) wrote, all or none. What is
    /// in them is newer than all that was written before; of several files with a key in common the
    /// later one wins. Writers go on meanwhile, but for a moment at the end.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// use sateen::{IngestOptions, Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.put("fig", "1")?; // keys in ascending order
    /// writer.finish()?;
    /// db.ingest(&db.default_column_family(), &[&file], &IngestOptions::default())?;
    /// assert!(db.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io`, `Corruption` and `IncompatibleDirectory` of a file; `InvalidArgument` if it has
    /// operands and the column family no merge operator; `TimedOut` if keys in its range are
    /// written all the time; `Background`. Nothing was taken in then.
    pub fn ingest<P: AsRef<std::path::Path>>(
        &self,
        family: &ColumnFamily,
        paths: &[P],
        options: &crate::IngestOptions,
    ) -> Result<()> {
        check_family(&family.data)?;
        let paths: Vec<_> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        Ingestion { core: &self.core }.ingest(&family.data, &paths, options)
    }

    /// Files of tables that are not needed any more stay until as many calls of
    /// [`Db::enable_file_deletions`], for somebody who copies them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.disable_file_deletions();
    /// // Copy files here: see `Db::live_files`.
    /// db.enable_file_deletions();
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn disable_file_deletions(&self) {
        self.core.tree.reclaimer.keep();
    }

    /// Ends one [`Db::disable_file_deletions`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.disable_file_deletions();
    /// db.enable_file_deletions();
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn enable_file_deletions(&self) {
        self.core.tree.reclaimer.release();
        self.core.background.board.poke();
    }

    /// Ends all calls of [`Db::disable_file_deletions`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.disable_file_deletions();
    /// db.disable_file_deletions();
    /// db.enable_all_file_deletions();
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn enable_all_file_deletions(&self) {
        self.core.tree.reclaimer.release_all();
        self.core.background.board.poke();
    }

    /// [`Db::compact_range`] fails with `ManualCompactionPaused`, those under way after the job
    /// that runs for them, until as many calls of [`Db::resume_manual_compactions`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// use sateen::{CompactRangeOptions, Error};
    ///
    /// db.pause_manual_compactions();
    /// let family = db.default_column_family();
    /// let refused = family.compact_range(None, None, &CompactRangeOptions::default());
    /// assert!(matches!(refused, Err(Error::ManualCompactionPaused)));
    /// db.resume_manual_compactions();
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn pause_manual_compactions(&self) {
        self.core.background.pause_manual();
    }

    /// Ends one [`Db::pause_manual_compactions`], or the next one, if it comes before.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.pause_manual_compactions();
    /// db.resume_manual_compactions();
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn resume_manual_compactions(&self) {
        self.core.background.resume_manual();
    }

    /// No flush or compaction starts or goes on until as many calls of
    /// [`Db::continue_background_work`]. Returns when none is at work. Flushes and compactions that
    /// are under way go on afterwards where they are. Writers go on until their memtables are full.
    /// RocksDB: `PauseBackgroundWork`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.pause_background_work()?;
    /// db.put("fig", "1")?; // goes to the memtable
    /// db.continue_background_work()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`, and `Background` if something fails meanwhile: then nothing is paused.
    pub fn pause_background_work(&self) -> Result<()> {
        self.core.background.driver.pause_background()
    }

    /// Ends one [`Db::pause_background_work`]. RocksDB: `ContinueBackgroundWork`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(db.continue_background_work().is_err(), "it is not paused");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is none.
    pub fn continue_background_work(&self) -> Result<()> {
        self.core.background.driver.continue_background()
    }

    /// Compacts the tables in `files`, and all that lies between them and `output_level` in their
    /// range of keys, into that level by one compaction. A file is named as in
    /// [`LiveTable::file`], with or without its directory. Returns what was made. RocksDB:
    /// `CompactFiles`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// let files: Vec<_> = db.live_tables().into_iter().map(|table| table.file).collect();
    /// let family = db.default_column_family();
    /// let done = db.compact_files(&family, &files, 6, &Default::default())?;
    /// assert_eq!(db.live_tables()[0].level, 6, "{done:?}");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` names a file that is not of this column family, a level that is no output
    /// level for the tables, or says that the tables were compacted meanwhile;
    /// `ManualCompactionPaused` if `cancelled` is set or manual compactions are paused;
    /// `Background`.
    pub fn compact_files<P: AsRef<Path>>(
        &self,
        family: &ColumnFamily,
        files: &[P],
        output_level: u8,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        check_family(&family.data)?;
        let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
        self.core.background.compact_files(&family.data, &files, output_level, options)
    }

    /// Returns when all listeners have returned from what they were told of flushes and compactions
    /// that are installed. Returns at once within a listener. RocksDB: `listener_wait` of
    /// `FlushOptions`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.flush()?;
    /// db.wait_for_listeners();
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn wait_for_listeners(&self) {
        self.core.env.events.wait_for_listeners();
    }

    /// Returns when no flush or compaction is left to do.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// use sateen::WaitForCompactOptions;
    ///
    /// db.put("fig", "1")?;
    /// db.wait_for_compact(&WaitForCompactOptions { flush: true, ..Default::default() })?;
    /// assert_eq!(db.live_tables().len(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BackgroundPaused` if the options say so; `TimedOut`; `Background` if something failed
    /// meanwhile; those of [`Db::close`].
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        let until = options.timeout.map(|most| self.core.env.now() + most);
        if options.flush {
            self.flush_all()?;
        }
        self.core.background.wait_idle_until(until, options.abort_on_pause)?;
        if options.close { self.close() } else { Ok(()) }
    }
}
