//! Point reads of many keys, whose blocks are read at the same time.
//!
//! 1. [`Lookup::find_all`] looks for each key in memory.
//! 2. For each key that needs the device, [`SuperVersion::needs`] names the block that it would
//!    read first, and [`load_blocks`] reads all of these at once into the cache.
//! 3. Then these keys are read as any other. A key whose filter was wrong, or whose value is in
//!    another file, goes on by itself.
//!
//! What must stay true: an answer is that of a read of the key alone.

use sateen_control::SeqNo;
use sateen_store::base::error::{Error, Result};
use sateen_store::table::{OnMiss, load_blocks};

use crate::read::lookup::{Lookup, Pin, PinnedSlice};
use crate::tree::super_version::SuperVersion;

/// A smaller block cache could lose a block before it is used, so that it would be read twice.
const CACHE_BYTES_MIN: u64 = 4 << 20;
/// Most keys whose blocks are read at the same time.
const KEYS_MAX: usize = 256;

impl Lookup<'_> {
    /// Returns the values of the keys as of `seqno`, each in its super version, in the order of
    /// `reads`.
    pub(crate) fn find_all<'a>(
        &self,
        reads: impl Iterator<Item = (&'a SuperVersion, &'a [u8])>,
        seqno: SeqNo,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        let together =
            self.on_miss == OnMiss::ReadAndCache && self.blocks.capacity() >= CACHE_BYTES_MIN;
        if !together {
            return reads.map(|(version, key)| version.get(key, seqno, self, Pin)).collect();
        }
        let in_memory = Lookup { on_miss: OnMiss::Refuse, ..*self };
        let mut answers = Vec::with_capacity(reads.size_hint().0);
        let mut left = Vec::new();
        for (version, key) in reads {
            let answer = version.get(key, seqno, &in_memory, Pin);
            if matches!(answer, Err(Error::NotInMemory)) {
                left.push((answers.len(), version, key));
            }
            answers.push(answer);
            if left.len() == KEYS_MAX {
                self.read_left(&mut left, seqno, &mut answers);
            }
        }
        self.read_left(&mut left, seqno, &mut answers);
        answers
    }

    /// Reads the keys that need the device, and puts their values into `answers`.
    fn read_left(
        &self,
        left: &mut Vec<(usize, &SuperVersion, &[u8])>,
        seqno: SeqNo,
        answers: &mut [Result<Option<PinnedSlice>>],
    ) {
        if left.len() > 1 {
            let needs =
                |(_, version, key): &(usize, &SuperVersion, &[u8])| version.needs(key, seqno, self);
            load_blocks(left.iter().filter_map(needs).collect(), self.blocks);
        }
        for (at, version, key) in left.drain(..) {
            answers[at] = version.get(key, seqno, self, Pin);
        }
    }
}
