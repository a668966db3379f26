//! The calls into the engine: opening, loading, checking, repairing, destroying.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use sateen::vfs::{PosixVfs, Vfs};
use sateen::{
    CheckReport, ColumnFamily, ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY, Db, DestroyReport,
    KEY_BYTES_MAX, Options, PROPERTIES, RepairListener, RepairOptions, RepairReport, WriteBatch,
    WriteOptions, shown, shown_path,
};
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::load::Sink;
use crate::place::{Family, Place};
use crate::text::bytes::json_path;

/// The largest number of times in a row that a reader opens the database again because a writer
/// replaced its files.
pub(crate) const BEHIND_MAX: u32 = 20;

/// How a command uses a database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The database must exist; the command changes nothing.
    Read,
    /// The database must exist; the command may change it.
    Write,
    /// The command creates the database if it is missing.
    Create,
}

/// Opens a database, with the options that the command line gives. A `ttl` that it gives is for all
/// column families; without one each keeps its own.
pub(crate) fn open(place: &Place, access: Access) -> Result<Db> {
    open_for(place, access, None)
}

/// Opens a database as [`open`] does. A `ttl` of the command line is for the column family `cf`
/// alone, if there is one.
pub(crate) fn open_for(place: &Place, access: Access, cf: Option<&str>) -> Result<Db> {
    let mut options = options(place)?;
    options.create_if_missing = access == Access::Create;
    if access != Access::Create {
        refuse_missing(&place.db)?;
    }
    let families = with_own_ttls(place, &mut options, cf);
    let families: Vec<_> =
        families.iter().map(|(name, options)| (name.as_str(), options.clone())).collect();
    let (vfs, db) = (Arc::new(PosixVfs::new()), &place.db);
    Ok(match access {
        Access::Read => Db::open_read_only_families_with(vfs, db, options, &families)?,
        Access::Write | Access::Create => Db::open_with(vfs, db, options, &families)?,
    })
}

/// Sets the `ttl` of the default column family, and returns the options of the others that need
/// another one.
fn with_own_ttls(
    place: &Place,
    options: &mut Options,
    cf: Option<&str>,
) -> Vec<(String, ColumnFamilyOptions)> {
    let is_ttl = |entry: &str| entry.split_once('=').is_some_and(|(name, _)| name.trim() == "ttl");
    let is_given = place.settings.iter().flat_map(|list| list.split(';')).any(is_ttl);
    if is_given && cf.is_none() {
        return Vec::new();
    }
    let given = options.column_family.ttl;
    let of = |(name, own): (String, Option<Duration>)| match cf {
        Some(cf) if is_given && cf == name => (name, given),
        _ => (name, own),
    };
    let ttls: Vec<_> = ttls(place).into_iter().map(of).collect();
    if let Some((_, ttl)) = ttls.iter().find(|(name, _)| name == DEFAULT_COLUMN_FAMILY) {
        options.column_family.ttl = *ttl;
    }
    let shared = &options.column_family;
    // What the command line says of a column family holds, and is not only a default for it.
    let is_named = |name: &str| is_given && cf == Some(name) && name != DEFAULT_COLUMN_FAMILY;
    let others = ttls.into_iter().filter(|(name, ttl)| *ttl != shared.ttl || is_named(name));
    others.map(|(name, ttl)| (name, ColumnFamilyOptions { ttl, ..shared.clone() })).collect()
}

/// Returns the `ttl` that fits each column family. There are none if the database cannot be read:
/// the open that follows tells why.
fn ttls(place: &Place) -> Vec<(String, Option<Duration>)> {
    Db::list_ttls(&place.db).unwrap_or_default()
}

/// Opens a database for reading, with the options of the command line, or else with those that it
/// was last opened with.
pub(crate) fn open_as_it_was(place: &Place) -> Result<Db> {
    refuse_missing(&place.db)?;
    let vfs = Arc::new(PosixVfs::new());
    if place.profile.is_some() || !place.settings.is_empty() {
        return open(place, Access::Read);
    }
    let stored = match Options::load_with(vfs.as_ref(), &place.db, true) {
        Ok(stored) => stored,
        // An I/O error does not mean that there are no stored options.
        Err(error) if error.is_environment() => return Err(error.into()),
        Err(_) => return open(place, Access::Read),
    };
    let (mut shared, ttls) = (stored.options, ttls(place));
    let fitting = |name: &str, stored| {
        let found = ttls.iter().find(|(family, _)| family == name);
        found.map_or(stored, |(_, ttl)| *ttl)
    };
    shared.column_family.ttl = fitting(DEFAULT_COLUMN_FAMILY, shared.column_family.ttl);
    let families = stored.families.iter().map(|(name, options)| {
        let ttl = fitting(name, options.ttl);
        (name.as_str(), ColumnFamilyOptions { ttl, ..options.clone() })
    });
    let families: Vec<_> = families.collect();
    Ok(Db::open_read_only_families_with(vfs, &place.db, shared, &families)?)
}

/// Returns the options of the command line.
pub(crate) fn options(place: &Place) -> Result<Options> {
    let mut options = match &place.profile {
        Some(name) => Options::profile(name)?,
        None => Options::default(),
    };
    for entry in &place.settings {
        options.apply_str_list(entry)?;
    }
    options.validate()?;
    Ok(options)
}

/// Opens a database and finds a column family in it.
pub(crate) fn open_family(
    family: &Family,
    access: Access,
    create_family: bool,
) -> Result<(Db, ColumnFamily)> {
    // A database that is about to be created has only the default column family.
    let made = create_family || family.cf == DEFAULT_COLUMN_FAMILY;
    let access = if access == Access::Create && !made { Access::Write } else { access };
    let db = open_for(&family.place, access, Some(&family.cf))?;
    let found = match db.column_family(&family.cf) {
        Some(found) => found,
        None if create_family => {
            let options = options(&family.place)?.column_family;
            db.create_column_family(&family.cf, options)?
        }
        None => {
            let there_are = db.column_families().join(", ");
            return Err(Failure::not_found(format!(
                "no column family \"{}\"; the database has {}",
                shown(&family.cf),
                shown(&there_are)
            )));
        }
    };
    Ok((db, found))
}

/// The limits of keys and values. They are checked before a database is created.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    value_bytes_max: u64,
}

impl Limits {
    /// Returns the bytes of the largest record.
    pub(crate) fn record_bytes_max(self) -> u64 {
        self.value_bytes_max.saturating_add(KEY_BYTES_MAX as u64)
    }

    pub(crate) fn of(options: &Options) -> Limits {
        Limits { value_bytes_max: options.value_bytes_max }
    }

    /// Returns an empty batch with these limits.
    pub(crate) fn batch(self) -> WriteBatch {
        let limit = usize::try_from(self.value_bytes_max).unwrap_or(usize::MAX);
        WriteBatch::with_value_bytes_max(limit)
    }

    /// Returns what is too large.
    pub(crate) fn check(self, key: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        if key.len() > KEY_BYTES_MAX {
            return Err(format!("the key has {} bytes; the limit is {KEY_BYTES_MAX}", key.len()));
        }
        if value.len() as u64 > self.value_bytes_max {
            let (length, limit) = (value.len(), self.value_bytes_max);
            return Err(format!("the value has {length} bytes; value_bytes_max is {limit}"));
        }
        Ok(())
    }
}

/// Batches of a load. They bypass the WAL: a flush at the end makes them durable with half the
/// bytes written. A crash before the flush leaves a prefix of the file.
pub(crate) struct Loader<'a> {
    db: &'a Db,
    family: &'a ColumnFamily,
    batch: WriteBatch,
    limits: Limits,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(db: &'a Db, family: &'a ColumnFamily) -> Loader<'a> {
        let limits = Limits::of(&db.options());
        Loader { db, family, batch: limits.batch(), limits }
    }
}

impl Sink for Loader<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        self.limits.check(key, value)?;
        self.batch.to(self.family).put(key, value).map_err(|error| error.to_string())
    }

    fn commit(&mut self) -> std::result::Result<(), String> {
        let options = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        self.db.write(&self.batch, &options).map_err(|error| error.to_string())?;
        self.batch.clear();
        Ok(())
    }
}

/// Deletes keys, all or none.
pub(crate) fn delete(db: &Db, family: &ColumnFamily, keys: &[Vec<u8>], sync: bool) -> Result<()> {
    let mut batch = WriteBatch::new();
    for key in keys {
        batch.to(family).delete(key)?;
    }
    db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() })?;
    Ok(())
}

/// Statistics as text.
pub(crate) fn stats(db: &Db, prometheus: bool) -> String {
    if prometheus {
        return db.metrics().to_prometheus_text();
    }
    let mut text = String::new();
    for name in db.column_families() {
        let family = db.column_family(&name);
        let shape = family.and_then(|family| family.property("sateen.cfstats"));
        text.push_str(&format!("** {} **\n{}\n", shown(&name), shape.unwrap_or_default()));
    }
    text + &db.property("sateen.dbstats").unwrap_or_default()
}

/// The names of all properties. `<N>` becomes each level.
pub(crate) fn property_names(family: &ColumnFamily) -> Vec<String> {
    let levels = family.options().levels;
    let mut names = Vec::new();
    for name in PROPERTIES {
        match name.strip_suffix("<N>") {
            Some(stem) => names.extend((0..levels).map(|level| format!("sateen.{stem}{level}"))),
            None => names.push(format!("sateen.{name}")),
        }
    }
    names
}

/// Checks a database, which another process may have open.
pub(crate) fn check(place: &Place, mut progress: impl FnMut(u64, u64)) -> Result<CheckReport> {
    refuse_missing(&place.db)?;
    sateen::check(&place.db, &options(place)?, &mut progress).map_err(|error| refused(error, ""))
}

/// Returns an error as JSON: its file, offset and kind.
pub(crate) fn finding(error: &sateen::Error) -> serde_json::Value {
    let text = error.to_string();
    match error {
        sateen::Error::Corruption { path, offset, kind } => json!({
            "file": json_path(path), "offset": offset, "kind": kind.to_string(), "text": text,
        }),
        sateen::Error::Io { path, source, .. } => json!({
            "file": json_path(path), "kind": source.to_string(), "text": text,
        }),
        sateen::Error::InconsistentEdit { path, reason }
        | sateen::Error::IncompatibleDirectory { path, reason } => json!({
            "file": json_path(path), "kind": reason, "text": text,
        }),
        _ => json!({ "kind": text, "text": text }),
    }
}

/// Fails if the directory is missing. Other errors are left to the open, which names their cause.
pub(crate) fn refuse_missing(db: &Path) -> Result<()> {
    if db.try_exists().is_ok_and(|exists| !exists) {
        return Err(Failure::failed(format!(
            "{}: there is no database; `sateen db put` and `sateen db load` create one",
            shown_path(db)
        )));
    }
    Ok(())
}

/// Fails if `file` is to be written into the directory of a database.
pub(crate) fn refuse_inside(file: &Path) -> Result<()> {
    let directory = file.parent().filter(|above| !above.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let current = directory.join("CURRENT");
    if !current.try_exists().map_err(|error| Failure::file(&current, &error))? {
        return Ok(());
    }
    let (file, directory) = (shown_path(file), shown_path(directory));
    Err(Failure::failed(format!(
        "{file}: the directory {directory} is that of a database: name a file elsewhere"
    )))
}

/// The process that has a database open for writing, if it is known.
pub(crate) fn holder(place: &Place) -> Option<String> {
    PosixVfs::new().lock_holder(&place.db.join("LOCK"))
}

/// Calls `read`, which opens the database, again while it fails because a writer replaced files.
pub(crate) fn beside_writer<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..BEHIND_MAX {
        match read() {
            Err(failure) if failure.behind => {}
            other => return other,
        }
    }
    read()
}

/// Removes a database.
pub(crate) fn destroy(place: &Place) -> Result<DestroyReport> {
    refuse_missing(&place.db)?;
    Ok(sateen::destroy(&place.db, &options(place)?)?)
}

/// Repairs a database. With `give_up_unreadable` pages that the device cannot read are damaged.
pub(crate) fn repair(
    place: &Place,
    give_up_unreadable: bool,
    listener: Arc<dyn RepairListener>,
) -> Result<RepairReport> {
    refuse_missing(&place.db)?;
    let (vfs, options) = (Arc::new(PosixVfs::new()), options(place)?);
    let how = RepairOptions { give_up_unreadable, listener: Some(listener) };
    sateen::repair_as(vfs, &place.db, &options, &[], &how).map_err(|error| {
        if let sateen::Error::Cancelled(_) = error {
            return Failure::interrupted("the repair was interrupted; it changed nothing");
        }
        let advice = advice(&error, give_up_unreadable);
        refused(error, advice)
    })
}

/// The failure for an error of a check or a repair, with advice.
fn refused(error: sateen::Error, advice: &str) -> Failure {
    // A file where a directory is expected is a mistake of the user, not an unreadable database.
    let not_directory = matches!(&error, sateen::Error::Io { source, .. }
        if source.kind() == std::io::ErrorKind::NotADirectory);
    if not_directory || !error.is_environment() {
        return error.into();
    }
    Failure::unreadable(format!("{error}{advice}"))
}

/// Advice for an error of the environment that ended a repair.
fn advice(error: &sateen::Error, give_up_unreadable: bool) -> &'static str {
    let sateen::Error::Io { source, .. } = error else { return "" };
    match Errno::from_io_error(source) {
        Some(Errno::MFILE | Errno::NFILE) => {
            "; the repair changed nothing. Allow more open files (ulimit -n), then repair again"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "; the repair changed nothing. Repair as the user who may read and write the files"
        }
        _ if error.is_device_failure() && give_up_unreadable => {
            "; the repair changed nothing. The device cannot open this file: move it out of the \
             directory, then repair again"
        }
        _ if error.is_device_failure() => {
            "; the repair changed nothing. Copy the directory to a healthy device (ddrescue copies \
             the readable part of a file) and repair the copy, or give up the unreadable part with \
             --give-up-unreadable"
        }
        _ => "; the repair changed nothing",
    }
}
