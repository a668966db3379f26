//! The JSON of a figure, which `docs/papers/figures` keeps, and the drawing made from it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::chart::{self, Drawn, Line};
use super::check::{self, Held};
use super::model::{Figure, Mode, Panel, Plan, Published, Series, X};
use super::read;
use super::run::Kept;

/// The most points of a series that a record keeps.
const POINTS_MAX: usize = 800;

/// What the values of a figure say about its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Agrees,
    Differs,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "differs",
        }
    }
}

/// The outcomes of all checks of a figure, as its record has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    pub(super) held: Vec<Held>,
    /// The greatest number of seconds that one run took from beginning to end, and all together.
    pub(super) seconds: f64,
}

impl Recorded {
    pub(super) fn verdict(&self) -> Verdict {
        if self.held.iter().all(Held::holds) { Verdict::Agrees } else { Verdict::Differs }
    }
}

/// What a panel shows.
pub(super) struct Shown {
    pub(super) series: Vec<Series>,
    pub(super) held: Vec<Held>,
}

/// Reads the series of each panel and holds the checks to them.
pub(super) fn shown(plan: &Plan, kept: &[Kept]) -> Vec<Shown> {
    let outputs: Vec<_> = kept.iter().map(|kept| kept.output.clone()).collect();
    let panels = plan.panels.iter().map(|panel| {
        let mut series = read::series(panel, &outputs);
        let held = check::held(panel, &series);
        for one in &mut series {
            one.points = thinned(&one.points);
        }
        Shown { series, held }
    });
    panels.collect()
}

/// Returns the record of a figure.
pub(super) fn json(
    figure: &Figure,
    plan: &Plan,
    mode: Mode,
    shown: &[Shown],
    kept: &[Kept],
) -> Value {
    let stolen = kept.iter().filter_map(|kept| kept.about.pointer("/stolen_seconds")?.as_f64());
    let held = shown.iter().flat_map(|shown| shown.held.clone()).collect();
    let panels = plan.panels.iter().zip(shown).map(|(panel, shown)| panel_value(panel, shown));
    json!({
        "figure": figure.name(),
        "title": figure.title,
        "claim": plan.claim,
        "setting": plan.setting,
        "means": plan.means.name(),
        "quick": mode == Mode::Quick,
        "verdict": Recorded { held, ..Recorded::default() }.verdict().word(),
        "stolen_seconds": (stolen.sum::<f64>() * 100.0).round() / 100.0,
        "panels": panels.collect::<Vec<_>>(),
        "runs": kept.iter().map(|kept| kept.about.clone()).collect::<Vec<_>>(),
    })
}

fn panel_value(panel: &Panel, shown: &Shown) -> Value {
    let point = |(x, y): &(X, f64)| match x {
        X::At(x) => json!([short(*x), short(*y)]),
        X::Is(name) => json!([name, short(*y)]),
    };
    let series = shown.series.iter().map(|series| {
        let points: Vec<Value> = series.points.iter().map(point).collect();
        json!({ "name": series.name, "points": points })
    });
    let published = panel.published.iter().map(|it| {
        json!({
            "name": it.name,
            "source": it.source,
            "times": it.times,
            "points": it.points.iter().map(point).collect::<Vec<_>>(),
        })
    });
    let checks = shown.held.iter().map(|held| {
        json!({
            "text": held.text,
            "quotient": held.quotient.filter(|it| it.is_finite()).map(short),
            "infinite": held.quotient.is_some_and(f64::is_infinite),
            "low": held.between.0,
            "high": Some(held.between.1).filter(|it| it.is_finite()),
            "paper": held.paper,
            "holds": held.holds(),
        })
    });
    json!({
        "title": panel.title,
        "x": panel.x.label,
        "y": panel.y.label,
        "series": series.collect::<Vec<_>>(),
        "published": published.collect::<Vec<_>>(),
        "checks": checks.collect::<Vec<_>>(),
    })
}

/// Rounds to four figures that count.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Keeps the least and the greatest point of each of equal parts, if there are too many.
fn thinned(points: &[(X, f64)]) -> Vec<(X, f64)> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let part = points.len().div_ceil(POINTS_MAX / 2);
    let ends = points.chunks(part).flat_map(|chunk| {
        let ordered = |a: &usize, b: &usize| chunk[*a].1.total_cmp(&chunk[*b].1);
        let least = (0..chunk.len()).min_by(ordered).unwrap_or(0);
        let greatest = (0..chunk.len()).max_by(ordered).unwrap_or(0);
        let (first, second) = (least.min(greatest), least.max(greatest));
        if first == second { vec![chunk[first]] } else { vec![chunk[first], chunk[second]] }
    });
    ends.collect()
}

/// Reads the outcome of a record.
pub(super) fn recorded(folder: &Path, figure: &Figure) -> Option<Recorded> {
    let value = load(folder, figure)?;
    let number = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_f64);
    let panels = value.pointer("/panels")?.as_array()?;
    let checks = panels.iter().filter_map(|panel| panel.pointer("/checks")?.as_array()).flatten();
    let held = checks.map(|check| Held {
        text: check.pointer("/text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        quotient: match check.pointer("/infinite") {
            Some(Value::Bool(true)) => Some(f64::INFINITY),
            _ => number(check, "/quotient"),
        },
        between: (
            number(check, "/low").unwrap_or(0.0),
            number(check, "/high").unwrap_or(f64::INFINITY),
        ),
        paper: number(check, "/paper"),
    });
    let held = held.collect();
    let runs = value.pointer("/runs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let seconds = runs.iter().filter_map(|run| number(run, "/seconds")).sum();
    Some(Recorded { held, seconds })
}

/// Reads a record.
pub(super) fn load(folder: &Path, figure: &Figure) -> Option<Value> {
    let text = fs::read_to_string(folder.join(figure.name() + ".json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Writes a record and its drawing.
pub(super) fn store(
    folder: &Path,
    figure: &Figure,
    record: &Value,
    svg: &str,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let file = |end: &str| folder.join(format!("{}.{end}", figure.name()));
    fs::write(file("json"), in_lines(record, 3)).map_err(failed)?;
    fs::write(file("svg"), svg).map_err(failed)
}

/// JSON whose outer parts stand on lines of their own, so that a change shows in a diff, and whose
/// points do not.
fn in_lines(value: &Value, depth: usize) -> String {
    let inner = |value: &Value| in_lines(value, depth - 1);
    let text = match value {
        Value::Object(parts) if depth > 0 => {
            let parts = parts.iter().map(|(name, part)| format!("{name:?}: {}", inner(part)));
            format!("{{\n{}\n}}", parts.collect::<Vec<_>>().join(",\n"))
        }
        Value::Array(parts) if depth > 0 => {
            format!("[\n{}\n]", parts.iter().map(inner).collect::<Vec<_>>().join(",\n"))
        }
        other => other.to_string(),
    };
    if depth == 3 { text + "\n" } else { text }
}

/// Draws the panels of a plan.
pub(super) fn svg(figure: &Figure, plan: &Plan, shown: &[Shown]) -> Result<String, String> {
    let panels: Vec<Drawn> =
        plan.panels.iter().zip(shown).map(|(panel, shown)| drawn(panel, &shown.series)).collect();
    let title = format!("{} {}: {}", figure.paper.title(), figure.label(), figure.title);
    chart::svg(&title, &panels)
}

pub(super) fn drawn(panel: &Panel, series: &[Series]) -> Drawn {
    let mut lines: Vec<Line> = Vec::new();
    for ours in series {
        let points = ours.points.clone();
        lines.push(Line { name: ours.name.clone(), published: false, points });
        let theirs = panel.published.iter().filter(|it| it.name == ours.name);
        lines.extend(theirs.map(|it| published(it, series)));
    }
    let alone = panel.published.iter().filter(|it| series.iter().all(|ours| ours.name != it.name));
    lines.extend(alone.map(|it| published(it, series)));
    lines.retain(|line| !line.points.is_empty());
    Drawn { title: panel.title.to_owned(), form: panel.form, x: panel.x, y: panel.y, lines }
}

/// Returns what the paper published, with multiples multiplied by our values.
fn published(it: &Published, series: &[Series]) -> Line {
    let base = it.times.map(|name| series.iter().find(|series| series.name == name));
    let point = |(x, y): &(X, f64)| match base {
        None => Some((*x, *y)),
        Some(base) => {
            let (_, ours) = base?.points.iter().find(|(at, _)| at == x)?;
            Some((*x, y * ours))
        }
    };
    let points = it.points.iter().filter_map(point).collect();
    Line { name: it.name.to_owned(), published: true, points }
}
