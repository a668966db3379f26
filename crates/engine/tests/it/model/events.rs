//! Jobs that are paused, preempted, told to end early or given up at every place where they may be:
//! nothing is lost, nothing comes back, and slots, inputs, pins and files are free again at the
//! end. One thread drives it all: a seeded scheduler decides before each step which job has it, and
//! what happens to the others.

use sateen::test_support::Interference;
use sateen::timeline::{EventKind, Timeline};
use sateen::vfs::MemVfs;
use sateen::{
    ColumnFamily, CompactRangeOptions, Cursor, Db, FlushOptions, Options, Preemption, ReadOptions,
    Snapshot, WriteOptions,
};
use std::path::Path;

use crate::support::common::{Contents, Random, as_vfs, assert_sound, read_all, small};
use crate::support::leaks;
use crate::support::rel::Watch;

const DB: &str = "/db";
const FAMILIES: usize = 3;

/// What happened to jobs.
#[derive(Clone, Copy, Debug, Default)]
struct Happened {
    preempted: u64,
    paused: u64,
    resumed: u64,
    discarded: u64,
    ended_early: u64,
    chosen: u64,
}

impl Happened {
    fn add(&mut self, other: Happened) {
        self.preempted += other.preempted;
        self.paused += other.paused;
        self.resumed += other.resumed;
        self.discarded += other.discarded;
        self.ended_early += other.ended_early;
        self.chosen += other.chosen;
    }
}

struct Family {
    handle: ColumnFamily,
    model: Contents,
}

struct World {
    db: Db,
    random: Random,
    families: Vec<Family>,
    snapshots: Vec<(Snapshot, Vec<(String, Contents)>)>,
    iterators: Vec<(Cursor, Contents)>,
    timeline: Timeline,
    happened: Happened,
    made: usize,
}

impl World {
    fn new(vfs: &MemVfs, options: &Options, seed: u64) -> World {
        let db = Db::open_with(as_vfs(vfs), DB, options.clone(), &[]).unwrap();
        let handle = db.default_column_family();
        let mut world = World {
            db,
            random: Random::new(seed),
            families: vec![Family { handle, model: Contents::new() }],
            snapshots: Vec::new(),
            iterators: Vec::new(),
            timeline: Timeline::default(),
            happened: Happened::default(),
            made: 0,
        };
        (1..FAMILIES).for_each(|_| world.create_family());
        world
    }

    fn create_family(&mut self) {
        self.made += 1;
        let options = self.db.options().column_family;
        let handle = self.db.create_column_family(&format!("f{}", self.made), options).unwrap();
        self.families.push(Family { handle, model: Contents::new() });
    }

    fn write(&mut self) {
        let at = self.random.below(self.families.len() as u64) as usize;
        let family = &mut self.families[at];
        for _ in 0..10 + self.random.below(60) {
            let key = format!("key{:03}", self.random.below(1000)).into_bytes();
            let options = WriteOptions::default();
            if self.random.one_in(8) {
                family.handle.writing(&options).delete(&key).unwrap();
                family.model.remove(&key);
            } else {
                let length = 20 + self.random.below(80) as usize;
                let value = vec![b'a' + self.random.below(26) as u8; length];
                family.handle.writing(&options).put(&key, &value).unwrap();
                family.model.insert(key, value);
            }
        }
    }

    /// Something happens between two steps.
    fn interfere(&mut self) {
        let number = self.random.next();
        let (how, told) = match self.random.below(16) {
            0..6 => (Interference::NextStep(number), true),
            6..9 => (Interference::Discard(number), false),
            9 => (Interference::FinishEarly(number), false),
            10 | 11 => (Interference::Adjust(number), false),
            12..14 => {
                let slots = if self.random.one_in(2) { "1" } else { "4" };
                return self.db.set_options(&[("max_background_compactions", slots)]).unwrap();
            }
            _ => return,
        };
        self.happened.chosen += u64::from(self.db.interfere(how) && told);
    }

    fn steps(&mut self) {
        // Often fewer than there are to do: what is begun is still there when more comes.
        let most = [4, 4, 8, 24][self.random.below(4) as usize];
        for _ in 0..self.random.below(most) {
            self.interfere();
            self.db.step().unwrap();
        }
        self.look();
    }

    /// Counts what the recorder has of it.
    fn look(&mut self) {
        self.db.extend_timeline(&mut self.timeline);
        assert_eq!(self.timeline.lost_events, 0, "the recorder is looked at often enough");
        for event in std::mem::take(&mut self.timeline.events) {
            match event.kind {
                EventKind::Paused { .. } => self.happened.paused += 1,
                EventKind::Resumed { .. } => self.happened.resumed += 1,
                EventKind::Discarded { .. } => self.happened.discarded += 1,
                EventKind::FinishEarly { .. } => self.happened.ended_early += 1,
                _ => {}
            }
        }
        self.timeline.steps.clear();
        self.timeline.slow.clear();
    }

    fn act(&mut self) {
        self.write();
        match self.random.below(20) {
            0 if self.snapshots.len() < 3 => {
                let named = |f: &Family| (f.handle.name().to_owned(), f.model.clone());
                let models = self.families.iter().map(named).collect();
                self.snapshots.push((self.db.snapshot(), models));
            }
            1 if !self.snapshots.is_empty() => self.release_snapshot(),
            2 if self.iterators.len() < 3 => {
                let at = self.random.below(self.families.len() as u64) as usize;
                let family = &self.families[at];
                let iter = family.handle.cursor(&ReadOptions::default()).unwrap();
                self.iterators.push((iter, family.model.clone()));
            }
            3 if !self.iterators.is_empty() => self.release_iterator(),
            4 => {
                let at = self.random.below(self.families.len() as u64) as usize;
                let options = CompactRangeOptions { wait: false, ..Default::default() };
                self.families[at].handle.compact_range(None, None, &options).unwrap();
            }
            5 => {
                let at = self.random.below(self.families.len() as u64) as usize;
                let options = FlushOptions { wait: false };
                self.families[at].handle.flush_with(&options).unwrap();
            }
            6 if self.random.one_in(3) => {
                // Its jobs are given up wherever they are.
                let family = self.families.remove(1);
                self.db.drop_column_family(&family.handle).unwrap();
                self.create_family();
            }
            7 => self.compare(),
            8 if self.random.one_in(3) => self.db.wait_idle().unwrap(),
            _ => {}
        }
        self.steps();
    }

    fn release_snapshot(&mut self) {
        let (snapshot, models) = self.snapshots.remove(0);
        for (name, expected) in models {
            let Some(family) = self.db.column_family(&name) else { continue };
            let found = read_all(&family, &ReadOptions::at(&snapshot));
            assert!(found == expected, "{name}: a snapshot shows another state");
        }
    }

    fn release_iterator(&mut self) {
        let (mut iter, expected) = self.iterators.remove(0);
        let mut expected = expected.iter();
        iter.seek_to_first();
        while iter.valid() {
            let entry = expected.next().expect("an iterator shows more than there was");
            assert!((iter.key(), iter.value()) == (&**entry.0, &**entry.1));
            iter.next();
        }
        iter.status().unwrap();
        assert!(expected.next().is_none(), "an iterator shows less than there was");
    }

    fn compare(&self) {
        for family in &self.families {
            let found = read_all(&family.handle, &ReadOptions::default());
            assert!(found == family.model, "{}: another state", family.handle.name());
        }
    }

    /// Nobody interferes any more: all comes to an end, and all is given back.
    fn end(mut self, vfs: &MemVfs) -> Happened {
        while !self.snapshots.is_empty() {
            self.release_snapshot();
        }
        while !self.iterators.is_empty() {
            self.release_iterator();
        }
        self.compare();
        self.db.set_options(&[("max_background_compactions", "2")]).unwrap();
        leaks::bring_to_rest(&self.db);
        self.compare();
        assert_sound(&self.db);
        self.look();
        let scheduler = self.db.metrics().scheduler;
        self.happened.preempted = scheduler.preemptions;
        let World { db, families, happened, .. } = self;
        drop(families);
        leaks::end(db, vfs, Path::new(DB), leaks::EXACTLY);
        happened
    }
}

fn chosen(case: u64) -> Options {
    let random = &mut Random::new(case.wrapping_mul(15_485_863));
    let profiles = Options::profiles();
    let mut options = small(profiles[case as usize % profiles.len()], 4 << 10);
    options.slice_bytes_max = 4 << 10;
    options.max_background_compactions = 1 + random.below(3) as u32;
    options.max_background_flushes = 1 + random.below(2) as u32;
    options.scheduler_bandwidth = random.one_in(3);
    options.preemption = match random.below(5) {
        0 => options.preemption,
        1 | 2 => Preemption::Random,
        _ => Preemption::LeastLoss,
    };
    options.preempt_discard = random.one_in(2);
    // Deep compactions, and long ones.
    let family = &mut options.column_family;
    family.level0_trigger = 2;
    family.level_base_bytes = 8 << 10;
    family.level_multiplier = 2.0;
    family.table_bytes = 2 << 10;
    if family.group_compaction_bytes > 0 {
        family.group_compaction_bytes = 64 << 10;
    }
    options
}

fn run(case: u64, rounds: u64) -> Happened {
    let vfs = MemVfs::new();
    let mut world = World::new(&vfs, &chosen(case), case);
    let replay = format!("REPLAY: cargo xtask rel replay --suite events --case {case}");
    let watch = Watch::new(replay);
    for _ in 0..rounds {
        world.act();
        watch.step();
    }
    world.end(&vfs)
}

/// The profile and everything else by the number of the case; see `rel.rs`.
#[test]
#[ignore = "run by cargo xtask rel events"]
fn rel() {
    const FIGURE: &str = "preempt, pause and discard events";
    const REQUIRED: &[&str] = &[
        "preempted",
        "paused",
        "resumed",
        "discarded",
        "told to end early",
        "steps chosen among several",
    ];
    let suite = crate::support::rel::Suite::new("events", FIGURE).requires(REQUIRED);
    suite.run(crate::support::rel::processors(), |suite, case| {
        let happened = run(case, 300);
        // What is preempted is paused.
        suite.count(FIGURE, happened.paused + happened.resumed + happened.discarded);
        suite.count("preempted", happened.preempted);
        suite.count("paused", happened.paused);
        suite.count("resumed", happened.resumed);
        suite.count("discarded", happened.discarded);
        suite.count("told to end early", happened.ended_early);
        suite.count("steps chosen among several", happened.chosen);
    });
}

#[test]
fn all_is_given_back_whatever_happens_to_jobs() {
    let mut all = Happened::default();
    for case in 1..=Options::profiles().len() as u64 {
        println!("REPLAY: cargo xtask rel replay --suite events --case {case}");
        all.add(run(case, 100));
    }
    println!("{all:?}");
    assert!(all.paused > 0 && all.discarded > 100 && all.chosen > 0, "{all:?}");
}
