//! The Prometheus text, made from the list of metrics.
//!
//! What must stay true: all samples of a metric stand together. Label values are escaped, because
//! users name column families.

use std::fmt::Write;

use sateen_control::IoClass;
use sateen_store::base::histogram::HistogramSnapshot;
use sateen_store::vfs::ClassTotals;

use super::{FAMILIES, Family};
use crate::metrics::snapshot::{ColumnFamilyMetrics, LevelShape, Metrics};

/// Returns all metrics in Prometheus' text format, version 0.0.4.
pub(in crate::metrics) fn prometheus_text(metrics: &Metrics) -> String {
    let mut out = String::with_capacity(64 * 1024);
    for family in FAMILIES.iter().copied().flatten() {
        let Family { name, kind, help, .. } = family;
        push(&mut out, format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name()));
        (family.write)(metrics, &mut Samples { out: &mut out, name });
    }
    out
}

/// Writes the samples of one metric.
pub(super) struct Samples<'a> {
    out: &'a mut String,
    name: &'static str,
}

pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Samples<'_> {
    /// Writes a sample without labels.
    pub(super) fn number(&mut self, value: impl Into<Number>) {
        self.sample("", &[], None, value.into());
    }

    /// Writes a sample with labels.
    pub(super) fn labelled(&mut self, labels: Labels<'_>, value: impl Into<Number>) {
        self.sample("", labels, None, value.into());
    }

    /// Writes a sample for each level.
    pub(super) fn by_level<T, N: Into<Number>>(&mut self, levels: &[T], value: impl Fn(&T) -> N) {
        for (level, totals) in levels.iter().enumerate() {
            self.labelled(&[("level", &level.to_string())], value(totals));
        }
    }

    /// Writes a sample for each column family.
    pub(super) fn by_family(&mut self, metrics: &Metrics, value: fn(&ColumnFamilyMetrics) -> u64) {
        for family in &metrics.column_families {
            self.labelled(&[("cf", &family.name)], value(family));
        }
    }

    /// Writes a sample for each level of each column family.
    pub(super) fn by_family_and_level(&mut self, metrics: &Metrics, value: fn(&LevelShape) -> u64) {
        for family in &metrics.column_families {
            for (level, shape) in family.levels.iter().enumerate() {
                let level = level.to_string();
                self.labelled(&[("cf", &family.name), ("level", &level)], value(shape));
            }
        }
    }

    /// Writes a sample for each I/O class.
    pub(super) fn by_class(
        &mut self,
        metrics: &Metrics,
        operation: &str,
        value: fn(&ClassTotals) -> u64,
    ) {
        for (class, io) in IoClass::NAMES.iter().zip(&metrics.io) {
            self.labelled(&[("class", class), ("operation", operation)], value(&io.totals));
        }
    }

    /// Writes nanoseconds as cumulative buckets in seconds, from 256 ns to 17 s in powers of two.
    pub(super) fn histogram(&mut self, labels: Labels<'_>, histogram: &HistogramSnapshot) {
        let mut buckets = histogram.buckets().peekable();
        let mut below = 0;
        for exponent in 8..=34 {
            let end = 1_u64 << exponent;
            while let Some((_, _, count)) = buckets.next_if(|&(_, high, _)| high <= end) {
                below += count;
            }
            self.sample("_bucket", labels, Some(&seconds(end).to_string()), below.into());
        }
        self.sample("_bucket", labels, Some("+Inf"), histogram.count().into());
        self.sample("_sum", labels, None, seconds(histogram.sum()).into());
        self.sample("_count", labels, None, histogram.count().into());
    }

    /// Writes one line. `le` is the upper end of a bucket.
    fn sample(&mut self, suffix: &str, labels: Labels<'_>, le: Option<&str>, value: Number) {
        self.out.push_str(self.name);
        self.out.push_str(suffix);
        let mut before = '{';
        for (label, text) in labels.iter().copied().chain(le.map(|le| ("le", le))) {
            self.out.push(before);
            before = ',';
            self.out.push_str(label);
            self.out.push_str("=\"");
            push_escaped(self.out, text);
            self.out.push('"');
        }
        if before == ',' {
            self.out.push('}');
        }
        match value {
            Number::Whole(value) => push(self.out, format_args!(" {value}\n")),
            Number::Real(value) => push(self.out, format_args!(" {value}\n")),
        }
    }
}

/// The value of a sample.
pub(super) enum Number {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number::Whole(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Real(value)
    }
}

/// Converts nanoseconds to seconds.
pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

pub(super) fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string does not fail");
}

/// Appends a label value, with `\`, `"` and line ends escaped.
fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}
