//! What an operator may change or ask for. One piece of work is done at a time.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use sateen::{BackupEngine, CompactRangeOptions, CreateBackupOptions, Db, Error, Options};
use serde_json::{Map, Value, json};

use crate::http::{Answer, Refusal};

/// Work that an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compact,
    Checkpoint,
    Backup,
}

/// The place of the one piece of work that is being done.
#[derive(Default)]
pub(crate) struct Turn(Mutex<()>);

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Flush => "flush",
            Work::Compact => "compact",
            Work::Checkpoint => "checkpoint",
            Work::Backup => "backup",
        }
    }
}

/// Does `work`, with the arguments of `body`.
pub(crate) fn carry_out(work: Work, db: &Db, turn: &Turn, body: &[u8]) -> Result<Answer, Refusal> {
    let arguments = Arguments::of(body)?;
    let _turn = match turn.0.try_lock() {
        Ok(turn) => turn,
        Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let text = format!("{}: another request is being carried out", work.name());
            return Err(Refusal::new(409, text));
        }
    };
    let done = match work {
        Work::Flush => {
            arguments.only(&[])?;
            db.flush_all().map(|()| json!({ "done": "flush" }))
        }
        Work::Compact => {
            arguments.only(&["column_family"])?;
            let name = arguments.text("column_family")?.unwrap_or("default");
            let options = CompactRangeOptions::default();
            let family = db.column_family(name);
            let family = family.ok_or_else(|| Error::NoSuchColumnFamily(name.to_owned()));
            let compacted = family.and_then(|family| family.compact_range(None, None, &options));
            compacted.map(|()| json!({ "done": "compact", "column_family": name }))
        }
        Work::Checkpoint => {
            arguments.only(&["path"])?;
            let path = arguments.path()?;
            db.checkpoint(&path).map(|()| json!({ "done": "checkpoint", "path": path }))
        }
        Work::Backup => {
            arguments.only(&["path", "note", "rate"])?;
            let (path, rate) = (arguments.path()?, arguments.number("rate")?.unwrap_or(0));
            let note = arguments.text("note")?.unwrap_or_default().to_owned();
            let options = CreateBackupOptions { note, rate, ..CreateBackupOptions::default() };
            let made =
                BackupEngine::open(&path).and_then(|mut backups| backups.create_with(db, &options));
            made.map(|made| json!({ "done": "backup", "path": path, "id": made.id }))
        }
    };
    done.map(|done| Answer::json(&done)).map_err(|error| refusal(&error))
}

/// Returns the options of the database and of each column family, as text.
pub(crate) fn options(db: &Db) -> Answer {
    let own = db.options();
    let mut database = Map::new();
    for info in Options::all().filter(|info| !info.column_family) {
        let value = own.get(info.name).unwrap_or_default();
        database.insert(info.name.to_owned(), Value::String(value));
    }
    let mut families = Map::new();
    for name in db.column_families() {
        let Some(family) = db.column_family(&name) else { continue };
        let own = family.options();
        let of_family = Options::all().filter(|info| info.column_family).map(|info| {
            (info.name.to_owned(), Value::String(own.get(info.name).unwrap_or_default()))
        });
        families.insert(name, Value::Object(of_family.collect()));
    }
    let mutable = Options::all().filter(|info| info.mutable).map(|info| info.name);
    Answer::json(&json!({
        "database": database, "column_families": families,
        "mutable": mutable.collect::<Vec<_>>(),
    }))
}

/// Changes options: all that `set` has, or none.
pub(crate) fn set_options(db: &Db, body: &[u8]) -> Result<Answer, Refusal> {
    let arguments = Arguments::of(body)?;
    arguments.only(&["set", "column_family"])?;
    let changes = changes(&arguments)?;
    let changes: Vec<_> =
        changes.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let done = match arguments.text("column_family")? {
        None => db.set_options(&changes),
        Some(name) => match db.column_family(name) {
            Some(family) => family.set_options(&changes),
            None => Err(Error::NoSuchColumnFamily(name.to_owned())),
        },
    };
    done.map_err(|error| refusal(&error))?;
    Ok(Answer::json(&json!({ "done": "options", "set": arguments.0.get("set") })))
}

/// Returns the options in the argument `set`, with their values as text.
fn changes(arguments: &Arguments) -> Result<Vec<(String, String)>, Refusal> {
    let Some(Value::Object(set)) = arguments.0.get("set") else {
        return Err(Refusal::new(400, "set: an object of options and their values is missing"));
    };
    let mut changes = Vec::new();
    for (name, value) in set {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return Err(Refusal::new(400, format!("{name}: neither text nor a number"))),
        };
        changes.push((name.clone(), text));
    }
    Ok(changes)
}

/// Returns the answer for an error of the engine.
pub(crate) fn refusal(error: &Error) -> Refusal {
    let status = match error {
        Error::InvalidArgument(_) => 400,
        Error::NoSuchColumnFamily(_) => 404,
        Error::Closed => 410,
        Error::Locked { .. } => 409,
        _ => 500,
    };
    Refusal::new(status, error.to_string())
}

/// The arguments of a request: an object, or nothing.
struct Arguments(Map<String, Value>);

impl Arguments {
    fn of(body: &[u8]) -> Result<Arguments, Refusal> {
        if body.is_empty() {
            return Ok(Arguments(Map::new()));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(object)) => Ok(Arguments(object)),
            Ok(_) => Err(Refusal::new(400, "the body is not an object of JSON")),
            Err(error) => Err(Refusal::new(400, format!("the body is not JSON: {error}"))),
        }
    }

    /// Fails if there is an argument that is not one of `known`.
    fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Refusal::new(400, format!("{name}: no such argument here"))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::new(400, format!("{name}: not text"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(Refusal::new(400, format!("{name}: not a whole number from 0"))),
            },
        }
    }

    /// Returns the argument `path`. The process has a current directory that its operator does not
    /// know, so a path must say all.
    fn path(&self) -> Result<PathBuf, Refusal> {
        let path = self.text("path")?.ok_or_else(|| Refusal::new(400, "path: is missing"))?;
        if !Path::new(path).is_absolute() {
            return Err(Refusal::new(400, format!("path: {path} does not begin with /")));
        }
        Ok(PathBuf::from(path))
    }
}

/// Reads the arguments of every request from `body`.
pub(crate) fn fuzz(body: &[u8]) {
    let Ok(arguments) = Arguments::of(body) else { return };
    let _known = arguments.only(&["path", "note", "rate", "set", "column_family"]);
    let _rate = arguments.number("rate");
    let _path = arguments.path();
    let _changes = changes(&arguments);
}
