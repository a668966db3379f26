//! Trimmed history: what a failure or a crash leaves of it, and that a trim that returned is
//! durable.

use std::collections::BTreeSet;
use std::sync::Arc;

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{
    Comparator, Db, Options, ReadOptions, Result, TimestampedFamily, WalMode, WriteOptions,
};

use crate::support::common::{as_vfs, assert_sound, tiny};

const LATEST: u64 = 6;
const TIMES: u64 = 10;

fn open(vfs: Arc<dyn Vfs>, wal: WalMode) -> Result<(Db, TimestampedFamily)> {
    let mut options = Options { wal, ..tiny() };
    options.column_family.comparator = Comparator::timestamped("by key", 8, |a, b| {
        let ((a, a_time), (b, b_time)) = (a.split_at(a.len() - 8), b.split_at(b.len() - 8));
        a.cmp(b).then_with(|| b_time.cmp(a_time))
    });
    let db = Db::open_with(vfs, "/db", options, &[])?;
    let family = db.default_column_family().timestamped().unwrap();
    Ok((db, family))
}

/// Keys so long that their versions fill several batches of a trim.
fn key(number: u64) -> Vec<u8> {
    [number.to_string().as_bytes(), &[b'k'; 700]].concat()
}

fn versions(family: &TimestampedFamily) -> BTreeSet<(Vec<u8>, u64)> {
    let all = [[0xff; 8], [0; 8]];
    let mut cursor = family.cursor(all[0], Some(all[1]), &ReadOptions::default()).unwrap();
    let mut found = BTreeSet::new();
    cursor.seek_to_first();
    while cursor.valid() {
        let time = u64::from_be_bytes(cursor.timestamp().try_into().unwrap());
        assert_eq!(cursor.value(), time.to_string().as_bytes());
        found.insert((cursor.key().to_vec(), time));
        cursor.next();
    }
    cursor.status().unwrap();
    found
}

/// Each call of the file system fails in turn, for good, and then the power.
#[test]
fn a_trim_that_is_cut_short_is_completed_by_the_next() {
    let (keys, mut cut_short, mut partial) = (40, 0, 0);
    let all: BTreeSet<_> =
        (0..keys).flat_map(|k| (1..=TIMES).map(move |time| (key(k), time))).collect();
    let kept: BTreeSet<_> = all.iter().filter(|(_, time)| *time <= LATEST).cloned().collect();
    for wal in [WalMode::Buffered, WalMode::SyncEachWrite, WalMode::Off] {
        let stored = MemVfs::new();
        let (db, family) = open(as_vfs(&stored), wal).unwrap();
        for (key, time) in &all {
            family
                .put(key, time.to_be_bytes(), time.to_string(), &WriteOptions::default())
                .unwrap();
        }
        db.flush().unwrap();
        db.close().unwrap();
        for operation in [VfsOperation::Write, VfsOperation::Sync] {
            for nth in 1.. {
                let mem = stored.crash_image(CrashChoice::Everything);
                let faulty = FaultVfs::new(as_vfs(&mem));
                let (db, family) = open(Arc::new(faulty.clone()), wal).unwrap();
                let rule = FaultRule::new(Fault::Io).on(operation).from_nth(nth);
                let fault = faulty.add(rule);
                let trimmed = family.trim_history(LATEST.to_be_bytes());
                let failed = faulty.happened(fault) > 0;
                let image = mem.crash_image(CrashChoice::SyncedOnly);
                faulty.clear();
                drop((family, db));
                let (db, family) = open(as_vfs(&image), wal).unwrap();
                let left = versions(&family);
                let case = format!("{wal:?} {operation:?} {nth}");
                assert!(left.is_superset(&kept) && left.is_subset(&all), "{case}");
                if trimmed.is_ok() {
                    assert!(left == kept, "{case}: it returned, and is not durable");
                } else {
                    cut_short += 1;
                    partial += u32::from(left != all && left != kept);
                    let rest = family.trim_history(LATEST.to_be_bytes()).unwrap();
                    assert_eq!(rest, (left.len() - kept.len()) as u64, "{case}");
                    assert!(versions(&family) == kept, "{case}");
                }
                assert_sound(&db);
                if !failed {
                    break;
                }
            }
        }
    }
    assert!(cut_short > 10 && partial > 0, "{cut_short} were cut short, {partial} in the middle");
}
