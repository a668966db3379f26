//! Recording traces of calls, and what all traces have in common.

use std::path::Path;
use std::sync::Arc;

use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::vfs::Vfs;

use super::Db;
use crate::runtime;
use crate::trace::{
    FileWriter, Plan, Recorder, TraceOptions, TraceReader, TraceSummary, TraceWriter, Tracing,
};

/// Traces.
impl Db {
    /// Begins to record the calls of clients in the file `path`: reads of keys, writes in the order
    /// of their commits, and seeks. [`Replayer`](crate::Replayer) replays them. The format is
    /// RocksDB's.
    ///
    /// No call waits for the file, or fails because of it. If it is written too slowly, records are
    /// lost and counted ([`TraceSummary::lost`]). Without a trace each call pays one load.
    ///
    /// ```
    /// use sateen::{Db, Options, ReplayOptions, Replayer, TraceOptions, TraceReader};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, other) = (directory.path().join("db"), directory.path().join("other"));
    /// # let trace = directory.path().join("trace");
    /// let db = Db::open(path, Options::default())?;
    /// db.start_trace(&trace, &TraceOptions::default())?;
    /// db.put("fig", "1")?;
    /// db.end_trace()?;
    ///
    /// let other = Db::open(other, Options::default())?;
    /// let mut replayer = Replayer::new(&other, TraceReader::open(&trace)?);
    /// replayer.replay(&ReplayOptions::default())?; // at the speed of the calls
    /// assert_eq!(other.get("fig")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if the file cannot be created, or exists and is not to be replaced. `InvalidArgument`
    /// if a trace is recorded already.
    pub fn start_trace(&self, path: impl AsRef<Path>, options: &TraceOptions) -> Result<()> {
        self.start_trace_with(self.core.env.vfs.as_ref(), path, options)
    }

    /// Begins to record the calls of clients, as [`Db::start_trace`] does, in the file `path` of
    /// the file system `vfs`.
    ///
    /// # Errors
    /// As [`Db::start_trace`].
    pub fn start_trace_with(
        &self,
        vfs: &dyn Vfs,
        path: impl AsRef<Path>,
        options: &TraceOptions,
    ) -> Result<()> {
        self.begin_trace(options, || {
            Ok(Box::new(FileWriter::create(vfs, path.as_ref(), options.replace)?))
        })
    }

    /// Begins to record the calls of clients, as [`Db::start_trace`] does, with `writer` instead of
    /// a file.
    ///
    /// # Errors
    /// `InvalidArgument` if a trace is recorded already.
    pub fn start_trace_to(
        &self,
        writer: Box<dyn TraceWriter>,
        options: &TraceOptions,
    ) -> Result<()> {
        self.begin_trace(options, || Ok(writer))
    }

    /// Ends the trace, and returns once its file is written. It is not synced. The close of the
    /// database also ends it.
    ///
    /// # Errors
    /// The error that has ended the trace before: `Io` if the file could not be written.
    /// `InvalidArgument` if none is recorded.
    pub fn end_trace(&self) -> Result<TraceSummary> {
        self.core.env.check_open()?;
        let none = || Err(Error::InvalidArgument("no trace is recorded".to_owned()));
        self.core.env.tracing.end().unwrap_or_else(none)
    }

    /// Opens a trace in the file system of the database.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn open_trace(&self, path: impl AsRef<Path>) -> Result<TraceReader> {
        TraceReader::open_with(self.core.env.vfs.as_ref(), path)
    }

    fn begin_trace(
        &self,
        options: &TraceOptions,
        writer: impl FnOnce() -> Result<Box<dyn TraceWriter>>,
    ) -> Result<()> {
        self.begin(&self.core.env.tracing, options.into(), writer, || {})
    }

    /// Begins `trace`. Once its file is there, `observe` says where its records come from.
    pub(super) fn begin(
        &self,
        trace: &Tracing,
        plan: Plan,
        writer: impl FnOnce() -> Result<Box<dyn TraceWriter>>,
        observe: impl FnOnce(),
    ) -> Result<()> {
        let env = &self.core.env;
        env.check_open()?;
        let start = |recorder: Arc<Recorder>| {
            if clock::is_virtual() {
                return Ok(None);
            }
            recorder.gets_thread();
            runtime::start_trace(move || recorder.run()).map(Some)
        };
        let start_us = env.options.load().wall_clock.seconds().saturating_mul(1_000_000);
        trace.begin(plan, start_us, writer, start, observe)?;
        // A close that has looked before the trace began would leave its thread behind.
        if let Err(error) = env.check_open() {
            self.core.end_traces();
            return Err(error);
        }
        Ok(())
    }
}
