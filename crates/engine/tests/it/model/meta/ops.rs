//! The operations: their kinds with weights, and where keys and values come from.

use super::draw::{self, kinds};
pub(crate) use super::draw::{bytes, numbered};
use super::model::Value;
use crate::support::common::Random;

kinds! {
    Put 60 Delete 25 Merge 40 MergeUnlogged 4 SingleDelete 8
    PutSync 6 PutUnlogged 6 DeleteUnlogged 3 PutDeadline 3 PutLarge 3 PutLongKey 2
    Batch 30 BatchSavePoints 8 BatchSync 4 BatchUnlogged 4 BatchEmpty 1 BatchCopied 3
    Overwrite 4 Ascending 4 MergeMany 3 DeleteMany 3 DeleteRange 10 Refused 2
    Get 30 GetPinned 10 GetAtSnapshot 12 MultiGet 10 ScanAll 6 ScanBounds 10
    IterOpen 12 IterMove 50 IterClose 6
    SnapshotTake 10 SnapshotRelease 8 SnapshotScan 5
    FlushWait 8 FlushBegin 6 FlushAll 4 CompactRange 6 CompactAll 3 CompactBegin 4 CompactReversed 1
    Step 60 WaitIdle 4 SyncWal 4
    Reopen 3 ReopenOtherwise 3 DropAndReopen 1 Crash 5 OpenReadOnly 3
    Checkpoint 3 CheckpointVerify 3
    SetOptions 4 SetFamilyOptions 6 SetRefused 1
    CreateFamily 3 DropFamily 2 RecreateFamily 2 UseDropped 2
    Check 4 Properties 3 Metrics 2 ApproximateSize 2 OptionsText 1
    Ingest 4 MayContain 6 OpenSecondary 2 WaitForCompact 2 Interfere 20
    PauseManual 2 ResumeManual 4 HoldFiles 2 ReleaseFiles 4
    FaultBegin 0 FaultClear 0
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

pub(crate) type Op = draw::Op<Kind>;

/// A list of operations. With `faults`, disks fail now and then.
pub(crate) fn list(random: &mut Random, count: usize, faults: bool) -> Vec<Op> {
    draw::list(random, count as u64, KINDS, |(kind, weight)| match kind {
        Kind::FaultBegin | Kind::FaultClear if faults => 12,
        _ => *weight,
    })
}

/// A key: short ones that are prefixes of one another, the empty one among them, or of a series.
pub(crate) fn key(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0..3 => {
            let letters = [0, b'a', b'b', 0xff];
            (0..random.below(4)).map(|_| letters[random.below(4) as usize]).collect()
        }
        3 if random.one_in(8) => {
            // Mostly long, and sometimes as long as may be: that costs what hundreds of others do.
            let mut key = long_key(random);
            let length = if random.one_in(16) { key.len() } else { 300 };
            key.drain(..key.len() - length);
            key
        }
        _ => numbered(random.below(200)),
    }
}

/// The longest key there may be; five of them.
pub(crate) fn long_key(random: &mut Random) -> Vec<u8> {
    let mut key = vec![b'k'; sateen::KEY_BYTES_MAX];
    let last = key.len() - 1;
    key[last] = b'0' + random.below(5) as u8;
    key
}

/// A value, mostly short, sometimes empty.
pub(crate) fn value(random: &mut Random) -> Value {
    let most = match random.below(12) {
        0 => 1,
        1..9 => 40,
        9..11 => 400,
        _ => 5000,
    };
    let length = random.below(most);
    bytes(random, length)
}
