//! Hostile bytes of traces, for the fuzzer.

use std::path::Path;
use std::sync::Arc;

use sateen_control::ColumnFamilyId;
use sateen_store::base::error::Result;
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::vfs::{IoClass, MemVfs, OpenOptions, Vfs};

use super::{TraceCall, TraceOptions, TraceReader, TraceRecord, TraceWriter, Tracing};
use crate::batch::WriteBatch;

/// Reads `bytes` as a trace. It must not panic, and a batch that it accepts must come back.
pub(crate) fn fuzz(bytes: &[u8]) {
    let (vfs, path) = (MemVfs::new(), Path::new("/trace"));
    let written = vfs
        .open(path, OpenOptions::CREATE)
        .and_then(|file| file.write_at(bytes, 0, IoClass::Client));
    assert!(written.is_ok(), "a file in memory");
    let Ok(reader) = TraceReader::open_with(&vfs, path) else { return };
    for record in reader {
        let Ok(TraceRecord { call: TraceCall::Write(batch), .. }) = record else { continue };
        let again = WriteBatch::from_rocksdb(&batch.to_rocksdb(0));
        assert!(again.is_ok_and(|(again, _)| again == batch), "a batch comes back");
    }
}

struct Kept(Arc<Mutex<Vec<u8>>>);

impl TraceWriter for Kept {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(())
    }
}

/// Returns a trace with a call of each kind.
pub(crate) fn seed() -> Vec<u8> {
    let (bytes, tracing) = (Arc::default(), Tracing::default());
    let writer = Box::new(Kept(Arc::clone(&bytes)));
    let begun = tracing.begin(&TraceOptions::default(), 5, || Ok(writer), |_| Ok(None));
    assert!(begun.is_ok(), "nothing can fail");
    let family = ColumnFamilyId(300);
    tracing.get(family, b"key");
    tracing.multi_get(family, &["a", "", "long key"]);
    tracing.seek(family, b"key", (Some(b"a"), Some(b"z")), false);
    tracing.seek(family, b"key", (None, None), true);
    let mut batch = WriteBatch::new();
    let _small_enough = batch.put("a", "b").and_then(|()| batch.delete_range("c", "d"));
    tracing.write(|| Some(batch.to_rocksdb(0)));
    let _summary = tracing.end();
    std::mem::take(&mut *lock(&bytes))
}
