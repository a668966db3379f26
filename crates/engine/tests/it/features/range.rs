//! Rust iterators show what a `BTreeMap` shows: any bounds, either end, both ends in turn, now and
//! at a snapshot, whatever of it is in memtables and tables, and in the order of any comparator.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use proptest::prelude::*;
use sateen::vfs::MemVfs;
use sateen::{
    Bytes, ColumnFamily, ColumnFamilyOptions, CompactRangeOptions, Comparator, Cursor, Db, Error,
    Iter, Options, ReadOptions, Reading, Snapshot, WriteBatch, WriteOptions, Writing,
};

use crate::support::common::{as_vfs, tiny};

/// What the model has in a range.
type Entries = VecDeque<(Vec<u8>, Vec<u8>)>;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The families of the test: in the order of bytes, in the reverse order, and divided in regions.
const FAMILIES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Put(usize, Vec<u8>, Vec<u8>),
    Delete(usize, Vec<u8>),
    DeleteRange(usize, Vec<u8>, Vec<u8>),
    /// A batch that writes one key to all families.
    Batch(Vec<u8>, Vec<u8>),
    Flush(usize),
    Compact(usize),
    Snapshot,
    /// Opens an iterator; it is read to its end later, after all steps.
    Open(Query),
    Check(Query),
}

#[derive(Clone, Debug)]
struct Query {
    family: usize,
    what: What,
    at_snapshot: bool,
    /// From which end each entry is taken; forwards once these are used up.
    from_back: Vec<bool>,
}

#[derive(Clone, Debug)]
enum What {
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, b'a', b'b', 0xff]), 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        2 => key().prop_map(Bound::Included),
        2 => key().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

fn query() -> impl Strategy<Value = Query> {
    let what = prop_oneof![
        4 => (bound(), bound()).prop_map(|(lower, upper)| What::Range(lower, upper)),
        1 => key().prop_map(What::Prefix),
    ];
    let from_back = prop_oneof![
        Just(vec![]),
        Just(vec![true; 200]),
        prop::collection::vec(any::<bool>(), 0..60),
    ];
    (0..FAMILIES, what, any::<bool>(), from_back).prop_map(
        |(family, what, at_snapshot, from_back)| Query { family, what, at_snapshot, from_back },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let family = 0..FAMILIES;
    // Long values need memory of their own, and fill memtables.
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        any::<u8>().prop_map(|byte| vec![byte; 600]),
    ];
    prop_oneof![
        12 => (family.clone(), key(), value.clone()).prop_map(|(f, k, v)| Step::Put(f, k, v)),
        4 => (family.clone(), key()).prop_map(|(f, k)| Step::Delete(f, k)),
        1 => (family.clone(), key(), key()).prop_map(|(f, a, b)| Step::DeleteRange(f, a, b)),
        2 => (key(), value).prop_map(|(k, v)| Step::Batch(k, v)),
        2 => family.clone().prop_map(Step::Flush),
        1 => family.prop_map(Step::Compact),
        1 => Just(Step::Snapshot),
        2 => query().prop_map(Step::Open),
        5 => query().prop_map(Step::Check),
    ]
}

/// The order of keys of a family.
fn compare(family: usize, a: &[u8], b: &[u8]) -> Ordering {
    if family == 1 { b.cmp(a) } else { a.cmp(b) }
}

fn options_of(family: usize) -> ColumnFamilyOptions {
    let mut options = tiny();
    if family == 1 {
        options.column_family.comparator = Comparator::reverse_bytewise();
    }
    if family == 2 {
        options.column_family.regions = sateen::Regions::at(["b", "b\x01"]).unwrap();
    }
    options.column_family
}

/// What is shown of `contents`, in order; `None` if the range is refused.
fn expected(contents: &Contents, query: &Query) -> Option<Entries> {
    let order = |a: &[u8], b: &[u8]| compare(query.family, a, b);
    let shows = |key: &Vec<u8>| match &query.what {
        What::Prefix(prefix) => key.starts_with(prefix),
        What::Range(lower, upper) => {
            let from = match lower {
                Bound::Included(lower) => order(key, lower).is_ge(),
                Bound::Excluded(lower) => order(key, lower).is_gt(),
                Bound::Unbounded => true,
            };
            let to = match upper {
                Bound::Included(upper) => order(key, upper).is_le(),
                Bound::Excluded(upper) => order(key, upper).is_lt(),
                Bound::Unbounded => true,
            };
            from && to
        }
    };
    if let What::Range(
        Bound::Included(lower) | Bound::Excluded(lower),
        Bound::Included(upper) | Bound::Excluded(upper),
    ) = &query.what
        && order(lower, upper).is_gt()
    {
        return None;
    }
    if matches!(query.what, What::Prefix(_)) && query.family == 1 {
        return None;
    }
    let shown = contents.iter().filter(|(key, _)| shows(key));
    let mut shown: Vec<_> = shown.map(|(key, value)| (key.clone(), value.clone())).collect();
    shown.sort_by(|(a, _), (b, _)| order(a, b));
    Some(shown.into())
}

/// Takes all entries from the ends that the query names.
fn assert_shows(mut iter: Iter, query: &Query, mut expected: Entries) -> Result<(), TestCaseError> {
    for nth in 0.. {
        let from_back = query.from_back.get(nth).copied().unwrap_or(false);
        let (shown, wanted) = if from_back {
            (iter.next_back(), expected.pop_back())
        } else {
            (iter.next(), expected.pop_front())
        };
        let shown = shown.map(|entry| {
            let (key, value) = entry.unwrap();
            (Vec::from(key), Vec::from(value))
        });
        prop_assert_eq!(&shown, &wanted, "entry {}", nth);
        if shown.is_none() {
            break;
        }
    }
    prop_assert!(iter.next().is_none() && iter.next_back().is_none() && iter.next().is_none());
    Ok(())
}

struct World {
    db: Db,
    families: Vec<ColumnFamily>,
    contents: Vec<Contents>,
    snapshot: Option<(Snapshot, Vec<Contents>)>,
}

impl World {
    fn ask(&self, query: &Query) -> (sateen::Result<Iter>, Option<Entries>) {
        let family = &self.families[query.family];
        let (reading, contents) = match &self.snapshot {
            Some((snapshot, contents)) if query.at_snapshot => (family.at(snapshot), contents),
            _ => (family.reading(ReadOptions::default()), &self.contents),
        };
        let iter = match &query.what {
            What::Range(lower, upper) => reading.range((lower.as_ref(), upper.as_ref())),
            What::Prefix(prefix) => reading.prefix(prefix),
        };
        (iter, expected(&contents[query.family], query))
    }

    fn take(&mut self, step: &Step) -> Result<Option<(Iter, Query, Entries)>, TestCaseError> {
        match step {
            Step::Put(family, key, value) => {
                self.families[*family].put(key, value).unwrap();
                self.contents[*family].insert(key.clone(), value.clone());
            }
            Step::Delete(family, key) => {
                self.families[*family].delete(key).unwrap();
                self.contents[*family].remove(key);
            }
            Step::DeleteRange(family, begin, end) => {
                let done = self.families[*family].delete_range(begin, end);
                if compare(*family, begin, end).is_gt() {
                    prop_assert!(matches!(done, Err(Error::InvalidArgument(_))));
                } else {
                    done.unwrap();
                    self.contents[*family].retain(|key, _| {
                        compare(*family, key, begin).is_lt() || compare(*family, key, end).is_ge()
                    });
                }
            }
            Step::Batch(key, value) => {
                let mut batch = WriteBatch::new();
                for (family, contents) in self.families.iter().zip(&mut self.contents) {
                    batch.to(family).put(key, value).unwrap();
                    contents.insert(key.clone(), value.clone());
                }
                self.db.write(&batch, &WriteOptions::default()).unwrap();
            }
            Step::Flush(family) => self.families[*family].flush().unwrap(),
            Step::Compact(family) => {
                let options = CompactRangeOptions::default();
                self.families[*family].compact_range(None, None, &options).unwrap();
            }
            Step::Snapshot => self.snapshot = Some((self.db.snapshot(), self.contents.clone())),
            Step::Open(query) => {
                if let (Ok(iter), Some(expected)) = self.ask(query) {
                    return Ok(Some((iter, query.clone(), expected)));
                }
            }
            Step::Check(query) => match self.ask(query) {
                (Ok(iter), Some(expected)) => assert_shows(iter, query, expected)?,
                (refused, expected) => {
                    prop_assert!(matches!(refused, Err(Error::InvalidArgument(_))));
                    prop_assert_eq!(expected, None);
                }
            },
        }
        Ok(None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn iterators_show_what_a_btreemap_shows(steps in prop::collection::vec(step(), 1..150)) {
        let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap();
        let families = (0..FAMILIES).map(|family| {
            db.create_column_family(&format!("family {family}"), options_of(family)).unwrap()
        });
        let families: Vec<_> = families.collect();
        let contents = vec![Contents::new(); FAMILIES];
        let mut world = World { db, families, contents, snapshot: None };
        let mut open = Vec::new();
        for step in &steps {
            open.extend(world.take(step)?);
        }
        for (iter, query, expected) in open {
            assert_shows(iter, &query, expected)?;
        }
    }
}

fn memory() -> Db {
    Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap()
}

fn keys(iter: Iter) -> Vec<Bytes> {
    iter.map(|entry| entry.unwrap().0).collect()
}

#[test]
fn an_iterator_ends_after_its_first_error() {
    let db = memory();
    for key in 0..20_u8 {
        db.put([key], "").unwrap();
    }
    for key in 3..19 {
        db.delete([key]).unwrap();
    }
    let strict = db.reading(ReadOptions { skipped_max: 4, ..ReadOptions::default() });
    let mut iter = strict.iter().unwrap();
    assert_eq!(
        iter.by_ref().take(3).map(|entry| entry.unwrap().0[0]).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(matches!(iter.next(), Some(Err(Error::TooManySkipped(4)))));
    assert!(iter.next().is_none() && iter.next_back().is_none());

    let mut iter = strict.iter().unwrap();
    assert_eq!(iter.next_back().unwrap().unwrap().0, [19]);
    assert!(iter.next_back().unwrap().is_err());
    assert!(iter.next().is_none() && iter.next_back().is_none());
    assert!(strict.iter().unwrap().collect::<sateen::Result<Vec<_>>>().is_err());
}

#[test]
fn an_iterator_goes_on_after_its_family_is_dropped_and_its_database_closed() {
    let db = memory();
    let loans = db.create_column_family("loans", ColumnFamilyOptions::default()).unwrap();
    for key in ["a", "b", "c"] {
        loans.put(key, key).unwrap();
    }
    let mut iter = loans.range("a"..).unwrap();
    db.drop_column_family(&loans).unwrap();
    assert!(matches!(loans.range(..), Err(Error::NoSuchColumnFamily(_))));
    assert!(matches!(loans.prefix("a"), Err(Error::NoSuchColumnFamily(_))));
    assert!(matches!(loans.put("a", ""), Err(Error::NoSuchColumnFamily(_))));
    assert!(matches!(loans.get("a"), Err(Error::NoSuchColumnFamily(_))));
    assert_eq!(iter.next().unwrap().unwrap().0, b"a");
    db.close().unwrap();
    assert!(matches!(db.range(..), Err(Error::Closed)));
    assert_eq!(keys(iter), [b"b", b"c"]);
}

#[test]
fn bounds_of_options_are_a_cursors() {
    let db = memory();
    let refused = [
        ReadOptions { lower_bound: Some(b"a".to_vec()), ..ReadOptions::default() },
        ReadOptions { upper_bound: Some(b"a".to_vec()), ..ReadOptions::default() },
        ReadOptions { prefix: Some(b"a".to_vec()), ..ReadOptions::default() },
        ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() },
    ];
    for options in refused {
        let reading = db.reading(options);
        assert!(matches!(reading.range(..), Err(Error::InvalidArgument(_))));
        assert!(matches!(reading.prefix("a"), Err(Error::InvalidArgument(_))));
        assert!(reading.cursor().is_ok());
    }
}

#[test]
fn the_longest_key_is_a_bound_like_any_other() {
    let db = memory();
    let longest = vec![0xff; sateen::KEY_BYTES_MAX];
    db.put(&longest, "").unwrap();
    db.put("a", "").unwrap();
    assert_eq!(keys(db.range(..=&longest).unwrap()).len(), 2);
    assert_eq!(keys(db.range(..&longest).unwrap()), [b"a"]);
    assert_eq!(keys(db.range(&longest..).unwrap()), [&longest]);
    let above = (Bound::Excluded(&longest), Bound::Unbounded);
    assert!(db.range(above).unwrap().next_back().is_none());
}

#[test]
fn a_handle_keeps_the_database_open() {
    let vfs = MemVfs::new();
    let open = || Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]);
    let family = open().unwrap().default_column_family();
    family.put("fig", "1").unwrap();
    assert!(matches!(open(), Err(Error::Locked { .. })));
    drop(family);
    assert_eq!(open().unwrap().get("fig").unwrap().as_deref(), Some(&b"1"[..]));
}

/// What the documentation says of threads.
#[test]
fn handles_may_be_sent_to_and_used_by_all_threads() {
    fn is_send_and_sync<T: Send + Sync + 'static>() {}
    is_send_and_sync::<Db>();
    is_send_and_sync::<ColumnFamily>();
    is_send_and_sync::<Snapshot>();
    is_send_and_sync::<WriteBatch>();
    is_send_and_sync::<Iter>();
    is_send_and_sync::<Cursor>();
    is_send_and_sync::<Bytes>();
    is_send_and_sync::<sateen::PinnedSlice>();
    is_send_and_sync::<Reading<'static>>();
    is_send_and_sync::<Writing<'static>>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<ReadOptions>();
    is_send_and_sync::<WriteOptions>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<sateen::Updates>();
}
