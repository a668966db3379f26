//! Checks of files: table files against the manifest, and CURRENT, OPTIONS, DEVICE and orphans.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::version::{Placement, TableMeta};
use sateen_control::{FileId, IoClass, LogNumber, SeqNo};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::names::shown_path;
use sateen_store::files::{
    CompactionFile, DirectoryEntry, FileName, HEADER_BYTES, PAGE_BYTES, checked_text, device_hint,
    manifest_file_name, table_file_name, wal_file_name,
};
use sateen_store::manifest::{ManifestReader, read_current};
use sateen_store::table::{Table, TableIterOptions, TableSource, ValueFiles};
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::Tail;

use super::{Checker, View, tables, wrong};
use crate::open::paths::Claimed;
use crate::options::Options;
use crate::tools::found::{described, is_empty, is_log, was_given_back};
use crate::tree::manifest_follower::ManifestFollower;
use crate::tree::version_set::{FindComparator, Replay};

/// Reads a manifest that CURRENT does not name.
pub(super) fn read_manifest(
    vfs: &dyn Vfs,
    path: &Path,
    number: FileId,
    comparators: &FindComparator,
) -> Result<View> {
    let mut reader = ManifestReader::open(vfs, path, number.0, None, 0)?;
    let mut replay = Replay::new(path, comparators);
    while let Some(edits) = reader.next()? {
        edits.into_iter().try_for_each(|edit| replay.apply(edit))?;
    }
    replay.check(reader.position())?;
    let truncated = || Error::corruption(path, reader.position(), CorruptionKind::Truncated);
    let db_uid = reader.db_uid().ok_or_else(truncated)?;
    Ok(View { db_uid, families: replay.families().clone() })
}

impl Checker<'_> {
    /// Returns the names in a directory that have the form of the engine's names.
    fn names(&self, directory: &Path) -> Result<Vec<FileName>> {
        let listing = self.vfs.list(directory);
        let listing = listing.map_err(|error| Error::io("list", directory, error))?;
        let names = listing.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(names.filter_map(FileName::parse).collect())
    }

    /// Returns the manifests in the directory, ascending.
    pub(super) fn manifests(&self) -> Result<Vec<FileId>> {
        let names = self.names(&self.directory)?.into_iter();
        let mut found: Vec<_> = names
            .filter_map(|name| if let FileName::Manifest(id) = name { Some(id) } else { None })
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the table files in the directory, ascending.
    pub(super) fn table_files(&self) -> Result<Vec<FileId>> {
        let names = self.names(&self.directory)?.into_iter();
        let mut found: Vec<_> = names
            .filter_map(|name| if let FileName::Table(id) = name { Some(id) } else { None })
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the WALs in their directory, ascending.
    pub(super) fn logs(&self) -> Result<Vec<LogNumber>> {
        let names = self.names(&self.wal_directory)?.into_iter();
        let mut found: Vec<_> = names
            .filter_map(|name| if let FileName::Wal(log) = name { Some(log) } else { None })
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the directory block of a table file; `None` if the file is empty, or a WAL with
    /// separated values.
    pub(super) fn directory_of(&self, file: FileId) -> Result<Option<CompactionFile>> {
        let (vfs, directory) = (self.vfs.as_ref(), &self.directory);
        if is_log(vfs, directory, file) || is_empty(vfs, directory, file) {
            return Ok(None);
        }
        described(vfs, directory, file).map(Some)
    }

    /// Returns true if the table's bytes were reclaimed.
    pub(super) fn was_given_back(&self, file: FileId, entry: &DirectoryEntry) -> bool {
        was_given_back(self.vfs.as_ref(), &self.directory, file, entry)
    }

    /// Reads a table that is known only from its file's directory.
    pub(super) fn read_described(
        &mut self,
        file: &CompactionFile,
        entry: &DirectoryEntry,
    ) -> Result<()> {
        let path = table_file_name(&self.directory, file.id);
        let handle = self.vfs.open(&path, OpenOptions::READ.direct(self.direct));
        let source = TableSource {
            file: handle.map_err(|error| Error::io("open", &path, error))?,
            path: path.as_path().into(),
            table: entry.table,
            file_id: file.id,
            db_uid: file.db_uid,
            offset: entry.offset,
            length: entry.length,
            tail_bytes: 0,
            global_seqno: SeqNo(0),
            comparator: None,
            image: Weak::new(),
        };
        let table = Table::open(source, IoClass::Client)?;
        let values = ValueFiles::in_directory(self.vfs.clone(), &self.directory, file.db_uid);
        let table = Arc::new(table.with_values(&Arc::new(values))?);
        let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, 1 << 20));
        iter.seek_to_first()?;
        self.report.tables += 1;
        while iter.valid() {
            self.report.entries += 1;
            iter.next()?;
        }
        self.report.bytes += entry.length;
        Ok(())
    }

    /// Checks the table files against what the manifest says of them.
    pub(super) fn check_table_files(
        &mut self,
        mut manifest: Option<&mut ManifestFollower>,
        view: &View,
    ) -> Result<()> {
        for (file, end) in view.files() {
            (self.goes_on)()?;
            let Err(error) = self.check_table_file(file, end, view) else { continue };
            let live = match manifest.as_deref_mut() {
                None => true,
                Some(manifest) => {
                    self.advance(manifest);
                    super::view_of(manifest).files().contains_key(&file)
                }
            };
            if live {
                self.problem(error);
            }
        }
        Ok(())
    }

    /// Checks that a file exists, is long enough, and has its tables where the manifest says. `end`
    /// is the end of its last table.
    fn check_table_file(&mut self, file: FileId, end: u64, view: &View) -> Result<()> {
        let path = self.vfs.place_of(&table_file_name(&self.directory, file));
        let handle = match self.vfs.open(&path, OpenOptions::READ) {
            Ok(handle) => handle,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::corruption(&path, 0, CorruptionKind::MissingFile));
            }
            Err(error) => return Err(Error::io("open", &path, error)),
        };
        let length = handle.len().map_err(|error| Error::io("stat", &path, error))?;
        if length < end {
            return Err(Error::corruption(&path, length, CorruptionKind::Truncated));
        }
        if let Some(bytes) = view.value_file(file) {
            let values_end = CompactionFile::open(&handle, &path, file)?.values_end;
            let page = PAGE_BYTES as u64;
            if values_end != Some((HEADER_BYTES + bytes).next_multiple_of(page)) {
                let what = "a value file does not have the bytes that the manifest says";
                return Err(wrong(&self.directory, file, 0, what));
            }
        }
        let is_whole = |table: &&Arc<TableMeta>| {
            table.placement.file() == file && !matches!(table.placement, Placement::WholeFile(_))
        };
        let mut tables = view.tables().filter(is_whole).peekable();
        if tables.peek().is_none() {
            return Ok(());
        }
        let directory = CompactionFile::open(&handle, &path, file)?;
        for table in tables {
            let extent = tables::extent(table);
            let listed = directory.tables.iter().find(|entry| entry.table == table.id);
            let fits = |entry: &DirectoryEntry| {
                (entry.offset, entry.offset + entry.length) == (extent.start, extent.end)
            };
            if !listed.is_some_and(fits) {
                let what = "a table is not where its file's directory says";
                return Err(wrong(&self.directory, file, extent.start, what));
            }
        }
        Ok(())
    }

    /// Checks OPTIONS and DEVICE, and looks for orphans: table files and manifests that nothing
    /// names.
    pub(super) fn check_small_files(
        &mut self,
        view: &View,
        manifest: Option<&ManifestFollower>,
    ) -> Result<()> {
        match Options::load_with(self.vfs.as_ref(), &self.directory, true) {
            Ok(_) => {}
            Err(Error::InvalidArgument(text)) => self.report.notes.push(text),
            Err(error) => self.problem(error),
        }
        match Claimed::read(self.vfs.as_ref(), &self.directory) {
            Ok(claimed) => self.report.notes.extend(claimed.unknown(&self.table_directories)),
            Err(error) => self.problem(error),
        }
        self.look_at_hint();
        for file in self.table_files()? {
            let path = table_file_name(&self.directory, file);
            let handle = self.vfs.open(&path, OpenOptions::READ);
            self.report.disk_bytes += handle.and_then(|handle| handle.allocated()).unwrap_or(0);
        }
        self.look_at_manifest(manifest);
        let Some(manifest) = manifest else { return Ok(()) };
        let current = read_current(self.vfs.as_ref(), &self.directory);
        let current = current.ok().flatten().map_or(manifest.number(), |now| now.manifest);
        let files: BTreeSet<FileId> = view.files().into_keys().collect();
        for name in self.names(&self.directory)? {
            let named = match name {
                FileName::Table(file) => files.contains(&file),
                FileName::Manifest(id) => id.0 == current || id.0 == manifest.number(),
                _ => true,
            };
            if !named {
                self.report.orphans.push(self.vfs.place_of(&name.path(&self.directory)));
            }
        }
        Ok(())
    }

    /// Notes a damaged DEVICE. That file is only a hint, and is never synced, so damage is
    /// harmless.
    fn look_at_hint(&mut self) {
        let path = FileName::Device.path(&self.directory);
        if checked_text::read(self.vfs.as_ref(), &path).is_ok()
            && device_hint::read(self.vfs.as_ref(), &self.directory).is_none()
        {
            let text = format!("{}: damaged; the device will be measured again", shown_path(path));
            self.report.notes.push(text);
        }
    }

    /// Notes a torn tail of the manifest.
    fn look_at_manifest(&mut self, manifest: Option<&ManifestFollower>) {
        if let Some(manifest) = manifest
            && let Some(Tail::Torn { offset, bytes }) = manifest.tail()
        {
            let path = manifest_file_name(&self.directory, FileId(manifest.number()));
            self.note_torn(&path, offset, bytes);
        }
    }

    /// Notes a torn tail, which is no damage.
    pub(super) fn note_torn(&mut self, path: &Path, offset: u64, bytes: u64) {
        let text = format!(
            "{}: the {bytes} bytes from offset {offset} on are no record: a write that a crash \
             interrupted before it was synced, or one in progress",
            shown_path(path)
        );
        self.report.notes.push(text);
    }

    /// Returns the error of a WAL that is needed and missing.
    pub(super) fn missing_log(&self, log: LogNumber) -> Error {
        let path = wal_file_name(&self.wal_directory, log);
        Error::corruption(&path, 0, CorruptionKind::MissingFile)
    }
}
