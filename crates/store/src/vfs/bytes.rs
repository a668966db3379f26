//! Bytes in memory that stand for a range of a file, so that code that reads files reads them.
//!
//! What must stay true: they never change.

use std::io;

use super::{IoClass, VfsFile};

/// A range of a file, in memory. It can only be read.
#[derive(Debug)]
pub struct BytesFile {
    bytes: Vec<u8>,
    /// Offset of the first byte in the file.
    at: u64,
}

impl BytesFile {
    /// Returns a file with `bytes` at the offset `at`. Before them it reads as empty.
    #[must_use]
    pub fn new(bytes: Vec<u8>, at: u64) -> BytesFile {
        BytesFile { bytes, at }
    }
}

/// Refuses a change.
fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl VfsFile for BytesFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, _class: IoClass) -> io::Result<usize> {
        let begin = offset.checked_sub(self.at).and_then(|begin| usize::try_from(begin).ok());
        let rest = begin.and_then(|begin| self.bytes.get(begin..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64, _class: IoClass) -> io::Result<()> {
        refused()
    }

    fn sync_data(&self, _class: IoClass) -> io::Result<()> {
        refused()
    }

    fn start_writeback(&self, _offset: u64, _length: u64) -> io::Result<()> {
        refused()
    }

    fn finish_writeback(&self, _offset: u64, _length: u64, _class: IoClass) -> io::Result<()> {
        refused()
    }

    fn punch_hole(&self, _offset: u64, _length: u64, _class: IoClass) -> io::Result<()> {
        refused()
    }

    fn preallocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        refused()
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        refused()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.at + self.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_where_they_stand_and_never_changed() {
        let file = BytesFile::new(b"abcdef".to_vec(), 100);
        let mut buffer = [0; 4];
        let class = IoClass::Client;
        assert_eq!(file.read_at(&mut buffer, 102, class).unwrap(), 4);
        assert_eq!((&buffer, file.len().unwrap()), (b"cdef", 106));
        assert_eq!(file.read_at(&mut buffer, 104, class).unwrap(), 2);
        for outside in [0, 99, 106, 200] {
            assert_eq!(file.read_at(&mut buffer, outside, class).unwrap(), 0);
        }
        assert!(file.write_at(b"x", 100, class).is_err() && file.truncate(0).is_err());
    }
}
