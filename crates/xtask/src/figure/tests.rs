//! The catalogue is whole, the command takes its runs, and checks and drawings are right.

use std::collections::BTreeSet;

use super::check::{held, number};
use super::model::{
    Axis, Check, Form, HERE, Job, ONE, Panel, Paper, Pick, Place, Published, Reading, Series, Term,
    Tool, X, above, at, at_number, first_above, greatest, of,
};
use super::*;
use crate::chore::root;

/// The numbers of the figures and tables of each paper.
const NUMBERED: [(Paper, u32, u32); 4] =
    [(Paper::Silk, 13, 1), (Paper::Bolt, 16, 0), (Paper::Vlsm, 13, 1), (Paper::Adoc, 21, 4)];

#[test]
fn every_figure_and_table_of_the_papers_is_there() {
    let all = figures();
    for (paper, last, tables) in NUMBERED {
        let named: BTreeSet<String> = all
            .iter()
            .filter(|figure| figure.paper == paper)
            .map(|figure| figure.number.trim_end_matches(|c: char| c.is_alphabetic()).to_owned())
            .collect();
        let figures = (1..=last).map(|number| number.to_string());
        let tables = (1..=tables).map(|number| format!("table-{number}"));
        for number in figures.chain(tables) {
            let name = format!("{}-{number}", paper.key());
            assert!(named.contains(&number), "{name}");
        }
    }
}

#[test]
fn names_are_unique() {
    let names: Vec<String> = figures().iter().map(|figure| figure.name()).collect();
    let different: BTreeSet<&String> = names.iter().collect();
    assert_eq!(names.len(), different.len());
}

fn plans() -> impl Iterator<Item = (String, &'static Plan)> {
    figures().into_iter().filter_map(|figure| match &figure.kind {
        Kind::Measured(plan) => Some((figure.name(), plan)),
        _ => None,
    })
}

fn jobs() -> impl Iterator<Item = (String, Job)> {
    plans().flat_map(|(name, plan)| {
        let both = [Mode::Quick, Mode::Full].into_iter().flat_map(plan.jobs);
        both.map(move |job| (name.clone(), job)).collect::<Vec<_>>()
    })
}

#[test]
fn the_command_takes_every_run() {
    let mut refused = BTreeSet::new();
    for (name, job) in jobs() {
        for run in &job.runs {
            let mut words = vec!["sateen".to_owned(), run.tool.name().to_owned()];
            words.extend(run.words.iter().cloned());
            if run.tool == Tool::Bench {
                words.extend(["--db", "D"].map(str::to_owned));
            }
            if let Err(problem) = sateen_cli::check(&words) {
                refused.insert(format!("{name}: {problem}\n  {}", words.join(" ")));
            }
        }
    }
    let refused: Vec<String> = refused.into_iter().collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn every_plan_shows_something_and_runs_where_it_says() {
    for (name, plan) in plans() {
        assert!(!plan.panels.is_empty(), "{name} has no panel");
        assert!(plan.panels.iter().any(|panel| !panel.checks.is_empty()), "{name} has no check");
        assert!(plan.claim.ends_with('.') && plan.setting.ends_with('.'), "{name}");
        let tool = if plan.means == model::Means::Virtual { Tool::Sim } else { Tool::Bench };
        for mode in [Mode::Quick, Mode::Full] {
            let jobs = (plan.jobs)(mode);
            let runs: Vec<_> = jobs.iter().flat_map(|job| &job.runs).collect();
            assert!(runs.iter().any(|run| !run.series.is_empty()), "{name} shows nothing");
            assert!(runs.iter().all(|run| run.tool == tool), "{name}");
        }
    }
}

/// Series that come out of runs have their names; those of `Whole` have names of their own.
#[test]
fn checks_and_published_values_name_series_that_the_full_form_has() {
    for (name, plan) in plans() {
        let jobs = (plan.jobs)(Mode::Full);
        let systems: BTreeSet<&str> =
            jobs.iter().flat_map(|job| &job.runs).map(|run| run.series).collect();
        for panel in plan.panels {
            let known = |series: &str| match panel.reading {
                Reading::Whole(_) => true,
                Reading::System(_) => series == HERE,
                _ => systems.contains(series),
            };
            let terms = panel.checks.iter().flat_map(|check| [check.left, check.right]);
            for term in terms {
                let Term::Of(series, pick) = term else { continue };
                assert!(known(series), "{name}: no series {series:?}");
                if let (Reading::System(_), Pick::At(X::Is(system))) = (&panel.reading, pick) {
                    assert!(systems.contains(system), "{name}: no system {system:?}");
                }
            }
            for published in panel.published {
                assert!(known(published.name), "{name}: no series {:?}", published.name);
            }
        }
    }
}

#[test]
fn a_limited_device_has_room_for_what_is_loaded() {
    for (name, job) in jobs() {
        if let Place::Limited { disk_gb, memory_gb } = job.place {
            assert!(disk_gb >= 3 && memory_gb >= 1, "{name}");
        }
        let limited = job.runs.iter().any(|run| run.mb_per_second.is_some());
        assert!(!limited || job.place != Place::Disk, "{name}: a limit needs a device");
    }
}

fn series(name: &str, values: &[f64]) -> Series {
    let points = values.iter().enumerate().map(|(nth, y)| (X::At(nth as f64), *y));
    Series { name: name.to_owned(), points: points.collect() }
}

fn panel(checks: &'static [Check]) -> Panel {
    Panel::curves(Axis::linear("time, s"), Axis::log("p99, ms"), read::p99_by_second).checks(checks)
}

#[test]
fn a_check_compares_what_it_names() {
    const CHECKS: &[Check] = &[
        Check::at_least(greatest("a"), 2.0, greatest("b")).paper(10.0),
        Check::at_most(at_number("a", 1.0), 0.5, at_number("b", 1.0)),
        Check::at_most(above("b", 5.0), 0.0, ONE),
        Check::between(first_above("a", 50.0), 1.0, 3.0, ONE),
        Check::at_least(greatest("a"), 1.0, greatest("missing")),
        Check::between(first_above("b", 50.0), 1.0, 1.0, first_above("b", 60.0)),
        Check::at_least(
            Term::Of("a", Pick::WhereLow("b")),
            4.0,
            Term::Of("a", Pick::WhereHigh("b")),
        ),
    ];
    let panel = panel(CHECKS);
    let found = held(&panel, &[series("a", &[10.0, 4.0, 90.0]), series("b", &[5.0, 8.0, 2.0])]);
    let holds: Vec<bool> = found.iter().map(check::Held::holds).collect();
    assert_eq!(holds, [true, true, false, true, false, true, true]);
    assert_eq!(
        found[0].sentence(),
        "greatest p99 of a ÷ greatest p99 of b: 11.2 (paper 10, wanted at least 2)"
    );
    assert!(found[4].sentence().contains("not measured"));
}

#[test]
fn numbers_have_three_figures() {
    let shown = [0.0, 1.0, 12.34, 1234.5, 0.0512, 0.00012, f64::INFINITY].map(number);
    assert_eq!(shown, ["0", "1", "12.3", "1,235", "0.051", "1.20e-4", "∞"]);
}

/// The papers' own quotients agree with what the checks want.
#[test]
fn the_papers_themselves_agree() {
    for (name, plan) in plans() {
        for check in plan.panels.iter().flat_map(|panel| panel.checks) {
            let Some(paper) = check.paper else { continue };
            let (low, high) = check.between;
            assert!((low..=high).contains(&paper), "{name}: {paper} is not in {low} to {high}");
        }
    }
}

/// True if the tags of `text` open and close as XML's must, and text and attributes are escaped.
fn is_well_formed(text: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let Some(end) = rest[at..].find('>') else { return false };
        let tag = &rest[at + 1..at + end];
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match tag {
            _ if tag.starts_with('?') || tag.starts_with('!') => {}
            _ if tag.starts_with('/') => {
                if open.pop() != Some(name) {
                    return false;
                }
            }
            _ if tag.ends_with('/') => {}
            _ => open.push(name),
        }
        if !tag.matches('"').count().is_multiple_of(2) {
            return false;
        }
        rest = &rest[at + end + 1..];
    }
    open.is_empty() && text.starts_with("<svg")
}

fn line(name: &str, published: bool, points: Vec<(X, f64)>) -> chart::Line {
    chart::Line { name: name.to_owned(), published, points }
}

#[test]
fn a_drawing_is_well_formed_xml() {
    let numbers =
        |scale: f64| (1..50).map(|x| (X::At(f64::from(x)), scale * f64::from(x))).collect();
    let named = || vec![(X::Is("A & B"), 3.0), (X::Is("<C>"), 0.0)];
    let drawn = |form, log: bool, lines| chart::Drawn {
        title: "a \"title\" < others".to_owned(),
        form,
        x: Axis::linear("time, s"),
        y: if log { Axis::log("p99, ms") } else { Axis::linear("K/s") },
        lines,
    };
    let panels = [
        drawn(
            Form::Lines,
            true,
            vec![line("a", false, numbers(0.1)), line("a", true, numbers(9.0))],
        ),
        drawn(Form::Bars, false, vec![line("a", false, named()), line("a", true, named())]),
        drawn(Form::Bars, true, vec![line("only zeros", false, vec![(X::Is("x"), 0.0)])]),
        drawn(Form::Table, false, vec![line("a", false, named()), line("b", true, named())]),
        drawn(Form::Lines, false, vec![]),
    ];
    let svg = chart::svg("a figure & its <title>", &panels).unwrap();
    assert!(is_well_formed(&svg), "{svg}");
    assert!(svg.contains("a (paper)") && svg.contains("A &amp; B"), "{svg}");
    assert!(!is_well_formed("<svg><g></svg>"));
}

#[test]
fn words_of_the_command_line() {
    let parsed = |line: &str| parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let call = parsed("silk 10 --quick --again --out x --no-kernel").unwrap();
    assert_eq!(call.names, ["silk", "10"]);
    assert!(call.quick && call.settings.again && call.settings.no_kernel);
    assert!(call.out.unwrap().ends_with("x"));
    assert!(parsed("silk --slow").unwrap_err().contains("--slow"));
    assert!(parsed("silk --out").unwrap_err().contains("--out"));
    for line in ["rust 1", "silk 99", "silk", "silk 1 2"] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert!(run(&root(), &words).is_err(), "{line}");
    }
}

#[test]
fn multiples_are_drawn_as_multiples_of_ours() {
    const PUBLISHED: &[Published] =
        &[Published { name: HERE, source: "§1", times: Some("b"), points: &[(X::At(1.0), 3.0)] }];
    const CHECKS: &[Check] = &[Check::at_least(of("a"), 1.0, at("b", "x"))];
    let panel = panel(CHECKS).published(PUBLISHED);
    let drawn = record::drawn(&panel, &[series(HERE, &[1.0, 2.0]), series("b", &[1.0, 5.0])]);
    let paper = drawn.lines.iter().find(|line| line.published).unwrap();
    assert_eq!(paper.points, [(X::At(1.0), 15.0)]);
}
