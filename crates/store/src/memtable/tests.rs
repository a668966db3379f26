//! Compares the memtable with a sorted map, in one thread and in many, and the codes with the keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sateen_control::{Comparator, SeqNo, ValueKind};

use super::code::{Code, PREFIX_BYTES, Prefix};
use super::pool::CHUNK_BYTES;
use super::{ArenaPool, MemTable, MemTableIter};
use crate::base::iterator::InternalIterator;
use crate::base::key;

/// Fewer steps under an interpreter, where each takes a thousand times as long.
const fn steps(count: usize) -> usize {
    if cfg!(miri) { count.div_ceil(100) } else { count }
}

/// xorshift64*: the same numbers for the same seed.
struct Random(u64);

impl Random {
    /// Prints the seed, which `SATEEN_SEED` sets.
    fn new(test: &str) -> Random {
        let given = std::env::var("SATEEN_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        println!("{test}: SATEEN_SEED={seed}");
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }

    /// Returns keys that are often equal or prefixes of each other. They differ early or late, by
    /// one bit or by zeros at the end, and are sometimes longer than the part that codes use.
    fn key(&mut self) -> Vec<u8> {
        let stem = [0, 0, 3, 8, 16, 31, 32, 33, 60][self.below(9)];
        let mut key = vec![[0, b'k', 0xff][self.below(3)]; stem];
        for _ in 0..self.below(4) {
            key.push([0, 0, 1, 0x80, b'a', 0xff][self.below(6)]);
        }
        if self.below(4) == 0 {
            key.extend_from_slice(&(self.next() >> self.below(64)).to_be_bytes());
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [0, 1, 7, 16, 127, 128, 129, 300, 5000][self.below(9)];
        vec![self.next() as u8; len]
    }
}

/// The order of internal keys, as a key of a sorted map.
type ModelKey = (Vec<u8>, std::cmp::Reverse<u64>);

fn model_key(internal: &[u8]) -> ModelKey {
    (key::user_key(internal).to_vec(), std::cmp::Reverse(key::trailer(internal)))
}

fn table(capacity_bytes: usize) -> Arc<MemTable> {
    Arc::new(MemTable::new(capacity_bytes, None, &Comparator::BYTEWISE))
}

/// Returns the cursor's current entry.
fn at(iter: &MemTableIter) -> Option<(ModelKey, Vec<u8>)> {
    iter.valid().then(|| (model_key(iter.key()), iter.value().to_vec()))
}

#[test]
fn agrees_with_a_sorted_map() {
    let mut random = Random::new("agrees_with_a_sorted_map");
    for round in 0..steps(40) {
        let memtable = table(if round % 2 == 0 { 1 << 10 } else { 64 << 20 });
        let mut model: BTreeMap<ModelKey, Vec<u8>> = BTreeMap::new();
        let mut iter = memtable.iter();
        let mut tombstones = 0;
        let mut data_bytes = 0;
        assert!(memtable.is_empty());
        for seqno in 1..=steps(1_000) as u64 + 20 {
            let user_key = random.key();
            let kind = if random.below(5) == 0 { ValueKind::Delete } else { ValueKind::Put };
            let value = if kind == ValueKind::Delete { vec![] } else { random.value() };
            memtable.insert(&user_key, SeqNo(seqno), kind, &value);
            tombstones += usize::from(kind == ValueKind::Delete);
            data_bytes += user_key.len() + 8 + value.len();
            let trailer = key::pack(SeqNo(seqno), kind);
            model.insert((user_key, std::cmp::Reverse(trailer)), value);

            let wanted = random.key();
            check_get(&memtable, &model, &wanted, SeqNo(random.below(seqno as usize + 2) as u64));
            check_move(&mut iter, &model, &mut random, &wanted);
        }
        assert_eq!(memtable.entries(), model.len());
        assert_eq!(memtable.tombstones(), tombstones);
        assert_eq!(memtable.data_bytes(), data_bytes);
        assert!(memtable.memory_bytes() > data_bytes);
        check_scan(&mut iter, &model);
    }
}

fn check_get(
    memtable: &MemTable,
    model: &BTreeMap<ModelKey, Vec<u8>>,
    wanted: &[u8],
    snapshot: SeqNo,
) {
    let start = (wanted.to_vec(), std::cmp::Reverse(key::pack(snapshot, ValueKind::MAX)));
    let expected = model.range(start..).next().filter(|((user_key, _), _)| user_key == wanted);
    let found = memtable
        .get(wanted, snapshot)
        .map(|(seqno, kind, value)| (std::cmp::Reverse(key::pack(seqno, kind)), value));
    assert_eq!(found, expected.map(|((_, trailer), value)| (*trailer, &value[..])));
}

/// Moves the cursor to some place, then a few steps forward and back.
fn check_move(
    iter: &mut MemTableIter,
    model: &BTreeMap<ModelKey, Vec<u8>>,
    random: &mut Random,
    wanted: &[u8],
) {
    let seqno = SeqNo(random.below(model.len() + 2) as u64);
    let target = key::seek_key(wanted, seqno);
    let bound = model_key(&target);
    let own = |entry: Option<(&ModelKey, &Vec<u8>)>| entry.map(|(k, v)| (k.clone(), v.clone()));
    let mut expected = match random.below(4) {
        0 => {
            iter.seek_to_first().unwrap();
            own(model.first_key_value())
        }
        1 => {
            iter.seek_to_last().unwrap();
            own(model.last_key_value())
        }
        2 => {
            iter.seek(&target).unwrap();
            own(model.range(bound..).next())
        }
        _ => {
            iter.seek_for_prev(&target).unwrap();
            own(model.range(..=bound).next_back())
        }
    };
    for _ in 0..random.below(8) {
        assert_eq!(at(iter), expected);
        let Some((here, _)) = expected else { return };
        expected = if random.below(2) == 0 {
            iter.next().unwrap();
            own(model.range((std::ops::Bound::Excluded(here), std::ops::Bound::Unbounded)).next())
        } else {
            iter.prev().unwrap();
            own(model.range(..here).next_back())
        };
    }
    assert_eq!(at(iter), expected);
}

/// Scans everything in both directions.
fn check_scan(iter: &mut MemTableIter, model: &BTreeMap<ModelKey, Vec<u8>>) {
    iter.seek_to_first().unwrap();
    for (expected, value) in model {
        assert_eq!(at(iter), Some((expected.clone(), value.clone())));
        iter.next().unwrap();
    }
    assert!(!iter.valid());
    iter.seek_to_last().unwrap();
    for (expected, value) in model.iter().rev() {
        assert_eq!(at(iter), Some((expected.clone(), value.clone())));
        iter.prev().unwrap();
    }
    assert!(!iter.valid());
}

#[test]
fn an_empty_memtable_has_nothing() {
    let memtable = table(1 << 20);
    assert_eq!(memtable.get(b"", SeqNo::MAX), None);
    let mut iter = memtable.iter();
    assert!(!iter.valid());
    for target in [&key::seek_key(b"", SeqNo::MAX)[..], &key::seek_key(b"\xff\xff", SeqNo(0))] {
        iter.seek(target).unwrap();
        assert!(!iter.valid());
        iter.seek_for_prev(target).unwrap();
        assert!(!iter.valid());
    }
    iter.seek_to_first().unwrap();
    assert!(!iter.valid());
    iter.seek_to_last().unwrap();
    assert!(!iter.valid());
}

#[test]
fn holds_the_empty_key_and_the_empty_value() {
    let memtable = table(1 << 20);
    memtable.insert(b"", SeqNo(2), ValueKind::Put, b"");
    memtable.insert(b"", SeqNo(5), ValueKind::Put, b"new");
    memtable.insert(b"\0", SeqNo(3), ValueKind::Delete, b"");
    assert_eq!(memtable.get(b"", SeqNo(1)), None);
    assert_eq!(memtable.get(b"", SeqNo(4)), Some((SeqNo(2), ValueKind::Put, &b""[..])));
    assert_eq!(memtable.get(b"", SeqNo::MAX), Some((SeqNo(5), ValueKind::Put, &b"new"[..])));
    assert_eq!(memtable.get(b"\0", SeqNo::MAX), Some((SeqNo(3), ValueKind::Delete, &b""[..])));
    assert_eq!(memtable.get(b"\0\0", SeqNo::MAX), None);
}

#[test]
fn holds_the_largest_keys_and_values() {
    let pool = Arc::new(ArenaPool::new(CHUNK_BYTES));
    for capacity_bytes in [1 << 10, 64 << 20] {
        let memtable =
            Arc::new(MemTable::new(capacity_bytes, Some(Arc::clone(&pool)), &Comparator::BYTEWISE));
        let value = vec![0xab; if cfg!(miri) { 3 << 20 } else { 64 << 20 }];
        let long = |last: u8| {
            let mut key = vec![b'k'; (64 << 10) - 1];
            *key.last_mut().unwrap() = last;
            key
        };
        for last in [9, 1, 5] {
            memtable.insert(&long(last), SeqNo(u64::from(last)), ValueKind::Put, &[last; 20_000]);
        }
        memtable.insert(b"k", SeqNo(10), ValueKind::Put, &value);
        memtable.insert(&long(7), SeqNo::MAX, ValueKind::Put, b"small");
        let (_, _, found) = memtable.get(b"k", SeqNo(10)).unwrap();
        assert!(found == value);
        assert_eq!(memtable.get(&long(7), SeqNo::MAX).unwrap().0, SeqNo::MAX);
        assert_eq!(memtable.get(&long(6), SeqNo::MAX), None);
        let mut iter = memtable.iter();
        iter.seek_to_first().unwrap();
        assert_eq!(iter.value().len(), value.len());
        for last in [1, 5, 7, 9] {
            iter.next().unwrap();
            assert_eq!(key::user_key(iter.key()), long(last));
        }
        assert!(memtable.memory_bytes() >= memtable.data_bytes());
        assert!(memtable.memory_bytes() <= memtable.data_bytes() + 2 * CHUNK_BYTES);
    }
}

#[test]
fn an_iterator_outlives_the_memtable() {
    let memtable = table(1 << 20);
    memtable.insert(b"key", SeqNo(1), ValueKind::Put, b"value");
    let mut iter = memtable.iter();
    drop(memtable);
    let iter = thread::spawn(move || {
        iter.seek_to_first().unwrap();
        iter
    });
    assert_eq!(iter.join().unwrap().value(), b"value");
}

#[test]
fn reserves_little_more_than_it_uses() {
    let memtable = table(64 << 20);
    assert!(memtable.memory_bytes() < 1 << 10, "an empty memtable costs nothing");
    memtable.insert(b"key", SeqNo(1), ValueKind::Put, &[0; 1000]);
    assert!(memtable.memory_bytes() < 64 << 10, "a small one costs little");
    let pool = Arc::new(ArenaPool::new(0));
    let memtable = Arc::new(MemTable::new(64 << 20, Some(pool), &Comparator::BYTEWISE));
    let mut seqno = 0_u64;
    while memtable.used_bytes() < steps(64 << 20) {
        seqno += 1;
        memtable.insert(&seqno.to_be_bytes(), SeqNo(seqno), ValueKind::Put, &[7; 400]);
    }
    assert!(memtable.used_bytes() <= memtable.memory_bytes());
    assert!(memtable.memory_bytes() <= steps(64 << 20) + CHUNK_BYTES + (64 << 10));
    assert!(memtable.used_bytes() <= memtable.data_bytes() * 115 / 100 + (64 << 10));
}

#[test]
fn the_pool_keeps_what_it_may() {
    let pool = Arc::new(ArenaPool::new(2 * CHUNK_BYTES + 1));
    let fill = || {
        let memtable = MemTable::new(64 << 20, Some(Arc::clone(&pool)), &Comparator::BYTEWISE);
        for seqno in 1..=12 {
            memtable.insert(b"key", SeqNo(seqno), ValueKind::Put, &vec![1; CHUNK_BYTES / 20]);
        }
        let mut seqno = 100;
        while memtable.memory_bytes() < 6 * CHUNK_BYTES {
            seqno += 1;
            memtable.insert(b"key", SeqNo(seqno), ValueKind::Put, &[2; 4096]);
        }
        assert_eq!(memtable.get(b"key", SeqNo(1)).unwrap().2, vec![1; CHUNK_BYTES / 20]);
    };
    fill();
    assert_eq!(pool.bytes(), 2 * CHUNK_BYTES);
    fill();
    assert_eq!(pool.bytes(), 2 * CHUNK_BYTES);
    pool.prepare();
    assert_eq!(pool.bytes(), 2 * CHUNK_BYTES);
    fill();
    pool.set_bytes_max(CHUNK_BYTES);
    assert_eq!(pool.bytes(), CHUNK_BYTES);
    fill();
    assert_eq!(pool.bytes(), CHUNK_BYTES);
}

#[test]
fn the_pool_prepares_what_memtables_need() {
    let pool = Arc::new(ArenaPool::new(8 * CHUNK_BYTES));
    pool.prepare();
    assert_eq!(pool.bytes(), 0, "no memtable has needed any");
    let memtable = MemTable::new(64 << 20, Some(Arc::clone(&pool)), &Comparator::BYTEWISE);
    let mut seqno = 0;
    let mut take = |chunks: u64| {
        let until = pool.taken() + chunks;
        while pool.taken() < until {
            seqno += 1;
            memtable.insert(b"key", SeqNo(seqno), ValueKind::Put, &[2; 4096]);
        }
    };
    take(2);
    pool.prepare();
    assert_eq!(pool.bytes(), 3 * CHUNK_BYTES);
    take(1);
    assert_eq!(pool.bytes(), 2 * CHUNK_BYTES);
    pool.prepare();
    assert_eq!(pool.bytes(), 2 * CHUNK_BYTES, "one more than were needed");
    pool.prepare();
    assert_eq!(pool.bytes(), 2 * CHUNK_BYTES);
    take(10);
    pool.prepare();
    assert_eq!(pool.bytes(), 8 * CHUNK_BYTES, "no more than it may keep");
}

/// Returns entry `index` of thread `thread`. Some keys have several versions.
fn shared_entry(thread: u64, index: u64) -> (Vec<u8>, SeqNo) {
    let number = (index / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    let key = match index % 3 {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("a/prefix/common/to/all/of/them/{number:05}").into_bytes(),
        _ => (index * 8 + thread).to_be_bytes().to_vec(),
    };
    (key, SeqNo(1 + index * 8 + thread))
}

#[test]
fn threads_lose_nothing_and_readers_see_order() {
    const THREADS: u64 = 4;
    let per_thread = steps(20_000) as u64;
    for _ in 0..steps(3) {
        let memtable = table(1 << 20);
        let done = AtomicBool::new(false);
        // For each thread, the number of entries that are certainly inserted.
        let inserted: [AtomicU64; THREADS as usize] = Default::default();
        thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (memtable, inserted) = (&memtable, &inserted);
                    scope.spawn(move || {
                        for index in 0..per_thread {
                            let (key, seqno) = shared_entry(thread, index);
                            let value = seqno.0.to_le_bytes().repeat(1 + (index % 40) as usize);
                            memtable.insert(&key, seqno, ValueKind::Put, &value);
                            inserted[thread as usize].store(index + 1, Ordering::Release);
                        }
                    })
                })
                .collect();
            for reader in 0..2 {
                let (memtable, inserted, done) = (&memtable, &inserted, &done);
                scope.spawn(move || read_meanwhile(memtable, inserted, done, reader));
            }
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        assert_eq!(memtable.entries() as u64, THREADS * per_thread);
        let mut model = BTreeMap::new();
        for thread in 0..THREADS {
            for index in 0..per_thread {
                let (key, seqno) = shared_entry(thread, index);
                let value = seqno.0.to_le_bytes().repeat(1 + (index % 40) as usize);
                let trailer = key::pack(seqno, ValueKind::Put);
                model.insert((key, std::cmp::Reverse(trailer)), value);
            }
        }
        check_scan(&mut memtable.iter(), &model);
    }
}

/// Scans in both directions and looks up what must be there, until the writers are done.
fn read_meanwhile(
    memtable: &Arc<MemTable>,
    inserted: &[AtomicU64],
    done: &AtomicBool,
    direction: usize,
) {
    let mut iter = memtable.iter();
    let mut round = 0;
    loop {
        let last_round = done.load(Ordering::Acquire);
        round += 1;
        for (thread, inserted) in inserted.iter().enumerate() {
            let inserted = inserted.load(Ordering::Acquire);
            if inserted > 0 {
                let (key, seqno) = shared_entry(thread as u64, (inserted * round / 7) % inserted);
                let (found, _, value) = memtable.get(&key, seqno).expect("was inserted");
                assert_eq!(found, seqno);
                assert_eq!(&value[..8], &seqno.0.to_le_bytes());
            }
        }
        let least = memtable_floor(inserted);
        let mut before: Option<Vec<u8>> = None;
        let mut count = 0;
        if direction == 0 { iter.seek_to_first() } else { iter.seek_to_last() }.unwrap();
        while iter.valid() {
            if let Some(before) = &before {
                let order = key::compare(&Comparator::BYTEWISE, before, iter.key());
                assert_eq!(order.is_lt(), direction == 0);
                assert!(order.is_ne());
            }
            assert_eq!(&iter.value()[..8], &key::seqno(iter.key()).0.to_le_bytes());
            before = Some(iter.key().to_vec());
            count += 1;
            if direction == 0 { iter.next() } else { iter.prev() }.unwrap();
        }
        assert!(count >= least, "saw {count} of at least {least}");
        if last_round {
            return;
        }
    }
}

fn memtable_floor(inserted: &[AtomicU64]) -> u64 {
    inserted.iter().map(|inserted| inserted.load(Ordering::Acquire)).sum()
}

#[test]
fn threads_that_ascend_together_lose_nothing() {
    const THREADS: u64 = 3;
    let total = steps(60_000) as u64;
    let memtable = table(16 << 20);
    let other = table(16 << 20);
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= total {
                        return;
                    }
                    let table = if number.is_multiple_of(16) { &other } else { &memtable };
                    table.insert(&number.to_be_bytes(), SeqNo(number + 1), ValueKind::Put, b"v");
                }
            });
        }
    });
    for number in 0..total {
        let table = if number.is_multiple_of(16) { &other } else { &memtable };
        assert!(table.get(&number.to_be_bytes(), SeqNo::MAX).is_some(), "{number}");
    }
    let mut iter = memtable.iter();
    iter.seek_to_first().unwrap();
    let mut count = 0;
    let mut last = None;
    while iter.valid() {
        assert!(last < Some(key::user_key(iter.key()).to_vec()));
        last = Some(key::user_key(iter.key()).to_vec());
        count += 1;
        iter.next().unwrap();
    }
    assert_eq!(count, memtable.entries());
    assert_eq!(memtable.entries() + other.entries(), total as usize);
}

/// Returns the code of `key` relative to `base`, computed bit by bit.
fn slow_code(key: &[u8], base: &[u8]) -> Code {
    let padded = |key: &[u8]| {
        let mut bytes = key[..key.len().min(PREFIX_BYTES)].to_vec();
        bytes.resize(PREFIX_BYTES + 16, 0);
        bytes
    };
    let (key, base) = (padded(key), padded(base));
    let bit = |bytes: &[u8], index: usize| bytes[index / 8] >> (7 - index % 8) & 1;
    let first = (0..255).find(|index| bit(&key, *index) != bit(&base, *index));
    let Some(first) = first else { return Code::from_bits(0) };
    let following =
        (1..=11).fold(0, |bits, index| bits << 1 | usize::from(bit(&key, first + index)));
    Code::from_bits((255 - first) << 11 | following)
}

#[test]
fn codes_order_keys() {
    let mut random = Random::new("codes_order_keys");
    for _ in 0..steps(200_000) {
        let mut keys = [random.key(), random.key(), random.key()];
        keys.sort();
        let [base, low, high] = &keys;
        let (low_code, high_code) = (slow_code(low, base), slow_code(high, base));
        assert!(low_code <= high_code, "{base:?} {low:?} {high:?}");
        let prefix = Prefix::new(high);
        if low_code < high_code {
            assert_eq!(prefix.code_after_next(high_code, low_code), slow_code(high, low));
        }
        assert_eq!(prefix.code_after_zeros(), slow_code(high, b""));
        if low_code < high_code && high_code.differs_before(low_code) {
            assert_eq!(slow_code(high, low), high_code);
        }
    }
}
