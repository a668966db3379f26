//! What must hold of options as text.

mod page;

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use sateen_control::JobSlots;
use sateen_control::options::{TunerBatch, TunerOptions};
use sateen_store::table::Compression;

use super::text::{Bytes, Span, Unit};
use super::*;

fn message(result: Result<impl std::fmt::Debug>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_get_prints_set_takes_back_unchanged_in_every_profile() {
    for profile in Options::profiles() {
        let options = Options::profile(profile).unwrap();
        let mut copy = options.clone();
        for name in Options::names().filter(|name| *name != "profile") {
            copy.set(name, &options.get(name).unwrap()).unwrap();
        }
        assert_eq!(copy, options);
        assert_eq!(Options::from_str_list(&options.to_text()).unwrap(), options, "{profile}");
    }
}

#[test]
fn every_profile_is_valid_and_remembers_its_name() {
    for profile in Options::profiles() {
        let options = Options::profile(profile).unwrap();
        options.validate().unwrap();
        assert_eq!(options.profile, *profile);
    }
    assert_eq!(Options::profile("sateen").unwrap(), Options::default());
}

#[test]
fn what_adoc_adjusts_and_how_far_is_what_the_profile_says() {
    let told = |profile: &str, changes: &str| {
        let mut options = Options::profile(profile).unwrap();
        options.apply_str_list(changes).unwrap();
        options.validate().unwrap();
        control::database(&options)
    };
    let as_paper = told("adoc", "tuner_slots_max=16");
    let paper = TunerOptions {
        kind: Tuner::Adoc,
        batch: TunerBatch::Paper,
        slots_max: 16,
        debt_bytes: Some(64 * GIB),
        ..TunerOptions::default()
    };
    assert_eq!(as_paper.tuner, paper);
    assert_eq!(as_paper.slots(), JobSlots { flushes: 1, compactions: 1 });
    for (profile, slots, memtables) in
        [("adoc-threads", true, false), ("adoc-batch", false, true), ("rocksdb", false, false)]
    {
        let kind = told(profile, "").tuner.kind;
        let adjusts = (kind.adjusts_slots(), kind.adjusts_memtables());
        assert_eq!(adjusts, (slots, memtables), "{profile}");
    }
    assert_eq!(told("sateen", "").tuner.kind, Tuner::Off, "not by default");
    assert_eq!(told("sateen", "").tuner.batch, TunerBatch::Memtable, "tables stay small");
    assert!(told("adoc", "").tuner.slots_max >= 2, "from the machine");

    // Three memtables in half of the budget; as many in each region.
    let of_budget = |list| told("adoc", list).tuner.memtable_bytes_max;
    assert_eq!(of_budget("memory_budget=none"), 512 * MIB);
    assert_eq!(of_budget("memory_budget=600MiB"), 100 * MIB);
    assert_eq!(of_budget("memory_budget=8GiB;tuner_memtable_bytes_max=1GiB"), GIB);
    assert_eq!(of_budget("memory_budget=1200MiB;regions=2"), 100 * MIB);
}

/// An option that control has is told to it, under its name or derived as it says.
#[test]
fn each_option_of_background_work_reaches_control() {
    let changed = "max_background_flushes=3;max_background_compactions=5;slice_bytes_max=64KiB;\
        retry_delay=3s;rate_limit_bytes_per_second=1MiB;rate_limit_auto_tune=true;\
        rate_limit_mode=all-io;rate_limit_refill_period=7ms;rate_limit_fairness=3;\
        scheduler_bandwidth=false;scheduler_priority=false;preemption=random;preempt_discard=true;\
        device_bandwidth=2MiB;scheduler_floor=3;scheduler_change_threshold=4;\
        scheduler_drain_time=5s;scheduler_slot_bandwidth=6;scheduler_headroom=6;\
        debt_floor=false;tuner=adoc;tuner_interval=7s;tuner_hold_time=8s;tuner_slots_max=9;\
        tuner_memtable_bytes_max=10;tuner_debt_time=11s;tuner_debt_bytes=12;\
        write_controller=triggers;delayed_write_bytes_per_second=13;scrub_rate=14;\
        scrub_interval_seconds=15;atomic_flush=true;memtable_bytes=16;memtables_max=17;\
        memtables_to_flush_min=16;\
        level0_trigger=2;level0_slowdown=18;level0_stop=19;levels=3;level_base_bytes=20;\
        level_multiplier=3;base_level_multiplier=21;dynamic_level_bytes=false;table_bytes=22;\
        flush_table_bytes=23;level0_stripe_bytes=24;cut_tables_at_gaps=false;table_multiplier=2;\
        compaction_bytes_max=25;grandparent_bytes_max=26;align_tables=false;\
        intra_level0_compaction=false;compaction_priority=oldest-smallest-seq-first;\
        compaction_candidates_max=27;soft_pending_compaction_bytes=28;space_amplification_max=2;\
        hard_pending_compaction_bytes=29;group_compaction_bytes=30;settled_compaction=false;\
        settle_checks_grandparents=false;seek_compaction_bytes=35;level0_overlap_min=0.5;\
        level0_overlap_runs_max=5;level0_fifo=true;level0_fifo_runs_max=3;\
        overlap_aware_tables=true;disable_auto_compactions=true;compression=zstd;\
        compaction_style=guards;guard_runs=4;tiered_size_ratio=31;tiered_merge_width_min=3;\
        tiered_merge_width_max=32;tiered_size_amplification_max=33;\
        tiered_stop_style=similar-size;tiered_trivial_move=true;fifo_bytes_max=34;\
        fifo_compaction=true;read_aware_compaction=true;\
        scheduler_peak_forecast=true";
    let told = |options: &Options| {
        let family = control::column_family(options, &options.column_family);
        (control::database(options), family)
    };
    let before = told(&Options::default());
    for entry in changed.split(';').map(str::trim) {
        let mut options = Options::default();
        options.apply_str_list(entry).unwrap();
        assert_ne!(options, Options::default(), "{entry}");
        assert!(told(&options) != before, "control is not told of {entry}");
    }
    let all = Options::from_str_list(changed).unwrap();
    let (database, family) = told(&all);
    let limiter = &database.rate_limiter;
    assert_eq!((limiter.mode, limiter.fairness), (RateLimitMode::AllIo, 3));
    assert_eq!(limiter.refill_period, Duration::from_millis(7));
    assert_eq!(database.retry_delay, Duration::from_secs(3));
    let leveled = &family.leveled;
    assert_eq!(leveled.compaction_priority, CompactionPriority::OldestSmallestSeqFirst);
    assert_eq!(leveled.compaction_candidates_max, 27);
}

#[test]
fn there_are_threads_for_all_slots_that_a_tuner_may_make() {
    let threads = |list: &str| control::threads(&Options::from_str_list(list).unwrap());
    assert_eq!(threads("profile=adoc;tuner_slots_max=7"), 7);
    assert_eq!(threads("profile=adoc;tuner_slots_max=1"), 2);
    assert_eq!(threads("profile=adoc-batch;tuner_slots_max=7"), 2);
    assert_eq!(threads("profile=adoc;tuner_slots_max=7;background_threads=0"), 0, "the caller's");
}

#[test]
fn an_unknown_profile_is_refused_with_those_there_are() {
    let text = message(Options::profile("rocksdbb"));
    assert!(text.contains("unknown profile \"rocksdbb\""), "{text}");
}

#[test]
fn names_are_unique_and_rocksdb_names_are_aliases() {
    let mut seen = BTreeSet::new();
    for info in Options::all() {
        assert!(seen.insert(info.name), "{} twice", info.name);
        assert!(!info.description.trim().is_empty());
        if let Some(alias) = info.rocksdb.filter(|alias| *alias != info.name) {
            assert!(seen.insert(alias), "{alias} twice");
        }
    }
    let mut options = Options::default();
    options.set("write_buffer_size", "1MB").unwrap();
    options.set("max_total_wal_size", "3MB").unwrap();
    assert_eq!(options.column_family.memtable_bytes, 1 << 20);
    assert_eq!(options.get("max_total_wal_bytes").unwrap(), "3MiB");
}

#[test]
fn an_unknown_name_is_named_with_the_nearest_known_one() {
    let text = message(Options::default().set("memtable_byte", "1"));
    assert_eq!(
        text,
        "invalid argument: unknown option \"memtable_byte\"; the nearest is \"memtable_bytes\""
    );
    let text = message(Options::default().set("write_bufer_size", "1"));
    assert!(text.contains("\"write_buffer_size\""), "{text}");
    let text = message(Options::default().set("nope", "1"));
    assert_eq!(text, "invalid argument: unknown option \"nope\": no option has a name like it");
}

#[test]
fn a_refused_value_is_named_as_it_was_given_with_its_range() {
    let text = message(Options::default().set("write_buffer_size", "abc"));
    assert!(text.contains("option write_buffer_size does not take \"abc\""), "{text}");
    let text = message(Options::default().set("level0_trigger", "99999999999"));
    assert!(text.contains("from 0 to 4294967295"), "{text}");
}

#[test]
fn a_bad_value_is_named_with_its_option_and_what_is_accepted() {
    for (name, value, accepted) in [
        ("block_bytes", "big", "64KiB"),
        ("block_bytes", "-1", "64KiB"),
        ("block_bytes", "ib", "64KiB"),
        ("block_bytes", "", "64KiB"),
        ("memtable_bytes", "99999999999999999999", "64KiB"),
        ("memtable_bytes", "99999999T", "64KiB"),
        ("wal", "interval", "interval:10ms"),
        ("wal", "interval:10", "interval:10ms"),
        ("ttl", "soon", "10ms"),
        ("create_if_missing", "maybe", "true or false"),
        ("levels", "7.5", "a whole number"),
        ("levels", "many", "; 2 to 16"),
        ("compaction_priority", "any", "oldest-smallest-seq-first"),
        ("level_multiplier", "NaN", "2.5"),
        ("compression", "lz4,snappy", "none, lz4 or zstd"),
        ("compression", "", "none, lz4 or zstd"),
        ("wal_dir", "", "a path"),
    ] {
        let text = message(Options::default().set(name, value));
        assert!(text.contains(name) && text.contains(&format!("{value:?}")), "{text}");
        assert!(text.contains(accepted), "{text}");
    }
}

#[test]
fn sizes_durations_and_modes_are_read_as_written() {
    let mut options = Options::default();
    for (text, bytes) in [
        ("4096", 4096),
        ("64MB", 64 << 20),
        ("64MiB", 64 << 20),
        ("64 mib", 64 << 20),
        ("64m", 64 << 20),
        ("1G", 1 << 30),
        ("7b", 7),
    ] {
        options.set("block_cache_bytes", text).unwrap();
        assert_eq!(options.block_cache_bytes, bytes, "{text}");
    }
    options.set("wal", "interval:1500us").unwrap();
    assert_eq!(options.wal, WalMode::SyncInterval(Duration::from_micros(1500)));
    assert_eq!(options.get("wal").unwrap(), "interval:1500us");
    options.set("memory_budget", "1G").unwrap();
    assert_eq!(options.memory_budget, Some(GIB));
    options.set("memory_budget", "none").unwrap();
    assert_eq!(options.memory_budget, None);
    options.set("compression", "none, lz4 ,zstd").unwrap();
    assert_eq!(options.column_family.compression_at(1), Compression::Lz4);
    assert_eq!(options.column_family.compression_at(6), Compression::Zstd);
}

#[test]
fn a_list_sets_all_or_nothing() {
    let mut options = Options::from_str_list("# a remark\nlevels=5; wal = sync ;\n;").unwrap();
    assert_eq!((options.column_family.levels, options.wal), (5, WalMode::SyncEachWrite));
    let before = options.clone();
    assert!(message(options.apply_str_list("levels=6;nonsense=1")).contains("nonsense"));
    assert!(message(options.apply_str_list("levels=6;wal")).contains("\"wal\" has no value"));
    assert_eq!(options, before);
    let leveldb = Options::from_str_list("profile=leveldb;levels=5").unwrap();
    assert_eq!((leveldb.column_family.levels, leveldb.column_family.level0_stop), (5, 12));
}

#[test]
fn only_mutable_options_change_at_run_time_and_only_to_valid_values() {
    let mut options = Options::default();
    let before = options.clone();
    assert!(!Options::is_mutable("levels").unwrap());
    assert!(message(options.set_at_run_time(&[("levels", "5")])).contains("levels"));
    assert!(message(options.set_at_run_time(&[("level0_stop", "1")])).contains("level0_stop 1"));
    assert_eq!(options, before);
    options.set_at_run_time(&[("level0_stop", "100")]).unwrap();
    assert_eq!(options.column_family.level0_stop, 100);
}

#[test]
fn contradictions_are_refused_by_name() {
    for (list, names) in [
        ("error_if_exists=true;create_if_missing=false", "error_if_exists"),
        ("rate_limit_auto_tune=true", "rate_limit_bytes_per_second"),
        ("memory_budget=100MiB", "memory_budget 100MiB"),
        ("memtables_max=1", "memtables_max is 1"),
        ("memtables_to_flush_min=2", "memtables_to_flush_min 2"),
        ("level0_slowdown=3", "level0_slowdown 3"),
        ("compaction_style=tiered;level0_slowdown=4", "level0_slowdown 4 must be above 4"),
        ("tiered_merge_width_max=1", "tiered_merge_width_max is 1"),
        ("tiered_merge_width_min=5;tiered_merge_width_max=4", "tiered_merge_width_max 4"),
        ("soft_pending_compaction_bytes=1T", "soft_pending_compaction_bytes 1TiB"),
        ("levels=1", "levels is 1"),
        ("value_bytes_max=2G", "value_bytes_max is 2GiB"),
        ("slice_bytes_max=1", "slice_bytes_max is 1"),
        ("level_multiplier=1", "level_multiplier is 1"),
        ("wal=interval:0", "wal is interval:0"),
        ("block_bytes=0", "block_bytes is 0"),
        ("tuner_interval=0", "tuner_interval is 0"),
        ("tuner_slots_max=2000", "tuner_slots_max is 2000"),
        ("tuner_debt_bytes=0", "tuner_debt_bytes is 0"),
        ("ttl=1500ms", "ttl is 1500ms: it must be a number of whole seconds"),
        ("compaction_candidates_max=0", "compaction_candidates_max is 0: it must be at least 1"),
        (
            "rate_limit_refill_period=1us",
            "rate_limit_refill_period is 1us: it must be at least 1ms",
        ),
        ("guard_runs=1", "guard_runs is 1: it must be at least 2"),
        ("device_bandwidth=1", "device_bandwidth is 1: it must be at least 1MiB"),
        ("base_level_multiplier=4", "base_level_multiplier 4 must be 0 or not below"),
    ] {
        let text = message(Options::from_str_list(list).unwrap().validate());
        assert!(text.contains(names), "{list}: {text}");
    }
}

proptest! {
    #[test]
    fn sizes_and_durations_survive_text(bytes: u64, nanos: u64) {
        prop_assert_eq!(Bytes::read(&<Bytes as Unit<u64>>::print(&bytes)), Some(bytes));
        let span = Duration::from_nanos(nanos);
        prop_assert_eq!(Span::read(&<Span as Unit<Duration>>::print(&span)), Some(span));
    }

    #[test]
    fn no_text_makes_set_panic(name in "[a-z_]{0,12}", value in ".{0,24}") {
        let mut options = Options::default();
        prop_assert!(options.set(&name, &value).is_err() || Options::info(&name).is_ok());
        for known in Options::names() {
            // Taken or refused: what was taken must print and read back.
            if options.set(known, &value).is_ok() {
                let printed = options.get(known).unwrap();
                let mut again = options.clone();
                again.set(known, &printed).unwrap();
            }
        }
    }
}
