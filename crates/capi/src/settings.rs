//! Values of options without a counterpart. The handle keeps them, so that getters return what
//! setters were given.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};

/// Values by the names of their options.
#[derive(Clone, Default)]
pub(crate) struct Settings(BTreeMap<&'static str, Kept>);

#[derive(Clone)]
enum Kept {
    /// A number, and whether its type has a sign.
    Bits(u64, bool),
    Text(CString),
}

impl Settings {
    /// Keeps bytes as text, up to the first zero.
    pub(crate) fn put_bytes(&mut self, key: &'static str, bytes: &[u8]) {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = CString::new(bytes.get(..end).unwrap_or_default()).unwrap_or_default();
        self.0.insert(key, Kept::Text(text));
    }

    /// Returns the text that an option was set to, if it was.
    pub(crate) fn text(&self, key: &str) -> Option<&CStr> {
        match self.0.get(key)? {
            Kept::Text(text) => Some(text),
            Kept::Bits(..) => None,
        }
    }

    /// Returns the value of an option as text, if it was set.
    pub(crate) fn shown(&self, key: &str) -> Option<String> {
        Some(match self.0.get(key)? {
            Kept::Text(text) => text.to_string_lossy().into_owned(),
            Kept::Bits(bits, true) => bits.cast_signed().to_string(),
            Kept::Bits(bits, false) => bits.to_string(),
        })
    }

    /// Returns true if an option was set.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Removes the value of an option.
    pub(crate) fn clear(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Keeps the value of an option as text. Each getter parses it as its own type.
    pub(crate) fn put_text(&mut self, key: &'static str, value: &str) {
        if let Ok(text) = CString::new(&*sateen::bytes_of_text(value)) {
            self.0.insert(key, Kept::Text(text));
        }
    }
}

/// A handle with such values.
pub(crate) trait Keeps {
    /// Returns the values.
    fn settings(&mut self) -> &mut Settings;
}

impl Keeps for Settings {
    fn settings(&mut self) -> &mut Settings {
        self
    }
}

/// Declares handles and the field with their values.
macro_rules! keeps {
    ($($handle:ty: $field:tt),* $(,)?) => { $(
        impl crate::settings::Keeps for $handle {
            fn settings(&mut self) -> &mut crate::settings::Settings {
                &mut self.$field
            }
        }
    )* };
}
pub(crate) use keeps;

/// Defines the functions that make options with their defaults and that free them.
macro_rules! made {
    ($handle:ident: $create:ident, $destroy:ident) => {
        /// Makes options with their defaults.
        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $handle {
            crate::abi::give($handle::default())
        }

        /// Frees options.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(options: *mut $handle) {
            // SAFETY: the contract of the crate.
            unsafe { crate::abi::free(options) };
        }
    };
}
pub(crate) use made;

/// A value that C sets and gets.
pub(crate) trait Setting: Sized {
    /// Stores the value in `settings`.
    fn put(self, settings: &mut Settings, key: &'static str);
    /// Returns the stored value, if there is one.
    fn get(settings: &Settings, key: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty: $to:expr, $from:expr, $read:expr;)*) => { $(
        impl Setting for $number {
            fn put(self, settings: &mut Settings, key: &'static str) {
                let to: fn($number) -> u64 = $to;
                let signed = stringify!($number).starts_with('i');
                settings.0.insert(key, Kept::Bits(to(self), signed));
            }

            fn get(settings: &Settings, key: &str) -> Option<Self> {
                let from: fn(u64) -> $number = $from;
                let read: fn(&str) -> Option<$number> = $read;
                match settings.0.get(key)? {
                    Kept::Bits(bits, _) => Some(from(*bits)),
                    Kept::Text(text) => text.to_str().ok().and_then(read),
                }
            }
        }
    )* };
}

#[expect(clippy::cast_possible_truncation, reason = "what was put in comes out")]
mod of_numbers {
    use super::{Kept, Setting, Settings, number};

    numbers! {
        bool: u64::from, |bits| bits != 0, |text| Some(number(text)? != 0);
        u8: u64::from, |bits| bits as u8, |text| number(text)?.try_into().ok();
        i8: |value| i64::from(value).cast_unsigned(), |bits| bits as i8,
            |text| number(text)?.try_into().ok();
        u32: u64::from, |bits| bits as u32, |text| number(text)?.try_into().ok();
        i32: |value| i64::from(value).cast_unsigned(), |bits| bits as i32,
            |text| number(text)?.try_into().ok();
        u64: |value| value, |bits| bits, |text| number(text)?.try_into().ok();
        i64: i64::cast_unsigned, u64::cast_signed, |text| number(text)?.try_into().ok();
        usize: |value| value as u64, |bits| bits as usize, |text| number(text)?.try_into().ok();
        f64: f64::to_bits, f64::from_bits, |text| text.parse().ok();
    }
}

/// Parses a number with RocksDB's letters for powers of 1024.
pub(crate) fn number(text: &str) -> Option<i128> {
    let shift = match text.as_bytes().last()? {
        b'k' | b'K' => 10,
        b'm' | b'M' => 20,
        b'g' | b'G' => 30,
        b't' | b'T' => 40,
        _ => 0,
    };
    match text {
        "true" => Some(1),
        "false" => Some(0),
        _ if shift == 0 => text.parse().ok(),
        _ => text
            .get(..text.len() - 1)?
            .parse::<i64>()
            .ok()
            .map(|number| i128::from(number) << shift),
    }
}

impl Setting for *const c_char {
    fn put(self, settings: &mut Settings, key: &'static str) {
        if self.is_null() {
            settings.0.remove(key);
        } else {
            // SAFETY: a text that a setter is given ends with a zero.
            settings.0.insert(key, Kept::Text(unsafe { CStr::from_ptr(self) }.to_owned()));
        }
    }

    fn get(settings: &Settings, key: &str) -> Option<Self> {
        match settings.0.get(key)? {
            Kept::Text(text) => Some(text.as_ptr()),
            Kept::Bits(..) => None,
        }
    }
}
