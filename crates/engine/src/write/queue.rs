//! The commit queue: it decides which writer leads, and has the others sleep until they are
//! ordered.
//!
//! 1. [`CommitQueue::enter`]: if nobody leads, the caller leads. Otherwise its slot joins the
//!    queue, and `WriterSlot::wait` spins, yields, and finally parks the thread.
//! 2. [`CommitQueue::lead`] returns [`Leading`], which the leader holds.
//! 3. [`CommitQueue::gather`] takes the writers of the group out of the queue.
//! 4. The leader gives each of them an [`Assignment`] (`assign`).
//! 5. Dropping [`Leading`] makes the next writer in the queue the leader (`hand_over`).
//! 6. The leader wakes its group: `wake_assigned`, or `wake_failed` if the WAL refused the record.
//!
//! A leader that panics leaves its state unreliable. Then no group is led any more, and every write
//! fails.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use sateen_store::base::sync::{Mutex, hint, lock, processors, thread};
use sateen_store::base::waited::{self, Part};
use sateen_store::batch::encode_entry;

use super::conflicts::{Condition, Conflicts, Touched};
use super::{Assignment, Logging, Payload};

// The states of a slot. Above `PARKED` the wait is over.
const WAITING: u32 = 0;
const PARKED: u32 = 1;
const LEAD: u32 = 2;
const ASSIGNED: u32 = 3;
const FAILED: u32 = 4;

/// Rounds that a follower spins before it yields: a group takes a few microseconds. It does not
/// spin if its write is logged and there are more writers than processors, because the leader may
/// need the processor.
const SPINS: u32 = 100;
/// Rounds that a follower yields before it parks. Waking a parked thread costs more than most
/// groups take.
const YIELDS: u32 = 64;
/// The same for a synced write, whose group may wait for a barrier.
const YIELDS_SYNC: u32 = 8;

/// Largest number of writers that follow one leader. A group must not fill the publisher's ring,
/// because the leader wakes it only when every writer has a place there.
const FOLLOWERS_MAX: usize = super::publish::IN_FLIGHT_MAX / 4;

/// A writer in the queue. Each thread has one and reuses it.
pub(crate) struct WriterSlot {
    state: AtomicU32,
    thread: thread::Thread,
    inner: Mutex<WriterSlotInner>,
}

/// The write of a slot, and what its leader decided.
struct WriterSlotInner {
    /// The encoded entries for the WAL and the trace; empty if neither gets them.
    bytes: Vec<u8>,
    /// The length of `bytes`, also while the leader has them.
    bytes_len: usize,
    /// Number of entries.
    count: u64,
    logging: Logging,
    /// True if it leads alone and joins no group.
    exclusive: bool,
    assignment: Option<Assignment>,
    error: Option<Error>,
    /// The keys of the write, if transactions are in use.
    touched: Touched,
    keys_known: bool,
    /// What must hold when the write is numbered.
    condition: Option<Arc<Condition>>,
    /// True if the condition did not hold, and the leader left the write out.
    left_out: bool,
}

/// The result of entering the queue.
pub(crate) enum QueueTurn {
    /// The caller leads, until it drops the result of [`CommitQueue::lead`].
    Lead,
    /// Another leader has ordered the caller's write, or left it out.
    Assigned,
    /// Another leader failed to log the caller's write.
    Failed(Error),
}

#[derive(Default)]
struct QueueState {
    /// True while a writer leads.
    led: bool,
    /// Writers that wait, first come first.
    waiting: VecDeque<Arc<WriterSlot>>,
}

/// The queue of writers.
#[derive(Default)]
pub(crate) struct CommitQueue {
    state: Mutex<QueueState>,
    /// True once a leader has panicked. Its state cannot be trusted.
    panicked: AtomicBool,
}

/// Leadership. When dropped, it goes to the next writer in the queue. If it is dropped by a panic,
/// the group gets an error, and no group is led any more.
pub(crate) struct Leading<'a> {
    queue: &'a CommitQueue,
    /// The writers of the group besides the leader.
    pub(crate) group: Vec<Arc<WriterSlot>>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.queue.panicked.store(true, Ordering::Relaxed);
            self.group.iter().for_each(|slot| slot.wake_failed(&leader_panicked()));
        }
        self.queue.hand_over();
    }
}

fn leader_panicked() -> Error {
    let message = "it was leading a commit group; reopen the database".to_owned();
    Error::Panicked { thread: "of a writer".to_owned(), message }
}

sateen_store::base::sync::thread_local! {
    static SLOT: RefCell<Option<Arc<WriterSlot>>> = const { RefCell::new(None) };
}

/// Runs `act` with this thread's slot. A write from within a callback, while another write of this
/// thread is under way, gets a fresh slot.
#[inline]
pub(crate) fn with_slot<R>(act: impl FnOnce(&Arc<WriterSlot>) -> R) -> R {
    let slot =
        SLOT.with(|cell| cell.borrow_mut().take()).unwrap_or_else(|| Arc::new(WriterSlot::new()));
    let result = act(&slot);
    SLOT.with(|cell| *cell.borrow_mut() = Some(slot));
    result
}

impl WriterSlot {
    fn new() -> WriterSlot {
        WriterSlot {
            state: AtomicU32::new(WAITING),
            thread: thread::current(),
            inner: Mutex::new(WriterSlotInner {
                bytes: Vec::new(),
                bytes_len: 0,
                count: 0,
                logging: Logging::None,
                exclusive: false,
                assignment: None,
                error: None,
                touched: Touched::default(),
                keys_known: false,
                condition: None,
                left_out: false,
            }),
        }
    }

    /// Fills the slot with a write, before it enters the queue. `traced`: while a trace is
    /// recorded.
    pub(crate) fn prepare(&self, payload: &Payload<'_>, logging: Logging, traced: bool) {
        let mut inner = lock(&self.inner);
        inner.count = payload.count();
        inner.logging = logging;
        inner.exclusive = false;
        inner.error = None;
        inner.assignment = None;
        inner.keys_known = false;
        inner.condition = None;
        inner.left_out = false;
        inner.bytes.clear();
        // A large batch must not stay in memory with the thread.
        inner.bytes.shrink_to(1 << 20);
        if logging != Logging::None || traced {
            match *payload {
                Payload::Single { family, kind, key, value } => {
                    encode_entry(&mut inner.bytes, family, kind, key, value);
                }
                Payload::Batch(batch) => inner.bytes.extend_from_slice(batch.data()),
            }
        }
        inner.bytes_len = inner.bytes.len();
        self.state.store(WAITING, Ordering::Relaxed);
    }

    /// Adds the keys of the write, and the condition of a transaction.
    #[cold]
    pub(crate) fn prepare_keys(&self, payload: &Payload<'_>, condition: Option<Arc<Condition>>) {
        let mut inner = lock(&self.inner);
        inner.touched.of(payload);
        inner.keys_known = true;
        inner.condition = condition;
    }

    /// Fills the slot for work that leads alone.
    pub(crate) fn prepare_exclusive(&self) {
        let mut inner = lock(&self.inner);
        inner.left_out = false;
        inner.exclusive = true;
        inner.count = 0;
        inner.bytes_len = 0;
        self.state.store(WAITING, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> usize {
        lock(&self.inner).bytes_len
    }

    pub(crate) fn count(&self) -> u64 {
        lock(&self.inner).count
    }

    pub(crate) fn logging(&self) -> Logging {
        lock(&self.inner).logging
    }

    /// Returns whether the write goes to the WAL; `None` if it is left out.
    #[inline]
    pub(crate) fn is_logged(&self) -> Option<bool> {
        let inner = lock(&self.inner);
        (!inner.left_out).then_some(inner.logging != Logging::None)
    }

    /// Notes the keys of the write, whose first sequence number is `first`, and returns the number
    /// after its last. Leaves it out if its condition does not hold. The caller leads.
    pub(crate) fn take_part(&self, conflicts: &Conflicts, first: u64) -> u64 {
        let mut inner = lock(&self.inner);
        if inner.condition.as_ref().is_some_and(|condition| !conflicts.hold(condition)) {
            inner.left_out = true;
            return first;
        }
        let next = first + inner.count;
        if inner.count > 0 {
            let touched = inner.keys_known.then_some(&inner.touched);
            conflicts.note(touched, SeqNo(next - 1));
        }
        next
    }

    /// Lends the encoded entries to the leader, until [`WriterSlot::return_bytes`].
    pub(crate) fn take_bytes(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.inner).bytes)
    }

    pub(crate) fn return_bytes(&self, bytes: Vec<u8>) {
        lock(&self.inner).bytes = bytes;
    }

    /// Calls `act` with the encoded entries, their number and the way to the WAL. Only for the slot
    /// of the leader, which no other thread looks at, so that the lock may be held while `act`
    /// writes.
    #[inline]
    pub(crate) fn with_entries<R>(&self, act: impl FnOnce(&[u8], u64, Logging) -> R) -> R {
        let inner = lock(&self.inner);
        act(&inner.bytes, inner.count, inner.logging)
    }

    #[inline]
    pub(crate) fn assign(&self, assignment: Assignment) {
        lock(&self.inner).assignment = Some(assignment);
    }

    /// Takes the assignment; `None` if the write was left out.
    pub(crate) fn take_assignment(&self) -> Option<Assignment> {
        lock(&self.inner).assignment.take()
    }

    pub(crate) fn wake_assigned(&self) {
        self.wake(ASSIGNED);
    }

    pub(crate) fn wake_failed(&self, error: &Error) {
        lock(&self.inner).error = Some(error.clone());
        self.wake(FAILED);
    }

    fn wake(&self, state: u32) {
        if self.state.swap(state, Ordering::AcqRel) == PARKED {
            self.thread.unpark();
        }
    }

    /// Waits until a leader has changed the state, and returns the new state.
    fn wait(&self, spins: u32) -> u32 {
        let yields = if self.logging() == Logging::Synced { YIELDS_SYNC } else { YIELDS };
        let mut waits = None;
        for round in 0..spins + yields {
            let state = self.state.load(Ordering::Acquire);
            if state > PARKED {
                return state;
            }
            if round < spins {
                hint::spin_loop();
            } else {
                // By now the wait is long compared with reading the clock.
                waits.get_or_insert_with(|| waited::wait(Part::Queue));
                thread::yield_now();
            }
        }
        // Fails if a leader has changed the state meanwhile. Otherwise the leader sees that it must
        // unpark.
        let parked =
            self.state.compare_exchange(WAITING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        if let Err(state) = parked {
            return state;
        }
        loop {
            thread::park();
            let state = self.state.load(Ordering::Acquire);
            if state > PARKED {
                return state;
            }
        }
    }
}

impl CommitQueue {
    /// Joins the queue. Returns when the caller leads, or another leader has ordered its write.
    pub(crate) fn enter(&self, slot: &Arc<WriterSlot>) -> QueueTurn {
        let spins = {
            let mut state = lock_timed(&self.state);
            if !state.led {
                state.led = true;
                return QueueTurn::Lead;
            }
            state.waiting.push_back(slot.clone());
            let few = state.waiting.len() < processors();
            if few || slot.logging() == Logging::None { SPINS } else { 0 }
        };
        match slot.wait(spins) {
            LEAD => QueueTurn::Lead,
            ASSIGNED => QueueTurn::Assigned,
            _ => QueueTurn::Failed(lock(&slot.inner).error.take().unwrap_or(Error::Closed)),
        }
    }

    /// Makes the caller the leader if nobody leads, so that it waits for no other writer.
    #[inline]
    pub(crate) fn try_lead(&self) -> Option<Leading<'_>> {
        let mut state = lock_timed(&self.state);
        if std::mem::replace(&mut state.led, true) {
            return None;
        }
        drop(state);
        Some(self.lead())
    }

    /// Returns the leadership of a caller whose [`QueueTurn`] is to lead. Before it leads a group,
    /// it must call [`CommitQueue::check`].
    pub(crate) fn lead(&self) -> Leading<'_> {
        Leading { queue: self, group: Vec::new() }
    }

    /// Fails if a leader has panicked.
    pub(crate) fn check(&self) -> Result<()> {
        if self.panicked.load(Ordering::Relaxed) { Err(leader_panicked()) } else { Ok(()) }
    }

    /// Takes the writers of a group out of the queue, first come first, up to `bytes_max` bytes
    /// together with the leader's, and up to the first writer that leads alone.
    #[inline]
    pub(crate) fn gather(&self, leader: &WriterSlot, bytes_max: usize) -> Vec<Arc<WriterSlot>> {
        let mut state = lock_timed(&self.state);
        if state.waiting.is_empty() {
            return Vec::new();
        }
        let bytes_max = bytes_max.saturating_sub(leader.bytes());
        let mut bytes = 0;
        // A group ends before the first writer that does not fit, so that writers keep their order.
        let fits = |slot: &Arc<WriterSlot>| {
            let inner = lock(&slot.inner);
            bytes += inner.bytes_len;
            !inner.exclusive && bytes <= bytes_max
        };
        let waiting = state.waiting.iter().take(FOLLOWERS_MAX);
        let taken = waiting.map(fits).take_while(|fits| *fits).count();
        state.waiting.drain(..taken).collect()
    }

    /// Gives leadership to the next writer in the queue, if there is one.
    fn hand_over(&self) {
        let next = {
            let mut state = lock_timed(&self.state);
            let next = state.waiting.pop_front();
            state.led = next.is_some();
            next
        };
        if let Some(slot) = next {
            slot.wake(LEAD);
        }
    }
}

#[cfg(test)]
mod tests {
    use sateen_control::{ColumnFamilyId, IoClass, ValueKind};

    use super::*;
    use crate::{Db, Options};
    use sateen_store::vfs::{Fault, FaultRule, FaultVfs, MemVfs, VfsOperation};

    #[test]
    fn a_group_leaves_room_in_the_ring() {
        let queue = CommitQueue::default();
        let more = (0..FOLLOWERS_MAX + 10).map(|_| Arc::new(WriterSlot::new()));
        lock(&queue.state).waiting.extend(more);
        let leader = WriterSlot::new();
        assert_eq!(queue.gather(&leader, usize::MAX).len(), FOLLOWERS_MAX);
        assert_eq!(queue.gather(&leader, usize::MAX).len(), 10);
    }

    /// Sealing memtables while a WAL is dead does not take up the next WAL, which was created
    /// before. A record in it would follow an end that was never written.
    #[test]
    fn a_dead_log_has_no_successor() {
        let faulty = FaultVfs::new(Arc::new(MemVfs::new()));
        let options = Options { background_threads: 0, ..Options::default() };
        let db = Db::open_with(Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
        db.put("a", "1").unwrap();
        while db.step().unwrap() {}
        let pipeline = &db.core().writes.pipeline;
        assert!(!pipeline.wants_wal(), "there is a successor");
        faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
        db.put("refused", "2").unwrap_err();
        faulty.clear();
        assert!(pipeline.exclusive(|stage| pipeline.seal(stage, &[ColumnFamilyId(0)])));
        // A write whose writer passed the health check before the WAL died.
        let (family, kind) = (ColumnFamilyId(0), ValueKind::Put);
        let late = Payload::Single { family, kind, key: b"late", value: b"3" };
        pipeline.commit(&late, Logging::Buffered).unwrap_err();
        db.resume().unwrap();
        db.put("b", "4").unwrap();
        assert_eq!(db.get("late").unwrap(), None);
    }

    #[test]
    fn nobody_waits_for_a_leader_that_panicked() {
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", Options::default(), &[]).unwrap();
        db.put("before", "1").unwrap();
        let pipeline = &db.core().writes.pipeline;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pipeline.exclusive(|_| panic!("as a bug would"));
        }));
        assert!(panicked.is_err());
        let refused = db.put("after", "2").unwrap_err();
        assert!(matches!(refused, Error::Panicked { .. }), "{refused}");
        assert_eq!(db.get("before").unwrap().as_deref(), Some(&b"1"[..]));
        db.close().unwrap();
    }

    #[test]
    fn more_writers_at_once_than_the_ring_has_places_all_go_on() {
        const WRITERS: usize = 1100;
        let options = Options::default();
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        let pipeline = &db.core().writes.pipeline;
        std::thread::scope(|scope| {
            pipeline.exclusive(|_| {
                for i in 0..WRITERS {
                    let db = &db;
                    scope.spawn(move || db.put(format!("key{i:04}"), "value").unwrap());
                }
                while lock(&pipeline.queue.state).waiting.len() < WRITERS {
                    std::thread::yield_now();
                }
            });
        });
        let mut iter = db.cursor(&crate::ReadOptions::default()).unwrap();
        iter.seek_to_first();
        let mut found = 0;
        while iter.valid() {
            found += 1;
            iter.next();
        }
        assert_eq!(found, WRITERS);
    }
}
