//! `sateen sim` simulates policies in virtual time.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sateen_bench::units::{check_bursts, parse_bytes, parse_count};
use sateen_control::DeviceProfile;
use sateen_sim::{
    Bandwidth, Databases, DeviceConfig, Load, Policy, Report, SimConfig, Simulation, Wal, table,
};
use sateen_workload::{ArrivalSpec, Mix, Process, ScanLength, Spec, ValueSize};

use crate::failure::{Failure, Result};
use crate::sim_page;

const EXAMPLES: &str = "\
Without options sim runs the standard case: bursts of 10 s at 20k/s on 8 GB behind 200 MB/s, with
memtables and tables of 16 MB, a base level of 64 MB and 4 job slots. Time is virtual: sim writes no
files, and the same options give the same figures. Sizes and bandwidths are in powers of 1000.

Examples:
  sateen sim
  sateen sim --policy silk,rocksdb,rocksdb-autotuned --rate 12k
  sateen sim --policy silk,rocksdb --html sim.html
  sateen sim --policy rocksdb --set level0_slowdown=8
  sateen sim --workload nutanix --db-size 500G --duration 86400 --json day.json
  sateen sim --policy sateen --databases 16 --skew 1 --rate 12k
  sateen sim --workload bursts,nutanix --device-bandwidth 100M,200M,500M --believed 150";

/// How writes reach the WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WalMode {
    /// None
    Off,
    /// Written back in the background
    Buffered,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimArgs {
    /// Simulate these policies, separated by commas: sateen, silk, silk-paper, rocksdb, rocksdb-io,
    /// rocksdb-limited, rocksdb-autotuned, leveldb, hyperleveldb, bolt, hyperbolt, vlsm, lsmi,
    /// pebblesdb, rocksdb-universal, adoc, adoc-threads, adoc-batch
    #[arg(long, visible_alias = "profile", default_value = "silk,rocksdb", value_delimiter = ',')]
    policy: Vec<String>,

    /// Set an option of the policies, such as memtable_bytes=64M; may be repeated
    #[arg(long = "set", value_name = "OPTION=VALUE")]
    settings: Vec<String>,

    /// Run these workloads, separated by commas: bursts, nutanix, or another one of the
    /// benchmark's
    #[arg(long, short = 'w', default_value = "bursts", value_delimiter = ',')]
    workload: Vec<String>,

    /// Offer this many operations a second; with bursts, in the peak [default: 20k with bursts,
    /// the workload's own with nutanix; with others each client begins an operation when its last
    /// one has ended]
    #[arg(long, value_parser = parse_count)]
    rate: Option<u64>,

    /// Offer this many operations a second in a valley [default: the workload's share of the peak]
    #[arg(long, value_parser = parse_count)]
    valley_rate: Option<u64>,

    /// Set the seconds of a peak of bursts
    #[arg(long, default_value_t = 10.0)]
    peak_seconds: f64,

    /// Set the seconds of a valley of bursts
    #[arg(long, default_value_t = 10.0)]
    valley_seconds: f64,

    /// Set the percentage of reads, instead of the workload's mix
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
    read_percent: Option<u32>,

    /// Set the bytes of a value [default: 1000, or the workload's own]
    #[arg(long)]
    value_size: Option<u32>,

    /// Simulate this many seconds of virtual time
    #[arg(long, short = 'd', default_value_t = 150.0)]
    duration: f64,

    /// Set the bytes of the database at the start
    #[arg(long, default_value = "8G", value_parser = size)]
    db_size: u64,

    /// Set the bytes of the block cache
    #[arg(long, default_value = "256M", value_parser = size)]
    cache: u64,

    /// Run this many client threads, with --databases for each database
    #[arg(long, short = 't', default_value_t = 2)]
    threads: usize,

    /// Divide the database, its cache and the load among this many databases on the device, which
    /// share its scheduler and the threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    databases: u32,

    /// Give each database a scheduler and threads of its own
    #[arg(long, requires = "databases")]
    apart: bool,

    /// Divide the load among the databases by Zipf's law with this exponent; 0: equally
    #[arg(long, value_name = "EXPONENT", default_value_t = 0.0, requires = "databases")]
    skew: f64,

    /// Write to this many of the databases by a client that never waits between writes,
    /// instead of its part of the load
    #[arg(long, value_name = "DATABASES", default_value_t = 0, requires = "databases")]
    overload: u32,

    /// Choose how writes reach the WAL
    #[arg(long, default_value = "off")]
    wal: WalMode,

    /// Set the bytes a second that the device reads, and as many that it writes; one simulation
    /// for each, separated by commas
    #[arg(long, default_value = "200M", value_delimiter = ',', value_parser = size)]
    device_bandwidth: Vec<u64>,

    /// Set the bytes a second that the device reads, if they differ
    #[arg(long, value_parser = size)]
    device_read: Option<u64>,

    /// Set the bytes that the device transfers when a client reads a block
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "4K")]
    read_bytes: u64,

    /// Set the bytes a second that the device writes, if they differ
    #[arg(long, value_parser = size)]
    device_write: Option<u64>,

    /// Let reads and writes share one bandwidth, that of reads
    #[arg(long)]
    device_shared: bool,

    /// Change the device's bandwidth at a second, such as 60=50M; may be repeated
    #[arg(long, value_name = "SECOND=BYTES", value_parser = change)]
    device_change: Vec<(u64, u64)>,

    /// Pause the device for some milliseconds in every period, such as 70/5000
    #[arg(long, value_name = "MS/MS", value_parser = pauses, default_value = "0/0")]
    device_pauses: (u64, u64),

    /// Add this many microseconds to the transfer of each request
    #[arg(long, default_value_t = 80)]
    latency: u64,

    /// Set the microseconds that a barrier (fsync) takes
    #[arg(long, default_value_t = 500)]
    barrier: u64,

    /// Tell policies this percentage of the true bandwidth at the start [default: 100 for policies
    /// that must be told, nothing for policies that learn it]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    believed: Option<u64>,

    /// Apply the bandwidth limit over this many milliseconds, as the kernel's throttle does; 0
    /// limits each request by itself
    #[arg(long, default_value_t = 20)]
    burst: u64,

    /// Run this many background threads [default: one for each job slot]
    #[arg(long)]
    workers: Option<usize>,

    /// Seed the random numbers: the same seed gives the same arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Write all figures, second by second, as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write a page with charts, one file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Parses a size in powers of 1000, as devices count. `16MiB` is in powers of 1024.
fn size(text: &str) -> std::result::Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    if upper.ends_with("IB") {
        return parse_bytes(text);
    }
    let digits = upper.trim_end_matches('B');
    match digits.strip_suffix('T') {
        Some(rest) => Ok(parse_count(rest)?.saturating_mul(1_000_000_000_000)),
        None => parse_count(digits),
    }
}

/// Parses the pauses of a device: their length, and their period.
fn pauses(text: &str) -> std::result::Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers
        .filter(|(pause, every)| pause < every || *every == 0)
        .ok_or_else(|| "expected MS/MS, the first below the second, as 70/5000".to_owned())
}

fn change(text: &str) -> std::result::Result<(u64, u64), String> {
    let (second, bytes) = text.split_once('=').ok_or("expected SECOND=BYTES")?;
    let second = second.trim().parse::<u64>().map_err(|_| format!("{second:?} is not a second"))?;
    Ok((second, size(bytes.trim())?))
}

impl SimArgs {
    fn load(&self, workload: &str) -> Result<Load> {
        let usage = |error: sateen_workload::UnknownWorkload| Failure::usage(error.to_string());
        let mut spec = Spec::named(workload).map_err(usage)?;
        if let ArrivalSpec::Bursts { peak_seconds, valley_seconds, .. } = &mut spec.arrivals {
            (*peak_seconds, *valley_seconds) = (self.peak_seconds, self.valley_seconds);
        }
        let rate = match (self.rate, spec.name) {
            (None, "bursts") => Some(20_000),
            (rate, _) => rate,
        };
        if let Some(rate) = rate {
            spec.arrivals = spec.arrivals.scaled_to(rate as f64);
        }
        if let (Some(rate), ArrivalSpec::Bursts { valley_rate, .. })
        | (Some(rate), ArrivalSpec::Nutanix { valley_rate, .. }) =
            (self.valley_rate, &mut spec.arrivals)
        {
            *valley_rate = rate as f64;
        }
        if let Some(percent) = self.read_percent {
            (spec.mix.read, spec.mix.update) = (percent, 100 - percent);
        }
        if let Some(bytes) = self.value_size {
            spec.sizes = Some(ValueSize::Fixed(bytes));
        }
        Ok(Load {
            spec,
            process: Process::Poisson,
            threads: self.threads,
            key_bytes: 16,
            sizes: ValueSize::Fixed(1000),
            scan: ScanLength::Fixed(50),
            seed: self.seed,
        })
    }

    fn device(&self, bandwidth: u64) -> DeviceConfig {
        let both = |bytes| Bandwidth { read: bytes, write: bytes };
        DeviceConfig {
            bandwidth: Bandwidth {
                read: self.device_read.unwrap_or(bandwidth),
                write: self.device_write.unwrap_or(bandwidth),
            },
            shared: self.device_shared,
            latency_ns: self.latency.saturating_mul(1_000),
            burst_ns: self.burst.saturating_mul(1_000_000),
            barrier_ns: self.barrier.saturating_mul(1_000),
            pause_ns: self.device_pauses.0.saturating_mul(1_000_000),
            pause_every_ns: self.device_pauses.1.saturating_mul(1_000_000),
            changes: self
                .device_change
                .iter()
                .map(|(second, bytes)| (second.saturating_mul(1_000_000_000), both(*bytes)))
                .collect(),
            ..DeviceConfig::default()
        }
    }

    fn policy(&self, name: &str, device: &DeviceConfig) -> Result<Policy> {
        let believed = |bytes: u64| {
            let part = u128::from(bytes) * u128::from(self.believed.unwrap_or(100)) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let told = believed(device.bandwidth.write);
        let mut policy = Policy::named(name.trim(), told)?.standard_sizes();
        if self.believed.is_some() {
            policy = policy.believing(DeviceProfile {
                read_bytes_per_second: believed(device.bandwidth.read),
                write_bytes_per_second: told,
                barrier_ns: device.barrier_ns,
            });
        }
        for setting in &self.settings {
            let Some((option, value)) = setting.split_once('=') else {
                return Err(Failure::usage(format!("--set {setting}: expected OPTION=VALUE")));
            };
            policy.set(option.trim(), value.trim())?;
        }
        Ok(policy)
    }

    fn config(&self, workload: &str, policy: &str, bandwidth: u64) -> Result<SimConfig> {
        if !(self.duration > 0.0 && self.duration < 1e8) {
            return Err(Failure::usage("--duration must be a positive number of seconds"));
        }
        check_bursts(self.peak_seconds, self.valley_seconds).map_err(Failure::usage)?;
        let device = self.device(bandwidth);
        let standard = SimConfig::standard("rocksdb", 1.0)?;
        Ok(SimConfig {
            policy: self.policy(policy, &device)?,
            device,
            load: self.load(workload)?,
            db_bytes: self.db_size,
            cache_bytes: self.cache,
            read_bytes: self.read_bytes,
            wal: match self.wal {
                WalMode::Off => Wal::Off,
                WalMode::Buffered => Wal::Buffered,
            },
            workers: self.workers,
            duration_ns: (self.duration * 1e9) as u64,
            ..standard
        })
    }

    /// Returns a configuration for each database: its part of `whole`.
    fn divided(&self, whole: &SimConfig) -> Result<Vec<SimConfig>> {
        if !(0.0..=10.0).contains(&self.skew) {
            return Err(Failure::usage("--skew must be between 0 and 10"));
        }
        if self.overload > self.databases {
            return Err(Failure::usage("--overload must not be more than --databases"));
        }
        let count = u64::from(self.databases);
        let weights: Vec<f64> =
            (1..=self.databases).map(|nth| f64::from(nth).powf(-self.skew)).collect();
        let loaded: f64 = weights.iter().skip(self.overload as usize).sum();
        let part = |(nth, weight): (usize, &f64)| {
            let mut config = whole.clone();
            config.db_bytes = (whole.db_bytes / count).max(1 << 20);
            config.cache_bytes = whole.cache_bytes / count;
            config.load.seed = whole.load.seed.wrapping_add(nth as u64);
            if nth < self.overload as usize {
                config.load.threads = 1;
                config.load.spec.arrivals = ArrivalSpec::Closed;
                config.load.spec.mix = Mix { update: 1, ..Mix::default() };
            } else if let Some(rate) = rate_of(whole.load.spec.arrivals) {
                let arrivals = whole.load.spec.arrivals.scaled_to(rate * weight / loaded);
                config.load.spec.arrivals = arrivals;
            }
            config
        };
        Ok(weights.iter().enumerate().map(part).collect())
    }

    /// Runs a simulation of one or several databases.
    fn simulate(&self, config: SimConfig) -> Result<Vec<Report>> {
        if self.databases == 1 {
            return Ok(vec![Simulation::run(config)?]);
        }
        Ok(Databases::run(self.divided(&config)?, !self.apart)?)
    }
}

/// Returns the rate that [`ArrivalSpec::scaled_to`] sets.
fn rate_of(arrivals: ArrivalSpec) -> Option<f64> {
    match arrivals {
        ArrivalSpec::Closed => None,
        ArrivalSpec::Steady { rate } => Some(rate),
        ArrivalSpec::Bursts { peak_rate, .. } | ArrivalSpec::Nutanix { peak_rate, .. } => {
            Some(peak_rate)
        }
        ArrivalSpec::Sine { mean, .. } => Some(mean),
    }
}

impl From<sateen_sim::Error> for Failure {
    fn from(error: sateen_sim::Error) -> Failure {
        match error {
            sateen_sim::Error::Usage(text) => Failure::usage(text),
            other => Failure::failed(other.to_string()),
        }
    }
}

/// Checks what would be simulated.
pub(crate) fn check(arguments: &SimArgs) -> Result<()> {
    configs(arguments).map(drop)
}

/// Returns a configuration for every policy under every workload on every device.
fn configs(arguments: &SimArgs) -> Result<Vec<SimConfig>> {
    let mut configs = Vec::new();
    for workload in &arguments.workload {
        for bandwidth in &arguments.device_bandwidth {
            for policy in &arguments.policy {
                let config = arguments.config(workload.trim(), policy, *bandwidth)?;
                config.check()?;
                arguments.divided(&config)?;
                configs.push(config);
            }
        }
    }
    Ok(configs)
}

/// Runs every policy under every workload on every device.
pub(crate) fn run(arguments: &SimArgs, output: &mut dyn Write) -> Result<()> {
    let configs = configs(arguments)?;
    let reports = configs.into_iter().map(|config| arguments.simulate(config));
    let reports = reports.collect::<Result<Vec<_>>>()?.concat();
    let json =
        || serde_json::to_string(&reports).map_err(|error| Failure::failed(error.to_string()));
    match arguments.json.as_deref() {
        Some(path) if path.as_os_str() == "-" => writeln!(output, "{}", json()?)?,
        Some(path) => {
            fs::write(path, json()?).map_err(|error| Failure::file(path, &error))?;
            output.write_all(table(&reports).as_bytes())?;
        }
        None => output.write_all(table(&reports).as_bytes())?,
    }
    if let Some(path) = &arguments.html {
        fs::write(path, sim_page::render(&reports)?)
            .map_err(|error| Failure::file(path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_unless_they_say_otherwise() {
        assert_eq!(size("200M"), Ok(200_000_000));
        assert_eq!(size("8GB"), Ok(8_000_000_000));
        assert_eq!(size("2T"), Ok(2_000_000_000_000));
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(change("60=50M"), Ok((60, 50_000_000)));
        assert!(size("fast").is_err() && change("60").is_err());
    }
}
