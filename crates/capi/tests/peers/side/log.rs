//! The contents of batches and of the WAL.

use super::{Side, bytes, shown};
use crate::api::H;
use crate::op::{Op, Rng};

impl Side<'_> {
    /// Returns the bytes of a batch.
    ///
    /// # Safety
    /// The handle is that of a batch.
    pub(super) unsafe fn data(&self, batch: H) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: the caller's promise.
        unsafe { bytes((self.api.writebatch_data)(batch, &raw mut length), length).to_vec() }
    }

    /// Returns the operations in the WAL from a sequence number on. How the engine grouped them
    /// into batches does not matter.
    pub(super) fn updates(&mut self, op: &Op) -> String {
        let (api, db) = (self.api, self.db);
        if !self.counted() || self.setup.ttl {
            return String::new();
        }
        // SAFETY: open handles, which are freed once.
        unsafe {
            let last = (api.get_latest_sequence_number)(db);
            let mut rng = Rng::new(op.bits, 1);
            let first = match rng.below(10) {
                0 => last + 2 + rng.below(3),
                1 => 1,
                _ => 1 + last.saturating_sub(rng.below(200)),
            };
            self.calls += 2;
            let null = std::ptr::null_mut();
            let iter = match self.call(|e| (api.get_updates_since)(db, first, null, e)) {
                Ok(iter) => iter,
                Err(error) => return format!("{error} from {first}"),
            };
            let mut text = format!("from {first}");
            while (api.wal_iter_valid)(iter) != 0 {
                let mut sequence = 0;
                let batch = (api.wal_iter_get_batch)(iter, &raw mut sequence);
                let data = self.data(batch);
                (api.writebatch_destroy)(batch);
                text.push_str(&operations(&data, Some((sequence, first))));
                (api.wal_iter_next)(iter);
                self.calls += 3;
            }
            text.push_str(&self.told(|e| (api.wal_iter_status)(iter, e)));
            (api.wal_iter_destroy)(iter);
            text
        }
    }
}

/// Returns the operations of a batch in RocksDB's form, with sequence numbers if the first one is
/// given.
pub(super) fn operations(data: &[u8], numbered: Option<(u64, u64)>) -> String {
    let mut text = String::new();
    let Some(mut rest) = data.get(12..) else { return "no batch".to_owned() };
    let mut nth = 0;
    while !rest.is_empty() {
        match operation(&mut rest) {
            Some(told) => {
                let number = numbered.map(|(sequence, _)| sequence + nth);
                if numbered.is_none_or(|(sequence, first)| sequence + nth >= first) {
                    let number = number.map_or_else(String::new, |number| number.to_string());
                    text.push_str(&format!("\n{number} {told}"));
                }
                nth += 1;
            }
            None => return format!("{text}\nbroken at {:?}", shown(rest)),
        }
    }
    text
}

fn operation(rest: &mut &[u8]) -> Option<String> {
    let (tag, after) = rest.split_first()?;
    *rest = after;
    // The kind, whether a column family is named, and the number of byte strings.
    let (what, named, parts) = match tag {
        // A single deletion counts as a deletion here.
        0x0 | 0x7 => ("delete", false, 1),
        0x1 => ("put", false, 2),
        0x2 => ("merge", false, 2),
        0x4 | 0x8 => ("delete", true, 1),
        0x5 => ("put", true, 2),
        0x6 => ("merge", true, 2),
        0xe => ("delete range", true, 2),
        0xf => ("delete range", false, 2),
        _ => return None,
    };
    let family = if named { number(rest)? } else { 0 };
    let mut told = format!("{what} {family}");
    for _ in 0..parts {
        let length = usize::try_from(number(rest)?).ok()?;
        let (part, after) = rest.split_at_checked(length)?;
        told.push_str(&format!(" {}", shown(part)));
        *rest = after;
    }
    Some(told)
}

/// Parses a varint.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
}
