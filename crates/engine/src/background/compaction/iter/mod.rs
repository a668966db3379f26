//! Decides which entries of a merged stream a flush or compaction keeps.
//!
//! The snapshots divide the sequence numbers into strata. All readers see the same entries of a
//! stratum, so only the newest entry of a key in each stratum can be read. The visible sequence
//! number is the last snapshot of the list; entries above it are in a stratum of their own and are
//! kept as they are.
//!
//! [`CompactionIter::pull`] moves over the input; for each entry, `examine`
//!
//! 1. asks whether a range tombstone of the same stratum deletes the entry (`is_covered`);
//! 2. ends the collection of operands if the entry is not one more of them (`end_operands`);
//! 3. enters the key, and checks the order of the input (`enter_key`);
//! 4. drops the entry if it is covered, or if a newer entry of its stratum hides it;
//! 5. collects an operand, after the filter has seen it;
//! 6. shows a value that is the newest entry of its key to the filter, which may change it or make
//!    a deletion of it;
//! 7. drops a deletion that hides nothing: no entry of the key exists below (`bottommost`) and no
//!    older one is kept;
//! 8. gives out a value, with sequence number 0 if every reader sees it and nothing older exists
//!    below (`put_trailer`). That compresses better.
//!
//! Operands of one stratum are collected, newest first, until the value or deletion that they apply
//! to is found, or until the key ends. If that base is known they become one value (`end_operands`,
//! `settle_operands`). Otherwise they become fewer operands, if the operator can combine them. What
//! the operator refuses stays as it was.
//!
//! What must stay true:
//!
//! - Every snapshot in the list, and every one taken later at or above the last of them, reads the
//!   same from the output (and what lies below it) as from the input.
//! - Entries above the visible sequence number (format rule F6) are kept as they are, because a
//!   snapshot between any two of them may still be taken.
//! - No value under a range tombstone gets sequence number 0, because it would look older than the
//!   tombstone.
//! - The output ascends strictly, like the input, which is checked.
//! - One pull does a bounded amount of work, so that a job's step ends with its grant.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use covering::Covering;
use sateen_control::version::RangeTombstones;
use sateen_control::{Comparator, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key::{self, TRAILER_BYTES};
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::merging_iter::MergingIter;

use crate::entry::{Visible, malformed};
use crate::operators::compaction_filter::{ActiveFilter, Decision};
use crate::operators::merge::{Merging, Operands};

mod covering;
mod encoded;
mod operands;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use encoded::EncodedValues;
pub(crate) use stats::CompactionStats;

/// The result of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// An entry to keep. `key` and `value` return it until the next pull.
    Entry,
    /// The input that may be read is used up, without an entry to keep. Pull again later.
    Paused,
    /// The input is exhausted.
    End,
}

/// What `pull` does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resume {
    /// Examines the entry under the cursor.
    Examine,
    /// Moves on, because the entry under the cursor is done.
    Advance,
    /// Gives out the value under the cursor, after the deletion that had to come first.
    Put { stratum: usize },
}

/// Where the value of the last entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Nowhere: the entry is a deletion.
    Nothing,
    /// Under the cursor.
    Input,
    /// In `made`.
    Made,
}

/// A filter over a merged stream of internal entries, which the caller pulls from.
///
/// `bottommost(user_key)` returns true if no entry of the key exists below the inputs. It is asked
/// at most once a key, in ascending order of keys, and only if the answer matters.
pub(crate) struct CompactionIter<I, B> {
    input: I,
    bounds: IterBounds,
    comparator: Comparator,
    bottommost: B,
    /// Ascending; the last one is the visible sequence number.
    snapshots: Vec<SeqNo>,
    resume: Resume,
    /// The current user key, and the trailer of the last entry that was given out.
    key: Vec<u8>,
    /// Whether there is a current user key.
    has_key: bool,
    /// Whether the entry under the cursor is the first one examined of the current user key.
    is_newest: bool,
    /// The trailer of the last entry examined of the current user key.
    last_trailer: u64,
    /// The stratum of the last entry examined that hides older ones of its stratum.
    hiding_stratum: Option<usize>,
    /// The answer of `bottommost` for the current user key, once it was asked.
    is_bottommost: Option<bool>,
    /// A deletion that is given out only if an older value of the key is kept.
    pending_delete: Option<u64>,
    merging: Option<Merging>,
    filter: Option<ActiveFilter>,
    ranges: Option<Covering>,
    /// Set if values are encoded, in the input and in what is given out.
    encoded: Option<EncodedValues>,
    /// Operands of the current user key that are collected, and their trailers.
    operands: Operands,
    trailers: Vec<u64>,
    /// Trailers and values of the current user key that are given out before the input goes on.
    ready: VecDeque<(u64, Vec<u8>)>,
    /// Number of entries of the current user key that were given out.
    emitted_of_key: u64,
    shown: Shown,
    /// The last value that was given out, if it is not one of the input.
    made: Vec<u8>,
    /// The error that ended the iteration.
    failed: Option<Error>,
    stats: CompactionStats,
}

impl<R: InternalIterator, B: FnMut(&[u8]) -> bool> CompactionIter<MergingIter<R>, B> {
    /// Opens run `index` and moves it to its first entry, for inputs whose runs take long to open;
    /// the last call replaces [`Self::start`]. Returns false if there is no such run, and all runs
    /// are merged.
    pub(crate) fn open_run(&mut self, index: usize) -> Result<bool> {
        let opened = self.input.open_child(index);
        opened.map_err(|error| self.fail(error))
    }
}

impl<I: InternalIterator, B: FnMut(&[u8]) -> bool> CompactionIter<I, B> {
    /// Creates a filter over the entries of `input` within `bounds`, for readers at `snapshots`.
    /// These ascend and end with the visible sequence number. Call [`Self::start`] before the first
    /// pull.
    pub(crate) fn new(
        input: I,
        bounds: IterBounds,
        snapshots: Vec<SeqNo>,
        bottommost: B,
    ) -> CompactionIter<I, B> {
        assert!(snapshots.is_sorted(), "snapshots ascend");
        CompactionIter {
            input,
            bounds,
            comparator: Comparator::BYTEWISE,
            bottommost,
            snapshots,
            resume: Resume::Examine,
            key: Vec::new(),
            has_key: false,
            is_newest: false,
            last_trailer: 0,
            hiding_stratum: None,
            is_bottommost: None,
            pending_delete: None,
            merging: None,
            filter: None,
            ranges: None,
            encoded: None,
            operands: Operands::default(),
            trailers: Vec::new(),
            ready: VecDeque::new(),
            emitted_of_key: 0,
            shown: Shown::Nothing,
            made: Vec::new(),
            failed: None,
            stats: CompactionStats::default(),
        }
    }

    /// Sets the order of keys.
    pub(crate) fn compared_by(mut self, comparator: &Comparator) -> CompactionIter<I, B> {
        self.comparator = comparator.clone();
        self
    }

    /// Sets the merge operator.
    pub(crate) fn with_merging(mut self, merging: Option<Merging>) -> CompactionIter<I, B> {
        self.merging = merging;
        self
    }

    /// Declares that values of the input are encoded by
    /// [`Separated`](sateen_store::table::Separated). So are then those that are given out.
    pub(crate) fn with_encoded(mut self, values: Option<EncodedValues>) -> CompactionIter<I, B> {
        self.encoded = values;
        self
    }

    /// Returns the values of the input, if they are encoded.
    #[inline]
    pub(crate) fn encoded(&mut self) -> Option<&mut EncodedValues> {
        self.encoded.as_mut()
    }

    /// Sets the compaction filter. Call it before the first pull.
    pub(crate) fn filter_by(&mut self, filter: Option<ActiveFilter>) {
        self.filter = filter;
    }

    /// Drops entries that `ranges` delete, unless a snapshot needs them.
    pub(crate) fn with_ranges(mut self, ranges: &Arc<RangeTombstones>) -> CompactionIter<I, B> {
        self.ranges = Covering::new(ranges);
        self
    }

    /// Moves to the first entry within the bounds.
    pub(crate) fn start(&mut self) -> Result<()> {
        let placed = match self.bounds.lower() {
            Some(lower) => self.input.seek(&key::seek_key(lower, SeqNo::MAX)),
            None => self.input.seek_to_first(),
        };
        placed.map_err(|error| self.fail(error))
    }

    /// Moves to the next entry to keep. Reads at most `bytes_in_max` bytes of input, and at least
    /// one entry. An error is final: every later pull returns it.
    pub(crate) fn pull(&mut self, bytes_in_max: u64) -> Result<Pulled> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.pull_within(bytes_in_max).map_err(|error| self.fail(error))
    }

    /// Returns the internal key of the entry, after [`Pulled::Entry`].
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the entry's value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Input => self.input.value(),
            Shown::Made => &self.made,
        }
    }

    /// Returns true if this is the first entry of its user key that was given out. Only here may an
    /// output table begin, because tables of a run share no user key.
    #[inline]
    pub(crate) fn starts_user_key(&self) -> bool {
        self.emitted_of_key == 1
    }

    /// Returns what happened to the entries so far.
    pub(crate) fn stats(&self) -> &CompactionStats {
        &self.stats
    }

    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }

    fn pull_within(&mut self, bytes_in_max: u64) -> Result<Pulled> {
        if let Some((trailer, value)) = self.ready.pop_front() {
            return Ok(self.emit_made(trailer, value));
        }
        match self.resume {
            Resume::Examine => {}
            Resume::Advance => self.input.next()?,
            Resume::Put { stratum } => return Ok(self.emit_put(stratum)),
        }
        self.resume = Resume::Examine;
        let bytes_in_end = self.stats.bytes_in.saturating_add(bytes_in_max);
        loop {
            if !self.input.valid() || self.bounds.is_above(key::user_key(self.input.key())) {
                if let Some(emitted) = self.settle_operands() {
                    return Ok(emitted);
                }
                self.drop_pending();
                return Ok(Pulled::End);
            }
            if let Some(pulled) = self.examine()? {
                return Ok(pulled);
            }
            if self.stats.bytes_in >= bytes_in_end {
                self.resume = Resume::Advance;
                return Ok(Pulled::Paused);
            }
            self.input.next()?;
        }
    }

    /// Examines the entry under the cursor. Returns `None` if nothing is given out yet.
    #[inline]
    fn examine(&mut self) -> Result<Option<Pulled>> {
        let entry = self.input.key();
        let trailer = key::trailer(entry);
        let seqno = SeqNo(trailer >> 8);
        let kind = key::kind(entry);
        let bytes = entry.len() + self.input.value().len();
        let says = Visible::of(kind)?;
        let covered = self.ranges.is_some() && self.is_covered(seqno);
        let means = if covered { Visible::Deleted } else { says };
        if !self.operands.is_empty()
            && let Some(emitted) = self.end_operands(trailer, means)?
        {
            // The next pull examines this entry again.
            return Ok(Some(emitted));
        }
        match says {
            Visible::Value | Visible::Operand => self.stats.puts_in += 1,
            Visible::Deleted => self.stats.deletes_in += 1,
        }
        self.stats.bytes_in += bytes as u64;
        let is_new = self.enter_key(trailer)?;
        if says == Visible::Value
            && let Some(encoded) = &mut self.encoded
        {
            encoded.see(self.input.value());
        }
        if !is_new {
            self.count_dropped(says);
            return Ok(None);
        }

        let stratum = self.stratum(seqno);
        if covered || self.hiding_stratum == Some(stratum) {
            self.count_dropped(says);
            return Ok(None);
        }
        let above_visible = stratum == self.snapshots.len();
        if says == Visible::Operand {
            if above_visible {
                return Ok(Some(self.emit_input(trailer)));
            }
            let decision = self.filter_operand(seqno)?;
            match decision {
                Decision::Keep => self.operands.push_older(self.input.value()),
                Decision::Change(operand) => self.operands.push_older(&operand),
                Decision::Remove => {
                    self.count_dropped(says);
                    return Ok(None);
                }
            }
            self.trailers.push(trailer);
            return Ok(None);
        }
        let (mut says, mut trailer) = (says, trailer);
        if self.filter.is_some() && self.is_newest && says == Visible::Value && !above_visible {
            match self.filter_value(seqno)? {
                Decision::Keep => {}
                Decision::Change(value) => {
                    self.hiding_stratum = Some(stratum);
                    self.resume = Resume::Advance;
                    let trailer = self.put_trailer(stratum);
                    return Ok(Some(self.emit_made(trailer, value)));
                }
                Decision::Remove => {
                    // From here on the entry is a deletion.
                    self.stats.puts_in -= 1;
                    self.stats.deletes_in += 1;
                    says = Visible::Deleted;
                    trailer = key::pack(seqno, ValueKind::Delete);
                }
            }
        }
        self.hiding_stratum = if above_visible { None } else { Some(stratum) };

        if says == Visible::Deleted {
            if above_visible || !self.ask_bottommost() {
                return Ok(Some(self.emit_delete(trailer)));
            }
            // Nothing exists below, so the deletion matters only if an older value of the key stays
            // in the output. A pending deletion above this one is not needed then.
            self.drop_pending();
            if stratum == 0 {
                self.count_dropped(says);
            } else {
                self.pending_delete = Some(trailer);
            }
            return Ok(None);
        }
        if let Some(pending) = self.pending_delete.take() {
            let emitted = self.emit_delete(pending);
            self.resume = Resume::Put { stratum };
            return Ok(Some(emitted));
        }
        Ok(Some(self.emit_put(stratum)))
    }

    /// Asks the filter about the value under the cursor.
    fn filter_value(&mut self, seqno: SeqNo) -> Result<Decision> {
        let Some(filter) = &mut self.filter else { return Ok(Decision::Keep) };
        let value = match &mut self.encoded {
            Some(encoded) => encoded.joined(self.input.value())?,
            None => self.input.value(),
        };
        filter.value(seqno, key::user_key(&self.key), value)
    }

    /// Asks the filter about the operand under the cursor.
    fn filter_operand(&mut self, seqno: SeqNo) -> Result<Decision> {
        let Some(filter) = &mut self.filter else { return Ok(Decision::Keep) };
        filter.operand(seqno, key::user_key(&self.key), self.input.value())
    }

    /// Makes the user key under the cursor the current one, and checks the order of the input.
    /// Returns false if the same entry came before: a compaction that ended early leaves copies of
    /// its outputs in the level above.
    #[inline]
    fn enter_key(&mut self, trailer: u64) -> Result<bool> {
        let user_key = key::user_key(self.input.key());
        let current = key::user_key(&self.key);
        match if self.has_key { self.comparator.compare(current, user_key) } else { Ordering::Less }
        {
            Ordering::Equal if trailer < self.last_trailer => self.is_newest = false,
            Ordering::Equal if trailer == self.last_trailer => return Ok(false),
            Ordering::Less => {
                self.drop_pending();
                if let Some(encoded) = &mut self.encoded {
                    encoded.end_key();
                }
                self.key.clear();
                self.key.extend_from_slice(key::user_key(self.input.key()));
                self.key.extend_from_slice(&[0; TRAILER_BYTES]);
                self.has_key = true;
                self.is_newest = true;
                self.hiding_stratum = None;
                self.is_bottommost = None;
                self.emitted_of_key = 0;
            }
            Ordering::Equal | Ordering::Greater => {
                return Err(malformed("the entries to compact are out of order"));
            }
        }
        self.last_trailer = trailer;
        Ok(true)
    }

    /// Returns the stratum of `seqno`: the number of snapshots that are too old to see it. The same
    /// snapshots see all entries of a stratum, except above the last snapshot.
    #[inline]
    fn stratum(&self, seqno: SeqNo) -> usize {
        match self.snapshots.first() {
            Some(&oldest) if seqno <= oldest => 0,
            _ => self.snapshots.partition_point(|&snapshot| snapshot < seqno),
        }
    }

    /// Returns true if a range tombstone deletes the entry under the cursor for every reader that
    /// could see it.
    fn is_covered(&mut self, seqno: SeqNo) -> bool {
        let user_key = key::user_key(self.input.key());
        let above = self.ranges.as_mut().and_then(|ranges| ranges.above(user_key, seqno));
        let Some(deleted) = above else { return false };
        let stratum = self.stratum(seqno);
        stratum < self.snapshots.len() && stratum == self.stratum(deleted)
    }

    /// Returns true if the value of the current user key may get sequence number 0, provided that
    /// every reader sees it.
    #[inline]
    fn may_be_zeroed(&mut self) -> bool {
        let is_under = |ranges: &Covering| ranges.is_over(key::user_key(&self.key));
        !self.ranges.as_ref().is_some_and(is_under) && self.ask_bottommost()
    }

    /// Returns true if no entry of the current user key exists below the inputs.
    #[inline]
    fn ask_bottommost(&mut self) -> bool {
        match self.is_bottommost {
            Some(answer) => answer,
            None => *self.is_bottommost.insert((self.bottommost)(key::user_key(&self.key))),
        }
    }

    /// Gives out the value under the cursor.
    #[inline]
    fn emit_put(&mut self, stratum: usize) -> Pulled {
        let trailer = self.put_trailer(stratum);
        self.emit_input(trailer)
    }

    /// Returns the trailer under which the last value examined is given out.
    #[inline]
    fn put_trailer(&mut self, stratum: usize) -> u64 {
        let mut trailer = self.last_trailer;
        let everybody_sees_it = stratum == 0 && !self.snapshots.is_empty();
        if everybody_sees_it && trailer >> 8 != 0 && self.may_be_zeroed() {
            trailer = key::pack(SeqNo(0), ValueKind::Put);
            self.stats.seqnos_zeroed += 1;
        }
        trailer
    }

    /// Gives out the value or operand under the cursor.
    #[inline]
    fn emit_input(&mut self, trailer: u64) -> Pulled {
        self.stats.puts_out += 1;
        self.shown = Shown::Input;
        self.resume = Resume::Advance;
        self.emit(trailer, self.input.value().len())
    }

    /// Gives out an entry that is not under the cursor. `resume` stays as it is.
    fn emit_made(&mut self, trailer: u64, value: Vec<u8>) -> Pulled {
        let [kind, ..] = trailer.to_le_bytes();
        let has_value = ValueKind::from_byte(kind).is_some_and(ValueKind::has_value);
        if has_value {
            self.stats.puts_out += 1;
        } else {
            self.stats.deletes_out += 1;
        }
        self.shown = Shown::Made;
        let is_put = kind == ValueKind::Put as u8;
        self.made = if is_put && self.encoded.is_some() { encoded::encoded(&value) } else { value };
        self.emit(trailer, self.made.len())
    }

    /// Gives out a deletion.
    fn emit_delete(&mut self, trailer: u64) -> Pulled {
        self.stats.deletes_out += 1;
        self.shown = Shown::Nothing;
        self.resume = Resume::Advance;
        self.emit(trailer, 0)
    }

    /// Sets the trailer of the entry that is given out, and counts the entry.
    #[inline]
    fn emit(&mut self, trailer: u64, value_bytes: usize) -> Pulled {
        if let Some(stored) = self.key.last_chunk_mut::<TRAILER_BYTES>() {
            *stored = trailer.to_le_bytes();
        }
        self.stats.bytes_out += (self.key.len() + value_bytes) as u64;
        self.emitted_of_key += 1;
        Pulled::Entry
    }

    /// Drops the pending deletion, if there is one.
    fn drop_pending(&mut self) {
        if self.pending_delete.take().is_some() {
            self.stats.deletes_dropped += 1;
        }
    }

    fn count_dropped(&mut self, says: Visible) {
        match says {
            Visible::Deleted => self.stats.deletes_dropped += 1,
            Visible::Value | Visible::Operand => self.stats.puts_dropped += 1,
        }
    }
}
