//! Point reads of what is in the block cache, for an instruction counter:
//!
//! ```sh
//! cargo build --release -p sateen --example point_read
//! target/release/examples/point_read directory 0
//! for reads in 100000 200000; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/examples/point_read directory $reads
//! done
//! ```
//!
//! The difference of the two counts, by the difference of the reads, is what one costs. The first
//! call makes the database: how background work takes the time, valgrind cannot run.

use sateen::{Db, Error, Options};

const KEYS: u64 = 10_000;

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn main() -> sateen::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [directory, reads] = &arguments[..] else {
        return Err(Error::InvalidArgument("a directory and a number of reads are wanted".into()));
    };
    let reads: u64 = reads.parse().unwrap_or(0);
    // Nothing else runs.
    let db = Db::open(directory, Options { background_threads: 0, ..Options::default() })?;
    if reads == 0 {
        for number in 0..KEYS {
            db.put(key(number), [7; 100])?;
        }
        db.flush()?;
    }
    for number in (0..KEYS).chain((0..reads).map(|number| number * 7919 % KEYS)) {
        assert!(db.get_pinned(key(number))?.is_some(), "key {number}");
    }
    db.close()
}
