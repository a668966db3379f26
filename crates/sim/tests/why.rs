//! The engine in virtual time on a device that becomes slow: the cause of slow seconds is named.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sateen::explain::{Cause, Explanation, History};
use sateen::test_support::clock::{self, VirtualTime};
use sateen::timeline::Timeline;
use sateen::vfs::MemVfs;
use sateen::{Db, Options};
use sateen_sim::{Bandwidth, DeviceConfig, SimVfs};

const MB: u64 = 1_000_000;
const VALUE_BYTES: usize = 16 << 10;

fn now() -> Duration {
    clock::virtual_time().unwrap()
}

/// Works in the background for at most `most`.
fn work(db: &Db, most: Duration) {
    let until = now() + most;
    while now() < until {
        if !db.step().unwrap() {
            clock::advance(Duration::from_micros(500).min(until - now()));
        }
    }
}

/// Writes `rate` bytes a second for `seconds`, on a device of 20 MB/s that changes, and explains
/// all of it.
fn explained(rate: u64, seconds: u64, changes: Vec<(u64, Bandwidth)>) -> Explanation {
    let time = VirtualTime::begin(7);
    let device = DeviceConfig {
        bandwidth: Bandwidth { read: 20 * MB, write: 20 * MB },
        changes,
        ..DeviceConfig::default()
    };
    let files = SimVfs::new(Arc::new(MemVfs::new()), device, 4 << 20);
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 2 << 20;
    options.column_family.table_bytes = 1 << 20;
    options.column_family.compression = vec![sateen::Compression::None];
    let db = Db::open_with(Arc::new(files), "/db", options, &[]).unwrap();
    let waiting = db.clone();
    time.on_wait(Some(Rc::new(move |most: Duration| {
        let before = now();
        if !matches!(waiting.step(), Ok(true)) && now() == before {
            clock::advance(most.min(Duration::from_millis(1)).max(Duration::from_micros(10)));
        }
    })));
    let gap = Duration::from_nanos(VALUE_BYTES as u64 * 1_000_000_000 / rate);
    let (mut timeline, mut history) = (Timeline::default(), History::new(600));
    let (mut due, mut number) = (now(), 0_u64);
    let mut next_look = Duration::from_secs(5);
    while now() < Duration::from_secs(seconds) {
        let left = due.saturating_sub(now());
        work(&db, left);
        due = (due + gap).max(now());
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = (number >> 52).to_be_bytes();
        db.put(key, vec![number as u8; VALUE_BYTES]).unwrap();
        // The rest of a busy program: without it no time would pass.
        clock::advance(Duration::from_micros(10));
        if now() > next_look {
            next_look = now() + Duration::from_secs(5);
            db.extend_timeline(&mut timeline);
            history.take(&mut timeline);
        }
    }
    db.extend_timeline(&mut timeline);
    history.take(&mut timeline);
    time.on_wait(None);
    let explained = history.explain(Duration::from_secs(600));
    drop(db);
    explained
}

#[test]
fn a_device_that_becomes_slow_is_named() {
    let slow = Bandwidth { read: MB, write: MB };
    let explained = explained(2 * MB, 80, vec![(40_000_000_000, slow)]);
    let worst = explained.episodes.first().unwrap_or_else(|| panic!("{explained}"));
    assert_eq!(worst.cause, Cause::Device, "{explained}");
    assert!(worst.first_second >= 38, "{explained}");
}
