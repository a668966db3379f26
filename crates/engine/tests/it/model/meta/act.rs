//! What each operation does.

use sateen::vfs::CrashChoice;
use sateen::{
    CompactRangeOptions, Error, FlushOptions, Options, ReadOptions, WriteBatch, WriteOptions,
};

use super::keys::{Cursor, Db, mirror};
use super::model::{Value, same, settled};
use super::ops::{self, Kind, Op};
use super::sets;
use super::world::{OpenIter, PATH, World, read_options, vfs_of};
use crate::support::common::{Random, assert_sound, open_arranged, pick};

const ITERATORS_MAX: usize = 4;
const SNAPSHOTS_MAX: usize = 6;
const FAMILIES_MAX: usize = 4;

impl World {
    pub(super) fn act(&mut self, op: Op) {
        let random = &mut Random::new(op.seed);
        self.calls += 1;
        match op.kind {
            Kind::Put
            | Kind::Delete
            | Kind::Merge
            | Kind::MergeUnlogged
            | Kind::SingleDelete
            | Kind::DeleteRange
            | Kind::PutSync
            | Kind::PutUnlogged
            | Kind::DeleteUnlogged
            | Kind::PutDeadline
            | Kind::PutLarge
            | Kind::PutLongKey => self.single(op.kind, random),
            Kind::Batch
            | Kind::BatchSavePoints
            | Kind::BatchSync
            | Kind::BatchUnlogged
            | Kind::BatchEmpty
            | Kind::BatchCopied => self.batch(op.kind, random),
            Kind::Overwrite | Kind::Ascending | Kind::MergeMany | Kind::DeleteMany => {
                self.many(op.kind, random);
            }
            Kind::Refused => self.refused(),
            Kind::Get | Kind::GetPinned | Kind::GetAtSnapshot | Kind::MultiGet => {
                self.get(op.kind, random);
            }
            Kind::ScanAll | Kind::ScanBounds | Kind::SnapshotScan => self.scan(op.kind, random),
            Kind::IterOpen => self.open_iter(random),
            Kind::IterMove => self.move_iter(random),
            Kind::IterClose => drop(pick(&self.iters, random).map(|at| self.iters.remove(at))),
            Kind::SnapshotTake if self.snapshots.len() < SNAPSHOTS_MAX => {
                self.snapshots.push((self.db.snapshot(), self.model.now()));
            }
            Kind::SnapshotTake => {}
            Kind::SnapshotRelease => {
                drop(pick(&self.snapshots, random).map(|at| self.snapshots.remove(at)));
            }
            Kind::FlushWait | Kind::FlushBegin | Kind::FlushAll => self.flush(op.kind, random),
            Kind::CompactRange | Kind::CompactAll | Kind::CompactBegin | Kind::CompactReversed => {
                self.compact(op.kind, random)
            }
            Kind::Step => {
                for step in 0..=random.below(12) {
                    self.calls += u64::from(step > 0);
                    self.settle("a step", self.db.step());
                }
            }
            Kind::WaitIdle => self.rest(),
            Kind::SyncWal => {
                if self.settle("sync_wal", self.db.sync_wal()).is_some() {
                    self.model.log_is_durable();
                }
            }
            Kind::Reopen => self.reopen(self.options.clone(), true),
            Kind::ReopenOtherwise => self.reopen(self.other_options(random), true),
            Kind::DropAndReopen => self.reopen(self.options.clone(), false),
            Kind::Crash => {
                let choice = match random.below(4) {
                    0 => CrashChoice::SyncedOnly,
                    1 => CrashChoice::Everything,
                    2 => CrashChoice::Subset(random.next()),
                    _ => {
                        let choices = self.mem.choices(2);
                        choices[random.below(choices.len() as u64) as usize]
                    }
                };
                self.crash(choice);
            }
            Kind::OpenReadOnly => self.open_read_only(),
            Kind::Checkpoint => self.checkpoint(random),
            Kind::CheckpointVerify => self.verify_checkpoint(random),
            Kind::SetOptions | Kind::SetFamilyOptions | Kind::SetRefused => {
                self.set_options(op.kind, random);
            }
            Kind::CreateFamily | Kind::DropFamily | Kind::RecreateFamily | Kind::UseDropped => {
                self.change_families(op.kind, random);
            }
            _ => self.more(op.kind, random),
        }
    }

    // ---- reading -------------------------------------------------------------------------------

    fn get(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let (mut options, mut at) = (ReadOptions::default(), self.model.now());
        if kind == Kind::GetAtSnapshot || (kind == Kind::MultiGet && random.one_in(2)) {
            let Some(slot) = pick(&self.snapshots, random) else { return };
            options = ReadOptions::at(&self.snapshots[slot].0);
            at = self.snapshots[slot].1;
        }
        options.fill_cache = random.one_in(2);
        let keys: Vec<Vec<u8>> = (0..=random.below(20)).map(|_| ops::key(random)).collect();
        if kind == Kind::MultiGet {
            let found = self.db.multi_get(&family, &keys, &options);
            assert_eq!(found.len(), keys.len());
            for (key, found) in keys.iter().zip(found) {
                let Some(found) = self.settle("multi_get", found) else { continue };
                self.same_value(family.id(), key, at, found.as_deref());
            }
            return;
        }
        let key = &keys[0];
        if kind == Kind::GetPinned {
            let found = match family.id() {
                0 => self.db.get_pinned(key),
                _ => self.db.get_pinned_cf(&family, key, &options),
            };
            if let Some(found) = self.settle("get_pinned", found) {
                self.same_value(family.id(), key, at, found.as_deref());
            }
            return;
        }
        let found = match family.id() {
            0 if kind == Kind::Get => self.db.get(key),
            _ => self.db.get_cf(&family, key, &options),
        };
        if let Some(found) = self.settle("get", found) {
            self.same_value(family.id(), key, at, found.as_deref());
        }
    }

    fn same_value(&self, family: u32, key: &[u8], at: usize, found: Option<&[u8]>) {
        let found = found.and_then(|found| settled(key, found.into()));
        self.model.assert_value(family, key, at, found.as_deref());
    }

    fn scan(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let mut options = ReadOptions::default();
        let mut at = self.model.now();
        if kind == Kind::ScanBounds {
            options = read_options(random);
        }
        if kind == Kind::SnapshotScan || random.one_in(3) {
            let Some(slot) = pick(&self.snapshots, random) else { return };
            options.snapshot = Some(self.snapshots[slot].0.clone());
            at = self.snapshots[slot].1;
        }
        self.compare(&family, &options, at);
    }

    fn open_iter(&mut self, random: &mut Random) {
        if self.iters.len() == ITERATORS_MAX {
            self.iters.remove(0);
        }
        let family = self.family(random);
        let mut options =
            if random.one_in(2) { read_options(random) } else { ReadOptions::default() };
        let mut at = self.model.now();
        if let (true, Some(slot)) = (random.one_in(3), pick(&self.snapshots, random)) {
            options.snapshot = Some(self.snapshots[slot].0.clone());
            at = self.snapshots[slot].1;
        }
        let opened = self.db.cursor_cf(&family, &options);
        let Some(iter) = self.settle("iter", opened) else { return };
        assert!(!iter.valid(), "an iterator stands on no key before the first seek");
        let view = self.model.view_within(family.id(), &options, at).into_iter().collect();
        self.iters.push(OpenIter { iter, view, at: None, failed: false });
    }

    fn move_iter(&mut self, random: &mut Random) {
        let Some(slot) = pick(&self.iters, random) else { return };
        let tainted = self.tainted;
        let moves = 1 + random.below(20);
        self.calls += moves - 1;
        let OpenIter { iter, view, at, failed } = &mut self.iters[slot];
        for _ in 0..moves {
            let target = match random.below(3) {
                0 if !view.is_empty() => view[random.below(view.len() as u64) as usize].0.clone(),
                _ => ops::key(random),
            };
            let up_to = |past: usize| past.checked_sub(1);
            let what = random.below(12);
            *at = match what {
                0 => {
                    iter.seek_to_first();
                    Some(0)
                }
                1 => {
                    iter.seek_to_last();
                    up_to(view.len())
                }
                2 | 3 => {
                    iter.seek(&target);
                    Some(view.partition_point(|(key, _)| *key < target))
                }
                4 | 5 => {
                    iter.seek_for_prev(&target);
                    up_to(view.partition_point(|(key, _)| *key <= target))
                }
                6..9 => {
                    iter.next();
                    at.map(|at| at + 1)
                }
                _ => {
                    iter.prev();
                    at.and_then(|at| at.checked_sub(1))
                }
            };
            *at = at.filter(|at| *at < view.len());
            // What a compaction would remove is passed by.
            let shown = |iter: &Cursor| settled(iter.key(), Value::from(iter.value()));
            while iter.valid() && shown(iter).is_none() {
                if matches!(what, 0 | 2 | 3 | 6..9) { iter.next() } else { iter.prev() }
            }
            if let Err(error) = iter.status() {
                let still = *failed && what >= 6;
                assert!(tainted || still, "an iterator failed: {error}");
                *failed = true;
                assert!(!iter.valid(), "an iterator that failed shows a key");
                *at = None;
                continue;
            }
            *failed = false;
            let value = if iter.valid() { shown(iter) } else { None };
            let found = value.as_deref().map(|value| (iter.key(), value));
            let expected = at.map(|at| (&*view[at].0, &*view[at].1));
            assert!(
                found == expected,
                "after move {what} (target {:?}) an iterator shows {:?} and not {:?}",
                target.escape_ascii().to_string(),
                found.map(|entry| (entry.0.escape_ascii().to_string(), entry.1.len())),
                expected.map(|entry| (entry.0.escape_ascii().to_string(), entry.1.len())),
            );
        }
    }

    // ---- upkeep --------------------------------------------------------------------------------

    fn flush(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let flushed = match kind {
            Kind::FlushAll => self.db.flush_all(),
            Kind::FlushWait if family.id() == 0 => self.db.flush(),
            _ => {
                let options = FlushOptions { wait: kind == Kind::FlushWait };
                family.flush_with(&options)
            }
        };
        if self.settle("a flush", flushed).is_none() || kind == Kind::FlushBegin {
            return;
        }
        if kind == Kind::FlushAll {
            let ids: Vec<u32> = self.live.iter().map(sateen::ColumnFamily::id).collect();
            ids.into_iter().for_each(|id| self.model.is_stored(id));
        } else {
            self.model.is_stored(family.id());
        }
    }

    fn compact(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let (mut low, mut high) = (ops::key(random), ops::key(random));
        if low > high {
            std::mem::swap(&mut low, &mut high);
        }
        let mut options = CompactRangeOptions {
            wait: true,
            flush: !random.one_in(4),
            rewrite_last_level: random.one_in(3),
        };
        let (begin, end) = match kind {
            Kind::CompactAll => (None, None),
            Kind::CompactReversed => {
                let result = self.db.compact_range(&family, Some(b"b"), Some(b"a"), &options);
                assert!(matches!(result, Err(Error::InvalidArgument(_))));
                return;
            }
            _ => {
                options.wait = kind == Kind::CompactRange;
                let begin = (!random.one_in(3)).then_some(&*low);
                (begin, (!random.one_in(3)).then_some(&*high))
            }
        };
        let compacted = self.db.compact_range(&family, begin, end, &options);
        if self.manual_paused > 0 && matches!(compacted, Err(Error::ManualCompactionPaused)) {
            return;
        }
        if self.settle("a compaction", compacted).is_some() && options.flush {
            self.model.is_stored(family.id());
        }
    }

    fn other_options(&self, random: &mut Random) -> Options {
        let mut options = sets::random(random);
        if !self.options.column_family.comparator.is_bytewise() {
            mirror(&mut options);
        }
        options.wal_dir = self.options.wal_dir.clone();
        // What was written with times is read with them.
        options.column_family.ttl = self.options.column_family.ttl;
        // Never fewer: the lowest may be in use.
        let levels = self.options.column_family.levels;
        options.column_family.levels = (levels + u32::from(random.one_in(4))).min(16);
        options
    }

    fn set_options(&mut self, kind: Kind, random: &mut Random) {
        let values = sets::random(random);
        let infos: Vec<_> = Options::all().filter(|info| info.mutable).collect();
        let family = self.family(random);
        let mut changes = Vec::new();
        for _ in 0..=random.below(4) {
            let info = infos[random.below(infos.len() as u64) as usize];
            if info.column_family == (kind != Kind::SetOptions) {
                changes.push((info.name, values.get(info.name).unwrap()));
            }
        }
        if kind == Kind::SetRefused {
            changes.push(("levels", "3".to_owned()));
        }
        let changes: Vec<(&str, &str)> = changes.iter().map(|(n, v)| (*n, &**v)).collect();
        let (before, family_before) = (self.db.options(), family.options());
        let result = match kind {
            Kind::SetOptions => self.db.set_options(&changes),
            _ => family.set_options(&changes),
        };
        match result {
            Ok(()) => {
                assert!(kind != Kind::SetRefused, "an option that is fixed was set");
                for (name, value) in changes {
                    let now = match kind {
                        Kind::SetOptions => self.db.options().get(name),
                        _ => family.options().get(name),
                    };
                    assert_eq!(now.unwrap(), value, "{name}");
                }
            }
            Err(error) => {
                let expected = matches!(error, Error::InvalidArgument(_));
                assert!(expected || self.tainted, "set_options: {error}");
                assert_eq!(self.db.options(), before, "all or none");
                assert_eq!(family.options(), family_before, "all or none");
            }
        }
    }

    fn change_families(&mut self, kind: Kind, random: &mut Random) {
        match kind {
            Kind::CreateFamily if self.live.len() < FAMILIES_MAX => {
                self.made += 1;
                let name = format!("family{}", self.made);
                self.create_family(&name);
            }
            Kind::DropFamily if self.live.len() > 1 => {
                let at = 1 + random.below(self.live.len() as u64 - 1) as usize;
                self.drop_family(at);
            }
            Kind::RecreateFamily if self.live.len() > 1 => {
                let at = 1 + random.below(self.live.len() as u64 - 1) as usize;
                let name = self.live[at].name().to_owned();
                let options = self.options.column_family.clone();
                let twice = self.db.create_column_family(&name, options);
                assert!(twice.is_err(), "a column family was made twice");
                if self.drop_family(at) {
                    self.create_family(&name);
                }
            }
            Kind::UseDropped if !self.dropped.is_empty() => {
                let family = &self.dropped[random.below(self.dropped.len() as u64) as usize];
                let options = WriteOptions::default();
                let read = ReadOptions::default();
                let mut batch = WriteBatch::new();
                batch.put("key", "of a batch that must not be there").unwrap();
                batch.to(family).put("key", "value").unwrap();
                let seqno = self.db.latest_sequence_number();
                assert!(self.db.put_cf(family, "key", "value", &options).is_err());
                assert!(self.db.write(&batch, &options).is_err());
                assert!(self.db.get_cf(family, "key", &read).is_err());
                assert!(self.db.cursor_cf(family, &read).is_err());
                assert!(self.db.multi_get(family, &["key"], &read)[0].is_err());
                assert!(family.flush().is_err());
                assert!(self.db.drop_column_family(family).is_err());
                assert_eq!(self.db.latest_sequence_number(), seqno);
            }
            _ => {}
        }
    }

    fn create_family(&mut self, name: &str) {
        let options = self.options.column_family.clone();
        let regions = options.regions.clone();
        let created = self.db.create_column_family(name, options);
        match self.settle("create_column_family", created) {
            Some(family) => {
                self.model.add_family(family.id(), name, &regions);
                self.live.push(family);
            }
            None => self.mend(true),
        }
    }

    fn drop_family(&mut self, at: usize) -> bool {
        let family = self.live[at].clone();
        let dropped = self.db.drop_column_family(&family);
        let done = self.settle("drop_column_family", dropped).is_some();
        if done {
            self.live.remove(at);
            self.model.families.remove(&family.id());
            self.dropped.push(family);
        } else {
            self.mend(true);
        }
        done
    }

    // ---- other databases -----------------------------------------------------------------------

    fn open_read_only(&mut self) {
        if self.tainted {
            return;
        }
        let vfs = vfs_of(&self.mem, None);
        let before = self.mem.fingerprint();
        let reader = sateen::Db::open_read_only_with(vfs, PATH, self.options.clone()).unwrap();
        let reader = Db::from(reader);
        let mut found = std::collections::BTreeMap::new();
        for name in reader.column_families() {
            let family = reader.column_family(&name).unwrap();
            let view = World::read(&reader, &family, &ReadOptions::default()).unwrap();
            found.insert(family.id(), view);
        }
        if let Err(why) = self.model.allows(&found, !self.doubt) {
            panic!("opened read-only: {why}");
        }
        assert!(matches!(reader.put("key", "value"), Err(Error::ReadOnly(_))));
        assert!(reader.flush().is_err() && reader.set_options(&[]).is_err());
        assert_sound(&reader);
        reader.close().unwrap();
        assert_eq!(self.mem.fingerprint(), before, "a reader changed the directory");
    }

    fn checkpoint(&mut self, random: &mut Random) {
        self.made += 1;
        let path = std::path::PathBuf::from(format!("/checkpoint{}", self.made));
        let made = self.db.checkpoint(&path);
        if self.settle("a checkpoint", made).is_none() {
            self.clear_faults();
            let left = vfs_of(&self.mem, None).exists(&path.join("CURRENT")).unwrap();
            assert!(!left, "a checkpoint that failed is a database");
            return;
        }
        let now = self.model.now();
        let view = |family: &sateen::ColumnFamily| {
            (family.name().to_owned(), self.model.view(family.id(), now))
        };
        let views = self.live.iter().map(view).collect();
        self.checkpoints.push((path, views));
        if self.checkpoints.len() > 2 || random.one_in(2) {
            self.verify_checkpoint(random);
        }
    }

    /// A checkpoint holds what it held when it was made, whatever either database did since.
    fn verify_checkpoint(&mut self, random: &mut Random) {
        let Some(slot) = pick(&self.checkpoints, random) else { return };
        let vfs = vfs_of(&self.mem, None);
        let (path, views) = &self.checkpoints[slot];
        let mut options = self.options.clone();
        options.wal_dir = None;
        let copy = Db::from(open_arranged(vfs.clone(), path, &options, &[]));
        assert_eq!(copy.column_families(), views.keys().cloned().collect::<Vec<_>>());
        for (name, expected) in views {
            let family = copy.column_family(name).unwrap();
            let found = World::read(&copy, &family, &ReadOptions::default()).unwrap();
            same(&found, expected, "a checkpoint");
        }
        assert_sound(&copy);
        if random.one_in(2) {
            // Changes of it are its own.
            let family = copy.default_column_family();
            let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            family.compact_range(None, None, &all).unwrap();
            copy.wait_idle().unwrap();
            while copy.step().unwrap() {}
        }
        copy.close().unwrap();
        drop(copy);
        if random.one_in(2) || self.checkpoints.len() > 2 {
            let (path, _) = self.checkpoints.remove(slot);
            for name in vfs.list(&path).unwrap() {
                vfs.remove(&path.join(name)).unwrap();
            }
            vfs.remove_dir(&path).unwrap();
            vfs.sync_dir("/".as_ref()).unwrap();
        }
    }
}
