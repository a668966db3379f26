//! Compactions in other processes: what they make is as if the database had made it, and nothing
//! that a service does harms the database.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sateen::vfs::{CrashChoice, IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    CompactRangeOptions, CompactionService, Db, Error, OpenAndCompactOptions, Options, ReadOptions,
    RemoteCompaction, RemoteCompactionEnd, RemoteCompactionInfo, RemoteCompactions,
};

use crate::support::common::{
    Contents, Random, appending, as_vfs, assert_sound, contents, deciding, read_all, small, tiny,
};

pub(crate) const OUTPUT: &str = "/output";

/// What a service was told.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) ends: Mutex<Vec<RemoteCompactionEnd>>,
    pub(crate) cancelled: Mutex<Vec<u64>>,
    pub(crate) closed: Mutex<Vec<PathBuf>>,
}

impl Told {
    pub(crate) fn installed(&self) -> usize {
        let ends = self.ends.lock().unwrap();
        ends.iter().filter(|end| **end == RemoteCompactionEnd::Installed).count()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let ends = self.ends.lock().unwrap();
        let reason = |end: &RemoteCompactionEnd| match end {
            RemoteCompactionEnd::RunLocally(why) => Some(why.clone()),
            _ => None,
        };
        ends.iter().filter_map(reason).collect()
    }
}

struct Service<F> {
    act: F,
    told: Arc<Told>,
}

impl<F: Fn(RemoteCompaction) + Send + Sync> CompactionService for Service<F> {
    fn name(&self) -> &str {
        "test"
    }
    fn start(&self, job: RemoteCompaction) {
        (self.act)(job);
    }
    fn cancel(&self, job: &RemoteCompactionInfo) {
        self.told.cancelled.lock().unwrap().push(job.job);
    }
    fn closing(&self, database: &Path) {
        self.told.closed.lock().unwrap().push(database.to_owned());
    }
    fn ended(&self, _: &RemoteCompactionInfo, end: &RemoteCompactionEnd) {
        self.told.ends.lock().unwrap().push(end.clone());
    }
}

/// The options with a service that does `act` with each job.
pub(crate) fn served(
    options: &Options,
    act: impl Fn(RemoteCompaction) + Send + Sync + 'static,
) -> (Options, Arc<Told>) {
    let told = Arc::new(Told::default());
    let service = RemoteCompactions::new(Service { act, told: told.clone() });
    (Options { compaction_service: Some(service), ..options.clone() }, told)
}

/// What another process does with a job of the database in `/db`.
pub(crate) fn compacted(
    vfs: Arc<dyn Vfs>,
    job: &RemoteCompaction,
    options: &Options,
) -> Result<Vec<u8>, Error> {
    let objects = options.column_family.clone();
    let with = OpenAndCompactOptions { objects, ..OpenAndCompactOptions::default() };
    Db::open_and_compact_with(vfs, "/db", OUTPUT, job.input(), &with)
}

/// The options with a service that does each job at once.
pub(crate) fn elsewhere(options: &Options, vfs: Arc<dyn Vfs>) -> (Options, Arc<Told>) {
    let own = options.clone();
    served(options, move |job| match compacted(vfs.clone(), &job, &own) {
        Ok(result) => job.finish(result),
        Err(error) => job.fail(error.to_string()),
    })
}

pub(crate) fn open(mem: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(mem), "/db", options.clone(), &[]).unwrap()
}

/// Writes to few keys in all ways, and flushes now and then.
pub(crate) fn write(db: &Db, random: &mut Random, writes: u64, has_operator: bool) {
    for number in 0..writes {
        let key = format!("key{:03}", random.below(120));
        match random.below(20) {
            0..2 => db.delete(key).unwrap(),
            2..4 if has_operator => db.merge(key, format!("+{number}")).unwrap(),
            4 => db.delete_range(&key, format!("{key}~")).unwrap(),
            _ => db.put(key, vec![b'a' + (number % 26) as u8; 60]).unwrap(),
        }
        if number % 40 == 39 {
            db.flush().unwrap();
        }
        db.step().unwrap();
    }
}

pub(crate) fn compact(db: &Db) {
    db.flush().unwrap();
    let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
    let family = db.default_column_family();
    family.compact_range(None, None, &options).unwrap();
}

/// The files of another process.
pub(crate) fn made(mem: &MemVfs) -> Vec<PathBuf> {
    let names = |directory: &Path| {
        let names = mem.list(directory).unwrap();
        names.iter().map(|name| directory.join(name)).collect::<Vec<_>>()
    };
    names(Path::new(OUTPUT)).iter().flat_map(|directory| names(directory)).collect()
}

pub(crate) fn outputs(mem: &MemVfs) -> usize {
    mem.list(Path::new(OUTPUT)).map_or(0, |names| names.len())
}

#[test]
fn another_process_makes_what_the_database_would_make() {
    let mut all = vec![("tiny", tiny())];
    let mut one_a_file = tiny();
    one_a_file.column_family.compaction_files = false;
    all.push(("a file for each table", one_a_file));
    for profile in ["sateen", "rocksdb", "vlsm", "pebblesdb", "rocksdb-universal"] {
        all.push((profile, small(profile, 4 << 10)));
    }
    for (what, mut options) in all {
        options.column_family.merge_operator = Some(appending());
        let (mem, own) = (MemVfs::new(), MemVfs::new());
        let (sent, told) = elsewhere(&options, as_vfs(&mem));
        let [db, alone] = [open(&mem, &sent), open(&own, &options)];
        let mut shown: Vec<(sateen::Snapshot, Contents)> = Vec::new();
        for round in 0..3 {
            [&db, &alone].into_iter().for_each(|db| write(db, &mut Random::new(round), 300, true));
            shown.push((db.snapshot(), contents(&alone)));
            compact(&db);
            compact(&alone);
            assert_eq!(contents(&db), contents(&alone), "{what}, round {round}");
            assert_sound(&db);
        }
        for (snapshot, then) in shown {
            let at = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
            assert_eq!(read_all(&db.default_column_family(), &at), then, "{what}");
        }
        assert!(told.installed() > 0, "{what}: {:?}", told.reasons());
        assert_eq!(told.reasons(), Vec::<String>::new(), "{what}");
        assert_eq!(outputs(&mem), 0, "{what}: outputs are moved");
        let before = contents(&db);
        db.close().unwrap();
        let again = open(&mem, &options);
        assert_eq!(contents(&again), before, "{what}");
        assert_sound(&again);
    }
}

#[test]
fn filters_work_there_and_have_to_be_given() {
    let mem = MemVfs::new();
    let mut options = tiny();
    options.column_family.compaction_filter = Some(deciding());
    let (sent, told) = elsewhere(&options, as_vfs(&mem));
    let db = open(&mem, &sent);
    write(&db, &mut Random::new(7), 300, false);
    compact(&db);
    assert!(told.installed() > 0, "{:?}", told.reasons());
    let filtered = contents(&db);
    db.close().unwrap();
    // Without the filter there, the database compacts by itself.
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let (sent, told) = served(&options, move |job| {
        let error = compacted(vfs.clone(), &job, &tiny()).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        job.fail(error.to_string());
    });
    let db = open(&mem, &sent);
    write(&db, &mut Random::new(7), 300, false);
    compact(&db);
    assert_eq!(contents(&db), filtered);
    let reasons = told.reasons();
    assert!(reasons[0].contains("compaction_filter decide"), "{reasons:?}");
    assert_sound(&db);
}

/// Runs a database whose service does `act` with the result of each job, and returns why the jobs
/// ran here, and how many directories of jobs are left. The database is as it should be.
fn harmed(
    act: impl Fn(&MemVfs, Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
) -> (Vec<String>, usize) {
    let (mem, own) = (MemVfs::new(), MemVfs::new());
    let (there, options) = (mem.clone(), tiny());
    let (sent, told) = served(&tiny(), move |job| {
        let result = compacted(as_vfs(&there), &job, &options).unwrap();
        job.finish(act(&there, result));
    });
    let [db, alone] = [open(&mem, &sent), open(&own, &tiny())];
    for db in [&db, &alone] {
        write(db, &mut Random::new(3), 300, false);
        compact(db);
    }
    assert_eq!(contents(&db), contents(&alone));
    assert_sound(&db);
    assert_eq!(told.installed(), 0);
    db.close().unwrap();
    let again = open(&mem, &tiny());
    assert_eq!(contents(&again), contents(&alone));
    assert_sound(&again);
    (told.reasons(), outputs(&mem))
}

#[test]
fn wrong_results_are_refused() {
    let last: Mutex<Vec<u8>> = Mutex::default();
    type Act = Box<dyn Fn(&MemVfs, Vec<u8>) -> Vec<u8> + Send + Sync>;
    let changed = |path: &Path, mem: &MemVfs, at: u64| {
        let file = mem.open(path, OpenOptions::WRITE).unwrap();
        let length = file.len().unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, at.min(length - 1), IoClass::Client).unwrap();
        file.write_at(&[byte[0] ^ 0x10], at.min(length - 1), IoClass::Client).unwrap();
    };
    let all: Vec<(&str, &str, Act)> = vec![
        ("nothing", "another version", Box::new(|_, _| Vec::new())),
        ("noise", "another version", Box::new(|_, _| vec![0x55; 1000])),
        (
            "a flipped bit",
            "checksum",
            Box::new(|_, mut result| {
                let middle = result.len() / 2;
                result[middle] ^= 1;
                result
            }),
        ),
        (
            "cut",
            "checksum",
            Box::new(|_, mut result| {
                result.pop();
                result
            }),
        ),
        (
            "of another job",
            "another job",
            Box::new(move |_, result| {
                let before = std::mem::replace(&mut *last.lock().unwrap(), result.clone());
                // The first one is of no use either.
                if before.is_empty() { Vec::new() } else { before }
            }),
        ),
        (
            "no files",
            "rename",
            Box::new(|mem, result| {
                let names = made(mem);
                names.iter().for_each(|name| mem.remove(name).unwrap());
                result
            }),
        ),
        (
            "damaged files",
            "",
            Box::new(move |mem, result| {
                let names = made(mem);
                names.iter().for_each(|name| changed(name, mem, 4100));
                result
            }),
        ),
        (
            "damaged at the end",
            "",
            Box::new(move |mem, result| {
                let names = made(mem);
                names.iter().for_each(|name| changed(name, mem, u64::MAX));
                result
            }),
        ),
        (
            "short files",
            "",
            Box::new(|mem, result| {
                let names = made(mem);
                for name in names {
                    mem.open(&name, OpenOptions::WRITE).unwrap().truncate(5000).unwrap();
                }
                result
            }),
        ),
    ];
    for (what, reason, act) in all {
        let (reasons, left) = harmed(act);
        assert!(!reasons.is_empty(), "{what}: jobs ran here");
        let last = reasons.last().unwrap();
        assert!(last.contains(reason), "{what}: {reasons:?}");
        // A result that cannot be read does not tell where the files are.
        assert_eq!(left == 0, ["", "rename"].contains(&reason), "{what}: {left} left");
    }
}

#[test]
fn a_service_may_decline_fail_or_give_up() {
    type Act = fn(RemoteCompaction);
    let all: [(&str, Act); 3] = [
        ("the service declined", |job| job.decline()),
        ("no worker is free", |job| job.fail("no worker is free")),
        ("the service gave the job up", drop),
    ];
    for (reason, act) in all {
        let (sent, told) = served(&tiny(), act);
        let db = open(&MemVfs::new(), &sent);
        write(&db, &mut Random::new(5), 200, false);
        compact(&db);
        assert_sound(&db);
        let reasons = told.reasons();
        assert!(!reasons.is_empty());
        assert!(reasons.iter().all(|why| why.contains(reason)), "{reasons:?}");
    }
}

/// The options with a service that keeps its jobs.
pub(crate) fn keeping(
    options: &Options,
) -> (Options, Arc<Told>, Arc<Mutex<Vec<RemoteCompaction>>>) {
    let kept: Arc<Mutex<Vec<RemoteCompaction>>> = Arc::default();
    let keeps = kept.clone();
    let (sent, told) = served(options, move |job| keeps.lock().unwrap().push(job));
    (sent, told, kept)
}

/// Writes until a job is away, and steps until there is nothing else to do.
pub(crate) fn write_until_away(db: &Db, kept: &Mutex<Vec<RemoteCompaction>>) {
    for number in 0..400 {
        db.put(format!("key{:03}", number % 50), vec![b'x'; 60]).unwrap();
        if number % 40 == 39 {
            db.flush_with(&sateen::FlushOptions { wait: false }).unwrap();
        }
        if !kept.lock().unwrap().is_empty() {
            break;
        }
        db.step().unwrap();
    }
    step_until_away(db, kept);
}

/// Steps until a job is away and there is nothing else to do.
fn step_until_away(db: &Db, kept: &Mutex<Vec<RemoteCompaction>>) {
    for _ in 0..10_000 {
        if !db.step().unwrap() && !kept.lock().unwrap().is_empty() {
            return;
        }
    }
    panic!("no job was sent");
}

#[test]
fn a_job_without_an_answer_ends_with_the_database_or_its_column_family() {
    let mem = MemVfs::new();
    let (sent, told, kept) = keeping(&tiny());
    let db = open(&mem, &sent);
    let other = db.create_column_family("other", tiny().column_family).unwrap();
    for number in 0..400 {
        other.put(format!("key{:03}", number % 50), vec![b'x'; 60]).unwrap();
        if number % 40 == 39 {
            other.flush().unwrap();
        }
        if !kept.lock().unwrap().is_empty() {
            break;
        }
        db.step().unwrap();
    }
    step_until_away(&db, &kept);
    let first = kept.lock().unwrap()[0].info().clone();
    assert_eq!(first.column_family, "other");
    db.drop_column_family(&other).unwrap();
    while db.step().unwrap() {}
    assert_eq!(*told.cancelled.lock().unwrap(), [first.job]);
    assert!(kept.lock().unwrap().pop().unwrap().is_cancelled());
    // A job of the other one is away at the close.
    write_until_away(&db, &kept);
    let before = contents(&db);
    db.close().unwrap();
    let job = kept.lock().unwrap().pop().unwrap();
    assert!(job.is_cancelled());
    assert_eq!(*told.closed.lock().unwrap(), [PathBuf::from("/db")]);
    // An answer changes nothing any more.
    let late = compacted(as_vfs(&mem), &job, &tiny());
    job.finish(late.unwrap());
    assert_eq!(told.installed(), 0);
    let again = open(&mem, &tiny());
    assert_eq!(contents(&again), before);
    assert_sound(&again);
}

/// A compaction may take long. It keeps its inputs, and no tables that others remove meanwhile.
#[test]
fn a_job_that_is_away_keeps_no_other_tables() {
    let mut options = tiny();
    options.column_family.compaction_files = false;
    let mem = MemVfs::new();
    let db = open(&mem, &options);
    for number in 0..50 {
        db.put(format!("m{number:03}"), vec![b'x'; 60]).unwrap();
    }
    compact(&db);
    db.close().unwrap();
    let (sent, _told, kept) = keeping(&options);
    let db = open(&mem, &sent);
    write_until_away(&db, &kept);
    db.delete_files_in_range(Some(b"m"), Some(b"n")).unwrap();
    while db.step().unwrap() {}
    assert_eq!(kept.lock().unwrap().len(), 1);
    assert_eq!(db.get("m000").unwrap(), None, "its table was removed");
    assert_eq!(db.metrics().obsolete_bytes, 0);
}

#[test]
fn threads_are_not_kept_by_a_job_that_is_away() {
    let mem = MemVfs::new();
    let (sent, told, kept) = keeping(&Options { background_threads: 1, ..tiny() });
    let db = open(&mem, &sent);
    // The only thread must go on to flush.
    for number in 0..300 {
        db.put(format!("key{:03}", number % 50), vec![b'x'; 60]).unwrap();
        if number % 40 == 39 {
            db.flush().unwrap();
        }
        if number >= 100 && !kept.lock().unwrap().is_empty() {
            break;
        }
    }
    assert!(!kept.lock().unwrap().is_empty());
    db.put("after", "1").unwrap();
    db.flush().unwrap();
    // The answers arrive after all that, from another thread.
    let (there, answering) = (mem.clone(), kept.clone());
    std::thread::scope(|scope| {
        let compacting =
            scope.spawn(|| db.compact_range(None, None, &CompactRangeOptions::default()));
        while !compacting.is_finished() {
            let jobs = std::mem::take(&mut *answering.lock().unwrap());
            for job in jobs {
                let result = compacted(as_vfs(&there), &job, &tiny()).unwrap();
                job.finish(result);
            }
            std::thread::yield_now();
        }
        compacting.join().unwrap().unwrap();
    });
    assert!(told.installed() > 0, "{:?}", told.reasons());
    assert_eq!(told.reasons(), Vec::<String>::new());
    assert_sound(&db);
    // Nobody answers any more, and the close does not wait.
    for number in 0..300 {
        db.put(format!("key{:03}", number % 50), vec![b'y'; 60]).unwrap();
        if number % 40 == 39 {
            db.flush().unwrap();
        }
        if !kept.lock().unwrap().is_empty() {
            break;
        }
    }
    db.close().unwrap();
}

#[test]
fn what_cannot_be_done_there_is_refused() {
    let mem = MemVfs::new();
    let (sent, _, kept) = keeping(&tiny());
    let db = open(&mem, &sent);
    write_until_away(&db, &kept);
    let job = kept.lock().unwrap().pop().unwrap();
    let refused = |output: &str, input: &[u8], with: &OpenAndCompactOptions| {
        let made = Db::open_and_compact_with(as_vfs(&mem), "/db", output, input, with);
        made.expect_err("it is refused").to_string()
    };
    let with = OpenAndCompactOptions::default();
    for at in 0..job.input().len() {
        let mut input = job.input().to_vec();
        input[at] ^= 1;
        refused(OUTPUT, &input, &with);
        refused(OUTPUT, &job.input()[..at], &with);
    }
    assert!(refused("/db", job.input(), &with).contains("/db has the database's tables"));
    let unknown = OpenAndCompactOptions {
        options: vec![("level0_tricker".into(), "3".into())],
        ..OpenAndCompactOptions::default()
    };
    assert!(refused(OUTPUT, job.input(), &unknown).contains("level0_trigger"));
    let cancelled = Some(Arc::new(std::sync::atomic::AtomicBool::new(true)));
    let cancelled = OpenAndCompactOptions { cancelled, ..OpenAndCompactOptions::default() };
    let ended = Db::open_and_compact_with(as_vfs(&mem), "/db", OUTPUT, job.input(), &cancelled);
    assert!(matches!(ended, Err(Error::ManualCompactionPaused)));
    assert_eq!(outputs(&mem), 0, "nothing is left after a failure");
    // What is there may be another worker's.
    let directory = Path::new(OUTPUT).join(format!("compaction-{}", job.info().job));
    mem.create_dir_all(&directory).unwrap();
    mem.open(&directory.join("000001.sat"), OpenOptions::CREATE).unwrap();
    assert!(refused(OUTPUT, job.input(), &with).contains("exists"));
    assert_eq!(made(&mem), [directory.join("000001.sat")]);
    job.decline();
    db.close().unwrap();
}

/// A power loss at any operation leaves a database that has everything, and no files of others.
#[test]
fn a_crash_before_or_after_the_take_over_loses_nothing() {
    let mem = MemVfs::new();
    let (sent, told) = elsewhere(&tiny(), as_vfs(&mem));
    let db = open(&mem, &sent);
    write(&db, &mut Random::new(11), 160, false);
    db.flush().unwrap();
    while db.step().unwrap() {}
    let before = contents(&db);
    let done = told.installed();
    let recording = mem.record();
    compact(&db);
    while db.step().unwrap() {}
    assert!(told.installed() > done, "{:?}", told.reasons());
    assert_eq!(contents(&db), before);
    for at in 0..=recording.len() {
        for choice in recording.choices_at(at, 2) {
            let image = recording.image_at(at, choice);
            let what = format!("operation {at}, {choice:?}");
            let again = Db::open_with(as_vfs(&image), "/db", tiny(), &[])
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(contents(&again), before, "{what}");
            assert_sound(&again);
            again.close().unwrap();
        }
    }
    let image = mem.crash_image(CrashChoice::Everything);
    drop(db);
    assert_eq!(contents(&open(&image, &tiny())), before);
}
