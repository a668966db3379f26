//! Tables of level 0 that are kept in memory from when they are written until they leave the level:
//! compactions out of it need not read them from the device, nor need clients. They take a part of
//! the block cache, and what finds no room there is not kept. Nothing that has room makes way for
//! another: tables leave level 0 in about the order in which they came, so what would make way is
//! what is needed next.
//!
//! What must stay true: the cache is charged with each once, until it goes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use sateen_control::{FileId, TableId};

use super::block_cache::BlockCache;
use crate::sync::leaf::lock;
use crate::table::TableImage;

#[derive(Debug)]
struct Kept {
    file: FileId,
    image: Arc<TableImage>,
}

/// A database's tables that are in memory.
#[derive(Debug)]
pub(crate) struct TableImages {
    blocks: Arc<BlockCache>,
    kept: Mutex<BTreeMap<TableId, Kept>>,
}

impl TableImages {
    /// None yet; they will take room in `blocks`.
    pub(crate) fn new(blocks: Arc<BlockCache>) -> TableImages {
        TableImages { blocks, kept: Mutex::default() }
    }

    /// Whether another may find room where all may take `percent` of the cache.
    pub(crate) fn has_room(&self, percent: u32) -> bool {
        self.blocks.table_images_room(percent) > 0
    }

    /// Keeps `image`, if there is room.
    pub(crate) fn keep(&self, table: TableId, file: FileId, image: TableImage, percent: u32) {
        let bytes = image.memory_bytes();
        if !self.blocks.charge_table_image(bytes, percent) {
            return;
        }
        let before = lock(&self.kept).insert(table, Kept { file, image: Arc::new(image) });
        self.went(before);
    }

    /// That of `table`, as long as it is kept.
    pub(crate) fn of(&self, table: TableId) -> Weak<TableImage> {
        let kept = lock(&self.kept);
        kept.get(&table).map_or_else(Weak::new, |kept| Arc::downgrade(&kept.image))
    }

    /// Forgets `tables`.
    pub(crate) fn forget(&self, tables: impl Iterator<Item = TableId>) {
        let mut kept = lock(&self.kept);
        let gone: Vec<_> = tables.filter_map(|table| kept.remove(&table)).collect();
        drop(kept);
        self.went(gone);
    }

    /// Forgets the tables of `file`.
    pub(crate) fn forget_file(&self, file: FileId) {
        let kept = lock(&self.kept);
        let of_file = kept.iter().filter(|(_, kept)| kept.file == file);
        let tables: Vec<_> = of_file.map(|(table, _)| *table).collect();
        drop(kept);
        self.forget(tables.into_iter());
    }

    /// Forgets the newest until all take no more than `percent` of the cache, which may have become
    /// smaller.
    pub(crate) fn shrink(&self, percent: u32) {
        while self.blocks.table_images_excess(percent) > 0 {
            let Some((_, newest)) = lock(&self.kept).pop_last() else { return };
            self.went([newest]);
        }
    }

    fn went(&self, gone: impl IntoIterator<Item = Kept>) {
        self.discharge(gone.into_iter().map(|kept| kept.image.memory_bytes()));
    }

    fn discharge(&self, bytes: impl Iterator<Item = u64>) {
        let bytes = bytes.sum();
        if bytes > 0 {
            self.blocks.discharge_table_images(bytes);
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        lock(&self.kept).len()
    }
}

impl Drop for TableImages {
    fn drop(&mut self) {
        let kept = std::mem::take(&mut *lock(&self.kept));
        self.went(kept.into_values());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::block_cache::SharedBlockCache;

    fn image(bytes: usize) -> TableImage {
        let mut image = TableImage::default();
        image.append(&vec![7; bytes]);
        image
    }

    #[test]
    fn what_has_room_is_kept_and_the_cache_is_charged_with_it() {
        let cache = SharedBlockCache::new(4 << 20);
        let images = || TableImages::new(Arc::new(BlockCache::part_of(cache.clone())));
        let (one, two) = (images(), images());
        for n in 0..10 {
            one.keep(TableId(n), FileId(n / 2), image(300 << 10), 25);
        }
        assert_eq!(one.count(), 3, "of 300 KiB in 1 MiB");
        assert!(!two.has_room(21) && two.has_room(25));
        two.keep(TableId(1), FileId(1), image(300 << 10), 25);
        assert_eq!(two.count(), 0, "the part is that of all databases together");
        let each = image(300 << 10).memory_bytes();
        assert_eq!(cache.usage_bytes(), 3 * each);

        assert!(one.of(TableId(2)).upgrade().is_some_and(|image| image.read(5, &mut [0; 9])));
        assert!(one.of(TableId(3)).upgrade().is_none());
        one.shrink(25);
        assert_eq!(one.count(), 3);
        cache.set_capacity(3 << 20);
        one.shrink(25);
        assert!(one.of(TableId(2)).upgrade().is_none(), "the newest goes");
        one.forget([TableId(1), TableId(9)].into_iter());
        assert_eq!((one.count(), cache.usage_bytes()), (1, each));
        two.keep(TableId(1), FileId(1), image(10), 25);
        two.keep(TableId(2), FileId(2), image(10), 25);
        two.forget_file(FileId(1));
        assert!(two.of(TableId(1)).upgrade().is_none() && two.of(TableId(2)).upgrade().is_some());
        drop((one, two));
        assert_eq!(cache.usage_bytes(), 0);
    }

    #[test]
    fn none_is_kept_where_none_may_be() {
        let images = TableImages::new(Arc::new(BlockCache::new(1 << 20)));
        assert!(!images.has_room(0));
        images.keep(TableId(1), FileId(1), image(10), 0);
        assert_eq!(images.count(), 0);
    }
}
