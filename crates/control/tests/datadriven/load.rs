//! Clients and a device under a plane: samples every 10 ms, grants that are used up at once, and
//! clients that wait when more is asked of the device than it does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use sateen_control::{
    Action, ControlPlane, Event, Instant, IoClass, JobId, Note, ReadSample, Sample,
};

const PERIOD: Duration = Duration::from_millis(10);
const READ_BYTES: u64 = 4096;
/// What a read takes where nothing is in its way.
const READ_NS: u64 = 100_000;

/// What a step of background work asks for.
const SLICE_BYTES: u64 = 256 << 10;

fn wait_ns(bytes: u64, per_second: u64) -> u64 {
    (bytes * 1_000_000_000).checked_div(per_second).unwrap_or(0)
}

/// What goes on for a while.
pub(crate) struct Load {
    /// Bytes a second that clients read, and that they put.
    reads: u64,
    puts: u64,
    /// Bytes a second that the device reads; 0: no end.
    device: u64,
    /// Microseconds that every request takes longer, whatever is asked: the processor is busy.
    busy: u64,
    /// Gets a second, each of which looks into `runs` runs, and scans a second.
    gets: u64,
    runs: u64,
    scans: u64,
    /// Bytes of dead tables that can be given back.
    dead: u64,
    /// Thousandths of the processors that other programs use. If there are any, none is idle.
    others: u64,
}

impl Load {
    pub(crate) fn of(value: impl Fn(&str) -> u64) -> Load {
        let [reads, puts, device, busy] = ["reads", "puts", "device", "busy"].map(&value);
        let [gets, runs, scans] = ["gets", "runs", "scans"].map(&value);
        let [dead, others] = ["dead", "others"].map(value);
        Load { reads, puts, device, busy, gets, runs, scans, dead, others }
    }
}

/// A step of a job that took no time.
pub(crate) fn stepped(job: JobId, read_bytes: u64, written_bytes: u64) -> Event {
    Event::JobStepped { job, read_bytes, written_bytes, cpu_ns: 0 }
}

fn is_told(action: &Action) -> bool {
    matches!(
        action,
        Action::Note(Note::Paused { .. } | Note::Resumed { .. })
            | Action::Admit(_)
            | Action::AdmitFamily { .. }
            | Action::SetLimit(_)
    )
}

/// The device, and which job does what.
#[derive(Default)]
pub(crate) struct Device {
    classes: BTreeMap<JobId, IoClass>,
    /// Bytes that it has still to read of what was asked in the period before.
    owed: u64,
}

impl Device {
    /// Takes note of what is started.
    pub(crate) fn note(&mut self, action: &Action) {
        match action {
            Action::StartFlush { job, .. } | Action::StartFlushTogether { job, .. } => {
                self.classes.insert(*job, IoClass::Flush);
            }
            Action::StartCompaction { job, plan } => {
                self.classes.insert(*job, plan.class);
            }
            _ => {}
        }
    }

    /// Goes on for `periods` of 10 ms. Says what was paused and resumed, how writers were admitted,
    /// what was adjusted, then how many bytes a second each class moved in the last second, or less
    /// if it was shorter.
    pub(crate) fn run(
        &mut self,
        plane: &mut ControlPlane,
        now: &mut Instant,
        periods: u64,
        load: &Load,
    ) -> String {
        let mut out = String::new();
        let counted = periods.min(100);
        let mut moved: BTreeMap<String, u64> = BTreeMap::new();
        for period in 0..periods {
            *now = *now + PERIOD;
            let mut sample =
                Sample { user_bytes: load.puts / 100, dead_bytes: load.dead, ..Sample::default() };
            sample.processors.others = load.others as u32;
            let capacity = if load.device == 0 { u64::MAX } else { load.device / 100 };
            let mut left = capacity.saturating_sub(self.owed + load.reads / 100);
            self.owed = 0;
            // A few looks in each: slices are shorter than a sample.
            for part in 0..10 {
                let mut at = *now + PERIOD / 10 * part;
                while left > 0
                    && let Some(action) = plane.poll(at)
                {
                    self.note(&action);
                    let Action::Grant { job, bytes } = action else {
                        if is_told(&action) {
                            let when = PERIOD * u32::try_from(period).unwrap();
                            writeln!(out, "after {when:?}: {action}").unwrap();
                        }
                        continue;
                    };
                    let class = self.classes[&job];
                    let read = if class == IoClass::Flush { 0 } else { bytes };
                    let counts = &mut sample.classes[class.index()];
                    counts.read_bytes += read;
                    counts.write_bytes += bytes;
                    // Its requests wait like those of clients.
                    counts.read_ns += READ_NS + wait_ns(read, load.device) + load.busy * 1000;
                    at = at + Duration::from_nanos(1);
                    self.owed += read.saturating_sub(left);
                    left = left.saturating_sub(read);
                    plane.handle(at, stepped(job, read, bytes));
                    if period >= periods - counted {
                        *moved.entry(class.to_string()).or_default() += bytes;
                    }
                }
            }
            // Where background work takes all that is left clients wait behind what it has asked.
            let waits = if left == 0 { wait_ns(4 * SLICE_BYTES, load.device) } else { 0 };
            let client = &mut sample.classes[IoClass::Client.index()];
            client.read_bytes = load.reads / 100;
            client.reads = client.read_bytes / READ_BYTES;
            sample.reads = ReadSample {
                gets: load.gets / 100,
                runs: load.gets / 100 * load.runs,
                scans: load.scans / 100,
                block_hits: 0,
                block_misses: client.reads,
            };
            client.read_ns = client.reads * (READ_NS + waits + load.busy * 1000);
            plane.handle(*now + PERIOD, Event::Sample(Box::new(sample)));
        }
        for (class, bytes) in moved {
            writeln!(out, "{class} {} MB/s", bytes * 100 / counted / 1_000_000).unwrap();
        }
        if out.is_empty() { "nothing\n".into() } else { out }
    }
}
