//! The handles of databases and column families.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sateen::{ColumnFamily, Db, Error};

use crate::abi::{give, missing};
use crate::counters::Counters;
use crate::handles::closed_database;
use crate::options::{SMALLEST_VALUE, rocksdb_options_t};

/// The name under which options keep whether they make checksums of files.
pub(crate) const FILE_CHECKSUMS: &str = "file_checksum_gen_factory";

/// The length from which on values are in value files, for each column family for which it was set.
/// RocksDB keeps it while there are no value files; Sateen's option does not.
#[derive(Clone, Default)]
pub(crate) struct SmallestValues(Arc<Mutex<BTreeMap<String, u64>>>);

impl SmallestValues {
    /// Notes what `options` of a column family say. Null says nothing.
    pub(crate) unsafe fn note(&self, family: &str, options: *const rocksdb_options_t) {
        // SAFETY: the contract of the module.
        let options = unsafe { options.as_ref() };
        if let Some(bytes) = options.and_then(|options| options.kept(SMALLEST_VALUE)) {
            self.families().insert(family.to_owned(), bytes);
        }
    }

    /// Changes options of a column family, and with them its length unless that fails.
    pub(crate) fn change(
        &self,
        family: &str,
        change: impl FnOnce(&mut Option<u64>) -> sateen::Result<()>,
    ) -> sateen::Result<()> {
        let mut smallest = self.families().get(family).copied();
        change(&mut smallest)?;
        self.families().extend(smallest.map(|bytes| (family.to_owned(), bytes)));
        Ok(())
    }

    /// Adds what another list has.
    pub(crate) fn add(&self, other: &SmallestValues) {
        let others = other.families().clone();
        self.families().extend(others);
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open database. Iterators, snapshots and handles keep alive what they need of it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_t {
    pub(crate) db: Db,
    pub(crate) counters: Option<Counters>,
    /// True if its options make checksums of files.
    pub(crate) file_checksums: bool,
    /// All handles of the database have the same.
    pub(crate) smallest_values: SmallestValues,
}

impl rocksdb_t {
    /// Makes the handle of a database that was opened with `options` and counts there.
    pub(crate) unsafe fn opened(db: Db, options: *const rocksdb_options_t) -> *mut rocksdb_t {
        // SAFETY: the contract of the module.
        give(unsafe { rocksdb_t::of_opened(db, options) })
    }

    /// Does the same for a handle that is part of another one.
    pub(crate) unsafe fn of_opened(db: Db, given: *const rocksdb_options_t) -> rocksdb_t {
        // SAFETY: the contract of the module.
        let options = unsafe { given.as_ref() };
        let counters = options.and_then(|options| options.counters().cloned());
        if let Some(counters) = &counters {
            counters.opened(&db);
        }
        let made = options.and_then(|options| options.kept::<u8>(FILE_CHECKSUMS));
        let (file_checksums, smallest_values) = (made.unwrap_or(0) != 0, SmallestValues::default());
        // SAFETY: as above.
        unsafe { smallest_values.note(sateen::DEFAULT_COLUMN_FAMILY, given) };
        rocksdb_t { db, counters, file_checksums, smallest_values }
    }

    /// Returns a second handle of the same database, which does not count.
    pub(crate) fn another(&self) -> rocksdb_t {
        let (db, smallest_values) = (self.db.clone(), self.smallest_values.clone());
        rocksdb_t { db, counters: None, file_checksums: self.file_checksums, smallest_values }
    }

    /// Makes a handle for the time of a callback.
    pub(crate) fn borrowed(db: Db) -> rocksdb_t {
        let smallest_values = SmallestValues::default();
        rocksdb_t { db, counters: None, file_checksums: false, smallest_values }
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

/// Returns the smallest sizes of values in value files that were set for a database. There is none
/// for null.
pub(crate) unsafe fn smallest_values(db: *mut rocksdb_t) -> SmallestValues {
    // SAFETY: the contract of the module.
    unsafe { db.as_ref() }.map(|db| db.smallest_values.clone()).unwrap_or_default()
}

/// What functions without a column family pass for the default one. It is compared, and never
/// read. No handle has this address.
pub(crate) const DEFAULT: *mut rocksdb_column_family_handle_t = std::ptr::dangling_mut();

/// Returns the column family of a handle, which must be one of `db`.
pub(crate) unsafe fn of(
    db: &Db,
    family: *mut rocksdb_column_family_handle_t,
) -> sateen::Result<ColumnFamily> {
    if family == DEFAULT {
        return Ok(db.default_column_family());
    }
    // SAFETY: the contract of the module.
    let family = unsafe { family.as_ref() }.ok_or_else(|| missing("the column family"))?;
    if !family.0.belongs_to(db) {
        return Err(foreign(db, &family.0));
    }
    Ok(family.0.clone())
}

/// Returns the error for a column family of another database than `db`.
#[cold]
fn foreign(db: &Db, family: &ColumnFamily) -> Error {
    let (name, of) = (family.name(), family.db().path().display());
    not_closed(db).err().unwrap_or_else(|| {
        Error::InvalidArgument(format!(
            "the column family {name} belongs to another database, {of}"
        ))
    })
}

/// Fails if `db` is what the handle of a closed database has.
fn not_closed(db: &Db) -> sateen::Result<()> {
    let closed = closed_database();
    let is_it = closed.is_some_and(|closed| db.default_column_family().belongs_to(&closed));
    if is_it { Err(Error::Closed) } else { Ok(()) }
}

/// The database whose column families the writes of a batch are for, once one of them had a handle.
#[derive(Default)]
pub(crate) struct Home(Option<ColumnFamily>);

impl Home {
    /// Notes a write to `family`. Fails if an earlier one was to another database.
    pub(crate) fn note(&mut self, family: &ColumnFamily) -> sateen::Result<()> {
        match &self.0 {
            Some(_) => self.check(family.db()),
            None => {
                self.0 = Some(family.clone());
                Ok(())
            }
        }
    }

    /// Fails if the writes are for another database than `db`. One with the identity of theirs is
    /// the same, opened again, or a copy of it.
    pub(crate) fn check(&self, db: &Db) -> sateen::Result<()> {
        let Some(family) = self.0.as_ref().filter(|family| !family.belongs_to(db)) else {
            return Ok(());
        };
        not_closed(db)?;
        if family.db().identity() == db.identity() {
            return Ok(());
        }
        let (name, of) = (family.name(), family.db().path().display());
        Err(Error::InvalidArgument(format!(
            "the batch has a write to the column family {name} of another database, {of}"
        )))
    }
}

/// Returns a key with room for its timestamp, which comes later, if the column family has them.
pub(crate) fn roomy<'k>(family: &ColumnFamily, key: &'k [u8]) -> Cow<'k, [u8]> {
    match family.comparator().timestamp_bytes() {
        0 => Cow::Borrowed(key),
        bytes => Cow::Owned([key, &vec![0; bytes]].concat()),
    }
}

/// Fails if the keys of a column family have timestamps, which the caller does not give.
pub(crate) fn check_untimed(family: &ColumnFamily) -> sateen::Result<()> {
    if family.comparator().timestamp_bytes() == 0 {
        return Ok(());
    }
    let name = family.name();
    let text = format!("the keys of the column family {name} have timestamps, and this has none");
    Err(Error::InvalidArgument(text))
}
