//! Prints the contents of a database's file, one line for each item: for people, or as JSON.
//!
//! Invariants: everything before damage is printed before the error, and bytes that would break a
//! line or a terminal are escaped.

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use sateen::ValueKind;
use sateen::dump::{
    self, FileEnd, LogItem, ManifestItem, Placement, RangeTombstone, TableItem, TableMeta,
    TableSummary, ValueRef, VersionEdit,
};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};
use crate::text::bytes::{escape, to_hex};

#[derive(Debug, Subcommand)]
pub(crate) enum DumpVerb {
    /// Print a file, record by record
    #[command(after_help = "\
Dump changes nothing and needs no database around the file. For a file of tables it prints the
header, the directory, and every entry: key, sequence number, kind and value length, separated by
tabs. For a WAL or a manifest it prints the header, every record with its contents, and how the file
ended. With --json each item is an object on a line of its own. Bytes that are not UTF-8 are then in
hexadecimal, under a name that ends in _hex.

At the first damage dump ends with exit code 1; it has printed everything before the damage.

Examples:
  sateen table dump library/000012.sat --limit 10 --hex
  sateen wal dump library/000013.wal --values
  sateen manifest dump library/MANIFEST-000004 --json")]
    Dump {
        /// Print this file
        file: PathBuf,
        /// Print values, not only their lengths
        #[arg(long)]
        values: bool,
        /// Print keys and values in hexadecimal
        #[arg(long)]
        hex: bool,
        /// Print at most this many entries of tables, or records of a WAL or manifest
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
}

/// The kind of file to dump.
#[derive(Clone, Copy)]
pub(crate) enum FileKind {
    Table,
    Wal,
    Manifest,
}

/// How keys and values are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// As text, in which bytes that would break a line are escaped.
    Text,
    /// As two hexadecimal digits a byte.
    Hex,
}

/// How to dump it.
#[derive(Clone, Copy)]
pub(crate) struct DumpOptions {
    pub(crate) values: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) json: bool,
    pub(crate) written: Written,
}

/// Prints a file item by item.
pub(crate) fn run(
    kind: FileKind,
    file: &Path,
    options: DumpOptions,
    output: &mut dyn Write,
) -> Result<()> {
    if file.is_dir() {
        return Err(Failure::failed(format!(
            "{}: a directory, not a file",
            sateen::shown_path(file)
        )));
    }
    let mut printer = Printer {
        output: BufWriter::with_capacity(64 << 10, output),
        options,
        left: options.limit.unwrap_or(u64::MAX),
        failed: None,
    };
    let dumped = match kind {
        FileKind::Table => dump::table(file, &mut |item| printer.table(&item)),
        FileKind::Wal => dump::wal(file, &mut |item| printer.log(&item)),
        FileKind::Manifest => dump::manifest(file, &mut |item| printer.manifest(&item)),
    };
    let printed = match printer.failed.take() {
        Some(error) => Err(error),
        None => printer.output.flush(),
    };
    printed?;
    Ok(dumped?)
}

struct Printer<'a> {
    output: BufWriter<&'a mut dyn Write>,
    options: DumpOptions,
    /// The number of entries or records that may still be printed.
    left: u64,
    failed: Option<std::io::Error>,
}

impl Printer<'_> {
    /// Prints a line, made by `text` for people or by `value` for programs.
    fn line(
        &mut self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> Value,
    ) -> ControlFlow<()> {
        let line = if self.options.json { value().to_string() } else { text() };
        match writeln!(self.output, "{line}") {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Counts an item, and breaks when the limit is reached.
    fn count(&mut self) -> ControlFlow<()> {
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        ControlFlow::Continue(())
    }

    fn table(&mut self, item: &TableItem<'_>) -> ControlFlow<()> {
        match item {
            TableItem::File(file) => self.line(
                || {
                    let (number, bytes) = (file.file, file.bytes);
                    let uid = uid_text(file.db_uid);
                    let tables = file.tables;
                    let what = format!("file {number} of database {uid}: {bytes} bytes");
                    if file.values {
                        return format!("{what}, values of tables in other files");
                    }
                    format!("{what}, tables {tables}")
                },
                || {
                    json!({"item": "file", "file": file.file, "db_uid": uid_text(file.db_uid),
                        "bytes": file.bytes, "tables": file.tables, "values": file.values})
                },
            ),
            TableItem::Table(table) => {
                let written = self.options.written;
                self.line(|| summary_text(table, written), || summary_json(table, written))
            }
            TableItem::Entry(entry) => {
                self.count()?;
                self.entry("", entry.seqno, entry.kind, None, entry.key, entry.value)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn log(&mut self, item: &LogItem<'_>) -> ControlFlow<()> {
        match item {
            LogItem::Header(header) => {
                self.header(("WAL", "log"), header.number, header.db_uid, header.format_version)
            }
            LogItem::Link(link) => self.line(
                || match (link.number, link.end) {
                    (0, 0) => "follows no WAL".to_owned(),
                    (0, _) => "follows no WAL that counts".to_owned(),
                    (number, end) => {
                        let synced = link.synced;
                        format!("follows WAL {number}, which ended at {end}, durable to {synced}")
                    }
                },
                || {
                    let (log, end, synced) = (link.number, link.end, link.synced);
                    json!({"item": "link", "log": log, "end": end, "synced": synced})
                },
            ),
            LogItem::Record(record) => {
                self.count()?;
                self.line(
                    || {
                        let (offset, seqno) = (record.offset, record.first_seqno);
                        let (entries, bytes) = (record.entries, record.bytes);
                        format!(
                            "record at {offset}: {bytes} bytes, entries {entries}, from sequence \
                             number {seqno}"
                        )
                    },
                    || {
                        json!({"item": "record", "offset": record.offset, "bytes": record.bytes,
                            "entries": record.entries, "first_seqno": record.first_seqno})
                    },
                )
            }
            LogItem::Entry(entry) => {
                let family = Some(entry.column_family.0);
                self.entry("  ", entry.seqno, entry.kind, family, entry.key, entry.value)
            }
            LogItem::LogData(data) => self.log_data(data),
            LogItem::End(end) => self.end(end),
            _ => ControlFlow::Continue(()),
        }
    }

    fn manifest(&mut self, item: &ManifestItem<'_>) -> ControlFlow<()> {
        match *item {
            ManifestItem::Header { number, db_uid, format_version } => {
                self.header(("manifest", "manifest"), number, db_uid, format_version)
            }
            ManifestItem::Record { end, snapshot, edits } => {
                self.count()?;
                let part = if snapshot { "snapshot" } else { "change" };
                self.line(
                    || format!("{part} to {end}: edits {edits}"),
                    || json!({"item": part, "end": end, "edits": edits}),
                )
            }
            ManifestItem::Edit(edit) => {
                let written = self.options.written;
                self.line(|| edit_text(edit, written), || edit_json(edit, written))
            }
            ManifestItem::End(ref end) => self.end(end),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Prints the header of a file. `what` has its name in text, and its key in JSON.
    fn header(
        &mut self,
        what: (&str, &str),
        number: u64,
        db_uid: u64,
        version: u32,
    ) -> ControlFlow<()> {
        let (name, key) = what;
        let uid = uid_text(db_uid);
        self.line(
            || format!("{name} {number} of database {uid}, format {version}"),
            || json!({"item": "header", key: number, "db_uid": uid, "format_version": version}),
        )
    }

    fn entry(
        &mut self,
        indent: &str,
        seqno: u64,
        kind: ValueKind,
        column_family: Option<u32>,
        key: &[u8],
        value: &[u8],
    ) -> ControlFlow<()> {
        let values = self.options.values && kind.has_value();
        let written = self.options.written;
        self.line(
            || {
                let family = column_family.map(|id| format!("\tfamily {id}")).unwrap_or_default();
                let kind = kind_name(kind);
                let value = if values { written.text(value) } else { value.len().to_string() };
                format!("{indent}{}\t{seqno}\t{kind}\t{value}{family}", written.text(key))
            },
            || {
                let mut entry = Map::new();
                entry.insert("item".into(), "entry".into());
                entry.insert("seqno".into(), seqno.into());
                entry.insert("kind".into(), kind_name(kind).into());
                if let Some(id) = column_family {
                    entry.insert("column_family".into(), id.into());
                }
                written.insert(&mut entry, "key", key);
                entry.insert("value_bytes".into(), value.len().into());
                if values {
                    written.insert(&mut entry, "value", value);
                }
                entry.into()
            },
        )
    }

    fn log_data(&mut self, data: &[u8]) -> ControlFlow<()> {
        let (shown, written) = (self.options.values, self.options.written);
        self.line(
            || {
                let data = if shown { written.text(data) } else { data.len().to_string() };
                format!("  log data\t{data}")
            },
            || {
                let mut item = Map::new();
                item.insert("item".into(), "log_data".into());
                item.insert("bytes".into(), data.len().into());
                if shown {
                    written.insert(&mut item, "data", data);
                }
                item.into()
            },
        )
    }

    fn end(&mut self, end: &FileEnd) -> ControlFlow<()> {
        let FileEnd { offset, torn_bytes } = *end;
        self.line(
            || match torn_bytes {
                0 => format!("ends at {offset}"),
                torn => format!("ends at {offset}; after it {torn} bytes of an unfinished write"),
            },
            || json!({"item": "end", "offset": offset, "torn_bytes": torn_bytes}),
        )
    }
}

fn summary_text(table: &TableSummary, written: Written) -> String {
    let mut line = format!(
        "table {} at {}: {} bytes, family {}, level {}, entries {} (deletions {}), sequence \
         numbers {} to {}, keys {} to {}",
        table.table,
        table.offset,
        table.length,
        table.column_family.0,
        table.level,
        table.entries,
        table.tombstones,
        table.seqno_min,
        table.seqno_max,
        written.text(&table.smallest),
        written.text(&table.largest),
    );
    match &table.layout {
        Some(layout) => line.push_str(&format!(
            ", blocks {} of about {} bytes, compression {}, filter bits per key {}",
            layout.blocks,
            layout.block_bytes,
            compression_name(layout.compression),
            layout.filter_bits_per_key
        )),
        None => line.push_str(", given back"),
    }
    line
}

fn summary_json(table: &TableSummary, written: Written) -> Value {
    let mut object = Map::new();
    object.insert("item".into(), "table".into());
    for (name, number) in [
        ("table", table.table),
        ("offset", table.offset),
        ("bytes", table.length),
        ("column_family", table.column_family.0.into()),
        ("level", table.level.into()),
        ("entries", table.entries),
        ("deletions", table.tombstones),
        ("raw_bytes", table.raw_bytes),
        ("seqno_min", table.seqno_min),
        ("seqno_max", table.seqno_max),
    ] {
        object.insert(name.into(), number.into());
    }
    written.insert(&mut object, "smallest", &table.smallest);
    written.insert(&mut object, "largest", &table.largest);
    object.insert("given_back".into(), table.layout.is_none().into());
    if let Some(layout) = &table.layout {
        object.insert("blocks".into(), layout.blocks.into());
        object.insert("block_bytes".into(), layout.block_bytes.into());
        object.insert("compression".into(), compression_name(layout.compression).into());
        object.insert("filter_bits_per_key".into(), layout.filter_bits_per_key.into());
    }
    object.into()
}

/// Returns the numbers that an edit sets, by name.
fn edit_numbers(edit: &VersionEdit) -> impl Iterator<Item = (&'static str, u64)> {
    [
        ("log_number", edit.log_number.map(|n| n.0)),
        ("last_seqno", edit.last_seqno.map(|n| n.0)),
        ("next_file", edit.next_file.map(|n| n.0)),
        ("next_table", edit.next_table.map(|n| n.0)),
        ("next_epoch", edit.next_epoch.map(|n| n.0)),
        ("next_column_family", edit.next_column_family.map(|n| n.0.into())),
    ]
    .into_iter()
    .filter_map(|(name, number)| Some((name, number?)))
}

fn edit_text(edit: &VersionEdit, written: Written) -> String {
    let mut lines = vec![format!("  family {}", edit.column_family.0)];
    if let Some(name) = &edit.create {
        lines.push(format!("create {}", Written::Text.text(name.as_bytes())));
    }
    if let Some(region) = &edit.region {
        lines.push(format!(
            "region of family {} from {}",
            region.of.0,
            written.text(region.begin.bytes())
        ));
    }
    if edit.drop {
        lines.push("drop".to_owned());
    }
    lines.extend(
        edit.style.iter().map(|style| format!("style {}", Written::Text.text(style.as_bytes()))),
    );
    lines.extend(edit.value_times.map(|times| {
        let text = if times { "values have times" } else { "values have no times" };
        text.to_owned()
    }));
    for table in &edit.removed {
        let (id, level, epoch) = (table.id.0, table.level, table.epoch.0);
        lines.push(format!("remove table {id} from level {level}, epoch {epoch}"));
    }
    for added in &edit.added {
        let (table, level, epoch) = (&added.table, added.level, added.epoch.0);
        lines.push(format!(
            "add table {} to level {level}, epoch {epoch}: {}, {} bytes, entries {}, keys {} to {}",
            table.id.0,
            placement(&table.placement) + &apart(table),
            table.size_bytes,
            table.entries,
            written.text(table.smallest.bytes()),
            written.text(table.largest.bytes())
        ));
    }
    for RangeTombstone { begin, end, seqno } in &edit.range_tombstones {
        lines.push(format!(
            "delete {} to {} as of {}",
            written.text(begin.bytes()),
            written.text(end.bytes()),
            seqno.0
        ));
    }
    for seqno in &edit.retired_ranges {
        lines.push(format!("the deletion of a range as of {} is done", seqno.0));
    }
    for (level, key) in &edit.compact_pointers {
        lines.push(format!("level {level} was compacted to {}", written.text(key.bytes())));
    }
    lines.extend(edit_numbers(edit).map(|(name, number)| format!("{name} {number}")));
    lines.extend(edit.shared_files.iter().map(|file| format!("file {} is shared", file.0)));
    lines.join("\n    ")
}

fn edit_json(edit: &VersionEdit, written: Written) -> Value {
    let mut object = Map::new();
    object.insert("item".into(), "edit".into());
    object.insert("column_family".into(), edit.column_family.0.into());
    if let Some(name) = &edit.create {
        object.insert("create".into(), name.as_str().into());
    }
    if let Some(region) = &edit.region {
        let of =
            json!({ "column_family": region.of.0, "begin": written.text(region.begin.bytes()) });
        object.insert("region".into(), of);
    }
    if edit.drop {
        object.insert("drop".into(), true.into());
    }
    if let Some(style) = &edit.style {
        object.insert("style".into(), style.as_str().into());
    }
    if let Some(times) = edit.value_times {
        object.insert("value_times".into(), times.into());
    }
    let removed = edit
        .removed
        .iter()
        .map(|table| json!({"table": table.id.0, "level": table.level, "epoch": table.epoch.0}));
    object.insert("removed".into(), removed.collect());
    let added = edit.added.iter().map(|added| {
        let table = &added.table;
        let mut object = Map::new();
        for (name, number) in [
            ("table", table.id.0),
            ("level", added.level.into()),
            ("epoch", added.epoch.0),
            ("file", table.placement.file().0),
            ("bytes", table.size_bytes),
            ("entries", table.entries),
            ("deletions", table.tombstones),
            ("seqno_min", table.seqno_min.0),
            ("seqno_max", table.seqno_max.0),
        ] {
            object.insert(name.into(), number.into());
        }
        if let Placement::Slice { offset, .. } | Placement::Log { offset, .. } = table.placement {
            object.insert("offset".into(), offset.into());
        }
        if let Some(values) = table.placement.values() {
            object.insert("values_file".into(), values.0.into());
        }
        if !table.values.is_empty() {
            let files = table.values.files.iter().map(
                |one| json!({"file": one.file.0, "bytes": one.bytes, "file_bytes": one.file_bytes}),
            );
            object.insert("value_files".into(), files.collect());
        }
        written.insert(&mut object, "smallest", table.smallest.bytes());
        written.insert(&mut object, "largest", table.largest.bytes());
        Value::from(object)
    });
    object.insert("added".into(), added.collect());
    object.extend(edit_numbers(edit).map(|(name, number)| (name.to_owned(), number.into())));
    let ranges = edit.range_tombstones.iter().map(|range| {
        let mut object = Map::new();
        written.insert(&mut object, "begin", range.begin.bytes());
        written.insert(&mut object, "end", range.end.bytes());
        object.insert("seqno".into(), range.seqno.0.into());
        Value::from(object)
    });
    object.insert("range_tombstones".into(), ranges.collect());
    let retired: Vec<u64> = edit.retired_ranges.iter().map(|seqno| seqno.0).collect();
    object.insert("retired_ranges".into(), retired.into());
    let shared: Vec<u64> = edit.shared_files.iter().map(|file| file.0).collect();
    object.insert("shared_files".into(), shared.into());
    object.into()
}

/// Returns the value files of a table, with the bytes of its values in them.
fn apart(table: &TableMeta) -> String {
    let file = |one: &ValueRef| {
        format!("{} of {} bytes of file {}", one.bytes, one.file_bytes, one.file.0)
    };
    let files: Vec<_> = table.values.files.iter().map(file).collect();
    if files.is_empty() { String::new() } else { format!(", values {}", files.join(" and ")) }
}

fn placement(placement: &Placement) -> String {
    match placement {
        Placement::WholeFile(file) => format!("file {}", file.0),
        Placement::Slice { file, offset, .. } => format!("file {} at {offset}", file.0),
        Placement::Log { file, offset, values, .. } => {
            format!("file {} at {offset}, values in file {}", file.0, values.0)
        }
    }
}

/// Returns the uid as text, because most programs read JSON numbers with 53 bits.
fn uid_text(db_uid: u64) -> String {
    format!("{db_uid:016x}")
}

fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Delete => "delete",
        ValueKind::Put => "put",
        ValueKind::Merge => "merge",
        ValueKind::SingleDelete => "single-delete",
        ValueKind::RangeDelete => "range-delete",
    }
}

fn compression_name(code: u8) -> &'static str {
    match code {
        0 => "none",
        1 => "lz4",
        2 => "zstd",
        _ => "unknown",
    }
}

impl Written {
    fn text(self, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        match self {
            Written::Text => escape(bytes, &mut out),
            Written::Hex => to_hex(bytes, &mut out),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Inserts text under `name`, and hexadecimal digits under a name of their own.
    fn insert(self, object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) if self == Written::Text => object.insert(name.to_owned(), text.into()),
            _ => object.insert(format!("{name}_hex"), Written::Hex.text(bytes).into()),
        };
    }
}
