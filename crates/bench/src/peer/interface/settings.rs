//! Which of the benchmark's settings a store has, by its own account, and what follows from it.
//!
//! A setting that the user gives is followed or refused by name ([`About::check`]). One that the
//! user does not give gets the benchmark's default if the store can follow it, and otherwise the
//! store's ([`About::adapt`]). The WAL is the exception: its default is refused, too, because
//! durability must be the same for all engines.

use serde::{Deserialize, Serialize};

use crate::store::{Compression, StoreConfig, Wal};
use crate::{Error, Result};

/// Names that other engines have.
const TAKEN: [&str; 3] = ["sateen", "rocksdb", "leveldb"];

/// The settings of the interface.
const NAMES: [&str; 8] = [
    "memtable_size",
    "memtables",
    "block_cache",
    "bloom_bits",
    "compression",
    "wal",
    "direct",
    "jobs",
];

/// A setting that a store has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Setting {
    name: String,
    /// The possible values; empty for all.
    values: Vec<String>,
}

impl Setting {
    fn has(&self, value: &str) -> bool {
        self.values.is_empty() || self.values.iter().any(|has| has == value)
    }
}

/// What a library says of its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    name: String,
    settings: Vec<Setting>,
    /// The names of the store's own options.
    options: Vec<String>,
}

impl About {
    /// Parses the texts of a library.
    ///
    /// # Errors
    /// The text that has no meaning.
    pub(super) fn parse(
        name: &str,
        settings: &str,
        options: &str,
    ) -> std::result::Result<About, String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!(
                "sateen_peer_name returns {name:?}, which is not of small letters, digits and \
                 hyphens"
            ));
        }
        if TAKEN.contains(&name) {
            return Err(format!("sateen_peer_name returns {name}, which is another engine's"));
        }
        let settings: std::result::Result<Vec<Setting>, String> =
            parts(settings).map(setting).collect();
        let options = parts(options).map(str::to_owned).collect();
        Ok(About { name: name.to_owned(), settings: settings?, options })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// Returns the benchmark's settings that the store does not have.
    pub(super) fn absent(&self) -> Vec<&'static str> {
        NAMES.into_iter().filter(|name| self.setting(name).is_none()).collect()
    }

    /// Refuses what the store cannot do. `given` are the settings that the user gave, without
    /// defaults.
    pub(crate) fn check(&self, given: &StoreConfig) -> Result<()> {
        let name = &self.name;
        let refuse = |text: String| Err(Error::Usage(text));
        for setting in NAMES {
            let Some(value) = value_of(given, setting) else { continue };
            let flag = setting.replace('_', "-");
            match self.setting(setting) {
                Some(has) if has.has(&value) => {}
                Some(has) => {
                    return refuse(format!(
                        "--{flag} {value}: {name} has only {}",
                        has.values.join(", ")
                    ));
                }
                None => return refuse(format!("{name} has no --{flag}: leave it out")),
            }
        }
        if given.wal.is_none() && given.profile.is_none() {
            let off = self.setting("wal").is_none_or(|wal| wal.has("off"));
            if !off {
                let values = self.setting("wal").map(|wal| wal.values.join(" or --wal "));
                let values = values.unwrap_or_default();
                return refuse(format!("{name} always writes a WAL: add --wal {values}"));
            }
        }
        if given.peer_rate_limit.is_some() {
            return refuse(format!("{name} has no rate limiter: leave --peer-rate-limit out"));
        }
        if given.peer_cache.is_some() {
            return refuse(format!("{name} has one kind of cache: leave --peer-cache out"));
        }
        for assignment in parts(given.peer_options.as_deref().unwrap_or_default()) {
            self.check_own(assignment)?;
        }
        Ok(())
    }

    /// Refuses an option that the store does not have. It checks the value itself, when it opens.
    fn check_own(&self, assignment: &str) -> Result<()> {
        let refuse = |why: String| Err(Error::Usage(format!("--peer-options {assignment}: {why}")));
        let Some((option, _)) = assignment.split_once('=') else {
            return refuse("not of the form A=B".to_owned());
        };
        if self.options.iter().any(|has| has == option.trim()) {
            return Ok(());
        }
        let name = &self.name;
        match self.options.as_slice() {
            [] => refuse(format!("{name} has no options of its own")),
            has => refuse(format!("{name} has no such option; it has {}", has.join(", "))),
        }
    }

    /// Returns the settings that the store runs with. One that it does not have is absent.
    pub(crate) fn adapt(&self, mut config: StoreConfig) -> StoreConfig {
        let default = config.filled();
        for name in NAMES {
            let value = match self.setting(name) {
                None => None,
                Some(has) => value_of(&config, name)
                    .or_else(|| value_of(&default, name))
                    .filter(|value| has.has(value))
                    .or_else(|| has.values.first().cloned()),
            };
            // The values were parsed before.
            let _known = set(&mut config, name, value.as_deref());
        }
        config
    }

    /// Returns the text with which the database is opened.
    pub(super) fn text(&self, config: &StoreConfig) -> String {
        let adapted = self.adapt(config.clone());
        let shared = NAMES.into_iter().filter_map(|name| {
            let value = value_of(&adapted, name)?;
            Some(format!("{name}={value}"))
        });
        let own = parts(config.peer_options.as_deref().unwrap_or_default()).map(str::to_owned);
        shared.chain(own).collect::<Vec<_>>().join(";")
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim).filter(|part| !part.is_empty())
}

/// Parses `name` or `name=value|value`.
fn setting(text: &str) -> std::result::Result<Setting, String> {
    let (name, values) = text.split_once('=').unwrap_or((text, ""));
    let values: Vec<String> =
        values.split('|').filter(|value| !value.is_empty()).map(str::to_owned).collect();
    let wrong = |why: String| format!("sateen_peer_settings returns {text}: {why}");
    if !NAMES.contains(&name) {
        return Err(wrong(format!("the settings are {}", NAMES.join(", "))));
    }
    let mut any = StoreConfig::nothing();
    for value in &values {
        if set(&mut any, name, Some(value)).is_none() {
            return Err(wrong(format!("{name} has no value {value}")));
        }
    }
    Ok(Setting { name: name.to_owned(), values })
}

/// Returns the value of a setting, if the settings say it.
fn value_of(config: &StoreConfig, name: &str) -> Option<String> {
    Some(match name {
        "memtable_size" => config.memtable_bytes?.to_string(),
        "memtables" => config.memtables?.to_string(),
        "block_cache" => config.block_cache_bytes?.to_string(),
        "bloom_bits" => config.bloom_bits?.to_string(),
        "compression" => match config.compression? {
            Compression::None => "none".to_owned(),
            Compression::Lz4 => "lz4".to_owned(),
            Compression::Zstd => "zstd".to_owned(),
        },
        "wal" => match config.wal? {
            Wal::Off => "off".to_owned(),
            Wal::Buffered => "buffered".to_owned(),
            Wal::Sync => "sync".to_owned(),
        },
        "direct" => config.direct?.to_string(),
        "jobs" => config.jobs?.to_string(),
        _ => return None,
    })
}

/// Sets a setting to a value, or makes it absent. Returns `None` if there is no such value.
fn set(config: &mut StoreConfig, name: &str, value: Option<&str>) -> Option<()> {
    match name {
        "memtable_size" => config.memtable_bytes = parsed(value)?,
        "memtables" => config.memtables = parsed(value)?,
        "block_cache" => config.block_cache_bytes = parsed(value)?,
        "bloom_bits" => config.bloom_bits = parsed(value)?,
        "compression" => {
            config.compression = match value {
                None => None,
                Some("none") => Some(Compression::None),
                Some("lz4") => Some(Compression::Lz4),
                Some("zstd") => Some(Compression::Zstd),
                Some(_) => return None,
            };
        }
        "wal" => {
            config.wal = match value {
                None => None,
                Some("off") => Some(Wal::Off),
                Some("buffered") => Some(Wal::Buffered),
                Some("sync") => Some(Wal::Sync),
                Some(_) => return None,
            };
        }
        "direct" => config.direct = parsed(value)?,
        "jobs" => config.jobs = parsed(value)?,
        _ => return None,
    }
    Some(())
}

/// Parses a value that may be absent. Returns `None` if it has no meaning.
fn parsed<T: std::str::FromStr>(value: Option<&str>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    }
}
