//! Group compaction (BoLT §3.3): one compaction takes several tables of a level, neighbours or not,
//! each with what it overlaps in the level below. All of them share one file and its barriers.
//!
//! 1. [`pick_group`] takes victims, best first, up to a budget, and makes a group of each
//!    ([`Group::of_one`]). A victim that overlaps nothing settles: it changes level as it is
//!    (§3.4).
//! 2. Of an overlap-aware base level it takes only good tables, one table's worth. The others are
//!    cut anew by the next merge from above (vLSM §4.2.2).
//! 3. In key order, each group takes in the next one where both overlap the same table below, or
//!    two neighbours ([`Group::absorb`]).
//! 4. The plan ends output tables where one group ends and the next begins.
//! 5. [`group_from`] does the same for a table that reads were charged to and those behind it.

use super::deeper::reason_of;
use super::settle::may_settle;
use super::victims::{candidates_max, pointer, victims};
use crate::geometry::{Span, hull};
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::types::{Epoch, UserKey};
use crate::version::Run;

/// Until it ends, a group takes its bytes twice, and its inputs stay a little longer. So beside
/// clients its inputs are at most this part of the tables, if that is more than `INPUTS_MIN`.
/// Several run at a time.
const INPUTS_PART: u64 = 64;
const INPUTS_MIN: u64 = 32 << 20;

/// Victims that share tables below, and those tables.
struct Group<'a> {
    start: Vec<Span<'a>>,
    below: Option<Span<'a>>,
    /// True if the victim changes level as it is.
    settles: bool,
}

impl<'a> Group<'a> {
    /// Returns the group of the table in `start`; `None` if it, or what it overlaps, is in flight.
    fn of_one(context: &PickContext<'a>, start: Span<'a>) -> Option<Group<'a>> {
        let level = start.level + 1;
        let below = context.overlap(level, start.bounds()?);
        if !context.may_take(std::iter::once(&start).chain(&below), level) {
            return None;
        }
        let settles = context.options.settled_compaction
            && below.is_none()
            && context.moves_as_is(start.level, level)
            && start.tables().all(|table| may_settle(context, table, level));
        Some(Group { start: vec![start], below, settles })
    }

    fn smallest(&self) -> Option<&'a UserKey> {
        let first = self.start.first().and_then(Span::bounds)?.0;
        Some(self.below.as_ref().and_then(Span::bounds).map_or(first, |below| first.min(below.0)))
    }

    /// Takes in `next`, which stands behind the group, if both overlap the same table below, or two
    /// neighbours with nothing in flight between. Returns true if it did.
    fn absorb(&mut self, context: &PickContext<'a>, next: &Group<'a>) -> bool {
        let (Some(own), Some(below)) = (&mut self.below, &next.below) else { return false };
        if below.ranks.start > own.ranks.end {
            return false;
        }
        let whole =
            Span { ranks: own.ranks.start..below.ranks.end.max(own.ranks.end), ..own.clone() };
        let spans = [self.start.first(), next.start.last(), Some(&whole)];
        let spans: Vec<_> = spans.into_iter().flatten().cloned().collect();
        if !hull(&spans).is_some_and(|bounds| context.may_write(whole.level, bounds)) {
            return false;
        }
        *own = whole;
        self.start.extend(next.start.iter().cloned());
        true
    }
}

/// The victims chosen for a plan.
struct Chosen<'a> {
    level: u8,
    run: &'a Run,
    /// The rank of each victim with its group, in the order of the choice.
    groups: Vec<(usize, Group<'a>)>,
    /// Bytes of the victims.
    bytes: u64,
    /// Bytes that are rewritten.
    inputs: u64,
}

impl<'a> Chosen<'a> {
    fn none_of(level: u8, run: &'a Run) -> Chosen<'a> {
        Chosen { level, run, groups: Vec::new(), bytes: 0, inputs: 0 }
    }

    /// Returns true if there is a victim and a further one would exceed the budget, or probably
    /// `inputs_max`.
    fn is_enough(&self, context: &PickContext<'_>, budget: u64, inputs_max: u64) -> bool {
        let rewritten = self.groups.iter().filter(|(_, group)| !group.settles).count() as u64;
        let usual = self.inputs.checked_div(rewritten).unwrap_or_default();
        let is_full = self.bytes >= budget
            || self.inputs >= context.group_bytes_max
            || self.inputs.saturating_add(usual) > inputs_max;
        is_full && !self.groups.is_empty()
    }

    fn add(&mut self, rank: usize, group: Group<'a>) {
        let bytes = group.start.iter().map(Span::bytes).sum::<u64>();
        let overlap = group.below.as_ref().map_or(0, Span::bytes);
        self.inputs += if group.settles { 0 } else { bytes + overlap };
        self.bytes += bytes;
        self.groups.push((rank, group));
    }

    /// Returns a plan for the victims. Output tables end where a group ends and the next begins.
    fn plan(
        mut self,
        context: &PickContext<'a>,
        reason: CompactionReason,
    ) -> Option<CompactionPlan> {
        let last = self.groups.last().map(|(rank, _)| *rank);
        self.groups.sort_unstable_by_key(|(rank, _)| *rank);
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (_, next) in self.groups {
            if !groups.last_mut().is_some_and(|group| group.absorb(context, &next)) {
                groups.push(next);
            }
        }
        let (settled, rewritten): (Vec<_>, Vec<_>) = groups.iter().partition(|group| group.settles);
        let settle: Vec<_> = settled.iter().flat_map(|group| group.start.clone()).collect();
        let mut rewrite: Vec<_> = rewritten.iter().flat_map(|group| group.start.clone()).collect();
        rewrite.extend(rewritten.iter().filter_map(|group| group.below.clone()));
        let output = (self.level + 1, Epoch(0));
        let mut plan = context.plan(reason, &rewrite, &settle, output)?;
        plan.breaks = groups.iter().skip(1).filter_map(Group::smallest).cloned().collect();
        plan.compact_pointer = last.and_then(|rank| pointer(context, self.level, self.run, rank));
        Some(plan)
    }
}

/// Returns the most bytes that are rewritten because of the space that they take meanwhile.
fn inputs_max(context: &PickContext<'_>) -> u64 {
    let is_beside_clients = context.group_bytes_max < u64::MAX;
    let part = (context.version.bytes() / INPUTS_PART).max(INPUTS_MIN);
    if is_beside_clients { part } else { u64::MAX }
}

/// Returns a plan for the best victims of `level`, up to the budget of a group. `only_good`: the
/// level is overlap-aware.
pub(super) fn pick_group(
    context: &PickContext<'_>,
    level: u8,
    only_good: bool,
) -> Option<CompactionPlan> {
    let run = context.version.level(level).sorted()?;
    let unneeded = context.targets.lowest_unneeded_level.is_some_and(|lowest| level <= lowest);
    let any = !only_good || unneeded;
    let limit = context.options.overlap_limit(level, context.targets.base_level);
    let budget = match (only_good, unneeded) {
        (true, false) => context.options.target_file_size(level, context.targets.base_level),
        (true, true) => context.options.compaction_input_max(),
        (false, _) => context.options.leveled.group_compaction_bytes,
    };
    // Good tables overlap little, and one table's worth of them is taken.
    let inputs_max = if only_good { u64::MAX } else { inputs_max(context) };
    let mut chosen = Chosen::none_of(level, run);
    // The score counts good tables wherever they stand, so all tables are candidates.
    let candidates_max = if any { candidates_max(context) } else { run.len() };
    for rank in victims(context, level, run, candidates_max) {
        if chosen.is_enough(context, budget, inputs_max) {
            break;
        }
        let victim = Span { level, run, ranks: rank..rank + 1 };
        let Some(group) = Group::of_one(context, victim) else { continue };
        let overlap = group.below.as_ref().map_or(0, Span::bytes);
        let tables = group.below.as_ref().map_or(0, |below| below.ranks.len()) as u64;
        if any || limit.allows(tables, overlap) {
            chosen.add(rank, group);
        }
    }
    chosen.plan(context, reason_of(context, level))
}

/// Returns a plan for one table and the tables behind it, up to the budget of a group; `None` if
/// that table is not free.
pub(super) fn group_from<'a>(
    context: &PickContext<'a>,
    reason: CompactionReason,
    table: Span<'a>,
) -> Option<CompactionPlan> {
    let Span { level, run, ranks } = table;
    let budget = context.options.leveled.group_compaction_bytes;
    let inputs_max = inputs_max(context);
    let mut chosen = Chosen::none_of(level, run);
    for rank in ranks.start..run.len() {
        let victim = Span { level, run, ranks: rank..rank + 1 };
        let Some(group) = Group::of_one(context, victim) else { break };
        chosen.add(rank, group);
        if chosen.is_enough(context, budget, inputs_max) {
            break;
        }
    }
    chosen.plan(context, reason)
}
