//! The interface between the benchmark and a key-value store.
//!
//! All threads share a [`Store`]. Each thread has its own [`Client`], which may keep per-thread
//! state of the engine (options, an iterator, a batch). A hot call is one virtual call and
//! allocates nothing itself.

use std::path::PathBuf;

use sateen::timeline::Timeline;
use serde::{Deserialize, Serialize};

use crate::Result;

/// How values are compressed on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// The durability of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Wal {
    /// No WAL: a write is lost with the process.
    Off,
    /// WAL in the page cache: a write survives the process.
    Buffered,
    /// WAL synced for each write: a write survives power loss.
    Sync,
}

/// RocksDB's block cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PeerCache {
    /// HyperClockCache with automatic sizing. It is the faster one with many threads.
    HyperClock,
    /// The sharded LRU cache.
    Lru,
}

/// The settings: those that all engines share, and those of one engine. A shared setting is absent
/// if a profile of Sateen brings its own value; the peer then takes the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreConfig {
    /// Bytes of one memtable.
    pub memtable_bytes: Option<u64>,
    /// The largest number of memtables, the active one included.
    pub memtables: Option<u32>,
    /// Bytes of the block cache; 0 for none.
    pub block_cache_bytes: Option<u64>,
    /// Bits for each key in Bloom filters; 0 for no filters.
    pub bloom_bits: Option<f64>,
    /// Compression of all levels.
    pub compression: Option<Compression>,
    /// The WAL.
    pub wal: Option<Wal>,
    /// Direct I/O for reads, flushes and compactions.
    pub direct: Option<bool>,
    /// Flushes and compactions that may run at a time.
    pub jobs: Option<u32>,
    /// Limit of a file system below the engine for reads and for writes, in bytes a second; absent
    /// if only the disk limits them.
    #[serde(default)]
    pub device_limit: Option<u64>,
    /// The file in which that limit is changed while the load runs.
    #[serde(default)]
    pub device_limit_file: Option<PathBuf>,
    /// Databases that share memory, threads and the rate limit; absent for one.
    #[serde(default)]
    pub databases: Option<u32>,
    /// True if an extra writer overloads the first of these, which gets no other operation.
    #[serde(default)]
    pub overload: bool,
    /// Bytes of all memtables of all databases; absent for no such limit.
    #[serde(default)]
    pub all_memtables_bytes: Option<u64>,
    /// Sateen: true if each of several databases has threads and a scheduler of its own.
    #[serde(default)]
    pub apart: bool,
    /// Sateen: the profile.
    pub profile: Option<String>,
    /// Sateen: the keys at which all regions but the first begin.
    #[serde(default)]
    pub regions: Vec<Vec<u8>>,
    /// Sateen: options by name, after the profile.
    pub set: Vec<(String, String)>,
    /// Extra time of each barrier, in nanoseconds.
    #[serde(default)]
    pub barrier_cost_ns: u64,
    /// A peer: an options string of its own, applied last.
    pub peer_options: Option<String>,
    /// RocksDB: upper end of its auto-tuned rate limiter for flushes and compactions, in bytes a
    /// second; absent for no limiter.
    #[serde(default)]
    pub peer_rate_limit: Option<u64>,
    /// RocksDB: its block cache; absent for the faster one.
    pub peer_cache: Option<PeerCache>,
}

/// The shared settings of [`StoreConfig`], with defaults for absent ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shared {
    pub(crate) memtable_bytes: u64,
    pub(crate) memtables: u32,
    pub(crate) block_cache_bytes: u64,
    pub(crate) bloom_bits: f64,
    pub(crate) compression: Compression,
    pub(crate) wal: Wal,
    pub(crate) direct: bool,
    pub(crate) jobs: u32,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            memtable_bytes: 64 << 20,
            memtables: 2,
            block_cache_bytes: 256 << 20,
            bloom_bits: 10.0,
            compression: Compression::None,
            wal: Wal::Off,
            direct: false,
            jobs: 4,
        }
    }
}

impl StoreConfig {
    /// Returns settings that say nothing.
    pub(crate) fn nothing() -> StoreConfig {
        StoreConfig {
            memtable_bytes: None,
            memtables: None,
            block_cache_bytes: None,
            bloom_bits: None,
            compression: None,
            wal: None,
            direct: None,
            jobs: None,
            device_limit: None,
            device_limit_file: None,
            databases: None,
            overload: false,
            all_memtables_bytes: None,
            apart: false,
            profile: None,
            regions: Vec::new(),
            set: Vec::new(),
            barrier_cost_ns: 0,
            peer_options: None,
            peer_rate_limit: None,
            peer_cache: None,
        }
    }

    pub(crate) fn shared(&self) -> Shared {
        let default = Shared::default();
        Shared {
            memtable_bytes: self.memtable_bytes.unwrap_or(default.memtable_bytes),
            memtables: self.memtables.unwrap_or(default.memtables),
            block_cache_bytes: self.block_cache_bytes.unwrap_or(default.block_cache_bytes),
            bloom_bits: self.bloom_bits.unwrap_or(default.bloom_bits),
            compression: self.compression.unwrap_or(default.compression),
            wal: self.wal.unwrap_or(default.wal),
            direct: self.direct.unwrap_or(default.direct),
            jobs: self.jobs.unwrap_or(default.jobs),
        }
    }

    /// Returns the settings with defaults for absent shared ones.
    pub(crate) fn filled(&self) -> StoreConfig {
        let shared = self.shared();
        StoreConfig {
            memtable_bytes: Some(shared.memtable_bytes),
            memtables: Some(shared.memtables),
            block_cache_bytes: Some(shared.block_cache_bytes),
            bloom_bits: Some(shared.bloom_bits),
            compression: Some(shared.compression),
            wal: Some(shared.wal),
            direct: Some(shared.direct),
            jobs: Some(shared.jobs),
            ..self.clone()
        }
    }
}

/// An open database.
pub trait Store: Send + Sync {
    /// The engine's name and version.
    fn version(&self) -> String;

    /// What a reader of the figures must know of the engine, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// A handle for one thread.
    fn client(&self) -> Box<dyn Client + '_>;

    /// Flushes the memtables and waits for it.
    ///
    /// # Errors
    /// If the engine fails.
    fn flush(&self) -> Result<()>;

    /// Waits until no flush or compaction is running or due.
    ///
    /// # Errors
    /// If the engine fails.
    fn wait_idle(&self) -> Result<()>;

    /// Returns the engine's own figures. Called once a second.
    fn counters(&self) -> Counters;

    /// Extends the timeline with new events of the engine, if it has any. Called once a second.
    fn extend_timeline(&self, _timeline: &mut Timeline) {}

    /// Returns the number of databases.
    fn databases(&self) -> usize {
        1
    }

    /// Returns the number of the database that has a key.
    fn database_of(&self, _key: &[u8]) -> usize {
        0
    }

    /// A handle for a thread that writes into the first database only, whatever the keys.
    fn client_of_first(&self) -> Box<dyn Client + '_> {
        self.client()
    }
}

/// One thread's access to a [`Store`].
pub trait Client {
    /// Writes one key.
    ///
    /// # Errors
    /// If the engine fails.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Deletes one key.
    ///
    /// # Errors
    /// If the engine fails.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Reads the value of one key into `value`; false if the key does not exist.
    ///
    /// # Errors
    /// If the engine fails.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Reads several keys at once; returns how many exist.
    ///
    /// # Errors
    /// If the engine fails.
    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32>;

    /// Seeks to the first key not below `start` and reads the keys and values of up to `entries`
    /// entries; returns how many there were.
    ///
    /// # Errors
    /// If the engine fails.
    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32>;

    /// Writes the entries (`None`: delete) in one atomic batch.
    ///
    /// # Errors
    /// If the engine fails.
    fn write_batch(&mut self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()>;
}

/// Cumulated bytes of one class of I/O, as the engine counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassBytes {
    /// The class: "wal", "flush", "compaction", …
    pub class: String,
    /// Bytes read since open.
    pub read: u64,
    /// Bytes written since open.
    pub written: u64,
}

/// The current size of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSize {
    /// Tables.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these the bytes of tables that overlap little of the next level (vLSM §4.2); 0 if the
    /// engine does not tell.
    #[serde(default)]
    pub good: u64,
}

/// The delays and stops of writes for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StalledBy {
    /// The cause, as Sateen's metrics name it.
    pub cause: String,
    /// The number of delays and stops.
    pub count: u64,
    /// Their length in nanoseconds; `None` if the engine does not tell.
    pub ns: Option<u64>,
}

/// An engine's own figures. What it does not tell is empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes by class of I/O since open.
    pub io: Vec<ClassBytes>,
    /// The levels, from 0.
    pub levels: Vec<LevelSize>,
    /// Delays and stops of writes since open.
    pub stall_count: Option<u64>,
    /// The length of these in nanoseconds.
    pub stall_ns: Option<u64>,
    /// The same by cause.
    pub stalled_by: Vec<StalledBy>,
    /// Barriers since open: syncs of files and directories.
    pub barriers: Option<u64>,
    /// The compaction chain: how many compactions must follow each other before a full level 0 has
    /// room, and the bytes that they read.
    pub chain: Option<[u64; 2]>,
    /// True if writes are stopped now.
    pub stopped: bool,
    /// Bytes a second to which writes are limited now.
    pub delayed_rate: Option<u64>,
    /// Bytes of all memtables.
    pub memtable_bytes: Option<u64>,
    /// Bytes in the block cache.
    pub cache_bytes: Option<u64>,
    /// Bytes of indexes and filters outside of the block cache.
    pub table_bytes: Option<u64>,
    /// Compaction debt in bytes, by the engine's estimate.
    pub debt_bytes: Option<u64>,
    /// Bandwidths of the device for reads and writes in the engine's estimate, in bytes a second.
    pub believed: Option<[u64; 2]>,
    /// Flushes and compactions running now.
    pub running_jobs: Option<u64>,
    /// Job slots, and bytes at which the next memtable is sealed.
    pub knobs: Option<[u64; 2]>,
}

/// A store that does nothing, for measuring the benchmark itself.
pub(crate) struct NoStore;

impl Store for NoStore {
    fn version(&self) -> String {
        String::new()
    }

    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(NoStore)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

impl Client for NoStore {
    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    fn get(&mut self, _key: &[u8], _value: &mut Vec<u8>) -> Result<bool> {
        Ok(true)
    }

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        Ok(u32::try_from(keys.len()).unwrap_or(u32::MAX))
    }

    fn scan(&mut self, _start: &[u8], entries: u32) -> Result<u32> {
        Ok(entries)
    }

    fn write_batch(&mut self, _entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        Ok(())
    }
}
