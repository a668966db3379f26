//! Where writers wait for the background: at the gates that control opens and closes, and for
//! memory where several databases share a limit on their memtables. A database without threads
//! works instead.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::StallCause;
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::perf::{self, PerfMetric};
use sateen_store::base::sync::atomic::Ordering;

use super::Background;
use crate::admission::gate::Writer;
use crate::admission::write_buffers::{SharesLimit, WAIT_MAX, WriteBufferManager};
use crate::options::WriteOptions;
use crate::tree::families::ColumnFamilyData;
use crate::write::Payload;

impl Background {
    /// Called before a write: makes room where the limit of all memtables demands it.
    #[inline]
    pub(crate) fn respect_write_buffers(self: &Arc<Self>, options: &WriteOptions) -> Result<()> {
        let Some(buffers) = &self.writes.write_buffers else { return Ok(()) };
        let manager = &buffers.manager;
        if manager.wants_flush() && !manager.ask_largest(buffers) {
            self.mark_largest();
        }
        if manager.wants_stall() { self.wait_for_memory(manager, options) } else { Ok(()) }
    }

    /// Has the next leader of a group of writes seal the largest memtable.
    fn mark_largest(&self) {
        if let Some(family) = self.chores.largest() {
            family.seal_early();
            self.writes.pipeline.want_switch();
        }
    }

    #[cold]
    fn wait_for_memory(
        self: &Arc<Self>,
        manager: &WriteBufferManager,
        options: &WriteOptions,
    ) -> Result<()> {
        let deadline = if options.no_slowdown { Some(Duration::ZERO) } else { options.deadline };
        let deadline = deadline.and_then(|within| clock::now().checked_add(within));
        let check = || {
            self.env.check_open()?;
            self.env.health.check()?;
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                let cause = StallCause::WriteBuffers.name();
                return Err(Error::WouldStall { retry_after: WAIT_MAX, cause });
            }
            Ok(())
        };
        if self.env.must_step_itself() {
            while manager.wants_stall() {
                check()?;
                let sealed = self.chores.seal_largest_now();
                if !self.step_here()? && !sealed {
                    // All that it has is stored.
                    break;
                }
            }
            return Ok(());
        }
        let _waits = self.env.metrics.stall_begin(StallCause::WriteBuffers);
        let _timed = perf::time(PerfMetric::WriteDelayTime);
        manager.wait_for_memory(deadline, &check)
    }

    #[cold]
    pub(crate) fn wait_for_admission(
        self: &Arc<Self>,
        payload: &Payload<'_>,
        bytes: u64,
        options: &WriteOptions,
    ) -> Result<()> {
        let families = self.tree.families.load_full();
        let written: Vec<&Arc<ColumnFamilyData>> = match payload {
            Payload::Single { family, .. } => families.by_id(*family).into_iter().collect(),
            // Whether a batch writes to a family is asked only where it would have to wait.
            Payload::Batch(_) => {
                let closed = families.values().filter(|family| !family.gate.is_open());
                closed.filter(|family| payload.bytes_to(family.id()) > 0).collect()
            }
        };
        let of_families =
            written.iter().map(|family| (&family.gate, payload.bytes_to(family.id())));
        let mut gates =
            of_families.chain([(&self.driver.gate, bytes)]).filter(|(gate, _)| !gate.is_open());
        let deadline = if options.no_slowdown { Some(Duration::ZERO) } else { options.deadline };
        // So late that the clock cannot tell: no deadline.
        let deadline = deadline.and_then(|within| clock::now().checked_add(within));
        if self.env.must_step_itself() {
            // Nobody else would ever open the gate.
            while let Some((stopped, _)) = gates.clone().find(|(gate, _)| gate.is_stopped()) {
                if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                    return Err(stopped.would_stall());
                }
                self.env.health.check()?;
                self.step_or_wait()?;
            }
            return Ok(());
        }
        let give_up = || {
            self.env.check_open()?;
            // A gate of what is gone may never be opened again.
            match written.iter().find(|family| family.is_dropped()) {
                Some(gone) => {
                    let whole = families.by_id(gone.whole()).unwrap_or(gone);
                    Err(Error::NoSuchColumnFamily(whole.name().to_owned()))
                }
                None => self.env.health.check(),
            }
        };
        gates.try_for_each(|(gate, bytes)| {
            gate.wait(&Writer {
                bytes,
                deadline,
                low_priority: options.low_priority,
                metrics: &self.env.metrics,
                give_up: &give_up,
            })
        })
    }
}

impl SharesLimit for Background {
    fn stores_by_itself(&self) -> bool {
        self.env.has_threads()
    }

    fn ask_to_seal_early(&self) {
        if let Some(buffers) = &self.writes.write_buffers
            && !buffers.seal_wanted.swap(true, Ordering::Relaxed)
        {
            self.board.poke();
        }
    }

    fn has_failed(&self) -> bool {
        self.env.health.check().is_err()
    }
}
