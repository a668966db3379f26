//! Metrics as observable instruments. The engine's own text for Prometheus is the list of them, so
//! that there is one list and every name is that of docs/metrics.md.
//!
//! A histogram becomes two counters, its sum and its count: OpenTelemetry has no histogram that is
//! observed from outside.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use sateen::Db;

/// A collection asks every instrument in turn. Within this time they answer from one state.
const FRESH: Duration = Duration::from_millis(200);

/// The values of a metric, each with its labels.
type Values = Vec<(Vec<KeyValue>, f64)>;

/// Where the instruments get their values.
#[derive(Debug)]
pub(crate) struct Source {
    /// The database; `None` once the bridge is gone.
    db: Mutex<Option<Db>>,
    attributes: Vec<KeyValue>,
    latest: Mutex<Option<(Instant, Arc<Snapshot>)>>,
}

impl Source {
    pub(crate) fn new(db: Db, attributes: Vec<KeyValue>) -> Source {
        Source { db: Mutex::new(Some(db)), attributes, latest: Mutex::new(None) }
    }

    /// Lets go of the database.
    pub(crate) fn close(&self) {
        *self.db.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the state of the metrics, which is young; `None` once the bridge is gone.
    fn snapshot(&self) -> Option<Arc<Snapshot>> {
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, snapshot)) = &*latest
            && at.elapsed() < FRESH
        {
            return Some(Arc::clone(snapshot));
        }
        let text = db.metrics().to_prometheus_text();
        let snapshot = Arc::new(Snapshot::of(&text, &self.attributes));
        *latest = Some((Instant::now(), Arc::clone(&snapshot)));
        Some(snapshot)
    }
}

/// The kind of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

/// All metrics at one moment.
#[derive(Debug, Default)]
struct Snapshot {
    /// By name: kind, meaning and values.
    metrics: BTreeMap<String, (Kind, String, Values)>,
}

impl Snapshot {
    /// Reads Prometheus' text format. A metric without a value is there, too: it may get one later.
    fn of(text: &str, attributes: &[KeyValue]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut help = BTreeMap::new();
        for line in text.lines() {
            if let Some((name, meaning)) = line.strip_prefix("# HELP ").and_then(first_word) {
                help.insert(name, meaning);
            } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(first_word) {
                let meaning = help.get(name).copied().unwrap_or_default();
                let mut add = |name: String, kind| {
                    snapshot.metrics.insert(name, (kind, meaning.to_owned(), Values::new()));
                };
                match kind {
                    "counter" => add(name.to_owned(), Kind::Counter),
                    "gauge" => add(name.to_owned(), Kind::Gauge),
                    "histogram" => {
                        add(format!("{name}_sum"), Kind::Counter);
                        add(format!("{name}_count"), Kind::Counter);
                    }
                    _ => {}
                }
            } else if let Some((name, labels, value)) = sample(line)
                && let Some((.., values)) = snapshot.metrics.get_mut(name)
            {
                values.push((attributes.iter().cloned().chain(labels).collect(), value));
            }
        }
        snapshot
    }
}

fn first_word(text: &str) -> Option<(&str, &str)> {
    text.split_once(' ')
}

/// Reads `name{label="value",…} number`.
fn sample(line: &str) -> Option<(&str, Vec<KeyValue>, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (front, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, labels)) = front.split_once('{') else {
        return Some((front, Vec::new(), value));
    };
    Some((name, labels_of(labels.strip_suffix('}')?)?, value))
}

/// Reads labels. Their values have escapes for a backslash, a quote and a new line.
fn labels_of(text: &str) -> Option<Vec<KeyValue>> {
    let mut labels = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push(KeyValue::new(name.to_owned(), value));
        rest = after.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(labels)
}

/// Registers an instrument for each metric.
pub(crate) fn register(source: &Arc<Source>, meter: &Meter) {
    let Some(snapshot) = source.snapshot() else { return };
    for (name, (kind, meaning, _)) in &snapshot.metrics {
        let (source, key) = (Arc::clone(source), name.clone());
        let values = move |observe: &mut dyn FnMut(f64, &[KeyValue])| {
            let Some(snapshot) = source.snapshot() else { return };
            let Some((.., values)) = snapshot.metrics.get(&key) else { return };
            values.iter().for_each(|(labels, value)| observe(*value, labels));
        };
        match kind {
            Kind::Counter => {
                let builder = meter.f64_observable_counter(name.clone());
                let builder = builder.with_description(meaning.clone());
                let _kept = builder
                    .with_callback(move |counter| {
                        values(&mut |value, labels| counter.observe(value, labels));
                    })
                    .build();
            }
            Kind::Gauge => {
                let builder = meter.f64_observable_gauge(name.clone());
                let builder = builder.with_description(meaning.clone());
                let _kept = builder
                    .with_callback(move |gauge| {
                        values(&mut |value, labels| gauge.observe(value, labels));
                    })
                    .build();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_prometheus_is_read_with_labels_and_their_escapes() {
        let text = "# HELP ops_total Operations, by kind.\n# TYPE ops_total counter\n\
                    ops_total{kind=\"get\",cf=\"a\\\"b\\\\c\\nd\"} 7\nops_total 1.5\n\
                    # TYPE wait_seconds histogram\nwait_seconds_bucket{le=\"+Inf\"} 3\n\
                    wait_seconds_sum 0.25\nwait_seconds_count 3\n# TYPE debt gauge\ndebt 9\n\
                    unknown 1\nnot a sample\n";
        let name = KeyValue::new("db", "library");
        let snapshot = Snapshot::of(text, std::slice::from_ref(&name));
        let names: Vec<_> = snapshot.metrics.keys().map(String::as_str).collect();
        assert_eq!(names, ["debt", "ops_total", "wait_seconds_count", "wait_seconds_sum"]);
        let (kind, meaning, values) = &snapshot.metrics["ops_total"];
        assert_eq!((*kind, meaning.as_str()), (Kind::Counter, "Operations, by kind."));
        let labels =
            vec![name.clone(), KeyValue::new("kind", "get"), KeyValue::new("cf", "a\"b\\c\nd")];
        assert_eq!(values, &[(labels, 7.0), (vec![name.clone()], 1.5)]);
        assert_eq!(snapshot.metrics["debt"].0, Kind::Gauge);
        assert_eq!(snapshot.metrics["wait_seconds_sum"].2, [(vec![name], 0.25)]);
    }
}
