//! The control plane drives a model of an engine: tables are maps from keys to sequence numbers, no
//! bytes. Whatever the options and the interleaving of events, compactions never touch each other,
//! every version is valid, the newest value of every key is found, deleted keys stay deleted, and
//! in the end nothing is left to do and nothing is held.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod checks;
mod flushes;
mod random;
mod scheduling;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sateen_control::compaction::{CompactionReason, InFlight, KeysBelow, LevelTargets, TreeView};
use sateen_control::options::BottommostLevelCompaction;
use sateen_control::policy::ManualPath;
use sateen_control::version::{AddedTable, Placement};
use sateen_control::{
    Action, AdmissionState, CfOptions, ColumnFamilyId, CompactionPlan, ControlOptions,
    ControlPlane, Event, FileId, FlushMember, Instant, IoClass, JobId, JobResult, RequestId,
    Sample, SeqNo, TableId, TableMeta, UserKey, Version, VersionEdit,
};

use random::{Random, random_control, random_options};

const KEYS: u64 = 400;
const ENTRY_BYTES: u64 = 100;

/// Key to (sequence number, whether it is a put).
type Entries = BTreeMap<u64, (u64, bool)>;

fn key(n: u64) -> UserKey {
    UserKey::bytewise(n.to_be_bytes())
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

struct Family {
    options: CfOptions,
    version: Arc<Version>,
    /// Oldest first.
    sealed: Vec<Entries>,
    truth: BTreeMap<u64, u64>,
}

enum Work {
    Flush(Vec<FlushMember>),
    Compaction(Arc<CompactionPlan>),
}

struct Job {
    work: Work,
    granted: Option<u64>,
    steps_left: u64,
    discarded: bool,
    finish_early: bool,
}

struct World {
    plane: ControlPlane,
    /// Flushes are of all column families.
    together: bool,
    random: Random,
    now: Instant,
    families: BTreeMap<ColumnFamilyId, Family>,
    tables: BTreeMap<TableId, Entries>,
    jobs: BTreeMap<JobId, Job>,
    requests: BTreeMap<RequestId, bool>,
    paused: BTreeSet<JobId>,
    /// Column families whose writers are not as fast as they can.
    slowed_down: BTreeSet<ColumnFamilyId>,
    /// What has happened since the last sample, and when that was.
    sample: Sample,
    sampled_at: Instant,
    last_seqno: u64,
    last_table: u64,
    last_epoch: u64,
    last_request: u64,
    seen: Seen,
}

/// What a world has gone through.
#[derive(Debug, Default)]
struct Seen {
    parallel_max: usize,
    plans: usize,
    moves: usize,
    intra: usize,
    charged: usize,
    manual: usize,
    delayed: usize,
    stopped: usize,
    preempted: usize,
    out_of_slots: usize,
    adjusted: usize,
    peaks: usize,
    resumed: usize,
    /// Compactions that were told to end early, and those that did before they were done.
    told_to_end: usize,
    ended_early: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let plane = ControlPlane::new(random_control(&mut random));
        let mut world = World {
            together: plane.options().atomic_flush,
            plane,
            random,
            now: Instant(0),
            families: BTreeMap::new(),
            tables: BTreeMap::new(),
            jobs: BTreeMap::new(),
            requests: BTreeMap::new(),
            paused: BTreeSet::new(),
            slowed_down: BTreeSet::new(),
            sample: Sample::default(),
            sampled_at: Instant(0),
            last_seqno: 0,
            last_table: 0,
            last_epoch: 0,
            last_request: 0,
            seen: Seen::default(),
        };
        for cf in 0..1 + world.random.below(3) as u32 {
            world.add_family(ColumnFamilyId(cf));
        }
        world
    }

    fn add_family(&mut self, cf: ColumnFamilyId) {
        let options = random_options(&mut self.random);
        let style = options.compaction_style.name().to_owned();
        let version = Arc::new(Version::new(cf, options.level_count()).with_style(style));
        let event = Event::ColumnFamilyAdded {
            options: Arc::new(options.clone()),
            version: version.clone(),
        };
        self.plane.handle(self.now, event);
        let family = Family { options, version, sealed: Vec::new(), truth: BTreeMap::new() };
        self.families.insert(cf, family);
    }

    fn random_family(&mut self) -> ColumnFamilyId {
        let nth = self.random.below(self.families.len() as u64) as usize;
        *self.families.keys().nth(nth).unwrap()
    }

    /// Some writes to one column family, sequential or random, and its memtable is sealed.
    fn write_and_seal(&mut self, count: u64) {
        let cf = self.random_family();
        let base = self.random.below(KEYS);
        let sequential = !self.random.one_in(3);
        self.sample.user_bytes += count * ENTRY_BYTES;
        let mut memtable = Entries::new();
        for i in 0..count {
            let key = if sequential { base + i } else { self.random.below(KEYS) };
            let deleted = self.random.one_in(4);
            self.last_seqno += 1;
            memtable.insert(key, (self.last_seqno, !deleted));
            let truth = &mut self.families.get_mut(&cf).unwrap().truth;
            if deleted {
                truth.remove(&key);
            } else {
                truth.insert(key, self.last_seqno);
            }
        }
        self.families.get_mut(&cf).unwrap().sealed.push(memtable);
        self.memtables_changed(cf);
        if self.random.one_in(3) {
            self.plane.handle(self.now, Event::FlushRequested { cf });
        }
    }

    fn memtables_changed(&mut self, cf: ColumnFamilyId) {
        let size_bytes = self.size_bytes();
        let sealed = &self.families[&cf].sealed;
        let event = Event::MemtablesChanged {
            cf,
            sealed: sealed.len() as u32,
            sealed_bytes: sealed.iter().map(|m| m.len() as u64 * ENTRY_BYTES).sum(),
            active_bytes: 0,
            size_bytes,
        };
        self.plane.handle(self.now, event);
        self.check_batch(cf);
    }

    /// One table of `entries`.
    fn table(&mut self, entries: Entries) -> Arc<TableMeta> {
        self.last_table += 1;
        let id = TableId(self.last_table);
        let meta = TableMeta {
            id,
            placement: Placement::WholeFile(FileId(id.0)),
            size_bytes: entries.len() as u64 * ENTRY_BYTES,
            smallest: key(*entries.keys().next().unwrap()),
            largest: key(*entries.keys().next_back().unwrap()),
            seqno_min: SeqNo(entries.values().map(|e| e.0).min().unwrap()),
            seqno_max: SeqNo(entries.values().map(|e| e.0).max().unwrap()),
            entries: entries.len() as u64,
            tombstones: entries.values().filter(|e| !e.1).count() as u64,
            merges: 0,
            ranges_applied: SeqNo(0),
            global_seqno: SeqNo(0),
            raw_bytes: entries.len() as u64 * ENTRY_BYTES,
            tail_bytes: 0,
            sketch: None,
            values: Default::default(),
        };
        self.tables.insert(id, entries);
        Arc::new(meta)
    }

    fn install(&mut self, cf: ColumnFamilyId, edit: &VersionEdit) {
        let family = self.families.get_mut(&cf).unwrap();
        let next = family.version.apply(edit).unwrap_or_else(|e| panic!("{e}: {edit:?}"));
        next.validate().unwrap();
        family.version = Arc::new(next);
        let version = family.version.clone();
        self.plane.handle(self.now, Event::VersionInstalled { version });
    }

    fn finish_compaction(&mut self, plan: &CompactionPlan, early: bool) {
        let mut merged = Entries::new();
        for table in plan.rewrite.iter().flat_map(|input| &input.tables) {
            for (key, entry) in &self.tables[&table.id] {
                // Newest data first: what is there is newer.
                let newest = merged.entry(*key).or_insert(*entry);
                assert!(newest.0 >= entry.0, "inputs are not newest first: {plan}");
            }
        }
        let mut below = KeysBelow::new(&plan.below(&self.families[&plan.cf].version));
        merged.retain(|n, entry| entry.1 || below.may_contain(key(*n).bytes()));
        let mut cutter = plan.output_cutter(plan.grandparents(&self.families[&plan.cf].version));
        let mut outputs = vec![Entries::new()];
        let mut edit = plan.edit();
        let mut early_end = plan.early_end().filter(|_| early);
        for (n, entry) in merged {
            let has_written = !outputs[0].is_empty();
            if let Some(end) = &mut early_end
                && end.may_end_before(key(n).bytes())
                && has_written
            {
                edit = plan.edit_before(key(n).bytes());
                self.seen.ended_early += 1;
                break;
            }
            let bytes = outputs.last().unwrap().len() as u64 * ENTRY_BYTES;
            if cutter.cut_before(key(n).bytes(), bytes) {
                outputs.push(Entries::new());
            }
            outputs.last_mut().unwrap().insert(n, entry);
        }
        for output in outputs.into_iter().filter(|output| !output.is_empty()) {
            let (level, epoch) = (plan.output_level, plan.output_epoch);
            let table = self.table(output);
            edit.added.push(AddedTable { level, epoch, table });
        }
        self.install(plan.cf, &edit);
    }

    /// Does what the plane says.
    fn act(&mut self, action: Action) {
        match action {
            Action::StartFlush { job, cf, memtables, stripes } => {
                assert!(memtables >= 1 && !self.together);
                self.start_flush(job, vec![FlushMember { cf, memtables, stripes }]);
            }
            Action::StartFlushTogether { job, members } => {
                let flushes = self.jobs.values().any(|job| matches!(job.work, Work::Flush(_)));
                assert!(self.together && !flushes, "two flushes of all");
                assert!(members.iter().map(|member| member.cf).eq(self.families.keys().copied()));
                let sealed = |member: &FlushMember| self.families[&member.cf].sealed.len();
                assert!(members.iter().all(|m| m.memtables as usize == sealed(m)), "a part of it");
                assert!(members.iter().any(|member| member.memtables > 0));
                self.start_flush(job, members);
            }
            Action::StartCompaction { job, plan } => {
                self.check_plan(&plan);
                self.seen.plans += 1;
                self.seen.moves += usize::from(plan.is_trivial_move());
                self.seen.intra += usize::from(plan.output_level == 0);
                self.seen.charged += usize::from(plan.reason == CompactionReason::Charged);
                self.start(job, Work::Compaction(plan));
                let running = |job: &&Job| matches!(job.work, Work::Compaction(_));
                let running = self.jobs.values().filter(running).count();
                self.seen.parallel_max = self.seen.parallel_max.max(running);
            }
            Action::Grant { job, bytes } => {
                assert!(bytes > 0 && !self.paused.contains(&job), "{job} is paused");
                let job = self.jobs.get_mut(&job).expect("a grant for a running job");
                assert_eq!(job.granted.replace(bytes), None, "two grants at a time");
            }
            Action::Discard { job } => self.discard(job),
            Action::FinishEarly { job } => {
                self.seen.told_to_end += 1;
                let job = self.jobs.get_mut(&job).expect("a running job ends early");
                assert!(!std::mem::replace(&mut job.finish_early, true), "told twice");
            }
            Action::SetLimit(adjustment) => self.adjusted(&adjustment),
            Action::Note(note) => self.note(&note),
            Action::Admit(admission) => self.admitted(&admission),
            Action::AdmitFamily { cf, admission } => {
                self.admitted(&admission);
                match admission.state {
                    AdmissionState::Open => self.slowed_down.remove(&cf),
                    _ => self.slowed_down.insert(cf),
                };
            }
            Action::ManualDone { request, complete } => {
                self.seen.manual += usize::from(complete);
                let done = self.requests.get_mut(&request).unwrap();
                assert!(!std::mem::replace(done, true), "{request} is done twice");
            }
        }
    }

    fn start(&mut self, id: JobId, work: Work) {
        // Compactions outlast many flushes.
        let steps_left = match work {
            Work::Flush(ref members) => members.len() as u64 + self.random.below(3),
            Work::Compaction(_) => 1 + self.random.below(40),
        };
        let (discarded, finish_early) = (false, false);
        let job = Job { work, granted: None, steps_left, discarded, finish_early };
        assert!(self.jobs.insert(id, job).is_none());
    }

    /// One job that has a grant takes a step.
    fn step(&mut self, faults: bool) -> bool {
        let ready: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| job.granted.is_some()).map(|(id, _)| *id).collect();
        if ready.is_empty() {
            return false;
        }
        let id = ready[self.random.below(ready.len() as u64) as usize];
        let job = self.jobs.get_mut(&id).unwrap();
        let bytes = job.granted.take().unwrap();
        job.steps_left -= 1;
        let ends = job.finish_early && self.random.one_in(3);
        let over = job.steps_left == 0 || job.discarded || ends;
        let moved = bytes + bytes / 8;
        let class = &mut self.sample.classes[job.work.class().index()];
        class.write_bytes += moved;
        class.write_ns += moved * 5;
        if job.work.class() != IoClass::Flush {
            class.read_bytes += moved;
            class.read_ns += moved * 5;
        }
        let stepped =
            Event::JobStepped { job: id, read_bytes: moved, written_bytes: moved, cpu_ns: 0 };
        self.plane.handle(self.now, stepped);
        if !over {
            return true;
        }
        let job = self.remove(id);
        let families = match &job.work {
            Work::Flush(members) => members.iter().map(|member| member.cf).collect(),
            Work::Compaction(plan) => vec![plan.cf],
        };
        // A family may be gone before its jobs are told.
        let gone = families.iter().any(|cf| !self.families.contains_key(cf));
        let result = if job.discarded || gone {
            JobResult::Cancelled
        } else if faults && self.random.one_in(8) {
            match self.random.below(3) {
                0 => JobResult::Failed,
                1 => JobResult::NoSpace,
                _ => JobResult::Cancelled,
            }
        } else {
            match job.work {
                Work::Flush(members) => {
                    for member in members.iter().filter(|member| member.memtables > 0) {
                        self.finish_flush(member.cf, member.memtables as usize, &member.stripes);
                    }
                }
                Work::Compaction(plan) => self.finish_compaction(&plan, ends),
            }
            JobResult::Done
        };
        self.plane.handle(self.now, Event::JobFinished { job: id, result });
        true
    }

    fn poll(&mut self) {
        let mut polls = 0;
        while let Some(action) = self.plane.poll(self.now) {
            self.act(action);
            polls += 1;
            assert!(polls < 10_000, "the plane never stops");
        }
        assert!(self.plane.poll(self.now).is_none());
    }

    fn compact_range(&mut self) {
        let cf = self.random_family();
        self.last_request += 1;
        let request = RequestId(self.last_request);
        let a = self.random.below(KEYS);
        let b = a + self.random.below(KEYS);
        let bottommost = match self.random.below(3) {
            0 => BottommostLevelCompaction::Skip,
            1 => BottommostLevelCompaction::IfTombstones,
            _ => BottommostLevelCompaction::Force,
        };
        let begin = (!self.random.one_in(3)).then(|| key(a));
        let end = (!self.random.one_in(3)).then(|| key(b));
        self.requests.insert(request, false);
        let event = Event::CompactRange { request, cf, begin, end, bottommost };
        self.plane.handle(self.now, event);
        if self.random.one_in(6) {
            self.plane.handle(self.now, Event::CompactRangeCancelled { request });
        }
    }

    fn something(&mut self) {
        match self.random.below(100) {
            0..20 => {
                let most = if self.random.one_in(2) { 20 } else { 150 };
                let count = 1 + self.random.below(most);
                self.write_and_seal(count);
            }
            20..23 => self.compact_range(),
            23 => {
                // A running database cannot change this one.
                let atomic_flush = self.together;
                let options = ControlOptions { atomic_flush, ..random_control(&mut self.random) };
                let options = Box::new(options);
                self.plane.handle(self.now, Event::OptionsChanged { options });
            }
            24 => {
                let cf = self.random_family();
                let CfOptions { levels, compaction_style, .. } = self.families[&cf].options;
                let options = random_options(&mut self.random);
                let options = CfOptions { levels, compaction_style, ..options };
                self.families.get_mut(&cf).unwrap().options = options.clone();
                let options = Arc::new(options);
                self.plane.handle(self.now, Event::CfOptionsChanged { cf, options });
            }
            25 => {
                let paused = self.random.one_in(3);
                self.plane.handle(self.now, Event::Paused(paused));
            }
            26 if self.families.len() > 1 && self.random.one_in(10) => {
                let cf = self.random_family();
                self.families.remove(&cf);
                self.slowed_down.remove(&cf);
                self.plane.handle(self.now, Event::ColumnFamilyDropped { cf });
            }
            27..30 => self.charge_table(),
            _ => {
                self.step(true);
            }
        }
        self.now = Instant(self.now.0 + self.random.below(20_000_000));
        self.take_sample(true);
        if !self.random.one_in(5) {
            self.poll();
        }
    }

    /// No more load and no more faults: everything must come to rest.
    fn quiesce(&mut self) {
        self.plane.handle(self.now, Event::Paused(false));
        for cf in self.families.keys().copied().collect::<Vec<_>>() {
            self.plane.handle(self.now, Event::FlushRequested { cf });
        }
        for _ in 0..200_000 {
            self.take_sample(false);
            self.poll();
            if self.step(false) {
                continue;
            }
            match self.plane.poll_timeout() {
                Some(at) => self.now = Instant(at.0.max(self.now.0 + 1)),
                None if self.jobs.is_empty() => break,
                // Clients may be in the way: after some samples without any it goes on.
                None => self.now = Instant(self.now.0 + 10_000_000),
            }
        }
        // Nothing is in the way of writers any more: they hear of it with the next sample.
        self.now = Instant(self.now.0 + 10_000_000_000);
        self.take_sample(false);
        self.poll();
        assert!(self.slowed_down.is_empty(), "slowed down for ever: {:?}", self.slowed_down);
        assert!(self.jobs.is_empty(), "jobs hang: {:?}", self.jobs.keys());
        assert!(self.plane.is_idle() && self.plane.in_flight().is_empty());
        assert!(self.requests.values().all(|done| *done), "{:?}", self.requests);
        for (cf, family) in &self.families {
            assert!(family.sealed.is_empty());
            // The tuner may have changed the sizes.
            let options = self.plane.family_options(*cf).expect("a family");
            let version = &family.version;
            let targets = LevelTargets::new(version, options);
            let view = TreeView { version, options, targets: &targets };
            let scores = options.policy().scores(&view, &InFlight::default());
            assert!(scores.iter().all(|s| s.score < 1.0), "{scores:?}\n{version}");
        }
        let admission = self.plane.admission();
        assert_eq!(admission.state, AdmissionState::Open, "{admission}");
    }

    /// Everything compacted at once: one level is left, and no tombstone.
    fn compact_all(&mut self) {
        for cf in self.families.keys().copied().collect::<Vec<_>>() {
            self.last_request += 1;
            let request = RequestId(self.last_request);
            self.requests.insert(request, false);
            let bottommost = BottommostLevelCompaction::IfTombstones;
            let event = Event::CompactRange { request, cf, begin: None, end: None, bottommost };
            self.plane.handle(self.now, event);
        }
        self.quiesce();
        self.check_reads();
        for family in self.families.values() {
            let version = &family.version;
            if family.options.policy().manual_path(version) == ManualPath::Stays {
                continue;
            }
            let used = version.levels().iter().filter(|level| !level.is_empty()).count();
            assert!(used <= 1 && version.level(0).is_empty(), "{version}");
            assert_eq!(version.tables().map(|(_, _, table)| table.tombstones).sum::<u64>(), 0);
        }
    }
}

fn run(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..3 {
        for _ in 0..400 {
            world.something();
        }
        world.quiesce();
        world.check_reads();
    }
    // One level holds everything only if its target is large enough.
    for (cf, family) in &mut world.families {
        family.options.level_base_bytes = 1 << 30;
        let options = Arc::new(family.options.clone());
        world.plane.handle(world.now, Event::CfOptionsChanged { cf: *cf, options });
    }
    world.compact_all();
    world
}

#[test]
fn comes_to_rest_and_loses_nothing() {
    let mut all = Seen::default();
    for seed in 0..400 {
        let world = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|panic| {
            eprintln!("REPLAY: seed {seed}");
            std::panic::resume_unwind(panic)
        });
        all.parallel_max = all.parallel_max.max(world.seen.parallel_max);
        all.plans += world.seen.plans;
        all.moves += world.seen.moves;
        all.intra += world.seen.intra;
        all.charged += world.seen.charged;
        all.manual += world.seen.manual;
        all.delayed += world.seen.delayed;
        all.stopped += world.seen.stopped;
        all.preempted += world.seen.preempted;
        all.out_of_slots += world.seen.out_of_slots;
        all.adjusted += world.seen.adjusted;
        all.peaks += world.seen.peaks;
        all.resumed += world.seen.resumed;
        all.told_to_end += world.seen.told_to_end;
        all.ended_early += world.seen.ended_early;
    }
    println!("{all:?}");
    // The random worlds reach what they are meant to reach.
    assert!(all.parallel_max >= 3 && all.plans > 5000 && all.moves > 500 && all.intra > 100);
    assert!(all.charged > 50, "tables that reads were charged to");
    assert!(all.manual > 300 && all.delayed > 100 && all.stopped > 100);
    assert!(all.preempted > 30 && all.peaks > 30 && all.resumed > 30);
    assert!(all.told_to_end > 50 && all.ended_early > 3);
    assert!(all.adjusted > 300 && all.out_of_slots > 30);
}

#[test]
fn the_same_events_make_the_same_decisions() {
    let trace = |seed| {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.something();
        }
        let jobs: Vec<_> =
            world.plane.jobs().map(|(id, _, plan)| (id, plan.map(|p| p.to_string()))).collect();
        (jobs, world.last_table, world.now, world.plane.admission())
    };
    for seed in 1000..1010 {
        assert_eq!(trace(seed), trace(seed));
    }
}
