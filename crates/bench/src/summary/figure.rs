//! A figure of a table: its unit, its spread over the rounds, and its ratio to that of another
//! engine.

use serde::Serialize;

use crate::units;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A count a second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A plain factor.
    Factor,
    /// A plain count.
    Count,
}

impl Unit {
    /// Formats the value with its unit.
    #[must_use]
    pub fn write(self, value: f64) -> String {
        match self {
            Unit::Rate => format!("{}/s", units::count(value)),
            Unit::Time => units::time(value as u64),
            Unit::Micros => format!("{} µs", units::three_digits(value)),
            Unit::Bytes => units::bytes(value as u64),
            Unit::Factor => units::three_digits(value),
            Unit::Count if value < 1000.0 => format!("{value:.0}"),
            Unit::Count => units::count(value),
        }
    }
}

/// A figure over the rounds of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Spread { median, min, max })
    }
}

/// Returns the ratio of the medians and the extremes of the ratios of single rounds.
pub(super) fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
    let by_round: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .filter(|(_, theirs)| **theirs > 0.0)
        .map(|(ours, theirs)| ours / theirs)
        .collect();
    let spread = Spread::of(by_round)?;
    let median = Spread::of(ours.to_vec())?.median / Spread::of(theirs.to_vec())?.median;
    median.is_finite().then_some(Spread { median, ..spread })
}
