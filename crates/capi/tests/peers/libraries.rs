//! The paths of the compared libraries.

use std::path::{Path, PathBuf};

/// Returns RocksDB's library.
pub(crate) fn theirs() -> Result<PathBuf, String> {
    match std::env::var_os("SATEEN_PEERS_LIBRARY") {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(fetched().ok_or("RocksDB's library is missing: run cargo xtask fetch-rocksdb")?),
    }
}

/// Returns the library that `cargo xtask fetch-rocksdb` fetched.
pub(crate) fn fetched() -> Option<PathBuf> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let files = std::fs::read_dir(peers).ok()?.flatten().map(|entry| entry.path());
    files
        .filter(|path| path.to_string_lossy().contains("rocksdb-11.8.1"))
        .find(|path| path.extension().is_some_and(|extension| extension == "so"))
}

/// Returns our library, which was built beside this test or one folder above.
pub(crate) fn ours() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let places = test.ancestors().skip(1).take(2);
    let found = places.map(|place| place.join("libsateen_rocksdb.so")).find(|path| path.exists());
    found.ok_or_else(|| "libsateen_rocksdb.so was not built".to_owned())
}
