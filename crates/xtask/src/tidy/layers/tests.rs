//! Small made-up crates, each with one thing that the check must report or must accept.

use super::*;

fn problems_with(files: &[(&str, &str)], page: &str) -> Vec<String> {
    let files: Vec<File> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let mut problems = Vec::new();
    let tables = table::read(page);
    one_crate("made_up", &files, tables.get("made_up").map(Vec::as_slice), &mut problems);
    problems
}

fn problems(files: &[(&str, &str)]) -> Vec<String> {
    problems_with(files, "")
}

const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::{B, inner::Deep as D};\n");

#[test]
fn imports_in_one_direction_pass() {
    let files = [
        LIB,
        ("a.rs", "use crate::b::B;\nuse std::fs;\nfn a() { crate::c::c() }\n"),
        ("b/mod.rs", "pub mod inner;\npub struct B;\n"),
        ("b/inner.rs", "use super::B;\npub struct Deep;\n"),
        ("c.rs", "pub fn c() {}\n"),
    ];
    assert_eq!(problems(&files), Vec::<String>::new());
}

#[test]
fn a_cycle_names_its_edges_with_their_places() {
    let files = [
        LIB,
        ("a.rs", "//! A.\nuse crate::b::B;\n"),
        ("b/mod.rs", "pub mod inner;\npub struct B;\n"),
        ("b/inner.rs", "\n\nfn f() { super::super::c::c() }\n"),
        ("c.rs", "use crate::a::{self, A};\n"),
    ];
    assert_eq!(
        problems(&files),
        [
            "crates/made_up/src: 3 import each other: a, b, c",
            "crates/made_up/src/a.rs:2: `a` imports `b` (1 places)",
            "crates/made_up/src/b/inner.rs:3: `b` imports `c` (1 places)",
            "crates/made_up/src/c.rs:1: `c` imports `a` (2 places)",
        ]
    );
}

#[test]
fn a_name_of_the_root_leads_to_where_it_is_defined() {
    let files = [
        LIB,
        ("a.rs", "use crate::{B, D};\n"),
        ("b/mod.rs", "pub mod inner;\npub struct B;\n"),
        ("b/inner.rs", "use crate::a::A;\npub struct Deep;\n"),
        ("c.rs", ""),
    ];
    let found = problems(&files);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].starts_with("crates/made_up/src/a.rs:1: `a` imports `b` (2 places)"));
}

#[test]
fn globs_and_exported_macros_of_the_root_are_followed() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use b::*;\n"),
        ("a.rs", "#[macro_export]\nmacro_rules! name { () => {} }\nfn f(b: crate::B) {}\n"),
        ("b.rs", "pub struct B;\ncrate::name!();\n"),
    ];
    assert_eq!(problems(&files).len(), 3);
}

#[test]
fn what_the_root_itself_defines_closes_a_cycle() {
    let files = [
        ("main.rs", "mod a;\nuse a::A;\nstruct Root;\nfn main() {}\n"),
        ("a.rs", "use super::Root;\npub struct A;\n"),
    ];
    let found = problems(&files);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].contains("`a` imports `main`"));
}

#[test]
fn tests_and_comments_do_not_count() {
    let files = [
        LIB,
        ("a.rs", "use crate::b::B;\n"),
        (
            "b/mod.rs",
            "//! [`crate::a::A`]\n\
             #[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n\
             #[cfg(all(test, not(loom)))]\nmod more;\n\
             #[cfg(test)]\nuse crate::a::A;\n\
             struct S {\n    #[cfg(test)]\n    a: crate::a::A,\n    b: u8,\n}\n\
             #[cfg(test)]\n#[allow(x)]\nfn f<T, U>(t: [T; 2]) -> U where T: V, U: W \
             { crate::a::f() }\n\
             pub(in crate::a) fn g() { \"crate::a::x\"; }\n",
        ),
        ("b/more.rs", "use crate::a::A;\n"),
        ("b/more/deeper.rs", "use crate::a::A;\n"),
        ("c.rs", ""),
    ];
    assert_eq!(problems(&files), Vec::<String>::new());
}

#[test]
fn code_that_is_left_out_of_tests_counts() {
    let files = [
        LIB,
        ("a.rs", "use crate::b::B;\n"),
        ("b.rs", "#[cfg(not(test))]\nuse crate::a::A;\n"),
        ("c.rs", ""),
    ];
    assert_eq!(problems(&files).len(), 3);
}

#[test]
fn an_inline_module_is_one_level_deeper() {
    let files = [
        LIB,
        ("a.rs", "mod x {\n    use super::super::b::B;\n    use super::b;\n}\nuse super::b::B;\n"),
        ("b.rs", ""),
        ("c.rs", ""),
    ];
    let files: Vec<File> = files.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect();
    let graph = Graph::of("lib.rs", &files);
    let edge = &graph.edges[&("a".to_owned(), "b".to_owned())];
    assert_eq!((edge.line, edge.count), (2, 2));
}

const PAGE_TEXT: &str = "# Page\n\n## Layers\n\n### `crates/made_up`\n\n\
    | layer | folders and files | may import |\n| --- | --- | --- |\n\
    | high | `a.rs` | all below |\n| middle | `b/` | low |\n| low | `c` | nothing |\n\n## Next\n";

#[test]
fn the_table_allows_what_it_names() {
    let files = [
        LIB,
        ("a.rs", "use crate::b::B;\nuse crate::c::C;\n"),
        ("b/mod.rs", "use crate::c::C;\n"),
        ("c.rs", ""),
    ];
    assert_eq!(problems_with(&files, PAGE_TEXT), Vec::<String>::new());
}

#[test]
fn a_forbidden_import_fails() {
    let files =
        [LIB, ("a.rs", ""), ("b.rs", ""), ("c.rs", "//! C.\nuse crate::b::B;\nuse crate::X;\n")];
    assert_eq!(
        problems_with(&files, PAGE_TEXT),
        [
            "crates/made_up/src/c.rs:2: `c` (low) may not import `b` (middle): ARCHITECTURE.md",
            "crates/made_up/src/c.rs:3: `c` (low) imports the crate's root",
        ]
    );
}

#[test]
fn a_folder_without_a_layer_and_a_row_without_a_folder_fail() {
    let page = PAGE_TEXT.replace("`c`", "`d`").replace("| low |\n", "| lower |\n");
    let files = [LIB, ("a.rs", ""), ("b.rs", ""), ("c.rs", "")];
    let found = problems_with(&files, &page);
    let says =
        ["there is no layer \"lower\"", "`d` does not exist", "no layer of `made_up` names `c`"];
    assert_eq!(found.len(), says.len(), "{found:?}");
    for (found, says) in found.iter().zip(says) {
        assert!(found.contains(says), "{found}");
    }
}
