//! Where the libraries of other engines are that tests run. A test without its library prints:
//! SKIPPED.

use std::fs;
use std::path::{Path, PathBuf};

/// RocksDB's library: the one of `cargo xtask fetch-rocksdb`, or `SATEEN_ROCKSDB`.
pub(crate) fn rocksdb() -> Option<PathBuf> {
    let fetched = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
        let entries = fs::read_dir(root).ok()?.map(|entry| entry.unwrap().path());
        let mut of_this_version = entries.filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("rocksdb-11.8.1") && name.ends_with(".so")
        });
        of_this_version.next()
    };
    found("rocksdb", std::env::var_os("SATEEN_ROCKSDB").map(Into::into).or_else(fetched))
}

/// LevelDB's library: an installed one, or `SATEEN_LEVELDB`.
pub(crate) fn leveldb() -> Option<PathBuf> {
    let installed = || {
        let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
        let machine = Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
        let names = ["libleveldb.so", "libleveldb.so.1d", "libleveldb.so.1"];
        let all = folders.into_iter().chain([machine]);
        let mut all = all.flat_map(|folder| names.map(|name| folder.join(name)));
        all.find(|path| path.exists())
    };
    found("leveldb", std::env::var_os("SATEEN_LEVELDB").map(Into::into).or_else(installed))
}

fn found(name: &str, library: Option<PathBuf>) -> Option<PathBuf> {
    if library.is_none() {
        eprintln!("SKIPPED: there is no library of {name}");
    }
    library
}
