//! Files of sorted entries: writing and ingesting them. Ingest options are stored as they are set,
//! in `Settings`.

use std::ffi::{c_char, c_void};

use sateen::{Comparator, Error, IngestOptions, Options, SstFileWriter};

use crate::abi::{ErrPtr, bytes, free, give, guard, missing, path};
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::environment::Place;
use crate::options::rocksdb_options_t;
use crate::settings::{Setting, Settings};

type Family = rocksdb_column_family_handle_t;

/// A writer of files. It may write several files one after the other.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_sstfilewriter_t {
    options: sateen::Result<Options>,
    /// The options that it was made with.
    handle: Option<rocksdb_options_t>,
    open: Option<SstFileWriter>,
    file_bytes: u64,
}

/// Makes a writer with these options. `env` has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_create(
    _env: *const c_void,
    options: *const rocksdb_options_t,
) -> *mut rocksdb_sstfilewriter_t {
    // SAFETY: the contract of the crate.
    let handle = unsafe { options.as_ref() };
    let options = handle.map_or_else(|| Ok(Options::default()), rocksdb_options_t::checked);
    give(rocksdb_sstfilewriter_t::with(options, handle.cloned()))
}

impl rocksdb_sstfilewriter_t {
    pub(crate) fn with(
        options: sateen::Result<Options>,
        handle: Option<rocksdb_options_t>,
    ) -> rocksdb_sstfilewriter_t {
        rocksdb_sstfilewriter_t { options, handle, open: None, file_bytes: 0 }
    }
}

/// Frees a writer. An unfinished file stays and is invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_destroy(writer: *mut rocksdb_sstfilewriter_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(writer) };
}

unsafe fn open<'a>(writer: *mut rocksdb_sstfilewriter_t) -> sateen::Result<&'a mut SstFileWriter> {
    // SAFETY: the contract of the crate.
    let writer = unsafe { writer.as_mut() }.ok_or_else(|| missing("the writer"))?;
    let closed = || Error::InvalidArgument("the writer has no file open".into());
    writer.open.as_mut().ok_or_else(closed)
}

/// Calls `act` with the file of a writer, and with the comparator of its keys.
pub(crate) unsafe fn with_comparator(
    writer: *mut rocksdb_sstfilewriter_t,
    act: impl FnOnce(&mut SstFileWriter, &Comparator) -> sateen::Result<()>,
) -> sateen::Result<()> {
    // SAFETY: the contract of the crate.
    unsafe {
        let options = writer.as_ref().map(|writer| writer.options.clone());
        let options = options.ok_or_else(|| missing("the writer"))??;
        act(open(writer)?, &options.column_family.comparator)
    }
}

/// Returns the file of a writer whose keys have no timestamps.
unsafe fn untimed<'a>(
    writer: *mut rocksdb_sstfilewriter_t,
) -> sateen::Result<&'a mut SstFileWriter> {
    // SAFETY: the contract of the crate.
    unsafe {
        let options = writer.as_ref().and_then(|writer| writer.options.as_ref().ok());
        match options.map_or(0, |options| options.column_family.comparator.timestamp_bytes()) {
            0 => open(writer),
            _ => Err(Error::InvalidArgument("the keys of the file have timestamps".into())),
        }
    }
}

/// Begins a file and replaces an existing one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_open(
    writer: *mut rocksdb_sstfilewriter_t,
    name: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let writer = writer.as_mut().ok_or_else(|| missing("the writer"))?;
            let options = writer.options.as_ref().map_err(Error::clone)?;
            let handle = writer.handle.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            let Place { vfs, path, .. } = Place::new(handle, name);
            // Creating the file reports the error if the old one cannot be removed.
            let _was = vfs.remove(&path);
            writer.open = Some(SstFileWriter::create_with(vfs, path, options)?);
            Ok(())
        });
    }
}

macro_rules! adds {
    ($(
        $(#[$doc:meta])*
        $function:ident ($($argument:ident $length:ident)*) $method:ident;
    )*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            writer: *mut rocksdb_sstfilewriter_t,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                guard(errptr, (), || untimed(writer)?.$method($(bytes($argument, $length)?),*));
            }
        }
    )* };
}

adds! {
    /// Adds a value, like `rocksdb_sstfilewriter_put`.
    rocksdb_sstfilewriter_add (key key_length value value_length) put;
    /// Adds a value.
    rocksdb_sstfilewriter_put (key key_length value value_length) put;
    /// Adds a merge operand.
    rocksdb_sstfilewriter_merge (key key_length operand operand_length) merge;
    /// Adds a tombstone.
    rocksdb_sstfilewriter_delete (key key_length) delete;
    /// Adds a range tombstone from `begin` (included) to `end` (excluded).
    rocksdb_sstfilewriter_delete_range (begin begin_length end end_length) delete_range;
}

/// Finishes the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_finish(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            open(writer)?;
            let Some(writer) = writer.as_mut() else { return Ok(()) };
            if let Some(file) = writer.open.take() {
                writer.file_bytes = file.finish()?.file_bytes;
            }
            Ok(())
        });
    }
}

/// Returns the bytes of the current or the last file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_file_size(
    writer: *mut rocksdb_sstfilewriter_t,
    size: *mut u64,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let (Some(writer), Some(size)) = (writer.as_ref(), size.as_mut()) {
            *size = writer.open.as_ref().map_or(writer.file_bytes, SstFileWriter::file_bytes);
        }
    }
}

/// Ingests files into the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file(
    db: *mut rocksdb_t,
    files: *const *const c_char,
    count: usize,
    options: *const c_void,
    errptr: ErrPtr,
) {
    let family = DEFAULT;
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_ingest_external_file_cf(db, family, files, count, options, errptr) };
}

/// Ingests files into a column family, all or none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file_cf(
    db: *mut rocksdb_t,
    family: *mut Family,
    files: *const *const c_char,
    count: usize,
    options: *const c_void,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            let set = |name, default| {
                let settings = options.cast::<Settings>().as_ref();
                settings.and_then(|it| bool::get(it, name)).unwrap_or(default)
            };
            if set("ingest_behind", false) {
                let text =
                    "ingest_behind=1 is not implemented: files are ingested above all other data"
                        .to_owned();
                return Err(Error::InvalidArgument(text));
            }
            if set("move_files", false) && set("link_files", false) {
                let text = "move_files and link_files cannot both be set".to_owned();
                return Err(Error::InvalidArgument(text));
            }
            let ingest = IngestOptions {
                move_files: set("move_files", false),
                allow_flush: set("allow_blocking_flush", true),
                allow_global_seqno: set("allow_global_seqno", true),
                fail_if_not_bottommost_level: set("fail_if_not_bottommost_level", false),
            };
            let paths: Vec<_> = (0..count).map(|nth| path(*files.add(nth))).collect();
            of(db, family)?.ingest(&paths, &ingest)
        });
    }
}
