//! Transactions, and batches whose entries can be read before they are written.
//!
//! 1. [`index`] keeps the entries of a batch in a private memtable for each column family.
//! 2. [`batch_with_index`] is such a batch as clients use it.
//! 3. [`transaction`] adds a snapshot, and keys that nobody else may write before the commit
//!    ([`tracked`]). A pessimistic one locks them ([`locks`]).
//! 4. [`prepared`] makes a pessimistic transaction survive a crash before its commit.
//!
//! The commit is in `write/validated.rs`.

pub(crate) mod batch_with_index;
mod index;
mod locks;
pub(crate) mod prepared;
mod tracked;
pub(crate) mod transaction;

pub(crate) use transaction::{Transaction, placeholder};
