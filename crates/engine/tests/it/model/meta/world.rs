//! A database beside its model: every operation is done to both, and every answer compared.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sateen::test_support::clock::advance;
use sateen::vfs::{CrashChoice, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{
    ColumnFamily, ColumnFamilyOptions, Error, Options, ReadOptions, Result, Snapshot, WalMode,
    WriteOptions,
};

use super::keys::{Cursor, Db};
use super::model::{Change, Model, Value, View, What, same, view_of};
use super::ops;
use crate::support::common::{
    Random, ZERO_AT_REST, assert_no_orphans, assert_sound, open_arranged,
};
use crate::support::leaks;

/// How often it is looked whether there is anything to do again.
const WAIT: Duration = Duration::from_millis(5);
/// Files that could not be read are looked at again for what is dead in them within so long.
const LOOKED_AT_AGAIN: Duration = Duration::from_secs(10);

pub(super) const PATH: &str = "/db";

/// An iterator that stays open across other operations.
pub(super) struct OpenIter {
    pub(super) iter: Cursor,
    /// What it shows, and where in it it stands.
    pub(super) view: Vec<(Vec<u8>, Value)>,
    pub(super) at: Option<usize>,
    /// It failed, and says so until the next seek.
    pub(super) failed: bool,
}

/// See the module.
pub(super) struct World {
    pub(super) mem: MemVfs,
    /// Some if disks may fail.
    pub(super) faults: Option<FaultVfs>,
    pub(super) db: Db,
    pub(super) options: Options,
    /// Column families, the default one first.
    pub(super) live: Vec<ColumnFamily>,
    pub(super) dropped: Vec<ColumnFamily>,
    pub(super) model: Model,
    pub(super) snapshots: Vec<(Snapshot, usize)>,
    pub(super) iters: Vec<OpenIter>,
    pub(super) checkpoints: Vec<(PathBuf, BTreeMap<String, View>)>,
    pub(super) made: u32,
    /// Calls of the database and its iterators so far, of those whose answers are compared.
    pub(super) calls: u64,
    /// How often manual compactions were paused, and files held.
    pub(super) manual_paused: u32,
    pub(super) files_held: u32,
    /// What files were found with at some open is not known for sure.
    pub(super) crashed: bool,
    /// Faults were let loose since the last time that everything was mended: errors are allowed.
    pub(super) tainted: bool,
    /// Faults were let loose since the base.
    pub(super) doubt: bool,
}

impl World {
    pub(super) fn new(options: Options, with_faults: bool) -> World {
        let mem = MemVfs::new();
        let faults = with_faults.then(|| FaultVfs::new(Arc::new(mem.clone())));
        let vfs = vfs_of(&mem, faults.as_ref());
        let db = Db::from(sateen::Db::open_with(vfs, PATH, options.clone(), &[]).unwrap());
        let mut model = Model::default();
        model.add_family(0, "default", &options.column_family.regions);
        let live = vec![db.default_column_family()];
        World {
            mem,
            faults,
            db,
            options,
            live,
            dropped: Vec::new(),
            model,
            snapshots: Vec::new(),
            iters: Vec::new(),
            checkpoints: Vec::new(),
            made: 0,
            calls: 0,
            manual_paused: 0,
            files_held: 0,
            crashed: with_faults,
            tainted: false,
            doubt: false,
        }
    }

    /// A result that must be Ok unless disks fail.
    #[track_caller]
    pub(super) fn settle<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                assert!(self.tainted, "{what}: {error}");
                None
            }
        }
    }

    pub(super) fn family(&self, random: &mut Random) -> ColumnFamily {
        // The default one as often as all others.
        let at = if random.one_in(2) { 0 } else { random.below(self.live.len() as u64) };
        self.live[at as usize].clone()
    }

    fn has_log(&self, options: &WriteOptions) -> bool {
        self.db.options().wal != WalMode::Off && !options.disable_wal
    }

    // ---- writing -------------------------------------------------------------------------------

    /// Does a write of `changes` to both.
    pub(super) fn write(
        &mut self,
        changes: Vec<Change>,
        options: &WriteOptions,
        act: impl FnOnce(&Db) -> Result<()>,
    ) {
        let logged = self.has_log(options);
        let before = self.db.latest_sequence_number();
        let result = act(&self.db);
        let applied = self.db.latest_sequence_number() > before;
        match result {
            Ok(()) => {
                assert!(logged || !options.sync, "a synced write without a log was acknowledged");
                assert_eq!(applied, !changes.is_empty(), "an acknowledged write is visible");
                if applied {
                    self.model.commit(changes, logged, true);
                }
                let synced = options.sync || self.db.options().wal == WalMode::SyncEachWrite;
                if logged && synced && applied {
                    self.model.log_is_durable();
                }
            }
            Err(Error::InvalidArgument(_)) if options.sync && !logged => assert!(!applied),
            Err(Error::WouldStall { .. }) if options.deadline.is_some() => assert!(!applied),
            Err(error) => {
                assert!(self.tainted, "a write failed: {error}");
                match applied {
                    true => self.model.commit(changes, logged, false),
                    // Refused from the start: nothing reached the log.
                    false if matches!(error, Error::Background { .. }) => {}
                    false => self.model.maybe(changes, logged),
                }
                if self.model.unsure() > 5 {
                    self.mend(true);
                }
            }
        }
    }

    /// A change of a single key.
    pub(super) fn change(
        &mut self,
        family: &ColumnFamily,
        key: Vec<u8>,
        what: What,
        options: &WriteOptions,
    ) {
        let what = what.of(&key);
        let change = Change { family: family.id(), key: key.clone(), what: what.clone() };
        let plain = family.id() == 0 && *options == WriteOptions::default();
        self.write(vec![change], options, |db| match &what {
            What::Put(value) if plain => db.put(&key, value),
            What::Put(value) => db.put_cf(family, &key, value, options),
            What::Delete if plain => db.delete(&key),
            What::Delete => db.delete_cf(family, &key, options),
            What::SingleDelete if plain => db.single_delete(&key),
            What::SingleDelete => db.single_delete_cf(family, &key, options),
            What::Merge(operand) if plain => db.merge(&key, operand),
            What::Merge(operand) => db.merge_cf(family, &key, operand, options),
            What::DeleteRange(end) if plain => db.delete_range(&key, end),
            What::DeleteRange(end) => db.delete_range_cf(family, &key, end, options),
        });
    }

    // ---- reading -------------------------------------------------------------------------------

    /// All of a column family, forwards; backwards must say the same. As compactions leave it.
    pub(super) fn read(db: &Db, family: &ColumnFamily, options: &ReadOptions) -> Result<View> {
        Ok(view_of(db.whole(family, options)?))
    }

    /// Reads `family` at `at` as a whole and compares.
    pub(super) fn compare(&self, family: &ColumnFamily, options: &ReadOptions, at: usize) {
        let Some(found) = self.settle("a scan", World::read(&self.db, family, options)) else {
            return;
        };
        same(&found, &self.model.view_within(family.id(), options, at), family.name());
    }

    pub(super) fn compare_all(&self) {
        for family in &self.live {
            self.compare(family, &ReadOptions::default(), self.model.now());
        }
    }

    // ---- closing and opening -------------------------------------------------------------------

    fn forget_readers(&mut self) {
        self.iters.clear();
        self.snapshots.clear();
        self.dropped.clear();
        self.let_go();
    }

    pub(super) fn clear_faults(&mut self) {
        if let Some(faults) = &self.faults {
            faults.clear();
        }
    }

    /// Opens what is there; no fault is at work.
    fn open(&mut self, options: Options) {
        let vfs = vfs_of(&self.mem, self.faults.as_ref());
        let families: Vec<(String, ColumnFamilyOptions)> = self
            .model
            .families
            .values()
            .skip(1)
            .map(|family| (family.name.clone(), options.column_family.clone()))
            .collect();
        self.options = options;
        // Half of them have options of their own, which are the same.
        let families: Vec<_> =
            families.iter().step_by(2).map(|(name, options)| (&**name, options.clone())).collect();
        self.db = open_arranged(vfs, PATH, &self.options, &families).into();
        self.tainted = false;
    }

    /// Holds what was found at open against what may be there, and starts from it.
    fn adopt(&mut self, all: bool) {
        let mut recovered = BTreeMap::new();
        self.live.clear();
        for name in self.db.column_families() {
            let family = self.db.column_family(&name).unwrap();
            let found = World::read(&self.db, &family, &ReadOptions::default()).unwrap();
            recovered.insert(family.id(), found);
            self.live.push(family);
        }
        self.live.sort_by_key(ColumnFamily::id);
        let names = |world: &World| -> Vec<(u32, String)> {
            world.live.iter().map(|family| (family.id(), family.name().to_owned())).collect()
        };
        let expected: Vec<_> =
            self.model.families.iter().map(|(id, family)| (*id, family.name.clone())).collect();
        assert_eq!(names(self), expected, "the column families after opening");
        if let Err(why) = self.model.allows(&recovered, all) {
            panic!("{why}");
        }
        self.model.rebase_on(recovered);
        self.doubt = false;
    }

    /// Closes and opens. A close that returns Ok has stored everything.
    pub(super) fn reopen(&mut self, options: Options, say_close: bool) {
        self.forget_readers();
        let closed = if say_close {
            let closed = self.db.close();
            self.settle("close", closed).is_some()
        } else {
            false
        };
        // What it would say of the close is not heard.
        self.leave();
        self.live.clear();
        self.clear_faults();
        if closed || !self.doubt {
            let ids: Vec<u32> = self.model.families.keys().copied().collect();
            ids.into_iter().for_each(|id| self.model.is_stored(id));
        }
        self.open(options);
        self.adopt(true);
    }

    /// The power fails.
    pub(super) fn crash(&mut self, choice: CrashChoice) {
        self.crashed = true;
        let all = choice == CrashChoice::Everything && !self.doubt;
        let image = self.mem.crash_image(choice);
        self.clear_faults();
        self.forget_readers();
        self.live.clear();
        self.mem = image;
        self.faults = self.faults.as_ref().map(|_| FaultVfs::new(Arc::new(self.mem.clone())));
        self.open(self.options.clone());
        self.adopt(all);
    }

    /// The disk is well again: the database works again and has lost nothing. With `anew`, it is
    /// also closed and opened.
    pub(super) fn mend(&mut self, anew: bool) {
        self.clear_faults();
        if self.tainted {
            let resumed = self.db.resume();
            assert!(resumed.is_ok(), "resume, the disk being well: {resumed:?}");
            self.tainted = false;
            self.compare_all();
        }
        if anew {
            let flushed = self.db.flush_all();
            assert!(flushed.is_ok(), "a flush, the disk being well: {flushed:?}");
            self.reopen(self.options.clone(), true);
        }
    }

    /// Background work comes to an end, and then `wait_idle` returns.
    pub(super) fn rest(&self) {
        let (mut steps, mut waited) = (0, Duration::ZERO);
        loop {
            while self.settle("a step", self.db.step()) == Some(true) {
                steps += 1;
                assert!(steps < 100_000, "background work does not end");
            }
            // After a failure it waits a while before it tries again.
            let again = self.doubt && self.db.property("sateen.compaction-pending").unwrap() != "0";
            if self.tainted || !again || waited > Duration::from_secs(8) {
                break;
            }
            advance(WAIT);
            waited += WAIT;
        }
        if !self.tainted {
            for name in ["mem-table-flush-pending", "compaction-pending"] {
                for family in &self.live {
                    let value = family.property(&format!("sateen.{name}")).unwrap();
                    assert_eq!(value, "0", "{name} of {}, nothing to do", family.name());
                }
            }
        }
        self.settle("wait_idle", self.db.wait_idle());
    }

    // ---- the end -------------------------------------------------------------------------------

    /// Nothing is left to do, and nothing lies about.
    pub(super) fn quiesce(&mut self) {
        // What could not be removed is removed at the next open; nothing else may lie about before.
        let stuck = self.faults.as_ref().is_some_and(|faults| {
            let sites = faults.sites();
            sites
                .iter()
                .any(|(site, counts)| site.operation == VfsOperation::Remove && counts.faults > 0)
        });
        self.mend(stuck);
        self.compare_all();
        self.forget_readers();
        self.db.flush_all().unwrap();
        if self.faults.is_some() {
            advance(LOOKED_AT_AGAIN);
        }
        self.rest();
        let property =
            |family: &ColumnFamily, name: &str| family.property(&format!("sateen.{name}")).unwrap();
        for family in &self.live {
            for name in ZERO_AT_REST {
                assert_eq!(property(family, name), "0", "{name} of {}, at rest", family.name());
            }
        }
        leaks::assert_at_rest(&self.db);
        assert_sound(&self.db);
        self.compare_all();
        self.assert_no_orphans();
        self.reopen(self.options.clone(), true);
        self.db.wait_idle().unwrap();
        assert_sound(&self.db);
        self.db.close().unwrap();
        self.live.clear();
        self.leave();
        leaks::assert_closed(&self.mem);
    }

    /// Another database, empty, takes the place of this one, whose last handle goes.
    fn leave(&mut self) {
        let mem = MemVfs::new();
        let placeholder = Options { background_threads: 0, ..Options::default() };
        self.db = sateen::Db::open_with(Arc::new(mem), PATH, placeholder, &[]).unwrap().into();
    }

    fn assert_no_orphans(&self) {
        let vfs = vfs_of(&self.mem, None);
        let waste = if self.crashed { leaks::AFTER_A_CRASH } else { leaks::EXACTLY };
        leaks::assert_directory(&*vfs, PATH.as_ref(), self.options.wal_dir.as_deref(), waste);
        assert_no_orphans(vfs, PATH, &self.options);
    }
}

pub(super) fn vfs_of(mem: &MemVfs, faults: Option<&FaultVfs>) -> Arc<dyn Vfs> {
    match faults {
        Some(faults) => Arc::new(faults.clone()),
        None => Arc::new(mem.clone()),
    }
}

/// Random bounds, prefix and the like. Bounds are never reversed.
pub(super) fn read_options(random: &mut Random) -> ReadOptions {
    let mut options = ReadOptions::default();
    if random.one_in(3) {
        options.lower_bound = Some(ops::key(random));
    }
    if random.one_in(3) {
        options.upper_bound = Some(ops::key(random));
    }
    if let (Some(lower), Some(upper)) = (&options.lower_bound, &options.upper_bound)
        && lower > upper
    {
        std::mem::swap(&mut options.lower_bound, &mut options.upper_bound);
    }
    if random.one_in(4) {
        let mut prefix = ops::key(random);
        prefix.truncate(random.below(8) as usize);
        options.prefix = Some(prefix);
    }
    options.fill_cache = random.one_in(2);
    options.readahead_bytes = [0, 1, 4096, 1 << 20][random.below(4) as usize];
    options
}
