//! Tests of the stored bytes of times.

use super::*;

#[test]
fn times_are_stored_as_rocksdb_does() {
    let clock = WallClock::new(|| 0x6655_4433);
    assert_eq!(timed(b"value", &clock).unwrap(), b"value\x33\x44\x55\x66");
    assert_eq!(split(b"value\x33\x44\x55\x66"), Some((&b"value"[..], [0x33, 0x44, 0x55, 0x66])));
    assert_eq!(split(b"\x33\x44\x55\x66"), Some((&b""[..], [0x33, 0x44, 0x55, 0x66])));
    assert_eq!(split(b"\x44\x55\x66"), None);
    assert_eq!(split(b"1368"), None, "before there were any");
    assert!(check(b"").unwrap_err().is_corruption());
}

#[test]
fn the_systems_clock_tells_a_time_that_can_be() {
    let stored = timed(b"", &WallClock::default()).unwrap();
    assert!(check(&stored).is_ok());
}

#[test]
fn a_ttl_of_nothing_is_for_ever() {
    let mut options = ColumnFamilyOptions { ttl: Some(Duration::ZERO), ..Default::default() };
    let clock = WallClock::new(|| u64::MAX);
    assert_eq!(options.stored_filtering(&clock), None);
    options.compaction_filter = Some(Filtering::by("none", |_, _, value| {
        assert_eq!(value, b"value");
        Decision::Change(b"other".to_vec())
    }));
    let context = CompactionFilterContext {
        is_full_compaction: true,
        is_manual_compaction: true,
        column_family: ColumnFamilyId(0),
        output_level: 1,
    };
    let mut filter = options.stored_filtering(&clock).unwrap().create(&context).unwrap();
    let stored = timed(b"value", &WallClock::new(|| 0x6655_4433)).unwrap();
    let changed = Decision::Change(b"other\x33\x44\x55\x66".to_vec());
    assert_eq!(filter.filter(0, b"key", &stored), changed);
    assert_eq!(filter.filter(0, b"key", b"old"), Decision::Keep);
}
