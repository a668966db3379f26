//! The file LOG: what the background did and why, one line an event. It is written from the flight
//! recorder by the thread of the chores, so that it costs clients nothing.
//!
//! 1. `begin` renames the LOG of the last open to `LOG.old.<microseconds>`, and removes the oldest
//!    of these. The first lines are written before the open returns.
//! 2. [`Chores::write_info_log`] writes the lines of new events, and of changes of the health.
//! 3. A file that has become too large is renamed in the same way, and another one begins.
//!
//! What must stay true: nothing depends on this file. A failed write loses lines and changes
//! nothing else; it is tried again after a while.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::{ColumnFamilyId, Instant, IoClass};
use sateen_store::base::sync::{Mutex, lock};
use sateen_store::files::FileName;
use sateen_store::vfs::{OpenOptions, Vfs, VfsFile};

use super::Chores;
use crate::options::{LogLevel, Options};
use crate::timeline::Event;
use crate::timeline::lines::{Weight, line};

/// The wait after a failed write.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Bytes of lines that are written at a time, at most.
const LINES_BYTES_MAX: usize = 256 << 10;

/// The state of the file LOG.
pub(crate) struct InfoLog {
    /// `None` while a thread writes: no lock is held meanwhile, and another one has nothing to do.
    state: Mutex<Option<State>>,
}

impl Default for InfoLog {
    fn default() -> InfoLog {
        InfoLog { state: Mutex::new(Some(State::default())) }
    }
}

#[derive(Default)]
struct State {
    file: Option<Arc<dyn VfsFile>>,
    length: u64,
    /// Number of events of the recorder that were read.
    events: u64,
    /// Seconds from 1970 to the open of the database, once they are known.
    opened_at: Option<u64>,
    retry_at: Instant,
    /// The cause of the health as last written.
    health: Option<String>,
    /// True once a logger has the head.
    logger_began: bool,
}

/// Why lines are written now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Opened,
    Again,
    Closing,
}

type Lines = Vec<(LogLevel, String)>;

impl Chores {
    /// Writes the first lines, as the database is opened.
    pub(crate) fn begin_info_log(&self) {
        self.write_on(Occasion::Opened);
    }

    /// Writes the lines of what has happened since the last call.
    pub(crate) fn write_info_log(&self) {
        self.write_on(Occasion::Again);
    }

    /// Writes the last lines.
    pub(crate) fn end_info_log(&self) {
        self.write_on(Occasion::Closing);
    }

    fn write_on(&self, occasion: Occasion) {
        let options = self.env.options.load();
        let level = options.logger.as_ref().map_or(options.log_level, |logger| logger.level);
        let Some(least) = least(level) else { return };
        let Some(mut state) = lock(&self.info_log.state).take() else { return };
        let now = self.env.now();
        if now >= state.retry_at {
            self.write_lines(&mut state, &options, least, occasion);
        }
        *lock(&self.info_log.state) = Some(state);
    }

    fn write_lines(&self, state: &mut State, options: &Options, least: Weight, occasion: Occasion) {
        let now = self.env.now();
        let opened_at = *state.opened_at.get_or_insert_with(|| {
            options.wall_clock.seconds().saturating_sub(now.0 / 1_000_000_000)
        });
        let stamp = |at_ns: u64| moment(opened_at, at_ns);
        let (mut lines, mut bytes) = (Lines::new(), 0);
        let mut add = |at_ns: u64, weight: Weight, line: &str| {
            if weight >= least && bytes < LINES_BYTES_MAX {
                // A line stays one line, whatever names and errors contain.
                let line = sateen_store::base::names::shown(line);
                let line = format!("{} {} {line}", stamp(at_ns), weight.name());
                bytes += line.len();
                lines.push((level(weight), line));
            }
        };
        let mut events: Vec<Event> = Vec::new();
        let lost = self.env.metrics.timeline.events_since(&mut state.events, &mut events);
        if lost > 0 {
            add(now.0, Weight::Warn, &format!("{lost} events were lost"));
        }
        let families = self.tree.families();
        let name = |id: ColumnFamilyId| {
            let found = families.values().find(|family| family.id() == id);
            found.map_or_else(|| id.to_string(), |family| self.tree.name_of(family))
        };
        for event in &events {
            if let Some((weight, line)) = line(event, &name) {
                add(event.at_ns, weight, &line);
            }
        }
        let health = self.env.health.cause().map(|cause| cause.to_string());
        if health != state.health {
            match &health {
                Some(cause) => {
                    let name = self.env.health.health().name();
                    add(now.0, Weight::Error, &format!("the database is {name}: {cause}"));
                }
                None => add(now.0, Weight::Info, "the database has recovered"),
            }
            state.health = health;
        }
        if occasion == Occasion::Closing {
            add(now.0, Weight::Info, "the database is closed");
        }
        if lines.is_empty() && occasion != Occasion::Opened {
            return;
        }
        if let Some(logger) = &options.logger {
            if !std::mem::replace(&mut state.logger_began, true) {
                let head = self.head(options, opened_at);
                head.lines().for_each(|line| logger.write(LogLevel::Info, line));
            }
            return lines.iter().for_each(|(level, line)| logger.write(*level, line));
        }
        let text: String = lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
        if self.append(state, options, opened_at, &text).is_err() {
            state.file = None;
            state.retry_at = now + RETRY_AFTER;
        }
    }

    /// Returns the first lines.
    fn head(&self, options: &Options, opened_at: u64) -> String {
        format!(
            "sateen {} log; times in UTC\n{} {} the database {} is open, options differ from the \
             defaults in: {}\n{}",
            env!("CARGO_PKG_VERSION"),
            moment(opened_at, 0),
            Weight::Info.name(),
            sateen_store::base::names::shown_path(&self.env.directory),
            differing(options),
            options.log_head,
        )
    }

    /// Appends `text` to the file, which is begun if there is none, or if it is too large.
    fn append(
        &self,
        state: &mut State,
        options: &Options,
        opened_at: u64,
        text: &str,
    ) -> std::io::Result<()> {
        let limit = options.log_file_bytes_max;
        let full = limit > 0 && state.length.saturating_add(text.len() as u64) > limit;
        let is_new = state.file.is_none() || full;
        if is_new {
            (state.file, state.length) = (Some(self.begin(options)?), 0);
        }
        let Some(file) = &state.file else { return Ok(()) };
        if is_new {
            let head = self.head(options, opened_at);
            file.write_at(head.as_bytes(), 0, IoClass::Manifest)?;
            state.length = head.len() as u64;
        }
        file.write_at(text.as_bytes(), state.length, IoClass::Manifest)?;
        state.length += text.len() as u64;
        Ok(())
    }

    /// Renames the file LOG of before, removes the oldest of those, and creates another one.
    fn begin(&self, options: &Options) -> std::io::Result<Arc<dyn VfsFile>> {
        let (vfs, directory) = (self.env.vfs.as_ref(), &self.env.directory);
        let path = FileName::InfoLog.path(directory);
        let mut old: Vec<u64> = Vec::new();
        for name in vfs.list(directory)? {
            if let Some(FileName::OldInfoLog(number)) =
                name.file_name().and_then(|name| FileName::parse(name.to_str()?))
            {
                old.push(number);
            }
        }
        old.sort_unstable();
        if vfs.exists(&path)? {
            let now = options.wall_clock.seconds().saturating_mul(1_000_000);
            let number = old.last().map_or(now, |last| now.max(last.saturating_add(1)));
            vfs.rename(&path, &FileName::OldInfoLog(number).path(directory))?;
            old.push(number);
        }
        let keep = (options.log_files_max as usize).saturating_sub(1);
        let surplus = old.len().saturating_sub(keep);
        for number in old.into_iter().take(surplus) {
            // One that stays is tried again with the next file.
            let _stays = vfs.remove(&FileName::OldInfoLog(number).path(directory));
        }
        vfs.open(&path, OpenOptions::CREATE)
    }
}

fn level(weight: Weight) -> LogLevel {
    match weight {
        Weight::Debug => LogLevel::Debug,
        Weight::Info => LogLevel::Info,
        Weight::Warn => LogLevel::Warn,
        Weight::Error => LogLevel::Error,
    }
}

/// Returns the least weight that is written at `level`; `None` if nothing is.
fn least(level: LogLevel) -> Option<Weight> {
    match level {
        LogLevel::Off => None,
        LogLevel::Debug => Some(Weight::Debug),
        LogLevel::Info => Some(Weight::Info),
        LogLevel::Warn => Some(Weight::Warn),
        LogLevel::Error => Some(Weight::Error),
    }
}

/// Returns the options that differ from the defaults.
fn differing(options: &Options) -> String {
    let default = Options::default();
    let pairs = Options::names().filter_map(|name| {
        let value = options.get(name).ok()?;
        (Some(&value) != default.get(name).ok().as_ref()).then(|| format!("{name}={value}"))
    });
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { "nothing".to_owned() } else { pairs.join(" ") }
}

/// Returns a moment in UTC, with microseconds: `2026-11-28T06:07:51.000012Z`.
fn moment(opened_at: u64, at_ns: u64) -> String {
    let seconds = opened_at.saturating_add(at_ns / 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The civil calendar, counted from 1 March of the year 0 in eras of 400 years.
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let micros = at_ns % 1_000_000_000 / 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use sateen_store::vfs::MemVfs;

    use super::*;
    use crate::{Db, WallClock};

    #[test]
    fn moments_follow_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000000Z"),
            (1_795_846_071, "2026-11-28T06:07:51.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ] {
            assert_eq!(moment(seconds, 0), text);
        }
        assert_eq!(moment(0, 1_000_012_345), "1970-01-01T00:00:01.000012Z");
    }

    fn open(vfs: &Arc<MemVfs>, set: &[(&str, &str)]) -> Db {
        let mut options = Options { background_threads: 0, ..Options::default() };
        options.wall_clock = WallClock::new(|| 1_795_846_071);
        set.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        Db::open_with(vfs.clone(), "/db", options, &[]).unwrap()
    }

    fn text(vfs: &MemVfs, name: &str) -> String {
        let file = vfs.open(&PathBuf::from("/db").join(name), OpenOptions::READ).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut bytes, 0, IoClass::Manifest).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn logs(vfs: &MemVfs) -> Vec<String> {
        let names = vfs.list(&PathBuf::from("/db")).unwrap().into_iter();
        let names = names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("LOG")).collect()
    }

    #[test]
    fn by_default_there_is_no_file() {
        let vfs = Arc::new(MemVfs::new());
        let db = open(&vfs, &[]);
        db.put("fig", "1").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        assert!(logs(&vfs).is_empty());
    }

    #[test]
    fn what_the_background_did_is_a_line_each() {
        let vfs = Arc::new(MemVfs::new());
        let db = open(&vfs, &[("log_level", "info")]);
        db.put("fig", "1").unwrap();
        db.flush().unwrap();
        while db.step().unwrap() {}
        db.close().unwrap();
        let text = text(&vfs, "LOG");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("sateen ") && lines[0].ends_with("UTC"), "{text}");
        assert!(
            lines[1].contains(" INFO  the database /db is open")
                && lines[1].contains("log_level=info")
        );
        assert!(lines[1..].iter().all(|line| line.starts_with("2026-11-28T06:07:")), "{text}");
        let has = |what: &str| lines.iter().any(|line| line.contains(what));
        assert!(has("a memtable of default is full"), "{text}");
        assert!(has("flush of default begins") && has("flush of default is done: read"), "{text}");
        assert!(lines.last().unwrap().ends_with("the database is closed"), "{text}");
    }

    #[test]
    fn it_begins_with_the_open_and_a_logger_gets_it_in_place_of_the_file() {
        let vfs = Arc::new(MemVfs::new());
        let mut options = Options { background_threads: 0, ..Options::default() };
        options.log_level = LogLevel::Info;
        options.log_head = "of the program: 1\n".into();
        let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
        let text = text(&vfs, "LOG");
        assert!(text.contains("is open") && text.ends_with("\nof the program: 1\n"), "{text}");
        db.close().unwrap();
        vfs.remove(&PathBuf::from("/db/LOG")).unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        options.log_level = LogLevel::Off;
        options.logger = Some(crate::Logger::new(LogLevel::Info, move |level, line| {
            lock(&kept).push((level, line.to_owned()));
            assert!(!line.contains("is open"), "a panic loses no other line");
        }));
        let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
        let begun = lock(&lines).len();
        assert!(begun >= 3, "{lines:?}");
        db.put("fig", "1").unwrap();
        db.flush().unwrap();
        while db.step().unwrap() {}
        db.close().unwrap();
        let lines = lock(&lines);
        let heads = lines.iter().filter(|(_, line)| line == "of the program: 1");
        assert_eq!(heads.count(), 1, "{lines:?}");
        assert!(lines[begun..].iter().any(|(_, line)| line.contains("flush of default is done")));
        assert!(
            lines.iter().all(|(level, line)| *level != LogLevel::Debug && !line.contains('\n'))
        );
        assert!(logs(&vfs).is_empty());
    }

    #[test]
    fn old_files_are_renamed_and_a_number_of_them_is_kept() {
        let vfs = Arc::new(MemVfs::new());
        for _ in 0..5 {
            let db = open(&vfs, &[("log_level", "warn"), ("log_files_max", "3")]);
            // A warning, so that there is anything to write.
            db.core()
                .env
                .metrics
                .timeline
                .told(Instant(1), crate::timeline::EventKind::CannotPunch);
            db.close().unwrap();
        }
        assert_eq!(logs(&vfs), ["LOG", "LOG.old.1795846071000002", "LOG.old.1795846071000003"]);
        // A file that becomes too large is renamed as well.
        let db = open(&vfs, &[("log_level", "debug"), ("log_file_bytes_max", "4096")]);
        for round in 0..100 {
            db.put("fig", format!("{round}")).unwrap();
            db.flush().unwrap();
            while db.step().unwrap() {}
            db.core().background.chores.write_info_log();
        }
        db.close().unwrap();
        assert!(logs(&vfs).len() > 4, "{:?}", logs(&vfs));
        assert!(text(&vfs, "LOG").starts_with("sateen "));
        // They go with the database, and a log of another program does not.
        vfs.rename(&PathBuf::from("/db/LOG"), &PathBuf::from("/db/kept")).unwrap();
        let other = vfs.open(&PathBuf::from("/db/LOG"), OpenOptions::CREATE).unwrap();
        other
            .write_at(b"2026/11/28-06:07:51 7f00 RocksDB version\n", 0, IoClass::Manifest)
            .unwrap();
        let report = crate::destroy_with(vfs.as_ref(), "/db", &Options::default()).unwrap();
        assert_eq!(report.left, [PathBuf::from("/db/LOG"), PathBuf::from("/db/kept")]);
    }

    #[test]
    fn a_file_that_cannot_be_written_changes_nothing() {
        let vfs = Arc::new(MemVfs::new());
        drop(open(&vfs, &[]));
        // Nothing can be renamed to or created under these names.
        vfs.create_dir_all(&PathBuf::from("/db/LOG")).unwrap();
        let db = open(&vfs, &[("log_level", "debug")]);
        db.put("fig", "1").unwrap();
        db.flush().unwrap();
        while db.step().unwrap() {}
        assert_eq!(db.get("fig").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(db.health().0, crate::Health::Ok);
        db.close().unwrap();
    }
}
