//! Compaction policies: how the tables of a column family are arranged, and which of them are
//! compacted next. A policy is a type behind one trait, [`CompactionPolicy`], in a folder of its
//! own with its own options.
//!
//! 1. The control plane asks for the pressure when a version arrives:
//!    [`CompactionPolicy::targets`], [`CompactionPolicy::debt`] and
//!    [`CompactionPolicy::runs_felt`]. Writers feel the last two.
//! 2. It asks for [`CompactionPolicy::scores`] when claims change. A score of 1 or more asks for a
//!    compaction.
//! 3. When a slot is free it calls [`CompactionPolicy::pick`] with all that the decision depends
//!    on, a [`PickContext`], and starts the plan. [`CompactionPolicy::split`] says where outputs
//!    end.
//! 4. A job installs an edit. [`Version::apply`](crate::Version::apply) accepts it if
//!    [`CompactionPolicy::admits`] each run.
//!
//! A policy is a function of what it is shown and has no memory: what it must remember, such as a
//! round-robin cursor, is part of the version. Nobody outside this folder asks which policy runs.
//!
//! To add a policy: a folder with a type that implements the trait, a line in `policies!` below,
//! and, if it has options, a field in [`CfOptions`].

mod context;
pub mod fifo;
pub mod guards;
pub mod leveled;
mod levels;
mod options;
mod paths;
mod shape;
pub mod tiered;

pub use context::{PickContext, TreeView};
pub use leveled::CompactionPriority;
pub use levels::{CompactionChain, LevelScore, LevelTargets, levels_to_lift};
pub use options::{CfOptions, ValueOptions};

use self::paths::path_of_level;
use crate::geometry::{Bounds, OutputSplit, Span, Stripes};
use crate::plan::{CompactionPlan, InFlight};
use crate::types::{Epoch, JobId};
use crate::version::Version;

/// Decides what one column family compacts. All methods are pure.
pub trait CompactionPolicy: Send + Sync + std::fmt::Debug {
    // The shape of a tree.

    /// Returns true if `level` may hold a run of `epoch`. By default levels below level 0 hold one
    /// run each, of epoch 0.
    fn admits(&self, level: u8, epoch: Epoch) -> bool {
        level == 0 || epoch == Epoch(0)
    }

    /// Returns the size that each level should have, and the level that level 0 is compacted into.
    fn targets(&self, version: &Version, options: &CfOptions) -> LevelTargets;

    /// Returns by how many levels everything below level 0 should be lifted when a database is
    /// opened with these options. The levels above must be empty.
    fn levels_to_lift(&self, version: &Version, options: &CfOptions) -> usize {
        let _ = (version, options);
        0
    }

    /// Returns the way that a manual compaction of a range takes through the levels.
    fn manual_path(&self, version: &Version) -> ManualPath {
        let _ = version;
        ManualPath::LevelByLevel
    }

    /// Returns why files that a client names cannot be compacted; `None` if they can.
    fn refuses_chosen_files(&self) -> Option<&'static str> {
        None
    }

    /// Returns the most runs, as [`CompactionPolicy::runs_felt`] counts them, that a tree may have
    /// while no compaction is due. Writers must not be slowed down at so few: nobody would ever
    /// make them fewer.
    fn runs_at_rest(&self, options: &CfOptions) -> u32 {
        options.level0_trigger.saturating_sub(1)
    }

    /// Returns true if a tree without due compactions has no debt, and level 0 fewer runs on top of
    /// each other than its trigger.
    fn rests_without_debt(&self) -> bool {
        true
    }

    // Pressure.

    /// Returns how urgent each level is, most urgent first. Tables that are being compacted do not
    /// count. From 1 on a level is compacted.
    fn scores(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Vec<LevelScore>;

    /// Returns how urgent work is that [`CompactionPolicy::pick`] does when no level is due; `None`
    /// if there is none.
    fn idle_urgency(&self, view: &TreeView<'_>, in_flight: &InFlight) -> Option<f64> {
        let _ = (view, in_flight);
        None
    }

    /// Returns an estimate of the bytes that compactions have to move until no level is due.
    fn debt(&self, view: &TreeView<'_>) -> u64;

    /// Returns the number of runs that the triggers for writers count: those that a reader may have
    /// to look into.
    fn runs_felt(&self, view: &TreeView<'_>) -> usize {
        view.version.level(0).runs().len()
    }

    /// Returns how many bytes a compaction of level 0 moves for each byte of level 0, about.
    fn level0_amplification(&self, view: &TreeView<'_>, stripes: &Stripes) -> u64 {
        let _ = (view, stripes);
        1
    }

    /// Returns true if compactions take level 0 down in parts of its runs, so that a run is freed
    /// bit by bit. Otherwise a run is freed as a whole.
    fn level0_goes_in_parts(&self, options: &CfOptions) -> bool {
        let _ = options;
        false
    }

    /// Returns the longest chain of compactions that could be needed before a full level 0 has room
    /// for another flush (vLSM §2.3).
    fn chain(&self, context: &PickContext<'_>) -> CompactionChain;

    // Picks.

    /// Returns the most urgent compaction that touches nothing in flight; `None` if there is none.
    fn pick(&self, context: &PickContext<'_>) -> Option<CompactionPlan>;

    /// Returns a compaction of `charged`, one table that reads looked into in vain too often. It is
    /// asked for when no level is due. `None` if the table is not free, or if nothing is gained.
    fn pick_charged<'a>(
        &self,
        context: &PickContext<'a>,
        charged: Span<'a>,
    ) -> Option<CompactionPlan> {
        let _ = (context, charged);
        None
    }

    /// Returns where outputs end that go to `level` within `bounds`.
    fn split(&self, context: &PickContext<'_>, level: u8, bounds: Bounds<'_>) -> OutputSplit;

    /// Returns the directory, as an index of [`CfOptions::path_bytes`], for outputs of `level` that
    /// are made of `bytes`.
    fn path(&self, view: &TreeView<'_>, level: u8, bytes: u64) -> usize {
        let _ = bytes;
        path_of_level(view.options, view.targets, level)
    }

    /// Returns true if tables that move from level `from` to `to` belong into the same directory.
    fn keeps_path(&self, view: &TreeView<'_>, from: u8, to: u8) -> bool {
        self.path(view, from, 0) == self.path(view, to, 0)
    }

    /// Returns a compaction of a part of `group`, tables of all levels that share keys, newest
    /// first. It is asked for where the disk has no space to compact all of the group.
    fn part_of<'a>(&self, context: &PickContext<'a>, group: &[Span<'a>]) -> Option<CompactionPlan> {
        let _ = (context, group);
        None
    }

    /// Returns the keys at which flushes cut their runs from now on; `before`: those until now.
    fn stripes(&self, before: &Stripes, view: &TreeView<'_>) -> Stripes {
        let _ = (before, view);
        Stripes::default()
    }

    /// Returns true if level 0 goes down at [`CfOptions::level0_runs_to_collect`] runs.
    fn level0_collects_runs(&self) -> bool {
        false
    }

    /// Returns true if level 0 may go before all other levels when it is due; `runs`: the runs that
    /// writers feel.
    fn level0_may_go_first(&self, view: &TreeView<'_>, runs: u32) -> bool {
        let _ = (view, runs);
        true
    }

    /// Returns true if level 0 stays until it has more, though its score is 1 or more.
    fn level0_stays(&self, context: &PickContext<'_>) -> bool {
        let _ = context;
        false
    }

    /// Returns the jobs whose claims keep level 0 from being compacted into the level below.
    fn level0_blockers(&self, context: &PickContext<'_>) -> Vec<JobId> {
        let _ = context;
        Vec::new()
    }
}

/// The way of a manual compaction through the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualPath {
    /// From each level into the next, a few tables at a time. Each level has one run.
    LevelByLevel,
    /// Nowhere: all tables stay in level 0, and the request is done at once.
    Stays,
    /// From all levels at once: tables that share keys with each other go down together.
    AtOnce {
        /// The level of the outputs, where they become the oldest run.
        into: u8,
    },
}

macro_rules! policies {
    (
        $(#[$default_attribute:meta])*
        $default:ident = $default_name:literal => $default_policy:expr,
        $($(#[$attribute:meta])* $style:ident = $name:literal => $policy:expr,)*
    ) => {
        /// How tables are arranged and picked.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CompactionStyle {
            $(#[$default_attribute])*
            #[default]
            $default,
            $($(#[$attribute])* $style,)*
        }

        impl CompactionStyle {
            /// All styles with their names, as the manifest and the options have them.
            pub const NAMES: &'static [(&'static str, CompactionStyle)] = &[
                ($default_name, CompactionStyle::$default),
                $(($name, CompactionStyle::$style),)*
            ];

            /// The names as a list in words.
            pub const NAMES_IN_WORDS: &'static str = concat!($default_name, $(" or ", $name),*);

            /// Returns the name in the manifest and in options.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    CompactionStyle::$default => $default_name,
                    $(CompactionStyle::$style => $name,)*
                }
            }

            /// Returns the policy that works like this.
            #[must_use]
            pub fn policy(self) -> &'static dyn CompactionPolicy {
                match self {
                    CompactionStyle::$default => &$default_policy,
                    $(CompactionStyle::$style => &$policy,)*
                }
            }
        }
    };
}

policies! {
    /// One run a level, level 0 excepted.
    Leveled = "leveled" => leveled::Leveled,
    /// Several runs a level, cut at guards (PebblesDB): little is rewritten, more is read.
    Guards = "guards" => guards::Guards,
    /// Sorted runs by age, of which neighbours are merged (RocksDB's universal compaction).
    Tiered = "tiered" => tiered::Tiered,
    /// All tables in level 0, of which the oldest are dropped (RocksDB's FIFO compaction).
    Fifo = "fifo" => fifo::Fifo,
}

impl CompactionStyle {
    /// Returns the style with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CompactionStyle> {
        CompactionStyle::NAMES.iter().find(|known| known.0 == name).map(|known| known.1)
    }
}

impl std::fmt::Display for CompactionStyle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
