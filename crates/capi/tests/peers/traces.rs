//! Traces of calls go both ways: one that a library has recorded is replayed by the other, and both
//! databases have the same content.

use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

use crate::api::{Api, E, H, P, functions};

const KEYS: usize = 500;

// The functions of traces, which older libraries lack.
functions! {
    Traces, _NAMES:
    fn start_trace(H, H, H, H, P, E);
    fn end_trace(H, E);
    fn new_default_replayer(H, *const H, usize, H, H, P, E) -> H;
    fn replayer_prepare(H, E);
    fn replayer_replay(H, H, E);
    fn replayer_destroy(H);
    fn replay_options_create() -> H;
    fn replay_options_set_fast_forward(H, f64);
}

struct Library {
    api: Api,
    traces: Traces,
}

impl Library {
    fn load(path: &Path) -> Result<Library, String> {
        Ok(Library { api: Api::load(path)?, traces: Traces::load(path)? })
    }
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero")
}

struct Open<'a> {
    library: &'a Library,
    db: H,
    families: [H; 2],
    write: H,
    read: H,
}

impl Open<'_> {
    fn new<'a>(library: &'a Library, path: &Path) -> Open<'a> {
        let (api, mut error) = (&library.api, null_mut());
        let path = text(path);
        let names = ["default", "other"].map(|name| CString::new(name).expect("no zero"));
        let names = names.each_ref().map(|name| name.as_ptr());
        let mut families = [null_mut(); 2];
        // SAFETY: the functions get what they are declared with.
        unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_create_missing_column_families)(options, 1);
            let each = [options; 2];
            let (path, names) = (path.as_ptr(), names.as_ptr());
            let families_at = families.as_mut_ptr();
            let error_at = &raw mut error;
            let db = (api.open_column_families)(
                options,
                path,
                2,
                names,
                each.as_ptr(),
                families_at,
                error_at,
            );
            assert!(error.is_null() && !db.is_null());
            let (write, read) = ((api.writeoptions_create)(), (api.readoptions_create)());
            Open { library, db, families, write, read }
        }
    }

    /// Writes and reads in every way that a trace has.
    fn work(&self) {
        let (api, mut error) = (&self.library.api, null_mut());
        let [default, other] = self.families;
        for number in 0..KEYS {
            let key = format!("key{:05}", number * 7919 % KEYS);
            let (key, length) = (key.as_ptr().cast(), key.len());
            let value = number.to_string();
            let (value, size) = (value.as_ptr().cast(), value.len());
            // SAFETY: the functions get what they are declared with.
            unsafe {
                (api.put_cf)(
                    self.db,
                    self.write,
                    default,
                    key,
                    length,
                    value,
                    size,
                    &raw mut error,
                );
                let batch = (api.writebatch_create)();
                (api.writebatch_put_cf)(batch, other, key, length, value, size);
                if number % 3 == 0 {
                    (api.writebatch_delete_cf)(batch, default, key, length);
                }
                if number % 100 == 99 {
                    let (from, to) = (c"key00100".as_ptr(), c"key00200".as_ptr());
                    (api.writebatch_delete_range_cf)(batch, other, from, 8, to, 8);
                }
                (api.writebatch_put_log_data)(batch, key, length);
                (api.write)(self.db, self.write, batch, &raw mut error);
                (api.writebatch_destroy)(batch);
                let mut found = 0;
                let got = (api.get_cf)(
                    self.db,
                    self.read,
                    other,
                    key,
                    length,
                    &raw mut found,
                    &raw mut error,
                );
                (api.free)(got.cast());
                let iter = (api.create_iterator_cf)(self.db, self.read, other);
                (api.iter_seek)(iter, key, length);
                (api.iter_seek_for_prev)(iter, key, length);
                (api.iter_destroy)(iter);
                assert!(error.is_null());
            }
        }
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        let api = &self.library.api;
        let mut all = Vec::new();
        for family in self.families {
            // SAFETY: the functions get what they are declared with.
            unsafe {
                let iter = (api.create_iterator_cf)(self.db, self.read, family);
                (api.iter_seek_to_first)(iter);
                while (api.iter_valid)(iter) != 0 {
                    for of_entry in [api.iter_key, api.iter_value] {
                        let mut length = 0;
                        let bytes = of_entry(iter, &raw mut length).cast::<u8>();
                        all.push(std::slice::from_raw_parts(bytes, length).to_vec());
                    }
                    (api.iter_next)(iter);
                }
                (api.iter_destroy)(iter);
                all.push(b"the next column family".to_vec());
            }
        }
        all
    }

    fn record(&self, trace: &Path) {
        let (traces, mut error, trace) = (&self.library.traces, null_mut(), text(trace));
        // SAFETY: the functions get what they are declared with.
        unsafe {
            let (env, options) = ((self.library.api.envoptions_create)(), null_mut());
            (traces.start_trace)(self.db, null_mut(), env, options, trace.as_ptr(), &raw mut error);
            assert!(error.is_null());
            self.work();
            (traces.end_trace)(self.db, &raw mut error);
            assert!(error.is_null());
        }
    }

    fn replay(&self, trace: &Path) {
        let (traces, mut error, trace) = (&self.library.traces, null_mut(), text(trace));
        // SAFETY: the functions get what they are declared with.
        unsafe {
            let env = (self.library.api.envoptions_create)();
            let (db, families) = (self.db, self.families.as_ptr());
            let (trace, error_at) = (trace.as_ptr(), &raw mut error);
            let replayer =
                (traces.new_default_replayer)(db, families, 2, null_mut(), env, trace, error_at);
            assert!(error.is_null() && !replayer.is_null());
            (traces.replayer_prepare)(replayer, &raw mut error);
            let options = (traces.replay_options_create)();
            (traces.replay_options_set_fast_forward)(options, 1e6);
            (traces.replayer_replay)(replayer, options, &raw mut error);
            assert!(error.is_null());
            (traces.replayer_destroy)(replayer);
        }
    }

    fn close(self) {
        let api = &self.library.api;
        // SAFETY: all are open.
        unsafe {
            self.families.iter().for_each(|family| (api.column_family_handle_destroy)(*family));
            (api.close)(self.db);
        }
    }
}

#[test]
fn a_trace_of_either_library_is_replayed_by_the_other() {
    let (ours, theirs) = match (crate::libraries::ours(), crate::libraries::theirs()) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (_, Err(reason)) | (Err(reason), _) => return println!("SKIPPED({reason})"),
    };
    let ours = Library::load(&ours).expect("our library");
    let theirs = match Library::load(&theirs) {
        Ok(theirs) => theirs,
        Err(reason) => return println!("SKIPPED({reason})"),
    };
    for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = directory.path().join("trace");
        let recorded = Open::new(from, &directory.path().join("recorded"));
        recorded.record(&trace);
        let replayed = Open::new(to, &directory.path().join("replayed"));
        replayed.replay(&trace);
        assert!(recorded.contents().len() > KEYS);
        assert_eq!(recorded.contents(), replayed.contents());
        recorded.close();
        replayed.close();
    }
}
