//! What databases of one process share: threads, and one scheduler for each device.
//!
//! 1. [`Runtime`] is given to databases by `Options::runtime`. One without it is alone on a device
//!    of its own. `registry` says which databases of a runtime are on one device.
//! 2. [`device`] has the threads and the scheduler of a device; [`queue`] what its threads do next;
//!    [`threads`] their loops.
//! 3. A database is a [`Tenant`] to them.

pub(crate) mod device;
mod metrics;
mod queue;
mod registry;
mod threads;

use std::fmt;
use std::sync::{Arc, OnceLock};

use sateen_control::{ControlOptions, DatabaseId, Instant, Sample};
use sateen_store::base::error::Error;
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::block_cache::SharedBlockCache;

use crate::admission::write_buffers::WriteBufferManager;
pub(crate) use device::panicked;
use device::{Device, Scheduling};
pub use metrics::{DatabaseTotals, DeviceMetrics, RuntimeMetrics};
use registry::Devices;
pub(crate) use registry::Where;
pub(crate) use threads::{beside, start_trace, with_low_priority};

/// What a call of [`Tenant::step`] did.
pub(crate) enum Stepped {
    /// It did some work.
    Worked,
    /// There is nothing to do before this moment; `None` if nothing is foreseen.
    Idle(Option<Instant>),
}

/// What is to be done after a round of chores.
pub(crate) struct Rest {
    /// When the next round is due; `None`: when something calls for it.
    pub(crate) again: Option<Instant>,
    /// Whether the database is at rest, so that nobody looks at it until something happens.
    pub(crate) rests: bool,
}

/// How a database looked when it was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampled {
    /// Nothing has happened for a while.
    Quiet,
    /// Clients use it, and that is all.
    Used,
    /// It has jobs, or holds writers back.
    Busy,
}

/// A database, as the threads of a device see it.
pub(crate) trait Tenant: Send + Sync {
    /// Does one piece of background work.
    fn step(&self) -> Stepped;
    /// Returns what has happened since the last call.
    fn take_sample(&self) -> Box<Sample>;
    /// Takes in what [`Tenant::take_sample`] returned. `late_ns` is the time that the sampler
    /// waited for a processor, if it is worth recording.
    fn sampled(&self, sample: Box<Sample>, late_ns: u64) -> Sampled;
    /// Returns true if something has happened since the last sample. The next one begins now.
    fn has_news(&self) -> bool;
    /// Does a round of chores. What is not due at a moment of its own may have a pause that is
    /// `slower` times as long as usual.
    fn chores(&self, slower: u32) -> Rest;
    /// Returns what the database has done since it was opened, and does now.
    fn totals(&self) -> DatabaseTotals;
    /// Hears that one of the calls has panicked.
    fn panicked(&self, error: &Error);
}

/// The place of a database in its device.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) device: Arc<Device>,
    pub(crate) database: DatabaseId,
}

impl Place {
    /// Says that the database may have work.
    pub(crate) fn call(&self) {
        self.device.call(self.database);
    }

    /// Says that the database may have chores.
    pub(crate) fn call_for_chores(&self) {
        self.device.call_for_chores(self.database);
    }
}

/// What several databases of a process share ([`Options::runtime`](crate::Options::runtime)):
/// threads, what is known of each device and who may use it when, and, if asked for, a block cache
/// and a limit on memtables.
///
/// Databases with the same runtime share if they are on one disk and the options of the scheduler
/// are equal. One without a runtime shares nothing. [`Runtime::process`] is for programs that have
/// no place where they could keep one.
///
/// It is cheap to clone. Its threads run while a database is open, and end with the last one.
///
/// ```
/// use sateen::{Db, Options, Runtime};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let runtime = Runtime::builder().block_cache_bytes(64 << 20).build();
/// let options = Options { runtime: Some(runtime.clone()), ..Options::default() };
/// let users = Db::open(directory.path().join("users"), options.clone())?;
/// let orders = Db::open(directory.path().join("orders"), options)?;
/// assert_eq!(runtime.databases(), 2);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct Runtime(Arc<Shared>);

struct Shared {
    devices: Mutex<Devices>,
    threads: Mutex<Option<u32>>,
    cache: Option<SharedBlockCache>,
    write_buffers: Option<WriteBufferManager>,
}

/// Makes a [`Runtime`].
#[derive(Clone, Debug, Default)]
pub struct RuntimeBuilder {
    threads: Option<u32>,
    block_cache_bytes: Option<u64>,
    all_memtables_bytes: Option<u64>,
    memory_budget: Option<u64>,
}

impl RuntimeBuilder {
    /// Threads for flushes and compactions on each device, whatever `background_threads` of the
    /// databases say. A database with 0 has none and is not part of the runtime.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> RuntimeBuilder {
        self.threads = Some(threads.max(1));
        self
    }

    /// Bytes of one block cache for all databases; `block_cache_bytes` does not count then. By
    /// default each database has its own.
    #[must_use]
    pub fn block_cache_bytes(mut self, bytes: u64) -> RuntimeBuilder {
        self.block_cache_bytes = Some(bytes);
        self
    }

    /// Limit on the memtables of all databases together, as [`WriteBufferManager::new`]. By default
    /// each database has its own limits.
    #[must_use]
    pub fn all_memtables_bytes(mut self, bytes: u64) -> RuntimeBuilder {
        self.all_memtables_bytes = Some(bytes);
        self
    }

    /// Memory of the block cache and of all memtables together. Memtables are flushed early once
    /// they take half of it, and the cache has what they leave. No write waits for that
    /// unless [`WriteBufferManager::set_allow_stall`] says so, and memtables may take more for a
    /// moment.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> RuntimeBuilder {
        self.memory_budget = Some(bytes);
        self
    }

    /// Makes the runtime. No thread runs until a database is opened.
    #[must_use]
    pub fn build(self) -> Runtime {
        let cache = self.block_cache_bytes.or(self.memory_budget).map(SharedBlockCache::new);
        let limit = self.all_memtables_bytes.or(self.memory_budget.map(|budget| budget / 2));
        let write_buffers = limit.map(|limit| match &cache {
            Some(cache) if self.memory_budget.is_some() => {
                WriteBufferManager::with_cache(limit, cache)
            }
            _ => WriteBufferManager::new(limit),
        });
        let threads = Mutex::new(self.threads);
        Runtime(Arc::new(Shared { devices: Mutex::default(), threads, cache, write_buffers }))
    }
}

impl Default for Runtime {
    fn default() -> Runtime {
        Runtime::new()
    }
}

impl Runtime {
    /// Returns a runtime that shares threads and scheduler, and no memory.
    #[must_use]
    pub fn new() -> Runtime {
        Runtime::builder().build()
    }

    /// Returns the runtime of the process: always the same one.
    #[must_use]
    pub fn process() -> Runtime {
        static PROCESS: OnceLock<Runtime> = OnceLock::new();
        PROCESS.get_or_init(Runtime::new).clone()
    }

    /// Returns a builder for a runtime with limits of its own.
    #[must_use]
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Returns the number of databases that are open with this runtime.
    #[must_use]
    pub fn databases(&self) -> usize {
        self.devices().iter().map(|device| device.databases()).sum()
    }

    /// Returns the number of threads that run.
    #[must_use]
    pub fn running_threads(&self) -> usize {
        self.devices().iter().map(|device| device.threads()).sum()
    }

    /// Sets the number of threads for flushes and compactions of databases that are opened from now
    /// on. Threads that run stay.
    pub fn set_threads(&self, threads: u32) {
        *lock(&self.0.threads) = Some(threads.max(1));
    }

    /// Returns the number of threads for flushes and compactions, if it was set.
    #[must_use]
    pub fn threads(&self) -> Option<u32> {
        *lock(&self.0.threads)
    }

    /// Returns the block cache of all databases, if there is one.
    #[must_use]
    pub fn block_cache(&self) -> Option<&SharedBlockCache> {
        self.0.cache.as_ref()
    }

    /// Returns the limit on memtables of all databases, if there is one.
    #[must_use]
    pub fn write_buffer_manager(&self) -> Option<&WriteBufferManager> {
        self.0.write_buffers.as_ref()
    }

    pub(crate) fn devices(&self) -> Vec<Arc<Device>> {
        lock(&self.0.devices).all()
    }

    /// Returns the device of a database that is being opened.
    pub(crate) fn device(
        &self,
        place: Where,
        scheduling: &Scheduling,
        options: &ControlOptions,
    ) -> Arc<Device> {
        lock(&self.0.devices).find_or_make(place, scheduling, options)
    }
}

impl PartialEq for Runtime {
    fn eq(&self, other: &Runtime) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("databases", &self.databases()).finish_non_exhaustive()
    }
}
