//! Options without a counterpart that promise something about data, durability, order or errors. A
//! value whose promise Sateen cannot keep is refused by its name: when a database is opened, a
//! column family created, an option of a running database set, or the call made that it is for.
//! `docs/c_abi/refused.md` has the table. Options of speed and space without a counterpart accept
//! any value.

use std::ffi::c_uchar;

use sateen::{Db, Error, Options, ReadOptions};

use crate::abi::missing;
use crate::calls::{LOST_SNAPSHOT, rocksdb_readoptions_t, rocksdb_writeoptions_t};
use crate::compaction_styles::check_ttl;
use crate::option_values::check_codes;
use crate::options::rocksdb_options_t;
use crate::settings::{Setting, Settings};
use crate::value_codes::keep_text;

/// An option whose value is a number: the accepted values, and the reason for refusing others.
struct Promise {
    option: &'static str,
    takes: fn(i64) -> bool,
    why: &'static str,
}

const fn off(option: &'static str, why: &'static str) -> Promise {
    Promise { option, takes: |value| value == 0, why }
}

/// The options of databases and column families.
const OF_OPTIONS: &[Promise] = &[
    off("allow_ingest_behind", "files are ingested above all other data"),
    off("cf_allow_ingest_behind", "files are ingested above all other data"),
    off("best_efforts_recovery", "rocksdb_repair_db repairs a database with missing files"),
    off("paranoid_file_checks", "the keys of a new table are not read back"),
    off("verify_output_flags", "the keys of a new table are not read back"),
    off("paranoid_memory_checks", "the order of keys in a memtable is not checked by reads"),
    off("memtable_protection_bytes_per_key", "entries of memtables have no checksums"),
    off("memtable_verify_per_key_checksum_on_seek", "entries of memtables have no checksums"),
    off("block_protection_bytes_per_key", "entries of cached blocks have no checksums"),
    off("disallow_memtable_writes", "every column family takes writes"),
    off("verify_manifest_content_on_close", "the manifest is verified at the next open"),
    Promise {
        option: "universal_compaction_options.compression_size_percent",
        takes: |percent| percent < 0,
        why: "levels are compressed by compression_per_level",
    },
    off("universal_compaction_options.incremental", "a merge takes whole runs"),
    off("fifo_compaction_options.max_data_files_size", "max_table_files_size counts values, too"),
    off("fifo_compaction_options.use_kv_ratio_compaction", "keys and values count alike"),
    Promise {
        option: "wal_recovery_mode",
        takes: |mode| mode != 3,
        why: "an open does not skip damaged WAL records, rocksdb_repair_db does",
    },
];

/// The options of reads.
const OF_READS: &[Promise] = &[Promise {
    option: "read_tier",
    takes: |tier| tier < 2,
    why: "reads see memtables and all tables",
}];

/// The options of reads of many keys.
const OF_MANY: &[Promise] = &[Promise {
    option: "value_size_soft_limit",
    // All 64 bits set means no limit.
    takes: |limit| limit < 0,
    why: "all values are returned, whatever their total size",
}];

/// The options of writes.
const OF_WRITES: &[Promise] =
    &[off("protection_bytes_per_key", "entries of batches have no checksums")];

fn refused(option: &str, value: &str, why: &str) -> Error {
    Error::InvalidArgument(format!("{option}={value} is not implemented: {why}"))
}

fn keep(promises: &[Promise], settings: &Settings) -> sateen::Result<()> {
    for Promise { option, takes, why } in promises {
        if i64::get(settings, option).is_some_and(|value| !takes(value)) {
            let value = settings.shown(option).unwrap_or_default();
            return Err(refused(option, &value, why));
        }
    }
    Ok(())
}

impl rocksdb_options_t {
    /// Returns [`rocksdb_options_t::checked`] if the options promise nothing that is not kept.
    pub(crate) fn promised(&self) -> sateen::Result<Options> {
        keep(OF_OPTIONS, &self.2)?;
        check_codes(&self.2)?;
        check_ttl(self)?;
        let mut options = self.checked()?;
        options.log_head = crate::info_log::head(self);
        Ok(options)
    }
}

/// Returns the options at `options` if their promises are kept; see
/// [`rocksdb_options_t::promised`].
///
/// # Safety
/// The contract of the crate.
pub(crate) unsafe fn promised(options: *const rocksdb_options_t) -> sateen::Result<Options> {
    // SAFETY: the caller's promise.
    unsafe { options.as_ref() }.ok_or_else(|| missing("the options"))?.promised()
}

/// Checks that the promise of a running database's option is kept.
pub(crate) fn check_change(name: &str, value: &str) -> sateen::Result<()> {
    let Some(promise) = OF_OPTIONS.iter().find(|promise| promise.option == name) else {
        return Ok(());
    };
    let mut settings = Settings::default();
    keep_text(&mut settings, promise.option, value);
    keep(OF_OPTIONS, &settings)
}

/// Objects that RocksDB makes from names in option strings and this library does not.
const MADE_BY_NAME: &[(&str, &[&str])] = &[
    ("comparator", &["rocksdb.ReverseBytewiseComparator"]),
    ("compaction_filter", &["RemoveEmptyValueCompactionFilter"]),
    (
        "merge_operator",
        &[
            "put",
            "put_v1",
            "PutOperator",
            "uint64add",
            "UInt64AddOperator",
            "stringappend",
            "StringAppendOperator",
            "stringappendtest",
            "StringAppendTESTOperator",
            "max",
            "MaxOperator",
            "bytesxor",
            "BytesXOR",
            "sortlist",
            "MergeSortOperator",
        ],
    ),
];

/// Refuses an option of an option string from which RocksDB would make an object. A comparator or
/// an operator must be set by its function.
pub(crate) fn check_text(name: &str, value: &str) -> sateen::Result<()> {
    let id = value.split(';').find_map(|part| part.trim().strip_prefix("id=")).unwrap_or(value);
    let known = MADE_BY_NAME.iter().find(|(option, _)| *option == name);
    if known.is_some_and(|(_, made)| made.contains(&id)) {
        return Err(Error::InvalidArgument(format!(
            "{name}={id} is not implemented in an option string: set it with \
             rocksdb_options_set_{name}"
        )));
    }
    Ok(())
}

/// Returns the options of a read if their promises are kept.
///
/// # Safety
/// The contract of the crate.
pub(crate) unsafe fn read_options(
    options: *const rocksdb_readoptions_t,
) -> sateen::Result<ReadOptions> {
    // SAFETY: the caller's promise.
    let options = unsafe { options.as_ref() }.ok_or_else(|| missing("the read options"))?;
    keep(OF_READS, &options.1)?;
    if bool::get(&options.1, LOST_SNAPSHOT).unwrap_or(false) {
        let text = "the transaction whose snapshot the options have is freed";
        return Err(Error::InvalidArgument(text.into()));
    }
    let deadline = u64::get(&options.1, "deadline").unwrap_or(0);
    if deadline > 0 && now_micros() >= deadline {
        return Err(Error::TimedOut("the read"));
    }
    Ok(options.0.clone())
}

/// Returns the options of a read of many keys if their promises are kept.
///
/// # Safety
/// The contract of the crate.
pub(crate) unsafe fn many_options(
    options: *const rocksdb_readoptions_t,
) -> sateen::Result<ReadOptions> {
    // SAFETY: the caller's promise.
    unsafe {
        options.as_ref().map_or(Ok(()), |options| keep(OF_MANY, &options.1))?;
        read_options(options)
    }
}

/// Fails if `refuse` is not 0 and a WAL has writes that no table has. `db` was opened for reading.
pub(crate) fn check_log(db: &Db, refuse: c_uchar) -> sateen::Result<()> {
    let in_log = |name: &String| {
        let entries = db
            .column_family(name)
            .and_then(|family| family.property("rocksdb.num-entries-active-mem-table"));
        entries.is_some_and(|entries| entries != "0")
    };
    if refuse == 0 || !db.column_families().iter().any(in_log) {
        return Ok(());
    }
    let text = "error_if_wal_file_exists is set, but the WAL has writes that no table has";
    Err(Error::InvalidArgument(text.into()))
}

/// Returns microseconds since 1970, the unit of RocksDB's deadlines.
fn now_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Checks the promises of a write's options.
pub(crate) fn check_write(options: &rocksdb_writeoptions_t) -> sateen::Result<()> {
    keep(OF_WRITES, &options.1)
}
