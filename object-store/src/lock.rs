//! The object `LOCK`: whoever creates it may write.
//!
//! What must stay true: a handle removes only the lock that it has created.

use std::time::{SystemTime, UNIX_EPOCH};

use object_store::{ObjectStoreExt, PutMode, PutPayload};
use sateen::{Error, Result};

use crate::{Bucket, is_missing};

/// The name of the object.
pub(crate) const NAME: &str = "LOCK";

/// A lock that is held. Dropping it removes the object.
pub(crate) struct Lock {
    bucket: Bucket,
    /// What it contains: the process, and when.
    holder: String,
}

impl Lock {
    pub(crate) fn take(bucket: &Bucket) -> Result<Lock> {
        let holder = holder();
        let payload = PutPayload::from(holder.clone().into_bytes());
        let key = bucket.key(NAME);
        let created = bucket.store.put_opts(&key, payload, PutMode::Create.into());
        let Err(error) = bucket.wait("create", NAME, created) else {
            return Ok(Lock { bucket: bucket.clone(), holder });
        };
        let exists = matches!(
            &error,
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists
        );
        if !exists {
            return Err(error);
        }
        match read(bucket) {
            Ok(other) => Err(Error::Locked { path: bucket.location(NAME), holder: Some(other) }),
            // It was removed meanwhile.
            Err(error) if is_missing(&error) => {
                Err(Error::Locked { path: bucket.location(NAME), holder: None })
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Another one's, if somebody has broken this lock.
        if read(&self.bucket).is_ok_and(|holder| holder == self.holder) {
            let key = self.bucket.key(NAME);
            // What stays is told to the next one.
            let _stays = self.bucket.wait("remove", NAME, self.bucket.store.delete(&key));
        }
    }
}

fn read(bucket: &Bucket) -> Result<String> {
    let key = bucket.key(NAME);
    let bytes = bucket.wait("read", NAME, async { bucket.store.get(&key).await?.bytes().await })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a text that names this process and moment.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (process, nanos) = (std::process::id(), since.as_nanos());
    format!("process {process} of {}, since {nanos} ns after 1970", host.trim())
}
