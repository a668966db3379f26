//! Nanoseconds per operation, for profiling:
//! `cargo test --release -p sateen-store --lib -- --ignored --nocapture --test-threads 1 bench_`
//!
//! They print the times and assert nothing about them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use sateen_control::version::TableMeta;
use sateen_control::{ColumnFamilyId, FileId, IoClass, SeqNo, TableId};

use super::OnMiss;
use super::{TableBuilder, TableBuilderOptions, TableIterOptions, hash_key};
use crate::base::iterator::InternalIterator;
use crate::base::key;
use crate::block_cache::BlockCache;
use crate::files::{CompactionFileWriter, table_file_name};
use crate::table::Compression;
use crate::table::table_cache::{TableCache, TableCacheOptions};
use crate::vfs::{MemVfs, VfsFile};

const CLASS: IoClass = IoClass::Flush;

/// A clock of the time that this thread ran, because the machine may be busy with other work.
struct Instant(u64);

impl Instant {
    fn now() -> Instant {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Instant(text.split(' ').next().unwrap().parse().unwrap())
    }
}

/// A file that discards what is written, so that only the cost of building is measured.
#[derive(Debug)]
struct Null;

impl VfsFile for Null {
    fn read_at(&self, _: &mut [u8], _: u64, _: IoClass) -> io::Result<usize> {
        Ok(0)
    }
    fn write_at(&self, _: &[u8], _: u64, _: IoClass) -> io::Result<()> {
        Ok(())
    }
    fn sync_data(&self, _: IoClass) -> io::Result<()> {
        Ok(())
    }
    fn start_writeback(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn finish_writeback(&self, _: u64, _: u64, _: IoClass) -> io::Result<()> {
        Ok(())
    }
    fn punch_hole(&self, _: u64, _: u64, _: IoClass) -> io::Result<()> {
        Ok(())
    }
    fn preallocate(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }
}

struct Built {
    vfs: MemVfs,
    metas: Vec<Arc<TableMeta>>,
    entries: u64,
}

fn user_key(i: u64) -> [u8; 16] {
    let mut key = *b"0000000000000000";
    let mut n = i;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
    key
}

/// Builds tables of `table_bytes` from `total_bytes`, with values of `value_bytes` that compress to
/// half.
fn build(total: u64, table_bytes: u64, value_bytes: usize, compression: Compression) -> Built {
    let path = table_file_name(Path::new("/db"), FileId(1));
    let null = CompactionFileWriter::on(Arc::new(Null), &path, FileId(1), 1, CLASS).unwrap();
    build_into(null, total, table_bytes, value_bytes, compression);
    let vfs = MemVfs::new();
    let file = CompactionFileWriter::create(&vfs, &path, FileId(1), 1, false, CLASS).unwrap();
    let (metas, entries) = build_into(file, total, table_bytes, value_bytes, compression);
    Built { vfs, metas, entries }
}

fn build_into(
    mut file: CompactionFileWriter,
    total: u64,
    table_bytes: u64,
    value_bytes: usize,
    compression: Compression,
) -> (Vec<Arc<TableMeta>>, u64) {
    let entries = total / (value_bytes as u64 + 16);
    let mut noise = vec![0u8; 1 << 20];
    let mut state = 1u64;
    for chunk in noise.chunks_mut(16) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        chunk[..8].copy_from_slice(&state.to_be_bytes());
    }
    let mut tables = 1;
    let options = |table| TableBuilderOptions {
        compression,
        ..TableBuilderOptions::new(TableId(table), ColumnFamilyId(0))
    };
    let mut summaries = Vec::new();
    let mut builder = TableBuilder::new(options(tables)).unwrap();
    let mut internal = Vec::new();
    let start = Instant::now();
    for i in 0..entries {
        internal.clear();
        key::append(&mut internal, &user_key(i), SeqNo(i + 1), sateen_control::ValueKind::Put);
        let at = (i as usize * 64) % ((1 << 20) - value_bytes);
        builder.add(&mut file, &internal, &noise[at..at + value_bytes]).unwrap();
        if builder.estimated_size() >= table_bytes {
            tables += 1;
            let next = TableBuilder::new(options(tables)).unwrap();
            summaries.push(std::mem::replace(&mut builder, next).finish(&mut file).unwrap());
        }
    }
    if builder.entries() > 0 {
        summaries.push(builder.finish(&mut file).unwrap());
    }
    file.finish().unwrap();
    report(&format!("build {value_bytes} B {compression:?}"), start, entries);
    (summaries.into_iter().map(|s| Arc::new(s.into_meta(FileId(1)))).collect(), entries)
}

fn report(what: &str, start: Instant, operations: u64) {
    let ns = (Instant::now().0 - start.0) as f64 / operations as f64;
    println!("{what:50} {ns:8.1} ns/op");
}

fn cache_of(built: &Built) -> TableCache {
    TableCache::new(TableCacheOptions {
        vfs: Arc::new(built.vfs.clone()),
        directory: "/db".into(),
        db_uid: 1,
        direct: false,
        open_files_max: 100,
        memory_bytes_max: 1 << 30,
        images: None,
    })
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *state >> 20
}

fn reads(what: &str, built: &Built) {
    let tables = cache_of(built);
    let blocks = Arc::new(BlockCache::new(2 << 30));
    let mut state = 7;
    let n = 1_000_000.min(built.entries * 4);
    let find = |user: &[u8]| {
        let at = built.metas.partition_point(|meta| meta.largest < *user);
        &built.metas[at]
    };
    let memory: u64 =
        { built.metas.iter().map(|m| tables.get(m, CLASS).unwrap().memory_bytes() as u64).sum() };
    println!(
        "{what}: {} tables, {} B memory per entry x1000",
        built.metas.len(),
        memory * 1000 / built.entries
    );
    for pass in ["cold", "warm"] {
        let start = Instant::now();
        let mut bytes = 0;
        for _ in 0..n {
            let user = user_key(next(&mut state) % built.entries);
            let table = tables.get(find(&user), CLASS).unwrap();
            let hash = hash_key(&user);
            let found =
                table.get(&user, SeqNo::MAX, hash, Some(&blocks), OnMiss::ReadAndCache).unwrap();
            bytes += found.unwrap().2.len();
        }
        report(&format!("{what} get {pass}"), start, n);
        assert!(bytes > 0);
    }
    let start = Instant::now();
    let mut found = 0;
    for _ in 0..n {
        let mut user = user_key(next(&mut state) % (built.entries - 1)).to_vec();
        user.extend_from_slice(b"x");
        let table = tables.get(find(&user), CLASS).unwrap();
        let hash = hash_key(&user);
        let got = table.get(&user, SeqNo::MAX, hash, Some(&blocks), OnMiss::ReadAndCache).unwrap();
        found += usize::from(got.is_some());
    }
    assert_eq!(found, 0);
    report(&format!("{what} get missing"), start, n);
    let start = Instant::now();
    let mut sum = 0;
    for _ in 0..n {
        let meta = &built.metas[next(&mut state) as usize % built.metas.len()];
        sum += tables.get(meta, CLASS).unwrap().blocks();
    }
    assert!(sum > 0);
    report(&format!("{what} table cache lookup"), start, n);
    for (way, options) in [
        ("iterate, cached", TableIterOptions::client(Some(blocks.clone()), OnMiss::ReadAndCache)),
        ("iterate, no cache", TableIterOptions::client(None, OnMiss::Read)),
        ("iterate, compaction", TableIterOptions::compaction(CLASS, 1 << 20)),
    ] {
        let start = Instant::now();
        let (mut entries, mut bytes) = (0, 0);
        for meta in &built.metas {
            let mut iter = tables.get(meta, CLASS).unwrap().iter(options.clone());
            iter.seek_to_first().unwrap();
            while iter.valid() {
                entries += 1;
                bytes += iter.key().len() + iter.value().len();
                iter.next().unwrap();
            }
        }
        assert!(entries == built.entries && bytes > 0);
        report(&format!("{what} {way}"), start, entries);
    }
    let start = Instant::now();
    for _ in 0..n / 4 {
        let user = user_key(next(&mut state) % built.entries);
        let table = tables.get(find(&user), CLASS).unwrap();
        let mut iter =
            table.iter(TableIterOptions::client(Some(blocks.clone()), OnMiss::ReadAndCache));
        iter.seek(&key::seek_key(&user, SeqNo::MAX)).unwrap();
        assert!(iter.valid());
    }
    report(&format!("{what} new cursor and seek"), start, n / 4);
}

#[test]
#[ignore = "a benchmark"]
fn bench_values_of_1_kb() {
    let built = build(256 << 20, 1 << 20, 1000, Compression::None);
    reads("1 KB", &built);
}

#[test]
#[ignore = "a benchmark"]
fn bench_values_of_100_b() {
    let built = build(128 << 20, 1 << 20, 100, Compression::None);
    reads("100 B", &built);
}

#[test]
#[ignore = "a benchmark"]
fn bench_compressed() {
    for method in [Compression::Lz4, Compression::Zstd] {
        let built = build(64 << 20, 1 << 20, 100, method);
        reads(&format!("100 B {method:?}"), &built);
    }
}

#[test]
#[ignore = "a benchmark"]
fn bench_checksum() {
    let block = vec![7u8; 4096];
    let seed = crate::files::seal::Seed::of_file(1, FileId(1));
    let start = Instant::now();
    let n = 1_000_000;
    let mut sum = 0;
    for i in 0..n {
        sum ^= seed.checksum(std::hint::black_box(&block), i);
    }
    assert_ne!(sum, 1);
    report("checksum of 4 KiB", start, n);
}
