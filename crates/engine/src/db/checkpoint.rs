//! Checkpoints: a second database with the content of this one at one moment, created without
//! copying tables.
//!
//! 1. [`Db::checkpoint`] flushes if some entries are in no WAL.
//! 2. `make` holds all files back from removal, and takes the versions and the ends of the WALs of
//!    one [`Moment`].
//! 3. `link_tables` clones each table file. Where that is not possible, it records the files as
//!    shared and links them, and copies what cannot be linked.
//! 4. The WALs are copied up to their ends at that moment.
//! 5. `VersionSet::write_copy` writes the manifest and CURRENT.
//! 6. After a failure, `remove_all` removes the new directory. To close the database is one: the
//!    links and copies look for that.
//!
//! What must stay true:
//!
//! - The new directory has no CURRENT before it is complete.
//! - No write is between the versions and the ends of the WALs: a later write may follow one that
//!   only a version has, such as an ingestion.
//! - A file whose bytes are shared through a hard link is recorded as shared in both databases
//!   before the link exists. It is never punched from then on (format rule F7).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, FileId, IoClass, LogNumber};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::files::{FileName, refuse_own_name, table_file_name, wal_file_name};
use sateen_store::manifest::Identity;
use sateen_store::vfs::{OpenOptions, Vfs};

use crate::core::DbCore;
use crate::db::Db;
use crate::open::{check_parent, sync_ancestors};
use crate::options::WalMode;
use crate::options::paths::check_named;
use crate::tree::family_state::{FamilyState, oldest_log};

/// Size of the buffer for copies.
const COPY_BYTES: usize = 1 << 20;

impl Db {
    /// Creates a database in the directory `path`, which must not exist, with the present content
    /// of this one. The parent directory of `path` must exist. All column families are from the
    /// same moment. Tables are shared through reflinks or hard links if the file system has them,
    /// and are copied otherwise.
    ///
    /// Entries that bypass the WAL are flushed first, one column family after the other. While such
    /// entries are being written, column families agree with each other only with
    /// [`Options::atomic_flush`](crate::Options::atomic_flush), and with logged entries not at all.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path().join("db"), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let copy = directory.path().join("copy");
    /// db.checkpoint(&copy)?;
    /// db.delete("fig")?;
    /// let copy = sateen::Db::open(&copy, sateen::Options::default())?;
    /// assert!(copy.contains_key("fig")?);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `path` exists, if its parent directory is missing, or if it is in the
    /// directory of a database and has a name that this gives to files of its own (`lost`,
    /// `000012.sat`). `Io` if it cannot be written; the new directory is removed then. `Closed` if
    /// the database was closed meanwhile, with the same effect.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        let (core, path) = (self.core(), path.as_ref());
        core.env.check_open()?;
        check_named("the checkpoint", path)?;
        if core.secondary.is_some() {
            return Err(Error::ReadOnly("a checkpoint of a secondary"));
        }
        refuse_own_name(core.env.vfs.as_ref(), path)?;
        if core.env.vfs.exists(path).map_err(|e| Error::io("look for", path, e))? {
            return Err(Error::InvalidArgument(format!("{} exists already", shown_path(path))));
        }
        check_parent(core.env.vfs.as_ref(), path)?;
        if !core.env.read_only {
            core.env.health.check()?;
            if core.env.options.load().wal == WalMode::Off || core.writes.has_unlogged_writes() {
                self.flush_all()?;
            }
        }
        let made = make(core, path);
        if made.is_err() {
            remove_all(core, path);
        }
        made
    }
}

/// Writes the checkpoint, without removing it after a failure.
fn make(core: &DbCore, path: &Path) -> Result<()> {
    let vfs = core.env.vfs.as_ref();
    vfs.create_dir_all(path).map_err(|e| Error::io("create", path, e))?;
    // The hold keeps all tables and WALs until they are linked and copied.
    let _hold = core.tree.reclaimer.hold();
    let Moment { families, logs } = Moment::now(core)?;
    let files = table_files(&families);
    let shared = link_tables(core, path, &files)?;
    for (number, bytes) in logs {
        let from = wal_file_name(&core.env.wal_directory(), number);
        copy(vfs, &from, &wal_file_name(path, number), bytes, &|| core.env.check_open())?;
    }
    core.background.chores.write_options_of_copy(vfs, path)?;
    core.tree.versions.write_copy(vfs, path, identity_of_copy(core), &families, &shared)?;
    sync_ancestors(vfs, path)
}

/// Returns the identity of a copy that is made now.
pub(crate) fn identity_of_copy(core: &DbCore) -> Identity {
    let identity = core.tree.versions.identity();
    if core.env.options.load().checkpoint_keeps_identity { identity } else { identity.copy() }
}

/// Returns the files that hold the tables of `families`.
pub(crate) fn table_files(families: &BTreeMap<ColumnFamilyId, FamilyState>) -> BTreeSet<FileId> {
    let of_family = |family: &FamilyState| {
        let tables = family.version.tables();
        tables.flat_map(|(_, _, table)| table.files()).collect::<Vec<_>>()
    };
    families.values().flat_map(of_family).collect()
}

/// What a copy of the database consists of. The caller holds all files back from removal.
pub(crate) struct Moment {
    pub(crate) families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// The WALs that these need, and how many bytes of each.
    pub(crate) logs: Vec<(LogNumber, u64)>,
}

impl Moment {
    /// Returns the present moment.
    pub(crate) fn now(core: &DbCore) -> Result<Moment> {
        let pipeline = &core.writes.pipeline;
        // Between two commit groups, where every WAL ends with a whole record.
        let (families, mut logs) =
            pipeline.exclusive(|_| (core.tree.versions.families(), pipeline.live_logs()));
        // WALs that no version needs may be about to be removed.
        let oldest = oldest_log(families.values());
        logs.retain(|(number, _)| *number >= oldest);
        logs.extend(other_logs(core, oldest, &logs)?);
        Ok(Moment { families, logs })
    }
}

/// Returns the WALs that the manifest needs besides those in use: the empty one of a database that
/// writes no WAL, and all of a read-only database.
fn other_logs(
    core: &DbCore,
    oldest: LogNumber,
    known: &[(LogNumber, u64)],
) -> Result<Vec<(LogNumber, u64)>> {
    let directory = core.env.wal_directory();
    let listing = core.env.vfs.list(&directory).map_err(|e| Error::io("list", &directory, e))?;
    let names = listing.iter().filter_map(|path| FileName::parse(path.file_name()?.to_str()?));
    let logs = names.filter_map(|name| match name {
        FileName::Wal(log) => Some(log),
        _ => None,
    });
    let needed = |log: &LogNumber| if core.env.read_only { *log >= oldest } else { *log == oldest };
    let unknown = |log: &LogNumber| known.iter().all(|(number, _)| number != log);
    Ok(logs.filter(|log| needed(log) && unknown(log)).map(|log| (log, u64::MAX)).collect())
}

/// Clones, links or copies table files. Returns those whose bytes both databases share.
fn link_tables(core: &DbCore, to: &Path, files: &BTreeSet<FileId>) -> Result<Vec<FileId>> {
    let vfs = core.env.vfs.as_ref();
    let mut to_link = Vec::new();
    for file in files {
        core.env.check_open()?;
        let (from, to) = (table_file_name(&core.env.directory, *file), table_file_name(to, *file));
        match vfs.clone_file(&from, &to) {
            Ok(()) => sync(vfs, &to)?,
            Err(_) => to_link.push(*file),
        }
    }
    if to_link.is_empty() {
        return Ok(to_link);
    }
    if !core.env.read_only {
        let edit = VersionEdit {
            column_family: core.tree.default_family.id(),
            shared_files: to_link.clone(),
            ..VersionEdit::default()
        };
        core.tree.reclaimer.mark_shared(to_link.iter().copied(), core.env.now());
        let seqno = core.writes.pipeline.visible_seqno();
        let edits = vec![(edit, 0)];
        if let Err(error) = core.tree.versions.install_together(edits, seqno, &core.tree.reclaimer)
        {
            core.background.driver.edit_failed(&error);
            return Err(error);
        }
    }
    let mut shared = Vec::new();
    for file in to_link {
        let (from, to) = (table_file_name(&core.env.directory, file), table_file_name(to, file));
        match vfs.hard_link(&from, &to) {
            Ok(()) => shared.push(file),
            // Whatever the reason (another file system, no links, too many links, a security rule),
            // a copy does not need a link.
            Err(_) => copy(vfs, &from, &to, u64::MAX, &|| core.env.check_open())?,
        }
    }
    Ok(shared)
}

/// Makes a clone durable: its blocks are durable, but its length and the place of the blocks are
/// not.
fn sync(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let options = OpenOptions::WRITE;
    let file = vfs.open(path, options).map_err(|e| Error::io("open", path, e))?;
    file.sync_data(IoClass::Manifest).map_err(|e| Error::io("sync", path, e))
}

/// Copies the first `bytes` of a file and syncs the copy. Calls `go_on` before each MiB, and ends
/// with its error.
pub(crate) fn copy(
    vfs: &dyn Vfs,
    from: &Path,
    to: &Path,
    bytes: u64,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let class = IoClass::Manifest;
    let source = vfs.open(from, OpenOptions::READ).map_err(|e| Error::io("open", from, e))?;
    let target = vfs.open(to, OpenOptions::CREATE).map_err(|e| Error::io("create", to, e))?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < bytes {
        go_on()?;
        let want = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(buffer.len());
        let part = buffer.get_mut(..want).unwrap_or_default();
        let got = source.read_all_at(part, at, class).map_err(|e| Error::io("read", from, e))?;
        if got == 0 {
            break;
        }
        let part = buffer.get(..got).unwrap_or_default();
        target.write_at(part, at, class).map_err(|e| Error::io("write", to, e))?;
        at += got as u64;
    }
    target.sync_data(class).map_err(|e| Error::io("sync", to, e))
}

/// Removes an unfinished checkpoint or export. Best effort: files that stay have no CURRENT, so
/// they are no database.
pub(super) fn remove_all(core: &DbCore, path: &Path) {
    let vfs = core.env.vfs.as_ref();
    for name in vfs.list(path).unwrap_or_default() {
        let _stays = vfs.remove(&path.join(name.file_name().unwrap_or_default()));
    }
    let _stays = vfs.remove_dir(path);
}
