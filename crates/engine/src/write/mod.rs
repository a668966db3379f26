//! The commit path: from a batch to a published sequence number.
//!
//! A write passes three stages. *Order*: writers queue up; the first is the leader, gives everyone
//! in its group sequence numbers and appends one record to the log. *Apply*: every writer of the
//! group inserts its own entries into the memtables, all at once, while the next leader is already
//! at work. *Publish*: the entries become visible in commit order. A writer that asked for a sync
//! then waits for one that covers its record; nobody else waits for it.
//!
//! What must stay true: only the leader touches [`Stage`]; nothing waits for the disk while holding
//! the queue; the client path creates, renames and removes no file (a successor log is made in the
//! background and merely taken up here, the old one staying in use until it is there).

pub(crate) mod batch;
mod between;
mod logs;
pub(crate) mod path;
mod publish;
mod queue;

use std::collections::BTreeSet;
use std::sync::Arc;

use batch::WriteBatch;
use publish::Publisher;
use queue::{CommitQueue, QueueTurn};
use sateen_control::{ColumnFamilyId, LogNumber, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::base::plant::planted;
use sateen_store::base::sync::Mutex;
use sateen_store::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sateen_store::base::waited;
use sateen_store::memtable::MemTable;
use sateen_store::wal::{WalSync, WalWriter};

use crate::timeline::Recorder;
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

/// What only the leader touches.
pub(crate) struct Stage {
    wal: Option<WalWriter>,
    /// The log that new records go to; 0 while there is none.
    wal_number: LogNumber,
    next_seqno: u64,
    next_ticket: u64,
    active: Arc<ActiveSet>,
}

/// What one writer brings.
pub(crate) enum Payload<'a> {
    /// One entry: needs no batch unless it goes to the log.
    Single { family: ColumnFamilyId, kind: ValueKind, key: &'a [u8], value: &'a [u8] },
    /// A whole batch.
    Batch(&'a WriteBatch),
}

impl Payload<'_> {
    /// The bytes of keys and values that it writes to `id`, and one for each entry; 0 if it writes
    /// nothing there.
    pub(crate) fn bytes_to(&self, id: ColumnFamilyId) -> u64 {
        let bytes = |key: &[u8], value: &[u8]| 1 + key.len() as u64 + value.len() as u64;
        match self {
            Payload::Single { family, key, value, .. } if *family == id => bytes(key, value),
            Payload::Single { .. } => 0,
            Payload::Batch(batch) => {
                let here = batch.iter().filter(|entry| entry.column_family == id);
                here.map(|entry| bytes(entry.key, entry.value)).sum()
            }
        }
    }
}

impl Payload<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Payload::Batch(batch) if batch.len_bytes() == 0)
    }
}

/// Whether and how a write goes to the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logging {
    None,
    Buffered,
    Synced,
}

/// What the leader gives each writer of its group.
#[derive(Clone, Default)]
pub(crate) struct Assignment {
    first_seqno: u64,
    ticket: u64,
    active: Option<Arc<ActiveSet>>,
    /// What makes the write durable; None if it is not logged.
    log: Option<Arc<WalSync>>,
}

/// The pipeline that every write of a database goes through.
pub(crate) struct CommitPipeline {
    queue: CommitQueue,
    /// Uncontended: taken by the leader alone, leadership being given by the queue.
    stage: Mutex<Stage>,
    publisher: Publisher,
    /// The logs that hold anything that tables do not, oldest first; the last is in use.
    logs: Mutex<Vec<(LogNumber, Arc<WalSync>)>>,
    /// A log that the background has made for the next switch.
    next_wal: Mutex<Option<WalWriter>>,
    /// Some memtable is over its size: the next leader seals it.
    switch_wanted: AtomicBool,
    timeline: Arc<Recorder>,
    /// Called (by the leader) after memtables were sealed.
    sealed_hook: Box<dyn Fn() + Send + Sync>,
    group_bytes_max: usize,
    /// A log's link is written when it is taken up: readers may want the logs before it.
    links_at_once: bool,
    /// Memtables sealed so far.
    seals: AtomicU64,
    /// The memtables of all column families are sealed together.
    seals_all: bool,
    /// The newest sequence number when memtables were sealed last.
    sealed_through: AtomicU64,
    /// Groups that were numbered and appended.
    groups: AtomicU64,
}

/// How [`CommitPipeline::new`] starts.
pub(crate) struct PipelineStart {
    pub(crate) wal: Option<WalWriter>,
    pub(crate) last_seqno: SeqNo,
    pub(crate) group_bytes_max: usize,
    /// Logs that recovery does not need are kept.
    pub(crate) keeps_logs: bool,
    /// The memtables of all column families are sealed together.
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
        }
    }

    /// The newest sequence number that readers see.
    #[inline]
    pub(crate) fn visible_seqno(&self) -> SeqNo {
        self.publisher.visible()
    }

    /// Readers see up to `visible` from now on: what another database wrote.
    pub(crate) fn show(&self, visible: SeqNo) {
        self.publisher.show(visible);
    }

    /// How many groups of writes were committed together.
    pub(crate) fn groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    /// Memtables sealed so far.
    pub(crate) fn seals(&self) -> u64 {
        self.seals.load(Ordering::Relaxed)
    }

    /// Where all are sealed together: every entry up to this sequence number is in a table or in a
    /// sealed memtable.
    pub(crate) fn sealed_through(&self) -> SeqNo {
        SeqNo(self.sealed_through.load(Ordering::Acquire))
    }

    /// Commits one write: Ok means ordered, logged as asked, applied and visible.
    #[inline]
    pub(crate) fn commit(&self, payload: &Payload<'_>, logging: Logging) -> Result<SeqNo> {
        let count = match payload {
            Payload::Single { .. } => 1,
            Payload::Batch(batch) => u64::from(batch.count()),
        };
        // Log data alone is written, with the next sequence number, which it does not take.
        if count == 0 && (logging == Logging::None || payload.is_empty()) {
            return Ok(self.visible_seqno());
        }
        let assignment = queue::with_slot(|slot| {
            slot.prepare(count, logging, payload);
            let waits = perf::time(PerfMetric::WriteThreadWaitNanos);
            let turn = self.queue.enter(slot);
            drop(waits);
            match turn {
                QueueTurn::Lead => self.lead(slot)?,
                QueueTurn::Assigned => {}
                QueueTurn::Failed(error) => return Err(error),
            }
            Ok(slot.take_assignment())
        })?;
        let last = assignment.first_seqno + count - 1;
        waited::inserting();
        let inserts = perf::time(PerfMetric::WriteMemtableTime);
        let applied = self.apply(payload, &assignment);
        drop(inserts);
        // Published even if applying failed: the sequence numbers are given out, and those behind
        // them must not wait. Applying fails only for a column family that was dropped since it was
        // looked for.
        self.publisher.publish(assignment.ticket, last, logging != Logging::None);
        applied?;
        if logging == Logging::Synced
            && !planted("ack_before_sync")
            && let Some(log) = &assignment.log
        {
            let _timed = perf::time(PerfMetric::WriteWalTime);
            log.sync()?;
        }
        Ok(SeqNo(last))
    }

    /// Runs `act` as a leader of its own, with every earlier write ordered and none after it.
    pub(crate) fn exclusive<R>(&self, act: impl FnOnce(&mut Stage) -> R) -> R {
        queue::with_slot(|slot| {
            slot.prepare_exclusive();
            // An exclusive slot is never assigned or failed by another leader: it always leads.
            let _turn = self.queue.enter(slot);
            let _leading = self.queue.lead();
            let mut stage = lock_timed(&self.stage);
            act(&mut stage)
        })
    }

    #[inline]
    fn lead(&self, own: &Arc<queue::WriterSlot>) -> Result<()> {
        let mut leading = self.queue.lead();
        self.queue.check()?;
        let mut stage = lock_timed(&self.stage);
        leading.group = self.queue.gather(self.group_bytes_max.saturating_sub(own.bytes()));
        if self.switch_wanted.swap(false, Ordering::Relaxed) {
            self.seal_full(&mut stage);
        }
        let outcome = self.order(&mut stage, own, &leading.group);
        drop(stage);
        let group = std::mem::take(&mut leading.group);
        drop(leading);
        match outcome {
            Ok(()) => {
                group.iter().for_each(|slot| slot.wake_assigned());
                Ok(())
            }
            Err(error) => {
                group.iter().for_each(|slot| slot.wake_failed(&error));
                Err(error)
            }
        }
    }

    /// Numbers the group and appends it to the log. Those that are logged come first, so that a
    /// record's entries are numbered without gaps.
    fn order(
        &self,
        stage: &mut Stage,
        own: &Arc<queue::WriterSlot>,
        group: &[Arc<queue::WriterSlot>],
    ) -> Result<()> {
        let first = stage.next_seqno;
        let mut next = first;
        let mut ticket = stage.next_ticket;
        let everyone = || std::iter::once(&*own).chain(group.iter());
        let logged = everyone().filter(|slot| slot.logging() != Logging::None).count();
        if logged > 0 {
            let Some(wal) = stage.wal.as_mut() else {
                return Err(Error::InvalidArgument("the database has no log to write to".into()));
            };
            let mut entries = 0_u64;
            let mut parts = Vec::with_capacity(logged);
            for slot in everyone().filter(|slot| slot.logging() != Logging::None) {
                entries += slot.count();
                parts.push(slot.take_bytes());
            }
            let count = u32::try_from(entries).unwrap_or(u32::MAX);
            let appends = perf::time(PerfMetric::WriteWalTime);
            let appended = wal.append(SeqNo(first), count, parts.iter().map(Vec::as_slice));
            drop(appends);
            let returned = everyone().filter(|slot| slot.logging() != Logging::None);
            returned.zip(parts).for_each(|(slot, bytes)| slot.return_bytes(bytes));
            appended?;
        }
        // Not an exchange: only the leader, who holds the stage, counts.
        self.groups.store(self.groups.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let log = stage.wal.as_ref().map(WalWriter::sync_handle);
        for wanted in [true, false] {
            for slot in everyone().filter(|slot| (slot.logging() != Logging::None) == wanted) {
                slot.assign(Assignment {
                    first_seqno: next,
                    ticket,
                    active: Some(stage.active.clone()),
                    log: log.clone().filter(|_| wanted),
                });
                next += slot.count();
                ticket += 1;
            }
        }
        stage.next_seqno = next;
        stage.next_ticket = ticket;
        self.publisher.wait_for_room(ticket);
        if planted("visible_before_applied") {
            self.publisher.show(SeqNo(next - 1));
        }
        Ok(())
    }

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
                // A family that is dropped while the batch is on its way takes its entries with it,
                // as if the batch had come first. The rest is applied: never half of it.
                if skipped > 0 && skipped == batch.count() {
                    let family = batch.iter().next().map(|entry| entry.column_family.to_string());
                    return Err(Error::NoSuchColumnFamily(family.unwrap_or_default()));
                }
                Ok(())
            }
        }
    }

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

    /// Asks the next leader to seal memtables that are over their size.
    pub(crate) fn want_switch(&self) {
        self.switch_wanted.store(true, Ordering::Relaxed);
    }

    fn seal_full(&self, stage: &mut Stage) {
        let full = |(_, family, memtable): &&(_, Arc<ColumnFamilyData>, Arc<MemTable>)| {
            family.wants_seal(memtable)
        };
        let families: Vec<_> = stage.active.members.iter().filter(full).map(|m| m.0).collect();
        if !families.is_empty() {
            self.seal(stage, &families);
        }
    }

    /// Seals the active memtables of `families`, or of all where they are sealed together (those
    /// that hold anything), and takes up the next log if it is there. The caller leads.
    pub(crate) fn seal(&self, stage: &mut Stage, families: &[ColumnFamilyId]) -> bool {
        // Writes that are ordered but not applied yet belong to the memtables sealed here: a sealed
        // memtable is complete. They take microseconds and need nothing that the leader holds.
        if !planted("sealed_before_applied") {
            self.publisher.wait_applied(stage.next_ticket);
        }
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
            // After the last of them: a flush takes all of one seal or nothing.
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

    /// Adds column families' memtables to those that take writes. The caller leads.
    pub(crate) fn add_families<'a>(
        &self,
        stage: &mut Stage,
        families: impl Iterator<Item = &'a Arc<ColumnFamilyData>>,
    ) {
        let mut active = (*stage.active).clone();
        for family in families {
            let memtable = family.active_memtable();
            // One that comes back, because it could not be dropped, may have entries in older logs.
            if memtable.is_empty() {
                family.set_active_log(stage.wal_number);
            }
            active.members.push((family.id(), family.clone(), memtable));
        }
        active.members.sort_by_key(|member| member.0);
        stage.active = Arc::new(active);
    }

    /// Removes column families: writes to them fail from now on. The caller leads.
    pub(crate) fn remove_families(&self, stage: &mut Stage, ids: &BTreeSet<ColumnFamilyId>) {
        let mut active = (*stage.active).clone();
        active.members.retain(|member| !ids.contains(&member.0));
        stage.active = Arc::new(active);
    }
}

impl Stage {
    /// The newest sequence number given out.
    pub(crate) fn last_seqno(&self) -> SeqNo {
        SeqNo(self.next_seqno - 1)
    }

    /// Writes a group to the log that nobody sees, as it is before it is applied.
    #[cfg(test)]
    pub(crate) fn append_unseen(&mut self, batch: &WriteBatch) {
        let wal = self.wal.as_mut().expect("there is a log");
        wal.append(SeqNo(self.next_seqno), batch.count(), [batch.data()]).expect("it is alive");
    }

    /// The number of the log in use.
    pub(crate) fn wal_number(&self) -> LogNumber {
        self.wal_number
    }
}
