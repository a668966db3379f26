//! The commit path: from a write to a published sequence number.
//!
//! 1. *Order.* [`CommitPipeline::commit`] puts the write into the commit queue. The first writer
//!    leads (`lead`): it takes a group, seals full memtables, numbers the group's entries and
//!    appends one record to the WAL (`order`, or `order_alone` if it is the only writer). Then it
//!    hands leadership to the next writer in the queue.
//! 2. *Apply.* Every writer of the group inserts its own entries into the memtables (`apply`), all
//!    of them at once, while the next leader is already at work.
//! 3. *Publish.* [`Publisher::publish`] makes the entries visible in commit order.
//! 4. *Sync.* A synced write waits for an fsync that covers its record. No other writer waits for
//!    it, and readers see the entries before it.
//!
//! [`CommitPipeline::exclusive`] runs other work as a leader with an empty group: sealing,
//! replacing a WAL, adding and removing column families, and installing ingested files
//! (`between.rs`).
//!
//! A caller that must not wait tries ([`CommitPipeline::try_commit`] in `attempt.rs`).
//!
//! What must stay true:
//!
//! - Only the leader touches [`Stage`].
//! - Nobody waits for the disk while holding the queue's lock.
//! - The client path creates, renames and removes no file. The next WAL is created in the
//!   background and only taken up here. Until it exists, the present one stays in use.

mod attempt;
mod between;
pub(crate) mod conflicts;
mod logs;
pub(crate) mod path;
mod payload;
pub(crate) mod prepared;
mod publish;
mod queue;
mod traced;
mod validated;

use std::collections::BTreeSet;
use std::sync::Arc;

use conflicts::{Condition, Conflicts};
pub(crate) use payload::Payload;
use publish::Publisher;
use queue::{CommitQueue, QueueTurn};
use sateen_control::{ColumnFamilyId, LogNumber, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::base::sync::Mutex;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::waited;
use sateen_store::memtable::MemTable;
use sateen_store::wal::{WalSync, WalWriter};

use crate::timeline::Recorder;
use crate::trace::Tracing;
use crate::tree::families::ColumnFamilyData;

/// The memtables that take writes, one per column family. Replaced as a whole when one is sealed.
#[derive(Clone, Default)]
pub(crate) struct ActiveSet {
    members: Vec<(ColumnFamilyId, Arc<ColumnFamilyData>, Arc<MemTable>)>,
}

impl ActiveSet {
    fn find(&self, id: ColumnFamilyId) -> Option<(&Arc<ColumnFamilyData>, &Arc<MemTable>)> {
        let at = self.members.binary_search_by_key(&id, |member| member.0).ok()?;
        self.members.get(at).map(|(_, family, memtable)| (family, memtable))
    }
}

/// The state that only the leader touches.
pub(crate) struct Stage {
    wal: Option<WalWriter>,
    /// The WAL in use; 0 without one.
    wal_number: LogNumber,
    /// The sequence number of the next entry.
    next_seqno: u64,
    /// The place of the next write in the order of publishing.
    next_ticket: u64,
    active: Arc<ActiveSet>,
}

/// How a write reaches the WAL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logging {
    /// It is not logged.
    None,
    /// It is written to the WAL. A crash of the operating system may lose it.
    Buffered,
    /// It is written to the WAL and synced.
    Synced,
}

/// What the leader gives each writer of its group.
#[derive(Clone, Default)]
pub(crate) struct Assignment {
    /// The sequence number of the write's first entry.
    first_seqno: u64,
    /// The write's place in the order of publishing.
    ticket: u64,
    /// The memtables that its entries go to.
    active: Option<Arc<ActiveSet>>,
    /// The WAL whose sync makes the write durable. `None` if it need not be synced.
    log: Option<Arc<WalSync>>,
}

/// The pipeline that every write of a database goes through.
pub(crate) struct CommitPipeline {
    queue: CommitQueue,
    /// Uncontended: only the leader takes it, and the queue decides who leads.
    stage: Mutex<Stage>,
    publisher: Publisher,
    /// The WALs with entries that are in no table, oldest first. The last one is in use.
    logs: Mutex<Vec<(LogNumber, Arc<WalSync>)>>,
    /// The WAL that the background has created for the next switch.
    next_wal: Mutex<Option<WalWriter>>,
    /// True if a memtable may be full. The next leader looks and seals it.
    switch_wanted: AtomicBool,
    timeline: Arc<Recorder>,
    /// Called by the leader after it sealed memtables.
    sealed_hook: Box<dyn Fn() + Send + Sync>,
    group_bytes_max: usize,
    /// True if a WAL's link is written as soon as the WAL is taken up, because readers may follow
    /// it to older WALs.
    links_at_once: bool,
    /// Memtables sealed so far.
    seals: AtomicU64,
    /// True if the memtables of all column families are sealed together.
    seals_all: bool,
    /// The newest sequence number when memtables were sealed last.
    sealed_through: AtomicU64,
    /// Commit groups so far.
    groups: AtomicU64,
    /// When keys were written last, for transactions.
    conflicts: Conflicts,
    /// The trace of calls, to which a leader adds the writes of its group.
    tracing: Arc<Tracing>,
}

/// The arguments of [`CommitPipeline::new`].
pub(crate) struct PipelineStart {
    pub(crate) wal: Option<WalWriter>,
    /// The newest sequence number that is in use.
    pub(crate) last_seqno: SeqNo,
    pub(crate) group_bytes_max: usize,
    /// True if WALs that recovery does not need are kept for readers.
    pub(crate) keeps_logs: bool,
    /// True if the memtables of all column families are sealed together.
    pub(crate) seals_all: bool,
    pub(crate) timeline: Arc<Recorder>,
    pub(crate) sealed_hook: Box<dyn Fn() + Send + Sync>,
}

impl CommitPipeline {
    pub(crate) fn new(start: PipelineStart) -> CommitPipeline {
        let wal_number = start.wal.as_ref().map_or(LogNumber(0), WalWriter::number);
        let logs = start.wal.iter().map(|wal| (wal.number(), wal.sync_handle())).collect();
        CommitPipeline {
            queue: CommitQueue::default(),
            stage: Mutex::new(Stage {
                wal: start.wal,
                wal_number,
                next_seqno: start.last_seqno.0 + 1,
                next_ticket: 0,
                active: Arc::default(),
            }),
            publisher: Publisher::new(start.last_seqno),
            logs: Mutex::new(logs),
            next_wal: Mutex::new(None),
            switch_wanted: AtomicBool::new(false),
            timeline: start.timeline,
            sealed_hook: start.sealed_hook,
            group_bytes_max: start.group_bytes_max,
            links_at_once: start.keeps_logs,
            seals: AtomicU64::new(0),
            seals_all: start.seals_all,
            sealed_through: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            conflicts: Conflicts::default(),
            tracing: Arc::default(),
        }
    }

    /// Returns the newest sequence number that readers see.
    #[inline]
    pub(crate) fn visible_seqno(&self) -> SeqNo {
        self.publisher.visible()
    }

    /// Makes everything up to `visible` visible: entries that the primary of a secondary wrote.
    pub(crate) fn show(&self, visible: SeqNo) {
        self.publisher.show(visible);
    }

    /// Returns the number of commit groups so far.
    pub(crate) fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    /// Returns the number of memtables sealed so far.
    pub(crate) fn seals(&self) -> u64 {
        self.seals.load(Ordering::Relaxed)
    }

    /// Returns a sequence number up to which every entry is in a table or a sealed memtable.
    /// Meaningful only if the memtables of all column families are sealed together.
    pub(crate) fn sealed_through(&self) -> SeqNo {
        SeqNo(self.sealed_through.load(Ordering::Acquire))
    }

    /// Commits one write. `Ok` means that it is ordered, logged as asked, applied and visible.
    /// Returns its last sequence number.
    #[inline]
    pub(crate) fn commit(&self, payload: &Payload<'_>, logging: Logging) -> Result<SeqNo> {
        // Without a condition it is never left out.
        Ok(self.commit_if(payload, logging, None)?.unwrap_or_else(|| self.visible_seqno()))
    }

    /// Commits one write if `condition` holds when it is numbered. Returns `None` if it does not.
    #[inline]
    fn commit_if(
        &self,
        payload: &Payload<'_>,
        logging: Logging,
        condition: Option<Arc<Condition>>,
    ) -> Result<Option<SeqNo>> {
        let count = payload.count();
        // A batch of log data alone is written with the next sequence number, but does not use it
        // up.
        if count == 0 && (logging == Logging::None || payload.is_empty()) {
            return Ok(Some(self.visible_seqno()));
        }
        let assignment = queue::with_slot(|slot| {
            // A logged write is encoded in any case, and its leader looks whether it is traced.
            slot.prepare(payload, logging, logging == Logging::None && self.tracing.is_on());
            if self.conflicts.is_on() {
                slot.prepare_keys(payload, condition);
            }
            let waits = perf::time(PerfMetric::WriteThreadWaitNanos);
            let turn = self.queue.enter(slot);
            drop(waits);
            match turn {
                QueueTurn::Lead => self.lead(slot),
                QueueTurn::Assigned => Ok(slot.take_assignment()),
                QueueTurn::Failed(error) => Err(error),
            }
        })?;
        assignment.map(|assignment| self.finish(payload, &assignment, logging)).transpose()
    }

    /// Applies and publishes a write that was ordered, and syncs it if it asked for that. Returns
    /// its last sequence number.
    #[inline]
    fn finish(
        &self,
        payload: &Payload<'_>,
        assignment: &Assignment,
        logging: Logging,
    ) -> Result<SeqNo> {
        let last = assignment.first_seqno + payload.count() - 1;
        waited::inserting();
        let inserts = perf::time(PerfMetric::WriteMemtableTime);
        let applied = self.apply(payload, assignment);
        drop(inserts);
        // Published even if applying failed: the sequence numbers are assigned, and later writes
        // must not wait for them. Applying fails only if the column family was dropped after the
        // caller looked it up.
        self.publisher.publish(assignment.ticket, last, logging != Logging::None);
        applied?;
        if logging == Logging::Synced
            && let Some(log) = &assignment.log
        {
            let _timed = perf::time(PerfMetric::WriteWalTime);
            log.sync()?;
        }
        Ok(SeqNo(last))
    }

    /// Runs `act` as the leader of an empty group: every earlier write is ordered, and no later
    /// one.
    pub(crate) fn exclusive<R>(&self, act: impl FnOnce(&mut Stage) -> R) -> R {
        queue::with_slot(|slot| {
            slot.prepare_exclusive();
            // No leader takes an exclusive slot into its group, so its turn is always to lead.
            let _turn = self.queue.enter(slot);
            let _leading = self.queue.lead();
            let mut stage = lock_timed(&self.stage);
            act(&mut stage)
        })
    }

    /// Leads a group: takes writers from the queue, seals full memtables, orders the group, hands
    /// leadership on, and wakes the group. Returns what `own` is assigned, if it is not left out.
    #[inline]
    fn lead(&self, own: &Arc<queue::WriterSlot>) -> Result<Option<Assignment>> {
        let mut leading = self.queue.lead();
        self.queue.check()?;
        let mut stage = lock_timed(&self.stage);
        leading.group = self.queue.gather(own, self.group_bytes_max);
        if self.takes_switch() {
            self.seal_full(&mut stage);
        }
        let outcome = if leading.group.is_empty() && !self.conflicts.is_on() {
            self.order_alone(&mut stage, own).map(Some)
        } else {
            self.order(&mut stage, own, &leading.group).map(|()| own.take_assignment())
        };
        drop(stage);
        // Leadership is handed on before the group is woken, so that the next group is ordered
        // meanwhile.
        let group = std::mem::take(&mut leading.group);
        drop(leading);
        match outcome {
            Ok(own) => {
                group.iter().for_each(|slot| slot.wake_assigned());
                Ok(own)
            }
            Err(error) => {
                group.iter().for_each(|slot| slot.wake_failed(&error));
                Err(error)
            }
        }
    }

    /// Numbers the group and appends its record to the WAL. Logged writes are numbered first, so
    /// that the entries of a record have consecutive numbers. Transactions whose condition does not
    /// hold are left out.
    fn order(
        &self,
        stage: &mut Stage,
        own: &Arc<queue::WriterSlot>,
        group: &[Arc<queue::WriterSlot>],
    ) -> Result<()> {
        let first = stage.next_seqno;
        let mut next = first;
        let mut ticket = stage.next_ticket;
        let all = || std::iter::once(&*own).chain(group.iter());
        if self.conflicts.is_on() {
            let mut next = first;
            for wanted in [true, false] {
                for slot in all().filter(|slot| slot.is_logged() == Some(wanted)) {
                    next = slot.take_part(&self.conflicts, next);
                }
            }
        }
        let those = |wanted| all().filter(move |slot| slot.is_logged() == Some(wanted));
        let logged = those(true).count();
        if logged > 0 {
            let Some(wal) = stage.wal.as_mut() else {
                return Err(no_wal());
            };
            let mut entries = 0_u64;
            let mut parts = Vec::with_capacity(logged);
            for slot in those(true) {
                entries += slot.count();
                parts.push(slot.take_bytes());
            }
            let count = u32::try_from(entries).unwrap_or(u32::MAX);
            let appends = perf::time(PerfMetric::WriteWalTime);
            let appended = wal.append(SeqNo(first), count, parts.iter().map(Vec::as_slice));
            drop(appends);
            those(true).zip(parts).for_each(|(slot, bytes)| slot.return_bytes(bytes));
            appended?;
        }
        if self.tracing.is_on() {
            those(true).chain(those(false)).for_each(|slot| self.trace_slot(stage, slot));
        }
        self.count_group();
        let log = stage.sync_handle();
        for wanted in [true, false] {
            for slot in those(wanted) {
                slot.assign(Assignment {
                    first_seqno: next,
                    ticket,
                    active: Some(stage.active.clone()),
                    log: log.as_ref().filter(|_| slot.logging() == Logging::Synced).cloned(),
                });
                next += slot.count();
                ticket += 1;
            }
        }
        stage.next_seqno = next;
        stage.next_ticket = ticket;
        // The publisher's ring must have a place for each writer before it is woken.
        self.publisher.wait_for_room(ticket);
        Ok(())
    }

    /// Does what `order` does for a group of one writer, which is most groups: it locks the slot
    /// once and allocates nothing.
    fn order_alone(&self, stage: &mut Stage, own: &queue::WriterSlot) -> Result<Assignment> {
        own.with_entries(|bytes, count, logging| {
            let (first_seqno, ticket) = (stage.next_seqno, stage.next_ticket);
            if logging != Logging::None {
                let wal = stage.wal.as_mut().ok_or_else(no_wal)?;
                let entries = u32::try_from(count).unwrap_or(u32::MAX);
                let _timed = perf::time(PerfMetric::WriteWalTime);
                wal.append(SeqNo(first_seqno), entries, [bytes])?;
            }
            if self.tracing.is_on() {
                self.trace(stage, bytes);
            }
            self.count_group();
            stage.next_seqno += count;
            stage.next_ticket += 1;
            self.publisher.wait_for_room(stage.next_ticket);
            let log = if logging == Logging::Synced { stage.sync_handle() } else { None };
            Ok(Assignment { first_seqno, ticket, active: Some(stage.active.clone()), log })
        })
    }

    fn count_group(&self) {
        // Not a `fetch_add`, because only the leader counts.
        self.groups.store(self.groups.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Inserts the entries of a write into the memtables.
    fn apply(&self, payload: &Payload<'_>, assignment: &Assignment) -> Result<()> {
        let active = assignment.active.as_deref().ok_or(Error::Closed)?;
        let mut seqno = assignment.first_seqno;
        match payload {
            Payload::Single { family, kind, key, value } => {
                self.insert(active, *family, SeqNo(seqno), *kind, key, value)
            }
            Payload::Batch(batch) => {
                let mut skipped = 0;
                for entry in batch.iter() {
                    let family = entry.column_family;
                    let (key, value) = (entry.key, entry.value);
                    let done = self.insert(active, family, SeqNo(seqno), entry.kind, key, value);
                    skipped += u32::from(done.is_err());
                    seqno += 1;
                }
                // A family that is dropped now takes its entries with it, as if the batch had come
                // before the drop. The entries of other families are applied, so that the batch is
                // not torn.
                if skipped > 0 && skipped == batch.count() {
                    let family = batch.iter().next().map(|entry| entry.column_family.to_string());
                    return Err(Error::NoSuchColumnFamily(family.unwrap_or_default()));
                }
                Ok(())
            }
        }
    }

    /// Inserts one entry. Asks for a switch if the memtable is full then.
    #[inline]
    fn insert(
        &self,
        active: &ActiveSet,
        family: ColumnFamilyId,
        seqno: SeqNo,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let Some((data, memtable)) = active.find(family) else {
            return Err(Error::NoSuchColumnFamily(family.to_string()));
        };
        memtable.insert(key, seqno, kind, value);
        if memtable.used_bytes() >= data.memtable_bytes_max() {
            self.switch_wanted.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns true if a memtable may be full, and forgets it. The caller leads, and looks.
    fn takes_switch(&self) -> bool {
        // Looked at first, because a swap costs more than most of what a leader does.
        self.switch_wanted.load(Ordering::Relaxed)
            && self.switch_wanted.swap(false, Ordering::Relaxed)
    }

    /// Asks the next leader to seal memtables that are full.
    pub(crate) fn want_switch(&self) {
        self.switch_wanted.store(true, Ordering::Relaxed);
    }

    /// Seals the memtables that are full or to be sealed early.
    fn seal_full(&self, stage: &mut Stage) {
        let full = |(_, family, memtable): &&(_, Arc<ColumnFamilyData>, Arc<MemTable>)| {
            family.wants_seal(memtable)
        };
        let families: Vec<_> = stage.active.members.iter().filter(full).map(|m| m.0).collect();
        if !families.is_empty() {
            self.seal(stage, &families);
        }
    }

    /// Seals the active memtables of `families`, or all of them if they are sealed together; empty
    /// ones stay. Takes up the next WAL if it exists. Returns true if a memtable was sealed. The
    /// caller leads.
    pub(crate) fn seal(&self, stage: &mut Stage, families: &[ColumnFamilyId]) -> bool {
        // Writes that are ordered but not yet applied belong to the memtables that are sealed here,
        // and a sealed memtable must be complete. Applying takes microseconds and needs nothing
        // that the leader holds.
        self.publisher.wait_applied(stage.next_ticket);
        let mut active = (*stage.active).clone();
        let mut sealed = false;
        for (id, family, memtable) in &mut active.members {
            if (self.seals_all || families.contains(id)) && !memtable.is_empty() {
                sealed = true;
            } else {
                continue;
            }
            self.timeline.sealed(*id, memtable.used_bytes() as u64);
            let fresh = family.new_memtable();
            family.seal(fresh.clone(), SeqNo(stage.next_seqno - 1));
            self.seals.fetch_add(1, Ordering::Relaxed);
            *memtable = fresh;
        }
        if sealed {
            // Set after the last memtable is sealed: with atomic flushes, a flush takes all of one
            // seal or nothing.
            self.sealed_through.store(stage.last_seqno().0, Ordering::Release);
            stage.active = Arc::new(active);
            self.take_up_next_wal(stage);
            for (_, family, memtable) in &stage.active.members {
                if memtable.is_empty() {
                    family.set_active_log(stage.wal_number);
                }
            }
            (self.sealed_hook)();
        }
        sealed
    }

    /// Adds column families to those that take writes. The caller leads.
    pub(crate) fn add_families<'a>(
        &self,
        stage: &mut Stage,
        families: impl Iterator<Item = &'a Arc<ColumnFamilyData>>,
    ) {
        let mut active = (*stage.active).clone();
        for family in families {
            let memtable = family.active_memtable();
            // A family that is added again, because its drop failed, may have entries in older
            // WALs.
            if memtable.is_empty() {
                family.set_active_log(stage.wal_number);
            }
            active.members.push((family.id(), family.clone(), memtable));
        }
        active.members.sort_by_key(|member| member.0);
        stage.active = Arc::new(active);
    }

    /// Removes column families from those that take writes: later writes to them fail. Their
    /// memtables count as sealed, because no flush will free them, however long a client keeps the
    /// handle. The caller leads.
    pub(crate) fn remove_families(&self, stage: &mut Stage, ids: &BTreeSet<ColumnFamilyId>) {
        self.publisher.wait_applied(stage.next_ticket);
        let mut active = (*stage.active).clone();
        let dropped = active.members.extract_if(.., |member| ids.contains(&member.0));
        dropped.for_each(|(_, _, memtable)| memtable.seal());
        stage.active = Arc::new(active);
    }
}

impl Stage {
    /// Returns the newest sequence number that was assigned.
    pub(crate) fn last_seqno(&self) -> SeqNo {
        SeqNo(self.next_seqno - 1)
    }

    /// Appends a group to the WAL that is never applied.
    #[cfg(test)]
    pub(crate) fn append_unseen(&mut self, batch: &crate::batch::WriteBatch) {
        let wal = self.wal.as_mut().expect("there is a log");
        wal.append(SeqNo(self.next_seqno), batch.count(), [batch.data()]).expect("it is alive");
    }

    /// Returns the WAL in use.
    fn sync_handle(&self) -> Option<Arc<WalSync>> {
        self.wal.as_ref().map(WalWriter::sync_handle)
    }

    /// Returns the number of the WAL in use.
    pub(crate) fn wal_number(&self) -> LogNumber {
        self.wal_number
    }
}

fn no_wal() -> Error {
    Error::InvalidArgument("the database has no WAL to write to".into())
}
