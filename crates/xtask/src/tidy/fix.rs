//! Breaks comments that are too long. The rest of a line goes to the front of the next line of the
//! same comment if that is prose, and otherwise to a line of its own.

/// Returns `text` with every comment line of more than `columns_max` columns broken at a space.
pub(super) fn break_comments(text: &str, columns_max: usize) -> String {
    let mut out: Vec<String> = Vec::new();
    // The rest of the line before, with its prefix.
    let mut carried: Option<(String, String)> = None;
    for line in text.lines() {
        let mut line = line.to_owned();
        if let Some((prefix, words)) = carried.take() {
            match line.strip_prefix(&prefix).filter(|rest| is_prose(rest)) {
                Some(rest) => line = format!("{prefix}{words} {rest}"),
                None => flush(&prefix, &words, columns_max, &mut out),
            }
        }
        carried = break_line(&mut line, columns_max);
        out.push(line);
    }
    if let Some((prefix, words)) = carried {
        flush(&prefix, &words, columns_max, &mut out);
    }
    let mut joined = out.join("\n");
    joined.push('\n');
    joined
}

fn flush(prefix: &str, words: &str, columns_max: usize, out: &mut Vec<String>) {
    let mut line = format!("{prefix}{words}");
    while let Some((prefix, words)) = break_line(&mut line, columns_max) {
        out.push(std::mem::replace(&mut line, format!("{prefix}{words}")));
    }
    out.push(line);
}

/// Cuts `line` to fit. Returns its prefix and the rest.
fn break_line(line: &mut String, columns_max: usize) -> Option<(String, String)> {
    if line.chars().count() <= columns_max {
        return None;
    }
    let indent = line.len() - line.trim_start().len();
    let marker = ["//! ", "/// ", "// "].into_iter().find(|m| line[indent..].starts_with(m))?;
    let start = indent + marker.len();
    let words = &line[start..];
    // Two spaces continue a list item. More spaces are code or a figure.
    let item = if words.starts_with("- ") || words.starts_with("  ") { "  " } else { "" };
    if words.starts_with(['|', '#'])
        || words.starts_with("```")
        || words[item.len()..].starts_with(' ')
    {
        return None;
    }
    let limit = line.char_indices().nth(columns_max).map_or(line.len(), |(at, _)| at);
    // A space may stand at the limit itself, because the text before it fits.
    let words_from = start + item.len();
    let cut = line.get(words_from..=limit)?.rfind(' ').map(|at| words_from + at)?;
    let prefix = format!("{}{item}", &line[..start]);
    let words = line[cut + 1..].to_owned();
    line.truncate(cut);
    Some((prefix, words))
}

/// True if words may be put before `rest`: not a heading, list, table, fence or empty line.
fn is_prose(rest: &str) -> bool {
    !rest.trim().is_empty()
        && !rest.starts_with(['#', '-', '|', ' ', '*', '['])
        && !rest.starts_with("```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_to_the_next_line_of_the_comment() {
        let text = "//! one two three\n//! four\ncode\n";
        assert_eq!(break_comments(text, 12), "//! one two\n//! three\n//! four\ncode\n");
        assert_eq!(break_comments(text, 15), "//! one two\n//! three four\ncode\n");
        assert_eq!(break_comments(text, 17), text);
    }

    #[test]
    fn lists_headings_and_code_stay() {
        let text = "    /// - one two\n    /// - three\n";
        assert_eq!(break_comments(text, 15), "    /// - one\n    ///   two\n    /// - three\n");
        let heading = "/// one two\n/// # Errors\n";
        assert_eq!(break_comments(heading, 9), "/// one\n/// two\n/// # Errors\n");
        let code = "let long_name = other_name; // why\n";
        assert_eq!(break_comments(code, 10), code);
    }
}
