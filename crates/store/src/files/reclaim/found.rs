//! Dead parts of the files that exist at open: everything in them except live tables.

use sateen_control::{FileId, Instant};

use super::{LOOK_AGAIN_AFTER, Reclaimer, UNEXPLAINED_BYTES};
use crate::base::error::{Error, Result};
use crate::base::sync::lock;
use crate::files::compaction_file::{CompactionFile, HEADER_BYTES};
use crate::files::leases::Round;
use crate::files::space::Extents;
use crate::files::{PAGE_BYTES, table_file_name};
use crate::vfs::OpenOptions;

impl Reclaimer {
    /// Looks what so many of the files that were there at open have besides the tables they had
    /// then. Returns whether there are more that can be looked at now.
    pub fn look_at_found_files(&self, most: usize, now: Instant) -> bool {
        let files = {
            let mut state = lock(&self.state);
            // What they have besides may be what a reader of before still reads.
            if state.leases.is_watched() && !state.leases.frees(Round::default()) {
                return false;
            }
            if now >= state.look_again {
                // Behind those that nobody has looked at yet.
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
                // What is wrong with it is told to whoever reads it, and may pass.
                Err(_) => {
                    state.unread.push((file, live));
                    state.look_again = now + LOOK_AGAIN_AFTER;
                }
            }
        }
        !lock(&self.state).unseen.is_empty()
    }

    /// When files are looked at again that could not be, if there are any.
    pub fn looks_again_at(&self) -> Option<Instant> {
        let state = lock(&self.state);
        (!state.unread.is_empty()).then_some(state.look_again)
    }

    /// What a file has of tables that are not `live`, and whether that was given back. So many
    /// bytes of those that were live were `punched` since.
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
        // Less than that is a file system that compresses: nobody knows, and a hole may be punched
        // twice.
        let rest = (live.bytes() + overhead).saturating_sub(punched);
        let given_back = allocated.abs_diff(rest) <= UNEXPLAINED_BYTES;
        Ok((!dead.is_empty()).then_some((dead, given_back)))
    }
}
