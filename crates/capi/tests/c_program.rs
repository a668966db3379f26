//! C programs, compiled against the header and linked with the library.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the directory of the built library: that of this test, or its parent.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let found = test.ancestors().skip(1).take(2).find(|directory| {
        // The name is the one that a linker would look for.
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
fn value_files_that_jobs_wrote() {
    run("value_files");
}

#[test]
fn tables_and_the_work_on_them() {
    run("upkeep");
}

#[test]
fn directories_of_tables_and_filters_of_the_wal() {
    run("paths");
}

#[test]
fn compactions_in_other_processes() {
    run_with("remote", &["-pthread"]);
}

#[test]
fn files_ranges_and_a_copy_by_files() {
    run("files");
}

#[test]
fn listeners_pauses_and_compactions_of_files() {
    run_with("events", &["-pthread"]);
}

#[test]
fn reads_and_batches_of_all_kinds() {
    run("reads");
}

#[test]
fn options_by_function_and_by_name() {
    run("options");
}

#[test]
fn reading_the_log() {
    run("log");
}

#[test]
fn backups_are_made_and_restored() {
    run("backups");
}

#[test]
fn column_families_move_to_other_databases() {
    run("exports");
}

#[test]
fn keys_have_timestamps() {
    run("timestamps");
    run("timestamps_later");
}

#[test]
fn transactions_of_both_kinds() {
    run("transactions");
}

#[test]
fn batches_are_read_before_they_are_written() {
    run("batch_index");
}

#[test]
fn statistics_and_memory() {
    run("memory");
}

#[test]
fn what_operations_did() {
    run("perf");
}

#[test]
fn memtables_of_several_databases_have_one_limit() {
    run("write_buffers");
}

#[test]
fn calls_are_traced_and_replayed() {
    run("traces");
}

#[test]
fn environments_and_stored_options() {
    run("environments");
}

#[test]
fn compactions_filter() {
    run("compaction");
}

#[test]
fn what_bindings_expect() {
    run("bindings");
}

#[test]
fn universal_and_fifo_compaction() {
    run("styles");
}

#[test]
fn promises_are_kept_or_refused() {
    run("promises");
}

#[test]
fn misuse_is_told() {
    run("misuse");
}

#[test]
fn bad_input_is_refused_by_name() {
    run("bad_input");
}

/// Returns the command for a program that must find the library it was linked with. Cargo's path
/// would come first and may lead to an older one.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

#[test]
fn keys_in_an_order_of_the_callers() {
    run("comparator");
}

#[test]
fn iterators_end_with_prefixes() {
    run("prefix");
}

#[test]
fn paths_and_names_are_bytes() {
    run("bytes");
}

#[test]
fn a_forked_child_takes_nothing_from_its_parent() {
    let said = run("fork");
    assert_eq!(said, "", "on standard error");
}

#[test]
fn a_database_of_rocksdb_is_not_touched() {
    run("foreign");
}

#[test]
fn logs_limits_and_the_end_of_work() {
    run("info_log");
}

#[test]
fn values_keep_the_form_that_they_were_written_in() {
    run("ttl");
}

/// The benchmark of transactions runs in all its ways, on few keys.
#[test]
fn the_benchmark_of_transactions_runs() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("transactions");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(here("include"));
    compiler.arg(here("benches/transactions.c")).arg("-o").arg(&program);
    let output = compiler.args(["-ldl", "-lm"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let library = library().join("libsateen_rocksdb.so");
    let few = ["keys=1000", "threads=2", "seconds=1"];
    for (number, how) in [
        &["kind=optimistic", "draw=zipfian"][..],
        &["kind=pessimistic", "draw=uniform", "lock=1", "snapshot=0"],
        &["kind=pessimistic", "rate=50", "peak=100", "period=1", "sync=1"],
    ]
    .into_iter()
    .enumerate()
    {
        let database = directory.path().join(format!("db{number}"));
        let output = command(&program).arg(&library).arg(database).args(few).args(how).output();
        let output = output.unwrap();
        let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        let out = String::from_utf8(out).unwrap();
        assert!(output.status.success(), "{how:?}: {out} {err}");
        assert!(out.contains("commits a second") && out.contains("p99"), "{how:?}: {out}");
    }
}

/// The examples print the expected output.
#[test]
fn the_examples_run() {
    let said = |name: &str| {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join(name);
        let source = here(&format!("examples/c/{name}.c"));
        let text = std::fs::read_to_string(&source).unwrap();
        let how = format!("cc {name}.c $(pkg-config --cflags --libs sateen_rocksdb) -o {name}");
        assert!(text.contains(&how), "{name}.c says how it is built");
        build(&["cc", "-std=c99"], &source, &program);
        let output = command(&program).arg(directory.path().join("db")).output().unwrap();
        let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {}: {err}", output.status);
        String::from_utf8(out).unwrap()
    };
    let open = "walden: Thoreau, 1854\nwalden: not there\na second open: refused\n";
    assert_eq!(said("open"), open);
    assert_eq!(said("batch"), "writes: 3\naccount/1: -\naccount/2: 110\naccount/3: -\n");
    let iterate = "now: melville/moby-dick=1851 melville/pierre=1852 melville/typee=1846\n\
                   backwards: melville/typee=1846 melville/pierre=1852 melville/moby-dick=1851\n\
                   before pierre: melville/typee=1846\n";
    assert_eq!(said("iterate"), iterate);
    let families = "default: -\nsessions: -\narchive: rescued\nthere are: default archive\n";
    assert_eq!(said("families"), families);
    assert_eq!(said("tail_latency"), "all: 20000\nslowed down to: 0\n");
    let all = std::fs::read_dir(here("examples/c")).unwrap().count();
    assert_eq!(all, 5, "an example that is not run");
}

/// A program that chose an older version of RocksDB calls the older functions.
#[test]
fn signatures_are_those_of_the_version_that_was_chosen() {
    for abi in 7..=11 {
        run_with("abi", &[&format!("-DSATEEN_ROCKSDB_ABI={abi}")]);
    }
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("one.c");
    std::fs::write(&source, "#include \"rocksdb/c.h\"\n").unwrap();
    for abi in ["6", "12"] {
        let mut compiler = Command::new("cc");
        compiler.args([&format!("-DSATEEN_ROCKSDB_ABI={abi}"), "-fsyntax-only", "-I"]);
        let output = compiler.arg(here("include")).arg(&source).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("SATEEN_ROCKSDB_ABI must be"), "{said}");
    }
}

/// Runs the program `name`, which checks itself. Returns its standard error.
fn run(name: &str) -> String {
    run_with(name, &[])
}

/// Does the same with more compiler flags.
fn run_with(name: &str, flags: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name);
    let source = here(&format!("tests/c/{name}.c"));
    let compiler = [&["cc", "-std=c99", "-D_DEFAULT_SOURCE"], flags].concat();
    build(&compiler, &source, &program);
    let output = command(&program).arg(directory.path()).output().unwrap();
    assert!(
        output.status.success() && output.stdout == b"all is well\n",
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the text of the headers, included ones after those that include them.
fn headers() -> Vec<(PathBuf, String)> {
    let parts = std::fs::read_dir(here("include/rocksdb/c")).unwrap();
    let parts = parts.map(|entry| entry.unwrap().path());
    let all = parts.chain([here("include/rocksdb/c.h")]);
    all.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Returns the names that the headers declare.
fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, text) in headers() {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '('));
        names.extend(words.filter_map(|word| {
            let (name, _) = word.split_once('(')?;
            name.starts_with("rocksdb_").then(|| name.to_owned())
        }));
    }
    names
}

/// Returns the names that RocksDB's libraries export.
fn listed() -> BTreeSet<String> {
    let list = std::fs::read_to_string(here("names.txt")).unwrap();
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(|name| format!("rocksdb_{name}")).collect()
}

/// Builds and runs a program that takes the address of each function.
fn all_link(compiler: &[&str], head: &str, names: &BTreeSet<String>) {
    let directory = tempfile::tempdir().unwrap();
    let addresses: Vec<String> =
        names.iter().map(|name| format!("    (function)&{name},\n")).collect();
    let source = directory.path().join("all.c");
    let text = format!(
        "{head}typedef void (*function)(void);\nfunction all[] = {{\n{}}};\n\
         int main(void) {{\n\
         for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) if (!all[i]) return 1;\n\
         return 0;\n}}\n",
        addresses.concat()
    );
    std::fs::write(&source, text).unwrap();
    let program = directory.path().join("all");
    build(compiler, &source, &program);
    assert!(command(&program).status().unwrap().success());
}

#[test]
fn every_function_of_the_header_links() {
    let names = declared();
    assert!(names.len() > 1700, "{}", names.len());
    let head = "#include \"rocksdb/c.h\"\n";
    all_link(&["cc", "-std=c99", "-pedantic"], head, &names);
    all_link(&["c++", "-std=c++17", "-x", "c++"], head, &names);
}

#[test]
fn every_function_of_rocksdb_links() {
    let names = listed();
    assert!(names.len() > 1750, "{}", names.len());
    let head: String = names.iter().map(|name| format!("extern void {name}(void);\n")).collect();
    all_link(&["cc", "-std=c99"], &head, &names);
}

/// Each header can be included alone and by its path, as generators of bindings do.
#[test]
fn every_header_stands_alone() {
    let directory = tempfile::tempdir().unwrap();
    for (path, _) in headers() {
        let source = directory.path().join("one.c");
        let text = format!("#include \"{}\"\nint main(void) {{ return 0; }}\n", path.display());
        std::fs::write(&source, text).unwrap();
        let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
        assert!(Command::new("cc").args(flags).arg(&source).status().unwrap().success());
    }
}

/// A declaration: the result, the name, and the types of the parameters.
struct Declared {
    returns: String,
    name: String,
    parameters: Vec<String>,
}

fn declarations() -> Vec<Declared> {
    let mut all = Vec::new();
    for (_, text) in headers() {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let text = lines.collect::<Vec<_>>().join(" ");
        for declaration in text.split(';') {
            let Some((head, parameters)) = declaration.split_once('(') else { continue };
            let mut words: Vec<&str> = head.split_whitespace().collect();
            let Some(name) = words.pop() else { continue };
            let returns =
                words.into_iter().skip_while(|word| word.contains("*/")).collect::<Vec<_>>();
            let of_parameter = |parameter: &str| {
                let parameter = parameter.trim().trim_end_matches(')').trim();
                parameter.rsplit_once(' ').map_or(parameter, |(of_it, _)| of_it).to_owned()
            };
            all.push(Declared {
                returns: returns.join(" "),
                name: name.to_owned(),
                parameters: parameters.split(',').map(of_parameter).collect(),
            });
        }
    }
    all
}

/// Returns the checks of a program: a getter returns what its setter was given.
fn checks_of_getters() -> String {
    let all = declarations();
    let narrow = std::fs::read_to_string(here("narrow.txt")).unwrap();
    let find = |name: &str| all.iter().find(|declared| declared.name == name);
    let mut checks = String::new();
    for setter in all.iter().filter(|declared| declared.parameters.len() == 2) {
        let [handle, value] = setter.parameters.as_slice() else { continue };
        let values = match value.as_str() {
            "unsigned char" => ["1", "0"],
            "double" => ["2.5", "4"],
            "int" | "size_t" | "uint64_t" | "uint32_t" | "int64_t" => ["3", "4"],
            _ => continue,
        };
        let getter = setter.name.replacen("_set_", "_get_", 1);
        let create = handle.trim_end_matches("_t*").to_owned() + "_create";
        let create = create.replace("table_options", "options");
        // These are flags although an integer sets them.
        let is_flag = narrow.contains(&format!("{} bool\n", getter.replacen("rocksdb_", "", 1)))
            || setter.name.ends_with("disable_auto_compactions");
        let values = if is_flag { ["1", "0"] } else { values };
        if setter.name.ends_with("_statistics_level") {
            // The getter works only with statistics on.
            continue;
        }
        let (Some(get), Some(create)) = (find(&getter), find(&create)) else { continue };
        let same = get.parameters == [handle.clone()] && get.returns != "void";
        if getter == setter.name || !same || create.parameters != ["void"] {
            continue;
        }
        let (set, get, create) = (&setter.name, &get.name, &create.name);
        for value in values {
            checks += &format!(
                "{{ {handle} it = {create}(); {set}(it, {value}); \
                 if ({get}(it) != {value}) puts(\"{get} {value}\"); {}(it); }}\n",
                create.trim_end_matches("_create").to_owned() + "_destroy"
            );
        }
    }
    checks
}

#[test]
fn getters_return_what_was_set() {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("get.c"), directory.path().join("get"));
    let checks = checks_of_getters();
    assert!(checks.lines().count() > 250, "{}", checks.lines().count());
    let text = format!(
        "#include \"rocksdb/c.h\"\n#include <stdio.h>\nint main(void) {{\n{checks}return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    build(&["cc", "-std=c99"], &source, &program);
    let output = command(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The headers declare everything that the sources export.
#[test]
fn every_function_is_in_the_header() {
    let names = declared();
    for file in std::fs::read_dir(here("src")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        // Types and beginnings of composed names are not functions.
        let is_function = |word: &&str| {
            word.starts_with("rocksdb_") && !word.ends_with("_t") && !word.ends_with('_')
        };
        for word in words.filter(is_function) {
            // The header gives a function of an older interface its current name.
            let name = word.rsplit_once("_abi").map_or(word, |(name, _)| name);
            assert!(names.contains(name), "{name} is not in the header");
        }
    }
}

#[test]
fn what_is_not_there_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("absent");
    build(&["cc", "-std=c99"], &here("tests/c/absent.c"), &program);
    let output = command(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "libsateen_rocksdb: Not implemented: rocksdb_delete_file\n");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
}
