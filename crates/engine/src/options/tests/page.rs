//! The page docs/options.md, which is generated from the schema and the profiles.

use std::fmt::Write as _;
use std::path::Path;

use crate::options::{ColumnFamilyOptions, OptionInfo, Options, profile};

const COMMAND: &str = "SATEEN_BLESS=1 cargo test -p sateen --lib options::tests::page";

/// Returns the contents that docs/options.md must have.
fn documentation() -> String {
    let mut page = format!(
        "# Options\n\n\
         The tables below list every option of a database and of a column family. Set them as\n\
         fields of `Options`, as text with `Options::set`, or in the command with `--set\n\
         NAME=VALUE`. Where RocksDB has the option, its name works, too. Read this page to look\n\
         an option up; `sateen db options` names the five to set first.\n\n\
         - *Takes* is the form of the value and its limits. Sizes are such as `4096` or `64MiB`,\n\
         \x20 in powers of 1024; durations are such as `10ms` or `1h`. A value outside of the\n\
         \x20 limits, or one that contradicts another option, is refused when a database is\n\
         \x20 opened and when options of an open one are set.\n\
         - *Open*: yes if an open database can change the option.\n\
         - [Profiles](#profiles) are sets of values. [What RocksDB's options\n\
         \x20 become](c_abi/options.md) is on a page of its own.\n\n\
         The page is generated from the engine's schema. After a change there run\n\
         `{COMMAND}`.\n"
    );
    let defaults = Options::default();
    for (title, infos) in
        [("a database", Options::INFO), ("a column family", ColumnFamilyOptions::INFO)]
    {
        write!(page, "\n## Options of {title}\n").unwrap();
        for group in infos.chunk_by(|one, other| one.group == other.group) {
            write!(page, "\n### {}\n\n", group[0].group).unwrap();
            page.push_str("| option | default | takes | open | RocksDB | meaning |\n");
            page.push_str("| --- | --- | --- | --- | --- | --- |\n");
            for info in group {
                page.push_str(&row(info, &defaults));
            }
        }
    }
    page.push_str(
        "\n## Profiles\n\n\
         A profile is nothing but option values: `Options::profile(NAME)`, or `--profile NAME` in\n\
         the command. Each row says from which profile it differs least, and how. `sateen db\n\
         options --profile NAME` prints all values of one.\n\n\
         | profile | what it is | like | but |\n| --- | --- | --- | --- |\n",
    );
    for (name, sentence) in profile::AVAILABLE.iter().zip(profile::SENTENCES) {
        let (like, differences) = nearest(name);
        let like = like.map_or("—".to_owned(), |like| format!("`{like}`"));
        let but: Vec<_> =
            differences.iter().map(|(name, value)| format!("`{name}={value}`")).collect();
        let but = if but.is_empty() { "—".to_owned() } else { but.join(", ") };
        writeln!(page, "| `{name}` | {sentence} | {like} | {but} |").unwrap();
    }
    page
}

fn row(info: &OptionInfo, defaults: &Options) -> String {
    let limits = info.limits().map(|limits| format!("; {limits}")).unwrap_or_default();
    let open = if info.mutable { "yes" } else { "no" };
    let rocksdb = info.rocksdb.map_or("—".to_owned(), |name| format!("`{name}`"));
    let meaning = info.plain_description();
    assert!(!meaning.contains(['|', '\n', '\\']), "{meaning}");
    let unit = info.unit.replace('<', "\\<");
    let default = defaults.get(info.name).unwrap();
    format!("| `{}` | `{default}` | {unit}{limits} | {open} | {rocksdb} | {meaning} |\n", info.name)
}

/// Returns the profile before `name` that differs least from it, and the differences. The default,
/// RocksDB's and LevelDB's come first.
fn nearest(name: &str) -> (Option<&'static str>, Vec<(&'static str, String)>) {
    let options = Options::profile(name).unwrap();
    let known = |other: &&&str| **other != name;
    let first = ["sateen", "rocksdb", "leveldb"].iter();
    let before = match name {
        "sateen" => return (None, Vec::new()),
        "rocksdb" => vec!["sateen"],
        "leveldb" => vec!["sateen", "rocksdb"],
        _ => first.chain(profile::AVAILABLE.iter().take_while(known)).copied().collect(),
    };
    let with_differences = |like: &'static str| (like, differences(&options, like));
    let (like, differences) =
        before.into_iter().map(with_differences).min_by_key(|(_, all)| all.len()).unwrap();
    (Some(like), differences)
}

fn differences(options: &Options, like: &str) -> Vec<(&'static str, String)> {
    let like = Options::profile(like).unwrap();
    let names = Options::names().filter(|name| *name != "profile");
    let values = names.map(|name| (name, options.get(name).unwrap(), like.get(name).unwrap()));
    values.filter(|(_, one, other)| one != other).map(|(name, one, _)| (name, one)).collect()
}

#[test]
fn the_page_lists_every_option_and_profile_as_they_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    if std::env::var_os("SATEEN_BLESS").is_some() {
        std::fs::write(&path, documentation()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == documentation(), "docs/options.md is out of date: run {COMMAND}");
}

/// A line of the C interface's page that names RocksDB's option names ours, too.
#[test]
fn the_page_of_the_c_interface_says_what_each_name_of_rocksdb_becomes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/c_abi/options.md");
    let page = std::fs::read_to_string(path).unwrap();
    for info in Options::all() {
        let Some(rocksdb) = info.rocksdb else { continue };
        let (theirs, ours) = (format!("`{rocksdb}`"), format!("`{}`", info.name));
        let names = |line: &str| line.contains(&theirs) && line.contains(&ours);
        assert!(page.lines().any(names), "docs/c_abi/options.md: {theirs} is {ours}");
    }
}
