//! Compaction filters: what a compaction comes across may be removed or replaced on the way.
//!
//! What must stay true: who reads at a snapshot that was there when the compaction began sees what
//! it saw before; what is removed uncovers nothing older; a filter that panics fails its
//! compaction, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::VALUE_BYTES_MAX;

#[cfg(test)]
mod tests;

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Keep,
    /// It goes. A value goes with all that is older, as if the key had been deleted; of an operand
    /// of [`Db::merge`](crate::Db::merge) only itself goes.
    Remove,
    /// This takes its place. At most 1 GiB.
    Change(Vec<u8>),
}

/// Decides about the entries of one compaction, in ascending order of their keys.
///
/// It is asked about the newest version of a key among those that are compacted, if that is a value
/// and no snapshot shows it that was there when the compaction began; about operands of merges it
/// is asked one by one. A version that is newer still may be elsewhere. What is moved without being
/// rewritten it does not see, nor is it asked by flushes: a key may be there for long before it is
/// asked about for the first time, or be asked about again and again. Reads do not ask it.
///
/// A snapshot that is taken while a compaction is under way may show a key both before and after
/// the filter's decision.
///
/// A panic of it is an error of the background
/// ([`Error::FilterFailed`](crate::Error::FilterFailed)): the compaction is given up, and writes
/// are refused until [`Db::resume`](crate::Db::resume). RocksDB: `CompactionFilter`, which ignores
/// snapshots.
pub trait CompactionFilter: Send {
    /// What becomes of `value`, of `key`, in a compaction out of `level` (the uppermost of its
    /// levels).
    fn filter(&mut self, level: u8, key: &[u8], value: &[u8]) -> Decision;

    /// What becomes of a merge operand of `key`. It stays unless this says otherwise.
    fn filter_operand(&mut self, level: u8, key: &[u8], operand: &[u8]) -> Decision {
        let _ = (level, key, operand);
        Decision::Keep
    }
}

/// A compaction, as who makes a filter for it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionFilterContext {
    /// Whether all tables of the column family (of a region, if it has any) are part of it.
    pub is_full_compaction: bool,
    /// Whether a client asked for it.
    pub is_manual_compaction: bool,
    /// The column family.
    pub column_family: ColumnFamilyId,
    /// The level that is written to.
    pub output_level: u8,
}

/// Makes a filter for each compaction. RocksDB: `CompactionFilterFactory`.
pub trait CompactionFilterFactory: Send + Sync {
    /// A name for people.
    fn name(&self) -> &str;

    /// A filter for the compaction of `context`; `None` if nothing of it is to be filtered.
    fn create(&self, context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>>;
}

/// A column family's compaction filter, for
/// [`ColumnFamilyOptions::compaction_filter`](crate::ColumnFamilyOptions).
#[derive(Clone)]
pub struct Filtering(Arc<dyn CompactionFilterFactory>);

/// Two are the same if they are one factory.
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
    /// Filters by what `factory` makes.
    pub fn new(factory: impl CompactionFilterFactory + 'static) -> Filtering {
        Filtering(Arc::new(factory))
    }

    /// Filters values by a function of the level, the key and the value, which several compactions
    /// may call at once. Operands stay.
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
    /// db.compact_range(&db.default_column_family(), None, None, &CompactRangeOptions::default())?;
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

    /// The factory's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The filter for one compaction.
    pub(crate) fn create(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        self.0.create(context)
    }
}

struct ByFunction<F> {
    name: String,
    filter: Arc<F>,
}

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

/// What makes the filter of a compaction that has not begun.
pub(crate) struct FilterToBe {
    pub(crate) filtering: Filtering,
    pub(crate) context: CompactionFilterContext,
    /// The uppermost level of the inputs.
    pub(crate) level: u8,
    /// The newest snapshot.
    pub(crate) newest_snapshot: Option<SeqNo>,
}

impl FilterToBe {
    /// The filter, if there is to be one.
    pub(crate) fn create(self) -> Result<Option<ActiveFilter>> {
        let name = self.filtering.name().to_owned();
        let filter = guarded(&name, || self.filtering.create(&self.context))?;
        let (level, newest_snapshot) = (self.level, self.newest_snapshot);
        Ok(filter.map(|filter| ActiveFilter { filter, name, level, newest_snapshot }))
    }
}

/// The filter of a compaction under way.
pub(crate) struct ActiveFilter {
    filter: Box<dyn CompactionFilter>,
    name: String,
    level: u8,
    newest_snapshot: Option<SeqNo>,
}

impl ActiveFilter {
    /// What becomes of the value of `key` that was written at `seqno`.
    pub(crate) fn value(&mut self, seqno: SeqNo, key: &[u8], value: &[u8]) -> Result<Decision> {
        self.ask(seqno, |filter, level| filter.filter(level, key, value))
    }

    /// What becomes of an operand of `key` that was written at `seqno`.
    pub(crate) fn operand(&mut self, seqno: SeqNo, key: &[u8], value: &[u8]) -> Result<Decision> {
        self.ask(seqno, |filter, level| filter.filter_operand(level, key, value))
    }

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
                let reason = format!("it made a value of {} bytes", value.len());
                Err(Error::FilterFailed { filter: self.name.clone(), reason })
            }
            _ => Ok(decision),
        }
    }
}

/// What `act` returns; an error if it panics. Nobody uses what it leaves half done.
fn guarded<T>(name: &str, act: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| Error::FilterFailed {
        filter: name.to_owned(),
        reason: format!("it panicked: {}", said(panic.as_ref())),
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let texts = [panic.downcast_ref::<&str>().copied(), panic.downcast_ref().map(String::as_str)];
    texts.into_iter().flatten().next().unwrap_or("no text")
}
