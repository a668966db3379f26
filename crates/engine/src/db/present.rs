//! Writes of the public API, with or without column families that do not exist
//! (`ignore_missing_column_families`).

use sateen_control::ValueKind;
use sateen_store::base::error::{Error, Result};

use super::{Db, check_family, check_merges};
use crate::options::WriteOptions;
use crate::tree::handle::ColumnFamily;
use crate::write::batch::WriteBatch;

impl Db {
    /// Applies all of `batch`, or nothing of it. With
    /// [`WriteOptions::ignore_missing_column_families`] entries of column families that do not
    /// exist are left out.
    ///
    /// # Errors
    /// As [`Db::put_cf`]. On `InvalidArgument` and `NoSuchColumnFamily` nothing was done.
    pub fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        if !options.ignore_missing_column_families {
            return self.write_all(batch, options);
        }
        // A column family that is dropped meanwhile is looked for again: nothing was applied.
        loop {
            match self.write_all(&self.of_present_families(batch)?, options) {
                Err(Error::NoSuchColumnFamily(_)) => {}
                done => return done,
            }
        }
    }

    /// The entries of `batch` whose column families exist, and its log data.
    fn of_present_families(&self, batch: &WriteBatch) -> Result<WriteBatch> {
        let families = self.core.tree.families();
        batch.moved(|entry| {
            let family = families.by_id(entry.column_family);
            let is_present = family.is_some_and(|family| family.region().is_none());
            if is_present { vec![entry.column_family] } else { Vec::new() }
        })
    }

    /// Writes one entry to a column family.
    #[inline]
    pub(super) fn single_cf(
        &self,
        family: &ColumnFamily,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        let done = check_family(family).and_then(|()| {
            if kind == ValueKind::Merge {
                check_merges(&family.data)?;
            }
            self.single(&family.data, kind, key, value, options)
        });
        match done {
            Err(Error::NoSuchColumnFamily(_)) if options.ignore_missing_column_families => Ok(()),
            done => done,
        }
    }
}
