//! The recorder of a trace: a bounded buffer between the calls and the file.
//!
//! 1. [`Tracing::begin`] installs a [`Recorder`] and sets the flag that every call looks at.
//! 2. [`Recorder::offer`] frames a record in the buffer, or counts it as lost.
//! 3. [`Recorder::run`] writes the buffer, on a thread of its own. Without that thread `offer` does
//!    it (`write_some`): in virtual time, which has no other threads.
//! 4. [`Tracing::end`] adds the last record, waits for the thread, and returns its error.
//!
//! What must stay true: positions and times in the file ascend, because both are taken under the
//! buffer's lock. No lock is held over a write. After a failed write nothing is recorded any more.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use sateen_control::{ColumnFamilyId, IoClass};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock, thread, wait_timeout};
use sateen_store::vfs::{OpenOptions, Vfs, VfsFile};

use super::{TraceKinds, TraceOptions, TraceSummary, TraceWriter, format};

/// Bytes that wait for the file at most, unless one record is longer.
const BUFFER_BYTES_MAX: usize = 8 << 20;
/// Bytes for which the thread is woken.
const WRITE_BYTES: usize = 64 << 10;
/// How long the thread sleeps if fewer bytes come.
const WRITE_PERIOD: Duration = Duration::from_millis(100);

/// What a trace is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceOf {
    Calls,
    /// Data blocks that readers need.
    Blocks,
    /// Calls on files.
    Io,
}

impl TraceOf {
    /// Returns the name of such a trace, for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TraceOf::Calls => "trace",
            TraceOf::Blocks => "trace of block reads",
            TraceOf::Io => "trace of I/O",
        }
    }
}

/// How a trace is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) of: TraceOf,
    pub(crate) max_file_bytes: u64,
    pub(crate) sampling_frequency: u64,
    /// Of a trace of calls.
    pub(crate) kinds: TraceKinds,
}

impl From<&TraceOptions> for Plan {
    fn from(options: &TraceOptions) -> Plan {
        Plan {
            of: TraceOf::Calls,
            max_file_bytes: options.max_file_bytes,
            sampling_frequency: options.sampling_frequency,
            kinds: options.kinds,
        }
    }
}

/// The trace of a database, if one is recorded. A database has one of calls, one of blocks and one
/// of I/O.
#[derive(Default)]
pub(crate) struct Tracing {
    /// True while something is recorded.
    on: Arc<AtomicBool>,
    recorder: ArcSwapOption<Recorder>,
    /// True from the begin of a trace to its end: there is one at a time.
    taken: AtomicBool,
    /// Number of calls that read keys while blocks were traced.
    pub(super) point_calls: AtomicU64,
    /// The recorder and its thread.
    current: Mutex<Option<Current>>,
}

struct Current {
    recorder: Arc<Recorder>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Tracing {
    /// Returns true while a trace is recorded. This is all that a call costs otherwise.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Begins a trace. `start` starts the thread that calls [`Recorder::run`], if there is to be
    /// one. `observe` is called once the trace has begun, before another call can end it. Fails if
    /// a trace is recorded already.
    pub(crate) fn begin(
        &self,
        plan: Plan,
        start_us: u64,
        writer: impl FnOnce() -> Result<Box<dyn TraceWriter>>,
        start: impl FnOnce(Arc<Recorder>) -> Result<Option<thread::JoinHandle<()>>>,
        observe: impl FnOnce(),
    ) -> Result<()> {
        if self.taken.swap(true, Ordering::AcqRel) {
            let text = format!("a {} is recorded already: end it first", plan.of.name());
            return Err(Error::InvalidArgument(text));
        }
        let begun = writer().and_then(|writer| {
            let recorder = Arc::new(Recorder::new(plan, start_us, self.on.clone(), writer));
            let thread = start(recorder.clone())?;
            Ok(Current { recorder, thread })
        });
        match begun {
            Ok(current) => {
                self.recorder.store(Some(current.recorder.clone()));
                let mut place = lock(&self.current);
                observe();
                *place = Some(current);
                Ok(())
            }
            Err(error) => {
                self.on.store(false, Ordering::Release);
                self.taken.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Ends the trace, and returns when its file is written. `None` if there is none.
    pub(crate) fn end(&self) -> Option<Result<TraceSummary>> {
        self.end_after(|| {})
    }

    /// Ends the trace after `unobserve`, before another one can begin.
    pub(crate) fn end_after(&self, unobserve: impl FnOnce()) -> Option<Result<TraceSummary>> {
        let current = lock(&self.current).take()?;
        unobserve();
        self.on.store(false, Ordering::Release);
        self.recorder.store(None);
        current.recorder.finish();
        let joined = match current.thread {
            Some(thread) => thread.join(),
            None => {
                while current.recorder.write_some() {}
                Ok(())
            }
        };
        let panicked = |_| Error::Panicked { thread: "of a trace".into(), message: String::new() };
        self.taken.store(false, Ordering::Release);
        Some(joined.map_err(panicked).and_then(|()| current.recorder.summary()))
    }

    /// Returns the recorder, while something is recorded.
    pub(super) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.recorder.load_full()
    }

    /// Records a read of one key.
    #[cold]
    pub(crate) fn get(&self, family: ColumnFamilyId, key: &[u8]) {
        self.record(format::GET, || format::get_payload(family, key));
    }

    /// Records a read of many keys.
    #[cold]
    pub(crate) fn multi_get<K: AsRef<[u8]>>(&self, family: ColumnFamilyId, keys: &[K]) {
        if !keys.is_empty() {
            self.record(format::MULTI_GET, || format::multi_get_payload(family, keys));
        }
    }

    /// Records a seek to `key` within bounds.
    #[cold]
    pub(crate) fn seek(
        &self,
        family: ColumnFamilyId,
        key: &[u8],
        (lower, upper): (Option<&[u8]>, Option<&[u8]>),
        backwards: bool,
    ) {
        let kind = if backwards { format::SEEK_FOR_PREV } else { format::SEEK };
        self.record(kind, || format::seek_payload(family, key, lower, upper));
    }

    /// Records a write. `batch` returns it as RocksDB encodes it; `None` if it has nothing that
    /// clients see.
    #[cold]
    pub(crate) fn write(&self, batch: impl FnOnce() -> Option<Vec<u8>>) {
        let Some(recorder) = self.recorder() else { return };
        if recorder.wants(format::WRITE)
            && let Some(batch) = batch()
        {
            recorder.offer(format::WRITE, &format::write_payload(&batch));
        }
    }

    fn record(&self, kind: u8, payload: impl FnOnce() -> Vec<u8>) {
        let Some(recorder) = self.recorder() else { return };
        if recorder.wants(kind) {
            recorder.offer(kind, &payload());
        }
    }
}

/// Records one trace.
pub(crate) struct Recorder {
    plan: Plan,
    /// Added to the position of a record, for the seed of its checksum.
    seed: u64,
    /// When the trace began, in microseconds since 1970 and on the monotonic clock.
    start_us: u64,
    begun: Instant,
    /// Records that sampling was asked about so far.
    seen: AtomicU64,
    /// The flag of [`Tracing`], which the recorder clears when it records no more.
    on: Arc<AtomicBool>,
    /// True if a thread writes the buffer.
    has_thread: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
    /// `None` while a thread writes with it.
    writer: Mutex<Option<Box<dyn TraceWriter>>>,
}

#[derive(Default)]
struct State {
    /// Records that are not written yet.
    buffer: Vec<u8>,
    summary: TraceSummary,
    /// True once the last record is in the buffer.
    is_over: bool,
    error: Option<Error>,
}

impl Recorder {
    fn new(
        plan: Plan,
        start_us: u64,
        on: Arc<AtomicBool>,
        writer: Box<dyn TraceWriter>,
    ) -> Recorder {
        on.store(true, Ordering::Release);
        let mut state = State::default();
        let mut seed = 0;
        if plan.of == TraceOf::Calls {
            let payload = format::header_payload();
            format::frame(&mut state.buffer, start_us, format::BEGIN, &payload, 0);
        } else {
            state.buffer = format::plain_header(start_us);
            seed = format::plain_seed(&state.buffer);
        }
        state.summary.bytes = state.buffer.len() as u64;
        Recorder {
            plan,
            seed,
            start_us,
            begun: clock::now(),
            seen: AtomicU64::new(0),
            on,
            has_thread: AtomicBool::new(false),
            state: Mutex::new(state),
            wake: Condvar::new(),
            writer: Mutex::new(Some(writer)),
        }
    }

    /// Returns true if the next call of this kind is to be recorded, and counts it.
    fn wants(&self, kind: u8) -> bool {
        self.plan.kinds.has(kind) && self.is_sample()
    }

    /// Returns one of how many records is to be kept.
    pub(super) fn sampling_frequency(&self) -> u64 {
        self.plan.sampling_frequency
    }

    /// Returns true if the next record is to be kept, and counts it.
    pub(super) fn is_sample(&self) -> bool {
        let every = self.plan.sampling_frequency;
        every <= 1 || (self.seen.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }

    /// Returns the time in the unit of records: nanoseconds for I/O, otherwise microseconds, since
    /// 1970.
    fn now(&self) -> u64 {
        let since = clock::since(self.begun);
        let (start, since) = match self.plan.of {
            TraceOf::Io => (self.start_us.saturating_mul(1000), since.as_nanos()),
            TraceOf::Calls | TraceOf::Blocks => (self.start_us, since.as_micros()),
        };
        start.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Puts a record into the buffer, if the trace is not over and there is room.
    pub(super) fn offer(&self, kind: u8, payload: &[u8]) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if state.is_over || state.summary.is_full || state.error.is_some() {
            return;
        }
        let bytes = format::frame_bytes(payload);
        let after = state.summary.bytes + bytes as u64 + format::END_BYTES;
        if after > self.plan.max_file_bytes {
            state.summary.is_full = true;
            self.on.store(false, Ordering::Relaxed);
            return;
        }
        let fits = state.buffer.is_empty() || state.buffer.len() + bytes <= BUFFER_BYTES_MAX;
        let (at, seed) = (self.now(), self.seed.wrapping_add(state.summary.bytes));
        if !fits || !format::frame(&mut state.buffer, at, kind, payload, seed) {
            state.summary.lost += 1;
            return;
        }
        state.summary.bytes += bytes as u64;
        state.summary.records += 1;
        let is_due = state.buffer.len() >= WRITE_BYTES;
        drop(guard);
        if is_due && self.has_thread.load(Ordering::Relaxed) {
            self.wake.notify_one();
        } else if is_due {
            self.write_some();
        }
    }

    /// Puts the last record into the buffer.
    fn finish(&self) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let (at, seed) = (self.now(), self.seed.wrapping_add(state.summary.bytes));
        let payload = format::end_payload(state.summary.lost);
        format::frame(&mut state.buffer, at, format::END, &payload, seed);
        state.summary.bytes += format::END_BYTES;
        state.is_over = true;
        drop(guard);
        self.wake.notify_one();
    }

    /// Notes that a thread will call [`Recorder::run`].
    pub(crate) fn gets_thread(&self) {
        self.has_thread.store(true, Ordering::Relaxed);
    }

    /// Writes the buffer until the trace is over, or cannot be written.
    pub(crate) fn run(&self) {
        loop {
            let mut state = lock(&self.state);
            if state.buffer.len() < WRITE_BYTES && !state.is_over {
                state = wait_timeout(&self.wake, &self.state, state, WRITE_PERIOD);
            }
            let (is_over, has_failed) = (state.is_over, state.error.is_some());
            drop(state);
            if has_failed || (!self.write_some() && is_over) {
                return;
            }
        }
    }

    /// Writes what is in the buffer. Returns false if nothing is, if it cannot be written, or if
    /// another thread is writing.
    fn write_some(&self) -> bool {
        let Some(mut writer) = lock(&self.writer).take() else { return false };
        let buffer = std::mem::take(&mut lock(&self.state).buffer);
        let written = if buffer.is_empty() { Ok(()) } else { writer.write(&buffer) };
        match written {
            Ok(()) => {
                *lock(&self.writer) = Some(writer);
                !buffer.is_empty()
            }
            Err(error) => {
                // The writer is not used again: nobody knows what it has written.
                self.on.store(false, Ordering::Relaxed);
                let mut state = lock(&self.state);
                state.error = Some(error);
                state.buffer = Vec::new();
                false
            }
        }
    }

    fn summary(&self) -> Result<TraceSummary> {
        let state = lock(&self.state);
        state.error.clone().map_or(Ok(state.summary), Err)
    }
}

/// Writes a trace to a file.
pub(crate) struct FileWriter {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    length: u64,
}

impl FileWriter {
    /// Creates the file. One that is there is replaced, if `replace` says so.
    pub(crate) fn create(vfs: &dyn Vfs, path: &Path, replace: bool) -> Result<FileWriter> {
        let create = || vfs.open(path, OpenOptions::CREATE);
        let created = match create() {
            Err(error) if replace && error.kind() == std::io::ErrorKind::AlreadyExists => {
                vfs.remove(path).and_then(|()| create())
            }
            created => created,
        };
        let file = created.map_err(|error| Error::io("create", path, error))?;
        Ok(FileWriter { file, path: path.to_owned(), length: 0 })
    }
}

impl TraceWriter for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        // There is no class of traces: they count with the other small files, as the log does.
        let written = self.file.write_at(bytes, self.length, IoClass::Manifest);
        written.map_err(|error| Error::io("write", &self.path, error))?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A file that is written when a test says so.
    struct Slow(Receiver<()>, Sender<usize>);

    impl TraceWriter for Slow {
        fn write(&mut self, bytes: &[u8]) -> Result<()> {
            self.0.recv().map_err(|_| Error::Closed)?;
            self.1.send(bytes.len()).map_err(|_| Error::Closed)
        }
    }

    fn begin(tracing: &Tracing, options: &TraceOptions, writer: Box<dyn TraceWriter>) {
        let start = |recorder: Arc<Recorder>| {
            recorder.gets_thread();
            Ok(Some(thread::spawn(move || recorder.run())))
        };
        tracing.begin(options.into(), 5, || Ok(writer), start, || {}).unwrap();
    }

    #[test]
    fn a_slow_file_loses_records_and_holds_nobody_up() {
        let (go, slow) = channel();
        let (written, sizes) = channel();
        let tracing = Tracing::default();
        begin(&tracing, &TraceOptions::default(), Box::new(Slow(slow, written)));
        let key = vec![7; 60_000];
        let calls = 1000;
        for _ in 0..calls {
            tracing.get(ColumnFamilyId(0), &key);
        }
        for _ in 0..calls {
            go.send(()).unwrap();
        }
        let summary = tracing.end().unwrap().unwrap();
        assert_eq!(summary.records + summary.lost, calls);
        assert!(summary.lost > 0 && summary.records > 100, "{summary:?}");
        assert_eq!(sizes.try_iter().sum::<usize>() as u64, summary.bytes);
        assert!(tracing.end().is_none());
    }

    #[test]
    fn a_write_that_fails_ends_the_trace_and_no_call() {
        let (go, slow) = channel();
        let (written, _sizes) = channel();
        let tracing = Tracing::default();
        begin(&tracing, &TraceOptions::default(), Box::new(Slow(slow, written)));
        drop(go);
        while tracing.is_on() {
            tracing.get(ColumnFamilyId(0), b"key");
            thread::yield_now();
        }
        tracing.get(ColumnFamilyId(0), b"key");
        assert!(matches!(tracing.end(), Some(Err(Error::Closed))));
    }
}
