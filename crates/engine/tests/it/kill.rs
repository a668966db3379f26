//! Killed processes: a child writes to a real directory while flushes and compactions run, and is
//! killed with SIGKILL at a random moment. Whatever it was told is written is there afterwards,
//! batches are whole, and of each writer exactly a prefix of its commits is left.
//!
//! `SATEEN_KILL_CYCLES` lengthens it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sateen::{Db, Options, ReadOptions, WalMode, WriteBatch, WriteOptions};

use crate::common::{Contents, Random, assert_sound, read_all};

const OTHER: &str = "other";
const DIRECTORY: &str = "SATEEN_KILL_DIRECTORY";
const CYCLE: &str = "SATEEN_KILL_CYCLE";
const WRITERS: usize = 2;
/// The child ends by itself if nobody kills it.
const CHILD_LIFE: Duration = Duration::from_secs(60);

fn options(cycle: u64) -> Options {
    let wal = match cycle % 3 {
        0 => WalMode::Buffered,
        1 => WalMode::SyncEachWrite,
        _ => WalMode::SyncInterval(Duration::from_millis(5)),
    };
    let mut options = Options {
        wal,
        background_threads: 2,
        create_missing_column_families: true,
        manifest_bytes_max: 16 << 10,
        slice_bytes_max: 16 << 10,
        ..Options::default()
    };
    let family = &mut options.column_family;
    family.memtable_bytes = 64 << 10;
    family.memtables_max = 3;
    family.level0_trigger = 2;
    family.level_base_bytes = 128 << 10;
    family.level_multiplier = 4.0;
    family.table_bytes = 32 << 10;
    options
}

/// One entry of a commit: the family, the key, and the value unless it is a deletion.
type Entry = (usize, Vec<u8>, Option<Vec<u8>>);

/// Commit `number` of a writer is the same in every process.
fn commit(writer: usize, number: u64) -> Vec<Entry> {
    let mut random = Random::new(number * WRITERS as u64 + writer as u64);
    let mut entries = Vec::new();
    for _ in 0..=random.below(4) {
        let key = format!("w{writer}key{:04}", random.below(900)).into_bytes();
        let fill = vec![b'a' + (random.below(26) as u8); random.below(300) as usize];
        let value = (!random.one_in(5)).then_some(fill);
        entries.push((usize::from(random.one_in(3)), key, value));
    }
    for family in 0..2 {
        entries.push((family, mark(writer), Some(number.to_string().into_bytes())));
    }
    entries
}

fn mark(writer: usize) -> Vec<u8> {
    format!("w{writer}~commit").into_bytes()
}

fn mark_in(contents: &Contents, writer: usize) -> u64 {
    let value = contents.get(&mark(writer));
    value.map_or(0, |text| String::from_utf8(text.clone()).unwrap().parse().unwrap())
}

/// What the killed process runs; as a test of its own it does nothing.
#[test]
fn child_that_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let cycle = std::env::var(CYCLE).unwrap().parse().unwrap();
    let options = options(cycle);
    let family = options.column_family.clone();
    let vfs = std::sync::Arc::new(sateen::vfs::PosixVfs::new());
    let db = Db::open_with(vfs, &directory, options, &[(OTHER, family)]).unwrap();
    let end = Instant::now() + CHILD_LIFE;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let db = &db;
            scope.spawn(move || {
                let other = db.column_family(OTHER).unwrap();
                let found = db.get(mark(writer)).unwrap();
                let mut number: u64 =
                    found.map_or(0, |text| String::from_utf8(text).unwrap().parse().unwrap());
                while Instant::now() < end {
                    number += 1;
                    let mut batch = WriteBatch::new();
                    for (family, key, value) in commit(writer, number) {
                        match (value, family) {
                            (Some(value), 0) => batch.put(&key, value).unwrap(),
                            (Some(value), _) => batch.put_cf(&other, &key, value).unwrap(),
                            (None, 0) => batch.delete(&key).unwrap(),
                            (None, _) => batch.delete_cf(&other, &key).unwrap(),
                        }
                    }
                    let sync = number.is_multiple_of(64);
                    db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() }).unwrap();
                    // One write call a line: the pipe keeps it when the process is gone.
                    let line = format!("\nACK {writer} {number}\n");
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs a child until it is killed; returns each writer's last acknowledged commit.
fn run_and_kill(directory: &Path, cycle: u64, random: &mut Random) -> BTreeMap<usize, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_that_is_killed", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(CYCLE, cycle.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut acknowledged = BTreeMap::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The moment is random in time, not in acknowledgements: it may be in any call.
    let after = Duration::from_millis(100 + random.below(1100));
    let mut killer = None;
    while let Some(Ok(line)) = lines.next() {
        if let Some(text) = line.strip_prefix("ACK ") {
            let (writer, number) = text.split_once(' ').unwrap();
            acknowledged.insert(writer.parse().unwrap(), number.parse().unwrap());
            if killer.is_none() {
                let id = rustix::process::Pid::from_child(&child);
                killer = Some(std::thread::spawn(move || {
                    std::thread::sleep(after);
                    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
                }));
            }
        }
    }
    let status = child.wait().unwrap();
    killer.expect("the child acknowledged something").join().unwrap();
    assert_eq!(status.code(), None, "the child ended by itself: {status}");
    acknowledged
}

/// What is there is a prefix of each writer's commits that holds what was acknowledged.
fn examine(
    directory: &Path,
    cycle: u64,
    acknowledged: &BTreeMap<usize, u64>,
    states: &mut [(u64, [Contents; 2])],
) {
    // Every other time the next child finds the directory as the killed one left it.
    let db = if cycle.is_multiple_of(2) {
        Db::open(directory, options(cycle)).unwrap()
    } else {
        Db::open_read_only(directory, options(cycle)).unwrap()
    };
    let families = [db.default_column_family(), db.column_family(OTHER).unwrap()];
    let found = families.map(|family| read_all(&db, &family, &ReadOptions::default()));
    let mut expected: [Contents; 2] = Default::default();
    for (writer, (number, state)) in states.iter_mut().enumerate() {
        let told = acknowledged.get(&writer).copied().unwrap_or(*number);
        let marks = found.each_ref().map(|found| mark_in(found, writer));
        assert_eq!(marks[0], marks[1], "cycle {cycle}: half a batch of writer {writer}");
        assert!(
            (told..=told + 1).contains(&marks[0]),
            "cycle {cycle}: writer {writer} was told of {told}, {} are there",
            marks[0]
        );
        while *number < marks[0] {
            *number += 1;
            for (family, key, value) in commit(writer, *number) {
                match value {
                    Some(value) => state[family].insert(key, value),
                    None => state[family].remove(&key),
                };
            }
        }
        for (all, own) in expected.iter_mut().zip(state.iter()) {
            all.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    assert!(found == expected, "cycle {cycle}: wrong contents");
    assert_sound(&db);
    db.close().unwrap();
}

#[test]
fn killed_at_random_moments() {
    let cycles = std::env::var("SATEEN_KILL_CYCLES").ok().and_then(|text| text.parse().ok());
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("db");
    let mut states = vec![(0, <[Contents; 2]>::default()); WRITERS];
    for cycle in 0..cycles.unwrap_or(15) {
        let acknowledged = run_and_kill(&path, cycle, &mut random);
        examine(&path, cycle, &acknowledged, &mut states);
    }
    println!("commits: {:?}", states.iter().map(|state| state.0).collect::<Vec<_>>());
}
