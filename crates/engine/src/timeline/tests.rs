//! Tests of what the recorder keeps, and of what can be read from it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant as Clock;

use sateen_control::{ColumnFamilyId, Instant, IoClass, Note};
use sateen_store::base::waited::{self, Part};
use sateen_store::vfs::MemVfs;
use serde_json::Value;

use super::recorder::Ring;
use super::*;
use crate::{Db, Options, ReadOptions};

fn info(job: u64, class: IoClass) -> JobInfo {
    JobInfo {
        job: JobId(job),
        column_family: ColumnFamilyId(0),
        class,
        reason: None,
        level: 0,
        output_level: 0,
        input_bytes: 100,
    }
}

fn grant(at_ns: u64) -> Grant {
    Grant { at: Instant(at_ns), bytes: 64 }
}

fn moved(read_bytes: u64, written_bytes: u64) -> Moved {
    Moved { read_bytes, written_bytes, cpu_ns: 0 }
}

fn copy(recorder: &Recorder) -> Timeline {
    let mut timeline = Timeline::default();
    recorder.extend(&mut timeline);
    timeline
}

#[test]
fn a_ring_that_wraps_keeps_the_last_in_order_and_counts_the_lost() {
    let mut ring = Ring::new(5);
    let mut all = Vec::new();
    assert_eq!(ring.copy_since(0, &mut all), (0, 0));
    for number in 0..13 {
        ring.push(number);
    }
    assert_eq!(ring.copy_since(0, &mut all), (13, 8));
    assert_eq!(all, [8, 9, 10, 11, 12]);
    all.clear();
    assert_eq!(ring.copy_since(11, &mut all), (13, 0));
    assert_eq!(all, [11, 12]);
    assert_eq!(ring.copy_since(13, &mut all), (13, 0));
    assert_eq!(all, [11, 12]);
}

#[test]
fn entries_have_a_fixed_size() {
    // The memory of a full recorder: 16384 events, 16384 steps, 180 seconds of 24 operations.
    let bytes = 16384 * size_of::<Event>()
        + 16384 * size_of::<Step>()
        + 180 * 24 * size_of::<Option<SlowOperation>>();
    assert!(bytes < 4 << 20, "{bytes} bytes");
}

#[test]
fn concurrent_writers_lose_nothing_and_each_keeps_its_order() {
    let recorder = Recorder::new(Clock::now());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                for number in 0..500 {
                    let job = JobId(thread * 1000 + number);
                    recorder.note(Instant(number), &Note::Resumed { job });
                    let watch = recorder.watch();
                    recorder.end_step(watch, (job, IoClass::Flush), grant(0), moved(2, 3));
                }
            });
        }
        // A reader that keeps up sees each event once, whatever is written meanwhile.
        let mut timeline = Timeline::default();
        while timeline.events.len() < 2000 || timeline.steps.len() < 2000 {
            recorder.extend(&mut timeline);
        }
        assert_eq!((timeline.lost_events, timeline.lost_steps), (0, 0));
        let events = timeline.events.iter().map(|event| match event.kind {
            EventKind::Resumed { job } => job.0,
            other => panic!("{other:?}"),
        });
        let steps = timeline.steps.iter().map(|step| step.job.0);
        for numbers in [events.collect::<Vec<_>>(), steps.collect()] {
            for thread in 0..4 {
                let own = numbers.iter().copied().filter(|number| number / 1000 == thread);
                assert!(own.eq((0..500).map(|number| thread * 1000 + number)));
            }
        }
    });
}

#[test]
fn it_says_from_when_to_when_the_machine_is_short_of_processors() {
    let recorder = Recorder::new(Clock::now());
    let short = EventKind::Processors { short: true, others: 905, idle: 20 };
    let over = EventKind::Processors { short: false, others: 100, idle: 600 };
    recorder.told(Instant(10), short);
    recorder.told(Instant(20), over);
    let timeline = copy(&recorder);
    let [json, trace] = [timeline.to_json(), timeline.to_chrome_trace()];
    for text in [
        r#"{"at_ns":10,"what":"short of processor","others":0.905,"idle":0.02}"#,
        r#"{"at_ns":20,"what":"no longer short of processor","others":0.1,"idle":0.6}"#,
    ] {
        assert!(json.contains(text), "{json}");
    }
    assert!(trace.contains(r#""name":"short of processor""#), "{trace}");
    let line = |kind| super::lines::line(&Event { at_ns: 10, kind }, &|_| String::new());
    let expected = "short of processor: others take 90 % of the processors, 2 % is idle";
    assert_eq!(line(short), Some((super::lines::Weight::Warn, expected.into())));
    let expected = "no longer short of processor: others take 10 % of the processors, 60 % is idle";
    assert_eq!(line(over), Some((super::lines::Weight::Info, expected.into())));
}

#[test]
fn a_job_is_known_from_its_end_alone_with_its_pauses() {
    let recorder = Recorder::new(Clock::now());
    recorder.job_started(Instant(10), info(1, IoClass::Deep(2)));
    recorder.job_started(Instant(20), info(2, IoClass::L0));
    let preempted = PauseReason::Preempted { by: JobId(2) };
    recorder.note(Instant(20), &Note::Paused { job: JobId(1), reason: preempted });
    recorder.end_step(recorder.watch(), (JobId(2), IoClass::L0), grant(0), moved(30, 40));
    recorder.end_step(recorder.watch(), (JobId(2), IoClass::L0), grant(0), moved(1, 2));
    recorder.job_finished(Instant(50), JobId(2), JobResult::Done);
    recorder.note(Instant(60), &Note::Resumed { job: JobId(1) });
    recorder.note(Instant(70), &Note::Paused { job: JobId(1), reason: PauseReason::Peak });
    recorder.job_finished(Instant(90), JobId(1), JobResult::Cancelled);
    // A job that the recorder does not know.
    recorder.job_finished(Instant(95), JobId(7), JobResult::Done);
    recorder.job_started(Instant(100), info(3, IoClass::Flush));

    let timeline = copy(&recorder);
    let jobs = timeline.jobs();
    let spans: Vec<_> =
        jobs.iter().map(|job| (job.info.job.0, job.start_ns, job.end_ns, job.result)).collect();
    let (done, cancelled) = (Some(JobResult::Done), Some(JobResult::Cancelled));
    assert_eq!(spans[..2], [(1, 10, 90, cancelled), (2, 20, 50, done)]);
    assert_eq!(spans[2], (3, 100, timeline.until_ns, None));
    assert_eq!((jobs[1].read_bytes, jobs[1].written_bytes), (31, 42));
    assert_eq!(
        jobs[0].pauses,
        [
            PauseSpan { start_ns: 20, end_ns: 60, reason: preempted },
            PauseSpan { start_ns: 70, end_ns: 90, reason: PauseReason::Peak },
        ]
    );
}

#[test]
fn each_step_knows_how_long_its_own_grant_has_waited() {
    let recorder = Recorder::new(Clock::now());
    let (first, second) = (grant(0), grant(u64::MAX));
    // Two job numbers that share their lowest six bits.
    let (one, two) = ((JobId(1), IoClass::Deep(2)), (JobId(65), IoClass::L0));
    let watch = recorder.watch();
    recorder.end_step(recorder.watch(), two, second, moved(0, 0));
    recorder.end_step(watch, one, first, moved(0, 0));
    let steps = copy(&recorder).steps;
    assert_eq!(steps.iter().map(|step| step.job.0).collect::<Vec<_>>(), [65, 1]);
    assert_eq!(steps[0].waited_ns, 0);
    assert!(steps[1].waited_ns > 0 && steps[1].waited_ns == steps[1].start_ns);
}

#[test]
fn waits_that_follow_each_other_are_one_stall() {
    let recorder = Recorder::new(Clock::now());
    let (level0, memory) = (StallCause::Level0Runs, StallCause::MemtableLimit);
    recorder.stall_began(level0);
    recorder.stall_began(level0);
    recorder.stall_began(memory);
    recorder.stall_ended(level0, 5);
    let timeline = copy(&recorder);
    let waits = |cause| {
        let stalls = timeline.stalls();
        stalls.iter().filter(|s| s.cause == cause).map(|s| (s.waits, s.waited_ns)).collect()
    };
    let found: [Vec<_>; 2] = [level0, memory].map(waits);
    assert_eq!(found, [vec![(1, 5)], vec![(0, 0)]], "those that still wait are seen too");
    recorder.stall_ended(level0, 7);
    recorder.stall_ended(memory, 1);
    let stalls = copy(&recorder).stalls();
    assert_eq!(stalls.iter().map(|stall| stall.waits).sum::<u32>(), 3);
    assert!(stalls.iter().all(|stall| stall.start_ns <= stall.end_ns));
}

#[test]
fn the_parts_of_a_slow_operation_add_up_to_no_more_than_the_whole() {
    let epoch = Clock::now();
    let recorder = Recorder::new(epoch);
    waited::begin(true);
    let started = Clock::now();
    let queue = waited::wait(Part::Queue);
    std::thread::yield_now();
    drop(queue);
    waited::inserting();
    waited::cache_missed();
    assert!(waited::end());
    let total_ns = waited::nanos_between(started, Clock::now());
    recorder.operation(OperationKind::Write, started, total_ns, true);

    waited::begin(true);
    drop(waited::wait(Part::Sync));
    assert!(waited::end());
    recorder.waited(OperationKind::Read);

    let slow = copy(&recorder).slow;
    assert_eq!(slow.len(), 2);
    for operation in &slow {
        let sum: u64 = operation.parts().iter().map(|(_, ns)| ns).sum();
        assert_eq!(sum, operation.total_ns, "{operation:?}");
    }
    let write = slow.iter().find(|slow| slow.kind == OperationKind::Write).unwrap();
    assert!(write.queue_ns > 0 && write.memtable_ns > 0 && write.cache_misses == 1, "{write:?}");
    let read = slow.iter().find(|slow| slow.kind == OperationKind::Read).unwrap();
    assert!(read.sync_ns > 0 && read.queue_ns == 0, "{read:?}");
}

#[test]
fn a_slow_operation_names_the_work_that_overlapped_it() {
    let step = |job: u64, start_ns, duration_ns| Step {
        start_ns,
        duration_ns,
        kind: StepKind::Step,
        worker: Worker::Pool(0),
        job: JobId(job),
        class: IoClass::Deep(3),
        granted_bytes: 1,
        waited_ns: 0,
        read_bytes: 10,
        written_bytes: 10,
        punched_bytes: 0,
        unlinked_bytes: 0,
        device_ns: 0,
        sync_ns: 1,
        cpu_ns: 0,
        syncs: 1,
    };
    let recorder = Recorder::new(Clock::now());
    recorder.job_started(Instant(0), info(1, IoClass::Flush));
    let mut timeline = copy(&recorder);
    timeline.steps =
        vec![step(1, 0, 100), step(2, 50, 250), step(1, 150, 20), step(1, 200, 50), step(1, 9, 1)];
    let mut operation = slow(100, 100);
    let found = timeline.overlaps(&operation);
    let seen: Vec<_> = found.iter().map(|o| (o.label.as_str(), o.job.0, o.overlap_ns)).collect();
    assert_eq!(seen, [("deep3", 2, 100), ("flush", 1, 20)]);
    assert_eq!(found[1].bytes, 20);
    operation.start_ns = 1000;
    assert!(timeline.overlaps(&operation).is_empty());
}

fn slow(start_ns: u64, total_ns: u64) -> SlowOperation {
    SlowOperation {
        kind: OperationKind::Read,
        thread: 1,
        start_ns,
        total_ns,
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
    }
}

/// Returns a database whose keys were all written and flushed four times, and compacted.
fn compacted(options: Options) -> Db {
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    for round in 0..4 {
        for number in 0..500_u32 {
            db.put(number.to_be_bytes(), [round; 1000]).unwrap();
        }
        db.flush().unwrap();
    }
    let family = db.default_column_family();
    family.compact_range(None, None, &crate::CompactRangeOptions::default()).unwrap();
    db
}

/// Returns a database that was flushed, compacted and read, and its timeline.
fn worked() -> (Db, Timeline) {
    let mut options = Options::default();
    for (name, value) in [("memtable_bytes", "262144"), ("wal", "buffered")] {
        options.set(name, value).unwrap();
    }
    let db = compacted(options);
    // Enough operations that some are drawn for timing.
    for number in 0..500_u32 {
        assert!(db.get(number.to_be_bytes()).unwrap().is_some());
    }
    let mut iter = db.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    while iter.valid() {
        iter.next();
    }
    drop(iter);
    db.wait_idle().unwrap();
    let timeline = db.timeline();
    (db, timeline)
}

#[test]
fn a_database_that_works_leaves_its_jobs_steps_and_slowest_operations() {
    let (_db, timeline) = worked();
    let jobs = timeline.jobs();
    assert!(jobs.iter().any(|job| job.info.is_flush()));
    assert!(jobs.iter().any(|job| !job.info.is_flush() && job.info.reason.is_some()));
    for job in jobs.iter().filter(|job| job.result.is_some()) {
        let steps = || timeline.steps.iter().filter(|step| step.job == job.info.job);
        let inside = |step: &Step| step.start_ns >= job.start_ns && step.end_ns() <= job.end_ns;
        assert!(steps().all(inside), "{job:?}");
        assert_eq!(steps().map(|step| step.written_bytes).sum::<u64>(), job.written_bytes);
        assert_eq!(steps().filter(|step| step.kind == StepKind::Install).count(), 1, "{job:?}");
    }
    let sealed = timeline.events.iter().filter(|e| matches!(e.kind, EventKind::Sealed { .. }));
    assert!(sealed.count() >= 4);
    for kind in OperationKind::ALL {
        let seconds: Vec<u64> = timeline
            .slow
            .iter()
            .filter(|operation| operation.kind == kind)
            .map(|operation| operation.end_ns() / 1_000_000_000)
            .collect();
        assert!(!seconds.is_empty(), "{kind:?}");
        let distinct: BTreeSet<_> = seconds.iter().collect();
        assert!(seconds.len() <= distinct.len() * super::slow::KEPT);
    }
    for operation in &timeline.slow {
        let sum: u64 = operation.parts().iter().map(|(_, ns)| ns).sum();
        assert_eq!(sum, operation.total_ns, "{operation:?}");
    }
    let missed = |o: &&SlowOperation| o.cache_miss_ns > 0 && o.device_reads > 0;
    assert!(timeline.slow.iter().filter(missed).any(|o| o.kind == OperationKind::Read));
}

#[test]
fn giving_dead_tables_back_has_steps_of_its_own_with_their_bytes() {
    let options = Options { background_threads: 0, ..Options::default() };
    let db = compacted(options);
    db.wait_idle().unwrap();
    let mut timeline = db.timeline();
    let reclaims: Vec<_> =
        timeline.steps.iter().filter(|step| step.kind == StepKind::Reclaim).copied().collect();
    assert!(reclaims.iter().all(|step| step.class == IoClass::Reclaim));
    let told = reclaims.iter().map(|step| step.punched_bytes + step.unlinked_bytes).sum::<u64>();
    let (punched, unlinked) = db.core().tree.reclaimer.counters.given_back();
    assert_eq!(told, punched + unlinked);
    // Three of the four generations.
    assert!(unlinked > 3 * 400 * 1000, "{unlinked}");

    let last = reclaims.last().unwrap();
    timeline.steps.retain(|step| step == last);
    let operation = slow(last.start_ns, last.duration_ns);
    let found = timeline.overlaps(&operation);
    assert_eq!((found[0].label.as_str(), found[0].kind), ("reclaim", StepKind::Reclaim));
    assert_eq!(found[0].bytes, last.punched_bytes + last.unlinked_bytes);
    timeline.slow = vec![operation];
    let value: Value = serde_json::from_str(&timeline.to_json()).unwrap();
    assert_eq!(value["steps"][0]["class"], "reclaim");
    assert_eq!(value["steps"][0]["unlinked_bytes"], last.unlinked_bytes);
    assert_eq!(value["slow_operations"][0]["overlapped_by"][0]["what"], "reclaim");
}

#[test]
fn a_timeline_brought_up_to_date_has_everything_once() {
    let (db, mut timeline) = worked();
    let before = timeline.clone();
    for number in 0..500_u32 {
        db.put(number.to_be_bytes(), [9; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.extend_timeline(&mut timeline);
    assert!(timeline.events.len() > before.events.len());
    assert_eq!(timeline.events[..before.events.len()], before.events);
    assert_eq!(timeline.steps[..before.steps.len()], before.steps);
    let jobs: Vec<_> = timeline.jobs().iter().map(|job| job.info.job).collect();
    let distinct: BTreeSet<_> = jobs.iter().collect();
    assert_eq!(distinct.len(), jobs.len());
    let slow: BTreeSet<_> =
        timeline.slow.iter().map(|o| (o.start_ns, o.total_ns, o.thread, o.kind)).collect();
    assert_eq!(slow.len(), timeline.slow.len());
    timeline.forget_before(timeline.until_ns + 1);
    assert!(timeline.steps.is_empty() && timeline.jobs().is_empty());
}

/// Returns adjustments of both kinds of limits, with both kinds of causes.
fn adjusted() -> [EventKind; 2] {
    let slots = Limit::Slots(JobSlots { flushes: 2, compactions: 6 });
    let memtable = Limit::Memtable { cf: ColumnFamilyId(0), bytes: 128 << 20 };
    [(slots, Some(Overflow::Level0)), (memtable, None)]
        .map(|(limit, overflow)| EventKind::Adjusted(Adjustment { limit, overflow }))
}

#[test]
fn what_is_adjusted_is_told_with_its_cause() {
    let recorder = Recorder::new(Clock::now());
    for kind in adjusted() {
        recorder.told(Instant(6), kind);
    }
    let mut timeline = copy(&recorder);
    timeline.column_families.insert(ColumnFamilyId(0), "default".to_owned());
    let value: Value = serde_json::from_str(&timeline.to_json()).unwrap();
    let [slots, memtable] = [0, 1].map(|at| &value["events"][at]);
    assert_eq!((&slots["what"], &slots["cause"]), (&"adjusted".into(), &"level0".into()));
    assert_eq!((&slots["flushes"], &slots["compactions"]), (&2.into(), &6.into()));
    assert_eq!((&memtable["what"], &memtable["cause"]), (&"adjusted".into(), &"options".into()));
    assert_eq!(memtable["column_family"], "default");
    assert_eq!(memtable["memtable_bytes"], 128 << 20);
}

#[test]
fn the_json_can_be_read_and_holds_all() {
    let (_db, mut timeline) = worked();
    timeline.column_families.insert(ColumnFamilyId(0), "odd \"name\"\n\\".to_owned());
    let job = JobId(7);
    for kind in [EventKind::FinishEarly { job }, EventKind::Discarded { job }] {
        timeline.events.push(Event { at_ns: 1, kind });
    }
    let value: Value = serde_json::from_str(&timeline.to_json()).unwrap();
    let length = |name: &str| value[name].as_array().unwrap().len();
    assert_eq!(length("jobs"), timeline.jobs().len());
    assert_eq!(length("steps"), timeline.steps.len());
    assert_eq!(length("slow_operations"), timeline.slow.len());
    assert_eq!(value["jobs"][0]["column_family"], "odd \"name\"\n\\");
    let events = value["events"].as_array().unwrap().iter();
    let of_job = events.filter(|event| event["job"] == 7).map(|event| &event["what"]);
    assert_eq!(of_job.collect::<Vec<_>>(), ["finish early", "discarded"]);
    for operation in value["slow_operations"].as_array().unwrap() {
        assert!(operation["overlapped_by"].is_array());
        assert!(operation["total_ns"].as_u64().unwrap() >= operation["queue_ns"].as_u64().unwrap());
    }
}

/// Start, end and name.
type Slice = (u64, u64, String);

#[test]
fn the_trace_is_of_the_form_that_its_viewers_read() {
    let (_db, mut timeline) = worked();
    let recorder = Recorder::new(Clock::now());
    recorder.note(Instant(5), &Note::Bandwidth { client: 1, read: 2, write: 3 });
    recorder.told(Instant(6), EventKind::FinishEarly { job: JobId(1) });
    recorder.told(Instant(7), EventKind::Discarded { job: JobId(1) });
    adjusted().into_iter().for_each(|kind| recorder.told(Instant(8), kind));
    recorder.stall_began(StallCause::Level0Runs);
    recorder.stall_ended(StallCause::Level0Runs, 5);
    timeline.events.extend(copy(&recorder).events);
    timeline.open_stalls = copy(&recorder).open_stalls;
    let trace: Value = serde_json::from_str(&timeline.to_chrome_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let (mut named, mut marks) = (BTreeSet::new(), BTreeSet::new());
    let mut places: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
    let nanos = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    for event in events {
        let place = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        match event["ph"].as_str().unwrap() {
            "M" => {
                assert!(event["args"]["name"].is_string());
                let thread = event["name"] == "thread_name";
                assert!(named.insert((thread, place)), "{event}");
            }
            "X" => {
                let (from, length) = (nanos(&event["ts"]), nanos(&event["dur"]));
                let name = event["name"].as_str().unwrap().to_owned();
                places.entry(place).or_default().push((from, from + length, name));
            }
            "i" => {
                assert_eq!(event["s"], "p");
                marks.insert(event["name"].as_str().unwrap());
            }
            "C" => {
                let args = event["args"].as_object().unwrap();
                assert!(!args.is_empty() && args.values().all(Value::is_number), "{event}");
            }
            other => panic!("{other}"),
        }
    }
    let told = ["finish early", "discarded", "adjusted"];
    assert!(told.iter().all(|name| marks.contains(name)), "{marks:?}");
    let phases: BTreeSet<_> = events.iter().map(|event| event["ph"].as_str().unwrap()).collect();
    assert_eq!(phases, BTreeSet::from(["C", "M", "X", "i"]));
    for (place, mut slices) in places {
        assert!(named.contains(&(true, place)) && named.contains(&(false, (place.0, 0))));
        // Slices of a track lie beside each other or within each other.
        slices.sort_by_key(|slice| (slice.0, std::cmp::Reverse(slice.1)));
        let mut open: Vec<Slice> = Vec::new();
        for slice in slices {
            open.retain(|outer| outer.1 > slice.0);
            let cut = open.iter().find(|outer| outer.1 < slice.1);
            assert!(cut.is_none(), "{slice:?} sticks out of {cut:?}");
            open.push(slice);
        }
    }
}
