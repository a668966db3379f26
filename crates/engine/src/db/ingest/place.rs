//! Refuses files that overlap existing keys, if the options do not allow that.

use std::sync::Arc;

use sateen_store::base::error::{Error, Result};

use super::{External, IngestOptions, Ingestion};
use crate::db::sources::has_entries;
use crate::tree::families::ColumnFamilyData;

impl Ingestion<'_> {
    /// Checks the conditions of `allow_global_seqno` and `fail_if_not_bottommost_level`.
    pub(super) fn check_place(
        &self,
        family: &Arc<ColumnFamilyData>,
        layers: &[Vec<&External>],
        options: &IngestOptions,
    ) -> Result<()> {
        if options.allow_global_seqno && !options.fail_if_not_bottommost_level {
            return Ok(());
        }
        let overlapping = layers.get(1).and_then(|layer| layer.first());
        if let Some(file) = overlapping {
            refuse(file, options, "it overlaps another of the files")?;
        }
        if !options.allow_global_seqno && self.core.writes.snapshots.count() > 0 {
            return Err(needs_seqno("a snapshot is held, and it must not see the files"));
        }
        for file in layers.iter().flatten() {
            for tree in family.trees() {
                let pinned = tree.pin_super_version();
                if has_entries(self.core, &pinned, &file.extent.smallest, &file.extent.largest)? {
                    refuse(file, options, "the database has entries in its range")?;
                }
                let (from, to) = (file.extent.smallest.bytes(), file.extent.largest.bytes());
                let last = pinned.version.levels().last();
                let in_way = last.is_some_and(|level| {
                    level.runs().iter().any(|run| !run.overlap(from, to).is_empty())
                });
                if options.fail_if_not_bottommost_level && in_way {
                    return Err(not_bottommost(file, "a table of that level spans its range"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the error for a file that overlaps something.
fn refuse(file: &External, options: &IngestOptions, reason: &'static str) -> Result<()> {
    if options.allow_global_seqno {
        return Err(not_bottommost(file, reason));
    }
    Err(needs_seqno(&format!("{}: {reason}", file.path.display())))
}

fn not_bottommost(file: &External, reason: &'static str) -> Error {
    Error::NotBottommost { path: file.path.clone(), reason }
}

fn needs_seqno(reason: &str) -> Error {
    let text = format!("the files need a sequence number, and allow_global_seqno is off: {reason}");
    Error::InvalidArgument(text)
}
