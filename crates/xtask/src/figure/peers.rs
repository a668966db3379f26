//! The libraries of other engines that runs need, and what stands for their paths in the words of a
//! run.

use std::path::{Path, PathBuf};

/// What stands for the path of RocksDB's library.
const ROCKSDB: &str = "{rocksdb}";

/// What stands for the path of LevelDB's library.
const LEVELDB: &str = "{leveldb}";

/// The paths of libraries that were found, beside what stands for them.
#[derive(Debug, Default)]
pub(super) struct Libraries(Vec<(&'static str, PathBuf)>);

impl Libraries {
    /// Finds the libraries that `words` name, and fetches RocksDB's if it is not there.
    pub(super) fn find<'a>(
        &mut self,
        root: &Path,
        words: impl Iterator<Item = &'a String> + Clone,
    ) -> Result<(), String> {
        type Find = fn(&Path) -> Result<PathBuf, String>;
        let all: [(&'static str, Find); 2] = [(ROCKSDB, rocksdb), (LEVELDB, |_| leveldb())];
        for (name, find) in all {
            let is_needed = words.clone().any(|word| word == name);
            if is_needed && self.path(name).is_none() {
                self.0.push((name, find(root)?));
            }
        }
        Ok(())
    }

    /// Returns the path that `word` stands for, if it is there.
    pub(super) fn path(&self, word: &str) -> Option<&Path> {
        self.0.iter().find(|(name, _)| *name == word).map(|(_, path)| path.as_path())
    }
}

/// Returns the path of RocksDB's library, and fetches it if it is not there.
fn rocksdb(root: &Path) -> Result<PathBuf, String> {
    if let Some(library) = std::env::var_os("SATEEN_ROCKSDB_LIB") {
        return Ok(PathBuf::from(library));
    }
    crate::fetch::usual_library(root).map_err(|problems| problems.join("; "))
}

/// Returns the path of LevelDB's library, which must be installed.
fn leveldb() -> Result<PathBuf, String> {
    if let Some(library) = std::env::var_os("SATEEN_LEVELDB_LIB") {
        return Ok(PathBuf::from(library));
    }
    let machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [machine.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    installed(&folders).ok_or_else(|| {
        format!(
            "there is no library of LevelDB in {}: run apt-get install libleveldb1d, or set \
             SATEEN_LEVELDB_LIB to a libleveldb.so that you have",
            folders.join(", ")
        )
    })
}

/// Finds LevelDB's library in the first of `folders` that has it.
fn installed(folders: &[&str]) -> Option<PathBuf> {
    let names = ["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.so"];
    let all = folders.iter().flat_map(|folder| names.map(|name| Path::new(folder).join(name)));
    all.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leveldb_is_found_by_its_usual_names() {
        let folder = std::env::temp_dir().join(format!("sateen-leveldb-{}", std::process::id()));
        let inside = folder.display().to_string();
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(installed(&["/no/such/folder", &inside]), None);
        std::fs::write(folder.join("libleveldb.so.1d"), "library").unwrap();
        let found = installed(&["/no/such/folder", &inside]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Some(folder.join("libleveldb.so.1d")));
    }

    #[test]
    fn words_without_a_peer_need_no_library() {
        let mut libraries = Libraries::default();
        let words = ["bench", "-n", "1k"].map(str::to_owned);
        libraries.find(Path::new("/no/such/root"), words.iter()).unwrap();
        assert_eq!(libraries.path(LEVELDB), None);
    }
}
