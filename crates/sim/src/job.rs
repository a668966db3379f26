//! A flush or a compaction, in steps. A step reads its part of the inputs, computes, and writes its
//! part of the outputs, one request after the other. The last step ends with the barriers of the
//! file and of the manifest.

use std::sync::Arc;

use sateen_control::{CompactionPlan, IoClass};

use crate::data_plane::{DataPlane, Io, Memtable, Request};
use crate::merge::{Output, key, number};

/// Bytes of a manifest record.
const MANIFEST_BYTES: u64 = 4096;

/// The work of a job.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A flush of the oldest memtables of a region.
    Flush(usize, Vec<Memtable>),
    /// A compaction by this plan.
    Compaction(Arc<CompactionPlan>),
}

/// The phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for a grant or a thread.
    Waiting,
    Read {
        left: u64,
    },
    Write {
        left: u64,
    },
    /// It waits for the barriers of its files.
    Sync {
        left: usize,
    },
    /// It waits for the manifest's record and its barrier.
    Manifest,
    ManifestSync,
    Over,
}

/// Bytes that a step moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// A step of the engine reads at most this part of its grant at once, but `CHUNK_BYTES_MIN`.
const CHUNKS_OF_STEP: u64 = 2;
const CHUNK_BYTES_MIN: u64 = 64 << 10;

/// The largest requests, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) read: u64,
    pub(crate) write: u64,
}

/// The next step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It continues at this moment.
    At(u64),
    /// It has used its grant.
    Stepped(Moved),
    /// It is complete, and its result can be installed.
    Done(Moved),
}

/// A running flush or compaction.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    /// The moment at which it was made.
    pub(crate) began: u64,
    /// True if the control plane has discarded it.
    pub(crate) discarded: bool,
    /// The first key that it does not process, if it ends early.
    pub(crate) ends_before: Option<u64>,
    /// Its output tables, in the order of keys.
    pub(crate) outputs: Vec<Output>,
    class: IoClass,
    input: u64,
    /// Bytes of the input that are in memory. They are spread over it evenly.
    in_memory: u64,
    output: u64,
    moved: Moved,
    step: Moved,
    /// The largest read of the step, in bytes.
    chunk: u64,
    phase: Phase,
    request: Option<Request>,
}

impl Job {
    /// A job that begins at `began`, processes `input` bytes, of which `in_memory` are in memory,
    /// and writes `outputs` of `output` bytes in all.
    pub(crate) fn new(
        work: Work,
        began: u64,
        input: u64,
        in_memory: u64,
        outputs: Vec<Output>,
        output: u64,
    ) -> Job {
        let class = match &work {
            Work::Flush(..) => IoClass::Flush,
            Work::Compaction(plan) => plan.class,
        };
        Job {
            work,
            began,
            discarded: false,
            ends_before: None,
            outputs,
            class,
            input,
            in_memory: in_memory.min(input),
            output,
            moved: Moved::default(),
            step: Moved::default(),
            chunk: 0,
            phase: Phase::Waiting,
            request: None,
        }
    }

    /// True while a thread runs a step of it, which includes its last barrier.
    pub(crate) fn is_stepping(&self) -> bool {
        !matches!(self.phase, Phase::Waiting)
    }

    /// Ends the job early: at the first key after its current outputs where it may end.
    pub(crate) fn finish_early(&mut self, entry_bytes: u64) {
        let Work::Compaction(plan) = &self.work else { return };
        let Some(mut end) = plan.early_end().filter(|_| self.ends_before.is_none()) else { return };
        let done = match self.phase {
            Phase::Waiting => self.moved,
            _ => Moved {
                read: self.moved.read + self.step.read,
                written: self.moved.written + self.step.written,
            },
        };
        let Some(reached) = reached(&self.outputs, done.written / entry_bytes) else { return };
        let inputs = plan.rewrite.iter().flat_map(|input| &input.tables);
        let mut behind: Vec<_> = inputs.map(|table| number(table.largest.bytes()) + 1).collect();
        behind.sort_unstable();
        let mut ends =
            std::iter::once(reached).chain(behind.into_iter().filter(|end| *end > reached));
        let Some(next) = ends.find(|next| end.may_end_before(key(*next).bytes())) else {
            return;
        };
        let kept = before(&self.outputs, next);
        let output = kept.iter().map(|output| output.entries * entry_bytes).sum::<u64>();
        if kept.is_empty() || output >= self.output {
            return;
        }
        self.ends_before = Some(next);
        let input = u128::from(self.input) * u128::from(output) / u128::from(self.output);
        let input = (input as u64).max(done.read);
        self.in_memory -= self.part_in_memory(self.input - input);
        self.input = input;
        self.output = output.max(done.written);
        self.outputs = kept;
    }

    /// Begins a step of about `bytes` bytes.
    pub(crate) fn begin(&mut self, bytes: u64) {
        let read = bytes.min(self.input - self.moved.read);
        let upto = match self.input {
            0 => self.moved.written + bytes,
            input => {
                let part = u128::from(self.output) * u128::from(self.moved.read + read);
                (part / u128::from(input)) as u64
            }
        };
        let written = upto.min(self.output) - self.moved.written;
        self.step = Moved { read, written };
        self.chunk = (bytes / CHUNKS_OF_STEP).max(CHUNK_BYTES_MIN);
        self.phase = Phase::Read { left: read - self.part_in_memory(read) };
    }

    /// Returns how many of the next `bytes` bytes of the input are in memory.
    fn part_in_memory(&self, bytes: u64) -> u64 {
        let part = u128::from(self.in_memory) * u128::from(bytes);
        (part / u128::from(self.input.max(1))) as u64
    }

    /// Returns the bytes that the job has read and written.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved.read + self.moved.written
    }

    /// Returns the bytes that the step moved on the device.
    fn on_device(&self) -> Moved {
        Moved { read: self.step.read - self.part_in_memory(self.step.read), ..self.step }
    }

    /// Continues at `now`, when the last request is complete.
    pub(crate) fn advance(&mut self, now: u64, most: Most, data: &mut DataPlane) -> Next {
        if let Some(request) = self.request.take() {
            data.report(now, &request);
        }
        loop {
            match self.phase {
                Phase::Read { left: 0 } => {
                    let costs = data.costs;
                    let (bytes, kib_ns) = match self.work {
                        Work::Flush(..) => (self.step.written, costs.flush_kib_ns),
                        Work::Compaction(_) => (self.step.read, costs.compaction_kib_ns),
                    };
                    self.phase = Phase::Write { left: self.step.written };
                    let cpu_ns = bytes * kib_ns / 1024;
                    data.background_cpu_ns += cpu_ns;
                    return Next::At(now + cpu_ns);
                }
                Phase::Read { left } => {
                    let bytes = left.min(most.read).min(self.chunk);
                    self.phase = Phase::Read { left: left - bytes };
                    return self.submit(now, self.class, Io::Read(bytes), data);
                }
                Phase::Write { left: 0 } => {
                    self.moved.read += self.step.read;
                    self.moved.written += self.step.written;
                    if self.moved.read < self.input || self.moved.written < self.output {
                        self.phase = Phase::Waiting;
                        return Next::Stepped(self.on_device());
                    }
                    let files = match (self.output, data.compaction_files) {
                        // A trivial move writes no file.
                        (0, _) => 0,
                        (_, true) => 1,
                        (_, false) => self.outputs.len(),
                    };
                    self.phase = Phase::Sync { left: files };
                }
                Phase::Write { left } => {
                    let bytes = left.min(most.write);
                    self.phase = Phase::Write { left: left - bytes };
                    return self.submit(now, self.class, Io::Write(bytes), data);
                }
                Phase::Sync { left: 0 } => self.phase = Phase::Manifest,
                Phase::Sync { left } => {
                    self.phase = Phase::Sync { left: left - 1 };
                    return self.submit(now, self.class, Io::Barrier, data);
                }
                Phase::Manifest => {
                    self.phase = Phase::ManifestSync;
                    let write = Io::Write(MANIFEST_BYTES);
                    return self.submit(now, IoClass::Manifest, write, data);
                }
                Phase::ManifestSync => {
                    self.phase = Phase::Over;
                    return self.submit(now, IoClass::Manifest, Io::Barrier, data);
                }
                Phase::Waiting | Phase::Over => return Next::Done(self.on_device()),
            }
        }
    }

    fn submit(&mut self, now: u64, class: IoClass, what: Io, data: &mut DataPlane) -> Next {
        let (done, request) = data.submit(now, class, what);
        self.request = Some(request);
        Next::At(done)
    }
}

/// Returns the key after the first `entries` entries of `outputs`, or `None` if these are all.
fn reached(outputs: &[Output], entries: u64) -> Option<u64> {
    let mut left = entries;
    for output in outputs {
        if left < output.entries {
            let width = u128::from(output.largest - output.smallest + 1);
            let part = width * u128::from(left) / u128::from(output.entries);
            return Some(output.smallest + 1 + part as u64);
        }
        left -= output.entries;
    }
    None
}

/// Returns the part of `outputs` before `next`.
fn before(outputs: &[Output], next: u64) -> Vec<Output> {
    let mut kept: Vec<_> = outputs.iter().filter(|o| o.smallest < next).copied().collect();
    if let Some(last) = kept.last_mut().filter(|last| last.largest >= next) {
        let width = u128::from(last.largest - last.smallest + 1);
        let part = u128::from(last.entries) * u128::from(next - last.smallest) / width;
        last.largest = next - 1;
        last.entries = (part as u64).max(1);
    }
    kept
}
