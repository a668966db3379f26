//! When keys were written last, by bucket: what optimistic transactions are validated against.
//!
//! 1. The first transaction turns the table on ([`Conflicts::turn_on`]), as the commit leader.
//! 2. A writer computes the buckets of its keys before it joins the queue ([`Touched::of`]).
//! 3. The leader numbers a write and notes its last sequence number at these buckets
//!    ([`Conflicts::note`]).
//! 4. A transaction validates outside the queue as of a visible sequence number. Then it joins the
//!    queue with a [`Condition`], which the leader checks as it numbers the write
//!    ([`Conflicts::hold`]).
//!
//! What must stay true: a bucket is noted before the write becomes visible, and never goes back. So
//! a bucket that is not newer than `V` proves that none of its keys was written after `V`. A newer
//! bucket proves nothing.

use std::sync::OnceLock;

use sateen_control::{SeqNo, ValueKind};
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::xxh3::xxh3_64;

use super::Payload;

/// Number of buckets.
const BUCKETS: usize = 1 << 16;

/// A bucket of keys. The column family does not count.
pub(crate) type Bucket = u16;

/// Returns the bucket of `key`. Equal keys have equal bytes, whatever the comparator.
#[inline]
pub(crate) fn bucket_of(key: &[u8]) -> Bucket {
    let [low, high, ..] = xxh3_64(key).to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// The keys of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    buckets: Vec<Bucket>,
    /// True if it may write other keys, too: it has a range tombstone.
    unlisted: bool,
}

impl Touched {
    /// Fills in the keys of `payload`.
    pub(crate) fn of(&mut self, payload: &Payload<'_>) {
        self.buckets.clear();
        self.unlisted = false;
        match payload {
            Payload::Single { kind, key, .. } => self.add(*kind, key),
            Payload::Batch(batch) => batch.iter().for_each(|entry| self.add(entry.kind, entry.key)),
        }
    }

    fn add(&mut self, kind: ValueKind, key: &[u8]) {
        if kind == ValueKind::RangeDelete {
            self.unlisted = true;
        } else {
            self.buckets.push(bucket_of(key));
        }
    }
}

/// What must hold when a transaction is numbered: nothing was written to `buckets` after `checked`.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) buckets: Vec<Bucket>,
    /// The sequence number as of which the transaction was validated.
    pub(crate) checked: SeqNo,
}

/// When keys were written last.
#[derive(Default)]
pub(crate) struct Conflicts {
    on: AtomicBool,
    /// The newest sequence number of each bucket. Set once, when the table is turned on.
    buckets: OnceLock<Box<[AtomicU64]>>,
    /// The newest write that may have written any key.
    unlisted: AtomicU64,
    /// The newest entry that never was in a memtable, because its file was ingested.
    ingested: AtomicU64,
}

impl Conflicts {
    /// Returns true if writes are noted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Notes writes from now on. The caller leads. `last` is the newest sequence number that is
    /// assigned.
    pub(crate) fn turn_on(&self, last: SeqNo) {
        self.buckets.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
        // Whatever was written before may have been any key.
        self.unlisted.fetch_max(last.0, Ordering::AcqRel);
        self.on.store(true, Ordering::Release);
    }

    /// Notes a write whose last sequence number is `last`. `None` if its keys are not known. The
    /// caller leads.
    pub(crate) fn note(&self, touched: Option<&Touched>, last: SeqNo) {
        let Some(buckets) = self.buckets.get() else { return };
        let Some(touched) = touched else { return self.unlisted.store(last.0, Ordering::Release) };
        for bucket in &touched.buckets {
            if let Some(noted) = buckets.get(usize::from(*bucket)) {
                noted.store(last.0, Ordering::Release);
            }
        }
        if touched.unlisted {
            self.unlisted.store(last.0, Ordering::Release);
        }
    }

    /// Notes that files were ingested with sequence numbers up to `last`. The caller leads.
    pub(crate) fn note_ingested(&self, last: SeqNo) {
        self.ingested.store(last.0, Ordering::Release);
    }

    /// Returns the newest sequence number of an ingested file.
    pub(crate) fn ingested(&self) -> SeqNo {
        SeqNo(self.ingested.load(Ordering::Acquire))
    }

    /// Returns false only if no key of `bucket` was written after `seqno`.
    #[inline]
    pub(crate) fn may_differ(&self, bucket: Bucket, seqno: SeqNo) -> bool {
        let noted = self.buckets.get().and_then(|buckets| buckets.get(usize::from(bucket)));
        noted.is_none_or(|noted| noted.load(Ordering::Acquire) > seqno.0)
            || self.unlisted.load(Ordering::Acquire) > seqno.0
            || self.ingested.load(Ordering::Acquire) > seqno.0
    }

    /// Returns true if `condition` holds for a write that is numbered now. The caller leads.
    pub(crate) fn hold(&self, condition: &Condition) -> bool {
        let Condition { buckets, checked } = condition;
        !buckets.iter().any(|bucket| self.may_differ(*bucket, *checked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(keys: &[&str]) -> Touched {
        let mut touched = Touched::default();
        keys.iter().for_each(|key| touched.add(ValueKind::Put, key.as_bytes()));
        touched
    }

    #[test]
    fn a_condition_holds_until_a_key_of_it_is_written() {
        let conflicts = Conflicts::default();
        conflicts.turn_on(SeqNo(10));
        let buckets = vec![bucket_of(b"a"), bucket_of(b"b")];
        let condition = Condition { buckets: buckets.clone(), checked: SeqNo(10) };
        assert!(conflicts.hold(&condition));
        let before = Condition { buckets, checked: SeqNo(9) };
        assert!(!conflicts.hold(&before), "what came before the table is not known");
        conflicts.note(Some(&touched(&["c", "d"])), SeqNo(12));
        assert!(conflicts.hold(&condition));
        conflicts.note(Some(&touched(&["c", "b"])), SeqNo(14));
        assert!(!conflicts.hold(&condition));
    }

    #[test]
    fn writes_without_a_list_of_keys_touch_all() {
        for which in 0..3 {
            let conflicts = Conflicts::default();
            conflicts.turn_on(SeqNo(1));
            let condition = Condition { buckets: vec![bucket_of(b"a")], checked: SeqNo(1) };
            assert!(conflicts.hold(&condition));
            match which {
                0 => conflicts.note(None, SeqNo(2)),
                1 => conflicts.note_ingested(SeqNo(2)),
                _ => {
                    let mut range = Touched::default();
                    range.add(ValueKind::RangeDelete, b"x");
                    conflicts.note(Some(&range), SeqNo(2));
                }
            }
            assert!(!conflicts.hold(&condition), "{which}");
        }
    }
}
