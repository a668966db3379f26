//! Verbs on a whole column family, or on a range of its keys.

use std::ffi::OsStr;
use std::io::Write;

use sateen::{DEFAULT_COLUMN_FAMILY, WriteOptions, shown};
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::key::argument_bytes;
use crate::place::{Family, Place};
use crate::store::{self, Access};
use crate::text::Encoding;

/// Creates a column family with the options of the command line.
pub(crate) fn create(place: &Place, name: &str) -> Result<()> {
    let options = store::options(place)?.column_family;
    let db = store::open_for(place, Access::Write, Some(name))?;
    db.create_column_family(name, options)?;
    Ok(db.close()?)
}

/// Drops a column family with all its records, if the user says `yes`.
pub(crate) fn drop(place: &Place, name: &str, yes: bool) -> Result<()> {
    if name == DEFAULT_COLUMN_FAMILY {
        return Err(Failure::usage("the column family default cannot be dropped"));
    }
    if !yes {
        let text = format!("this removes all records of {}; --yes confirms it", shown(name));
        return Err(Failure::usage(text));
    }
    let family = Family { place: place.clone(), cf: name.to_owned() };
    let (db, family) = store::open_family(&family, Access::Write, false)?;
    db.drop_column_family(&family)?;
    std::mem::drop(family);
    Ok(db.close()?)
}

/// Deletes the keys from `from` up to, not including, `to`.
pub(crate) fn delete_range(
    family: &Family,
    (from, to): (&OsStr, &OsStr),
    encoding: Encoding,
    sync: bool,
) -> Result<()> {
    let (from, to) = (argument_bytes(from, encoding)?, argument_bytes(to, encoding)?);
    let (db, family) = store::open_family(family, Access::Write, false)?;
    let options = WriteOptions { sync, ..WriteOptions::default() };
    family.writing(&options).delete_range(&from, &to)?;
    Ok(db.close()?)
}

/// Prints about how many bytes of tables the keys from `from` up to `to` have.
pub(crate) fn size(
    family: &Family,
    (from, to): (&OsStr, &OsStr),
    encoding: Encoding,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    let (from, to) = (argument_bytes(from, encoding)?, argument_bytes(to, encoding)?);
    let (_, family) = store::open_family(family, Access::Read, false)?;
    let bytes = family.approximate_size(&from, &to);
    match json {
        true => Ok(writeln!(output, "{}", json!({ "bytes": bytes }))?),
        false => Ok(writeln!(output, "{bytes}")?),
    }
}
