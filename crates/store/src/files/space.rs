//! What is where in compaction files: ranges of bytes, and of each file which are needed, which are
//! not and still take space, and which were given back. Sums only; nothing here touches a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::compaction::FileSpace;
use sateen_control::version::{Placement, TableMeta};
use sateen_control::{FileId, Instant};

use super::PAGE_BYTES;

/// So long after it has died a table is still in its place. Those beside it that die meanwhile go
/// with it, in one hole; and if all do, the file goes, and there never is a hole.
const DEAD_WAIT: Duration = Duration::from_secs(10);
/// So often it is looked whether a file still has its other name.
const SHARED_WAIT: Duration = Duration::from_secs(600);

/// A hole costs its file system as much as so many bytes, however small it is.
const HOLE_BYTES_MIN: u64 = 256 << 10;

/// Ranges of bytes, none of which touches another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents(BTreeMap<u64, u64>);

impl Extents {
    /// The range that `table` takes of its file, padding included; `None` if it is the whole file.
    pub(super) fn of(table: &TableMeta) -> Option<Range<u64>> {
        match table.placement {
            Placement::Slice { offset, length, .. } | Placement::Log { offset, length, .. } => {
                Some(offset..offset + length.next_multiple_of(PAGE_BYTES as u64))
            }
            Placement::WholeFile(_) => None,
        }
    }

    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back()
            && other_end >= start
        {
            self.0.remove(&other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.0.insert(start, end);
    }

    pub(super) fn remove(&mut self, range: &Range<u64>) {
        while let Some((&start, &end)) = self.0.range(..range.end).next_back()
            && end > range.start
        {
            self.0.remove(&start);
            if range.end < end {
                self.0.insert(range.end, end);
            }
            if start < range.start {
                self.0.insert(start, range.start);
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.0.iter().map(|(&start, &end)| start..end)
    }

    /// What it takes to give them back.
    pub(super) fn cost(&self) -> u64 {
        self.iter().map(|range| cost(&range)).sum()
    }

    /// Takes the first ones, or the last ones, that cost no more than `most`, the last of them in
    /// part.
    pub(super) fn take(&mut self, most: u64, from_end: bool) -> Extents {
        let mut taken = Extents::default();
        let mut left = most;
        while left > 0
            && let Some(range) = if from_end { self.iter().next_back() } else { self.iter().next() }
        {
            let piece = match (range.end - range.start > left, from_end) {
                (false, _) => range,
                (true, false) => range.start..range.start + left,
                (true, true) => range.end - left..range.end,
            };
            left = left.saturating_sub(cost(&piece));
            self.remove(&piece);
            taken.insert(piece);
        }
        taken
    }
}

impl Extend<Range<u64>> for Extents {
    fn extend<T: IntoIterator<Item = Range<u64>>>(&mut self, ranges: T) {
        ranges.into_iter().for_each(|range| self.insert(range));
    }
}

fn cost(range: &Range<u64>) -> u64 {
    (range.end - range.start).max(HOLE_BYTES_MIN)
}

/// One file.
#[derive(Debug, Default)]
struct Account {
    /// Tables in some version, or pinned.
    tables: u64,
    live_bytes: u64,
    /// What nobody needs any more.
    dead: Extents,
    /// When that may be given back: where it cannot be, never.
    due: Option<Instant>,
    /// What was given back.
    holes: Extents,
    /// It has another name, in a checkpoint or elsewhere: all of it stays as it is, at least until
    /// then.
    shared_until: Option<Instant>,
}

/// A file of which nothing is live.
#[derive(Clone, Debug)]
pub(super) struct DeadFile {
    pub(super) file: FileId,
    /// What it still has of its tables.
    pub(super) rest: Extents,
    pub(super) shared: bool,
}

/// All files.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    files: BTreeMap<FileId, Account>,
    /// Those with something to give back, by when.
    due: BTreeSet<(Instant, FileId)>,
    /// Raised whenever what is dead or given back changes.
    changes: u64,
}

impl Accounts {
    /// `table` is in a version from now on, for the first time.
    pub(super) fn add(&mut self, table: &TableMeta) {
        let account = self.files.entry(table.placement.file()).or_default();
        account.tables += 1;
        account.live_bytes += live_bytes(table);
        if let Some(values) = table.placement.values() {
            let account = self.files.entry(values).or_default();
            account.tables += 1;
            account.live_bytes += table.raw_bytes;
        }
    }

    /// The file has another name: what is dead in it stays, until somebody looks whether it still
    /// has. Nothing if there is no such file.
    pub(super) fn mark_shared(&mut self, file: FileId, now: Instant) {
        if let Some(account) = self.files.get_mut(&file) {
            account.shared_until = Some(now + SHARED_WAIT);
            if let Some(due) = account.due.take() {
                self.due.remove(&(due, file));
                self.add_dead(file, std::iter::empty(), now, true);
            }
        }
    }

    /// Nobody needs `table` any more. Gives its files back of which it was the last one.
    pub(super) fn bury(
        &mut self,
        table: &Arc<TableMeta>,
        now: Instant,
        can_punch: bool,
    ) -> impl Iterator<Item = DeadFile> + use<> {
        let range = Extents::of(table).unwrap_or(0..table.size_bytes);
        let file = table.placement.file();
        let dead = self.release(file, live_bytes(table), range, true, now, can_punch);
        // What of a log belongs to which table is not known: it goes as a whole.
        let values = table.placement.values().and_then(|values| {
            self.release(values, table.raw_bytes, 0..table.raw_bytes, false, now, can_punch)
        });
        dead.into_iter().chain(values)
    }

    /// A table that has `range` of `file` is gone. `in_part`: the range may be given back while
    /// other tables are there.
    fn release(
        &mut self,
        file: FileId,
        live_bytes: u64,
        range: Range<u64>,
        in_part: bool,
        now: Instant,
        can_punch: bool,
    ) -> Option<DeadFile> {
        let account = self.files.get_mut(&file)?;
        account.tables = account.tables.saturating_sub(1);
        account.live_bytes = account.live_bytes.saturating_sub(live_bytes);
        self.changes += 1;
        if account.tables > 0 {
            if in_part {
                self.add_dead(file, std::iter::once(range), now + DEAD_WAIT, can_punch);
            }
            return None;
        }
        let mut account = self.files.remove(&file)?;
        account.due.map(|due| self.due.remove(&(due, file)));
        account.dead.insert(range);
        Some(DeadFile { file, rest: account.dead, shared: account.shared_until.is_some() })
    }

    /// These ranges of a file are dead, and may be given back from `due` on. Nothing if there is no
    /// such file any more.
    pub(super) fn add_dead(
        &mut self,
        file: FileId,
        ranges: impl Iterator<Item = Range<u64>>,
        due: Instant,
        can_punch: bool,
    ) {
        let Some(account) = self.files.get_mut(&file) else { return };
        account.dead.extend(ranges);
        self.changes += 1;
        if account.due.is_none() && can_punch && !account.dead.is_empty() {
            let due = account.shared_until.map_or(due, |until| until.max(due));
            account.due = Some(due);
            self.due.insert((due, file));
        }
    }

    /// The file has no other name any more.
    pub(super) fn mark_own(&mut self, file: FileId) {
        if let Some(account) = self.files.get_mut(&file) {
            account.shared_until = None;
        }
    }

    /// These ranges of a file were given back.
    pub(super) fn add_holes(&mut self, file: FileId, ranges: &Extents) {
        if let Some(account) = self.files.get_mut(&file) {
            account.holes.extend(ranges.iter());
            self.changes += 1;
        }
    }

    /// What was given back of a file; nothing if there is no such file any more.
    pub(super) fn punched_bytes(&self, file: FileId) -> Option<u64> {
        self.files.get(&file).map(|account| account.holes.bytes())
    }

    /// The file system cannot give parts of files back: nothing of any is due.
    pub(super) fn nothing_is_due(&mut self) {
        for (_, file) in std::mem::take(&mut self.due) {
            if let Some(account) = self.files.get_mut(&file) {
                account.due = None;
            }
        }
    }

    /// These ranges could not be given back at `now`: with all that is dead in the file they wait
    /// as long as if they had died now.
    pub(super) fn postpone(&mut self, file: FileId, ranges: &Extents, now: Instant) {
        if let Some(due) = self.files.get_mut(&file).and_then(|account| account.due.take()) {
            self.due.remove(&(due, file));
        }
        self.add_dead(file, ranges.iter(), now + DEAD_WAIT, true);
    }

    /// Takes from the next file that is due at `now` what costs no more than `most`. `early`: due
    /// or not, if it had no other name when that was looked for.
    pub(super) fn take_dead(
        &mut self,
        now: Instant,
        early: bool,
        most: u64,
    ) -> Option<(FileId, Extents)> {
        let may_go = |(due, file): &&(Instant, FileId)| *due <= now || early && self.is_own(*file);
        let (due, file) = *self.due.iter().find(may_go)?;
        let account = self.files.get_mut(&file)?;
        let taken = account.dead.take(most, false);
        if account.dead.is_empty() {
            self.due.remove(&(due, file));
            account.due = None;
        }
        Some((file, taken))
    }

    /// When something is to be given back.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Whether something may be given back as far as is known, now or when it is due.
    pub(super) fn has_own(&self) -> bool {
        self.due.iter().any(|(_, file)| self.is_own(*file))
    }

    fn is_own(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|account| account.shared_until.is_none())
    }

    /// What it takes to give back all that may be, as far as is known.
    pub(super) fn due_cost(&self) -> u64 {
        let due = self.due.iter().filter_map(|(_, file)| self.files.get(file));
        due.filter(|account| account.shared_until.is_none()).map(|a| a.dead.cost()).sum()
    }

    /// Bytes of dead tables in files that have others. What a checkpoint shares is not dead there.
    pub(super) fn dead_bytes(&self) -> u64 {
        let own = self.files.values().filter(|account| account.shared_until.is_none());
        own.map(|account| account.dead.bytes()).sum()
    }

    /// The files that hold anything reachable.
    pub(super) fn files(&self) -> impl Iterator<Item = FileId> {
        self.files.keys().copied()
    }

    /// Says that anything may have changed if it is not what it was.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// What each file holds. What a checkpoint shares takes no space of this database's.
    pub(super) fn spaces(&self, can_punch: bool) -> Vec<FileSpace> {
        let space = |(&file, account): (&FileId, &Account)| FileSpace {
            file,
            live_bytes: account.live_bytes,
            dead_bytes: account.dead.bytes(),
            gives_back: can_punch || account.shared_until.is_some(),
            punched_bytes: account.holes.bytes(),
            holes: u32::try_from(account.holes.len()).unwrap_or(u32::MAX),
        };
        self.files.iter().map(space).collect()
    }
}

fn live_bytes(table: &TableMeta) -> u64 {
    Extents::of(table).map_or(table.size_bytes, |range| range.end - range.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(ranges: &[(u64, u64)]) -> Extents {
        let mut extents = Extents::default();
        extents.extend(ranges.iter().map(|(start, end)| *start..*end));
        extents
    }

    #[test]
    fn what_touches_becomes_one() {
        let mut all = extents(&[(10, 20), (30, 40), (20, 25)]);
        assert_eq!(all, extents(&[(10, 25), (30, 40)]));
        all.insert(24..31);
        assert_eq!(all, extents(&[(10, 40)]));
        all.insert(5..50);
        assert_eq!((all.len(), all.bytes()), (1, 45));
    }

    #[test]
    fn what_is_removed_may_part_what_was_one() {
        let mut all = extents(&[(10, 40), (50, 60)]);
        all.remove(&(20..30));
        assert_eq!(all, extents(&[(10, 20), (30, 40), (50, 60)]));
        all.remove(&(15..55));
        assert_eq!(all, extents(&[(10, 15), (55, 60)]));
        all.remove(&(60..70));
        assert_eq!(all.bytes(), 10);
    }

    #[test]
    fn what_is_taken_costs_no_more_than_it_may() {
        const M: u64 = 1 << 20;
        let all = extents(&[(0, 4096), (M, 2 * M), (4 * M, 6 * M)]);
        assert_eq!(all.cost(), HOLE_BYTES_MIN + 3 * M);
        let (mut first, mut last) = (all.clone(), all.clone());
        let taken = first.take(2 * M, false);
        assert_eq!(taken, extents(&[(0, 4096), (M, 2 * M), (4 * M, 5 * M - HOLE_BYTES_MIN)]));
        assert_eq!(first, extents(&[(5 * M - HOLE_BYTES_MIN, 6 * M)]));
        assert_eq!(last.take(M, true), extents(&[(5 * M, 6 * M)]));
        assert_eq!(last, extents(&[(0, 4096), (M, 2 * M), (4 * M, 5 * M)]));
        assert_eq!(last.take(u64::MAX, true), extents(&[(0, 4096), (M, 2 * M), (4 * M, 5 * M)]));
        assert!(last.is_empty());
    }
}
