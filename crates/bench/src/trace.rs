//! Collects the engine's flight recorder ([`Timeline`]) during a measured phase. It becomes the
//! bars of the report, the cause of its slow seconds, and a trace file if one is wanted.
//!
//! The timeline is extended once a second, before the recorder drops events. Events that only the
//! trace needs are dropped if no trace is wanted, so that the memory of a long run does not grow.

use std::path::Path;
use std::time::Duration;

use sateen::explain::History;
use sateen::metrics::Overflow;
use sateen::timeline::{Adjustment, Event, EventKind, JobSpan, Limit, Timeline};

use crate::result::{Adjusted, JobBar, StallBar};
use crate::store::Store;
use crate::{Error, Result};

/// The largest number of bars of a run. The longest ones are kept.
const JOBS_MAX: usize = 4000;

/// The largest number of seconds that are explained. The last ones are.
const EXPLAINED_SECONDS: u32 = 3600;

/// The timeline of a phase.
pub(crate) struct Watch {
    timeline: Timeline,
    begin_ns: u64,
    keep_all: bool,
    /// What is new since the last second, and the seconds so far: they explain the phase.
    news: Timeline,
    history: History,
}

impl Watch {
    /// Begins a phase.
    pub(crate) fn begin(store: &dyn Store, keep_all: bool) -> Watch {
        let mut timeline = Timeline::default();
        store.extend_timeline(&mut timeline);
        let begin_ns = timeline.until_ns;
        timeline.forget_before(begin_ns);
        (timeline.lost_events, timeline.lost_steps, timeline.lost_slow) = (0, 0, 0);
        let mut news = Timeline::default();
        store.extend_timeline(&mut news);
        news.forget_before(begin_ns);
        let history = History::new(EXPLAINED_SECONDS as usize);
        Watch { timeline, begin_ns, keep_all, news, history }
    }

    pub(crate) fn extend(&mut self, store: &dyn Store) {
        store.extend_timeline(&mut self.timeline);
        // The recorder also copies the part of the first second that lies before the phase.
        self.timeline.forget_before(self.begin_ns);
        store.extend_timeline(&mut self.news);
        self.news.forget_before(self.begin_ns);
        self.history.take(&mut self.news);
        if !self.keep_all {
            self.timeline.steps.clear();
            self.timeline.slow.clear();
            self.timeline.events.retain(|event| {
                matches!(
                    event.kind,
                    EventKind::JobFinished { .. }
                        | EventKind::Paused { .. }
                        | EventKind::Resumed { .. }
                        | EventKind::Stalled { .. }
                        | EventKind::Adjusted(_)
                )
            });
        }
    }

    fn seconds(&self, ns: u64) -> f64 {
        // Microseconds are exact enough for the report.
        ((ns as f64 - self.begin_ns as f64) / 1e3).round() / 1e6
    }

    pub(crate) fn jobs(&self) -> Vec<JobBar> {
        let mut jobs = self.timeline.jobs();
        if jobs.len() > JOBS_MAX {
            jobs.sort_by_key(|job| std::cmp::Reverse(job.end_ns - job.start_ns));
            jobs.truncate(JOBS_MAX);
            jobs.sort_by_key(|job| job.start_ns);
        }
        let bar = |job: JobSpan| JobBar {
            what: job.info.label(),
            class: sateen::vfs::IoClass::NAMES[job.info.class.index()].to_owned(),
            start: self.seconds(job.start_ns),
            end: self.seconds(job.end_ns),
            read: job.read_bytes,
            written: job.written_bytes,
            pauses: job
                .pauses
                .iter()
                .map(|pause| [self.seconds(pause.start_ns), self.seconds(pause.end_ns)])
                .collect(),
        };
        jobs.into_iter().map(bar).collect()
    }

    pub(crate) fn stalls(&self) -> Vec<StallBar> {
        let stalls = self.timeline.stalls().into_iter();
        let stalls = stalls.filter(|stall| stall.end_ns >= self.begin_ns);
        let bar = |stall: sateen::timeline::StallSpan| StallBar {
            cause: stall.cause.name().to_owned(),
            start: self.seconds(stall.start_ns).max(0.0),
            end: self.seconds(stall.end_ns),
            waits: stall.waits,
            waited_ns: stall.waited_ns,
        };
        stalls.map(bar).collect()
    }

    /// Returns why the slow seconds of the phase were slow, in sentences; `None` if the engine has
    /// no recorder. Seconds count back from the end of the phase.
    pub(crate) fn why(&self) -> Option<String> {
        let until_ns = self.history.until_ns();
        if until_ns == 0 {
            return None;
        }
        let phase = Duration::from_nanos(until_ns.saturating_sub(self.begin_ns));
        let since = phase.min(Duration::from_secs(EXPLAINED_SECONDS.into()));
        Some(self.history.explain(since + Duration::from_secs(1)).to_string())
    }

    pub(crate) fn adjustments(&self) -> Vec<Adjusted> {
        let adjusted = |event: &Event| {
            let EventKind::Adjusted(Adjustment { limit, overflow }) = event.kind else {
                return None;
            };
            let (what, value) = match limit {
                Limit::Slots(slots) => ("job slots", (slots.flushes + slots.compactions) as u64),
                Limit::Memtable { bytes, .. } => ("memtable size", bytes),
            };
            Some(Adjusted {
                at: self.seconds(event.at_ns),
                what: what.to_owned(),
                value,
                cause: overflow.map_or("options", Overflow::name).to_owned(),
            })
        };
        self.timeline.events.iter().filter_map(adjusted).collect()
    }

    /// Writes the phase as a Chrome trace.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.timeline.to_chrome_trace())
            .map_err(|error| Error::file(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::parse;
    use crate::engine::Engine;

    #[test]
    fn what_the_tuner_adjusts_is_told_with_its_cause() {
        let place = tempfile::tempdir().unwrap();
        // Clients write faster than one thread can flush, and the tuner acts every 10 ms.
        let options = "--profile adoc --memtable-size 64K --memtables 2 --jobs 1 --wal off \
                       --set tuner_interval=10ms --set tuner_hold_time=0s";
        let config = parse(options).store_config().unwrap();
        let store = Engine::Sateen.open(&place.path().join("db"), &config).unwrap();
        let mut watch = Watch::begin(store.as_ref(), false);
        let mut client = store.client();
        for key in 0..1_000_000_u32 {
            client.put(&key.to_be_bytes(), &[1; 1000]).unwrap();
            if key % 1000 == 0 {
                watch.extend(store.as_ref());
                if !watch.adjustments().is_empty() {
                    break;
                }
            }
        }
        let adjustments = watch.adjustments();
        let first = adjustments.first().expect("something overflows");
        assert!(["job slots", "memtable size"].contains(&first.what.as_str()), "{first:?}");
        assert!(first.value > 0 && first.at >= 0.0 && first.cause != "options", "{first:?}");
        let [slots, bytes] = store.counters().knobs.unwrap();
        assert!(slots >= 2 && bytes > 0, "{slots} {bytes}");
    }

    #[test]
    fn a_phase_has_the_jobs_and_the_trace_of_its_own_time() {
        let place = tempfile::tempdir().unwrap();
        let config = parse("").store_config().unwrap();
        let store = Engine::Sateen.open(&place.path().join("db"), &config).unwrap();
        let fill = || {
            let mut client = store.client();
            for key in 0..100_u32 {
                client.put(&key.to_be_bytes(), &[1; 100]).unwrap();
            }
            store.flush().unwrap();
            store.wait_idle().unwrap();
        };
        fill();
        for keep_all in [true, false] {
            let mut watch = Watch::begin(store.as_ref(), keep_all);
            assert!(watch.jobs().is_empty(), "jobs that ended before do not belong to the phase");
            fill();
            watch.extend(store.as_ref());
            watch.extend(store.as_ref());
            let jobs = watch.jobs();
            let why = watch.why().unwrap();
            // A phase may be too short for a whole second.
            assert!(why.contains(" slow") || why.contains("No operation"), "{why}");
            let flushes: Vec<_> = jobs.iter().filter(|job| job.what == "flush").collect();
            assert_eq!(flushes.len(), 1);
            assert!(flushes[0].start >= 0.0 && flushes[0].end >= flushes[0].start);
            assert!(flushes[0].written > 0 && flushes[0].class == "flush");
            if keep_all {
                let file = place.path().join("trace.json");
                watch.write(&file).unwrap();
                let text = std::fs::read(&file).unwrap();
                let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
                let steps = trace["traceEvents"].as_array().unwrap().iter();
                assert!(steps.filter(|event| event["args"]["kind"] == "step").count() > 0);
            }
        }
    }
}
