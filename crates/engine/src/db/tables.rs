//! The public API for tables and the work on them: listing, ingesting, dropping, compacting, and
//! pausing the background.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sateen_store::base::error::Result;

use super::ingest::{BulkLoad, Ingestion};
use super::{Db, check_family};
use crate::background::compaction::chosen::CompactFilesOptions;
use crate::core::DbCore;
use crate::events::CompactionInfo;
use crate::live_table::LiveTable;
use crate::options::ReadOptions;
use crate::read::lookup::Pin;
use crate::tree::families::ColumnFamilyData;

/// Options of [`Db::wait_for_compact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitForCompactOptions {
    /// Flush all memtables first. Default: false. RocksDB: `flush`.
    pub flush: bool,
    /// Close the database afterwards. Default: false. RocksDB: `close_db`.
    pub close: bool,
    /// Fail if background work is paused, instead of waiting for its end. Default: false. RocksDB:
    /// `abort_on_pause`.
    pub abort_on_pause: bool,
    /// Longest wait; `None` for no limit. Default: none. RocksDB: `timeout`.
    pub timeout: Option<Duration>,
}

/// Tables, and the work on them.
impl Db {
    /// Returns a handle that does not keep the database open.
    pub(crate) fn borrowed(core: Arc<DbCore>) -> Db {
        Db { core, _closer: None }
    }

    /// Returns the tables of all column families. For each family they are in the order of their
    /// levels, and within a run in the order of their keys.
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

    pub(super) fn tables_of(&self, family: &Arc<ColumnFamilyData>) -> Vec<LiveTable> {
        let mut tables = Vec::new();
        for tree in family.trees() {
            let version = tree.super_version().version.clone();
            let all = version.tables();
            let live = |(level, _, table): (_, _, &Arc<_>)| {
                let env = &self.core.env;
                LiveTable::of(env.vfs.as_ref(), &env.directory, family.name(), level, table)
            };
            tables.extend(all.map(live));
        }
        tables.sort_by_key(|table| table.level);
        tables
    }

    /// Returns a UUID that identifies this database as long as it exists. A checkpoint has its own,
    /// unless [`checkpoint_keeps_identity`](crate::Options::checkpoint_keeps_identity) is on. A
    /// copy of the files has the same identity. RocksDB: `GetDbIdentity`.
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

    /// Returns false if `key` certainly has no value. It does no I/O: it asks the memtables, the
    /// key ranges of tables, and the filters of open tables. RocksDB: `KeyMayExist`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(!db.may_contain("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let family = &self.core.tree.default_family;
        self.may_contain_in(family, key.as_ref(), &ReadOptions::default())
    }

    pub(super) fn may_contain_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<bool> {
        check_family(family)?;
        self.core.env.check_open()?;
        let _view = self.core.view(options)?;
        // The super version first, then the sequence number.
        let super_version = family.tree(key).super_version();
        let seqno = options.seqno().unwrap_or_else(|| self.core.writes.pipeline.visible_seqno());
        super_version.may_contain(key, seqno, &self.core.lookup(family, options))
    }

    /// Returns true if the value of `key` is in a memtable, so that reading it needs no I/O.
    /// RocksDB: `value_found` of `KeyMayExist`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// assert!(db.has_in_memory("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn has_in_memory(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let family = &self.core.tree.default_family;
        self.has_in_memory_in(family, key.as_ref(), &ReadOptions::default())
    }

    pub(super) fn has_in_memory_in(
        &self,
        family: &Arc<ColumnFamilyData>,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<bool> {
        check_family(family)?;
        self.core.env.check_open()?;
        // The super version first, then the sequence number.
        let super_version = family.tree(key).super_version();
        let seqno = options.seqno().unwrap_or_else(|| self.core.writes.pipeline.visible_seqno());
        let lookup = self.core.lookup(family, options);
        let is_there = super_version.has_in_memory(key, seqno, &lookup)?;
        drop(super_version);
        if !is_there || !family.has_times() {
            return Ok(is_there);
        }
        // The value may have expired.
        Ok(self.find(family, key, options, Pin)?.is_some())
    }

    /// Drops the tables below level 0 that only hold keys from `begin` to `end` (both inclusive;
    /// `None`: no bound), at once and without reading them. Entries of the range in other tables
    /// stay, so older values of a key may become visible again. To delete a range, use
    /// [`Db::delete_range`], which also drops such tables. RocksDB: `DeleteFilesInRange`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.delete_files_in_range(None, Some(b"m"))?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `begin` is above `end`. `Background` if the database refuses writes.
    pub fn delete_files_in_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.drop_tables_of(&self.core.tree.default_family, begin, end)
    }

    pub(super) fn drop_tables_of(
        &self,
        family: &Arc<ColumnFamilyData>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        check_family(family)?;
        self.core.background.drop_tables(family, begin, end)
    }

    /// Ingests files that an [`SstFileWriter`](crate::SstFileWriter) wrote, all or none. Their
    /// entries are newer than everything that was written before. If several files have a key, the
    /// later file wins. Writers go on meanwhile, except for a moment at the end.
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
    /// db.ingest(&[&file], &IngestOptions::default())?;
    /// assert!(db.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io`, `Corruption` and `IncompatibleDirectory` of a file. `InvalidArgument` if a file has
    /// merge operands and the column family has no merge operator. `TimedOut` if keys in the range
    /// of a file are written all the time. `Background`. Nothing is ingested then.
    pub fn ingest<P: AsRef<Path>>(
        &self,
        paths: &[P],
        options: &crate::IngestOptions,
    ) -> Result<()> {
        self.ingest_into(&self.core.tree.default_family, paths, options)
    }

    pub(super) fn ingest_into<P: AsRef<Path>>(
        &self,
        family: &Arc<ColumnFamilyData>,
        paths: &[P],
        options: &crate::IngestOptions,
    ) -> Result<()> {
        check_family(family)?;
        let paths: Vec<_> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        Ingestion::begin(&self.core, "ingesting files")?.ingest(family, &paths, options)
    }

    /// Begins a bulk load: sorted entries go straight into tables, without the WAL and the
    /// memtable. They are newer than everything that was written before [`BulkLoad::finish`]. Parts
    /// of the keys can be written by several threads at once. Readers and writers go on meanwhile,
    /// except for a moment at the end.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// let load = db.bulk_load()?;
    /// std::thread::scope(|scope| {
    ///     let halves = [["apple", "date"], ["fig", "plum"]];
    ///     let write = |keys: [&'static str; 2]| {
    ///         let load = &load;
    ///         scope.spawn(move || {
    ///             let mut part = load.part();
    ///             keys.iter().try_for_each(|key| part.put(key, "1"))?; // in ascending order
    ///             part.finish()
    ///         })
    ///     };
    ///     halves.map(write).into_iter().try_for_each(|part| part.join().unwrap())
    /// })?;
    /// load.finish()?;
    /// assert_eq!(db.iter()?.count(), 4);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`, `Background`.
    pub fn bulk_load(&self) -> Result<BulkLoad<'_>> {
        self.bulk_load_into(&self.core.tree.default_family)
    }

    pub(super) fn bulk_load_into(&self, family: &Arc<ColumnFamilyData>) -> Result<BulkLoad<'_>> {
        check_family(family)?;
        Ok(BulkLoad::new(Ingestion::begin(&self.core, "a bulk load")?, family.clone()))
    }

    /// Keeps table files that are not needed any more until as many calls of
    /// [`Db::enable_file_deletions`], for a program that copies them.
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

    /// Pauses manual compactions until as many calls of [`Db::resume_manual_compactions`]. Until
    /// then [`Db::compact_range`] fails with `ManualCompactionPaused`. A call that is under way
    /// fails after its running job.
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

    /// Ends one [`Db::pause_manual_compactions`]. Called before it, it cancels the next one.
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

    /// Discards the compactions that run, manual ones included, and lets no other start until as
    /// many calls of [`Db::resume_compactions`]. Returns when none is left; no part of their work
    /// is kept. Flushes go on, and writers until level 0 is full. Until then [`Db::compact_range`]
    /// fails with `ManualCompactionPaused`. RocksDB: `AbortAllCompactions`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.stop_compactions()?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// db.resume_compactions()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`. `Background` if something has failed; nothing is stopped then.
    pub fn stop_compactions(&self) -> Result<()> {
        self.core.background.stop_compactions()
    }

    /// Ends one [`Db::stop_compactions`]. RocksDB: `ResumeAllCompactions`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(db.resume_compactions().is_err(), "they are not stopped");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`. `InvalidArgument` if compactions are not stopped.
    pub fn resume_compactions(&self) -> Result<()> {
        self.core.background.resume_compactions()
    }

    /// Pauses flushes and compactions until as many calls of [`Db::continue_background_work`].
    /// Returns when none is at work. Jobs that are under way continue afterwards from where they
    /// are. Writers go on until their memtables are full. RocksDB: `PauseBackgroundWork`.
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
    /// `Closed`. `Background` if something fails meanwhile; nothing is paused then.
    pub fn pause_background_work(&self) -> Result<()> {
        self.core.background.driver.pause_background(true)
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
    /// `InvalidArgument` if background work is not paused.
    pub fn continue_background_work(&self) -> Result<()> {
        self.core.background.driver.continue_background()
    }

    /// Ends flushes and compactions for good, as a preparation of [`Db::close`]: none begins any
    /// more, and those that run stop within a step. Entries that are in no WAL are flushed before.
    /// With `wait`, returns once none is at work. Reads and writes go on, but a flush, and a write
    /// that would have to wait because memtables fill up, fail with `Closed`, and a manual
    /// compaction with `ManualCompactionPaused`. RocksDB: `CancelAllBackgroundWork`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.end_background_work(true)?;
    /// db.put("fig", "1")?; // goes to the memtable and the WAL
    /// assert!(matches!(db.flush(), Err(sateen::Error::Closed)));
    /// db.close()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`. `Background` and `Io` if entries cannot be flushed; nothing is ended then.
    pub fn end_background_work(&self, wait: bool) -> Result<()> {
        self.core.end_background_work(wait)
    }

    /// Compacts the tables in `files` into `output_level` with one compaction, together with
    /// everything between them and that level in their key range. A file is named as in
    /// [`LiveTable::file`], with or without its directory. Returns the compaction that was done.
    /// RocksDB: `CompactFiles`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// let files: Vec<_> = db.live_tables().into_iter().map(|table| table.file).collect();
    /// let done = db.compact_files(&files, 6, &Default::default())?;
    /// assert_eq!(db.live_tables()[0].level, 6, "{done:?}");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if a file does not belong to this column family, if the level is no
    /// possible output level, or if the tables were compacted meanwhile. `ManualCompactionPaused`
    /// if `cancelled` is set or manual compactions are paused. `Background`.
    pub fn compact_files<P: AsRef<Path>>(
        &self,
        files: &[P],
        output_level: u8,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        self.compact_files_of(&self.core.tree.default_family, files, output_level, options)
    }

    pub(super) fn compact_files_of<P: AsRef<Path>>(
        &self,
        family: &Arc<ColumnFamilyData>,
        files: &[P],
        output_level: u8,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        check_family(family)?;
        let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
        self.core.background.compact_files(family, &files, output_level, options)
    }

    /// Waits until all listeners have returned from the calls about flushes and compactions that
    /// are installed. Returns at once within a listener. RocksDB: `listener_wait` of
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

    /// Waits until no flush or compaction is left to do.
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
    /// `BackgroundPaused` if the background is paused and the options say so; `TimedOut`;
    /// `Background` if something failed meanwhile; those of [`Db::close`].
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        let until = options.timeout.map(|most| self.core.env.now() + most);
        if options.flush {
            self.flush_all()?;
        }
        self.core.background.wait_idle_until(until, options.abort_on_pause)?;
        if options.close { self.close() } else { Ok(()) }
    }
}
