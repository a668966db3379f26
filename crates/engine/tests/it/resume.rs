//! After a database was made to work again it loses as little as before.

use std::sync::Arc;

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, VfsOperation};
use sateen::{Db, WalMode, WriteOptions};

use crate::common::{as_vfs, assert_sound, tiny};

/// A log that was prepared before the one in use died comes too early in the order of numbers.
#[test]
fn a_log_prepared_before_the_failure_is_not_written_to() {
    for (wal, choice) in [
        (WalMode::SyncEachWrite, CrashChoice::SyncedOnly),
        (WalMode::Buffered, CrashChoice::Everything),
    ] {
        let mem = MemVfs::new();
        let faulty = FaultVfs::new(as_vfs(&mem));
        let mut options = tiny();
        options.wal = wal;
        let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        // The next log is made now; no memtable has anything.
        while db.step().unwrap() {}
        faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
        db.put("refused", "2").unwrap_err();
        faulty.clear();
        db.resume().unwrap();
        for round in 0..4 {
            db.put(format!("before{round}"), "3").unwrap();
            db.flush().unwrap();
            db.put(format!("after{round}"), "4").unwrap();
            let image =
                Db::open_with(as_vfs(&mem.crash_image(choice)), "/db", options.clone(), &[]);
            let image = image.unwrap();
            for key in ["a".to_owned(), format!("before{round}"), format!("after{round}")] {
                assert!(
                    image.get(&key).unwrap().is_some(),
                    "{wal:?}, round {round}: {key} is lost"
                );
            }
            assert_eq!(image.get("refused").unwrap(), None);
            assert_sound(&image);
        }
        let sync = WriteOptions::sync();
        db.put_cf(&db.default_column_family(), "b", "5", &sync).unwrap();
        db.close().unwrap();
    }
}
