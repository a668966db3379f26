//! The public API for upkeep: flushes, compactions, options, health and admission. Nothing here is
//! needed for reads and writes.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::Outlook;
use sateen_store::base::error::{Error, Result};

use super::{Db, check_family};
use crate::background::scrub::ScrubReport;
use crate::health::Health;
use crate::options::{CompactRangeOptions, FlushOptions, Options};
use crate::tree::families::ColumnFamilyData;

/// Upkeep.
impl Db {
    /// Flushes the memtable of the default column family.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// assert_eq!(db.live_tables().len(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Background` with the cause if the flush fails.
    pub fn flush(&self) -> Result<()> {
        self.flush_with(&FlushOptions::default())
    }

    /// Flushes as [`Db::flush`] does. The options say whether to wait for the end.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.flush_with(&sateen::FlushOptions { wait: false })?; // it is begun
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush_with(&self, options: &FlushOptions) -> Result<()> {
        self.flush_memtables_of(&self.core.tree.default_family, options)
    }

    pub(super) fn flush_memtables_of(
        &self,
        family: &Arc<ColumnFamilyData>,
        options: &FlushOptions,
    ) -> Result<()> {
        check_family(family)?;
        let trees: Vec<_> = family.trees().cloned().collect();
        self.core.background.flush(&trees, options.wait)
    }

    /// Flushes the memtables of all column families.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// # let loans = db.create_column_family("loans", Default::default())?;
    /// db.put("fig", "1")?;
    /// loans.put("walden", "Ishmael")?;
    /// db.flush_all()?;
    /// assert_eq!(db.live_tables().len(), 2);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let families: Vec<_> = self.core.tree.families().values().cloned().collect();
        self.core.background.flush(&families, true)
    }

    /// Compacts the keys from `begin` to `end` (both inclusive; `None`: no bound) of a column
    /// family down to the lowest level that holds any.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.delete("fig")?;
    /// db.compact_range(None, None, &sateen::CompactRangeOptions::default())?;
    /// assert!(db.live_tables().is_empty(), "nothing is left of it");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `begin` is above `end`. `Background` if a compaction failed.
    pub fn compact_range(
        &self,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.compact_range_of(&self.core.tree.default_family, begin, end, options)
    }

    pub(super) fn compact_range_of(
        &self,
        family: &Arc<ColumnFamilyData>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        check_family(family)?;
        self.core.background.compact_range(family, begin, end, options)
    }

    /// Waits until there is no background work left to do.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// db.wait_idle()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Background` if something failed meanwhile.
    pub fn wait_idle(&self) -> Result<()> {
        self.core.background.wait_idle()
    }

    /// Verifies every checksum of every live table and WAL, beside clients and with lower priority
    /// than all other work. It reads at most `rate` bytes per second (`None`: as the option
    /// `scrub_rate` says), and neither fills nor empties a cache. Returns when it is done.
    ///
    /// The report lists what is damaged, and separately what the operating system refused to read.
    /// The [`HealthListener`](crate::HealthListener) receives both as they are found, and the
    /// metrics count what is damaged. If a scrub is running already, this call waits for it, and
    /// that scrub goes on at the new rate.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.flush()?;
    /// let report = db.scrub(None)?;
    /// assert!(report.tables == 1 && report.is_sound());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed` if the database is closed meanwhile. `ReadOnly` for a read-only database, where
    /// [`Db::check`] does the same and more.
    pub fn scrub(&self, rate: Option<u64>) -> Result<ScrubReport> {
        self.core.background.scrubber.scrub(rate)
    }

    /// Does one piece of background work on the calling thread. A database that was opened with
    /// `background_threads = 0` gets its background work done this way. Returns false if there was
    /// nothing to do.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Db, FlushOptions, Options};
    ///
    /// let options = Options { background_threads: 0, ..Options::default() };
    /// let db = Db::open(directory.path(), options)?;
    /// db.put("fig", "1")?;
    /// db.flush_with(&FlushOptions { wait: false })?;
    /// while db.step()? {}
    /// assert_eq!(db.live_tables().len(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`. A failure of the work itself shows in [`Db::health`].
    pub fn step(&self) -> Result<bool> {
        self.core.background.step_here()
    }

    /// Changes options of the running database, all or none.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.set_options(&[("block_cache_bytes", "16MiB")])?;
    /// assert_eq!(db.options().block_cache_bytes, 16 << 20);
    /// assert!(db.set_options(&[("wal_dir", "/tmp")]).is_err(), "it is fixed at open");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` names the option that is unknown, has a wrong value, or is fixed at open.
    /// `Io` if they could not be stored, for example on a full disk; then they are as before.
    pub fn set_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.core.set_options(changes)
    }

    /// Returns true if this process is a fork of the one that opened the database. Such a database
    /// cannot be used, and closing it does nothing.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_parent_process(&self) -> bool {
        self.core.env.is_of_parent()
    }

    /// Returns the options in force. `max_open_files` is reduced to what the process's limit on
    /// open files leaves.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(db.options().create_if_missing);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn options(&self) -> Options {
        let mut options = (*self.core.env.options.load_full()).clone();
        let (_, most) = self.core.tree.tables.descriptors();
        options.max_open_files = u32::try_from(most).unwrap_or(u32::MAX);
        options
    }

    /// Returns the health of the database, and the cause if it is not healthy.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// use sateen::Health;
    ///
    /// let (health, cause) = db.health();
    /// assert!(health == Health::Ok && cause.is_none());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn health(&self) -> (Health, Option<Arc<Error>>) {
        (self.core.env.health.health(), self.core.env.health.cause())
    }

    /// Returns true while the machine is short of processors: other programs use half of their time
    /// or more, and less than a tenth is idle. Everything works then, and takes longer. It is seen
    /// within a second, and ends when others use less than 40 % or a fifth is idle.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// if db.is_short_of_processor() {
    ///     println!("other programs take the processors");
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn is_short_of_processor(&self) -> bool {
        self.core.background.driver.is_short_of_processor()
    }

    /// Lets a database that refuses writes work again, once the cause is gone.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.resume()?; // does nothing while all is well
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that still keeps it from working. The health stays as it was.
    pub fn resume(&self) -> Result<()> {
        self.core.env.check_open()?;
        if self.core.env.read_only {
            return Err(Error::ReadOnly("resuming"));
        }
        self.core.background.chores.resume_inner()
    }

    /// Returns the newest sequence number that readers see.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.latest_sequence_number(), 0);
    /// db.put("fig", "1")?;
    /// assert_eq!(db.latest_sequence_number(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn latest_sequence_number(&self) -> u64 {
        self.core.writes.pipeline.visible_seqno().0
    }

    /// Returns how long a write would wait now; zero if it would not wait. `None` if writes are
    /// refused until an error is resolved.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert_eq!(db.write_delay(), Some(std::time::Duration::ZERO));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn write_delay(&self) -> Option<Duration> {
        if self.core.env.health.check().is_err() {
            return None;
        }
        let families = self.core.tree.families();
        let waits = families.values().map(|family| family.gate.expected_wait());
        waits.chain([self.core.background.driver.gate.expected_wait()]).max()
    }

    /// Returns how long it takes until writes to the default column family stop, if clients and
    /// background go on as now. `None` if they will not stop, or if this is not known because
    /// admission is not smooth.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// if let Some(left) = db.time_to_stall() {
    ///     println!("writes stop in {left:?} if all goes on as now");
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn time_to_stall(&self) -> Option<Duration> {
        self.time_to_stall_of(&self.core.tree.default_family)
    }

    pub(super) fn time_to_stall_of(&self, family: &Arc<ColumnFamilyData>) -> Option<Duration> {
        self.outlook(family)?.time_to_stall_ns.map(Duration::from_nanos)
    }

    fn outlook(&self, family: &Arc<ColumnFamilyData>) -> Option<Outlook> {
        self.core.background.driver.outlook(family.trees().map(|tree| tree.id()))
    }

    /// Returns how many bytes of keys and values per second the background keeps up with, if only
    /// the default column family is written to; otherwise its share of them. `None` if this is not
    /// known because admission is not smooth.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// if let Some(rate) = db.sustainable_write_rate() {
    ///     println!("{rate} bytes a second");
    /// }
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn sustainable_write_rate(&self) -> Option<u64> {
        self.sustainable_write_rate_of(&self.core.tree.default_family)
    }

    pub(super) fn sustainable_write_rate_of(&self, family: &Arc<ColumnFamilyData>) -> Option<u64> {
        Some(self.outlook(family)?.sustainable_write_rate)
    }
}
