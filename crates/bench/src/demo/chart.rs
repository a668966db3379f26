//! The chart on the terminal: the p99 of every second of both engines over each other.

use std::io::IsTerminal;

use super::verdict::{Verdict, WAIT_NS};

/// The lowest row of the chart, and how many rows a factor of ten has.
const LOWEST_NS: f64 = 100_000.0;
const ROWS_PER_TEN: f64 = 3.0;

/// Columns of the scale's labels.
const LABELS: usize = 8;

/// The widest text and chart. Longer lines are hard to follow.
const COLUMNS_MAX: usize = 130;

const SATEEN: char = '●';
const OPPONENT: char = '█';
const BOTH: char = '◉';

/// The properties of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    pub(super) columns: usize,
    pub(super) colour: bool,
}

impl Screen {
    /// Describes standard output. Without a terminal it has 80 columns and no colour.
    pub(super) fn of_output() -> Screen {
        let output = std::io::stdout();
        let terminal = output.is_terminal();
        let size = terminal.then(|| rustix::termios::tcgetwinsize(&output).ok()).flatten();
        let columns = size.map_or(80, |size| usize::from(size.ws_col)).max(20);
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let plain = dumb || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Screen { columns: columns.min(COLUMNS_MAX), colour: terminal && !plain }
    }

    fn paint(&self, mark: char) -> String {
        match mark {
            SATEEN | BOTH if self.colour => format!("\x1b[32m{mark}\x1b[0m"),
            OPPONENT if self.colour => format!("\x1b[31m{mark}\x1b[0m"),
            _ => mark.to_string(),
        }
    }
}

/// Draws the chart, a line for each row.
pub(super) fn draw(verdict: &Verdict, screen: &Screen) -> String {
    let seconds = verdict.seconds.max(1);
    let room = screen.columns.saturating_sub(LABELS + 2).max(8);
    // On a wide screen a second has several columns. On a narrow one a column has several seconds.
    let wide = (room / seconds).clamp(1, 4);
    let at_once = seconds.div_ceil(room);
    let columns = seconds.div_ceil(at_once);
    let worst = |of: &[Option<u64>], column: usize| {
        let part = of.iter().skip(column * at_once).take(at_once);
        part.flatten().max().map(|ns| row_of(*ns))
    };
    let rows_of = |of: &[Option<u64>]| (0..columns).map(|c| worst(of, c)).collect::<Vec<_>>();
    let (ours, theirs) = (rows_of(&verdict.sateen.p99_ns), rows_of(&verdict.opponent.p99_ns));
    let highest = ours.iter().chain(&theirs).flatten().copied().max().unwrap_or(0);
    let top = highest.max(row_of(WAIT_NS) + 1);
    let mut lines = vec![format!(
        "p99 of each second   {} Sateen   {} {}   {} both",
        screen.paint(SATEEN),
        screen.paint(OPPONENT),
        verdict.opponent.name,
        screen.paint(BOTH)
    )];
    for row in (0..=top).rev() {
        let mut line = format!("{:>LABELS$} ", label(row));
        line.push(if row == row_of(WAIT_NS) { '┼' } else { '│' });
        for column in 0..columns {
            let mark = match (ours[column] == Some(row), theirs[column] == Some(row)) {
                (true, true) => BOTH,
                (true, false) => SATEEN,
                (false, true) => OPPONENT,
                (false, false) if row == row_of(WAIT_NS) => '┄',
                (false, false) => ' ',
            };
            (0..wide).for_each(|_| line.push_str(&screen.paint(mark)));
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.push(format!("{:>LABELS$} └{}", "", "─".repeat(columns * wide)));
    lines.push(axis(seconds, columns * wide));
    lines.join("\n") + "\n"
}

/// Labels every tenth second below the chart.
fn axis(seconds: usize, width: usize) -> String {
    let mut line = " ".repeat(LABELS + 2);
    for second in (0..=seconds).step_by(10.max(seconds / 6 / 10 * 10)) {
        let text = if second == 0 { "0".to_owned() } else { format!("{second} s") };
        let at = LABELS + 2 + (second * width / seconds).min(width.saturating_sub(text.len()));
        if line.chars().count() < at + text.len() {
            line = format!("{line:<at$}{text}");
        }
    }
    line
}

/// Returns the row of a latency.
fn row_of(ns: u64) -> usize {
    ((ns as f64 / LOWEST_NS).log10() * ROWS_PER_TEN).round().max(0.0) as usize
}

/// Returns the label of a row. Rows at a power of ten have one.
fn label(row: usize) -> String {
    if !row.is_multiple_of(ROWS_PER_TEN as usize) {
        return String::new();
    }
    match row / ROWS_PER_TEN as usize {
        0 => "0.1 ms".to_owned(),
        1 => "1 ms".to_owned(),
        2 => "10 ms".to_owned(),
        3 => "100 ms".to_owned(),
        tens => format!("{} s", 10u64.pow(u32::try_from(tens - 4).unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::verdict::tests::verdict;

    fn screen(columns: usize) -> Screen {
        Screen { columns, colour: false }
    }

    #[test]
    fn both_curves_stand_in_one_chart_that_fits_the_screen() {
        let sateen: Vec<u64> = (0..30).map(|at| 1 + at % 3).collect();
        let opponent: Vec<u64> = (0..30).map(|at| if at < 12 { 1500 } else { 2 }).collect();
        let verdict = verdict(&sateen, &opponent);
        for columns in [20, 40, 60, 80, 130] {
            let text = draw(&verdict, &screen(columns));
            let longest = text.lines().skip(1).map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= columns.max(48), "{columns}: {longest}\n{text}");
            assert!(text.contains(SATEEN) && text.contains(OPPONENT), "{text}");
            assert!(text.contains("100 ms ┼") && text.contains("RocksDB 11.8.1"), "{text}");
            assert!(!text.contains('\x1b'));
        }
        let text = draw(&verdict, &screen(80));
        let row = |label: &str| text.lines().find(|line| line.contains(label)).unwrap().to_owned();
        assert_eq!(row("100 ms").matches('┄').count(), 60, "two columns a second\n{text}");
        let stall = text.lines().find(|line| line.matches(OPPONENT).count() >= 20).unwrap();
        assert_eq!(stall.matches(OPPONENT).count(), 24, "{text}");
        let coloured = draw(&verdict, &Screen { columns: 80, colour: true });
        assert!(coloured.contains("\x1b[32m●\x1b[0m"));
    }

    #[test]
    fn a_run_longer_than_the_screen_shows_the_worst_of_each_column() {
        let mut opponent = vec![1; 3600];
        opponent[1234] = 5000;
        let text = draw(&verdict(&vec![1; 3600], &opponent), &screen(80));
        assert!(text.contains(OPPONENT) && text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn rows_are_thirds_of_a_factor_of_ten() {
        assert_eq!([0, 100_000, 1_000_000, WAIT_NS, 1_000_000_000].map(row_of), [0, 0, 3, 9, 12]);
        assert_eq!([0, 1, 9, 12, 15].map(label), ["0.1 ms", "", "100 ms", "1 s", "10 s"]);
    }
}
