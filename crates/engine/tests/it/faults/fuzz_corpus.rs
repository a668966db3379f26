//! Every decoder over the checked-in seeds of the fuzzers, and over mutations of them: none panics,
//! hangs or reserves memory that is not there. `SATEEN_FUZZ_MUTATIONS` sets how many for each
//! target; `SATEEN_WRITE_SEEDS=1` writes the seeds anew. With `RUSTFLAGS="--cfg fuzzing"` checksums
//! pass, so that the bytes behind them are reached, too.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sateen::test_support::fuzz::{TARGETS, seeds};

use crate::support::common::Random;

const MUTATIONS: u64 = 4000;
/// The checked-in seeds stay small.
const SEED_BYTES_MAX: usize = 300 << 10;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")
}

fn checked_in() -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for (target, _) in TARGETS {
        let mut files: Vec<_> = std::fs::read_dir(directory().join(target))
            .unwrap_or_else(|error| panic!("seeds of {target}: {error}"))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let inputs: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(!inputs.is_empty(), "{target} has seeds");
        all.insert((*target).to_owned(), inputs);
    }
    all
}

fn mutate(random: &mut Random, inputs: &[Vec<u8>]) -> Vec<u8> {
    let pick = |random: &mut Random| &inputs[random.below(inputs.len() as u64) as usize];
    let mut bytes = pick(random).clone();
    for _ in 0..=random.below(5) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.next() as u8),
            // A number of 4 or 8 bytes that is extreme: lengths, offsets, counts.
            4 => {
                let extremes = [0, 1, u64::from(u32::MAX), u64::MAX, u64::MAX >> 1, 1 << 31];
                let number = extremes[random.below(6) as usize].to_le_bytes();
                let width = if random.one_in(2) { 4 } else { 8 };
                for (to, from) in bytes.iter_mut().skip(at).zip(&number[..width]) {
                    *to = *from;
                }
            }
            5 => {
                let other = pick(random);
                let from = random.below(other.len() as u64 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let end = at + random.below((bytes.len() - at) as u64 + 1) as usize;
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
        // What is twice as long as anything written finds nothing new.
        bytes.truncate(32 << 10);
    }
    bytes
}

#[test]
fn every_decoder_survives_its_seeds_and_mutations_of_them() {
    if std::env::var("SATEEN_WRITE_SEEDS").is_ok() {
        for (number, (target, bytes)) in seeds().into_iter().enumerate() {
            std::fs::create_dir_all(directory().join(target)).unwrap();
            std::fs::write(directory().join(target).join(format!("{number:02}")), bytes).unwrap();
        }
    }
    let mutations = std::env::var("SATEEN_FUZZ_MUTATIONS").ok();
    let mutations = mutations.and_then(|text| text.parse().ok()).unwrap_or(MUTATIONS);
    let seeds = checked_in();
    let total: usize = seeds.values().flatten().map(Vec::len).sum();
    assert!(total <= SEED_BYTES_MAX, "{total} bytes of seeds");
    for (target, decode) in TARGETS {
        let inputs = &seeds[*target];
        inputs.iter().for_each(|input| decode(input));
        for number in 0..mutations {
            let mut random = Random::new(number + 1);
            let bytes = mutate(&mut random, inputs);
            if catch_unwind(AssertUnwindSafe(|| decode(&bytes))).is_err() {
                let file =
                    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-{number}"));
                std::fs::write(&file, &bytes).unwrap();
                panic!("{target} panics on mutation {number}, kept in {}", file.display());
            }
        }
    }
}

/// The writers of today still make what is checked in: a seed that nothing writes any more tests
/// nothing.
#[test]
fn the_seeds_are_what_the_writers_write() {
    let checked_in = checked_in();
    for (target, bytes) in seeds() {
        assert!(!bytes.is_empty(), "{target}");
        assert!(
            checked_in[target].contains(&bytes),
            "a seed of {target} differs: write them anew with SATEEN_WRITE_SEEDS=1"
        );
    }
}
