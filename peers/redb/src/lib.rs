//! redb for `sateen bench --peer`: one table of bytes, in the file `bench.redb`.
//!
//! redb is a B-tree with copy-on-write and one writer at a time. Each put, delete and batch is a
//! transaction of its own. It has no background work.

use std::ffi::CString;
use std::ops::Bound;
use std::path::Path;

use redb::{AccessGuard, Database, Durability, Range, ReadableDatabase, TableDefinition};
use sateen_peer::{Change, Figures, Pair, Result, Settings, Store, failed, locked_version};

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("bench");

struct Redb {
    database: Database,
    two_phase_commit: bool,
    quick_repair: bool,
}

struct Entry(AccessGuard<'static, &'static [u8]>, AccessGuard<'static, &'static [u8]>);

impl Pair for Entry {
    fn key(&self) -> &[u8] {
        self.0.value()
    }

    fn value(&self) -> &[u8] {
        self.1.value()
    }
}

/// The entries from a key on, as one transaction has them.
struct Entries(Range<'static, &'static [u8], &'static [u8]>);

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let next = self.0.next()?;
        Some(failed("reading an entry", next).map(|(key, value)| Entry(key, value)))
    }
}

impl Store for Redb {
    type Entries = Entries;
    type Pair = Entry;

    fn open(directory: &Path, settings: &mut Settings<'_>) -> Result<Redb> {
        // Each write says whether it is synced; without that, no commit is durable.
        settings.one_of("wal", &["off", "sync"])?;
        settings.one_of("compression", &["none"])?;
        settings.one_of("bloom_bits", &["0"])?;
        let mut builder = Database::builder();
        if let Some(bytes) = settings.parsed("block_cache")? {
            builder.set_cache_size(bytes);
        }
        let two_phase_commit = settings.parsed("two_phase_commit")?.unwrap_or(false);
        let quick_repair = settings.parsed("quick_repair")?.unwrap_or(false);
        settings.finish()?;
        let database = failed("opening bench.redb", builder.create(directory.join("bench.redb")))?;
        let redb = Redb { database, two_phase_commit, quick_repair };
        // The table exists from here on: a read does not have to ask.
        redb.transact(true, |_| Ok(()))?;
        Ok(redb)
    }

    fn close(self) -> Result<()> {
        self.flush()?;
        failed("closing bench.redb", self.database.close())
    }

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<()> {
        self.transact(sync, |table| failed("a put", table.insert(key, value)).map(drop))
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<()> {
        self.transact(sync, |table| failed("a delete", table.remove(key)).map(drop))
    }

    fn write(&self, changes: &mut dyn Iterator<Item = Change<'_>>, sync: bool) -> Result<()> {
        self.transact(sync, |table| {
            for (key, value) in changes {
                match value {
                    Some(value) => failed("a put", table.insert(key, value)).map(drop)?,
                    None => failed("a delete", table.remove(key)).map(drop)?,
                }
            }
            Ok(())
        })
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<()> {
        let read = failed("beginning a read", self.database.begin_read())?;
        let table = failed("opening the table", read.open_table(TABLE))?;
        if let Some(value) = failed("a get", table.get(key))? {
            found(value.value());
        }
        Ok(())
    }

    fn entries(&self, key: &[u8]) -> Result<Entries> {
        let read = failed("beginning a read", self.database.begin_read())?;
        let table = failed("opening the table", read.open_table(TABLE))?;
        let from = (Bound::Included(key), Bound::<&[u8]>::Unbounded);
        failed("a seek", table.range::<&[u8]>(from)).map(Entries)
    }

    /// Makes what was committed durable.
    fn flush(&self) -> Result<()> {
        self.transact(true, |_| Ok(()))
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn count(&self, figures: &mut Figures) {
        figures.cache_bytes = self.database.cache_stats().used_bytes() as u64;
        figures.running_jobs = 0;
    }
}

type Table<'txn> = redb::Table<'txn, &'static [u8], &'static [u8]>;

impl Redb {
    /// Makes changes in a transaction.
    fn transact(
        &self,
        sync: bool,
        change: impl FnOnce(&mut Table<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut write = failed("beginning a write", self.database.begin_write())?;
        let durability = if sync { Durability::Immediate } else { Durability::None };
        failed("choosing the durability", write.set_durability(durability))?;
        write.set_two_phase_commit(self.two_phase_commit);
        write.set_quick_repair(self.quick_repair);
        {
            let mut table = failed("opening the table", write.open_table(TABLE))?;
            change(&mut table)?;
        }
        failed("a commit", write.commit())
    }
}

sateen_peer::export!(
    Redb,
    c"redb",
    CString::new(format!("redb {}", locked_version(include_str!("../Cargo.lock"), "redb")))
        .unwrap_or_default(),
    c"block_cache;bloom_bits=0;compression=none;wal=off|sync",
    c"two_phase_commit;quick_repair",
    c"redb is a B-tree with copy-on-write and one writer at a time: each write is a transaction of \
      its own. With --wal off a commit is not durable, and redb uses no freed page again before \
      the next durable commit."
);
