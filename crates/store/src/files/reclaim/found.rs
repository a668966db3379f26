//! Dead parts of the files that exist at open: everything in them except the live tables.
//!
//! 1. `Reclaimer::found` notes every file and the extents of its live tables.
//! 2. [`Reclaimer::look_at_found_files`] examines some of them in each round, once no lease may
//!    need their dead tables.
//! 3. `Reclaimer::unexplained` reads the directory of a file that is longer than its live tables
//!    explain. The other tables are dead. The allocated size says whether their space was freed
//!    before.
//!
//! What must stay true: a table that is live, or was when the database was opened, is never among
//! the dead parts.

use sateen_control::{FileId, Instant};

use super::{LOOK_AGAIN_AFTER, Reclaimer, UNEXPLAINED_BYTES};
use crate::base::error::{Error, Result};
use crate::base::sync::lock;
use crate::files::compaction_file::CompactionFile;
use crate::files::leases::Round;
use crate::files::outline::HEADER_BYTES;
use crate::files::space::Extents;
use crate::files::{PAGE_BYTES, table_file_name};
use crate::vfs::OpenOptions;

impl Reclaimer {
    /// Examines up to `most` of the files that existed at open for dead tables. Returns true if
    /// more can be examined now.
    pub fn look_at_found_files(&self, most: usize, now: Instant) -> bool {
        let files = {
            let mut state = lock(&self.state);
            // Dead tables may still be read by a reader that was there before the open.
            if state.leases.is_watched() && !state.leases.frees(Round::default()) {
                return false;
            }
            if now >= state.look_again {
                // Behind the files that were not examined yet.
                let again = std::mem::take(&mut state.unread);
                state.unseen.splice(0..0, again);
            }
            let rest = state.unseen.len().saturating_sub(most);
            state.unseen.split_off(rest)
        };
        for (file, live) in files {
            let Some(punched) = lock(&self.state).accounts.punched_bytes(file) else { continue };
            let looked = self.unexplained(file, &live, punched);
            let state = &mut *lock(&self.state);
            match looked {
                Ok(None) => {}
                Ok(Some((dead, true))) => state.accounts.add_holes(file, &dead),
                Ok(Some((dead, false))) => {
                    let due = Instant::default();
                    state.accounts.add_dead(file, dead.iter(), due, self.can_punch());
                }
                // The error is reported to the next reader of the file, and may be temporary.
                Err(_) => {
                    state.unread.push((file, live));
                    state.look_again = now + LOOK_AGAIN_AFTER;
                }
            }
        }
        !lock(&self.state).unseen.is_empty()
    }

    /// Returns when files that could not be examined are examined again, if there are any.
    pub fn looks_again_at(&self) -> Option<Instant> {
        let state = lock(&self.state);
        (!state.unread.is_empty()).then_some(state.look_again)
    }

    /// Returns the extents of a file's tables that are not `live`, and whether their space was
    /// freed already. `punched` bytes of tables that were live at open have been punched since.
    fn unexplained(
        &self,
        file: FileId,
        live: &Extents,
        punched: u64,
    ) -> Result<Option<(Extents, bool)>> {
        let path = table_file_name(&self.directory, file);
        let failed = |error| Error::io("open", &path, error);
        let handle = self.vfs.open(&path, OpenOptions::READ).map_err(failed)?;
        let length = handle.len().map_err(failed)?;
        let explained = HEADER_BYTES + live.bytes() + UNEXPLAINED_BYTES;
        if length <= explained {
            return Ok(None);
        }
        let described = CompactionFile::open(&handle, &path, file)?;
        let mut dead = Extents::default();
        let page = PAGE_BYTES as u64;
        dead.extend(
            described
                .tables
                .iter()
                .map(|table| table.offset..table.offset + table.length.next_multiple_of(page)),
        );
        live.iter().for_each(|range| dead.remove(&range));
        let overhead = length - (live.bytes() + dead.bytes()).min(length);
        let allocated = handle.allocated().map_err(failed)?;
        // A smaller allocation means that the file system compresses. Then it is unknown, and a
        // hole may be punched twice.
        let rest = (live.bytes() + overhead).saturating_sub(punched);
        let given_back = allocated.abs_diff(rest) <= UNEXPLAINED_BYTES;
        Ok((!dead.is_empty()).then_some((dead, given_back)))
    }
}
