//! The values of a cursor's entries, where they are not in the block.
//!
//! 1. `join_value` runs at each move. It decides how the current value is shown, and reads it then
//!    if the mode says so; otherwise `load_value` does.
//! 2. `fetch` reads a value. A scan that is expected to go on reads the values of the next entries
//!    of the block with it, all at the same time ([`GatheredValues`]). Values that follow each
//!    other in their file are read as chunks instead (`ValueScan`).

use sateen_control::{UserKey, ValueKind};

use super::{Shown, TableIter, ValueMode, payload};
use crate::base::error::{Error, Result};
use crate::base::{key, waited};
use crate::table::OnMiss;
use crate::table::separated::{Separated, ValuePlace};
use crate::table::value_files::ValuesFile;

impl TableIter {
    /// Reads the current value if the block does not contain it.
    #[inline]
    pub(super) fn join_value(&mut self) -> Result<()> {
        if self.separates && self.cursor.valid() { self.join() } else { Ok(()) }
    }

    /// Finds the current value, and reads it if the mode says so.
    fn join(&mut self) -> Result<()> {
        self.shown = Shown::Stored;
        if key::kind(self.cursor.key()) != Some(ValueKind::Put) {
            return Ok(());
        }
        let stored = payload(&self.data, &self.buffers).get(self.cursor.value());
        let stored = stored.unwrap_or_default();
        let mode = self.options.values;
        if !self.table.separates_values() {
            // Only encoded values come here.
            self.separated.clear();
            Separated::Here(stored).encode(&mut self.separated);
            self.shown = Shown::Made;
            return Ok(());
        }
        let at = self.table.index.handle(self.block).map_or(0, |handle| handle.offset);
        match (self.table.decode(stored, at)?, mode) {
            (Separated::Here(_) | Separated::InFile(..), ValueMode::Encoded) => Ok(()),
            (Separated::Here(_), _) => {
                self.shown = Shown::BehindByte;
                Ok(())
            }
            (_, ValueMode::OnDemand) => {
                self.shown = Shown::Elsewhere;
                Ok(())
            }
            (_, ValueMode::Join) => self.fetch(),
            (Separated::InLog(_), ValueMode::Encoded) => {
                self.fetch()?;
                self.separated.insert(0, 0);
                debug_assert!(matches!(
                    Separated::decode(&self.separated),
                    Some(Separated::Here(_))
                ));
                Ok(())
            }
        }
    }

    /// Reads the current value from another file.
    #[cold]
    pub(super) fn fetch(&mut self) -> Result<()> {
        let stored = payload(&self.data, &self.buffers).get(self.cursor.value());
        let at = self.table.index.handle(self.block).map_or(0, |handle| handle.offset);
        let decoded = self.table.decode(stored.unwrap_or_default(), at)?;
        if self.options.on_miss == OnMiss::Refuse {
            return Err(Error::NotInMemory);
        }
        let class = self.options.class;
        let _loads = waited::load();
        if let Some((file, place)) = self.table.place_of(&decoded, at, class)? {
            self.gathered.note();
            if !self.take_gathered(&file, place) {
                self.scan.read(&file, place, class, &mut self.separated)?;
            }
        }
        self.shown = Shown::Made;
        Ok(())
    }

    /// Takes the current value from those that were gathered, or gathers it with the next ones.
    /// Returns false if it is to be read alone.
    fn take_gathered(&mut self, file: &ValuesFile, place: ValuePlace) -> bool {
        if self.options.values != ValueMode::OnDemand {
            return false;
        }
        if self.gathered.take(file, place, &mut self.separated) {
            return true;
        }
        let wanted = self.gathered.wanted();
        if wanted < 2 {
            return false;
        }
        let places = self.next_places(wanted);
        self.gathered.gather(places, self.options.class);
        self.gathered.take(file, place, &mut self.separated)
    }

    /// Returns the places of values from the current entry on, at most `count`, within the block
    /// and the bounds. What cannot be read is left out: its own move will meet the error.
    fn next_places(&self, count: usize) -> Vec<(ValuesFile, ValuePlace)> {
        let block = payload(&self.data, &self.buffers);
        let at = self.table.index.handle(self.block).map_or(0, |handle| handle.offset);
        let mut cursor = self.cursor.clone();
        let mut places = Vec::with_capacity(count);
        while cursor.valid() && places.len() < count {
            let beyond = |upper: &UserKey| *upper <= *key::user_key(cursor.key());
            if self.options.bounds.1.as_ref().is_some_and(beyond) {
                break;
            }
            let stored = block.get(cursor.value()).unwrap_or_default();
            if key::kind(cursor.key()) == Some(ValueKind::Put)
                && let Some(separated) = Separated::decode(stored)
                && let Ok(Some(place)) = self.table.place_of(&separated, at, self.options.class)
            {
                places.push(place);
            }
            if cursor.next(block).is_err() {
                break;
            }
        }
        places
    }
}
