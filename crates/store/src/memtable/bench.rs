//! Measures inserts, reads and scans of the memtable, and prints nanoseconds for each:
//! `cargo test -p sateen-store --release memtable::bench -- --ignored --nocapture --test-threads=1`

use std::sync::Arc;
use std::thread;

use sateen_control::{Comparator, SeqNo, ValueKind};

use super::{ArenaPool, MemTable};
use crate::base::iterator::InternalIterator;

const MEMTABLE_BYTES: usize = 64 << 20;
const POOL_BYTES: usize = 128 << 20;
const ROUNDS: usize = 5;
/// The kernel counts processor time in steps of milliseconds, so short scans are repeated.
const SCANS: usize = 8;

/// A 16-byte key like those of the benchmark tools: a big-endian number, then zeros.
fn key(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// A 16-byte key whose first eight bytes are always the same.
fn prefixed_key(number: u64) -> [u8; 16] {
    let mut key = *b"table-07........";
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns this thread's processor time in nanoseconds, so that other work on the machine does not
/// count.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

struct Shape {
    name: &'static str,
    number: fn(u64) -> u64,
    key: fn(u64) -> [u8; 16],
    value_bytes: usize,
    threads: u64,
}

fn random(index: u64) -> u64 {
    mix(index) % 8_000_000
}

fn sequential(index: u64) -> u64 {
    index
}

/// Formats the median and the minimum of the samples, in nanoseconds.
fn summary(mut samples: Vec<f64>) -> String {
    samples.sort_by(f64::total_cmp);
    format!("{:7.0} ns (least {:.0})", samples[samples.len() / 2], samples[0])
}

fn fill(memtable: &Arc<MemTable>, shape: &Shape, entries: u64) -> f64 {
    let value = vec![b'v'; shape.value_bytes];
    let spent: f64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..shape.threads)
            .map(|thread| {
                let (memtable, value) = (&memtable, &value);
                scope.spawn(move || {
                    let start = cpu_ns();
                    let mut index = thread;
                    while index < entries {
                        let key = (shape.key)((shape.number)(index));
                        memtable.insert(&key, SeqNo(index + 1), ValueKind::Put, value);
                        index += shape.threads;
                    }
                    cpu_ns() - start
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    spent / entries as f64
}

fn measure(shape: &Shape, pool: Option<Arc<ArenaPool>>) {
    let per_entry = shape.value_bytes + 16 + 8 + 48;
    let entries = (MEMTABLE_BYTES / per_entry) as u64;
    let (mut inserts, mut gets, mut misses, mut scans, mut backs) =
        (vec![], vec![], vec![], vec![], vec![]);
    let (mut overhead, mut reserved) = (0.0, 0);
    for _ in 0..ROUNDS {
        let memtable = Arc::new(MemTable::new(MEMTABLE_BYTES, pool.clone(), &Comparator::BYTEWISE));
        inserts.push(fill(&memtable, shape, entries));
        reserved = memtable.memory_bytes();
        overhead = (reserved - memtable.data_bytes()) as f64 / entries as f64;
        let lookups = entries.min(100_000);
        let start = cpu_ns();
        for index in 0..lookups {
            let key = (shape.key)((shape.number)(mix(index) % entries));
            let found = memtable.get(&key, SeqNo::MAX).expect("was inserted");
            assert_eq!(found.2.last().copied().unwrap_or(b'v'), b'v');
        }
        gets.push((cpu_ns() - start) / lookups as f64);
        let start = cpu_ns();
        let mut found = 0;
        for index in 0..lookups {
            let key = (shape.key)(mix(index) % 8_000_000 + 8_000_000 * (index & 1));
            found += usize::from(memtable.get(&key, SeqNo::MAX).is_some());
        }
        assert!(found < lookups as usize);
        misses.push((cpu_ns() - start) / lookups as f64);
        let mut iter = memtable.iter();
        let start = cpu_ns();
        let mut bytes = 0_usize;
        for _ in 0..SCANS {
            iter.seek_to_first().unwrap();
            while iter.valid() {
                bytes +=
                    usize::from(iter.key()[7]) + iter.value().last().map_or(0, |b| (*b).into());
                iter.next().unwrap();
            }
        }
        scans.push((cpu_ns() - start) / (entries as usize * SCANS) as f64);
        let start = cpu_ns();
        for _ in 0..SCANS {
            iter.seek_to_last().unwrap();
            while iter.valid() {
                bytes +=
                    usize::from(iter.key()[7]) + iter.value().last().map_or(0, |b| (*b).into());
                iter.prev().unwrap();
            }
        }
        assert!(bytes > 0);
        backs.push((cpu_ns() - start) / (entries as usize * SCANS) as f64);
    }
    println!(
        "{:28} {} entries, {:.1} MiB, {overhead:.0} B over data an entry\n  insert {}\n  \
         get    {}\n  miss   {}\n  next   {}\n  prev   {}",
        shape.name,
        entries,
        reserved as f64 / f64::from(1 << 20),
        summary(inserts),
        summary(gets),
        summary(misses),
        summary(scans),
        summary(backs),
    );
}

fn measure_all(key: fn(u64) -> [u8; 16], value_bytes: usize) {
    for pooled in [false, true] {
        println!("-- {value_bytes}-byte values, {} pool", if pooled { "with" } else { "without" });
        let pool = pooled.then(|| Arc::new(ArenaPool::new(POOL_BYTES)));
        for (name, number) in
            [("random", random as fn(u64) -> u64), ("sequential", sequential as fn(u64) -> u64)]
        {
            for threads in [1, 2] {
                let name = format!("{name}, {threads} thread(s)").leak();
                measure(&Shape { name, number, key, value_bytes, threads }, pool.clone());
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn bench_1_kb() {
    measure_all(key, 1024);
}

#[test]
#[ignore = "a measurement"]
fn bench_100_b() {
    measure_all(key, 100);
}

#[test]
#[ignore = "a measurement"]
fn bench_common_prefix() {
    measure_all(prefixed_key, 100);
}
