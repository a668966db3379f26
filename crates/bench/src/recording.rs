//! Recorded loads: text with an operation in each line, or a trace of calls that Sateen or RocksDB
//! has recorded.
//!
//! A trace becomes operations as follows. All keys are in one key space. A key of another column
//! family than the default one gets the number of its family in front, so that the keys of two
//! families differ. A merge becomes a write of as many bytes, and a seek reads one entry from its
//! key on. Values have the recorded sizes, not the recorded bytes.

use std::io::Read;
use std::path::Path;

use sateen::{BatchEntry, TraceCall, TraceReader, ValueKind, WriteBatch};
use sateen_workload::{OpKind, ReplayEvent, ReplayPart, parse_replay};

use crate::{Error, Result};

/// The place of a trace's magic: behind a time, a kind and a length.
const MAGIC_AT: usize = 13;
const MAGIC: &[u8] = b"feedcafedeadbeef";

/// The latest time of an operation, in microseconds: ten years. Later ones are mistakes, and their
/// nanoseconds might not fit.
const DUE_US_MAX: u64 = 10 * 365 * 24 * 60 * 60 * 1_000_000;

/// A recorded load.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) events: Vec<ReplayEvent>,
    /// What a reader of the figures must know of it, in sentences.
    pub(crate) notes: Vec<String>,
}

impl Recording {
    /// Returns the bytes of its largest value.
    pub(crate) fn size_max(&self) -> u32 {
        let of_event = |event: &ReplayEvent| {
            let others = event.others.iter().filter_map(|part| part.size);
            others.fold(event.size, u32::max)
        };
        self.events.iter().map(of_event).max().unwrap_or(0)
    }
}

/// Reads a recording, to be replayed `speed` times as fast. A seek of a trace reads `scan` entries.
pub(crate) fn read(path: &Path, speed: f64, scan: Option<u32>) -> Result<Recording> {
    let of_file = |error| Error::file(path, error);
    let mut file = std::fs::File::open(path).map_err(of_file)?;
    let mut begin = Vec::new();
    let head = (MAGIC_AT + MAGIC.len()) as u64;
    file.by_ref().take(head).read_to_end(&mut begin).map_err(of_file)?;
    let mut recording = if begin.get(MAGIC_AT..) == Some(MAGIC) {
        of_trace(path, scan.unwrap_or(1))?
    } else {
        let rest = std::io::BufReader::new(file);
        let events = parse_replay(begin.as_slice().chain(rest))
            .map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
        Recording { events, notes: Vec::new() }
    };
    if recording.events.is_empty() {
        return Err(Error::file(path, "the recording has no operation"));
    }
    if (speed - 1.0).abs() > f64::EPSILON {
        for event in &mut recording.events {
            // Microseconds are exact enough for a schedule.
            event.due_us = (event.due_us as f64 / speed) as u64;
        }
        recording.notes.push(format!("the recording was replayed {speed} times as fast"));
    }
    // Times ascend.
    if recording.events.last().is_some_and(|last| last.due_us > DUE_US_MAX) {
        let text = "the last operation is due more than ten years after the first";
        return Err(Error::file(path, text));
    }
    Ok(recording)
}

fn of_trace(path: &Path, scan: u32) -> Result<Recording> {
    let failed = |error: sateen::Error| Error::Failed(error.to_string());
    let mut reader = TraceReader::open(path).map_err(failed)?;
    let mut recording = Recording::default();
    let (start_us, mut last_us, mut ranges) = (reader.start_us(), 0, 0_u64);
    while let Some(record) = reader.next_record().map_err(failed)? {
        // RocksDB takes the times from the wall clock, which may be set back.
        last_us = record.at_us.saturating_sub(start_us).max(last_us);
        let event = |kind, key: Box<[u8]>, size, others| ReplayEvent {
            due_us: last_us,
            kind,
            key,
            size,
            others,
        };
        let event = match record.call {
            TraceCall::Get { family, key } => {
                Some(event(OpKind::Read, key_of(family.0, &key), 0, Box::default()))
            }
            TraceCall::MultiGet(keys) => {
                let mut keys = keys.iter().map(|(family, key)| key_of(family.0, key));
                let first = keys.next();
                let others = keys.map(|key| ReplayPart { key, size: None }).collect();
                first.map(|first| event(OpKind::Read, first, 0, others))
            }
            TraceCall::Seek(seek) => {
                let key = key_of(seek.family.0, &seek.key);
                Some(event(OpKind::Scan, key, scan, Box::default()))
            }
            TraceCall::Write(batch) => {
                let (parts, left_out) = parts_of(&batch);
                ranges += left_out;
                let mut parts = parts.into_iter();
                let first = parts.next();
                first.map(|first| {
                    let kind = if first.size.is_some() { OpKind::Write } else { OpKind::Delete };
                    event(kind, first.key, first.size.unwrap_or(0), parts.collect())
                })
            }
            _ => None,
        };
        recording.events.extend(event);
    }
    if ranges > 0 {
        let text = format!("{ranges} deletions of ranges in the trace were left out");
        recording.notes.push(text);
    }
    if let Some(lost @ 1..) = reader.lost() {
        recording.notes.push(format!("the trace lacks {lost} calls that its recorder has lost"));
    }
    Ok(recording)
}

/// Returns the writes and deletes of a batch, and the number of entries that are neither.
fn parts_of(batch: &WriteBatch) -> (Vec<ReplayPart>, u64) {
    let (mut parts, mut left_out) = (Vec::new(), 0);
    for BatchEntry { column_family, kind, key, value } in batch {
        let size = match kind {
            ValueKind::Put | ValueKind::Merge => {
                Some(u32::try_from(value.len()).unwrap_or(u32::MAX))
            }
            ValueKind::Delete | ValueKind::SingleDelete => None,
            ValueKind::RangeDelete => {
                left_out += 1;
                continue;
            }
        };
        parts.push(ReplayPart { key: key_of(column_family.0, key), size });
    }
    (parts, left_out)
}

fn key_of(family: u32, key: &[u8]) -> Box<[u8]> {
    if family == 0 { key.into() } else { [&family.to_be_bytes(), key].concat().into() }
}

#[cfg(test)]
mod tests {
    use sateen::{Db, Options, ReadOptions, TraceOptions};

    use super::*;

    #[test]
    fn a_recording_that_cannot_be_used_is_named_with_its_line() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("load.csv");
        std::fs::write(&file, "0,put,a,1\n1,put,a\n").unwrap();
        let error = read(&file, 1.0, None).unwrap_err().to_string();
        assert!(error.contains("load.csv: line 2: "), "{error}");
        std::fs::write(&file, "# nothing\n").unwrap();
        assert!(read(&file, 1.0, None).unwrap_err().to_string().contains("no operation"));
        // The time is that after the division by the speed.
        for (time, speed) in [(u64::MAX, 1.0), (1 << 40, 1e-6)] {
            std::fs::write(&file, format!("0,get,a\n{time},get,a\n")).unwrap();
            let error = read(&file, speed, None).unwrap_err().to_string();
            assert!(error.contains("load.csv: ") && error.contains("ten years"), "{error}");
        }
        let error = read(&place.path().join("none"), 1.0, None).unwrap_err().to_string();
        assert!(error.contains("none: No such file"), "{error}");
    }

    #[test]
    fn a_trace_becomes_operations() {
        let place = tempfile::tempdir().unwrap();
        let trace = place.path().join("trace");
        let db = Db::open(place.path().join("db"), Options::default()).unwrap();
        let other = db.create_column_family("other", Default::default()).unwrap();
        db.start_trace(&trace, &TraceOptions::default()).unwrap();
        db.put("a", "1234").unwrap();
        db.delete("a").unwrap();
        let mut batch = WriteBatch::new();
        batch.put("a", "12").unwrap();
        batch.delete("b").unwrap();
        batch.delete_range("c", "d").unwrap();
        batch.to(&other).put("a", "1").unwrap();
        db.write(&batch, &Default::default()).unwrap();
        db.get("a").unwrap();
        drop(db.multi_get(&["a", "b"]));
        db.cursor(&ReadOptions::default()).unwrap().seek("b");
        db.end_trace().unwrap();
        let recording = read(&trace, 2.0, Some(7)).unwrap();
        let other_key = [&other.id().to_be_bytes()[..], b"a"].concat();
        let short: Vec<_> = recording.events.iter().map(|e| (e.kind, &*e.key, e.size)).collect();
        let expected: [(OpKind, &[u8], u32); 6] = [
            (OpKind::Write, b"a", 4),
            (OpKind::Delete, b"a", 0),
            (OpKind::Write, b"a", 2),
            (OpKind::Read, b"a", 0),
            (OpKind::Read, b"a", 0),
            (OpKind::Scan, b"b", 7),
        ];
        assert_eq!(short, expected);
        let part = |key: &[u8], size| ReplayPart { key: key.into(), size };
        assert_eq!(*recording.events[2].others, [part(b"b", None), part(&other_key, Some(1))]);
        assert_eq!(*recording.events[4].others, [part(b"b", None)]);
        assert_eq!(recording.size_max(), 7, "a scan counts, which is harmless");
        let notes = recording.notes.join("; ");
        assert!(notes.contains("1 deletions of ranges") && notes.contains("2 times"), "{notes}");
    }
}
