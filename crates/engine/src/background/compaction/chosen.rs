//! Compactions of files that a client chooses.
//!
//! 1. [`Background::compact_files`] turns the paths into the trees and files that they name
//!    (`choose`).
//! 2. It asks control for one compaction for each tree, and waits for each.
//! 3. The driver keeps the result of each compaction, and the results are added up.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sateen_control::compaction::ChosenFiles;
use sateen_control::{Event, FileId};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::files::FileName;

use crate::background::Background;
use crate::events::CompactionInfo;
use crate::tree::families::ColumnFamilyData;

/// The smallest size of output tables, in bytes.
const TABLE_BYTES_MIN: u64 = 4096;

/// The options of [`Db::compact_files`](crate::Db::compact_files).
#[derive(Clone, Debug, Default)]
pub struct CompactFilesOptions {
    /// The size of the output tables in bytes. Default: that of the output level. RocksDB:
    /// `output_file_size_limit`.
    pub table_bytes: Option<u64>,
    /// Cancels the compaction once it is set. A job that already runs for it is completed. RocksDB:
    /// `canceled`.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl CompactFilesOptions {
    fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Acquire))
    }
}

impl Background {
    /// Compacts `files` into `output_level`; see [`Db::compact_files`](crate::Db::compact_files).
    pub(crate) fn compact_files(
        self: &Arc<Self>,
        family: &Arc<ColumnFamilyData>,
        files: &[&Path],
        output_level: u8,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        self.env.check_writable("a compaction")?;
        self.check_manual()?;
        if options.is_cancelled() {
            return Err(Error::ManualCompactionPaused);
        }
        let chosen = choose(family, files, output_level)?;
        let table_bytes = options.table_bytes.map(|bytes| bytes.max(TABLE_BYTES_MIN));
        let ask = |(tree, files): (&Arc<ColumnFamilyData>, BTreeSet<FileId>)| {
            let (cf, files) = (tree.id(), ChosenFiles::new(files, output_level, table_bytes));
            self.driver.request(tree, true, |request| Event::CompactFiles { request, cf, files })
        };
        let requests: Vec<_> = chosen.into_iter().map(ask).collect();
        let mut all: Option<CompactionInfo> = None;
        let mut result = Ok(());
        // Every request is waited for, because only that removes its result.
        for request in requests {
            let waited = self.wait_request_unless(request, &|| options.is_cancelled());
            let made = self.driver.take_answer(request);
            let complete = waited.and_then(|complete| {
                if complete {
                    return Ok(());
                }
                self.env.check_working()?;
                self.env.health.check()?;
                if family.is_dropped() {
                    return Err(Error::NoSuchColumnFamily(family.name().to_owned()));
                }
                Err(Error::ManualCompactionPaused)
            });
            result = result.and(complete);
            match (&mut all, made) {
                (Some(all), Some(made)) => {
                    all.inputs.extend(made.inputs);
                    all.outputs.extend(made.outputs);
                    all.value_files.extend(made.value_files);
                    all.value_garbage.extend(made.value_garbage);
                }
                (None, made) => all = made,
                (Some(_), None) => {}
            }
        }
        result?;
        all.ok_or_else(|| Error::InvalidArgument("the files were compacted meanwhile".into()))
    }
}

/// Returns the files of each tree of `family` that `files` name. Fails if the options allow no such
/// compaction, or if a path is no table file of the family or lies below the output level.
fn choose<'f>(
    family: &'f Arc<ColumnFamilyData>,
    files: &[&Path],
    output_level: u8,
) -> Result<Vec<(&'f Arc<ColumnFamilyData>, BTreeSet<FileId>)>> {
    let refused = |text: String| Err(Error::InvalidArgument(text));
    let options = family.options();
    if let Some(why) = options.compaction_style.policy().refuses_chosen_files() {
        return refused(why.into());
    }
    if output_level == 0 || u32::from(output_level) >= options.levels {
        let last = options.levels.saturating_sub(1);
        return refused(format!("the output level {output_level} is not from 1 to {last}"));
    }
    if files.is_empty() {
        return refused("no file to compact is named".into());
    }
    let mut chosen: Vec<_> = family.trees().map(|tree| (tree, BTreeSet::new())).collect();
    for path in files {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
        let Some(FileName::Table(file)) = name else {
            return refused(format!("{} is not the name of a table file", path.display()));
        };
        let mut found = false;
        for (tree, of_tree) in &mut chosen {
            let version = tree.super_version().version.clone();
            let tables = version.tables().filter(|(_, _, table)| table.placement.file() == file);
            for (level, ..) in tables {
                if level > output_level {
                    return refused(format!(
                        "{} has a table in level {level}, below the output level {output_level}",
                        path.display()
                    ));
                }
                found = true;
                of_tree.insert(file);
            }
        }
        if !found {
            return refused(format!(
                "{} is not a file of the column family {}",
                path.display(),
                family.name()
            ));
        }
    }
    chosen.retain(|(_, files)| !files.is_empty());
    Ok(chosen)
}
