//! Keeps the measured profile of the device in the file DEVICE, for the next open.

use std::time::Duration;

use sateen_control::{DeviceProfile, Instant};
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::files::device_hint;

use super::Chores;

/// How often the profile is compared with the file.
const KEEP_EVERY: Duration = Duration::from_secs(60);
/// A value is written again if it has changed by more than one part in `NEWS`.
const NEWS: u64 = 20;

/// The profile in the file, and when it was last compared with the current one.
pub(crate) struct DeviceHint {
    kept: Mutex<(DeviceProfile, Instant)>,
}

impl DeviceHint {
    /// Begins with `profile`, which is in the file, or with which control begins if there is none.
    pub(crate) fn new(profile: DeviceProfile) -> DeviceHint {
        DeviceHint { kept: Mutex::new((profile, Instant::default())) }
    }
}

/// Returns true if a value has changed enough to be written.
fn is_news(now: u64, then: u64) -> bool {
    now.abs_diff(then) > then / NEWS
}

impl Chores {
    /// Writes the current profile to the file, if that is due or `at_once` is set, and if it has
    /// changed.
    pub(crate) fn keep_device_hint(&self, at_once: bool) {
        // A bandwidth that the options set was not measured.
        if self.env.options.load().device_bandwidth.is_some() {
            return;
        }
        let mut kept = lock(&self.hint.kept);
        let now = self.env.now();
        if !at_once && now.since(kept.1) < KEEP_EVERY {
            return;
        }
        kept.1 = now;
        let (then, found) = (kept.0, self.driver.device());
        let news = is_news(found.read_bytes_per_second, then.read_bytes_per_second)
            || is_news(found.write_bytes_per_second, then.write_bytes_per_second);
        // A failed write is ignored, because the file is only a hint.
        if news && device_hint::write(self.env.vfs.as_ref(), &self.env.directory, &found).is_ok() {
            kept.0 = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::{Db, Options};
    use sateen_store::vfs::{MemVfs, Vfs};

    fn open(vfs: &MemVfs, options: Options) -> Db {
        let options = Options { background_threads: 0, ..options };
        Db::open_with(Arc::new(vfs.clone()), "/db", options, &[]).unwrap()
    }

    fn believed(db: &Db) -> Option<String> {
        db.property("sateen.device-read-bandwidth")
    }

    #[test]
    fn what_was_learned_is_there_after_a_restart() {
        let (vfs, directory) = (MemVfs::new(), Path::new("/db"));
        let db = open(&vfs, Options::default());
        let begins_with = believed(&db);
        db.close().unwrap();
        assert_eq!(device_hint::read(&vfs, directory), None, "nothing was learned");

        let db = open(&vfs, Options::default());
        // The profile differs from the one in the file, as if it had been measured.
        lock(&db.core().background.chores.hint.kept).0.write_bytes_per_second = 1;
        db.close().unwrap();
        let kept = device_hint::read(&vfs, directory).expect("it differs from what was kept");
        assert_eq!(Some(kept.read_bytes_per_second.to_string()), begins_with);

        let faster = DeviceProfile { read_bytes_per_second: 3_000_000_000, ..kept };
        device_hint::write(&vfs, directory, &faster).unwrap();
        let db = open(&vfs, Options::default());
        assert_eq!(believed(&db).as_deref(), Some("3000000000"));
        db.close().unwrap();
        assert_eq!(device_hint::read(&vfs, directory), Some(faster), "nothing new");

        // A bandwidth that the options set is not kept.
        let db = open(&vfs, Options { device_bandwidth: Some(50 << 20), ..Options::default() });
        assert_eq!(believed(&db), Some((50u64 << 20).to_string()));
        db.close().unwrap();
        assert_eq!(device_hint::read(&vfs, directory), Some(faster));
    }

    #[test]
    fn a_hint_that_cannot_be_written_does_not_matter() {
        use sateen_store::vfs::{Fault, FaultRule, FaultVfs, VfsOperation};
        for operation in
            [VfsOperation::Remove, VfsOperation::Create, VfsOperation::Write, VfsOperation::Rename]
        {
            let vfs = MemVfs::new();
            let faults = FaultVfs::new(Arc::new(vfs.clone()));
            let options = Options { background_threads: 0, ..Options::default() };
            let db = Db::open_with(Arc::new(faults.clone()), "/db", options, &[]).unwrap();
            lock(&db.core().background.chores.hint.kept).0.write_bytes_per_second = 1;
            let rule = FaultRule::new(Fault::Io).on(operation).path_contains("DEVICE");
            let rule = faults.add(rule);
            db.put("key", "value").unwrap();
            db.close().unwrap();
            assert!(faults.happened(rule) > 0, "{operation:?}");
            let kept = device_hint::read(&vfs, Path::new("/db"));
            // With nothing to remove, the removal does not fail the write.
            assert_eq!(kept.is_some(), operation == VfsOperation::Remove, "{operation:?}");
            let db = open(&vfs, Options::default());
            assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        }
    }

    #[test]
    fn without_the_file_or_with_a_damaged_one_all_works() {
        let (vfs, path) = (MemVfs::new(), Path::new("/db/DEVICE"));
        let db = open(&vfs, Options::default());
        let begins_with = believed(&db);
        db.put("key", "value").unwrap();
        db.close().unwrap();
        let file = vfs.open(path, sateen_store::vfs::OpenOptions::CREATE).unwrap();
        file.write_at(b"sateen device 9\n", 0, sateen_store::vfs::IoClass::Manifest).unwrap();
        let db = open(&vfs, Options::default());
        assert_eq!(believed(&db), begins_with);
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
