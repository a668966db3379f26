//! The list of all metrics: name, type, unit, meaning, and where in [`Metrics`] the values are. The
//! Prometheus text and docs/metrics.md are made from it.
//!
//! What must stay true: the name, unit and labels of a metric never change.

use sateen_control::IoClass;

use super::snapshot::Metrics;

use scheduling::SCHEDULING;
pub(super) use text::prometheus_text;
use text::{Samples, seconds};

mod scheduling;
#[cfg(test)]
mod tests;
mod text;

/// The type of a metric, as Prometheus calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric with all its label values.
struct Family {
    name: &'static str,
    kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md is made from it"))]
    unit: &'static str,
    help: &'static str,
    write: fn(&Metrics, &mut Samples<'_>),
}

const fn counter(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    write: fn(&Metrics, &mut Samples<'_>),
) -> Family {
    Family { name, kind: Kind::Counter, unit, help, write }
}

const fn gauge(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    write: fn(&Metrics, &mut Samples<'_>),
) -> Family {
    Family { name, kind: Kind::Gauge, unit, help, write }
}

const fn histogram(
    name: &'static str,
    help: &'static str,
    write: fn(&Metrics, &mut Samples<'_>),
) -> Family {
    Family { name, kind: Kind::Histogram, unit: "seconds", help, write }
}

/// The values of `Metrics::health`.
const HEALTH: [&str; 3] = ["ok", "degraded", "read-only"];

/// Every metric, in the order of the text. There is no other list.
static FAMILIES: &[&[Family]] = &[CLIENT, LATENCY, CACHES, BACKGROUND, SCHEDULING, STATE];

const CLIENT: &[Family] = &[
    counter(
        "sateen_gets_total",
        "keys",
        "Point reads, each key of a multi_get included.",
        |m, s| {
            s.number(m.counts.gets);
        },
    ),
    counter("sateen_get_hits_total", "keys", "Point reads that found a value.", |m, s| {
        s.number(m.counts.get_hits);
    }),
    counter(
        "sateen_get_memtable_hits_total",
        "keys",
        "Point reads that a memtable answered.",
        |m, s| {
            s.number(m.counts.memtable_hits);
        },
    ),
    counter("sateen_get_bytes_total", "bytes", "Values returned by point reads.", |m, s| {
        s.number(m.counts.get_bytes);
    }),
    counter("sateen_multi_gets_total", "calls", "Calls of multi_get.", |m, s| {
        s.number(m.counts.multi_gets);
    }),
    counter(
        "sateen_writes_total",
        "batches",
        "Write batches; a single put is a batch of one.",
        |m, s| {
            s.number(m.counts.writes);
        },
    ),
    counter("sateen_written_entries_total", "entries", "Values and deletions written.", |m, s| {
        s.number(m.counts.written_entries);
    }),
    counter("sateen_write_bytes_total", "bytes", "Keys and values written by clients.", |m, s| {
        s.number(m.counts.write_bytes);
    }),
    counter(
        "sateen_write_groups_total",
        "groups",
        "Groups of batches that were committed together.",
        |m, s| {
            s.number(m.counts.write_groups);
        },
    ),
    counter("sateen_seeks_total", "seeks", "Iterator seeks.", |m, s| s.number(m.counts.seeks)),
    counter(
        "sateen_iterator_steps_total",
        "steps",
        "Iterator steps, both ways; counted when the iterator is dropped.",
        |m, s| {
            s.number(m.counts.steps);
        },
    ),
    counter(
        "sateen_iterator_skipped_total",
        "entries",
        "Entries that iterators passed over: deleted, hidden, or newer than their snapshot.",
        |m, s| {
            s.number(m.counts.iter_skipped);
        },
    ),
    counter(
        "sateen_iterator_reseeks_total",
        "seeks",
        "Seeks that iterators made to go past many versions of one key.",
        |m, s| {
            s.number(m.counts.iter_reseeks);
        },
    ),
    counter("sateen_wal_bytes_total", "bytes", "Bytes appended to write-ahead logs.", |m, s| {
        s.number(m.counts.wal_bytes);
    }),
    counter("sateen_wal_syncs_total", "syncs", "Syncs of write-ahead logs.", |m, s| {
        s.number(m.counts.wal_syncs);
    }),
];

const LATENCY: &[Family] = &[
    histogram(
        "sateen_operation_seconds",
        "Latency by operation since open. One get in 8 and one write in 4 are timed (drawn at \
         random), all other operations always: _count is the number timed.",
        |m, s| {
            for latency in &m.latencies {
                s.histogram(&[("operation", latency.operation.name())], &latency.since_open);
            }
        },
    ),
    gauge(
        "sateen_operation_last_second_seconds",
        "seconds",
        "Latency quantiles of the operations of the last full second; quantile 1 is the maximum.",
        |m, s| {
            for latency in &m.latencies {
                for (name, quantile) in [("0.5", 0.5), ("0.99", 0.99), ("0.999", 0.999), ("1", 1.0)]
                {
                    let labels = [("operation", latency.operation.name()), ("quantile", name)];
                    s.labelled(&labels, seconds(latency.last_second.quantile(quantile)));
                }
            }
        },
    ),
    histogram(
        "sateen_stall_seconds",
        "Finished waits of writers by cause (memtable-limit, level0-runs, \
         pending-compaction-bytes, background-error, write-buffers, key-lock). Every wait is \
         counted.",
        |m, s| {
            for stall in &m.stalls {
                s.histogram(&[("cause", stall.cause.name())], &stall.waits_ns);
            }
        },
    ),
    gauge("sateen_stalled_writers", "writers", "Writers that wait now, by cause.", |m, s| {
        for stall in &m.stalls {
            s.labelled(&[("cause", stall.cause.name())], stall.waiting);
        }
    }),
];

const CACHES: &[Family] = &[
    counter(
        "sateen_block_cache_hits_total",
        "blocks",
        "Data blocks found in the cache. Indexes and filters stay in memory with their table.",
        |m, s| {
            s.number(m.counts.data_block_hits);
        },
    ),
    counter(
        "sateen_block_cache_misses_total",
        "blocks",
        "Data blocks read from a file because they were not in the cache.",
        |m, s| {
            s.number(m.counts.data_block_misses);
        },
    ),
    counter("sateen_filter_checks_total", "checks", "Table filters asked.", |m, s| {
        s.number(m.counts.filter_checks);
    }),
    counter(
        "sateen_filter_negatives_total",
        "checks",
        "Tables that a filter excluded, so that they were not read.",
        |m, s| {
            s.number(m.counts.filter_negatives);
        },
    ),
    counter(
        "sateen_filter_false_positives_total",
        "checks",
        "Tables that were searched without a hit although their filter allowed it.",
        |m, s| {
            s.number(m.counts.filter_false_positives);
        },
    ),
    counter("sateen_table_opens_total", "tables", "Tables that had to be opened.", |m, s| {
        s.number(m.counts.table_opens);
    }),
];

const BACKGROUND: &[Family] = &[
    counter(
        "sateen_flush_entries_total",
        "entries",
        "Entries of the memtables flushed.",
        |m, s| {
            s.number(m.flushes.entries_in);
        },
    ),
    counter(
        "sateen_flush_kept_keys_total",
        "keys",
        "Hot keys that stayed in memory: a flush moved them to the next memtable.",
        |m, s| {
            s.number(m.flushes.keys_kept);
        },
    ),
    counter(
        "sateen_flush_input_bytes_total",
        "bytes",
        "Keys and values of the memtables flushed.",
        |m, s| {
            s.number(m.flushes.bytes_in);
        },
    ),
    counter("sateen_flush_output_bytes_total", "bytes", "Tables written by flushes.", |m, s| {
        s.number(m.flushes.bytes_out);
    }),
    counter("sateen_flush_tables_total", "tables", "Tables written by flushes.", |m, s| {
        s.number(m.flushes.tables_out);
    }),
    histogram(
        "sateen_step_cpu_seconds",
        "CPU time of one step of a flush or compaction: the longest time for which a step keeps a \
         core.",
        |m, s| {
            s.histogram(&[], &m.steps_cpu_ns);
        },
    ),
    histogram(
        "sateen_flush_seconds",
        "Time of a flush from its start until its tables are installed.",
        |m, s| {
            s.histogram(&[], &m.flushes.durations_ns);
        },
    ),
    counter("sateen_compactions_total", "compactions", "Compactions by output level.", |m, s| {
        s.by_level(&m.compactions, |level| level.count);
    }),
    counter(
        "sateen_compaction_input_bytes_total",
        "bytes",
        "Bytes of tables read by compactions, by output level and input (above: other levels, \
         same: the output level).",
        |m, s| {
            for (level, totals) in m.compactions.iter().enumerate() {
                let level = level.to_string();
                s.labelled(&[("level", &level), ("from", "above")], totals.bytes_in_above);
                s.labelled(&[("level", &level), ("from", "same")], totals.bytes_in_level);
            }
        },
    ),
    counter(
        "sateen_compaction_output_bytes_total",
        "bytes",
        "Bytes of tables written by compactions, by output level.",
        |m, s| {
            s.by_level(&m.compactions, |level| level.bytes_out);
        },
    ),
    counter(
        "sateen_compaction_moved_bytes_total",
        "bytes",
        "Bytes of tables that moved to another level without being rewritten, by output level.",
        |m, s| {
            s.by_level(&m.compactions, |level| level.bytes_moved);
        },
    ),
    counter(
        "sateen_compaction_entries_total",
        "entries",
        "Entries read by compactions, by output level.",
        |m, s| {
            s.by_level(&m.compactions, |level| level.entries_in);
        },
    ),
    counter(
        "sateen_compaction_dropped_entries_total",
        "entries",
        "Entries dropped by compactions, by output level.",
        |m, s| {
            s.by_level(&m.compactions, |level| level.entries_dropped);
        },
    ),
    counter(
        "sateen_compaction_seconds_total",
        "seconds",
        "Time of compactions from their start until their tables are installed, by output level.",
        |m, s| {
            s.by_level(&m.compactions, |level| seconds(level.duration_ns));
        },
    ),
    gauge(
        "sateen_write_amplification",
        "ratio",
        "Bytes written to tables for each byte of keys and values that clients wrote, since open; \
         the write-ahead log is not counted.",
        |m, s| {
            s.number(m.write_amplification());
        },
    ),
    counter(
        "sateen_background_errors_total",
        "errors",
        "Failures of flushes, compactions and other background work.",
        |m, s| {
            s.number(m.background_errors);
        },
    ),
    counter(
        "sateen_io_bytes_total",
        "bytes",
        "Bytes of I/O by class and operation (read, write, punch).",
        |m, s| {
            s.by_class(m, "read", |io| io.read_bytes);
            s.by_class(m, "write", |io| io.write_bytes);
            s.by_class(m, "punch", |io| io.punch_bytes);
        },
    ),
    histogram(
        "sateen_io_seconds",
        "Latency of I/O by class and operation (read, write, sync).",
        |m, s| {
            for (class, io) in IoClass::NAMES.iter().zip(&m.io) {
                s.histogram(&[("class", class), ("operation", "read")], &io.read_ns);
                s.histogram(&[("class", class), ("operation", "write")], &io.write_ns);
                s.histogram(&[("class", class), ("operation", "sync")], &io.sync_ns);
            }
        },
    ),
    counter(
        "sateen_io_errors_total",
        "errors",
        "Failed calls to the operating system by class.",
        |m, s| {
            for (class, io) in IoClass::NAMES.iter().zip(&m.io) {
                s.labelled(&[("class", class)], io.totals.errors);
            }
        },
    ),
];

const STATE: &[Family] = &[
    gauge(
        "sateen_level_runs",
        "runs",
        "Sorted runs by column family and level; with regions, the most in one of them.",
        |m, s| {
            s.by_family_and_level(m, |level| level.runs);
        },
    ),
    gauge("sateen_level_tables", "tables", "Tables by column family and level.", |m, s| {
        s.by_family_and_level(m, |level| level.tables);
    }),
    gauge("sateen_level_bytes", "bytes", "Bytes of tables by column family and level.", |m, s| {
        s.by_family_and_level(m, |level| level.bytes);
    }),
    gauge(
        "sateen_level_good_bytes",
        "bytes",
        "Approximate bytes of tables that overlap little of the next level, by column family and \
         level.",
        |m, s| {
            s.by_family_and_level(m, |level| level.good_bytes);
        },
    ),
    gauge(
        "sateen_level_target_bytes",
        "bytes",
        "Size at which a level is compacted, by column family and level; of the last level its \
         size times the growth factor; 0 if there is no such limit.",
        |m, s| {
            s.by_family_and_level(m, |level| level.target_bytes);
        },
    ),
    gauge(
        "sateen_immutable_memtables",
        "memtables",
        "Sealed memtables that wait for their flush, by column family.",
        |m, s| {
            s.by_family(m, |family| family.immutable_memtables);
        },
    ),
    gauge(
        "sateen_compaction_debt_bytes",
        "bytes",
        "Bytes that compactions must still move until every level is within its target, by column \
         family.",
        |m, s| {
            s.by_family(m, |family| family.compaction_debt_bytes);
        },
    ),
    gauge(
        "sateen_compaction_chain_levels",
        "levels",
        "Compactions that must run one after the other until a full level 0 has room for a flush, \
         by column family.",
        |m, s| {
            s.by_family(m, |family| family.chain_length);
        },
    ),
    gauge(
        "sateen_compaction_chain_bytes",
        "bytes",
        "Bytes that these compactions read, by column family.",
        |m, s| {
            s.by_family(m, |family| family.chain_bytes);
        },
    ),
    gauge(
        "sateen_value_files",
        "files",
        "Value files that tables refer to, by column family.",
        |m, s| {
            s.by_family(m, |family| family.value_files);
        },
    ),
    gauge(
        "sateen_value_file_bytes",
        "bytes",
        "Bytes of all values that were written to these files, by column family.",
        |m, s| {
            s.by_family(m, |family| family.value_file_bytes);
        },
    ),
    gauge(
        "sateen_value_garbage_bytes",
        "bytes",
        "Bytes of the values in these files that no table refers to, by column family.",
        |m, s| {
            s.by_family(m, |family| family.value_garbage_bytes);
        },
    ),
    gauge(
        "sateen_memory_bytes",
        "bytes",
        "Memory by owner (active_memtables, immutable_memtables, block_cache, pinned_blocks, \
         indexes_and_filters, job_buffers, wal_buffers, versions).",
        |m, s| {
            for (owner, bytes) in m.memory.owners() {
                s.labelled(&[("owner", owner)], bytes);
            }
        },
    ),
    gauge(
        "sateen_memory_budget_bytes",
        "bytes",
        "Limit on the memory of all owners together; 0 if there is none.",
        |m, s| {
            s.number(m.memory.budget);
        },
    ),
    gauge(
        "sateen_health",
        "1 or 0",
        "1 for the state the database is in (ok, degraded, read-only), 0 for the others.",
        |m, s| {
            for state in HEALTH {
                s.labelled(&[("state", state)], u64::from(state == m.health));
            }
        },
    ),
    gauge(
        "sateen_running_jobs",
        "jobs",
        "Jobs that run now, paused ones included, by kind (flush, compaction).",
        |m, s| {
            s.labelled(&[("kind", "flush")], m.running_flushes);
            s.labelled(&[("kind", "compaction")], m.running_compactions);
        },
    ),
    gauge("sateen_snapshots", "snapshots", "Snapshots that are held.", |m, s| {
        s.number(m.snapshots)
    }),
    gauge(
        "sateen_obsolete_bytes",
        "bytes",
        "Bytes that no version needs and that are not freed yet.",
        |m, s| {
            s.number(m.obsolete_bytes);
        },
    ),
    gauge("sateen_table_files", "files", "Files that hold tables.", |m, s| {
        s.number(m.table_files.files);
    }),
    gauge(
        "sateen_table_file_bytes",
        "bytes",
        "Bytes of files that hold tables, by state: in use (live), no longer needed but not freed \
         (dead), freed by punching holes (punched).",
        |m, s| {
            s.labelled(&[("state", "live")], m.table_files.live_bytes);
            s.labelled(&[("state", "dead")], m.table_files.dead_bytes);
            s.labelled(&[("state", "punched")], m.table_files.punched_bytes);
        },
    ),
    gauge(
        "sateen_table_file_holes",
        "holes",
        "Holes in files that hold tables; each costs the file system an extent.",
        |m, s| {
            s.number(m.table_files.holes);
        },
    ),
    gauge(
        "sateen_table_file_punching",
        "1 or 0",
        "1 if the file system can punch holes, as far as is known, else 0.",
        |m, s| {
            s.number(u64::from(m.table_files.punching));
        },
    ),
    gauge(
        "sateen_table_file_descriptors",
        "descriptors",
        "Open descriptors of files that hold tables.",
        |m, s| s.number(m.table_files.descriptors),
    ),
    gauge(
        "sateen_table_file_descriptors_max",
        "descriptors",
        "Limit on open descriptors of such files: max_open_files, or half of the process's limit \
         if that is less.",
        |m, s| s.number(m.table_files.descriptors_max),
    ),
    counter(
        "sateen_table_files_removed_total",
        "files",
        "Files of tables that were removed.",
        |m, s| {
            s.number(m.table_files.removed);
        },
    ),
    gauge(
        "sateen_live_wal_bytes",
        "bytes",
        "Bytes of write-ahead logs (WALs) that recovery would read.",
        |m, s| {
            s.number(m.live_wal_bytes);
        },
    ),
];
