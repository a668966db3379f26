//! Properties and checkpoints.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;

use super::handles::place;
use super::{Side, at};
use crate::op::Op;

/// Properties that follow from the calls.
const NUMBERS: &[&CStr] = &[
    c"rocksdb.num-snapshots",
    c"rocksdb.is-write-stopped",
    c"rocksdb.is-file-deletions-enabled",
    c"rocksdb.background-errors",
    c"rocksdb.no-such-property",
    c"num-snapshots",
];

impl Side<'_> {
    pub(super) fn properties(&mut self, op: &Op) -> String {
        let (api, db, family) = (self.api, self.db, self.families[op.family]);
        let name = NUMBERS[place(op.bits, NUMBERS.len())];
        let mut value = 0;
        self.calls += 2;
        // SAFETY: open handles; the text is freed once.
        unsafe {
            let known = (api.property_int_cf)(db, family, name.as_ptr(), &raw mut value) == 0;
            let number = if known { value.to_string() } else { "none".to_owned() };
            let text = (api.property_value_cf)(db, family, name.as_ptr());
            if text.is_null() {
                return format!("{name:?}: {number}, no text");
            }
            let told = CStr::from_ptr(text).to_string_lossy().into_owned();
            (api.free)(text.cast());
            format!("{name:?}: {number}, {told:?}")
        }
    }

    /// Asks whether a key may exist. The answer must be yes for an existing key.
    pub(super) fn may_exist(&mut self, op: &Op) -> String {
        let (api, db, family) = (self.api, self.db, self.families[op.family]);
        let (key, length) = (at(&op.key), op.key.len());
        let (mut value, mut value_length, mut found) = (null_mut(), 0, 0);
        self.calls += 2;
        // SAFETY: open handles, a byte string, values that are freed once.
        unsafe {
            let options = self.at_snapshot(op.slot, op.bits);
            let may = (api.key_may_exist_cf)(
                db,
                options,
                family,
                key,
                length,
                &raw mut value,
                &raw mut value_length,
                at(&[]),
                0,
                &raw mut found,
            );
            let early = (may != 0 && found != 0).then(|| self.taken(value, value_length));
            let is = self.get(options, op.family, &op.key);
            (api.readoptions_destroy)(options);
            let there = !is.starts_with("none ");
            if may == 0 && there {
                return format!("said not to be, and is {is}");
            }
            if let Some(early) = early.filter(|early| *early != is) {
                return format!("{early} is told, and is {is}");
            }
            is
        }
    }

    /// Makes a checkpoint and reads it.
    pub(super) fn checkpoint(&mut self) -> String {
        let (api, db) = (self.api, self.db);
        let path = format!("{}-checkpoint", self.directory.to_string_lossy());
        let to = CString::new(path.clone()).expect("no zeros in names");
        // SAFETY: open handles; the object is freed once.
        let (told, again) = unsafe {
            let object = match self.call(|e| (api.checkpoint_object_create)(db, e)) {
                Ok(object) => object,
                Err(error) => return error,
            };
            let told = self.told(|e| (api.checkpoint_create)(object, to.as_ptr(), 0, e));
            // An existing directory is not replaced.
            let again = self.told(|e| (api.checkpoint_create)(object, to.as_ptr(), 0, e));
            (api.checkpoint_object_destroy)(object);
            (told, again)
        };
        let directory = std::mem::replace(&mut self.directory, to);
        let db = std::mem::replace(&mut self.db, null_mut());
        let families = std::mem::replace(&mut self.families, [null_mut(); 4]);
        let names = self.list().unwrap_or_default();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut text = format!("{told}, {again}: {names:?} {}\n", self.open(&names));
        text.push_str(&self.everything());
        // SAFETY: all are open and not used any more.
        unsafe {
            for family in self.families.iter().filter(|family| !family.is_null()) {
                (api.column_family_handle_destroy)(*family);
            }
            if !self.db.is_null() {
                (api.close)(self.db);
            }
        }
        (self.directory, self.db, self.families) = (directory, db, families);
        std::fs::remove_dir_all(path).expect("the checkpoint is there");
        text
    }
}
