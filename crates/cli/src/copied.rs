//! What copies between Sateen and another store have in common, in either direction: counting,
//! progress, comparison and the summary.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::{Cursor, shown_path};
use sateen_peers::Cursor as SourceCursor;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::progress::Progress;

/// A batch is committed when its keys and values are about this large.
pub(crate) const BATCH_BYTES: u64 = 1 << 20;
/// Keys between two updates of the progress.
const LOOK_KEYS: u64 = 1024;

/// The part of a column family that is copied or compared already.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) family: String,
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
}

impl Copied {
    /// Counts a record, and returns its bytes.
    pub(crate) fn count(&mut self, key: &[u8], value: &[u8]) -> u64 {
        let bytes = (key.len() + value.len()) as u64;
        self.keys += 1;
        self.bytes += bytes;
        bytes
    }
}

/// Watches for an interrupt by the user.
pub(crate) struct Watch<'a> {
    interrupted: Arc<AtomicBool>,
    /// What is created.
    to: &'a Path,
}

impl Watch<'_> {
    pub(crate) fn begin(to: &Path) -> Result<Watch<'_>> {
        Ok(Watch { interrupted: interrupt::watch()?, to })
    }

    /// Updates the progress, and fails if the user interrupted the work.
    pub(crate) fn look(&self, done: &Copied, progress: &Progress) -> Result<()> {
        if done.keys.is_multiple_of(LOOK_KEYS) {
            progress.at_keys(done.keys, done.bytes);
        }
        if self.interrupted.load(Ordering::Relaxed) {
            let to = shown_path(self.to);
            let text =
                format!("interrupted: {to} was not created; run the same command to start again");
            return Err(Failure::interrupted(text));
        }
        Ok(())
    }

    /// Compares all records from the cursors on, about `keys` of them. Returns the first key that
    /// differs. The last `time_bytes` of `theirs` are no part of a value. `failed` makes the
    /// failure of reading `ours`.
    pub(crate) fn first_difference(
        &self,
        ours: &mut Cursor,
        theirs: &mut SourceCursor<'_>,
        time_bytes: usize,
        keys: u64,
        failed: impl Fn(sateen::Error) -> Failure,
    ) -> Result<Option<String>> {
        let progress = Progress::keys("comparing", Some(keys));
        let mut done = Copied::default();
        loop {
            let here = ours.valid().then(|| (ours.key(), ours.value()));
            let there = theirs.entry().map(|(key, value)| {
                let length = value.len().saturating_sub(time_bytes);
                (key, value.get(..length).unwrap_or_default())
            });
            if here != there {
                ours.status().map_err(failed)?;
                theirs.status()?;
                let key = here.or(there).map(|(key, _)| key.escape_ascii().to_string());
                return Ok(Some(key.unwrap_or_default()));
            }
            let Some((key, value)) = here else { break };
            done.count(key, value);
            self.look(&done, &progress)?;
            ours.next();
            theirs.advance();
        }
        ours.status().map_err(failed)?;
        theirs.status()?;
        Ok(None)
    }
}

/// Returns the keys and bytes of all column families.
pub(crate) fn total(copied: &[Copied]) -> (u64, u64) {
    copied.iter().fold((0, 0), |(keys, bytes), one| (keys + one.keys, bytes + one.bytes))
}

/// Returns the summary for `--json`.
pub(crate) fn summary(copied: &[Copied], seconds: f64, verified: bool) -> Value {
    let (keys, bytes) = total(copied);
    let family = |one: &Copied| json!({ "name": one.family, "keys": one.keys, "bytes": one.bytes });
    let families: Vec<_> = copied.iter().map(family).collect();
    json!({
        "column_families": families, "keys": keys, "bytes": bytes, "seconds": seconds,
        "verified": verified,
    })
}
