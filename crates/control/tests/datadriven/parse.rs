//! What the words of a script mean.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::options::{
    AdmissionPolicy, CompactionPri, CompactionStyle, CompressionCode, DebtLimit, Preemption,
    RateLimiterMode, StopStyle,
};
use sateen_control::version::{KeySketch, Placement};
use sateen_control::{CfOptions, ControlOptions, FileId, SeqNo, TableId, TableMeta, UserKey};

/// The words of a command line: plain ones, and `key=value`.
pub(crate) struct Line<'a> {
    pub(crate) words: Vec<&'a str>,
    pub(crate) values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    pub(crate) fn parse(line: &'a str) -> Line<'a> {
        let mut parsed = Line { words: Vec::new(), values: BTreeMap::new() };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => drop(parsed.values.insert(key, value)),
                None => parsed.words.push(word),
            }
        }
        parsed
    }

    pub(crate) fn word(&self, at: usize) -> &'a str {
        self.words.get(at).copied().unwrap_or_else(|| panic!("word {at} is missing"))
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        self.values.get(key).map_or(0, |value| number(value))
    }
}

/// A number with `K`, `M` or `G` behind it.
pub(crate) fn number(text: &str) -> u64 {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().unwrap_or_else(|_| panic!("not a number: {text}")) << shift
}

pub(crate) fn id(text: &str) -> u64 {
    text.trim_start_matches(|c: char| c.is_alphabetic()).parse().unwrap()
}

pub(crate) fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(ms) => Duration::from_millis(ms.parse().unwrap()),
        None => Duration::from_secs(text.strip_suffix('s').unwrap().parse().unwrap()),
    }
}

pub(crate) fn flag(text: &str) -> bool {
    matches!(text, "true" | "on")
}

pub(crate) fn set_cf(options: &mut CfOptions, key: &str, value: &str) {
    let n = || number(value);
    let small = || u32::try_from(number(value)).unwrap();
    match key {
        "overlap-min" => options.leveled.level0_overlap_min = value.parse().unwrap(),
        "overlap-runs-max" => options.leveled.level0_overlap_runs_max = small(),
        "style" => options.compaction_style = CompactionStyle::from_name(value).unwrap(),
        "size-ratio" => options.tiered.size_ratio = small(),
        "merge-min" => options.tiered.min_merge_width = small(),
        "merge-max" => options.tiered.max_merge_width = small(),
        "amplification" => options.tiered.max_size_amplification_percent = small(),
        "similar" => {
            let styles = [StopStyle::TotalSize, StopStyle::SimilarSize];
            options.tiered.stop_style = styles[usize::from(flag(value))];
        }
        "trivial" => options.tiered.allow_trivial_move = flag(value),
        "fifo-max" => options.fifo.max_table_files_size = n(),
        "fifo-compact" => options.fifo.allow_compaction = flag(value),
        "guard-runs" => options.guards.runs_max = small(),
        "levels" => options.num_levels = n() as usize,
        "memtable" => options.write_buffer_size = n(),
        "memtables" => options.max_write_buffer_number = small(),
        "merge" => options.min_write_buffer_number_to_merge = small(),
        "trigger" => options.level0_file_num_compaction_trigger = small(),
        "slowdown" => options.level0_slowdown_writes_trigger = small(),
        "stop" => options.level0_stop_writes_trigger = small(),
        "soft" => options.soft_pending_compaction_bytes_limit = n(),
        "hard" => options.hard_pending_compaction_bytes_limit = n(),
        "base" => options.max_bytes_for_level_base = n(),
        "multiplier" => options.max_bytes_for_level_multiplier = value.parse().unwrap(),
        "dynamic" => options.level_compaction_dynamic_level_bytes = flag(value),
        "target" => options.target_file_size_base = n(),
        "max-compaction" => options.max_compaction_bytes = n(),
        "max-grandparents" => options.leveled.max_grandparent_overlap_bytes = n(),
        "stripe" => options.leveled.level0_stripe_bytes = n(),
        "base-multiplier" => options.leveled.base_level_multiplier = value.parse().unwrap(),
        "fifo" => options.leveled.level0_fifo = flag(value),
        "overlap-aware" => options.leveled.overlap_aware = flag(value),
        "group" => options.leveled.group_compaction_bytes = n(),
        "settle" => options.settled_compaction = flag(value),
        "candidates" => options.leveled.victim_candidates_max = n() as usize,
        "intra" => options.leveled.intra_level0_compaction = flag(value),
        "auto" => options.disable_auto_compactions = !flag(value),
        "compression" => {
            options.compression_per_level =
                value.split(',').map(|code| CompressionCode(code.parse().unwrap())).collect();
        }
        "pri" => {
            options.leveled.compaction_pri = match value {
                "overlap" => CompactionPri::MinOverlappingRatio,
                "round-robin" => CompactionPri::RoundRobin,
                "size" => CompactionPri::ByCompensatedSize,
                "oldest-largest" => CompactionPri::OldestLargestSeqFirst,
                "oldest-smallest" => CompactionPri::OldestSmallestSeqFirst,
                _ => panic!("unknown priority {value}"),
            }
        }
        _ => panic!("unknown option {key}"),
    }
}

pub(crate) fn set_control(options: &mut ControlOptions, key: &str, value: &str) {
    match key {
        "flushes" => options.max_background_flushes = number(value) as usize,
        "compactions" => options.max_background_compactions = number(value) as usize,
        "l0-reserved" => options.l0_slots_reserved = number(value) as usize,
        "together" => options.atomic_flush = flag(value),
        "serial" => options.parallel_only_under_pressure = flag(value),
        "priority" => options.scheduler.priority = flag(value),
        "slice" => options.slice_bytes_max = number(value),
        "rate" => {
            options.rate_limiter.bytes_per_second = (value != "none").then(|| number(value));
        }
        "fairness" => options.rate_limiter.fairness = number(value) as u32,
        "tuned" => options.rate_limiter.auto_tuned = flag(value),
        "mode" => {
            options.rate_limiter.mode = match value {
                "reads" => RateLimiterMode::ReadsOnly,
                "writes" => RateLimiterMode::WritesOnly,
                _ => RateLimiterMode::AllIo,
            }
        }
        "preempt" => {
            options.scheduler.preemption = match value {
                "off" => Preemption::Off,
                "random" => Preemption::Random,
                _ => Preemption::LeastLoss,
            }
        }
        "discard" => options.scheduler.discard_preempted = flag(value),
        "bandwidth" => options.scheduler.bandwidth = flag(value),
        "device" => options.scheduler.device_bytes_per_second = Some(number(value)),
        "floor" => options.scheduler.floor_bytes_per_second = Some(number(value)),
        "change" => options.scheduler.change_bytes_per_second = Some(number(value)),
        "barrier" => options.scheduler.hint.barrier_ns = duration(value).as_nanos() as u64,
        "drain" => options.scheduler.drain_time = duration(value),
        "admission" => {
            options.admission = match value {
                "smooth" => AdmissionPolicy::Smooth,
                _ => AdmissionPolicy::Triggers,
            }
        }
        "tuner" => {
            options.tuner.slots = matches!(value, "adoc" | "threads");
            options.tuner.memtables = matches!(value, "adoc" | "batch");
        }
        "interval" => options.tuner.interval = duration(value),
        "hold" => options.tuner.hold_time = duration(value),
        "slots-max" => options.tuner.slots_max = number(value) as usize,
        "memtable-max" => options.tuner.memtable_bytes_max = number(value),
        "debt-time" => options.tuner.debt = DebtLimit::Time(duration(value)),
        "debt-bytes" => options.tuner.debt = DebtLimit::Bytes(number(value)),
        "delayed-rate" => options.delayed_write_rate = number(value),
        "retry" => options.retry_delay = duration(value),
        _ => panic!("unknown option {key}"),
    }
}

/// `[tID=]smallest-largest:size[:dN][:mN][:sN][:fN][:kN..M]`: N percent tombstones, or merge
/// operands, newest sequence number N, in file N, and a sketch of the keys of numbers from N to M.
pub(crate) fn table(text: &str, next_id: &mut u64) -> Arc<TableMeta> {
    let (id_text, rest) = match text.split_once('=') {
        Some((id, rest)) => (Some(id), rest),
        None => (None, text),
    };
    let mut parts = rest.split(':');
    let (smallest, largest) = parts.next().unwrap().split_once('-').expect("smallest-largest");
    let size_bytes = number(parts.next().expect("a size"));
    let (mut tombstones, mut merges, mut seqno) = (0, 0, 0);
    let (mut file, mut sketch) = (None, None);
    for part in parts {
        match part.split_at(1) {
            ("d", percent) => tombstones = percent.parse().unwrap(),
            ("m", percent) => merges = percent.parse().unwrap(),
            ("s", newest) => seqno = newest.parse().unwrap(),
            ("k", keys) => sketch = Some(sketch_of(keys)),
            ("f", number) => file = Some(number.parse().unwrap()),
            _ => panic!("unknown: {part}"),
        }
    }
    let id = id_text.map_or_else(|| *next_id + 1, id);
    *next_id = id.max(*next_id);
    Arc::new(TableMeta {
        id: TableId(id),
        placement: match file {
            Some(file) => Placement::Slice { file: FileId(file), offset: 4096, length: size_bytes },
            None => Placement::WholeFile(FileId(id)),
        },
        size_bytes,
        smallest: UserKey::bytewise(smallest.as_bytes()),
        largest: UserKey::bytewise(largest.as_bytes()),
        seqno_min: SeqNo(seqno),
        seqno_max: SeqNo(seqno),
        entries: 100,
        tombstones,
        merges,
        ranges_applied: SeqNo(0),
        global_seqno: SeqNo(0),
        raw_bytes: size_bytes,
        tail_bytes: 0,
        sketch,
    })
}

/// A sketch of the keys of such numbers, `FROM..TO`.
fn sketch_of(keys: &str) -> KeySketch {
    let (from, to) = keys.split_once("..").expect("FROM..TO");
    let mut sketch = KeySketch::default();
    for key in number(from)..number(to) {
        let mixed = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        sketch.add((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93));
    }
    sketch
}
