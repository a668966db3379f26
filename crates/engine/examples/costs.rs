//! One operation, repeated, for an instruction counter: what does it cost when all it needs is in
//! memory?
//!
//! ```sh
//! cargo build --release -p sateen --example costs
//! for rounds in 1 2; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/examples/costs get $rounds
//! done
//! ```
//!
//! A round is 10,000 operations, so the difference of two counts by 10,000 is the cost of one.
//!
//! | operation | what it does |
//! | --- | --- |
//! | `put` | a put into a memtable, without a WAL; `put-logged`: with one |
//! | `get` | a point read from the block cache |
//! | `next` | a step of a cursor; `range` and `rev`: of an iterator and its reverse |
//! | `compact` | an entry that a compaction reads and writes |
//!
//! A third argument traces the rounds: `calls`, `blocks` or `io`. The trace goes to memory, by a
//! thread whose work counts, too: `costs get 1 calls`.
//!
//! The database is on a file system in memory and has no threads: nothing else runs.

use std::hint::black_box;
use std::sync::Arc;

use sateen::vfs::MemVfs;
use sateen::{
    BlockTraceOptions, CompactRangeOptions, Db, Error, IoTraceOptions, Options, ReadOptions,
    TraceOptions, WalMode,
};

const KEYS: u64 = 10_000;

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Puts all keys in an order that is not theirs.
fn put_all(db: &Db) -> sateen::Result<()> {
    (0..KEYS).try_for_each(|number| db.put(key(number * 7919 % KEYS), [7; 100]))
}

/// Does one round, and returns how many operations that were.
fn round(db: &Db, operation: &str) -> sateen::Result<u64> {
    match operation {
        "put" | "put-logged" => put_all(db)?,
        "get" => {
            for number in 0..KEYS {
                black_box(db.get_pinned(key(number * 7919 % KEYS))?);
            }
        }
        "next" => {
            let mut cursor = db.cursor(&ReadOptions::default())?;
            cursor.seek_to_first();
            while cursor.valid() {
                black_box((cursor.key(), cursor.value()));
                cursor.next();
            }
            cursor.status()?;
        }
        "range" => db.iter()?.try_for_each(|entry| entry.map(|entry| drop(black_box(entry))))?,
        "rev" => {
            db.iter()?.rev().try_for_each(|entry| entry.map(|entry| drop(black_box(entry))))?;
        }
        "compact" => {
            let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            db.compact_range(None, None, &all)?;
        }
        other => return Err(Error::InvalidArgument(format!("there is no operation {other:?}"))),
    }
    Ok(KEYS)
}

/// Begins the trace of this name.
fn start_trace(db: &Db, trace: &str) -> sateen::Result<()> {
    match trace {
        "calls" => db.start_trace("/trace", &TraceOptions::default()),
        "blocks" => db.start_block_trace("/trace", &BlockTraceOptions::default()),
        "io" => db.start_io_trace("/trace", &IoTraceOptions::default()),
        other => Err(Error::InvalidArgument(format!("there is no trace {other:?}"))),
    }
}

fn main() -> sateen::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (operation, rounds, trace) = match &arguments[..] {
        [operation, rounds] => (operation, rounds, None),
        [operation, rounds, trace] => (operation, rounds, Some(trace)),
        _ => {
            let text = "an operation, a number of rounds and perhaps a trace are wanted";
            return Err(Error::InvalidArgument(text.into()));
        }
    };
    let mut options = Options { background_threads: 0, ..Options::default() };
    if operation == "put" {
        options.wal = WalMode::Off;
    }
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[])?;
    put_all(&db)?;
    db.flush()?;
    // The first round fills the block cache.
    let rounds = rounds.parse().unwrap_or(1);
    let mut done = round(&db, operation)?;
    if let Some(trace) = trace {
        start_trace(&db, trace)?;
    }
    for _ in 0..rounds {
        done += round(&db, operation)?;
    }
    println!("{done} operations");
    // The close ends the trace.
    db.close()
}
