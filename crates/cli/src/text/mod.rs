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

use clap::{Args, ValueEnum};

pub(crate) use reader::{ReadError, RecordReader};
pub(crate) use writer::{RecordWriter, json_field};

/// The format of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value; `\t`, `\n`, `\r`, `\\` and `\xHH` stand for bytes that would break a line
    Tsv,
    /// Key, comma, value, quoted as in RFC 4180
    Csv,
    /// One object a line: {"key": …, "value": …}, or key_hex, key_base64, key_u64, value_hex, …
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
    #[value(alias = "utf-8", alias = "utf8")]
    Text,
    /// Two hexadecimal digits a byte
    Hex,
    /// Base64 with the usual alphabet and padding
    Base64,
    /// A decimal number, stored in eight bytes, the most significant first
    U64,
}

impl Encoding {
    /// Appends the bytes that a text stands for. Escapes are a matter of the format.
    pub(crate) fn decode(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Encoding::Text => {
                out.extend_from_slice(text);
                Ok(())
            }
            Encoding::Hex => bytes::from_hex(text, out),
            Encoding::Base64 => bytes::from_base64(text, out),
            Encoding::U64 => bytes::from_number(text, out),
        }
    }

    /// Appends the text for `bytes`, which `plain` writes if they are text.
    pub(crate) fn encode(
        self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        plain: fn(&[u8], &mut Vec<u8>),
    ) -> Result<(), String> {
        match self {
            Encoding::Text => plain(bytes, out),
            Encoding::Hex => bytes::to_hex(bytes, out),
            Encoding::Base64 => bytes::to_base64(bytes, out),
            Encoding::U64 => return bytes::to_number(bytes, out),
        }
        Ok(())
    }
}

/// The encoding that a command line asks for.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Coded {
    /// Read and print keys and values in this encoding
    #[arg(long, value_enum, default_value = "text")]
    encoding: Encoding,
    /// Read and print keys and values in hexadecimal, as with --encoding hex
    #[arg(long, conflicts_with = "encoding")]
    hex: bool,
}

impl Coded {
    /// Returns the encoding of keys and values.
    pub(crate) fn both(self) -> Encoding {
        if self.hex { Encoding::Hex } else { self.encoding }
    }
}

/// The encoding of keys, for commands that take no values.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct KeysCoded {
    #[command(flatten)]
    coded: Coded,
    /// Read keys in this encoding, instead of --encoding
    #[arg(long, value_enum, value_name = "ENCODING")]
    key_type: Option<Encoding>,
}

impl KeysCoded {
    /// Returns the encoding of keys.
    pub(crate) fn keys(self) -> Encoding {
        self.key_type.unwrap_or(self.coded.both())
    }
}

/// The encodings of keys and of values, which may differ.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Typed {
    #[command(flatten)]
    coded: Coded,
    /// Read and print keys in this encoding, instead of --encoding
    #[arg(long, value_enum, value_name = "ENCODING")]
    key_type: Option<Encoding>,
    /// Read and print values in this encoding, instead of --encoding
    #[arg(long, value_enum, value_name = "ENCODING")]
    value_type: Option<Encoding>,
}

impl Typed {
    /// Returns the encoding of keys.
    pub(crate) fn keys(self) -> Encoding {
        self.key_type.unwrap_or(self.coded.both())
    }

    /// Returns the encoding of values.
    pub(crate) fn values(self) -> Encoding {
        self.value_type.unwrap_or(self.coded.both())
    }
}
