//! Sets each option alone to the ends of its range, in both libraries. This library must accept
//! what RocksDB accepts, with the same answers. Values that RocksDB refuses must never end the
//! process or hang it. Getters must return what setters were given.
//!
//! Child processes run the cases, because some end RocksDB's process. A child takes a list and
//! writes down the result of each case. The next child continues after the case that ended one.
//!
//! `SATEEN_PEERS_OPTIONS=all` runs all cases. Otherwise each test runs a part of them, a different
//! one each day of the year, and prints which. `SATEEN_PEERS_OPTIONS=write_buffer` runs those with
//! this text in their name.

mod cases;
mod child;
mod expected;
mod scenarios;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::libraries;
use cases::Case;

const CHILD: &str = "SATEEN_PEERS_CHILD";
/// One of this many cases runs by default.
const PART: usize = 8;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// The answer that the child wrote down.
    Told(String),
    /// The way in which the child ended.
    Ended(String),
}

/// Not a test, but the work of a child.
#[test]
fn child() {
    if let Some(directory) = std::env::var_os(CHILD) {
        child::run(Path::new(&directory));
    }
}

/// Runs `cases` with the library at `library`.
fn answers(library: &Path, cases: &[Case]) -> Vec<Answer> {
    let directory = child::scratch();
    let path = directory.path();
    let mut answers = Vec::new();
    while answers.len() < cases.len() {
        let rest: Vec<_> = cases[answers.len()..].iter().map(Case::to_string).collect();
        std::fs::write(path.join("cases"), rest.join("\n")).expect("a list of cases");
        std::fs::write(path.join("library"), library.as_os_str().as_encoded_bytes()).expect("it");
        std::fs::write(path.join("answers"), "").expect("an empty list");
        let child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "options::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("a child");
        let told = std::fs::read_to_string(path.join("answers")).expect("answers");
        let before = answers.len();
        answers.extend(told.lines().map(|line| Answer::Told(line.to_owned())));
        if answers.len() < cases.len() {
            answers.push(Answer::Ended(child.to_string()));
        }
        assert!(answers.len() > before, "a child did nothing");
    }
    answers
}

/// Returns the cases of this run.
fn wanted(cases: Vec<Case>) -> Vec<Case> {
    match std::env::var("SATEEN_PEERS_OPTIONS") {
        Ok(all) if all == "all" => cases,
        Ok(part) => cases.into_iter().filter(|case| case.name.contains(&part)).collect(),
        Err(_) => {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
            let day = usize::try_from(now.as_secs() / 86_400).expect("it fits") % PART;
            println!("part {day} of {PART}; SATEEN_PEERS_OPTIONS=all runs all");
            let at = cases.into_iter().enumerate().filter(|(at, _)| at % PART == day);
            at.map(|(_, case)| case).collect()
        }
    }
}

/// Returns the answers of both libraries to `cases`, ours first.
fn both(cases: &[Case]) -> Option<Vec<(Answer, Option<Answer>)>> {
    let ours = libraries::ours().expect("our library");
    let theirs = libraries::theirs().map_err(|reason| println!("SKIPPED({reason})")).ok();
    std::thread::scope(|scope| {
        let of_theirs = theirs.map(|theirs| scope.spawn(move || answers(&theirs, cases)));
        let ours = answers(&ours, cases);
        let theirs = of_theirs.map(|thread| thread.join().expect("their answers"));
        let theirs = theirs.map_or_else(Vec::new, |all| all.into_iter().map(Some).collect());
        let theirs = theirs.into_iter().chain(std::iter::repeat(None));
        Some(ours.into_iter().zip(theirs).collect())
    })
}

/// Compares the answers to `cases`, except for the differences in `expected`.
fn compare(cases: Vec<Case>) {
    let cases = wanted(cases);
    let Some(answers) = both(&cases) else { return };
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::new());
    for (case, (ours, theirs)) in cases.iter().zip(answers) {
        let is_ok = |answer: &Answer| matches!(answer, Answer::Told(it) if it.starts_with("ok"));
        let (kind, is_fine) = match (&ours, &theirs) {
            (Answer::Ended(_), _) => ("ended", false),
            // `src/promises.rs` has the options with promises and the reasons for refusing them.
            (Answer::Told(told), _) if told.contains(" is not implemented") => {
                ("refused by name", told.starts_with("refused"))
            }
            (_, Some(theirs)) if is_ok(theirs) => ("taken by RocksDB", ours == *theirs),
            (_, Some(_)) if is_ok(&ours) => ("taken here alone", true),
            _ => ("refused", true),
        };
        *counts.entry(kind).or_insert(0) += 1;
        if !is_fine && expected::reason(case).is_none() {
            wrong.push(format!("{case}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
        }
    }
    println!("{} cases: {counts:?}", cases.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_setter_takes_what_rocksdb_takes() {
    compare(cases::setters());
}

#[test]
fn each_option_in_text_takes_what_rocksdb_takes() {
    let Some(names) = names() else { return };
    compare(cases::texts(&names));
}

#[test]
fn each_option_at_run_time_takes_what_rocksdb_takes() {
    let Some(names) = names() else { return };
    compare(cases::at_run_time(&names));
}

#[test]
fn getters_return_what_rocksdb_returns() {
    // These cases are quick, so that all of them always run.
    let cases = cases::round_trips();
    assert!(cases.len() > 800, "{}", cases.len());
    let Some(answers) = both(&cases) else { return };
    let mut wrong = Vec::new();
    for (case, (ours, theirs)) in cases.iter().zip(answers) {
        let Some(theirs) = theirs else { continue };
        let is_there = theirs != Answer::Told("absent".into());
        if is_there && ours != theirs && expected::reason(case).is_none() {
            wrong.push(format!("{case}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn options_of_calls_do_what_rocksdbs_do() {
    let cases = scenarios::all();
    let Some(answers) = both(&cases) else { return };
    let mut wrong = Vec::new();
    for (case, (ours, theirs)) in cases.iter().zip(answers) {
        println!("{case}: {ours:?}");
        assert!(matches!(&ours, Answer::Told(told) if told.starts_with("ok")), "{case}: {ours:?}");
        let Some(theirs) = theirs else { continue };
        if ours != theirs && expected::reason(case).is_none() {
            wrong.push(format!("{case}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the options that RocksDB writes into its OPTIONS file, with their values.
fn names() -> Option<Vec<cases::Named>> {
    let library = libraries::theirs().map_err(|reason| println!("SKIPPED({reason})")).ok()?;
    let listing = answers(&library, &[Case::listing()]);
    match listing.first() {
        Some(Answer::Told(text)) => Some(cases::Named::all(text)),
        other => panic!("RocksDB lists no options: {other:?}"),
    }
}
