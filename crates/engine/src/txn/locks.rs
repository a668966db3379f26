//! The locks that a pessimistic transaction holds. They are released when this is dropped, however
//! the transaction ends.
//!
//! What must stay true: nobody else wrote a locked key between the snapshot and the lock, unless
//! the key is in [`Locks::unchecked`]. So a key that an untracked write locked is compared with the
//! snapshot once it is guarded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::SeqNo;
use sateen_store::base::error::{Error, Result};

use super::transaction::TransactionOptions;
use crate::admission::key_locks::{
    Acquired, KeyLocks, LockKey, LockOwner, LockRange, LockTarget, Wanted,
};
use crate::environment::Environment;
use crate::tree::families::ColumnFamilyData;

/// The locks of a transaction, in the order in which it took them.
pub(super) struct Locks {
    owner: LockOwner,
    of_database: Arc<KeyLocks>,
    held: Vec<LockTarget>,
    /// The keys that untracked writes locked and that were not compared with a snapshot, each with
    /// a sequence number since which nobody else can have written it.
    unchecked: BTreeMap<LockKey, SeqNo>,
    timeout: Option<Duration>,
    locks_max: usize,
}

impl Locks {
    /// Returns the locks of a new transaction, which are none.
    pub(super) fn new(
        of_database: &Arc<KeyLocks>,
        timeout: Option<Duration>,
        locks_max: usize,
    ) -> Locks {
        let owner = of_database.new_owner();
        let of_database = of_database.clone();
        let (held, unchecked) = (Vec::new(), BTreeMap::new());
        Locks { owner, of_database, held, unchecked, timeout, locks_max }
    }

    /// Returns the locks of a transaction that has some already.
    pub(super) fn adopt(
        of_database: &Arc<KeyLocks>,
        owner: LockOwner,
        held: Vec<LockTarget>,
        options: &TransactionOptions,
    ) -> Locks {
        let (timeout, locks_max) = (options.lock_timeout, options.locks_max);
        let (of_database, unchecked) = (of_database.clone(), BTreeMap::new());
        Locks { owner, of_database, held, unchecked, timeout, locks_max }
    }

    /// Returns the transaction's number and what stays locked.
    pub(super) fn into_kept(mut self) -> (LockOwner, Vec<LockTarget>) {
        (self.owner, std::mem::take(&mut self.held))
    }

    /// Returns the number of the transaction.
    pub(super) fn owner(&self) -> LockOwner {
        self.owner
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Takes the lock of `key`, or waits for it. Returns true if the transaction did not have it.
    pub(super) fn take(
        &mut self,
        family: &ColumnFamilyData,
        key: &[u8],
        exclusive: bool,
        env: &Environment,
    ) -> Result<bool> {
        self.take_target(family, LockTarget::Key((family.id(), key.into())), exclusive, env)
    }

    /// Takes the lock of `range`, of the same family, or waits for it.
    pub(super) fn take_range(
        &mut self,
        family: &ColumnFamilyData,
        range: LockRange,
        exclusive: bool,
        env: &Environment,
    ) -> Result<()> {
        let range = LockTarget::Range(Arc::new(range));
        self.take_target(family, range, exclusive, env).map(drop)
    }

    fn take_target(
        &mut self,
        family: &ColumnFamilyData,
        what: LockTarget,
        exclusive: bool,
        env: &Environment,
    ) -> Result<bool> {
        let acquired = self.of_database.acquire(&Wanted {
            owner: self.owner,
            what: &what,
            family: family.name(),
            exclusive,
            timeout: self.timeout,
            metrics: &env.metrics,
            give_up: &|| env.check_open(),
        })?;
        if acquired == Acquired::Before {
            return Ok(false);
        }
        self.held.push(what);
        if self.held.len() > self.locks_max {
            self.truncate(self.locks_max);
            return Err(Error::LockLimit(self.locks_max));
        }
        Ok(true)
    }

    /// Notes that `key` was locked when `visible` was the newest visible sequence number, and was
    /// not compared with the snapshot.
    pub(super) fn set_unchecked(&mut self, family: &ColumnFamilyData, key: &[u8], visible: SeqNo) {
        self.unchecked.insert((family.id(), key.into()), visible);
    }

    /// Returns true if others may have written `key`, which is locked, after `snapshot` and before
    /// the lock.
    pub(super) fn is_unchecked(
        &self,
        family: &ColumnFamilyData,
        key: &[u8],
        snapshot: SeqNo,
    ) -> bool {
        // Most transactions have no such key, and need no copy of this one.
        if self.unchecked.is_empty() {
            return false;
        }
        let key: LockKey = (family.id(), key.into());
        self.unchecked.get(&key).is_some_and(|since| *since > snapshot)
    }

    /// Notes that nobody else wrote `key`, which is locked, after `snapshot`.
    pub(super) fn set_checked(&mut self, family: &ColumnFamilyData, key: &[u8], snapshot: SeqNo) {
        if self.is_unchecked(family, key, snapshot) {
            self.set_unchecked(family, key, snapshot);
        }
    }

    /// Releases all but the first `len` locks. A lock that was shared then stays as it is now.
    pub(super) fn truncate(&mut self, len: usize) {
        for what in self.held.drain(len.min(self.held.len())..) {
            self.of_database.release(self.owner, &what);
            if let LockTarget::Key(key) = &what {
                self.unchecked.remove(key);
            }
        }
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (owner, held) = (self.owner, self.held.len());
        f.debug_struct("Locks").field("owner", &owner).field("held", &held).finish_non_exhaustive()
    }
}
