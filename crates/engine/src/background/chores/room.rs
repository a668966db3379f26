//! Space on the device: the space reserved for the next WAL, and the free space that a database
//! needs before it leaves the degraded state after a full disk.

use std::path::{Path, PathBuf};

use sateen_store::base::error::{Error, Result};
use sateen_store::vfs::Vfs;
use sateen_store::wal;

use super::Chores;
use crate::admission::space::SpaceManager;

/// Free bytes that always suffice for a new attempt to write.
const ENOUGH_BYTES: u64 = 64 << 20;
/// The part of the file system that suffices, too, because a small one never has [`ENOUGH_BYTES`]
/// free.
const ENOUGH_PART: u64 = 16;

impl Chores {
    /// Reserves as much space for the next WAL as the active one has taken.
    pub(crate) fn reserve_for_next_wal(&self) {
        let Some((written, next)) = self.writes.pipeline.successor() else { return };
        let most = self.env.options.load().wal_preallocation();
        if let Some(bytes) = wal::space::wanted(written, next.reserved_bytes(), most) {
            wal::space::reserve(self.env.vfs.as_ref(), &next, bytes);
        }
    }

    /// Returns true if there is enough free space for a new attempt to write where there was none:
    /// two memtables, or less on a small file system. An attempt that finds too little is repeated
    /// later.
    pub(crate) fn has_room_again(&self) -> Result<bool> {
        let directory = &self.full_directory();
        let options = self.env.options.load();
        if options.space_manager.as_ref().is_some_and(SpaceManager::is_reached) {
            return Ok(false);
        }
        let failed = |error| Error::io("statfs", directory, error);
        let total = self.env.vfs.total_space(directory).map_err(failed)?;
        let free = self.env.vfs.free_space(directory).map_err(failed)?;
        let two_memtables = options.column_family.memtable_bytes.saturating_mul(2);
        let enough = two_memtables.min(ENOUGH_BYTES).min(total / ENOUGH_PART);
        Ok(free >= enough)
    }

    /// Returns the directory in which a write found no space, if that is known, and otherwise the
    /// database's own.
    fn full_directory(&self) -> PathBuf {
        let cause = self.env.health.cause();
        let failed = cause.as_deref().and_then(|cause| match cause {
            Error::Io { path, .. } => path.parent().map(Path::to_owned),
            _ => None,
        });
        let known = |directory: &PathBuf| {
            self.env.paths.others().contains(directory) || *directory == self.env.wal_directory()
        };
        failed.filter(known).unwrap_or_else(|| self.env.directory.clone())
    }
}
