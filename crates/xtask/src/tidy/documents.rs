//! Checks the Markdown pages: the page and the heading of each link exist, the book's summary has
//! each page of `docs/` once, and so has its front page, but for pages that another front page has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::markdown::{headings, links};

/// The table of contents of the book, which is a page itself and not in the book.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The front page, which says what question each page answers.
const FRONT: &str = "docs/README.md";

/// Adds a problem for each link of `text` that leads nowhere.
pub(super) fn check(root: &Path, name: &str, text: &str, problems: &mut Vec<String>) {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    for link in links(text) {
        let (line, target) = (link.line, text[link.target].trim());
        if super::address(target) || target.contains("://") {
            problems.push(format!("{name}:{line}: names a network address: {target}"));
            continue;
        }
        if target.starts_with("mailto:") {
            continue;
        }
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() { root.join(name) } else { root.join(folder).join(file) };
        if !path.exists() {
            problems.push(format!("{name}:{line}: leads nowhere: {target}"));
        } else if !heading.is_empty() {
            let page = fs::read_to_string(&path).unwrap_or_default();
            if !headings(&page).iter().any(|known| known == heading) {
                problems.push(format!("{name}:{line}: no such heading: {target}"));
            }
        }
    }
}

/// Adds a problem for each page of `files` below `docs/` that the summary `text` lacks, or has more
/// than once.
pub(super) fn check_summary(files: &[String], text: &str, problems: &mut Vec<String>) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for link in links(text) {
        *times.entry(text[link.target].trim()).or_default() += 1;
    }
    let pages = files.iter().filter(|name| name.ends_with(".md") && *name != SUMMARY);
    for page in pages {
        let Some(name) = page.strip_prefix("docs/") else { continue };
        match times.get(name).copied().unwrap_or(0) {
            0 => {
                problems.push(format!("{page}: is not in {SUMMARY}: add `- [Title]({name})` there"))
            }
            1 => {}
            _ => problems.push(format!("{SUMMARY}: has {name} more than once")),
        }
    }
}

/// Adds a problem for each page of `files` below `docs/` that the front page `text` does not name.
/// A folder with a front page of its own is named by that.
pub(super) fn check_front(files: &[String], text: &str, problems: &mut Vec<String>) {
    let named: BTreeSet<&str> =
        links(text).into_iter().map(|link| text[link.target].trim()).collect();
    let has_front = |folder: &Path| {
        let front = folder.join("README.md");
        front != Path::new(FRONT) && files.iter().any(|name| front == Path::new(name))
    };
    for page in files.iter().filter(|name| name.ends_with(".md") && *name != SUMMARY) {
        let Some(name) = page.strip_prefix("docs/").filter(|_| page != FRONT) else { continue };
        // The front page of the repository names no page for this one.
        let folders = Path::new(page).ancestors().skip(1);
        let elsewhere = folders.filter(|folder| folder.starts_with("docs")).any(has_front);
        let own = name.ends_with("/README.md");
        if (own || !elsewhere) && !named.contains(name) {
            problems.push(format!("{page}: is not in {FRONT}: add a line there with its question"));
        }
    }
}

/// Checks all pages of the repository, and nothing else.
pub(crate) fn run(root: &Path) -> crate::chore::Outcome {
    let mut files = Vec::new();
    super::list(root, root, &mut files);
    let mut problems = Vec::new();
    for name in files.iter().filter(|name| name.ends_with(".md")) {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        check(root, name, &text, &mut problems);
    }
    summary(root, &files, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// [`check_summary`] and [`check_front`] of the pages in the repository.
pub(super) fn summary(root: &Path, files: &[String], problems: &mut Vec<String>) {
    match fs::read_to_string(root.join(SUMMARY)) {
        Ok(text) => check_summary(files, &text, problems),
        Err(error) => problems.push(format!("{SUMMARY}: {error}")),
    }
    match fs::read_to_string(root.join(FRONT)) {
        Ok(text) => check_front(files, &text, problems),
        Err(error) => problems.push(format!("{FRONT}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_each_page_once() {
        let files = ["README.md", "docs/a.md", "docs/b/c.md", "docs/d.md", "docs/SUMMARY.md"];
        let files = files.map(str::to_owned);
        let mut problems = Vec::new();
        let text = "# Summary\n\n- [A](a.md)\n- [C](b/c.md)\n- [Again](a.md)\n";
        check_summary(&files, text, &mut problems);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("a.md more than once"), "{problems:?}");
        assert!(problems[1].contains("docs/d.md: is not in"), "{problems:?}");
    }

    #[test]
    fn the_front_page_names_each_page_that_no_other_front_page_has() {
        let files = [
            "docs/README.md",
            "docs/SUMMARY.md",
            "docs/a.md",
            "docs/b.md",
            "docs/c/d.md",
            "docs/e/README.md",
            "docs/e/f/g.md",
            "docs/h/README.md",
            "README.md",
        ];
        let files = files.map(str::to_owned);
        let mut problems = Vec::new();
        check_front(&files, "[A](a.md) [E](e/README.md)\n", &mut problems);
        let pages: Vec<_> = problems.iter().filter_map(|text| text.split(':').next()).collect();
        assert_eq!(pages, ["docs/b.md", "docs/c/d.md", "docs/h/README.md"]);
    }

    #[test]
    fn a_link_to_a_heading_that_is_not_there_is_a_problem() {
        let mut problems = Vec::new();
        check(&crate::chore::root(), "STYLE.md", "[a](#style)\n[b](#none)\n", &mut problems);
        assert_eq!(problems, ["STYLE.md:2: no such heading: #none"]);
    }
}
