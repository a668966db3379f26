//! Killed processes: children write to a real directory while flushes and compactions run, and are
//! killed with SIGKILL at a random moment, or kill themselves at a named point of what the engine
//! does with its files. Whatever they were told is written is there afterwards, batches are whole,
//! and of each writer exactly a prefix of its commits is left.
//!
//! `SATEEN_KILL_CYCLES` lengthens the test; `rel` is the suite.

use std::time::Duration;

use sateen::WalMode;

use crate::crash::kill::point::Point;
use crate::support::child::{Bounds, Marks, Model, Orders, Running, options};
use crate::support::common::Random;
use crate::support::rel::{Suite, processors};

/// Of the database of one case.
const KILLS_EACH: u64 = 3;

/// What happened in a case.
#[derive(Default)]
struct Count {
    kills: u64,
    /// Of them where the process killed itself.
    at_points: u64,
    commits: u64,
    checkpoints: u64,
}

/// One database, whose process is killed again and again.
fn case(number: u64) -> Count {
    let mut random = Random::new(number);
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = parent.path().join("db");
    let options = options(number);
    let (mut count, mut model) = (Count::default(), Model::default());
    let mut floor = [Marks::default(); 2];
    for cycle in 0..KILLS_EACH {
        let mut orders = Orders::new(&directory, number);
        orders.point =
            (!random.one_in(4)).then(|| Point::choose(number * KILLS_EACH + cycle, &mut random));
        let what = format!("case {number}, cycle {cycle}, {:?}, {:?}", options.wal, orders.point);
        let child = Running::start(&orders);
        // The moment is random in time, not in acknowledgements: it may be in any call.
        let after = Duration::from_millis(random.below(300));
        if !random.one_in(6) {
            child.wait_until(|told| told.acknowledged != Marks::default());
        }
        child.wait(after);
        let (told, by_itself) = child.kill();
        assert!(!by_itself || orders.point.is_some(), "{what}: who has killed it?");
        let survives = if options.wal == WalMode::Off { told.flushed } else { told.acknowledged };
        let mut bounds = Bounds::new(survives, &told);
        bounds.keep(&floor);
        count.checkpoints +=
            model.examine_checkpoints(&directory, number, &told, bounds.ceiling, &what);
        // Sometimes the next child finds the directory as the killed one left it.
        let mut read_only = random.one_in(2);
        if !directory.join("CURRENT").exists() {
            assert_eq!(bounds.floor, [Marks::default(); 2], "{what}: there is no database");
            read_only = false;
        }
        floor = model.examine_at(&directory, options.clone(), read_only, &bounds, &what);
        count.kills += 1;
        count.at_points += u64::from(by_itself);
        count.commits += told.acknowledged.iter().sum::<u64>();
    }
    count
}

#[test]
fn killed_at_random_moments_and_named_points() {
    let cycles = std::env::var("SATEEN_KILL_CYCLES").ok().and_then(|text| text.parse().ok());
    let cases = cycles.unwrap_or(15_u64).div_ceil(KILLS_EACH);
    let first = u64::from(std::process::id());
    let mut sum = 0;
    for number in first..first + cases {
        println!("case {number}");
        sum += case(number).at_points;
    }
    assert!(sum > 0, "no child came to its point");
}

#[test]
#[ignore = "the suite `kill`: cargo xtask rel kill"]
fn rel() {
    // They mostly wait for the disk.
    Suite::new("kill", "kills").run(2 * processors(), |suite, number| {
        let count = case(number);
        suite.count("at points", count.at_points);
        suite.count("commits", count.commits);
        suite.count("checkpoints", count.checkpoints);
        suite.count("kills", count.kills);
    });
}
