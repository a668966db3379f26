//! Scenarios of a bulk load and of a large flush.

use super::run::{Run, Start, TAKEN_IN};
use crate::support::common::tiny;

pub(super) fn load(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, true)?;
    let key = |nth: u8| [TAKEN_IN, &[b'0' + nth, b'l']].concat();
    run.insist(&db, |db| {
        let load = db.bulk_load()?;
        for nth in 0..4 {
            let mut part = load.part();
            part.put(key(2 * nth), [b'l'; 300])?;
            part.put(key(2 * nth + 1), [b'l'; 300])?;
            part.finish()?;
        }
        load.finish()
    })?;
    for nth in 0..8 {
        let found = run.insist(&db, |db| db.get(key(nth)))?;
        assert_eq!(found.as_deref(), Some(&[b'l'; 300][..]), "{}: {nth}", run.what);
    }
    run.commit(&db, true)?;
    run.finish(db)
}

pub(super) fn large_memtables() -> Start {
    let mut start = Start::fresh(tiny());
    start.options.column_family.memtable_bytes = 4 << 20;
    start
}

/// A file that is so large that its writer waits for the device on the way.
pub(super) fn large_flush(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.insist(&db, |db| {
        for nth in 0..26_u32 {
            let key = [TAKEN_IN, &nth.to_be_bytes()].concat();
            db.put(key, vec![nth as u8; 64 << 10])?;
        }
        db.flush()
    })?;
    run.commit(&db, true)?;
    run.finish(db)
}
