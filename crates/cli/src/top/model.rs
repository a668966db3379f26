//! What `top` shows: the last status of a database, and rates from the one before it.

use std::collections::{BTreeMap, VecDeque};

use sateen_inspect::{SlowStatus, Status};

/// Seconds of p99 that are drawn.
pub(crate) const CHART_SECONDS: usize = 60;

/// The order of the slow operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// The slowest first.
    #[default]
    Slowest,
    /// The newest first.
    Newest,
    /// By kind, and then the slowest first.
    Kind,
}

impl Order {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Slowest => "slowest",
            Order::Newest => "newest",
            Order::Kind => "kind",
        }
    }

    pub(crate) fn next(self) -> Order {
        match self {
            Order::Slowest => Order::Newest,
            Order::Newest => Order::Kind,
            Order::Kind => Order::Slowest,
        }
    }
}

/// The state of the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// The database that is asked for.
    pub(crate) path: String,
    pub(crate) status: Option<Status>,
    before: Option<Status>,
    /// p99 of each operation by second, in nanoseconds, oldest first.
    charts: BTreeMap<String, VecDeque<u64>>,
    /// Why there is no newer status.
    pub(crate) failure: Option<String>,
    /// What is on disk, while no process serves the database.
    pub(crate) on_disk: Option<String>,
    pub(crate) order: Order,
    pub(crate) is_paused: bool,
    /// The explanation, while it is shown instead of slow operations.
    pub(crate) why: Option<String>,
}

impl Model {
    pub(crate) fn new(path: &str) -> Model {
        Model { path: path.to_owned(), ..Model::default() }
    }

    /// Takes a newer status.
    pub(crate) fn take(&mut self, status: Status) {
        (self.failure, self.on_disk) = (None, None);
        // Another process, or another open of the database: nothing can be subtracted.
        let same = |old: &Status| old.pid == status.pid && old.uptime_ns < status.uptime_ns;
        self.before = self.status.take().filter(same);
        for operation in &status.operations {
            let chart = self.charts.entry(operation.name.clone()).or_default();
            chart.push_back(operation.last_second.p99_ns);
            if chart.len() > CHART_SECONDS {
                chart.pop_front();
            }
        }
        self.status = Some(status);
    }

    /// Returns how much a total grew a second; `None` before the second status.
    pub(crate) fn rate(&self, total: impl Fn(&Status) -> u64) -> Option<u64> {
        let (now, before) = (self.status.as_ref()?, self.before.as_ref()?);
        let grown = u128::from(total(now).saturating_sub(total(before)));
        let period = u128::from(now.uptime_ns.saturating_sub(before.uptime_ns)).max(1);
        u64::try_from(grown * 1_000_000_000 / period).ok()
    }

    /// Returns p99 of an operation by second, oldest first.
    pub(crate) fn chart(&self, operation: &str) -> Vec<u64> {
        self.charts.get(operation).map(|chart| chart.iter().copied().collect()).unwrap_or_default()
    }

    /// Returns the slow operations in the order that was asked for.
    pub(crate) fn slow(&self) -> Vec<&SlowStatus> {
        let Some(status) = &self.status else { return Vec::new() };
        let mut slow: Vec<&SlowStatus> = status.slow.iter().collect();
        match self.order {
            Order::Slowest => slow.sort_by_key(|it| std::cmp::Reverse(it.total_ns)),
            Order::Newest => slow.sort_by_key(|it| it.ago_ns),
            Order::Kind => {
                slow.sort_by(|a, b| (&a.kind, b.total_ns).cmp(&(&b.kind, a.total_ns)));
            }
        }
        slow
    }

    /// Returns the rates as JSON, beside the status.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let Some(status) = &self.status else {
            let (path, reason) = (&self.path, &self.failure);
            return serde_json::json!({ "served": false, "path": path, "reason": reason });
        };
        let operations: BTreeMap<&str, Option<u64>> = status
            .operations
            .iter()
            .map(|operation| (operation.name.as_str(), self.rate(count_of(&operation.name))))
            .collect();
        let traffic: BTreeMap<&str, [Option<u64>; 2]> = status
            .io
            .iter()
            .map(|io| (io.class.as_str(), [false, true].map(|w| self.rate(bytes_of(&io.class, w)))))
            .collect();
        serde_json::json!({
            "served": true, "status": status,
            "a_second": {
                "operations": operations,
                "io_read_written_bytes": traffic,
                "written_bytes": self.rate(|status| status.written_bytes),
                "waited_ns": self.rate(waited),
                "process_cpu_ns": self.rate(|status| status.process_cpu_ns),
            },
        })
    }
}

/// Returns the total of an operation.
pub(crate) fn count_of(name: &str) -> impl Fn(&Status) -> u64 + use<'_> {
    move |status| {
        status.operations.iter().find(|it| it.name == name).map_or(0, |operation| operation.count)
    }
}

/// Returns the bytes that a class of I/O has read or written.
pub(crate) fn bytes_of(class: &str, written: bool) -> impl Fn(&Status) -> u64 + use<'_> {
    move |status| {
        let found = status.io.iter().find(|io| io.class == class);
        found.map_or(0, |io| if written { io.written_bytes } else { io.read_bytes })
    }
}

/// Returns the time for which writers have waited.
pub(crate) fn waited(status: &Status) -> u64 {
    status.stalls.iter().map(|stall| stall.waited_ns).sum()
}
