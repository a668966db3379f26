//! The chore `figure`: every figure and table of the four papers, by one command.
//!
//! 1. A catalogue (a folder for each paper) says what a figure runs and shows, as plain data
//!    (`model`).
//! 2. `run` runs the command, on a limited device (`device`) where the figure needs one, and keeps
//!    each report. `machine` says what the runs were measured on.
//! 3. `read` takes the series out of the reports; `check` holds the paper's shape to them.
//! 4. `record` writes the JSON and the drawing (`chart`, `axis`); `page` the tables of all figures.

mod adoc;
mod axis;
mod bolt;
mod chart;
mod check;
mod device;
mod machine;
mod model;
mod page;
mod peers;
mod read;
mod record;
mod run;
mod sateen;
mod silk;
mod vlsm;

use std::path::{Path, PathBuf};
use std::time::Instant;

use self::model::{Figure, Kind, Mode, Plan};
use self::run::{Runner, Settings};
use crate::chore::Outcome;

const HELP: &str = "\
Every figure and table of the papers, measured and drawn.

Usage: cargo xtask figure <paper> <number> [options]
       cargo xtask figure all [PAPER] [options]
       cargo xtask figure list [PAPER]
       cargo xtask figure table

Papers: silk, bolt, vlsm, adoc; sateen has series of our own.

  <paper> <number>  run one figure, for instance silk 10; its JSON and SVG go to
                    docs/papers/figures
  all               run all figures of a paper, or of all papers
  list              list them: how they are measured, how long it takes, what the last run said
  table             write the tables of all figures in docs/papers/README.md

Options:
  --quick           short runs, at most two minutes a figure; the results go to target/figures
  --out DIR         put the results into this folder
  --again           run also what has a report of this source and these arguments
  --disk DIR        put databases and the file of the limited device there [default: /dev/shm for
                    the device, otherwise the temporary folder]
  --no-kernel       let the command limit its own reads and writes, also as root
  --sateen FILE     run this command instead of one that is built for release
";

/// What the words of the command line say.
#[derive(Debug, Default)]
struct Call {
    names: Vec<String>,
    quick: bool,
    out: Option<PathBuf>,
    settings: Settings,
}

pub(crate) fn run(root: &Path, arguments: &[String]) -> Outcome {
    let call = parse(arguments).map_err(|problem| vec![problem, HELP.to_owned()])?;
    let names: Vec<&str> = call.names.iter().map(String::as_str).collect();
    let all = figures();
    let of = |paper: &str| {
        let own: Vec<_> = all.iter().copied().filter(|it| it.paper.key() == paper).collect();
        if own.is_empty() {
            Err(vec![format!("figure: no paper is named {paper:?}")])
        } else {
            Ok(own)
        }
    };
    match names[..] {
        [] | ["help"] => {
            print!("{HELP}");
            Ok(())
        }
        ["list"] => list(root, &all),
        ["list", paper] => list(root, &of(paper)?),
        ["table"] => page::write_table(root, &all).map_err(|problem| vec![problem]),
        ["all"] => several(root, &all, &call),
        ["all", paper] => several(root, &of(paper)?, &call),
        [paper, number] => {
            let mut own = of(paper)?.into_iter();
            let figure = own.find(|figure| figure.number == number.to_ascii_lowercase());
            let figure = figure.ok_or_else(|| {
                vec![format!("figure: {paper} has no {number:?}: cargo xtask figure list {paper}")]
            })?;
            several(root, &[figure], &call)
        }
        _ => Err(vec!["figure: too many words".to_owned(), HELP.to_owned()]),
    }
}

/// Returns a problem if the tables of all figures are out of date.
pub(crate) fn check_tables(root: &Path) -> Outcome {
    page::is_current(root, &figures()).map_err(|problem| vec![problem])
}

/// The catalogue.
fn figures() -> Vec<&'static Figure> {
    let papers = [silk::FIGURES, bolt::FIGURES, vlsm::FIGURES, adoc::FIGURES, sateen::FIGURES];
    papers.into_iter().flatten().flat_map(|part| part.iter()).collect()
}

fn parse(arguments: &[String]) -> Result<Call, String> {
    let mut call = Call::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut path = || {
            let next = words.next().ok_or_else(|| format!("figure: {word} which one?"))?;
            std::path::absolute(next).map_err(|error| format!("{next}: {error}"))
        };
        match word.as_str() {
            "--quick" => call.quick = true,
            "--again" => call.settings.again = true,
            "--no-kernel" => call.settings.no_kernel = true,
            "--out" => call.out = Some(path()?),
            "--disk" => call.settings.disk = Some(path()?),
            "--sateen" => call.settings.sateen = Some(path()?),
            other if other.starts_with('-') => return Err(format!("figure: no option {other}")),
            name => call.names.push(name.to_owned()),
        }
    }
    Ok(call)
}

fn list(root: &Path, figures: &[&Figure]) -> Outcome {
    print!("{}", page::list(root, figures));
    Ok(())
}

/// Runs figures, says what became of each, and brings the tables up to date.
fn several(root: &Path, figures: &[&Figure], call: &Call) -> Outcome {
    let mode = if call.quick { Mode::Quick } else { Mode::Full };
    let shown = root.join(page::FOLDER);
    let out = call.out.clone().unwrap_or_else(|| match mode {
        Mode::Quick => run::target(root).join("figures"),
        Mode::Full => shown.clone(),
    });
    let failed = |problem: String| vec![problem];
    let mut runner = Runner::new(root, call.settings.clone()).map_err(failed)?;
    let mut problems = Vec::new();
    for figure in figures {
        match &figure.kind {
            Kind::Diagram => eprintln!("{}: a diagram", figure.name()),
            Kind::Measured(plan) => {
                if let Err(problem) = one(&mut runner, figure, plan, mode, &out) {
                    problems.push(format!("{}: {problem}", figure.name()));
                    if problem == run::INTERRUPTED {
                        return Err(problems);
                    }
                }
            }
        }
    }
    if out == shown {
        page::write_table(root, &self::figures()).map_err(failed)?;
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn one(
    runner: &mut Runner<'_>,
    figure: &Figure,
    plan: &Plan,
    mode: Mode,
    out: &Path,
) -> Result<(), String> {
    let began = Instant::now();
    let mut kept = Vec::new();
    for job in (plan.jobs)(mode) {
        kept.extend(runner.job(&job)?);
    }
    let shown = record::shown(plan, &kept);
    let record = record::json(figure, plan, mode, &shown, &kept);
    record::store(out, figure, &record, &record::svg(figure, plan, &shown)?)?;
    let verdict = record.pointer("/verdict").and_then(|it| it.as_str()).unwrap_or_default();
    println!("{}: {verdict}, in {:.0} s", figure.name(), began.elapsed().as_secs_f64());
    for held in shown.iter().flat_map(|shown| &shown.held) {
        println!("  {} {}", if held.holds() { "+" } else { "-" }, held.sentence());
    }
    println!("  {}", out.join(figure.name() + ".svg").display());
    Ok(())
}

#[cfg(test)]
mod tests;
