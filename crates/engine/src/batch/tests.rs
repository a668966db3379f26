//! A batch holds exactly the writes that were put in, within the limits.

use proptest::prelude::*;

use sateen_store::batch::BatchError;

use super::*;

type Write = (u32, Vec<u8>, Option<Vec<u8>>);

fn write() -> impl Strategy<Value = Write> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    (prop_oneof![Just(0), any::<u32>()], bytes(), prop::option::of(bytes()))
}

fn add(batch: &mut WriteBatch, (column_family, key, value): &Write) {
    let id = ColumnFamilyId(*column_family);
    match value {
        Some(value) => batch.put_in(id, key, value).unwrap(),
        None => batch.delete_in(id, key).unwrap(),
    }
}

fn writes(batch: &WriteBatch) -> Vec<Write> {
    batch
        .iter()
        .map(|entry| {
            let value = (entry.kind == ValueKind::Put).then(|| entry.value.to_vec());
            (entry.column_family.0, entry.key.to_vec(), value)
        })
        .collect()
}

#[test]
fn keys_and_values_up_to_their_limits_are_taken_and_beyond_are_refused_by_name_and_size() {
    let mut batch = WriteBatch::with_value_bytes_max(100);
    batch.put(vec![1; KEY_BYTES_MAX], [2; 100]).unwrap();
    let before = batch.clone();
    for (refused, named, size) in [
        (batch.put(vec![1; KEY_BYTES_MAX + 1], b""), "key", "65536"),
        (batch.delete(vec![1; KEY_BYTES_MAX + 1]), "key", "65536"),
        (batch.put(b"", [2; 101]), "value", "101"),
    ] {
        let Err(Error::InvalidArgument(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains(named) && text.contains(size) && text.contains("limit"), "{text}");
    }
    assert_eq!((batch.count(), &batch), (1, &before), "a refused write leaves no trace");
    let mut strict = WriteBatch::with_value_bytes_max(99);
    assert!(strict.append(&batch).is_err() && strict.is_empty());
    assert_eq!(batch.value_bytes_largest(), 100);
}

#[test]
fn the_room_of_a_batch_is_checked_before_anything_is_written() {
    let batch = WriteBatch::new();
    assert!(batch.check_room(BATCH_BYTES_MAX).is_ok());
    let Err(Error::InvalidArgument(text)) = batch.check_room(BATCH_BYTES_MAX + 1) else {
        panic!("a batch beyond its limit was accepted")
    };
    assert!(text.contains("a batch of 4294963200 bytes"), "{text}");
    assert!(batch.check_room(usize::MAX).is_err());
}

#[test]
fn what_is_no_entry_is_refused_with_its_place() {
    let error = WriteBatch::from_data(vec![1, 0, 0, 0, 5, 0, 0]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("unknown kind") && text.contains("offset 4"), "{text}");
    assert_eq!(BatchReader::new(&[5, 0, 0]).next(), Err(BatchError::UnknownKind));
}

#[test]
fn the_end_of_a_range_is_a_key() {
    let mut batch = WriteBatch::new();
    batch.delete_range(b"a", b"m").unwrap();
    let entry = batch.iter().next().unwrap();
    assert_eq!(
        (entry.kind, entry.key, entry.value),
        (ValueKind::RangeDelete, &b"a"[..], &b"m"[..])
    );
    assert_eq!(batch.value_bytes_largest(), 0);
    assert!(batch.delete_range(b"a", vec![b'z'; KEY_BYTES_MAX + 1]).is_err());
    let mut data = vec![4, 0, 0];
    coding::put_slice(&mut data, &vec![7; KEY_BYTES_MAX + 1]);
    assert_eq!(BatchReader::new(&data).next(), Err(BatchError::TooLarge));
}

#[test]
fn a_key_beyond_the_limit_is_refused_when_read_too() {
    let mut data = vec![0, 0];
    coding::put_slice(&mut data, &vec![7; KEY_BYTES_MAX + 1]);
    assert_eq!(BatchReader::new(&data).next(), Err(BatchError::TooLarge));
}

#[test]
fn save_points_nest_and_are_used_up() {
    let mut batch = WriteBatch::new();
    assert!(batch.rollback_to_save_point().is_err() && batch.pop_save_point().is_err());
    batch.put(b"1", b"one").unwrap();
    batch.set_save_point();
    batch.put(b"2", b"four").unwrap();
    batch.set_save_point();
    batch.delete(b"3").unwrap();
    batch.rollback_to_save_point().unwrap();
    assert_eq!((batch.count(), batch.value_bytes_largest()), (2, 4));
    batch.set_save_point();
    batch.delete(b"4").unwrap();
    batch.pop_save_point().unwrap();
    assert_eq!(batch.count(), 3);
    batch.rollback_to_save_point().unwrap();
    assert_eq!((batch.count(), batch.value_bytes_largest()), (1, 3));
    assert!(batch.rollback_to_save_point().is_err());
    batch.set_save_point();
    batch.clear();
    assert!(batch.pop_save_point().is_err(), "clear forgets save points");
    assert!(batch.is_empty() && batch.len_bytes() == 0);
}

/// Returns what [`WriteBatch::items`] shows: the keys of writes, and log data.
fn items(batch: &WriteBatch) -> Vec<(bool, Vec<u8>)> {
    let shown = |item| match item {
        BatchItem::Write(entry) => (true, entry.key.to_vec()),
        BatchItem::LogData(data) => (false, data.to_vec()),
    };
    batch.items().map(shown).collect()
}

#[test]
fn log_data_is_shown_between_the_writes_and_is_none() {
    let mut batch = WriteBatch::with_value_bytes_max(100);
    batch.put_log_data("first").unwrap();
    assert!(batch.is_empty() && batch.count() == 0 && batch.len_bytes() > 0);
    assert_eq!(batch.value_bytes_largest(), 5);
    batch.put("a", "1").unwrap();
    batch.put_log_data("").unwrap();
    batch.set_save_point();
    batch.put_log_data([7; 100]).unwrap();
    batch.delete("b").unwrap();
    assert_eq!((batch.count(), batch.value_bytes_largest()), (2, 100));
    assert_eq!(batch.iter().size_hint(), (2, Some(2)));
    let keys: Vec<_> = batch.iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [b"a", b"b"]);

    let of = |write: bool, what: &[u8]| (write, what.to_vec());
    let (first, empty, long) = (of(false, b"first"), of(false, b""), of(false, &[7; 100]));
    let (a, b) = (of(true, b"a"), of(true, b"b"));
    let all = vec![first.clone(), a.clone(), empty.clone(), long, b];
    assert_eq!(items(&batch), all);
    let back = WriteBatch::from_data(batch.data().to_vec()).unwrap();
    assert_eq!((back.count(), back.value_bytes_largest(), &back), (2, 100, &batch));
    let to_two = |_: &BatchEntry<'_>| vec![ColumnFamilyId(3), ColumnFamilyId(4)];
    let moved = batch.moved(to_two).unwrap();
    assert_eq!(moved.count(), 4);
    assert_eq!(moved.items().filter(|item| matches!(item, BatchItem::LogData(_))).count(), 3);
    let mut twice = batch.clone();
    twice.append(&batch).unwrap();
    assert_eq!((twice.count(), items(&twice)), (4, [&all[..], &all].concat()));
    let mut again = WriteBatch::new();
    batch.items().for_each(|item| again.add_item(&item).unwrap());
    assert_eq!(again, batch);

    batch.rollback_to_save_point().unwrap();
    assert_eq!((items(&batch), batch.value_bytes_largest()), (vec![first, a, empty], 5));
    let before = batch.clone();
    let Err(Error::InvalidArgument(text)) = batch.put_log_data([0; 101]) else { panic!() };
    assert!(text.contains("log data of 101 bytes"), "{text}");
    assert_eq!(batch, before, "what is refused leaves no trace");
    assert_ne!(batch, WriteBatch::new());
    batch.clear();
    assert!(batch.items().next().is_none());
}

#[test]
fn log_data_that_ends_early_is_refused_with_its_place() {
    let mut batch = WriteBatch::new();
    batch.delete("k").unwrap();
    let begins = batch.len_bytes();
    batch.put_log_data("note").unwrap();
    for length in begins + 1..batch.len_bytes() {
        let error = WriteBatch::from_data(batch.data()[..length].to_vec()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("truncated") && text.contains(&format!("offset {begins}")), "{text}");
        let mut reader = BatchReader::new(&batch.data()[begins..length]);
        assert_eq!(reader.next(), Err(BatchError::Truncated));
    }
    let mut reader = BatchReader::new(&batch.data()[begins..]);
    assert_eq!((reader.next(), reader.remaining()), (Ok(None), 0));
    // Longer than anything in a batch.
    let mut reader = BatchReader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(reader.next_item(), Err(BatchError::Truncated));
}

proptest! {
    #[test]
    fn any_writes_come_back(first in prop::collection::vec(write(), 0..20),
                            second in prop::collection::vec(write(), 0..20)) {
        let (mut batch, mut other) = (WriteBatch::new(), WriteBatch::with_capacity(100));
        first.iter().for_each(|write| add(&mut batch, write));
        second.iter().for_each(|write| add(&mut other, write));
        prop_assert_eq!(&writes(&batch), &first);
        batch.append(&other).unwrap();
        let all: Vec<_> = first.into_iter().chain(second).collect();
        prop_assert_eq!(&writes(&batch), &all);
        prop_assert_eq!(usize::try_from(batch.count()).unwrap(), all.len());
        let back = WriteBatch::from_data(batch.data().to_vec()).unwrap();
        prop_assert_eq!(back.count(), batch.count());
        prop_assert_eq!(back.value_bytes_largest(), batch.value_bytes_largest());
        prop_assert_eq!(back, batch);
    }

    #[test]
    fn a_cut_batch_is_refused_or_ends_between_two_writes(
        all in prop::collection::vec(write(), 1..10),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut batch = WriteBatch::new();
        all.iter().for_each(|write| add(&mut batch, write));
        let cut = cut.index(batch.len_bytes());
        if let Ok(prefix) = WriteBatch::from_data(batch.data()[..cut].to_vec()) {
            prop_assert!(all.starts_with(&writes(&prefix)));
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        data in prop::collection::vec(prop_oneof![6 => 0u8..6, 1 => Just(0xff)], 0..200),
    ) {
        fuzz(&data);
    }
}
