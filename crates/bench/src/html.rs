//! The pages with charts. Each is one file without references to others.
//!
//! A page consists of its style, its data as JSON, the code that all pages share (charts.js:
//! figures, tables, charts) and a script of its own that draws the data. `render` makes the page of
//! `bench` and `demo`, and [`page`] makes any other.

use serde::Serialize;

use crate::result::{KINDS, Report};
pub use crate::summary::{Comparison, Row, Section, Spread, Unit};
use crate::summary::{Sweep, sections, sweeps};
use crate::{Error, Result, notes};

const PAGE: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/report.css");
const CHARTS: &str = include_str!("report/charts.js");
const SCRIPT: &str = include_str!("report/report.js");

#[derive(Serialize)]
struct Data<'a> {
    report: &'a Report,
    sections: Vec<Section>,
    sweeps: Vec<Sweep>,
    kinds: [&'static str; 3],
    /// The setting in a line.
    brief: String,
    notes: Vec<String>,
    /// The engines, and the device of each.
    engines: [String; 2],
}

/// Renders the report as one HTML page.
///
/// # Errors
/// If the figures cannot be written as JSON.
pub(crate) fn render(report: &Report) -> Result<String> {
    let data = Data {
        report,
        sections: sections(report),
        sweeps: sweeps(report),
        kinds: KINDS,
        brief: notes::setting(report),
        notes: notes::of_report(report),
        engines: [notes::engines(report), notes::devices(report)],
    };
    page("Sateen benchmark", SCRIPT, &data)
}

/// Renders a page whose script draws `data`. Neither the title nor the script may contain the end
/// tag of its element.
///
/// # Errors
/// If the data cannot be written as JSON.
pub fn page(title: &str, script: &str, data: &impl Serialize) -> Result<String> {
    // In a script element only "<" can begin the end tag. JSON never needs a "<".
    let json = serde_json::to_string(data).map_err(Error::from)?.replace('<', "\\u003c");
    // The data are inserted last, because they may contain any text, these marks included.
    Ok(PAGE
        .replacen("TITLE", title, 1)
        .replacen("/*STYLE*/", STYLE, 1)
        .replacen("/*CHARTS*/", CHARTS, 1)
        .replacen("/*SCRIPT*/", script, 1)
        .replacen("/*DATA*/", &json, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{report, run};

    fn embedded(page: &str) -> serde_json::Value {
        let begin = page.find("type=\"application/json\">").unwrap();
        let rest = &page[begin + "type=\"application/json\">".len()..];
        serde_json::from_str(&rest[..rest.find("</script>").unwrap()]).unwrap()
    }

    /// Checks that all elements are closed in order.
    fn assert_well_formed(page: &str) {
        let mut open: Vec<String> = Vec::new();
        let mut rest = page;
        while let Some(at) = rest.find('<') {
            rest = &rest[at + 1..];
            if rest.starts_with('!') {
                continue;
            }
            let end = rest.find('>').unwrap();
            let name: String = rest
                .trim_start_matches('/')
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            if rest.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !["meta", "br", "link"].contains(&name.as_str()) {
                // Scripts and styles are text up to their end tag.
                if name == "script" || name == "style" {
                    rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
                    let close = rest.find('>').unwrap();
                    rest = &rest[close + 1..];
                    continue;
                }
                open.push(name);
            }
            rest = &rest[end..];
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_page_is_well_formed_and_holds_the_figures_of_one_or_two_runs() {
        let one = vec![run("rocksdb", "fillseq", 1, 5.0)];
        let two = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        for runs in [one, two] {
            let count = runs.len();
            let page = render(&report(runs)).unwrap();
            assert_well_formed(&page);
            let data = embedded(&page);
            assert_eq!(data["report"]["runs"].as_array().unwrap().len(), count);
            assert_eq!(
                data["report"]["runs"][0]["measured"]["timeline"].as_array().unwrap().len(),
                4
            );
            assert_eq!(data["sections"][0]["engines"].as_array().unwrap().len(), count);
            let version = data["report"]["runs"][0]["version"].as_str().unwrap();
            assert!(version.ends_with("</script><b>"), "text that looks like markup survives");
        }
    }

    #[test]
    fn a_page_needs_nothing_from_elsewhere() {
        let page = render(&report(vec![run("rocksdb", "fillseq", 1, 5.0)])).unwrap();
        for foreign in ["http://", "https://", "src=", "@import", "url("] {
            let outside = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains(foreign), "{foreign}");
        }
    }
}
