//! The manifest: the durable list of version edits, which say which tables make up each column
//! family. `docs/format/manifest.md` describes bytes and rules.
//!
//! 1. `codec` encodes an edit.
//! 2. `record` writes the edits of one atomic change as one record, and reads them back.
//! 3. `current` names the current manifest in the file CURRENT.
//! 4. `identity` tells databases and their copies apart.
//!
//! What must stay true:
//!
//! - One record is one atomic change of any number of column families.
//! - A manifest starts with a snapshot, which must be complete. Deltas follow.
//! - Only a torn tail that nothing proves to have been durable is ignored. Everything else that
//!   does not verify is an error that names file and offset.

mod codec;
mod current;
mod identity;
mod record;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use codec::{decode_edits, encode_edit};
pub use current::{
    Current, TEMPORARY_CURRENT, foreign, foreign_reason, prepare_current, read_current,
    recognise_foreign, replace_current, write_current,
};
pub use identity::Identity;
pub use record::{ManifestReader, ManifestWriter};

use crate::vfs::{IoClass, MemVfs, OpenOptions, Vfs};

/// Fuzz entry: reads `data` as a manifest. It must neither panic nor allocate much more than
/// `data`.
pub fn fuzz(data: &[u8]) {
    let vfs = MemVfs::new();
    let path = Path::new("fuzz.manifest");
    let Ok(file) = vfs.open(path, OpenOptions::CREATE) else { return };
    if file.write_at(data, 0, IoClass::Manifest).is_err() {
        return;
    }
    let Ok(mut reader) = ManifestReader::open(&vfs, path, 1, Some(1), 0) else { return };
    while let Ok(Some(_)) = reader.next() {}
}

/// Fuzz entry: reads `data` as the payload of a record. What is accepted must survive a round trip.
pub fn fuzz_edit(data: &[u8]) {
    let Ok(edits) = decode_edits(data) else { return };
    let mut encoded = Vec::new();
    edits.iter().for_each(|edit| encode_edit(edit, &mut encoded));
    assert_eq!(decode_edits(&encoded).as_ref(), Ok(&edits), "an edit must survive a round trip");
}
