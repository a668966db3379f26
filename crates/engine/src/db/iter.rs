//! Rust iterators, on top of a [`Cursor`].
//!
//! One cursor serves both ends, so that both see the same moment:
//!
//! 1. [`Iter::next`] steps the cursor forwards if it stands on the last entry of the front.
//!    Otherwise `turn_forward` seeks there, and the last key of the back becomes the upper limit.
//! 2. [`Iter::next_back`] does the same in the other direction (`turn_backward`).
//! 3. `give` compares the key with the limit of the other end, if there is one (`is_over`). Both
//!    ends meet there.
//!
//! What must stay true: after the end, after both ends have met, and after an error, every call
//! returns `None`.

use std::iter::FusedIterator;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::sync::Arc;

use sateen_control::Comparator;
use sateen_store::base::error::{Error, Result};

use super::bytes::Bytes;
use super::cursor::Cursor;
use super::overlay::Overlay;
use crate::core::DbCore;
use crate::options::ReadOptions;
use crate::tree::families::ColumnFamilyData;

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, or a pair of
/// [`Bound`](std::ops::Bound)s, of anything that is bytes.
///
/// It says the same as [`RangeBounds`](std::ops::RangeBounds), but leaves the compiler no choice of
/// the key's type, so that `..` and `b"a"..b"bc"` need no annotation. Any other `RangeBounds` type
/// is passed as `(bounds.start_bound(), bounds.end_bound())`.
///
/// ```
/// use std::ops::Bound::{Excluded, Unbounded};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// for key in ["a", "b", "c"] {
///     db.put(key, "")?;
/// }
/// assert_eq!(db.range(..)?.count(), 3);
/// assert_eq!(db.range("b"..)?.count(), 2);
/// assert_eq!(db.range("a"..="b")?.count(), 2);
/// assert_eq!(db.range(vec![b'a']..vec![b'b'])?.count(), 1);
/// assert_eq!(db.range((Excluded("a"), Unbounded))?.count(), 2);
/// # Ok::<(), sateen::Error>(())
/// ```
pub trait KeyRange {
    /// Returns where the range begins.
    fn lower(&self) -> Bound<&[u8]>;
    /// Returns where the range ends.
    fn upper(&self) -> Bound<&[u8]>;
}

impl KeyRange for RangeFull {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
    fn upper(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Included(self.start.as_ref())
    }
    fn upper(&self) -> Bound<&[u8]> {
        Bound::Excluded(self.end.as_ref())
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Included(self.start().as_ref())
    }
    fn upper(&self) -> Bound<&[u8]> {
        Bound::Included(self.end().as_ref())
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Included(self.start.as_ref())
    }
    fn upper(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
    fn upper(&self) -> Bound<&[u8]> {
        Bound::Excluded(self.end.as_ref())
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn lower(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
    fn upper(&self) -> Bound<&[u8]> {
        Bound::Included(self.end.as_ref())
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn lower(&self) -> Bound<&[u8]> {
        self.0.as_ref().map(AsRef::as_ref)
    }
    fn upper(&self) -> Bound<&[u8]> {
        self.1.as_ref().map(AsRef::as_ref)
    }
}

/// The entries of a range of keys in order, as they were when the iterator was created. The methods
/// `range`, `prefix` and `iter` of [`Db`](crate::Db), [`ColumnFamily`](crate::ColumnFamily) and
/// [`Reading`](crate::Reading) return it.
///
/// - It iterates from both ends. `rev` costs nothing; each change of direction costs a seek.
/// - An item is a `Result`. After the first error the iterator has ended. So no entry is missed
///   unnoticed, as long as errors are handled.
/// - Key and value are [`Bytes`]: each is copied once, and allocates only if it is longer than 22
///   bytes. A [`Cursor`] lends them without a copy.
/// - It keeps what it sees until it is dropped. Writes do not wait for it. It does not keep the
///   database open, but goes on after a close.
/// - It is `Send` and `Sync`.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// for key in ["apple", "banana", "cherry"] {
///     db.put(key, "1")?;
/// }
/// for entry in db.range("a".."c")? {
///     let (key, value) = entry?;
///     println!("{key:?} = {value:?}");
/// }
/// let mut iter = db.iter()?;
/// assert_eq!(iter.next().unwrap()?.0, b"apple");
/// assert_eq!(iter.next_back().unwrap()?.0, b"cherry");
/// assert_eq!(iter.next().unwrap()?.0, b"banana");
/// assert!(iter.next().is_none() && iter.next_back().is_none());
/// // All of a range, or the first error:
/// let all: Vec<_> = db.range("b"..)?.rev().collect::<sateen::Result<_>>()?;
/// assert_eq!(all[0].0, b"cherry");
/// # Ok::<(), sateen::Error>(())
/// ```
#[must_use = "iterators are lazy: they read nothing until they are asked for an entry"]
pub struct Iter {
    cursor: Cursor,
    comparator: Comparator,
    at: At,
    /// The last key of the front, or a bound that the cursor does not have. Shown keys are above
    /// it.
    low: Option<Vec<u8>>,
    high: Option<High>,
}

/// The last key of the back, or a bound that the cursor does not have. Shown keys are below it.
struct High {
    key: Vec<u8>,
    /// True if the key itself may be shown.
    inclusive: bool,
}

/// The position of the cursor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Nowhere yet.
    Start,
    /// On the last entry that the front returned.
    Front,
    /// On the last entry that the back returned.
    Back,
    /// The iterator has ended.
    End,
}

impl Iter {
    /// Returns the entries of `family` within `bounds`.
    pub(crate) fn range(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
        bounds: &impl KeyRange,
    ) -> Result<Iter> {
        Iter::range_over(core, family, options, bounds, None)
    }

    /// Returns the entries of `family` within `bounds`, below those of `overlay`.
    pub(crate) fn range_over(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
        bounds: &impl KeyRange,
        overlay: Option<&Overlay>,
    ) -> Result<Iter> {
        let mut options = without_bounds(options)?;
        let comparator = family.comparator();
        let (lower, upper) = (bounds.lower(), bounds.upper());
        let (mut low, mut high, mut is_empty) = (None, None, false);
        if let (
            Bound::Included(first) | Bound::Excluded(first),
            Bound::Included(last) | Bound::Excluded(last),
        ) = (lower, upper)
        {
            match comparator.compare(first, last) {
                std::cmp::Ordering::Greater => return Err(Error::reversed_bounds(first, last)),
                // Found here, because the successor of an inclusive bound may be above the other
                // bound.
                std::cmp::Ordering::Equal => {
                    is_empty = !matches!((lower, upper), (Bound::Included(_), Bound::Included(_)));
                }
                std::cmp::Ordering::Less => {}
            }
        }
        match lower {
            Bound::Included(key) => options.lower_bound = Some(key.to_vec()),
            Bound::Excluded(key) => {
                options.lower_bound = Some(key.to_vec());
                low = Some(key.to_vec());
            }
            Bound::Unbounded => {}
        }
        match upper {
            Bound::Excluded(key) => options.upper_bound = Some(key.to_vec()),
            Bound::Included(key) if comparator.is_bytewise() => {
                // No key is between this one and its successor.
                let mut successor = Vec::with_capacity(key.len() + 1);
                successor.extend_from_slice(key);
                successor.push(0);
                options.upper_bound = Some(successor);
            }
            Bound::Included(key) => high = Some(High { key: key.to_vec(), inclusive: true }),
            Bound::Unbounded => {}
        }
        Ok(Iter {
            cursor: Cursor::over(core, family, &options, overlay)?,
            comparator: comparator.clone(),
            at: if is_empty { At::End } else { At::Start },
            low,
            high,
        })
    }

    /// Returns the entries of `family` whose keys begin with `prefix`.
    pub(crate) fn prefix(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
        prefix: &[u8],
    ) -> Result<Iter> {
        Iter::prefix_over(core, family, options, prefix, None)
    }

    /// Returns the entries of `family` whose keys begin with `prefix`, below those of `overlay`.
    pub(crate) fn prefix_over(
        core: &Arc<DbCore>,
        family: &Arc<ColumnFamilyData>,
        options: &ReadOptions,
        prefix: &[u8],
        overlay: Option<&Overlay>,
    ) -> Result<Iter> {
        let mut options = without_bounds(options)?;
        options.prefix = Some(prefix.to_vec());
        Ok(Iter {
            cursor: Cursor::over(core, family, &options, overlay)?,
            comparator: family.comparator().clone(),
            at: At::Start,
            low: None,
            high: None,
        })
    }

    /// Moves the cursor to the next entry of the front, from the start or the back.
    #[cold]
    fn turn_forward(&mut self) {
        if self.at == At::Back {
            self.high = Some(High { key: self.cursor.key().to_vec(), inclusive: false });
        }
        let Some(low) = &self.low else { return self.cursor.seek_to_first() };
        self.cursor.seek(low);
        if self.cursor.valid() && self.cursor.key() == low {
            self.cursor.next();
        }
    }

    /// Moves the cursor to the next entry of the back, from the start or the front.
    #[cold]
    fn turn_backward(&mut self) {
        if self.at == At::Front {
            self.low = Some(self.cursor.key().to_vec());
        }
        let Some(high) = &self.high else { return self.cursor.seek_to_last() };
        self.cursor.seek_for_prev(&high.key);
        if !high.inclusive && self.cursor.valid() && self.cursor.key() == high.key {
            self.cursor.prev();
        }
    }

    /// Returns true if the cursor has met the other end.
    #[inline]
    fn is_over(&self) -> bool {
        match self.at {
            At::Front => self.high.as_ref().is_some_and(|high| {
                let order = self.comparator.compare(self.cursor.key(), &high.key);
                order.is_gt() || (order.is_eq() && !high.inclusive)
            }),
            _ => self
                .low
                .as_ref()
                .is_some_and(|low| self.comparator.compare(self.cursor.key(), low).is_le()),
        }
    }

    /// Returns the entry under the cursor, or ends the iterator.
    #[inline]
    fn give(&mut self) -> Option<Result<(Bytes, Bytes)>> {
        if self.cursor.valid() && !self.is_over() {
            return Some(Ok((self.cursor.key().into(), self.cursor.value().into())));
        }
        self.at = At::End;
        self.cursor.status().err().map(Err)
    }
}

/// Returns `options`, or an error if they have bounds: an [`Iter`] has its own.
fn without_bounds(options: &ReadOptions) -> Result<ReadOptions> {
    let of_cursor = options.lower_bound.is_some()
        || options.upper_bound.is_some()
        || options.prefix.is_some()
        || options.prefix_same_as_start;
    if of_cursor {
        return Err(Error::InvalidArgument(
            "the read options have bounds, which only cursors use: pass them to `range` or `prefix`"
                .into(),
        ));
    }
    Ok(options.clone())
}

impl Iterator for Iter {
    type Item = Result<(Bytes, Bytes)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.at {
            At::Front => self.cursor.next(),
            At::End => return None,
            At::Start | At::Back => self.turn_forward(),
        }
        self.at = At::Front;
        self.give()
    }
}

impl DoubleEndedIterator for Iter {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.at {
            At::Back => self.cursor.prev(),
            At::End => return None,
            At::Start | At::Front => self.turn_backward(),
        }
        self.at = At::Back;
        self.give()
    }
}

impl FusedIterator for Iter {}

impl std::fmt::Debug for Iter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iter").field("ended", &(self.at == At::End)).finish_non_exhaustive()
    }
}
