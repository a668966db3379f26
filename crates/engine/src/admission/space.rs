//! One limit for the space of the tables of several databases.
//!
//! 1. A database joins as it is opened ([`SpaceManager::join`]), and is asked for its space when
//!    that is needed.
//! 2. A flush that begins while the limit is reached fails as on a full disk
//!    ([`SpaceManager::check`]): writes are refused from then on, and reads go on.
//! 3. Compactions go on, because they free space. Chores try again once the limit is not reached
//!    any more, because it was raised, or tables were deleted.
//! 4. Chores free the space of dead tables no faster than [`SpaceManager::delete_rate`].

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicU64, Ordering};
use sateen_store::base::sync::{Mutex, lock};

/// A database whose space counts.
pub(crate) trait UsesSpace: Send + Sync {
    /// Returns the bytes of its table files, and those of them that are obsolete.
    fn used(&self) -> (u64, u64);
}

/// A limit for the space that the tables of all databases take that are opened with it, and for how
/// fast obsolete tables are deleted. Clones are the same limit. RocksDB: `SstFileManager`.
///
/// When the limit is reached, flushes fail as on a full disk: writes are refused with an error for
/// which [`Error::is_no_space`](crate::Error::is_no_space) is true, and reads go on. Writes go on
/// by themselves once there is room below the limit. Bulk loads and ingestions fail in the same
/// way. What has begun is finished, and compactions always run, so the limit may be exceeded by
/// these.
///
/// ```
/// use sateen::{Db, Options, SpaceManager};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let space = SpaceManager::new(10 << 30);
/// let options = Options { space_manager: Some(space.clone()), ..Options::default() };
/// let db = Db::open(directory.path(), options)?;
/// db.put("fig", "1")?;
/// db.flush()?;
/// assert!(space.used_bytes() > 0 && !space.is_reached());
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct SpaceManager(Arc<Manager>);

struct Manager {
    /// The limit in bytes; 0 for none.
    limit: AtomicU64,
    /// Bytes a second by which dead tables are deleted; 0 for no limit.
    delete_rate: AtomicU64,
    members: Mutex<Vec<Weak<dyn UsesSpace>>>,
}

impl SpaceManager {
    /// Creates a limit of `limit_bytes`; 0 for none.
    #[must_use]
    pub fn new(limit_bytes: u64) -> SpaceManager {
        SpaceManager(Arc::new(Manager {
            limit: AtomicU64::new(limit_bytes),
            delete_rate: AtomicU64::new(0),
            members: Mutex::default(),
        }))
    }

    /// Returns the limit in bytes, 0 if there is none.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit in bytes, 0 for none. Databases that refuse writes go on within seconds, if
    /// there is room now. RocksDB: `SetMaxAllowedSpaceUsage`.
    pub fn set_limit_bytes(&self, bytes: u64) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// Returns the rate at which obsolete tables are deleted, in bytes a second; 0 for no limit.
    #[must_use]
    pub fn delete_rate(&self) -> u64 {
        self.0.delete_rate.load(Ordering::Relaxed)
    }

    /// Sets the rate at which obsolete tables are deleted, in bytes a second; 0 for no limit but
    /// that of the scheduler. It applies to each database by itself, and not while a disk is full.
    /// RocksDB: `SetDeleteRateBytesPerSecond`.
    pub fn set_delete_rate(&self, bytes_per_second: u64) {
        self.0.delete_rate.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Returns the bytes of all table files, obsolete ones included.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used().0
    }

    /// Returns the bytes of obsolete tables, which are being deleted or are kept for readers.
    #[must_use]
    pub fn obsolete_bytes(&self) -> u64 {
        self.used().1
    }

    /// Returns true if there is a limit, and as much is used.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let limit = self.limit_bytes();
        limit > 0 && self.used_bytes() >= limit
    }

    fn used(&self) -> (u64, u64) {
        let members: Vec<_> = lock(&self.0.members).iter().filter_map(Weak::upgrade).collect();
        let each = members.iter().map(|member| member.used());
        each.fold((0, 0), |sum, used| (sum.0 + used.0, sum.1 + used.1))
    }

    /// Counts the space of a database from now on, until it is gone.
    pub(crate) fn join(&self, member: Weak<dyn UsesSpace>) {
        let mut members = lock(&self.0.members);
        members.retain(|member| member.strong_count() > 0);
        members.push(member);
    }

    /// Fails as on a full disk if the limit is reached. `path` is where something would be written.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        let (limit, used) = (self.limit_bytes(), self.used_bytes());
        if limit == 0 || used < limit {
            return Ok(());
        }
        let text = format!("the tables take {used} bytes, and the space manager allows {limit}");
        Err(Error::io("write tables in", path, io::Error::new(io::ErrorKind::StorageFull, text)))
    }
}

/// Two handles are equal if they are the same limit.
impl PartialEq for SpaceManager {
    fn eq(&self, other: &SpaceManager) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for SpaceManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpaceManager").field("limit_bytes", &self.limit_bytes()).finish()
    }
}
