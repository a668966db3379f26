//! A file system in which the tables of a database lie in several directories, under the names that
//! they would have in the database's own directory.
//!
//! 1. A table is created under its name in one of the directories ([`PathsVfs::open`]).
//! 2. Any other call may use its name in any of them. [`PathsVfs::found`] finds the directory that
//!    has it: the one that was remembered, or else the first one that has such a file, the
//!    database's own before the others.
//! 3. [`PathsVfs::list`] lists the tables of all directories in the database's own. It fails if a
//!    table is in two of them.
//!
//! What must stay true:
//!
//! - Numbers of files are never used twice (format rule F2), so a name means one table, wherever it
//!   is.
//! - The creator of a table syncs the directory in which it created it. A sync of the database's
//!   own directory says nothing of the others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use super::{OpenOptions, Vfs, VfsFile};
use crate::base::names::shown_path;
use crate::base::sync::leaf::lock;

/// Number of files whose directories are remembered. A process that only reads is not told when
/// files are removed.
const REMEMBERED_MAX: usize = 1 << 20;

/// A file system that knows the directories of a database's tables.
#[derive(Debug)]
pub struct PathsVfs {
    inner: Arc<dyn Vfs>,
    /// The database's own directory.
    home: PathBuf,
    /// Returns the number of the table with this name; `None` if it names none.
    number: fn(&str) -> Option<u64>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The directories besides the database's own.
    others: Vec<PathBuf>,
    /// Where each file is: 0 is the database's own directory, n the other one of rank n - 1.
    places: BTreeMap<u64, usize>,
}

impl Known {
    fn remember(&mut self, file: u64, place: usize) {
        if self.places.len() >= REMEMBERED_MAX {
            self.places.clear();
        }
        self.places.insert(file, place);
    }
}

impl PathsVfs {
    /// Wraps `inner` for the database in `home`, with tables also in `others`. The paths are
    /// absolute. `number` returns the number of the table with a name; `None` if it names none.
    pub fn new(
        inner: Arc<dyn Vfs>,
        home: &Path,
        others: impl IntoIterator<Item = PathBuf>,
        number: fn(&str) -> Option<u64>,
    ) -> PathsVfs {
        let vfs = PathsVfs { inner, home: home.to_owned(), number, known: Mutex::default() };
        others.into_iter().for_each(|directory| vfs.add(&directory));
        vfs
    }

    /// Adds a directory of tables.
    pub fn add(&self, directory: &Path) {
        let mut known = lock(&self.known);
        if directory != self.home && !known.others.iter().any(|other| other == directory) {
            known.others.push(directory.to_owned());
        }
    }

    /// Returns the directories of tables besides the database's own.
    pub fn others(&self) -> Vec<PathBuf> {
        lock(&self.known).others.clone()
    }

    /// Returns the table that `path` names, and the place of the directory in `path`; `None` if
    /// there is one directory only, or if it names none.
    fn table(&self, path: &Path) -> Option<(u64, usize)> {
        let known = lock(&self.known);
        if known.others.is_empty() {
            return None;
        }
        let file = (self.number)(path.file_name()?.to_str()?)?;
        let parent = path.parent()?;
        let rank = || Some(1 + known.others.iter().position(|other| *other == parent)?);
        let place = if parent == self.home { Some(0) } else { rank() };
        place.map(|place| (file, place))
    }

    /// Returns the directory of a place.
    fn directory(&self, place: usize) -> PathBuf {
        let known = lock(&self.known);
        let other = place.checked_sub(1).and_then(|nth| known.others.get(nth).cloned());
        other.unwrap_or_else(|| self.home.clone())
    }

    /// Returns where the file is that `path` names. A file that is in no directory is where `path`
    /// says.
    fn found(&self, path: &Path) -> io::Result<PathBuf> {
        let Some((file, _)) = self.table(path) else { return Ok(path.to_owned()) };
        let name = path.file_name().unwrap_or_default();
        let known = lock(&self.known).places.get(&file).copied();
        if let Some(place) = known {
            return Ok(self.directory(place).join(name));
        }
        for place in 0..=self.others().len() {
            let at = self.directory(place).join(name);
            if self.inner.exists(&at)? {
                lock(&self.known).remember(file, place);
                return Ok(at);
            }
        }
        Ok(path.to_owned())
    }

    /// Remembers a table that was created under `path`.
    fn created(&self, path: &Path) {
        if let Some((file, place)) = self.table(path) {
            lock(&self.known).remember(file, place);
        }
    }

    /// Does something to the file that `path` names, and forgets where it is if it is gone.
    fn with<T>(&self, path: &Path, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let done = act(&self.found(path)?);
        if done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.forget(path);
        }
        done
    }

    fn forget(&self, path: &Path) {
        if let Some((file, _)) = self.table(path) {
            lock(&self.known).places.remove(&file);
        }
    }
}

/// An error of one of several directories.
#[derive(Debug)]
struct InDirectory {
    directory: PathBuf,
    source: io::Error,
}

impl fmt::Display for InDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown_path(&self.directory), self.source)
    }
}

impl Error for InDirectory {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Returns the error of a table that is in two directories. One of them may be cut or punched.
fn twice(first: &Path, second: &Path, name: &Path) -> io::Error {
    let name = name.file_name().unwrap_or_default();
    let [first, second] = [first, second].map(|directory| directory.join(name));
    let (first, second) = (shown_path(&first), shown_path(&second));
    io::Error::other(format!(
        "{first} and {second} are the same table: move the one away that is not in use"
    ))
}

impl Vfs for PathsVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        if options.create_new {
            let file = self.inner.open(path, options)?;
            self.created(path);
            return Ok(file);
        }
        self.with(path, |path| self.inner.open(path, options))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(from, |from| self.inner.rename(from, to))?;
        self.forget(from);
        self.created(to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.with(path, |path| self.inner.remove(path))?;
        self.forget(path);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(from, |from| self.inner.hard_link(from, to))?;
        self.created(to);
        Ok(())
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(from, |from| self.inner.clone_file(from, to))?;
        self.created(to);
        Ok(())
    }

    /// Lists the database's own directory together with the tables in the others. Any other
    /// directory has its own names only.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = self.inner.list(directory)?;
        let others = self.others();
        if directory != self.home || others.is_empty() {
            return Ok(names);
        }
        let table = |name: &PathBuf| (self.number)(name.file_name()?.to_str()?);
        let mut places: BTreeMap<u64, usize> =
            names.iter().filter_map(table).map(|file| (file, 0)).collect();
        for (nth, other) in others.iter().enumerate() {
            let listing = self.inner.list(other).map_err(|source| {
                io::Error::new(source.kind(), InDirectory { directory: other.clone(), source })
            })?;
            for name in listing {
                let Some(file) = table(&name) else { continue };
                match places.entry(file) {
                    Entry::Vacant(free) => drop(free.insert(nth + 1)),
                    Entry::Occupied(taken) => {
                        let first = self.directory(*taken.get());
                        return Err(twice(&first, other, &name));
                    }
                }
                names.push(name);
            }
        }
        names.sort_unstable();
        let mut known = lock(&self.known);
        places.into_iter().for_each(|(file, place)| known.remember(file, place));
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(&self.found(path)?)
    }

    fn place_of(&self, path: &Path) -> PathBuf {
        let place = self.found(path).unwrap_or_else(|_| path.to_owned());
        self.inner.place_of(&place)
    }

    crate::pass_on! {
        inner: create_dir_all remove_dir sync_dir lock lock_holder mark disk
        open_files_limit free_space total_space
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::failed_in_device;
    use crate::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, VfsOperation};

    fn number(name: &str) -> Option<u64> {
        name.strip_suffix(".sat")?.parse().ok()
    }

    fn made() -> (MemVfs, PathsVfs) {
        let mem = MemVfs::new();
        for directory in ["/db", "/a", "/b"] {
            mem.create_dir_all(Path::new(directory)).unwrap();
        }
        let others = ["/a", "/b"].map(PathBuf::from);
        let paths = PathsVfs::new(Arc::new(mem.clone()), Path::new("/db"), others, number);
        (mem, paths)
    }

    fn create(vfs: &dyn Vfs, path: &str) {
        let file = vfs.open(Path::new(path), OpenOptions::CREATE).unwrap();
        file.write_at(path.as_bytes(), 0, IoClass::Client).unwrap();
    }

    fn content(vfs: &dyn Vfs, path: &str) -> Option<String> {
        let file = vfs.open(Path::new(path), OpenOptions::READ).ok()?;
        let mut bytes = [0; 64];
        let got = file.read_at(&mut bytes, 0, IoClass::Client).unwrap();
        Some(String::from_utf8(bytes[..got].to_vec()).unwrap())
    }

    fn names(vfs: &dyn Vfs, directory: &str) -> Vec<String> {
        let names = vfs.list(Path::new(directory)).unwrap().into_iter();
        names.map(|name| name.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_table_is_found_by_its_name_wherever_it_is() {
        let (mem, paths) = made();
        for path in ["/db/1.sat", "/a/2.sat", "/b/3.sat", "/a/x"] {
            create(&paths, path);
        }
        let again = PathsVfs::new(Arc::new(mem.clone()), Path::new("/db"), paths.others(), number);
        for vfs in [&paths, &again] {
            for (name, place) in [("1", "/db"), ("2", "/a"), ("3", "/b")] {
                let there = format!("{place}/{name}.sat");
                for asked in ["/db", "/a", "/b"].map(|place| format!("{place}/{name}.sat")) {
                    assert_eq!(content(vfs, &asked).as_ref(), Some(&there));
                    assert_eq!(vfs.place_of(Path::new(&asked)), Path::new(&there));
                    assert!(vfs.exists(Path::new(&asked)).unwrap());
                }
            }
            assert_eq!(names(vfs, "/db"), ["1.sat", "2.sat", "3.sat"]);
            assert_eq!(names(vfs, "/a"), ["2.sat", "x"]);
            // Other names and other directories are as they are.
            assert_eq!(content(vfs, "/db/x"), None);
            assert_eq!(content(vfs, "/elsewhere/2.sat"), None);
            assert_eq!(content(vfs, "/db/4.sat"), None);
        }
    }

    #[test]
    fn a_table_is_removed_linked_and_renamed_where_it_is() {
        let (mem, paths) = made();
        for path in ["/a/1.sat", "/b/2.sat", "/b/3.sat"] {
            create(&paths, path);
        }
        paths.remove(Path::new("/db/1.sat")).unwrap();
        assert!(names(&mem, "/a").is_empty() && content(&paths, "/db/1.sat").is_none());
        paths.hard_link(Path::new("/db/2.sat"), Path::new("/out")).unwrap();
        assert_eq!(content(&mem, "/out").as_deref(), Some("/b/2.sat"));
        paths.rename(Path::new("/db/3.sat"), Path::new("/a/3.sat")).unwrap();
        assert_eq!(content(&paths, "/db/3.sat").as_deref(), Some("/b/3.sat"));
        assert_eq!(names(&mem, "/a"), ["3.sat"]);
        // What another process removes and makes is noticed.
        mem.remove(Path::new("/a/3.sat")).unwrap();
        assert_eq!(content(&paths, "/db/3.sat"), None);
        create(&mem, "/b/3.sat");
        assert_eq!(content(&paths, "/db/3.sat").as_deref(), Some("/b/3.sat"));
    }

    #[test]
    fn an_error_of_another_directory_names_it_and_keeps_its_number() {
        let (mem, paths) = made();
        let faulty = FaultVfs::new(Arc::new(mem));
        faulty.add(FaultRule::new(Fault::Io).on(VfsOperation::List).path("/b"));
        let (home, others) = (Path::new("/db"), paths.others());
        let paths = PathsVfs::new(Arc::new(faulty), home, others, number);
        let error = paths.list(home).unwrap_err();
        assert!(error.to_string().contains("/b"), "{error}");
        assert!(failed_in_device(&error), "{error:?}");
    }

    #[test]
    fn a_directory_is_added_later() {
        let (mem, paths) = made();
        mem.create_dir_all(Path::new("/c")).unwrap();
        create(&mem, "/c/9.sat");
        assert_eq!(content(&paths, "/db/9.sat"), None);
        paths.add(Path::new("/c"));
        paths.add(Path::new("/c"));
        assert_eq!(content(&paths, "/db/9.sat").as_deref(), Some("/c/9.sat"));
        assert_eq!(paths.others().len(), 3);
        mem.remove(Path::new("/c/9.sat")).unwrap();
        mem.remove_dir(Path::new("/c")).unwrap();
        let error = paths.list(Path::new("/db")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/c"), "{error}");
    }
}
