//! The counters match the calls, each under its own I/O class.

use super::*;
use crate::base::waited::Watch;
use crate::vfs::MemVfs;

#[test]
fn every_call_is_counted_under_its_class() {
    let vfs = MeteredVfs::new(Arc::new(MemVfs::new()));
    let file = vfs.open(Path::new("f"), OpenOptions::CREATE).unwrap();
    file.write_at(&[1; 100], 0, IoClass::Wal).unwrap();
    file.write_at(&[1; 50], 100, IoClass::Wal).unwrap();
    file.sync_data(IoClass::Wal).unwrap();
    let before = vfs.snapshot();
    let mut buffer = [0; 200];
    assert_eq!(file.read_at(&mut buffer, 0, IoClass::Client).unwrap(), 150);
    file.write_at(&[2; 4096], 0, IoClass::Deep(3)).unwrap();
    file.sync_data(IoClass::Deep(5)).unwrap();
    file.punch_hole(0, 4096, IoClass::Reclaim).unwrap();
    vfs.sync_dir(Path::new("")).unwrap();

    let after = vfs.snapshot();
    let wal = after.class(IoClass::Wal);
    assert_eq!((wal.totals.writes, wal.totals.write_bytes, wal.totals.syncs), (2, 150, 1));
    assert_eq!((wal.write_ns.count(), wal.sync_ns.count()), (2, 1));
    assert_eq!(wal.write_ns.sum(), wal.totals.write_ns);

    let between = after.since(&before);
    assert_eq!(between.class(IoClass::Wal).totals, ClassTotals::default());
    let client = between.class(IoClass::Client);
    assert_eq!((client.totals.reads, client.totals.read_bytes), (1, 150));
    assert_eq!(client.read_ns.count(), 1);
    let deep = between.class(IoClass::Deep(1)).totals;
    assert_eq!((deep.writes, deep.write_bytes, deep.syncs), (1, 4096, 1));
    let reclaim = between.class(IoClass::Reclaim).totals;
    assert_eq!((reclaim.punches, reclaim.punch_bytes), (1, 4096));
    assert_eq!(between.class(IoClass::Manifest).totals.syncs, 1);
    assert_eq!(vfs.totals(), after.classes.each_ref().map(|class| class.totals));
}

#[test]
fn a_failed_call_is_an_error_and_nothing_else() {
    let vfs = MeteredVfs::new(Arc::new(MemVfs::new()));
    drop(vfs.open(Path::new("f"), OpenOptions::CREATE).unwrap());
    let file = vfs.open(Path::new("f"), OpenOptions::READ).unwrap();
    assert!(file.write_at(b"x", 0, IoClass::Flush).is_err());
    let flush = vfs.snapshot().class(IoClass::Flush).totals;
    assert_eq!(flush, ClassTotals { errors: 1, ..ClassTotals::default() });
}

#[test]
fn changes_of_names_and_sizes_are_time_in_the_device_of_a_step_and_in_no_counter() {
    let vfs = MeteredVfs::new(Arc::new(MemVfs::new()));
    type Call = fn(&MeteredVfs) -> io::Result<()>;
    let calls: [Call; 5] = [
        |vfs| vfs.open(Path::new("f"), OpenOptions::CREATE)?.preallocate(0, 4096),
        |vfs| vfs.open(Path::new("f"), OpenOptions::WRITE)?.truncate(10),
        |vfs| vfs.hard_link(Path::new("f"), Path::new("g")),
        |vfs| vfs.rename(Path::new("g"), Path::new("h")),
        |vfs| vfs.remove(Path::new("h")),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let step = Watch::begin();
        call(&vfs).unwrap();
        assert!(step.end().1.device_ns > 0, "call {number}");
    }
    assert_eq!(vfs.totals(), [ClassTotals::default(); IO_CLASSES]);
}
