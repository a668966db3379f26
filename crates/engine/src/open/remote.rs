//! Carries out a compaction for a database that another process has open
//! ([`Db::open_and_compact`](crate::Db::open_and_compact)).
//!
//! 1. The job names everything that is needed ([`JobInput`]): tables, options, snapshots, numbers.
//! 2. `run` steps a [`CompactionJob`] like any other, into a new directory of the job, which is in
//!    the output directory.
//! 3. The result says which tables it has made ([`JobResult`]).
//!
//! What must stay true: the database's directories are read only, without its lock. A table that is
//! gone is an error, since the database gives nothing up while it waits for the job. If it ends
//! nevertheless, the result is of no use to anyone. No file is changed or removed that the worker
//! has not created.

use std::path::Path;
use std::sync::Arc;

use sateen_control::version::{AddedTable, RangeTombstones, Region, Version};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::names::shown_path;
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::waited::Watch;
use sateen_store::files::counters::Counters;
use sateen_store::memtable::ArenaPool;
use sateen_store::table::TableIterOptions;
use sateen_store::table::table_cache::{TableCache, TableCacheOptions};
use sateen_store::vfs::Vfs;

use super::{paths, sync_ancestors};
use crate::background::compaction::job::{CompactionContext, CompactionJob};
use crate::background::compaction::remote::codec::{JobInput, JobResult, job_directory};
use crate::background::driver::step::Step;
use crate::background::output::OutputContext;
use crate::operators::wall_clock::WallClock;
use crate::options::paths::{absolute, check_named};
use crate::options::{ColumnFamilyOptions, control};
use crate::tree::families::ColumnFamilyData;

/// Bytes that a step moves, after which the job may be cancelled.
const STEP_BYTES: u64 = 1 << 20;

/// The options of [`Db::open_and_compact`](crate::Db::open_and_compact).
#[derive(Clone, Debug, Default)]
pub struct OpenAndCompactOptions {
    /// What is no text of the column family's options: its comparator, merge operator, compaction
    /// filter and prefix extractor. Those that the database has are needed here, by their names.
    pub objects: ColumnFamilyOptions,
    /// Names and values of options that replace those of the database.
    pub options: Vec<(String, String)>,
    /// Cancels the compaction once it is set. RocksDB: `canceled`.
    pub cancelled: Option<Arc<AtomicBool>>,
}

/// Does the work of `input`, and returns the result.
pub(crate) fn open_and_compact(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    output: &Path,
    input: &[u8],
    with: &OpenAndCompactOptions,
) -> Result<Vec<u8>> {
    check_named("the database", directory)?;
    check_named("the outputs", output)?;
    let (directory, output) = (absolute(directory), absolute(output));
    let mut input = JobInput::decode(input, &with.objects)?;
    for (name, value) in &with.options {
        input.options.set(name, value)?;
    }
    input.options.validate()?;
    let tables = input.options.table_directories(&directory, []);
    if output == directory || tables.contains(&output) {
        let output = shown_path(&output);
        let text = format!("{output} has the database's tables, so it cannot have the outputs");
        return Err(Error::InvalidArgument(text));
    }
    let output = job_directory(&output, input.job);
    let exists = vfs.exists(&output).map_err(|error| Error::io("look for", &output, error))?;
    if exists {
        let output = shown_path(&output);
        let text = format!("{output} exists: another process does this compaction, or did not end");
        return Err(Error::InvalidArgument(text));
    }
    vfs.create_dir_all(&output).map_err(|error| Error::io("create", &output, error))?;
    let result = sync_ancestors(vfs.as_ref(), &output)
        .and_then(|()| compact(&vfs, &directory, &output, &input, with));
    if result.is_err() {
        // The failure counts. A directory that stays is empty.
        let _left = vfs.remove_dir(&output);
    }
    result
}

/// Compacts into `output`, a new directory. Removes the outputs after a failure.
fn compact(
    vfs: &Arc<dyn Vfs>,
    directory: &Path,
    output: &Path,
    input: &JobInput,
    with: &OpenAndCompactOptions,
) -> Result<Vec<u8>> {
    let mut job = job_of(vfs, directory, output, input)?;
    let counters = Counters::starting_at(input.files.start, input.tables.start);
    let made = run(&mut job, &counters, with.cancelled.as_deref());
    let done = job.done();
    let result = made.and_then(|added| {
        let tables: Vec<_> = added.into_iter().map(|added| added.table).collect();
        let within = tables.iter().all(|table| {
            input.files.contains(&table.placement.file().0) && input.tables.contains(&table.id.0)
        });
        let Some(()) = within.then_some(()) else {
            let text = "the compaction: it reserves too few numbers for the outputs";
            return Err(Error::InvalidArgument(text.into()));
        };
        let (entries_in, entries_dropped) = (done.entries_in, done.entries_dropped);
        let (job, directory) = (input.job, output.to_owned());
        Ok(JobResult { job, directory, tables, entries_in, entries_dropped }.encode())
    });
    if result.is_err() {
        job.abandon();
    }
    result
}

/// Returns the job of `input`, which writes to `output`.
fn job_of(
    vfs: &Arc<dyn Vfs>,
    directory: &Path,
    output: &Path,
    input: &JobInput,
) -> Result<CompactionJob> {
    let mut options = input.options.clone().with_absolute_paths()?;
    let seconds = input.seconds;
    options.wall_clock = WallClock::new(move || seconds);
    let options = Arc::new(options);
    let (layered, _) = paths::layered(vfs.clone(), directory, &options, &[]);
    let dyn_vfs: Arc<dyn Vfs> = layered;
    let (open_files_max, memory_bytes_max) = options.open_tables_max();
    let tables = Arc::new(TableCache::new(TableCacheOptions {
        vfs: dyn_vfs,
        directory: directory.to_owned(),
        db_uid: input.db_uid,
        direct: options.direct_reads,
        open_files_max,
        memory_bytes_max,
        images: None,
    }));
    let family_options = options.column_family.clone();
    let plan = Arc::new(input.plan.clone());
    let levels = usize::try_from(family_options.levels).unwrap_or(usize::MAX);
    let version = Version::new(plan.cf, levels).with_comparator(family_options.comparator.clone());
    // Filters are told the column family, not the region.
    let region = Region { of: input.whole, begin: family_options.comparator.key(&[]) };
    let family = Arc::new(ColumnFamilyData::new(
        plan.cf,
        input.family.clone(),
        Some(region).filter(|region| region.of != plan.cf),
        family_options,
        Arc::new(version),
        Arc::new(ArenaPool::new(0)),
    ));
    let chunk_bytes = usize::try_from(options.compaction_readahead_bytes).unwrap_or(1 << 20);
    let context = CompactionContext {
        output: OutputContext {
            vfs: vfs.clone(),
            directory: output.to_owned(),
            db_uid: input.db_uid,
            family_options: family.options(),
            options,
            family: plan.cf,
            level: plan.output_level,
            compression: control::compression_from_code(plan.compression),
            class: plan.class,
            spare_files: None,
            images: None,
        },
        tables,
        read: TableIterOptions::compaction(plan.class, chunk_bytes.max(4096)),
        snapshots: input.snapshots.clone(),
        newest_snapshot: input.newest_snapshot,
        below: Some(input.below.clone()),
        value_files: Arc::default(),
        ranges: Arc::new(RangeTombstones::new(input.ranges.clone())),
        is_full: input.is_full,
    };
    Ok(CompactionJob::new(family, plan, context))
}

/// Steps the job to its end, and returns its tables.
fn run(
    job: &mut CompactionJob,
    counters: &Counters,
    cancelled: Option<&AtomicBool>,
) -> Result<Vec<AddedTable>> {
    loop {
        if cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Acquire)) {
            return Err(Error::ManualCompactionPaused);
        }
        let watch = Watch::begin();
        let stepped = job.step(STEP_BYTES, counters);
        watch.end();
        if let Step::Done(_, edit) = stepped? {
            return Ok(edit.added);
        }
    }
}
