//! The ways in which a database is damaged, as values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sateen::test_support::fuzz::blocks;
use sateen::vfs::{CrashChoice, IoClass, MemVfs, OpenOptions, Vfs};

use super::golden::{Golden, path};
use crate::support::common::Random;

const WRITE: OpenOptions = OpenOptions::WRITE;
const SECTOR: usize = 512;

type Name = Arc<str>;

/// One way to damage a database.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    Bit {
        file: Name,
        at: usize,
        bit: u8,
    },
    Byte {
        file: Name,
        at: usize,
        to: u8,
    },
    Sector {
        file: Name,
        at: usize,
    },
    Truncated {
        file: Name,
        length: usize,
    },
    Missing {
        file: Name,
    },
    Exchanged {
        one: Name,
        other: Name,
    },
    /// As a file of another database is.
    OfAnother {
        file: Name,
        from: Name,
    },
    /// As it, or another file of its kind, was earlier: the n-th of `Golden::older`.
    Older {
        file: Name,
        from: usize,
    },
    /// A part of it as it, or another file of its kind, was at the same place.
    OlderPart {
        file: Name,
        at: usize,
        length: usize,
        from: usize,
    },
    /// Two parts of one length.
    Swapped {
        one: Name,
        at: usize,
        other: Name,
        with: usize,
        length: usize,
    },
}

/// A part of a log.
pub(super) struct LogPart {
    pub(super) log: Name,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Golden {
    fn older_bytes(&self, nth: usize) -> &[u8] {
        &self.older[nth].1
    }
}

impl Damage {
    pub(super) fn do_it(&self, golden: &Golden, another: &Golden) -> MemVfs {
        let vfs = golden.vfs.crash_image(CrashChoice::Everything);
        let open = |file: &str| vfs.open(&path(file), WRITE).unwrap();
        let write = |file: &str, at: usize, bytes: &[u8]| {
            open(file).write_at(bytes, at as u64, IoClass::Client).unwrap();
        };
        let replace = |file: &str, bytes: &[u8]| {
            open(file).truncate(0).unwrap();
            write(file, 0, bytes);
        };
        let bytes = |file: &Name| &golden.files[&**file];
        match self {
            Damage::Bit { file, at, bit } => write(file, *at, &[bytes(file)[*at] ^ (1 << bit)]),
            Damage::Byte { file, at, to } => write(file, *at, &[*to]),
            Damage::Sector { file, at } => {
                write(file, *at, &vec![0; sector(bytes(file).len(), *at).len()]);
            }
            Damage::Truncated { file, length } => open(file).truncate(*length as u64).unwrap(),
            Damage::Missing { file } => vfs.remove(&path(file)).unwrap(),
            Damage::Exchanged { one, other } => {
                replace(one, bytes(other));
                replace(other, bytes(one));
            }
            Damage::OfAnother { file, from } => replace(file, &another.files[&**from]),
            Damage::Older { file, from } => replace(file, golden.older_bytes(*from)),
            Damage::OlderPart { file, at, length, from } => {
                write(file, *at, &golden.older_bytes(*from)[*at..at + length]);
            }
            Damage::Swapped { one, at, other, with, length } => {
                write(one, *at, &bytes(other)[*with..with + length]);
                write(other, *with, &bytes(one)[*at..at + length]);
            }
        }
        vfs
    }

    /// Whether it leaves all as it is. It has a number all the same: bytes are not the same in
    /// every run, for each database has a number of its own.
    pub(super) fn is_none(&self, golden: &Golden) -> bool {
        match self {
            Damage::Byte { file, at, to } => golden.files[&**file][*at] == *to,
            _ => false,
        }
    }

    /// Whether it is between the tables of a file, where there is nothing but zeros.
    pub(super) fn is_of_padding(&self, golden: &Golden) -> bool {
        match self {
            Damage::Bit { file, at, .. }
            | Damage::Byte { file, at, .. }
            | Damage::Truncated { file, length: at } => {
                let bytes = &golden.files[&**file];
                let around = at.saturating_sub(64)..bytes.len().min(at + 64);
                bytes[around].iter().all(|byte| *byte == 0)
            }
            _ => false,
        }
    }

    /// The parts of logs that are damaged so that they may look torn: then a prefix of the commits
    /// is allowed. A log knows its number and its database: another file in its place never does.
    pub(super) fn of_logs(&self, golden: &Golden) -> Vec<LogPart> {
        let part = |log: &Name, from: usize, to: usize| LogPart {
            log: log.clone(),
            from: from as u64,
            to: to as u64,
        };
        let parts = match self {
            Damage::Bit { file, at, .. } | Damage::Byte { file, at, .. } => {
                vec![part(file, *at, at + 1)]
            }
            Damage::Sector { file, at } => vec![part(file, *at, at + SECTOR)],
            Damage::Truncated { file, length } => vec![part(file, *length, usize::MAX)],
            Damage::Missing { file } => vec![part(file, 0, usize::MAX)],
            // Swapped with the empty file: as if cut off at once.
            Damage::Exchanged { one, other: empty }
            | Damage::Exchanged { one: empty, other: one }
                if golden.files[&**empty].is_empty() =>
            {
                vec![part(one, 0, usize::MAX)]
            }
            Damage::Exchanged { .. } | Damage::OfAnother { .. } => Vec::new(),
            Damage::Older { file, from } => {
                let (now, then) = (&golden.files[&**file], golden.older_bytes(*from));
                let same = now.iter().zip(then).take_while(|(now, then)| now == then).count();
                // Its own beginning. Of another log there is not so much in common.
                if same == then.len() { vec![part(file, same, usize::MAX)] } else { Vec::new() }
            }
            Damage::OlderPart { file, at, length, .. } => vec![part(file, *at, at + length)],
            Damage::Swapped { one, at, other, with, length } => {
                vec![part(one, *at, at + length), part(other, *with, with + length)]
            }
        };
        parts.into_iter().filter(|part| part.log.ends_with(".wal")).collect()
    }
}

/// The sector that begins at `at`.
fn sector(length: usize, at: usize) -> Range<usize> {
    at..length.min(at + SECTOR)
}

/// What file it is, apart from its number.
fn kind(name: &str) -> &str {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    extension.unwrap_or_else(|| name.split('-').next().unwrap_or(name))
}

/// Every byte and every length.
pub(super) fn of_bytes(golden: &Golden) -> Vec<Damage> {
    let mut random = Random::new(9);
    let mut all = Vec::new();
    for (name, contents) in &golden.files {
        let file: Name = name.as_str().into();
        for at in 0..contents.len() {
            let bit = random.below(8) as u8;
            all.push(Damage::Bit { file: file.clone(), at, bit });
            for to in [0, 0xff] {
                all.push(Damage::Byte { file: file.clone(), at, to });
            }
            all.push(Damage::Truncated { file: file.clone(), length: at });
        }
    }
    all
}

/// Sectors, blocks, records and whole files.
pub(super) fn of_parts(golden: &Golden, another: &Golden) -> Vec<Damage> {
    let mut all = Vec::new();
    for (name, contents) in &golden.files {
        let file: Name = name.as_str().into();
        for at in (0..contents.len()).step_by(SECTOR) {
            if contents[sector(contents.len(), at)].iter().any(|byte| *byte != 0) {
                all.push(Damage::Sector { file: file.clone(), at });
            }
        }
        all.push(Damage::Missing { file: file.clone() });
        for other in golden.files.keys().filter(|other| *other > name) {
            all.push(Damage::Exchanged { one: file.clone(), other: other.as_str().into() });
        }
        for from in another.files.keys().filter(|from| kind(from) == kind(name)) {
            all.push(Damage::OfAnother { file: file.clone(), from: from.as_str().into() });
        }
    }
    swaps(golden, &mut all);
    older(golden, &mut all);
    all
}

/// The parts of files that have a checksum of their own, by length; and sectors.
fn parts(golden: &Golden) -> BTreeMap<usize, Vec<(Name, usize)>> {
    let mut parts: BTreeMap<usize, Vec<(Name, usize)>> = BTreeMap::new();
    let mut add = |name: &Name, part: Range<usize>| {
        parts.entry(part.len()).or_default().push((name.clone(), part.start));
    };
    for (name, contents) in &golden.files {
        let file: Name = name.as_str().into();
        let sectors = (0..contents.len()).step_by(SECTOR).map(|at| sector(contents.len(), at));
        let sectors = sectors.filter(|part| contents[part.clone()].iter().any(|byte| *byte != 0));
        sectors.for_each(|part| add(&file, part));
        blocks(contents).into_iter().for_each(|part| add(&file, part));
        let mut start = 0;
        for (_, _, end) in golden.ends.iter().filter(|(_, log, _)| log == name) {
            let end = *end as usize;
            if start > 0 {
                add(&file, start..end);
            }
            start = end;
        }
    }
    parts
}

/// Every pair of parts of one length, within a file and between files.
fn swaps(golden: &Golden, all: &mut Vec<Damage>) {
    for (length, places) in parts(golden) {
        for (number, (one, at)) in places.iter().enumerate() {
            for (other, with) in &places[number + 1..] {
                let (a, b) = (&golden.files[&**one], &golden.files[&**other]);
                let overlap = one == other && with.abs_diff(*at) < length;
                if !overlap && a[*at..at + length] != b[*with..with + length] {
                    let (one, other) = (one.clone(), other.clone());
                    all.push(Damage::Swapped { one, at: *at, other, with: *with, length });
                }
            }
        }
    }
}

/// Files and their parts as they, or others of their kind, were before.
fn older(golden: &Golden, all: &mut Vec<Damage>) {
    let parts = parts(golden);
    for (from, (before, then)) in golden.older.iter().enumerate() {
        for (name, now) in golden.files.iter().filter(|(name, _)| kind(name) == kind(before)) {
            let file: Name = name.as_str().into();
            all.push(Damage::Older { file: file.clone(), from });
            for (length, places) in &parts {
                for (_, at) in places.iter().filter(|(file, _)| **file == **name) {
                    let part = *at..at + length;
                    if then.get(part.clone()).is_some_and(|then| *then != now[part]) {
                        let (at, length, file) = (*at, *length, file.clone());
                        all.push(Damage::OlderPart { file, at, length, from });
                    }
                }
            }
        }
    }
}
