//! The long form of the suites, as `cargo xtask rel` runs it: cases by number, on all processors,
//! until enough was looked at. The number of a case decides all that happens in it, so a failure is
//! replayed by it alone.
//!
//! A suite has one ignored test `<module>::rel`. What it is to do comes in the environment:
//! `SATEEN_REL_FIRST` the first case, `SATEEN_REL_ONLY` a case to be replayed alone,
//! `SATEEN_REL_SECONDS` how long to go on, `SATEEN_REL_AT_LEAST` how much of the suite's first
//! figure to reach whatever the time, and `SATEEN_REL_RESULTS` a file that gets a line of JSON.
//! `SATEEN_REL_DIVIDED` says that this is less than the short form.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use crate::support::process::Process;

/// A run by time is held against what it must have looked at if it takes so long.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// A suite under way.
pub(crate) struct Suite {
    name: &'static str,
    /// The figure that decides when enough was looked at.
    first_figure: &'static str,
    first_case: u64,
    only: Option<u64>,
    time: Duration,
    at_least: u64,
    began: Instant,
    figures: Mutex<BTreeMap<&'static str, u64>>,
    /// Figures of which none may be zero at the end of a run that was long enough.
    required: &'static [&'static str],
    before: Process,
    next: AtomicU64,
    failed: Mutex<Option<(u64, String)>>,
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Longer than any step takes.
const HANG: Duration = Duration::from_secs(30);

/// A test that hangs says where and ends the process: nothing else would.
pub(crate) struct Watch {
    /// Changes with every step.
    pub(crate) steps: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Watch {
    pub(crate) fn new(what: String) -> Watch {
        let watch = Watch { steps: Arc::default(), over: Arc::default() };
        let (steps, over) = (watch.steps.clone(), watch.over.clone());
        std::thread::spawn(move || {
            let (mut last, mut since) = (0, Instant::now());
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(500));
                let now = steps.load(Ordering::Relaxed);
                if now != last {
                    (last, since) = (now, Instant::now());
                } else if since.elapsed() > HANG {
                    // Past the capture of the test harness, which would keep it.
                    let text = format!("{what}: operation {now} does not return\n");
                    let _lost = std::io::stderr().write_all(text.as_bytes());
                    std::process::abort();
                }
            }
        });
        watch
    }

    /// A step is over.
    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    /// Panics of this thread are expected: they are not printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does what may panic: that is not printed.
pub(crate) fn quietly<R>(act: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = act();
    QUIET.set(before);
    result
}

/// What a panic said.
pub(crate) fn said(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

impl Suite {
    pub(crate) fn new(name: &'static str, first_figure: &'static str) -> Suite {
        let first_case = number("SATEEN_REL_FIRST").unwrap_or(1);
        Suite {
            name,
            first_figure,
            first_case,
            only: number("SATEEN_REL_ONLY"),
            time: Duration::from_secs(number("SATEEN_REL_SECONDS").unwrap_or(1)),
            at_least: number("SATEEN_REL_AT_LEAST").unwrap_or(0),
            began: Instant::now(),
            figures: Mutex::default(),
            required: &[],
            before: Process::now(),
            next: AtomicU64::new(first_case),
            failed: Mutex::default(),
        }
    }

    /// What must have happened at least once in a run that comes to the bar of the short form: a
    /// suite that looked at nothing has not passed.
    pub(crate) fn requires(self, figures: &'static [&'static str]) -> Suite {
        Suite { required: figures, ..self }
    }

    /// Adds to a figure.
    pub(crate) fn count(&self, figure: &'static str, more: u64) {
        *self.figures.lock().unwrap().entry(figure).or_default() += more;
    }

    fn wants_more(&self) -> bool {
        let done = self.figures.lock().unwrap().get(self.first_figure).copied().unwrap_or(0);
        self.failed.lock().unwrap().is_none()
            && (done < self.at_least || self.began.elapsed() < self.time)
    }

    /// Runs cases on so many threads until enough was looked at or one has failed, and reports.
    pub(crate) fn run(self, threads: usize, case: impl Fn(&Suite, u64) + Sync) {
        if let Some(only) = self.only {
            case(&self, only);
            println!("case {only}: {:?}", self.figures.lock().unwrap());
            return;
        }
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while self.wants_more() {
                        let number = self.next.fetch_add(1, Ordering::Relaxed);
                        let done = catch_unwind(AssertUnwindSafe(|| case(&self, number)));
                        if let Err(payload) = done {
                            let why = said(payload.as_ref());
                            self.failed.lock().unwrap().get_or_insert((number, why));
                        }
                    }
                });
            }
        });
        self.finish();
    }

    /// Says that the suite can't be run here. It counts nothing, and is a failure where all suites
    /// are required.
    #[allow(dead_code, reason = "the simulation, which has this file too, runs everywhere")]
    pub(crate) fn skip(self, reason: &str) {
        println!("SKIPPED({reason})");
        self.report(serde_json::json!({ "skipped": reason }));
        assert!(std::env::var_os("REL_REQUIRE_ALL").is_none(), "{} is required", self.name);
    }

    /// What is wrong with the run as a whole.
    fn problem(&self) -> Option<String> {
        let given_back = catch_unwind(|| Process::now().assert_as(&self.before));
        if let Err(payload) = given_back {
            return Some(said(payload.as_ref()));
        }
        let figures = self.figures.lock().unwrap();
        let missing = self.required.iter().find(|figure| figures.get(**figure).is_none_or(is_zero));
        let whole = self.at_least > 0 && std::env::var_os("SATEEN_REL_DIVIDED").is_none();
        let long_enough = whole || self.time >= LONG_ENOUGH;
        missing.filter(|_| long_enough).map(|figure| format!("there was no {figure:?} at all"))
    }

    fn finish(&self) {
        let failed = self.failed.lock().unwrap().take();
        let problem = if failed.is_none() { self.problem() } else { None };
        if let Some(problem) = problem {
            self.report(serde_json::json!({ "failed": problem }));
            panic!("{}: {problem}", self.name);
        }
        let text = match &failed {
            Some((case, why)) => serde_json::json!({ "case": case, "why": why }),
            None => serde_json::Value::Null,
        };
        self.report(serde_json::json!({ "failed": text }));
        if let Some((case, why)) = failed {
            panic!("{why}\nREPLAY: cargo xtask rel replay --suite {} --case {case}\n", self.name);
        }
    }

    fn report(&self, mut result: serde_json::Value) {
        let figures = self.figures.lock().unwrap().clone();
        let cases = self.next.load(Ordering::Relaxed) - self.first_case;
        println!("\n{}: {cases} cases, {figures:?}", self.name);
        result["suite"] = self.name.into();
        result["figures"] = serde_json::json!(figures);
        result["first_case"] = self.first_case.into();
        result["cases"] = cases.into();
        result["seconds"] = self.began.elapsed().as_secs_f64().into();
        result["cpu_seconds"] = cpu_seconds().into();
        if let Some(path) = std::env::var_os("SATEEN_REL_RESULTS") {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.unwrap().write_all(format!("{result}\n").as_bytes()).unwrap();
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Of this process, so far.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// As many as can run at once.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
