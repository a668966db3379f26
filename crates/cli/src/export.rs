//! `db export` writes records into a file, as text that `db load` reads.
//!
//! Invariant: the file appears under its name when it is complete and durable. Until then it has
//! another name beside it, which is removed if the export fails or is interrupted. Whoever writes
//! it has it locked.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sateen::shown_path;
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::progress::Progress;
use crate::records::Export;
use crate::scan::{self, Printed};
use crate::store;
use crate::text::Format;

pub(crate) fn run(export: &Export, json: bool, output: &mut dyn Write) -> Result<()> {
    let Export { scan, file, overwrite } = export;
    let Some(format) = scan.format.or(Format::of_name(&file.to_string_lossy())) else {
        let name = shown_path(file);
        let text = "unknown extension: give --format tsv, csv or jsonl";
        return Err(Failure::usage(format!("{name}: {text}")));
    };
    if !overwrite && file.try_exists().map_err(|error| Failure::file(file, &error))? {
        let name = shown_path(file);
        return Err(Failure::failed(format!("{name}: exists; --overwrite replaces it")));
    }
    store::refuse_inside(file)?;
    let interrupted = interrupt::watch()?;
    let began = Instant::now();
    let mut draft = Draft::begin(file)?;
    let progress = Progress::bytes("exporting", None);
    let done = scan::records(scan, format, &mut draft.output, progress, &interrupted);
    let (printed, moments) = match done {
        Ok((Ok(printed), moments)) => (printed, moments),
        Ok((Err(failure), _)) | Err(failure) => return Err(draft.failed(failure)),
    };
    draft.publish()?;
    if moments > 1 {
        scan::tell(moments, json);
    }
    let Printed { records, bytes } = printed;
    let seconds = began.elapsed().as_secs_f64();
    if json {
        let summary = json!({ "records": records, "bytes": bytes, "seconds": seconds });
        return Ok(writeln!(output, "{summary}")?);
    }
    let mib = bytes as f64 / f64::from(1 << 20);
    Ok(writeln!(output, "exported {records} records, {mib:.1} MiB, in {seconds:.1} s")?)
}

/// A file that is being written under another name. Dropping it removes it.
struct Draft<'a> {
    file: &'a Path,
    path: PathBuf,
    output: File,
    published: bool,
}

impl Draft<'_> {
    fn begin(file: &Path) -> Result<Draft<'_>> {
        let mut path = OsString::from(file);
        path.push(".exporting");
        let path = PathBuf::from(path);
        let failed = |error: &io::Error| Failure::file(&path, error);
        let output = loop {
            let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
            let output = opened.map_err(|error| failed(&error))?;
            match output.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let name = shown_path(file);
                    return Err(Failure::failed(format!("{name}: an export to it is under way")));
                }
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
            // The export that had it may have ended before it was locked. What a killed one left is
            // written anew.
            if is_at(&output, &path).map_err(|error| failed(&error))? {
                output.set_len(0).map_err(|error| failed(&error))?;
                break output;
            }
        };
        Ok(Draft { file, path, output, published: false })
    }

    /// Gives the file its name, durably.
    fn publish(mut self) -> Result<()> {
        let _spinner = Progress::spinner("storing");
        self.output.sync_all().map_err(|error| Failure::file(&self.path, &error))?;
        fs::rename(&self.path, self.file).map_err(|error| Failure::file(self.file, &error))?;
        self.published = true;
        let directory = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| Failure::file(directory, &error))
    }

    /// Returns the failure of an export, which says that there is no file.
    fn failed(self, failure: Failure) -> Failure {
        let name = shown_path(self.file);
        let message = format!("{}\n{name} was not written", failure.message);
        Failure { message, quiet: false, ..failure }
    }
}

/// Returns true if `path` names the open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published {
            // A failure of the removal would hide the one that led to it.
            let _gone = fs::remove_file(&self.path);
        }
    }
}
