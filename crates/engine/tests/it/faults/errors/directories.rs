//! Scenarios of tables in several directories.

use std::path::Path;

use sateen::vfs::{CrashChoice, Vfs};
use sateen::{TablePath, destroy_with};

use super::run::{Run, Start};
use crate::features::paths::two;
use crate::support::common::tiny;

/// A database with two directories for tables.
pub(super) fn some() -> Start {
    Start::fresh(two(tiny()))
}

/// The same, filled and closed.
pub(super) fn closed() -> Start {
    let start = some();
    let mut run = start.run("closed in directories".to_owned(), None);
    let db = run.open().unwrap();
    for number in 1..=20 {
        run.commit(&db, number % 5 == 0).unwrap();
        run.steps(&db, 2).unwrap();
    }
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    let mem = run.mem.crash_image(CrashChoice::Everything);
    let (states, durable) = run.into_states();
    Start { mem, states, durable, options: start.options }
}

/// A column family with a directory of its own comes and goes.
pub(super) fn one(run: &mut Run) -> Option<()> {
    let db = run.open()?;
    run.commit(&db, true)?;
    let own = run.insist(&db, |db| match db.column_family("own") {
        Some(own) => Ok(own),
        None => {
            let mut options = db.options().column_family;
            options.family_paths = vec![TablePath::new("/own", 0)];
            db.create_column_family("own", options)
        }
    })?;
    run.insist(&db, |_| own.put("key", "value"))?;
    run.insist(&db, |_| own.flush())?;
    run.insist(&db, |db| match db.column_family("own") {
        Some(own) => db.drop_column_family(&own),
        None => Ok(()),
    })?;
    drop(own);
    run.finish(db)
}

/// Nothing of the database is left in its directories. A directory of tables is not a database.
pub(super) fn destroy(run: &mut Run) -> Option<()> {
    run.insist_alone_with(|vfs, options| destroy_with(vfs.as_ref(), "/slow", options))?;
    run.insist_alone_with(|vfs, options| destroy_with(vfs.as_ref(), "/db", options))?;
    let honest = run.is_honest();
    for directory in ["/db", "/fast", "/slow"] {
        let left = run.mem.list(Path::new(directory)).unwrap_or_default();
        assert!(left.is_empty() || !honest, "{}: {left:?} in {directory}", run.what);
    }
    Some(())
}
