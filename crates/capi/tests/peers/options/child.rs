//! A child process, which runs cases with one library and writes down the result of each.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io::Write;
use std::mem::transmute;
use std::path::Path;
use std::ptr::{null, null_mut};

use super::cases::{self, Case, Kind};
use crate::api::{Api, E, H};
use crate::declaration::{Declaration, Type};

/// The limit after which a case counts as hung.
const SECONDS_MAX: u32 = 120;
/// The same for RocksDB, whose writers may wait for ever for something that an option prevents.
const SECONDS_MAX_THEIRS: u32 = 8;
/// The largest memory of a process. Allocations beyond it fail and end the process.
const MEMORY_MAX: u64 = 8 << 30;
const KEYS: usize = 30;

/// Makes a directory, in memory if possible.
pub(super) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// Runs the list of cases in `directory`.
pub(super) fn run(directory: &Path) {
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect("what to do");
    let library = read("library");
    let limit = libc::rlimit { rlim_cur: MEMORY_MAX, rlim_max: MEMORY_MAX };
    // SAFETY: a limit, and no cores of what is meant to crash.
    unsafe {
        libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
    }
    let child = Child {
        api: Api::load(Path::new(&library)).expect("a library"),
        library: crate::api::open(Path::new(&library)).expect("a library"),
        declared: cases::declared(),
    };
    let mut answers =
        OpenOptions::new().append(true).open(directory.join("answers")).expect("a list");
    for line in read("cases").lines() {
        let case = Case::parse(line);
        let waits = matches!(case.kind, Kind::Set | Kind::Text | Kind::RunTime);
        let is_theirs = !library.contains("libsateen");
        let seconds_max = if waits && is_theirs { SECONDS_MAX_THEIRS } else { SECONDS_MAX };
        // SAFETY: the signal ends the process, as is meant.
        unsafe { libc::alarm(seconds_max) };
        let path = directory.join("db");
        let _none = std::fs::remove_dir_all(&path);
        let answer = child.answer(&case, &path);
        writeln!(answers, "{}", answer.replace('\n', "\t")).expect("it is written down");
    }
}

pub(super) struct Child {
    pub(super) api: Api,
    library: H,
    declared: BTreeMap<String, Declaration>,
}

/// Handles by the name of their type.
pub(super) type Handles = BTreeMap<String, H>;

impl Child {
    fn answer(&self, case: &Case, path: &Path) -> String {
        let answer = match case.kind {
            Kind::Set => self.set(case, path),
            Kind::Text => self.text(case, path),
            Kind::RunTime => self.run_time(case, path),
            Kind::RoundTrip => self.round_trip(case),
            Kind::Story => self.story(case, path),
            Kind::List => self.list(path),
        };
        match answer {
            Ok(answer) => answer,
            Err(error) => format!("refused {error}"),
        }
    }

    pub(super) fn function(&self, name: &str) -> Option<*mut c_void> {
        crate::api::find(self.library, name).ok()
    }

    /// Makes a handle of a type whose function takes no arguments.
    fn made(&self, handle: &str) -> Option<H> {
        let name = match handle {
            "rocksdb_block_based_table_options_t" => "rocksdb_block_based_options".to_owned(),
            "rocksdb_cuckoo_table_options_t" => "rocksdb_cuckoo_options".to_owned(),
            other => other.strip_suffix("_t")?.to_owned(),
        };
        let name = format!("{name}_create");
        let is_plain = self.declared.get(&name)?.parameters.is_empty();
        let function = self.function(&name).filter(|_| is_plain)?;
        // SAFETY: the type is that of the header.
        Some(unsafe { transmute::<*mut c_void, extern "C" fn() -> H>(function)() })
    }

    /// Calls a setter; `None` if the library does not have it.
    pub(super) fn call_setter(&self, name: &str, handle: H, value: &str) -> Option<()> {
        let function = self.function(name)?;
        let (_, number) = cases::setter(self.declared.get(name)?)?;
        macro_rules! set {
            ($type:ty) => {
                // SAFETY: the type is that of the header.
                unsafe {
                    let value: $type = value.parse().expect("a value of the type");
                    transmute::<*mut c_void, extern "C" fn(H, $type)>(function)(handle, value)
                }
            };
        }
        match number {
            "u8" => set!(u8),
            "c_char" => set!(c_char),
            "bool" => set!(u8),
            "i32" => set!(i32),
            "u32" => set!(u32),
            "u64" => set!(u64),
            "usize" => set!(usize),
            "i64" => set!(i64),
            "f64" => set!(f64),
            other => panic!("a setter of {other}"),
        }
        Some(())
    }

    fn call_getter(&self, name: &str, handle: H) -> Option<String> {
        let function = self.function(name)?;
        let Type::Number(number) = self.declared.get(name)?.returns else { return None };
        macro_rules! get {
            ($type:ty) => {
                // SAFETY: the type is that of the header.
                unsafe {
                    let got = transmute::<*mut c_void, extern "C" fn(H) -> $type>(function)(handle);
                    format!("{got:?}")
                }
            };
        }
        Some(match number {
            "u8" | "bool" => get!(u8),
            "c_char" => get!(c_char),
            "i32" => get!(i32),
            "u32" => get!(u32),
            "u64" => get!(u64),
            "usize" => get!(usize),
            "i64" => get!(i64),
            "f64" => get!(f64),
            other => panic!("a getter of {other}"),
        })
    }

    fn round_trip(&self, case: &Case) -> Result<String, String> {
        let (handle, _) = cases::setter(&self.declared[&case.name]).expect("a setter");
        let got = || {
            let handle = self.made(handle)?;
            self.call_setter(&case.name, handle, &case.value)?;
            self.call_getter(&cases::getter_of(&case.name)?, handle)
        };
        Ok(got().map_or("absent".into(), |got| format!("ok {got}")))
    }

    pub(super) fn handles(&self) -> Handles {
        let all =
            cases::USED.iter().filter_map(|name| Some(((*name).to_owned(), self.made(name)?)));
        let handles: Handles = all.collect();
        // SAFETY: options that were just made.
        unsafe {
            let options = handles["rocksdb_options_t"];
            (self.api.options_set_create_if_missing)(options, 1);
            // A small memtable, so that little is preallocated.
            (self.api.options_set_write_buffer_size)(options, 1 << 20);
        }
        handles
    }

    fn set(&self, case: &Case, path: &Path) -> Result<String, String> {
        let handles = self.handles();
        let (handle, _) = cases::setter(&self.declared[&case.name]).expect("a setter");
        if self.call_setter(&case.name, handles[handle], &case.value).is_none() {
            return Ok("absent".into());
        }
        let options = handles["rocksdb_options_t"];
        let give = |setter: &str, name: &str| {
            if let Some(function) = self.function(setter) {
                // SAFETY: the type is that of the header.
                unsafe {
                    transmute::<*mut c_void, extern "C" fn(H, H)>(function)(options, handles[name]);
                }
            }
        };
        if handle == "rocksdb_block_based_table_options_t" {
            give("rocksdb_options_set_block_based_table_factory", handle);
        }
        if handle == "rocksdb_universal_compaction_options_t" {
            give("rocksdb_options_set_universal_compaction_options", handle);
            self.call_setter("rocksdb_options_set_compaction_style", options, "1");
        }
        self.use_database(&handles, path)
    }

    fn text(&self, case: &Case, path: &Path) -> Result<String, String> {
        let mut handles = self.handles();
        let text = CString::new(case.value.as_str()).expect("no zeros");
        let base = handles["rocksdb_options_t"];
        // SAFETY: options of the library, and a text.
        let made = unsafe {
            let made = (self.api.options_create)();
            told(|e| (self.api.get_options_from_string)(base, text.as_ptr(), made, e))?;
            made
        };
        handles.insert("rocksdb_options_t".into(), made);
        self.use_database(&handles, path)
    }

    fn run_time(&self, case: &Case, path: &Path) -> Result<String, String> {
        let handles = self.handles();
        let db = self.open(&handles, path)?;
        self.write(&handles, db, 0..10)?;
        let (name, value) = (CString::new(case.name.as_str()), CString::new(case.value.as_str()));
        let (name, value) = (name.expect("no zeros"), value.expect("no zeros"));
        let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
        type Set = extern "C" fn(H, c_int, *const *const c_char, *const *const c_char, E);
        let mut done = Err("absent".to_owned());
        // The option may be the column family's or the database's.
        for setter in ["rocksdb_set_options", "rocksdb_set_db_options"] {
            let function = self.function(setter).ok_or("absent")?;
            // SAFETY: the type is that of the header.
            let set = unsafe { transmute::<*mut c_void, Set>(function) };
            done = told(|e| set(db, 1, names.as_ptr(), values.as_ptr(), e));
            if done.is_ok() {
                break;
            }
        }
        let used = self.write(&handles, db, 0..KEYS).and_then(|()| self.read(&handles, db));
        // SAFETY: the database is open.
        unsafe { (self.api.close)(db) };
        done?;
        Ok(format!("ok {}", used?))
    }

    fn list(&self, path: &Path) -> Result<String, String> {
        let db = self.open(&self.handles(), path)?;
        // SAFETY: the database is open.
        unsafe { (self.api.close)(db) };
        let files = std::fs::read_dir(path).map_err(|error| error.to_string())?.flatten();
        let file = files.map(|file| file.path()).find(|path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"OPTIONS"))
        });
        std::fs::read_to_string(file.ok_or("no options")?).map_err(|error| error.to_string())
    }

    pub(super) fn open(&self, handles: &Handles, path: &Path) -> Result<H, String> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zeros");
        // SAFETY: options of the library, and a path.
        told(|e| unsafe { (self.api.open)(handles["rocksdb_options_t"], name.as_ptr(), e) })
    }

    fn write(&self, handles: &Handles, db: H, keys: std::ops::Range<usize>) -> Result<(), String> {
        let (api, options) = (&self.api, handles["rocksdb_writeoptions_t"]);
        let value = [b'v'; 200];
        for key in keys.map(|number| format!("key{number:03}")) {
            let (at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: the database is open; the bytes are there.
            told(|e| unsafe {
                (api.put_cf)(db, options, self.family(db), at, key.len(), value_at, 200, e);
            })?;
        }
        let flushing = handles["rocksdb_flushoptions_t"];
        // SAFETY: the database is open.
        told(|e| unsafe { (api.flush_cf)(db, flushing, self.family(db), e) })
    }

    /// Returns the default column family.
    pub(super) fn family(&self, db: H) -> H {
        let function = self.function("rocksdb_get_default_column_family_handle");
        // SAFETY: the type is that of the header.
        unsafe {
            transmute::<*mut c_void, extern "C" fn(H) -> H>(function.expect("it is there"))(db)
        }
    }

    fn read(&self, handles: &Handles, db: H) -> Result<String, String> {
        let (api, options) = (&self.api, handles["rocksdb_readoptions_t"]);
        let (mut found, mut scanned) = (0, 0);
        // SAFETY: the database is open; what it returns is freed.
        unsafe {
            for key in (0..KEYS).map(|number| format!("key{number:03}")) {
                let (at, mut length) = (key.as_ptr().cast(), 0);
                let value = told(|e| {
                    (api.get_cf)(db, options, self.family(db), at, key.len(), &raw mut length, e)
                })?;
                found += usize::from(!value.is_null() && length == 200);
                (api.free)(value.cast());
            }
            let iter = (api.create_iterator_cf)(db, options, self.family(db));
            (api.iter_seek_to_first)(iter);
            while (api.iter_valid)(iter) != 0 {
                scanned += 1;
                (api.iter_next)(iter);
            }
            let status = told(|e| (api.iter_get_error)(iter, e));
            (api.iter_destroy)(iter);
            status?;
        }
        Ok(format!("found {found} scanned {scanned}"))
    }

    /// Writes, deletes, flushes, compacts, ingests and reads, and opens the database again.
    fn use_database(&self, handles: &Handles, path: &Path) -> Result<String, String> {
        let (api, writing) = (&self.api, handles["rocksdb_writeoptions_t"]);
        let db = self.open(handles, path)?;
        let used = (|| {
            self.write(handles, db, 0..KEYS)?;
            self.write(handles, db, 5..9)?;
            // SAFETY: the database is open; the bytes are there.
            told(|e| unsafe {
                (api.delete_cf)(db, writing, self.family(db), c"key007".as_ptr(), 6, e);
            })?;
            let first = self.read(handles, db)?;
            self.compact(handles, db);
            self.ingest(handles, db, path)?;
            Ok::<_, String>(format!("{first}, {}", self.read(handles, db)?))
        })();
        // SAFETY: the database is open.
        unsafe { (api.close)(db) };
        let used = used?;
        let db = self.open(handles, path).map_err(|error| format!("at the second open {error}"))?;
        let again = self.read(handles, db);
        // SAFETY: the database is open.
        unsafe { (api.close)(db) };
        Ok(format!("ok {used}, {}", again?))
    }

    pub(super) fn compact(&self, handles: &Handles, db: H) {
        type Compact = extern "C" fn(H, H, *const c_char, usize, *const c_char, usize);
        let function = self.function("rocksdb_compact_range_opt").expect("it is there");
        let options = handles["rocksdb_compactoptions_t"];
        // SAFETY: the type is that of the header.
        unsafe {
            transmute::<*mut c_void, Compact>(function)(db, options, null(), 0, null(), 0);
        }
    }

    fn ingest(&self, handles: &Handles, db: H, path: &Path) -> Result<(), String> {
        let (api, options) = (&self.api, handles["rocksdb_options_t"]);
        let file = CString::new(path.with_extension("sst").as_os_str().as_encoded_bytes());
        let file = file.expect("no zeros");
        let list = [file.as_ptr()];
        // SAFETY: handles of the library, and bytes that are there.
        unsafe {
            let environment = (api.envoptions_create)();
            let writer = (api.sstfilewriter_create)(environment, options);
            told(|e| (api.sstfilewriter_open)(writer, file.as_ptr(), e))?;
            let (key, value) = (c"zzz".as_ptr(), c"value".as_ptr());
            told(|e| (api.sstfilewriter_put)(writer, key, 3, value, 5, e))?;
            told(|e| (api.sstfilewriter_finish)(writer, e))?;
            (api.sstfilewriter_destroy)(writer);
            (api.envoptions_destroy)(environment);
            let how = handles["rocksdb_ingestexternalfileoptions_t"];
            let family = self.family(db);
            told(|e| (api.ingest_external_file_cf)(db, family, list.as_ptr(), 1, how, e))
        }
    }
}

/// Makes a call that may fail.
pub(super) fn told<T>(act: impl FnOnce(E) -> T) -> Result<T, String> {
    let mut error: *mut c_char = null_mut();
    let answer = act(&raw mut error);
    if error.is_null() {
        return Ok(answer);
    }
    // SAFETY: an error is a text, from `malloc`.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        libc::free(error.cast());
        Err(text)
    }
}
