//! The symbols of a program or shared library: ELF for 64 bits, little-endian.
//!
//! What must stay true: a damaged file is an error or has fewer symbols, and never a panic.

use std::collections::BTreeMap;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// Sections with symbols: SYMTAB and DYNSYM.
const SYMBOL_SECTIONS: [u32; 2] = [2, 11];
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

/// The part of a file that a section header names.
struct Section<'a> {
    kind: u32,
    bytes: &'a [u8],
    /// The section of the names of its symbols.
    link: usize,
}

/// Returns the names of all symbols, and whether the file defines them.
pub(super) fn symbols(file: &[u8]) -> Result<BTreeMap<String, bool>, String> {
    if !file.starts_with(MAGIC) {
        return Err("not a program or shared library for 64-bit Linux (ELF)".to_owned());
    }
    let sections = sections(file).ok_or("damaged: its sections cannot be read")?;
    let mut found = BTreeMap::new();
    for section in sections.iter().filter(|section| SYMBOL_SECTIONS.contains(&section.kind)) {
        let Some(names) = sections.get(section.link) else { continue };
        for symbol in section.bytes.chunks_exact(SYMBOL_BYTES) {
            let Some((name, defined)) = named(symbol, names.bytes) else { continue };
            *found.entry(name).or_insert(false) |= defined;
        }
    }
    if found.is_empty() {
        return Err("it has no symbols: it is stripped and linked statically".to_owned());
    }
    Ok(found)
}

fn sections(file: &[u8]) -> Option<Vec<Section<'_>>> {
    let begin = usize::try_from(number::<8>(file, 40)?).ok()?;
    let count = usize::try_from(number::<2>(file, 60)?).ok()?;
    let mut sections = Vec::with_capacity(count.min(1 << 16));
    for at in 0..count {
        let from = begin.checked_add(at.checked_mul(SECTION_BYTES)?)?;
        let header = file.get(from..)?.get(..SECTION_BYTES)?;
        let offset = usize::try_from(number::<8>(header, 24)?).ok()?;
        let length = usize::try_from(number::<8>(header, 32)?).ok()?;
        sections.push(Section {
            kind: u32::try_from(number::<4>(header, 4)?).ok()?,
            // A section without bytes in the file may name a place beyond its end.
            bytes: file.get(offset..).and_then(|rest| rest.get(..length)).unwrap_or_default(),
            link: usize::try_from(number::<4>(header, 40)?).ok()?,
        });
    }
    Some(sections)
}

/// Returns the name of a symbol, without its version, and whether it is defined here.
fn named(symbol: &[u8], names: &[u8]) -> Option<(String, bool)> {
    let at = usize::try_from(number::<4>(symbol, 0)?).ok()?;
    let name = names.get(at..)?.split(|byte| *byte == 0).next()?;
    let name = std::str::from_utf8(name).ok()?.split('@').next()?;
    (!name.is_empty()).then(|| Some((name.to_owned(), number::<2>(symbol, 6)? != 0)))?
}

/// Returns the number of `N` bytes at `at`.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..)?.get(..N)?;
    Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_symbols_and_a_damaged_one_does_no_harm() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let found = symbols(&own).unwrap();
        assert!(found.values().any(|defined| !defined), "functions of libc");
        assert!(symbols(b"#!/bin/sh\n").is_err());
        let small = std::fs::read("/bin/true").unwrap();
        for at in (0..small.len().min(4096)).step_by(7) {
            let mut damaged = small.clone();
            damaged[at] ^= 0xff;
            let _told = symbols(&damaged);
            let _told = symbols(&small[..at]);
        }
        let end = small.len().saturating_sub(4096);
        for at in (end..small.len()).step_by(5) {
            let mut damaged = small.clone();
            damaged[at] = 0xff;
            let _told = symbols(&damaged);
        }
    }
}
