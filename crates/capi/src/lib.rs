//! Sateen behind the names of RocksDB's C header: a program that links `librocksdb` can link
//! `libsateen_rocksdb` instead. `include/rocksdb/c.h` declares the functions, and
//! `docs/c_abi/options.md` tells what each option becomes. Declared functions that are not
//! implemented are in `stubs`.
//!
//! Invariants of every function here:
//! - no panic reaches C: [`abi::guard`] surrounds everything that can fail;
//! - memory that C frees with `free` comes from `malloc`, and an error is freed before another one
//!   replaces it;
//! - a handle keeps alive what it needs, so that handles can be freed in any order.
//!
//! # Safety
//! All functions trust C: a pointer is null where that has a meaning, or points to its type for the
//! time of the call. A handle comes from the function that makes it and is not used after the one
//! that frees it.
#![expect(unsafe_code, reason = "pointers from and to C")]
#![expect(clippy::missing_safety_doc, reason = "the contract of all functions is above")]

pub mod abi;
pub mod accepted;
pub mod backup_options;
pub mod backups;
pub mod batch;
pub mod batch_index;
pub mod batch_index_reads;
pub mod batch_parts;
pub mod cache;
mod callbacks;
pub mod calls;
pub mod checksums;
pub mod compact_files;
pub mod compaction_filter;
pub mod compaction_styles;
pub mod comparator;
mod counters;
pub mod database;
pub mod db;
pub mod environment;
pub mod exports;
pub mod families;
pub mod file_manager;
mod getters;
mod handles;
pub mod info_log;
pub mod ingest;
pub mod iter;
pub mod job_info;
pub mod listeners;
pub mod live_files;
pub mod log;
pub mod mapped;
pub mod memory;
pub mod merge;
mod moves;
pub mod odd_options;
pub mod older;
pub mod option_names;
mod option_values;
pub mod options;
pub mod perf;
pub mod prefix;
pub mod promises;
pub mod read_metadata;
pub mod reads;
pub mod remote_compaction;
pub mod secondary;
mod settings;
pub mod sizes;
pub mod statistics;
pub mod storage_info;
pub mod stored_options;
mod stubs;
pub mod table_options;
pub mod table_properties;
pub mod timestamp_updates;
pub mod timestamp_writes;
pub mod timestamps;
pub mod traces;
pub mod transaction_data;
pub mod transaction_dbs;
pub mod transaction_options;
pub mod transactions;
pub mod ttl;
pub mod upkeep;
mod value_codes;
pub mod value_file_info;
pub mod value_files;
pub mod wal_files;
pub mod wal_filter;
pub mod work;
pub mod write_buffers;
