//! The limited device: a file system on a loop device that the kernel throttles, and a cgroup that
//! limits the memory of the process that uses it.
//!
//! It takes root, and the controllers memory and io of cgroup v2, or memory and blkio of v1. What
//! is made is taken away when the value is dropped. What an earlier process left, because it was
//! killed, is taken away first. Version 2 limits the device for the group; version 1 for everybody,
//! because it cannot tell whose write-back it is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the controllers are.
const CGROUP: &str = "/sys/fs/cgroup";
/// The name of the group, and of the folder on the disk below.
const NAME: &str = "sateen-figure";

/// A limited device that is mounted.
pub(super) struct Device {
    home: PathBuf,
    group: PathBuf,
    second: bool,
}

impl Device {
    /// True if this process may make one.
    pub(super) fn is_allowed() -> bool {
        fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) && controllers().is_some()
    }

    /// Makes a device of `disk_gb` whose file is in `disk`, and limits memory to `memory_gb`.
    pub(super) fn up(disk: &Path, disk_gb: u32, memory_gb: u32) -> Result<Device, String> {
        let second = controllers().ok_or("no cgroup with limits of memory and devices")?;
        let group = if second {
            Path::new(CGROUP).join(NAME)
        } else {
            Path::new(CGROUP).join("memory").join(NAME)
        };
        let device = Device { home: disk.join(NAME), group, second };
        device.down();
        device.make(disk_gb, memory_gb)?;
        Ok(device)
    }

    fn make(&self, disk_gb: u32, memory_gb: u32) -> Result<(), String> {
        if self.second {
            write(&Path::new(CGROUP).join("cgroup.subtree_control"), "+io +memory")?;
        }
        fs::create_dir_all(self.mount()).map_err(|error| self.failed(&error))?;
        fs::create_dir_all(&self.group).map_err(|error| self.failed(&error))?;
        let image = self.home.join("image");
        let file = fs::File::create(&image).map_err(|error| self.failed(&error))?;
        file.set_len(u64::from(disk_gb) << 30).map_err(|error| self.failed(&error))?;
        let image = image.display().to_string();
        let attach =
            ["--direct-io=on", "--sector-size", "4096", "-f", "--show", &image].map(str::to_owned);
        let loop_device = output("losetup", &attach)?;
        fs::write(self.home.join("loop"), &loop_device).map_err(|error| self.failed(&error))?;
        let lazy = "-q -F -E lazy_itable_init=0,lazy_journal_init=0";
        output("mkfs.ext4", &words(lazy, &[&loop_device]))?;
        let mount = self.mount().display().to_string();
        output("mount", &words("-o discard,noatime", &[&loop_device, &mount]))?;
        let (limit, bytes) = if self.second {
            ("memory.max", format!("{memory_gb}G"))
        } else {
            ("memory.limit_in_bytes", format!("{memory_gb}G"))
        };
        write(&self.group.join(limit), &bytes)
    }

    /// The folder in which the file system is.
    pub(super) fn mount(&self) -> PathBuf {
        self.home.join("mnt")
    }

    /// The file to which a process writes its number to be limited.
    pub(super) fn group(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }

    /// Limits reads and writes to this many MB/s each, or not at all.
    pub(super) fn limit(&self, mb_per_second: Option<u32>) -> Result<(), String> {
        let loop_device = self.loop_device().ok_or("the loop device is gone")?;
        let device = fs::metadata(&loop_device).map_err(|error| self.failed(&error))?.rdev();
        // As in the kernel's `new_encode_dev`, for the small numbers of loop devices.
        let number = format!("{}:{}", device >> 8 & 0xfff, device & 0xff);
        let bytes = mb_per_second.map(|mb| u64::from(mb) * 1_000_000);
        if self.second {
            let bytes = bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
            return write(
                &self.group.join("io.max"),
                &format!("{number} rbps={bytes} wbps={bytes}"),
            );
        }
        let line = format!("{number} {}", bytes.unwrap_or(0));
        ["read", "write"].into_iter().try_for_each(|kind| {
            let file = format!("blkio/blkio.throttle.{kind}_bps_device");
            write(&Path::new(CGROUP).join(file), &line)
        })
    }

    fn loop_device(&self) -> Option<String> {
        let name = fs::read_to_string(self.home.join("loop")).ok()?;
        Some(name.trim().to_owned())
    }

    /// Takes away what is there. Every step is tried, whatever became of those before.
    fn down(&self) {
        if let Some(loop_device) = self.loop_device() {
            let _unlimited = self.limit(None);
            let _unmounted = output("umount", &[self.mount().display().to_string()]);
            let _detached = output("losetup", &words("-d", &[&loop_device]));
        }
        let _no_files = fs::remove_dir_all(&self.home);
        let _no_group = fs::remove_dir(&self.group);
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", self.home.display())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.down();
    }
}

/// Returns whether the controllers are those of version 2; `None` if there are none.
fn controllers() -> Option<bool> {
    let root = Path::new(CGROUP);
    if root.join("cgroup.controllers").exists() {
        return Some(true);
    }
    (root.join("memory").is_dir() && root.join("blkio").is_dir()).then_some(false)
}

fn words(first: &str, rest: &[&str]) -> Vec<String> {
    first.split(' ').chain(rest.iter().copied()).map(str::to_owned).collect()
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {text:?}: {error}", file.display()))
}

/// Runs a program and returns what it printed, without the last line end.
fn output(program: &str, words: &[String]) -> Result<String, String> {
    let done = Command::new(program).args(words).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{program} {}: {}", words.join(" "), said.trim()));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
