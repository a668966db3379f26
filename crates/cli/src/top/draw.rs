//! Draws the screen of `top`.
//!
//! 1. From 80 columns on, two lists stand side by side ([`draw_wide`]). On a narrower screen all
//!    stand one below the other ([`draw_narrow`]).
//! 2. The operations come first, then the stalls. The lists get the rows that are left, in the
//!    order of [`stacked`]; those for which there are none are left out.
//! 3. A screen without room for the operations says how large it should be.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Sparkline, Wrap};
use sateen_inspect::{JobStatus, SlowStatus, Status};

use super::model::{self, Model};
use super::units::{count, size, time};

/// The classes of I/O that are drawn, in this order.
const CLASSES: [&str; 7] = ["client", "wal", "flush", "l0", "deep", "reclaim", "manifest"];

/// The size from which everything is shown.
const COLUMNS_WANTED: u16 = 80;
const ROWS_WANTED: u16 = 24;
/// The smallest size for the operations, between the first line and the last one.
const COLUMNS_MIN: u16 = 28;
const ROWS_MIN: u16 = 7;
/// Rows of the operations and of the stalls.
const OPERATIONS_ROWS: u16 = 5;
const STALLS_ROWS: u16 = 2;
/// Rows from which an explanation leaves the operations on the screen.
const WHY_ROWS: u16 = 12;
/// Columns of the operations, of each of their figures, and of their charts, at least.
const NAME_COLUMNS: u16 = 10;
const FIGURE_COLUMNS: u16 = 9;
const CHART_COLUMNS_MIN: u16 = 16;

pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        let text = format!("at least {COLUMNS_WANTED}x{ROWS_WANTED} wanted");
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), area);
        return;
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(area);
    frame.render_widget(header(model, usize::from(area.width)), head);
    frame.render_widget(footer(model), foot);
    let Some(status) = &model.status else {
        let text = match (&model.failure, &model.on_disk) {
            (Some(failure), Some(disk)) => format!("{failure}\n\n{disk}"),
            (Some(failure), None) => failure.clone(),
            _ => "asking …".to_owned(),
        };
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), body);
        return;
    };
    let heights = [OPERATIONS_ROWS, STALLS_ROWS].map(Constraint::Length);
    let [operations, stalls, rest] =
        Layout::vertical([heights[0], heights[1], Constraint::Min(0)]).areas(body);
    let why = model
        .why
        .as_ref()
        .map(|why| Paragraph::new(Text::from(format!("WHY\n{why}"))).wrap(Wrap { trim: false }));
    // Its sentences need the room of all the rest.
    if let Some(why) = why {
        if rest.height < WHY_ROWS {
            frame.render_widget(why, body);
            return;
        }
        frame.render_widget(why, rest);
    } else if area.width < COLUMNS_WANTED {
        draw_narrow(frame, model, status, rest);
    } else {
        draw_wide(frame, model, status, rest);
    }
    draw_operations(frame, model, status, operations);
    frame.render_widget(stalls_text(model, status), stalls);
}

/// Draws the lists two by two.
fn draw_wide(frame: &mut Frame<'_>, model: &Model, status: &Status, area: Rect) {
    let [middle, work, slow] = match area.height {
        15.. => Layout::vertical([Constraint::Length(8), Constraint::Min(4), Constraint::Min(3)])
            .areas(area),
        _ => {
            let rows = u16::try_from(status.jobs.len() + 1).unwrap_or(u16::MAX).clamp(2, 4);
            let [work, middle, slow] = stacked(area, [rows, 8, area.height]);
            [middle, work, slow]
        }
    };
    let [device, levels] = halves(middle);
    frame.render_widget(device_text(model, status), device);
    frame.render_widget(levels_text(status, levels.height), levels);
    let [jobs, memory] = halves(work);
    frame.render_widget(jobs_text(status, jobs.height), jobs);
    frame.render_widget(memory_text(status), memory);
    frame.render_widget(slow_text(model, slow), slow);
}

/// Draws the lists one below the other, as far as there are rows.
fn draw_narrow(frame: &mut Frame<'_>, model: &Model, status: &Status, area: Rect) {
    let rows = |text: &Text<'_>| u16::try_from(text.height()).unwrap_or(u16::MAX);
    let texts = [
        jobs_text(status, 4),
        device_text(model, status),
        levels_text(status, area.height),
        memory_text(status),
        slow_text(model, area),
    ];
    let places = stacked(area, texts.each_ref().map(rows));
    for (text, place) in texts.into_iter().zip(places) {
        frame.render_widget(text, place);
    }
}

/// Gives each of the lists the rows that it wants, the first one first. One for which a heading and
/// a line have no room gets none.
fn stacked<const N: usize>(area: Rect, wanted: [u16; N]) -> [Rect; N] {
    let mut left = area;
    wanted.map(|wanted| {
        let height = if left.height < 2 { 0 } else { wanted.min(left.height) };
        let place = Rect { height, ..left };
        left = Rect { y: left.y + height, height: left.height - height, ..left };
        place
    })
}

/// Returns the halves of `area`, with a column between them.
fn halves(area: Rect) -> [Rect; 2] {
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    [Rect { width: left.width.saturating_sub(1), ..left }, right]
}

fn title(text: impl Into<String>) -> Line<'static> {
    Line::from(Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD)))
}

fn header(model: &Model, width: usize) -> Line<'static> {
    let Some(status) = &model.status else {
        return title(format!("sateen top  {}", model.path));
    };
    let cpu = model.rate(|status| status.process_cpu_ns).map(|ns| ns / 10_000_000);
    let cpu = cpu.map_or_else(String::new, |percent| format!("  CPU {percent} %"));
    let others = match status.databases.len() {
        0 | 1 => String::new(),
        all => {
            let at = status.databases.iter().position(|path| *path == status.path).unwrap_or(0);
            format!("  {}/{all}", at + 1)
        }
    };
    let paused = if model.is_paused { "  PAUSED" } else { "" };
    let short = if status.short_of_processor { ", short of processor" } else { "" };
    let mut parts = [
        format!("  pid {}", status.pid),
        format!("  up {}", time(status.uptime_ns)),
        format!("  {}{short}", status.health),
        cpu,
        others,
        paused.to_owned(),
    ];
    // On a narrow screen the health matters most. A path needs a few characters.
    let length = |parts: &[String; 6]| parts.iter().map(|part| part.chars().count()).sum::<usize>();
    for least in [0, 3, 4, 1] {
        if length(&parts) + 20 > width {
            parts[least].clear();
        }
    }
    let right = parts.concat();
    // The end of a long path says more than its beginning.
    let room = width.saturating_sub(right.chars().count() + 12);
    let length = status.path.chars().count();
    let path: String = match length > room {
        true => {
            let end = status.path.chars().skip(length - room.saturating_sub(1).min(length));
            "…".chars().chain(end).collect()
        }
        false => status.path.clone(),
    };
    let line = title(format!("sateen top  {path}{right}"));
    match status.health.as_str() {
        "ok" if status.short_of_processor => line.yellow(),
        "ok" => line,
        _ => line.red(),
    }
}

fn footer(model: &Model) -> Line<'static> {
    if let (Some(failure), Some(_)) = (&model.failure, &model.status) {
        return Line::from(failure.clone()).red();
    }
    let order = model.order.name();
    Line::from(format!("q quit  p pause  s sort ({order})  w why  tab next database")).dim()
}

fn draw_operations(frame: &mut Frame<'_>, model: &Model, status: &Status, area: Rect) {
    let figures = ((area.width - NAME_COLUMNS) / FIGURE_COLUMNS).min(5);
    let table = Constraint::Length(NAME_COLUMNS + FIGURE_COLUMNS * figures + 1);
    let [table, charts] = Layout::horizontal([table, Constraint::Min(0)]).areas(area);
    let row = |name: &str, cells: [String; 5]| {
        let cells = cells.into_iter().take(figures.into());
        cells.fold(format!("{name:<10}"), |row, cell| row + &format!("{cell:>9}"))
    };
    let head = ["a second", "p50", "p99", "p99.9", "max"].map(str::to_owned);
    let mut lines = vec![title(row("OPERATIONS", head))];
    for operation in &status.operations {
        let rate = model.rate(model::count_of(&operation.name));
        let latency = &operation.last_second;
        let rate = rate.map_or_else(|| "…".to_owned(), count);
        let [p50, p99, p999, max] =
            [latency.p50_ns, latency.p99_ns, latency.p999_ns, latency.max_ns].map(time);
        lines.push(Line::from(row(&operation.name, [rate, p50, p99, p999, max])));
    }
    frame.render_widget(Text::from(lines), table);
    if charts.width < CHART_COLUMNS_MIN {
        return;
    }
    let rows = Layout::vertical([Constraint::Length(1); 5]).split(charts);
    for (number, row) in rows.iter().enumerate() {
        let inner = Rect { x: row.x + 2, width: row.width.saturating_sub(2), ..*row };
        let Some(operation) = number.checked_sub(1).and_then(|at| status.operations.get(at)) else {
            if number == 0 {
                frame.render_widget(title("p99 by second"), inner);
            }
            continue;
        };
        let chart = model.chart(&operation.name);
        let last = chart.len().saturating_sub(usize::from(inner.width));
        let data: Vec<u64> = chart.into_iter().skip(last).collect();
        frame.render_widget(Sparkline::default().data(data), inner);
    }
}

fn stalls_text(model: &Model, status: &Status) -> Text<'static> {
    let waiting: u64 = status.stalls.iter().map(|stall| stall.waiting).sum();
    let waits = model.rate(|status| status.stalls.iter().map(|stall| stall.waits).sum());
    let waited = model.rate(model::waited);
    let mut first = format!("STALLS  {waiting} waiting");
    if let (Some(waits), Some(waited)) = (waits, waited) {
        first.push_str(&format!(", {} waits/s of {} in all/s", count(waits), time(waited)));
    }
    if let Some(left) = status.time_to_stall_ns {
        first.push_str(&format!("; writes stop in {}", time(left)));
    }
    let causes = status.stalls.iter().filter(|stall| stall.waits > 0 || stall.waiting > 0);
    let causes: Vec<String> = causes
        .map(|stall| format!("{} {} (max {})", stall.cause, count(stall.waits), time(stall.max_ns)))
        .collect();
    let mut second = format!("DEBT    {}", time(status.debt_ns));
    let limits = status.families.iter().filter_map(|family| family.write_limit).min();
    match limits {
        Some(0) => second.push_str("; writers are stopped"),
        Some(limit) => second.push_str(&format!("; writers may write {}/s", size(limit))),
        None => {}
    }
    if !causes.is_empty() {
        second.push_str(&format!("; since open: {}", causes.join(", ")));
    }
    let first = title(first);
    let first = if waiting > 0 { first.red() } else { first };
    Text::from(vec![first, Line::from(second)])
}

fn device_text(model: &Model, status: &Status) -> Text<'static> {
    let head = format!("{:<8}{:>15}{:>15}", "DEVICE", "read/s", "written/s");
    let mut lines = vec![title(head)];
    let mut sums = [0, 0];
    let mut rows = Vec::new();
    for class in CLASSES {
        let [read, written] =
            [false, true].map(|written| model.rate(model::bytes_of(class, written)).unwrap_or(0));
        sums[0] += read;
        sums[1] += written;
        rows.push((class, read, written));
    }
    let believed = [status.device_read_bandwidth, status.device_write_bandwidth];
    let of = |sum: u64, can: u64| format!("{} of {}", size(sum), size(can));
    lines.push(Line::from(format!(
        "{:<8}{:>15}{:>15}",
        "all",
        of(sums[0], believed[0]),
        of(sums[1], believed[1])
    )));
    // Of seven classes five have room; those without traffic and the least of the others go.
    let mut shown = rows.clone();
    shown.sort_by_key(|(_, read, written)| std::cmp::Reverse(read + written));
    shown.truncate(5);
    for (class, read, written) in rows.into_iter().filter(|row| shown.contains(row)) {
        lines.push(Line::from(format!("{class:<8}{:>15}{:>15}", size(read), size(written))));
    }
    lines.push(Line::from(format!("a sync takes {}", time(status.device_barrier_ns))));
    Text::from(lines)
}

fn levels_text(status: &Status, height: u16) -> Text<'static> {
    let head = format!("{:<7}{:>6}{:>8}{:>9}{:>9}", "LEVELS", "runs", "tables", "size", "target");
    let mut lines = vec![title(head)];
    let many = status.families.len() > 1;
    for family in &status.families {
        for (number, level) in family.levels.iter().enumerate() {
            if level.tables == 0 && number > 0 {
                continue;
            }
            let name = match many {
                true => format!("{:.3} L{number}", family.name),
                false => format!("L{number}"),
            };
            let target =
                if level.target_bytes == 0 { "-".to_owned() } else { size(level.target_bytes) };
            lines.push(Line::from(format!(
                "{name:<7}{:>6}{:>8}{:>9}{target:>9}",
                count(level.runs),
                count(level.tables),
                size(level.bytes)
            )));
        }
    }
    lines.truncate(usize::from(height));
    Text::from(lines)
}

fn jobs_text(status: &Status, height: u16) -> Text<'static> {
    let head = format!(
        "JOBS  {} run; slots {} flush, {} compact",
        status.jobs.len(),
        status.flush_slots,
        status.compaction_slots
    );
    let mut lines = vec![title(head)];
    for job in &status.jobs {
        lines.push(job_line(job));
    }
    if status.jobs.is_empty() {
        lines.push(Line::from("none").dim());
    }
    lines.truncate(usize::from(height));
    Text::from(lines)
}

fn job_line(job: &JobStatus) -> Line<'static> {
    // A flush reads memory, so that only what it has written tells how far it is.
    let done = job.read_bytes.max(job.written_bytes);
    let percent = done.saturating_mul(100).checked_div(job.input_bytes).unwrap_or(0).min(100);
    let bar: String =
        (0..4).map(|quarter| if percent * 4 > quarter * 100 { '█' } else { '·' }).collect();
    let state = match (&job.paused, &job.reason) {
        (Some(paused), _) => format!("paused: {paused}"),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    let of = size(job.input_bytes);
    let text = format!("{:<7}{bar}{percent:>4} % of {of:>5} {state}", job.what);
    if job.paused.is_some() { Line::from(text).yellow() } else { Line::from(text) }
}

fn memory_text(status: &Status) -> Text<'static> {
    let all: u64 = status.memory.values().sum();
    let budget = match status.memory_budget {
        0 => String::new(),
        budget => format!(" of {}", size(budget)),
    };
    let head =
        format!("MEMORY  {}{budget}  cache hits {:.0} %", size(all), status.cache_hit_rate * 100.0);
    let mut owners: Vec<(&String, &u64)> = status.memory.iter().collect();
    owners.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let mut lines = vec![title(head)];
    for (owner, bytes) in owners.into_iter().filter(|(_, bytes)| **bytes > 0) {
        lines.push(Line::from(format!("{:<24}{:>9}", owner.replace('_', " "), size(*bytes))));
    }
    Text::from(lines)
}

fn slow_text(model: &Model, area: Rect) -> Text<'static> {
    let head = format!("{:<7}{:>7}{:>8}  where the time went", "SLOW", "took", "ago");
    let mut lines = vec![title(head)];
    for slow in model.slow() {
        lines.push(Line::from(slow_line(slow)));
    }
    lines.truncate(usize::from(area.height));
    Text::from(lines)
}

fn slow_line(slow: &SlowStatus) -> String {
    let mut parts: Vec<(&String, &u64)> = slow.parts.iter().collect();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
    let parts = parts.into_iter().take(3);
    let parts: Vec<String> = parts.map(|(part, ns)| format!("{part} {}", time(*ns))).collect();
    let beside = match slow.beside.is_empty() {
        true => String::new(),
        false => format!("; beside {}", slow.beside.join(", ")),
    };
    let (took, ago) = (time(slow.total_ns), time(slow.ago_ns));
    format!("{:<7}{took:>7}{ago:>8}  {}{beside}", slow.kind, parts.join(", "))
}
