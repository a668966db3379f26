//! Reading records from a stream of text, with the line for whatever is not one.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::bytes::{BOM, from_base64, from_hex, unescape};
use super::{Encoding, Format};

/// The longest line, and the longest record that spans several. A value may have 1 GiB, an escape
/// up to four characters a byte.
const RECORD_TEXT_BYTES_MAX: u64 = 5 << 30;

/// Why there is no further record.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The stream failed.
    Io(io::Error),
    /// The text is not a record.
    Malformed {
        /// Where it begins; the first line is 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// A record; the slices live until the next one is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// The line that it begins on.
    pub(crate) line: u64,
}

/// Reads records one after the other.
pub(crate) struct RecordReader<R> {
    input: R,
    format: Format,
    encoding: Encoding,
    escapes: bool,
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
            encoding,
            escapes: true,
            line: Vec::new(),
            line_number: 0,
            bytes_read: 0,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Takes backslashes in tab-separated text for themselves.
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

    /// The next record; none at the end of the stream. Empty lines are passed over.
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

    /// Takes a line into `self.line`, line end included; false at the end of the stream.
    fn next_line(&mut self) -> Result<bool, ReadError> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(RECORD_TEXT_BYTES_MAX);
        let length = limited.read_until(b'\n', &mut self.line).map_err(ReadError::Io)?;
        if length == 0 {
            return Ok(false);
        }
        if self.line_number == 0 && self.line.starts_with(BOM) {
            self.line.drain(..BOM.len());
        }
        self.line_number += 1;
        self.bytes_read += length as u64;
        if length as u64 == RECORD_TEXT_BYTES_MAX {
            let what = format!("the line is longer than {RECORD_TEXT_BYTES_MAX} bytes");
            return Err(ReadError::Malformed { line: self.line_number, what });
        }
        Ok(true)
    }

    fn parse_tsv(&mut self) -> Result<(), String> {
        let line = trim_line_end(&self.line);
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else {
            return Err("there is no tab between key and value".to_owned());
        };
        let (key, value) = (&line[..tab], &line[tab + 1..]);
        match (self.encoding, self.escapes) {
            (Encoding::Text, true) => {
                unescape(key, &mut self.key).map_err(|what| format!("key: {what}"))?;
                unescape(value, &mut self.value).map_err(|what| format!("value: {what}"))
            }
            (encoding, _) => {
                decode(encoding, key, &mut self.key).map_err(|what| format!("key: {what}"))?;
                decode(encoding, value, &mut self.value).map_err(|what| format!("value: {what}"))
            }
        }
    }

    /// The outer result is the stream's, the inner one the text's.
    fn parse_csv(&mut self) -> Result<Result<(), String>, ReadError> {
        let mut key = std::mem::take(&mut self.key);
        let mut value = std::mem::take(&mut self.value);
        let mut at = 0;
        let parsed = self.csv_fields(&mut key, &mut value, &mut at);
        (self.key, self.value) = (key, value);
        match parsed {
            Ok(Ok(())) if self.encoding != Encoding::Text => {
                let (key, value) = (self.key.clone(), self.value.clone());
                self.key.clear();
                self.value.clear();
                Ok(decode(self.encoding, &key, &mut self.key)
                    .map_err(|what| format!("key: {what}"))
                    .and_then(|()| {
                        decode(self.encoding, &value, &mut self.value)
                            .map_err(|what| format!("value: {what}"))
                    }))
            }
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

    /// Takes the field at `at`, leaving `at` at the comma or line end behind it. A quoted field may
    /// go on over further lines.
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
                if out.len() as u64 > RECORD_TEXT_BYTES_MAX || !self.next_line()? {
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
        let object: JsonRecord<'_> =
            serde_json::from_slice(trim_line_end(&self.line)).map_err(|error| {
                // The line is ours; only the column is the parser's.
                let text = error.to_string();
                let what = text.split(" at line ").next().unwrap_or(&text);
                format!("column {}: {what}", error.column())
            })?;
        let JsonRecord { key, key_hex, key_base64, value, value_hex, value_base64 } = object;
        json_field("key", [key, key_hex, key_base64], &mut self.key)?;
        json_field("value", [value, value_hex, value_base64], &mut self.value)
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
    #[serde(borrow, default)]
    value: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    value_hex: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    value_base64: Option<JsonText<'a>>,
}

/// A string that is borrowed from the line unless it has escapes.
#[derive(Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Of the three ways to give a field, exactly one: plain, hexadecimal, base64.
fn json_field(
    name: &str,
    [plain, hex, base64]: [Option<JsonText<'_>>; 3],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let decoded = match (plain, hex, base64) {
        (Some(text), None, None) => decode(Encoding::Text, text.0.as_bytes(), out),
        (None, Some(text), None) => decode(Encoding::Hex, text.0.as_bytes(), out),
        (None, None, Some(text)) => decode(Encoding::Base64, text.0.as_bytes(), out),
        (None, None, None) => Err("missing".to_owned()),
        _ => Err("given in more than one way".to_owned()),
    };
    decoded.map_err(|what| format!("{name}: {what}"))
}

fn decode(encoding: Encoding, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    match encoding {
        Encoding::Text => {
            out.extend_from_slice(text);
            Ok(())
        }
        Encoding::Hex => from_hex(text, out),
        Encoding::Base64 => from_base64(text, out),
    }
}

/// `line` without `\n` or `\r\n`.
fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
