//! RocksDB as a peer: the same operations through its C functions, with the fairest settings.
//!
//! Reads call `get_into_buffer` if the library has it, because it neither allocates nor pins, and
//! `get_pinned` otherwise. Statistics stay off. The block cache is a HyperClockCache unless the
//! user asks for another. Filters and indexes stay in memory outside of it, which is RocksDB's
//! default.
#![expect(unsafe_code, reason = "calls to C functions")]

mod stats;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_peers::rocksdb::Api;
use sateen_peers::{Handle, Inherited, bytes, chars};

use super::{Peer, PeerClient, absolute, c_string, call, hooks, int, load, new_options, of_peer};
use super::{open_database, size};
use crate::store::{
    ClassBytes, Client, Compression, Counters, LevelSize, PeerCache, Store, StoreConfig, Wal,
};
use crate::{Error, Result};

/// What the databases of this process share: the functions, and memory. Their environment is the
/// same without being told.
struct Common {
    api: Api,
    /// The block cache, the manager of memtables and the rate limiter, or null.
    cache: Handle,
    write_buffers: Handle,
    limiter: Handle,
}

// SAFETY: handles of a cache, a manager and a limiter may be used by any number of threads at once.
unsafe impl Send for Common {}
// SAFETY: as above; no field is changed.
unsafe impl Sync for Common {}

impl Drop for Common {
    fn drop(&mut self) {
        let api = &self.api;
        let shared = [
            (Some(api.inherited.cache_destroy), self.cache),
            (api.write_buffer_manager_destroy, self.write_buffers),
            (api.ratelimiter_destroy, self.limiter),
        ];
        for (destroy, handle) in shared {
            if let Some(destroy) = destroy.filter(|_| !handle.is_null()) {
                // SAFETY: made by its constructor and destroyed once; databases have references.
                unsafe { destroy(handle) };
            }
        }
    }
}

struct RocksDb {
    common: Arc<Common>,
    db: Handle,
    /// The default column family, if the library has functions that take it.
    default_family: Option<Handle>,
    wal: Wal,
    version: String,
}

// SAFETY: a RocksDB handle may be used by any number of threads at once.
unsafe impl Send for RocksDb {}
// SAFETY: as above; the other fields are not changed after open.
unsafe impl Sync for RocksDb {}

/// Opens the database in `directory` with the RocksDB of `library`.
pub(crate) fn open(
    library: &Path,
    directory: &Path,
    config: &StoreConfig,
) -> Result<Box<dyn Store>> {
    let folders = [directory.to_owned()];
    let mut all = open_all(library, directory, &folders, config)?;
    all.pop().ok_or_else(|| Error::Failed("no database was opened".to_owned()))
}

/// Opens a database in each of the folders, which are in `directory`. They share the block cache,
/// the manager of memtables and the rate limiter that the settings ask for.
pub(crate) fn open_all(
    library: &Path,
    directory: &Path,
    folders: &[PathBuf],
    config: &StoreConfig,
) -> Result<Vec<Box<dyn Store>>> {
    let api = Api::load(&load(library)?).map_err(of_peer)?;
    let version = stats::version_of(library);
    let inside = api.inherited.options_create as *const c_void;
    // SAFETY: the library has just been loaded, and this process has opened nothing with it.
    unsafe { hooks::install(inside, &absolute(directory), config, &[])? };
    let common = Arc::new(common(api, config)?);
    let open = |folder: &PathBuf| {
        let api = &common.api;
        // SAFETY: the options are fresh, and the handles those of the library.
        unsafe {
            let options = build_options(&common, config)?;
            let db = open_database(&api.inherited, options, &absolute(folder), "RocksDB")?;
            let default_family = api.get_default_column_family_handle.map(|get| get(db));
            let (common, wal, version) = (common.clone(), config.shared().wal, version.clone());
            let store = RocksDb { common, db, default_family, wal, version };
            Ok(Box::new(store) as Box<dyn Store>)
        }
    };
    folders.iter().map(open).collect()
}

/// Makes what the databases share.
fn common(api: Api, config: &StoreConfig) -> Result<Common> {
    // SAFETY: objects are made by their constructors, and destroyed with `Common`.
    unsafe {
        let cache = match (config.shared().block_cache_bytes, config.peer_cache) {
            (0, _) => std::ptr::null_mut(),
            (bytes, None | Some(PeerCache::HyperClock))
                if api.cache_create_hyper_clock.is_some() =>
            {
                api.cache_create_hyper_clock.map_or(std::ptr::null_mut(), |new| new(size(bytes), 0))
            }
            (bytes, _) => (api.inherited.cache_create_lru)(size(bytes)),
        };
        let null = std::ptr::null_mut();
        let mut common = Common { api, cache, write_buffers: null, limiter: null };
        if let Some(bytes) = config.all_memtables_bytes {
            common.write_buffers = write_buffers(&common.api, bytes)?;
        }
        if let Some(rate) = config.peer_rate_limit {
            common.limiter = rate_limiter(&common.api, rate)?;
        }
        Ok(common)
    }
}

/// Builds the options of `config`.
///
/// # Safety
/// The handles of `common` are those of its library.
unsafe fn build_options(common: &Common, config: &StoreConfig) -> Result<Handle> {
    let (api, cache, shared) = (&common.api, common.cache, config.shared());
    // SAFETY: every handle is fresh from its constructor and of the type its setter wants.
    unsafe {
        let options = new_options(&api.inherited, config);
        (api.options_set_max_write_buffer_number)(options, int(shared.memtables));
        (api.options_set_max_background_jobs)(options, int(shared.jobs));
        let compression = match shared.compression {
            Compression::None => 0,
            Compression::Lz4 => 4,
            Compression::Zstd => 7,
        };
        (api.inherited.options_set_compression)(options, compression);
        (api.options_set_use_direct_reads)(options, u8::from(shared.direct));
        let direct = u8::from(shared.direct);
        (api.options_set_use_direct_io_for_flush_and_compaction)(options, direct);
        let table = (api.block_based_options_create)();
        if shared.bloom_bits > 0.0 {
            let policy = (api.filterpolicy_create_bloom_full)(shared.bloom_bits);
            (api.block_based_options_set_filter_policy)(table, policy);
        }
        if cache.is_null() {
            (api.block_based_options_set_no_block_cache)(table, 1);
        } else {
            (api.block_based_options_set_block_cache)(table, cache);
        }
        (api.options_set_block_based_table_factory)(options, table);
        (api.block_based_options_destroy)(table);
        for (set, handle) in [
            (api.options_set_write_buffer_manager, common.write_buffers),
            (api.options_set_ratelimiter, common.limiter),
        ] {
            if let Some(set) = set.filter(|_| !handle.is_null()) {
                set(options, handle);
            }
        }
        let Some(text) = &config.peer_options else {
            return Ok(options);
        };
        let parsed = (api.inherited.options_create)();
        let string = c_string(text.as_bytes(), "--peer-options")?;
        let result = call(&api.inherited, |error| {
            (api.common.get_options_from_string)(options, string.as_ptr(), parsed, error);
        });
        (api.inherited.options_destroy)(options);
        result.map_err(|error| Error::Usage(format!("--peer-options {text:?}: {error}")))?;
        Ok(parsed)
    }
}

/// The usual values of RocksDB's documentation: a refill of 100 ms, one request in ten unfair.
const LIMITER_REFILL_US: i64 = 100_000;
const LIMITER_FAIRNESS: i32 = 10;

/// Makes a limiter for flushes and compactions that tunes itself between a twentieth of `rate` and
/// `rate` bytes a second.
fn rate_limiter(api: &Api, rate: u64) -> Result<Handle> {
    let (Some(create), Some(_), Some(_)) =
        (api.ratelimiter_create_auto_tuned, api.options_set_ratelimiter, api.ratelimiter_destroy)
    else {
        let text = "--peer-rate-limit: the library has no auto-tuned rate limiter";
        return Err(Error::Usage(text.to_owned()));
    };
    let rate = i64::try_from(rate).unwrap_or(i64::MAX);
    // SAFETY: a constructor.
    Ok(unsafe { create(rate, LIMITER_REFILL_US, LIMITER_FAIRNESS) })
}

/// Makes a manager that flushes if all memtables together have more than `bytes` bytes.
fn write_buffers(api: &Api, bytes: u64) -> Result<Handle> {
    let (Some(create), Some(_), Some(_)) = (
        api.write_buffer_manager_create,
        api.options_set_write_buffer_manager,
        api.write_buffer_manager_destroy,
    ) else {
        let text = "--all-memtables: the library has no write-buffer manager";
        return Err(Error::Usage(text.to_owned()));
    };
    // SAFETY: a constructor.
    Ok(unsafe { create(size(bytes), false) })
}

impl RocksDb {
    fn api(&self) -> &Api {
        &self.common.api
    }

    fn property(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the handle is open, the name ends in NUL, the result has a place.
        let status = unsafe { (self.api().property_int)(self.db, name.as_ptr(), &mut value) };
        (status == 0).then_some(value)
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: all clients borrow the store and are gone; each handle is destroyed once.
        unsafe {
            if let Some(family) = self.default_family {
                (self.api().common.column_family_handle_destroy)(family);
            }
            (self.api().inherited.close)(self.db);
        }
    }
}

impl Store for RocksDb {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn notes(&self) -> Vec<String> {
        if self.api().batched_multi_get_cf.is_some() && self.default_family.is_some() {
            return Vec::new();
        }
        let version = &self.version;
        vec![format!("{version} reads several keys one by one: its library has no batched read.")]
    }

    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(PeerClient::new(self, self.wal, |write| {
            // SAFETY: the handle is that of fresh options of writes.
            unsafe {
                (self.api().writeoptions_disable_WAL)(write, c_int::from(self.wal == Wal::Off))
            }
        }))
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: handles are fresh or open.
        unsafe {
            let options = (self.api().flushoptions_create)();
            (self.api().flushoptions_set_wait)(options, 1);
            let result =
                call(&self.api().inherited, |error| (self.api().flush)(self.db, options, error));
            (self.api().flushoptions_destroy)(options);
            result
        }
    }

    fn wait_idle(&self) -> Result<()> {
        let api = self.api();
        if let (Some(wait), Some(create), Some(destroy)) = (
            api.wait_for_compact,
            api.wait_for_compact_options_create,
            api.wait_for_compact_options_destroy,
        ) {
            // SAFETY: handles are fresh or open.
            return unsafe {
                let options = create();
                let result = call(&api.inherited, |error| wait(self.db, options, error));
                destroy(options);
                result
            };
        }
        loop {
            let busy = [
                c"rocksdb.num-running-compactions",
                c"rocksdb.num-running-flushes",
                c"rocksdb.compaction-pending",
                c"rocksdb.mem-table-flush-pending",
            ];
            if busy.iter().all(|name| self.property(name).unwrap_or(0) == 0) {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn counters(&self) -> Counters {
        let text = self.text_property(c"rocksdb.cfstats-no-file-histogram").unwrap_or_default();
        let db_text = self.text_property(c"rocksdb.dbstats").unwrap_or_default();
        let stats = stats::parse(&text, &db_text);
        let class = |class: &str, read, written| ClassBytes { class: class.into(), read, written };
        let mut levels: Vec<LevelSize> = stats.levels;
        while levels.len() > 1 && levels.last() == Some(&LevelSize::default()) {
            levels.pop();
        }
        let cache = self.common.cache;
        let usage = self.api().cache_get_usage;
        // SAFETY: the cache is a cache of this library.
        let cache = (!cache.is_null()).then(|| unsafe { usage(cache) } as u64);
        let jobs = self.property(c"rocksdb.num-running-compactions").unwrap_or(0)
            + self.property(c"rocksdb.num-running-flushes").unwrap_or(0);
        Counters {
            io: vec![
                class("wal", 0, stats.wal_written),
                class("flush", 0, stats.flush_written),
                class(
                    "compaction",
                    stats.compaction_read,
                    stats.compaction_written.saturating_sub(stats.flush_written),
                ),
            ],
            levels,
            chain: None,
            barriers: Some(hooks::barriers()),
            stall_count: Some(stats.stall_count),
            stall_ns: Some(stats.stall_ns),
            stalled_by: stats.stalled_by,
            stopped: self.property(c"rocksdb.is-write-stopped").unwrap_or(0) > 0,
            delayed_rate: self
                .property(c"rocksdb.actual-delayed-write-rate")
                .filter(|&rate| rate > 0),
            memtable_bytes: self.property(c"rocksdb.cur-size-all-mem-tables"),
            cache_bytes: cache,
            table_bytes: self.property(c"rocksdb.estimate-table-readers-mem"),
            believed: None,
            debt_bytes: self.property(c"rocksdb.estimate-pending-compaction-bytes"),
            running_jobs: Some(jobs),
            knobs: None,
        }
    }
}

impl Peer for RocksDb {
    fn functions(&self) -> &Inherited {
        &self.api().inherited
    }

    fn database(&self) -> Handle {
        self.db
    }

    #[inline]
    fn get(&self, options: Handle, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(get) = self.api().get_into_buffer else {
            return self.get_pinned(options, key, value);
        };
        loop {
            let (mut length, mut found) = (0usize, 0u8);
            let room = value.capacity();
            // SAFETY: the buffer is `room` bytes; RocksDB writes `length` of them only if that
            // fits and then returns 1, so the first `length` bytes are set.
            unsafe {
                let copied = call(&self.api().inherited, |error| {
                    let (k, bytes) = (chars(key), key.len());
                    let buffer = value.as_mut_ptr().cast();
                    get(self.db, options, k, bytes, buffer, room, &mut length, &mut found, error)
                })?;
                if copied != 0 {
                    value.set_len(length);
                    return Ok(true);
                }
            }
            value.clear();
            if found == 0 {
                return Ok(false);
            }
            value.reserve(length.max(1));
        }
    }

    fn multi_get(&self, options: Handle, keys: &[&[u8]], spare: &mut Vec<u8>) -> Result<u32> {
        let api = self.api();
        let (Some(get), Some(family)) = (api.batched_multi_get_cf, self.default_family) else {
            let found = keys.iter().map(|key| self.get(options, key, spare).map(u32::from));
            return found.sum();
        };
        let pointers: Vec<*const c_char> = keys.iter().map(|key| chars(key)).collect();
        let lengths: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values: Vec<Handle> = vec![std::ptr::null_mut(); keys.len()];
        let mut errors: Vec<*mut c_char> = vec![std::ptr::null_mut(); keys.len()];
        let mut found = 0;
        // SAFETY: the arrays have one place for each key; results are released once.
        unsafe {
            get(
                self.db,
                options,
                family,
                keys.len(),
                pointers.as_ptr(),
                lengths.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                0,
            );
            let mut failure = Ok(());
            for (value, error) in values.into_iter().zip(errors) {
                if let Err(text) = sateen_peers::take_error(api.inherited.free, error) {
                    failure = Err(Error::Failed(text));
                }
                if !value.is_null() {
                    let mut length = 0;
                    let data = (api.pinnableslice_value)(value, &mut length);
                    spare.clear();
                    spare.extend_from_slice(bytes(data, length));
                    (api.pinnableslice_destroy)(value);
                    found += 1;
                }
            }
            failure.map(|()| found)
        }
    }
}

impl RocksDb {
    fn get_pinned(&self, options: Handle, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let api = self.api();
        // SAFETY: the key outlives the call; the pinned bytes are copied before their release.
        unsafe {
            let pinned = call(&api.inherited, |error| {
                (api.get_pinned)(self.db, options, chars(key), key.len(), error)
            })?;
            if pinned.is_null() {
                return Ok(false);
            }
            let mut length = 0;
            let data = (api.pinnableslice_value)(pinned, &mut length);
            value.clear();
            value.extend_from_slice(bytes(data, length));
            (api.pinnableslice_destroy)(pinned);
            Ok(true)
        }
    }
}
