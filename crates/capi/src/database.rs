//! The handles of databases and column families.

use std::borrow::Cow;

use sateen::{ColumnFamily, Db};

use crate::abi::{give, missing};
use crate::counters::Counters;
use crate::options::rocksdb_options_t;

/// The name under which options keep whether they make checksums of files.
pub(crate) const FILE_CHECKSUMS: &str = "file_checksum_gen_factory";

/// An open database. Iterators, snapshots and handles keep alive what they need of it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_t {
    pub(crate) db: Db,
    pub(crate) counters: Option<Counters>,
    /// True if its options make checksums of files.
    pub(crate) file_checksums: bool,
}

impl rocksdb_t {
    /// Makes the handle of a database that was opened with `options` and counts there.
    pub(crate) unsafe fn opened(db: Db, options: *const rocksdb_options_t) -> *mut rocksdb_t {
        // SAFETY: the contract of the module.
        give(unsafe { rocksdb_t::of_opened(db, options) })
    }

    /// Does the same for a handle that is part of another one.
    pub(crate) unsafe fn of_opened(db: Db, options: *const rocksdb_options_t) -> rocksdb_t {
        // SAFETY: the contract of the module.
        let options = unsafe { options.as_ref() };
        let counters = options.and_then(|options| options.counters().cloned());
        if let Some(counters) = &counters {
            counters.opened(&db);
        }
        let made = options.and_then(|options| options.kept::<u8>(FILE_CHECKSUMS));
        rocksdb_t { db, counters, file_checksums: made.unwrap_or(0) != 0 }
    }

    /// Returns a second handle of the same database, which does not count.
    pub(crate) fn another(&self) -> rocksdb_t {
        rocksdb_t { db: self.db.clone(), counters: None, file_checksums: self.file_checksums }
    }

    /// Makes a handle for the time of a callback.
    pub(crate) fn borrowed(db: Db) -> rocksdb_t {
        rocksdb_t { db, counters: None, file_checksums: false }
    }
}

/// A handle of a column family.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_column_family_handle_t(pub(crate) ColumnFamily);

/// Returns the database of a handle.
pub(crate) unsafe fn the<'a>(db: *mut rocksdb_t) -> sateen::Result<&'a Db> {
    // SAFETY: the contract of the module.
    Ok(&unsafe { db.as_ref() }.ok_or_else(|| missing("the database"))?.db)
}

/// Returns the column family of a handle, or the default one for a null handle.
pub(crate) unsafe fn of(
    db: &Db,
    family: *mut rocksdb_column_family_handle_t,
) -> sateen::ColumnFamily {
    // SAFETY: the contract of the module.
    unsafe { family.as_ref() }.map_or_else(|| db.default_column_family(), |family| family.0.clone())
}

/// Returns the column family of a write without a timestamp. Fails if it is missing, or if its keys
/// have timestamps.
pub(crate) unsafe fn untimed<'a>(
    family: *mut rocksdb_column_family_handle_t,
) -> sateen::Result<&'a ColumnFamily> {
    // SAFETY: the contract of the module.
    let family = unsafe { family.as_ref() }.ok_or_else(|| missing("the column family"))?;
    check_untimed(&family.0).map(|()| &family.0)
}

/// Returns the column family of a write whose timestamp comes later, and the key with room for it.
/// Fails if the column family is missing.
pub(crate) unsafe fn roomy<'a, 'k>(
    family: *mut rocksdb_column_family_handle_t,
    key: &'k [u8],
) -> sateen::Result<(&'a ColumnFamily, Cow<'k, [u8]>)> {
    // SAFETY: the contract of the module.
    let family = &unsafe { family.as_ref() }.ok_or_else(|| missing("the column family"))?.0;
    let key = match family.comparator().timestamp_bytes() {
        0 => Cow::Borrowed(key),
        bytes => Cow::Owned([key, &vec![0; bytes]].concat()),
    };
    Ok((family, key))
}

/// Fails if the keys of a column family have timestamps, which the caller does not give.
pub(crate) fn check_untimed(family: &ColumnFamily) -> sateen::Result<()> {
    if family.comparator().timestamp_bytes() == 0 {
        return Ok(());
    }
    let name = family.name();
    let text = format!("the keys of the column family {name} have timestamps, and this has none");
    Err(sateen::Error::InvalidArgument(text))
}
