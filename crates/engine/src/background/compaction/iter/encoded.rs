//! Values in value files, in a compaction.
//!
//! 1. Each value of a put in the input is encoded by [`Separated`]. [`EncodedValues::joined`] reads
//!    one for a filter or a merge operator; all others pass as they are.
//! 2. [`EncodedValues::see`] notes the place of each value of the input, and
//!    [`EncodedValues::keep`] that an output keeps it.
//! 3. [`EncodedValues::take_dropped`] returns the places that no output keeps: they are dead once
//!    the input tables are. [`EncodedValues::take_garbage`] counts them for listeners.
//!
//! What must stay true: a place is dropped only if every entry of its user key was examined. Of two
//! entries with one place, one may be kept.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use sateen_control::{FileId, IoClass};
use sateen_store::base::error::Result;
use sateen_store::files::Extents;
use sateen_store::table::{Separated, ValueFiles, ValuePlace, ValueScan};

use crate::background::value_output::ValueCount;
use crate::entry::malformed;

/// The values of the input of a compaction.
pub(crate) struct EncodedValues {
    files: Arc<ValueFiles>,
    class: IoClass,
    scan: ValueScan,
    /// The last value that was read.
    read: Vec<u8>,
    /// Places of values of the current user key, in the input and in the output.
    seen: Vec<(FileId, Range<u64>)>,
    kept: Vec<(FileId, Range<u64>)>,
    /// Places of earlier user keys that no output keeps.
    dropped: BTreeMap<FileId, Extents>,
    /// How many values these places have, and their bytes.
    garbage: BTreeMap<FileId, ValueCount>,
}

impl EncodedValues {
    /// Returns the values of an input whose value files are among `files`.
    pub(crate) fn new(files: Arc<ValueFiles>, class: IoClass) -> EncodedValues {
        EncodedValues {
            files,
            class,
            scan: ValueScan::default(),
            read: Vec::new(),
            seen: Vec::new(),
            kept: Vec::new(),
            dropped: BTreeMap::new(),
            garbage: BTreeMap::new(),
        }
    }

    /// Returns the value that is encoded as `stored`, and reads it if needed.
    pub(super) fn joined<'a>(&'a mut self, stored: &'a [u8]) -> Result<&'a [u8]> {
        match Separated::decode(stored) {
            Some(Separated::Here(value)) => Ok(value),
            Some(Separated::InFile(file, place)) => {
                let file = self.files.get(file, self.class)?;
                self.scan.read(&file, place, self.class, &mut self.read)?;
                Ok(&self.read)
            }
            Some(Separated::InLog(_)) | None => Err(malformed("a value to compact is not encoded")),
        }
    }

    /// Notes a value of the current user key.
    pub(super) fn see(&mut self, stored: &[u8]) {
        if let Some(Separated::InFile(file, place)) = Separated::decode(stored) {
            self.seen.push((file, place.offset..place.end()));
        }
    }

    /// Notes that an output keeps a value of the current user key in its place.
    pub(crate) fn keep(&mut self, (file, place): (FileId, ValuePlace)) {
        self.kept.push((file, place.offset..place.end()));
    }

    /// Ends the current user key.
    pub(super) fn end_key(&mut self) {
        // Entries with one place follow each other.
        self.seen.dedup();
        for (file, place) in self.seen.drain(..) {
            if !self.kept.iter().any(|kept| (kept.0, &kept.1) == (file, &place)) {
                let garbage = self.garbage.entry(file).or_default();
                garbage.values += 1;
                garbage.bytes += place.end - place.start;
                self.dropped.entry(file).or_default().insert(place);
            }
        }
        self.kept.clear();
    }

    /// Returns the places that were dropped. If the compaction has not `examined_all` entries,
    /// those of the current user key are not among them.
    pub(crate) fn take_dropped(&mut self, examined_all: bool) -> BTreeMap<FileId, Extents> {
        if examined_all {
            self.end_key();
        }
        std::mem::take(&mut self.dropped)
    }

    /// Returns how many values were dropped, by their file.
    pub(crate) fn take_garbage(&mut self) -> BTreeMap<FileId, ValueCount> {
        std::mem::take(&mut self.garbage)
    }
}

/// Returns `value` encoded, for an entry that the compaction made.
pub(super) fn encoded(value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(value.len() + 1);
    Separated::Here(value).encode(&mut stored);
    stored
}
