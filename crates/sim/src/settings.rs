//! Sets options of a policy by name: every option of a database, through its schema, and the few
//! settings that only a simulation has.

use sateen::Options;
use sateen_control::JobSlots;

use crate::config::Policy;
use crate::error::{Error, Result};

/// The settings of a simulation that are no options of a database, each with what it means.
pub const SETTINGS: &[(&str, &str)] = &[
    ("write_request_bytes", "the most bytes that a flush or compaction writes at once"),
    (
        "parallel_only_under_pressure",
        "more than one compaction runs only while writers are delayed, or near it; \
         a database decides it by `preemption`",
    ),
];

impl Policy {
    /// Sets one option of the database by its name or RocksDB's, from text as in
    /// [`Options::set`](sateen::Options::set), or one of the [`SETTINGS`]. A simulated machine has
    /// a thread for each job slot, so `background_threads` divides its number into slots as
    /// RocksDB's `max_background_jobs` does.
    ///
    /// # Errors
    /// If no option has this name (the text has the nearest one), or the option does not take this
    /// value (the text says what it takes).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "write_request_bytes" => {
                // An option of bytes reads them.
                let mut read = Options::default();
                let refused = |_| Error::usage(format!("{name} does not take {value:?}: a size"));
                read.set("slice_bytes_max", value).map_err(refused)?;
                self.write_request_bytes = read.slice_bytes_max;
                return Ok(());
            }
            "parallel_only_under_pressure" => {
                self.parallel_only_under_pressure = match value {
                    "true" | "on" => true,
                    "false" | "off" => false,
                    _ => {
                        let text = format!("{name} does not take {value:?}: true or false");
                        return Err(Error::usage(text));
                    }
                };
                return Ok(());
            }
            _ => {}
        }
        match Options::info(name)?.name {
            "profile" => {
                return Err(Error::usage(
                    "a profile is chosen as the policy, not set as an option",
                ));
            }
            "background_threads" => {
                self.options.set(name, value)?;
                self.divide_jobs();
            }
            _ => self.options.set(name, value)?,
        }
        Ok(())
    }

    /// Divides as many slots among flushes and compactions as there are threads.
    pub(crate) fn divide_jobs(&mut self) {
        let slots = JobSlots::divided(self.options.background_threads as usize);
        let count = |jobs| u32::try_from(jobs).unwrap_or(u32::MAX);
        self.options.max_background_flushes = count(slots.flushes);
        self.options.max_background_compactions = count(slots.compactions);
    }
}

impl From<sateen::Error> for Error {
    fn from(error: sateen::Error) -> Error {
        match error {
            sateen::Error::InvalidArgument(text) => Error::Usage(text),
            other => Error::Usage(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_set_by_its_names_to_what_it_is() {
        let mut policy = Policy::named("sateen", 1).unwrap();
        for info in Options::all().filter(|info| info.name != "profile") {
            let value = policy.options.get(info.name).unwrap();
            policy.set(info.name, &value).unwrap();
            policy.set(info.rocksdb.unwrap_or(info.name), &value).unwrap();
        }
        for ((name, _), value) in SETTINGS.iter().zip(["64K", "true"]) {
            policy.set(name, value).unwrap();
            assert!(policy.set(name, "colour").is_err(), "{name}");
        }
        assert_eq!(policy.write_request_bytes, 64 << 10);
        assert!(policy.set("profile", "silk").is_err());
    }

    #[test]
    fn values_arrive_and_nonsense_is_refused_with_the_option_named() {
        let mut policy = Policy::named("rocksdb", 1).unwrap();
        policy.set("write_buffer_size", "16M").unwrap();
        policy.set("rate_limit_auto_tune", "true").unwrap();
        policy.set("max_background_jobs", "8").unwrap();
        assert_eq!(policy.family().memtable_bytes, 16 << 20);
        let control = policy.control();
        assert!(control.rate_limiter.auto_tune);
        assert_eq!((control.max_background_flushes, control.max_background_compactions), (2, 6));
        for (name, value, says) in [
            ("memtable_bytes", "16Q", "memtable_bytes does not take \"16Q\": it takes a size"),
            ("levels", "many", "levels does not take \"many\""),
            ("level0_triger", "4", "the nearest is \"level0_trigger\""),
        ] {
            let error = policy.set(name, value).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
