//! Scenario of a bulk load.

use super::run::{Run, TAKEN_IN};

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
