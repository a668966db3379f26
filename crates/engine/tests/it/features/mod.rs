//! What users do, feature by feature.

mod backups;
mod backups_of_values;
pub(crate) mod basics;
pub(crate) mod call_options;
pub(crate) mod destroy;
pub(crate) mod filter;
pub(crate) mod ingest;
pub(crate) mod listeners;
pub(crate) mod locks;
pub(crate) mod log_data;
pub(crate) mod merge;
pub(crate) mod perf;
pub(crate) mod prefix;
pub(crate) mod profiles;
pub(crate) mod range;
pub(crate) mod ranges;
pub(crate) mod readers;
pub(crate) mod regions;
pub(crate) mod secondary;
pub(crate) mod seek_compaction;
pub(crate) mod stored;
pub(crate) mod styles;
pub(crate) mod tables;
pub(crate) mod transactions;
pub(crate) mod ttl;
pub(crate) mod updates;
pub(crate) mod values;
