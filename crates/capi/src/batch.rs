//! Write batches.

use std::ffi::{c_char, c_int};

use sateen::{ColumnFamily, ColumnFamilyId, Db, WriteBatch};

use crate::abi::{ErrPtr, bytes, free, give, guard, lend, missing, quiet};
use crate::database::{Home, check_untimed, rocksdb_column_family_handle_t, roomy};

type Batch = rocksdb_writebatch_t;
type Family = rocksdb_column_family_handle_t;

/// A batch, and the first error of adding to it, which is reported when it is written.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_writebatch_t {
    pub(crate) batch: WriteBatch,
    /// The sequence number of its first write, if the batch came from a WAL or from bytes that
    /// contain it; otherwise 0.
    first_seqno: u64,
    refused: Option<sateen::Error>,
    /// True if keys have room for a timestamp that was not set.
    lacks_timestamps: bool,
    /// The database that it is for, if that is known.
    home: Home,
    /// The bytes that the last `rocksdb_writebatch_data` returned to C.
    shown: Vec<u8>,
}

/// A batch has no limit for values: the database that it is written to has one.
impl Default for rocksdb_writebatch_t {
    fn default() -> rocksdb_writebatch_t {
        rocksdb_writebatch_t::of(WriteBatch::with_value_bytes_max(usize::MAX), 0)
    }
}

impl rocksdb_writebatch_t {
    /// Makes a batch of these writes, the first of which has the sequence number `first_seqno`.
    pub(crate) fn of(batch: WriteBatch, first_seqno: u64) -> rocksdb_writebatch_t {
        rocksdb_writebatch_t {
            batch,
            first_seqno,
            refused: None,
            lacks_timestamps: false,
            home: Home::default(),
            shown: Vec::new(),
        }
    }

    /// Returns the writes, or the first error of adding one.
    pub(crate) fn checked(&self) -> sateen::Result<&WriteBatch> {
        self.refused.clone().map_or(Ok(&self.batch), Err)
    }

    /// Returns the writes for `db`. Fails if they are for another database, as well, or if a
    /// timestamp is not set.
    pub(crate) fn complete_for(&self, db: &Db) -> sateen::Result<&WriteBatch> {
        self.home.check(db)?;
        if self.lacks_timestamps { Err(lacks_timestamps()) } else { self.checked() }
    }

    /// Sets the timestamps: see [`WriteBatch::update_timestamps`].
    pub(crate) fn update_timestamps(
        &mut self,
        timestamp: &[u8],
        bytes_of: impl FnMut(ColumnFamilyId) -> usize,
    ) -> sateen::Result<()> {
        self.checked()?;
        self.batch.update_timestamps(timestamp, bytes_of)?;
        self.lacks_timestamps = false;
        Ok(())
    }
}

/// Makes an empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t {
    give(rocksdb_writebatch_t::default())
}

/// Makes an empty batch. The parameters have no effect.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create_with_params(
    _reserved_bytes: usize,
    _max_bytes: usize,
    _protection_bytes_per_key: usize,
    _timestamp_size: usize,
) -> *mut rocksdb_writebatch_t {
    give(rocksdb_writebatch_t::default())
}

/// Makes a batch of the bytes from another one's `rocksdb_writebatch_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_create_from(
    data: *const c_char,
    length: usize,
) -> *mut rocksdb_writebatch_t {
    quiet(std::ptr::null_mut(), || {
        // SAFETY: the contract of the module.
        let read = unsafe { bytes(data, length) }.and_then(WriteBatch::from_rocksdb);
        let mut made = rocksdb_writebatch_t::default();
        match read {
            Ok((batch, first_seqno)) => made = rocksdb_writebatch_t::of(batch, first_seqno),
            Err(error) => made.refused = Some(error),
        }
        give(made)
    })
}

/// Returns the batch that bytes from `rocksdb_writebatch_data` stand for.
pub(crate) fn of_bytes(bytes: &[u8]) -> sateen::Result<WriteBatch> {
    WriteBatch::from_rocksdb(bytes).map(|(batch, _)| batch)
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the module.
    unsafe { free(batch) };
}

/// Removes all writes and log data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_clear(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the module.
    if let Some(batch) = unsafe { batch.as_mut() } {
        batch.batch.clear();
        (batch.first_seqno, batch.refused) = (0, None);
        (batch.lacks_timestamps, batch.home) = (false, Home::default());
    }
}

/// Returns the number of writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_count(batch: *mut rocksdb_writebatch_t) -> c_int {
    // SAFETY: the contract of the module.
    let count = unsafe { batch.as_ref() }.map_or(0, |batch| batch.batch.count());
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// Returns the writes as bytes in RocksDB's form. They are valid until the next call or until the
/// batch is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_data(
    batch: *mut rocksdb_writebatch_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    let data = unsafe { batch.as_mut() }.map_or(&[][..], |batch| {
        quiet((), || batch.shown = batch.batch.to_rocksdb(batch.first_seqno));
        &batch.shown
    });
    // SAFETY: the contract of the module.
    unsafe { lend(Some(data), length) }
}

/// Adds to a batch. An error is reported when the batch is written.
pub(crate) unsafe fn add(
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

/// Returns the error of writing a batch whose keys lack timestamps.
pub(crate) fn lacks_timestamps() -> sateen::Error {
    let text = "keys of the batch have no timestamp: set it with …_update_timestamps";
    sateen::Error::InvalidArgument(text.into())
}

/// Notes that a batch lacks timestamps, if it has keys of `family` that have them.
unsafe fn note(batch: *mut Batch, family: *mut Family) {
    // SAFETY: the contract of the module.
    if let (Some(batch), Some(family)) = unsafe { (batch.as_mut(), family.as_ref()) } {
        batch.lacks_timestamps |= family.0.comparator().timestamp_bytes() > 0;
    }
}

/// Adds to a batch a write to a column family, whose database the batch is for from then on.
pub(crate) unsafe fn add_to(
    batch: *mut rocksdb_writebatch_t,
    family: *mut Family,
    act: impl FnOnce(&mut WriteBatch, &ColumnFamily) -> sateen::Result<()>,
) {
    // SAFETY: the contract of the module.
    let (batch, family) = unsafe { (batch.as_mut(), family.as_ref()) };
    let Some(batch) = batch else { return };
    let added = quiet(Ok(()), || {
        let family = family.ok_or_else(|| missing("the column family"))?;
        batch.home.note(&family.0)?;
        act(&mut batch.batch, &family.0)
    });
    if let Err(error) = added {
        batch.refused.get_or_insert(error);
    }
}

/// Defines writes into a batch that may get their timestamp later. `Batch`, `Family`, `add`,
/// `add_to`, `note`, `bytes` and `roomy` are those of the module that calls it.
macro_rules! point_writes {
    ($(
        $function:ident $of_family:ident ($($value:ident $value_length:ident)?) $act:ident;
    )*) => { $(
        /// Adds a write to the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut Batch,
            key: *const c_char,
            key_length: usize,
            $($value: *const c_char, $value_length: usize,)?
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                add(batch, |batch| {
                    batch.$act(bytes(key, key_length)? $(, bytes($value, $value_length)?)?)
                });
            }
        }

        /// Adds a write to a column family. If its keys have timestamps, that of the key is set by
        /// `…_update_timestamps`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            batch: *mut Batch,
            family: *mut Family,
            key: *const c_char,
            key_length: usize,
            $($value: *const c_char, $value_length: usize,)?
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                note(batch, family);
                add_to(batch, family, |batch, family| {
                    let key = roomy(family, bytes(key, key_length)?);
                    batch.to(family).$act(key $(, bytes($value, $value_length)?)?)
                });
            }
        }
    )* };
}
pub(crate) use point_writes;

/// Defines other writes into a batch. `Batch`, `Family`, `add`, `add_to`, `bytes` and
/// `check_untimed` are those of the module that calls it.
macro_rules! writes {
    ($(
        $function:ident $of_family:ident ($($argument:ident $length:ident)*)
            $act:ident;
    )*) => { $(
        /// Adds a write to the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut Batch,
            $($argument: *const c_char, $length: usize),*
        ) {
            // SAFETY: the contract of the module.
            unsafe { add(batch, |batch| batch.$act($(bytes($argument, $length)?),*)) };
        }

        /// Adds a write to a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            batch: *mut Batch,
            family: *mut Family,
            $($argument: *const c_char, $length: usize),*
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                add_to(batch, family, |batch, family| {
                    check_untimed(family)?;
                    batch.to(family).$act($(bytes($argument, $length)?),*)
                });
            }
        }
    )* };
}
pub(crate) use writes;

point_writes! {
    rocksdb_writebatch_put rocksdb_writebatch_put_cf (value value_length) put;
    rocksdb_writebatch_delete rocksdb_writebatch_delete_cf () delete;
    rocksdb_writebatch_singledelete rocksdb_writebatch_singledelete_cf () single_delete;
}

writes! {
    rocksdb_writebatch_merge rocksdb_writebatch_merge_cf
        (key key_length operand operand_length) merge;
    rocksdb_writebatch_delete_range rocksdb_writebatch_delete_range_cf
        (begin begin_length end end_length) delete_range;
}

/// Sets a save point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_set_save_point(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the module.
    if let Some(batch) = unsafe { batch.as_mut() } {
        batch.batch.set_save_point();
    }
}

/// Removes the writes after the newest save point.
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

/// Removes the newest save point and keeps the writes.
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
