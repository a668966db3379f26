//! The limiter by arithmetic. No test here depends on a clock.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};

use super::{Device, LimitedVfs, Passed, Queue, SAVED_NS, WrittenAt, lock};

const MS: u64 = 1_000_000;

/// At 200 MB/s a million bytes take five milliseconds.
fn queue() -> Queue {
    Queue::new(200_000_000)
}

#[test]
fn bytes_of_one_direction_follow_each_other_at_the_devices_speed() {
    let mut queue = queue();
    let begin = 1_000 * MS;
    // The saved milliseconds pass at once. Everything after them moves at 200 MB/s.
    assert_eq!(queue.reserve(begin, 1_000_000), begin - SAVED_NS + 5 * MS);
    assert_eq!(queue.reserve(begin, 1_000_000), begin - SAVED_NS + 10 * MS);
    assert_eq!(queue.reserve(begin + MS, 4_000), begin - SAVED_NS + 10 * MS + 20_000);
}

#[test]
fn callers_that_wait_for_their_bytes_get_the_rate_and_no_more() {
    let mut queue = queue();
    let (mut now, mut bytes) = (0, 0);
    while now < 10_000 * MS {
        // Every wait ends a millisecond late, as on a busy machine.
        now = queue.reserve(now, 65_536).max(now) + MS;
        bytes += 65_536;
    }
    // One caller loses the time that it oversleeps. Three callers keep the device busy.
    assert!(bytes <= 2_000_000_000 + 1_000_000, "{bytes}");
    let (mut queue, mut bytes) = (self::queue(), 0u64);
    let mut callers = [0u64; 3];
    while callers[0] < 10_000 * MS {
        for now in &mut callers {
            *now = queue.reserve(*now, 1_000_000).max(*now) + MS;
            bytes += 1_000_000;
        }
    }
    let expected = 2_000_000_000u64;
    assert!(bytes.abs_diff(expected) < expected / 100, "{bytes}");
}

#[test]
fn an_idle_device_saves_up_for_a_moment_only() {
    let mut queue = queue();
    queue.reserve(0, 1_000_000);
    let later = 60_000 * MS;
    assert_eq!(queue.reserve(later, 2_000_000), later - SAVED_NS + 10 * MS);
}

#[test]
fn extremes_do_not_overflow() {
    let mut queue = Queue::new(0);
    assert_eq!(queue.reserve(u64::MAX - 1, u64::MAX), u64::MAX);
    assert_eq!(queue.reserve(5, 1), u64::MAX);
    assert_eq!(Queue::new(u64::MAX).reserve(7 * MS, 1 << 20), 7 * MS - SAVED_NS);
}

#[test]
fn a_sync_waits_for_what_was_written_to_its_file() {
    // The device is so fast that nothing sleeps. Only the time until which a sync would wait
    // counts.
    let device = Device::new(u64::MAX / 2);
    let (log, table) = (WrittenAt::default(), WrittenAt::default());
    device.write(50 * MS, 4096, false, &log);
    let log_ns = log.0.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(log_ns, 50 * MS - SAVED_NS);
    assert_eq!(table.0.load(std::sync::atomic::Ordering::Relaxed), 0, "of another file, nothing");
    log.clear();
    assert_eq!(log.0.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn a_wait_for_writeback_leaves_the_last_bytes_under_way() {
    let device = Device::new(200_000_000);
    let file = WrittenAt::default();
    // The time is far back, so that nothing sleeps.
    device.write(0, 3_000_000, false, &file);
    let all = device.written_back_at(&file, 0);
    assert_eq!(all, 15 * MS);
    assert_eq!(device.written_back_at(&file, 1_000_000), all - 5 * MS);
    assert_eq!(device.written_back_at(&file, u64::MAX), 0);
}

#[test]
fn the_limit_follows_its_file_while_that_has_one() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("limit");
    let device = Device::following(200_000_000, Some(file.clone()));
    let rate = || lock(&device.writes).bytes_per_second;
    let write = |at_ms: u64| device.write(at_ms * MS, 0, false, &WrittenAt::default());
    write(200);
    assert_eq!(rate(), 200_000_000, "no file yet");
    std::fs::write(&file, "20M\n").unwrap();
    write(250);
    assert_eq!(rate(), 200_000_000, "not read again so soon");
    write(300);
    assert_eq!(rate(), 20_000_000);
    assert_eq!(lock(&device.reads).bytes_per_second, 20_000_000);
    std::fs::write(&file, "fast").unwrap();
    write(400);
    assert_eq!(rate(), 20_000_000, "no number changes nothing");
}

#[test]
fn the_file_system_counts_and_passes_bytes_on_unchanged() {
    let (memory, device) = (MemVfs::new(), Arc::new(Device::new(u64::MAX)));
    let vfs = LimitedVfs::new(Arc::new(memory.clone()), Arc::clone(&device));
    let (directory, path) = (Path::new("/d"), Path::new("/d/file"));
    vfs.create_dir_all(directory).unwrap();
    let file = vfs.open(path, OpenOptions::CREATE).unwrap();
    file.write_at(b"0123456789", 0, IoClass::Flush).unwrap();
    file.sync_data(IoClass::Flush).unwrap();
    vfs.sync_dir(directory).unwrap();
    let mut read = [0; 16];
    assert_eq!(file.read_at(&mut read, 4, IoClass::Client).unwrap(), 6, "to the file's end");
    assert_eq!(&read[..6], b"456789");
    assert_eq!(device.passed(), Passed { read_bytes: 6, written_bytes: 10, syncs: 1 });
    let below = memory.open(path, OpenOptions::READ).unwrap();
    assert_eq!(below.len().unwrap(), 10);
    assert_eq!((file.len().unwrap(), vfs.list(directory).unwrap().len()), (10, 1));
    assert!(vfs.open(Path::new("/d/none"), OpenOptions::READ).is_err());
}
