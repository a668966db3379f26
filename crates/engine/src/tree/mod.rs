//! Column families and their versions: what is where, and which version is current.

pub(crate) mod family_state;
pub(crate) mod version_set;
