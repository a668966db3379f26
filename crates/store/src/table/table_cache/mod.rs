//! The table cache: open tables and their files. Each *file* has one descriptor, which its tables
//! share (BoLT §3.2.1).
//!
//! 1. [`TableCache::get`] returns an open table (`get_open`): one hash lookup under the read lock
//!    of a shard.
//! 2. Otherwise `open` opens the file (`file`) and checks its header. Then it reads the table's end
//!    and gives it the files with separated values ([`ValueFiles`]).
//! 3. `enter` adds the table, unless another thread was faster or the file was evicted meanwhile.
//! 4. `make_room` evicts tables by CLOCK until memory is within its limit. Readers that hold such a
//!    table keep it until they release it.
//! 5. `forget_gone` removes entries of tables and files that are no longer open.
//! 6. The reclaimer calls [`OpenTables::evict`] and [`OpenTables::evict_file`] before it frees
//!    space.
//!
//! Descriptors have a limit of their own ([`DescriptorPool`]). A table borrows its file's
//! descriptor for each read, so descriptors can be closed while tables stay open.
//!
//! What must stay true: files are opened and read outside all locks (ARCHITECTURE.md, invariant 6).
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
use crate::base::waited;
use crate::files::reclaim::OpenTables;
use crate::files::{HEADER_BYTES, check_header, table_file_name};
use crate::table::table_images::TableImages;
use crate::table::{OnMiss, Table, TableSource, ValueFiles};
use crate::vfs::{DescriptorPool, OpenOptions, PooledFile, Vfs, VfsFile};

const SHARDS: usize = 64;

/// Where tables come from, and how much may be open.
#[derive(Clone, Debug)]
pub struct TableCacheOptions {
    pub vfs: Arc<dyn Vfs>,
    /// The database directory.
    pub directory: PathBuf,
    /// Uid of the database to which the files must belong.
    pub db_uid: u64,
    /// Whether reads bypass the page cache.
    pub direct: bool,
    /// Largest number of open descriptors, at least 1.
    pub open_files_max: usize,
    /// Most memory that open tables may take.
    pub memory_bytes_max: u64,
    /// The images of tables in memory.
    pub images: Option<Arc<TableImages>>,
}

/// Ids of tables are consecutive, so one multiplication spreads them.
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

/// A map by id, with [`IdHasher`].
type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// An open table with its CLOCK mark.
#[derive(Debug)]
struct OpenTable {
    table: Arc<Table>,
    /// Set by lookups, cleared by `make_room`.
    used: AtomicBool,
}

/// A part of the open tables, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(RwLock<IdMap<TableId, OpenTable>>);

/// A file with open tables.
#[derive(Clone, Debug)]
struct OpenFile {
    file: Arc<PooledFile>,
    path: Arc<Path>,
    /// Tables of the file that are open.
    tables: Vec<TableId>,
}

/// The open files and the order of eviction.
#[derive(Debug, Default)]
struct Files {
    open: IdMap<FileId, OpenFile>,
    /// Tables in CLOCK order. Some may be gone.
    tables: VecDeque<(TableId, FileId)>,
}

/// What is dropped after the locks are released, because closing a file is a system call.
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
    /// The files with separated values.
    values: Arc<ValueFiles>,
    /// The memory limit in force.
    memory_bytes_max: AtomicU64,
    shards: Box<[Shard]>,
    /// Locked while tables or files are added or removed. Lookups of open tables do not use it.
    files: Mutex<Files>,
    memory_bytes: AtomicU64,
    /// Number of open tables.
    tables: AtomicUsize,
    /// Number of tables opened since the cache was made.
    opens: AtomicU64,
}

impl TableCache {
    /// Returns an empty cache.
    pub fn new(options: TableCacheOptions) -> TableCache {
        let descriptors = DescriptorPool::new(options.vfs.clone(), options.open_files_max);
        let directory = options.directory.clone();
        let (pool, uid, direct) = (descriptors.clone(), options.db_uid, options.direct);
        TableCache {
            descriptors,
            values: Arc::new(ValueFiles::pooled(pool, directory, uid, direct)),
            memory_bytes_max: AtomicU64::new(options.memory_bytes_max),
            options,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            files: Mutex::default(),
            memory_bytes: AtomicU64::new(0),
            tables: AtomicUsize::new(0),
            opens: AtomicU64::new(0),
        }
    }

    /// Returns the table, and opens it for `class` if needed. The table must be live: in a version
    /// that the caller holds, or not yet in any.
    #[inline]
    pub fn get(&self, meta: &TableMeta, class: IoClass) -> Result<Arc<Table>> {
        match self.get_open(meta.id) {
            Some(table) => Ok(table),
            None => self.open(meta, class),
        }
    }

    /// Returns the table for a client, which may want it only if it is open.
    #[inline]
    pub fn get_for_client(&self, meta: &TableMeta, on_miss: OnMiss) -> Result<Arc<Table>> {
        match self.get_open(meta.id) {
            Some(table) => Ok(table),
            None if on_miss == OnMiss::Refuse => Err(Error::NotInMemory),
            None => self.open(meta, IoClass::Client),
        }
    }

    /// Returns the table if it is open.
    #[inline]
    pub fn get_open(&self, id: TableId) -> Option<Arc<Table>> {
        let shard = read(self.shard(id));
        let open = shard.get(&id)?;
        // Loaded before it is stored: a cache line that every reader wrote would move between
        // cores.
        if !open.used.load(Ordering::Relaxed) {
            open.used.store(true, Ordering::Relaxed);
        }
        Some(open.table.clone())
    }

    /// Returns the images of tables in memory.
    pub fn images(&self) -> Option<&Arc<TableImages>> {
        self.options.images.as_ref()
    }

    /// Returns the memory that open tables take, mostly indexes and filters.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Changes the limits of descriptors and memory. Tables above the memory limit are evicted when
    /// the next table is opened.
    pub fn set_limits(&self, (files, memory_bytes): (usize, u64)) {
        self.descriptors.set_max(files);
        self.memory_bytes_max.store(memory_bytes, Ordering::Relaxed);
    }

    /// Returns the number of open descriptors of tables, and their limit.
    pub fn descriptors(&self) -> (usize, usize) {
        (self.descriptors.in_use(), self.descriptors.max())
    }

    /// Returns false if another table would evict a table or close a descriptor.
    pub fn has_room(&self) -> bool {
        let memory_left = self.memory_bytes_max.load(Ordering::Relaxed) / 8 * 7;
        self.memory_bytes() < memory_left && self.descriptors.in_use() < self.descriptors.max()
    }

    /// Returns the files whose descriptors are open.
    pub fn open_files(&self) -> Vec<FileId> {
        let files = lock_timed(&self.files);
        let open = files.open.iter().filter(|(_, open)| open.file.is_open());
        let mut files: Vec<_> = open.map(|(id, _)| *id).collect();
        files.sort_unstable();
        files
    }

    /// Returns the number of open tables.
    pub fn open_tables(&self) -> usize {
        let open = self.shards.iter().map(|shard| read(&shard.0).len()).sum();
        assert_eq!(open, self.tables.load(Ordering::Relaxed));
        open
    }

    /// Returns how often a table was opened.
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// Opens a table that is not in the cache.
    #[cold]
    fn open(&self, meta: &TableMeta, class: IoClass) -> Result<Arc<Table>> {
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
        // The table's end is read from the file for sure. Later reads use the image.
        let mut table = Table::open(source, class)?;
        file.opened();
        if let Some(images) = &self.options.images {
            table = table.with_image(images.of(meta.id));
        }
        table = table.with_values(&self.values)?;
        Ok(self.enter(file_id, Arc::new(table)))
    }

    /// Adds an opened table. If another thread was faster, returns that thread's table.
    fn enter(&self, file_id: FileId, table: Arc<Table>) -> Arc<Table> {
        let id = table.id();
        let mut files = lock_timed(&self.files);
        // If the file was evicted meanwhile, the reader may use the table, but the cache does not
        // keep it. Otherwise a descriptor would be open that is not counted.
        let open_file = files.open.get_mut(&file_id);
        let Some(open_file) = open_file.filter(|open| is_same(&open.file, &table.source().file))
        else {
            return table;
        };
        let kept = match write(self.shard(id)).entry(id) {
            MapEntry::Occupied(existing) => existing.get().table.clone(),
            MapEntry::Vacant(vacant) => {
                // A first lookup does not count as use: a scan that opens every table once evicts
                // its own.
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

    /// Returns the open file. If needed, opens it and checks its header.
    fn file(&self, id: FileId, class: IoClass) -> Result<(Arc<PooledFile>, Arc<Path>)> {
        if let Some(open) = lock_timed(&self.files).open.get(&id) {
            return Ok((open.file.clone(), open.path.clone()));
        }
        let path = table_file_name(&self.options.directory, id);
        let path: Arc<Path> = self.options.vfs.place_of(&path).into();
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

    /// Returns the files with separated values of all tables.
    pub fn values(&self) -> &Arc<ValueFiles> {
        &self.values
    }

    /// Evicts tables, except `keep`, until memory is within its limit.
    fn make_room(&self, files: &mut Files, keep: TableId) -> Evicted {
        let mut evicted = Evicted::default();
        let memory_max = self.memory_bytes_max.load(Ordering::Relaxed);
        // Each table is spared at most once for having been used.
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

    /// Removes tables from the CLOCK queue that are gone or stand in it twice, once they are half
    /// of it. Does the same with files that have no open table and no open descriptor.
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

    /// Returns true if the table was looked up since the last call; `None` if it is not open.
    fn was_used(&self, id: TableId) -> Option<bool> {
        let shard = read(self.shard(id));
        Some(shard.get(&id)?.used.swap(false, Ordering::Relaxed))
    }

    /// Removes all open tables of a file from their shards.
    fn forget(&self, open: &OpenFile) -> Vec<Arc<Table>> {
        open.tables.iter().filter_map(|&id| self.remove(id)).collect()
    }

    /// Removes a table from its shard, and updates the counts.
    fn remove(&self, id: TableId) -> Option<Arc<Table>> {
        let removed = write(self.shard(id)).remove(&id)?.table;
        self.memory_bytes.fetch_sub(removed.memory_bytes() as u64, Ordering::Relaxed);
        self.tables.fetch_sub(1, Ordering::Relaxed);
        Some(removed)
    }

    /// Returns the shard of a table.
    #[inline]
    fn shard(&self, id: TableId) -> &RwLock<IdMap<TableId, OpenTable>> {
        // The hash map uses the product's high and low bits. The shard uses the low bits of the id.
        let shard = usize::try_from(id.0 % SHARDS as u64).unwrap_or(0);
        &self.shards[shard].0
    }
}

fn as_file(file: &Arc<PooledFile>) -> Arc<dyn VfsFile> {
    file.clone()
}

impl TableCache {
    /// Closes all value files but these. An iterator on an older version opens one again.
    pub fn keep_value_files(&self, named: &BTreeSet<FileId>) {
        self.values.keep(named);
    }
}

/// Returns true if both are the same open file.
fn is_same(file: &Arc<PooledFile>, other: &Arc<dyn VfsFile>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(file), Arc::as_ptr(other))
}

#[cfg(test)]
mod tests;

impl OpenTables for TableCache {
    /// Frees the images of `tables`, which are read from their files from now on.
    fn forget_images(&self, tables: &mut dyn Iterator<Item = TableId>) {
        if let Some(images) = &self.options.images {
            images.forget(tables);
        }
    }

    /// Closes a table that no version names.
    fn evict(&self, id: TableId) {
        // The file's list and the shard change under one lock, so that a table that is opened again
        // meanwhile is in both or in neither.
        let mut files = lock_timed(&self.files);
        let Some(table) = self.remove(id) else { return };
        if let Some(open) = files.open.get_mut(&table.source().file_id) {
            open.tables.retain(|&other| other != id);
        }
        drop(files);
        drop(table);
    }

    /// Closes a file that is about to be removed, and its tables.
    fn evict_file(&self, id: FileId) {
        if let Some(images) = &self.options.images {
            images.forget_file(id);
        }
        let mut files = lock_timed(&self.files);
        let closed = files.open.remove(&id).map(|open| (self.forget(&open), open));
        drop(files);
        drop(closed);
        self.values.forget(id);
    }
}
