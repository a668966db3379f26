//! The meaning of an entry's kind for readers.

use sateen_control::ValueKind;
use sateen_store::base::error::{CorruptionKind, Error, Result};

/// Bytes of the time at the end of a value, in a column family with `ttl`.
pub(crate) const TIME_BYTES: usize = 4;

/// The state of a key according to its newest visible entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible {
    /// The entry's value is the key's value.
    Value,
    /// The key is deleted.
    Deleted,
    /// The value results from merging this operand into the older entries.
    Operand,
}

impl Visible {
    /// Returns what an entry of `kind` says. Fails if this version of the engine cannot read the
    /// kind.
    #[inline]
    pub(crate) fn of(kind: Option<ValueKind>) -> Result<Visible> {
        match kind {
            Some(ValueKind::Put) => Ok(Visible::Value),
            Some(ValueKind::Delete | ValueKind::SingleDelete) => Ok(Visible::Deleted),
            Some(ValueKind::Merge) => Ok(Visible::Operand),
            Some(ValueKind::RangeDelete) | None => Err(unreadable_kind(kind)),
        }
    }
}

/// Returns the error for corruption in a merged stream, where the file is no longer known.
#[cold]
pub(crate) fn malformed(what: &'static str) -> Error {
    Error::Corruption {
        path: "(merged entries)".into(),
        offset: 0,
        kind: CorruptionKind::Malformed(what),
    }
}

/// Returns the error for an entry of a kind that this version cannot read.
#[cold]
fn unreadable_kind(kind: Option<ValueKind>) -> Error {
    malformed(match kind {
        Some(_) => "a range tombstone among the entries",
        None => "an entry of an unknown kind",
    })
}
