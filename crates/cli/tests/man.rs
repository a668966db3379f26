//! Man pages and completions are generated from the command line.

#[path = "../examples/man.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod man;

use std::fs;

#[test]
fn man_pages_and_completions_are_generated() {
    let folder = tempfile::TempDir::new().unwrap();
    man::generate(folder.path()).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let get = read("sateen-db-get.1");
    assert!(get.contains("Print the value of a key"), "{get}");
    assert!(get.contains("sateen db get library walden") && !get.contains("EXTRA"), "{get}");
    assert!(read("sateen.1").contains("sateen\\-db(1)"));
    for page in ["sateen-bench.1", "sateen-demo.1", "sateen-wal-dump.1"] {
        assert!(read(page).starts_with(".ie"), "{page}");
    }
    for (name, has) in [
        ("sateen.bash", "complete -F _sateen"),
        ("_sateen", "#compdef sateen"),
        ("sateen.fish", "complete -c sateen"),
    ] {
        let text = read(name);
        assert!(text.contains(has) && text.contains("checkpoint"), "{name}");
    }
}
