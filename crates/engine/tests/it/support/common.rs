//! What several tests share: option sets, a random number generator that prints its seed, reading a
//! whole database.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{MemVfs, Vfs};
use sateen::{
    ColumnFamily, ColumnFamilyOptions, CompactRangeOptions, CompactionStyle, Cursor, Db, Decision,
    Filtering, MergeOperator, Merging, Options, ReadOptions, Result,
};

/// A column family's contents.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// xorshift64*: small, and the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// One of them, if there are any.
pub(crate) fn pick<T>(slots: &[T], random: &mut Random) -> Option<usize> {
    (!slots.is_empty()).then(|| random.below(slots.len() as u64) as usize)
}

/// What the merge operators of these tests make of a value and an operand: no other order of
/// operands makes the same.
pub(crate) fn appended(before: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
    let mut value = before.unwrap_or_default().to_vec();
    value.extend_from_slice(operand);
    value
}

/// Appends operands; on its own those that nothing is known below of, too.
pub(crate) fn appending() -> Merging {
    Merging::associative("append", |_key, before, operand| Some(appended(before, operand)))
}

/// The same, but operands stay apart until there is a value.
pub(crate) fn appending_late() -> Merging {
    struct Late;
    impl MergeOperator for Late {
        fn name(&self) -> &str {
            "append late"
        }
        fn full_merge(
            &self,
            _key: &[u8],
            existing: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> Option<Vec<u8>> {
            let begin = existing.unwrap_or_default().to_vec();
            Some(operands.iter().fold(begin, |value, operand| appended(Some(&value), operand)))
        }
    }
    Merging::new(Late)
}

/// Whether the compaction filter of these tests has anything to say about `key`. Operands are not
/// for such keys: what they make would tell whether the filter was there before.
pub(crate) fn is_decided(key: &[u8]) -> bool {
    key.last().is_some_and(|last| last % 4 == 3)
}

/// What that filter leaves of a value; the same of what it has left.
pub(crate) fn decided(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    match deciding_about(key, value) {
        Decision::Keep => Some(value.to_vec()),
        Decision::Change(value) => Some(value),
        Decision::Remove => None,
    }
}

pub(crate) fn deciding_about(key: &[u8], value: &[u8]) -> Decision {
    match value.split_first() {
        Some((first, _)) if is_decided(key) && first % 3 == 0 => Decision::Remove,
        Some((first, rest)) if is_decided(key) && first % 3 == 1 => {
            // What is left of it is kept.
            Decision::Change([b"\x02!", rest].concat())
        }
        _ => Decision::Keep,
    }
}

/// Removes some values, and replaces others.
pub(crate) fn deciding() -> Filtering {
    Filtering::by("decide", |_level, key, value| deciding_about(key, value))
}

/// Everything so small that a few hundred writes go through flushes, several levels and manifests.
pub(crate) fn tiny() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.block_cache_bytes = 64 << 10;
    options.manifest_bytes_max = 4 << 10;
    options.slice_bytes_max = 4 << 10;
    options.wal_bytes_per_sync = 0;
    let family = &mut options.column_family;
    family.memtable_bytes = 4 << 10;
    family.memtables_max = 3;
    family.level0_trigger = 2;
    family.level0_slowdown = 6;
    family.level0_stop = 8;
    family.level_base_bytes = 8 << 10;
    family.level_multiplier = 3.0;
    family.table_bytes = 2 << 10;
    family.level0_stripe_bytes = 6 << 10;
    family.group_compaction_bytes = 8 << 10;
    family.block_bytes = 512;
    family.restart_interval = 4;
    options
}

/// A profile as small: its policies, with memtables of so many bytes.
pub(crate) fn small(profile: &str, memtable_bytes: u64) -> Options {
    let mut options = Options::profile(profile).unwrap();
    options.background_threads = 0;
    options.slice_bytes_max = 8 << 10;
    options.block_cache_bytes = 64 << 10;
    options.manifest_bytes_max = 4 << 10;
    let family = &mut options.column_family;
    let scale = |bytes: &mut u64, of: u64| *bytes = if *bytes == 0 { 0 } else { of };
    scale(&mut family.flush_table_bytes, memtable_bytes / 2);
    scale(&mut family.group_compaction_bytes, 4 * memtable_bytes);
    scale(&mut family.level0_stripe_bytes, 4 * memtable_bytes);
    scale(&mut family.compaction_bytes_max, 12 * memtable_bytes);
    scale(&mut family.grandparent_bytes_max, 5 * memtable_bytes);
    family.memtable_bytes = memtable_bytes;
    family.table_bytes = memtable_bytes / 2;
    family.level_base_bytes = 4 * memtable_bytes;
    family.block_bytes = 512;
    options
}

/// Opens what is there with any options. What was made with guards is compacted with guards first
/// if the options want one run a level, as the refusal says.
pub(crate) fn open_arranged(
    vfs: Arc<dyn Vfs>,
    path: impl AsRef<Path>,
    options: &Options,
    families: &[(&str, ColumnFamilyOptions)],
) -> Db {
    let path = path.as_ref();
    let error = match Db::open_with(vfs.clone(), path, options.clone(), families) {
        Ok(db) => return db,
        Err(error) => error.to_string(),
    };
    assert!(error.contains("has levels of several runs"), "cannot be opened again: {error}");
    let mut guards = options.clone();
    guards.column_family.compaction_style = CompactionStyle::Guards;
    guards.column_family.disable_auto_compactions = true;
    let db = Db::open_with(vfs.clone(), path, guards, &[]).unwrap();
    for name in db.column_families() {
        let family = db.column_family(&name).unwrap();
        family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    }
    db.close().unwrap();
    drop(db);
    Db::open_with(vfs, path, options.clone(), families).unwrap()
}

/// The whole of a column family, read forwards; backwards must say the same.
pub(crate) fn read_all(family: &ColumnFamily, options: &ReadOptions) -> Contents {
    let shown: Vec<(Vec<u8>, Vec<u8>)> =
        whole(family.cursor(options).unwrap(), <[u8]>::to_vec).unwrap();
    let comparator = family.options().comparator;
    let ascend = |a: &[u8], b: &[u8]| comparator.compare(a, b) == Ordering::Less;
    assert!(shown.is_sorted_by(|a, b| ascend(&a.0, &b.0)), "keys ascend");
    shown.into_iter().collect()
}

/// The whole of the default column family.
pub(crate) fn contents(db: &Db) -> Contents {
    read_all(&db.default_column_family(), &ReadOptions::default())
}

/// All that an iterator shows, read forwards; backwards must say the same. `key` makes a key of
/// what is stored for it.
pub(crate) fn whole<V>(
    mut iter: Cursor,
    key: impl Fn(&[u8]) -> Vec<u8>,
) -> Result<Vec<(Vec<u8>, V)>>
where
    V: for<'a> From<&'a [u8]> + Deref<Target = [u8]>,
{
    let mut forwards: Vec<(Vec<u8>, V)> = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        forwards.push((key(iter.key()), V::from(iter.value())));
        iter.next();
    }
    iter.status()?;
    let mut left = forwards.len();
    iter.seek_to_last();
    while iter.valid() {
        assert!(left > 0, "backwards shows more than forwards");
        left -= 1;
        assert_eq!(key(iter.key()), forwards[left].0, "both directions show the same keys");
        assert!(*iter.value() == *forwards[left].1, "both directions show the same values");
        iter.prev();
    }
    iter.status()?;
    assert_eq!(left, 0, "backwards shows less than forwards");
    Ok(forwards)
}

/// Properties of a column family that are 0 where nothing is left to do.
pub(crate) const ZERO_AT_REST: [&str; 8] = [
    "num-immutable-mem-table",
    "mem-table-flush-pending",
    "compaction-pending",
    "num-running-flushes",
    "num-running-compactions",
    "num-entries-active-mem-table",
    "num-snapshots",
    "is-write-stopped",
];

/// Everything that must be true of a database is.
pub(crate) fn assert_sound(db: &Db) {
    let report = db.check(&mut |_, _| {}).unwrap();
    assert!(report.is_sound(), "{report:#?}");
}

/// Whoever opens the directory to read it finds nothing wrong, and no file that nothing names.
pub(crate) fn assert_no_orphans(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: &Options) {
    let reader = Db::open_read_only_with(vfs, path, options.clone()).unwrap();
    let report = reader.check(&mut |_, _| {}).unwrap();
    assert!(report.is_sound(), "{report:#?}");
    assert!(report.orphans.is_empty(), "files that nothing names: {:?}", report.orphans);
}

pub(crate) fn as_vfs(vfs: &MemVfs) -> Arc<dyn Vfs> {
    Arc::new(vfs.clone())
}

/// The name by which the test binary runs the test `name` of `module`, which is a `module_path!()`.
pub(crate) fn own_test(module: &str, name: &str) -> String {
    let module = module.split_once("::").map_or(module, |(_binary, module)| module);
    format!("{module}::{name}")
}
