//! Backups in stores that need no network: what is restored is what was backed up, nothing is
//! lost when requests fail, and damage is told.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart,
};
use sateen::vfs::{MemVfs, Vfs};
use sateen::{BackupEngine, BackupStore, Db, Error, Options, RestoreOptions, Result};
use sateen_object_store::ObjectBackupStore;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn open_db() -> Db {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 64 << 10;
    Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap()
}

fn fill(db: &Db, round: u8) {
    for number in 0..200_u32 {
        db.put(format!("key {round} {number:04}"), vec![round; 300]).unwrap();
    }
    db.flush().unwrap();
    db.put("newest", [round]).unwrap();
}

fn contents(db: &Db) -> Contents {
    let entries = db.iter().unwrap().map(Result::unwrap);
    entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn restored(engine: &BackupEngine, id: u64) -> Result<Contents> {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    engine.restore_with(vfs.clone(), id, "/restored", &RestoreOptions::default())?;
    let options = Options { background_threads: 0, ..Options::default() };
    Ok(contents(&Db::open_with(vfs, "/restored", options, &[])?))
}

fn open(store: &ObjectBackupStore) -> Result<BackupEngine> {
    BackupEngine::open_with(Arc::new(store.clone()))
}

#[test]
fn a_listed_length_that_is_wrong_has_the_object_copied_again() {
    let bucket = Arc::new(InMemory::new());
    let store = ObjectBackupStore::new(bucket.clone(), "place").unwrap();
    let db = open_db();
    fill(&db, 1);
    let mut engine = open(&store).unwrap();
    engine.create(&db).unwrap();
    let lengths = store.list_lengths("shared").unwrap();
    assert!(!lengths.is_empty() && lengths.iter().all(|(_, length)| length.is_some()));
    for (key, _) in &lengths {
        let mut writer = store.create(key).unwrap();
        writer.append(b"short").unwrap();
        writer.finish().unwrap();
    }
    assert!(!engine.verify(1).unwrap().is_sound());
    engine.create(&db).unwrap();
    for id in [1, 2] {
        assert!(engine.verify(id).unwrap().is_sound(), "backup {id}");
        assert_eq!(restored(&engine, id).unwrap(), contents(&db));
    }
    assert_eq!(store.list_lengths("shared").unwrap(), lengths);
}

/// The life of some backups.
fn life(store: Arc<dyn ObjectStore>, prefix: &str) {
    let store = ObjectBackupStore::new(store, prefix).unwrap();
    let db = open_db();
    let mut expected = BTreeMap::new();
    for round in 1..=3 {
        fill(&db, round);
        let mut engine = open(&store).unwrap();
        let backup = engine.create(&db).unwrap();
        expected.insert(backup.id, contents(&db));
    }
    let shared = store.list("shared").unwrap().len();
    let mut engine = open(&store).unwrap();
    for (id, contents) in &expected {
        assert!(engine.verify(*id).unwrap().is_sound());
        assert_eq!(restored(&engine, *id).unwrap(), *contents);
    }
    // The lock: nobody else writes, everybody reads.
    assert!(matches!(open(&store), Err(Error::Locked { holder: Some(_), .. })));
    let reader = BackupEngine::open_read_only_with(Arc::new(store.clone())).unwrap();
    assert_eq!(reader.list().unwrap().len(), 3);
    engine.purge(1).unwrap();
    assert_eq!(engine.list().unwrap().len(), 1);
    assert_eq!(restored(&engine, 3).unwrap(), expected[&3]);
    drop(engine);
    assert!(store.list("shared").unwrap().len() <= shared);
    open(&store).unwrap();
}

#[test]
fn backups_in_memory() {
    life(Arc::new(InMemory::new()), "");
    life(Arc::new(InMemory::new()), "backups/of a library");
}

#[test]
fn backups_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalFileSystem::new_with_prefix(directory.path()).unwrap().with_fsync(true);
    life(Arc::new(store), "backups");
}

#[test]
fn a_place_with_other_things_is_refused() {
    let store = Arc::new(InMemory::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let photo = Key::from("photos/1");
    runtime.block_on(store.put(&photo, PutPayload::from("x"))).unwrap();
    let refused = open(&ObjectBackupStore::new(store.clone(), "").unwrap()).unwrap_err();
    assert!(refused.to_string().contains("photos"), "{refused}");
    open(&ObjectBackupStore::new(store, "backups").unwrap()).unwrap();
    assert!(ObjectBackupStore::new(Arc::new(InMemory::new()), "a//b").is_err());
}

/// Calls from an async program wait, whether on a thread for that or in a task; and what is dropped
/// there is unlocked.
#[test]
fn an_async_program_makes_backups() {
    let store = ObjectBackupStore::new(Arc::new(InMemory::new()), "b").unwrap();
    let db = open_db();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut engine, of_task) = (open(&store).unwrap(), store.clone());
    runtime.block_on(async move {
        let task = tokio::task::spawn_blocking(move || {
            engine.create(&db).unwrap();
            engine
        });
        drop(task.await.unwrap());
        assert_eq!(open(&of_task).unwrap().list().unwrap().len(), 1);
    });
    open(&store).unwrap();
}

/// An object of several parts, read in pieces of odd sizes.
#[test]
fn large_objects_are_uploaded_in_parts() {
    let bytes: Vec<u8> = (0..(40_u32 << 20) + 7).map(|at| (at % 251) as u8).collect();
    for limit in [16 << 20, 32 << 20, bytes.len()] {
        let store = ObjectBackupStore::new(Arc::new(InMemory::new()), "").unwrap();
        let mut writer = store.create("shared/large").unwrap();
        for chunk in bytes[..limit].chunks(999_999) {
            writer.append(chunk).unwrap();
        }
        assert!(store.open("shared/large").is_err(), "it is not there before it is whole");
        writer.finish().unwrap();
        let mut reader = store.open("shared/large").unwrap();
        assert_eq!(reader.bytes().unwrap(), limit as u64);
        let (mut read, mut buffer) = (Vec::new(), vec![0; 777_777]);
        while let got @ 1.. = reader.read_at(&mut buffer, read.len() as u64).unwrap() {
            read.extend_from_slice(&buffer[..got]);
        }
        assert!(read == bytes[..limit], "{limit}");
        let mut writer = store.create("shared/given up").unwrap();
        writer.append(&bytes).unwrap();
        drop(writer);
        assert_eq!(store.list("shared").unwrap(), ["shared/large"]);
    }
}

/// Damage of any object is told by its name, and nothing is restored.
#[test]
fn damage_is_told() {
    let memory = Arc::new(InMemory::new());
    let store = ObjectBackupStore::new(memory.clone(), "b").unwrap();
    let db = open_db();
    fill(&db, 1);
    let id = open(&store).unwrap().create(&db).unwrap().id;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for folder in ["shared", "private"] {
        for key in store.list(folder).unwrap() {
            let place = Key::from(format!("b/{key}"));
            let whole = runtime.block_on(async { memory.get(&place).await?.bytes().await });
            let whole = whole.unwrap();
            let mut flipped = whole.to_vec();
            let middle = flipped.len() / 2;
            flipped[middle] ^= 1;
            let damages = [None, Some(flipped), Some(whole[..whole.len() - 1].to_vec())];
            for damaged in damages {
                runtime.block_on(async {
                    match damaged {
                        Some(bytes) => drop(memory.put(&place, bytes.into()).await.unwrap()),
                        None => memory.delete(&place).await.unwrap(),
                    }
                });
                let engine = open(&store).unwrap();
                assert!(!engine.verify(id).unwrap().is_sound(), "{key}");
                let refused = restored(&engine, id).unwrap_err();
                assert!(refused.to_string().contains(&key), "{key}: {refused}");
                drop(engine);
            }
            let put = memory.put(&place, PutPayload::from(whole));
            runtime.block_on(put).unwrap();
        }
    }
    assert!(restored(&open(&store).unwrap(), id).is_ok());
}

/// A store whose requests fail after a number of them.
#[derive(Debug)]
struct Failing {
    inner: Arc<InMemory>,
    left: Arc<AtomicI64>,
}

impl Failing {
    fn turn(left: &AtomicI64) -> object_store::Result<()> {
        if left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            let source = "the network is down".into();
            return Err(object_store::Error::Generic { store: "failing", source });
        }
        Ok(())
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failing:")
    }
}

#[derive(Debug)]
struct FailingUpload {
    inner: Box<dyn MultipartUpload>,
    left: Arc<AtomicI64>,
}

#[async_trait::async_trait]
impl MultipartUpload for FailingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match Failing::turn(&self.left) {
            Ok(()) => self.inner.put_part(data),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        Failing::turn(&self.left)?;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.inner.abort().await
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(
        &self,
        location: &Key,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        Failing::turn(&self.left)?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Key,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        Failing::turn(&self.left)?;
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(FailingUpload { inner, left: self.left.clone() }))
    }

    async fn get_opts(
        &self,
        location: &Key,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        Failing::turn(&self.left)?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Key,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        Failing::turn(&self.left)?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Key>>,
    ) -> BoxStream<'static, object_store::Result<Key>> {
        let left = self.left.clone();
        let allowed = locations.map(move |location| Failing::turn(&left).and(location)).boxed();
        self.inner.delete_stream(allowed)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> object_store::Result<ListResult> {
        Failing::turn(&self.left)?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, opts: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, opts).await
    }
}

/// The network fails for good after each number of requests: the error is told, the first backup is
/// whole, and once the lock is broken the next attempt succeeds.
#[test]
fn requests_that_fail_lose_nothing() {
    let db = open_db();
    fill(&db, 1);
    let first = contents(&db);
    let memory = Arc::new(InMemory::new());
    let well = ObjectBackupStore::new(memory.clone(), "b").unwrap();
    let id = open(&well).unwrap().create(&db).unwrap().id;
    fill(&db, 2);
    let mut failures = 0;
    for requests in 0.. {
        let left = Arc::new(AtomicI64::new(requests));
        let failing = Arc::new(Failing { inner: memory.clone(), left });
        let store = ObjectBackupStore::new(failing, "b").unwrap();
        let made = open(&store).and_then(|mut engine| engine.create(&db).map(|backup| backup.id));
        well.break_lock().unwrap();
        let engine = open(&well).unwrap();
        assert_eq!(restored(&engine, id).unwrap(), first, "{requests}");
        for backup in engine.list().unwrap() {
            assert!(engine.verify(backup.id).unwrap().is_sound(), "{requests}: {backup:?}");
        }
        match made {
            Ok(made) => {
                assert_eq!(restored(&engine, made).unwrap(), contents(&db));
                break;
            }
            Err(error) => {
                assert!(error.to_string().contains("failing:"), "{requests}: {error}");
                failures += 1;
            }
        }
    }
    assert!(failures > 10, "{failures}");
}
