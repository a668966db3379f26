//! The crash model: what a power loss may leave, and the [`Recording`] that replays any moment of a
//! run.
//!
//! 1. [`Recording::push`] notes every operation of the run.
//! 2. `Recording::with_state_at` replays the first operations to get the state at a moment.
//! 3. `pending` lists the changes that were not durable then, and [`choices`] lists the
//!    [`CrashChoice`]s worth testing.
//! 4. `fates` turns a choice into the [`Fate`] of each pending change.
//! 5. [`image`] applies the surviving changes to the durable state: names first, then the files
//!    that are reachable (`surviving`, `write_partly`).
//!
//! Each pending change survives or not, independently of the others:
//!
//! - A write survives whole, not at all, up to a sector (torn), in any set of its sectors, or as a
//!   longer file that reads zero there. Sectors are 512 bytes of the file's own offsets. A write
//!   into the middle of a sector therefore tears at that sector's end.
//! - A punched hole survives whole, not at all, or in one of its halves.
//! - A truncation, a clone and a change of names survive whole or not at all. A rename is one
//!   change.
//! - Names and data are independent. A name without its data is an empty or shorter file, and data
//!   without a name is gone.
//!
//! What must stay true: real disks do no more than this (file systems with a journal keep changes
//! of names in order). An engine that survives the model relies only on what it synced.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::contents::Contents;
use super::state::{
    DataChange, Inode, Kind, MemState, NameChange, Names, Node, Operation, ROOT, set,
};
use crate::base::sync::leaf::lock;

const SECTOR_BYTES: u64 = 512;

/// Which of the pending operations survive a power loss. Indexes count the pending operations from
/// 0, oldest first. An index out of range selects nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashChoice {
    /// None.
    SyncedOnly,
    /// All.
    Everything,
    /// All except this one.
    DropOne(usize),
    /// Only this one.
    KeepOne(usize),
    /// The first ones, up to this number, as on a file system with one ordered journal.
    Prefix(usize),
    /// Those whose bit is set. Operations from the 64th on are lost.
    Mask(u64),
    /// Each with probability one half, by this seed.
    Subset(u64),
    /// All changes of names and none of data: files exist, but are empty or old.
    NamesOnly,
    /// All changes of data and none of names.
    DataOnly,
    /// All, but only the sectors of the last write before `bytes` (a multiple of 512).
    TornLast {
        /// Counted from the start of the sector in which the write begins.
        bytes: u64,
    },
    /// All, but only the sectors of the last write from `bytes` on (a multiple of 512). A disk may
    /// write the end first.
    TornLastTail {
        /// Counted from the start of the sector in which the write begins.
        bytes: u64,
    },
    /// All names. Of every write, each sector with probability one half, by this seed.
    Sectors(u64),
    /// All, but this write left only its length: the bytes that it would add are zero.
    SizeExtendedZero(usize),
    /// All, but only the first half of this punch.
    HalfPunch(usize),
    /// All, but only the second half of this punch.
    HalfPunchTail(usize),
}

/// An operation that a power loss could undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingOperation {
    /// The operation's number, as [`super::MemVfs::operations`] counts.
    pub sequence: u64,
    /// What it changes.
    pub kind: PendingKind,
    /// A description for the report of a failure.
    pub description: String,
}

/// What a pending operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingKind {
    /// The names of a directory.
    Name,
    /// Bytes of a file.
    Write {
        /// Start offset.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// A hole in a file.
    Punch {
        /// Start offset.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// The length, or all of the contents, of a file.
    Whole,
}

/// What happens to one pending change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Drop,
    /// A write keeps the bytes before this file offset.
    Before(u64),
    /// A write keeps the bytes from this file offset on.
    From(u64),
    /// A write keeps each sector with probability one half.
    Sectors(u64),
    /// A write leaves only the length.
    SizeOnly,
    /// Only the first half of a punch is done.
    HalfPunch,
    /// Only the second half of a punch is done.
    HalfPunchTail,
}

/// A pending change of names, or of the data of a file.
enum Change<'a> {
    Name(&'a NameChange),
    Data(Inode, &'a DataChange),
}

/// Returns the changes that are pending in `state`, oldest first.
fn pending(state: &MemState) -> Vec<(u64, Change<'_>)> {
    let names = state.pending_names().iter();
    let mut all: Vec<_> = names.map(|p| (p.sequence, Change::Name(&p.change))).collect();
    for inode in state.dirty().filter(|&inode| state.is_reachable(inode)) {
        if let Some(Kind::File { pending, .. }) = state.node(inode).map(|node| &node.kind) {
            all.extend(pending.iter().map(|p| (p.sequence, Change::Data(inode, &p.change))));
        }
    }
    all.sort_unstable_by_key(|(sequence, _)| *sequence);
    all
}

/// Describes the pending changes in `state`, oldest first.
pub(super) fn describe_pending(state: &MemState) -> Vec<PendingOperation> {
    let describe = |(sequence, change): (u64, Change<'_>)| {
        let (kind, description) = match change {
            Change::Name(change) => (PendingKind::Name, change.to_string()),
            Change::Data(inode, change) => (kind_of(change), format!("{change} of file {inode}")),
        };
        PendingOperation { sequence, kind, description }
    };
    pending(state).into_iter().map(describe).collect()
}

/// Returns the kind of a change of data.
fn kind_of(change: &DataChange) -> PendingKind {
    match change {
        DataChange::Write { offset, bytes } => {
            PendingKind::Write { offset: *offset, length: bytes.len() as u64 }
        }
        DataChange::Punch { offset, length } => {
            PendingKind::Punch { offset: *offset, length: *length }
        }
        DataChange::Truncate { .. } | DataChange::Clone(_) => PendingKind::Whole,
    }
}

/// Returns the choices worth testing in `state`:
///
/// - no pending operation survives, and all survive;
/// - every subset of up to ten pending operations. If there are more: each alone, each missing,
///   every prefix, and `seeds` seeded subsets;
/// - the last write torn at every sector, every write as its length only, every punch half done;
/// - `seeds` seeded sets of sectors.
pub(super) fn choices(state: &MemState, seeds: u64) -> Vec<CrashChoice> {
    let pending = pending(state);
    let count = pending.len();
    let mut choices = vec![CrashChoice::SyncedOnly];
    if count == 0 {
        return choices;
    }
    choices.push(CrashChoice::Everything);
    if count <= 10 {
        choices.extend((1..(1 << count) - 1).map(CrashChoice::Mask));
    } else {
        choices.extend((0..count).map(CrashChoice::DropOne));
        choices.extend((0..count).map(CrashChoice::KeepOne));
        choices.extend((2..count - 1).map(CrashChoice::Prefix));
        choices.extend([CrashChoice::NamesOnly, CrashChoice::DataOnly]);
        choices.extend((0..seeds).map(CrashChoice::Subset));
    }
    let mut last_write = None;
    for (index, (_, change)) in pending.iter().enumerate() {
        match change {
            Change::Data(_, DataChange::Write { offset, bytes }) => {
                last_write = Some((*offset, bytes.len() as u64));
                choices.push(CrashChoice::SizeExtendedZero(index));
            }
            Change::Data(_, DataChange::Punch { .. }) => {
                choices.push(CrashChoice::HalfPunch(index));
                choices.push(CrashChoice::HalfPunchTail(index));
            }
            _ => {}
        }
    }
    if let Some((offset, length)) = last_write {
        let cuts = (1..).map(|n| n * SECTOR_BYTES);
        let length = offset % SECTOR_BYTES + length;
        for bytes in cuts.take_while(|&bytes| bytes < length) {
            choices.push(CrashChoice::TornLast { bytes });
        }
        choices.push(CrashChoice::TornLastTail { bytes: SECTOR_BYTES });
        choices.extend((0..seeds).map(CrashChoice::Sectors));
    }
    choices
}

/// Returns the file system that a power loss leaves of `state`. Everything in it is durable.
pub(super) fn image(state: &MemState, choice: CrashChoice) -> MemState {
    let pending = pending(state);
    let fates = fates(&pending, choice);
    // 1. Sort the surviving changes: of data by file, of names into the directories.
    let mut data: HashMap<Inode, Vec<(&DataChange, Fate)>> = HashMap::new();
    let mut directories: HashMap<Inode, Arc<Names>> = HashMap::new();
    for ((_, change), fate) in pending.iter().zip(fates) {
        match change {
            Change::Data(inode, change) => data.entry(*inode).or_default().push((change, fate)),
            Change::Name(_) if fate != Fate::Keep => {}
            Change::Name(change) => change.apply(|directory, name, inode| {
                let names = directories
                    .entry(directory)
                    .or_insert_with(|| durable_names(state, directory).unwrap_or_default());
                set(names, name, inode);
            }),
        }
    }
    // 2. Visit everything that can be reached from the root by its names.
    let mut nodes: HashMap<Inode, Node> = HashMap::new();
    let mut to_visit = vec![ROOT];
    while let Some(inode) = to_visit.pop() {
        if let Some(node) = nodes.get_mut(&inode) {
            node.links += 1;
            node.durable_links += 1;
            continue;
        }
        let changes = data.get(&inode).map_or(&[][..], Vec::as_slice);
        let kind = match state.node(inode).map(|node| &node.kind) {
            Some(Kind::File { durable, .. }) => Kind::file(surviving(durable, changes)),
            _ => {
                let names = directories.remove(&inode).or_else(|| durable_names(state, inode));
                let names = names.unwrap_or_default();
                to_visit.extend(names.values());
                Kind::Directory { current: names.clone(), durable: names }
            }
        };
        nodes.insert(inode, Node { links: 1, durable_links: 1, kind });
    }
    MemState::durable(nodes, state.next_inode())
}

/// Returns the durable names of a directory.
fn durable_names(state: &MemState, directory: Inode) -> Option<Arc<Names>> {
    match &state.node(directory)?.kind {
        Kind::Directory { durable, .. } => Some(durable.clone()),
        Kind::File { .. } => None,
    }
}

/// Decides for each pending change whether it survives.
fn fates(pending: &[(u64, Change<'_>)], choice: CrashChoice) -> Vec<Fate> {
    let is_write =
        |change: &Change<'_>| matches!(change, Change::Data(_, DataChange::Write { .. }));
    let last_write = pending.iter().rposition(|(_, change)| is_write(change));
    let keep_if = |keep: bool| if keep { Fate::Keep } else { Fate::Drop };
    let fate = |(index, (sequence, change)): (usize, &(u64, Change<'_>))| match choice {
        CrashChoice::SyncedOnly => Fate::Drop,
        CrashChoice::Everything => Fate::Keep,
        CrashChoice::DropOne(one) => keep_if(index != one),
        CrashChoice::KeepOne(one) => keep_if(index == one),
        CrashChoice::Prefix(count) => keep_if(index < count),
        CrashChoice::Mask(mask) => keep_if(index < 64 && mask >> index & 1 == 1),
        CrashChoice::Subset(seed) => keep_if(random(seed, index as u64) & 1 == 1),
        CrashChoice::NamesOnly => keep_if(matches!(change, Change::Name(_))),
        CrashChoice::DataOnly => keep_if(matches!(change, Change::Data(..))),
        CrashChoice::TornLast { bytes } if last_write == Some(index) => {
            Fate::Before(cut(change, bytes))
        }
        CrashChoice::TornLastTail { bytes } if last_write == Some(index) => {
            Fate::From(cut(change, bytes))
        }
        CrashChoice::Sectors(seed) if is_write(change) => Fate::Sectors(random(seed, *sequence)),
        CrashChoice::SizeExtendedZero(one) if one == index && is_write(change) => Fate::SizeOnly,
        CrashChoice::HalfPunch(one) if one == index => Fate::HalfPunch,
        CrashChoice::HalfPunchTail(one) if one == index => Fate::HalfPunchTail,
        CrashChoice::TornLast { .. }
        | CrashChoice::TornLastTail { .. }
        | CrashChoice::Sectors(_)
        | CrashChoice::SizeExtendedZero(_)
        | CrashChoice::HalfPunch(_)
        | CrashChoice::HalfPunchTail(_) => Fate::Keep,
    };
    pending.iter().enumerate().map(fate).collect()
}

/// Returns the file offset `bytes` behind the start of the sector in which a write begins.
fn cut(change: &Change<'_>, bytes: u64) -> u64 {
    debug_assert_eq!(bytes % SECTOR_BYTES, 0, "a disk tears between sectors");
    match change {
        Change::Data(_, DataChange::Write { offset, .. }) => {
            (offset - offset % SECTOR_BYTES).saturating_add(bytes)
        }
        _ => 0,
    }
}

/// Returns the contents of a file: the durable ones with the surviving changes.
fn surviving(durable: &Contents, changes: &[(&DataChange, Fate)]) -> Contents {
    let mut contents = durable.clone();
    for (change, fate) in changes {
        match (fate, change) {
            (Fate::Drop, _) => {}
            (Fate::HalfPunch, DataChange::Punch { offset, length }) => {
                contents.punch(*offset, length / 2);
            }
            (Fate::HalfPunchTail, DataChange::Punch { offset, length }) => {
                contents.punch(offset + length / 2, length - length / 2);
            }
            (Fate::Keep | Fate::HalfPunch | Fate::HalfPunchTail, change) => {
                change.apply(&mut contents);
            }
            (fate, DataChange::Write { offset, bytes }) => {
                write_partly(&mut contents, bytes, *offset, *fate);
            }
            (_, change) => change.apply(&mut contents),
        }
    }
    contents
}

/// Applies the part of a write that survives.
fn write_partly(contents: &mut Contents, bytes: &[u8], offset: u64, fate: Fate) {
    let end = offset + bytes.len() as u64;
    let mut keep = |from: u64, to: u64| {
        let (from, to) = (from.clamp(offset, end), to.clamp(offset, end));
        if from < to {
            contents.write(&bytes[(from - offset) as usize..(to - offset) as usize], from);
        }
    };
    match fate {
        Fate::Before(cut) => keep(0, cut),
        Fate::From(cut) => keep(cut, u64::MAX),
        Fate::Sectors(seed) => {
            for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
                if random(seed, sector) & 1 == 1 {
                    keep(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES);
                }
            }
        }
        Fate::SizeOnly => contents.truncate(contents.len().max(end)),
        Fate::Keep | Fate::Drop | Fate::HalfPunch | Fate::HalfPunchTail => {}
    }
}

/// Returns a pseudo-random number for both arguments (the finaliser of splitmix64).
fn random(seed: u64, index: u64) -> u64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index << 17);
    x = (x ^ index ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Every operation since the recording began. It can rebuild the file system of any moment. Moments
/// are cheap to ask for in ascending order: each is replayed from the one before.
#[derive(Clone)]
pub struct Recording {
    /// The state before the first operation.
    initial: Arc<MemState>,
    /// The operations, oldest first.
    log: Arc<Mutex<Vec<Operation>>>,
    /// The number of operations replayed so far, and the state after them.
    cursor: Arc<Mutex<(usize, MemState)>>,
    pub(super) capacity: Option<u64>,
}

impl Recording {
    /// Starts a recording at a state.
    pub(super) fn new(initial: MemState, capacity: Option<u64>) -> Recording {
        let cursor = Arc::new(Mutex::new((0, initial.clone())));
        Recording { initial: Arc::new(initial), log: Arc::default(), cursor, capacity }
    }

    /// Records an operation.
    pub(super) fn push(&self, operation: &Operation) {
        lock(&self.log).push(operation.clone());
    }

    /// Returns the number of recorded operations.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.log).len()
    }

    /// Returns true if no operation was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the `n`-th operation (from 0) as text, for the report of a failure.
    #[must_use]
    pub fn describe(&self, n: usize) -> Option<String> {
        lock(&self.log).get(n).map(Operation::to_string)
    }

    /// Calls `look` with the state after the first `n` operations, or after all if there are fewer.
    pub(super) fn with_state_at<T>(&self, n: usize, look: impl FnOnce(&MemState) -> T) -> T {
        let mut cursor = lock(&self.cursor);
        if cursor.0 > n {
            *cursor = (0, self.initial.as_ref().clone());
        }
        let log = lock(&self.log);
        for operation in log.iter().take(n).skip(cursor.0) {
            cursor.1.apply(operation);
            cursor.0 += 1;
        }
        drop(log);
        look(&cursor.1)
    }

    /// Returns what was pending after the first `n` operations.
    #[must_use]
    pub fn pending_at(&self, n: usize) -> Vec<PendingOperation> {
        self.with_state_at(n, describe_pending)
    }

    /// Returns the choices worth testing after the first `n` operations, as
    /// [`super::MemVfs::choices`] does.
    #[must_use]
    pub fn choices_at(&self, n: usize, seeds: u64) -> Vec<CrashChoice> {
        self.with_state_at(n, |state| choices(state, seeds))
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("operations", &self.len()).finish_non_exhaustive()
    }
}
