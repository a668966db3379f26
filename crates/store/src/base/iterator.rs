//! The cursor trait that memtables, tables and the iterators merged from them implement.
//!
//! What must stay true: all implementations order entries by [`super::key::compare`]. The merging
//! iterator relies on that.

use sateen_control::SeqNo;

use super::error::Result;

/// A cursor over internal keys in the order of [`super::key::compare`].
///
/// After a call that returned an error, the cursor is invalid until the next seek. `key` and
/// `value` may be called only while `valid`. Their slices live until the next move.
pub trait InternalIterator {
    /// Returns true if the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after `target`, an internal key.
    fn seek(&mut self, target: &[u8]) -> Result<()>;
    /// Moves to the last entry at or before `target`, an internal key.
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()>;
    /// Moves to the next entry. Needs `valid`.
    fn next(&mut self) -> Result<()>;
    /// Moves to the previous entry. Needs `valid`.
    fn prev(&mut self) -> Result<()>;
    /// Moves forward past entries before `target` that are all older than `newer_than`, as many as
    /// one metadata check can prove. Returns false if it proves none. Needs `valid`, and the last
    /// move must have been forward.
    fn leap(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let _ = (target, newer_than);
        Ok(false)
    }
    /// Like [`InternalIterator::leap`], but backwards past entries behind `target`.
    fn leap_back(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let _ = (target, newer_than);
        Ok(false)
    }
    /// Reads the value if it is in another file and was left there. Call it before `value` on a
    /// cursor that was made so. Needs `valid`.
    fn load_value(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns the internal key.
    fn key(&self) -> &[u8];
    /// Returns the value.
    fn value(&self) -> &[u8];
}
