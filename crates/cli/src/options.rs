//! `db options`: all options, and those that a database was last opened with.

use std::io::Write;
use std::path::Path;

use sateen::{Options, shown};
use serde_json::json;

use crate::failure::{Failure, Result};

/// The options that a new user sets first, with advice.
const FIRST: [(&str, &str); 5] = [
    (
        "block_cache_bytes",
        "Raise it to the memory that reads may use: a read that misses the cache may cost a read of
the device. The default is small because a program may open many databases, each with a cache.",
    ),
    (
        "memory_budget",
        "Set it to keep memtables, block cache, filters, indexes and compaction buffers together
below one number. The block cache gets what the others leave, at most block_cache_bytes.",
    ),
    (
        "wal",
        "Keep buffered if a killed process must lose nothing. Set sync if power loss must lose no
write, or interval:10ms if it may lose the last 10 ms. Set off if the data can be rebuilt.",
    ),
    (
        "memtable_bytes",
        "Raise it for bursts of writes: a burst that fits waits for no flush. Memtables take up to
memtable_bytes times memtables_max, for each column family. Opening a database after a crash reads
the WAL of all memtables, so it takes longer, too.",
    ),
    (
        "compression",
        "A compression for each level from L0 on; the last one is for all deeper levels. Set
none,none,zstd to use less disk and more CPU. Set none if values are compressed already.",
    ),
];

pub(crate) fn all(profile: Option<&str>, json: bool, output: &mut dyn Write) -> Result<()> {
    let values = match profile {
        Some(name) => Options::profile(name)?,
        None => Options::default(),
    };
    if json {
        return Ok(writeln!(output, "{}", to_json(&values)?)?);
    }
    writeln!(output, "Set these five first. Most programs need no other.\n")?;
    for (name, advice) in FIRST {
        writeln!(output, "{name} = {}", values.get(name)?)?;
        advice.lines().try_for_each(|line| writeln!(output, "    {line}"))?;
        writeln!(output)?;
    }
    writeln!(output, "All options. [at open]: fixed while a database is open.\n")?;
    let mut group = "";
    for info in Options::all() {
        if info.group != group {
            group = info.group;
            writeln!(output, "# {group}\n")?;
        }
        let when = if info.mutable { "any time" } else { "at open" };
        writeln!(output, "{} = {}    [{when}]", info.name, values.get(info.name)?)?;
        writeln!(output, "    {}", info.plain_description())?;
        let limits = info.limits().map(|limits| format!("; {limits}")).unwrap_or_default();
        let rocksdb = info.rocksdb.map(|name| format!("; RocksDB: {name}")).unwrap_or_default();
        writeln!(output, "    takes {}{limits}{rocksdb}\n", info.accepts)?;
    }
    Ok(())
}

/// Prints the options that the database at `path` was last opened with, by column family.
pub(crate) fn stored(path: &Path, json: bool, output: &mut dyn Write) -> Result<()> {
    // The error is not one of the command line, so the exit code is 1.
    let stored = Options::load(path).map_err(|error| Failure::failed(error.to_string()))?;
    let of_database = Options::INFO.iter().map(|info| info.name);
    if json {
        let mut database = serde_json::Map::new();
        for name in of_database {
            database.insert(name.to_owned(), json!(stored.options.get(name)?));
        }
        let mut families = serde_json::Map::new();
        for (family, options) in &stored.families {
            let mut values = serde_json::Map::new();
            for info in sateen::ColumnFamilyOptions::INFO {
                values.insert(info.name.to_owned(), json!(options.get(info.name)?));
            }
            for (_, field, name) in stored.named.iter().filter(|(of, ..)| of == family) {
                values.insert(field.clone(), json!(name));
            }
            families.insert(family.clone(), json!(values));
        }
        let all = json!({"database": database, "column_families": families});
        return Ok(writeln!(output, "{all}")?);
    }
    writeln!(output, "[database]")?;
    for name in of_database {
        writeln!(output, "{name} = {}", shown(&stored.options.get(name)?))?;
    }
    for (family, options) in &stored.families {
        writeln!(output, "\n[column family {}]", shown(family))?;
        let named: Vec<_> = stored.named.iter().filter(|(of, ..)| of == family).collect();
        let is_named = |line: &str| {
            let field = line.split(" = ").next();
            named.iter().any(|(_, named, _)| field == Some(named.as_str()))
        };
        for line in options.to_text().lines().filter(|line| !is_named(line)) {
            writeln!(output, "{line}")?;
        }
        for (_, field, name) in named {
            writeln!(output, "{field} is {name}")?;
        }
    }
    Ok(())
}

pub(crate) fn to_json(options: &Options) -> Result<serde_json::Value> {
    let mut values = serde_json::Map::new();
    for name in Options::names() {
        values.insert(name.to_owned(), json!(options.get(name)?));
    }
    Ok(json!(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_to_set_first_exist_and_come_first() {
        let mut output = Vec::new();
        all(None, false, &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        assert!(output.starts_with("Set these five first."), "{output}");
        for (name, advice) in FIRST {
            let value = Options::default().get(name).unwrap();
            assert!(output.contains(&format!("{name} = {value}\n    {}", &advice[..20])), "{name}");
        }
        assert!(!output.contains("](") && output.contains("only `Db::scrub` verifies them"));
        assert!(output.find("memtable_bytes = ") < output.find("\nprofile = "));
        let levels = "# Levels\n\nlevels = 7    [at open]\n";
        assert!(output.contains(levels), "{output}");
        assert!(output.contains("; 2 to 16; RocksDB: num_levels\n"), "{output}");
    }
}
