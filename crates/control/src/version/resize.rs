//! A version with another number of levels: the options may change between two opens.

use std::sync::Arc;

use super::{LEVELS_MAX, Level, Version};

impl Version {
    /// The same tables in `levels` levels; `None` if a level that would go holds any.
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

    /// The round-robin cursors that are set, by level.
    pub fn compact_pointers(&self) -> impl Iterator<Item = (u8, &crate::UserKey)> {
        (0u8..).zip(&self.compact_pointers).filter_map(|(level, key)| Some((level, key.as_ref()?)))
    }
}
