//! Measures the cost of a call through the C interface in comparison with the same call in Rust.
//! Rounds of both alternate on one database in memory. The result is the median of the rounds in
//! nanoseconds for a call.
//!
//! `cargo run --release -p sateen-capi --example boundary`
#![expect(unsafe_code, reason = "C functions are called")]

use std::ffi::{CString, c_char};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use sateen::{ReadOptions, WriteOptions};
use sateen_rocksdb::{abi::*, calls::*, db::*, iter::*, mapped::*, options::*};

const KEYS: u64 = 20_000;
const ROUNDS: usize = 41;

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let rust = sateen::Db::open(path("rust"), sateen::Options::default()).expect("a database");
    let name = CString::new(path("c").as_os_str().as_encoded_bytes()).expect("no zeros in it");
    // SAFETY: fresh handles, and a name that ends with a zero.
    let (db, reading, writing) = unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        let db = rocksdb_open(options, name.as_ptr(), null_mut());
        assert!(!db.is_null());
        (db, rocksdb_readoptions_create(), rocksdb_writeoptions_create())
    };
    let keys: Vec<[u8; 16]> = (0..KEYS)
        .map(|n| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes())
        .collect();
    let (family, value) = (rust.default_column_family(), [7_u8; 100]);
    let (read, write) = (ReadOptions::default(), WriteOptions::default());

    compare(
        "put",
        || {
            for key in &keys {
                family.writing(&write).put(key, value).expect("a write");
            }
        },
        || {
            for key in &keys {
                let (key, value) = (key.as_ptr().cast(), value.as_ptr().cast());
                // SAFETY: open handles, byte strings of these lengths.
                unsafe { rocksdb_put(db, writing, key, 16, value, 100, null_mut()) };
            }
        },
    );
    compare(
        "get",
        || {
            for key in &keys {
                black_box(family.reading(&read).get(key).expect("a read"));
            }
        },
        || {
            for key in &keys {
                let mut length = 0;
                // SAFETY: as above; the value is freed once.
                unsafe {
                    let key = key.as_ptr().cast();
                    let found = rocksdb_get(db, reading, key, 16, &raw mut length, null_mut());
                    rocksdb_free(black_box(found).cast());
                }
            }
        },
    );
    compare(
        "iterate",
        || {
            let mut iter = family.cursor(&read).expect("an iterator");
            iter.seek_to_first();
            while iter.valid() {
                black_box((iter.key(), iter.value()));
                iter.next();
            }
        },
        || {
            // SAFETY: open handles; it moves from where it is valid.
            unsafe {
                let iter = rocksdb_create_iterator(db, reading);
                rocksdb_iter_seek_to_first(iter);
                while rocksdb_iter_valid(iter) != 0 {
                    let mut length = 0;
                    black_box::<*const c_char>(rocksdb_iter_key(iter, &raw mut length));
                    black_box::<*const c_char>(rocksdb_iter_value(iter, &raw mut length));
                    rocksdb_iter_next(iter);
                }
                rocksdb_iter_destroy(iter);
            }
        },
    );
    // SAFETY: it is not used any more.
    unsafe { rocksdb_close(db) };
}

/// Alternates rounds of both, so that other load on the machine affects both.
fn compare(what: &str, mut rust: impl FnMut(), mut through_c: impl FnMut()) {
    let (mut of_rust, mut of_c, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (a, b) = (time(&mut rust), time(&mut through_c));
        of_rust.push(a);
        of_c.push(b);
        over.push(b - a);
    }
    let (a, b, more) = (median(of_rust), median(of_c), median(over));
    println!("{what}: Rust {a:.0} ns, C {b:.0} ns, {more:+.0} ns");
}

fn time(act: &mut impl FnMut()) -> f64 {
    let begun = Instant::now();
    act();
    begun.elapsed().as_secs_f64() * 1e9 / KEYS as f64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
