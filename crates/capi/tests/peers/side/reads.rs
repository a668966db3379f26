//! Reads and iterators.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use super::{Iterator, Side, at, bytes, shown};
use crate::api::{H, P};
use crate::op::{Kind, Op};

impl Side<'_> {
    /// Returns read options, at a snapshot if it exists.
    pub(super) unsafe fn at_snapshot(&self, slot: usize, bits: u64) -> H {
        // SAFETY: fresh options and a snapshot that lives.
        unsafe {
            let options = (self.api.readoptions_create)();
            if bits & 1 == 1 && !self.snapshots[slot].is_null() {
                (self.api.readoptions_set_snapshot)(options, self.snapshots[slot]);
            }
            options
        }
    }

    pub(super) fn read(&mut self, op: &Op) -> String {
        let mut key = op.key.clone();
        if op.bits & 0x700 == 0 {
            key = format!("s{}", op.bits % 8).into_bytes();
        }
        // SAFETY: open handles and byte strings of this length.
        unsafe {
            let options = self.at_snapshot(op.slot, op.bits >> 20);
            let answer = match op.kind {
                Kind::Get => self.get(options, op.family, &key),
                Kind::GetPinned => self.get_pinned(options, op.family, &key),
                Kind::GetInto => self.get_into(options, op.family, &key, op.bits),
                _ => self.get_many(options, op, &[&key, &op.key, &op.end]),
            };
            (self.api.readoptions_destroy)(options);
            answer
        }
    }

    pub(super) unsafe fn get(&mut self, options: H, family: usize, key: &[u8]) -> String {
        let (api, db, family) = (self.api, self.db, self.families[family]);
        let mut length = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let found = self.call(|e| {
                (api.get_cf)(db, options, family, at(key), key.len(), &raw mut length, e)
            });
            found.map_or_else(|error| error, |value| self.taken(value, length))
        }
    }

    /// Returns a value from `malloc` as text.
    pub(super) unsafe fn taken(&self, value: *mut c_char, length: usize) -> String {
        if value.is_null() {
            return format!("none {length}");
        }
        // SAFETY: the caller's promise.
        unsafe {
            let text = shown(bytes(value, length));
            (self.api.free)(value.cast());
            text
        }
    }

    unsafe fn get_pinned(&mut self, options: H, family: usize, key: &[u8]) -> String {
        let (api, db, family) = (self.api, self.db, self.families[family]);
        // SAFETY: the caller's promise.
        let found = self
            .call(|e| unsafe { (api.get_pinned_cf)(db, options, family, at(key), key.len(), e) });
        // SAFETY: null or a value that is freed once.
        found.map_or_else(|error| error, |value| unsafe { self.pinned(value) })
    }

    unsafe fn pinned(&mut self, value: H) -> String {
        if value.is_null() {
            return "none".to_owned();
        }
        let mut length = 0;
        self.calls += 1;
        // SAFETY: the caller's promise.
        unsafe {
            let data = (self.api.pinnableslice_value)(value, &raw mut length);
            let text = shown(bytes(data, length));
            (self.api.pinnableslice_destroy)(value);
            text
        }
    }

    unsafe fn get_into(&mut self, options: H, family: usize, key: &[u8], bits: u64) -> String {
        let (api, db, family) = (self.api, self.db, self.families[family]);
        let mut buffer = [0_u8; 64];
        let room = if bits & 0x1000 == 0 { buffer.len() } else { 3 };
        let (mut length, mut found) = (0, 0);
        let into = buffer.as_mut_ptr().cast();
        let (key, key_length) = (at(key), key.len());
        // SAFETY: the caller's promise; the buffer has the room that is told.
        let copied = self.call(|e| unsafe {
            let (length, found) = (&raw mut length, &raw mut found);
            (api.get_into_buffer_cf)(
                db, options, family, key, key_length, into, room, length, found, e,
            )
        });
        match copied {
            Ok(0) => format!("found {found}, not copied, {length}"),
            Ok(_) => format!("found {found}, {}", shown(&buffer[..length])),
            Err(error) => error,
        }
    }

    unsafe fn get_many(&mut self, options: H, op: &Op, keys: &[&[u8]; 3]) -> String {
        let (api, db) = (self.api, self.db);
        let data = keys.map(at);
        let lengths = keys.map(<[u8]>::len);
        let mut errors: [*mut c_char; 3] = [null_mut(); 3];
        let mut texts = Vec::new();
        self.calls += 1;
        // SAFETY: the caller's promise; all arrays have three members.
        unsafe {
            if op.kind == Kind::MultiGet {
                let other = match self.families[op.slot] {
                    family if family.is_null() => self.families[0],
                    family => family,
                };
                let families = [self.families[op.family], other, self.families[0]];
                let (mut values, mut found) = ([null_mut(); 3], [0; 3]);
                (api.multi_get_cf)(
                    db,
                    options,
                    families.as_ptr(),
                    3,
                    data.as_ptr(),
                    lengths.as_ptr(),
                    values.as_mut_ptr(),
                    found.as_mut_ptr(),
                    errors.as_mut_ptr(),
                );
                for (value, length) in values.into_iter().zip(found) {
                    texts.push(self.taken(value, if value.is_null() { 0 } else { length }));
                }
            } else {
                let mut values = [null_mut(); 3];
                let family = self.families[op.family];
                (api.batched_multi_get_cf)(
                    db,
                    options,
                    family,
                    3,
                    data.as_ptr(),
                    lengths.as_ptr(),
                    values.as_mut_ptr(),
                    errors.as_mut_ptr(),
                    false,
                );
                for value in values {
                    texts.push(self.pinned(value));
                }
            }
        }
        let errors = errors.into_iter().filter(|error| !error.is_null());
        texts.extend(errors.map(|error| self.kind(error)));
        texts.join(" | ")
    }

    pub(super) fn iterate(&mut self, op: &Op) -> String {
        let api = self.api;
        // SAFETY: handles are open, keys byte strings; moves are from where it is valid.
        unsafe {
            if op.kind == Kind::IterOpen {
                self.open_iterator(op);
                return String::new();
            }
            let Some(iterator) = &self.iterators[op.slot] else { return String::new() };
            let iter = iterator.iter;
            let valid = (api.iter_valid)(iter) != 0;
            let (key, length) = (at(&op.key), op.key.len());
            let there = iterator.family.is_some();
            // RocksDB seeks to the bound, whose prefix then counts.
            if iterator.cut && matches!(op.kind, Kind::IterFirst | Kind::IterLast) {
                return String::new();
            }
            self.calls += 2;
            match op.kind {
                Kind::IterSeek => (api.iter_seek)(iter, key, length),
                Kind::IterSeekForPrev => (api.iter_seek_for_prev)(iter, key, length),
                Kind::IterFirst => (api.iter_seek_to_first)(iter),
                Kind::IterLast => (api.iter_seek_to_last)(iter),
                Kind::IterNext if valid => (api.iter_next)(iter),
                Kind::IterPrev if valid => (api.iter_prev)(iter),
                Kind::IterNext | Kind::IterPrev => return "not valid".to_owned(),
                // Open iterators still show a dropped family, but it cannot be opened again. With a
                // TTL RocksDB cannot refresh an iterator.
                Kind::IterRefresh if !there || self.setup.ttl => return String::new(),
                Kind::IterRefresh => return self.told(|e| (api.iter_refresh)(iter, e)),
                _ => {
                    self.close_iterator(op.slot);
                    return String::new();
                }
            }
            self.stands(iter)
        }
    }

    unsafe fn open_iterator(&mut self, op: &Op) {
        self.close_iterator(op.slot);
        let bounds = [op.key.clone(), op.end.clone()];
        let mut ordered = [0, 1];
        if (bounds[0] > bounds[1]) != self.setup.reverse {
            ordered.swap(0, 1);
        }
        // SAFETY: fresh options; the bounds live as long as they do.
        unsafe {
            let options = self.at_snapshot(op.slot, op.bits);
            if op.bits & 6 == 0 {
                let low = &bounds[ordered[0]];
                (self.api.readoptions_set_iterate_lower_bound)(options, at(low), low.len());
            }
            if op.bits & 24 == 0 {
                let high = &bounds[ordered[1]];
                (self.api.readoptions_set_iterate_upper_bound)(options, at(high), high.len());
            }
            let prefix = op.bits & 96 == 0;
            if prefix {
                (self.api.readoptions_set_prefix_same_as_start)(options, 1);
            } else if op.bits & 32 == 0 {
                (self.api.readoptions_set_total_order_seek)(options, 1);
            }
            let bounded = op.bits & 6 == 0 || op.bits & 24 == 0;
            let cut = self.setup.prefix && prefix && bounded;
            let iter = (self.api.create_iterator_cf)(self.db, options, self.families[op.family]);
            self.calls += 2;
            self.iterators[op.slot] =
                Some(Iterator { iter, options, family: Some(op.family), cut, _bounds: bounds });
        }
    }

    pub(super) fn close_iterator(&mut self, slot: usize) {
        if let Some(iterator) = self.iterators[slot].take() {
            // SAFETY: it is open and not used any more.
            unsafe {
                (self.api.iter_destroy)(iterator.iter);
                (self.api.readoptions_destroy)(iterator.options);
            }
        }
    }

    /// Returns the position of an iterator.
    unsafe fn stands(&mut self, iter: H) -> String {
        let api = self.api;
        // SAFETY: the iterator is open.
        unsafe {
            let told = self.told(|e| (api.iter_get_error)(iter, e));
            self.calls += 1;
            if (api.iter_valid)(iter) == 0 {
                return format!("{told}, at the end");
            }
            self.calls += 2;
            let read = |of: unsafe extern "C" fn(H, *mut usize) -> P| {
                let mut length = 0;
                let data = of(iter, &raw mut length);
                shown(bytes(data, length))
            };
            format!("{told}, {} = {}", read(api.iter_key), read(api.iter_value))
        }
    }

    /// Reads a whole column family forwards and backwards.
    pub(super) fn scan(&mut self, family: H) -> String {
        let api = self.api;
        let mut text = String::new();
        // SAFETY: open handles; it moves from where it is valid.
        unsafe {
            let iter = (api.create_iterator_cf)(self.db, self.reading, family);
            for (first, next) in
                [(api.iter_seek_to_first, api.iter_next), (api.iter_seek_to_last, api.iter_prev)]
            {
                first(iter);
                while (api.iter_valid)(iter) != 0 {
                    self.calls += 2;
                    text.push_str(&self.stands(iter));
                    text.push('\n');
                    next(iter);
                }
                text.push_str(&self.stands(iter));
                text.push('\n');
            }
            (api.iter_destroy)(iter);
        }
        text
    }

    /// Compacts everything, or from one key to another.
    pub(super) fn compact(&mut self, op: &Op) -> String {
        let (api, db, family) = (self.api, self.db, self.families[op.family]);
        self.calls += 1;
        if self.setup.filter {
            (0..super::SLOTS).for_each(|slot| self.close_iterator(slot));
        }
        // SAFETY: open handles; null is no end.
        unsafe {
            if self.setup.filter || op.bits & 1 == 0 {
                (api.compact_range_cf)(db, family, null(), 0, null(), 0);
            } else {
                let (key, end) = (&op.key, &op.end);
                (api.compact_range_cf)(db, family, at(key), key.len(), at(end), end.len());
            }
        }
        String::new()
    }
}
