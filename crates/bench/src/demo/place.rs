//! The files of the demo: a temporary directory for the databases, and the report, which stays.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use sateen::vfs::{PosixVfs, Vfs};
use tempfile::TempDir;

use super::DemoArgs;
use crate::{Error, Result, units};

/// The largest size of the larger of the two databases, its compactions included.
pub(super) const SPACE_BYTES: u64 = 1_500_000_000;

/// The demo's directories.
#[derive(Debug)]
pub(super) struct Place {
    /// The directory of the databases, removed on drop.
    databases: TempDir,
    /// The directory of the report, if the user named no place for it. It is removed unless the
    /// report is kept.
    folder: Option<TempDir>,
    report: PathBuf,
    direct: bool,
}

impl Place {
    /// Makes the directories.
    ///
    /// # Errors
    /// If a directory cannot be written or has too little space. The text says what to do.
    pub(super) fn find(args: &DemoArgs) -> Result<Place> {
        let home = args.db.clone().unwrap_or_else(std::env::temp_dir);
        let (folder, report) = report_place(args)?;
        let databases = new_directory(&home, "--db")?;
        check_space(&home, PosixVfs::new().free_space(databases.path())?)?;
        let direct = has_direct_io(databases.path());
        Ok(Place { databases, folder, report, direct })
    }

    /// Returns the directory of one engine's database.
    pub(super) fn database(&self, engine: &str) -> PathBuf {
        self.databases.path().join(engine)
    }

    /// Returns the directory of all databases.
    pub(super) fn databases(&self) -> &Path {
        self.databases.path()
    }

    /// True if the file system has direct I/O.
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Returns the file of the report.
    pub(super) fn report(&self) -> &Path {
        &self.report
    }

    /// Removes the databases and keeps the report; returns its name.
    pub(super) fn keep_report(self) -> PathBuf {
        if let Some(folder) = self.folder {
            let _kept = folder.keep();
        }
        self.report
    }
}

/// Makes a new directory in `home`. Errors name `option`, by which the user can change it.
fn new_directory(home: &Path, option: &str) -> Result<TempDir> {
    tempfile::Builder::new().prefix("sateen-demo-").tempdir_in(home).map_err(|error| {
        let why = error.raw_os_error().map(std::io::Error::from_raw_os_error).unwrap_or(error);
        Error::Failed(format!(
            "{}: cannot make a directory here: {why}. Name one that can be written with {option}, \
             or set TMPDIR",
            home.display()
        ))
    })
}

/// Returns the place of the report, by default a new directory that is removed unless it is kept.
/// The report must be writable before minutes are spent on measuring.
fn report_place(args: &DemoArgs) -> Result<(Option<TempDir>, PathBuf)> {
    let Some(html) = &args.html else {
        let folder = new_directory(&std::env::temp_dir(), "--db and --html")?;
        let report = folder.path().join("report.html");
        return Ok((Some(folder), report));
    };
    let new = !html.exists();
    let opened = OpenOptions::new().append(true).create(true).open(html);
    opened.map_err(|error| Error::file(html, error))?;
    if new {
        std::fs::remove_file(html).map_err(|error| Error::file(html, error))?;
    }
    Ok((None, html.clone()))
}

fn check_space(home: &Path, free: u64) -> Result<()> {
    if free >= SPACE_BYTES {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{}: {} are free and the demo needs {} for a while. Name a directory with more space with \
         --db DIR",
        home.display(),
        units::bytes(free),
        units::bytes(SPACE_BYTES)
    )))
}

/// Returns true if a direct open works. File systems in memory may not support it.
fn has_direct_io(directory: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let path = directory.join("direct");
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    // The file may exist even if the open failed.
    let _ = std::fs::remove_file(&path);
    opened.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::demo_args;

    #[test]
    fn nothing_is_left_but_a_report_that_was_kept() {
        let home = tempfile::tempdir().unwrap();
        let html = home.path().join("out.html");
        let args =
            DemoArgs { db: Some(home.path().to_owned()), html: Some(html.clone()), ..demo_args() };
        let place = Place::find(&args).unwrap();
        assert!(!html.exists(), "only tried");
        let databases = place.databases().to_owned();
        assert!(databases.starts_with(home.path()) && databases.is_dir());
        std::fs::create_dir_all(place.database("sateen")).unwrap();
        assert_eq!(place.keep_report(), html);
        assert!(!databases.exists());

        let args = DemoArgs { html: None, ..args };
        let place = Place::find(&args).unwrap();
        let folder = place.report().parent().unwrap().to_owned();
        assert!(folder.starts_with(std::env::temp_dir()) && folder.is_dir());
        drop(place);
        assert!(!folder.exists(), "without a report nothing is left");
    }

    #[test]
    fn a_place_that_will_not_do_is_named_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let error = check_space(home.path(), 300_000_000).unwrap_err().to_string();
        for part in [home.path().to_str().unwrap(), "300 MB", "1.50 GB", "--db"] {
            assert!(error.contains(part), "{error}");
        }
        check_space(home.path(), SPACE_BYTES).unwrap();
        // Not even root may write there.
        let args = DemoArgs { db: Some("/proc".into()), ..demo_args() };
        let error = Place::find(&args).unwrap_err().to_string();
        assert!(error.contains("/proc: cannot make a directory") && error.contains("--db"));
        let missing = home.path().join("missing/report.html");
        let args = DemoArgs { html: Some(missing), ..demo_args() };
        assert!(Place::find(&args).unwrap_err().to_string().contains("missing/report.html"));
    }
}
