//! The catalogue on disk: which tables make up each column family. A manifest is a log file of its
//! own kind ([`record`]) whose records are lists of version edits ([`codec`]); the file CURRENT
//! names the one that counts ([`current`]). `docs/format/manifest.md` describes bytes and rules.
//!
//! What must stay true:
//! - One record is one atomic change, over as many column families as it likes.
//! - A manifest starts with a snapshot, complete or worth nothing; deltas follow.
//! - Only a torn tail that nothing proves to have been durable is ignored; everything else that
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
    Current, TEMPORARY_CURRENT, foreign, foreign_reason, read_current, recognise_foreign,
    write_current,
};
pub use identity::{Identity, random_uid};
pub use record::{ManifestReader, ManifestWriter};

use crate::vfs::{IoClass, MemVfs, OpenOptions, Vfs};

/// Fuzz entry: reads `data` as a manifest. Must neither panic nor allocate much more than it has.
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
