//! The operations of a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sateen::test_support::clock;
use sateen::vfs::{Fault, FaultRule, Vfs, VfsOperation};
use sateen::{
    ColumnFamily, CompactRangeOptions, Db, Error, FlushOptions, Options, ReadOptions, WriteBatch,
    WriteOptions,
};

use crate::draw::at_times;
use crate::model::{Change, Value, What, same, settled};
use crate::plan::{Kind, Op, key, numbered, value};
use crate::support::common::{Random, assert_sound, pick};
use crate::world::{OpenIter, World};

const ITERATORS_MAX: usize = 4;
const SNAPSHOTS_MAX: usize = 5;
const FAMILIES_MAX: usize = 3;

impl World {
    /// Does one operation. If the power fails meanwhile, opens the database again.
    pub(crate) fn act(&mut self, op: Op) {
        let random = &mut Random::new(op.seed);
        self.counts.operations += 1;
        if !matches!(op.kind, Kind::Step | Kind::Pass | Kind::Idle) {
            self.wait_for_client();
        }
        if !self.sim.has_failed() {
            self.act_now(op.kind, random);
        }
        if self.sim.has_failed() {
            self.recover();
        }
    }

    fn act_now(&mut self, kind: Kind, random: &mut Random) {
        match kind {
            Kind::Put
            | Kind::PutSync
            | Kind::PutUnlogged
            | Kind::PutDeadline
            | Kind::PutLarge
            | Kind::Delete
            | Kind::Merge
            | Kind::DeleteRange => self.single(kind, random),
            Kind::Batch | Kind::BatchSync => self.batch(kind, random),
            Kind::Get | Kind::GetAtSnapshot => self.get(kind, random),
            Kind::MultiGet => self.multi_get(random),
            Kind::Scan => self.scan(random),
            Kind::IterOpen => self.open_iter(random),
            Kind::IterMove => self.move_iter(random),
            Kind::IterClose => drop(pick(&self.iters, random).map(|at| self.iters.remove(at))),
            Kind::SnapshotTake if self.snapshots.len() < SNAPSHOTS_MAX => {
                self.snapshots.push((self.db().snapshot(), self.model.now()));
            }
            Kind::SnapshotTake => {}
            Kind::SnapshotRelease => {
                drop(pick(&self.snapshots, random).map(|at| self.snapshots.remove(at)));
            }
            Kind::Flush | Kind::FlushBegin | Kind::FlushAll => self.flush(kind, random),
            Kind::CompactRange | Kind::CompactBegin => self.compact(kind, random),
            Kind::SyncWal => {
                if self.settle("sync_wal", self.db().sync_wal()).is_some() {
                    self.model.log_is_durable();
                }
            }
            Kind::Step => {
                for _ in 0..=random.below(8) {
                    self.settle("a step", self.db().step());
                }
            }
            Kind::Pass => clock::advance(Duration::from_micros(random.below(2_000_000))),
            Kind::Idle => {
                for _ in 0..200 {
                    if self.settle("a step", self.db().step()) != Some(true) {
                        clock::advance(Duration::from_millis(10));
                    }
                }
            }
            Kind::Checkpoint => self.checkpoint(),
            Kind::SetOptions => self.set_options(random),
            Kind::CreateFamily => self.create_family(),
            Kind::DropFamily => self.drop_family(random),
            Kind::FaultBegin => self.begin_fault(random),
            Kind::FaultClear => self.mend(random.one_in(4)),
            Kind::Resume => drop(self.settle("resume", self.db().resume())),
            Kind::PowerFails => self.fail_within(1, self.choice()),
            Kind::PowerFailsWithin => self.fail_within(1 + random.below(300), self.choice()),
            Kind::Killed => {
                let calls = [1, 1 + random.below(100)][random.below(2) as usize];
                self.fail_within(calls, sateen::vfs::CrashChoice::Everything);
            }
            Kind::Restart => self.restart(),
        }
    }

    fn family(&self, random: &mut Random) -> ColumnFamily {
        // The default column family gets half of the operations.
        let at = if random.one_in(2) { 0 } else { random.below(self.live.len() as u64) };
        self.live[at as usize].clone()
    }

    // ---- writing -------------------------------------------------------------------------------

    fn single(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let mut key = key(random);
        let mut options =
            WriteOptions { low_priority: random.one_in(10), ..WriteOptions::default() };
        let most = [40, 40, 300, 2000][random.below(4) as usize];
        let mut what = What::Put(value(random, most));
        match kind {
            Kind::Delete => what = What::Delete,
            Kind::Merge => what = What::Merge(value(random, 40)),
            Kind::DeleteRange => {
                let first = random.below(160);
                key = numbered(first);
                what = What::DeleteRange(numbered(first + random.below(30)));
            }
            Kind::PutSync => options.sync = true,
            Kind::PutUnlogged => options.disable_wal = true,
            Kind::PutDeadline => {
                let most = [0, 1_000, 50_000, 2_000_000][random.below(4) as usize];
                options.deadline = Some(Duration::from_micros(random.below(most)));
            }
            Kind::PutLarge => what = What::Put(value(random, 40_000)),
            _ => {}
        }
        let what = what.of(&key);
        let change = Change { family: family.id(), key: key.clone(), what: what.clone() };
        self.write(vec![change], &options, |_| match &what {
            What::Put(value) => family.writing(&options).put(&key, value),
            What::Delete => family.writing(&options).delete(&key),
            What::SingleDelete => family.writing(&options).single_delete(&key),
            What::Merge(operand) => family.writing(&options).merge(&key, operand),
            What::DeleteRange(end) => family.writing(&options).delete_range(&key, end),
        });
    }

    fn batch(&mut self, kind: Kind, random: &mut Random) {
        let mut batch = WriteBatch::new();
        let mut changes = Vec::new();
        for _ in 0..1 + random.below(10) {
            let (family, key) = (self.family(random), key(random));
            let what = match random.below(8) {
                0 => What::Delete,
                1 => What::SingleDelete,
                2 | 3 => What::Merge(value(random, 40)),
                _ => What::Put(value(random, 300)),
            };
            let what = what.of(&key);
            let added = match &what {
                What::Put(value) => batch.to(&family).put(&key, value),
                What::Merge(operand) => batch.to(&family).merge(&key, operand),
                What::SingleDelete => batch.to(&family).single_delete(&key),
                _ => batch.to(&family).delete(&key),
            };
            added.expect("it is in order");
            changes.push(Change { family: family.id(), key, what });
        }
        let options = WriteOptions { sync: kind == Kind::BatchSync, ..WriteOptions::default() };
        self.write(changes, &options, |db| db.write(&batch, &options));
    }

    // ---- reading -------------------------------------------------------------------------------

    fn same_value(&self, family: u32, key: &[u8], at: usize, found: Option<&[u8]>) {
        let found = found.and_then(|found| settled(key, found.into()));
        self.sim.note("found", found.as_deref().unwrap_or(b"nothing"));
        self.model.assert_value(family, key, at, found.as_deref());
    }

    fn get(&self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let (mut options, mut at) = (ReadOptions::default(), self.model.now());
        if kind == Kind::GetAtSnapshot {
            let Some(slot) = pick(&self.snapshots, random) else { return };
            options = ReadOptions::at(&self.snapshots[slot].0);
            at = self.snapshots[slot].1;
        }
        options.fill_cache = random.one_in(2);
        let key = key(random);
        if let Some(found) = self.settle("get", family.reading(&options).get(&key)) {
            self.same_value(family.id(), &key, at, found.as_deref());
        }
    }

    fn multi_get(&self, random: &mut Random) {
        let family = self.family(random);
        let keys: Vec<Vec<u8>> = (0..=random.below(12)).map(|_| key(random)).collect();
        let found = family.multi_get(&keys);
        assert_eq!(found.len(), keys.len());
        for (key, found) in keys.iter().zip(found) {
            let Some(found) = self.settle("multi_get", found) else { continue };
            self.same_value(family.id(), key, self.model.now(), found.as_deref());
        }
    }

    fn read_options(&self, random: &mut Random) -> (ReadOptions, usize) {
        let (mut options, mut at) = (ReadOptions::default(), self.model.now());
        if random.one_in(2) {
            let first = random.below(160);
            options.lower_bound = Some(numbered(first));
            options.upper_bound = Some(numbered(first + random.below(40)));
        }
        if let (true, Some(slot)) = (random.one_in(3), pick(&self.snapshots, random)) {
            options.snapshot = Some(self.snapshots[slot].0.clone());
            at = self.snapshots[slot].1;
        }
        (options, at)
    }

    fn scan(&self, random: &mut Random) {
        let (options, at) = self.read_options(random);
        self.compare(&self.family(random), &options, at);
    }

    fn open_iter(&mut self, random: &mut Random) {
        if self.iters.len() == ITERATORS_MAX {
            self.iters.remove(0);
        }
        let family = self.family(random);
        let (options, at) = self.read_options(random);
        let opened = family.cursor(&options);
        let Some(iter) = self.settle("iter", opened) else { return };
        let view = self.model.view_within(family.id(), &options, at).into_iter().collect();
        self.iters.push(OpenIter { iter, view, at: None });
    }

    /// Moves an iterator and compares it with the state at its creation, which it pins.
    fn move_iter(&mut self, random: &mut Random) {
        let Some(slot) = pick(&self.iters, random) else { return };
        let may_fail = self.tainted || self.doubt || self.sim.has_failed();
        let OpenIter { iter, view, at } = &mut self.iters[slot];
        for _ in 0..=random.below(12) {
            let mut forwards = true;
            match random.below(8) {
                0 => {
                    iter.seek_to_first();
                    *at = Some(0);
                }
                1 => {
                    let target = key(random);
                    iter.seek(&target);
                    *at = Some(view.partition_point(|(key, _)| *key < target));
                }
                2 => {
                    forwards = false;
                    iter.seek_to_last();
                    *at = view.len().checked_sub(1);
                }
                3..7 if at.is_some() => {
                    iter.next();
                    *at = at.map(|at| at + 1);
                }
                _ if at.is_some() => {
                    forwards = false;
                    iter.prev();
                    *at = at.and_then(|at| at.checked_sub(1));
                }
                _ => continue,
            }
            *at = at.filter(|at| *at < view.len());
            // The iterator skips values that a compaction would remove.
            let shown = |iter: &sateen::Cursor| settled(iter.key(), Value::from(iter.value()));
            while iter.valid() && shown(iter).is_none() {
                if forwards { iter.next() } else { iter.prev() }
            }
            if let Err(error) = iter.status() {
                assert!(may_fail || self.sim.has_failed(), "an iterator failed: {error}");
                assert!(!iter.valid(), "an iterator that failed shows a key");
                *at = None;
                continue;
            }
            let value = if iter.valid() { shown(iter) } else { None };
            self.sim.note("stands on", if iter.valid() { iter.key() } else { b"" });
            let found = value.as_deref().map(|value| (iter.key(), value));
            let expected = at.map(|at| (&*view[at].0, &*view[at].1));
            assert!(
                found == expected,
                "an iterator shows {:?} and not {:?}",
                found.map(|entry| (entry.0.escape_ascii().to_string(), entry.1.len())),
                expected.map(|entry| (entry.0.escape_ascii().to_string(), entry.1.len())),
            );
        }
    }

    // ---- upkeep --------------------------------------------------------------------------------

    fn flush(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let flushed = match kind {
            Kind::FlushAll => self.db().flush_all(),
            _ => {
                let options = FlushOptions { wait: kind == Kind::Flush };
                family.flush_with(&options)
            }
        };
        if self.settle("a flush", flushed).is_none() || kind == Kind::FlushBegin {
            return;
        }
        let all = kind == Kind::FlushAll;
        let stored = self.live.iter().filter(|one| all || one.id() == family.id());
        let stored: Vec<u32> = stored.map(ColumnFamily::id).collect();
        stored.into_iter().for_each(|id| self.model.is_stored(id));
    }

    fn compact(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let first = random.below(160);
        let (low, high) = (numbered(first), numbered(first + random.below(80)));
        let options = CompactRangeOptions {
            wait: kind == Kind::CompactRange,
            flush: !random.one_in(4),
            rewrite_last_level: random.one_in(3),
        };
        let begin = (!random.one_in(3)).then_some(&*low);
        let end = (!random.one_in(3)).then_some(&*high);
        let compacted = family.compact_range(begin, end, &options);
        if self.settle("a compaction", compacted).is_some() && options.flush {
            self.model.is_stored(family.id());
        }
    }

    fn set_options(&mut self, random: &mut Random) {
        let of_database: [(&str, &[&str]); 4] = [
            ("max_background_compactions", &["1", "2", "4"]),
            ("max_total_wal_bytes", &["0", "1", "32768"]),
            ("block_cache_bytes", &["1", "65536"]),
            ("slice_bytes_max", &["4096", "65536"]),
        ];
        let of_family: [(&str, &[&str]); 4] = [
            ("memtable_bytes", &["1024", "4096", "16384"]),
            ("memtables_max", &["2", "3", "5"]),
            ("table_bytes", &["512", "4096"]),
            ("disable_auto_compactions", &["true", "false", "false"]),
        ];
        let own = random.one_in(2);
        let table = if own { of_family } else { of_database };
        let (name, values) = table[random.below(4) as usize];
        let value = values[random.below(values.len() as u64) as usize];
        let info = Options::all().find(|info| info.name == name);
        assert!(info.is_some_and(|info| info.mutable), "{name} may change");
        let set = match own {
            true => self.family(random).set_options(&[(name, value)]),
            false => self.db().set_options(&[(name, value)]),
        };
        match set {
            Err(Error::InvalidArgument(_)) => {}
            set => drop(self.settle("set_options", set)),
        }
    }

    fn create_family(&mut self) {
        if self.live.len() >= FAMILIES_MAX {
            return;
        }
        self.made += 1;
        let name = format!("family{}", self.made);
        let options = self.options.column_family.clone();
        let regions = options.regions.clone();
        let created = self.db().create_column_family(&name, options);
        match self.settle("create_column_family", created) {
            Some(family) => {
                self.model.add_family(family.id(), &name, &regions);
                if self.sim.has_failed() {
                    self.doubtful_family = Some((family.id(), name));
                }
                self.live.push(family);
            }
            None => {
                // The id that the family would have had is unknown.
                self.doubtful_family = Some((u32::MAX, name));
                self.mend_unless_dark();
            }
        }
    }

    fn drop_family(&mut self, random: &mut Random) {
        if self.live.len() < 2 {
            return;
        }
        let at = 1 + random.below(self.live.len() as u64 - 1) as usize;
        let family = self.live[at].clone();
        let dropped = self.db().drop_column_family(&family);
        if self.settle("drop_column_family", dropped).is_some() {
            self.live.remove(at);
            self.model.families.remove(&family.id());
        } else {
            self.doubtful_family = Some((family.id(), family.name().to_owned()));
            self.mend_unless_dark();
        }
    }

    fn mend_unless_dark(&mut self) {
        if !self.sim.has_failed() {
            self.mend(true);
        }
    }

    /// A checkpoint holds the state at its creation, whatever is written later.
    fn checkpoint(&mut self) {
        self.made += 1;
        let path = PathBuf::from(format!("/checkpoint{}", self.made));
        let made = self.db().checkpoint(&path);
        let vfs: Arc<dyn Vfs> = Arc::new(self.mem.clone());
        if self.settle("a checkpoint", made).is_none() {
            return;
        }
        self.counts.checkpoints += 1;
        let copy = Db::open_with(vfs.clone(), &path, self.options.clone(), &[]);
        let copy = copy.expect("a checkpoint is a database");
        for family in &self.live {
            let there = copy.column_family(family.name()).expect("all families are there");
            let found = World::read(&there, &ReadOptions::default()).expect("it reads");
            same(&found, &self.model.view(family.id(), self.model.now()), "a checkpoint");
        }
        assert_sound(&copy);
        copy.close().expect("it closes");
        for name in vfs.list(&path).expect("it is there") {
            vfs.remove(&path.join(name)).expect("nobody has it");
        }
        vfs.remove_dir(&path).expect("it is empty");
    }

    fn begin_fault(&mut self, random: &mut Random) {
        let fault = match random.below(8) {
            0 => Fault::NoSpace,
            1 => Fault::Interrupted,
            2 => Fault::Short,
            3 => Fault::Delay(Duration::from_millis(random.below(3000))),
            4 => Fault::Bandwidth(10_000 << random.below(10)),
            _ => Fault::Io,
        };
        let operations = [
            VfsOperation::Write,
            VfsOperation::Write,
            VfsOperation::Sync,
            VfsOperation::Create,
            VfsOperation::SyncDir,
            VfsOperation::Rename,
            VfsOperation::Remove,
            VfsOperation::PunchHole,
            VfsOperation::HardLink,
            VfsOperation::Open,
        ];
        let rule = FaultRule::new(fault);
        let rule = match fault {
            Fault::Short => rule.on(VfsOperation::Write),
            Fault::Bandwidth(_) => rule,
            _ if random.one_in(4) => rule.on(VfsOperation::Read),
            _ if random.one_in(6) => rule,
            _ => rule.on(operations[random.below(operations.len() as u64) as usize]),
        };
        self.faults.add(at_times(rule, random));
        if !matches!(fault, Fault::Delay(_) | Fault::Bandwidth(_)) {
            self.tainted = true;
            self.doubt = true;
        }
    }
}
