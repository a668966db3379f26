//! The Unix socket in a database's directory: binding it and connecting to it.
//!
//! - The address of a socket holds 107 bytes. A longer path is reached through a descriptor of its
//!   directory, as `/proc/self/fd/7/INSPECT`.
//! - The mode is set before the name exists, so that it is never open to others.
//! - A socket that a dead process left is replaced. One whose process answers is not.
//! - A symbolic link of that name is refused: it leads to the socket of another database.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::protocol::SOCKET;

/// How long a process may take to answer before its socket counts as dead.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// How long a connection may wait for its place among those to be accepted.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 16;

/// The address of the socket in a directory. It is valid as long as this value.
struct Address {
    address: SocketAddrUnix,
    path: PathBuf,
    /// The directory, if its path is too long for an address.
    _directory: Option<OwnedFd>,
}

impl Address {
    fn in_directory(directory: &Path) -> io::Result<Address> {
        let path = directory.join(SOCKET);
        match SocketAddrUnix::new(&path) {
            Ok(address) => return Ok(Address { address, path, _directory: None }),
            Err(Errno::NAMETOOLONG) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = rustix::fs::open(directory, flags, Mode::empty())?;
        let short = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", held.as_raw_fd()));
        let address = SocketAddrUnix::new(&short)?;
        Ok(Address { address, path, _directory: Some(held) })
    }
}

/// Creates the socket of `directory`, for this user alone.
///
/// # Errors
/// `AddrInUse` if a process that lives serves it; else what the operating system says.
pub(crate) fn bind(directory: &Path) -> io::Result<UnixListener> {
    let address = Address::in_directory(directory)?;
    let socket = new_socket()?;
    // Linux gives the name the mode of the socket, without a moment in which others could connect.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    match rustix::net::bind(&socket, &address.address) {
        Err(Errno::ADDRINUSE) => {
            remove_dead(directory, &address)?;
            rustix::net::bind(&socket, &address.address)?;
        }
        done => done?,
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Connects to the socket of `directory`.
///
/// # Errors
/// `InvalidInput` if its name is a symbolic link; else what the operating system says.
pub(crate) fn connect(directory: &Path) -> io::Result<UnixStream> {
    let address = Address::in_directory(directory)?;
    refuse_link(&address.path)?;
    let socket = new_socket()?;
    // A process that does not accept, because it is stopped, must not hold this one up.
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_MAX))?;
    rustix::net::connect(&socket, &address.address)?;
    Ok(UnixStream::from(socket))
}

/// Connects to a socket by its own path.
pub(crate) fn connect_to(path: &Path) -> io::Result<UnixStream> {
    match path.file_name() {
        Some(name) if name == SOCKET => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            connect(parent.unwrap_or(Path::new(".")))
        }
        _ => UnixStream::connect(path),
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let kind = (AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC);
    Ok(rustix::net::socket_with(kind.0, kind.1, kind.2, None)?)
}

/// Fails if the socket's name is a symbolic link.
fn refuse_link(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_symlink() {
        let leads = std::fs::read_link(path).unwrap_or_default();
        let leads = sateen::shown_path(&leads);
        let text = format!(
            "a symbolic link to {leads}, not the socket of this database: remove the link, and \
             give --socket to ask another database"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Removes a socket whose process is dead. A file that is no socket stays.
fn remove_dead(directory: &Path, address: &Address) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    refuse_link(&address.path)?;
    let found = std::fs::symlink_metadata(&address.path)?;
    if !found.file_type().is_socket() {
        let text = "a file of this name is there, which is not a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    if connect(directory).is_ok_and(answers) {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves it"));
    }
    match std::fs::remove_file(&address.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns true if somebody answers. A child of a dead process may still hold the socket open.
fn answers(mut stream: UnixStream) -> bool {
    let mut first = [0];
    let asked = stream
        .set_read_timeout(Some(ANSWER_MAX))
        .and_then(|()| stream.set_write_timeout(Some(ANSWER_MAX)))
        .and_then(|()| stream.write_all(b"GET /v1/ping HTTP/1.1\r\n\r\n"))
        .and_then(|()| stream.read(&mut first));
    asked.is_ok_and(|read| read > 0)
}

/// Returns the user that a socket belongs to, if that may be known.
pub(crate) fn owner(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::symlink_metadata(path).ok()?.uid())
}

/// Returns true if the process at the other end belongs to the user of this one.
pub(crate) fn is_same_user(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        drop(bind(directory.path()).unwrap());
        // Nobody listens any more, but the name is there.
        let listener = bind(directory.path()).unwrap();
        let mode = std::fs::metadata(directory.path().join(SOCKET)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // It listens, and answers.
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(is_same_user(&stream));
            let mut some = [0; 8];
            stream.read_exact(&mut some).unwrap();
            stream.write_all(b"HTTP/1.1 200").unwrap();
            listener
        });
        let refused = bind(directory.path()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        // It listens, as a child of a dead process does that has the descriptor, but is silent.
        let _silent = answering.join().unwrap();
        drop(bind(directory.path()).unwrap());
    }

    #[test]
    fn a_path_longer_than_an_address_works() {
        let directory = tempfile::tempdir().unwrap();
        let long = directory.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&long).unwrap();
        let listener = bind(&long).unwrap();
        let _client = connect(&long).unwrap();
        let _again = connect_to(&long.join(SOCKET)).unwrap();
        listener.accept().unwrap();
    }

    #[test]
    fn a_symbolic_link_to_another_socket_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let [mine, other] = ["mine", "other"].map(|name| directory.path().join(name));
        [&mine, &other].iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let _served = bind(&other).unwrap();
        let link = mine.join(SOCKET);
        std::os::unix::fs::symlink(other.join(SOCKET), &link).unwrap();
        for refused in [connect(&mine).unwrap_err(), bind(&mine).unwrap_err()] {
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            assert!(refused.to_string().contains("a symbolic link to"), "{refused}");
        }
        assert!(connect_to(&link).is_err());
        assert!(link.is_symlink(), "the link stays");
        let _asked = connect(&other).unwrap();
    }

    #[test]
    fn a_file_of_that_name_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(SOCKET);
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(bind(directory.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
