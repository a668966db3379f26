//! Opening, closing, column families, snapshots, options.

use std::ffi::{CStr, CString, c_int};
use std::ptr::null_mut;

use super::{FAMILIES, SLOTS, Side, at, bytes};
use crate::api::{H, P};
use crate::op::{Kind, Op};

/// Options as text, valid and invalid.
const TEXTS: &[&CStr] = &[
    c"write_buffer_size=131072;max_write_buffer_number=4",
    c"write_buffer_size=128K",
    c"",
    c"no_such_option=1",
    c"write_buffer_size=many",
    c"write_buffer_size",
    c"=3",
    c"block_based_table_factory={block_size=8K}",
    c"block_based_table_factory={block_size=8K",
    c"block_based_table_factory={no_such_option=1}",
    c"write_buffer_size=131072;",
    c" write_buffer_size = 131072 ; ",
    c"write_buffer_size=131072;;",
    c";",
    c"compression=kNoCompression",
    c"compression=kNonesuch",
    c"max_open_files=-1; ;disable_auto_compactions=true",
    c"disable_auto_compactions=perhaps",
];

/// Options to set while the database is open: name, value.
const SETTABLE: &[(&CStr, &CStr)] = &[
    (c"write_buffer_size", c"131072"),
    (c"write_buffer_size", c"65536"),
    (c"write_buffer_size", c"many"),
    (c"no_such_option", c"1"),
    (c"level0_file_num_compaction_trigger", c"6"),
    (c"level0_file_num_compaction_trigger", c""),
    (c"max_bytes_for_level_base", c"1048576"),
    (c"num_levels", c"5"),
    (c"comparator", c"x"),
];

/// More seconds than any sequence takes.
const TTL: c_int = 10_000_000;

impl Side<'_> {
    pub(super) fn open(&mut self, names: &[&str]) -> String {
        self.open_as(names, false)
    }

    fn open_as(&mut self, names: &[&str], read_only: bool) -> String {
        let (api, options, path) = (self.api, self.options, self.directory.as_ptr());
        let texts: Vec<_> =
            names.iter().map(|name| CString::new(*name).expect("no zeros in names")).collect();
        let names_at: Vec<P> = texts.iter().map(|text| text.as_ptr()).collect();
        let all_options: Vec<H> = names.iter().map(|_| options).collect();
        let mut handles: Vec<H> = names.iter().map(|_| null_mut()).collect();
        let count = c_int::try_from(names.len()).unwrap_or(0);
        let (names_at, given) = (names_at.as_ptr(), all_options.as_ptr());
        let out = handles.as_mut_ptr();
        let ttls: Vec<c_int> = names.iter().map(|_| TTL).collect();
        let ttl = self.setup.ttl;
        // SAFETY: all lists have `count` members.
        let opened = self.call(|e| unsafe {
            if read_only {
                (api.open_for_read_only_column_families)(
                    options, path, count, names_at, given, out, 0, e,
                )
            } else if ttl {
                let ttls = ttls.as_ptr();
                (api.open_column_families_with_ttl)(
                    options, path, count, names_at, given, out, ttls, e,
                )
            } else {
                (api.open_column_families)(options, path, count, names_at, given, out, e)
            }
        });
        match opened {
            Ok(db) => self.db = db,
            Err(error) => return error,
        }
        for (name, handle) in names.iter().zip(handles) {
            let place = FAMILIES.iter().position(|known| known == name);
            self.families[place.expect("names that are known")] = handle;
        }
        "ok".to_owned()
    }

    pub(super) fn close(&mut self) {
        let api = self.api;
        (0..SLOTS).for_each(|slot| {
            self.close_iterator(slot);
            self.release(slot);
        });
        // SAFETY: all are open and not used any more. The batch may name column families.
        unsafe {
            (api.writebatch_clear)(self.batch);
            for family in &mut self.families {
                if !family.is_null() {
                    (api.column_family_handle_destroy)(*family);
                }
                *family = null_mut();
            }
            if !self.db.is_null() {
                (api.close)(self.db);
            }
        }
        self.db = null_mut();
    }

    /// Returns true if sequence numbers follow from the calls.
    pub(super) fn counted(&self) -> bool {
        !self.uncounted && !self.ingested
    }

    fn release(&mut self, slot: usize) {
        if !self.snapshots[slot].is_null() {
            // SAFETY: it is there and not used any more.
            unsafe { (self.api.release_snapshot)(self.db, self.snapshots[slot]) };
            self.snapshots[slot] = null_mut();
        }
    }

    pub(super) fn manage(&mut self, op: &Op) -> String {
        let (api, db) = (self.api, self.db);
        let family = self.families[op.family];
        self.calls += 1;
        // SAFETY: open handles, texts that end with a zero.
        unsafe {
            match op.kind {
                Kind::Snapshot if !self.setup.filter => {
                    (0..SLOTS).for_each(|slot| {
                        // An iterator must not outlive the snapshot that it was made at.
                        if slot == op.slot {
                            self.close_iterator(slot);
                            self.release(slot);
                        }
                    });
                    self.snapshots[op.slot] = (api.create_snapshot)(db);
                    String::new()
                }
                Kind::Release => {
                    self.close_iterator(op.slot);
                    self.release(op.slot);
                    String::new()
                }
                Kind::CreateFamily => self.create_family(op.family),
                Kind::DropFamily if op.family != 0 => self.drop_family(op.family),
                Kind::SequenceNumber if self.counted() => {
                    format!("{}", (api.get_latest_sequence_number)(db))
                }
                Kind::Flush => {
                    let flushing = self.flushing;
                    self.told(|e| (api.flush_cf)(db, flushing, family, e))
                }
                Kind::Compact => self.compact(op),
                Kind::SetOptions => {
                    let (name, value) = SETTABLE[place(op.bits, SETTABLE.len())];
                    let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
                    let told = self.told(|e| {
                        (api.set_options_cf)(db, family, 1, names.as_ptr(), values.as_ptr(), e);
                    });
                    format!("{told} for {name:?} = {value:?}")
                }
                Kind::OptionString => {
                    let (options, text) = (self.options, TEXTS[place(op.bits, TEXTS.len())]);
                    let told = self.told(|e| {
                        let made = (api.options_create)();
                        (api.get_options_from_string)(options, text.as_ptr(), made, e);
                        (api.options_destroy)(made);
                    });
                    format!("{told} for {text:?}")
                }
                Kind::Reopen => self.reopen(),
                // RocksDB cannot open a database with a TTL for reading only.
                Kind::ReadOnly if self.setup.ttl => String::new(),
                Kind::ReadOnly => self.read_only(),
                Kind::OpenTwice => {
                    let (options, path) = (self.options, self.directory.as_ptr());
                    let opened = self.call(|e| (api.open)(options, path, e));
                    opened.map_or_else(|error| error, |_| "opened".to_owned())
                }
                Kind::OpenWrong => self.open_wrong(op),
                _ => String::new(),
            }
        }
    }

    fn create_family(&mut self, place: usize) -> String {
        let (api, db, options) = (self.api, self.db, self.options);
        let name = CString::new(FAMILIES[place]).expect("no zeros in names");
        let (name, ttl) = (name.as_ptr(), self.setup.ttl);
        // SAFETY: open handles, and a text that ends with a zero.
        let made = self.call(|e| unsafe {
            match ttl {
                true => (api.create_column_family_with_ttl)(db, options, name, TTL, e),
                false => (api.create_column_family)(db, options, name, e),
            }
        });
        match made {
            Ok(family) => {
                self.families[place] = family;
                // SAFETY: the handle is open; the name is from `malloc`.
                unsafe {
                    let mut length = 0;
                    let name = (api.column_family_handle_get_name)(family, &raw mut length);
                    let text = super::shown(bytes(name, length));
                    (api.free)(name.cast());
                    format!("{text} {}", (api.column_family_handle_get_id)(family))
                }
            }
            Err(error) => error,
        }
    }

    fn drop_family(&mut self, place: usize) -> String {
        let (api, db, batch) = (self.api, self.db, self.batch);
        let family = std::mem::replace(&mut self.families[place], null_mut());
        self.once[place].clear();
        for iterator in self.iterators.iter_mut().flatten() {
            iterator.family = iterator.family.filter(|family| *family != place);
        }
        // SAFETY: the handle is open and not used any more, neither by the batch.
        let told = self.told(|e| unsafe {
            (api.writebatch_clear)(batch);
            (api.drop_column_family)(db, family, e);
        });
        // SAFETY: as above.
        unsafe { (api.column_family_handle_destroy)(family) };
        told
    }

    /// Returns the names of the column families, in order.
    pub(super) fn list(&mut self) -> Result<Vec<String>, String> {
        let (api, options, path) = (self.api, self.options, self.directory.as_ptr());
        let mut count = 0;
        // SAFETY: texts end with zeros; the list has `count` members and is freed once.
        unsafe {
            let list =
                self.call(|e| (api.list_column_families)(options, path, &raw mut count, e))?;
            let mut names: Vec<_> = (0..count)
                .map(|nth| CStr::from_ptr(*list.add(nth)).to_string_lossy().into_owned())
                .collect();
            (api.list_column_families_destroy)(list, count);
            names.sort();
            Ok(names)
        }
    }

    fn reopen(&mut self) -> String {
        self.close();
        let names = match self.list() {
            Ok(names) => names,
            Err(error) => return format!("listing: {error}"),
        };
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let told = self.open(&names);
        format!("{names:?} {told}\n{}", self.everything())
    }

    /// Opens the database for reading only, tries to write, and opens it again.
    fn read_only(&mut self) -> String {
        self.close();
        let names = self.list().unwrap_or_default();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let told = self.open_as(&names, true);
        if self.db.is_null() {
            return told;
        }
        let mut text = format!("{told}\n{}", self.everything());
        let (api, db, writing, flushing) = (self.api, self.db, self.writing, self.flushing);
        let family = self.families[0];
        // SAFETY: open handles.
        let told = unsafe {
            [
                self.told(|e| (api.put_cf)(db, writing, family, at(b"k"), 1, at(b"v"), 1, e)),
                self.told(|e| (api.delete_cf)(db, writing, family, at(b"k"), 1, e)),
                self.told(|e| (api.flush_cf)(db, flushing, family, e)),
                self.create_family_refused(),
            ]
        };
        text.push_str(&told.join(", "));
        self.close();
        text.push_str(&self.open(&names));
        text
    }

    fn create_family_refused(&mut self) -> String {
        let (api, db, options) = (self.api, self.db, self.options);
        // SAFETY: open handles, and a text that ends with a zero.
        let made =
            self.call(|e| unsafe { (api.create_column_family)(db, options, c"new".as_ptr(), e) });
        made.map_or_else(|error| error, |_| "made".to_owned())
    }

    /// Opens a database in ways that must fail.
    fn open_wrong(&mut self, op: &Op) -> String {
        let (api, options, fresh) = (self.api, self.options, self.fresh_options());
        let absent = CString::new(format!("{}-absent", self.directory.to_string_lossy()));
        let absent = absent.expect("no zeros in names");
        let named = [c"default".as_ptr(), c"absent".as_ptr()];
        let (both, mut out) = ([options; 2], [null_mut(); 2]);
        let mut count = 0;
        // SAFETY: lists of two, texts that end with zeros.
        let wrong = self.call(|e| unsafe {
            match op.bits % 4 {
                0 => (api.open)(fresh, absent.as_ptr(), e),
                1 => (api.open_for_read_only_column_families)(
                    fresh,
                    absent.as_ptr(),
                    1,
                    named.as_ptr(),
                    both.as_ptr(),
                    out.as_mut_ptr(),
                    0,
                    e,
                ),
                2 => (api.list_column_families)(fresh, absent.as_ptr(), &raw mut count, e).cast(),
                _ => (api.open_column_families)(
                    fresh,
                    absent.as_ptr(),
                    2,
                    named.as_ptr(),
                    both.as_ptr(),
                    out.as_mut_ptr(),
                    e,
                ),
            }
        });
        // SAFETY: they are not used any more.
        unsafe { (api.options_destroy)(fresh) };
        format!("{} for {}", wrong.map_or_else(|error| error, |_| "ok".to_owned()), op.bits % 4)
    }

    /// Returns options that do not create a database.
    fn fresh_options(&self) -> H {
        // SAFETY: it has no conditions.
        unsafe { (self.api.options_create)() }
    }
}

pub(super) fn place(bits: u64, count: usize) -> usize {
    usize::try_from(bits % count as u64).unwrap_or(0)
}
