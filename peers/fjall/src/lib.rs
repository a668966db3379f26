//! fjall for `sateen bench --peer`: one keyspace, with the benchmark's settings.
//!
//! fjall flushes and compacts in its own threads. It says how many flushes are due and how many
//! compactions run, but not how many are due: [`Store::wait_idle`] looks several times.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};
use sateen_peer::{Change, Figures, Pair, Result, Settings, Store, failed, locked_version};

/// Background work counts as at rest if it is so at this many looks in a row.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// fjall refuses smaller limits of its journals by a panic.
const JOURNALS_BYTES_MIN: u64 = 64 << 20;

/// fjall refuses block sizes outside of these by a panic.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = (1 << 10)..=(1 << 20);

struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

struct Entry(Slice, Slice);

impl Pair for Entry {
    fn key(&self) -> &[u8] {
        &self.0
    }

    fn value(&self) -> &[u8] {
        &self.1
    }
}

/// The entries from a key on, as one snapshot has them.
struct Entries(fjall::Iter);

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let guard = self.0.next()?;
        Some(failed("reading an entry", guard.into_inner()).map(|(key, value)| Entry(key, value)))
    }
}

impl Store for Fjall {
    type Entries = Entries;
    type Pair = Entry;

    fn open(directory: &Path, settings: &mut Settings<'_>) -> Result<Fjall> {
        let compression = match settings.one_of("compression", &["none", "lz4"])? {
            "lz4" => CompressionType::Lz4,
            _ => CompressionType::None,
        };
        // Each write says whether it is synced; without that, it is in the page cache.
        settings.one_of("wal", &["buffered", "sync"])?;
        settings.one_of("memtables", &["5"])?;
        let mut options = KeyspaceCreateOptions::default()
            .data_block_compression_policy(CompressionPolicy::all(compression))
            .index_block_compression_policy(CompressionPolicy::all(compression));
        if let Some(bytes) = settings.parsed("memtable_size")? {
            options = options.max_memtable_size(bytes);
        }
        if let Some(bits) = settings.parsed::<f32>("bloom_bits")? {
            let filter = match bits {
                0.0 => FilterPolicyEntry::None,
                bits => FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits)),
            };
            options = options.filter_policy(FilterPolicy::all(filter));
        }
        if let Some(bytes) = settings.parsed::<u32>("data_block_size")? {
            if !BLOCK_BYTES.contains(&bytes) {
                return Err(format!("data_block_size={bytes}: fjall has 1024 to 1048576"));
            }
            options = options.data_block_size_policy(BlockSizePolicy::all(bytes));
        }
        let table_bytes = settings.parsed::<u64>("table_target_size")?;
        let runs = settings.parsed::<u8>("l0_threshold")?;
        if table_bytes.is_some() || runs.is_some() {
            let mut strategy = Leveled::default();
            if let Some(bytes) = table_bytes {
                strategy = strategy.with_table_target_size(bytes);
            }
            if let Some(runs) = runs {
                strategy = strategy.with_l0_threshold(runs);
            }
            options = options.compaction_strategy(Arc::new(strategy));
        }
        // The WALs of the other engines are not compressed.
        let mut builder =
            Database::builder(directory).journal_compression(CompressionType::None);
        if let Some(bytes) = settings.parsed("block_cache")? {
            builder = builder.cache_size(bytes);
        }
        if let Some(jobs) = settings.parsed::<usize>("jobs")? {
            if jobs == 0 {
                return Err("jobs=0: fjall has at least one thread".to_owned());
            }
            builder = builder.worker_threads(jobs);
        }
        if let Some(bytes) = settings.parsed::<u64>("max_journaling_size")? {
            if bytes < JOURNALS_BYTES_MIN {
                return Err(format!(
                    "max_journaling_size={bytes}: fjall has at least {JOURNALS_BYTES_MIN}"
                ));
            }
            builder = builder.max_journaling_size(bytes);
        }
        settings.finish()?;
        let database = failed("opening the database", builder.open())?;
        let keyspace = failed("opening the keyspace", database.keyspace("bench", || options))?;
        Ok(Fjall { database, keyspace })
    }

    fn close(self) -> Result<()> {
        failed("syncing the journal", self.database.persist(PersistMode::SyncAll))
    }

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<()> {
        failed("a put", self.keyspace.insert(key, value))?;
        self.persist(sync)
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<()> {
        failed("a delete", self.keyspace.remove(key))?;
        self.persist(sync)
    }

    fn write(&self, changes: &mut dyn Iterator<Item = Change<'_>>, sync: bool) -> Result<()> {
        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        failed("a batch", batch.commit())
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<()> {
        if let Some(value) = failed("a get", self.keyspace.get(key))? {
            found(&value);
        }
        Ok(())
    }

    fn entries(&self, key: &[u8]) -> Result<Entries> {
        Ok(Entries(self.keyspace.range(key..)))
    }

    fn flush(&self) -> Result<()> {
        failed("sealing the memtable", self.keyspace.rotate_memtable())?;
        while self.has_flushes() {
            self.check()?;
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        let mut idle = 0;
        while idle < LOOKS {
            self.check()?;
            let busy = self.has_flushes() || self.database.active_compactions() > 0;
            idle = if busy { 0 } else { idle + 1 };
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn count(&self, figures: &mut Figures) {
        figures.memtable_bytes = self.database.write_buffer_size();
        figures.cache_bytes = self.database.cache_size();
        figures.running_jobs = self.database.active_compactions() as u64;
    }
}

impl Fjall {
    fn persist(&self, sync: bool) -> Result<()> {
        if !sync {
            return Ok(());
        }
        failed("syncing the journal", self.database.persist(PersistMode::SyncData))
    }

    fn has_flushes(&self) -> bool {
        self.database.outstanding_flushes() > 0 || self.keyspace.sealed_memtable_count() > 0
    }

    /// Fails if a thread of fjall has failed, because its work would be waited for without an end.
    fn check(&self) -> Result<()> {
        failed("background work", self.database.persist(PersistMode::Buffer))
    }
}

sateen_peer::export!(
    Fjall,
    c"fjall",
    CString::new(format!("fjall {}", locked_version(include_str!("../Cargo.lock"), "fjall")))
        .unwrap_or_default(),
    c"memtable_size;memtables=5;block_cache;bloom_bits;compression=none|lz4;wal=buffered|sync;jobs",
    c"data_block_size;table_target_size;l0_threshold;max_journaling_size",
    c"fjall stops writes at five memtables, has buffered I/O, and always writes its journal. It \
      counts neither the bytes nor the stalls of its background work, and does not tell which \
      compactions are due."
);
