//! Log data: it goes to the log with its batch, comes out of it as it went in, and changes nothing.

use std::path::Path;
use std::time::Duration;

use sateen::vfs::{CrashChoice, MemVfs, Vfs};
use sateen::{
    BatchItem, Db, Error, Options, Regions, Updates, WalMode, WallClock, WriteBatch, WriteOptions,
};

use crate::features::updates::{keeping, open, settle};
use crate::support::common::{Random, as_vfs, assert_sound, tiny};

/// What a batch shows: the keys of its writes, and log data in brackets.
fn shown(batch: &WriteBatch) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let items = batch.items().map(|item| match item {
        BatchItem::Write(entry) => text(entry.key),
        BatchItem::LogData(data) => format!("[{}]", text(data)),
    });
    items.collect()
}

/// The sequence number of each batch from here to the end, and what it shows.
fn rest(updates: &mut Updates) -> Vec<(u64, Vec<String>)> {
    let mut all = Vec::new();
    while updates.valid() {
        all.push((updates.sequence_number(), shown(updates.batch().unwrap())));
        updates.next();
    }
    updates.status().unwrap();
    all
}

fn since(db: &Db, seqno: u64) -> Vec<(u64, Vec<String>)> {
    rest(&mut db.updates_since(seqno).unwrap())
}

fn write(db: &Db, batch: &WriteBatch) {
    db.write(batch, &WriteOptions::default()).unwrap();
}

fn note(text: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put_log_data(text).unwrap();
    batch
}

fn of(seqno: u64, items: &[&str]) -> (u64, Vec<String>) {
    (seqno, items.iter().map(ToString::to_string).collect())
}

#[test]
fn log_data_comes_out_of_the_log_and_takes_no_sequence_number() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    let mut batch = note("first");
    batch.put("a", "1").unwrap();
    batch.put_log_data("between").unwrap();
    batch.delete("b").unwrap();
    write(&db, &batch);
    assert_eq!(db.latest_sequence_number(), 2);
    let mut updates = db.updates_since(0).unwrap();
    assert_eq!(updates.batch(), Some(&batch));
    assert_eq!(updates.batch().map(WriteBatch::count), Some(2));
    assert_eq!((updates.sequence_number(), updates.last_sequence_number()), (1, 2));
    let first = of(1, &["[first]", "a", "[between]", "b"]);
    assert_eq!(rest(&mut updates), std::slice::from_ref(&first));

    // Alone it is a batch before the next write.
    write(&db, &note("alone"));
    assert_eq!(db.latest_sequence_number(), 2);
    updates.next();
    assert!(updates.valid(), "it is there once it is written");
    assert_eq!((updates.sequence_number(), updates.last_sequence_number()), (3, 2));
    assert_eq!(rest(&mut updates), [of(3, &["[alone]"])]);
    db.write(&note("synced"), &WriteOptions::sync()).unwrap();
    db.put("c", "3").unwrap();
    let last = [of(3, &["[alone]"]), of(3, &["[synced]"]), of(3, &["c"])];
    let all = [&[first][..], &last].concat();
    assert_eq!(since(&db, 0), all);
    assert_eq!(since(&db, 2), all);
    assert_eq!(since(&db, 3), last);

    // It is nowhere but in the log.
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    db.flush_all().unwrap();
    settle(&db);
    assert_eq!(since(&db, 0), all);
    db.close().unwrap();
    let db = open(&vfs, &keeping(tiny()));
    assert_eq!(db.latest_sequence_number(), 3);
    assert_eq!(since(&db, 0), all);
    write(&db, &note("again"));
    db.put("d", "4").unwrap();
    assert_eq!(since(&db, 4), [of(4, &["[again]"]), of(4, &["d"])]);
    assert_sound(&db);
}

#[test]
fn what_does_not_go_to_the_log_has_no_log_data() {
    let db = open(&MemVfs::new(), &keeping(tiny()));
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let mut batch = note("with a write");
    batch.put("a", "1").unwrap();
    db.write(&batch, &unlogged).unwrap();
    db.write(&note("alone"), &unlogged).unwrap();
    write(&db, &note("logged"));
    assert_eq!(since(&db, 0), [of(2, &["[logged]"])]);
    assert_eq!(db.latest_sequence_number(), 1);
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));

    let options = Options { wal: WalMode::Off, ..tiny() };
    let db = open(&MemVfs::new(), &options);
    write(&db, &note("alone"));
    write(&db, &batch);
    assert_eq!(db.latest_sequence_number(), 1);
}

/// It stands behind writes that are gone: their sequence numbers are not given out again, since
/// logs are read in the order of theirs.
#[test]
fn log_data_behind_writes_that_were_not_logged_survives_them() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    db.put("a", "1").unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let mut batch = WriteBatch::new();
    (0..5).for_each(|key: u8| batch.put([key], "lost").unwrap());
    db.write(&batch, &unlogged).unwrap();
    write(&db, &note("behind"));
    let mut image = vfs.crash_image(CrashChoice::Everything);
    let mut expected = vec![of(1, &["a"]), of(7, &["[behind]"])];
    for round in 0..3 {
        let db = open(&image, &keeping(tiny()));
        db.put("after", "crash").unwrap();
        expected.push(of(7 + round, &["after"]));
        assert_eq!(since(&db, 0), expected);
        assert_sound(&db);
        image = image.crash_image(CrashChoice::Everything);
    }
}

#[test]
fn log_data_stays_between_the_same_writes_in_regions_and_with_times_of_values() {
    let mut regions = keeping(tiny());
    regions.column_family.regions = Regions::at(["h", "p"]).unwrap();
    let mut expiring = keeping(tiny());
    expiring.wall_clock = WallClock::new(|| 1_800_000_000);
    expiring.column_family.ttl = Some(Duration::from_secs(100));
    let mut both = expiring.clone();
    both.column_family.regions = regions.column_family.regions.clone();
    for options in [regions, expiring, both] {
        let db = open(&MemVfs::new(), &options);
        let mut batch = note("first");
        batch.put("a", "1").unwrap();
        batch.put("z", "2").unwrap();
        batch.put_log_data("between").unwrap();
        batch.delete_range("b", "y").unwrap();
        batch.put_log_data("last").unwrap();
        write(&db, &batch);
        write(&db, &note("alone"));
        let mut updates = db.updates_since(0).unwrap();
        assert_eq!(updates.batch(), Some(&batch));
        updates.next();
        assert_eq!(updates.batch(), Some(&note("alone")));
        assert_eq!(db.get("z").unwrap().as_deref(), Some(&b"2"[..]));
        assert_sound(&db);
    }
}

/// The contents of the logs.
fn logs(vfs: &MemVfs) -> Vec<Vec<u8>> {
    let names = vfs.list(Path::new("/db")).unwrap().into_iter();
    let logs = names.filter(|name| name.extension().is_some_and(|end| end == "wal"));
    logs.map(|log| vfs.contents(&Path::new("/db").join(log)).unwrap()).collect()
}

/// Memtables are not there to bound a log of log data.
#[test]
fn logs_of_log_data_do_not_grow_without_limit() {
    for writes in [false, true] {
        let mut options = tiny();
        options.column_family.memtable_bytes = 64 << 10;
        options.column_family.memtables_max = 2;
        let (vfs, limit) = (MemVfs::new(), 1 << 20);
        let db = open(&vfs, &options);
        let mut batch = WriteBatch::new();
        batch.put_log_data(vec![b'x'; 8 << 10]).unwrap();
        if writes {
            batch.put("key", "value").unwrap();
        }
        for _ in 0..1000 {
            write(&db, &batch);
            settle(&db);
        }
        let bytes: usize = logs(&vfs).iter().map(Vec::len).sum();
        assert!(bytes < 2 * limit && bytes > 0, "{bytes} bytes of logs for {writes}");
        write(&db, &note("after"));
        db.close().unwrap();
        let db = open(&vfs, &options);
        assert_eq!(db.get("key").unwrap().is_some(), writes);
        assert_sound(&db);
    }
}

/// Logs of log data alone begin with the same sequence number; they all are read.
#[test]
fn log_data_of_several_logs_comes_in_order() {
    let mut options = keeping(tiny());
    options.column_family.memtable_bytes = 64 << 10;
    options.column_family.memtables_max = 2;
    let vfs = MemVfs::new();
    let db = open(&vfs, &options);
    let batch = |number: u16| {
        let mut batch = WriteBatch::new();
        batch.put_log_data([&number.to_be_bytes()[..], &[b'x'; 8 << 10]].concat()).unwrap();
        batch
    };
    for number in 0..400 {
        write(&db, &batch(number));
        settle(&db);
    }
    assert!(logs(&vfs).len() > 2);
    for seqno in [0, 1] {
        db.put("key", "value").unwrap();
        let mut updates = db.updates_since(seqno).unwrap();
        for number in 0..400 {
            assert_eq!(updates.batch(), Some(&batch(number)), "{number}");
            updates.next();
        }
        assert_eq!(updates.sequence_number(), 1);
    }
}

/// What was done: the batches, and (operations of the file system, batches) that were promised and
/// begun there.
struct Run {
    batches: Vec<WriteBatch>,
    promised: Vec<(usize, usize)>,
    begun: Vec<(usize, usize)>,
}

fn last(list: &[(usize, usize)], at: usize) -> usize {
    list[..list.partition_point(|(operations, _)| *operations <= at)]
        .last()
        .map_or(0, |pair| pair.1)
}

#[test]
fn after_a_crash_log_data_is_there_as_far_as_its_batches() {
    let options = keeping(tiny());
    let vfs = MemVfs::new();
    let db = open(&vfs, &options);
    let recording = vfs.record();
    let mut random = Random::new(5);
    let mut run = Run { batches: Vec::new(), promised: Vec::new(), begun: Vec::new() };
    for number in 0..60 {
        let mut batch = WriteBatch::new();
        if number % 3 != 0 {
            batch.put(format!("key{:02}", number % 7), vec![b'v'; 90]).unwrap();
        }
        if number % 3 != 1 {
            batch.put_log_data(format!("note {number}")).unwrap();
        }
        run.batches.push(batch.clone());
        run.begun.push((recording.len(), run.batches.len()));
        let sync = random.one_in(6);
        db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() }).unwrap();
        if sync {
            run.promised.push((recording.len(), run.batches.len()));
        }
        if random.one_in(12) {
            db.flush_all().unwrap();
        }
        if random.one_in(3) {
            settle(&db);
        }
    }
    db.close().unwrap();
    let mut images = 0;
    for at in 0..recording.len() {
        for choice in [CrashChoice::SyncedOnly, CrashChoice::Everything, CrashChoice::Subset(3)] {
            let image = recording.image_at(at, choice);
            let what = format!("{at} {choice:?}");
            let db = match Db::open_with(as_vfs(&image), "/db", options.clone(), &[]) {
                Ok(db) => db,
                Err(error) => panic!("{what}: {error}"),
            };
            let mut updates = db.updates_since(0).unwrap();
            let mut found = 0;
            while let Some(batch) = updates.batch() {
                assert_eq!(Some(batch), run.batches.get(found), "{what}: batch {found}");
                found += 1;
                updates.next();
            }
            updates.status().unwrap();
            let (floor, ceiling) = (last(&run.promised, at), last(&run.begun, at));
            assert!((floor..=ceiling).contains(&found), "{what}: {found}, {floor} to {ceiling}");
            let writes: u32 = run.batches[..found].iter().map(WriteBatch::count).sum();
            assert_eq!(db.latest_sequence_number(), u64::from(writes), "{what}");
            write(&db, &note("after the crash"));
            db.put("after", "it").unwrap();
            updates.next();
            assert_eq!(updates.batch(), Some(&note("after the crash")), "{what}");
            assert_sound(&db);
            images += 1;
        }
    }
    assert!(images > 300, "{images}");
}

#[test]
fn log_data_beyond_the_limit_of_values_is_refused() {
    let options = Options { value_bytes_max: 1000, ..keeping(tiny()) };
    let db = open(&MemVfs::new(), &options);
    let mut batch = WriteBatch::new();
    batch.put_log_data([b'x'; 1001]).unwrap();
    let refused = db.write(&batch, &WriteOptions::default());
    assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{refused:?}");
    assert_eq!(since(&db, 0), []);
}
