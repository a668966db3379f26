//! Cuts: under load the file system is told to shut down at once, as it does by itself when its
//! device fails: nothing reaches the device any more, and every call fails from then on. The child
//! goes on trying, is killed, the file system is mounted again, and what was durable is there.
//!
//! What counts is what was acknowledged before. An fdatasync that is under way at that moment may
//! say that all is well although what it was for is gone, on ext4 as on XFS (Linux 6.18): a loop of
//! pwrite and fdatasync shows it without any database.

use std::time::Duration;

use crate::support::child::{Bounds, Marks, Model, Orders, Running, WRITERS, options};
use crate::support::common::Random;
use crate::support::device::{FileSystem, Host, Mount, assert_nothing_is_mounted, missing};
use crate::support::rel::{Suite, processors};

/// One file system, cut twice: the second time with what the first has left.
const CUTS_EACH: u64 = 2;

fn case(host: &Host, suite: &Suite, number: u64) {
    let mut random = Random::new(number);
    let kind = FileSystem::ALL[(number % 2) as usize];
    let image = host.new_image(kind, &format!("cut{number}"));
    let folder = image.parent().unwrap().to_owned();
    let at = folder.join("mounted");
    let mut found = [Marks::default(); 2];
    let mut mount = Mount::new(kind, &image, &at, "");
    for cycle in 0..CUTS_EACH {
        let flush_log = random.one_in(2);
        let what = format!("case {number}, {}, cut {cycle}, log flushed {flush_log}", kind.name());
        let mut orders = Orders::new(&at.join("db"), number);
        orders.may_fail = true;
        orders.pause = Duration::from_micros(300);
        let child = Running::start(&orders);
        if !random.one_in(6) {
            child.wait_until(|told| told.acknowledged != Marks::default());
        }
        child.wait(Duration::from_millis(random.below(250)));
        let before = child.told();
        mount.shut_down(flush_log);
        if before.open {
            child.wait_until(|told| told.errors > before.errors + 2);
        }
        let failing = child.told();
        child.wait(Duration::from_millis(30));
        let (told, _it_may_fail_to_open) = child.end_of_any_kind();
        // One of each writer may have been under way.
        let late = told.syncs - failing.syncs;
        assert!(late <= WRITERS as u64, "{what}: {late} writes durable on a dead file system");
        mount.unmount();
        mount = Mount::new(kind, &image, &at, "");
        let mut bounds = Bounds::new(before.durable, &told);
        bounds.keep(&found);
        let directory = at.join("db");
        let mut model = Model::default();
        if directory.join("CURRENT").exists() {
            model.examine_checkpoints(&directory, number, &before, bounds.ceiling, &what);
            found = model.examine_at(&directory, options(number), false, &bounds, &what);
        } else {
            assert!(!told.open && cycle == 0, "{what}: the database is gone");
        }
        suite.count("errors seen", told.errors);
        suite.count("cuts", 1);
    }
    mount.unmount();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "the suite `cut`: cargo xtask rel cut"]
fn rel() {
    let suite = Suite::new("cut", "cuts");
    if let Some(reason) = missing() {
        return suite.skip(&reason);
    }
    {
        let host = Host::new();
        suite.run(processors(), |suite, number| case(&host, suite, number));
    }
    assert_nothing_is_mounted();
}
