//! Decides which entries of a merged stream a flush or compaction keeps.
//!
//! What must stay true:
//! - every snapshot in the list, and every one taken later at or above the last of them, reads the
//!   same from the output (and what lies below it) as from the input;
//! - entries above the last snapshot of the list, the visible seqno (format rule F6), are kept as
//!   they are: a snapshot between any two of them may still be taken;
//! - the output ascends strictly, like the input, which is checked;
//! - one pull does a bounded amount of work, so that a job's step ends with its grant.
//!
//! Snapshots cut the seqnos into strata. Within a stratum no reader can tell two versions of a key
//! apart from the newer alone, so the newest entry of each stratum is kept and hides the others.
//! Where nothing older exists below (the oracle says so), a deletion that hides nothing is dropped
//! and a value that everybody sees gets seqno 0, which compresses better.
//!
//! Operands of one stratum are collected from the newest on until what they change is found, or
//! nothing is left that it could be: then they become a value; otherwise fewer operands, if the
//! operator can. What it refuses stays as it was.
//!
//! A compaction filter is asked about the newest entry of a key, if that is a value, and about
//! operands. What it removes becomes a deletion of that number, and goes on as one that was read.
//!
//! An entry that a range tombstone of its stratum deletes is dropped as if it were hidden. No value
//! of a key under any range tombstone gets seqno 0: it would look older than that.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use covering::Covering;
use sateen_control::version::RangeTombstones;
use sateen_control::{Comparator, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key::{self, TRAILER_BYTES};
use sateen_store::base::plant::planted;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::iter::merging_iter::MergingIter;

use crate::entry::{Visible, malformed};
use crate::operators::compaction_filter::{ActiveFilter, Decision};
use crate::operators::merge::{Merging, Operands};

mod covering;
mod operands;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use stats::CompactionStats;

/// What a pull came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// An entry to keep: `key` and `value` show it until the next pull.
    Entry,
    /// The allowed input is used up and nothing to keep was found in it; pull again later.
    Paused,
    /// The input is exhausted.
    End,
}

/// What `pull` does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resume {
    /// Look at the entry under the cursor.
    Examine,
    /// Move on: the entry under the cursor is done with.
    Advance,
    /// Give out the value under the cursor, which waits behind the deletion given out last.
    Put { stratum: usize },
}

/// Where the value that was given out last is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// There is none: a deletion.
    Nothing,
    /// Under the cursor.
    Input,
    /// It was made of operands.
    Made,
}

/// A pull-driven filter over a merged stream of internal entries.
///
/// `bottommost(user_key)` says that no entry of the key exists below the inputs. It is asked at
/// most once a key, in ascending order of keys, and only where the answer matters.
pub(crate) struct CompactionIter<I, B> {
    input: I,
    bounds: IterBounds,
    comparator: Comparator,
    bottommost: B,
    /// Ascending; the last is the visible seqno.
    snapshots: Vec<SeqNo>,
    resume: Resume,
    /// The current user key and the trailer of the entry given out.
    key: Vec<u8>,
    /// False until the first key.
    has_key: bool,
    /// No entry of the current user key was examined before.
    is_newest: bool,
    /// The trailer of the entry examined last, of the current user key.
    last_trailer: u64,
    /// The stratum of the newest entry examined that hides others of it.
    hiding_stratum: Option<usize>,
    /// The oracle's answer for the current user key, once asked.
    is_bottommost: Option<bool>,
    /// A deletion that is kept only if an older value of the key is.
    pending_delete: Option<u64>,
    merging: Option<Merging>,
    filter: Option<ActiveFilter>,
    ranges: Option<Covering>,
    /// Operands of the current user key that are in nothing given out yet, and their trailers.
    operands: Operands,
    trailers: Vec<u64>,
    /// To be given out before the input goes on: trailers and values, of the current user key.
    ready: VecDeque<(u64, Vec<u8>)>,
    emitted_of_key: u64,
    shown: Shown,
    /// The value that was given out last, if it is none of the input.
    made: Vec<u8>,
    failed: Option<Error>,
    stats: CompactionStats,
}

impl<R: InternalIterator, B: FnMut(&[u8]) -> bool> CompactionIter<MergingIter<R>, B> {
    /// Instead of [`Self::start`], where opening all runs takes long: stands run `index` on its
    /// first entry. False if there is no such run: then all are merged.
    pub(crate) fn open_run(&mut self, index: usize) -> Result<bool> {
        let opened = self.input.open_child(index);
        opened.map_err(|error| self.fail(error))
    }
}

impl<I: InternalIterator, B: FnMut(&[u8]) -> bool> CompactionIter<I, B> {
    /// A filter over the entries of `input` within `bounds` for the readers at `snapshots`, which
    /// ascend and end with the visible seqno. Call [`Self::start`] before the first pull.
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

    /// Keys are compared by `comparator`.
    pub(crate) fn compared_by(mut self, comparator: &Comparator) -> CompactionIter<I, B> {
        self.comparator = comparator.clone();
        self
    }

    /// Operands are merged by `merging`.
    pub(crate) fn with_merging(mut self, merging: Option<Merging>) -> CompactionIter<I, B> {
        self.merging = merging;
        self
    }

    /// Entries are filtered by `filter`. To be called before the first pull.
    pub(crate) fn filter_by(&mut self, filter: Option<ActiveFilter>) {
        self.filter = filter;
    }

    /// What `ranges` delete goes, as far as no snapshot needs it.
    pub(crate) fn with_ranges(mut self, ranges: &Arc<RangeTombstones>) -> CompactionIter<I, B> {
        self.ranges = Covering::new(ranges);
        self
    }

    /// Stands before the first entry within bounds.
    pub(crate) fn start(&mut self) -> Result<()> {
        let placed = match self.bounds.lower() {
            Some(lower) => self.input.seek(&key::seek_key(lower, SeqNo::MAX)),
            None => self.input.seek_to_first(),
        };
        placed.map_err(|error| self.fail(error))
    }

    /// Moves to the next entry to keep, looking at inputs of at most `bytes_in_max` bytes (and at
    /// least one). An error is final: every later pull returns it.
    pub(crate) fn pull(&mut self, bytes_in_max: u64) -> Result<Pulled> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.pull_within(bytes_in_max).map_err(|error| self.fail(error))
    }

    /// The internal key of the entry to keep, after [`Pulled::Entry`].
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Input => self.input.value(),
            Shown::Made => &self.made,
        }
    }

    /// True if no other version of this user key was given out before: only here may an output
    /// table begin, because tables of a run share no user key.
    #[inline]
    pub(crate) fn starts_user_key(&self) -> bool {
        self.emitted_of_key == 1
    }

    /// What became of the entries so far.
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

    /// Looks at the entry under the cursor; `None` if it is not given out (yet).
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
            && let Some(emitted) = self.end_operands(trailer, means)
        {
            // This entry is looked at again.
            return Ok(Some(emitted));
        }
        match says {
            Visible::Value | Visible::Operand => self.stats.puts_in += 1,
            Visible::Deleted => self.stats.deletes_in += 1,
        }
        self.stats.bytes_in += bytes as u64;
        if !self.enter_key(trailer)? {
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
                    // From here on it is a deletion.
                    self.stats.puts_in -= 1;
                    self.stats.deletes_in += 1;
                    says = Visible::Deleted;
                    trailer = key::pack(seqno, ValueKind::Delete);
                }
            }
        }
        self.hiding_stratum = if above_visible { None } else { Some(stratum) };

        if says == Visible::Deleted {
            if above_visible || !(self.ask_bottommost() || planted("tombstone_dropped")) {
                return Ok(Some(self.emit_delete(trailer)));
            }
            // Nothing below: it matters only if an older value stays in the output. A deletion
            // above an older one that stays says nothing new.
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

    /// What becomes of the value under the cursor.
    fn filter_value(&mut self, seqno: SeqNo) -> Result<Decision> {
        let Some(filter) = &mut self.filter else { return Ok(Decision::Keep) };
        filter.value(seqno, key::user_key(&self.key), self.input.value())
    }

    /// What becomes of the operand under the cursor.
    fn filter_operand(&mut self, seqno: SeqNo) -> Result<Decision> {
        let Some(filter) = &mut self.filter else { return Ok(Decision::Keep) };
        filter.operand(seqno, key::user_key(&self.key), self.input.value())
    }

    /// Makes the user key under the cursor the current one, and checks the order of the input.
    /// False if the very entry was there before: a compaction that ended early leaves copies of
    /// what it wrote in the level above.
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

    /// How many snapshots are too old to see `seqno`. Entries of one stratum are seen by the same
    /// snapshots, except above the last of them.
    #[inline]
    fn stratum(&self, seqno: SeqNo) -> usize {
        match self.snapshots.first() {
            Some(&oldest) if seqno <= oldest => 0,
            _ => self.snapshots.partition_point(|&snapshot| snapshot < seqno),
        }
    }

    /// Whether a range tombstone deletes the entry under the cursor, of `seqno`, for all readers
    /// who could see it.
    fn is_covered(&mut self, seqno: SeqNo) -> bool {
        let user_key = key::user_key(self.input.key());
        let above = self.ranges.as_mut().and_then(|ranges| ranges.above(user_key, seqno));
        let Some(deleted) = above else { return false };
        let stratum = self.stratum(seqno);
        stratum < self.snapshots.len() && stratum == self.stratum(deleted)
    }

    /// Whether the value of the current user key needs no seqno, if everybody sees it.
    #[inline]
    fn may_be_zeroed(&mut self) -> bool {
        let is_under = |ranges: &Covering| ranges.is_over(key::user_key(&self.key));
        !self.ranges.as_ref().is_some_and(is_under) && self.ask_bottommost()
    }

    #[inline]
    fn ask_bottommost(&mut self) -> bool {
        match self.is_bottommost {
            Some(answer) => answer,
            None => *self.is_bottommost.insert((self.bottommost)(key::user_key(&self.key))),
        }
    }

    #[inline]
    fn emit_put(&mut self, stratum: usize) -> Pulled {
        let trailer = self.put_trailer(stratum);
        self.emit_input(trailer)
    }

    /// The trailer under which the value that was examined last goes on.
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

    /// Gives out what is not, or no more, under the cursor. Where the input goes on stays as it is.
    fn emit_made(&mut self, trailer: u64, value: Vec<u8>) -> Pulled {
        let [kind, ..] = trailer.to_le_bytes();
        let has_value = ValueKind::from_byte(kind).is_some_and(ValueKind::has_value);
        if has_value {
            self.stats.puts_out += 1;
        } else {
            self.stats.deletes_out += 1;
        }
        self.shown = Shown::Made;
        self.made = value;
        self.emit(trailer, self.made.len())
    }

    fn emit_delete(&mut self, trailer: u64) -> Pulled {
        self.stats.deletes_out += 1;
        self.shown = Shown::Nothing;
        self.resume = Resume::Advance;
        self.emit(trailer, 0)
    }

    #[inline]
    fn emit(&mut self, trailer: u64, value_bytes: usize) -> Pulled {
        if let Some(stored) = self.key.last_chunk_mut::<TRAILER_BYTES>() {
            *stored = trailer.to_le_bytes();
        }
        self.stats.bytes_out += (self.key.len() + value_bytes) as u64;
        self.emitted_of_key += 1;
        Pulled::Entry
    }

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
