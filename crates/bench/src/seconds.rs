//! The p99 of each second of a run: how long clients waited, second by second.
//!
//! The tables, the demo's verdict and the pages follow one rule ([`p99`]; `report/charts.js`
//! repeats it for the marks of a chart):
//! 1. A second in which fewer than [`COUNT_MIN`] operations were due, and fewer ended, has no p99.
//!    Such a second stands at the end of most runs, because they end in the middle of one.
//! 2. If operations ended in the second, its p99 is theirs.
//! 3. If operations were due and none ended, their clients waited for the next second in which some
//!    did. Its p99 counts for the waiting second, too. If none ended any more, the p99 is the time
//!    to the end of the run.
//!
//! Without rule 3 an engine that stops all operations for three seconds would have one bad second,
//! and an engine that is slow for three seconds would have three. In a closed loop nothing is due
//! while all clients wait, so rule 3 never applies there.

use crate::result::{Measured, Second};

/// The fewest operations that have a 99th percentile.
const COUNT_MIN: u64 = 100;

/// Returns the p99 of every second in nanoseconds; `None` for a second with too few operations.
pub(crate) fn p99s(measured: &Measured) -> impl Iterator<Item = Option<u64>> {
    (0..measured.timeline.len()).map(|at| p99(measured, at))
}

/// Returns the worst second's p99.
pub(crate) fn worst(p99s: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    p99s.flatten().max()
}

/// Returns how many seconds have a p99 above `limit_ns`.
pub(crate) fn above(p99s: impl Iterator<Item = Option<u64>>, limit_ns: u64) -> usize {
    p99s.flatten().filter(|p99| *p99 > limit_ns).count()
}

/// Returns the worst second's p99 of one kind of operation. The timeline does not tell what was due
/// of a kind, so that only seconds in which enough operations of the kind ended count.
pub(crate) fn worst_of_kind(measured: &Measured, kind: usize) -> Option<u64> {
    let seconds = measured.timeline.iter().filter_map(|second| second.latency[kind]);
    seconds.filter(|q| q.count >= COUNT_MIN).map(|q| q.p99).max()
}

fn p99(measured: &Measured, at: usize) -> Option<u64> {
    let rest = &measured.timeline[at..];
    let ended = |second: &Second| second.all.map_or(0, |all| all.count);
    if ended(&rest[0]).max(rest[0].offered) < COUNT_MIN {
        return None;
    }
    let to_the_end = || ((measured.seconds - at as f64).max(0.0) * 1e9) as u64;
    Some(rest.iter().find_map(|second| second.all).map_or_else(to_the_end, |all| all.p99))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Quantiles;

    const MS: u64 = 1_000_000;

    fn second(offered: u64, ended: Option<(u64, u64)>) -> Second {
        let quantiles = |(count, ms)| Quantiles { count, p99: ms * MS, ..Quantiles::default() };
        Second { offered, all: ended.map(quantiles), ..Second::default() }
    }

    fn measured(timeline: Vec<Second>) -> Measured {
        Measured { seconds: timeline.len() as f64, timeline, ..Measured::default() }
    }

    #[test]
    fn a_second_in_which_nothing_ends_waits_for_the_next_one() {
        let measured = measured(vec![
            second(100, Some((100, 1))),
            second(100, None),
            second(100, Some((300, 1500))),
            second(0, None),
            second(100, None),
        ]);
        let p99s: Vec<_> = p99s(&measured).collect();
        assert_eq!(
            p99s,
            [Some(1), Some(1500), Some(1500), None, Some(1000)].map(|p| p.map(|p| p * MS))
        );
        assert_eq!(above(p99s.iter().copied(), 100 * MS), 3);
        assert_eq!(worst(p99s.into_iter()), Some(1500 * MS));
    }

    #[test]
    fn few_operations_have_no_p99_unless_many_were_due() {
        let timeline = vec![second(99, Some((99, 7))), second(100, Some((1, 8))), second(99, None)];
        let p99s: Vec<_> = p99s(&measured(timeline)).collect();
        assert_eq!(p99s, [None, Some(8 * MS), None]);
    }
}
