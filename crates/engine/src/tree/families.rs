//! A column family: its memtables, its version, and the one pointer through which readers see both.
//! One that has regions holds the keys before all of them itself; each region is a column family
//! too, to all but clients, who know the whole by one handle.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use sateen_control::version::{Region, Version};
use sateen_control::{Admission, ColumnFamilyId, Comparator, LogNumber, SeqNo, UserKey};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::plant::planted;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::memtable::{ArenaPool, MemTable};

use crate::admission::gate::AdmissionGate;
use crate::options::ColumnFamilyOptions;
use crate::tree::super_version::SuperVersion;

/// A memtable that takes no more writes, on its way to level 0.
#[derive(Clone)]
pub(crate) struct Sealed {
    pub(crate) memtable: Arc<MemTable>,
    /// No entry in it is newer.
    pub(crate) last_seqno: SeqNo,
    /// The oldest log that holds an entry of it.
    pub(crate) log: LogNumber,
}

struct Memory {
    /// Oldest first.
    sealed: Vec<Sealed>,
    /// Those that were stored, and may be held by readers still.
    stored: Vec<Weak<MemTable>>,
    /// The oldest log that may hold an entry of the active memtable.
    active_log: LogNumber,
    sizes: MemtableSizes,
}

/// At how many bytes memtables are sealed.
struct MemtableSizes {
    /// The active one, if the memory budget lets it.
    active: u64,
    /// The one after it.
    next: u64,
    /// What the memory budget leaves each.
    budget: u64,
}

/// The engine's side of a column family. Handles, jobs and the commit path share it.
pub(crate) struct ColumnFamilyData {
    id: ColumnFamilyId,
    name: String,
    /// What it is a part of, if it is.
    region: Option<Region>,
    /// Its parts besides itself and the keys at which they begin, ascending. Set once, before
    /// anybody uses it; empty if it has none.
    regions: OnceLock<Vec<(UserKey, Arc<ColumnFamilyData>)>>,
    options: ArcSwap<ColumnFamilyOptions>,
    comparator: Comparator,
    has_times: bool,
    memtable_bytes_max: AtomicUsize,
    super_version: ArcSwap<SuperVersion>,
    memory: Mutex<Memory>,
    /// Entries up to this sequence number are to be stored in tables, all of them.
    to_store: AtomicU64,
    /// It was told that there is no log for what should stay in it.
    lacks_log: AtomicBool,
    /// The memtable is to be sealed although it is not full, and one that was to be stored at once.
    early: (AtomicBool, AtomicBool),
    dropped: AtomicBool,
    /// How its writers are admitted.
    pub(crate) gate: AdmissionGate,
    pool: Arc<ArenaPool>,
}

impl ColumnFamilyData {
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
        let super_version = SuperVersion::new(active, Vec::new(), version);
        ColumnFamilyData {
            id,
            name,
            region,
            regions: OnceLock::new(),
            memtable_bytes_max: AtomicUsize::new(memtable_bytes),
            super_version: ArcSwap::from_pointee(super_version),
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
            has_times: options.ttl.is_some(),
            options: ArcSwap::from_pointee(options),
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

    /// What it is a part of, if it is.
    pub(crate) fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }

    /// Its parts besides itself. Called once, by who makes it.
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

    /// The part that holds `key`.
    #[inline]
    pub(crate) fn tree<'a>(self: &'a Arc<Self>, key: &[u8]) -> &'a Arc<ColumnFamilyData> {
        let regions = self.regions();
        if regions.is_empty() {
            return self;
        }
        let off_by_one = planted("region_off_by_one");
        let is_before =
            |(begin, _): &(UserKey, _)| *begin <= *key && !(off_by_one && *begin == *key);
        let after = regions.partition_point(is_before);
        after.checked_sub(1).and_then(|at| regions.get(at)).map_or(self, |(_, data)| data)
    }

    /// All its parts in the order of their keys: itself first.
    pub(crate) fn trees(self: &Arc<Self>) -> impl Iterator<Item = &Arc<ColumnFamilyData>> {
        std::iter::once(self).chain(self.regions().iter().map(|(_, data)| data))
    }

    /// The parts that may hold keys from `begin` to `end`, both inclusive.
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

    /// The number of the column family that clients know it as a part of.
    pub(crate) fn whole(&self) -> ColumnFamilyId {
        self.region.as_ref().map_or(self.id, |region| region.of)
    }

    /// The keys at which its parts but the first begin.
    pub(crate) fn region_begins(&self) -> impl ExactSizeIterator<Item = &UserKey> {
        self.regions().iter().map(|(begin, _)| begin)
    }

    pub(crate) fn options(&self) -> Arc<ColumnFamilyOptions> {
        self.options.load_full()
    }

    /// What its keys are compared by.
    #[inline]
    pub(crate) fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Whether each value is stored with the time of its write.
    #[inline]
    pub(crate) fn has_times(&self) -> bool {
        self.has_times
    }

    /// Another size of memtables counts at once; otherwise an adjusted one stays.
    pub(crate) fn set_options(&self, options: ColumnFamilyOptions) {
        let mut memory = lock(&self.memory);
        let sizes = &mut memory.sizes;
        if options.memtable_bytes != self.options.load().memtable_bytes {
            (sizes.active, sizes.next) = (options.memtable_bytes, options.memtable_bytes);
        }
        // The budget may have gone; otherwise it is looked at again soon.
        sizes.budget = u64::MAX;
        self.options.store(Arc::new(options));
        self.sizes_changed(sizes);
    }

    /// At so many bytes the memtable is sealed: what the options say or it was adjusted to, or less
    /// while the memory budget leaves less.
    #[inline]
    pub(crate) fn memtable_bytes_max(&self) -> usize {
        self.memtable_bytes_max.load(Ordering::Relaxed)
    }

    /// The larger of that and what the next one will be sealed at.
    pub(crate) fn memtable_bytes_ahead(&self) -> u64 {
        let sizes = &lock(&self.memory).sizes;
        sizes.active.max(sizes.next).min(sizes.budget)
    }

    /// At so many bytes memtables are sealed from the next one on.
    pub(crate) fn next_memtable_bytes(&self) -> u64 {
        let sizes = &lock(&self.memory).sizes;
        sizes.next.min(sizes.budget)
    }

    /// Limits memtables to `bytes` from now on, whatever the options say and they are adjusted to.
    pub(crate) fn limit_memtable(&self, bytes: u64) {
        let mut memory = lock(&self.memory);
        memory.sizes.budget = bytes;
        self.sizes_changed(&memory.sizes);
    }

    /// Memtables are sealed at so many bytes from the next one on. The active one stays as it is:
    /// if it were sealed now because it is larger, writers might have to wait for its flush.
    pub(crate) fn adjust_memtables(&self, bytes: u64) {
        lock(&self.memory).sizes.next = bytes;
    }

    fn sizes_changed(&self, sizes: &MemtableSizes) {
        let bytes = usize::try_from(sizes.active.min(sizes.budget)).unwrap_or(usize::MAX);
        self.memtable_bytes_max.store(bytes.max(1), Ordering::Relaxed);
    }

    /// Somebody wants all of it up to `seqno` in tables: nothing stays in memory for being hot.
    pub(crate) fn store_through(&self, seqno: SeqNo) {
        self.to_store.fetch_max(seqno.0, Ordering::AcqRel);
    }

    /// Whether all up to `seqno` is wanted in tables.
    pub(crate) fn is_to_store(&self, seqno: SeqNo) -> bool {
        seqno.0 <= self.to_store.load(Ordering::Acquire)
    }

    /// Whoever leads next, or earlier, seals the memtable, and it is stored at once.
    pub(crate) fn seal_early(&self) {
        self.early.0.store(true, Ordering::Relaxed);
    }

    /// Whether the memtable is to be sealed.
    pub(crate) fn wants_seal(&self, memtable: &MemTable) -> bool {
        memtable.used_bytes() >= self.memtable_bytes_max() || self.early.0.load(Ordering::Relaxed)
    }

    /// Whether one was sealed early since this was last asked.
    pub(crate) fn was_sealed_early(&self) -> bool {
        self.early.1.swap(false, Ordering::Relaxed)
    }

    /// There is no log for what should stay in it. Returns whether that is new.
    pub(crate) fn note_lack_of_log(&self) -> bool {
        !self.lacks_log.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        // Nobody decides about its writers any more: those that wait go on, and hear of the drop.
        self.gate.publish(Admission::default());
    }

    /// What readers see now, without a lock.
    #[inline]
    pub(crate) fn super_version(&self) -> arc_swap::Guard<Arc<SuperVersion>> {
        self.super_version.load()
    }

    pub(crate) fn pin_super_version(&self) -> Arc<SuperVersion> {
        self.super_version.load_full()
    }

    /// The memtable that takes the place of the active one.
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

    /// The oldest log that may hold an entry of the active memtable.
    pub(crate) fn active_log(&self) -> LogNumber {
        lock(&self.memory).active_log
    }

    /// The log that the (empty) active memtable's first entry will be in.
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
        let next = SuperVersion::new(fresh, sealed, current.version.clone());
        self.super_version.store(Arc::new(next));
    }

    /// Puts `fresh` in the place of the active memtable, which is stored by who takes it. Only
    /// where nobody else reads or writes.
    pub(crate) fn take_active(&self, fresh: Arc<MemTable>) -> Arc<MemTable> {
        let _memory = lock(&self.memory);
        let current = self.super_version.load_full();
        current.active.seal();
        let next = SuperVersion::new(fresh, current.sealed.clone(), current.version.clone());
        self.super_version.store(Arc::new(next));
        current.active.clone()
    }

    /// The sealed memtables, oldest first.
    pub(crate) fn sealed(&self) -> Vec<Sealed> {
        lock(&self.memory).sealed.clone()
    }

    /// How many memtables are sealed, and their bytes.
    pub(crate) fn sealed_usage(&self) -> (usize, u64) {
        let memory = lock(&self.memory);
        let bytes = memory.sealed.iter().map(|sealed| sealed.memtable.memory_bytes() as u64);
        (memory.sealed.len(), bytes.sum())
    }

    /// Bytes of memtables that are stored, and that readers have not let go of.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held: Vec<_> = {
            let mut memory = lock_timed(&self.memory);
            memory.stored.retain(|memtable| memtable.strong_count() > 0);
            memory.stored.iter().filter_map(Weak::upgrade).collect()
        };
        // Outside of the lock: this may be the last to let go.
        held.iter().map(|memtable| memtable.memory_bytes() as u64).sum()
    }

    /// True if as many memtables are sealed as are flushed together.
    pub(crate) fn wants_flush(&self) -> bool {
        let sealed = lock_timed(&self.memory).sealed.len();
        sealed >= (self.options.load().memtables_to_flush_min as usize).max(1)
    }

    /// The oldest log that holds anything that only memory has, when the oldest `flushed` sealed
    /// memtables count as stored.
    pub(crate) fn oldest_log_after(&self, flushed: usize) -> LogNumber {
        let memory = lock(&self.memory);
        memory.sealed.get(flushed).map_or(memory.active_log, |sealed| sealed.log)
    }

    /// Makes `version` the one that readers see, the oldest `flushed` sealed memtables being in it.
    /// Called by the version set alone.
    pub(crate) fn install(&self, version: Arc<Version>, flushed: usize) {
        let mut memory = lock(&self.memory);
        memory.stored.retain(|memtable| memtable.strong_count() > 0);
        let memory = &mut *memory;
        let stored = memory.sealed.drain(..flushed);
        memory.stored.extend(stored.map(|sealed| Arc::downgrade(&sealed.memtable)));
        let sealed = newest_first(&memory.sealed);
        let active = self.super_version.load().active.clone();
        let next = SuperVersion::new(active, sealed, version);
        self.super_version.store(Arc::new(next));
    }

    /// Makes `version` and `active` what readers see. Called by the version set alone.
    pub(crate) fn follow(&self, version: Arc<Version>, active: Arc<MemTable>) {
        let next = SuperVersion::new(active, Vec::new(), version);
        self.super_version.store(Arc::new(next));
    }
}

/// All column families, regions included.
#[derive(Clone, Default)]
pub(crate) struct Families {
    /// Those that clients know.
    names: BTreeMap<String, ColumnFamilyId>,
    ids: BTreeMap<ColumnFamilyId, Arc<ColumnFamilyData>>,
}

impl Families {
    /// All of them, by number.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<ColumnFamilyData>> + Clone {
        self.ids.values()
    }

    /// Those that clients know, by name.
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

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Adds `data` with all its parts.
    pub(crate) fn insert(&mut self, data: &Arc<ColumnFamilyData>) {
        self.names.insert(data.name.clone(), data.id);
        self.ids.extend(data.trees().map(|tree| (tree.id, tree.clone())));
    }

    /// Removes `data` with all its parts.
    pub(crate) fn remove(&mut self, data: &Arc<ColumnFamilyData>) {
        self.names.remove(&data.name);
        data.trees().for_each(|tree| drop(self.ids.remove(&tree.id)));
    }
}

fn newest_first(sealed: &[Sealed]) -> Vec<Arc<MemTable>> {
    sealed.iter().rev().map(|sealed| sealed.memtable.clone()).collect()
}
