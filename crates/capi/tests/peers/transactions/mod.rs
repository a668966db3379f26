//! The same random calls of transactions and of batches with an index, to this library and to
//! RocksDB, by one thread. A lock that another transaction has is refused at once.
//!
//! `SATEEN_PEERS_TRANSACTIONS=1000000` makes that many calls. A failure prints the seed and the
//! operations up to the difference; `SATEEN_PEERS_TRANSACTION_SEED` begins with that seed.

mod op;

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use crate::api::{Api, E, H, P};
use crate::op::{Rng, Setup};
use crate::side::{bytes, shown};
use op::{Act, Op, State};

const OPERATIONS: usize = 300;
const SLOTS: usize = 3;
const SHORT: Duration = Duration::from_secs(5);
const FAMILIES: [&CStr; 2] = [c"default", c"other"];

/// A database with transactions of one library.
struct Side<'a> {
    api: &'a Api,
    path: CString,
    optimistic: bool,
    options: H,
    of_db: H,
    of_transactions: H,
    reading: H,
    writing: H,
    db: H,
    base: H,
    families: [H; 2],
    slots: [H; SLOTS],
    states: [State; SLOTS],
    index: H,
    names: u64,
    calls: u64,
}

impl<'a> Side<'a> {
    fn new(api: &'a Api, path: &Path, optimistic: bool) -> Side<'a> {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero");
        // SAFETY: functions without conditions.
        let mut side = unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_create_missing_column_families)(options, 1);
            crate::callbacks::install(api, options, Setup { merges: true, ..Setup::default() });
            let of_db = (api.transactiondb_options_create)();
            (api.transactiondb_options_set_transaction_lock_timeout)(of_db, 0);
            (api.transactiondb_options_set_default_lock_timeout)(of_db, 0);
            let of_transactions = if optimistic {
                (api.optimistictransaction_options_create)()
            } else {
                (api.transaction_options_create)()
            };
            Side {
                api,
                path,
                optimistic,
                options,
                of_db,
                of_transactions,
                reading: (api.readoptions_create)(),
                writing: (api.writeoptions_create)(),
                db: null_mut(),
                base: null_mut(),
                families: [null_mut(); 2],
                slots: [null_mut(); SLOTS],
                states: [State::None; SLOTS],
                index: (api.writebatch_wi_create)(0, 1),
                names: 0,
                calls: 0,
            }
        };
        side.open();
        side
    }

    fn open(&mut self) {
        let api = self.api;
        let names = FAMILIES.map(CStr::as_ptr);
        let each = [self.options; 2];
        let (families, mut error) = (self.families.as_mut_ptr(), null_mut());
        let count: c_int = 2;
        // SAFETY: the lists have two members each.
        unsafe {
            let (path, names, each) = (self.path.as_ptr(), names.as_ptr(), each.as_ptr());
            (self.db, self.base) = if self.optimistic {
                let open = api.optimistictransactiondb_open_column_families;
                let db = open(self.options, path, count, names, each, families, &raw mut error);
                (db, (api.optimistictransactiondb_get_base_db)(db))
            } else {
                let (open, of_db) = (api.transactiondb_open_column_families, self.of_db);
                let options = self.options;
                let db = open(options, of_db, path, count, names, each, families, &raw mut error);
                (db, (api.transactiondb_get_base_db)(db))
            };
        }
        assert!(error.is_null(), "{}", self.kind(error));
    }

    fn close(&mut self) {
        let api = self.api;
        // SAFETY: nothing uses them any more.
        unsafe {
            for slot in &mut self.slots {
                if !slot.is_null() {
                    (api.transaction_destroy)(std::mem::replace(slot, null_mut()));
                }
            }
            self.states = [State::None; SLOTS];
            self.families.iter().for_each(|family| (api.column_family_handle_destroy)(*family));
            if self.optimistic {
                (api.optimistictransactiondb_close_base_db)(self.base);
                (api.optimistictransactiondb_close)(self.db);
            } else {
                (api.transactiondb_close_base_db)(self.base);
                (api.transactiondb_close)(self.db);
            }
        }
    }

    /// Returns the kind of an error: the text before the colon.
    fn kind(&self, error: *mut c_char) -> String {
        // SAFETY: an error is a text from the library.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.api.free)(error.cast());
            text
        };
        text.split(':').next().unwrap_or_default().to_owned()
    }

    fn told(&mut self, act: impl FnOnce(E)) -> String {
        let mut error = null_mut();
        act(&raw mut error);
        self.calls += 1;
        if error.is_null() { "ok".to_owned() } else { self.kind(error) }
    }

    fn got(&mut self, act: impl FnOnce(*mut usize, E) -> *mut c_char) -> String {
        let (mut error, mut length) = (null_mut(), 0);
        let value = act(&raw mut length, &raw mut error);
        self.calls += 1;
        if !error.is_null() {
            return self.kind(error);
        }
        if value.is_null() {
            return "none".to_owned();
        }
        // SAFETY: the library's value, of that length.
        unsafe {
            let text = format!("= {}", shown(bytes(value, length)));
            (self.api.free)(value.cast());
            text
        }
    }

    /// Shows what an iterator shows, in both directions and from a key on, and frees it.
    fn shown(&mut self, iter: H, key: &[u8]) -> String {
        let (api, mut text) = (self.api, String::new());
        // SAFETY: an iterator of the library.
        unsafe {
            let mut walk = |next: unsafe extern "C" fn(H), turn: bool| {
                let mut steps = 0;
                while (api.iter_valid)(iter) != 0 {
                    let (mut key, mut value) = (0, 0);
                    let k = (api.iter_key)(iter, &raw mut key);
                    let v = (api.iter_value)(iter, &raw mut value);
                    let _ = writeln!(text, "{} {}", shown(bytes(k, key)), shown(bytes(v, value)));
                    steps += 1;
                    // Back and forth once in a while.
                    match turn && steps % 3 == 0 && steps < 30 {
                        true if std::ptr::fn_addr_eq(next, api.iter_next) => (api.iter_prev)(iter),
                        _ => next(iter),
                    }
                    if steps > 60 {
                        break;
                    }
                }
                let _ = writeln!(text, "end after {steps}");
            };
            (api.iter_seek_to_first)(iter);
            walk(api.iter_next, false);
            (api.iter_seek_to_last)(iter);
            walk(api.iter_prev, false);
            (api.iter_seek)(iter, key.as_ptr().cast(), key.len());
            walk(api.iter_next, true);
            (api.iter_seek_for_prev)(iter, key.as_ptr().cast(), key.len());
            walk(api.iter_prev, false);
        }
        // SAFETY: as above.
        let end = self.told(|error| unsafe { (api.iter_get_error)(iter, error) });
        // SAFETY: as above.
        unsafe { (api.iter_destroy)(iter) };
        self.calls += 20;
        text + &end
    }

    fn act(&mut self, op: &Op) -> String {
        match op.act {
            Act::PlainPut | Act::PlainDelete | Act::PlainBatch => self.plain(op),
            Act::Reopen => self.reopen(),
            Act::Begin => self.begin(op),
            Act::IndexPut
            | Act::IndexMerge
            | Act::IndexDelete
            | Act::IndexGet
            | Act::IndexGetAbove
            | Act::IndexScan
            | Act::IndexSave
            | Act::IndexRollback
            | Act::IndexWrite => self.index(op),
            _ => self.transact(op),
        }
    }

    fn begin(&mut self, op: &Op) -> String {
        let Side { api, db, writing, of_transactions, slots, .. } = self;
        if self.states[op.slot] == State::Prepared {
            return String::new();
        }
        let set_snapshot = u8::from(op.bits & 1 == 0);
        // SAFETY: open handles.
        unsafe {
            let old = slots[op.slot];
            slots[op.slot] = if self.optimistic {
                let set = api.optimistictransaction_options_set_set_snapshot;
                set(*of_transactions, set_snapshot);
                (api.optimistictransaction_begin)(*db, *writing, *of_transactions, old)
            } else {
                (api.transaction_options_set_set_snapshot)(*of_transactions, set_snapshot);
                (api.transaction_begin)(*db, *writing, *of_transactions, old)
            };
            assert!(old.is_null() || old == slots[op.slot]);
        }
        self.states[op.slot] = State::Open;
        self.calls += 1;
        String::new()
    }

    /// Writes to the database past all transactions, or with locks.
    fn plain(&mut self, op: &Op) -> String {
        let Side { api, db, base, writing, families, optimistic, .. } = *self;
        let family = families[op.family];
        let (key, key_length) = (op.key.as_ptr().cast(), op.key.len());
        let (value, length) = (op.value.as_ptr().cast(), op.value.len());
        // SAFETY: open handles; the bytes live as long as the calls.
        self.told(|error| unsafe {
            match op.act {
                Act::PlainPut if optimistic => {
                    (api.put_cf)(base, writing, family, key, key_length, value, length, error);
                }
                Act::PlainPut => {
                    let put = api.transactiondb_put_cf;
                    put(db, writing, family, key, key_length, value, length, error);
                }
                Act::PlainDelete if optimistic => {
                    (api.delete_cf)(base, writing, family, key, key_length, error);
                }
                Act::PlainDelete => {
                    let delete = api.transactiondb_delete_cf;
                    delete(db, writing, family, key, key_length, error);
                }
                _ => {
                    let batch = (api.writebatch_create)();
                    (api.writebatch_put_cf)(batch, families[0], key, key_length, value, length);
                    (api.writebatch_delete_cf)(batch, families[1], key, key_length);
                    if optimistic {
                        (api.write)(base, writing, batch, error);
                    } else {
                        (api.transactiondb_write)(db, writing, batch, error);
                    }
                    (api.writebatch_destroy)(batch);
                }
            }
        })
    }

    fn transact(&mut self, op: &Op) -> String {
        let Side { api, reading, families, slots, .. } = *self;
        let (slot, state, family) = (slots[op.slot], self.states[op.slot], families[op.family]);
        let (key, key_length) = (op.key.as_ptr().cast(), op.key.len());
        let (value, length) = (op.value.as_ptr().cast(), op.value.len());
        let changes = !matches!(op.act, Act::Get | Act::Scan | Act::Commit | Act::Rollback);
        if state == State::None || state == State::Prepared && changes {
            return String::new();
        }
        // SAFETY: open handles; the bytes live as long as the calls.
        unsafe {
            match op.act {
                Act::Put => self.told(|error| {
                    (api.transaction_put_cf)(slot, family, key, key_length, value, length, error);
                }),
                Act::Merge => self.told(|error| {
                    (api.transaction_merge_cf)(slot, family, key, key_length, value, length, error);
                }),
                Act::Delete => self.told(|error| {
                    (api.transaction_delete_cf)(slot, family, key, key_length, error);
                }),
                Act::Get => self.read(op),
                Act::GetForUpdate => {
                    let exclusive = u8::from(op.bits & 3 != 0);
                    self.got(|length, error| {
                        let get = api.transaction_get_for_update_cf;
                        get(slot, reading, family, key, key_length, length, exclusive, error)
                    })
                }
                Act::Scan => {
                    let iter = (api.transaction_create_iterator_cf)(slot, reading, family);
                    self.shown(iter, &op.key)
                }
                Act::Save => {
                    (api.transaction_set_savepoint)(slot);
                    String::new()
                }
                Act::RollbackToSave => {
                    self.told(|error| (api.transaction_rollback_to_savepoint)(slot, error))
                }
                Act::Rollback => {
                    if state == State::Prepared {
                        self.states[op.slot] = State::None;
                    }
                    self.told(|error| (api.transaction_rollback)(slot, error))
                }
                Act::Commit => {
                    let told = self.told(|error| (api.transaction_commit)(slot, error));
                    if told == "ok" {
                        self.states[op.slot] = State::None;
                    }
                    told
                }
                Act::Prepare if self.optimistic => String::new(),
                Act::Prepare => {
                    self.names += 1;
                    let name = format!("name {:04}", self.names);
                    let (name, length) = (name.as_ptr().cast(), name.len());
                    let named =
                        self.told(|error| (api.transaction_set_name)(slot, name, length, error));
                    let told = self.told(|error| (api.transaction_prepare)(slot, error));
                    if told == "ok" {
                        self.states[op.slot] = State::Prepared;
                    }
                    format!("{named} {told}")
                }
                Act::Rebuild => {
                    let batch = (api.writebatch_create)();
                    (api.writebatch_put_cf)(batch, family, key, key_length, value, length);
                    let told = self.told(|error| {
                        (api.transaction_rebuild_from_writebatch)(slot, batch, error);
                    });
                    (api.writebatch_destroy)(batch);
                    told
                }
                _ => {
                    let lent = (api.transaction_get_writebatch_wi)(slot);
                    let count = (api.writebatch_wi_count)(lent);
                    let mut length = 0;
                    let data = (api.writebatch_wi_data)(lent, &raw mut length);
                    let copy = (api.writebatch_create_from)(data, length);
                    let copied = (api.writebatch_count)(copy);
                    (api.writebatch_destroy)(copy);
                    (api.free)(lent);
                    format!("{count} {copied}")
                }
            }
        }
    }

    /// Reads a key: as it is now, in a handle, or at the snapshot of the transaction.
    fn read(&mut self, op: &Op) -> String {
        let Side { api, reading, families, slots, .. } = *self;
        let (slot, family) = (slots[op.slot], families[op.family]);
        let (key, key_length) = (op.key.as_ptr().cast(), op.key.len());
        // SAFETY: open handles; the bytes live as long as the calls.
        unsafe {
            if op.bits & 7 == 0 {
                let mut found = String::from("none");
                let told = self.told(|error| {
                    let get = api.transaction_get_pinned_cf;
                    let value = get(slot, reading, family, key, key_length, error);
                    if !value.is_null() {
                        let mut length = 0;
                        let data = (api.pinnableslice_value)(value, &raw mut length);
                        found = shown(bytes(data, length));
                        (api.pinnableslice_destroy)(value);
                    }
                });
                return format!("{told} {found}");
            }
            let snapshot =
                if op.bits & 3 == 1 { (api.transaction_get_snapshot)(slot) } else { null_mut() };
            (api.readoptions_set_snapshot)(reading, snapshot);
            let got = self.got(|length, error| {
                (api.transaction_get_cf)(slot, reading, family, key, key_length, length, error)
            });
            (api.readoptions_set_snapshot)(reading, null_mut());
            (api.free)(snapshot);
            got
        }
    }

    fn index(&mut self, op: &Op) -> String {
        let Side { api, base, reading, writing, options, index, families, .. } = *self;
        let family = families[op.family];
        let (key, key_length): (P, _) = (op.key.as_ptr().cast(), op.key.len());
        let (value, length) = (op.value.as_ptr().cast(), op.value.len());
        // SAFETY: open handles; the bytes live as long as the calls.
        unsafe {
            match op.act {
                Act::IndexPut => {
                    (api.writebatch_wi_put_cf)(index, family, key, key_length, value, length);
                }
                Act::IndexMerge => {
                    (api.writebatch_wi_merge_cf)(index, family, key, key_length, value, length);
                }
                Act::IndexDelete => {
                    (api.writebatch_wi_delete_cf)(index, family, key, key_length);
                }
                Act::IndexGet => {
                    return self.got(|length, error| {
                        let get = api.writebatch_wi_get_from_batch_cf;
                        get(index, options, family, key, key_length, length, error)
                    });
                }
                Act::IndexGetAbove => {
                    return self.got(|length, error| {
                        let get = api.writebatch_wi_get_from_batch_and_db_cf;
                        get(index, base, reading, family, key, key_length, length, error)
                    });
                }
                Act::IndexScan => {
                    let iter = (api.create_iterator_cf)(base, reading, family);
                    let merge = api.writebatch_wi_create_iterator_with_base_cf;
                    let iter = merge(index, iter, family);
                    return self.shown(iter, &op.key);
                }
                Act::IndexSave => (api.writebatch_wi_set_save_point)(index),
                Act::IndexRollback => {
                    return self
                        .told(|error| (api.writebatch_wi_rollback_to_save_point)(index, error));
                }
                _ => {
                    let told =
                        self.told(|error| (api.write_writebatch_wi)(base, writing, index, error));
                    (api.writebatch_wi_clear)(index);
                    return told;
                }
            }
            let mut length = 0;
            let data = (api.writebatch_wi_data)(index, &raw mut length);
            self.calls += 3;
            format!("{} {}", (api.writebatch_wi_count)(index), shown(bytes(data, length)))
        }
    }

    /// Closes the database, opens it again, and ends the transactions that are prepared, by turns
    /// with a commit and a rollback. Until then their keys are locked here and not in RocksDB, so
    /// that other transactions would get other answers (docs/c_abi/transactions.md).
    fn reopen(&mut self) -> String {
        let api = self.api;
        self.close();
        self.open();
        if self.optimistic {
            return String::new();
        }
        let mut count = 0;
        // SAFETY: an open database; the list has `count` members.
        let mut found: Vec<(String, H)> = unsafe {
            let list = (api.transactiondb_get_prepared_transactions)(self.db, &raw mut count);
            let found = (0..count).map(|nth| {
                let (transaction, mut length) = (*list.add(nth), 0);
                let name = (api.transaction_get_name)(transaction, &raw mut length);
                let text = shown(bytes(name, length));
                (api.free)(name.cast());
                (text, transaction)
            });
            let found = found.collect();
            (api.free)(list.cast());
            found
        };
        found.sort();
        let ended = found.into_iter().enumerate().map(|(slot, (name, transaction))| {
            (self.slots[slot], self.states[slot]) = (transaction, State::None);
            let end = if slot % 2 == 0 { api.transaction_commit } else { api.transaction_rollback };
            // SAFETY: an open transaction.
            format!("{name} {}", self.told(|error| unsafe { end(transaction, error) }))
        });
        ended.collect::<Vec<_>>().join(",")
    }

    fn everything(&mut self) -> String {
        let Side { api, base, reading, families, .. } = *self;
        let shown = families.map(|family| {
            // SAFETY: open handles.
            let iter = unsafe { (api.create_iterator_cf)(base, reading, family) };
            self.shown(iter, b"k05")
        });
        shown.concat()
    }
}

impl Drop for Side<'_> {
    fn drop(&mut self) {
        self.close();
        // SAFETY: nothing uses them any more.
        unsafe {
            (self.api.writebatch_wi_destroy)(self.index);
            (self.api.readoptions_destroy)(self.reading);
            (self.api.options_destroy)(self.options);
            (self.api.free)(null::<c_char>().cast_mut().cast());
        }
    }
}

#[test]
fn transactions_answer_as_those_of_rocksdb() {
    let theirs = match crate::libraries::theirs() {
        Ok(theirs) => theirs,
        Err(reason) => return println!("SKIPPED({reason})"),
    };
    let ours = Api::load(&crate::libraries::ours().expect("our library")).expect("our library");
    let theirs = Api::load(&theirs).expect("RocksDB's library");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("SATEEN_PEERS_TRANSACTIONS");
    let first = number("SATEEN_PEERS_TRANSACTION_SEED").unwrap_or(1);
    let (begun, mut calls, mut seed) = (Instant::now(), 0, first);
    while wanted.map_or(begun.elapsed() < SHORT, |wanted| calls < wanted) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut rng = Rng::new(seed, 1);
        let optimistic = rng.one_in(2);
        let mut a = Side::new(&ours, &directory.path().join("ours"), optimistic);
        let mut b = Side::new(&theirs, &directory.path().join("theirs"), optimistic);
        let mut done = Vec::new();
        for _ in 0..OPERATIONS {
            let op = Op::of(&mut rng);
            let (ours, theirs) = (a.act(&op), b.act(&op));
            done.push(format!("{op:?} -> {}", ours.lines().next().unwrap_or_default()));
            if ours != theirs {
                let of_slot = format!("slot: {}", op.slot);
                let same: Vec<_> = done.iter().filter(|done| done.contains(&of_slot)).collect();
                let last = &same[same.len().saturating_sub(25)..];
                panic!(
                    "seed {seed}, optimistic {optimistic}, operation {}: {op:?}\nours:\n{ours}\n\
                     theirs:\n{theirs}\nthe last of its slot: {last:#?}",
                    done.len() - 1
                );
            }
        }
        let (ours, theirs) = (a.everything(), b.everything());
        assert!(ours == theirs, "seed {seed}:\nours:\n{ours}\ntheirs:\n{theirs}");
        calls += a.calls;
        seed += 1;
    }
    println!("{calls} calls from seed {first} to {}, no difference", seed - 1);
}
