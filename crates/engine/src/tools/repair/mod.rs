//! Repairs a database with damaged or missing files.
//!
//! 1. [`Repair::believe_a_manifest`] reads the current manifest. If it can be read to its end, the
//!    repair keeps it. `without_lost_tables` rewrites the readable entries of damaged tables, and
//!    `take_in_logs` ([`logs`]) stores entries of WALs that cannot be replayed.
//! 2. Otherwise [`Repair::salvage`] ([`merge`]) builds a catalogue from tables and WALs.
//! 3. [`Repair::install`] keeps unused and damaged files in `lost` ([`aside`]) and makes a new
//!    manifest current.
//!
//! What must stay true:
//!
//! - An error of the environment ends the repair with that error, and what it created is removed
//!   again ([`unread`]).
//! - Only bytes that were read and do not verify are damaged. Only a missing name is a missing
//!   file.
//! - No existing byte is destroyed, even if the repair is interrupted. A second repair gives the
//!   same result.

mod aside;
mod logs;
mod merge;
mod options;
mod remembered;
mod sources;
mod tables;
mod unread;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside::Aside;
use remembered::Remembered;
use sateen_control::version::{AddedTable, RemovedTable, TableMeta, Version, VersionEdit};
use sateen_control::{ColumnFamilyId, Comparator, FileId, IoClass, LogNumber, SeqNo};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::counters::Counters;
use sateen_store::files::paths::Owner;
use sateen_store::files::{FileName, manifest_file_name, table_file_name};
use sateen_store::manifest::{Identity, ManifestReader, foreign, foreign_reason, read_current};
use sateen_store::table::table_cache::{TableCache, TableCacheOptions};
use sateen_store::vfs::{PosixVfs, Vfs, WatchedVfs};
use tables::read_whole;

use crate::background::output::{Output, OutputContext};
use crate::open::interrupted_restore;
use crate::open::paths::{Claimed, layer};
use crate::open::take_lock;
use crate::options::paths::{absolute, absolute_families, check_named};
use crate::options::{ColumnFamilyOptions, Options};
use crate::tools::check::bounded;
use crate::tools::found::{described, holds_a_database};
use crate::tree::version_set::{FamilyState, FindComparator, Replay};
pub use options::{RepairListener, RepairOptions};
pub use tables::LostRange;

/// What a repair did.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// The manifest that was kept; `None` if the catalogue was built from tables and WALs.
    pub manifest: Option<PathBuf>,
    /// Number of tables in the repaired database.
    pub tables_kept: u64,
    /// Number of entries that were rewritten, from tables and WALs.
    pub entries_salvaged: u64,
    /// Number of those that came from WALs.
    pub log_entries_salvaged: u64,
    /// Damaged or missing files and parts of files.
    pub losses: Vec<Error>,
    /// Key ranges in which entries of tables may be lost.
    pub lost_ranges: Vec<LostRange>,
    /// Other remarks, a sentence each, above all on what WALs have lost.
    pub notes: Vec<String>,
    /// The new names of files that were moved to `lost`.
    pub moved: Vec<PathBuf>,
}

struct Repair {
    vfs: Arc<dyn Vfs>,
    /// The same file system, which knows what could not be read and what was created.
    watched: WatchedVfs,
    directory: PathBuf,
    options: Arc<Options>,
    /// The comparators of column families with options of their own.
    given: Vec<(String, Comparator)>,
    report: RepairReport,
    remembered: Remembered,
    /// Files with a second name in `lost`, or with a name there to which they will be moved.
    aside: BTreeMap<PathBuf, Aside>,
    /// Files with a table that could not be read to its end.
    damaged: BTreeSet<FileId>,
    /// Files that were written on the way and are not needed in the end.
    temporary: Vec<FileId>,
    /// The error of a file that a newer version wrote. Such a file is not damaged and must not be
    /// lost.
    newer: Option<Error>,
    tables: Vec<FileId>,
    manifests: Vec<FileId>,
    /// The WALs in `old_logs`, ascending.
    logs: Vec<LogNumber>,
    /// The directory of the WALs that are read. New ones are written to `wal_dir`.
    old_logs: PathBuf,
    /// WALs in the database's own directory while `wal_dir` has WALs, too.
    rival_logs: Vec<LogNumber>,
    /// Whether the entries of the WALs are in tables, so that the WALs are moved to `lost`.
    logs_are_stored: bool,
    numbers_seen: u64,
}

struct Catalogue {
    identity: Identity,
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    counters: Counters,
    shared: BTreeSet<FileId>,
    last_seqno: SeqNo,
}

/// Repairs the database in `path`, which must not be open.
///
/// # Errors
/// `Locked` if the database is open, `IncompatibleDirectory` if there is no database or a file of a
/// newer version, `InvalidArgument` if another comparator is needed, `Io` if a file cannot be
/// opened, read or written. After an error no existing file has changed, and at most the file LOCK
/// was added. No file is moved because the operating system refused to read it.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    repair_with(Arc::new(PosixVfs::new()), path, options)
}

/// [`repair`] in the caller's file system.
///
/// # Errors
/// As [`repair`].
pub fn repair_with(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
) -> Result<RepairReport> {
    repair_families_with(vfs, path, options, &[])
}

/// [`repair_with`], with the options of single column families in `families`, for their
/// comparators.
///
/// # Errors
/// As [`repair`].
pub fn repair_families_with(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> Result<RepairReport> {
    repair_as(vfs, path, options, families, &RepairOptions::default())
}

/// [`repair_families_with`], in the way that `how` says.
///
/// # Errors
/// As [`repair`]. `Cancelled` if the listener ends it.
pub fn repair_as(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
    how: &RepairOptions,
) -> Result<RepairReport> {
    check_named("the database", path.as_ref())?;
    let options = options.clone().with_absolute_paths()?;
    let families = absolute_families(families)?;
    let directory = absolute(path.as_ref());
    let vfs = Arc::new(layer(vfs, &directory, &options, &families));
    let vfs = bounded(vfs, options.max_open_files);
    let watched = WatchedVfs::with(vfs, how.give_up_unreadable, how.wants_to_stop());
    let repaired = repair_watched(watched.clone(), directory, &options, &families);
    repaired.map_err(|error| match watched.is_stopped() {
        true => Error::Cancelled("the repair"),
        false => error,
    })
}

fn repair_watched(
    watched: WatchedVfs,
    directory: PathBuf,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> Result<RepairReport> {
    options.validate()?;
    families.iter().try_for_each(|(_, options)| options.validate())?;
    let vfs: Arc<dyn Vfs> = Arc::new(watched.clone());
    let claimed = match Claimed::read(vfs.as_ref(), &directory) {
        // A damaged list is put aside. The options name the directories.
        Err(Error::Corruption { path, .. }) if path == FileName::Directories.path(&directory) => {
            Claimed::default()
        }
        claimed => claimed?,
    };
    claimed.check(vfs.as_ref(), &directory)?;
    if let Some(owner) = Owner::of_tables(vfs.as_ref(), &directory)? {
        return Err(owner.no_database(&directory));
    }
    let listing = vfs.list(&directory).map_err(|e| Error::io("list", &directory, e))?;
    // Checked before the lock, whose file must not be created in a directory without a database.
    let refused = match foreign(vfs.as_ref(), &directory, &listing) {
        Some(what) => Some(foreign_reason(what, &directory)),
        None if holds_a_database(&listing) => interrupted_restore(&listing),
        None => Some("there is no database here".to_owned()),
    };
    watched.first_error().map_or(Ok(()), Err)?;
    if let Some(reason) = refused {
        return Err(Error::IncompatibleDirectory { path: directory, reason });
    }
    let _lock = take_lock(vfs.as_ref(), &directory)?;
    let families_alone = families.iter().map(|(_, family)| family);
    let others: Vec<_> =
        options.table_directories(&directory, families_alone).into_iter().collect();
    // Before the locks, whose files must not be created in directories of others.
    claimed.check_free(vfs.as_ref(), &directory, &others)?;
    // Tables in a directory that is not named would be given up.
    if let Some(what) = claimed.unknown(&others) {
        return Err(Error::InvalidArgument(what));
    }
    let lock = |other: &PathBuf| take_lock(vfs.as_ref(), other);
    let _locks: Vec<_> = others.iter().map(lock).collect::<Result<_>>()?;
    claimed.check_free(vfs.as_ref(), &directory, &others)?;
    let mut repair = Repair {
        vfs,
        watched: watched.clone(),
        directory,
        options: Arc::new(options.clone()),
        given: families
            .iter()
            .map(|(name, options)| ((*name).to_owned(), options.comparator.clone()))
            .collect(),
        report: RepairReport::default(),
        remembered: Remembered::default(),
        aside: BTreeMap::new(),
        damaged: BTreeSet::new(),
        temporary: Vec::new(),
        newer: None,
        tables: Vec::new(),
        manifests: Vec::new(),
        logs: Vec::new(),
        old_logs: PathBuf::new(),
        rival_logs: Vec::new(),
        logs_are_stored: false,
        numbers_seen: 0,
    };
    match repair.run() {
        Ok(()) => Ok(repair.report),
        Err(error) => {
            watched.take_back();
            Err(error)
        }
    }
}

impl Repair {
    fn run(&mut self) -> Result<()> {
        let catalogue = self.catalogue();
        // Checked first, because any other error may follow from a file that could not be read.
        self.everything_was_read()?;
        let catalogue = catalogue?;
        if let Some(newer) = self.newer.take() {
            return Err(newer);
        }
        self.tell_what_was_given_up();
        self.install(catalogue)
    }

    fn catalogue(&mut self) -> Result<Catalogue> {
        self.list()?;
        self.look_at_options()?;
        match self.believe_a_manifest()? {
            Some(catalogue) => {
                let mut catalogue = self.without_lost_tables(catalogue)?;
                self.take_in_logs(&mut catalogue)?;
                Ok(catalogue)
            }
            None => self.salvage(),
        }
    }

    fn list(&mut self) -> Result<()> {
        for directory in BTreeSet::from([self.directory.clone(), self.wal_directory()]) {
            let names = self.vfs.list(&directory);
            for path in names.map_err(|error| Error::io("list", &directory, error))? {
                let name = path.file_name().and_then(|name| name.to_str());
                let Some(name) = name.and_then(FileName::parse) else { continue };
                self.numbers_seen = self.numbers_seen.max(name.number().unwrap_or(0));
                match name {
                    FileName::Wal(log) if directory == self.wal_directory() => self.logs.push(log),
                    FileName::Wal(log) => self.rival_logs.push(log),
                    FileName::Table(file) if directory == self.directory => self.tables.push(file),
                    FileName::Manifest(file) if directory == self.directory => {
                        self.manifests.push(file);
                    }
                    _ => {}
                }
            }
        }
        self.manifests.sort_unstable();
        self.tables.sort_unstable();
        self.old_logs = self.wal_directory();
        if self.logs.is_empty() && !self.rival_logs.is_empty() {
            self.old_logs.clone_from(&self.directory);
            self.logs = std::mem::take(&mut self.rival_logs);
        }
        self.logs.sort_unstable();
        Ok(())
    }

    /// Returns the error of a directory in which nothing can be read. It may not be a database of
    /// ours.
    fn nothing_readable(&self) -> Error {
        if let Err(error @ Error::IncompatibleDirectory { .. }) =
            read_current(self.vfs.as_ref(), &self.directory)
        {
            return error;
        }
        Error::IncompatibleDirectory {
            path: self.directory.clone(),
            reason: "neither a manifest nor a table can be read".into(),
        }
    }

    /// Returns the catalogue of the current manifest if that can be read to its end. Without
    /// CURRENT it is the newest manifest with a complete snapshot: none becomes current before its
    /// snapshot is durable.
    fn believe_a_manifest(&mut self) -> Result<Option<Catalogue>> {
        let current = read_current(self.vfs.as_ref(), &self.directory);
        if let Err(error) = &current {
            self.loss(error.clone())?;
        }
        let current = current.ok().flatten();
        if let Some(current) = &current {
            self.remembered.identity = Some(current.identity);
        }
        let current = current.map(|current| FileId(current.manifest));
        for number in self.manifests.clone().into_iter().rev() {
            if current.is_some_and(|current| current != number) {
                continue;
            }
            let path = manifest_file_name(&self.directory, number);
            match self.read_manifest(&path, number) {
                Ok(catalogue) => {
                    self.report.manifest = Some(path);
                    return Ok(Some(catalogue));
                }
                // The manifest is not damaged; other options are needed.
                Err(error @ Error::InvalidArgument(_)) => return Err(error),
                Err(error) => self.loss(error)?,
            }
            if current.is_some() || has_snapshot(self.vfs.as_ref(), &path, number) {
                break;
            }
        }
        if let Some(number) = current.filter(|current| !self.manifests.contains(current)) {
            let path = manifest_file_name(&self.directory, number);
            self.loss(Error::corruption(&path, 0, CorruptionKind::MissingFile))?;
        }
        for number in self.manifests.clone() {
            let path = manifest_file_name(&self.directory, number);
            self.remembered.read(self.vfs.as_ref(), &path, number);
        }
        self.everything_was_read()?;
        Ok(None)
    }

    /// Notes a damaged OPTIONS file. The repair does not need it, but the next open may.
    fn look_at_options(&mut self) -> Result<()> {
        match Options::load_with(self.vfs.as_ref(), &self.directory, true) {
            Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => self.loss(error)?,
            Err(error) => self.note(error.to_string()),
            Ok(stored) => {
                if stored.options.wal_dir.is_some() && self.options.wal_dir.is_none() {
                    let logs = stored.options.wal_dir.as_deref().map(shown_path);
                    self.note(format!(
                        "its WALs were in another directory, {}: set the option wal_dir",
                        logs.unwrap_or_default()
                    ));
                }
            }
        }
        Ok(())
    }

    fn read_manifest(&self, path: &Path, number: FileId) -> Result<Catalogue> {
        let mut reader = ManifestReader::open(self.vfs.as_ref(), path, number.0, None, 0)?;
        let (own, known) = (self.given.clone(), self.comparators());
        let comparators: FindComparator =
            Arc::new(move |name, recorded| comparator_of(&own, &known, name, recorded));
        let mut replay = Replay::new(path, &comparators);
        let mut catalogue = Catalogue {
            identity: Identity::of_uid(0),
            families: BTreeMap::new(),
            counters: Counters::default(),
            shared: BTreeSet::new(),
            last_seqno: SeqNo(0),
        };
        while let Some(edits) = reader.next()? {
            for edit in edits {
                catalogue.counters.absorb(&edit);
                catalogue.shared.extend(edit.shared_files.iter().copied());
                let seqno = edit.last_seqno.unwrap_or_default();
                catalogue.last_seqno = catalogue.last_seqno.max(seqno);
                replay.apply(edit)?;
            }
        }
        let truncated = || Error::corruption(path, reader.position(), CorruptionKind::Truncated);
        let uid = reader.db_uid().ok_or_else(truncated)?;
        let remembered = self.remembered.identity.filter(|identity| identity.uid == uid);
        catalogue.identity = remembered.unwrap_or(Identity::of_uid(uid));
        replay.check(reader.position())?;
        self.nothing_was_given_up(path)?;
        catalogue.families = replay.families().clone();
        Ok(catalogue)
    }

    /// Returns all comparators of the given options.
    fn comparators(&self) -> Vec<Comparator> {
        let given = self.given.iter().map(|(_, comparator)| comparator);
        let given = given.chain([&self.options.column_family.comparator]);
        std::iter::once(&Comparator::BYTEWISE).chain(given).cloned().collect()
    }

    fn table_cache(&self, db_uid: u64) -> TableCache {
        TableCache::new(TableCacheOptions {
            vfs: self.vfs.clone(),
            directory: self.directory.clone(),
            db_uid,
            direct: false,
            open_files_max: 256,
            memory_bytes_max: 256 << 20,
            images: None,
        })
    }

    /// Replaces each table that cannot be read to its end by its readable entries.
    fn without_lost_tables(&mut self, mut catalogue: Catalogue) -> Result<Catalogue> {
        let cache = self.table_cache(catalogue.identity.uid);
        catalogue.counters.file_seen(self.numbers_seen);
        let mut files: BTreeMap<FileId, Result<()>> = BTreeMap::new();
        for family in catalogue.families.values_mut() {
            let id = family.version.column_family();
            let mut edit = VersionEdit { column_family: id, ..Default::default() };
            for (level, epoch, table) in family.version.tables() {
                let file = table.placement.file();
                let described = files.entry(file).or_insert_with(|| self.is_described(file));
                let opened = cache.get(table, IoClass::Client);
                let read = opened.and_then(|table| read_whole(&table));
                let Err(error) = read.and_then(|()| described.clone()) else {
                    self.report.tables_kept += 1;
                    continue;
                };
                self.loss(error)?;
                self.damaged.insert(table.placement.file());
                let comparator = family.version.comparator();
                let mut output = self.output(id, level, catalogue.identity.uid, comparator);
                self.salvage_into(
                    &family.name,
                    catalogue.identity.uid,
                    table,
                    &mut output,
                    &catalogue.counters,
                )?;
                let written = output.finish()?;
                self.report.tables_kept += written.len() as u64;
                let added = written.into_iter().map(|table| AddedTable { level, epoch, table });
                edit.added.extend(added);
                edit.removed.push(RemovedTable {
                    level,
                    epoch,
                    smallest: table.smallest.clone(),
                    id: table.id,
                });
            }
            family.version = Arc::new(self.apply(&family.version, &edit)?);
        }
        Ok(catalogue)
    }

    /// Checks that a file's directory can be read, which a later repair may need.
    fn is_described(&self, file: FileId) -> Result<()> {
        described(self.vfs.as_ref(), &self.directory, file).map(drop)
    }

    /// Writes the readable entries of a table to `output`.
    fn salvage_into(
        &mut self,
        family: &str,
        db_uid: u64,
        table: &TableMeta,
        output: &mut Output,
        counters: &Counters,
    ) -> Result<()> {
        match self.place_of(db_uid, table) {
            Ok(place) => self.salvage_table(family, &place, output, counters),
            Err(_) => {
                self.report.lost_ranges.push(LostRange {
                    column_family: family.to_owned(),
                    file: table_file_name(&self.directory, table.placement.file()),
                    first: table.smallest.bytes().to_vec(),
                    last: table.largest.bytes().to_vec(),
                });
                Ok(())
            }
        }
    }

    fn apply(&self, version: &Version, edit: &VersionEdit) -> Result<Version> {
        version.apply(edit).map_err(|error| Error::InconsistentEdit {
            path: self.directory.clone(),
            reason: error.to_string(),
        })
    }

    /// Returns an output for new tables in a level of a column family.
    fn output(
        &self,
        family: ColumnFamilyId,
        level: u8,
        db_uid: u64,
        comparator: &Comparator,
    ) -> Output {
        let family_options = self.options.column_family.clone();
        let comparator = comparator.clone();
        let family_options = Arc::new(ColumnFamilyOptions { comparator, ..family_options });
        Output::new(OutputContext {
            vfs: self.vfs.clone(),
            directory: self.directory.clone(),
            db_uid,
            options: self.options.clone(),
            compression: family_options.compression_of(usize::from(level)),
            family_options,
            family,
            level,
            class: IoClass::Flush,
            spare_files: None,
            images: None,
        })
    }

    /// Adds an entry whose key differs from the one before. Ends the table before it if that is
    /// full.
    fn add(
        &mut self,
        output: &mut Output,
        counters: &Counters,
        internal: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if output.table_bytes() >= self.options.column_family.table_bytes {
            output.end_table()?;
        }
        self.report.entries_salvaged += 1;
        output.add(counters, internal, value)
    }
}

/// Returns true if the snapshot at the beginning of a manifest can be read to its end.
fn has_snapshot(vfs: &dyn Vfs, path: &Path, number: FileId) -> bool {
    let Ok(mut reader) = ManifestReader::open(vfs, path, number.0, None, 0) else { return false };
    while let Ok(Some(_)) = reader.next() {}
    reader.has_snapshot()
}

/// Returns the comparator named `recorded` for the column family `name`.
fn comparator_of(
    own: &[(String, Comparator)],
    known: &[Comparator],
    name: &str,
    recorded: &str,
) -> Result<Comparator> {
    let own = own.iter().filter(|(family, _)| family == name).map(|(_, comparator)| comparator);
    let mut candidates = own.chain(known);
    candidates.find(|known| known.name() == recorded).cloned().ok_or_else(|| {
        let given = known.last().map_or_else(String::new, |known| known.name().to_owned());
        Error::InvalidArgument(format!(
            "comparator={given}: keys of the column family {name} are compared by {recorded}"
        ))
    })
}

fn recovered_name(id: ColumnFamilyId) -> String {
    match id {
        ColumnFamilyId(0) => crate::DEFAULT_COLUMN_FAMILY.to_owned(),
        other => format!("recovered-{}", other.0),
    }
}
