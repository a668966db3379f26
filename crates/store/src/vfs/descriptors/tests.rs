//! Tests of the pool: every read is right, the limit holds once no read runs, and files in use stay
//! open.

use std::path::PathBuf;

use super::*;
use crate::base::clock::VirtualTime;
use crate::vfs::{Fault, FaultRule, FaultVfs, MemVfs, MeteredVfs, VfsOperation};

const CLASS: IoClass = IoClass::Client;

/// Counts the open files of `inner`.
#[derive(Clone, Debug)]
struct Counting {
    inner: MemVfs,
    open: Arc<AtomicUsize>,
    limit: Option<u64>,
}

#[derive(Debug)]
struct Counted {
    inner: Arc<dyn VfsFile>,
    open: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl VfsFile for Counted {
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.inner.write_at(bytes, offset, class)
    }
    crate::pass_on! {
        inner: read_at sync_data start_writeback finish_writeback punch_hole preallocate truncate
            len allocated
            links modified alignment poison
    }
}

impl Vfs for Counting {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let inner = self.inner.open(path, options)?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Counted { inner, open: self.open.clone() }))
    }
    fn open_files_limit(&self) -> Option<u64> {
        self.limit
    }
    crate::pass_on! {
        inner: rename remove hard_link clone_file list create_dir_all remove_dir sync_dir exists
            lock free_space
    }
}

/// Files 0, 1, …, each with its number as its only byte.
fn files(count: u8) -> (Counting, Vec<Arc<Path>>) {
    let inner = MemVfs::new();
    let paths: Vec<Arc<Path>> = (0..count).map(|n| PathBuf::from(format!("/{n}")).into()).collect();
    for (number, path) in (0..).zip(&paths) {
        let file = inner.open(path, OpenOptions::CREATE).unwrap();
        file.write_at(&[number], 0, CLASS).unwrap();
    }
    (Counting { inner, open: Arc::default(), limit: None }, paths)
}

fn pool_of(vfs: &Counting, max: usize, paths: &[Arc<Path>]) -> Vec<Arc<PooledFile>> {
    let pool = DescriptorPool::new(Arc::new(vfs.clone()), max);
    paths.iter().map(|path| pool.file(path, OpenOptions::READ).unwrap()).collect()
}

fn assert_reads(file: &PooledFile, number: usize) {
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, 0, CLASS).unwrap(), 1);
    assert_eq!(usize::from(byte[0]), number);
}

#[test]
fn any_number_of_files_is_read_with_few_descriptors() {
    let (vfs, paths) = files(100);
    for max in [1, 2, 7, 100] {
        let held = pool_of(&vfs, max, &paths);
        for number in (0..100).chain((0..100).rev()).chain((0..100).map(|n| n * 37 % 100)) {
            assert_reads(&held[number], number);
            assert!(vfs.open.load(Ordering::Relaxed) <= max);
            assert_eq!(held[0].pool.in_use(), vfs.open.load(Ordering::Relaxed));
        }
        let pool = held[0].pool.clone();
        drop(held);
        assert_eq!((pool.in_use(), vfs.open.load(Ordering::Relaxed)), (0, 0));
        // Entries of dropped files are removed in time.
        for _ in 0..10 {
            paths.iter().for_each(|path| drop(pool.file(path, OpenOptions::READ).unwrap()));
        }
        assert!(lock(&pool.clock).len() <= 2 * max + FEW + 1);
    }
}

#[test]
fn files_in_use_keep_their_descriptors() {
    let (vfs, paths) = files(50);
    let held = pool_of(&vfs, 5, &paths);
    assert_reads(&held[0], 0);
    for (number, file) in held.iter().enumerate().skip(1) {
        assert_reads(file, number);
        assert_reads(&held[0], 0);
        assert!(held[0].is_open());
    }
}

#[test]
fn a_lower_limit_closes_and_a_higher_one_keeps() {
    let (vfs, paths) = files(20);
    let held = pool_of(&vfs, 20, &paths);
    let pool = &held[0].pool;
    assert_eq!(pool.in_use(), 20);
    pool.set_max(3);
    assert_eq!((pool.in_use(), vfs.open.load(Ordering::Relaxed)), (3, 3));
    // A quarter, but at least one, even if all were used.
    held.iter().enumerate().for_each(|(number, file)| assert_reads(file, number));
    assert_eq!((pool.give_back(), pool.in_use()), (1, 2));
    assert_eq!((pool.give_back(), pool.give_back(), pool.give_back()), (1, 1, 0));
    pool.set_max(40);
    held.iter().enumerate().for_each(|(number, file)| assert_reads(file, number));
    assert_eq!(pool.in_use(), 20);
}

#[test]
fn concurrent_readers_read_right_bytes() {
    let (vfs, paths) = files(30);
    let held = pool_of(&vfs, 4, &paths);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let held = &held;
            scope.spawn(move || {
                for turn in 0..3000 {
                    let number = (turn * 7 + thread * 11) % held.len();
                    assert_reads(&held[number], number);
                }
            });
        }
    });
    assert!(vfs.open.load(Ordering::Relaxed) <= 4);
    assert_eq!(held[0].pool.in_use(), vfs.open.load(Ordering::Relaxed));
    drop(held);
    assert_eq!(vfs.open.load(Ordering::Relaxed), 0);
}

#[test]
fn a_file_that_cannot_be_opened_again_says_so_until_it_can() {
    let (vfs, paths) = files(2);
    let held = pool_of(&vfs, 1, &paths);
    let elsewhere = Path::new("/elsewhere");
    vfs.inner.rename(&paths[0], elsewhere).unwrap();
    let error = held[0].read_at(&mut [0], 0, CLASS).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    vfs.inner.rename(elsewhere, &paths[0]).unwrap();
    assert_reads(&held[0], 0);
}

#[test]
fn half_of_the_process_limit_is_left_to_the_application() {
    let (vfs, _) = files(0);
    let of =
        |wanted, limit| descriptors_max(wanted, &Counting { limit: Some(limit), ..vfs.clone() });
    assert_eq!([of(4096, 1024), of(200, 1024), of(4096, 64), of(4096, 1)], [512, 200, 32, 1]);
    assert_eq!(descriptors_max(4096, &MemVfs::new()), 4096);
}

#[test]
fn an_open_waits_for_a_descriptor_but_not_for_ever() {
    let time = VirtualTime::begin(1);
    let (vfs, paths) = files(1);
    let faults = FaultVfs::new(Arc::new(vfs));
    let metered = MeteredVfs::new(Arc::new(faults.clone()));
    let passed = || crate::base::clock::virtual_time().unwrap();
    let rule = FaultRule::new(Fault::TooManyOpenFiles).on(VfsOperation::Open);
    let fail = |times: u32| {
        for _ in 0..times {
            faults.add(rule.clone().once());
        }
    };
    fail(TRIES);
    metered.open(&paths[0], OpenOptions::READ).unwrap();
    let waited = passed();
    assert!(waited > FIRST_WAIT && waited < Duration::from_secs(1), "{waited:?}");
    fail(TRIES + 1);
    let error = metered.open(&paths[0], OpenOptions::READ).unwrap_err();
    assert!(is_out_of_descriptors(&error), "{error}");
    let told = crate::base::error::Error::io("open", &paths[0], error).to_string();
    assert!(told.contains("ulimit -n") && told.contains("max_open_files"), "{told}");
    metered.open(&paths[0], OpenOptions::READ).unwrap();
    drop(time);
}
