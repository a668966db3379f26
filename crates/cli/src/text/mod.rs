//! Records as text: tab-separated, comma-separated and JSON lines, read and written in a stream.
//!
//! What must stay true: whatever bytes keys and values have, reading what was written gives them
//! back; text that is not a record is refused with the number of its line; reading allocates
//! nothing per record once the buffers have grown.

pub(crate) mod bytes;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use clap::ValueEnum;

pub(crate) use reader::{ReadError, RecordReader};
pub(crate) use writer::RecordWriter;

/// How a record looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value; `\t`, `\n`, `\r`, `\\` and `\xHH` stand for bytes that cannot stand there
    Tsv,
    /// Key, comma, value, quoted as in RFC 4180
    Csv,
    /// One object a line: {"key": …, "value": …}, or key_hex, key_base64, value_hex, value_base64
    Jsonl,
}

impl Format {
    /// The format that a file's name promises.
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

/// How the bytes of a key or value look inside a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    /// As they are, escaped in the way of the format
    #[default]
    Text,
    /// Two hexadecimal digits a byte
    Hex,
    /// Base64 with the usual alphabet and padding
    Base64,
}
