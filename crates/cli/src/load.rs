//! The loop of `db load`: text becomes batches, whose destination it does not know.
//!
//! Invariant: records reach the sink in the order of the file. When the loop ends, with or without
//! an error, it names a point; every record before this point is committed and none after it.

use std::io::{self, BufRead};

use crate::text::{ReadError, RecordReader};

/// The approximate size of a batch: large enough to make the cost of a commit negligible, small
/// enough not to keep other writers waiting.
const BATCH_BYTES: usize = 1 << 20;

/// The destination of records.
pub(crate) trait Sink {
    /// Adds a record to the batch. An error is about this record alone.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), String>;
    /// Commits the batch and begins another.
    fn commit(&mut self) -> Result<(), String>;
}

/// The progress of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Records committed.
    pub(crate) records: u64,
    /// Bytes of their keys and values.
    pub(crate) bytes: u64,
    /// Every record that begins on this line or before it is committed.
    pub(crate) to_line: u64,
}

/// Why a load ended early.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The stream failed.
    Read(io::Error),
    /// A line is malformed, or the database refuses its record.
    Line { line: u64, what: String },
    /// A batch failed. It is atomic: none of its records are stored.
    Commit(String),
}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> LoadError {
        match error {
            ReadError::Io(error) => LoadError::Read(error),
            ReadError::Malformed { line, what } => LoadError::Line { line, what },
        }
    }
}

/// Loads all records. Calls `progress` with the bytes of text that are committed.
pub(crate) fn load<R: BufRead>(
    reader: &mut RecordReader<R>,
    sink: &mut impl Sink,
    mut progress: impl FnMut(u64),
) -> (Loaded, Result<(), LoadError>) {
    let mut done = Loaded::default();
    let mut ahead = Loaded::default();
    let mut batch_bytes = 0;
    let ended = loop {
        match reader.next() {
            Ok(None) => break Ok(()),
            Ok(Some(record)) => {
                let line = record.line;
                if let Err(what) = sink.put(record.key, record.value) {
                    break Err(LoadError::Line { line, what });
                }
                let bytes = record.key.len() + record.value.len();
                ahead.records += 1;
                ahead.bytes += bytes as u64;
                ahead.to_line = line;
                batch_bytes += bytes;
            }
            Err(error) => break Err(error.into()),
        }
        if batch_bytes >= BATCH_BYTES {
            if let Err(what) = sink.commit() {
                return (done, Err(LoadError::Commit(what)));
            }
            done = ahead;
            batch_bytes = 0;
            progress(reader.bytes_read());
        }
    };
    // The records before a bad line are committed: the message says so.
    if ahead.records > done.records {
        if let Err(what) = sink.commit() {
            return (done, Err(LoadError::Commit(what)));
        }
        done = ahead;
    }
    if ended.is_ok() {
        done.to_line = reader.line_number();
    }
    progress(reader.bytes_read());
    (done, ended)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::text::{Encoding, Format};

    /// A sink in memory that takes keys of at most eight bytes and refuses the `fails_at`-th
    /// commit.
    #[derive(Default)]
    struct Memory {
        batch: Vec<(Vec<u8>, Vec<u8>)>,
        committed: BTreeMap<Vec<u8>, Vec<u8>>,
        commits: u32,
        fails_at: Option<u32>,
    }

    impl Sink for Memory {
        fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
            if key.len() > 8 {
                return Err("a key of more than 8 bytes".to_owned());
            }
            self.batch.push((key.to_vec(), value.to_vec()));
            Ok(())
        }

        fn commit(&mut self) -> Result<(), String> {
            self.commits += 1;
            if self.fails_at == Some(self.commits) {
                return Err("disk full".to_owned());
            }
            self.committed.extend(self.batch.drain(..));
            Ok(())
        }
    }

    fn run(text: &str, sink: &mut Memory) -> (Loaded, Result<(), LoadError>) {
        let mut reader = RecordReader::new(text.as_bytes(), Format::Tsv, Encoding::Text);
        load(&mut reader, sink, |_| ())
    }

    #[test]
    fn all_records_are_committed() {
        let mut sink = Memory::default();
        let (loaded, ended) = run("a\t1\nb\t2\na\t3\n", &mut sink);
        assert!(ended.is_ok());
        assert_eq!(loaded, Loaded { records: 3, bytes: 6, to_line: 3 });
        assert_eq!(sink.committed[&b"a"[..].to_vec()], b"3");
        assert_eq!(sink.commits, 1);
    }

    #[test]
    fn nothing_is_committed_for_nothing() {
        let mut sink = Memory::default();
        let (loaded, ended) = run("\n", &mut sink);
        assert!(ended.is_ok());
        assert_eq!((loaded.records, sink.commits), (0, 0));
    }

    #[test]
    fn everything_before_a_bad_line_is_there_and_nothing_after() {
        for bad in ["no tab", "longer-than-8\tx"] {
            let mut sink = Memory::default();
            let (loaded, ended) = run(&format!("a\t1\nb\t2\n{bad}\nc\t3\n"), &mut sink);
            assert!(matches!(ended, Err(LoadError::Line { line: 3, .. })), "{ended:?}");
            assert_eq!((loaded.records, loaded.to_line), (2, 2));
            assert_eq!(sink.committed.len(), 2);
        }
    }

    #[test]
    fn a_refused_batch_leaves_the_point_before_it() {
        let value = "v".repeat(BATCH_BYTES / 2);
        let text: String = (0..10).map(|i| format!("{i}\t{value}\n")).collect();
        let mut sink = Memory { fails_at: Some(3), ..Memory::default() };
        let (loaded, ended) = run(&text, &mut sink);
        assert!(matches!(ended, Err(LoadError::Commit(_))));
        assert_eq!((loaded.records, loaded.to_line), (4, 4));
        assert_eq!(sink.committed.len(), 4);
    }
}
