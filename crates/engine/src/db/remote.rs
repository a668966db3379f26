//! The public API of compactions for other processes.

use std::path::Path;
use std::sync::Arc;

use sateen_store::base::error::Result;
use sateen_store::vfs::{PosixVfs, Vfs};

use super::Db;
use crate::open;
use crate::open::OpenAndCompactOptions;

/// Compactions for other processes.
impl Db {
    /// Carries out a compaction for the database in `path`, which another process has open, and
    /// returns the result for [`RemoteCompaction::finish`](crate::RemoteCompaction::finish).
    /// `input` is what [`RemoteCompaction::input`](crate::RemoteCompaction::input) returned there.
    /// The outputs are written to a new directory in `output`, which is created if it is missing,
    /// and must be on the database's file system. The database itself is only read, without its
    /// lock.
    ///
    /// `path` is the database's directory as this process sees it. Directories of tables besides it
    /// have the names that they have there.
    ///
    /// ```
    /// use std::path::PathBuf;
    ///
    /// use sateen::{
    ///     CompactRangeOptions, CompactionService, Db, OpenAndCompactOptions, Options,
    ///     RemoteCompaction, RemoteCompactions,
    /// };
    ///
    /// /// Does the work of another process in a thread of this one.
    /// struct Thread(PathBuf);
    ///
    /// impl CompactionService for Thread {
    ///     fn name(&self) -> &str {
    ///         "thread"
    ///     }
    ///     fn start(&self, job: RemoteCompaction) {
    ///         let output = self.0.clone();
    ///         std::thread::spawn(move || {
    ///             let with = OpenAndCompactOptions::default();
    ///             let path = job.info().database.clone();
    ///             match Db::open_and_compact(path, output, job.input(), &with) {
    ///                 Ok(result) => job.finish(result),
    ///                 Err(error) => job.fail(error.to_string()),
    ///             }
    ///         });
    ///     }
    /// }
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, output) = (directory.path().join("db"), directory.path().join("output"));
    /// let service = RemoteCompactions::new(Thread(output));
    /// let options = Options { compaction_service: Some(service), ..Options::default() };
    /// let db = Db::open(path, options)?;
    /// for value in ["1", "2"] {
    ///     db.put("fig", value)?;
    ///     db.flush()?;
    /// }
    /// db.compact_range(None, None, &CompactRangeOptions::default())?;
    /// assert_eq!(db.get("fig")?.as_deref(), Some(&b"2"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the input is damaged or of another version, if `output` has tables of
    /// the database or a directory of this job, or if a merge operator, a filter, a comparator or a
    /// prefix extractor of the database is not in the options. `ManualCompactionPaused` if it was
    /// cancelled. `Io` and `Corruption` if tables cannot be read, or outputs written. After an
    /// error no output is left.
    pub fn open_and_compact(
        path: impl AsRef<Path>,
        output: impl AsRef<Path>,
        input: &[u8],
        options: &OpenAndCompactOptions,
    ) -> Result<Vec<u8>> {
        Db::open_and_compact_with(Arc::new(PosixVfs::new()), path, output, input, options)
    }

    /// Carries out a compaction in the file system `vfs`, as [`Db::open_and_compact`] does.
    ///
    /// # Errors
    /// As [`Db::open_and_compact`].
    pub fn open_and_compact_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        output: impl AsRef<Path>,
        input: &[u8],
        options: &OpenAndCompactOptions,
    ) -> Result<Vec<u8>> {
        open::open_and_compact(vfs, path.as_ref(), output.as_ref(), input, options)
    }
}
