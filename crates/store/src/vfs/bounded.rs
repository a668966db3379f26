//! A file system that keeps few files open: files opened for reading share the descriptors of one
//! [`DescriptorPool`]. Check and repair read many files at once, and may run where the limit on
//! open files is low.
//!
//! What must stay true: a name is never reused for another table, WAL or manifest (format rule F2),
//! so that opening a name again gives the same file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::descriptors::DescriptorPool;
use super::{OpenOptions, Vfs, VfsFile};

/// A file system that keeps few files open.
#[derive(Debug)]
pub struct BoundedVfs {
    inner: Arc<dyn Vfs>,
    pool: Arc<DescriptorPool>,
}

impl BoundedVfs {
    /// Keeps at most `open_max` files of `inner` open for reading, and at least one.
    pub fn new(inner: Arc<dyn Vfs>, open_max: usize) -> BoundedVfs {
        BoundedVfs { pool: DescriptorPool::new(inner.clone(), open_max), inner }
    }
}

impl Vfs for BoundedVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        // A file that is written stays open until its writer closes it. There are at most two of
        // them.
        if options.write || options.create_new {
            return self.inner.open(path, options);
        }
        Ok(self.pool.file(&Arc::from(path), options)?)
    }

    crate::pass_on! {
        inner: rename remove hard_link clone_file list create_dir_all remove_dir sync_dir exists
            lock lock_holder mark free_space total_space place_of open_files_limit
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::vfs::{IoClass, MemVfs};

    #[test]
    fn a_file_whose_descriptor_was_closed_can_be_read() {
        let mem: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let names: Vec<PathBuf> = (0..5).map(|n| PathBuf::from(format!("{n}"))).collect();
        for (n, name) in names.iter().enumerate() {
            let file = mem.open(name, OpenOptions::CREATE).unwrap();
            file.write_at(&[n as u8; 8], 0, IoClass::Client).unwrap();
        }
        let bounded = BoundedVfs::new(mem, 2);
        let open = |name: &PathBuf| bounded.open(name, OpenOptions::READ).unwrap();
        let files: Vec<_> = names.iter().map(open).collect();
        assert_eq!(bounded.pool.in_use(), 2);
        for (n, file) in files.iter().enumerate().chain(files.iter().enumerate()) {
            let mut bytes = [0xFF; 8];
            assert_eq!(file.read_at(&mut bytes, 0, IoClass::Client).unwrap(), 8);
            assert_eq!(bytes, [n as u8; 8]);
            assert_eq!(file.len().unwrap(), 8);
            assert!(bounded.pool.in_use() <= 2);
        }
        drop(files);
        assert_eq!(bounded.pool.in_use(), 0, "closed with the last handle");
    }
}
