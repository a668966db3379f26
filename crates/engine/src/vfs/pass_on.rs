//! What stands before another file system, or before its files, passes on most calls as they are.
//! Tests have this file, too.

/// The methods of that name of a `Vfs` or a `VfsFile`, which call the same of a field.
macro_rules! pass_on {
    ($field:tt: $($method:ident)*) => { $(pass_on!(@$method $field);)* };
    (@fn $field:tt $method:ident($($name:ident: $type:ty),*) -> $value:ty) => {
        fn $method(&self, $($name: $type),*) -> $value {
            self.$field.$method($($name),*)
        }
    };

    (@rename $f:tt) => { pass_on!(@fn $f rename(from: &Path, to: &Path) -> io::Result<()>); };
    (@remove $f:tt) => { pass_on!(@fn $f remove(path: &Path) -> io::Result<()>); };
    (@hard_link $f:tt) => { pass_on!(@fn $f hard_link(from: &Path, to: &Path) -> io::Result<()>); };
    (@clone_file $f:tt) => {
        pass_on!(@fn $f clone_file(from: &Path, to: &Path) -> io::Result<()>);
    };
    (@list $f:tt) => { pass_on!(@fn $f list(directory: &Path) -> io::Result<Vec<PathBuf>>); };
    (@create_dir_all $f:tt) => {
        pass_on!(@fn $f create_dir_all(directory: &Path) -> io::Result<()>);
    };
    (@remove_dir $f:tt) => { pass_on!(@fn $f remove_dir(directory: &Path) -> io::Result<()>); };
    (@sync_dir $f:tt) => { pass_on!(@fn $f sync_dir(directory: &Path) -> io::Result<()>); };
    (@exists $f:tt) => { pass_on!(@fn $f exists(path: &Path) -> io::Result<bool>); };
    (@lock $f:tt) => { pass_on!(@fn $f lock(path: &Path) -> io::Result<Box<dyn VfsLock>>); };
    (@lock_holder $f:tt) => { pass_on!(@fn $f lock_holder(path: &Path) -> Option<String>); };
    (@mark $f:tt) => {
        pass_on!(@fn $f mark(path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>>);
    };
    (@free_space $f:tt) => { pass_on!(@fn $f free_space(path: &Path) -> io::Result<u64>); };
    (@total_space $f:tt) => { pass_on!(@fn $f total_space(path: &Path) -> io::Result<u64>); };
    (@open_files_limit $f:tt) => { pass_on!(@fn $f open_files_limit() -> Option<u64>); };

    (@read_at $f:tt) => {
        pass_on!(@fn $f read_at(to: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize>);
    };
    (@sync_data $f:tt) => { pass_on!(@fn $f sync_data(class: IoClass) -> io::Result<()>); };
    (@start_writeback $f:tt) => {
        pass_on!(@fn $f start_writeback(offset: u64, length: u64) -> io::Result<()>);
    };
    (@punch_hole $f:tt) => {
        pass_on!(@fn $f punch_hole(offset: u64, length: u64, class: IoClass) -> io::Result<()>);
    };
    (@preallocate $f:tt) => {
        pass_on!(@fn $f preallocate(offset: u64, length: u64) -> io::Result<()>);
    };
    (@truncate $f:tt) => { pass_on!(@fn $f truncate(length: u64) -> io::Result<()>); };
    (@len $f:tt) => { pass_on!(@fn $f len() -> io::Result<u64>); };
    (@allocated $f:tt) => { pass_on!(@fn $f allocated() -> io::Result<u64>); };
    (@links $f:tt) => { pass_on!(@fn $f links() -> io::Result<u64>); };
    (@modified $f:tt) => { pass_on!(@fn $f modified() -> io::Result<Option<u64>>); };
    (@alignment $f:tt) => { pass_on!(@fn $f alignment() -> usize); };
    (@poison $f:tt) => { pass_on!(@fn $f poison() -> ()); };
}
pub(crate) use pass_on;
