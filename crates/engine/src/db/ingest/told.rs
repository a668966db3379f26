//! Calls listeners about ingested files.

use std::sync::Arc;

use super::{External, Ingestion};
use crate::events::{Announcement, IngestInfo};
use crate::live_table::LiveTable;
use crate::tree::families::ColumnFamilyData;

impl Ingestion<'_> {
    /// Calls the listeners for each of `files`.
    pub(super) fn tell_ingested(&self, family: &Arc<ColumnFamilyData>, files: &[External]) {
        if !self.core.env.events.are_heard() {
            return;
        }
        let seqno = self.core.writes.pipeline.visible_seqno().0;
        for file in files {
            let table = file.table.as_ref().map(|table| LiveTable {
                column_family: family.name().to_owned(),
                level: 0,
                file: file.path.clone(),
                offset: 0,
                size_bytes: table.properties().raw_bytes,
                smallest: file.extent.smallest.bytes().to_vec(),
                largest: file.extent.largest.bytes().to_vec(),
                smallest_seqno: seqno,
                largest_seqno: seqno,
                entries: table.properties().entries,
                deletions: table.properties().tombstones,
            });
            let info = IngestInfo {
                column_family: family.name().to_owned(),
                column_family_id: family.id().0,
                path: file.path.clone(),
                table,
                seqno,
            };
            self.core.env.events.tell(&Announcement::FileIngested(&info));
        }
    }
}
