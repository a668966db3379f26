//! Compares histograms with the sorted list of the values that were recorded.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use proptest::prelude::*;

fn exact_quantile(sorted: &[u64], quantile: f64) -> u64 {
    let rank = ((quantile * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
    sorted[rank - 1]
}

/// Values of every magnitude. Uniform ones would nearly all be large.
fn value() -> impl Strategy<Value = u64> {
    (0u32..=40, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

#[test]
fn buckets_follow_on_each_other_without_gap_or_overlap() {
    let mut next = 0;
    for bucket in 0..BUCKETS {
        let (low, high) = bounds_of(bucket);
        assert_eq!(low, next, "bucket {bucket}");
        assert_eq!(bucket_of(low), bucket);
        assert_eq!(bucket_of(high), bucket);
        next = high.wrapping_add(1);
    }
    assert_eq!(next, 0, "the last bucket ends at the largest number");
    assert_eq!(bounds_of(BUCKETS - 1).0.ilog2(), VALUE_BITS - 1);
}

/// A thousand databases that are open have many of these.
#[test]
fn what_was_never_recorded_takes_no_memory() {
    let histogram = WindowedHistogram::new(3, 0);
    histogram.record(7);
    histogram.rotate(2);
    assert_eq!(histogram.since_open().count(), 1);
    let made = histogram.slots.iter().filter(|slot| slot.buckets.get().is_some()).count();
    assert_eq!(made, 1);
}

proptest! {
    #[test]
    fn quantiles_are_within_five_percent(
        mut values in prop::collection::vec(value(), 1..500), quantile in 0.0f64..=1.0,
    ) {
        let histogram = Histogram::new();
        for &value in &values {
            histogram.record(value);
        }
        values.sort_unstable();
        let snapshot = histogram.snapshot();
        let sum: u64 = values.iter().sum();
        prop_assert_eq!(snapshot.count(), values.len() as u64);
        prop_assert_eq!(snapshot.sum(), sum);
        prop_assert_eq!(snapshot.max(), values[values.len() - 1]);
        prop_assert_eq!(snapshot.quantile(1.0), snapshot.max());
        prop_assert!((snapshot.mean() - sum as f64 / values.len() as f64).abs() < 1e-3);
        let exact = exact_quantile(&values, quantile);
        let off = snapshot.quantile(quantile).abs_diff(exact);
        prop_assert!(off as f64 <= exact as f64 * 0.05, "{off} off {exact}");
    }

    #[test]
    fn a_difference_holds_what_came_between(
        before in prop::collection::vec(value(), 0..100),
        after in prop::collection::vec(value(), 0..100),
    ) {
        let (all, only_after) = (Histogram::new(), Histogram::new());
        before.iter().for_each(|&value| all.record(value));
        let earlier = all.snapshot();
        for &value in &after {
            all.record(value);
            only_after.record(value);
        }
        let difference = all.snapshot().since(&earlier);
        let expected = only_after.snapshot();
        prop_assert_eq!(&difference.buckets, &expected.buckets);
        prop_assert_eq!(difference.count(), expected.count());
        prop_assert_eq!(difference.sum(), expected.sum());
        prop_assert!(difference.max() >= expected.max());
        prop_assert!(difference.max() as f64 <= expected.max() as f64 * 1.0625);
        let mut whole = earlier.clone();
        whole.merge(&expected);
        prop_assert_eq!(whole, all.snapshot());
    }

    #[test]
    fn windows_hold_their_seconds_and_the_total_everything(
        windows in 1usize..6,
        steps in prop::collection::vec((0u64..9, prop::collection::vec(value(), 0..5)), 1..30),
    ) {
        let histogram = WindowedHistogram::new(windows, 100);
        let mut seconds = vec![(100, Vec::new())];
        for (advance, values) in steps {
            let now = histogram.second() + advance;
            histogram.rotate(now);
            histogram.rotate(now.saturating_sub(1)); // Going back does nothing.
            prop_assert_eq!(histogram.second(), now);
            for value in values {
                histogram.record(value);
                seconds.push((now, vec![value]));
            }
            let expect = |from: u64, to: u64| {
                let expected = Histogram::new();
                for (second, values) in &seconds {
                    if (from..to).contains(second) {
                        values.iter().for_each(|&value| expected.record(value));
                    }
                }
                expected.snapshot()
            };
            prop_assert_eq!(histogram.since_open(), expect(0, now + 1));
            for age in 0..=windows as u64 {
                let expected = expect(now - age, now - age + 1);
                prop_assert_eq!(histogram.window(now - age), Some(expected));
                prop_assert_eq!(histogram.last(age as usize), expect(now - age, now));
            }
            prop_assert_eq!(histogram.window(now - windows as u64 - 1), None);
            prop_assert_eq!(histogram.window(now + 1), None);
        }
    }
}

#[test]
fn values_beyond_the_range_are_counted_and_keep_their_maximum() {
    let histogram = Histogram::new();
    histogram.record(u64::MAX);
    histogram.record(1 << 50);
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.count(), 2);
    assert_eq!(snapshot.max(), u64::MAX);
    assert_eq!(snapshot.quantile(1.0), u64::MAX);
}

#[test]
fn an_empty_histogram_answers_zero() {
    let snapshot = Histogram::new().snapshot();
    assert_eq!((snapshot.count(), snapshot.max(), snapshot.quantile(0.99)), (0, 0, 0));
    assert_eq!(snapshot.mean(), 0.0);
}

#[test]
fn nothing_is_lost_between_recording_and_rotating_threads() {
    const EACH: u64 = 200_000;
    let histogram = WindowedHistogram::new(2, 0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let recorders: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| (0..EACH).for_each(|n| histogram.record(n % 2))))
            .collect();
        let rotator = scope.spawn(|| {
            let mut second = 0;
            while !done.load(Ordering::Relaxed) {
                second += 1;
                histogram.rotate(second);
                assert!(histogram.since_open().count() <= 3 * EACH);
            }
        });
        recorders.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
        rotator.join().unwrap();
    });
    let total = histogram.since_open();
    assert_eq!(total.count(), 3 * EACH);
    assert_eq!(total.sum(), 3 * EACH / 2);
}

/// A slow thread records into a window that has meanwhile been reused for another second.
#[test]
fn values_recorded_while_a_window_is_emptied_move_or_stay() {
    const EACH: u64 = 4_000_000;
    let histogram = Histogram::new();
    let mut moved = HistogramSnapshot::default();
    thread::scope(|scope| {
        let recorders: Vec<_> =
            (0..2).map(|_| scope.spawn(|| (0..EACH).for_each(|_| histogram.record(3)))).collect();
        while recorders.iter().any(|thread| !thread.is_finished()) {
            histogram.drain_to(&mut moved);
        }
    });
    histogram.drain_to(&mut moved);
    assert_eq!((moved.count(), moved.sum(), moved.max()), (2 * EACH, 6 * EACH, 3));
    assert_eq!(histogram.snapshot(), HistogramSnapshot::default());
}
