//! Prepared transactions of an open database, by name.
//!
//! A prepared transaction is owned by its handle, or *parked*: nobody has it, and its locks stay.
//! After an open, all that were prepared before are parked. `txn/prepared.rs` reads and writes
//! them. What a failed prepare may have stored is remembered by its name, so that whoever gets the
//! name next removes it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use sateen_store::base::sync::{Mutex, lock};

use crate::admission::key_locks::{LockOwner, LockTarget};
use crate::batch::WriteBatch;

/// A prepared transaction that no handle has.
pub(crate) struct Parked {
    pub(crate) batch: WriteBatch,
    pub(crate) owner: LockOwner,
    /// What it has locked.
    pub(crate) locks: Vec<LockTarget>,
}

/// Where a prepared transaction is.
enum Place {
    /// A transaction that is not prepared yet has the name.
    Reserved,
    /// A handle has it.
    Taken,
    Parked(Parked),
    /// Nobody has the name. A prepare failed, and a batch of so many bytes may be stored.
    Left(usize),
}

/// The prepared transactions of a database.
#[derive(Default)]
pub(crate) struct Prepared(Mutex<Names>);

#[derive(Default)]
struct Names {
    /// True once those from before the open are here.
    loaded: bool,
    places: BTreeMap<Vec<u8>, Place>,
}

impl Prepared {
    /// Returns true if those from before the open are here.
    pub(crate) fn is_loaded(&self) -> bool {
        lock(&self.0).loaded
    }

    /// Adds those from before the open.
    pub(crate) fn load(&self, found: impl Iterator<Item = (Vec<u8>, Parked)>) {
        let mut names = lock(&self.0);
        names.places.extend(found.map(|(name, parked)| (name, Place::Parked(parked))));
        names.loaded = true;
    }

    /// Returns the names of all prepared transactions, ascending.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let names = lock(&self.0);
        let is_prepared = |place: &Place| matches!(place, Place::Taken | Place::Parked(_));
        let prepared = names.places.iter().filter(|(_, place)| is_prepared(place));
        prepared.map(|(name, _)| name.clone()).collect()
    }

    /// Gives `name` to a transaction that is not prepared yet, with the bytes that a failed prepare
    /// may have left under it. Returns `Err` if another transaction has it.
    pub(crate) fn reserve(&self, name: &[u8]) -> Result<Option<usize>, ()> {
        match lock(&self.0).places.entry(name.to_vec()) {
            Entry::Occupied(mut occupied) => match occupied.get() {
                Place::Left(bytes) => {
                    let bytes = *bytes;
                    occupied.insert(Place::Reserved);
                    Ok(Some(bytes))
                }
                Place::Reserved | Place::Taken | Place::Parked(_) => Err(()),
            },
            Entry::Vacant(vacant) => {
                vacant.insert(Place::Reserved);
                Ok(None)
            }
        }
    }

    /// Gives up `name`, under which a failed prepare may have stored a batch of so many bytes.
    pub(crate) fn leave(&self, name: Vec<u8>, bytes: usize) {
        lock(&self.0).places.insert(name, Place::Left(bytes));
    }

    /// Notes that the transaction that has `name` is prepared, and that a handle has it.
    pub(crate) fn prepared(&self, name: &[u8]) {
        lock(&self.0).places.insert(name.to_vec(), Place::Taken);
    }

    /// Forgets `name`, whose transaction is over.
    pub(crate) fn forget(&self, name: &[u8]) {
        lock(&self.0).places.remove(name);
    }

    /// Keeps a transaction whose handle was dropped.
    pub(crate) fn park(&self, name: Vec<u8>, parked: Parked) {
        lock(&self.0).places.insert(name, Place::Parked(parked));
    }

    /// Takes a parked transaction for a handle. `None` if there is none of this name, `Err` if a
    /// handle has it.
    pub(crate) fn take(&self, name: &[u8]) -> Result<Option<Parked>, ()> {
        let mut names = lock(&self.0);
        let Some(place) = names.places.get_mut(name) else { return Ok(None) };
        match std::mem::replace(place, Place::Taken) {
            Place::Parked(parked) => Ok(Some(parked)),
            Place::Taken => Err(()),
            unprepared @ (Place::Reserved | Place::Left(_)) => {
                *place = unprepared;
                Ok(None)
            }
        }
    }
}
