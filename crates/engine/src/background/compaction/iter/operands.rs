//! Merge operands in a flush or compaction. They become one value if their base is known, fewer
//! operands if the operator can combine them, or stay as they were.
//!
//! 1. `examine` collects operands of one stratum, newest first.
//! 2. [`CompactionIter::end_operands`] ends that at the next entry, if it is not one more of them.
//! 3. [`CompactionIter::settle_operands`] ends it at the end of the key, or of the input.
//! 4. `hand_out_value` or `hand_out_operands` puts the results into `ready`, and `hand_out` gives
//!    out the first of them.

use sateen_control::{SeqNo, ValueKind};
use sateen_store::base::error::Result;
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;

use super::{CompactionIter, Pulled};
use crate::entry::Visible;

impl<I: InternalIterator, B: FnMut(&[u8]) -> bool> CompactionIter<I, B> {
    /// Looks at the entry under the cursor, of `trailer`, which follows the collected operands and
    /// was not counted yet. Returns `None` if it is one more operand. Otherwise ends the collection
    /// and returns the first entry to be given out; the entry under the cursor is examined again
    /// afterwards.
    #[cold]
    pub(super) fn end_operands(&mut self, trailer: u64, says: Visible) -> Result<Option<Pulled>> {
        let same_key = key::user_key(&self.key) == key::user_key(self.input.key());
        let newest = self.trailers.first().copied().unwrap_or_default();
        let stratum = self.stratum(SeqNo(newest >> 8));
        if !same_key {
            return Ok(self.settle_operands());
        }
        if stratum != self.stratum(SeqNo(trailer >> 8)) {
            // A snapshot sees the entry under the cursor without the operands, so it stays
            // separate.
            return Ok(self.hand_out_operands());
        }
        let existing = match says {
            // One more operand, or an entry out of order, which `enter_key` reports.
            Visible::Operand => return Ok(None),
            _ if trailer >= self.last_trailer => return Ok(None),
            Visible::Value => match &mut self.encoded {
                Some(encoded) => Some(encoded.joined(self.input.value())?),
                None => Some(self.input.value()),
            },
            Visible::Deleted => None,
        };
        let user_key = key::user_key(&self.key);
        let operands = self.operands.in_order();
        let merged = self.merging.as_ref().and_then(|by| by.full(user_key, existing, &operands));
        let Some(value) = merged else { return Ok(self.hand_out_operands()) };
        // The value hides the entry under the cursor and everything older of the stratum.
        self.hiding_stratum = Some(stratum);
        Ok(self.hand_out_value(value, stratum))
    }

    /// Ends the collection at the end of a key. The operands become a value if no entry of the key
    /// exists below. Returns the first entry that is given out for them.
    #[cold]
    pub(super) fn settle_operands(&mut self) -> Option<Pulled> {
        let newest = *self.trailers.first()?;
        let merged = if self.ask_bottommost() {
            let operands = self.operands.in_order();
            let merging = self.merging.as_ref();
            merging.and_then(|by| by.full(key::user_key(&self.key), None, &operands))
        } else {
            None
        };
        match merged {
            Some(value) => self.hand_out_value(value, self.stratum(SeqNo(newest >> 8))),
            None => self.hand_out_operands(),
        }
    }

    /// Gives out `value` instead of the collected operands.
    pub(super) fn hand_out_value(&mut self, value: Vec<u8>, stratum: usize) -> Option<Pulled> {
        let newest = SeqNo(self.trailers.first()? >> 8);
        self.stats.puts_dropped += self.trailers.len() as u64 - 1;
        let seqno = if stratum == 0 && self.may_be_zeroed() {
            self.stats.seqnos_zeroed += 1;
            SeqNo(0)
        } else {
            newest
        };
        self.ready.push_back((key::pack(seqno, ValueKind::Put), value));
        self.hand_out()
    }

    /// Gives out the collected operands, combined into one if the operator can do that.
    pub(super) fn hand_out_operands(&mut self) -> Option<Pulled> {
        let operands = self.operands.in_order();
        let user_key = key::user_key(&self.key);
        match self.merging.as_ref().and_then(|by| by.partial(user_key, &operands)) {
            Some(one) => {
                self.stats.puts_dropped += self.trailers.len() as u64 - 1;
                self.ready.push_back((*self.trailers.first()?, one));
            }
            None => {
                let newest_first = operands.iter().rev().map(|operand| operand.to_vec());
                let entries = self.trailers.iter().copied().zip(newest_first);
                self.ready.extend(entries);
            }
        }
        self.hand_out()
    }

    /// Clears the collected operands, and gives out the first entry of `ready`.
    pub(super) fn hand_out(&mut self) -> Option<Pulled> {
        self.operands.clear();
        self.trailers.clear();
        if let Some(pending) = self.pending_delete.take() {
            self.ready.push_front((pending, Vec::new()));
        }
        let (trailer, value) = self.ready.pop_front()?;
        Some(self.emit_made(trailer, value))
    }
}
