//! Several WALs: what is replayed after a crash is one prefix, and damage is told from loss.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use sateen_control::version::DurableLog;
use sateen_control::{LogNumber, SeqNo};

use super::super::{ChainEnd, WalChain, WalPosition, WalSync};
use super::*;
use crate::base::sync::atomic::Ordering;
use crate::vfs::{OpenOptions, Vfs};

/// Replays the WALs of `vfs` from `first_needed` on. Returns the sequence numbers and the end.
fn replay(vfs: &TestVfs, first_needed: u64) -> Result<(Vec<u64>, ChainEnd)> {
    replay_durable(vfs, first_needed, None)
}

/// The same, if it is known how far they were durable.
fn replay_durable(
    vfs: &TestVfs,
    first_needed: u64,
    durable: Option<DurableLog>,
) -> Result<(Vec<u64>, ChainEnd)> {
    let names = vfs.list(Path::new(DIRECTORY)).unwrap();
    let numbers = names.iter().filter_map(|name| name.to_str()?.strip_suffix(".wal")?.parse().ok());
    let mut chain = WalChain::open(
        Arc::new(vfs.clone()),
        Path::new(DIRECTORY),
        numbers.map(LogNumber),
        UID,
        LogNumber(first_needed),
        durable,
    )?;
    let mut seqnos = Vec::new();
    while let Some(record) = chain.next()? {
        assert_eq!(record.payload, format!("entry {}", record.first_seqno.0).as_bytes());
        seqnos.push(record.first_seqno.0);
    }
    Ok((seqnos, chain.into_end()))
}

fn follow(vfs: &TestVfs, number: u64, previous: WalEnd) -> WalWriter {
    let mut writer = create(vfs, number);
    writer.follow(previous).unwrap();
    writer
}

/// Writes three WALs of three groups each, with sequence numbers 1 to 9. `synced` says which are
/// synced.
fn three_logs(vfs: &TestVfs, synced: [bool; 3]) -> Vec<Arc<WalSync>> {
    let mut previous = None;
    let mut syncs = Vec::new();
    for number in 1..=3 {
        let mut writer = create(vfs, number);
        follow_or_begin(&mut writer, previous);
        for seqno in number * 3 - 2..=number * 3 {
            append(&mut writer, seqno);
            if synced[usize::try_from(number - 1).unwrap()] && seqno % 3 == 2 {
                writer.sync_handle().sync().unwrap();
            }
        }
        syncs.push(writer.sync_handle());
        previous = Some(writer.finish());
    }
    syncs
}

fn cut(vfs: &TestVfs, number: u64, bytes: usize) {
    let mut content = vfs.bytes(&path(number));
    content.truncate(content.len() - bytes);
    vfs.replace(&path(number), &content);
}

#[test]
fn whole_wals_are_replayed_in_order() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [false; 3]);
    let (seqnos, end) = replay(&vfs, 0).unwrap();
    assert_eq!(seqnos, (1..=9).collect::<Vec<_>>());
    assert_eq!(end.position.unwrap().next_seqno, SeqNo(10));
    assert_eq!(end.replayed, [1, 2, 3].map(LogNumber));
    assert_eq!((end.tail, end.dropped), (Tail::Clean, vec![]));
    assert_eq!(replay(&vfs, 2).unwrap().0, (4..=9).collect::<Vec<_>>(), "from the second");
}

#[test]
fn wals_behind_a_lost_unsynced_tail_are_dropped_too() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [true, false, false]);
    cut(&vfs, 2, 3);
    let (seqnos, end) = replay(&vfs, 0).unwrap();
    assert_eq!(seqnos, [1, 2, 3, 4, 5]);
    assert_eq!(end.dropped, [LogNumber(3)]);
    assert!(matches!(end.tail, Tail::Torn { .. }));
    assert_eq!(end.position.unwrap().number, LogNumber(2));
}

#[test]
fn a_lost_tail_that_a_later_sync_covered_is_corruption() {
    let vfs = TestVfs::default();
    // A sync of the third also syncs the ones before it.
    three_logs(&vfs, [false, false, true]);
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 3);
    cut(&vfs, 1, 3);
    let error = replay(&vfs, 0).unwrap_err();
    assert!(error.is_corruption(), "{error}");
    assert!(error.to_string().contains("000001.wal"), "{error}");
}

#[test]
fn a_link_that_knows_of_a_sync_makes_the_loss_corruption() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    append(&mut writer, 2);
    writer.sync_handle().sync().unwrap();
    let mut writer = follow(&vfs, 2, writer.finish());
    append(&mut writer, 3);
    cut(&vfs, 1, 3);
    assert!(replay(&vfs, 0).unwrap_err().is_corruption());
}

#[test]
fn a_loss_before_where_the_logs_are_known_to_be_durable_is_corruption() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [false; 3]);
    let bytes = vfs.bytes(&path(2)).len() as u64;
    let durable = |bytes| Some(DurableLog { log: LogNumber(2), bytes });
    assert_eq!(replay_durable(&vfs, 0, durable(bytes)).unwrap().0.len(), 9);
    cut(&vfs, 2, 3);
    let error = replay_durable(&vfs, 0, durable(bytes)).unwrap_err();
    assert!(error.to_string().contains("000002.wal: corruption"), "{error}");
    assert_eq!(replay_durable(&vfs, 0, durable(bytes / 2)).unwrap().0, [1, 2, 3, 4, 5]);
    assert_eq!(replay_durable(&vfs, 3, durable(bytes)).unwrap().0, [7, 8, 9], "not needed");

    // The WAL before it was durable, too, all of it.
    let vfs = TestVfs::default();
    three_logs(&vfs, [false; 3]);
    cut(&vfs, 1, 3);
    let error = replay_durable(&vfs, 0, durable(bytes)).unwrap_err();
    assert!(error.to_string().contains("000001.wal: corruption"), "{error}");

    let vfs = TestVfs::default();
    three_logs(&vfs, [false; 3]);
    vfs.inner_remove(&path(2));
    let error = replay_durable(&vfs, 0, durable(bytes)).unwrap_err();
    assert!(error.to_string().contains("000002.wal: corruption"), "{error}");
}

#[test]
fn a_missing_log_is_loss_or_corruption_by_the_same_proof() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [false; 3]);
    vfs.inner_remove(&path(2));
    let (seqnos, end) = replay(&vfs, 0).unwrap();
    assert_eq!((seqnos, end.dropped), (vec![1, 2, 3], vec![LogNumber(3)]));

    let vfs = TestVfs::default();
    three_logs(&vfs, [false, true, false]);
    vfs.inner_remove(&path(2));
    let error = replay(&vfs, 0).unwrap_err();
    assert!(error.to_string().contains("000002.wal: corruption"), "{error}");
    assert!(error.to_string().contains("missing file"), "{error}");
}

#[test]
fn a_log_that_lost_its_first_page_drops_what_follows_and_nothing_before() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [true, false, false]);
    let mut bytes = vfs.bytes(&path(2));
    bytes[..100].fill(0);
    vfs.replace(&path(2), &bytes);
    let (seqnos, end) = replay(&vfs, 0).unwrap();
    assert_eq!((seqnos, end.dropped), (vec![1, 2, 3], vec![LogNumber(2), LogNumber(3)]));
}

#[test]
fn a_header_synced_before_use_proves_nothing_about_the_wal_before() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    append(&mut writer, 2);
    let mut next = create(&vfs, 2);
    next.sync_handle().sync().unwrap();
    next.follow(writer.finish()).unwrap();
    append(&mut next, 3);
    append(&mut next, 4);
    cut(&vfs, 1, 3);
    assert_eq!(replay(&vfs, 0).unwrap().0, [1]);
}

#[test]
fn a_log_that_was_never_used_is_skipped() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    let writer = follow(&vfs, 2, writer.finish());
    let mut writer = follow(&vfs, 3, writer.finish());
    append(&mut writer, 2);
    writer.sync_handle().sync().unwrap();
    let (seqnos, end) = replay(&vfs, 0).unwrap();
    assert_eq!((seqnos, end.dropped), (vec![1, 2], vec![LogNumber(2)]));
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 2, "the first and the third");
    // The third must go if what it follows is lost.
    cut(&vfs, 1, 3);
    append(&mut writer, 3);
    assert!(replay(&vfs, 0).unwrap_err().is_corruption());
}

#[test]
fn after_a_recovery_the_new_log_follows_what_was_replayed_and_dropped_logs_stay_dropped() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [true, false, false]);
    cut(&vfs, 2, 3);
    let (_, end) = replay(&vfs, 0).unwrap();
    let end = end.make_durable(&vfs, Path::new(DIRECTORY)).unwrap();
    let mut writer = follow(&vfs, 4, end);
    append(&mut writer, 6);
    writer.sync_handle().sync().unwrap();
    append(&mut writer, 7);
    let (seqnos, end) = replay(&vfs, 0).unwrap();
    assert_eq!(seqnos, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(end.dropped, [LogNumber(3)]);
}

#[test]
fn logs_that_are_in_tables_need_not_be_there_nor_synced() {
    let vfs = TestVfs::default();
    let syncs = three_logs(&vfs, [false; 3]);
    vfs.switches.fail_syncs.store(true, Ordering::SeqCst);
    assert!(syncs[1].sync().is_err());
    vfs.switches.fail_syncs.store(false, Ordering::SeqCst);
    assert!(syncs[2].sync().is_err(), "a log before it is dead");
    syncs[1].retire();
    assert!(syncs[2].sync().is_ok(), "what is in tables is durable");
    vfs.inner_remove(&path(1));
    vfs.inner_remove(&path(2));
    assert_eq!(replay(&vfs, 3).unwrap().0, [7, 8, 9]);
}

#[test]
fn a_log_that_starts_anew_while_older_ones_are_needed_is_an_error() {
    let vfs = TestVfs::default();
    append(&mut create_first(&vfs, 1), 1);
    append(&mut create_first(&vfs, 2), 2);
    assert!(replay(&vfs, 0).unwrap_err().is_corruption());
    assert_eq!(replay(&vfs, 2).unwrap().0, [2]);
}

#[test]
fn a_log_that_continues_another_content_is_an_error() {
    let vfs = TestVfs::default();
    let mut writer = create_first(&vfs, 1);
    append(&mut writer, 1);
    let end = writer.finish();
    let position = WalPosition { chain: 77, ..end.position.unwrap() };
    let mut writer = follow(&vfs, 2, WalEnd { position: Some(position), ..end });
    append(&mut writer, 2);
    let error = replay(&vfs, 0).unwrap_err();
    assert!(error.to_string().contains("does not continue"), "{error}");
}

/// One step in the life of a database's WALs.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append,
    Sync,
    Switch,
    Mark,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Append),
        1 => Just(Step::Sync),
        1 => Just(Step::Switch),
        1 => Just(Step::Mark),
    ];
    prop::collection::vec(step, 1..40)
}

/// Lives through `steps`. Returns for each WAL how much of it is durable, and the newest durable
/// sequence number.
fn live(
    vfs: &TestVfs,
    steps: &[Step],
    first: u64,
    start: Option<WalEnd>,
) -> (Vec<(u64, u64)>, u64) {
    let mut seqno =
        start.as_ref().and_then(|end| end.position).map_or(1, |p| p.next_seqno.0.max(1));
    let (mut number, mut acknowledged) = (first, seqno - 1);
    let mut writer = create(vfs, number);
    follow_or_begin(&mut writer, start);
    let mut syncs = vec![(number, writer.sync_handle())];
    for step in steps {
        match step {
            Step::Append => {
                append(&mut writer, seqno);
                seqno += 1;
            }
            Step::Sync => {
                writer.sync_handle().sync().unwrap();
                // An empty WAL acknowledges nothing of the one before it.
                if !writer.is_empty() {
                    acknowledged = seqno - 1;
                }
            }
            Step::Mark => {
                writer.append_mark().unwrap();
            }
            Step::Switch => {
                number += 1;
                writer = follow(vfs, number, writer.finish());
                syncs.push((number, writer.sync_handle()));
            }
        }
    }
    (syncs.into_iter().map(|(number, sync)| (number, sync.synced_offset())).collect(), acknowledged)
}

/// Power fails: `random` decides for each sector of each file that is not durable whether it
/// survives, is zero, or was never written.
fn lose_power(vfs: &TestVfs, durable: &[(u64, u64)], random: &mut TestRng) {
    for (number, synced) in durable {
        let mut bytes = vfs.bytes(&path(*number));
        let synced = usize::try_from(*synced).unwrap();
        let sector = [16, 64, 512][random.random_range(0..3)];
        if random.random_bool(0.5) {
            let end = random.random_range(synced..=bytes.len());
            bytes.truncate(end);
        }
        let survive = random.random_range(0.0..=1.0);
        let unsynced = bytes.get_mut(synced..).unwrap();
        for piece in unsynced.chunks_mut(sector) {
            if !random.random_bool(survive) {
                piece.fill(if random.random_bool(0.8) { 0 } else { 0xa5 });
            }
        }
        vfs.replace(&path(*number), &bytes);
        if synced == 0 && random.random_bool(0.2) {
            vfs.inner_remove(&path(*number));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn after_any_power_loss_replay_is_a_prefix_with_all_that_was_acknowledged(
        first_life in steps(),
        second_life in steps(),
        mut random in any::<u64>().prop_perturb(|_, random| random),
    ) {
        let vfs = TestVfs::default();
        let (durable, acknowledged) = live(&vfs, &first_life, 1, None);
        lose_power(&vfs, &durable, &mut random);
        let (seqnos, end) = replay(&vfs, 0).unwrap();
        let recovered = seqnos.last().copied().unwrap_or(0);
        prop_assert!(recovered >= acknowledged, "{recovered} of {acknowledged}");
        prop_assert_eq!(seqnos, (1..=recovered).collect::<Vec<_>>());

        // The next life continues where this one ended, with the dropped WALs still there.
        let start = end.make_durable(&vfs, Path::new(DIRECTORY)).unwrap();
        let (durable, acknowledged) = live(&vfs, &second_life, 100, Some(start));
        lose_power(&vfs, &durable, &mut random);
        let (seqnos, _) = replay(&vfs, 0).unwrap();
        let again = seqnos.last().copied().unwrap_or(0);
        prop_assert!(again >= acknowledged && again >= recovered);
        prop_assert_eq!(seqnos, (1..=again).collect::<Vec<_>>());
    }

    #[test]
    fn damage_of_what_is_durable_is_never_a_wrong_record(
        life in steps(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let vfs = TestVfs::default();
        let (durable, _) = live(&vfs, &life, 1, None);
        let whole = replay(&vfs, 0).unwrap().0;
        let (number, synced) = durable[at.index(durable.len())];
        let mut bytes = vfs.bytes(&path(number));
        let byte = at.index(bytes.len());
        bytes[byte] ^= 1 << bit;
        vfs.replace(&path(number), &bytes);
        match replay(&vfs, 0) {
            Ok((seqnos, _)) => prop_assert!(whole.starts_with(&seqnos)),
            Err(error) => prop_assert!(error.is_corruption() && synced > 0, "{}", error),
        }
    }
}

#[test]
fn replayed_logs_are_synced_before_they_are_built_upon() {
    let vfs = TestVfs::default();
    three_logs(&vfs, [false; 3]);
    let (_, end) = replay(&vfs, 0).unwrap();
    let end = end.make_durable(&vfs, Path::new(DIRECTORY)).unwrap();
    assert_eq!(vfs.switches.syncs.load(Ordering::SeqCst), 3);
    let writer = follow(&vfs, 9, end);
    assert!(writer.is_empty() && writer.number() == LogNumber(9));
    assert!(vfs.open(&path(9), OpenOptions::READ).is_ok());
}
