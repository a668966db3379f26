//! Opens a database for reading and writing.
//!
//! 1. `prepare_options` and `prepare_directory` check the options and create directories, after
//!    [`Claimed::read`] has looked for those that the database had. `look_first` refuses one that
//!    is not ours, and `take_lock` locks it.
//! 2. `read_catalogue` reads CURRENT and the manifest, or `new_catalogue` starts an empty database.
//! 3. [`Opening::new`] creates the caches, the version set and the reclaimer.
//!    `claim_all` (`paths.rs`) claims the other directories of tables.
//! 4. `check_files` checks that every file that the manifest names exists, and collects WALs and
//!    orphans.
//! 5. `attach_families` gives each column family its options and memtables.
//! 6. [`VersionSet::roll`] writes a fresh manifest, before anything is deleted (format rule F4).
//! 7. `remove_orphans` removes files that nothing names.
//! 8. `store_logs` replays the WALs into memtables (`replay`), and writes these to tables.
//!    `change_forms` (`forms.rs`) then changes the form of values where it was asked for and there
//!    are none.
//! 9. `finish` creates the first WAL, makes the tables current with one edit (`install_replayed`),
//!    starts the commit pipeline, puts the services together, and removes the old WALs.
//! 10. `create_family` creates the missing column families that the caller named.
//!
//! `read_only.rs` and `secondary.rs` take the same steps without writing.
//!
//! What must stay true:
//!
//! - Nothing is deleted before a fresh manifest is current.
//! - Files that recovery needs are deleted only after its result is durable, so that a crash during
//!   recovery is recovered from like any other.
//! - The entries of the WALs become durable for all column families at once or for none, so that
//!   they all stand at the same commit.
//! - A read-only open changes nothing on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use catalogue::{Catalogue, look_first, missing, new_catalogue, read_catalogue};
use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, ControlOptions, Event, FileId, Instant, LogNumber, SeqNo};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::base::sync::Mutex;
use sateen_store::base::sync::atomic::AtomicBool;
use sateen_store::block_cache::BlockCache;
use sateen_store::files::reclaim::Reclaimer;
use sateen_store::files::replace::sync_directory;
use sateen_store::files::spare::SpareFiles;
use sateen_store::files::{device_hint, table_file_name, wal_file_name};
use sateen_store::memtable::ArenaPool;
use sateen_store::table::table_cache::{TableCache, TableCacheOptions};
use sateen_store::table::table_images::TableImages;
use sateen_store::vfs::{MeteredVfs, PathsVfs, Vfs, VfsLock, forks};
use sateen_store::wal::{self, KeptLog, KeptLogs, WalPosition, WalWriter};

use crate::admission::write_buffers::{Ledger, WriteBuffers};
use crate::background::Background;
use crate::core::DbCore;
use crate::environment::Environment;
use crate::events::Events;
use crate::health::HealthState;
use crate::metrics::EngineMetrics;
use crate::open::create::create_family;
use crate::open::paths::Claimed;
use crate::options::paths::{absolute, absolute_families, check_named};
use crate::options::{ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY, Options, WalMode, control};
use crate::runtime::Where;
use crate::runtime::device::Device;
use crate::secondary::Secondary;
use crate::snapshot::SnapshotList;
use crate::timeline::Recorder;
use crate::tree::Tree;
use crate::tree::families::{ColumnFamilyData, Families, check_family_name};
use crate::tree::version_set::VersionSet;
use crate::write::path::WritePath;
use crate::write::prepared::Prepared;
use crate::write::{CommitPipeline, PipelineStart};

pub(crate) use catalogue::{column_families, interrupted_restore};

pub(crate) mod as_written;
mod catalogue;
pub(crate) mod create;
mod families;
mod files;
pub(crate) mod forms;
mod kept;
mod parent;
pub(crate) mod paths;
mod read_only;
mod remote;
mod replay;
mod secondary;
mod store;

pub(crate) use families::comparators as find_comparators;
pub(crate) use files::{logs_elsewhere, stored_wal_directory};
pub(crate) use parent::check_parent;
pub(crate) use read_only::open_read_only;
pub use remote::OpenAndCompactOptions;
pub(crate) use remote::open_and_compact;
pub(crate) use secondary::{current_manifest, find_manifest, open_secondary};

pub(crate) const LOCK_FILE: &str = "LOCK";

/// Returns the bytes of freed memtables that are kept for the next ones: one memtable's worth.
fn arena_pool_bytes(options: &Options) -> usize {
    usize::try_from(options.column_family.memtable_bytes).unwrap_or(usize::MAX)
}

/// Opens a database for reading and writing. Fails if another process has it open, or if its files
/// are damaged or missing.
pub(crate) fn open(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: Options,
    family_options: &[(&str, ColumnFamilyOptions)],
) -> Result<Arc<DbCore>> {
    check_named("the database", directory)?;
    let (options, family_options) = prepare_options(options, family_options)?;
    let family_options = family_options.as_slice();
    let directory = &absolute(directory);
    let (vfs, paths) = paths::layered(vfs, directory, &options, family_options);
    // Before directories are created: they may be on a disk that is not mounted.
    let claimed = Claimed::read(vfs.as_ref(), directory)?;
    claimed.check_free(vfs.as_ref(), directory, &paths.others())?;
    prepare_directory(vfs.as_ref(), directory, &options, &paths.others())?;
    // Before the lock file is created, because the directory may belong to another store.
    look_first(vfs.as_ref(), directory, &options)?;
    let lock = take_lock(vfs.as_ref(), directory)?;
    // Readers in other processes mark bytes of the lock file. The reclaimer looks at these marks.
    let marks = Arc::downgrade(&lock);
    let mut locks = vec![lock];
    // Two databases with the same `wal_dir` would remove each other's WALs.
    if let Some(logs) = options.wal_dir.as_ref().filter(|logs| *logs != directory) {
        locks.push(take_lock(vfs.as_ref(), logs)?);
    }
    let comparators = families::comparators(&options, family_options);
    let existing = read_catalogue(vfs.as_ref(), directory, &comparators)?;
    let fresh = existing.is_none();
    // `error_if_exists` does not refuse a database whose creation was interrupted.
    let catalogue = match existing {
        Some(catalogue) if options.error_if_exists && catalogue.is_whole() => {
            return Err(Error::InvalidArgument(format!(
                "{} holds a database already, and error_if_exists is set",
                shown_path(directory)
            )));
        }
        Some(catalogue) => catalogue,
        None => {
            let own = family_options.iter().find(|(name, _)| *name == DEFAULT_COLUMN_FAMILY);
            let default = own.map_or(&options.column_family, |(_, options)| options);
            let catalogue = new_catalogue(vfs.as_ref(), directory, &options, default)?;
            sync_ancestors(vfs.as_ref(), directory)?;
            catalogue
        }
    };
    let (uid, counters, others) = (catalogue.identity.uid, &catalogue.counters, paths.others());
    let claims = paths::claim_all(vfs.as_ref(), &others, directory, uid, &options, counters)?;
    locks.extend(claims);
    let limits = options.lease_limits();
    let vfs = (vfs, paths);
    let mut opening = Opening::new(vfs, directory, options, catalogue, family_options, false)?;
    opening.reclaimer.limit_leases(limits);
    opening.reclaimer.respect_leases(marks);
    opening.check_files()?;
    // This may move tables to other levels, so it precedes the fresh manifest.
    opening.attach_families(family_options)?;
    // Files may be deleted only after this (format rule F4).
    opening.versions.roll()?;
    opening.remove_orphans();
    if !fresh {
        opening.store_logs()?;
        opening.change_forms()?;
    }
    let core = opening.finish(locks)?;
    for (name, options) in family_options {
        if core.tree.families().by_name(name).is_none() {
            let catalogue = sateen_store::base::sync::lock(&core.tree.changes);
            let made = create_family(&core, name, options.clone());
            drop(catalogue);
            if let Err(error) = made {
                // Without this the runtime would keep the database.
                let _closed = core.close();
                return Err(error);
            }
        }
    }
    let catalogue = sateen_store::base::sync::lock(&core.tree.changes);
    core.background.chores.store_options();
    core.background.chores.begin_info_log();
    drop(catalogue);
    Ok(core)
}

/// Checks all options, and returns them with absolute directories for tables.
fn prepare_options<'a>(
    options: Options,
    family_options: &[(&'a str, ColumnFamilyOptions)],
) -> Result<(Options, Vec<(&'a str, ColumnFamilyOptions)>)> {
    let options = options.with_absolute_paths()?;
    let families = absolute_families(family_options)?;
    options.validate()?;
    for (name, family) in &families {
        check_family_name(name)?;
        family.validate()?;
        options.check_paths(family)?;
    }
    Ok((options, families))
}

/// Creates the directories, if they are missing and may be created.
fn prepare_directory(
    vfs: &dyn Vfs,
    directory: &Path,
    options: &Options,
    tables: &[PathBuf],
) -> Result<()> {
    let exists = vfs.exists(directory).map_err(|e| Error::io("look for", directory, e))?;
    if !exists {
        if !options.create_if_missing {
            return Err(missing(directory));
        }
        vfs.create_dir_all(directory).map_err(|e| Error::io("create", directory, e))?;
    }
    for other in options.wal_dir.iter().chain(tables) {
        vfs.create_dir_all(other).map_err(|e| Error::io("create", other, e))?;
        sync_ancestors(vfs, other)?;
    }
    Ok(())
}

/// Returns a better error than `error` if it comes from a path that can be no directory.
pub(crate) fn no_directory(directory: &Path, error: Error) -> Error {
    let Error::Io { source, .. } = &error else { return error };
    let reason = match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOTDIR) => "it is not a directory, or what is above it is not",
        Some(rustix::io::Errno::LOOP) => "its symbolic links lead back to it",
        Some(rustix::io::Errno::NAMETOOLONG) => "the path is too long",
        _ => return error,
    };
    Error::IncompatibleDirectory { path: directory.to_owned(), reason: reason.into() }
}

/// Makes the names of a new directory, and of those above it, durable. An earlier open that was
/// interrupted may have created them.
pub(crate) fn sync_ancestors(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    let parents = directory.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    for (height, parent) in parents.enumerate() {
        match vfs.sync_dir(parent) {
            // A directory that this process may not read was not created by it.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Ok(()),
            // Nor was one on a file system that takes no names.
            Err(e) if height > 0 && e.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
                return Ok(());
            }
            synced => synced.map_err(|e| Error::io("sync directory", parent, e))?,
        }
    }
    Ok(())
}

/// Locks a directory. Fails with [`Error::Locked`] if another process, or another handle of this
/// one, holds the lock.
pub(crate) fn take_lock(vfs: &dyn Vfs, directory: &Path) -> Result<Arc<dyn VfsLock>> {
    let path = directory.join(LOCK_FILE);
    vfs.lock(&path).map(Arc::from).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { holder: vfs.lock_holder(&path), path },
        std::io::ErrorKind::NotADirectory => Error::IncompatibleDirectory {
            path: directory.to_owned(),
            reason: "it is not a directory".into(),
        },
        _ => Error::io("lock", &path, error),
    })
}

/// Reports the column families to control, and opens their tables.
fn report_families(core: &DbCore) {
    for data in core.tree.families().values() {
        let options = Arc::new(control::column_family(&core.env.options.load(), &data.options()));
        let version = data.super_version().version.clone();
        core.background.board.open_tables(&version);
        core.background
            .driver
            .report(core.env.now(), Event::ColumnFamilyAdded { options, version });
    }
}

/// A database that is being opened.
struct Opening {
    vfs: Arc<MeteredVfs>,
    /// The directories of tables. It is a layer of `vfs`.
    paths: Arc<PathsVfs>,
    directory: PathBuf,
    options: Arc<Options>,
    read_only: bool,
    versions: VersionSet,
    families: BTreeMap<ColumnFamilyId, Arc<ColumnFamilyData>>,
    /// The sequence number up to which entries are in tables, by column family. They are not
    /// replayed.
    stored: BTreeMap<ColumnFamilyId, SeqNo>,
    /// The edits, by column family, that will make the tables current which were written from the
    /// WALs.
    replayed_edits: BTreeMap<ColumnFamilyId, VersionEdit>,
    pool: Arc<ArenaPool>,
    write_buffers: Option<WriteBuffers>,
    tables: Arc<TableCache>,
    blocks: Arc<BlockCache>,
    reclaimer: Reclaimer,
    last_seqno: SeqNo,
    /// The newest entry that was replayed.
    replayed: SeqNo,
    /// The end of the last WAL that was replayed.
    replayed_to: Option<WalPosition>,
    /// The directory of the WALs that are replayed. New ones are written to `wal_dir`.
    old_logs: PathBuf,
    /// All WALs in that directory.
    logs: Vec<LogNumber>,
    /// WALs elsewhere, of which no record is needed.
    other_logs: Vec<PathBuf>,
    /// Manifests, tables and temporary files that nothing names.
    orphans: Vec<PathBuf>,
    /// Options, by column family, that want another form of values than the stored one. The column
    /// family must turn out to be empty.
    reformed: BTreeMap<ColumnFamilyId, ColumnFamilyOptions>,
    /// Whether a column family was given another form of values.
    has_changed_forms: bool,
    secondary: Option<Secondary>,
}

impl Opening {
    /// Creates what does not depend on column family options: caches, version set, reclaimer. Fails
    /// if a column family of `family_options` neither exists nor may be created.
    fn new(
        (vfs, paths): (Arc<MeteredVfs>, Arc<PathsVfs>),
        directory: &Path,
        options: Options,
        catalogue: Catalogue,
        family_options: &[(&str, ColumnFamilyOptions)],
        read_only: bool,
    ) -> Result<Opening> {
        let wholes = catalogue.families.values().filter(|family| family.region.is_none());
        let known: BTreeSet<&str> = wholes.map(|family| family.name.as_str()).collect();
        for (name, _) in family_options {
            if !known.contains(name) && !options.create_missing_column_families {
                return Err(Error::NoSuchColumnFamily((*name).to_owned()));
            }
        }
        let directory = directory.to_owned();
        let options = Arc::new(options);
        let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
        let (open_files_max, memory_bytes_max) = options.open_tables_max();
        let blocks = Arc::new(match options.block_cache() {
            Some(shared) => BlockCache::part_of(shared.clone()),
            None => BlockCache::new(options.block_cache_bytes),
        });
        let images = Arc::new(TableImages::new(blocks.clone()));
        let tables = Arc::new(TableCache::new(TableCacheOptions {
            vfs: dyn_vfs.clone(),
            directory: directory.clone(),
            db_uid: catalogue.identity.uid,
            direct: options.direct_reads,
            open_files_max,
            memory_bytes_max,
            images: Some(images),
        }));
        let ledger = options.write_buffers().map(|manager| Arc::new(Ledger::new(manager)));
        let pool = Arc::new(match &ledger {
            Some(ledger) => ArenaPool::counted(ledger.clone()),
            None => ArenaPool::new(arena_pool_bytes(&options)),
        });
        let reclaimer = Reclaimer::new(directory.clone(), dyn_vfs.clone(), tables.clone());
        let mut stored = BTreeMap::new();
        let mut last_seqno = catalogue.last_seqno;
        for (id, family) in &catalogue.families {
            let newest = family.version.tables().map(|(_, _, table)| table.seqno_max).max();
            // Not the newest sequence number in its tables: ingested files are newer than entries
            // that were in memory at that time.
            stored.insert(*id, family.stored);
            last_seqno = last_seqno.max(newest.unwrap_or_default());
        }
        let versions = catalogue.families.values().map(|family| &family.version);
        reclaimer.found(versions.flat_map(|version| version.tables()).map(|(.., table)| table));
        reclaimer.mark_shared(catalogue.shared_files.iter().copied(), Instant::default());
        let versions = VersionSet::new(
            &directory,
            dyn_vfs,
            catalogue.identity,
            catalogue.counters,
            catalogue.families,
            catalogue.shared_files,
            last_seqno,
        );
        let old_logs = options.wal_directory(&directory);
        Ok(Opening {
            vfs,
            paths,
            directory,
            options,
            read_only,
            versions,
            families: BTreeMap::new(),
            pool,
            write_buffers: ledger.map(WriteBuffers::new),
            stored,
            replayed_edits: BTreeMap::new(),
            tables,
            blocks,
            reclaimer,
            last_seqno,
            replayed: SeqNo(0),
            replayed_to: None,
            old_logs,
            logs: Vec::new(),
            other_logs: Vec::new(),
            orphans: Vec::new(),
            reformed: BTreeMap::new(),
            has_changed_forms: false,
            secondary: None,
        })
    }

    fn wal_directory(&self) -> PathBuf {
        self.options.wal_directory(&self.directory)
    }

    /// Turns the recovered state into an open database. With `read_only` no WAL is created and
    /// nothing is reported to control.
    fn finish(mut self, locks: Vec<Arc<dyn VfsLock>>) -> Result<Arc<DbCore>> {
        // The filter has done its work, and its owner may wait until it is freed.
        Arc::make_mut(&mut self.options).wal_filter = None;
        // The WALs that readers may want must be found before the first new WAL, which links to
        // them.
        let keeps_logs = self.read_only || self.options.keeps_logs();
        // In another directory, or with values in another form, they are lost to readers.
        let same_place = self.old_logs == self.wal_directory();
        let finds_kept = keeps_logs && same_place && !self.has_changed_forms;
        let kept = if finds_kept { self.take_kept_logs()? } else { Vec::new() };
        let mut wal = if self.read_only { None } else { Some(self.install_replayed(&kept)?) };
        if self.options.wal == WalMode::Off {
            // The file was created nevertheless, because the manifest names it and the next open
            // looks for it.
            wal = None;
        }
        let mut families = Families::default();
        let wholes = self.families.values().filter(|data| data.region().is_none());
        wholes.for_each(|data| families.insert(data));
        let default_family = self.families.get(&ColumnFamilyId(0)).cloned();
        let Some(default_family) = default_family else { return Err(Error::Closed) };
        let mut control = control::database(&self.options);
        if let Some(profile) = device_hint::read(self.vfs.as_ref(), &self.directory) {
            control.scheduler.hint = profile;
        }
        let device = self.device(&control);
        let start = device.start;
        let timeline = Arc::new(Recorder::new(start));
        // The pipeline is created before the background, which it wakes after a seal.
        let this: Arc<OnceLock<Weak<Background>>> = Arc::default();
        let pipeline = self.start_pipeline(wal, keeps_logs, timeline.clone(), this.clone());
        let log_name = |directory: &Path, file: FileId| wal_file_name(directory, LogNumber(file.0));
        let log_directory = self.options.wal_directory(&self.directory);
        let spare_files =
            SpareFiles::new(self.vfs.clone(), self.directory.clone(), table_file_name);
        let events = Arc::new(Events::new(self.options.listeners.clone()));
        let env = Arc::new(Environment {
            directory: self.directory,
            vfs: self.vfs.clone(),
            paths: self.paths,
            read_only: self.read_only,
            health: HealthState::new(self.options.health_listener.clone(), events.clone()),
            events,
            metrics: EngineMetrics::new(self.options.sampling(), 0).with_timeline(timeline),
            tracing: pipeline.tracing().clone(),
            block_trace: Arc::default(),
            io_trace: Arc::default(),
            closed: AtomicBool::new(false),
            work_ended: AtomicBool::new(false),
            forks: forks(),
            start,
            options: ArcSwap::new(self.options),
        });
        let tree = Arc::new(Tree {
            versions: self.versions,
            families: ArcSwap::from_pointee(families),
            changes: Mutex::new(()),
            default_family,
            tables: self.tables,
            blocks: self.blocks,
            reclaimer: self.reclaimer,
        });
        let writes = Arc::new(WritePath {
            pipeline,
            snapshots: Arc::new(SnapshotList::default()),
            spare_logs: SpareFiles::new(self.vfs, log_directory, log_name),
            kept_logs: KeptLogs::new(kept),
            unlogged_writes: AtomicBool::new(false),
            memtable_pool: self.pool,
            write_buffers: self.write_buffers,
            key_locks: Arc::default(),
            prepared: Prepared::default(),
        });
        let spare_files = Arc::new(spare_files);
        let background = Background::new(&env, &tree, &writes, spare_files, device, control);
        let background = Arc::new(background);
        let _first = this.set(Arc::downgrade(&background));
        let secondary = self.secondary;
        let (locks, inspection) = (Mutex::new(locks), Mutex::new(None));
        let core = DbCore { env, tree, writes, background, secondary, locks, inspection };
        let core = Arc::new(core);
        if core.env.read_only {
            return Ok(core);
        }
        if let Some(space) = &core.env.options.load().space_manager {
            let tree: Weak<Tree> = Arc::downgrade(&core.tree);
            space.join(tree);
        }
        if let Some(buffers) = &core.writes.write_buffers {
            let background: Weak<Background> = Arc::downgrade(&core.background);
            buffers.join(background);
        }
        let kept: BTreeSet<_> = core.writes.kept_logs.lock().logs().map(|log| log.number).collect();
        let unneeded = self.logs.into_iter().filter(|log| !kept.contains(log));
        let unneeded = unneeded.map(|log| wal_file_name(&self.old_logs, log));
        for path in unneeded.chain(self.other_logs) {
            let _orphan = core.env.vfs.remove(&path);
        }
        report_families(&core);
        Ok(core)
    }

    /// Returns the device that the database is scheduled on, with others or alone.
    fn device(&self, control: &ControlOptions) -> Arc<Device> {
        let scheduling = self.options.scheduling();
        let alone = self.read_only || self.options.background_threads == 0 || clock::is_virtual();
        match &self.options.runtime {
            Some(runtime) if !alone => {
                let disk = self.vfs.disk(&self.directory).map(Where::Disk);
                let place = disk.unwrap_or(Where::Other(self.vfs.address()));
                runtime.device(place, &scheduling, control)
            }
            _ => Arc::new(Device::new(control, scheduling)),
        }
    }

    /// Returns the commit pipeline, which writes to all column families. `background` is set once
    /// the services exist.
    fn start_pipeline(
        &self,
        wal: Option<WalWriter>,
        keeps_logs: bool,
        timeline: Arc<Recorder>,
        background: Arc<OnceLock<Weak<Background>>>,
    ) -> CommitPipeline {
        let group_bytes_max = self.options.commit_group_bytes_max;
        let pipeline = CommitPipeline::new(PipelineStart {
            wal,
            last_seqno: self.last_seqno,
            group_bytes_max: usize::try_from(group_bytes_max).unwrap_or(usize::MAX),
            keeps_logs,
            seals_all: self.options.atomic_flush,
            timeline,
            sealed_hook: Box::new(move || {
                if let Some(background) = background.get().and_then(Weak::upgrade) {
                    background.driver.memtables_changed();
                }
            }),
        });
        pipeline.exclusive(|stage| pipeline.add_families(stage, self.families.values()));
        pipeline
    }

    /// Creates the WAL that new writes go to, and makes it durable.
    fn first_wal(&self, kept: &[KeptLog]) -> Result<WalWriter> {
        let directory = self.wal_directory();
        let number = self.versions.counters.log();
        let path = sateen_store::files::wal_file_name(&directory, number);
        let preallocate = self.options.wal_preallocation().min(wal::space::FIRST_BYTES);
        let mut writer = WalWriter::create(
            self.vfs.as_ref(),
            &path,
            number,
            self.versions.db_uid(),
            preallocate,
        )?;
        writer.set_bytes_per_sync(self.options.wal_bytes_per_sync);
        self.link_first_wal(&mut writer, kept)?;
        sync_directory(self.vfs.as_ref(), &directory)?;
        Ok(writer)
    }
}
