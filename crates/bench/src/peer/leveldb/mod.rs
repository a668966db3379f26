//! LevelDB as a peer.
//!
//! Its C interface has no flush: [`LevelDb::flush`] compacts a range above all keys, which flushes
//! the memtable and finds no table to compact. It does not say whether background work is left, nor
//! how long writers waited: `waits` observes both.
#![expect(unsafe_code, reason = "calls to C functions")]

mod settings;
mod stats;
mod waits;

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::time::Duration;

use sateen_peers::leveldb::Api;
use sateen_peers::{Handle, Inherited, bytes, chars};

pub(crate) use settings::{adapt, check};

use super::{Peer, PeerClient, absolute, call, hooks, int, load, new_options, of_peer};
use super::{open_database, size};
use crate::store::{ClassBytes, Client, Counters, Store, StoreConfig, Wal};
use crate::{Error, Result};
use settings::Own;

/// A key above all keys of a benchmark, whose first bytes are a number below 2^63.
const ABOVE_ALL_KEYS: [u8; 64] = [0xff; 64];

/// The background thread counts as idle if it is at this many looks in a row.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

struct LevelDb {
    api: Api,
    db: Handle,
    cache: Handle,
    filter: Handle,
    wal: Wal,
    /// True if the library was built with assertions.
    asserts: bool,
}

// SAFETY: a LevelDB handle may be used by any number of threads at once.
unsafe impl Send for LevelDb {}
// SAFETY: as above; the other fields are not changed after open.
unsafe impl Sync for LevelDb {}

/// Opens the database in `directory` with the LevelDB of `library`.
pub(crate) fn open(
    library: &Path,
    directory: &Path,
    config: &StoreConfig,
) -> Result<Box<dyn Store>> {
    let loaded = load(library)?;
    let api = Api::load(&loaded).map_err(of_peer)?;
    let wal = config.wal.unwrap_or(Wal::Buffered);
    let directory = &absolute(directory);
    let inside = api.inherited.options_create as *const c_void;
    let more = waits::hooks(&loaded);
    // SAFETY: the hooks have the signatures of their functions. The library has just been loaded,
    // and this process has opened nothing with it.
    let redirected = unsafe { hooks::install(inside, directory, config, &more)? };
    if !waits::CONDITIONS.iter().any(|name| redirected.contains_key(name)) {
        return Err(Error::Failed(format!(
            "{}: waits of this LevelDB cannot be counted: it does not call {}",
            library.display(),
            waits::CONDITIONS.join(" or ")
        )));
    }
    let functions = &api.inherited;
    // SAFETY: objects are made by their constructors, used as their functions require, and
    // destroyed when the database is closed.
    unsafe {
        let cache = (functions.cache_create_lru)(size(config.shared().block_cache_bytes));
        let bits = config.shared().bloom_bits.round() as u32;
        let filter = match bits {
            0 => std::ptr::null_mut(),
            bits => (api.filterpolicy_create_bloom)(int(bits)),
        };
        let options = new_options(functions, config);
        (api.options_set_cache)(options, cache);
        if !filter.is_null() {
            (api.options_set_filter_policy)(options, filter);
        }
        (functions.options_set_compression)(options, 0);
        for own in settings::own(config.peer_options.as_deref().unwrap_or_default())? {
            set(&api, options, own)?;
        }
        let db = open_database(functions, options, directory, "LevelDB")?;
        let asserts = std::fs::read(library)
            .is_ok_and(|file| file.windows(ASSERT.len()).any(|part| part == ASSERT));
        Ok(Box::new(LevelDb { api, db, cache, filter, wal, asserts }))
    }
}

/// The function that a failed assertion calls.
const ASSERT: &[u8] = b"\0__assert_fail\0";

/// Sets one of LevelDB's own options.
///
/// # Safety
/// `options` are options of `api`.
unsafe fn set(api: &Api, options: Handle, own: Own) -> Result<()> {
    let functions = &api.inherited;
    // SAFETY: as the caller promises; each setter gets a value of its type.
    unsafe {
        match own {
            Own::BlockRestartInterval(keys) => {
                (api.options_set_block_restart_interval)(options, keys);
            }
            Own::BlockSize(bytes) => (api.options_set_block_size)(options, size(bytes)),
            Own::Compression(kind) => (functions.options_set_compression)(options, kind),
            Own::MaxFileSize(bytes) => {
                let Some(set) = api.options_set_max_file_size else {
                    let text = "--peer-options max_file_size: this LevelDB is older than 1.21";
                    return Err(Error::Usage(text.to_owned()));
                };
                set(options, size(bytes));
            }
            Own::MaxOpenFiles(files) => (api.options_set_max_open_files)(options, files),
            Own::ParanoidChecks(on) => (api.options_set_paranoid_checks)(options, u8::from(on)),
            Own::WriteBufferSize(bytes) => {
                (functions.options_set_write_buffer_size)(options, size(bytes));
            }
        }
    }
    Ok(())
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        waits::is_upkeep();
        let functions = &self.api.inherited;
        // SAFETY: all clients borrow the store and are gone; each handle is destroyed once, those
        // that the database uses after it.
        unsafe {
            (functions.close)(self.db);
            (functions.cache_destroy)(self.cache);
            if !self.filter.is_null() {
                (self.api.filterpolicy_destroy)(self.filter);
            }
        }
    }
}

impl Peer for LevelDb {
    fn functions(&self) -> &Inherited {
        &self.api.inherited
    }

    fn database(&self) -> Handle {
        self.db
    }

    #[inline]
    fn get(&self, options: Handle, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let mut length = 0;
        // SAFETY: the key outlives the call; the value is copied and then freed once.
        unsafe {
            let found = call(self.functions(), |error| {
                (self.api.get)(self.db, options, chars(key), key.len(), &mut length, error)
            })?;
            if found.is_null() {
                return Ok(false);
            }
            value.clear();
            value.extend_from_slice(bytes(found, length));
            (self.functions().free)(found.cast());
            Ok(true)
        }
    }

    fn multi_get(&self, options: Handle, keys: &[&[u8]], spare: &mut Vec<u8>) -> Result<u32> {
        let found = keys.iter().map(|key| self.get(options, key, spare).map(u32::from));
        found.sum()
    }
}

impl Store for LevelDb {
    fn version(&self) -> String {
        // SAFETY: the functions take nothing and return a number.
        let [major, minor] = unsafe { [(self.api.major_version)(), (self.api.minor_version)()] };
        format!("LevelDB {major}.{minor}")
    }

    fn notes(&self) -> Vec<String> {
        let version = self.version();
        let mut notes = vec![format!(
            "{version} has two memtables, one background thread, buffered I/O, and tables that are \
             mapped into memory. Its stalls are the waits of writers for room, which the benchmark \
             observes."
        )];
        if self.asserts {
            notes.push(format!(
                "The library of {version} was built with assertions, which cost processor time."
            ));
        }
        notes
    }

    fn client(&self) -> Box<dyn Client + '_> {
        waits::is_client();
        Box::new(PeerClient::new(self, self.wal, |_| ()))
    }

    fn flush(&self) -> Result<()> {
        waits::is_upkeep();
        let (above, length) = (chars(&ABOVE_ALL_KEYS), ABOVE_ALL_KEYS.len());
        // SAFETY: the keys outlive the call.
        unsafe { (self.api.compact_range)(self.db, above, length, above, length) };
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        // The background thread begins to exist with its first work.
        self.flush()?;
        let mut idle = 0;
        while idle < LOOKS {
            idle = if waits::is_busy() { 0 } else { idle + 1 };
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        let stats = stats::parse(&self.text_property(STATS).unwrap_or_default());
        let class = |class: &str, read, written| ClassBytes { class: class.into(), read, written };
        let (stall_count, stall_ns) = waits::stalls();
        Counters {
            io: vec![
                class("flush", 0, stats.flush_written),
                class("compaction", stats.compaction_read, stats.compaction_written),
            ],
            levels: stats.levels,
            barriers: Some(hooks::barriers()),
            stall_count: Some(stall_count),
            stall_ns: Some(stall_ns),
            running_jobs: Some(u64::from(waits::is_busy())),
            ..Counters::default()
        }
    }
}

const STATS: &CStr = c"leveldb.stats";
