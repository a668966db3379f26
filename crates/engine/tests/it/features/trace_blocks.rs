//! Traces of blocks and of I/O: they have all that the metrics count, with the places of the
//! tables, and RocksDB's traces are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{
    ClassTotals, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation,
};
use sateen::{
    BlockCaller, BlockKind, BlockTraceOptions, BlockTraceReader, BlockTraceRecord,
    ColumnFamilyOptions, Db, Error, IoTraceOptions, IoTraceReader, IoTraceRecord, Options, Regions,
    TraceReader,
};

use super::traces::{TRACE, open};
use crate::support::common::tiny;

pub(crate) fn block_reads(vfs: &dyn Vfs) -> Vec<BlockTraceRecord> {
    BlockTraceReader::open_with(vfs, TRACE).unwrap().collect::<Result<_, _>>().unwrap()
}

pub(crate) fn io(vfs: &dyn Vfs) -> Vec<IoTraceRecord> {
    IoTraceReader::open_with(vfs, TRACE).unwrap().collect::<Result<_, _>>().unwrap()
}

pub(crate) fn key(number: u32) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// A database with tables on several levels, in two column families, one of which has regions.
pub(crate) fn with_tables(vfs: &MemVfs, block_cache_bytes: u64) -> Db {
    let mut options = tiny();
    options.block_cache_bytes = block_cache_bytes;
    let db = open(vfs, "/db", options);
    let mut family = tiny().column_family;
    family.regions = Regions::at(["key00300"]).unwrap();
    let other = db.create_column_family("other", family).unwrap();
    for number in 0..600 {
        db.put(key(number), [7; 60]).unwrap();
        other.put(key(number), [8; 60]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(None, None, &Default::default()).unwrap();
    for number in 0..50 {
        db.put(key(number * 7), [9; 60]).unwrap();
    }
    db.flush_all().unwrap();
    db
}

/// Each lookup in the block cache that the metrics count is in the trace, with the same result.
#[test]
fn a_trace_of_blocks_has_each_lookup_in_the_cache() {
    let vfs = MemVfs::new();
    let db = with_tables(&vfs, 64 << 10);
    let other = db.column_family("other").unwrap();
    let before = db.metrics().counts;
    db.start_block_trace(TRACE, &BlockTraceOptions::default()).unwrap();
    for number in (0..600).step_by(9) {
        db.get(key(number)).unwrap().unwrap();
        db.get(key(number)).unwrap().unwrap();
        other.get(key(number)).unwrap().unwrap();
        assert_eq!(db.get([&key(number)[..], b"x"].concat()).unwrap(), None);
    }
    assert_eq!(db.multi_get(&[key(1), key(500)]).len(), 2);
    assert_eq!(db.range(key(100)..key(200)).unwrap().count(), 100);
    let snapshot = db.snapshot();
    db.at(&snapshot).get(key(1)).unwrap();
    let counts = db.metrics().counts;
    other.compact_range(None, None, &Default::default()).unwrap();
    let tables: BTreeSet<_> =
        db.live_tables().into_iter().map(|table| (table.column_family, table.level)).collect();
    let summary = db.end_block_trace().unwrap();
    let records = block_reads(&vfs);
    assert_eq!((records.len() as u64, summary.lost), (summary.records, 0));

    let by_clients = |record: &&BlockTraceRecord| record.caller != BlockCaller::Compaction;
    let (hits, misses): (Vec<_>, Vec<_>) =
        records.iter().filter(by_clients).partition(|record| record.is_hit);
    assert_eq!(hits.len() as u64, counts.data_block_hits - before.data_block_hits);
    assert_eq!(misses.len() as u64, counts.data_block_misses - before.data_block_misses);
    assert!(hits.len() > 50 && misses.len() > 50, "{} {}", hits.len(), misses.len());
    let callers: BTreeMap<String, usize> = records.iter().fold(BTreeMap::new(), |mut all, one| {
        *all.entry(format!("{:?}", one.caller)).or_default() += 1;
        all
    });
    let all = ["Compaction", "Get", "Iterator", "MultiGet"];
    assert!(callers.keys().eq(all), "{callers:?}");

    // The places are those of the tables.
    for record in &records {
        assert_eq!(record.kind, BlockKind::Data);
        let place = (record.family_name.clone(), u8::try_from(record.level).unwrap());
        let is_of_compaction = record.family_name == "other";
        assert!(is_of_compaction || tables.contains(&place), "{place:?} of {tables:?}");
        let id = if is_of_compaction { other.id() } else { 0 };
        assert_eq!(record.family, u64::from(id));
    }
    // A key is found in the last block of its call, or in none.
    let mut calls: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
    for record in &records {
        let Some(point) = &record.point else { continue };
        let (user_key, _) = point.key.split_last_chunk::<8>().unwrap();
        assert!(user_key.starts_with(b"key") && point.call > 0);
        let found = point.found.unwrap();
        assert!(found.entries > 0 && (found.entry_bytes == 0) != found.is_there);
        calls.entry(point.call).or_default().push(found.is_there);
    }
    assert!(calls.values().any(|call| call.last() == Some(&true)));
    let at_snapshot = records.iter().filter_map(|record| record.point.as_ref());
    assert_eq!(at_snapshot.filter(|point| point.at_snapshot).count(), 1);
}

/// A table that moved to another level without being rewritten is shown in that level.
#[test]
fn a_table_that_moves_is_traced_where_it_is() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    for number in 0..20 {
        db.put(key(number), [7; 60]).unwrap();
    }
    db.flush().unwrap();
    let level = |db: &Db| db.live_tables()[0].level;
    let before = level(&db);
    db.start_block_trace(TRACE, &BlockTraceOptions::default()).unwrap();
    db.get(key(3)).unwrap().unwrap();
    db.compact_range(None, None, &Default::default()).unwrap();
    let after = level(&db);
    assert!(after > before);
    db.get(key(3)).unwrap().unwrap();
    db.end_block_trace().unwrap();
    let gets = block_reads(&vfs);
    let mut gets = gets.iter().filter(|record| record.caller == BlockCaller::Get);
    assert_eq!(gets.next().map(|record| record.level), Some(before.into()));
    assert_eq!(gets.next_back().map(|record| record.level), Some(after.into()));
}

/// Blocks that a read of many keys loads together are misses of a prefetch.
#[test]
fn blocks_that_are_read_together_are_traced_once_more() {
    let vfs = MemVfs::new();
    drop(with_tables(&vfs, 64 << 10));
    let db = open(&vfs, "/db", {
        let mut options = tiny();
        options.block_cache_bytes = 8 << 20;
        options
    });
    db.start_block_trace(TRACE, &BlockTraceOptions::default()).unwrap();
    let keys: Vec<_> = (0..600).step_by(50).map(key).collect();
    assert!(db.multi_get(&keys).iter().all(|answer| matches!(answer, Ok(Some(_)))));
    db.end_block_trace().unwrap();
    let records = block_reads(&vfs);
    let of = |caller| records.iter().filter(move |record| record.caller == caller);
    let ahead: BTreeSet<_> = of(BlockCaller::Prefetch).map(|record| &record.block).collect();
    assert!(ahead.len() > 3 && of(BlockCaller::Prefetch).all(|record| !record.is_hit));
    let later: BTreeSet<_> = of(BlockCaller::MultiGet)
        .filter(|record| record.is_hit)
        .map(|record| &record.block)
        .collect();
    assert!(ahead.is_subset(&later));
    let calls = of(BlockCaller::MultiGet).filter_map(|record| record.point.as_ref());
    let calls: BTreeSet<_> = calls.map(|point| point.call).collect();
    assert_eq!(calls.len(), 1, "one call");
}

/// A sample has all reads of a block, or none.
#[test]
fn samples_of_blocks_have_all_reads_of_a_block() {
    let vfs = MemVfs::new();
    let db = with_tables(&vfs, 64 << 10);
    let traced = |sampling_frequency, max_file_bytes| {
        let options = BlockTraceOptions { sampling_frequency, max_file_bytes, replace: true };
        db.start_block_trace(TRACE, &options).unwrap();
        for number in 0..600 {
            db.get(key(number)).unwrap().unwrap();
        }
        (db.end_block_trace().unwrap(), block_reads(&vfs))
    };
    let count = |records: &[BlockTraceRecord]| {
        let mut blocks: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        records.iter().for_each(|record| *blocks.entry(record.block.clone()).or_default() += 1);
        blocks
    };
    let (_, all) = traced(0, 1 << 30);
    let (_, sample) = traced(3, 1 << 30);
    let (all, sample) = (count(&all), count(&sample));
    assert!(sample.len() > all.len() / 8 && sample.len() < all.len() * 2 / 3);
    assert!(sample.iter().all(|(block, reads)| all[block] == *reads));
    let (full, records) = traced(1, 3000);
    assert!(full.is_full && full.bytes <= 3000 && records.len() as u64 == full.records);
}

/// Each call that the metrics count is in the trace of I/O.
#[test]
fn a_trace_of_io_has_each_call() {
    let (vfs, traces) = (MemVfs::new(), MemVfs::new());
    let faulty = FaultVfs::new(Arc::new(vfs));
    let options = Options { block_cache_bytes: 0, ..tiny() };
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
    db.put("a", "1").unwrap();
    let before = db.metrics().io;
    db.start_io_trace_with(&traces, TRACE, &IoTraceOptions::default()).unwrap();
    for number in 0..600 {
        db.put(key(number), [7; 60]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(None, None, &Default::default()).unwrap();
    for number in 0..600 {
        db.get(key(number)).unwrap().unwrap();
    }
    faulty.add(FaultRule::new(Fault::Io).on(VfsOperation::Read).nth(1));
    assert!((0..600).any(|number| db.get(key(number)).is_err()));
    let summary = db.end_io_trace().unwrap();
    let after = db.metrics().io;
    let records = io(&traces);
    assert_eq!((records.len() as u64, summary.lost), (summary.records, 0));

    let sum = |count: fn(&ClassTotals) -> u64| -> u64 {
        let both = after.iter().zip(&before);
        both.map(|(after, before)| count(&after.totals.since(&before.totals))).sum()
    };
    let traced = |names: &[&str]| {
        let whole = records.iter().filter(|record| record.status == "OK");
        whole.filter(|record| names.contains(&record.operation.as_str())).count() as u64
    };
    assert_eq!(traced(&["Read", "MultiRead"]), sum(|totals| totals.reads));
    assert_eq!(traced(&["PositionedAppend", "RangeSync"]), sum(|totals| totals.writes));
    assert_eq!(traced(&["Sync", "SyncDirectory"]), sum(|totals| totals.syncs));
    assert_eq!(traced(&["PunchHole"]), sum(|totals| totals.punches));
    let failed: Vec<_> = records.iter().filter(|record| record.status != "OK").collect();
    assert_eq!(failed.len() as u64, sum(|totals| totals.errors));
    assert_eq!(failed[0].operation, "Read");
    assert!(failed[0].status.starts_with("IO error: "), "{}", failed[0].status);
    let written = records.iter().filter(|record| record.operation == "PositionedAppend");
    let written: u64 = written.filter_map(|record| record.bytes).sum();
    assert_eq!(written, sum(|totals| totals.write_bytes));
    for class in [IoClass::Client, IoClass::Wal, IoClass::Flush, IoClass::Manifest] {
        let name = class.to_string();
        assert!(records.iter().any(|record| record.request.as_ref() == Some(&name)), "{name}");
    }
    assert!(traced(&["NewWritableFile"]) > 0);
    assert!(records.is_sorted_by_key(|record| record.at_ns));
}

#[test]
fn a_trace_of_io_does_not_feed_itself() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    let options = IoTraceOptions::default();
    db.start_io_trace(TRACE, &options).unwrap();
    // So much that the file is written meanwhile.
    for number in 0..20_000 {
        db.put(key(number % 100), [7; 60]).unwrap();
    }
    let summary = db.end_io_trace().unwrap();
    assert!(summary.bytes > 64 << 10, "{summary:?}");
    assert!(io(&vfs).iter().all(|record| record.file != "trace"));
    let sampled = IoTraceOptions { sampling_frequency: 5, replace: true, ..options.clone() };
    db.start_io_trace(TRACE, &sampled).unwrap();
    db.put("key", "value").unwrap();
    assert!(db.end_io_trace().unwrap().records <= 1);
    let full = IoTraceOptions { max_file_bytes: 1000, replace: true, ..options };
    db.start_io_trace(TRACE, &full).unwrap();
    for number in 0..100 {
        db.put(key(number), [7; 60]).unwrap();
    }
    let summary = db.end_io_trace().unwrap();
    assert!(summary.is_full && summary.bytes <= 1000 && summary.records > 3, "{summary:?}");
}

#[test]
fn each_trace_is_recorded_once_and_the_close_ends_all() {
    let vfs = MemVfs::new();
    let db = with_tables(&vfs, 64 << 10);
    let told = |done: Result<(), Error>| done.unwrap_err().to_string();
    let (blocks, calls) = (BlockTraceOptions::default(), IoTraceOptions::default());
    assert!(told(db.end_block_trace().map(drop)).contains("no trace of blocks"));
    assert!(told(db.end_io_trace().map(drop)).contains("no trace of I/O"));
    db.start_block_trace("/blocks", &blocks).unwrap();
    db.start_io_trace("/io", &calls).unwrap();
    // The traces do not exclude each other.
    db.start_trace(TRACE, &Default::default()).unwrap();
    assert!(told(db.start_block_trace("/second", &blocks)).contains("already"));
    assert!(told(db.start_io_trace("/second", &calls)).contains("already"));
    assert!(!vfs.exists(Path::new("/second")).unwrap());
    db.get(key(1)).unwrap().unwrap();
    db.close().unwrap();
    assert!(matches!(db.end_block_trace(), Err(Error::Closed)));
    assert!(matches!(db.start_io_trace("/third", &calls), Err(Error::Closed)));
    let mut read = BlockTraceReader::open_with(&vfs, "/blocks").unwrap();
    assert_eq!((read.by_ref().filter_map(Result::ok).count() > 0, read.lost()), (true, Some(0)));
    let mut read = IoTraceReader::open_with(&vfs, "/io").unwrap();
    assert_eq!((read.by_ref().filter_map(Result::ok).count() > 0, read.lost()), (true, Some(0)));
    assert_eq!(super::traces::calls(&vfs).len(), 1);

    let db = open(&vfs, "/db", tiny());
    assert!(told(db.start_block_trace("/blocks", &blocks)).contains("create"));
    assert!(told(db.start_io_trace("/io", &calls)).contains("create"));
    db.start_block_trace("/blocks", &BlockTraceOptions { replace: true, ..blocks }).unwrap();
    assert_eq!(db.end_block_trace().unwrap().records, 0);
}

#[test]
fn one_kind_of_trace_is_not_taken_for_another() {
    let vfs = MemVfs::new();
    let db = with_tables(&vfs, 64 << 10);
    db.start_trace("/calls", &Default::default()).unwrap();
    db.start_block_trace("/blocks", &Default::default()).unwrap();
    db.start_io_trace("/io", &Default::default()).unwrap();
    db.get(key(1)).unwrap().unwrap();
    db.end_trace().unwrap();
    db.end_block_trace().unwrap();
    db.end_io_trace().unwrap();
    let told = |error: Option<Error>| error.unwrap().to_string();
    let blocks = |path| BlockTraceReader::open_with(&vfs, path).err();
    let calls = |path| TraceReader::open_with(&vfs, path).err();
    assert!(told(blocks("/calls")).contains("/calls is not a trace of blocks"));
    assert!(told(calls("/blocks")).contains("I/O or reads of blocks, not calls"));
    assert!(told(calls("/io")).contains("I/O or reads of blocks, not calls"));
    // Their headers are the same. The first record tells.
    let mut read = BlockTraceReader::open_with(&vfs, "/io").unwrap();
    let error = told(read.next().unwrap().err());
    assert!(error.contains("/io: the record at offset 38: it is no read of a block"), "{error}");
    assert!(read.next().is_none());
    let mut read = IoTraceReader::open_with(&vfs, "/blocks").unwrap();
    assert!(told(read.next().unwrap().err()).contains("it is no call of I/O"));
}

/// Traces as RocksDB writes them: without checksums and without a last record.
#[test]
fn traces_of_rocksdb_are_read() {
    let record = |time: u64, kind: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap();
        [&time.to_le_bytes()[..], &[kind], &length.to_le_bytes(), payload].concat()
    };
    let header = record(1_000_000, 1, b"\x10feedcafedeadbeef\x0b\0\0\0\x08\0\0\0");
    let written = |name: &str, bytes: &[u8]| {
        let vfs = MemVfs::new();
        let file = vfs.open(Path::new(TRACE), OpenOptions::CREATE).unwrap();
        file.write_at(bytes, 0, IoClass::Client).unwrap();
        assert!(vfs.exists(Path::new(TRACE)).unwrap(), "{name}");
        vfs
    };
    let call = b"\x06\0\0\0\0\0\0\0\x04Read\x09\0\0\0\0\0\0\0\x02OK\x0a000007.sst\
                 \x64\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let vfs = written("io", &[&header[..], &record(5, 12, call), &record(6, 12, call)].concat());
    let records = io(&vfs);
    assert_eq!((records.len(), records[1].at_ns, records[1].offset), (2, 6, Some(4096)));
    assert_eq!(IoTraceReader::open_with(&vfs, TRACE).unwrap().start_us(), 1_000_000);

    let read = b"\x04\xff\xff\x07\x07\xa0\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07default\x02\0\0\0\
                 \x07\0\0\0\0\0\0\0\x03\x01\0";
    let bytes = [&header[..], &record(5, 9, read), &record(6, 7, read)].concat();
    let vfs = written("blocks", &bytes);
    let records = block_reads(&vfs);
    assert_eq!((records[0].kind, records[1].kind), (BlockKind::Data, BlockKind::Index));
    assert_eq!((records[0].family_name.as_str(), records[0].level), ("default", 2));
    // A record that is longer is of no version that is known.
    let longer = [&header[..], &record(5, 9, &[&read[..], b"123"].concat())].concat();
    let mut read = BlockTraceReader::open_with(&written("longer", &longer), TRACE).unwrap();
    assert!(matches!(read.next(), Some(Err(Error::Corruption { .. }))));
}

/// Families that are dropped while they are traced do no harm.
#[test]
fn families_may_come_and_go() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    db.start_block_trace(TRACE, &BlockTraceOptions::default()).unwrap();
    for round in 0..5 {
        let name = format!("family{round}");
        let family = db.create_column_family(&name, ColumnFamilyOptions::default()).unwrap();
        for number in 0..100 {
            family.put(key(number), [7; 60]).unwrap();
        }
        family.flush().unwrap();
        let mut open = family.range(..).unwrap();
        assert!(open.next().is_some());
        db.drop_column_family(&family).unwrap();
        assert_eq!(open.count(), 99);
    }
    db.end_block_trace().unwrap();
    let names: BTreeSet<_> =
        block_reads(&vfs).into_iter().map(|record| record.family_name).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("family")).count(), 5, "{names:?}");
}
