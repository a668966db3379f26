//! What the words of a script mean.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::options::{
    CompactionPriority, CompactionStyle, CompressionCode, Preemption, RateLimitMode, StopStyle,
    Tuner, TunerBatch, WriteController,
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

/// The member of an enumeration with this name.
fn named<T: Copy>(names: &[(&str, T)], value: &str) -> T {
    let found = names.iter().find(|(name, _)| *name == value);
    found.unwrap_or_else(|| panic!("not a value: {value}")).1
}

/// Sets an option of a column family, by the name that a database's option has.
pub(crate) fn set_cf(options: &mut CfOptions, key: &str, value: &str) {
    let n = || number(value);
    let small = || u32::try_from(number(value)).unwrap();
    let ratio = || value.parse().unwrap();
    let (leveled, tiered) = (&mut options.leveled, &mut options.tiered);
    match key {
        "compaction_style" => options.compaction_style = CompactionStyle::from_name(value).unwrap(),
        "tiered_size_ratio" => tiered.size_ratio = small(),
        "tiered_merge_width_min" => tiered.merge_width_min = small(),
        "tiered_merge_width_max" => tiered.merge_width_max = small(),
        "tiered_size_amplification_max" => tiered.size_amplification_max = small(),
        "tiered_stop_style" => tiered.stop_style = named(StopStyle::NAMES, value),
        "tiered_trivial_move" => tiered.trivial_move = flag(value),
        "fifo_bytes_max" => options.fifo.bytes_max = n(),
        "fifo_compaction" => options.fifo.compaction = flag(value),
        "guard_runs" => options.guards.runs = small(),
        "levels" => options.levels = n() as usize,
        "memtable_bytes" => options.memtable_bytes = n(),
        "memtables_max" => options.memtables_max = small(),
        "memtables_to_flush_min" => options.memtables_to_flush_min = small(),
        "level0_trigger" => options.level0_trigger = small(),
        "level0_slowdown" => options.level0_slowdown = small(),
        "level0_stop" => options.level0_stop = small(),
        "soft_pending_compaction_bytes" => options.soft_pending_compaction_bytes = n(),
        "hard_pending_compaction_bytes" => options.hard_pending_compaction_bytes = n(),
        "space_amplification_max" => options.space_amplification_max = ratio(),
        "level_base_bytes" => options.level_base_bytes = n(),
        "level_multiplier" => options.level_multiplier = ratio(),
        "dynamic_level_bytes" => options.dynamic_level_bytes = flag(value),
        "table_bytes" => options.table_bytes = n(),
        "compaction_bytes_max" => options.compaction_bytes_max = n(),
        "grandparent_bytes_max" => leveled.grandparent_bytes_max = n(),
        "level0_stripe_bytes" => leveled.level0_stripe_bytes = n(),
        "read_aware_compaction" => leveled.read_aware_compaction = flag(value),
        "level0_collects" => leveled.level0_collects = small(),
        "base_level_multiplier" => leveled.base_level_multiplier = ratio(),
        "level0_fifo" => leveled.level0_fifo = flag(value),
        "level0_fifo_runs_max" => leveled.level0_fifo_runs_max = small(),
        "level0_overlap_min" => leveled.level0_overlap_min = ratio(),
        "level0_overlap_runs_max" => leveled.level0_overlap_runs_max = small(),
        "overlap_aware_tables" => leveled.overlap_aware_tables = flag(value),
        "align_tables" => leveled.align_tables = flag(value),
        "group_compaction_bytes" => leveled.group_compaction_bytes = n(),
        "seek_compaction_bytes" => leveled.seek_compaction_bytes = n(),
        "settled_compaction" => options.settled_compaction = flag(value),
        "settle_checks_grandparents" => leveled.settle_checks_grandparents = flag(value),
        "compaction_candidates_max" => leveled.compaction_candidates_max = small(),
        "intra_level0_compaction" => leveled.intra_level0_compaction = flag(value),
        "disable_auto_compactions" => options.disable_auto_compactions = flag(value),
        "path_bytes" => options.path_bytes = value.split(',').map(number).collect(),
        "compression" => {
            options.compression =
                value.split(',').map(|code| CompressionCode(code.parse().unwrap())).collect();
        }
        "compaction_priority" => {
            leveled.compaction_priority = named(CompactionPriority::NAMES, value);
        }
        _ => panic!("unknown option {key}"),
    }
}

/// Sets an option of the whole database, by the name that a database's option has. `barrier` is
/// what is believed of the device at first.
pub(crate) fn set_control(options: &mut ControlOptions, key: &str, value: &str) {
    let n = || number(value);
    let some = || (value != "none").then(|| number(value));
    let (scheduler, limiter) = (&mut options.scheduler, &mut options.rate_limiter);
    let tuner = &mut options.tuner;
    match key {
        "max_background_flushes" => options.max_background_flushes = n() as usize,
        "max_background_compactions" => options.max_background_compactions = n() as usize,
        "atomic_flush" => options.atomic_flush = flag(value),
        "parallel_only_under_pressure" => options.parallel_only_under_pressure = flag(value),
        "scheduler_priority" => scheduler.priority = flag(value),
        "slice_bytes_max" => options.slice_bytes_max = n(),
        "rate_limit_bytes_per_second" => limiter.bytes_per_second = some(),
        "rate_limit_fairness" => limiter.fairness = n() as u32,
        "rate_limit_auto_tune" => limiter.auto_tune = flag(value),
        "rate_limit_mode" => limiter.mode = named(RateLimitMode::NAMES, value),
        "rate_limit_refill_period" => limiter.refill_period = duration(value),
        "preemption" => scheduler.preemption = named(Preemption::NAMES, value),
        "preempt_discard" => scheduler.preempt_discard = flag(value),
        "debt_floor" => scheduler.debt_floor = flag(value),
        "scheduler_bandwidth" => scheduler.bandwidth = flag(value),
        "device_bandwidth" => scheduler.device_bandwidth = some(),
        "scheduler_floor" => scheduler.floor = some(),
        "scheduler_change_threshold" => scheduler.change_threshold = some(),
        "scheduler_peak_forecast" => scheduler.peak_forecast = flag(value),
        "scheduler_slot_bandwidth" => scheduler.slot_bandwidth = n(),
        "scheduler_drain_time" => scheduler.drain_time = duration(value),
        "barrier" => scheduler.hint.barrier_ns = duration(value).as_nanos() as u64,
        "write_controller" => options.write_controller = named(WriteController::NAMES, value),
        "tuner" => tuner.kind = named(Tuner::NAMES, value),
        "tuner_batch" => tuner.batch = named(TunerBatch::NAMES, value),
        "tuner_threshold" => tuner.threshold = value.parse().unwrap(),
        "tuner_interval" => tuner.interval = duration(value),
        "tuner_hold_time" => tuner.hold_time = duration(value),
        "tuner_slots_max" => tuner.slots_max = n() as usize,
        "tuner_memtable_bytes_max" => tuner.memtable_bytes_max = n(),
        "tuner_debt_time" => tuner.debt_time = duration(value),
        "tuner_debt_bytes" => tuner.debt_bytes = some(),
        "delayed_write_bytes_per_second" => options.delayed_write_bytes_per_second = n(),
        "retry_delay" => options.retry_delay = duration(value),
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
        values: Default::default(),
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
