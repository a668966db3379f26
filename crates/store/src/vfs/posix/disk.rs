//! Which disk a path is on. Partitions of one disk, and a volume on a single one, count as that
//! disk, as their requests queue in one place.

use std::fs;
use std::path::{Path, PathBuf};

use super::retry;

/// The most layers of volumes that are looked through.
const LAYERS_MAX: usize = 8;

/// Returns the number of the disk of `path`. Where the system tells no more, it is that of the file
/// system.
pub(super) fn of(path: &Path) -> Option<u64> {
    let number = retry(|| rustix::fs::stat(path)).ok()?.st_dev;
    Some(below(Path::new("/sys/dev/block"), number))
}

/// Returns the number of the disk below the block device `number`, as `devices` describes it.
fn below(devices: &Path, mut number: u64) -> u64 {
    for _ in 0..LAYERS_MAX {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let Ok(device) = fs::canonicalize(devices.join(format!("{major}:{minor}"))) else { break };
        let next = whole(&device).or_else(|| only_member(&device));
        match next.and_then(|device| number_of(&device)) {
            Some(next) if next != number => number = next,
            _ => break,
        }
    }
    number
}

/// Returns the disk of a partition.
fn whole(device: &Path) -> Option<PathBuf> {
    device.join("partition").exists().then(|| device.parent().map(Path::to_owned))?
}

/// Returns the device below a volume that is on a single one.
fn only_member(device: &Path) -> Option<PathBuf> {
    let mut members = fs::read_dir(device.join("slaves")).ok()?.flatten();
    let first = members.next()?;
    if members.next().is_some() { None } else { fs::canonicalize(first.path()).ok() }
}

/// Returns the number of a device.
fn number_of(device: &Path) -> Option<u64> {
    let text = fs::read_to_string(device.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a device of the system's directory of devices.
    fn device(root: &Path, name: &str, number: &str) -> PathBuf {
        let path = root.join(name);
        fs::create_dir_all(path.join("slaves")).unwrap();
        fs::write(path.join("dev"), format!("{number}\n")).unwrap();
        fs::create_dir_all(root.join("numbers")).unwrap();
        std::os::unix::fs::symlink(&path, root.join("numbers").join(number)).unwrap();
        path
    }

    #[test]
    fn a_volume_on_a_partition_is_its_disk_and_one_on_two_is_itself() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        device(&root, "sda", "8:0");
        let partition = device(&root, "sda/sda1", "8:1");
        fs::write(partition.join("partition"), "1").unwrap();
        let volume = device(&root, "dm-0", "253:0");
        std::os::unix::fs::symlink(&partition, volume.join("slaves/sda1")).unwrap();
        let number = |major, minor| rustix::fs::makedev(major, minor);
        let numbers = root.join("numbers");
        assert_eq!(below(&numbers, number(8, 1)), number(8, 0));
        assert_eq!(below(&numbers, number(253, 0)), number(8, 0));
        device(&root, "sdb", "8:16");
        std::os::unix::fs::symlink(root.join("sdb"), volume.join("slaves/sdb")).unwrap();
        assert_eq!(below(&numbers, number(253, 0)), number(253, 0), "a stripe over two");
        assert_eq!(below(&numbers, number(7, 7)), number(7, 7), "not described");
    }

    #[test]
    fn files_of_one_file_system_are_on_one_disk() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert!(of(&inner).is_some());
        assert_eq!(of(&inner), of(directory.path()));
        assert_eq!(of(&directory.path().join("absent")), None);
    }
}
