//! The plan of a workload: its specification, with all options applied.

use std::path::PathBuf;

use sateen_workload::{
    ArrivalSpec, KeyChoice, KeyFormat, Mix, Process, ScanLength, Spec, ValueSize, WORKLOAD_NAMES,
};

use super::value_size::value_size;
use super::{Arrivals, BenchArgs, Distribution, Mode};
use crate::{Error, Result};

/// One workload with all options applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) spec: Spec,
    pub(crate) operations: Option<u64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) replay: Option<PathBuf>,
    pub(crate) sizes: ValueSize,
    pub(crate) scan: ScanLength,
    pub(crate) format: KeyFormat,
    pub(crate) process: Process,
}

impl BenchArgs {
    /// Returns the plan of a workload.
    pub(crate) fn plan(&self, name: &str) -> Result<Plan> {
        let replay = name.strip_prefix("replay=").map(PathBuf::from);
        let mut spec = match &replay {
            None if name == "replay" => {
                return Err(Error::Usage("name the recording: --workload replay=FILE".to_owned()));
            }
            None => Spec::named(name).map_err(|unknown| {
                Error::Usage(format!(
                    "no workload is named {:?}; there are: {}, replay=FILE",
                    unknown.0,
                    WORKLOAD_NAMES.join(", ")
                ))
            })?,
            // A recording brings its own operations. The other workload only defines the database
            // that they run on.
            Some(_) => Spec { name: "replay", ..Spec::named("ycsb-a").map_err(unknown)? },
        };
        self.apply(&mut spec)?;
        let open = spec.arrivals != ArrivalSpec::Closed || replay.is_some();
        let operations = match (self.ops, self.duration) {
            (Some(operations), _) => Some(operations),
            // A fill ends when all keys are written, however long it takes.
            (None, None) if !open => Some(self.num),
            (None, Some(_)) if spec.fills && !open => Some(self.num),
            (None, _) => None,
        };
        let seconds = match (self.duration, operations) {
            (Some(seconds), _) => Some(seconds),
            (None, None) if replay.is_none() => Some(60.0),
            (None, _) => None,
        };
        if !(self.replay_speed > 0.0 && self.replay_speed.is_finite()) {
            let text = format!("--replay-speed {}: a factor above 0 is needed", self.replay_speed);
            return Err(Error::Usage(text));
        }
        let given = self.value_size.as_deref().map(value_size).transpose().map_err(Error::Usage)?;
        if given.is_some() {
            spec.sizes = given;
        }
        Ok(Plan {
            sizes: spec.sizes.unwrap_or(ValueSize::Fixed(1000)),
            scan: spec.scan.unwrap_or(ScanLength::Fixed(50)),
            format: self.key_format(),
            process: match self.arrivals {
                Arrivals::Even => Process::Even,
                Arrivals::Poisson => Process::Poisson,
            },
            operations,
            seconds,
            replay,
            spec,
        })
    }

    fn apply(&self, spec: &mut Spec) -> Result<()> {
        spec.extra_writer |= self.overload;
        if let Some(distribution) = self.distribution {
            spec.keys = match distribution {
                Distribution::Uniform => KeyChoice::Uniform,
                Distribution::Zipfian => KeyChoice::Zipfian { theta: 0.99 },
                Distribution::Latest => KeyChoice::Latest { theta: 0.99 },
            };
        }
        if let Some(entries) = self.scan_length {
            spec.scan = Some(ScanLength::Fixed(entries));
        }
        if let Some(percent) = self.read_percent {
            spec.mix.read = percent;
            spec.mix.update = 100 - percent;
        }
        if let ArrivalSpec::Bursts { peak_seconds, valley_seconds, .. } = &mut spec.arrivals {
            (*peak_seconds, *valley_seconds) = (self.peak_seconds, self.valley_seconds);
        }
        match (self.mode, self.rate.first()) {
            (Some(Mode::Closed), _) => spec.arrivals = ArrivalSpec::Closed,
            (_, Some(rate)) => spec.arrivals = spec.arrivals.scaled_to(*rate as f64),
            (Some(Mode::Open), None) if spec.arrivals == ArrivalSpec::Closed => {
                return Err(Error::Usage(format!("--mode open: {} needs a --rate", spec.name)));
            }
            _ => {}
        }
        if self.multi_get > 1 {
            let only_reads = Mix { read: 0, ..spec.mix } == Mix::default();
            if spec.arrivals != ArrivalSpec::Closed || !only_reads {
                return Err(Error::Usage(format!(
                    "--multi-get {}: {} is no closed loop that only reads; readrandom is",
                    self.multi_get, spec.name
                )));
            }
            spec.reads_together = self.multi_get;
        }
        if let (Some(rate), ArrivalSpec::Bursts { valley_rate, .. })
        | (Some(rate), ArrivalSpec::Nutanix { valley_rate, .. }) =
            (self.valley_rate, &mut spec.arrivals)
        {
            *valley_rate = rate as f64;
        }
        Ok(())
    }
}

fn unknown(error: sateen_workload::UnknownWorkload) -> Error {
    Error::Usage(error.to_string())
}
