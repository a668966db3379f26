//! The space of compaction files: which extents of each file are live, dead, or freed.
//!
//! 1. [`Accounts::add`] counts the tables and live bytes of a file.
//! 2. [`Accounts::bury`] marks a table's extent as dead and due after [`DEAD_WAIT`] (`add_dead`),
//!    or returns the file if no table is left (`release`).
//! 3. [`Accounts::take_dead`] takes extents that are due, up to a cost.
//! 4. [`Accounts::add_dead_values`] marks the pages of a value file of which all values are dead.
//! 5. [`Accounts::add_holes`] records them as freed, or [`Accounts::postpone`] puts them back.
//!
//! What must stay true: the counts depend only on these calls. Nothing here accesses a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::compaction::FileSpace;
use sateen_control::version::{Placement, TableMeta};
use sateen_control::{FileId, Instant};

use super::{HEADER_BYTES, PAGE_BYTES};

/// How long a dead table stays in its place. Neighbours that die meanwhile go with it in one hole.
/// If all tables die, the file is unlinked, and there is no hole at all.
pub(super) const DEAD_WAIT: Duration = Duration::from_secs(10);
/// How often the reclaimer checks whether a file still has another name.
const SHARED_WAIT: Duration = Duration::from_secs(600);

/// A hole costs its file system as much as this number of bytes, however small it is.
const HOLE_BYTES_MIN: u64 = 256 << 10;

/// Ranges of bytes that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents(BTreeMap<u64, u64>);

impl Extents {
    /// Returns the extent of `table` in its file, padding included; `None` if the table is a whole
    /// file.
    pub(super) fn of(table: &TableMeta) -> Option<Range<u64>> {
        match table.placement {
            Placement::Slice { offset, length, .. } | Placement::Log { offset, length, .. } => {
                Some(offset..offset + length.next_multiple_of(PAGE_BYTES as u64))
            }
            Placement::WholeFile(_) => None,
        }
    }

    /// Adds a range, and joins it with the ranges that it touches.
    pub fn insert(&mut self, range: Range<u64>) {
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

    /// Returns the range of these that contains `at`.
    fn around(&self, at: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.0.range(..=at).next_back()?;
        (at < end).then_some(start..end)
    }

    /// Removes a range, and cuts the ranges that reach into it.
    pub fn remove(&mut self, range: &Range<u64>) {
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

    /// Returns the sum of the lengths.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the number of ranges.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.0.iter().map(|(&start, &end)| start..end)
    }

    /// Returns the cost of freeing these ranges.
    pub(super) fn cost(&self) -> u64 {
        self.iter().map(|range| cost(&range)).sum()
    }

    /// Takes ranges from the front, or from the end, that cost at most `most`. The last one may be
    /// cut.
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

/// Returns the cost of freeing one range.
fn cost(range: &Range<u64>) -> u64 {
    (range.end - range.start).max(HOLE_BYTES_MIN)
}

/// The space of one file.
#[derive(Debug, Default)]
struct Account {
    /// Number of tables that are in some version, or pinned.
    tables: u64,
    /// Bytes of these tables in the file.
    live_bytes: u64,
    /// Dead bytes that are not freed.
    dead: Extents,
    /// When the dead bytes may be freed; `None` if there are none, or they cannot be.
    due: Option<Instant>,
    /// Freed ranges.
    holes: Extents,
    /// Set if the file has another name, in a checkpoint or elsewhere. The file then stays as it
    /// is, at least until this time.
    shared_until: Option<Instant>,
    /// Bytes of all values that were written to it, if it is a value file.
    value_bytes: u64,
    /// Dead values of a value file, whole pages or not, freed or not.
    dead_values: Extents,
}

impl Account {
    /// Returns the bytes of the tables, or of the values that tables refer to. Several tables refer
    /// to the same value while one of them is pinned or just replaced.
    fn live_bytes(&self) -> u64 {
        if self.value_bytes == 0 { self.live_bytes } else { self.live_bytes.min(self.value_bytes) }
    }

    /// Returns the bytes that the file takes. Of a value file that is all but its holes: not every
    /// dead value is known, and pages with a live one stay.
    fn used_bytes(&self) -> u64 {
        match self.value_bytes {
            0 => self.live_bytes + self.dead.bytes(),
            bytes => bytes.saturating_sub(self.holes.bytes()),
        }
    }
}

/// A file without live tables.
#[derive(Clone, Debug)]
pub(super) struct DeadFile {
    pub(super) file: FileId,
    /// The extents of its tables that are not freed.
    pub(super) rest: Extents,
    /// Whether the file had another name when last checked.
    pub(super) shared: bool,
    /// Whether it is a value file.
    pub(super) has_values: bool,
}

/// The space of all files.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    files: BTreeMap<FileId, Account>,
    /// Files with dead bytes, by the time at which these may be freed.
    due: BTreeSet<(Instant, FileId)>,
    /// Raised whenever dead or freed bytes change.
    changes: u64,
}

impl Accounts {
    /// Adds `table`, which enters a version for the first time.
    pub(super) fn add(&mut self, table: &TableMeta) {
        let account = self.files.entry(table.placement.file()).or_default();
        account.tables += 1;
        account.live_bytes += live_bytes(table);
        if let Some(values) = table.placement.values() {
            let account = self.files.entry(values).or_default();
            account.tables += 1;
            account.live_bytes += table.raw_bytes;
        }
        for one in &table.values.files {
            let account = self.files.entry(one.file).or_default();
            account.tables += 1;
            account.live_bytes += one.bytes;
            account.value_bytes = account.value_bytes.max(one.file_bytes);
        }
    }

    /// Marks that the file has another name. Its dead bytes stay until the next check for that
    /// name. Does nothing if the file is unknown.
    pub(super) fn mark_shared(&mut self, file: FileId, now: Instant) {
        if let Some(account) = self.files.get_mut(&file) {
            account.shared_until = Some(now + SHARED_WAIT);
            if let Some(due) = account.due.take() {
                self.due.remove(&(due, file));
                self.add_dead(file, std::iter::empty(), now, true);
            }
        }
    }

    /// Removes `table`, which is no longer needed. Returns the files of which it was the last
    /// table.
    pub(super) fn bury(
        &mut self,
        table: &Arc<TableMeta>,
        now: Instant,
        can_punch: bool,
    ) -> impl Iterator<Item = DeadFile> + use<> {
        let range = Extents::of(table).unwrap_or(0..table.size_bytes);
        let file = table.placement.file();
        let dead = self.release(file, live_bytes(table), range, true, now, can_punch);
        // The bytes of a WAL cannot be assigned to tables, so the WAL is freed as a whole.
        let values = table.placement.values().and_then(|values| {
            self.release(values, table.raw_bytes, 0..table.raw_bytes, false, now, can_punch)
        });
        // Which bytes of a value file are dead is told by the compaction that dropped the table.
        let refs = table
            .values
            .files
            .iter()
            .filter_map(|one| self.release(one.file, one.bytes, 0..0, false, now, can_punch));
        let refs: Vec<_> = refs.collect();
        dead.into_iter().chain(values).chain(refs)
    }

    /// Marks ranges of a value file as dead. Pages of which every byte is dead may be freed from
    /// `due` on. Does nothing if the file is gone.
    pub(super) fn add_dead_values(
        &mut self,
        file: FileId,
        ranges: &Extents,
        due: Instant,
        can_punch: bool,
    ) {
        let Some(account) = self.files.get_mut(&file) else { return };
        let page = PAGE_BYTES as u64;
        let mut pages = Extents::default();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            account.dead_values.insert(range.clone());
            let Some(dead) = account.dead_values.around(range.start) else { continue };
            // No page that the range touches was dead as a whole before.
            let start = dead.start.next_multiple_of(page).max(range.start / page * page);
            let end = (dead.end / page * page).min(range.end.next_multiple_of(page));
            pages.insert(start..end.max(start));
        }
        self.add_dead(file, pages.iter(), due, can_punch);
    }

    /// Removes a table with `range` from `file`. `in_part` says whether the range may be freed
    /// while other tables exist.
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
        if account.value_bytes > 0 {
            let bytes = account.value_bytes.next_multiple_of(PAGE_BYTES as u64);
            account.dead.insert(HEADER_BYTES..HEADER_BYTES + bytes);
            account.holes.iter().for_each(|hole| account.dead.remove(&hole));
        }
        let (shared, has_values) = (account.shared_until.is_some(), account.value_bytes > 0);
        Some(DeadFile { file, rest: account.dead, shared, has_values })
    }

    /// Marks ranges of a file as dead. They may be freed from `due` on. Does nothing if the file is
    /// gone.
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

    /// Marks that the file has no other name.
    pub(super) fn mark_own(&mut self, file: FileId) {
        if let Some(account) = self.files.get_mut(&file) {
            account.shared_until = None;
        }
    }

    /// Records ranges of a file as freed.
    pub(super) fn add_holes(&mut self, file: FileId, ranges: &Extents) {
        if let Some(account) = self.files.get_mut(&file) {
            account.holes.extend(ranges.iter());
            self.changes += 1;
        }
    }

    /// Returns the freed bytes of a file; `None` if the file is gone.
    pub(super) fn punched_bytes(&self, file: FileId) -> Option<u64> {
        self.files.get(&file).map(|account| account.holes.bytes())
    }

    /// Clears all due times, because the file system cannot free parts of files.
    pub(super) fn nothing_is_due(&mut self) {
        for (_, file) in std::mem::take(&mut self.due) {
            if let Some(account) = self.files.get_mut(&file) {
                account.due = None;
            }
        }
    }

    /// Puts ranges back that could not be freed at `now`. All dead bytes of the file then wait as
    /// if they had died now.
    pub(super) fn postpone(&mut self, file: FileId, ranges: &Extents, now: Instant) {
        if let Some(due) = self.files.get_mut(&file).and_then(|account| account.due.take()) {
            self.due.remove(&(due, file));
        }
        self.add_dead(file, ranges.iter(), now + DEAD_WAIT, true);
    }

    /// Takes extents that cost at most `most` from the next file that is due at `now`. With
    /// `early`, also from a file that is not due, unless it had another name when last checked.
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

    /// Returns when space may be freed next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns true if space may be freed now or when it is due, as far as is known.
    pub(super) fn has_own(&self) -> bool {
        self.due.iter().any(|(_, file)| self.is_own(*file))
    }

    /// Returns true if the file had no other name when last checked.
    fn is_own(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|account| account.shared_until.is_none())
    }

    /// Returns the cost of freeing everything that may be freed, as far as is known.
    pub(super) fn due_cost(&self) -> u64 {
        self.own_due().map(Extents::cost).sum()
    }

    /// Returns the bytes of it.
    pub(super) fn due_bytes(&self) -> u64 {
        self.own_due().map(Extents::bytes).sum()
    }

    /// Returns what may be freed now or when it is due, as far as is known.
    fn own_due(&self) -> impl Iterator<Item = &Extents> {
        let due = self.due.iter().filter_map(|(_, file)| self.files.get(file));
        due.filter(|account| account.shared_until.is_none()).map(|account| &account.dead)
    }

    /// Returns the bytes of dead tables in files with live tables. Bytes that a checkpoint shares
    /// do not count.
    pub(super) fn dead_bytes(&self) -> u64 {
        let own = self.files.values().filter(|account| account.shared_until.is_none());
        own.map(|account| account.dead.bytes()).sum()
    }

    /// Returns the files that hold a reachable table.
    pub(super) fn files(&self) -> impl Iterator<Item = FileId> {
        self.files.keys().copied()
    }

    /// Returns a number that differs if anything has changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the bytes that all files take.
    pub(super) fn used_bytes(&self) -> u64 {
        self.files.values().map(Account::used_bytes).sum()
    }

    /// Returns the space of each file. Bytes that a checkpoint shares do not count as this
    /// database's.
    pub(super) fn spaces(&self, can_punch: bool) -> Vec<FileSpace> {
        let space = |(&file, account): (&FileId, &Account)| FileSpace {
            file,
            live_bytes: account.live_bytes(),
            dead_bytes: account.dead.bytes(),
            gives_back: can_punch || account.shared_until.is_some(),
            punched_bytes: account.holes.bytes(),
            holes: u32::try_from(account.holes.len()).unwrap_or(u32::MAX),
        };
        self.files.iter().map(space).collect()
    }
}

/// Returns the bytes of a table in its file, padding included.
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
    fn touching_ranges_are_joined() {
        let mut all = extents(&[(10, 20), (30, 40), (20, 25)]);
        assert_eq!(all, extents(&[(10, 25), (30, 40)]));
        all.insert(24..31);
        assert_eq!(all, extents(&[(10, 40)]));
        all.insert(5..50);
        assert_eq!((all.len(), all.bytes()), (1, 45));
    }

    #[test]
    fn removing_a_range_may_split_another() {
        let mut all = extents(&[(10, 40), (50, 60)]);
        all.remove(&(20..30));
        assert_eq!(all, extents(&[(10, 20), (30, 40), (50, 60)]));
        all.remove(&(15..55));
        assert_eq!(all, extents(&[(10, 15), (55, 60)]));
        all.remove(&(60..70));
        assert_eq!(all.bytes(), 10);
    }

    #[test]
    fn only_pages_without_a_live_value_are_dead() {
        const FILE: FileId = FileId(3);
        let mut accounts = Accounts::default();
        accounts.files.insert(FILE, Account { tables: 1, ..Account::default() });
        let pages = |accounts: &Accounts| accounts.files[&FILE].dead.clone();
        let dead = |accounts: &mut Accounts, ranges: &[(u64, u64)]| {
            accounts.add_dead_values(FILE, &extents(ranges), Instant::default(), true);
        };
        dead(&mut accounts, &[(5000, 8192), (8192, 12_000), (20_000, 21_000)]);
        assert_eq!(pages(&accounts), extents(&[]));
        dead(&mut accounts, &[(4096, 5000)]);
        assert_eq!(pages(&accounts), extents(&[(4096, 8192)]));
        dead(&mut accounts, &[(12_000, 20_000)]);
        assert_eq!(pages(&accounts), extents(&[(4096, 20_480)]));
        // What was freed is not freed again when its neighbour dies.
        let freed = accounts.take_dead(Instant::default(), true, u64::MAX);
        assert_eq!(freed, Some((FILE, extents(&[(4096, 20_480)]))));
        dead(&mut accounts, &[(21_000, 24_576)]);
        assert_eq!(pages(&accounts), extents(&[(20_480, 24_576)]));
    }

    #[test]
    fn ranges_taken_stay_within_the_cost() {
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
