//! A comparison in words: "2.1 × faster", "2 more", "within 5 %".
//!
//! A factor must mean something. There is none
//! - between figures within 5 % of each other: two runs of the same program differ by that;
//! - between counts of which one is below 100: the text gives the difference;
//! - for a throughput at an offered rate: an engine that keeps up cannot be faster than the load.
//!
//! Above 100 the factor is not given in digits.

use serde::Serialize;

use super::figure::{Spread, Unit};
use crate::units;

/// Figures within this distance of each other have no factor.
const EQUAL_WITHIN: f64 = 0.05;

/// Counts below this have no factor.
const COUNT_MIN: f64 = 100.0;

/// Factors above this are not given in digits.
const FACTOR_MAX: f64 = 100.0;

/// A comparison of the first engine's figure with the second's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The comparison in words, "2.1 × faster".
    pub text: String,
    /// The same factor round by round, "1.9 – 2.4"; `None` without a factor and after one round.
    pub range: Option<String>,
    /// True if the first engine is better, `None` if they are equal.
    pub better: Option<bool>,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared<'a> {
    pub(crate) label: &'a str,
    pub(crate) unit: Unit,
    pub(crate) higher_is_better: bool,
    /// True for a figure that the offered load sets.
    pub(crate) offered: bool,
}

impl Comparison {
    /// Puts the relation of the first engine's figure to the second's into words. `ratio` is that
    /// of the rounds; absent if the second figure is zero.
    pub(crate) fn of(
        ours: f64,
        theirs: f64,
        ratio: Option<Spread>,
        what: Compared<'_>,
    ) -> Comparison {
        let (more, less) = words(what.label, what.unit);
        let plain = |text: String, better| Comparison { text, range: None, better };
        if ours == theirs {
            return plain("equal".to_owned(), None);
        }
        let better = Some((ours > theirs) == what.higher_is_better);
        let word = if ours > theirs { more } else { less };
        if what.unit == Unit::Count && ours.min(theirs) < COUNT_MIN {
            let difference = Unit::Count.write((ours - theirs).abs());
            return plain(format!("{difference} {word}"), better);
        }
        let factor_of = ratio.map(|ratio| ratio.median).filter(|median| *median > 0.0);
        let Some(median) = factor_of else {
            return plain(if ours > theirs { word } else { "none" }.to_owned(), better);
        };
        let near = (ours - theirs).abs() <= EQUAL_WITHIN * ours.max(theirs);
        let range = ratio.and_then(|ratio| range(ratio, !near && median < 1.0));
        if near {
            return Comparison { text: "within 5 %".to_owned(), range, better: None };
        }
        if what.offered {
            return plain(if ours > theirs { "more" } else { "less" }.to_owned(), better);
        }
        let text = format!("{} × {word}", factor(if median > 1.0 { median } else { 1.0 / median }));
        Comparison { text, range, better }
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
        _ if value <= FACTOR_MAX => format!("{value:.0}"),
        _ => format!("more than {}", units::count(FACTOR_MAX)),
    }
}

/// Returns the words for a larger and a smaller figure.
fn words(label: &str, unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Rate => ("faster", "slower"),
        Unit::Time if label.starts_with("time") || label.starts_with("longest job") => {
            ("longer", "shorter")
        }
        Unit::Time => ("slower", "faster"),
        Unit::Count if label.ends_with("chain") => ("longer", "shorter"),
        Unit::Count => ("more", "fewer"),
        Unit::Micros | Unit::Bytes | Unit::Factor => ("more", "less"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(label: &str, unit: Unit, offered: bool) -> Compared<'_> {
        Compared { label, unit, higher_is_better: unit == Unit::Rate, offered }
    }

    fn said(ours: f64, theirs: f64, label: &str, unit: Unit) -> (String, Option<bool>) {
        let median = ours / theirs;
        let ratio = (theirs > 0.0).then_some(Spread { median, min: median, max: median });
        let compared = Comparison::of(ours, theirs, ratio, compared(label, unit, false));
        assert_eq!(compared.range, None);
        (compared.text, compared.better)
    }

    #[test]
    fn a_ratio_is_said_as_a_factor_above_one() {
        let better = |text: &str| (text.to_owned(), Some(true));
        let worse = |text: &str| (text.to_owned(), Some(false));
        assert_eq!(said(47.0, 100.0, "read p99", Unit::Time), better("2.1 × faster"));
        assert_eq!(said(200.0, 100.0, "read p99", Unit::Time), worse("2.0 × slower"));
        assert_eq!(said(130.0, 100.0, "throughput", Unit::Rate), better("1.3 × faster"));
        assert_eq!(said(50.0, 100.0, "throughput", Unit::Rate), worse("2.0 × slower"));
        assert_eq!(said(5.0, 100.0, "peak memory", Unit::Bytes), better("20 × less"));
        assert_eq!(said(1100.0, 1000.0, "barriers", Unit::Count), worse("1.1 × more"));
        assert_eq!(said(25.0, 100.0, "time stalled", Unit::Time), better("4.0 × shorter"));
        assert_eq!(
            said(1.0, 2242.0, "read p50", Unit::Time),
            better("more than 100 × faster"),
            "digits would be those of one run"
        );
    }

    #[test]
    fn figures_that_say_nothing_have_no_factor() {
        let equal = ("equal".to_owned(), None);
        assert_eq!(said(0.0, 0.0, "stalls", Unit::Count), equal);
        assert_eq!(said(7.0, 7.0, "read p99", Unit::Time), equal);
        let near = ("within 5 %".to_owned(), None);
        assert_eq!(said(104.0, 100.0, "throughput", Unit::Rate), near);
        assert_eq!(said(96.0, 100.0, "throughput", Unit::Rate), near);
        // The difference of small counts, whoever loses.
        assert_eq!(said(2.0, 0.0, "stalls", Unit::Count), ("2 more".to_owned(), Some(false)));
        assert_eq!(said(0.0, 61.0, "stalls", Unit::Count), ("61 fewer".to_owned(), Some(true)));
        assert_eq!(said(14.0, 61.0, "stalls", Unit::Count), ("47 fewer".to_owned(), Some(true)));
        assert_eq!(said(0.0, 5e6, "time stalled", Unit::Time), ("none".to_owned(), Some(true)));
        assert_eq!(said(5e6, 0.0, "debt", Unit::Bytes), ("more".to_owned(), Some(false)));
        let ratio = Some(Spread { median: 1.2, min: 1.1, max: 1.3 });
        let offered = compared("throughput", Unit::Rate, true);
        let said = Comparison::of(120.0, 100.0, ratio, offered);
        assert_eq!((said.text.as_str(), said.range, said.better), ("more", None, Some(true)));
    }

    #[test]
    fn the_range_is_in_the_direction_of_the_median() {
        let range = |median, min, max| {
            let ratio = Some(Spread { median, min, max });
            let what = compared("read p99", Unit::Time, false);
            Comparison::of(median * 100.0, 100.0, ratio, what).range
        };
        assert_eq!(range(0.5, 0.4, 0.8).as_deref(), Some("1.2 – 2.5"));
        assert_eq!(range(2.0, 1.0, 4.0).as_deref(), Some("1.00 – 4.0"));
        assert_eq!(range(0.5, 0.0, 0.8), None, "no factor says nothing of something");
    }
}
