//! Runs one phase of load with client threads, and samples the engine once a second.
//!
//! In an open loop an operation is due on schedule, whether or not the last one has ended, and its
//! latency counts from then. In a closed loop the next operation begins when the last one ends.
//! Waiting threads sleep. They spin for the last moments only if there are idle processors.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sateen_workload::{
    ArrivalSpec, Histogram, KeyFormat, Mix, Op, OpKind, OpStream, Process, ReplayEvent, ReplayPart,
    ScanLength, Schedule, Share, Spec, ValueSize, ValueSource, mix64,
};

use crate::recorder::{Recorder, SECOND_NS, Windows};
use crate::result::{KINDS, KindSummary, Measured, Quantiles, kind_index};
use crate::sampler::{Live, Sampler};
use crate::store::{Client, Store};
use crate::{Result, system};

/// The phase to run.
pub(crate) struct Phase<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) threads: usize,
    /// Keys in the database.
    pub(crate) items: u64,
    /// Operations of all threads together; `None` for as many as fit in the time.
    pub(crate) operations: Option<u64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) process: Process,
    pub(crate) seed: u64,
    pub(crate) format: KeyFormat,
    pub(crate) sizes: ValueSize,
    pub(crate) scan: ScanLength,
    pub(crate) values: &'a ValueSource,
    /// Operations a second of an extra writer; `None` for as many as it can do.
    pub(crate) write_rate: Option<f64>,
    /// True if the extra writer overloads the first of several databases. Its operations count for
    /// that database only.
    pub(crate) overload: bool,
    pub(crate) replay: Option<&'a [ReplayEvent]>,
    /// The progress to report.
    pub(crate) live: Live<'a>,
    /// The file for the engine's flight recorder.
    pub(crate) trace: Option<&'a std::path::Path>,
}

impl Phase<'_> {
    /// Returns true if a thread is the extra writer that overloads the first database.
    fn overloads(&self, thread: usize) -> bool {
        self.overload && thread >= self.threads
    }
}

/// The operations of one thread.
struct Work<'a> {
    stream: OpStream,
    schedule: Option<Schedule>,
    left: u64,
    /// The thread's part of a recording.
    replay: Option<Box<dyn Iterator<Item = &'a ReplayEvent> + 'a>>,
    /// The rest of the recorded operation that `next` returned last.
    others: &'a [ReplayPart],
}

impl<'a> Work<'a> {
    fn new(phase: &Phase<'a>, share: Share) -> Work<'a> {
        let spec = phase.spec;
        let Phase { items, seed, format, sizes, scan, .. } = *phase;
        let Share { thread, threads } = share;
        let open = spec.arrivals != ArrivalSpec::Closed;
        let replay = phase.replay.map(|events| {
            // One thread does all operations of a key, so that they keep their order.
            let mine = move |event: &&ReplayEvent| {
                let hash = event.key.iter().fold(0, |hash, byte| mix64(hash ^ u64::from(*byte)));
                hash as usize % threads == thread
            };
            Box::new(events.iter().filter(mine)) as Box<dyn Iterator<Item = &'a ReplayEvent> + 'a>
        });
        Work {
            stream: OpStream::new(spec, share, items, seed, format, sizes, scan),
            schedule: open
                .then(|| Schedule::new(spec.arrivals, phase.process, seed, thread, threads)),
            left: phase.operations.map_or(u64::MAX, |operations| share.of(operations).1),
            replay,
            others: &[],
        }
    }

    /// Returns the work of the thread that writes while the others read.
    fn extra_writer(phase: &Phase<'a>, spec: &Spec) -> Work<'a> {
        let Phase { items, seed, format, sizes, scan, .. } = *phase;
        let share = Share { thread: phase.threads, threads: phase.threads + 1 };
        let schedule = phase
            .write_rate
            .map(|rate| Schedule::new(ArrivalSpec::Steady { rate }, Process::Even, seed, 0, 1));
        let stream = OpStream::new(spec, share, items, seed, format, sizes, scan);
        Work { stream, schedule, left: u64::MAX, replay: None, others: &[] }
    }

    /// Returns the next operation and when it is due. Its key is in `key`.
    #[inline]
    fn next(&mut self, key: &mut Vec<u8>) -> Option<(Op, Option<u64>)> {
        if let Some(replay) = &mut self.replay {
            let event = replay.next()?;
            key.clear();
            key.extend_from_slice(&event.key);
            self.others = &event.others;
            let due_ns = event.due_us.saturating_mul(1_000);
            return Some((Op { kind: event.kind, size: event.size }, Some(due_ns)));
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let due = match &mut self.schedule {
            None => None,
            Some(schedule) => Some(schedule.next_due_ns()).filter(|due| *due < u64::MAX),
        };
        if due.is_none() && self.schedule.is_some() {
            return None;
        }
        Some((self.stream.next(key), due))
    }
}

/// Counts of one thread's operations.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    done: u64,
    unserved: u64,
    not_found: u64,
    scanned: u64,
    user_bytes_written: u64,
}

/// The results of one thread.
struct Part<'a> {
    recorder: Recorder<'a>,
    tally: Tally,
    cpu_ns: u64,
    end_ns: u64,
    counted: bool,
}

/// The state that the threads of a phase share.
struct Shared<'a> {
    start: Instant,
    end_ns: u64,
    /// Threads with counted work that have not finished.
    counted_left: AtomicUsize,
    failed: AtomicBool,
    spin_ns: u64,
    windows: &'a Windows,
    /// The windows of a database in overload, which nobody reads.
    aside: &'a Windows,
}

/// Runs the phase to its end. Figures of later phases (settling, size) stay zero.
pub(crate) fn run(store: &dyn Store, phase: &Phase<'_>) -> Result<Measured> {
    let (windows, aside) = (Windows::default(), Windows::default());
    let extra = phase.spec.extra_writer.then(|| Spec {
        mix: Mix { update: 1, ..Mix::default() },
        missing: false,
        arrivals: ArrivalSpec::Closed,
        ..phase.spec.clone()
    });
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // Before the first operation is due: with many databases it takes a while.
    let mut sampler = Sampler::new(store, phase.live, &windows, phase.trace.is_some());
    let cpu_before = system::process_cpu_ns();
    let shared = Shared {
        start: Instant::now(),
        end_ns: phase.seconds.map_or(u64::MAX, |seconds| (seconds * SECOND_NS as f64) as u64),
        counted_left: AtomicUsize::new(phase.threads),
        failed: AtomicBool::new(false),
        spin_ns: if cpus > phase.threads + 2 { 50_000 } else { 2_000 },
        windows: &windows,
        aside: &aside,
    };
    let (parts, own_cpu_ns) = std::thread::scope(|scope| {
        let (done, all_done) = channel::<()>();
        let mut threads = Vec::new();
        for thread in 0..phase.threads + usize::from(extra.is_some()) {
            let (done, shared, extra) = (done.clone(), &shared, extra.as_ref());
            let overloads = phase.overloads(thread);
            let recorder = Recorder::new(if overloads { shared.aside } else { shared.windows });
            threads.push(scope.spawn(move || {
                let part = client_thread(store, phase, shared, thread, extra, recorder);
                drop(done);
                part
            }));
        }
        drop(done);
        let cpu = system::thread_cpu_ns();
        sample_until_done(&mut sampler, shared.start, &all_done);
        let own_cpu_ns = system::thread_cpu_ns() - cpu;
        let parts: Vec<Result<Part<'_>>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        (parts, own_cpu_ns)
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    if let Some(path) = phase.trace {
        sampler.write_trace(path)?;
    }
    let cpu_ns = (system::process_cpu_ns() - cpu_before).saturating_sub(own_cpu_ns);
    Ok(summarize(phase, &parts, sampler, cpu_ns))
}

fn sample_until_done(
    sampler: &mut Sampler<'_>,
    start: Instant,
    all_done: &std::sync::mpsc::Receiver<()>,
) {
    let mut second = 1;
    loop {
        let wait = (start + Duration::from_secs(second)).saturating_duration_since(Instant::now());
        match all_done.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {
                sampler.sample();
                second += 1;
            }
            _ => break,
        }
    }
    sampler.sample();
}

fn client_thread<'a>(
    store: &dyn Store,
    phase: &Phase<'_>,
    shared: &Shared<'a>,
    thread: usize,
    extra: Option<&Spec>,
    mut recorder: Recorder<'a>,
) -> Result<Part<'a>> {
    // With the default slack the kernel may wake a sleeper 50 us late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let counted = thread < phase.threads;
    let work = match extra.filter(|_| !counted) {
        Some(spec) => Work::extra_writer(phase, spec),
        None => Work::new(phase, Share { thread, threads: phase.threads }),
    };
    let overloads = phase.overloads(thread);
    let mut client = ClientLoop {
        client: if overloads { store.client_of_first() } else { store.client() },
        store,
        overloads,
        values: phase.values.split(thread as u64),
        value: Vec::with_capacity(phase.sizes.max() as usize),
        keys: vec![Vec::new(); phase.spec.reads_together.max(1) as usize - 1],
        tally: Tally::default(),
    };
    if store.databases() > 1 {
        recorder = recorder.by_database(store.databases());
    }
    let cpu = system::thread_cpu_ns();
    let result = client.run(work, shared, &mut recorder, counted);
    recorder.finish();
    if counted {
        shared.counted_left.fetch_sub(1, Ordering::AcqRel);
    }
    if result.is_err() {
        shared.failed.store(true, Ordering::Release);
    }
    result?;
    Ok(Part {
        recorder,
        tally: client.tally,
        cpu_ns: system::thread_cpu_ns() - cpu,
        end_ns: elapsed_ns(shared.start),
        counted,
    })
}

#[inline]
fn elapsed_ns(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

struct ClientLoop<'a> {
    client: Box<dyn Client + 'a>,
    store: &'a dyn Store,
    /// Whether all operations go to the first database.
    overloads: bool,
    values: ValueSource,
    value: Vec<u8>,
    /// The other keys of a read of many.
    keys: Vec<Vec<u8>>,
    tally: Tally,
}

impl ClientLoop<'_> {
    fn run(
        &mut self,
        mut work: Work<'_>,
        shared: &Shared<'_>,
        recorder: &mut Recorder<'_>,
        counted: bool,
    ) -> Result<()> {
        let mut key = Vec::with_capacity(64);
        let mut now = elapsed_ns(shared.start);
        loop {
            let over = now >= shared.end_ns
                || (!counted && shared.counted_left.load(Ordering::Acquire) == 0)
                || shared.failed.load(Ordering::Relaxed);
            if over {
                break;
            }
            let Some((op, due)) = work.next(&mut key) else {
                break;
            };
            let begun = match due {
                None => now,
                Some(due) if due >= shared.end_ns => break,
                Some(due) => {
                    recorder.offer(due);
                    wait_until(shared, due, now, recorder)
                }
            };
            if !work.others.is_empty() {
                self.together(op, &key, work.others)?;
            } else if op.kind == OpKind::Read && !self.keys.is_empty() {
                self.read_many(&key, &mut work)?;
            } else {
                self.execute(op, &key)?;
            }
            now = elapsed_ns(shared.start);
            let kind = kind_index(op.kind);
            let latency_ns = now.saturating_sub(due.unwrap_or(begun));
            recorder.record(kind, now, latency_ns);
            if due.is_some() {
                recorder.service[kind].record(now - begun);
            }
            if !recorder.databases.is_empty() {
                let nth = if self.overloads { 0 } else { self.store.database_of(&key) };
                if let Some(histogram) = recorder.databases.get_mut(nth) {
                    histogram.record(latency_ns);
                }
            }
            self.tally.done += 1;
        }
        self.count_unserved(&mut work, &mut key, shared.end_ns, recorder);
        Ok(())
    }

    /// Counts operations that were due before the time was up and never began.
    fn count_unserved(
        &mut self,
        work: &mut Work<'_>,
        key: &mut Vec<u8>,
        end_ns: u64,
        recorder: &mut Recorder<'_>,
    ) {
        if end_ns == u64::MAX || (work.schedule.is_none() && work.replay.is_none()) {
            return;
        }
        while let Some((_, Some(due))) = work.next(key) {
            if due >= end_ns {
                break;
            }
            recorder.offer(due);
            self.tally.unserved += 1;
        }
    }

    #[inline]
    fn execute(&mut self, op: Op, key: &[u8]) -> Result<()> {
        match op.kind {
            OpKind::Read => self.read(key),
            OpKind::Write => self.write(key, op.size),
            OpKind::Scan => {
                self.tally.scanned += u64::from(self.client.scan(key, op.size)?);
                Ok(())
            }
            OpKind::ReadModifyWrite => {
                self.read(key)?;
                self.write(key, op.size)
            }
            OpKind::Delete => {
                self.tally.user_bytes_written += key.len() as u64;
                self.client.delete(key)
            }
        }
    }

    #[inline]
    fn read(&mut self, key: &[u8]) -> Result<()> {
        if !self.client.get(key, &mut self.value)? {
            self.tally.not_found += 1;
        }
        Ok(())
    }

    /// Reads `first` and the keys of the following operations, which are reads, too.
    fn read_many(&mut self, first: &[u8], work: &mut Work<'_>) -> Result<()> {
        let count = self.keys.iter_mut().map_while(|key| work.next(key)).count();
        let others = self.keys.iter().take(count).map(Vec::as_slice);
        let keys: Vec<&[u8]> = std::iter::once(first).chain(others).collect();
        let found = u64::from(self.client.multi_get(&keys)?);
        self.tally.not_found += keys.len() as u64 - found;
        self.tally.done += count as u64;
        Ok(())
    }

    /// Does a recorded operation on several keys: a read of all, or a batch.
    fn together(&mut self, op: Op, first: &[u8], others: &[ReplayPart]) -> Result<()> {
        if op.kind == OpKind::Read {
            let keys: Vec<&[u8]> =
                std::iter::once(first).chain(others.iter().map(|part| &*part.key)).collect();
            let found = u64::from(self.client.multi_get(&keys)?);
            self.tally.not_found += keys.len() as u64 - found;
            return Ok(());
        }
        let size = (op.kind != OpKind::Delete).then_some(op.size);
        let all = || std::iter::once((first, size)).chain(others.iter().map(|p| (&*p.key, p.size)));
        let mut values = Vec::new();
        for (_, size) in all() {
            let value = size.map(|size| self.values.next(size).to_vec());
            values.push(value);
        }
        let entries: Vec<_> =
            all().zip(&values).map(|((key, _), value)| (key, value.as_deref())).collect();
        let bytes =
            |(key, value): &(&[u8], Option<&[u8]>)| key.len() + value.map_or(0, <[u8]>::len);
        self.tally.user_bytes_written += entries.iter().map(bytes).sum::<usize>() as u64;
        self.client.write_batch(&entries)
    }

    #[inline]
    fn write(&mut self, key: &[u8], bytes: u32) -> Result<()> {
        let value = self.values.next(bytes);
        self.tally.user_bytes_written += (key.len() + value.len()) as u64;
        self.client.put(key, value)
    }
}

/// Waits until `due_ns`. Returns the time at which the thread continues.
#[inline]
fn wait_until(shared: &Shared<'_>, due_ns: u64, now_ns: u64, recorder: &mut Recorder<'_>) -> u64 {
    let mut now = now_ns;
    if now >= due_ns {
        return now;
    }
    if due_ns - now > shared.spin_ns {
        let sleep_ns = due_ns - now - shared.spin_ns.min(due_ns - now);
        std::thread::sleep(Duration::from_nanos(sleep_ns));
        now = elapsed_ns(shared.start);
        recorder.wake_up.record(now.saturating_sub(due_ns));
    }
    while now < due_ns {
        std::hint::spin_loop();
        now = elapsed_ns(shared.start);
    }
    now
}

fn summarize(phase: &Phase<'_>, parts: &[Part<'_>], sampler: Sampler<'_>, cpu_ns: u64) -> Measured {
    let counted = || parts.iter().filter(|part| part.counted);
    let overload = phase.overload;
    let reported = || parts.iter().filter(move |part| part.counted || !overload);
    let recorders = || reported().map(|part| &part.recorder);
    let end_ns = counted().map(|part| part.end_ns).max().unwrap_or(0).max(1);
    let total = |f: fn(&Tally) -> u64| parts.iter().map(|part| f(&part.tally)).sum::<u64>();
    let done = reported().map(|part| part.tally.done).sum::<u64>();
    let counted_done: u64 = counted().map(|part| part.tally.done).sum();
    let merged = |f: for<'r, 'w> fn(&'r Recorder<'w>, usize) -> &'r Histogram, kind: usize| {
        Quantiles::of_all(recorders().map(|recorder| f(recorder, kind)))
    };
    let open_loop = phase.replay.is_some() || phase.spec.arrivals != ArrivalSpec::Closed;
    let kinds = KINDS.iter().enumerate().filter_map(|(kind, name)| {
        let latency = merged(|recorder, kind| &recorder.total[kind], kind)?;
        let service = merged(|recorder, kind| &recorder.service[kind], kind);
        Some(((*name).to_owned(), KindSummary { latency, service }))
    });
    let kinds = kinds.collect();
    let client_ns: u64 = parts.iter().map(|part| part.cpu_ns).sum();
    let unserved = total(|tally| tally.unserved);
    let mut offered = Vec::new();
    for recorder in recorders() {
        let theirs = &recorder.offered;
        offered.resize(offered.len().max(theirs.len()), 0);
        offered.iter_mut().zip(theirs).for_each(|(sum, count)| *sum += count);
    }
    let seconds = end_ns as f64 / SECOND_NS as f64;
    let mut measured = sampler.finish(offered, open_loop);
    measured.seconds = seconds;
    measured.all = Quantiles::of_all(recorders().flat_map(|recorder| &recorder.total));
    let databases = parts.iter().map(|part| part.recorder.databases.len()).max().unwrap_or(0);
    measured.databases = (0..databases)
        .map(|nth| {
            Quantiles::of_all(parts.iter().filter_map(|part| part.recorder.databases.get(nth)))
        })
        .collect();
    measured.open_loop = open_loop;
    measured.offered = done + unserved;
    measured.done = done;
    measured.counted = counted_done;
    measured.unserved = unserved;
    measured.not_found = total(|tally| tally.not_found);
    measured.scanned = total(|tally| tally.scanned);
    measured.user_bytes_written = total(|tally| tally.user_bytes_written);
    measured.ops_per_second = counted_done as f64 / seconds;
    measured.kinds = kinds;
    measured.cpu.client = client_ns;
    measured.cpu.background = cpu_ns.saturating_sub(client_ns);
    measured.wake_up = merged(|recorder, _| &recorder.wake_up, 0);
    measured
}

#[cfg(test)]
mod tests;
