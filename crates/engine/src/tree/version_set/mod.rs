//! The current version of every column family, and the log of edits that makes it durable.
//!
//! What must stay true: this is the only place that makes a version current (ARCHITECTURE.md,
//! invariant 4). An edit is written and synced before the version that it leads to is seen; one
//! that only moves tables, whose data a log has, or of a compaction is written, and durable with
//! the next: until then the log, and the tables that it did away with, stay. One
//! thread at a time is the writer; it holds a token, not a lock, while it waits for the disk. After
//! a failed write or sync the manifest is dead: the next edit goes to a new one (format rule F4).

mod roll;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use sateen_control::compaction::levels_to_lift;
use sateen_control::version::{TableMeta, Version, VersionEdit};
use sateen_control::{CfOptions, ColumnFamilyId, FileId, LogNumber, SeqNo, TableId};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::plant::planted;
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
use crate::tree::family_state::next_without_done_ranges;
pub(crate) use crate::tree::family_state::{FamilyState, FindComparator, Replay, durable_log};

/// When an edit is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// Before its version is current; if it only moves tables, with the next edit.
    Now,
    /// With the next edit, or by [`VersionSet::sync_edits`]: a flush of what is in a log, which is
    /// needed until then, or a compaction, whose inputs are.
    WithNext,
}

struct VersionSetState {
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// None while the writer has it, and after it died.
    writer: Option<ManifestWriter>,
    manifest: FileId,
    /// Manifests that CURRENT may have named for a moment: not needed once it names another for
    /// sure.
    strays: Vec<FileId>,
    /// Somebody is writing.
    busy: bool,
    /// Edits installed since a roll began: the new manifest must get them too.
    since_roll: Option<Vec<Vec<VersionEdit>>>,
    shared_files: BTreeSet<FileId>,
    last_seqno: SeqNo,
    /// The oldest log that is needed if the edits that wait for a barrier are lost; none if no edit
    /// waits that says of a log that it is not needed.
    needed_until_barrier: Option<LogNumber>,
    /// Tables that are in no version any more, but will be again if the edits that wait for a
    /// barrier are lost.
    retired_until_barrier: Vec<Arc<TableMeta>>,
}

impl VersionSetState {
    /// All edits are durable: what was kept in case that they are lost may go.
    fn all_durable(&mut self, reclaimer: &Reclaimer) {
        self.needed_until_barrier = None;
        reclaimer.retire(std::mem::take(&mut self.retired_until_barrier).into_iter());
    }

    fn oldest_log(&self) -> LogNumber {
        let needed = self.families.values().map(|family| family.version.log_number());
        needed.min().unwrap_or_default()
    }

    /// `edit` is written: `next` is the family's state from now on.
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

/// The durable catalogue of a database.
pub(crate) struct VersionSet {
    directory: PathBuf,
    vfs: Arc<dyn Vfs>,
    identity: Identity,
    state: Mutex<VersionSetState>,
    free: Condvar,
    /// Somebody makes a new manifest.
    rolling: Mutex<bool>,
    rolled: Condvar,
    pub(crate) counters: Counters,
    manifest_bytes: AtomicU64,
    /// Bytes that the manifest began with.
    snapshot_bytes: AtomicU64,
}

impl VersionSet {
    /// A version set over families that were just recovered or made. Writes nothing yet:
    /// [`VersionSet::roll`] makes the first manifest.
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

    /// The number that is mixed into the database's checksums.
    pub(crate) fn db_uid(&self) -> u64 {
        self.identity.uid
    }

    /// Bytes appended to the manifest since it was begun, for the decision to roll it. What it
    /// began with does not count: a new one would be no smaller, and be rolled again at once.
    pub(crate) fn appended_bytes(&self) -> u64 {
        let began_with = self.snapshot_bytes.load(Ordering::Relaxed);
        self.manifest_bytes.load(Ordering::Relaxed).saturating_sub(began_with)
    }

    /// True if the manifest takes nothing any more.
    pub(crate) fn manifest_is_dead(&self) -> bool {
        let state = lock(&self.state);
        // While somebody writes, it is theirs to find out.
        !state.busy && state.writer.as_ref().is_none_or(|writer| !writer.is_alive())
    }

    pub(crate) fn families(&self) -> BTreeMap<ColumnFamilyId, FamilyState> {
        lock(&self.state).families.clone()
    }

    pub(crate) fn version(&self, family: ColumnFamilyId) -> Option<Arc<Version>> {
        lock(&self.state).families.get(&family).map(|state| state.version.clone())
    }

    /// Ties the engine's side of a family to its versions.
    pub(crate) fn attach(&self, data: &Arc<ColumnFamilyData>) {
        if let Some(family) = lock(&self.state).families.get_mut(&data.id()) {
            family.data = Some(data.clone());
        }
    }

    /// Logs below this number are not needed by any column family.
    pub(crate) fn oldest_log(&self) -> LogNumber {
        lock(&self.state).oldest_log()
    }

    /// Logs below this number are not needed, whatever a power loss leaves of the manifest.
    pub(crate) fn oldest_log_after_power_loss(&self) -> LogNumber {
        let state = lock(&self.state);
        state.needed_until_barrier.unwrap_or(LogNumber(u64::MAX)).min(state.oldest_log())
    }

    /// Whether anything is kept for an edit that is not durable yet.
    pub(crate) fn holds_until_barrier(&self) -> bool {
        let state = lock(&self.state);
        state.needed_until_barrier.is_some() || !state.retired_until_barrier.is_empty()
    }

    /// Whether logs are: what a flush wrote is durable only with them.
    pub(crate) fn holds_logs_until_barrier(&self) -> bool {
        lock(&self.state).needed_until_barrier.is_some()
    }

    fn take_token(&self) -> sateen_store::base::sync::MutexGuard<'_, VersionSetState> {
        let mut state = lock(&self.state);
        while state.busy {
            state = self.free.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.busy = true;
        state
    }

    fn give_token(&self, mut state: sateen_store::base::sync::MutexGuard<'_, VersionSetState>) {
        state.busy = false;
        drop(state);
        self.free.notify_one();
    }

    /// [`VersionSet::install_all`], durable before this returns.
    pub(crate) fn install_together(
        &self,
        edits: Vec<(VersionEdit, usize)>,
        last_seqno: SeqNo,
        reclaimer: &Reclaimer,
    ) -> Result<Vec<Option<Arc<Version>>>> {
        self.install_all(edits, last_seqno, reclaimer, Barrier::Now)
    }

    /// Makes one edit each of several column families durable, all or none, now or by and by as
    /// `barrier` says, and their versions current. Each edit comes with the number of the family's
    /// oldest sealed memtables that are in it. Returns the versions in the order of the edits; none
    /// for a family that its edit drops. On an error nothing has changed in memory, and on disk the
    /// edits may or may not be there until a new manifest replaces this one: files they name must
    /// be kept.
    pub(crate) fn install_all(
        &self,
        edits: Vec<(VersionEdit, usize)>,
        last_seqno: SeqNo,
        reclaimer: &Reclaimer,
        barrier: Barrier,
    ) -> Result<Vec<Option<Arc<Version>>>> {
        let mut state = self.take_token();
        let (mut edits, flushed): (Vec<_>, Vec<_>) = edits.into_iter().unzip();
        let gone = |edit: &&VersionEdit| {
            edit.create.is_none() && !state.families.contains_key(&edit.column_family)
        };
        if let Some(edit) = edits.iter().find(gone) {
            // Dropped while the edit was made ready: no contradiction, and nothing is written.
            let error = Error::NoSuchColumnFamily(edit.column_family.to_string());
            self.give_token(state);
            return Err(error);
        }
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
        let Some(mut writer) = state.writer.take() else {
            let error = self.manifest_is_gone(&state);
            self.give_token(state);
            return Err(error);
        };
        drop(state);

        let unwritten = planted("dropped_family_returns") && edits.iter().any(|edit| edit.drop);
        let written = match unwritten {
            true => Ok(0),
            false => writer.append(&edits),
        };
        // Tables that only change their level are in the same files without it: the next edit's
        // barrier is soon enough, and no reclaiming waits for it.
        let moves = edits.iter().all(VersionEdit::only_moves);
        let waits = barrier == Barrier::Now && !moves;
        let written = match written {
            Ok(end) if planted("manifest_not_synced") || !waits => Ok(end),
            written => written.and_then(|_| writer.sync()),
        };

        let mut state = lock(&self.state);
        if let Err(error) = written {
            state.writer = Some(writer).filter(|_| planted("gap_after_failed_append"));
            self.give_token(state);
            return Err(error);
        }
        self.manifest_bytes.store(writer.size_bytes(), Ordering::Relaxed);
        state.writer = Some(writer);
        let names_log = edits.iter().any(|edit| edit.log_number.is_some());
        if barrier == Barrier::WithNext && names_log && !planted("log_removed_before_barrier") {
            let oldest = state.oldest_log();
            state.needed_until_barrier.get_or_insert(oldest);
        }
        let mut versions = Vec::with_capacity(edits.len());
        for ((edit, flushed), next) in edits.iter().zip(flushed).zip(next) {
            versions.push(state.make_current(edit, flushed, next, reclaimer));
        }
        if waits {
            state.all_durable(reclaimer);
        } else if planted("inputs_retired_before_barrier") {
            reclaimer.retire(std::mem::take(&mut state.retired_until_barrier).into_iter());
        }
        if let Some(since) = state.since_roll.as_mut()
            && !planted("edits_lost_in_roll")
        {
            since.push(edits);
        }
        self.give_token(state);
        Ok(versions)
    }

    fn manifest_is_gone(&self, state: &VersionSetState) -> Error {
        let path = manifest_file_name(&self.directory, state.manifest);
        let source = std::io::Error::other("an earlier write to the manifest failed");
        Error::io("append", &path, source)
    }

    /// Makes the edits durable that are not yet. Without it tables that moved or were compacted are
    /// where they were, and memtables that were flushed are in their logs.
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
        state.writer = Some(writer).filter(|_| synced.is_ok());
        if synced.is_ok() {
            state.all_durable(reclaimer);
        }
        self.give_token(state);
        synced.map(drop)
    }

    /// [`VersionSet::install_together`] of the edits that make the column families of `datas`.
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

    /// Gives a recovered family's version the levels and the style that its options want, before
    /// the first manifest is made. Who only reads is served by any arrangement, and leaves it as it
    /// is: more levels than there are need not be there.
    pub(crate) fn resize(
        &self,
        id: ColumnFamilyId,
        options: &CfOptions,
        read_only: bool,
    ) -> Result<Option<Arc<Version>>> {
        let levels = options.num_levels;
        let mut state = lock(&self.state);
        let Some(family) = state.families.get_mut(&id) else { return Ok(None) };
        let Some(version) = family.version.with_levels(levels) else {
            if read_only {
                return Ok(None);
            }
            return Err(Error::InvalidArgument(format!(
                "levels={levels}: the column family {} has tables in deeper levels",
                family.name
            )));
        };
        family.version = Arc::new(if read_only {
            version
        } else {
            let by = levels_to_lift(&version, options);
            version.lifted(by).with_style(options.compaction_style.name().to_owned())
        });
        Ok(Some(family.version.clone()))
    }

    /// Makes current what the database that this one follows has: versions, and the memtables that
    /// go with them. Families that this one does not know are left out.
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

/// The first version of a column family with these options.
pub(crate) fn fresh_version(id: ColumnFamilyId, options: &ColumnFamilyOptions) -> Version {
    Version::new(id, options.levels as usize)
        .with_style(options.compaction_style.to_string())
        .with_comparator(options.comparator.clone())
}

/// Tells the reclaimer which tables are new, and which are not where they were. Returns those that
/// are gone.
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
    // What only moved has left level 0, too, if it was there.
    reclaimer.left_level0(removed.into_iter().chain(retired.iter().map(|table| table.id)));
    retired
}
