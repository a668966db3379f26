//! Stores the entries of the WALs in tables at open, so that no old WAL is needed.
//!
//! 1. [`Opening::store_logs`] replays the WALs. When a memtable is full, `write_full` writes it to
//!    a table, which nothing names yet.
//! 2. After the replay, it writes the remaining memtables.
//! 3. [`Opening::install_replayed`] creates the next WAL, and installs the tables of all column
//!    families with one edit. The edit also says that the old WALs are not needed.
//! 4. On a failure, `remove_written` removes the tables.
//!
//! What must stay true: the tables of all column families become current with one edit. The bytes
//! read from the WALs need not be durable: after a kill they are only in the page cache, and after
//! a failed sync no later sync can be believed. So after a power failure either all replayed
//! entries count, or the WALs are replayed again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use sateen_control::compaction::Stripes;
use sateen_control::version::{AddedTable, VersionEdit};
use sateen_control::{Epoch, Instant, LogNumber};
use sateen_store::base::error::Result;
use sateen_store::files::{FileName, table_file_name};
use sateen_store::vfs::{IoClass, Vfs};
use sateen_store::wal::{KeptLog, WalWriter};

use super::Opening;
use crate::background::flush::job::FlushJob;
use crate::background::output::OutputContext;
use crate::tree::families::{ColumnFamilyData, Sealed};

impl Opening {
    /// Replays the WALs and writes their entries to tables, which nothing names yet.
    pub(super) fn store_logs(&mut self) -> Result<()> {
        let stored = self.replay().and_then(|()| self.write_memtables(|_| true));
        if stored.is_err() {
            self.remove_written();
        }
        stored
    }

    /// Writes the memtables that are full during the replay.
    pub(super) fn write_full(&mut self) -> Result<()> {
        self.write_memtables(|data| {
            data.active_memtable().used_bytes() >= data.memtable_bytes_max()
        })
    }

    /// Writes the memtables of the families that `which` selects, and collects their edits.
    fn write_memtables(&mut self, which: impl Fn(&ColumnFamilyData) -> bool) -> Result<()> {
        let families: Vec<_> = self.families.values().filter(|data| which(data)).cloned().collect();
        for data in families.iter().filter(|data| !data.active_memtable().is_empty()) {
            let edit = self.write_memtable(data)?;
            let of = self.replayed_edits.entry(data.id()).or_default();
            of.column_family = data.id();
            // Each memtable becomes a run of its own, newer than those before it.
            let runs: BTreeSet<_> = of.added.iter().map(|added| added.epoch).collect();
            let epoch = Epoch::at_install(u32::try_from(runs.len()).unwrap_or(u32::MAX));
            of.added.extend(edit.added.into_iter().map(|added| AddedTable { epoch, ..added }));
            of.range_tombstones.extend(edit.range_tombstones);
            of.retired_ranges.extend(edit.retired_ranges);
            of.flushed_seqno = of.flushed_seqno.max(edit.flushed_seqno);
        }
        Ok(())
    }

    /// Writes the active memtable of `data` to tables. Returns the edit that makes them current.
    fn write_memtable(&self, data: &Arc<ColumnFamilyData>) -> Result<VersionEdit> {
        let memtable = data.take_active(data.new_memtable());
        // Not the newest sequence number in the manifest: entries behind this one were not replayed
        // yet.
        let sealed = Sealed { memtable, last_seqno: self.replayed, log: LogNumber(0) };
        let family_options = data.options();
        let context = OutputContext {
            vfs: self.vfs.clone(),
            directory: self.options.table_directory(&family_options, 0, &self.directory),
            db_uid: self.versions.db_uid(),
            options: self.options.clone(),
            compression: family_options.compression_of(0),
            family_options,
            family: data.id(),
            level: 0,
            class: IoClass::Flush,
            spare_files: None,
            images: None,
        };
        let (stripes, snapshots) = (Stripes::default(), vec![self.last_seqno]);
        let mut job = FlushJob::new(data.clone(), vec![sealed], &stripes, snapshots, context);
        job.run(&self.versions.counters).inspect_err(|_| job.abandon())
    }

    /// Creates the next WAL and makes the written tables current with one edit. From then on no
    /// older WAL is needed, except those that are `kept` for readers.
    pub(super) fn install_replayed(&mut self, kept: &[KeptLog]) -> Result<WalWriter> {
        let wal = match self.first_wal(kept) {
            Ok(wal) => wal,
            Err(error) => {
                self.remove_written();
                return Err(error);
            }
        };
        let log = wal.number();
        let mut written = std::mem::take(&mut self.replayed_edits);
        self.install_edits(log, |data| written.remove(&data.id()).unwrap_or_default())?;
        Ok(wal)
    }

    /// Installs one edit for each column family, each with `log` as the oldest WAL that is needed.
    fn install_edits(
        &self,
        log: LogNumber,
        mut edit: impl FnMut(&ColumnFamilyData) -> VersionEdit,
    ) -> Result<()> {
        let edits = self.families.values().map(|data| {
            let (column_family, log_number) = (data.id(), Some(log));
            (VersionEdit { column_family, log_number, ..edit(data) }, 0)
        });
        let edits = edits.collect();
        self.versions.install_together(edits, self.last_seqno, &self.reclaimer).map(drop)
    }

    /// Removes tables that were written and will not be named, because the next open needs their
    /// space on a full disk. Tables of an edit that may be in the manifest stay.
    pub(super) fn remove_written(&mut self) {
        let written = std::mem::take(&mut self.replayed_edits);
        let added = written.values().flat_map(|edit| &edit.added);
        let files: BTreeSet<_> = added.flat_map(|added| added.table.files()).collect();
        for file in files {
            let _orphan = self.vfs.remove(&table_file_name(&self.directory, file));
        }
    }

    /// Removes files that nothing names: manifests, unfinished tables and temporary files. What
    /// cannot be removed now is tried at the next open. Tables stay while the lease of a reader
    /// needs them.
    pub(super) fn remove_orphans(&mut self) {
        let is_table = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
            matches!(name, Some(FileName::Table(_)))
        };
        let (tables, others): (Vec<_>, Vec<_>) = self.orphans.drain(..).partition(is_table);
        for path in others {
            let _orphan = self.vfs.remove(&path);
        }
        self.reclaimer.look_at_leases(Instant::default());
        self.reclaimer.take_orphans(tables);
    }
}
