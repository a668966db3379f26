//! How option values look as text: one [`Unit`] per kind of value, each able to read back exactly
//! what it prints.

use std::path::PathBuf;
use std::time::Duration;

use sateen_store::base::names::{option_of_path, path_of_option};

/// Reads and prints values of `T`. Law: `read(&print(v)) == Some(v)` for every `v`.
pub(super) trait Unit<T> {
    /// What the values are, in a table.
    const NAME: &'static str;
    /// What `read` takes, for an error message.
    const ACCEPTS: &'static str;
    /// The value that `text` (trimmed) means, `None` if it is not one.
    fn read(text: &str) -> Option<T>;
    /// The value as text.
    fn print(value: &T) -> String;
}

/// `true` or `false`.
pub(super) struct Flag;

impl Unit<bool> for Flag {
    const NAME: &'static str = "true or false";
    const ACCEPTS: &'static str = "true or false";

    fn read(text: &str) -> Option<bool> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    fn print(value: &bool) -> String {
        value.to_string()
    }
}

/// A plain number.
pub(super) struct Count;

/// A type of whole numbers, with its range in words.
pub(super) trait Whole: std::str::FromStr + std::fmt::Display {
    const ACCEPTS: &'static str;
}

impl Whole for u32 {
    const ACCEPTS: &'static str = "a whole number from 0 to 4294967295";
}

impl Whole for u64 {
    const ACCEPTS: &'static str = "a whole number from 0 to 18446744073709551615";
}

impl Whole for i32 {
    const ACCEPTS: &'static str = "a whole number from -2147483648 to 2147483647";
}

impl<T: Whole> Unit<T> for Count {
    const NAME: &'static str = "number";
    const ACCEPTS: &'static str = T::ACCEPTS;

    fn read(text: &str) -> Option<T> {
        text.parse().ok()
    }

    fn print(value: &T) -> String {
        value.to_string()
    }
}

/// A number that is not whole.
pub(super) struct Ratio;

impl Unit<f64> for Ratio {
    const NAME: &'static str = "ratio";
    const ACCEPTS: &'static str = "a number such as 10 or 2.5";

    fn read(text: &str) -> Option<f64> {
        text.parse().ok().filter(|value: &f64| value.is_finite())
    }

    fn print(value: &f64) -> String {
        value.to_string()
    }
}

/// A number of bytes. Suffixes are powers of two, with or without the `i`: 1 KB = 1 KiB = 1024.
pub(super) struct Bytes;

const SUFFIXES: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

impl Unit<u64> for Bytes {
    const NAME: &'static str = "bytes";
    const ACCEPTS: &'static str = "a size such as 4096, 64KiB, 64MB or 1G (powers of two)";

    fn read(text: &str) -> Option<u64> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at_checked(digits)?;
        let suffix = suffix.trim().to_ascii_lowercase();
        let shift = match suffix.strip_suffix("ib").or(suffix.strip_suffix('b')).unwrap_or(&suffix)
        {
            "" if suffix != "ib" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(1 << shift)
    }

    fn print(value: &u64) -> String {
        for (suffix, shift) in SUFFIXES {
            if *value != 0 && value.trailing_zeros() >= shift {
                return format!("{}{suffix}", value >> shift);
            }
        }
        value.to_string()
    }
}

impl Unit<Option<u64>> for Bytes {
    const NAME: &'static str = "bytes or none";
    const ACCEPTS: &'static str = "none, or a size such as 4096, 64KiB, 64MB or 1G (powers of two)";

    fn read(text: &str) -> Option<Option<u64>> {
        if text.eq_ignore_ascii_case("none") {
            return Some(None);
        }
        Bytes::read(text).map(Some)
    }

    fn print(value: &Option<u64>) -> String {
        value.as_ref().map_or_else(|| "none".to_owned(), <Bytes as Unit<u64>>::print)
    }
}

/// A length of time.
pub(super) struct Span;

const SPANS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Unit<Duration> for Span {
    const NAME: &'static str = "duration";
    const ACCEPTS: &'static str = "0, or a duration such as 100us, 10ms, 5s, 2m or 1h";

    fn read(text: &str) -> Option<Duration> {
        if text == "0" {
            return Some(Duration::ZERO);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at_checked(digits)?;
        let suffix = suffix.trim();
        let (_, unit_ns) = SPANS.iter().find(|(name, _)| *name == suffix)?;
        Some(Duration::from_nanos(number.parse::<u64>().ok()?.checked_mul(*unit_ns)?))
    }

    fn print(value: &Duration) -> String {
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        for (suffix, unit_ns) in SPANS {
            if nanos != 0 && nanos.is_multiple_of(unit_ns) {
                return format!("{}{suffix}", nanos / unit_ns);
            }
        }
        "0".to_owned()
    }
}

impl Unit<Option<Duration>> for Span {
    const NAME: &'static str = "duration or none";
    const ACCEPTS: &'static str = "none, or a duration such as 100us, 10ms, 5s, 2m or 1h";

    fn read(text: &str) -> Option<Option<Duration>> {
        if text.eq_ignore_ascii_case("none") {
            return Some(None);
        }
        Span::read(text).map(Some)
    }

    fn print(value: &Option<Duration>) -> String {
        value.as_ref().map_or_else(|| "none".to_owned(), <Span as Unit<Duration>>::print)
    }
}

/// A name or path. Semicolons and line ends cannot be part of it: they end a value in a list. In a
/// path they are written as bytes that are no UTF-8 are (`names.rs`).
pub(super) struct Text;

fn plain(text: &str) -> bool {
    !text.is_empty() && !text.contains([';', '\n', '\r'])
}

impl Unit<String> for Text {
    const NAME: &'static str = "name";
    const ACCEPTS: &'static str = "a name without semicolons or line ends";

    fn read(text: &str) -> Option<String> {
        plain(text).then(|| text.to_owned())
    }

    fn print(value: &String) -> String {
        value.clone()
    }
}

impl Unit<Option<String>> for Text {
    const NAME: &'static str = "name or none";
    const ACCEPTS: &'static str = "none, or a name without semicolons or line ends";

    fn read(text: &str) -> Option<Option<String>> {
        if text == "none" { Some(None) } else { Text::read(text).map(Some) }
    }

    fn print(value: &Option<String>) -> String {
        value.clone().unwrap_or_else(|| "none".to_owned())
    }
}

impl Unit<Option<PathBuf>> for Text {
    const NAME: &'static str = "path or none";
    const ACCEPTS: &'static str = "none, or a path without semicolons or line ends";

    fn read(text: &str) -> Option<Option<PathBuf>> {
        match text {
            "none" => Some(None),
            _ => plain(text).then(|| path_of_option(text))?.map(Some),
        }
    }

    fn print(value: &Option<PathBuf>) -> String {
        value.as_ref().map_or_else(|| "none".to_owned(), |path| option_of_path(path))
    }
}

/// One of a few names; the enumeration knows them.
pub(super) struct Choice;

/// An enumeration whose members have names in text.
pub(super) trait Named: Copy + PartialEq + 'static {
    /// The names, as an error message lists them.
    const ACCEPTS: &'static str;
    /// Every member with its name.
    const NAMES: &'static [(&'static str, Self)];
}

impl<T: Named> Unit<T> for Choice {
    const NAME: &'static str = T::ACCEPTS;
    const ACCEPTS: &'static str = T::ACCEPTS;

    fn read(text: &str) -> Option<T> {
        T::NAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    fn print(value: &T) -> String {
        let found = T::NAMES.iter().find(|(_, member)| member == value);
        found.map_or_else(String::new, |(name, _)| (*name).to_owned())
    }
}

/// Several names, separated by commas; at least one.
pub(super) struct ChoiceList;

impl<T: Named> Unit<Vec<T>> for ChoiceList {
    const NAME: &'static str = T::ACCEPTS;
    const ACCEPTS: &'static str = T::ACCEPTS;

    fn read(text: &str) -> Option<Vec<T>> {
        text.split([',', ':']).map(|part| Choice::read(part.trim())).collect()
    }

    fn print(value: &Vec<T>) -> String {
        value.iter().map(Choice::print).collect::<Vec<_>>().join(",")
    }
}

/// How many single-character edits turn `a` into `b` (Levenshtein's distance).
pub(super) fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (to, cell) in b.bytes().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            left = (diagonal + usize::from(from != to)).min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
