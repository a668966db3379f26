//! Compactions that another process carries out, as the database sees them.
//!
//! 1. [`ToSend`] is made with the job. `send`, the job's first step, reserves the numbers of the
//!    outputs and hands the job to the service. The job is away then ([`Step::Away`]): control
//!    gives it no grant, and its claim keeps its inputs.
//! 2. The answer calls a thread. The driver reports the job as back, and `take_over` checks the
//!    result, and renames its files into the directory of the outputs.
//! 3. `verify`, in as many steps as it takes, reads the new tables from end to end: every checksum,
//!    the order of the keys, and what the result says of each table.
//! 4. `end_remote` compares what each file lists (`check_directory`), makes files and names durable
//!    and returns the edit, which is installed like any other.
//! 5. Whatever goes wrong until then has the job run here, after its files are removed.
//! 6. [`CompactionJob::tell_service`] tells the service how the job ended.
//!
//! What must stay true:
//!
//! - Nothing that the service does makes the database wrong or has it wait at its end: a job that
//!   is away is in its slot, where close and drops of column families discard it.
//! - Files of the result are files of the job's output from the rename on, so that they are removed
//!   with it. After a crash they are orphans, which the next open removes.
//! - Only numbers that were reserved for the job are taken (format rule F2).
//! - Files are taken and removed only in a directory whose name has the job's number. It is random,
//!   so no other files are there.

pub(crate) mod codec;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use codec::{JobInput, JobResult, are_apart, refused};
use sateen_control::version::{AddedTable, Placement, RangeTombstones, TableMeta};
use sateen_control::{FileId, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::names::shown_path;
use sateen_store::base::waited::step_read_bytes;
use sateen_store::files::counters::Counters;
use sateen_store::files::reclaim::OpenTables;
use sateen_store::files::{CompactionFile, DirectoryEntry, FileName, table_file_name};
use sateen_store::table::table_cache::TableCache;
use sateen_store::table::{TableIter, TableIterOptions};
use sateen_store::vfs::OpenOptions;

use super::iter::CompactionStats;
use super::job::CompactionJob;
use crate::background::driver::step::{Step, StepBytes};
use crate::operators::compaction_service::{
    Answer, RemoteCompaction, RemoteCompactionEnd, RemoteCompactionInfo, RemoteCompactions, Sent,
};

/// Number of entries that are verified between two looks at the bytes that were read.
const ENTRIES_BETWEEN_LOOKS: u64 = 64;

/// A compaction that the service may get.
pub(crate) struct Remote {
    service: RemoteCompactions,
    info: RemoteCompactionInfo,
    tables: Arc<TableCache>,
    read: TableIterOptions,
    state: State,
}

/// What is sent with the plan.
pub(crate) struct ToSend {
    pub(crate) db_uid: u64,
    pub(crate) snapshots: Vec<SeqNo>,
    pub(crate) newest_snapshot: Option<SeqNo>,
    pub(crate) ranges: Arc<RangeTombstones>,
    /// Calls a thread that steps the job.
    pub(crate) wake: Box<dyn Fn() + Send + Sync>,
}

/// How far such a compaction is.
enum State {
    New(ToSend),
    Away {
        sent: Arc<Sent>,
        files: Range<u64>,
        tables: Range<u64>,
    },
    Verifying(Box<Verifying>),
    /// The tables of the other process are what the job installs.
    Done,
}

/// Tables whose files were taken over.
struct Verifying {
    result: JobResult,
    /// Number of tables that were verified.
    verified: usize,
    /// The table that is being read, and what was read of it.
    open: Option<(TableIter, Seen)>,
}

/// What was read of a table.
#[derive(Default)]
struct Seen {
    entries: u64,
    last: Vec<u8>,
}

impl Remote {
    pub(crate) fn new(
        service: RemoteCompactions,
        info: RemoteCompactionInfo,
        tables: Arc<TableCache>,
        read: TableIterOptions,
        to_send: ToSend,
    ) -> Remote {
        Remote { service, info, tables, read, state: State::New(to_send) }
    }

    fn ended(&self, end: RemoteCompactionEnd) {
        self.service.service().ended(&self.info, &end);
    }

    /// Gives up the open handles on tables of `files`, which are about to be removed.
    fn forget(&self, files: &[FileId]) {
        files.iter().for_each(|file| self.tables.evict_file(*file));
    }
}

impl CompactionJob {
    /// Returns true if the job is not away, or if there is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        match self.remote.as_ref().map(|remote| &remote.state) {
            Some(State::Away { sent, .. }) => sent.is_answered(),
            _ => true,
        }
    }

    /// Does a step of a job for another process. Returns `None` if the job is to run here.
    pub(super) fn step_remote(&mut self, bytes: u64, counters: &Counters) -> Option<Result<Step>> {
        let mut remote = self.remote.take()?;
        let stepped = match std::mem::replace(&mut remote.state, State::Done) {
            State::New(to_send) => {
                remote.state = self.send(&remote, to_send, counters);
                Ok(Some(Step::Away))
            }
            State::Away { sent, files, tables } => match sent.take() {
                Some(Answer::Done(result)) => {
                    let taken = self.take_over(&result, remote.info.job, (&files, &tables));
                    taken.map(|taken| {
                        remote.state = State::Verifying(Box::new(taken));
                        Some(Step::More(StepBytes::default()))
                    })
                }
                Some(Answer::Declined) => Ok(None),
                Some(Answer::Failed(why)) => {
                    remote.ended(RemoteCompactionEnd::RunLocally(why));
                    return None;
                }
                None => {
                    remote.state = State::Away { sent, files, tables };
                    Ok(Some(Step::Away))
                }
            },
            State::Verifying(verifying) => match self.verify(&remote, *verifying, bytes) {
                Ok((verifying, false)) => {
                    remote.state = State::Verifying(Box::new(verifying));
                    Ok(Some(Step::More(StepBytes::default())))
                }
                Ok((verifying, true)) => self.end_remote(&verifying.result).map(Some),
                Err(error) => Err(error),
            },
            State::Done => Ok(None),
        };
        match stepped {
            Ok(Some(step)) => {
                self.remote = Some(remote);
                Some(Ok(step))
            }
            Ok(None) => {
                remote.ended(RemoteCompactionEnd::RunLocally("the service declined".into()));
                None
            }
            Err(error) => {
                remote.forget(self.output.files());
                self.output.give_back();
                remote.ended(RemoteCompactionEnd::RunLocally(error.to_string()));
                None
            }
        }
    }

    /// Hands the job to the service.
    fn send(&self, remote: &Remote, to_send: ToSend, counters: &Counters) -> State {
        let ToSend { db_uid, snapshots, newest_snapshot, ranges, wake } = to_send;
        // No output has more tables than there are entries, and no more files than tables.
        let inputs = self.plan.rewrite.iter().flat_map(|input| &input.tables);
        let tables_max = inputs.map(|table| table.entries).sum::<u64>().saturating_add(1);
        let family_options = self.family.options();
        let files_max = if family_options.compaction_files { 1 } else { tables_max };
        let (files, tables) = counters.reserve(files_max, tables_max);
        let mut options = self.output.options().as_ref().clone();
        let seconds = options.wall_clock.seconds();
        options.column_family = family_options.as_ref().clone();
        let input = JobInput {
            job: remote.info.job,
            db_uid,
            family: self.family.name().to_owned(),
            whole: self.family.whole(),
            options,
            seconds,
            plan: self.plan.as_ref().clone(),
            below: self.plan.below(&self.family.super_version().version),
            ranges: ranges.iter().cloned().collect(),
            is_full: remote.info.is_full,
            snapshots,
            newest_snapshot,
            files: files.clone(),
            tables: tables.clone(),
        };
        let sent = Arc::new(Sent::new(wake));
        let job = RemoteCompaction::new(remote.info.clone(), input.encode(), sent.clone());
        remote.service.service().start(job);
        State::Away { sent, files, tables }
    }

    /// Checks a result, and moves its files to where the job's outputs are. The directory of the
    /// job is removed, with whatever is left in it.
    fn take_over(
        &mut self,
        bytes: &[u8],
        job: u64,
        (files, tables): (&Range<u64>, &Range<u64>),
    ) -> Result<Verifying> {
        let result = JobResult::of_job(bytes, self.family.comparator(), job)?;
        let checked = self.check_result(&result, (files, tables));
        let moved = checked.and_then(|taken| self.move_files(&result.directory, taken));
        self.remove_outputs(&result.directory, files);
        moved.map(|()| Verifying { result, verified: 0, open: None })
    }

    /// Checks what the result says of its tables, and returns their files.
    fn check_result(
        &self,
        result: &JobResult,
        (files, tables): (&Range<u64>, &Range<u64>),
    ) -> Result<BTreeSet<FileId>> {
        if !are_apart(&result.tables) {
            return Err(refused("its tables share keys"));
        }
        let ranges = self.plan.ranges();
        let mut ids = BTreeSet::new();
        let mut taken: BTreeSet<FileId> = BTreeSet::new();
        for table in &result.tables {
            let within = |(smallest, largest): &(_, _)| {
                *smallest <= table.smallest && table.largest <= *largest
            };
            let file = table.placement.file();
            let why = if !ranges.iter().any(within) {
                "has keys that the inputs do not have"
            } else if !tables.contains(&table.id.0) || !files.contains(&file.0) {
                "has a number that was not reserved for it"
            } else if !ids.insert(table.id) {
                "is there twice"
            } else if matches!(table.placement, Placement::Log { .. })
                || !table.values.is_empty()
                || table.global_seqno != SeqNo(0)
            {
                "has properties that no output has"
            } else {
                taken.insert(file);
                continue;
            };
            return Err(refused(format!("table {} {why}", table.id)));
        }
        Ok(taken)
    }

    /// Renames `files` of the job's directory `from` into the directory of the outputs.
    fn move_files(&mut self, from: &Path, files: BTreeSet<FileId>) -> Result<()> {
        let directory = self.output.directory().to_owned();
        for file in files {
            let from = table_file_name(from, file);
            let to = table_file_name(&directory, file);
            self.output.adopt(file);
            self.output.vfs().rename(&from, &to).map_err(|error| {
                let to = shown_path(&directory);
                let error = std::io::Error::new(error.kind(), format!("to {to}: {error}"));
                Error::io("rename", &from, error)
            })?;
        }
        Ok(())
    }

    /// Removes the outputs of the other process that are left in the job's `directory`, and the
    /// directory. If that fails, nobody removes them.
    fn remove_outputs(&self, directory: &Path, files: &Range<u64>) {
        let vfs = self.output.vfs();
        for name in vfs.list(directory).unwrap_or_default() {
            let file = name.to_str().and_then(FileName::parse);
            if matches!(file, Some(FileName::Table(file)) if files.contains(&file.0)) {
                let _left = vfs.remove(&directory.join(name));
            }
        }
        let _left = vfs.remove_dir(directory);
    }

    /// Reads about `bytes` bytes of the tables that were taken over. Returns true once all of them
    /// are as the result says.
    fn verify(
        &self,
        remote: &Remote,
        mut verifying: Verifying,
        bytes: u64,
    ) -> Result<(Verifying, bool)> {
        while let Some(table) = verifying.result.tables.get(verifying.verified) {
            let (mut iter, mut seen) = match verifying.open.take() {
                Some(open) => open,
                None => {
                    let open = remote.tables.get(table, remote.read.class)?;
                    let mut iter = open.iter(remote.read.clone());
                    iter.seek_to_first()?;
                    (iter, Seen::default())
                }
            };
            while iter.valid() {
                self.check_entry(table, iter.key(), &mut seen)?;
                iter.next()?;
                if seen.entries.is_multiple_of(ENTRIES_BETWEEN_LOOKS) && step_read_bytes() >= bytes
                {
                    verifying.open = Some((iter, seen));
                    return Ok((verifying, false));
                }
            }
            let last = self.family.comparator().key(key::user_key(&seen.last));
            if seen.entries != table.entries || last != table.largest {
                let found = seen.entries;
                let text = format!("table {} has {found} entries or another end", table.id);
                return Err(refused(text));
            }
            verifying.verified += 1;
            if step_read_bytes() >= bytes {
                break;
            }
        }
        let is_done = verifying.verified == verifying.result.tables.len();
        Ok((verifying, is_done))
    }

    /// Checks one entry against those before it, and against what the result says of the table.
    fn check_entry(&self, table: &TableMeta, entry: &[u8], seen: &mut Seen) -> Result<()> {
        let comparator = self.family.comparator();
        let in_order = match seen.entries {
            0 => comparator.key(key::user_key(entry)) == table.smallest,
            _ => key::compare(comparator, &seen.last, entry).is_lt(),
        };
        let seqno = key::seqno(entry);
        let in_bounds = (table.seqno_min..=table.seqno_max).contains(&seqno);
        if !in_order || !in_bounds || key::kind(entry).is_none() {
            return Err(refused(format!("table {} has an entry out of place", table.id)));
        }
        seen.entries += 1;
        seen.last.clear();
        seen.last.extend_from_slice(entry);
        Ok(())
    }

    /// Makes the files durable, and returns the edit.
    fn end_remote(&mut self, result: &JobResult) -> Result<Step> {
        for file in self.output.files() {
            let path = table_file_name(self.output.directory(), *file);
            let open = self.output.vfs().open(&path, OpenOptions::WRITE);
            let open = open.map_err(|error| Error::io("open", &path, error))?;
            self.check_directory(&CompactionFile::open(&open, &path, *file)?, result)?;
            open.sync_data(self.plan.class).map_err(|error| Error::io("sync", &path, error))?;
        }
        // It syncs the directory.
        self.output.finish()?;
        let mut edit = self.plan.edit();
        let (level, epoch) = (self.plan.output_level, self.plan.output_epoch);
        let tables = result.tables.iter().cloned();
        edit.added.extend(tables.map(|table| AddedTable { level, epoch, table }));
        let stats = CompactionStats {
            puts_in: result.entries_in,
            puts_dropped: result.entries_dropped,
            ..CompactionStats::default()
        };
        self.ended_elsewhere(stats, result.tables.iter().map(|table| table.size_bytes).sum());
        Ok(Step::Done(StepBytes::default(), Box::new(edit)))
    }

    /// Checks that a file lists the tables that the result has in it, and no others.
    fn check_directory(&self, file: &CompactionFile, result: &JobResult) -> Result<()> {
        let here = result.tables.iter().filter(|table| table.placement.file() == file.id);
        let same = |table: &&Arc<TableMeta>, entry: &DirectoryEntry| {
            let placed = match table.placement {
                Placement::Slice { offset, length, .. } => {
                    (offset, length) == (entry.offset, entry.length)
                }
                _ => true,
            };
            placed
                && (table.id, table.entries) == (entry.table, entry.entries)
                && (table.seqno_min, table.seqno_max) == (entry.seqno_min, entry.seqno_max)
                && (table.tombstones, table.raw_bytes) == (entry.tombstones, entry.raw_bytes)
                && table.smallest.bytes() == entry.smallest
                && table.largest.bytes() == entry.largest
                && (self.plan.cf, self.plan.output_level) == (entry.column_family, entry.level)
        };
        let mut pairs = here.clone().zip(&file.tables);
        match here.count() == file.tables.len() && pairs.all(|(table, entry)| same(&table, entry)) {
            true => Ok(()),
            false => Err(refused(format!("file {} lists other tables", file.id))),
        }
    }

    /// Tells the service what became of a job whose tables it made. `failed` says that they were
    /// not installed.
    pub(crate) fn tell_service(&self, failed: bool) {
        if let Some(remote) = &self.remote {
            remote.ended(match failed {
                false => RemoteCompactionEnd::Installed,
                true => RemoteCompactionEnd::Discarded,
            });
        }
    }

    /// Tells the service that nobody waits for its answer any more, or that an answer that is there
    /// is of no use. The caller removes files that were taken over.
    pub(super) fn cancel_remote(&mut self) {
        let Some(mut remote) = self.remote.take() else { return };
        match std::mem::replace(&mut remote.state, State::Done) {
            State::Away { sent, files, .. } => {
                sent.cancel();
                let Some(answer) = sent.take() else {
                    return remote.service.service().cancel(&remote.info);
                };
                if let Answer::Done(bytes) = answer {
                    let comparator = self.family.comparator();
                    let result = JobResult::of_job(&bytes, comparator, remote.info.job);
                    // A result that cannot be read does not tell where its files are.
                    if let Ok(result) = result {
                        self.remove_outputs(&result.directory, &files);
                    }
                }
                remote.ended(RemoteCompactionEnd::Discarded);
            }
            State::Verifying(verifying) => {
                // Its iterator ends before the handles of the tables.
                drop(verifying);
                remote.forget(self.output.files());
                remote.ended(RemoteCompactionEnd::Discarded);
            }
            State::New(_) => {}
            // The service is told once it is known whether the tables were installed.
            State::Done => self.remote = Some(remote),
        }
    }
}
