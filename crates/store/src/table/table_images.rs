//! Images of L0 tables: copies in memory from the flush until the table leaves L0. Compactions out
//! of L0, and clients, then need not read these tables from the device.
//!
//! 1. [`OutputImages::room`] tells a flush how large a table may be to be kept, and
//!    [`OutputImages::begin`] returns its image, still empty.
//! 2. `TableImages::keep` charges the block cache for the image. With the first image it also
//!    charges for the ones that are expected soon.
//! 3. [`TableImages::of`] lets an open table read its image.
//! 4. [`TableImages::forget`] drops images of tables that have left L0, and `give_back` returns the
//!    charge.
//! 5. [`TableImages::look`] runs now and then. It drops the newest images if the cache has become
//!    smaller, and returns a charge that was expected in vain.
//!
//! An image that finds no room is not kept, and no image is dropped for another. Tables leave L0 in
//! about the order in which they came, so the image that would be dropped is the one needed next.
//!
//! Memory of images that are gone serves the next ones, as far as it is charged.
//!
//! What must stay true: the cache is charged with at least the memory of all images and of what is
//! kept for the next ones, and with nothing when there are no images.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use sateen_control::{FileId, TableId};

use crate::base::sync::{Mutex, lock};
use crate::block_cache::BlockCache;
use crate::files::{SparePieces, TableImage};

#[derive(Debug)]
struct Kept {
    file: FileId,
    image: Arc<TableImage>,
}

#[derive(Debug, Default)]
struct ImagesState {
    kept: BTreeMap<TableId, Kept>,
    /// Memory of all images.
    bytes: u64,
    /// Bytes charged to the cache.
    charged: u64,
    /// Bytes reserved in the cache from the first image on, whether images use them or not.
    expected: u64,
    /// Most memory that all images had at once in the last whole period, and in the present one.
    most_before: u64,
    most_now: u64,
    /// Number of calls of `look` since an image was kept.
    looks: u32,
    /// Number of calls of `look` in the present period.
    period_looks: u32,
}

/// Number of calls of `look` after which no image is expected any more: about a minute.
const LOOKS_MAX: u32 = 600;
/// Number of calls of `look` in a period: about five seconds.
const PERIOD_LOOKS: u32 = 50;

impl ImagesState {
    /// Returns the charge to keep: the memory of all images, and what the next ones will need.
    fn wanted(&self) -> u64 {
        self.bytes.max(self.expected).max(self.most_before).max(self.most_now)
    }

    /// Expects no images any more.
    fn expect_none(&mut self) {
        (self.expected, self.most_before, self.most_now) = (0, 0, 0);
    }
}

/// The images of a database's tables.
#[derive(Debug)]
pub struct TableImages {
    blocks: Arc<BlockCache>,
    state: Mutex<ImagesState>,
    spare: Arc<SparePieces>,
}

/// The part of the block cache that images may take.
#[derive(Clone, Copy, Debug)]
pub struct ImagesShare {
    /// Percentage of the block cache.
    pub percent: u32,
    /// Bytes that are charged at once with the first image, if the share allows it, because L0 will
    /// soon have that size. If blocks were evicted for one table after the other, the allocator
    /// would keep their memory, and the process would grow by the size of the tables.
    pub expected_bytes: u64,
    /// Approximate size of a table.
    pub table_bytes: u64,
}

/// Where an output keeps its images.
#[derive(Clone)]
pub struct OutputImages {
    pub images: Arc<TableImages>,
    pub share: ImagesShare,
}

impl OutputImages {
    /// Returns the largest table that can be kept; `None` if an ordinary one has no chance.
    pub fn room(&self) -> Option<u64> {
        let room = self.images.room(self.share);
        (room >= self.share.table_bytes).then_some(room)
    }

    /// Returns the image of the next table, still empty.
    pub fn begin(&self) -> TableImage {
        TableImage::of_spare(self.images.spare.clone())
    }

    /// Keeps `image` if there is room.
    pub fn keep(&self, table: TableId, file: FileId, image: TableImage) {
        self.images.keep(table, file, image, self.share);
    }
}

impl TableImages {
    /// Returns an empty set of images, which will charge `blocks`.
    pub fn new(blocks: Arc<BlockCache>) -> TableImages {
        TableImages { blocks, state: Mutex::default(), spare: Arc::default() }
    }

    fn room(&self, share: ImagesShare) -> u64 {
        let state = lock(&self.state);
        state.charged - state.bytes + self.blocks.table_images_room(share.percent)
    }

    fn keep(&self, table: TableId, file: FileId, image: TableImage, share: ImagesShare) {
        let mut state = lock(&self.state);
        let bytes = state.bytes + image.memory_bytes();
        if bytes > state.charged + self.blocks.table_images_room(share.percent) {
            return;
        }
        if !self.blocks.is_of_others() {
            state.expected = state.expected.max(share.expected_bytes);
        }
        let wanted = bytes.max(state.wanted()).saturating_sub(state.charged);
        state.charged += self.blocks.charge_table_images(wanted, share.percent);
        if bytes <= state.charged {
            state.looks = 0;
            state.bytes = bytes;
            state.most_now = state.most_now.max(bytes);
            // Ids of tables are never reused, so there is no such entry.
            state.kept.insert(table, Kept { file, image: Arc::new(image) });
        }
        self.give_back(&mut state);
    }

    /// Returns the image of `table`, which lives while it is kept.
    pub fn of(&self, table: TableId) -> Weak<TableImage> {
        let state = lock(&self.state);
        state.kept.get(&table).map_or_else(Weak::new, |kept| Arc::downgrade(&kept.image))
    }

    /// Drops the images of `tables`.
    pub fn forget(&self, tables: impl Iterator<Item = TableId>) {
        let mut state = lock(&self.state);
        let gone: Vec<_> = tables.filter_map(|table| state.kept.remove(&table)).collect();
        state.bytes -= gone.iter().map(|kept| kept.image.memory_bytes()).sum::<u64>();
        self.give_back(&mut state);
        drop(state);
        drop(gone);
    }

    /// Drops the images of tables in `file`.
    pub fn forget_file(&self, file: FileId) {
        let state = lock(&self.state);
        let of_file = state.kept.iter().filter(|(_, kept)| kept.file == file);
        let tables: Vec<_> = of_file.map(|(table, _)| *table).collect();
        drop(state);
        self.forget(tables.into_iter());
    }

    /// Drops all images.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        state.kept.clear();
        state.bytes = 0;
        self.give_back(&mut state);
    }

    /// Drops the newest images until all take at most `percent` of the cache, which may have become
    /// smaller. Also returns a charge that was expected for too long.
    pub fn look(&self, percent: u32) {
        let mut state = lock(&self.state);
        if state.charged == 0 {
            return;
        }
        state.looks = state.looks.saturating_add(1);
        let excess = self.blocks.table_images_excess(percent);
        let most = state.charged.saturating_sub(excess);
        while state.bytes > most
            && let Some((_, newest)) = state.kept.pop_last()
        {
            state.bytes -= newest.image.memory_bytes();
        }
        state.period_looks += 1;
        if state.period_looks >= PERIOD_LOOKS {
            state.period_looks = 0;
            (state.most_before, state.most_now) = (state.most_now, state.bytes);
        }
        if excess > 0 || state.looks > LOOKS_MAX {
            state.expect_none();
        }
        self.give_back(&mut state);
    }

    /// Returns the unused charge, and keeps as much memory for the next images as stays charged.
    /// The expected charge is kept only while there is an image.
    fn give_back(&self, state: &mut ImagesState) {
        if state.kept.is_empty() {
            state.expect_none();
        }
        let less = state.charged.saturating_sub(state.wanted());
        if less > 0 {
            state.charged -= less;
            self.blocks.discharge_table_images(less);
        }
        self.spare.limit(state.charged.saturating_sub(state.bytes));
    }

    #[cfg(any(test, feature = "test-support"))]
    pub fn count(&self) -> usize {
        lock(&self.state).kept.len()
    }
}

impl Drop for TableImages {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_cache::SharedBlockCache;

    fn image(bytes: usize) -> TableImage {
        let mut image = TableImage::default();
        image.append(&vec![7; bytes]);
        image
    }

    fn share(percent: u32, expected_bytes: u64) -> ImagesShare {
        ImagesShare { percent, expected_bytes, table_bytes: 100 }
    }

    #[test]
    fn images_with_room_are_kept_and_charged_to_the_cache() {
        let cache = SharedBlockCache::new(4 << 20);
        let images = || TableImages::new(Arc::new(BlockCache::part_of(cache.clone())));
        let (one, two) = (images(), images());
        let quarter = share(25, 0);
        for n in 0..10 {
            one.keep(TableId(n), FileId(n / 2), image(300 << 10), quarter);
        }
        assert_eq!(one.count(), 3, "of 300 KiB in 1 MiB");
        assert!(two.room(share(21, 0)) == 0 && two.room(quarter) > 0);
        two.keep(TableId(1), FileId(1), image(300 << 10), quarter);
        assert_eq!(two.count(), 0, "the part is that of all databases together");
        let each = image(300 << 10).memory_bytes();
        assert_eq!(cache.usage_bytes(), 3 * each);

        assert!(one.of(TableId(2)).upgrade().is_some_and(|image| image.read(5, &mut [0; 9])));
        assert!(one.of(TableId(3)).upgrade().is_none());
        one.look(25);
        assert_eq!(one.count(), 3);
        cache.set_capacity(3 << 20);
        one.look(25);
        assert!(one.of(TableId(2)).upgrade().is_none(), "the newest goes");
        one.forget([TableId(1), TableId(9)].into_iter());
        assert_eq!((one.count(), cache.usage_bytes()), (1, each));
        two.keep(TableId(1), FileId(1), image(10), quarter);
        two.keep(TableId(2), FileId(2), image(10), quarter);
        two.forget_file(FileId(1));
        assert!(two.of(TableId(1)).upgrade().is_none() && two.of(TableId(2)).upgrade().is_some());
        drop((one, two));
        assert_eq!(cache.usage_bytes(), 0);
    }

    #[test]
    fn expected_bytes_stay_charged_while_there_is_an_image() {
        let cache = SharedBlockCache::new(4 << 20);
        let images = TableImages::new(Arc::new(BlockCache::new(4 << 20)));
        let used = || images.blocks.usage_bytes();
        let expecting = share(50, 1 << 20);
        for n in 0..7 {
            let mut image_of_spare = TableImage::of_spare(images.spare.clone());
            image_of_spare.append(&vec![7; 300 << 10]);
            images.keep(TableId(n), FileId(n), image_of_spare, expecting);
            let each = image(300 << 10).memory_bytes();
            assert_eq!(used(), (1 << 20).max(each * (n + 1)).min(each * 6));
        }
        assert_eq!(images.count(), 6);
        images.keep(TableId(7), FileId(7), image(10), share(50, 1));
        let most = used();
        images.forget((1..8).map(TableId));
        assert_eq!(used(), most, "the most that there was lately");
        assert!(images.spare.count() > 0, "memory for the next ones");
        (0..PERIOD_LOOKS).for_each(|_| images.look(50));
        assert_eq!(used(), most);
        (0..PERIOD_LOOKS).for_each(|_| images.look(50));
        assert_eq!(used(), 1 << 20, "the most that was expected");
        assert_eq!(images.spare.count(), 0, "no whole piece is charged any more");
        for _ in 0..=LOOKS_MAX {
            images.look(50);
        }
        assert_eq!(used(), image(300 << 10).memory_bytes(), "nothing came for long");
        images.forget([TableId(0)].into_iter());
        assert_eq!(used(), 0);

        images.keep(TableId(9), FileId(9), image(10), share(10, 1 << 20));
        assert_eq!(used(), (4 << 20) / 100 * 10, "no more than the share");
        images.clear();
        assert_eq!((images.count(), used()), (0, 0));

        // If databases share the cache, each is charged with what it has.
        let one = TableImages::new(Arc::new(BlockCache::part_of(cache.clone())));
        one.keep(TableId(1), FileId(1), image(10), expecting);
        assert_eq!(cache.usage_bytes(), image(10).memory_bytes());
    }

    #[test]
    fn no_image_is_kept_beyond_the_share() {
        let cache = SharedBlockCache::new(1 << 20);
        let images = TableImages::new(Arc::new(BlockCache::part_of(cache.clone())));
        assert_eq!(images.room(share(0, 1 << 20)), 0);
        images.keep(TableId(1), FileId(1), image(10), share(0, 1 << 20));
        images.keep(TableId(1), FileId(1), image(600 << 10), share(50, 1 << 20));
        assert_eq!((images.count(), cache.usage_bytes()), (0, 0));
    }
}
