//! The errors of another store's library.

use std::fmt;

/// The result of the functions here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a library or a database could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument of the user is wrong. The text says which and why.
    Usage(String),
    /// The library or its store failed. The text says why.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) | Error::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// Returns advice for an error of a store; most errors need none.
pub(crate) fn explain(error: &str) -> &'static str {
    let error = error.to_lowercase();
    if error.contains("does not match existing comparator") {
        return "\nIts keys are in an order of its owner's; only keys in the order of their bytes \
                can be imported";
    }
    if error.contains("merge_operator") || error.contains("merge operator") {
        return "\nIt has merge operands, whose operator is missing. One of RocksDB's own can be \
                named: --source-options merge_operator=uint64add. With another, compact the \
                database completely in the program that has it: that leaves values";
    }
    if error.contains("wal_dir not found") {
        return "\nIts logs are elsewhere: say where, with --source-options wal_dir=DIRECTORY";
    }
    if error.contains("unsupported format_version") {
        return "\nA newer version wrote it: name a library that is no older";
    }
    if error.contains("compression") && (error.contains("not") || error.contains("unsupported")) {
        return "\nThe library was built without that compression: name one that has it";
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_what_is_missing() {
        let comparator = "Invalid argument: leveldb.BytewiseComparator: does not match existing \
                          comparator own.Order";
        assert!(explain(comparator).contains("order of their bytes"));
        let compression = "Not implemented: Unsupported compression method for this build: Snappy";
        assert!(explain(compression).contains("built without"));
        let merge = "Invalid argument: `merge_operator` must be set";
        assert!(explain(merge).contains("--source-options"));
        let newer =
            "Corruption: Corrupt or unsupported format_version: 7 in file /db/MANIFEST-000005";
        assert!(explain(newer).contains("newer version"));
        assert!(explain("Invalid argument: wal_dir not found: logs").contains("wal_dir="));
        assert_eq!(explain("IO error: No such file or directory"), "");
        assert_eq!(explain("Corruption: block checksum mismatch"), "");
    }
}
