//! Checks that newer entries lie above older ones.
//!
//! `check_depth_order` moves one cursor over each run, newest run first, and compares the entries
//! of each key. A reader stops at the first entry that it may see. So no reader, now or with a
//! snapshot, may have a newer visible entry below it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sateen_control::version::{TableMeta, Version};
use sateen_control::{IoClass, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::table::table_cache::TableCache;
use sateen_store::table::{TableIter, TableIterOptions};

use super::{Checker, TRIES_MAX, is_same, view_of};
use crate::tree::manifest_follower::ManifestFollower;

/// Bytes of one read of a run.
const CHUNK_BYTES: usize = 256 << 10;

impl Checker<'_> {
    /// Checks for each key that no level has an older entry above a newer one.
    pub(super) fn check_order(&mut self, manifest: &mut ManifestFollower) -> Result<()> {
        let mut checked = BTreeSet::new();
        let mut tries = 0;
        while tries < TRIES_MAX {
            let view = view_of(manifest);
            let Some((id, family)) = view.families.iter().find(|(id, _)| !checked.contains(*id))
            else {
                return Ok(());
            };
            (self.goes_on)()?;
            let cache = self.table_cache(view.db_uid);
            match check_depth_order(&cache, &self.directory, &family.version, &(self.readers)()) {
                Ok(()) => {}
                Err(error) => {
                    self.advance(manifest);
                    if !is_same(&view_of(manifest), *id, &family.version) {
                        tries += 1;
                        continue;
                    }
                    // Tables that cannot be read were already reported by the check of tables.
                    let is_order = matches!(error, Error::InconsistentEdit { .. });
                    if is_order || error.is_environment() || self.report.problems.is_empty() {
                        self.problem(error);
                    }
                }
            }
            checked.insert(*id);
        }
        let text = "the order of levels was not checked in all column families: they change \
                    faster than they can be read";
        self.report.notes.push(text.to_owned());
        Ok(())
    }
}

/// A cursor over one run.
struct RunCursor {
    tables: Vec<Arc<TableMeta>>,
    next: usize,
    iter: Option<TableIter>,
}

impl RunCursor {
    /// Opens the next table if the current one is at its end.
    fn settle(&mut self, cache: &TableCache) -> Result<()> {
        while self.iter.as_ref().is_none_or(|iter| !iter.valid()) {
            let Some(table) = self.tables.get(self.next) else {
                self.iter = None;
                return Ok(());
            };
            self.next += 1;
            let table = cache.get(table, IoClass::Client)?;
            let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, CHUNK_BYTES));
            iter.seek_to_first()?;
            self.iter = Some(iter);
        }
        Ok(())
    }

    /// Returns the user key under the cursor; `None` at the end.
    fn user_key(&self) -> Option<&[u8]> {
        self.iter.as_ref().map(|iter| key::user_key(iter.key()))
    }
}

/// Checks one tree. Copies above are allowed: a compaction that ended early leaves copies of its
/// outputs in the level above. A later merge into those may drop entries that no reader can see.
fn check_depth_order(
    cache: &TableCache,
    directory: &Path,
    version: &Version,
    readers: &[SeqNo],
) -> Result<()> {
    let runs = version.levels().iter().flat_map(|level| level.runs());
    let mut cursors: Vec<RunCursor> = runs
        .map(|run| RunCursor { tables: run.iter().cloned().collect(), next: 0, iter: None })
        .collect();
    if cursors.len() < 2 {
        return Ok(());
    }
    for cursor in &mut cursors {
        cursor.settle(cache)?;
    }
    while let Some(current) = cursors.iter().filter_map(RunCursor::user_key).min() {
        let current = current.to_vec();
        let mut above: Vec<SeqNo> = Vec::new();
        for cursor in &mut cursors {
            let mut here = Vec::new();
            while cursor.user_key() == Some(&current) {
                let Some(iter) = &mut cursor.iter else { break };
                let seqno = key::seqno(iter.key());
                if is_hidden(seqno, &above, readers) {
                    return Err(Error::InconsistentEdit {
                        path: directory.to_owned(),
                        reason: format!(
                            "the key \"{}\" has the entry {seqno} below an older one",
                            current.escape_ascii()
                        ),
                    });
                }
                here.push(seqno);
                iter.next()?;
                cursor.settle(cache)?;
            }
            above.append(&mut here);
        }
    }
    Ok(())
}

/// Returns true if a reader that may see the entry finds an older one first, among the entries
/// `above` it.
fn is_hidden(seqno: SeqNo, above: &[SeqNo], readers: &[SeqNo]) -> bool {
    let first_seen = |reader: &SeqNo| above.iter().filter(|above| *above <= reader).max();
    let mut may_see = readers.iter().filter(|reader| seqno <= **reader);
    !above.is_empty() && may_see.any(|reader| first_seen(reader).is_some_and(|seen| *seen < seqno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_would_read_must_not_lie_below_what_is_older() {
        let hidden = |seqno, above: &[u64], readers: &[u64]| {
            let numbers = |of: &[u64]| of.iter().copied().map(SeqNo).collect::<Vec<_>>();
            is_hidden(SeqNo(seqno), &numbers(above), &numbers(readers))
        };
        assert!(!hidden(5, &[], &[9]), "nothing above");
        assert!(!hidden(5, &[7], &[9]), "a newer one above");
        assert!(hidden(5, &[3], &[9]), "an older one above");
        assert!(!hidden(5, &[5, 3], &[9]), "its copy above");
        // An older entry that a snapshot keeps, and a newer one that hides both from all other
        // readers.
        assert!(!hidden(5, &[7, 3], &[4, 9]));
        assert!(hidden(5, &[7, 3], &[4, 6, 9]), "the snapshot at 6 should see it");
        assert!(!hidden(5, &[3], &[4]), "nobody may see it");
    }
}
