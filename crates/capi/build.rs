//! Writes `stubs.rs` with the functions of RocksDB's C interface that the sources lack, so that
//! every program links. It reads the headers in `include/`, the list in `names.txt` and the values
//! in `defaults.txt`. A function that a source names outside of comments exists and gets no stub.
//!
//! `SATEEN_SONAME` is the library name that linked programs record; `scripts/install-capi` sets it.
//! `SATEEN_ROCKSDB_ABI` is a version of RocksDB, 7 to 11. Functions whose signature changed have
//! that of this version: `older.rs`.

#[path = "build/declaration.rs"]
mod declaration;
#[path = "build/stub.rs"]
mod stub;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use declaration::{Declaration, Type, declarations};
use stub::Known;

fn main() -> io::Result<()> {
    for input in ["build.rs", "build", "src", "include", "names.txt", "defaults.txt", "narrow.txt"]
    {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=SATEEN_SONAME");
    println!("cargo::rerun-if-env-changed=SATEEN_ROCKSDB_ABI");
    if let Ok(name) = env::var("SATEEN_SONAME") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
    let there = words_of(&code_below(Path::new("src"))?);
    let abi = abi();
    for changed in ABI_CHANGES {
        println!("cargo::rustc-check-cfg=cfg(abi_below_{changed})");
        if abi < changed {
            println!("cargo::rustc-cfg=abi_below_{changed}");
        }
    }
    let mut headers = String::new();
    let is_older = |path: &PathBuf| path.file_name().is_some_and(|name| name == "older.h");
    for path in files_below(Path::new("include"))?.into_iter().filter(|path| !is_older(path)) {
        headers.push_str(&fs::read_to_string(path)?);
    }
    let defaults = pairs(&fs::read_to_string("defaults.txt")?);
    let narrow = pairs(&fs::read_to_string("narrow.txt")?);
    let known = Known { there: &there, defaults: &defaults, narrow: &narrow };
    let declared = declarations(&headers);
    let mut out = String::new();
    for declaration in declared.values().filter(|it| !there.contains(&it.name)) {
        out.push_str(&known.stub(declaration));
    }
    for name in names(&fs::read_to_string("names.txt")?) {
        if !there.contains(&name) && !declared.contains_key(&name) {
            out.push_str(&stub::of_unknown(&name));
        }
    }
    let handles = known.handles(declared.values(), &out);
    out.push_str(&handles);
    let directory = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(directory.join("stubs.rs"), out)?;
    let listed = |prefix| stub::listed(declared.values(), prefix);
    fs::write(directory.join("listed.rs"), listed("rocksdb_options_get_"))?;
    fs::write(directory.join("listed_of_tables.rs"), listed("rocksdb_block_based_options_get_"))?;
    let known = [
        known_options("KNOWN_OPTIONS", "rocksdb_options_set_", declared.values()),
        known_options("KNOWN_TABLE_OPTIONS", "rocksdb_block_based_options_set_", declared.values()),
    ];
    fs::write(directory.join("known.rs"), known.concat())
}

/// The versions of RocksDB in which a signature changed.
const ABI_CHANGES: [u32; 3] = [8, 9, 11];

/// The version of RocksDB whose signatures the library has under RocksDB's own names.
fn abi() -> u32 {
    let newest = 11;
    let Ok(named) = env::var("SATEEN_ROCKSDB_ABI") else { return newest };
    let abi = named.parse().ok().filter(|abi| (7..=newest).contains(abi));
    abi.unwrap_or_else(|| panic!("SATEEN_ROCKSDB_ABI={named} must be 7 to {newest}"))
}

/// Returns the options that have a setter, each with the type of its value if that is one number,
/// and otherwise an empty text.
fn known_options<'a>(
    list: &str,
    setter: &str,
    functions: impl Iterator<Item = &'a Declaration>,
) -> String {
    let kind = |declaration: &Declaration| match declaration.parameters.as_slice() {
        [_, Type::Number(kind)] => *kind,
        _ => "",
    };
    let known = functions.filter_map(|it| Some((it.name.strip_prefix(setter)?, kind(it))));
    let known: Vec<_> = known.map(|(name, kind)| format!("({name:?}, {kind:?})")).collect();
    format!("const {list}: &[(&str, &str)] = &[{}];\n", known.join(", "))
}

/// Returns all names in the list, with their prefix.
fn names(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(|name| format!("rocksdb_{name}")).collect()
}

/// Returns the function names of a list, with their prefix, and the word of each.
fn pairs(list: &str) -> BTreeMap<String, String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.map(|(name, value)| (format!("rocksdb_{name}"), value.to_owned())).collect()
}

fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the sources without their comments.
fn code_below(directory: &Path) -> io::Result<String> {
    let mut code = String::new();
    for path in files_below(directory)? {
        let text = fs::read_to_string(path)?;
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
        lines.for_each(|line| {
            code.push_str(line);
            code.push('\n');
        });
    }
    Ok(code)
}

fn words_of(code: &str) -> BTreeSet<String> {
    let words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("rocksdb_")).map(str::to_owned).collect()
}
