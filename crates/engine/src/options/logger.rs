//! A function of the program that gets the lines of `LOG`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::LogLevel;

type Write = dyn Fn(LogLevel, &str) + Send + Sync;

/// Gets the lines that would be written to the file `LOG`, from a level on. RocksDB: `info_log`.
#[derive(Clone)]
pub struct Logger {
    pub(crate) level: LogLevel,
    write: Arc<Write>,
}

impl Logger {
    /// Creates a logger for lines of `level` and above. `write` is called by background threads of
    /// all databases whose options have the logger, and as such a database is opened or closed. It
    /// must not wait for the database. If it panics, the line is lost.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use sateen::{Db, LogLevel, Logger, Options};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// let kept = lines.clone();
    /// let logger = Logger::new(LogLevel::Info, move |_level, line| {
    ///     kept.lock().unwrap().push(line.to_owned());
    /// });
    /// let options = Options { logger: Some(logger), ..Options::default() };
    /// Db::open(directory.path(), options)?.close()?;
    /// assert!(lines.lock().unwrap().last().unwrap().contains("the database is closed"));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn new(level: LogLevel, write: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Logger {
        Logger { level, write: Arc::new(write) }
    }

    pub(crate) fn write(&self, level: LogLevel, line: &str) {
        // The program's code: its panic must not end a thread of the engine.
        let _panicked = catch_unwind(AssertUnwindSafe(|| (self.write)(level, line)));
    }
}

/// Two loggers are equal if they call the same function.
impl PartialEq for Logger {
    fn eq(&self, other: &Logger) -> bool {
        self.level == other.level && Arc::ptr_eq(&self.write, &other.write)
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger").field("level", &self.level).finish_non_exhaustive()
    }
}
