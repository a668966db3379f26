//! Checks a whole database from its directory alone. It locks and changes nothing, and another
//! process may have the database open.
//!
//! 1. [`Db::check`] and [`check_with`] find the current manifest.
//! 2. [`Checker::follow`] checks the database against it:
//!    1. every table, from end to end ([`tables`]);
//!    2. again the tables that a writer has added meanwhile;
//!    3. that newer entries lie above older ones ([`order`]);
//!    4. table files ([`files`]), then WALs ([`logs`]), then the small files.
//! 3. Without a current manifest, [`Checker::without_manifest`] checks against the newest one that
//!    can be read, or else each file by itself.
//! 4. `problem` sorts each finding into damage and unreadable files, and drops repeated ones.
//!
//! What must stay true:
//!
//! - An error of the environment (too many open files, no permission, an I/O error) is never
//!   damage. It is reported as unreadable, whatever call returns it.
//! - Data that a writer removes meanwhile is not damage. After a finding the manifest is read
//!   again, and the finding is dropped if the manifest no longer names that table, file or WAL.
//!   Removed data never comes back, so data that is named after the failure was needed during it.

mod files;
mod logs;
mod order;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::{TableMeta, Version};
use sateen_control::{ColumnFamilyId, FileId, LogNumber, SeqNo, TableId, UserKey};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::{FileName, HEADER_BYTES, manifest_file_name, table_file_name};
use sateen_store::manifest::{foreign, foreign_reason};
use sateen_store::table::table_cache::{TableCache, TableCacheOptions};
use sateen_store::vfs::{BoundedVfs, PosixVfs, Vfs, WatchedVfs};
use sateen_store::wal::logs_if_any;

use crate::db::Db;
use crate::open::paths::{Claimed, layer};
use crate::open::{find_comparators, find_manifest, interrupted_restore, logs_elsewhere};
use crate::options::paths::{absolute, absolute_families, check_named};
use crate::options::{ColumnFamilyOptions, Options};
use crate::tree::family_state::oldest_log;
use crate::tree::manifest_follower::{ManifestFollower, known_comparators};
use crate::tree::version_set::{FamilyState, FindComparator};

/// Number of passes over the tables. The later ones check tables that were added meanwhile.
const PASSES_MAX: u32 = 3;
/// Number of attempts to read something that changes all the time.
const TRIES_MAX: u32 = 50;
/// Number of files that a check or a repair has open for reading at a time.
const OPEN_FILES_MAX: u32 = 8;
/// Number of findings of one file that are reported.
const FINDINGS_PER_FILE_MAX: usize = 20;

/// What a check has read and found.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// The current manifest, if there is one that can be read.
    pub manifest: Option<PathBuf>,
    /// Number of tables that were read from end to end.
    pub tables: u64,
    /// Number of entries in them.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Number of WALs that were read from end to end.
    pub logs: u64,
    /// Number of records (commit groups) in them.
    pub log_records: u64,
    /// Bytes of all live tables, readable or not.
    pub live_bytes: u64,
    /// Bytes that table files occupy on the disk.
    pub disk_bytes: u64,
    /// Damage that was found. Each finding names a file.
    pub problems: Vec<Error>,
    /// Files that the operating system refused to read: no permission, too many open files, an I/O
    /// error. The check does not know whether such a file is whole.
    pub unreadable: Vec<Error>,
    /// Files that nothing names. They were left by a crash or a failed removal, and the next open
    /// removes them; or the process that has the database open is writing them.
    pub orphans: Vec<PathBuf>,
    /// Remarks that are no damage, a sentence each.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// Returns true if everything could be read and nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.unreadable.is_empty()
    }
}

impl Db {
    /// Reads the whole database and checks it: CURRENT, the manifest and the file OPTIONS; every
    /// WAL, record by record; the checksums, order, counts and bounds of each table; that runs do
    /// not overlap, that newer entries lie above older ones, and that no file is missing. Writers
    /// may go on meanwhile. `progress` is called with the bytes read so far and the total.
    ///
    /// It checks the stored data. On a secondary, or a database that was opened read-only, that is
    /// what the writer has stored by now.
    ///
    /// # Errors
    /// Fails only if the check itself could not be done. Its findings are in the report.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        let core = self.core();
        core.env.check_open()?;
        let families = core.tree.families();
        let whole = families.values().filter(|data| data.region().is_none());
        let known = whole.map(|data| (data.name().to_owned(), data.options().comparator.clone()));
        // A column family that was just created is not known yet, and gets the default.
        let others = core.env.options.load().column_family.comparator.clone();
        let comparators = known_comparators(known, others);
        let readers = || core.writes.snapshot_list();
        let watched = watch(core.env.vfs.clone(), core.env.options.load().max_open_files);
        let dyn_vfs: Arc<dyn Vfs> = Arc::new(watched.clone());
        let mut checker = Checker {
            vfs: dyn_vfs.clone(),
            watched,
            directory: core.env.directory.clone(),
            wal_dir: core.env.wal_directory(),
            wal_directory: core.env.wal_directory(),
            table_directories: core.env.paths.others(),
            direct: core.env.options.load().direct_reads,
            readers: &readers,
            goes_on: &|| core.env.check_open(),
            progress,
            found: BTreeMap::new(),
            report: CheckReport::default(),
            blind: false,
        };
        match find_manifest(&dyn_vfs, &core.env.directory, &comparators) {
            Ok(manifest) => checker.follow(manifest)?,
            Err(error @ Error::Behind { .. }) => return Err(error),
            Err(error) => {
                // Checks against the versions in memory: the tables from the open, and those added
                // since.
                checker.problem(error);
                let mut view = View {
                    db_uid: core.tree.versions.db_uid(),
                    families: core.tree.versions.families(),
                };
                let pins = families.values().map(|data| (data.id(), data.pin_super_version()));
                let pins: Vec<_> = pins.collect();
                for (id, pin) in &pins {
                    if let Some(family) = view.families.get_mut(id) {
                        family.version = pin.version.clone();
                    }
                }
                checker.check_tables(&view, None, &mut BTreeSet::new())?;
                checker.check_table_files(None, &view)?;
                let oldest = view.oldest_log();
                checker.check_each_log(&view, &|log| log >= oldest)?;
                checker.check_small_files(&view, None)?;
            }
        }
        Ok(checker.into_report())
    }
}

/// Returns a file system that keeps few files open, and notes what cannot be read.
pub(crate) fn watch(vfs: Arc<dyn Vfs>, open_files_max: u32) -> WatchedVfs {
    WatchedVfs::new(bounded(vfs, open_files_max))
}

/// Returns a file system that keeps few files open for reading.
pub(crate) fn bounded(vfs: Arc<dyn Vfs>, open_files_max: u32) -> Arc<dyn Vfs> {
    Arc::new(BoundedVfs::new(vfs, open_files_max.min(OPEN_FILES_MAX) as usize))
}

/// Fails if the WALs of the database are neither in `logs` nor in its `directory`, but elsewhere.
fn find_logs(
    vfs: &dyn Vfs,
    directory: &Path,
    logs: &Path,
    manifest: &ManifestFollower,
) -> Result<()> {
    let needed = oldest_log(manifest.families().values());
    if needed == LogNumber(0) {
        return Ok(());
    }
    // They may be where they were before `wal_dir` was set.
    for place in [logs, directory] {
        if !logs_if_any(vfs, place)?.is_empty() {
            return Ok(());
        }
    }
    logs_elsewhere(vfs, directory, logs, needed)?.map_or(Ok(()), Err)
}

/// Checks a database without opening it, like [`Db::check`]. It may be open, in this process or
/// another one. A damaged database is checked as far as that is possible.
///
/// # Errors
/// `IncompatibleDirectory` if there is no database, `InvalidArgument` if options are wrong, such as
/// the comparator. Findings are in the report.
pub fn check(
    path: impl AsRef<Path>,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CheckReport> {
    check_with(Arc::new(PosixVfs::new()), path, options, &[], progress)
}

/// [`check`] in the caller's file system, with options for single column families.
///
/// # Errors
/// As [`check`].
pub fn check_with(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CheckReport> {
    check_named("the database", path.as_ref())?;
    options.validate()?;
    families.iter().try_for_each(|(_, options)| options.validate())?;
    let (options, families) =
        (&options.clone().with_absolute_paths()?, &*absolute_families(families)?);
    let directory = absolute(path.as_ref());
    let paths = Arc::new(layer(vfs, &directory, options, families));
    let table_directories = paths.others();
    let watched = watch(paths.clone(), options.max_open_files);
    let vfs: Arc<dyn Vfs> = Arc::new(watched.clone());
    let claimed = Claimed::read(vfs.as_ref(), &directory);
    match claimed.and_then(|claimed| claimed.check(vfs.as_ref(), &directory).map(|()| claimed)) {
        Ok(claimed) => claimed.others().iter().for_each(|other| paths.add(other)),
        Err(error @ Error::IncompatibleDirectory { .. }) => return Err(error),
        // The report names it later.
        Err(_) => {}
    }
    let comparators = find_comparators(options, families);
    let found = find_manifest(&vfs, &directory, &comparators);
    let error = match &found {
        Err(error @ (Error::InvalidArgument(_) | Error::Behind { .. })) => {
            return Err(error.clone());
        }
        Err(error) => Some(error.clone()),
        Ok(_) => None,
    };
    if let Some(error) = &error {
        refuse_other_than_ours(vfs.as_ref(), &directory, error)?;
    }
    let wal_directory = options.wal_directory(&directory);
    if let Ok(manifest) = &found {
        find_logs(vfs.as_ref(), &directory, &wal_directory, manifest)?;
    }
    let mut checker = Checker {
        vfs,
        watched,
        wal_dir: wal_directory.clone(),
        wal_directory,
        table_directories,
        directory,
        direct: options.direct_reads,
        readers: &|| vec![SeqNo::MAX],
        goes_on: &|| Ok(()),
        progress,
        found: BTreeMap::new(),
        report: CheckReport::default(),
        blind: false,
    };
    match found {
        Ok(manifest) => checker.follow(manifest)?,
        Err(error) => {
            let refused = error.is_environment();
            let goes_on = !refused || error.is_device_failure();
            checker.problem(error);
            if refused {
                let text = "the current manifest could not be read: tables and WALs were not \
                            checked against it";
                checker.report.notes.push(text.to_owned());
            }
            // Checked against another manifest, whole files would look missing. A writer may be
            // writing other files meanwhile.
            if goes_on {
                checker.without_manifest(&comparators, !refused)?;
            }
        }
    }
    Ok(checker.into_report())
}

/// Returns `error`, unless the directory has files of ours, which can be checked in any case.
fn refuse_other_than_ours(vfs: &dyn Vfs, directory: &Path, error: &Error) -> Result<()> {
    let listing = vfs.list(directory).map_err(|refused| {
        let refused = Error::io("list", directory, refused);
        if refused.is_environment() { refused } else { error.clone() }
    })?;
    if let Some(what) = foreign(vfs, directory, &listing) {
        let reason = foreign_reason(what, directory);
        return Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    }
    if let Some(reason) = interrupted_restore(&listing) {
        return Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason });
    }
    let mut names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    let ours = names.any(|name| {
        let name = FileName::parse(name);
        matches!(name, Some(FileName::Table(_) | FileName::Wal(_) | FileName::Manifest(_)))
    });
    if ours { Ok(()) } else { Err(error.clone()) }
}

/// What a manifest says.
#[derive(Clone, Default)]
struct View {
    db_uid: u64,
    families: BTreeMap<ColumnFamilyId, FamilyState>,
}

impl View {
    /// Returns the live tables.
    fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        self.families.values().flat_map(|family| family.version.tables()).map(|(.., table)| table)
    }

    /// Returns the bytes of the live tables.
    fn live_bytes(&self) -> u64 {
        self.tables().map(|table| table.stored_bytes() + table.values.bytes()).sum()
    }

    /// Returns the oldest WAL that is needed.
    fn oldest_log(&self) -> LogNumber {
        oldest_log(self.families.values())
    }

    /// Returns the bytes of all values of a value file; `None` if it is not one.
    fn value_file(&self, file: FileId) -> Option<u64> {
        let mut versions = self.families.values().map(|family| &family.version);
        versions.find_map(|version| Some(version.value_files().get(file)?.bytes))
    }

    /// Returns the files that have tables, each with the end of its last table, and those that have
    /// values of tables.
    fn files(&self) -> BTreeMap<FileId, u64> {
        let mut files: BTreeMap<FileId, u64> = BTreeMap::new();
        for table in self.tables() {
            let end = tables::extent(table).end;
            let known = files.entry(table.placement.file()).or_default();
            *known = (*known).max(end);
            if let Some(values) = table.placement.values() {
                files.entry(values).or_default();
            }
            for one in &table.values.files {
                files.insert(one.file, HEADER_BYTES + one.file_bytes);
            }
        }
        files
    }

    /// Returns the bounds of the keys in a tree: the first one inclusive, the second one exclusive.
    fn bounds_of(&self, id: ColumnFamilyId) -> (Option<UserKey>, Option<UserKey>) {
        let own = self.families.get(&id).and_then(|family| family.region.clone());
        let (of, begin) = own.map_or((id, None), |region| (region.of, Some(region.begin)));
        let regions = self.families.values().filter_map(|family| family.region.as_ref());
        let begins = regions.filter(|region| region.of == of).map(|region| &region.begin);
        let end = begins.filter(|next| begin.as_ref().is_none_or(|begin| *next > begin)).min();
        (begin, end.cloned())
    }
}

/// A running check.
struct Checker<'a> {
    vfs: Arc<dyn Vfs>,
    /// The same file system, which knows what could not be read.
    watched: WatchedVfs,
    directory: PathBuf,
    /// The `wal_dir` of the options, or `directory`.
    wal_dir: PathBuf,
    /// The directory with the WALs that are needed.
    wal_directory: PathBuf,
    /// The other directories of tables that are known.
    table_directories: Vec<PathBuf>,
    direct: bool,
    /// Returns the sequence numbers at which readers may read.
    readers: &'a dyn Fn() -> Vec<SeqNo>,
    /// Returns an error if the check is to stop.
    goes_on: &'a dyn Fn() -> Result<()>,
    progress: &'a mut dyn FnMut(u64, u64),
    /// Number of findings of each file.
    found: BTreeMap<PathBuf, usize>,
    report: CheckReport,
    /// Whether the manifest has become unreadable, so that it is unknown what a writer gives up.
    blind: bool,
}

impl Checker<'_> {
    /// Checks a database whose current manifest can be read.
    fn follow(&mut self, mut manifest: ManifestFollower) -> Result<()> {
        self.report.manifest = Some(manifest.path());
        let mut checked = BTreeSet::new();
        let mut view = view_of(&manifest);
        self.report.live_bytes = view.live_bytes();
        for _ in 0..PASSES_MAX {
            self.check_tables(&view, Some(&mut manifest), &mut checked)?;
            if !self.advance(&mut manifest) {
                break;
            }
            view = view_of(&manifest);
            if view.tables().all(|table| checked.contains(&table.id)) {
                break;
            }
        }
        self.check_order(&mut manifest)?;
        self.check_table_files(Some(&mut manifest), &view)?;
        self.check_logs(&mut manifest)?;
        self.advance(&mut manifest);
        self.check_small_files(&view_of(&manifest), Some(&manifest))
    }

    /// Checks a database without a current manifest. If `believe` is set, it checks against the
    /// newest manifest that can be read; otherwise, or if there is none, it checks each file by
    /// itself.
    fn without_manifest(&mut self, comparators: &FindComparator, believe: bool) -> Result<()> {
        let mut believed = None;
        let manifests = if believe { self.manifests()? } else { Vec::new() };
        for number in manifests.into_iter().rev() {
            let path = manifest_file_name(&self.directory, number);
            match files::read_manifest(self.vfs.as_ref(), &path, number, comparators) {
                Ok(view) if believed.is_none() => believed = Some((path, view)),
                Ok(_) => {}
                Err(error @ Error::InvalidArgument(_)) => return Err(error),
                Err(error) => self.problem(error),
            }
        }
        let view = match believed {
            Some((path, view)) => {
                let text = format!("tables and WALs are checked against {}", shown_path(path));
                self.report.notes.push(text);
                self.report.live_bytes = view.live_bytes();
                self.check_tables(&view, None, &mut BTreeSet::new())?;
                self.check_table_files(None, &view)?;
                view
            }
            None => {
                self.check_described_tables()?;
                View::default()
            }
        };
        if self.logs()?.is_empty() {
            // They may be where they were before `wal_dir` was set.
            self.wal_directory.clone_from(&self.directory);
        }
        self.check_each_log(&view, &|_| true)?;
        self.check_small_files(&view, None)
    }

    /// Reads new edits of the manifest. Returns false if there are none, or if they cannot be read.
    fn advance(&mut self, manifest: &mut ManifestFollower) -> bool {
        let mut failed: Option<String> = None;
        for _ in 0..TRIES_MAX {
            match manifest.advance() {
                Ok(moved) => return moved,
                Err(error) if failed.as_ref() == Some(&error.to_string()) => {
                    self.blind |= error.is_environment();
                    self.problem(error);
                    return false;
                }
                Err(error) => failed = Some(error.to_string()),
            }
        }
        false
    }

    /// Returns true if a table is still live. Without a current manifest every table counts as
    /// live.
    fn is_live(&mut self, manifest: Option<&mut ManifestFollower>, table: TableId) -> bool {
        let Some(manifest) = manifest else { return true };
        self.advance(manifest);
        let mut versions = manifest.families().values().map(|family| &family.version);
        versions.any(|version| version.tables().any(|(.., live)| live.id == table))
    }

    fn table_cache(&self, db_uid: u64) -> TableCache {
        // A cache of its own, because tables that are already open were read from the disk long
        // ago.
        TableCache::new(TableCacheOptions {
            vfs: self.vfs.clone(),
            directory: self.directory.clone(),
            db_uid,
            direct: self.direct,
            open_files_max: OPEN_FILES_MAX as usize,
            memory_bytes_max: 64 << 20,
            images: None,
        })
    }

    /// Returns the report, with all errors of the environment, also those that a caller ignored.
    fn into_report(mut self) -> CheckReport {
        self.watched.errors().into_iter().for_each(|error| self.problem(error));
        self.report
    }

    /// Adds a finding to the report, unless it is there already.
    fn problem(&mut self, error: Error) {
        if error.is_environment() {
            if !self.report.unreadable.iter().any(|told| is_same_refusal(told, &error)) {
                self.report.unreadable.push(error);
            }
            return;
        }
        // What looks damaged or missing may have been given up by a writer.
        if self.blind && error.is_corruption() {
            return;
        }
        let text = error.to_string();
        if self.report.problems.iter().any(|told| told.to_string() == text) {
            return;
        }
        if let Error::Corruption { path, .. } = &error {
            let found = self.found.entry(path.clone()).or_default();
            *found += 1;
            if *found == FINDINGS_PER_FILE_MAX + 1 {
                let text = format!("{}: it has more damage than is listed", shown_path(path));
                self.report.notes.push(text);
            }
            if *found > FINDINGS_PER_FILE_MAX {
                return;
            }
        }
        self.report.problems.push(error);
    }
}

/// Returns true if both errors say that the same file could not be read, for the same reason.
fn is_same_refusal(one: &Error, other: &Error) -> bool {
    match (one, other) {
        (Error::Io { path, source, .. }, Error::Io { path: of, source: reason, .. }) => {
            path == of
                && source.kind() == reason.kind()
                && source.raw_os_error() == reason.raw_os_error()
        }
        _ => one.to_string() == other.to_string(),
    }
}

/// Returns what the manifest says now.
fn view_of(manifest: &ManifestFollower) -> View {
    View { db_uid: manifest.identity.uid, families: manifest.families().clone() }
}

/// Returns an error about a table file as a whole.
fn wrong(directory: &Path, file: FileId, at: u64, what: &'static str) -> Error {
    let path = table_file_name(directory, file);
    Error::corruption(&path, at, CorruptionKind::Inconsistent(what))
}

/// Returns true if `version` is the same object as the one in `view`.
fn is_same(view: &View, id: ColumnFamilyId, version: &Arc<Version>) -> bool {
    view.families.get(&id).is_some_and(|family| Arc::ptr_eq(&family.version, version))
}
