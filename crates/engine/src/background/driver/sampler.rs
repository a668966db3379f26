//! Tells control every 10 ms what the device and the clients did (SILK §5.2.1), and carries out
//! what it decides then: how much of the device background work gets, how fast clients may write.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::{ClassSample, Event, IO_CLASSES, Instant, SAMPLE_PERIOD, Sample};
use sateen_store::base::clock;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::vfs::ClassTotals;

use crate::background::driver::Driver;

/// What was counted when control was last told.
#[derive(Default)]
pub(crate) struct Sampler {
    totals: [ClassTotals; IO_CLASSES],
    user_bytes: u64,
    /// So many samples in a row had nothing to tell.
    quiet: u32,
    /// When control was last told, where no thread sleeps in between.
    told_at: Instant,
}

/// After so many samples with nothing to tell they become rarer.
const IDLE_SAMPLES: u32 = 100;
const IDLE_SAMPLE_PERIOD: Duration = Duration::from_millis(50);

impl Driver {
    /// Tells control what the device and the clients did since the last time, and does what it
    /// decides.
    fn sample(self: &Arc<Self>, sampler: &mut Sampler) {
        let totals = self.env.vfs.totals();
        let user_bytes = self.env.metrics.write_bytes();
        let mut sample = Box::<Sample>::default();
        for (class, (now, then)) in
            sample.classes.iter_mut().zip(totals.iter().zip(&sampler.totals))
        {
            let delta = now.since(then);
            // What the page cache answers takes nothing of the device, and says nothing of it. Nor
            // does the time for which a thread waits for a processor once it was answered.
            *class = ClassSample {
                read_bytes: delta.device_read_bytes,
                reads: delta.device_reads,
                read_ns: delta.device_read_ns,
                write_bytes: delta.write_bytes,
                writes: delta.writes,
                write_ns: delta.write_ns.saturating_sub(delta.write_waited_ns),
                syncs: delta.syncs,
                sync_ns: delta.sync_ns.saturating_sub(delta.sync_waited_ns),
            };
        }
        sample.user_bytes = user_bytes.saturating_sub(sampler.user_bytes);
        let quiet = sample.user_bytes == 0 && totals == sampler.totals;
        (sampler.totals, sampler.user_bytes) = (totals, user_bytes);
        let mut shared = lock(&self.shared);
        sampler.quiet = if quiet && shared.jobs.is_empty() { sampler.quiet + 1 } else { 0 };
        let now = self.env.now();
        self.report_all_memtables(&mut shared, now);
        shared.plane.handle(now, Event::Sample(sample));
        self.poll_control(&mut shared);
        if self.is_gated() {
            // The gate that was closed may be that of a column family that is gone.
            self.look_at_gates();
        }
        if shared.has_work() {
            self.wake.notify_all();
        }
    }

    /// Samples if it is time to, for a database whose steps the caller does.
    pub(crate) fn sample_if_due(self: &Arc<Self>) {
        let now = self.env.now();
        let mut sampler = lock(&self.sampler);
        if now.since(sampler.told_at) >= SAMPLE_PERIOD {
            sampler.told_at = now;
            self.sample(&mut sampler);
        }
    }

    /// Samples until the database is closed.
    pub(crate) fn sampling_loop(self: &Arc<Self>) {
        let mut sampler = Sampler::default();
        while !self.is_stopping() {
            self.sample(&mut sampler);
            // Nothing has happened for a while: there is no hurry to see what happens next.
            let idle = sampler.quiet > IDLE_SAMPLES;
            clock::sleep(if idle { IDLE_SAMPLE_PERIOD } else { SAMPLE_PERIOD });
        }
    }

    /// Some gate has changed: whether writers have to look at theirs.
    pub(crate) fn look_at_gates(&self) {
        let open = self.gate.is_open()
            && self.tree.families().values().all(|family| family.gate.is_open());
        self.gated.store(!open, Ordering::Release);
        self.note_stalls();
    }
}
