//! C programs that are compiled against the header and linked with the library.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where the library was built: beside this test, or one above.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let found = test.ancestors().skip(1).take(2).find(|directory| {
        // Named outright, as a linker would look for it.
        directory.join("libsateen_rocksdb.so").exists()
    });
    found.expect("libsateen_rocksdb.so was built with this test").to_owned()
}

/// Compiles `source` with warnings as errors and links it.
fn build(compiler: &[&str], source: &Path, program: &Path) {
    let library = library();
    let (first, flags) = compiler.split_first().unwrap();
    let output = Command::new(first)
        .args(flags)
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here("include"))
        .arg(source)
        .arg("-L")
        .arg(&library)
        .arg("-lsateen_rocksdb")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-o")
        .arg(program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_c_program_finds_what_it_expects() {
    run("basic");
}

#[test]
fn compactions_filter() {
    run("compaction");
}

/// Runs the program `name`, which says that all is well.
fn run(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name);
    let source = here(&format!("tests/c/{name}.c"));
    build(&["cc", "-std=c99", "-D_DEFAULT_SOURCE"], &source, &program);
    let output = Command::new(&program).arg(directory.path()).output().unwrap();
    assert!(
        output.status.success() && output.stdout == b"all is well\n",
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The names that the header declares.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(here("include/rocksdb/c.h")).unwrap();
    let code = header.split("typedef struct").last().unwrap();
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '('));
    let names = words.filter_map(|word| {
        let (name, _) = word.split_once('(')?;
        name.starts_with("rocksdb_").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn every_function_of_the_header_links() {
    let directory = tempfile::tempdir().unwrap();
    let names = declared();
    assert!(names.len() > 180, "{}", names.len());
    let addresses: Vec<String> =
        names.iter().map(|name| format!("    (function)&{name},\n")).collect();
    let source = directory.path().join("all.c");
    let text = format!(
        "#include \"rocksdb/c.h\"\ntypedef void (*function)(void);\nfunction all[] = {{\n{}}};\n\
         int main(void) {{ return all[0] == 0; }}\n",
        addresses.concat()
    );
    std::fs::write(&source, text).unwrap();
    let program = directory.path().join("all");
    build(&["cc", "-std=c99"], &source, &program);
    assert!(Command::new(&program).status().unwrap().success());
}

/// What the sources export, the header declares.
#[test]
fn every_function_is_in_the_header() {
    let names = declared();
    for file in std::fs::read_dir(here("src")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        for word in words.filter(|word| word.starts_with("rocksdb_") && !word.ends_with("_t")) {
            assert!(names.iter().any(|name| name == word), "{word} is not in the header");
        }
    }
}
