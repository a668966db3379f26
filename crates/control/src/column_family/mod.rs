//! A column family as control sees it, and the work that it needs.
//!
//! 1. Events change it: a version ([`ColumnFamily::set_version`]), memtables
//!    ([`ColumnFamily::set_memtables`]), options, clients' requests. After a change of the tree its
//!    policy computes targets, debt and the runs that writers feel again (`shape_changed`).
//! 2. [`ColumnFamily::wants_flush`] says whether a flush is due. [`ColumnFamily::start_flush`] puts
//!    all sealed memtables into one.
//! 3. [`ColumnFamily::urgency`] says how urgent a compaction is: a client's request first, then
//!    what the policy's scores say, then work that only tidies up.
//! 4. [`ColumnFamily::pick`] looks for one: tables that range tombstones hide, the next step of a
//!    request, the policy's pick, tables that reads were charged to, sparse files. After a look
//!    that found nothing it looks again only when something has changed.
//! 5. [`ColumnFamily::level0_blockers`] names the jobs that keep level 0 from being compacted.
//! 6. [`ColumnFamily::pressure`] and [`ColumnFamily::take_load`] return the state on which writers
//!    depend.

mod requests;
mod space;
mod tuning;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use requests::Request;
use tuning::{Batch, Window};

use crate::arithmetic::scale;
use crate::compaction::{ChargedTables, CoveredTables, ManualStep, SparseTables};
use crate::event::JobResult;
use crate::geometry::Stripes;
use crate::plan::{CompactionPlan, InFlight, Input};
use crate::policy::{
    CfOptions, CompactionChain, CompactionPolicy, LevelScore, LevelTargets, PickContext, TreeView,
};
use crate::scheduler::{FILL, LONG, Smoothed};
use crate::types::{FileId, Instant, IoClass, JobId, RequestId, SeqNo, TableId};
use crate::version::Version;
use crate::write_controller::Load;

/// The compaction debt may be this part of the bottommost level. To work it off, compactions would
/// have to rewrite that level, for an excess that is smaller by the multiplier of levels.
const DEBT_PART_TOLERATED: u64 = 16;

/// A memtable that will be full within this time is worth waiting for.
const MORE_COMES_SECONDS: u64 = 10;

/// How often a level 0 that waits for more runs is looked at again.
const LEVEL0_LOOK: Duration = Duration::from_millis(100);

/// The urgency of what is compacted though no level is due: sparse files, and tables that reads
/// were charged to.
const NOT_DUE_URGENCY: f64 = 0.0;

/// The result of a look for work.
#[derive(Debug)]
pub(crate) enum Pick {
    Plan { plan: Box<CompactionPlan>, manual: bool },
    ManualDone(RequestId),
    Nothing,
}

/// The state of a column family.
#[derive(Debug)]
pub(crate) struct ColumnFamily {
    /// The options in force: the configured ones, with `batch` and `level0_collects`.
    options: Arc<CfOptions>,
    configured: Arc<CfOptions>,
    /// The adjusted batch in force; `None` for the configured sizes.
    batch: Option<Batch>,
    /// The adjusted batch from the next memtable on.
    next_batch: Option<Batch>,
    /// The learned number of runs that start a compaction out of level 0; 0: the trigger.
    level0_collects: u32,
    version: Arc<Version>,
    targets: LevelTargets,
    pending_bytes: u64,
    policy: &'static dyn CompactionPolicy,
    /// The keys at which flushes cut their runs.
    stripes: Stripes,
    /// The runs that writers feel.
    level0_runs: u32,
    /// Bytes of values in value files to which tables refer.
    value_bytes: u64,
    sealed: u32,
    sealed_bytes: u64,
    active_bytes: u64,
    /// Bytes written since the last sample, and the recent rate.
    filled: u64,
    fill: Smoothed,
    fill_long: Smoothed,
    /// Whether the load has changed since it was last taken.
    load_changed: bool,
    /// What was seen since overflows were last taken.
    window: Window,
    /// Whether the memtable that was sealed last made memory overflow, and nothing did before.
    last_sealed_overflowed: bool,
    /// The running flush, and the bytes of its memtables.
    flush: Option<(JobId, u64)>,
    /// Number of sealed memtables that are flushed however few they are.
    flush_requested: u32,
    flush_retry_at: Option<Instant>,
    compaction_retry_at: Option<Instant>,
    /// The most input bytes while the disk is nearly full ([`PickContext::input_bytes_max`]).
    input_bytes_max: u64,
    /// When to look again at a level 0 that waits for more runs.
    level0_look_at: Option<Instant>,
    /// The scores for this version and these claims; empty if they must be computed.
    scores: Vec<LevelScore>,
    /// The urgency of work that is done when no level is due, computed with the scores.
    idle_urgency: Option<f64>,
    /// Whether a pick may find something: false if the last one found nothing and nothing has
    /// changed since.
    pick_worthwhile: bool,
    /// Whether a pick of level 0 alone found nothing and nothing has changed since.
    level0_only_failed: bool,
    /// Tables that reads were charged to, which are compacted when no level is due.
    charged: ChargedTables,
    /// Tables of sparse files, which are rewritten when there is nothing else to do.
    sparse: SparseTables,
    /// Tables that refer to value files with much garbage, which is collected then.
    garbage: SparseTables,
    /// Tables that range tombstones hide, which will be dropped.
    covered: CoveredTables,
    requests: VecDeque<Request>,
}

impl ColumnFamily {
    pub(crate) fn new(options: Arc<CfOptions>, version: Arc<Version>) -> ColumnFamily {
        let mut family = ColumnFamily {
            targets: LevelTargets::new(&version, &options),
            configured: options.clone(),
            policy: options.policy(),
            options,
            batch: None,
            next_batch: None,
            level0_collects: 0,
            version,
            pending_bytes: 0,
            stripes: Stripes::default(),
            level0_runs: 0,
            value_bytes: 0,
            sealed: 0,
            sealed_bytes: 0,
            active_bytes: 0,
            filled: 0,
            fill: FILL,
            fill_long: LONG,
            load_changed: true,
            window: Window::default(),
            last_sealed_overflowed: false,
            flush: None,
            flush_requested: 0,
            flush_retry_at: None,
            compaction_retry_at: None,
            input_bytes_max: u64::MAX,
            level0_look_at: None,
            scores: Vec::new(),
            idle_urgency: None,
            pick_worthwhile: true,
            level0_only_failed: false,
            charged: ChargedTables::default(),
            sparse: SparseTables::default(),
            garbage: SparseTables::default(),
            covered: CoveredTables::default(),
            requests: VecDeque::new(),
        };
        family.shape_changed();
        family
    }

    pub(crate) fn options(&self) -> &CfOptions {
        &self.options
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Sets the options. Returns true if a configured size has changed that was adjusted, or may
    /// have been. Then the adjustment must be reset; otherwise it stays.
    pub(crate) fn set_options(&mut self, options: Arc<CfOptions>) -> bool {
        let resized = self.configure(options);
        self.shape_changed();
        resized
    }

    pub(crate) fn set_version(&mut self, version: Arc<Version>) {
        if version.number() > self.version.number() {
            self.version = version;
            self.shape_changed();
        }
    }

    /// Has a table compacted when no level is due, because reads were charged to it.
    pub(crate) fn charge(&mut self, table: TableId) {
        if self.options.charges_max(0) < u64::MAX && self.charged.add(&self.version, table) {
            self.pick_worthwhile = true;
        }
    }

    /// Sets the files that should be rewritten because they are sparse.
    pub(crate) fn set_sparse(&mut self, files: &BTreeSet<FileId>) {
        self.sparse = SparseTables::of(&self.version, files);
        self.pick_worthwhile = true;
    }

    /// Finds the tables to drop because range tombstones up to `seen` hide them. All readers see
    /// these tombstones.
    pub(crate) fn drop_covered(&mut self, seen: SeqNo) {
        self.covered = CoveredTables::of(&self.version, seen);
        self.pick_worthwhile |= !self.covered.is_empty();
    }

    fn view(&self) -> TreeView<'_> {
        TreeView { version: &self.version, options: &self.options, targets: &self.targets }
    }

    /// Computes everything again that depends on the version or the options.
    fn shape_changed(&mut self) {
        self.targets = LevelTargets::new(&self.version, &self.options);
        self.garbage = SparseTables::with_garbage(&self.version, &self.options.values);
        if self.stripes.is_empty() {
            self.cut_stripes();
        }
        self.pending_bytes = self.policy.debt(&self.view());
        let runs = self.policy.runs_felt(&self.view());
        self.level0_runs = u32::try_from(runs).unwrap_or(u32::MAX);
        self.value_bytes = self.version.value_files().bytes().1;
        self.note_level0();
        self.load_changed = true;
        self.claims_changed();
    }

    /// Makes scores and picks be computed again, because the claims have changed.
    pub(crate) fn claims_changed(&mut self) {
        self.scores.clear();
        self.pick_worthwhile = true;
        self.level0_only_failed = false;
        if let Some(request) = self.requests.front_mut() {
            request.blocked = false;
        }
    }

    /// Sets the state of the memtables. Returns true if there is something to decide again.
    pub(crate) fn set_memtables(
        &mut self,
        sealed: u32,
        sealed_bytes: u64,
        active_bytes: u64,
        size_bytes: u64,
    ) -> bool {
        let changed = (sealed, sealed_bytes) != (self.sealed, self.sealed_bytes);
        let switched = sealed > self.sealed || active_bytes < self.active_bytes;
        let waiting_for_more = self.options.memtables_to_flush_min.max(1);
        let overflows = sealed > self.sealed.max(waiting_for_more);
        if sealed > self.sealed {
            self.last_sealed_overflowed = overflows && !self.window.memory;
        } else if sealed >= waiting_for_more {
            self.note_fill(active_bytes, size_bytes);
        }
        self.window.memory |= overflows;
        // Bytes written into the memtable that was sealed meanwhile, and into the new one.
        let into_sealed = sealed_bytes.saturating_sub(self.sealed_bytes + self.active_bytes);
        let into_active = active_bytes.checked_sub(self.active_bytes).unwrap_or(active_bytes);
        self.filled += if sealed > self.sealed { into_sealed + active_bytes } else { into_active };
        self.active_bytes = active_bytes;
        self.load_changed |= sealed != self.sealed;
        // The oldest memtables are flushed first, and so are those that were requested.
        let flushed = self.sealed.saturating_sub(sealed);
        self.flush_requested = self.flush_requested.saturating_sub(flushed);
        self.sealed = sealed;
        self.sealed_bytes = sealed_bytes;
        changed | (switched && self.memtable_switched(size_bytes))
    }

    /// Returns the load on which writers depend, if it has changed since the last call.
    pub(crate) fn take_load(&mut self) -> Option<Load> {
        std::mem::take(&mut self.load_changed).then(|| Load {
            sealed: self.sealed,
            level0_runs: self.level0_runs,
            pending_bytes: self.pending_bytes,
            bottommost_bytes: self.version.bottommost_bytes(),
        })
    }

    /// Returns the debt that may wait, in bytes.
    pub(crate) fn debt_tolerated(&self) -> u64 {
        self.version.bottommost_bytes() / DEBT_PART_TOLERATED
    }

    /// Returns the mean bytes of a run of level 0, if it is compacted in parts.
    pub(crate) fn level0_run_bytes(&self) -> Option<u64> {
        let bytes = self.version.level(0).bytes() / u64::from(self.level0_runs.max(1));
        self.policy.level0_goes_in_parts(&self.options).then_some(bytes.max(1))
    }

    /// Returns the bytes of the memtables that are being flushed.
    pub(crate) fn flush_bytes(&self) -> u64 {
        self.flush.map_or(0, |(_, bytes)| bytes)
    }

    /// Returns the running flush.
    pub(crate) fn flush_job(&self) -> Option<JobId> {
        self.flush.map(|(job, _)| job)
    }

    /// Returns the approximate bytes that a compaction of level 0 moves for each byte of level 0.
    pub(crate) fn level0_amplification(&self) -> u64 {
        self.policy.level0_amplification(&self.view(), &self.stripes)
    }

    /// Returns the runs of level 0, in thousandths of those at which its compaction begins.
    pub(crate) fn level0_due(&self) -> u64 {
        if self.options.disable_auto_compactions {
            return 0;
        }
        scale(u64::from(self.level0_runs), 1000, self.options.level0_runs_due().max(1))
    }

    /// Returns true if level 0 should be compacted before everything else, and is not.
    fn level0_wanted(&mut self, in_flight: &InFlight) -> bool {
        // With stripes, some may be blocked while others are being compacted.
        let alone = self.stripes.is_empty();
        if self.options.disable_auto_compactions
            || self.version.level(0).is_empty()
            || alone && in_flight.level0_running(self.version.column_family())
            || !self.policy.level0_may_go_first(&self.view(), self.level0_runs)
        {
            return false;
        }
        self.compute_scores(in_flight);
        self.scores.iter().any(|score| score.level == 0 && score.score >= 1.0)
    }

    /// Returns the compactions that keep level 0 from being compacted, if it should be.
    pub(crate) fn level0_blockers(
        &mut self,
        in_flight: &InFlight,
        group_bytes_max: u64,
    ) -> Vec<JobId> {
        if !self.level0_wanted(in_flight) {
            return Vec::new();
        }
        self.policy.level0_blockers(&self.level0_context(in_flight, group_bytes_max))
    }

    /// Returns the context of a look at level 0 alone.
    fn level0_context<'a>(
        &'a self,
        in_flight: &'a InFlight,
        group_bytes_max: u64,
    ) -> PickContext<'a> {
        PickContext {
            version: &self.version,
            options: &self.options,
            targets: &self.targets,
            scores: &self.scores,
            stripes: &self.stripes,
            in_flight,
            group_bytes_max: group_bytes_max.min(self.input_bytes_max),
            input_bytes_max: self.input_bytes_max,
            more_comes: self.more_comes(group_bytes_max),
            level0_only: true,
            level0_first: true,
        }
    }

    /// Returns true if the next flush comes soon and clients use the device, so that level 0 can
    /// wait for it.
    fn more_comes(&self, group_bytes_max: u64) -> bool {
        group_bytes_max < u64::MAX
            && self.fill().saturating_mul(MORE_COMES_SECONDS) >= self.options.memtable_bytes
    }

    /// Returns the longest chain of compactions that a flush might wait for.
    pub(crate) fn chain(&self) -> CompactionChain {
        self.policy.chain(&self.level0_context(&InFlight::default(), u64::MAX))
    }

    /// Requests a flush of all sealed memtables.
    pub(crate) fn request_flush(&mut self) {
        self.flush_requested = self.sealed;
        // A memtable that was sealed for the request need not have been full.
        if std::mem::take(&mut self.last_sealed_overflowed) {
            self.window.memory = false;
        }
    }

    /// Returns whether writers wait for a flush, and the bytes that it would free; `None` if none
    /// may or should start.
    pub(crate) fn wants_flush(&self, now: Instant) -> Option<(bool, u64)> {
        let enough =
            self.sealed >= self.options.memtables_to_flush_min.max(1) || self.flush_requested > 0;
        let full = self.sealed >= self.options.memtables_max.max(1);
        let due = self.flush.is_none() && self.sealed > 0 && enough && !self.flush_waits(now);
        due.then_some((full, self.sealed_bytes))
    }

    /// Returns true if no flush may start because one has failed recently.
    pub(crate) fn flush_waits(&self, now: Instant) -> bool {
        self.flush_retry_at.is_some_and(|at| now < at)
    }

    /// Starts a flush of all sealed memtables. Returns their number, and the stripes at which its
    /// tables end.
    pub(crate) fn start_flush(&mut self, job: JobId) -> (u32, Stripes) {
        self.flush = Some((job, self.sealed_bytes));
        self.flush_retry_at = None;
        self.cut_stripes();
        (self.sealed, self.stripes.clone())
    }

    fn cut_stripes(&mut self) {
        self.stripes = self.policy.stripes(&self.stripes, &self.view());
    }

    /// Ends the flush. After a failure none starts before `retry_at`.
    pub(crate) fn flush_finished(&mut self, retry_at: Option<Instant>) {
        self.flush = None;
        self.flush_retry_at = retry_at;
    }

    /// Halves the inputs of the next compactions after one for which the disk was full. Doubles
    /// them after one that succeeded, because it may have freed enough space for more.
    pub(crate) fn fit_inputs(&mut self, plan: &CompactionPlan, result: JobResult) {
        let most = &mut self.input_bytes_max;
        match result {
            JobResult::NoSpace => {
                let taken: u64 = plan.rewrite.iter().map(Input::bytes).sum();
                *most = (taken / 2).min(*most);
            }
            JobResult::Done if *most < u64::MAX => {
                let all = self.version.levels().iter().map(|level| level.bytes()).sum();
                *most = Some(most.saturating_mul(2)).filter(|most| *most < all).unwrap_or(u64::MAX);
            }
            _ => {}
        }
    }

    pub(crate) fn retry_compactions_at(&mut self, at: Instant) {
        self.compaction_retry_at = Some(at);
    }

    /// Returns how urgent a compaction is; `None` if none is needed or may start. Clients' requests
    /// come first.
    pub(crate) fn urgency(
        &mut self,
        now: Instant,
        in_flight: &InFlight,
        level0_only: bool,
    ) -> Option<f64> {
        match self.compaction_retry_at {
            Some(at) if now < at => return None,
            _ => self.compaction_retry_at = None,
        }
        if self.level0_look_at.is_some_and(|at| at <= now) {
            self.level0_look_at = None;
            self.claims_changed();
        }
        if let Some(request) = self.requests.front() {
            if request.blocked {
                return None;
            }
            // Only a compaction out of level 0 may start, and the request wants another one.
            if request.job.is_none() && !(level0_only && self.level0_only_failed) {
                return Some(f64::INFINITY);
            }
        }
        let hopeless = !self.pick_worthwhile || level0_only && self.level0_only_failed;
        if hopeless || self.options.disable_auto_compactions {
            return None;
        }
        self.compute_scores(in_flight);
        // Dropping tables costs no I/O.
        if !level0_only && !self.covered.is_empty() {
            return Some(f64::INFINITY);
        }
        let idle = self.idle_urgency;
        let urgent = self.scores.first()?.score.max(idle.unwrap_or_default());
        let not_due = self.sparse.has_any() || self.garbage.has_any() || !self.charged.is_empty();
        self.pick_worthwhile = urgent >= 1.0 || not_due || idle.is_some();
        if urgent >= 1.0 {
            return Some(urgent);
        }
        (not_due && !level0_only || idle.is_some()).then_some(NOT_DUE_URGENCY)
    }

    /// Computes the scores, unless they are up to date.
    fn compute_scores(&mut self, in_flight: &InFlight) {
        if self.scores.is_empty() {
            self.scores = self.policy.scores(&self.view(), in_flight);
            self.idle_urgency = self.policy.idle_urgency(&self.view(), in_flight);
        }
    }

    /// Looks for the next compaction. The caller claims it before the next look, which may be due
    /// at [`ColumnFamily::retry_at`]. `clears_way` is true if jobs that block level 0 are told to
    /// end early. `group_bytes_max` is that of [`PickContext`].
    pub(crate) fn pick(
        &mut self,
        now: Instant,
        in_flight: &InFlight,
        level0_only: bool,
        clears_way: bool,
        group_bytes_max: u64,
    ) -> Pick {
        let level0_first = clears_way && self.level0_wanted(in_flight);
        self.compute_scores(in_flight);
        let context = PickContext {
            version: &self.version,
            options: &self.options,
            targets: &self.targets,
            scores: &self.scores,
            stripes: &self.stripes,
            in_flight,
            group_bytes_max: group_bytes_max.min(self.input_bytes_max),
            input_bytes_max: self.input_bytes_max,
            more_comes: self.more_comes(group_bytes_max),
            level0_only,
            level0_first,
        };
        if !level0_only
            && !self.options.disable_auto_compactions
            && let Some(plan) = self.covered.pick(&context)
        {
            return Pick::Plan { plan: Box::new(plan), manual: false };
        }
        if let Some(request) = self.requests.front_mut().filter(|r| r.job.is_none()) {
            // A long request must not let level 0 fill up, so the two alternate.
            if std::mem::take(&mut request.yields) {
                let level0 = PickContext { level0_only: true, ..context };
                if let Some(plan) = self.policy.pick(&level0) {
                    return Pick::Plan { plan: Box::new(plan), manual: false };
                }
            }
            return match request.compaction.step(&context) {
                // The request waits for a slot that is not reserved for level 0.
                ManualStep::Plan(plan) if level0_only && plan.class != IoClass::L0 => {
                    let picked = self.policy.pick(&context);
                    self.automatic(picked, level0_only)
                }
                ManualStep::Plan(plan) => Pick::Plan { plan, manual: true },
                ManualStep::Blocked => {
                    request.blocked = true;
                    Pick::Nothing
                }
                ManualStep::Done => {
                    let request = request.compaction.request;
                    self.requests.pop_front();
                    Pick::ManualDone(request)
                }
            };
        }
        let urgent = self.scores.first().is_some_and(|urgent| urgent.score >= 1.0);
        let (charged, mut rewritten) = (&mut self.charged, [&mut self.sparse, &mut self.garbage]);
        let mut rewrite = || rewritten.iter_mut().find_map(|tables| tables.pick(&context));
        let mut not_due = || charged.pick(&context).or_else(&mut rewrite);
        let or_not_due = || if urgent || level0_only { None } else { not_due() };
        let picked = self.policy.pick(&context).or_else(or_not_due);
        let level0_due = self.scores.iter().any(|score| score.level == 0 && score.score >= 1.0);
        if picked.is_none() && level0_due && self.policy.level0_stays(&context) {
            self.level0_look_at = Some(now + LEVEL0_LOOK);
        }
        self.automatic(picked, level0_only)
    }

    /// Returns a pick that is not for a request.
    fn automatic(&mut self, picked: Option<CompactionPlan>, level0_only: bool) -> Pick {
        if picked.is_none() {
            self.found_nothing(level0_only);
        }
        picked.map_or(Pick::Nothing, |plan| Pick::Plan { plan: Box::new(plan), manual: false })
    }

    /// Notes that there is nothing to pick until something changes.
    pub(crate) fn found_nothing(&mut self, level0_only: bool) {
        if level0_only {
            self.level0_only_failed = true;
        } else {
            self.pick_worthwhile = false;
        }
    }

    /// Returns when to look again: after a failure, or at a level 0 that waits for more runs.
    pub(crate) fn retry_at(&self, now: Instant) -> Option<Instant> {
        let times = [self.flush_retry_at, self.compaction_retry_at, self.level0_look_at];
        times.into_iter().flatten().filter(|at| *at > now).min()
    }
}
