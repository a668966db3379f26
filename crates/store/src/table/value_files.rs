//! The open files with separated values: value files, and WALs in which flushes left values.
//!
//! 1. A table gets a [`ValueFiles`], which all tables of a cache share. [`ValueFiles::get`] returns
//!    an open file, and opens it if needed. The header of a value file is checked then.
//! 2. [`ValuesFile::read`] reads one value.
//! 3. [`ValueScan`] reads values one after the other, for scans and jobs. In each file it reads a
//!    chunk ahead, once values have followed each other there. A chunk of which most was used makes
//!    the next one twice as large; one that was hardly used, half as large.
//! 4. The reclaimer makes the cache forget a file ([`ValueFiles::forget`]) before it removes it.
//!
//! What must stay true: a value is returned only if its checksum is right. A file is opened outside
//! the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::{FileId, IoClass};

use super::Table;
use super::separated::ValuePlace;
use super::spare::Buffers;
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::locks::{read, write};
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::RwLock;
use crate::base::xxh3::xxh3_64;
use crate::files::seal::Seed;
use crate::files::{PAGE_BYTES, check_values_header, table_file_name};
use crate::vfs::{DescriptorPool, OpenOptions, Vfs, VfsFile};

/// Gap between two values of a scan that is read over instead of ending the scan.
pub(super) const GAP_BYTES_MAX: u64 = 32 << 10;
/// Bytes that a scan reads ahead first, and at most.
const READAHEAD_BYTES_MIN: u64 = 32 << 10;
const READAHEAD_BYTES_MAX: u64 = 256 << 10;
/// Number of values in sequence that makes a scan of a file.
const SEQUENTIAL_READS_MIN: u32 = 2;
/// Length of a part of a page whose being zero tells a hole from damage.
const HOLE_BYTES_MIN: usize = 16;
/// Number of files in which a scan reads ahead.
const STREAMS_MAX: usize = 4;

/// A file with values of tables.
#[derive(Clone, Debug)]
pub struct ValuesFile {
    file: Arc<dyn VfsFile>,
    path: Arc<Path>,
    /// Length at open. A WAL may grow later, by values that no table at hand needs.
    bytes: u64,
    /// Seed of the checksums; `None` for a WAL.
    seed: Option<Seed>,
}

impl ValuesFile {
    /// Reads the value at `place`.
    pub fn read(&self, place: ValuePlace, class: IoClass) -> Result<Vec<u8>> {
        self.check_place(place)?;
        let mut value = vec![0; place.length as usize];
        self.fill(&mut value, place.offset, class)?;
        self.verify(&value, place)?;
        Ok(value)
    }

    /// Fails if the value would reach beyond the end of the file. A length is trusted only up to
    /// there.
    fn check_place(&self, place: ValuePlace) -> Result<()> {
        let end = place.offset.checked_add(u64::from(place.length));
        if end.is_none_or(|end| end > self.bytes) {
            return Err(Error::corruption(&self.path, place.offset, CorruptionKind::Truncated));
        }
        Ok(())
    }

    /// Fails if `value` is not what was written to `place`.
    pub(super) fn verify(&self, value: &[u8], place: ValuePlace) -> Result<()> {
        let is_right = match self.seed {
            Some(seed) => seed.verify(value, place.offset, place.checksum),
            None => xxh3_64(value) == place.checksum,
        };
        if is_right {
            return Ok(());
        }
        let kind = if self.has_hole(value, place.offset) {
            CorruptionKind::Hole
        } else {
            CorruptionKind::Checksum
        };
        Err(Error::corruption(&self.path, place.offset, kind))
    }

    /// Returns true if a page of the file with a part of `value` at `offset` is a hole.
    fn has_hole(&self, value: &[u8], offset: u64) -> bool {
        let ends = [offset, offset + (value.len() as u64).saturating_sub(1)];
        // What of a page belongs to the value may be too short to tell.
        has_hole(value, offset) || ends.iter().any(|&at| self.is_hole(at - at % PAGE_BYTES as u64))
    }

    /// Returns true if the page at `start` can be read and is zero.
    fn is_hole(&self, start: u64) -> bool {
        let length = self.bytes.saturating_sub(start).min(PAGE_BYTES as u64);
        let mut page = vec![0; usize::try_from(length).unwrap_or(PAGE_BYTES)];
        let read = self.fill(&mut page, start, IoClass::Client);
        read.is_ok() && page.iter().all(|byte| *byte == 0)
    }

    fn fill(&self, target: &mut [u8], offset: u64, class: IoClass) -> Result<()> {
        let _timed = perf::time(PerfMetric::BlockReadTime);
        perf::add(PerfMetric::BlockReadCount, 1);
        perf::add(PerfMetric::BlockReadByte, target.len() as u64);
        let done = self.file.read_exact_at(target, offset, class);
        done.map_err(|error| Error::of_pooled("read", &self.path, error))
    }

    /// Returns the file itself.
    pub(super) fn opened(&self) -> &dyn VfsFile {
        &*self.file
    }

    /// Returns the offset and the length of the whole units of the file that contain the value;
    /// `None` if it would reach beyond the end.
    pub(super) fn part_with(&self, place: ValuePlace) -> Option<(u64, usize)> {
        self.check_place(place).ok()?;
        let unit = self.file.alignment().max(1) as u64;
        let from = place.offset - place.offset % unit;
        let length = place.end().checked_next_multiple_of(unit)? - from;
        Some((from, usize::try_from(length).ok()?))
    }

    /// Returns true if both are the same open file.
    pub(super) fn is(&self, other: &ValuesFile) -> bool {
        Arc::ptr_eq(&self.path, &other.path)
    }
}

/// Returns true if a page of a file, or what of it belongs to `value` at `offset`, is a hole. A few
/// zeros may be a coincidence.
fn has_hole(value: &[u8], offset: u64) -> bool {
    let page = PAGE_BYTES as u64;
    let first = usize::try_from(page - offset % page).unwrap_or(0).min(value.len());
    let (first, rest) = value.split_at(first);
    let zeros = |part: &[u8]| part.len() >= HOLE_BYTES_MIN && part.iter().all(|byte| *byte == 0);
    zeros(first) || rest.chunks(PAGE_BYTES).any(zeros)
}

/// How files are opened.
enum Opener {
    /// With a descriptor that the pool may close between reads.
    Pooled(Arc<DescriptorPool>),
    Plain(Arc<dyn Vfs>),
    None,
}

/// The open files with separated values of a database.
pub struct ValueFiles {
    opener: Opener,
    directory: PathBuf,
    /// Uid of the database to which value files must belong.
    db_uid: u64,
    /// Whether reads of value files bypass the page cache.
    direct: bool,
    open: RwLock<BTreeMap<FileId, ValuesFile>>,
}

impl fmt::Debug for ValueFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueFiles").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl ValueFiles {
    /// Returns the files of a table cache.
    pub fn pooled(
        pool: Arc<DescriptorPool>,
        directory: PathBuf,
        db_uid: u64,
        direct: bool,
    ) -> ValueFiles {
        let opener = Opener::Pooled(pool);
        ValueFiles { opener, directory, db_uid, direct, open: RwLock::default() }
    }

    /// Returns the files in `directory`, which stay open until this is dropped.
    pub fn in_directory(vfs: Arc<dyn Vfs>, directory: &Path, db_uid: u64) -> ValueFiles {
        let (opener, directory) = (Opener::Plain(vfs), directory.to_owned());
        ValueFiles { opener, directory, db_uid, direct: false, open: RwLock::default() }
    }

    /// Returns the files of one table, those that can be opened. No other one is opened later.
    pub fn of_table(vfs: &dyn Vfs, directory: &Path, table: &Table) -> ValueFiles {
        let (db_uid, directory) = (table.source().db_uid, directory.to_owned());
        let opener = Opener::None;
        let files =
            ValueFiles { opener, directory, db_uid, direct: false, open: RwLock::default() };
        let properties = table.properties();
        let values = properties.value_files.iter().flatten().map(|(file, _)| (*file, true));
        for (id, is_value_file) in values.chain(properties.values.map(|log| (log, false))) {
            let path: Arc<Path> = table_file_name(&files.directory, id).into();
            let seed = is_value_file.then(|| Seed::of_file(db_uid, id));
            if let Ok(file) = vfs.open(&path, OpenOptions::READ) {
                // What cannot be entered cannot be read, either.
                let _missing = files.enter(id, file, path, seed);
            }
        }
        files
    }

    /// Returns the value file `id`.
    pub fn get(&self, id: FileId, class: IoClass) -> Result<ValuesFile> {
        if let Some(open) = read(&self.open).get(&id) {
            return Ok(open.clone());
        }
        let path = self.path(id);
        let file = self.open_file(&path, OpenOptions::READ.direct(self.direct))?;
        check_values_header(&file, &path, id, self.db_uid, class)?;
        let seed = Some(Seed::of_file(self.db_uid, id));
        self.enter(id, file, path, seed)
    }

    /// Returns the WAL that has `id` as the number of its second name.
    pub fn get_log(&self, id: FileId) -> Result<ValuesFile> {
        if let Some(open) = read(&self.open).get(&id) {
            return Ok(open.clone());
        }
        let path = self.path(id);
        let file = self.open_file(&path, OpenOptions::READ)?;
        self.enter(id, file, path, None)
    }

    /// Forgets a file that is about to be removed.
    pub fn forget(&self, id: FileId) {
        let forgotten = write(&self.open).remove(&id);
        // Closing a file is a system call.
        drop(forgotten);
    }

    /// Forgets all files but these.
    pub(super) fn keep(&self, named: &BTreeSet<FileId>) {
        let mut open = write(&self.open);
        let forgotten: Vec<_> = open.extract_if(.., |id, _| !named.contains(id)).collect();
        drop(open);
        drop(forgotten);
    }

    fn path(&self, id: FileId) -> Arc<Path> {
        let path = table_file_name(&self.directory, id);
        match &self.opener {
            Opener::Pooled(descriptors) => descriptors.place_of(&path),
            Opener::Plain(vfs) => vfs.place_of(&path),
            Opener::None => path,
        }
        .into()
    }

    fn open_file(&self, path: &Arc<Path>, options: OpenOptions) -> Result<Arc<dyn VfsFile>> {
        let opened: std::io::Result<Arc<dyn VfsFile>> = match &self.opener {
            Opener::Pooled(descriptors) => {
                descriptors.file(path, options).map(|file| file as Arc<dyn VfsFile>)
            }
            Opener::Plain(vfs) => vfs.open(path, options),
            Opener::None => Err(std::io::ErrorKind::NotFound.into()),
        };
        opened.map_err(|error| Error::of_pooled("open", path, error))
    }

    /// Adds an opened file. If another thread was faster, returns that thread's file.
    fn enter(
        &self,
        id: FileId,
        file: Arc<dyn VfsFile>,
        path: Arc<Path>,
        seed: Option<Seed>,
    ) -> Result<ValuesFile> {
        let bytes = file.len().map_err(|error| Error::of_pooled("stat", &path, error))?;
        let opened = ValuesFile { file, path, bytes, seed };
        Ok(write(&self.open).entry(id).or_insert(opened).clone())
    }
}

/// A chunk of a file that a scan has read.
struct Stream {
    file: ValuesFile,
    buffers: Buffers,
    /// The part of the file in the buffer.
    chunk: Range<u64>,
    /// Bytes of the chunk that were used.
    used: u64,
    /// The last value.
    last: Range<u64>,
    /// Number of values that followed each other, in the direction of the scan.
    sequential: u32,
    /// Size of the next chunk.
    readahead: u64,
}

/// Reads values that follow each other, in few reads.
#[derive(Default)]
pub struct ValueScan {
    /// The one used last stands last.
    streams: Vec<Stream>,
}

impl ValueScan {
    /// Reads the value at `place` of `file` into `out`.
    pub fn read(
        &mut self,
        file: &ValuesFile,
        place: ValuePlace,
        class: IoClass,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        file.check_place(place)?;
        match self.streams.iter().rposition(|stream| stream.file.is(file)) {
            Some(at) => {
                let stream = self.streams.remove(at);
                self.streams.push(stream);
            }
            None => {
                if self.streams.len() == STREAMS_MAX {
                    self.streams.remove(0);
                }
                self.streams.push(Stream::new(file.clone()));
            }
        }
        match self.streams.last_mut() {
            Some(stream) => stream.read(place, class, out),
            None => Ok(()),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        std::mem::take(&mut self.buffers).give_back();
    }
}

impl Stream {
    fn new(file: ValuesFile) -> Stream {
        Stream {
            file,
            buffers: Buffers::default(),
            chunk: 0..0,
            used: 0,
            last: 0..0,
            sequential: 0,
            readahead: READAHEAD_BYTES_MIN,
        }
    }

    fn read(&mut self, place: ValuePlace, class: IoClass, out: &mut Vec<u8>) -> Result<()> {
        let wanted = place.offset..place.end();
        let last = std::mem::replace(&mut self.last, wanted.clone());
        // A chunk may have been read wrongly long ago, so a value that fails is read again.
        if self.take(&wanted, out) && self.file.verify(out, place).is_ok() {
            self.used += u64::from(place.length);
            return Ok(());
        }
        let near =
            |gap: Option<u64>| !last.is_empty() && gap.is_some_and(|gap| gap <= GAP_BYTES_MAX);
        let forward = near(wanted.start.checked_sub(last.end));
        let backward = near(last.start.checked_sub(wanted.end));
        self.sequential = if forward || backward { self.sequential + 1 } else { 0 };
        if self.sequential < SEQUENTIAL_READS_MIN {
            self.readahead = READAHEAD_BYTES_MIN;
            out.clear();
            out.resize(place.length as usize, 0);
            self.file.fill(out, place.offset, class)?;
            return self.file.verify(out, place);
        }
        self.adapt();
        let ahead = self.readahead.max(u64::from(place.length));
        let chunk = if forward {
            wanted.start..wanted.start.saturating_add(ahead).min(self.file.bytes)
        } else {
            wanted.end.saturating_sub(ahead)..wanted.end
        };
        let length = usize::try_from(chunk.end - chunk.start).unwrap_or(usize::MAX);
        // While the chunk is read it has no valid bounds, so that an error does not leave old ones.
        self.chunk = 0..0;
        if self.buffers.chunk.capacity() == 0 {
            self.buffers = Buffers::take();
        }
        self.buffers.chunk.reserve(length);
        let target = self.buffers.chunk.whole_mut().get_mut(..length).unwrap_or_default();
        self.file.fill(target, chunk.start, class)?;
        self.chunk = chunk;
        self.used = u64::from(place.length);
        self.take(&wanted, out);
        self.file.verify(out, place)
    }

    /// Sets the size of the next chunk by what was used of this one.
    fn adapt(&mut self) {
        let bytes = self.chunk.end - self.chunk.start;
        if bytes == 0 {
            return;
        }
        if self.used >= bytes / 2 {
            self.readahead = (self.readahead * 2).min(READAHEAD_BYTES_MAX);
        } else if self.used < bytes / 4 {
            self.readahead = (self.readahead / 2).max(READAHEAD_BYTES_MIN);
        }
    }

    /// Copies a part of the chunk to `out`. Returns false if it is not all there.
    fn take(&self, wanted: &Range<u64>, out: &mut Vec<u8>) -> bool {
        if wanted.start < self.chunk.start || wanted.end > self.chunk.end {
            return false;
        }
        let distance = |to: u64| usize::try_from(to - self.chunk.start).unwrap_or(usize::MAX);
        let part = distance(wanted.start)..distance(wanted.end);
        out.clear();
        out.extend_from_slice(self.buffers.chunk.whole().get(part).unwrap_or_default());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::CompactionFileWriter;
    use crate::vfs::{FaultVfs, MemVfs, VfsOperation};

    const UID: u64 = 77;

    /// Writes a value file of these values, and returns their places.
    fn value_file(vfs: &dyn Vfs, id: FileId, values: &[Vec<u8>]) -> Vec<ValuePlace> {
        let path = table_file_name(Path::new("/db"), id);
        let file = vfs.open(&path, OpenOptions::CREATE).unwrap();
        let mut file =
            CompactionFileWriter::for_values(file, &path, id, UID, IoClass::Flush).unwrap();
        let place = |value: &Vec<u8>| {
            let (offset, checksum) = file.append_value(value).unwrap();
            ValuePlace { offset, length: u32::try_from(value.len()).unwrap(), checksum }
        };
        let places = values.iter().map(place).collect();
        file.finish().unwrap();
        places
    }

    fn values(count: usize, bytes: usize) -> Vec<Vec<u8>> {
        (0..count).map(|n| vec![u8::try_from(n % 251).unwrap(); bytes]).collect()
    }

    #[test]
    fn a_value_is_read_only_from_its_own_place() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        vfs.create_dir_all(Path::new("/db")).unwrap();
        let written = [b"first".to_vec(), Vec::new(), vec![7; 100_000], b"first".to_vec()];
        let places = value_file(vfs.as_ref(), FileId(5), &written);
        let others = value_file(vfs.as_ref(), FileId(6), &written);
        let files = ValueFiles::in_directory(vfs.clone(), Path::new("/db"), UID);
        let file = files.get(FileId(5), IoClass::Client).unwrap();
        for (value, place) in written.iter().zip(&places) {
            assert_eq!(file.read(*place, IoClass::Client).unwrap(), *value);
        }
        let swapped = ValuePlace { offset: places[3].offset, ..places[0] };
        let of_other = ValuePlace { checksum: others[0].checksum, ..places[0] };
        let beyond = ValuePlace { offset: 1 << 40, ..places[0] };
        for wrong in [swapped, of_other, beyond] {
            assert!(file.read(wrong, IoClass::Client).is_err(), "{wrong:?}");
        }
        // A hole never verifies, not even for a value of zeros.
        let path = table_file_name(Path::new("/db"), FileId(5));
        let handle = vfs.open(&path, OpenOptions::WRITE).unwrap();
        handle.punch_hole(8192, 4096, IoClass::Reclaim).unwrap();
        let error = file.read(places[2], IoClass::Client).unwrap_err();
        assert!(matches!(error, Error::Corruption { kind: CorruptionKind::Hole, .. }), "{error}");
        let foreign = ValueFiles::in_directory(vfs, Path::new("/db"), UID + 1);
        assert!(foreign.get(FileId(5), IoClass::Client).is_err());
    }

    #[test]
    fn a_few_bytes_of_a_hole_are_no_damage() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        vfs.create_dir_all(Path::new("/db")).unwrap();
        let written = [vec![1; PAGE_BYTES - 10], vec![2; 100], vec![3; PAGE_BYTES]];
        let places = value_file(vfs.as_ref(), FileId(5), &written);
        let files = ValueFiles::in_directory(vfs.clone(), Path::new("/db"), UID);
        let file = files.get(FileId(5), IoClass::Client).unwrap();
        let handle = vfs.open(&file.path, OpenOptions::WRITE).unwrap();
        handle.punch_hole(places[0].offset, PAGE_BYTES as u64, IoClass::Reclaim).unwrap();
        let kind = |place| match file.read(place, IoClass::Client) {
            Err(Error::Corruption { kind, .. }) => Some(kind),
            read => read.map(|_| None).unwrap(),
        };
        assert_eq!(kind(places[1]), Some(CorruptionKind::Hole));
        assert_eq!(kind(places[2]), None);
        handle.write_at(&[0; 10], places[2].offset, IoClass::Flush).unwrap();
        assert_eq!(kind(places[2]), Some(CorruptionKind::Checksum));
    }

    #[test]
    fn files_that_are_not_kept_are_closed() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        vfs.create_dir_all(Path::new("/db")).unwrap();
        let files = ValueFiles::in_directory(vfs.clone(), Path::new("/db"), UID);
        for id in [FileId(5), FileId(6)] {
            value_file(vfs.as_ref(), id, &values(1, 10));
            files.get(id, IoClass::Client).unwrap();
        }
        files.keep(&BTreeSet::from([FileId(6), FileId(7)]));
        assert_eq!(read(&files.open).keys().collect::<Vec<_>>(), [&FileId(6)]);
    }

    #[test]
    fn a_scan_reads_neighbours_together_and_a_jump_alone() {
        let faults = FaultVfs::new(Arc::new(MemVfs::new()));
        let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
        vfs.create_dir_all(Path::new("/db")).unwrap();
        let written = values(1000, 1000);
        let places = value_file(vfs.as_ref(), FileId(5), &written);
        let files = ValueFiles::in_directory(vfs, Path::new("/db"), UID);
        let file = files.get(FileId(5), IoClass::Client).unwrap();
        let reads = |order: &mut dyn Iterator<Item = usize>| {
            let before = faults.calls(VfsOperation::Read);
            let (mut scan, mut out) = (ValueScan::default(), Vec::new());
            for at in order {
                scan.read(&file, places[at], IoClass::Client, &mut out).unwrap();
                assert_eq!(out, written[at]);
            }
            faults.calls(VfsOperation::Read) - before
        };
        assert!(reads(&mut (0..1000)) < 20);
        assert!(reads(&mut (0..1000).rev()) < 20);
        assert_eq!(reads(&mut (0..1000).step_by(100)), 10, "a jump reads only what it needs");
        assert_eq!(reads(&mut [5, 900, 6, 901, 7, 902].into_iter()), 6);
    }
}
