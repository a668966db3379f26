//! Reads the inline links and the headings of Markdown pages. Text in code that looks like a link
//! or a heading is skipped.

use std::collections::BTreeMap;
use std::ops::Range;

/// An inline link or image, by its place in the page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Link {
    /// The line of the target, counted from 1.
    pub(crate) line: usize,
    /// The whole link, from its first bracket (an image: from the `!`) to its last parenthesis.
    pub(crate) whole: Range<usize>,
    pub(crate) text: Range<usize>,
    pub(crate) target: Range<usize>,
}

/// Returns the inline links of `page` in order. A link whose text contains a link is not one.
pub(crate) fn links(page: &str) -> Vec<Link> {
    let code = code(page);
    let bytes = page.as_bytes();
    let mut found = Vec::new();
    let mut opened = Vec::new();
    let mut line = 1;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => line += 1,
            _ if code[at] => {}
            b'[' => opened.push(at),
            b']' => {
                let Some(open) = opened.pop() else { continue };
                let rest = &page[at + 1..];
                let Some(length) = rest.strip_prefix('(').and_then(|rest| rest.find(')')) else {
                    continue;
                };
                let image = open > 0 && bytes[open - 1] == b'!';
                let target = at + 2..at + 2 + length;
                let whole = open - usize::from(image)..target.end + 1;
                found.push(Link { line, whole, text: open + 1..at, target });
            }
            _ => {}
        }
    }
    found
}

/// Returns the names under which the headings of `page` can be linked to. A heading that stands
/// there again gets a number, as forges and mdbook give it.
pub(crate) fn headings(page: &str) -> Vec<String> {
    let code = code(page);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = Vec::new();
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        if line.starts_with('#') && !code[at] {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept =
                title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let before = times.entry(name.clone()).or_default();
            names.push(if *before == 0 { name } else { format!("{name}-{before}") });
            *before += 1;
        }
        at += line.len();
    }
    names
}

/// Returns for each byte of `page` whether it is code: a fenced block, or a span between backquotes
/// within a paragraph.
fn code(page: &str) -> Vec<bool> {
    let bytes = page.as_bytes();
    let mut code = vec![false; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let starts_line = at == 0 || bytes[at - 1] == b'\n';
        let line = &page.as_bytes()[at..];
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        let end = if starts_line && line[indent..].starts_with(b"```") {
            let fence = bytes[at + indent..].iter().take_while(|byte| **byte == b'`').count();
            end_of_fence(bytes, at + indent + fence, fence)
        } else if bytes[at] == b'`' {
            let run = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
            end_of_span(bytes, at + run, run).unwrap_or(at + run)
        } else {
            at += 1;
            continue;
        };
        code[at..end].fill(true);
        at = end;
    }
    code
}

/// Returns the end of the block whose opening fence of `fence` backquotes ends at `from`: after the
/// line of its closing fence, or at the end of the page.
fn end_of_fence(bytes: &[u8], from: usize, fence: usize) -> usize {
    let mut at = from;
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        at += length + 1;
        let line = bytes[at..].trim_ascii_start();
        if line.iter().take_while(|byte| **byte == b'`').count() >= fence {
            let rest = bytes[at..].iter().position(|byte| *byte == b'\n');
            return rest.map_or(bytes.len(), |length| at + length);
        }
    }
    bytes.len()
}

/// Returns the end of the span whose opening `run` backquotes end at `from`, if it ends in its
/// paragraph.
fn end_of_span(bytes: &[u8], from: usize, run: usize) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() && !bytes[at..].starts_with(b"\n\n") {
        let ticks = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
        if ticks == run {
            return Some(at + run);
        }
        at += ticks.max(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(page: &str) -> Vec<(usize, &str)> {
        links(page).into_iter().map(|link| (link.line, &page[link.target])).collect()
    }

    #[test]
    fn links_are_found_outside_code_only() {
        let page = "a [b](c.md) `[d](e)` [f](g#h)\n```\n[i](j)\n```\n[k](l)";
        assert_eq!(targets(page), [(1, "c.md"), (1, "g#h"), (5, "l")]);
    }

    #[test]
    fn code_may_go_on_in_the_next_line_and_ends_with_its_paragraph() {
        assert_eq!(
            targets("`a\nb` [c](d)\n\n` [e](f)\n\n[g](h) `"),
            [(2, "d"), (4, "f"), (6, "h")]
        );
    }

    #[test]
    fn text_may_have_code_and_go_on_in_the_next_line() {
        let page = "see [the `x[0]`\nof y](z.md) and ![p](q.svg)";
        let found = links(page);
        assert_eq!(&page[found[0].text.clone()], "the `x[0]`\nof y");
        assert_eq!(&page[found[1].whole.clone()], "![p](q.svg)");
    }

    #[test]
    fn headings_become_names() {
        let page = "# The *one* idea\ntext\n```\n# no\n```\n## Lock order, 2\n## The one idea\n";
        assert_eq!(headings(page), ["the-one-idea", "lock-order-2", "the-one-idea-1"]);
    }
}
