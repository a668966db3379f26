//! The callbacks of both libraries: a merge operator, a comparator, a compaction filter, and
//! visitors of a batch.

use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::null_mut;

use crate::api::{Api, H, P};
use crate::side::{bytes, shown};

/// Frees nothing: the state is null.
pub(crate) extern "C" fn nothing(_state: H) {}

extern "C" fn name(_state: H) -> P {
    c"peers".as_ptr()
}

/// Sets the callbacks of a sequence's setup in options.
pub(crate) fn install(api: &Api, options: H, setup: crate::op::Setup) {
    // SAFETY: the options are from the library, as is what they are given, which they own or keep;
    // filter and comparator are never freed.
    unsafe {
        if setup.merges {
            let made = (api.mergeoperator_create)(
                null_mut(),
                nothing,
                full_merge,
                partial_merge,
                None,
                name,
            );
            (api.options_set_merge_operator)(options, made);
        }
        if setup.reverse {
            (api.options_set_comparator)(options, comparator(api));
        }
        if setup.prefix {
            let made = (api.slicetransform_create)(null_mut(), nothing, prefix, in_domain, name);
            (api.options_set_prefix_extractor)(options, made);
        }
        if setup.filter {
            let made = (api.compactionfilter_create)(null_mut(), nothing, filter, name);
            (api.options_set_compaction_filter)(options, made);
            (api.options_set_disable_auto_compactions)(options, 1);
        }
    }
}

/// Returns the comparator of the reverse order, which is never freed.
pub(crate) fn comparator(api: &Api) -> H {
    // SAFETY: functions that live as long as the process.
    unsafe { (api.comparator_create)(null_mut(), nothing, compare, name) }
}

/// Returns the length of the prefix: two bytes, or the whole of a shorter key. Each key has a
/// prefix.
extern "C" fn prefix(_state: H, key: P, key_length: usize, length: *mut usize) -> *mut c_char {
    // SAFETY: the length is the library's.
    unsafe { *length = key_length.min(2) };
    key.cast_mut()
}

extern "C" fn in_domain(_state: H, _key: P, _key_length: usize) -> c_uchar {
    1
}

extern "C" fn compare(_state: H, a: P, a_length: usize, b: P, b_length: usize) -> c_int {
    // SAFETY: the library gives byte strings.
    let (a, b) = unsafe { (bytes(a, a_length), bytes(b, b_length)) };
    b.cmp(a) as c_int
}

/// Joins the parts with commas into memory from `malloc`.
fn join<'a>(parts: impl Iterator<Item = &'a [u8]>, length: *mut usize) -> *mut c_char {
    let joined = parts.collect::<Vec<_>>().join(&b',');
    // SAFETY: the memory is new and has room for the bytes; `length` is the library's.
    unsafe {
        *length = joined.len();
        let copy = libc::malloc(joined.len().max(1)).cast::<u8>();
        assert!(!copy.is_null());
        copy.copy_from_nonoverlapping(joined.as_ptr(), joined.len());
        copy.cast()
    }
}

/// # Safety
/// The arrays have `count` members, which are byte strings.
unsafe fn operands<'a>(
    data: *const P,
    lengths: *const usize,
    count: c_int,
) -> impl Iterator<Item = &'a [u8]> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's promise.
    (0..count).map(move |nth| unsafe { bytes(*data.add(nth), *lengths.add(nth)) })
}

extern "C" fn full_merge(
    _state: H,
    _key: P,
    _key_length: usize,
    existing: P,
    existing_length: usize,
    data: *const P,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: what the library gives a merge operator.
    unsafe {
        *success = 1;
        let before = (!existing.is_null()).then(|| bytes(existing, existing_length));
        join(before.into_iter().chain(operands(data, lengths, count)), length)
    }
}

extern "C" fn partial_merge(
    _state: H,
    _key: P,
    _key_length: usize,
    data: *const P,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: as above.
    unsafe {
        *success = 1;
        join(operands(data, lengths, count), length)
    }
}

extern "C" fn filter(
    _state: H,
    _level: c_int,
    key: P,
    key_length: usize,
    _value: P,
    _value_length: usize,
    new_value: *mut *mut c_char,
    new_length: *mut usize,
    changed: *mut c_uchar,
) -> c_uchar {
    const NEW: &[u8] = b"filtered";
    // SAFETY: what the library gives a filter; it copies the new value.
    unsafe {
        let key = bytes(key, key_length);
        *changed = 0;
        match key.last().map_or(0, |last| last % 5) {
            _ if key.starts_with(b"s") => 0,
            1 => 1,
            3 => {
                *changed = 1;
                *new_value = NEW.as_ptr().cast::<c_char>().cast_mut();
                *new_length = NEW.len();
                0
            }
            _ => 0,
        }
    }
}

/// # Safety
/// `state` is a `String`, the rest byte strings.
unsafe fn note(state: H, what: &str, parts: &[(P, usize)]) {
    // SAFETY: the caller's promise.
    unsafe {
        let text = &mut *state.cast::<String>();
        text.push_str(what);
        for (data, length) in parts {
            text.push(' ');
            text.push_str(&shown(bytes(*data, *length)));
        }
        text.push(';');
    }
}

pub(crate) extern "C" fn put(
    state: H,
    family: u32,
    key: P,
    key_length: usize,
    value: P,
    length: usize,
) {
    // SAFETY: what the functions that go through batches give.
    unsafe { note(state, &format!("put {family}"), &[(key, key_length), (value, length)]) }
}

pub(crate) extern "C" fn merge(
    state: H,
    family: u32,
    key: P,
    key_length: usize,
    value: P,
    length: usize,
) {
    // SAFETY: as above.
    unsafe { note(state, &format!("merge {family}"), &[(key, key_length), (value, length)]) }
}

pub(crate) extern "C" fn delete(state: H, family: u32, key: P, key_length: usize) {
    // SAFETY: as above.
    unsafe { note(state, &format!("delete {family}"), &[(key, key_length)]) }
}

pub(crate) extern "C" fn put_default(state: H, key: P, key_length: usize, value: P, length: usize) {
    // SAFETY: as above.
    unsafe { note(state, "put", &[(key, key_length), (value, length)]) }
}

pub(crate) extern "C" fn delete_default(state: H, key: P, key_length: usize) {
    // SAFETY: as above.
    unsafe { note(state, "delete", &[(key, key_length)]) }
}

pub(crate) extern "C" fn log_data(state: H, data: P, length: usize) {
    // SAFETY: as above.
    unsafe { note(state, "log data", &[(data, length)]) }
}
