//! What the kind of an entry means to those who read it.

use sateen_control::ValueKind;
use sateen_store::base::error::{CorruptionKind, Error, Result};

/// What the newest visible version of a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible {
    /// The key has this value.
    Value,
    /// The key is not there.
    Deleted,
    /// The value is made of this and what is older.
    Operand,
}

impl Visible {
    /// What an entry of `kind` says; an error if this version cannot read it.
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

/// Corruption found in a merged stream, where the file is no longer known.
#[cold]
pub(crate) fn malformed(what: &'static str) -> Error {
    Error::Corruption {
        path: "(merged entries)".into(),
        offset: 0,
        kind: CorruptionKind::Malformed(what),
    }
}

/// The error for an entry of a kind that this version cannot read.
#[cold]
fn unreadable_kind(kind: Option<ValueKind>) -> Error {
    malformed(match kind {
        Some(_) => "a deletion of a range among the entries",
        None => "unknown kind of entry",
    })
}
