//! The file system in memory answers random operations as the real one does, and every crash image
//! of the run can be used.

use proptest::prelude::*;

use super::*;
use crate::vfs::PosixVfs;

#[derive(Clone, Debug)]
enum Step {
    Open(usize, bool, bool),
    Close(usize),
    Read(usize, u64, usize),
    Write(usize, u64, usize, u8),
    Punch(usize, u64, u64),
    Truncate(usize, u64),
    Preallocate(usize, u64, u64),
    Sync(usize),
    Rename(usize, usize),
    Remove(usize),
    Link(usize, usize),
    MakeDirectory(usize),
    RemoveDirectory(usize),
    SyncDirectory(usize),
    List(usize),
    Exists(usize),
}

const PATHS: [&str; 8] = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a"];

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..PATHS.len();
    let handle = || 0usize..4;
    let offset = || prop_oneof![0u64..300, 0u64..20_000, (0u64..8).prop_map(|n| n * 4096)];
    let length = || prop_oneof![0usize..300, 0usize..20_000, (0usize..5).prop_map(|n| n * 4096)];
    let punched = || prop_oneof![1u64..300, 1u64..20_000, (1u64..5).prop_map(|n| n * 4096)];
    prop_oneof![
        4 => (name(), any::<bool>(), any::<bool>()).prop_map(|(n, w, c)| Step::Open(n, w, c)),
        1 => handle().prop_map(Step::Close),
        5 => (handle(), offset(), length()).prop_map(|(h, o, l)| Step::Read(h, o, l)),
        6 => (handle(), offset(), length(), 1u8..).prop_map(|(h, o, l, b)| Step::Write(h, o, l, b)),
        2 => (handle(), offset(), punched()).prop_map(|(h, o, l)| Step::Punch(h, o, l)),
        2 => (handle(), offset()).prop_map(|(h, l)| Step::Truncate(h, l)),
        1 => (handle(), offset(), punched()).prop_map(|(h, o, l)| Step::Preallocate(h, o, l)),
        1 => handle().prop_map(Step::Sync),
        2 => (name(), name()).prop_map(|(a, b)| Step::Rename(a, b)),
        2 => name().prop_map(Step::Remove),
        2 => (name(), name()).prop_map(|(a, b)| Step::Link(a, b)),
        2 => name().prop_map(Step::MakeDirectory),
        1 => name().prop_map(Step::RemoveDirectory),
        1 => name().prop_map(Step::SyncDirectory),
        1 => name().prop_map(Step::List),
        1 => name().prop_map(Step::Exists),
    ]
}

/// Does a step and describes everything that it shows.
fn perform(
    vfs: &dyn Vfs,
    root: &Path,
    handles: &mut [Option<Arc<dyn VfsFile>>; 4],
    turn: usize,
    step: &Step,
) -> String {
    let at = |name: usize| root.join(PATHS[name]);
    let seen = |result: io::Result<String>| match result {
        Ok(seen) => seen,
        Err(error) => format!("{:?}", error.kind()),
    };
    let unit = |result: io::Result<()>| seen(result.map(|()| "done".to_owned()));
    let with = |handle: usize, act: &dyn Fn(&dyn VfsFile) -> io::Result<String>| {
        handles[handle].as_ref().map_or("no handle".to_owned(), |file| seen(act(&**file)))
    };
    let done = |result: io::Result<()>| result.map(|()| "done".to_owned());
    match *step {
        Step::Open(name, write, create_new) => {
            // A real directory can be opened for reading, which is of no use.
            if vfs.list(&at(name)).is_ok() && !create_new {
                return "a directory".to_owned();
            }
            let options = OpenOptions { write: write || create_new, direct: false, create_new };
            unit(vfs.open(&at(name), options).map(|file| handles[turn % 4] = Some(file)))
        }
        Step::Close(handle) => format!("closed: {}", handles[handle].take().is_some()),
        Step::Read(handle, offset, length) => with(handle, &|file| {
            let mut buffer = vec![0; length];
            let read = file.read_at(&mut buffer, offset, CLASS)?;
            Ok(format!("{} of {:?}", file.len()?, &buffer[..read]))
        }),
        Step::Write(handle, offset, length, byte) => {
            let bytes: Vec<u8> = (0..length).map(|n| byte ^ (n / 97) as u8).collect();
            with(handle, &|file| done(file.write_at(&bytes, offset, CLASS)))
        }
        Step::Punch(handle, offset, length) => {
            with(handle, &|file| done(file.punch_hole(offset, length, CLASS)))
        }
        // For a read-only handle the kernel has different error codes.
        Step::Truncate(handle, length) => {
            with(handle, &|file| Ok(format!("{}", file.truncate(length).is_ok())))
        }
        Step::Preallocate(handle, offset, length) => {
            with(handle, &|file| done(file.preallocate(offset, length)))
        }
        Step::Sync(handle) => with(handle, &|file| done(file.sync_data(CLASS))),
        Step::Rename(from, to) => unit(vfs.rename(&at(from), &at(to))),
        Step::Remove(name) => unit(vfs.remove(&at(name))),
        Step::Link(from, to) => unit(vfs.hard_link(&at(from), &at(to))),
        Step::MakeDirectory(name) => unit(vfs.create_dir_all(&at(name))),
        Step::RemoveDirectory(name) => unit(vfs.remove_dir(&at(name))),
        Step::SyncDirectory(name) => unit(vfs.sync_dir(&at(name))),
        Step::List(name) => seen(vfs.list(&at(name)).map(|names| format!("{names:?}"))),
        Step::Exists(name) => seen(vfs.exists(&at(name)).map(|exists| exists.to_string())),
    }
}

fn tree(vfs: &dyn Vfs, directory: &Path, found: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
    for name in vfs.list(directory).unwrap() {
        let path = directory.join(name);
        if vfs.list(&path).is_ok() {
            found.push((path.clone(), None));
            tree(vfs, &path, found);
        } else {
            let file = vfs.open(&path, OpenOptions::READ).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0, CLASS).unwrap();
            found.push((path, Some(bytes)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn agrees_with_the_real_file_system(steps in prop::collection::vec(step(), 1..60)) {
        let beside = std::env::current_exe().unwrap();
        let root = tempfile::TempDir::new_in(beside.parent().unwrap()).unwrap();
        let mem = MemVfs::new();
        mem.create_dir_all(root.path()).unwrap();
        mem.set_capacity(Some(1 << 30));
        let recording = mem.record();
        let (mut ours, mut theirs) = ([const { None }; 4], [const { None }; 4]);
        for (turn, step) in steps.iter().enumerate() {
            let real = perform(&PosixVfs, root.path(), &mut theirs, turn, step);
            let seen = perform(&mem, root.path(), &mut ours, turn, step);
            prop_assert_eq!(seen, real, "step {}: {:?}", turn, step);
        }
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        tree(&PosixVfs, root.path(), &mut expected);
        tree(&mem, root.path(), &mut found);
        prop_assert_eq!(&found, &expected);
        // The recording replays to the same state, and so does a crash that loses nothing.
        let replayed = recording.image_at(recording.len(), CrashChoice::Everything);
        prop_assert_eq!(replayed.fingerprint(), mem.fingerprint());
        let image = mem.crash_image(CrashChoice::Everything);
        prop_assert_eq!(image.fingerprint(), mem.fingerprint());
        // Once everything is synced, no choice changes anything.
        for (path, bytes) in &found {
            match bytes {
                Some(_) => mem.open(path, OpenOptions::READ).unwrap().sync_data(CLASS).unwrap(),
                None => mem.sync_dir(path).unwrap(),
            }
        }
        for directory in root.path().ancestors() {
            mem.sync_dir(directory).unwrap();
        }
        prop_assert_eq!(mem.pending(), vec![]);
        let image = mem.crash_image(CrashChoice::SyncedOnly);
        prop_assert_eq!(image.fingerprint(), mem.fingerprint());
        drop(ours);
        let used: u64 = mem.used_bytes();
        prop_assert_eq!(image.used_bytes(), used);
    }

    #[test]
    fn every_image_of_a_random_run_can_be_made_and_used(
        steps in prop::collection::vec(step(), 1..40), seed in any::<u64>(),
    ) {
        let mem = MemVfs::new();
        let root = Path::new("/");
        let recording = mem.record();
        let mut handles = [const { None }; 4];
        for (turn, step) in steps.iter().enumerate() {
            perform(&mem, root, &mut handles, turn, step);
        }
        for n in 0..=recording.len() {
            let choices = recording.choices_at(n, 2);
            // A sample of the choices; all of them would take minutes.
            let stride = choices.len().div_ceil(12);
            for &choice in choices.iter().skip(seed as usize % stride).step_by(stride) {
                let image = recording.image_at(n, choice);
                prop_assert!(image.pending().is_empty(), "{:?} at {}", choice, n);
                tree(&image, root, &mut Vec::new());
                let again = image.crash_image(CrashChoice::SyncedOnly);
                prop_assert_eq!(again.fingerprint(), image.fingerprint());
                let file = image.open(path("/fresh"), OpenOptions::CREATE).unwrap();
                file.write_at(b"x", 0, CLASS).unwrap();
            }
        }
    }
}
