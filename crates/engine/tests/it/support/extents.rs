//! What the manifest says is where in a directory, read from the bytes there: the engine's own idea
//! of what it may give back is not asked.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use sateen::dump::{ManifestItem, Placement, manifest_with};
use sateen::vfs::{IoClass, OpenOptions, Vfs};

/// Where tables are, by file.
pub(crate) type Extents = BTreeMap<PathBuf, Vec<Range<usize>>>;

pub(crate) const PAGE: usize = 4096;

/// What a manifest names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    pub(crate) extents: Extents,
    /// Files that share their bytes with a checkpoint, or did.
    pub(crate) shared: BTreeSet<PathBuf>,
    /// Files that have values of tables beside a log.
    pub(crate) values: BTreeSet<PathBuf>,
}

/// All bytes of a file; `None` if it is not there.
pub(crate) fn contents(vfs: &dyn Vfs, path: &Path) -> Option<Vec<u8>> {
    let file = vfs.open(path, OpenOptions::READ).ok()?;
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0, IoClass::Client).unwrap();
    Some(bytes)
}

/// The manifest that is current in `directory`, if there is one.
pub(crate) fn current_manifest(vfs: &dyn Vfs, directory: &Path) -> Option<PathBuf> {
    let current = String::from_utf8(contents(vfs, &directory.join("CURRENT"))?).unwrap();
    let number = current.lines().find_map(|line| line.strip_prefix("manifest ")).unwrap();
    Some(directory.join(format!("MANIFEST-{:06}", number.parse::<u64>().unwrap())))
}

/// What the current manifest of `directory` names; nothing before there is one.
pub(crate) fn named(vfs: &dyn Vfs, directory: &Path) -> Named {
    let (named, read) = named_so_far(vfs, directory);
    read.unwrap();
    named
}

/// The same of a manifest that a crash may have torn: what stands before that, and whether it is.
fn named_so_far(vfs: &dyn Vfs, directory: &Path) -> (Named, sateen::Result<()>) {
    let mut named = Named::default();
    let Some(manifest) = current_manifest(vfs, directory) else { return (named, Ok(())) };
    let path_of = |number: u64| directory.join(format!("{number:06}.sat"));
    let mut tables = BTreeMap::new();
    let read = manifest_with(vfs, &manifest, &mut |item| {
        if let ManifestItem::Edit(edit) = item {
            for removed in &edit.removed {
                tables.remove(&removed.id);
            }
            for added in &edit.added {
                tables.insert(added.table.id, (edit.column_family, added.table.clone()));
            }
            if edit.drop {
                tables.retain(|_, (family, _)| *family != edit.column_family);
            }
            named.shared.extend(edit.shared_files.iter().map(|file| path_of(file.0)));
        }
        ControlFlow::Continue(())
    });
    for (_, table) in tables.into_values() {
        let placement = table.placement;
        let (Placement::Slice { file, offset, length }
        | Placement::Log { file, offset, length, .. }) = placement
        else {
            panic!("{placement:?}")
        };
        // A log may still be written to behind its values, and where those in value files are is
        // known to tables alone: that the files are there is what is looked at.
        let apart = table.values.files.iter().map(|one| one.file);
        for values in placement.values().into_iter().chain(apart) {
            named.extents.entry(path_of(values.0)).or_default().push(0..64);
            named.values.insert(path_of(values.0));
        }
        let offset = usize::try_from(offset).unwrap();
        let range = offset..offset + usize::try_from(length).unwrap();
        named.extents.entry(path_of(file.0)).or_default().push(range);
    }
    (named, read)
}

/// Where tables are, as far as the manifest goes.
pub(crate) fn tables_of(vfs: &dyn Vfs, directory: &Path) -> Extents {
    named_so_far(vfs, directory).0.extents
}

/// Where the directory of a file of tables begins, as its footer says.
pub(crate) fn directory_begins(contents: &[u8]) -> usize {
    let footer = &contents[contents.len() - 64..];
    assert_eq!(&footer[56..], b"SATend\n\0", "the end of a file of tables");
    usize::try_from(u64::from_le_bytes(footer[..8].try_into().unwrap())).unwrap()
}

/// Bytes that the files of tables take beyond what their tables do.
pub(crate) fn wasted_bytes(vfs: &dyn Vfs, directory: &Path) -> u64 {
    wasted(vfs, directory).into_values().sum()
}

/// The same by file, headers and directories left out, and files that share their bytes with a
/// checkpoint.
pub(crate) fn wasted(vfs: &dyn Vfs, directory: &Path) -> BTreeMap<PathBuf, u64> {
    let named = named(vfs, directory);
    let mut wasted = BTreeMap::new();
    for name in vfs.list(directory).unwrap() {
        let path = directory.join(&name);
        let is_table = path.extension().is_some_and(|extension| extension == "sat");
        if !is_table || named.shared.contains(&path) || named.values.contains(&path) {
            continue;
        }
        let mut contents = contents(vfs, &path).unwrap();
        let end = directory_begins(&contents);
        // A file that holds nothing is wasted whole.
        for range in named.extents.get(&path).into_iter().flatten() {
            contents[range.start..range.end.next_multiple_of(PAGE)].fill(0);
        }
        let pages = contents[PAGE.min(end)..end].chunks(PAGE);
        let taken = pages.filter(|page| page.iter().any(|byte| *byte != 0)).count();
        wasted.insert(path, (taken * PAGE) as u64);
    }
    wasted
}
