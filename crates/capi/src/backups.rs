//! Backups: RocksDB's backup engine over the engine's.
//!
//! Options that promise something which Sateen does not do are refused by name when an engine is
//! opened, or a backup made.

use std::ffi::{c_char, c_int, c_uchar};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sateen::vfs::Vfs;
use sateen::{
    BackupEngine, BackupInfo, BackupListener, BackupProgress, CreateBackupOptions, DirectoryStore,
    RestoreOptions, VerifyBackupOptions, bytes_of_text, text_of_bytes,
};

use crate::abi::{ErrPtr, bytes, free, give, guard, lend, missing, path, quiet};
use crate::backup_options::{
    Progress, check, refused, rocksdb_backup_engine_options_t, rocksdb_create_backup_options_t,
    rocksdb_restore_options_t,
};
use crate::callbacks::State;
use crate::database::{rocksdb_t, the};
use crate::environment::{Place, rocksdb_env_t, vfs_of};
use crate::options::rocksdb_options_t;
use crate::settings::Setting;

/// RocksDB's default for the bytes between two calls of the progress callback.
const PROGRESS_BYTES: u64 = 4 << 20;

/// A backup engine.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_backup_engine_t {
    engine: Mutex<BackupEngine>,
    /// The file system of the databases.
    vfs: Arc<dyn Vfs>,
    /// Whether backups are to end early.
    stop: Arc<AtomicBool>,
    backup_rate: u64,
    restore_rate: u64,
    /// Bytes between two calls of the progress callback.
    progress_bytes: u64,
}

impl rocksdb_backup_engine_t {
    fn lock(&self) -> MutexGuard<'_, BackupEngine> {
        // The engine keeps no state that a panic could leave incomplete.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends an operation once the engine is stopped, and calls the caller's function.
struct Watch {
    stop: Arc<AtomicBool>,
    progress: Option<(Arc<State>, Progress)>,
    progress_bytes: u64,
    told: AtomicU64,
}

impl BackupListener for Watch {
    fn progress(&self, progress: &BackupProgress) {
        let Some((state, callback)) = &self.progress else { return };
        if progress.bytes - self.told.load(Ordering::Relaxed) >= self.progress_bytes {
            self.told.store(progress.bytes, Ordering::Relaxed);
            // SAFETY: the caller gave both.
            unsafe { callback(state.state) };
        }
    }

    fn is_cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Opens the backups in the directory `path`, in the file system of `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_open(
    options: *const rocksdb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_backup_engine_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            if path.is_null() {
                return Err(missing("the path"));
            }
            let Place { vfs, path } = Place::new(options, path);
            open(vfs.clone(), vfs, path, &rocksdb_backup_engine_options_t::default())
        })
    }
}

/// Opens the backups that `options` name. `env` is the file system of the databases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_open_opts(
    options: *const rocksdb_backup_engine_options_t,
    env: *mut rocksdb_env_t,
    errptr: ErrPtr,
) -> *mut rocksdb_backup_engine_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            let options = options.as_ref().ok_or_else(|| missing("the options"))?;
            check(options)?;
            let directory = options.kept.text("backup_dir");
            let directory = directory.ok_or_else(|| missing("backup_dir"))?;
            let vfs = vfs_of(env);
            let of_backups = options.vfs.clone().unwrap_or_else(|| vfs.clone());
            open(vfs, of_backups, path(directory.as_ptr()), options)
        })
    }
}

fn open(
    vfs: Arc<dyn Vfs>,
    of_backups: Arc<dyn Vfs>,
    path: PathBuf,
    options: &rocksdb_backup_engine_options_t,
) -> sateen::Result<*mut rocksdb_backup_engine_t> {
    let mut engine = BackupEngine::open_with(Arc::new(DirectoryStore::new(of_backups, path)))?;
    let number = |name| u64::get(&options.kept, name);
    let rate = |limiter: Option<u64>, name| limiter.or_else(|| number(name)).unwrap_or(0);
    if i32::get(&options.kept, "destroy_old_data").is_some_and(|destroy| destroy != 0) {
        engine.purge(0)?;
    }
    Ok(give(rocksdb_backup_engine_t {
        engine: Mutex::new(engine),
        vfs,
        stop: Arc::default(),
        backup_rate: rate(options.backup_limiter, "backup_rate_limit"),
        restore_rate: rate(options.restore_limiter, "restore_rate_limit"),
        progress_bytes: number("callback_trigger_interval_size").unwrap_or(PROGRESS_BYTES),
    }))
}

/// Closes a backup engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_close(engine: *mut rocksdb_backup_engine_t) {
    // SAFETY: the contract of the module.
    unsafe { free(engine) };
}

/// Ends the backup that is being made, and all later ones of this engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_stop_backup(engine: *mut rocksdb_backup_engine_t) {
    // SAFETY: the contract of the module.
    if let Some(engine) = unsafe { engine.as_ref() } {
        engine.stop.store(true, Ordering::Relaxed);
    }
}

/// Makes a backup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_backup_engine_create_new_backup_flush(engine, db, 0, errptr) };
}

/// Makes a backup, perhaps of tables alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_flush(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    flush_before_backup: c_uchar,
    errptr: ErrPtr,
) {
    let flush = flush_before_backup != 0;
    let options = CreateBackupOptions { flush, ..CreateBackupOptions::default() };
    // SAFETY: the contract of the module.
    unsafe { create(engine, db, options, None, null_mut(), errptr) };
}

/// Makes a backup with options, and stores its number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_with_options(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    backup_id: *mut u32,
    errptr: ErrPtr,
) {
    let note = (std::ptr::null(), 0);
    // SAFETY: the contract of the module.
    unsafe { create_with(engine, db, options, note, backup_id, errptr) };
}

/// Makes a backup with options and metadata of the caller, and stores its number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_with_metadata(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    app_metadata: *const c_char,
    app_metadata_length: usize,
    backup_id: *mut u32,
    errptr: ErrPtr,
) {
    let note = (app_metadata, app_metadata_length);
    // SAFETY: the contract of the module.
    unsafe { create_with(engine, db, options, note, backup_id, errptr) };
}

/// Makes a backup with the options of C.
///
/// # Safety
/// The contract of the module.
unsafe fn create_with(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    (note, length): (*const c_char, usize),
    backup_id: *mut u32,
    errptr: ErrPtr,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let options = options.as_ref();
        if options.is_some_and(|options| options.excludes) {
            let why = "all files of a database belong to its backup";
            return guard(errptr, (), || Err(refused("exclude_files_callback", why)));
        }
        let Some(note) = guard(errptr, None, || bytes(note, length).map(Some)) else { return };
        let flag = |name| options.and_then(|options| i32::get(&options.kept, name));
        let create_options = CreateBackupOptions {
            flush: flag("flush_before_backup").is_some_and(|flush| flush != 0),
            note: text_of_bytes(note).into_owned(),
            ..CreateBackupOptions::default()
        };
        let progress = options.and_then(|options| options.progress.clone());
        create(engine, db, create_options, progress, backup_id, errptr);
    }
}

/// Makes a backup.
///
/// # Safety
/// The contract of the module.
unsafe fn create(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: CreateBackupOptions,
    progress: Option<(Arc<State>, Progress)>,
    backup_id: *mut u32,
    errptr: ErrPtr,
) {
    // SAFETY: the caller's promise.
    unsafe {
        guard(errptr, (), || {
            let engine = engine.as_ref().ok_or_else(|| missing("the backup engine"))?;
            let db = the(db)?;
            let listener: Arc<dyn BackupListener> = Arc::new(Watch {
                stop: engine.stop.clone(),
                progress,
                progress_bytes: engine.progress_bytes.max(1),
                told: AtomicU64::new(0),
            });
            let rate = engine.backup_rate;
            let options = CreateBackupOptions { rate, listener: Some(listener), ..options };
            let made = engine.lock().create_with(db, &options)?;
            if let Some(backup_id) = backup_id.as_mut() {
                *backup_id = u32::try_from(made.id).unwrap_or(u32::MAX);
            }
            Ok(())
        });
    }
}

/// Keeps the newest backups and deletes the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_purge_old_backups(
    engine: *mut rocksdb_backup_engine_t,
    num_backups_to_keep: u32,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let engine = engine.as_ref().ok_or_else(|| missing("the backup engine"))?;
            let keep = usize::try_from(num_backups_to_keep).unwrap_or(usize::MAX);
            engine.lock().purge(keep).map(drop)
        });
    }
}

/// Verifies every byte of a backup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_verify_backup(
    engine: *mut rocksdb_backup_engine_t,
    backup_id: u32,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let engine = engine.as_ref().ok_or_else(|| missing("the backup engine"))?;
            let options = VerifyBackupOptions::default();
            let mut report = engine.lock().verify_with(backup_id.into(), &options)?;
            report.problems.append(&mut report.unreadable);
            report.problems.into_iter().next().map_or(Ok(()), Err)
        });
    }
}

/// Restores a backup into the directory `db_dir`, which must be missing or empty, and its WALs into
/// `wal_dir`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_restore_db_from_backup(
    engine: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    _restore_options: *const rocksdb_restore_options_t,
    backup_id: u32,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe { restore(engine, db_dir, wal_dir, Some(backup_id.into()), errptr) };
}

/// Restores the newest backup, as `rocksdb_backup_engine_restore_db_from_backup` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_restore_db_from_latest_backup(
    engine: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    _restore_options: *const rocksdb_restore_options_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe { restore(engine, db_dir, wal_dir, None, errptr) };
}

/// Restores a backup, or the newest one.
///
/// # Safety
/// The contract of the module.
unsafe fn restore(
    engine: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    id: Option<u64>,
    errptr: ErrPtr,
) {
    // SAFETY: the caller's promise.
    unsafe {
        guard(errptr, (), || {
            let engine = engine.as_ref().ok_or_else(|| missing("the backup engine"))?;
            if db_dir.is_null() {
                return Err(missing("db_dir"));
            }
            let (to, logs) = (path(db_dir), path(wal_dir));
            let wal_dir = (!wal_dir.is_null() && logs != to).then_some(logs);
            let rate = engine.restore_rate;
            let options = RestoreOptions { wal_dir, rate, ..RestoreOptions::default() };
            let backups = engine.lock();
            let id = id.map_or_else(|| backups.latest(), Ok)?;
            backups.restore_with(engine.vfs.clone(), id, to, &options)
        });
    }
}

/// A backup, as C sees it.
struct Info {
    info: BackupInfo,
    metadata: Vec<u8>,
}

/// The backups of an engine at one moment.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_backup_engine_info_t(Vec<Info>);

/// Returns the backups, the oldest first, without those whose record is damaged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_get_backup_info(
    engine: *mut rocksdb_backup_engine_t,
) -> *const rocksdb_backup_engine_info_t {
    // SAFETY: the contract of the module.
    let listed = quiet(Vec::new(), || unsafe {
        engine.as_ref().and_then(|engine| engine.lock().list().ok()).unwrap_or_default()
    });
    let whole = listed.into_iter().filter(|info| info.damage.is_none());
    let of = |info: BackupInfo| Info { metadata: bytes_of_text(&info.note).into_owned(), info };
    give(rocksdb_backup_engine_info_t(whole.map(of).collect()))
}

/// Returns the number of backups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_info_count(
    info: *const rocksdb_backup_engine_info_t,
) -> c_int {
    // SAFETY: the contract of the module.
    let count = unsafe { info.as_ref() }.map_or(0, |info| info.0.len());
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// Returns backup `index`, if there is one.
///
/// # Safety
/// The contract of the module.
unsafe fn at<'a>(info: *const rocksdb_backup_engine_info_t, index: c_int) -> Option<&'a Info> {
    // SAFETY: the caller's promise.
    unsafe { info.as_ref() }?.0.get(usize::try_from(index).ok()?)
}

/// Returns the metadata that the caller gave with a backup, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_info_app_metadata(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe { lend(at(info, index).map(|info| info.metadata.as_slice()), length) }
}

/// Defines functions that return a number of a backup, 0 if there is none at the index.
macro_rules! numbers {
    ($($(#[$doc:meta])* $function:ident: $type:ty = $number:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            info: *const rocksdb_backup_engine_info_t,
            index: c_int,
        ) -> $type {
            let number: fn(&BackupInfo) -> u64 = $number;
            // SAFETY: the contract of the module.
            let number = unsafe { at(info, index) }.map_or(0, |info| number(&info.info));
            <$type>::try_from(number).unwrap_or(<$type>::MAX)
        }
    )* };
}

numbers! {
    /// Returns the number of a backup, by which it is restored.
    rocksdb_backup_engine_info_backup_id: u32 = |info| info.id;
    /// Returns the number of files that a restore makes.
    rocksdb_backup_engine_info_number_files: u32 = |info| info.files;
    /// Returns the bytes of a backup.
    rocksdb_backup_engine_info_size: u64 = |info| info.bytes;
    /// Returns when a backup was made, in seconds since 1970.
    rocksdb_backup_engine_info_timestamp: i64 = |info| info.created;
}

/// Frees a list of backups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_info_destroy(
    info: *const rocksdb_backup_engine_info_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(info.cast_mut()) };
}
