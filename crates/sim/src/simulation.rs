//! The driver of a simulation: the control plane on one side, the modelled device, tree and clients
//! on the other, and virtual time between them.
//!
//! Invariants: events happen in the order of time, and at equal times in the order in which they
//! were scheduled. The control plane is told of the end of a job as [`Event`] demands. The
//! configuration alone determines every result.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use sateen_control::compaction::{LevelTargets, Stripes, TreeView, good_tables};
use sateen_control::{
    Action, CfOptions, ColumnFamilyId, CompactionPlan, ControlPlane, Event, Instant, JobId,
    JobResult, Limit, Note, SAMPLE_PERIOD, Sample, SeqNo, VersionEdit,
};

use crate::classes::{Classes, add};
use crate::clients::Clients;
use crate::config::SimConfig;
use crate::data_plane::{DataPlane, Region};
use crate::error::{Error, Result};
use crate::job::{Job, Most, Moved, Next, Work};
use crate::merge::{distinct, input_tables, key, number, outputs, spread};
use crate::recorder::SECOND_NS;
use crate::report::{BaseLevel, Chains, Counts, Jobs, Report};
use crate::tree::{Tree, debt_bytes};

const SAMPLE_NS: u64 = SAMPLE_PERIOD.as_nanos() as u64;

/// A running simulation.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) config: SimConfig,
    /// What the control plane is told of the column family.
    family: Arc<CfOptions>,
    /// Threads for background work.
    pub(crate) workers: usize,
    pub(crate) now: u64,
    pub(crate) plane: ControlPlane,
    /// A tree for each region. Its number is that of its column family.
    trees: Vec<Tree>,
    pub(crate) data: DataPlane,
    pub(crate) clients: Clients,
    jobs: BTreeMap<JobId, Job>,
    /// Jobs with a grant that wait for a thread, and the bytes of their grants.
    pub(crate) runnable: VecDeque<(JobId, u64)>,
    /// Threads that run a step now.
    pub(crate) busy: usize,
    /// Threads that run a step for another database.
    pub(crate) busy_elsewhere: usize,
    /// Requests of jobs by completion: the moment, the order of submission, the job.
    wakes: BinaryHeap<Reverse<(u64, u64, JobId)>>,
    wake_number: u64,
    pub(crate) next_sample: u64,
    /// The work of the device in this second and in the whole run.
    pub(crate) second: Classes,
    pub(crate) total: Classes,
    user_bytes: u64,
    stalled_ns: u64,
    counts: Counts,
    chains: Chains,
    flushes: Jobs,
    compactions: Vec<Jobs>,
    base_level: BaseLevel,
}

impl Simulation {
    /// A simulation at its beginning.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: SimConfig) -> Result<Simulation> {
        config.check()?;
        let plane = ControlPlane::new(config.policy.control());
        Simulation::begin(config, plane)
    }

    /// A simulation of a checked configuration at its beginning. `plane` knows no column family.
    pub(crate) fn begin(config: SimConfig, mut plane: ControlPlane) -> Result<Simulation> {
        let mut data = DataPlane::new(&config);
        let entry_bytes = data.table_entry_bytes();
        let keys = config.db_bytes / entry_bytes;
        let options = Arc::new(config.policy.family());
        let percent = u64::from(config.policy.options.level0_cache_percent);
        let regions = config.regions() as u64;
        let trees = (0..config.regions()).map(|region| {
            let seed = config.load.seed;
            let mut tree = Tree::load(id_of(region), &options, keys / regions, entry_bytes, seed)?;
            tree.in_memory_max = config.cache_bytes / regions / 100 * percent;
            Ok(tree)
        });
        let trees: Vec<Tree> = trees.collect::<Result<_>>()?;
        let clients = Clients::new(&config.load, entry_bytes, config.duration_ns);
        let family = options.clone();
        for (tree, region) in trees.iter().zip(&mut data.regions) {
            let (options, version) = (options.clone(), tree.version.clone());
            plane.handle(Instant(0), Event::ColumnFamilyAdded { options, version });
            look_at(tree, region);
        }
        let mut simulation = Simulation {
            now: 0,
            plane,
            trees,
            data,
            clients,
            jobs: BTreeMap::new(),
            runnable: VecDeque::new(),
            busy: 0,
            busy_elsewhere: 0,
            wakes: BinaryHeap::new(),
            wake_number: 0,
            next_sample: SAMPLE_NS,
            second: Classes::default(),
            total: Classes::default(),
            user_bytes: 0,
            stalled_ns: 0,
            counts: Counts::default(),
            chains: Chains::default(),
            flushes: Jobs::default(),
            compactions: vec![Jobs::default(); family.level_count()],
            base_level: BaseLevel::default(),
            workers: config.workers.unwrap_or_else(|| config.slots()),
            family,
            config,
        };
        simulation.poll()?;
        Ok(simulation)
    }

    /// Runs a simulation from beginning to end.
    ///
    /// # Errors
    /// If the configuration is invalid, or the control plane and the model disagree.
    pub fn run(config: SimConfig) -> Result<Report> {
        let duration_ns = config.duration_ns;
        let mut simulation = Simulation::new(config)?;
        simulation.run_until(duration_ns)?;
        Ok(simulation.report())
    }

    /// Runs up to a moment, in nanoseconds from the start.
    ///
    /// # Errors
    /// If the control plane and the model disagree.
    pub fn run_until(&mut self, end: u64) -> Result<()> {
        while self.now < end {
            let at = self.next_at().min(end);
            match self.clients.run(at, &mut self.data) {
                Some(sealed_at) => {
                    self.now = sealed_at;
                    self.memtables_changed();
                    self.poll()?;
                }
                None => {
                    self.now = at;
                    self.happen()?;
                }
            }
        }
        Ok(())
    }

    /// Returns the time of the next event that is not a client's.
    pub(crate) fn next_at(&self) -> u64 {
        let wake = self.wakes.peek().map_or(u64::MAX, |Reverse((at, _, _))| *at);
        let poll = self.plane.poll_timeout().map_or(u64::MAX, |at| at.0.max(self.now + 1));
        wake.min(poll).min(self.next_sample)
    }

    /// Handles all events that are due.
    pub(crate) fn happen(&mut self) -> Result<()> {
        if self.next_sample <= self.now {
            self.next_sample += SAMPLE_NS;
            let sample = self.take_sample();
            self.report_sample(sample);
        }
        while let Some(Reverse((at, _, job))) = self.wakes.peek().copied() {
            if at > self.now {
                break;
            }
            self.wakes.pop();
            self.advance(job)?;
        }
        self.poll()
    }

    /// Returns what has happened since the last call.
    pub(crate) fn take_sample(&mut self) -> Sample {
        let classes = self.data.take_classes(self.now);
        let user_bytes = std::mem::take(&mut self.data.user_bytes);
        for ((second, total), class) in self.second.iter_mut().zip(&mut self.total).zip(&classes) {
            add(second, class);
            add(total, class);
        }
        self.user_bytes += user_bytes;
        self.stalled_ns += if self.data.gates.is_open() { 0 } else { SAMPLE_NS };
        let reads = std::mem::take(&mut self.data.reads);
        Sample { classes, user_bytes, reads, ..Sample::default() }
    }

    /// Sends the control plane a sample, as the engine does.
    pub(crate) fn report_sample(&mut self, sample: Sample) {
        self.memtables_changed();
        self.plane.handle(Instant(self.now), Event::Sample(Box::new(sample)));
        if self.now.is_multiple_of(SECOND_NS) {
            self.end_second();
        }
    }

    fn end_second(&mut self) {
        let debt_bytes = debt_bytes(&self.plane, &self.trees);
        let second =
            self.data.recorder.end_second(&self.second, self.clients.oldest_due().min(self.now));
        second.debt_bytes = debt_bytes;
        let device = self.plane.device();
        second.believed_read = device.read_bytes_per_second;
        second.believed_write = device.write_bytes_per_second;
        let regions = &self.data.regions;
        second.level0_runs = regions.iter().map(|region| region.level0_runs).max().unwrap_or(0);
        second.sealed = regions.iter().map(|region| region.sealed.len() as u64).sum();
        second.slots = self.plane.job_slots().total() as u64;
        let memtable = regions.iter().map(|region| region.next_write_buffer_bytes).max();
        second.memtable_bytes = memtable.unwrap_or(0);
        second.stalled_ns = std::mem::take(&mut self.stalled_ns);
        self.second = Classes::default();
    }

    pub(crate) fn memtables_changed(&mut self) {
        for (tree, region) in self.trees.iter().zip(&self.data.regions) {
            let event = Event::MemtablesChanged {
                cf: tree.family,
                sealed: u32::try_from(region.sealed.len()).unwrap_or(u32::MAX),
                sealed_bytes: region.sealed.iter().map(|memtable| memtable.bytes).sum(),
                active_bytes: region.active.bytes,
                size_bytes: region.write_buffer_bytes,
            };
            self.plane.handle(Instant(self.now), event);
        }
    }

    /// Carries out the actions of the control plane, and assigns threads to jobs with new grants.
    pub(crate) fn poll(&mut self) -> Result<()> {
        const POLLS_MAX: usize = 100_000;
        for _ in 0..POLLS_MAX {
            let Some(action) = self.plane.poll(Instant(self.now)) else {
                return self.assign();
            };
            self.act(action)?;
        }
        Err(Error::broken("control never comes to an end"))
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::StartFlush { job, cf, memtables, stripes } => {
                self.start_flush(job, cf, memtables as usize, &stripes)
            }
            // The model has no flush of several regions.
            Action::StartFlushTogether { job, members } => match members.as_slice() {
                [one] => self.start_flush(job, one.cf, one.memtables as usize, &one.stripes),
                _ => Err(Error::broken(format!("{job} is of {} families", members.len()))),
            },
            Action::StartCompaction { job, plan } => self.start_compaction(job, plan),
            Action::Grant { job, bytes } => {
                let known = self.jobs.get(&job).is_some_and(|job| !job.is_stepping());
                if !known || self.runnable.iter().any(|(granted, _)| *granted == job) {
                    return Err(Error::broken(format!("{job} cannot use a grant")));
                }
                self.runnable.push_back((job, bytes));
                Ok(())
            }
            Action::Discard { job } => {
                let Some(found) = self.jobs.get_mut(&job) else { return Ok(()) };
                found.discarded = true;
                if !found.is_stepping() {
                    self.runnable.retain(|(granted, _)| *granted != job);
                    self.jobs.remove(&job);
                    self.cancelled(job);
                }
                Ok(())
            }
            Action::Admit(admission) => {
                self.admit(None, admission);
                Ok(())
            }
            Action::AdmitFamily { cf, admission } => {
                self.admit(Some(cf.0 as usize), admission);
                Ok(())
            }
            Action::FinishEarly { job } => {
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.finish_early(self.trees[0].entry_bytes);
                }
                Ok(())
            }
            Action::SetLimit(adjustment) => {
                self.counts.adjustments += 1;
                if let Limit::Memtable { cf, bytes } = adjustment.limit {
                    self.data.regions[cf.0 as usize].next_write_buffer_bytes = bytes;
                }
                Ok(())
            }
            Action::Note(note) => {
                match note {
                    Note::Paused { .. } => self.counts.paused += 1,
                    Note::Resumed { .. } => self.counts.resumed += 1,
                    Note::Bandwidth { .. } => self.counts.bandwidth_changes += 1,
                }
                Ok(())
            }
            Action::ManualDone { .. } => Ok(()),
        }
    }

    fn admit(&mut self, region: Option<usize>, admission: sateen_control::Admission) {
        self.data.gates.publish(self.now, region, admission);
        self.clients.admission_changed(self.now);
    }

    fn start_flush(
        &mut self,
        id: JobId,
        cf: ColumnFamilyId,
        memtables: usize,
        stripes: &Stripes,
    ) -> Result<()> {
        let region = cf.0 as usize;
        let sealed = &self.data.regions[region].sealed;
        if memtables == 0 || memtables > sealed.len() {
            return Err(Error::broken(format!("{id} flushes memtables that do not exist")));
        }
        let taken: Vec<_> = sealed.range(..memtables).copied().collect();
        let writes = taken.iter().map(|memtable| memtable.entries).sum();
        let Tree { keys, entry_bytes, .. } = self.trees[region];
        let table_bytes = self.family.flush_file_size();
        let starts: Vec<_> = stripes.iter().map(|key| number(key.bytes())).collect();
        let outputs = spread(keys, &starts, distinct(keys, writes), entry_bytes, table_bytes);
        self.start(id, Work::Flush(region, taken), (0, 0), outputs)
    }

    fn start_compaction(&mut self, id: JobId, plan: Arc<CompactionPlan>) -> Result<()> {
        let tree = &self.trees[plan.cf.0 as usize];
        let outputs = outputs(&plan, &tree.version, tree.entry_bytes, self.family.table_bytes);
        let input = (plan.rewrite_bytes(), tree.bytes_in_memory(&plan));
        self.start(id, Work::Compaction(plan), input, outputs)
    }

    fn start(
        &mut self,
        id: JobId,
        work: Work,
        (input, in_memory): (u64, u64),
        outputs: Vec<crate::merge::Output>,
    ) -> Result<()> {
        let entry_bytes = self.trees[0].entry_bytes;
        let bytes = outputs.iter().map(|output| output.entries * entry_bytes).sum();
        match self.jobs.insert(id, Job::new(work, self.now, input, in_memory, outputs, bytes)) {
            None => Ok(()),
            Some(_) => Err(Error::broken(format!("{id} is started twice"))),
        }
    }

    /// Assigns free threads to jobs with a grant, in the order of the grants.
    pub(crate) fn assign(&mut self) -> Result<()> {
        while self.busy + self.busy_elsewhere < self.workers {
            let Some((id, bytes)) = self.runnable.pop_front() else { break };
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            job.begin(bytes);
            self.busy += 1;
            // Every step takes processor time.
            self.wake(self.now, id);
        }
        Ok(())
    }

    fn wake(&mut self, at: u64, job: JobId) {
        self.wake_number += 1;
        self.wakes.push(Reverse((at, self.wake_number, job)));
    }

    fn advance(&mut self, id: JobId) -> Result<()> {
        let Some(job) = self.jobs.get_mut(&id) else { return Ok(()) };
        let policy = &self.config.policy;
        let read = policy.options.compaction_readahead_bytes;
        let most = Most { read, write: policy.write_request_bytes };
        match job.advance(self.now, most, &mut self.data) {
            Next::At(at) => {
                self.wake(at, id);
                Ok(())
            }
            Next::Stepped(moved) => {
                self.busy -= 1;
                self.stepped(id, moved);
                let discarded = self.jobs.get(&id).is_some_and(|job| job.discarded);
                if discarded {
                    self.jobs.remove(&id);
                    self.cancelled(id);
                }
                self.poll()
            }
            Next::Done(moved) => {
                self.busy -= 1;
                let Some(job) = self.jobs.remove(&id) else { return Ok(()) };
                self.finish(id, &job, moved)?;
                self.poll()
            }
        }
    }

    fn stepped(&mut self, job: JobId, moved: Moved) {
        let Moved { read, written } = moved;
        let event = Event::JobStepped { job, read_bytes: read, written_bytes: written, cpu_ns: 0 };
        self.plane.handle(Instant(self.now), event);
    }

    fn cancelled(&mut self, job: JobId) {
        self.counts.discarded += 1;
        let event = Event::JobFinished { job, result: JobResult::Cancelled };
        self.plane.handle(Instant(self.now), event);
    }

    /// Installs the result of a job and reports its end.
    fn finish(&mut self, id: JobId, job: &Job, moved: Moved) -> Result<()> {
        let region = match &job.work {
            Work::Flush(region, _) => *region,
            Work::Compaction(plan) => plan.cf.0 as usize,
        };
        let tree = &mut self.trees[region];
        match &job.work {
            Work::Flush(_, memtables) => {
                let writes = memtables.iter().map(|memtable| memtable.entries).sum();
                let range = tree.seqnos(writes);
                let epoch = tree.epoch();
                let added = job.outputs.iter().map(|o| tree.added(0, epoch, o, range)).collect();
                let column_family = tree.family;
                let edit = VersionEdit { column_family, added, ..VersionEdit::default() };
                tree.install(&edit)?;
                self.data.regions[region].sealed.drain(..memtables.len());
                self.flushes.add(job.moved_bytes(), self.now - job.began);
                self.counts.flushes += 1;
            }
            Work::Compaction(plan) => {
                let ends_before = job.ends_before.map(key);
                let mut edit = match &ends_before {
                    Some(next) => plan.edit_before(next.bytes()),
                    None => plan.edit(),
                };
                self.counts.partial += u64::from(ends_before.is_some());
                let range = seqno_range(plan);
                for output in &job.outputs {
                    let (level, epoch) = (plan.output_level, plan.output_epoch);
                    edit.added.push(tree.added(level, epoch, output, range));
                }
                tree.install(&edit)?;
                let inputs = plan.rewrite.iter().filter(|input| !input.tables.is_empty());
                let from = inputs.map(|input| usize::from(input.level)).min().unwrap_or(0);
                if !plan.is_trivial_move() {
                    self.compactions[from].add(job.moved_bytes(), self.now - job.began);
                }
                self.counts.compactions += u64::from(!plan.is_trivial_move());
                self.counts.moves += u64::from(plan.is_trivial_move());
            }
        }
        look_at(tree, &mut self.data.regions[region]);
        let version = tree.version.clone();
        self.stepped(id, moved);
        self.plane.handle(Instant(self.now), Event::VersionInstalled { version });
        if matches!(job.work, Work::Flush(..)) {
            self.chains.add(self.plane.compaction_chain(id_of(region)).unwrap_or_default());
            self.look_at_base_level(region);
            self.memtables_changed();
        }
        let event = Event::JobFinished { job: id, result: JobResult::Done };
        self.plane.handle(Instant(self.now), event);
        Ok(())
    }

    fn look_at_base_level(&mut self, region: usize) {
        let version = &*self.trees[region].version;
        let targets = LevelTargets::new(version, &self.family);
        let level = targets.base_level;
        let view = TreeView { version, options: &self.family, targets: &targets };
        self.base_level.tables += version.level(level).tables() as u64;
        self.base_level.good_tables += good_tables(&view, level);
    }

    /// Ends the load and runs until no work is left. A simulation that does not come to rest is an
    /// error.
    ///
    /// # Errors
    /// If something is never released, or the control plane and the model disagree.
    pub fn quiesce(&mut self) -> Result<()> {
        /// The virtual time within which the simulation must come to rest.
        const PATIENCE_NS: u64 = 100_000 * SECOND_NS;
        let end = self.now + PATIENCE_NS;
        self.clients.stop();
        while !self.clients.at_rest() && self.now < end {
            self.run_until(self.now + SAMPLE_NS)?;
        }
        self.flush()?;
        while !self.is_idle() {
            if self.now >= end {
                let jobs: Vec<_> = self.jobs.keys().collect();
                return Err(Error::broken(format!("it does not come to rest: {jobs:?}")));
            }
            self.run_until(self.now + SAMPLE_NS)?;
        }
        self.check_at_rest()
    }

    /// Seals all memtables, and asks for their flush.
    pub(crate) fn flush(&mut self) -> Result<()> {
        for region in &mut self.data.regions {
            if region.active.entries > 0 {
                region.seal();
            }
        }
        self.memtables_changed();
        for tree in &self.trees {
            self.plane.handle(Instant(self.now), Event::FlushRequested { cf: tree.family });
        }
        self.poll()
    }

    /// Returns true if no work is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.plane.is_idle() && self.jobs.is_empty()
    }

    /// Checks that nothing is held without work.
    pub(crate) fn check_at_rest(&self) -> Result<()> {
        let held = self.busy + self.runnable.len() + self.plane.in_flight().len();
        if held > 0 || self.data.regions.iter().any(|region| !region.sealed.is_empty()) {
            return Err(Error::broken(format!("{held} threads, grants or claims are held")));
        }
        Ok(())
    }

    /// Checks that no table, job or thread is lost.
    ///
    /// # Errors
    /// If something is lost.
    pub fn check(&self) -> Result<()> {
        self.trees.iter().try_for_each(Tree::check)?;
        let known: Vec<_> = self.plane.jobs().map(|(id, _, _)| id).collect();
        if !known.iter().eq(self.jobs.keys()) {
            return Err(Error::broken(format!("control knows {known:?}: {:?}", self.jobs.keys())));
        }
        let stepping = self.jobs.values().filter(|job| job.is_stepping()).count();
        if stepping != self.busy || self.busy > self.config.slots().max(1) {
            return Err(Error::broken(format!("{stepping} steps on {} threads", self.busy)));
        }
        Ok(())
    }

    /// Returns the report up to now.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut gates = self.data.gates.clone();
        gates.count_time(self.now);
        let undone = self.clients.undone(self.now.min(self.config.duration_ns));
        let recorder = &self.data.recorder;
        let mut report = Report::new(&self.config, recorder, undone, self.counts);
        report.stalls = gates.stalls();
        report.account(self.user_bytes, &self.total);
        let bytes = |level| self.trees.iter().map(|tree| tree.version.level(level).bytes()).sum();
        report.level_bytes =
            (0..self.family.level_count()).map(|level| bytes(level as u8)).collect();
        report.debt_bytes = debt_bytes(&self.plane, &self.trees);
        report.chains = self.chains;
        report.flushes = self.flushes;
        report.compactions.clone_from(&self.compactions);
        report.base_level = self.base_level;
        report.client_cpu_ns = self.data.client_cpu_ns;
        report.background_cpu_ns = self.data.background_cpu_ns;
        report
    }
}

/// Returns the column family of a region.
fn id_of(region: usize) -> ColumnFamilyId {
    ColumnFamilyId(u32::try_from(region).unwrap_or(u32::MAX))
}

/// Updates what the cost of reads depends on.
fn look_at(tree: &Tree, region: &mut Region) {
    let levels = tree.version.levels();
    region.level0_runs = tree.version.level(0).runs().len() as u64;
    (region.level0_searched, region.level0_on_device) = tree.level0_searched();
    region.levels = levels.iter().skip(1).filter(|level| !level.is_empty()).count() as u64;
}

/// The oldest and newest sequence number in a plan's inputs.
fn seqno_range(plan: &CompactionPlan) -> (SeqNo, SeqNo) {
    let ranges = || input_tables(plan).map(|table| (table.seqno_min, table.seqno_max));
    let oldest = ranges().map(|range| range.0).min().unwrap_or_default();
    let newest = ranges().map(|range| range.1).max().unwrap_or_default();
    (oldest, newest)
}
