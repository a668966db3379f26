//! The list of figures on the terminal, and the tables of all figures in `docs/papers/README.md`,
//! which are made from the catalogue and the records.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::check::{Held, number};
use super::model::{Figure, Kind, Paper, Plan};
use super::record::{self, Recorded, Verdict};

/// The page, and the marks between which the tables stand.
const PAGE: &str = "docs/papers/README.md";
const BEGIN: &str = "<!-- figures: made by `cargo xtask figure table` -->";
const END: &str = "<!-- end of figures -->";

/// The folder of the records that the documentation shows.
pub(super) const FOLDER: &str = "docs/papers/figures";

/// Returns the list for the terminal: a line for each figure.
pub(super) fn list(root: &Path, figures: &[&Figure]) -> String {
    let folder = root.join(FOLDER);
    let mut text = format!("{:<18} {:<13} {:>6}  {:<14} title\n", "figure", "by", "min", "last");
    for figure in figures {
        let (means, minutes, last) = match &figure.kind {
            Kind::Diagram => ("-", String::new(), "diagram"),
            Kind::Measured(plan) => {
                let recorded = record::recorded(&folder, figure);
                let minutes = match &recorded {
                    Some(recorded) => (recorded.seconds / 60.0).ceil() as u32,
                    None => plan.minutes,
                };
                let last = recorded.map_or("not run", |recorded| recorded.verdict().word());
                (plan.means.name(), minutes.to_string(), last)
            }
        };
        let name = format!("{} {}", figure.paper.key(), figure.number);
        let title = figure.title;
        let _infallible = writeln!(text, "{name:<18} {means:<13} {minutes:>6}  {last:<14} {title}");
    }
    text
}

/// Writes the tables into the page.
pub(crate) fn write_table(root: &Path, figures: &[&Figure]) -> Result<(), String> {
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).map_err(|error| format!("{PAGE}: {error}"))?;
    let text = with_tables(&text, &tables(root, figures))?;
    fs::write(page, text).map_err(|error| format!("{PAGE}: {error}"))
}

/// Returns a problem if the page has other tables than it should.
pub(crate) fn is_current(root: &Path, figures: &[&Figure]) -> Result<(), String> {
    let page = root.join(PAGE);
    let text = fs::read_to_string(page).map_err(|error| format!("{PAGE}: {error}"))?;
    if with_tables(&text, &tables(root, figures))? == text {
        return Ok(());
    }
    Err(format!("{PAGE}: its tables of figures are out of date: run cargo xtask figure table"))
}

/// Replaces what stands between the marks.
fn with_tables(page: &str, tables: &str) -> Result<String, String> {
    let parts = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| rest.split_once(END).map(|(_, after)| (before, after)));
    let (before, after) = parts.ok_or_else(|| format!("{PAGE}: lacks {BEGIN} or {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{tables}{END}{after}"))
}

/// Returns the tables of the four papers' figures.
fn tables(root: &Path, figures: &[&Figure]) -> String {
    let folder = root.join(FOLDER);
    let mut text = String::new();
    for paper in Paper::ALL.into_iter().filter(|paper| *paper != Paper::Sateen) {
        let own = || figures.iter().filter(move |figure| figure.paper == paper);
        let _infallible = writeln!(text, "### {}\n", paper.title());
        text.push_str("| figure | shows | by | shape | what was found |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for figure in own() {
            let row = match &figure.kind {
                Kind::Diagram => continue,
                Kind::Measured(plan) => measured(figure, plan, &folder),
            };
            let _infallible = writeln!(text, "| {} {row}", link(figure, &folder));
        }
        let diagrams = own().filter(|figure| matches!(figure.kind, Kind::Diagram));
        let diagrams: Vec<String> = diagrams.map(|figure| figure.label()).collect();
        if !diagrams.is_empty() {
            let _infallible =
                writeln!(text, "\nDiagrams and definitions, not counted: {}.", diagrams.join(", "));
        }
        text.push('\n');
    }
    text
}

fn link(figure: &Figure, folder: &Path) -> String {
    let drawing = figure.name() + ".svg";
    if folder.join(&drawing).is_file() {
        format!("[{}](figures/{drawing})", figure.label())
    } else {
        figure.label()
    }
}

fn measured(figure: &Figure, plan: &Plan, folder: &Path) -> String {
    let (title, means) = (figure.title, plan.means.name());
    let Some(recorded) = record::recorded(folder, figure) else {
        return format!("| {title} | {means} | not run yet | |");
    };
    let (shape, found) = outcome(plan, &recorded);
    format!("| {title} | {means} | {shape} | {found} |")
}

/// Returns the verdict in a word, and the figures behind it in words.
fn outcome(plan: &Plan, recorded: &Recorded) -> (&'static str, String) {
    let verdict = recorded.verdict();
    let found: Vec<String> = match verdict {
        Verdict::Agrees => recorded.held.iter().map(brief).collect(),
        Verdict::Differs => {
            let missed = recorded.held.iter().filter(|held| !held.holds());
            missed.map(Held::sentence).collect()
        }
    };
    let mut found = found.join("; ");
    if verdict == Verdict::Differs && !plan.because.is_empty() {
        let _infallible = write!(found, ". {}", plan.because);
    }
    (verdict.word(), found)
}

fn brief(held: &Held) -> String {
    let found = held.quotient.map_or_else(String::new, number);
    match held.paper {
        Some(paper) => format!("{}: {found} (paper {})", held.text, number(paper)),
        None => format!("{}: {found}", held.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced_and_nothing_else() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let new = with_tables(&page, "new\n\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(with_tables(&new, "new\n\n").unwrap(), new);
        assert!(with_tables("no marks", "new").is_err());
    }
}
