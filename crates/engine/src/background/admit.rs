//! The two waits of writers: at the gates that control opens and closes, and for memory if several
//! databases share a limit on their memtables.
//!
//! 1. [`Background::respect_write_buffers`] looks at the shared limit before every write. It may
//!    seal the largest memtable, and waits in `wait_for_memory` if the limit is exceeded.
//! 2. [`Background::wait_for_admission`] is called if a gate is not open. It waits at the gates of
//!    the column families that the write touches, then at the gate of all writers.
//!
//! A database without threads runs background steps instead of waiting.

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
    /// Makes room if the limit that databases share for their memtables demands it. Called before
    /// every write.
    #[inline]
    pub(crate) fn respect_write_buffers(self: &Arc<Self>, options: &WriteOptions) -> Result<()> {
        let Some(buffers) = &self.writes.write_buffers else { return Ok(()) };
        let manager = &buffers.manager;
        if manager.wants_flush() && !manager.ask_largest(buffers) {
            self.mark_largest();
        }
        if manager.wants_stall() { self.wait_for_memory(manager, options) } else { Ok(()) }
    }

    /// Marks the largest memtable, which the next leader of a commit group seals.
    fn mark_largest(&self) {
        if let Some(family) = self.chores.largest() {
            family.seal_early();
            self.writes.pipeline.want_switch();
        }
    }

    /// Waits until the shared limit leaves room for the write. Returns `WouldStall` once the
    /// deadline has passed.
    #[cold]
    fn wait_for_memory(
        self: &Arc<Self>,
        manager: &WriteBufferManager,
        options: &WriteOptions,
    ) -> Result<()> {
        let deadline = if options.no_slowdown { Some(Duration::ZERO) } else { options.deadline };
        let deadline = deadline.and_then(|within| clock::now().checked_add(within));
        let check = || {
            self.env.check_working()?;
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
                    // Every memtable of this database is stored, so no step can free more memory.
                    break;
                }
            }
            return Ok(());
        }
        let _waits = self.env.metrics.stall_begin(StallCause::WriteBuffers);
        let _timed = perf::time(PerfMetric::WriteDelayTime);
        manager.wait_for_memory(deadline, &check)
    }

    /// Waits until the gates admit `bytes` bytes of `payload`. Returns `WouldStall` once the
    /// deadline has passed.
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
            // A batch is searched only for column families whose gate is not open.
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
        // A deadline beyond the range of the clock is no deadline.
        let deadline = deadline.and_then(|within| clock::now().checked_add(within));
        if self.env.must_step_itself() {
            // No thread runs the work that opens the gate.
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
            self.env.check_working()?;
            // The gate of a dropped column family may never be opened again.
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
