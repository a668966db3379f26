//! The file DEVICE: the speeds of the device as last measured, so that the next open need not
//! measure them from nothing.
//!
//! What must stay true: the file is a hint. A database works without it, and with a damaged one. It
//! is replaced whole, and never synced.

use std::io;
use std::path::Path;

use sateen_control::DeviceProfile;

use super::{FileName, checked_text};
use crate::vfs::{IoClass, OpenOptions, Vfs};

/// Name of the file while it is written.
pub(super) const TEMPORARY: &str = "DEVICE.tmp";
const FIRST_LINE: &str = "sateen device 1";

fn to_text(profile: &DeviceProfile) -> String {
    let DeviceProfile { read_bytes_per_second, write_bytes_per_second, barrier_ns } = profile;
    checked_text::seal(&format!(
        "{FIRST_LINE}\nread {read_bytes_per_second}\nwrite {write_bytes_per_second}\n\
         barrier {barrier_ns}\n"
    ))
}

fn parse(bytes: &[u8]) -> Option<DeviceProfile> {
    let covered = checked_text::unseal(bytes)?;
    let mut lines = covered.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?.lines();
    let mut line = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    Some(DeviceProfile {
        read_bytes_per_second: line("read")?,
        write_bytes_per_second: line("write")?,
        barrier_ns: line("barrier")?,
    })
}

/// Returns the profile in the file, if the file exists and its checksum is right.
pub fn read(vfs: &dyn Vfs, directory: &Path) -> Option<DeviceProfile> {
    parse(&checked_text::read(vfs, &FileName::Device.path(directory)).ok()?)
}

/// Replaces the file.
pub fn write(vfs: &dyn Vfs, directory: &Path, profile: &DeviceProfile) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY);
    // An earlier attempt may have been interrupted.
    let _none_there = vfs.remove(&temporary);
    let replace = || {
        let file = vfs.open(&temporary, OpenOptions::CREATE)?;
        file.write_at(to_text(profile).as_bytes(), 0, IoClass::Manifest)?;
        vfs.rename(&temporary, &FileName::Device.path(directory))
    };
    let replaced = replace();
    if replaced.is_err() {
        let _orphan = vfs.remove(&temporary);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::MemVfs;

    #[test]
    fn a_profile_is_read_back_and_a_damaged_one_is_ignored() {
        let vfs = MemVfs::new();
        let directory = Path::new("db");
        vfs.create_dir_all(directory).unwrap();
        assert_eq!(read(&vfs, directory), None);
        for n in 1..=2 {
            let profile = DeviceProfile {
                read_bytes_per_second: n * 100_000_000,
                write_bytes_per_second: u64::MAX,
                barrier_ns: 1,
            };
            write(&vfs, directory, &profile).unwrap();
            assert_eq!(read(&vfs, directory), Some(profile));
        }
        let text = checked_text::read(&vfs, &FileName::Device.path(directory)).unwrap();
        for i in 0..text.len() {
            let mut damaged = text.clone();
            damaged[i] ^= 1;
            assert_eq!(parse(&damaged), None, "byte {i}");
            assert_eq!(parse(&text[..i]), None, "{i} bytes");
        }
    }
}
