//! Traces whose file cannot be written or read, and damaged ones: the client's calls never notice,
//! and whoever reads a trace is told.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation};
use sateen::{
    BlockTraceReader, CorruptionKind, Db, Error, IoTraceReader, ReadOptions, Replayer,
    TraceOptions, TraceReader, TraceRecord, TraceSummary,
};

use crate::features::trace_blocks::{key, with_tables};
use crate::features::traces::{TRACE, calls, open};
use crate::support::common::{contents, tiny};

fn traced(db: &Db, calls: u32) {
    for number in 0..calls {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
        db.get(number.to_be_bytes()).unwrap();
        db.cursor(&ReadOptions::default()).unwrap().seek(number.to_be_bytes());
    }
}

/// Each call on the trace's file fails in each way.
#[test]
fn a_trace_that_cannot_be_written_disturbs_no_client() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::Quota, Fault::Short] {
        for nth in 1..=3 {
            let faulty = FaultVfs::new(Arc::new(MemVfs::new()));
            let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
            let rule = FaultRule::new(fault).path(TRACE).on(VfsOperation::Write);
            let id = faulty.add(rule.from_nth(nth));
            db.start_trace(TRACE, &TraceOptions::default()).unwrap();
            // The trace is written as the calls come.
            let mut rounds = 0;
            while faulty.happened(id) == 0 {
                traced(&db, 100);
                rounds += 1;
                assert!(rounds < 10_000, "the trace is never written");
            }
            traced(&db, 100);
            let error = db.end_trace().unwrap_err();
            let Error::Io { operation: "write", path, .. } = &error else { panic!("{error}") };
            assert_eq!(path, Path::new(TRACE));
            faulty.clear();
            assert_eq!(db.health().0, sateen::Health::Ok);
            // Another one can be recorded.
            db.start_trace("/other", &TraceOptions::default()).unwrap();
            traced(&db, 1);
            assert_eq!(db.end_trace().unwrap().records, 3);
        }
    }
}

#[test]
fn a_trace_that_cannot_be_created_is_refused() {
    for operation in [VfsOperation::Create, VfsOperation::Remove] {
        let faulty = FaultVfs::new(Arc::new(MemVfs::new()));
        let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
        let options = TraceOptions { replace: true, ..TraceOptions::default() };
        db.start_trace(TRACE, &options).unwrap();
        db.end_trace().unwrap();
        faulty.add(FaultRule::new(Fault::NoSpace).path(TRACE).on(operation));
        let error = db.start_trace(TRACE, &options).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{operation:?}: {error}");
        faulty.clear();
        db.start_trace(TRACE, &options).unwrap();
        db.end_trace().unwrap();
    }
}

#[test]
fn a_trace_that_cannot_be_read_is_no_damaged_trace() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    traced(&db, 3000);
    let summary = db.end_trace().unwrap();
    let faulty = FaultVfs::new(Arc::new(vfs));
    for (operation, nth) in [
        (VfsOperation::Open, 1),
        (VfsOperation::Len, 1),
        (VfsOperation::Read, 1),
        (VfsOperation::Read, 2),
    ] {
        let id = faulty.add(FaultRule::new(Fault::Io).path(TRACE).on(operation).nth(nth));
        let read = TraceReader::open_with(&faulty, TRACE)
            .and_then(|reader| reader.collect::<Result<Vec<TraceRecord>, _>>());
        let error = read.unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{operation:?}: {error}");
        assert_eq!(faulty.happened(id), 1);
        faulty.clear();
    }
    assert_eq!(calls(&faulty).len() as u64, summary.records);
}

fn read(bytes: &[u8]) -> Result<Vec<TraceRecord>, Error> {
    TraceReader::open_with(&with_trace(bytes), TRACE)?.collect()
}

#[test]
fn damage_of_a_trace_is_told_and_never_replayed() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    traced(&db, 3);
    db.end_trace().unwrap();
    let whole = vfs.contents(Path::new(TRACE)).unwrap();
    let all = read(&whole).unwrap();
    assert_eq!(all.len(), 9);
    for at in 0..whole.len() {
        for bit in [0, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            assert!(read(&damaged).is_err(), "byte {at}, bit {bit}");
        }
    }
    // What stands behind the end is not read.
    let records: Vec<u8> = whole.iter().copied().skip(whole.len() / 2).collect();
    assert!(read(&[&whole[..], &records].concat()).is_ok());
    // A trace may end early, but only between records.
    let mut ends = 0;
    for length in 0..whole.len() {
        match read(&whole[..length]) {
            Ok(read) => {
                assert_eq!(read, all[..read.len()]);
                ends += 1;
            }
            Err(Error::InvalidArgument(text)) => assert!(text.contains("not a trace"), "{text}"),
            Err(Error::Corruption { kind, .. }) => assert_eq!(kind, CorruptionKind::Truncated),
            Err(error) => panic!("{length}: {error}"),
        }
    }
    assert_eq!(ends, 10, "behind the header and behind each call");
}

#[test]
fn a_damaged_trace_ends_the_replay_where_it_is_damaged() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    db.end_trace().unwrap();
    let whole = vfs.contents(Path::new(TRACE)).unwrap();
    let third = whole.windows(6).position(|window| window == b"c\x05valu").unwrap();
    let file = vfs.open(Path::new(TRACE), OpenOptions::WRITE).unwrap();
    file.write_at(b"d", third as u64, IoClass::Client).unwrap();
    let other = open(&vfs, "/other", tiny());
    let mut replayer = Replayer::new(&other, other.open_trace(TRACE).unwrap());
    let error = replayer.replay(&Default::default()).unwrap_err();
    assert!(matches!(error, Error::Corruption { kind: CorruptionKind::Checksum, .. }), "{error}");
    assert!(error.to_string().contains(TRACE));
    assert_eq!(contents(&other).len(), 2);
}

#[test]
fn a_file_that_is_no_trace_is_told() {
    for bytes in [&b""[..], b"short", &[0; 100], &[0xff; 100], b"\x7fELF and so on and so on"] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains("/trace is not a trace of calls"), "{error}");
    }
    assert!(matches!(TraceReader::open("/no/such/file"), Err(Error::Io { .. })));
}

/// Each call on the file of a trace of blocks or I/O fails in each way.
#[test]
fn traces_of_blocks_and_io_that_cannot_be_written_disturb_no_client() {
    type Begin = fn(&Db, &str) -> Result<(), Error>;
    type End = fn(&Db) -> Result<TraceSummary, Error>;
    let blocks: (Begin, End) =
        (|db, path| db.start_block_trace(path, &Default::default()), Db::end_block_trace);
    let io: (Begin, End) =
        (|db, path| db.start_io_trace(path, &Default::default()), Db::end_io_trace);
    for (begin, end) in [blocks, io] {
        for fault in [Fault::Io, Fault::NoSpace, Fault::Short] {
            for nth in 1..=2 {
                let faulty = FaultVfs::new(Arc::new(MemVfs::new()));
                let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
                for number in 0..100_u32 {
                    db.put(number.to_be_bytes(), [7; 100]).unwrap();
                }
                db.flush().unwrap();
                let rule = FaultRule::new(fault).path(TRACE).on(VfsOperation::Write);
                let id = faulty.add(rule.from_nth(nth));
                begin(&db, TRACE).unwrap();
                let mut rounds = 0;
                while faulty.happened(id) == 0 {
                    traced(&db, 100);
                    rounds += 1;
                    assert!(rounds < 10_000, "the trace is never written");
                }
                traced(&db, 100);
                let error = end(&db).unwrap_err();
                let Error::Io { operation: "write", path, .. } = &error else { panic!("{error}") };
                assert_eq!(path, Path::new(TRACE));
                faulty.clear();
                assert_eq!(db.health().0, sateen::Health::Ok);
                begin(&db, "/other").unwrap();
                db.put("key", "value").unwrap();
                end(&db).unwrap();
            }
        }
    }
}

#[test]
fn damage_of_traces_of_blocks_and_io_is_told() {
    let vfs = MemVfs::new();
    let db = with_tables(&vfs, 1 << 20);
    db.start_block_trace("/blocks", &Default::default()).unwrap();
    for number in [1, 300, 500] {
        db.get(key(number)).unwrap().unwrap();
    }
    db.end_block_trace().unwrap();
    db.start_io_trace("/io", &Default::default()).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.end_io_trace().unwrap();
    type Read = fn(&[u8]) -> Result<usize, Error>;
    let blocks: Read = |bytes| {
        let read = BlockTraceReader::open_with(&with_trace(bytes), TRACE)?;
        read.collect::<Result<Vec<_>, _>>().map(|all| all.len())
    };
    let io: Read = |bytes| {
        let read = IoTraceReader::open_with(&with_trace(bytes), TRACE)?;
        read.collect::<Result<Vec<_>, _>>().map(|all| all.len())
    };
    for (path, read) in [("/blocks", blocks), ("/io", io)] {
        let whole = vfs.contents(Path::new(path)).unwrap();
        let all = read(&whole).unwrap();
        assert!(all >= 3, "{path}: {all}");
        for at in 0..whole.len() {
            for bit in [0, 3, 7] {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(read(&damaged).is_err(), "{path}: byte {at}, bit {bit}");
            }
        }
        // A trace may end early, but only between records.
        let ends = (0..whole.len()).filter(|length| read(&whole[..*length]).is_ok());
        assert_eq!(ends.count(), all + 1, "behind the header and behind each record");
        let error = read(b"\x7fELF and so on and so on").unwrap_err().to_string();
        assert!(error.contains("/trace is not a trace of"), "{error}");
    }
}

fn with_trace(bytes: &[u8]) -> MemVfs {
    let vfs = MemVfs::new();
    let file = vfs.open(Path::new(TRACE), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0, IoClass::Client).unwrap();
    vfs
}
