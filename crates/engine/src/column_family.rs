//! A column family: its memtables, its version, and the one pointer through which readers see both.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use sateen_control::version::Version;
use sateen_control::{Admission, ColumnFamilyId, LogNumber, SeqNo};

use crate::memtable::{ArenaPool, MemTable};
use crate::options::ColumnFamilyOptions;
use crate::read::SuperVersion;
use crate::sync::lock;
use crate::write::admission::AdmissionGate;

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
    /// The oldest log that may hold an entry of the active memtable.
    active_log: LogNumber,
}

/// The engine's side of a column family. Handles, jobs and the commit path share it.
pub(crate) struct ColumnFamilyData {
    id: ColumnFamilyId,
    name: String,
    options: ArcSwap<ColumnFamilyOptions>,
    memtable_bytes_max: AtomicUsize,
    super_version: ArcSwap<SuperVersion>,
    memory: Mutex<Memory>,
    dropped: AtomicBool,
    /// How its writers are admitted.
    pub(crate) gate: AdmissionGate,
    pool: Arc<ArenaPool>,
}

impl ColumnFamilyData {
    pub(crate) fn new(
        id: ColumnFamilyId,
        name: String,
        options: ColumnFamilyOptions,
        version: Arc<Version>,
        pool: Arc<ArenaPool>,
    ) -> ColumnFamilyData {
        let memtable_bytes = usize::try_from(options.memtable_bytes).unwrap_or(usize::MAX);
        let active = Arc::new(MemTable::new(memtable_bytes, Some(pool.clone())));
        let super_version = SuperVersion::new(active, Vec::new(), version);
        ColumnFamilyData {
            id,
            name,
            memtable_bytes_max: AtomicUsize::new(memtable_bytes),
            options: ArcSwap::from_pointee(options),
            super_version: ArcSwap::from_pointee(super_version),
            memory: Mutex::new(Memory { sealed: Vec::new(), active_log: LogNumber(0) }),
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

    pub(crate) fn options(&self) -> Arc<ColumnFamilyOptions> {
        self.options.load_full()
    }

    pub(crate) fn set_options(&self, options: ColumnFamilyOptions) {
        let bytes = usize::try_from(options.memtable_bytes).unwrap_or(usize::MAX);
        self.memtable_bytes_max.store(bytes, Ordering::Relaxed);
        self.options.store(Arc::new(options));
    }

    /// At so many bytes the memtable is sealed: what the options say, or less while the memory
    /// budget leaves less.
    #[inline]
    pub(crate) fn memtable_bytes_max(&self) -> usize {
        self.memtable_bytes_max.load(Ordering::Relaxed)
    }

    /// Limits memtables to `bytes` from now on; never to more than the options say.
    pub(crate) fn limit_memtable(&self, bytes: u64) {
        let bytes = usize::try_from(bytes.min(self.options.load().memtable_bytes));
        self.memtable_bytes_max.store(bytes.unwrap_or(usize::MAX).max(1), Ordering::Relaxed);
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

    pub(crate) fn new_memtable(&self) -> Arc<MemTable> {
        Arc::new(MemTable::new(self.memtable_bytes_max(), Some(self.pool.clone())))
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
        lock(&self.memory).active_log = log;
    }

    /// Seals the active memtable and puts `fresh` in its place. Called by the commit leader.
    pub(crate) fn seal(&self, fresh: Arc<MemTable>, last_seqno: SeqNo) {
        let mut memory = lock(&self.memory);
        let log = memory.active_log;
        let current = self.super_version.load_full();
        memory.sealed.push(Sealed { memtable: current.active.clone(), last_seqno, log });
        let sealed = newest_first(&memory.sealed);
        let next = SuperVersion::new(fresh, sealed, current.version.clone());
        self.super_version.store(Arc::new(next));
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

    /// True if as many memtables are sealed as are flushed together.
    pub(crate) fn wants_flush(&self) -> bool {
        let sealed = lock(&self.memory).sealed.len();
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
        memory.sealed.drain(..flushed);
        let sealed = newest_first(&memory.sealed);
        let active = self.super_version.load().active.clone();
        let next = SuperVersion::new(active, sealed, version);
        self.super_version.store(Arc::new(next));
    }
}

fn newest_first(sealed: &[Sealed]) -> Vec<Arc<MemTable>> {
    sealed.iter().rev().map(|sealed| sealed.memtable.clone()).collect()
}
