//! Makes the same calls to this library and to RocksDB. The answers must agree: values, positions
//! of iterators, counts, and the kinds of errors.
//!
//! A sequence is named by its seed and its operations. A failure is reduced and prints such a name;
//! `SATEEN_PEERS=7:0-19,25` replays it. `SATEEN_PEERS_CALLS=1000000` makes that many calls, from
//! the seed `SATEEN_PEERS_SEED` on. `SATEEN_PEERS_LIBRARY` is RocksDB's library; without it the
//! tests use the one that `cargo xtask fetch-rocksdb` fetched. Without a library nothing is
//! compared.
#![expect(unsafe_code, reason = "C functions are called")]

mod api;
mod atomic_flush;
mod callbacks;
#[path = "../../build/declaration.rs"]
#[expect(dead_code, reason = "the build script writes Rust, the tests read")]
mod declaration;
mod libraries;
mod op;
mod options;
mod side;
mod traces;
mod transactions;

use std::path::Path;
use std::time::{Duration, Instant};

use api::Api;
use op::{Op, Rng, Setup};
use side::Side;

/// The number of operations of a sequence.
const OPERATIONS: usize = 1500;
/// The largest number of shorter sequences tried to reduce one.
const TRIES_MAX: usize = 600;
/// The length of the short form.
const SHORT: Duration = Duration::from_secs(10);

struct Libraries {
    ours: Api,
    theirs: Api,
    comparators: bool,
}

/// The first operation with different answers.
struct Difference {
    at: usize,
    ours: String,
    theirs: String,
}

#[test]
fn answers_are_those_of_rocksdb() {
    let libraries = match load() {
        Ok(libraries) => libraries,
        Err(reason) => return println!("SKIPPED({reason})"),
    };
    if let Ok(line) = std::env::var("SATEEN_PEERS") {
        let (seed, numbers) = parse(&line);
        match run(&libraries, seed, &numbers, true) {
            Ok(calls) => println!("{calls} calls, no difference"),
            Err(difference) => panic!("{}", told(seed, &numbers, &difference)),
        }
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("SATEEN_PEERS_CALLS");
    let mut seed = number("SATEEN_PEERS_SEED").unwrap_or(1);
    let (first, begun, mut calls) = (seed, Instant::now(), 0);
    while wanted.map_or(begun.elapsed() < SHORT, |wanted| calls < wanted) {
        // The message comes first, because a library that ends the process prints nothing.
        if wanted.is_some() {
            eprintln!("SATEEN_PEERS={seed}:0-{} after {calls} calls", OPERATIONS - 1);
        }
        let numbers: Vec<_> = (0..OPERATIONS).collect();
        match run(&libraries, seed, &numbers, false) {
            Ok(more) => calls += more,
            Err(difference) => {
                let numbers = reduce(&libraries, seed, numbers[..=difference.at].to_vec());
                let difference = run(&libraries, seed, &numbers, true).err();
                let last = difference.expect("a difference that is there each time");
                panic!("{}", told(seed, &numbers, &last));
            }
        }
        seed += 1;
    }
    println!("{calls} calls from seed {first} to {}, no difference", seed - 1);
}

fn load() -> Result<Libraries, String> {
    let theirs = libraries::theirs()?;
    let words = sources();
    // A function that only stores a setting has no source: `build.rs` generates it.
    let kept = |name: &str| name.contains("options_");
    let there = |name: &str| {
        kept(name) || words.iter().any(|word| word.strip_prefix("rocksdb_") == Some(name))
    };
    let absent: Vec<_> = api::NAMES.iter().copied().filter(|name| !there(name)).collect();
    if !absent.is_empty() {
        println!("not there yet, and not compared: {}", absent.join(", "));
    }
    let comparators = there("comparator_create");
    Ok(Libraries {
        ours: Api::load(&libraries::ours()?)?,
        theirs: Api::load(&theirs)?,
        comparators,
    })
}

/// Returns the functions that our sources name. The others are not implemented.
fn sources() -> Vec<String> {
    let mut words = Vec::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in std::fs::read_dir(source).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        let code = text.lines().filter_map(|line| line.split("//").next());
        for line in code {
            let parts = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            words.extend(parts.filter(|word| word.starts_with("rocksdb_")).map(str::to_owned));
        }
    }
    words
}

/// Does the operations on both libraries. Returns the number of equal answers.
fn run(
    libraries: &Libraries,
    seed: u64,
    numbers: &[usize],
    aloud: bool,
) -> Result<u64, Difference> {
    let directory = tempfile::tempdir().expect("a directory");
    let setup = Setup::of(seed, libraries.comparators);
    let mut ours = Side::new(&libraries.ours, &directory.path().join("ours"), setup);
    let mut theirs = Side::new(&libraries.theirs, &directory.path().join("theirs"), setup);
    for (at, number) in numbers.iter().enumerate() {
        let op = Op::of(seed, *number);
        if aloud {
            println!("{number}: {op}");
        }
        let (a, b) = (ours.act(&op), theirs.act(&op));
        if aloud {
            println!("  {}", a.lines().next().unwrap_or_default());
        }
        if a != b {
            return Err(Difference { at, ours: a, theirs: b });
        }
    }
    let (a, b) = (ours.everything(), theirs.everything());
    if a != b {
        return Err(Difference { at: numbers.len().saturating_sub(1), ours: a, theirs: b });
    }
    Ok(ours.calls)
}

/// Removes operations that the difference does not need.
fn reduce(libraries: &Libraries, seed: u64, mut numbers: Vec<usize>) -> Vec<usize> {
    let last = |numbers: &[usize]| numbers.last().map(|number| Op::of(seed, *number).kind);
    let wanted = last(&numbers);
    let (mut size, mut tries) = (numbers.len() / 2, 0);
    while size > 0 {
        let mut at = 0;
        while at < numbers.len() && tries < TRIES_MAX {
            let mut fewer = numbers.clone();
            fewer.drain(at..(at + size).min(numbers.len()));
            tries += 1;
            match run(libraries, seed, &fewer, false) {
                // A difference at another operation may be another bug.
                Err(difference) if last(&fewer[..=difference.at]) == wanted => {
                    fewer.truncate(difference.at + 1);
                    numbers = fewer;
                }
                _ => at += size,
            }
        }
        size /= 2;
    }
    numbers
}

fn told(seed: u64, numbers: &[usize], difference: &Difference) -> String {
    let Difference { at, ours, theirs } = difference;
    let op = Op::of(seed, numbers[*at]);
    // Long answers are cut to the lines around the first difference.
    let lines = ours.lines().zip(theirs.lines()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| text.lines().skip(lines).take(3).collect::<Vec<_>>().join("\n    ");
    format!(
        "SATEEN_PEERS={seed}:{} differs at {} ({op})\n  ours:\n    {}\n  theirs:\n    {}",
        written(numbers),
        numbers[*at],
        part(ours),
        part(theirs)
    )
}

/// Formats numbers as ranges.
fn written(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let texts = ranges.iter().map(|(first, last)| match first == last {
        true => format!("{first}"),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

fn parse(line: &str) -> (u64, Vec<usize>) {
    let (seed, ranges) = line.split_once(':').expect("SEED:OPERATIONS");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let ranges = ranges.split(',').map(|range| range.split_once('-').unwrap_or((range, range)));
    let numbers = ranges.flat_map(|(first, last)| number(first)..=number(last));
    (seed.parse().expect("a seed"), numbers.collect())
}

#[test]
fn a_line_says_which_operations_there_were() {
    let numbers = vec![0, 1, 2, 5, 7, 8];
    let line = format!("9:{}", written(&numbers));
    assert_eq!(line, "9:0-2,5,7-8");
    assert_eq!(parse(&line), (9, numbers));
    assert_eq!(Op::of(9, 3).to_string(), Op::of(9, 3).to_string());
    assert_ne!(Rng::new(9, 3).next(), Rng::new(9, 4).next());
}
