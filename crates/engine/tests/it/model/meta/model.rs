//! What a database must hold: every version of every key, by commit, and what of it a crash may
//! take.
//!
//! Commits are numbered from 1. At the *base* (the last moment at which everything was durable)
//! only one version of each key is left; commits since are kept whole, so that what a crash left
//! can be recognised as one of the states that the durability contract allows.
//!
//! Where compactions filter, both are held against each other as if they had come to everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen::{ReadOptions, Regions};

use crate::support::common::{appended, decided, is_decided};

/// A value. Versions share it.
pub(crate) type Value = Arc<[u8]>;
/// What a column family shows at one moment.
pub(crate) type View = BTreeMap<Vec<u8>, Value>;

/// What happens to a key.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Put(Value),
    Delete,
    SingleDelete,
    /// The operand goes behind the value.
    Merge(Value),
    /// From the key up to this one.
    DeleteRange(Vec<u8>),
}

impl What {
    /// The value after it, of `key`, which had `before`.
    fn after(&self, key: &[u8], before: Option<&Value>) -> Option<Value> {
        match self {
            What::Put(value) => settled(key, value.clone()),
            What::Delete | What::SingleDelete | What::DeleteRange(_) => None,
            What::Merge(operand) => Some(appended(before.map(|value| &**value), operand).into()),
        }
    }

    /// The same, if it may be done to `key`.
    pub(crate) fn of(self, key: &[u8]) -> What {
        match self {
            What::Merge(operand) if is_decided(key) => What::Put(operand),
            what => what,
        }
    }
}

/// What compactions leave of a value.
pub(crate) fn settled(key: &[u8], value: Value) -> Option<Value> {
    if is_decided(key) { decided(key, &value).map(Value::from) } else { Some(value) }
}

/// What a scan showed, as compactions leave it.
pub(crate) fn view_of(shown: Vec<(Vec<u8>, Value)>) -> View {
    assert!(shown.is_sorted_by(|a, b| a.0 < b.0), "keys ascend");
    let settled = |(key, value): (Vec<u8>, Value)| settled(&key, value).map(|value| (key, value));
    shown.into_iter().filter_map(settled).collect()
}

#[track_caller]
pub(crate) fn same(found: &View, expected: &View, what: &str) {
    let keys = found.keys().chain(expected.keys());
    for key in keys {
        let (found, expected) = (found.get(key), expected.get(key));
        assert!(
            found == expected,
            "{what}: {:?} is {:?} and not {:?} (lengths)",
            key[..key.len().min(40)].escape_ascii().to_string(),
            found.map(|value| value.len()),
            expected.map(|value| value.len())
        );
    }
}

/// One change of a key.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) family: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) what: What,
}

impl Change {
    /// Which of `known` keys it changes, and its own unless it is a range.
    fn keys<'a>(&self, known: impl Iterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
        match &self.what {
            What::DeleteRange(end) => {
                known.filter(|key| **key >= self.key && *key < end).cloned().collect()
            }
            _ => vec![self.key.clone()],
        }
    }
}

struct Commit {
    changes: Vec<Change>,
    logged: bool,
    /// False if the write returned an error: after a crash it may be there or not.
    sure: bool,
}

/// A column family, known by its number, which is never used again.
pub(crate) struct FamilyModel {
    pub(crate) name: String,
    /// Where its regions begin: past the log each is stored for itself.
    begins: Vec<Vec<u8>>,
    history: BTreeMap<Vec<u8>, Vec<(usize, Option<Value>)>>,
    base: View,
    /// Commits up to here are in tables.
    stored: usize,
}

/// The whole database.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) families: BTreeMap<u32, FamilyModel>,
    /// Commits before the base.
    before: usize,
    commits: Vec<Commit>,
    /// Logged commits up to here are durable.
    durable: usize,
}

impl Model {
    /// The number of the newest commit.
    pub(crate) fn now(&self) -> usize {
        self.before + self.commits.len()
    }

    pub(crate) fn add_family(&mut self, id: u32, name: &str, regions: &Regions) {
        let family = FamilyModel {
            name: name.to_owned(),
            begins: regions.begins().to_vec(),
            history: BTreeMap::new(),
            base: View::new(),
            stored: self.before,
        };
        assert!(self.families.insert(id, family).is_none(), "family number {id} was used before");
    }

    /// A write that readers see. `sure` if it returned Ok.
    pub(crate) fn commit(&mut self, changes: Vec<Change>, logged: bool, sure: bool) {
        let number = self.now() + 1;
        for change in &changes {
            let Some(family) = self.families.get_mut(&change.family) else { continue };
            for key in change.keys(family.history.keys()) {
                let versions = family.history.entry(key.clone()).or_default();
                let before = versions.last().and_then(|(_, value)| value.as_ref());
                let after = change.what.after(&key, before);
                if versions.last().is_some_and(|last| last.0 == number) {
                    versions.pop();
                }
                versions.push((number, after));
            }
        }
        self.commits.push(Commit { changes, logged, sure });
    }

    /// A write that failed before readers saw it: a crash may still bring it to light.
    pub(crate) fn maybe(&mut self, changes: Vec<Change>, logged: bool) {
        if logged {
            let number = self.now() + 1;
            // Readers go on to see what was there.
            for change in &changes {
                let Some(family) = self.families.get(&change.family) else { continue };
                for key in change.keys(family.history.keys()) {
                    let seen = self.get(change.family, &key, number);
                    let Some(family) = self.families.get_mut(&change.family) else { continue };
                    let versions = family.history.entry(key).or_default();
                    if versions.last().is_none_or(|last| last.0 != number) {
                        versions.push((number, seen));
                    }
                }
            }
            self.commits.push(Commit { changes, logged, sure: false });
        }
    }

    /// How many commits are known to have failed since the base.
    pub(crate) fn unsure(&self) -> usize {
        self.commits.iter().filter(|commit| !commit.sure).count()
    }

    pub(crate) fn log_is_durable(&mut self) {
        self.durable = self.now();
    }

    /// A flush of the family returned: the contract counts it as a sync, too.
    pub(crate) fn is_stored(&mut self, family: u32) {
        // Where there was nothing to flush, nothing was synced.
        let touches = |commit: &Commit| commit.changes.iter().any(|c| c.family == family);
        let Some(last) = self.commits.iter().rposition(touches) else { return };
        let number = self.before + last + 1;
        self.durable = self.durable.max(number);
        if let Some(family) = self.families.get_mut(&family) {
            family.stored = number;
        }
    }

    pub(crate) fn get(&self, family: u32, key: &[u8], at: usize) -> Option<Value> {
        let versions = self.families.get(&family)?.history.get(key)?;
        let end = versions.partition_point(|version| version.0 <= at);
        versions[..end].last()?.1.clone()
    }

    /// Holds what was found of a key, as compactions leave it, against what it had.
    pub(crate) fn assert_value(&self, family: u32, key: &[u8], at: usize, found: Option<&[u8]>) {
        let expected = self.get(family, key, at);
        assert!(
            found == expected.as_deref(),
            "the value of {:?} in family {family} at {at} is {:?} and not {:?} (lengths)",
            key[..key.len().min(40)].escape_ascii().to_string(),
            found.map(<[u8]>::len),
            expected.map(|value| value.len()),
        );
    }

    /// What an iterator with these options shows.
    pub(crate) fn view_within(&self, family: u32, options: &ReadOptions, at: usize) -> View {
        let within = |key: &[u8]| {
            options.lower_bound.as_ref().is_none_or(|lower| **lower <= *key)
                && options.upper_bound.as_ref().is_none_or(|upper| *key < **upper)
                && options.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix))
        };
        let mut view = self.view(family, at);
        view.retain(|key, _| within(key));
        view
    }

    pub(crate) fn view(&self, family: u32, at: usize) -> View {
        let Some(family) = self.families.get(&family) else { return View::new() };
        let visible = family.history.iter().filter_map(|(key, versions)| {
            let end = versions.partition_point(|version| version.0 <= at);
            Some((key.clone(), versions[..end].last()?.1.clone()?))
        });
        visible.collect()
    }

    /// A crash was survived: this is what is left of what the model knew.
    pub(crate) fn rebase_on(&mut self, views: BTreeMap<u32, View>) {
        self.before = self.now();
        self.durable = self.before;
        self.commits.clear();
        self.families.retain(|id, _| views.contains_key(id));
        for (id, view) in views {
            let Some(family) = self.families.get_mut(&id) else { continue };
            let versions =
                view.iter().map(|(key, value)| (key.clone(), vec![(0, Some(value.clone()))]));
            family.history = versions.collect();
            family.base = view;
            family.stored = self.before;
        }
    }

    /// Whether a crash may have left `recovered`. With `all`, everything logged must be there (the
    /// process died, not the machine).
    pub(crate) fn allows(&self, recovered: &BTreeMap<u32, View>, all: bool) -> Result<(), String> {
        let unsure: Vec<usize> =
            (0..self.commits.len()).filter(|at| !self.commits[*at].sure).collect();
        assert!(unsure.len() <= 12, "too many doubtful commits to try all");
        let mut said = String::new();
        for mask in 0..1_u32 << unsure.len() {
            let skipped: Vec<usize> = unsure
                .iter()
                .enumerate()
                .filter(|(bit, _)| mask >> bit & 1 == 1)
                .map(|(_, at)| *at)
                .collect();
            match self.allows_without(&skipped, recovered, all) {
                Ok(()) => return Ok(()),
                Err(why) if mask == 0 => said = why,
                Err(_) => {}
            }
        }
        Err(said)
    }

    fn allows_without(
        &self,
        skipped: &[usize],
        recovered: &BTreeMap<u32, View>,
        all: bool,
    ) -> Result<(), String> {
        let count = self.commits.len();
        let floor = if all { count } else { self.durable.saturating_sub(self.before) };
        let mut feasible = vec![true; count + 1];
        for (id, family) in &self.families {
            let empty = View::new();
            let found = recovered.get(id).unwrap_or(&empty);
            let here = self.feasible(*id, family, found, skipped);
            if !here[floor..].contains(&true) {
                return Err(format!(
                    "family {} ({id}) is no state that the contract allows: {} commits, log \
                     durable to {floor}, stored to {}, all {all}; {}",
                    family.name,
                    count,
                    family.stored - self.before,
                    self.difference(*id, found)
                ));
            }
            for (both, here) in feasible.iter_mut().zip(here) {
                *both &= here;
            }
        }
        if feasible[floor..].contains(&true) {
            return Ok(());
        }
        Err(format!("the families are not at one point of the commit order (floor {floor})"))
    }

    /// For each end of the log, whether the family may look like `found`.
    fn feasible(
        &self,
        id: u32,
        family: &FamilyModel,
        found: &View,
        skipped: &[usize],
    ) -> Vec<bool> {
        let mut feasible = vec![true; self.commits.len() + 1];
        for region in 0..=family.begins.len() {
            let here = self.feasible_region(Part { id, family, region }, found, skipped);
            feasible.iter_mut().zip(here).for_each(|(all, here)| *all &= here);
        }
        feasible
    }

    fn feasible_region(&self, part: Part<'_>, found: &View, skipped: &[usize]) -> Vec<bool> {
        let count = self.commits.len();
        let mut feasible = vec![false; count + 1];
        let stored = part.family.stored.saturating_sub(self.before);
        let touches = |at: usize| self.commits[at].changes.iter().any(|c| part.holds(c));
        let unlogged = (stored..count).any(|at| !self.commits[at].logged && touches(at));
        let last_stored = if unlogged { count } else { stored };
        let mut prefix = Diff::new(part, found);
        for at in 0..stored {
            prefix.apply(self, at, skipped);
        }
        for stored in stored..=last_stored {
            let mut state = prefix.clone();
            for (end, feasible) in feasible.iter_mut().enumerate().skip(stored) {
                *feasible |= state.differing == 0;
                if end < count && self.commits[end].logged {
                    state.apply(self, end, skipped);
                }
            }
            if stored < last_stored {
                prefix.apply(self, stored, skipped);
            }
        }
        feasible
    }

    fn difference(&self, id: u32, found: &View) -> String {
        let expected = self.view(id, self.now());
        let keys = expected.keys().chain(found.keys());
        let differs = keys.filter(|key| expected.get(*key) != found.get(*key));
        let show = |value: Option<&Value>| {
            value.map_or("nothing".to_owned(), |value| format!("{} bytes", value.len()))
        };
        let mut text = String::from("against everything:");
        for key in differs.take(4) {
            text.push_str(&format!(
                " {:?} is {} and not {} (versions at {:?})",
                &key[..key.len().min(20)].escape_ascii().to_string(),
                show(found.get(key)),
                show(expected.get(key)),
                self.families[&id].history.get(key).map(|versions| versions
                    .iter()
                    .map(|v| v.0.saturating_sub(self.before))
                    .collect::<Vec<_>>()),
            ));
        }
        text
    }
}

/// A region of a column family; all of one that has none.
#[derive(Clone, Copy)]
struct Part<'a> {
    id: u32,
    family: &'a FamilyModel,
    region: usize,
}

impl Part<'_> {
    fn has(&self, key: &[u8]) -> bool {
        self.family.begins.partition_point(|begin| **begin <= *key) == self.region
    }

    fn holds(&self, change: &Change) -> bool {
        let is_range = matches!(change.what, What::DeleteRange(_));
        change.family == self.id && (is_range || self.has(&change.key))
    }
}

/// A state that changes commit by commit, and how many keys it has otherwise than what was found.
#[derive(Clone)]
struct Diff<'a> {
    part: Part<'a>,
    state: BTreeMap<&'a [u8], Value>,
    found: &'a View,
    differing: usize,
}

impl<'a> Diff<'a> {
    fn new(part: Part<'a>, found: &'a View) -> Diff<'a> {
        let base = part.family.base.iter().filter(|(key, _)| part.has(key));
        let state: BTreeMap<_, _> = base.map(|(key, value)| (&**key, value.clone())).collect();
        let here = found.keys().filter(|key| part.has(key));
        let missing = here.filter(|key| !state.contains_key(&***key)).count();
        let wrong = state.iter().filter(|(key, value)| found.get(**key) != Some(*value)).count();
        Diff { part, state, found, differing: missing + wrong }
    }

    fn apply(&mut self, model: &'a Model, at: usize, skipped: &[usize]) {
        if skipped.contains(&at) {
            return;
        }
        let part = self.part;
        for change in model.commits[at].changes.iter().filter(|change| part.holds(change)) {
            if let What::DeleteRange(end) = &change.what {
                if change.key < *end {
                    let gone = self.state.extract_if(&*change.key..&**end, |_, _| true);
                    for (key, before) in gone {
                        let found = self.found.get(key);
                        self.differing -= usize::from(Some(&before) != found);
                        self.differing += usize::from(found.is_some());
                    }
                }
                continue;
            }
            let found = self.found.get(&change.key);
            let before = self.state.remove(&*change.key);
            let after = change.what.after(&change.key, before.as_ref());
            self.differing -= usize::from(before.as_ref() != found);
            self.differing += usize::from(after.as_ref() != found);
            if let Some(after) = after {
                self.state.insert(&change.key, after);
            }
        }
    }
}
