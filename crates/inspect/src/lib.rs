//! A door into a running Sateen database. Operators see its state, read and change its options, and
//! ask for a flush, a compaction, a checkpoint or a backup, on a Unix socket in its directory.
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! use sateen::{Db, Options};
//! use sateen_inspect::Client;
//!
//! sateen_inspect::install(); // once, before the first open
//! let db = Db::open(directory.path(), Options { inspect: true, ..Options::default() })?;
//! db.put("fig", "1")?;
//!
//! // In another process of the same user:
//! let status = Client::of_database(directory.path()).status().unwrap();
//! assert_eq!(status.health, "ok");
//! # Ok::<(), sateen::Error>(())
//! ```
//!
//! - [`install`] makes the option `inspect` work, and the environment variable `SATEEN_INSPECT=1`,
//!   which serves every database of the process.
//! - [`Client`] speaks to the socket; `sateen top` and `sateen why` use it.
//! - [`prometheus`] serves metrics, for a scraper, on a TCP address.
//!
//! docs/operations.md tells what operators do with it, docs/inspect.md has the protocol.
//!
//! 1. `door` binds the socket and keeps the history of a database.
//! 2. `server` accepts connections, each on a thread of its own, with limits in time and size.
//! 3. `http` reads a request from bytes and writes an answer.
//! 4. `route` finds what a request asks for; `status`, `actions` carry it out.
//!
//! What must stay true: a database that is not inspected has nothing of this: no thread, no file. A
//! client that is stuck or hostile holds up no operation of the database and no other client.
#![deny(missing_docs)]

mod actions;
mod client;
mod door;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod protocol;
mod route;
mod scrape;
mod server;
mod socket;
mod status;
mod watch;

pub use client::{Client, ClientError};
pub use door::{INSPECT_VARIABLE, install};
pub use http::{Method, Refusal, Request, parse};
pub use protocol::{
    ClassTraffic, EpisodeReport, ExplanationReport, FamilyStatus, JobStatus, LevelStatus,
    OperationStatus, PROTOCOL, Quantiles, SOCKET, SlowStatus, StallStatus, Status,
};
pub use scrape::{Scrape, prometheus, relay};
