//! Reads what is left of damaged tables.
//!
//! 1. [`Repair::salvage_table`] opens the table and reads it block by block (`salvage_blocks`), so
//!    that a damaged block costs only its own entries.
//! 2. A table that cannot be opened is walked block after block, without its index
//!    (`walk_through`).
//! 3. [`Repair::tables_of`] lists the tables of a file. If its directory is damaged, it searches
//!    the file for tables.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use sateen_control::version::{Placement, TableMeta};
use sateen_control::{ColumnFamilyId, Comparator, FileId, IoClass, SeqNo, UserKey};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::names::shown_path;
use sateen_store::files::counters::Counters;
use sateen_store::files::{DirectoryEntry, table_file_name};
use sateen_store::table::walk::{self, Values};
use sateen_store::table::{Table, TableIter, TableIterOptions, TableSource, ValueFiles};
use sateen_store::vfs::OpenOptions;

use super::Repair;
use crate::background::output::Output;
use crate::tools::found::{described, is_empty, is_log};

/// Bytes of one read of a table, if it is not damaged.
const CHUNK_BYTES: usize = 256 << 10;

/// A range of keys in which entries of a damaged place may be lost. A key in it may be missing, or
/// have an older value. Keys without an entry in the damaged place are not affected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRange {
    /// The column family.
    pub column_family: String,
    /// The damaged file, with the name that it had.
    pub file: PathBuf,
    /// The first key that may be affected.
    pub first: Vec<u8>,
    /// The last key that may be affected.
    pub last: Vec<u8>,
}

impl fmt::Display for LostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LostRange { column_family, file, first, last } = self;
        let (first, last) = (first.escape_ascii(), last.escape_ascii());
        let file = shown_path(file);
        write!(f, "keys of {column_family} from \"{first}\" to \"{last}\", of {file}")
    }
}

/// A table's place in its file, and its bounds.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) source: TableSource,
    pub(super) smallest: UserKey,
    pub(super) largest: UserKey,
    /// The WAL with its separated values, if it has any.
    pub(super) values: Option<FileId>,
    /// Whether its values are encoded, if that is known.
    pub(super) separated: Option<bool>,
}

impl Repair {
    /// Returns the place of a table that the manifest names.
    pub(super) fn place_of(&self, db_uid: u64, meta: &TableMeta) -> Result<Place> {
        let (offset, length) = match meta.placement {
            Placement::Slice { offset, length, .. } | Placement::Log { offset, length, .. } => {
                (offset, length)
            }
            Placement::WholeFile(_) => (0, meta.size_bytes),
        };
        let comparator = meta.smallest.comparator().clone();
        let file = self.source_of(db_uid, meta.placement.file())?;
        let source = TableSource {
            table: meta.id,
            offset,
            length,
            global_seqno: meta.global_seqno,
            comparator: Some(comparator),
            image: Weak::new(),
            ..file
        };
        let (smallest, largest) = (meta.smallest.clone(), meta.largest.clone());
        let values = meta.placement.values();
        let separated = Some(values.is_some() || meta.values.encoded);
        Ok(Place { source, smallest, largest, values, separated })
    }

    /// Returns a file as a whole.
    pub(super) fn source_of(&self, db_uid: u64, file_id: FileId) -> Result<TableSource> {
        let path = table_file_name(&self.directory, file_id);
        let file = self.vfs.open(&path, OpenOptions::READ).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                let kind = sateen_store::base::error::CorruptionKind::MissingFile;
                return Error::corruption(&path, 0, kind);
            }
            Error::io("open", &path, source)
        })?;
        let length = file.len().map_err(|error| Error::io("stat", &path, error))?;
        Ok(TableSource {
            file,
            path: path.as_path().into(),
            table: sateen_control::TableId(0),
            file_id,
            db_uid,
            offset: 0,
            length,
            tail_bytes: 0,
            global_seqno: SeqNo(0),
            comparator: None,
            image: Weak::new(),
        })
    }

    /// Opens a table. A damaged header of its file, or an unreadable file of its values, is no
    /// error.
    pub(super) fn open_table(&self, place: &Place) -> Result<Arc<Table>> {
        let table = Table::open(place.source.clone(), IoClass::Client)?;
        match table.with_values(&self.values_of(place)) {
            Ok(table) => Ok(Arc::new(table)),
            Err(_) => Ok(Arc::new(Table::open(place.source.clone(), IoClass::Client)?)),
        }
    }

    /// Returns the files with separated values of a table.
    fn values_of(&self, place: &Place) -> Arc<ValueFiles> {
        let (vfs, uid) = (self.vfs.clone(), place.source.db_uid);
        Arc::new(ValueFiles::in_directory(vfs, &self.directory, uid))
    }

    /// Writes all readable entries of a damaged table to `output`.
    pub(super) fn salvage_table(
        &mut self,
        family: &str,
        place: &Place,
        output: &mut Output,
        counters: &Counters,
    ) -> Result<()> {
        match self.open_table(place) {
            Ok(table) => self.salvage_blocks(family, place, &table, output, counters),
            Err(_) => self.walk_through(family, place, output, counters),
        }
    }

    /// Reads a table block by block, so that a damaged block does not cost its neighbours.
    fn salvage_blocks(
        &mut self,
        family: &str,
        place: &Place,
        table: &Arc<Table>,
        output: &mut Output,
        counters: &Counters,
    ) -> Result<()> {
        let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, 1));
        let mut last: Option<Vec<u8>> = None;
        let mut lost = false;
        let mut moved = iter.seek_to_first();
        loop {
            match moved {
                Err(error) => {
                    self.loss(error)?;
                    lost = true;
                    // A separated value that cannot be read costs only its key.
                    moved = match step_over(&mut iter) {
                        Ok(false) => break,
                        stepped => stepped.map(drop),
                    };
                }
                Ok(()) if !iter.valid() => break,
                Ok(()) => {
                    if std::mem::take(&mut lost) {
                        self.lost_range(family, place, last.as_deref(), Some(iter.key()));
                    }
                    output.add(counters, iter.key(), iter.value())?;
                    self.report.entries_salvaged += 1;
                    last = Some(iter.key().to_vec());
                    moved = iter.next();
                }
            }
        }
        if lost {
            self.lost_range(family, place, last.as_deref(), None);
        }
        Ok(())
    }

    /// Reads a table whose index cannot be read, block after block.
    fn walk_through(
        &mut self,
        family: &str,
        place: &Place,
        output: &mut Output,
        counters: &Counters,
    ) -> Result<()> {
        let separated = match walk::separates(&place.source).or(place.separated) {
            Some(says) => says,
            // The stored bytes might be references to values. To take them for values would be
            // worse than to lose them.
            None => {
                self.lost_range(family, place, None, None);
                return Ok(());
            }
        };
        let values = match separated {
            false => Values::Here,
            true => Values::separated(&self.values_of(place), place.values),
        };
        let (mut last, mut salvaged): (Option<Vec<u8>>, u64) = (None, 0);
        let mut without_value = Vec::new();
        walk::walk(&place.source, &values, |internal, value| {
            match value {
                Some(value) => {
                    output.add(counters, internal, value)?;
                    salvaged += 1;
                }
                None => without_value.push(key::user_key(internal).to_vec()),
            }
            last = Some(internal.to_vec());
            Ok(())
        })?;
        self.report.entries_salvaged += salvaged;
        for key in without_value {
            self.lost_key(family, place, &key);
        }
        let end = last.as_deref().map(key::user_key);
        if end.is_none_or(|end| place.largest != *end) {
            self.lost_range(family, place, last.as_deref(), None);
        }
        Ok(())
    }

    /// Reports one key as lost.
    fn lost_key(&mut self, family: &str, place: &Place, key: &[u8]) {
        self.lose_keys(family, &place.source.path, (key.to_vec(), key.to_vec()));
    }

    /// Reports the keys from `first` to `last`, both inclusive, as possibly lost.
    fn lose_keys(&mut self, family: &str, file: &Path, (first, last): (Vec<u8>, Vec<u8>)) {
        let (column_family, file) = (family.to_owned(), file.to_owned());
        self.report.lost_ranges.push(LostRange { column_family, file, first, last });
    }

    /// Reports all keys of a table as lost, because its file cannot be opened.
    pub(super) fn lose_table(
        &mut self,
        family: &str,
        file: FileId,
        entry: &DirectoryEntry,
        error: Error,
    ) -> Result<()> {
        self.loss(error)?;
        self.damaged.insert(file);
        let path = table_file_name(&self.directory, file);
        self.lose_keys(family, &path, (entry.smallest.clone(), entry.largest.clone()));
        Ok(())
    }

    /// Reports the keys between two entries of a table as possibly lost; `None` stands for its
    /// bound.
    pub(super) fn lost_range(
        &mut self,
        family: &str,
        place: &Place,
        before: Option<&[u8]>,
        behind: Option<&[u8]>,
    ) {
        let or = |internal: Option<&[u8]>, bound: &UserKey| {
            internal.map_or_else(|| bound.bytes().to_vec(), |key| key::user_key(key).to_vec())
        };
        let keys = (or(before, &place.smallest), or(behind, &place.largest));
        self.lose_keys(family, &place.source.path, keys);
    }

    /// Returns the tables of a file. If its directory cannot be read, notes that and searches for
    /// them.
    pub(super) fn tables_of(
        &mut self,
        db_uid: Option<u64>,
        file: FileId,
    ) -> Result<Vec<DirectoryEntry>> {
        // A WAL with separated values is read through the tables that refer to it.
        if is_log(self.vfs.as_ref(), &self.directory, file) {
            return Ok(Vec::new());
        }
        if is_empty(self.vfs.as_ref(), &self.directory, file) {
            let path = table_file_name(&self.directory, file);
            self.note(format!(
                "{}: empty: preallocated, or nothing of it reached the disk",
                shown_path(path)
            ));
            return Ok(Vec::new());
        }
        let error = match described(self.vfs.as_ref(), &self.directory, file) {
            Ok(described) => return Ok(described.tables),
            Err(error) => error,
        };
        self.loss(error)?;
        let (Some(db_uid), true) = (db_uid, self.tables.contains(&file)) else {
            return Ok(Vec::new());
        };
        let Ok(source) = self.source_of(db_uid, file) else { return Ok(Vec::new()) };
        let found = walk::find_tables(&source);
        let path = table_file_name(&self.directory, file);
        self.note(format!(
            "{}: {} tables were found although its directory cannot be read",
            shown_path(path),
            found.len()
        ));
        Ok(found)
    }

    /// Returns the uid of the database in the first file whose directory can be read.
    pub(super) fn uid_of_files(&self) -> Option<u64> {
        self.tables.iter().find_map(|file| {
            Some(described(self.vfs.as_ref(), &self.directory, *file).ok()?.db_uid)
        })
    }

    /// Returns the comparator of a column family that only its tables can tell.
    pub(super) fn comparator_of_tables(
        &self,
        db_uid: u64,
        tables: &[(FileId, DirectoryEntry)],
    ) -> Result<Comparator> {
        let mut refused = None;
        for (file, entry) in tables {
            for comparator in self.comparators() {
                let Ok(place) = self.place_found(db_uid, *file, entry, &comparator) else { break };
                match Table::open(place.source, IoClass::Client) {
                    Ok(_) => return Ok(comparator),
                    Err(error @ Error::InvalidArgument(_)) => refused = Some(error),
                    Err(_) => break,
                }
            }
        }
        refused.map_or(Ok(Comparator::BYTEWISE), Err)
    }

    /// Returns the place of a table that a file's directory lists.
    pub(super) fn place_found(
        &self,
        db_uid: u64,
        file: FileId,
        entry: &DirectoryEntry,
        comparator: &Comparator,
    ) -> Result<Place> {
        let known = self.remembered.table(entry.table);
        let source = TableSource {
            table: entry.table,
            offset: entry.offset,
            length: entry.length,
            global_seqno: known.map_or(SeqNo(0), |known| known.global_seqno),
            comparator: Some(comparator.clone()),
            image: Weak::new(),
            ..self.source_of(db_uid, file)?
        };
        Ok(Place {
            source,
            smallest: comparator.key(&entry.smallest),
            largest: comparator.key(&entry.largest),
            values: known.and_then(|known| known.values),
            separated: known.map(|known| known.values.is_some() || known.encoded),
        })
    }

    /// Returns the name of a column family, or a new one if it is lost.
    pub(super) fn name_of(&self, id: ColumnFamilyId) -> String {
        let known = self.remembered.families.get(&id).map(|family| family.name.clone());
        known.filter(|name| !name.is_empty()).unwrap_or_else(|| super::recovered_name(id))
    }
}

/// Moves behind an entry or block that cannot be read. Returns false at the end.
pub(super) fn step_over(iter: &mut TableIter) -> Result<bool> {
    if iter.valid() {
        return iter.next().map(|()| iter.valid());
    }
    iter.skip_block()
}

/// Moves behind everything that is damaged. It also stops at an error of the environment, for which
/// the caller checks with `everything_was_read`.
pub(super) fn step_to_readable(iter: &mut TableIter) {
    while let Err(error) = step_over(iter) {
        if error.is_environment() {
            return;
        }
    }
}

/// Reads a table to its end.
pub(super) fn read_whole(table: &Arc<Table>) -> Result<()> {
    let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, CHUNK_BYTES));
    iter.seek_to_first()?;
    while iter.valid() {
        iter.next()?;
    }
    Ok(())
}
