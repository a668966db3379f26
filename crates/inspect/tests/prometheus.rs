//! Prometheus scrapes a database, loads the alerts, and has data for every query of the dashboard.
//!
//! Without the program `prometheus` (Debian's package of that name) the test prints: SKIPPED.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sateen::{Db, Options, ReadOptions};
use serde_json::Value;

/// How long Prometheus may take until it has data for everything.
const PATIENCE: Duration = Duration::from_mins(2);

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Server {
    /// Starts Prometheus, which scrapes `target` twice a second; `None` if it is not installed.
    fn start(directory: &Path, target: &str) -> Option<Server> {
        let rules = contrib("alerts.yml").canonicalize().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s }}\n\
             rule_files: [ \"{}\" ]\n\
             scrape_configs:\n\
             - {{ job_name: sateen, static_configs: [ {{ targets: [ \"{target}\" ] }} ] }}\n",
            rules.display()
        );
        std::fs::write(directory.join("prometheus.yml"), config).unwrap();
        // A port that was free a moment ago. Prometheus ends if another program takes it.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let log = std::fs::File::create(directory.join("prometheus.log")).unwrap();
        let started = Command::new("prometheus")
            .arg(format!("--config.file={}", directory.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        match started {
            Ok(child) => Some(Server { child, address }),
            Err(error) => {
                println!("SKIPPED(prometheus: {error})");
                None
            }
        }
    }

    /// Returns the `data` of an answer, or why there is none.
    fn get(&self, path: &str) -> Result<Value, String> {
        let mut stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").map_err(|error| error.to_string())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let mut answer: Value =
            serde_json::from_str(body).map_err(|error| format!("{error}: {text}"))?;
        if answer["status"] != "success" {
            return Err(answer.to_string());
        }
        Ok(answer["data"].take())
    }

    /// Returns true if the query has a result that is a number.
    fn has_data(&self, query: &str) -> Result<bool, String> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let data = self.get(&format!("/api/v1/query?query={escaped}"))?;
        let results = data["result"].as_array().unwrap();
        Ok(results.iter().any(|result| result["value"][1] != "NaN"))
    }

    /// Returns the alerts' names with what their evaluation came to.
    fn alerts(&self) -> Result<Vec<(String, String)>, String> {
        let data = self.get("/api/v1/rules")?;
        let groups = data["groups"].as_array().unwrap();
        let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Ok(rules.map(|rule| (text(&rule["name"]), text(&rule["health"]))).collect())
    }
}

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name)
}

/// Returns the queries of the dashboard, with values in the places of its variables.
fn queries() -> Vec<String> {
    let dashboard = std::fs::read(contrib("grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_slice(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| {
        let query = target["expr"].as_str().unwrap();
        query.replace("$instance", ".*").replace("$__rate_interval", "20s")
    });
    queries.collect()
}

#[test]
fn every_query_has_data_and_every_alert_is_evaluated() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path().join("library"), Options::default()).unwrap();
    let scraped = sateen_inspect::prometheus(&db, "127.0.0.1:0").unwrap();
    let target = scraped.address().to_string();
    let Some(mut server) = Server::start(directory.path(), &target) else { return };
    let mut left = queries();
    assert!(left.len() > 20, "{}", left.len());
    let began = Instant::now();
    let mut alerts: Result<Vec<(String, String)>, String> = Err("not asked".to_owned());
    let mut number = 0_u64;
    // The clients' work goes on, so that no rate is that of nothing.
    while !left.is_empty() || !alerts.as_ref().is_ok_and(|alerts| all_evaluated(alerts)) {
        let log = || std::fs::read_to_string(directory.path().join("prometheus.log")).unwrap();
        assert_eq!(server.child.try_wait().unwrap(), None, "{}", log());
        assert!(began.elapsed() < PATIENCE, "no data: {left:#?}\n{alerts:?}\n{}", log());
        for _ in 0..200 {
            number += 1;
            db.put(number.to_be_bytes(), [7; 100]).unwrap();
            db.get(number.saturating_sub(300).to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        db.cursor(&ReadOptions::default()).unwrap().seek_to_first();
        left.retain(|query| !server.has_data(query).is_ok_and(|has| has));
        alerts = server.alerts();
        std::thread::sleep(Duration::from_millis(200));
    }
    let alerts = alerts.unwrap();
    assert!(alerts.len() >= 8, "{alerts:?}");
}

fn all_evaluated(alerts: &[(String, String)]) -> bool {
    !alerts.is_empty() && alerts.iter().all(|(_, health)| health == "ok")
}
