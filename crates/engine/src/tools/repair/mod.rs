//! Repairs a database with damaged or missing files.
//!
//! If the manifest in use can be read to its end, the repair keeps it. It gives up only missing
//! tables and unreadable blocks, and rewrites the other entries of a damaged table in its place.
//!
//! Otherwise tables and WALs describe themselves. All readable entries are merged into one new run
//! for each column family: of each key the newest entry, and for a merge operand all entries down
//! to a value. Of two entries with one sequence number the younger file wins. The readable part of
//! the manifests still counts: names, comparators and regions of column families, dropped or
//! replaced tables, range deletions. What only the unreadable part said is lost:
//!
//! - A table that a compaction had replaced, but that was not freed because its file has live
//!   tables, can bring back a deleted key, an older value or a merged operand. So can lost range
//!   deletions.
//! - Ingested tables that were not compacted since count as the oldest.
//! - Dropped column families come back. One without a name becomes `recovered-N`.
//!
//! Invariants: an error of the environment ends the repair with that error, and what it created is
//! removed again ([`unread`]). Only bytes that were read and do not verify are damaged, and only a
//! missing name is a missing file. No existing byte is destroyed, even if the repair is
//! interrupted, and a second repair gives the same result. Unused files and damaged files that are
//! used in part are in the directory `lost` in the database.

mod aside;
mod logs;
mod merge;
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
use sateen_store::files::counters::Counters;
use sateen_store::files::{FileName, manifest_file_name, table_file_name, wal_file_name};
use sateen_store::manifest::{Identity, ManifestReader, foreign, foreign_reason, read_current};
use sateen_store::table::table_cache::{TableCache, TableCacheOptions};
use sateen_store::vfs::{PosixVfs, Vfs, WatchedVfs};
use tables::read_whole;

use crate::background::output::{Output, OutputContext};
use crate::options::{ColumnFamilyOptions, Options};
use crate::tools::check::{bounded, watch};
use crate::tools::found::described;
use crate::tree::version_set::{FamilyState, FindComparator, Replay, VersionSet};
pub use tables::LostRange;

/// What a repair did.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// The manifest that was believed; none if the tables had to speak for themselves.
    pub manifest: Option<PathBuf>,
    /// Tables that are part of the repaired database.
    pub tables_kept: u64,
    /// Entries that were written anew, of tables and logs.
    pub entries_salvaged: u64,
    /// Those of them that logs had.
    pub log_entries_salvaged: u64,
    /// What was found damaged or missing; each names a file.
    pub losses: Vec<Error>,
    /// Where in the keys something is lost with tables.
    pub lost_ranges: Vec<LostRange>,
    /// What else is worth knowing, a sentence each: what was lost of logs above all.
    pub notes: Vec<String>,
    /// Files that were moved away, by their new names.
    pub moved: Vec<PathBuf>,
}

struct Repair {
    vfs: Arc<dyn Vfs>,
    /// The same: it knows what could not be read, and what was made.
    watched: WatchedVfs,
    directory: PathBuf,
    options: Arc<Options>,
    /// The comparators of column families that were given options of their own.
    given: Vec<(String, Comparator)>,
    report: RepairReport,
    remembered: Remembered,
    /// Files that have a second name in `lost`, or get one there, and that.
    aside: BTreeMap<PathBuf, Aside>,
    /// Files of which some table could not be read whole.
    damaged: BTreeSet<FileId>,
    /// Files that were made on the way and are of no use in the end.
    temporary: Vec<FileId>,
    /// Something was written by a newer version: it is not damaged, and not to be lost.
    newer: Option<Error>,
    tables: Vec<FileId>,
    manifests: Vec<FileId>,
    /// Ascending.
    logs: Vec<LogNumber>,
    /// What they hold is in tables: they are moved away.
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
/// `Locked` if it is open, `IncompatibleDirectory` if there is nothing of a database or something
/// of a newer version, `InvalidArgument` if another comparator is wanted, `Io` if a file cannot be
/// opened, read or written. Then nothing of what was there has changed, and nothing was added but
/// the file LOCK. Nothing is moved away because the operating system refused to read it.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    repair_with(Arc::new(PosixVfs::new()), path, options)
}

/// [`repair`] in a file system of the caller's.
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

/// The same, where column families have comparators of their own: those in `families`.
///
/// # Errors
/// As [`repair`].
pub fn repair_families_with(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> Result<RepairReport> {
    let watched = watch(vfs, options.max_open_files);
    repair_watched(watched, path.as_ref(), options, families)
}

/// [`repair_families_with`] of a database on a device that cannot read everything any more: a page
/// for which it answers EIO counts as damaged, and what was in it is lost. All other errors of the
/// operating system, and a file that cannot be opened, end the repair as ever.
///
/// # Errors
/// As [`repair`].
pub fn repair_giving_up_unreadable(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> Result<RepairReport> {
    let watched = WatchedVfs::giving_up_unreadable(bounded(vfs, options.max_open_files));
    repair_watched(watched, path.as_ref(), options, families)
}

fn repair_watched(
    watched: WatchedVfs,
    path: &Path,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> Result<RepairReport> {
    options.validate()?;
    families.iter().try_for_each(|(_, options)| options.validate())?;
    let vfs: Arc<dyn Vfs> = Arc::new(watched.clone());
    let directory = path.to_owned();
    let listing = vfs.list(&directory).map_err(|e| Error::io("list", &directory, e))?;
    // Before the lock: its file has no business in a directory that is no database.
    let refused = match foreign(vfs.as_ref(), &directory, &listing) {
        Some(what) => Some(foreign_reason(what, &directory)),
        None if holds_a_database(&listing) => None,
        None => Some("there is nothing of a database here".to_owned()),
    };
    watched.first_error().map_or(Ok(()), Err)?;
    if let Some(reason) = refused {
        return Err(Error::IncompatibleDirectory { path: directory, reason });
    }
    let path = directory.join("LOCK");
    let _lock = vfs.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { holder: vfs.lock_holder(&path), path },
        _ => Error::io("lock", &path, error),
    })?;
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

fn holds_a_database(listing: &[PathBuf]) -> bool {
    let mut names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    names.any(|name| {
        matches!(
            FileName::parse(name),
            Some(FileName::Table(_) | FileName::Manifest(_) | FileName::Wal(_))
        )
    })
}

impl Repair {
    fn run(&mut self) -> Result<()> {
        let catalogue = self.catalogue();
        // What could not be read comes first: everything else may follow from it.
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
        self.logs.sort_unstable();
        Ok(())
    }

    /// The error for a place of which nothing can be read: perhaps it is no database of ours.
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

    /// The manifest that counts, if it can be read to its end. Without CURRENT that is the newest,
    /// but for one whose snapshot is not whole: none counts before that is durable.
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
                // Nothing is wrong with it: other options are wanted.
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

    /// Nothing depends on the options, but whoever opens the database may have relied on them.
    fn look_at_options(&mut self) -> Result<()> {
        match Options::load_with(self.vfs.as_ref(), &self.directory, true) {
            Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => self.loss(error)?,
            Err(error) => self.note(error.to_string()),
            Ok(stored) => {
                if stored.options.wal_dir.is_some() && self.options.wal_dir.is_none() {
                    self.note("its logs were in another directory: see the option wal_dir".into());
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

    /// All comparators that were given.
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

    /// Puts in the place of tables that cannot be read what of them can.
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

    /// Whether a file says itself what it has: the next repair may need it.
    fn is_described(&self, file: FileId) -> Result<()> {
        described(self.vfs.as_ref(), &self.directory, file).map(drop)
    }

    /// Writes what of a table can be read.
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

    /// What new tables of a column family's level are written with.
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

    /// Writes an entry of another key than the one before.
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

    /// Makes the catalogue durable, then moves away what it does not name.
    fn install(&mut self, catalogue: Catalogue) -> Result<()> {
        catalogue.counters.file_seen(self.numbers_seen);
        let live: BTreeSet<FileId> = catalogue
            .families
            .values()
            .flat_map(|family| {
                family.version.tables().flat_map(|(_, _, table)| table.placement.files())
            })
            .collect();
        let versions = VersionSet::new(
            &self.directory,
            self.vfs.clone(),
            catalogue.identity,
            catalogue.counters,
            catalogue.families,
            catalogue.shared,
            catalogue.last_seqno,
        );
        let directory = self.directory.clone();
        let unused = self.tables.iter().filter(|file| !live.contains(file));
        let mut away: Vec<PathBuf> =
            unused.map(|file| table_file_name(&directory, *file)).collect();
        away.extend(self.manifests.iter().map(|file| manifest_file_name(&directory, *file)));
        // Of these a part is used, and the rest would be given back.
        let damaged = self.damaged.iter().filter(|file| live.contains(file));
        let mut kept: Vec<PathBuf> =
            damaged.map(|file| table_file_name(&directory, *file)).collect();
        let (current, options) = self.damaged_texts()?;
        kept.extend(current);
        away.extend(options);
        kept.extend(away.iter().cloned());
        self.keep_aside(&directory, &kept, &away)?;
        let wal_directory = self.wal_directory();
        let mut logs = Vec::new();
        if self.logs_are_stored {
            logs.extend(self.logs.iter().map(|log| wal_file_name(&wal_directory, *log)));
            self.keep_aside(&wal_directory, &logs, &logs)?;
        }
        self.everything_was_read()?;
        versions.roll()?;
        self.take_away(&directory, &away)?;
        self.take_away(&wal_directory, &logs)?;
        for file in std::mem::take(&mut self.temporary) {
            // An open would remove it.
            let _orphan = self.vfs.remove(&table_file_name(&directory, file));
        }
        Ok(())
    }
}

/// Whether the snapshot that opens a manifest can be read to its end.
fn has_snapshot(vfs: &dyn Vfs, path: &Path, number: FileId) -> bool {
    let Ok(mut reader) = ManifestReader::open(vfs, path, number.0, None, 0) else { return false };
    while let Ok(Some(_)) = reader.next() {}
    reader.has_snapshot()
}

/// What keys of the column family `name` are compared by, which is called `recorded`.
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
