//! The verbs of `sateen db`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sateen::metrics::{ColumnFamilyMetrics, LevelShape, TableFile};
use sateen::{CompactRangeOptions, Db, WriteOptions, bytes_of_text, shown, shown_path};
use serde_json::json;

use crate::args::DbVerb;
use crate::backup;
use crate::device;
use crate::diff;
use crate::export;
use crate::failure::{Failure, Result};
use crate::families;
use crate::import;
use crate::interrupt::{self, Interruptible};
use crate::key::{argument_bytes, bound, decoded};
use crate::live;
use crate::load::{LoadError, Loaded, Sink, load};
use crate::options;
use crate::place::{Family, Place};
use crate::progress::Progress;
use crate::records::Load;
use crate::scan;
use crate::store::{self, Access};
use crate::text::bytes::json_path;
use crate::text::{Encoding, Format, RecordReader, RecordWriter, Typed};
use crate::upkeep;

/// Text is read in pieces of this size.
const INPUT_BUFFER_BYTES: usize = 1 << 20;

/// The text of a load.
type Input = BufReader<Interruptible>;

pub(crate) fn run(verb: &DbVerb, json: bool, output: &mut dyn Write) -> Result<()> {
    match verb {
        DbVerb::Get { family, key, coded } => get(family, key, *coded, json, output),
        DbVerb::Put { family, key, value, coded, sync, create_cf } => {
            let key = argument_bytes(key, coded.keys())?;
            let limits = store::Limits::of(&store::options(&family.place)?);
            let value = match value {
                Some(value) => argument_bytes(value, coded.values())?,
                None => standard_input(coded.values(), limits)?,
            };
            limits.check(&key, &value).map_err(Failure::failed)?;
            let (db, family) = store::open_family(family, Access::Create, *create_cf)?;
            let options = WriteOptions { sync: *sync, ..WriteOptions::default() };
            family.writing(&options).put(&key, &value)?;
            Ok(db.close()?)
        }
        DbVerb::Delete { family, keys, coded, sync } => {
            let keys: Result<Vec<_>> =
                keys.iter().map(|key| argument_bytes(key, coded.keys())).collect();
            let keys = keys?;
            let (db, family) = store::open_family(family, Access::Write, false)?;
            store::delete(&db, &family, &keys, *sync)?;
            Ok(db.close()?)
        }
        DbVerb::DeleteRange { family, from, to, coded, sync } => {
            families::delete_range(family, (from, to), coded.keys(), *sync)
        }
        DbVerb::Size { family, from, to, coded } => {
            families::size(family, (from, to), coded.keys(), json, output)
        }
        DbVerb::CreateFamily { place, name } => families::create(place, name),
        DbVerb::DropFamily { place, name, yes } => families::drop(place, name, *yes),
        DbVerb::Scan(arguments) => scan::run(arguments, json, output),
        DbVerb::Export(arguments) => export::run(arguments, json, output),
        DbVerb::Load(arguments) => load_file(arguments, json, output),
        DbVerb::Import(arguments) => import::run(arguments, json, output),
        DbVerb::Stats { place, prometheus } => {
            let db = store::open_as_it_was(place)?;
            let holder = store::holder(place);
            stats(&db, holder.as_deref(), *prometheus, json, output)
        }
        DbVerb::Diff(arguments) => diff::run(arguments, json, output),
        DbVerb::BenchDevice(arguments) => device::run(arguments, json, output),
        DbVerb::SetOption(arguments) => live::set_options(arguments, json, output),
        DbVerb::Check { place } => upkeep::check(place, json, output),
        DbVerb::Scrub { place, rate } => upkeep::scrub(place, *rate, json, output),
        DbVerb::Checkpoint { place, target } => checkpoint(place, target, json, output),
        DbVerb::Backup(arguments) => backup::create(arguments, json, output),
        DbVerb::Restore(arguments) => backup::restore(arguments, json, output),
        DbVerb::Backups(arguments) => backup::backups(arguments, json, output),
        DbVerb::Compact { family, from, to, coded, rewrite_last_level } => {
            let coded = coded.keys();
            let (from, to) = (bound(from.as_deref(), coded)?, bound(to.as_deref(), coded)?);
            let whole = from.is_none() && to.is_none() && !rewrite_last_level;
            if whole {
                if live::compacted(&family.place, &family.cf, json)? {
                    return Ok(());
                }
            } else if live::is_served(&family.place.db) {
                let name = shown_path(&family.place.db);
                let text = "the process that has the database open compacts whole column families \
                            only: leave out --from, --to and --rewrite-last-level";
                return Err(Failure::failed(format!("{name}: {text}")));
            }
            let (db, family) = store::open_family(family, Access::Write, false)?;
            // An open does not look at the flag, and may be ended at any time.
            let wanted = interrupt::watch()?;
            let options = CompactRangeOptions {
                rewrite_last_level: *rewrite_last_level,
                ..CompactRangeOptions::default()
            };
            upkeep::compact(&wanted, &db, &family, [from.as_deref(), to.as_deref()], &options)
        }
        DbVerb::Repair { place, give_up_unreadable } => {
            upkeep::repair(place, *give_up_unreadable, json, output)
        }
        DbVerb::Destroy { place, yes } => upkeep::destroy(place, *yes, json, output),
        DbVerb::Properties { family, names, options } => {
            properties(family, names, *options, json, output)
        }
        DbVerb::Families { place } => {
            let names = store::open(place, Access::Read)?.column_families();
            if json {
                return Ok(writeln!(output, "{}", json!(names))?);
            }
            Ok(names.iter().try_for_each(|name| write_line(output, &bytes_of_text(name)))?)
        }
        DbVerb::Options { path: Some(path), .. } => {
            store::refuse_missing(path)?;
            options::stored(path, json, output)
        }
        DbVerb::Options { profile, path: None } => options::all(profile.as_deref(), json, output),
    }
}

/// Reads all of standard input. White space at the end of hexadecimal or base64 is dropped.
fn standard_input(encoding: Encoding, limits: store::Limits) -> Result<Vec<u8>> {
    let name = Path::new("standard input");
    // In hexadecimal a byte is two digits.
    let most = limits.record_bytes_max().saturating_mul(2);
    let mut text = Vec::new();
    let mut input = io::stdin().lock().take(most.saturating_add(1));
    input.read_to_end(&mut text).map_err(|error| Failure::file(name, &error))?;
    if text.len() as u64 > most {
        let what = format!("standard input: longer than {most} bytes, the limit for a value");
        return Err(Failure::failed(what));
    }
    if encoding == Encoding::Text {
        return Ok(text);
    }
    decoded(text.trim_ascii_end(), encoding)
        .map_err(|what| Failure::usage(format!("standard input: {what}")))
}

fn get(
    family: &Family,
    key: &OsStr,
    coded: Typed,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    let bytes = argument_bytes(key, coded.keys())?;
    let found = store::beside_writer(|| {
        let (_, family) = store::open_family(family, Access::Read, false)?;
        Ok(family.get(&bytes)?)
    })?;
    let Some(mut value) = found else {
        return Err(Failure::not_found(format!("no such key: {}", shown_path(key))));
    };
    if json {
        let writer = RecordWriter::new(output, Format::Jsonl, coded.keys());
        let mut writer = writer.with_values(coded.values());
        writer.write(&bytes, &value)?;
        return Ok(());
    }
    let mut text = Vec::new();
    match coded.values() {
        Encoding::Text => text.append(&mut value),
        encoding => encoding
            .encode(&value, &mut text, |_, _| {})
            .map_err(|what| Failure::failed(format!("the value: {what}")))?,
    }
    text.push(b'\n');
    Ok(output.write_all(&text)?)
}

fn load_file(arguments: &Load, json: bool, output: &mut dyn Write) -> Result<()> {
    let file = file_to_load(arguments)?;
    let standard_input = file == Path::new("-");
    let name = if standard_input { Path::new("standard input") } else { file };
    let format = match arguments.format.or(Format::of_name(&file.to_string_lossy())) {
        Some(format) => format,
        None if standard_input => Format::Tsv,
        None => {
            let text = "unknown extension: give --format tsv, csv or jsonl";
            return Err(Failure::usage(format!("{}: {text}", shown_path(name))));
        }
    };
    // The file is opened before the database: a wrong name must not leave an empty database.
    let interrupted = interrupt::watch()?;
    let limits = store::Limits::of(&store::options(&arguments.family.place)?);
    let (input, length) = input(file, name, &interrupted)?;
    let records = |input| {
        let reader = RecordReader::new(input, format, arguments.typed.keys())
            .with_values(arguments.typed.values());
        let reader = reader.limited_to(limits.record_bytes_max());
        if arguments.no_escapes { reader.without_escapes() } else { reader }
    };
    let mut nowhere = Nowhere(limits);
    // The same holds for a file whose first record is malformed.
    if length.is_some() && arguments.family.place.db.try_exists().is_ok_and(|exists| !exists) {
        let mut first = records(self::input(file, name, &interrupted)?.0);
        if let Err(error) = first_record(&mut first, arguments.header, &mut nowhere) {
            let failure = load_failure(&error, name, Loaded::default(), arguments.dry_run);
            return Err(or_interrupted(failure, &interrupted));
        }
    }
    let mut reader = records(input);
    let began = Instant::now();
    let progress = Progress::bytes("loading", length);
    let (loaded, ended) = if arguments.dry_run {
        load_records(&mut reader, arguments.header, &mut nowhere, &progress)
    } else {
        let (db, family) =
            store::open_family(&arguments.family, Access::Create, arguments.create_cf)?;
        let mut loader = store::Loader::new(&db, &family);
        let result = load_records(&mut reader, arguments.header, &mut loader, &progress);
        // The records bypassed the WAL: the flush makes them durable.
        let _spinner = Progress::spinner("storing");
        if let Err(error) = db.flush_all().and_then(|()| db.close()) {
            let early = result.1.err().map(|early| load_why(&early, name));
            return Err(Failure::failed(not_durable(early.as_deref(), &error.to_string())));
        }
        result
    };
    drop(progress);
    if let Err(error) = &ended {
        let failure = load_failure(error, name, loaded, arguments.dry_run);
        return Err(or_interrupted(failure, &interrupted));
    }
    let seconds = began.elapsed().as_secs_f64();
    let Loaded { records, bytes, .. } = loaded;
    if json {
        let summary = json!({
            "records": records, "bytes": bytes, "seconds": seconds, "dry_run": arguments.dry_run,
        });
        return Ok(writeln!(output, "{summary}")?);
    }
    let done = if arguments.dry_run { "would load" } else { "loaded" };
    let mib = bytes as f64 / f64::from(1 << 20);
    Ok(writeln!(output, "{done} {records} records, {mib:.1} MiB, in {seconds:.1} s")?)
}

/// Returns the file of a load. Without a name this is standard input, unless that is a terminal.
fn file_to_load(arguments: &Load) -> Result<&Path> {
    match &arguments.file {
        Some(file) => Ok(file),
        None if !io::stdin().is_terminal() => Ok(Path::new("-")),
        None => {
            let text = "no file, and standard input is a terminal: name a file, or - to type it";
            Err(Failure::usage(text))
        }
    }
}

fn input(file: &Path, name: &Path, interrupted: &Arc<AtomicBool>) -> Result<(Input, Option<u64>)> {
    let opened = if file == Path::new("-") {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        interrupt::open(file)
    };
    let file = opened.map_err(|error| Failure::file(name, &error))?;
    let metadata = file.metadata().map_err(|error| Failure::file(name, &error))?;
    if metadata.is_dir() {
        return Err(Failure::failed(format!("{}: a directory, not a file", shown_path(name))));
    }
    let length = metadata.is_file().then_some(metadata.len());
    let input = Interruptible::new(file, Arc::clone(interrupted));
    Ok((BufReader::with_capacity(INPUT_BUFFER_BYTES, input), length))
}

fn load_records(
    reader: &mut RecordReader<Input>,
    header: bool,
    sink: &mut impl Sink,
    progress: &Progress,
) -> (Loaded, std::result::Result<(), LoadError>) {
    if header && let Err(error) = reader.next() {
        return (Loaded::default(), Err(error.into()));
    }
    load(reader, sink, |bytes| progress.at(bytes))
}

fn first_record(
    reader: &mut RecordReader<Input>,
    header: bool,
    sink: &mut Nowhere,
) -> std::result::Result<(), LoadError> {
    if header {
        reader.next()?;
    }
    let Some(record) = reader.next()? else { return Ok(()) };
    let line = record.line;
    sink.put(record.key, record.value).map_err(|what| LoadError::Line { line, what })
}

/// Checks records and drops them: the sink of a dry run.
struct Nowhere(store::Limits);

impl Sink for Nowhere {
    fn put(&mut self, key: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        self.0.check(key, value)
    }
    fn commit(&mut self) -> std::result::Result<(), String> {
        Ok(())
    }
}

/// Returns the failure of a load that ended early: where, why, and what the database holds now.
fn load_failure(error: &LoadError, name: &Path, loaded: Loaded, dry_run: bool) -> Failure {
    let what = load_why(error, name);
    let name = shown_path(name);
    let Loaded { records, to_line, .. } = loaded;
    let state = match (dry_run, records) {
        (true, _) => "nothing was written".to_owned(),
        (false, 0) => "nothing was loaded".to_owned(),
        (false, _) => format!("loaded up to line {to_line} of {name}, {records} records"),
    };
    Failure::failed(format!("{what}\n{state}"))
}

/// Returns the text for a load whose records could not be stored because of `error`. `early` is why
/// it ended before its text did; both may have the same cause, which is told once.
fn not_durable(early: Option<&str>, error: &str) -> String {
    const LOST: &str = "the loaded records are not durable";
    match early {
        None => format!("{LOST}: {error}"),
        Some(early) if early == error => format!("{error}\n{LOST}"),
        Some(early) => format!("{early}\n{LOST}: {error}"),
    }
}

/// Returns the failure, as an interrupt if there was one.
fn or_interrupted(failure: Failure, interrupted: &AtomicBool) -> Failure {
    match interrupted.load(Ordering::Relaxed) {
        true => Failure::interrupted(failure.message),
        false => failure,
    }
}

fn load_why(error: &LoadError, name: &Path) -> String {
    let name = shown_path(name);
    match error {
        LoadError::Line { line, what } => format!("{name}:{line}: {what}"),
        LoadError::Read(error) => format!("{name}: {error}"),
        LoadError::Commit(what) => what.clone(),
    }
}

/// Prints statistics. `holder` is the process that has the database open, if it is known; its
/// counters are not visible here.
fn stats(
    db: &Db,
    holder: Option<&str>,
    prometheus: bool,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    if json && !prometheus {
        let mut stats = stats_json(db);
        stats["open_in"] = json!(holder);
        return Ok(writeln!(output, "{stats}")?);
    }
    let whose = "counters and times are those of this command, which has just opened the database";
    let whose = match holder {
        Some(holder) => format!("{whose}; {holder} has it open and has counters of its own"),
        None => whose.to_owned(),
    };
    let begin = if prometheus { "# " } else { "" };
    let text = format!("{begin}{whose}\n{}", store::stats(db, prometheus));
    if json {
        return Ok(writeln!(output, "{}", json!({ "prometheus": text }))?);
    }
    output.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        output.write_all(b"\n")?;
    }
    if !prometheus {
        write_files(&db.table_files(), output)?;
    }
    Ok(())
}

/// Prints the files with the most dead or punched bytes.
fn write_files(files: &[TableFile], output: &mut dyn Write) -> Result<()> {
    const SHOWN_MAX: usize = 20;
    let gone = |file: &TableFile| file.dead_bytes + file.punched_bytes;
    let mut files: Vec<_> = files.iter().filter(|file| gone(file) > 0).collect();
    files.sort_unstable_by_key(|file| (std::cmp::Reverse(gone(file)), file.number));
    if files.is_empty() {
        return Ok(());
    }
    writeln!(output, "\nfile               live           dead     given back    holes")?;
    for TableFile { number, live_bytes, dead_bytes, punched_bytes, holes, .. } in
        files.iter().take(SHOWN_MAX)
    {
        writeln!(
            output,
            "{number:<8} {live_bytes:>14} {dead_bytes:>14} {punched_bytes:>14} {holes:>8}"
        )?;
    }
    if let Some(more) = files.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        writeln!(output, "and {more} more with less")?;
    }
    Ok(())
}

/// Returns the state of the database as JSON, without counters since the open, which are those of
/// this command alone.
fn stats_json(db: &Db) -> serde_json::Value {
    let metrics = db.metrics();
    let family = |family: &ColumnFamilyMetrics| {
        let level = |level: &LevelShape| {
            let LevelShape { runs, tables, bytes, good_bytes, target_bytes } = level;
            json!({
                "runs": runs,
                "tables": tables,
                "bytes": bytes,
                "good_bytes": good_bytes,
                "target_bytes": target_bytes,
            })
        };
        json!({
            "name": family.name,
            "levels": family.levels.iter().map(level).collect::<Vec<_>>(),
            "compaction_debt_bytes": family.compaction_debt_bytes,
            "chain_length": family.chain_length,
            "chain_bytes": family.chain_bytes,
            "value_files": family.value_files,
            "value_file_bytes": family.value_file_bytes,
            "value_garbage_bytes": family.value_garbage_bytes,
        })
    };
    let file = |file: &TableFile| {
        json!({
            "number": file.number,
            "live_bytes": file.live_bytes,
            "dead_bytes": file.dead_bytes,
            "punched_bytes": file.punched_bytes,
            "holes": file.holes,
        })
    };
    json!({
        "column_families": metrics.column_families.iter().map(family).collect::<Vec<_>>(),
        "memory_bytes": metrics.memory.owners().into_iter().collect::<BTreeMap<_, _>>(),
        "live_wal_bytes": metrics.live_wal_bytes,
        "obsolete_bytes": metrics.obsolete_bytes,
        "files": db.table_files().iter().map(file).collect::<Vec<_>>(),
        "health": metrics.health,
    })
}

fn checkpoint(place: &Place, target: &Path, json: bool, output: &mut dyn Write) -> Result<()> {
    let spinner = Progress::spinner("making a checkpoint");
    let shown = shown_path(target);
    let by_process = match live::path_argument(target)? {
        Some(path) => {
            let arguments = json!({ "path": path });
            let goes_on = format!("goes on, and {shown} will be complete or not there");
            live::asked(place, "checkpoint", &arguments, &goes_on, &spinner, json)?.is_some()
        }
        None => false,
    };
    if !by_process {
        make_checkpoint(place, target)?;
    }
    drop(spinner);
    if json {
        return Ok(writeln!(output, "{}", json!({ "checkpoint": json_path(target) }))?);
    }
    Ok(write_line(output, target.as_os_str().as_bytes())?)
}

/// Makes a checkpoint of a database that no other process has open.
fn make_checkpoint(place: &Place, target: &Path) -> Result<()> {
    let db = store::open(place, Access::Write)?;
    let wanted = interrupt::watch()?;
    let closing = db.clone();
    // A checkpoint ends when its database is closed.
    let stop = move || drop(closing.close());
    let (made, stopped) = interrupt::stopping(&wanted, stop, || db.checkpoint(target));
    match made {
        Err(sateen::Error::Closed) if stopped => {
            let text = format!("interrupted; {} was not created", shown_path(target));
            Err(Failure::interrupted(text))
        }
        made => Ok(made.and_then(|()| db.close())?),
    }
}

/// Writes a line of bytes, which need not be UTF-8.
fn write_line(output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.write_all(b"\n")
}

fn properties(
    arguments: &Family,
    names: &[String],
    options: bool,
    json: bool,
    output: &mut dyn Write,
) -> Result<()> {
    let (db, family) = store::open_family(arguments, Access::Read, false)?;
    if options {
        let mut in_force = db.options();
        in_force.column_family = family.options();
        if json {
            return Ok(writeln!(output, "{}", options::to_json(&in_force)?)?);
        }
        return Ok(output.write_all(shown(&in_force.to_text()).as_bytes())?);
    }
    let all = store::property_names(&family);
    let names = if names.is_empty() { &all } else { names };
    let mut values = serde_json::Map::new();
    for name in names {
        let Some(value) = family.property(name) else {
            let there_are = all.join(", ");
            return Err(Failure::not_found(format!(
                "no property {name:?}; the properties are {there_are}"
            )));
        };
        values.insert(name.clone(), json!(value));
        if !json {
            writeln!(output, "{name} = {value}")?;
        }
    }
    if json {
        writeln!(output, "{}", json!(values))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::not_durable;

    #[test]
    fn one_cause_is_told_once() {
        let full = "write db/000005.sat: No space left on device";
        assert_eq!(not_durable(None, full).matches(full).count(), 1);
        assert_eq!(
            not_durable(Some(full), full),
            format!("{full}\nthe loaded records are not durable")
        );
        let both = not_durable(Some("in.tsv:3: no tab"), full);
        assert!(both.starts_with("in.tsv:3: no tab\n") && both.ends_with(full), "{both}");
    }
}
