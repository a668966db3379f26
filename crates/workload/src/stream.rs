//! The operations of one client thread, drawn from a [`Spec`].

use crate::{KeyChooser, KeyFormat, Rng, ScanLength, Spec, ValueSize, mix64};

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Get the value of a key.
    Read,
    /// Put a value.
    Write,
    /// Seek and read the following entries.
    Scan,
    /// Get, then put.
    ReadModifyWrite,
    /// Delete a key.
    Delete,
}

/// One operation; its key is in the buffer given to [`OpStream::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The kind of operation.
    pub kind: OpKind,
    /// Bytes of the value for writes, entries for scans, 0 otherwise.
    pub size: u32,
}

/// The part of the keys and operations that one thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The thread's number, from 0.
    pub thread: usize,
    /// The number of threads.
    pub threads: usize,
}

impl Share {
    /// Returns this thread's part of `items`: the first item, and the number of items.
    #[must_use]
    pub fn of(&self, items: u64) -> (u64, u64) {
        let at = |thread: usize| {
            let threads = self.threads.max(1) as u128;
            (u128::from(items) * thread as u128 / threads) as u64
        };
        let first = at(self.thread);
        (first, at(self.thread + 1) - first)
    }
}

/// An endless, reproducible stream of operations.
#[derive(Clone, Debug)]
pub struct OpStream {
    rng: Rng,
    keys: KeyChooser,
    format: KeyFormat,
    sizes: ValueSize,
    scan: ScanLength,
    /// The cumulated shares of the mix.
    thresholds: [u32; 6],
    missing: bool,
    items: u64,
    share: Share,
    inserted: u64,
}

impl OpStream {
    /// The operations of one thread on a database of `items` keys. `sizes` and `scan` apply where
    /// the workload prescribes nothing.
    #[must_use]
    pub fn new(
        spec: &Spec,
        share: Share,
        items: u64,
        seed: u64,
        format: KeyFormat,
        sizes: ValueSize,
        scan: ScanLength,
    ) -> OpStream {
        let mut sum = 0;
        let thresholds = spec.mix.parts().map(|part| {
            sum += part;
            sum
        });
        let (first, _) = share.of(items);
        OpStream {
            rng: Rng::stream(seed, share.thread as u64),
            keys: KeyChooser::new(spec.keys, items, first, mix64(seed)),
            format,
            sizes: spec.sizes.unwrap_or(sizes),
            scan: spec.scan.unwrap_or(scan),
            thresholds,
            missing: spec.missing,
            items,
            share,
            inserted: 0,
        }
    }

    /// Returns the next operation and replaces the contents of `key` with its key.
    #[inline]
    pub fn next(&mut self, key: &mut Vec<u8>) -> Op {
        const INSERT: usize = 2;
        let total = self.thresholds[5];
        // A mix of one operation needs no draw.
        let part = if self.thresholds[0] == total {
            0
        } else {
            let drawn = self.rng.below(u64::from(total)) as u32;
            self.thresholds.iter().take_while(|&&threshold| drawn >= threshold).count()
        };
        let index = if part == INSERT {
            self.insert()
        } else {
            let newest = self.newest();
            self.keys.next(&mut self.rng, newest)
        };
        self.format.write(index, key);
        if self.missing {
            // A key with one more byte lies between this key and the next, so that only a filter
            // can tell that it is missing.
            key.push(b'.');
        }
        let (kind, size) = match part {
            0 => (OpKind::Read, 0),
            1 | INSERT => (OpKind::Write, self.sizes.draw(&mut self.rng)),
            3 => (OpKind::Scan, self.scan.draw(&mut self.rng)),
            4 => (OpKind::ReadModifyWrite, self.sizes.draw(&mut self.rng)),
            _ => (OpKind::Delete, 0),
        };
        Op { kind, size }
    }

    /// Threads take turns in numbering new keys, which follow the loaded range.
    fn insert(&mut self) -> u64 {
        let index =
            self.items + self.share.thread as u64 + self.inserted * self.share.threads as u64;
        self.inserted += 1;
        index
    }

    /// The newest existing key that this thread knows.
    fn newest(&self) -> u64 {
        match self.inserted {
            0 => self.items.saturating_sub(1),
            n => self.items + self.share.thread as u64 + (n - 1) * self.share.threads as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyStyle, WORKLOAD_NAMES};
    use std::collections::HashSet;

    const FORMAT: KeyFormat = KeyFormat { size: 16, style: KeyStyle::BigEndian };

    fn stream(name: &str, share: Share, items: u64, seed: u64) -> OpStream {
        let spec = Spec::named(name).unwrap();
        OpStream::new(
            &spec,
            share,
            items,
            seed,
            FORMAT,
            ValueSize::Fixed(100),
            ScanLength::Fixed(50),
        )
    }

    fn take(mut stream: OpStream, count: usize) -> Vec<(Op, Vec<u8>)> {
        let mut key = Vec::new();
        (0..count).map(|_| (stream.next(&mut key), key.clone())).collect()
    }

    #[test]
    fn a_seed_fixes_every_operation_of_every_workload() {
        let share = Share { thread: 1, threads: 3 };
        for name in WORKLOAD_NAMES {
            let one = take(stream(name, share, 10_000, 5), 500);
            assert_eq!(one, take(stream(name, share, 10_000, 5), 500), "{name}");
            if !name.starts_with("fillseq") {
                assert_ne!(one, take(stream(name, share, 10_000, 6), 500), "{name}");
            }
        }
    }

    #[test]
    fn sequential_and_shuffled_threads_meet_every_key_once() {
        for name in ["fillseq", "ycsb-load"] {
            let mut seen = HashSet::new();
            for thread in 0..3 {
                let share = Share { thread, threads: 3 };
                let (_, count) = share.of(1_000);
                for (op, key) in take(stream(name, share, 1_000, 1), count as usize) {
                    assert_eq!(op, Op { kind: OpKind::Write, size: 100 });
                    assert!(seen.insert(key), "{name} writes a key twice");
                }
            }
            assert_eq!(seen.len(), 1_000, "{name}");
        }
    }

    #[test]
    fn mixes_have_their_ratios() {
        let share = Share { thread: 0, threads: 1 };
        let count = |name: &str, kind: OpKind| {
            let ops = take(stream(name, share, 1_000, 3), 20_000);
            ops.iter().filter(|(op, _)| op.kind == kind).count() as f64 / 200.0
        };
        for (name, kind, percent) in [
            ("nutanix", OpKind::Write, 57.0),
            ("nutanix", OpKind::Read, 41.0),
            ("nutanix", OpKind::Scan, 2.0),
            ("ycsb-a", OpKind::Write, 50.0),
            ("ycsb-b", OpKind::Read, 95.0),
            ("ycsb-e", OpKind::Scan, 95.0),
            ("ycsb-f", OpKind::ReadModifyWrite, 50.0),
            ("readrandom", OpKind::Read, 100.0),
            ("overwrite", OpKind::Write, 100.0),
        ] {
            let got = count(name, kind);
            assert!((got - percent).abs() < 1.5, "{name} {kind:?}: {got} %");
        }
    }

    #[test]
    fn inserts_are_new_keys_and_missing_reads_never_meet_one() {
        let mut key = Vec::new();
        FORMAT.write(999, &mut key);
        let mut inserted = HashSet::new();
        for thread in 0..2 {
            let ops = take(stream("ycsb-d", Share { thread, threads: 2 }, 1_000, 3), 5_000);
            for (_, new) in ops.iter().filter(|(op, _)| op.kind == OpKind::Write) {
                assert!(*new > key && inserted.insert(new.clone()));
            }
        }
        assert!(inserted.len() > 300);
        let missing = take(stream("readmissing", Share { thread: 0, threads: 1 }, 1_000, 3), 100);
        assert!(missing.iter().all(|(_, key)| key.len() == 17 && key[16] == b'.'));
    }
}
