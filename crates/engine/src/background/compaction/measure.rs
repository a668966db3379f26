//! Measures the time per entry in the iterators and in a compaction, and prints it:
//! `cargo test --release -p sateen --lib -- --ignored --nocapture measure_an_entry`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use sateen_control::{Comparator, SeqNo, UserKey, ValueKind};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::iter::vec_iter::internal;

use crate::background::compaction::iter::{CompactionIter, Pulled};
use crate::read::db_iter::DbIter;

const ENTRIES: u64 = 100_000;
const ROUNDS: u64 = 20;
const VALUE: [u8; 100] = [7; 100];

/// A child that costs almost nothing: keys of one length, side by side.
struct Flat {
    keys: Arc<Vec<[u8; 24]>>,
    at: usize,
}

impl InternalIterator for Flat {
    #[inline]
    fn valid(&self) -> bool {
        self.at < self.keys.len()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.keys.len().wrapping_sub(1);
        Ok(())
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.at = self
            .keys
            .partition_point(|key| key::compare(&Comparator::BYTEWISE, key, target).is_lt());
        Ok(())
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let end = self
            .keys
            .partition_point(|key| key::compare(&Comparator::BYTEWISE, key, target).is_le());
        self.at = end.wrapping_sub(1);
        Ok(())
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.at = self.at.wrapping_sub(1);
        Ok(())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        &self.keys[self.at]
    }
    #[inline]
    fn value(&self) -> &[u8] {
        &VALUE
    }
}

/// Returns `children` children with ascending keys, dealt in runs of `run` keys (1: at random). All
/// keys share their first `shared` bytes.
fn children(children: u64, run: u64, shared: usize, zero_seqnos: bool) -> Vec<Flat> {
    let mut lists = vec![Vec::new(); usize::try_from(children).unwrap()];
    for number in 0..ENTRIES {
        // A mixer whose high bits depend on all of its input.
        let mixed = (number / run).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let child = ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % children;
        let mut user_key = vec![b'u'; shared];
        user_key.extend_from_slice(&number.to_be_bytes());
        user_key.resize(16, b'0');
        let seqno = if zero_seqnos { 0 } else { number + 1 };
        let entry = internal(&user_key, seqno, ValueKind::Put).try_into().unwrap();
        lists[usize::try_from(child).unwrap()].push(entry);
    }
    lists.into_iter().map(|keys| Flat { keys: Arc::new(keys), at: usize::MAX }).collect()
}

/// Returns the time of the fastest round, in nanoseconds per entry. Slower rounds were disturbed.
fn fastest(mut round: impl FnMut() -> u64) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        assert_eq!(round(), ENTRIES, "every entry is seen");
        start.elapsed().as_nanos() as f64 / ENTRIES as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn walk<I: InternalIterator>(iter: &mut I, backwards: bool) -> u64 {
    let mut seen = 0;
    if backwards {
        iter.seek_to_last().unwrap()
    } else {
        iter.seek_to_first().unwrap()
    }
    while iter.valid() {
        black_box((iter.key(), iter.value()));
        seen += 1;
        if backwards { iter.prev().unwrap() } else { iter.next().unwrap() }
    }
    seen
}

#[test]
#[ignore = "a measurement"]
fn measure_an_entry() {
    for (count, run) in [(1, 1), (2, 1), (4, 1), (10, 1), (2, 100), (10, 100)] {
        for shared in [0, 8] {
            let mut iter =
                MergingIter::new(children(count, run, shared, false), &Comparator::BYTEWISE);
            let forward = fastest(|| walk(&mut iter, false));
            let reverse = fastest(|| walk(&mut iter, true));
            println!(
                "merge of {count:2}, runs of {run:3}, {shared} shared bytes: \
                 next {forward:5.1} ns, prev {reverse:5.1} ns"
            );
        }
    }
    for (name, count, zero) in [("seqnos", 2, false), ("zero seqnos", 2, true)] {
        for (bounds_name, upper) in [("no bounds", None), ("upper bound", Some([0xff; 16]))] {
            let bounds = IterBounds::new(None, upper.map(UserKey::bytewise));
            let merge = MergingIter::new(children(count, 100, 0, zero), &Comparator::BYTEWISE);
            let mut iter = DbIter::new(merge, SeqNo::MAX, bounds, None);
            let forward = fastest(|| {
                let mut seen = 0;
                iter.seek_to_first();
                while iter.valid() {
                    black_box((iter.key(), iter.value()));
                    seen += 1;
                    iter.next();
                }
                seen
            });
            let reverse = fastest(|| {
                let mut seen = 0;
                iter.seek_to_last();
                while iter.valid() {
                    black_box((iter.key(), iter.value()));
                    seen += 1;
                    iter.prev();
                }
                seen
            });
            println!(
                "user keys of {count}, {name}, {bounds_name}: next {forward:5.1} ns, \
                 prev {reverse:5.1} ns"
            );
        }
    }
    for bottommost in [false, true] {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let merge = MergingIter::new(children(2, 100, 0, false), &Comparator::BYTEWISE);
            let snapshots = vec![SeqNo::MAX];
            let mut iter =
                CompactionIter::new(merge, IterBounds::all(), snapshots, |_: &[u8]| bottommost);
            let start = Instant::now();
            iter.start().unwrap();
            while iter.pull(u64::MAX).unwrap() == Pulled::Entry {
                black_box((iter.key(), iter.value()));
            }
            best = best.min(start.elapsed().as_nanos() as f64 / ENTRIES as f64);
            assert_eq!(iter.stats().puts_out, ENTRIES);
        }
        println!("compaction of 2, bottommost {bottommost}: {best:5.1} ns");
    }
}
