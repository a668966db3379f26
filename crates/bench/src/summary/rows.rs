//! The tables: one section for each workload and rate, one row for each figure.

use serde::Serialize;

use super::comparison::Comparison;
use super::figure::{Spread, Unit, ratio};

/// One line of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub label: String,
    /// What that means, in a sentence.
    pub about: String,
    /// How its figures are written.
    pub unit: Unit,
    /// True for a throughput.
    pub higher_is_better: bool,
    /// For each engine.
    pub cells: Vec<Option<Spread>>,
    /// Of the first engine to the second: of the medians, and the extremes round by round.
    pub ratio: Option<Spread>,
    /// The ratio in words.
    pub compared: Option<Comparison>,
}

impl Row {
    /// A row of one figure for each engine.
    #[must_use]
    pub fn of_figures(label: &str, about: &str, unit: Unit, figures: &[f64]) -> Row {
        let ratio = match figures {
            [ours, theirs] => ratio(&[*ours], &[*theirs]),
            _ => None,
        };
        let cells = figures.iter().map(|figure| Spread::of(vec![*figure])).collect();
        Row::new(label, about, unit, cells, ratio)
    }

    pub(super) fn new(
        label: &str,
        about: &str,
        unit: Unit,
        cells: Vec<Option<Spread>>,
        ratio: Option<Spread>,
    ) -> Row {
        let higher_is_better = unit == Unit::Rate;
        Row {
            label: label.to_owned(),
            about: about.to_owned(),
            unit,
            higher_is_better,
            cells,
            ratio,
            compared: ratio.map(|ratio| Comparison::of(ratio, label, unit, higher_is_better)),
        }
    }
}

/// The table of one workload, at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The workload and its rate.
    pub title: String,
    /// The outcome in a sentence or two.
    pub headline: String,
    /// The workload.
    pub workload: String,
    /// Operations a second offered, if the command said so.
    pub rate: Option<u64>,
    /// The engines that ran it.
    pub engines: Vec<String>,
    /// Repetitions.
    pub rounds: usize,
    /// The figures.
    pub rows: Vec<Row>,
}
