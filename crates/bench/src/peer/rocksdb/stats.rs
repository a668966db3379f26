//! Figures from RocksDB's statistics texts, which exist even when its statistics are off.
//!
//! The texts are for people and round to megabytes. A figure that is not found counts as zero, so
//! that a change of the texts costs figures instead of the run.

use std::path::Path;

use sateen::metrics::StallCause;

use crate::store::{LevelSize, StalledBy};

const KB: f64 = 1024.0;
const GB: f64 = KB * KB * KB;

/// Figures since open.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stats {
    pub(super) levels: Vec<LevelSize>,
    pub(super) wal_written: u64,
    pub(super) flush_written: u64,
    pub(super) compaction_read: u64,
    /// Bytes that compactions and flushes wrote.
    pub(super) compaction_written: u64,
    pub(super) stall_count: u64,
    pub(super) stall_ns: u64,
    pub(super) stalled_by: Vec<StalledBy>,
}

/// Reads the texts of `rocksdb.cfstats` and `rocksdb.dbstats`.
pub(super) fn parse(family: &str, database: &str) -> Stats {
    let mut stats = Stats::default();
    for line in family.lines() {
        if let Some(rest) = line.strip_prefix("Flush(GB): cumulative ") {
            stats.flush_written = gigabytes(rest);
        } else if let Some(rest) = line.strip_prefix("Cumulative compaction: ") {
            stats.compaction_written = gigabytes(rest);
            stats.compaction_read =
                rest.split(", ").find(|part| part.ends_with("GB read")).map_or(0, gigabytes);
        } else if line.starts_with("Write Stall (count): ") {
            stats.stall_count += after(line, "total-delays: ").unwrap_or(0)
                + after(line, "total-stops: ").unwrap_or(0);
            stats.stalled_by = CAUSES.map(|cause| stalled_by(line, cause)).into();
        } else if let Some((level, size)) = level(line) {
            stats.levels.resize(stats.levels.len().max(level + 1), LevelSize::default());
            stats.levels[level] = size;
        }
    }
    for line in database.lines() {
        if let Some(rest) = line.strip_prefix("Cumulative WAL: ") {
            stats.wal_written =
                rest.split_once("written: ").map_or(0, |(_, written)| gigabytes(written));
        } else if let Some(rest) = line.strip_prefix("Cumulative stall: ") {
            stats.stall_ns = clock(rest);
        }
    }
    stats
}

/// Parses a row of the table: `  L0     10/8    248.62 MB   0.5 …`.
fn level(line: &str) -> Option<(usize, LevelSize)> {
    let mut words = line.split_ascii_whitespace();
    let level = words.next()?.strip_prefix('L')?.parse().ok().filter(|level| *level < 64)?;
    let files = words.next()?.split('/').next()?.parse().ok()?;
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "KB" => KB,
        "MB" => KB * KB,
        "GB" => GB,
        "TB" => GB * KB,
        _ => 1.0,
    };
    Some((level, LevelSize { files, bytes: (number * unit) as u64, good: 0 }))
}

/// Parses the number of GB at the beginning of `text`.
fn gigabytes(text: &str) -> u64 {
    let number = text.split([' ', ',']).next().and_then(|word| word.parse::<f64>().ok());
    (number.unwrap_or(0.0) * GB) as u64
}

/// RocksDB's names of the causes, and Sateen's.
const CAUSES: [(&str, StallCause); 3] = [
    ("memtable-limit", StallCause::MemtableLimit),
    ("l0-file-count-limit", StallCause::Level0Runs),
    ("pending-compaction-bytes", StallCause::PendingCompactionBytes),
];

/// Parses the count of a cause. RocksDB does not tell the time.
fn stalled_by(line: &str, (name, cause): (&str, StallCause)) -> StalledBy {
    let of = |kind| after(line, &format!("{name}-{kind}: ")).unwrap_or(0);
    let count = of("delays") + of("stops");
    StalledBy { cause: cause.name().to_owned(), count, ns: None }
}

fn after(line: &str, label: &str) -> Option<u64> {
    let (_, rest) = line.split_once(label)?;
    rest.split(',').next()?.trim().parse().ok()
}

/// Parses `00:01:2.500 H:M:S` into nanoseconds.
fn clock(text: &str) -> u64 {
    let time = text.split(' ').next().unwrap_or_default();
    let seconds =
        time.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap_or(0.0));
    (seconds * 1e9) as u64
}

/// Texts in a library before the tag of its source, and the name of the store that has them.
const TAGS: [(&[u8], &str); 2] =
    [(b"rocksdb_build_git_tag:", "RocksDB"), (b"speedb_build_git_tag:", "Speedb")];

/// Finds the name and version in the library file.
pub(super) fn version_of(library: &Path) -> String {
    let bytes = std::fs::read(library).unwrap_or_default();
    version_in(&bytes)
}

fn version_in(bytes: &[u8]) -> String {
    for (label, name) in TAGS {
        let at = bytes.windows(label.len()).position(|window| window == label);
        let Some(rest) = at.and_then(|at| bytes.get(at + label.len()..)) else { continue };
        let tag: Vec<u8> =
            rest.iter().take_while(|byte| byte.is_ascii_graphic()).copied().collect();
        let tag = String::from_utf8(tag).unwrap_or_default();
        let version = tag.rsplit(['v', '/', '-']).next().unwrap_or_default();
        return match version.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("{name} {version}"),
            false => name.to_owned(),
        };
    }
    "RocksDB".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_tells_its_name_and_version() {
        for (bytes, version) in [
            ("\0rocksdb_build_git_tag:v11.8.1\0", "RocksDB 11.8.1"),
            ("\0speedb_build_git_tag:speedb/v2.8.0\0", "Speedb 2.8.0"),
            ("rocksdb_build_git_tag:@tag@", "RocksDB"),
            ("nothing", "RocksDB"),
        ] {
            assert_eq!(version_in(bytes.as_bytes()), version);
        }
    }

    const FAMILY: &str = "
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)
----------------------------------------
  L0     10/8    248.62 MB   0.5      0.1
  L6      2/2      1.50 GB   0.0      0.2
 Sum     12/10   372.90 MB   0.0      0.3
Flush(GB): cumulative 0.364, interval 0.364
Cumulative compaction: 0.67 GB write, 216.67 MB/s write, 0.30 GB read, 98.49 MB/s read, 3.3 seconds
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 9, \
l0-file-count-limit-delays: 1, memtable-limit-stops: 2, pending-compaction-bytes-delays: 2, \
total-delays: 3, total-stops: 2
";
    const DATABASE: &str = "
Cumulative WAL: 400K writes, 0 syncs, 400001.00 writes per sync, written: 0.38 GB, 123.79 MB/s
Cumulative stall: 00:01:2.500 H:M:S, 0.7 percent
Interval stall: 00:00:0.022 H:M:S, 0.7 percent
Write Stall (count): write-buffer-manager-limit-stops: 0
";

    #[test]
    fn the_texts_give_their_figures() {
        let stats = parse(FAMILY, DATABASE);
        assert_eq!(stats.levels.len(), 7);
        assert_eq!(stats.levels[0].files, 10);
        assert_eq!(stats.levels[6], LevelSize { files: 2, bytes: 3 << 29, good: 0 });
        assert_eq!(stats.flush_written, (0.364 * GB) as u64);
        assert_eq!(stats.compaction_written, (0.67 * GB) as u64);
        assert_eq!(stats.compaction_read, (0.30 * GB) as u64);
        assert_eq!(stats.wal_written, (0.38 * GB) as u64);
        assert_eq!((stats.stall_count, stats.stall_ns), (5, 62_500_000_000));
        let by: Vec<_> = stats.stalled_by.iter().map(|by| (&*by.cause, by.count)).collect();
        assert_eq!(
            by,
            [("memtable-limit", 2), ("level0-runs", 1), ("pending-compaction-bytes", 2)]
        );
    }

    #[test]
    fn texts_that_say_nothing_give_zeros() {
        assert_eq!(parse("", ""), Stats::default());
        let garbage = "L99999999999 1/1 x\nL3\nFlush(GB): cumulative x\nCumulative compaction: ";
        assert_eq!(parse(garbage, "Cumulative stall: "), Stats::default());
    }
}
