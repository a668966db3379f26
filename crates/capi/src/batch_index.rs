//! Batches with an index, whose writes can be read before they are written. `batch_index_reads` has
//! the reads.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;

use sateen::{ColumnFamily, ColumnFamilyId, Db, Error, WriteBatchWithIndex};

use crate::abi::{ErrPtr, bytes, free, give, guard, lend, missing, quiet};
use crate::batch::{lacks_timestamps, of_bytes, point_writes, writes};
use crate::batch_parts::{Deleted, Put, iterate, joined, of_parts};
use crate::calls::rocksdb_writeoptions_t;
use crate::comparator::rocksdb_comparator_t;
use crate::database::{Home, check_untimed, rocksdb_column_family_handle_t, rocksdb_t, roomy, the};
use crate::db::write_options;
use crate::handles::is_given;
use crate::transactions::rocksdb_transaction_t;

type Batch = rocksdb_writebatch_wi_t;
type Family = rocksdb_column_family_handle_t;

/// A batch with an index: one of its own, or that of a transaction. The latter is in memory from
/// `malloc`, because C frees it, and owns nothing.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_writebatch_wi_t(Of);

enum Of {
    Itself(Box<Own>),
    Transaction(*mut rocksdb_transaction_t),
}

#[derive(Default)]
struct Own {
    batch: WriteBatchWithIndex,
    /// The first error of adding to it, which is reported when it is written or read.
    refused: Option<Error>,
    /// True if keys have room for a timestamp that was not set.
    lacks_timestamps: bool,
    /// The database that it is for, if that is known.
    home: Home,
    /// The bytes that the last `rocksdb_writebatch_wi_data` returned to C.
    shown: Vec<u8>,
}

impl rocksdb_writebatch_wi_t {
    /// Returns the batch of a transaction, in memory from `malloc`.
    pub(crate) fn lent(transaction: *mut rocksdb_transaction_t) -> *mut Batch {
        // SAFETY: `malloc` takes any size.
        let handle = unsafe { libc::malloc(size_of::<Batch>()) }.cast::<Batch>();
        if !handle.is_null() {
            // SAFETY: it is new, and has the size and alignment of any type.
            unsafe { handle.write(rocksdb_writebatch_wi_t(Of::Transaction(transaction))) };
        }
        handle
    }

    fn own(batch: WriteBatchWithIndex, refused: Option<Error>) -> *mut Batch {
        give(rocksdb_writebatch_wi_t(Of::Itself(Box::new(Own {
            batch,
            refused,
            ..Own::default()
        }))))
    }

    /// Returns the transaction that has the batch.
    fn transaction<'a>(
        of: *mut rocksdb_transaction_t,
    ) -> sateen::Result<&'a mut rocksdb_transaction_t> {
        if !is_given(of) {
            let text = "the transaction of this batch is freed";
            return Err(Error::InvalidArgument(text.into()));
        }
        // SAFETY: C has it as a transaction.
        unsafe { of.as_mut() }.ok_or_else(|| missing("the transaction"))
    }

    /// Returns the batch, or the first error of adding to it.
    pub(crate) fn checked(&self) -> sateen::Result<&WriteBatchWithIndex> {
        match &self.0 {
            Of::Itself(own) => own.refused.clone().map_or(Ok(&own.batch), Err),
            Of::Transaction(of) => Ok(Batch::transaction(*of)?.inner.batch()),
        }
    }

    /// Returns the batch for `db`. Fails if its writes are for another database, as well.
    pub(crate) fn checked_for(&self, db: &Db) -> sateen::Result<&WriteBatchWithIndex> {
        if let Of::Itself(own) = &self.0 {
            own.home.check(db)?;
        }
        self.checked()
    }

    /// Does the same for writes that are about to be done: all timestamps must be set.
    fn complete_for(&self, db: &Db) -> sateen::Result<&WriteBatchWithIndex> {
        match &self.0 {
            Of::Itself(own) if own.lacks_timestamps => Err(lacks_timestamps()),
            _ => self.checked_for(db),
        }
    }

    /// Sets the timestamps: see [`WriteBatchWithIndex::update_timestamps`].
    pub(crate) fn update_timestamps(
        &mut self,
        timestamp: &[u8],
        bytes_of: impl FnMut(ColumnFamilyId) -> usize,
    ) -> sateen::Result<()> {
        self.checked()?;
        let Of::Itself(own) = &mut self.0 else {
            let text = "rocksdb_transaction_set_commit_timestamp does this for a transaction";
            return Err(Error::InvalidArgument(text.into()));
        };
        own.batch.update_timestamps(timestamp, bytes_of)?;
        own.lacks_timestamps = false;
        Ok(())
    }
}

/// Makes an empty batch. The size is a hint without effect. All writes are kept and the newest one
/// of a key counts, whatever `overwrite_keys` says.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create(
    _reserved_bytes: usize,
    _overwrite_keys: c_uchar,
) -> *mut Batch {
    Batch::own(WriteBatchWithIndex::new(), None)
}

/// Makes an empty batch whose default column family has this comparator; null for bytewise order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_with_params(
    comparator: *mut rocksdb_comparator_t,
    _reserved_bytes: usize,
    _overwrite_key: c_uchar,
    _max_bytes: usize,
    _protection_bytes_per_key: usize,
) -> *mut Batch {
    // SAFETY: the contract of the crate.
    let batch = match unsafe { comparator.as_ref() } {
        Some(by) => WriteBatchWithIndex::with_comparator(by.order()),
        None => WriteBatchWithIndex::new(),
    };
    Batch::own(batch, None)
}

/// Makes a batch of the bytes from another one. The keys of all column families are compared
/// bytewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_from(
    data: *const c_char,
    length: usize,
) -> *mut Batch {
    quiet(null_mut(), || {
        // SAFETY: the contract of the crate.
        let indexed = unsafe { bytes(data, length) }.and_then(of_bytes);
        let indexed = indexed.and_then(|batch| WriteBatchWithIndex::of_bytewise(&batch));
        match indexed {
            Ok(batch) => Batch::own(batch, None),
            Err(error) => Batch::own(WriteBatchWithIndex::new(), Some(error)),
        }
    })
}

/// Frees a batch. Does nothing for that of a transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_destroy(batch: *mut Batch) {
    // SAFETY: the contract of the crate.
    unsafe { free(batch) };
}

/// Removes all writes and log data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_clear(batch: *mut Batch) {
    // SAFETY: the contract of the crate.
    unsafe {
        add(batch, |batch| {
            batch.clear();
            Ok(())
        });
        if let Some(rocksdb_writebatch_wi_t(Of::Itself(own))) = batch.as_mut() {
            (own.refused, own.lacks_timestamps, own.home) = (None, false, Home::default());
        }
    }
}

/// Returns the number of writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_count(batch: *mut Batch) -> c_int {
    // SAFETY: the contract of the crate.
    let batch = unsafe { batch.as_ref() }.map(rocksdb_writebatch_wi_t::checked);
    let count = batch.and_then(Result::ok).map_or(0, WriteBatchWithIndex::count);
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// Returns the writes as bytes in RocksDB's form. They are valid until the next call, or until the
/// batch or its transaction is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_data(
    batch: *mut Batch,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    let shown = match unsafe { batch.as_mut() }.map(|batch| &mut batch.0) {
        Some(Of::Itself(own)) => {
            quiet((), || own.shown = own.batch.batch().to_rocksdb(0));
            own.shown.as_slice()
        }
        Some(Of::Transaction(of)) => match Batch::transaction(*of) {
            Ok(of) => {
                quiet((), || of.shown = of.inner.batch().batch().to_rocksdb(0));
                of.shown.as_slice()
            }
            Err(_) => &[],
        },
        None => &[],
    };
    // SAFETY: the contract of the crate.
    unsafe { lend(Some(shown), length) }
}

/// Adds to a batch. An error is reported when the batch is used, or its transaction committed.
unsafe fn add(batch: *mut Batch, act: impl FnOnce(&mut WriteBatchWithIndex) -> sateen::Result<()>) {
    // SAFETY: the contract of the crate.
    match unsafe { batch.as_mut() }.map(|batch| &mut batch.0) {
        Some(Of::Itself(own)) => {
            if let Err(error) = quiet(Ok(()), || act(&mut own.batch)) {
                own.refused.get_or_insert(error);
            }
        }
        Some(Of::Transaction(of)) => {
            if let Ok(of) = Batch::transaction(*of) {
                let text = "the batch of a transaction is changed by the functions of the \
                            transaction alone";
                of.spoil(Error::InvalidArgument(text.into()));
            }
        }
        None => {}
    }
}

/// Notes that a batch lacks timestamps, if it has keys of `family` that have them.
unsafe fn note(batch: *mut Batch, family: *mut Family) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(rocksdb_writebatch_wi_t(Of::Itself(own))) = batch.as_mut()
            && let Some(family) = family.as_ref()
        {
            own.lacks_timestamps |= family.0.comparator().timestamp_bytes() > 0;
        }
    }
}

/// Adds a write to a column family, whose database the batch is for from then on.
unsafe fn add_to(
    batch: *mut Batch,
    family: *mut Family,
    act: impl FnOnce(&mut WriteBatchWithIndex, &ColumnFamily) -> sateen::Result<()>,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let family = family.as_ref().ok_or_else(|| missing("the column family"));
        if let Some(rocksdb_writebatch_wi_t(Of::Itself(own))) = batch.as_mut()
            && let Ok(family) = &family
            && let Err(error) = quiet(Ok(()), || own.home.note(&family.0))
        {
            own.refused.get_or_insert(error);
            return;
        }
        add(batch, |batch| act(batch, &family?.0));
    }
}

point_writes! {
    rocksdb_writebatch_wi_put rocksdb_writebatch_wi_put_cf (value value_length) put;
    rocksdb_writebatch_wi_delete rocksdb_writebatch_wi_delete_cf () delete;
    rocksdb_writebatch_wi_singledelete rocksdb_writebatch_wi_singledelete_cf () single_delete;
}

writes! {
    rocksdb_writebatch_wi_merge rocksdb_writebatch_wi_merge_cf
        (key key_length operand operand_length) merge;
    rocksdb_writebatch_wi_delete_range rocksdb_writebatch_wi_delete_range_cf
        (begin begin_length end end_length) delete_range;
}

of_parts! {
    rocksdb_writebatch_wi_putv rocksdb_writebatch_wi_putv_cf
        (key_count keys key_lengths value_count values value_lengths) put;
    rocksdb_writebatch_wi_mergev rocksdb_writebatch_wi_mergev_cf
        (key_count keys key_lengths value_count values value_lengths) merge;
    rocksdb_writebatch_wi_deletev rocksdb_writebatch_wi_deletev_cf
        (key_count keys key_lengths) delete;
}

/// Adds a range tombstone to the default column family. Each bound is joined from `count` pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_delete_rangev(
    batch: *mut Batch,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        add(batch, |batch| {
            let (begin, end) =
                (joined(count, begins, begin_lengths)?, joined(count, ends, end_lengths)?);
            batch.delete_range(begin, end)
        });
    }
}

/// Adds a range tombstone to a column family. Each bound is joined from `count` pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_delete_rangev_cf(
    batch: *mut Batch,
    family: *mut Family,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        add_to(batch, family, |batch, family| {
            let (begin, end) =
                (joined(count, begins, begin_lengths)?, joined(count, ends, end_lengths)?);
            check_untimed(family)?;
            batch.to(family).delete_range(begin, end)
        });
    }
}

/// Adds log data: bytes that go to the WAL with the batch and change nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_put_log_data(
    batch: *mut Batch,
    blob: *const c_char,
    length: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe { add(batch, |batch| batch.put_log_data(bytes(blob, length)?)) };
}

/// Calls back for each put and each delete, as `rocksdb_writebatch_iterate` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_iterate(
    batch: *mut Batch,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(Ok(batch)) = batch.as_ref().map(rocksdb_writebatch_wi_t::checked) {
            iterate(batch.batch(), state, put, deleted, None);
        }
    }
}

/// Sets a save point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_set_save_point(batch: *mut Batch) {
    // SAFETY: the contract of the crate.
    unsafe {
        add(batch, |batch| {
            batch.set_save_point();
            Ok(())
        });
    }
}

/// Removes the writes after the newest save point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_rollback_to_save_point(
    batch: *mut Batch,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || match batch.as_mut().map(|batch| &mut batch.0) {
            Some(Of::Itself(own)) => own.batch.rollback_to_save_point(),
            Some(Of::Transaction(_)) => Err(Error::InvalidArgument(
                "rocksdb_transaction_rollback_to_savepoint does this for a transaction".into(),
            )),
            None => Err(missing("the batch")),
        });
    }
}

/// Applies a batch atomically.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_writebatch_wi(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut Batch,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?;
            let db = the(db)?;
            db.write_timestamped(batch.complete_for(db)?.batch(), &write_options(options)?)
        });
    }
}

/// Returns the batch of the transaction, to be freed by `rocksdb_free`. It can be read until the
/// transaction is freed, and not be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_writebatch_wi(
    transaction: *mut rocksdb_transaction_t,
) -> *mut rocksdb_writebatch_wi_t {
    if transaction.is_null() { null_mut() } else { rocksdb_writebatch_wi_t::lent(transaction) }
}

/// Does all writes of a batch with an index in a transaction, or none of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_rebuild_from_writebatch_wi(
    transaction: *mut rocksdb_transaction_t,
    batch: *mut rocksdb_writebatch_wi_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            // A copy, made before, because the batch may be that of this transaction.
            let of = transaction.as_ref().ok_or_else(|| missing("the transaction"))?;
            let db = of.db().clone();
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?;
            let batch = batch.complete_for(&db)?.batch().clone();
            let transaction = transaction.as_mut().ok_or_else(|| missing("the transaction"))?;
            transaction.check()?;
            transaction.inner.rebuild_from(&batch)
        });
    }
}
