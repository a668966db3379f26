//! Metrics of the I/O scheduler, the tuner, the admission of writers and the scrub.

use sateen_control::Overflow;

use super::text::seconds;
use super::{Family, counter, gauge};

pub(super) const SCHEDULING: &[Family] = &[
    gauge(
        "sateen_device_bandwidth_bytes_per_second",
        "bytes per second",
        "Bandwidth of the device, measured or set by device_bandwidth, by operation (read, write).",
        |m, s| {
            s.labelled(&[("operation", "read")], m.scheduler.device_read_bandwidth);
            s.labelled(&[("operation", "write")], m.scheduler.device_write_bandwidth);
        },
    ),
    gauge(
        "sateen_device_barrier_seconds",
        "seconds",
        "Average time of a barrier (fsync).",
        |m, s| {
            s.number(seconds(m.scheduler.device_barrier_ns));
        },
    ),
    gauge(
        "sateen_client_bandwidth_bytes_per_second",
        "bytes per second",
        "Bandwidth that clients used when the limit of background work last changed.",
        |m, s| {
            s.number(m.scheduler.client_bandwidth);
        },
    ),
    gauge(
        "sateen_background_bandwidth_bytes_per_second",
        "bytes per second",
        "Limit on flushes and compactions together, by operation (read, write); 0 if there is \
         none.",
        |m, s| {
            s.labelled(&[("operation", "read")], m.scheduler.background_read_bandwidth);
            s.labelled(&[("operation", "write")], m.scheduler.background_write_bandwidth);
        },
    ),
    counter(
        "sateen_background_bandwidth_changes_total",
        "changes",
        "Changes of the bandwidth limit of background work.",
        |m, s| {
            s.number(m.scheduler.bandwidth_changes);
        },
    ),
    gauge(
        "sateen_processors_others",
        "ratio",
        "Part of the time of the machine's processors that other programs used in the last half \
         second.",
        |m, s| {
            s.number(f64::from(m.scheduler.processors_others) / 1000.0);
        },
    ),
    gauge(
        "sateen_short_of_processor",
        "1 or 0",
        "1 while other programs use half of the time of the machine's processors, and a tenth is \
         idle at most.",
        |m, s| {
            s.number(u64::from(m.scheduler.short_of_processor));
        },
    ),
    gauge(
        "sateen_space_amplification",
        "ratio",
        "Bytes of all levels and of dead tables that are not freed yet for each byte of the \
         deepest level, by column family.",
        |m, s| {
            for family in &m.column_families {
                s.labelled(&[("cf", &family.name)], family.space_amplification());
            }
        },
    ),
    gauge(
        "sateen_compaction_debt_seconds",
        "seconds",
        "Time that deep compactions need to catch up at their current bandwidth; those of all \
         databases of a common runtime.",
        |m, s| {
            s.number(seconds(m.scheduler.debt_ns));
        },
    ),
    gauge("sateen_paused_jobs", "jobs", "Compactions that are paused now.", |m, s| {
        s.number(m.scheduler.paused_jobs);
    }),
    counter(
        "sateen_pauses_total",
        "pauses",
        "Pauses of compactions by reason (preempted: a compaction out of level 0 needed the slot, \
         peak: clients needed the device, slots: the number of slots fell).",
        |m, s| {
            s.labelled(&[("reason", "preempted")], m.scheduler.preemptions);
            s.labelled(&[("reason", "peak")], m.scheduler.peak_pauses);
            s.labelled(&[("reason", "slots")], m.scheduler.slot_pauses);
        },
    ),
    counter(
        "sateen_early_ends_total",
        "compactions",
        "Compactions that had to end early for a compaction out of level 0.",
        |m, s| {
            s.number(m.scheduler.early_ends);
        },
    ),
    gauge(
        "sateen_job_slots",
        "jobs",
        "Limit on jobs that run at the same time, by kind (flush, compaction).",
        |m, s| {
            s.labelled(&[("kind", "flush")], m.scheduler.flush_slots);
            s.labelled(&[("kind", "compaction")], m.scheduler.compaction_slots);
        },
    ),
    gauge(
        "sateen_memtable_limit_bytes",
        "bytes",
        "Size at which the next memtable will be sealed, by column family; with regions, the \
         largest.",
        |m, s| {
            s.by_family(m, |family| family.memtable_limit);
        },
    ),
    counter(
        "sateen_adjustments_total",
        "adjustments",
        "Adjustments of job slots or memtable size by the tuner, by cause (level0, redundancy, \
         memory).",
        |m, s| {
            for (overflow, count) in Overflow::ALL.iter().zip(m.scheduler.adjustments) {
                s.labelled(&[("overflow", overflow.name())], count);
            }
        },
    ),
    gauge(
        "sateen_write_limit_bytes_per_second",
        "bytes per second",
        "Rate to which writers of a column family are slowed down; 0 if they are not slowed down, \
         or are stopped.",
        |m, s| {
            s.by_family(m, |family| family.write_rate_limit.unwrap_or(0));
        },
    ),
    counter(
        "sateen_scrub_runs_total",
        "scrubs",
        "Finished scrubs of all tables and WALs.",
        |m, s| {
            s.number(m.scrub.runs);
        },
    ),
    counter(
        "sateen_scrub_bytes_total",
        "bytes",
        "Bytes of tables and WALs that scrubs verified.",
        |m, s| {
            s.number(m.scrub.bytes);
        },
    ),
    counter(
        "sateen_scrub_problems_total",
        "findings",
        "Damaged things that scrubs found.",
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
        "Number of the table that is being verified, or was last; 0 during WALs.",
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
