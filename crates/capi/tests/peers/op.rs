//! The operations of a sequence. Its settings follow from its seed. Each operation follows from the
//! seed and its number alone, so that numbers name the rest of a reduced sequence.

use std::fmt;

/// A generator of numbers (SplitMix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.next();
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap_or(0)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The settings of all column families of a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    /// A merge operator that joins with commas.
    pub(crate) merges: bool,
    /// A comparator of the reverse order.
    pub(crate) reverse: bool,
    /// A compaction filter. The answers must not depend on when it runs, so there are no snapshots,
    /// no merges, and full compactions only.
    pub(crate) filter: bool,
    /// Files are written and ingested.
    pub(crate) ingests: bool,
    /// The database has a TTL that never expires.
    pub(crate) ttl: bool,
    /// A prefix extractor.
    pub(crate) prefix: bool,
}

impl Setup {
    pub(crate) fn of(seed: u64, comparators: bool) -> Setup {
        let mut rng = Rng::new(seed, u64::MAX);
        let (filter, merges) = (rng.one_in(5), !rng.one_in(6));
        let reverse = rng.one_in(3) && comparators;
        let ttl = rng.one_in(5) && !filter;
        // A database with a TTL cannot read files that were written without one.
        let (ingests, prefix) = (rng.one_in(2) && !ttl, rng.one_in(3));
        Setup { merges: merges && !filter, reverse, filter, ingests, ttl, prefix }
    }
}

macro_rules! kinds {
    ($($kind:ident $weight:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($kind),* }

        const WEIGHTS: &[(Kind, u64)] = &[$((Kind::$kind, $weight)),*];
    };
}

kinds! {
    Put 90, Merge 40, Delete 40, PutOnce 12, SingleDelete 12, DeleteRange 10,
    Get 40, GetPinned 30, GetInto 20, MultiGet 12, BatchedMultiGet 12,
    BatchPut 40, BatchMerge 20, BatchDelete 20,
    BatchDeleteRange 2, BatchSingleDelete 2, BatchLogData 6, BatchClear 2, BatchWrite 12,
    BatchSave 10, BatchRollback 6, BatchPop 4, BatchIterate 4, BatchIterateDefault 3,
    IterOpen 14, IterSeek 30, IterSeekForPrev 30, IterFirst 8, IterLast 8, IterNext 60,
    IterPrev 60, IterRefresh 4, IterClose 4, Scan 5,
    Snapshot 6, Release 4, CreateFamily 4, DropFamily 1, SequenceNumber 4,
    Flush 6, Compact 3, SetOptions 3, OptionString 3,
    Ingest 8, IngestWrong 2, Properties 3, MayExist 10, Checkpoint 1, Updates 2,
    BatchData 5, BatchCopy 4,
    Reopen 2, ReadOnly 1, OpenTwice 1, OpenWrong 1,
}

/// An operation. Each kind uses the fields that it needs.
#[derive(Clone)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) family: usize,
    pub(crate) slot: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) bits: u64,
}

impl Op {
    /// Returns the `number`-th operation of the sequence of `seed`.
    pub(crate) fn of(seed: u64, number: usize) -> Op {
        let mut rng = Rng::new(seed, number as u64);
        let mut at = rng.below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
        let kind = WEIGHTS.iter().find(|(_, weight)| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        Op {
            kind: kind.map_or(Kind::Get, |(kind, _)| *kind),
            family: rng.index(4),
            slot: rng.index(3),
            key: key(&mut rng),
            end: key(&mut rng),
            value: value(&mut rng),
            bits: rng.next(),
        }
    }
}

/// Draws one of a few keys, some of them odd. All are before `r`, where the keys of single
/// deletions begin.
pub(crate) fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(40) {
        0 => Vec::new(),
        1 => vec![0],
        2 => b"k\0".to_vec(),
        3 => b"k3\xff\xff".to_vec(),
        4 => vec![b'p'; 300],
        5..12 => format!("k{}", rng.below(10)).into_bytes(),
        _ => format!("k{:03}", rng.below(80)).into_bytes(),
    }
}

pub(crate) fn value(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(20) {
        0 => 0,
        1 => 1000 + rng.index(4000),
        _ => 1 + rng.index(20),
    };
    let first = rng.index(26);
    (0..length).map(|n| b'a' + u8::try_from((first + n / 3) % 26).unwrap_or(0)).collect()
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} family {} slot {}", self.kind, self.family, self.slot)?;
        write!(f, " key {:?}", crate::side::shown(&self.key))?;
        write!(f, " end {:?}", crate::side::shown(&self.end))?;
        write!(f, " value {:?}", crate::side::shown(&self.value))?;
        write!(f, " bits {:x}", self.bits)
    }
}
