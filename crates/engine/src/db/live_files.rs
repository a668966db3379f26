//! Lists the files of a database, for a program that copies them itself.
//!
//! 1. [`Db::live_files`] flushes the memtables if the options or unlogged writes demand it.
//! 2. `list` lists table files, and WALs up to the end of the last commit group of that moment.
//! 3. The manifest, CURRENT and OPTIONS are returned as contents. They are written to a file system
//!    in memory from one version of the tree, so that they agree while the database goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::IoClass;
use sateen_store::base::error::{Error, Result};
use sateen_store::files::{FileName, table_file_name, wal_file_name};
use sateen_store::vfs::{MemVfs, OpenOptions, Vfs};

use crate::core::DbCore;
use crate::db::Db;
use crate::db::checkpoint::{Moment, identity_of_copy, table_files};
use crate::options::WalMode;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveFileKind {
    /// A compaction file, which holds tables.
    Table,
    /// A write-ahead log.
    Wal,
    /// The manifest.
    Manifest,
    /// CURRENT, which names the manifest.
    Current,
    /// The options.
    Options,
}

/// A file that belongs in a copy of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its kind.
    pub kind: LiveFileKind,
    /// The directory that holds it.
    pub directory: PathBuf,
    /// Its name, in this directory and in the copy.
    pub name: String,
    /// The number in its name; 0 if it has none.
    pub number: u64,
    /// Number of its bytes that belong in the copy.
    pub size_bytes: u64,
    /// True if the file on disk may be longer than that.
    pub is_trimmed: bool,
    /// The contents for the copy, if they differ from the file on disk.
    pub contents: Option<Vec<u8>>,
}

/// Options of [`Db::live_files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveFilesOptions {
    /// Flushes all memtables first if the WALs have at least this many bytes. Default: 0, which
    /// always flushes. `None`: the WALs become part of the copy. RocksDB: `wal_size_for_flush`.
    pub flush_from_wal_bytes: Option<u64>,
}

impl Default for LiveFilesOptions {
    fn default() -> LiveFilesOptions {
        LiveFilesOptions { flush_from_wal_bytes: Some(0) }
    }
}

impl Db {
    /// Returns the files that make a copy of this database at this moment. The caller must call
    /// [`Db::disable_file_deletions`] first, and copies the files before it enables deletions
    /// again. In the copy all files are in one directory. RocksDB: `GetLiveFilesStorageInfo`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    /// # let db = sateen::Db::open(&from, sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// db.disable_file_deletions();
    /// std::fs::create_dir(&to).unwrap();
    /// for file in db.live_files(&sateen::LiveFilesOptions::default())? {
    ///     let (from, to) = (file.directory.join(&file.name), to.join(&file.name));
    ///     let mut bytes = file.contents.unwrap_or_else(|| std::fs::read(from).unwrap());
    ///     bytes.truncate(usize::try_from(file.size_bytes).unwrap());
    ///     std::fs::write(to, bytes).unwrap();
    /// }
    /// db.enable_file_deletions();
    /// let copy = sateen::Db::open(&to, sateen::Options::default())?;
    /// assert_eq!(copy.get("fig")?.as_deref(), Some(b"1".as_slice()));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly` for a secondary; `Background` if the memtables cannot be flushed; `Io`.
    pub fn live_files(&self, options: &LiveFilesOptions) -> Result<Vec<LiveFile>> {
        let core = self.core();
        core.env.check_open()?;
        if core.secondary.is_some() {
            return Err(Error::ReadOnly("listing the files of a secondary"));
        }
        if !core.env.read_only {
            core.env.health.check()?;
            let logged =
                || core.writes.pipeline.live_logs().iter().map(|(_, bytes)| bytes).sum::<u64>();
            // Unlogged entries are only in memory.
            let unlogged =
                core.env.options.load().wal == WalMode::Off || core.writes.has_unlogged_writes();
            if unlogged || options.flush_from_wal_bytes.is_some_and(|least| logged() >= least) {
                self.flush_all()?;
            }
        }
        list(core)
    }

    /// Returns the WALs that recovery would need now, oldest first, and the one in use. They may go
    /// at any time, unless file deletions are disabled. RocksDB: `GetSortedWalFiles`, which also
    /// returns archived ones.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let wals = db.wal_files()?;
    /// assert!(wals.last().unwrap().size_bytes > 0);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`; `Io`.
    pub fn wal_files(&self) -> Result<Vec<LiveFile>> {
        let core = self.core();
        core.env.check_open()?;
        let _hold = core.tree.reclaimer.hold();
        let logs = Moment::now(core)?.logs;
        let described = logs.into_iter().map(|(log, bytes)| {
            let path = wal_file_name(&core.env.wal_directory(), log);
            on_disk(core, LiveFileKind::Wal, &path, log.0, bytes)
        });
        described.collect()
    }
}

/// Lists the files, with deletions held back.
fn list(core: &DbCore) -> Result<Vec<LiveFile>> {
    let _hold = core.tree.reclaimer.hold();
    let Moment { families, logs } = Moment::now(core)?;
    let tables = table_files(&families);
    let mut files = Vec::new();
    for file in &tables {
        let path = table_file_name(&core.env.directory, *file);
        files.push(on_disk(core, LiveFileKind::Table, &path, file.0, u64::MAX)?);
    }
    for (log, bytes) in logs {
        let path = wal_file_name(&core.env.wal_directory(), log);
        files.push(on_disk(core, LiveFileKind::Wal, &path, log.0, bytes)?);
    }
    // The caller may link a file instead of copying it. Then neither database may punch it.
    let shared: Vec<_> = tables.into_iter().collect();
    let memory = MemVfs::new();
    let at = Path::new("/catalogue");
    memory.create_dir_all(at).map_err(|error| Error::io("create", at, error))?;
    core.background.chores.write_options_of_copy(&memory, at)?;
    core.tree.versions.write_copy(&memory, at, identity_of_copy(core), &families, &shared)?;
    let names = memory.list(at).map_err(|error| Error::io("list", at, error))?;
    for name in names.iter().filter_map(|path| path.file_name()?.to_str()) {
        let kind = match FileName::parse(name) {
            Some(FileName::Manifest(_)) => LiveFileKind::Manifest,
            Some(FileName::Current) => LiveFileKind::Current,
            Some(FileName::Options) => LiveFileKind::Options,
            _ => continue,
        };
        let contents = read(&memory, &at.join(name))?;
        files.push(LiveFile {
            kind,
            directory: core.env.directory.clone(),
            name: name.to_owned(),
            number: FileName::parse(name).and_then(FileName::number).unwrap_or(0),
            size_bytes: contents.len() as u64,
            is_trimmed: false,
            contents: Some(contents),
        });
    }
    Ok(files)
}

/// Describes a file of which at most the first `bytes` belong in the copy.
fn on_disk(
    core: &DbCore,
    kind: LiveFileKind,
    path: &Path,
    number: u64,
    bytes: u64,
) -> Result<LiveFile> {
    let path = &core.env.vfs.place_of(path);
    let file =
        core.env.vfs.open(path, OpenOptions::READ).map_err(|e| Error::io("open", path, e))?;
    let length = file.len().map_err(|error| Error::io("read the length of", path, error))?;
    Ok(LiveFile {
        kind,
        directory: path.parent().unwrap_or(Path::new("")).to_owned(),
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        number,
        size_bytes: length.min(bytes),
        is_trimmed: kind == LiveFileKind::Wal,
        contents: None,
    })
}

fn read(vfs: &dyn Vfs, path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::io("read", path, error);
    let file: Arc<_> = vfs.open(path, OpenOptions::READ).map_err(failed)?;
    let length = file.len().map_err(failed)?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0, IoClass::Manifest).map_err(failed)?;
    Ok(bytes)
}
