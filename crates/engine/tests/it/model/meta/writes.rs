//! What each operation that writes does.

use std::time::Duration;

use sateen::{BATCH_BYTES_MAX, Error, KEY_BYTES_MAX, WriteBatch, WriteOptions};

use super::model::{Change, What};
use super::ops::{self, Kind};
use super::world::World;
use crate::support::common::Random;

/// A range to delete, mostly narrow, sometimes empty.
fn range(random: &mut Random) -> (Vec<u8>, What) {
    let (mut begin, mut end) = (ops::key(random), ops::key(random));
    if !random.one_in(3) {
        let first = random.below(200);
        (begin, end) = (ops::numbered(first), ops::numbered(first + random.below(30)));
    }
    if begin > end {
        std::mem::swap(&mut begin, &mut end);
    }
    (begin, What::DeleteRange(end))
}

impl World {
    pub(super) fn single(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let mut key = ops::key(random);
        let value = ops::value(random);
        let mut what = What::Put(value.clone());
        let mut options = WriteOptions::default();
        match kind {
            Kind::Delete => what = What::Delete,
            Kind::SingleDelete => what = What::SingleDelete,
            Kind::DeleteRange => (key, what) = range(random),
            Kind::Merge => what = What::Merge(value),
            Kind::MergeUnlogged => {
                options.disable_wal = true;
                what = What::Merge(value);
            }
            Kind::PutSync => options.sync = true,
            Kind::PutUnlogged => options.disable_wal = true,
            Kind::DeleteUnlogged => {
                options.disable_wal = true;
                what = What::Delete;
            }
            Kind::PutDeadline => options.deadline = Some(Duration::ZERO),
            Kind::PutLarge => {
                let length = 20_000 + random.below(80_000);
                what = What::Put(ops::bytes(random, length));
            }
            Kind::PutLongKey => key = ops::long_key(random),
            _ => {}
        }
        self.change(&family, key, what, &options);
    }

    pub(super) fn batch(&mut self, kind: Kind, random: &mut Random) {
        let mut batch = WriteBatch::new();
        let mut changes = Vec::new();
        let mut marks: Vec<usize> = Vec::new();
        let count = if kind == Kind::BatchEmpty { 0 } else { 1 + random.below(12) };
        for _ in 0..count {
            if kind == Kind::BatchSavePoints {
                match random.below(5) {
                    0 => {
                        batch.set_save_point();
                        marks.push(changes.len());
                    }
                    1 => match marks.pop() {
                        Some(mark) => {
                            batch.rollback_to_save_point().unwrap();
                            changes.truncate(mark);
                        }
                        None => assert!(batch.rollback_to_save_point().is_err()),
                    },
                    2 => assert_eq!(batch.pop_save_point().is_ok(), marks.pop().is_some()),
                    _ => {}
                }
            }
            let (family, mut key) = (self.family(random), ops::key(random));
            let what = match random.below(8) {
                0 if random.one_in(4) => {
                    let (begin, what) = range(random);
                    key = begin;
                    what
                }
                0 | 1 => What::Delete,
                2 => What::SingleDelete,
                3 | 4 => What::Merge(ops::value(random)),
                _ => What::Put(ops::value(random)),
            };
            let what = what.of(&key);
            match &what {
                What::Put(value) => batch.to(&family).put(&key, value).unwrap(),
                What::Delete => batch.to(&family).delete(&key).unwrap(),
                What::SingleDelete => batch.to(&family).single_delete(&key).unwrap(),
                What::Merge(operand) => batch.to(&family).merge(&key, operand).unwrap(),
                What::DeleteRange(end) => batch.to(&family).delete_range(&key, end).unwrap(),
            }
            changes.push(Change { family: family.id(), key, what });
            if random.one_in(8) {
                batch.put_log_data(ops::value(random)).unwrap();
            }
        }
        if kind == Kind::BatchCopied {
            let mut copy = WriteBatch::from_data(batch.data().to_vec()).unwrap();
            assert_eq!(copy, batch);
            copy.append(&batch).unwrap();
            changes.extend(changes.clone());
            batch = copy;
        }
        assert_eq!(batch.count() as usize, changes.len());
        let options = WriteOptions {
            sync: kind == Kind::BatchSync,
            disable_wal: kind == Kind::BatchUnlogged,
            ..WriteOptions::default()
        };
        self.write(changes, &options, |db| db.write(&batch, &options));
    }

    pub(super) fn many(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        let (key, first) = (ops::key(random), random.below(200));
        for number in 0..5 + random.below(20) {
            self.calls += u64::from(number > 0);
            let (key, what) = match kind {
                Kind::Overwrite => (key.clone(), What::Put(ops::value(random))),
                Kind::MergeMany => (key.clone(), What::Merge(ops::value(random))),
                Kind::Ascending => (ops::numbered(first + number), What::Put(ops::value(random))),
                _ => (ops::numbered(first + number), What::Delete),
            };
            self.change(&family, key, what, &WriteOptions::default());
        }
    }

    /// What must be refused, and leave no trace.
    pub(super) fn refused(&mut self) {
        let seqno = self.db.latest_sequence_number();
        let long = vec![b'x'; KEY_BYTES_MAX + 1];
        let is_refused =
            |result: sateen::Result<()>| assert!(matches!(result, Err(Error::InvalidArgument(_))));
        is_refused(self.db.put(&long, "value"));
        is_refused(self.db.delete(&long));
        is_refused(WriteBatch::new().put(&long, "value"));
        is_refused(self.db.delete_range("b", "a"));
        is_refused(self.db.delete_range("b", &long));
        const { assert!(BATCH_BYTES_MAX > KEY_BYTES_MAX) };
        let both = WriteOptions { sync: true, disable_wal: true, ..WriteOptions::default() };
        let result = self.db.put_cf(&self.live[0], "key", "value", &both);
        assert!(result.is_err());
        let dropped = self.db.drop_column_family(&self.live[0]);
        assert!(dropped.is_err(), "the default column family was dropped");
        assert_eq!(self.db.latest_sequence_number(), seqno);
    }
}
