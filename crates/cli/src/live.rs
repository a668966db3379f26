//! Commands that speak to the process that has a database open: its options, and its metrics on a
//! TCP address.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use sateen_inspect::{Client, ClientError, JobStatus, Status};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, INTERRUPTED, Result, USAGE};
use crate::interrupt;
use crate::place::{Place, bytes};
use crate::progress::{JobBytes, Progress};
use crate::store;
use crate::why::client;

#[derive(Debug, Args)]
pub(crate) struct SetOption {
    /// Change options of the database in this directory
    db: PathBuf,
    /// Set these options, such as block_cache_bytes=256MiB
    #[arg(required = true, value_name = "OPTION=VALUE")]
    settings: Vec<String>,
    /// Change options of this column family
    #[arg(long, value_name = "NAME", value_parser = bytes())]
    cf: Option<String>,
}

/// Changes options of a running database, all or none.
pub(crate) fn set_options(arguments: &SetOption, json: bool, output: &mut dyn Write) -> Result<()> {
    let mut set = Map::new();
    for setting in &arguments.settings {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(Failure::usage(format!("{setting}: not OPTION=VALUE")));
        };
        set.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    store::refuse_missing(&arguments.db)?;
    let wanted = json!({ "set": set, "column_family": arguments.cf });
    let done = Client::of_database(&arguments.db).post("/v1/options", &wanted).map_err(failure)?;
    if json {
        return Ok(writeln!(output, "{done}")?);
    }
    for (name, value) in &set {
        writeln!(output, "{name} = {}", value.as_str().unwrap_or_default())?;
    }
    Ok(())
}

/// Returns true if a process serves the database.
pub(crate) fn is_served(db: &Path) -> bool {
    Client::of_database(db).status().is_ok()
}

/// Returns a path as the protocol has it: absolute, because the process has another current
/// directory, and text. A path that is none can only be named to a database that is not served.
pub(crate) fn path_argument(path: &Path) -> Result<Option<String>> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::file(path, &error))?;
    Ok(absolute.to_str().map(str::to_owned))
}

/// Has the process that has the database open do `work`. Returns its answer, or `None` if no
/// process serves the database. If the user interrupts that, the program removes `progress`, ends
/// here and says that the process goes on: `goes_on`.
pub(crate) fn asked(
    place: &Place,
    work: &str,
    arguments: &Value,
    goes_on: &str,
    progress: &Progress,
    json: bool,
) -> Result<Option<Value>> {
    let db = &place.db;
    if !has_socket(db) {
        return Ok(None);
    }
    if place.profile.is_some() || !place.settings.is_empty() {
        if is_served(db) {
            let text = "a process has the database open, with options of its own: give neither \
                        --profile nor --set, or change its options with `sateen db set-option`";
            return Err(Failure::usage(format!("{}: {text}", sateen::shown_path(db))));
        }
        return Ok(None);
    }
    let stop = || {
        progress.clear();
        let text = format!("interrupted; the process that has the database open {goes_on}");
        Failure::interrupted(text).report(json);
        std::process::exit(INTERRUPTED.into());
    };
    let ask = || Client::of_database(db).post(&format!("/v1/{work}"), arguments);
    let (done, stopped) = interrupt::stopping(interrupt::watch()?.as_ref(), stop, ask);
    match done {
        Ok(answer) => Ok(Some(answer)),
        Err(ClientError::NotServed(_)) if stopped => Err(Failure::interrupted("interrupted")),
        Err(ClientError::NotServed(_)) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

/// Returns true if a process serves the database, or one that died did.
fn has_socket(db: &Path) -> bool {
    std::fs::symlink_metadata(db.join(sateen_inspect::SOCKET)).is_ok()
}

/// Has the process that has the database open compact a column family, and shows how far that is.
/// Returns false if no process serves the database.
pub(crate) fn compacted(place: &Place, family: &str, json: bool) -> Result<bool> {
    if !has_socket(&place.db) {
        return Ok(false);
    }
    let what = "the process that has the database open compacts";
    let progress = Progress::spinner(what);
    let client = Client::of_database(&place.db);
    let jobs = || client.status().map_or_else(|_| Vec::new(), |status| manual_jobs(&status));
    let arguments = json!({ "column_family": family });
    let goes_on = "goes on with the compaction";
    let ask = || asked(place, "compact", &arguments, goes_on, &progress, json);
    Ok(progress.of_jobs(what, jobs, ask)?.is_some())
}

/// Returns the running compactions that somebody asked for.
fn manual_jobs(status: &Status) -> Vec<JobBytes> {
    let is_manual =
        |job: &&JobStatus| job.reason.as_deref().is_some_and(|reason| reason.starts_with("manual"));
    let jobs = status.jobs.iter().filter(is_manual);
    let bytes =
        |job: &JobStatus| JobBytes { job: job.job, read: job.read_bytes, input: job.input_bytes };
    jobs.map(bytes).collect()
}

fn failure(error: ClientError) -> Failure {
    let text = error.to_string();
    match error {
        ClientError::Refused(400, _) => Failure { code: USAGE, ..Failure::failed(text) },
        ClientError::Refused(404, _) => Failure::not_found(text),
        _ => Failure::failed(text),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServeMetrics {
    /// Serve the metrics of the database in this directory
    #[arg(required_unless_present = "socket")]
    db: Option<PathBuf>,
    /// Ask this socket instead of the one in a directory
    #[arg(long, value_name = "PATH", conflicts_with = "db")]
    socket: Option<PathBuf>,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9187")]
    listen: SocketAddr,
}

/// Serves metrics and the live page until the user ends it.
pub(crate) fn serve_metrics(arguments: &ServeMetrics, output: &mut dyn Write) -> Result<()> {
    let ended = interrupt::watch()?;
    let client = client(arguments.db.as_ref(), arguments.socket.as_ref());
    // A mistyped path, or a socket of another user, should be told of at once. A process that is
    // restarted later is no mistake.
    if let Err(error) = client.status() {
        let mut errors = std::io::stderr().lock();
        let _nobody = writeln!(errors, "sateen: {error}; every scrape tries again");
    }
    let scrape = sateen_inspect::relay(client, arguments.listen)
        .map_err(|error| Failure::failed(format!("{}: {error}", arguments.listen)))?;
    writeln!(output, "http://{}/metrics for Prometheus, http://{0}/ to look at", scrape.address())?;
    output.flush()?;
    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ok(())
}
