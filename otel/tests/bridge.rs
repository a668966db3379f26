//! The bridge with the SDK of OpenTelemetry and its exporters in memory.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::time::{Duration, SystemTime};

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use sateen::{Db, Options, WriteOptions};
use sateen_otel::{Bridge, Settings};

struct Exported {
    metrics: InMemoryMetricExporter,
    meters: SdkMeterProvider,
    spans: InMemorySpanExporter,
    tracers: SdkTracerProvider,
}

impl Exported {
    fn new() -> Exported {
        let (metrics, spans) = (InMemoryMetricExporter::default(), InMemorySpanExporter::default());
        // Nothing is collected but when a test asks.
        let reader = PeriodicReader::builder(metrics.clone());
        let reader = reader.with_interval(Duration::from_secs(3600)).build();
        Exported {
            meters: SdkMeterProvider::builder().with_reader(reader).build(),
            tracers: SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build(),
            metrics,
            spans,
        }
    }

    /// Collects once. Returns the values of a metric with their labels.
    fn values(&self, name: &str) -> Vec<(Vec<KeyValue>, f64)> {
        self.metrics.reset();
        self.meters.force_flush().unwrap();
        let all = self.metrics.get_finished_metrics().unwrap();
        let mut values = Vec::new();
        for scope in all.iter().flat_map(|resource| resource.scope_metrics()) {
            for metric in scope.metrics().filter(|metric| metric.name() == name) {
                let AggregatedMetrics::F64(data) = metric.data() else { panic!("{metric:?}") };
                match data {
                    MetricData::Sum(sum) => {
                        assert!(sum.is_monotonic());
                        values.extend(
                            sum.data_points().map(|point| {
                                (point.attributes().cloned().collect(), point.value())
                            }),
                        );
                    }
                    MetricData::Gauge(gauge) => values.extend(
                        gauge
                            .data_points()
                            .map(|point| (point.attributes().cloned().collect(), point.value())),
                    ),
                    other => panic!("{other:?}"),
                }
            }
        }
        values
    }
}

#[test]
fn every_metric_of_the_database_is_exported_until_the_bridge_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    for number in 0..50_u32 {
        db.put(number.to_be_bytes(), "1").unwrap();
    }
    let exported = Exported::new();
    let (meter, tracer) = (exported.meters.meter("test"), exported.tracers.tracer("test"));
    let library = KeyValue::new("db", "library");
    let settings = Settings::default().with_attribute(library.clone());
    let bridge = Bridge::begin(&db, &meter, tracer, settings);
    let text = db.metrics().to_prometheus_text();
    for line in text.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        let has_samples = |name: &str| {
            text.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
            })
        };
        let name = if kind == "histogram" { format!("{name}_count") } else { name.to_owned() };
        let values = exported.values(&name);
        assert_eq!(!values.is_empty(), has_samples(&name), "{name}");
        assert!(values.iter().all(|(labels, _)| labels.contains(&library)), "{name}");
    }
    let written: f64 = exported.values("sateen_write_bytes_total").iter().map(|it| it.1).sum();
    assert!(written >= 50.0 * 5.0, "{written}");
    drop(bridge);
    // Instruments without a database say nothing new, and the directory is free again.
    exported.meters.force_flush().unwrap();
    db.close().unwrap();
    drop(Db::open(directory.path(), Options::default()).unwrap());
}

#[test]
fn slow_operations_become_spans_with_their_parts_once_each() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let exported = Exported::new();
    let (meter, tracer) = (exported.meters.meter("test"), exported.tracers.tracer("test"));
    db.put_with_sync("before");
    let settings = Settings::default()
        .with_slow(Duration::ZERO)
        .with_period(Duration::from_millis(10))
        .with_attribute(KeyValue::new("db", "library"));
    let began = SystemTime::now();
    let bridge = Bridge::begin(&db, &meter, tracer, settings);
    for number in 0..5 {
        db.put_with_sync(&format!("during {number}"));
    }
    drop(bridge);
    let spans = exported.spans.get_finished_spans().unwrap();
    let writes: Vec<_> = spans.iter().filter(|span| span.name == "sateen.write").collect();
    assert!((1..=8).contains(&writes.len()), "{}", writes.len());
    let mut starts: Vec<_> = writes.iter().map(|span| span.start_time).collect();
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), writes.len(), "no operation is told twice");
    for span in writes {
        assert!(span.end_time > span.start_time);
        assert!(span.end_time >= began - Duration::from_secs(2));
        let has = |key: &str| span.attributes.iter().any(|it| it.key.as_str() == key);
        assert!(has("sateen.sync_ns") && has("db"), "{:?}", span.attributes);
    }
    // A bridge that is gone tells nothing more.
    let told = spans.len();
    db.put_with_sync("after");
    assert_eq!(exported.spans.get_finished_spans().unwrap().len(), told);
}

trait Synced {
    fn put_with_sync(&self, key: &str);
}

impl Synced for Db {
    fn put_with_sync(&self, key: &str) {
        let mut batch = sateen::WriteBatch::new();
        batch.put(key, "1").unwrap();
        self.write(&batch, &WriteOptions::sync()).unwrap();
    }
}
