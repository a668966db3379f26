//! Options of single calls, and snapshots.

use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::null;

use sateen::{CompactRangeOptions, FlushOptions, ReadOptions, Snapshot, WriteOptions};

use crate::abi::{free, give, optional_bytes, quiet};
use crate::database::rocksdb_t;
use crate::handles::is_given;
use crate::settings::{Setting, Settings, keeps, made};

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident($inner:ty): $create:ident, $destroy:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Default)]
        #[expect(non_camel_case_types, reason = "RocksDB's name")]
        pub struct $handle(pub(crate) $inner, pub(crate) Settings);

        keeps!($handle: 1);
        made!($handle: $create, $destroy);
    )* };
}

handles! {
    /// Options of a write.
    rocksdb_writeoptions_t(WriteOptions): rocksdb_writeoptions_create, rocksdb_writeoptions_destroy;
    /// Options of a read.
    rocksdb_readoptions_t(ReadOptions): rocksdb_readoptions_create, rocksdb_readoptions_destroy;
    /// Options of a flush.
    rocksdb_flushoptions_t(FlushOptions): rocksdb_flushoptions_create, rocksdb_flushoptions_destroy;
    /// Options of a manual compaction.
    rocksdb_compactoptions_t(CompactRangeOptions): rocksdb_compactoptions_create,
        rocksdb_compactoptions_destroy;
}

macro_rules! setters {
    ($(
        $(#[$doc:meta])*
        $function:ident($handle:ty, $value:ident: $type:ty) |$options:ident| $set:expr;
    )*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(handle: *mut $handle, $value: $type) {
            // SAFETY: the contract of the module.
            if let Some($options) = unsafe { handle.as_mut() }.map(|handle| &mut handle.0) {
                $set;
            }
        }
    )* };
}

setters! {
    /// Sets `sync`.
    rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t, sync: c_uchar)
        |options| options.sync = sync != 0;
    /// Sets `disable_wal`.
    rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t, disable: c_int)
        |options| options.disable_wal = disable != 0;
    /// Sets `no_slowdown`.
    rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t, no_slowdown: c_uchar)
        |options| options.no_slowdown = no_slowdown != 0;
    /// Sets `low_priority`.
    rocksdb_writeoptions_set_low_pri(rocksdb_writeoptions_t, low: c_uchar)
        |options| options.low_priority = low != 0;
    /// Sets `fill_cache`.
    rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t, fill: c_uchar)
        |options| options.fill_cache = fill != 0;
    /// Sets `readahead_bytes`.
    rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t, bytes: usize)
        |options| options.readahead_bytes = bytes as u64;
    /// Sets `ignore_range_deletions`.
    rocksdb_readoptions_set_ignore_range_deletions(rocksdb_readoptions_t, ignore: c_uchar)
        |options| options.ignore_range_deletions = ignore != 0;
    /// Sets `skipped_max`.
    rocksdb_readoptions_set_max_skippable_internal_keys(rocksdb_readoptions_t, keys: u64)
        |options| options.skipped_max = keys;
    /// Sets `ignore_missing_column_families`.
    rocksdb_writeoptions_set_ignore_missing_column_families(rocksdb_writeoptions_t,
        ignore: c_uchar) |options| options.ignore_missing_column_families = ignore != 0;
    /// Sets `prefix_same_as_start`.
    rocksdb_readoptions_set_prefix_same_as_start(rocksdb_readoptions_t, same: c_uchar)
        |options| options.prefix_same_as_start = same != 0;
    /// Sets `wait`.
    rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t, wait: c_uchar)
        |options| options.wait = wait != 0;
}

/// Sets `rewrite_last_level` for 2 (force) and 3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactoptions_set_bottommost_level_compaction(
    handle: *mut rocksdb_compactoptions_t,
    when: c_uchar,
) {
    // SAFETY: the contract of the module.
    if let Some(handle) = unsafe { handle.as_mut() } {
        handle.0.rewrite_last_level = when >= 2;
        when.put(&mut handle.1, "bottommost_level_compaction");
    }
}

macro_rules! getters {
    ($($function:ident($handle:ty) -> $type:ty: $($field:ident).+;)*) => { $(
        #[doc = concat!("Returns `", stringify!($($field).+), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(handle: *mut $handle) -> $type {
            // SAFETY: the contract of the module.
            let options = unsafe { handle.as_ref() }.map(|handle| &handle.0);
            let value = options.map(|options| <$type>::try_from(options.$($field).+));
            // C cannot have set a value that does not fit.
            value.and_then(Result::ok).unwrap_or_default()
        }
    )* };
}

getters! {
    rocksdb_writeoptions_get_sync(rocksdb_writeoptions_t) -> c_uchar: sync;
    rocksdb_writeoptions_get_disable_WAL(rocksdb_writeoptions_t) -> c_int: disable_wal;
    rocksdb_writeoptions_get_no_slowdown(rocksdb_writeoptions_t) -> c_uchar: no_slowdown;
    rocksdb_writeoptions_get_low_pri(rocksdb_writeoptions_t) -> c_uchar: low_priority;
    rocksdb_readoptions_get_fill_cache(rocksdb_readoptions_t) -> c_uchar: fill_cache;
    rocksdb_readoptions_get_readahead_size(rocksdb_readoptions_t) -> usize: readahead_bytes;
    rocksdb_readoptions_get_ignore_range_deletions(rocksdb_readoptions_t) -> c_uchar:
        ignore_range_deletions;
    rocksdb_readoptions_get_max_skippable_internal_keys(rocksdb_readoptions_t) -> u64: skipped_max;
    rocksdb_writeoptions_get_ignore_missing_column_families(rocksdb_writeoptions_t) -> c_uchar:
        ignore_missing_column_families;
    rocksdb_flushoptions_get_wait(rocksdb_flushoptions_t) -> c_uchar: wait;
}

/// Returns `prefix_same_as_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_get_prefix_same_as_start(
    handle: *mut rocksdb_readoptions_t,
) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { handle.as_ref() }.map_or(0, |handle| c_uchar::from(handle.0.prefix_same_as_start))
}

/// Sets `memory_only` for 1. The other tiers mean everything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_read_tier(
    handle: *mut rocksdb_readoptions_t,
    tier: c_int,
) {
    // SAFETY: the contract of the module.
    if let Some(handle) = unsafe { handle.as_mut() } {
        handle.0.memory_only = tier == 1;
        tier.put(&mut handle.1, "read_tier");
    }
}

/// Returns the value that was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_get_read_tier(
    handle: *mut rocksdb_readoptions_t,
) -> c_int {
    // SAFETY: the contract of the module.
    let tier = unsafe { handle.as_ref() }.and_then(|handle| c_int::get(&handle.1, "read_tier"));
    tier.unwrap_or_default()
}

/// The option of reads at the snapshot of a transaction that is freed.
pub(crate) const LOST_SNAPSHOT: &str = "snapshot";

/// Sets the snapshot to read at; null for the newest state. The options keep it alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_snapshot(
    handle: *mut rocksdb_readoptions_t,
    snapshot: *const rocksdb_snapshot_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(handle) = handle.as_mut() {
            let found = snapshot.as_ref().map_or(Some(None), rocksdb_snapshot_t::snapshot);
            found.is_none().put(&mut handle.1, LOST_SNAPSHOT);
            handle.0.snapshot = found.flatten();
        }
    }
}

macro_rules! bounds {
    ($($(#[$doc:meta])* $function:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            handle: *mut rocksdb_readoptions_t,
            key: *const c_char,
            length: usize,
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                if let Some(handle) = handle.as_mut() {
                    handle.0.$field = optional_bytes(key, length).map(<[u8]>::to_vec);
                }
            }
        }
    )* };
}

bounds! {
    /// Sets the first key that iterators return; null for none. It is copied.
    rocksdb_readoptions_set_iterate_lower_bound lower_bound;
    /// Sets the key before which iterators end; null for none. It is copied.
    rocksdb_readoptions_set_iterate_upper_bound upper_bound;
}

/// A snapshot: one of its own, or that of a transaction. The latter is in memory from `malloc`,
/// because C frees it, and owns nothing.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_snapshot_t(Of);

enum Of {
    Itself(Snapshot),
    Transaction(*mut TransactionSnapshot),
}

/// The snapshot of a transaction, if it has one.
pub(crate) struct TransactionSnapshot(pub(crate) Option<Snapshot>);

impl rocksdb_snapshot_t {
    /// Returns the snapshot of a transaction, in memory from `malloc`.
    pub(crate) fn lent(of: *mut TransactionSnapshot) -> *const rocksdb_snapshot_t {
        // SAFETY: `malloc` takes any size.
        let handle = unsafe { libc::malloc(size_of::<rocksdb_snapshot_t>()) };
        let handle = handle.cast::<rocksdb_snapshot_t>();
        if !handle.is_null() {
            // SAFETY: it is new, and has the size and alignment of any type.
            unsafe { handle.write(rocksdb_snapshot_t(Of::Transaction(of))) };
        }
        handle
    }

    /// Returns the snapshot to read at, which is none for the newest state. `None` if the
    /// transaction that had it is freed.
    fn snapshot(&self) -> Option<Option<Snapshot>> {
        match &self.0 {
            Of::Itself(snapshot) => Some(Some(snapshot.clone())),
            // SAFETY: the handle of the transaction has it.
            Of::Transaction(of) => is_given(*of).then(|| unsafe { (**of).0.clone() }),
        }
    }
}

/// Makes a snapshot of all column families.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_snapshot(db: *mut rocksdb_t) -> *const rocksdb_snapshot_t {
    quiet(null(), || {
        // SAFETY: the contract of the module.
        let db = unsafe { db.as_ref() };
        let give = |db: &rocksdb_t| give(rocksdb_snapshot_t(Of::Itself(db.db.snapshot())));
        db.map_or(null(), |db| give(db).cast_const())
    })
}

/// Frees a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_release_snapshot(
    _db: *mut rocksdb_t,
    snapshot: *const rocksdb_snapshot_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(snapshot.cast_mut()) };
}

/// Returns the sequence number of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_snapshot_get_sequence_number(
    snapshot: *const rocksdb_snapshot_t,
) -> u64 {
    // SAFETY: the contract of the module.
    let snapshot = unsafe { snapshot.as_ref() }.and_then(|snapshot| snapshot.snapshot()?);
    snapshot.map_or(0, |snapshot| snapshot.sequence_number())
}
