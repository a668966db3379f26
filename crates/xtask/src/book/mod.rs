//! The chore `book`: the pages of `docs/` as a site with search, built by mdbook.
//!
//! 1. [`run`] checks the links of all Markdown pages, as tidy does.
//! 2. mdbook reads `docs/book.toml` and `docs/SUMMARY.md`. It passes the book to [`preprocess`],
//!    which adds the pages at the top of the repository. `mdbook build docs` and
//!    `mdbook serve docs` do the same without this chore.
//! 3. [`site`] checks each link and anchor of the pages that mdbook wrote.
//!
//! Without mdbook only the first step runs, and the chore says how to install it.

mod preprocess;
mod site;

use std::path::Path;
use std::process::Command;

use crate::chore::{Outcome, skipped, step};
use crate::tidy::documents;

/// The directory of the site, as `docs/book.toml` sets it.
const SITE: &str = "target/book";

pub(crate) fn run(root: &Path, arguments: &[String]) -> Outcome {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // mdbook asks whether the preprocessor serves a renderer: it serves all.
        ["preprocess", "supports", _] => Ok(()),
        ["preprocess"] => preprocess::run(root),
        [] => {
            step("the links of the pages", || documents::run(root))?;
            if Command::new("mdbook").arg("--version").output().is_err() {
                return skipped("book", "no mdbook: `cargo install mdbook` installs it");
            }
            step("mdbook build docs", || build(root))?;
            step("the links of the site", || site::check(&root.join(SITE)))?;
            println!("{}", root.join(SITE).join("index.html").display());
            Ok(())
        }
        _ => Err(vec!["book: takes no arguments".to_owned()]),
    }
}

fn build(root: &Path) -> Outcome {
    let mut mdbook = Command::new("mdbook");
    mdbook.args(["build", "docs"]).current_dir(root);
    // The preprocessor runs cargo in another folder.
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR") {
        mdbook.env("CARGO_TARGET_DIR", root.join(target));
    }
    match mdbook.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(vec![format!("mdbook build docs: {status}")]),
        Err(error) => Err(vec![format!("mdbook build docs: {error}")]),
    }
}
