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
                found.insert(text(iter.key()), text(iter.value()));
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
