//! A span for each slow operation that the flight recorder kept.
//!
//! The recorder copies the last two seconds again, because late operations are added to them. A
//! second is therefore told once it is complete, and no second is told twice.

use std::time::{Duration, SystemTime};

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span, SpanBuilder, SpanKind, Tracer};
use sateen::Db;
use sateen::timeline::{SlowOperation, Timeline};

use crate::Settings;

const SECOND_NS: u64 = 1_000_000_000;
/// Seconds behind the present that are complete.
const COMPLETE_SECONDS: u64 = 2;
/// Background work that is named beside an operation.
const OVERLAPS_MAX: usize = 3;

/// The state between two looks at the recorder.
pub(crate) struct Spans {
    timeline: Timeline,
    /// The first second that was not told.
    from: u64,
    slow_ns: u64,
    attributes: Vec<KeyValue>,
}

impl Spans {
    /// Begins now: operations that ended before get no span.
    pub(crate) fn new(db: &Db, settings: &Settings) -> Spans {
        let mut timeline = Timeline::default();
        db.extend_timeline(&mut timeline);
        Spans {
            from: timeline.until_ns / SECOND_NS,
            timeline,
            slow_ns: u64::try_from(settings.slow.as_nanos()).unwrap_or(u64::MAX),
            attributes: settings.attributes.clone(),
        }
    }

    /// Tells what was slow since the last time. `last` tells also what is not complete.
    pub(crate) fn tell<T>(&mut self, db: &Db, tracer: &T, last: bool)
    where
        T: Tracer,
    {
        db.extend_timeline(&mut self.timeline);
        let (now, until_ns) = (SystemTime::now(), self.timeline.until_ns);
        let complete = until_ns / SECOND_NS + 1;
        let to = if last { complete } else { complete.saturating_sub(COMPLETE_SECONDS) };
        // The recorder's clock counts from open.
        let at = |ns: u64| now - Duration::from_nanos(until_ns.saturating_sub(ns));
        let told = self.timeline.slow.iter().filter(|operation| {
            let second = operation.end_ns() / SECOND_NS;
            (self.from..to).contains(&second) && operation.total_ns >= self.slow_ns
        });
        for operation in told {
            let attributes = self.attributes.iter().cloned();
            let attributes = attributes.chain(self.attributes_of(operation));
            let builder = SpanBuilder::from_name(format!("sateen.{}", operation.kind.name()))
                .with_kind(SpanKind::Internal)
                .with_start_time(at(operation.start_ns))
                .with_attributes(attributes);
            tracer.build(builder).end_with_timestamp(at(operation.end_ns()));
        }
        self.from = self.from.max(to);
        // Work that went on beside an operation of the next look began lately.
        self.timeline.forget_before(until_ns.saturating_sub(60 * SECOND_NS));
    }

    /// Returns where the time of an operation went, and what ran beside it.
    fn attributes_of(&self, operation: &SlowOperation) -> Vec<KeyValue> {
        let nanos = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let parts = operation.parts().into_iter().filter(|(_, ns)| *ns > 0);
        let mut attributes: Vec<_> =
            parts.map(|(part, ns)| KeyValue::new(format!("sateen.{part}_ns"), nanos(ns))).collect();
        for (name, count) in [
            ("sateen.device_reads", operation.device_reads),
            ("sateen.cache_misses", operation.cache_misses),
        ] {
            if count > 0 {
                attributes.push(KeyValue::new(name, i64::from(count)));
            }
        }
        let overlaps = self.timeline.overlaps(operation);
        let beside: Vec<_> =
            overlaps.iter().take(OVERLAPS_MAX).map(|overlap| overlap.label.clone()).collect();
        if !beside.is_empty() {
            attributes.push(KeyValue::new("sateen.beside", beside.join(", ")));
        }
        attributes
    }
}
