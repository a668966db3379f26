//! Seeks by prefix: what they show, and what they spare.

use sateen::vfs::MemVfs;
use sateen::{CompactRangeOptions, Db, Options, PrefixExtractor, Prefixing, ReadOptions};

use crate::support::common::{Contents, Random, as_vfs, assert_sound, read_all, small, tiny};

fn with(mut options: Options, by: &str) -> Options {
    options.column_family.prefix_extractor = None;
    options.set("prefix_extractor", by).unwrap();
    options
}

fn open(vfs: &MemVfs, options: Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options, &[]).unwrap()
}

/// Keys of prefixes of all lengths, of which some have hundreds and most have none.
fn key(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => (0..random.below(3)).map(|_| b'a' + random.below(3) as u8).collect(),
        1 => vec![0xff; 1 + random.below(5) as usize],
        _ => {
            let prefix = random.below(300) * 7;
            format!("{prefix:04}{:03}", random.below(40)).into_bytes()
        }
    }
}

fn fill(db: &Db, random: &mut Random, contents: &mut Contents) {
    for nth in 0..3_000_u32 {
        let (key, value) = (key(random), nth.to_be_bytes().to_vec());
        if random.one_in(5) {
            db.delete(&key).unwrap();
            contents.remove(&key);
        } else {
            db.put(&key, &value).unwrap();
            contents.insert(key, value);
        }
        if nth % 30 == 0 {
            db.step().unwrap();
        }
    }
}

fn here(db: &sateen::Cursor) -> Option<(Vec<u8>, Vec<u8>)> {
    db.status().unwrap();
    db.valid().then(|| (db.key().to_vec(), db.value().to_vec()))
}

/// Walks an iterator and a model of what it may show side by side.
fn walk(db: &Db, random: &mut Random, options: &ReadOptions, contents: &Contents, by: &Prefixed) {
    let mut iter = db.cursor(options).unwrap();
    let within = |key: &[u8]| {
        options.lower_bound.as_ref().is_none_or(|lower| **lower <= *key)
            && options.upper_bound.as_ref().is_none_or(|upper| *key < **upper)
            && options.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix))
    };
    let all: Vec<_> = contents.iter().filter(|(key, _)| within(key)).collect();
    let mut at: Option<usize> = None;
    let mut start: Option<Vec<u8>> = None;
    for _ in 0..40 {
        let target = match random.below(3) {
            0 if !all.is_empty() => all[random.below(all.len() as u64) as usize].0.clone(),
            _ => key(random),
        };
        match random.below(10) {
            0 => {
                iter.seek_to_first();
                at = Some(0);
                start = all.first().and_then(|(key, _)| by(key));
            }
            1 => {
                iter.seek_to_last();
                at = all.len().checked_sub(1);
                start = all.last().and_then(|(key, _)| by(key));
            }
            2 | 3 => {
                iter.seek(&target);
                at = Some(all.partition_point(|(key, _)| **key < target));
                start = by(&target);
            }
            4 | 5 => {
                iter.seek_for_prev(&target);
                at = all.partition_point(|(key, _)| **key <= target).checked_sub(1);
                start = by(&target);
            }
            6 | 7 => {
                iter.next();
                at = at.map(|at| at + 1);
            }
            _ => {
                iter.prev();
                at = at.and_then(|at| at.checked_sub(1));
            }
        }
        at = at.filter(|at| *at < all.len());
        if options.prefix_same_as_start && start.is_some() {
            at = at.filter(|at| by(all[*at].0) == start);
        }
        let expected = at.map(|at| (all[at].0.clone(), all[at].1.clone()));
        assert_eq!(here(&iter), expected, "{options:?}, target {:?}", target.escape_ascii());
    }
}

type Prefixed = dyn Fn(&[u8]) -> Option<Vec<u8>>;

fn prefixed(by: &str) -> Box<Prefixed> {
    let bytes = by.split_once(':').map_or(usize::MAX, |(_, bytes)| bytes.parse().unwrap());
    let fixed = by.starts_with("fixed");
    Box::new(move |key| match key.get(..bytes) {
        Some(prefix) => Some(prefix.to_vec()),
        None if fixed => None,
        None => Some(key.to_vec()),
    })
}

/// Whatever the extractor, the filters and the bounds: what is shown is what is there, in order.
#[test]
fn iterators_show_what_is_there() {
    let profiles = ["sateen", "pebblesdb", "triad-silk"];
    for (seed, by) in (1..).zip(["fixed:4", "fixed:2", "capped:4", "capped:6", "noop", "fixed:0"]) {
        for whole in [true, false] {
            let mut random = Random::new(seed);
            let mut options = match seed {
                1..4 => tiny(),
                _ => small(profiles[seed as usize % 3], 4 << 10),
            };
            options.column_family.whole_key_filter = whole;
            let (vfs, mut contents) = (MemVfs::new(), Contents::new());
            // Other extractors have left filters of theirs.
            let db = open(&vfs, with(options.clone(), "capped:5"));
            fill(&db, &mut random, &mut contents);
            db.close().unwrap();
            let db = open(&vfs, with(options, by));
            fill(&db, &mut random, &mut contents);
            db.set_options(&[("prefix_extractor", "none")]).unwrap();
            fill(&db, &mut random, &mut contents);
            db.set_options(&[("prefix_extractor", by)]).unwrap();
            fill(&db, &mut random, &mut contents);
            for round in 0..3 {
                for _ in 0..150 {
                    let prefix_same_as_start = random.one_in(2);
                    let mut options =
                        ReadOptions { prefix_same_as_start, ..ReadOptions::default() };
                    let (low, mut high) = (key(&mut random), key(&mut random));
                    if random.one_in(2) {
                        // Within one prefix, or up to where it ends.
                        high = low[..low.len().min(4)].to_vec();
                        match high.last_mut() {
                            Some(last) if random.one_in(2) && *last < 0xff => *last += 1,
                            _ => high.push(b'2'),
                        }
                    }
                    if random.one_in(2) && low <= high {
                        options.lower_bound = Some(low.clone());
                    }
                    if random.one_in(2) {
                        options.upper_bound = Some(high.clone());
                    }
                    if random.one_in(4) {
                        options.prefix = Some(low[..low.len().min(5)].to_vec());
                    }
                    if options.lower_bound > options.upper_bound && options.upper_bound.is_some() {
                        continue;
                    }
                    walk(&db, &mut random, &options, &contents, &*prefixed(by));
                }
                for _ in 0..300 {
                    let key = key(&mut random);
                    assert_eq!(db.get(&key).unwrap(), contents.get(&key).cloned(), "{by}");
                }
                if round == 0 {
                    db.flush().unwrap();
                } else {
                    let all =
                        CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
                    db.compact_range(None, None, &all).unwrap();
                }
            }
            let family = db.default_column_family();
            assert_eq!(read_all(&family, &ReadOptions::default()), contents);
            assert_sound(&db);
        }
    }
}

/// Blocks that 500 reads of absent prefixes read, and how often a filter said no.
fn blocks_of(db: &Db, read: impl Fn(&str)) -> (u64, u64) {
    let before = db.metrics();
    for nth in 0..500_u32 {
        read(&format!("{:04}", (nth * 7 + 3) % 2100));
    }
    let after = db.metrics();
    let blocks = |metrics: &sateen::metrics::Metrics| {
        metrics.counts.data_block_hits + metrics.counts.data_block_misses
    };
    (
        blocks(&after) - blocks(&before),
        after.counts.filter_negatives - before.counts.filter_negatives,
    )
}

fn blocks_of_seeks(db: &Db, options: &ReadOptions, bounded: bool) -> (u64, u64) {
    blocks_of(db, |target| {
        let mut options = options.clone();
        if bounded {
            options.upper_bound = Some(format!("{target}999").into_bytes());
        }
        let mut iter = db.cursor(&options).unwrap();
        iter.seek(target);
        if bounded || options.prefix_same_as_start {
            assert!(!iter.valid());
        }
        iter.status().unwrap();
    })
}

#[test]
fn absent_prefixes_cost_no_blocks() {
    // Levels of one run, and of many.
    let mut guards = small("pebblesdb", 4 << 10);
    guards.column_family.guard_runs = 100;
    for (mut options, whole) in
        [(tiny(), true), (tiny(), false), (guards.clone(), true), (guards, false)]
    {
        let mut random = Random::new(7);
        options.column_family.whole_key_filter = whole;
        options.column_family.bloom_bits_per_key = 16;
        let db = open(&MemVfs::new(), with(options, "fixed:4"));
        let mut contents = Contents::new();
        fill(&db, &mut random, &mut contents);
        db.flush().unwrap();
        let same = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
        let (by_prefix, said_no) = blocks_of_seeks(&db, &same, false);
        let (bounded, _) = blocks_of_seeks(&db, &ReadOptions::default(), true);
        let (without, _) = blocks_of_seeks(&db, &ReadOptions::default(), false);
        let (point, _) = blocks_of(&db, |key| assert_eq!(db.get(key).unwrap(), None));
        println!("blocks of 500 seeks: {without}, by prefix {by_prefix}, bounded {bounded}");
        assert!(point * 20 < without, "{point} of {without}");
        assert!(without > 500, "{without}");
        assert!(by_prefix * 20 < without, "{by_prefix} of {without}");
        assert!(bounded * 20 < without, "{bounded} of {without}");
        assert!(said_no > 500, "{said_no}");
    }
}

/// Keys are `tenant/rest`.
struct Tenant;

impl PrefixExtractor for Tenant {
    fn name(&self) -> &str {
        "tenant"
    }
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        key.iter().position(|byte| *byte == b'/').map(|at| at + 1)
    }
}

#[test]
fn an_extractor_of_ones_own() {
    let mut options = tiny();
    options.column_family.prefix_extractor = Some(Prefixing::new(Tenant));
    assert_eq!(options.get("prefix_extractor").unwrap(), "custom:tenant");
    let vfs = MemVfs::new();
    let db = open(&vfs, options.clone());
    for tenant in ["ann", "bob", "dora"] {
        for nth in 0..200 {
            db.put(format!("{tenant}/{nth:03}"), "value").unwrap();
        }
    }
    db.put("c", "has no prefix").unwrap();
    db.flush().unwrap();
    let same = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let mut iter = db.cursor(&same).unwrap();
    for (start, expected) in [("bob/", 200), ("bob/150", 50), ("carl/", 0), ("dora/", 200)] {
        let mut count = 0;
        iter.seek(start);
        while iter.valid() {
            count += 1;
            iter.next();
        }
        assert_eq!(count, expected, "{start}");
    }
    iter.seek("c");
    assert_eq!(iter.key(), b"c");
    iter.next();
    assert_eq!(iter.key(), b"dora/000", "what has no prefix ends with none");
    iter.seek_for_prev("bob/~");
    let mut count = 0;
    while iter.valid() {
        count += 1;
        iter.prev();
    }
    assert_eq!(count, 200);
    drop(iter);
    // What the options say in words is no extractor.
    assert!(Options::default().set("prefix_extractor", "custom:tenant").is_err());
    db.close().unwrap();
    let db = open(&vfs, tiny());
    assert_eq!(db.get("bob/007").unwrap().unwrap(), b"value");
}
