//! Scripts under `testdata`: state in, decision out. A case is a line with a command, further lines
//! of input, a line `----`, and what is printed, up to an empty line. `REWRITE=1` writes what is
//! printed into the scripts instead of comparing. The commands are documented at [`World::run`].
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sateen_control::compaction::{
    FileSpace, InFlight, LevelTargets, PickContext, Stripes, TreeView, sparse_files,
};
use sateen_control::options::BottommostLevelCompaction;
use sateen_control::version::{AddedTable, RemovedTable};
use sateen_control::{
    Action, CfOptions, ColumnFamilyId, ControlOptions, ControlPlane, Epoch, Event, FileId, Instant,
    JobId, JobResult, RequestId, TableId, UserKey, Version, VersionEdit,
};

mod databases;
mod load;
mod parse;

use databases::Databases;
use load::{Device, Load, stepped};
use parse::{Line, duration, flag, id, number, set_cf, set_control, table};

#[derive(Default)]
struct World {
    plane_options: ControlOptions,
    plane: Option<ControlPlane>,
    now: Instant,
    options: BTreeMap<ColumnFamilyId, CfOptions>,
    versions: BTreeMap<ColumnFamilyId, Arc<Version>>,
    /// For the commands that speak to a picker without a plane.
    in_flight: InFlight,
    /// Where level 0 is cut.
    stripes: Stripes,
    last_table: u64,
    last_job: u64,
    device: Device,
    databases: Databases,
}

impl World {
    /// Without a plane (the folder `picker`), all about column family 0:
    /// - `options [defaults] key=value…`: starts over with these options
    /// - `version` + lines `L1: table…`, `L0.7: table…`, `pointer L1 key`: what is where
    /// - `targets`, `scores`, `pending`: what follows from it
    /// - `pick`: the plan; `pick claim`: and it is in flight from now on as the next job; `pick
    ///   inputs=N`: a group takes no more in; `pick filling`: more will soon be in level 0
    /// - `release j1`
    /// - `files` + lines `f1 live=N dead=N punched=N holes=N [stuck]`: the sparse ones; stuck: what
    ///   is dead is not given back
    /// - `stripes`: where flushes cut level 0 from now on, and `pick` has it cut
    ///
    /// With one:
    /// - `plane key=value…`: starts over; `set key=value…`: changes its options
    /// - `away j1`, `back j1`: another process does the work of a job, or has answered
    /// - `cf N [defaults] key=value…`: adds a column family, or changes its options
    /// - `version cf=N` + lines as above: a version is installed
    /// - `memtables cf=N sealed=N bytes=N active=N [size=N]`, `flush cf=N`, `drop cf=N`
    /// - `sizes N`: the sizes of column family N in force, how many runs collect in level 0 if that
    ///   was learned, its base level and its debt
    /// - `stepped j1 r=N w=N [cpu=N]` (microseconds), `finished j1 done|failed|no-space|cancelled`,
    ///   `pause on|off`, `stop on|off`: all work, or compactions
    /// - `sparse f1 f2`: these files should go; `charged t1 cf=N`: reads were charged to this table
    /// - `manual q1 cf=N [begin=K] [end=K] [bottommost=skip|force]`, `cancel q1`
    /// - `database N key=value…`: another database on the same device, whose commands follow; the
    ///   first one begins without any other. `database N` alone goes back to it
    /// - `restless`: the databases that must be polled
    /// - `advance 50ms`
    /// - `limit`: the rate limit in force
    /// - `busy N`: N times 100 ms in which every grant is used up at once; `slow N`: one in each
    /// - `load 2s [reads=N] [puts=N] [device=N] [busy=N] [gets=N runs=N] [scans=N] [dead=N]
    ///   [others=N]`: clients read and put so many bytes a second, the device reads so many;
    ///   `busy`: all of it takes so many microseconds longer; so many gets a second look into so
    ///   many runs each, and so many scans; so many bytes of dead tables can be given back; other
    ///   programs use so many thousandths of the processors
    /// - `outlook N`: what lies ahead of the writers of a column family
    /// - `believed`: what is believed of the device
    /// - `reclaim N`: how fast dead tables that cost so many bytes are given back
    /// - `poll`: all that is to do, and when to ask again; `poll no-grants`: without grants, which
    ///   are given all the same
    fn run(&mut self, command: &str, input: &[&str]) -> String {
        let line = Line::parse(command);
        match line.word(0) {
            "options" => self.set_options(ColumnFamilyId(0), &line, 1),
            "version" => self.install(&line, input),
            "targets" => self.targets(),
            "scores" => self.scores(),
            "stripes" => self.cut_stripes(),
            "files" => sparse(input),
            "pick" => {
                let group_bytes_max =
                    line.values.get("inputs").map_or(u64::MAX, |text| number(text));
                let has = |word| line.words.contains(&word);
                self.pick(has("claim"), has("level0-only"), has("filling"), group_bytes_max)
            }
            "release" => {
                format!("{}\n", self.in_flight.release(JobId(id(line.word(1)))))
            }
            "plane" => {
                *self = World::default();
                self.plane_options = ControlOptions {
                    parallel_only_under_pressure: false,
                    ..ControlOptions::default()
                };
                self.change(&line);
                self.plane = Some(ControlPlane::new(self.plane_options.clone()));
                String::new()
            }
            "database" => self.go_to(&line),
            "restless" => {
                let Databases { scheduler, .. } = &mut self.databases;
                let scheduler = scheduler.as_mut().expect("a database");
                let plane = self.plane.as_mut().expect("a plane");
                scheduler.exchange(plane);
                let restless = scheduler.take_restless();
                scheduler.exchange(plane);
                restless.iter().map(|database| format!("{database}\n")).collect()
            }
            "set" => {
                self.change(&line);
                let options = Box::new(self.plane_options.clone());
                self.event(Event::OptionsChanged { options })
            }
            "cf" => self.set_options(ColumnFamilyId(number(line.word(1)) as u32), &line, 2),
            "advance" => {
                self.now = self.now + duration(line.word(1));
                String::new()
            }
            "limit" => format!("{:?}\n", self.plane.as_ref().expect("a plane").rate_limit()),
            "load" => self.load(&line),
            "outlook" => {
                let plane = self.plane.as_ref().expect("a plane");
                let cf = ColumnFamilyId(number(line.word(1)) as u32);
                let outlook = plane.outlook([cf]).expect("a smooth admission");
                let stall = outlook.time_to_stall_ns.map(Duration::from_nanos);
                format!(
                    "stall in {stall:?}, {} MB/s for ever\n",
                    outlook.sustainable_write_rate / 1_000_000
                )
            }
            "believed" => {
                let profile = self.plane.as_ref().expect("a plane").device();
                format!("reads {} MB/s\n", profile.read_bytes_per_second / 1_000_000)
            }
            "sizes" => self.sizes(ColumnFamilyId(number(line.word(1)) as u32)),
            "reclaim" => {
                let plane = self.plane.as_ref().expect("a plane");
                let pace = plane.reclaim_pace(number(line.word(1)));
                format!("{:?} {:?}\n", pace.rate, pace.haste)
            }
            "busy" => self.busy(number(line.word(1)), false),
            "slow" => self.busy(number(line.word(1)), true),
            "poll" => self.poll(line.words.get(1) == Some(&"no-grants")),
            _ => {
                let event = event(&line);
                self.event(event)
            }
        }
    }

    fn event(&mut self, event: Event) -> String {
        self.plane.as_mut().expect("a plane").handle(self.now, event);
        String::new()
    }

    fn change(&mut self, line: &Line<'_>) {
        for (key, value) in &line.values {
            set_control(&mut self.plane_options, key, value);
        }
    }

    fn set_options(&mut self, cf: ColumnFamilyId, line: &Line<'_>, word: usize) -> String {
        let mut options = match line.words.get(word) {
            Some(&"defaults") => CfOptions::default(),
            Some(other) => panic!("unknown word {other}"),
            None => self.options.get(&cf).cloned().unwrap_or_default(),
        };
        for (key, value) in &line.values {
            set_cf(&mut options, key, value);
        }
        let style = options.compaction_style.name().to_owned();
        let version = Arc::new(Version::new(cf, options.level_count()).with_style(style));
        let known = self.options.insert(cf, options.clone()).is_some();
        if self.plane.is_none() {
            self.in_flight = InFlight::default();
            self.versions.insert(cf, version);
            (self.last_table, self.last_job) = (0, 0);
            return String::new();
        }
        let options = Arc::new(options);
        if known {
            return self.event(Event::CfOptionsChanged { cf, options });
        }
        self.versions.insert(cf, version.clone());
        self.event(Event::ColumnFamilyAdded { options, version })
    }

    /// Replaces what is there by what is given. Tables of the same id and place stay.
    fn install(&mut self, line: &Line<'_>, input: &[&str]) -> String {
        let cf = ColumnFamilyId(line.number("cf") as u32);
        let old = self.versions[&cf].clone();
        let mut edit = VersionEdit { column_family: cf, ..VersionEdit::default() };
        for text in input {
            if let Some(rest) = text.strip_prefix("pointer L") {
                let (level, key) = rest.split_once(' ').unwrap();
                edit.compact_pointers
                    .push((level.parse().unwrap(), UserKey::bytewise(key.as_bytes())));
                continue;
            }
            let (place, tables) = text.split_once(':').expect("L1: tables");
            let (level, epoch) = match place.split_once('.') {
                Some((level, epoch)) => (level, epoch.parse().unwrap()),
                None => (place, 0),
            };
            let level = level.strip_prefix('L').unwrap().parse().unwrap();
            for text in tables.split_whitespace() {
                let table = table(text, &mut self.last_table);
                edit.added.push(AddedTable { level, epoch: Epoch(epoch), table });
            }
        }
        edit.removed = old
            .tables()
            .map(|(level, epoch, table)| RemovedTable {
                level,
                epoch,
                smallest: table.smallest.clone(),
                id: table.id,
            })
            .collect();
        let version = match old.apply(&edit) {
            Ok(version) => Arc::new(version),
            Err(error) => return format!("error: {error}\n"),
        };
        version.validate().unwrap();
        self.versions.insert(cf, version.clone());
        if let Some(plane) = &mut self.plane {
            plane.handle(self.now, Event::VersionInstalled { version });
        }
        String::new()
    }

    fn sizes(&self, cf: ColumnFamilyId) -> String {
        let plane = self.plane.as_ref().expect("a plane");
        let options = plane.family_options(cf).expect("a column family");
        let sizes = [
            ("memtable", options.memtable_bytes),
            ("table", options.table_bytes),
            ("base", options.level_base_bytes),
        ];
        let mut sizes: Vec<_> =
            sizes.iter().map(|(name, bytes)| format!("{name}={}M", bytes >> 20)).collect();
        if options.leveled.level0_collects > 0 {
            sizes.push(format!("collects={}", options.leveled.level0_collects));
        }
        let targets = targets(&self.versions[&cf], options);
        let totals = targets.lines().filter(|line| !line.starts_with('L'));
        totals.fold(sizes.join(" ") + "\n", |out, line| out + line + "\n")
    }

    fn targets(&self) -> String {
        let (version, options) = self.only();
        targets(version, options)
    }

    fn scores(&self) -> String {
        let (version, options) = self.only();
        let targets = LevelTargets::new(version, options);
        let view = TreeView { version, options, targets: &targets };
        let scores = options.policy().scores(&view, &self.in_flight);
        scores.iter().fold(String::new(), |out, s| out + &format!("L{}: {:.3}\n", s.level, s.score))
    }

    fn cut_stripes(&mut self) -> String {
        let (version, options) = self.only();
        let targets = LevelTargets::new(version, options);
        let view = TreeView { version, options, targets: &targets };
        self.stripes = options.policy().stripes(&self.stripes, &view);
        let starts = self.stripes.iter().map(|key| String::from_utf8_lossy(key.bytes()));
        format!("begin at {}\n", starts.collect::<Vec<_>>().join(" "))
    }

    fn pick(
        &mut self,
        claim: bool,
        level0_only: bool,
        more_comes: bool,
        group_bytes_max: u64,
    ) -> String {
        let (version, options) = self.only();
        let targets = LevelTargets::new(version, options);
        let view = TreeView { version, options, targets: &targets };
        let scores = options.policy().scores(&view, &self.in_flight);
        let context = PickContext {
            version,
            options,
            targets: &targets,
            scores: &scores,
            stripes: &self.stripes,
            in_flight: &self.in_flight,
            group_bytes_max,
            input_bytes_max: u64::MAX,
            level0_only,
            more_comes,
            level0_first: false,
        };
        let Some(plan) = options.policy().pick(&context) else {
            return "nothing\n".into();
        };
        let mut out = format!("{plan}\n");
        if let Some((level, key)) = &plan.compact_pointer {
            writeln!(out, "pointer L{level} {}", String::from_utf8_lossy(key.bytes())).unwrap();
        }
        if claim {
            self.last_job += 1;
            self.in_flight.claim(JobId(self.last_job), &plan).unwrap();
            writeln!(out, "claimed by j{}", self.last_job).unwrap();
        }
        out
    }

    fn only(&self) -> (&Version, &CfOptions) {
        let cf = ColumnFamilyId(0);
        (&self.versions[&cf], &self.options[&cf])
    }

    fn load(&mut self, line: &Line<'_>) -> String {
        let load = Load::of(|name| line.values.get(name).map_or(0, |text| number(text)));
        let periods = duration(line.word(1)).as_millis() as u64 / 10;
        let plane = self.plane.as_mut().expect("a plane");
        self.device.run(plane, &mut self.now, periods, &load)
    }

    fn busy(&mut self, periods: u64, slow: bool) -> String {
        let plane = self.plane.as_mut().expect("a plane");
        let mut granted = 0;
        for _ in 0..periods {
            self.now = self.now + Duration::from_millis(100);
            let mut later = Vec::new();
            while let Some(action) = plane.poll(self.now) {
                if let Action::Grant { job, bytes } = action {
                    granted += bytes;
                    let event = stepped(job, 0, bytes);
                    if slow {
                        later.push(event);
                    } else {
                        plane.handle(self.now, event);
                    }
                }
            }
            for event in later {
                plane.handle(self.now, event);
            }
        }
        format!("granted {granted}\n")
    }

    fn poll(&mut self, no_grants: bool) -> String {
        let plane = self.plane.as_mut().expect("a plane");
        let mut out = String::new();
        while let Some(action) = plane.poll(self.now) {
            self.device.note(&action);
            let text = action.to_string();
            if !(no_grants && text.starts_with("grant")) {
                writeln!(out, "{text}").unwrap();
            }
        }
        if let Some(at) = plane.poll_timeout() {
            writeln!(out, "again in {:?}", at.since(self.now)).unwrap();
        }
        if out.is_empty() { "nothing\n".into() } else { out }
    }
}

/// Returns the targets of the levels of `version`, and its debt.
fn targets(version: &Version, options: &CfOptions) -> String {
    let targets = LevelTargets::new(version, options);
    let mut out = format!("base level {}", targets.base_level);
    if let Some(level) = targets.lowest_unneeded_level {
        write!(out, ", unneeded down to {level}").unwrap();
    }
    out.push('\n');
    for level in targets.base_level..options.level_count() as u8 {
        if targets.bytes_max(level) < u64::MAX {
            writeln!(out, "L{level}: {}", targets.bytes_max(level)).unwrap();
        }
    }
    let pending = options.policy().debt(&TreeView { version, options, targets: &targets });
    writeln!(out, "pending {pending}").unwrap();
    out
}

fn event(line: &Line<'_>) -> Event {
    let cf = ColumnFamilyId(line.number("cf") as u32);
    let job = || JobId(id(line.word(1)));
    let request = || RequestId(id(line.word(1)));
    let key = |name| line.values.get(name).map(|key: &&str| UserKey::bytewise(key.as_bytes()));
    match line.word(0) {
        "memtables" => Event::MemtablesChanged {
            cf,
            sealed: line.number("sealed") as u32,
            sealed_bytes: line.number("bytes"),
            active_bytes: line.number("active"),
            size_bytes: line.values.get("size").map_or(u64::MAX, |text| number(text)),
        },
        "flush" => Event::FlushRequested { cf },
        "drop" => Event::ColumnFamilyDropped { cf },
        "stepped" => Event::JobStepped {
            job: job(),
            read_bytes: line.number("r"),
            written_bytes: line.number("w"),
            cpu_ns: line.number("cpu") * 1000,
        },
        "away" | "back" => Event::JobAway { job: job(), away: line.word(0) == "away" },
        "finished" => Event::JobFinished {
            job: job(),
            result: match line.word(2) {
                "done" => JobResult::Done,
                "failed" => JobResult::Failed,
                "no-space" => JobResult::NoSpace,
                _ => JobResult::Cancelled,
            },
        },
        "charged" => Event::TableCharged { cf, table: TableId(id(line.word(1))) },
        "sparse" => Event::FilesSparse {
            files: line.words[1..].iter().map(|word| FileId(id(word))).collect(),
        },
        "pause" => Event::Paused(flag(line.word(1))),
        "stop" => Event::CompactionsStopped(flag(line.word(1))),
        "manual" => Event::CompactRange {
            request: request(),
            cf,
            begin: key("begin"),
            end: key("end"),
            bottommost: match line.values.get("bottommost") {
                Some(&"skip") => BottommostLevelCompaction::Skip,
                Some(&"force") => BottommostLevelCompaction::Force,
                _ => BottommostLevelCompaction::IfTombstones,
            },
        },
        "cancel" => Event::CompactRangeCancelled { request: request() },
        other => panic!("unknown command {other}"),
    }
}

fn sparse(input: &[&str]) -> String {
    let space = |text: &&str| {
        let line = Line::parse(text);
        FileSpace {
            file: FileId(id(line.word(0))),
            live_bytes: line.number("live"),
            dead_bytes: line.number("dead"),
            gives_back: line.words.get(1) != Some(&"stuck"),
            punched_bytes: line.number("punched"),
            holes: line.number("holes") as u32,
        }
    };
    let files: Vec<_> = input.iter().map(space).collect();
    let sparse: Vec<_> = sparse_files(&files).iter().map(|file| format!("f{}", file.0)).collect();
    format!("sparse: {}\n", sparse.join(" "))
}

/// Runs a script; returns what it should say.
fn replay(script: &str) -> String {
    let mut world = World::default();
    let mut out = String::new();
    let mut lines = script.lines().peekable();
    while let Some(command) = lines.next() {
        if command.is_empty() || command.starts_with('#') {
            writeln!(out, "{command}").unwrap();
            continue;
        }
        let mut input = Vec::new();
        let mut separated = false;
        for line in lines.by_ref() {
            separated = line == "----";
            if separated {
                break;
            }
            input.push(line);
        }
        assert!(separated, "no line ---- behind: {command}");
        // What it said last time.
        while lines.next_if(|line| !line.is_empty()).is_some() {}
        let said = world.run(command, &input);
        writeln!(out, "{command}").unwrap();
        for line in &input {
            writeln!(out, "{line}").unwrap();
        }
        assert!(said.is_empty() || said.ends_with('\n'));
        write!(out, "----\n{said}").unwrap();
    }
    out
}

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test binary is told to rewrite, control is not")]
fn scripts_say_what_they_said() {
    let rewrite = std::env::var("REWRITE").is_ok_and(|value| value == "1");
    let scripts = scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata"));
    assert!(scripts.len() >= 10, "scripts are missing");
    let mut differing = 0;
    for path in scripts {
        let before = std::fs::read_to_string(&path).unwrap();
        let after = replay(&before);
        if before == after {
            continue;
        }
        if rewrite {
            std::fs::write(&path, &after).unwrap();
            continue;
        }
        differing += 1;
        eprintln!("{} differs (REWRITE=1 accepts):", path.display());
        for (number, (was, is)) in before.lines().zip(after.lines()).enumerate() {
            if was != is {
                eprintln!("  line {}: was {was}\n            is {is}", number + 1);
                break;
            }
        }
    }
    assert_eq!(differing, 0, "scripts differ");
}
