//! Write batches.

use std::ffi::{c_char, c_int, c_void};

use sateen::{ValueKind, WriteBatch};

use crate::abi::{ErrPtr, bytes, free, give, guard, missing, quiet};
use crate::families::rocksdb_column_family_handle_t;

/// A batch, and the first thing that it could not take: told when it is written.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_writebatch_t {
    batch: WriteBatch,
    refused: Option<sateen::Error>,
}

impl rocksdb_writebatch_t {
    /// What is to be written.
    pub(crate) fn checked(&self) -> sateen::Result<&WriteBatch> {
        self.refused.clone().map_or(Ok(&self.batch), Err)
    }
}

/// Makes an empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t {
    give(rocksdb_writebatch_t::default())
}

/// A batch of the bytes of another one's `rocksdb_writebatch_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_create_from(
    data: *const c_char,
    length: usize,
) -> *mut rocksdb_writebatch_t {
    quiet(std::ptr::null_mut(), || {
        // SAFETY: the contract of the module.
        let read = WriteBatch::from_data(unsafe { bytes(data, length) }.to_vec());
        let mut made = rocksdb_writebatch_t::default();
        match read {
            Ok(batch) => made.batch = batch,
            Err(error) => made.refused = Some(error),
        }
        give(made)
    })
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the module.
    unsafe { free(batch) };
}

/// Removes all writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_clear(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the module.
    if let Some(batch) = unsafe { batch.as_mut() } {
        batch.batch.clear();
        batch.refused = None;
    }
}

/// How many writes there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_count(batch: *mut rocksdb_writebatch_t) -> c_int {
    // SAFETY: the contract of the module.
    let count = unsafe { batch.as_ref() }.map_or(0, |batch| batch.batch.count());
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// The writes as bytes; they live until the batch changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_data(
    batch: *mut rocksdb_writebatch_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    let data = unsafe { batch.as_ref() }.map_or(&[][..], |batch| batch.batch.data());
    // SAFETY: the contract of the module.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = data.len();
    }
    data.as_ptr().cast()
}

/// Adds to a batch; what it cannot take is told when it is written.
unsafe fn add(
    batch: *mut rocksdb_writebatch_t,
    act: impl FnOnce(&mut WriteBatch) -> sateen::Result<()>,
) {
    // SAFETY: the contract of the module.
    if let Some(batch) = unsafe { batch.as_mut() }
        && let Err(error) = quiet(Ok(()), || act(&mut batch.batch))
    {
        batch.refused.get_or_insert(error);
    }
}

macro_rules! writes {
    ($(
        $function:ident $of_family:ident ($($argument:ident $length:ident)*)
            $act:ident $act_cf:ident;
    )*) => { $(
        /// Adds it, for the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut rocksdb_writebatch_t,
            $($argument: *const c_char, $length: usize),*
        ) {
            // SAFETY: the contract of the module.
            unsafe { add(batch, |batch| batch.$act($(bytes($argument, $length)),*)) };
        }

        /// Adds it, for a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            batch: *mut rocksdb_writebatch_t,
            family: *mut rocksdb_column_family_handle_t,
            $($argument: *const c_char, $length: usize),*
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                add(batch, |batch| match family.as_ref() {
                    Some(family) => batch.$act_cf(&family.0, $(bytes($argument, $length)),*),
                    None => Err(missing("the column family")),
                });
            }
        }
    )* };
}

writes! {
    rocksdb_writebatch_put rocksdb_writebatch_put_cf
        (key key_length value value_length) put put_cf;
    rocksdb_writebatch_merge rocksdb_writebatch_merge_cf
        (key key_length operand operand_length) merge merge_cf;
    rocksdb_writebatch_delete rocksdb_writebatch_delete_cf (key key_length) delete delete_cf;
    rocksdb_writebatch_singledelete rocksdb_writebatch_singledelete_cf
        (key key_length) single_delete single_delete_cf;
}

/// Calls back for each put and each delete of the default column family, in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate(
    batch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>,
    deleted: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
) {
    // SAFETY: the contract of the module.
    let Some(batch) = (unsafe { batch.as_ref() }) else { return };
    for entry in batch.batch.iter().filter(|entry| entry.column_family.0 == 0) {
        let (key, key_length) = (entry.key.as_ptr().cast(), entry.key.len());
        match entry.kind {
            ValueKind::Put => {
                if let Some(put) = put {
                    let (value, value_length) = (entry.value.as_ptr().cast(), entry.value.len());
                    // SAFETY: given with this state; the bytes live as long as the call.
                    unsafe { put(state, key, key_length, value, value_length) };
                }
            }
            ValueKind::Delete | ValueKind::SingleDelete => {
                if let Some(deleted) = deleted {
                    // SAFETY: as above.
                    unsafe { deleted(state, key, key_length) };
                }
            }
            _ => {}
        }
    }
}

/// Remembers this state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_set_save_point(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the module.
    if let Some(batch) = unsafe { batch.as_mut() } {
        batch.batch.set_save_point();
    }
}

/// Undoes what came after the newest save point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_rollback_to_save_point(
    batch: *mut rocksdb_writebatch_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let batch = batch.as_mut().ok_or_else(|| missing("the batch"))?;
            batch.batch.rollback_to_save_point()
        });
    }
}

/// Forgets the newest save point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_pop_save_point(
    batch: *mut rocksdb_writebatch_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let batch = batch.as_mut().ok_or_else(|| missing("the batch"))?;
            batch.batch.pop_save_point()
        });
    }
}
