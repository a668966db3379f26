//! A secondary: a database that follows a primary, which another process has open for writing. It
//! reads the primary's manifest and WALs, at open and when it is told to catch up, and changes
//! nothing.
//!
//! [`Secondary::catch_up`]:
//!
//! 1. It reads new edits of the manifest.
//! 2. [`FollowState::round`] reads the WALs as far as they go into memtables, then the manifest
//!    again.
//! 3. If the manifest had nothing new, `show` exchanges what readers see, for all column families
//!    at once. Otherwise another round follows.
//! 4. Damage may mean that the primary has removed a file meanwhile. The WALs are then read again
//!    from the start, unless the manifest has not moved and the error repeats.
//!
//! What must stay true:
//!
//! - Readers see a prefix of the primary's commits, the same in all column families, or an error.
//! - A round counts only if the manifest had nothing new after the WALs were read. Then no needed
//!   WAL was removed meanwhile, and no table that only the manifest knows (an ingested one) is
//!   missing under the entries of the WALs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sateen_control::version::Version;
use sateen_control::{ColumnFamilyId, FileId, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::locks::{read, write};
use sateen_store::base::sync::{Mutex, RwLock, RwLockReadGuard, lock};
use sateen_store::files::reclaim::OpenTables;
use sateen_store::memtable::MemTable;
use sateen_store::wal::{Followed, LogFollower, LogPlace};

use crate::environment::Environment;
use crate::options::{ColumnFamilyOptions, ReadOptions};
use crate::tree::Tree;
use crate::tree::families::{ColumnFamilyData, PREPARED};
use crate::tree::manifest_follower::ManifestFollower;
use crate::tree::version_set::{FamilyState, fresh_version};
use crate::write::path::WritePath;

#[cfg(test)]
pub(crate) mod tests;

/// Number of rounds before a primary that changes all the time is given up.
const ROUNDS_MAX: u32 = 200;

type Families = BTreeMap<ColumnFamilyId, FamilyState>;

/// The services of the secondary's database.
pub(crate) struct Follower<'a> {
    pub(crate) env: &'a Environment,
    pub(crate) tree: &'a Tree,
    pub(crate) writes: &'a WritePath,
}

/// The state that makes a database a secondary.
pub(crate) struct Secondary {
    /// Held for reading while a reader takes what it sees, for writing while that is exchanged.
    view: RwLock<()>,
    /// Held by the thread that catches up. It is a turn, kept over I/O.
    following: Mutex<FollowState>,
}

/// How far the secondary has read, and what readers see.
struct FollowState {
    manifest: ManifestFollower,
    logs: LogFollower,
    /// The newest entry that was read from a WAL.
    read_to: SeqNo,
    /// The memtables that readers will see, with what was read. Entries up to a family's `stored`
    /// number are removed when they are shown.
    memtables: BTreeMap<ColumnFamilyId, Arc<MemTable>>,
    /// What readers see now.
    shown: BTreeMap<ColumnFamilyId, FamilyState>,
    shown_seqno: SeqNo,
    /// Whether the memtables replace those that are shown, instead of having more entries.
    exchanged: bool,
}

impl Secondary {
    pub(crate) fn new(manifest: ManifestFollower, logs: &Path) -> Secondary {
        let logs = LogFollower::new(manifest.vfs.clone(), logs, manifest.identity.uid);
        Secondary {
            view: RwLock::new(()),
            following: Mutex::new(FollowState {
                manifest,
                logs,
                read_to: SeqNo(0),
                memtables: BTreeMap::new(),
                shown: BTreeMap::new(),
                shown_seqno: SeqNo(0),
                exchanged: false,
            }),
        }
    }
}

impl Secondary {
    /// Returns the guard that a reader holds while it takes what it sees, so that all of it is of
    /// one moment. `visible` returns the newest visible sequence number. Fails if `options` has an
    /// older snapshot.
    #[inline(never)]
    pub(crate) fn view(
        &self,
        options: &ReadOptions,
        visible: impl FnOnce() -> SeqNo,
    ) -> Result<RwLockReadGuard<'_, ()>> {
        let view = read(&self.view);
        // The primary does not know snapshots taken here, and compacts away what they would see.
        let visible = visible();
        if options.seqno().is_some_and(|seqno| seqno != visible) {
            let text = "the snapshot was taken before the secondary caught up with its primary";
            return Err(Error::InvalidArgument(text.into()));
        }
        Ok(view)
    }

    /// Catches up with the primary. Returns true if there was anything new.
    pub(crate) fn catch_up(&self, db: &Follower<'_>) -> Result<bool> {
        db.env.check_open()?;
        let mut following = lock(&self.following);
        let mut failed = None;
        let mut fresh = true;
        for _ in 0..ROUNDS_MAX {
            let round = if fresh { following.manifest.advance().map(drop) } else { Ok(()) };
            let round = round.and_then(|()| following.round(db));
            match round {
                Ok(true) => {
                    following.check_forms(db)?;
                    return Ok(following.show(db, self));
                }
                Ok(false) => fresh = false,
                // A needed file may have been removed meanwhile. Then the manifest says so now.
                Err(error) if error.is_corruption() => {
                    let again = failed.as_ref() == Some(&error.to_string())
                        && !following.manifest.has_moved().unwrap_or(true);
                    if again {
                        return Err(error);
                    }
                    failed = Some(error.to_string());
                    following.reset(db);
                    fresh = true;
                }
                Err(error) => return Err(error),
            }
        }
        let cause =
            format!("{}: it changes faster than it can be read", db.env.directory.display());
        Err(Error::Behind { cause })
    }
}

impl FollowState {
    /// Reads the WALs as far as they go, and then the manifest. Returns true if that had nothing
    /// new.
    fn round(&mut self, db: &Follower<'_>) -> Result<bool> {
        let families = self.manifest.families();
        let decreased = |(id, shown): (&ColumnFamilyId, &FamilyState)| {
            families.get(id).is_some_and(|family| family.stored < shown.stored)
        };
        let went_back = self.shown.iter().any(decreased);
        // A primary that could not make an edit durable has gone back behind it.
        if went_back {
            self.reset(db);
        }
        self.follow_prepared(db);
        for data in db.tree.families().values() {
            self.memtables.entry(data.id()).or_insert_with(|| data.active_memtable());
        }
        self.find_logs(db)?;
        let directory = self.logs.directory().to_owned();
        let stored = |id: &ColumnFamilyId| self.manifest.families().get(id).map(|f| f.stored);
        let oldest = self.manifest.oldest_log();
        let (memtables, read_to, exchanged) =
            (&mut self.memtables, &mut self.read_to, &mut self.exchanged);
        self.logs.read(oldest, |followed| match followed {
            Followed::Group(record) => {
                let before = *read_to;
                record.for_each_entry(&directory, |seqno, entry| {
                    let wanted = stored(&entry.column_family).is_some_and(|stored| seqno > stored);
                    if let Some(memtable) = memtables.get(&entry.column_family)
                        && wanted
                        && seqno > before
                    {
                        memtable.insert(entry.key, seqno, entry.kind, entry.value);
                    }
                    *read_to = seqno.max(*read_to);
                })
            }
            Followed::Anew(begins) => {
                // The dead WAL had a write that failed, and it was read all the same.
                if begins > SeqNo(0) && *read_to >= begins {
                    for (id, memtable) in memtables.iter_mut() {
                        let Some(data) = db.tree.family_by_id(*id) else { continue };
                        *memtable = part_of(memtable, &data, |seqno| seqno < begins)?;
                    }
                    (*read_to, *exchanged) = (SeqNo(begins.0 - 1), true);
                }
                Ok(())
            }
        })?;
        Ok(!self.manifest.advance()?)
    }

    /// Fails if the primary has changed the form of a column family that was empty.
    fn check_forms(&self, db: &Follower<'_>) -> Result<()> {
        for data in db.tree.families().values() {
            let family = self.manifest.families().get(&data.id());
            let times = family.and_then(|family| family.version.value_times());
            if times.is_some_and(|times| times != data.has_times()) {
                return Err(Error::InvalidArgument(format!(
                    "ttl: the primary has opened the column family {} {} a ttl, unlike the \
                     secondary, which must be opened again",
                    data.name(),
                    if data.has_times() { "without" } else { "with" }
                )));
            }
        }
        Ok(())
    }

    /// Begins to follow the column family of prepared transactions, if the primary made it after
    /// the secondary was opened. Its entries may have been skipped, so the WALs are read again.
    fn follow_prepared(&mut self, db: &Follower<'_>) {
        let families = db.tree.families();
        if families.prepared().is_some() {
            return;
        }
        let made = self.manifest.families().iter().find(|(_, family)| family.name == PREPARED);
        let Some((id, state)) = made else { return };
        let options = ColumnFamilyOptions::default();
        let version = Arc::new(fresh_version(*id, &options));
        let (name, pool) = (PREPARED.to_owned(), db.writes.memtable_pool.clone());
        let data = Arc::new(ColumnFamilyData::new(*id, name, None, options, version, pool));
        data.set_regions(Vec::new());
        db.tree.versions.add_followed(&data, state);
        let mut families = (**families).clone();
        families.insert(&data);
        db.tree.families.store(Arc::new(families));
        self.reset(db);
    }

    /// Chooses the directory of the WALs as the primary does. It may change when the primary is
    /// opened with another `wal_dir`.
    fn find_logs(&mut self, db: &Follower<'_>) -> Result<()> {
        let (home, wal_directory) = (&db.env.directory, db.env.wal_directory());
        if *home == wal_directory {
            return Ok(());
        }
        let (vfs, oldest) = (self.manifest.vfs.as_ref(), self.manifest.oldest_log());
        let uid = self.manifest.identity.uid;
        let place = LogPlace::find(vfs, home, &wal_directory, oldest, uid)?;
        self.logs.move_to(&place.directory);
        Ok(())
    }

    /// Discards everything that was read from WALs.
    fn reset(&mut self, db: &Follower<'_>) {
        self.logs.restart();
        self.read_to = SeqNo(0);
        self.memtables.clear();
        for data in db.tree.families().values() {
            self.memtables.insert(data.id(), data.new_memtable());
        }
        self.exchanged = true;
    }

    /// Shows readers what was read. Returns true if it is anything new.
    fn show(&mut self, db: &Follower<'_>, secondary: &Secondary) -> bool {
        let families = self.manifest.families();
        let same = |(id, family): (&ColumnFamilyId, &FamilyState)| {
            let shown = self.shown.get(id);
            shown.is_some_and(|shown| Arc::ptr_eq(&shown.version, &family.version))
        };
        let same = self.shown.len() == families.len() && families.iter().all(same);
        let newest = self.read_to.max(if same { self.shown_seqno } else { SeqNo(0) });
        if same && newest == self.shown_seqno && !self.exchanged {
            return false;
        }
        let newest = if same { newest } else { newest.max(self.manifest.stored_seqno()) };
        for (id, memtable) in &mut self.memtables {
            let (Some(family), Some(data)) = (families.get(id), db.tree.family_by_id(*id)) else {
                continue;
            };
            let before = self.shown.get(id).map_or(SeqNo(0), |shown| shown.stored);
            if family.stored > before && !memtable.is_empty() {
                // Reading a memtable fails only if memory is damaged.
                if let Ok(rest) = part_of(memtable, &data, |seqno| seqno > family.stored) {
                    *memtable = rest;
                }
            }
        }
        let gone: Vec<_> = db
            .tree
            .families()
            .values()
            .filter(|data| !families.contains_key(&data.id()))
            .cloned()
            .collect();
        {
            let _exchange = write(&secondary.view);
            db.tree.versions.follow(families, &self.memtables);
            db.writes.pipeline.show(newest);
        }
        for data in gone {
            data.mark_dropped();
            self.memtables.remove(&data.id());
            let mut families = (**db.tree.families()).clone();
            families.remove(&data);
            db.tree.families.store(Arc::new(families));
        }
        let before = files_of(&self.shown);
        let now = files_of(families);
        before.difference(&now).for_each(|file| db.tree.tables.evict_file(*file));
        // Iterators on older versions have opened some again since these were left.
        db.tree.tables.keep_value_files(&now);
        self.shown = families.clone();
        (self.shown_seqno, self.exchanged) = (newest, false);
        true
    }
}

/// Returns all files of all versions.
fn files_of(families: &Families) -> BTreeSet<FileId> {
    let versions = families.values().map(|family| &family.version);
    let files = |version: &Arc<Version>| -> Vec<FileId> {
        version.tables().flat_map(|(_, _, table)| table.files()).collect()
    };
    versions.flat_map(files).collect()
}

/// Returns a memtable with the entries of `memtable` for whose sequence numbers `keep` returns
/// true.
fn part_of(
    memtable: &Arc<MemTable>,
    data: &ColumnFamilyData,
    keep: impl Fn(SeqNo) -> bool,
) -> Result<Arc<MemTable>> {
    let part = data.new_memtable();
    let mut entries = memtable.iter();
    entries.seek_to_first()?;
    while entries.valid() {
        let (seqno, kind) = (key::seqno(entries.key()), key::kind(entries.key()));
        if let Some(kind) = kind.filter(|_| keep(seqno)) {
            part.insert(key::user_key(entries.key()), seqno, kind, entries.value());
        }
        entries.next()?;
    }
    let ranges = memtable.ranges();
    for range in ranges.iter().flat_map(|ranges| ranges.iter()).filter(|range| keep(range.seqno)) {
        let (begin, end) = (range.begin.bytes(), range.end.bytes());
        part.insert(begin, range.seqno, ValueKind::RangeDelete, end);
    }
    Ok(part)
}
