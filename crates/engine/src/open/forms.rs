//! The form of stored values: whether they have the times of their writes, which `ttl` needs.
//!
//! 1. [`Opening::forms`] returns the form of each column family. The manifest has it. For a
//!    manifest of an older version, the stored options say with what the column family was opened
//!    last.
//! 2. [`Opening::in_form`] returns options that fit the form, with which the WALs are replayed. It
//!    refuses options that contradict it, unless there is no table.
//! 3. After the replay [`Opening::change_forms`] changes the form of those column families whose
//!    options want another one and that are empty. The others are refused. Readers of the WAL find
//!    no older WALs then: nothing would tell them in which form the values in these are.
//!
//! What must stay true: a value is never read, and never written beside others, in another form
//! than it was stored in. Otherwise four bytes of it are taken for a time, or its time for a part
//! of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sateen_control::ColumnFamilyId;
use sateen_control::version::Version;
use sateen_store::base::error::{Error, Result};
use sateen_store::vfs::Vfs;

use super::Opening;
use super::catalogue::recorded_forms;
use crate::options::{ColumnFamilyOptions, Options};
use crate::tree::families::PREPARED;
use crate::tree::version_set::FamilyState;

/// A column family and the `ttl` of its stored options.
type StoredTtls = BTreeMap<String, Option<Duration>>;

impl Opening {
    /// Returns, for each column family, whether its values have times. Those of which nothing says
    /// it are left out.
    pub(super) fn forms(
        &self,
        families: &BTreeMap<ColumnFamilyId, FamilyState>,
    ) -> Result<BTreeMap<ColumnFamilyId, bool>> {
        let whole = || families.iter().filter(|(_, family)| family.region.is_none());
        let recorded = |family: &FamilyState| match family.name.as_str() {
            PREPARED => Some(false),
            _ => family.version.value_times(),
        };
        let all_recorded = whole().all(|(_, family)| recorded(family).is_some());
        let stored = if all_recorded {
            StoredTtls::new()
        } else {
            stored_ttls(self.vfs.as_ref(), &self.directory)?
        };
        let form = |family: &FamilyState| {
            recorded(family).or_else(|| stored.get(&family.name).map(Option::is_some))
        };
        Ok(whole().filter_map(|(id, family)| Some((*id, form(family)?))).collect())
    }

    /// Returns options for a tree of the column family `name`: those that are `wanted`, with a
    /// `ttl` that fits the form of its values. A form that nothing knows is the one that is
    /// wanted. A column family that the caller did not name (`is_named`) keeps its form, whatever
    /// the options for it say.
    pub(super) fn in_form(
        &mut self,
        name: &str,
        version: &Version,
        wanted: &ColumnFamilyOptions,
        form: Option<bool>,
        is_named: bool,
    ) -> Result<ColumnFamilyOptions> {
        let form = form.unwrap_or(wanted.ttl.is_some());
        let id = version.column_family();
        self.versions.record_value_times(id, form);
        if form == wanted.ttl.is_some() {
            return Ok(wanted.clone());
        }
        if is_named {
            if !is_empty(version) {
                return Err(refused(name, wanted));
            }
            self.reformed.insert(id, wanted.clone());
        }
        Ok(ColumnFamilyOptions { ttl: form.then_some(Duration::ZERO), ..wanted.clone() })
    }

    /// Changes the form of the column families whose options want another one. Fails if one of
    /// them has values after all, which were in the WALs.
    pub(super) fn change_forms(&mut self) -> Result<()> {
        let reformed = std::mem::take(&mut self.reformed);
        for (id, wanted) in &reformed {
            let Some(data) = self.families.get(id) else { continue };
            let written = self.replayed_edits.get(id);
            let has_tables = written
                .is_some_and(|edit| !edit.added.is_empty() || !edit.range_tombstones.is_empty());
            if has_tables || !data.active_memtable().is_empty() {
                let whole = self.families.get(&data.whole()).unwrap_or(data);
                let error = refused(whole.name(), wanted);
                self.remove_written();
                return Err(error);
            }
        }
        self.has_changed_forms = !reformed.is_empty();
        for (id, wanted) in reformed {
            let Some(data) = self.families.get(&id) else { continue };
            let edit = self.replayed_edits.entry(id).or_default();
            edit.value_times = Some(wanted.ttl.is_some());
            data.change_form(wanted);
        }
        Ok(())
    }

    /// Fails if the options want another form for a column family, even if that is empty.
    pub(super) fn refuse_changed_forms(&self) -> Result<()> {
        let Some((id, wanted)) = self.reformed.first_key_value() else { return Ok(()) };
        let data = self.families.get(id).and_then(|data| self.families.get(&data.whole()));
        Err(refused(data.map_or("", |data| data.name()), wanted))
    }
}

/// Returns true if a version has nothing that a later replay would not bring.
fn is_empty(version: &Version) -> bool {
    version.tables().next().is_none() && version.range_tombstones().is_empty()
}

/// Returns the error for options that want another form of values.
fn refused(name: &str, wanted: &ColumnFamilyOptions) -> Error {
    let ttl = wanted.get("ttl").unwrap_or_default();
    let why = match wanted.ttl {
        Some(_) => "without the times of their writes; open it with ttl=none",
        None => "with the times of their writes; open it with a ttl (0s: they never expire)",
    };
    let text = format!("ttl={ttl}: the values of the column family {name} are stored {why}");
    Error::InvalidArgument(text)
}

/// Returns the `ttl` of each column family in the stored options. There are none if the file is
/// missing or damaged.
fn stored_ttls(vfs: &dyn Vfs, directory: &Path) -> Result<StoredTtls> {
    let stored = Options::load_if_sound(vfs, directory)?;
    let families = stored.into_iter().flat_map(|stored| stored.families);
    Ok(families.map(|(name, options)| (name, options.ttl)).collect())
}

/// Returns the column families of a database in the order of their creation, each with the `ttl`
/// that fits its values.
pub(crate) fn fitting_ttls(
    vfs: &dyn Vfs,
    directory: &Path,
) -> Result<Vec<(String, Option<Duration>)>> {
    let stored = stored_ttls(vfs, directory)?;
    let fitting = |(name, form): (String, Option<bool>)| {
        let opened_with = stored.get(&name).copied().flatten();
        let ttl = match form {
            Some(true) => Some(opened_with.unwrap_or(Duration::ZERO)),
            Some(false) => None,
            None => opened_with,
        };
        (name, ttl)
    };
    let mut failed = None;
    loop {
        match recorded_forms(vfs, directory) {
            Ok(recorded) => return Ok(recorded.into_iter().map(fitting).collect()),
            // A writer may have replaced the manifest. The same failure twice is damage.
            Err(error)
                if error.may_be_given_up() && failed.as_ref() != Some(&error.to_string()) =>
            {
                failed = Some(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
}
