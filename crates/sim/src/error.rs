//! The errors of a simulation.

use std::fmt;

/// The result of the functions here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a simulation did not run or did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A setting is invalid. The text names it.
    Usage(String),
    /// The control plane and the model disagree, which is a bug in one of them.
    Broken(String),
}

impl Error {
    pub(crate) fn usage(text: impl Into<String>) -> Error {
        Error::Usage(text.into())
    }

    pub(crate) fn broken(text: impl Into<String>) -> Error {
        Error::Broken(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) => f.write_str(text),
            Error::Broken(text) => write!(f, "the simulation is broken: {text}"),
        }
    }
}

impl std::error::Error for Error {}
