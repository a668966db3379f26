//! Compaction styles: leveled, universal and FIFO, and the options of the last two.
//!
//! 1. `rocksdb_options_set_compaction_style` chooses the policy of a column family.
//! 2. The options of a style are handles that only keep what their setters were given (`stubs`).
//! 3. `rocksdb_options_set_universal_compaction_options` and its FIFO counterpart read these
//!    handles and set the options that they stand for. Values that are refused are kept under the
//!    names in `KEPT`; `promises` refuses them at open.
//! 4. In option strings the same options have names in braces (`in_text`).

use std::ffi::c_int;

use sateen::{CompactionStyle, Error, StopStyle};

use crate::options::{change, rocksdb_options_t};
use crate::settings::{Setting, Settings, keeps, made, number};

/// How sorted runs are merged.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_universal_compaction_options_t(Settings);

keeps!(rocksdb_universal_compaction_options_t: 0);
made!(rocksdb_universal_compaction_options_t:
    rocksdb_universal_compaction_options_create, rocksdb_universal_compaction_options_destroy);

/// How many tables are kept.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_fifo_compaction_options_t(Settings);

keeps!(rocksdb_fifo_compaction_options_t: 0);
made!(rocksdb_fifo_compaction_options_t:
    rocksdb_fifo_compaction_options_create, rocksdb_fifo_compaction_options_destroy);

/// Options of a style that promise something: the option in the handle, and the name that a refusal
/// gives it.
const KEPT: &[(&str, &str)] = &[
    ("compression_size_percent", "universal_compaction_options.compression_size_percent"),
    ("incremental", "universal_compaction_options.incremental"),
    ("max_data_files_size", "fifo_compaction_options.max_data_files_size"),
    ("use_kv_ratio_compaction", "fifo_compaction_options.use_kv_ratio_compaction"),
];

/// Returns the style with RocksDB's number; `None` for the style without compactions.
fn style(code: c_int) -> Option<CompactionStyle> {
    match code {
        0 => Some(CompactionStyle::Leveled),
        1 => Some(CompactionStyle::Tiered),
        2 => Some(CompactionStyle::Fifo),
        _ => None,
    }
}

impl rocksdb_options_t {
    /// Chooses the style with RocksDB's number, and keeps the number for the getter.
    pub(crate) fn set_style(&mut self, code: c_int) {
        code.put(&mut self.2, "compaction_style");
        if let Some(style) = style(code) {
            self.0.column_family.compaction_style = style;
        }
    }

    fn keep_refused(&mut self, given: &Settings) {
        for (option, name) in KEPT {
            if let Some(value) = i64::get(given, option) {
                value.put(&mut self.2, name);
            }
        }
    }
}

/// The style: 0 is leveled, 1 universal, 2 FIFO. 3 is none: the style stays, and
/// `disable_auto_compactions` turns compactions off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compaction_style(
    options: *mut rocksdb_options_t,
    style: c_int,
) {
    // SAFETY: the contract of the crate.
    unsafe { change(options, |options| options.set_style(style)) };
}

/// Takes over the options of universal compaction. The handle may be freed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_universal_compaction_options(
    options: *mut rocksdb_options_t,
    universal: *const rocksdb_universal_compaction_options_t,
) {
    // SAFETY: the contract of the crate.
    let Some(given) = (unsafe { universal.as_ref() }) else { return };
    let or = |option: &str, default: c_int| {
        c_int::get(&given.0, option).unwrap_or(default).cast_unsigned()
    };
    // SAFETY: the contract of the crate.
    unsafe {
        change(options, |options| {
            let family = &mut options.0.column_family;
            family.tiered_size_ratio = or("size_ratio", 1);
            family.tiered_merge_width_min = or("min_merge_width", 2);
            family.tiered_merge_width_max = or("max_merge_width", -1);
            family.tiered_size_amplification_max = or("max_size_amplification_percent", 200);
            family.tiered_stop_style = if or("stop_style", 1) == 0 {
                StopStyle::SimilarSize
            } else {
                StopStyle::TotalSize
            };
            family.tiered_trivial_move = u8::get(&given.0, "allow_trivial_move").unwrap_or(0) != 0;
            options.keep_refused(&given.0);
        });
    }
}

/// Takes over the options of FIFO compaction. The handle may be freed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_fifo_compaction_options(
    options: *mut rocksdb_options_t,
    fifo: *const rocksdb_fifo_compaction_options_t,
) {
    // SAFETY: the contract of the crate.
    let Some(given) = (unsafe { fifo.as_ref() }) else { return };
    // SAFETY: the contract of the crate.
    unsafe {
        change(options, |options| {
            let family = &mut options.0.column_family;
            family.fifo_bytes_max = u64::get(&given.0, "max_table_files_size").unwrap_or(1 << 30);
            family.fifo_compaction = u8::get(&given.0, "allow_compaction").unwrap_or(0) != 0;
            options.keep_refused(&given.0);
        });
    }
}

/// Returns our name and value of a style in an option string; `None` for no style of ours.
pub(crate) fn style_in_text(value: &str) -> Option<(&'static str, &'static str)> {
    let code = match value {
        "kCompactionStyleLevel" => 0,
        "kCompactionStyleUniversal" => 1,
        "kCompactionStyleFIFO" => 2,
        _ => value.parse().ok()?,
    };
    style(code).map(|style| ("compaction_style", style.name()))
}

/// Returns our name of an option in `compaction_options_universal` or `compaction_options_fifo`,
/// with its value; `None` if it has no effect.
///
/// # Errors
/// If the option promises what is not kept.
pub(crate) fn in_text(name: &str, value: &str) -> sateen::Result<Option<(&'static str, String)>> {
    let numbers = || number(value).map_or_else(|| value.to_owned(), |number| number.to_string());
    let is_set = !matches!(value, "0" | "-1" | "false");
    if let Some((_, refused)) = KEPT.iter().find(|(option, _)| *option == name && is_set) {
        return Err(Error::InvalidArgument(format!("{refused}={value} is not implemented")));
    }
    Ok(Some(match name {
        "size_ratio" => ("tiered_size_ratio", numbers()),
        "min_merge_width" => ("tiered_merge_width_min", numbers()),
        "max_merge_width" if value == "-1" => ("tiered_merge_width_max", u32::MAX.to_string()),
        "max_merge_width" => ("tiered_merge_width_max", numbers()),
        "max_size_amplification_percent" => ("tiered_size_amplification_max", numbers()),
        "stop_style" => {
            let similar = matches!(value, "kCompactionStopStyleSimilarSize" | "0");
            ("tiered_stop_style", if similar { "similar-size" } else { "total-size" }.to_owned())
        }
        "allow_trivial_move" => ("tiered_trivial_move", value.to_owned()),
        "max_table_files_size" => ("fifo_bytes_max", numbers()),
        "allow_compaction" => ("fifo_compaction", value.to_owned()),
        _ => return Ok(None),
    }))
}

/// Refuses an age at which tables are dropped, with FIFO compaction: tables have no age. RocksDB's
/// number for its default counts as none.
pub(crate) fn check_ttl(options: &rocksdb_options_t) -> sateen::Result<()> {
    let ttl = options.kept::<i64>("ttl").filter(|ttl| !(-2..=0).contains(ttl));
    match ttl {
        Some(ttl) if options.kept::<c_int>("compaction_style") == Some(2) => {
            Err(Error::InvalidArgument(format!(
                "ttl={ttl} is not implemented: FIFO compaction drops tables by their size, not age"
            )))
        }
        _ => Ok(()),
    }
}
