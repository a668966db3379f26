//! `demo --json`: the verdict and the figures behind it.

use std::path::Path;

use serde_json::{Value, json};

use super::opponent::Opponent;
use super::verdict::{Verdict, WAIT_NS, Waits};
use super::{DEVICE_BYTES_PER_SECOND, DemoArgs, DeviceKind};
use crate::result::{Report, RunResult};

/// Returns the document. Times are in nanoseconds, sizes in bytes.
pub(super) fn figures(
    args: &DemoArgs,
    report: &Report,
    verdict: &Verdict,
    opponent: &Opponent,
    page: &Path,
) -> Value {
    let limit = (args.device == DeviceKind::Limited).then_some(DEVICE_BYTES_PER_SECOND);
    json!({
        "schema": 1,
        "verdict": verdict.sentence(),
        "seconds": verdict.seconds,
        "wait_ns": WAIT_NS,
        "device": { "kind": args.device, "bytes_per_second": limit },
        "opponent": { "kind": opponent.kind(), "name": opponent.name(),
                      "library": opponent.library() },
        "machine": report.machine,
        "busy": verdict.was_busy(),
        "others_cpus": verdict.others_cpus,
        "setting": report.setting,
        "engines": [
            engine(&verdict.sateen, &report.runs[0]),
            engine(&verdict.opponent, &report.runs[1]),
        ],
        "report": page,
    })
}

fn engine(waits: &Waits, run: &RunResult) -> Value {
    let measured = &run.measured;
    let second = |(at, p99): (usize, &Option<u64>)| {
        let second = &measured.timeline[at];
        json!({
            "offered": second.offered,
            "done": second.done.iter().sum::<u64>(),
            "p99_ns": p99,
            "max_ns": second.all.map(|all| all.max),
        })
    };
    json!({
        "name": waits.name,
        "seconds_waiting": waits.bad(),
        "worst_second_p99_ns": waits.worst_ns(),
        "all": measured.all,
        "kinds": measured.kinds,
        "done": measured.done,
        "not_done_in_time": measured.unserved,
        "stall_ns": measured.stall_ns,
        "disk": measured.disk,
        "cpu_us_per_op": measured.cpu_us_per_op,
        "peak_memory": measured.peak_memory,
        "config": run.config,
        "timeline": waits.p99_ns.iter().enumerate().map(second).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::demo_args;
    use crate::demo::verdict::tests::verdict;
    use crate::summary::tests::{report, run};

    #[test]
    fn the_document_has_the_verdict_the_opponent_and_every_second() {
        let runs = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        let verdict = verdict(&[1, 2], &[200, 300]);
        let page = Path::new("/tmp/x.html");
        let json = figures(&demo_args(), &report(runs), &verdict, &Opponent::Profile, page);
        assert_eq!(json["verdict"], verdict.sentence());
        assert_eq!(json["device"]["kind"], "limited");
        assert_eq!(json["device"]["bytes_per_second"], 200_000_000);
        assert_eq!(json["opponent"]["kind"], "profile");
        assert_eq!(json["opponent"]["library"], Value::Null);
        assert_eq!((&json["busy"], &json["report"]), (&json!(false), &json!("/tmp/x.html")));
        assert_eq!(json["engines"][0]["seconds_waiting"], 0);
        let theirs = &json["engines"][1];
        assert_eq!(theirs["seconds_waiting"], 2);
        assert_eq!(theirs["timeline"].as_array().unwrap().len(), 2);
        assert_eq!(theirs["timeline"][1]["p99_ns"], 300_000_000);
        assert_eq!(theirs["worst_second_p99_ns"], 300_000_000);
    }
}
