//! Values with named columns (RocksDict's wide columns), as they are stored.
//!
//! A typed value begins with its type, and `ENTITY` is one. In raw mode a value may be any bytes,
//! so `MARK` begins an entity, and also a plain value that begins with `MARK` itself:
//!
//! ```text
//! typed   ENTITY columns
//! raw     MARK 1 columns
//! raw     MARK 0 plain value that begins with MARK
//! columns (length of the name, name, length of the value, value)*, lengths in 4 bytes,
//!         little-endian, in the order of the bytes of their names
//! ```
//!
//! What must stay true: every value that can be put reads as what was put.

/// The type of an entity. Those of other values are in `codec.rs`.
pub(crate) const ENTITY: u8 = 7;
/// Random bytes.
const MARK: [u8; 16] = [
    0x9d, 0xe1, 0x4b, 0x07, 0xc2, 0x5e, 0x88, 0xf3, 0x31, 0xba, 0x16, 0xd4, 0x6f, 0xa9, 0x70, 0x1c,
];

/// A name and a value.
pub(crate) type Column<'a> = (&'a [u8], &'a [u8]);

/// A stored value.
pub(crate) enum Stored<'a> {
    Plain(&'a [u8]),
    Columns(Vec<Column<'a>>),
}

impl<'a> Stored<'a> {
    /// Returns `None` if the bytes are malformed.
    #[inline]
    pub(crate) fn read(raw: bool, bytes: &'a [u8]) -> Option<Stored<'a>> {
        let columns = if raw {
            let Some(marked) = bytes.strip_prefix(&MARK) else { return Some(Stored::Plain(bytes)) };
            match marked.split_first()? {
                (0, plain) => return Some(Stored::Plain(plain)),
                (1, columns) => columns,
                _ => return None,
            }
        } else {
            match bytes.split_first() {
                Some((&ENTITY, columns)) => columns,
                _ => return Some(Stored::Plain(bytes)),
            }
        };
        read_columns(columns).map(Stored::Columns)
    }

    /// Returns the value of the column without a name, which a plain value is.
    pub(crate) fn plain(&self) -> &'a [u8] {
        match self {
            Stored::Plain(value) => value,
            Stored::Columns(columns) => match columns.first() {
                Some((b"", value)) => value,
                _ => &[],
            },
        }
    }
}

fn read_columns(mut bytes: &[u8]) -> Option<Vec<Column<'_>>> {
    let mut columns = Vec::new();
    while !bytes.is_empty() {
        columns.push((take(&mut bytes)?, take(&mut bytes)?));
    }
    Some(columns)
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

/// Returns the stored bytes of a plain value of raw mode, if they are others than its own.
#[inline]
pub(crate) fn escaped(raw_value: &[u8]) -> Option<Vec<u8>> {
    let marked = raw_value.starts_with(&MARK);
    marked.then(|| [&MARK[..], &[0], raw_value].concat())
}

/// Returns the stored bytes of an entity. Fails with a text.
pub(crate) fn encode(raw: bool, mut columns: Vec<Column<'_>>) -> Result<Vec<u8>, String> {
    columns.sort_unstable();
    let twice = columns.windows(2).find(|two| matches!(two, [a, b] if a.0 == b.0));
    if let Some([(name, _), _]) = twice {
        return Err(format!("two columns have the name {}", name.escape_ascii()));
    }
    let mut stored = if raw { [&MARK[..], &[1]].concat() } else { vec![ENTITY] };
    for part in columns.iter().flat_map(|(name, value)| [name, value]) {
        let length = u32::try_from(part.len())
            .map_err(|_| format!("a name or value of {} bytes is too long", part.len()))?;
        stored.extend_from_slice(&length.to_le_bytes());
        stored.extend_from_slice(part);
    }
    Ok(stored)
}
