//! Power failures of real file systems: a child writes to a database on ext4 or XFS, which stands
//! in a file of an XFS. That file is cloned at random moments and after acknowledged writes; each
//! clone is mounted, which replays the journal, and holds what was durable before it was taken.
//!
//! Why a clone is a power failure, and what was synced is in it: docs/reliability-processes.md.

use std::path::Path;
use std::time::Duration;

use crate::support::child::{Bounds, Model, Orders, Running, Told, options};
use crate::support::common::Random;
use crate::support::device::{FileSystem, Host, Mount, assert_nothing_is_mounted, missing};
use crate::support::rel::{Suite, processors};

/// Of one run of a child.
const CLONES_EACH: usize = 6;

/// Journals of ext4 that promise different things about data.
fn mount_options(kind: FileSystem, number: u64) -> &'static str {
    match (kind, number % 4) {
        (FileSystem::Ext4, 1) => "data=writeback",
        (FileSystem::Ext4, 3) => "data=journal",
        _ => "",
    }
}

/// Runs a child on a fresh file system and clones it. Returns for each clone what was durable.
fn clone_under_load(mount: &Mount, number: u64, random: &mut Random) -> (Vec<Told>, Told) {
    let folder = mount.path();
    let mut orders = Orders::new(&folder.join("db"), number);
    orders.in_step = random.one_in(2);
    orders.pause = Duration::from_micros(300);
    let mut child = Running::start(&orders);
    let mut durable = Vec::new();
    for clone in 0..CLONES_EACH {
        let syncs = child.told().syncs;
        if orders.in_step && options(number).wal != sateen::WalMode::Off {
            // As soon as a write is acknowledged. Some others come before.
            for _ in 0..random.below(8) {
                child.go_on();
            }
            child.wait_until(|told| told.syncs > syncs);
        } else {
            child.wait(Duration::from_millis(random.below(60)));
        }
        durable.push(child.told());
        mount.clone_to(&clone_path(mount, clone));
        child.go_on();
    }
    let (told, dead) = child.kill();
    assert!(!dead, "the child ended by itself");
    (durable, told)
}

fn clone_path(mount: &Mount, clone: usize) -> std::path::PathBuf {
    mount.path().with_file_name(format!("clone{clone}"))
}

/// Returns how many clones were examined, and how many of them had anything that was durable.
fn case(host: &Host, kind: FileSystem, number: u64) -> (u64, u64) {
    let mut random = Random::new(number);
    let image = host.new_image(kind, &format!("case{number}"));
    let folder = image.parent().unwrap();
    let mount = Mount::new(kind, &image, &folder.join("mounted"), mount_options(kind, number));
    let (durable, last) = clone_under_load(&mount, number, &mut random);
    let mut model = Model::default();
    for (clone, told) in durable.iter().enumerate() {
        let what = format!("case {number}, {}, clone {clone}", kind.name());
        let clone = clone_path(&mount, clone);
        examine(&clone, folder, kind, number, (told, &last), &mut model, &what);
        std::fs::remove_file(clone).unwrap();
    }
    mount.unmount();
    std::fs::remove_dir_all(folder).unwrap();
    let with_any = durable.iter().filter(|told| told.durable != [0, 0]).count();
    (durable.len() as u64, with_any as u64)
}

/// Mounts a clone and holds what it has against what the child had said before it was taken.
fn examine(
    clone: &Path,
    folder: &Path,
    kind: FileSystem,
    number: u64,
    (told, last): (&Told, &Told),
    model: &mut Model,
    what: &str,
) {
    let mounted = Mount::new(kind, clone, &folder.join("recovered"), "");
    let bounds = Bounds::new(told.durable, last);
    let directory = mounted.path().join("db");
    if !directory.join("CURRENT").exists() {
        assert!(!told.open, "{what}: the database is gone");
    } else {
        model.examine_checkpoints(&directory, number, told, bounds.ceiling, what);
        let found = model.examine_at(&directory, options(number), false, &bounds, what);
        // Once more: what recovery made of it is whole, too.
        let bounds = Bounds { floor: found, ..bounds };
        model.examine_at(&directory, options(number), true, &bounds, what);
    }
    mounted.unmount();
}

#[test]
#[ignore = "the suite `image`: cargo xtask rel image"]
fn rel() {
    let suite = Suite::new("image", "ext4 images");
    if let Some(reason) = missing() {
        return suite.skip(&reason);
    }
    {
        let host = Host::new();
        suite.run(processors(), |suite, number| {
            let (images, with_any) = case(&host, FileSystem::Xfs, number);
            suite.count("xfs images", images);
            suite.count("with something durable", with_any);
            let (images, with_any) = case(&host, FileSystem::Ext4, number);
            suite.count("with something durable", with_any);
            suite.count("ext4 images", images);
        });
    }
    assert_nothing_is_mounted();
}
