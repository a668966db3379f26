//! The dashboard and the alerts name only metrics and labels that there are.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use sateen::{Db, Options};

/// Labels that Prometheus or its functions add.
const ADDED: [&str; 2] = ["instance", "job"];

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name)
}

/// Returns the names of samples, each with the labels that it has.
fn samples() -> BTreeMap<String, BTreeSet<String>> {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    db.put("fig", "1").unwrap();
    db.flush().unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in db.metrics().to_prometheus_text().lines().filter(|line| !line.starts_with('#')) {
        let (sample, _value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let names = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        found.entry(name.to_owned()).or_default().extend(names);
    }
    found
}

/// Returns the expressions of PromQL in both files.
fn expressions() -> Vec<String> {
    let dashboard = std::fs::read(contrib("grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_slice(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut all: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let alerts = std::fs::read_to_string(contrib("alerts.yml")).unwrap();
    // An expression stands behind `expr:`, or on the lines below that are indented further.
    let mut lines = alerts.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(text) = line.trim_start().strip_prefix("expr:") else { continue };
        let indent = line.len() - line.trim_start().len();
        let mut text = text.trim().trim_start_matches('>').to_owned();
        while let Some(next) = lines.next_if(|next| next.len() - next.trim_start().len() > indent) {
            text.push(' ');
            text.push_str(next.trim());
        }
        all.push(text);
    }
    all
}

/// Returns the words of an expression that are names, and not in quotes.
fn words(expression: &str) -> Vec<(String, char)> {
    let mut words = Vec::new();
    let (mut word, mut quoted) = (String::new(), false);
    for character in expression.chars().chain([' ']) {
        if quoted {
            quoted = character != '"';
        } else if character.is_ascii_alphanumeric() || character == '_' || character == '$' {
            word.push(character);
        } else if word.is_empty() {
            quoted = character == '"';
        } else {
            words.push((std::mem::take(&mut word), character));
            quoted = character == '"';
        }
    }
    words
}

#[test]
fn every_metric_and_label_that_is_named_exists() {
    let samples = samples();
    let labels: BTreeSet<&String> = samples.values().flatten().collect();
    let expressions = expressions();
    assert!(expressions.len() > 30, "{}", expressions.len());
    for expression in &expressions {
        let words = words(expression);
        let metrics: Vec<&String> =
            words.iter().map(|(word, _)| word).filter(|word| word.starts_with("sateen_")).collect();
        assert!(!metrics.is_empty(), "{expression}");
        for metric in &metrics {
            assert!(samples.contains_key(*metric), "{metric} in {expression}");
        }
        // A name before = or =~ is a label of the metrics, and so is each one behind `by`.
        let compared = words.iter().filter(|(_, next)| *next == '=').map(|(word, _)| word.clone());
        let grouped = expression.split("by (").skip(1).flat_map(|rest| {
            let inner = rest.split(')').next().unwrap_or_default();
            inner.split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>()
        });
        for label in compared.chain(grouped).filter(|it| !it.starts_with("sateen_")) {
            let known = labels.contains(&label) || ADDED.contains(&label.as_str());
            assert!(known, "{label} in {expression}");
        }
    }
}

#[test]
fn prometheus_accepts_the_alerts() {
    let found =
        Command::new("promtool").arg("check").arg("rules").arg(contrib("alerts.yml")).output();
    match found {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
        }
        Err(error) => println!("SKIPPED(promtool: {error})"),
    }
}
