//! The read path: point reads (`lookup`, of many keys `many`) and iterators (`db_iter`) over a
//! super version.

pub(crate) mod charging;
pub(crate) mod db_iter;
pub(crate) mod lookup;
pub(crate) mod many;
pub(crate) mod prefix_seek;
pub(crate) mod regions_iter;
