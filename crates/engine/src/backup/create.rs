//! Makes a backup of an open database.
//!
//! 1. [`create`] flushes what is in no WAL, or everything if that is wanted.
//! 2. `Creation::begin` holds all files, takes the versions of one [`Moment`], and copies the WALs,
//!    the manifest and the options of that moment. Then files may go again, but for the tables,
//!    which their references pin.
//! 3. `Creation::values` copies value files without their holes. `Creation::tables` copies what no
//!    earlier backup has of each compaction file: its outline, and its tables. What was copied is
//!    no longer pinned.
//! 4. `Creation::publish` makes the objects durable, looks whether all are there, and writes the
//!    record.
//! 5. After a failure, `Creation::undo` deletes what was written.
//!
//! What must stay true:
//!
//! - The record appears after everything that it names is durable.
//! - The tables that refer to a file with values are verified after it was copied, and pin it until
//!   then.
//! - A failed attempt deletes only objects that it made itself, and none while its record may be
//!   there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sateen_control::version::TableMeta;
use sateen_control::{ColumnFamilyId, FileId, IoClass, LogNumber};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::random::random_uid;
use sateen_store::files::{FileName, Outline, table_file_name, wal_file_name};
use sateen_store::manifest::read_current;
use sateen_store::vfs::{MemVfs, OpenOptions, Vfs, VfsFile};

use super::options::CreateBackupOptions;
use super::pacer::Pacer;
use super::record::{
    Identity, Object, ObjectKind, PRIVATE, Piece, Record, RestoredFile, SHARED, record_key,
};
use super::source::{CLASS, Source, extent, verify_table};
use super::store::BackupStore;
use crate::core::DbCore;
use crate::db::Db;
use crate::db::behind::Explainer;
use crate::db::checkpoint::Moment;
use crate::options::WalMode;
use crate::runtime::with_low_priority;
use crate::tree::family_state::{FamilyState, oldest_log};

/// The largest table that is kept in memory, so that it is read once to be verified and copied.
const IN_MEMORY_BYTES_MAX: u64 = 16 << 20;
/// Where the catalogue is written before it is copied.
const CATALOGUE: &str = "/catalogue";

/// What earlier backups have.
#[derive(Default)]
pub(super) struct Known {
    /// The objects that later backups may use.
    pub(super) objects: BTreeMap<Identity, Vec<Object>>,
}

impl Known {
    /// Adds the objects of a backup.
    pub(super) fn add(&mut self, record: &Record) {
        for object in record.objects.iter().filter(|object| object.identity.kind.is_shared()) {
            let known = self.objects.entry(object.identity).or_default();
            if !known.contains(object) {
                known.push(object.clone());
            }
        }
    }
}

/// Makes backup `id` of `db` in `store`.
pub(super) fn create(
    store: &dyn BackupStore,
    known: &Known,
    id: u64,
    db: &Db,
    options: &CreateBackupOptions,
) -> Result<Record> {
    let core = db.core();
    core.env.check_open()?;
    if core.secondary.is_some() {
        return Err(Error::ReadOnly("a backup of a secondary"));
    }
    if !core.env.read_only {
        core.env.health.check()?;
        let unlogged =
            core.env.options.load().wal == WalMode::Off || core.writes.has_unlogged_writes();
        if unlogged || options.flush {
            db.flush_all()?;
        }
    }
    let identity = core.tree.versions.identity();
    let mut creation = Creation {
        core,
        store,
        known,
        stored: store.list_lengths(SHARED)?.into_iter().collect(),
        pacer: Pacer::new(Some(core), "the backup", options.rate, options.listener.as_deref()),
        made: Vec::new(),
        unverified: BTreeSet::new(),
        is_published: false,
        record: Record {
            id,
            created: core.env.options.load().wall_clock.seconds(),
            uid: identity.uid,
            copy: identity.copy,
            seqno: core.writes.pipeline.visible_seqno().0,
            manifest: 0,
            manifest_synced: 0,
            note: options.note.clone(),
            objects: Vec::new(),
            files: Vec::new(),
        },
    };
    // Nobody waits for its computing as for a client's operation.
    let nice = core.env.options.load().background_thread_nice;
    let nice = if core.env.has_threads() { nice } else { 0 };
    match with_low_priority("sateen-backup", nice, || creation.run()) {
        Ok(()) => Ok(creation.record),
        Err(error) => {
            creation.undo();
            Err(Explainer { core }.explain(error))
        }
    }
}

/// How a file is copied, in the order in which that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Whole,
    /// Without its holes.
    Values,
    /// Table by table.
    Tables,
}

/// The files to copy. The references to the tables pin their files.
type Wanted = BTreeMap<(How, FileId), Vec<Arc<TableMeta>>>;

/// A backup that is being made.
struct Creation<'a> {
    core: &'a DbCore,
    store: &'a dyn BackupStore,
    known: &'a Known,
    /// The keys of shared objects that are there, with their lengths as far as they are known.
    stored: BTreeMap<String, Option<u64>>,
    pacer: Pacer<'a>,
    /// The keys of objects that were begun.
    made: Vec<String>,
    /// Files with values of tables that were copied, and not verified yet.
    unverified: BTreeSet<FileId>,
    /// Whether the record may be there.
    is_published: bool,
    record: Record,
}

impl Creation<'_> {
    fn run(&mut self) -> Result<()> {
        let mut wanted = self.begin()?;
        while let Some(((how, file), tables)) = wanted.pop_first() {
            match how {
                How::Whole => self.whole(file, false)?,
                How::Values => self.whole(file, true)?,
                How::Tables => self.tables(file, &tables)?,
            }
        }
        self.publish()
    }

    /// Copies everything but the tables. Returns the files with the tables.
    fn begin(&mut self) -> Result<Wanted> {
        let core = self.core;
        // The hold keeps the WALs until they are copied, and all tables until they are listed.
        let _hold = core.tree.reclaimer.hold();
        let Moment { families, logs } = Moment::now(core)?;
        let wanted = wanted(&families);
        self.check_oldest(oldest_log(families.values()), &logs)?;
        let tables = families.values().flat_map(|family| family.version.tables());
        let tables: u64 = tables.map(|(.., table)| table.stored_bytes()).sum();
        let values = families.values().map(|family| family.version.value_files().bytes().0);
        let logs_bytes = logs.iter().map(|(_, bytes)| log_bytes(*bytes)).sum::<u64>();
        self.pacer.expect(tables + values.sum::<u64>() + logs_bytes);
        for (log, bytes) in logs {
            self.log(log, bytes)?;
        }
        self.catalogue(&families)?;
        Ok(wanted)
    }

    /// Fails if the oldest WAL that the versions need is gone. Only a read-only database, beside a
    /// process that writes it, finds that.
    fn check_oldest(&self, oldest: LogNumber, logs: &[(LogNumber, u64)]) -> Result<()> {
        if oldest == LogNumber(0) || logs.iter().any(|(log, _)| *log == oldest) {
            return Ok(());
        }
        let path = wal_file_name(&self.core.env.wal_directory(), oldest);
        Err(Error::corruption(&path, 0, CorruptionKind::MissingFile))
    }

    /// Copies the first `bytes` bytes of a WAL, or all that it has now.
    fn log(&mut self, log: LogNumber, bytes: u64) -> Result<()> {
        let path = wal_file_name(&self.core.env.wal_directory(), log);
        let (file, length) = self.open(&path, false)?;
        let source = Source::of_range(file, path.into(), 0, length.min(bytes));
        let identity = self.identity(ObjectKind::Wal, log.0, 0, 0, source.length);
        let object = self.object(identity, &source)?;
        let piece = Piece { at: 0, length: source.length, object, object_at: 0 };
        self.restored(FileName::Wal(log), vec![piece]);
        Ok(())
    }

    /// Writes the manifest of `families` and the options into one object.
    fn catalogue(&mut self, families: &BTreeMap<ColumnFamilyId, FamilyState>) -> Result<()> {
        let (core, memory, at) = (self.core, MemVfs::new(), Path::new(CATALOGUE));
        let versions = &core.tree.versions;
        memory.create_dir_all(at).map_err(|error| Error::io("create", at, error))?;
        // The copy has its files for itself.
        versions.write_copy(&memory, at, versions.identity(), families, &[])?;
        let current = read_current(&memory, at)?;
        let current = current.ok_or(Error::Closed)?;
        self.record.manifest = current.manifest;
        self.record.manifest_synced = current.synced;
        let manifest = FileName::Manifest(FileId(current.manifest));
        let mut bytes = contents(&memory, &manifest.path(at))?;
        let length = bytes.len() as u64;
        let options = core.background.chores.options_text_of_copy();
        bytes.extend_from_slice(options.as_bytes());
        let identity = self.identity(ObjectKind::Catalogue, 0, 0, 0, bytes.len() as u64);
        let path = manifest.path(&core.env.directory);
        let object = self.object(identity, &Source::of_bytes(bytes, &path))?;
        let piece = |length, object_at| vec![Piece { at: 0, length, object, object_at }];
        self.restored(manifest, piece(length, 0));
        self.restored(FileName::Options, piece(options.len() as u64, length));
        Ok(())
    }

    /// Copies a file as a whole, perhaps but for its holes. An object of an earlier backup is used
    /// only if its bytes are the same, because holes come and go: a database that was restored may
    /// need what its source has punched since.
    fn whole(&mut self, id: FileId, has_holes: bool) -> Result<()> {
        let path: Arc<Path> = table_file_name(&self.core.env.directory, id).into();
        let (file, length) = self.open(&path, false)?;
        let source = if has_holes {
            Source::without_holes(file, path, length, &mut self.pacer)?
        } else {
            Source::of_range(file, path, 0, length)
        };
        self.pacer.advance(length - source.length);
        let identity = self.identity(ObjectKind::File, id.0, 0, 0, source.length);
        let made = self.made.len();
        let object = self.object(identity, &source)?;
        if self.made.len() > made {
            self.unverified.insert(id);
        }
        let mut pieces = Vec::new();
        let mut object_at = 0;
        for Range { start, end } in source.ranges {
            let length = end - start;
            pieces.push(Piece { at: start, length, object, object_at });
            object_at += length;
        }
        self.restored(FileName::Table(id), pieces);
        Ok(())
    }

    /// Copies the outline of a compaction file, and `tables` of it.
    fn tables(&mut self, id: FileId, tables: &[Arc<TableMeta>]) -> Result<()> {
        let path: Arc<Path> = table_file_name(&self.core.env.directory, id).into();
        let direct = self.core.env.options.load().writes_directly();
        let (file, _) = self.open(&path, direct)?;
        let outline = Outline::read(&file, &path, id, Some(self.record.uid), CLASS)?;
        let mut bytes = outline.header().to_vec();
        bytes.extend_from_slice(outline.tail());
        let (head, tail) = (outline.header().len() as u64, outline.tail().len() as u64);
        let identity = self.identity(ObjectKind::Outline, id.0, 0, outline.stamp, head + tail);
        let object = self.object(identity, &Source::of_bytes(bytes, &path))?;
        let mut pieces = vec![
            Piece { at: 0, length: head, object, object_at: 0 },
            Piece { at: outline.directory_at(), length: tail, object, object_at: head },
        ];
        for table in tables {
            let Some((at, length)) = extent(table) else { continue };
            let identity =
                self.identity(ObjectKind::Table, id.0, table.id.0, outline.stamp, length);
            let source = Source::of_range(file.clone(), path.clone(), at, length);
            let object = match self.find(identity)? {
                Some(object) => {
                    // The table was verified, but what is copied of its values was not.
                    if table.files().any(|file| self.unverified.contains(&file)) {
                        self.verify(&source, table)?;
                    }
                    self.shared(object)
                }
                None => self.table(identity, source, table)?,
            };
            pieces.push(Piece { at, length, object, object_at: 0 });
        }
        pieces.sort_by_key(|piece| piece.at);
        self.restored(FileName::Table(id), pieces);
        Ok(())
    }

    /// Verifies and copies a table that no backup is known to have.
    fn table(&mut self, identity: Identity, source: Source, meta: &TableMeta) -> Result<usize> {
        let source = if source.length <= IN_MEMORY_BYTES_MAX {
            source.into_memory(&mut self.pacer)?
        } else {
            source
        };
        self.verify(&source, meta)?;
        self.object(identity, &source)
    }

    /// Verifies a table, and its values in other files.
    fn verify(&mut self, source: &Source, meta: &TableMeta) -> Result<()> {
        let values = self.core.tree.tables.values();
        verify_table(source, meta, self.record.uid, values, &mut self.pacer)
    }

    /// Returns the index of the object that holds the bytes of `source`. Writes it if no earlier
    /// backup has it.
    fn object(&mut self, identity: Identity, source: &Source) -> Result<usize> {
        if let Some(object) = self.find(identity)? {
            return Ok(self.shared(object));
        }
        let known: &Known = self.known;
        if let Some(known) = known.objects.get(&identity) {
            // Numbers do not tell it from others, or it is damaged, but the content tells.
            let sums = source.copy(&mut self.pacer, None)?;
            let same = || known.iter().filter(|object| object.sums == sums);
            for object in same() {
                if self.has(object)? {
                    return Ok(self.shared(object.clone()));
                }
            }
            if let Some(object) = same().next()
                && let Some(object) = self.write_again(object, source)?
            {
                return Ok(object);
            }
        }
        let mut object = Object { identity, nonce: random_uid(), sums: Vec::new() };
        let key = object.key(self.record.id);
        self.made.push(key.clone());
        let mut writer = self.store.create(&key)?;
        object.sums = source.copy(&mut self.pacer, Some(writer.as_mut()))?;
        writer.finish()?;
        self.record.objects.push(object);
        Ok(self.record.objects.len() - 1)
    }

    /// Replaces a damaged object of earlier backups by the same bytes, for all of them. It stays
    /// after a failure. Returns its index; `None` if dead values were punched meanwhile, so that
    /// `source` has other bytes now.
    fn write_again(&mut self, object: &Object, source: &Source) -> Result<Option<usize>> {
        let mut writer = self.store.create(&object.key(self.record.id))?;
        let sums = source.copy(&mut self.pacer, Some(writer.as_mut()))?;
        if sums != object.sums {
            if source.may_be_punched {
                return Ok(None);
            }
            let kind = CorruptionKind::Inconsistent("read twice, it differs");
            return Err(Error::corruption(&source.path, 0, kind));
        }
        writer.finish()?;
        self.stored.insert(object.key(self.record.id), Some(object.identity.length));
        self.record.objects.push(object.clone());
        Ok(Some(self.record.objects.len() - 1))
    }

    /// Returns the object of an earlier backup that is known to have the same content.
    fn find(&mut self, identity: Identity) -> Result<Option<Object>> {
        let known: &Known = self.known;
        let known = known.objects.get(&identity).filter(|_| identity.stamp != 0);
        for object in known.into_iter().flatten() {
            if self.has(object)? {
                return Ok(Some(object.clone()));
            }
        }
        Ok(None)
    }

    /// Returns true if an object is there and has its length.
    fn has(&mut self, object: &Object) -> Result<bool> {
        let key = object.key(self.record.id);
        let Some(length) = self.stored.get_mut(&key) else { return Ok(false) };
        let length = match *length {
            Some(length) => length,
            None => {
                let bytes = self.store.open(&key).and_then(|reader| reader.bytes());
                *length.insert(match bytes {
                    Err(Error::Corruption { kind: CorruptionKind::MissingFile, .. }) => {
                        return Ok(false);
                    }
                    bytes => bytes?,
                })
            }
        };
        Ok(length == object.identity.length)
    }

    /// Uses an object of an earlier backup. Returns its index.
    fn shared(&mut self, object: Object) -> usize {
        self.pacer.advance(object.identity.length);
        self.record.objects.push(object);
        self.record.objects.len() - 1
    }

    fn identity(
        &self,
        kind: ObjectKind,
        file: u64,
        table: u64,
        stamp: u64,
        length: u64,
    ) -> Identity {
        Identity { kind, uid: self.record.uid, file, table, stamp, length }
    }

    fn restored(&mut self, name: FileName, pieces: Vec<Piece>) {
        self.record.files.push(RestoredFile { name, pieces });
    }

    /// Opens a file of the database. Returns it with its length.
    fn open(&self, path: &Path, direct: bool) -> Result<(Arc<dyn VfsFile>, u64)> {
        let file = self.core.env.vfs.open(path, OpenOptions::READ.direct(direct));
        let file = file.map_err(|error| Error::of_pooled("open", path, error))?;
        let length = file.len().map_err(|e| Error::io("read the length of", path, e))?;
        Ok((file, length))
    }

    /// Writes the record, once everything that it names is durable.
    fn publish(&mut self) -> Result<()> {
        self.pacer.check()?;
        self.store.sync()?;
        let mut there: BTreeMap<_, _> = self.store.list_lengths(SHARED)?.into_iter().collect();
        there.extend(self.store.list_lengths(PRIVATE)?);
        for object in &self.record.objects {
            let key = object.key(self.record.id);
            let kind = match there.get(&key) {
                None => CorruptionKind::MissingFile,
                Some(Some(length)) if *length != object.identity.length => {
                    CorruptionKind::Inconsistent("not the length that was written")
                }
                Some(_) => continue,
            };
            return Err(Error::corruption(&self.store.location(&key), 0, kind));
        }
        self.is_published = true;
        let mut writer = self.store.create(&record_key(self.record.id))?;
        writer.append(&self.record.encode())?;
        writer.finish()?;
        self.store.sync()
    }

    /// Deletes what was written, after a failure. Best effort: the next open deletes what stays.
    fn undo(&mut self) {
        let delete_record =
            || self.store.delete(&record_key(self.record.id)).and_then(|()| self.store.sync());
        if self.is_published && delete_record().is_err() {
            return;
        }
        for key in &self.made {
            let _stays = self.store.delete(key);
        }
    }
}

/// Returns the bytes that a WAL counts in the progress; a file without a known end counts none.
fn log_bytes(bytes: u64) -> u64 {
    if bytes == u64::MAX { 0 } else { bytes }
}

/// Returns what to copy of the files of `families`.
fn wanted(families: &BTreeMap<ColumnFamilyId, FamilyState>) -> Wanted {
    let mut files = Wanted::new();
    for (_, _, table) in families.values().flat_map(|family| family.version.tables()) {
        let how = if extent(table).is_some() { How::Tables } else { How::Whole };
        let own = std::iter::once((how, table.placement.file()));
        let log = table.placement.values().map(|file| (How::Whole, file));
        let values = table.values.files.iter().map(|one| (How::Values, one.file));
        for file in own.chain(log).chain(values) {
            files.entry(file).or_default().push(table.clone());
        }
    }
    files
}

/// Returns the bytes of a file.
fn contents(vfs: &dyn Vfs, path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::io("read", path, error);
    let file = vfs.open(path, OpenOptions::READ).map_err(failed)?;
    let length = file.len().map_err(failed)?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0, IoClass::Manifest).map_err(failed)?;
    Ok(bytes)
}
