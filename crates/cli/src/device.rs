//! `db bench-device`: what the device below a directory does, and what Sateen makes of it.
//!
//! 1. `Probe` writes a file in large pieces, syncs small pieces, and reads large and small pieces
//!    again, each for a while ([`measure`]). It uses the file system of the engine, with direct I/O
//!    where there is any, so that the page cache answers nothing.
//! 2. [`advice`] compares that with what Sateen takes a new device for, and says which options
//!    would help.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use sateen::vfs::{AlignedBuffer, IoClass, OpenOptions, PosixVfs, Vfs, VfsFile};
use sateen::{Db, Options, shown_path};
use serde::Serialize;
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::progress::Progress;
use crate::top::units;

const LARGE_BYTES: u64 = 1 << 20;
const SMALL_BYTES: u64 = 4096;
/// The file is not made larger than this.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// A sync that takes longer is worth an option.
const SLOW_SYNC_NS: u64 = 2_000_000;

#[derive(Debug, Args)]
pub(crate) struct BenchDevice {
    /// Measure the device of this directory
    directory: PathBuf,
    /// Measure each kind of request for this many seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

/// What was measured. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Measured {
    /// True if requests bypassed the page cache.
    direct: bool,
    write_bytes_per_second: u64,
    sync_ns_p50: u64,
    sync_ns_p99: u64,
    read_bytes_per_second: u64,
    read_4k_ns_p50: u64,
    read_4k_ns_p99: u64,
}

/// What is believed of the device, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Believed {
    read_bytes_per_second: u64,
    write_bytes_per_second: u64,
    barrier_ns: u64,
}

pub(crate) fn run(arguments: &BenchDevice, json: bool, output: &mut dyn Write) -> Result<()> {
    let directory = &arguments.directory;
    let metadata =
        std::fs::metadata(directory).map_err(|error| Failure::file(directory, &error))?;
    if !metadata.is_dir() {
        return Err(Failure::failed(format!("{}: no directory", shown_path(directory))));
    }
    let interrupted = interrupt::watch()?;
    let each = Duration::from_secs(arguments.seconds);
    let measured = Probe::begin(directory, interrupted)?.measure(each)?;
    let learned = learned(directory);
    let advice = advice(&measured);
    let profile = Options::default().profile;
    if json {
        let report = json!({
            "measured": measured, "learned": learned, "profile": profile, "advice": advice,
        });
        return Ok(writeln!(output, "{report}")?);
    }
    let rate = |bytes: u64| format!("{}/s", units::size(bytes));
    let how = if measured.direct { "direct I/O" } else { "through the page cache" };
    writeln!(output, "measured, {how}")?;
    writeln!(output, "  large writes   {:>12}", rate(measured.write_bytes_per_second))?;
    writeln!(output, "  large reads    {:>12}", rate(measured.read_bytes_per_second))?;
    for (name, p50, p99) in [
        ("syncs of 4 KiB", measured.sync_ns_p50, measured.sync_ns_p99),
        ("reads of 4 KiB", measured.read_4k_ns_p50, measured.read_4k_ns_p99),
    ] {
        let (p50, p99) = (units::time(p50), units::time(p99));
        writeln!(output, "  {name} {p50:>12} p50  {p99:>10} p99")?;
    }
    match learned {
        None => writeln!(output, "no database in this directory has measured the device")?,
        Some(Believed { read_bytes_per_second, write_bytes_per_second, barrier_ns }) => {
            let (read, write) = (rate(read_bytes_per_second), rate(write_bytes_per_second));
            let barrier = units::time(barrier_ns);
            writeln!(
                output,
                "the database here believes: reads {read}, writes {write}, a sync {barrier}"
            )?;
        }
    }
    writeln!(output, "profile: {profile}")?;
    Ok(advice.iter().try_for_each(|line| writeln!(output, "  {line}"))?)
}

/// Returns what the database in a directory has learned, if there is one that can be read.
fn learned(directory: &Path) -> Option<Believed> {
    let db = Db::open_read_only(directory, Options::default()).ok()?;
    let scheduler = db.metrics().scheduler;
    Some(Believed {
        read_bytes_per_second: scheduler.device_read_bandwidth,
        write_bytes_per_second: scheduler.device_write_bandwidth,
        barrier_ns: scheduler.device_barrier_ns,
    })
}

/// Returns what to do about what was measured, in sentences.
fn advice(measured: &Measured) -> Vec<String> {
    let mut advice = vec![
        "The profile fits every device: a running database learns what this one does. It begins \
         with 192 MiB/s each way."
            .to_owned(),
    ];
    if !measured.direct {
        advice.push(
            "The file system has no direct I/O: direct_reads and \
             direct_io_for_flush_and_compaction would do nothing."
                .to_owned(),
        );
    }
    if measured.sync_ns_p50 > SLOW_SYNC_NS {
        advice.push(format!(
            "A sync takes {}: writes with `sync` wait for that. wal=interval:100ms loses at most \
             the last tenth of a second at a loss of power instead.",
            units::time(measured.sync_ns_p50)
        ));
    }
    let slowest = measured.write_bytes_per_second.min(measured.read_bytes_per_second);
    if slowest < 192 << 20 {
        advice.push(
            "Until a new database has learned that this device is slower, its first minutes of \
             compactions may slow clients down. device_bandwidth sets the bandwidth, and ends the \
             learning."
                .to_owned(),
        );
    }
    advice
}

/// A file on the device. Dropping it removes it.
struct Probe {
    vfs: PosixVfs,
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    buffer: AlignedBuffer,
    interrupted: Arc<AtomicBool>,
}

impl Probe {
    fn begin(directory: &Path, interrupted: Arc<AtomicBool>) -> Result<Probe> {
        let vfs = PosixVfs::new();
        let path = directory.join(format!("sateen-bench-device.{}", std::process::id()));
        let file = vfs
            .open(&path, OpenOptions::CREATE.direct(true))
            .map_err(|error| Failure::file(&path, &error))?;
        let mut buffer = AlignedBuffer::with_capacity(LARGE_BYTES as usize);
        // Devices that compress or skip zeros would be measured as too fast.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for byte in buffer.whole_mut() {
            *byte = random(&mut state).to_le_bytes()[0];
        }
        Ok(Probe { vfs, path, file, buffer, interrupted })
    }

    fn measure(mut self, each: Duration) -> Result<Measured> {
        let direct = self.file.alignment() > 1;
        let (mut end, mut at) = (0, 0);
        let began = Instant::now();
        let writes = self.repeat("writing", each, |probe| {
            let write = probe.file.write_at(probe.buffer.whole(), at, IoClass::Client);
            at = (at + LARGE_BYTES) % FILE_BYTES_MAX;
            end = end.max(at);
            write
        })?;
        self.io(self.file.sync_data(IoClass::Client))?;
        let write_ns = began.elapsed().as_nanos();
        let syncs = self.repeat("syncing", each, |probe| {
            let small = probe.buffer.whole().get(..SMALL_BYTES as usize).unwrap_or_default();
            probe.file.write_at(small, 0, IoClass::Client)?;
            probe.file.sync_data(IoClass::Client)
        })?;
        // A file that has wrapped around is whole.
        let length =
            if writes.len() as u64 > FILE_BYTES_MAX / LARGE_BYTES { FILE_BYTES_MAX } else { end };
        let length = length.max(LARGE_BYTES);
        let mut at = 0;
        let began = Instant::now();
        let reads = self.repeat("reading", each, |probe| {
            let read = probe.file.read_at(probe.buffer.whole_mut(), at, IoClass::Client);
            at = if at + 2 * LARGE_BYTES > length { 0 } else { at + LARGE_BYTES };
            read.map(drop)
        })?;
        let read_ns = began.elapsed().as_nanos();
        let mut state = 1;
        let small_reads = self.repeat("reading at random", each, |probe| {
            let at = random(&mut state) % (length / SMALL_BYTES) * SMALL_BYTES;
            let whole = probe.buffer.whole_mut();
            let small = whole.get_mut(..SMALL_BYTES as usize).unwrap_or_default();
            probe.file.read_at(small, at, IoClass::Client).map(drop)
        })?;
        Ok(Measured {
            direct,
            write_bytes_per_second: rate(writes.len(), write_ns),
            sync_ns_p50: quantile(&syncs, 50),
            sync_ns_p99: quantile(&syncs, 99),
            read_bytes_per_second: rate(reads.len(), read_ns),
            read_4k_ns_p50: quantile(&small_reads, 50),
            read_4k_ns_p99: quantile(&small_reads, 99),
        })
    }

    /// Makes requests for a while, at least one. Returns their times, in ascending order.
    fn repeat(
        &mut self,
        what: &str,
        each: Duration,
        mut request: impl FnMut(&mut Probe) -> std::io::Result<()>,
    ) -> Result<Vec<u64>> {
        let _spinner = Progress::spinner(what);
        let mut times = Vec::new();
        let until = Instant::now() + each;
        while times.is_empty() || Instant::now() < until {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Failure::interrupted("interrupted: nothing was measured"));
            }
            let began = Instant::now();
            let done = request(self);
            self.io(done)?;
            times.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        times.sort_unstable();
        Ok(times)
    }

    fn io(&self, done: std::io::Result<()>) -> Result<()> {
        done.map_err(|error| Failure::file(&self.path, &error))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // A file that cannot be removed has a name that says what it is.
        let _gone = self.vfs.remove(&self.path);
    }
}

/// Returns the bytes a second of large requests.
fn rate(requests: usize, ns: u128) -> u64 {
    let bytes = requests as u128 * u128::from(LARGE_BYTES) * 1_000_000_000;
    u64::try_from(bytes / ns.max(1)).unwrap_or(u64::MAX)
}

fn quantile(ascending: &[u64], percent: usize) -> u64 {
    let at = ascending.len().saturating_sub(1) * percent / 100;
    ascending.get(at).copied().unwrap_or(0)
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_measurement_is_removed_whatever_happens() {
        let place = tempfile::tempdir().unwrap();
        let interrupted = Arc::new(AtomicBool::new(false));
        let probe = Probe::begin(place.path(), interrupted.clone()).unwrap();
        let measured = probe.measure(Duration::from_millis(5)).unwrap();
        assert!(measured.write_bytes_per_second > 0 && measured.read_bytes_per_second > 0);
        assert!(measured.sync_ns_p50 <= measured.sync_ns_p99 && measured.read_4k_ns_p50 > 0);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        interrupted.store(true, Ordering::Relaxed);
        let probe = Probe::begin(place.path(), interrupted).unwrap();
        assert_eq!(probe.measure(Duration::from_millis(5)).unwrap_err().code, 130);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn advice_follows_what_was_measured() {
        let fast = Measured {
            direct: true,
            write_bytes_per_second: 1 << 30,
            read_bytes_per_second: 1 << 30,
            sync_ns_p50: 100_000,
            ..Measured::default()
        };
        assert_eq!(advice(&fast).len(), 1);
        let slow = Measured { sync_ns_p50: 8_000_000, write_bytes_per_second: 50 << 20, ..fast };
        let text = advice(&slow).join("\n");
        assert!(text.contains("wal=interval") && text.contains("device_bandwidth"), "{text}");
        let cached = Measured { direct: false, ..fast };
        assert!(advice(&cached).join("\n").contains("direct_reads"));
    }
}
