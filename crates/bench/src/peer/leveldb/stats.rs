//! Figures from LevelDB's statistics text.
//!
//! The text is for people and rounds to megabytes. A figure that is not found counts as zero, so
//! that a change of the text costs figures instead of the run.

use crate::store::LevelSize;

/// Figures since open.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stats {
    pub(super) levels: Vec<LevelSize>,
    /// Bytes that were written into level 0. A flush whose keys overlap no table may go deeper; its
    /// bytes count as those of a compaction.
    pub(super) flush_written: u64,
    pub(super) compaction_read: u64,
    pub(super) compaction_written: u64,
}

/// Reads the text of `leveldb.stats`: a row for each level that has tables or had a compaction.
pub(super) fn parse(text: &str) -> Stats {
    let mut stats = Stats::default();
    for line in text.lines() {
        let Some([level, files, megabytes, _seconds, read, written]) = row(line) else { continue };
        let bytes = |megabytes: f64| (megabytes * f64::from(1 << 20)) as u64;
        let level = level as usize;
        stats.levels.resize(stats.levels.len().max(level + 1), LevelSize::default());
        stats.levels[level] = LevelSize { files: files as u64, bytes: bytes(megabytes), good: 0 };
        if level == 0 {
            stats.flush_written += bytes(written);
        } else {
            stats.compaction_read += bytes(read);
            stats.compaction_written += bytes(written);
        }
    }
    stats
}

/// Parses a row of six numbers, of which the first is a level.
fn row(line: &str) -> Option<[f64; 6]> {
    let mut words = line.split_ascii_whitespace();
    let mut numbers = [0.0; 6];
    for number in &mut numbers {
        *number = words.next()?.parse().ok().filter(|number: &f64| *number >= 0.0)?;
    }
    (words.next().is_none() && numbers[0] < 64.0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "                               Compactions
Level  Files Size(MB) Time(sec) Read(MB) Write(MB)
--------------------------------------------------
  0        2        7         1        0        27
  1        5       10         3       60        58
  3        1        2         0        0         2
";

    #[test]
    fn the_text_gives_its_figures() {
        let stats = parse(TEXT);
        assert_eq!(stats.levels.len(), 4);
        assert_eq!(stats.levels[0], LevelSize { files: 2, bytes: 7 << 20, good: 0 });
        assert_eq!(stats.levels[2], LevelSize::default());
        assert_eq!(stats.flush_written, 27 << 20);
        assert_eq!((stats.compaction_read, stats.compaction_written), (60 << 20, 60 << 20));
    }

    #[test]
    fn a_text_that_says_nothing_gives_zeros() {
        assert_eq!(parse(""), Stats::default());
        assert_eq!(parse("1 2 3 4 5\n99 1 1 1 1 1\n-1 1 1 1 1 1\n1 2 3 4 5 6 7"), Stats::default());
    }
}
