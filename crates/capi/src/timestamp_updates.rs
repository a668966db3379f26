//! Timestamps that are set on a batch after its writes (`…_update_timestamps`).

use std::ffi::{c_char, c_void};

use sateen::ColumnFamilyId;

use crate::abi::{ErrPtr, bytes, guard, missing};
use crate::batch::rocksdb_writebatch_t;
use crate::batch_index::rocksdb_writebatch_wi_t;

/// Returns the length of the timestamps of a column family: 0 for none.
type TimestampBytes = unsafe extern "C" fn(*mut c_void, u32) -> usize;

macro_rules! updates {
    ($($function:ident($batch:ident);)*) => { $(
        /// Sets the timestamp of all keys in the column families that have timestamps.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            batch: *mut $batch,
            timestamp: *const c_char,
            length: usize,
            state: *mut c_void,
            bytes_of: Option<TimestampBytes>,
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                guard(errptr, (), || {
                    let batch = batch.as_mut().ok_or_else(|| missing("the batch"))?;
                    let bytes_of = bytes_of.ok_or_else(|| missing("the function of lengths"))?;
                    // Given with this state.
                    let of = |family: ColumnFamilyId| bytes_of(state, family.0);
                    batch.update_timestamps(bytes(timestamp, length)?, of)
                });
            }
        }
    )* };
}

updates! {
    rocksdb_writebatch_update_timestamps(rocksdb_writebatch_t);
    rocksdb_writebatch_wi_update_timestamps(rocksdb_writebatch_wi_t);
}
