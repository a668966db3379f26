//! The sampler: when its database has its turn, every 10 ms at most, it tells control what the
//! device and the clients did (SILK §5.2.1), and carries out what control decides then, such as the
//! bandwidth of background work and the write rate of clients.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::{
    ClassSample, DeviceProfile, Event, IO_CLASSES, Instant, Processors, ReadSample, SAMPLE_PERIOD,
    Sample, StallCause,
};
use sateen_store::base::clock;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::vfs::ClassTotals;

use crate::background::driver::Driver;
use crate::timeline::EventKind;

/// The counters at the last sample.
#[derive(Default)]
pub(crate) struct Sampler {
    totals: [ClassTotals; IO_CLASSES],
    user_bytes: u64,
    reads: ReadSample,
    /// Since when nothing has happened.
    quiet_since: Option<Instant>,
    /// What was recorded last about the device.
    device: DeviceProfile,
    /// Whether the machine was short of processors when that was last recorded.
    is_short_of_processor: bool,
    /// When the last sample was taken. Only used without a sampling thread.
    told_at: Instant,
}

/// The time without news after which the database is idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Returns true if the device differs by more than a tenth from what was recorded.
fn is_news(now: &DeviceProfile, then: &DeviceProfile) -> bool {
    let differs = |now: u64, then: u64| now.abs_diff(then) > then / 10;
    differs(now.read_bytes_per_second, then.read_bytes_per_second)
        || differs(now.write_bytes_per_second, then.write_bytes_per_second)
        || differs(now.barrier_ns, then.barrier_ns)
}

impl Driver {
    /// Returns what has happened since the last call.
    pub(crate) fn take_sample(&self, sampler: &mut Sampler) -> Box<Sample> {
        let totals = self.env.vfs.totals();
        let user_bytes = self.env.metrics.write_bytes();
        let mut sample = Box::<Sample>::default();
        for (class, (now, then)) in
            sample.classes.iter_mut().zip(totals.iter().zip(&sampler.totals))
        {
            let delta = now.since(then);
            // Only reads that reached the device count; those from the page cache say nothing about
            // it. The time for which a thread waited for a processor after its I/O had ended is
            // subtracted.
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
        let reads = ReadSample {
            block_hits: self.tree.blocks.hits(),
            block_misses: self.tree.blocks.misses(),
            ..self.env.metrics.client_reads()
        };
        sample.dead_bytes = self.tree.reclaimer.reclaimable_bytes();
        sample.memory_is_awaited = self.env.metrics.are_waiting(StallCause::WriteBuffers);
        sample.reads = reads.since(&sampler.reads);
        sampler.reads = reads;
        // Control hears that nobody waits any more before the database rests.
        let quiet = sample.user_bytes == 0 && totals == sampler.totals && !sample.memory_is_awaited;
        let since = || sampler.quiet_since.unwrap_or_else(|| self.env.now());
        sampler.quiet_since = quiet.then(since);
        (sampler.totals, sampler.user_bytes) = (totals, user_bytes);
        sample
    }

    /// Returns true if something has happened since the last sample, or if reads that may all be
    /// from memory have been charged to a table. If something has happened, the next sample begins
    /// now.
    pub(crate) fn has_news(&self) -> bool {
        if self.has_charged_tables() {
            return true;
        }
        let mut sampler = lock(&self.sampler);
        let calls = sampler.totals.iter().map(ClassTotals::calls).sum::<u64>();
        // Thousands of databases are asked, and of most nothing else is in the processor's caches.
        if self.env.vfs.calls() == calls && self.env.metrics.write_bytes() == sampler.user_bytes {
            return false;
        }
        let _skipped = self.take_sample(&mut sampler);
        true
    }

    /// Returns true if nothing has happened for a while.
    pub(crate) fn is_quiet(&self) -> bool {
        let since = lock(&self.sampler).quiet_since;
        since.is_some_and(|since| self.env.now().since(since) > IDLE_AFTER)
    }

    /// Reports a sample to control and carries out what control decides. Returns true if there are
    /// jobs.
    pub(crate) fn report_sample(self: &Arc<Self>, sample: Box<Sample>) -> bool {
        self.report_charged_tables();
        let mut shared = self.lend();
        let now = self.env.now();
        self.report_all_memtables(&mut shared, now);
        shared.plane.handle(now, Event::Sample(sample));
        self.poll_control(&mut shared);
        let device = shared.plane.device();
        let is_short = shared.plane.is_short_of_processor();
        let has_jobs = !shared.jobs.is_empty();
        let mut sampler = lock(&self.sampler);
        if has_jobs {
            sampler.quiet_since = None;
        }
        let news = is_news(&device, &sampler.device);
        if news {
            sampler.device = device;
        }
        let was_short = std::mem::replace(&mut sampler.is_short_of_processor, is_short);
        drop(sampler);
        if news {
            self.env.metrics.timeline.told(now, EventKind::Device(device));
        }
        if is_short != was_short {
            let Processors { others, idle } = shared.plane.processors();
            let kind = EventKind::Processors { short: is_short, others, idle };
            self.env.metrics.timeline.told(now, kind);
        }
        if self.is_gated() {
            // The gate that was not open may be that of a dropped column family.
            self.look_at_gates();
        }
        if shared.has_work() {
            self.place.call();
        }
        has_jobs
    }

    /// Returns true if a table is still to be reported for what reads were charged to it.
    pub(crate) fn has_charged_tables(&self) -> bool {
        let families = self.tree.families();
        !self.env.read_only && families.values().any(|family| family.super_version().has_charged())
    }

    /// Reports tables that should be compacted for what reads were charged to them.
    pub(crate) fn report_charged_tables(&self) {
        if self.env.read_only {
            return;
        }
        for family in self.tree.families().values() {
            if let Some(table) = family.super_version().take_charged() {
                self.report(self.env.now(), Event::TableCharged { cf: family.id(), table });
            }
        }
    }

    /// Takes a sample if one is due, for a database without threads.
    pub(crate) fn sample_if_due(self: &Arc<Self>) {
        let now = self.env.now();
        let mut sampler = lock(&self.sampler);
        if now.since(sampler.told_at) < SAMPLE_PERIOD {
            return;
        }
        sampler.told_at = now;
        let mut sample = self.take_sample(&mut sampler);
        drop(sampler);
        sample.processors = clock::virtual_processors();
        lock(&self.place.device.scheduler).sample(now, &sample);
        self.report_sample(sample);
    }

    /// Sets the flag that makes writers look at their gates, after a gate has changed.
    pub(crate) fn look_at_gates(&self) {
        let open = self.gate.is_open()
            && self.tree.families().values().all(|family| family.gate.is_open());
        self.gated.store(!open, Ordering::Release);
        self.note_stalls();
    }
}

#[cfg(test)]
mod tests {
    use sateen_store::base::clock::{self, VirtualTime};
    use sateen_store::vfs::MemVfs;

    use super::*;
    use crate::{CompactRangeOptions, Db, Options, ReadOptions};

    /// Writes 24 MiB twice and compacts.
    fn rewrite(db: &Db) {
        for turn in 0..2_u8 {
            for key in 0..96_u8 {
                db.put([key], vec![key ^ turn; 256 << 10]).unwrap();
            }
            db.flush().unwrap();
        }
        db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    }

    /// Lets a tenth of a second pass in which clients write. Returns the most bytes of dead tables
    /// that control was told of.
    fn told_of_dead(db: &Db) -> u64 {
        let driver = &db.core().background.driver;
        let told = |_| {
            db.put("beside", "1").unwrap();
            clock::advance(Duration::from_millis(1));
            db.step().unwrap();
            driver.take_sample(&mut Sampler::default()).dead_bytes
        };
        (0..100).map(told).max().unwrap_or(0)
    }

    #[test]
    fn what_an_iterator_keeps_is_no_space_that_control_could_free() {
        let _time = VirtualTime::begin(1);
        let mut options = Options { background_threads: 0, ..Options::default() };
        options.column_family.compression = vec![crate::Compression::None];
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        rewrite(&db);
        let mut cursor = db.cursor(&ReadOptions::default()).unwrap();
        cursor.seek_to_first();
        rewrite(&db);
        while db.metrics().obsolete_bytes > 30 << 20 {
            told_of_dead(&db);
        }
        // The iterator keeps what the second round has replaced.
        for _ in 0..100 {
            told_of_dead(&db);
        }
        assert_eq!(told_of_dead(&db), 0);
        let metrics = db.metrics();
        assert!(metrics.obsolete_bytes > 20 << 20, "{}", metrics.obsolete_bytes);
        let [family] = metrics.column_families.as_slice() else { panic!("one column family") };
        assert_eq!(family.obsolete_bytes, metrics.obsolete_bytes);
        assert!(family.space_amplification() > 1.9, "{}", family.space_amplification());
        drop(cursor);
        // A step beside clients gives back a part of it.
        let pace = sateen_control::ReclaimPace { rate: Some(1 << 20), ..Default::default() };
        let (core, now) = (db.core(), db.core().env.now());
        core.tree.reclaimer.reclaim(now, pace).unwrap();
        let sample = core.background.driver.take_sample(&mut Sampler::default());
        assert!(sample.dead_bytes > 20 << 20, "{}", sample.dead_bytes);
        while db.metrics().obsolete_bytes > 0 {
            told_of_dead(&db);
        }
        assert_eq!(told_of_dead(&db), 0);
    }

    #[test]
    fn control_learns_of_each_run_that_a_get_looks_into() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { background_threads: 0, ..Options::default() };
        let db = Db::open(directory.path(), options).unwrap();
        for keys in [["a", "m"], ["c", "z"], ["n", "x"]] {
            keys.into_iter().for_each(|key| db.put(key, "1").unwrap());
            db.flush().unwrap();
        }
        let runs = |key: &str| {
            let before = db.core().env.metrics.client_reads();
            let _found = db.get(key).unwrap();
            let reads = db.core().env.metrics.client_reads().since(&before);
            assert_eq!((reads.gets, reads.scans), (1, 0));
            reads.runs
        };
        // A run without a table around the key is not looked into, and the first hit ends a get.
        assert_eq!([runs("b"), runs("d"), runs("o"), runs("x"), runs("zz")], [1, 2, 2, 1, 0]);
        db.put("b", "2").unwrap();
        assert_eq!(runs("b"), 0, "in the memtable");
    }
}
