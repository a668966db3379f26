//! The errors of a benchmark, divided into the user's and others.

use std::fmt;

/// The result of the functions here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a benchmark did not run, or did not finish.
#[derive(Debug)]
pub enum Error {
    /// An option is invalid. The text names it.
    Usage(String),
    /// The benchmark failed. The text says why.
    Failed(String),
    /// The user stopped it.
    Interrupted,
}

impl Error {
    /// Returns the error of the file or directory at `path`.
    pub(crate) fn file(path: &std::path::Path, error: impl fmt::Display) -> Error {
        Error::Failed(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) | Error::Failed(text) => f.write_str(text),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Failed(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Failed(error.to_string())
    }
}
