//! The seeds of the fuzz target `inspect`, and mutations of them.

use std::path::Path;

/// Mutations of each seed.
const MUTATIONS: u64 = 4000;

/// A generator of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % limit.max(1)
    }
}

#[test]
fn requests_and_answers_survive_the_seeds_and_mutations_of_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/inspect");
    let mut seeds: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    seeds.sort();
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| std::fs::read(seed).unwrap()).collect();
    assert!(seeds.len() >= 5);
    let mutations = std::env::var("SATEEN_FUZZ_MUTATIONS").ok();
    let mutations = mutations.and_then(|text| text.parse().ok()).unwrap_or(MUTATIONS);
    for (number, seed) in seeds.iter().enumerate() {
        sateen_inspect::fuzz::fuzz(seed);
        for mutation in 0..mutations {
            let mut random = Random(mutation << 8 | number as u64);
            let mut bytes = seed.clone();
            for _ in 0..=random.below(5) {
                let at = random.below(bytes.len());
                match random.below(5) {
                    0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
                    1 => bytes.truncate(at),
                    2 => bytes.insert(at.min(bytes.len()), b"\r\n:% {}\"\0"[random.below(9)]),
                    3 => {
                        let other = &seeds[random.below(seeds.len())];
                        bytes.truncate(at);
                        bytes.extend_from_slice(&other[random.below(other.len())..]);
                    }
                    _ => bytes.extend_from_within(at.min(bytes.len())..),
                }
                bytes.truncate(32 << 10);
            }
            let shown = bytes.escape_ascii().to_string();
            let read = std::panic::catch_unwind(|| sateen_inspect::fuzz::fuzz(&bytes));
            assert!(read.is_ok(), "seed {number}, mutation {mutation}: {shown}");
        }
    }
}
