//! Where output tables end.
//!
//! 1. A job asks [`OutputCutter::cut_before`] once for each new user key, in ascending order. All
//!    versions of a user key stay in one table, because the tables of a run share no key.
//! 2. [`OutputCutter::advance`] moves through the run below the output. It counts which of its
//!    tables begin or end between the last key and this one.
//! 3. [`OutputCutter::pass_breaks`] tells whether a fixed boundary lies there: a stripe, a known
//!    guard, or a break of the plan. The table always ends at it.
//! 4. [`OutputCutter::decide`] applies the plan's [`OutputSplit`] to the table's size and overlap.
//! 5. When the table ends, the counts start again with this key.

use std::sync::Arc;

use super::gap::GapFinder;
use super::guard::is_guard;
use super::span::KeysOf;
use super::split::OutputSplit;
use crate::types::UserKey;

/// The part of its target, in percent, from which on a table may end where a table below ends. It
/// grows with each boundary that the table has crossed.
const EARLY_PERCENT: u64 = 50;
const EARLY_PERCENT_PER_BOUNDARY: u64 = 5;
const EARLY_PERCENT_MAX: u64 = 90;
/// A table may end at a gap once it has this part of the target.
const GAP_PART: u64 = 16;

/// Decides for ascending user keys whether the current output table ends before each.
#[derive(Clone, Debug)]
pub struct OutputCutter {
    split: OutputSplit,
    grandparents: Arc<[KeysOf]>,
    /// The rank of the first grandparent that does not end below the last key.
    rank: usize,
    /// Whether the last key was inside it.
    inside: bool,
    /// Grandparents between the first and the last key of the current table, and their bytes.
    overlap_tables: u64,
    overlap_bytes: u64,
    /// Number of grandparent boundaries that the current table has crossed.
    crossings: u64,
    /// Fixed boundaries above the last key, the largest first.
    breaks: Vec<UserKey>,
    /// The gap finder, if tables end at gaps.
    gaps: Option<GapFinder>,
}

/// Number of grandparents that are passed one by one before a search skips those up to the next
/// key. Most of a level may lie between two inputs of a group.
const STEPS_MAX: u32 = 4;

/// The grandparents between the last key and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Crossed {
    /// Number of begins and ends of grandparents.
    boundaries: u64,
    /// Grandparents that begin behind the last key and not behind the next, and their bytes.
    tables: u64,
    bytes: u64,
}

impl OutputCutter {
    /// Returns a cutter for the run of level 0 that a flush writes: tables end at `target_bytes`,
    /// at `stripes` and, with `at_gaps`, at gaps.
    #[must_use]
    pub fn of_flush(target_bytes: u64, at_gaps: bool, stripes: &[UserKey]) -> OutputCutter {
        let split = OutputSplit::BySize {
            target_bytes,
            grandparent_overlap_bytes_max: u64::MAX,
            at_grandparent_boundaries: false,
            at_gaps,
        };
        OutputCutter::over(split, Arc::default(), stripes.iter().rev().cloned().collect())
    }

    /// Returns a cutter for outputs that lie above `grandparents` and that end at `breaks`, in any
    /// order, and at the guards of `split`.
    pub(crate) fn new(
        split: &OutputSplit,
        grandparents: Arc<[KeysOf]>,
        breaks: &[UserKey],
    ) -> OutputCutter {
        let guards: &[UserKey] = match split {
            OutputSplit::AtGuards { guards, .. } => guards,
            _ => &[],
        };
        let mut breaks: Vec<_> = breaks.iter().chain(guards).cloned().collect();
        breaks.sort_unstable_by(|a, b| b.cmp(a));
        OutputCutter::over(split.clone(), grandparents, breaks)
    }

    /// Like [`OutputCutter::new`], with `breaks` in descending order.
    fn over(split: OutputSplit, grandparents: Arc<[KeysOf]>, breaks: Vec<UserKey>) -> OutputCutter {
        let at_gaps = matches!(split, OutputSplit::BySize { at_gaps: true, .. });
        OutputCutter {
            split,
            grandparents,
            rank: 0,
            inside: false,
            overlap_tables: 0,
            overlap_bytes: 0,
            crossings: 0,
            breaks,
            gaps: at_gaps.then(GapFinder::default),
        }
    }

    /// Returns true if the current output table, which has `table_bytes`, ends before `user_key`.
    /// Call it once for each new user key, in ascending order. An empty table does not end.
    #[inline]
    pub fn cut_before(&mut self, user_key: &[u8], table_bytes: u64) -> bool {
        let was_inside = self.inside;
        let crossed = self.advance(user_key);
        let broken = self.pass_breaks(user_key);
        let cut =
            table_bytes > 0 && (broken || self.decide(user_key, table_bytes, crossed, was_inside));
        if cut || table_bytes == 0 {
            let inside = self.grandparents.get(self.rank).filter(|_| self.inside);
            self.overlap_tables = u64::from(inside.is_some());
            self.overlap_bytes = inside.map_or(0, |table| table.size_bytes);
            self.crossings = 0;
            if let Some(gaps) = &mut self.gaps {
                gaps.begin(user_key);
            }
        } else {
            if let Some(gaps) = &mut self.gaps {
                gaps.add(user_key);
            }
            self.overlap_tables += crossed.tables;
            self.overlap_bytes += crossed.bytes;
            self.crossings += u64::from(crossed.boundaries > 0);
        }
        cut
    }

    /// Returns true if a fixed boundary lies behind the last key and not behind `user_key`.
    #[inline]
    fn pass_breaks(&mut self, user_key: &[u8]) -> bool {
        let mut passed = false;
        while self.breaks.pop_if(|key| *key <= *user_key).is_some() {
            passed = true;
        }
        passed
    }

    /// Applies the rule of the plan to a table of `bytes` bytes.
    fn decide(&self, user_key: &[u8], bytes: u64, crossed: Crossed, was_inside: bool) -> bool {
        match &self.split {
            OutputSplit::BySize {
                target_bytes,
                grandparent_overlap_bytes_max,
                at_grandparent_boundaries,
                at_gaps: _,
            } => {
                let aligned = *at_grandparent_boundaries && !self.grandparents.is_empty();
                if bytes >= if aligned { target_bytes.saturating_mul(2) } else { *target_bytes } {
                    return true;
                }
                let gaps = self.gaps.as_ref().filter(|_| bytes >= target_bytes / GAP_PART);
                if gaps.is_some_and(|gaps| gaps.is_before(user_key)) {
                    return true;
                }
                if crossed.boundaries == 0 {
                    return false;
                }
                if self.overlap_bytes + crossed.bytes + bytes > *grandparent_overlap_bytes_max {
                    return true;
                }
                // A whole grandparent lies between the two keys. If the table ends here, that
                // grandparent is not rewritten later.
                let skips = crossed.boundaries >= if was_inside { 3 } else { 2 };
                let early = EARLY_PERCENT + EARLY_PERCENT_PER_BOUNDARY * self.crossings;
                aligned
                    && (skips && crossed.bytes > target_bytes / 8
                        || bytes >= target_bytes / 100 * early.min(EARLY_PERCENT_MAX))
            }
            OutputSplit::AtGuards { bits, target_bytes, .. } => {
                bytes >= *target_bytes || is_guard(user_key, *bits)
            }
            OutputSplit::ByOverlap { bytes_min, bytes_max, limit } => {
                let tables = self.overlap_tables + crossed.tables;
                let good = || limit.allows(tables, self.overlap_bytes + crossed.bytes);
                bytes >= *bytes_max || bytes >= *bytes_min && !good()
            }
        }
    }

    /// Moves to `user_key`. Returns what lies between it and the last key.
    #[inline]
    fn advance(&mut self, user_key: &[u8]) -> Crossed {
        let mut crossed = Crossed::default();
        let mut steps = 0;
        while let Some(table) = self.grandparents.get(self.rank) {
            if !self.inside && table.smallest <= *user_key {
                self.inside = true;
                crossed.boundaries += 1;
                crossed.tables += 1;
                crossed.bytes += table.size_bytes;
            }
            if *user_key <= table.largest {
                break;
            }
            self.inside = false;
            crossed.boundaries += 1;
            self.rank += 1;
            steps += 1;
            if steps == STEPS_MAX {
                let rest = self.grandparents.get(self.rank..).unwrap_or_default();
                let passed = rest.partition_point(|table| table.largest < *user_key);
                crossed.boundaries += 2 * passed as u64;
                crossed.tables += passed as u64;
                crossed.bytes +=
                    rest.iter().take(passed).map(|table| table.size_bytes).sum::<u64>();
                self.rank += passed;
            }
        }
        crossed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> UserKey {
        UserKey::bytewise(n.to_be_bytes())
    }

    /// Tables of the keys 10 to 15, 20 to 25 and so on, of 1, 2, 3 … bytes.
    fn grandparents() -> Arc<[KeysOf]> {
        let table =
            |n: u64| KeysOf { smallest: key(10 * n), largest: key(10 * n + 5), size_bytes: n };
        (1..=1000).map(table).collect()
    }

    fn cutter() -> OutputCutter {
        let split = OutputSplit::BySize {
            target_bytes: 1,
            grandparent_overlap_bytes_max: u64::MAX,
            at_grandparent_boundaries: true,
            at_gaps: false,
        };
        OutputCutter::over(split, grandparents(), vec![])
    }

    #[test]
    fn tables_end_at_guards_and_when_they_are_full() {
        let split = OutputSplit::AtGuards { guards: vec![], bits: 4, target_bytes: 100 };
        let mut cutter = OutputCutter::over(split, Arc::default(), vec![]);
        let (mut bytes, mut at_guards, mut full) = (0, 0, 0);
        for n in 0..4_000 {
            let key = key(n);
            let guard = is_guard(key.bytes(), 4);
            let cut = cutter.cut_before(key.bytes(), bytes);
            assert_eq!(cut, bytes > 0 && (guard || bytes >= 100), "key {n} after {bytes} bytes");
            at_guards += u32::from(cut && guard);
            full += u32::from(cut && !guard);
            bytes = if cut { 5 } else { bytes + 5 };
        }
        assert!(at_guards > 150 && full > 30, "{at_guards} at guards, {full} full");
    }

    /// A jump to a key far away counts the same as the steps from key to key.
    #[test]
    fn what_is_gone_past_at_once_counts_as_if_passed_one_by_one() {
        let (mut step, mut seed) = (1, 7_u64);
        let (mut direct, mut slow) = (cutter(), cutter());
        let (mut at, mut last) = (0, 0);
        while at < 10_100 {
            let one = direct.advance(key(at).bytes());
            let mut all = Crossed::default();
            for between in last..=at {
                let crossed = slow.advance(key(between).bytes());
                all.boundaries += crossed.boundaries;
                all.tables += crossed.tables;
                all.bytes += crossed.bytes;
            }
            assert_eq!(one, all, "at {at}");
            assert_eq!((direct.rank, direct.inside), (slow.rank, slow.inside), "at {at}");
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            last = at;
            at += step;
            step = 1 + (seed >> 33) % if seed % 3 == 0 { 2000 } else { 30 };
        }
        direct.advance(key(20_000).bytes());
        assert_eq!((direct.rank, direct.inside), (1000, false), "behind the last");
    }
}
