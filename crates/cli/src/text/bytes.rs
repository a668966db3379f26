//! Bytes as text: backslash escapes, hexadecimal, base64. Each decoder inverts its encoder and says
//! what is wrong with other text.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns a path as JSON text, which [`sateen::bytes_of_text`] turns into the path again.
pub(crate) fn json_path(path: impl AsRef<Path>) -> serde_json::Value {
    sateen::text_of_bytes(path.as_ref().as_os_str().as_bytes()).into()
}

/// The byte order mark in UTF-8. At the start of a file it is not part of the first key.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Appends `bytes`. Escapes backslashes and bytes that would break a line or a terminal; text in
/// UTF-8 stays readable.
pub(crate) fn escape(mut bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.starts_with(BOM) {
        BOM.iter().for_each(|byte| escape_byte(*byte, out));
        bytes = &bytes[BOM.len()..];
    }
    for chunk in bytes.utf8_chunks() {
        let mut plain_from = 0;
        let text = chunk.valid().as_bytes();
        for (i, byte) in text.iter().enumerate() {
            if *byte < b' ' || *byte == b'\\' || *byte == 0x7F {
                out.extend_from_slice(&text[plain_from..i]);
                escape_byte(*byte, out);
                plain_from = i + 1;
            }
        }
        out.extend_from_slice(&text[plain_from..]);
        chunk.invalid().iter().for_each(|byte| escape_byte(*byte, out));
    }
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        other => {
            out.extend_from_slice(b"\\x");
            push_hex(other, out);
        }
    }
}

/// Appends the bytes that the escaped `text` stands for.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (byte, length) = match rest {
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => return Err("\\x must be followed by two hexadecimal digits".to_owned()),
            },
            [b'x', ..] => return Err("\\x must be followed by two hexadecimal digits".to_owned()),
            [other, ..] => {
                let shown = other.escape_ascii();
                return Err(format!(
                    "\\{shown} is not an escape (\\t, \\n, \\r, \\\\ and \\xHH are)"
                ));
            }
            [] => return Err("a backslash at the end".to_owned()),
        };
        out.push(byte);
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Appends two digits for each byte.
pub(crate) fn to_hex(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.iter().for_each(|byte| push_hex(*byte, out));
}

/// Appends the number that eight bytes are, the most significant first.
pub(crate) fn to_number(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let Ok(bytes) = <[u8; 8]>::try_from(bytes) else {
        let (length, shown) = (bytes.len(), bytes.get(..16).unwrap_or(bytes).escape_ascii());
        let bytes = if length == 1 { "byte" } else { "bytes" };
        return Err(format!("{length} {bytes}, and a u64 has 8: {shown}"));
    };
    out.extend_from_slice(u64::from_be_bytes(bytes).to_string().as_bytes());
    Ok(())
}

/// Appends the eight bytes of the number that `text` is.
pub(crate) fn from_number(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    let number = digits.and_then(|text| text.parse::<u64>().ok());
    let number = number.ok_or_else(|| {
        format!("{:?} is no number from 0 to {}", text.escape_ascii().to_string(), u64::MAX)
    })?;
    out.extend_from_slice(&number.to_be_bytes());
    Ok(())
}

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        b'A'..=b'F' => Some(character - b'A' + 10),
        _ => None,
    }
}

/// Appends the bytes that the hexadecimal `text` stands for. `ldb` writes 0x before the digits.
pub(crate) fn from_hex(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X"));
    let text = digits.unwrap_or(text);
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("an odd number of hexadecimal digits".to_owned());
    }
    for [high, low] in pairs {
        match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => {
                let shown = [*high, *low].escape_ascii().to_string();
                return Err(format!("{shown:?} is not hexadecimal"));
            }
        }
    }
    Ok(())
}

/// Appends `bytes` in base64.
pub(crate) fn to_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let (triples, rest) = bytes.as_chunks::<3>();
    let symbol = |bits: u32| BASE64[usize::from(bits.to_le_bytes()[0] & 63)];
    for [a, b, c] in triples {
        let bits = u32::from_be_bytes([0, *a, *b, *c]);
        out.extend([18, 12, 6, 0].map(|shift| symbol(bits >> shift)));
    }
    match rest {
        [a] => {
            let bits = u32::from(*a) << 16;
            out.extend([symbol(bits >> 18), symbol(bits >> 12), b'=', b'=']);
        }
        [a, b] => {
            let bits = u32::from_be_bytes([0, *a, *b, 0]);
            out.extend([symbol(bits >> 18), symbol(bits >> 12), symbol(bits >> 6), b'=']);
        }
        _ => {}
    }
}

/// Appends the bytes that `text` in base64 stands for. Unused bits must be zero, so that each value
/// has one text.
pub(crate) fn from_base64(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let (groups, rest) = text.as_chunks::<4>();
    if !rest.is_empty() {
        return Err("base64 must have a multiple of four characters".to_owned());
    }
    for (i, group) in groups.iter().enumerate() {
        let padding = match group {
            [_, _, b'=', b'='] => 2,
            [_, _, _, b'='] => 1,
            _ => 0,
        };
        let last = i + 1 == groups.len();
        let mut bits = 0u32;
        for character in &group[..4 - padding] {
            bits = bits << 6 | sextet(*character)?;
        }
        bits <<= 6 * padding;
        let [_, a, b, c] = bits.to_be_bytes();
        let unused = padding > 0 && c != 0 || padding == 2 && b != 0;
        if unused || padding > 0 && !last {
            return Err("base64 with misplaced padding".to_owned());
        }
        out.extend_from_slice(&[a, b, c][..3 - padding]);
    }
    Ok(())
}

fn sextet(character: u8) -> Result<u32, String> {
    let value = match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => return Err(format!("{:?} is not base64", other.escape_ascii().to_string())),
    };
    Ok(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_read_with_and_without_what_ldb_writes_before_it() {
        let read = |text: &str| {
            let mut bytes = Vec::new();
            from_hex(text.as_bytes(), &mut bytes).map(|()| bytes)
        };
        for text in ["00ff6b", "0x00ff6b", "0X00FF6B"] {
            assert_eq!(read(text), Ok(vec![0, 0xFF, 0x6B]), "{text}");
        }
        assert_eq!((read(""), read("0x")), (Ok(vec![]), Ok(vec![])));
        for text in ["0x0", "x00", "0x0x00", "00x0", "0xg0", "6"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
