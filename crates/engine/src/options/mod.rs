//! Every setting of the engine. `schema.rs` defines each option once: name, meaning, unit, default,
//! limits, RocksDB's name, and whether a running database can change it. Text ([`Options::set`],
//! the OPTIONS file, `--set` of the command and of the simulator), validation, the control plane,
//! the pages and the structs follow from it. `profile.rs` has the values of the profiles.
//!
//! What must stay true: a value that `get` prints, `set` takes back unchanged; an error names the
//! option, the value and what would have been accepted; `validate` passes for every profile.

mod calls;
mod choices;
mod column_family;
pub(crate) mod control;
mod define;
mod derived;
mod limits;
pub(crate) mod logger;
mod lookup;
pub(crate) mod paths;
mod profile;
mod regions;
mod sanitize;
mod schema;
mod stored;
pub(crate) mod table_filter;
mod text;
mod validate;

#[cfg(test)]
mod tests;

use sateen_store::base::error::Result;

use self::lookup::{bad_value, entries, find, fixed};

pub use self::calls::{CompactRangeOptions, FlushOptions, ReadOptions, WriteOptions};
pub use self::choices::{
    CompactionPriority, CompactionStyle, LogLevel, Preemption, RateLimitMode, StatisticsLevel,
    StopStyle, Tuner, TunerBatch, WalMode, WalRecovery, WriteController,
};
pub use self::define::OptionInfo;
pub use self::paths::TablePath;
pub use self::regions::Regions;
pub use self::schema::{ColumnFamilyOptions, Options};
pub use self::stored::StoredOptions;

/// The name of the column family that every database has.
pub const DEFAULT_COLUMN_FAMILY: &str = "default";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Options {
    /// The options of a named profile. A profile is nothing but option values.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such profile; the text lists those there are.
    pub fn profile(name: &str) -> Result<Options> {
        profile::options(name)
    }

    /// These options, and so many regions of the default column family and of those that are made
    /// with its options: see [`Regions::even`].
    ///
    /// # Errors
    /// As [`Regions::even`].
    pub fn regions(mut self, count: u32) -> Result<Options> {
        self.column_family.regions = Regions::even(count)?;
        Ok(self)
    }

    /// The names that [`Options::profile`] takes.
    #[must_use]
    pub fn profiles() -> &'static [&'static str] {
        profile::AVAILABLE
    }

    /// Every option of the database and of its column families.
    pub fn all() -> impl Iterator<Item = &'static OptionInfo> + Clone {
        Options::INFO.iter().chain(ColumnFamilyOptions::INFO)
    }

    /// The names of all options.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Options::all().map(|info| info.name)
    }

    /// What is known about an option, by our name or RocksDB's.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none of that name; the text has the nearest one.
    pub fn info(name: &str) -> Result<&'static OptionInfo> {
        find(Options::all(), name)
    }

    /// True if a running database can change the option.
    ///
    /// # Errors
    /// As [`Options::info`].
    pub fn is_mutable(name: &str) -> Result<bool> {
        Ok(Options::info(name)?.mutable)
    }

    /// The options in a list such as `memtable_bytes=128MiB;wal=sync`, the others by default.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub fn from_str_list(list: &str) -> Result<Options> {
        let mut options = Options::default();
        options.apply_str_list(list)?;
        Ok(options)
    }

    /// Sets the options in a list such as `memtable_bytes=128MiB;wal=sync`. Entries are separated
    /// by semicolons or line ends; lines that begin with `#` or `[` are skipped. On an error
    /// nothing is changed.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub fn apply_str_list(&mut self, list: &str) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in entries(list) {
            changed.set(name, value?)?;
        }
        *self = changed;
        Ok(())
    }

    /// Sets an option from text. Sizes are as `4096`, `64KiB` or `1G`, durations as `10ms`.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such option (the text has the nearest name) or the value is
    /// none of its (the text says what it takes).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let info = Options::info(name)?;
        if info.name == "profile" {
            *self = Options::profile(value.trim())?;
            return Ok(());
        }
        if info.column_family {
            return self.column_family.set(name, value);
        }
        if self.set_field(info, value.trim()) { Ok(()) } else { Err(bad_value(info, name, value)) }
    }

    /// Sets options of a running database: names and values, all or none of them.
    ///
    /// # Errors
    /// As [`Options::set`]; also if an option is fixed when a database is opened, or the result
    /// contradicts itself. Then nothing is changed.
    pub fn set_at_run_time(&mut self, changes: &[(&str, &str)]) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in changes {
            let info = Options::info(name)?;
            if !info.mutable {
                return Err(fixed(info));
            }
            changed.set(name, value)?;
        }
        changed.validate()?;
        *self = changed;
        Ok(())
    }

    /// An option as text; `set` takes it back unchanged.
    ///
    /// # Errors
    /// As [`Options::info`].
    pub fn get(&self, name: &str) -> Result<String> {
        let info = Options::info(name)?;
        if info.column_family { self.column_family.get(name) } else { Ok(self.get_field(info)) }
    }

    /// All options, one a line; [`Options::from_str_list`] reads them back.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from("[database]\n");
        for info in Options::INFO {
            text.push_str(&format!("{} = {}\n", info.name, self.get_field(info)));
        }
        text.push_str("\n[column family]\n");
        text.push_str(&self.column_family.to_text());
        text
    }

    /// Checks that the values are possible and do not contradict each other.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option, its value and what it must be.
    pub fn validate(&self) -> Result<()> {
        validate::database(self)
    }
}
