//! The chore `pages`: the pages with charts, loaded in Chromium.
//!
//! 1. `make` writes a page of each kind with short runs of the command.
//! 2. `load` loads each in a frame as wide as a phone and one as wide as a desktop. The page's
//!    script must end without an error, and no page may be wider than its frame.
//!
//! Without Chromium the chore prints SKIPPED and the reason. With `REL_REQUIRE_ALL` set, that is an
//! error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::chore::{Outcome, answers, cargo, skipped};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A name for each page, and the words after `sateen` that write it; the file is added.
const PAGES: [(&str, &str); 6] = [
    ("bench-one", "bench -w bursts --rate 2k -d 3 -n 20k --peak-seconds 1 --valley-seconds 1"),
    ("bench-closed", "bench -w fillseq,overwrite -d 3 -n 20k --rounds 2"),
    ("bench-rates", "bench -w bursts --rate 500,1k -d 2 -n 10k"),
    ("sim", "sim -d 20"),
    ("sim-many", "sim -d 10 --policy silk,rocksdb,leveldb -w bursts,nutanix"),
    ("demo", "demo --seconds 2 --rate 1k --device real"),
];

/// Loads a page, given as a string, in a frame as wide as a phone and in one as wide as a desktop,
/// and writes what is wrong with it as the text of the document.
const FRAME: &str = r#"<!DOCTYPE html><body><script>
const page = PAGE;
const problems = [];
const widths = [400, 1300];
let left = widths.length;
const done = () => {
  const text = problems.length > 0 ? problems.join("; ") : "sound";
  document.body.replaceChildren("VERDICT<" + text + ">VERDICT");
};
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style = "border:0;height:900px;width:" + width + "px";
  frame.srcdoc = page.replace("<head>", "<head><script>addEventListener('error', (event) => " +
    "parent.failed(event.message)); addEventListener('unhandledrejection', (event) => " +
    "parent.failed(String(event.reason)));</" + "script>");
  frame.onload = () => setTimeout(() => {
    const root = frame.contentDocument.documentElement;
    const at = "at " + width + " px it ";
    if (root.scrollWidth > width) problems.push(at + "is " + root.scrollWidth + " px wide");
    if (root.querySelectorAll("svg").length === 0) problems.push(at + "has no chart");
    if (!root.querySelector("h1").textContent) problems.push("it has no headline");
    left -= 1;
    if (left === 0) done();
  }, 500);
  document.body.append(frame);
}
window.failed = (message) => problems.push("script error: " + message);
</script></body>"#;

pub(crate) fn run(root: &Path, files: &[String]) -> Outcome {
    let Some(browser) =
        BROWSERS.into_iter().find(|name| answers(Command::new(name).arg("--version")))
    else {
        return skipped("pages", &format!("no {}", BROWSERS[0]));
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let folder = root.join(target).join("pages");
    fs::create_dir_all(&folder).map_err(|error| vec![format!("{}: {error}", folder.display())])?;
    let mut pages: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    if pages.is_empty() {
        pages = make(root, &folder)?;
    }
    let problems: Vec<String> =
        pages.iter().filter_map(|page| load(browser, page, &folder).err()).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Makes a page of each kind, and one that compares two runs.
fn make(root: &Path, folder: &Path) -> Result<Vec<PathBuf>, Vec<String>> {
    let sateen = |words: &[&str]| {
        let all = ["run", "--quiet", "--package", "sateen-cli", "--"];
        cargo(root, &[&all[..], words].concat(), &[])
    };
    let mut pages = Vec::new();
    for (name, words) in PAGES {
        let page = folder.join(format!("{name}.html"));
        let mut words: Vec<&str> = words.split(' ').collect();
        let path = page.to_string_lossy();
        words.extend(["--html", &*path]);
        sateen(&words)?;
        pages.push(page);
    }
    let json = |name: &str| folder.join(format!("{name}.json")).to_string_lossy().into_owned();
    let (ours, theirs) = (json("sateen"), json("profile"));
    let bursts = "bench -w bursts --rate 2k -d 3 -n 20k";
    let words: Vec<&str> = bursts.split(' ').collect();
    sateen(&[&words[..], &["--json", &ours]].concat())?;
    let profile = ["--profile", "rocksdb", "--label", "profile-rocksdb", "--json", &theirs];
    sateen(&[&words[..], &profile].concat())?;
    let page = folder.join("bench-two.html");
    sateen(&[
        "bench",
        "--from-json",
        &format!("{ours},{theirs}"),
        "--html",
        &page.to_string_lossy(),
    ])?;
    pages.push(page);
    pages.push(live(root, folder)?);
    Ok(pages)
}

/// What the live page of a database shows in this chore, instead of asking a process.
const SAMPLE: &str = r#"{
"/v1/status": {
  "path": "/srv/a/rather/long/path/to/the/library", "pid": 4711, "uptime_ns": 5400000000000,
  "health": "degraded", "health_cause": "no space left on device", "process_cpu_ns": 7000000000,
  "operations": [
    {"name": "get", "count": 123456789, "last_second": {"p50_ns": 4200, "p99_ns": 115000,
      "p999_ns": 255000, "max_ns": 850000}},
    {"name": "write", "count": 4711, "last_second": {"p50_ns": 16000, "p99_ns": 340000,
      "p999_ns": 930000, "max_ns": 3100000}}],
  "stalls": [{"cause": "pending-compaction-bytes", "waiting": 3, "waits": 12000,
    "waited_ns": 90000000000, "max_ns": 41000000}],
  "debt_ns": 3200000000, "time_to_stall_ns": 42000000000,
  "io": [{"class": "client", "read_bytes": 5, "written_bytes": 0}],
  "device_read_bandwidth": 400000000, "device_write_bandwidth": 200000000,
  "device_barrier_ns": 1400000,
  "families": [{"name": "default", "levels": [{"runs": 6, "tables": 31, "bytes": 65000000,
    "target_bytes": 0}, {"runs": 1, "tables": 3900, "bytes": 8000000000, "target_bytes": 9}]}],
  "jobs": [{"what": "L0→L1", "input_bytes": 65000000, "read_bytes": 32000000, "written_bytes": 0,
    "reason": "level0-runs", "paused": null}, {"what": "L2→L3", "input_bytes": 65000000,
    "read_bytes": 0, "written_bytes": 0, "reason": "level-size", "paused": "peak"}],
  "memory": {"block_cache": 67108864, "active_memtables": 50331648}, "cache_hit_rate": 0.93,
  "slow": [{"kind": "write", "total_ns": 41000000, "ago_ns": 2000000000,
    "parts": {"admission": 38000000, "wal_append": 2000000}, "beside": ["L0→L1", "flush"]}]},
"/v1/explain": {"text": "12 to 3 s ago: 10 slow seconds; a write took 1.82 s.\n  Clients waited."}
}"#;

/// Makes the live page of a running database, with a status in it.
fn live(root: &Path, folder: &Path) -> Result<PathBuf, Vec<String>> {
    let source = root.join("crates/inspect/src/page.html");
    let failed = |path: &Path, error: std::io::Error| vec![format!("{}: {error}", path.display())];
    let html = fs::read_to_string(&source).map_err(|error| failed(&source, error))?;
    let sample = format!("<script type=\"application/json\" id=\"sample\">{SAMPLE}</script>");
    let page = folder.join("live.html");
    let html = html.replacen("<main>", &format!("{sample}<main>"), 1);
    fs::write(&page, html).map_err(|error| failed(&page, error))?;
    Ok(page)
}

fn load(browser: &str, page: &Path, folder: &Path) -> Result<(), String> {
    let name = page.display();
    let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let html = fs::read_to_string(page).map_err(|error| failed(&error))?;
    let frame = folder.join("frame.html");
    fs::write(&frame, FRAME.replacen("PAGE", &quoted(&html), 1)).map_err(|error| failed(&error))?;
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]);
    command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000"]);
    command.arg(format!("--user-data-dir={}", folder.join("browser").display()));
    command.args(["--enable-logging=stderr", "--dump-dom"]);
    let frame = fs::canonicalize(&frame).map_err(|error| failed(&error))?;
    let output = command
        .arg(format!("file://{}", frame.display()))
        .output()
        .map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    let verdict =
        text.split("VERDICT&lt;").nth(1).and_then(|rest| rest.split("&gt;VERDICT").next());
    let logged: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    match (verdict, logged.as_slice()) {
        (Some("sound"), []) => {
            eprintln!("{name}: sound");
            Ok(())
        }
        (verdict, logged) => Err(format!(
            "{name}: {}; console: {}",
            verdict.unwrap_or("it did not load"),
            if logged.is_empty() { "nothing".to_owned() } else { logged.join("; ") }
        )),
    }
}

/// Returns text as a JavaScript string that may stand in a script element.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '<' => out.push_str("\\x3c"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_page_cannot_end_the_script() {
        assert_eq!(quoted("a\"\\\n</script>"), "\"a\\\"\\\\\\n\\x3c/script>\"");
    }
}
