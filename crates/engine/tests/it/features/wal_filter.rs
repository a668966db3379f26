//! A filter of the WAL decides what recovery does with each record.

use std::sync::{Arc, Mutex};

use sateen::vfs::MemVfs;
use sateen::{
    Db, Error, Options, Regions, WalDecision, WalFamily, WalFilter, WalFiltering, WalRecord,
    WriteBatch, WriteOptions,
};

use crate::support::common::{as_vfs, assert_sound, contents, tiny};

/// What a filter was told, and what it answers.
struct Told {
    families: Mutex<Vec<WalFamily>>,
    seen: Mutex<Vec<(u64, u32)>>,
    answer: Box<dyn Fn(&WalRecord<'_>) -> WalDecision + Send + Sync>,
}

struct Filter(Arc<Told>);

impl WalFilter for Filter {
    fn name(&self) -> &str {
        "test"
    }
    fn begin(&self, families: &[WalFamily]) {
        self.0.seen.lock().unwrap().clear();
        *self.0.families.lock().unwrap() = families.to_vec();
    }
    fn decide(&self, record: &WalRecord<'_>) -> WalDecision {
        assert!(record.path.ends_with(format!("{:06}.wal", record.log)));
        self.0.seen.lock().unwrap().push((record.first_seqno, record.batch.count()));
        (self.0.answer)(record)
    }
}

fn filtering(
    options: &Options,
    answer: impl Fn(&WalRecord<'_>) -> WalDecision + Send + Sync + 'static,
) -> (Options, Arc<Told>) {
    let told = Arc::new(Told {
        families: Mutex::default(),
        seen: Mutex::default(),
        answer: Box::new(answer),
    });
    let wal_filter = Some(WalFiltering::new(Filter(told.clone())));
    (Options { wal_filter, ..options.clone() }, told)
}

/// Writes `a` to `f`, one record each, in several WALs, and two keys together.
fn written(options: &Options) -> MemVfs {
    let mem = MemVfs::new();
    let db = Db::open_with(as_vfs(&mem), "/db", options.clone(), &[]).unwrap();
    db.create_column_family("other", options.column_family.clone()).unwrap();
    for key in ["a", "b", "c", "d"] {
        db.put(key, key).unwrap();
    }
    let mut both = WriteBatch::new();
    both.put("e", "e").unwrap();
    both.put("f", "f").unwrap();
    db.write(&both, &WriteOptions::default()).unwrap();
    db.close().unwrap();
    mem
}

fn open(mem: &MemVfs, options: &Options) -> Result<Db, Error> {
    Db::open_with(as_vfs(mem), "/db", options.clone(), &[])
}

fn keys(db: &Db) -> String {
    contents(db).into_keys().map(|key| String::from_utf8(key).unwrap()).collect()
}

fn first_key(record: &WalRecord<'_>) -> Vec<u8> {
    record.batch.iter().next().map(|entry| entry.key.to_vec()).unwrap_or_default()
}

#[test]
fn it_sees_all_records_and_changes_nothing_by_itself() {
    let options = tiny();
    let mem = written(&options);
    let (with, told) = filtering(&options, |_| WalDecision::Apply);
    let db = open(&mem, &with).unwrap();
    assert_eq!(keys(&db), "abcdef");
    assert_eq!(*told.seen.lock().unwrap(), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2)]);
    let families = told.families.lock().unwrap().clone();
    let names: Vec<_> = families.iter().map(|family| (family.id, &*family.name)).collect();
    assert_eq!(names, [(0, "default"), (1, "other")]);
    assert!(families.iter().all(|family| family.oldest_log > 0));
    // It is not kept by the open database.
    assert!(db.options().wal_filter.is_none());
    assert_eq!(Arc::strong_count(&told), 2);
}

#[test]
fn what_it_skips_is_dropped_for_good() {
    let options = tiny();
    let mem = written(&options);
    let (with, _) = filtering(&options, |record| match &first_key(record)[..] {
        b"b" | b"e" => WalDecision::Skip,
        _ => WalDecision::Apply,
    });
    let db = open(&mem, &with).unwrap();
    assert_eq!(keys(&db), "acd");
    // Numbers of dropped writes are not used again.
    assert_eq!(db.latest_sequence_number(), 6);
    db.put("g", "g").unwrap();
    db.close().unwrap();
    drop(db);
    let db = open(&mem, &options).unwrap();
    assert_eq!(keys(&db), "acdg");
    assert_sound(&db);
}

#[test]
fn a_stop_drops_all_later_records() {
    let options = tiny();
    let mem = written(&options);
    let (with, told) = filtering(&options, |record| match &first_key(record)[..] {
        b"c" => WalDecision::Stop,
        _ => WalDecision::Apply,
    });
    assert_eq!(keys(&open(&mem, &with).unwrap()), "ab");
    assert_eq!(told.seen.lock().unwrap().len(), 3, "it is not asked any more");
    assert_eq!(keys(&open(&mem, &options).unwrap()), "ab");
}

#[test]
fn a_record_gets_other_writes() {
    let options = tiny();
    let mem = written(&options);
    let (with, _) = filtering(&options, |record| {
        if first_key(record) != b"e" {
            return WalDecision::Apply;
        }
        let mut new = WriteBatch::new();
        new.put("z", "new").unwrap();
        new.delete("a").unwrap();
        WalDecision::Replace(new)
    });
    assert_eq!(keys(&open(&mem, &with).unwrap()), "bcdz");
    assert_eq!(keys(&open(&mem, &options).unwrap()), "bcdz");
}

#[test]
fn what_cannot_be_done_fails_the_open_and_loses_nothing() {
    let options = tiny();
    let mem = written(&options);
    let batch = |keys: &[&str]| {
        let mut batch = WriteBatch::new();
        keys.iter().for_each(|key| batch.put(key, key).unwrap());
        batch
    };
    let two = batch(&["x", "y"]);
    let answers: [(WalDecision, &str); 2] = [
        (WalDecision::Corrupt, "the WAL filter says"),
        (WalDecision::Replace(two), "the WAL filter test at write #1: 2 writes cannot replace 1"),
    ];
    for (answer, said) in answers {
        let (with, _) = filtering(&options, move |_| answer.clone());
        let error = open(&mem, &with).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let (with, _) = filtering(&options, |_| panic!("a fault of the filter"));
    let error = open(&mem, &with).unwrap_err().to_string();
    assert!(error.contains("the WAL filter test panicked"), "{error}");
    assert_eq!(keys(&open(&mem, &options).unwrap()), "abcdef");
}

#[test]
fn it_sees_what_clients_wrote() {
    let mut options = tiny();
    options.column_family.regions = Regions::at(["c"]).unwrap();
    options.column_family.ttl = Some(std::time::Duration::ZERO);
    let mem = written(&options);
    let (with, told) = filtering(&options, |record| {
        let plain =
            |entry: sateen::BatchEntry<'_>| entry.column_family.0 == 0 && entry.key == entry.value;
        assert!(record.batch.iter().all(plain));
        WalDecision::Apply
    });
    assert_eq!(keys(&open(&mem, &with).unwrap()), "abcdef");
    assert_eq!(told.seen.lock().unwrap().len(), 5);
    // What the database adds to the writes would be lost.
    let mem = written(&options);
    let (with, _) = filtering(&options, |record| WalDecision::Replace(record.batch.clone()));
    let error = open(&mem, &with).unwrap_err().to_string();
    assert!(error.contains("cannot be replaced"), "{error}");
}

#[test]
fn a_reader_asks_it_too() {
    let options = tiny();
    let mem = written(&options);
    let (with, _) = filtering(&options, |record| match &first_key(record)[..] {
        b"a" => WalDecision::Skip,
        _ => WalDecision::Apply,
    });
    let reader = Db::open_read_only_with(as_vfs(&mem), "/db", with).unwrap();
    assert_eq!(keys(&reader), "bcdef");
    drop(reader);
    assert_eq!(keys(&open(&mem, &options).unwrap()), "abcdef", "a reader changes nothing");
}

/// What the database adds to writes, and what it checks of them, is missing in those of a filter.
#[test]
fn a_replacement_is_checked_like_a_write() {
    let options = tiny();
    let mem = written(&options);
    let db = open(&mem, &options).unwrap();
    let mut regions = options.column_family.clone();
    regions.regions = Regions::at(["m"]).unwrap();
    let mut ttl = options.column_family.clone();
    ttl.ttl = Some(std::time::Duration::from_secs(1000));
    let mut stamped = options.column_family.clone();
    stamped.comparator = sateen::Comparator::timestamped("stamped", 8, |a, b| a.cmp(b));
    let own = [("regions", regions), ("ttl", ttl), ("stamped", stamped)];
    let mut ids = Vec::new();
    for (name, family) in &own {
        ids.push(db.create_column_family(name, family.clone()).unwrap().id());
    }
    db.put("x", "x").unwrap();
    db.close().unwrap();
    drop(db);
    let region = ids[0] + 1;
    let open = |options: &Options| Db::open_with(as_vfs(&mem), "/db", options.clone(), &own);
    let mut batches = vec![];
    for (id, said) in [
        (ids[0], "regions has regions, lifetimes or timestamps"),
        (ids[1], "ttl has regions, lifetimes or timestamps"),
        (ids[2], "stamped has regions, lifetimes or timestamps"),
        (region, "no column family has the id"),
        (99, "no column family has the id cf99"),
    ] {
        let mut batch = WriteBatch::new();
        batch.put("key", "value").unwrap();
        let mut data = batch.data().to_vec();
        data[1] = u8::try_from(id).unwrap();
        batches.push((WriteBatch::from_data(data).unwrap(), said));
    }
    let mut batch = WriteBatch::new();
    batch.merge("key", "value").unwrap();
    batches.push((batch, "default has no merge operator"));
    let mut batch = WriteBatch::new();
    batch.delete_range("b", "a").unwrap();
    batches.push((batch, "the end of a range to delete is before its begin"));
    for (batch, said) in batches {
        let (with, _) = filtering(&options, move |_| WalDecision::Replace(batch.clone()));
        let error = open(&with).map(drop).unwrap_err().to_string();
        assert!(
            error.contains("the WAL filter test at write #7") && error.contains(said),
            "{error}"
        );
    }
    let mut batch = WriteBatch::new();
    batch.delete_range("a", "c").unwrap();
    let (with, _) = filtering(&options, move |_| WalDecision::Replace(batch.clone()));
    assert_eq!(keys(&open(&with).unwrap()), "cdef");
}
