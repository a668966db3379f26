//! `db diff`, and `rocksdb check` of a program in C.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::path::Path;
use std::process::{Command, Output};

fn sateen(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sateen")).args(words).current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn diff_lists_what_differs_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    for (db, key, value) in [
        ("a", "both", "1"),
        ("a", "changed", "old"),
        ("a", "first\tonly", "1"),
        ("b", "both", "1"),
        ("b", "changed", "new"),
        ("b", "second", "2"),
    ] {
        assert!(sateen(folder, &["db", "put", db, key, value]).status.success());
    }
    let differing = sateen(folder, &["db", "diff", "a", "b"]);
    assert_eq!(text(&differing), "~ changed\told\tnew\n- first\\tonly\t1\n+ second\t2\n");
    assert_eq!(differing.status.code(), Some(1));
    let told = String::from_utf8(differing.stderr).unwrap();
    assert!(told.contains("3 records differ: 1 only in the first, 1 only in the second"), "{told}");
    let first = sateen(folder, &["db", "diff", "a", "b", "--keys", "--limit", "1"]);
    assert_eq!(text(&first), "~ changed\n");
    let json = text(&sateen(folder, &["db", "diff", "a", "b", "--json"]));
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!((last["same"].as_u64(), last["changed"].as_u64()), (Some(1), Some(1)));

    assert!(json.contains(r#""key":"changed","first":"old","second":"new"}"#), "{json}");
    assert!(
        json.contains(r#"{"sign":"-","column_family":"default","key":"first\tonly","first":"1"}"#)
    );
    assert_eq!(sateen(folder, &["db", "diff", "a", "b", "--limit", "0"]).status.code(), Some(2));

    let same = sateen(folder, &["db", "diff", "a", "a"]);
    assert_eq!((text(&same).as_str(), same.status.code()), ("the same 3 records\n", Some(0)));
    // A column family that only one has differs in all its records.
    let words = ["db", "put", "b", "key", "1", "--cf", "more", "--create-cf"];
    assert!(sateen(folder, &words).status.success());
    let more = text(&sateen(folder, &["db", "diff", "a", "b"]));
    assert!(more.ends_with("+ more\tkey\t1\n") && more.contains("~ default\tchanged"), "{more}");
    assert_eq!(sateen(folder, &["db", "diff", "a", "none"]).status.code(), Some(1));
}

#[test]
fn the_functions_that_a_program_calls_are_looked_up() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let source = "void rocksdb_put(void); void rocksdb_delete_file(void);\n\
                  void rocksdb_of_the_future(void);\n\
                  void f(void) { rocksdb_put(); }\n\
                  void g(void) { rocksdb_delete_file(); }\n\
                  void h(void) { rocksdb_of_the_future(); }\n";
    let compiled = |name: &str, source: &str| {
        std::fs::write(folder.join("program.c"), source).unwrap();
        let words = ["-shared", "-fPIC", "-o", name, "program.c"];
        Command::new("cc").args(words).current_dir(folder).status().is_ok_and(|done| done.success())
    };
    if !compiled("program.so", source) {
        println!("SKIPPED(no C compiler)");
        return;
    }
    let found = sateen(folder, &["rocksdb", "check", "program.so"]);
    let told = text(&found);
    assert_eq!(found.status.code(), Some(1), "{told}");
    assert!(told.contains("calls 3 functions") && told.contains("; 1 are there"), "{told}");
    assert!(told.contains("  rocksdb_delete_file\n"), "{told}");
    assert!(told.contains("  rocksdb_of_the_future\n"), "{told}");
    assert!(compiled("sound.so", "void rocksdb_put(void); void f(void) { rocksdb_put(); }\n"));
    let sound = sateen(folder, &["rocksdb", "check", "sound.so", "--json"]);
    assert_eq!(sound.status.code(), Some(0));
    assert!(text(&sound).contains("\"there\":1"));
    // Neither is read to its end, which it does not have.
    for endless in ["/dev/zero", "/proc/self/fd"] {
        let endless = sateen(folder, &["rocksdb", "check", endless]);
        assert_eq!(endless.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&endless.stderr).contains("not a file"));
    }
    let other = sateen(folder, &["rocksdb", "check", "program.c"]);
    assert!(String::from_utf8(other.stderr).unwrap().contains("not a program"));
}
