//! Records as text: tab-separated, comma-separated and JSON lines, read and written in a stream.
//!
//! Invariants: reading written records returns the same bytes, whatever they are; text that is not
//! a record is an error with the number of its line; reading allocates nothing for a record once
//! the buffers have grown.

pub(crate) mod bytes;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use clap::ValueEnum;

pub(crate) use reader::{ReadError, RecordReader};
pub(crate) use writer::RecordWriter;

/// The format of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value; `\t`, `\n`, `\r`, `\\` and `\xHH` stand for bytes that would break a line
    Tsv,
    /// Key, comma, value, quoted as in RFC 4180
    Csv,
    /// One object a line: {"key": …, "value": …}, or key_hex, key_base64, value_hex, value_base64
    Jsonl,
}

impl Format {
    /// Returns the format for the extension of a file's name.
    pub(crate) fn of_name(name: &str) -> Option<Format> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "tsv" | "tab" | "txt" => Some(Format::Tsv),
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" | "json" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

/// The encoding of keys and values inside a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    /// Text, escaped as the format demands
    #[default]
    Text,
    /// Two hexadecimal digits a byte
    Hex,
    /// Base64 with the usual alphabet and padding
    Base64,
}
