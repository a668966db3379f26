//! The scrub: it verifies every checksum of the live tables and the WALs, slice by slice, as
//! control grants it.
//!
//! 1. [`Scrubber::scrub`] asks control for a scrub and waits for its report.
//! 2. The chores call [`Scrubber::scrub_some`], which verifies one slice if control grants one.
//! 3. The first slice lists the live tables ([`ScrubRun::new`]).
//! 4. [`ScrubRun::step`] verifies one table after the other, block by block, then the WALs, newest
//!    first.
//! 5. `log_failed` reads a WAL again before it reports damage, because it may be written meanwhile.
//! 6. The last slice leaves the report and wakes the clients that wait.
//!
//! What must stay true:
//!
//! - Reads bypass all caches and have the I/O class of a deep compaction, not of clients.
//! - The table that is being verified is pinned. Nothing else is pinned between two slices.
//! - A slice ends with its grant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::version::TableMeta;
use sateen_control::{
    ColumnFamilyId, Epoch, Instant, IoClass, LogNumber, ScrubStep, TableId, UserKey,
};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock, sleep, wait_timeout};
use sateen_store::files::reclaim::OpenTables;
use sateen_store::files::{FileName, wal_file_name};
use sateen_store::table::table_cache::{TableCache, TableCacheOptions};
use sateen_store::table::{Table, TableIter, TableIterOptions};
use sateen_store::vfs::Vfs;
use sateen_store::wal::WalReader;

use super::driver::Driver;
use crate::environment::Environment;
use crate::metrics::ScrubMetrics;
use crate::timeline::EventKind;
use crate::tree::Tree;

/// The I/O class of the deepest compactions, the lowest of all jobs.
const CLASS: IoClass = IoClass::Deep(u8::MAX);
/// Bytes of one read.
const CHUNK_BYTES: usize = 256 << 10;
/// Number of findings of one table that are reported.
const FINDINGS_MAX: usize = 20;
/// How often a client that waits for the end checks whether the database is being closed.
const WAIT: Duration = Duration::from_millis(50);

/// What a scrub verified and found.
#[derive(Clone, Debug, Default)]
pub struct ScrubReport {
    /// Number of tables whose every block was verified.
    pub tables: u64,
    /// Number of WALs whose every record was verified.
    pub logs: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Damage that was found. Each names a file and the offset.
    pub problems: Vec<Error>,
    /// Reads that the operating system refused. The data may be whole. A table or WAL that is named
    /// here was not verified, or not to its end.
    pub unreadable: Vec<Error>,
}

impl ScrubReport {
    /// Returns true if everything could be read and nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.unreadable.is_empty()
    }

    /// Adds a finding to the list to which it belongs.
    fn found(&mut self, error: Error) {
        let refused = error.is_environment();
        if refused { self.unreadable.push(error) } else { self.problems.push(error) }
    }
}

/// Where a table was when the scrub began.
struct Place {
    family: ColumnFamilyId,
    level: u8,
    epoch: Epoch,
    smallest: UserKey,
}

/// A table that is being verified.
struct UnderWay {
    /// Keeps the table's bytes from being reclaimed.
    meta: Arc<TableMeta>,
    table: Arc<Table>,
    iter: TableIter,
    /// Whether the iterator was moved to the first entry.
    begun: bool,
    /// Average bytes of a block.
    block_bytes: u64,
    findings: usize,
}

/// A WAL that is being verified.
struct LogUnderWay {
    number: LogNumber,
    reader: WalReader,
    /// The error of the first attempt to read it.
    failed: Option<String>,
}

/// A running scrub.
struct ScrubRun {
    cache: TableCache,
    tables: BTreeMap<TableId, Place>,
    table: Option<UnderWay>,
    /// The WALs that are left; `None` before the first one.
    logs: Option<Vec<LogNumber>>,
    log: Option<LogUnderWay>,
    report: ScrubReport,
}

/// The run that is under way, and the results of earlier ones.
#[derive(Default)]
struct ScrubState {
    run: Option<Box<ScrubRun>>,
    /// Whether a thread has the run.
    taken: bool,
    /// Number of scrubs that have ended.
    over: u64,
    /// The report of the last one.
    last: Option<Arc<ScrubReport>>,
}

/// Scrubs an open database.
pub(crate) struct Scrubber {
    env: Arc<Environment>,
    tree: Arc<Tree>,
    driver: Arc<Driver>,
    state: Mutex<ScrubState>,
    ended: Condvar,
    runs: AtomicU64,
    bytes: AtomicU64,
    problems: AtomicU64,
    /// The table that is verified next; 0 if none.
    position: AtomicU64,
    running: AtomicBool,
}

impl Scrubber {
    pub(crate) fn new(env: Arc<Environment>, tree: Arc<Tree>, driver: Arc<Driver>) -> Scrubber {
        Scrubber {
            env,
            tree,
            driver,
            state: Mutex::default(),
            ended: Condvar::new(),
            runs: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            problems: AtomicU64::new(0),
            position: AtomicU64::new(0),
            running: AtomicBool::new(false),
        }
    }

    /// Returns the metrics of all scrubs since open.
    pub(crate) fn metrics(&self) -> ScrubMetrics {
        ScrubMetrics {
            running: self.running.load(Ordering::Relaxed),
            runs: self.runs.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            problems: self.problems.load(Ordering::Relaxed),
            position: self.position.load(Ordering::Relaxed),
        }
    }

    /// Wakes clients that wait for the end. They see that the database is being closed.
    pub(crate) fn stop(&self) {
        self.ended.notify_all();
    }
}

impl ScrubRun {
    /// Begins a run, with all tables that are live now.
    fn new(scrubber: &Scrubber) -> ScrubRun {
        let mut tables = BTreeMap::new();
        for family in scrubber.tree.families().values() {
            let version = family.super_version().version.clone();
            for (level, epoch, table) in version.tables() {
                let smallest = table.smallest.clone();
                let place = Place { family: family.id(), level, epoch, smallest };
                tables.insert(table.id, place);
            }
        }
        let cache = TableCache::new(TableCacheOptions {
            vfs: scrubber.env.vfs.clone(),
            directory: scrubber.env.directory.clone(),
            db_uid: scrubber.tree.versions.db_uid(),
            direct: scrubber.env.options.load().direct_reads,
            open_files_max: 2,
            memory_bytes_max: 1 << 20,
            images: None,
        });
        ScrubRun {
            cache,
            tables,
            table: None,
            logs: None,
            log: None,
            report: ScrubReport::default(),
        }
    }

    /// Verifies about `bytes` bytes. Returns how many, and whether the run has ended.
    fn step(&mut self, scrubber: &Scrubber, bytes: u64) -> (u64, bool) {
        let mut done = 0;
        while done < bytes {
            if scrubber.driver.is_stopping() {
                return (done, false);
            }
            if let Some(table) = &mut self.table {
                let (read, more) = table.step(&mut self.report, bytes - done);
                done += read;
                if !more {
                    self.report.tables += 1;
                    self.cache.evict(table.meta.id);
                    self.table = None;
                }
                continue;
            }
            if let Some((id, place)) = self.tables.pop_first() {
                scrubber.position.store(id.0, Ordering::Relaxed);
                done += self.open(scrubber, id, &place);
                continue;
            }
            match self.step_logs(scrubber, bytes - done) {
                Some(read) => done += read,
                None => return (done, true),
            }
        }
        (done, false)
    }

    /// Opens a table if it is still live. Returns an estimate of the bytes that were read.
    fn open(&mut self, scrubber: &Scrubber, id: TableId, place: &Place) -> u64 {
        let Some(family) = scrubber.tree.family_by_id(place.family) else { return 0 };
        // The version is held until the table is, because a reclaimed table must not be read.
        let version = family.super_version().version.clone();
        let run = version.level(place.level).run(place.epoch);
        let found = run.and_then(|run| run.locate(place.smallest.bytes(), id));
        let found = found.map(|(_, table)| table.clone());
        // The table may have been moved to another level.
        let moved = || version.tables().map(|(.., table)| table).find(|table| table.id == id);
        let Some(meta) = found.or_else(|| moved().cloned()) else { return 0 };
        match self.cache.get(&meta, CLASS) {
            Ok(table) => {
                let iter = table.iter(TableIterOptions::compaction(CLASS, CHUNK_BYTES));
                let blocks = (table.blocks() as u64).max(1);
                let block_bytes = (meta.stored_bytes() / blocks).max(1);
                let (begun, findings) = (false, 0);
                self.table = Some(UnderWay { meta, table, iter, begun, block_bytes, findings });
                // Stands for index, filter and footer.
                block_bytes
            }
            Err(error) => {
                self.report.found(error);
                1
            }
        }
    }

    /// Verifies records of WALs. Returns the bytes that were read; `None` at the end.
    fn step_logs(&mut self, scrubber: &Scrubber, bytes: u64) -> Option<u64> {
        let logs = self.logs.get_or_insert_with(|| {
            logs_of(scrubber).unwrap_or_else(|error| {
                // Without the list no WAL can be verified.
                self.report.found(error);
                Vec::new()
            })
        });
        let mut log = match self.log.take() {
            Some(log) => log,
            None => {
                let number = logs.pop()?;
                scrubber.position.store(0, Ordering::Relaxed);
                self.open_log(scrubber, number, None)?
            }
        };
        let mut done = 0;
        while done < bytes {
            match log.reader.next() {
                Ok(Some(record)) => done += record.payload.len() as u64 + 1,
                Ok(None) => {
                    self.report.logs += 1;
                    return Some(done.max(1));
                }
                Err(error) => {
                    self.log_failed(scrubber, log.number, &log.failed, error);
                    return Some(done.max(1));
                }
            }
        }
        self.log = Some(log);
        Some(done)
    }

    /// Opens a WAL. `failed` is the error of the first attempt to read it.
    fn open_log(
        &mut self,
        scrubber: &Scrubber,
        number: LogNumber,
        failed: Option<String>,
    ) -> Option<LogUnderWay> {
        let path = wal_file_name(&scrubber.env.wal_directory(), number);
        let uid = Some(scrubber.tree.versions.db_uid());
        match WalReader::open(scrubber.env.vfs.as_ref(), &path, number, uid, 0) {
            Ok(reader) => Some(LogUnderWay { number, reader, failed }),
            Err(error) => {
                self.log_failed(scrubber, number, &failed, error);
                self.log.take()
            }
        }
    }

    /// Handles the error of a WAL: reads it once more after the first error, and reports the second
    /// one if it is the same and the WAL is still needed. A WAL that is read while it is written
    /// may look damaged.
    fn log_failed(
        &mut self,
        scrubber: &Scrubber,
        number: LogNumber,
        before: &Option<String>,
        error: Error,
    ) {
        if before.as_ref() != Some(&error.to_string()) {
            self.log = match before {
                None => self.open_log(scrubber, number, Some(error.to_string())),
                Some(_) => None,
            };
        } else if number >= scrubber.tree.versions.oldest_log() {
            self.report.found(error);
        }
    }
}

/// Returns the WALs in the directory, newest first.
fn logs_of(scrubber: &Scrubber) -> Result<Vec<LogNumber>> {
    let directory = scrubber.env.wal_directory();
    let listing =
        scrubber.env.vfs.list(&directory).map_err(|e| Error::io("list", &directory, e))?;
    let names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    let logs = names.filter_map(|name| match FileName::parse(name) {
        Some(FileName::Wal(log)) => Some(log),
        _ => None,
    });
    let mut logs: Vec<_> = logs.collect();
    logs.sort_unstable_by_key(|log| std::cmp::Reverse(*log));
    Ok(logs)
}

impl UnderWay {
    /// Verifies about `bytes` bytes. Returns how many, and whether there are more.
    fn step(&mut self, report: &mut ScrubReport, bytes: u64) -> (u64, bool) {
        let mut done = 0;
        while done < bytes {
            let (read, moved) = self.advance();
            done += read;
            match moved {
                Ok(true) => {}
                Ok(false) => return (done, false),
                Err(error) => {
                    let goes_on = error.is_corruption() && self.findings < FINDINGS_MAX;
                    self.findings += 1;
                    report.found(error);
                    if !goes_on {
                        return (done, false);
                    }
                }
            }
        }
        (done, true)
    }

    /// Verifies the next block, or the next entry if the table has separated values. Returns the
    /// bytes and whether there is more.
    fn advance(&mut self) -> (u64, Result<bool>) {
        let valid = |moved: Result<()>, iter: &TableIter| moved.map(|()| iter.valid());
        if !std::mem::replace(&mut self.begun, true) {
            let moved = self.iter.seek_to_first();
            return (self.block_bytes, valid(moved, &self.iter));
        }
        if self.table.separates_values() && self.iter.valid() {
            let bytes = (key::user_key(self.iter.key()).len() + self.iter.value().len()) as u64;
            let moved = self.iter.next();
            return (bytes.max(1), valid(moved, &self.iter));
        }
        (self.block_bytes, self.iter.skip_block())
    }
}

impl Scrubber {
    /// Verifies a slice if control grants one. Returns when to ask again.
    pub(crate) fn scrub_some(&self) -> Option<Instant> {
        let step = self.driver.scrub_step(self.env.now());
        match step {
            ScrubStep::Nothing => None,
            ScrubStep::Wait(until) => Some(until),
            ScrubStep::Read(bytes) => {
                self.scrub_slice(bytes);
                Some(self.env.now())
            }
        }
    }

    /// Verifies a slice of about `bytes` bytes, unless another thread does. Begins a run if there
    /// is none.
    fn scrub_slice(&self, bytes: u64) {
        let taken = {
            let mut state = lock(&self.state);
            if std::mem::replace(&mut state.taken, true) {
                return;
            }
            state.run.take()
        };
        let mut run = taken.unwrap_or_else(|| {
            self.running.store(true, Ordering::Relaxed);
            self.env.metrics.timeline.told(self.env.now(), EventKind::ScrubBegan);
            Box::new(ScrubRun::new(self))
        });
        let told = (run.report.problems.len(), run.report.unreadable.len());
        let (done, over) = run.step(self, bytes);
        run.report.bytes += done;
        self.bytes.fetch_add(done, Ordering::Relaxed);
        for problem in run.report.problems.iter().skip(told.0) {
            self.problems.fetch_add(1, Ordering::Relaxed);
            self.env.health.found(problem);
        }
        run.report.unreadable.iter().skip(told.1).for_each(|error| self.env.health.found(error));
        self.driver.scrub_stepped(self.env.now(), done);
        if over {
            self.driver.scrub_finished(self.env.now());
            self.running.store(false, Ordering::Relaxed);
            self.runs.fetch_add(1, Ordering::Relaxed);
            let (bytes, problems) = (run.report.bytes, run.report.problems.len() as u64);
            self.env
                .metrics
                .timeline
                .told(self.env.now(), EventKind::ScrubEnded { bytes, problems });
        }
        let mut state = lock(&self.state);
        state.taken = false;
        if over {
            state.over += 1;
            state.last = Some(Arc::new(run.report));
        } else {
            state.run = Some(run);
        }
        drop(state);
        if over {
            self.ended.notify_all();
        }
    }

    /// Verifies everything, and returns the report.
    pub(crate) fn scrub(&self, rate: Option<u64>) -> Result<ScrubReport> {
        self.env.check_writable("scrubbing")?;
        let before = lock(&self.state).over;
        self.driver.request_scrub(self.env.now(), rate);
        self.driver.board.poke();
        loop {
            let state = lock(&self.state);
            if state.over > before
                && let Some(report) = &state.last
            {
                return Ok((**report).clone());
            }
            if self.driver.is_stopping() {
                return Err(Error::Closed);
            }
            if self.env.has_threads() {
                drop(wait_timeout(&self.ended, &self.state, state, WAIT));
            } else {
                drop(state);
                self.env.check_open()?;
                self.scrub_here();
            }
        }
    }

    /// Verifies a slice on the calling thread, at the pace that control sets.
    fn scrub_here(&self) {
        match self.driver.scrub_step(self.env.now()) {
            ScrubStep::Read(bytes) => self.scrub_slice(bytes),
            ScrubStep::Wait(Instant(until)) => {
                let wait = Duration::from_nanos(until.saturating_sub(self.env.now().0));
                sleep(wait.min(WAIT));
            }
            // Another caller ended the run.
            ScrubStep::Nothing => {}
        }
    }
}
