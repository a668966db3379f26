//! Traces of calls, and replaying them. Traces of I/O and of blocks.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sateen::{
    BlockTraceOptions, Db, Error, IoTraceOptions, ReplayOptions, Replayer, TraceKinds,
    TraceOptions, TraceReader,
};

use crate::abi::{ErrPtr, free, give, guard, malloc_copy, missing, path, quiet};
use crate::database::{rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::environment::{rocksdb_env_t, vfs_of};
use crate::odd_options::{
    rocksdb_block_cache_trace_options_t, rocksdb_block_cache_trace_writer_options_t,
    rocksdb_replay_options_t, rocksdb_trace_options_t,
};
use crate::settings::Setting;

// The bits of a filter: the kinds of calls that are not recorded.
const GET: u64 = 1;
const WRITE: u64 = 1 << 1;
const SEEK: u64 = 1 << 2;
const SEEK_FOR_PREV: u64 = 1 << 3;
const MULTI_GET: u64 = 1 << 4;

/// A reader of the records of a trace. It is closed if it has no trace.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_trace_reader_t(Mutex<Option<TraceReader>>);

/// A replayer of a trace.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_replayer_t(Mutex<Replaying>);

struct Replaying {
    replayer: Replayer,
    state: State,
}

/// Whether a replayer may replay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unprepared,
    Prepared,
    Ended,
}

/// Returns what is locked. A panic cannot leave a position in a trace incomplete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the path of a trace.
///
/// # Safety
/// `name` is null or ends with a zero.
unsafe fn path_of(name: *const c_char) -> sateen::Result<PathBuf> {
    if name.is_null() {
        return Err(missing("the path"));
    }
    // SAFETY: the caller's promise.
    let path = unsafe { path(name) };
    // A file system in memory has no current directory.
    Ok(std::path::absolute(&path).unwrap_or(path))
}

fn trace_options(options: Option<&rocksdb_trace_options_t>) -> TraceOptions {
    // RocksDB replaces a file that is there. The order of writes is always kept.
    let mut trace = TraceOptions { replace: true, ..TraceOptions::default() };
    let Some(rocksdb_trace_options_t(settings)) = options else { return trace };
    let get = |key| u64::get(settings, key);
    trace.max_file_bytes = get("max_trace_file_size").unwrap_or(trace.max_file_bytes);
    trace.sampling_frequency = get("sampling_frequency").unwrap_or(trace.sampling_frequency);
    let filter = get("filter").unwrap_or(0);
    let has = |kind| filter & kind == 0;
    trace.kinds = TraceKinds {
        gets: has(GET),
        multi_gets: has(MULTI_GET),
        writes: has(WRITE),
        seeks: has(SEEK),
        seeks_for_prev: has(SEEK_FOR_PREV),
    };
    trace
}

/// Begins to record calls in the file `trace_path`, in the file system of `env`, or of the database
/// if that is null. An existing file is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_start_trace(
    db: *mut rocksdb_t,
    env: *mut rocksdb_env_t,
    _env_options: *const c_void,
    options: *const rocksdb_trace_options_t,
    trace_path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let (db, path) = (the(db)?, path_of(trace_path)?);
            let options = trace_options(options.as_ref());
            if env.is_null() {
                return db.start_trace(path, &options);
            }
            db.start_trace_with(vfs_of(env).as_ref(), path, &options)
        });
    }
}

/// Ends the trace. Reports the error that has ended it before, if there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_end_trace(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db)?.end_trace().map(drop)) };
}

/// Begins to record calls on files in the file `trace_path`, in the file system of `env`, or of the
/// database if that is null. An existing file is replaced. The filter of calls has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_start_io_trace(
    db: *mut rocksdb_t,
    env: *mut rocksdb_env_t,
    _env_options: *const c_void,
    options: *const rocksdb_trace_options_t,
    trace_path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let (db, path) = (the(db)?, path_of(trace_path)?);
            let TraceOptions { max_file_bytes, sampling_frequency, replace, .. } =
                trace_options(options.as_ref());
            let options = IoTraceOptions { max_file_bytes, sampling_frequency, replace };
            if env.is_null() {
                return db.start_io_trace(path, &options);
            }
            db.start_io_trace_with(vfs_of(env).as_ref(), path, &options)
        });
    }
}

/// Ends the trace of I/O. Reports the error that has ended it before, if there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_end_io_trace(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db)?.end_io_trace().map(drop)) };
}

/// Begins a trace of blocks in the file `trace_path`.
///
/// # Safety
/// `env` is null or an environment; `trace_path` is null or ends with a zero.
unsafe fn start_block_trace(
    db: &Db,
    env: *mut rocksdb_env_t,
    options: &BlockTraceOptions,
    trace_path: *const c_char,
) -> sateen::Result<()> {
    // SAFETY: the caller's promise.
    let path = unsafe { path_of(trace_path) }?;
    if env.is_null() {
        return db.start_block_trace(path, options);
    }
    // SAFETY: the caller's promise.
    let vfs = unsafe { vfs_of(env) };
    db.start_block_trace_with(vfs.as_ref(), path, options)
}

/// Begins to record reads of data blocks in the file `trace_path`, in the file system of `env`, or
/// of the database if that is null. An existing file is replaced. The filter of calls has no
/// effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_start_block_cache_trace(
    db: *mut rocksdb_t,
    env: *mut rocksdb_env_t,
    _env_options: *const c_void,
    options: *const rocksdb_trace_options_t,
    trace_path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let TraceOptions { max_file_bytes, sampling_frequency, replace, .. } =
                trace_options(options.as_ref());
            let options = BlockTraceOptions { max_file_bytes, sampling_frequency, replace };
            start_block_trace(the(db)?, env, &options, trace_path)
        });
    }
}

/// Does the same with other options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_start_block_cache_trace_with_options(
    db: *mut rocksdb_t,
    env: *mut rocksdb_env_t,
    _env_options: *const c_void,
    options: *const rocksdb_block_cache_trace_options_t,
    writer_options: *const rocksdb_block_cache_trace_writer_options_t,
    trace_path: *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let mut chosen = BlockTraceOptions { replace: true, ..BlockTraceOptions::default() };
            if let Some(rocksdb_block_cache_trace_options_t(settings)) = options.as_ref() {
                let every = u64::get(settings, "sampling_frequency");
                chosen.sampling_frequency = every.unwrap_or(chosen.sampling_frequency);
            }
            if let Some(rocksdb_block_cache_trace_writer_options_t(settings)) =
                writer_options.as_ref()
            {
                let max = u64::get(settings, "max_trace_file_size");
                chosen.max_file_bytes = max.unwrap_or(chosen.max_file_bytes);
            }
            start_block_trace(the(db)?, env, &chosen, trace_path)
        });
    }
}

/// Ends the trace of blocks. Reports the error that has ended it before, if there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_end_block_cache_trace(db: *mut rocksdb_t, errptr: ErrPtr) {
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || the(db)?.end_block_trace().map(drop)) };
}

/// Opens a trace in the file system of `env`, or of the disk if that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_trace_reader_create(
    env: *mut rocksdb_env_t,
    _env_options: *const c_void,
    trace_path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_trace_reader_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let mut reader = TraceReader::open_with(vfs_of(env).as_ref(), path_of(trace_path)?)?;
            reader.rewind_to_header();
            Ok(give(rocksdb_trace_reader_t(Mutex::new(Some(reader)))))
        })
    }
}

/// Calls `act` with the trace of a reader that is not closed.
///
/// # Safety
/// `reader` is null or a reader.
unsafe fn reading<T>(
    reader: *mut rocksdb_trace_reader_t,
    act: impl FnOnce(&mut TraceReader) -> sateen::Result<T>,
) -> sateen::Result<T> {
    // SAFETY: the caller's promise.
    let reader = unsafe { reader.as_ref() }.ok_or_else(|| missing("the reader"))?;
    act(lock(&reader.0).as_mut().ok_or(Error::Closed)?)
}

/// Returns a copy of the next record, the first one included, and stores its length at `size`. Null
/// and 0 at the end of the trace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_trace_reader_read(
    reader: *mut rocksdb_trace_reader_t,
    size: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(size) = size.as_mut() {
            *size = 0;
        }
        guard(errptr, null_mut(), || {
            reading(reader, |reader| {
                let Some(record) = reader.next_encoded()? else { return Ok(null_mut()) };
                if let Some(size) = size.as_mut() {
                    *size = record.len();
                }
                Ok(malloc_copy(record))
            })
        })
    }
}

/// Goes back to the first record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_trace_reader_reset(
    reader: *mut rocksdb_trace_reader_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            reading(reader, |reader| {
                reader.rewind_to_header();
                Ok(())
            })
        });
    }
}

/// Closes the file. Later reads fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_trace_reader_close(
    reader: *mut rocksdb_trace_reader_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let reader = reader.as_ref().ok_or_else(|| missing("the reader"))?;
            *lock(&reader.0) = None;
            Ok(())
        });
    }
}

/// Frees a reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_trace_reader_destroy(reader: *mut rocksdb_trace_reader_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(reader) };
}

/// Makes a replayer that plays the trace into `db`. Calls find the column families by their
/// numbers, whether `column_families` has them or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_new_default_replayer(
    db: *mut rocksdb_t,
    column_families: *mut *mut rocksdb_column_family_handle_t,
    num_column_families: usize,
    env: *mut rocksdb_env_t,
    _env_options: *const c_void,
    trace_path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_replayer_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            if column_families.is_null() && num_column_families > 0 {
                return Err(missing("the array of column families"));
            }
            let db: &Db = the(db)?;
            let path = path_of(trace_path)?;
            let reader = if env.is_null() {
                db.open_trace(path)?
            } else {
                TraceReader::open_with(vfs_of(env).as_ref(), path)?
            };
            let replayer = Replayer::new(db, reader);
            let replaying = Replaying { replayer, state: State::Unprepared };
            Ok(give(rocksdb_replayer_t(Mutex::new(replaying))))
        })
    }
}

/// Goes to the first call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_replayer_prepare(
    replayer: *mut rocksdb_replayer_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let replayer = replayer.as_ref().ok_or_else(|| missing("the replayer"))?;
            let mut replaying = lock(&replayer.0);
            replaying.replayer.rewind();
            replaying.state = State::Prepared;
            Ok(())
        });
    }
}

/// Returns when the trace began, in microseconds since 1970; 0 before the replayer is prepared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_replayer_get_header_timestamp(
    replayer: *const rocksdb_replayer_t,
) -> u64 {
    // SAFETY: the contract of the crate.
    let Some(replayer) = (unsafe { replayer.as_ref() }) else { return 0 };
    quiet(0, || {
        let replaying = lock(&replayer.0);
        if replaying.state == State::Unprepared { 0 } else { replaying.replayer.start_us() }
    })
}

/// Replays the trace from where the replayer is. It must be prepared before each replay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_replayer_replay(
    replayer: *mut rocksdb_replayer_t,
    options: *const rocksdb_replay_options_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let replayer = replayer.as_ref().ok_or_else(|| missing("the replayer"))?;
            let mut replaying = lock(&replayer.0);
            if replaying.state != State::Prepared {
                return Err(Error::InvalidArgument("the replayer is not prepared".to_owned()));
            }
            let mut replay = ReplayOptions::default();
            if let Some(rocksdb_replay_options_t(settings)) = options.as_ref() {
                replay.speed = f64::get(settings, "fast_forward").unwrap_or(replay.speed);
                replay.threads = u32::get(settings, "num_threads").unwrap_or(replay.threads);
            }
            let replayed = replaying.replayer.replay(&replay);
            replaying.state = State::Ended;
            replayed.map(drop)
        });
    }
}

/// Frees a replayer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_replayer_destroy(replayer: *mut rocksdb_replayer_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(replayer) };
}
