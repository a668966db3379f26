//! Whether the shape of a figure agrees: the checks of a catalogue on measured series.

use super::model::{Check, HERE, Panel, Pick, Series, Term, X};

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    /// What was compared, in words.
    pub(crate) text: String,
    /// The quotient; `None` if a series or a point is missing.
    pub(crate) quotient: Option<f64>,
    pub(crate) between: (f64, f64),
    pub(crate) paper: Option<f64>,
}

impl Held {
    /// True if the quotient lies where the paper's shape has it.
    pub(crate) fn holds(&self) -> bool {
        let (low, high) = self.between;
        self.quotient.is_some_and(|quotient| quotient >= low && quotient <= high)
    }

    /// The outcome as a sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let found = self.quotient.map_or_else(|| "not measured".to_owned(), number);
        let (low, high) = self.between;
        let wanted = match (low > 0.0, high.is_finite()) {
            (true, true) => format!("{} to {}", number(low), number(high)),
            (true, false) => format!("at least {}", number(low)),
            _ => format!("at most {}", number(high)),
        };
        let paper = self.paper.map_or_else(String::new, |it| format!("paper {}, ", number(it)));
        format!("{}: {found} ({paper}wanted {wanted})", self.text)
    }
}

/// Holds all checks of `panel` to its `series`.
pub(crate) fn held(panel: &Panel, series: &[Series]) -> Vec<Held> {
    panel.checks.iter().map(|check| hold(check, panel, series)).collect()
}

fn hold(check: &Check, panel: &Panel, series: &[Series]) -> Held {
    let quotient = match (value(&check.left, series), value(&check.right, series)) {
        // Both never happened.
        (Some(left), Some(right)) if left.is_infinite() && right.is_infinite() => Some(1.0),
        (Some(left), Some(right)) if right != 0.0 => Some(left / right),
        // Nothing divided by nothing agrees with itself; something by nothing is without limit.
        (Some(left), Some(_)) => Some(if left == 0.0 { 1.0 } else { f64::INFINITY }),
        _ => None,
    };
    let text = match &check.right {
        Term::Value(1.0) => describe(&check.left, panel),
        right => format!("{} ÷ {}", describe(&check.left, panel), describe(right, panel)),
    };
    Held { text, quotient, between: check.between, paper: check.paper }
}

/// Returns the number that a term stands for, or `None` if it is not there.
fn value(term: &Term, series: &[Series]) -> Option<f64> {
    let (name, pick) = match term {
        Term::Value(value) => return Some(*value),
        Term::Of(name, pick) => (name, pick),
    };
    let points = &series.iter().find(|found| found.name == *name)?.points;
    let values = || points.iter().map(|(_, y)| *y);
    match pick {
        Pick::At(x) => points.iter().find(|(at, _)| same(*at, *x)).map(|(_, y)| *y),
        Pick::Max => values().reduce(f64::max),
        Pick::Min => values().reduce(f64::min),
        Pick::Mean => average(values()),
        Pick::Above(limit) => Some(values().filter(|y| y > limit).count() as f64),
        Pick::WhereLow(other) => beside(points, other, series, |y, mean| y < mean),
        Pick::WhereHigh(other) => beside(points, other, series, |y, mean| y > mean),
        Pick::FirstAbove(limit) => {
            let first = points.iter().find(|(_, y)| y > limit);
            Some(match first {
                Some((X::At(x), _)) => *x,
                _ => f64::INFINITY,
            })
        }
    }
}

/// Returns the mean of those `points` at whose x the `other` series is as `wanted` against its
/// mean.
fn beside(
    points: &[(X, f64)],
    other: &str,
    series: &[Series],
    wanted: fn(f64, f64) -> bool,
) -> Option<f64> {
    let other = &series.iter().find(|found| found.name == other)?.points;
    let mean = average(other.iter().map(|(_, y)| *y))?;
    let there = |x: X| other.iter().any(|(at, y)| same(*at, x) && wanted(*y, mean));
    average(points.iter().filter(|(x, _)| there(*x)).map(|(_, y)| *y))
}

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn same(a: X, b: X) -> bool {
    match (a, b) {
        (X::At(a), X::At(b)) => (a - b).abs() < 1e-9,
        (a, b) => a == b,
    }
}

fn describe(term: &Term, panel: &Panel) -> String {
    let what = panel.y.label.split(',').next().unwrap_or_default();
    match term {
        Term::Value(value) => number(*value),
        Term::Of(name, pick) => match pick {
            Pick::At(x) if *name == HERE => format!("{what} of {}", x.text()),
            Pick::At(x) => format!("{what} of {name} at {}", x.text()),
            Pick::Max => format!("greatest {what} of {name}"),
            Pick::Min => format!("least {what} of {name}"),
            Pick::Mean => format!("mean {what} of {name}"),
            Pick::Above(limit) => format!("values of {name} above {}", number(*limit)),
            Pick::FirstAbove(limit) => format!("first x of {name} above {}", number(*limit)),
            Pick::WhereLow(other) => format!("mean {what} of {name} where {other} are low"),
            Pick::WhereHigh(other) => format!("mean {what} of {name} where {other} are high"),
        },
    }
}

/// A number with three figures that count.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value.is_infinite() {
        return "∞".to_owned();
    }
    if size >= 100.0 || value == value.trunc() {
        return grouped(value.round());
    }
    let places = match size {
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.01 => 3,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A whole number with a comma between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{}{}", if value < 0.0 { "-" } else { "" }, groups.join(","))
}
