//! Hostile bytes of traces, for the fuzzer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, SeqNo, TableId};
use sateen_store::base::error::Result;
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::block_cache::{BlockAccess, PointAccess};
use sateen_store::vfs::{IoClass, MemVfs, MeteredVfs, OpenOptions, Vfs};

use super::io::Tap;
use super::{
    BlockTraceOptions, BlockTraceReader, IoTraceOptions, IoTraceReader, Plan, TablePlace,
    TraceCall, TraceOptions, TraceReader, TraceRecord, TraceWriter, Tracing,
};
use crate::batch::WriteBatch;

/// Reads `bytes` as a trace. It must not panic, and a batch that it accepts must come back.
pub(crate) fn fuzz(bytes: &[u8]) {
    let (vfs, path) = (MemVfs::new(), Path::new("/trace"));
    let written = vfs
        .open(path, OpenOptions::CREATE)
        .and_then(|file| file.write_at(bytes, 0, IoClass::Client));
    assert!(written.is_ok(), "a file in memory");
    for read in BlockTraceReader::open_with(&vfs, path).into_iter().flatten() {
        let _decoded = read;
    }
    for call in IoTraceReader::open_with(&vfs, path).into_iter().flatten() {
        let _decoded = call;
    }
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

/// Returns a trace that `record` makes.
fn recorded(plan: Plan, record: impl FnOnce(&Arc<Tracing>)) -> Vec<u8> {
    let (bytes, tracing) = (Arc::default(), Arc::<Tracing>::default());
    let writer = Box::new(Kept(Arc::clone(&bytes)));
    let begun = tracing.begin(plan, 5, || Ok(writer), |_| Ok(None), || {});
    assert!(begun.is_ok(), "nothing can fail");
    record(&tracing);
    let _summary = tracing.end();
    std::mem::take(&mut *lock(&bytes))
}

/// Returns a trace of each kind.
pub(crate) fn seeds() -> [Vec<u8>; 3] {
    let io = (&IoTraceOptions::default()).into();
    let blocks = (&BlockTraceOptions::default()).into();
    [
        recorded((&TraceOptions::default()).into(), calls),
        recorded(io, |tracing| {
            let vfs = MeteredVfs::new(Arc::new(MemVfs::new()));
            let tap = Tap { tracing: tracing.clone(), own: PathBuf::new() };
            vfs.observe(Some(Arc::new(tap)));
            let file = vfs.open(Path::new("/file"), OpenOptions::CREATE);
            let _written = file.and_then(|file| file.write_at(b"bytes", 3, IoClass::Client));
        }),
        recorded(blocks, |tracing| {
            let point = PointAccess {
                user_key: b"key",
                snapshot: SeqNo(300),
                entry_bytes: Some(20),
                entries: 9,
            };
            for point in [Some(point), None] {
                let access = BlockAccess {
                    table: TableId(300),
                    offset: 4096,
                    bytes: 4000,
                    class: IoClass::Client,
                    is_hit: false,
                    fills_cache: true,
                    point,
                    is_ahead: false,
                };
                let family = ColumnFamilyId(3);
                let place = TablePlace { family, name: "family", level: 2 };
                tracing.block(&access, |record| record(&place));
            }
        }),
    ]
}

/// Records a call of each kind.
fn calls(tracing: &Arc<Tracing>) {
    let family = ColumnFamilyId(300);
    tracing.get(family, b"key");
    tracing.multi_get(family, &["a", "", "long key"]);
    tracing.seek(family, b"key", (Some(b"a"), Some(b"z")), false);
    tracing.seek(family, b"key", (None, None), true);
    let mut batch = WriteBatch::new();
    let _small_enough = batch.put("a", "b").and_then(|()| batch.delete_range("c", "d"));
    tracing.write(|| Some(batch.to_rocksdb(0)));
}
