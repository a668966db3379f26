//! Options of a column family as text, and changed while a database runs.

use sateen_store::base::error::{Error, Result};

use super::lookup::{bad_value, entries, find, fixed};
use super::{ColumnFamilyOptions, validate};

impl ColumnFamilyOptions {
    /// Sets an option from text, as [`Options::set`](crate::Options::set).
    ///
    /// # Errors
    /// As [`Options::set`](crate::Options::set).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let info = find(ColumnFamilyOptions::INFO.iter(), name)?;
        if self.set_field(info, value.trim()) { Ok(()) } else { Err(bad_value(info, name, value)) }
    }

    /// Sets options of a running database, as
    /// [`Options::set_at_run_time`](crate::Options::set_at_run_time).
    ///
    /// # Errors
    /// As [`Options::set_at_run_time`](crate::Options::set_at_run_time).
    pub fn set_at_run_time(&mut self, changes: &[(&str, &str)]) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in changes {
            let info = find(ColumnFamilyOptions::INFO.iter(), name)?;
            if !info.mutable {
                return Err(fixed(info));
            }
            changed.set(name, value)?;
        }
        if changed.ttl.is_some() != self.ttl.is_some() {
            return Err(Error::InvalidArgument(
                "option ttl: whether values have the time of their write is decided when the \
                 column family is created"
                    .into(),
            ));
        }
        changed.validate()?;
        *self = changed;
        Ok(())
    }

    /// Sets the options in a list, as [`Options::apply_str_list`](crate::Options::apply_str_list).
    ///
    /// # Errors
    /// As [`Options::set`](crate::Options::set).
    pub fn apply_str_list(&mut self, list: &str) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in entries(list) {
            changed.set(name, value?)?;
        }
        *self = changed;
        Ok(())
    }

    /// An option as text.
    ///
    /// # Errors
    /// As [`Options::info`](crate::Options::info).
    pub fn get(&self, name: &str) -> Result<String> {
        Ok(self.get_field(find(ColumnFamilyOptions::INFO.iter(), name)?))
    }

    /// All options, one a line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for info in ColumnFamilyOptions::INFO {
            text.extend([info.name, " = ", &self.get_field(info), "\n"]);
        }
        text
    }

    /// Checks that the values are possible and do not contradict each other.
    ///
    /// # Errors
    /// As [`Options::validate`](crate::Options::validate).
    pub fn validate(&self) -> Result<()> {
        validate::column_family(self)
    }
}
