//! The settings of the benchmark in LevelDB's words, and those that LevelDB does not have.

use std::ffi::c_int;

use crate::store::{Compression, PeerCache, StoreConfig, Wal};
use crate::units::parse_bytes;
use crate::{Error, Result};

/// Memtables of LevelDB: one that is written, and one that is flushed.
const MEMTABLES: u32 = 2;

/// Flushes and compactions at a time: one thread does both.
const JOBS: u32 = 1;

/// Refuses what LevelDB cannot do. `given` are the settings that the user gave, without defaults.
pub(crate) fn check(given: &StoreConfig) -> Result<()> {
    let refuse = |text: &str| Err(Error::Usage(format!("LevelDB {text}")));
    if given.wal == Some(Wal::Off) || (given.wal.is_none() && given.profile.is_none()) {
        return refuse("always writes a WAL: add --wal buffered or --wal sync");
    }
    if given.direct == Some(true) {
        return refuse("has no direct I/O: leave --direct out");
    }
    if given.memtables.is_some_and(|count| count != MEMTABLES) {
        return refuse("has two memtables: --memtables must be 2");
    }
    if given.jobs.is_some_and(|count| count != JOBS) {
        return refuse("has one background thread: --jobs must be 1");
    }
    if !matches!(given.compression, None | Some(Compression::None)) {
        return refuse(
            "has no LZ4 and no zstd: leave --compression out, or add --peer-options \
             compression=snappy",
        );
    }
    if given.peer_rate_limit.is_some() {
        return refuse("has no rate limiter: leave --peer-rate-limit out");
    }
    if given.peer_cache == Some(PeerCache::HyperClock) {
        return refuse("has an LRU cache only: --peer-cache must be lru");
    }
    given.peer_options.as_deref().map_or(Ok(()), |text| own(text).map(drop))
}

/// Returns the settings with the values that LevelDB has in place of those that it cannot change.
pub(crate) fn adapt(config: StoreConfig) -> StoreConfig {
    StoreConfig {
        memtables: Some(MEMTABLES),
        jobs: Some(JOBS),
        direct: Some(false),
        wal: Some(config.wal.unwrap_or(Wal::Buffered)),
        peer_cache: Some(PeerCache::Lru),
        ..config
    }
}

/// One of LevelDB's own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    BlockRestartInterval(c_int),
    BlockSize(u64),
    Compression(c_int),
    MaxFileSize(u64),
    MaxOpenFiles(c_int),
    ParanoidChecks(bool),
    WriteBufferSize(u64),
}

/// Parses `A=B;C=D`.
pub(super) fn own(text: &str) -> Result<Vec<Own>> {
    let assignments = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    assignments.map(|assignment| one(assignment).map_err(Error::Usage)).collect()
}

fn one(assignment: &str) -> std::result::Result<Own, String> {
    let refuse = |why: &str| format!("--peer-options {assignment}: {why}");
    let (name, value) = assignment.split_once('=').ok_or_else(|| refuse("not of the form A=B"))?;
    let (name, value) = (name.trim(), value.trim());
    let bytes = || parse_bytes(value).map_err(|problem| refuse(&problem));
    let number = || value.parse::<c_int>().map_err(|_| refuse("not a number"));
    Ok(match name {
        "block_restart_interval" => Own::BlockRestartInterval(number()?),
        "block_size" => Own::BlockSize(bytes()?),
        "compression" => match value {
            "none" => Own::Compression(0),
            "snappy" => Own::Compression(1),
            _ => return Err(refuse("LevelDB has none and snappy")),
        },
        "max_file_size" => Own::MaxFileSize(bytes()?),
        "max_open_files" => Own::MaxOpenFiles(number()?),
        "paranoid_checks" => match value {
            "true" | "1" => Own::ParanoidChecks(true),
            "false" | "0" => Own::ParanoidChecks(false),
            _ => return Err(refuse("neither true nor false")),
        },
        "write_buffer_size" => Own::WriteBufferSize(bytes()?),
        _ => {
            return Err(refuse(
                "LevelDB has no such option; it has block_restart_interval, block_size, \
                 compression, max_file_size, max_open_files, paranoid_checks, write_buffer_size",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leveldb_cannot_do_is_refused_by_name() {
        let buffered = || StoreConfig { wal: Some(Wal::Buffered), ..StoreConfig::nothing() };
        assert!(check(&buffered()).is_ok());
        let refused = [
            (StoreConfig { wal: Some(Wal::Off), ..buffered() }, "--wal buffered"),
            (StoreConfig { wal: None, ..buffered() }, "--wal buffered"),
            (StoreConfig { direct: Some(true), ..buffered() }, "--direct"),
            (StoreConfig { memtables: Some(3), ..buffered() }, "--memtables"),
            (StoreConfig { jobs: Some(4), ..buffered() }, "--jobs"),
            (StoreConfig { compression: Some(Compression::Zstd), ..buffered() }, "--compression"),
            (StoreConfig { peer_rate_limit: Some(1), ..buffered() }, "--peer-rate-limit"),
            (StoreConfig { peer_cache: Some(PeerCache::HyperClock), ..buffered() }, "--peer-cache"),
            (StoreConfig { peer_options: Some("a=1".to_owned()), ..buffered() }, "max_file_size"),
        ];
        for (config, part) in refused {
            let error = check(&config).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let of_profile =
            StoreConfig { wal: None, profile: Some("leveldb".to_owned()), ..buffered() };
        assert!(check(&of_profile).is_ok());
        let adapted = adapt(of_profile);
        assert_eq!((adapted.wal, adapted.jobs), (Some(Wal::Buffered), Some(1)));
    }

    #[test]
    fn options_of_leveldb() {
        let parsed = own("max_file_size=8M; block_size=4096;compression=snappy;").unwrap();
        let wanted = [Own::MaxFileSize(8 << 20), Own::BlockSize(4096), Own::Compression(1)];
        assert_eq!(parsed, wanted);
        for (text, part) in [
            ("max_file_size", "A=B"),
            ("block_size=x", "block_size=x"),
            ("compression=zstd", "snappy"),
            ("max_open_files=many", "number"),
            ("level_multiplier=4", "no such option"),
        ] {
            let error = own(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("--peer-options"), "{error}");
        }
    }
}
