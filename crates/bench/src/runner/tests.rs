//! The runner on a store in memory: operations offered, done and measured.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sateen_workload::KeyStyle;

use super::*;
use crate::databases::Databases;
use crate::store::Counters;
use crate::{Error, Result};

#[derive(Default)]
struct MemoryStore {
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fail_after: Option<usize>,
}

struct MemoryClient<'a>(&'a MemoryStore);

impl Store for MemoryStore {
    fn version(&self) -> String {
        "memory".to_owned()
    }

    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(MemoryClient(self))
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

impl Client for MemoryClient<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut map = self.0.map.lock().unwrap();
        if self.0.fail_after.is_some_and(|limit| map.len() >= limit) {
            return Err(Error::Failed("the disk is full".to_owned()));
        }
        map.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.map.lock().unwrap().remove(key);
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let map = self.0.map.lock().unwrap();
        Ok(map.get(key).map(|found| value.extend_from_slice(found)).is_some())
    }

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        let map = self.0.map.lock().unwrap();
        Ok(keys.iter().filter(|key| map.contains_key(**key)).count() as u32)
    }

    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        let map = self.0.map.lock().unwrap();
        Ok(map.range(start.to_vec()..).take(entries as usize).count() as u32)
    }

    fn write_batch(&mut self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        for (key, value) in entries {
            match value {
                Some(value) => self.put(key, value)?,
                None => self.delete(key)?,
            }
        }
        Ok(())
    }
}

fn with_phase<T>(name: &str, change: impl FnOnce(&mut Spec), f: impl FnOnce(Phase<'_>) -> T) -> T {
    let mut spec = Spec::named(name).unwrap();
    change(&mut spec);
    let values = ValueSource::new(1, 0.5, 1000);
    f(Phase {
        spec: &spec,
        threads: 2,
        items: 2_000,
        operations: Some(2_000),
        seconds: None,
        process: Process::Even,
        seed: 9,
        format: KeyFormat { size: 16, style: KeyStyle::BigEndian },
        sizes: ValueSize::Fixed(100),
        scan: ScanLength::Fixed(10),
        values: &values,
        write_rate: None,
        overload: false,
        replay: None,
        live: Live::Nothing,
        trace: None,
    })
}

fn loaded() -> MemoryStore {
    let store = MemoryStore::default();
    with_phase("fillseq", |_| (), |phase| run(&store, &phase).unwrap());
    store
}

#[test]
fn a_closed_loop_does_every_operation_once() {
    let store = MemoryStore::default();
    let measured = with_phase("fillseq", |_| (), |phase| run(&store, &phase).unwrap());
    assert_eq!((measured.done, measured.offered, measured.unserved), (2_000, 2_000, 0));
    assert_eq!(store.map.lock().unwrap().len(), 2_000);
    assert_eq!(measured.user_bytes_written, 2_000 * 116);
    assert_eq!(measured.kinds["write"].latency.count, 2_000);
    assert_eq!(measured.timeline.iter().map(|second| second.done[1]).sum::<u64>(), 2_000);
    assert!(!measured.open_loop && measured.ops_per_second > 0.0);
}

#[test]
fn reads_find_what_was_loaded_and_missing_reads_nothing() {
    let store = loaded();
    let found = with_phase("readrandom", |_| (), |phase| run(&store, &phase).unwrap());
    assert_eq!((found.done, found.not_found), (2_000, 0));
    let missing = with_phase("readmissing", |_| (), |phase| run(&store, &phase).unwrap());
    assert_eq!(missing.not_found, 2_000);
    let scans = with_phase("seekrandom", |_| (), |phase| run(&store, &phase).unwrap());
    assert!(scans.scanned > 19_000 && scans.kinds.contains_key("scan"));
}

#[test]
fn keys_that_are_read_together_count_each_and_a_call_once() {
    let store = loaded();
    let together = |spec: &mut Spec| spec.reads_together = 64;
    let found = with_phase("readrandom", together, |phase| run(&store, &phase).unwrap());
    assert_eq!((found.done, found.not_found), (2_000, 0));
    // Each of two threads reads 1,000 keys.
    assert_eq!(found.kinds["read"].latency.count, 2 * 16);
    let missing = with_phase("readmissing", together, |phase| run(&store, &phase).unwrap());
    assert_eq!((missing.done, missing.not_found), (2_000, 2_000));
}

#[test]
fn an_open_loop_offers_what_its_schedule_says() {
    let store = loaded();
    let measured = with_phase(
        "ycsb-a",
        |spec| spec.arrivals = ArrivalSpec::Steady { rate: 2_000.0 },
        |mut phase| {
            phase.operations = None;
            phase.seconds = Some(0.5);
            run(&store, &phase).unwrap()
        },
    );
    assert!(measured.open_loop);
    assert_eq!(measured.offered, measured.done + measured.unserved);
    assert!((998..=1_002).contains(&measured.offered), "{}", measured.offered);
    assert_eq!(
        measured.timeline.iter().map(|second| second.offered).sum::<u64>(),
        measured.offered
    );
    assert!(measured.kinds["read"].service.is_some());
}

#[test]
fn what_is_due_and_never_begun_counts_as_offered_and_unserved() {
    let store = loaded();
    let measured = with_phase(
        "readrandom",
        |spec| spec.arrivals = ArrivalSpec::Steady { rate: 200e6 },
        |mut phase| {
            phase.operations = None;
            phase.seconds = Some(0.02);
            run(&store, &phase).unwrap()
        },
    );
    assert!(measured.unserved > 0);
    assert!(measured.offered.abs_diff(4_000_000) < 10, "{}", measured.offered);
    let offered: u64 = measured.timeline.iter().map(|second| second.offered).sum();
    assert_eq!(offered, measured.offered);
}

#[test]
fn an_extra_writer_is_measured_but_not_counted() {
    let store = loaded();
    let measured = with_phase("readwhilewriting", |_| (), |phase| run(&store, &phase).unwrap());
    assert_eq!(measured.counted, 2_000);
    assert_eq!(measured.kinds["read"].latency.count, 2_000);
    assert_eq!(
        measured.done - measured.counted,
        measured.kinds.get("write").map_or(0, |kind| kind.latency.count)
    );
}

/// A store that belongs to the test, too.
struct Lent(std::sync::Arc<MemoryStore>);

impl Store for Lent {
    fn version(&self) -> String {
        self.0.version()
    }

    fn client(&self) -> Box<dyn Client + '_> {
        self.0.client()
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

#[test]
fn a_database_in_overload_is_reported_apart() {
    let stores: [std::sync::Arc<MemoryStore>; 3] = Default::default();
    let all = stores.iter().map(|store| Box::new(Lent(store.clone())) as Box<dyn Store>).collect();
    let databases = Databases::new(all, true);
    with_phase("fillseq", |_| (), |phase| run(&databases, &phase).unwrap());
    let sizes = || stores.each_ref().map(|store| store.map.lock().unwrap().len());
    let [none, second, third] = sizes();
    assert_eq!((none, second + third), (0, 2_000));
    let measured = with_phase(
        "ycsb-c",
        |spec| spec.extra_writer = true,
        |phase| {
            let phase = Phase { overload: true, operations: Some(20_000), ..phase };
            run(&databases, &phase).unwrap()
        },
    );
    assert_eq!((measured.done, measured.not_found), (20_000, 0));
    assert!(!measured.kinds.contains_key("write"), "they are reported apart");
    let counts: Vec<_> =
        measured.databases.iter().map(|own| own.map_or(0, |own| own.count)).collect();
    assert_eq!(counts[1] + counts[2], 20_000);
    assert!(counts[1] > 0 && counts[2] > 0, "{counts:?}");
    let after = sizes();
    assert!(after[0] as u64 <= counts[0] && [after[1], after[2]] == [second, third]);
}

#[test]
fn a_recording_is_replayed_whole_and_in_order_by_key() {
    let text: String = (0..300).map(|i| format!("{},put,key{},{}\n", i * 10, i % 7, i)).collect();
    let events: &'static [_] = sateen_workload::parse_replay(text.as_bytes()).unwrap().leak();
    let store = MemoryStore::default();
    let measured = with_phase(
        "ycsb-a",
        |_| (),
        |mut phase| {
            phase.replay = Some(events);
            phase.operations = None;
            run(&store, &phase).unwrap()
        },
    );
    assert_eq!((measured.done, measured.open_loop), (300, true));
    let map = store.map.lock().unwrap();
    for key in 0..7usize {
        let last = (0..300usize).filter(|i| i % 7 == key).max().unwrap();
        assert_eq!(
            map[format!("key{key}").as_bytes()].len(),
            last,
            "the last write of a key stays"
        );
    }
}

#[test]
fn recorded_batches_and_reads_of_many_keys_are_one_operation_each() {
    let part = |key: &str, size| ReplayPart { key: key.as_bytes().into(), size };
    let event = |due_us, kind, key: &str, size, others| ReplayEvent {
        due_us,
        kind,
        key: key.as_bytes().into(),
        size,
        others,
    };
    let events = [
        event(0, OpKind::Write, "a", 5, Box::from([part("b", Some(7)), part("gone", None)])),
        event(1, OpKind::Delete, "gone", 0, Box::from([part("c", Some(9))])),
        event(2, OpKind::Read, "a", 0, Box::from([part("b", None), part("gone", None)])),
    ];
    let events: &'static [_] = events.to_vec().leak();
    let store = MemoryStore::default();
    store.map.lock().unwrap().insert(b"gone".to_vec(), Vec::new());
    let measured = with_phase(
        "ycsb-a",
        |_| (),
        |mut phase| {
            (phase.replay, phase.operations, phase.threads) = (Some(events), None, 1);
            run(&store, &phase).unwrap()
        },
    );
    assert_eq!((measured.done, measured.not_found), (3, 1));
    assert_eq!(measured.user_bytes_written, 1 + 5 + 1 + 7 + 4 + 4 + 1 + 9);
    let map = store.map.lock().unwrap();
    let sizes: Vec<_> = map.iter().map(|(key, value)| (key.as_slice(), value.len())).collect();
    assert_eq!(sizes, [(&b"a"[..], 5), (b"b", 7), (b"c", 9)]);
}

#[test]
fn a_failure_ends_the_phase_with_its_cause() {
    let store = MemoryStore { fail_after: Some(50), ..MemoryStore::default() };
    let error = with_phase("fillseq", |_| (), |phase| run(&store, &phase).map(|_| ()).unwrap_err());
    assert_eq!(error.to_string(), "the disk is full");
}
