//! Time to live. In a column family with the option `ttl` each stored value ends with the second of
//! its write, as in RocksDB's `DBWithTTL` (four bytes, little-endian, seconds since 1970). Only
//! this file handles these times.
//!
//! 1. Writes append the time ([`timed`], [`timed_batch`]).
//! 2. Reads remove it ([`untimed`]) and hide expired values ([`hidden_before`],
//!    [`is_from_before`]).
//! 3. Compactions drop expired values (`Expiring`).
//! 4. Operators and filters of users see values without times (`TimedMerging`, `ExpiringFilter`).
//!
//! What must stay true: whether a column family has times is decided when it is created, and does
//! not change while it has values (`open/forms.rs`). All times come from the clock in the options,
//! which decides only what expires.

use std::time::Duration;

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchItem, VALUE_BYTES_MAX, encode_entry, encode_log_data};

use crate::batch::WriteBatch;
pub(crate) use crate::entry::TIME_BYTES;
use crate::entry::malformed;
use crate::operators::compaction_filter::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, Decision, Filtering,
};
use crate::operators::merge::{MergeOperator, Merging};
use crate::operators::wall_clock::WallClock;
use crate::options::ColumnFamilyOptions;

#[cfg(test)]
mod tests;

/// The second in which RocksDB began to write times. A value that ends with an earlier one was
/// written without a time.
const EARLIEST: u32 = 1_368_146_402;

// ---- writing -----------------------------------------------------------------------------------

/// Returns `value` with the current time appended. Fails if that makes it too large.
pub(crate) fn timed(value: &[u8], clock: &WallClock) -> Result<Vec<u8>> {
    if value.len() > VALUE_BYTES_MAX - TIME_BYTES {
        let text = format!("a value of {} bytes leaves no room for its time", value.len());
        return Err(Error::InvalidArgument(text));
    }
    Ok(with_time(value, time(clock)))
}

/// Returns the current time as it stands at the end of a value. A clock that is wrong tells no time
/// that readers would not accept.
pub(crate) fn time(clock: &WallClock) -> [u8; TIME_BYTES] {
    clock.now().max(EARLIEST).to_le_bytes()
}

/// Returns `batch` with the current time appended to the values of column families with times.
pub(crate) fn timed_batch(
    batch: &WriteBatch,
    has_times: impl Fn(ColumnFamilyId) -> bool,
    clock: &WallClock,
) -> Result<WriteBatch> {
    let mut data = Vec::with_capacity(batch.len_bytes());
    for item in batch.items() {
        let entry = match item {
            BatchItem::Write(entry) => entry,
            BatchItem::LogData(blob) => {
                encode_log_data(&mut data, blob);
                continue;
            }
        };
        let (family, kind, key) = (entry.column_family, entry.kind, entry.key);
        if matches!(kind, ValueKind::Put | ValueKind::Merge) && has_times(family) {
            encode_entry(&mut data, family, kind, key, &timed(entry.value, clock)?);
        } else {
            encode_entry(&mut data, family, kind, key, entry.value);
        }
    }
    WriteBatch::from_data(data)
}

/// Returns `value` with `time` appended.
pub(crate) fn with_time(value: &[u8], time: [u8; TIME_BYTES]) -> Vec<u8> {
    [value, &time].concat()
}

// ---- reading -----------------------------------------------------------------------------------

/// Returns an error if `stored` does not end with a time.
pub(crate) fn check(stored: &[u8]) -> Result<()> {
    match split(stored) {
        Some(_) => Ok(()),
        None => Err(malformed("a value without the time of its write, although `ttl` is set")),
    }
}

/// Returns the second before which values are hidden from a reader that begins now; 0 hides none.
pub(crate) fn hidden_before(options: &ColumnFamilyOptions, clock: &WallClock) -> u64 {
    match options.ttl {
        Some(ttl) if options.ttl_hide_expired => expired_before(ttl, clock),
        _ => 0,
    }
}

/// Returns the second before which values have expired by now; 0 if none has.
fn expired_before(ttl: Duration, clock: &WallClock) -> u64 {
    match ttl.as_secs() {
        0 => 0,
        seconds => u64::from(clock.now()).saturating_sub(seconds),
    }
}

/// Returns true if `stored` was written before the second `before`. Without a time it was not.
pub(crate) fn is_from_before(stored: &[u8], before: u64) -> bool {
    split(stored).is_some_and(|(_, time)| u64::from(u32::from_le_bytes(time)) < before)
}

/// Returns the value in `stored`, without the time.
pub(crate) fn untimed(stored: &[u8]) -> &[u8] {
    split(stored).map_or(stored, |(value, _)| value)
}

/// Returns the value in `stored` and its time; `None` if it has no time.
fn split(stored: &[u8]) -> Option<(&[u8], [u8; TIME_BYTES])> {
    let (value, time) = stored.split_last_chunk()?;
    (u32::from_le_bytes(*time) >= EARLIEST).then_some((value, *time))
}

// ---- merging and compacting --------------------------------------------------------------------

impl ColumnFamilyOptions {
    /// Returns the merge operator for stored values, which have times if `ttl` is set.
    pub(crate) fn stored_merging(&self) -> Option<Merging> {
        let Some(ttl) = self.ttl else { return self.merge_operator.clone() };
        let lifetime = if self.ttl_hide_expired { ttl.as_secs() } else { 0 };
        self.merge_operator.clone().map(|by| Merging::new(TimedMerging { by, lifetime }))
    }

    /// Returns the compaction filter for stored values.
    pub(crate) fn stored_filtering(&self, clock: &WallClock) -> Option<Filtering> {
        let Some(ttl) = self.ttl else { return self.compaction_filter.clone() };
        let (inner, clock) = (self.compaction_filter.clone(), clock.clone());
        self.filters().then(|| Filtering::new(Expiring { ttl, clock, inner }))
    }

    /// Returns true if compactions must filter entries.
    pub(crate) fn filters(&self) -> bool {
        self.compaction_filter.is_some() || self.ttl.is_some_and(|ttl| !ttl.is_zero())
    }
}

/// Merges the values without their times. The result gets the time of the newest operand.
///
/// A merge does not bring back what readers no longer saw when it was written: a value or operand
/// that had expired by the time of the next operand is left out, with everything before it. So the
/// result is the same whether or not a compaction has dropped that already.
struct TimedMerging {
    by: Merging,
    /// How many seconds a value is seen; 0 is for ever.
    lifetime: u64,
}

impl TimedMerging {
    /// Merges the values of `operands` by `merge`; `None` if one has no time.
    fn merge(
        operands: &[&[u8]],
        merge: impl FnOnce(&[&[u8]]) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let (_, time) = split(operands.last()?)?;
        let values: Option<Vec<_>> =
            operands.iter().map(|operand| Some(split(operand)?.0)).collect();
        Some(with_time(&merge(&values?)?, time))
    }

    /// Returns true if `stored` had expired when `next` was written.
    fn had_expired(&self, stored: &[u8], next: &[u8]) -> bool {
        let written = split(next).map_or(0, |(_, time)| u64::from(u32::from_le_bytes(time)));
        self.lifetime > 0 && is_from_before(stored, written.saturating_sub(self.lifetime))
    }
}

impl MergeOperator for TimedMerging {
    fn name(&self) -> &str {
        self.by.name()
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let expired = |pair: &[&[u8]]| matches!(pair, [one, next] if self.had_expired(one, next));
        let begin = operands.windows(2).rposition(expired).map_or(0, |at| at + 1);
        let seen = operands.get(begin..)?;
        let is_seen = |stored: &&[u8]| {
            begin == 0 && !seen.first().is_some_and(|next| self.had_expired(stored, next))
        };
        let existing = match existing.filter(is_seen) {
            Some(stored) => Some(split(stored)?.0),
            None => None,
        };
        TimedMerging::merge(seen, |values| self.by.full(key, existing, values))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        // The time of the oldest one, which would be lost, may decide what is left out.
        let time = |operand: &&[u8]| split(operand).map(|(_, time)| time);
        if self.lifetime > 0 && operands.first().and_then(time) != operands.last().and_then(time) {
            return None;
        }
        TimedMerging::merge(operands, |values| self.by.partial(key, values))
    }
}

/// Drops values that had expired when the compaction began, and asks the user's filter about the
/// others.
struct Expiring {
    ttl: Duration,
    clock: WallClock,
    inner: Option<Filtering>,
}

impl CompactionFilterFactory for Expiring {
    fn name(&self) -> &str {
        self.inner.as_ref().map_or("ttl", Filtering::name)
    }

    fn create(&self, context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
        let inner = self.inner.as_ref().and_then(|inner| inner.create(context));
        let expired_before = expired_before(self.ttl, &self.clock);
        Some(Box::new(ExpiringFilter { expired_before, inner }))
    }
}

/// The filter of [`Expiring`] for one compaction.
struct ExpiringFilter {
    expired_before: u64,
    inner: Option<Box<dyn CompactionFilter>>,
}

impl ExpiringFilter {
    /// Asks the user's filter about the value in `stored`, and keeps its time.
    fn ask(
        &mut self,
        stored: &[u8],
        ask: impl FnOnce(&mut dyn CompactionFilter, &[u8]) -> Decision,
    ) -> Decision {
        // A value without a time is kept. Its readers get the error.
        let Some((value, time)) = split(stored) else { return Decision::Keep };
        match self.inner.as_deref_mut().map(|inner| ask(inner, value)) {
            Some(Decision::Change(value)) => Decision::Change(with_time(&value, time)),
            Some(decision) => decision,
            None => Decision::Keep,
        }
    }
}

impl CompactionFilter for ExpiringFilter {
    fn filter(&mut self, level: u8, key: &[u8], stored: &[u8]) -> Decision {
        if is_from_before(stored, self.expired_before) {
            return Decision::Remove;
        }
        self.ask(stored, |inner, value| inner.filter(level, key, value))
    }

    /// Operands expire with the value that is made of them.
    fn filter_operand(&mut self, level: u8, key: &[u8], stored: &[u8]) -> Decision {
        self.ask(stored, |inner, value| inner.filter_operand(level, key, value))
    }
}
