//! The directories for tables, and how they look as text.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::{option_of_path, path_of_option, shown_path};

use super::text::{Bytes, Unit};
use super::{ColumnFamilyOptions, CompactionStyle, Options, StoredOptions};

/// The most directories that a column family may have.
const PATHS_MAX: usize = 16;

/// A directory for tables, and the bytes that it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePath {
    /// The directory. It is created if it is missing.
    pub directory: PathBuf,
    /// The bytes of the levels that are put into it. The last directory takes all that have no room
    /// elsewhere. It is no limit: a level may become larger than its target for a while.
    pub bytes: u64,
}

impl TablePath {
    /// Returns the directory `directory`, for `bytes`.
    pub fn new(directory: impl Into<PathBuf>, bytes: u64) -> TablePath {
        TablePath { directory: directory.into(), bytes }
    }
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Refuses an empty path, which the operating system would take for the current directory once a
/// file name is added. `what` names it.
///
/// # Errors
/// `InvalidArgument`
pub(crate) fn check_named(what: &str, path: &Path) -> Result<()> {
    if !path.as_os_str().is_empty() {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "the path of {what} is empty: name a directory, \".\" for the current one"
    )))
}

/// Makes directories absolute, so that a change of the working directory changes nothing.
fn make_absolute(option: &str, paths: &mut [TablePath]) -> Result<()> {
    for path in paths {
        path.directory = std::path::absolute(&path.directory).map_err(|error| {
            let directory = shown_path(&path.directory);
            Error::InvalidArgument(format!("{option}={directory}: {error}"))
        })?;
    }
    Ok(())
}

/// A list of [`TablePath`]s as text.
pub(super) struct PathList;

/// Separates the directories of a list.
const SEPARATOR: char = ',';
/// The separator as it stands in a path: a zero byte and two digits.
const ESCAPED: &str = "\x002c";

impl Unit<Vec<TablePath>> for PathList {
    const NAME: &'static str = "directories and sizes";
    const ACCEPTS: &'static str =
        "directories with the bytes that each should have, as /fast:10GiB,/large:2TiB, or none";

    fn read(text: &str) -> Option<Vec<TablePath>> {
        if matches!(text, "" | "none") {
            return Some(Vec::new());
        }
        let path = |text: &str| {
            let (directory, bytes) = text.rsplit_once(':')?;
            let bytes = <Bytes as Unit<u64>>::read(bytes.trim())?;
            let directory = path_of_option(directory.trim())?;
            (!directory.as_os_str().is_empty()).then_some(TablePath { directory, bytes })
        };
        text.split(SEPARATOR).map(path).collect()
    }

    fn print(paths: &Vec<TablePath>) -> String {
        let path = |path: &TablePath| {
            let directory = option_of_path(&path.directory).replace(SEPARATOR, ESCAPED);
            format!("{directory}:{}", <Bytes as Unit<u64>>::print(&path.bytes))
        };
        match paths.is_empty() {
            true => "none".to_owned(),
            false => paths.iter().map(path).collect::<Vec<_>>().join(","),
        }
    }
}

impl Options {
    /// Returns the directories for tables of a column family with the options `family`; empty if
    /// they are in the database's own directory.
    pub(crate) fn paths_of<'a>(&'a self, family: &'a ColumnFamilyOptions) -> &'a [TablePath] {
        if family.family_paths.is_empty() { &self.paths } else { &family.family_paths }
    }

    /// Returns the directory of rank `path` for tables of a column family with the options `family`
    /// of the database in `home`.
    pub(crate) fn table_directory(
        &self,
        family: &ColumnFamilyOptions,
        path: usize,
        home: &Path,
    ) -> PathBuf {
        let path = self.paths_of(family).get(path);
        path.map_or_else(|| home.to_owned(), |path| path.directory.clone())
    }

    /// Makes the directories for tables and WALs absolute.
    ///
    /// # Errors
    /// `InvalidArgument`
    pub(crate) fn with_absolute_paths(mut self) -> Result<Options> {
        if let Some(logs) = &self.wal_dir {
            check_named("wal_dir", logs)?;
        }
        self.wal_dir = self.wal_dir.as_deref().map(absolute);
        make_absolute("paths", &mut self.paths)?;
        self.column_family = self.column_family.with_absolute_paths()?;
        Ok(self)
    }

    /// Checks the directories for tables of a column family with the options `family`.
    pub(crate) fn check_paths(&self, family: &ColumnFamilyOptions) -> Result<()> {
        let option = if family.family_paths.is_empty() { "paths" } else { "family_paths" };
        check_paths(option, self.paths_of(family), family.compaction_style)
    }

    /// Returns the directories of tables besides `home`, the database's own, for all column
    /// families of an open with these options. All paths are absolute.
    pub(crate) fn table_directories<'a>(
        &'a self,
        home: &Path,
        families: impl IntoIterator<Item = &'a ColumnFamilyOptions>,
    ) -> BTreeSet<PathBuf> {
        let own = families.into_iter().chain([&self.column_family]);
        let own = own.flat_map(|family| &family.family_paths);
        let all = self.paths.iter().chain(own).map(|path| &path.directory);
        all.filter(|directory| *directory != home).cloned().collect()
    }
}

impl ColumnFamilyOptions {
    /// Makes the directories for tables absolute.
    ///
    /// # Errors
    /// `InvalidArgument`
    pub(crate) fn with_absolute_paths(mut self) -> Result<ColumnFamilyOptions> {
        make_absolute("family_paths", &mut self.family_paths)?;
        Ok(self)
    }
}

/// Returns options of column families with absolute directories for tables.
///
/// # Errors
/// `InvalidArgument`
pub(crate) fn absolute_families<'a>(
    families: &[(&'a str, ColumnFamilyOptions)],
) -> Result<Vec<(&'a str, ColumnFamilyOptions)>> {
    let family = |(name, options): &(&'a str, ColumnFamilyOptions)| {
        Ok((*name, options.clone().with_absolute_paths()?))
    };
    families.iter().map(family).collect()
}

impl StoredOptions {
    /// Returns the directories of tables besides `home`, the database's own.
    pub(crate) fn table_directories(&self, home: &Path) -> BTreeSet<PathBuf> {
        self.options.table_directories(home, self.families.iter().map(|(_, family)| family))
    }
}

/// Checks that tables of a column family of this style can be in these directories.
pub(super) fn check_paths(option: &str, paths: &[TablePath], style: CompactionStyle) -> Result<()> {
    let refuse = |why: String| {
        let text = PathList::print(&paths.to_vec());
        Err(Error::InvalidArgument(format!("{option}={text}: {why}")))
    };
    if paths.len() > PATHS_MAX {
        return refuse(format!("there may be at most {PATHS_MAX} directories"));
    }
    if paths.len() > 1 && style == CompactionStyle::Fifo {
        return refuse("compaction_style=fifo keeps all tables in one directory".to_owned());
    }
    let mut seen = BTreeSet::new();
    match paths.iter().find(|path| !seen.insert(&path.directory)) {
        Some(twice) => refuse(format!("{} is there twice", shown_path(&twice.directory))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_look_as_they_are_read() {
        for paths in [
            vec![],
            vec![TablePath::new("/a", 1 << 30)],
            vec![TablePath::new("/a b", 7), TablePath::new("c:d,e;f/", u64::MAX)],
            vec![TablePath::new("none", 0), TablePath::new(",", 0), TablePath::new(":", 1)],
        ] {
            let text = PathList::print(&paths);
            assert_eq!(PathList::read(&text), Some(paths), "{text:?}");
        }
        assert_eq!(
            PathList::read("/a:1GiB, /b:2"),
            Some(vec![TablePath::new("/a", 1 << 30), TablePath::new("/b", 2)])
        );
        for wrong in ["/a", "/a:", ":1", "/a:1,", "/a:x", ","] {
            assert_eq!(PathList::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn directories_that_contradict_each_other_are_refused() {
        let paths = [TablePath::new("/a", 1), TablePath::new("/b", 1)];
        check_paths("paths", &paths, CompactionStyle::Leveled).unwrap();
        let refused = |paths: &[TablePath], style| {
            check_paths("paths", paths, style).expect_err("it is refused").to_string()
        };
        assert!(refused(&paths, CompactionStyle::Fifo).contains("paths=/a:1,/b:1: "));
        let twice = [TablePath::new("/a", 1), TablePath::new("/a", 2)];
        assert!(refused(&twice, CompactionStyle::Leveled).contains("/a is there twice"));
    }
}
