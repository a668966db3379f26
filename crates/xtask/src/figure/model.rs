//! What a figure is: plain data. A catalogue of these says for each figure of a paper what runs,
//! how its values are read, what the paper published, and what agreement means.

use serde_json::Value;

/// Whose figures these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Paper {
    Silk,
    Bolt,
    Vlsm,
    Adoc,
    /// Series of our own, which show no figure of a paper.
    Sateen,
}

impl Paper {
    pub(crate) const ALL: [Paper; 5] =
        [Paper::Silk, Paper::Bolt, Paper::Vlsm, Paper::Adoc, Paper::Sateen];

    /// The name on the command line and in file names.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Paper::Silk => "silk",
            Paper::Bolt => "bolt",
            Paper::Vlsm => "vlsm",
            Paper::Adoc => "adoc",
            Paper::Sateen => "sateen",
        }
    }

    /// The name in text.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Paper::Silk => "SILK",
            Paper::Bolt => "BoLT",
            Paper::Vlsm => "vLSM",
            Paper::Adoc => "ADOC",
            Paper::Sateen => "Sateen",
        }
    }
}

/// A figure or table of a paper.
pub(crate) struct Figure {
    pub(crate) paper: Paper,
    /// Its number in the paper, in lower case: `10`, `8a`, `table-1`.
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
}

impl Figure {
    pub(crate) const fn measured(
        paper: Paper,
        number: &'static str,
        title: &'static str,
        plan: Plan,
    ) -> Figure {
        Figure { paper, number, title, kind: Kind::Measured(plan) }
    }

    pub(crate) const fn diagram(paper: Paper, number: &'static str, title: &'static str) -> Figure {
        Figure { paper, number, title, kind: Kind::Diagram }
    }

    /// The name of its files and its name on the command line: `silk-10`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.paper.key(), self.number)
    }

    /// The number in text: "Fig. 10", "Table 1".
    pub(crate) fn label(&self) -> String {
        let number = self.number;
        match number.split_once('-') {
            Some(("table", number)) => format!("Table {number}"),
            Some(("section", number)) => format!("§{number}"),
            _ if number.starts_with(|c: char| c.is_ascii_digit()) => format!("Fig. {number}"),
            _ => number.to_owned(),
        }
    }
}

/// What can be done about a figure.
pub(crate) enum Kind {
    /// A drawing or a definition: there is nothing to measure.
    Diagram,
    Measured(Plan),
}

/// How a figure is measured and what it shows.
pub(crate) struct Plan {
    /// What the paper says with it, in a sentence.
    pub(crate) claim: &'static str,
    /// How this setting differs from the paper's, in a sentence.
    pub(crate) setting: &'static str,
    pub(crate) means: Means,
    /// The minutes of the long form, about.
    pub(crate) minutes: u32,
    pub(crate) jobs: fn(Mode) -> Vec<Job>,
    pub(crate) panels: &'static [Panel],
    /// Why the shape differs, once it does and the reason is known; otherwise empty.
    pub(crate) because: &'static str,
}

/// Where a figure runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// In virtual time: `sateen sim`.
    Virtual,
    /// On a disk: `sateen bench`.
    Real,
}

impl Means {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Means::Virtual => "virtual time",
            Means::Real => "engine",
        }
    }
}

/// How long the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// At most two minutes a figure, all runs together.
    Quick,
    /// What the documentation shows.
    Full,
}

impl Mode {
    /// Returns one of two values.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Mode::Quick => quick,
            Mode::Full => full,
        }
    }
}

/// Runs that follow each other on one database. The first begins with an empty one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) place: Place,
    pub(crate) runs: Vec<Run>,
}

impl Job {
    /// One run in virtual time.
    pub(crate) fn sim(series: &'static str, words: &str) -> Job {
        Job { place: Place::Disk, runs: vec![Run::new(Tool::Sim, series, words)] }
    }

    /// A job on the disk as it is. [`Job::run`] adds its runs.
    pub(crate) fn disk() -> Job {
        Job { place: Place::Disk, runs: Vec::new() }
    }

    /// A job on a device of its own, which the kernel limits.
    pub(crate) fn limited(disk_gb: u32, memory_gb: u32) -> Job {
        Job { place: Place::Limited { disk_gb, memory_gb }, runs: Vec::new() }
    }

    /// Adds a run of `sateen bench` that belongs to a series of the figure.
    pub(crate) fn run(self, series: &'static str, words: &str) -> Job {
        self.add(Run::new(Tool::Bench, series, words))
    }

    /// Adds a run that only prepares the database.
    pub(crate) fn load(self, words: &str) -> Job {
        self.add(Run::new(Tool::Bench, "", words))
    }

    /// Says at which place of the x axis the last run stands.
    pub(crate) fn at(mut self, x: X) -> Job {
        if let Some(run) = self.runs.last_mut() {
            run.x = Some(x);
        }
        self
    }

    /// Puts the last run into a group, of which a panel may show one.
    pub(crate) fn group(mut self, group: &'static str) -> Job {
        if let Some(run) = self.runs.last_mut() {
            run.group = group;
        }
        self
    }

    /// Limits the device for the last run to this many MB/s, each way; 0 for no limit.
    pub(crate) fn mb_per_second(mut self, limit: u32) -> Job {
        if let Some(run) = self.runs.last_mut() {
            run.mb_per_second = Some(limit).filter(|limit| *limit > 0);
        }
        self
    }

    fn add(mut self, run: Run) -> Job {
        self.runs.push(run);
        self
    }
}

/// Where the runs of a job keep their database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder of the file system as it is.
    Disk,
    /// A file system on a loop device, for a process whose memory is limited.
    Limited { disk_gb: u32, memory_gb: u32 },
}

/// The command of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Sim,
    Bench,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Sim => "sim",
            Tool::Bench => "bench",
        }
    }
}

/// One run of the command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) tool: Tool,
    /// The series whose values it gives; empty if it shows nothing.
    pub(crate) series: &'static str,
    pub(crate) x: Option<X>,
    /// The group to which it belongs, where a panel shows one of several.
    pub(crate) group: &'static str,
    /// Its arguments. `{rocksdb}` and `{leveldb}` stand for the paths of their libraries.
    pub(crate) words: Vec<String>,
    /// The limit of the device in MB/s, each way.
    pub(crate) mb_per_second: Option<u32>,
}

impl Run {
    fn new(tool: Tool, series: &'static str, words: &str) -> Run {
        let words = words.split_whitespace().map(str::to_owned).collect();
        Run { tool, series, x: None, group: "", words, mb_per_second: None }
    }
}

/// What a run reported.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) run: Run,
    /// The first of its runs in the JSON of `sateen bench` or `sateen sim`.
    pub(crate) json: Value,
}

/// A place on the x axis: a number, or the name of a group of bars or of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum X {
    At(f64),
    Is(&'static str),
}

impl X {
    pub(crate) fn text(self) -> String {
        match self {
            X::At(number) => format!("{number}"),
            X::Is(name) => name.to_owned(),
        }
    }
}

/// Values that belong together: a line, or the bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(X, f64)>,
}

/// Values that the paper's text gives.
pub(crate) struct Published {
    /// The series of ours beside which they stand.
    pub(crate) name: &'static str,
    /// The section that gives them.
    pub(crate) source: &'static str,
    /// If set, the values are multiples of this series, and are drawn as multiples of ours.
    pub(crate) times: Option<&'static str>,
    pub(crate) points: &'static [(X, f64)],
}

/// One chart or table of a figure.
pub(crate) struct Panel {
    /// Its title, if a figure has several.
    pub(crate) title: &'static str,
    pub(crate) form: Form,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) reading: Reading,
    pub(crate) published: &'static [Published],
    pub(crate) checks: &'static [Check],
}

impl Panel {
    const fn new(form: Form, x: Axis, y: Axis, reading: Reading) -> Panel {
        Panel { title: "", form, x, y, reading, published: &[], checks: &[] }
    }

    /// A line for each run, for instance over time.
    pub(crate) const fn curves(x: Axis, y: Axis, read: fn(&Output) -> Vec<(f64, f64)>) -> Panel {
        Panel::new(Form::Lines, x, y, Reading::Curve(read))
    }

    /// A line for each series, with a point for each run.
    pub(crate) const fn points(x: Axis, y: Axis, read: fn(&Output) -> Option<f64>) -> Panel {
        Panel::new(Form::Lines, x, y, Reading::Point(read))
    }

    /// A group of bars at each name of x, with a bar for each series.
    pub(crate) const fn groups(x: Axis, y: Axis, read: fn(&Output) -> Option<f64>) -> Panel {
        Panel::new(Form::Bars, x, y, Reading::Point(read))
    }

    /// A bar for each run.
    pub(crate) const fn bars(y: Axis, read: fn(&Output) -> Option<f64>) -> Panel {
        Panel::new(Form::Bars, Axis::linear(""), y, Reading::System(read))
    }

    /// Lines that all runs together give.
    pub(crate) const fn whole(x: Axis, y: Axis, read: fn(&[Output]) -> Vec<Series>) -> Panel {
        Panel::new(Form::Lines, x, y, Reading::Whole(read))
    }

    pub(crate) const fn titled(self, title: &'static str) -> Panel {
        Panel { title, ..self }
    }

    pub(crate) const fn drawn_as(self, form: Form) -> Panel {
        Panel { form, ..self }
    }

    pub(crate) const fn published(self, published: &'static [Published]) -> Panel {
        Panel { published, ..self }
    }

    pub(crate) const fn checks(self, checks: &'static [Check]) -> Panel {
        Panel { checks, ..self }
    }
}

/// How a panel is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Lines,
    Bars,
    Table,
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub(crate) label: &'static str,
    pub(crate) log: bool,
    /// If set, the ends of what is shown.
    pub(crate) range: Option<(f64, f64)>,
}

impl Axis {
    pub(crate) const fn linear(label: &'static str) -> Axis {
        Axis { label, log: false, range: None }
    }

    pub(crate) const fn log(label: &'static str) -> Axis {
        Axis { label, log: true, range: None }
    }

    pub(crate) const fn within(self, low: f64, high: f64) -> Axis {
        Axis { range: Some((low, high)), ..self }
    }
}

/// The series of a panel that has a bar for each system.
pub(crate) const HERE: &str = "here";

/// How the series of a panel come out of the results.
pub(crate) enum Reading {
    /// Each run is a series: a line over time, or over percentiles.
    Curve(fn(&Output) -> Vec<(f64, f64)>),
    /// Each run is a point of its series, at its own x.
    Point(fn(&Output) -> Option<f64>),
    /// Each run is a point of one series, [`HERE`], at the name of its own.
    System(fn(&Output) -> Option<f64>),
    /// All runs together.
    Whole(fn(&[Output]) -> Vec<Series>),
}

/// A part of the claim that can be seen in the values: how one term relates to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) left: Term,
    pub(crate) right: Term,
    /// The least and the greatest quotient of the terms with which the shape agrees.
    pub(crate) between: (f64, f64),
    /// The paper's quotient, if its text gives one.
    pub(crate) paper: Option<f64>,
}

impl Check {
    /// `left ÷ right` is at least `factor`.
    pub(crate) const fn at_least(left: Term, factor: f64, right: Term) -> Check {
        Check { left, right, between: (factor, f64::INFINITY), paper: None }
    }

    /// `left ÷ right` is at most `factor`.
    pub(crate) const fn at_most(left: Term, factor: f64, right: Term) -> Check {
        Check { left, right, between: (0.0, factor), paper: None }
    }

    /// `left ÷ right` lies between these.
    pub(crate) const fn between(left: Term, low: f64, high: f64, right: Term) -> Check {
        Check { left, right, between: (low, high), paper: None }
    }

    /// States the paper's quotient.
    pub(crate) const fn paper(self, quotient: f64) -> Check {
        Check { paper: Some(quotient), ..self }
    }
}

/// A number taken from a series, or a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    Of(&'static str, Pick),
    Value(f64),
}

/// The constant to which a term that stands alone is compared.
pub(crate) const ONE: Term = Term::Value(1.0);

/// The value of a series at a name of x.
pub(crate) const fn at(series: &'static str, x: &'static str) -> Term {
    Term::Of(series, Pick::At(X::Is(x)))
}

/// The value of a series at a number of x.
pub(crate) const fn at_number(series: &'static str, x: f64) -> Term {
    Term::Of(series, Pick::At(X::At(x)))
}

/// The value of a system in a panel that has a bar for each.
pub(crate) const fn of(system: &'static str) -> Term {
    at(HERE, system)
}

pub(crate) const fn greatest(series: &'static str) -> Term {
    Term::Of(series, Pick::Max)
}

pub(crate) const fn mean(series: &'static str) -> Term {
    Term::Of(series, Pick::Mean)
}

/// How many values of a series are above a limit.
pub(crate) const fn above(series: &'static str, limit: f64) -> Term {
    Term::Of(series, Pick::Above(limit))
}

/// The first x at which a series is above a limit.
pub(crate) const fn first_above(series: &'static str, limit: f64) -> Term {
    Term::Of(series, Pick::FirstAbove(limit))
}

/// Which number of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    /// The value at a name or number of the x axis.
    At(X),
    Max,
    Min,
    Mean,
    /// How many values are above this.
    Above(f64),
    /// The first x whose value is above this; infinite if there is none.
    FirstAbove(f64),
    /// The mean where another series is below its own mean.
    WhereLow(&'static str),
    /// The mean where another series is above its own mean.
    WhereHigh(&'static str),
}
