//! A ratio in words: "2.1 × faster".

use serde::Serialize;

use super::figure::{Spread, Unit};

/// Ratios within this distance of 1 count as equal.
const EQUAL_WITHIN: f64 = 0.02;

/// A comparison of the first engine's figure with the second's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The comparison in words, "2.1 × faster".
    pub text: String,
    /// The same factor round by round, "1.9 – 2.4"; `None` if there was one round.
    pub range: Option<String>,
    /// True if the first engine is better, `None` if they are equal.
    pub better: Option<bool>,
}

impl Comparison {
    /// Puts the ratio of the first engine's figure to the second's into words.
    pub(crate) fn of(ratio: Spread, label: &str, unit: Unit, higher_is_better: bool) -> Comparison {
        let (more, less) = words(label, unit);
        let better = (ratio.median > 1.0) == higher_is_better;
        if (ratio.median - 1.0).abs() <= EQUAL_WITHIN {
            return Comparison {
                text: "equal".to_owned(),
                range: range(ratio, false),
                better: None,
            };
        }
        let text = match ratio.median {
            0.0 => "none".to_owned(),
            above if above > 1.0 => format!("{} × {more}", factor(above)),
            below => format!("{} × {less}", factor(1.0 / below)),
        };
        Comparison { text, range: range(ratio, ratio.median < 1.0), better: Some(better) }
    }
}

fn range(ratio: Spread, inverted: bool) -> Option<String> {
    let (low, high) =
        if inverted { (1.0 / ratio.max, 1.0 / ratio.min) } else { (ratio.min, ratio.max) };
    let shown = ratio.min < ratio.max && low.is_finite() && high.is_finite();
    shown.then(|| format!("{} – {}", factor(low), factor(high)))
}

/// Formats a factor with two digits; near 1 with three.
pub(super) fn factor(value: f64) -> String {
    match value {
        _ if value < 1.095 => format!("{value:.2}"),
        _ if value < 9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns the words for a larger and a smaller figure.
fn words(label: &str, unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Rate => ("faster", "slower"),
        Unit::Time if label.starts_with("time stalled") || label.starts_with("longest job") => {
            ("longer", "shorter")
        }
        Unit::Time => ("slower", "faster"),
        Unit::Micros | Unit::Bytes | Unit::Factor | Unit::Count => ("more", "less"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(median: f64, label: &str, unit: Unit) -> (String, Option<bool>) {
        let ratio = Spread { median, min: median, max: median };
        let compared = Comparison::of(ratio, label, unit, unit == Unit::Rate);
        assert_eq!(compared.range, None);
        (compared.text, compared.better)
    }

    #[test]
    fn a_ratio_is_said_as_a_factor_above_one() {
        let better = |text: &str| (text.to_owned(), Some(true));
        let worse = |text: &str| (text.to_owned(), Some(false));
        assert_eq!(said(0.47, "read p99", Unit::Time), better("2.1 × faster"));
        assert_eq!(said(2.0, "read p99", Unit::Time), worse("2.0 × slower"));
        assert_eq!(said(1.3, "throughput", Unit::Rate), better("1.3 × faster"));
        assert_eq!(said(0.5, "throughput", Unit::Rate), worse("2.0 × slower"));
        assert_eq!(said(0.05, "peak memory", Unit::Bytes), better("20 × less"));
        assert_eq!(said(1.05, "barriers", Unit::Count), worse("1.05 × more"));
        assert_eq!(said(0.25, "time stalled", Unit::Time), better("4.0 × shorter"));
        assert_eq!(said(0.0, "stalls", Unit::Count), better("none"));
        assert_eq!(said(1.019, "throughput", Unit::Rate), ("equal".to_owned(), None));
    }

    #[test]
    fn the_range_is_in_the_direction_of_the_median() {
        let range = |median, min, max| {
            Comparison::of(Spread { median, min, max }, "read p99", Unit::Time, false).range
        };
        assert_eq!(range(0.5, 0.4, 0.8).as_deref(), Some("1.2 – 2.5"));
        assert_eq!(range(2.0, 1.0, 4.0).as_deref(), Some("1.00 – 4.0"));
        assert_eq!(range(0.5, 0.0, 0.8), None, "no factor says nothing of something");
    }
}
