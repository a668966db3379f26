//! The engine's side of a column family: its memtables, its version, and the super version through
//! which readers see both.
//!
//! 1. [`ColumnFamilyData::seal`] makes the active memtable immutable and puts a fresh one in its
//!    place. The commit leader calls it.
//! 2. A flush takes the oldest of the [`Sealed`] memtables.
//! 3. [`ColumnFamilyData::install`] makes a new version visible, and drops the memtables that are
//!    in it. The version set calls it.
//! 4. Readers take [`ColumnFamilyData::super_version`] without a lock. Every change stores a new
//!    one.
//!
//! A column family with regions is several trees. The family itself holds the keys before the first
//! region, and each region is a `ColumnFamilyData` of its own. Clients have one handle for the
//! whole; all other parts of the engine treat each tree as a column family.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use sateen_control::version::{Region, Version};
use sateen_control::{Admission, ColumnFamilyId, Comparator, LogNumber, SeqNo, UserKey};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::names::shown;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::memtable::{ArenaPool, MemTable};
use sateen_store::table::ScanLengths;

use crate::admission::gate::AdmissionGate;
use crate::options::ColumnFamilyOptions;
use crate::tree::super_version::SuperVersion;

/// The column family of prepared transactions, which clients do not see. Its name is reserved.
pub(crate) const PREPARED: &str = "\0prepared";

/// Number of dropped column families whose names are remembered.
const DROPPED_MAX: usize = 100;

/// Fails if `name` is reserved.
pub(crate) fn check_family_name(name: &str) -> Result<()> {
    if name == PREPARED {
        let text = format!("the name {} is reserved for prepared transactions", shown(name));
        return Err(Error::InvalidArgument(text));
    }
    Ok(())
}

/// A sealed memtable, which waits for its flush to level 0.
#[derive(Clone)]
pub(crate) struct Sealed {
    pub(crate) memtable: Arc<MemTable>,
    /// An upper bound of its sequence numbers.
    pub(crate) last_seqno: SeqNo,
    /// The oldest WAL that may hold an entry of it.
    pub(crate) log: LogNumber,
}

/// The memtables of a column family besides the active one, and their sizes.
struct Memory {
    /// Sealed memtables that are not in a version yet, oldest first.
    sealed: Vec<Sealed>,
    /// Memtables that are in a version, and that readers may still hold.
    stored: Vec<Weak<MemTable>>,
    /// The oldest WAL that may hold an entry of the active memtable.
    active_log: LogNumber,
    sizes: MemtableSizes,
}

/// The sizes, in bytes, at which memtables are sealed.
struct MemtableSizes {
    /// Of the active memtable, unless the memory budget is smaller.
    active: u64,
    /// Of the next memtable.
    next: u64,
    /// The limit that the memory budget sets.
    budget: u64,
}

/// A column family, or a region of one. Handles, jobs and the commit path share it.
pub(crate) struct ColumnFamilyData {
    id: ColumnFamilyId,
    name: String,
    /// The region that it is, if it is one.
    region: Option<Region>,
    /// Its regions and the keys at which they begin, ascending. Empty if it has none. Set once,
    /// before the column family is used.
    regions: OnceLock<Vec<(UserKey, Arc<ColumnFamilyData>)>>,
    options: ArcSwap<ColumnFamilyOptions>,
    comparator: Comparator,
    /// True if each value is stored with the time of its write. Changes only while an empty
    /// database is opened.
    has_times: AtomicBool,
    /// The size at which the active memtable is sealed. Writers read it without the lock.
    memtable_bytes_max: AtomicUsize,
    super_version: ArcSwap<SuperVersion>,
    /// The option of this name. Readers read it without the lock.
    seek_compaction_bytes: AtomicU64,
    /// How far scans read.
    scans: Arc<ScanLengths>,
    memory: Mutex<Memory>,
    /// Entries up to this sequence number must all be flushed: none may stay in memory as hot.
    to_store: AtomicU64,
    /// True once the timeline has noted that there is no WAL for values that should stay in one.
    lacks_log: AtomicBool,
    /// Two flags: the active memtable is to be sealed although it is not full; and a memtable was
    /// sealed so, and its flush is still to be requested.
    early: (AtomicBool, AtomicBool),
    dropped: AtomicBool,
    /// The gate that its writers pass.
    pub(crate) gate: AdmissionGate,
    pool: Arc<ArenaPool>,
}

impl ColumnFamilyData {
    /// Returns a column family with an empty memtable over `version`.
    pub(crate) fn new(
        id: ColumnFamilyId,
        name: String,
        region: Option<Region>,
        options: ColumnFamilyOptions,
        version: Arc<Version>,
        pool: Arc<ArenaPool>,
    ) -> ColumnFamilyData {
        let memtable_bytes = usize::try_from(options.memtable_bytes).unwrap_or(usize::MAX);
        let comparator = version.comparator().clone();
        let active = MemTable::new(memtable_bytes, Some(pool.clone()), &comparator);
        let active = Arc::new(active);
        let super_version = SuperVersion::new(active, Vec::new(), version, SeqNo(0));
        ColumnFamilyData {
            id,
            name,
            region,
            regions: OnceLock::new(),
            memtable_bytes_max: AtomicUsize::new(memtable_bytes),
            super_version: ArcSwap::from_pointee(super_version),
            seek_compaction_bytes: AtomicU64::new(options.seek_compaction_bytes),
            memory: Mutex::new(Memory {
                sealed: Vec::new(),
                stored: Vec::new(),
                active_log: LogNumber(0),
                sizes: MemtableSizes {
                    active: options.memtable_bytes,
                    next: options.memtable_bytes,
                    budget: u64::MAX,
                },
            }),
            comparator,
            has_times: AtomicBool::new(options.ttl.is_some()),
            options: ArcSwap::from_pointee(options),
            scans: Arc::default(),
            to_store: AtomicU64::new(0),
            lacks_log: AtomicBool::new(false),
            early: Default::default(),
            dropped: AtomicBool::new(false),
            gate: AdmissionGate::default(),
            pool,
        }
    }

    pub(crate) fn id(&self) -> ColumnFamilyId {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is known of its scans.
    pub(crate) fn scans(&self) -> &Arc<ScanLengths> {
        &self.scans
    }

    /// Returns the region that it is, if it is one.
    pub(crate) fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }

    /// Sets its regions. Called once, before the column family is used.
    pub(crate) fn set_regions(&self, mut regions: Vec<Arc<ColumnFamilyData>>) {
        let begin = |data: &Arc<ColumnFamilyData>| data.region.as_ref().map(|r| r.begin.clone());
        regions.sort_by_key(begin);
        let regions = regions.into_iter().filter_map(|data| Some((begin(&data)?, data)));
        let _first = self.regions.set(regions.collect());
    }

    #[inline]
    fn regions(&self) -> &[(UserKey, Arc<ColumnFamilyData>)] {
        self.regions.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the tree that holds `key`: a region, or the family itself.
    #[inline]
    pub(crate) fn tree<'a>(self: &'a Arc<Self>, key: &[u8]) -> &'a Arc<ColumnFamilyData> {
        let regions = self.regions();
        if regions.is_empty() {
            return self;
        }
        let after = regions.partition_point(|(begin, _)| *begin <= *key);
        after.checked_sub(1).and_then(|at| regions.get(at)).map_or(self, |(_, data)| data)
    }

    /// Returns all its trees in the order of their keys, the family itself first.
    pub(crate) fn trees(self: &Arc<Self>) -> impl Iterator<Item = &Arc<ColumnFamilyData>> {
        std::iter::once(self).chain(self.regions().iter().map(|(_, data)| data))
    }

    /// Returns the trees that may hold keys from `begin` to `end`, both inclusive.
    pub(crate) fn trees_between(
        self: &Arc<Self>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> impl Iterator<Item = &Arc<ColumnFamilyData>> {
        let regions = self.regions();
        let first = begin.map_or(0, |key| regions.partition_point(|(at, _)| *at <= *key));
        let last = end.map_or(regions.len(), |key| regions.partition_point(|(at, _)| *at <= *key));
        self.trees().take(last + 1).skip(first)
    }

    /// Returns the id of the column family that clients know, of which this may be a region.
    pub(crate) fn whole(&self) -> ColumnFamilyId {
        self.region.as_ref().map_or(self.id, |region| region.of)
    }

    /// Returns the keys at which its regions begin, ascending.
    pub(crate) fn region_begins(&self) -> impl ExactSizeIterator<Item = &UserKey> {
        self.regions().iter().map(|(begin, _)| begin)
    }

    pub(crate) fn options(&self) -> Arc<ColumnFamilyOptions> {
        self.options.load_full()
    }

    /// Returns the comparator of its keys.
    #[inline]
    pub(crate) fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Returns true if each value is stored with the time of its write.
    #[inline]
    pub(crate) fn has_times(&self) -> bool {
        self.has_times.load(Ordering::Relaxed)
    }

    /// Gives the column family, which is empty, the options that it is opened with, and with them
    /// another form of its values. Only for recovery, where nobody else reads or writes.
    pub(crate) fn change_form(&self, options: ColumnFamilyOptions) {
        self.has_times.store(options.ttl.is_some(), Ordering::Relaxed);
        self.set_options(options);
    }

    /// Returns the bytes of a table that are worth compacting for one read that was charged to it;
    /// 0 if reads are not charged.
    #[inline]
    pub(crate) fn seek_compaction_bytes(&self) -> u64 {
        self.seek_compaction_bytes.load(Ordering::Relaxed)
    }

    /// Replaces the options. A changed memtable size takes effect at once. If it is not changed,
    /// the size that the tuner has set stays.
    pub(crate) fn set_options(&self, options: ColumnFamilyOptions) {
        let mut memory = lock(&self.memory);
        let sizes = &mut memory.sizes;
        if options.memtable_bytes != self.options.load().memtable_bytes {
            (sizes.active, sizes.next) = (options.memtable_bytes, options.memtable_bytes);
        }
        // The memory budget may have been removed. If there is one, it is applied again soon.
        sizes.budget = u64::MAX;
        self.seek_compaction_bytes.store(options.seek_compaction_bytes, Ordering::Relaxed);
        self.options.store(Arc::new(options));
        self.sizes_changed(sizes);
    }

    /// Returns the size in bytes at which the active memtable is sealed: the option's value or the
    /// tuner's, or less if the memory budget demands it.
    #[inline]
    pub(crate) fn memtable_bytes_max(&self) -> usize {
        self.memtable_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns the larger of the sizes at which this memtable and the next one are sealed.
    pub(crate) fn memtable_bytes_ahead(&self) -> u64 {
        let sizes = &lock(&self.memory).sizes;
        sizes.active.max(sizes.next).min(sizes.budget)
    }

    /// Returns the size in bytes at which memtables are sealed from the next one on.
    pub(crate) fn next_memtable_bytes(&self) -> u64 {
        let sizes = &lock(&self.memory).sizes;
        sizes.next.min(sizes.budget)
    }

    /// Limits memtables to `bytes` from now on, whatever the options and the tuner say.
    pub(crate) fn limit_memtable(&self, bytes: u64) {
        let mut memory = lock(&self.memory);
        memory.sizes.budget = bytes;
        self.sizes_changed(&memory.sizes);
    }

    /// Sets the size at which memtables are sealed, from the next one on. The size of the active
    /// one stays: if it were sealed now for being larger, writers might have to wait for its flush.
    pub(crate) fn adjust_memtables(&self, bytes: u64) {
        lock(&self.memory).sizes.next = bytes;
    }

    /// Publishes the size of the active memtable to writers.
    fn sizes_changed(&self, sizes: &MemtableSizes) {
        let bytes = usize::try_from(sizes.active.min(sizes.budget)).unwrap_or(usize::MAX);
        self.memtable_bytes_max.store(bytes.max(1), Ordering::Relaxed);
    }

    /// Demands that all entries up to `seqno` are flushed: none stays in memory as hot.
    pub(crate) fn store_through(&self, seqno: SeqNo) {
        self.to_store.fetch_max(seqno.0, Ordering::AcqRel);
    }

    /// Returns true if all entries up to `seqno` must be flushed.
    pub(crate) fn is_to_store(&self, seqno: SeqNo) -> bool {
        seqno.0 <= self.to_store.load(Ordering::Acquire)
    }

    /// Has the next commit leader seal the memtable, which is then flushed at once.
    pub(crate) fn seal_early(&self) {
        self.early.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if `memtable`, the active one, should be sealed.
    pub(crate) fn wants_seal(&self, memtable: &MemTable) -> bool {
        memtable.used_bytes() >= self.memtable_bytes_max() || self.early.0.load(Ordering::Relaxed)
    }

    /// Returns true if a memtable was sealed early since the last call.
    pub(crate) fn was_sealed_early(&self) -> bool {
        self.early.1.swap(false, Ordering::Relaxed)
    }

    /// Notes that there is no WAL for values that should stay in one. Returns true on the first
    /// call.
    pub(crate) fn note_lack_of_log(&self) -> bool {
        !self.lacks_log.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        // Control does not decide about its writers any more. Those that wait go on, and learn that
        // the family is dropped.
        self.gate.publish(Admission::default());
    }

    /// Returns what readers see now, without a lock.
    #[inline]
    pub(crate) fn super_version(&self) -> arc_swap::Guard<Arc<SuperVersion>> {
        self.super_version.load()
    }

    pub(crate) fn pin_super_version(&self) -> Arc<SuperVersion> {
        self.super_version.load_full()
    }

    /// Returns an empty memtable to take the place of the active one.
    pub(crate) fn new_memtable(&self) -> Arc<MemTable> {
        {
            let mut memory = lock_timed(&self.memory);
            memory.sizes.active = memory.sizes.next;
            self.sizes_changed(&memory.sizes);
        }
        let pool = Some(self.pool.clone());
        Arc::new(MemTable::new(self.memtable_bytes_max(), pool, &self.comparator))
    }

    pub(crate) fn active_memtable(&self) -> Arc<MemTable> {
        self.super_version().active.clone()
    }

    /// Returns the oldest WAL that may hold an entry of the active memtable.
    pub(crate) fn active_log(&self) -> LogNumber {
        lock(&self.memory).active_log
    }

    /// Sets the WAL that will hold the first entry of the active memtable, which is empty.
    pub(crate) fn set_active_log(&self, log: LogNumber) {
        lock_timed(&self.memory).active_log = log;
    }

    /// Seals the active memtable and puts `fresh` in its place. Called by the commit leader.
    pub(crate) fn seal(&self, fresh: Arc<MemTable>, last_seqno: SeqNo) {
        let mut memory = lock_timed(&self.memory);
        let log = memory.active_log;
        let current = self.super_version.load_full();
        current.active.seal();
        if self.early.0.swap(false, Ordering::Relaxed) {
            self.early.1.store(true, Ordering::Relaxed);
        }
        memory.sealed.push(Sealed { memtable: current.active.clone(), last_seqno, log });
        let sealed = newest_first(&memory.sealed);
        let next =
            SuperVersion::new(fresh, sealed, current.version.clone(), current.stored_through);
        self.super_version.store(Arc::new(next));
    }

    /// Puts `fresh` in the place of the active memtable and returns that one, for the caller to
    /// store. Only for recovery, where nobody else reads or writes.
    pub(crate) fn take_active(&self, fresh: Arc<MemTable>) -> Arc<MemTable> {
        let _memory = lock(&self.memory);
        let current = self.super_version.load_full();
        current.active.seal();
        let next =
            SuperVersion::new(fresh, current.sealed.clone(), current.version.clone(), SeqNo(0));
        self.super_version.store(Arc::new(next));
        current.active.clone()
    }

    /// Returns the sealed memtables, oldest first.
    pub(crate) fn sealed(&self) -> Vec<Sealed> {
        lock(&self.memory).sealed.clone()
    }

    /// Returns the number of sealed memtables, and their bytes.
    pub(crate) fn sealed_usage(&self) -> (usize, u64) {
        let memory = lock(&self.memory);
        let bytes = memory.sealed.iter().map(|sealed| sealed.memtable.memory_bytes() as u64);
        (memory.sealed.len(), bytes.sum())
    }

    /// Returns the bytes of memtables that are flushed, but still held by readers.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held: Vec<_> = {
            let mut memory = lock_timed(&self.memory);
            memory.stored.retain(|memtable| memtable.strong_count() > 0);
            memory.stored.iter().filter_map(Weak::upgrade).collect()
        };
        // Outside of the lock, because dropping `held` may free a memtable.
        held.iter().map(|memtable| memtable.memory_bytes() as u64).sum()
    }

    /// Returns true if enough memtables are sealed for a flush (`memtables_to_flush_min`).
    pub(crate) fn wants_flush(&self) -> bool {
        let sealed = lock_timed(&self.memory).sealed.len();
        sealed >= (self.options.load().memtables_to_flush_min as usize).max(1)
    }

    /// Returns the oldest WAL that is needed for entries that are only in memory, if the oldest
    /// `flushed` sealed memtables count as stored.
    pub(crate) fn oldest_log_after(&self, flushed: usize) -> LogNumber {
        let memory = lock(&self.memory);
        memory.sealed.get(flushed).map_or(memory.active_log, |sealed| sealed.log)
    }

    /// Makes `version` visible to readers, and drops the oldest `flushed` sealed memtables, which
    /// are in it. Only the version set calls this.
    pub(crate) fn install(&self, version: Arc<Version>, flushed: usize) {
        let mut memory = lock(&self.memory);
        memory.stored.retain(|memtable| memtable.strong_count() > 0);
        let memory = &mut *memory;
        let current = self.super_version.load_full();
        let mut through = current.stored_through;
        for sealed in memory.sealed.drain(..flushed) {
            through = through.max(sealed.last_seqno);
            memory.stored.push(Arc::downgrade(&sealed.memtable));
        }
        let sealed = newest_first(&memory.sealed);
        let next = SuperVersion::new(current.active.clone(), sealed, version, through);
        self.super_version.store(Arc::new(next));
    }

    /// Makes `version` and `active` visible to readers, in a secondary. Only the version set calls
    /// this.
    pub(crate) fn follow(&self, version: Arc<Version>, active: Arc<MemTable>) {
        let next = SuperVersion::new(active, Vec::new(), version, SeqNo(0));
        self.super_version.store(Arc::new(next));
    }
}

/// All column families, regions included.
#[derive(Clone, Default)]
pub(crate) struct Families {
    /// The ids of the column families that clients know, by name.
    names: BTreeMap<String, ColumnFamilyId>,
    /// All column families and regions.
    ids: BTreeMap<ColumnFamilyId, Arc<ColumnFamilyData>>,
    /// The column family of prepared transactions, once there was one.
    prepared: Option<ColumnFamilyId>,
    /// The names of those that were dropped last, for errors.
    dropped: VecDeque<(ColumnFamilyId, String)>,
    /// Whether there was one since the open with times of values or with regions.
    had_own_forms: bool,
}

impl Families {
    /// Returns all column families and regions, in the order of their ids.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<ColumnFamilyData>> + Clone {
        self.ids.values()
    }

    /// Returns the column families that clients know, in the order of their names.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Arc<ColumnFamilyData>> {
        self.names.values().filter_map(|id| self.ids.get(id))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.names.keys()
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<ColumnFamilyData>> {
        self.ids.get(self.names.get(name)?)
    }

    pub(crate) fn by_id(&self, id: ColumnFamilyId) -> Option<&Arc<ColumnFamilyData>> {
        self.ids.get(&id)
    }

    /// Returns the name of a column family for errors. It may have been dropped.
    pub(crate) fn name_of(&self, id: ColumnFamilyId) -> String {
        let dropped = self.dropped.iter().find(|(dropped, _)| *dropped == id).map(|(_, name)| name);
        let known = self.ids.get(&id).map(|family| &family.name).or(dropped);
        known.cloned().unwrap_or_else(|| format!("of the number {}", id.0))
    }

    /// Returns the column family of prepared transactions, if there is one.
    pub(crate) fn prepared(&self) -> Option<&Arc<ColumnFamilyData>> {
        self.ids.get(&self.prepared?)
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Adds `data` and its regions.
    pub(crate) fn insert(&mut self, data: &Arc<ColumnFamilyData>) {
        if data.name == PREPARED {
            self.prepared = Some(data.id);
        } else {
            self.names.insert(data.name.clone(), data.id);
        }
        self.ids.extend(data.trees().map(|tree| (tree.id, tree.clone())));
        self.had_own_forms |= data.has_times() || data.region_begins().len() > 0;
    }

    /// Returns true if a column family of a number that nobody knows may have had times of values,
    /// or may have been a region.
    pub(crate) fn had_own_forms(&self) -> bool {
        self.had_own_forms
    }

    /// Removes `data` and its regions.
    pub(crate) fn remove(&mut self, data: &Arc<ColumnFamilyData>) {
        self.names.remove(&data.name);
        self.dropped.push_front((data.id, data.name.clone()));
        self.dropped.truncate(DROPPED_MAX);
        data.trees().for_each(|tree| drop(self.ids.remove(&tree.id)));
    }
}

fn newest_first(sealed: &[Sealed]) -> Vec<Arc<MemTable>> {
    sealed.iter().rev().map(|sealed| sealed.memtable.clone()).collect()
}
