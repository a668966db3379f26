//! Rust source with everything but code blanked out, so that a comment cannot break a rule about
//! code. Comments, strings and characters become spaces; line ends stay.

/// Returns `text` with comments and literals blanked out and the same lines.
pub(crate) fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let length = literal_or_comment(&bytes[at..], at.checked_sub(1).map(|i| bytes[i]));
        if length == 0 {
            code.push(if bytes[at].is_ascii() { char::from(bytes[at]) } else { ' ' });
            at += 1;
        } else {
            for byte in &bytes[at..at + length] {
                code.push(if *byte == b'\n' { '\n' } else { ' ' });
            }
            at += length;
        }
    }
    code
}

/// Returns the same without test modules: everything from `#[cfg(test)]` with a `mod … {` on,
/// because test modules close a file here.
pub(crate) fn shipped_code_of(text: &str) -> String {
    let code = code_of(text);
    let lines: Vec<&str> = code.lines().collect();
    let opens = |i: usize| lines.get(i + 1).is_some_and(|next| next.trim_end().ends_with('{'));
    let tests = (0..lines.len()).find(|i| lines[*i].trim() == "#[cfg(test)]" && opens(*i));
    lines[..tests.unwrap_or(lines.len())].join("\n")
}

/// Returns the bytes of a comment or literal at the start of `rest`; 0 if there is none.
fn literal_or_comment(rest: &[u8], before: Option<u8>) -> usize {
    let word_before = before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest),
        [b'r', b'"' | b'#', ..] if !word_before => raw_string(rest, 1),
        [b'b', b'r', b'"' | b'#', ..] if !word_before => raw_string(rest, 2),
        [b'\'', ..] => character(rest),
        _ => 0,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &rest[open + 1..];
    let end = body.windows(close.len()).position(|window| window == close);
    end.map_or(rest.len(), |end| open + 1 + end + close.len())
}

/// Returns the bytes of a character literal, which a lifetime is not.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', _, tail @ ..] => tail.iter().position(|b| *b == b'\'').map_or(0, |end| end + 4),
        [_, first, tail @ ..] => {
            // One character of UTF-8, then the closing quote.
            let more = match *first {
                0xF0.. => 3,
                0xE0.. => 2,
                0xC0.. => 1,
                _ => 0,
            };
            if tail.get(more) == Some(&b'\'') { more + 3 } else { 0 }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_vanish_and_code_stays() {
        let text =
            "a /* unsafe /* x */ y */ b // unsafe\nc \"uns\\\"afe\" r#\"un\"safe\"# '\\'' 'é' d";
        let words: Vec<String> = code_of(text).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["a", "b", "c", "d"]);
        assert_eq!(code_of(text).lines().count(), 2);
    }

    #[test]
    fn lifetimes_and_identifiers_are_code() {
        let text = "fn f<'a>(x: &'a str, bar: r#type) -> &'static str { var\"\" }";
        assert!(code_of(text).contains("<'a>(x: &'a str, bar: r#type) -> &'static str { var"));
    }

    #[test]
    fn a_test_module_is_not_shipped() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(shipped_code_of(text), "fn a() {}");
        let sibling = "#[cfg(test)]\nmod tests;\nuse std::fs;\n";
        assert!(shipped_code_of(sibling).contains("std::fs"));
    }
}
