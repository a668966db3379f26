//! The adapter for Sateen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sateen::timeline::Timeline;
use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, PosixVfs, Vfs, VfsOperation};
use sateen::{ColumnFamily, Db, Options, ReadOptions, Regions, Runtime, WriteBatch, WriteOptions};

use crate::device::{Device, LimitedVfs};
use crate::store::{
    ClassBytes, Client, Compression, Counters, LevelSize, StalledBy, Store, StoreConfig, Wal,
};
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

/// Opens a database in each of the folders. They share threads, the scheduler and memory, unless
/// the settings say otherwise.
pub(crate) fn open_all(folders: &[PathBuf], config: &StoreConfig) -> Result<Vec<Box<dyn Store>>> {
    let mut options = options(config)?;
    let mut runtime = Runtime::builder().block_cache_bytes(options.block_cache_bytes);
    runtime = runtime.threads(options.background_threads);
    if let Some(bytes) = config.all_memtables_bytes {
        runtime = runtime.all_memtables_bytes(bytes);
    }
    let runtime = runtime.build();
    options.shared_block_cache = runtime.block_cache().cloned();
    options.write_buffer_manager = runtime.write_buffer_manager().cloned();
    options.runtime = (!config.apart).then_some(runtime);
    let vfs = vfs(config);
    let open = |folder: &PathBuf| {
        let db = Db::open_with(vfs.clone(), folder, options.clone(), &[]).map_err(failed)?;
        Ok(Box::new(SateenStore { family: db.default_column_family(), db }) as Box<dyn Store>)
    };
    folders.iter().map(open).collect()
}

/// Returns the file system, with the device limit and the extra cost of barriers that the settings
/// ask for.
fn vfs(config: &StoreConfig) -> Arc<dyn Vfs> {
    let posix: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
    let disk = match config.device_limit {
        None => posix,
        Some(limit) => {
            let device = Device::following(limit, config.device_limit_file.clone());
            Arc::new(LimitedVfs::new(posix, Arc::new(device)))
        }
    };
    if config.barrier_cost_ns == 0 {
        return disk;
    }
    let slow = FaultVfs::new(disk);
    let delay = Fault::Delay(Duration::from_nanos(config.barrier_cost_ns));
    for barrier in [VfsOperation::Sync, VfsOperation::SyncDir] {
        slow.add(FaultRule::new(delay).on(barrier));
    }
    Arc::new(slow)
}

/// Checks that the options exist and go together.
pub(crate) fn check(config: &StoreConfig) -> Result<()> {
    options(config)?.validate().map_err(|error| Error::Usage(error.to_string()))
}

fn options(config: &StoreConfig) -> Result<Options> {
    let mut options = match &config.profile {
        Some(name) => Options::profile(name).map_err(failed)?,
        None => Options::default(),
    };
    let compression = config.compression.map(|compression| match compression {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    });
    let wal = config.wal.map(|wal| match wal {
        Wal::Off => "off",
        Wal::Buffered => "buffered",
        Wal::Sync => "sync",
    });
    let flushes = config.jobs.map(|jobs| (jobs / 4).max(1));
    let compactions =
        config.jobs.zip(flushes).map(|(jobs, flushes)| jobs.saturating_sub(flushes).max(1));
    let settings = [
        ("memtable_bytes", text(config.memtable_bytes)),
        ("memtables_max", text(config.memtables)),
        ("block_cache_bytes", text(config.block_cache_bytes)),
        ("bloom_bits_per_key", text(config.bloom_bits.map(f64::round))),
        ("compression", text(compression)),
        ("wal", text(wal)),
        ("direct_reads", text(config.direct)),
        ("direct_io_for_flush_and_compaction", text(config.direct)),
        ("background_threads", text(config.jobs.map(|jobs| jobs.max(1)))),
        ("max_background_flushes", text(flushes)),
        ("max_background_compactions", text(compactions)),
    ];
    for (name, value) in settings {
        if let Some(value) = value {
            options.set(name, &value).map_err(failed)?;
        }
    }
    if !config.regions.is_empty() {
        options.column_family.regions = Regions::at(config.regions.clone()).map_err(failed)?;
    }
    for (name, value) in &config.set {
        options.set(name, value).map_err(failed)?;
    }
    Ok(options)
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
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
            good: shape.good_bytes,
        };
        let family = metrics.column_families.first();
        let number = |name: &str| self.db.property(name).and_then(|text| text.parse().ok());
        Counters {
            io: (0..metrics.io.len()).map(class).collect(),
            levels: family.map(|f| f.levels.iter().map(level).collect()).unwrap_or_default(),
            stall_count: Some(metrics.stalls.iter().map(|stall| stall.waits_ns.count()).sum()),
            stall_ns: Some(metrics.stalls.iter().map(|stall| stall.waits_ns.sum()).sum()),
            stalled_by: metrics
                .stalls
                .iter()
                .map(|stall| StalledBy {
                    cause: stall.cause.name().to_owned(),
                    count: stall.waits_ns.count(),
                    ns: Some(stall.waits_ns.sum()),
                })
                .collect(),
            chain: family.map(|family| [family.chain_length, family.chain_bytes]),
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
            knobs: family.map(|family| {
                let slots = metrics.scheduler.flush_slots + metrics.scheduler.compaction_slots;
                [slots, family.memtable_limit]
            }),
        }
    }
}

impl Client for SateenClient<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.family.writing(&self.write).put(key, value).map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.family.writing(&self.write).delete(key).map_err(failed)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.store.family.reading(&self.read).get_pinned(key);
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
        for answer in self.store.family.reading(&self.read).multi_get(keys) {
            found += u32::from(answer.map_err(failed)?.is_some());
        }
        Ok(found)
    }

    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        let mut iter = self.store.family.cursor(&self.read).map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::parse;
    use crate::store::Shared;

    fn options_of(line: &str) -> Options {
        options(&parse(line).store_config().unwrap()).unwrap()
    }

    #[test]
    fn a_profile_keeps_what_no_option_says_otherwise() {
        let plain = options_of("");
        assert_eq!(plain.column_family.memtable_bytes, Shared::default().memtable_bytes);
        assert_eq!(plain.wal, sateen::WalMode::Off);
        let given = "--profile leveldb --block-cache 3M --jobs 4 --set memtables_max=5";
        let (own, changed) = (Options::profile("leveldb").unwrap(), options_of(given));
        assert_eq!(changed.column_family.memtable_bytes, own.column_family.memtable_bytes);
        assert_eq!(changed.column_family.compression, own.column_family.compression);
        assert_eq!((changed.wal, changed.direct_reads), (own.wal, own.direct_reads));
        assert_eq!((changed.block_cache_bytes, changed.max_background_compactions), (3 << 20, 3));
        assert_eq!(changed.column_family.memtables_max, 5);
    }

    #[test]
    fn regions_have_as_many_of_the_keys() {
        let regions = options_of("--regions 4 -n 1000").column_family.regions;
        let begins: Vec<u64> = (regions.begins().iter())
            .map(|key| u64::from_be_bytes(key[..8].try_into().unwrap()))
            .collect();
        assert_eq!(begins, [250, 500, 750]);
        assert_eq!(options_of("").column_family.regions.count(), 1);
    }
}
