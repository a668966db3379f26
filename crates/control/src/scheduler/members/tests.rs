//! Databases on one device: shares, ceilings, order, slots.

use super::*;
use crate::options::{ControlOptions, Preemption, RateLimiterOptions, SchedulerOptions};
use crate::types::IoClass;

const SECOND: u64 = NS_PER_SECOND;
const MB: u64 = 1_000_000;

/// Two databases on a device that moves 100 MB/s in the background.
fn two() -> IoScheduler {
    let rate_limiter = RateLimiterOptions {
        bytes_per_second: Some(100 * MB),
        refill_period: std::time::Duration::from_millis(10),
        fairness: 0,
        ..RateLimiterOptions::default()
    };
    let slice_bytes_max = 256 << 10;
    let scheduler = SchedulerOptions { priority: true, ..SchedulerOptions::default() };
    let options = ControlOptions::default();
    let options = ControlOptions { rate_limiter, scheduler, slice_bytes_max, ..options };
    let mut scheduler = IoScheduler::new(&options);
    scheduler.join(DatabaseId(1));
    scheduler
}

/// Two databases that get what clients leave of a device with that bandwidth.
fn two_beside_clients(device: u64) -> IoScheduler {
    let options = SchedulerOptions { bandwidth: true, ..SchedulerOptions::default() };
    let options = SchedulerOptions { device_bandwidth: Some(device), ..options };
    let options = ControlOptions { scheduler: options, ..ControlOptions::default() };
    let mut scheduler = IoScheduler::new(&options);
    scheduler.join(DatabaseId(1));
    scheduler
}

fn add(scheduler: &mut IoScheduler, database: u32, job: u64, class: IoClass) {
    scheduler.asks(DatabaseId(database));
    scheduler.add(JobId(job), class, 1.0);
}

/// Polls both databases from `from` to `to` seconds. Returns what each has moved.
fn run(scheduler: &mut IoScheduler, from: u64, to: u64) -> [u64; 2] {
    let mut moved = [0; 2];
    let mut now = from * SECOND;
    while now < to * SECOND {
        let mut worked = true;
        while std::mem::take(&mut worked) {
            for database in 0..2_u32 {
                scheduler.asks(DatabaseId(database));
                if let Some((job, bytes)) = scheduler.grant(Instant(now)) {
                    scheduler.stepped(job, 0, bytes, 0);
                    moved[database as usize] += bytes;
                    worked = true;
                }
            }
        }
        now += 1_000_000;
    }
    moved
}

#[test]
fn databases_get_the_device_by_weight_however_many_jobs_they_have() {
    let mut scheduler = two();
    for job in 1..=4 {
        add(&mut scheduler, 0, job, IoClass::Deep(1));
    }
    add(&mut scheduler, 1, 5, IoClass::Deep(1));
    let moved = run(&mut scheduler, 1, 11);
    assert!(moved[0].abs_diff(moved[1]) < 2 * MB, "{moved:?}");
    scheduler.asks(DatabaseId(1));
    scheduler.set_share(300, None);
    let moved = run(&mut scheduler, 11, 21);
    assert!(moved[1].abs_diff(3 * moved[0]) < 8 * MB, "{moved:?}");
}

#[test]
fn a_ceiling_holds_a_database_and_leaves_the_rest_to_the_other() {
    let mut scheduler = two();
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    scheduler.set_share(100, Some(10 * MB));
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    let moved = run(&mut scheduler, 1, 11);
    assert!(moved[0] <= 102 * MB && moved[0] > 95 * MB, "{moved:?}");
    assert!(moved[1] > 880 * MB, "{moved:?}");
    // Alone it still keeps to it.
    scheduler.leave(DatabaseId(1));
    let moved = run(&mut scheduler, 11, 21);
    assert!(moved[0] <= 102 * MB && moved[0] > 95 * MB, "{moved:?}");
    scheduler.asks(DatabaseId(0));
    assert!(scheduler.next_grant_at().is_some(), "it is polled again");
}

#[test]
fn a_ceiling_counts_from_when_it_is_set_to_when_it_is_lifted() {
    let mut scheduler = two();
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    let moved = run(&mut scheduler, 1, 11);
    assert!(moved[0] > 990 * MB, "{moved:?}");
    scheduler.asks(DatabaseId(0));
    scheduler.set_share(100, Some(10 * MB));
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    let moved = run(&mut scheduler, 11, 21);
    assert!(moved[0] <= 102 * MB && moved[0] > 95 * MB, "{moved:?}");
    scheduler.asks(DatabaseId(0));
    scheduler.set_share(100, None);
    let moved = run(&mut scheduler, 21, 31);
    assert!(moved[0].abs_diff(moved[1]) < 2 * MB, "it is not owed what was held: {moved:?}");
}

#[test]
fn a_database_that_could_do_nothing_earns_nothing() {
    let mut scheduler = two();
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    scheduler.options.preemption = Preemption::LeastLoss;
    for (from, what) in [(1, "paused"), (40, "away"), (80, "preempted")] {
        scheduler.asks(DatabaseId(1));
        match what {
            "paused" => scheduler.set_paused(true),
            "away" => scheduler.set_away(JobId(2), true),
            _ => scheduler.preempt(JobId(9), true),
        }
        let moved = run(&mut scheduler, from, from + 20);
        assert!(moved[0] > 1980 * MB && moved[1] == 0, "{what}: {moved:?}");
        scheduler.asks(DatabaseId(1));
        match what {
            "paused" => scheduler.set_paused(false),
            "away" => scheduler.set_away(JobId(2), false),
            _ => assert!(scheduler.resume()),
        }
        let moved = run(&mut scheduler, from + 20, from + 30);
        assert!(moved[0].abs_diff(moved[1]) < 2 * MB, "{what}: {moved:?}");
    }
}

#[test]
fn one_that_wants_little_gives_a_newcomer_no_credit() {
    let mut scheduler = two();
    scheduler.join(DatabaseId(2));
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    run(&mut scheduler, 1, 11);
    let moved = |scheduler: &IoScheduler, id| scheduler.members.moved(DatabaseId(id));
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    let before = moved(&scheduler, 1);
    scheduler.members.all.get_mut(&DatabaseId(1)).unwrap().moved = before / 10;
    add(&mut scheduler, 2, 3, IoClass::Deep(1));
    assert_eq!(moved(&scheduler, 2), moved(&scheduler, 0) - CREDIT_BYTES);
}

#[test]
fn a_database_at_rest_writes_nothing() {
    let mut scheduler = two();
    for database in 0..2 {
        scheduler.asks(DatabaseId(database));
        scheduler.set_fill(10 * MB, 1);
        scheduler.set_served(Instant(SECOND), true);
    }
    scheduler.sample(Instant(SECOND), &crate::event::Sample::default());
    assert_eq!(scheduler.written_databases(), (20 * MB, 2));
    // It has no more samples.
    scheduler.asks(DatabaseId(0));
    scheduler.set_served(Instant(3 * SECOND), true);
    scheduler.sample(Instant(3 * SECOND), &crate::event::Sample::default());
    assert_eq!(scheduler.written_databases(), (10 * MB, 1));
}

#[test]
fn rest_earns_nothing() {
    let mut scheduler = two();
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    run(&mut scheduler, 1, 100);
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    let moved = run(&mut scheduler, 100, 110);
    assert!(moved[0].abs_diff(moved[1]) < 2 * MB, "{moved:?}");
}

#[test]
fn work_before_a_rest_of_all_does_not_count() {
    let mut scheduler = two();
    add(&mut scheduler, 0, 1, IoClass::Flush);
    run(&mut scheduler, 1, 10);
    scheduler.remove(JobId(1));
    // Both flush again. The one that has done more before does not wait for the other one's end.
    add(&mut scheduler, 1, 2, IoClass::Flush);
    add(&mut scheduler, 0, 3, IoClass::Flush);
    let moved = run(&mut scheduler, 10, 11);
    assert!(moved[0].abs_diff(moved[1]) < 2 * MB, "{moved:?}");
}

#[test]
fn a_flush_of_one_goes_before_level_0_of_the_other_and_that_before_deep_work() {
    let mut scheduler = two();
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    add(&mut scheduler, 0, 2, IoClass::L0);
    add(&mut scheduler, 1, 3, IoClass::Flush);
    let mut next = |database| {
        scheduler.asks(DatabaseId(database));
        let granted = scheduler.grant(Instant(SECOND)).map(|grant| grant.0);
        (granted, scheduler.take_restless())
    };
    assert_eq!(next(0), (None, BTreeSet::from([DatabaseId(1)])), "the flush is next");
    assert_eq!(next(1).0, Some(JobId(3)));
    assert_eq!(next(1), (None, BTreeSet::from([DatabaseId(0)])));
    assert_eq!(next(0).0, Some(JobId(2)));
    assert_eq!(next(0).0, Some(JobId(1)));
}

#[test]
fn a_paused_database_holds_up_nobody() {
    let mut scheduler = two();
    add(&mut scheduler, 1, 1, IoClass::Flush);
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    scheduler.set_paused(true);
    add(&mut scheduler, 0, 3, IoClass::Deep(1));
    assert_eq!(scheduler.grant(Instant(SECOND)).map(|grant| grant.0), Some(JobId(3)));
    assert_eq!(scheduler.compactions_of_all(false), 1, "and takes no slot");
    scheduler.leave(DatabaseId(1));
    assert_eq!(scheduler.jobs.len(), 1);
}

#[test]
fn level_0_takes_the_slot_of_a_job_that_has_one() {
    for preemption in [Preemption::LeastLoss, Preemption::Random] {
        let mut scheduler = two();
        scheduler.options.preemption = preemption;
        scheduler.asks(DatabaseId(1));
        scheduler.add(JobId(1), IoClass::Deep(1), 0.5);
        scheduler.set_paused(true);
        add(&mut scheduler, 0, 2, IoClass::Deep(1));
        add(&mut scheduler, 0, 3, IoClass::L0);
        scheduler.preempt(JobId(3), false);
        let is_preempted = |scheduler: &IoScheduler, id| scheduler.jobs[&id].is_preempted();
        assert!(is_preempted(&scheduler, JobId(2)), "{preemption:?}");
        assert!(!is_preempted(&scheduler, JobId(1)), "its pause would free no slot");
        // One that has more jobs than slots of its own takes none from another one.
        scheduler.asks(DatabaseId(1));
        scheduler.set_paused(false);
        add(&mut scheduler, 0, 4, IoClass::Deep(1));
        scheduler.preempt(JobId(3), true);
        assert!(is_preempted(&scheduler, JobId(4)) && !is_preempted(&scheduler, JobId(1)));
    }
}

#[test]
fn grants_of_a_paused_database_keep_none_from_another() {
    let mut scheduler = two_beside_clients(100 * MB);
    // Clients are active, so few compactions may step at the same time.
    for at in 1..=20 {
        let sample = crate::event::Sample { user_bytes: MB, ..Default::default() };
        scheduler.sample(Instant(at * 10_000_000), &sample);
    }
    let now = Instant(200_000_000);
    for job in 1..=2 {
        add(&mut scheduler, 1, job, IoClass::L0);
        assert!(scheduler.grant(now).is_some());
    }
    add(&mut scheduler, 0, 3, IoClass::L0);
    assert_eq!(scheduler.grant(now), None, "two steps run");
    assert!(!scheduler.has_room(now));
    scheduler.asks(DatabaseId(1));
    scheduler.set_paused(true);
    scheduler.asks(DatabaseId(0));
    assert_eq!(scheduler.grant(now).map(|grant| grant.0), Some(JobId(3)));
    scheduler.remove(JobId(3));
    assert!(scheduler.has_room(Instant(300_000_000)), "only paused jobs are left");
}

#[test]
fn a_copy_waits_only_for_urgent_work_of_databases_that_are_not_paused() {
    let mut scheduler = two_beside_clients(160 * MB);
    assert_eq!(scheduler.copy_rate(), 0, "without clients there is no limit");
    for at in 1..=20 {
        let sample = crate::event::Sample { user_bytes: MB / 10, ..Default::default() };
        scheduler.sample(Instant(at * 10_000_000), &sample);
    }
    let now = Instant(200_000_000);
    assert_eq!(scheduler.copy_rate(), 16 << 20, "half of what background work gets");
    add(&mut scheduler, 1, 1, IoClass::L0);
    assert!(scheduler.grant(now).is_some());
    assert!(!scheduler.has_room(now) && scheduler.may_copy(now), "level 0 is not late");
    scheduler.asks(DatabaseId(0));
    scheduler.set_writers_wait(true);
    assert!(!scheduler.may_copy(now));
    scheduler.set_demand(Demand::default());
    assert!(!scheduler.may_copy(now), "a new demand does not say that they go on");
    scheduler.set_paused(true);
    scheduler.asks(DatabaseId(1));
    scheduler.set_demand(Demand::default());
    assert!(scheduler.may_copy(now), "writers of a paused database wait for other reasons");
    scheduler.set_demand(Demand { level0_due: 2001, ..Demand::default() });
    assert!(!scheduler.may_copy(now));
}

#[test]
fn the_better_claim_gets_the_slot() {
    let mut scheduler = two();
    let claim = |level0, stall_ns| Claim { level0, stall_ns, score: 1000 };
    scheduler.asks(DatabaseId(1));
    scheduler.set_claim(Some(claim(false, 5)));
    scheduler.asks(DatabaseId(0));
    assert!(!scheduler.may_take_slot(claim(false, 6), false), "the other has less time");
    assert_eq!(scheduler.take_restless(), BTreeSet::from([DatabaseId(1)]));
    assert!(scheduler.may_take_slot(claim(true, 6), false), "level 0 goes first");
    add(&mut scheduler, 0, 1, IoClass::Deep(1));
    assert!(!scheduler.may_take_slot(claim(false, 1), false), "it has a slot already");
    scheduler.set_share(1000, None);
    scheduler.asks(DatabaseId(1));
    add(&mut scheduler, 1, 2, IoClass::Deep(1));
    scheduler.asks(DatabaseId(0));
    assert!(scheduler.may_take_slot(claim(false, 9), false), "by its weight it has less");
    scheduler.asks(DatabaseId(1));
    scheduler.set_claim(None);
    scheduler.asks(DatabaseId(0));
    assert!(scheduler.may_take_slot(claim(false, u64::MAX), false));
}

/// What two databases do for two seconds: what their clients write, in MB a second, whether anybody
/// reads or writes the second one, and whether the writers of each wait.
type Phase = ([u64; 2], bool, [bool; 2]);

/// Returns the bytes a second that background work gets at the end, in MB. The device does 200.
fn after(phases: &[Phase]) -> u64 {
    let mut scheduler = two_beside_clients(200 * MB);
    go_through(&mut scheduler, phases, Demand::default());
    scheduler.allocation.write / MB
}

/// Goes through the phases. The second database has `demand` all the time.
fn go_through(scheduler: &mut IoScheduler, phases: &[Phase], demand: Demand) {
    for (fill, served, waits) in phases {
        for _ in 0..200 {
            let now = Instant(scheduler.last_sample.0 + 10_000_000);
            for (database, served) in [(0, true), (1, *served)] {
                scheduler.asks(DatabaseId(database));
                scheduler.set_fill(fill[database as usize] * MB, 1);
                scheduler.set_served(now, served);
                scheduler.set_writers_wait(waits[database as usize]);
                let demand = if database == 1 { demand } else { Demand::default() };
                scheduler.set_demand(demand);
            }
            let user_bytes = fill.iter().sum::<u64>() * MB / 100;
            scheduler.sample(now, &crate::event::Sample { user_bytes, ..Default::default() });
        }
    }
}

#[test]
fn deep_work_of_others_earns_credit_beside_a_database_in_overload() {
    let overload = ([90, 2], true, [true, false]);
    let late = Demand { debt: 20_000 * MB, ..Demand::default() };
    for (demand, earns) in [(late, true), (Demand::default(), false)] {
        let mut scheduler = two_beside_clients(200 * MB);
        go_through(&mut scheduler, &[overload], demand);
        assert_eq!(scheduler.may_use_credit(DatabaseId(1)), earns);
        assert!(!scheduler.may_use_credit(DatabaseId(0)), "it has earned none");
    }
}

#[test]
fn a_database_in_overload_leaves_room_to_the_clients_of_others() {
    let overload = ([90, 2], true, [true, false]);
    // 70 % of 180. Small changes of the allocation are not made.
    let room = |write: u64| (115..=136).contains(&write);
    let all = |write: u64| write > 170;
    assert!(room(after(&[overload])));
    assert!(room(after(&[overload, ([90, 50], true, [true, false])])), "it stays so");
    assert!(all(after(&[([90, 50], true, [true, false])])), "the other writes half as much");
    assert!(all(after(&[overload, ([90, 2], true, [true, true])])), "the other is late, too");
    assert!(all(after(&[([90, 0], false, [true, false])])), "nobody uses the other");
    let mut at_rest = vec![overload];
    at_rest.extend([([90, 0], false, [true, false]); 6]);
    assert!(all(after(&at_rest)), "nobody uses the other any more");
}
