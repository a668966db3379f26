//! Tests which waits are counted, and that none is counted twice.

use std::time::Duration;

use super::*;

fn after(start: Instant, us: u64) -> Instant {
    start + Duration::from_micros(us)
}

#[test]
fn an_operation_without_a_wait_reports_none() {
    begin(true);
    assert!(!end());
    // Waits outside an operation, or in one that failed, are not counted for the next.
    waited(Part::Queue, Instant::now(), 5);
    begin(true);
    waited(Part::Queue, Instant::now(), 5);
    begin(true);
    assert!(!end());
}

#[test]
fn calls_answered_by_the_page_cache_are_no_waits() {
    begin(true);
    for class in [IoClass::Client, IoClass::Wal] {
        io_done(class, IoCall::Write, Instant::now(), NOTED_NS - 1, 1);
    }
    assert!(!end());
}

#[test]
fn waits_are_summed_by_part_and_gaps_go_to_the_announced_part() {
    let start = Instant::now();
    begin(true);
    io_done(IoClass::Wal, IoCall::Write, start, 10_000, 1);
    inserting();
    io_done(IoClass::Wal, IoCall::Sync, after(start, 15), 20_000, 1);
    io_done(IoClass::Manifest, IoCall::Sync, after(start, 40), 1_000, 1);
    assert!(end());
    let mut found = waits();
    assert_eq!(found.first, Some(start));
    assert_eq!(found.span_ns, 35_000);
    found.fill_gap(50_000);
    let mut expected = [0; PARTS];
    expected[Part::WalAppend as usize] = 10_000;
    expected[Part::Memtable as usize] = 5_000;
    expected[Part::Sync as usize] = 20_000;
    assert_eq!(found.waited.parts_ns, expected, "nothing was said of what follows the sync");
}

#[test]
fn calls_within_a_wait_are_counted_once() {
    begin(true);
    let outer = wait(Part::Queue);
    let inner = wait(Part::Sync);
    io_done(IoClass::Wal, IoCall::Sync, Instant::now(), 1 << 40, 1);
    drop(inner);
    drop(outer);
    assert!(end());
    let parts = waits().waited.parts_ns;
    assert_eq!(parts[Part::Sync as usize], 0);
    assert!(parts[Part::Queue as usize] < 1 << 40);
}

#[test]
fn reads_of_a_load_are_counted_apart_from_the_rest() {
    begin(true);
    let outer = load();
    let inner = load();
    let start = Instant::now();
    io_done(IoClass::Client, IoCall::Read, start, 7, 1);
    drop(inner);
    io_done(IoClass::Client, IoCall::Read, after(start, 20), 5_000, 1);
    drop(outer);
    // Neither the time after the load nor a later read without a miss belongs to it.
    let behind = after(start, 1_000_000);
    io_done(IoClass::Client, IoCall::Read, behind, 5_000, 1);
    io_done(IoClass::Client, IoCall::Read, after(behind, 10), 5_000, 1);
    assert!(end());
    let found = waits();
    let part = |part: Part| found.waited.parts_ns[part as usize];
    assert_eq!((part(Part::DeviceRead), found.waited.device_reads), (15_007, 4));
    assert!((19_993..1_000_000_000).contains(&part(Part::CacheMiss)), "{found:?}");
    // If the page cache answers, the clock is read only where it is read anyway.
    begin(false);
    let loads = load();
    io_done(IoClass::Client, IoCall::Read, start, NOTED_NS - 1, 1);
    drop(loads);
    assert!(!end());
    begin(true);
    drop(load());
    assert!(!end(), "nothing was read");
}

#[test]
fn a_lock_that_another_holds_is_a_wait_and_a_free_one_is_none() {
    use std::sync::mpsc;

    use crate::base::sync::{Mutex, RwLock};

    let (mutex, shared) = (Mutex::new(()), RwLock::new(()));
    let takes: [&dyn Fn(); 3] = [
        &|| drop(crate::base::locks::lock_timed(&mutex)),
        &|| drop(crate::base::locks::read(&shared)),
        &|| drop(crate::base::locks::write(&shared)),
    ];
    for take in takes {
        begin(true);
        take();
        assert!(!end());
        std::thread::scope(|scope| {
            let (held, is_held) = mpsc::sync_channel(0);
            let (go, goes) = mpsc::sync_channel::<()>(0);
            let (mutex, shared) = (&mutex, &shared);
            scope.spawn(move || {
                while goes.recv().is_ok() {
                    let guards =
                        (crate::base::locks::lock_timed(mutex), crate::base::locks::write(shared));
                    if held.send(()).is_err() || goes.recv().is_err() {
                        return;
                    }
                    // Usually long enough for the other thread to arrive at the lock.
                    (0..100).for_each(|_| std::thread::yield_now());
                    drop(guards);
                }
            });
            for _ in 0..10_000 {
                go.send(()).unwrap();
                is_held.recv().unwrap();
                begin(true);
                inserting();
                waited(Part::WalAppend, Instant::now(), 0);
                inserting();
                go.send(()).unwrap();
                take();
                assert!(end());
                if waits().waited.parts_ns[Part::Lock as usize] > 0 {
                    assert_eq!(waits().gap, Some(Part::Memtable), "it goes on inserting");
                    return;
                }
            }
            panic!("no wait was seen");
        });
    }
}

#[test]
fn a_step_within_an_operation_keeps_its_calls_to_itself() {
    let start = Instant::now();
    begin(true);
    io_done(IoClass::Client, IoCall::Read, start, 7_000, 1);
    let watch = Watch::begin();
    io_done(IoClass::Flush, IoCall::Write, start, 100, 1);
    io_done(IoClass::Wal, IoCall::Write, start, 10_000, 1);
    io_done(IoClass::Flush, IoCall::Sync, start, 1_000, 1);
    let (_, io) = watch.end();
    assert_eq!(io, StepIo { device_ns: 10_100, read_bytes: 0, sync_ns: 1_000, syncs: 1 });
    assert!(end());
    assert_eq!(waits().waited.parts_ns[Part::DeviceRead as usize], 7_000);
    assert_eq!(waits().waited.parts_ns[Part::WalAppend as usize], 0);
    assert_eq!(waits().waited.device_reads, 1);
}

#[test]
fn the_longest_read_outside_of_operations_is_kept_until_asked_for() {
    let start = Instant::now();
    assert!(take_alone().is_none());
    io_done(IoClass::Client, IoCall::Read, start, NOTED_NS - 1, 1);
    assert!(take_alone().is_none());
    for ns in [5_000, 9_000, 4_000] {
        io_done(IoClass::Client, IoCall::Read, start, ns, 1);
    }
    io_done(IoClass::Flush, IoCall::Read, start, 10_000, 1);
    assert_eq!(take_alone(), Some((start, 9_000)));
    assert!(take_alone().is_none());
}

#[test]
fn a_step_within_a_wait_counts_its_calls_and_not_what_it_waits_for_a_processor() {
    begin(true);
    let waits_for_background = wait(Part::Admission);
    let step = Watch::begin();
    io_done(IoClass::Flush, IoCall::Write, Instant::now(), 10_000, 1);
    without_processor(IoCall::Write, 4_000);
    io_done(IoClass::Flush, IoCall::Sync, Instant::now(), 10_000, 1);
    without_processor(IoCall::Sync, 1_000);
    let (_, io) = step.end();
    assert_eq!((io.device_ns, io.sync_ns, io.syncs), (6_000, 9_000, 1));
    // What the wait contains is part of the wait again.
    io_done(IoClass::Wal, IoCall::Sync, Instant::now(), 1 << 40, 1);
    without_processor(IoCall::Sync, 1 << 40);
    drop(waits_for_background);
    assert!(end());
    assert_eq!(waits().waited.parts_ns[Part::Sync as usize], 0);
}
