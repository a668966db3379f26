//! Reads records from a stream of text. An error names the line that is not a record.

use std::borrow::Cow;
use std::io::{self, BufRead};

use sateen::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use serde::Deserialize;

use super::bytes::{BOM, unescape};
use super::{Encoding, Format};

/// Bytes of a line that belong to neither key nor value: separators, names in JSON.
const AROUND_BYTES: u64 = 4096;
/// The smallest growth of the line buffer.
const LINE_GROWTH_BYTES: usize = 4096;

/// Why there is no further record.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The stream failed.
    Io(io::Error),
    /// The text is not a record.
    Malformed {
        /// The line on which it begins. The first line is 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// A record. Its slices are valid until the next record is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// The line on which it begins.
    pub(crate) line: u64,
}

/// Reads records one after the other.
pub(crate) struct RecordReader<R> {
    input: R,
    format: Format,
    keys: Encoding,
    values: Encoding,
    escapes: bool,
    /// The largest number of bytes of a key and value together.
    record_bytes_max: u64,
    line: Vec<u8>,
    line_number: u64,
    bytes_read: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<R: BufRead> RecordReader<R> {
    pub(crate) fn new(input: R, format: Format, encoding: Encoding) -> RecordReader<R> {
        RecordReader {
            input,
            format,
            keys: encoding,
            values: encoding,
            escapes: true,
            record_bytes_max: (KEY_BYTES_MAX + VALUE_BYTES_MAX) as u64,
            line: Vec::new(),
            line_number: 0,
            bytes_read: 0,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Makes lines an error whose key and value together have more than this many bytes.
    pub(crate) fn limited_to(mut self, record_bytes_max: u64) -> RecordReader<R> {
        self.record_bytes_max = record_bytes_max;
        self
    }

    /// Reads values in another encoding than keys.
    pub(crate) fn with_values(mut self, values: Encoding) -> RecordReader<R> {
        self.values = values;
        self
    }

    /// Reads backslashes in tab-separated text as themselves.
    pub(crate) fn without_escapes(mut self) -> RecordReader<R> {
        self.escapes = false;
        self
    }

    /// Bytes of text taken from the stream so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The last line taken from the stream.
    pub(crate) fn line_number(&self) -> u64 {
        self.line_number
    }

    /// Returns the next record, or `None` at the end of the stream. Skips empty lines.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if !self.next_line()? {
                return Ok(None);
            }
            if !trim_line_end(&self.line).is_empty() {
                break;
            }
        }
        self.key.clear();
        self.value.clear();
        let line = self.line_number;
        // A key or value is never longer than its text.
        if self.value.try_reserve(self.line.len()).is_err() {
            let what = no_memory(self.line.len());
            return Err(ReadError::Malformed { line, what });
        }
        let parsed = match self.format {
            Format::Tsv => self.parse_tsv(),
            Format::Csv => self.parse_csv()?,
            Format::Jsonl => self.parse_json(),
        };
        if let Err(what) = parsed {
            return Err(ReadError::Malformed { line, what });
        }
        Ok(Some(Record { key: &self.key, value: &self.value, line }))
    }

    /// Reads a line with its line end into `self.line`; false at the end of the stream.
    fn next_line(&mut self) -> Result<bool, ReadError> {
        self.line.clear();
        let ended = self.take_line();
        let length = self.line.len();
        if length == 0 && matches!(ended, Ok(None)) {
            return Ok(false);
        }
        if self.line_number == 0 && self.line.starts_with(BOM) {
            self.line.drain(..BOM.len());
        }
        self.line_number += 1;
        self.bytes_read += length as u64;
        match ended.map_err(ReadError::Io)? {
            None => Ok(true),
            Some(what) => Err(ReadError::Malformed { line: self.line_number, what }),
        }
    }

    /// Reads text up to the end of the line. Returns the reason if the line is too long.
    fn take_line(&mut self) -> io::Result<Option<String>> {
        let most = self.line_bytes_max();
        loop {
            let text = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                text => text?,
            };
            let end = text.iter().position(|byte| *byte == b'\n');
            let part = text.get(..end.map_or(text.len(), |end| end + 1)).unwrap_or_default();
            let length = self.line.len() + part.len();
            if length as u64 > most {
                let record = self.record_bytes_max;
                let what = format!(
                    "the line is longer than {most} bytes, and so than any record: a key and a \
                     value have {record} bytes together at most"
                );
                return Ok(Some(what));
            }
            if self.line.capacity() < length {
                // The buffer doubles, as vectors do, or grows by as much as there is memory for.
                let more = part.len().max(self.line.len()).max(LINE_GROWTH_BYTES);
                let grown = self.line.try_reserve(more);
                if grown.or_else(|_| self.line.try_reserve_exact(part.len())).is_err() {
                    return Ok(Some(no_memory(length)));
                }
            }
            self.line.extend_from_slice(part);
            let (taken, ends) = (part.len(), end.is_some() || part.is_empty());
            self.input.consume(taken);
            if ends {
                return Ok(None);
            }
        }
    }

    /// Returns the bytes of the longest text of one record.
    fn line_bytes_max(&self) -> u64 {
        let plain = [self.keys, self.values].contains(&Encoding::Text);
        let characters_a_byte = match self.format {
            // \u0000
            Format::Jsonl => 6,
            // \x00
            Format::Tsv if plain && self.escapes => 4,
            Format::Tsv | Format::Csv => 2,
        };
        self.record_bytes_max.saturating_mul(characters_a_byte).saturating_add(AROUND_BYTES)
    }

    fn parse_tsv(&mut self) -> Result<(), String> {
        let line = trim_line_end(&self.line);
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else {
            return Err("there is no tab between key and value".to_owned());
        };
        let (key, value) = (&line[..tab], &line[tab + 1..]);
        let decode = |encoding, text, out| match (encoding, self.escapes) {
            (Encoding::Text, true) => unescape(text, out),
            (encoding, _) => encoding.decode(text, out),
        };
        decode(self.keys, key, &mut self.key).map_err(|what| format!("key: {what}"))?;
        decode(self.values, value, &mut self.value).map_err(|what| format!("value: {what}"))
    }

    /// Parses a CSV record. The outer result is that of the stream, the inner one that of the text.
    fn parse_csv(&mut self) -> Result<Result<(), String>, ReadError> {
        let mut key = std::mem::take(&mut self.key);
        let mut value = std::mem::take(&mut self.value);
        let mut at = 0;
        let parsed = self.csv_fields(&mut key, &mut value, &mut at);
        (self.key, self.value) = (key, value);
        match parsed {
            Ok(Ok(())) => Ok(decode_in_place(self.keys, &mut self.key)
                .map_err(|what| format!("key: {what}"))
                .and_then(|()| {
                    decode_in_place(self.values, &mut self.value)
                        .map_err(|what| format!("value: {what}"))
                })),
            other => other,
        }
    }

    fn csv_fields(
        &mut self,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
        at: &mut usize,
    ) -> Result<Result<(), String>, ReadError> {
        if let Err(what) = self.csv_field(key, at)? {
            return Ok(Err(format!("key: {what}")));
        }
        if self.line.get(*at) != Some(&b',') {
            return Ok(Err("there is one field; key and value are needed".to_owned()));
        }
        *at += 1;
        if let Err(what) = self.csv_field(value, at)? {
            return Ok(Err(format!("value: {what}")));
        }
        if self.line.get(*at) == Some(&b',') {
            return Ok(Err("there are more fields than key and value".to_owned()));
        }
        Ok(Ok(()))
    }

    /// Reads the field at `at` and moves `at` to the comma or line end after it. A quoted field may
    /// continue on further lines.
    fn csv_field(
        &mut self,
        out: &mut Vec<u8>,
        at: &mut usize,
    ) -> Result<Result<(), String>, ReadError> {
        if self.line.get(*at) != Some(&b'"') {
            let rest = &trim_line_end(&self.line)[*at..];
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            if rest[..end].contains(&b'"') {
                return Ok(Err("a quote inside a field that is not quoted".to_owned()));
            }
            out.extend_from_slice(&rest[..end]);
            *at += end;
            return Ok(Ok(()));
        }
        *at += 1;
        loop {
            let rest = &self.line[*at..];
            let Some(quote) = rest.iter().position(|byte| *byte == b'"') else {
                out.extend_from_slice(rest);
                *at = 0;
                if out.len() as u64 > self.line_bytes_max() {
                    let record = self.record_bytes_max;
                    return Ok(Err(format!(
                        "the quoted field is longer than any record: a key and a value have \
                         {record} bytes together at most"
                    )));
                }
                if !self.next_line()? {
                    return Ok(Err("the quoted field is not closed".to_owned()));
                }
                continue;
            };
            out.extend_from_slice(&rest[..quote]);
            *at += quote + 1;
            match self.line.get(*at) {
                Some(b'"') => {
                    out.push(b'"');
                    *at += 1;
                }
                Some(b',') | None => return Ok(Ok(())),
                Some(_) if *at == trim_line_end(&self.line).len() => return Ok(Ok(())),
                Some(_) => return Ok(Err("text after the closing quote".to_owned())),
            }
        }
    }

    fn parse_json(&mut self) -> Result<(), String> {
        let text = trim_line_end(&self.line);
        // The parser would accept an array with as many members as the object.
        if let Some(first) = text.trim_ascii_start().first().filter(|first| **first != b'{') {
            let column = text.len() - text.trim_ascii_start().len() + 1;
            let shown = first.escape_ascii();
            return Err(format!("column {column}: an object begins with {{, not with {shown}"));
        }
        let object: JsonRecord<'_> = serde_json::from_slice(text).map_err(|error| {
            // Only the parser's column is right. The line number is that of this reader.
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            format!("column {}: {what}", error.column())
        })?;
        let JsonRecord { key, key_hex, key_base64, key_u64, .. } = object;
        json_field("key", [key, key_hex, key_base64], key_u64, &mut self.key)?;
        let JsonRecord { value, value_hex, value_base64, value_u64, .. } = object;
        json_field("value", [value, value_hex, value_base64], value_u64, &mut self.value)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRecord<'a> {
    #[serde(borrow, default)]
    key: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    key_hex: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    key_base64: Option<JsonText<'a>>,
    #[serde(default)]
    key_u64: Option<u64>,
    #[serde(borrow, default)]
    value: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    value_hex: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    value_base64: Option<JsonText<'a>>,
    #[serde(default)]
    value_u64: Option<u64>,
}

/// A string that is borrowed from the line unless it has escapes.
#[derive(Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns a field that must be given in exactly one of four forms: plain, hexadecimal, base64, a
/// number.
fn json_field(
    name: &str,
    [plain, hex, base64]: [Option<JsonText<'_>>; 3],
    number: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let decoded = match (plain, hex, base64, number) {
        (Some(text), None, None, None) => Encoding::Text.decode(text.0.as_bytes(), out),
        (None, Some(text), None, None) => Encoding::Hex.decode(text.0.as_bytes(), out),
        (None, None, Some(text), None) => Encoding::Base64.decode(text.0.as_bytes(), out),
        (None, None, None, Some(number)) => {
            out.extend_from_slice(&number.to_be_bytes());
            Ok(())
        }
        (None, None, None, None) => Err("missing".to_owned()),
        _ => Err("given in more than one way".to_owned()),
    };
    decoded.map_err(|what| format!("{name}: {what}"))
}

/// Replaces a text by the bytes that it stands for.
fn decode_in_place(encoding: Encoding, text: &mut Vec<u8>) -> Result<(), String> {
    if encoding == Encoding::Text {
        return Ok(());
    }
    let encoded = std::mem::take(text);
    encoding.decode(&encoded, text)
}

fn no_memory(bytes: usize) -> String {
    format!("there is no memory for a line of more than {bytes} bytes")
}

/// Returns `line` without `\n` or `\r\n`.
fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
