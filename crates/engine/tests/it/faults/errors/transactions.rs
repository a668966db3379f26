//! Scenario of transactions of both kinds, and of prepared ones that an open finds again.

use sateen::{
    Db, Error, Options, Transaction, TransactionOptions, ValueKind, WalMode, WriteBatch,
    WriteOptions,
};

use super::run::{Run, Start, TAKEN_IN};
use crate::support::common::tiny;

/// The prepared transaction that lasts longer than the database is open.
const LASTS: &str = "lasts";

/// WALs are so small that column families without new entries soon hold old ones.
pub(super) fn small_logs() -> Start {
    let mut options = Options { wal: WalMode::SyncEachWrite, ..tiny() };
    options.max_total_wal_bytes = 6 << 10;
    Start::fresh(options)
}

fn begin(db: &Db, write: &WriteOptions) -> Transaction {
    let options = TransactionOptions { write: write.clone(), ..TransactionOptions::pessimistic() };
    db.transaction_with(&options)
}

/// Writes `batch` in two phases. What an earlier try has prepared is committed.
fn in_two_phases(db: &Db, batch: &WriteBatch, write: &WriteOptions) -> Result<(), Error> {
    if let Some(mut prepared) = db.prepared_transaction("commit")? {
        return prepared.commit_with(write);
    }
    let mut transaction = begin(db, write);
    transaction.rebuild_from(batch)?;
    transaction.prepare("commit")?;
    transaction.commit()
}

fn write(number: u32, db: &Db, batch: &WriteBatch, write: &WriteOptions) -> Result<(), Error> {
    // A transaction has no range deletions.
    if batch.iter().any(|entry| entry.kind == ValueKind::RangeDelete) {
        return db.write(batch, write);
    }
    let mut transaction = match number % 3 {
        0 => db.transaction(),
        1 => begin(db, write),
        _ => return in_two_phases(db, batch, write),
    };
    transaction.rebuild_from(batch)?;
    transaction.commit_with(write)
}

/// Prepares the transaction that lasts, unless an earlier try has done so.
fn prepare_lasting(db: &Db) -> Result<(), Error> {
    if db.list_prepared()? == [LASTS.as_bytes()] {
        return Ok(());
    }
    let mut transaction = begin(db, &WriteOptions::sync());
    transaction.put([TAKEN_IN, b"lasts"].concat(), [b'l'; 300])?;
    transaction.prepare(LASTS)
}

/// Rolls back what tries that failed have left, after an open.
fn roll_back_others(db: &Db) -> Result<(), Error> {
    for name in db.list_prepared()? {
        if name != LASTS.as_bytes()
            && let Some(mut transaction) = db.prepared_transaction(name)?
        {
            transaction.rollback()?;
        }
    }
    Ok(())
}

pub(super) fn commits(run: &mut Run) -> Option<()> {
    let mut db = run.open()?;
    for number in 0..27_u32 {
        run.commit_by(&db, number % 4 == 0, |db, batch, options| {
            write(number, db, batch, options)
        })?;
        run.steps(&db, 1)?;
        match number {
            4 => run.insist(&db, prepare_lasting)?,
            8 => run.flush(&db)?,
            14 | 20 => {
                run.close(db);
                db = run.open()?;
                run.insist(&db, roll_back_others)?;
                let there = run.insist(&db, Db::list_prepared)?;
                let is_there = there == [LASTS.as_bytes()];
                assert!(is_there || !run.is_honest(), "{}: {there:?}", run.what);
            }
            _ => {}
        }
    }
    let key = [TAKEN_IN, b"lasts"].concat();
    let seen = run.insist(&db, |db| match db.prepared_transaction(LASTS)? {
        Some(mut transaction) => transaction.commit().and_then(|()| db.get(&key)),
        None => db.get(&key),
    })?;
    assert!(seen.is_some() || !run.is_honest(), "{}: the commit had no effect", run.what);
    let left = run.insist(&db, Db::list_prepared)?;
    assert!(left.is_empty(), "{}: {left:?}", run.what);
    run.finish(db)
}
