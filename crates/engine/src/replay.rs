//! Replaying traces: the calls of a trace are made again, in their order and at their times.
//!
//! [`Replayer::replay`]:
//!
//! 1. It reads a call and waits until it is due, counted from the begin of the trace.
//! 2. Writes are done by the calling thread, so that they keep their order. With one thread, reads
//!    are, too.
//! 3. With more threads, reads go to the others through a bounded queue (`Reads`).
//! 4. The first error ends the replay. A read that panics, in an operator of the client, is one.
//!
//! What must stay true: the database is the same afterwards, whatever the speed and the number of
//! threads.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sateen_control::ColumnFamilyId;
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::{Condvar, Mutex, lock, wait_timeout};

use crate::batch::WriteBatch;
use crate::db::Db;
use crate::db::family::ColumnFamily;
use crate::options::{ReadOptions, WriteOptions};
use crate::runtime;
use crate::trace::{TraceCall, TraceReader, TraceRecord, TraceSeek};

/// The most threads of a replay.
const THREADS_MAX: u32 = 1024;
/// Reads that wait for a thread at most.
const QUEUED_MAX: usize = 1024;
/// How long a thread waits before it looks again.
const LOOK: Duration = Duration::from_millis(100);
/// The longest sleep before a look whether another thread has failed.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// How [`Replayer::replay`] replays.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// How many times as fast as the calls were made. `f64::INFINITY` waits for nothing. RocksDB:
    /// `fast_forward`.
    pub speed: f64,
    /// Threads, at most 1024. One does the writes, and the others the reads. 0 means 1.
    pub threads: u32,
    /// Options of the writes. A trace has none.
    pub write: WriteOptions,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions { speed: 1.0, threads: 1, write: WriteOptions::default() }
    }
}

/// What a replay has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Calls that were made.
    pub calls: u64,
    /// The longest time by which a call began too late, because earlier ones took too long.
    pub late_max: Duration,
    /// Calls that the trace has lost ([`TraceReader::lost`]).
    pub lost: u64,
}

/// The result of a call ([`Replayer::execute`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The batch was written.
    Written,
    /// The value of each key that was read.
    Values(Vec<Option<Vec<u8>>>),
    /// The entry that was sought.
    Entry(Option<(Vec<u8>, Vec<u8>)>),
}

/// Plays a trace into a database. RocksDB: `Replayer`.
///
/// ```
/// use sateen::{Db, Options, Replayed, Replayer, TraceOptions, TraceReader};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, trace) = (directory.path().join("db"), directory.path().join("trace"));
/// let db = Db::open(path, Options::default())?;
/// db.start_trace(&trace, &TraceOptions::default())?;
/// db.put("fig", "1")?;
/// db.get("fig")?;
/// db.end_trace()?;
///
/// // One call after the other:
/// let mut replayer = Replayer::new(&db, TraceReader::open(&trace)?);
/// while let Some(record) = replayer.next_record()? {
///     println!("{} us: {:?}", record.at_us, replayer.execute(&record, &Default::default())?);
/// }
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Debug)]
pub struct Replayer {
    db: Db,
    reader: TraceReader,
    /// The column families by their ids in the trace.
    families: BTreeMap<ColumnFamilyId, ColumnFamily>,
}

impl Replayer {
    /// Returns a replayer of the calls that `reader` has not read yet. Column families are those
    /// of `db` that have the ids of the trace, until [`Replayer::map`] says otherwise.
    #[must_use]
    pub fn new(db: &Db, reader: TraceReader) -> Replayer {
        let names = db.column_families();
        let families = names.iter().filter_map(|name| db.column_family(name));
        let families = families.map(|family| (ColumnFamilyId(family.id()), family)).collect();
        Replayer { db: db.clone(), reader, families }
    }

    /// Has calls for the column family with this id in the trace go to `family`.
    ///
    /// # Errors
    /// `InvalidArgument` if it belongs to another database.
    pub fn map(&mut self, id: u32, family: &ColumnFamily) -> Result<()> {
        if !Arc::ptr_eq(family.db().core(), self.db.core()) {
            let text = format!("the column family {} belongs to another database", family.name());
            return Err(Error::InvalidArgument(text));
        }
        self.families.insert(ColumnFamilyId(id), family.clone());
        Ok(())
    }

    /// Returns when the trace began, in microseconds since 1970.
    #[must_use]
    pub fn start_us(&self) -> u64 {
        self.reader.start_us()
    }

    /// Goes back to the first call.
    pub fn rewind(&mut self) {
        self.reader.rewind();
    }

    /// Returns the next call of the trace; `None` at its end.
    ///
    /// # Errors
    /// As [`TraceReader::next_record`].
    pub fn next_record(&mut self) -> Result<Option<TraceRecord>> {
        self.reader.next_record()
    }

    /// Makes a call.
    ///
    /// # Errors
    /// That of the call. `NoSuchColumnFamily` if the database has none for an id of the trace.
    pub fn execute(&self, record: &TraceRecord, write: &WriteOptions) -> Result<Replayed> {
        Calls { db: &self.db, families: &self.families, write }.execute(&record.call)
    }

    /// Replays the calls that were not read yet, at their times.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong speed or too many threads. The first error of a call or of the
    /// trace, at which the replay stops. All writes before it were made.
    pub fn replay(&mut self, options: &ReplayOptions) -> Result<ReplaySummary> {
        // Not a number fails, too.
        if !matches!(options.speed.partial_cmp(&0.0), Some(std::cmp::Ordering::Greater)) {
            let text = format!("speed: a replay needs one above 0, not {}", options.speed);
            return Err(Error::InvalidArgument(text));
        }
        if options.threads > THREADS_MAX {
            let text =
                format!("threads: a replay has at most {THREADS_MAX}, not {}", options.threads);
            return Err(Error::InvalidArgument(text));
        }
        let calls = Calls { db: &self.db, families: &self.families, write: &options.write };
        let reads = Reads::default();
        let others = options.threads.saturating_sub(1);
        let (reader, reads) = (&mut self.reader, &reads);
        let work = || reads.work(&calls);
        let replay = |threads: u32| {
            // Also if a write panics, because the threads would wait for ever.
            let _ended = EndOnDrop(reads);
            play(reader, &calls, reads, threads, options.speed)
        };
        let played = runtime::beside("sateen-replay", others, work, replay);
        let mut summary = reads.take_error().map_or(played, Err)?;
        summary.lost = self.reader.lost().unwrap_or(0);
        Ok(summary)
    }
}

/// Makes the calls of a trace, with `threads` that make reads.
fn play(
    reader: &mut TraceReader,
    calls: &Calls<'_>,
    reads: &Reads,
    threads: u32,
    speed: f64,
) -> Result<ReplaySummary> {
    let (begun, start_us) = (clock::now(), reader.start_us());
    let mut summary = ReplaySummary::default();
    while let Some(record) = reader.next_record()? {
        let since = Duration::from_micros(record.at_us.saturating_sub(start_us)).as_secs_f64();
        let due = Duration::try_from_secs_f64(since / speed).unwrap_or(Duration::MAX);
        if !wait_until(begun, due, reads) {
            break;
        }
        summary.late_max = summary.late_max.max(clock::since(begun).saturating_sub(due));
        summary.calls += 1;
        if threads == 0 || matches!(record.call, TraceCall::Write(_)) {
            calls.execute(&record.call)?;
        } else if !reads.add(record.call) {
            break;
        }
    }
    Ok(summary)
}

/// Waits until `due` after `begun`. Returns false if another thread has failed.
fn wait_until(begun: Instant, due: Duration, reads: &Reads) -> bool {
    loop {
        if reads.has_failed() {
            return false;
        }
        let left = due.saturating_sub(clock::since(begun));
        if left.is_zero() {
            return true;
        }
        clock::sleep(left.min(SLEEP_MAX));
    }
}

/// What calls need.
struct Calls<'a> {
    db: &'a Db,
    families: &'a BTreeMap<ColumnFamilyId, ColumnFamily>,
    write: &'a WriteOptions,
}

impl Calls<'_> {
    fn family(&self, id: ColumnFamilyId) -> Result<&ColumnFamily> {
        let missing = || Error::NoSuchColumnFamily(format!("with the id {id} in the trace"));
        self.families.get(&id).ok_or_else(missing)
    }

    fn execute(&self, call: &TraceCall) -> Result<Replayed> {
        match call {
            TraceCall::Write(batch) => {
                let write = |batch| self.db.write(batch, self.write);
                if batch.iter().all(|entry| self.has_id(entry.column_family)) {
                    write(batch)?;
                } else {
                    write(&self.mapped(batch)?)?;
                }
                Ok(Replayed::Written)
            }
            TraceCall::Get { family, key } => {
                Ok(Replayed::Values(vec![self.family(*family)?.get(key)?]))
            }
            TraceCall::MultiGet(keys) => self.multi_get(keys),
            TraceCall::Seek(seek) => self.seek(seek),
        }
    }

    /// Returns true if a column family has the same id here.
    fn has_id(&self, id: ColumnFamilyId) -> bool {
        self.families.get(&id).is_some_and(|family| family.id() == id.0)
    }

    /// Returns `batch` with the ids of the column families here.
    fn mapped(&self, batch: &WriteBatch) -> Result<WriteBatch> {
        // Looked at before, because `moved` takes no errors.
        for entry in batch {
            self.family(entry.column_family)?;
        }
        batch.moved(|entry| {
            let family = self.families.get(&entry.column_family);
            family.map(|family| ColumnFamilyId(family.id())).into_iter().collect()
        })
    }

    /// Reads keys, those of one column family that follow each other at once.
    fn multi_get(&self, keys: &[(ColumnFamilyId, Vec<u8>)]) -> Result<Replayed> {
        let mut values = Vec::with_capacity(keys.len());
        for run in keys.chunk_by(|a, b| a.0 == b.0) {
            let Some((id, _)) = run.first() else { continue };
            let these: Vec<&[u8]> = run.iter().map(|(_, key)| key.as_slice()).collect();
            for value in self.family(*id)?.multi_get(&these) {
                values.push(value?.map(|value| value.to_vec()));
            }
        }
        Ok(Replayed::Values(values))
    }

    fn seek(&self, seek: &TraceSeek) -> Result<Replayed> {
        let options = ReadOptions {
            lower_bound: seek.lower.clone(),
            upper_bound: seek.upper.clone(),
            ..ReadOptions::default()
        };
        let mut cursor = self.family(seek.family)?.cursor(&options)?;
        if seek.backwards {
            cursor.seek_for_prev(&seek.key);
        } else {
            cursor.seek(&seek.key);
        }
        cursor.status()?;
        let entry = || (cursor.key().to_vec(), cursor.value().to_vec());
        Ok(Replayed::Entry(cursor.valid().then(entry)))
    }
}

/// The reads that wait for a thread.
#[derive(Default)]
struct Reads {
    state: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<TraceCall>,
    is_over: bool,
    error: Option<Error>,
}

impl Reads {
    /// Adds a read, once there is room. Returns false if another one has failed.
    fn add(&self, call: TraceCall) -> bool {
        let mut queue = lock(&self.state);
        while queue.calls.len() >= QUEUED_MAX && queue.error.is_none() {
            queue = wait_timeout(&self.changed, &self.state, queue, LOOK);
        }
        queue.calls.push_back(call);
        let goes_on = queue.error.is_none();
        drop(queue);
        self.changed.notify_all();
        goes_on
    }

    /// Makes reads until there are no more.
    fn work(&self, calls: &Calls<'_>) {
        loop {
            let mut queue = lock(&self.state);
            let call = loop {
                if queue.error.is_some() {
                    return;
                }
                match queue.calls.pop_front() {
                    Some(call) => break call,
                    None if queue.is_over => return,
                    None => queue = wait_timeout(&self.changed, &self.state, queue, LOOK),
                }
            };
            drop(queue);
            self.changed.notify_all();
            // Without this thread nobody might take the reads that wait.
            let done = catch_unwind(AssertUnwindSafe(|| calls.execute(&call)));
            if let Err(error) = done.unwrap_or_else(|panic| Err(runtime::panicked(panic.as_ref())))
            {
                lock(&self.state).error.get_or_insert(error);
            }
        }
    }

    fn has_failed(&self) -> bool {
        lock(&self.state).error.is_some()
    }

    fn take_error(&self) -> Option<Error> {
        lock(&self.state).error.take()
    }
}

/// Has the threads end once there are no more reads.
struct EndOnDrop<'a>(&'a Reads);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.changed.notify_all();
    }
}
