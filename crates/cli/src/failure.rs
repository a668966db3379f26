//! Errors of commands and their exit codes. A user sees a sentence, never a stack trace.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

/// Exit codes; `sateen --help` and docs/cli.md list them.
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_FOUND: u8 = 3;
/// Nothing is known to be damaged, but not everything could be read.
pub(crate) const UNREADABLE: u8 = 4;
/// The exit code that shells give a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// True if the reader of standard output is gone. No error is printed then.
    pub(crate) quiet: bool,
    /// True if a writer replaced files during the read. Opening the database again may help.
    pub(crate) behind: bool,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The command failed, or data is damaged.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, message: message.into(), quiet: false, behind: false }
    }

    /// The arguments are invalid.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: message.into(), quiet: false, behind: false }
    }

    /// The user stopped it.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure { code: INTERRUPTED, message: message.into(), quiet: false, behind: false }
    }

    /// The key, column family, property or backup does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure { code: NOT_FOUND, message: message.into(), quiet: false, behind: false }
    }

    /// Nothing is known to be damaged, but not everything could be read.
    pub(crate) fn unreadable(message: impl Into<String>) -> Failure {
        Failure { code: UNREADABLE, message: message.into(), quiet: false, behind: false }
    }

    /// A file of the user's, not of a database.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        Failure::failed(format!("{}: {error}", sateen::shown_path(path)))
    }

    /// Prints it on standard error. If that fails, there is no other place for it.
    pub(crate) fn report(&self, json: bool) {
        let mut errors = io::stderr().lock();
        let _nobody = if json {
            writeln!(errors, "{}", json!({ "error": self.message, "code": self.code }))
        } else {
            writeln!(errors, "sateen: {self}")
        };
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sateen::shown(&self.message))
    }
}

impl From<sateen::Error> for Failure {
    fn from(error: sateen::Error) -> Failure {
        let code = match error {
            sateen::Error::InvalidArgument(_) | sateen::Error::NoMergeOperator(_) => USAGE,
            sateen::Error::NoSuchColumnFamily(_) => NOT_FOUND,
            _ => FAILED,
        };
        let behind = matches!(error, sateen::Error::Behind { .. });
        Failure { code, message: error.to_string(), quiet: false, behind }
    }
}

impl From<sateen_bench::Error> for Failure {
    fn from(error: sateen_bench::Error) -> Failure {
        match error {
            sateen_bench::Error::Usage(text) => Failure::usage(text),
            sateen_bench::Error::Interrupted => Failure::interrupted(error.to_string()),
            sateen_bench::Error::Failed(text) => Failure::failed(text),
        }
    }
}

/// Errors without a name come from writing the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { code: 0, message: String::new(), quiet: true, behind: false };
        }
        // A key or value that the encoding of the output does not have.
        if error.kind() == io::ErrorKind::InvalidData {
            return Failure::failed(error.to_string());
        }
        Failure::failed(format!("writing the output: {error}"))
    }
}
