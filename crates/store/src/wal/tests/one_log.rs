//! One WAL: round trips, damage, dead files, and syncs beside appends.

use std::sync::Arc;

use proptest::prelude::*;
use sateen_control::SeqNo;

use super::super::frame::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES};
use super::*;
use crate::base::error::{CorruptionKind, Error};
use crate::base::sync::atomic::Ordering;
use crate::base::sync::lock;
use crate::vfs::{Fault, FaultRule, FaultVfs, OpenOptions, Vfs, VfsOperation};

const HEADER_END: u64 = FILE_HEADER_BYTES as u64;

/// Writes five groups with a sync after the third, which the fourth and fifth record. Returns the
/// offset of that sync, and all groups with the offsets behind them.
fn small_log(vfs: &TestVfs) -> (u64, Vec<(u64, Vec<u8>, u64)>) {
    let mut writer = create_first(vfs, 1);
    let mut groups = Vec::new();
    let mut synced = 0;
    for seqno in 10..15 {
        let payload = format!("payload of {seqno}").into_bytes();
        let end = writer.append(SeqNo(seqno), 1, [payload.as_slice()]).unwrap();
        groups.push((seqno, payload, end));
        if seqno == 12 {
            synced = writer.sync_handle().sync().unwrap();
        }
    }
    (synced, groups)
}

/// Reading must give a prefix of `groups`, or an error that names the file. Returns which.
fn expect_prefix_or_error(vfs: &TestVfs, groups: &[(u64, Vec<u8>, u64)]) -> Option<usize> {
    match read(vfs, 1, 0) {
        Ok((read, _)) => {
            let prefix: Vec<_> = groups.iter().map(|g| (g.0, g.1.clone())).collect();
            assert!(prefix.starts_with(&read), "not a prefix: {read:?}");
            Some(read.len())
        }
        Err(Error::Corruption { path: named, .. }) => {
            assert_eq!(named, path(1));
            None
        }
        Err(other) => panic!("another error: {other}"),
    }
}

#[test]
fn appended_groups_are_read_in_order() {
    let vfs = TestVfs::default();
    let (_, groups) = small_log(&vfs);
    let (read, tail) = read(&vfs, 1, 0).unwrap();
    assert_eq!(read, groups.into_iter().map(|g| (g.0, g.1)).collect::<Vec<_>>());
    assert_eq!(tail, Tail::Clean);
}

#[test]
fn cut_anywhere_a_log_gives_the_whole_groups_before_the_cut() {
    let vfs = TestVfs::default();
    let (_, groups) = small_log(&vfs);
    let bytes = vfs.bytes(&path(1));
    for cut in 0..bytes.len() {
        vfs.replace(&path(1), &bytes[..cut]);
        let whole = groups.iter().filter(|g| g.2 <= cut as u64).count();
        assert_eq!(expect_prefix_or_error(&vfs, &groups), Some(whole), "cut at {cut}");
    }
}

#[test]
fn every_flipped_bit_gives_a_prefix_or_an_error_and_below_the_synced_offset_an_error() {
    let vfs = TestVfs::default();
    let (synced, groups) = small_log(&vfs);
    let bytes = vfs.bytes(&path(1));
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        vfs.replace(&path(1), &damaged);
        let outcome = expect_prefix_or_error(&vfs, &groups);
        if (bit as u64) / 8 < synced {
            assert_eq!(outcome, None, "bit {bit} below the synced offset was damaged unseen");
        } else {
            assert!(outcome.is_some_and(|n| n < groups.len()), "bit {bit} of an unsynced tail");
        }
    }
}

#[test]
fn zeroed_or_garbage_ranges_are_judged_by_what_was_synced() {
    let vfs = TestVfs::default();
    let (synced, groups) = small_log(&vfs);
    let bytes = vfs.bytes(&path(1));
    for fill in [0, 0xff] {
        for start in 0..bytes.len() {
            for length in [1, 40, 200] {
                let mut damaged = bytes.clone();
                let end = (start + length).min(bytes.len());
                damaged[start..end].fill(fill);
                if damaged == bytes {
                    continue;
                }
                vfs.replace(&path(1), &damaged);
                let outcome = expect_prefix_or_error(&vfs, &groups);
                assert!(outcome.is_none_or(|n| n < groups.len()));
                // While one header that records the sync is whole, damage below it is an error.
                let told = groups.iter().zip(groups.iter().skip(1)).any(|(before, group)| {
                    let header = before.2..before.2 + RECORD_HEADER_BYTES as u64;
                    group.0 > 12 && (end as u64 <= header.start || start as u64 >= header.end)
                });
                if told && (start as u64) < synced {
                    assert_eq!(outcome, None, "{start}+{length} of {fill:#x}");
                }
            }
        }
    }
}

#[test]
fn a_floor_that_the_caller_knows_makes_a_short_log_an_error() {
    let vfs = TestVfs::default();
    let (_, groups) = small_log(&vfs);
    let bytes = vfs.bytes(&path(1));
    let floor = bytes.len() as u64;
    assert_eq!(read(&vfs, 1, floor).unwrap().0.len(), groups.len());
    for cut in 0..bytes.len() {
        vfs.replace(&path(1), &bytes[..cut]);
        assert!(read(&vfs, 1, floor).unwrap_err().is_corruption(), "cut at {cut}");
    }
    vfs.inner_remove(&path(1));
    assert!(read(&vfs, 1, floor).unwrap_err().is_corruption(), "missing");
}

#[test]
fn a_read_that_comes_short_is_an_error_and_a_log_that_was_cut_is_not() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    let payload = vec![7; 100 << 10];
    for seqno in 1..=25 {
        writer.append(SeqNo(seqno), 1, [payload.as_slice()]).unwrap();
    }
    let faulty = FaultVfs::new(Arc::new(vfs.clone()));
    let open = || WalReader::open(&faulty, &path(1), LogNumber(1), Some(UID), 0);
    for nth in 1..=3 {
        faulty.add(FaultRule::new(Fault::Short).on(VfsOperation::Read).nth(nth));
        let is_short = |error: &Error| match error {
            Error::Io { path: named, source, .. } => {
                *named == path(1) && source.kind() == std::io::ErrorKind::UnexpectedEof
            }
            _ => false,
        };
        let mut told = 0;
        let mut read = 0;
        let mut tell = |error: Error| {
            assert!(is_short(&error), "{error}");
            told += 1;
        };
        let mut reader = open().or_else(|error| {
            tell(error);
            open()
        });
        let reader = reader.as_mut().unwrap();
        loop {
            match reader.next() {
                Ok(Some(record)) => read += usize::from(record.payload == payload),
                Ok(None) => break,
                // A read after the error continues where it was.
                Err(error) => tell(error),
            }
        }
        assert_eq!((told, read), (1, 25), "read {nth}");
        faulty.clear();
    }
    let mut reader = open().unwrap();
    let file = vfs.open(&path(1), OpenOptions::WRITE).unwrap();
    file.truncate(2 << 20).unwrap();
    let mut read = 0;
    while reader.next().unwrap().is_some() {
        read += 1;
    }
    assert!(read == 20 && matches!(reader.tail(), Some(Tail::Torn { .. })), "{read}");
}

#[test]
fn a_mark_protects_the_last_synced_group() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    let synced = writer.sync_handle().sync().unwrap();
    assert!(writer.append_mark().unwrap() > synced);
    let bytes = vfs.bytes(&path(1));
    assert_eq!(read(&vfs, 1, 0).unwrap(), (vec![(1, b"entry 1".to_vec())], Tail::Clean));
    for byte in 0..usize::try_from(synced).unwrap() {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 0x10;
        vfs.replace(&path(1), &damaged);
        assert!(read(&vfs, 1, 0).unwrap_err().is_corruption(), "byte {byte}");
    }
}

#[test]
fn a_log_without_a_header_is_empty() {
    let vfs = TestVfs::default();
    assert_eq!(read(&vfs, 1, 0).unwrap(), (vec![], Tail::Clean), "missing");
    vfs.replace(&path(1), b"");
    assert_eq!(read(&vfs, 1, 0).unwrap(), (vec![], Tail::Clean), "of no bytes");
    vfs.replace(&path(1), &[0; 5000]);
    let torn = Tail::Torn { offset: 0, bytes: 5000 };
    assert_eq!(read(&vfs, 1, 0).unwrap(), (vec![], torn), "of zeros");
    drop(create(&vfs, 2));
    assert_eq!(read(&vfs, 2, 0).unwrap(), (vec![], Tail::Clean), "only a header");
}

#[test]
fn bytes_of_former_files_behind_the_end_are_no_records() {
    let vfs = TestVfs::default();
    small_log(&vfs);
    let log = vfs.bytes(&path(1));
    // The same records under another number, or of another database, at the same offsets.
    let other = TestVfs::default();
    let mut writer = WalWriter::create(&other, &path(2), LogNumber(2), UID, 0).unwrap();
    writer.begin_anew(SeqNo(0)).unwrap();
    (10..30).for_each(|seqno| {
        append(&mut writer, seqno);
    });
    let renumbered = other.bytes(&path(2));
    let mut writer = WalWriter::create(&other, &path(1), LogNumber(1), UID + 1, 0).unwrap();
    writer.begin_anew(SeqNo(0)).unwrap();
    (10..30).for_each(|seqno| {
        append(&mut writer, seqno);
    });
    let foreign = other.bytes(&path(1));
    for stale in [&renumbered, &foreign, &log] {
        for from in 0..stale.len() {
            let mut bytes = log.clone();
            bytes.extend_from_slice(&stale[from..]);
            vfs.replace(&path(1), &bytes);
            let (groups, tail) = read(&vfs, 1, 0).unwrap();
            assert_eq!(groups.len(), 5, "stale bytes from {from} were taken for records");
            let torn = (stale.len() - from) as u64;
            assert_eq!(tail, Tail::Torn { offset: log.len() as u64, bytes: torn });
        }
    }
}

#[test]
fn a_log_of_another_database_or_number_is_an_error() {
    let vfs = TestVfs::default();
    small_log(&vfs);
    vfs.replace(&path(2), &vfs.bytes(&path(1)));
    assert!(read(&vfs, 2, 0).unwrap_err().is_corruption());
    let foreign = WalReader::open(&vfs, &path(1), LogNumber(1), Some(UID + 1), 0);
    assert!(foreign.unwrap_err().is_corruption());
    let believed = WalReader::open(&vfs, &path(1), LogNumber(1), None, 0);
    assert!(believed.unwrap().next().unwrap().is_some());
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let vfs = TestVfs::default();
    let header = super::super::frame::FileHeader { version: 2, db_uid: UID, number: 1 };
    vfs.replace(&path(1), &header.encode(super::super::frame::FileKind::Wal));
    let error = read(&vfs, 1, 0).unwrap_err();
    assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error}");
    assert!(error.to_string().contains("format version 2"), "{error}");
}

#[test]
fn after_a_failed_write_the_log_is_dead() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    vfs.switches.fail_writes.store(true, Ordering::SeqCst);
    let error = writer.append(SeqNo(2), 1, [&b"lost"[..]]).unwrap_err();
    assert!(error.is_no_space());
    vfs.switches.fail_writes.store(false, Ordering::SeqCst);
    let (writes, syncs) =
        (vfs.switches.writes.load(Ordering::SeqCst), vfs.switches.syncs.load(Ordering::SeqCst));
    for _ in 0..3 {
        assert!(writer.append(SeqNo(3), 1, [&b"no"[..]]).unwrap_err().is_no_space());
        assert!(writer.append_mark().is_err());
        assert!(writer.sync_handle().sync().is_err());
    }
    assert_eq!(vfs.switches.writes.load(Ordering::SeqCst), writes, "written after the failure");
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), syncs, "synced after the failure");
    assert_eq!(read(&vfs, 1, 0).unwrap().0.len(), 1);
}

#[test]
fn after_a_failed_sync_the_log_is_dead() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    vfs.switches.fail_syncs.store(true, Ordering::SeqCst);
    assert!(writer.sync_handle().sync().is_err());
    vfs.switches.fail_syncs.store(false, Ordering::SeqCst);
    assert!(writer.sync_handle().sync().is_err());
    assert!(writer.append(SeqNo(2), 1, [&b"no"[..]]).is_err());
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 1, "a failed sync was tried again");
    assert_eq!(writer.sync_handle().synced_offset(), 0);
}

#[test]
fn appends_go_on_while_a_sync_waits_and_it_covers_only_what_was_before() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    let before = append(&mut writer, 1);
    let gate = lock(&vfs.switches.gate);
    let sync = writer.sync_handle();
    let waiting = std::thread::spawn(move || sync.sync());
    while vfs.switches.syncs.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let after = append(&mut writer, 2);
    assert_eq!(writer.sync_handle().synced_offset(), 0);
    drop(gate);
    assert_eq!(waiting.join().unwrap().unwrap(), before);
    assert_eq!(writer.sync_handle().synced_offset(), before);
    append(&mut writer, 3);
    assert_eq!(writer.sync_handle().sync().unwrap(), writer.size_bytes());
    assert!(after < writer.size_bytes());
    assert_eq!(read(&vfs, 1, 0).unwrap().0.len(), 3);
}

#[test]
fn if_one_of_two_overlapping_syncs_fails_neither_succeeds() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    let gate = lock(&vfs.switches.gate);
    vfs.switches.fail_syncs.store(true, Ordering::SeqCst);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let sync = writer.sync_handle();
            std::thread::spawn(move || sync.sync())
        })
        .collect();
    drop(gate);
    for thread in threads {
        assert!(thread.join().unwrap().is_err());
    }
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 1);
}

#[test]
fn threads_that_append_and_sync_agree_on_what_is_durable() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    let sync = writer.sync_handle();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::SeqCst) {
                let offset = sync.sync().unwrap();
                assert!(offset >= last && offset <= sync.written());
                last = offset;
            }
        });
        (1..2000).for_each(|seqno| {
            append(&mut writer, seqno);
        });
        done.store(true, Ordering::SeqCst);
        syncing.join().unwrap();
    });
    assert_eq!(read(&vfs, 1, 0).unwrap().0.len(), 1999);
}

#[test]
fn write_back_is_started_at_the_pace_that_was_set() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    writer.set_bytes_per_sync(1000);
    for seqno in 0..10 {
        writer.append(SeqNo(seqno), 1, [&[7; 600][..]]).unwrap();
    }
    let ranges = lock(&vfs.switches.written_back).clone();
    assert_eq!(ranges.len(), 5);
    let mut expected = 0;
    for (offset, length) in ranges {
        assert_eq!(offset, expected, "ranges follow one another");
        assert!(length >= 1000);
        expected += length;
    }
    assert_eq!(expected, writer.size_bytes());
    assert!(expected > HEADER_END);
}

#[test]
fn a_record_that_verifies_but_makes_no_sense_is_malformed() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 5);
    writer.next_seqno = SeqNo(0);
    append(&mut writer, 3);
    let error = read(&vfs, 1, 0).unwrap_err();
    let backwards = CorruptionKind::Malformed("sequence numbers run backwards");
    assert!(matches!(error, Error::Corruption { kind, .. } if kind == backwards), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_groups_come_back(
        groups in prop::collection::vec(
            (0usize..4000, 1u32..50, any::<bool>(), any::<u8>()),
            0..60,
        ),
        huge in prop::option::of((0usize..60, (1usize << 20) - 100..(3 << 20))),
    ) {
        let vfs = TestVfs::default();
        let mut writer = create_first(&vfs, 1);
        let mut expected = Vec::new();
        let mut seqno = 1;
        for (index, (bytes, count, sync, fill)) in groups.into_iter().enumerate() {
            let bytes = huge.filter(|huge| huge.0 == index).map_or(bytes, |huge| huge.1);
            let payload = vec![fill; bytes];
            let (left, right) = payload.split_at(bytes / 3);
            writer.append(SeqNo(seqno), count, [left, right]).unwrap();
            expected.push((seqno, payload));
            seqno += u64::from(count);
            if sync {
                writer.sync_handle().sync().unwrap();
                writer.append_mark().unwrap();
            }
        }
        let (read, tail) = read(&vfs, 1, 0).unwrap();
        prop_assert!(read == expected);
        prop_assert_eq!(tail, Tail::Clean);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        crate::wal::fuzz(&bytes, |_| {});
    }
}
