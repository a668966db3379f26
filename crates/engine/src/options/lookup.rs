//! Finding options by name, in lists of them too, and the errors of what is not found or not taken.

use sateen_store::base::error::{Error, Result};

use super::define::OptionInfo;
use super::text;

/// The entries of a list of options. One without `=` has an error for its value.
pub(super) fn entries(list: &str) -> impl Iterator<Item = (&str, Result<&str>)> {
    let lines = list.lines().map(str::trim).filter(|line| !line.starts_with(['#', '[']));
    let entries = lines.flat_map(|line| line.split(';')).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).map(|entry| match entry.split_once('=') {
        Some((name, value)) => (name.trim(), Ok(value.trim())),
        None => {
            let text = format!("option {entry:?} has no value: write {entry}=<value>");
            (entry, Err(Error::InvalidArgument(text)))
        }
    })
}

/// The option of that name, by ours or RocksDB's.
pub(super) fn find(
    mut among: impl Iterator<Item = &'static OptionInfo> + Clone,
    name: &str,
) -> Result<&'static OptionInfo> {
    let all = among.clone();
    among.find(|info| info.name == name || info.rocksdb == Some(name)).ok_or_else(|| {
        let names = all.flat_map(|info| [Some(info.name), info.rocksdb]).flatten();
        let edits = |known: &&str| text::edit_distance(name, known);
        // Names that are farther apart have nothing in common.
        let nearest = names.min_by_key(edits).filter(|known| 2 * edits(known) < name.len());
        Error::InvalidArgument(match nearest {
            Some(nearest) => format!("unknown option {name:?}; the nearest is {nearest:?}"),
            None => format!("unknown option {name:?}: no option has a name like it"),
        })
    })
}

/// The error of a value that the option does not take. `name` is its name as it was given.
pub(super) fn bad_value(info: &OptionInfo, name: &str, value: &str) -> Error {
    let accepts = info.accepts;
    let limits = info.limits().map(|limits| format!("; {limits}")).unwrap_or_default();
    let text = format!("option {name} does not take {value:?}: it takes {accepts}{limits}");
    Error::InvalidArgument(text)
}

/// The error of a value that an option takes and its limits refuse.
pub(super) fn out_of_limits(name: &str, value: &str, must: Option<String>) -> Error {
    let must = must.unwrap_or_default();
    Error::InvalidArgument(format!("option {name} is {value}: it must be {must}"))
}

pub(super) fn fixed(info: &OptionInfo) -> Error {
    let text = "cannot be changed while the database is open: set it when opening";
    Error::InvalidArgument(format!("option {} {text}", info.name))
}
