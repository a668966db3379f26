//! Prepares the book that mdbook has read, as its preprocessor: JSON in, JSON out.
//!
//! The pages of `docs/` link to files of the repository, so that they can be read in it. mdbook
//! knows the files below `docs/` alone. [`run`] therefore
//!
//! 1. adds the pages of [`PROJECT`] as chapters below `project/`;
//! 2. turns links to these pages into links to their chapters ([`rewrite`]);
//! 3. replaces links to other files of the repository (source code) by their text.

use std::fs;
use std::io::{stdin, stdout};
use std::path::Path;

use serde_json::{Value, json};

use crate::chore::Outcome;
use crate::markdown::links;

/// Pages outside of `docs/` that are in the book: file, chapter, and title.
const PROJECT: [(&str, &str, &str); 8] = [
    ("README.md", "project/sateen.md", "Sateen"),
    ("ARCHITECTURE.md", "project/architecture.md", "Architecture"),
    ("STYLE.md", "project/style.md", "Style"),
    ("CONTRIBUTING.md", "project/contributing.md", "Contributing"),
    ("fuzz/README.md", "project/fuzzing.md", "Fuzzing"),
    ("peers/README.md", "project/peers.md", "Peers"),
    ("SECURITY.md", "project/security.md", "Security"),
    ("CHANGELOG.md", "project/changelog.md", "Changes"),
];

pub(super) fn run(root: &Path) -> Outcome {
    let fail = |error: &dyn std::fmt::Display| vec![format!("book preprocess: {error}")];
    // mdbook passes its context, and the book.
    let (_, mut book): (Value, Value) =
        serde_json::from_reader(stdin().lock()).map_err(|error| fail(&error))?;
    let chapters = book["items"].as_array_mut().ok_or_else(|| fail(&"a book without items"))?;
    for item in chapters.iter_mut() {
        chapter(root, item);
    }
    chapters.push(json!({ "PartTitle": "The project" }));
    for (file, path, title) in PROJECT {
        let text = fs::read_to_string(root.join(file)).map_err(|error| fail(&error))?;
        let content = rewrite(root, file, path, &text);
        chapters.push(json!({ "Chapter": {
            "name": title, "content": content, "number": null, "sub_items": [],
            "path": path, "source_path": null, "parent_names": [],
        }}));
    }
    serde_json::to_writer(stdout().lock(), &book).map_err(|error| fail(&error))
}

/// Rewrites the links of a chapter and of those below it.
fn chapter(root: &Path, item: &mut Value) {
    let Some(chapter) = item.get_mut("Chapter") else { return };
    if let (Some(path), Some(text)) = (chapter["path"].as_str(), chapter["content"].as_str()) {
        let content = rewrite(root, &format!("docs/{path}"), path, text);
        chapter["content"] = Value::String(content);
    }
    for below in chapter["sub_items"].as_array_mut().into_iter().flatten() {
        self::chapter(root, below);
    }
}

/// Returns `text` with the links of the book: the page is `file` in the repository and `path` in
/// the book.
fn rewrite(root: &Path, file: &str, path: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for link in links(text) {
        let target = &text[link.target.clone()];
        if target.starts_with('#') || target.contains(':') {
            continue;
        }
        let (to, heading) =
            target.split_once('#').map_or((target, None), |(to, heading)| (to, Some(heading)));
        let there = from_folder_of(file, to);
        match in_book(root, &there) {
            Some(there) => {
                out.push_str(&text[from..link.target.start]);
                out.push_str(&relative(path, &there));
                if let Some(heading) = heading {
                    out.push('#');
                    out.push_str(heading);
                }
                from = link.target.end;
            }
            None => {
                out.push_str(&text[from..link.whole.start]);
                out.push_str(&text[link.text]);
                from = link.whole.end;
            }
        }
    }
    out.push_str(&text[from..]);
    out
}

/// Returns the place in the book of the file or folder `file` of the repository, if it is there.
fn in_book(root: &Path, file: &str) -> Option<String> {
    if let Some((_, path, _)) = PROJECT.iter().find(|(name, ..)| *name == file) {
        return Some((*path).to_owned());
    }
    let path = file.strip_prefix("docs/").filter(|path| *path != "SUMMARY.md")?;
    if !root.join(file).is_dir() {
        return Some(path.to_owned());
    }
    let front = format!("{path}/README.md");
    root.join("docs").join(&front).exists().then_some(front)
}

/// Resolves the link `to` of the page `file`: a path from the top of the repository.
fn from_folder_of(file: &str, to: &str) -> String {
    let mut words: Vec<&str> = file.split('/').collect();
    words.pop();
    for word in to.split('/') {
        match word {
            "" | "." => {}
            ".." => {
                words.pop();
            }
            word => words.push(word),
        }
    }
    words.join("/")
}

/// Returns the link from the page `from` to the file `to`, both paths in the book.
fn relative(from: &str, to: &str) -> String {
    let mut from: Vec<&str> = from.split('/').collect();
    from.pop();
    let to: Vec<&str> = to.split('/').collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_chapters_or_become_text() {
        let root = crate::chore::root();
        let text =
            "[a](../STYLE.md#style) [b](cli.md) [`c`](../crates/xtask) [d](#e) ![f](papers/g.svg)";
        let expected = "[a](project/style.md#style) [b](cli.md) `c` [d](#e) ![f](papers/g.svg)";
        assert_eq!(rewrite(&root, "docs/x.md", "x.md", text), expected);
        let text = "[a](../decisions/README.md) [b](../../README.md) [c](../decisions)";
        let expected =
            "[a](../decisions/README.md) [b](../project/sateen.md) [c](../decisions/README.md)";
        assert_eq!(rewrite(&root, "docs/format/x.md", "format/x.md", text), expected);
    }
}
