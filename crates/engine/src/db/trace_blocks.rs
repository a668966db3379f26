//! Recording traces of blocks and of I/O.
//!
//! 1. A trace begins as one of calls does (`Db::begin`), and its observer is put where the events
//!    happen: into the block cache, or the file system.
//! 2. [`BlockTap`] hears of each block that a reader needs. It looks the table up in [`Places`] and
//!    records the block.
//! 3. The end of the trace removes the observer first.
//!
//! What must stay true: an observer never waits for a file. It does not keep versions or their
//! tables alive.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use sateen_control::version::Version;
use sateen_control::{ColumnFamilyId, TableId};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::block_cache::{BlockAccess, BlockObserver};
use sateen_store::vfs::Vfs;

use super::Db;
use crate::trace::io::Tap;
use crate::trace::{
    BlockTraceOptions, FileWriter, IoTraceOptions, TablePlace, TraceSummary, Tracing,
};
use crate::tree::Tree;
use crate::tree::families::ColumnFamilyData;

/// Traces of blocks and of I/O.
impl Db {
    /// Begins to record in the file `path` which data blocks reads and compactions need, and
    /// whether they are in the block cache. The format is that of RocksDB's traces of the block
    /// cache, which its tools analyse.
    ///
    /// As with [`Db::start_trace`], no read waits for the file. Without a trace each read of a
    /// block pays one load.
    ///
    /// # Errors
    /// `Io` if the file cannot be created, or exists and is not to be replaced. `InvalidArgument`
    /// if a trace of blocks is recorded already.
    pub fn start_block_trace(
        &self,
        path: impl AsRef<Path>,
        options: &BlockTraceOptions,
    ) -> Result<()> {
        self.start_block_trace_with(self.core.env.vfs.as_ref(), path, options)
    }

    /// Begins to record reads of blocks, as [`Db::start_block_trace`] does, in the file `path` of
    /// the file system `vfs`.
    ///
    /// # Errors
    /// As [`Db::start_block_trace`].
    pub fn start_block_trace_with(
        &self,
        vfs: &dyn Vfs,
        path: impl AsRef<Path>,
        options: &BlockTraceOptions,
    ) -> Result<()> {
        let trace = &self.core.env.block_trace;
        let tree = &self.core.tree;
        let writer = || FileWriter::create(vfs, path.as_ref(), options.replace);
        let observe = || {
            let tap = BlockTap {
                trace: trace.clone(),
                tree: Arc::downgrade(tree),
                places: Mutex::default(),
            };
            tree.blocks.observed().set(Some(Arc::new(tap)));
        };
        self.begin(trace, options.into(), || Ok(Box::new(writer()?)), observe)
    }

    /// Ends the trace of blocks, and returns once its file is written. It is not synced. The close
    /// of the database also ends it.
    ///
    /// # Errors
    /// The error that has ended the trace before: `Io` if the file could not be written.
    /// `InvalidArgument` if none is recorded.
    pub fn end_block_trace(&self) -> Result<TraceSummary> {
        self.core.env.check_open()?;
        let none = || Err(Error::InvalidArgument("no trace of blocks is recorded".to_owned()));
        let ended = self.core.env.block_trace.end_after(|| {
            self.core.tree.blocks.observed().set(None);
        });
        ended.unwrap_or_else(none)
    }

    /// Begins to record in the file `path` what the database does with files and directories:
    /// reads, writes, syncs, changes of names, each with its latency. The format is that of
    /// RocksDB's traces of I/O, which its tools print.
    ///
    /// As with [`Db::start_trace`], no call waits for the file. Without a trace each call on a file
    /// pays one load. Writes of the trace itself are not in it.
    ///
    /// # Errors
    /// `Io` if the file cannot be created, or exists and is not to be replaced. `InvalidArgument`
    /// if a trace of I/O is recorded already.
    pub fn start_io_trace(&self, path: impl AsRef<Path>, options: &IoTraceOptions) -> Result<()> {
        self.start_io_trace_with(self.core.env.vfs.as_ref(), path, options)
    }

    /// Begins to record calls on files, as [`Db::start_io_trace`] does, in the file `path` of the
    /// file system `vfs`.
    ///
    /// # Errors
    /// As [`Db::start_io_trace`].
    pub fn start_io_trace_with(
        &self,
        vfs: &dyn Vfs,
        path: impl AsRef<Path>,
        options: &IoTraceOptions,
    ) -> Result<()> {
        let (env, path) = (&self.core.env, path.as_ref());
        let writer = || FileWriter::create(vfs, path, options.replace);
        let observe = || {
            let tap = Tap { tracing: env.io_trace.clone(), own: PathBuf::from(path) };
            env.vfs.observe(Some(Arc::new(tap)));
        };
        self.begin(&env.io_trace, options.into(), || Ok(Box::new(writer()?)), observe)
    }

    /// Ends the trace of I/O, and returns once its file is written. It is not synced. The close of
    /// the database also ends it.
    ///
    /// # Errors
    /// The error that has ended the trace before: `Io` if the file could not be written.
    /// `InvalidArgument` if none is recorded.
    pub fn end_io_trace(&self) -> Result<TraceSummary> {
        let env = &self.core.env;
        env.check_open()?;
        let none = || Err(Error::InvalidArgument("no trace of I/O is recorded".to_owned()));
        env.io_trace.end_after(|| env.vfs.observe(None)).unwrap_or_else(none)
    }
}

/// Records the blocks that readers need.
struct BlockTap {
    trace: Arc<Tracing>,
    tree: Weak<Tree>,
    places: Mutex<Places>,
}

impl BlockObserver for BlockTap {
    fn accessed(&self, access: &BlockAccess<'_>) {
        self.trace.block(access, |record| {
            let Some(tree) = self.tree.upgrade() else { return };
            let place = lock(&self.places).of(access.table, &tree);
            match place {
                Some((family, level)) => {
                    let name = tree.name_of(&family);
                    record(&TablePlace { family: family.whole(), name: &name, level });
                }
                // A table that was gone before the trace began, which an iterator still reads.
                None => record(&UNKNOWN),
            }
        });
    }
}

/// What RocksDB writes of a table whose place it does not know.
const UNKNOWN: TablePlace<'_> =
    TablePlace { family: ColumnFamilyId(u32::MAX), name: "UnknownColumnFamily", level: u32::MAX };

/// Entries of tables that are gone are removed if there are more than this beside twice the tables.
const GONE_MAX: usize = 1024;

/// Where tables are, as far as they were looked up.
#[derive(Default)]
struct Places {
    tables: HashMap<TableId, (Arc<ColumnFamilyData>, u32)>,
    /// The version of each tree whose tables were entered.
    entered: HashMap<ColumnFamilyId, Weak<Version>>,
}

impl Places {
    /// Returns the tree and the level of a table.
    fn of(&mut self, table: TableId, tree: &Tree) -> Option<(Arc<ColumnFamilyData>, u32)> {
        if let Some((family, level)) = self.tables.get(&table) {
            // A table may move to another level.
            if self.is_entered(family) {
                return Some((family.clone(), *level));
            }
            let family = family.clone();
            self.enter(&family);
        } else {
            let families = tree.families();
            for family in families.values().flat_map(|family| family.trees()) {
                if !self.is_entered(family) {
                    self.enter(family);
                }
            }
            self.remove_gone(tree);
        }
        self.tables.get(&table).cloned()
    }

    /// Returns true if the tables of the current version were entered.
    fn is_entered(&self, family: &ColumnFamilyData) -> bool {
        let entered = self.entered.get(&family.id()).map(Weak::as_ptr);
        entered == Some(Arc::as_ptr(&family.super_version().version))
    }

    fn enter(&mut self, family: &Arc<ColumnFamilyData>) {
        let version = family.super_version().version.clone();
        for (level, _, table) in version.tables() {
            self.tables.insert(table.id, (family.clone(), u32::from(level)));
        }
        self.entered.insert(family.id(), Arc::downgrade(&version));
    }

    fn remove_gone(&mut self, tree: &Tree) {
        let versions: Vec<_> = self.entered.values().filter_map(Weak::upgrade).collect();
        let live: usize = versions.iter().map(|version| version.tables().count()).sum();
        if self.tables.len() <= 2 * live + GONE_MAX {
            return;
        }
        let tables = versions.iter().flat_map(|version| version.tables());
        let live: HashSet<TableId> = tables.map(|(.., table)| table.id).collect();
        self.tables.retain(|table, _| live.contains(table));
        let families = tree.families();
        self.entered.retain(|id, _| families.by_id(*id).is_some());
    }
}
