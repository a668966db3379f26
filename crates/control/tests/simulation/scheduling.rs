//! Jobs that are paused, resumed and given up, writers that are slowed down, and what the driver
//! samples meanwhile.

use sateen_control::{
    Adjustment, Admission, AdmissionState, Event, IoClass, JobId, JobResult, Limit, Note,
    PauseReason, SAMPLE_PERIOD, Sample, TableId,
};

use super::{Job, Work, World};

impl Work {
    pub(super) fn class(&self) -> IoClass {
        match self {
            Work::Flush(_) => IoClass::Flush,
            Work::Compaction(plan) => plan.class,
        }
    }
}

impl World {
    /// Reads were charged to some table, or to one that is gone.
    pub(super) fn charge_table(&mut self) {
        let cf = self.random_family();
        let table = TableId(1 + self.random.below(self.last_table + 1));
        let tables: Vec<_> = self.families[&cf].version.tables().map(|(.., t)| t.id).collect();
        let live = tables.get(self.random.below(tables.len() as u64 + 1) as usize);
        let table = live.copied().unwrap_or(table);
        self.plane.handle(self.now, Event::TableCharged { cf, table });
    }

    pub(super) fn remove(&mut self, id: JobId) -> Job {
        self.paused.remove(&id);
        self.jobs.remove(&id).expect("a running job")
    }

    /// As the engine does it: at once, or when the step that is under way has ended.
    pub(super) fn discard(&mut self, id: JobId) {
        // It may have ended when its family was dropped.
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.discarded = true;
        if job.granted.is_none() {
            self.remove(id);
            let result = JobResult::Cancelled;
            self.plane.handle(self.now, Event::JobFinished { job: id, result });
        }
    }

    pub(super) fn note(&mut self, note: &Note) {
        match note {
            // One that has ended meanwhile may still be spoken of.
            Note::Paused { job, reason } => {
                let Some(paused) = self.jobs.get(job) else { return };
                let class = paused.work.class();
                assert!(!matches!(class, IoClass::Flush | IoClass::L0), "{job} is paused");
                match reason {
                    PauseReason::Preempted { by } => {
                        let by = self.jobs.get(by).map(|job| job.work.class());
                        assert_eq!(by.unwrap_or(IoClass::L0), IoClass::L0);
                        self.seen.preempted += 1;
                    }
                    PauseReason::Peak => self.seen.peaks += 1,
                    PauseReason::Slots => self.seen.out_of_slots += 1,
                }
                self.paused.insert(*job);
            }
            Note::Resumed { job } if self.jobs.contains_key(job) => {
                assert!(self.paused.remove(job), "{job} was not paused");
                self.seen.resumed += 1;
            }
            Note::Resumed { .. } => {}
            Note::Bandwidth { .. } => {}
        }
    }

    /// What is adjusted for an overflow stays within its bounds.
    pub(super) fn adjusted(&mut self, adjustment: &Adjustment) {
        if adjustment.overflow.is_none() {
            return;
        }
        self.seen.adjusted += 1;
        match adjustment.limit {
            Limit::Slots(slots) => {
                let options = self.plane.options();
                let most = options.tuner.slots_max.max(options.slots().total());
                assert!(slots.flushes >= 1 && slots.compactions >= 1 && slots.total() <= most);
                assert_eq!(self.plane.job_slots(), slots);
            }
            Limit::Memtable { cf, bytes } => {
                let configured = self.families[&cf].options.memtable_bytes;
                assert!((configured..=8 * configured).contains(&bytes), "{adjustment}");
                assert_eq!(self.plane.memtable_bytes(cf), Some(bytes));
            }
        }
    }

    /// The size at which the next memtable is sealed: what control says, or less if memory is
    /// short.
    pub(super) fn size_bytes(&mut self) -> u64 {
        if self.random.one_in(8) { self.random.below(512 << 20) } else { u64::MAX }
    }

    pub(super) fn admitted(&mut self, admission: &Admission) {
        assert_eq!(admission.cause.is_none(), admission.state == AdmissionState::Open);
        match admission.state {
            AdmissionState::Open => {}
            AdmissionState::Delayed { .. } => self.seen.delayed += 1,
            AdmissionState::Stopped => self.seen.stopped += 1,
        }
    }

    /// A sample, if it is time for one. `clients`: now and then they read, and now and then so much
    /// that nothing is left, or it takes them long.
    pub(super) fn take_sample(&mut self, clients: bool) {
        if self.now.since(self.sampled_at) < SAMPLE_PERIOD {
            return;
        }
        self.sampled_at = self.now;
        let mut sample = std::mem::take(&mut self.sample);
        let client = &mut sample.classes[IoClass::Client.index()];
        if clients && self.random.one_in(2) {
            client.reads = self.random.below(50);
            let bytes = if self.random.one_in(3) { 1 << 20 } else { 4096 };
            client.read_bytes = client.reads * bytes;
            client.read_ns = client.reads * if self.random.one_in(4) { 900_000 } else { 100_000 };
        }
        self.plane.handle(self.now, Event::Sample(Box::<Sample>::new(sample)));
    }
}
