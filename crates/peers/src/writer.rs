//! A RocksDB database that is created, filled in key order and closed.
//!
//! Writes bypass RocksDB's WAL. [`RocksDbWriter::finish`] flushes all column families, which makes
//! them durable.
#![expect(unsafe_code, reason = "calls to C functions")]

use std::path::Path;

use crate::library::{Handle, c_string, call, chars};
use crate::rocksdb::{Common, Writing};
use crate::source::DEFAULT_FAMILY;
use crate::{Error, Inherited, Library, Result};

struct Api {
    common: Common,
    inherited: Inherited,
    writing: Writing,
}

/// A RocksDB database that this program fills.
pub struct RocksDbWriter {
    api: Api,
    /// Null once the database is closed.
    db: Handle,
    options: Handle,
    write_options: Handle,
    batch: Handle,
    /// The column families, in the order of [`RocksDbWriter::family`]. That of the default one is
    /// null: older libraries have no function for its handle.
    families: Vec<Handle>,
    /// The directory as messages name it.
    place: String,
}

impl RocksDbWriter {
    /// Creates a database in `directory`, which must not have one, with the RocksDB of `library`.
    /// `options` (in RocksDB's syntax) are those of the database and of all its column families.
    ///
    /// # Errors
    /// `Usage` if the library does not exist or RocksDB does not understand the options. `Failed`
    /// with RocksDB's message.
    pub fn create(library: &Path, directory: &Path, options: &str) -> Result<RocksDbWriter> {
        let library = Library::open(library)?;
        let api = Api {
            common: Common::load(&library)?,
            inherited: Inherited::load(&library, "RocksDB", "rocksdb_")?,
            writing: Writing::load(&library)?,
        };
        let path = c_string(directory.as_os_str().as_encoded_bytes(), "the directory's name")?;
        let text = c_string(options.as_bytes(), "the options")?;
        let none = std::ptr::null_mut();
        let mut writer = RocksDbWriter {
            api,
            db: none,
            options: none,
            write_options: none,
            batch: none,
            families: Vec::new(),
            place: directory.display().to_string(),
        };
        let RocksDbWriter { api: Api { common, inherited, writing }, .. } = &writer;
        let (new_options, parse) = (common.options_create, common.get_options_from_string);
        // SAFETY: handles are fresh, and texts end in zeros. What was made is freed on drop.
        unsafe {
            let (base, made) = (new_options(), new_options());
            let parsed = call(common.free, |error| parse(base, text.as_ptr(), made, error));
            (common.options_destroy)(base);
            (inherited.options_set_create_if_missing)(made, 1);
            (writing.options_set_error_if_exists)(made, 1);
            let write_options = (inherited.writeoptions_create)();
            (writing.writeoptions_disable_WAL)(write_options, 1);
            let batch = (inherited.writebatch_create)();
            writer.options = made;
            writer.write_options = write_options;
            writer.batch = batch;
            parsed.map_err(|error| {
                Error::Usage(format!("the options {options:?} of the new database: {error}"))
            })?;
            let (open, free) = (writer.api.inherited.open, writer.api.common.free);
            writer.db = call(free, |error| open(made, path.as_ptr(), error))
                .map_err(|error| writer.failed(&error))?;
        }
        Ok(writer)
    }

    /// Creates a column family, or finds the default one. Returns its number for
    /// [`RocksDbWriter::put`].
    ///
    /// # Errors
    /// `Failed` with RocksDB's message; `Usage` if the name contains a zero byte.
    pub fn family(&mut self, name: &[u8]) -> Result<usize> {
        let text = c_string(name, "the name of a column family")?;
        let writing = &self.api.writing;
        let handle = if name == DEFAULT_FAMILY.as_bytes() {
            std::ptr::null_mut()
        } else {
            let create = writing.create_column_family;
            // SAFETY: database and options are open, and the name ends in a zero.
            let made = unsafe {
                call(self.api.common.free, |error| {
                    create(self.db, self.options, text.as_ptr(), error)
                })
            };
            made.map_err(|error| self.failed(&error))?
        };
        self.families.push(handle);
        Ok(self.families.len() - 1)
    }

    /// Puts a key into the batch.
    ///
    /// # Errors
    /// `Usage` if there is no column family of that number.
    pub fn put(&mut self, family: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(&handle) = self.families.get(family) else {
            return Err(Error::Usage(format!("there is no column family number {family}")));
        };
        let (put_cf, put) = (self.api.writing.writebatch_put_cf, self.api.inherited.writebatch_put);
        let (key, key_bytes) = (chars(key), key.len());
        let (value, value_bytes) = (chars(value), value.len());
        // SAFETY: the batch and the column family are open, and RocksDB copies the bytes.
        unsafe {
            if handle.is_null() {
                put(self.batch, key, key_bytes, value, value_bytes);
            } else {
                put_cf(self.batch, handle, key, key_bytes, value, value_bytes);
            }
        }
        Ok(())
    }

    /// Writes the batch and empties it.
    ///
    /// # Errors
    /// `Failed` with RocksDB's message.
    pub fn commit(&mut self) -> Result<()> {
        let (write, clear) = (self.api.inherited.write, self.api.inherited.writebatch_clear);
        // SAFETY: database, options and batch are open.
        unsafe {
            let written = call(self.api.common.free, |error| {
                write(self.db, self.write_options, self.batch, error);
            });
            clear(self.batch);
            written.map_err(|error| self.failed(&error))
        }
    }

    /// Flushes all column families and closes the database. Batches must be committed before.
    ///
    /// # Errors
    /// `Failed` with RocksDB's message.
    pub fn finish(self) -> Result<()> {
        let Api { writing, common, .. } = &self.api;
        // SAFETY: the database and its column families are open; the options are freed here.
        unsafe {
            let wait = (writing.flushoptions_create)();
            (writing.flushoptions_set_wait)(wait, 1);
            let flushed = self.families.iter().try_for_each(|handle| {
                call(common.free, |error| match handle.is_null() {
                    true => (writing.flush)(self.db, wait, error),
                    false => (writing.flush_cf)(self.db, wait, *handle, error),
                })
            });
            (writing.flushoptions_destroy)(wait);
            flushed.map_err(|error| self.failed(&error))
        }
    }

    fn failed(&self, error: &str) -> Error {
        Error::Failed(format!("RocksDB, {}: {error}", self.place))
    }
}

impl Drop for RocksDbWriter {
    fn drop(&mut self) {
        let Api { common, inherited, .. } = &self.api;
        // SAFETY: each handle is freed once, the database after its column families.
        unsafe {
            for handle in self.families.iter().filter(|handle| !handle.is_null()) {
                (common.column_family_handle_destroy)(*handle);
            }
            if !self.db.is_null() {
                (common.close)(self.db);
            }
            (inherited.writebatch_destroy)(self.batch);
            (inherited.writeoptions_destroy)(self.write_options);
            (common.options_destroy)(self.options);
        }
    }
}
