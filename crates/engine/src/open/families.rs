//! Gives the column families of the manifest their engine side: options, comparator, memtables and
//! regions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sateen_control::version::Version;
use sateen_control::{ColumnFamilyId, Comparator, Epoch};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::shown_path;

use super::Opening;
use crate::options::{
    ColumnFamilyOptions, CompactionStyle, DEFAULT_COLUMN_FAMILY, Options, Regions, control,
};
use crate::tree::families::{ColumnFamilyData, PREPARED};
use crate::tree::version_set::{FamilyState, FindComparator};

impl Opening {
    /// Creates the engine side of every column family. Fails if the options contradict what the
    /// family was created with.
    pub(super) fn attach_families(
        &mut self,
        family_options: &[(&str, ColumnFamilyOptions)],
    ) -> Result<()> {
        let states = self.versions.families();
        let of_prepared = ColumnFamilyOptions::default();
        let path = self.directory.join("CURRENT");
        let forms = self.forms(&states)?;
        let mut regions: BTreeMap<ColumnFamilyId, Vec<Arc<ColumnFamilyData>>> = BTreeMap::new();
        for (id, state) in &states {
            let of = state.region.as_ref().map(|region| region.of);
            // A region has the options of the column family that it belongs to.
            let whole = states.get(&of.unwrap_or(*id)).ok_or_else(|| {
                let what = "a region of a column family that does not exist";
                Error::corruption(&path, 0, CorruptionKind::Inconsistent(what))
            })?;
            let own = family_options.iter().find(|(name, _)| *name == whole.name);
            let options = match own {
                Some((_, options)) => options,
                None if whole.name == PREPARED => &of_prepared,
                None => &self.options.column_family,
            };
            let begins = region_begins(&states, of.unwrap_or(*id));
            // The options of the default family apply to families without options of their own, so
            // only the default family's regions are checked against them.
            if of.is_none() && (own.is_some() || *id == ColumnFamilyId(0)) {
                check_regions(&whole.name, options, &begins)?;
            }
            if !self.read_only {
                check_style(&self.directory, &whole.name, options, &state.version)?;
            }
            let wanted = ColumnFamilyOptions {
                regions: Regions::at(begins)?,
                comparator: state.version.comparator().clone(),
                ..options.clone()
            };
            let is_named = own.is_some() || whole.name == DEFAULT_COLUMN_FAMILY;
            let form = forms.get(&of.unwrap_or(*id)).copied();
            let options = self.in_form(&whole.name, &state.version, &wanted, form, is_named)?;
            let told = control::column_family(&self.options, &options);
            let version = self.versions.resize(*id, &told, self.read_only)?;
            let version = version.unwrap_or_else(|| state.version.clone());
            let (name, region) = (state.name.clone(), state.region.clone());
            let pool = self.pool.clone();
            let data = Arc::new(ColumnFamilyData::new(*id, name, region, options, version, pool));
            self.versions.attach(&data);
            if let Some(of) = of {
                regions.entry(of).or_default().push(data.clone());
            }
            self.families.insert(*id, data);
        }
        for data in self.families.values().filter(|data| data.region().is_none()) {
            data.set_regions(regions.remove(&data.id()).unwrap_or_default());
        }
        Ok(())
    }
}

/// Returns a finder for comparators in these options. A family without options of its own has the
/// options' comparator if its recorded name matches, and otherwise the bytewise one.
pub(crate) fn comparators(
    options: &Options,
    family_options: &[(&str, ColumnFamilyOptions)],
) -> FindComparator {
    let of_others = options.column_family.comparator.clone();
    let own = family_options.iter().map(|(name, options)| {
        let comparator = options.comparator.clone();
        ((*name).to_owned(), comparator)
    });
    let own: BTreeMap<String, Comparator> = own.collect();
    Arc::new(move |name, recorded| {
        let known = own.get(name);
        let wanted = known.unwrap_or(&of_others);
        if wanted.name() == recorded {
            return Ok(wanted.clone());
        }
        let by_bytes = recorded == Comparator::BYTEWISE_NAME;
        if known.is_none() && name != DEFAULT_COLUMN_FAMILY && by_bytes {
            return Ok(Comparator::BYTEWISE);
        }
        Err(Error::InvalidArgument(format!(
            "comparator={}: keys of the column family {name} are compared by {recorded}",
            wanted.name()
        )))
    })
}

/// Returns the keys at which the regions of a column family begin, ascending.
fn region_begins(
    families: &BTreeMap<ColumnFamilyId, FamilyState>,
    of: ColumnFamilyId,
) -> Vec<Vec<u8>> {
    let regions = families.values().filter_map(|family| family.region.as_ref());
    let own = regions.filter(|region| region.of == of);
    let mut begins: Vec<_> = own.map(|region| region.begin.bytes().to_vec()).collect();
    begins.sort_unstable();
    begins
}

/// Checks that the compaction style of the options can go on from `version`, which another style
/// may have made. A database from before styles were recorded names none.
fn check_style(
    directory: &Path,
    name: &str,
    options: &ColumnFamilyOptions,
    version: &Version,
) -> Result<()> {
    let wanted = options.compaction_style.to_string();
    let made_with = version.style().unwrap_or(&wanted);
    if made_with == wanted {
        return Ok(());
    }
    if CompactionStyle::from_name(made_with).is_none() {
        return Err(Error::InvalidArgument(format!(
            "compaction_style={wanted}: the column family {name} was created with {made_with}"
        )));
    }
    let style = options.compaction_style;
    if !style.admits_all(version) && !style.policy().admits(1, Epoch(0)) {
        return Err(Error::InvalidArgument(format!(
            "compaction_style={wanted}: the column family {name} has tables below level 0, where \
             this style keeps none; open it with compaction_style={made_with}"
        )));
    }
    if !style.admits_all(version) {
        return Err(Error::InvalidArgument(format!(
            "compaction_style={wanted}: the column family {name} has levels of several runs; \
             compact it first: sateen db compact '{}' --cf '{name}' --set \
             compaction_style={made_with}",
            shown_path(directory)
        )));
    }
    Ok(())
}

/// Fails if the options want other regions than the column family has. Options without regions
/// accept any.
fn check_regions(name: &str, options: &ColumnFamilyOptions, begins: &[Vec<u8>]) -> Result<()> {
    let wanted = options.regions.begins();
    if wanted.is_empty() || wanted == begins {
        return Ok(());
    }
    let regions = match begins.len() + 1 {
        1 => "one region".to_owned(),
        regions => format!("{regions} regions"),
    };
    Err(Error::InvalidArgument(format!(
        "regions={}: the column family {name} was created with {regions}, and its regions cannot \
         change",
        options.get("regions")?
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_compaction_style_is_named() {
        let options = ColumnFamilyOptions::default();
        let version = Version::new(ColumnFamilyId(1), 7);
        let made_with = |style: &str| version.clone().with_style(style.to_owned());
        let check = |version: &Version| check_style(Path::new("/db"), "c", &options, version);
        check(&version).unwrap();
        check(&made_with("leveled")).unwrap();
        check(&made_with("guards")).unwrap();
        let text = check(&made_with("tiers")).unwrap_err().to_string();
        assert!(text.contains("column family c was created with tiers"), "{text}");
    }
}
