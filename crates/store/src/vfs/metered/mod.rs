//! Counts the calls to another file system: operations, bytes and time by [`IoClass`]. A call that
//! needs a descriptor waits for a while if the process has none left.
//!
//! What must stay true: a data call costs two clock readings and a few uncontended additions,
//! without a lock or allocation, unless it is observed ([`IoObserver`]). A slow call also reads for
//! how long its thread waited for a processor.

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sateen_control::IO_CLASSES;

use super::descriptors::patiently;
use super::io_event::{IoEvent, IoObserver, IoOperation};
use super::posix::processor;
use super::{IoClass, OpenOptions, SharedDescriptor, Vfs, VfsFile, VfsLock};
use crate::base::clock;
use crate::base::histogram::{Histogram, HistogramSnapshot};
use crate::base::observed::Observed;
use crate::base::waited::{IoCall, NOTED_NS, io_done, without_processor};

/// A file system that counts the calls made to another.
#[derive(Clone, Debug)]
pub struct MeteredVfs {
    inner: Arc<dyn Vfs>,
    /// The address of the file system by which databases in it know each other.
    address: usize,
    meter: Arc<Meter>,
}

fn address_of(vfs: &Arc<dyn Vfs>) -> usize {
    Arc::as_ptr(vfs).cast::<()>().addr()
}

impl MeteredVfs {
    /// Counts the calls to `inner` through this value and its clones.
    #[must_use]
    pub fn new(inner: Arc<dyn Vfs>) -> MeteredVfs {
        MeteredVfs { address: address_of(&inner), inner, meter: Arc::default() }
    }

    /// Like [`MeteredVfs::new`], for a layer that one database puts over `beneath`, which other
    /// databases may have, too.
    #[must_use]
    pub fn over(beneath: &Arc<dyn Vfs>, layer: Arc<dyn Vfs>) -> MeteredVfs {
        MeteredVfs { address: address_of(beneath), inner: layer, meter: Arc::default() }
    }

    /// Makes a call that changes the name of a file or opens it.
    fn change<T>(
        &self,
        operation: IoOperation,
        path: &Path,
        call: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.meter.change(IoEvent::new(operation, path), call)
    }

    /// Returns the address of the metered file system, by which databases in it know each other.
    #[must_use]
    pub fn address(&self) -> usize {
        self.address
    }

    /// Returns counters and latency histograms since it was made. It copies about 100 KiB, so call
    /// it about once a second.
    #[must_use]
    pub fn snapshot(&self) -> IoSnapshot {
        IoSnapshot { classes: self.meter.classes.each_ref().map(ClassMeter::snapshot) }
    }

    /// Tells `observer` of all calls from now on, instead of the one before.
    pub fn observe(&self, observer: Option<Arc<dyn IoObserver>>) {
        self.meter.observed.set(observer);
    }

    /// Returns the counters alone, by [`IoClass::index`]. It is cheap enough for every control
    /// tick.
    #[must_use]
    pub fn totals(&self) -> [ClassTotals; IO_CLASSES] {
        self.meter.classes.each_ref().map(ClassMeter::totals)
    }

    /// Returns the sum of [`ClassTotals::calls`]. It costs less than [`MeteredVfs::totals`].
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.meter.classes.iter().map(ClassMeter::calls).sum()
    }
}

/// The counters of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotals {
    /// Bytes read.
    pub read_bytes: u64,
    /// Reads done.
    pub reads: u64,
    /// Time spent in reads, nanoseconds.
    pub read_ns: u64,
    /// Bytes of the reads that took too long for the page cache.
    pub device_read_bytes: u64,
    /// Reads that took too long for the page cache.
    pub device_reads: u64,
    /// Time of the reads in `device_reads`, nanoseconds, without waits for a processor.
    pub device_read_ns: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Writes done, and waits for writeback.
    pub writes: u64,
    /// Time spent in these, nanoseconds.
    pub write_ns: u64,
    /// Part of `write_ns` for which threads waited for a processor.
    pub write_waited_ns: u64,
    /// Syncs done.
    pub syncs: u64,
    /// Time spent in syncs, nanoseconds.
    pub sync_ns: u64,
    /// Part of `sync_ns` for which threads waited for a processor.
    pub sync_waited_ns: u64,
    /// Bytes freed by punching holes.
    pub punch_bytes: u64,
    /// Holes punched.
    pub punches: u64,
    /// Failed calls of any of these kinds.
    pub errors: u64,
}

impl ClassTotals {
    /// Returns the number of calls that any of the counters tells of.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.reads + self.writes + self.syncs + self.punches + self.errors
    }

    /// Returns the difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &ClassTotals) -> ClassTotals {
        ClassTotals {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            reads: self.reads.saturating_sub(earlier.reads),
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            device_read_bytes: self.device_read_bytes.saturating_sub(earlier.device_read_bytes),
            device_reads: self.device_reads.saturating_sub(earlier.device_reads),
            device_read_ns: self.device_read_ns.saturating_sub(earlier.device_read_ns),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            write_ns: self.write_ns.saturating_sub(earlier.write_ns),
            write_waited_ns: self.write_waited_ns.saturating_sub(earlier.write_waited_ns),
            syncs: self.syncs.saturating_sub(earlier.syncs),
            sync_ns: self.sync_ns.saturating_sub(earlier.sync_ns),
            sync_waited_ns: self.sync_waited_ns.saturating_sub(earlier.sync_waited_ns),
            punch_bytes: self.punch_bytes.saturating_sub(earlier.punch_bytes),
            punches: self.punches.saturating_sub(earlier.punches),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }
}

/// One class's counters and latencies, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ClassSnapshot {
    /// The counters.
    pub totals: ClassTotals,
    /// Latencies of reads.
    pub read_ns: HistogramSnapshot,
    /// Latencies of writes.
    pub write_ns: HistogramSnapshot,
    /// Latencies of syncs.
    pub sync_ns: HistogramSnapshot,
}

/// Everything counted up to one moment, or between two.
#[derive(Clone, Debug)]
pub struct IoSnapshot {
    /// By [`IoClass::index`].
    pub classes: [ClassSnapshot; IO_CLASSES],
}

impl IoSnapshot {
    /// Returns the counts of one class.
    #[must_use]
    pub fn class(&self, class: IoClass) -> &ClassSnapshot {
        &self.classes[class.index()]
    }

    /// Returns the difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &IoSnapshot) -> IoSnapshot {
        IoSnapshot {
            classes: std::array::from_fn(|class| {
                let (now, then) = (&self.classes[class], &earlier.classes[class]);
                ClassSnapshot {
                    totals: now.totals.since(&then.totals),
                    read_ns: now.read_ns.since(&then.read_ns),
                    write_ns: now.write_ns.since(&then.write_ns),
                    sync_ns: now.sync_ns.since(&then.sync_ns),
                }
            }),
        }
    }
}

/// The page cache copies at least this number of bytes in a nanosecond.
const CACHED_BYTES_PER_NS: u64 = 4;

/// The counters of all classes.
#[derive(Debug, Default)]
struct Meter {
    classes: [ClassMeter; IO_CLASSES],
    observed: Observed<dyn IoObserver>,
}

impl Meter {
    /// Tells the observer of a call that began at `started`.
    #[cold]
    fn tell<T>(&self, event: IoEvent<'_>, started: Instant, result: &io::Result<T>) {
        let ns = u64::try_from(clock::since(started).as_nanos()).unwrap_or(u64::MAX);
        let error = result.as_ref().err();
        self.observed.tell(|observer| observer.done(&IoEvent { ns, error, ..event }));
    }

    /// Makes a call that changes names or sizes. It is in no counter, but in the time that the
    /// background step of this thread spent in the device: behind a busy device such calls take as
    /// long as others.
    fn change<T>(&self, event: IoEvent<'_>, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let started = clock::now();
        let done = call();
        let ns = u64::try_from(clock::since(started).as_nanos()).unwrap_or(u64::MAX);
        io_done(IoClass::Manifest, IoCall::Write, started, ns, 0);
        without_processor(IoCall::Write, processor::waited_ns(started, ns));
        if self.observed.is_on() {
            self.tell(event, started, &done);
        }
        done
    }
}

/// Aligned so that two classes never share a cache line, or the pair of lines that is prefetched.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ClassMeter {
    read: OpMeter,
    /// Reads that took too long for the page cache.
    device_read: SlowMeter,
    write: OpMeter,
    sync: OpMeter,
    punch_bytes: AtomicU64,
    punches: AtomicU64,
    errors: AtomicU64,
}

/// The counters of one kind of operation.
#[derive(Debug, Default)]
struct OpMeter {
    operations: AtomicU64,
    bytes: AtomicU64,
    latency_ns: Histogram,
    /// Part of the latencies for which threads waited for a processor.
    waited_ns: AtomicU64,
}

impl OpMeter {
    /// Counts an operation. Returns the nanoseconds since `started`.
    #[inline]
    fn record(&self, bytes: u64, started: Instant) -> u64 {
        let ns = u64::try_from(clock::since(started).as_nanos()).unwrap_or(u64::MAX);
        self.record_ns(bytes, ns);
        ns
    }

    /// Counts an operation that took `ns` nanoseconds.
    #[inline]
    fn record_ns(&self, bytes: u64, ns: u64) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.latency_ns.record(ns);
    }

    /// Like [`OpMeter::record`], for operations that always go to the device. Also counts the
    /// operation for the thread that made it.
    fn record_device(&self, class: IoClass, call: IoCall, bytes: u64, started: Instant) {
        let ns = self.record(bytes, started);
        let waited_ns = processor::waited_ns(started, ns);
        if waited_ns > 0 {
            self.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
        }
        io_done(class, call, started, ns, bytes);
        without_processor(call, waited_ns);
    }

    fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Number, bytes and time of slow operations.
#[derive(Debug, Default)]
struct SlowMeter {
    operations: AtomicU64,
    bytes: AtomicU64,
    ns: AtomicU64,
}

impl SlowMeter {
    /// Counts an operation.
    fn record(&self, bytes: u64, ns: u64) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl ClassMeter {
    /// Returns [`ClassTotals::calls`] without a look at the rest.
    fn calls(&self) -> u64 {
        let own = self.punches.load(Ordering::Relaxed) + self.errors.load(Ordering::Relaxed);
        self.read.operations() + self.write.operations() + self.sync.operations() + own
    }

    fn totals(&self) -> ClassTotals {
        ClassTotals {
            read_bytes: self.read.bytes(),
            reads: self.read.operations(),
            read_ns: self.read.latency_ns.sum(),
            device_read_bytes: self.device_read.bytes.load(Ordering::Relaxed),
            device_reads: self.device_read.operations.load(Ordering::Relaxed),
            device_read_ns: self.device_read.ns.load(Ordering::Relaxed),
            write_bytes: self.write.bytes(),
            writes: self.write.operations(),
            write_ns: self.write.latency_ns.sum(),
            write_waited_ns: self.write.waited_ns.load(Ordering::Relaxed),
            syncs: self.sync.operations(),
            sync_ns: self.sync.latency_ns.sum(),
            sync_waited_ns: self.sync.waited_ns.load(Ordering::Relaxed),
            punch_bytes: self.punch_bytes.load(Ordering::Relaxed),
            punches: self.punches.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }

    fn snapshot(&self) -> ClassSnapshot {
        ClassSnapshot {
            totals: self.totals(),
            read_ns: self.read.latency_ns.snapshot(),
            write_ns: self.write.latency_ns.snapshot(),
            sync_ns: self.sync.latency_ns.snapshot(),
        }
    }

    /// Counts a read that took too long for the page cache. Returns the part of its time in which
    /// its thread waited for a processor, as far as that is known.
    #[inline]
    fn note_device_read(&self, bytes: u64, started: Instant, ns: u64) -> u64 {
        let cached_ns = NOTED_NS + bytes / CACHED_BYTES_PER_NS;
        if ns < cached_ns {
            return 0;
        }
        let waited_ns = processor::waited_ns(started, ns);
        if ns - waited_ns >= cached_ns {
            self.device_read.record(bytes, ns - waited_ns);
        }
        waited_ns
    }

    /// Counts `result` if it is an error. Failed calls appear in no other counter.
    #[inline]
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

/// A file whose calls are counted.
#[derive(Debug)]
struct MeteredFile {
    inner: Arc<dyn VfsFile>,
    path: Arc<Path>,
    meter: Arc<Meter>,
}

impl MeteredFile {
    #[inline]
    fn class(&self, class: IoClass) -> &ClassMeter {
        &self.meter.classes[class.index()]
    }

    /// Counts the error of a data call, and tells the observer of the call, if there is one.
    #[inline]
    fn done<T>(
        &self,
        operation: IoOperation,
        class: IoClass,
        place: Option<(u64, u64)>,
        started: Instant,
        result: io::Result<T>,
    ) -> io::Result<T> {
        if self.meter.observed.is_on() {
            let event = IoEvent { class: Some(class), place, ..self.event(operation) };
            self.meter.tell(event, started, &result);
        }
        self.class(class).note(result)
    }

    fn event(&self, operation: IoOperation) -> IoEvent<'_> {
        IoEvent::new(operation, &self.path)
    }
}

impl VfsFile for MeteredFile {
    #[inline]
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let meter = self.class(class);
        let started = clock::now();
        let read = self.inner.read_at(buffer, offset, class);
        if let Ok(read) = &read {
            let read = *read as u64;
            let ns = meter.read.record(read, started);
            let waited_ns = meter.note_device_read(read, started, ns);
            io_done(class, IoCall::Read, started, ns, read);
            without_processor(IoCall::Read, waited_ns);
        }
        let place = Some((offset, buffer.len() as u64));
        self.done(IoOperation::Read, class, place, started, read)
    }

    fn descriptor(&self) -> Option<SharedDescriptor> {
        self.inner.descriptor()
    }

    fn was_read(&self, place: (u64, usize), started: Instant, ns: u64, class: IoClass) {
        let (meter, bytes) = (self.class(class), place.1 as u64);
        meter.read.record_ns(bytes, ns);
        let _waited = meter.note_device_read(bytes, started, ns);
        if self.meter.observed.is_on() {
            let place = Some((place.0, bytes));
            let event = self.event(IoOperation::ReadWithOthers);
            let event = IoEvent { class: Some(class), place, ns, ..event };
            self.meter.observed.tell(|observer| observer.done(&event));
        }
        self.inner.was_read(place, started, ns, class);
    }

    #[inline]
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        let meter = self.class(class);
        let started = clock::now();
        let (written, length) = (self.inner.write_at(bytes, offset, class), bytes.len() as u64);
        if written.is_ok() {
            meter.write.record_device(class, IoCall::Write, length, started);
        }
        self.done(IoOperation::Write, class, Some((offset, length)), started, written)
    }

    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        let meter = self.class(class);
        let started = clock::now();
        let synced = self.inner.sync_data(class);
        if synced.is_ok() {
            meter.sync.record_device(class, IoCall::Sync, 0, started);
        }
        self.done(IoOperation::Sync, class, None, started, synced)
    }

    /// The wait is for the device, like a direct write, so that its time counts with the writes'.
    fn finish_writeback(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        let meter = self.class(class);
        let started = clock::now();
        let written = self.inner.finish_writeback(offset, length, class);
        if written.is_ok() {
            meter.write.record_device(class, IoCall::Write, 0, started);
        }
        let place = Some((offset, length));
        self.done(IoOperation::FinishWriteback, class, place, started, written)
    }

    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        let meter = self.class(class);
        let event = self.event(IoOperation::PunchHole);
        let event = IoEvent { class: Some(class), place: Some((offset, length)), ..event };
        meter.note(self.meter.change(event, || self.inner.punch_hole(offset, length, class)))?;
        meter.punch_bytes.fetch_add(length, Ordering::Relaxed);
        meter.punches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let place = Some((offset, length));
        let event = IoEvent { place, ..self.event(IoOperation::Preallocate) };
        self.meter.change(event, || self.inner.preallocate(offset, length))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let event = IoEvent { size: Some(length), ..self.event(IoOperation::Truncate) };
        self.meter.change(event, || self.inner.truncate(length))
    }

    crate::pass_on! {
        inner: start_writeback len allocated links modified alignment poison
    }
}

impl Vfs for MeteredVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let operation = if options.create_new { IoOperation::Create } else { IoOperation::Open };
        let open = || patiently(|| self.inner.open(path, options));
        let inner = self.change(operation, path, open)?;
        Ok(Arc::new(MeteredFile { inner, path: path.into(), meter: self.meter.clone() }))
    }

    /// A directory sync is a barrier for the manifest, and counts with the manifest's syncs.
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let meter = &self.meter.classes[IoClass::Manifest.index()];
        let started = clock::now();
        let synced = patiently(|| self.inner.sync_dir(directory));
        if synced.is_ok() {
            meter.sync.record_device(IoClass::Manifest, IoCall::Sync, 0, started);
        }
        if self.meter.observed.is_on() {
            let event = IoEvent::new(IoOperation::SyncDir, directory);
            self.meter.tell(event, started, &synced);
        }
        meter.note(synced)
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(IoOperation::Clone, from, || patiently(|| self.inner.clone_file(from, to)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(IoOperation::Rename, from, || self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(IoOperation::Remove, path, || self.inner.remove(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(IoOperation::Link, from, || self.inner.hard_link(from, to))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let started = clock::now();
        let listed = patiently(|| self.inner.list(directory));
        if self.meter.observed.is_on() {
            self.meter.tell(IoEvent::new(IoOperation::List, directory), started, &listed);
        }
        listed
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        patiently(|| self.inner.lock(path))
    }

    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        patiently(|| self.inner.mark(path, at))
    }

    crate::pass_on! {
        inner: create_dir_all remove_dir exists lock_holder free_space total_space disk place_of
            open_files_limit
    }
}
