//! A dump shows everything that was written, in order, and names damage.

use std::ops::ControlFlow;
use std::path::PathBuf;

use sateen_control::ValueKind;
use sateen_store::vfs::MemVfs;

use super::*;
use crate::{Db, Options, WriteBatch, WriteOptions};

fn database() -> (Arc<dyn Vfs>, Db) {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    (vfs, db)
}

fn files(vfs: &dyn Vfs, extension: &str) -> Vec<PathBuf> {
    let all = vfs.list(Path::new("/db")).unwrap();
    let found = all.into_iter().filter(|path| path.to_string_lossy().contains(extension));
    found.map(|path| Path::new("/db").join(path)).collect()
}

fn next<T>(items: &mut Vec<T>, item: T) -> ControlFlow<()> {
    items.push(item);
    ControlFlow::Continue(())
}

#[test]
fn a_log_shows_its_commits() {
    let (vfs, db) = database();
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").unwrap();
    batch.put_log_data("note").unwrap();
    batch.delete("a").unwrap();
    db.write(&batch, &WriteOptions::sync()).unwrap();
    let (mut entries, mut log_data) = (Vec::new(), Vec::new());
    let mut records = Vec::new();
    let mut end = None;
    for path in files(&*vfs, ".wal") {
        wal_with(&*vfs, &path, &mut |item| {
            match item {
                LogItem::Record(record) => records.push(record.entries),
                LogItem::Entry(e) => {
                    entries.push((e.seqno, e.kind, e.key.to_vec(), e.value.to_vec()));
                }
                LogItem::LogData(data) => log_data.push((entries.len(), data.to_vec())),
                LogItem::End(found) => end = Some(found.torn_bytes),
                LogItem::Header(_) | LogItem::Link(_) => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    }
    assert_eq!(records, [1, 2]);
    let first = entries[0].0;
    let expected = [
        (first, ValueKind::Put, b"a".to_vec(), b"1".to_vec()),
        (first + 1, ValueKind::Put, b"b".to_vec(), b"2".to_vec()),
        (first + 2, ValueKind::Delete, b"a".to_vec(), Vec::new()),
    ];
    assert_eq!(entries, expected);
    assert_eq!(log_data, [(2, b"note".to_vec())]);
    assert_eq!(end, Some(0));
}

#[test]
fn a_file_of_tables_shows_its_entries_and_names_its_damage() {
    let (vfs, db) = database();
    for n in 0..1000 {
        db.put(format!("key{n:04}"), vec![7; 100]).unwrap();
    }
    db.flush().unwrap();
    let path = files(&*vfs, ".sat").pop().unwrap();
    let mut keys = 0;
    let mut tables = Vec::new();
    let mut each = |item: TableItem<'_>| {
        match item {
            TableItem::File(file) => assert!(file.tables > 0),
            TableItem::Table(table) => tables.push(table),
            TableItem::Entry(entry) => {
                assert_eq!(entry.key, format!("key{keys:04}").as_bytes());
                assert_eq!(entry.value, [7; 100]);
                keys += 1;
            }
        }
        ControlFlow::Continue(())
    };
    table_with(&*vfs, &path, &mut each).unwrap();
    assert_eq!(keys, 1000);
    assert_eq!(tables.iter().map(|table| table.entries).sum::<u64>(), 1000);
    assert!(tables[0].layout.is_some_and(|layout| layout.blocks > 1));
    // The second block is damaged. The first one is shown, and the error names file and offset.
    let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
    let length = file.len().unwrap();
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    file.read_exact_at(&mut bytes, 0, IoClass::Client).unwrap();
    bytes[4096 + 6000] ^= 1;
    let copy = Path::new("/db/copy");
    let file = vfs.open(copy, OpenOptions::CREATE).unwrap();
    file.write_at(&bytes, 0, IoClass::Client).unwrap();
    let mut shown = 0;
    let error = table_with(&*vfs, copy, &mut |item| {
        shown += usize::from(matches!(item, TableItem::Entry(_)));
        ControlFlow::Continue(())
    });
    assert!(shown > 0 && shown < 1000, "{shown}");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("/db/copy") && error.contains("offset"), "{error}");
}

#[test]
fn a_manifest_shows_its_edits_and_what_is_none_is_refused() {
    let (vfs, db) = database();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    let path = files(&*vfs, "MANIFEST").pop().unwrap();
    let (mut snapshot, mut added) = (0, Vec::new());
    manifest_with(&*vfs, &path, &mut |item| {
        match item {
            ManifestItem::Record { snapshot: true, .. } => snapshot += 1,
            ManifestItem::Edit(edit) => added.extend(edit.added.iter().map(|a| a.table.entries)),
            ManifestItem::End(end) => assert_eq!(end.torn_bytes, 0),
            _ => {}
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(snapshot > 0);
    assert_eq!(added, [1]);
    let mut items = Vec::new();
    let error = wal_with(&*vfs, &path, &mut |item| next(&mut items, format!("{item:?}")));
    assert!(error.unwrap_err().to_string().contains("not a WAL"));
    assert!(items.is_empty());
    let error = table_with(&*vfs, &path, &mut |item| next(&mut items, format!("{item:?}")));
    assert!(error.unwrap_err().to_string().contains("not a compaction file"));
}
