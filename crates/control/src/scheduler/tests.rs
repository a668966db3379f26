//! Which deep job is next.

use super::*;

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
