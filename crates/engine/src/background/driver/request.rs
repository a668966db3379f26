//! Requests to control to flush column families.

use std::sync::Arc;

use sateen_control::{ColumnFamilyId, Event, SeqNo};

use super::Driver;
use crate::tree::families::ColumnFamilyData;

impl Driver {
    /// Seals the memtables of `families`, or of all column families with `atomic_flush`, and asks
    /// control to flush them. Returns the column families and the newest sequence number in the
    /// memtables.
    pub(crate) fn request_flush(
        &self,
        families: &[Arc<ColumnFamilyData>],
    ) -> (Vec<Arc<ColumnFamilyData>>, SeqNo) {
        let families = if self.env.options.load().atomic_flush {
            self.tree.families().values().cloned().collect()
        } else {
            families.to_vec()
        };
        let ids: Vec<ColumnFamilyId> = families.iter().map(|family| family.id()).collect();
        let through = self.writes.pipeline.exclusive(|stage| {
            families.iter().for_each(|family| family.store_through(stage.last_seqno()));
            self.writes.pipeline.seal(stage, &ids);
            stage.last_seqno()
        });
        let now = self.env.now();
        for family in &families {
            self.report_memtables(now, family);
            self.report(now, Event::FlushRequested { cf: family.id() });
        }
        (families, through)
    }
}
