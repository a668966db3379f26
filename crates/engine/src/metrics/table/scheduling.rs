//! What the I/O scheduler believes, gives and has done, and how writers are admitted.

use sateen_control::Overflow;

use super::text::seconds;
use super::{Family, counter, gauge};

pub(super) const SCHEDULING: &[Family] = &[
    gauge(
        "sateen_device_bandwidth_bytes_per_second",
        "bytes per second",
        "What the device is believed to do, learned or told, by operation (read, write).",
        |m, s| {
            s.labelled(&[("operation", "read")], m.scheduler.device_read_bandwidth);
            s.labelled(&[("operation", "write")], m.scheduler.device_write_bandwidth);
        },
    ),
    gauge(
        "sateen_device_barrier_seconds",
        "seconds",
        "What a barrier takes, on average.",
        |m, s| {
            s.number(seconds(m.scheduler.device_barrier_ns));
        },
    ),
    gauge(
        "sateen_client_bandwidth_bytes_per_second",
        "bytes per second",
        "What clients used of the device when background work was given another bandwidth last.",
        |m, s| {
            s.number(m.scheduler.client_bandwidth);
        },
    ),
    gauge(
        "sateen_background_bandwidth_bytes_per_second",
        "bytes per second",
        "What flushes and compactions together may use of the device, by operation (read, write); \
         0 where nothing limits them.",
        |m, s| {
            s.labelled(&[("operation", "read")], m.scheduler.background_read_bandwidth);
            s.labelled(&[("operation", "write")], m.scheduler.background_write_bandwidth);
        },
    ),
    counter(
        "sateen_background_bandwidth_changes_total",
        "changes",
        "How often background work was given another bandwidth.",
        |m, s| {
            s.number(m.scheduler.bandwidth_changes);
        },
    ),
    gauge(
        "sateen_compaction_debt_seconds",
        "seconds",
        "How long deep compactions would take to catch up with what they get now.",
        |m, s| {
            s.number(seconds(m.scheduler.debt_ns));
        },
    ),
    gauge("sateen_paused_jobs", "jobs", "Compactions that are paused at this moment.", |m, s| {
        s.number(m.scheduler.paused_jobs);
    }),
    counter(
        "sateen_pauses_total",
        "pauses",
        "Compactions that were paused, by reason (preempted: one out of level 0 needed the slot, \
         peak: clients needed the device, slots: there were fewer slots).",
        |m, s| {
            s.labelled(&[("reason", "preempted")], m.scheduler.preemptions);
            s.labelled(&[("reason", "peak")], m.scheduler.peak_pauses);
            s.labelled(&[("reason", "slots")], m.scheduler.slot_pauses);
        },
    ),
    counter(
        "sateen_early_ends_total",
        "compactions",
        "Compactions that were told to end early for one out of level 0.",
        |m, s| {
            s.number(m.scheduler.early_ends);
        },
    ),
    gauge(
        "sateen_job_slots",
        "jobs",
        "Jobs that may run at a time, by kind (flush, compaction).",
        |m, s| {
            s.labelled(&[("kind", "flush")], m.scheduler.flush_slots);
            s.labelled(&[("kind", "compaction")], m.scheduler.compaction_slots);
        },
    ),
    gauge(
        "sateen_memtable_limit_bytes",
        "bytes",
        "At what size a memtable is sealed, from the next one on, by column family; where it has \
         regions, the largest.",
        |m, s| {
            s.by_family(m, |family| family.memtable_limit);
        },
    ),
    counter(
        "sateen_adjustments_total",
        "adjustments",
        "How often job slots or the size of memtables were adjusted, by what had overflowed \
         (level0, redundancy, memory).",
        |m, s| {
            for (overflow, count) in Overflow::ALL.iter().zip(m.scheduler.adjustments) {
                s.labelled(&[("overflow", overflow.name())], count);
            }
        },
    ),
    gauge(
        "sateen_write_limit_bytes_per_second",
        "bytes per second",
        "What the writers of a column family are slowed down to; 0 if they are not, or are \
         stopped.",
        |m, s| {
            s.by_family(m, |family| family.write_rate_limit.unwrap_or(0));
        },
    ),
    counter(
        "sateen_scrub_runs_total",
        "scrubs",
        "How often all tables and logs were verified to the end.",
        |m, s| {
            s.number(m.scrub.runs);
        },
    ),
    counter(
        "sateen_scrub_bytes_total",
        "bytes",
        "Bytes of tables and logs that were verified by scrubs.",
        |m, s| {
            s.number(m.scrub.bytes);
        },
    ),
    counter(
        "sateen_scrub_problems_total",
        "findings",
        "How often a scrub found something damaged.",
        |m, s| {
            s.number(m.scrub.problems);
        },
    ),
    gauge("sateen_scrub_running", "1 or 0", "1 while a scrub runs.", |m, s| {
        s.number(u64::from(m.scrub.running));
    }),
    gauge(
        "sateen_scrub_position",
        "table number",
        "The table that is verified, or was last; 0 while logs are.",
        |m, s| {
            s.number(m.scrub.position);
        },
    ),
    gauge(
        "sateen_writes_stopped",
        "1 or 0",
        "1 if the writers of a column family are stopped.",
        |m, s| {
            s.by_family(m, |family| u64::from(family.write_rate_limit == Some(0)));
        },
    ),
];
