//! The tables on the terminal.

use std::fmt::Write;

use crate::notes;
use crate::result::Report;
use crate::summary::{Section, Spread, Sweep, Unit, sections, sweeps};

/// The widest line of text beside the tables.
const COLUMNS: usize = 100;

/// Renders the tables of all workloads.
pub(crate) fn table(report: &Report) -> String {
    let mut out = wrapped(&notes::setting(report), COLUMNS);
    for section in sections(report) {
        // Writing to a String cannot fail.
        let _ = write_section(&mut out, &section);
    }
    for sweep in sweeps(report) {
        let _ = write_sweep(&mut out, &sweep);
    }
    for note in notes::of_report(report) {
        let _ = write!(out, "\n{}", wrapped(&note, COLUMNS));
    }
    out
}

fn write_section(out: &mut String, section: &Section) -> std::fmt::Result {
    let compared = section.rows.iter().any(|row| row.compared.is_some());
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut head = vec![section.title.clone()];
    head.extend(section.engines.iter().cloned());
    if compared {
        head.push(format!("{} is", section.engines[0]));
        head.push(if section.rounds > 1 { "round by round" } else { "" }.to_owned());
    }
    lines.push(head);
    for row in &section.rows {
        let mut line = vec![row.label.clone()];
        line.extend(row.cells.iter().map(|cell| written(*cell, row.unit)));
        if compared {
            let words = row.compared.as_ref();
            line.push(words.map_or_else(|| "–".to_owned(), |one| one.text.clone()));
            line.extend(words.and_then(|one| one.range.clone()));
        }
        lines.push(line);
    }
    write_lines(out, &lines)?;
    if section.rounds > 1 {
        writeln!(out, "medians of {} rounds, engines in turn", section.rounds)?;
    }
    Ok(())
}

/// Writes the p99 and the worst second's p99 of each engine at each rate.
fn write_sweep(out: &mut String, sweep: &Sweep) -> std::fmt::Result {
    let mut head = vec![format!("{}, p99 by rate", sweep.workload)];
    for engine in &sweep.engines {
        head.extend([engine.clone(), "worst second".to_owned()]);
    }
    let mut lines = vec![head];
    for (at, rate) in sweep.rates.iter().enumerate() {
        let mut line = vec![Unit::Rate.write(*rate as f64)];
        for (p99, worst) in sweep.p99.iter().zip(&sweep.worst) {
            let time = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| Unit::Time.write(ns));
            line.extend([time(p99[at]), time(worst[at])]);
        }
        lines.push(line);
    }
    write_lines(out, &lines)
}

/// Writes a table. The first line is its head, and the first column is aligned left.
fn write_lines(out: &mut String, lines: &[Vec<String>]) -> std::fmt::Result {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    writeln!(out)?;
    for (number, line) in lines.iter().enumerate() {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            if column == 0 {
                write!(text, "{cell:<width$}")?;
            } else {
                write!(text, "  {cell:>width$}")?;
            }
        }
        writeln!(out, "{}", text.trim_end())?;
        if number == 0 {
            writeln!(out, "{}", "─".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1)))?;
        }
    }
    Ok(())
}

fn written(cell: Option<Spread>, unit: Unit) -> String {
    cell.map_or_else(|| "–".to_owned(), |spread| unit.write(spread.median))
}

/// Wraps `text` into lines of at most `columns` columns, each with a line end. An empty text stays
/// empty. No line begins with a number at the end of a sentence: "1." would look like a list.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in words(text) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > columns {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(&word);
        }
    }
    if text.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// Returns the words of a text. A number that ends a sentence belongs to the word before it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let number = word.strip_suffix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        match words.last_mut().filter(|_| number) {
            Some(last) => last.extend([" ", word]),
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{report, run};

    #[test]
    fn columns_line_up_and_comparisons_stand_beside_the_figures() {
        let runs =
            vec![run("sateen", "overwrite", 1, 150e3), run("rocksdb", "overwrite", 1, 100e3)];
        let text = table(&report(runs));
        let throughput = text.lines().find(|line| line.starts_with("throughput")).unwrap();
        assert!(throughput.contains("150k/s") && throughput.contains("1.5 × faster"), "{text}");
        let head = text.lines().find(|line| line.starts_with("overwrite")).unwrap();
        let ends = |line: &str, word: &str| {
            let at = line.find(word).unwrap();
            line[..at + word.len()].chars().count()
        };
        assert_eq!(ends(head, "rocksdb"), ends(throughput, "100k/s"), "{text}");
    }

    #[test]
    fn one_engine_has_no_ratio() {
        let text = table(&report(vec![run("rocksdb", "fillseq", 1, 5.0)]));
        assert!(
            !text.lines().any(|line| line.ends_with(" is")) && text.contains("peak memory"),
            "{text}"
        );
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 9), "one two\nthree\n");
        assert_eq!(wrapped("incomprehensible it", 5), "incomprehensible\nit\n");
        assert_eq!(wrapped("Sateen in 1. But", 9), "Sateen\nin 1. But\n");
        assert_eq!(wrapped("", 80), "");
    }
}
