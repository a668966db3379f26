//! What operators ask of a database: why it was slow, and the hook for a crate above the engine
//! that serves running databases.
//!
//! 1. The program installs an [`Inspector`] once ([`set_inspector`]).
//! 2. Each database that is opened for writing and wants it is handed to the inspector
//!    (`begin_inspection`).
//! 3. What the inspector returns is dropped first when the database closes.
//!
//! Without an inspector nothing of this exists: no thread, no file, no test on a path of a client.

use std::sync::OnceLock;
use std::time::Duration;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::lock;

use super::Db;
use crate::explain::{Explanation, History};
use crate::inspection::Inspection;
use crate::runtime::RuntimeMetrics;

/// Seconds that the recorder can remember.
const EXPLAINED_SECONDS: u64 = 600;

static INSPECTOR: OnceLock<Box<dyn Inspector>> = OnceLock::new();

/// Serves databases to operators. The crate `sateen-inspect` has one.
pub trait Inspector: Send + Sync {
    /// Returns true if databases are served although their option `inspect` is off, as an
    /// environment variable may ask for.
    fn serves_all(&self) -> bool;

    /// Begins to serve a database that was just opened. The handle does not keep it open.
    ///
    /// # Errors
    /// The reason why it cannot be served. The open fails with it.
    fn begin(&self, db: Db) -> Result<Inspection>;
}

/// Installs the inspector of this process. Returns false if there is one already, which then stays.
pub fn set_inspector(inspector: Box<dyn Inspector>) -> bool {
    INSPECTOR.set(inspector).is_ok()
}

impl Db {
    /// Returns what the databases that share threads and scheduler with this one have and do
    /// together; see [`Runtime`](crate::Runtime). Of a runtime it is one device.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// assert!(db.runtime_metrics().databases >= 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn runtime_metrics(&self) -> RuntimeMetrics {
        let mut metrics = RuntimeMetrics::default();
        metrics.add(&self.core().background.driver.place.device);
        metrics
    }

    /// Says why the slowest seconds of the recent past were slow, as far as the flight recorder
    /// remembers them: half a minute of a busy database. A [`History`] that is fed every few
    /// seconds remembers more.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// print!("{}", db.explain());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let mut history = History::new(EXPLAINED_SECONDS as usize);
        history.take(&mut self.timeline());
        history.explain(Duration::from_secs(EXPLAINED_SECONDS))
    }

    /// Hands the database to the inspector, if it is wanted.
    pub(super) fn begin_inspection(&self) -> Result<()> {
        let core = self.core();
        let is_wanted = core.env.options.load().inspect;
        let inspector = INSPECTOR.get();
        if core.env.read_only || !(is_wanted || inspector.is_some_and(|it| it.serves_all())) {
            return Ok(());
        }
        let Some(inspector) = inspector else {
            let text = "inspect: this program has no inspector: add the crate sateen-inspect and \
                        call sateen_inspect::install() before the first open";
            return Err(Error::InvalidArgument(text.to_owned()));
        };
        let begun = inspector.begin(Db::borrowed(core.clone()))?;
        *lock(&core.inspection) = Some(begun);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Error, Options};

    #[test]
    fn without_an_inspector_the_option_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { inspect: true, ..Options::default() };
        let refused = Db::open(directory.path(), options.clone()).unwrap_err();
        assert!(matches!(&refused, Error::InvalidArgument(text) if text.starts_with("inspect:")));
        // The database was created and is closed again: another open finds it unlocked.
        drop(Db::open(directory.path(), Options::default()).unwrap());
        drop(Db::open_read_only(directory.path(), options).unwrap());
    }
}
