//! The engine in virtual time and its model: opening, waiting, writing, and the state after a power
//! failure.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sateen::test_support::clock::{self, VirtualTime};
use sateen::vfs::{CrashChoice, FaultVfs, MemVfs};
use sateen::{
    ColumnFamily, ColumnFamilyOptions, Cursor, Db, Error, Options, ReadOptions, Result, Snapshot,
    WalMode, WriteOptions,
};
use sateen_sim::SimVfs;

use crate::model::{Change, Model, Value, View, same, view_of};
use crate::plan::Plan;
use crate::support::common::{Random, assert_sound, whole};

pub(crate) const PATH: &str = "/db";

/// A write that waits this long while no background work is done is stuck.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);
/// No write may wait longer, even while background work is done.
const ANSWER_WITHIN: Duration = Duration::from_secs(3600);

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) operations: u64,
    pub(crate) virtual_ms: u64,
    pub(crate) power_failures: u64,
    pub(crate) failures_in_recovery: u64,
    pub(crate) kills: u64,
    pub(crate) restarts: u64,
    pub(crate) faults: u64,
    pub(crate) waits: u64,
    pub(crate) device_stalls: u64,
    pub(crate) refused_late: u64,
    pub(crate) checkpoints: u64,
    pub(crate) preemptions: u64,
}

/// An iterator that stays open across other operations.
pub(crate) struct OpenIter {
    pub(crate) iter: Cursor,
    /// The entries that the iterator must show, and its position in them.
    pub(crate) view: Vec<(Vec<u8>, Value)>,
    pub(crate) at: Option<usize>,
}

/// The state of a waiting writer.
struct Waiting {
    calls: Cell<u64>,
    idle: Cell<Duration>,
    all: Cell<Duration>,
    /// The newest sequence number when the writer last began to wait.
    seqno: Cell<u64>,
}

/// The files that the next power failure leaves, and whether they are all files.
type Image = Arc<Mutex<Option<(MemVfs, bool)>>>;

/// The engine and its model.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) options: Options,
    time: VirtualTime,
    pub(crate) sim: SimVfs,
    pub(crate) mem: MemVfs,
    pub(crate) faults: FaultVfs,
    db: Option<Db>,
    waiting: Rc<Waiting>,
    image: Image,
    /// The moment of the next client operation.
    due: Duration,
    pub(crate) random: RefCell<Random>,
    /// Column families, the default one first.
    pub(crate) live: Vec<ColumnFamily>,
    /// The column family that was being created or dropped when the power failed.
    pub(crate) doubtful_family: Option<(u32, String)>,
    pub(crate) model: Model,
    pub(crate) snapshots: Vec<(Snapshot, usize)>,
    pub(crate) iters: Vec<OpenIter>,
    pub(crate) made: u32,
    /// True if faults were injected since the last repair of the disk. Errors are then allowed.
    pub(crate) tainted: bool,
    /// True if faults were injected since the database was opened.
    pub(crate) doubt: bool,
    pub(crate) counts: Counts,
}

impl World {
    pub(crate) fn new(plan: Plan, log: bool) -> World {
        let time = VirtualTime::begin(plan.seed);
        let mem = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(mem.clone()));
        let sim = SimVfs::new(Arc::new(faults.clone()), plan.device.clone(), plan.dirty_max);
        if log {
            sim.keep_log();
        }
        let mut model = Model::default();
        model.add_family(0, "default", &plan.options.column_family.regions);
        let waiting = Waiting {
            calls: Cell::default(),
            idle: Cell::default(),
            all: Cell::default(),
            seqno: Cell::default(),
        };
        let mut world = World {
            options: plan.options.clone(),
            random: RefCell::new(Random::new(plan.seed ^ 0x5EED)),
            plan,
            time,
            sim,
            mem,
            faults,
            db: None,
            waiting: Rc::new(waiting),
            image: Arc::default(),
            due: Duration::ZERO,
            live: Vec::new(),
            doubtful_family: None,
            model,
            snapshots: Vec::new(),
            iters: Vec::new(),
            made: 0,
            tainted: false,
            doubt: false,
            counts: Counts::default(),
        };
        world.open(true);
        world
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("it is open")
    }

    pub(crate) fn below(&self, n: u64) -> u64 {
        self.random.borrow_mut().below(n)
    }

    pub(crate) fn now() -> Duration {
        clock::virtual_time().expect("time is virtual")
    }

    /// Returns the value of a result that may fail only with a disk or power failure.
    #[track_caller]
    pub(crate) fn settle<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.sim.note(what, error.to_string().as_bytes());
                assert!(self.tainted || self.sim.has_failed(), "{what}: {error}");
                None
            }
        }
    }

    /// Returns the value of a result that may fail only with a power failure, because the disk is
    /// healthy.
    #[track_caller]
    pub(crate) fn must<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                assert!(self.sim.has_failed(), "{what}, the disk being well: {error}");
                None
            }
        }
    }

    // ---- time ----------------------------------------------------------------------------------

    /// Lets time pass until the next client operation; background work gets its share of it.
    pub(crate) fn wait_for_client(&mut self) {
        while Self::now() < self.due && !self.sim.has_failed() {
            let left = self.due.saturating_sub(Self::now());
            let works = self.below(100) < self.plan.eager;
            if works && self.settle("a step", self.db().step()) == Some(true) {
                continue;
            }
            let part = left / (1 + self.below(3) as u32);
            clock::advance(part.max(Duration::from_micros(200)).min(left));
        }
        let gap = Duration::from_nanos(self.below(2 * self.plan.gap_ns));
        let pause = self.below(60) == 0;
        self.due += if pause { Duration::from_millis(self.below(20_000)) } else { gap };
    }

    /// Runs background work for callers that wait for it.
    fn serve_waiters(&self, db: &Db) {
        let (db, waiting, sim) = (db.clone(), self.waiting.clone(), self.sim.clone());
        let pass = move |most: Duration| {
            waiting.calls.set(waiting.calls.get() + 1);
            let before = Self::now();
            let worked = matches!(db.step(), Ok(true));
            if !worked {
                clock::advance(most.max(Duration::from_micros(1)));
            }
            let passed = Self::now().saturating_sub(before);
            waiting.idle.set(if worked { Duration::ZERO } else { waiting.idle.get() + passed });
            waiting.all.set(waiting.all.get() + passed);
            waiting.seqno.set(db.latest_sequence_number());
            if waiting.idle.get() > FORGOTTEN_AFTER || waiting.all.get() > ANSWER_WITHIN {
                let state = db.property("sateen.stats").unwrap_or_default();
                let waits = (waiting.idle.get(), waiting.all.get());
                panic!(
                    "a writer waits, idle and in all for {waits:?}, delay {:?}, power {}, health \
                     {:?}: {state}",
                    db.write_delay(),
                    !sim.has_failed(),
                    db.health(),
                );
            }
        };
        self.time.on_wait(Some(Rc::new(pass)));
    }

    // ---- writing -------------------------------------------------------------------------------

    fn has_log(&self, options: &WriteOptions) -> bool {
        self.db().options().wal != WalMode::Off && !options.disable_wal
    }

    /// Writes `changes` to the engine and the model.
    pub(crate) fn write(
        &mut self,
        changes: Vec<Change>,
        options: &WriteOptions,
        act: impl FnOnce(&Db) -> Result<()>,
    ) {
        let logged = self.has_log(options);
        let waiting = &self.waiting;
        waiting.idle.set(Duration::ZERO);
        waiting.all.set(Duration::ZERO);
        waiting.seqno.set(self.db().latest_sequence_number());
        let calls = waiting.calls.get();
        let result = act(self.db());
        self.counts.waits += u64::from(self.waiting.calls.get() > calls);
        // The database itself repeated the write while the writer waited.
        let applied = self.db().latest_sequence_number() > self.waiting.seqno.get();
        match result {
            Ok(()) => {
                assert!(logged || !options.sync, "a synced write without a log was acknowledged");
                assert_eq!(applied, !changes.is_empty(), "an acknowledged write is visible");
                self.model.commit(changes, logged, true);
                if logged && (options.sync || self.db().options().wal == WalMode::SyncEachWrite) {
                    self.model.log_is_durable();
                }
            }
            Err(Error::InvalidArgument(_)) if options.sync && !logged => assert!(!applied),
            Err(Error::WouldStall { .. }) if options.deadline.is_some() => {
                assert!(!applied);
                self.counts.refused_late += 1;
            }
            Err(error) => {
                self.settle::<()>("a write", Err(error.clone()));
                match applied {
                    true => self.model.commit(changes, logged, false),
                    // The write was refused before it reached the WAL.
                    false if matches!(error, Error::Background { .. }) => {}
                    false => self.model.maybe(changes, logged),
                }
                if self.model.unsure() > 5 && !self.sim.has_failed() {
                    self.mend(true);
                }
            }
        }
    }

    // ---- reading -------------------------------------------------------------------------------

    /// Reads a whole column family forwards and checks that the backward read is the same. Values
    /// that a compaction would remove are left out.
    pub(crate) fn read(family: &ColumnFamily, options: &ReadOptions) -> Result<View> {
        Ok(view_of(whole(family.cursor(options)?, <[u8]>::to_vec)?))
    }

    /// Compares the whole of `family` with the model's state `at`.
    pub(crate) fn compare(&self, family: &ColumnFamily, options: &ReadOptions, at: usize) {
        let Some(found) = self.settle("a scan", Self::read(family, options)) else {
            return;
        };
        same(&found, &self.model.view_within(family.id(), options, at), family.name());
        found.iter().for_each(|(key, value)| {
            self.sim.note("shown", key);
            self.sim.note("as", value);
        });
    }

    pub(crate) fn compare_all(&self) {
        for family in &self.live {
            self.compare(family, &ReadOptions::default(), self.model.now());
        }
    }

    // ---- closing and opening -------------------------------------------------------------------

    pub(crate) fn forget_readers(&mut self) {
        self.iters.clear();
        self.snapshots.clear();
    }

    fn leave(&mut self) {
        self.forget_readers();
        self.live.clear();
        self.time.on_wait(None);
        if let Some(db) = self.db.take() {
            let metrics = db.metrics();
            self.counts.preemptions += metrics.scheduler.preemptions;
        }
        let sites = self.faults.sites();
        self.counts.faults += sites.iter().map(|(_, counts)| counts.faults).sum::<u64>();
        self.faults.reset_sites();
    }

    /// Opens the database and checks that its state is a possible one. With `all`, no logged write
    /// may be missing.
    fn open(&mut self, mut all: bool) {
        loop {
            let families: Vec<(String, ColumnFamilyOptions)> = self
                .model
                .families
                .values()
                .skip(1)
                .map(|family| (family.name.clone(), self.options.column_family.clone()))
                .collect();
            // Half of the families get explicit options, with the same values.
            let families: Vec<_> =
                families.iter().step_by(2).map(|(name, own)| (&**name, own.clone())).collect();
            let vfs = Arc::new(self.sim.clone());
            let opened = Db::open_with(vfs, PATH, self.options.clone(), &families);
            let opened = match opened {
                // The family did not exist yet when the power failed.
                Err(Error::NoSuchColumnFamily(_)) if self.doubtful_family.is_some() => {
                    let (id, _) = self.doubtful_family.take().expect("it is some");
                    self.model.families.remove(&id);
                    continue;
                }
                opened => opened,
            };
            if let Some(db) = self.must("open", opened) {
                self.serve_waiters(&db);
                self.db = Some(db);
                self.tainted = false;
                if self.adopt(all) {
                    return;
                }
            }
            self.counts.failures_in_recovery += 1;
            all &= self.take_image();
        }
    }

    /// Takes over the state of the opened database. Returns false if the power fails meanwhile.
    fn adopt(&mut self, all: bool) -> bool {
        let mut recovered = BTreeMap::new();
        self.live.clear();
        for name in self.db().column_families() {
            let family = self.db().column_family(&name).expect("it is listed");
            let read = Self::read(&family, &ReadOptions::default());
            let Some(found) = self.must("a scan", read) else { return false };
            recovered.insert(family.id(), found);
            self.live.push(family);
        }
        self.live.sort_by_key(ColumnFamily::id);
        let found: Vec<(u32, String)> =
            self.live.iter().map(|family| (family.id(), family.name().to_owned())).collect();
        if let Some((id, name)) = self.doubtful_family.take() {
            let same_name = found.iter().find(|(_, found)| *found == name);
            let id = same_name.map_or(id, |(id, _)| *id);
            let here = same_name.is_some();
            match (here, self.model.families.contains_key(&id)) {
                (true, false) => {
                    self.model.add_family(id, &name, &self.options.column_family.regions);
                }
                (false, true) => drop(self.model.families.remove(&id)),
                _ => {}
            }
        }
        let expected: Vec<_> =
            self.model.families.iter().map(|(id, family)| (*id, family.name.clone())).collect();
        assert_eq!(found, expected, "the column families after opening");
        if let Err(why) = self.model.allows(&recovered, all && !self.doubt) {
            panic!("{why}");
        }
        if self.below(4) == 0 && !self.sim.has_failed() {
            let report = self.db().check(&mut |_, _| {});
            let Some(report) = self.must("check", report) else { return false };
            assert!(report.problems.is_empty() || self.sim.has_failed(), "{:#?}", report.problems);
        }
        self.model.rebase_on(recovered);
        self.doubt = false;
        true
    }

    /// Closes and opens the database. A close that returns Ok has stored everything.
    pub(crate) fn restart(&mut self) {
        self.forget_readers();
        let closed = self.settle("close", self.db().close()).is_some();
        if self.sim.has_failed() {
            return;
        }
        self.counts.restarts += 1;
        self.leave();
        self.faults.clear();
        if closed || !self.doubt {
            let ids: Vec<u32> = self.model.families.keys().copied().collect();
            ids.into_iter().for_each(|id| self.model.is_stored(id));
        }
        self.open(true);
    }

    /// Repairs the disk and checks that the database works again and has lost nothing. With `anew`,
    /// it is also closed and opened.
    pub(crate) fn mend(&mut self, anew: bool) {
        self.faults.clear();
        if self.tainted {
            let resumed = self.db().resume();
            if self.must("resume", resumed).is_none() {
                return;
            }
            self.tainted = false;
            self.compare_all();
        }
        if anew && self.must("a flush", self.db().flush_all()).is_some() {
            self.restart();
        }
    }

    // ---- power ---------------------------------------------------------------------------------

    pub(crate) fn choice(&self) -> CrashChoice {
        match self.below(10) {
            0..2 => CrashChoice::SyncedOnly,
            2 => CrashChoice::Everything,
            3 => CrashChoice::NamesOnly,
            4 => CrashChoice::DataOnly,
            5 => CrashChoice::Sectors(self.below(u64::MAX)),
            6 => CrashChoice::TornLast { bytes: 512 * self.below(4) },
            7 => CrashChoice::Prefix(self.below(20) as usize),
            _ => CrashChoice::Subset(self.below(u64::MAX)),
        }
    }

    /// Makes the power fail after this many calls. If `choice` keeps everything, this is the death
    /// of the process.
    pub(crate) fn fail_within(&self, calls: u64, choice: CrashChoice) {
        let (mem, image) = (self.mem.clone(), self.image.clone());
        self.sim.fail_power(calls, move || {
            let left = (mem.crash_image(choice), choice == CrashChoice::Everything);
            *image.lock().expect("nobody panicked") = Some(left);
        });
    }

    /// Continues with the files that the power failure left. Returns true if these are all files.
    fn take_image(&mut self) -> bool {
        let (image, all) =
            self.image.lock().expect("nobody panicked").take().expect("the power failed");
        self.leave();
        self.mem = image;
        self.faults = FaultVfs::new(Arc::new(self.mem.clone()));
        self.sim = self.sim.with_files(Arc::new(self.faults.clone()));
        self.sim.switch_power(true);
        if self.below(4) == 0 {
            self.fail_within(1 + self.below(60), self.choice());
        }
        all
    }

    /// Opens the database again after a power failure.
    pub(crate) fn recover(&mut self) {
        // Operations in progress may have been done or not.
        let all = self.take_image();
        match all {
            true => self.counts.kills += 1,
            false => self.counts.power_failures += 1,
        }
        self.open(all);
    }

    /// Ends the run and counts what it did.
    pub(crate) fn finish(&mut self) {
        self.leave();
        // Files without a name vanish with their last handle.
        let named = self.mem.crash_image(CrashChoice::Everything).used_bytes();
        assert_eq!(self.mem.used_bytes(), named, "a file without a name is still open");
        self.counts.virtual_ms = Self::now().as_millis() as u64;
        self.counts.device_stalls = self.sim.counts().stalls;
    }

    pub(crate) fn assert_sound(&self) {
        assert_sound(self.db());
    }
}
