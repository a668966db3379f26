//! The help in groups, and the command that an error suggests.
//!
//! clap lists subcommands in one group. This module therefore renders the lists of the top level
//! and of `db` itself, from the command tree that parses the arguments.

use std::ffi::OsString;
use std::io::Write;

use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::Cli;
use crate::failure::Failure;

/// All commands, by group, in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Data",
        &[
            "db get",
            "db put",
            "db delete",
            "db delete-range",
            "db scan",
            "db export",
            "db load",
            "db import",
            "rocksdb export",
            "db diff",
        ],
    ),
    (
        "Look",
        &[
            "top",
            "why",
            "log",
            "db stats",
            "db properties",
            "db families",
            "db size",
            "db options",
            "table dump",
            "wal dump",
            "manifest dump",
            "serve-metrics",
            "rocksdb check",
        ],
    ),
    ("Measure", &["demo", "bench", "sim", "db bench-device"]),
    (
        "Maintain",
        &[
            "db check",
            "db scrub",
            "db compact",
            "db checkpoint",
            "db set-option",
            "db backup",
            "db restore",
            "db backups",
            "db create-family",
            "db drop-family",
            "db repair",
            "db destroy",
        ],
    ),
];

/// Words of other tools, and the command that does the same here.
const SYNONYMS: [(&str, &str); 28] = [
    ("set", "db put"),
    ("write", "db put"),
    ("insert", "db put"),
    ("read", "db get"),
    ("del", "db delete"),
    ("rm", "db delete"),
    ("ls", "db scan"),
    ("list", "db scan"),
    ("keys", "db scan"),
    ("batchput", "db load"),
    ("migrate", "db import"),
    ("info", "db stats"),
    ("metrics", "db stats"),
    ("multi_get", "db get"),
    ("compaction_progress_dump", "top"),
    ("device", "db bench-device"),
    ("property", "db properties"),
    ("config", "db options"),
    ("profiles", "db options"),
    ("verify", "db check"),
    ("fsck", "db check"),
    ("snapshot", "db checkpoint"),
    ("remove", "db destroy"),
    ("drop", "db destroy"),
    ("fix", "db repair"),
    ("manifest_dump", "manifest dump"),
    ("dump_wal", "wal dump"),
    ("benchmark", "bench"),
];

/// Verbs of `ldb` that are aliases although clap has none across nouns: `sateen db dump_wal FILE`.
const OF_OTHER_NOUNS: [(&str, &str); 3] = [
    ("manifest_dump", "manifest dump"),
    ("dump_wal", "wal dump"),
    ("compaction_progress_dump", "top --once"),
];

/// Returns the command tree of `args.rs`, with grouped help at the top level and for `db`.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let styles = command.get_styles().clone();
    let (all, of_db) = (groups(&command, "", &styles), groups(&command, "db ", &styles));
    command.help_template(all).mut_subcommand("db", |db| db.help_template(of_db))
}

/// Parses the arguments of the process. Prints help or an error and exits where clap does.
pub(crate) fn parse() -> Cli {
    let mut command = command();
    let parsed = command.try_get_matches_from_mut(translated(std::env::args_os().collect()));
    parsed.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|mut error| {
        suggest(&mut error);
        if error.use_stderr() {
            error.exit();
        }
        print(&error)
    })
}

/// Prints help or the version and ends the program: with a failure if that could not be written, as
/// for any other output.
fn print(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    let code = printed.map_or_else(
        |error| {
            let failure = Failure::from(error);
            if !failure.quiet {
                failure.report(false);
            }
            failure.code
        },
        |()| 0,
    );
    std::process::exit(code.into())
}

/// Replaces a verb of `ldb` behind `db` whose command here has another noun.
fn translated(mut words: Vec<OsString>) -> Vec<OsString> {
    let verb = words.get(1).filter(|noun| *noun == "db").and_then(|_| words.get(2));
    let path = verb.and_then(|verb| OF_OTHER_NOUNS.iter().find(|(name, _)| verb == name));
    if let Some((_, path)) = path {
        words.splice(1..3, path.split(' ').map(OsString::from));
    }
    words
}

/// Returns a help template that lists the commands whose path begins with `prefix`, without the
/// prefix.
fn groups(command: &Command, prefix: &str, styles: &Styles) -> StyledStr {
    use std::fmt::Write;
    let paths = GROUPS.iter().flat_map(|(_, paths)| *paths);
    let names = paths.filter_map(|path| path.strip_prefix(prefix));
    let width = names.map(str::len).max().unwrap_or_default();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = StyledStr::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, paths) in GROUPS {
        let mut lines = paths.iter().filter_map(|path| {
            // The description of a noun with one verb is the noun's: `table dump` prints a file of
            // tables.
            let noun = find(command, path.split(' ').next()?)?;
            let single = noun.get_subcommands().count() == 1;
            let described = if single { noun } else { find(command, path)? };
            Some((path.strip_prefix(prefix)?, described.get_about()?.to_string()))
        });
        let Some(first) = lines.next() else { continue };
        let _infallible = writeln!(text, "\n{header}{group}:{header:#}");
        for (name, about) in std::iter::once(first).chain(lines) {
            let _infallible = writeln!(text, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _infallible = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    text
}

fn find<'a>(command: &'a Command, path: &str) -> Option<&'a Command> {
    path.split(' ').try_fold(command, |command, name| command.find_subcommand(name))
}

/// Adds the full names of similar commands to an error about an unknown command.
fn suggest(error: &mut Error) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let similar = similar(word);
    if word.starts_with("complet") {
        error.remove(ContextKind::SuggestedSubcommand);
        let text = "`cargo xtask man DIR` writes the completions for bash, zsh and fish".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text]));
        return;
    }
    if similar.is_empty() {
        return;
    }
    error.remove(ContextKind::SuggestedSubcommand);
    let commands: Vec<_> = similar.iter().map(|path| format!("`sateen {path}`")).collect();
    let text = StyledStr::from(format!("did you mean {}?", commands.join(" or ")));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text]));
}

/// Returns the paths of the commands named `word`; else of those that do what `word` does in other
/// tools; else of those with a similar name.
fn similar(word: &str) -> Vec<String> {
    let command = command();
    let paths = || GROUPS.iter().flat_map(|(_, paths)| *paths);
    let named = |path: &&&str| {
        let name = path.rsplit(' ').next();
        let aliases = find(&command, path).map(|found| found.get_all_aliases().collect::<Vec<_>>());
        name == Some(word) || aliases.is_some_and(|aliases| aliases.contains(&word))
    };
    let exact: Vec<_> = paths().filter(named).map(|path| (*path).to_owned()).collect();
    if !exact.is_empty() {
        return exact;
    }
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == word);
    if let Some((_, path)) = synonym {
        return vec![(*path).to_owned()];
    }
    // clap knows which names are similar. It is asked at the level of each noun.
    let nouns = command.get_subcommands().map(Command::get_name);
    // `rocksdb` has one verb, which would be near to too many words.
    let nouns = nouns.filter(|noun| *noun != "rocksdb");
    nouns.filter_map(|noun| most_similar(&command, noun, word)).collect()
}

/// Returns the verb of `noun` with the most similar name, which clap lists last.
fn most_similar(command: &Command, noun: &str, word: &str) -> Option<String> {
    let error = command.clone().try_get_matches_from(["sateen", noun, word]).err()?;
    match error.get(ContextKind::SuggestedSubcommand)? {
        // A name that only begins alike is another word.
        ContextValue::Strings(names) => {
            let name = names.last().filter(|name| name.len() <= 2 * word.len())?;
            Some(format!("{noun} {name}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
