//! `sateen why`: the cause of the last slow seconds, from the process that has the database open.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sateen_inspect::Client;
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::store;

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Explain the database in this directory
    #[arg(required_unless_present = "socket")]
    db: Option<PathBuf>,
    /// Ask this socket instead of the one in a directory
    #[arg(long, value_name = "PATH", conflicts_with = "db")]
    socket: Option<PathBuf>,
    /// Look back this far: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = period)]
    since: Duration,
    /// Print the causes and their figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &Why, output: &mut dyn Write) -> Result<()> {
    if let (Some(db), None) = (&arguments.db, &arguments.socket) {
        store::refuse_missing(db)?;
    }
    let client = client(arguments.db.as_ref(), arguments.socket.as_ref());
    let report =
        client.explain(arguments.since).map_err(|error| Failure::failed(error.to_string()))?;
    if arguments.json {
        return Ok(writeln!(output, "{}", json!(report))?);
    }
    Ok(output.write_all(report.text.as_bytes())?)
}

/// Returns who answers for a database or a socket.
pub(crate) fn client(db: Option<&PathBuf>, socket: Option<&PathBuf>) -> Client {
    match (db, socket) {
        (_, Some(socket)) => Client::of_socket(socket),
        (Some(db), None) => Client::of_database(db),
        (None, None) => Client::of_database("."),
    }
}

/// Reads a time such as `90s`, `10m` or `1h`.
fn period(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("{text} is no time such as 90s, 10m or 1h");
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 's')) => (text.get(..at), 1),
        Some((at, 'm')) => (text.get(..at), 60),
        Some((at, 'h')) => (text.get(..at), 3600),
        _ => (Some(text), 1),
    };
    let number = digits.and_then(|digits| digits.parse::<u64>().ok()).ok_or_else(wrong)?;
    Ok(Duration::from_secs(number.checked_mul(unit).ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("1h", 3600), ("0s", 0)] {
            assert_eq!(period(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "m", "-1s", "1.5h", "1d", "99999999999999999999h", "9999999999999999999h", "1µ"]
        {
            assert!(period(text).is_err(), "{text}");
        }
    }
}
