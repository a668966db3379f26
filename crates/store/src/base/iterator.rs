//! The cursor that memtables, tables and everything merged from them implement.

use sateen_control::SeqNo;

use super::error::Result;

/// A cursor over internal keys in the order of [`super::key::compare`].
///
/// After a call that returned an error the cursor is not valid and stays so until the next seek.
/// `key` and `value` may be called only while `valid`; the slices live until the next move.
pub trait InternalIterator {
    /// True if the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after `target`, an internal key.
    fn seek(&mut self, target: &[u8]) -> Result<()>;
    /// Moves to the last entry at or before `target`, an internal key.
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()>;
    /// Moves on by one. Needs `valid`.
    fn next(&mut self) -> Result<()>;
    /// Moves back by one. Needs `valid`.
    fn prev(&mut self) -> Result<()>;
    /// Moves forward past entries that are all older than `newer_than` and before `target`, as many
    /// as can be told at once; false if none can. Needs `valid`, and that it was moved forward
    /// last.
    fn leap(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let _ = (target, newer_than);
        Ok(false)
    }
    /// The same backwards: past entries behind `target`.
    fn leap_back(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let _ = (target, newer_than);
        Ok(false)
    }
    /// The internal key.
    fn key(&self) -> &[u8];
    /// The value.
    fn value(&self) -> &[u8];
}
