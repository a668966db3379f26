//! The adapter of this project's own engine.

use std::path::Path;

use crate::store::{Store, StoreConfig};
use crate::{Error, Result};

/// Opens the database in `directory`.
pub(crate) fn open(_directory: &Path, _config: &StoreConfig) -> Result<Box<dyn Store>> {
    Err(Error::Failed("this build has no engine of its own yet: use --peer alone".to_owned()))
}
