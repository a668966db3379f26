//! The screen of a fixed status, and what keys do.

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::termion::event::Key;
use sateen_inspect::{
    ClassTraffic, Client, FamilyStatus, JobStatus, LevelStatus, OperationStatus, Quantiles,
    SlowStatus, StallStatus, Status,
};

use super::model::{Model, Order};
use super::{Action, Shown, action, draw, learn, lines};

const MIB: u64 = 1 << 20;

fn level(runs: u64, tables: u64, mib: u64, target: u64) -> LevelStatus {
    LevelStatus { runs, tables, bytes: mib * MIB, target_bytes: target * MIB }
}

fn job(job: u64, what: &str, read: u64, paused: Option<&str>) -> JobStatus {
    JobStatus {
        job,
        what: what.to_owned(),
        family: "default".to_owned(),
        reason: (what != "flush").then(|| "level-size".to_owned()),
        age_ns: 1_500_000_000,
        input_bytes: 64 * MIB,
        read_bytes: read * MIB,
        written_bytes: read * MIB,
        paused: paused.map(str::to_owned),
    }
}

/// A busy database after `second` seconds.
fn busy(second: u64) -> Status {
    let operation = |name: &str, rate: u64, p99_ns: u64| OperationStatus {
        name: name.to_owned(),
        count: rate * second,
        last_second: Quantiles {
            timed: rate / 8,
            p50_ns: p99_ns / 20,
            p99_ns: p99_ns + second * 1000,
            p999_ns: p99_ns * 3,
            max_ns: p99_ns * 10,
        },
        since_open: Quantiles::default(),
    };
    let class = |class: &str, read: u64, written: u64| ClassTraffic {
        class: class.to_owned(),
        read_bytes: read * MIB * second,
        written_bytes: written * MIB * second,
        syncs: second,
    };
    let slow = |kind: &str, ms: u64, ago_s: u64, parts: &[(&str, u64)]| SlowStatus {
        kind: kind.to_owned(),
        ago_ns: ago_s * 1_000_000_000,
        total_ns: ms * 1_000_000,
        parts: parts.iter().map(|(part, ms)| ((*part).to_owned(), ms * 1_000_000)).collect(),
        beside: vec!["L0→L1".to_owned(), "flush".to_owned()],
    };
    Status {
        protocol: 1,
        pid: 4711,
        path: "/srv/library".to_owned(),
        databases: vec!["/srv/ledger".to_owned(), "/srv/library".to_owned()],
        uptime_ns: second * 1_000_000_000,
        health: "ok".to_owned(),
        process_cpu_ns: second * 1_320_000_000,
        processors: 4,
        operations: vec![
            operation("get", 48_200, 85_000),
            operation("multi_get", 0, 0),
            operation("write", 12_400, 310_000),
            operation("seek", 310, 1_200_000),
        ],
        written_bytes: 12 * MIB * second,
        stalls: vec![StallStatus {
            cause: "memtable-limit".to_owned(),
            waiting: 3,
            waits: 40 * second,
            waited_ns: second * 90_000_000,
            max_ns: 41_000_000,
        }],
        time_to_stall_ns: Some(42_000_000_000),
        families: vec![FamilyStatus {
            name: "default".to_owned(),
            levels: vec![level(6, 31, 62, 0), level(1, 120, 240, 256), level(1, 3900, 7800, 8000)],
            debt_bytes: 900 * MIB,
            write_limit: Some(11 * MIB),
            ..FamilyStatus::default()
        }],
        io: vec![
            class("client", 38, 0),
            class("wal", 0, 13),
            class("manifest", 0, 0),
            class("flush", 0, 12),
            class("l0", 25, 25),
            class("deep", 40, 38),
            class("reclaim", 0, 0),
        ],
        device_read_bandwidth: 400 * MIB,
        device_write_bandwidth: 200 * MIB,
        device_barrier_ns: 1_400_000,
        jobs: vec![
            job(7, "flush", 32, None),
            job(8, "L0→L1", 60, None),
            job(5, "L2→L3", 8, Some("peak")),
        ],
        flush_slots: 1,
        compaction_slots: 2,
        debt_ns: 3_200_000_000,
        memory: [
            ("active_memtables", 48),
            ("block_cache", 64),
            ("versions", 1),
            ("wal_buffers", 0),
        ]
        .map(|(owner, mib)| (owner.to_owned(), mib * MIB))
        .into(),
        cache_hit_rate: 0.93,
        slow: vec![
            slow("write", 41, 2, &[("admission", 38), ("wal_append", 2), ("other", 1)]),
            slow("read", 12, 1, &[("device_read", 11), ("other", 1)]),
            slow("scan", 9, 20, &[("device_read", 6), ("cache_miss", 2), ("lock", 1)]),
        ],
        ..Status::default()
    }
}

fn screen(model: &Model, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw::draw(frame, model)).unwrap();
    lines(terminal.backend())
}

fn watched() -> Model {
    let mut model = Model::new("/srv/library");
    (1..=30).for_each(|second| model.take(busy(second)));
    model
}

/// Compares a screen with a file, which `SATEEN_BLESS=1` writes.
fn is_as_before(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top").join(name);
    if std::env::var_os("SATEEN_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap());
}

#[test]
fn a_busy_database_fits_on_80_by_24_and_more_is_shown_on_a_larger_screen() {
    let model = watched();
    let small = screen(&model, 80, 24);
    is_as_before("screen-80x24.txt", &small);
    assert!(small.lines().count() <= 23);
    for word in ["OPERATIONS", "STALLS", "DEBT", "DEVICE", "LEVELS", "JOBS", "MEMORY", "SLOW"] {
        assert!(small.contains(word), "{word}\n{small}");
    }
    is_as_before("screen-120x40.txt", &screen(&model, 120, 40));
}

#[test]
fn the_first_line_says_that_the_machine_is_short_of_processors() {
    let mut model = watched();
    let first = |model: &Model| screen(model, 80, 24).lines().next().unwrap_or_default().to_owned();
    assert!(!first(&model).contains("short of processor"));
    model.take(Status { short_of_processor: true, processors_others: 0.9, ..busy(31) });
    assert!(first(&model).contains("  ok, short of processor  CPU"), "{}", first(&model));
    assert_eq!(model.to_json()["status"]["short_of_processor"], true);
}

#[test]
fn a_running_job_tells_how_much_of_its_input_is_done() {
    let text = screen(&watched(), 80, 24);
    for line in ["L0→L1  ████  93 % of  64 M level-size", "L2→L3  █···  12 % of  64 M paused: peak"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn no_size_of_a_terminal_is_too_small_to_draw() {
    let model = watched();
    for (columns, rows) in [(1, 1), (10, 3), (28, 7), (40, 12), (79, 23), (200, 5), (300, 100)] {
        let _drawn = screen(&model, columns, rows);
    }
}

#[test]
fn a_small_screen_shows_what_fits() {
    let mut model = watched();
    for (columns, rows) in [(60, 15), (40, 10), (80, 15)] {
        let text = screen(&model, columns, rows);
        is_as_before(&format!("screen-{columns}x{rows}.txt"), &text);
        assert!(text.contains("OPERATIONS a second      p50      p99"), "{text}");
        assert!(text.contains("  ok") && text.contains("STALLS  3 waiting"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= columns.into()), "{text}");
    }
    let text = screen(&model, 60, 15);
    assert!(text.contains("JOBS  3 run") && !text.contains("MEMORY"), "{text}");
    // An explanation takes the room of the operations.
    model.why = Some("the cause".to_owned());
    let text = screen(&model, 60, 15);
    assert!(text.contains("WHY\nthe cause") && !text.contains("OPERATIONS"), "{text}");
    for (columns, rows) in [(27, 24), (80, 6)] {
        assert!(screen(&model, columns, rows).starts_with("at least 80x24 wanted"));
    }
}

#[test]
fn without_a_process_the_screen_says_so_and_shows_what_is_on_disk() {
    let mut model = Model::new("library");
    assert!(screen(&model, 80, 24).contains("asking"));
    model.failure = Some("library: no process serves this database".to_owned());
    model.on_disk = Some("On disk: 3 table files with 6 M live".to_owned());
    let text = screen(&model, 80, 24);
    assert!(text.contains("no process serves") && text.contains("3 table files"), "{text}");
    assert_eq!(model.to_json()["served"], false);
}

#[test]
fn rates_are_differences_and_a_restart_begins_anew() {
    let mut model = Model::new("library");
    model.take(busy(10));
    assert_eq!(model.rate(|status| status.written_bytes), None);
    model.take(busy(12));
    assert_eq!(model.rate(|status| status.written_bytes), Some(12 * MIB));
    assert_eq!(model.to_json()["a_second"]["operations"]["get"], 48_200);
    model.take(busy(1));
    assert_eq!(model.rate(|status| status.written_bytes), None);
    let mut other = busy(3);
    other.pid += 1;
    model.take(other);
    assert_eq!(model.rate(|status| status.written_bytes), None);
}

#[test]
fn slow_operations_come_in_the_order_that_was_asked_for() {
    let mut model = watched();
    let kinds =
        |model: &Model| model.slow().iter().map(|slow| slow.kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&model), ["write", "read", "scan"]);
    model.order = Order::Newest;
    assert_eq!(kinds(&model), ["read", "write", "scan"]);
    model.order = Order::Kind;
    assert_eq!(kinds(&model), ["read", "scan", "write"]);
    // Twelve lines of `why` have room on the smallest screen.
    let lines: Vec<_> = (0..12).map(|line| format!("sentence {line} of why")).collect();
    model.why = Some(lines.join("\n"));
    let shown = screen(&model, 80, 24);
    assert!(lines.iter().all(|line| shown.contains(line)), "{shown}");
}

#[test]
fn keys_do_what_the_last_line_says() {
    for (key, expected) in [
        (Key::Char('q'), Action::Quit),
        (Key::Esc, Action::Quit),
        (Key::Ctrl('c'), Action::Quit),
        (Key::Char('p'), Action::Pause),
        (Key::Char('s'), Action::Sort),
        (Key::Char('w'), Action::Why),
        (Key::Char('\t'), Action::Next),
        (Key::Char('x'), Action::Nothing),
        (Key::Char('c'), Action::Nothing),
    ] {
        assert_eq!(action(key), expected);
    }
}

#[test]
fn the_other_databases_of_the_process_are_found_also_by_a_socket() {
    let status = busy(1);
    for first in [
        Shown { client: Client::of_socket("/srv/library/INSPECT"), directory: None },
        Shown::of("/srv/library".into()),
    ] {
        let mut shown = vec![first];
        learn(&mut shown, 0, &status);
        learn(&mut shown, 0, &status);
        let names: Vec<String> = shown.iter().map(Shown::name).collect();
        assert_eq!(names, ["/srv/library", "/srv/ledger"]);
    }
}
