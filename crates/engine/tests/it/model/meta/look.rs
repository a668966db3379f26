//! What each operation does that only looks, and how disks begin to fail.

use sateen::vfs::{Fault, FaultRule, VfsOperation};
use sateen::{Options, PROPERTIES};

use super::draw::at_times;
use super::ops::{self, Kind};
use super::world::World;
use crate::support::common::Random;

impl World {
    pub(super) fn look(&mut self, kind: Kind, random: &mut Random) {
        let family = self.family(random);
        match kind {
            Kind::Check => {
                if let Some(report) = self.settle("check", self.db.check(&mut |_, _| {})) {
                    let fine = report.problems.is_empty() || self.tainted;
                    assert!(fine, "{:#?}", report.problems);
                }
            }
            Kind::Properties => {
                for name in PROPERTIES {
                    let name = name.replace("<N>", "0");
                    let text = family.property(&format!("rocksdb.{name}"));
                    assert!(text.is_some(), "{name}");
                }
                assert_eq!(self.db.property("sateen.no-such-thing"), None);
                let snapshots = self.db.property("sateen.num-snapshots").unwrap();
                let held = self.snapshots.len();
                assert!(snapshots.parse::<usize>().unwrap() <= held, "{snapshots} of {held}");
            }
            Kind::Metrics => {
                let metrics = self.db.metrics();
                assert_eq!(metrics.column_families.len(), self.live.len());
                assert!(self.tainted || metrics.health == "ok", "{:?}", metrics.health_cause);
            }
            Kind::ApproximateSize => {
                let (low, high) = (ops::key(random), ops::key(random));
                let size = self.db.approximate_size(&family, &low, &high);
                let all = self.db.approximate_size(&family, b"", &[0xff; 16]);
                assert!(size <= all, "a part is larger than the whole");
                assert!(low < high || size == 0);
            }
            Kind::OptionsText => {
                let options = self.db.options();
                // No text says what a comparator does.
                let comparator = &options.column_family.comparator;
                let named = format!("comparator = {}\n", comparator.name());
                let text = options.to_text().replace(&named, "comparator = bytewise\n");
                let mut read = Options::from_str_list(&text).unwrap();
                read.column_family.comparator = comparator.clone();
                // What no text has: it is a thing that others have, too.
                read.shared_block_cache = options.shared_block_cache.clone();
                // No text says what a function does.
                read.column_family.merge_operator = options.column_family.merge_operator.clone();
                let filter = &options.column_family.compaction_filter;
                read.column_family.compaction_filter = filter.clone();
                assert_eq!(read, options);
            }
            Kind::FaultBegin => self.begin_fault(random),
            Kind::FaultClear => self.mend(random.one_in(4)),
            other => unreachable!("{other:?} is done elsewhere"),
        }
    }

    fn begin_fault(&mut self, random: &mut Random) {
        let Some(faults) = &self.faults else { return };
        let fault = match random.below(6) {
            0 => Fault::NoSpace,
            1 => Fault::Interrupted,
            // What was written must not change, or there would be nothing to compare with.
            2 => Fault::FlippedBit,
            3 => Fault::Short,
            _ => Fault::Io,
        };
        let operations = [
            VfsOperation::Write,
            VfsOperation::Sync,
            VfsOperation::Create,
            VfsOperation::SyncDir,
            VfsOperation::Rename,
            VfsOperation::Remove,
            VfsOperation::PunchHole,
            VfsOperation::HardLink,
            VfsOperation::Open,
            VfsOperation::Len,
            VfsOperation::List,
        ];
        let rule = FaultRule::new(fault);
        let rule = match fault {
            Fault::FlippedBit => rule.on(VfsOperation::Read).path_class("sat"),
            Fault::Short => rule.on(VfsOperation::Write),
            _ if random.one_in(4) => rule.on(VfsOperation::Read),
            _ if random.one_in(6) => rule,
            _ => rule.on(operations[random.below(operations.len() as u64) as usize]),
        };
        faults.add(at_times(rule, random));
        self.tainted = true;
        self.doubt = true;
    }
}
