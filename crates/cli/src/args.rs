//! The command line: what can be asked, and the help that explains it with examples.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use sateen_bench::{BenchArgs, DemoArgs};

use crate::import::Import;
use crate::sim::SimArgs;
use crate::text::{Encoding, Format};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it failed: a file or database is missing or cannot be used, or damage was found
  2  the command line is wrong, or an option in it
  3  the key, column family or property is not there
  4  check, scrub or repair could not read everything; what they read is whole
  130  it was interrupted";

/// Sateen: an ordered key-value store with a flat latency tail
#[derive(Debug, Parser)]
#[command(name = "sateen", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) noun: Noun,
}

impl Cli {
    /// True if results and errors are wanted as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.noun {
            Noun::Db(verbs) => verbs.json,
            Noun::Table(verbs) | Noun::Wal(verbs) | Noun::Manifest(verbs) => verbs.json,
            // Theirs is a file to write.
            Noun::Bench(_) | Noun::Demo(_) | Noun::Sim(_) => false,
        }
    }
}

/// The verbs of a noun, and what all of them take.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Verbs<V: Subcommand> {
    /// Print results, and errors, as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: V,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Noun {
    /// Work with a database
    Db(Verbs<DbVerb>),
    /// Look into a file of tables
    Table(Verbs<DumpVerb>),
    /// Look into a write-ahead log
    Wal(Verbs<DumpVerb>),
    /// Look into a manifest
    Manifest(Verbs<DumpVerb>),
    /// Measure the store, and others beside it, under load
    Bench(Box<BenchArgs>),
    /// See how policies fare under load, in virtual time
    Sim(Box<SimArgs>),
    /// See it serve bursts of load on this disk, with a picture of the latency over time
    #[command(after_help = "\
Examples:
  sateen demo
  sateen demo --seconds 20 --html /tmp/latency.html")]
    Demo(DemoArgs),
}

/// A database, and with which options to open it.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// Start from the options of a profile, such as rocksdb or leveldb
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Open with an option set, as block_cache_bytes=256MiB; may be repeated
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = bytes())]
    pub(crate) settings: Vec<String>,
}

/// A column family of a database.
#[derive(Debug, Args)]
pub(crate) struct Family {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The column family
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = bytes())]
    pub(crate) cf: String,
}

/// Takes an argument whatever its bytes are, as the engine's text for them.
pub(crate) fn bytes() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new()
        .map(|argument| sateen::text_of_bytes(argument.as_bytes()).into_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbVerb {
    /// Print the value of a key
    #[command(after_help = "\
Examples:
  sateen db get library walden
  sateen db get library 00ff --encoding hex
  sateen db get library walden --json

Ends with 3 if the key is not there.")]
    Get {
        #[command(flatten)]
        family: Family,
        /// The key
        key: OsString,
        /// How keys and values are written
        #[arg(long, value_enum, default_value = "text")]
        encoding: Encoding,
    },
    /// Set the value of a key, making the database if there is none
    #[command(after_help = "\
Examples:
  sateen db put library walden 'Thoreau, 1854'
  sateen db put library cover < cover.png
  sateen db put library 00ff cafe --encoding hex --sync")]
    Put {
        #[command(flatten)]
        family: Family,
        /// The key
        key: OsString,
        /// The value; without it, standard input
        value: Option<OsString>,
        /// How keys and values are written
        #[arg(long, value_enum, default_value = "text")]
        encoding: Encoding,
        /// Durable before the command returns
        #[arg(long)]
        sync: bool,
        /// Make the column family if there is none
        #[arg(long)]
        create_cf: bool,
    },
    /// Delete keys; those that are not there are passed over
    #[command(after_help = "\
Examples:
  sateen db delete library walden
  sateen db delete library 00ff 0100 --encoding hex")]
    Delete {
        #[command(flatten)]
        family: Family,
        /// The keys
        #[arg(required = true)]
        keys: Vec<OsString>,
        /// How keys are written
        #[arg(long, value_enum, default_value = "text")]
        encoding: Encoding,
        /// Durable before the command returns
        #[arg(long)]
        sync: bool,
    },
    /// Print keys and values in order
    #[command(
        visible_alias = "dump",
        after_help = "\
Examples:
  sateen db scan library --prefix w --limit 10
  sateen db scan library --from a --to n --reverse
  sateen db scan library --format jsonl > library.jsonl

What scan prints, load takes back.

Another process may write the database meanwhile. The records are of one moment, for as long as that
process keeps what they are read from (its options reader_lease_seconds and reader_lease_bytes).
After that the scan goes on behind the last key with what is there then, and says so."
    )]
    Scan(Scan),
    /// Load keys and values from a file or standard input, making the database if there is none
    #[command(after_help = "\
Examples:
  sateen db load library books.tsv
  zcat books.csv.gz | sateen db load library --format csv --header
  sateen db load library books.jsonl --dry-run

Formats: tsv (key, tab, value; \\t \\n \\r \\\\ \\xHH are escapes), csv (RFC 4180, two fields),
jsonl (one object a line with key and value, or key_hex, key_base64, value_hex, value_base64).

A line that is no record ends the load with its number. Then the database holds every record
before it and none after. Ctrl-C ends it likewise, with 130. What a load wrote is durable when the
command returns.")]
    Load(Load),
    /// Make a database of one of RocksDB or LevelDB, through that store's own library
    #[command(after_help = "\
Examples:
  sateen db import rocksdb old new --library /usr/lib/x86_64-linux-gnu/librocksdb.so
  sateen db import rocksdb old new --library librocksdb.so --verify --set compression=zstd
  sateen db import leveldb old new --library /usr/lib/x86_64-linux-gnu/libleveldb.so

All column families are read, in order, and stored without a log. The source stays as it is. The
target is there when all of it is there and durable, not before: an import that ends early leaves
nothing under that name.")]
    Import(Import),
    /// Print what the database knows about itself
    #[command(after_help = "\
Examples:
  sateen db stats library
  sateen db stats library --prometheus

Another process may have the database open. Then it is named, and its own counters are not shown:
those here are of this command, which has just opened it.")]
    Stats {
        #[command(flatten)]
        place: Place,
        /// In the text format of Prometheus
        #[arg(long)]
        prometheus: bool,
    },
    /// Read every byte and check that all of it is right
    #[command(
        visible_alias = "checkconsistency",
        after_help = "\
Examples:
  sateen db check library
  sateen db check library --json

The database may be open in another process, and goes on meanwhile. Nothing is changed or locked. Of
a damaged database it says what it can. Ends with 1 if anything is damaged; each finding names the
file and the offset. Ends with 4 if nothing is damaged but the operating system refused to read
something: no permission, too many open files, an I/O error."
    )]
    Check {
        #[command(flatten)]
        place: Place,
    },
    /// Verify every checksum of all tables and logs, as a database may do by itself
    #[command(after_help = "\
Examples:
  sateen db scrub library
  sateen db scrub library --rate 50

No other process may have the database open; one that has it does the same with the option
scrub_interval_seconds. Ends with 1 if anything is damaged, with 4 if something could not be
read.")]
    Scrub {
        #[command(flatten)]
        place: Place,
        /// MB a second, at most
        #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
        rate: Option<u64>,
    },
    /// Make a second database of the same contents, sharing files where possible
    #[command(after_help = "\
Examples:
  sateen db checkpoint library backup/today

The target must not exist.")]
    Checkpoint {
        #[command(flatten)]
        place: Place,
        /// The directory to make
        target: PathBuf,
    },
    /// Merge what is stored, so that reads have less to look at and deleted data goes
    #[command(after_help = "\
Examples:
  sateen db compact library
  sateen db compact library --from a --to n")]
    Compact {
        #[command(flatten)]
        family: Family,
        /// The first key
        #[arg(long, value_name = "KEY")]
        from: Option<OsString>,
        /// The last key
        #[arg(long, value_name = "KEY")]
        to: Option<OsString>,
        /// How keys are written
        #[arg(long, value_enum, default_value = "text")]
        encoding: Encoding,
        /// Rewrite the lowest level, too
        #[arg(long)]
        rewrite_last_level: bool,
    },
    /// Make a damaged database usable again with what can be read
    #[command(after_help = "\
Examples:
  sateen db repair library
  sateen db repair library --json

What is damaged is missed from then on, and named. Damaged files are kept in the directory lost,
beside what was made of them. Ends with 1 if anything is lost. Ends with 4 and changes nothing if
the operating system refuses to read something: no permission, too many open files, an I/O
error.")]
    Repair {
        #[command(flatten)]
        place: Place,
        /// Take what the device cannot read (EIO) for damaged, and give it up
        #[arg(long)]
        give_up_unreadable: bool,
    },
    /// Remove a database, whole or damaged; what is not part of it stays
    #[command(after_help = "\
Examples:
  sateen db destroy library --yes
  sateen db destroy library --yes --set wal_dir=/mnt/logs

The files are removed for good, those of an earlier repair in the directory lost, too. Ends with 1
if the database is open, or if there is none.")]
    Destroy {
        #[command(flatten)]
        place: Place,
        /// Do it: without this nothing is removed
        #[arg(long)]
        yes: bool,
    },
    /// Print properties by name, or all of them
    #[command(after_help = "\
Examples:
  sateen db properties library
  sateen db properties library sateen.levelstats
  sateen db properties library --options")]
    Properties {
        #[command(flatten)]
        family: Family,
        /// The properties
        names: Vec<String>,
        /// The options in force instead
        #[arg(long)]
        options: bool,
    },
    /// Print the names of the column families
    #[command(
        visible_alias = "list_column_families",
        after_help = "\
Examples:
  sateen db families library"
    )]
    Families {
        #[command(flatten)]
        place: Place,
    },
    /// Print every option: its name, default, what it takes and means
    #[command(after_help = "\
Examples:
  sateen db options
  sateen db options library
  sateen db options --profile leveldb

Of a database it shows what it was opened with last.")]
    Options {
        /// A database whose options to show
        #[arg(conflicts_with = "profile")]
        path: Option<PathBuf>,
        /// Show the values of a profile
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
}

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
    /// Only keys that begin so
    #[arg(long, value_name = "KEY")]
    pub(crate) prefix: Option<OsString>,
    /// At most so many records
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// How records are printed; with --json, jsonl
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// How keys and values are written
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) encoding: Encoding,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) family: Family,
    /// The file, or - for standard input, which is the default unless it is a terminal
    pub(crate) file: Option<PathBuf>,
    /// How records look; by default what the file's name says, tsv for standard input
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// How keys and values are written
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) encoding: Encoding,
    /// Take backslashes in tsv for themselves
    #[arg(long)]
    pub(crate) no_escapes: bool,
    /// Pass over the first record
    #[arg(long)]
    pub(crate) header: bool,
    /// Read and check everything, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Make the column family if there is none
    #[arg(long)]
    pub(crate) create_cf: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DumpVerb {
    /// Print what the file says, record by record
    #[command(after_help = "\
Examples:
  sateen table dump library/000012.sat --limit 10
  sateen wal dump library/000013.wal --values
  sateen manifest dump library/MANIFEST-000004 --json

Of a file of tables the header, the directory, and every entry: its key, sequence number, kind and
length, tabs between. Of a log or manifest the header, every record and what is in it, and how it
ended. With --json each piece is an object on a line; bytes that are no text are in hexadecimal
under a name that ends in _hex.

The file is not changed. Ends with 1 at the first damage, having printed what is before it.")]
    Dump {
        /// The file
        file: PathBuf,
        /// Values, too, not only their lengths
        #[arg(long)]
        values: bool,
        /// At most so many entries of tables, or records of a log or manifest
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_help_with_examples() {
        let cli = Cli::command();
        for noun in cli.get_subcommands() {
            for verb in noun.get_subcommands() {
                let name = format!("{} {}", noun.get_name(), verb.get_name());
                assert!(verb.get_about().is_some(), "{name}");
                let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(
                    help.contains(&format!("sateen {name}")) || noun.get_name() != "db",
                    "{name}"
                );
                assert!(help.contains("Examples:"), "{name}");
            }
        }
    }

    #[test]
    fn json_is_taken_anywhere() {
        for line in ["sateen db --json get a b", "sateen db get a b --json"] {
            assert!(Cli::try_parse_from(line.split(' ')).unwrap().json(), "{line}");
        }
    }
}
