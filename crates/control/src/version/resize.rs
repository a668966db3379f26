//! Versions with another number of levels, because options may change between two opens.

use std::sync::Arc;

use super::{LEVELS_MAX, Level, Version};
use crate::types::UserKey;

impl Version {
    /// Returns the same tables in `levels` levels; `None` if a level that would go has any.
    #[must_use]
    pub fn with_levels(&self, levels: usize) -> Option<Version> {
        let levels = levels.clamp(1, LEVELS_MAX);
        if self.levels.iter().skip(levels).any(|level| !level.is_empty()) {
            return None;
        }
        let mut resized = self.clone();
        resized.levels.resize_with(levels, Arc::<Level>::default);
        resized.compact_pointers.resize(levels, None);
        Some(resized)
    }

    /// Returns this version with everything below level 0 moved up by `by` levels. The levels that
    /// go must be empty.
    #[must_use]
    pub fn lifted(mut self, by: usize) -> Version {
        let levels = self.levels.len();
        self.levels.drain(1..=by.min(levels - 1));
        self.levels.resize_with(levels, Arc::<Level>::default);
        self.compact_pointers.drain(1..=by.min(levels - 1));
        self.compact_pointers.resize(levels, None);
        self
    }

    /// Returns the round-robin cursors that are set, by level.
    pub fn compact_pointers(&self) -> impl Iterator<Item = (u8, &UserKey)> {
        (0u8..).zip(&self.compact_pointers).filter_map(|(level, key)| Some((level, key.as_ref()?)))
    }
}
