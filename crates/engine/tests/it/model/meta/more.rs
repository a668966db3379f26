//! What each further operation does: files taken in, a secondary, holds, and jobs that are
//! interfered with.

use std::collections::BTreeMap;

use sateen::test_support::Interference;
use sateen::{Error, IngestOptions, ReadOptions, SstFileWriter, WaitForCompactOptions};

use super::keys::{Db, turned};
use super::model::{Change, Value, What};
use super::ops::{self, Kind};
use super::world::{PATH, World, vfs_of};
use crate::support::common::Random;

/// So often a hold or a pause is asked for before one is ended.
const HOLDS_MAX: u32 = 2;

impl World {
    pub(super) fn more(&mut self, kind: Kind, random: &mut Random) {
        match kind {
            Kind::Ingest => self.ingest(random),
            Kind::MayContain => self.may_contain(random),
            Kind::OpenSecondary => self.open_secondary(),
            Kind::WaitForCompact => {
                let flush = random.one_in(2);
                let options = WaitForCompactOptions { flush, ..Default::default() };
                let waited = self.db.wait_for_compact(&options);
                if self.settle("wait_for_compact", waited).is_some() && flush {
                    let ids: Vec<u32> = self.live.iter().map(sateen::ColumnFamily::id).collect();
                    ids.into_iter().for_each(|id| self.model.is_stored(id));
                }
            }
            Kind::PauseManual if self.manual_paused < HOLDS_MAX => {
                self.db.pause_manual_compactions();
                self.manual_paused += 1;
            }
            Kind::ResumeManual if self.manual_paused > 0 => {
                self.db.resume_manual_compactions();
                self.manual_paused -= 1;
            }
            Kind::HoldFiles if self.files_held < HOLDS_MAX => {
                self.db.disable_file_deletions();
                self.files_held += 1;
            }
            Kind::ReleaseFiles if self.files_held > 0 => {
                self.db.enable_file_deletions();
                self.files_held -= 1;
            }
            Kind::Interfere => {
                for step in 0..=random.below(12) {
                    self.calls += u64::from(step > 0);
                    let number = random.next();
                    self.db.interfere(match random.below(6) {
                        0 => Interference::Discard(number),
                        1 => Interference::FinishEarly(number),
                        2 | 3 => Interference::Adjust(number),
                        _ => Interference::NextStep(number),
                    });
                    self.settle("a step", self.db.step());
                }
            }
            Kind::PauseManual | Kind::ResumeManual | Kind::HoldFiles | Kind::ReleaseFiles => {}
            other => self.look(other, random),
        }
    }

    /// What was asked for to be kept or paused is let go.
    pub(super) fn let_go(&mut self) {
        (0..std::mem::take(&mut self.manual_paused))
            .for_each(|_| self.db.resume_manual_compactions());
        (0..std::mem::take(&mut self.files_held)).for_each(|_| self.db.enable_file_deletions());
    }

    /// A file of puts and deletions of its own keys, perhaps with a range that it deletes.
    fn ingest(&mut self, random: &mut Random) {
        let family = self.family(random);
        let mut entries: BTreeMap<Vec<u8>, Option<Value>> = BTreeMap::new();
        for _ in 0..=random.below(30) {
            let value = (!random.one_in(4)).then(|| ops::value(random));
            entries.insert(ops::key(random), value);
        }
        // Past the log all is stored first: what is taken in is durable, whatever came before it.
        let stored = self.db.flush_all();
        if self.settle("a flush", stored).is_none() {
            return;
        }
        let ids: Vec<u32> = self.live.iter().map(sateen::ColumnFamily::id).collect();
        ids.into_iter().for_each(|id| self.model.is_stored(id));
        self.made += 1;
        let path = std::path::PathBuf::from(format!("/outside{}", self.made));
        // Made elsewhere, by somebody whose disk is well.
        let vfs = vfs_of(&self.mem, None);
        let mut options = self.db.options();
        options.column_family = family.options();
        let mut writer = SstFileWriter::create_with(vfs.clone(), &path, &options).unwrap();
        let mirrored = self.db.mirrored();
        for (key, value) in &entries {
            let key = if mirrored { turned(key) } else { key.clone() };
            match value {
                Some(value) => writer.put(key, value).unwrap(),
                None => writer.delete(key).unwrap(),
            }
        }
        writer.finish().unwrap();
        let options = IngestOptions { move_files: random.one_in(2), ..Default::default() };
        let taken = family.ingest(&[&path], &options);
        // What was taken in stays so, if only its file cannot be removed then.
        let applied = match &taken {
            Err(Error::Io { operation: "remove", path: of, .. }) => *of == path,
            _ => false,
        };
        let change = |(key, value): (Vec<u8>, Option<Value>)| {
            let what = value.map_or(What::Delete, What::Put);
            Change { family: family.id(), key, what }
        };
        let changes: Vec<Change> = entries.into_iter().map(change).collect();
        match taken {
            Ok(()) => {
                self.model.commit(changes, false, true);
                self.model.is_stored(family.id());
            }
            Err(error) => {
                assert!(self.tainted, "a file was not taken in: {error}");
                if applied {
                    self.model.commit(changes, true, false);
                } else {
                    self.model.maybe(changes, true);
                }
                self.mend(true);
            }
        }
        if vfs.exists(&path).unwrap() {
            vfs.remove(&path).unwrap();
        }
    }

    /// What is there may be there.
    fn may_contain(&mut self, random: &mut Random) {
        let family = self.family(random);
        let key = ops::key(random);
        let there = self.model.get(family.id(), &key, self.model.now()).is_some();
        let may = self.db.may_contain(&family, &key, &ReadOptions::default());
        if let Some(may) = self.settle("may_contain", may) {
            assert!(may || !there, "{:?} cannot be there and is", key.escape_ascii().to_string());
        }
    }

    /// A secondary of a primary that is open shows all of it, and changes nothing.
    fn open_secondary(&mut self) {
        if self.tainted {
            return;
        }
        let vfs = vfs_of(&self.mem, None);
        let before = self.mem.fingerprint();
        let opened = sateen::Db::open_secondary_with(vfs, PATH, self.options.clone(), &[]);
        let secondary = match opened {
            Ok(db) => Db::from(db),
            // What is kept in memory alone cannot be followed.
            Err(error) => {
                assert!(!matches!(error, Error::Io { .. }), "a secondary: {error}");
                return;
            }
        };
        secondary.try_catch_up_with_primary().unwrap();
        let mut found = BTreeMap::new();
        for name in secondary.column_families() {
            let family = secondary.column_family(&name).unwrap();
            let view = World::read(&secondary, &family, &ReadOptions::default()).unwrap();
            found.insert(family.id(), view);
        }
        if let Err(why) = self.model.allows(&found, !self.doubt) {
            panic!("opened beside: {why}");
        }
        assert!(matches!(secondary.put("key", "value"), Err(Error::ReadOnly(_))));
        secondary.close().unwrap();
        assert_eq!(self.mem.fingerprint(), before, "a secondary changed the directory");
    }
}
