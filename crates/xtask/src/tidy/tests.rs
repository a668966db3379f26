//! Each rule is broken once here and must report it.

use super::*;

fn problems(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    rust_file(name, text, &mut problems);
    problems
}

fn one(name: &str, text: &str, says: &str) {
    let found = problems(name, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(name) && found[0].contains(says), "{found:?}");
}

#[test]
fn the_repository_is_tidy_enough_to_list() {
    let mut files = Vec::new();
    let root = crate::chore::root();
    list(&root, &root, &mut files);
    assert!(files.iter().any(|name| name == "crates/xtask/src/tidy/tests.rs"));
    assert!(!files.iter().any(|name| name.starts_with("target/")));
}

#[test]
fn a_clean_file_has_no_problem() {
    assert_eq!(problems("crates/engine/src/a.rs", "//! A.\nfn a() {}\n"), Vec::<String>::new());
}

#[test]
fn files_open_with_their_purpose() {
    one("crates/engine/src/a.rs", "fn a() {}\n", "begins with `//!`");
}

#[test]
fn file_access_is_in_posix_only() {
    let text = "//! A.\nuse std::fs;\n";
    one("crates/engine/src/db.rs", text, "invariant 3");
    assert!(problems("crates/store/src/vfs/posix/mod.rs", text).is_empty());
    assert!(problems("crates/engine/src/db/tests.rs", text).is_empty());
    let in_test = "//! A.\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    assert!(problems("crates/engine/src/db.rs", in_test).is_empty());
    assert!(problems("crates/engine/src/db.rs", "//! A.\n// std::fs is not used\n").is_empty());
}

#[test]
fn threads_start_in_the_pool_only() {
    let text = "//! A.\nfn a() { std::thread::spawn(|| ()); }\n";
    one("crates/engine/src/db.rs", text, "invariant 2");
    assert!(problems("crates/engine/src/runtime/threads.rs", text).is_empty());
}

#[test]
fn control_is_pure() {
    one("crates/control/src/a.rs", "//! A.\nuse std::collections::HashMap;\n", "invariant 1");
    one("crates/control/src/a.rs", "//! A.\nfn a() { Instant::now(); }\n", "invariant 1");
    let mut problems = Vec::new();
    let manifest =
        "[package]\n[dependencies]\n# none\nserde = \"1\"\n\n[dev-dependencies]\nx = \"1\"";
    control_has_no_dependencies(manifest, &mut problems);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("serde"));
}

#[test]
fn unsafe_is_where_it_may_be() {
    let text = "//! A.\nfn a() { unsafe { b() } }\n";
    one("crates/engine/src/db.rs", text, "unsafe outside");
    assert!(problems("crates/store/src/memtable/skiplist/mod.rs", text).is_empty());
    assert!(
        problems("crates/engine/src/db.rs", "//! A.\n// unsafe\nlet unsafe_code = 1;\n").is_empty()
    );
}

#[test]
fn long_lines_and_files_are_found() {
    let long = format!("//! A.\n// {}\n", "x".repeat(100));
    one("crates/engine/src/a.rs", &long, "103 columns");
    let many = format!("//! A.\n{}", "// b\n".repeat(LINES_MAX));
    one("crates/engine/src/a.rs", &many, "601 lines");
}

#[test]
fn work_that_was_put_off_is_found() {
    let remark = format!("//! A.\n// {}: later\n", REMARKS[0]);
    one("crates/engine/src/a.rs", &remark, REMARKS[0]);
    let macro_call = format!("//! A.\nfn a() {{ {}() }}\n", NOWHERE[0]);
    one("crates/engine/src/a.rs", &macro_call, NOWHERE[0]);
}

#[test]
fn addresses_are_found_and_namespaces_are_not() {
    let scheme = "https:";
    one("crates/engine/src/a.rs", &format!("//! A.\n// see {scheme}//example.org\n"), "address");
    let namespace = format!("//! A.\n// {NAMESPACE}2000/svg\n");
    assert!(problems("crates/engine/src/a.rs", &namespace).is_empty());
}

#[test]
fn unsafe_code_is_counted_with_what_it_says() {
    let text =
        "//! A.\nfn a() {\n    // SAFETY: it is.\n    unsafe { b() }\n\n    unsafe { c() }\n}\n";
    let mut found = unsafe_code::Found::default();
    found.look_at("crates/store/src/vfs/posix/mod.rs", text);
    assert_eq!((found.blocks, found.outside.len()), (2, 0));
    assert_eq!(found.undocumented, ["crates/store/src/vfs/posix/mod.rs:6"]);
    let mut found = unsafe_code::Found::default();
    found.look_at("crates/store/src/base/key.rs", text);
    assert_eq!(found.outside, ["crates/store/src/base/key.rs:4", "crates/store/src/base/key.rs:6"]);
}

#[test]
fn primitives_come_from_where_they_can_be_replaced() {
    let text = "//! A.\nuse std::sync::atomic::AtomicBool;\n";
    one("crates/engine/src/write/queue.rs", text, "base::sync");
    assert_eq!(problems("crates/store/src/vfs/mem/mod.rs", text), Vec::<String>::new());
}
