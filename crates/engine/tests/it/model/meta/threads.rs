//! The same with background threads on the real disk: three clients, each with keys of its own, so
//! that each has an exact model.

use std::collections::BTreeMap;

use sateen::{ColumnFamily, CompactRangeOptions, Db, FlushOptions, Options, ReadOptions, WalMode};
use sateen::{Snapshot, WriteBatch, WriteOptions};

use super::{number, ops};
use crate::support::common::{Random, assert_sound, read_all, tiny};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A client's part of the database: the keys that begin with its number.
struct Client<'a> {
    db: &'a Db,
    families: &'a [ColumnFamily],
    thread: u8,
    models: Vec<Model>,
    snapshots: Vec<(Snapshot, Vec<Model>)>,
}

impl Client<'_> {
    fn key(&self, random: &mut Random) -> Vec<u8> {
        let mut key = vec![b'0' + self.thread];
        key.extend(ops::key(random));
        key.truncate(sateen::KEY_BYTES_MAX);
        key
    }

    fn act(&mut self, random: &mut Random) {
        let at = random.below(self.families.len() as u64) as usize;
        let family = &self.families[at];
        let options = WriteOptions { sync: random.one_in(50), ..WriteOptions::default() };
        match random.below(41) {
            40 => {
                let (begin, end) = (self.key(random), self.key(random));
                if begin < end {
                    family.writing(&options).delete_range(&begin, &end).unwrap();
                    self.models[at].retain(|key, _| *key < begin || *key >= end);
                }
            }
            0..14 => {
                let (key, value) = (self.key(random), ops::value(random).to_vec());
                family.writing(&options).put(&key, &value).unwrap();
                self.models[at].insert(key, value);
            }
            14..19 => {
                let key = self.key(random);
                family.writing(&options).delete(&key).unwrap();
                self.models[at].remove(&key);
            }
            19..23 => {
                let mut batch = WriteBatch::new();
                for _ in 0..random.below(8) {
                    let at = random.below(self.families.len() as u64) as usize;
                    let (key, value) = (self.key(random), ops::value(random).to_vec());
                    batch.to(&self.families[at]).put(&key, &value).unwrap();
                    self.models[at].insert(key, value);
                }
                self.db.write(&batch, &options).unwrap();
            }
            23..29 => {
                let key = self.key(random);
                let found = family.get(&key).unwrap();
                assert_eq!(found.as_ref(), self.models[at].get(&key), "{key:?}");
            }
            29..31 => self.compare(at, ReadOptions::default(), &self.models[at]),
            31 => {
                self.snapshots.truncate(2);
                self.snapshots.insert(0, (self.db.snapshot(), self.models.clone()));
            }
            32..34 => {
                if let Some((snapshot, models)) = self.snapshots.last() {
                    self.compare(at, ReadOptions::at(snapshot), &models[at]);
                }
            }
            34 => {
                let flush = FlushOptions { wait: random.one_in(2) };
                family.flush_with(&flush).unwrap();
            }
            35 if random.one_in(4) => {
                let key = self.key(random);
                let compact = CompactRangeOptions { wait: random.one_in(2), ..Default::default() };
                family.compact_range(Some(&key), None, &compact).unwrap();
            }
            36 if random.one_in(4) => self.db.sync_wal().unwrap(),
            37 if random.one_in(10) => assert_sound(self.db),
            _ => {}
        }
    }

    fn compare(&self, at: usize, mut options: ReadOptions, model: &Model) {
        options.prefix = Some(vec![b'0' + self.thread]);
        let found = read_all(&self.families[at], &options);
        assert!(
            found == *model,
            "client {} family {at}: {} and {} keys",
            self.thread,
            found.len(),
            model.len()
        );
    }
}

fn run(options: &Options, seed: u64, count: u64) {
    let directory = tempfile::tempdir().unwrap();
    println!("REPLAY: SATEEN_META_SEED={seed} (threads: not every run of a seed is the same)");
    let mut models = vec![vec![Model::new(); 2]; 3];
    for round in 0..2 {
        let db = Db::open(directory.path(), options.clone()).unwrap();
        if round == 0 {
            db.create_column_family("other", options.column_family.clone()).unwrap();
        }
        let families = [db.default_column_family(), db.column_family("other").unwrap()];
        models = std::thread::scope(|scope| {
            let clients: Vec<_> = std::mem::take(&mut models)
                .into_iter()
                .enumerate()
                .map(|(thread, models)| {
                    let (db, families) = (&db, &families);
                    scope.spawn(move || {
                        let thread = thread as u8;
                        let mut random = Random::new(seed * 100 + round * 10 + u64::from(thread));
                        let snapshots = Vec::new();
                        let mut client = Client { db, families, thread, models, snapshots };
                        (0..2).for_each(|at| {
                            client.compare(at, ReadOptions::default(), &client.models[at]);
                        });
                        (0..count).for_each(|_| client.act(&mut random));
                        client.models
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        db.wait_idle().unwrap();
        assert_sound(&db);
        assert_eq!(db.health().0, sateen::Health::Ok);
        assert_eq!(db.property("sateen.num-snapshots").unwrap(), "0");
        db.close().unwrap();
    }
}

#[test]
fn three_clients_on_the_real_disk() {
    let seed = number("SATEEN_META_SEED").unwrap_or(77);
    let count = number("SATEEN_META_OPS").unwrap_or(1200);
    let sets = [
        Options { background_threads: 2, max_background_compactions: 4, ..tiny() },
        Options { background_threads: 4, wal: WalMode::Off, ..tiny() },
        Options { background_threads: 1, direct_reads: true, max_open_files: 16, ..tiny() },
        Options {
            background_threads: 3,
            wal: WalMode::SyncInterval(std::time::Duration::from_millis(1)),
            manifest_bytes_max: 1,
            ..tiny()
        },
    ];
    for (number, mut options) in sets.into_iter().enumerate() {
        // A write that is synced needs a log.
        if options.wal == WalMode::Off {
            options.column_family.memtable_bytes = 2 << 10;
            options.wal = WalMode::Buffered;
            options.max_total_wal_bytes = 1;
        }
        run(&options, seed + number as u64, count);
    }
}
