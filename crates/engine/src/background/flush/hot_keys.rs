//! Hot keys: keys that are overwritten often stay in memory when their memtable is flushed (TRIAD's
//! memory component), so that level 0 does not get them.
//!
//! 1. `hot_keys` counts the entries of each key. Of the keys with at least as many as the mean it
//!    takes the most frequent ones, up to a share of the memtable (`memtable_hot_part`).
//! 2. `write_again` of the commit pipeline writes their newest values to the WAL and the active
//!    memtable again.
//! 3. [`FlushJob::keep`] merges these newer entries into the input, where they hide the old ones.
//!
//! What must stay true:
//!
//! - A value is written again only if no newer entry exists. No writer gets between that check and
//!   the new entry.
//! - What a flush leaves out is durable in a WAL before the flush is installed. Older snapshots
//!   still find it in the table.
//! - Nothing is left out if a client waits until everything is stored.
//! - Nothing is left out if some writes bypass the WAL. What is written again is logged, so a part
//!   of an unlogged batch would get into the WAL.
//!
//! If the values of the memtable stay in the WAL, no key stays in memory: the flush writes none of
//! these values anyway, and writing them again would cost more than it saves.

use std::cmp::Reverse;
use std::sync::Arc;

use sateen_control::{Comparator, UserKey, ValueKind};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::iter::merging_iter::MergingIter;
use sateen_store::memtable::MemTable;

use super::Flusher;
use super::job::FlushJob;
use crate::tree::families::Sealed;

/// Number of entries that make a key hot, at least. The mean counts if it is higher.
const ENTRIES_MIN: u64 = 2;
/// Number of keys that are written again at a time, while clients' writes wait.
const KEYS_AT_A_TIME: usize = 32;

impl Flusher {
    /// Keeps hot keys of a flush that has not begun in memory, if the options of its column family
    /// say so. If that is not possible, the flush stores them as usual.
    pub(crate) fn keep_hot_keys(&self, job: &mut FlushJob) {
        let part = job.family.options().memtable_hot_part;
        if part <= 0.0 || job.must_store() || job.leaves_values() {
            return;
        }
        if !self.has_log_for(&job.family) {
            return;
        }
        // A part of a batch that was not logged must not get into a WAL.
        if self.writes.has_unlogged_writes() {
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of a size, which is far below 2^53"
        )]
        let bytes_max = (job.input_bytes() as f64 * part) as u64;
        let kept = Arc::new(MemTable::new(0, None, job.family.comparator()));
        let found = hot_keys(job.sealed(), bytes_max, job.family.comparator());
        for keys in found.unwrap_or_default().chunks(KEYS_AT_A_TIME) {
            let Ok(written) = self.writes.pipeline.write_again(&job.family, job.last_seqno(), keys)
            else {
                break;
            };
            for (place, seqno) in written {
                if let Some(key) = keys.get(place) {
                    kept.insert(key.bytes(), seqno, ValueKind::Put, &[]);
                }
            }
        }
        if !kept.is_empty() {
            job.keep(kept, self.writes.snapshot_list());
        }
    }
}

/// Returns the keys of `memtables` with the most entries, in ascending order. Their entries have at
/// most `bytes_max` bytes together. A key with fewer entries than the mean is left out, and so is
/// one whose newest entry is a deletion.
fn hot_keys(memtables: &[Sealed], bytes_max: u64, comparator: &Comparator) -> Result<Vec<UserKey>> {
    struct Hot {
        entries: u64,
        bytes: u64,
        key: UserKey,
    }
    let children = memtables.iter().map(|sealed| sealed.memtable.iter()).collect();
    let mut input = MergingIter::new(children, comparator);
    let mut hot: Vec<Hot> = Vec::new();
    let (mut keys_all, mut entries_all) = (0_u64, 0_u64);
    // The key under the cursor, its entries so far, and the bytes of its newest entry (0 if that is
    // a deletion).
    let mut current: (Vec<u8>, u64, u64) = (Vec::new(), 0, 0);
    let mut take = |(key, entries, bytes): &(Vec<u8>, u64, u64)| {
        keys_all += u64::from(*entries > 0);
        entries_all += entries;
        if *entries >= ENTRIES_MIN && *bytes > 0 {
            hot.push(Hot { entries: *entries, bytes: *bytes, key: comparator.key(key) });
        }
    };
    input.seek_to_first()?;
    while input.valid() {
        let user_key = key::user_key(input.key());
        if current.1 > 0 && current.0 == user_key {
            current.1 += 1;
        } else {
            take(&current);
            let is_value = key::kind(input.key()) == Some(ValueKind::Put);
            let bytes = (input.key().len() + input.value().len()) as u64;
            current.0.clear();
            current.0.extend_from_slice(user_key);
            (current.1, current.2) = (1, if is_value { bytes } else { 0 });
        }
        input.next()?;
    }
    take(&current);
    hot.retain(|hot| hot.entries.saturating_mul(keys_all) >= entries_all);
    hot.sort_by_key(|hot| Reverse(hot.entries));
    let mut bytes = 0;
    let fits = hot.iter().take_while(|hot| {
        bytes += hot.bytes;
        bytes <= bytes_max
    });
    let fits = fits.count();
    hot.truncate(fits);
    let mut keys: Vec<_> = hot.into_iter().map(|hot| hot.key).collect();
    keys.sort_unstable();
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use sateen_control::SeqNo;

    use super::*;
    use crate::{Db, Options};
    use sateen_store::vfs::MemVfs;

    /// A client may ask for a flush while the running one looks for hot keys.
    #[test]
    fn nothing_is_kept_of_what_somebody_wants_in_tables_by_now() {
        let options = Options { background_threads: 0, ..Options::profile("triad").unwrap() };
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        let family = db.default_column_family().data.clone();
        let last_seqno = || db.core().writes.pipeline.exclusive(|stage| stage.last_seqno());
        let write_again = || {
            db.put("hot", "value").unwrap();
            let last = last_seqno();
            let keys = [family.comparator().key(b"hot")];
            let again =
                || db.core().writes.pipeline.write_again(&family, last, &keys).unwrap().len();
            let before = again();
            family.store_through(SeqNo(last.0 + 1));
            (before, again(), last_seqno().0 - last.0)
        };
        assert_eq!(write_again(), (1, 0, 1));
        assert_eq!(write_again(), (1, 0, 1), "what is newer may stay");
    }
}
