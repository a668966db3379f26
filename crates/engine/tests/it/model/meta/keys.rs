//! A database whose keys are stored mirrored, the last byte first, under a comparator that undoes
//! that, looks like one without a comparator: the model and all operations know of nothing. What
//! takes keys for bytes in the order of bytes is found out.

use std::ops::Deref;

use sateen::{
    ColumnFamily, CompactRangeOptions, Comparator, Filtering, Options, PinnedSlice, ReadOptions,
    Result, WriteBatch, WriteOptions,
};

use super::model::Value;
use crate::support::common;

const NAME: &str = "mirrored";

/// The comparator.
pub(super) fn mirrored() -> Comparator {
    Comparator::custom(NAME, |a, b| a.iter().rev().cmp(b.iter().rev()))
}

/// `options` with keys that are stored mirrored.
pub(crate) fn mirror(options: &mut Options) {
    let family = &mut options.column_family;
    family.comparator = mirrored();
    if family.compaction_filter.is_some() {
        family.compaction_filter = Some(Filtering::by("decide", |_level, key, value| {
            common::deciding_about(&turned(key), value)
        }));
    }
}

pub(super) fn turned(key: &[u8]) -> Vec<u8> {
    key.iter().rev().copied().collect()
}

/// See the module.
pub(super) struct Db {
    db: sateen::Db,
    mirrored: bool,
}

impl Deref for Db {
    type Target = sateen::Db;
    fn deref(&self) -> &sateen::Db {
        &self.db
    }
}

impl From<sateen::Db> for Db {
    fn from(db: sateen::Db) -> Db {
        let mirrored = db.options().column_family.comparator.name() == NAME;
        Db { db, mirrored }
    }
}

/// What takes keys.
impl Db {
    fn stored(&self, key: impl AsRef<[u8]>) -> Vec<u8> {
        if self.mirrored { turned(key.as_ref()) } else { key.as_ref().to_vec() }
    }

    pub(super) fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.db.put(self.stored(key), value)
    }

    pub(super) fn put_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        family.writing(options).put(self.stored(key), value)
    }

    pub(super) fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.db.merge(self.stored(key), operand)
    }

    pub(super) fn merge_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        family.writing(options).merge(self.stored(key), operand)
    }

    pub(super) fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.delete(self.stored(key))
    }

    pub(super) fn delete_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        family.writing(options).delete(self.stored(key))
    }

    pub(super) fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.single_delete(self.stored(key))
    }

    pub(super) fn single_delete_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        family.writing(options).single_delete(self.stored(key))
    }

    pub(super) fn delete_range(
        &self,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.db.delete_range(self.stored(begin), self.stored(end))
    }

    pub(super) fn delete_range_cf(
        &self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        family.writing(options).delete_range(self.stored(begin), self.stored(end))
    }

    pub(super) fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        if !self.mirrored {
            return self.db.write(batch, options);
        }
        let mut stored = WriteBatch::new();
        for entry in batch {
            let entry_key = turned(entry.key);
            let families = self.db.column_families();
            let handles = families.iter().filter_map(|name| self.db.column_family(name));
            let family = handles.into_iter().find(|family| family.id() == entry.column_family.0);
            let Some(family) = family else { return self.db.write(batch, options) };
            match entry.kind {
                sateen::ValueKind::Put => stored.to(&family).put(entry_key, entry.value)?,
                sateen::ValueKind::Merge => stored.to(&family).merge(entry_key, entry.value)?,
                sateen::ValueKind::Delete => stored.to(&family).delete(entry_key)?,
                sateen::ValueKind::SingleDelete => stored.to(&family).single_delete(entry_key)?,
                sateen::ValueKind::RangeDelete => {
                    stored.to(&family).delete_range(entry_key, turned(entry.value))?;
                }
            }
        }
        self.db.write(&stored, options)
    }

    pub(super) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.db.get(self.stored(key))
    }

    pub(super) fn get_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        family.reading(options).get(self.stored(key))
    }

    pub(super) fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        self.db.get_pinned(self.stored(key))
    }

    pub(super) fn get_pinned_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        family.reading(options).get_pinned(self.stored(key))
    }

    pub(super) fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily,
        keys: &[K],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        let keys: Vec<_> = keys.iter().map(|key| self.stored(key)).collect();
        family.reading(options).multi_get(&keys)
    }

    pub(super) fn compact_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        let (begin, end) = (begin.map(|key| self.stored(key)), end.map(|key| self.stored(key)));
        family.compact_range(begin.as_deref(), end.as_deref(), options)
    }

    pub(super) fn mirrored(&self) -> bool {
        self.mirrored
    }

    pub(super) fn may_contain(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<bool> {
        family.reading(options).may_contain(self.stored(key))
    }

    pub(super) fn approximate_size(&self, family: &ColumnFamily, begin: &[u8], end: &[u8]) -> u64 {
        family.approximate_size(&self.stored(begin), &self.stored(end))
    }

    pub(super) fn cursor_cf(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<Cursor> {
        let mut options = options.clone();
        if self.mirrored {
            bounds_instead_of_prefix(&mut options);
            options.lower_bound = options.lower_bound.map(|key| turned(&key));
            options.upper_bound = options.upper_bound.map(|key| turned(&key));
        }
        let iter = family.cursor(&options)?;
        Ok(Cursor { iter, mirrored: self.mirrored, key: Vec::new() })
    }

    /// The whole of a column family: see [`common::whole`].
    pub(super) fn whole(
        &self,
        family: &ColumnFamily,
        options: &ReadOptions,
    ) -> Result<Vec<(Vec<u8>, Value)>> {
        common::whole(self.cursor_cf(family, options)?.iter, |key| self.stored(key))
    }
}

/// Keys of a prefix stand together as they are shown, not as they are stored.
fn bounds_instead_of_prefix(options: &mut ReadOptions) {
    let Some(prefix) = options.prefix.take() else { return };
    let end = prefix.iter().rposition(|byte| *byte != 0xff).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    let lower = options.lower_bound.take().map_or(prefix.clone(), |lower| lower.max(prefix));
    let upper = match (options.upper_bound.take(), end) {
        (Some(upper), Some(end)) => Some(upper.min(end)),
        (upper, end) => upper.or(end),
    };
    // Nothing is between them then, and reversed bounds are refused.
    options.upper_bound = upper.map(|upper| upper.max(lower.clone()));
    options.lower_bound = Some(lower);
}

/// An iterator over such a database.
pub(super) struct Cursor {
    iter: sateen::Cursor,
    mirrored: bool,
    key: Vec<u8>,
}

impl Cursor {
    fn moved(&mut self, by: impl FnOnce(&mut sateen::Cursor)) {
        by(&mut self.iter);
        self.key = self.iter.key().to_vec();
        if self.mirrored {
            self.key.reverse();
        }
    }

    fn stored(&self, key: &[u8]) -> Vec<u8> {
        if self.mirrored { turned(key) } else { key.to_vec() }
    }

    pub(super) fn seek_to_first(&mut self) {
        self.moved(sateen::Cursor::seek_to_first);
    }

    pub(super) fn seek_to_last(&mut self) {
        self.moved(sateen::Cursor::seek_to_last);
    }

    pub(super) fn seek(&mut self, target: &[u8]) {
        let target = self.stored(target);
        self.moved(|iter| iter.seek(&target));
    }

    pub(super) fn seek_for_prev(&mut self, target: &[u8]) {
        let target = self.stored(target);
        self.moved(|iter| iter.seek_for_prev(&target));
    }

    pub(super) fn next(&mut self) {
        self.moved(sateen::Cursor::next);
    }

    pub(super) fn prev(&mut self) {
        self.moved(sateen::Cursor::prev);
    }

    pub(super) fn valid(&self) -> bool {
        self.iter.valid()
    }

    pub(super) fn status(&self) -> Result<()> {
        self.iter.status()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn value(&self) -> &[u8] {
        self.iter.value()
    }
}
