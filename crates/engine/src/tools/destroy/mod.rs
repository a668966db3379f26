//! Removes a database: its own files, wherever they are, and no others.
//!
//! 1. [`Destroyer::look`] reads the first page of every file with one of the engine's names. It
//!    refuses another program's database. A directory without a database stays as it is.
//! 2. The lock is taken, and `look` is repeated under it.
//! 3. [`Destroyer::remove_elsewhere`] removes the database's tables from the directories of `paths`
//!    and `family_paths`, and its WALs from its `wal_dir`.
//! 4. [`Destroyer::remove_files`] removes what a repair kept in `lost`, then tables and WALs, then
//!    the manifests, then CURRENT, whose uid step 3 needs, and LOCK at last.
//! 5. The directory is removed if it is empty.
//!
//! What must stay true:
//!
//! - A file is removed only if its name and its content say that it belongs to this database.
//! - An error of the file system is returned, and is never taken for an answer.
//! - A second call goes on where an interrupted one has ended.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use content::{Content, look_at, own_name};
use sateen_control::FileId;
use sateen_store::base::error::{Error, Result};
use sateen_store::files::paths::{Directories, OWNER, Owner, TEMPORARY_OWNER, whose};
use sateen_store::files::replace::sync_directory;
use sateen_store::files::{FileName, LOST, checked_text};
use sateen_store::manifest::{ManifestReader, foreign_reason, read_current, recognise_foreign};
use sateen_store::vfs::{PosixVfs, Vfs};

use crate::open::{LOCK_FILE, sync_ancestors, take_lock};
use crate::options::Options;
use crate::options::paths::{absolute, check_named};

mod content;

/// What [`destroy`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestroyReport {
    /// The files that were removed.
    pub removed: Vec<PathBuf>,
    /// Files and directories that are left, because they are not part of the database.
    pub left: Vec<PathBuf>,
    /// True if the directory itself was removed. It stays if it is not empty, if the path is a
    /// symbolic link to it, or if the process may not remove it.
    pub directory_removed: bool,
}

/// Removes the database in the directory `path`, whole or damaged. The database must not be open.
///
/// It removes only files that are part of the database by name and by content: tables, WALs,
/// manifests, CURRENT, OPTIONS, DEVICE, LOCK, and what a repair has put into the directory `lost`.
/// It also removes the database's WALs from [`Options::wal_dir`] and from the `wal_dir` of the
/// stored options, and its tables from the directories that the stored options name; those of
/// other databases stay. All other files stay, and so does a directory
/// that has any. If there is no database in `path`, nothing is removed but an empty directory.
///
/// ```
/// use sateen::{Db, Options};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("library");
/// Db::open(&path, Options::default())?.close()?;
/// assert!(sateen::destroy(&path, &Options::default())?.directory_removed);
/// assert!(!path.exists());
/// # Ok::<(), sateen::Error>(())
/// ```
///
/// # Errors
/// `Locked` if the database is open, and `IncompatibleDirectory` if it is another program's; then
/// nothing is removed. `Io` if a file cannot be read or removed; another call removes the rest.
pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<DestroyReport> {
    destroy_with(&PosixVfs::new(), path, options)
}

/// [`destroy`] in the caller's file system.
///
/// # Errors
/// As [`destroy`].
pub fn destroy_with(
    vfs: &dyn Vfs,
    path: impl AsRef<Path>,
    options: &Options,
) -> Result<DestroyReport> {
    let directory = path.as_ref();
    check_named("the database", directory)?;
    let mut destroyer = Destroyer {
        vfs,
        directory,
        found: Vec::new(),
        uids: BTreeSet::new(),
        report: DestroyReport::default(),
    };
    match destroyer.look()? {
        Verdict::Nothing => return Ok(destroyer.report),
        Verdict::Empty => {
            destroyer.report.directory_removed = destroyer.remove_directory(directory)?;
            return Ok(destroyer.report);
        }
        Verdict::Database => {}
    }
    let lock = take_lock(vfs, directory)?;
    destroyer.look()?;
    destroyer.learn_uids()?;
    for tables in destroyer.table_directories(options)? {
        destroyer.remove_elsewhere(&tables, is_table)?;
    }
    for logs in destroyer.log_directories(options)? {
        destroyer.remove_elsewhere(&logs, is_log)?;
    }
    destroyer.remove_files()?;
    drop(lock);
    Ok(destroyer.report)
}

/// What a directory contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Database,
    Empty,
    Nothing,
}

/// A file with one of the engine's names.
struct Found {
    name: String,
    content: Content,
}

/// A removal in progress.
struct Destroyer<'a> {
    vfs: &'a dyn Vfs,
    directory: &'a Path,
    found: Vec<Found>,
    /// The uids in the database's own files. It is one, unless files of several databases are
    /// mixed.
    uids: BTreeSet<u64>,
    report: DestroyReport,
}

/// Returns the names in `directory`; `None` if it does not exist.
fn list(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Vec<PathBuf>>> {
    match vfs.list(directory) {
        Ok(names) => Ok(Some(names)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            let reason = "it is not a directory".into();
            Err(Error::IncompatibleDirectory { path: directory.to_owned(), reason })
        }
        Err(error) => Err(Error::io("list", directory, error)),
    }
}

/// Returns the files in `directory` that have one of the engine's names.
fn own_files(vfs: &dyn Vfs, directory: &Path, listing: &[PathBuf]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for name in listing.iter().filter_map(|path| path.file_name()?.to_str()) {
        let Some(kind) = own_name(name) else { continue };
        if let Some(content) = look_at(vfs, &directory.join(name), kind)? {
            found.push(Found { name: name.to_owned(), content });
        }
    }
    Ok(found)
}

/// Returns true if `name` is that of a table.
fn is_table(name: &str) -> bool {
    matches!(FileName::parse(name), Some(FileName::Table(_)))
}

/// Returns true if `name` is that of a WAL.
fn is_log(name: &str) -> bool {
    matches!(FileName::parse(name), Some(FileName::Wal(_)))
}

impl Destroyer<'_> {
    /// Finds out what the directory contains. Fails if that is another program's database.
    fn look(&mut self) -> Result<Verdict> {
        let Some(listing) = list(self.vfs, self.directory)? else { return Ok(Verdict::Nothing) };
        if listing.is_empty() {
            return Ok(Verdict::Empty);
        }
        let current = FileName::Current.path(self.directory);
        match checked_text::read(self.vfs, &current) {
            Ok(bytes) => {
                if let Some(what) = recognise_foreign(&listing, Some(&bytes)) {
                    return Err(self.foreign(what));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::IsADirectory => {}
            Err(error) => return Err(Error::io("read", &current, error)),
        }
        // Tables of a database whose own directory is another one.
        if Owner::of_tables(self.vfs, self.directory)?.is_some() {
            self.report.left = listing.into_iter().map(|name| self.directory.join(name)).collect();
            return Ok(Verdict::Nothing);
        }
        self.found = own_files(self.vfs, self.directory, &listing)?;
        let certain = |found: &Found| matches!(found.content, Content::Ours(_));
        if self.found.iter().any(certain) {
            return Ok(Verdict::Database);
        }
        // An interrupted open, or damage in every file. Then no other name may be there.
        let damaged = |found: &Found| matches!(found.content, Content::Blank | Content::Damaged);
        if self.found.len() == listing.len() && self.found.iter().all(damaged) {
            return Ok(Verdict::Database);
        }
        if let Some(what) = recognise_foreign(&listing, None) {
            return Err(self.foreign(what));
        }
        self.report.left = listing.into_iter().map(|name| self.directory.join(name)).collect();
        Ok(Verdict::Nothing)
    }

    /// Returns the error of another program's database.
    fn foreign(&self, what: &str) -> Error {
        let path = self.directory.to_owned();
        Error::IncompatibleDirectory { reason: foreign_reason(what, self.directory), path }
    }

    /// Finds the uids that tell the database's WALs from those of others.
    fn learn_uids(&mut self) -> Result<()> {
        match read_current(self.vfs, self.directory) {
            Ok(Some(current)) => drop(self.uids.insert(current.identity.uid)),
            Err(error @ Error::Io { .. }) => return Err(error),
            _ => {}
        }
        // A manifest is trusted more than a table, and a table more than a WAL.
        let kinds: [fn(FileName) -> bool; 3] = [
            |name| matches!(name, FileName::Manifest(_)),
            |name| matches!(name, FileName::Table(_)),
            |name| matches!(name, FileName::Wal(_)),
        ];
        for kind in kinds {
            if !self.uids.is_empty() {
                break;
            }
            let of_kind = self.found.iter().filter(|f| FileName::parse(&f.name).is_some_and(kind));
            self.uids.extend(of_kind.filter_map(|found| match found.content {
                Content::Ours(uid) => uid,
                _ => None,
            }));
        }
        Ok(())
    }

    /// Returns the other directories in which the database may have WALs. A checkpoint has its
    /// source's options but WALs of its own; the WALs in that `wal_dir` belong to the source.
    fn log_directories(&self, options: &Options) -> Result<BTreeSet<PathBuf>> {
        let here = |f: &Found| is_log(&f.name) && !matches!(f.content, Content::Other);
        if self.found.iter().any(here) {
            return Ok(BTreeSet::new());
        }
        let stored = Options::load_if_sound(self.vfs, self.directory)?;
        let stored = stored.and_then(|stored| stored.options.wal_dir);
        let all = options.wal_dir.iter().cloned().chain(stored);
        Ok(all.filter(|logs| logs != self.directory).collect())
    }

    /// Returns the other directories in which the database may have tables: those that its list and
    /// the stored options name, or, if these cannot be read, those of `options`. A copy of a
    /// database has the uid of its source, and `options` may name the directories of the source,
    /// which stay as they are.
    fn table_directories(&self, options: &Options) -> Result<Vec<PathBuf>> {
        let home = absolute(self.directory);
        let stored = match Options::load_if_sound(self.vfs, self.directory)? {
            Some(stored) => stored.table_directories(&home),
            None => options.clone().with_absolute_paths()?.table_directories(&home, []),
        };
        let listed = match Directories::read(self.vfs, self.directory) {
            Ok(list) => list.unwrap_or_default().others,
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(_) => BTreeSet::new(),
        };
        let mut own = Vec::new();
        for directory in stored.into_iter().chain(listed).collect::<BTreeSet<_>>() {
            match whose(self.vfs, &directory, self.uids.first().copied(), &home) {
                Err(error @ Error::Io { .. }) => return Err(error),
                Err(Error::IncompatibleDirectory { .. }) => {}
                // Its content says what is removed.
                _ => own.push(directory),
            }
        }
        Ok(own)
    }

    /// Removes the database's tables or WALs, whose names are those of `kind`, from another
    /// directory, and that directory if it is then empty.
    fn remove_elsewhere(&mut self, logs: &Path, kind: fn(&str) -> bool) -> Result<()> {
        let Some(listing) = list(self.vfs, logs)? else { return Ok(()) };
        let found = own_files(self.vfs, logs, &listing)?;
        let (found, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|f| kind(&f.name));
        let locked = rest.iter().any(|found| found.name == LOCK_FILE);
        let own = |found: &Found| match found.content {
            Content::Ours(Some(uid)) => self.uids.contains(&uid),
            _ => false,
        };
        // A WAL that does not say whose it is belongs to this database if no other one has WALs
        // here.
        let others = found.iter().any(|f| matches!(f.content, Content::Ours(Some(_))) && !own(f));
        let any = found.iter().any(own);
        let unsaid = |found: &Found| match found.content {
            Content::Ours(Some(_)) | Content::Other => false,
            Content::Ours(None) | Content::Blank | Content::Damaged => any && !others,
        };
        let (mine, left): (Vec<_>, Vec<_>) =
            found.iter().partition(|found| own(found) || unsaid(found));
        // An interrupted call may have left only the lock file. A directory may have no tables.
        let unused = locked && found.is_empty();
        if mine.is_empty() && !unused && !listing.is_empty() {
            return self.note_left(logs);
        }
        let lock = take_lock(self.vfs, logs)?;
        remove_rescued(self.vfs, &mut self.report, &logs.join(LOST), Some(&self.uids))?;
        for found in mine {
            remove(self.vfs, &mut self.report, &logs.join(&found.name))?;
        }
        if left.is_empty() {
            if kind(&FileName::Table(FileId(1)).text()) {
                for name in [TEMPORARY_OWNER, OWNER] {
                    remove(self.vfs, &mut self.report, &logs.join(name))?;
                }
            }
            remove(self.vfs, &mut self.report, &logs.join(LOCK_FILE))?;
        }
        sync_directory(self.vfs, logs)?;
        if self.remove_directory(logs)? {
            return Ok(());
        }
        drop(lock);
        self.note_left(logs)
    }

    /// Removes the files in the database's own directory.
    fn remove_files(&mut self) -> Result<()> {
        let named = self.named_tables()?;
        let mut order = [Vec::new(), Vec::new(), Vec::new()];
        for found in &self.found {
            let kind = FileName::parse(&found.name);
            let own = match (kind, found.content) {
                (Some(FileName::Lock), _) => continue,
                // A file that the manifest names belongs to the database, even if it was
                // overwritten.
                (Some(FileName::Table(file)), Content::Other) => named.contains(&file),
                (Some(FileName::Current), _) => true,
                (Some(FileName::Wal(_)), Content::Ours(Some(uid))) => {
                    self.uids.contains(&uid) || self.uids.is_empty()
                }
                (_, content) => content != Content::Other,
            };
            let turn = match kind {
                Some(FileName::Current) => 2,
                Some(FileName::Manifest(_)) => 1,
                _ => 0,
            };
            if let Some(names) = order.get_mut(turn).filter(|_| own) {
                names.push(found.name.clone());
            }
        }
        let [first, manifests, current] = order;
        remove_rescued(self.vfs, &mut self.report, &self.directory.join(LOST), None)?;
        for name in first.into_iter().chain(manifests).chain(current) {
            remove(self.vfs, &mut self.report, &self.directory.join(name))?;
        }
        remove(self.vfs, &mut self.report, &FileName::Lock.path(self.directory))?;
        sync_directory(self.vfs, self.directory)?;
        self.report.directory_removed = self.remove_directory(self.directory)?;
        if self.report.directory_removed { Ok(()) } else { self.note_left(self.directory) }
    }

    /// Returns the table files that the manifest names, as far as it can be read.
    fn named_tables(&self) -> Result<BTreeSet<FileId>> {
        let mut named = BTreeSet::new();
        let manifest = match read_current(self.vfs, self.directory) {
            Ok(Some(current)) => ManifestReader::of_current(self.vfs, self.directory, &current),
            Ok(None) => return Ok(named),
            Err(error) => Err(error),
        };
        let read = || -> Result<()> {
            let (_, mut reader) = manifest?;
            while let Some(edits) = reader.next()? {
                let added = edits.into_iter().flat_map(|edit| edit.added);
                added.for_each(|added| named.extend(added.table.files()));
            }
            Ok(())
        };
        match read() {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error @ Error::Io { .. }) => return Err(error),
            // Of a damaged manifest, the readable part counts.
            _ => {}
        }
        Ok(named)
    }

    /// Removes a directory if it is empty. Returns true if it is gone.
    fn remove_directory(&self, directory: &Path) -> Result<bool> {
        match self.vfs.remove_dir(directory) {
            Ok(()) => sync_ancestors(self.vfs, directory).map(|()| true),
            Err(error) if stays(&error) => Ok(false),
            Err(error) => Err(Error::io("remove", directory, error)),
        }
    }

    /// Adds what is left in `directory` to the report.
    fn note_left(&mut self, directory: &Path) -> Result<()> {
        let names = list(self.vfs, directory)?.unwrap_or_default();
        self.report.left.extend(names.into_iter().map(|name| directory.join(name)));
        Ok(())
    }
}

/// Returns true if a directory may stay although its removal failed: it is not empty, it is a mount
/// point or the working directory, the path is a symbolic link, or its parent may not be changed.
fn stays(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DirectoryNotEmpty
            | ErrorKind::AlreadyExists
            | ErrorKind::NotADirectory
            | ErrorKind::NotFound
            | ErrorKind::ResourceBusy
            | ErrorKind::InvalidInput
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    )
}

/// Removes a file. It is no error if the file is already gone.
fn remove(vfs: &dyn Vfs, report: &mut DestroyReport, path: &Path) -> Result<()> {
    match vfs.remove(path) {
        Ok(()) => report.removed.push(path.to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("remove", path, error)),
    }
    Ok(())
}

/// Returns the engine's files in `lost`. With `uids`, returns only those of these databases, and
/// those that do not say whose they are if no others are there.
fn rescued(vfs: &dyn Vfs, lost: &Path, uids: Option<&BTreeSet<u64>>) -> Result<Vec<PathBuf>> {
    let listing = match vfs.list(lost) {
        Ok(listing) => listing,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Error::io("list", lost, error)),
    };
    let (mut files, mut unsaid, mut others) = (Vec::new(), Vec::new(), false);
    for name in listing.iter().filter_map(|path| path.file_name()?.to_str()) {
        // A second file of the same name has a number at its end.
        let first = name.rsplit_once('.').filter(|(_, number)| number.parse::<u64>().is_ok());
        let Some(kind) = own_name(name).or_else(|| own_name(first?.0)) else { continue };
        match (look_at(vfs, &lost.join(name), kind)?, uids) {
            (None | Some(Content::Other), _) => {}
            (Some(Content::Ours(Some(uid))), Some(uids)) if !uids.contains(&uid) => others = true,
            (Some(Content::Ours(Some(_))), _) | (Some(_), None) => files.push(lost.join(name)),
            (Some(_), Some(_)) => unsaid.push(lost.join(name)),
        }
    }
    if !others {
        files.append(&mut unsaid);
    }
    Ok(files)
}

/// Removes the files that a repair kept in `lost`, and that directory if it is then empty.
fn remove_rescued(
    vfs: &dyn Vfs,
    report: &mut DestroyReport,
    lost: &Path,
    uids: Option<&BTreeSet<u64>>,
) -> Result<()> {
    for path in rescued(vfs, lost, uids)? {
        remove(vfs, report, &path)?;
    }
    match vfs.remove_dir(lost) {
        Err(error) if !stays(&error) => Err(Error::io("remove", lost, error)),
        _ => Ok(()),
    }
}
