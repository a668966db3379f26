//! Compactions in other processes: services, which send jobs there, and the call that does the work
//! there.
//!
//! RocksDB's `wait` blocks until the other process has answered. Each job therefore has a thread,
//! which calls `schedule` and `wait` and answers the engine's job. At the end of a database, or of
//! its background work, `cancel_awaiting_jobs` is called once, and nobody waits for these threads.
//! The service's state is freed by its destructor once the last of them has ended.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sateen::{
    CompactionService, Db, Error, OpenAndCompactOptions, RemoteCompaction, RemoteCompactionEnd,
    RemoteCompactionInfo, RemoteCompactions, bytes_of_text,
};

use crate::abi::{
    ErrPtr, bytes, bytes_or_none, free, give, guard, lend, malloc_copy, missing, path, quiet, take,
    text,
};
use crate::callbacks::State;
use crate::compaction_filter::{
    rocksdb_compactionfilter_t, rocksdb_compactionfilterfactory_t,
    rocksdb_options_set_compaction_filter, rocksdb_options_set_compaction_filter_factory,
};
use crate::comparator::{rocksdb_comparator_t, rocksdb_options_set_comparator};
use crate::environment::{Place, rocksdb_env_t, rocksdb_options_set_env};
use crate::listeners::rocksdb_eventlistener_t;
use crate::merge::rocksdb_mergeoperator_t;
use crate::odd_options::{CancelFlag, rocksdb_compactionservice_scheduleresponse_t};
use crate::option_names::ours;
use crate::options::{
    change, checked, rocksdb_options_create, rocksdb_options_destroy,
    rocksdb_options_set_merge_operator, rocksdb_options_t,
};
use crate::prefix::{rocksdb_options_set_prefix_extractor, rocksdb_slicetransform_t};
use crate::settings::{Settings, keeps, made};
use crate::value_codes::reason_code;
use crate::value_files::is_half;

/// RocksDB's statuses.
const SUCCESS: c_int = 0;
const ABORTED: c_int = 2;
const USE_LOCAL: c_int = 3;

type Schedule = unsafe extern "C" fn(
    *mut c_void,
    *const rocksdb_compactionservice_jobinfo_t,
    *const c_char,
    usize,
) -> *mut rocksdb_compactionservice_scheduleresponse_t;
type Wait = unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_char, *mut usize) -> c_int;
type Cancel = unsafe extern "C" fn(*mut c_void);
type Installed = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

/// A job, as the caller's functions see it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionservice_jobinfo_t {
    info: RemoteCompactionInfo,
    database: Vec<u8>,
    family: Vec<u8>,
    session: String,
}

/// A service of functions.
struct Service {
    state: State,
    schedule: Option<Schedule>,
    wait: Option<Wait>,
    cancel: Option<Cancel>,
    installed: Option<Installed>,
    name: String,
    /// The ids of the jobs that run, as `schedule` named them.
    ids: Mutex<BTreeMap<u64, CString>>,
}

/// What the threads of the jobs share with the database.
struct Shared(Arc<Service>);

impl Service {
    fn ids(&self) -> MutexGuard<'_, BTreeMap<u64, CString>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a job, waits for the result and answers.
    fn run(&self, job: RemoteCompaction) {
        let Some(schedule) = self.schedule else { return job.decline() };
        if job.is_cancelled() {
            return;
        }
        let info = job.info().clone();
        let number = info.job;
        let family = bytes_of_text(&info.column_family).into_owned();
        let database = info.database.as_os_str().as_bytes().to_vec();
        let session = format!("{:p}", std::ptr::from_ref(self));
        let info = rocksdb_compactionservice_jobinfo_t { info, database, family, session };
        let input = job.input();
        // SAFETY: RocksDB calls it with objects that live as long as the call, and takes what it
        // returns.
        let response = unsafe {
            let (address, length) = (input.as_ptr().cast(), input.len());
            take(schedule(self.state.state, &raw const info, address, length))
        };
        let Some(response) = response else {
            return job.fail("the service returned no response");
        };
        match response.status {
            SUCCESS => {}
            USE_LOCAL => return job.decline(),
            status => return job.fail(format!("the service returned the status {status}")),
        }
        let Some(wait) = self.wait else { return job.decline() };
        let id = CString::new(&*bytes_of_text(&response.job)).unwrap_or_default();
        self.ids().insert(number, id.clone());
        if job.is_cancelled() {
            self.ids().remove(&number);
            return;
        }
        let (mut result, mut length) = (null_mut::<c_char>(), 0);
        // SAFETY: RocksDB calls it with places that it may write to.
        let status =
            unsafe { wait(self.state.state, id.as_ptr(), &raw mut result, &raw mut length) };
        // SAFETY: what it stored is from `malloc`, and has that length.
        let result = unsafe {
            let copied = bytes_or_none(result, length).to_vec();
            libc::free(result.cast());
            copied
        };
        match status {
            SUCCESS => job.finish(result),
            USE_LOCAL => job.decline(),
            status => job.fail(format!("the service returned the status {status}")),
        }
    }
}

impl CompactionService for Shared {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn start(&self, job: RemoteCompaction) {
        let service = self.0.clone();
        let thread = std::thread::Builder::new().name("sateen-remote".into());
        // A thread that cannot start drops the job, which has failed then.
        let _failed = thread.spawn(move || quiet((), || service.run(job)));
    }

    fn cancel(&self, job: &RemoteCompactionInfo) {
        self.0.ids().remove(&job.job);
    }

    fn closing(&self, _database: &Path) {
        if let Some(cancel) = self.0.cancel {
            // SAFETY: RocksDB calls it from any thread.
            unsafe { cancel(self.0.state.state) };
        }
    }

    fn ended(&self, job: &RemoteCompactionInfo, end: &RemoteCompactionEnd) {
        let id = self.0.ids().remove(&job.job);
        let (Some(installed), Some(id)) = (self.0.installed, id) else { return };
        let status = match end {
            RemoteCompactionEnd::Installed => SUCCESS,
            RemoteCompactionEnd::RunLocally(_) => USE_LOCAL,
            _ => ABORTED,
        };
        // SAFETY: RocksDB calls it with a text that lives as long as the call.
        unsafe { installed(self.0.state.state, id.as_ptr(), status) };
    }
}

/// A service. Options take it over.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionservice_t(RemoteCompactions);

/// Makes a service of functions. A null `schedule` or `wait` has the database compact by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    schedule: Option<Schedule>,
    name: *const c_char,
    wait: Option<Wait>,
    cancel_awaiting_jobs: Option<Cancel>,
    on_installation: Option<Installed>,
) -> *mut rocksdb_compactionservice_t {
    quiet(null_mut(), || {
        give(rocksdb_compactionservice_t(RemoteCompactions::new(Shared(Arc::new(Service {
            state: State { state, destructor },
            schedule,
            wait,
            cancel: cancel_awaiting_jobs,
            installed: on_installation,
            // SAFETY: the contract of the crate.
            name: unsafe { text(name) },
            ids: Mutex::default(),
        })))))
    })
}

/// Sets the service, which the options own from now on. Null removes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compaction_service(
    options: *mut rocksdb_options_t,
    service: *mut rocksdb_compactionservice_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let service = take(service).map(|service| service.0);
        change(options, |options| options.0.compaction_service = service);
    }
}

macro_rules! of_jobs {
    ($($(#[$doc:meta])* $name:ident -> $type:ty: $get:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(info: *const rocksdb_compactionservice_jobinfo_t) -> $type {
            let get: fn(&RemoteCompactionInfo) -> $type = $get;
            // SAFETY: the contract of the crate.
            unsafe { info.as_ref() }.map_or_else(Default::default, |info| get(&info.info))
        }
    )* };
}

of_jobs! {
    /// Returns the uppermost level of the inputs.
    rocksdb_compactionservice_jobinfo_t_get_base_input_level -> c_int:
        |info| info.input_level.into();
    /// Returns the level of the outputs.
    rocksdb_compactionservice_jobinfo_t_get_output_level -> c_int: |info| info.output_level.into();
    /// Returns the number of the column family.
    rocksdb_compactionservice_jobinfo_t_get_cf_id -> u32: |info| info.column_family_id;
    /// Returns the number of the job, which no other job has.
    rocksdb_compactionservice_jobinfo_t_get_job_id -> u64: |info| info.job;
    /// Returns why it is compacted.
    rocksdb_compactionservice_jobinfo_t_get_compaction_reason -> c_int:
        |info| c_int::try_from(reason_code(info.reason, info.is_manual)).unwrap_or(0);
    /// Returns the priority of compactions: RocksDB's LOW.
    rocksdb_compactionservice_jobinfo_t_get_priority -> c_int: |_| 1;
    /// Returns 1 if nothing older shares keys with the outputs.
    rocksdb_compactionservice_jobinfo_t_is_bottommost_level -> c_uchar:
        |info| info.is_bottommost.into();
    /// Returns 1 if it takes all tables.
    rocksdb_compactionservice_jobinfo_t_is_full_compaction -> c_uchar: |info| info.is_full.into();
    /// Returns 1 if the caller asked for it.
    rocksdb_compactionservice_jobinfo_t_is_manual_compaction -> c_uchar:
        |info| info.is_manual.into();
}

macro_rules! texts_of_jobs {
    ($($(#[$doc:meta])* $name:ident: $get:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            info: *const rocksdb_compactionservice_jobinfo_t,
            length: *mut usize,
        ) -> *const c_char {
            let get: fn(&rocksdb_compactionservice_jobinfo_t) -> &[u8] = $get;
            // SAFETY: the contract of the crate.
            unsafe { lend(info.as_ref().map(get), length) }
        }
    )* };
}

texts_of_jobs! {
    /// Returns the name of the column family.
    rocksdb_compactionservice_jobinfo_t_get_cf_name: |info| &info.family;
    /// Returns the directory of the database.
    rocksdb_compactionservice_jobinfo_t_get_db_name: |info| &info.database;
    /// Returns the identity of the database.
    rocksdb_compactionservice_jobinfo_t_get_db_id: |info| info.info.uuid.as_bytes();
    /// Returns what tells services of one process apart.
    rocksdb_compactionservice_jobinfo_t_get_db_session_id: |info| info.session.as_bytes();
}

/// What the process that compacts adds to the options that a job has.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compaction_service_options_override_t {
    options: rocksdb_options_t,
    kept: Settings,
    /// Names and values of options.
    named: Vec<(String, String)>,
    /// What was added and is not implemented.
    absent: Option<&'static str>,
}

keeps!(rocksdb_compaction_service_options_override_t: kept);

/// Makes overrides that add nothing.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_service_options_override_create()
-> *mut rocksdb_compaction_service_options_override_t {
    let options = rocksdb_options_create();
    // SAFETY: the options are new.
    unsafe {
        let made = rocksdb_compaction_service_options_override_create_from_options(options);
        rocksdb_options_destroy(options);
        made
    }
}

/// Makes overrides with the comparator, merge operator, filters, prefix extractor and environment
/// of options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_service_options_override_create_from_options(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_compaction_service_options_override_t {
    // SAFETY: the contract of the crate.
    let Some(options) = (unsafe { options.as_ref() }) else { return null_mut() };
    quiet(null_mut(), || {
        let options = options.clone();
        let (kept, named, absent) = (Settings::default(), Vec::new(), None);
        give(rocksdb_compaction_service_options_override_t { options, kept, named, absent })
    })
}

/// Frees overrides.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_service_options_override_destroy(
    overrides: *mut rocksdb_compaction_service_options_override_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(overrides) };
}

macro_rules! overrides {
    ($($(#[$doc:meta])* $name:ident($type:ty): $set:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            overrides: *mut rocksdb_compaction_service_options_override_t,
            value: *mut $type,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                if let Some(overrides) = overrides.as_mut() {
                    $set(&raw mut overrides.options, value);
                }
            }
        }
    )* };
}

overrides! {
    /// Sets the environment, whose file system has the database.
    rocksdb_compaction_service_options_override_set_env(rocksdb_env_t): rocksdb_options_set_env;
    /// Sets the comparator. The caller frees it.
    rocksdb_compaction_service_options_override_set_comparator(rocksdb_comparator_t):
        rocksdb_options_set_comparator;
    /// Sets the merge operator, and takes it over.
    rocksdb_compaction_service_options_override_set_merge_operator(rocksdb_mergeoperator_t):
        rocksdb_options_set_merge_operator;
    /// Sets the compaction filter. The caller frees it.
    rocksdb_compaction_service_options_override_set_compaction_filter(rocksdb_compactionfilter_t):
        rocksdb_options_set_compaction_filter;
    /// Sets what makes compaction filters, and takes it over.
    rocksdb_compaction_service_options_override_set_compaction_filter_factory(
        rocksdb_compactionfilterfactory_t):
        rocksdb_options_set_compaction_filter_factory;
    /// Sets the prefix extractor, and takes it over.
    rocksdb_compaction_service_options_override_set_prefix_extractor(rocksdb_slicetransform_t):
        rocksdb_options_set_prefix_extractor;
}

/// Sets an option by its name. Whether there is one is checked when a compaction gets it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_service_options_override_set_option(
    overrides: *mut rocksdb_compaction_service_options_override_t,
    key: *const c_char,
    value: *const c_char,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(overrides) = overrides.as_mut() {
            let pair = (text(key), text(value));
            quiet((), || overrides.named.push(pair));
        }
    }
}

/// Has no effect: the database that installs a compaction counts it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_service_options_override_set_statistics(
    _overrides: *mut rocksdb_compaction_service_options_override_t,
    _options: *mut rocksdb_options_t,
) {
}

/// Takes the listener over, and has compactions with these overrides refused: only the database
/// calls listeners.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_service_options_override_add_event_listener(
    overrides: *mut rocksdb_compaction_service_options_override_t,
    listener: *mut rocksdb_eventlistener_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(overrides) = overrides.as_mut() {
            overrides.absent = Some("event listeners");
            free(listener);
        }
    }
}

macro_rules! refused {
    ($($(#[$doc:meta])* $name:ident: $what:literal;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            overrides: *mut rocksdb_compaction_service_options_override_t,
            _object: *mut c_void,
        ) {
            // SAFETY: the contract of the crate.
            if let Some(overrides) = unsafe { overrides.as_mut() } {
                overrides.absent = Some($what);
            }
        }
    )* };
}

refused! {
    /// Has compactions with these overrides refused: there are no such collectors.
    rocksdb_compaction_service_options_override_add_table_properties_collector_factory:
        "collectors of table properties";
}

/// Options of a compaction for another process.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_open_and_compact_options_t {
    kept: Settings,
    cancelled: Option<Arc<AtomicBool>>,
}

keeps!(rocksdb_open_and_compact_options_t: kept);
made!(rocksdb_open_and_compact_options_t:
    rocksdb_open_and_compact_options_create, rocksdb_open_and_compact_options_destroy);

/// Sets a flag. When another thread raises the flag, the compaction ends. The options keep the flag
/// alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact_options_set_canceled(
    options: *mut rocksdb_open_and_compact_options_t,
    flag: *mut c_uchar,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let (Some(options), Some(flag)) = (options.as_mut(), flag.cast::<CancelFlag>().as_ref())
        {
            quiet((), || options.cancelled = Some(flag.0.clone()));
        }
    }
}

/// Carries out a compaction for another process. The result is from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact(
    db_path: *const c_char,
    output_directory: *const c_char,
    input: *const c_char,
    input_length: usize,
    output_length: *mut usize,
    overrides: *const rocksdb_compaction_service_options_override_t,
    errptr: ErrPtr,
) -> *mut c_char {
    let options = rocksdb_open_and_compact_options_t::default();
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_open_and_compact_with_options(
            &raw const options,
            db_path,
            output_directory,
            input,
            input_length,
            output_length,
            overrides,
            errptr,
        )
    }
}

/// Does the same with options. A compaction that was interrupted is not resumed, whatever
/// `allow_resumption` is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact_with_options(
    options: *const rocksdb_open_and_compact_options_t,
    db_path: *const c_char,
    output_directory: *const c_char,
    input: *const c_char,
    input_length: usize,
    output_length: *mut usize,
    overrides: *const rocksdb_compaction_service_options_override_t,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let overrides = overrides.as_ref().ok_or_else(|| missing("the overrides"))?;
            if db_path.is_null() || output_directory.is_null() {
                return Err(missing("a directory"));
            }
            if let Some(absent) = overrides.absent {
                let text = format!("overrides with {absent} are not implemented");
                return Err(Error::InvalidArgument(text));
            }
            let Place { vfs, path: database } = Place::new(&raw const overrides.options, db_path);
            let mut with = OpenAndCompactOptions {
                objects: checked(&raw const overrides.options)?.column_family,
                cancelled: options.as_ref().and_then(|options| options.cancelled.clone()),
                ..OpenAndCompactOptions::default()
            };
            for (name, value) in &overrides.named {
                let pairs = ours(name, value)?.into_iter();
                with.options.extend(pairs.filter(|(name, _)| !is_half(name)));
            }
            let (output, input) = (path(output_directory), bytes(input, input_length)?);
            let result = Db::open_and_compact_with(vfs, database, output, input, &with)?;
            if let Some(length) = output_length.as_mut() {
                *length = result.len();
            }
            Ok(malloc_copy(&result))
        })
    }
}
