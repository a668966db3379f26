//! The outputs of a compaction, estimated from its inputs without looking at a key.
//!
//! Keys are the numbers below a bound, written as eight bytes big-endian. A table holds a random
//! part of the keys between its bounds; this part is its density. Where runs of densities a, b, …
//! overlap, the merge has the density 1 − (1 − a)(1 − b)…, because duplicates vanish. Tables end
//! where the plan's [`OutputCutter`] says.
//!
//! [`OutputCutter`]: sateen_control::compaction::OutputCutter

use std::sync::Arc;

use sateen_control::compaction::{CompactionPlan, Input, KeysOf};
use sateen_control::version::Version;
use sateen_control::{TableMeta, UserKey};

/// The merge asks the cutter at least this many times for each table of the target size.
const ASKED_PER_TABLE: u64 = 16;

/// Returns the key of a number.
pub(crate) fn key(number: u64) -> UserKey {
    UserKey::bytewise(number.to_be_bytes())
}

/// Returns the number of a key. The model has no keys of other lengths.
pub(crate) fn number(key: &[u8]) -> u64 {
    key.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A table that a compaction will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) smallest: u64,
    pub(crate) largest: u64,
    pub(crate) entries: u64,
}

/// A table of an input: the numbers in `from..to`, and its density.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
    density: f64,
}

fn span(table: &TableMeta) -> Span {
    let (from, to) = (number(table.smallest.bytes()), number(table.largest.bytes()) + 1);
    Span { from, to, density: (table.entries as f64 / (to - from) as f64).min(1.0) }
}

/// Returns the tables that `plan` writes above what `version` has, if an entry takes `entry_bytes`
/// and a table about `table_bytes`.
pub(crate) fn outputs(
    plan: &CompactionPlan,
    version: &Version,
    entry_bytes: u64,
    table_bytes: u64,
) -> Vec<Output> {
    let runs: Vec<Vec<Span>> = plan.rewrite.iter().map(spans).collect();
    let grandparents = plan.grandparents(version);
    let points = points(&grandparents, &runs);
    let step_entries = (table_bytes / entry_bytes.max(1) / ASKED_PER_TABLE).max(1);
    let mut at = vec![0; runs.len()];
    let cutter = plan.output_cutter(grandparents);
    let mut writer = Writer { cutter, entry_bytes, open: None, done: vec![] };
    let mut carried = 0.0;
    for pair in points.windows(2) {
        let [from, to] = *pair else { continue };
        let density = density(&runs, &mut at, from);
        let expected = density * (to - from) as f64;
        if expected <= 0.0 {
            continue;
        }
        let steps = (expected as u64 / step_entries + 1).min(to - from);
        for nth in 0..steps {
            let part = |nth: u64| from + ((to - from) as u128 * nth as u128 / steps as u128) as u64;
            carried += density * (part(nth + 1) - part(nth)) as f64;
            // Without an expected key there is nothing to ask the cutter about.
            if carried >= 1.0 {
                writer.add(part(nth), part(nth + 1) - 1, carried as u64);
                carried -= carried.floor();
            }
        }
    }
    writer.finish()
}

fn spans(input: &Input) -> Vec<Span> {
    input.tables.iter().map(|table| span(table)).collect()
}

/// Returns every number at which the density of the merge changes, or at which a table below its
/// outputs begins or ends.
fn points(below: &[KeysOf], runs: &[Vec<Span>]) -> Vec<u64> {
    let mut spans: Vec<(u64, u64)> = runs.iter().flatten().map(|s| (s.from, s.to)).collect();
    spans.sort_unstable();
    let mut points: Vec<u64> = spans.iter().flat_map(|(from, to)| [*from, *to]).collect();
    // The gaps between the victims of a group have nothing to merge, and may cover most of a level
    // below.
    let hulls = spans.into_iter().fold(Vec::<(u64, u64)>::new(), |mut hulls, (from, to)| {
        match hulls.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => hulls.push((from, to)),
        }
        hulls
    });
    for (lo, hi) in hulls {
        let (lo_key, hi_key) = (key(lo), key(hi));
        let first = below.partition_point(|table| table.largest < lo_key);
        let tables = below.iter().skip(first).take_while(|table| table.smallest <= hi_key);
        for table in tables {
            let (from, to) = (number(table.smallest.bytes()), number(table.largest.bytes()) + 1);
            points.extend([from, to].into_iter().filter(|point| (lo..hi).contains(point)));
        }
    }
    points.sort_unstable();
    points.dedup();
    points
}

/// Returns the density of the merge at `number`. Successive calls must not decrease `number`.
fn density(runs: &[Vec<Span>], at: &mut [usize], number: u64) -> f64 {
    let mut absent = 1.0;
    for (run, at) in runs.iter().zip(at) {
        while run.get(*at).is_some_and(|span| span.to <= number) {
            *at += 1;
        }
        if let Some(span) = run.get(*at).filter(|span| span.from <= number) {
            absent *= 1.0 - span.density;
        }
    }
    1.0 - absent
}

struct Writer {
    cutter: sateen_control::compaction::OutputCutter,
    entry_bytes: u64,
    open: Option<Output>,
    done: Vec<Output>,
}

impl Writer {
    fn add(&mut self, smallest: u64, largest: u64, entries: u64) {
        let bytes = self.open.map_or(0, |open| open.entries * self.entry_bytes);
        if self.cutter.cut_before(&smallest.to_be_bytes(), bytes) {
            self.done.extend(self.open.take());
        }
        match &mut self.open {
            Some(open) => {
                open.largest = largest;
                open.entries += entries;
            }
            None => self.open = Some(Output { smallest, largest, entries }),
        }
    }

    fn finish(mut self) -> Vec<Output> {
        self.done.extend(self.open);
        for output in &mut self.done {
            // Rounding may have added one key too many.
            output.entries = output.entries.min(output.largest - output.smallest + 1);
        }
        self.done
    }
}

/// Returns the tables of a flush: `entries` keys spread over all `keys`, cut into tables of about
/// `table_bytes` and at `starts`.
pub(crate) fn spread(
    keys: u64,
    starts: &[u64],
    entries: u64,
    entry_bytes: u64,
    table_bytes: u64,
) -> Vec<Output> {
    let per_table = (table_bytes / entry_bytes.max(1)).max(1);
    let part = |of: u64, nth: u64, all: u64| {
        (u128::from(of) * u128::from(nth) / u128::from(all.max(1))) as u64
    };
    let mut outputs = Vec::new();
    let ends = starts.iter().copied().filter(|start| (1..keys).contains(start)).chain([keys]);
    let (mut from, mut entry) = (0, 0);
    for to in ends {
        let entries = part(entries, to, keys) - entry;
        let tables = entries.div_ceil(per_table).max(1);
        let at = |nth| from + part(to - from, nth, tables);
        let one = |nth| Output {
            smallest: at(nth),
            largest: at(nth + 1).max(at(nth) + 1) - 1,
            entries: part(entries, nth + 1, tables) - part(entries, nth, tables),
        };
        outputs.extend((0..tables).map(one).filter(|output| output.entries > 0));
        (from, entry) = (to, entry + entries);
    }
    outputs
}

/// Returns how many different keys `writes` random writes to `keys` keys touch.
pub(crate) fn distinct(keys: u64, writes: u64) -> u64 {
    let (keys, writes) = (keys.max(1) as f64, writes as f64);
    ((keys * -(-writes / keys).exp_m1()).round() as u64).max(1)
}

/// Returns all tables of a plan's inputs.
pub(crate) fn input_tables(plan: &CompactionPlan) -> impl Iterator<Item = &Arc<TableMeta>> {
    plan.rewrite.iter().flat_map(|input| &input.tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_keys_and_back_in_order() {
        let numbers = [0, 1, 255, 256, 1 << 40, u64::MAX];
        assert!(numbers.iter().all(|n| number(key(*n).bytes()) == *n));
        assert!(numbers.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
    }

    #[test]
    fn a_flush_covers_all_keys_in_tables_of_the_size_asked_for() {
        let tables = spread(1_000_000, &[], 10_000, 100, 256_000);
        assert_eq!(tables.len(), 4);
        assert_eq!((tables[0].smallest, tables[3].largest), (0, 999_999));
        assert_eq!(tables.iter().map(|table| table.entries).sum::<u64>(), 10_000);
        assert!(tables.windows(2).all(|pair| pair[0].largest + 1 == pair[1].smallest));
        // Many more writes than keys touch every key. A few writes touch as many keys as there are
        // writes.
        assert_eq!(distinct(100, 10_000), 100);
        assert_eq!(distinct(1 << 40, 10_000), 10_000);
    }
}
