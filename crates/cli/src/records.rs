//! The arguments of the verbs that print and read records.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::place::Family;
use crate::text::{Format, Typed};

#[derive(Debug, Args)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) family: Family,
    /// Begin at this key
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// Print only keys that begin with this prefix
    #[arg(long, value_name = "KEY")]
    pub(crate) prefix: Option<OsString>,
    /// Print at most this many records
    #[arg(long, alias = "max_keys", value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Print from the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Print records in this format [default: tsv, or jsonl with --json, or by the file's
    /// extension]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) typed: Typed,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) family: Family,
    /// Load this file; without it, or with -, load standard input
    pub(crate) file: Option<PathBuf>,
    /// Read records in this format [default: by the file's extension; tsv for standard input]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) typed: Typed,
    /// Read backslashes in tsv as themselves
    #[arg(long)]
    pub(crate) no_escapes: bool,
    /// Skip the first record
    #[arg(long)]
    pub(crate) header: bool,
    /// Read and check all records, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Create the column family if it is missing
    #[arg(long)]
    pub(crate) create_cf: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) scan: Scan,
    /// Write this file
    pub(crate) file: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
}
