//! Entry points for the fuzzers in `/fuzz`: every decoder, with hostile bytes. Each must return
//! without a panic and without a large allocation. Not part of the interface.

mod api;

use std::path::Path;

use sateen_control::version::{AddedTable, Placement, TableMeta, VersionEdit};
use sateen_control::{ColumnFamilyId, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey};
use sateen_store::base::clock::VirtualTime;
use sateen_store::base::error::{Error, Result};
use sateen_store::files::{FileName, checked_text, device_hint};
use sateen_store::manifest::{ManifestWriter, encode_edit, read_current};
use sateen_store::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen_store::wal::WalWriter;

use crate::batch::WriteBatch;
use crate::{Options, StoredOptions};

pub use api::{api, ingest};

pub use sateen_store::table::fuzz::{block, blocks, compaction_file, filter, seed, table};

/// The file number and the database uid that the entry points assume.
const NUMBER: u64 = 1;
const DB_UID: u64 = 1;

/// The name of a fuzz target, and its entry point.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets, by their names.
pub const TARGETS: &[Target] = &[
    ("api", api),
    ("backup", backup),
    ("batch", batch),
    ("block", block),
    ("compaction_file", compaction_file),
    ("edit", edit),
    ("filter", filter),
    ("ingest", ingest),
    ("manifest", manifest),
    ("options", options),
    ("table", table),
    ("texts", texts),
    ("trace", trace),
    ("wal", wal),
];

/// Reads a WAL.
pub fn wal(bytes: &[u8]) {
    sateen_store::wal::fuzz(bytes, crate::batch::fuzz);
}

/// Reads the record of a backup.
pub fn backup(bytes: &[u8]) {
    crate::backup::fuzz(bytes);
}

/// Reads a batch.
pub fn batch(bytes: &[u8]) {
    crate::batch::fuzz(bytes);
}

/// Reads a trace of calls, of blocks or of I/O.
pub fn trace(bytes: &[u8]) {
    crate::trace::fuzz::fuzz(bytes);
}

/// Reads a manifest.
pub fn manifest(bytes: &[u8]) {
    sateen_store::manifest::fuzz(bytes);
}

/// Reads a version edit.
pub fn edit(bytes: &[u8]) {
    sateen_store::manifest::fuzz_edit(bytes);
}

/// Reads options as text. Options that are accepted must survive being printed and parsed.
pub fn options(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(options) = Options::from_str_list(text) else { return };
    let _told = options.validate();
    let mut again = options.clone();
    for name in Options::names().filter(|name| *name != "profile") {
        let printed = options.get(name);
        let taken = printed.and_then(|value| again.set(name, &value));
        assert_eq!(taken.err().map(|error| error.to_string()), None, "{name} of {text}");
    }
    assert_eq!(again, options, "{text}");
}

/// Reads the text files CURRENT, DEVICE and OPTIONS.
pub fn texts(bytes: &[u8]) {
    let directory = Path::new("/db");
    for name in [FileName::Current, FileName::Device, FileName::Options] {
        let vfs = MemVfs::new();
        let path = name.path(directory);
        let written = vfs
            .create_dir_all(directory)
            .and_then(|()| vfs.open(&path, OpenOptions::CREATE))
            .and_then(|file| file.write_at(bytes, 0, IoClass::Client));
        assert!(written.is_ok(), "a file in memory");
        let _current = read_current(&vfs, directory);
        let _device = device_hint::read(&vfs, directory);
        let _options = Options::load_with(&vfs, directory, true);
    }
}

/// Returns inputs that the encoders made, each with its target, from which fuzzing begins.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    // Random numbers in files are the same each time.
    let _time = VirtualTime::begin(1);
    let mut seeds = vec![("compaction_file", seed(0)), ("compaction_file", seed(1))];
    seeds.extend(sateen_store::table::fuzz::seeds());
    seeds.push(("batch", batch_seed().data().to_vec()));
    seeds.push(("wal", wal_seed().unwrap_or_default()));
    seeds.push(("manifest", manifest_seed().unwrap_or_default()));
    for edit in edit_seeds() {
        let mut bytes = Vec::new();
        encode_edit(&edit, &mut bytes);
        seeds.push(("edit", bytes));
    }
    seeds.extend(api::seeds());
    for text in text_seeds() {
        seeds.push(("texts", text.into_bytes()));
    }
    for text in [
        "memtable_bytes=128MiB;wal=sync",
        "profile=rocksdb\n# a comment\n[section]\nwal=interval:10ms\nwal_dir=/logs",
        "compression=none,lz4,zstd;level_multiplier=2.5;memory_budget=none;ttl=none",
    ] {
        seeds.push(("options", text.as_bytes().to_vec()));
    }
    seeds.push(("backup", crate::backup::fuzz_seed()));
    seeds.extend(crate::trace::fuzz::seeds().map(|bytes| ("trace", bytes)));
    seeds
}

fn text_seeds() -> Vec<String> {
    let options = Options::default();
    let families = [("default", &options.column_family)];
    vec![
        checked_text::seal("sateen 1\nmanifest 7\nuid 0123456789abcdef\nsynced 99\n"),
        StoredOptions::text(&options, families.into_iter()),
    ]
}

fn batch_seed() -> WriteBatch {
    let mut batch = WriteBatch::new();
    for i in 0..20_u8 {
        // All entries are within the limits.
        let _small_enough = batch.put([b'k', i], vec![i; usize::from(i) * 7]);
        let _small_enough = batch.delete([b'd', i]);
        let _small_enough = batch.put_log_data(vec![i; usize::from(i)]);
    }
    batch
}

fn contents(vfs: &MemVfs, path: &Path) -> Result<Vec<u8>> {
    vfs.contents(path).map_err(|e| Error::io("read", path, e))
}

fn wal_seed() -> Result<Vec<u8>> {
    let (vfs, path) = (MemVfs::new(), Path::new("seed"));
    let mut writer = WalWriter::create(&vfs, path, LogNumber(NUMBER), DB_UID, 0)?;
    writer.begin_anew(SeqNo(0))?;
    let batch = batch_seed();
    for group in 0..4 {
        let first = SeqNo(1 + group * u64::from(batch.count()));
        writer.append(first, batch.count(), [batch.data()])?;
    }
    writer.sync_handle().sync()?;
    writer.append_mark()?;
    contents(&vfs, path)
}

fn manifest_seed() -> Result<Vec<u8>> {
    let (vfs, path) = (MemVfs::new(), Path::new("seed"));
    let mut writer = ManifestWriter::create(&vfs, path, NUMBER, DB_UID)?;
    let edits = edit_seeds();
    for (at, edit) in edits.iter().enumerate() {
        writer.append(std::slice::from_ref(edit))?;
        if at == 0 {
            writer.end_snapshot()?;
        }
    }
    writer.append(&edits)?;
    writer.sync()?;
    contents(&vfs, path)
}

fn edit_seeds() -> Vec<VersionEdit> {
    let added = |id: u64| AddedTable {
        level: 1,
        epoch: Epoch(0),
        table: std::sync::Arc::new(TableMeta {
            id: TableId(id),
            placement: Placement::Slice { file: FileId(7), offset: id * 4096, length: 4000 },
            size_bytes: 4000,
            smallest: UserKey::bytewise([b'a', 1]),
            largest: UserKey::bytewise([b'b', 200]),
            seqno_min: SeqNo(1),
            seqno_max: SeqNo(1 << 40),
            entries: 100,
            tombstones: 3,
            merges: 0,
            ranges_applied: SeqNo(0),
            global_seqno: SeqNo(0),
            raw_bytes: 8000,
            tail_bytes: 200,
            sketch: None,
            values: Default::default(),
        }),
    };
    let create = VersionEdit {
        create: Some("default".into()),
        style: Some("leveled".into()),
        log_number: Some(LogNumber(3)),
        ..VersionEdit::default()
    };
    let tables = VersionEdit {
        column_family: ColumnFamilyId(300),
        added: (1..4).map(added).collect(),
        last_seqno: Some(SeqNo(99)),
        next_file: Some(FileId(1000)),
        shared_files: vec![FileId(7)],
        ..VersionEdit::default()
    };
    vec![create, tables, VersionEdit { drop: true, ..VersionEdit::default() }]
}
