//! Counts unsafe blocks and implementations: all of them, those without a reason, and those outside
//! the allowed modules. The compiler and clippy check the same rules; these counts are figures of
//! the reliability programme.

use std::fs;
use std::path::Path;

use super::{UNSAFE_FILES, has_word, list};
use crate::source::code_of;

/// The largest distance in lines between a comment and its `unsafe`. An empty line ends the search.
const COMMENT_LINES_MAX: usize = 14;

/// The counts of all files of the repository.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) blocks: u64,
    /// Places without a `SAFETY:` comment, as `file:line`.
    pub(crate) undocumented: Vec<String>,
    /// Places where no `unsafe` is allowed, as `file:line`.
    pub(crate) outside: Vec<String>,
}

/// Counts in all files of the repository.
pub(crate) fn count(root: &Path) -> Found {
    let mut files = Vec::new();
    list(root, root, &mut files);
    files.sort();
    let mut found = Found::default();
    for name in files.iter().filter(|name| name.ends_with(".rs")) {
        if let Ok(text) = fs::read_to_string(root.join(name)) {
            found.look_at(name, &text);
        }
    }
    found
}

impl Found {
    pub(super) fn look_at(&mut self, name: &str, text: &str) {
        let code = code_of(text);
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in code.lines().enumerate() {
            if !has_word(line, "unsafe") {
                continue;
            }
            let place = format!("{name}:{}", at + 1);
            if !UNSAFE_FILES.iter().any(|allowed| name.starts_with(allowed)) {
                self.outside.push(place.clone());
            }
            let opens = ["unsafe {", "unsafe impl"].iter().any(|word| line.contains(word));
            if !opens && !line.trim_end().ends_with("unsafe") {
                continue;
            }
            self.blocks += 1;
            let above = lines[..=at].iter().rev().take(COMMENT_LINES_MAX);
            let mut above = above.take_while(|line| !line.trim().is_empty());
            if !above.any(|line| line.contains("SAFETY:")) {
                self.undocumented.push(place);
            }
        }
    }
}
