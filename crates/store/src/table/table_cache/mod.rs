//! The open tables and their files: one descriptor for each *file*, shared by its tables (BoLT
//! §3.2.1). A lookup holds the read lock of one shard for one hash lookup. Files are opened and
//! read outside of all locks (invariant 6).
//!
//! Descriptors and table memory have limits of their own. A table borrows the descriptor of its
//! file for each read (`vfs/descriptors.rs`). So the least recently used descriptors can be closed
//! while tables stay open and iterators and jobs hold any number of them. If tables take too much
//! memory, tables that were not used lately are dropped; readers that hold one keep it until they
//! release it.
//!
//! Lock order: `files`, then one shard.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use sateen_control::version::{Placement, TableMeta};
use sateen_control::{FileId, IoClass, TableId};

use crate::base::error::{Error, Result};
use crate::base::locks::{lock_timed, read, write};
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{Mutex, RwLock};
use crate::base::{tier, waited};
use crate::files::reclaim::OpenTables;
use crate::files::{HEADER_BYTES, check_header, table_file_name};
use crate::table::table_images::TableImages;
use crate::table::{Table, TableSource, ValuesFile};
use crate::vfs::{DescriptorPool, OpenOptions, PooledFile, Vfs, VfsFile};

const SHARDS: usize = 64;

/// Where tables come from, and how much may be open.
#[derive(Clone, Debug)]
pub struct TableCacheOptions {
    pub vfs: Arc<dyn Vfs>,
    /// The database directory.
    pub directory: PathBuf,
    /// The database to which the files must belong.
    pub db_uid: u64,
    /// Whether reads bypass the page cache.
    pub direct: bool,
    /// How many descriptors may be open, at least 1.
    pub open_files_max: usize,
    /// How much memory open tables may take.
    pub memory_bytes_max: u64,
    /// Where tables are that are in memory as a whole.
    pub images: Option<Arc<TableImages>>,
}

/// Table numbers come one after the other: one multiplication spreads them.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

#[derive(Debug)]
struct OpenTable {
    table: Arc<Table>,
    /// Set by lookups, cleared by the search for something to evict.
    used: AtomicBool,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(RwLock<IdMap<TableId, OpenTable>>);

#[derive(Clone, Debug)]
struct OpenFile {
    file: Arc<PooledFile>,
    path: Arc<Path>,
    /// Its tables that are open.
    tables: Vec<TableId>,
}

#[derive(Debug, Default)]
struct Files {
    open: IdMap<FileId, OpenFile>,
    /// Files that have values of open tables, which hold them.
    values: IdMap<FileId, Weak<PooledFile>>,
    /// Tables in the order in which they are looked at for eviction; some may be gone.
    tables: VecDeque<(TableId, FileId)>,
}

/// What is dropped when no lock is held: closing a file is a system call.
#[derive(Debug, Default)]
struct Evicted {
    _files: Vec<OpenFile>,
    _tables: Vec<Arc<Table>>,
}

/// The cache of open tables and files.
#[derive(Debug)]
pub struct TableCache {
    options: TableCacheOptions,
    descriptors: Arc<DescriptorPool>,
    /// The bound in force.
    memory_bytes_max: AtomicU64,
    shards: Box<[Shard]>,
    files: Mutex<Files>,
    memory_bytes: AtomicU64,
    /// How many tables are open.
    tables: AtomicUsize,
    opens: AtomicU64,
}

impl TableCache {
    /// An empty cache.
    pub fn new(options: TableCacheOptions) -> TableCache {
        TableCache {
            descriptors: DescriptorPool::new(options.vfs.clone(), options.open_files_max),
            memory_bytes_max: AtomicU64::new(options.memory_bytes_max),
            options,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            files: Mutex::default(),
            memory_bytes: AtomicU64::new(0),
            tables: AtomicUsize::new(0),
            opens: AtomicU64::new(0),
        }
    }

    /// The open table; opened, for `class`, if it was not. The table must be live: in a Version
    /// that the caller holds, or not yet in any.
    #[inline]
    pub fn get(&self, meta: &TableMeta, class: IoClass) -> Result<Arc<Table>> {
        match self.get_open(meta.id) {
            Some(table) => Ok(table),
            None => self.open(meta, class),
        }
    }

    /// The table if it is open.
    #[inline]
    pub fn get_open(&self, id: TableId) -> Option<Arc<Table>> {
        let shard = read(self.shard(id));
        let open = shard.get(&id)?;
        // Looked at before it is set: a line that all readers write would travel between them.
        if !open.used.load(Ordering::Relaxed) {
            open.used.store(true, Ordering::Relaxed);
        }
        Some(open.table.clone())
    }

    /// Where tables are that are in memory as a whole.
    pub fn images(&self) -> Option<&Arc<TableImages>> {
        self.options.images.as_ref()
    }

    /// Bytes of memory that open tables take: indexes and filters above all.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Other bounds: descriptors, and memory of tables. What memory is above its bound goes when
    /// the next table is opened.
    pub fn set_limits(&self, (files, memory_bytes): (usize, u64)) {
        self.descriptors.set_max(files);
        self.memory_bytes_max.store(memory_bytes, Ordering::Relaxed);
    }

    /// How many descriptors of tables are open, and how many may be.
    pub fn descriptors(&self) -> (usize, usize) {
        (self.descriptors.in_use(), self.descriptors.max())
    }

    /// False if a further table would put out another, or a descriptor.
    pub fn has_room(&self) -> bool {
        let memory_left = self.memory_bytes_max.load(Ordering::Relaxed) / 8 * 7;
        self.memory_bytes() < memory_left && self.descriptors.in_use() < self.descriptors.max()
    }

    /// The files whose descriptors are open.
    pub fn open_files(&self) -> Vec<FileId> {
        let files = lock_timed(&self.files);
        let open = files.open.iter().filter(|(_, open)| open.file.is_open());
        let mut files: Vec<_> = open.map(|(id, _)| *id).collect();
        files.sort_unstable();
        files
    }

    /// How many tables are open.
    pub fn open_tables(&self) -> usize {
        let open = self.shards.iter().map(|shard| read(&shard.0).len()).sum();
        assert_eq!(open, self.tables.load(Ordering::Relaxed));
        open
    }

    /// How many times a table was opened.
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    #[cold]
    fn open(&self, meta: &TableMeta, class: IoClass) -> Result<Arc<Table>> {
        tier::check()?;
        let _loads = waited::load();
        let _timed = perf::time(PerfMetric::FindTableNanos);
        self.opens.fetch_add(1, Ordering::Relaxed);
        let (file_id, offset) = match meta.placement {
            Placement::WholeFile(file) => (file, HEADER_BYTES),
            Placement::Slice { file, offset, .. } | Placement::Log { file, offset, .. } => {
                (file, offset)
            }
        };
        let (file, path) = self.file(file_id, class)?;
        let source = TableSource {
            file: file.clone(),
            path,
            table: meta.id,
            file_id,
            db_uid: self.options.db_uid,
            offset,
            length: meta.stored_bytes(),
            tail_bytes: meta.tail_bytes,
            global_seqno: meta.global_seqno,
            comparator: Some(meta.smallest.comparator().clone()),
            image: Weak::new(),
        };
        // What is opened is in the file for sure: only what comes then is read in memory.
        let mut table = Table::open(source, class)?;
        file.opened();
        if let Some(images) = &self.options.images {
            table = table.with_image(images.of(meta.id));
        }
        if let Some(values) = table.properties().values {
            table = table.with_values_in(self.values_file(values)?);
        }
        Ok(self.enter(file_id, Arc::new(table)))
    }

    /// Enters an opened table, unless another thread was faster: then its one is the answer.
    fn enter(&self, file_id: FileId, table: Arc<Table>) -> Arc<Table> {
        let id = table.id();
        let mut files = lock_timed(&self.files);
        // Evicted meanwhile: the reader may use the table, but it is not kept, so that no
        // descriptor is open that is not counted.
        let open_file = files.open.get_mut(&file_id);
        let Some(open_file) = open_file.filter(|open| is_same(&open.file, &table.source().file))
        else {
            return table;
        };
        let kept = match write(self.shard(id)).entry(id) {
            MapEntry::Occupied(existing) => existing.get().table.clone(),
            MapEntry::Vacant(vacant) => {
                // Used is what is used again: a scan that opens everything once evicts itself.
                vacant.insert(OpenTable { table: table.clone(), used: AtomicBool::new(false) });
                open_file.tables.push(id);
                files.tables.push_back((id, file_id));
                self.memory_bytes.fetch_add(table.memory_bytes() as u64, Ordering::Relaxed);
                self.tables.fetch_add(1, Ordering::Relaxed);
                table
            }
        };
        let evicted = self.make_room(&mut files, id);
        drop(files);
        drop(evicted);
        kept
    }

    /// The open file, opened and checked if it was not.
    fn file(&self, id: FileId, class: IoClass) -> Result<(Arc<PooledFile>, Arc<Path>)> {
        if let Some(open) = lock_timed(&self.files).open.get(&id) {
            return Ok((open.file.clone(), open.path.clone()));
        }
        let path: Arc<Path> = table_file_name(&self.options.directory, id).into();
        let options = OpenOptions::READ.direct(self.options.direct);
        let file = self.descriptors.file(&path, options);
        let file = file.map_err(|error| Error::of_pooled("open", &path, error))?;
        check_header(&as_file(&file), &path, id, self.options.db_uid, class)?;
        let mut files = lock_timed(&self.files);
        if let Some(open) = files.open.get(&id) {
            return Ok((open.file.clone(), open.path.clone()));
        }
        let open = OpenFile { file: file.clone(), path: path.clone(), tables: Vec::new() };
        files.open.insert(id, open);
        Ok((file, path))
    }

    /// The file that has values of tables, opened if no open table has its values there.
    fn values_file(&self, id: FileId) -> Result<ValuesFile> {
        let known = |files: &Files| files.values.get(&id).and_then(Weak::upgrade);
        let path: Arc<Path> = table_file_name(&self.options.directory, id).into();
        let found = known(&lock_timed(&self.files));
        let file = match found {
            Some(file) => file,
            None => {
                let opened = self.descriptors.file(&path, OpenOptions::READ);
                let opened = opened.map_err(|error| Error::of_pooled("open", &path, error))?;
                let mut files = lock_timed(&self.files);
                let file = known(&files).unwrap_or_else(|| opened.clone());
                files.values.retain(|_, file| file.strong_count() > 0);
                files.values.insert(id, Arc::downgrade(&file));
                drop(files);
                file
            }
        };
        ValuesFile::on(file, path)
    }

    /// Takes out tables, but not `keep`, until what is open is within its bound of memory.
    fn make_room(&self, files: &mut Files, keep: TableId) -> Evicted {
        let mut evicted = Evicted::default();
        let memory_max = self.memory_bytes_max.load(Ordering::Relaxed);
        // Each table is passed over at most once for having been used.
        let mut looks = files.tables.len() * 2;
        while looks > 0 && self.memory_bytes() > memory_max {
            looks -= 1;
            let Some((id, file)) = files.tables.pop_front() else { break };
            match self.was_used(id) {
                None => {}
                Some(used) if used || id == keep => files.tables.push_back((id, file)),
                Some(_) => {
                    evicted._tables.extend(self.remove(id));
                    if let Some(open) = files.open.get_mut(&file) {
                        open.tables.retain(|other| *other != id);
                    }
                }
            }
        }
        evicted._files = self.forget_gone(files);
        evicted
    }

    /// Tables that are gone, or were and are open again, stay in their order until they are half
    /// of it. So do files without an open table whose descriptor is closed.
    fn forget_gone(&self, files: &mut Files) -> Vec<OpenFile> {
        const FEW: usize = 1024;
        if files.tables.len() > 2 * self.tables.load(Ordering::Relaxed) + FEW {
            let mut seen = BTreeSet::new();
            let is_open = |id: &TableId| read(self.shard(*id)).contains_key(id);
            files.tables.retain(|(id, _)| seen.insert(*id) && is_open(id));
        }
        if files.open.len() <= 2 * self.tables.load(Ordering::Relaxed) + FEW {
            return Vec::new();
        }
        let idle = |open: &OpenFile| open.tables.is_empty() && !open.file.is_open();
        files.open.extract_if(|_, open| idle(open)).map(|(_, open)| open).collect()
    }

    /// Whether the table was looked up since this was last asked; `None` if it is not open.
    fn was_used(&self, id: TableId) -> Option<bool> {
        let shard = read(self.shard(id));
        Some(shard.get(&id)?.used.swap(false, Ordering::Relaxed))
    }

    fn forget(&self, open: &OpenFile) -> Vec<Arc<Table>> {
        open.tables.iter().filter_map(|&id| self.remove(id)).collect()
    }

    fn remove(&self, id: TableId) -> Option<Arc<Table>> {
        let removed = write(self.shard(id)).remove(&id)?.table;
        self.memory_bytes.fetch_sub(removed.memory_bytes() as u64, Ordering::Relaxed);
        self.tables.fetch_sub(1, Ordering::Relaxed);
        Some(removed)
    }

    #[inline]
    fn shard(&self, id: TableId) -> &RwLock<IdMap<TableId, OpenTable>> {
        // The hash table uses the product's high and low bits; the shard takes plain low ones.
        let shard = usize::try_from(id.0 % SHARDS as u64).unwrap_or(0);
        &self.shards[shard].0
    }
}

fn as_file(file: &Arc<PooledFile>) -> Arc<dyn VfsFile> {
    file.clone()
}

fn is_same(file: &Arc<PooledFile>, other: &Arc<dyn VfsFile>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(file), Arc::as_ptr(other))
}

#[cfg(test)]
mod tests;

impl OpenTables for TableCache {
    /// What is in memory as a whole of `tables` goes; they are read in their files from now on.
    fn forget_images(&self, tables: &mut dyn Iterator<Item = TableId>) {
        if let Some(images) = &self.options.images {
            images.forget(tables);
        }
    }

    /// Forgets a table that no Version has any more.
    fn evict(&self, id: TableId) {
        // The list of the file and the shard change under the one lock: a table that is opened
        // again meanwhile is in both or in neither.
        let mut files = lock_timed(&self.files);
        let Some(table) = self.remove(id) else { return };
        if let Some(open) = files.open.get_mut(&table.source().file_id) {
            open.tables.retain(|&other| other != id);
        }
        drop(files);
        drop(table);
    }

    /// Closes a file that is about to be removed, and forgets its tables.
    fn evict_file(&self, id: FileId) {
        if let Some(images) = &self.options.images {
            images.forget_file(id);
        }
        let mut files = lock_timed(&self.files);
        let closed = files.open.remove(&id).map(|open| (self.forget(&open), open));
        drop(files);
        drop(closed);
    }
}
