//! An axis as plotters wants it: linear or logarithmic, with ticks at round numbers.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::check::number;

/// A range of numbers with its ticks.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// The names of the places 0, 1, 2, …; empty for numbers.
    names: Vec<String>,
}

impl Scale {
    /// Spans `values`, from zero if it is linear, and from decade to decade if not.
    pub(super) fn over(values: &[f64], log: bool, range: Option<(f64, f64)>) -> Scale {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let high = finite().fold(f64::MIN, f64::max);
        let scale = |low, high| Scale { low, high, log, names: Vec::new() };
        if let Some((low, high)) = range {
            return scale(low, high);
        }
        if log {
            let low = finite().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
            if low > high {
                return scale(1.0, 10.0);
            }
            let decade = |value: f64| 10f64.powf(value);
            let (low, high) = (decade(low.log10().floor()), decade(high.log10().ceil()));
            return scale(low, if high > low { high } else { low * 10.0 });
        }
        let low = finite().fold(0.0, f64::min);
        if high <= low {
            return scale(low, low + 1.0);
        }
        let step = step(high - low);
        scale((low / step).floor() * step, (high / step).ceil() * step)
    }

    /// Has room for one group of bars at each name.
    pub(super) fn named(names: Vec<String>) -> Scale {
        Scale { low: -0.5, high: names.len() as f64 - 0.5, log: false, names }
    }

    /// The end at which bars begin.
    pub(super) fn foot(&self) -> f64 {
        if self.log { self.low } else { self.low.max(0.0) }
    }

    fn ticks(&self) -> Vec<f64> {
        if !self.names.is_empty() {
            return (0..self.names.len()).map(|nth| nth as f64).collect();
        }
        if self.log {
            let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
            let decades: Vec<f64> = (first..=last).map(|power| 10f64.powi(power)).collect();
            if decades.len() > 2 {
                return decades;
            }
            let parts = (first - 1..=last)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|part| part * 10f64.powi(power)));
            return parts.filter(|tick| (self.low..=self.high).contains(tick)).collect();
        }
        let step = step(self.high - self.low);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|nth| nth as f64 * step).collect()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides `width` into at most eight parts.
fn step(width: f64) -> f64 {
    let power = 10f64.powf((width / 8.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|part| part * power);
    steps.into_iter().find(|step| width / step <= 8.0).unwrap_or(power * 10.0)
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        let value = value.clamp(self.low, self.high);
        let part = if self.log {
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        pixels.0 + (f64::from(pixels.1 - pixels.0) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let name = self.names.get(value.max(0.0) as usize);
        name.cloned().unwrap_or_else(|| number(*value))
    }
}
