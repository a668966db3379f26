//! Writes and batches.

use super::{Side, at};
use crate::op::{Kind, Op};

impl Side<'_> {
    /// Returns the ends of a range in the order of the comparator.
    fn range<'o>(&self, op: &'o Op) -> (&'o [u8], &'o [u8]) {
        let ordered = if self.setup.reverse { op.key >= op.end } else { op.key <= op.end };
        if ordered { (&op.key, &op.end) } else { (&op.end, &op.key) }
    }

    pub(super) fn write_one(&mut self, op: &Op) -> String {
        let (api, db, writing) = (self.api, self.db, self.writing);
        let family = self.families[op.family];
        let (key, length) = (at(&op.key), op.key.len());
        let (value, value_length) = (at(&op.value), op.value.len());
        let (from, to) = self.range(op);
        let once = format!("s{}", op.bits % 8).into_bytes();
        // SAFETY: open handles and byte strings of this length.
        unsafe {
            match op.kind {
                Kind::Put => self.told(|e| {
                    (api.put_cf)(db, writing, family, key, length, value, value_length, e);
                }),
                // A merge without an operator is refused; with a TTL the kind of the error differs.
                Kind::Merge if self.setup.filter => String::new(),
                Kind::Merge if self.setup.ttl && !self.setup.merges => String::new(),
                Kind::Merge => self.told(|e| {
                    (api.merge_cf)(db, writing, family, key, length, value, value_length, e);
                }),
                Kind::Delete => self.told(|e| {
                    (api.delete_cf)(db, writing, family, key, length, e);
                }),
                Kind::DeleteRange => self.told(|e| {
                    (api.delete_range_cf)(
                        db,
                        writing,
                        family,
                        at(from),
                        from.len(),
                        at(to),
                        to.len(),
                        e,
                    );
                }),
                Kind::PutOnce if self.once[op.family].insert(once.clone()) => self.told(|e| {
                    let (key, length) = (at(&once), once.len());
                    (api.put_cf)(db, writing, family, key, length, value, value_length, e);
                }),
                Kind::SingleDelete if self.once[op.family].remove(&once) => self.told(|e| {
                    (api.singledelete_cf)(db, writing, family, at(&once), once.len(), e);
                }),
                _ => String::new(),
            }
        }
    }

    pub(super) fn batch_of(&mut self, op: &Op) -> String {
        let (api, db, writing, batch) = (self.api, self.db, self.writing, self.batch);
        let family = self.families[op.family];
        let (key, length) = (at(&op.key), op.key.len());
        let (value, value_length) = (at(&op.value), op.value.len());
        let (from, to) = self.range(op);
        let mut said = String::new();
        let state = (&raw mut said).cast();
        // SAFETY: open handles and byte strings of this length; the state is the string.
        let answer = unsafe {
            match op.kind {
                Kind::BatchPut => {
                    (api.writebatch_put_cf)(batch, family, key, length, value, value_length);
                }
                // A batch that cannot be applied leaves RocksDB unusable.
                Kind::BatchMerge if self.setup.merges => {
                    (api.writebatch_merge_cf)(batch, family, key, length, value, value_length);
                }
                Kind::BatchDelete => (api.writebatch_delete_cf)(batch, family, key, length),
                // The key is never put, because the effect on existing keys is undefined. With a
                // TTL RocksDB loses the operation and those after it.
                Kind::BatchSingleDelete if !self.setup.ttl => {
                    (api.writebatch_singledelete_cf)(batch, family, at(b"t"), 1);
                }
                Kind::BatchDeleteRange => {
                    let (from_length, to_length) = (from.len(), to.len());
                    (api.writebatch_delete_range_cf)(
                        batch,
                        family,
                        at(from),
                        from_length,
                        at(to),
                        to_length,
                    );
                }
                Kind::BatchLogData => (api.writebatch_put_log_data)(batch, value, value_length),
                Kind::BatchClear => (api.writebatch_clear)(batch),
                Kind::BatchSave => (api.writebatch_set_save_point)(batch),
                Kind::BatchIterate => {
                    use crate::callbacks::{delete, log_data, merge, put};
                    (api.writebatch_iterate_cf)(batch, state, put, delete, merge);
                    (api.writebatch_iterate_cf_ld)(batch, state, put, delete, merge, log_data);
                }
                Kind::BatchIterateDefault => {
                    use crate::callbacks::{
                        delete_default as delete, log_data, put_default as put,
                    };
                    (api.writebatch_iterate)(batch, state, put, delete);
                    (api.writebatch_iterate_ld)(batch, state, put, delete, log_data);
                }
                Kind::BatchData => said = super::log::operations(&self.data(batch), None),
                Kind::BatchCopy => {
                    let data = self.data(batch);
                    let copy = (api.writebatch_create_from)(at(&data), data.len());
                    (api.writebatch_destroy)(std::mem::replace(&mut self.batch, copy));
                }
                _ => {}
            }
            let batch = self.batch;
            self.calls += 2;
            match op.kind {
                Kind::BatchRollback => {
                    self.told(|e| (api.writebatch_rollback_to_save_point)(batch, e))
                }
                Kind::BatchPop => self.told(|e| (api.writebatch_pop_save_point)(batch, e)),
                Kind::BatchWrite => {
                    let told = self.told(|e| (api.write)(db, writing, batch, e));
                    if op.bits & 3 != 0 {
                        (api.writebatch_clear)(batch);
                    }
                    told
                }
                _ => String::new(),
            }
        };
        // SAFETY: an open handle.
        let count = unsafe { (api.writebatch_count)(self.batch) };
        format!("{answer} {said} {count} in the batch")
    }
}
