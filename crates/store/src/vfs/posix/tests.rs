//! Tests of the real file system, in a temporary directory beside the build, so that direct I/O is
//! real.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::lock::{Claim, PosixLock};
use super::*;
use proptest::prelude::*;
use tempfile::TempDir;

const CLASS: IoClass = IoClass::Client;

/// A directory on disk, beside this program, because /tmp may be a tmpfs.
fn directory() -> TempDir {
    TempDir::new_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

fn create(path: &Path) -> Arc<dyn VfsFile> {
    PosixVfs.open(path, OpenOptions::CREATE).unwrap()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + n / 251) as u8).collect()
}

fn filled(bytes: &[u8]) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::with_capacity(bytes.len());
    buffer.extend_from_slice(bytes);
    buffer
}

#[test]
fn reads_stop_at_the_end_of_the_file_and_nowhere_else() {
    let dir = directory();
    let path = dir.path().join("f");
    let data = pattern(10_000);
    create(&path).write_at(&data, 0, CLASS).unwrap();
    for direct in [false, true] {
        let file = PosixVfs.open(&path, OpenOptions::READ.direct(direct)).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        // Aligned, and an aligned request that the end of the file cuts short.
        let mut buffer = AlignedBuffer::with_capacity(16_384);
        assert_eq!(buffer.fill_from(&*file, 4096, 4096, CLASS).unwrap(), 4096);
        assert_eq!(buffer.as_slice(), &data[4096..8192]);
        assert_eq!(buffer.fill_from(&*file, 0, 16_384, CLASS).unwrap(), 10_000);
        assert_eq!(buffer.as_slice(), &data[..]);
        assert_eq!(buffer.fill_from(&*file, 12_288, 4096, CLASS).unwrap(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_range_reads_the_same_buffered_and_direct(
        len in 0usize..200_000,
        offset in 0u64..210_000,
        wanted in 0usize..150_000,
        shift in 0usize..4,
    ) {
        let dir = directory();
        let path = dir.path().join("f");
        let data = pattern(len);
        create(&path).write_at(&data, 0, CLASS).unwrap();
        let start = (offset as usize).min(len);
        let expected = &data[start..(start + wanted).min(len)];
        for direct in [false, true] {
            let file = PosixVfs.open(&path, OpenOptions::READ.direct(direct)).unwrap();
            let mut buffer = vec![0xEE; wanted + shift];
            let got = file.read_at(&mut buffer[shift..], offset, CLASS).unwrap();
            prop_assert_eq!(&buffer[shift..shift + got], expected);
        }
    }
}

#[test]
fn direct_writes_must_be_aligned_and_are_read_back() {
    let dir = directory();
    let path = dir.path().join("f");
    let file = PosixVfs.open(&path, OpenOptions::CREATE.direct(true)).unwrap();
    assert!(file.alignment() >= 512, "the build lies on a disk");
    let data = pattern(1 << 20);
    let buffer = filled(&data);
    file.write_at(&buffer, 0, CLASS).unwrap();
    file.sync_data(CLASS).unwrap();
    for (bytes, offset) in [(&buffer[..4095], 0), (&buffer[1..4097], 0), (&buffer[..4096], 512)] {
        let error = file.write_at(bytes, offset, CLASS).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("multiple of 4096"), "{error}");
    }
    let mut back = vec![0; data.len()];
    PosixVfs.open(&path, OpenOptions::READ).unwrap().read_exact_at(&mut back, 0, CLASS).unwrap();
    assert_eq!(back, data);
}

#[test]
fn direct_falls_back_to_buffered_in_memory() {
    let Ok(dir) = TempDir::new_in("/dev/shm") else {
        eprintln!("SKIPPED(no /dev/shm)");
        return;
    };
    let path = dir.path().join("f");
    let file = PosixVfs.open(&path, OpenOptions::CREATE.direct(true)).unwrap();
    assert_eq!(file.alignment(), 1);
    file.write_at(b"unaligned", 3, CLASS).unwrap();
    assert_eq!(file.len().unwrap(), 12);
}

#[test]
fn open_creates_only_what_is_new() {
    let dir = directory();
    let path = dir.path().join("f");
    let kind = |options| PosixVfs.open(&path, options).map(drop).unwrap_err().kind();
    assert_eq!(kind(OpenOptions::READ), io::ErrorKind::NotFound);
    drop(create(&path));
    assert_eq!(kind(OpenOptions::CREATE), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(OpenOptions::CREATE.direct(true)), io::ErrorKind::AlreadyExists);
    let read_only = PosixVfs.open(&path, OpenOptions::READ).unwrap();
    assert!(read_only.write_at(b"x", 0, CLASS).is_err());
    assert!(read_only.is_empty().unwrap());
}

#[test]
fn a_punched_range_is_zero_and_its_blocks_are_free() {
    let dir = directory();
    let path = dir.path().join("f");
    let file = create(&path);
    file.write_at(&pattern(64 << 10), 0, CLASS).unwrap();
    file.sync_data(CLASS).unwrap();
    let blocks = || fs::metadata(&path).unwrap().blocks();
    let before = blocks();
    if let Err(error) = file.punch_hole(4096, 32 << 10, CLASS) {
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        eprintln!("SKIPPED(the file system cannot punch holes)");
        return;
    }
    assert_eq!(before - blocks(), (32 << 10) / 512);
    assert_eq!(file.len().unwrap(), 64 << 10);
    let mut expected = pattern(64 << 10);
    expected[4096..4096 + (32 << 10)].fill(0);
    let mut back = vec![1; 64 << 10];
    file.read_exact_at(&mut back, 0, CLASS).unwrap();
    assert_eq!(back, expected);
    file.punch_hole(0, 0, CLASS).unwrap();
}

#[test]
fn preallocation_and_write_back_change_no_byte_and_no_length() {
    let dir = directory();
    let path = dir.path().join("f");
    let file = create(&path);
    file.preallocate(0, 1 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 0);
    file.write_at(&pattern(5000), 0, CLASS).unwrap();
    file.start_writeback(0, 5000).unwrap();
    file.start_writeback(0, 0).unwrap();
    file.finish_writeback(0, 5000, CLASS).unwrap();
    file.finish_writeback(0, 0, CLASS).unwrap();
    assert_eq!(fs::read(&path).unwrap(), pattern(5000));
    file.truncate(10_000).unwrap();
    assert_eq!(file.len().unwrap(), 10_000);
    file.truncate(100).unwrap();
    assert_eq!(fs::read(&path).unwrap(), pattern(100));
}

#[test]
fn names_are_made_moved_listed_and_removed() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    let vfs = PosixVfs;
    create(&at("b")).write_at(b"bb", 0, CLASS).unwrap();
    vfs.create_dir_all(&at("x/y")).unwrap();
    vfs.hard_link(&at("b"), &at("B")).unwrap();
    vfs.rename(&at("b"), &at("a")).unwrap();
    vfs.sync_dir(dir.path()).unwrap();
    assert_eq!(vfs.list(dir.path()).unwrap(), ["B", "a", "x"].map(PathBuf::from));
    assert_eq!(fs::read(at("B")).unwrap(), b"bb");
    assert_eq!(vfs.hard_link(&at("a"), &at("B")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(vfs.exists(&at("x")).unwrap() && vfs.exists(&at("a")).unwrap());
    assert!(!vfs.exists(&at("b")).unwrap() && !vfs.exists(&at("a/below")).unwrap());
    assert_eq!(vfs.remove_dir(&at("x")).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
    vfs.remove_dir(&at("x/y")).unwrap();
    vfs.remove_dir(&at("x")).unwrap();
    vfs.remove(&at("a")).unwrap();
    vfs.remove(&at("B")).unwrap();
    assert!(vfs.list(dir.path()).unwrap().is_empty());
    assert!(vfs.free_space(dir.path()).unwrap() > 0);
}

#[test]
fn a_clone_has_the_contents_or_leaves_nothing() {
    let dir = directory();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    create(&from).write_at(&pattern(9000), 0, CLASS).unwrap();
    match PosixVfs.clone_file(&from, &to) {
        Ok(()) => assert_eq!(fs::read(&to).unwrap(), pattern(9000)),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
            assert!(!PosixVfs.exists(&to).unwrap());
        }
    }
}

#[test]
fn the_lock_is_exclusive_within_the_process_and_comes_back_on_drop() {
    let dir = directory();
    let path = dir.path().join("LOCK");
    let held = PosixVfs.lock(&path).unwrap();
    assert_eq!(PosixVfs.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    // Another name of the same file is the same lock.
    fs::hard_link(&path, dir.path().join("other")).unwrap();
    let other = PosixVfs.lock(&dir.path().join("other"));
    assert_eq!(other.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(held);
    drop(PosixVfs.lock(&path).unwrap());
    PosixVfs.lock(&path).unwrap();
}

/// If `flock` does not see a second open of this process, the claim does.
#[test]
fn a_claim_is_exclusive_until_dropped() {
    let dir = directory();
    let open = |name: &str| {
        let path = dir.path().join(name);
        Arc::new(OwnedFd::from(
            fs::OpenOptions::new().append(true).create(true).open(path).unwrap(),
        ))
    };
    let held = Claim::take(&open("a")).unwrap();
    assert_eq!(Claim::take(&open("a")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    Claim::take(&open("b")).unwrap();
    drop(held);
    Claim::take(&open("a")).unwrap();
}

/// A file system gives the inode number of a removed lock file to the next one as soon as the
/// removed one is closed.
#[test]
fn no_lock_file_is_taken_for_a_removed_one() {
    let dir = directory();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                for round in 0..1000 {
                    let path = dir.join(format!("{thread}-{round}"));
                    let held = PosixVfs.lock(&path).unwrap();
                    fs::remove_file(&path).unwrap();
                    drop(held);
                }
            });
        }
    });
}

#[test]
fn the_lock_is_exclusive_between_processes() {
    let dir = directory();
    let path = dir.path().join("LOCK");
    let held = PosixVfs.lock(&path).unwrap();
    let try_elsewhere = || {
        Command::new("flock").args(["--nonblock", "--exclusive"]).arg(&path).arg("true").status()
    };
    let Ok(status) = try_elsewhere() else {
        eprintln!("SKIPPED(no flock command)");
        return;
    };
    assert!(!status.success(), "another process took a lock that is held");
    drop(held);
    assert!(try_elsewhere().unwrap().success());
}

#[test]
fn a_poisoned_handle_refuses_writes_and_syncs_but_reads() {
    let dir = directory();
    let file = create(&dir.path().join("f"));
    file.write_at(b"before", 0, CLASS).unwrap();
    file.poison();
    assert!(file.write_at(b"after", 0, CLASS).is_err());
    assert!(file.sync_data(CLASS).is_err());
    assert!(file.truncate(0).is_err());
    let mut buffer = [0; 6];
    file.read_exact_at(&mut buffer, 0, CLASS).unwrap();
    assert_eq!(&buffer, b"before");
}

/// A promise of the interface, not a measurement: the kernel counts, not a clock.
#[test]
fn a_whole_read_is_one_system_call() {
    let dir = directory();
    let path = dir.path().join("f");
    create(&path).write_at(&pattern(1 << 20), 0, CLASS).unwrap();
    let calls = || {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    if fs::metadata("/proc/thread-self/io").is_err() {
        eprintln!("SKIPPED(no per-thread I/O counters)");
        return;
    }
    let between = {
        let before = calls();
        calls() - before
    };
    for direct in [false, true] {
        let file = PosixVfs.open(&path, OpenOptions::READ.direct(direct)).unwrap();
        let mut buffer = AlignedBuffer::with_capacity(64 << 10);
        buffer.set_len(64 << 10);
        let before = calls();
        for n in 0..10 {
            file.read_at(buffer.as_mut_slice(), n * 4096, CLASS).unwrap();
        }
        assert_eq!(calls() - before - between, 10, "direct: {direct}");
    }
}

#[test]
fn a_lock_is_given_back_even_if_a_child_was_forked_meanwhile() {
    let dir = directory();
    let path = dir.path().join("LOCK");
    let held = PosixLock::take(&path).unwrap();
    assert_eq!(PosixLock::take(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    // What a child has between its fork and its exec: the same open file.
    let inherited = held.fd.try_clone().unwrap();
    drop(held);
    drop(PosixLock::take(&path).unwrap());
    drop(inherited);
}

/// Directories of /proc have no fsync (EINVAL), and /dev/null has neither holes nor writeback.
#[test]
fn missing_features_of_a_file_system_are_ignored_or_reported() {
    PosixVfs.sync_dir(Path::new("/proc/self")).unwrap();
    let null = PosixVfs.open(Path::new("/dev/null"), OpenOptions::WRITE).unwrap();
    null.start_writeback(0, 4096).unwrap();
    null.finish_writeback(0, 4096, CLASS).unwrap();
    let refused = null.punch_hole(0, 4096, CLASS).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::Unsupported, "{refused}");
    let missing = PosixVfs.sync_dir(Path::new("/nowhere")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}
