//! Installs the inspector of this process, and opens the door of each database.
//!
//! 1. [`install`] tells the engine of the inspector.
//! 2. `Inspector::begin` binds the socket of a database that was opened, and starts its server.
//! 3. A `Door` is what the engine keeps until the database closes. Its drop removes the socket.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sateen::{Db, Error, Inspection, Inspector, Result};

use crate::protocol::SOCKET;
use crate::route::Routes;
use crate::server::{Listener, Server};
use crate::socket;
use crate::watch::Watch;

/// The environment variable that, set to `1`, `true` or `on`, serves every database of a process.
pub const INSPECT_VARIABLE: &str = "SATEEN_INSPECT";

/// The directories of the databases that this process serves.
static SERVED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn served() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    SERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the directories of the databases that this process serves.
pub(crate) fn databases() -> Vec<String> {
    served().iter().map(sateen::shown_path).collect()
}

/// Makes the option `inspect` and the variable [`INSPECT_VARIABLE`] work in this process. Call it
/// before the first open. Further calls do nothing.
pub fn install() {
    let by_variable = std::env::var_os(INSPECT_VARIABLE)
        .is_some_and(|value| ["1", "true", "on"].iter().any(|word| value == *word));
    let _was_there = sateen::set_inspector(Box::new(Doors { by_variable }));
}

struct Doors {
    by_variable: bool,
}

impl Inspector for Doors {
    fn serves_all(&self) -> bool {
        self.by_variable
    }

    fn begin(&self, db: Db) -> Result<Inspection> {
        let asked_for = db.options().inspect;
        let directory = db.path().to_owned();
        match Door::open(db) {
            Ok(door) => Ok(Inspection::new(door)),
            Err(source) if asked_for => Err(Error::Io {
                operation: "serve",
                path: directory.join(SOCKET),
                source: Arc::new(source),
            }),
            // Who sets a variable for a whole process wants it to run all the same.
            Err(error) => {
                let path = directory.join(SOCKET);
                let path = sateen::shown_path(&path);
                let stderr = std::io::stderr();
                let _nobody = writeln!(stderr.lock(), "sateen: serve {path}: {error}");
                Ok(Inspection::new(()))
            }
        }
    }
}

/// A database that is served on its socket.
struct Door {
    /// Dropped before the name is removed.
    server: Option<Server>,
    directory: PathBuf,
    /// Which file the socket is, so that no other is removed.
    inode: u64,
}

impl Door {
    fn open(db: Db) -> std::io::Result<Door> {
        let directory = db.path().to_owned();
        let listener = socket::bind(&directory)?;
        let mut door = Door { server: None, inode: inode(&directory), directory };
        let routes = Routes::new(Watch::new(db), databases, true);
        door.server = Some(Server::start(Listener::Unix(listener), Arc::new(routes))?);
        served().insert(door.directory.clone());
        Ok(door)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        served().remove(&self.directory);
        self.server = None;
        if inode(&self.directory) == self.inode {
            let _gone = std::fs::remove_file(self.directory.join(SOCKET));
        }
    }
}

/// Returns the number of the socket's file; 0 if there is none.
fn inode(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(directory.join(SOCKET)).map_or(0, |found| found.ino())
}
