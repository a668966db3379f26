//! Draws the screen of `top`. It works from 80 columns and 24 rows on.

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

pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
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
    let [operations, stalls, rest] =
        Layout::vertical([Constraint::Length(5), Constraint::Length(2), Constraint::Min(0)])
            .areas(body);
    draw_operations(frame, model, status, operations);
    frame.render_widget(stalls_text(model, status), stalls);
    // Its sentences need the room of all the rest.
    if let Some(why) = &model.why {
        let text = Text::from(format!("WHY\n{why}"));
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), rest);
        return;
    }
    let [middle, work, slow] =
        Layout::vertical([Constraint::Length(8), Constraint::Min(4), Constraint::Min(3)])
            .areas(rest);
    let [device, levels] = halves(middle);
    frame.render_widget(device_text(model, status), device);
    frame.render_widget(levels_text(status, levels.height), levels);
    let [jobs, memory] = halves(work);
    frame.render_widget(jobs_text(status, jobs.height), jobs);
    frame.render_widget(memory_text(status), memory);
    frame.render_widget(slow_text(model, slow), slow);
}

fn halves(area: Rect) -> [Rect; 2] {
    Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area)
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
    let up = time(status.uptime_ns);
    let short = if status.short_of_processor { ", short of processor" } else { "" };
    let health = &status.health;
    let right = format!("  pid {}  up {up}  {health}{short}{cpu}{others}{paused}", status.pid);
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
    let [table, charts] =
        Layout::horizontal([Constraint::Length(56), Constraint::Min(0)]).areas(area);
    let head = format!(
        "{:<10}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "OPERATIONS", "a second", "p50", "p99", "p99.9", "max"
    );
    let mut lines = vec![title(head)];
    for operation in &status.operations {
        let rate = model.rate(model::count_of(&operation.name));
        let latency = &operation.last_second;
        lines.push(Line::from(format!(
            "{:<10}{:>9}{:>9}{:>9}{:>9}{:>9}",
            operation.name,
            rate.map_or_else(|| "…".to_owned(), count),
            time(latency.p50_ns),
            time(latency.p99_ns),
            time(latency.p999_ns),
            time(latency.max_ns),
        )));
    }
    frame.render_widget(Text::from(lines), table);
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
    let bar: String = (0..10).map(|tenth| if percent > tenth * 10 { '█' } else { '·' }).collect();
    let state = match (&job.paused, &job.reason) {
        (Some(paused), _) => format!("paused: {paused}"),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    let text = format!("{:<7}{bar} {:>6} {state}", job.what, size(job.input_bytes));
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
