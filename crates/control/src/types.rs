//! The newtypes that all other modules use. Two numbers that could be confused have two types, and
//! each prints as text, so that a decision can be read in a script.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use crate::arithmetic::nanoseconds;
pub use crate::user_key::{Comparator, UserKey};

/// Nanoseconds since an arbitrary start, on a clock that never runs backwards (format rule F10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the first moment from `self` on that is a multiple of `step`, which is not zero.
    #[must_use]
    pub fn round_up(self, step: Duration) -> Instant {
        Instant(self.0.checked_next_multiple_of(nanoseconds(step)).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, by: Duration) -> Instant {
        Instant(self.0.saturating_add(nanoseconds(by)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, by: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanoseconds(by)))
    }
}

macro_rules! number {
    ($(#[$meta:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

number!(
    /// The number of a file in the database directory; never reused (format rule F2).
    FileId(u64), "f"
);
number!(
    /// The number of a logical table; never reused, so a cache key is (table id, offset).
    TableId(u64), "t"
);
number!(
    /// The number of a write-ahead log.
    LogNumber(u64), "w"
);
number!(
    /// A column family's number; 0 is the default one. Never reused.
    ColumnFamilyId(u32), "cf"
);
number!(
    /// The number of a database among those that share a device; 0 is the first one.
    DatabaseId(u32), "db"
);
number!(
    /// A background job's number, unique among the databases that share a device.
    JobId(u64), "j"
);
number!(
    /// The number of a client's request to compact a range, chosen by the driver.
    RequestId(u64), "q"
);
number!(
    /// The number of a run's installation in level 0: a larger one is newer (format rule F6).
    Epoch(u64), "e"
);

impl Epoch {
    /// Returns what stands for the epoch of a run that joins level 0 until it is installed. Of
    /// several runs in one edit, a larger `nth` becomes newer.
    #[must_use]
    pub fn at_install(nth: u32) -> Epoch {
        Epoch(u64::MAX - u64::from(u32::MAX) + u64::from(nth))
    }

    /// Returns true if it stands for another one.
    #[must_use]
    pub fn is_at_install(self) -> bool {
        self >= Epoch::at_install(0)
    }
}
number!(
    /// The position of a write in the commit order. At most [`SeqNo::MAX`]: 56 bits are stored.
    SeqNo(u64), "#"
);

impl SeqNo {
    /// The largest sequence number that can be stored (56 bits).
    pub const MAX: SeqNo = SeqNo((1 << 56) - 1);
}

/// What a stored entry says about its key. The discriminants are on-disk format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueKind {
    /// The key is deleted.
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// An operand that the merge operator applies to the older entries.
    Merge = 2,
    /// The key is deleted. It was put at most once since its last deletion.
    SingleDelete = 3,
    /// All keys from this one (inclusive) to the one that is the value (exclusive) are deleted.
    RangeDelete = 4,
}

impl ValueKind {
    /// The largest discriminant. A seek with it finds every kind of entry with the sequence number.
    pub const MAX: ValueKind = ValueKind::RangeDelete;

    /// Returns true if an entry of this kind has a value: the key's value, an operand, or the end
    /// of a range.
    #[must_use]
    pub fn has_value(self) -> bool {
        matches!(self, ValueKind::Put | ValueKind::Merge | ValueKind::RangeDelete)
    }

    /// Returns the kind that is stored as `byte`, or `None` if there is none.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<ValueKind> {
        match byte {
            0 => Some(ValueKind::Delete),
            1 => Some(ValueKind::Put),
            2 => Some(ValueKind::Merge),
            3 => Some(ValueKind::SingleDelete),
            4 => Some(ValueKind::RangeDelete),
            _ => None,
        }
    }
}

/// The compression of a level, as a number whose meaning only the engine knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompressionCode(pub u8);

/// The purpose of an I/O operation. Every data call of the Vfs names it; schedulers and metrics use
/// it. The order is that of importance (SILK §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoClass {
    /// Reads that a client waits for.
    Client,
    /// The write-ahead log.
    Wal,
    /// The manifest and the other small files of the catalogue, the log for people, and traces of
    /// calls.
    Manifest,
    /// A flush of a memtable to level 0.
    Flush,
    /// L0→L1 and L0→L0 compaction.
    L0,
    /// Compaction out of the given level (1 and deeper).
    Deep(u8),
    /// Freeing the space of dead tables.
    Reclaim,
}

/// The number of [`IoClass`]es if all deeper levels count as one.
pub const IO_CLASSES: usize = 7;

impl IoClass {
    /// The classes' names in the order of [`IoClass::index`], as metrics print them.
    pub const NAMES: [&'static str; IO_CLASSES] =
        ["client", "wal", "manifest", "flush", "l0", "deep", "reclaim"];

    /// One of each, in the order of [`IoClass::index`].
    pub const ALL: [IoClass; IO_CLASSES] = [
        IoClass::Client,
        IoClass::Wal,
        IoClass::Manifest,
        IoClass::Flush,
        IoClass::L0,
        IoClass::Deep(1),
        IoClass::Reclaim,
    ];

    /// Returns a dense index below [`IO_CLASSES`], for arrays of counters.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            IoClass::Client => 0,
            IoClass::Wal => 1,
            IoClass::Manifest => 2,
            IoClass::Flush => 3,
            IoClass::L0 => 4,
            IoClass::Deep(_) => 5,
            IoClass::Reclaim => 6,
        }
    }
}

impl fmt::Display for IoClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoClass::Deep(level) => write!(f, "deep{level}"),
            other => f.write_str(Self::NAMES[other.index()]),
        }
    }
}
