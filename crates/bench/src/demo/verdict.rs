//! The verdict: in how many seconds clients waited, and whether the machine was quiet enough to
//! tell.

use super::opponent::Opponent;
use crate::result::{Measured, RunResult};
use crate::{notes, seconds, units};

/// A second counts as waiting if its p99 is above this ([`seconds`]).
pub(super) const WAIT_NS: u64 = 100_000_000;

/// One engine's seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waits {
    pub(super) name: String,
    /// The p99 of each second; `None` where too little was due.
    pub(super) p99_ns: Vec<Option<u64>>,
}

impl Waits {
    /// Takes the first `whole` seconds, without the part of a second at the end of a run.
    fn of(name: String, measured: &Measured, whole: usize) -> Waits {
        Waits { name, p99_ns: seconds::p99s(measured).take(whole).collect() }
    }

    /// Seconds in which clients waited.
    pub(super) fn bad(&self) -> usize {
        seconds::above(self.p99_ns.iter().copied(), WAIT_NS)
    }

    /// The worst second's p99.
    pub(super) fn worst_ns(&self) -> u64 {
        seconds::worst(self.p99_ns.iter().copied()).unwrap_or(0)
    }
}

/// The outcome of a demo.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) sateen: Waits,
    pub(super) opponent: Waits,
    pub(super) seconds: usize,
    pub(super) cpus: usize,
    /// Processors that other programs or other guests of the host used: the larger figure of the
    /// two runs.
    pub(super) others_cpus: f64,
}

impl Verdict {
    /// The verdict on Sateen's run and the opponent's.
    pub(super) fn of(
        sateen: &RunResult,
        opponent: &RunResult,
        seconds: u32,
        who: &Opponent,
    ) -> Verdict {
        let seconds = seconds as usize;
        let others = [sateen, opponent].map(|run| notes::others_cpus(&run.measured));
        Verdict {
            sateen: Waits::of("Sateen".to_owned(), &sateen.measured, seconds),
            opponent: Waits::of(who.name(), &opponent.measured, seconds),
            seconds,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            others_cpus: others[0].max(others[1]),
        }
    }

    /// True if other programs used so much of the machine that they may have changed the figures.
    pub(super) fn was_busy(&self) -> bool {
        notes::is_busy(self.others_cpus, self.cpus)
    }

    /// The verdict in a sentence, and a second one if the machine was busy.
    pub(super) fn sentence(&self) -> String {
        let (ours, theirs) = (&self.sateen, &self.opponent);
        let of = format!("of {} seconds", self.seconds);
        let worst = format!(
            "the worst second's p99 was {} with {} and {} with Sateen",
            units::time(theirs.worst_ns()),
            theirs.name,
            units::time(ours.worst_ns())
        );
        let than = |bad: usize, better: &Waits| match better.bad() {
            0 => format!("in {bad} {of}, {} in none", better.name),
            fewer => format!("in {bad} {of}, {} in {fewer}", better.name),
        };
        let waits = "made clients wait more than 100 ms";
        let verdict = match (ours.bad(), theirs.bad()) {
            (0, 0) => format!("Neither {} nor Sateen {waits}: {worst}.", theirs.name),
            (ours_bad, bad) if bad > ours_bad => {
                format!("{} {waits} {}.", theirs.name, than(bad, ours))
            }
            (bad, theirs_bad) if bad > theirs_bad => {
                format!("Sateen {waits} {}.", than(bad, theirs))
            }
            (bad, _) => {
                format!("Both {} and Sateen {waits} in {bad} {of}: {worst}.", theirs.name)
            }
        };
        if !self.was_busy() {
            return verdict;
        }
        format!("{verdict} But {}", notes::busy(self.others_cpus, self.cpus, "the demo"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::result::{Quantiles, Second};

    const MS: u64 = 1_000_000;

    pub(in crate::demo) fn waits(name: &str, ms: &[u64]) -> Waits {
        let p99_ns = ms.iter().map(|ms| Some(ms * MS)).collect();
        Waits { name: name.to_owned(), p99_ns }
    }

    pub(in crate::demo) fn verdict(sateen: &[u64], opponent: &[u64]) -> Verdict {
        Verdict {
            sateen: waits("Sateen", sateen),
            opponent: waits("RocksDB 11.8.1", opponent),
            seconds: sateen.len(),
            cpus: 2,
            others_cpus: 0.1,
        }
    }

    #[test]
    fn the_verdict_says_who_made_clients_wait() {
        let says = |sateen: &[u64], opponent: &[u64]| verdict(sateen, opponent).sentence();
        assert_eq!(
            says(&[1, 2, 100], &[101, 2, 3000]),
            "RocksDB 11.8.1 made clients wait more than 100 ms in 2 of 3 seconds, Sateen in none."
        );
        assert_eq!(
            says(&[1, 2, 101], &[101, 2, 3000]),
            "RocksDB 11.8.1 made clients wait more than 100 ms in 2 of 3 seconds, Sateen in 1."
        );
        // The verdict when Sateen loses.
        assert_eq!(
            says(&[500, 2, 101], &[1, 2, 3]),
            "Sateen made clients wait more than 100 ms in 2 of 3 seconds, RocksDB 11.8.1 in none."
        );
        assert_eq!(
            says(&[1, 2], &[30, 2]),
            "Neither RocksDB 11.8.1 nor Sateen made clients wait more than 100 ms: the worst \
             second's p99 was 30.0 ms with RocksDB 11.8.1 and 2.00 ms with Sateen."
        );
        let both = says(&[200, 2], &[300, 2]);
        assert!(both.starts_with("Both RocksDB 11.8.1 and Sateen made"), "{both}");
        assert!(both.contains("in 1 of 2 seconds: the worst"), "{both}");
    }

    #[test]
    fn a_busy_machine_is_told() {
        let mut busy = verdict(&[1], &[200]);
        assert!(!busy.was_busy());
        busy.others_cpus = 1.2;
        assert!(busy.was_busy());
        let says = busy.sentence();
        assert!(says.starts_with("RocksDB 11.8.1 made clients"), "{says}");
        assert!(says.contains("busy: other programs used 1.20 of its 2 processors"), "{says}");
        busy.cpus = 64;
        assert!(!busy.was_busy());
    }

    #[test]
    fn the_part_of_a_second_at_the_end_is_cut() {
        let second = |p99: u64| Second {
            offered: 100,
            all: Some(Quantiles { count: 100, p99: p99 * MS, ..Quantiles::default() }),
            ..Second::default()
        };
        let timeline = [1, 200, 300].map(second).to_vec();
        let measured = Measured { timeline, seconds: 3.0, ..Measured::default() };
        let waits = Waits::of("X".to_owned(), &measured, 2);
        assert_eq!(waits.p99_ns, [Some(MS), Some(200 * MS)]);
        assert_eq!((waits.bad(), waits.worst_ns()), (1, 200 * MS));
    }
}
