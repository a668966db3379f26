//! Compaction filters: user code that removes or replaces entries during compactions.
//!
//! 1. [`Filtering`] is the option. Each compaction with one gets a [`FilterToBe`].
//! 2. The first step of the compaction creates the filter ([`FilterToBe::create`]).
//! 3. The compaction iterator asks [`ActiveFilter`] about values and operands. Entries that a
//!    snapshot sees are kept without asking.
//!
//! What must stay true:
//!
//! - A snapshot from before the start of the compaction reads what it read before.
//! - A removed entry uncovers nothing older.
//! - A filter that panics fails its compaction, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::VALUE_BYTES_MAX;

#[cfg(test)]
mod tests;

/// What a filter decides about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Keeps the entry.
    Keep,
    /// Removes the entry. For a value, all older entries of the key go with it, as after a
    /// deletion. For an operand of [`Db::merge`](crate::Db::merge), only the operand goes.
    Remove,
    /// Replaces the value, by at most 1 GiB.
    Change(Vec<u8>),
}

/// Decides about the entries of one compaction, in ascending order of their keys.
///
/// A filter sees the newest entry of each key among the compacted ones, if that is a value and no
/// snapshot from before the start of the compaction sees it. It sees operands of merges one by one.
/// A newer entry of the key may exist elsewhere. A filter does not see tables that are moved
/// without being rewritten. Flushes and reads do not call it. So it may take long until a key is
/// first filtered, and a key may be filtered many times.
///
/// A snapshot that is taken while a compaction runs may show a key both before and after the
/// filter's decision.
///
/// A panic of the filter is a background error ([`Error::FilterFailed`]): the compaction fails, and
/// writes are refused until [`Db::resume`](crate::Db::resume). RocksDB: `CompactionFilter`, which
/// ignores snapshots.
pub trait CompactionFilter: Send {
    /// Decides about the value of `key` in a compaction out of `level`, the uppermost of its
    /// levels.
    fn filter(&mut self, level: u8, key: &[u8], value: &[u8]) -> Decision;

    /// Decides about a merge operand of `key`. The default keeps it.
    fn filter_operand(&mut self, level: u8, key: &[u8], operand: &[u8]) -> Decision {
        let _ = (level, key, operand);
        Decision::Keep
    }
}

/// The compaction for which a factory creates a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionFilterContext {
    /// Whether all tables of the column family (or of a region, if it has regions) are inputs.
    pub is_full_compaction: bool,
    /// Whether a client asked for the compaction.
    pub is_manual_compaction: bool,
    /// The column family.
    pub column_family: ColumnFamilyId,
    /// The level of the outputs.
    pub output_level: u8,
}

/// Creates a filter for each compaction. RocksDB: `CompactionFilterFactory`.
pub trait CompactionFilterFactory: Send + Sync {
    /// Returns a name for messages.
    fn name(&self) -> &str;

    /// Returns a filter for the compaction of `context`; `None` if it is not to be filtered.
    fn create(&self, context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>>;
}

/// The compaction filter of a column family, for
/// [`ColumnFamilyOptions::compaction_filter`](crate::ColumnFamilyOptions).
#[derive(Clone)]
pub struct Filtering(Arc<dyn CompactionFilterFactory>);

/// Two are equal if they are clones of one.
impl PartialEq for Filtering {
    fn eq(&self, other: &Filtering) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Filtering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filtering").field(&self.0.name()).finish()
    }
}

impl Filtering {
    /// Filters with the filters that `factory` creates.
    pub fn new(factory: impl CompactionFilterFactory + 'static) -> Filtering {
        Filtering(Arc::new(factory))
    }

    /// Filters values with a function of the level, the key and the value. Several compactions may
    /// call it at once. Operands are kept.
    ///
    /// ```
    /// use sateen::{CompactRangeOptions, Db, Decision, Filtering, Options};
    ///
    /// let no_drafts = Filtering::by("no drafts", |_level, key, _value| {
    ///     if key.starts_with(b"draft/") { Decision::Remove } else { Decision::Keep }
    /// });
    /// let mut options = Options::default();
    /// options.column_family.compaction_filter = Some(no_drafts);
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), options)?;
    /// db.put("draft/1", "…")?;
    /// db.put("letter/1", "Dear reader")?;
    /// db.compact_range(None, None, &CompactRangeOptions::default())?;
    /// assert_eq!(db.get("draft/1")?, None);
    /// assert!(db.get("letter/1")?.is_some());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn by<F>(name: &str, filter: F) -> Filtering
    where
        F: Fn(u8, &[u8], &[u8]) -> Decision + Send + Sync + 'static,
    {
        Filtering::new(ByFunction { name: name.to_owned(), filter: Arc::new(filter) })
    }

    /// Returns the factory's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the filter for one compaction.
    pub(crate) fn create(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        self.0.create(context)
    }
}

/// The factory of [`Filtering::by`].
struct ByFunction<F> {
    name: String,
    filter: Arc<F>,
}

/// The filter of [`Filtering::by`].
struct Function<F>(Arc<F>);

impl<F> CompactionFilterFactory for ByFunction<F>
where
    F: Fn(u8, &[u8], &[u8]) -> Decision + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, _context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
        Some(Box::new(Function(self.filter.clone())))
    }
}

impl<F> CompactionFilter for Function<F>
where
    F: Fn(u8, &[u8], &[u8]) -> Decision + Send + Sync,
{
    fn filter(&mut self, level: u8, key: &[u8], value: &[u8]) -> Decision {
        (self.0)(level, key, value)
    }
}

/// What is needed to create the filter of a compaction that has not begun.
pub(crate) struct FilterToBe {
    pub(crate) filtering: Filtering,
    pub(crate) context: CompactionFilterContext,
    /// The uppermost level of the inputs.
    pub(crate) level: u8,
    /// The newest snapshot that a client holds.
    pub(crate) newest_snapshot: Option<SeqNo>,
}

impl FilterToBe {
    /// Creates the filter; `None` if the factory wants none. Fails if the factory panics.
    pub(crate) fn create(self) -> Result<Option<ActiveFilter>> {
        let name = self.filtering.name().to_owned();
        let filter = guarded(&name, || self.filtering.create(&self.context))?;
        let (level, newest_snapshot) = (self.level, self.newest_snapshot);
        Ok(filter.map(|filter| ActiveFilter { filter, name, level, newest_snapshot }))
    }
}

/// The filter of a running compaction.
pub(crate) struct ActiveFilter {
    filter: Box<dyn CompactionFilter>,
    name: String,
    level: u8,
    newest_snapshot: Option<SeqNo>,
}

impl ActiveFilter {
    /// Decides about the value of `key` that was written at `seqno`.
    pub(crate) fn value(&mut self, seqno: SeqNo, key: &[u8], value: &[u8]) -> Result<Decision> {
        self.ask(seqno, |filter, level| filter.filter(level, key, value))
    }

    /// Decides about an operand of `key` that was written at `seqno`.
    pub(crate) fn operand(&mut self, seqno: SeqNo, key: &[u8], value: &[u8]) -> Result<Decision> {
        self.ask(seqno, |filter, level| filter.filter_operand(level, key, value))
    }

    /// Asks the filter, unless a snapshot sees the entry. Fails if it panics, or if its value is
    /// too large.
    fn ask(
        &mut self,
        seqno: SeqNo,
        ask: impl FnOnce(&mut dyn CompactionFilter, u8) -> Decision,
    ) -> Result<Decision> {
        if self.newest_snapshot.is_some_and(|snapshot| seqno <= snapshot) {
            return Ok(Decision::Keep);
        }
        let decision = guarded(&self.name, || ask(self.filter.as_mut(), self.level))?;
        match &decision {
            Decision::Change(value) if value.len() > VALUE_BYTES_MAX => {
                let reason = format!("it returned a value of {} bytes", value.len());
                Err(Error::FilterFailed { filter: self.name.clone(), reason })
            }
            _ => Ok(decision),
        }
    }
}

/// Returns the result of `act`, or an error if it panics. The state that a panic leaves is never
/// used.
fn guarded<T>(name: &str, act: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| Error::FilterFailed {
        filter: name.to_owned(),
        reason: format!("it panicked: {}", said(panic.as_ref())),
    })
}

/// Returns the message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let texts = [panic.downcast_ref::<&str>().copied(), panic.downcast_ref().map(String::as_str)];
    texts.into_iter().flatten().next().unwrap_or("no text")
}
