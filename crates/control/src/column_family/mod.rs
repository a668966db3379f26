//! What control knows of one column family, and what it wants done for it.

mod requests;
mod tuning;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use requests::Request;

use crate::compaction::{CoveredTables, ManualStep, SparseTables};
use crate::event::JobResult;
use crate::geometry::Stripes;
use crate::plan::{CompactionPlan, InFlight, Input};
use crate::policy::{
    CfOptions, CompactionChain, CompactionPolicy, LevelScore, LevelTargets, PickContext, TreeView,
};
use crate::scheduler::{FILL, Smoothed};
use crate::tuner::Overflows;
use crate::types::{FileId, Instant, IoClass, JobId, RequestId, SeqNo};
use crate::version::Version;
use crate::write_controller::{Load, Pressure};

/// Compactions may be behind by this part of the bottommost level: it is what they would have to
/// rewrite, and the excess that they would rewrite it for is less by the multiplier of levels.
const DEBT_PART_TOLERATED: u64 = 16;

/// A memtable that is full within this time is worth waiting for.
const MORE_COMES_SECONDS: u64 = 10;

/// How often it is looked whether more still comes into level 0 that stays for it.
const LEVEL0_LOOK: Duration = Duration::from_millis(100);

/// How urgent it is that a sparse file goes: nothing is less so.
const SPARSE_URGENCY: f64 = 0.0;

/// What a look for work found.
#[derive(Debug)]
pub(crate) enum Pick {
    Plan { plan: Box<CompactionPlan>, manual: bool },
    ManualDone(RequestId),
    Nothing,
}

#[derive(Debug)]
pub(crate) struct ColumnFamily {
    /// What is in force: as configured, but for the size of memtables.
    options: Arc<CfOptions>,
    configured: Arc<CfOptions>,
    /// The size that memtables have been adjusted to. In force from the next one on.
    adjusted_memtable_bytes: Option<u64>,
    version: Arc<Version>,
    targets: LevelTargets,
    pending_bytes: u64,
    policy: &'static dyn CompactionPolicy,
    /// Where flushes cut their runs.
    stripes: Stripes,
    /// How many runs of level 0 a reader may have to look into.
    level0_runs: u32,
    sealed: u32,
    sealed_bytes: u64,
    active_bytes: u64,
    /// Bytes that were written since the last sample, and bytes a second lately.
    filled: u64,
    fill: Smoothed,
    /// Whether what writers depend on has changed since it was last taken.
    load_changed: bool,
    /// What has overflowed since it was last taken.
    overflows: Overflows,
    /// Whether memory has overflowed by what was sealed last, and by nothing before.
    last_sealed_overflowed: bool,
    /// The running flush, and the bytes of its memtables.
    flush: Option<(JobId, u64)>,
    /// Sealed memtables that are to be flushed however few they are.
    flush_requested: u32,
    flush_retry_at: Option<Instant>,
    compaction_retry_at: Option<Instant>,
    /// See [`PickContext::input_bytes_max`].
    input_bytes_max: u64,
    /// Level 0 stays where it is as more comes: when to look again whether it does.
    level0_look_at: Option<Instant>,
    /// The scores as of this version and the claims; empty: to be computed.
    scores: Vec<LevelScore>,
    /// The urgency of work that is done when no level is due, computed with the scores.
    idle_urgency: Option<f64>,
    /// Whether a pick could find something: nothing has changed since one found nothing if not.
    pick_worthwhile: bool,
    /// The same, when only level 0 was looked at.
    level0_only_failed: bool,
    /// What should be written anew where it is, when there is nothing else to do.
    sparse: SparseTables,
    /// What should go, as deletions of ranges leave nothing of it.
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
            adjusted_memtable_bytes: None,
            version,
            pending_bytes: 0,
            stripes: Stripes::default(),
            level0_runs: 0,
            sealed: 0,
            sealed_bytes: 0,
            active_bytes: 0,
            filled: 0,
            fill: FILL,
            load_changed: true,
            overflows: Overflows::default(),
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
            sparse: SparseTables::default(),
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

    /// Says whether another size of memtables is configured; otherwise an adjusted one stays.
    pub(crate) fn set_options(&mut self, options: Arc<CfOptions>) -> bool {
        let resized = self.configured.write_buffer_size != options.write_buffer_size;
        let in_force = self.options.write_buffer_size;
        self.set_memtable_bytes(
            &options,
            if resized { options.write_buffer_size } else { in_force },
        );
        self.configured = options;
        self.shape_changed();
        resized
    }

    pub(crate) fn set_version(&mut self, version: Arc<Version>) {
        if version.number() > self.version.number() {
            self.version = version;
            self.shape_changed();
        }
    }

    /// These files should go.
    pub(crate) fn set_sparse(&mut self, files: &BTreeSet<FileId>) {
        self.sparse = SparseTables::of(&self.version, files);
        self.pick_worthwhile = true;
    }

    /// All readers see the range tombstones up to `seen`: what they leave nothing of can go.
    pub(crate) fn drop_covered(&mut self, seen: SeqNo) {
        self.covered = CoveredTables::of(&self.version, seen);
        self.pick_worthwhile |= !self.covered.is_empty();
    }

    fn view(&self) -> TreeView<'_> {
        TreeView { version: &self.version, options: &self.options, targets: &self.targets }
    }

    fn shape_changed(&mut self) {
        self.targets = LevelTargets::new(&self.version, &self.options);
        if self.stripes.is_empty() {
            self.cut_stripes();
        }
        self.pending_bytes = self.policy.debt(&self.view());
        let runs = self.policy.runs_felt(&self.view());
        self.level0_runs = u32::try_from(runs).unwrap_or(u32::MAX);
        self.note_level0();
        self.load_changed = true;
        self.claims_changed();
    }

    /// The claims changed: scores and picks must be looked at again.
    pub(crate) fn claims_changed(&mut self) {
        self.scores.clear();
        self.pick_worthwhile = true;
        self.level0_only_failed = false;
        if let Some(request) = self.requests.front_mut() {
            request.blocked = false;
        }
    }

    /// Says whether there is something to decide anew.
    pub(crate) fn set_memtables(
        &mut self,
        sealed: u32,
        sealed_bytes: u64,
        active_bytes: u64,
    ) -> bool {
        let changed = (sealed, sealed_bytes) != (self.sealed, self.sealed_bytes);
        let switched = sealed > self.sealed || active_bytes < self.active_bytes;
        let waiting_for_more = self.options.min_write_buffer_number_to_merge.max(1);
        let overflows = sealed > self.sealed.max(waiting_for_more);
        if sealed > self.sealed {
            self.last_sealed_overflowed = overflows && !self.overflows.memory;
        }
        self.overflows.memory |= overflows;
        // What was written into the one that was sealed meanwhile, and into the new one.
        let into_sealed = sealed_bytes.saturating_sub(self.sealed_bytes + self.active_bytes);
        let into_active = active_bytes.checked_sub(self.active_bytes).unwrap_or(active_bytes);
        self.filled += if sealed > self.sealed { into_sealed + active_bytes } else { into_active };
        self.active_bytes = active_bytes;
        self.load_changed |= sealed != self.sealed;
        // Flushed ones were the oldest, and those requested first.
        let flushed = self.sealed.saturating_sub(sealed);
        self.flush_requested = self.flush_requested.saturating_sub(flushed);
        self.sealed = sealed;
        self.sealed_bytes = sealed_bytes;
        changed | (switched && self.memtable_switched())
    }

    /// What writers depend on, if it has changed since the last call.
    pub(crate) fn take_load(&mut self) -> Option<Load> {
        std::mem::take(&mut self.load_changed).then(|| Load {
            sealed: self.sealed,
            level0_runs: self.level0_runs,
            pending_bytes: self.pending_bytes,
            bottommost_bytes: self.bottommost_bytes(),
        })
    }

    fn bottommost_bytes(&self) -> u64 {
        let deepest = self.version.levels().iter().skip(1).rev().find(|l| !l.is_empty());
        deepest.map_or(0, |level| level.bytes())
    }

    /// Bytes that compactions may be behind without anybody noticing.
    pub(crate) fn debt_tolerated(&self) -> u64 {
        self.bottommost_bytes() / DEBT_PART_TOLERATED
    }

    /// What writers under a smooth rate depend on, without the progress of running jobs.
    pub(crate) fn pressure(&self) -> Pressure {
        Pressure {
            sealed: self.sealed,
            sealed_bytes: self.sealed_bytes,
            active_bytes: self.active_bytes,
            level0_runs: self.level0_runs,
            debt: self.pending_bytes,
            debt_tolerated: self.debt_tolerated(),
            ..Pressure::default()
        }
    }

    /// A sample of so long is over.
    pub(crate) fn sampled(&mut self, over_ns: u64) {
        self.fill.add(std::mem::take(&mut self.filled), over_ns);
    }

    /// Bytes a second that clients write into its memtables.
    pub(crate) fn fill(&self) -> u64 {
        self.fill.per_second()
    }

    /// Returns the mean bytes of a run of level 0, if it goes down in parts.
    pub(crate) fn level0_run_bytes(&self) -> Option<u64> {
        let bytes = self.version.level(0).bytes() / u64::from(self.level0_runs.max(1));
        self.policy.level0_goes_in_parts(&self.options).then_some(bytes.max(1))
    }

    /// Bytes of the memtables that are being flushed.
    pub(crate) fn flush_bytes(&self) -> u64 {
        self.flush.map_or(0, |(_, bytes)| bytes)
    }

    /// The running flush.
    pub(crate) fn flush_job(&self) -> Option<JobId> {
        self.flush.map(|(job, _)| job)
    }

    /// Returns the bytes that a compaction of level 0 moves for each byte of level 0, about.
    pub(crate) fn level0_amplification(&self) -> u64 {
        self.policy.level0_amplification(&self.view(), &self.stripes)
    }

    /// Whether level 0 has more runs than two compactions out of it begin with.
    pub(crate) fn level0_is_late(&self) -> bool {
        let trigger = self.options.level0_file_num_compaction_trigger.max(1);
        !self.options.disable_auto_compactions && self.level0_runs > 2 * trigger
    }

    /// Whether level 0 should go down before all else, and is not on its way.
    fn level0_wanted(&mut self, in_flight: &InFlight) -> bool {
        // Some stripes may be stuck while others go down.
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

    /// The compactions that keep level 0 from going down, if it should.
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

    /// What a look at level 0 alone sees.
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

    /// Whether level 0 should wait for the next flush: where clients use the device, too, and that
    /// is soon.
    fn more_comes(&self, group_bytes_max: u64) -> bool {
        group_bytes_max < u64::MAX
            && self.fill().saturating_mul(MORE_COMES_SECONDS) >= self.options.write_buffer_size
    }

    /// The longest chain of compactions that a flush could wait for.
    pub(crate) fn chain(&self) -> CompactionChain {
        self.policy.chain(&self.level0_context(&InFlight::default(), u64::MAX))
    }

    pub(crate) fn request_flush(&mut self) {
        self.flush_requested = self.sealed;
        // What was sealed for it need not have been full.
        if std::mem::take(&mut self.last_sealed_overflowed) {
            self.overflows.memory = false;
        }
    }

    /// Whether writers wait for a flush and the bytes that it would free, if one may and should
    /// start.
    pub(crate) fn wants_flush(&self, now: Instant) -> Option<(bool, u64)> {
        let enough = self.sealed >= self.options.min_write_buffer_number_to_merge.max(1)
            || self.flush_requested > 0;
        let full = self.sealed >= self.options.max_write_buffer_number.max(1);
        let due = self.flush.is_none() && self.sealed > 0 && enough && !self.flush_waits(now);
        due.then_some((full, self.sealed_bytes))
    }

    /// Whether no flush may start because one failed a short while ago.
    pub(crate) fn flush_waits(&self, now: Instant) -> bool {
        self.flush_retry_at.is_some_and(|at| now < at)
    }

    /// All that is sealed goes into one flush: so many memtables, into tables that end at these
    /// stripes.
    pub(crate) fn start_flush(&mut self, job: JobId) -> (u32, Stripes) {
        self.flush = Some((job, self.sealed_bytes));
        self.flush_retry_at = None;
        self.cut_stripes();
        (self.sealed, self.stripes.clone())
    }

    fn cut_stripes(&mut self) {
        self.stripes = self.policy.stripes(&self.stripes, &self.view());
    }

    pub(crate) fn flush_finished(&mut self, retry_at: Option<Instant>) {
        self.flush = None;
        self.flush_retry_at = retry_at;
    }

    /// A compaction for which there was no space is followed by such as take half as much, until
    /// one succeeds: what that gives back may do for more.
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

    /// How urgently a compaction is wanted; `None` if none is or none may start. Clients' requests
    /// go before everything else.
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
            // What it wants may not be what may start now.
            if request.job.is_none() && !(level0_only && self.level0_only_failed) {
                return Some(f64::INFINITY);
            }
        }
        let hopeless = !self.pick_worthwhile || level0_only && self.level0_only_failed;
        if hopeless || self.options.disable_auto_compactions {
            return None;
        }
        self.compute_scores(in_flight);
        // It costs no I/O.
        if !level0_only && !self.covered.is_empty() {
            return Some(f64::INFINITY);
        }
        let idle = self.idle_urgency;
        let urgent = self.scores.first()?.score.max(idle.unwrap_or_default());
        self.pick_worthwhile = urgent >= 1.0 || !self.sparse.is_empty() || idle.is_some();
        if urgent >= 1.0 {
            return Some(urgent);
        }
        let sparse = !self.sparse.is_empty() && !level0_only;
        (sparse || idle.is_some()).then_some(SPARSE_URGENCY)
    }

    /// Computes the scores, unless they are up to date.
    fn compute_scores(&mut self, in_flight: &InFlight) {
        if self.scores.is_empty() {
            self.scores = self.policy.scores(&self.view(), in_flight);
            self.idle_urgency = self.policy.idle_urgency(&self.view(), in_flight);
        }
    }

    /// Looks for the next compaction. What is found has to be claimed before the next look, which
    /// may be due at [`ColumnFamily::retry_at`]. `clears_way`: who holds what level 0 needs is told
    /// to end for it; `group_bytes_max`: as in [`PickContext`].
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
            // A long request must not let level 0 fill up: they take turns.
            if std::mem::take(&mut request.yields) {
                let level0 = PickContext { level0_only: true, ..context };
                if let Some(plan) = self.policy.pick(&level0) {
                    return Pick::Plan { plan: Box::new(plan), manual: false };
                }
            }
            return match request.compaction.step(&context) {
                // It waits for a slot that is not level 0's alone.
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
        let sparse = &mut self.sparse;
        let or_sparse = || if urgent || level0_only { None } else { sparse.pick(&context) };
        let picked = self.policy.pick(&context).or_else(or_sparse);
        let level0_due = self.scores.iter().any(|score| score.level == 0 && score.score >= 1.0);
        if picked.is_none() && level0_due && self.policy.level0_stays(&context) {
            self.level0_look_at = Some(now + LEVEL0_LOOK);
        }
        self.automatic(picked, level0_only)
    }

    /// What was picked, not for a request.
    fn automatic(&mut self, picked: Option<CompactionPlan>, level0_only: bool) -> Pick {
        if picked.is_none() {
            self.found_nothing(level0_only);
        }
        picked.map_or(Pick::Nothing, |plan| Pick::Plan { plan: Box::new(plan), manual: false })
    }

    /// There is nothing to pick until something changes.
    pub(crate) fn found_nothing(&mut self, level0_only: bool) {
        if level0_only {
            self.level0_only_failed = true;
        } else {
            self.pick_worthwhile = false;
        }
    }

    /// When to look again at what failed.
    pub(crate) fn retry_at(&self, now: Instant) -> Option<Instant> {
        let times = [self.flush_retry_at, self.compaction_retry_at, self.level0_look_at];
        times.into_iter().flatten().filter(|at| *at > now).min()
    }
}
