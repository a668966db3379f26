//! Writes ascending entries into tables of the trees of a column family, for level 0.

use std::sync::Arc;

use sateen_control::version::TableMeta;
use sateen_control::{FileId, IoClass};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::key;

use crate::background::output::{Output, OutputContext};
use crate::core::DbCore;
use crate::tree::families::ColumnFamilyData;

/// The tables of one tree, in the order of their keys.
pub(super) struct TreeTables {
    pub(super) tree: Arc<ColumnFamilyData>,
    pub(super) tables: Vec<Arc<TableMeta>>,
}

/// The tree that entries go to now.
struct Open {
    tree: Arc<ColumnFamilyData>,
    /// Size at which a table ends.
    table_bytes: u64,
}

/// Writes tables. Its files stay until they are removed with `abandon`, or by the next open.
pub(super) struct TreesWriter {
    core: Arc<DbCore>,
    family: Arc<ColumnFamilyData>,
    /// The tree of the last output.
    open: Option<Open>,
    /// An output for each tree.
    outputs: Vec<Output>,
    written: Vec<TreeTables>,
}

impl TreesWriter {
    pub(super) fn new(core: &Arc<DbCore>, family: &Arc<ColumnFamilyData>) -> TreesWriter {
        TreesWriter {
            core: core.clone(),
            family: family.clone(),
            open: None,
            outputs: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Adds an entry, whose user key must be greater than that of the entry before.
    pub(super) fn add(&mut self, internal: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.family.tree(key::user_key(internal)).id();
        let table_bytes = match &self.open {
            Some(open) if open.tree.id() == tree => open.table_bytes,
            _ => self.begin(internal)?,
        };
        let Some(output) = self.outputs.last_mut() else { return Err(Error::Closed) };
        if output.table_bytes() >= table_bytes {
            output.end_table()?;
        }
        output.add(&self.core.tree.versions.counters, internal, value)
    }

    /// Begins the output for the tree that holds an entry, and returns the size of its tables.
    fn begin(&mut self, internal: &[u8]) -> Result<u64> {
        self.end()?;
        let tree = self.family.tree(key::user_key(internal)).clone();
        let options = tree.options();
        let outputs = &self.core.background.driver.flusher.outputs;
        let compression = options.compression_of(0);
        let context = OutputContext {
            // Not background work, after which unused spare files would be removed.
            spare_files: None,
            ..outputs.context(&tree, (0, 0), IoClass::Flush, compression)
        };
        let output = Output::new(context);
        output.check_space()?;
        self.outputs.push(output);
        self.open = Some(Open { tree, table_bytes: options.table_bytes });
        Ok(options.table_bytes)
    }

    /// Ends the output of the open tree, if there is one, and makes its bytes durable.
    fn end(&mut self) -> Result<()> {
        if let (Some(Open { tree, .. }), Some(output)) = (self.open.take(), self.outputs.last_mut())
        {
            self.written.push(TreeTables { tree, tables: output.finish()? });
        }
        Ok(())
    }

    /// Makes everything durable, and returns the tables of each tree that got entries.
    pub(super) fn finish(&mut self) -> Result<Vec<TreeTables>> {
        self.end()?;
        Ok(std::mem::take(&mut self.written))
    }

    /// Returns all files that were begun.
    pub(super) fn files(&self) -> impl Iterator<Item = FileId> {
        self.outputs.iter().flat_map(Output::files).copied()
    }

    /// Removes all files.
    pub(super) fn abandon(&mut self) {
        self.outputs.iter_mut().for_each(Output::abandon);
    }
}
