//! What a database holds at one moment beyond its stored data. Tests check that all of it is
//! released when no work runs and no reader is left.

/// Counts of held resources. At rest and without readers, all but the open files and tables are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Flushes and compactions that exist, paused ones included.
    pub jobs: usize,
    /// Jobs that have a claim on tables in the control plane.
    pub inputs: usize,
    /// Discarded jobs whose files are not removed yet.
    pub given_up: usize,
    /// Manual compactions that a client waits for.
    pub requests: usize,
    /// Holds that keep files from being removed, such as that of a checkpoint in progress.
    pub holds: usize,
    /// Preallocated table files and WALs.
    pub spare_files: usize,
    /// Leases of readers in other handles and processes, which keep retired tables.
    pub leases: usize,
    /// Tables that are in no version and that a reader still uses.
    pub retired_tables: usize,
    /// Readers of the current super versions.
    pub readers: usize,
    /// Numbers of the table files that are open.
    pub open_files: Vec<u64>,
    /// Number of open tables.
    pub open_tables: usize,
}
