//! Collects the status of a database, and its explanation.

use std::collections::BTreeMap;
use std::time::Duration;

use sateen::explain::{Episode, Explanation, Second};
use sateen::metrics::{Counts, HistogramSnapshot, Metrics, Operation};
use sateen::timeline::{PauseReason, RunningJob, SlowOperation};
use sateen::vfs::IoClass;

use crate::protocol::{
    ClassTraffic, EpisodeReport, ExplanationReport, FamilyStatus, JobStatus, LevelStatus,
    OperationStatus, PROTOCOL, Quantiles, SlowStatus, StallStatus, Status,
};
use crate::watch::{Past, Watch};

/// Seconds back to which slow operations are listed.
const SLOW_SECONDS: u64 = 30;
/// Number of slow operations that are listed.
const SLOW_MAX: usize = 20;

/// Returns the state of a database. `databases` are those that the process serves.
pub(crate) fn status(watch: &Watch, databases: Vec<String>) -> Status {
    let db = &watch.db;
    let metrics = db.metrics();
    let past = watch.update();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let scheduler = &metrics.scheduler;
    let garbage = metrics.column_families.iter().map(|family| family.value_garbage_bytes);
    Status {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        path: sateen::shown_path(db.path()),
        databases,
        uptime_ns: past.history.until_ns(),
        health: metrics.health.to_owned(),
        health_cause: metrics.health_cause.clone(),
        short_of_processor: scheduler.short_of_processor,
        processors_others: f64::from(scheduler.processors_others) / 1000.0,
        process_cpu_ns: process_cpu_ns(),
        processors: std::thread::available_parallelism().map_or(0, |number| number.get() as u64),
        operations: Operation::ALL.into_iter().map(|kind| operation(&metrics, kind)).collect(),
        written_bytes: metrics.counts.write_bytes,
        read_bytes: metrics.counts.get_bytes,
        stalls: stalls(&metrics),
        time_to_stall_ns: db.time_to_stall().map(nanos),
        sustainable_write_rate: db.sustainable_write_rate(),
        families: families(&metrics),
        io: traffic(&metrics),
        device_read_bandwidth: scheduler.device_read_bandwidth,
        device_write_bandwidth: scheduler.device_write_bandwidth,
        device_barrier_ns: scheduler.device_barrier_ns,
        background_read_limit: limit(scheduler.background_read_bandwidth),
        background_write_limit: limit(scheduler.background_write_bandwidth),
        jobs: past.running().iter().map(|running| job(&past, running)).collect(),
        flush_slots: scheduler.flush_slots,
        compaction_slots: scheduler.compaction_slots,
        debt_ns: scheduler.debt_ns,
        memory: metrics.memory.owners().map(|(owner, bytes)| (owner.to_owned(), bytes)).into(),
        memory_budget: metrics.memory.budget,
        cache_hit_rate: metrics.block_cache_hit_rate(),
        write_amplification: metrics.write_amplification(),
        live_wal_bytes: metrics.live_wal_bytes,
        table_file_bytes: metrics.table_files.live_bytes + metrics.table_files.dead_bytes,
        slow: slow(&past),
        obsolete_bytes: metrics.obsolete_bytes + garbage.sum::<u64>(),
    }
}

/// A limit that is not set is the largest number.
fn limit(bytes_per_second: u64) -> u64 {
    if bytes_per_second == u64::MAX { 0 } else { bytes_per_second }
}

fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn quantiles(latency: &HistogramSnapshot) -> Quantiles {
    if latency.count() == 0 {
        return Quantiles::default();
    }
    Quantiles {
        timed: latency.count(),
        p50_ns: latency.quantile(0.5),
        p99_ns: latency.quantile(0.99),
        p999_ns: latency.quantile(0.999),
        max_ns: latency.max(),
    }
}

fn operation(metrics: &Metrics, kind: Operation) -> OperationStatus {
    let &Counts { gets, multi_gets, writes, seeks, .. } = &metrics.counts;
    let count = match kind {
        Operation::Get => gets,
        Operation::MultiGet => multi_gets,
        Operation::Write => writes,
        Operation::Seek => seeks,
        _ => 0,
    };
    let latency = metrics.latency(kind);
    OperationStatus {
        name: kind.name().to_owned(),
        count,
        last_second: latency.map(|it| quantiles(&it.last_second)).unwrap_or_default(),
        since_open: latency.map(|it| quantiles(&it.since_open)).unwrap_or_default(),
    }
}

fn stalls(metrics: &Metrics) -> Vec<StallStatus> {
    let stalls = metrics.stalls.iter().map(|stall| StallStatus {
        cause: stall.cause.name().to_owned(),
        waiting: stall.waiting,
        waits: stall.waits_ns.count(),
        waited_ns: stall.waits_ns.sum(),
        max_ns: stall.waits_ns.max(),
    });
    stalls.collect()
}

fn families(metrics: &Metrics) -> Vec<FamilyStatus> {
    let families = metrics.column_families.iter().map(|family| FamilyStatus {
        name: family.name.clone(),
        levels: family
            .levels
            .iter()
            .map(|level| LevelStatus {
                runs: level.runs,
                tables: level.tables,
                bytes: level.bytes,
                target_bytes: level.target_bytes,
            })
            .collect(),
        immutable_memtables: family.immutable_memtables,
        debt_bytes: family.compaction_debt_bytes,
        write_limit: family.write_rate_limit,
    });
    families.collect()
}

fn traffic(metrics: &Metrics) -> Vec<ClassTraffic> {
    let classes = IoClass::NAMES.iter().zip(&metrics.io).map(|(name, class)| ClassTraffic {
        class: (*name).to_owned(),
        read_bytes: class.totals.read_bytes,
        written_bytes: class.totals.write_bytes,
        syncs: class.totals.syncs,
    });
    classes.collect()
}

fn job(past: &Past, running: &RunningJob) -> JobStatus {
    JobStatus {
        job: running.info.job.0,
        what: running.info.label(),
        family: past.family(running),
        reason: running.info.reason.map(|reason| reason.name().to_owned()),
        age_ns: past.history.until_ns().saturating_sub(running.started_ns),
        input_bytes: running.info.input_bytes,
        read_bytes: running.read_bytes,
        written_bytes: running.written_bytes,
        paused: running.paused.map(|reason| match reason {
            PauseReason::Preempted { .. } => "preempted".to_owned(),
            PauseReason::Peak => "peak".to_owned(),
            PauseReason::Slots => "slots".to_owned(),
        }),
    }
}

fn slow(past: &Past) -> Vec<SlowStatus> {
    let now = past.history.until_ns();
    let recent = past.history.seconds().rev();
    let recent = recent.take_while(|second| (second.second + SLOW_SECONDS) * 1_000_000_000 >= now);
    let mut slow: Vec<(&Second, &SlowOperation)> = recent
        .flat_map(|second| second.slowest.iter().map(move |slowest| (second, slowest)))
        .collect();
    slow.sort_by_key(|(_, operation)| std::cmp::Reverse(operation.total_ns));
    slow.truncate(SLOW_MAX);
    let slow = slow.into_iter().map(|(second, operation)| SlowStatus {
        kind: operation.kind.name().to_owned(),
        ago_ns: now.saturating_sub(operation.end_ns()),
        total_ns: operation.total_ns,
        parts: named(operation.parts().into_iter().filter(|(_, ns)| *ns > 0)),
        beside: second.work.iter().take(3).map(|(work, _)| work.clone()).collect(),
    });
    slow.collect()
}

fn named<N: Into<String>>(parts: impl IntoIterator<Item = (N, u64)>) -> BTreeMap<String, u64> {
    parts.into_iter().map(|(name, ns)| (name.into(), ns)).collect()
}

/// Explains the slow seconds of the last `since`.
pub(crate) fn explanation(watch: &Watch, since: Duration) -> ExplanationReport {
    let explanation = watch.update().history.explain(since);
    report(&explanation)
}

/// Returns an explanation as the protocol carries it.
pub(crate) fn report(explanation: &Explanation) -> ExplanationReport {
    let now = explanation.until_ns / 1_000_000_000;
    let episode = |episode: &Episode| EpisodeReport {
        began_seconds_ago: now.saturating_sub(episode.first_second),
        ended_seconds_ago: now.saturating_sub(episode.last_second),
        slow_seconds: episode.slow_seconds,
        cause: episode.cause.name().to_owned(),
        sentence: episode.cause.sentence().to_owned(),
        evidence: episode.cause.evidence(&episode.figures),
        remedy: episode.cause.remedy().to_owned(),
        longest_ns: episode.slowest.total_ns,
        waited_for: named(episode.waited_for.iter().copied()),
        stalled: named(episode.stalled.iter().map(|(cause, ns)| (cause.name(), *ns))),
        work: named(episode.work.iter().cloned()),
    };
    ExplanationReport {
        text: explanation.to_string(),
        known_seconds: explanation.known_seconds,
        episodes: explanation.episodes.iter().map(episode).collect(),
    }
}
