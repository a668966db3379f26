//! Which deep job is next, and the rate limit.

use super::*;
use crate::options::{Preemption, RateLimitMode, RateLimiterOptions};

fn scheduler() -> IoScheduler {
    let scheduler = SchedulerOptions { bandwidth: true, priority: true, ..Default::default() };
    IoScheduler::new(&ControlOptions { scheduler, ..Default::default() })
}

/// Gives out the next step, of 1 MiB, and returns the job that had it.
fn step(scheduler: &mut IoScheduler) -> u64 {
    let now = Instant(scheduler.last_refill.0 + NS_PER_SECOND);
    let (job, _) = scheduler.grant(now).expect("no client is active");
    scheduler.stepped(job, 1 << 20, 1 << 20, 0);
    job.0
}

/// Adds deep jobs with these urgencies, gives out steps, and returns the jobs that had them, each
/// with the number of its steps in a row.
fn order(urgencies: &[f64], steps: u64) -> Vec<(u64, u64)> {
    let mut scheduler = scheduler();
    for (job, urgency) in (1..).zip(urgencies) {
        scheduler.add(JobId(job), IoClass::Deep(1), *urgency);
    }
    let mut order: Vec<(u64, u64)> = Vec::new();
    for _ in 0..steps {
        let job = step(&mut scheduler);
        match order.last_mut() {
            Some((last, steps)) if *last == job => *steps += 1,
            _ => order.push((job, 1)),
        }
    }
    order
}

#[test]
fn deep_jobs_go_one_after_the_other_turn_by_turn() {
    assert_eq!(order(&[1.0, 1.0, 1.0], 256), [(1, 64), (2, 64), (3, 64), (1, 64)]);
}

#[test]
fn an_urgent_level_moves_more_in_a_turn() {
    assert_eq!(order(&[1.0, 2.0], 384), [(1, 64), (2, 128), (1, 64), (2, 128)]);
}

#[test]
fn a_job_that_comes_later_waits_for_the_turn_only() {
    let mut scheduler = scheduler();
    scheduler.add(JobId(1), IoClass::Deep(1), 1.0);
    (0..200).for_each(|_| assert_eq!(step(&mut scheduler), 1));
    scheduler.add(JobId(2), IoClass::Deep(1), 1.0);
    // It begins in the turn of the first, and so behind it.
    assert_eq!((0..100).position(|_| step(&mut scheduler) == 2), Some(256 - 200));
}

#[test]
fn a_job_is_served_again_whatever_jobs_begin_meanwhile() {
    let mut scheduler = scheduler();
    // A long job, and two short ones at a time.
    (1..=3).for_each(|job| scheduler.add(JobId(job), IoClass::Deep(1), 1.0));
    let mut left = [(2, 40), (3, 40)].map(|(job, steps)| (JobId(job), steps));
    let mut next = 4;
    let mut longs = 0;
    for _ in 0..1000 {
        let served = step(&mut scheduler);
        longs += u64::from(served == 1);
        let Some(short) = left.iter_mut().find(|(job, _)| job.0 == served) else { continue };
        short.1 -= 1;
        if short.1 == 0 {
            scheduler.remove(short.0);
            *short = (JobId(next), 40);
            scheduler.add(JobId(next), IoClass::Deep(1), 1.0);
            next += 1;
        }
    }
    // A third of the steps, or a turn less.
    assert!(longs >= 1000 / 3 - 64, "{longs}");
}

#[test]
fn a_job_that_comes_back_waits_for_others_like_a_new_one() {
    for is_away in [true, false] {
        let mut scheduler = scheduler();
        scheduler.options.preemption = Preemption::LeastLoss;
        scheduler.add(JobId(1), IoClass::Deep(1), 1.0);
        if is_away {
            scheduler.set_away(JobId(1), true);
        } else {
            scheduler.preempt(JobId(9), false);
        }
        scheduler.add(JobId(2), IoClass::Deep(1), 1.0);
        (0..1000).for_each(|_| assert_eq!(step(&mut scheduler), 2));
        // One that begins meanwhile is not put before the others either.
        scheduler.add(JobId(3), IoClass::Deep(1), 1.0);
        assert_eq!((0..100).position(|_| step(&mut scheduler) == 3), Some(1024 - 1000));
        if is_away {
            scheduler.set_away(JobId(1), false);
        } else {
            assert!(scheduler.resume());
        }
        let served: Vec<u64> = (0..400).map(|_| step(&mut scheduler)).collect();
        let count = |job| served.iter().filter(|served| **served == job).count();
        assert!((1..=3).all(|job| count(job) >= 64), "{:?}", [1, 2, 3].map(count));
    }
}

#[test]
fn work_without_urgency_gets_a_part() {
    let order = order(&[1.0, 0.0], 256);
    let of = |job| order.iter().filter(|(of, _)| *of == job).map(|(_, steps)| steps).sum::<u64>();
    assert!(of(2) >= 256 / 8, "{order:?}");
}

/// The bytes that a second may move below the limit.
const RATE: u64 = 10_000_000;

/// Runs a flush and a deep job, which move what they are granted and read as much as they write,
/// but for the flush, for ten seconds. Returns what each has moved.
fn limited(mode: RateLimitMode, bandwidth: bool, fairness: u32) -> [u64; 2] {
    let rate_limiter = RateLimiterOptions {
        bytes_per_second: Some(RATE),
        mode,
        fairness,
        ..RateLimiterOptions::default()
    };
    let scheduler = SchedulerOptions { bandwidth, priority: true, ..Default::default() };
    let slice_bytes_max = 256 << 10;
    let options = ControlOptions { rate_limiter, scheduler, slice_bytes_max, ..Default::default() };
    let mut scheduler = IoScheduler::new(&options);
    scheduler.add(JobId(1), IoClass::Flush, 1.0);
    scheduler.add(JobId(2), IoClass::Deep(1), 1.0);
    let mut moved = [0; 2];
    for now in (NS_PER_SECOND..11 * NS_PER_SECOND).step_by(1_000_000).map(Instant) {
        if bandwidth && now.0.is_multiple_of(10_000_000) {
            // Clients are active, so slices are short.
            scheduler.sample(now, &Sample { user_bytes: 1000, ..Sample::default() });
        }
        // The flush is polled a few times only, because nothing may limit it.
        for _ in 0..4 {
            let Some((job, bytes)) = scheduler.grant(now) else { break };
            let read = if job == JobId(1) { 0 } else { bytes };
            scheduler.stepped(job, read, bytes, 0);
            moved[usize::from(job == JobId(2))] += bytes;
        }
        assert!(scheduler.next_grant_at().is_some(), "it is polled again");
    }
    moved
}

#[test]
fn a_rate_limit_is_kept_whatever_clients_leave() {
    for bandwidth in [false, true] {
        let limited = |mode| limited(mode, bandwidth, 10);
        let kept = |bytes: u64| (95 * RATE / 10..102 * RATE / 10).contains(&bytes);
        let [flush, deep] = limited(RateLimitMode::WritesOnly);
        assert!(kept(flush + deep), "{bandwidth}: {flush} {deep}");
        // A tenth of the refills is for lower priorities.
        assert!((RATE / 2..2 * RATE).contains(&deep), "{bandwidth}: {deep}");
        let [flush, deep] = limited(RateLimitMode::AllIo);
        assert!(kept(flush + 2 * deep), "{bandwidth}: {flush} {deep}");
        let [flush, deep] = limited(RateLimitMode::ReadsOnly);
        assert!(flush > 100 * RATE && deep <= 11 * RATE, "{bandwidth}: {flush} {deep}");
    }
}

#[test]
fn without_fairness_a_limit_serves_flushes_alone() {
    for bandwidth in [false, true] {
        let [flush, deep] = limited(RateLimitMode::WritesOnly, bandwidth, 0);
        assert!(flush > 9 * RATE && deep == 0, "{bandwidth}: {flush} {deep}");
    }
}
