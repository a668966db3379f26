//! Tests of what the requests of clients say about the device.

use super::*;
use crate::event::{ClassSample, Processors};

const SAMPLE_NS: u64 = 10_000_000;

/// Returns `count` reads of `bytes` bytes that took `ns` nanoseconds together.
fn reads(count: u64, bytes: u64, ns: u64) -> ClassSample {
    ClassSample { reads: count, read_bytes: bytes, read_ns: ns, ..ClassSample::default() }
}

/// Feeds samples in which flushes write `written` bytes per second and use the device all the time,
/// while clients sync the WAL, which takes `sync_ns` each time.
fn go_on(model: &mut DeviceModel, now: &mut Instant, samples: u64, written: u64, sync_ns: u64) {
    for _ in 0..samples {
        *now = Instant(now.0 + SAMPLE_NS);
        let mut sample = Sample::default();
        let bytes = written / 100;
        let write_ns = if bytes > 0 { SAMPLE_NS } else { 0 };
        sample.classes[IoClass::Flush.index()] =
            ClassSample { write_bytes: bytes, writes: 8, write_ns, ..ClassSample::default() };
        sample.classes[IoClass::Wal.index()] =
            ClassSample { syncs: 5, sync_ns: 5 * sync_ns, ..ClassSample::default() };
        model.observe(*now, SAMPLE_NS, &sample, (0, 0));
    }
}

#[test]
fn syncs_that_take_long_beside_background_work_cut_what_is_believed() {
    let mut model = DeviceModel::new(DeviceProfile::default());
    let mut now = Instant(0);
    let before = model.profile().write_bytes_per_second;
    go_on(&mut model, &mut now, 300, 0, 1_000_000);
    assert_eq!(model.profile().write_bytes_per_second, before);
    // The device is at its limit, and syncs wait behind it.
    go_on(&mut model, &mut now, 40, before, 4_000_000);
    let cut = model.profile().write_bytes_per_second;
    assert!(cut < before, "{cut} of {before}");
    // The cut helps, so it stays.
    go_on(&mut model, &mut now, 200, cut * 9 / 10, 1_000_000);
    assert!(model.profile().write_bytes_per_second <= cut);
}

#[test]
fn syncs_that_take_long_for_another_reason_do_not() {
    let mut model = DeviceModel::new(DeviceProfile::default());
    let mut now = Instant(0);
    let before = model.profile().write_bytes_per_second;
    go_on(&mut model, &mut now, 300, 0, 1_000_000);
    for _ in 0..20 {
        let written = model.profile().write_bytes_per_second * 9 / 10;
        go_on(&mut model, &mut now, 100, written, 4_000_000);
    }
    let after = model.profile().write_bytes_per_second;
    assert!(after >= before / 4 * 3, "{after} of {before}");
}

/// Feeds two seconds at rest, then three in which compactions read 150 MB/s beside reads of
/// clients. In every tenth sample these reads take five times as long, while compactions wait for
/// the device for `waits` thousandths of the time. Otherwise they hardly wait.
fn paced(believed: u64, waits: u64) -> u64 {
    let mut model = DeviceModel::new(DeviceProfile {
        read_bytes_per_second: believed,
        write_bytes_per_second: believed,
        barrier_ns: 1_000_000,
    });
    for nth in 1..500 {
        let slow = nth > 200 && nth % 10 == 0;
        let mut sample = Sample::default();
        let read_ns = if slow { 500_000 } else { 100_000 };
        sample.classes[IoClass::Client.index()] = reads(100, 400_000, 100 * read_ns);
        if nth > 200 {
            let part = if slow { waits } else { 150 };
            sample.classes[IoClass::Deep(1).index()] =
                reads(12, 1_500_000, SAMPLE_NS / 1000 * part);
        }
        model.observe(Instant(nth * SAMPLE_NS), SAMPLE_NS, &sample, (0, 0));
    }
    model.profile().read_bytes_per_second
}

#[test]
fn paced_work_that_waits_with_clients_cuts_what_is_believed() {
    let believed = 700_000_000;
    let cut = paced(believed, 700);
    assert!(cut < 300_000_000, "{cut}");
    // On a busy processor clients wait as long, but compactions do not wait for the device.
    assert_eq!(paced(believed, 150), believed);
}

/// Feeds two seconds at rest, then a minute beside compactions. In four samples in a row of each
/// `of` the reads of clients take five times as long. Returns the lowest estimate.
fn with_hiccups(of: u64) -> u64 {
    let mut model = DeviceModel::new(DeviceProfile {
        read_bytes_per_second: 200_000_000,
        write_bytes_per_second: 200_000_000,
        barrier_ns: 1_000_000,
    });
    let mut least = u64::MAX;
    for nth in 1..6200 {
        let mut sample = Sample::default();
        let slow = nth > 300 && nth % of < 4;
        let ns = if slow { 500_000 } else { 100_000 };
        sample.classes[IoClass::Client.index()] = reads(100, 400_000, 100 * ns);
        if nth > 200 {
            sample.classes[IoClass::Deep(1).index()] = reads(12, 500_000, SAMPLE_NS);
        }
        model.observe(Instant(nth * SAMPLE_NS), SAMPLE_NS, &sample, (0, 0));
        least = least.min(model.profile().read_bytes_per_second);
    }
    least
}

#[test]
fn hiccups_of_the_machine_cut_nothing() {
    assert_eq!(with_hiccups(400), 200_000_000);
    let least = with_hiccups(20);
    assert!(least < 200_000_000, "{least}");
}

/// Feeds two seconds at rest, one beside compactions without harm, a sample of `pause_ns`, and then
/// 300 ms in which all reads of clients take five times as long. Returns the estimates before and
/// after them.
fn after_a_pause(pause_ns: u64) -> (u64, u64) {
    let mut model = DeviceModel::new(DeviceProfile {
        read_bytes_per_second: 200_000_000,
        write_bytes_per_second: 200_000_000,
        barrier_ns: 1_000_000,
    });
    let mut now = Instant(0);
    let mut samples = |model: &mut DeviceModel, count: u64, over_ns: u64, beside: bool, ns: u64| {
        for _ in 0..count {
            now = Instant(now.0 + over_ns);
            let mut sample = Sample::default();
            sample.classes[IoClass::Client.index()] = reads(100, 400_000, 100 * ns);
            if beside {
                sample.classes[IoClass::Deep(1).index()] = reads(12, 1_500_000, SAMPLE_NS);
            }
            model.observe(now, over_ns, &sample, (0, 0));
        }
        model.profile().read_bytes_per_second
    };
    samples(&mut model, 200, SAMPLE_NS, false, 100_000);
    samples(&mut model, 100, SAMPLE_NS, true, 100_000);
    let before = samples(&mut model, 1, pause_ns, true, 100_000);
    (before, samples(&mut model, 30, SAMPLE_NS, true, 500_000))
}

#[test]
fn clients_that_catch_up_after_a_pause_cut_nothing() {
    let (before, after) = after_a_pause(SAMPLE_NS);
    assert!(after < before, "{after} of {before}");
    let (before, after) = after_a_pause(1_500_000_000);
    assert_eq!(after, before);
}

/// Feeds two seconds at rest, then `samples` in which compactions read as much as they get from a
/// device that delivers `device` bytes per second, beside clients that use a quarter of it and
/// notice nothing. Returns the estimate at the end.
fn asked_in_full(believed: u64, device: u64, samples: u64) -> u64 {
    const HEADROOM: u64 = 100;
    let mut model = DeviceModel::new(DeviceProfile {
        read_bytes_per_second: believed,
        write_bytes_per_second: believed,
        barrier_ns: 1_000_000,
    });
    for nth in 1..=200 + samples {
        let mut sample = Sample::default();
        sample.classes[IoClass::Client.index()] = reads(100, device / 4 / 100, 100 * 100_000);
        if nth > 200 {
            let asked = model.usable(HEADROOM).0.min(device);
            sample.classes[IoClass::Deep(1).index()] =
                reads(12, (asked - device / 4) / 100, SAMPLE_NS);
            model.wanted(true, false, false);
        }
        model.observe(Instant(nth * SAMPLE_NS), SAMPLE_NS, &sample, (0, 0));
    }
    model.profile().read_bytes_per_second
}

#[test]
fn a_belief_that_was_never_seen_is_checked() {
    let device = 200_000_000;
    // Less the headroom, about as much is asked for as the device delivers, and no client notices.
    for believed in [device * 110 / 100, device * 120 / 100] {
        let found = asked_in_full(believed, device, 1000);
        assert!(found.abs_diff(device) < device / 50, "{found} of {device}");
    }
    // An estimate that was delivered stays. More is not asked for while no work is late.
    assert_eq!(asked_in_full(device, device, 1000), device);
    let below = asked_in_full(device / 2, device, 1000);
    assert!(below.abs_diff(device / 2) < device / 100, "{below}");
}

/// Feeds two seconds at rest, then `samples` in which compactions move as much as they get, beside
/// clients that use 15 MB/s and to whom 20 MB/s are left. In `pauses` of 4 samples compactions have
/// nothing to do. Returns the estimate at the end.
fn with_little_believed(device: u64, pauses: u64, urgent: bool, samples: u64) -> u64 {
    const LEFT: u64 = 20_000_000;
    const BELIEVED: u64 = 30_000_000;
    let mut model = DeviceModel::new(DeviceProfile {
        read_bytes_per_second: BELIEVED,
        write_bytes_per_second: device,
        barrier_ns: 1_000_000,
    });
    for nth in 1..=200 + samples {
        let mut sample = Sample::default();
        sample.classes[IoClass::Client.index()] = reads(40, 150_000, 40 * 100_000);
        if nth > 200 && nth % 4 >= pauses {
            let bytes = model.usable(100).0.saturating_sub(LEFT).min(device) / 100;
            sample.classes[IoClass::Deep(1).index()] =
                reads(1 + bytes / 65_536, bytes, scale(bytes, NS_PER_SECOND, device));
            model.wanted(true, false, urgent);
        }
        model.observe(Instant(nth * SAMPLE_NS), SAMPLE_NS, &sample, (LEFT, 0));
    }
    assert!(urgent || model.profile().read_bytes_per_second >= BELIEVED, "no check lowers it");
    model.profile().read_bytes_per_second
}

#[test]
fn an_estimate_that_is_far_too_low_rises_when_work_is_urgent() {
    // Clients use less than is left to them, and work has pauses of its own. Both keep what is
    // delivered below what is asked for, whatever the device could do.
    for pauses in 0..3 {
        let found = with_little_believed(1_000_000_000, pauses, true, 1000);
        assert!(found > 100_000_000, "{found} with {pauses} pauses");
        with_little_believed(1_000_000_000, pauses, false, 1000);
    }
    let found = with_little_believed(200_000_000, 0, true, 1000);
    assert!(found > 180_000_000, "{found}");
}

#[test]
fn the_longest_barrier_is_remembered_for_a_while() {
    let mut model = DeviceModel::new(DeviceProfile::default());
    let mut now = Instant(0);
    go_on(&mut model, &mut now, 100, 0, 1_000_000);
    go_on(&mut model, &mut now, 1, 0, 60_000_000);
    go_on(&mut model, &mut now, 1000, 0, 1_000_000);
    assert!(model.barrier_worst_ns() > 45_000_000, "{}", model.barrier_worst_ns());
    assert!(model.profile().barrier_ns < 2_000_000, "the mean is not");
    go_on(&mut model, &mut now, 40_000, 0, 1_000_000);
    assert!(model.barrier_worst_ns() < 2_000_000, "{}", model.barrier_worst_ns());
}

/// Feeds one sample with these requests of clients. Returns whether they wait for the device.
fn awaited_after(model: &mut DeviceModel, now: Instant, class: IoClass, of: ClassSample) -> bool {
    let mut sample = Sample::default();
    sample.classes[class.index()] = of;
    model.observe(now, SAMPLE_NS, &sample, (0, 0));
    model.is_awaited(now)
}

#[test]
fn clients_wait_for_the_device_only_with_requests_that_it_serves() {
    let mut model = DeviceModel::new(DeviceProfile::default());
    let wal = |write_ns, syncs| ClassSample {
        write_bytes: 100 << 10,
        writes: 100,
        write_ns,
        syncs,
        ..ClassSample::default()
    };
    let second = |nth: u64| Instant(nth * NS_PER_SECOND);
    let background = ClassSample { write_bytes: 1 << 20, writes: 4, ..wal(1_000_000, 1) };
    assert!(!awaited_after(&mut model, second(1), IoClass::Flush, background));
    // The page cache takes a write of the WAL in microseconds.
    assert!(!awaited_after(&mut model, second(2), IoClass::Wal, wal(300_000, 0)));
    assert!(awaited_after(&mut model, second(3), IoClass::Wal, wal(300_000, 1)));
    assert!(!model.is_awaited(second(4)), "for a second");
    // It is full, and lets writers wait until the device has taken bytes.
    assert!(awaited_after(&mut model, second(5), IoClass::Wal, wal(9_000_000, 0)));
    let read = ClassSample { read_bytes: 4096, reads: 1, ..ClassSample::default() };
    assert!(awaited_after(&mut model, second(7), IoClass::Client, read));
}

/// Feeds two seconds at rest, then some of a host whose processors are taken (or not): first at
/// rest, then beside compactions. Reads of clients take `rest_ns` and `beside_ns` there. Returns
/// the estimate, and in how many of the samples deep work was held.
fn on_a_host(taken: bool, rest_ns: u64, beside_ns: u64) -> (u64, usize) {
    let mut model = DeviceModel::new(DeviceProfile::default());
    let mut held = 0;
    for nth in 1..=800 {
        let mut sample = Sample::default();
        let (busy, beside) = (nth > 200, nth > 500);
        if busy && taken {
            sample.processors = Processors { others: 900, idle: 0 };
        }
        let read_ns = match (busy, beside) {
            (false, _) => 100_000,
            (true, false) => rest_ns,
            (true, true) => beside_ns,
        };
        let client = reads(20, 80_000, 20 * read_ns);
        sample.classes[IoClass::Client.index()] = client;
        if beside {
            sample.classes[IoClass::Deep(1).index()] = reads(8, 1 << 20, SAMPLE_NS);
        }
        let now = Instant(nth * SAMPLE_NS);
        model.observe(now, SAMPLE_NS, &sample, (0, 0));
        held += usize::from(beside && model.braked_for_ns(now) > 0);
    }
    (model.profile().read_bytes_per_second, held)
}

#[test]
fn on_a_busy_host_a_long_request_is_no_sign_of_a_busy_device() {
    let before = DeviceModel::new(DeviceProfile::default()).profile().read_bytes_per_second;
    assert_eq!(on_a_host(true, 3_000_000, 4_000_000), (before, 0));
    // If requests take far longer beside background work, they wait behind it there, too.
    let (after, held) = on_a_host(true, 1_000_000, 9_000_000);
    assert!(after == before && held > 250, "{after} of {before}, held {held}");
    // On another host the same requests wait for the device.
    let (_, held) = on_a_host(false, 100_000, 4_000_000);
    assert!(held > 0);
}
