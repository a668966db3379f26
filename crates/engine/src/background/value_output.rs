//! The value files of an output: larger values are written to them, and tables get their places.
//!
//! 1. [`ValueOutput::encode`] takes each value of a put, as it is or encoded by [`Separated`], and
//!    makes what the table stores: the value, a new place, or the place that it has.
//! 2. A value of at least `value_separation_bytes` is appended to the open value file, which is
//!    begun if there is none, and ended once it has `value_file_bytes`.
//! 3. A value in a file that is to be collected is read, and then treated as one that came with the
//!    input.
//! 4. [`ValueOutput::finish`] ends the open file and makes its bytes durable.
//!    [`ValueOutput::refs`] completes what tables say about value files.
//!
//! What must stay true: a value file is durable before a table that refers to it is installed
//! (format rule F3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sateen_control::version::ValueRefs;
use sateen_control::{FileId, IoClass};
use sateen_store::base::error::Result;
use sateen_store::files::{CompactionFileWriter, HEADER_BYTES};
use sateen_store::table::{Separated, ValueFiles, ValuePlace, ValueScan};

use crate::entry::malformed;
use crate::options::ColumnFamilyOptions;

/// What a compaction knows of the value files of its inputs.
pub(crate) struct EncodedInput {
    pub(crate) files: Arc<ValueFiles>,
    /// The files out of which values are copied.
    pub(crate) collect: BTreeSet<FileId>,
    /// The bytes of all values of each file.
    pub(crate) sizes: BTreeMap<FileId, u64>,
}

/// Values in a value file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueCount {
    /// Number of values.
    pub(crate) values: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// A value file that is open for writing, and its number.
pub(crate) type NewFile = (FileId, CompactionFileWriter);

/// The value files of an output.
pub(crate) struct ValueOutput {
    /// Smallest value that goes to a value file; `None` if none does.
    bytes_min: Option<usize>,
    /// Size at which a value file ends.
    file_bytes: u64,
    class: IoClass,
    /// Set if values of the input are encoded.
    input: Option<EncodedInput>,
    scan: ValueScan,
    file: Option<NewFile>,
    /// Bytes of all values of the files that were written.
    sizes: BTreeMap<FileId, u64>,
    /// Number of values in each file, the open one included.
    counts: BTreeMap<FileId, u64>,
    /// Bytes written to files that are finished.
    written: u64,
    /// The last value that was copied, and the last value or place that was encoded.
    copied: Vec<u8>,
    stored: Vec<u8>,
    /// The place that the last value had and keeps.
    kept: Option<(FileId, ValuePlace)>,
}

impl ValueOutput {
    /// Returns what separates values of an output of `level`; `None` if they all stay in tables.
    pub(crate) fn new(
        options: &ColumnFamilyOptions,
        level: u8,
        class: IoClass,
        input: Option<EncodedInput>,
    ) -> Option<ValueOutput> {
        let separates =
            options.value_separation_bytes > 0 && u32::from(level) >= options.value_starting_level;
        if !separates && input.is_none() {
            return None;
        }
        let bytes_min = usize::try_from(options.value_separation_bytes).unwrap_or(usize::MAX);
        Some(ValueOutput {
            bytes_min: separates.then_some(bytes_min),
            file_bytes: options.value_file_bytes,
            class,
            input,
            scan: ValueScan::default(),
            file: None,
            sizes: BTreeMap::new(),
            counts: BTreeMap::new(),
            written: 0,
            copied: Vec::new(),
            stored: Vec::new(),
            kept: None,
        })
    }

    /// Returns what the table stores for the value of a put, which lives until the next call.
    /// `create` makes a value file.
    pub(crate) fn encode(
        &mut self,
        value: &[u8],
        create: impl FnOnce() -> Result<NewFile>,
    ) -> Result<&[u8]> {
        self.kept = None;
        self.stored.clear();
        let Some(input) = &self.input else {
            self.place(value, create)?;
            return Ok(&self.stored);
        };
        match Separated::decode(value) {
            Some(Separated::Here(value)) => self.place(value, create)?,
            Some(Separated::InFile(id, place)) if input.collect.contains(&id) => {
                let file = input.files.get(id, self.class)?;
                let mut copied = std::mem::take(&mut self.copied);
                self.scan.read(&file, place, self.class, &mut copied)?;
                self.place(&copied, create)?;
                self.copied = copied;
            }
            Some(Separated::InFile(file, place)) => {
                self.kept = Some((file, place));
                self.stored.extend_from_slice(value);
            }
            Some(Separated::InLog(_)) | None => {
                return Err(malformed("a value to compact is not encoded"));
            }
        }
        Ok(&self.stored)
    }

    /// Notes that the next entry has no value that could be apart.
    pub(crate) fn pass(&mut self) {
        self.kept = None;
    }

    /// Returns the place that the last value had and keeps.
    pub(crate) fn kept(&self) -> Option<(FileId, ValuePlace)> {
        self.kept
    }

    /// Encodes a value that has no place, or loses it.
    fn place(&mut self, value: &[u8], create: impl FnOnce() -> Result<NewFile>) -> Result<()> {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        if self.bytes_min.is_none_or(|bytes_min| value.len() < bytes_min) || value.is_empty() {
            Separated::Here(value).encode(&mut self.stored);
            return Ok(());
        }
        let (id, file) = match &mut self.file {
            Some(open) => open,
            None => self.file.insert(create()?),
        };
        let (offset, checksum) = file.append_value(value)?;
        *self.counts.entry(*id).or_default() += 1;
        let place = ValuePlace { offset, length, checksum };
        Separated::InFile(*id, place).encode(&mut self.stored);
        if file.position() - HEADER_BYTES >= self.file_bytes {
            self.finish()?;
        }
        Ok(())
    }

    /// Ends the open file, and makes its bytes durable.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some((id, file)) = self.file.take() {
            self.sizes.insert(id, file.position() - HEADER_BYTES);
            self.written += file.finish()?;
        }
        Ok(())
    }

    /// Returns the bytes written to files so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.written + self.file.as_ref().map_or(0, |(_, file)| file.bytes_written())
    }

    /// Returns the bytes of the values in the finished files.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// Returns the finished files: how many values each has, and their bytes.
    pub(crate) fn files(&self) -> impl Iterator<Item = (FileId, ValueCount)> {
        self.sizes.iter().map(|(file, bytes)| {
            let values = self.counts.get(file).copied().unwrap_or_default();
            (*file, ValueCount { values, bytes: *bytes })
        })
    }

    /// Completes what a table says about its value files, once all of them are finished.
    pub(crate) fn refs(&self, refs: ValueRefs) -> Result<ValueRefs> {
        let mut refs = refs;
        for one in &mut refs.files {
            let of_input = self.input.as_ref().and_then(|input| input.sizes.get(&one.file));
            let Some(bytes) = self.sizes.get(&one.file).or(of_input) else {
                return Err(malformed("a value is in a file that the version does not have"));
            };
            one.file_bytes = *bytes;
        }
        Ok(refs)
    }
}
