//! What is true of every image, and the images that are looked at.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use sateen::vfs::{CrashChoice, MemVfs};
use sateen::{ColumnFamily, Db, Error, Options, ReadOptions};

use super::work::{Copied, INGESTED, MARK, OTHER, Run, SOLO, is_ordered};
use crate::features::updates::Replica;
use crate::support::common::{Contents, as_vfs, assert_sound, decided, read_all};
use crate::support::leaks;

/// One in so many images has its checkpoints opened and is watched to its end.
const CLOSELY: u64 = 16;
/// So many operations after a checkpoint it is always opened.
const SOON: usize = 20;

/// As compactions that filter would leave it, without what was taken in.
fn settled(found: Contents) -> (Contents, Contents) {
    let decide = |(key, value): (Vec<u8>, Vec<u8>)| Some((key.clone(), decided(&key, &value)?));
    found.into_iter().filter_map(decide).partition(|(key, _)| !key.starts_with(INGESTED))
}

fn number(family: &ColumnFamily, key: &[u8]) -> usize {
    let text = family.get(key).unwrap();
    text.map_or(0, |text| String::from_utf8(text).unwrap().parse().unwrap())
}

impl Run {
    fn bounds(&self, at: usize) -> (usize, usize) {
        let last = |list: &[(usize, usize)]| {
            list[list.partition_point(|(operations, _)| *operations <= at) - 1].1
        };
        (last(&self.promised), last(&self.begun))
    }

    /// Opens what the crash left and holds it against what was promised. Its fingerprint decides
    /// how closely.
    pub(super) fn examine(&self, image: &MemVfs, fingerprint: u64, at: usize, what: &str) {
        let (floor, ceiling) = self.bounds(at);
        let closely = fingerprint.is_multiple_of(CLOSELY);
        if self.options.wal_ttl_seconds > 0 {
            self.examine_beside(image, ceiling, what);
        }
        let db = Db::open_with(as_vfs(image), "/db", self.options.clone(), &[])
            .unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
        let commits = self.examine_contents(&db, what);
        assert!(
            (floor..=ceiling).contains(&commits),
            "{what}: {commits} commits, promised {floor}, begun {ceiling}"
        );
        self.examine_families(&db, at, commits, what);
        self.examine_ingested(&db, at, what);
        assert_sound(&db);
        if self.options.wal_ttl_seconds > 0 {
            self.examine_log(&db, commits, what);
        }
        for i in 0..10 {
            db.put(format!("after{i}x"), "crash").unwrap();
        }
        db.close().unwrap();
        drop(db);
        leaks::assert_closed(image);
        let db = Db::open_with(as_vfs(image), "/db", self.options.clone(), &[]).unwrap();
        for i in 0..10 {
            let found = db.get(format!("after{i}x")).unwrap();
            assert!(found.is_some(), "{what}: lost after reopening");
        }
        assert_sound(&db);
        if closely {
            self.examine_families(&db, at, commits, what);
            self.examine_ingested(&db, at, what);
            leaks::end(db, image, Path::new("/db"), leaks::AFTER_A_CRASH);
        }
        for copy in &self.copies {
            let near = (copy.span.0..copy.span.1 + SOON).contains(&at);
            if closely && at >= copy.span.0 || near {
                self.examine_copy(image, copy, at, what);
            }
        }
    }

    /// Holds both families against the state that they say they are in, and returns which it is.
    fn examine_contents(&self, db: &Db, what: &str) -> usize {
        let Some(other) = db.column_family(OTHER) else {
            panic!("{what}: the column family is gone");
        };
        let family = db.default_column_family();
        let mark = number(&family, MARK);
        let commits = mark.max(number(&family, SOLO));
        assert!(commits < self.states.len(), "{what}: {commits} commits of {}", self.states.len());
        if is_ordered(&self.options) {
            let in_other = number(&other, MARK);
            assert_eq!(in_other, mark, "{what}: a batch is in one family and not in the other");
        }
        let latest = ReadOptions::default();
        for (at, family) in [family, other].iter().enumerate() {
            let (found, _) = settled(read_all(family, &latest));
            let found = found.into_iter().filter(|(key, _)| !key.starts_with(b"after")).collect();
            assert_same(&found, &self.states[commits][at], what);
        }
        commits
    }

    /// Column families are there from when they were made until they are dropped, with what was
    /// written to them.
    fn examine_families(&self, db: &Db, at: usize, commits: usize, what: &str) {
        for extra in &self.extras {
            let family = db.column_family(&extra.name);
            let made = at >= extra.created.1;
            let dropping = extra.dropped.is_some_and(|dropped| at > dropped.0);
            let dropped = extra.dropped.is_some_and(|dropped| at >= dropped.1);
            let Some(family) = family else {
                assert!(!made || dropping, "{what}: {} is gone", extra.name);
                continue;
            };
            let early = at <= extra.created.0;
            assert!(!early && !dropped, "{what}: {} is there", extra.name);
            let (found, _) = settled(read_all(&family, &ReadOptions::default()));
            assert_same(&found, &extra.contents(commits), &format!("{what}, {}", extra.name));
        }
    }

    /// A file is taken in as a whole.
    fn examine_ingested(&self, db: &Db, at: usize, what: &str) {
        let family = db.default_column_family();
        let (_, found) = settled(read_all(&family, &ReadOptions::default()));
        let mut expected = Contents::new();
        for one in &self.ingested {
            let there = one.contents.keys().next().is_some_and(|key| found.contains_key(key));
            let may = at > one.span.0;
            let must = at >= one.span.1;
            assert!((!must || there) && (may || !there), "{what}: taken in: {there}");
            if there {
                expected.extend(one.contents.clone());
            }
        }
        assert_same(&found, &expected, &format!("{what}, taken in"));
    }

    /// A checkpoint is there as a whole once it was made, and before it is no database; what became
    /// of the database that it was made of is nothing to it.
    fn examine_copy(&self, image: &MemVfs, copy: &Copied, at: usize, what: &str) {
        let what = format!("{what}, the checkpoint {}", copy.path.display());
        if image.contents(&copy.path.join("CURRENT")).is_err() {
            assert!(at < copy.span.1, "{what}: is no database");
            return;
        }
        // All its tables are in its own directory, and the others are the source's.
        let options = Options { paths: Vec::new(), ..self.options.clone() };
        let db = Db::open_with(as_vfs(image), &copy.path, options, &[])
            .unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
        assert_eq!(self.examine_contents(&db, &what), copy.commits, "{what}");
        for (number, extra) in self.extras.iter().enumerate() {
            let family = db.column_family(&extra.name);
            assert_eq!(family.is_some(), copy.extras.contains(&number), "{what}: {}", extra.name);
            let Some(family) = family else { continue };
            let (found, _) = settled(read_all(&family, &ReadOptions::default()));
            assert_same(&found, &extra.contents(copy.commits), &what);
        }
        let (_, found) = settled(read_all(&db.default_column_family(), &ReadOptions::default()));
        let ingested = self.ingested.iter().take(copy.ingested);
        let expected = ingested.flat_map(|one| one.contents.clone()).collect();
        assert_same(&found, &expected, &what);
        assert_sound(&db);
        db.close().unwrap();
    }

    /// A secondary of a primary that is not there any more shows some state that there was, or says
    /// that it cannot.
    fn examine_beside(&self, image: &MemVfs, ceiling: usize, what: &str) {
        let opened = Db::open_secondary_with(as_vfs(image), "/db", self.options.clone(), &[]);
        let db = match opened {
            Ok(db) => db,
            Err(error) => {
                // A primary that was just made, or before its recovery.
                assert!(!matches!(error, Error::Io { .. }), "{what}: {error}");
                return;
            }
        };
        let commits = self.examine_contents(&db, &format!("{what}, beside"));
        assert!(commits <= ceiling, "{what}: {commits} commits beside, begun {ceiling}");
    }

    /// The log has what survived from the first write on, and nothing else.
    fn examine_log(&self, db: &Db, commits: usize, what: &str) {
        let mut updates = db.updates_since(0).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut replica = Replica::new(&self.options, &[OTHER]);
        let mut batches = 0;
        while updates.valid() {
            replica.take(&updates);
            batches += 1;
            updates.next();
        }
        updates.status().unwrap_or_else(|error| panic!("{what}: {error}"));
        // What the database writes again by itself comes as a batch, too.
        let again = self.options.column_family.memtable_hot_part > 0.0;
        assert!(batches == commits || again && batches > commits, "{what}: {batches} batches");
        for (at, name) in ["default", OTHER].into_iter().enumerate() {
            let (found, _) = settled(replica.contents(name));
            assert_same(&found, &self.states[commits][at], what);
        }
    }
}

/// Says which keys differ, not all that are there.
fn assert_same(got: &Contents, expected: &Contents, what: &str) {
    if got == expected {
        return;
    }
    let keys = got.keys().chain(expected.keys());
    let differ = keys.filter(|key| got.get(*key) != expected.get(*key));
    for key in differ {
        let text = |value: Option<&Vec<u8>>| value.map(|value| value.escape_ascii().to_string());
        println!(
            "{}: {:?}, not {:?}",
            key.escape_ascii(),
            text(got.get(key)),
            text(expected.get(key))
        );
    }
    panic!("{what}: wrong contents");
}

/// Which images are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    pub(super) threads: usize,
    /// Those at each so many-th operation, from `offset` on.
    pub(super) stride: usize,
    pub(super) offset: usize,
    /// Of what may have survived there, one in so many.
    pub(super) one_in: usize,
    /// One in so many of them is crashed again at every operation of its recovery; 0: none.
    pub(super) nested: usize,
}

impl Sweep {
    /// Returns how many images were looked at, and how many of a second crash. Of those that are
    /// the same one is.
    pub(super) fn go(self, run: &Run, seed: u64) -> (usize, usize) {
        let next = AtomicUsize::new(self.offset);
        let (images, doubles) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            loop {
                let at = next.fetch_add(self.stride, Ordering::Relaxed);
                if at > run.recording.len() {
                    return;
                }
                let mut seen = HashSet::new();
                let choices = run.recording.choices_at(at, 4);
                for choice in choices.into_iter().skip(at % self.one_in).step_by(self.one_in) {
                    let what = format!("seed {seed}, operation {at}, {choice:?}");
                    let image = run.recording.image_at(at, choice);
                    let fingerprint = image.fingerprint();
                    if !seen.insert(fingerprint) {
                        continue;
                    }
                    let number = images.fetch_add(1, Ordering::Relaxed);
                    if self.nested > 0 && number.is_multiple_of(self.nested) {
                        doubles.fetch_add(again(run, &image, at, &what), Ordering::Relaxed);
                    }
                    run.examine(&image, fingerprint, at, &what);
                }
            }
        };
        if self.threads == 1 {
            work();
        } else {
            std::thread::scope(|scope| {
                (0..self.threads).for_each(|_| drop(scope.spawn(work)));
            });
        }
        (images.into_inner(), doubles.into_inner())
    }
}

/// Crashes the recovery of `image` at each of its operations.
pub(super) fn again(run: &Run, image: &MemVfs, at: usize, what: &str) -> usize {
    let image = image.crash_image(CrashChoice::Everything);
    let recovery = image.record();
    let db = Db::open_with(as_vfs(&image), "/db", run.options.clone(), &[])
        .unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
    db.close().unwrap();
    let mut images = 0;
    for operation in 0..=recovery.len() {
        let all = recovery.choices_at(operation, 2);
        // One of those between nothing and all, another one each time.
        let between = all[(at + operation).wrapping_mul(31) % all.len()];
        let mut seen = HashSet::new();
        for choice in [CrashChoice::SyncedOnly, CrashChoice::Everything, between] {
            let twice = recovery.image_at(operation, choice);
            let fingerprint = twice.fingerprint();
            if !seen.insert(fingerprint) {
                continue;
            }
            let what = format!("{what}, then operation {operation} of recovery, {choice:?}");
            run.examine(&twice, fingerprint, at, &what);
            images += 1;
        }
    }
    images
}
