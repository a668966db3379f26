//! A database of one library, and its answers.

mod handles;
mod ingests;
mod log;
mod reads;
mod upkeep;
mod writes;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::null_mut;

use crate::api::{Api, E, H, P};
use crate::op::{Kind, Op, Setup};

/// The names of the column families that are created and dropped.
const FAMILIES: [&str; 4] = ["default", "one", "two", "three"];
const SLOTS: usize = 3;

/// An iterator with the options that it needs.
struct Iterator {
    iter: H,
    options: H,
    /// `None` if the family was dropped since.
    family: Option<usize>,
    /// True if it has bounds and stays within a prefix.
    cut: bool,
    _bounds: [Vec<u8>; 2],
}

/// A database of one library, and its open handles.
pub(crate) struct Side<'a> {
    api: &'a Api,
    directory: CString,
    setup: Setup,
    options: H,
    reading: H,
    writing: H,
    flushing: H,
    db: H,
    families: [H; 4],
    /// Keys that were put once and not deleted, which may be singly deleted.
    once: [BTreeSet<Vec<u8>>; 4],
    iterators: [Option<Iterator>; SLOTS],
    snapshots: [H; SLOTS],
    batch: H,
    /// True if a range without keys was deleted. RocksDB may no longer count it after the next
    /// open.
    uncounted: bool,
    /// True if files were ingested. The engine decides whether that uses a sequence number.
    ingested: bool,
    /// The number of written files.
    files: u64,
    /// The number of answered calls.
    pub(crate) calls: u64,
}

impl<'a> Side<'a> {
    pub(crate) fn new(api: &'a Api, directory: &Path, setup: Setup) -> Side<'a> {
        // SAFETY: functions without conditions, and options that were just made.
        let (options, reading, writing, flushing, batch) = unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_write_buffer_size)(options, 64 << 10);
            (api.options_set_compression)(options, 0);
            // The tests read the WAL, so it must be kept.
            (api.options_set_WAL_ttl_seconds)(options, 1 << 20);
            let others = ((api.readoptions_create)(), (api.writeoptions_create)());
            (options, others.0, others.1, (api.flushoptions_create)(), (api.writebatch_create)())
        };
        crate::callbacks::install(api, options, setup);
        let directory = CString::new(directory.as_os_str().as_encoded_bytes());
        let mut side = Side {
            api,
            directory: directory.expect("no zeros in names"),
            setup,
            options,
            reading,
            writing,
            flushing,
            db: null_mut(),
            families: [null_mut(); 4],
            once: std::array::from_fn(|_| BTreeSet::new()),
            iterators: [const { None }; SLOTS],
            snapshots: [null_mut(); SLOTS],
            batch,
            uncounted: false,
            ingested: false,
            files: 0,
            calls: 0,
        };
        let opened = side.open(&["default"]);
        assert_eq!(opened, "ok");
        side
    }

    /// Does an operation and returns the answer.
    pub(crate) fn act(&mut self, op: &Op) -> String {
        if self.families[op.family].is_null() && op.kind != Kind::CreateFamily {
            // A missing column family cannot be used. Operations without one are still done.
            let op = Op { family: 0, ..op.clone() };
            return self.act(&op);
        }
        let ranges = matches!(op.kind, Kind::DeleteRange | Kind::BatchDeleteRange);
        self.uncounted |= ranges && op.key == op.end;
        match op.kind {
            Kind::Put
            | Kind::Merge
            | Kind::Delete
            | Kind::PutOnce
            | Kind::SingleDelete
            | Kind::DeleteRange => self.write_one(op),
            Kind::BatchPut
            | Kind::BatchMerge
            | Kind::BatchDelete
            | Kind::BatchDeleteRange
            | Kind::BatchSingleDelete
            | Kind::BatchLogData
            | Kind::BatchClear
            | Kind::BatchWrite
            | Kind::BatchSave
            | Kind::BatchRollback
            | Kind::BatchPop
            | Kind::BatchIterate
            | Kind::BatchIterateDefault
            | Kind::BatchData
            | Kind::BatchCopy => self.batch_of(op),
            Kind::Get
            | Kind::GetPinned
            | Kind::GetInto
            | Kind::MultiGet
            | Kind::BatchedMultiGet => self.read(op),
            Kind::IterOpen
            | Kind::IterSeek
            | Kind::IterSeekForPrev
            | Kind::IterFirst
            | Kind::IterLast
            | Kind::IterNext
            | Kind::IterPrev
            | Kind::IterRefresh
            | Kind::IterClose => self.iterate(op),
            Kind::Scan => self.scan(self.families[op.family]),
            Kind::Ingest | Kind::IngestWrong if !self.setup.ingests => String::new(),
            Kind::Ingest => self.ingest(op),
            Kind::IngestWrong => self.ingest_wrong(op),
            Kind::Properties => self.properties(op),
            Kind::MayExist => self.may_exist(op),
            Kind::Checkpoint => self.checkpoint(),
            Kind::Updates => self.updates(op),
            _ => self.manage(op),
        }
    }

    /// Returns the whole contents.
    pub(crate) fn everything(&mut self) -> String {
        let families = self.families.into_iter().filter(|family| !family.is_null());
        families.collect::<Vec<_>>().into_iter().map(|family| self.scan(family)).collect()
    }

    /// Makes a call that may fail. Returns its answer or the kind of its error.
    fn call<T>(&mut self, act: impl FnOnce(E) -> T) -> Result<T, String> {
        let mut error = null_mut();
        let answer = act(&raw mut error);
        self.calls += 1;
        if error.is_null() { Ok(answer) } else { Err(self.kind(error)) }
    }

    /// Does the same for a call without an answer.
    fn told(&mut self, act: impl FnOnce(E)) -> String {
        self.call(act).err().unwrap_or_else(|| "ok".to_owned())
    }

    /// Returns the kind of an error: the text before the colon.
    fn kind(&self, error: *mut c_char) -> String {
        // SAFETY: an error is a text from the library.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.api.free)(error.cast());
            text
        };
        if std::env::var_os("SATEEN_PEERS_ERRORS").is_some() {
            eprintln!("{text}");
        }
        text.split(':').next().unwrap_or_default().to_owned()
    }
}

impl Drop for Side<'_> {
    fn drop(&mut self) {
        self.close();
        // SAFETY: nothing uses them any more.
        unsafe {
            (self.api.writebatch_destroy)(self.batch);
            (self.api.readoptions_destroy)(self.reading);
            (self.api.options_destroy)(self.options);
            (self.api.free)(null_mut());
        }
    }
}

/// Returns the bytes at `data`.
///
/// # Safety
/// `data` is null or points to `length` bytes that live long enough.
pub(crate) unsafe fn bytes<'a>(data: P, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// Returns bytes as text; of long ones the beginning, the length and a sum.
pub(crate) fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= 40 {
        return bytes.escape_ascii().to_string();
    }
    let sum = bytes.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    format!("{}..({}, {sum:x})", bytes[..10].escape_ascii(), bytes.len())
}

fn at(bytes: &[u8]) -> P {
    bytes.as_ptr().cast()
}
