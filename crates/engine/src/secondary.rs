//! A database that follows one that somebody else has open for writing: it reads that one's
//! manifest and logs, at open and when it is told to catch up, and changes nothing.
//!
//! What must stay true: what readers see is a prefix of the primary's commits, in all column
//! families the same, or an error; it changes at one moment for all, when catching up has all that
//! it needs. Each round reads the manifest first and the logs behind it, and it is the last one if
//! the manifest has nothing new after that: so no log that was needed had gone, and nothing that
//! the manifest alone knows is missing among what the logs have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::{TableMeta, Version};
use sateen_control::{ColumnFamilyId, FileId, LogNumber, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::locks::{read, write};
use sateen_store::base::sync::{Mutex, RwLock, RwLockReadGuard, lock};
use sateen_store::files::counters::Counters;
use sateen_store::files::manifest_file_name;
use sateen_store::files::reclaim::OpenTables;
use sateen_store::manifest::{Identity, ManifestReader, read_current};
use sateen_store::memtable::MemTable;
use sateen_store::vfs::Vfs;
use sateen_store::wal::{Followed, LogFollower, Tail};

use crate::column_family::ColumnFamilyData;
use crate::core::DbCore;
use crate::options::ReadOptions;
use crate::tree::version_set::{FamilyState, FindComparator, Replay};

#[cfg(test)]
pub(crate) mod tests;

/// So many times it is looked at a primary that does not hold still.
const ROUNDS_MAX: u32 = 200;

type Families = BTreeMap<ColumnFamilyId, FamilyState>;

/// What makes a database a secondary.
pub(crate) struct Secondary {
    /// Held for reading while a reader takes what it sees, for writing while that is exchanged.
    view: RwLock<()>,
    /// A turn: whoever catches up holds it.
    following: Mutex<Following>,
}

struct Following {
    manifest: ManifestFollower,
    logs: LogFollower,
    /// The newest entry that was read from a log.
    read_to: SeqNo,
    /// What readers see next: memtables with what was read, of which entries up to `stored` are
    /// left out when it is shown.
    memtables: BTreeMap<ColumnFamilyId, Arc<MemTable>>,
    /// What they see now.
    shown: BTreeMap<ColumnFamilyId, FamilyState>,
    shown_seqno: SeqNo,
    /// The memtables are others than what is shown, not more of the same.
    exchanged: bool,
}

/// The manifest that counts, and what it says so far.
pub(crate) struct ManifestFollower {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    number: u64,
    reader: ManifestReader,
    pub(crate) identity: Identity,
    replay: Replay,
    comparators: FindComparator,
    pub(crate) shared_files: BTreeSet<FileId>,
}

impl ManifestFollower {
    /// Reads CURRENT and the manifest that it names. `None` if there is no CURRENT.
    pub(crate) fn open(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        comparators: &FindComparator,
    ) -> Result<Option<ManifestFollower>> {
        let Some(current) = read_current(vfs.as_ref(), directory)? else { return Ok(None) };
        let (path, reader) = ManifestReader::of_current(vfs.as_ref(), directory, &current)?;
        let mut follower = ManifestFollower {
            vfs,
            directory: directory.to_owned(),
            number: current.manifest,
            reader,
            identity: current.identity,
            replay: Replay::new(&path, comparators),
            comparators: comparators.clone(),
            shared_files: BTreeSet::new(),
        };
        follower.read()?;
        Ok(Some(follower))
    }

    /// The column families so far. One whose comparator is not known is as one that is not there.
    pub(crate) fn families(&self) -> &Families {
        self.replay.families()
    }

    /// An error if there is one whose comparator is not known.
    pub(crate) fn check(&self) -> Result<()> {
        self.replay.check(self.reader.position())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        manifest_file_name(&self.directory, FileId(self.number))
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How it ended, as far as it was read.
    pub(crate) fn tail(&self) -> Option<Tail> {
        self.reader.tail()
    }

    /// Takes in the edits that have come since. Returns whether there were any.
    fn read(&mut self) -> Result<bool> {
        self.reader.grow()?;
        let (mut any, mut again) = (false, None);
        loop {
            match self.reader.next() {
                Ok(Some(edits)) => {
                    any = true;
                    for edit in edits {
                        self.shared_files.extend(edit.shared_files.iter().copied());
                        self.replay.apply(edit)?;
                    }
                }
                Ok(None) => return Ok(any),
                // It may have been written while it was read: see `wal/follow.rs`.
                Err(error) if error.is_corruption() && again != Some(self.reader.position()) => {
                    again = Some(self.reader.position());
                    self.reader.grow()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, or all of another manifest that counts now.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let identity = self.identity;
        let current = read_current(self.vfs.as_ref(), &self.directory)?;
        let current = current.filter(|current| current.identity == identity).ok_or_else(|| {
            let reason = "another database took the place of the primary".into();
            Error::IncompatibleDirectory { path: self.directory.clone(), reason }
        })?;
        if current.manifest == self.number {
            return self.read();
        }
        let next = ManifestFollower::open(self.vfs.clone(), &self.directory, &self.comparators)?;
        *self = next.ok_or(Error::NotSecondary)?;
        Ok(true)
    }

    /// Logs below this number are not needed.
    pub(crate) fn oldest_log(&self) -> LogNumber {
        self.families().values().map(|family| family.version.log_number()).min().unwrap_or_default()
    }

    /// Whether there is more than was read.
    fn has_moved(&self) -> Result<bool> {
        let current = read_current(self.vfs.as_ref(), &self.directory)?;
        if current.is_none_or(|current| current.manifest != self.number) {
            return Ok(true);
        }
        let path = self.path();
        let file = self.vfs.open(&path, sateen_store::vfs::OpenOptions::READ);
        let length = file.and_then(|file| file.len());
        let length = length.map_err(|e| Error::io("read the length of", &path, e))?;
        Ok(length > self.reader.position())
    }

    /// The newest sequence number in tables.
    pub(crate) fn stored_seqno(&self) -> SeqNo {
        let tables = self.families().values().flat_map(|family| family.version.tables());
        let newest = tables.map(|(_, _, table)| table.seqno_max).max().unwrap_or_default();
        let stored = self.families().values().map(|family| family.stored).max().unwrap_or_default();
        newest.max(stored)
    }

    /// The tables of all column families.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        let versions = self.families().values().map(|family| &family.version);
        versions.flat_map(|version| version.tables()).map(|(.., table)| table)
    }

    /// Numbers that are taken.
    pub(crate) fn counters(&self) -> Counters {
        let counters = Counters::default();
        counters.file_seen(self.number);
        counters
    }
}

impl Secondary {
    pub(crate) fn new(manifest: ManifestFollower, logs: &Path) -> Secondary {
        let logs = LogFollower::new(manifest.vfs.clone(), logs, manifest.identity.uid);
        Secondary {
            view: RwLock::new(()),
            following: Mutex::new(Following {
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

impl DbCore {
    /// Held by a reader while it takes what it sees, so that this is of one moment. `None` where
    /// nothing is exchanged under readers.
    #[inline]
    pub(crate) fn view(&self, options: &ReadOptions) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        match &self.secondary {
            None => Ok(None),
            Some(secondary) => self.view_of(secondary, options).map(Some),
        }
    }

    #[inline(never)]
    fn view_of<'a>(
        &self,
        secondary: &'a Secondary,
        options: &ReadOptions,
    ) -> Result<RwLockReadGuard<'a, ()>> {
        let view = read(&secondary.view);
        // The primary does not know of snapshots here, and compacts what they would see.
        let visible = self.pipeline.visible_seqno();
        if options.seqno().is_some_and(|seqno| seqno != visible) {
            let text = "the snapshot is of before the secondary caught up with its primary";
            return Err(Error::InvalidArgument(text.into()));
        }
        Ok(view)
    }

    /// Takes in what the primary has written since. Returns whether there was anything.
    pub(crate) fn catch_up(&self) -> Result<bool> {
        let secondary = self.secondary.as_ref().ok_or(Error::NotSecondary)?;
        self.check_open()?;
        let mut following = lock(&secondary.following);
        let mut failed = None;
        let mut fresh = true;
        for _ in 0..ROUNDS_MAX {
            let round = if fresh { following.manifest.advance().map(drop) } else { Ok(()) };
            let round = round.and_then(|()| following.round(self));
            match round {
                Ok(true) => return Ok(following.show(self, secondary)),
                Ok(false) => fresh = false,
                // What was needed may have gone in the meantime: then the manifest says so now.
                Err(error) if error.is_corruption() => {
                    let again = failed.as_ref() == Some(&error.to_string())
                        && !following.manifest.has_moved().unwrap_or(true);
                    if again {
                        return Err(error);
                    }
                    failed = Some(error.to_string());
                    following.reset(self);
                    fresh = true;
                }
                Err(error) => return Err(error),
            }
        }
        let cause = format!("{}: it changes faster than it can be read", self.directory.display());
        Err(Error::Behind { cause })
    }
}

impl Following {
    /// Reads the logs as far as they go, and then the manifest. Returns whether that had nothing
    /// new.
    fn round(&mut self, core: &DbCore) -> Result<bool> {
        let families = self.manifest.families();
        let decreased = |(id, shown): (&ColumnFamilyId, &FamilyState)| {
            families.get(id).is_some_and(|family| family.stored < shown.stored)
        };
        let went_back = self.shown.iter().any(decreased);
        // A primary that could not make an edit durable has gone back behind it.
        if went_back {
            self.reset(core);
        }
        for data in core.families().values() {
            self.memtables.entry(data.id()).or_insert_with(|| data.active_memtable());
        }
        let stored = |id: &ColumnFamilyId| self.manifest.families().get(id).map(|f| f.stored);
        let (directory, oldest) = (core.wal_directory(), self.manifest.oldest_log());
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
                // A write that failed and was read all the same, from a log that is dead.
                if begins > SeqNo(0) && *read_to >= begins {
                    for (id, memtable) in memtables.iter_mut() {
                        let Some(data) = core.family_by_id(*id) else { continue };
                        *memtable = part_of(memtable, &data, |seqno| seqno < begins)?;
                    }
                    (*read_to, *exchanged) = (SeqNo(begins.0 - 1), true);
                }
                Ok(())
            }
        })?;
        Ok(!self.manifest.advance()?)
    }

    /// Forgets what was read from logs.
    fn reset(&mut self, core: &DbCore) {
        self.logs.restart();
        self.read_to = SeqNo(0);
        self.memtables.clear();
        for data in core.families().values() {
            self.memtables.insert(data.id(), data.new_memtable());
        }
        self.exchanged = true;
    }

    /// Makes what was read what readers see. Returns whether it is anything new.
    fn show(&mut self, core: &DbCore, secondary: &Secondary) -> bool {
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
            let (Some(family), Some(data)) = (families.get(id), core.family_by_id(*id)) else {
                continue;
            };
            let before = self.shown.get(id).map_or(SeqNo(0), |shown| shown.stored);
            if family.stored > before && !memtable.is_empty() {
                // Only damage of memory would make this fail.
                if let Ok(rest) = part_of(memtable, &data, |seqno| seqno > family.stored) {
                    *memtable = rest;
                }
            }
        }
        let gone: Vec<_> = core
            .families()
            .values()
            .filter(|data| !families.contains_key(&data.id()))
            .cloned()
            .collect();
        {
            let _exchange = write(&secondary.view);
            core.versions.follow(families, &self.memtables);
            core.pipeline.show(newest);
        }
        for data in gone {
            data.mark_dropped();
            self.memtables.remove(&data.id());
            let mut families = (**core.families()).clone();
            families.remove(&data);
            core.families.store(Arc::new(families));
        }
        let before = files_of(&self.shown);
        let now = files_of(families);
        before.difference(&now).for_each(|file| core.tables.evict_file(*file));
        self.shown = families.clone();
        (self.shown_seqno, self.exchanged) = (newest, false);
        true
    }
}

fn files_of(families: &Families) -> BTreeSet<FileId> {
    let versions = families.values().map(|family| &family.version);
    let files = |version: &Arc<Version>| -> Vec<FileId> {
        version.tables().flat_map(|(_, _, table)| table.placement.files()).collect()
    };
    versions.flat_map(files).collect()
}

/// The entries of `memtable` whose sequence numbers are to be kept.
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
