//! What must hold of options as text.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sateen_control::JobSlots;
use sateen_control::options::TunerOptions;

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
    assert!(told("adoc", "").tuner.slots_max >= 2, "from the machine");

    // Three memtables in half of the budget; as many in each region.
    let of_budget = |list| told("adoc", list).tuner.memtable_bytes_max;
    assert_eq!(of_budget("memory_budget=none"), 512 * MIB);
    assert_eq!(of_budget("memory_budget=600MiB"), 100 * MIB);
    assert_eq!(of_budget("memory_budget=8GiB;tuner_memtable_bytes_max=1GiB"), GIB);
    assert_eq!(of_budget("memory_budget=1200MiB;regions=2"), 100 * MIB);
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
    options.set("memtable_bytes", "1MB").unwrap();
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
    assert!(text.contains("\"memtable_bytes\""), "{text}");
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
        ("tiered_merge_width_max=1", "tiered_merge_width_max 1"),
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
        ("ttl=1500ms", "ttl is 1500ms"),
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
