//! Writes records as text that [`RecordReader`](super::RecordReader) reads.

use std::io::{self, Write};

use super::bytes::{BOM, escape, to_base64, to_hex, to_number};
use super::{Encoding, Format};

/// Writes records one after the other. Buffer the output: each record is one `write_all`.
pub(crate) struct RecordWriter<W> {
    output: W,
    format: Format,
    keys: Encoding,
    values: Encoding,
    line: Vec<u8>,
}

impl<W: Write> RecordWriter<W> {
    pub(crate) fn new(output: W, format: Format, encoding: Encoding) -> RecordWriter<W> {
        RecordWriter { output, format, keys: encoding, values: encoding, line: Vec::new() }
    }

    /// Writes values in another encoding than keys.
    pub(crate) fn with_values(self, values: Encoding) -> RecordWriter<W> {
        RecordWriter { values, ..self }
    }

    /// Writes one record.
    pub(crate) fn write(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.line.clear();
        match self.format {
            Format::Tsv => {
                encode("key", self.keys, key, &mut self.line, escape)?;
                self.line.push(b'\t');
                encode("value", self.values, value, &mut self.line, escape)?;
            }
            Format::Csv => {
                encode("key", self.keys, key, &mut self.line, quote)?;
                self.line.push(b',');
                encode("value", self.values, value, &mut self.line, quote)?;
            }
            Format::Jsonl => {
                self.line.push(b'{');
                json_field("key", self.keys, key, &mut self.line)?;
                self.line.push(b',');
                json_field("value", self.values, value, &mut self.line)?;
                self.line.push(b'}');
            }
        }
        self.line.push(b'\n');
        self.output.write_all(&self.line)
    }

    /// Flushes the buffer and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Appends a member of a JSON object: a string or, if the bytes are not UTF-8, base64 under a name
/// that says so.
pub(crate) fn json_field(
    name: &str,
    encoding: Encoding,
    bytes: &[u8],
    line: &mut Vec<u8>,
) -> io::Result<()> {
    match (encoding, std::str::from_utf8(bytes)) {
        (Encoding::Text, Ok(text)) => {
            write!(line, "\"{name}\":")?;
            serde_json::to_writer(line, text)?;
        }
        (Encoding::Hex, _) => {
            write!(line, "\"{name}_hex\":\"")?;
            to_hex(bytes, line);
            line.push(b'"');
        }
        (Encoding::U64, _) => {
            write!(line, "\"{name}_u64\":")?;
            to_number(bytes, line).map_err(|what| wrong(name, &what))?;
        }
        (Encoding::Text | Encoding::Base64, _) => {
            write!(line, "\"{name}_base64\":\"")?;
            to_base64(bytes, line);
            line.push(b'"');
        }
    }
    Ok(())
}

fn encode(
    name: &str,
    encoding: Encoding,
    bytes: &[u8],
    out: &mut Vec<u8>,
    text: fn(&[u8], &mut Vec<u8>),
) -> io::Result<()> {
    encoding.encode(bytes, out, text).map_err(|what| wrong(name, &what))
}

/// The error for a key or value that has no text in its encoding.
fn wrong(name: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {what}"))
}

/// Appends a field of comma-separated text, with quotes if it needs them.
fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b'"' | b',' | b'\r' | b'\n');
    if !bytes.iter().any(special) && !bytes.starts_with(BOM) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for byte in bytes {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
