//! What an iterator moves: the keys of a column family, or those as of a timestamp.

use std::borrow::Cow;

use sateen::{ColumnFamily, Cursor, ReadOptions, TimestampedCursor};

use crate::timestamps::AsOf;

/// The type bytes of versions with and without a value, in RocksDB's internal keys.
const VALUE: u8 = 1;
const DELETION: u8 = 0x14;

/// The position of an iterator.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one")]
pub(crate) enum Moves {
    Plain(Cursor),
    Timestamped(Box<AsOfCursor>),
}

/// The position of an iterator over keys with timestamps.
pub(crate) struct AsOfCursor {
    cursor: TimestampedCursor,
    /// True if all versions are shown. Keys then have RocksDB's internal form: the timestamp and
    /// eight bytes, the first of which says whether there is a value.
    all: bool,
    internal_key: Vec<u8>,
}

impl AsOfCursor {
    fn moved(&mut self, by: impl FnOnce(&mut TimestampedCursor)) {
        by(&mut self.cursor);
        if self.all {
            let kind = if self.cursor.is_deletion() { DELETION } else { VALUE };
            let footer = [kind, 0, 0, 0, 0, 0, 0, 0];
            self.internal_key = [self.cursor.key_with_timestamp(), &footer].concat();
        }
    }
}

/// Returns `options` with bounds between which there is nothing, if its lower bound is above its
/// upper one: an iterator of RocksDB is empty then.
pub(crate) fn in_order<'a>(
    family: &ColumnFamily,
    options: &'a ReadOptions,
) -> Cow<'a, ReadOptions> {
    match (&options.lower_bound, &options.upper_bound) {
        (Some(lower), Some(upper)) if family.comparator().compare(lower, upper).is_gt() => {
            Cow::Owned(ReadOptions { lower_bound: Some(upper.clone()), ..options.clone() })
        }
        _ => Cow::Borrowed(options),
    }
}

macro_rules! moves {
    ($($method:ident($($key:ident)?);)*) => { $(
        #[inline]
        pub(crate) fn $method(&mut self $(, $key: &[u8])?) {
            match self {
                Moves::Plain(cursor) => cursor.$method($($key)?),
                Moves::Timestamped(it) => it.moved(|cursor| cursor.$method($($key)?)),
            }
        }
    )* };
}

impl Moves {
    /// Makes the position of an iterator with these options. It stands on no key.
    pub(crate) fn new(
        family: &ColumnFamily,
        options: &ReadOptions,
        as_of: Option<&AsOf>,
    ) -> sateen::Result<Moves> {
        let (Some(AsOf { at, from }), Some(family)) = (as_of, family.timestamped()) else {
            return family.cursor(&in_order(family, options)).map(Moves::Plain);
        };
        let cursor = family.cursor(at, from.as_deref(), options)?;
        let of = AsOfCursor { cursor, all: from.is_some(), internal_key: Vec::new() };
        Ok(Moves::Timestamped(Box::new(of)))
    }

    moves! {
        seek_to_first();
        seek_to_last();
        seek(key);
        seek_for_prev(key);
        next();
        prev();
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        match self {
            Moves::Plain(cursor) => cursor.valid(),
            Moves::Timestamped(it) => it.cursor.valid(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Moves::Plain(cursor) => cursor.key(),
            Moves::Timestamped(it) if it.all && it.cursor.valid() => &it.internal_key,
            Moves::Timestamped(it) => it.cursor.key(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Moves::Plain(cursor) => cursor.value(),
            Moves::Timestamped(it) => it.cursor.value(),
        }
    }

    /// Returns the timestamp of the key; an empty one if keys have none.
    pub(crate) fn timestamp(&self) -> &[u8] {
        match self {
            Moves::Plain(_) => &[],
            Moves::Timestamped(it) => it.cursor.timestamp(),
        }
    }

    pub(crate) fn status(&self) -> sateen::Result<()> {
        match self {
            Moves::Plain(cursor) => cursor.status(),
            Moves::Timestamped(it) => it.cursor.status(),
        }
    }
}
