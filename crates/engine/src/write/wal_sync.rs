//! Durability of the log: one sync at a time, each covering everything appended before it, so that
//! any number of waiting writers share it.
//!
//! What must stay true: a log is synced before its successor is (a synced write is never behind an
//! unsynced one), and after a failed sync the log is dead: nothing is acknowledged on it, nothing
//! is retried (format rule F4).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use sateen_control::LogNumber;

use crate::error::{Error, Result};
use crate::sync::lock;
use crate::wal::SyncHandle;

struct Log {
    number: LogNumber,
    handle: SyncHandle,
}

#[derive(Default)]
struct State {
    /// Logs that may hold unsynced records, oldest first; the last is in use.
    logs: Vec<Log>,
    syncing: bool,
    /// Tickets below this one are durable.
    synced: u64,
    failed: Option<Error>,
}

/// Shared by all writers that want durability.
pub(crate) struct WalSync {
    state: Mutex<State>,
    changed: Condvar,
    /// Tickets below this one are in the log.
    appended: AtomicU64,
}

impl WalSync {
    pub(crate) fn new() -> WalSync {
        WalSync {
            state: Mutex::default(),
            changed: Condvar::new(),
            appended: AtomicU64::new(0),
        }
    }

    /// Says that all tickets below `ticket` are in the log or need none.
    pub(crate) fn appended(&self, ticket: u64) {
        self.appended.store(ticket, Ordering::Release);
    }

    /// A log joins; records from `ticket` on go to it.
    pub(crate) fn add_log(&self, number: LogNumber, handle: SyncHandle, _ticket: u64) {
        lock(&self.state).logs.push(Log { number, handle });
    }

    /// Forgets the logs so far, one of which is dead, and starts over with a fresh one.
    pub(crate) fn reset(&self, number: LogNumber, handle: SyncHandle, ticket: u64) {
        let mut state = lock(&self.state);
        state.logs = vec![Log { number, handle }];
        state.failed = None;
        state.synced = state.synced.max(ticket);
        self.appended.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Logs below `number` are not needed any more.
    pub(crate) fn forget_below(&self, number: LogNumber) {
        let mut state = lock(&self.state);
        let last = state.logs.len().saturating_sub(1);
        let mut at = 0;
        state.logs.retain(|log| {
            at += 1;
            log.number >= number || at > last
        });
    }

    /// Makes everything appended so far durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        match self.appended.load(Ordering::Acquire) {
            0 => Ok(()),
            tickets => self.sync_through(tickets - 1),
        }
    }

    /// Returns when `ticket` is durable.
    pub(crate) fn sync_through(&self, ticket: u64) -> Result<()> {
        let mut state = lock(&self.state);
        loop {
            if state.synced > ticket {
                return Ok(());
            }
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if !state.syncing {
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.syncing = true;
        let covered = self.appended.load(Ordering::Acquire);
        let handles: Vec<SyncHandle> = state.logs.iter().map(|log| log.handle.clone()).collect();
        let newest = state.logs.last().map(|log| log.number);
        drop(state);

        let outcome = handles.iter().try_for_each(SyncHandle::sync);

        let mut state = lock(&self.state);
        state.syncing = false;
        let result = match outcome {
            Ok(()) => {
                state.synced = state.synced.max(covered);
                // What came before the log that was newest then is durable to its end.
                if let Some(newest) = newest {
                    state.logs.retain(|log| log.number >= newest);
                }
                Ok(())
            }
            Err(error) => {
                state.failed = Some(error.clone());
                Err(error)
            }
        };
        drop(state);
        self.changed.notify_all();
        result
    }
}
