//! Iterates over a sorted run: tables in key order that do not overlap.
//!
//! 1. A seek finds the table by the run's key ranges (`lower_bound`), opens it, and seeks in it.
//! 2. `next` and `prev` move within the open table. At its end, `first_from` or `last_before` goes
//!    to the next table that has an entry.
//! 3. Before a table is opened, `look` decides: tables outside the bounds, deleted by a range
//!    tombstone, or excluded by the opener ([`OpenTable::look`]) are passed by.
//! 4. `leap` and `leap_back` leave a table whose entries are all too old.
//!
//! What must stay true: at most one table is open at a time, and a table outside the bounds is
//! never opened. A table that cannot be opened or read is an error, never the end of the run.

use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_control::version::{Run, TableMeta};

use super::bounds::IterBounds;
use super::covered_iter::SeenRanges;
use crate::base::error::Result;
use crate::base::iterator::InternalIterator;
use crate::base::key;

#[cfg(test)]
mod tests;

/// Tables in key order of which no two share a user key.
#[expect(clippy::len_without_is_empty, reason = "no caller needs `is_empty`")]
pub trait SortedRun {
    /// Returns the number of tables.
    fn len(&self) -> usize;
    /// Returns the table at `index`.
    fn get(&self, index: usize) -> Option<&Arc<TableMeta>>;
    /// Returns the index of the first table whose largest key is at or behind `user_key`; `len` if
    /// there is none.
    fn lower_bound(&self, user_key: &[u8]) -> usize;
}

impl SortedRun for Run {
    fn len(&self) -> usize {
        Run::len(self)
    }
    fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        Run::get(self, index)
    }
    fn lower_bound(&self, user_key: &[u8]) -> usize {
        Run::lower_bound(self, user_key)
    }
}

/// Opens a table for iteration. Every `Fn(&Arc<TableMeta>) -> Result<impl InternalIterator>`
/// implements it.
pub trait OpenTable {
    /// The iterator over one table.
    type Iter: InternalIterator;
    /// Opens `table`.
    fn open(&self, table: &Arc<TableMeta>) -> Result<Self::Iter>;
    /// Decides whether `table` must be opened, can be passed by, or ends the search. If
    /// `backwards`, the search continues with the tables before it, otherwise with those behind it.
    fn look(&self, _table: &Arc<TableMeta>, _backwards: bool) -> Result<Look> {
        Ok(Look::Open)
    }
}

/// What to do with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Open it.
    Open,
    /// Pass it by.
    Pass,
    /// End the search.
    Stop,
}

impl<F, I> OpenTable for F
where
    F: Fn(&Arc<TableMeta>) -> Result<I>,
    I: InternalIterator,
{
    type Iter = I;

    fn open(&self, table: &Arc<TableMeta>) -> Result<I> {
        self(table)
    }
}

/// An iterator over one sorted run. It opens a table when it comes to it.
///
/// It shows all entries of the tables that reach into the bounds, so entries at the edges may lie
/// outside the bounds.
pub struct LevelIter<R, O: OpenTable> {
    run: R,
    /// Opens tables, and may exclude some.
    opener: O,
    bounds: IterBounds,
    /// Range tombstones. A table that they delete as a whole is never opened.
    seen: Option<SeenRanges>,
    /// The open table and its index. Kept after the end was reached, because the next seek may need
    /// it.
    table: Option<(usize, O::Iter)>,
    /// False after an error and at the end of the bounds. The position of `table` is then not
    /// shown.
    placed: bool,
}

impl<R: SortedRun, O: OpenTable> LevelIter<R, O> {
    /// Returns an iterator over `run` within `bounds`. It is invalid until the first seek.
    pub fn new(run: R, opener: O, bounds: IterBounds) -> LevelIter<R, O> {
        LevelIter { run, opener, bounds, seen: None, table: None, placed: false }
    }

    /// Passes by the tables that `seen` deletes as a whole.
    pub fn without(mut self, seen: Option<SeenRanges>) -> LevelIter<R, O> {
        self.seen = seen;
        self
    }

    /// Decides what to do with a table within the bounds.
    fn look(&self, table: &Arc<TableMeta>, backwards: bool) -> Result<Look> {
        match &self.seen {
            Some(seen) if seen.ranges.hide_table(table, seen.as_of) => Ok(Look::Pass),
            _ => self.opener.look(table, backwards),
        }
    }

    /// Returns the open table if all of its entries are older than `seqno`.
    fn older_table(&self, seqno: SeqNo) -> Option<&Arc<TableMeta>> {
        self.run.get(self.open_index()).filter(|table| table.seqno_max < seqno)
    }

    /// Returns the iterator over table `index`. If that table is open already, its position stays.
    fn open(&mut self, index: usize, meta: &Arc<TableMeta>) -> Result<&mut O::Iter> {
        let kept = self.table.take().filter(|(open, _)| *open == index);
        let opened = match kept {
            Some(opened) => opened,
            None => (index, self.opener.open(meta)?),
        };
        Ok(&mut self.table.insert(opened).1)
    }

    /// Moves to the first entry of table `index` or of the tables behind it.
    fn first_from(&mut self, mut index: usize) -> Result<()> {
        self.placed = false;
        while let Some(meta) = self.run.get(index).cloned() {
            if self.bounds.is_above(meta.smallest.bytes()) {
                break;
            }
            if self.bounds.is_below(meta.largest.bytes()) {
                return self.seek_to_first();
            }
            match self.look(&meta, false)? {
                Look::Open => {}
                Look::Pass => {
                    index += 1;
                    continue;
                }
                Look::Stop => break,
            }
            let table = self.open(index, &meta)?;
            table.seek_to_first()?;
            if table.valid() {
                self.placed = true;
                break;
            }
            index += 1;
        }
        Ok(())
    }

    /// Moves to the last entry of the tables before `end`.
    fn last_before(&mut self, end: usize) -> Result<()> {
        self.placed = false;
        for index in (0..end).rev() {
            let Some(meta) = self.run.get(index).cloned() else { break };
            if self.bounds.is_below(meta.largest.bytes()) {
                break;
            }
            if self.bounds.is_above(meta.smallest.bytes()) {
                return self.seek_to_last();
            }
            match self.look(&meta, true)? {
                Look::Open => {}
                Look::Pass => continue,
                Look::Stop => break,
            }
            let table = self.open(index, &meta)?;
            table.seek_to_last()?;
            if table.valid() {
                self.placed = true;
                break;
            }
        }
        Ok(())
    }

    /// Returns the index of the open table.
    fn open_index(&self) -> usize {
        self.table.as_ref().map_or(0, |(index, _)| *index)
    }
}

impl<R: SortedRun, O: OpenTable> InternalIterator for LevelIter<R, O> {
    #[inline]
    fn valid(&self) -> bool {
        self.placed && self.table.as_ref().is_some_and(|(_, table)| table.valid())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        let start = self.bounds.lower().map_or(0, |lower| self.run.lower_bound(lower));
        self.first_from(start)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let Some(upper) = self.bounds.upper() else {
            return self.last_before(self.run.len());
        };
        let border = self.run.lower_bound(upper);
        let inside = self.run.get(border).is_some_and(|meta| meta.smallest < *upper);
        self.last_before(border + usize::from(inside))
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.placed = false;
        let user_key = key::user_key(target);
        let index = self.run.lower_bound(user_key);
        let Some(meta) = self.run.get(index).cloned() else { return Ok(()) };
        if self.bounds.is_above(meta.smallest.bytes()) || self.bounds.is_below(meta.largest.bytes())
        {
            return self.first_from(index);
        }
        match self.look(&meta, false)? {
            Look::Open => {}
            Look::Pass => return self.first_from(index + 1),
            Look::Stop => return Ok(()),
        }
        let table = self.open(index, &meta)?;
        table.seek(target)?;
        if table.valid() {
            self.placed = true;
            return Ok(());
        }
        // The target is behind the last version of the table's largest key.
        self.first_from(index + 1)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.placed = false;
        let user_key = key::user_key(target);
        let index = self.run.lower_bound(user_key);
        let Some(meta) = self.run.get(index).cloned() else {
            return self.last_before(self.run.len());
        };
        if meta.smallest > *user_key {
            return self.last_before(index);
        }
        if self.bounds.is_above(meta.smallest.bytes()) || self.bounds.is_below(meta.largest.bytes())
        {
            return self.last_before(index + 1);
        }
        match self.look(&meta, true)? {
            Look::Open => {}
            Look::Pass => return self.last_before(index),
            Look::Stop => return Ok(()),
        }
        let table = self.open(index, &meta)?;
        table.seek_for_prev(target)?;
        if table.valid() {
            self.placed = true;
            return Ok(());
        }
        // The target is before the first version of the table's smallest key.
        self.last_before(index)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some((_, table)) = &mut self.table else { return Ok(()) };
        if let Err(error) = table.next() {
            self.placed = false;
            return Err(error);
        }
        if table.valid() {
            return Ok(());
        }
        self.first_from(self.open_index() + 1)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let Some((_, table)) = &mut self.table else { return Ok(()) };
        if let Err(error) = table.prev() {
            self.placed = false;
            return Err(error);
        }
        if table.valid() {
            return Ok(());
        }
        self.last_before(self.open_index())
    }

    fn leap(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let Some(table) = self.older_table(newer_than) else { return Ok(false) };
        if *key::user_key(target) > table.largest {
            self.first_from(self.open_index() + 1)?;
        } else {
            self.seek(target)?;
        }
        Ok(true)
    }

    fn leap_back(&mut self, target: &[u8], newer_than: SeqNo) -> Result<bool> {
        let Some(table) = self.older_table(newer_than) else { return Ok(false) };
        if *key::user_key(target) < table.smallest {
            self.last_before(self.open_index())?;
        } else {
            self.seek_for_prev(target)?;
        }
        Ok(true)
    }

    #[inline]
    fn load_value(&mut self) -> Result<()> {
        self.table.as_mut().map_or(Ok(()), |(_, table)| table.load_value())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], |(_, table)| table.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], |(_, table)| table.value())
    }
}
