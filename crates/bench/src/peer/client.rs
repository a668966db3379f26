//! The operations of one thread on a peer, by the functions that RocksDB and LevelDB share.
#![expect(unsafe_code, reason = "calls to C functions")]

use std::hint::black_box;

use sateen_peers::{Handle, Slice, bytes, chars};

use super::{Peer, call};
use crate::Result;
use crate::store::{Client, Wal};

/// A client of an open database.
pub(super) struct PeerClient<'a, P: Peer> {
    peer: &'a P,
    read: Handle,
    write: Handle,
    batch: Handle,
    spare: Vec<u8>,
}

impl<'a, P: Peer> PeerClient<'a, P> {
    /// Makes a client whose writes are as durable as `wal` says. `adjust` may set more of the
    /// options of writes.
    pub(super) fn new(peer: &'a P, wal: Wal, adjust: impl FnOnce(Handle)) -> PeerClient<'a, P> {
        let functions = peer.functions();
        // SAFETY: constructors; the setter gets the handle that it wants.
        unsafe {
            let write = (functions.writeoptions_create)();
            (functions.writeoptions_set_sync)(write, u8::from(wal == Wal::Sync));
            adjust(write);
            PeerClient {
                peer,
                read: (functions.readoptions_create)(),
                write,
                batch: (functions.writebatch_create)(),
                spare: Vec::new(),
            }
        }
    }
}

impl<P: Peer> Drop for PeerClient<'_, P> {
    fn drop(&mut self) {
        let functions = self.peer.functions();
        // SAFETY: each was made by its constructor and is destroyed once.
        unsafe {
            (functions.readoptions_destroy)(self.read);
            (functions.writeoptions_destroy)(self.write);
            (functions.writebatch_destroy)(self.batch);
        }
    }
}

impl<P: Peer> Client for PeerClient<'_, P> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (functions, db) = (self.peer.functions(), self.peer.database());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            call(functions, |error| {
                let (k, v) = (chars(key), chars(value));
                (functions.put)(db, self.write, k, key.len(), v, value.len(), error);
            })
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (functions, db) = (self.peer.functions(), self.peer.database());
        // SAFETY: the slice outlives the call, which copies it.
        unsafe {
            call(functions, |error| {
                (functions.delete)(db, self.write, chars(key), key.len(), error);
            })
        }
    }

    #[inline]
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.peer.get(self.read, key, value)
    }

    fn multi_get(&mut self, keys: &[&[u8]]) -> Result<u32> {
        self.peer.multi_get(self.read, keys, &mut self.spare)
    }

    fn scan(&mut self, start: &[u8], entries: u32) -> Result<u32> {
        let (functions, db) = (self.peer.functions(), self.peer.database());
        let mut count = 0;
        // SAFETY: the iterator is fresh and destroyed once; key and value are looked at only
        // while it is valid and before it moves.
        unsafe {
            let iterator = (functions.create_iterator)(db, self.read);
            (functions.iter_seek)(iterator, chars(start), start.len());
            let slices = functions.iter_key_slice.zip(functions.iter_value_slice);
            while count < entries && (functions.iter_valid)(iterator) != 0 {
                let (key, value) = if let Some((key, value)) = slices {
                    (key(iterator), value(iterator))
                } else {
                    let mut key = Slice { data: std::ptr::null(), size: 0 };
                    let mut value = key;
                    key.data = (functions.iter_key)(iterator, &mut key.size);
                    value.data = (functions.iter_value)(iterator, &mut value.size);
                    (key, value)
                };
                black_box((bytes(key.data, key.size).last(), bytes(value.data, value.size).last()));
                (functions.iter_next)(iterator);
                count += 1;
            }
            let result = call(functions, |error| (functions.iter_get_error)(iterator, error));
            (functions.iter_destroy)(iterator);
            result.map(|()| count)
        }
    }

    fn write_batch(&mut self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let (functions, db) = (self.peer.functions(), self.peer.database());
        // SAFETY: the batch is ours; it copies what it is given.
        unsafe {
            (functions.writebatch_clear)(self.batch);
            for (key, value) in entries {
                match value {
                    Some(value) => {
                        let (k, v) = (chars(key), chars(value));
                        (functions.writebatch_put)(self.batch, k, key.len(), v, value.len());
                    }
                    None => (functions.writebatch_delete)(self.batch, chars(key), key.len()),
                }
            }
            call(functions, |error| (functions.write)(db, self.write, self.batch, error))
        }
    }
}
