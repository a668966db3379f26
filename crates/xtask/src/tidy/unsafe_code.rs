//! Counts what is unsafe: the blocks and implementations, those that do not say why they are sound,
//! and those outside the modules that may have them. The compiler and clippy hold the same rules;
//! this is for the figures of the reliability programme.

use std::fs;
use std::path::Path;

use super::{UNSAFE_FILES, has_word, list};
use crate::source::code_of;

/// How many lines above its `unsafe` a comment may begin, unless an empty line comes between.
const COMMENT_LINES_MAX: usize = 14;

/// What was found in all files of the repository.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) blocks: u64,
    /// `file:line` of those without a `SAFETY:`.
    pub(crate) undocumented: Vec<String>,
    /// `file:line` of those where no `unsafe` may be.
    pub(crate) outside: Vec<String>,
}

/// Looks at all files of the repository.
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
