//! The version set: the current version of every column family, and the manifest that makes it
//! durable.
//!
//! An edit is installed by [`VersionSet::install_all`]:
//!
//! 1. `take_token` waits until no other thread writes the manifest.
//! 2. `number_runs` gives the runs that join level 0 their epochs, and `next_without_done_ranges`
//!    computes the state of each column family after its edit, in memory.
//! 3. The edits are appended to the manifest as one record, without the lock.
//! 4. With [`Barrier::Now`] the manifest is synced. Edits that only move tables are not.
//! 5. `make_current` installs the versions in the column families, where readers see them, and
//!    tells the reclaimer about new tables.
//! 6. The tables that the edits removed go to the reclaimer once the edits are durable: now, or
//!    with the next barrier ([`VersionSet::sync_edits`]).
//! 7. If a roll is under way, the edits are recorded for the new manifest (`roll.rs`).
//!
//! What must stay true:
//!
//! - Only this module makes a version current (ARCHITECTURE.md, invariant 4).
//! - An edit is in the manifest before its version is visible. It is also durable before that,
//!   unless its loss would lose no data: it only moves tables, its entries are in a WAL, or it is a
//!   compaction. Then the WALs and the input tables are kept until the next barrier.
//! - One thread at a time writes. It holds a token, not a lock, while it waits for the disk.
//! - After a failed write or sync the manifest is dead, and the next edit goes to a new one (format
//!   rule F4).

mod roll;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use sateen_control::compaction::levels_to_lift;
use sateen_control::version::{TableMeta, Version, VersionEdit};
use sateen_control::{CfOptions, ColumnFamilyId, Epoch, FileId, LogNumber, SeqNo, TableId};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicU64, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock};
use sateen_store::files::counters::Counters;
use sateen_store::files::manifest_file_name;
use sateen_store::files::reclaim::Reclaimer;
use sateen_store::manifest::{Identity, ManifestWriter};
use sateen_store::memtable::MemTable;
use sateen_store::vfs::Vfs;

use crate::options::ColumnFamilyOptions;
use crate::tree::families::ColumnFamilyData;
pub(crate) use crate::tree::family_state::{FamilyState, FindComparator, Replay, durable_log};
use crate::tree::family_state::{next_without_done_ranges, oldest_log};

/// When an edit becomes durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// Before its version becomes current. An edit that only moves tables becomes durable with the
    /// next one.
    Now,
    /// With the next edit, or by [`VersionSet::sync_edits`]. For a flush of entries that are in a
    /// WAL, and for a compaction: the WAL or the input tables are kept until then.
    WithNext,
}

/// The part of a version set that its lock guards.
struct VersionSetState {
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// The manifest. `None` while the thread with the token uses it, and after a failure.
    writer: Option<ManifestWriter>,
    /// The failure after which there is no writer.
    failed: Option<Error>,
    /// The number of the manifest in use.
    manifest: FileId,
    /// Manifests that CURRENT may name after a failed roll. They are removed once a later roll has
    /// succeeded.
    strays: Vec<FileId>,
    /// True while a thread holds the token.
    busy: bool,
    /// Edits installed since a roll began, which the new manifest must get as well.
    since_roll: Option<Vec<Vec<VersionEdit>>>,
    shared_files: BTreeSet<FileId>,
    last_seqno: SeqNo,
    /// The oldest WAL that recovery needs if the edits that wait for a barrier are lost. `None` if
    /// none of these edits moved the oldest WAL.
    needed_until_barrier: Option<LogNumber>,
    /// Tables that are in no version any more, but would be again if the edits that wait for a
    /// barrier were lost.
    retired_until_barrier: Vec<Arc<TableMeta>>,
}

impl VersionSetState {
    /// Releases what was kept for edits that were not durable: all edits are durable now.
    fn all_durable(&mut self, reclaimer: &Reclaimer) {
        self.needed_until_barrier = None;
        reclaimer.retire(std::mem::take(&mut self.retired_until_barrier).into_iter());
    }

    /// Returns the oldest WAL that a column family needs.
    fn oldest_log(&self) -> LogNumber {
        oldest_log(self.families.values())
    }

    /// Makes `next` the state of the family of `edit`, which has been written. Returns its version.
    fn make_current(
        &mut self,
        edit: &VersionEdit,
        flushed: usize,
        next: Option<FamilyState>,
        reclaimer: &Reclaimer,
    ) -> Option<Arc<Version>> {
        self.shared_files.extend(edit.shared_files.iter().copied());
        let before = self.families.get(&edit.column_family).cloned();
        let version = next.as_ref().map(|family| family.version.clone());
        match next {
            Some(family) => {
                if let Some(data) = &family.data {
                    data.install(family.version.clone(), flushed);
                }
                self.families.insert(edit.column_family, family);
            }
            None => {
                self.families.remove(&edit.column_family);
            }
        }
        let retired = settle_accounts(edit, before.as_ref(), reclaimer);
        self.retired_until_barrier.extend(retired);
        version
    }
}

/// The version set of a database.
pub(crate) struct VersionSet {
    directory: PathBuf,
    vfs: Arc<dyn Vfs>,
    identity: Identity,
    state: Mutex<VersionSetState>,
    /// Notified when the token is returned.
    free: Condvar,
    /// True while a thread writes a new manifest.
    rolling: Mutex<bool>,
    /// Notified when a roll has ended.
    rolled: Condvar,
    pub(crate) counters: Counters,
    /// Size of the manifest in bytes.
    manifest_bytes: AtomicU64,
    /// Size of the snapshot that the manifest began with.
    snapshot_bytes: AtomicU64,
}

impl VersionSet {
    /// Returns a version set over column families that were recovered or are new. It writes
    /// nothing: [`VersionSet::roll`] creates the first manifest.
    pub(crate) fn new(
        directory: &Path,
        vfs: Arc<dyn Vfs>,
        identity: Identity,
        counters: Counters,
        families: BTreeMap<ColumnFamilyId, FamilyState>,
        shared_files: BTreeSet<FileId>,
        last_seqno: SeqNo,
    ) -> VersionSet {
        VersionSet {
            directory: directory.to_owned(),
            vfs,
            identity,
            state: Mutex::new(VersionSetState {
                families,
                writer: None,
                failed: None,
                manifest: FileId(0),
                strays: Vec::new(),
                busy: false,
                since_roll: None,
                shared_files,
                last_seqno,
                needed_until_barrier: None,
                retired_until_barrier: Vec::new(),
            }),
            free: Condvar::new(),
            rolling: Mutex::new(false),
            rolled: Condvar::new(),
            counters,
            manifest_bytes: AtomicU64::new(0),
            snapshot_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the database's identifier, which is mixed into its checksums.
    pub(crate) fn db_uid(&self) -> u64 {
        self.identity.uid
    }

    /// Returns the bytes appended to the manifest after its snapshot, which decide about a roll.
    /// The snapshot does not count, because a new manifest would have one of the same size.
    pub(crate) fn appended_bytes(&self) -> u64 {
        let began_with = self.snapshot_bytes.load(Ordering::Relaxed);
        self.manifest_bytes.load(Ordering::Relaxed).saturating_sub(began_with)
    }

    /// Returns true if the manifest takes no more edits after a failure.
    pub(crate) fn manifest_is_dead(&self) -> bool {
        let state = lock(&self.state);
        // A thread that is writing will report a failure itself.
        !state.busy && state.writer.as_ref().is_none_or(|writer| !writer.is_alive())
    }

    pub(crate) fn families(&self) -> BTreeMap<ColumnFamilyId, FamilyState> {
        lock(&self.state).families.clone()
    }

    pub(crate) fn version(&self, family: ColumnFamilyId) -> Option<Arc<Version>> {
        lock(&self.state).families.get(&family).map(|state| state.version.clone())
    }

    /// Connects the engine's side of a column family with its state.
    pub(crate) fn attach(&self, data: &Arc<ColumnFamilyData>) {
        if let Some(family) = lock(&self.state).families.get_mut(&data.id()) {
            family.data = Some(data.clone());
        }
    }

    /// Returns the oldest WAL that a column family needs.
    pub(crate) fn oldest_log(&self) -> LogNumber {
        lock(&self.state).oldest_log()
    }

    /// Returns the oldest WAL that is needed even if a power loss takes the edits that are not
    /// durable.
    pub(crate) fn oldest_log_after_power_loss(&self) -> LogNumber {
        let state = lock(&self.state);
        state.needed_until_barrier.unwrap_or(LogNumber(u64::MAX)).min(state.oldest_log())
    }

    /// Returns true if tables or WALs are kept for an edit that is not durable yet.
    pub(crate) fn holds_until_barrier(&self) -> bool {
        let state = lock(&self.state);
        state.needed_until_barrier.is_some() || !state.retired_until_barrier.is_empty()
    }

    /// Returns true if WALs are kept for an edit that is not durable yet.
    pub(crate) fn holds_logs_until_barrier(&self) -> bool {
        lock(&self.state).needed_until_barrier.is_some()
    }

    /// Waits for the token to write the manifest.
    fn take_token(&self) -> sateen_store::base::sync::MutexGuard<'_, VersionSetState> {
        let mut state = lock(&self.state);
        while state.busy {
            state = self.free.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.busy = true;
        state
    }

    /// Returns the token.
    fn give_token(&self, mut state: sateen_store::base::sync::MutexGuard<'_, VersionSetState>) {
        state.busy = false;
        drop(state);
        self.free.notify_one();
    }

    /// Installs `edits` as [`VersionSet::install_all`] does, durable before this returns.
    pub(crate) fn install_together(
        &self,
        edits: Vec<(VersionEdit, usize)>,
        last_seqno: SeqNo,
        reclaimer: &Reclaimer,
    ) -> Result<Vec<Option<Arc<Version>>>> {
        self.install_all(edits, last_seqno, reclaimer, Barrier::Now)
    }

    /// Installs one edit for each of several column families, all or none, and makes their versions
    /// current. `barrier` says when they are durable. Each edit comes with the number of the
    /// family's oldest sealed memtables that are in it. Returns the versions in the order of the
    /// edits, `None` for a family that its edit drops.
    ///
    /// On an error nothing has changed in memory. On disk the edits may exist until a new manifest
    /// replaces this one, so the files that they name must be kept.
    pub(crate) fn install_all(
        &self,
        edits: Vec<(VersionEdit, usize)>,
        last_seqno: SeqNo,
        reclaimer: &Reclaimer,
        barrier: Barrier,
    ) -> Result<Vec<Option<Arc<Version>>>> {
        let mut state = self.take_token();
        let (mut edits, flushed): (Vec<_>, Vec<_>) = edits.into_iter().unzip();
        // A job may finish after its column family was dropped.
        let gone = |edit: &&VersionEdit| {
            edit.create.is_none() && !state.families.contains_key(&edit.column_family)
        };
        if let Some(edit) = edits.iter().find(gone) {
            // The family was dropped while the edit was prepared, so nothing is written.
            let error = Error::NoSuchColumnFamily(edit.column_family.to_string());
            self.give_token(state);
            return Err(error);
        }
        number_runs(&mut edits, &self.counters);
        // The next states are computed before anything is written, so that a contradictory edit
        // changes nothing.
        let next: Result<Vec<_>> = edits
            .iter_mut()
            .map(|edit| next_without_done_ranges(&self.directory, &state.families, edit))
            .collect();
        let next = match next {
            Ok(next) => next,
            Err(error) => {
                self.give_token(state);
                return Err(error);
            }
        };
        state.last_seqno = state.last_seqno.max(last_seqno);
        for edit in &mut edits {
            self.counters.stamp(edit);
            edit.last_seqno = Some(state.last_seqno);
        }
        // From here on this thread writes without the lock. The token keeps other writers away.
        let Some(mut writer) = state.writer.take() else {
            let error = self.manifest_is_gone(&state);
            self.give_token(state);
            return Err(error);
        };
        drop(state);

        let mut written = writer.append(&edits);
        // Without the edit, tables that only move would be in the same files on another level. The
        // next barrier is soon enough, and no space waits for it to be freed.
        let moves = edits.iter().all(VersionEdit::only_moves);
        let waits = barrier == Barrier::Now && !moves;
        if waits {
            written = written.and_then(|_| writer.sync());
        }

        let mut state = lock(&self.state);
        if let Err(error) = written {
            state.failed = Some(error.clone());
            self.give_token(state);
            return Err(error);
        }
        self.manifest_bytes.store(writer.size_bytes(), Ordering::Relaxed);
        state.writer = Some(writer);
        // Computed before the versions change: recovery needs this WAL if the edits are lost.
        let names_log = edits.iter().any(|edit| edit.log_number.is_some());
        if barrier == Barrier::WithNext && names_log {
            let oldest = state.oldest_log();
            state.needed_until_barrier.get_or_insert(oldest);
        }
        // The edits are in the manifest: show the versions to readers.
        let mut versions = Vec::with_capacity(edits.len());
        for ((edit, flushed), next) in edits.iter().zip(flushed).zip(next) {
            versions.push(state.make_current(edit, flushed, next, reclaimer));
        }
        if waits {
            state.all_durable(reclaimer);
        }
        // A roll that is under way copied the state before these edits.
        if let Some(since) = state.since_roll.as_mut() {
            since.push(edits);
        }
        self.give_token(state);
        Ok(versions)
    }

    /// Returns the error for an edit after the manifest has failed: the first failure.
    fn manifest_is_gone(&self, state: &VersionSetState) -> Error {
        if let Some(failed) = &state.failed {
            return failed.clone();
        }
        let path = manifest_file_name(&self.directory, state.manifest);
        let source = std::io::Error::other("an earlier write to the manifest failed");
        Error::io("append", &path, source)
    }

    /// Makes all edits durable. If edits are lost before, tables that moved or were compacted are
    /// where they were, and the entries of flushed memtables are still in their WALs.
    pub(crate) fn sync_edits(&self, reclaimer: &Reclaimer) -> Result<()> {
        let mut state = self.take_token();
        let Some(mut writer) = state.writer.take_if(|writer| writer.has_unsynced()) else {
            let dead = state.writer.is_none().then(|| self.manifest_is_gone(&state));
            if dead.is_none() {
                state.all_durable(reclaimer);
            }
            self.give_token(state);
            return dead.map_or(Ok(()), Err);
        };
        drop(state);
        let synced = writer.sync();
        let mut state = lock(&self.state);
        state.failed = synced.as_ref().err().cloned();
        state.writer = Some(writer).filter(|_| synced.is_ok());
        if synced.is_ok() {
            state.all_durable(reclaimer);
        }
        self.give_token(state);
        synced.map(drop)
    }

    /// Installs the edits that create the column families of `datas`, and connects these with their
    /// state.
    pub(crate) fn install_new(
        &self,
        edits: Vec<VersionEdit>,
        datas: &[Arc<ColumnFamilyData>],
        last_seqno: SeqNo,
        reclaimer: &Reclaimer,
    ) -> Result<Vec<Arc<Version>>> {
        let edits = edits.into_iter().map(|edit| (edit, 0)).collect();
        let installed = self.install_together(edits, last_seqno, reclaimer)?;
        let mut versions = Vec::with_capacity(datas.len());
        for (data, version) in datas.iter().zip(installed) {
            let levels = data.options().levels as usize;
            // The manifest's versions have the largest number of levels; the options may want
            // fewer.
            let resized = version.and_then(|version| version.with_levels(levels));
            let fresh = || fresh_version(data.id(), &data.options());
            let version = Arc::new(resized.unwrap_or_else(fresh));
            if let Some(family) = lock(&self.state).families.get_mut(&data.id()) {
                family.version = version.clone();
                family.data = Some(data.clone());
            }
            data.install(version.clone(), 0);
            versions.push(version);
        }
        Ok(versions)
    }

    /// Gives a recovered column family the number of levels and the compaction style that its
    /// options want, before the first manifest is written. A read-only database leaves the
    /// arrangement as it is, apart from added empty levels. Fails if a level that the options do
    /// not have holds tables.
    pub(crate) fn resize(
        &self,
        id: ColumnFamilyId,
        options: &CfOptions,
        read_only: bool,
    ) -> Result<Option<Arc<Version>>> {
        let levels = options.levels;
        let mut state = lock(&self.state);
        let Some(family) = state.families.get_mut(&id) else { return Ok(None) };
        let Some(version) = family.version.with_levels(levels) else {
            if read_only {
                return Ok(None);
            }
            return Err(too_few_levels(levels, &family.name, &family.version));
        };
        family.version = Arc::new(if read_only {
            version
        } else {
            let by = levels_to_lift(&version, options);
            version.lifted(by).with_style(options.compaction_style.name().to_owned())
        });
        Ok(Some(family.version.clone()))
    }

    /// Records whether the values of a recovered column family are stored with the times of their
    /// writes, before the first manifest is written.
    pub(crate) fn record_value_times(&self, id: ColumnFamilyId, value_times: bool) {
        if let Some(family) = lock(&self.state).families.get_mut(&id) {
            let version = (*family.version).clone().with_value_times(value_times);
            family.version = Arc::new(version);
        }
    }

    /// Adds a column family that the primary made after the secondary was opened. It is empty until
    /// [`VersionSet::follow`].
    pub(crate) fn add_followed(&self, data: &Arc<ColumnFamilyData>, state: &FamilyState) {
        let version = data.super_version().version.clone();
        let state = FamilyState { version, data: Some(data.clone()), ..state.clone() };
        lock(&self.state).families.insert(data.id(), state);
    }

    /// Makes the versions of the primary current in a secondary, with the memtables that belong to
    /// them. Column families that the secondary does not know are left out.
    pub(crate) fn follow(
        &self,
        followed: &BTreeMap<ColumnFamilyId, FamilyState>,
        memtables: &BTreeMap<ColumnFamilyId, Arc<MemTable>>,
    ) {
        let mut state = lock(&self.state);
        state.families.retain(|id, _| followed.contains_key(id));
        for (id, family) in &mut state.families {
            let Some(next) = followed.get(id) else { continue };
            (family.version, family.stored) = (next.version.clone(), next.stored);
            if let (Some(data), Some(memtable)) = (&family.data, memtables.get(id)) {
                data.follow(next.version.clone(), memtable.clone());
            }
        }
    }
}

/// Returns the first, empty version of a column family with these options.
pub(crate) fn fresh_version(id: ColumnFamilyId, options: &ColumnFamilyOptions) -> Version {
    Version::new(id, options.levels as usize)
        .with_style(options.compaction_style.to_string())
        .with_comparator(options.comparator.clone())
        .with_value_times(options.ttl.is_some())
}

/// Returns the error of an open with fewer levels than the tables of a column family need.
fn too_few_levels(levels: usize, name: &str, version: &Version) -> Error {
    let deepest = version.tables().map(|(level, _, _)| level).max().unwrap_or(0);
    Error::InvalidArgument(format!(
        "levels={levels}: the column family {name} has tables in level {deepest}. An open with \
         levels={} and dynamic_level_bytes=false moves them up as far as they have room",
        deepest + 1
    ))
}

/// Gives the runs that join level 0 their epochs, in the order of the installation. With an earlier
/// number a run could be installed after a newer one, which a compaction may have claimed with
/// older ones meanwhile: the older entries would then be in front of those of the run.
fn number_runs(edits: &mut [VersionEdit], counters: &Counters) {
    for edit in edits {
        let epochs = edit.added.iter().map(|added| added.epoch);
        let unnumbered: BTreeSet<_> = epochs.filter(|epoch| epoch.is_at_install()).collect();
        for run in unnumbered {
            let epoch: Epoch = counters.epoch();
            let tables = edit.added.iter_mut().filter(|added| added.epoch == run);
            tables.for_each(|added| added.epoch = epoch);
        }
    }
}

/// Tells the reclaimer which tables are new and which have left level 0. Returns the tables that
/// are in no version any more.
fn settle_accounts(
    edit: &VersionEdit,
    before: Option<&FamilyState>,
    reclaimer: &Reclaimer,
) -> Vec<Arc<TableMeta>> {
    let removed: BTreeSet<TableId> = edit.removed.iter().map(|table| table.id).collect();
    let added: BTreeSet<TableId> = edit.added.iter().map(|added| added.table.id).collect();
    let fresh = edit.added.iter().map(|added| &added.table);
    reclaimer.add(fresh.filter(|table| !removed.contains(&table.id)));
    let mut retired: Vec<Arc<TableMeta>> = Vec::new();
    let Some(before) = before else { return retired };
    if edit.drop {
        retired.extend(before.version.tables().map(|(_, _, table)| table.clone()));
    }
    for gone in edit.removed.iter().filter(|gone| !added.contains(&gone.id)) {
        let run = before.version.level(gone.level).run(gone.epoch);
        let found = run.and_then(|run| run.locate(gone.smallest.bytes(), gone.id));
        retired.extend(found.map(|(_, table)| table.clone()));
    }
    // A table that only moved has left level 0 as well, if it was there.
    reclaimer.left_level0(removed.into_iter().chain(retired.iter().map(|table| table.id)));
    retired
}

#[cfg(test)]
mod tests {
    use sateen_control::version::{AddedTable, RemovedTable};
    use sateen_store::vfs::MemVfs;

    use super::*;
    use crate::{Db, Options};

    /// Of two runs, that which is installed later is newer, whatever was made first.
    #[test]
    fn runs_of_level_0_are_ordered_by_installation() {
        let options = Options { background_threads: 0, ..Options::default() };
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        for key in ["a", "b", "c"] {
            db.put(key, "value").unwrap();
            db.flush().unwrap();
        }
        let versions = &db.core().tree.versions;
        let order = || {
            let version = versions.version(ColumnFamilyId(0)).unwrap();
            let runs = version.level(0).runs().iter();
            let newest_first: Vec<_> = runs.flatten().map(|table| table.id).collect();
            newest_first
        };
        let before = order();
        let [newest, middle, oldest] = before[..] else { panic!("{before:?}") };
        let again = |tables: &[TableId]| {
            let version = versions.version(ColumnFamilyId(0)).unwrap();
            let mut edit = VersionEdit::default();
            for (nth, id) in (0..).zip(tables) {
                let mut all = version.tables();
                let (level, epoch, table) = all.find(|(.., table)| table.id == *id).unwrap();
                let (smallest, id) = (table.smallest.clone(), table.id);
                edit.removed.push(RemovedTable { level, epoch, smallest, id });
                let epoch = Epoch::at_install(nth);
                edit.added.push(AddedTable { level, epoch, table: table.clone() });
            }
            let reclaimer = &db.core().tree.reclaimer;
            versions.install_together(vec![(edit, 0)], SeqNo(0), reclaimer).unwrap();
        };
        again(&[middle]);
        assert_eq!(order(), [middle, newest, oldest]);
        again(&[oldest, middle]);
        assert_eq!(order(), [middle, oldest, newest]);
    }
}
