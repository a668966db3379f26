//! The progress of the demo: one line a second on standard error, without cursor movements. The
//! opponent runs first; its seconds are repeated beside those of Sateen.

use std::io::Write;

use super::opponent::Opponent;
use super::place::{Place, SPACE_BYTES};
use super::{DemoArgs, DeviceKind};
use crate::args::BenchArgs;
use crate::engine::Engine;
use crate::result::Measured;
use crate::sampler::Told;
use crate::units;

/// The operations and the p99 of a second.
type Figures = (u64, Option<u64>);

/// The progress of a demo.
pub(super) struct Live {
    args: DemoArgs,
    /// The figures of the engine that ran before, by second.
    before: Vec<Figures>,
    now: Vec<Figures>,
    heads: Vec<String>,
    begun: bool,
}

impl Live {
    pub(super) fn new(args: &DemoArgs) -> Live {
        let args = args.clone();
        Live { args, before: Vec::new(), now: Vec::new(), heads: Vec::new(), begun: false }
    }

    /// Announces the demo.
    pub(super) fn begin(&self, opponent: &Opponent, place: &Place) {
        let DemoArgs { seconds, rate, keys, device, .. } = &self.args;
        let device = match device {
            DeviceKind::Limited => "a device limited to 200 MB/s (--device real: as it is)",
            DeviceKind::Real => "the disk as it is",
        };
        say(&format!(
            "Bursts of load for {}, then for Sateen,\n\
             on {device}{}.\n\
             Each: load {} keys of 1 KB, then {seconds} s: 10 s of {rate} operations/s,\n\
             10 s of a quarter of it, and so on; half are reads, half writes.\n\
             Writes up to {} to {}, and removes it.",
            match opponent {
                Opponent::RocksDb { library, .. } => format!("RocksDB ({})", library.display()),
                Opponent::Profile => "RocksDB's options (profile rocksdb)".to_owned(),
            },
            if place.is_direct() { "" } else { ", which has no direct I/O" },
            units::count(*keys as f64),
            units::bytes(SPACE_BYTES),
            place.databases().display(),
        ));
    }

    /// Says why the opponent does not run and that the profile replaces it.
    pub(super) fn replaced(&mut self, why: &str) {
        self.heads.clear();
        self.now.clear();
        say(&format!("{why}\nThe profile rocksdb runs instead of it."));
    }

    /// Announces the next engine.
    pub(super) fn engine(&mut self, bench: &BenchArgs, engine: &Engine) {
        self.before = std::mem::take(&mut self.now);
        self.begun = false;
        let name = match engine {
            Engine::RocksDb { .. } => "RocksDB",
            Engine::LevelDb { .. } => "LevelDB",
            Engine::Other { .. } => engine.name(),
            Engine::Sateen if bench.profile.is_some() => "profile",
            Engine::Sateen => "Sateen",
        };
        self.heads.insert(0, name.to_owned());
        say(&format!("\n{name}: loading …"));
    }

    /// Handles a message of the running measurement.
    pub(super) fn told(&mut self, told: Told) {
        match told {
            Told::Loaded { seconds } => {
                say(&format!("{}: loaded in {seconds:.0} s", self.heads[0]))
            }
            Told::Second { second, done, p99_ns } => self.second(second as usize, (done, p99_ns)),
        }
    }

    /// Ends an engine: prints the seconds that it has not reported yet.
    pub(super) fn done(&mut self, measured: &Measured) {
        for second in self.now.len()..(self.args.seconds as usize).min(measured.timeline.len()) {
            let of = &measured.timeline[second];
            self.second(second, (of.done.iter().sum(), of.all.map(|all| all.p99)));
        }
    }

    fn second(&mut self, second: usize, figures: Figures) {
        if second >= self.args.seconds as usize {
            return;
        }
        if !self.begun {
            self.begun = true;
            say(&head(&self.heads));
        }
        self.now.push(figures);
        say(&line(second, figures, self.before.get(second).copied()));
    }
}

fn head(engines: &[String]) -> String {
    let columns =
        engines.iter().take(2).map(|name| format!("{:>13}       p99", name.clone() + " ops/s"));
    format!("second load {}", columns.collect::<Vec<_>>().join(""))
}

/// Formats a second of the running engine and the same second of the other one.
fn line(second: usize, now: Figures, before: Option<Figures>) -> String {
    let load = if (second / 10).is_multiple_of(2) { "burst" } else { "calm" };
    let mut line = format!("{:>4} s {load:<5}", second + 1);
    for (done, p99) in std::iter::once(now).chain(before) {
        let p99 = p99.map_or_else(|| "-".to_owned(), units::time);
        line.push_str(&format!(" {:>12} {p99:>9}", units::count(done as f64)));
    }
    line
}

/// Prints a line on standard error. If that fails, there is no other place for it.
fn say(text: &str) {
    let _nobody = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_both_fits_sixty_columns_under_its_heading() {
        let head = head(&["Sateen".to_owned(), "RocksDB".to_owned()]);
        let both = line(9, (20_123, Some(1_234_000)), Some((1, None)));
        assert!(both.chars().count() <= 60 && head.chars().count() <= 60, "{head}\n{both}");
        assert!(both.contains("burst") && line(10, (1, None), None).contains("calm"));
        let ends = |text: &str, part: &str| text.find(part).map(|at| at + part.len());
        assert_eq!(ends(&head, "Sateen ops/s"), ends(&both, "20.1k"), "{head}\n{both}");
    }
}
