//! The state that clients and background work share: the device and its work by class, the
//! memtables, the gates, the recorder.

use std::collections::VecDeque;

use sateen_control::{IoClass, ReadSample};

use crate::admission::Gates;
use crate::classes::Classes;
use crate::config::{Costs, SimConfig, Wal};
use crate::device::{Device, Direction};
use crate::recorder::Recorder;

/// Bytes of a memtable entry in addition to its key and value.
const MEMTABLE_ENTRY_BYTES: u64 = 32;
/// Bytes of a table entry in addition to its key and value: index, filter, framing.
const TABLE_ENTRY_BYTES: u64 = 12;
/// The WAL is written back in pieces of this size.
const WAL_WRITE_BYTES: u64 = 256 << 10;

/// A memtable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memtable {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// A request to the device. It is reported when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) class: IoClass,
    pub(crate) what: Io,
    pub(crate) submitted: u64,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Io {
    Read(u64),
    Write(u64),
    Barrier,
}

/// What a region has for itself: memtables, and the shape of its tree as reads see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region {
    pub(crate) active: Memtable,
    /// Sealed memtables, oldest first.
    pub(crate) sealed: VecDeque<Memtable>,
    /// The size at which the active memtable is sealed, and that of the next one.
    pub(crate) write_buffer_bytes: u64,
    pub(crate) next_write_buffer_bytes: u64,
    /// Runs in level 0, and the number of lower levels with tables.
    pub(crate) level0_runs: u64,
    pub(crate) levels: u64,
    /// The mean number of runs of level 0 with a table whose key range has a key, and how many of
    /// them are not in memory, in thousandths. A run has no such table where it was compacted in
    /// part.
    pub(crate) level0_searched: u64,
    pub(crate) level0_on_device: u64,
}

impl Region {
    /// Seals the active memtable.
    pub(crate) fn seal(&mut self) {
        self.sealed.push_back(std::mem::take(&mut self.active));
        self.write_buffer_bytes = self.next_write_buffer_bytes;
    }
}

/// The state that clients and background work share.
#[derive(Debug)]
pub(crate) struct DataPlane {
    pub(crate) device: Device,
    pub(crate) gates: Gates,
    pub(crate) recorder: Recorder,
    pub(crate) costs: Costs,
    /// The parts of the keys that have trees of their own.
    pub(crate) regions: Vec<Region>,
    /// Since the last sample.
    pub(crate) classes: Classes,
    /// Since the last sample.
    pub(crate) user_bytes: u64,
    /// Since the last sample.
    pub(crate) reads: ReadSample,
    /// Processor time of clients and of background work, in nanoseconds, since the start.
    pub(crate) client_cpu_ns: u64,
    pub(crate) background_cpu_ns: u64,
    /// True if all tables of a job share a file, and its barrier.
    pub(crate) compaction_files: bool,
    /// Bytes of the key and the value of a write.
    pub(crate) write_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) read_bytes: u64,
    /// The share of block reads that miss the cache.
    pub(crate) miss: f64,
    wal: Wal,
    wal_pending: u64,
    /// WAL writes in progress: when each completes, and its request.
    wal_writes: VecDeque<(u64, Request)>,
}

impl DataPlane {
    pub(crate) fn new(config: &SimConfig) -> DataPlane {
        let memtable_bytes = config.policy.options.column_family.memtable_bytes;
        let region = Region {
            write_buffer_bytes: memtable_bytes,
            next_write_buffer_bytes: memtable_bytes,
            ..Region::default()
        };
        DataPlane {
            device: Device::new(config.device.clone()),
            gates: Gates::new(config.regions()),
            recorder: Recorder::default(),
            costs: config.costs,
            regions: vec![region; config.regions()],
            classes: Classes::default(),
            user_bytes: 0,
            reads: ReadSample::default(),
            client_cpu_ns: 0,
            background_cpu_ns: 0,
            compaction_files: config.policy.options.column_family.compaction_files,
            write_bytes: config.load.key_bytes + config.load.value_bytes(),
            block_bytes: config.block_bytes,
            read_bytes: config.read_bytes,
            miss: 1.0 - (config.cache_bytes as f64 / config.db_bytes as f64).min(1.0),
            wal: config.wal,
            wal_pending: 0,
            wal_writes: VecDeque::new(),
        }
    }

    /// Returns the bytes of an entry in a table.
    pub(crate) fn table_entry_bytes(&self) -> u64 {
        self.write_bytes + TABLE_ENTRY_BYTES
    }

    /// Submits a request. Returns the moment at which it completes and must be reported.
    pub(crate) fn submit(&mut self, now: u64, class: IoClass, what: Io) -> (u64, Request) {
        let done = match what {
            Io::Read(bytes) => self.device.submit(now, Direction::Read, bytes),
            Io::Write(bytes) => self.device.submit(now, Direction::Write, bytes),
            Io::Barrier => self.device.barrier(now),
        };
        (done, Request { class, what, submitted: now })
    }

    /// Counts a request that has completed.
    pub(crate) fn report(&mut self, now: u64, request: &Request) {
        let ns = now.saturating_sub(request.submitted);
        let class = &mut self.classes[request.class.index()];
        match request.what {
            Io::Read(bytes) => {
                class.read_bytes += bytes;
                class.reads += 1;
                class.read_ns += ns;
            }
            Io::Write(bytes) => {
                class.write_bytes += bytes;
                class.writes += 1;
                class.write_ns += ns;
            }
            Io::Barrier => {
                class.syncs += 1;
                class.sync_ns += ns;
            }
        }
    }

    /// Returns the processor time of a write.
    pub(crate) fn write_ns(&self) -> u64 {
        self.costs.write_ns + if self.wal == Wal::Off { 0 } else { self.costs.wal_ns }
    }

    /// Applies an admitted write to `region`. Returns true if the write filled and sealed the
    /// memtable.
    pub(crate) fn write(&mut self, now: u64, region: usize) -> bool {
        self.user_bytes += self.write_bytes;
        if self.wal == Wal::Buffered {
            self.wal_pending += self.write_bytes + TABLE_ENTRY_BYTES;
            if self.wal_pending >= WAL_WRITE_BYTES {
                let bytes = std::mem::take(&mut self.wal_pending);
                let write = self.submit(now, IoClass::Wal, Io::Write(bytes));
                self.wal_writes.push_back(write);
            }
        }
        let region = &mut self.regions[region];
        region.active.entries += 1;
        region.active.bytes += self.write_bytes + MEMTABLE_ENTRY_BYTES;
        if region.active.bytes < region.write_buffer_bytes {
            return false;
        }
        region.seal();
        true
    }

    /// Returns and resets the work of the device since the last call.
    pub(crate) fn take_classes(&mut self, now: u64) -> Classes {
        while let Some((done, write)) = self.wal_writes.front().copied() {
            if done > now {
                break;
            }
            self.wal_writes.pop_front();
            self.report(done, &write);
        }
        std::mem::take(&mut self.classes)
    }
}
