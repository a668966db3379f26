//! Snapshots: sequence numbers at which clients still read. Compactions keep every entry that a
//! live snapshot can see.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::sync::{Mutex, lock};

/// The live snapshots of a database.
#[derive(Default)]
pub(crate) struct SnapshotList {
    /// The number of snapshots at each sequence number.
    live: Mutex<BTreeMap<SeqNo, usize>>,
}

impl SnapshotList {
    /// Registers a snapshot at the sequence number that `visible` returns. It is read under the
    /// lock, so that a compaction that lists the snapshots sees this one, or one that is not newer
    /// (format rule F6).
    pub(crate) fn acquire(self: &Arc<Self>, visible: impl FnOnce() -> SeqNo) -> Snapshot {
        let mut live = lock(&self.live);
        let seqno = visible();
        *live.entry(seqno).or_insert(0) += 1;
        Snapshot(Arc::new(Registered { seqno, list: self.clone() }))
    }

    /// Returns the sequence numbers of the live snapshots and the one that `visible` returns,
    /// ascending and without duplicates.
    pub(crate) fn list(&self, visible: impl FnOnce() -> SeqNo) -> Vec<SeqNo> {
        let live = lock(&self.live);
        let visible = visible();
        let mut list: Vec<SeqNo> = live.keys().copied().collect();
        if list.last() != Some(&visible) {
            list.push(visible);
        }
        list
    }

    /// Returns the sequence number of the oldest live snapshot.
    pub(crate) fn oldest(&self) -> Option<SeqNo> {
        lock(&self.live).keys().next().copied()
    }

    /// Returns the sequence number of the newest live snapshot.
    pub(crate) fn newest(&self) -> Option<SeqNo> {
        lock(&self.live).keys().next_back().copied()
    }

    /// Returns the number of live snapshots.
    pub(crate) fn count(&self) -> usize {
        lock(&self.live).values().sum()
    }
}

/// A consistent view of the whole database at one moment. What it sees stays readable until its
/// last clone is dropped. A snapshot that is kept for long keeps old entries on disk.
///
/// It is cheap to clone, `Send` and `Sync`. [`Db::at`](crate::Db::at) and
/// [`ColumnFamily::at`](crate::ColumnFamily::at) read at it.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// db.put("fig", "1")?;
/// let snapshot = db.snapshot();
/// db.delete("fig")?;
/// assert!(db.at(&snapshot).contains_key("fig")? && !db.contains_key("fig")?);
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot(Arc<Registered>);

struct Registered {
    seqno: SeqNo,
    list: Arc<SnapshotList>,
}

impl Snapshot {
    /// Returns the sequence number of the newest write that this snapshot shows.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(snapshot.sequence_number(), db.latest_sequence_number());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn sequence_number(&self) -> u64 {
        self.0.seqno.0
    }

    #[inline]
    pub(crate) fn seqno(&self) -> SeqNo {
        self.0.seqno
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Snapshot) -> bool {
        self.0.seqno == other.0.seqno && Arc::ptr_eq(&self.0.list, &other.0.list)
    }
}

impl Eq for Snapshot {}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut live = lock(&self.list.live);
        if let Some(count) = live.get_mut(&self.seqno) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.seqno);
            }
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Snapshot").field(&self.0.seqno.0).finish()
    }
}
