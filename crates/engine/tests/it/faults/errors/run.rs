//! One run of a scenario under a fault: what was done, what must be there, and what an answer may
//! be.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{
    CrashChoice, Fault, FaultId, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Site, Vfs,
    VfsOperation, path_class,
};
use sateen::{
    CheckReport, Db, Error, Health, Options, ReadOptions, RepairReport, WriteBatch, WriteOptions,
};

use crate::support::common::{Contents, Random, appending, as_vfs, whole};

pub(super) const MARK: &[u8] = b"~commit";
pub(super) const OTHER: &str = "other";
/// Keys of files that are taken in: they are not of the commits.
pub(super) const TAKEN_IN: &[u8] = b"~in";
const KEYS: u64 = 40;

/// What a scenario begins with.
pub(super) struct Start {
    pub(super) mem: MemVfs,
    pub(super) options: Options,
    pub(super) states: Vec<[Contents; 2]>,
    /// Commits that survive a power loss.
    pub(super) durable: usize,
}

impl Start {
    pub(super) fn fresh(mut options: Options) -> Start {
        options.create_missing_column_families = true;
        options.column_family.merge_operator = Some(appending());
        Start { mem: MemVfs::new(), options, states: vec![Default::default()], durable: 0 }
    }

    pub(super) fn run(&self, what: String, rule: Option<(FaultRule, Fault, Site)>) -> Run {
        let mem = self.mem.crash_image(CrashChoice::Everything);
        let faulty = FaultVfs::new(as_vfs(&mem));
        let fault = rule.as_ref().map(|(_, fault, site)| (*fault, site.clone()));
        let rule = rule.map(|(rule, ..)| faulty.add(rule));
        Run {
            what,
            mem,
            faulty,
            fault,
            rule,
            options: self.options.clone(),
            states: self.states.clone(),
            done: self.states.len() - 1,
            durable: self.durable,
            stored: 0,
            struck_at: None,
            crashes: 0,
            fails_by_itself: false,
            unsure: false,
            errors: 0,
        }
    }
}

pub(super) struct Run {
    pub(super) what: String,
    pub(super) mem: MemVfs,
    pub(super) faulty: FaultVfs,
    pub(super) options: Options,
    fault: Option<(Fault, Site)>,
    rule: Option<FaultId>,
    /// The contents of both families after so many commits; one more than `done` while one is
    /// tried.
    states: Vec<[Contents; 2]>,
    pub(super) done: usize,
    durable: usize,
    /// Commits that are in tables.
    stored: usize,
    /// The commits that were done when the fault first happened.
    struck_at: Option<usize>,
    crashes: u32,
    /// The scenario has failures of its own.
    pub(super) fails_by_itself: bool,
    /// It was closed with an error: what was not synced before may not be there.
    unsure: bool,
    pub(super) errors: u64,
}

pub(super) fn open(vfs: &Arc<dyn Vfs>, options: &Options) -> Result<Db, Error> {
    let family = options.column_family.clone();
    Db::open_with(vfs.clone(), "/db", options.clone(), &[(OTHER, family)])
}

fn mark_of(found: &Contents) -> usize {
    found.get(MARK).map_or(0, |text| String::from_utf8(text.clone()).unwrap().parse().unwrap())
}

impl Run {
    /// Whether the fault says that it happened: then it is over when the disk is well again.
    pub(super) fn is_honest(&self) -> bool {
        match &self.fault {
            None => true,
            Some((Fault::FlippedBit | Fault::StaleBlock | Fault::Zeros, _)) => false,
            // A log is read to where it ends, and a read is held against that.
            Some((Fault::Short, site)) => {
                site.operation != VfsOperation::Read || site.path_class == "wal"
            }
            Some(_) => true,
        }
    }

    /// Whether what is on the disk is what was written to it.
    fn disk_is_well(&self) -> bool {
        let reads = |site: &Site| site.operation == VfsOperation::Read;
        self.is_honest() || self.fault.as_ref().is_some_and(|(_, site)| reads(site))
    }

    pub(super) fn vfs(&self) -> Arc<dyn Vfs> {
        Arc::new(self.faulty.clone())
    }

    pub(super) fn has_struck(&mut self) -> bool {
        let struck = self.struck_at.is_some()
            || self.rule.is_some_and(|rule| self.faulty.happened(rule) > 0);
        if struck && self.struck_at.is_none() {
            self.struck_at = Some(self.done);
        }
        struck
    }

    /// The disk is well again.
    pub(super) fn mend(&mut self) {
        if self.has_struck()
            && let Some(rule) = self.rule.take()
        {
            self.faulty.remove_rule(rule);
        }
    }

    /// A failure, once, that belongs to the scenario: for the sake of what follows it.
    pub(super) fn fail_once(&mut self, fault: Fault, on: VfsOperation, path: &str) {
        self.fail_nth(fault, on, path, 1);
    }

    /// The same, until the rule is taken away.
    pub(super) fn fail_until_told(
        &mut self,
        fault: Fault,
        on: VfsOperation,
        path: &str,
    ) -> FaultId {
        self.fails_by_itself = true;
        self.faulty.add(FaultRule::new(fault).on(on).path_contains(path))
    }

    /// The same, of the `nth` call from now on.
    pub(super) fn fail_nth(&mut self, fault: Fault, on: VfsOperation, path: &str, nth: u64) {
        self.fails_by_itself = true;
        self.faulty.add(FaultRule::new(fault).on(on).path_contains(path).nth(nth));
    }

    /// An error names a file, and there is a reason for it.
    pub(super) fn told(&mut self, error: &Error) {
        let text = error.to_string();
        let struck = self.has_struck() || self.fails_by_itself;
        assert!(struck, "{}: an error before there is a fault: {text}", self.what);
        let delayed = matches!(&self.fault, Some((Fault::Delay(_), _))) && !self.fails_by_itself;
        assert!(text.contains('/') && !delayed, "{}: names no file: {text}", self.what);
        self.errors += 1;
    }

    /// The fewest commits that may be there after the next open.
    fn fewest(&self) -> usize {
        if self.unsure {
            return self.durable.min(self.done);
        }
        let of_log = |(_, site): &(Fault, Site)| site.path_class == "wal";
        if self.is_honest() || !self.fault.as_ref().is_some_and(of_log) {
            return self.done;
        }
        // A log of which nothing is read but zeros or another block looks as one that never was,
        // where nothing else tells of it. What was stored before is not in it alone.
        let looks_empty = matches!(&self.fault, Some((Fault::Zeros | Fault::StaleBlock, _)));
        if looks_empty && self.disk_is_well() {
            return self.stored.min(self.done);
        }
        // What was not synced may look as a crash leaves it; what lies was synced by nobody.
        match (self.disk_is_well(), self.struck_at) {
            (true, _) | (_, None) => self.durable.min(self.done),
            (false, Some(struck)) => struck.min(self.done),
        }
    }

    /// The number of commits that the database shows: all of each, in both families, or an error.
    fn view(&self, db: &Db, fewest: usize, most: usize) -> Result<usize, Error> {
        let Some(other) = db.column_family(OTHER) else {
            panic!("{}: a column family is gone", self.what)
        };
        let mut marks = Vec::new();
        for (number, family) in [db.default_column_family(), other].iter().enumerate() {
            let mut iter = family.cursor(&ReadOptions::default())?;
            let mut found = Contents::new();
            iter.seek_to_first();
            while iter.valid() {
                if !iter.key().starts_with(TAKEN_IN) {
                    found.insert(iter.key().to_vec(), iter.value().to_vec());
                }
                iter.next();
            }
            iter.status()?;
            let mark = mark_of(&found);
            let fits = (fewest..=most).contains(&mark);
            assert!(fits, "{}: {mark} commits, not {fewest} to {most}", self.what);
            let state = &self.states[mark][number];
            assert!(found == *state, "{}: wrong contents at commit {mark}", self.what);
            for key in (0..KEYS).map(|i| format!("key{i:03}").into_bytes()) {
                let got = family.get(&key)?;
                let right = got.as_ref() == state.get(&key);
                assert!(right, "{}: a wrong answer at commit {mark}", self.what);
            }
            marks.push(mark);
        }
        assert!(marks[0] == marks[1], "{}: half a batch: {marks:?}", self.what);
        Ok(marks[0])
    }

    /// Opens the database, at the latest when the disk is well. `None` if it can't be: what is on
    /// the disk is not what was written.
    pub(super) fn open(&mut self) -> Option<Db> {
        for attempt in 0..6 {
            let opened = open(&self.vfs(), &self.options).and_then(|db| {
                self.has_struck();
                let shown = self.view(&db, self.fewest(), self.states.len() - 1)?;
                Ok((db, shown))
            });
            match opened {
                Ok((db, shown)) => {
                    self.done = shown;
                    self.unsure = false;
                    self.states.truncate(shown + 1);
                    return Some(db);
                }
                Err(error) => {
                    self.told(&error);
                    if attempt > 0 {
                        self.mend();
                    }
                }
            }
        }
        self.give_up("cannot be opened")
    }

    fn give_up<T>(&self, what: &str) -> Option<T> {
        assert!(!self.disk_is_well(), "{}: {what}", self.what);
        None
    }

    /// Tries until it works: under the fault, and then on a disk that is well again, with the
    /// database resumed. Meanwhile it gives right answers or errors.
    pub(super) fn insist<T>(
        &mut self,
        db: &Db,
        mut act: impl FnMut(&Db) -> Result<T, Error>,
    ) -> Option<T> {
        for attempt in 0..6 {
            match act(db) {
                Ok(value) => {
                    self.has_struck();
                    return Some(value);
                }
                Err(error) => self.told(&error),
            }
            let (health, cause) = db.health();
            assert_eq!(health == Health::Ok, cause.is_none(), "{}: {health:?}", self.what);
            if let Err(error) = self.view(db, self.done, self.states.len() - 1) {
                self.told(&error);
            }
            if attempt > 0 {
                self.mend();
                if let Err(error) = db.resume() {
                    self.told(&error);
                    if self.fails_by_itself {
                        continue;
                    }
                    assert!(!self.is_honest(), "{}: cannot resume: {error}", self.what);
                    return None;
                }
            }
        }
        // What is damaged stays damaged until the files are looked at anew.
        assert!(!self.is_honest(), "{}: fails on and on: {:?}", self.what, db.health());
        None
    }

    /// The same for what opens something.
    pub(super) fn insist_alone_with<T>(
        &mut self,
        mut act: impl FnMut(Arc<dyn Vfs>, &Options) -> Result<T, Error>,
    ) -> Option<T> {
        let (vfs, options) = (self.vfs(), self.options.clone());
        self.insist_alone(|| act(vfs.clone(), &options))
    }

    /// The same for what needs no database.
    pub(super) fn insist_alone<T>(
        &mut self,
        mut act: impl FnMut() -> Result<T, Error>,
    ) -> Option<T> {
        for attempt in 0..6 {
            match act() {
                Ok(value) => {
                    self.has_struck();
                    return Some(value);
                }
                Err(error) => self.told(&error),
            }
            if attempt > 0 {
                self.mend();
            }
        }
        self.give_up("fails on and on")
    }

    /// Stores what is in memory.
    pub(super) fn flush(&mut self, db: &Db) -> Option<()> {
        self.insist(db, Db::flush_all)?;
        self.stored = self.done;
        Some(())
    }

    /// One more commit. It can be tried again: it does the same whatever of it was done.
    pub(super) fn commit(&mut self, db: &Db, sync: bool) -> Option<()> {
        self.commit_by(db, sync, Db::write)
    }

    /// The same, written by `write`.
    pub(super) fn commit_by(
        &mut self,
        db: &Db,
        sync: bool,
        mut write: impl FnMut(&Db, &WriteBatch, &WriteOptions) -> Result<(), Error>,
    ) -> Option<()> {
        let number = self.done + 1;
        let mut random = Random::new(number as u64);
        let mut state = self.states[self.done].clone();
        let other = db.column_family(OTHER).unwrap();
        let families = [db.default_column_family(), other];
        let mut batch = WriteBatch::new();
        for _ in 0..=random.below(4) {
            let place = random.below(KEYS);
            let key = format!("key{place:03}").into_bytes();
            let family = usize::from(random.one_in(3));
            let (handle, contents) = (&families[family], &mut state[family]);
            let value = vec![b'a' + (random.below(26) as u8); random.below(200) as usize];
            match random.below(8) {
                0 => {
                    batch.to(handle).delete(&key).unwrap();
                    contents.remove(&key);
                }
                1 => {
                    let end = format!("key{:03}", place + 3).into_bytes();
                    batch.to(handle).delete_range(&key, &end).unwrap();
                    contents.retain(|other, _| *other < key || *other >= end);
                }
                2 => {
                    batch.to(handle).delete(&key).unwrap();
                    batch.to(handle).merge(&key, &value).unwrap();
                    contents.insert(key, value);
                }
                _ => {
                    batch.to(handle).put(&key, &value).unwrap();
                    contents.insert(key, value);
                }
            }
        }
        for (family, contents) in families.iter().zip(&mut state) {
            let mark = number.to_string().into_bytes();
            batch.to(family).put(MARK, &mark).unwrap();
            contents.insert(MARK.to_vec(), mark);
        }
        self.states.truncate(number);
        self.states.push(state);
        let options = WriteOptions { sync, ..WriteOptions::default() };
        self.insist(db, |db| write(db, &batch, &options))?;
        self.done = number;
        if sync {
            self.durable = number;
            // Right after the fault nothing else has made durable what was not.
            if self.has_struck() && self.is_honest() && self.crashes < 3 {
                self.crashes += 1;
                self.lose_power();
            }
        }
        Some(())
    }

    /// Closes; what could not be stored meanwhile is told.
    pub(super) fn close(&mut self, db: Db) {
        if let Err(error) = db.close() {
            self.told(&error);
            self.unsure = true;
        }
    }

    /// A copy of the database has so many commits.
    pub(super) fn look_at_copy(&mut self, path: &str, commits: usize) {
        let disk = self.mem.clone();
        self.look_at_copy_on(&disk, path, commits);
    }

    /// The same on another disk.
    pub(super) fn look_at_copy_on(&mut self, disk: &MemVfs, path: &str, commits: usize) {
        let family = self.options.column_family.clone();
        let opened = Db::open_read_only_families_with(
            as_vfs(disk),
            path,
            self.options.clone(),
            &[(OTHER, family)],
        );
        let fewest = if self.is_honest() { commits } else { 0 };
        if let Err(error) = opened.and_then(|db| self.view(&db, fewest, commits)) {
            self.told(&error);
            assert!(!self.is_honest(), "{}: the copy in {path}: {error}", self.what);
        }
    }

    /// What somebody shows who reads along is as new as it can be.
    pub(super) fn look_beside(&mut self, db: &Db) -> Option<()> {
        let fewest = if self.is_honest() { self.done } else { 0 };
        for _ in 0..3 {
            match self.view(db, fewest, self.done) {
                Ok(_) => return Some(()),
                Err(error) => self.told(&error),
            }
            self.mend();
        }
        self.give_up("cannot be read")
    }

    /// Every table gets bytes that nobody wrote.
    pub(super) fn damage_tables(&mut self) {
        self.fails_by_itself = true;
        for name in self.mem.list(Path::new("/db")).unwrap() {
            if path_class(&name) == "sat" {
                let options = OpenOptions::WRITE;
                let file = self.mem.open(&Path::new("/db").join(name), options).unwrap();
                file.write_at(&[7; 64], 4096, IoClass::Client).unwrap();
            }
        }
    }

    /// What somebody shows who has fallen behind is right, or it is told that it is behind.
    pub(super) fn look_behind(&mut self, db: &Db) {
        match self.view(db, 0, self.done) {
            Ok(_) | Err(Error::Behind { .. }) => {}
            Err(error) => self.told(&error),
        }
    }

    /// What a repaired database shows, and what a check finds in it; `None` if it is told that what
    /// the repair has written is not what is there.
    pub(super) fn after_repair(&mut self) -> Option<(Contents, Vec<Error>)> {
        self.mend();
        let looked = Db::open_with(as_vfs(&self.mem), "/db", self.options.clone(), &[]);
        let looked = looked.and_then(|db| {
            let shown: Vec<(Vec<u8>, Vec<u8>)> =
                whole(db.cursor(&ReadOptions::default())?, <[u8]>::to_vec)?;
            Ok((shown.into_iter().collect(), findings(db.check(&mut |_, _| {})?)))
        });
        match looked {
            Ok(looked) => Some(looked),
            Err(error) if self.disk_is_well() => {
                panic!("{}: after the repair: {error}", self.what)
            }
            Err(error) => {
                self.told(&error);
                None
            }
        }
    }

    /// A check finds nothing but what lied.
    pub(super) fn assert_well(&self, problems: &[Error]) {
        assert!(problems.is_empty() || !self.disk_is_well(), "{}: {problems:?}", self.what);
    }

    /// What was repaired is all there, or it is told what is not.
    pub(super) fn look_at_repaired(&mut self, report: &RepairReport) -> Option<()> {
        let Some((mut found, _)) = self.after_repair() else { return Some(()) };
        found.retain(|key, _| !key.starts_with(TAKEN_IN));
        let mark = mark_of(&found);
        // What could not be read is told, and put aside. The manifest was not there.
        let is_manifest = |loss: &Error| match loss {
            Error::Corruption { path, .. } => path_class(path) == "MANIFEST",
            _ => false,
        };
        let is_whole = report.losses.iter().all(is_manifest);
        assert!(is_whole || self.has_struck(), "{}: {report:?}", self.what);
        assert!(!is_whole || !self.is_honest() || mark == self.done, "{}: {report:?}", self.what);
        // Zeros are what was given back.
        let aside = !self.is_honest() && !report.moved.is_empty();
        let right = found == self.states[mark][0] || !is_whole || aside;
        assert!(right, "{}: wrong contents at commit {mark}: {report:?}", self.what);
        Some(())
    }

    pub(super) fn into_states(self) -> (Vec<[Contents; 2]>, usize) {
        (self.states, self.durable)
    }

    /// Pieces of background work.
    pub(super) fn steps(&mut self, db: &Db, count: usize) -> Option<()> {
        for _ in 0..count {
            self.insist(db, Db::step)?;
        }
        Some(())
    }

    /// What a power loss would leave is what was promised.
    fn lose_power(&self) {
        let image = as_vfs(&self.mem.crash_image(CrashChoice::SyncedOnly));
        let db = open(&image, &self.options)
            .unwrap_or_else(|error| panic!("{}: after a power loss: {error}", self.what));
        let shown = self.view(&db, self.durable, self.done);
        shown.unwrap_or_else(|error| panic!("{}: after a power loss: {error}", self.what));
    }

    /// Looks at everything, closes, opens again and looks again.
    pub(super) fn finish(&mut self, db: Db) -> Option<()> {
        self.insist(&db, Db::wait_idle)?;
        self.look(&db, self.done);
        self.mend();
        let mut well = self.is_well(&db, self.done);
        if self.is_honest() {
            self.lose_power();
        }
        self.close(db);
        assert!(!self.unsure || !self.is_honest(), "{}: cannot be closed", self.what);
        well &= !self.unsure;
        let db = self.open()?;
        well &= self.is_well(&db, self.fewest());
        assert!(well || !self.disk_is_well(), "{}: damaged for good", self.what);
        Some(())
    }

    /// Nothing is damaged for good: the fault may strike here at last, but then not again.
    fn is_well(&mut self, db: &Db, fewest: usize) -> bool {
        self.look(db, fewest) || {
            self.mend();
            self.look(db, fewest)
        }
    }

    /// Everything is there, or a read and the check say what is not.
    fn look(&mut self, db: &Db, fewest: usize) -> bool {
        let shown = self.view(db, fewest, self.done);
        let problems = match db.check(&mut |_, _| {}) {
            Ok(report) => findings(report),
            Err(error) => vec![error],
        };
        for error in shown.as_ref().err().into_iter().chain(&problems) {
            self.told(error);
        }
        // What failed but once is well by now.
        let seen =
            shown.is_ok() || !problems.is_empty() || self.view(db, fewest, self.done).is_ok();
        assert!(seen, "{}: the check sees nothing", self.what);
        problems.is_empty()
    }
}

/// What a check found to be wrong, and what it could not read.
fn findings(report: CheckReport) -> Vec<Error> {
    report.problems.into_iter().chain(report.unreadable).collect()
}
