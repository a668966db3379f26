//! Figures of the operating system about this process: processor time, memory, disk traffic.

use std::path::Path;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

/// Processor time of the whole process so far, in nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Processor time of the calling thread so far, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Bytes that this process moved to and from storage (page cache write-back included).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl DiskBytes {
    /// Returns the traffic up to now.
    pub(crate) fn now() -> DiskBytes {
        let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        DiskBytes {
            read: field(&text, "read_bytes:"),
            written: field(&text, "write_bytes:")
                .saturating_sub(field(&text, "cancelled_write_bytes:")),
        }
    }

    /// Returns the traffic since `earlier`.
    pub(crate) fn since(self, earlier: DiskBytes) -> DiskBytes {
        DiskBytes {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

/// Returns the processor time of all processes of this system since its start, in milliseconds; 0
/// if the system does not tell.
pub(crate) fn busy_ms() -> u64 {
    busy_ticks(&std::fs::read_to_string("/proc/stat").unwrap_or_default()) * TICK_MS
}

/// Returns the ticks of `/proc/stat` in which a processor ran something: user, nice, system,
/// interrupts.
fn busy_ticks(stat: &str) -> u64 {
    let all = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks = all.map(|word| word.parse::<u64>().unwrap_or(0));
    // Fields 3 and 4 are idle time and waits for I/O.
    ticks.take(7).enumerate().filter(|(at, _)| ![3, 4].contains(at)).map(|(_, n)| n).sum()
}

/// A clock tick of the kernel in user space: a hundredth of a second.
const TICK_MS: u64 = 10;

/// Returns the processor time that the host has given to other guests since the start, in
/// milliseconds; 0 if the system does not tell.
pub(crate) fn stolen_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let steal = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
    steal.unwrap_or(0) * TICK_MS
}

/// Returns the current and the peak resident memory, in bytes.
pub(crate) fn memory() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (field(&text, "VmRSS:") * 1024, field(&text, "VmHWM:") * 1024)
}

/// Resets the peak of the resident memory; false if the kernel does not allow it.
pub(crate) fn reset_peak_memory() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn field(text: &str, label: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(label))
        .and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Returns the bytes that the files below `directory` occupy on disk.
pub(crate) fn directory_bytes(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            if metadata.is_dir() {
                return Some(directory_bytes(&entry.path()));
            }
            Some(metadata.blocks() * 512)
        })
        .sum()
}

/// The machine, for the report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: usize,
    /// The processor's name.
    pub cpu: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
}

impl Machine {
    /// Describes this machine.
    pub(crate) fn this() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpu_info = read("/proc/cpuinfo");
        let cpu = cpu_info.lines().find_map(|line| line.strip_prefix("model name"));
        Machine {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu.unwrap_or_default().trim_start_matches([' ', '\t', ':']).to_owned(),
            memory_bytes: field(&read("/proc/meminfo"), "MemTotal:") * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_label() {
        let text = "VmPeak:\t 10 kB\nVmHWM:\t  2048 kB\nVmRSS:\t1024 kB\n";
        assert_eq!(
            (field(text, "VmHWM:"), field(text, "VmRSS:"), field(text, "x")),
            (2048, 1024, 0)
        );
    }

    #[test]
    fn busy_ticks_leave_out_idle_time_and_what_the_host_took() {
        let stat = "cpu  100 20 3 5000 700 4 5 60 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy_ticks(stat), 100 + 20 + 3 + 4 + 5);
        assert_eq!(busy_ticks(""), 0);
    }

    #[test]
    fn this_process_has_memory_time_and_a_machine() {
        let (now, peak) = memory();
        assert!(now > 0 && peak >= now);
        let before = thread_cpu_ns();
        let busy = (0..2_000_000u64).fold(0u64, |sum, i| sum.wrapping_mul(31).wrapping_add(i));
        assert!(thread_cpu_ns() > before, "{busy}");
        assert!(process_cpu_ns() >= thread_cpu_ns());
        let machine = Machine::this();
        assert!(machine.cpus > 0 && machine.memory_bytes > 1 << 20);
    }

    #[test]
    fn a_directory_counts_what_its_files_occupy() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("deep")).unwrap();
        std::fs::write(directory.path().join("deep/file"), vec![1u8; 100_000]).unwrap();
        let bytes = directory_bytes(directory.path());
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert_eq!(directory_bytes(Path::new("/nonexistent")), 0);
    }
}
