//! Flushes of one column family, and of all together.

use sateen_control::compaction::Stripes;
use sateen_control::version::AddedTable;
use sateen_control::{ColumnFamilyId, Epoch, FlushMember, JobId, VersionEdit};

use super::{Entries, Job, Work, World, key};

impl World {
    pub(super) fn start_flush(&mut self, job: JobId, members: Vec<FlushMember>) {
        for FlushMember { cf, memtables, .. } in &members {
            assert!(*memtables as usize <= self.families[cf].sealed.len());
            let flushes = |job: &Job| match &job.work {
                Work::Flush(members) => members.iter().any(|member| member.cf == *cf),
                Work::Compaction(_) => false,
            };
            assert!(!self.jobs.values().any(flushes), "two flushes of one column family");
        }
        self.start(job, Work::Flush(members));
    }

    pub(super) fn finish_flush(&mut self, cf: ColumnFamilyId, memtables: usize, stripes: &Stripes) {
        let family = self.families.get_mut(&cf).unwrap();
        let merged: Entries = family.sealed.drain(..memtables).flatten().collect();
        self.last_epoch += 1;
        let epoch = Epoch(self.last_epoch);
        // Flushes may cut their run into several tables.
        let cut = 10 + self.random.below(100) as usize;
        let mut added = Vec::new();
        let stripe = |n: u64| stripes.partition_point(|start| *start <= key(n));
        let entries: Vec<_> = merged.into_iter().collect();
        let stripes = entries.chunk_by(|a, b| stripe(a.0) == stripe(b.0));
        for chunk in stripes.flat_map(|entries| entries.chunks(cut)) {
            let table = self.table(chunk.iter().copied().collect());
            added.push(AddedTable { level: 0, epoch, table });
        }
        self.install(cf, &VersionEdit { column_family: cf, added, ..VersionEdit::default() });
        self.memtables_changed(cf);
    }
}
