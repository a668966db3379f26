//! A macro for file systems that wrap another one: it passes most calls on unchanged. Tests use it,
//! too.
//!
//! What must stay true: it has an arm for every method of [`Vfs`](crate::vfs::Vfs) and
//! [`VfsFile`](crate::vfs::VfsFile) that a wrapper passes on.

/// Implements the named methods of a `Vfs` or `VfsFile` by calling the same method of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! pass_on {
    ($field:tt: $($method:ident)*) => { $($crate::pass_on!(@$method $field);)* };
    (@fn $field:tt $method:ident($($name:ident: $type:ty),*) -> $value:ty) => {
        fn $method(&self, $($name: $type),*) -> $value {
            self.$field.$method($($name),*)
        }
    };

    (@rename $f:tt) => {
        $crate::pass_on!(
            @fn $f rename(from: &std::path::Path, to: &std::path::Path)
                -> std::io::Result<()>
        );
    };
    (@remove $f:tt) => {
        $crate::pass_on!(@fn $f remove(path: &std::path::Path) -> std::io::Result<()>);
    };
    (@hard_link $f:tt) => {
        $crate::pass_on!(
            @fn $f hard_link(from: &std::path::Path, to: &std::path::Path)
                -> std::io::Result<()>
        );
    };
    (@clone_file $f:tt) => {
        $crate::pass_on!(
            @fn $f clone_file(from: &std::path::Path, to: &std::path::Path)
                -> std::io::Result<()>
        );
    };
    (@list $f:tt) => {
        $crate::pass_on!(
            @fn $f list(directory: &std::path::Path)
                -> std::io::Result<Vec<std::path::PathBuf>>
        );
    };
    (@create_dir_all $f:tt) => {
        $crate::pass_on!(@fn $f create_dir_all(directory: &std::path::Path) -> std::io::Result<()>);
    };
    (@remove_dir $f:tt) => {
        $crate::pass_on!(@fn $f remove_dir(directory: &std::path::Path) -> std::io::Result<()>);
    };
    (@sync_dir $f:tt) => {
        $crate::pass_on!(@fn $f sync_dir(directory: &std::path::Path) -> std::io::Result<()>);
    };
    (@exists $f:tt) => {
        $crate::pass_on!(@fn $f exists(path: &std::path::Path) -> std::io::Result<bool>);
    };
    (@lock $f:tt) => {
        $crate::pass_on!(
            @fn $f lock(path: &std::path::Path)
                -> std::io::Result<Box<dyn $crate::vfs::VfsLock>>
        );
    };
    (@lock_holder $f:tt) => {
        $crate::pass_on!(@fn $f lock_holder(path: &std::path::Path) -> Option<String>);
    };
    (@mark $f:tt) => {
        $crate::pass_on!(
            @fn $f mark(path: &std::path::Path, at: u64)
                -> std::io::Result<Box<dyn $crate::vfs::VfsLock>>
        );
    };
    (@free_space $f:tt) => {
        $crate::pass_on!(@fn $f free_space(path: &std::path::Path) -> std::io::Result<u64>);
    };
    (@total_space $f:tt) => {
        $crate::pass_on!(@fn $f total_space(path: &std::path::Path) -> std::io::Result<u64>);
    };
    (@disk $f:tt) => { $crate::pass_on!(@fn $f disk(path: &std::path::Path) -> Option<u64>); };
    (@place_of $f:tt) => {
        $crate::pass_on!(@fn $f place_of(path: &std::path::Path) -> std::path::PathBuf);
    };
    (@open_files_limit $f:tt) => { $crate::pass_on!(@fn $f open_files_limit() -> Option<u64>); };

    (@read_at $f:tt) => {
        $crate::pass_on!(
            @fn $f read_at(to: &mut [u8], offset: u64, class: $crate::vfs::IoClass)
                -> std::io::Result<usize>
        );
    };
    (@sync_data $f:tt) => {
        $crate::pass_on!(@fn $f sync_data(class: $crate::vfs::IoClass) -> std::io::Result<()>);
    };
    (@start_writeback $f:tt) => {
        $crate::pass_on!(@fn $f start_writeback(offset: u64, length: u64) -> std::io::Result<()>);
    };
    (@finish_writeback $f:tt) => {
        $crate::pass_on!(
            @fn $f finish_writeback(offset: u64, length: u64, class: $crate::vfs::IoClass)
                -> std::io::Result<()>
        );
    };
    (@punch_hole $f:tt) => {
        $crate::pass_on!(
            @fn $f punch_hole(offset: u64, length: u64, class: $crate::vfs::IoClass)
                -> std::io::Result<()>
        );
    };
    (@preallocate $f:tt) => {
        $crate::pass_on!(@fn $f preallocate(offset: u64, length: u64) -> std::io::Result<()>);
    };
    (@truncate $f:tt) => { $crate::pass_on!(@fn $f truncate(length: u64) -> std::io::Result<()>); };
    (@len $f:tt) => { $crate::pass_on!(@fn $f len() -> std::io::Result<u64>); };
    (@allocated $f:tt) => { $crate::pass_on!(@fn $f allocated() -> std::io::Result<u64>); };
    (@links $f:tt) => { $crate::pass_on!(@fn $f links() -> std::io::Result<u64>); };
    (@modified $f:tt) => { $crate::pass_on!(@fn $f modified() -> std::io::Result<Option<u64>>); };
    (@alignment $f:tt) => { $crate::pass_on!(@fn $f alignment() -> usize); };
    (@poison $f:tt) => { $crate::pass_on!(@fn $f poison() -> ()); };
}
