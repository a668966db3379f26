//! Scenarios for options of single calls, run with both libraries.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar};
use std::mem::transmute;
use std::path::Path;
use std::ptr::null_mut;

use super::cases::{Case, Kind};
use super::child::{Child, told};
use crate::api::{E, H, P};

/// Returns all scenarios: the subject of each, and its parameters.
pub(super) fn all() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |name: &str, value: String| {
        cases.push(Case { kind: Kind::Story, name: name.to_owned(), value });
    };
    for max in 0..40 {
        add("skips", max.to_string());
    }
    for how in ["allow_global_seqno", "fail_if_not_bottommost_level", "allow_blocking_flush"] {
        for on in [0, 1] {
            for before in ["nothing", "memory", "flushed", "compacted", "snapshot", "deleted"] {
                for keys in ["b,c", "a", "m", "a,m", "x", "a;b", "a,c;b"] {
                    add("ingests", format!("{before} {keys} {how} {on}"));
                }
            }
        }
    }
    add("ingests", "nothing a move_files,link_files 1".to_owned());
    for name in ["missing", "perf", "statistics", "loads", "pinned"] {
        add(name, "-".to_owned());
    }
    for in_manifest in ["-", "0", "1"] {
        add("identity", in_manifest.to_owned());
    }
    cases
}

/// A function of the library, by its name and type.
macro_rules! function {
    ($child:expr, $name:literal, fn($($type:ty),*) $(-> $answer:ty)?) => {{
        let found = $child.function(concat!("rocksdb_", $name)).expect($name);
        // SAFETY: the type is that of the header.
        unsafe { transmute::<H, unsafe extern "C" fn($($type),*) $(-> $answer)?>(found) }
    }};
}

impl Child {
    pub(super) fn story(&self, case: &Case, path: &Path) -> Result<String, String> {
        match case.name.as_str() {
            "skips" => self.skips(case.value.parse().expect("a number"), path),
            "ingests" => self.ingests(&case.value, path),
            "missing" => self.missing(path),
            "perf" => self.perf(path),
            "statistics" => Ok(self.statistics()),
            "loads" => self.loads(path),
            "identity" => self.identity(&case.value, path),
            "pinned" => self.pinned(path),
            other => Err(format!("no story {other}")),
        }
    }

    fn put(&self, db: H, key: &str) -> Result<(), String> {
        let (at, family) = (key.as_ptr().cast(), self.family(db));
        // SAFETY: the database is open; the bytes are there.
        told(|e| unsafe {
            let options = (self.api.writeoptions_create)();
            (self.api.put_cf)(db, options, family, at, key.len(), c"old".as_ptr(), 3, e);
        })
    }

    fn delete(&self, db: H, key: &str) -> Result<(), String> {
        let (at, family) = (key.as_ptr().cast(), self.family(db));
        // SAFETY: the database is open; the bytes are there.
        told(|e| unsafe {
            let options = (self.api.writeoptions_create)();
            (self.api.delete_cf)(db, options, family, at, key.len(), e);
        })
    }

    fn flush(&self, db: H) -> Result<(), String> {
        // SAFETY: the database is open.
        told(|e| unsafe {
            (self.api.flush_cf)(db, (self.api.flushoptions_create)(), self.family(db), e);
        })
    }

    fn get(&self, db: H, key: &str) -> String {
        let (api, mut length) = (&self.api, 0);
        // SAFETY: the database is open; the answer is a value of that length.
        unsafe {
            let (options, at) = ((api.readoptions_create)(), key.as_ptr().cast());
            let family = self.family(db);
            let got =
                told(|e| (api.get_cf)(db, options, family, at, key.len(), &raw mut length, e));
            match got {
                Ok(value) if value.is_null() => "none".to_owned(),
                Ok(value) => crate::side::shown(crate::side::bytes(value, length)),
                Err(error) => kind(&error),
            }
        }
    }

    fn skips(&self, max: u64, path: &Path) -> Result<String, String> {
        let api = &self.api;
        let db = self.open(&self.handles(), path)?;
        for number in 0..20 {
            self.put(db, &format!("k{number:02}"))?;
        }
        for number in 2..12 {
            self.delete(db, &format!("k{number:02}"))?;
        }
        for _ in 0..5 {
            self.put(db, "k14")?;
        }
        self.delete(db, "k18")?;
        self.delete(db, "k19")?;
        let set = function!(self, "readoptions_set_max_skippable_internal_keys", fn(H, u64));
        let mut all = String::new();
        // SAFETY: the database is open; keys live until the next move.
        unsafe {
            let options = (api.readoptions_create)();
            set(options, max);
            let iter = (api.create_iterator_cf)(db, options, self.family(db));
            let mut note = |what: &str| {
                let mut length = 0;
                let at = match told(|e| (api.iter_get_error)(iter, e)) {
                    Err(error) => kind(&error),
                    Ok(()) if (api.iter_valid)(iter) == 0 => "end".to_owned(),
                    Ok(()) => {
                        let key = (api.iter_key)(iter, &raw mut length);
                        crate::side::shown(crate::side::bytes(key, length))
                    }
                };
                all.push_str(&format!("{what} {at}; "));
            };
            let step = |forward| {
                if (api.iter_valid)(iter) != 0 {
                    if forward { (api.iter_next)(iter) } else { (api.iter_prev)(iter) }
                }
            };
            (api.iter_seek_to_first)(iter);
            note("first");
            for _ in 0..6 {
                step(true);
                note("next");
            }
            (api.iter_seek)(iter, c"k16".as_ptr(), 3);
            note("seek");
            step(true);
            step(true);
            note("to the end");
            (api.iter_seek_for_prev)(iter, c"k16".as_ptr(), 3);
            for _ in 0..5 {
                step(false);
                note("prev");
            }
            for key in [c"k01", c"k03", c"k10", c"k14"] {
                (api.iter_seek)(iter, key.as_ptr(), 3);
                note("seek");
                (api.iter_seek_for_prev)(iter, key.as_ptr(), 3);
                note("back");
            }
            (api.iter_destroy)(iter);
            (api.close)(db);
        }
        Ok(format!("ok {all}"))
    }

    fn ingests(&self, how: &str, path: &Path) -> Result<String, String> {
        let parts: Vec<_> = how.split(' ').collect();
        let (api, handles) = (&self.api, self.handles());
        let db = self.open(&handles, path)?;
        match parts[0] {
            "nothing" => {}
            "deleted" => self.delete(db, "b")?,
            // SAFETY: the database is open.
            "snapshot" => drop(unsafe { (api.create_snapshot)(db) }),
            before => {
                self.put(db, "a")?;
                self.put(db, "m")?;
                if before != "memory" {
                    self.flush(db)?;
                }
                if before == "compacted" {
                    self.compact(&handles, db);
                }
            }
        }
        let options = handles["rocksdb_ingestexternalfileoptions_t"];
        for option in parts[2].split(',') {
            let setter = format!("rocksdb_ingestexternalfileoptions_set_{option}");
            self.call_setter(&setter, options, parts[3]).ok_or("no such option")?;
        }
        let mut names = Vec::new();
        for (number, keys) in parts[1].split(';').enumerate() {
            let name = path.with_extension(format!("{number}.sst"));
            let name = CString::new(name.as_os_str().as_encoded_bytes()).expect("no zeros");
            // SAFETY: handles of the library, and bytes that are there.
            unsafe {
                let environment = (api.envoptions_create)();
                let writer = (api.sstfilewriter_create)(environment, handles["rocksdb_options_t"]);
                told(|e| (api.sstfilewriter_open)(writer, name.as_ptr(), e))?;
                for key in keys.split(',') {
                    let at = key.as_ptr().cast();
                    let value = c"new".as_ptr();
                    told(|e| (api.sstfilewriter_put)(writer, at, key.len(), value, 3, e))?;
                }
                told(|e| (api.sstfilewriter_finish)(writer, e))?;
                (api.sstfilewriter_destroy)(writer);
            }
            names.push(name);
        }
        let list: Vec<P> = names.iter().map(|name| name.as_ptr()).collect();
        let family = self.family(db);
        // SAFETY: the database is open.
        let done = told(|e| unsafe {
            (api.ingest_external_file_cf)(db, family, list.as_ptr(), list.len(), options, e);
        });
        let done = done.map_or_else(|error| kind(&error), |()| "taken".to_owned());
        let read = ["a", "b", "c", "m", "x"].map(|key| self.get(db, key)).join(" ");
        // SAFETY: the database is open.
        unsafe { (api.close)(db) };
        Ok(format!("ok {done}: {read}"))
    }

    fn missing(&self, path: &Path) -> Result<String, String> {
        let (api, handles) = (&self.api, self.handles());
        let db = self.open(&handles, path)?;
        let options = handles["rocksdb_writeoptions_t"];
        let setter = "rocksdb_writeoptions_set_ignore_missing_column_families";
        self.call_setter(setter, options, "1").ok_or("no such option")?;
        // SAFETY: handles of the library.
        unsafe {
            let of_family = handles["rocksdb_options_t"];
            let gone = told(|e| (api.create_column_family)(db, of_family, c"gone".as_ptr(), e))?;
            let batch = (api.writebatch_create)();
            let (key, value) = (c"k".as_ptr(), c"v".as_ptr());
            (api.writebatch_put_cf)(batch, gone, key, 1, value, 1);
            (api.writebatch_put_cf)(batch, self.family(db), key, 1, value, 1);
            told(|e| (api.drop_column_family)(db, gone, e))?;
            let done = told(|e| (api.write)(db, options, batch, e));
            let done = done.map_or_else(|error| kind(&error), |()| "written".into());
            let one = told(|e| (api.put_cf)(db, options, gone, key, 1, value, 1, e));
            let one = one.map_or_else(|error| kind(&error), |()| "written".into());
            let read = self.get(db, "k");
            (api.close)(db);
            Ok(format!("ok {done} {one} {read}"))
        }
    }

    /// A thread without a perf level counts.
    fn perf(&self, path: &Path) -> Result<String, String> {
        let db = self.open(&self.handles(), path)?;
        self.put(db, "a")?;
        let create = function!(self, "perfcontext_create", fn() -> H);
        let reset = function!(self, "perfcontext_reset", fn(H));
        let metric = function!(self, "perfcontext_metric", fn(H, c_int) -> u64);
        let level = function!(self, "set_perf_level", fn(c_int));
        let mut all = String::from("ok");
        // SAFETY: handles of the library.
        unsafe {
            let context = create();
            for wanted in [None, Some(0), Some(1), Some(2), Some(6), Some(7)] {
                wanted.into_iter().for_each(|wanted| level(wanted));
                reset(context);
                self.get(db, "a");
                // Bytes that reads returned, and memtables that they searched, are compared.
                all.push_str(&format!(
                    " {wanted:?}:{},{}",
                    metric(context, 7),
                    metric(context, 16)
                ));
            }
            (self.api.close)(db);
        }
        Ok(all)
    }

    fn statistics(&self) -> String {
        let (set, get) = (
            function!(self, "options_set_statistics_level", fn(H, c_int)),
            function!(self, "options_get_statistics_level", fn(H) -> c_int),
        );
        let enable = function!(self, "options_enable_statistics", fn(H));
        let options = self.handles()["rocksdb_options_t"];
        // SAFETY: options of the library.
        unsafe {
            let mut all = vec![get(options)];
            set(options, 5);
            all.push(get(options));
            enable(options);
            all.push(get(options));
            for level in [c_int::MIN, -1, 0, 1, 2, 3, 4, 5, 6, 42, c_int::MAX] {
                set(options, level);
                all.push(get(options));
            }
            format!("ok {all:?}")
        }
    }

    /// Loads the options of a database with a comparator and other objects of the caller.
    fn loads(&self, path: &Path) -> Result<String, String> {
        let (api, handles) = (&self.api, self.handles());
        let options = handles["rocksdb_options_t"];
        let setup =
            crate::op::Setup { merges: true, reverse: true, prefix: true, ..Default::default() };
        crate::callbacks::install(api, options, setup);
        let db = self.open(&handles, path)?;
        self.put(db, "a")?;
        let name = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zeros");
        let load = function!(
            self,
            "load_latest_options",
            fn(P, H, bool, H, *mut H, *mut usize, *mut *mut P, *mut *mut H, E)
        );
        let environment = function!(self, "create_default_env", fn() -> H);
        let mut all = String::from("ok");
        // SAFETY: handles of the library; the answer is an array of texts.
        unsafe {
            (api.close)(db);
            for ignore in [false, true] {
                let (mut of_db, mut count) = (null_mut(), 0);
                let (mut names, mut families) = (null_mut(), null_mut());
                told(|e| {
                    load(
                        name.as_ptr(),
                        environment(),
                        ignore,
                        null_mut(),
                        &raw mut of_db,
                        &raw mut count,
                        &raw mut names,
                        &raw mut families,
                        e,
                    );
                })?;
                let first = CStr::from_ptr(*names).to_string_lossy();
                all.push_str(&format!(" {count} {first}"));
                // The database opens once the objects that are not text are set again.
                crate::callbacks::install(api, *families, setup);
                let (mut family, name) = (null_mut(), name.as_ptr());
                let db = told(|e| {
                    (api.open_column_families)(of_db, name, 1, names, families, &raw mut family, e)
                })?;
                all.push_str(&format!(" {}", self.get(db, "a")));
                (api.close)(db);
            }
        }
        Ok(all)
    }

    fn identity(&self, in_manifest: &str, path: &Path) -> Result<String, String> {
        let get = function!(self, "get_db_identity", fn(H, *mut usize) -> *mut c_char);
        let set = function!(self, "options_set_write_dbid_to_manifest", fn(H, c_uchar));
        let (api, handles) = (&self.api, self.handles());
        if let Ok(in_manifest) = in_manifest.parse() {
            // SAFETY: a handle of the library.
            unsafe { set(handles["rocksdb_options_t"], in_manifest) };
        }
        let identity = |path: &Path| {
            let db = self.open(&handles, path)?;
            let mut length = 0;
            // SAFETY: the answer is a text of that length.
            unsafe {
                let text = get(db, &raw mut length);
                Ok::<_, String>((db, crate::side::bytes(text, length).to_vec()))
            }
        };
        let copy = path.with_extension("copy");
        let _none = std::fs::remove_dir_all(&copy);
        // SAFETY: handles of the library.
        unsafe {
            let (db, first) = identity(path)?;
            self.put(db, "a")?;
            let name = CString::new(copy.as_os_str().as_encoded_bytes()).expect("no zeros");
            let object = told(|e| (api.checkpoint_object_create)(db, e))?;
            told(|e| (api.checkpoint_create)(object, name.as_ptr(), 0, e))?;
            (api.close)(db);
            let (db, again) = identity(path)?;
            (api.close)(db);
            let (db, of_copy) = identity(&copy)?;
            (api.close)(db);
            let dashes = first.iter().filter(|byte| **byte == b'-').count();
            let same = (again == first, of_copy == first);
            Ok(format!("ok {} bytes, {dashes} dashes, {same:?}", first.len()))
        }
    }

    /// Returns whether a cache has more pinned bytes while an iterator has a position, and no more
    /// afterwards.
    fn pinned(&self, path: &Path) -> Result<String, String> {
        let (api, handles) = (&self.api, self.handles());
        let cache = function!(self, "cache_create_lru", fn(usize) -> H);
        let of_table = function!(self, "block_based_options_set_block_cache", fn(H, H));
        let of_options = function!(self, "options_set_block_based_table_factory", fn(H, H));
        let pinned = function!(self, "cache_get_pinned_usage", fn(H) -> usize);
        let usage = function!(self, "cache_get_usage", fn(H) -> usize);
        // SAFETY: handles of the library.
        unsafe {
            let cache = cache(8 << 20);
            let table = handles["rocksdb_block_based_table_options_t"];
            of_table(table, cache);
            of_options(handles["rocksdb_options_t"], table);
            let db = self.open(&handles, path)?;
            for number in 0..3000 {
                self.put(db, &format!("key{number:05}"))?;
            }
            self.flush(db)?;
            let before = pinned(cache);
            let iter = (api.create_iterator_cf)(db, (api.readoptions_create)(), self.family(db));
            (api.iter_seek)(iter, c"key01500".as_ptr(), 8);
            let held = pinned(cache);
            let fits = held - before > 1000 && held <= usage(cache);
            (api.iter_destroy)(iter);
            let after = pinned(cache);
            (api.close)(db);
            Ok(format!("ok {fits} {}", after == before))
        }
    }
}

/// Returns the kind of an error: the text before the colon.
fn kind(error: &str) -> String {
    error.split(':').next().unwrap_or_default().to_owned()
}
