//! Several databases as one store: each key belongs to one of them, by its hash. So the load of one
//! database, its data and its rate are divided among all.

use sateen_workload::mix64;

use crate::store::{ClassBytes, Client, Counters, LevelSize, StalledBy, Store};
use crate::{Error, Result};

/// Open databases of one engine.
pub(crate) struct Databases {
    all: Vec<Box<dyn Store>>,
    /// Databases at the beginning that have no key.
    without_keys: usize,
}

impl Databases {
    /// Returns a store of these databases. With `overload` the first one has no key.
    pub(crate) fn new(all: Vec<Box<dyn Store>>, overload: bool) -> Databases {
        Databases { without_keys: usize::from(overload && all.len() > 1), all }
    }
}

struct DatabasesClient<'a> {
    store: &'a Databases,
    all: Vec<Box<dyn Client + 'a>>,
}

impl DatabasesClient<'_> {
    fn of(&mut self, key: &[u8]) -> Result<&mut dyn Client> {
        let nth = self.store.database_of(key);
        match self.all.get_mut(nth) {
            Some(client) => Ok(client.as_mut()),
            None => Err(Error::Failed(format!("there is no database {nth}"))),
        }
    }
}

impl Store for Databases {
    fn version(&self) -> String {
        self.all.first().map(|first| first.version()).unwrap_or_default()
    }

    fn notes(&self) -> Vec<String> {
        self.all.first().map(|first| first.notes()).unwrap_or_default()
    }

    fn client(&self) -> Box<dyn Client + '_> {
        let all = self.all.iter().map(|store| store.client()).collect();
        Box::new(DatabasesClient { store: self, all })
    }

    fn flush(&self) -> Result<()> {
        self.all.iter().try_for_each(|store| store.flush())
    }

    fn wait_idle(&self) -> Result<()> {
        self.all.iter().try_for_each(|store| store.wait_idle())
    }

    fn counters(&self) -> Counters {
        let all = self.all.iter().map(|store| store.counters());
        all.reduce(added).unwrap_or_default()
    }

    fn databases(&self) -> usize {
        self.all.len()
    }

    fn database_of(&self, key: &[u8]) -> usize {
        let hash = key.iter().fold(0, |hash, byte| mix64(hash ^ u64::from(*byte)));
        let with_keys = (self.all.len() - self.without_keys).max(1);
        self.without_keys + (hash % with_keys as u64) as usize
    }

    fn client_of_first(&self) -> Box<dyn Client + '_> {
        self.all.first().map_or_else(|| self.client(), |first| first.client())
    }
}

impl Client for DatabasesClient<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.of(key)?.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.of(key)?.delete(key)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.of(key)?.get(key, value)
    }

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        let mut of_each = vec![Vec::new(); self.all.len()];
        for key in keys {
            of_each[self.store.database_of(key)].push(*key);
        }
        let asked = self.all.iter_mut().zip(&of_each).filter(|(_, keys)| !keys.is_empty());
        asked.map(|(client, keys)| client.multi_get(keys)).sum()
    }

    /// Scans the database of the first key.
    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        self.of(start)?.scan(start, entries)
    }

    fn write_batch(&mut self, _entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        Err(Error::Failed("a batch is for one database".to_owned()))
    }
}

/// Adds the figures of two databases. What they share, such as the cache and the device, is not
/// added.
fn added(one: Counters, other: Counters) -> Counters {
    let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
    Counters {
        io: added_io(one.io, other.io),
        levels: added_levels(one.levels, other.levels),
        stall_count: both(one.stall_count, other.stall_count),
        stall_ns: both(one.stall_ns, other.stall_ns),
        stalled_by: added_stalls(one.stalled_by, other.stalled_by),
        barriers: both(one.barriers, other.barriers),
        chain: one.chain.max(other.chain),
        stopped: one.stopped || other.stopped,
        delayed_rate: one.delayed_rate.into_iter().chain(other.delayed_rate).min(),
        memtable_bytes: both(one.memtable_bytes, other.memtable_bytes),
        cache_bytes: one.cache_bytes.max(other.cache_bytes),
        table_bytes: both(one.table_bytes, other.table_bytes),
        debt_bytes: both(one.debt_bytes, other.debt_bytes),
        believed: one.believed,
        running_jobs: both(one.running_jobs, other.running_jobs),
        knobs: one.knobs,
    }
}

fn added_io(mut sums: Vec<ClassBytes>, others: Vec<ClassBytes>) -> Vec<ClassBytes> {
    for (sum, other) in sums.iter_mut().zip(others) {
        sum.read += other.read;
        sum.written += other.written;
    }
    sums
}

fn added_levels(mut sums: Vec<LevelSize>, others: Vec<LevelSize>) -> Vec<LevelSize> {
    sums.resize(sums.len().max(others.len()), LevelSize::default());
    for (sum, other) in sums.iter_mut().zip(others) {
        sum.files += other.files;
        sum.bytes += other.bytes;
        sum.good += other.good;
    }
    sums
}

fn added_stalls(mut sums: Vec<StalledBy>, others: Vec<StalledBy>) -> Vec<StalledBy> {
    for other in others {
        match sums.iter_mut().find(|sum| sum.cause == other.cause) {
            Some(sum) => {
                sum.count += other.count;
                sum.ns = sum.ns.zip(other.ns).map(|(one, other)| one + other);
            }
            None => sums.push(other),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NoStore;

    fn of(count: usize, overload: bool) -> Databases {
        let all = (0..count).map(|_| Box::new(NoStore) as Box<dyn Store>).collect();
        Databases::new(all, overload)
    }

    #[test]
    fn every_database_but_one_in_overload_has_its_part_of_the_keys() {
        for (overload, with_keys) in [(false, 16), (true, 15)] {
            let databases = of(16, overload);
            let mut counts = [0_u32; 16];
            (0..16_000_u64).for_each(|n| counts[databases.database_of(&n.to_be_bytes())] += 1);
            assert_eq!(counts[0] == 0, overload);
            let mean = 16_000 / with_keys;
            let own = &counts[usize::from(overload)..];
            assert!(own.iter().all(|count| count.abs_diff(mean) < mean / 5), "{counts:?}");
        }
    }

    #[test]
    fn counters_of_all_are_added_up() {
        let level = |bytes| LevelSize { files: 1, bytes, good: 0 };
        let stalled = |cause: &str| StalledBy { cause: cause.to_owned(), count: 1, ns: Some(5) };
        let one = Counters { levels: vec![level(3)], barriers: Some(2), ..Counters::default() };
        let one = Counters { stalled_by: vec![stalled("a")], cache_bytes: Some(7), ..one };
        let other = Counters { levels: vec![level(1), level(9)], ..one.clone() };
        let other = Counters { stalled_by: vec![stalled("a"), stalled("b")], ..other };
        let sum = added(one, other);
        assert_eq!(sum.levels.iter().map(|level| level.bytes).collect::<Vec<_>>(), [4, 9]);
        assert_eq!((sum.barriers, sum.cache_bytes, sum.debt_bytes), (Some(4), Some(7), None));
        assert_eq!(sum.stalled_by.iter().map(|by| by.count).collect::<Vec<_>>(), [2, 1]);
    }
}
