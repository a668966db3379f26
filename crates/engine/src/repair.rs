//! Making a database readable again whose catalogue is lost or damaged, or some of whose tables
//! are.
//!
//! If a manifest can be read to its end it is believed, and only tables that are gone and blocks
//! that cannot be read are given up: what else is in a damaged table is written anew in its place.
//! Otherwise the tables describe themselves: everything readable is merged into one new run, of
//! each key the newest entry, and if that is an operand all down to a value; of two of one sequence
//! number, that of the younger file. A table that a compaction had replaced and that was not given
//! back yet, for other tables of its file are live, can bring a deleted key, an older value or an
//! operand that was merged back; so can ranges that were deleted, which only the manifest knew;
//! what was ingested and not compacted since counts as older than all else; dropped column families
//! come back from logs. Logs that the next open can replay stay; others see `repair/logs.rs`.
//!
//! What must stay true: no file is destroyed, unless the repair is interrupted after its manifest
//! is there. What the repaired database does not use is moved into the directory `lost` beside it.

mod logs;
mod sources;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::{
    AddedTable, LEVELS_MAX, RemovedTable, TableMeta, Version, VersionEdit,
};
use sateen_control::{
    ColumnFamilyId, Comparator, Epoch, FileId, IoClass, LogNumber, SeqNo, TableId,
};

use crate::background::output::{Output, OutputContext};
use crate::error::{CorruptionKind, Error, Result};
use crate::files::{
    CompactionFile, DirectoryEntry, FileName, manifest_file_name, table_file_name, wal_file_name,
};
use crate::manifest::version_set::{Counters, FamilyState, FindComparator, Replay, VersionSet};
use crate::manifest::{ManifestReader, foreign, foreign_reason, read_current};
use crate::options::{ColumnFamilyOptions, Options};
use crate::read::InternalIterator;
use crate::read::table_cache::{TableCache, TableCacheOptions};
use crate::table::{Table, TableIterOptions};
use crate::vfs::{OpenOptions, PosixVfs, Vfs};
use crate::wal::frame::FileKind;

use sources::{Newest, Sources};

/// What a repair did.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// The manifest that was believed; none if the tables had to speak for themselves.
    pub manifest: Option<PathBuf>,
    /// Tables that are part of the repaired database.
    pub tables_kept: u64,
    /// Entries that were written anew.
    pub entries_salvaged: u64,
    /// Why what is lost is lost; each names a file.
    pub losses: Vec<Error>,
    /// Files that were moved away.
    pub moved: Vec<PathBuf>,
}

struct Repair {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    options: Arc<Options>,
    report: RepairReport,
    tables: Vec<FileId>,
    manifests: Vec<FileId>,
    /// Ascending.
    logs: Vec<LogNumber>,
    /// What they hold is in tables: they are moved away.
    logs_are_stored: bool,
    numbers_seen: u64,
}

struct Catalogue {
    db_uid: u64,
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    counters: Counters,
    shared: BTreeSet<FileId>,
    last_seqno: SeqNo,
}

/// Repairs the database in `path`, which must not be open.
///
/// # Errors
/// `Locked` if it is open, `IncompatibleDirectory` if there is nothing of a database, `Io` if the
/// directory cannot be read or written.
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
    options.validate()?;
    let directory = path.as_ref().to_owned();
    let listing = vfs.list(&directory).map_err(|e| Error::io("list", &directory, e))?;
    // Before the lock: its file has no business in a directory that is no database.
    let refused = match foreign(vfs.as_ref(), &directory, &listing) {
        Some(what) => Some(foreign_reason(what, &directory)),
        None if holds_tables_or_manifests(&listing) => None,
        None => Some("there is nothing of a database here".to_owned()),
    };
    if let Some(reason) = refused {
        return Err(Error::IncompatibleDirectory { path: directory, reason });
    }
    let lock_path = directory.join("LOCK");
    let _lock = vfs.lock(&lock_path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: lock_path.clone() },
        _ => Error::io("lock", &lock_path, error),
    })?;
    let mut repair = Repair {
        vfs,
        directory,
        options: Arc::new(options.clone()),
        report: RepairReport::default(),
        tables: Vec::new(),
        manifests: Vec::new(),
        logs: Vec::new(),
        logs_are_stored: false,
        numbers_seen: 0,
    };
    repair.list()?;
    let mut catalogue = match repair.believe_a_manifest()? {
        Some(catalogue) => repair.without_lost_tables(catalogue)?,
        None => repair.salvage()?,
    };
    repair.take_in_logs(&mut catalogue)?;
    repair.install(catalogue)?;
    Ok(repair.report)
}

fn holds_tables_or_manifests(listing: &[PathBuf]) -> bool {
    let mut names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    names.any(|name| {
        matches!(FileName::parse(name), Some(FileName::Table(_) | FileName::Manifest(_)))
    })
}

impl Repair {
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

    /// The newest manifest that can be read to its end.
    fn believe_a_manifest(&mut self) -> Result<Option<Catalogue>> {
        for number in self.manifests.clone().into_iter().rev() {
            let path = manifest_file_name(&self.directory, number);
            match self.read_manifest(&path, number) {
                Ok(catalogue) => {
                    self.report.manifest = Some(path);
                    return Ok(Some(catalogue));
                }
                // Nothing is wrong with it: other options are wanted.
                Err(error @ Error::InvalidArgument(_)) => return Err(error),
                Err(error) => self.report.losses.push(error),
            }
        }
        Ok(None)
    }

    fn read_manifest(&self, path: &Path, number: FileId) -> Result<Catalogue> {
        let mut reader = ManifestReader::open(self.vfs.as_ref(), path, number.0, None, 0)?;
        let given = self.options.column_family.comparator.clone();
        let comparators: FindComparator =
            Arc::new(move |name, recorded| comparator_of(&given, name, recorded));
        let mut replay = Replay::new(path, &comparators);
        let mut catalogue = Catalogue {
            db_uid: 0,
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
        catalogue.db_uid = reader.db_uid().ok_or_else(truncated)?;
        replay.check(reader.position())?;
        catalogue.families = replay.families().clone();
        Ok(catalogue)
    }

    /// What those of `tables` are compared by that can be read.
    fn comparator_of_tables(
        &self,
        cache: &TableCache,
        tables: &[(FileId, DirectoryEntry)],
    ) -> Result<Comparator> {
        let mut refused = None;
        for (file, entry) in tables {
            for comparator in [&Comparator::BYTEWISE, &self.options.column_family.comparator] {
                let meta = Arc::new(meta_of(*file, entry, comparator));
                match cache.get(&meta, IoClass::Client) {
                    Ok(_) => return Ok(comparator.clone()),
                    Err(error @ Error::InvalidArgument(_)) => refused = Some(error),
                    Err(_) => break,
                }
            }
        }
        refused.map_or(Ok(Comparator::BYTEWISE), Err)
    }

    fn table_cache(&self, db_uid: u64) -> TableCache {
        TableCache::new(TableCacheOptions {
            vfs: self.vfs.clone(),
            directory: self.directory.clone(),
            db_uid,
            direct: false,
            open_files_max: 256,
            memory_bytes_max: 256 << 20,
        })
    }

    /// Puts in the place of tables that cannot be read what of them can.
    fn without_lost_tables(&mut self, mut catalogue: Catalogue) -> Result<Catalogue> {
        let cache = self.table_cache(catalogue.db_uid);
        catalogue.counters.file_seen(self.numbers_seen);
        for family in catalogue.families.values_mut() {
            let id = family.version.column_family();
            let mut edit = VersionEdit { column_family: id, ..Default::default() };
            for (level, epoch, table) in family.version.tables() {
                let opened = cache.get(table, IoClass::Client);
                let read = opened.as_ref().map_err(Error::clone).and_then(read_whole);
                let Err(error) = read else {
                    self.report.tables_kept += 1;
                    continue;
                };
                self.report.losses.push(error);
                let comparator = family.version.comparator();
                let mut output = self.output(id, level, catalogue.db_uid, comparator);
                if let Ok(table) = opened {
                    self.salvage_blocks(&table, &mut output, &catalogue.counters)?;
                }
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

    /// Writes the entries of all blocks that can be read.
    fn salvage_blocks(
        &mut self,
        table: &Arc<Table>,
        output: &mut Output,
        counters: &Counters,
    ) -> Result<()> {
        // Block by block: one that is damaged must not take its neighbours with it.
        let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, 1));
        let mut moved = iter.seek_to_first();
        loop {
            if moved.is_err() {
                moved = match iter.skip_block() {
                    Ok(false) => return Ok(()),
                    skipped => skipped.map(drop),
                };
            } else if iter.valid() {
                output.add(counters, iter.key(), iter.value())?;
                self.report.entries_salvaged += 1;
                moved = iter.next();
            } else {
                return Ok(());
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

    /// Builds a catalogue from the tables alone.
    fn salvage(&mut self) -> Result<Catalogue> {
        let counters = Counters::default();
        counters.file_seen(self.numbers_seen);
        let mut found: BTreeMap<ColumnFamilyId, Vec<(FileId, DirectoryEntry)>> = BTreeMap::new();
        let mut db_uid = None;
        for file in self.tables.clone() {
            // A log that has values of tables is read by way of these.
            if self.is_log(file) {
                continue;
            }
            match self.read_directory(file) {
                Ok(described) => {
                    db_uid.get_or_insert(described.db_uid);
                    for entry in described.tables {
                        let family = entry.column_family;
                        counters.absorb(&VersionEdit {
                            next_table: Some(TableId(entry.table.0 + 1)),
                            next_column_family: Some(ColumnFamilyId(family.0 + 1)),
                            ..VersionEdit::default()
                        });
                        found.entry(family).or_default().push((file, entry));
                    }
                }
                Err(error) => self.report.losses.push(error),
            }
        }
        let Some(db_uid) = db_uid else {
            return Err(self.nothing_readable());
        };
        found.entry(ColumnFamilyId(0)).or_default();
        let mut catalogue = Catalogue {
            db_uid,
            families: BTreeMap::new(),
            counters,
            shared: BTreeSet::new(),
            last_seqno: SeqNo(0),
        };
        for (id, tables) in found {
            let newest = tables.iter().map(|(_, entry)| entry.seqno_max).max();
            catalogue.last_seqno = catalogue.last_seqno.max(newest.unwrap_or_default());
            let version = self.merge(id, tables, &catalogue)?;
            let name = recovered_name(id);
            let stored = newest.unwrap_or_default();
            let family =
                FamilyState { name, region: None, version: Arc::new(version), stored, data: None };
            catalogue.families.insert(id, family);
        }
        Ok(catalogue)
    }

    fn is_log(&self, file: FileId) -> bool {
        let magic = FileKind::Wal.magic();
        let mut begin = vec![0; magic.len()];
        let handle = self.vfs.open(&table_file_name(&self.directory, file), OpenOptions::READ);
        handle.and_then(|handle| handle.read_at(&mut begin, 0, IoClass::Client)).is_ok()
            && begin == magic
    }

    fn read_directory(&self, file: FileId) -> Result<CompactionFile> {
        let path = table_file_name(&self.directory, file);
        let handle = self.vfs.open(&path, OpenOptions::READ);
        let handle = handle.map_err(|error| Error::io("open", &path, error))?;
        CompactionFile::open(&handle, &path, file)
    }

    /// Whether a table was dead, and its place in the file was given back: nothing is lost with it.
    fn was_given_back(&self, file: FileId, entry: &DirectoryEntry) -> bool {
        let path = table_file_name(&self.directory, file);
        let mut tail = [1; 64];
        let from = (entry.offset + entry.length).saturating_sub(tail.len() as u64);
        let handle = self.vfs.open(&path, OpenOptions::READ);
        handle.and_then(|handle| handle.read_at(&mut tail, from, IoClass::Client)).is_ok()
            && tail.iter().all(|byte| *byte == 0)
    }

    /// Writes the newest entry of each key into one run of the last level.
    fn merge(
        &mut self,
        id: ColumnFamilyId,
        mut tables: Vec<(FileId, DirectoryEntry)>,
        catalogue: &Catalogue,
    ) -> Result<Version> {
        tables.sort_by_key(|(file, _)| Reverse(*file));
        let cache = self.table_cache(catalogue.db_uid);
        let comparator = self.comparator_of_tables(&cache, &tables)?;
        let mut sources = Sources::new(&comparator);
        for (file, entry) in &tables {
            let meta = Arc::new(meta_of(*file, entry, &comparator));
            match cache.get(&meta, IoClass::Client) {
                Ok(table) => {
                    let options = TableIterOptions::compaction(IoClass::Client, 64 << 10);
                    let mut iter = table.iter(options);
                    if let Err(error) = iter.seek_to_first() {
                        self.report.losses.push(error);
                        while iter.skip_block().is_err() {}
                    }
                    sources.add(iter);
                }
                Err(_) if self.was_given_back(*file, entry) => {}
                Err(error) => self.report.losses.push(error),
            }
        }
        let levels = self.options.column_family.levels;
        let level = u8::try_from(levels.saturating_sub(1)).unwrap_or(u8::MAX);
        let mut output = self.output(id, level, catalogue.db_uid, &comparator);
        let mut newest = Newest::default();
        while let Some((source, internal, value)) = sources.newest() {
            if newest.keeps(internal) {
                self.add(&mut output, &catalogue.counters, internal, value)?;
            }
            if let Err(error) = sources.advance(source) {
                self.report.losses.push(error);
            }
        }
        let written = output.finish()?;
        self.report.tables_kept += written.len() as u64;
        let added =
            written.into_iter().map(|table| AddedTable { level, epoch: Epoch(0), table }).collect();
        let edit = VersionEdit { column_family: id, added, ..VersionEdit::default() };
        self.apply(&Version::new(id, LEVELS_MAX).with_comparator(comparator), &edit)
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
            catalogue.db_uid,
            catalogue.counters,
            catalogue.families,
            catalogue.shared,
            catalogue.last_seqno,
        );
        versions.roll()?;
        let directory = self.directory.clone();
        let unused = self.tables.iter().filter(|file| !live.contains(file));
        let mut away: Vec<PathBuf> =
            unused.map(|file| table_file_name(&directory, *file)).collect();
        away.extend(self.manifests.iter().map(|file| manifest_file_name(&directory, *file)));
        self.move_away(&directory, away)?;
        if self.logs_are_stored {
            let directory = self.wal_directory();
            let logs = self.logs.iter().map(|log| wal_file_name(&directory, *log)).collect();
            self.move_away(&directory, logs)?;
        }
        Ok(())
    }

    /// Moves files of `directory` into `lost` there.
    fn move_away(&mut self, directory: &Path, files: Vec<PathBuf>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let lost = directory.join("lost");
        self.vfs.create_dir_all(&lost).map_err(|e| Error::io("create", &lost, e))?;
        for path in files {
            let to = lost.join(path.file_name().unwrap_or_default());
            self.vfs.rename(&path, &to).map_err(|e| Error::io("move", &path, e))?;
            self.report.moved.push(to);
        }
        for directory in [directory, &lost] {
            self.vfs
                .sync_dir(directory)
                .map_err(|error| Error::io("sync directory", directory, error))?;
        }
        Ok(())
    }
}

/// What keys of the column family `name` are compared by, which is called `recorded`.
fn comparator_of(given: &Comparator, name: &str, recorded: &str) -> Result<Comparator> {
    match recorded {
        Comparator::BYTEWISE_NAME => Ok(Comparator::BYTEWISE),
        recorded if recorded == given.name() => Ok(given.clone()),
        recorded => Err(Error::InvalidArgument(format!(
            "comparator={}: keys of the column family {name} are compared by {recorded}",
            given.name()
        ))),
    }
}

fn recovered_name(id: ColumnFamilyId) -> String {
    match id {
        ColumnFamilyId(0) => crate::DEFAULT_COLUMN_FAMILY.to_owned(),
        other => format!("recovered-{}", other.0),
    }
}

fn read_whole(table: &Arc<Table>) -> Result<()> {
    let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, 256 << 10));
    iter.seek_to_first()?;
    while iter.valid() {
        iter.next()?;
    }
    Ok(())
}

fn meta_of(file: FileId, entry: &DirectoryEntry, comparator: &Comparator) -> TableMeta {
    TableMeta {
        id: entry.table,
        placement: sateen_control::version::Placement::Slice {
            file,
            offset: entry.offset,
            length: entry.length,
        },
        size_bytes: entry.length,
        smallest: comparator.key(&entry.smallest),
        largest: comparator.key(&entry.largest),
        seqno_min: entry.seqno_min,
        seqno_max: entry.seqno_max,
        entries: entry.entries,
        tombstones: entry.tombstones,
        merges: 0,
        ranges_applied: SeqNo(0),
        global_seqno: SeqNo(0),
        raw_bytes: entry.raw_bytes,
        tail_bytes: 0,
        sketch: None,
    }
}
