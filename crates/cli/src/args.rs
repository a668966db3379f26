//! The command line: commands, their arguments and their help. `help` groups the commands.
//!
//! Each line of help begins with a verb, and each help ends with examples. Tests check both.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sateen_bench::{BenchArgs, DemoArgs};

use crate::backup::{Backup, Backups, Restore};
use crate::device::BenchDevice;
use crate::diff::Diff;
use crate::dump::DumpVerb;
use crate::import::Import;
use crate::live::{ServeMetrics, SetOption};
use crate::log::Log;
use crate::place::{Family, Place};
use crate::records::{Export, Load, Scan};
use crate::rocksdb::RocksDbVerb;
use crate::sim::SimArgs;
use crate::text::{KeysCoded, Typed};
use crate::top::Top;
use crate::why::Why;

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    failed: a file or database is missing or cannot be used, or is damaged
  2    wrong command line, or an argument or option that is refused
  3    no such key, column family, property, backup or LOG
  4    check, scrub or repair could not read everything; what they read is sound
  130  interrupted

Examples:
  sateen demo
  sateen db put library walden 'Thoreau, 1854'
  sateen db get library walden
  sateen db scan library --prefix w --format jsonl
  sateen db stats library";

/// Use and measure Sateen, an embedded key-value store with a flat latency tail
#[derive(Debug, Parser)]
#[command(name = "sateen", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) noun: Noun,
}

impl Cli {
    /// True if results and errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.noun {
            Noun::Db(verbs) => verbs.json,
            Noun::Table(verbs) | Noun::Wal(verbs) | Noun::Manifest(verbs) => verbs.json,
            Noun::Demo(arguments) => arguments.json,
            Noun::RocksDb(verbs) => verbs.json,
            Noun::Top(arguments) => arguments.json,
            Noun::Why(arguments) => arguments.json,
            Noun::Log(arguments) => arguments.json,
            // Their `--json` names a file to write.
            Noun::Bench(_) | Noun::Sim(_) | Noun::ServeMetrics(_) => false,
        }
    }
}

/// The verbs of a noun, and the options that all of them take.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Verbs<V: Subcommand> {
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: V,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Noun {
    /// Read, change, inspect and maintain a database
    #[command(after_help = "\
Examples:
  sateen db put library walden 'Thoreau, 1854'
  sateen db scan library
  sateen db check library --json")]
    Db(Verbs<DbVerb>),
    /// Print a file of tables, entry by entry
    #[command(after_help = "\
Examples:
  sateen table dump library/000012.sat --limit 10")]
    Table(Verbs<DumpVerb>),
    /// Print a write-ahead log (WAL), record by record
    #[command(after_help = "\
Examples:
  sateen wal dump library/000013.wal --values")]
    Wal(Verbs<DumpVerb>),
    /// Print a manifest, record by record
    #[command(after_help = "\
Examples:
  sateen manifest dump library/MANIFEST-000004 --json")]
    Manifest(Verbs<DumpVerb>),
    /// Show a database while it runs: latency, stalls, jobs, memory
    #[command(after_help = "\
The process that has the database open must serve it: its option inspect, or SATEEN_INSPECT=1. If
none does, top says so and shows what is on disk.

Examples:
  sateen top library
  sateen top library --once --json")]
    Top(Top),
    /// Say why the last slow seconds were slow
    #[command(after_help = "\
The process that has the database open must serve it: its option inspect, or SATEEN_INSPECT=1. It
remembers an hour.

Examples:
  sateen why library
  sateen why library --since 1h --json")]
    Why(Why),
    /// Print what the background did: the file LOG
    #[command(after_help = "\
The option log_level of the database must be other than off, which is the default. The database may
be open.

Examples:
  sateen log library
  sateen log library -n 20 --level warn")]
    Log(Log),
    /// Serve the metrics of a running database to Prometheus
    #[command(after_help = "\
It also serves a page to look at, at the address itself. Nothing can be changed there. Listen on an
address of your network only if all who reach it may look.

Examples:
  sateen serve-metrics library
  sateen serve-metrics library --listen 127.0.0.1:9999")]
    ServeMetrics(ServeMetrics),
    /// Look at a program that uses RocksDB, or go back to RocksDB
    #[command(
        name = "rocksdb",
        after_help = "\
Examples:
  sateen rocksdb check ./my-service
  sateen rocksdb export library old --library /usr/lib/x86_64-linux-gnu/librocksdb.so"
    )]
    RocksDb(Verbs<RocksDbVerb>),
    /// Measure a workload, on Sateen or in comparison with RocksDB
    Bench(Box<BenchArgs>),
    /// Simulate compaction policies under load, in virtual time
    Sim(Box<SimArgs>),
    /// Show the latency of every second while bursts of load arrive
    #[command(after_help = "\
Examples:
  sateen demo
  sateen demo --seconds 20 --html /tmp/latency.html")]
    Demo(DemoArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbVerb {
    /// Print the value of a key
    #[command(after_help = "\
The exit code is 3 if the database does not have the key.

Examples:
  sateen db get library walden
  sateen db get library 00ff --encoding hex
  sateen db get numbers 17 --key-type u64")]
    Get {
        #[command(flatten)]
        family: Family,
        /// Read this key
        key: OsString,
        #[command(flatten)]
        coded: Typed,
    },
    /// Set the value of a key; create the database if it is missing
    #[command(after_help = "\
Examples:
  sateen db put library walden 'Thoreau, 1854'
  sateen db put library cover < cover.png
  sateen db put library 00ff cafe --encoding hex --sync")]
    Put {
        #[command(flatten)]
        family: Family,
        /// Set the value of this key
        key: OsString,
        /// Store this value; without it, read the value from standard input
        value: Option<OsString>,
        #[command(flatten)]
        coded: Typed,
        /// Sync the WAL before the command returns, so that power loss loses nothing
        #[arg(long)]
        sync: bool,
        /// Create the column family if it is missing
        #[arg(long)]
        create_cf: bool,
    },
    /// Delete keys; skip keys that do not exist
    #[command(after_help = "\
Examples:
  sateen db delete library walden
  sateen db delete library 00ff 0100 --encoding hex")]
    Delete {
        #[command(flatten)]
        family: Family,
        /// Delete these keys
        #[arg(required = true)]
        keys: Vec<OsString>,
        #[command(flatten)]
        coded: KeysCoded,
        /// Sync the WAL before the command returns, so that power loss loses nothing
        #[arg(long)]
        sync: bool,
    },
    /// Delete a range of keys
    #[command(
        visible_alias = "deleterange",
        after_help = "\
The range is one tombstone, however many keys are in it. Compactions free the space.

Examples:
  sateen db delete-range library a n
  sateen db delete-range library 00 80 --hex --cf users"
    )]
    DeleteRange {
        #[command(flatten)]
        family: Family,
        /// Begin at this key
        from: OsString,
        /// End before this key
        to: OsString,
        #[command(flatten)]
        coded: KeysCoded,
        /// Sync the WAL before the command returns, so that power loss loses nothing
        #[arg(long)]
        sync: bool,
    },
    /// Print about how many bytes of tables a range of keys has
    #[command(
        visible_alias = "approxsize",
        after_help = "\
What is only in memory or in a WAL does not count.

Examples:
  sateen db size library a n
  sateen db size library 00 80 --hex --json"
    )]
    Size {
        #[command(flatten)]
        family: Family,
        /// Begin at this key
        from: OsString,
        /// End before this key
        to: OsString,
        #[command(flatten)]
        coded: KeysCoded,
    },
    /// Print keys and values in order
    #[command(
        visible_aliases = ["dump", "idump"],
        after_help = "\
`sateen db load` reads what scan prints.

Another process may write to the database during the scan. All records are from one moment, as long
as that process keeps the files that the scan reads (its options reader_lease_seconds and
reader_lease_bytes). After that the scan continues behind the last key with newer records, and
prints a note.

Examples:
  sateen db scan library --prefix w --limit 10
  sateen db scan library --from a --to n --reverse
  sateen db scan library --format jsonl > library.jsonl"
    )]
    Scan(Scan),
    /// Write keys and values to a file that a load reads
    #[command(after_help = "\
The file appears under its name when it is complete and durable. An export that fails, or that
Ctrl-C ends with exit code 130, leaves nothing there. Keys and values have types: text (UTF-8), hex,
base64, or u64 (eight bytes as a decimal number). A key that is not of the type ends the export.

`sateen db load` is the way back. It reads the same types.

Examples:
  sateen db export library library.jsonl
  sateen db export library numbers.csv --key-type u64 --value-type hex
  sateen db export library part.tsv --from a --to n --cf users")]
    Export(Export),
    /// Load keys and values from a file or standard input
    #[command(after_help = "\
Load creates the database if it is missing.

Formats: tsv (key, tab, value; \\t \\n \\r \\\\ \\xHH are escapes), csv (RFC 4180, two fields),
jsonl (one object a line with key and value, or key_hex, key_base64, value_hex, value_base64).

A malformed line ends the load, and the error names its number. The database then has all records
before that line and none after it. Ctrl-C ends a load in the same way, with exit code 130. Loaded
records are durable when the command returns.

Examples:
  sateen db load library books.tsv
  zcat books.csv.gz | sateen db load library --format csv --header
  sateen db load library books.jsonl --dry-run")]
    Load(Load),
    /// Import a RocksDB or LevelDB database into a new one
    #[command(after_help = "\
Import loads the other store's own library, reads all column families and does not change the
source. The new database appears under its name when it is complete and durable. An import that
fails or is interrupted leaves nothing there.

Examples:
  sateen db import rocksdb old new --library /usr/lib/x86_64-linux-gnu/librocksdb.so
  sateen db import rocksdb old new --library librocksdb.so --verify --set compression=zstd
  sateen db import leveldb old new --library /usr/lib/x86_64-linux-gnu/libleveldb.so")]
    Import(Import),
    /// Print statistics: levels, files, memory, counters
    #[command(
        visible_aliases = ["dump_live_files", "list_live_files_metadata"],
        after_help = "\
If another process has the database open, the output names it. Counters and times are those of this
command, which has just opened the database. Levels, files and sizes are those of the database.

Examples:
  sateen db stats library
  sateen db stats library --prometheus"
    )]
    Stats {
        #[command(flatten)]
        place: Place,
        /// Print metrics in the text format of Prometheus
        #[arg(long)]
        prometheus: bool,
    },
    /// List the records in which two databases differ
    #[command(after_help = "\
Lines begin with - for a record of the first database alone, + for one of the second alone, and ~
for a key with another value, which is printed behind the first. The exit code is 1 if they differ.
Another process may have them open.

Examples:
  sateen db diff library copy
  sateen db diff library copy --keys --limit 10")]
    Diff(Diff),
    /// Measure the device below a directory
    #[command(after_help = "\
The command writes a file into the directory, reads it and removes it. It takes --seconds for each
of four measurements: large writes, syncs, large reads, and small reads at random. Other programs
that use the device meanwhile are part of what it measures. If a database is in the directory, the
command also prints what that has learned of the device while it ran.

Examples:
  sateen db bench-device library
  sateen db bench-device /mnt/new-disk --seconds 5 --json")]
    BenchDevice(BenchDevice),
    /// Change options of a running database
    #[command(after_help = "\
The process that has the database open must serve it: its option inspect, or SATEEN_INSPECT=1. All
options are changed or none. `sateen db options` says which can change.

Examples:
  sateen db set-option library block_cache_bytes=256MiB
  sateen db set-option library level0_trigger=8 --cf users")]
    SetOption(SetOption),
    /// Check that every byte of a database is sound
    #[command(
        visible_alias = "checkconsistency",
        after_help = "\
Another process may have the database open and may go on writing. Check changes and locks nothing.
It also works on a database that is too damaged to be opened.

The exit code is 1 if something is damaged; each finding names the file and the offset. It is 4 if
nothing is damaged, but the operating system refused to read something: no permission, too many open
files, an I/O error.

Examples:
  sateen db check library
  sateen db check library --json"
    )]
    Check {
        #[command(flatten)]
        place: Place,
    },
    /// Verify all checksums, at a limited rate if you like
    #[command(after_help = "\
No other process may have the database open. A process that has it open can scrub it itself: set its
option scrub_interval_seconds. The exit code is 1 if something is damaged, and 4 if something could
not be read.

Examples:
  sateen db scrub library
  sateen db scrub library --rate 50")]
    Scrub {
        #[command(flatten)]
        place: Place,
        /// Read at most this many MB a second
        #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
        rate: Option<u64>,
    },
    /// Create a copy of a database, sharing files where possible
    #[command(after_help = "\
The target must not exist.

Examples:
  sateen db checkpoint library backup/today")]
    Checkpoint {
        #[command(flatten)]
        place: Place,
        /// Create the second database in this directory
        target: PathBuf,
    },
    /// Back up a database, sharing tables with earlier backups
    #[command(after_help = "\
The first backup creates the directory. Later ones copy only what they do not share with earlier
ones. The database may be open in another process, which goes on writing. If that process serves it
(`sateen top` reaches it), it makes the backup, and goes on after Ctrl-C. Otherwise this command
reads beside it, which may take no longer than its leases for readers; Ctrl-C then ends the backup,
with exit code 130, and leaves earlier ones as they were.

Examples:
  sateen db backup library /mnt/backups
  sateen db backup library /mnt/backups --note 'before the move' --rate 50")]
    Backup(Backup),
    /// Restore a backup as a new database
    #[command(after_help = "\
Every byte is verified before it is written, and the new database appears in the last step. A backup
that is damaged is not restored in part: the error names the file and the offset.

Examples:
  sateen db restore /mnt/backups library
  sateen db restore /mnt/backups library --id 12
  sateen db restore /mnt/backups library --no-wal")]
    Restore(Restore),
    /// List backups; verify, purge or delete them
    #[command(after_help = "\
A backup whose record is damaged is listed with the damage. The exit code of --verify is 1 if
something is damaged, and 4 if something could not be read.

Examples:
  sateen db backups /mnt/backups
  sateen db backups /mnt/backups --verify
  sateen db backups /mnt/backups --purge 7
  sateen db backups /mnt/backups --purge 0 --yes
  sateen db backups /mnt/backups --delete 12")]
    Backups(Backups),
    /// Compact a range of keys to free space and speed up reads
    #[command(after_help = "\
Examples:
  sateen db compact library
  sateen db compact library --from a --to n")]
    Compact {
        #[command(flatten)]
        family: Family,
        /// Begin at this key
        #[arg(long, value_name = "KEY")]
        from: Option<OsString>,
        /// End at this key, which is included
        #[arg(long, value_name = "KEY")]
        to: Option<OsString>,
        #[command(flatten)]
        coded: KeysCoded,
        /// Rewrite the lowest level too
        #[arg(long)]
        rewrite_last_level: bool,
    },
    /// Repair a damaged database and name what is lost
    #[command(after_help = "\
Repair moves damaged files into the directory `lost` inside the database. The exit code is 1 if
something is lost. It is 4 if the operating system refuses to read something (no permission, too
many open files, an I/O error); repair then changes nothing.

Examples:
  sateen db repair library")]
    Repair {
        #[command(flatten)]
        place: Place,
        /// Give up data that the device cannot read (EIO), as if it were damaged
        #[arg(long)]
        give_up_unreadable: bool,
    },
    /// Destroy a database, sound or damaged
    #[command(after_help = "\
Destroy keeps files that are not part of the database. It also removes the directory `lost` that an
earlier repair left. The exit code is 1 if another process has the database open, or if there is no
database.

Examples:
  sateen db destroy library --yes
  sateen db destroy library --yes --set wal_dir=/mnt/logs")]
    Destroy {
        #[command(flatten)]
        place: Place,
        /// Confirm: without this flag nothing is removed
        #[arg(long)]
        yes: bool,
    },
    /// Print properties: those named, or all
    #[command(
        visible_alias = "get_property",
        after_help = "\
Examples:
  sateen db properties library
  sateen db properties library sateen.levelstats
  sateen db properties library --options"
    )]
    Properties {
        #[command(flatten)]
        family: Family,
        /// Print these properties
        names: Vec<String>,
        /// Print the options in force instead
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
    /// Create a column family
    #[command(
        visible_alias = "create_column_family",
        after_help = "\
--set and --profile give its options.

Examples:
  sateen db create-family library users
  sateen db create-family library events --set ttl=30d"
    )]
    CreateFamily {
        #[command(flatten)]
        place: Place,
        /// Create the column family with this name
        #[arg(value_parser = crate::place::bytes())]
        name: String,
    },
    /// Drop a column family with all its records
    #[command(
        visible_alias = "drop_column_family",
        after_help = "\
Examples:
  sateen db drop-family library users --yes"
    )]
    DropFamily {
        #[command(flatten)]
        place: Place,
        /// Drop the column family with this name
        #[arg(value_parser = crate::place::bytes())]
        name: String,
        /// Confirm: without this flag nothing is removed
        #[arg(long)]
        yes: bool,
    },
    /// Print all options, the five most important first
    #[command(after_help = "\
Without arguments the values are the defaults. With a directory they are those that the database was
last opened with.

Examples:
  sateen db options
  sateen db options library
  sateen db options --profile leveldb")]
    Options {
        /// Print the options of the database in this directory
        #[arg(conflicts_with = "profile")]
        path: Option<PathBuf>,
        /// Print the values of a profile
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
}
