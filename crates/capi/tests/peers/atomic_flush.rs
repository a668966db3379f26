//! `atomic_flush` without a WAL in a process that ends without closing its database: both libraries
//! leave all column families at the same commit.

use std::ffi::{CString, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;

use crate::api::{Api, H};

const NAMES: [&str; 2] = ["default", "other"];
/// Bytes of the values of each column family.
const LENGTHS: [usize; 2] = [1024, 1];
const BATCHES: usize = 3000;
/// The variable that names the library and the directory for the process that ends.
const CHILD: &str = "SATEEN_PEERS_ATOMIC";

struct Open<'a> {
    api: &'a Api,
    db: H,
    families: [H; 2],
}

impl Open<'_> {
    fn new<'a>(api: &'a Api, path: &Path) -> Open<'a> {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero");
        let names = NAMES.map(|name| CString::new(name).expect("no zero"));
        let names = names.each_ref().map(|name| name.as_ptr());
        let (mut families, mut error) = ([null_mut(); 2], null_mut());
        // SAFETY: the functions get what they are declared with.
        let db = unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_create_missing_column_families)(options, 1);
            (api.options_set_write_buffer_size)(options, 256 << 10);
            (api.options_set_atomic_flush)(options, 1);
            let each = [options; 2];
            let count: c_int = 2;
            (api.open_column_families)(
                options,
                path.as_ptr(),
                count,
                names.as_ptr(),
                each.as_ptr(),
                families.as_mut_ptr(),
                &raw mut error,
            )
        };
        assert!(error.is_null() && !db.is_null());
        Open { api, db, families }
    }

    /// Puts the same key into both families, in one batch without a WAL.
    fn write(&self) {
        let api = self.api;
        let mut error = null_mut();
        // SAFETY: the functions get what they are declared with.
        unsafe {
            let unlogged = (api.writeoptions_create)();
            (api.writeoptions_disable_WAL)(unlogged, 1);
            for number in 0..BATCHES {
                let key = format!("key{number:05}");
                let batch = (api.writebatch_create)();
                for (family, length) in self.families.iter().zip(LENGTHS) {
                    let value = vec![b'v'; length];
                    (api.writebatch_put_cf)(
                        batch,
                        *family,
                        key.as_ptr().cast(),
                        key.len(),
                        value.as_ptr().cast(),
                        length,
                    );
                }
                (api.write)(self.db, unlogged, batch, &raw mut error);
                (api.writebatch_destroy)(batch);
                assert!(error.is_null());
            }
            // Wait until the full memtable is flushed. Nothing else is flushed.
            (api.wait_for_compact)(
                self.db,
                (api.wait_for_compact_options_create)(),
                &raw mut error,
            );
            assert!(error.is_null());
        }
    }

    fn counts(&self) -> [usize; 2] {
        // SAFETY: the functions get what they are declared with.
        self.families.map(|family| unsafe {
            let read = (self.api.readoptions_create)();
            let iter = (self.api.create_iterator_cf)(self.db, read, family);
            (self.api.iter_seek_to_first)(iter);
            let mut count = 0;
            while (self.api.iter_valid)(iter) != 0 {
                count += 1;
                (self.api.iter_next)(iter);
            }
            (self.api.iter_destroy)(iter);
            (self.api.readoptions_destroy)(read);
            count
        })
    }
}

/// Not a test, but the work of the process that ends.
#[test]
fn write_and_end() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (library, path) = what.split_once('\n').expect("two lines");
    let api = Api::load(Path::new(library)).expect("a library");
    Open::new(&api, Path::new(path)).write();
    // SAFETY: nothing of this process is needed any more.
    unsafe { libc::_exit(0) };
}

#[test]
fn families_are_at_one_commit_after_a_process_ended() {
    let theirs = std::env::var_os("SATEEN_PEERS_LIBRARY").map(PathBuf::from);
    let theirs = theirs.or_else(crate::libraries::fetched);
    if theirs.is_none() {
        println!("RocksDB's library is missing: only ours runs");
    }
    for library in
        [Some(crate::libraries::ours().expect("our library")), theirs].into_iter().flatten()
    {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("db");
        let program = std::env::current_exe().expect("this program");
        let ended = Command::new(program)
            .args(["--exact", "atomic_flush::write_and_end"])
            .env(CHILD, format!("{}\n{}", library.display(), path.display()))
            .output()
            .expect("it starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let api = Api::load(&library).expect("a library");
        let open = Open::new(&api, &path);
        let counts = open.counts();
        println!("{}: {counts:?}", library.display());
        assert_eq!(counts[0], counts[1], "{}", library.display());
        assert!((1..BATCHES).contains(&counts[0]), "{}: {counts:?}", library.display());
        // SAFETY: it is open.
        unsafe { (api.close)(open.db) };
    }
}
