//! Merge operators: a client writes operands, and reads and compactions combine them into values.

use std::sync::Arc;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::batch::VALUE_BYTES_MAX;

/// Combines a value with the operands that were merged into it.
///
/// Reads, flushes and compactions call it: any number of times for the same operands, in any
/// grouping that keeps their order, and on any thread. So its result must depend only on its
/// arguments. If it panics, the calling thread panics.
///
/// Most operators are simpler than this trait: see [`Merging::associative`].
pub trait MergeOperator: Send + Sync {
    /// Returns a name for messages.
    fn name(&self) -> &str;

    /// Returns the value of `key` after `operands` were merged into `existing`. There is at least
    /// one operand, and the oldest comes first. `existing` is the value before them, `None` if
    /// there was none. Returns `None` if the operands cannot be merged: then reads of the key fail,
    /// and the operands stay as they are.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>>;

    /// Returns one operand that has the same effect as `operands`, oldest first and at least two.
    /// Returns `None` if there is none: then they stay separate.
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}

/// The merge operator of a column family, for
/// [`ColumnFamilyOptions::merge_operator`](crate::ColumnFamilyOptions).
#[derive(Clone)]
pub struct Merging(Arc<dyn MergeOperator>);

/// Two are equal if they are clones of one.
impl PartialEq for Merging {
    fn eq(&self, other: &Merging) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Merging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Merging").field(&self.0.name()).finish()
    }
}

impl Merging {
    /// Merges with `operator`.
    pub fn new(operator: impl MergeOperator + 'static) -> Merging {
        Merging(Arc::new(operator))
    }

    /// Merges with a function of the key, the previous value or operand (`None` if there is none)
    /// and the next operand. Its results can be merged like operands, as in a sum, a maximum or a
    /// concatenation. It returns `None` if it cannot merge them.
    ///
    /// ```
    /// use sateen::{ColumnFamilyOptions, Db, Merging, Options};
    ///
    /// let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    /// let add = Merging::associative("add", move |_key, before, operand| {
    ///     let before = before.map_or(Some(0), number)?;
    ///     Some(before.wrapping_add(number(operand)?).to_le_bytes().to_vec())
    /// });
    /// let mut options = Options::default();
    /// options.column_family.merge_operator = Some(add);
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), options)?;
    /// db.merge("visits", 1_u64.to_le_bytes())?;
    /// db.merge("visits", 2_u64.to_le_bytes())?;
    /// assert_eq!(db.get("visits")?, Some(3_u64.to_le_bytes().to_vec()));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn associative<F>(name: &str, merge: F) -> Merging
    where
        F: Fn(&[u8], Option<&[u8]>, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    {
        Merging::new(Associative { name: name.to_owned(), merge })
    }

    /// Returns the operator's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the value of `existing` with `operands` merged into it, oldest first; `None` if the
    /// operator refuses, or if the value is too large.
    pub(crate) fn full(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let merged = self.0.full_merge(key, existing, operands);
        merged.filter(|value| value.len() <= VALUE_BYTES_MAX)
    }

    /// Returns one operand for `operands`, oldest first; `None` if the operator has none, or if it
    /// is too large.
    pub(crate) fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        if operands.len() < 2 {
            return None;
        }
        let merged = self.0.partial_merge(key, operands);
        merged.filter(|operand| operand.len() <= VALUE_BYTES_MAX)
    }
}

/// The operator of [`Merging::associative`].
struct Associative<F> {
    name: String,
    merge: F,
}

impl<F> MergeOperator for Associative<F>
where
    F: Fn(&[u8], Option<&[u8]>, &[u8]) -> Option<Vec<u8>> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let (first, rest) = operands.split_first()?;
        let begin = (self.merge)(key, existing, first)?;
        rest.iter().try_fold(begin, |merged, operand| (self.merge)(key, Some(&merged), operand))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (first, rest) = operands.split_first()?;
        self.full_merge(key, Some(first), rest)
    }
}

/// The operands of a key that were collected, newest first.
#[derive(Default)]
pub(crate) struct Operands(Vec<Vec<u8>>);

impl Operands {
    /// No operands.
    pub(crate) const NONE: Operands = Operands(Vec::new());

    /// Adds the next older operand.
    pub(crate) fn push_older(&mut self, operand: &[u8]) {
        self.0.push(operand.to_vec());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the operands, oldest first.
    pub(crate) fn in_order(&self) -> Vec<&[u8]> {
        self.0.iter().rev().map(Vec::as_slice).collect()
    }

    /// Returns the value of `existing` with the operands merged into it. Fails with `MergeFailed`
    /// if there is no operator, or if it refuses.
    pub(crate) fn merge(
        &self,
        operator: Option<&Merging>,
        key: &[u8],
        existing: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let failed = |reason| Error::MergeFailed { key: key.to_vec(), reason };
        let Some(operator) = operator else {
            return Err(failed("the column family was opened without a merge operator".into()));
        };
        let _timed = perf::time(PerfMetric::MergeOperatorTimeNanos);
        operator.full(key, existing, &self.in_order()).ok_or_else(|| {
            failed(format!(
                "the merge operator {} refused {} operands",
                operator.name(),
                self.0.len()
            ))
        })
    }
}

/// Returns a merge operator that appends, so that the order of the operands matters.
#[cfg(test)]
pub(crate) fn appending() -> Merging {
    Merging::associative("append", |_key, before, operand| {
        Some([before.unwrap_or_default(), operand].concat())
    })
}
