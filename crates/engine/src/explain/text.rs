//! An explanation in sentences: one screen.

use std::fmt;

use super::cause::is_in_device;
use super::{Cause, Episode, Explanation, Figures};
use crate::timeline::StallCause;
use crate::timeline::lines::{size, time};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known_seconds;
        let Some(slowest) = &self.slowest else {
            return writeln!(f, "No operation was recorded in the last {known} s.");
        };
        if self.episodes.is_empty() {
            return writeln!(
                f,
                "No second of the last {known} s was slow: the slowest operation, a {}, took {}.",
                slowest.kind.name(),
                time(slowest.total_ns)
            );
        }
        let now = self.until_ns / super::history::SECOND_NS;
        for (number, episode) in self.episodes.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            episode.print(f, now)?;
        }
        Ok(())
    }
}

impl Episode {
    fn print(&self, f: &mut fmt::Formatter<'_>, now: u64) -> fmt::Result {
        let ago = |second: u64| now.saturating_sub(second);
        let when = match (ago(self.first_second), ago(self.last_second)) {
            (first, last) if first == last => format!("{first} s ago"),
            (first, last) => format!("{first} to {last} s ago"),
        };
        let seconds = if self.slow_seconds == 1 { "second" } else { "seconds" };
        writeln!(
            f,
            "{when}: {} slow {seconds}; a {} took {}. Cause: {}.",
            self.slow_seconds,
            self.slowest.kind.name(),
            time(self.slowest.total_ns),
            self.cause.sentence(),
        )?;
        writeln!(f, "  Clients waited for {}.", shares(&self.waited_for))?;
        if let Some((cause, _)) = self.stalled.first() {
            let sum: u64 = self.stalled.iter().map(|(_, ns)| ns).sum();
            let why = stall_reason(*cause);
            writeln!(f, "  Writers were held back for {} together, because {why}.", time(sum))?;
        }
        let work = self.work.iter().take(4).map(|(work, ns)| format!("{work} {}", time(*ns)));
        let work: Vec<_> = work.collect();
        match work.is_empty() {
            true => writeln!(f, "  No background work ran meanwhile.")?,
            false => writeln!(f, "  Background work meanwhile: {}.", work.join(", "))?,
        }
        for evidence in self.cause.evidence(&self.figures) {
            writeln!(f, "  {evidence}")?;
        }
        writeln!(f, "  What helps: {}.", self.cause.remedy())
    }
}

/// Returns the largest parts of a sum, in words.
fn shares(parts: &[(&'static str, u64)]) -> String {
    let all: u64 = parts.iter().map(|(_, ns)| ns).sum();
    let share = |ns: u64| ns.saturating_mul(100).checked_div(all).unwrap_or(0);
    let large = parts.iter().filter(|(_, ns)| share(*ns) >= 3).take(4);
    let words = large.map(|(part, ns)| format!("{} ({} %)", part_name(part), share(*ns)));
    words.collect::<Vec<_>>().join(", ")
}

fn part_name(part: &str) -> &str {
    match part {
        "queue" => "the commit queue",
        "wal_append" => "writing the WAL",
        "sync" => "the sync of the WAL",
        "memtable" => "inserting into memtables",
        "admission" => "admission",
        "device_read" => "reads from the device",
        "cache_miss" => "loading blocks",
        "lock" => "locks",
        "other" => "computing, or a processor",
        part => part,
    }
}

fn stall_reason(cause: StallCause) -> &'static str {
    match cause {
        StallCause::MemtableLimit => "memtables filled faster than they were flushed",
        StallCause::Level0Runs => "level 0 had too many runs",
        StallCause::PendingCompactionBytes => "the compaction debt was too large",
        StallCause::BackgroundError => "background work had failed",
        StallCause::WriteBuffers => "the shared limit on memtables was reached",
        StallCause::KeyLock => "other transactions held the locks of keys",
    }
}

impl Cause {
    /// Returns what happened, in a sentence without its end.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Cause::Processor => "processors were taken by others",
            Cause::Device => "the device was far slower than usual",
            Cause::Sync => "syncs take this long on this device",
            Cause::Overload(_) => "clients asked for more than the device can do",
            Cause::Background(_) => {
                "background work fell behind although the device was not at its limit"
            }
            Cause::Cache => "blocks were not in the cache",
            Cause::Failure => "background work had failed",
            Cause::WriteBuffers => "the memtables of databases that share a limit were full",
            Cause::KeyLock => "transactions waited for each other's locks",
            Cause::Contention => "threads waited for each other",
            Cause::Unknown => "operations computed, or waited for something that is not recorded",
        }
    }

    /// Returns what would have helped, in a sentence without its end.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Cause::Processor => {
                "more processors, or fewer programs and threads beside this database"
            }
            Cause::Device => {
                "look at the device: another program on it, a limit (cgroup, cloud volume), a \
                 rebuild, or wear"
            }
            Cause::Sync => {
                "wal=interval:<duration> or grouping of writes, or a device whose writes survive \
                 power loss in its cache"
            }
            Cause::Overload(Some(StallCause::MemtableLimit)) => {
                "fewer or smaller writes, a faster device, or larger memtables (memtable_bytes, \
                 memtables_max) if the load comes in bursts"
            }
            Cause::Overload(_) => {
                "fewer or smaller writes, compression, or a faster device; deadlines \
                 (WriteOptions::deadline) tell clients early"
            }
            Cause::Background(StallCause::MemtableLimit) => {
                "more memory for memtables (memtable_bytes, memtables_max), or more \
                 max_background_flushes"
            }
            Cause::Background(_) => {
                "more background_threads and max_background_compactions, or a higher rate limit if \
                 one is set"
            }
            Cause::Cache => "more memory for block_cache_bytes",
            Cause::Failure => "remove the cause that `health` names, then Db::resume",
            Cause::WriteBuffers => "a larger limit on the memtables that databases share",
            Cause::KeyLock => "shorter transactions, or keys that fewer of them share",
            Cause::Contention => "fewer threads that write at once, or larger batches",
            Cause::Unknown => "a profile of the program in such a second (perf record)",
        }
    }

    /// Returns the figures on which the cause rests, in sentences.
    #[must_use]
    pub fn evidence(self, figures: &Figures) -> Vec<String> {
        let mut evidence = Vec::new();
        let steps = || {
            let Figures { step_ns, held_up_ns, .. } = *figures;
            let share = held_up_ns.saturating_mul(100).checked_div(step_ns).unwrap_or(0);
            format!(
                "Background steps took {}, of which they waited {} ({share} %) for a processor.",
                time(step_ns),
                time(held_up_ns)
            )
        };
        let device = || {
            let Figures { io_bytes, device_bytes_per_second: can, .. } = *figures;
            format!("The device moved {}/s; it is believed to do {}/s.", size(io_bytes), size(can))
        };
        match self {
            Cause::Processor => {
                if figures.step_ns > 0 {
                    evidence.push(steps());
                }
                if figures.late_ns_max > 0 {
                    let late = time(figures.late_ns_max);
                    evidence.push(format!("A thread that only takes samples ran {late} late."));
                }
            }
            Cause::Device => {
                let Figures { pace_bytes_per_second, usual_pace_bytes_per_second, .. } = *figures;
                if pace_bytes_per_second > 0 && usual_pace_bytes_per_second > pace_bytes_per_second
                {
                    let now = size(pace_bytes_per_second);
                    let usual = size(usual_pace_bytes_per_second);
                    evidence.push(format!(
                        "Background work wrote {now} in each second in the device, and {usual} \
                         usually."
                    ));
                }
                let Figures { device_bytes_per_second: can, usual_bytes_per_second: usual, .. } =
                    *figures;
                if can > 0 && usual > can {
                    let (can, usual) = (size(can), size(usual));
                    evidence.push(format!("It was believed to do {can}/s, and {usual}/s usually."));
                }
                for (what, now, usual) in [
                    ("A sync", figures.sync_ns, figures.usual_sync_ns),
                    ("A read of a client", figures.read_ns, figures.usual_read_ns),
                ] {
                    if usual > 0 && now > usual {
                        let (now, usual) = (time(now), time(usual));
                        evidence.push(format!("{what} took {now}, and {usual} usually."));
                    }
                }
            }
            Cause::Sync if figures.sync_ns > 0 => {
                let (now, usual) = (time(figures.sync_ns), figures.usual_sync_ns);
                let usual = match usual {
                    0 => String::new(),
                    usual => format!(", and {} usually", time(usual)),
                };
                evidence.push(format!("A sync in the background took {now}{usual}."));
            }
            Cause::Overload(_) | Cause::Background(_) => {
                let Figures { device_ns, period_ns, pace_bytes_per_second: pace, .. } = *figures;
                if is_in_device(figures) && pace > 0 {
                    let (device, period, pace) = (time(device_ns), time(period_ns), size(pace));
                    evidence.push(format!(
                        "Background work was in the device for {device} within {period}, and \
                         wrote {pace} in a second of that."
                    ));
                } else if figures.device_bytes_per_second > 0 {
                    evidence.push(device());
                }
            }
            Cause::Cache => {
                let Figures { cache_misses, device_reads, read_ns, .. } = *figures;
                evidence.push(format!(
                    "The slowest operations missed the cache {cache_misses} times and read \
                     {device_reads} times, {} each.",
                    time(read_ns)
                ));
            }
            _ => {}
        }
        evidence
    }
}
