//! Compactions that are brought to an early end at every place where they may be: nothing is lost,
//! nothing comes back, and slots, inputs and files are free again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::vfs::MemVfs;
use crate::{Db, Options};

fn tiny() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.slice_bytes_max = 4 << 10;
    let family = &mut options.column_family;
    family.memtable_bytes = 4 << 10;
    family.memtables_max = 3;
    family.level0_trigger = 2;
    family.level_base_bytes = 8 << 10;
    family.level_multiplier = 3.0;
    family.table_bytes = 2 << 10;
    family.block_bytes = 512;
    options
}

/// Does all background work; every `every`-th step of a compaction is told to end early. Returns
/// how often that was.
fn work(db: &Db, every: usize, steps: &mut usize) -> usize {
    let core = db.core();
    let mut told = 0;
    loop {
        {
            let mut shared = lock(&core.driver.shared);
            for slot in shared.jobs.values_mut().filter(|slot| !slot.is_flush) {
                *steps += 1;
                if steps.is_multiple_of(every) {
                    told += usize::from(!slot.finish_early);
                    slot.finish_early = true;
                }
            }
        }
        if !core.step_here().unwrap() {
            return told;
        }
    }
}

#[test]
fn an_early_end_at_every_slice_loses_nothing() {
    for every in 1..12 {
        let vfs = MemVfs::new();
        let db = Db::open_with(Arc::new(vfs.clone()), "/db", tiny(), &[]).unwrap();
        let mut model = BTreeMap::new();
        let (mut told, mut steps, mut state) = (0, 0, every as u64);
        let mut snapshots = Vec::new();
        for i in 0..3_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("key{:04}", (state >> 40) % 700);
            if state >> 60 == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = format!("value{i:060}");
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            if i % 50 == 49 {
                told += work(&db, every, &mut steps);
            }
            if i % 700 == 699 {
                snapshots.push((db.snapshot(), model.clone()));
            }
        }
        told += work(&db, every, &mut steps);
        assert!(told > 3, "every {every}: only {told} of {steps} steps");
        let read = |options: &crate::ReadOptions| {
            let mut iter = db.iter(options).unwrap();
            let mut found = BTreeMap::new();
            iter.seek_to_first();
            while iter.valid() {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let twice = found.insert(text(iter.key()), text(iter.value()));
                assert!(twice.is_none(), "every {every}: {:?}", iter.key());
                iter.next();
            }
            iter.status().unwrap();
            found
        };
        assert!(read(&crate::ReadOptions::default()) == model, "every {every}");
        for (snapshot, model) in &snapshots {
            assert!(read(&crate::ReadOptions::at(snapshot)) == *model, "every {every}: a snapshot");
        }
        let report = db.check(&mut |_, _| {}).unwrap();
        assert!(report.problems.is_empty() && report.orphans.is_empty(), "{report:?}");
        let shared = lock(&db.core().driver.shared);
        assert!(shared.jobs.is_empty() && shared.plane.in_flight().is_empty());
    }
}

#[test]
fn steps_tell_the_bytes_of_files_not_of_what_is_in_them() {
    let mut options = tiny();
    options.column_family.compression = vec![crate::Compression::Lz4];
    options.column_family.memtable_bytes = 256 << 10;
    options.column_family.table_bytes = 64 << 10;
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    let before = db.core().vfs.totals();
    let mut written = 0;
    for i in 0..4_000_u64 {
        let random = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let value = format!("{random:016x}{}", "x".repeat(400));
        written += value.len() as u64;
        db.put(format!("key{:04}", i * 7 % 2000), value).unwrap();
        if i % 50 == 49 {
            work(&db, usize::MAX, &mut 0);
        }
    }
    let after = db.core().vfs.totals();
    let classes = IoClass::ALL.into_iter().map(IoClass::index);
    let on_disk: u64 = classes.map(|at| after[at].read_bytes - before[at].read_bytes).sum();
    let jobs = db.timeline().jobs();
    let told: u64 = jobs.iter().map(|job| job.read_bytes).sum();
    // Opening what was made is in no step; what is in the inputs would be several times as much.
    assert!(told > written / 20 && told <= on_disk, "{told} of {on_disk}, {written} written");
}
