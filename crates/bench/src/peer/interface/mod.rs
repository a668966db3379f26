//! Stores whose libraries are made for the benchmark, with the functions of `peers/sateen_peer.h`.
//!
//! 1. [`about`] asks a library for its name and for the settings that it has.
//! 2. [`About`] refuses by name what the user asks for and the store does not have (`settings`).
//! 3. [`open`] opens the database with the remaining settings, as a text.
#![expect(unsafe_code, reason = "calls to C functions")]

mod settings;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;
use std::path::Path;

use sateen_peers::interface::{Api, Change, Entry, Figures, UNKNOWN};
use sateen_peers::{Handle, Library, bytes, chars};

pub(crate) use settings::About;

use super::{absolute, c_string, hooks, load, of_peer};
use crate::store::{ClassBytes, Client, Counters, Store, StoreConfig, Wal};
use crate::{Error, Result};

/// The largest value that the benchmark writes.
const VALUE_BYTES_MAX: usize = 1 << 30;

/// Room for a value when a client has read none yet.
const VALUE_BYTES_FIRST: usize = 4 << 10;

/// Asks a library what it is, if it is made for the benchmark.
///
/// # Errors
/// If the library has another version of the functions, lacks some, or says what has no meaning.
pub(super) fn about(library: &Library, path: &Path) -> Result<Option<About>> {
    if !Api::is_in(library) {
        return Ok(None);
    }
    let api = Api::load(library).map_err(of_peer)?;
    // SAFETY: the functions take nothing and return texts.
    let (name, settings, options) = unsafe {
        let options = api.options.map(|options| text(options())).unwrap_or_default();
        (text((api.name)()), text((api.settings)()), options)
    };
    About::parse(&name, &settings, &options)
        .map(Some)
        .map_err(|problem| Error::Failed(format!("{}: {problem}", path.display())))
}

/// Returns a copy of a text.
///
/// # Safety
/// `text` is null or ends in NUL.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

struct Database {
    api: Api,
    db: Handle,
    about: About,
    wal: Wal,
    /// True if the library's syncs are counted where it calls libc.
    counts_syncs: bool,
}

// SAFETY: the header demands that a database may be used by any number of threads at once.
unsafe impl Send for Database {}
// SAFETY: as above; the other fields are not changed after open.
unsafe impl Sync for Database {}

/// Opens the database in `directory` with the store of `library`.
pub(crate) fn open(
    library: &Path,
    about: &About,
    directory: &Path,
    config: &StoreConfig,
) -> Result<Box<dyn Store>> {
    let api = Api::load(&load(library)?).map_err(of_peer)?;
    let directory = &absolute(directory);
    let inside = api.open as *const c_void;
    // SAFETY: the library has just been loaded, and this process has opened nothing with it.
    let redirected = unsafe { hooks::install(inside, directory, config, &[])? };
    let counts_syncs = ["fsync", "fdatasync"].iter().any(|name| redirected.contains_key(name));
    let path = c_string(directory.as_os_str().as_encoded_bytes(), "the directory")?;
    let settings = c_string(about.text(config).as_bytes(), "--peer-options")?;
    // SAFETY: the texts end in NUL.
    let db = unsafe { (api.open)(path.as_ptr(), settings.as_ptr()) };
    let wal = config.shared().wal;
    let database = Database { api, db, about: about.clone(), wal, counts_syncs };
    if db.is_null() {
        let (name, why) = (about.name(), database.why());
        return Err(Error::Failed(format!("{name}, {}: {why}", directory.display())));
    }
    Ok(Box::new(database))
}

impl Database {
    /// Returns why this thread's last call failed.
    fn why(&self) -> String {
        // SAFETY: the function takes nothing and returns a text.
        let why = unsafe { text((self.api.error)()) };
        if why.is_empty() { "it failed and does not say why".to_owned() } else { why }
    }

    #[cold]
    fn error(&self) -> Error {
        Error::Failed(format!("{}: {}", self.about.name(), self.why()))
    }

    /// Turns the result of a call into a number.
    #[inline]
    fn check(&self, result: c_int) -> Result<c_int> {
        if result < 0 { Err(self.error()) } else { Ok(result) }
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::unknown();
        if let Some(counters) = self.api.counters {
            // SAFETY: the database is open, and the figures outlive the call.
            let result = unsafe { counters(self.db, &mut figures) };
            if result < 0 {
                return Figures::unknown();
            }
        }
        figures
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.db.is_null() {
            return;
        }
        // SAFETY: all clients borrow the store and are gone; it is closed once.
        let closed = unsafe { (self.api.close)(self.db) };
        if closed < 0 {
            eprintln!("warning: closing the database: {}", self.error());
        }
    }
}

impl Store for Database {
    fn version(&self) -> String {
        // SAFETY: the function takes nothing and returns a text.
        unsafe { text((self.api.version)()) }
    }

    fn notes(&self) -> Vec<String> {
        // SAFETY: the function takes nothing and returns a text.
        let own = self.api.notes.map(|notes| unsafe { text(notes()) });
        let mut notes: Vec<String> = own.into_iter().filter(|text| !text.is_empty()).collect();
        let absent = self.about.absent();
        if !absent.is_empty() {
            let name = self.about.name();
            notes.push(format!("Settings that {name} does not have: {}.", absent.join(", ")));
        }
        notes
    }

    fn client(&self) -> Box<dyn Client + '_> {
        let sync = c_int::from(self.wal == Wal::Sync);
        let (changes, spare) = (Vec::new(), Vec::new());
        Box::new(OneThread { store: self, sync, cursor: None, changes, spare })
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: the database is open.
        self.check(unsafe { (self.api.flush)(self.db) }).map(drop)
    }

    fn wait_idle(&self) -> Result<()> {
        // SAFETY: the database is open.
        self.check(unsafe { (self.api.wait_idle)(self.db) }).map(drop)
    }

    fn counters(&self) -> Counters {
        let figures = self.figures();
        let known = |figure: u64| (figure != UNKNOWN).then_some(figure);
        let (flushed, read) = (known(figures.flush_written), known(figures.compaction_read));
        let compacted = known(figures.compaction_written);
        let mut io = Vec::new();
        if let Some(written) = flushed {
            io.push(ClassBytes { class: "flush".to_owned(), read: 0, written });
        }
        if read.is_some() || compacted.is_some() {
            let (read, written) = (read.unwrap_or(0), compacted.unwrap_or(0));
            io.push(ClassBytes { class: "compaction".to_owned(), read, written });
        }
        Counters {
            io,
            stall_count: known(figures.stalls),
            stall_ns: known(figures.stall_ns),
            barriers: if self.counts_syncs {
                Some(hooks::barriers())
            } else {
                known(figures.barriers)
            },
            memtable_bytes: known(figures.memtable_bytes),
            cache_bytes: known(figures.cache_bytes),
            debt_bytes: known(figures.debt_bytes),
            running_jobs: known(figures.running_jobs),
            ..Counters::default()
        }
    }
}

/// A client of an open database.
struct OneThread<'a> {
    store: &'a Database,
    sync: c_int,
    /// Opened by the first scan.
    cursor: Option<Handle>,
    changes: Vec<Change>,
    spare: Vec<u8>,
}

impl Drop for OneThread<'_> {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor {
            // SAFETY: the cursor is open and is closed once.
            unsafe { (self.store.api.cursor_close)(cursor) };
        }
    }
}

impl OneThread<'_> {
    fn cursor(&mut self) -> Result<Handle> {
        if let Some(cursor) = self.cursor {
            return Ok(cursor);
        }
        // SAFETY: the database is open.
        let cursor = unsafe { (self.store.api.cursor_open)(self.store.db) };
        if cursor.is_null() {
            return Err(self.store.error());
        }
        self.cursor = Some(cursor);
        Ok(cursor)
    }
}

impl Client for OneThread<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Database { api, db, .. } = self.store;
        let (k, v) = (chars(key), chars(value));
        // SAFETY: the database is open; the slices outlive the call, which copies them.
        let done = unsafe { (api.put)(*db, k, key.len(), v, value.len(), self.sync) };
        self.store.check(done).map(drop)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let Database { api, db, .. } = self.store;
        // SAFETY: as for a put.
        let done = unsafe { (api.delete)(*db, chars(key), key.len(), self.sync) };
        self.store.check(done).map(drop)
    }

    #[inline]
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Database { api, db, .. } = self.store;
        value.clear();
        if value.capacity() == 0 {
            value.reserve(VALUE_BYTES_FIRST);
        }
        loop {
            let (room, mut length) = (value.capacity(), 0);
            let (k, to) = (chars(key), value.as_mut_ptr().cast());
            // SAFETY: the database is open, and the buffer has this much room.
            let found = unsafe { (api.get)(*db, k, key.len(), to, room, &mut length) };
            if self.store.check(found)? == 0 {
                return Ok(false);
            }
            if length <= room {
                // SAFETY: the function has filled this many bytes.
                unsafe { value.set_len(length) };
                return Ok(true);
            }
            if length > VALUE_BYTES_MAX {
                let name = self.store.about.name();
                return Err(Error::Failed(format!("{name}: returned a value of {length} bytes")));
            }
            value.reserve(length);
        }
    }

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        let mut value = std::mem::take(&mut self.spare);
        let found = keys.iter().map(|key| self.get(key, &mut value).map(u32::from)).sum();
        self.spare = value;
        found
    }

    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        let cursor = self.cursor()?;
        let (store, api) = (self.store, &self.store.api);
        let (mut entry, mut count) = (Entry::default(), 0);
        // SAFETY: the cursor is open; an entry is looked at only before the cursor's next call.
        unsafe {
            let mut at = (api.cursor_seek)(cursor, chars(start), start.len(), &mut entry);
            while store.check(at)? != 0 && count < entries {
                let (key, value) =
                    (bytes(entry.key, entry.key_length), bytes(entry.value, entry.value_length));
                black_box((key.last(), value.last()));
                count += 1;
                if count == entries {
                    break;
                }
                at = (api.cursor_next)(cursor, &mut entry);
            }
        }
        Ok(count)
    }

    fn write_batch(&mut self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let Database { api, db, about, .. } = self.store;
        let Some(write) = api.write else {
            let name = about.name();
            return Err(Error::Failed(format!("{name} has no atomic batches of writes")));
        };
        self.changes.clear();
        self.changes.extend(entries.iter().map(|(key, value)| {
            let bytes = value.unwrap_or_default();
            let (key_length, value_length) = (key.len(), bytes.len());
            let entry = Entry { key: chars(key), key_length, value: chars(bytes), value_length };
            Change { entry, is_delete: c_int::from(value.is_none()) }
        }));
        // SAFETY: the slices outlive the call, which copies them.
        let done = unsafe { write(*db, self.changes.as_ptr(), self.changes.len(), self.sync) };
        self.changes.clear();
        self.store.check(done).map(drop)
    }
}
