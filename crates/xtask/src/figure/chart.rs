//! Draws a figure as SVG: its panels below each other, what was measured as lines or bars, what the
//! paper published dotted, or as a hollow bar, in the same colour. The ground is white, so that a
//! figure reads the same on a light page and on a dark one.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Scale;
use super::check::number;
use super::model::{Axis, Form, HERE, X};

/// A panel with all its values. What the paper published as a multiple is already multiplied.
pub(super) struct Drawn {
    pub(super) title: String,
    pub(super) form: Form,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// A series of a panel.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) published: bool,
    pub(super) points: Vec<(X, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Done = Result<(), Box<dyn Error>>;

const WIDTH: u32 = 760;
const HEADER: u32 = 30;
const CHART: u32 = 308;
const ROW: u32 = 22;
/// Sizes of text. plotters' are those of a line: the letters are a fifth smaller.
const SMALL: u32 = 15;
const LARGE: u32 = 18;
const INK: RGBColor = RGBColor(34, 34, 34);
const GRID: RGBColor = RGBColor(224, 224, 224);
/// Colours that differ in lightness too; the first six are told apart by most colour-blind readers.
const COLOURS: [RGBColor; 8] = [
    RGBColor(11, 110, 79),
    RGBColor(193, 68, 14),
    RGBColor(64, 78, 160),
    RGBColor(200, 150, 20),
    RGBColor(140, 80, 150),
    RGBColor(60, 160, 200),
    RGBColor(110, 110, 110),
    RGBColor(160, 40, 90),
];

/// Draws the panels below a title.
pub(super) fn svg(title: &str, panels: &[Drawn]) -> Result<String, String> {
    let mut text = String::new();
    let heights: Vec<u32> = panels.iter().map(height).collect();
    let size = (WIDTH, HEADER + heights.iter().sum::<u32>());
    draw(&mut text, size, title, panels, &heights).map_err(|error| format!("{title}: {error}"))?;
    // The elements stand on lines of their own, and so does the end of the file.
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn draw(
    text: &mut String,
    size: (u32, u32),
    title: &str,
    panels: &[Drawn],
    heights: &[u32],
) -> Done {
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(title.to_owned(), (12, 8), words(LARGE).color(&INK)))?;
    let mut rest = root.split_vertically(HEADER).1;
    for (panel, height) in panels.iter().zip(heights) {
        let (area, below) = rest.split_vertically(*height);
        match panel.form {
            Form::Table => table(&area, panel)?,
            Form::Lines | Form::Bars => chart(&area, panel)?,
        }
        rest = below;
    }
    root.present()?;
    Ok(())
}

fn words(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

fn height(panel: &Drawn) -> u32 {
    match panel.form {
        Form::Table => ROW * (names_of_x(panel).len() as u32 + 2) + 12,
        Form::Lines | Form::Bars => CHART + ROW * legend_rows(panel) + title_height(panel),
    }
}

fn title_height(panel: &Drawn) -> u32 {
    if panel.title.is_empty() { 0 } else { ROW }
}

/// The names on the x axis in the order in which series have them.
fn names_of_x(panel: &Drawn) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (x, _) in panel.lines.iter().flat_map(|line| &line.points) {
        if !names.contains(&x.text()) {
            names.push(x.text());
        }
    }
    names
}

/// What names a line in the legend.
fn label(line: &Line) -> String {
    match (line.published, line.name.as_str()) {
        (false, name) => name.to_owned(),
        (true, HERE) => "paper".to_owned(),
        (true, name) => format!("{name} (paper)"),
    }
}

/// The colour of a line: the same for a series and for what the paper says of it.
fn colour(panel: &Drawn, line: &Line) -> RGBColor {
    let mut names: Vec<&str> = Vec::new();
    for other in &panel.lines {
        if !names.contains(&other.name.as_str()) {
            names.push(&other.name);
        }
    }
    let nth = names.iter().position(|name| *name == line.name).unwrap_or(0);
    COLOURS[nth % COLOURS.len()]
}

/// The width of a text of small size, about.
fn wide(text: &str) -> u32 {
    text.chars().count() as u32 * 7 + 4
}

/// Returns the place of each entry of the legend, and the number of rows. Bars that are all of one
/// series need none.
fn legend(panel: &Drawn) -> (Vec<(u32, u32)>, u32) {
    if panel.lines.iter().all(|line| line.name == HERE && !line.published) {
        return (Vec::new(), 0);
    }
    let (mut x, mut row) = (70, 0);
    let mut places = Vec::new();
    for line in &panel.lines {
        let width = 28 + wide(&label(line)) + 14;
        if x + width > WIDTH - 10 && x > 70 {
            (x, row) = (70, row + 1);
        }
        places.push((x, row));
        x += width;
    }
    (places, row + 1)
}

fn legend_rows(panel: &Drawn) -> u32 {
    legend(panel).1
}

fn chart(area: &Area<'_>, panel: &Drawn) -> Done {
    let (head, below) = area.split_vertically(title_height(panel));
    if !panel.title.is_empty() {
        head.draw(&Text::new(panel.title.clone(), (70, 4), words(SMALL)))?;
    }
    let (keys, body) = below.split_vertically(ROW * legend_rows(panel));
    draw_legend(&keys, panel)?;
    let names = match panel.form {
        Form::Bars => names_of_x(panel),
        _ => Vec::new(),
    };
    let ys: Vec<f64> = panel.lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).collect();
    let xs: Vec<f64> = panel.lines.iter().flat_map(points).map(|(x, _)| x).collect();
    let y_scale = Scale::over(&ys, panel.y.log, panel.y.range);
    let x_scale = match panel.form {
        Form::Bars => Scale::named(names.clone()),
        _ => Scale::over(&xs, panel.x.log, panel.x.range),
    };
    let foot = y_scale.foot();
    let mut builder = ChartBuilder::on(&body);
    builder
        .margin_left(16)
        .margin_right(34)
        .margin_top(6)
        .margin_bottom(8)
        .x_label_area_size(44)
        .y_label_area_size(66);
    let mut context = builder.build_cartesian_2d(x_scale, y_scale)?;
    let mut mesh = context.configure_mesh();
    mesh.bold_line_style(GRID).light_line_style(TRANSPARENT).axis_style(INK);
    mesh.label_style(words(SMALL)).axis_desc_style(words(SMALL));
    mesh.x_desc(panel.x.label).y_desc(panel.y.label).x_labels(20).y_labels(20);
    if panel.form == Form::Bars {
        mesh.disable_x_mesh();
    }
    mesh.draw()?;
    let count = panel.lines.len();
    for (nth, line) in panel.lines.iter().enumerate() {
        let ink = colour(panel, line);
        match (panel.form, line.published) {
            (Form::Bars, published) => {
                let bars = bars(line, &names, nth, count, foot);
                let style = if published { ink.stroke_width(1) } else { ink.filled() };
                context.draw_series(bars.into_iter().map(|ends| Rectangle::new(ends, style)))?;
            }
            (_, true) => {
                let style = ink.stroke_width(2);
                context.draw_series(DashedLineSeries::new(points(line), 2, 5, style))?;
                let dots = points(line).into_iter();
                context.draw_series(dots.map(|at| Circle::new(at, 4, ink.stroke_width(1))))?;
            }
            (_, false) => {
                context.draw_series(LineSeries::new(points(line), ink.stroke_width(2)))?;
                if line.points.len() <= 40 {
                    let dots = points(line).into_iter();
                    context.draw_series(dots.map(|at| Circle::new(at, 3, ink.filled())))?;
                }
            }
        }
    }
    Ok(())
}

fn draw_legend(area: &Area<'_>, panel: &Drawn) -> Done {
    let (places, _) = legend(panel);
    for (line, (x, row)) in panel.lines.iter().zip(places) {
        let ink = colour(panel, line);
        let (x, y) = (x as i32, (row * ROW) as i32 + 11);
        let (from, to) = ((x, y - 5), (x + 20, y + 5));
        match (panel.form, line.published) {
            (Form::Bars, true) => area.draw(&Rectangle::new([from, to], ink.stroke_width(1)))?,
            (Form::Bars, false) => area.draw(&Rectangle::new([from, to], ink.filled()))?,
            (_, true) => {
                for dot in [x + 2, x + 10, x + 18] {
                    area.draw(&Circle::new((dot, y), 2, ink.filled()))?;
                }
            }
            (_, false) => {
                let ends = vec![(x, y), (x + 20, y)];
                area.draw(&PathElement::new(ends, ink.stroke_width(3)))?;
            }
        }
        let style = words(SMALL).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(label(line), (x + 26, y), style))?;
    }
    Ok(())
}

/// The points of a line, whose names count from 0.
fn points(line: &Line) -> Vec<(f64, f64)> {
    let numbered = line.points.iter().enumerate();
    numbered
        .map(|(nth, (x, y))| match x {
            X::At(x) => (*x, *y),
            X::Is(_) => (nth as f64, *y),
        })
        .collect()
}

/// The corners of the bars of a line, one of `count` that share the room at each name.
fn bars(
    line: &Line,
    names: &[String],
    nth: usize,
    count: usize,
    foot: f64,
) -> Vec<[(f64, f64); 2]> {
    let width = 0.8 / count.max(1) as f64;
    let bar = |(x, y): &(X, f64)| {
        let group = names.iter().position(|name| *name == x.text())?;
        let left = group as f64 - 0.4 + nth as f64 * width;
        Some([(left, foot), (left + width * 0.9, *y)])
    };
    line.points.iter().filter_map(bar).collect()
}

/// Draws a table: a row for each name of x, a column for each series.
fn table(area: &Area<'_>, panel: &Drawn) -> Done {
    let first = 170;
    let width = (WIDTH as i32 - first - 20) / panel.lines.len().max(1) as i32;
    let cell = |text: String, column: i32, row: i32| {
        let (x, anchor) = match column {
            0 => (12, HPos::Left),
            nth => (first + nth * width, HPos::Right),
        };
        let style = words(SMALL).pos(Pos::new(anchor, VPos::Center));
        Text::new(text, (x, row * ROW as i32 + 14), style)
    };
    area.draw(&cell(panel.title.clone(), 0, 0))?;
    area.draw(&cell(panel.x.label.to_owned(), 0, 1))?;
    let rule = |y: i32| PathElement::new(vec![(12, y), (WIDTH as i32 - 12, y)], GRID);
    area.draw(&rule(2 * ROW as i32 + 2))?;
    let names = names_of_x(panel);
    for (row, name) in names.iter().enumerate() {
        area.draw(&cell(name.clone(), 0, row as i32 + 2))?;
    }
    for (column, line) in panel.lines.iter().enumerate() {
        area.draw(&cell(label(line), column as i32 + 1, 1))?;
        for (x, y) in &line.points {
            let row = names.iter().position(|name| *name == x.text()).unwrap_or(0);
            area.draw(&cell(number(*y), column as i32 + 1, row as i32 + 2))?;
        }
    }
    Ok(())
}
