//! Real file systems in files: made, mounted through loop devices, cloned as a power failure would
//! leave them, and taken down again whatever happens. They need root.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sateen::vfs::{PosixVfs, Vfs};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    pub(crate) const ALL: [FileSystem; 2] = [FileSystem::Xfs, FileSystem::Ext4];

    pub(crate) fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }

    /// XFS has no smaller ones.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            FileSystem::Ext4 => 64 << 20,
            FileSystem::Xfs => 300 << 20,
        }
    }

    /// Makes one in a new file.
    pub(crate) fn make(self, image: &Path, bytes: u64) {
        std::fs::File::create_new(image).unwrap().set_len(bytes).unwrap();
        let mut command = Command::new(format!("mkfs.{}", self.name()));
        match self {
            // Nothing is set up in the background later, and nothing is kept for root.
            FileSystem::Ext4 => {
                command.args(["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0"]);
            }
            FileSystem::Xfs => {
                command.args(["-q", "-m", "reflink=1"]);
            }
        }
        run(command.arg(image)).unwrap();
    }
}

/// What is missing for file systems in files, if anything is.
pub(crate) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".into());
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("needs loop devices".into());
    }
    let tools = ["mkfs.ext4", "mkfs.xfs", "xfs_io", "mount", "umount", "losetup"];
    if let Some(tool) =
        tools.into_iter().find(|tool| Command::new(tool).arg("-V").output().is_err())
    {
        return Some(format!("needs {tool}"));
    }
    forget_the_dead();
    // A container may be root and yet not mount.
    let place = Place::new();
    let image = place.path().join("try.img");
    FileSystem::Xfs.make(&image, FileSystem::Xfs.bytes());
    let mounted = Mount::try_new(FileSystem::Xfs, &image, &place.path().join("try"), "");
    mounted.err().map(|error| format!("can't mount XFS from a file: {error}"))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output().map_err(|e| io::Error::other(format!("{command:?}: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{command:?}: {said}")))
}

const PREFIX: &str = "sateen-file-systems-of-";
/// So much is free where images stand in memory.
const MEMORY_BYTES_MIN: u64 = 4 << 30;

/// Where images stand: in memory if there is enough, so that a disk that others use does not decide
/// how many there are in a minute. What a file system has written to its image and what not is the
/// same in both. `SATEEN_REL_IMAGES` names another folder.
fn base() -> PathBuf {
    if let Some(path) = std::env::var_os("SATEEN_REL_IMAGES") {
        return path.into();
    }
    let memory = Path::new("/dev/shm");
    match PosixVfs::new().free_space(memory) {
        Ok(bytes) if bytes >= MEMORY_BYTES_MIN => memory.to_owned(),
        _ => env!("CARGO_TARGET_TMPDIR").into(),
    }
}

/// A folder for images and the places where they are mounted. Its name has the process in it, so
/// that what a killed one has left is found.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let mut builder = tempfile::Builder::new();
        Place(builder.prefix(&prefix).tempdir_in(base()).unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Of our folders those that are mounted below, the innermost first.
fn mounted() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let ours = base().join(PREFIX);
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    places.filter(|at| at.starts_with(ours.to_str().unwrap())).map(PathBuf::from).rev().collect()
}

/// Takes down what processes have left that were killed.
fn forget_the_dead() {
    let alive = |name: &str| {
        let id = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        id.is_none_or(|id| Path::new("/proc").join(id).exists())
    };
    let base = base();
    for at in mounted() {
        let name = at.strip_prefix(&base).unwrap().components().next().unwrap();
        if !alive(name.as_os_str().to_str().unwrap()) {
            let _gone = run(Command::new("umount").arg("-l").arg(&at));
        }
    }
    for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
        if !alive(&entry.file_name().to_string_lossy()) {
            let _gone = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Fails if this process has anything mounted still: a suite has taken down what it put up.
pub(crate) fn assert_nothing_is_mounted() {
    let own = format!("{PREFIX}{}-", std::process::id());
    let left: Vec<_> =
        mounted().into_iter().filter(|at| at.to_string_lossy().contains(&own)).collect();
    assert!(left.is_empty(), "still mounted: {left:?}");
    let loops =
        Command::new("losetup").args(["--list", "--noheadings", "-O", "BACK-FILE"]).output();
    let loops = String::from_utf8(loops.unwrap().stdout).unwrap();
    let left: Vec<_> = loops.lines().filter(|file| file.contains(&own)).collect();
    assert!(left.is_empty(), "still loop devices: {left:?}");
}

/// A mounted image; unmounted, and its loop device free, when this is dropped.
pub(crate) struct Mount {
    at: PathBuf,
    image: PathBuf,
}

impl Mount {
    fn try_new(kind: FileSystem, image: &Path, at: &Path, options: &str) -> io::Result<Mount> {
        std::fs::create_dir_all(at)?;
        // A clone has the identity of what it is a clone of, which may be mounted, too.
        let own = match kind {
            FileSystem::Ext4 => "loop,noatime",
            FileSystem::Xfs => "loop,noatime,nouuid",
        };
        let options = format!("{own},{options}");
        let mut command = Command::new("mount");
        command.args(["-t", kind.name(), "-o", options.trim_end_matches(',')]);
        run(command.arg(image).arg(at))?;
        Ok(Mount { at: at.to_owned(), image: image.to_owned() })
    }

    pub(crate) fn new(kind: FileSystem, image: &Path, at: &Path, options: &str) -> Mount {
        Mount::try_new(kind, image, at, options)
            .unwrap_or_else(|error| panic!("{} cannot be mounted: {error}", image.display()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.at
    }

    /// The file system's own end: nothing reaches its image any more. With `flush_log` what is in
    /// the memory of its journal still does.
    pub(crate) fn shut_down(&self, flush_log: bool) {
        let act = if flush_log { "shutdown -f" } else { "shutdown" };
        let mut command = Command::new("xfs_io");
        run(command.args(["-F", "-x", "-c", act]).arg(&self.at)).unwrap();
    }

    /// What would be there if the power failed now: a clone of the image's file, taken at one
    /// moment, without what the file system has only in memory.
    pub(crate) fn clone_to(&self, clone: &Path) {
        PosixVfs::new().clone_file(&self.image, clone).unwrap();
    }

    /// Unmounts, and fails if that is not possible.
    pub(crate) fn unmount(mut self) {
        let at = std::mem::take(&mut self.at);
        unmount(&at).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// What was killed may take a moment to let go of its files.
fn unmount(at: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        let Err(error) = run(Command::new("umount").arg(at)) else { return Ok(()) };
        tries += 1;
        if tries == 200 {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.at.as_os_str().is_empty() {
            return;
        }
        if let Err(error) = unmount(&self.at) {
            eprintln!("{error}");
            let _detached = run(Command::new("umount").arg("-l").arg(&self.at));
        }
    }
}

/// An XFS whose files can be cloned, for images of file systems.
pub(crate) struct Host {
    // In this order: unmounted, then removed.
    mount: Mount,
    _place: Place,
}

impl Host {
    pub(crate) fn new() -> Host {
        let place = Place::new();
        let image = place.path().join("host.img");
        FileSystem::Xfs.make(&image, 8 << 30);
        // What clones took is given back to the disk below.
        let mount = Mount::new(FileSystem::Xfs, &image, &place.path().join("host"), "discard");
        for kind in FileSystem::ALL {
            kind.make(&mount.path().join(kind.name()), kind.bytes());
        }
        Host { mount, _place: place }
    }

    /// A new file system of this kind, as an image in a folder of its own.
    pub(crate) fn new_image(&self, kind: FileSystem, name: &str) -> PathBuf {
        let folder = self.mount.path().join(format!("{name}-{}", kind.name()));
        std::fs::create_dir(&folder).unwrap();
        let image = folder.join("image");
        PosixVfs::new().clone_file(&self.mount.path().join(kind.name()), &image).unwrap();
        image
    }
}
