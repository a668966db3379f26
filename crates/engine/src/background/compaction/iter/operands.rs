//! What becomes of merge operands: values, where what they change is in the input or nowhere, fewer
//! operands where that can be, or what they were.

use sateen_control::{SeqNo, ValueKind};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::plant::planted;

use super::{CompactionIter, Pulled};
use crate::entry::Visible;

impl<I: InternalIterator, B: FnMut(&[u8]) -> bool> CompactionIter<I, B> {
    /// The operands in hand and the entry under the cursor, of `trailer`, which is the next one and
    /// has not been counted. If they do not go on with it, or become a value on top of it, what is
    /// to be given out before it is looked at: the first of that.
    #[cold]
    pub(super) fn end_operands(&mut self, trailer: u64, says: Visible) -> Option<Pulled> {
        let same_key = key::user_key(&self.key) == key::user_key(self.input.key());
        let newest = self.trailers.first().copied().unwrap_or_default();
        let stratum = self.stratum(SeqNo(newest >> 8));
        if !same_key {
            return self.settle_operands();
        }
        if stratum != self.stratum(SeqNo(trailer >> 8)) {
            // What they change is seen without them, too.
            return self.hand_out_operands();
        }
        let existing = match says {
            // One more, or out of order.
            Visible::Operand => return None,
            _ if trailer >= self.last_trailer => return None,
            Visible::Value => Some(self.input.value()),
            Visible::Deleted => None,
        };
        let user_key = key::user_key(&self.key);
        let operands = self.operands.in_order();
        let merged = self.merging.as_ref().and_then(|by| by.full(user_key, existing, &operands));
        let Some(value) = merged else { return self.hand_out_operands() };
        // It hides what it is made of, and what is older.
        self.hiding_stratum = Some(stratum);
        self.hand_out_value(value, stratum)
    }

    /// Nothing older of the current user key is in the input: the operands in hand become a value
    /// if nothing is below either. Returns the first of what is given out for them.
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

    /// Gives out `value` instead of the operands in hand.
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

    /// Gives out the operands in hand, as one if they can be one.
    pub(super) fn hand_out_operands(&mut self) -> Option<Pulled> {
        let operands = self.operands.in_order();
        let user_key = key::user_key(&self.key);
        match self.merging.as_ref().and_then(|by| by.partial(user_key, &operands)) {
            Some(one) => {
                self.stats.puts_dropped += self.trailers.len() as u64 - 1;
                self.ready.push_back((*self.trailers.first()?, one));
                if planted("merge_twice") {
                    let oldest = (*self.trailers.last()?, operands.first()?.to_vec());
                    self.ready.push_back(oldest);
                }
            }
            None => {
                let newest_first = operands.iter().rev().map(|operand| operand.to_vec());
                let entries = self.trailers.iter().copied().zip(newest_first);
                self.ready.extend(entries);
            }
        }
        self.hand_out()
    }

    /// Forgets the operands in hand and gives out the first of what is ready.
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
