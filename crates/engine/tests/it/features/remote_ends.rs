//! How jobs of other processes end when nobody waits for them any more, and what they leave alone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use sateen::vfs::MemVfs;
use sateen::{
    CompactRangeOptions, Db, Error, OpenAndCompactOptions, Options, RemoteCompaction,
    RemoteCompactionEnd, WallClock,
};

use crate::features::remote::{
    OUTPUT, compact, compacted, elsewhere, keeping, open, outputs, served, write, write_until_away,
};
use crate::support::common::{Random, as_vfs, assert_sound, contents, tiny};

/// Seconds since 1970, long before now, and late enough for values to expire.
const START: u64 = 1_600_000_000;

/// Writes a few runs of level 0, which nothing compacts by itself.
fn fill(db: &Db) {
    for round in 0..3 {
        for number in 0..30 {
            db.put(format!("key{number:03}"), format!("{round}")).unwrap();
        }
        db.flush().unwrap();
    }
}

/// Options without compactions of the database's own.
fn still() -> Options {
    let mut options = tiny();
    options.column_family.disable_auto_compactions = true;
    options
}

/// The output directory is another database's, which has files of the same numbers.
#[test]
fn a_worker_leaves_files_of_others_alone() {
    let mem = MemVfs::new();
    let other = Db::open_with(as_vfs(&mem), OUTPUT, tiny(), &[]).unwrap();
    write(&other, &mut Random::new(2), 300, false);
    compact(&other);
    let before = contents(&other);
    let (sent, told) = elsewhere(&tiny(), as_vfs(&mem));
    let db = open(&mem, &sent);
    write(&db, &mut Random::new(2), 300, false);
    compact(&db);
    assert!(told.installed() > 0, "{:?}", told.reasons());
    assert_eq!(told.reasons(), Vec::<String>::new());
    assert_eq!(contents(&db), before);
    // A worker that fails removes only its own.
    let (sent, told, kept) = keeping(&still());
    db.close().unwrap();
    let db = open(&mem, &sent);
    fill(&db);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| compact(&db));
        while kept.lock().unwrap().is_empty() && !compacting.is_finished() {
            std::thread::yield_now();
        }
        let job = kept.lock().unwrap().remove(0);
        let cancelled = Some(Arc::new(AtomicBool::new(true)));
        let with = OpenAndCompactOptions { cancelled, ..OpenAndCompactOptions::default() };
        Db::open_and_compact_with(as_vfs(&mem), "/db", OUTPUT, job.input(), &with).unwrap_err();
        job.fail("it was cancelled");
        while !compacting.is_finished() {
            kept.lock().unwrap().drain(..).for_each(RemoteCompaction::decline);
            std::thread::yield_now();
        }
    });
    assert_eq!(told.installed(), 0);
    assert_sound(&db);
    db.close().unwrap();
    assert_sound(&other);
    other.close().unwrap();
    let other = Db::open_with(as_vfs(&mem), OUTPUT, tiny(), &[]).unwrap();
    assert_eq!(contents(&other), before);
    assert_sound(&other);
}

/// The worker's own clock is many years ahead of the database's.
#[test]
fn values_expire_by_the_clock_of_the_database() {
    let mem = MemVfs::new();
    let seconds = Arc::new(AtomicU64::new(START));
    let clock = seconds.clone();
    let mut options = still();
    options.column_family.ttl = Some(Duration::from_secs(100));
    options.wall_clock = WallClock::new(move || clock.load(Ordering::Relaxed));
    let (sent, told) = elsewhere(&options, as_vfs(&mem));
    let db = open(&mem, &sent);
    fill(&db);
    let before = contents(&db);
    compact(&db);
    assert!(told.installed() > 0, "{:?}", told.reasons());
    assert_eq!(contents(&db), before);
    seconds.store(START + 101, Ordering::Relaxed);
    db.put("key015", "later").unwrap();
    compact(&db);
    seconds.store(START, Ordering::Relaxed);
    assert_eq!(contents(&db).len(), 1, "the others were dropped");
}

#[test]
fn a_cancelled_request_does_not_wait_for_its_job() {
    for threads in [0, 1] {
        let mem = MemVfs::new();
        let (sent, told, kept) = keeping(&Options { background_threads: threads, ..still() });
        let db = open(&mem, &sent);
        fill(&db);
        let result = std::thread::scope(|scope| {
            let compacting =
                scope.spawn(|| db.compact_range(None, None, &CompactRangeOptions::default()));
            while kept.lock().unwrap().is_empty() && !compacting.is_finished() {
                std::thread::yield_now();
            }
            db.pause_manual_compactions();
            compacting.join().unwrap()
        });
        assert!(matches!(result, Err(Error::ManualCompactionPaused)), "{result:?}");
        while !told.cancelled.lock().unwrap().contains(&kept.lock().unwrap()[0].info().job) {
            if threads == 0 {
                db.step().unwrap();
            }
            std::thread::yield_now();
        }
        assert!(kept.lock().unwrap()[0].is_cancelled());
        assert_eq!(told.closed.lock().unwrap().len(), 0);
        db.close().unwrap();
        assert_eq!(told.closed.lock().unwrap().len(), 1);
    }
}

/// Background work ends while the step that sends the job runs.
#[test]
fn a_job_that_is_sent_at_the_end_of_background_work_is_cancelled() {
    let database: Arc<OnceLock<Db>> = Arc::default();
    let kept: Arc<Mutex<Vec<RemoteCompaction>>> = Arc::default();
    let (ends, keeps) = (database.clone(), kept.clone());
    let (sent, told) = served(&tiny(), move |job| {
        ends.get().unwrap().end_background_work(false).unwrap();
        keeps.lock().unwrap().push(job);
    });
    let db = database.get_or_init(|| open(&MemVfs::new(), &sent));
    for number in 0..400 {
        db.put(format!("key{:03}", number % 50), vec![b'x'; 60]).unwrap();
        if number % 40 == 39 {
            db.flush_with(&sateen::FlushOptions { wait: false }).unwrap();
        }
        db.step().unwrap();
        if !kept.lock().unwrap().is_empty() {
            break;
        }
    }
    let job = kept.lock().unwrap().pop().unwrap();
    assert!(job.is_cancelled());
    assert_eq!(*told.cancelled.lock().unwrap(), [job.info().job]);
    db.close().unwrap();
    assert_eq!(told.closed.lock().unwrap().len(), 1);
}

/// The answer is there at the close, and nobody has taken it.
#[test]
fn an_answer_that_comes_too_late_for_the_database_leaves_no_files() {
    let mem = MemVfs::new();
    let (sent, told, kept) = keeping(&tiny());
    let db = open(&mem, &sent);
    write_until_away(&db, &kept);
    let mut jobs = std::mem::take(&mut *kept.lock().unwrap());
    let job = jobs.pop().unwrap();
    let result = compacted(as_vfs(&mem), &job, &tiny()).unwrap();
    assert_eq!(outputs(&mem), 1);
    job.finish(result);
    let before = contents(&db);
    db.close().unwrap();
    assert_eq!(*told.ends.lock().unwrap(), [RemoteCompactionEnd::Discarded]);
    assert_eq!(told.cancelled.lock().unwrap().len(), jobs.len());
    assert_eq!(outputs(&mem), 0);
    assert_eq!(contents(&open(&mem, &tiny())), before);
}
