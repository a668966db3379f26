//! The workload that is crashed: everything that changes the file system, and what each of it
//! promised when it returned.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sateen::test_support::Interference;
use sateen::timeline::{CompactionReason, EventKind};
use sateen::vfs::{MemVfs, Recording};
use sateen::{
    ColumnFamily, Cursor, Db, FlushOptions, IngestOptions, Options, ReadOptions, Snapshot,
    SstFileWriter, ValueKind, WalMode, WriteBatch, WriteOptions,
};

use crate::support::common::{Contents, Random, appended, appending, as_vfs, decided, is_decided};

/// The number of the last batch, in both families.
pub(super) const MARK: &[u8] = b"~commit";
/// The number of the last single put, in the default family: a key that no filter decides about.
pub(super) const SOLO: &[u8] = b"~single";
pub(super) const OTHER: &str = "other";
/// What is taken in begins with this, and nothing else does.
pub(super) const INGESTED: &[u8] = b"taken";

/// How often what happened. None may be zero at the end of a run of the suite.
pub(super) type Tally = BTreeMap<&'static str, u64>;

/// What must happen in a run of the suite.
pub(super) const KINDS: &[&str] = &[
    "puts",
    "batches",
    "transactions",
    "synced writes",
    "large values",
    "merges",
    "range deletions",
    "snapshots",
    "flushes",
    "compactions of level 0",
    "deep compactions",
    "group compactions",
    "settled tables",
    "punches",
    "hard links",
    "checkpoints",
    "preemptions",
    "discards",
    "manifest rolls",
    "log rolls",
    "reconfigurations",
    "adjustments",
    "files taken in",
    "loads",
    "families dropped",
];

/// A column family that came and, perhaps, went. Spans are operations of the file system.
pub(super) struct Extra {
    pub(super) name: String,
    pub(super) created: (usize, usize),
    pub(super) dropped: Option<(usize, usize)>,
    /// Its contents from that commit on.
    pub(super) history: Vec<(usize, Contents)>,
}

impl Extra {
    /// What it holds after so many commits.
    pub(super) fn contents(&self, commits: usize) -> Contents {
        let at = self.history.partition_point(|(since, _)| *since <= commits);
        at.checked_sub(1).map(|at| self.history[at].1.clone()).unwrap_or_default()
    }
}

/// A file that was taken in.
pub(super) struct Ingested {
    pub(super) span: (usize, usize),
    pub(super) contents: Contents,
}

/// A checkpoint.
pub(super) struct Copied {
    pub(super) path: PathBuf,
    pub(super) span: (usize, usize),
    pub(super) commits: usize,
    /// How many files had been taken in.
    pub(super) ingested: usize,
    /// Which further families there were.
    pub(super) extras: Vec<usize>,
}

/// What was done, and what it promised.
pub(super) struct Run {
    pub(super) recording: Recording,
    /// The contents of both families after so many commits, as compactions that filter leave them.
    pub(super) states: Vec<[Contents; 2]>,
    /// (operations of the file system, commits that survive any crash from there on).
    pub(super) promised: Vec<(usize, usize)>,
    /// (operations of the file system, commits begun by then).
    pub(super) begun: Vec<(usize, usize)>,
    pub(super) extras: Vec<Extra>,
    pub(super) ingested: Vec<Ingested>,
    pub(super) copies: Vec<Copied>,
    pub(super) options: Options,
    pub(super) tally: Tally,
}

/// What a commit does to a key.
enum What {
    Put(Vec<u8>),
    Delete,
    SingleDelete,
    Merge(Vec<u8>),
    /// Up to this key.
    DeleteRange(Vec<u8>),
}

fn apply(state: &mut [Contents; 2], family: usize, key: Vec<u8>, what: What) {
    if let What::DeleteRange(end) = &what {
        return state[family].retain(|other, _| *other < key || *other >= *end);
    }
    match what {
        What::Put(value) => match decided(&key, &value) {
            Some(value) => state[family].insert(key, value),
            None => state[family].remove(&key),
        },
        What::Delete | What::SingleDelete | What::DeleteRange(_) => state[family].remove(&key),
        What::Merge(operand) => {
            let value = appended(state[family].get(&key).map(Vec::as_slice), &operand);
            state[family].insert(key, value)
        }
    };
}

/// Options that a running database changes: of the database, and of column families.
const CHANGES: [&[(&str, &[&str])]; 2] = [
    &[
        ("slice_bytes_max", &["4096", "16384"]),
        ("manifest_bytes_max", &["1", "4096"]),
        ("max_total_wal_bytes", &["0", "4096"]),
        ("max_background_compactions", &["1", "3"]),
        ("preempt_discard", &["true", "false"]),
        ("write_controller", &["off", "smooth"]),
    ],
    &[
        ("memtable_bytes", &["1024", "4096", "16384"]),
        ("level0_trigger", &["1", "2", "4"]),
        ("level_base_bytes", &["4096", "16384"]),
        ("table_bytes", &["1024", "4096"]),
        ("group_compaction_bytes", &["0", "8192"]),
        ("level0_stripe_bytes", &["0", "8192"]),
        ("settled_compaction", &["true", "false"]),
        ("compaction_files", &["true", "false"]),
        ("compression", &["none", "lz4"]),
    ],
];

/// A workload under way.
struct Work {
    random: Random,
    vfs: MemVfs,
    db: Db,
    other: ColumnFamily,
    run: Run,
    extras: Vec<Option<ColumnFamily>>,
    snapshots: Vec<Snapshot>,
    iterators: Vec<Cursor>,
    logged: bool,
    /// After a crash all families are at one commit.
    ordered: bool,
    /// Logs are kept, and nothing is done that they do not show.
    keeps_logs: bool,
}

/// Whether the families are at one commit after a crash: there is a log, or they are flushed
/// together.
pub(super) fn is_ordered(options: &Options) -> bool {
    options.wal != WalMode::Off || options.atomic_flush
}

pub(super) fn workload(seed: u64, options: &Options, commits: usize) -> Run {
    let options = &mut options.clone();
    options.column_family.merge_operator = Some(appending());
    let vfs = MemVfs::new();
    vfs.set_clones_supported(seed.is_multiple_of(3));
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    let other = db.create_column_family(OTHER, options.column_family.clone()).unwrap();
    let run = Run {
        recording: vfs.record(),
        states: vec![Default::default()],
        promised: vec![(0, 0)],
        begun: vec![(0, 0)],
        extras: Vec::new(),
        ingested: Vec::new(),
        copies: Vec::new(),
        options: options.clone(),
        tally: Tally::new(),
    };
    let mut work = Work {
        random: Random::new(seed),
        vfs,
        db,
        other,
        run,
        extras: Vec::new(),
        snapshots: Vec::new(),
        iterators: Vec::new(),
        logged: options.wal != WalMode::Off,
        ordered: is_ordered(options),
        keeps_logs: options.wal_ttl_seconds > 0,
    };
    while work.run.states.len() <= commits {
        if work.random.one_in(10) {
            work.put()
        } else {
            work.batch()
        }
        work.upkeep();
    }
    work.end()
}

impl Work {
    fn count(&mut self, what: &'static str) {
        *self.run.tally.entry(what).or_default() += 1;
    }

    fn at(&self) -> usize {
        self.run.recording.len()
    }

    fn commits(&self) -> usize {
        self.run.states.len() - 1
    }

    fn promise(&mut self) {
        self.run.promised.push((self.at(), self.commits()));
    }

    /// Whether a write is to be synced.
    fn sync(&mut self) -> bool {
        self.logged && self.random.one_in(8)
    }

    /// A write with `state` for its result.
    fn commit(&mut self, state: [Contents; 2], sync: bool, write: impl FnOnce(&Work)) {
        self.run.states.push(state);
        self.run.begun.push((self.at(), self.commits()));
        write(self);
        if sync || self.run.options.wal == WalMode::SyncEachWrite {
            self.count("synced writes");
            self.promise();
        }
    }

    fn put(&mut self) {
        let number = self.run.states.len().to_string().into_bytes();
        let mut state = self.run.states[self.commits()].clone();
        apply(&mut state, 0, SOLO.to_vec(), What::Put(number.clone()));
        let sync = self.sync();
        self.commit(state, sync, |work| {
            let options = WriteOptions { sync, ..WriteOptions::default() };
            let family = work.db.default_column_family();
            family.writing(&options).put(SOLO, &number).unwrap();
        });
        self.count("puts");
    }

    fn value(&mut self) -> Vec<u8> {
        let large = self.random.one_in(40);
        if large {
            self.count("large values");
        }
        let most = if large { 6000 } else { 60 };
        vec![b'a' + (self.random.below(26) as u8); self.random.below(most) as usize]
    }

    fn batch(&mut self) {
        let number = self.run.states.len();
        let mut state = self.run.states[number - 1].clone();
        let mut batch = WriteBatch::new();
        for _ in 0..=self.random.below(4) {
            self.entry(&mut batch, &mut state);
        }
        let mark = number.to_string().into_bytes();
        batch.put(MARK, &mark).unwrap();
        apply(&mut state, 0, MARK.to_vec(), What::Put(mark.clone()));
        if self.ordered {
            batch.to(&self.other).put(MARK, &mark).unwrap();
            apply(&mut state, 1, MARK.to_vec(), What::Put(mark.clone()));
            for (extra, family) in self.run.extras.iter_mut().zip(&self.extras) {
                let Some(family) = family else { continue };
                let key = format!("key{:02}x", self.random.below(30)).into_bytes();
                let value = mark.repeat(1 + self.random.below(200) as usize);
                batch.to(family).put(&key, &value).unwrap();
                let mut contents = extra.contents(number);
                contents.insert(key, value);
                extra.history.push((number, contents));
            }
        }
        let sync = self.sync();
        let ranges = batch.iter().any(|entry| entry.kind == ValueKind::RangeDelete);
        let in_transaction = number.is_multiple_of(3) && !ranges;
        self.commit(state, sync, |work| {
            let options = WriteOptions { sync, ..WriteOptions::default() };
            match in_transaction {
                true => work.transact(&batch, &options),
                false => work.db.write(&batch, &options).unwrap(),
            }
        });
        self.count(if in_transaction { "transactions" } else { "batches" });
    }

    /// Writes `batch` in a transaction. Another one, which wants the same key, fails, and nothing
    /// of it may ever be seen.
    fn transact(&self, batch: &WriteBatch, options: &WriteOptions) {
        let mut transaction = self.db.transaction();
        let mut other = self.db.transaction();
        other.put(MARK, b"lost").unwrap();
        other.put(SOLO, b"lost").unwrap();
        for entry in batch {
            let families = std::iter::once(Some(self.db.default_column_family()))
                .chain([Some(self.other.clone())])
                .chain(self.extras.iter().cloned());
            let family = families.flatten().find(|family| family.id() == entry.column_family.0);
            let family = family.unwrap();
            let mut place = transaction.to(&family);
            match entry.kind {
                ValueKind::Put => place.put(entry.key, entry.value),
                ValueKind::Delete => place.delete(entry.key),
                ValueKind::SingleDelete => place.single_delete(entry.key),
                ValueKind::Merge => place.merge(entry.key, entry.value),
                ValueKind::RangeDelete => unreachable!("not in a transaction"),
            }
            .unwrap();
        }
        transaction.commit_with(options).unwrap();
        other.commit_with(options).unwrap_err();
    }

    fn entry(&mut self, batch: &mut WriteBatch, state: &mut [Contents; 2]) {
        let other = self.other.clone();
        let number = self.random.below(120);
        let key = format!("key{number:03}").into_bytes();
        let family = usize::from(self.ordered && self.random.one_in(3));
        let fill = self.value();
        let what = match self.random.below(12) {
            0..2 => What::Delete,
            2 => What::SingleDelete,
            3..6 if !is_decided(&key) => What::Merge(fill),
            6 if self.random.one_in(3) => {
                let end = number + self.random.below(20);
                What::DeleteRange(format!("key{end:03}").into_bytes())
            }
            _ => What::Put(fill),
        };
        match (&what, family) {
            (What::Put(value), 0) => batch.put(&key, value).unwrap(),
            (What::Put(value), _) => batch.to(&other).put(&key, value).unwrap(),
            (What::Delete, 0) => batch.delete(&key).unwrap(),
            (What::Delete, _) => batch.to(&other).delete(&key).unwrap(),
            (What::SingleDelete, 0) => batch.single_delete(&key).unwrap(),
            (What::SingleDelete, _) => batch.to(&other).single_delete(&key).unwrap(),
            (What::Merge(operand), 0) => batch.merge(&key, operand).unwrap(),
            (What::Merge(operand), _) => batch.to(&other).merge(&key, operand).unwrap(),
            (What::DeleteRange(end), 0) => batch.delete_range(&key, end).unwrap(),
            (What::DeleteRange(end), _) => batch.to(&other).delete_range(&key, end).unwrap(),
        }
        match what {
            What::Merge(_) => self.count("merges"),
            What::DeleteRange(_) => self.count("range deletions"),
            _ => {}
        }
        apply(state, family, key, what);
    }

    fn upkeep(&mut self) {
        match self.random.below(30) {
            0 => {
                self.db.flush_all().unwrap();
                self.promise();
            }
            1 => {
                let begin = format!("key{:03}", self.random.below(120)).into_bytes();
                let family = self.db.default_column_family();
                family.compact_range(Some(&begin), None, &Default::default()).unwrap();
            }
            2 => {
                self.snapshots.push(self.db.snapshot());
                self.count("snapshots");
            }
            3 => self.snapshots.clear(),
            4..11 => {
                for _ in 0..self.random.below(12) {
                    self.interfere();
                    self.db.step().unwrap();
                }
            }
            11 => {
                let family = self.db.default_column_family();
                self.iterators.truncate(1);
                self.iterators.push(family.cursor(&ReadOptions::default()).unwrap());
            }
            12 => {
                self.iterators.clear();
                self.db.wait_idle().unwrap();
            }
            13 => self.other.flush_with(&FlushOptions { wait: false }).unwrap(),
            14 | 15 => self.reconfigure(),
            16 if self.run.copies.len() < 2 && self.random.one_in(2) => self.checkpoint(),
            17 if !self.keeps_logs && self.random.one_in(2) => self.ingest(),
            18 if !self.keeps_logs => self.change_families(),
            19 if self.logged => {
                self.db.sync_wal().unwrap();
                self.promise();
            }
            _ => {}
        }
    }

    /// What is under way is given up, ended early or passed by now and then.
    fn interfere(&mut self) {
        let number = self.random.next();
        let _nothing = match self.random.below(24) {
            0 => self.db.interfere(Interference::Discard(number)),
            1 => self.db.interfere(Interference::FinishEarly(number)),
            2 | 3 => self.db.interfere(Interference::NextStep(number)),
            4 => self.db.interfere(Interference::Adjust(number)),
            _ => false,
        };
    }

    fn reconfigure(&mut self) {
        let of_family = self.random.one_in(2);
        let changes = CHANGES[usize::from(of_family)];
        let (name, values) = changes[self.random.below(changes.len() as u64) as usize];
        let change = [(name, values[self.random.below(values.len() as u64) as usize])];
        let family = self.db.default_column_family();
        // What does not go with the others is refused.
        let done = match of_family {
            true => family.set_options(&change),
            false => self.db.set_options(&change),
        };
        if done.is_ok() {
            self.count("reconfigurations");
        }
    }

    fn checkpoint(&mut self) {
        let path = PathBuf::from(format!("/copy{}", self.run.copies.len()));
        let from = self.at();
        self.db.checkpoint(&path).unwrap();
        let alive = |at: &usize| self.extras[*at].is_some();
        let extras = (0..self.extras.len()).filter(alive).collect();
        self.run.copies.push(Copied {
            path,
            span: (from, self.at()),
            commits: self.commits(),
            ingested: self.run.ingested.len(),
            extras,
        });
        self.count("checkpoints");
    }

    fn ingest(&mut self) {
        let number = self.run.ingested.len();
        let path = PathBuf::from(format!("/outside{number}"));
        let mut contents = Contents::new();
        for at in 0..=self.random.below(30) {
            let key = [INGESTED, format!("{number:02}-{at:03}x").as_bytes()].concat();
            contents.insert(key, self.value());
        }
        if self.random.one_in(2) {
            let from = self.at();
            let load = self.db.bulk_load().unwrap();
            let mut part = load.part();
            contents.iter().for_each(|(key, value)| part.put(key, value).unwrap());
            part.finish().unwrap();
            load.finish().unwrap();
            self.run.ingested.push(Ingested { span: (from, self.at()), contents });
            return self.count("loads");
        }
        let options = &self.run.options;
        let mut writer = SstFileWriter::create_with(as_vfs(&self.vfs), &path, options).unwrap();
        contents.iter().for_each(|(key, value)| writer.put(key, value).unwrap());
        writer.finish().unwrap();
        let from = self.at();
        let options = IngestOptions { move_files: self.random.one_in(2), ..Default::default() };
        self.db.ingest(&[path], &options).unwrap();
        self.run.ingested.push(Ingested { span: (from, self.at()), contents });
        self.count("files taken in");
    }

    /// Makes a further column family, or drops one, perhaps under its jobs.
    fn change_families(&mut self) {
        let from = self.at();
        if let Some(at) = self.extras.iter().position(Option::is_some)
            && self.random.one_in(2)
        {
            let family = self.extras[at].take().unwrap();
            if self.random.one_in(2) {
                family.flush_with(&FlushOptions { wait: false }).unwrap();
                self.db.step().unwrap();
            }
            self.db.drop_column_family(&family).unwrap();
            self.run.extras[at].dropped = Some((from, self.at()));
            self.count("families dropped");
            return;
        }
        let name = format!("extra{}", self.extras.len());
        let options = self.run.options.column_family.clone();
        let family = self.db.create_column_family(&name, options).unwrap();
        let created = (from, self.at());
        self.run.extras.push(Extra { name, created, dropped: None, history: Vec::new() });
        self.extras.push(Some(family));
    }

    fn end(mut self) -> Run {
        self.db.wait_idle().unwrap();
        self.count_background();
        self.snapshots.clear();
        self.iterators.clear();
        self.extras.clear();
        self.db.close().unwrap();
        if self.ordered {
            self.promise();
        }
        self.count_operations();
        self.run
    }

    fn count_background(&mut self) {
        let groups = self.run.options.column_family.group_compaction_bytes > 0;
        for event in self.db.timeline().events {
            match event.kind {
                EventKind::JobFinished { info, .. } => match info.reason {
                    None => self.count("flushes"),
                    Some(CompactionReason::Level0Runs) => self.count("compactions of level 0"),
                    Some(CompactionReason::LevelSize) => {
                        self.count("deep compactions");
                        if groups {
                            self.count("group compactions");
                        }
                    }
                    _ => {}
                },
                EventKind::Discarded { .. } => self.count("discards"),
                EventKind::Adjusted(_) => self.count("adjustments"),
                _ => {}
            }
        }
        let metrics = self.db.metrics();
        let moved = metrics.compactions.iter().filter(|level| level.bytes_moved > 0).count();
        *self.run.tally.entry("settled tables").or_default() += moved as u64;
        *self.run.tally.entry("preemptions").or_default() += metrics.scheduler.preemptions;
    }

    fn count_operations(&mut self) {
        let kinds = [
            ("punch", "", "punches"),
            ("link", "", "hard links"),
            ("create MANIFEST", "", "manifest rolls"),
            ("create", ".wal", "log rolls"),
        ];
        for at in 0..self.at() {
            let told = self.run.recording.describe(at).unwrap();
            let is_it =
                |kind: &&(&str, &str, &str)| told.starts_with(kind.0) && told.contains(kind.1);
            if let Some(kind) = kinds.iter().find(is_it) {
                self.count(kind.2);
            }
        }
    }
}
