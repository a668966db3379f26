//! Links of Markdown pages: the file must be there, and so must the heading.

use std::fs;
use std::path::Path;

/// Adds a problem for each link of `text` that leads nowhere.
pub(super) fn check(root: &Path, name: &str, text: &str, problems: &mut Vec<String>) {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    for (line, target) in links(text) {
        if super::address(&target) || target.contains("://") {
            problems.push(format!("{name}:{line}: names a network address: {target}"));
            continue;
        }
        if target.starts_with("mailto:") {
            continue;
        }
        let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
        let path = if file.is_empty() { root.join(name) } else { root.join(folder).join(file) };
        if !path.exists() {
            problems.push(format!("{name}:{line}: leads nowhere: {target}"));
        } else if !heading.is_empty() {
            let page = fs::read_to_string(&path).unwrap_or_default();
            if !headings(&page).any(|known| known == heading) {
                problems.push(format!("{name}:{line}: no such heading: {target}"));
            }
        }
    }
}

/// The targets of inline links outside code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second part between backquotes is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        let mut rest = prose.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let end = rest.find(')').unwrap_or(rest.len());
            found.push((i + 1, rest[..end].trim().to_owned()));
            rest = &rest[end..];
        }
    }
    found
}

/// The names under which a page's headings can be linked to.
fn headings(page: &str) -> impl Iterator<Item = String> {
    page.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_only() {
        let text = "a [b](c.md) `[d](e)` [f](g#h)\n```\n[i](j)\n```\n[k](l)";
        let targets: Vec<_> = links(text);
        let expected = [(1, "c.md"), (1, "g#h"), (5, "l")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(targets, expected);
    }

    #[test]
    fn headings_become_names() {
        let names: Vec<_> = headings("# The *one* idea\ntext\n## Lock order, 2").collect();
        assert_eq!(names, ["the-one-idea", "lock-order-2"]);
    }
}
