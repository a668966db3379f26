//! The arguments that name a database, its options and a column family.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

/// A database and the options to open it with.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// Use the database in this directory
    pub(crate) db: PathBuf,
    /// Start from the options of a profile: sateen, rocksdb, leveldb, …
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Set an option, such as block_cache_bytes=256MiB; may be repeated
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = bytes())]
    pub(crate) settings: Vec<String>,
}

/// A column family of a database.
#[derive(Debug, Args)]
pub(crate) struct Family {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Use this column family
    #[arg(
        long,
        alias = "column_family",
        value_name = "NAME",
        default_value = "default",
        value_parser = bytes()
    )]
    pub(crate) cf: String,
}

/// Accepts an argument of any bytes, and returns the engine's text for them.
pub(crate) fn bytes() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new()
        .map(|argument| sateen::text_of_bytes(argument.as_bytes()).into_owned())
}
