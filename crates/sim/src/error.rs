//! What can go wrong in a simulation.

use std::fmt;

/// The result of everything fallible here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a simulation did not run, or did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// What was asked for makes no sense; the text names the setting.
    Usage(String),
    /// The control plane and the world disagree: a mistake in one of them.
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
