//! Batches of pieces, and iteration over the contents of a batch.

use std::ffi::{c_char, c_int, c_void};

use sateen::{BatchEntry, BatchItem, ValueKind, WriteBatch};

use crate::abi::{ErrPtr, byte_strings, bytes, count_of, guard, missing};
use crate::batch::{add, add_to, rocksdb_writebatch_t};
use crate::database::{check_untimed, rocksdb_column_family_handle_t};

type Batch = rocksdb_writebatch_t;
type Family = rocksdb_column_family_handle_t;

/// Returns `count` byte strings joined into one.
pub(crate) unsafe fn joined(
    count: c_int,
    data: *const *const c_char,
    lengths: *const usize,
) -> sateen::Result<Vec<u8>> {
    // SAFETY: the contract of the module.
    Ok(unsafe { byte_strings(count_of(count), data, lengths) }?.concat())
}

/// Defines writes of joined pieces into a batch, with the names of the module that calls it.
macro_rules! of_parts {
    ($($function:ident $of_family:ident ($($count:ident $data:ident $lengths:ident)*)
        $act:ident;)*) => { $(
        /// Adds a write of joined pieces to the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut Batch,
            $($count: c_int, $data: *const *const c_char, $lengths: *const usize),*
        ) {
            // SAFETY: the contract of the module.
            unsafe { add(batch, |batch| batch.$act($(joined($count, $data, $lengths)?),*)) };
        }

        /// Adds a write of joined pieces to a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            batch: *mut Batch,
            family: *mut Family,
            $($count: c_int, $data: *const *const c_char, $lengths: *const usize),*
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                add_to(batch, family, |batch, family| {
                    check_untimed(family)?;
                    batch.to(family).$act($(joined($count, $data, $lengths)?),*)
                });
            }
        }
    )* };
}
pub(crate) use of_parts;

of_parts! {
    rocksdb_writebatch_putv rocksdb_writebatch_putv_cf
        (key_count keys key_lengths value_count values value_lengths) put;
    rocksdb_writebatch_mergev rocksdb_writebatch_mergev_cf
        (key_count keys key_lengths value_count values value_lengths) merge;
    rocksdb_writebatch_deletev rocksdb_writebatch_deletev_cf
        (key_count keys key_lengths) delete;
}

/// Adds a range tombstone to the default column family. Each bound is joined from `count` pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_delete_rangev(
    batch: *mut Batch,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
) {
    // SAFETY: the contract of the module.
    unsafe {
        add(batch, |batch| {
            let begin = joined(count, begins, begin_lengths)?;
            batch.delete_range(begin, joined(count, ends, end_lengths)?)
        });
    }
}

/// Adds a range tombstone to a column family. Each bound is joined from `count` pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_delete_rangev_cf(
    batch: *mut Batch,
    family: *mut Family,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
) {
    // SAFETY: the contract of the module.
    unsafe {
        add_to(batch, family, |batch, family| {
            let begin = joined(count, begins, begin_lengths)?;
            check_untimed(family)?;
            batch.to(family).delete_range(begin, joined(count, ends, end_lengths)?)
        });
    }
}

/// Adds log data: bytes that go to the WAL with the batch and change nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_put_log_data(
    batch: *mut Batch,
    blob: *const c_char,
    length: usize,
) {
    // SAFETY: the contract of the module.
    unsafe { add(batch, |batch| batch.put_log_data(bytes(blob, length)?)) };
}

/// Succeeds, because batches of this library are always consistent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_verify_checksum(batch: *mut Batch, errptr: ErrPtr) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            batch.as_ref().ok_or_else(|| missing("the batch"))?.checked().map(drop)
        });
    }
}

pub(crate) type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
pub(crate) type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
type PutCf = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);
type DeletedCf = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize);
pub(crate) type LogData = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// Calls `act` with each entry, in order, until it returns false, and `log_data` with the log data
/// between them.
unsafe fn each(
    batch: &WriteBatch,
    state: *mut c_void,
    log_data: Option<LogData>,
    mut act: impl FnMut(&BatchEntry<'_>) -> bool,
) {
    batch.items().all(|item| match (item, log_data) {
        (BatchItem::Write(entry), _) => act(&entry),
        (BatchItem::LogData(data), Some(log_data)) => {
            let (data, length) = parts(data);
            // SAFETY: given with this state; the bytes live as long as the call.
            unsafe { log_data(state, data, length) };
            true
        }
        (BatchItem::LogData(_), None) => true,
    });
}

fn parts(of: &[u8]) -> (*const c_char, usize) {
    (of.as_ptr().cast(), of.len())
}

/// Calls back for each put and each delete, in order, up to the first entry of another column
/// family and the first range tombstone. Skips other entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate(
    batch: *mut Batch,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_writebatch_iterate_ld(batch, state, put, deleted, None) };
}

/// Does the same, and calls back for log data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate_ld(
    batch: *mut Batch,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
    log_data: Option<LogData>,
) {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(batch) = batch.as_ref() {
            iterate(&batch.batch, state, put, deleted, log_data);
        }
    }
}

/// Calls back as `rocksdb_writebatch_iterate_ld` does.
pub(crate) unsafe fn iterate(
    batch: &WriteBatch,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
    log_data: Option<LogData>,
) {
    let show = |entry: &BatchEntry<'_>| {
        let ((key, key_length), (value, value_length)) = (parts(entry.key), parts(entry.value));
        match (entry.kind, put, deleted) {
            _ if entry.column_family.0 != 0 => return false,
            (ValueKind::RangeDelete, ..) => return false,
            // SAFETY: given with this state; the bytes live as long as the call.
            (ValueKind::Put, Some(put), _) => unsafe {
                put(state, key, key_length, value, value_length);
            },
            // SAFETY: as above.
            (ValueKind::Delete, _, Some(deleted)) => unsafe {
                deleted(state, key, key_length);
            },
            _ => {}
        }
        true
    };
    // SAFETY: the contract of the module.
    unsafe { each(batch, state, log_data, show) };
}

/// Calls back for each put, delete and merge, in order, with the number of its column family. Stops
/// at the first range tombstone, and at the first single deletion outside of the default family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate_cf(
    batch: *mut Batch,
    state: *mut c_void,
    put: Option<PutCf>,
    deleted: Option<DeletedCf>,
    merged: Option<PutCf>,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_writebatch_iterate_cf_ld(batch, state, put, deleted, merged, None) };
}

/// Does the same, and calls back for log data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate_cf_ld(
    batch: *mut Batch,
    state: *mut c_void,
    put: Option<PutCf>,
    deleted: Option<DeletedCf>,
    merged: Option<PutCf>,
    log_data: Option<LogData>,
) {
    let show = |entry: &BatchEntry<'_>| {
        let family = entry.column_family.0;
        let ((key, key_length), (value, value_length)) = (parts(entry.key), parts(entry.value));
        let of_value = match entry.kind {
            ValueKind::Put => put,
            ValueKind::Merge => merged,
            _ => None,
        };
        match (entry.kind, of_value, deleted) {
            (ValueKind::RangeDelete, ..) => return false,
            (ValueKind::SingleDelete, ..) if family != 0 => return false,
            // SAFETY: given with this state; the bytes live as long as the call.
            (_, Some(act), _) => unsafe {
                act(state, family, key, key_length, value, value_length);
            },
            // SAFETY: as above.
            (ValueKind::Delete, _, Some(deleted)) => unsafe {
                deleted(state, family, key, key_length);
            },
            _ => {}
        }
        true
    };
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(batch) = batch.as_ref() {
            each(&batch.batch, state, log_data, show);
        }
    }
}
