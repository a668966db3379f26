//! Objects that are written and read.

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use sateen::{BackupReader, BackupWriter, CorruptionKind, Error, Result};

use crate::{Bucket, is_missing};

/// Bytes of a part of an upload. Stores want at least 5 MiB, and take 10,000 parts.
const PART_BYTES: usize = 16 << 20;
/// Bytes of one request of a reader, at least.
const READ_BYTES: u64 = 4 << 20;

/// An object that is being written: in memory, until there is more than a part.
pub(crate) struct Writer {
    bucket: Bucket,
    key: String,
    buffer: Vec<u8>,
    /// An upload in parts. Taken once it is complete.
    upload: Option<Box<dyn MultipartUpload>>,
}

impl Writer {
    pub(crate) fn new(bucket: &Bucket, key: &str) -> Writer {
        let (bucket, key) = (bucket.clone(), key.to_owned());
        Writer { bucket, key, buffer: Vec::new(), upload: None }
    }

    fn location(&self) -> Key {
        self.bucket.key(&self.key)
    }

    /// Uploads the first `bytes` bytes of the buffer as a part.
    fn upload_part(&mut self, bytes: usize) -> Result<()> {
        let location = self.location();
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => {
                let begun = self.bucket.store.put_multipart(&location);
                let begun = self.bucket.wait("begin the upload of", &self.key, begun)?;
                self.upload.insert(begun)
            }
        };
        let rest = self.buffer.split_off(bytes);
        let part = std::mem::replace(&mut self.buffer, rest);
        let sent = upload.put_part(PutPayload::from(part));
        self.bucket.wait("write", &self.key, sent)
    }
}

impl BackupWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() > PART_BYTES {
            self.upload_part(PART_BYTES)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.upload.is_none() {
            let payload = PutPayload::from(std::mem::take(&mut self.buffer));
            let location = self.location();
            let put = self.bucket.store.put(&location, payload);
            return self.bucket.wait("write", &self.key, put).map(drop);
        }
        // The last part, of whatever size. It is never empty.
        self.upload_part(self.buffer.len())?;
        let Some(upload) = &mut self.upload else { return Ok(()) };
        self.bucket.wait("complete", &self.key, upload.complete())?;
        self.upload = None;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            // What stays is no object.
            let _stays = self.bucket.wait("abort", &self.key, upload.abort());
        }
    }
}

/// An object that is being read, with what the last request has brought.
pub(crate) struct Reader {
    bucket: Bucket,
    key: String,
    length: u64,
    begin: u64,
    bytes: Bytes,
}

impl Reader {
    pub(crate) fn open(bucket: &Bucket, key: &str) -> Result<Reader> {
        let location = bucket.key(key);
        let found = bucket.wait("open", key, bucket.store.head(&location));
        let length = found.map_err(|error| missing(bucket, key, error))?.size;
        let (bucket, key) = (bucket.clone(), key.to_owned());
        Ok(Reader { bucket, key, length, begin: 0, bytes: Bytes::new() })
    }

    /// Has `offset`, which is before the end, in `bytes`.
    fn fetch(&mut self, offset: u64, wanted: u64) -> Result<()> {
        let end = offset.saturating_add(wanted.max(READ_BYTES)).min(self.length);
        let location = self.bucket.key(&self.key);
        let got = self.bucket.store.get_range(&location, offset..end);
        let got = self.bucket.wait("read", &self.key, got);
        self.bytes = got.map_err(|error| missing(&self.bucket, &self.key, error))?;
        self.begin = offset;
        if self.bytes.is_empty() {
            let path = self.bucket.location(&self.key);
            return Err(Error::corruption(&path, offset, CorruptionKind::Truncated));
        }
        Ok(())
    }
}

impl BackupReader for Reader {
    fn bytes(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            if at >= self.length {
                break;
            }
            let end = self.begin + self.bytes.len() as u64;
            if !(self.begin..end).contains(&at) {
                self.fetch(at, (buffer.len() - done) as u64)?;
            }
            let from = usize::try_from(at - self.begin).unwrap_or(usize::MAX);
            let there = self.bytes.get(from..).unwrap_or_default();
            let part = there.len().min(buffer.len() - done);
            let (Some(to), Some(from)) = (buffer.get_mut(done..done + part), there.get(..part))
            else {
                break;
            };
            to.copy_from_slice(from);
            done += part;
        }
        Ok(done)
    }
}

/// Returns the error of an object that is not there as damage, which it is.
fn missing(bucket: &Bucket, key: &str, error: Error) -> Error {
    if is_missing(&error) {
        return Error::corruption(&bucket.location(key), 0, CorruptionKind::MissingFile);
    }
    error
}
