//! Recordings in which the cause of slow seconds is known, and what is said of them.

use std::time::Duration;

use sateen_control::{DeviceProfile, IO_CLASSES, IoClass, JobId};

use super::history::SECOND_NS;
use super::{Cause, Explanation, History};
use crate::timeline::{
    Event, EventKind, OperationKind, SlowOperation, StallCause, Step, StepKind, Timeline, Worker,
};

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// A recording that is being made up.
#[derive(Default)]
struct Made(Timeline);

impl Made {
    /// A device of 200 MB/s each way, and 20 seconds in which nothing is slow.
    fn new() -> Made {
        let mut made = Made::default();
        made.device(0, 200, 1);
        for second in 0..20 {
            made.step(second, 10, 3, 5);
            made.traffic(second, 20);
            made.slow(second, 2, |slow| slow.sync_ns = MS);
        }
        made
    }

    fn event(&mut self, second: u64, kind: EventKind) {
        self.0.events.push(Event { at_ns: second * SECOND_NS + 900 * MS, kind });
    }

    fn device(&mut self, second: u64, mib: u64, barrier_ms: u64) {
        self.event(
            second,
            EventKind::Device(DeviceProfile {
                read_bytes_per_second: mib * MIB,
                write_bytes_per_second: mib * MIB,
                barrier_ns: barrier_ms * MS,
            }),
        );
    }

    /// Ten steps of that many milliseconds each, with a sync of a millisecond.
    fn step(&mut self, second: u64, ms: u64, cpu_ms: u64, device_ms: u64) {
        for number in 0..10 {
            self.0.steps.push(Step {
                start_ns: second * SECOND_NS + number * 50 * MS,
                duration_ns: ms * MS,
                kind: StepKind::Step,
                worker: Worker::Pool(0),
                job: JobId(1),
                class: IoClass::Deep(2),
                granted_bytes: MIB,
                waited_ns: 0,
                read_bytes: MIB,
                written_bytes: MIB,
                punched_bytes: 0,
                unlinked_bytes: 0,
                device_ns: device_ms * MS,
                sync_ns: MS,
                cpu_ns: cpu_ms * MS,
                syncs: 1,
            });
        }
    }

    /// Sets what the steps of a second wrote.
    fn written(&mut self, second: u64, bytes: u64) {
        let steps = self.0.steps.iter_mut();
        let steps: Vec<_> = steps.filter(|step| step.start_ns / SECOND_NS == second).collect();
        let each = bytes / steps.len() as u64;
        steps.into_iter().for_each(|step| step.written_bytes = each);
    }

    fn traffic(&mut self, second: u64, mib: u32) {
        let mut written_kib = [0; IO_CLASSES];
        written_kib[IoClass::Deep(2).index()] = mib << 10;
        let read_kib = [0; IO_CLASSES];
        self.event(second, EventKind::Traffic { period_ms: 1000, read_kib, written_kib });
    }

    fn slow(&mut self, second: u64, ms: u64, fill: impl FnOnce(&mut SlowOperation)) {
        let mut slow = SlowOperation {
            kind: OperationKind::Write,
            thread: 1,
            start_ns: second * SECOND_NS + 500 * MS,
            total_ns: ms * MS,
            queue_ns: 0,
            wal_append_ns: 0,
            sync_ns: 0,
            memtable_ns: 0,
            admission_ns: 0,
            device_read_ns: 0,
            cache_miss_ns: 0,
            lock_ns: 0,
            device_reads: 0,
            cache_misses: 0,
        };
        fill(&mut slow);
        self.0.slow.push(slow);
    }

    fn held_back(&mut self, second: u64, ms: u64, cause: StallCause) {
        self.slow(second, ms, |slow| slow.admission_ns = ms * MS - MS);
        let at = second * SECOND_NS + 500 * MS;
        let (waits, waited_ns) = (4, 4 * ms * MS);
        let kind = EventKind::Stalled { cause, began_ns: at, waits, waited_ns };
        self.0.events.push(Event { at_ns: at + ms * MS, kind });
    }

    fn explained(mut self) -> Explanation {
        self.0.until_ns = 40 * SECOND_NS;
        let mut history = History::new(600);
        history.take(&mut self.0);
        assert!(self.0.events.is_empty() && self.0.steps.is_empty());
        history.explain(Duration::from_secs(600))
    }

    /// Returns the cause of the only slow period, and what is said of it.
    fn cause(self) -> (Cause, String) {
        let explained = self.explained();
        let [episode] = &explained.episodes[..] else { panic!("{explained}") };
        assert_eq!((episode.first_second, episode.last_second), (20, 29), "{explained}");
        (episode.cause, explained.to_string())
    }
}

#[test]
fn many_short_waits_make_a_second_slow() {
    for (waited_ms, slow) in [(190, false), (600, true)] {
        let mut made = Made::new();
        for second in 20..30 {
            made.step(second, 20, 8, 11);
            made.traffic(second, 190);
            made.slow(second, 5, |slow| (slow.device_read_ns, slow.device_reads) = (5 * MS, 1));
            let cause = StallCause::MemtableLimit;
            let (waits, waited_ns) = (4000, waited_ms * MS);
            made.event(
                second,
                EventKind::Stalled { cause, began_ns: second * SECOND_NS, waits, waited_ns },
            );
        }
        if slow {
            let (cause, text) = made.cause();
            assert_eq!(cause, Cause::Overload(Some(StallCause::MemtableLimit)), "{text}");
            assert!(text.contains("10 slow seconds; a write took 5.0 ms"), "{text}");
            assert!(text.contains("Writers were held back for 6.00 s together"), "{text}");
        } else {
            assert!(made.explained().episodes.is_empty());
        }
    }
}

#[test]
fn without_a_slow_second_it_says_so() {
    let explained = Made::new().explained();
    assert!(explained.episodes.is_empty());
    assert!(explained.to_string().contains("the slowest operation, a write, took 2.0 ms"));
    let nothing = History::new(60).explain(Duration::from_secs(60));
    assert_eq!(nothing.to_string(), "No operation was recorded in the last 0 s.\n");
}

#[test]
fn others_that_have_the_processors_are_the_cause_wherever_clients_wait() {
    for held_back in [false, true] {
        let mut made = Made::new();
        for second in 20..30 {
            made.step(second, 90, 5, 10);
            made.event(second, EventKind::Late { late_ns: 150 * MS });
            if held_back {
                made.held_back(second, 300, StallCause::MemtableLimit);
            } else {
                made.slow(second, 300, |_| {});
            }
        }
        let (cause, text) = made.cause();
        assert_eq!(cause, Cause::Processor, "{text}");
        assert!(text.contains("processors were taken by others"), "{text}");
        assert!(text.contains("ran 150 ms late"), "{text}");
        assert!(text.contains(" %) for a processor"), "{text}");
    }
}

#[test]
fn a_device_that_has_become_slow_is_the_cause_wherever_clients_wait() {
    for part in 0..3 {
        let mut made = Made::new();
        made.device(20, 20, 10);
        for second in 20..30 {
            made.step(second, 90, 3, 85);
            made.traffic(second, 20);
            match part {
                0 => made.held_back(second, 300, StallCause::Level0Runs),
                1 => made.slow(second, 300, |slow| {
                    (slow.device_read_ns, slow.device_reads) = (290 * MS, 3);
                }),
                _ => made.slow(second, 300, |slow| slow.sync_ns = 290 * MS),
            }
        }
        let (cause, text) = made.cause();
        assert_eq!(cause, Cause::Device, "{text}");
        assert!(text.contains("20 MiB/s, and 200 MiB/s usually"), "{text}");
    }
}

#[test]
fn a_device_at_its_limit_is_overload_and_one_that_is_not_is_a_slow_background() {
    for (mib, expected) in [
        (190, Cause::Overload(Some(StallCause::PendingCompactionBytes))),
        (30, Cause::Background(StallCause::PendingCompactionBytes)),
    ] {
        let mut made = Made::new();
        for second in 20..30 {
            made.step(second, 20, 8, 11);
            made.traffic(second, mib);
            made.held_back(second, 300, StallCause::PendingCompactionBytes);
        }
        let (cause, text) = made.cause();
        assert_eq!(cause, expected, "{text}");
        assert!(text.contains("Writers were held back for 12.00 s together"), "{text}");
        assert!(text.contains("believed to do 200 MiB/s"), "{text}");
    }
}

#[test]
fn a_device_that_writes_as_fast_as_ever_is_not_slow_however_long_its_syncs_take() {
    // In each second ten steps are in the device for 40 ms each and sync once, for a millisecond.
    for (written, expected) in [
        // The pace is what it was: longer syncs and a smaller belief are those of a queue.
        (20, Cause::Overload(Some(StallCause::MemtableLimit))),
        (3, Cause::Device),
    ] {
        let mut made = Made::default();
        made.device(0, 200, 1);
        for second in 0..20 {
            made.step(second, 45, 3, 41);
            made.written(second, 10 * MIB);
            made.slow(second, 2, |slow| slow.sync_ns = MS);
        }
        made.device(20, 40, 1);
        for second in 20..30 {
            made.step(second, 90, 3, 80);
            made.written(second, written * MIB);
            made.held_back(second, 300, StallCause::MemtableLimit);
        }
        let (cause, text) = made.cause();
        assert_eq!(cause, expected, "{text}");
    }
}

#[test]
fn what_has_just_begun_is_seen_in_its_first_second() {
    for starved in [true, false] {
        let mut made = Made::new();
        for second in 10..20 {
            made.step(second, 60, 50, 5);
        }
        let (cpu, device) = if starved { (3, 5) } else { (5, 80) };
        // The device writes as fast as ever.
        made.step(20, 90, cpu, device);
        made.written(20, 140 * MIB);
        made.held_back(20, 300, StallCause::MemtableLimit);
        let explained = made.explained();
        let overload = Cause::Overload(Some(StallCause::MemtableLimit));
        let expected = if starved { Cause::Processor } else { overload };
        assert_eq!(explained.episodes[0].cause, expected, "{explained}");
    }
}

#[test]
fn syncs_blocks_locks_and_computing_are_told_apart() {
    type Fill = fn(&mut SlowOperation);
    let cases: [(Fill, Cause); 6] = [
        (|slow| slow.sync_ns = 290 * MS, Cause::Sync),
        (
            |slow| (slow.device_read_ns, slow.device_reads, slow.cache_misses) = (290 * MS, 40, 40),
            Cause::Cache,
        ),
        (|slow| (slow.wal_append_ns, slow.sync_ns) = (260 * MS, 30 * MS), Cause::Unknown),
        (|slow| slow.lock_ns = 290 * MS, Cause::Contention),
        (|slow| slow.queue_ns = 290 * MS, Cause::Contention),
        (|_| {}, Cause::Unknown),
    ];
    for (fill, expected) in cases {
        let mut made = Made::new();
        for second in 20..30 {
            made.step(second, 10, 3, 5);
            made.slow(second, 300, fill);
        }
        let (cause, text) = made.cause();
        assert_eq!(cause, expected, "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 160), "{text}");
    }
    for (stall, expected) in [
        (StallCause::BackgroundError, Cause::Failure),
        (StallCause::WriteBuffers, Cause::WriteBuffers),
        (StallCause::KeyLock, Cause::KeyLock),
    ] {
        let mut made = Made::new();
        (20..30).for_each(|second| made.held_back(second, 300, stall));
        assert_eq!(made.cause().0, expected);
    }
}

#[test]
fn the_worst_periods_come_first_and_each_cause_has_its_own() {
    let mut made = Made::new();
    for second in 20..24 {
        made.slow(second, 50, |slow| slow.sync_ns = 45 * MS);
    }
    // Eight seconds later the cause of the first period is no longer near.
    made.event(33, EventKind::Late { late_ns: 900 * MS });
    made.slow(33, 400, |_| {});
    let explained = made.explained();
    let periods: Vec<_> =
        explained.episodes.iter().map(|it| (it.first_second, it.slow_seconds, it.cause)).collect();
    assert_eq!(periods, [(33, 1, Cause::Processor), (20, 4, Cause::Sync)]);
    assert_eq!(explained.slowest.unwrap().total_ns, 400 * MS);
    assert!(explained.to_string().starts_with("7 s ago: 1 slow second; a write took 400 ms."));
}

#[test]
fn a_stall_counts_in_every_second_that_it_touches_and_memory_stays_bounded() {
    let mut history = History::new(30);
    let mut timeline = Timeline::default();
    let cause = StallCause::MemtableLimit;
    let kind =
        EventKind::Stalled { cause, began_ns: SECOND_NS / 2, waits: 1, waited_ns: 3 * SECOND_NS };
    timeline.events.push(Event { at_ns: 7 * SECOND_NS / 2, kind });
    history.take(&mut timeline);
    let waited: Vec<u64> = history.seconds().map(|second| second.stalled_ns[0] / MS).collect();
    assert_eq!(waited, [500, 1000, 1000, 500]);
    // A stall since for ever, and seconds without end.
    let began_ns = 0;
    let kind = EventKind::Stalled { cause, began_ns, waits: 1, waited_ns: u64::MAX };
    timeline.events.push(Event { at_ns: u64::MAX, kind });
    history.take(&mut timeline);
    assert!(history.seconds().count() <= 30);
    for second in 0..1000 {
        let mut made = Made::default();
        made.traffic(second, 1);
        for _ in 0..100 {
            made.slow(second, 20, |_| {});
        }
        made.step(second, 1, 1, 0);
        history.take(&mut made.0);
    }
    assert!(history.seconds().count() <= 30);
    assert!(history.seconds().all(|second| second.slowest.len() <= 8 && second.work.len() <= 8));
}
