//! An unreadable file is not a damaged file: an error of the environment ends the repair.
//!
//! Two places ensure that. [`Repair::loss`] never counts such an error as a loss. The file system
//! of the repair notes each such error, also one that a caller ignores, and
//! [`Repair::everything_was_read`] checks these notes before the repair publishes anything.

use std::path::Path;

use sateen_store::base::error::{CorruptionKind, Error, Result};

use super::Repair;

impl Repair {
    /// Returns an error if the operating system refused to read something.
    pub(super) fn everything_was_read(&self) -> Result<()> {
        self.watched.first_error().map_or(Ok(()), Err)
    }

    /// Returns an error if a part of the file was given up. The zeros in its place may look like a
    /// torn tail, which is no damage.
    pub(super) fn nothing_was_given_up(&self, path: &Path) -> Result<()> {
        let given_up = self.watched.given_up();
        let Some((_, _, offset)) = given_up.iter().find(|(of, ..)| of == path) else {
            return Ok(());
        };
        let kind = CorruptionKind::Malformed("the device cannot read it");
        Err(Error::corruption(path, *offset, kind))
    }

    /// Notes what is damaged or missing, once.
    ///
    /// # Errors
    /// Returns `error` itself if it is an error of the environment, which says nothing about the
    /// data.
    pub(super) fn loss(&mut self, error: Error) -> Result<()> {
        if error.is_environment() {
            return Err(error);
        }
        if let Error::IncompatibleDirectory { reason, .. } = &error
            && reason.starts_with("written in a newer format:")
        {
            self.newer.get_or_insert(error.clone());
        }
        let text = error.to_string();
        if !self.report.losses.iter().any(|told| told.to_string() == text) {
            self.report.losses.push(error);
        }
        Ok(())
    }

    /// Adds a remark to the report.
    pub(super) fn note(&mut self, text: String) {
        self.report.notes.push(text);
    }

    /// Notes which parts of files the device could not read, if such parts are given up.
    pub(super) fn tell_what_was_given_up(&mut self) {
        for (path, pages, first) in self.watched.given_up() {
            let pages = if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
            self.note(format!(
                "{}: the device could not read {pages} of 4096 bytes, the first at offset {first}: \
                 given up",
                path.display()
            ));
        }
    }
}
