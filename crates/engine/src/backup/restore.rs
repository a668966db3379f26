//! Restores and verifies a backup.
//!
//! 1. [`restore`] looks whether all objects are there, before it writes anything.
//! 2. `prepare` creates the directory, locks it as an open does, and writes the file RESTORING.
//!    `create_logs` creates the directory of the WALs, which may be in it.
//! 3. `Restoration::file` writes each file. Every MiB is verified before it is written.
//! 4. Without WALs, `without_wal` writes a manifest that needs none.
//! 5. `Restoration::finish` makes all names durable, and writes CURRENT last. Then the directory is
//!    a database, and RESTORING goes. The lock is held until then.
//! 6. After a failure, `remove_all` removes the directory.
//!
//! What must stay true:
//!
//! - Nothing is written that was not verified.
//! - Without CURRENT, the directory cannot be opened, and RESTORING keeps it from being repaired.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::VersionEdit;
use sateen_control::{FileId, IoClass, LogNumber};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::base::random::random_uid;
use sateen_store::files::replace::sync_directory;
use sateen_store::files::{FileName, RESTORING, refuse_own_name};
use sateen_store::manifest::{Current, Identity, ManifestReader, ManifestWriter, write_current};
use sateen_store::vfs::{MemVfs, OpenOptions, Vfs, VfsFile, VfsLock};

use super::options::{RestoreOptions, VerifyBackupOptions, VerifyBackupReport};
use super::pacer::{Pacer, STEP_BYTES};
use super::record::{Object, Piece, Record, RestoredFile, SUM_BYTES};
use super::store::{BackupReader, BackupStore};
use crate::open::{LOCK_FILE, check_parent, interrupted_restore, sync_ancestors, take_lock};
use crate::options::paths::absolute;

/// The I/O class of what is written, the lowest of all.
const CLASS: IoClass = IoClass::Deep(u8::MAX);
/// The content of RESTORING.
const MARKER: &[u8] = b"sateen restoring\n";

/// An object of a backup that is being read.
struct OpenObject<'a> {
    object: &'a Object,
    reader: Box<dyn BackupReader>,
    path: PathBuf,
}

impl<'a> OpenObject<'a> {
    /// Opens an object. Fails if it does not have the length that the record says.
    fn open(
        store: &dyn BackupStore,
        record: &Record,
        object: &'a Object,
    ) -> Result<OpenObject<'a>> {
        let key = object.key(record.id);
        let (reader, path) = (store.open(&key)?, store.location(&key));
        let (has, wants) = (reader.bytes()?, object.identity.length);
        if has < wants {
            return Err(Error::corruption(&path, has, CorruptionKind::Truncated));
        }
        if has > wants {
            let kind = CorruptionKind::Inconsistent("bytes behind the end of an object");
            return Err(Error::corruption(&path, wants, kind));
        }
        Ok(OpenObject { object, reader, path })
    }

    /// Reads part `number` into `buffer` and verifies it.
    fn part<'b>(
        &mut self,
        pacer: &mut Pacer<'_>,
        number: u64,
        buffer: &'b mut [u8],
    ) -> Result<&'b [u8]> {
        let begin = number * SUM_BYTES;
        let length = self.object.identity.length.saturating_sub(begin).min(SUM_BYTES);
        let buffer = buffer.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
        let mut at = begin;
        for step in buffer.chunks_mut(STEP_BYTES) {
            pacer.turn()?;
            let got = self.reader.read_at(step, at)?;
            if got < step.len() {
                let end = at + got as u64;
                return Err(Error::corruption(&self.path, end, CorruptionKind::Truncated));
            }
            pacer.moved(got as u64, 0, got as u64);
            at += got as u64;
        }
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if self.object.sums.get(index) != Some(&Object::sum(number, buffer)) {
            return Err(Error::corruption(&self.path, begin, CorruptionKind::Checksum));
        }
        Ok(buffer)
    }
}

/// Verifies every byte of a backup.
pub(super) fn verify(
    store: &dyn BackupStore,
    record: &Record,
    options: &VerifyBackupOptions,
) -> Result<VerifyBackupReport> {
    let listener = options.listener.as_deref();
    let mut pacer = Pacer::new(None, "the verification", options.rate, listener);
    pacer.expect(record.bytes());
    let mut report = VerifyBackupReport::default();
    let mut buffer = vec![0; usize::try_from(SUM_BYTES).unwrap_or(0)];
    for object in &record.objects {
        let (problems, unreadable) = (report.problems.len(), report.unreadable.len());
        let mut found = |error: Error| match error {
            Error::Cancelled(_) => Err(error),
            error if error.is_corruption() => {
                report.problems.push(error);
                Ok(())
            }
            error => {
                report.unreadable.push(error);
                Ok(())
            }
        };
        match OpenObject::open(store, record, object) {
            Ok(mut open) => {
                for number in 0..object.sums.len() as u64 {
                    if let Err(error) = open.part(&mut pacer, number, &mut buffer) {
                        found(error)?;
                    }
                }
            }
            Err(error) => found(error)?,
        }
        if (report.problems.len(), report.unreadable.len()) == (problems, unreadable) {
            report.objects += 1;
            report.bytes += object.identity.length;
        }
    }
    Ok(report)
}

/// Restores a backup into the directory `path` of `vfs`.
pub(super) fn restore(
    store: &dyn BackupStore,
    record: &Record,
    vfs: &dyn Vfs,
    path: &Path,
    options: &RestoreOptions,
) -> Result<()> {
    let logs = options.wal_dir.as_deref().map(|directory| log_directory(path, directory));
    let logs = logs.as_deref().filter(|directory| *directory != path);
    let inside = logs.filter(|directory| directory.starts_with(path));
    for directory in logs.filter(|_| inside.is_none()).into_iter().chain([path]) {
        check_parent(vfs, directory)?;
    }
    for object in &record.objects {
        OpenObject::open(store, record, object)?;
    }
    if let Some(directory) = logs.filter(|_| inside.is_none()) {
        refuse_logs(vfs, directory)?;
    }
    let _lock = prepare(vfs, path, inside)?;
    if let Some(directory) = logs
        && let Err(error) = create_logs(vfs, directory)
    {
        remove_all(vfs, path, inside);
        return Err(error);
    }
    let listener = options.listener.as_deref();
    let mut pacer = Pacer::new(None, "the restore", options.rate, listener);
    pacer.expect(record.bytes());
    let (logs, made) = (logs.unwrap_or(path), Vec::new());
    let mut restoration = Restoration { store, record, vfs, path, logs, made, pacer };
    let restored = restoration.run(options.wal);
    if restored.is_err() {
        // WALs that are elsewhere go first: RESTORING stays as long as anything does.
        if restoration.made.iter().all(|log| vfs.remove(log).is_ok()) {
            remove_all(vfs, path, inside);
        }
    }
    restored
}

/// Returns the directory of the WALs, below `path` if it is there.
fn log_directory(path: &Path, directory: &Path) -> PathBuf {
    match absolute(directory).strip_prefix(absolute(path)) {
        Ok(below) => path.components().chain(below.components()).collect(),
        Err(_) => directory.to_owned(),
    }
}

/// Creates a directory for WALs alone.
fn create_logs(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    vfs.create_dir_all(directory).map_err(|e| Error::io("create", directory, e))?;
    sync_ancestors(vfs, directory)
}

/// Fails if there are WALs in a directory for WALs alone, which may be missing.
fn refuse_logs(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    if !vfs.exists(directory).map_err(|e| Error::io("look for", directory, e))? {
        return Ok(());
    }
    let listing = vfs.list(directory).map_err(|e| Error::io("list", directory, e))?;
    let names = listing.iter().filter_map(|path| path.file_name()?.to_str());
    let mut logs = names.filter(|name| matches!(FileName::parse(name), Some(FileName::Wal(_))));
    match logs.next() {
        Some(log) => {
            let text = format!("{} has a WAL already, {log}", shown_path(directory));
            Err(Error::InvalidArgument(text))
        }
        None => Ok(()),
    }
}

/// Creates the directory with RESTORING in it, and returns its lock. Takes over what an interrupted
/// restore left, also in the directory of the WALs if that is `inside`.
fn prepare(vfs: &dyn Vfs, path: &Path, inside: Option<&Path>) -> Result<Arc<dyn VfsLock>> {
    refuse_own_name(vfs, path)?;
    // Before the lock file is made: the directory may be somebody else's.
    left_behind(vfs, path, inside)?;
    vfs.create_dir_all(path).map_err(|e| Error::io("create", path, e))?;
    let lock = take_lock(vfs, path)?;
    // Another restore may have come to its end meanwhile.
    for name in left_behind(vfs, path, inside)? {
        vfs.remove(&name).map_err(|e| Error::io("remove", &name, e))?;
    }
    let begun = write(vfs, &path.join(RESTORING), MARKER)
        .and_then(|()| sync_directory(vfs, path))
        .and_then(|()| sync_ancestors(vfs, path));
    if begun.is_err() {
        remove_all(vfs, path, None);
    }
    begun.map(|()| lock)
}

/// Returns the files that an interrupted restore left, without the lock file. Fails if something
/// else is in the directory. The directory `inside` for WALs may be there; it is empty, or has only
/// WALs of the interrupted restore.
fn left_behind(vfs: &dyn Vfs, path: &Path, inside: Option<&Path>) -> Result<Vec<PathBuf>> {
    if !vfs.exists(path).map_err(|e| Error::io("look for", path, e))? {
        return Ok(Vec::new());
    }
    let mut listing = vfs.list(path).map_err(|e| Error::io("list", path, e))?;
    let interrupted = interrupted_restore(&listing).is_some();
    listing.retain(|path| path.file_name().is_none_or(|name| name != LOCK_FILE));
    let mut logs = Vec::new();
    if let Some(inside) = inside
        && let Some(first) = first_below(path, inside)
        && listing.iter().any(|name| name.file_name() == first.file_name())
    {
        let found = logs_alone(vfs, &first, inside)?;
        if let Some(found) = found.filter(|found| found.is_empty() || interrupted) {
            listing.retain(|name| name.file_name() != first.file_name());
            logs = found;
        }
    }
    if !listing.is_empty() && !interrupted {
        let text = format!("{} exists already and is not empty", shown_path(path));
        return Err(Error::InvalidArgument(text));
    }
    logs.extend(listing.iter().map(|name| path.join(name.file_name().unwrap_or_default())));
    Ok(logs)
}

/// Returns the directory directly in `path` on the way to `inside`.
fn first_below(path: &Path, inside: &Path) -> Option<PathBuf> {
    let first = inside.strip_prefix(path).ok()?.components().next()?;
    Some(path.join(first))
}

/// Returns the WALs in the directory `logs`, which is `first` or in it. `None` if something else is
/// there, or on the way.
fn logs_alone(vfs: &dyn Vfs, first: &Path, logs: &Path) -> Result<Option<Vec<PathBuf>>> {
    let mut directory = first.to_owned();
    loop {
        let listing = match vfs.list(&directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(Error::io("list", &directory, error)),
        };
        let names: Vec<_> = listing.iter().filter_map(|name| name.file_name()).collect();
        if directory == logs {
            let is_log = |name: &&OsStr| {
                matches!(name.to_str().and_then(FileName::parse), Some(FileName::Wal(_)))
            };
            let found = names.iter().map(|name| directory.join(name)).collect();
            return Ok(names.iter().all(is_log).then_some(found));
        }
        let Some(next) = first_below(&directory, logs) else { return Ok(None) };
        match names.as_slice() {
            [] => return Ok(Some(Vec::new())),
            [name] if Some(*name) == next.file_name() => directory = next,
            _ => return Ok(None),
        }
    }
}

/// Removes an unfinished restore, whose lock the caller holds, with the directory `inside` for
/// WALs. Best effort: what stays is no database.
fn remove_all(vfs: &dyn Vfs, path: &Path, inside: Option<&Path>) {
    let mut directory = inside;
    while let Some(next) = directory.filter(|directory| *directory != path) {
        if vfs.exists(next).unwrap_or(true) && vfs.remove_dir(next).is_err() {
            return;
        }
        directory = next.parent();
    }
    let names = vfs.list(path).unwrap_or_default();
    let mut names: Vec<_> = names.iter().filter_map(|name| name.file_name()).collect();
    // The marker goes last, but for the lock, which keeps other restores away until then.
    names.sort_by_key(|name| (*name == LOCK_FILE, *name == RESTORING));
    // Without CURRENT nothing of the rest is a database.
    names.sort_by_key(|name| *name != FileName::Current.text().as_str());
    for name in names {
        if vfs.remove(&path.join(name)).is_err() {
            return;
        }
    }
    let _stays = vfs.remove_dir(path);
}

/// Writes a small file durably.
fn write(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = vfs.open(path, OpenOptions::CREATE).map_err(|e| Error::io("create", path, e))?;
    file.write_at(bytes, 0, CLASS).map_err(|e| Error::io("write", path, e))?;
    file.sync_data(CLASS).map_err(|e| Error::io("sync", path, e))
}

/// A restore that is under way.
struct Restoration<'a> {
    store: &'a dyn BackupStore,
    record: &'a Record,
    vfs: &'a dyn Vfs,
    path: &'a Path,
    /// The directory of the WALs.
    logs: &'a Path,
    /// WALs in a directory of their own.
    made: Vec<PathBuf>,
    pacer: Pacer<'a>,
}

impl Restoration<'_> {
    fn run(&mut self, wal: bool) -> Result<()> {
        let mut synced = self.record.manifest_synced;
        for file in &self.record.files {
            match file.name {
                FileName::Wal(_) if !wal => {}
                FileName::Manifest(_) if !wal => synced = self.without_wal(file)?,
                name => {
                    let (path, to) = self.create(name)?;
                    self.file(file, &to, &path)?;
                }
            }
        }
        self.finish(synced)
    }

    /// Makes a file, which must not be there yet.
    fn create(&mut self, name: FileName) -> Result<(PathBuf, Arc<dyn VfsFile>)> {
        let elsewhere = matches!(name, FileName::Wal(_)) && self.logs != self.path;
        let path = name.path(if elsewhere { self.logs } else { self.path });
        let open = self.vfs.open(&path, OpenOptions::CREATE);
        let file = open.map_err(|error| Error::io("create", &path, error))?;
        if elsewhere {
            self.made.push(path.clone());
        }
        Ok((path, file))
    }

    /// Writes the pieces of a file and syncs it.
    fn file(&mut self, file: &RestoredFile, to: &Arc<dyn VfsFile>, path: &Path) -> Result<()> {
        for piece in &file.pieces {
            self.piece(piece, to, path)?;
        }
        to.sync_data(CLASS).map_err(|error| Error::io("sync", path, error))
    }

    /// Writes the bytes of a piece. Each part of the object is verified first.
    fn piece(&mut self, piece: &Piece, to: &Arc<dyn VfsFile>, path: &Path) -> Result<()> {
        let Some(object) = self.record.objects.get(piece.object) else { return Ok(()) };
        let mut open = OpenObject::open(self.store, self.record, object)?;
        let mut buffer =
            vec![0; usize::try_from(SUM_BYTES.min(object.identity.length)).unwrap_or(0)];
        let end = piece.object_at + piece.length;
        let mut from = piece.object_at;
        while from < end {
            let number = from / SUM_BYTES;
            let part = open.part(&mut self.pacer, number, &mut buffer)?;
            let begin = number * SUM_BYTES;
            let until = end.min(begin + SUM_BYTES);
            let range = |offset: u64| usize::try_from(offset - begin).unwrap_or(usize::MAX);
            let bytes = part.get(range(from)..range(until)).unwrap_or_default();
            let at = piece.at + (from - piece.object_at);
            to.write_at(bytes, at, CLASS).map_err(|error| Error::io("write", path, error))?;
            drop(to.start_writeback(at, bytes.len() as u64));
            from = until;
        }
        Ok(())
    }

    /// Writes a manifest that needs no WAL of the backup, and an empty WAL, which the manifest
    /// names. Returns how much of the manifest is durable.
    fn without_wal(&mut self, file: &RestoredFile) -> Result<u64> {
        let (memory, name) = (MemVfs::new(), file.name.path(Path::new("/")));
        let open = memory.open(&name, OpenOptions::CREATE);
        let read = open.map_err(|error| Error::io("create", &name, error))?;
        self.file(file, &read, &name)?;
        let Record { uid, manifest, manifest_synced, .. } = *self.record;
        let mut reader =
            ManifestReader::open(&memory, &name, manifest, Some(uid), manifest_synced)?;
        let mut edits: Vec<VersionEdit> = Vec::new();
        while let Some(next) = reader.next()? {
            edits.extend(next);
        }
        let next = edits.iter().filter_map(|edit| edit.next_file).max().unwrap_or(FileId(0));
        let log = LogNumber(next.0.max(manifest + 1));
        for edit in &mut edits {
            edit.log_number = edit.log_number.map(|_| log);
            edit.next_file = edit.next_file.map(|_| FileId(log.0 + 1));
            edit.durable_log = None;
        }
        let path = file.name.path(self.path);
        let mut writer = ManifestWriter::create(self.vfs, &path, manifest, uid)?;
        for edit in &edits {
            writer.append(std::slice::from_ref(edit))?;
        }
        writer.end_snapshot()?;
        let synced = writer.sync()?;
        let (path, log) = self.create(FileName::Wal(log))?;
        log.sync_data(CLASS).map_err(|error| Error::io("sync", &path, error))?;
        Ok(synced)
    }

    /// Makes the directory a database.
    fn finish(&mut self, synced: u64) -> Result<()> {
        self.pacer.check()?;
        sync_directory(self.vfs, self.path)?;
        if self.logs != self.path {
            sync_directory(self.vfs, self.logs)?;
        }
        // It continues with the numbers of its source, but is another database.
        let identity = Identity { uid: self.record.uid, copy: random_uid() };
        let current = Current { manifest: self.record.manifest, identity, synced };
        write_current(self.vfs, self.path, &current)?;
        let marker = self.path.join(RESTORING);
        self.vfs.remove(&marker).map_err(|error| Error::io("remove", &marker, error))?;
        sync_directory(self.vfs, self.path)
    }
}
