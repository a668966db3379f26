//! Steps of a cursor and of an iterator through what is in the block cache, for an instruction
//! counter:
//!
//! ```sh
//! cargo build --release -p sateen --example scan
//! target/release/examples/scan directory cursor 0
//! for form in cursor range rev; do for scans in 1 2; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/examples/scan directory $form $scans
//! done; done
//! ```
//!
//! The difference of two counts by 10,000 is what one step costs. The first call makes the
//! database: how background work takes the time, valgrind cannot run.

use std::hint::black_box;

use sateen::{Db, Error, Options, ReadOptions};

const KEYS: u64 = 10_000;

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn main() -> sateen::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [directory, form, scans] = &arguments[..] else {
        let wanted = "a directory, `cursor`, `range` or `rev`, and a number of scans are wanted";
        return Err(Error::InvalidArgument(wanted.into()));
    };
    let scans: u64 = scans.parse().unwrap_or(0);
    // Nothing else runs.
    let db = Db::open(directory, Options { background_threads: 0, ..Options::default() })?;
    if scans == 0 {
        for number in 0..KEYS {
            db.put(key(number), [7; 100])?;
        }
        db.flush()?;
    }
    // The first scan fills the block cache.
    for _ in 0..=scans {
        let mut entries = 0;
        match form.as_str() {
            "cursor" => {
                let mut cursor = db.cursor(&ReadOptions::default())?;
                cursor.seek_to_first();
                while cursor.valid() {
                    black_box((cursor.key(), cursor.value()));
                    entries += 1;
                    cursor.next();
                }
                cursor.status()?;
            }
            "rev" => {
                for entry in db.iter()?.rev() {
                    black_box(entry?);
                    entries += 1;
                }
            }
            _ => {
                for entry in db.iter()? {
                    black_box(entry?);
                    entries += 1;
                }
            }
        }
        assert_eq!(entries, KEYS);
    }
    db.close()
}
