//! The operating system's limit on open files, and the errors that report it.
//!
//! What must stay true: only `EMFILE` and `ENFILE` mean that descriptors have run out.

use std::io;

use rustix::io::Errno;

/// Returns true if the process or the system has no descriptor left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    let code = error_number(error);
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

/// Returns the number of an error of the operating system, also if a layer of the file system has
/// added to it where it happened.
pub fn error_number(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let source = std::error::Error::source(error.get_ref()?)?;
        error_number(source.downcast_ref::<io::Error>()?)
    })
}

/// Returns the process's limit on open files (RLIMIT_NOFILE); `None` if there is none.
pub fn open_files_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}
