//! What a process has taken it has given back at the end of a suite: `rel.rs` looks at that for all
//! of them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Long after this, on any machine, what ends by itself has ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a process has open, and its threads.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    descriptors: Vec<String>,
    threads: usize,
}

impl Process {
    pub(crate) fn now() -> Process {
        let here = std::fs::read_dir("/proc/self/fd").unwrap();
        // The one that lists them is gone when its target is asked for, or another's.
        let targets = here.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let own = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
        let mut descriptors: Vec<_> = targets
            // A thread keeps its ring, by which it reads several places at once, until it ends.
            .filter(|target| *target != own && target.as_os_str() != "anon_inode:[io_uring]")
            .map(|target| target.to_string_lossy().into_owned())
            .collect();
        descriptors.sort_unstable();
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        Process { descriptors, threads }
    }

    /// It is as it was before. Threads that were told to end may take a moment.
    pub(crate) fn assert_as(&self, before: &Process) {
        let began = Instant::now();
        let mut now = self.clone();
        while now.differs(before) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
            now = Process::now();
        }
        assert!(!now.differs(before), "{now:?} is left, and before there was {before:?}");
    }

    /// Whether there is more now.
    fn differs(&self, before: &Process) -> bool {
        self.threads > before.threads || self.descriptors.len() > before.descriptors.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_held_against_what_it_was() {
        let before = Process { descriptors: Vec::new(), threads: 1 << 20 };
        let now = Process { descriptors: vec!["/tmp/file".into()], threads: 1 };
        assert!(now.differs(&before) && !before.differs(&Process { threads: 1 << 20, ..now }));
        let more = Process { descriptors: Vec::new(), threads: 2 };
        assert!(more.differs(&Process { threads: 1, ..more.clone() }));
        assert!(!more.differs(&more));
    }
}
