//! Spare files: empty files for tables and WALs, created before they are needed. Their names become
//! durable by one sync of the directory for many. A flush or compaction then costs only the two
//! barriers of BoLT §3.1, its file's and the manifest's. A new WAL behind a full memtable costs
//! none.
//!
//! 1. [`SpareFiles::take`] returns a spare file. If there is none, it makes a batch, twice as large
//!    as the last one (`make`).
//! 2. `make` creates the files and syncs the directory once.
//! 3. [`SpareFiles::remove_all`] removes the rest when the database is idle.
//!
//! What must stay true: a file is handed out once, after its name is durable, and before any file
//! with a larger number. The numbers of WALs are their order. There are no spare files at rest.
//! Files that are left when the process dies are orphans, which the next open removes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::FileId;

use super::replace::sync_directory;
use crate::base::error::{Error, Result};
use crate::base::sync::{Mutex, lock};
use crate::files::counters::Counters;
use crate::vfs::{OpenOptions, Vfs};

/// Largest number of files created at a time.
const BATCH_MAX: usize = 32;

/// The spare files of one kind.
pub struct SpareFiles {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    /// Returns the path of a file by its number.
    name: fn(&Path, FileId) -> PathBuf,
    state: Mutex<SpareState>,
    /// Held while a thread takes a file. Other threads wait for the files that it creates.
    taking: Mutex<()>,
}

#[derive(Default)]
struct SpareState {
    free: VecDeque<FileId>,
    /// Size of the last batch since the database was idle. It grows while there is work.
    batch: usize,
}

impl SpareFiles {
    pub fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        name: fn(&Path, FileId) -> PathBuf,
    ) -> SpareFiles {
        SpareFiles { vfs, directory, name, state: Mutex::default(), taking: Mutex::default() }
    }

    /// Returns an empty file whose name is durable.
    pub fn take(&self, counters: &Counters) -> Result<FileId> {
        let _turn = lock(&self.taking);
        let batch = {
            let mut state = lock(&self.state);
            if let Some(file) = state.free.pop_front() {
                return Ok(file);
            }
            state.batch = (2 * state.batch).clamp(1, BATCH_MAX);
            state.batch
        };
        let (first, others) = self.make(batch, counters)?;
        lock(&self.state).free.extend(others);
        Ok(first)
    }

    fn make(&self, batch: usize, counters: &Counters) -> Result<(FileId, Vec<FileId>)> {
        let first = self.create(counters)?;
        let mut others = Vec::new();
        while others.len() + 1 < batch
            // A smaller batch will do.
            && let Ok(file) = self.create(counters)
        {
            others.push(file);
        }
        if let Err(error) = sync_directory(self.vfs.as_ref(), &self.directory) {
            others.push(first);
            others.into_iter().for_each(|file| self.remove(file));
            return Err(error);
        }
        Ok((first, others))
    }

    fn create(&self, counters: &Counters) -> Result<FileId> {
        let file = counters.file();
        let path = (self.name)(&self.directory, file);
        let created = self.vfs.open(&path, OpenOptions::CREATE);
        created.map(|_| file).map_err(|error| Error::io("create", &path, error))
    }

    /// Removes the spare files, because the database is idle. Returns true if there were any.
    pub fn remove_all(&self) -> bool {
        let SpareState { free, .. } = std::mem::take(&mut *lock(&self.state));
        free.iter().for_each(|file| self.remove(*file));
        !free.is_empty()
    }

    /// Returns the number of spare files.
    pub fn count(&self) -> usize {
        lock(&self.state).free.len()
    }

    fn remove(&self, file: FileId) {
        let _orphan = self.vfs.remove(&(self.name)(&self.directory, file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::table_file_name;
    use crate::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, MemVfs, VfsOperation};

    fn here(vfs: &MemVfs) -> usize {
        vfs.list(Path::new("/db")).unwrap().len()
    }

    fn made_in(vfs: Arc<dyn Vfs>) -> SpareFiles {
        SpareFiles::new(vfs, PathBuf::from("/db"), table_file_name)
    }

    fn memory() -> MemVfs {
        let vfs = MemVfs::new();
        vfs.create_dir_all(Path::new("/db")).unwrap();
        vfs
    }

    #[test]
    fn spare_files_are_durable_and_handed_out_once() {
        let (vfs, counters) = (memory(), Counters::default());
        vfs.sync_dir(Path::new("/")).unwrap();
        let spare = made_in(Arc::new(vfs.clone()));
        let mut taken = Vec::new();
        // The batch doubles each time, up to the limit.
        let batches = [1, 2, 4, 8, 16, 32, 32].iter().scan(0, |here, batch| {
            *here += batch;
            Some(std::iter::repeat_n(*here, *batch))
        });
        for here_then in batches.flatten() {
            let file = spare.take(&counters).unwrap();
            assert_eq!(here(&vfs), here_then);
            let left = vfs.crash_image(CrashChoice::SyncedOnly);
            assert!(left.exists(&table_file_name(Path::new("/db"), file)).unwrap(), "{file}");
            taken.push(file);
        }
        let once: std::collections::BTreeSet<_> = taken.iter().collect();
        assert_eq!(once.len(), taken.len());
        taken.push(spare.take(&counters).unwrap());
        assert!(spare.remove_all() && spare.count() == 0);
        assert_eq!(here(&vfs), taken.len());
        spare.take(&counters).unwrap();
        assert!(!spare.remove_all() && here(&vfs) == taken.len() + 1);
    }

    #[test]
    fn numbers_ascend_for_concurrent_takers() {
        let vfs = memory();
        let slow = FaultVfs::new(Arc::new(vfs));
        let delay = Fault::Delay(std::time::Duration::from_millis(1));
        slow.add(FaultRule::new(delay).on(VfsOperation::SyncDir));
        let (spare, counters) = (made_in(Arc::new(slow)), Counters::default());
        let take = || {
            let taken: Vec<_> = (0..40).map(|_| spare.take(&counters).unwrap()).collect();
            assert!(taken.is_sorted(), "{taken:?}");
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(take)));
        });
    }

    #[test]
    fn files_whose_names_may_not_be_durable_are_not_handed_out() {
        let (vfs, counters) = (memory(), Counters::default());
        let faults = FaultVfs::new(Arc::new(vfs.clone()));
        let spare = made_in(Arc::new(faults.clone()));
        faults.add(FaultRule::new(Fault::Io).on(VfsOperation::SyncDir).once());
        assert!(spare.take(&counters).is_err() && here(&vfs) == 0);
        faults.add(FaultRule::new(Fault::NoSpace).on(VfsOperation::Create).nth(2));
        spare.take(&counters).unwrap();
        assert_eq!(here(&vfs), 1);
    }
}
