//! Finds what a request asks for. docs/inspect.md has the same table for people.

use std::time::Duration;

use serde_json::json;

use crate::actions::{self, Turn, Work};
use crate::http::{Answer, HTML, JSON, METRICS, Method, Refusal, Request, TEXT};
use crate::protocol::PROTOCOL;
use crate::server::Handler;
use crate::status;
use crate::watch::Watch;

/// The page that shows a database.
pub(crate) const PAGE: &str = include_str!("page.html");
/// Seconds that are explained if a request does not say.
const SINCE: u64 = 600;

/// Answers requests about one database.
pub(crate) struct Routes {
    pub(crate) watch: Watch,
    /// Returns the directories of the databases that this process serves.
    pub(crate) databases: fn() -> Vec<String>,
    /// False if requests may only look.
    pub(crate) may_change: bool,
    turn: Turn,
}

impl Routes {
    pub(crate) fn new(watch: Watch, databases: fn() -> Vec<String>, may_change: bool) -> Routes {
        Routes { watch, databases, may_change, turn: Turn::default() }
    }

    fn get(&self, request: &Request) -> Result<Answer, Refusal> {
        Ok(match request.path.as_str() {
            "/" => Answer::ok(HTML, PAGE),
            "/v1/ping" => Answer::json(&json!({ "protocol": PROTOCOL })),
            "/v1/status" => json_of(&status::status(&self.watch, (self.databases)())),
            "/metrics" | "/v1/metrics" => {
                Answer::ok(METRICS, self.watch.db.metrics().to_prometheus_text())
            }
            "/v1/timeline" => {
                let timeline = self.watch.db.timeline();
                match request.query.get("format").map(String::as_str) {
                    None | Some("json") => Answer::ok(JSON, timeline.to_json()),
                    Some("trace") => Answer::ok(JSON, timeline.to_chrome_trace()),
                    Some(other) => {
                        let text = format!("format: {other} is neither json nor trace");
                        return Err(Refusal::new(400, text));
                    }
                }
            }
            "/v1/explain" => {
                let (since, is_text) = explain_query(request)?;
                let report = status::explanation(&self.watch, since);
                if is_text { Answer::ok(TEXT, report.text) } else { json_of(&report) }
            }
            "/v1/options" if self.may_change => actions::options(&self.watch.db),
            _ => return Err(Refusal::new(404, format!("{}: no such path", request.path))),
        })
    }

    fn post(&self, request: &Request) -> Result<Answer, Refusal> {
        let db = &self.watch.db;
        let work = |work| actions::carry_out(work, db, &self.turn, &request.body);
        match request.path.as_str() {
            "/v1/options" => actions::set_options(db, &request.body),
            "/v1/flush" => work(Work::Flush),
            "/v1/compact" => work(Work::Compact),
            "/v1/checkpoint" => work(Work::Checkpoint),
            "/v1/backup" => work(Work::Backup),
            path => Err(Refusal::new(404, format!("{path}: no such path for POST"))),
        }
    }
}

impl Handler for Routes {
    fn answer(&self, request: &Request) -> Answer {
        let answered = match request.method {
            Method::Get => self.get(request),
            Method::Post if self.may_change => self.post(request),
            Method::Post => Err(Refusal::new(405, "requests may only look here")),
        };
        answered.unwrap_or_else(|refusal| Answer::refused(&refusal))
    }

    fn tick(&self) {
        drop(self.watch.update());
    }
}

/// Returns since when to explain, and whether as text.
pub(crate) fn explain_query(request: &Request) -> Result<(Duration, bool), Refusal> {
    let mut answer = (Duration::from_secs(SINCE), false);
    for (name, value) in &request.query {
        match (name.as_str(), value.as_str()) {
            ("since", text) => {
                let wrong = |_| Refusal::new(400, format!("since: {text} is no number of seconds"));
                answer.0 = Duration::from_secs(text.parse().map_err(wrong)?);
            }
            ("format", "json") => answer.1 = false,
            ("format", "text") => answer.1 = true,
            ("format", other) => {
                let text = format!("format: {other} is neither json nor text");
                return Err(Refusal::new(400, text));
            }
            (other, _) => return Err(Refusal::new(400, format!("{other}: no such argument here"))),
        }
    }
    Ok(answer)
}

/// Returns a value as JSON.
fn json_of(value: &impl serde::Serialize) -> Answer {
    // Only a map with keys that are no text can fail, and there is none.
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    Answer::ok(JSON, text)
}
