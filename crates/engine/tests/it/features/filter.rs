//! Compaction filters, as a user meets them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sateen::vfs::MemVfs;
use sateen::{
    ColumnFamilyOptions, CompactRangeOptions, CompactionFilter, CompactionFilterContext,
    CompactionFilterFactory, Db, Decision, Error, Filtering, Health, Options, ReadOptions,
};

use crate::support::common::{as_vfs, assert_sound, read_all, small, tiny};

fn with(filtering: Filtering) -> Options {
    let mut options = tiny();
    options.column_family.compaction_filter = Some(filtering);
    options
}

fn open(vfs: &MemVfs, options: Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options, &[]).unwrap()
}

fn compact(db: &Db) {
    let options = CompactRangeOptions::default();
    db.compact_range(None, None, &options).unwrap();
}

/// Removes values that begin with `-`, and makes those that begin with `?` into ones with `!`.
fn by_mark() -> Filtering {
    Filtering::by("by mark", |_level, _key, value| match value.split_first() {
        Some((b'-', _)) => Decision::Remove,
        Some((b'?', rest)) => Decision::Change([b"!", rest].concat()),
        _ => Decision::Keep,
    })
}

fn filtered(value: &[u8]) -> Option<Vec<u8>> {
    match value.split_first() {
        Some((b'-', _)) => None,
        Some((b'?', rest)) => Some([b"!", rest].concat()),
        _ => Some(value.to_vec()),
    }
}

fn value(nth: u32) -> Vec<u8> {
    let mark = [b'-', b'?', b'=', b'.'][(nth.wrapping_mul(2_654_435_761) >> 30) as usize];
    let mut value = vec![mark; 1];
    value.extend_from_slice(&[b'x'; 60]);
    value.extend_from_slice(nth.to_string().as_bytes());
    value
}

/// A compaction of everything asks about everything, whatever the profile: also about what is in
/// the last level, and about what could be moved.
#[test]
fn a_compaction_by_hand_filters_everything() {
    let mut all = vec![tiny()];
    all.extend(Options::profiles().iter().map(|profile| small(profile, 4 << 10)));
    for mut options in all {
        let vfs = MemVfs::new();
        // First without a filter, down to the last level.
        let db = open(&vfs, options.clone());
        for nth in 0..2_000 {
            db.put(format!("key{:05}", nth * 7 % 2_000), value(nth)).unwrap();
        }
        compact(&db);
        for nth in 2_000..3_000 {
            db.put(format!("key{:05}", nth * 7 % 3_000), value(nth)).unwrap();
        }
        let family = db.default_column_family();
        let mut expected = read_all(&family, &ReadOptions::default());
        db.close().unwrap();

        options.column_family.compaction_filter = Some(by_mark());
        let db = open(&vfs, options);
        let family = db.default_column_family();
        assert_eq!(read_all(&family, &ReadOptions::default()).len(), expected.len());
        compact(&db);
        expected = expected.into_iter().filter_map(|(k, v)| Some((k, filtered(&v)?))).collect();
        assert_eq!(read_all(&family, &ReadOptions::default()), expected);
        assert_sound(&db);
        let entries: u64 = db.property("sateen.estimate-num-keys").unwrap().parse().unwrap();
        assert_eq!(entries, expected.len() as u64, "no tombstone is left");
    }
}

/// What is removed does not come back from a deeper level.
#[test]
fn removing_uncovers_nothing() {
    let db = open(&MemVfs::new(), with(by_mark()));
    let family = db.default_column_family();
    for nth in 0..300 {
        db.put(format!("key{nth:03}"), format!("=old{nth}")).unwrap();
    }
    compact(&db);
    for nth in (0..300).step_by(2) {
        db.put(format!("key{nth:03}"), format!("-new{nth}")).unwrap();
    }
    for _ in 0..3 {
        db.flush().unwrap();
        db.wait_idle().unwrap();
        for (key, value) in read_all(&family, &ReadOptions::default()) {
            let nth: u32 = String::from_utf8(key[3..].to_vec()).unwrap().parse().unwrap();
            let old = nth % 2 == 1;
            assert_eq!(value[0] == b'=', old, "{nth}");
        }
    }
    compact(&db);
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 150);
}

/// A snapshot keeps what it shows; what is newer is filtered.
#[test]
fn snapshots_keep_what_they_show() {
    let db = open(&MemVfs::new(), with(by_mark()));
    let family = db.default_column_family();
    db.put("a", "-1").unwrap();
    db.put("b", "?1").unwrap();
    let snapshot = db.snapshot();
    db.put("b", "?2").unwrap();
    db.put("c", "-2").unwrap();
    compact(&db);
    let seen = read_all(&family, &ReadOptions::at(&snapshot));
    assert_eq!(seen.values().map(Vec::as_slice).collect::<Vec<_>>(), [b"-1", b"?1"]);
    let now = read_all(&family, &ReadOptions::default());
    assert_eq!(now.values().map(Vec::as_slice).collect::<Vec<_>>(), [b"-1", b"!2"]);
    drop(snapshot);
    compact(&db);
    let now = read_all(&family, &ReadOptions::default());
    assert_eq!(now.into_iter().collect::<Vec<_>>(), [(b"b".to_vec(), b"!2".to_vec())]);
}

/// Makes filters that count for themselves what they are asked.
#[derive(Default)]
struct Recording {
    contexts: Mutex<Vec<CompactionFilterContext>>,
    dropped: AtomicUsize,
    nothing: bool,
}

struct Recorder(Arc<Recording>, Vec<Vec<u8>>);

impl CompactionFilter for Recorder {
    fn filter(&mut self, _level: u8, key: &[u8], _value: &[u8]) -> Decision {
        assert!(self.1.last().is_none_or(|last| **last < *key), "keys ascend within a compaction");
        self.1.push(key.to_vec());
        Decision::Keep
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

struct Factory(Arc<Recording>);

impl CompactionFilterFactory for Factory {
    fn name(&self) -> &str {
        "recording"
    }
    fn create(&self, context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
        self.0.contexts.lock().unwrap().push(*context);
        (!self.0.nothing).then(|| Box::new(Recorder(self.0.clone(), Vec::new())) as Box<_>)
    }
}

#[test]
fn each_compaction_has_its_own_filter_and_tells_it_what_it_is() {
    let recording = Arc::new(Recording::default());
    let db = open(&MemVfs::new(), with(Filtering::new(Factory(recording.clone()))));
    for nth in 0..3_000_u32 {
        let key = nth.wrapping_mul(2_654_435_761) % 1_000;
        db.put(format!("key{key:05}"), value(nth)).unwrap();
        if nth % 20 == 0 {
            db.step().unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let automatic = std::mem::take(&mut *recording.contexts.lock().unwrap());
    assert!(automatic.len() > 3, "{automatic:?}");
    assert!(automatic.iter().all(|context| !context.is_manual_compaction));
    assert_eq!(recording.dropped.load(Ordering::Relaxed), automatic.len());
    compact(&db);
    let manual = std::mem::take(&mut *recording.contexts.lock().unwrap());
    assert!(!manual.is_empty() && manual.iter().all(|context| context.is_manual_compaction));
    assert!(manual.iter().all(|context| context.column_family.0 == 0 && context.output_level > 0));

    let family = db.create_column_family("few", db.options().column_family).unwrap();
    family.put("key", "value").unwrap();
    let options = CompactRangeOptions::default();
    family.compact_range(None, None, &options).unwrap();
    family.put("key", "another").unwrap();
    family.compact_range(None, None, &options).unwrap();
    let few = std::mem::take(&mut *recording.contexts.lock().unwrap());
    assert!(few.iter().all(|context| context.is_full_compaction), "{few:?}");
    assert!(few.iter().all(|context| context.column_family.0 == family.id()));
    assert_eq!(family.get("key").unwrap().unwrap(), b"another");
}

#[test]
fn a_factory_may_make_none() {
    let recording = Arc::new(Recording { nothing: true, ..Recording::default() });
    let db = open(&MemVfs::new(), with(Filtering::new(Factory(recording.clone()))));
    db.put("key", "value").unwrap();
    compact(&db);
    assert!(!recording.contexts.lock().unwrap().is_empty());
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
}

/// Operands are asked about one by one; a value that lies below them is not.
#[test]
fn operands_are_filtered_one_by_one() {
    struct Odd;
    impl CompactionFilter for Odd {
        fn filter(&mut self, _level: u8, _key: &[u8], value: &[u8]) -> Decision {
            assert_ne!(value, b"base", "its operands are newer");
            Decision::Keep
        }
        fn filter_operand(&mut self, _level: u8, _key: &[u8], operand: &[u8]) -> Decision {
            match operand {
                b"1" => Decision::Remove,
                b"2" => Decision::Change(b"two".to_vec()),
                _ => Decision::Keep,
            }
        }
    }
    struct Every;
    impl CompactionFilterFactory for Every {
        fn name(&self) -> &str {
            "odd"
        }
        fn create(&self, _: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
            Some(Box::new(Odd))
        }
    }
    let mut options = with(Filtering::new(Every));
    options.column_family.merge_operator = Some(crate::support::common::appending());
    let db = open(&MemVfs::new(), options);
    // A flush puts operands together: each is in a run of its own.
    db.put("on a value", "base").unwrap();
    for operand in ["0", "1", "2"] {
        db.flush().unwrap();
        db.merge("on a value", operand).unwrap();
        db.merge("on nothing", operand).unwrap();
        db.merge(format!("only {operand}"), operand).unwrap();
    }
    compact(&db);
    assert_eq!(db.get("on a value").unwrap().unwrap(), b"base0two");
    assert_eq!(db.get("on nothing").unwrap().unwrap(), b"0two");
    assert_eq!(db.get("only 0").unwrap().unwrap(), b"0");
    assert_eq!(db.get("only 1").unwrap(), None);
    assert_eq!(db.get("only 2").unwrap().unwrap(), b"two");
}

/// A filter that panics stops the background and the writers, and nothing is lost.
#[test]
fn a_panic_is_an_error_of_the_background() {
    for threaded in [false, true] {
        let vfs = MemVfs::new();
        let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let breaks = broken.clone();
        let mut options = with(Filtering::by("broken", move |_level, _key, _value| {
            assert!(!breaks.load(Ordering::Relaxed), "out of order");
            Decision::Keep
        }));
        options.background_threads = if threaded { 2 } else { 0 };
        let db = open(&vfs, options);
        db.put("key", "value").unwrap();
        let all = CompactRangeOptions::default();
        let failed = db.compact_range(None, None, &all).unwrap_err();
        assert!(matches!(failed, Error::Background { .. }), "{failed}");
        let text = "the compaction filter broken failed: it panicked: out of order";
        assert!(failed.to_string().contains(text), "{failed}");
        assert_eq!(db.health().0, Health::ReadOnly);
        let refused = db.put("key", "another").unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
        assert_eq!(db.get("key").unwrap().unwrap(), b"value");

        broken.store(false, Ordering::Relaxed);
        db.resume().unwrap();
        db.put("key", "another").unwrap();
        compact(&db);
        assert_eq!(db.get("key").unwrap().unwrap(), b"another");
        assert_sound(&db);
        db.close().unwrap();
    }
}

/// A factory that panics, too; and one that asks the database does not wait for itself.
#[test]
fn a_factory_is_called_outside_of_all_locks() {
    struct Asking(Arc<Mutex<Option<Db>>>);
    impl CompactionFilterFactory for Asking {
        fn name(&self) -> &str {
            "asking"
        }
        fn create(&self, _: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
            let db = self.0.lock().unwrap().clone().unwrap();
            assert_eq!(db.get("key").unwrap().unwrap(), b"value");
            assert_eq!(db.property("sateen.num-running-compactions").unwrap(), "1");
            None
        }
    }
    let place = Arc::new(Mutex::new(None));
    let db = open(&MemVfs::new(), with(Filtering::new(Asking(place.clone()))));
    *place.lock().unwrap() = Some(db.clone());
    db.put("key", "value").unwrap();
    compact(&db);
    place.lock().unwrap().take();
}

/// With values in the log, hot keys in memory and threads, under load.
#[test]
fn filtering_goes_on_beside_writers() {
    for profile in ["sateen", "triad", "triad-silk", "silk", "pebblesdb"] {
        let mut options = small(profile, 8 << 10);
        options.background_threads = 3;
        options.column_family.compaction_filter = Some(by_mark());
        let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
        let mut last = std::collections::BTreeMap::new();
        for nth in 0..20_000_u32 {
            let key = format!("key{:04}", nth.wrapping_mul(2_654_435_761) % 1_500);
            db.put(&key, value(nth)).unwrap();
            last.insert(key.into_bytes(), value(nth));
        }
        let family = db.default_column_family();
        for (key, value) in read_all(&family, &ReadOptions::default()) {
            let put = &last[&key];
            assert!(value == *put || Some(&value) == filtered(put).as_ref(), "{profile}");
        }
        compact(&db);
        let found = read_all(&family, &ReadOptions::default());
        for (key, put) in &last {
            let (found, expected) = (found.get(key), filtered(put));
            let text =
                |value: Option<&Vec<u8>>| value.map(|value| value.escape_ascii().to_string());
            let key = key.escape_ascii();
            assert_eq!(text(found), text(expected.as_ref()), "{profile}, {key}");
        }
        assert_sound(&db);
        db.close().unwrap();
    }
}

#[test]
fn column_families_have_filters_of_their_own() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.create_missing_column_families = true;
    let own =
        ColumnFamilyOptions { compaction_filter: Some(by_mark()), ..options.column_family.clone() };
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &[("filtered", own)]).unwrap();
    let family = db.column_family("filtered").unwrap();
    db.put("key", "-").unwrap();
    family.put("key", "-").unwrap();
    compact(&db);
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    assert!(db.get("key").unwrap().is_some());
    assert_eq!(family.get("key").unwrap(), None);
}
