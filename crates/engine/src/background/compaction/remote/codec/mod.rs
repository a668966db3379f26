//! The bytes of a job for another process, and of its result. `docs/format/remote-compaction.md`
//! describes them.
//!
//! 1. [`JobInput::encode`] and [`JobInput::decode`] carry the job there.
//! 2. [`JobResult::encode`] and [`JobResult::decode`] carry the result back.
//! 3. [`seal`] puts a first line and a checksum before the content, and [`unseal`] checks them.
//!
//! What must stay true: bytes that are damaged, cut, or of another version are refused. Decoding
//! hostile bytes never panics. Tables are encoded as in the manifest, so that a new property of
//! them is carried, too.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::compaction::{
    Below, CompactionPlan, CompactionReason, Input, KeysOf, OutputSplit,
};
use sateen_control::version::{AddedTable, RangeTombstone, TableMeta, VersionEdit};
use sateen_control::{ColumnFamilyId, Comparator, CompressionCode, Epoch, IoClass, SeqNo, UserKey};
use sateen_store::base::coding::{
    put_slice, put_varint, take_slice, take_u8, take_u64, take_varint, take_varint_u32,
};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::base::xxh3::xxh3_64;
use sateen_store::manifest::{decode_edits, encode_edit};

use crate::options::{ColumnFamilyOptions, Options, StoredOptions};

const INPUT: &[u8] = b"sateen compaction 2\n";
const RESULT: &[u8] = b"sateen compacted 1\n";

/// A job for another process.
#[derive(Clone, Debug)]
pub(crate) struct JobInput {
    /// The job's number, which the result repeats.
    pub(crate) job: u64,
    pub(crate) db_uid: u64,
    /// The name of the column family, and that of the family whose region it is.
    pub(crate) family: String,
    pub(crate) whole: ColumnFamilyId,
    /// The options of the database, and of the column family.
    pub(crate) options: Options,
    /// Seconds since 1970 by the database's clock, which decide what has expired.
    pub(crate) seconds: u64,
    /// Only what is rewritten counts.
    pub(crate) plan: CompactionPlan,
    /// What is older than the outputs.
    pub(crate) below: Vec<Below>,
    pub(crate) ranges: Vec<RangeTombstone>,
    pub(crate) is_full: bool,
    pub(crate) snapshots: Vec<SeqNo>,
    pub(crate) newest_snapshot: Option<SeqNo>,
    /// The numbers that the outputs may have.
    pub(crate) files: Range<u64>,
    pub(crate) tables: Range<u64>,
}

/// What another process made of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobResult {
    pub(crate) job: u64,
    /// The directory of the outputs.
    pub(crate) directory: PathBuf,
    pub(crate) tables: Vec<Arc<TableMeta>>,
    pub(crate) entries_in: u64,
    pub(crate) entries_dropped: u64,
}

/// Returns the directory in `output` that has the outputs of a job, and no other files.
pub(crate) fn job_directory(output: &Path, job: u64) -> PathBuf {
    output.join(format!("compaction-{job}"))
}

/// Why a result is not taken.
pub(super) fn refused(why: impl Into<String>) -> Error {
    Error::InvalidArgument(format!("the result of the other process: {}", why.into()))
}

/// Returns `content` behind its first line, and its checksum.
fn seal(first_line: &[u8], content: &[u8]) -> Vec<u8> {
    let checksum = xxh3_64(content).to_le_bytes();
    [first_line, &checksum, content].concat()
}

/// Returns the content of sealed bytes.
fn unseal<'a>(what: &str, first_line: &[u8], bytes: &'a [u8]) -> Result<&'a [u8]> {
    let refuse = |why: &str| Err(Error::InvalidArgument(format!("{what}: {why}")));
    let Some(mut rest) = bytes.strip_prefix(first_line) else {
        return refuse("another version of this library made it, or none");
    };
    match take_u64(&mut rest) {
        Some(checksum) if checksum == xxh3_64(rest) => Ok(rest),
        _ => refuse("its checksum does not fit"),
    }
}

fn malformed(what: &str, field: &str) -> Error {
    Error::InvalidArgument(format!("{what}: {field} is malformed"))
}

/// Returns an edit with these tables, as bytes.
fn tables_bytes(
    column_family: ColumnFamilyId,
    (level, epoch): (u8, Epoch),
    tables: impl Iterator<Item = Arc<TableMeta>>,
    range_tombstones: Vec<RangeTombstone>,
) -> Vec<u8> {
    let added = tables.map(|table| AddedTable { level, epoch, table }).collect();
    let edit = VersionEdit { column_family, added, range_tombstones, ..VersionEdit::default() };
    let mut bytes = Vec::new();
    encode_edit(&edit, &mut bytes);
    bytes
}

fn put_keys(out: &mut Vec<u8>, keys: &[UserKey]) {
    put_varint(out, keys.len() as u64);
    keys.iter().for_each(|key| put_slice(out, key.bytes()));
}

/// Takes fields from the content of a job or result.
struct Fields<'a> {
    what: &'static str,
    rest: &'a [u8],
    comparator: Comparator,
}

impl<'a> Fields<'a> {
    fn need<T>(&self, field: &str, taken: Option<T>) -> Result<T> {
        taken.ok_or_else(|| malformed(self.what, field))
    }

    fn number(&mut self, field: &str) -> Result<u64> {
        let taken = take_varint(&mut self.rest);
        self.need(field, taken)
    }

    fn byte(&mut self, field: &str) -> Result<u8> {
        let taken = take_u8(&mut self.rest);
        self.need(field, taken)
    }

    fn flag(&mut self, field: &str) -> Result<bool> {
        Ok(self.byte(field)? != 0)
    }

    fn slice(&mut self, field: &str) -> Result<&'a [u8]> {
        let taken = take_slice(&mut self.rest);
        self.need(field, taken)
    }

    fn text(&mut self, field: &str) -> Result<String> {
        let text = std::str::from_utf8(self.slice(field)?).ok().map(str::to_owned);
        self.need(field, text)
    }

    /// Takes a list. Each member takes at least a byte, so a length is no reason to allocate.
    fn list<T>(
        &mut self,
        field: &str,
        mut take: impl FnMut(&mut Fields<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.number(field)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(take(self)?);
        }
        Ok(list)
    }

    fn keys(&mut self, field: &str) -> Result<Vec<UserKey>> {
        self.list(field, |fields| {
            let key = fields.slice(field)?;
            Ok(fields.comparator.key(key))
        })
    }

    /// Takes the keys and the size of a table.
    fn keys_of(&mut self) -> Result<KeysOf> {
        let smallest = self.slice("a smallest key")?;
        let largest = self.slice("a largest key")?;
        let (smallest, largest) = (self.comparator.key(smallest), self.comparator.key(largest));
        self.need("a largest key", (smallest <= largest).then_some(()))?;
        Ok(KeysOf { smallest, largest, size_bytes: self.number("a size")? })
    }

    /// Takes tables of one level and run, and range tombstones.
    fn edit(&mut self, field: &str) -> Result<VersionEdit> {
        let edits = decode_edits(self.slice(field)?).ok();
        let edit = edits.and_then(|mut edits| edits.pop().filter(|_| edits.is_empty()));
        let mut edit = self.need(field, edit)?;
        edit.compare_by(&self.comparator);
        Ok(edit)
    }

    /// Takes the tables of one run, in key order.
    fn run(&mut self, field: &str) -> Result<(u8, Epoch, Vec<Arc<TableMeta>>)> {
        let edit = self.edit(field)?;
        let first = edit.added.first().map(|added| (added.level, added.epoch));
        let (level, epoch) = self.need(field, first)?;
        let same = edit.added.iter().all(|added| (added.level, added.epoch) == (level, epoch));
        let tables: Vec<_> = edit.added.into_iter().map(|added| added.table).collect();
        self.need(field, (same && are_apart(&tables)).then_some(()))?;
        Ok((level, epoch, tables))
    }
}

/// Returns true if the tables ascend and share no keys.
pub(super) fn are_apart(tables: &[Arc<TableMeta>]) -> bool {
    let mut pairs = tables.iter().zip(tables.iter().skip(1));
    tables.iter().all(|table| table.smallest <= table.largest)
        && pairs.all(|(one, next)| one.largest < next.smallest)
}

impl JobInput {
    /// Returns the job as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let plan = &self.plan;
        let mut out = Vec::new();
        put_varint(&mut out, self.job);
        put_varint(&mut out, self.db_uid);
        put_slice(&mut out, self.family.as_bytes());
        put_varint(&mut out, self.whole.0.into());
        let families = [(crate::options::DEFAULT_COLUMN_FAMILY, &self.options.column_family)];
        let options = StoredOptions::text(&self.options, families.into_iter());
        put_slice(&mut out, options.as_bytes());
        put_varint(&mut out, self.seconds);
        for numbers in [&self.files, &self.tables] {
            put_varint(&mut out, numbers.start);
            put_varint(&mut out, numbers.end);
        }
        put_varint(&mut out, self.snapshots.len() as u64);
        self.snapshots.iter().for_each(|seqno| put_varint(&mut out, seqno.0));
        put_varint(&mut out, self.newest_snapshot.map_or(0, |seqno| seqno.0 + 1));
        out.extend([u8::from(self.is_full), u8::from(plan.reason.is_manual())]);
        put_varint(&mut out, plan.cf.0.into());
        out.push(plan.output_level);
        put_varint(&mut out, plan.output_epoch.0);
        out.push(plan.compression.0);
        let deep = if let IoClass::Deep(level) = plan.class { level.max(1) } else { 0 };
        out.push(deep);
        put_keys(&mut out, &plan.breaks);
        put_split(&mut out, &plan.split);
        put_varint(&mut out, plan.rewrite.len() as u64);
        for Input { level, epoch, tables } in &plan.rewrite {
            let bytes = tables_bytes(plan.cf, (*level, *epoch), tables.iter().cloned(), Vec::new());
            put_slice(&mut out, &bytes);
        }
        put_varint(&mut out, self.below.len() as u64);
        for Below { level, tables } in &self.below {
            out.push(*level);
            put_varint(&mut out, tables.len() as u64);
            for table in tables.iter() {
                put_slice(&mut out, table.smallest.bytes());
                put_slice(&mut out, table.largest.bytes());
                put_varint(&mut out, table.size_bytes);
            }
        }
        let ranges = tables_bytes(plan.cf, (0, Epoch(0)), std::iter::empty(), self.ranges.clone());
        put_slice(&mut out, &ranges);
        seal(INPUT, &out)
    }

    /// Returns the job in `bytes`. Comparators, operators and filters come from `objects`, and must
    /// have the names of those that the database has.
    pub(crate) fn decode(bytes: &[u8], objects: &ColumnFamilyOptions) -> Result<JobInput> {
        let what = "the compaction";
        let rest = unseal(what, INPUT, bytes)?;
        let mut fields = Fields { what, rest, comparator: Comparator::BYTEWISE };
        let (job, db_uid) = (fields.number("its number")?, fields.number("the uid")?);
        let family = fields.text("the column family")?;
        let whole = take_varint_u32(&mut fields.rest);
        let whole = ColumnFamilyId(fields.need("the column family", whole)?);
        let options = StoredOptions::from_text(fields.slice("the options")?)?;
        let options = options.with_objects(objects)?;
        let seconds = fields.number("the time")?;
        fields.comparator = options.column_family.comparator.clone();
        let mut numbers =
            || -> Result<Range<u64>> { Ok(fields.number("a number")?..fields.number("a number")?) };
        let (files, tables) = (numbers()?, numbers()?);
        let snapshots =
            fields.list("a snapshot", |fields| Ok(SeqNo(fields.number("a snapshot")?)))?;
        let newest_snapshot = fields.number("a snapshot")?.checked_sub(1).map(SeqNo);
        let is_full = fields.flag("a flag")?;
        let reason = match fields.flag("a flag")? {
            true => CompactionReason::Manual,
            false => CompactionReason::LevelSize,
        };
        let cf = take_varint_u32(&mut fields.rest);
        let cf = ColumnFamilyId(fields.need("the column family", cf)?);
        let output_level = fields.byte("a level")?;
        let output_epoch = Epoch(fields.number("a run")?);
        let compression = CompressionCode(fields.byte("the compression")?);
        let class = match fields.byte("a level")? {
            0 => IoClass::L0,
            level => IoClass::Deep(level),
        };
        let breaks = fields.keys("a break")?;
        let split = take_split(&mut fields)?;
        let rewrite = fields.list("an input", |fields| {
            let (level, epoch, tables) = fields.run("an input")?;
            Ok(Input { level, epoch, tables })
        })?;
        let below = fields.list("an older run", |fields| {
            let level = fields.byte("an older run")?;
            let tables = fields.list("an older table", Fields::keys_of)?;
            let apart = tables.is_sorted_by(|one, next| one.largest < next.smallest);
            let tables: Arc<[KeysOf]> = tables.into();
            fields.need("an older run", (apart && !tables.is_empty()).then_some(()))?;
            Ok(Below { level, tables })
        })?;
        let ranges = fields.edit("a range tombstone")?.range_tombstones;
        fields.need("its end", fields.rest.is_empty().then_some(()))?;
        fields.need("an input", (!rewrite.is_empty()).then_some(()))?;
        let plan = CompactionPlan {
            cf,
            reason,
            rewrite,
            settle: Vec::new(),
            drop: Vec::new(),
            output_level,
            output_epoch,
            split,
            breaks,
            compression,
            path: 0,
            class,
            compact_pointer: None,
            score: 0.0,
            is_bottommost: below.is_empty(),
            collect: BTreeSet::new(),
            request: None,
        };
        Ok(JobInput {
            job,
            db_uid,
            family,
            whole,
            options,
            seconds,
            plan,
            below,
            ranges,
            is_full,
            snapshots,
            newest_snapshot,
            files,
            tables,
        })
    }
}

impl JobResult {
    /// Returns the result as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.job);
        let directory = sateen_store::base::names::option_of_path(&self.directory);
        put_slice(&mut out, directory.as_bytes());
        put_varint(&mut out, self.entries_in);
        put_varint(&mut out, self.entries_dropped);
        let tables = self.tables.iter().cloned();
        put_slice(&mut out, &tables_bytes(ColumnFamilyId(0), (0, Epoch(0)), tables, Vec::new()));
        seal(RESULT, &out)
    }

    /// Returns the result in `bytes`, if it is that of `job`, with outputs in the job's directory.
    pub(super) fn of_job(bytes: &[u8], comparator: &Comparator, job: u64) -> Result<JobResult> {
        let result = JobResult::decode(bytes, comparator)?;
        let parent = result.directory.parent();
        if result.job != job {
            return Err(refused("it is that of another job"));
        }
        let is_own = |output| result.directory == job_directory(output, job);
        if !parent.is_some_and(is_own) || !result.directory.is_absolute() {
            let directory = shown_path(&result.directory);
            return Err(refused(format!("{directory} is not the directory of the job")));
        }
        Ok(result)
    }

    /// Returns the result in `bytes`.
    fn decode(bytes: &[u8], comparator: &Comparator) -> Result<JobResult> {
        let what = "the result";
        let rest = unseal(what, RESULT, bytes)?;
        let mut fields = Fields { what, rest, comparator: comparator.clone() };
        let job = fields.number("its number")?;
        let directory = fields.text("the directory")?;
        let directory = sateen_store::base::names::path_of_option(&directory);
        let directory = fields.need("the directory", directory)?;
        let (entries_in, entries_dropped) =
            (fields.number("the entries")?, fields.number("the entries")?);
        let tables = fields.edit("a table")?.added.into_iter().map(|added| added.table).collect();
        fields.need("its end", fields.rest.is_empty().then_some(()))?;
        Ok(JobResult { job, directory, tables, entries_in, entries_dropped })
    }
}

// Kinds of [`OutputSplit`].
const BY_SIZE: u8 = 1;
const BY_OVERLAP: u8 = 2;
const AT_GUARDS: u8 = 3;

fn put_split(out: &mut Vec<u8>, split: &OutputSplit) {
    match split {
        OutputSplit::BySize {
            target_bytes,
            grandparent_overlap_bytes_max,
            at_grandparent_boundaries,
            at_gaps,
        } => {
            out.push(BY_SIZE);
            put_varint(out, *target_bytes);
            put_varint(out, *grandparent_overlap_bytes_max);
            out.extend([u8::from(*at_grandparent_boundaries), u8::from(*at_gaps)]);
        }
        OutputSplit::ByOverlap { bytes_min, bytes_max, limit } => {
            out.push(BY_OVERLAP);
            for number in [*bytes_min, *bytes_max, limit.tables, limit.bytes] {
                put_varint(out, number);
            }
        }
        OutputSplit::AtGuards { guards, bits, target_bytes } => {
            out.push(AT_GUARDS);
            put_keys(out, guards);
            put_varint(out, (*bits).into());
            put_varint(out, *target_bytes);
        }
    }
}

fn take_split(fields: &mut Fields<'_>) -> Result<OutputSplit> {
    let field = "where tables end";
    Ok(match fields.byte(field)? {
        BY_SIZE => OutputSplit::BySize {
            target_bytes: fields.number(field)?,
            grandparent_overlap_bytes_max: fields.number(field)?,
            at_grandparent_boundaries: fields.flag(field)?,
            at_gaps: fields.flag(field)?,
        },
        BY_OVERLAP => OutputSplit::ByOverlap {
            bytes_min: fields.number(field)?,
            bytes_max: fields.number(field)?,
            limit: sateen_control::compaction::OverlapLimit {
                tables: fields.number(field)?,
                bytes: fields.number(field)?,
            },
        },
        AT_GUARDS => {
            let guards = fields.keys(field)?;
            let bits = take_varint_u32(&mut fields.rest);
            let bits = fields.need(field, bits)?;
            OutputSplit::AtGuards { guards, bits, target_bytes: fields.number(field)? }
        }
        _ => return Err(malformed(fields.what, field)),
    })
}
