//! The imports between the modules of a crate, read from the text of its files.
//!
//! [`read`] walks the tokens of one file and returns every path that leads to a module of the same
//! crate: `use` trees, `crate::…`, `super::…` and `self::…`. Comments, items that only tests have,
//! and the path of a `pub(in …)` do not count.

use crate::source::code_of;

/// The imports and the definitions of one file.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// All paths that may lead to another module, in the order of the text.
    pub(super) paths: Vec<WrittenPath>,
    /// Modules that are compiled for tests only, by their full path from the crate's root.
    pub(super) test_modules: Vec<Vec<String>>,
    /// Names of the items that the file defines outside inline modules.
    pub(super) defined: Vec<String>,
    /// The macros among them.
    pub(super) macros: Vec<String>,
    /// The `use` items of the file outside inline modules, which may give names to its module.
    pub(super) named: Vec<Named>,
}

/// A path from the crate's root.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrittenPath {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    /// False for a path that begins without `crate`, `super` or `self`: it may name another crate.
    pub(super) certain: bool,
}

/// One leaf of a `use` tree. `name` is `*` for a glob.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) segments: Vec<String>,
}

/// Reads a file that holds the module `module` (empty for the crate's root).
pub(super) fn read(module: &[String], text: &str) -> Imports {
    let code = code_of(text);
    let mut reader = Reader {
        tokens: tokens_of(&code),
        at: 0,
        module: module.to_vec(),
        depth: 0,
        inline: Vec::new(),
        found: Imports::default(),
    };
    reader.read_all();
    reader.found
}

#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Splits code into words, `::`, and single other characters.
fn tokens_of(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (i, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = if word(first) {
                rest.find(|c| !word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at(length);
            tokens.push(Token { text, line: i + 1 });
            rest = after.trim_start();
        }
    }
    tokens
}

fn is_word(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    /// The module at `at`, inline modules included.
    module: Vec<String>,
    /// The number of open braces.
    depth: usize,
    /// The depth at which each open inline module ends.
    inline: Vec<usize>,
    found: Imports,
}

impl<'a> Reader<'a> {
    fn text(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn before(&self, back: usize) -> &'a str {
        self.at.checked_sub(back).map_or("", |at| self.tokens[at].text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    fn read_all(&mut self) {
        while self.at < self.tokens.len() {
            match self.text(0) {
                "#" if self.text(1) == "[" => self.attribute(),
                "mod" if is_word(self.text(1)) && self.text(2) == "{" => {
                    self.module.push(self.text(1).to_owned());
                    self.inline.push(self.depth);
                    self.depth += 1;
                    self.at += 3;
                }
                "use" if self.before(1) != "." => self.use_item(),
                "{" => {
                    self.depth += 1;
                    self.at += 1;
                }
                "}" => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.inline.last() == Some(&self.depth) {
                        self.inline.pop();
                        self.module.pop();
                    }
                    self.at += 1;
                }
                word if is_word(word) => {
                    self.definition();
                    self.path();
                }
                _ => self.at += 1,
            }
        }
    }

    /// Notes the name of an item that the file's own module defines.
    fn definition(&mut self) {
        if self.depth != 0 {
            return;
        }
        let name = match self.text(0) {
            "struct" | "enum" | "union" | "fn" | "trait" | "type" | "const" | "static" => {
                self.text(1)
            }
            "macro_rules" if self.text(1) == "!" => self.text(2),
            _ => return,
        };
        if is_word(name) {
            self.found.defined.push(name.to_owned());
            if self.text(0) == "macro_rules" {
                self.found.macros.push(name.to_owned());
            }
        }
    }

    /// Skips an attribute, and its item if only tests compile that.
    fn attribute(&mut self) {
        let begin = self.at + 2;
        self.at = self.closing(self.at + 1) + 1;
        let condition = &self.tokens[begin.min(self.tokens.len())..self.at.min(self.tokens.len())];
        if condition.first().is_some_and(|token| token.text == "cfg") && asks_for_test(condition) {
            self.skip_item();
        }
    }

    /// Returns the index of the token that closes the bracket at `open`.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return i;
                    }
                }
                _ => (),
            }
        }
        self.tokens.len()
    }

    /// Skips an item, statement, field or arm that only tests have.
    fn skip_item(&mut self) {
        while self.text(0) == "#" && self.text(1) == "[" {
            self.at = self.closing(self.at + 1) + 1;
        }
        if self.text(0) == "pub" {
            self.at += 1;
            if self.text(0) == "(" {
                self.at = self.closing(self.at) + 1;
            }
        }
        if self.text(0) == "mod" && self.text(2) == ";" {
            let mut module = self.module.clone();
            module.push(self.text(1).to_owned());
            self.found.test_modules.push(module);
        }
        // A comma ends a field or an enum's variant; in an item it may follow a bound.
        let field = is_word(self.text(0)) && matches!(self.text(1), ":" | "(" | "," | "{");
        while self.at < self.tokens.len() {
            match self.text(0) {
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if field => {
                    self.at += 1;
                    return;
                }
                "{" => {
                    self.at = self.closing(self.at) + 1;
                    return;
                }
                "(" | "[" => self.at = self.closing(self.at) + 1,
                ")" | "]" | "}" => return,
                _ => self.at += 1,
            }
        }
    }

    fn use_item(&mut self) {
        self.at += 1;
        if self.text(0) == "<" {
            return; // The `use<…>` of a type, which names lifetimes.
        }
        let top = self.inline.is_empty() && self.depth == 0;
        self.use_tree(&[], top);
    }

    /// Reads a tree at `at` whose paths begin with `prefix`, as written.
    fn use_tree(&mut self, prefix: &[&'a str], top: bool) {
        let mut segments = prefix.to_vec();
        let line = self.line();
        if self.text(0) == "::" {
            self.at += 1; // A path to another crate: it begins with no word of this one.
            segments.push("::");
        }
        loop {
            match self.text(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(0), "}" | "") {
                        self.use_tree(&segments, top);
                        if self.text(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    return self.leaf(&segments, "*", line, top);
                }
                word if is_word(word) => {
                    self.at += 1;
                    if word != "self" || segments.is_empty() {
                        segments.push(word);
                    }
                    match self.text(0) {
                        "::" => self.at += 1,
                        "as" => {
                            let name = self.text(1);
                            self.at += 2;
                            return self.leaf(&segments, name, line, top);
                        }
                        _ => {
                            let name = segments.last().copied().unwrap_or_default();
                            return self.leaf(&segments, name, line, top);
                        }
                    }
                }
                _ => {
                    // A macro's variable cannot be followed.
                    self.at += 1;
                    return;
                }
            }
        }
    }

    fn leaf(&mut self, written: &[&str], name: &str, line: usize, top: bool) {
        let Some(segments) = self.resolve(written) else { return };
        if top {
            self.found.named.push(Named { name: name.to_owned(), segments: segments.clone() });
        }
        self.found.paths.push(WrittenPath { segments, line, certain: is_certain(written) });
    }

    /// Reads a path in code. Only one of at least two segments can lead to another module.
    fn path(&mut self) {
        let line = self.line();
        let first = self.text(0);
        let continues = matches!(self.before(1), "::" | ".");
        let visibility = self.before(1) == "in" && self.before(2) == "(";
        self.at += 1;
        if continues || visibility || self.text(0) != "::" {
            return;
        }
        let mut written = vec![first];
        while self.text(0) == "::" && is_word(self.text(1)) {
            written.push(self.text(1));
            self.at += 2;
        }
        if let Some(segments) = self.resolve(&written) {
            let certain = is_certain(&written);
            self.found.paths.push(WrittenPath { segments, line, certain });
        }
    }

    /// Returns the path from the crate's root, or `None` for one that begins with `::`.
    fn resolve(&self, written: &[&str]) -> Option<Vec<String>> {
        let mut base = self.module.clone();
        let mut rest = written;
        match written.first().copied()? {
            "crate" => {
                base.clear();
                rest = &written[1..];
            }
            "self" => rest = &written[1..],
            "super" => {
                while let ["super", after @ ..] = rest {
                    base.pop();
                    rest = after;
                }
            }
            "::" => return None,
            _ => (),
        }
        base.extend(rest.iter().map(|segment| (*segment).to_owned()));
        Some(base)
    }
}

fn is_certain(written: &[&str]) -> bool {
    matches!(written.first(), Some(&("crate" | "self" | "super")))
}

/// True if the condition names `test` or a checker of interleavings, and not inside a `not(…)`.
fn asks_for_test(condition: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    let mut negated = None;
    for (i, token) in condition.iter().enumerate() {
        match token.text {
            "(" => {
                let word = i.checked_sub(1).map_or("", |before| condition[before].text);
                if word == "not" && negated.is_none() {
                    negated = Some(depth);
                }
                depth += 1;
            }
            ")" => {
                depth = depth.saturating_sub(1);
                if negated == Some(depth) {
                    negated = None;
                }
            }
            "test" | "doctest" | "loom" | "shuttle" if negated.is_none() => return true,
            _ => (),
        }
    }
    false
}
