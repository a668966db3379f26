//! Reads of many places at the same time.
//!
//! What must stay true: the results are those of [`VfsFile::read_at`] for each read. Whatever is
//! not read whole together with others is read again by that method, whose error counts.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::posix::ring::{self, RingRead};
use super::{IoClass, VfsFile};
use crate::base::clock;
use crate::base::waited::{IoCall, io_done};

/// A read of one place, to be done with others.
#[derive(Debug)]
pub struct PlacedRead<'a> {
    pub file: &'a dyn VfsFile,
    pub buffer: &'a mut [u8],
    pub offset: u64,
}

/// Fills the buffers of `reads`, and returns for each what [`VfsFile::read_at`] returns. Files of
/// the operating system are read at the same time.
pub fn read_many(reads: &mut [PlacedRead<'_>], class: IoClass) -> Vec<io::Result<usize>> {
    let started = clock::now();
    let mut done = vec![false; reads.len()];
    let mut together: Vec<(usize, RingRead<'_>)> = Vec::new();
    for (index, read) in reads.iter_mut().enumerate() {
        if let Some(file) = read.file.descriptor() {
            let (buffer, offset) = (&mut *read.buffer, read.offset);
            together.push((index, RingRead { file, buffer, offset, is_done: false }));
        }
    }
    if together.len() > 1 {
        let (indexes, mut queue): (Vec<usize>, Vec<RingRead<'_>>) = together.into_iter().unzip();
        ring::read(&mut queue);
        for (index, read) in indexes.into_iter().zip(queue) {
            if let Some(done) = done.get_mut(index) {
                *done = read.is_done;
            }
        }
    }
    let ns = u64::try_from(clock::since(started).as_nanos()).unwrap_or(u64::MAX);
    let mut bytes = 0;
    for (read, _) in reads.iter().zip(&done).filter(|(_, done)| **done) {
        read.file.was_read((read.offset, read.buffer.len()), started, ns, class);
        bytes += read.buffer.len() as u64;
    }
    if bytes > 0 {
        // One wait, however many reads.
        io_done(class, IoCall::Read, started, ns, bytes);
    }
    let each = reads.iter_mut().zip(done);
    each.map(|(read, done)| match done {
        true => Ok(read.buffer.len()),
        false => read.file.read_at(read.buffer, read.offset, class),
    })
    .collect()
}

/// A descriptor that may be read beside its file. It stays open as long as this lives.
pub type SharedDescriptor = Arc<OwnedFd>;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::vfs::{Fault, FaultRule, FaultVfs, MeteredVfs, OpenOptions, PosixVfs, Vfs};
    use crate::vfs::{VfsOperation, buffer::AlignedBuffer};

    /// Reads two places of a file that exist and one behind its end.
    fn three(vfs: &dyn Vfs, path: &Path, direct: bool) -> Vec<Option<usize>> {
        let file = vfs.open(path, OpenOptions::READ.direct(direct)).unwrap();
        let mut buffer = AlignedBuffer::with_capacity(3 * 4096);
        let mut reads: Vec<PlacedRead<'_>> = buffer
            .whole_mut()
            .chunks_mut(4096)
            .zip([4096, 0, 6144])
            .map(|(buffer, offset)| PlacedRead { file: &*file, buffer, offset })
            .collect();
        let results = read_many(&mut reads, IoClass::Client);
        drop(reads);
        assert!(buffer.whole()[..4096].iter().all(|byte| *byte == 2));
        assert!(buffer.whole()[4096..8192].iter().all(|byte| *byte == 1));
        results.into_iter().map(Result::ok).collect()
    }

    #[test]
    fn results_are_those_of_single_reads_and_each_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, [[1_u8; 4096], [2; 4096]].concat()).unwrap();
        for direct in [false, true] {
            let metered = MeteredVfs::new(Arc::new(PosixVfs::new()));
            let results = three(&metered, &path, direct);
            assert_eq!(results, [Some(4096), Some(4096), Some(2048)]);
            let totals = metered.totals()[IoClass::Client.index()];
            assert_eq!((totals.reads, totals.read_bytes), (3, 10_240));
        }
    }

    #[test]
    fn a_file_without_a_descriptor_of_its_own_is_read_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, [[1_u8; 4096], [2; 4096]].concat()).unwrap();
        let faults = FaultVfs::new(Arc::new(PosixVfs::new()));
        faults.add(FaultRule::new(Fault::Io).on(VfsOperation::Read).nth(3));
        assert_eq!(three(&faults, &path, false), [Some(4096), Some(4096), None]);
    }
}
