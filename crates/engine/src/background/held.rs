//! What a database holds at one moment beyond what is stored: what must be given back once nobody
//! works or reads any more. For tests that it is.

/// Counts of what is held. At rest, with all readers gone, all but the open files and tables are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Flushes and compactions that exist, paused ones included.
    pub jobs: usize,
    /// Inputs that control believes to be in use.
    pub inputs: usize,
    /// Jobs that were given up and whose files are not removed yet.
    pub given_up: usize,
    /// Manual compactions that somebody waits for.
    pub requests: usize,
    /// Who keeps files from being given back, such as a checkpoint that is being made.
    pub holds: usize,
    /// Files of tables and logs that were made in advance.
    pub spare_files: usize,
    /// Readers in other handles and processes that keep retired tables.
    pub leases: usize,
    /// Tables that no version has and that somebody still reads.
    pub retired_tables: usize,
    /// Readers of what the column families have now.
    pub readers: usize,
    /// Files of tables that are open, by number.
    pub open_files: Vec<u64>,
    /// Tables that are open.
    pub open_tables: usize,
}
