//! The adapter of this project's own engine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sateen::timeline::Timeline;
use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, PosixVfs, Vfs, VfsOperation};
use sateen::{ColumnFamily, Db, Options, ReadOptions, WriteBatch, WriteOptions};

use crate::store::{ClassBytes, Client, Compression, Counters, LevelSize, Store, StoreConfig, Wal};
use crate::{Error, Result};

fn failed(error: sateen::Error) -> Error {
    Error::Failed(error.to_string())
}

/// Opens the database in `directory`.
pub(crate) fn open(directory: &Path, config: &StoreConfig) -> Result<Box<dyn Store>> {
    let options = options(config)?;
    let db = Db::open_with(vfs(config), directory, options, &[]).map_err(failed)?;
    Ok(Box::new(SateenStore { family: db.default_column_family(), db }))
}

/// The file system, with barriers that cost what they are told to.
fn vfs(config: &StoreConfig) -> Arc<dyn Vfs> {
    let posix: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
    if config.barrier_cost_ns == 0 {
        return posix;
    }
    let slow = FaultVfs::new(posix);
    let delay = Fault::Delay(Duration::from_nanos(config.barrier_cost_ns));
    for barrier in [VfsOperation::Sync, VfsOperation::SyncDir] {
        slow.add(FaultRule::new(delay).on(barrier));
    }
    Arc::new(slow)
}

fn options(config: &StoreConfig) -> Result<Options> {
    let mut options = match &config.profile {
        Some(name) => Options::profile(name).map_err(failed)?,
        None => Options::default(),
    };
    let compression = match config.compression {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    };
    let wal = match config.wal {
        Wal::Off => "off",
        Wal::Buffered => "buffered",
        Wal::Sync => "sync",
    };
    let settings = [
        ("memtable_bytes", config.memtable_bytes.to_string()),
        ("memtables_max", config.memtables.to_string()),
        ("block_cache_bytes", config.block_cache_bytes.to_string()),
        ("bloom_bits_per_key", format!("{:.0}", config.bloom_bits)),
        ("compression", compression.to_owned()),
        ("wal", wal.to_owned()),
        ("direct_reads", config.direct.to_string()),
        ("direct_io_for_flush_and_compaction", config.direct.to_string()),
        ("background_threads", config.jobs.max(1).to_string()),
        ("max_background_flushes", (config.jobs / 4).max(1).to_string()),
        (
            "max_background_compactions",
            config.jobs.saturating_sub((config.jobs / 4).max(1)).max(1).to_string(),
        ),
    ];
    for (name, value) in &settings {
        options.set(name, value).map_err(failed)?;
    }
    for (name, value) in &config.set {
        options.set(name, value).map_err(failed)?;
    }
    Ok(options)
}

struct SateenStore {
    db: Db,
    family: ColumnFamily,
}

struct SateenClient<'a> {
    store: &'a SateenStore,
    read: ReadOptions,
    write: WriteOptions,
    batch: WriteBatch,
}

impl Store for SateenStore {
    fn version(&self) -> String {
        format!("Sateen {}", env!("CARGO_PKG_VERSION"))
    }

    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(SateenClient {
            store: self,
            read: ReadOptions::default(),
            write: WriteOptions::default(),
            batch: WriteBatch::new(),
        })
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map_err(failed)
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.wait_idle().map_err(failed)
    }

    fn extend_timeline(&self, timeline: &mut Timeline) {
        self.db.extend_timeline(timeline);
    }

    fn counters(&self) -> Counters {
        let metrics = self.db.metrics();
        let class = |at: usize| {
            let totals = &metrics.io[at].totals;
            ClassBytes {
                class: IoClass::NAMES[at].to_owned(),
                read: totals.read_bytes,
                written: totals.write_bytes,
            }
        };
        let level = |shape: &sateen::metrics::LevelShape| LevelSize {
            files: shape.tables,
            bytes: shape.bytes,
        };
        let family = metrics.column_families.first();
        let number = |name: &str| self.db.property(name).and_then(|text| text.parse().ok());
        Counters {
            io: (0..metrics.io.len()).map(class).collect(),
            levels: family.map(|f| f.levels.iter().map(level).collect()).unwrap_or_default(),
            stall_count: Some(metrics.stalls.iter().map(|stall| stall.waits_ns.count()).sum()),
            stall_ns: Some(metrics.stalls.iter().map(|stall| stall.waits_ns.sum()).sum()),
            barriers: Some(metrics.io.iter().map(|class| class.totals.syncs).sum()),
            stopped: number("sateen.is-write-stopped") == Some(1),
            delayed_rate: number("sateen.actual-delayed-write-rate").filter(|rate| *rate > 0),
            memtable_bytes: Some(
                metrics.memory.active_memtables + metrics.memory.immutable_memtables,
            ),
            cache_bytes: Some(metrics.memory.block_cache),
            table_bytes: Some(metrics.memory.indexes_and_filters),
            believed: number("sateen.device-read-bandwidth")
                .zip(number("sateen.device-write-bandwidth"))
                .map(|(read, write)| [read, write]),
            debt_bytes: family.map(|family| family.compaction_debt_bytes),
            running_jobs: Some(metrics.running_flushes + metrics.running_compactions),
        }
    }
}

impl Client for SateenClient<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.db.put_cf(&self.store.family, key, value, &self.write).map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.db.delete_cf(&self.store.family, key, &self.write).map_err(failed)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.store.db.get_pinned_cf(&self.store.family, key, &self.read);
        Ok(match found.map_err(failed)? {
            Some(found) => {
                value.clear();
                value.extend_from_slice(&found);
                true
            }
            None => false,
        })
    }

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        let mut found = 0;
        for answer in self.store.db.multi_get(&self.store.family, keys, &self.read) {
            found += u32::from(answer.map_err(failed)?.is_some());
        }
        Ok(found)
    }

    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        let mut iter = self.store.db.iter_cf(&self.store.family, &self.read).map_err(failed)?;
        iter.seek(start);
        let mut seen = 0;
        while seen < entries && iter.valid() {
            std::hint::black_box((iter.key().last(), iter.value().last()));
            seen += 1;
            iter.next();
        }
        iter.status().map_err(failed)?;
        Ok(seen)
    }

    fn write_batch(&mut self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        self.batch.clear();
        for (key, value) in entries {
            match value {
                Some(value) => self.batch.put(key, value),
                None => self.batch.delete(key),
            }
            .map_err(failed)?;
        }
        self.store.db.write(&self.batch, &self.write).map_err(failed)
    }
}
