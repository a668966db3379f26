//! Recorded loads: one operation a line, `microseconds,operation,key[,value bytes]`.
//!
//! A malformed line is an error that names its number: skipping it would silently measure another
//! load.

use std::io::BufRead;

use crate::OpKind;

/// One operation of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayEvent {
    /// When it is due, in microseconds from the start of the recording.
    pub due_us: u64,
    /// The operation.
    pub kind: OpKind,
    /// The key, as the file has it.
    pub key: Box<[u8]>,
    /// Bytes of the value (writes) or entries to read (scans); 0 otherwise.
    pub size: u32,
    /// What is done in the same call: the other keys of a read, or the other entries of a batch.
    pub others: Box<[ReplayPart]>,
}

/// A part of an operation on several keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayPart {
    /// The key.
    pub key: Box<[u8]>,
    /// Bytes of the value of a write; `None` for a delete and a read.
    pub size: Option<u32>,
}

/// Why a recording cannot be used.
#[derive(Debug)]
pub enum ReplayError {
    /// The file cannot be read.
    Io(std::io::Error),
    /// A line is not of the form `microseconds,operation,key[,value bytes]`.
    Malformed {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Io(error) => write!(f, "{error}"),
            ReplayError::Malformed { line, reason } => write!(f, "line {line}: {reason}"),
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<std::io::Error> for ReplayError {
    fn from(error: std::io::Error) -> ReplayError {
        ReplayError::Io(error)
    }
}

/// Reads a whole recording. It skips empty lines, lines that begin with `#`, and one heading line
/// that begins with a letter. Times must not decrease.
///
/// # Errors
/// If the file cannot be read, or a line is malformed.
pub fn parse_replay(reader: impl BufRead) -> Result<Vec<ReplayEvent>, ReplayError> {
    let mut events: Vec<ReplayEvent> = Vec::new();
    for (line, text) in (1u64..).zip(reader.split(b'\n')) {
        let text = text?;
        let text = text.strip_suffix(b"\r").unwrap_or(&text);
        let heading = line == 1 && text.first().is_some_and(u8::is_ascii_alphabetic);
        if text.is_empty() || text.starts_with(b"#") || heading {
            continue;
        }
        let event =
            parse_replay_line(text).map_err(|reason| ReplayError::Malformed { line, reason })?;
        if let Some(last) = events.last()
            && event.due_us < last.due_us
        {
            let reason = format!("time goes back from {} to {} us", last.due_us, event.due_us);
            return Err(ReplayError::Malformed { line, reason });
        }
        events.push(event);
    }
    Ok(events)
}

/// Reads one line.
///
/// # Errors
/// If the line is malformed. The text says why.
pub fn parse_replay_line(line: &[u8]) -> Result<ReplayEvent, String> {
    let mut fields = line.split(|&byte| byte == b',');
    let time = fields.next().unwrap_or_default();
    let due_us = number(time).ok_or_else(|| {
        format!("the time must be microseconds as a whole number, not {}", quoted(time))
    })?;
    let word = fields.next().ok_or("an operation must follow the time")?;
    let kind = operation(word).ok_or_else(|| {
        format!("{} is no operation: get, put, delete, scan, update", quoted(word))
    })?;
    let key = fields.next().filter(|key| !key.is_empty()).ok_or("the key is missing")?;
    let size = match fields.next() {
        None => None,
        Some(text) => {
            let size = number(text).and_then(|size| u32::try_from(size).ok()).ok_or_else(|| {
                format!(
                    "the size must be a whole number of bytes below 4 GiB, not {}",
                    quoted(text)
                )
            })?;
            Some(size)
        }
    };
    if fields.next().is_some() {
        return Err("more than four fields".to_owned());
    }
    let size = match (kind, size) {
        (OpKind::Write | OpKind::ReadModifyWrite, None) => {
            return Err("a write needs its value's size".to_owned());
        }
        (OpKind::Scan, None) => 50,
        (_, size) => size.unwrap_or(0),
    };
    Ok(ReplayEvent { due_us, kind, key: key.into(), size, others: Box::default() })
}

fn operation(word: &[u8]) -> Option<OpKind> {
    match word.trim_ascii().to_ascii_lowercase().as_slice() {
        b"get" | b"read" | b"r" => Some(OpKind::Read),
        b"put" | b"write" | b"insert" | b"set" | b"w" => Some(OpKind::Write),
        b"delete" | b"d" => Some(OpKind::Delete),
        b"scan" | b"seek" | b"s" => Some(OpKind::Scan),
        b"update" | b"rmw" | b"u" => Some(OpKind::ReadModifyWrite),
        _ => None,
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

fn quoted(text: &[u8]) -> String {
    let short: String = String::from_utf8_lossy(text).chars().take(40).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_reads_back() {
        let text = "time,op,key,size\n0,put,alpha,400\n# note\n\n12,get,alpha\r\n12,scan,a,20\n\
                    40,delete,alpha\n41,update,beta,9\n";
        let events = parse_replay(text.as_bytes()).unwrap();
        let short: Vec<_> = events.iter().map(|e| (e.due_us, e.kind, e.size)).collect();
        assert_eq!(
            short,
            [
                (0, OpKind::Write, 400),
                (12, OpKind::Read, 0),
                (12, OpKind::Scan, 20),
                (40, OpKind::Delete, 0),
                (41, OpKind::ReadModifyWrite, 9)
            ]
        );
        assert_eq!(&*events[0].key, b"alpha");
    }

    #[test]
    fn malformed_lines_are_named_by_number_and_fault() {
        for (text, line, part) in [
            ("0,put,a,1\nx,put,a,1\n", 2, "microseconds"),
            ("0,put,a,1\n\n1,frobnicate,a,1\n", 3, "frobnicate"),
            ("5\n", 1, "operation"),
            ("5,get\n", 1, "key is missing"),
            ("5,get,\n", 1, "key is missing"),
            ("5,put,a\n", 1, "size"),
            ("5,put,a,-3\n", 1, "whole number"),
            ("5,put,a,99999999999\n", 1, "4 GiB"),
            ("5,put,a,1,2\n", 1, "four fields"),
            ("5,get,a\n4,get,a\n", 2, "goes back"),
            ("5,get,a\nput,a,5\n", 2, "microseconds"),
            ("\u{fffd}\u{1},get,a\n", 1, "microseconds"),
        ] {
            let error = parse_replay(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: ")), "{text:?}: {error}");
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
