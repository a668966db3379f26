//! Scenario of backups: only the disk of the database fails, and what a backup has is what the
//! database had.

use std::sync::Arc;

use sateen::vfs::MemVfs;
use sateen::{BackupEngine, CreateBackupOptions, DirectoryStore, RestoreOptions};

use super::run::Run;
use crate::support::common::as_vfs;

/// Two backups, one of what is in WALs and one of tables alone. The second shares with the first.
pub(super) fn made(run: &mut Run) -> Option<()> {
    let target = MemVfs::new();
    let db = run.open()?;
    for (round, flush) in [false, true].into_iter().enumerate() {
        for _ in 0..12 {
            run.commit(&db, false)?;
            run.steps(&db, 1)?;
        }
        let options = CreateBackupOptions { flush, ..CreateBackupOptions::default() };
        let id = run.insist(&db, |db| {
            let store = DirectoryStore::new(as_vfs(&target), "/backups");
            let mut engine = BackupEngine::open_with(Arc::new(store))?;
            Ok(engine.create_with(db, &options)?.id)
        })?;
        let store = DirectoryStore::new(as_vfs(&target), "/backups");
        let engine = BackupEngine::open_with(Arc::new(store)).unwrap();
        assert_eq!(engine.list().unwrap().len(), round + 1, "{}: one for each", run.what);
        let report = engine.verify(id).unwrap();
        assert!(report.is_sound(), "{}: {report:?}", run.what);
        // What failed before has left nothing.
        let restored = MemVfs::new();
        let options = RestoreOptions::default();
        engine.restore_with(as_vfs(&restored), id, "/restored", &options).unwrap();
        run.look_at_copy_on(&restored, "/restored", run.done);
    }
    run.finish(db)
}
