//! RocksDB as a peer: the same operations through its C functions, with the fairest settings.
//!
//! Reads call `get_into_buffer` if the library has it, because it neither allocates nor pins, and
//! `get_pinned` otherwise. Statistics stay off. The block cache is a HyperClockCache unless the
//! user asks for another. Filters and indexes stay in memory outside of it, which is RocksDB's
//! default.
#![expect(unsafe_code, reason = "calls to C functions")]

mod elf;
mod limited;
mod stats;

use std::ffi::{CStr, CString, c_char, c_int};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use crate::device::Device;
use crate::store::{
    ClassBytes, Client, Compression, Counters, LevelSize, PeerCache, Store, StoreConfig, Wal,
};
use crate::{Error, Result};
use sateen_peers::rocksdb::Api;
use sateen_peers::{Handle, Slice, bytes, chars};

struct RocksDb {
    api: Api,
    db: Handle,
    default_family: Handle,
    cache: Handle,
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
    let api = Api::load(library).map_err(|error| match error {
        sateen_peers::Error::Usage(text) => Error::Usage(format!("--peer {text}")),
        sateen_peers::Error::Failed(text) => Error::Failed(text),
    })?;
    let version = stats::version_of(library);
    let directory = &std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    if let Some(limit) = config.device_limit {
        let inside = api.common.options_create as *const std::ffi::c_void;
        // SAFETY: the library has just been loaded, and this process has opened nothing with it.
        unsafe { limited::limit(inside, directory, Arc::new(Device::new(limit)))? };
    }
    let name = c_string(directory.as_os_str().as_encoded_bytes(), "the directory")?;
    // SAFETY: objects are made by their constructors, used once as their functions require, and
    // destroyed; the options keep the cache and the filter policy alive by reference counts.
    unsafe {
        let cache = match (config.shared().block_cache_bytes, config.peer_cache) {
            (0, _) => std::ptr::null_mut(),
            (bytes, PeerCache::HyperClock) if api.cache_create_hyper_clock.is_some() => {
                api.cache_create_hyper_clock.map_or(std::ptr::null_mut(), |new| new(size(bytes), 0))
            }
            (bytes, _) => (api.common.cache_create_lru)(size(bytes)),
        };
        let options = build_options(&api, config, cache)?;
        if let Some(rate) = config.peer_rate_limit {
            set_rate_limit(&api, options, rate)?;
        }
        let opened = call(&api, |error| (api.open)(options, name.as_ptr(), error));
        (api.common.options_destroy)(options);
        let db = opened
            .map_err(|error| Error::Failed(format!("RocksDB, {}: {error}", directory.display())))?;
        let default_family = (api.get_default_column_family_handle)(db);
        Ok(Box::new(RocksDb { api, db, default_family, cache, wal: config.shared().wal, version }))
    }
}

/// Builds the options of `config`.
///
/// # Safety
/// `cache` is null or a cache of `api`.
unsafe fn build_options(api: &Api, config: &StoreConfig, cache: Handle) -> Result<Handle> {
    let shared = config.shared();
    // SAFETY: every handle is fresh from its constructor and of the type its setter wants.
    unsafe {
        let options = (api.common.options_create)();
        (api.options_set_create_if_missing)(options, 1);
        (api.options_set_write_buffer_size)(options, size(shared.memtable_bytes));
        (api.options_set_max_write_buffer_number)(options, int(shared.memtables));
        (api.options_set_max_background_jobs)(options, int(shared.jobs));
        let compression = match shared.compression {
            Compression::None => 0,
            Compression::Lz4 => 4,
            Compression::Zstd => 7,
        };
        (api.options_set_compression)(options, compression);
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
        let Some(text) = &config.peer_options else {
            return Ok(options);
        };
        let parsed = (api.common.options_create)();
        let string = c_string(text.as_bytes(), "--peer-options")?;
        let result = call(api, |error| {
            (api.common.get_options_from_string)(options, string.as_ptr(), parsed, error);
        });
        (api.common.options_destroy)(options);
        result.map_err(|error| Error::Usage(format!("--peer-options {text:?}: {error}")))?;
        Ok(parsed)
    }
}

/// The usual values of RocksDB's documentation: a refill of 100 ms, one request in ten unfair.
const LIMITER_REFILL_US: i64 = 100_000;
const LIMITER_FAIRNESS: i32 = 10;

/// Lets flushes and compactions share a limiter that tunes itself between a twentieth of `rate` and
/// `rate` bytes a second.
///
/// # Safety
/// `options` are options of `api`.
unsafe fn set_rate_limit(api: &Api, options: Handle, rate: u64) -> Result<()> {
    let (Some(create), Some(set), Some(destroy)) =
        (api.ratelimiter_create_auto_tuned, api.options_set_ratelimiter, api.ratelimiter_destroy)
    else {
        let text = "--peer-rate-limit: the library has no auto-tuned rate limiter";
        return Err(Error::Usage(text.to_owned()));
    };
    let rate = i64::try_from(rate).unwrap_or(i64::MAX);
    // SAFETY: the limiter is fresh; the options keep it alive by a reference count.
    unsafe {
        let limiter = create(rate, LIMITER_REFILL_US, LIMITER_FAIRNESS);
        set(options, limiter);
        destroy(limiter);
    }
    Ok(())
}

impl RocksDb {
    fn property(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the handle is open, the name ends in NUL, the result has a place.
        let status = unsafe { (self.api.property_int)(self.db, name.as_ptr(), &mut value) };
        (status == 0).then_some(value)
    }

    fn text_property(&self, name: &CStr) -> Option<String> {
        // SAFETY: the handle is open, the name ends in NUL; the text is ours to free.
        unsafe {
            let text = (self.api.property_value)(self.db, name.as_ptr());
            if text.is_null() {
                return None;
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.common.free)(text.cast());
            Some(copy)
        }
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: all clients borrow the store and are gone; each handle is destroyed once.
        unsafe {
            (self.api.common.column_family_handle_destroy)(self.default_family);
            (self.api.common.close)(self.db);
            if !self.cache.is_null() {
                (self.api.common.cache_destroy)(self.cache);
            }
        }
    }
}

impl Store for RocksDb {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn client(&self) -> Box<dyn Client + '_> {
        // SAFETY: constructors; the setters get the handles they want.
        unsafe {
            let write = (self.api.writeoptions_create)();
            (self.api.writeoptions_disable_WAL)(write, c_int::from(self.wal == Wal::Off));
            (self.api.writeoptions_set_sync)(write, u8::from(self.wal == Wal::Sync));
            Box::new(RocksClient {
                store: self,
                read: (self.api.common.readoptions_create)(),
                write,
                batch: (self.api.writebatch_create)(),
                spare: Vec::new(),
            })
        }
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: handles are fresh or open.
        unsafe {
            let options = (self.api.flushoptions_create)();
            (self.api.flushoptions_set_wait)(options, 1);
            let result = call(&self.api, |error| (self.api.flush)(self.db, options, error));
            (self.api.flushoptions_destroy)(options);
            result
        }
    }

    fn wait_idle(&self) -> Result<()> {
        let api = &self.api;
        if let (Some(wait), Some(create), Some(destroy)) = (
            api.wait_for_compact,
            api.wait_for_compact_options_create,
            api.wait_for_compact_options_destroy,
        ) {
            // SAFETY: handles are fresh or open.
            return unsafe {
                let options = create();
                let result = call(api, |error| wait(self.db, options, error));
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
        // SAFETY: the cache is a cache of this library.
        let cache = (!self.cache.is_null())
            .then(|| unsafe { (self.api.cache_get_usage)(self.cache) } as u64);
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
            barriers: None,
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

struct RocksClient<'a> {
    store: &'a RocksDb,
    read: Handle,
    write: Handle,
    batch: Handle,
    spare: Vec<u8>,
}

impl Drop for RocksClient<'_> {
    fn drop(&mut self) {
        // SAFETY: each was made by its constructor and is destroyed once.
        unsafe {
            (self.store.api.common.readoptions_destroy)(self.read);
            (self.store.api.writeoptions_destroy)(self.write);
            (self.store.api.writebatch_destroy)(self.batch);
        }
    }
}

impl RocksClient<'_> {
    fn get_pinned(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (api, db) = (&self.store.api, self.store.db);
        // SAFETY: the key outlives the call; the pinned bytes are copied before their release.
        unsafe {
            let pinned =
                call(api, |error| (api.get_pinned)(db, self.read, chars(key), key.len(), error))?;
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

impl Client for RocksClient<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (api, db) = (&self.store.api, self.store.db);
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            call(api, |error| {
                let (k, v) = (chars(key), chars(value));
                (api.put)(db, self.write, k, key.len(), v, value.len(), error);
            })
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (api, db) = (&self.store.api, self.store.db);
        // SAFETY: the slice outlives the call, which copies it.
        unsafe { call(api, |error| (api.delete)(db, self.write, chars(key), key.len(), error)) }
    }

    #[inline]
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (api, db) = (&self.store.api, self.store.db);
        let Some(get) = api.get_into_buffer else {
            return self.get_pinned(key, value);
        };
        loop {
            let (mut length, mut found) = (0usize, 0u8);
            let room = value.capacity();
            // SAFETY: the buffer is `room` bytes; RocksDB writes `length` of them only if that
            // fits and then returns 1, so the first `length` bytes are set.
            unsafe {
                let copied = call(api, |error| {
                    let buffer = value.as_mut_ptr().cast();
                    let k = chars(key);
                    get(db, self.read, k, key.len(), buffer, room, &mut length, &mut found, error)
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

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        let (api, db) = (&self.store.api, self.store.db);
        let pointers: Vec<*const c_char> = keys.iter().map(|key| chars(key)).collect();
        let lengths: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values: Vec<Handle> = vec![std::ptr::null_mut(); keys.len()];
        let mut errors: Vec<*mut c_char> = vec![std::ptr::null_mut(); keys.len()];
        let mut found = 0;
        // SAFETY: the arrays have one place for each key; results are released once.
        unsafe {
            (api.batched_multi_get_cf)(
                db,
                self.read,
                self.store.default_family,
                keys.len(),
                pointers.as_ptr(),
                lengths.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                0,
            );
            let mut failure = Ok(());
            for (value, error) in values.into_iter().zip(errors) {
                if let Err(text) = take_error(api, error) {
                    failure = Err(text);
                }
                if !value.is_null() {
                    let mut length = 0;
                    let data = (api.pinnableslice_value)(value, &mut length);
                    self.spare.clear();
                    self.spare.extend_from_slice(bytes(data, length));
                    (api.pinnableslice_destroy)(value);
                    found += 1;
                }
            }
            failure.map(|()| found)
        }
    }

    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        let (api, db) = (&self.store.api, self.store.db);
        let mut count = 0;
        // SAFETY: the iterator is fresh and destroyed once; key and value are looked at only
        // while it is valid and before it moves.
        unsafe {
            let iterator = (api.create_iterator)(db, self.read);
            (api.iter_seek)(iterator, chars(start), start.len());
            let slices = api.iter_key_slice.zip(api.iter_value_slice);
            while count < entries && (api.iter_valid)(iterator) != 0 {
                let (key, value) = if let Some((key, value)) = slices {
                    (key(iterator), value(iterator))
                } else {
                    let mut key = Slice { data: std::ptr::null(), size: 0 };
                    let mut value = key;
                    key.data = (api.iter_key)(iterator, &mut key.size);
                    value.data = (api.iter_value)(iterator, &mut value.size);
                    (key, value)
                };
                black_box((bytes(key.data, key.size).last(), bytes(value.data, value.size).last()));
                (api.iter_next)(iterator);
                count += 1;
            }
            let result = call(api, |error| (api.iter_get_error)(iterator, error));
            (api.iter_destroy)(iterator);
            result.map(|()| count)
        }
    }

    fn write_batch(&mut self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let (api, db) = (&self.store.api, self.store.db);
        // SAFETY: the batch is ours; it copies what it is given.
        unsafe {
            (api.writebatch_clear)(self.batch);
            for (key, value) in entries {
                match value {
                    Some(value) => {
                        let (k, v) = (chars(key), chars(value));
                        (api.writebatch_put)(self.batch, k, key.len(), v, value.len());
                    }
                    None => (api.writebatch_delete)(self.batch, chars(key), key.len()),
                }
            }
            call(api, |error| (api.write)(db, self.write, self.batch, error))
        }
    }
}

/// Calls `f` with a place for an error and returns the error that `f` stored there.
///
/// # Safety
/// `f` is sound and leaves in the place null or a text to be freed with `free` of `api`.
#[inline]
unsafe fn call<T>(api: &Api, f: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    // SAFETY: as the caller promises.
    unsafe { sateen_peers::call(api.common.free, f) }.map_err(Error::Failed)
}

/// Returns a C text as an error and frees the text.
///
/// # Safety
/// `error` is null or a NUL-terminated text of RocksDB, which is not used again.
unsafe fn take_error(api: &Api, error: *mut c_char) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { sateen_peers::take_error(api.common.free, error) }.map_err(Error::Failed)
}

fn c_string(text: &[u8], what: &str) -> Result<CString> {
    sateen_peers::c_string(text, what).map_err(|error| Error::Usage(error.to_string()))
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn int(number: u32) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}
