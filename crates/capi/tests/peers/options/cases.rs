//! The cases: each setter of the headers, and each option that RocksDB has as text.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::declaration::{Declaration, Type, declarations};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A setter gets the value, and a database is opened.
    Set,
    /// An option is set by text, and a database opened.
    Text,
    /// An option of an open database is set.
    RunTime,
    /// A setter gets the value, and its getter must return it.
    RoundTrip,
    /// One of the stories of `scenarios`.
    Story,
    /// The options that the library writes down.
    List,
}

const KINDS: [(&str, Kind); 6] = [
    ("set", Kind::Set),
    ("text", Kind::Text),
    ("run", Kind::RunTime),
    ("trip", Kind::RoundTrip),
    ("story", Kind::Story),
    ("list", Kind::List),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    /// The name of the function or the option.
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Case {
    fn new(kind: Kind, name: &str, value: &str) -> Case {
        Case { kind, name: name.to_owned(), value: value.to_owned() }
    }

    pub(crate) fn listing() -> Case {
        Case::new(Kind::List, "-", "-")
    }

    pub(crate) fn parse(line: &str) -> Case {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().expect("three parts");
        let kind = part();
        let kind = KINDS.iter().find(|(name, _)| *name == kind).expect("a kind").1;
        Case::new(kind, part(), part())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        write!(f, "{kind}\t{}\t{}", self.name, self.value)
    }
}

/// Returns all declarations of the headers.
pub(crate) fn declared() -> BTreeMap<String, Declaration> {
    let mut headers = String::new();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/rocksdb/c");
    let files = std::fs::read_dir(include).expect("headers").flatten();
    // `older.h` has other signatures of the same functions.
    for file in files.filter(|file| file.file_name() != "older.h") {
        headers.push_str(&std::fs::read_to_string(file.path()).expect("a header"));
    }
    declarations(&headers)
}

/// Returns the ends of a number's range, and odd values.
fn ends(number: &str) -> Vec<String> {
    let integers = |min: i128, max: i128| {
        let mut all = vec![min, -1, 0, 1, 2, 3, 42, max];
        all.retain(|value| *value >= min);
        all.iter().map(i128::to_string).collect()
    };
    match number {
        "u8" => integers(0, 255),
        "c_char" => integers(0, 127),
        "bool" => integers(0, 1).into_iter().take(2).collect(),
        "i32" => integers(i32::MIN.into(), i32::MAX.into()),
        "u32" => integers(0, u32::MAX.into()),
        "u64" | "usize" => integers(0, u64::MAX.into()),
        "i64" => integers(i64::MIN.into(), i64::MAX.into()),
        "f64" => {
            let values = ["NaN", "inf", "-inf", "-1", "0", "0.5", "1", "2.5", "1e300"];
            values.map(str::to_owned).into()
        }
        other => panic!("no ends of {other}"),
    }
}

/// Returns the handle and the type of a setter's value.
pub(crate) fn setter(of: &Declaration) -> Option<(&str, &'static str)> {
    match (&of.returns, &of.parameters[..]) {
        (Type::Nothing, [Type::Handle(handle), Type::Number(number)])
            if handle.contains("options") =>
        {
            Some((handle, number))
        }
        _ => None,
    }
}

fn of_setters(kind: Kind, is_wanted: impl Fn(&Declaration, &str) -> bool) -> Vec<Case> {
    let declared = declared();
    let mut cases = Vec::new();
    for declaration in declared.values() {
        if let Some((handle, number)) = setter(declaration)
            && is_wanted(declaration, handle)
        {
            let of_value = |value: &String| Case::new(kind, &declaration.name, value);
            cases.extend(ends(number).iter().map(of_value));
        }
    }
    cases
}

/// The handles that the use of a database takes.
pub(crate) const USED: [&str; 8] = [
    "rocksdb_options_t",
    "rocksdb_block_based_table_options_t",
    "rocksdb_readoptions_t",
    "rocksdb_writeoptions_t",
    "rocksdb_flushoptions_t",
    "rocksdb_compactoptions_t",
    "rocksdb_ingestexternalfileoptions_t",
    "rocksdb_universal_compaction_options_t",
];

pub(crate) fn setters() -> Vec<Case> {
    of_setters(Kind::Set, |_, handle| USED.contains(&handle))
}

/// Returns the getter of a setter's value.
pub(crate) fn getter_of(setter: &str) -> Option<String> {
    match setter {
        "rocksdb_options_compaction_readahead_size" => {
            Some("rocksdb_options_get_compaction_readahead_size".into())
        }
        "rocksdb_writeoptions_disable_WAL" => Some("rocksdb_writeoptions_get_disable_WAL".into()),
        _ => setter.contains("_set_").then(|| setter.replacen("_set_", "_get_", 1)),
    }
}

pub(crate) fn round_trips() -> Vec<Case> {
    let declared = declared();
    of_setters(Kind::RoundTrip, |declaration, _| {
        let getter = getter_of(&declaration.name).and_then(|getter| declared.get(&getter));
        getter.is_some_and(|getter| matches!(getter.returns, Type::Number(_)))
    })
}

/// An option with a text.
pub(crate) struct Named {
    pub(crate) name: String,
    default: String,
    of_table: bool,
}

impl Named {
    /// Returns the options in RocksDB's OPTIONS file, whose lines are separated by tabs.
    pub(crate) fn all(text: &str) -> Vec<Named> {
        let mut section = "";
        let mut all = Vec::new();
        for line in text.split('\t').map(str::trim) {
            if line.starts_with('[') {
                section = line;
            } else if let Some((name, value)) = line.split_once('=')
                && !section.starts_with("[Version")
                && !line.starts_with('#')
            {
                let of_table = section.starts_with("[TableOptions");
                all.push(Named { name: name.into(), default: value.into(), of_table });
            }
        }
        assert!(all.len() > 150, "{} options with a text", all.len());
        all
    }

    fn values(&self) -> Vec<&str> {
        let is_number = self.default.parse::<f64>().is_ok();
        match self.default.as_str() {
            "true" | "false" => vec!["true", "false", "0", "1"],
            _ if is_number => vec![
                "-9223372036854775808",
                "-2147483648",
                "-1",
                "0",
                "1",
                "2147483647",
                "9223372036854775807",
                "18446744073709551615",
                "0.5",
                "inf",
                "nan",
            ],
            // Objects and paths are set to their default.
            other => vec![other],
        }
    }
}

pub(crate) fn texts(names: &[Named]) -> Vec<Case> {
    let mut cases = Vec::new();
    for named in names {
        for value in named.values() {
            let text = format!("{}={value}", named.name);
            let text = match named.of_table {
                true => format!("block_based_table_factory={{{text}}}"),
                false => text,
            };
            cases.push(Case::new(Kind::Text, &named.name, &text));
        }
    }
    cases
}

pub(crate) fn at_run_time(names: &[Named]) -> Vec<Case> {
    let mut cases = Vec::new();
    for named in names.iter().filter(|named| !named.of_table) {
        cases.extend(named.values().iter().map(|it| Case::new(Kind::RunTime, &named.name, it)));
    }
    cases
}
