//! The options that a database was opened with last, as its directory has them: the text of the
//! file OPTIONS, and back.
//!
//! What must stay true: what was written comes back, but for what is no text (operators, filters,
//! caches), of which only the name is kept; text that is damaged, or that this version does not
//! understand, is refused by name and never taken in part.

use std::path::Path;

use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::names::{shown, shown_path};
use sateen_store::base::prefix::Prefixing;
use sateen_store::files::{FileName, checked_text, options_file};
use sateen_store::vfs::{PosixVfs, Vfs};

use super::choices::ComparatorText;
use super::paths::check_named;
use super::text::Unit;
use super::{ColumnFamilyOptions, OptionInfo, Options};
use crate::options::DEFAULT_COLUMN_FAMILY;

const FIRST_LINE: &str = "sateen options 1";
const DATABASE: &str = "[database]";
const FAMILY: &str = "[column family] ";

/// The options that [`Options::load`] finds. Objects have no text form: `merge_operator`,
/// `compaction_filter`, a `comparator` or `prefix_extractor` of the caller's, caches and the like
/// have their defaults. Set them again.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredOptions {
    /// The options of the database; their `column_family` is that of the default one.
    pub options: Options,
    /// The names and options of all column families, the default one first, then by name.
    pub families: Vec<(String, ColumnFamilyOptions)>,
    /// The objects that were set and are not in the options: the column family, the field, and the
    /// object's name.
    pub named: Vec<(String, String, String)>,
}

impl Options {
    /// The options that the database in the directory `path` was opened with last, as they were
    /// changed since. It may be open meanwhile.
    ///
    /// ```
    /// use sateen::{Db, Options};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// let mut options = Options::default();
    /// options.set("level0_trigger", "7")?;
    /// Db::open(path, options.clone())?.close()?;
    /// assert_eq!(Options::load(path)?.options, options);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the directory has none: it is no database, or one that no version with
    /// stored options has opened. `Corruption` if the file is damaged, `IncompatibleDirectory` if
    /// it is of a newer format, `InvalidArgument` if there is an option that this version does not
    /// know.
    pub fn load(path: impl AsRef<Path>) -> Result<StoredOptions> {
        Options::load_with(&PosixVfs::new(), path, false)
    }

    /// [`Options::load`] in a file system of the caller's; with `ignore_unknown` options that this
    /// version does not know, or whose values it does not take, are passed over.
    ///
    /// # Errors
    /// As [`Options::load`].
    pub fn load_with(
        vfs: &dyn Vfs,
        path: impl AsRef<Path>,
        ignore_unknown: bool,
    ) -> Result<StoredOptions> {
        let directory = path.as_ref();
        check_named("the database", directory)?;
        let path = FileName::Options.path(directory);
        let Some(bytes) = options_file::read(vfs, directory)? else {
            let directory = shown_path(directory);
            let text = format!("{directory} has no stored options: there is no file OPTIONS");
            return Err(Error::InvalidArgument(text));
        };
        let Some(text) = checked_text::unseal(&bytes) else {
            return Err(Error::corruption(&path, 0, CorruptionKind::Checksum));
        };
        let Some(rest) = text.strip_prefix(FIRST_LINE).and_then(|rest| rest.strip_prefix('\n'))
        else {
            let kind = CorruptionKind::Malformed("the first line");
            return Err(match checked_text::newer(text, FIRST_LINE) {
                Some(reason) => Error::IncompatibleDirectory { path, reason },
                None => Error::corruption(&path, 0, kind),
            });
        };
        StoredOptions::parse(rest, ignore_unknown)
            .map_err(|error| Error::InvalidArgument(format!("{}: {error}", shown_path(path))))
    }

    /// Returns the stored options as far as this version knows them; `None` if there are none, or
    /// if the file is damaged. Fails if it cannot be read: that does not mean that there are none.
    pub(crate) fn load_if_sound(vfs: &dyn Vfs, path: &Path) -> Result<Option<StoredOptions>> {
        match Options::load_with(vfs, path, true) {
            Ok(stored) => Ok(Some(stored)),
            Err(error @ Error::Io { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

impl StoredOptions {
    /// The text of the file, with its checksum. The default column family comes first.
    pub(crate) fn text<'a>(
        options: &Options,
        families: impl Iterator<Item = (&'a str, &'a ColumnFamilyOptions)>,
    ) -> String {
        let mut text = format!("{FIRST_LINE}\n{DATABASE}\n");
        for info in Options::INFO {
            text.extend([info.name, " = ", &options.get_field(info), "\n"]);
        }
        for (name, options) in families {
            text.push_str(&format!("{FAMILY}{}\n", escaped(name)));
            let named = named(options);
            let is_text = |info: &&OptionInfo| named.iter().all(|(field, _)| *field != info.name);
            for info in ColumnFamilyOptions::INFO.iter().filter(is_text) {
                text.extend([info.name, " = ", &options.get_field(info), "\n"]);
            }
            for (field, name) in named {
                text.push_str(&format!("{field} is {}\n", escaped(&name)));
            }
        }
        checked_text::seal(&text)
    }

    /// Returns the options in what [`StoredOptions::text`] returned.
    pub(crate) fn from_text(bytes: &[u8]) -> Result<StoredOptions> {
        let text = checked_text::unseal(bytes);
        let rest = text.and_then(|text| text.strip_prefix(FIRST_LINE)?.strip_prefix('\n'));
        let Some(rest) = rest else {
            return Err(Error::InvalidArgument("the stored options are malformed".into()));
        };
        StoredOptions::parse(rest, false)
    }

    /// Returns the options with those operators, filters and comparators of `objects` whose names
    /// are stored. Fails if one is not among them.
    pub(crate) fn with_objects(self, objects: &ColumnFamilyOptions) -> Result<Options> {
        let mut options = self.options;
        let own = named(objects);
        for (_, field, name) in &self.named {
            if !own.iter().any(|(own, by)| own == field && by == name) {
                let name = shown(name);
                let text = format!("the database has the {field} {name}, which has to be set here");
                return Err(Error::InvalidArgument(text));
            }
            let (family, objects) = (&mut options.column_family, objects.clone());
            match field.as_str() {
                "merge_operator" => family.merge_operator = objects.merge_operator,
                "compaction_filter" => family.compaction_filter = objects.compaction_filter,
                "comparator" => family.comparator = objects.comparator,
                _ => family.prefix_extractor = objects.prefix_extractor,
            }
        }
        Ok(options)
    }

    fn parse(text: &str, ignore_unknown: bool) -> Result<StoredOptions> {
        let mut stored =
            StoredOptions { options: Options::default(), families: Vec::new(), named: Vec::new() };
        for line in text.lines().filter(|line| *line != DATABASE) {
            if let Some(name) = line.strip_prefix(FAMILY) {
                stored.families.push((unescaped(name)?, ColumnFamilyOptions::default()));
                continue;
            }
            // A name may be anything, also what looks like a value.
            let named = line.split_once(" is ").filter(|(field, _)| NAMED.contains(field));
            if let (Some((field, name)), Some((family, _))) = (named, stored.families.last()) {
                stored.named.push((family.clone(), field.to_owned(), unescaped(name)?));
            } else if let Some((name, value)) = line.split_once(" = ") {
                let set = match stored.families.last_mut() {
                    // As files name it that were written before "is" did.
                    Some((of, _)) if name == "comparator" && is_custom(value) => {
                        stored.named.push((of.clone(), name.to_owned(), value.to_owned()));
                        continue;
                    }
                    Some((_, family)) => family.set(name, value),
                    None => stored.options.set(name, value),
                };
                if !ignore_unknown {
                    set?;
                }
            } else if let (Some((field, name)), Some((family, _))) =
                (line.split_once(" is "), stored.families.last())
            {
                stored.named.push((family.clone(), field.to_owned(), unescaped(name)?));
            } else if !ignore_unknown {
                return Err(Error::InvalidArgument(format!("the line {line:?} says nothing")));
            }
        }
        let default = stored.families.iter().find(|(name, _)| name == DEFAULT_COLUMN_FAMILY);
        let Some((_, default)) = default else {
            let text = "the default column family is not there";
            return Err(Error::InvalidArgument(text.into()));
        };
        stored.options.column_family = default.clone();
        Ok(stored)
    }
}

/// The fields that may have a name alone.
const NAMED: [&str; 4] = ["merge_operator", "compaction_filter", "comparator", "prefix_extractor"];

/// Returns the options that are objects and have no text form: the field, and the object's name.
fn named(options: &ColumnFamilyOptions) -> Vec<(&'static str, String)> {
    let operator = options.merge_operator.as_ref().map(|operator| operator.name().to_owned());
    let filter = options.compaction_filter.as_ref().map(|filter| filter.name().to_owned());
    let comparator = Some(options.comparator.name()).filter(|name| is_custom(name));
    let prefixes = options.prefix_extractor.as_ref().map(Prefixing::to_string);
    let prefixes = prefixes.filter(|text| Prefixing::parse(text).is_none());
    let names = [operator, filter, comparator.map(str::to_owned), prefixes];
    NAMED.into_iter().zip(names).filter_map(|(field, name)| Some((field, name?))).collect()
}

/// Whether a comparator of that name is one of the caller's.
fn is_custom(name: &str) -> bool {
    ComparatorText::read(name).is_none()
}

/// A name on one line, whatever it is.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(text: &str) -> Result<String> {
    let mut name = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        name.push(match char {
            '\\' => match chars.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('r') => '\r',
                _ => {
                    let text = format!("the name {text:?} ends in the middle of an escape");
                    return Err(Error::InvalidArgument(text));
                }
            },
            other => other,
        });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_kinds_come_back() {
        for name in ["", "default", "a\nb", "\\", "\\n", "\r\n\\\\", " is = [database]"] {
            assert_eq!(unescaped(&escaped(name)).unwrap(), name);
            assert!(!escaped(name).contains(['\n', '\r']));
        }
        assert!(unescaped("a\\").is_err());
        assert!(unescaped("\\x").is_err());
    }

    #[test]
    fn every_profile_comes_back() {
        for profile in Options::profiles() {
            let options = Options::profile(profile).unwrap();
            let families = [(DEFAULT_COLUMN_FAMILY, &options.column_family)];
            let text = StoredOptions::text(&options, families.into_iter());
            let text = checked_text::unseal(text.as_bytes()).unwrap();
            let rest = text.strip_prefix(FIRST_LINE).unwrap();
            let stored = StoredOptions::parse(rest.trim_start(), false).unwrap();
            assert_eq!(stored.options, options, "{profile}");
        }
    }

    #[test]
    fn what_is_not_understood_is_told() {
        let family = "[column family] default\n";
        let refused = |text: &str| {
            let taken = StoredOptions::parse(text, false);
            taken.expect_err("it is refused").to_string()
        };
        assert!(refused("level0_tricker = 3\n").contains("level0_trigger"));
        assert!(refused("max_open_files = many\n").contains("max_open_files"));
        assert!(refused("nonsense\n").contains("nonsense"));
        assert!(refused("[database]\n").contains("default column family"));
        let text =
            format!("max_open_files = many\nnonsense\n{family}of_tomorrow = 3\nlevels = 4\n");
        let stored = StoredOptions::parse(&text, true).unwrap();
        assert_eq!(stored.options.column_family.levels, 4);
    }
}
