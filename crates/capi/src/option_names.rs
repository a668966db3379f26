//! Options as text, with RocksDB's names or ours.

use std::ffi::{c_char, c_int};

use sateen::{Error, OptionInfo, Options, TablePath};

use crate::abi::{ErrPtr, count_of, guard, missing, text};
use crate::compaction_styles::{in_text, style_in_text};
use crate::database::{of, rocksdb_column_family_handle_t, rocksdb_t, smallest_values, the};
use crate::info_log::level_in_text;
use crate::option_values::check_value;
use crate::options::rocksdb_options_t;
use crate::promises::{check_change, check_text};
use crate::settings::number;
use crate::value_codes::{compaction_priority_of_name, compression, compression_code, keep_text};
use crate::value_files::{changed, is_half};

include!(concat!(env!("OUT_DIR"), "/known.rs"));

/// Names of RocksDB's option strings that its C functions lack or spell differently.
const KNOWN_IN_TEXT: &[&str] = &[
    "allow_fallocate",
    "blob_compression_opts",
    "blob_compression_type",
    "bottommost_compression_opts",
    "comparator",
    "compaction_filter",
    "compaction_filter_factory",
    "compaction_options_fifo",
    "compaction_options_universal",
    "compression_manager",
    "compression_opts",
    "default_temperature",
    "env",
    "info_log",
    "last_level_temperature",
    "listeners",
    "memtable",
    "memtable_factory",
    "memtable_insert_with_hint_prefix_extractor",
    "merge_operator",
    "persist_user_defined_timestamps",
    "preclude_last_level_data_seconds",
    "preserve_internal_time_seconds",
    "rate_limiter",
    "sample_for_compression",
    "statistics",
    "wal_filter",
    "write_buffer_manager",
];

/// The types of values of options that have no setter in C.
const KINDS_IN_TEXT: &[(&str, &str)] = &[
    ("allow_fallocate", "bool"),
    ("persist_user_defined_timestamps", "bool"),
    ("preclude_last_level_data_seconds", "u64"),
    ("preserve_internal_time_seconds", "u64"),
    ("sample_for_compression", "u64"),
    ("blob_compression_type", "i32"),
    ("default_temperature", "i32"),
    ("last_level_temperature", "i32"),
];

/// Returns the type of an option among `known`.
fn kind_of(known: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    known.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

type Pairs = Vec<(String, String)>;

impl rocksdb_options_t {
    /// Applies the changes of `list`, all or none.
    pub(crate) fn apply(&mut self, list: &str) -> sateen::Result<()> {
        let mut options = self.0.clone();
        let mut kept = self.2.clone();
        let mut apart = false;
        for (name, value) in entries(list)? {
            for (ours, as_ours) in ours(&name, &value)? {
                if is_half(&ours) {
                    apart = true;
                    continue;
                }
                let set = options.set(&ours, &as_ours);
                set.map_err(|error| as_given(error, (&ours, &as_ours), (&name, &value)))?;
                if ours == "block_cache_bytes" {
                    options.shared_block_cache = None;
                }
            }
            if let Some(name) =
                KNOWN_OPTIONS.iter().map(|(known, _)| known).find(|known| **known == name)
            {
                keep_text(&mut kept, name, &value);
            }
        }
        (self.0, self.2) = (options, kept);
        if apart {
            self.separate_values();
        }
        Ok(())
    }
}

/// Returns `error` with the name and the value of an option as the caller gave them, where it has
/// `ours`.
fn as_given(error: Error, ours: (&str, &str), given: (&str, &str)) -> Error {
    let refusal = |(name, value): (&str, &str)| format!("option {name} does not take {value:?}");
    match error {
        Error::InvalidArgument(text) => {
            Error::InvalidArgument(text.replacen(&refusal(ours), &refusal(given), 1))
        }
        error => error,
    }
}

/// Stores in `new` the options `base` with the changes of `list` (`name=value;…`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_options_from_string(
    base: *const rocksdb_options_t,
    list: *const c_char,
    new: *mut rocksdb_options_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let base = base.as_ref().ok_or_else(|| missing("the base options"))?;
            let new = new.as_mut().ok_or_else(|| missing("the new options"))?;
            let mut options = base.clone();
            options.apply(&text(list))?;
            *new = options;
            Ok(())
        });
    }
}

/// Splits `name=value;name={...}` into entries. Lines, as our options are printed, also separate
/// them.
fn entries(list: &str) -> sateen::Result<Pairs> {
    let lines = list.lines().map(str::trim).filter(|line| !line.starts_with(['#', '[']));
    let mut all = Vec::new();
    let of_line = |line| {
        let mut parts = at_top_level(line, ';');
        // A separator may end a line but may not stand alone.
        parts.pop_if(|last| last.trim().is_empty());
        parts
    };
    for entry in lines.flat_map(of_line) {
        let entry = entry.trim();
        if !is_balanced(entry) {
            let text = format!("the braces of {entry:?} do not match");
            return Err(Error::InvalidArgument(text));
        }
        let (name, value) = entry.split_once('=').ok_or_else(|| {
            Error::InvalidArgument(format!("option {entry:?} has no value: write {entry}=<value>"))
        })?;
        all.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(all)
}

/// Returns true if each brace of a text has its counterpart.
fn is_balanced(text: &str) -> bool {
    let depth = text.chars().try_fold(0_usize, |depth, letter| match letter {
        '{' => Some(depth + 1),
        '}' => depth.checked_sub(1),
        _ => Some(depth),
    });
    depth == Some(0)
}

/// Splits a list at separators outside of braces.
fn at_top_level(list: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = list.split(move |letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == separator && depth == 0
    });
    parts.collect()
}

/// Returns directories for tables as the engine's text. RocksDB's is
/// `{path=/a;target_size=1}:{path=/b;target_size=2}`.
fn directories(value: &str) -> sateen::Result<String> {
    let value = value.trim_start_matches('{').trim_end_matches('}');
    let mut options = Options::default();
    for each in value.split("}:{") {
        let mut path = TablePath::new("", 0);
        for (name, value) in entries(each)? {
            match &*name {
                "path" => path.directory = value.into(),
                "target_size" => {
                    path.bytes = number(&value)
                        .and_then(|bytes| u64::try_from(bytes).ok())
                        .ok_or_else(|| {
                            Error::InvalidArgument(format!(
                                "target_size={value}: not a number of bytes"
                            ))
                        })?;
                }
                _ => {
                    let text = format!("unknown option {name:?} of a directory for tables");
                    return Err(Error::InvalidArgument(text));
                }
            }
        }
        options.paths.push(path);
    }
    options.get("paths")
}

/// Returns an option under our names; nothing if it has no counterpart.
pub(crate) fn ours(name: &str, value: &str) -> sateen::Result<Pairs> {
    let one = |name: &str, value: &str| Ok(vec![(name.to_owned(), value.to_owned())]);
    if let Some(name) = name.strip_prefix("sateen.") {
        return one(name, value);
    }
    let value = value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(value);
    check_text(name, value)?;
    if let Some(kind) = kind_of(KNOWN_OPTIONS, name).or_else(|| kind_of(KINDS_IN_TEXT, name)) {
        check_value(name, kind, value)?;
    }
    match name {
        "wal_recovery_mode" => {
            let absolute = matches!(value, "kAbsoluteConsistency" | "1");
            one("wal_recovery", if absolute { "absolute" } else { "prefix" })
        }
        "db_paths" | "cf_paths" if value.contains("path=") => one(name, &directories(value)?),
        "compression" | "compression_per_level" => one("compression", &compressions(value)),
        "bottommost_compression" if value.starts_with('k') => Ok(vec![]),
        "compaction_style" => match style_in_text(value) {
            Some((name, value)) => one(name, value),
            None if value.starts_with('k') || value == "3" => Ok(vec![]),
            None => one(name, value),
        },
        "compaction_options_universal" | "compaction_options_fifo" => {
            let mut all = Vec::new();
            for (name, value) in entries(value)? {
                let ours = in_text(&name, &value)?;
                all.extend(ours.map(|(name, value)| (name.to_owned(), nearest(name, &value))));
            }
            Ok(all)
        }
        // A number is set together with the other half.
        _ if is_half(name) && number(value).is_some() => one(name, value),
        "blob_gc_age_cutoff" => one("value_garbage_age_cutoff", value),
        "blob_gc_force_threshold" => one("value_garbage_force_threshold", value),
        "enable_blob_gc" => one("value_garbage_collection", value),
        "compaction_pri" if value.starts_with('k') => {
            one("compaction_priority", &compaction_priority_of_name(value))
        }
        "bgerror_resume_retry_interval" => one("retry_delay", &format!("{value}us")),
        "WAL_size_limit_MB" => {
            let bytes = number(value).map(|mib| mib.saturating_mul(1 << 20));
            let bytes = bytes.map(|bytes| bytes.clamp(0, u64::MAX.into()).to_string());
            one("wal_size_limit_bytes", &bytes.unwrap_or_else(|| format!("{value}MiB")))
        }
        "info_log_level" => one("log_level", level_in_text(value)),
        "max_log_file_size" => one("log_file_bytes_max", &nearest("log_file_bytes_max", value)),
        "keep_log_file_num" => {
            let files = number(value).map(|files| files.clamp(1, 1000).to_string());
            one("log_files_max", files.as_deref().unwrap_or(value))
        }
        "max_open_files" if value == "-1" => one(name, &u32::MAX.to_string()),
        "max_background_compactions" | "max_background_flushes" | "delayed_write_rate"
            if matches!(value, "-1" | "0") =>
        {
            Ok(vec![])
        }
        // The name of a table format alone means nothing, because there is one format.
        "table_factory" if matches!(value, "BlockBasedTable" | "PlainTable" | "CuckooTable") => {
            Ok(vec![])
        }
        "block_based_table_factory" | "table_factory" => {
            let mut all = Vec::new();
            for (name, value) in entries(value)? {
                all.extend(of_table(&name, &value)?);
            }
            Ok(all)
        }
        "prefix_extractor" => one(name, &prefix_extractor(value)),
        // RocksDB's option with this name is about files, in seconds. Ours has a unit.
        "ttl" if number(value).is_some() => Ok(vec![]),
        _ if Options::info(name).is_ok() => one(name, &nearest(name, value)),
        _ if kind_of(KNOWN_OPTIONS, name).is_some() || KNOWN_IN_TEXT.contains(&name) => Ok(vec![]),
        _ => Options::info(name).map(|_| vec![]),
    }
}

/// Returns the valid value that is nearest to `value`, if that is a number out of range.
fn nearest(name: &str, value: &str) -> String {
    let takes = |value: &str| Options::default().set(name, value).is_ok();
    let end = match number(value) {
        Some(..0) => "0",
        Some(_) => "4294967295",
        None => value,
    };
    if !takes(value) && takes(end) { end.to_owned() } else { value.to_owned() }
}

/// Returns an option of block-based tables under our names.
fn of_table(name: &str, value: &str) -> sateen::Result<Pairs> {
    let one = |name: &str, value: &str| Ok(vec![(name.to_owned(), value.to_owned())]);
    match (kind_of(KNOWN_TABLE_OPTIONS, name), name) {
        // Names of other objects, too.
        (_, "block_cache" | "filter_policy" | "no_block_cache") | (None, _) => {}
        (Some(kind), _) => check_value(name, kind, value)?,
    }
    match name {
        "block_size" | "block_restart_interval" | "whole_key_filtering" => {
            one(name, &nearest(name, value))
        }
        "block_cache" if value.starts_with(|letter: char| letter.is_ascii_digit()) => {
            one("block_cache_bytes", value)
        }
        "no_block_cache" if matches!(value, "true" | "1") => one("block_cache_bytes", "1"),
        "filter_policy" => {
            let mut parts = value.split(':').skip(1);
            let bits = parts.next().and_then(|bits| bits.parse::<f64>().ok()).unwrap_or(0.0);
            one("bloom_bits_per_key", &format!("{:.0}", bits.clamp(0.0, 64.0)))
        }
        "id"
        | "block_cache"
        | "no_block_cache"
        | "persistent_cache"
        | "checksum"
        | "flush_block_policy_factory"
        | "user_defined_index_factory"
        | "cache_usage_options"
        | "metadata_cache_options"
        | "verify_compression"
        | "enable_index_compression"
        | "num_file_reads_for_auto_readahead" => Ok(vec![]),
        _ if kind_of(KNOWN_TABLE_OPTIONS, name).is_some() => Ok(vec![]),
        _ => {
            let text = format!("unknown option {name:?} of block-based tables");
            Err(Error::InvalidArgument(text))
        }
    }
}

/// Returns the extractor that `id=…;length=…` or a name stands for.
fn prefix_extractor(value: &str) -> String {
    let part = |name: &str| value.split(';').find_map(|part| part.trim().strip_prefix(name));
    match (part("id="), part("length=")) {
        (Some(id), Some(length)) if !id.ends_with(length) => format!("{id}.{length}"),
        (Some(id), _) => id.to_owned(),
        (None, _) => value.to_owned(),
    }
}

/// Replaces RocksDB's names of compressions by ours and keeps ours.
fn compressions(list: &str) -> String {
    let name = |name: &str| match (compression_code(name.trim()), name.trim()) {
        (Some(code), _) => compression(code).to_string(),
        (None, "kDisableCompressionOption") => compression(0).to_string(),
        (None, ours) => ours.to_owned(),
    };
    list.split([':', ',']).map(name).collect::<Vec<_>>().join(",")
}

/// Returns the changes of `count` names and values, under our names.
unsafe fn changes(
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
) -> sateen::Result<Pairs> {
    let count = count_of(count);
    if count == 0 {
        return Err(Error::InvalidArgument("no option is given".into()));
    }
    let mut all = Vec::new();
    for nth in 0..count {
        // SAFETY: the contract of the module.
        let (name, value) = unsafe { (text(*names.add(nth)), text(*values.add(nth))) };
        check_change(&name, &value)?;
        let changes = ours(&name, &value)?;
        for (ours, as_ours) in changes.iter().filter(|(ours, _)| !is_half(ours)) {
            let set = Options::default().set(ours, as_ours);
            set.map_err(|error| as_given(error, (ours, as_ours), (&name, &value)))?;
        }
        all.extend(changes);
    }
    Ok(all)
}

/// Returns all changes that follow from `changes` to `options`: these, and those that keep the
/// limits consistent. Changes that are refused in any case stay as they are. `smallest` is that of
/// [`changed`].
fn in_order(
    mut options: Options,
    changes: Pairs,
    of_family: bool,
    smallest: &mut Option<u64>,
) -> sateen::Result<Pairs> {
    let halves = changes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let separation = changed(&options, smallest, halves);
    let mut changes = changes;
    changes.retain(|(name, _)| !is_half(name));
    changes.extend(separation.map(|bytes| ("value_separation_bytes".into(), bytes.to_string())));
    let before = options.clone();
    for (name, value) in &changes {
        let info = Options::info(name)?;
        if !info.mutable || of_family && !info.column_family {
            let mut same = options.clone();
            if same.set(name, value).is_ok() && same == options {
                continue;
            }
            return Ok(changes);
        }
        options.set(name, value)?;
    }
    let after = options.sanitized();
    let mut all = Vec::new();
    let is_asked_for = |info: &&OptionInfo| info.mutable && (info.column_family || !of_family);
    for info in Options::all().filter(is_asked_for) {
        let value = after.get(info.name)?;
        if value != before.get(info.name)? {
            all.push((info.name.to_owned(), value));
        }
    }
    Ok(all)
}

fn borrowed(pairs: &Pairs) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Changes options of a running database and of its default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options(
    db: *mut rocksdb_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let (smallest, db) = (smallest_values(db), the(db)?);
            let given = changes(count, names, values)?;
            smallest.change(sateen::DEFAULT_COLUMN_FAMILY, |smallest| {
                let changes = in_order(db.options(), given, false, smallest)?;
                db.set_options(&borrowed(&changes))
            })
        });
    }
}

/// Does the same as `rocksdb_set_options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_db_options(
    db: *mut rocksdb_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_set_options(db, count, names, values, errptr) };
}

/// Changes options of a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options_cf(
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let (smallest, db) = (smallest_values(db), the(db)?);
            let (given, family) = (changes(count, names, values)?, of(db, family)?);
            let options = Options { column_family: family.options(), ..db.options() };
            smallest.change(family.name(), |smallest| {
                family.set_options(&borrowed(&in_order(options, given, true, smallest)?))
            })
        });
    }
}
