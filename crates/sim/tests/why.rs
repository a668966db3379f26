//! The engine in virtual time, in which one thing goes wrong after another: the cause of the slow
//! seconds is named each time.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sateen::explain::{Cause, Explanation, History};
use sateen::test_support::clock::{self, Computed, VirtualTime};
use sateen::timeline::{EventKind, Timeline};
use sateen::vfs::MemVfs;
use sateen::{Db, Options};
use sateen_control::Processors;
use sateen_sim::{Bandwidth, DeviceConfig, SimVfs};

const MB: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const VALUE_BYTES: usize = 16 << 10;
/// CPU time of a step for each byte that it moves: 200 MB/s.
const CPU_NS_PER_BYTE: u64 = 5;
/// How much longer a thread waits for a processor than it computes, while others have them.
const WAITED_FOR_CPU: u64 = 60;

/// A program and what goes wrong with it.
#[derive(Clone)]
struct Story {
    seconds: u64,
    /// Bytes a second that are written.
    rate: u64,
    /// Bytes a second that are written in these seconds.
    burst: (Range<u64>, u64),
    /// Seconds in which other programs have the processors.
    starved: Range<u64>,
    /// Seconds in which the device, of 20 MB/s otherwise, does this many bytes a second.
    slow: (Range<u64>, u64),
}

impl Story {
    /// Minutes in which nothing goes wrong.
    fn quiet(rate: u64) -> Story {
        let never = || 0..0;
        Story {
            seconds: 80,
            rate,
            burst: (never(), rate),
            starved: never(),
            slow: (never(), 20 * MB),
        }
    }
}

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

/// Expects that the database says everywhere whether it is short of processor.
fn is_said(db: &Db, short: bool) {
    assert_eq!(db.is_short_of_processor(), short, "{:?}", now());
    assert_eq!(db.property("sateen.is-short-of-processor").unwrap(), u8::from(short).to_string());
    let metrics = db.metrics();
    assert_eq!(metrics.scheduler.short_of_processor, short);
    let line = format!("sateen_short_of_processor {}\n", u8::from(short));
    assert!(metrics.to_prometheus_text().contains(&line), "{line}");
    assert_eq!(
        db.property("sateen.stats").unwrap().contains("health ok, short of processor"),
        short
    );
    assert_eq!(metrics.health, "ok", "everything works");
}

/// Returns the seconds in which the timeline says that the machine is short of processors, and that
/// it is no longer.
fn said(timeline: &Timeline) -> Vec<(u64, bool)> {
    let said = timeline.events.iter().filter_map(|event| match event.kind {
        EventKind::Processors { short, others, idle } => {
            assert_eq!((others, idle), if short { (900, 20) } else { (100, 600) });
            // Its time begins with the open, which takes some.
            Some(((event.at_ns + SECOND_NS / 2) / SECOND_NS, short))
        }
        _ => None,
    });
    said.collect()
}

/// Lets the story happen and explains all of it.
fn explained(story: &Story) -> Explanation {
    let time = VirtualTime::begin(7);
    let rate = |rate| Bandwidth { read: rate, write: rate };
    let (slow, slow_rate) = story.slow.clone();
    let changes = match slow.is_empty() {
        true => Vec::new(),
        false => {
            vec![(slow.start * SECOND_NS, rate(slow_rate)), (slow.end * SECOND_NS, rate(20 * MB))]
        }
    };
    let device = DeviceConfig { bandwidth: rate(20 * MB), changes, ..DeviceConfig::default() };
    let files = SimVfs::new(Arc::new(MemVfs::new()), device, 4 << 20);
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 2 << 20;
    options.column_family.table_bytes = 1 << 20;
    options.column_family.compression = vec![sateen::Compression::None];
    let starved = story.starved.clone();
    time.on_compute(Some(Rc::new(move |bytes| {
        let cpu = Duration::from_nanos(bytes * CPU_NS_PER_BYTE);
        let waits = starved.contains(&now().as_secs());
        let waited = if waits { cpu * WAITED_FOR_CPU as u32 } else { Duration::ZERO };
        Computed { cpu, waited }
    })));
    let starved = story.starved.clone();
    time.on_host(Some(Rc::new(move || match starved.contains(&now().as_secs()) {
        true => Processors { others: 900, idle: 20 },
        false => Processors { others: 100, idle: 600 },
    })));
    let db = Db::open_with(Arc::new(files), "/db", options, &[]).unwrap();
    let waiting = db.clone();
    time.on_wait(Some(Rc::new(move |most: Duration| {
        let before = now();
        if !matches!(waiting.step(), Ok(true)) && now() == before {
            clock::advance(most.min(Duration::from_millis(1)).max(Duration::from_micros(10)));
        }
    })));
    let (mut timeline, mut history) = (Timeline::default(), History::new(600));
    let mut says = Vec::new();
    let (mut due, mut number) = (now(), 0_u64);
    let mut next_look = Duration::from_secs(1);
    while now() < Duration::from_secs(story.seconds) {
        work(&db, due.saturating_sub(now()));
        let (burst, burst_rate) = &story.burst;
        let rate = if burst.contains(&now().as_secs()) { *burst_rate } else { story.rate };
        due = (due + Duration::from_nanos(VALUE_BYTES as u64 * SECOND_NS / rate)).max(now());
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = (number >> 52).to_be_bytes();
        db.put(key, vec![number as u8; VALUE_BYTES]).unwrap();
        // The rest of a busy program: without it no time would pass.
        clock::advance(Duration::from_micros(10));
        if now() > next_look {
            next_look = now() + Duration::from_secs(1);
            db.extend_timeline(&mut timeline);
            says.extend(said(&timeline));
            history.take(&mut timeline);
            // The sample may be late there, as below.
            let second = now().as_secs();
            if ![story.starved.start, story.starved.end].contains(&second) {
                is_said(&db, story.starved.contains(&second));
            }
        }
    }
    db.extend_timeline(&mut timeline);
    says.extend(said(&timeline));
    let Range { start, end } = story.starved;
    let both = if start < end { vec![(start, true), (end, false)] } else { Vec::new() };
    // A step may take most of a second, and no sample is taken meanwhile.
    assert_eq!(says.len(), both.len(), "{says:?}");
    for ((second, short), (begins, expected)) in says.into_iter().zip(both) {
        assert_eq!(short, expected);
        assert!((begins..=begins + 1).contains(&second), "{second} for {begins}");
    }
    history.take(&mut timeline);
    time.on_wait(None);
    time.on_compute(None);
    time.on_host(None);
    let explained = history.explain(Duration::from_secs(600));
    drop(db);
    explained
}

/// Expects that the worst slow seconds are in the part of the story where something goes wrong, and
/// that this is named as their cause and that of all that begin there. Behind it the background
/// catches up.
fn expect(story: &Story, at: &Range<u64>, named: fn(Cause) -> bool) {
    let explained = explained(story);
    let worst = explained.episodes.first().unwrap_or_else(|| panic!("{explained}"));
    let overlaps = worst.first_second < at.end && worst.last_second >= at.start;
    assert!(overlaps, "{at:?}\n{explained}");
    assert!(named(worst.cause), "{:?}\n{explained}", worst.cause);
    for episode in explained.episodes.iter().filter(|it| at.contains(&it.first_second)) {
        assert!(named(episode.cause), "{:?}\n{explained}", episode.cause);
    }
}

#[test]
fn a_device_that_becomes_slow_is_named() {
    let at = 35..55;
    for (rate, slow) in [(MB, MB / 2), (4 * MB, 2 * MB)] {
        let story = Story { slow: (at.clone(), slow), ..Story::quiet(rate) };
        expect(&story, &at, |cause| cause == Cause::Device);
    }
}

#[test]
fn clients_that_write_more_than_the_device_bears_are_named() {
    let at = 35..55;
    let story = Story { burst: (at.clone(), 40 * MB), ..Story::quiet(2 * MB) };
    expect(&story, &at, |cause| matches!(cause, Cause::Overload(_)));
}

#[test]
fn processors_that_others_have_are_named() {
    let at = 35..55;
    for rate in [MB, 4 * MB] {
        let story = Story { starved: at.clone(), ..Story::quiet(rate) };
        expect(&story, &at, |cause| cause == Cause::Processor);
    }
}

#[test]
fn an_overload_from_the_beginning_is_named() {
    let story = Story { seconds: 30, ..Story::quiet(40 * MB) };
    expect(&story, &(0..30), |cause| matches!(cause, Cause::Overload(_)));
}
