//! The tables: one section for each workload and rate, one row for each figure.

use serde::Serialize;

use super::comparison::{Compared, Comparison};
use super::figure::{Spread, Unit, ratio};

/// The row of what the benchmark itself costs.
pub(super) const BENCHMARK_CPU: &str = "CPU of the benchmark alone";

/// One line of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name of the figure.
    pub label: String,
    /// Its meaning in a sentence.
    pub about: String,
    /// Its unit.
    pub unit: Unit,
    /// True if a larger figure is better.
    pub higher_is_better: bool,
    /// The figures of each engine.
    pub cells: Vec<Option<Spread>>,
    /// The ratio of the first engine to the second: that of the medians, and the extremes of single
    /// rounds.
    pub ratio: Option<Spread>,
    /// The comparison of the two in words.
    pub compared: Option<Comparison>,
}

impl Row {
    /// Makes a row of one figure for each engine. Rates are those of an offered load.
    #[must_use]
    pub fn of_figures(label: &str, about: &str, unit: Unit, figures: &[f64]) -> Row {
        let ratio = match figures {
            [ours, theirs] => ratio(&[*ours], &[*theirs]),
            _ => None,
        };
        let cells = figures.iter().map(|figure| Spread::of(vec![*figure])).collect();
        Row::new(label, about, unit, cells, ratio, true)
    }

    pub(super) fn new(
        label: &str,
        about: &str,
        unit: Unit,
        cells: Vec<Option<Spread>>,
        ratio: Option<Spread>,
        open_loop: bool,
    ) -> Row {
        let higher_is_better = unit == Unit::Rate;
        let offered = open_loop && unit == Unit::Rate;
        let what = Compared { label, unit, higher_is_better, offered };
        let compared = match cells.as_slice() {
            // The benchmark's own cost is none of the engines'.
            _ if label == BENCHMARK_CPU => None,
            [Some(ours), Some(theirs)] => {
                Some(Comparison::of(ours.median, theirs.median, ratio, what))
            }
            _ => None,
        };
        Row {
            label: label.to_owned(),
            about: about.to_owned(),
            unit,
            higher_is_better,
            cells,
            ratio,
            compared,
        }
    }
}

/// The table of one workload at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The workload and its rate.
    pub title: String,
    /// The outcome in one or two sentences.
    pub headline: String,
    /// The workload.
    pub workload: String,
    /// Operations a second offered, if the command said so.
    pub rate: Option<u64>,
    /// The engines that ran it.
    pub engines: Vec<String>,
    /// The number of repetitions.
    pub rounds: usize,
    /// The figures.
    pub rows: Vec<Row>,
}
