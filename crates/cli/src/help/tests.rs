//! Checks of the help: lines begin with verbs, groups are complete, examples parse.

use super::*;

/// Words that a line of help may begin with.
const VERBS: &[&str] = &[
    "Add",
    "Allow",
    "Apply",
    "Ask",
    "Back",
    "Begin",
    "Change",
    "Check",
    "Choose",
    "Compact",
    "Compare",
    "Compress",
    "Confirm",
    "Copy",
    "Create",
    "Delete",
    "Destroy",
    "Divide",
    "Drop",
    "End",
    "Explain",
    "Export",
    "Give",
    "Import",
    "Inspect",
    "Keep",
    "Let",
    "Limit",
    "List",
    "Listen",
    "Load",
    "Look",
    "Make",
    "Measure",
    "Name",
    "Offer",
    "Open",
    "Overwrite",
    "Pause",
    "Print",
    "Put",
    "Read",
    "Repair",
    "Repeat",
    "Replay",
    "Report",
    "Restore",
    "Rewrite",
    "Run",
    "Say",
    "Seed",
    "Serve",
    "Set",
    "Show",
    "Simulate",
    "Skip",
    "Start",
    "Stop",
    "Store",
    "Sync",
    "Tell",
    "Use",
    "Verify",
    "Write",
];

/// Returns all commands but the hidden ones, with their paths.
fn all(command: &Command) -> Vec<(String, Command)> {
    fn visit(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            visit(below, &format!("{path} {}", below.get_name()), found);
        }
    }
    let mut found = Vec::new();
    visit(command, "sateen", &mut found);
    found
}

fn assert_verb(what: &str, help: Option<&StyledStr>) {
    let help = help.map(ToString::to_string).unwrap_or_default();
    let word = help.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    assert!(VERBS.contains(&word), "{what}: {help:?} does not begin with a verb");
}

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn each_line_of_help_begins_with_a_verb() {
    for (path, command) in all(&command()) {
        assert_verb(&path, command.get_about());
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            assert_verb(&format!("{path} {}", arg.get_id()), arg.get_help());
        }
    }
}

#[test]
fn each_command_is_in_one_group_and_fits_a_terminal() {
    let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, paths)| *paths).collect();
    for (path, command) in all(&command()) {
        let Some(path) = path.strip_prefix("sateen ") else { continue };
        let times = grouped.iter().filter(|grouped| ***grouped == path).count();
        assert_eq!(times, usize::from(!command.has_subcommands()), "{path}");
    }
    let command = command();
    assert!(grouped.iter().all(|path| find(&command, path).is_some()), "{grouped:?}");
    let help = command.clone().render_help().to_string();
    let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert!(help.contains("Maintain:\n  db check"), "{help}");
}

#[test]
fn each_help_ends_with_examples_that_parse() {
    for (path, command) in all(&command()) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, examples) = help.rsplit_once("Examples:\n").unwrap_or_else(|| panic!("{path}"));
        let mut count = 0;
        for line in examples.lines() {
            assert!(line.starts_with("  "), "{path}: examples come last: {line}");
            // A line may pipe into the command or end with a remark.
            let Some(at) = line.find("sateen ") else { continue };
            let words = words(line[at..].split("    ").next().unwrap_or_default());
            if let Err(error) = super::command().try_get_matches_from(&words) {
                panic!("{line}: {error}");
            }
            assert!(
                format!("{} ", words.join(" ")).starts_with(&format!("{path} "))
                    || path.ends_with(" dump"),
                "{path}: {line}"
            );
            count += 1;
        }
        assert!(count > 0, "{path}");
    }
}

/// Splits a line like a shell, with quotes and without redirections.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let redirection = words.iter().position(|word| word == "<" || word == ">");
    words.truncate(redirection.unwrap_or(words.len()));
    words
}

#[test]
fn an_unknown_command_suggests_whole_ones() {
    for (line, says) in [
        ("sateen get library k", "did you mean `sateen db get`?"),
        ("sateen chekpoint", "did you mean `sateen db checkpoint`?"),
        ("sateen fsck library", "did you mean `sateen db check`?"),
        ("sateen list_column_families x", "did you mean `sateen db families`?"),
        ("sateen db demo", "did you mean `sateen demo`?"),
        ("sateen backup library x", "did you mean `sateen db backup`?"),
        ("sateen wal get x", "did you mean `sateen db get`?"),
        ("sateen benhc", "'bench'"),
        ("sateen completions", "`cargo xtask man DIR` writes the completions"),
        ("sateen db gett library k", "did you mean `sateen db get`?"),
    ] {
        let mut error = command().try_get_matches_from(line.split(' ')).unwrap_err();
        suggest(&mut error);
        let text = error.to_string();
        assert!(text.contains(says), "{line}: {text}");
    }
    let mut error = command().try_get_matches_from(["sateen", "zzzzz"]).unwrap_err();
    suggest(&mut error);
    assert!(!error.to_string().contains("did you mean"), "{error}");
}

#[test]
fn json_is_accepted_before_and_behind_the_verb() {
    for line in ["sateen db --json get a b", "sateen db get a b --json"] {
        let matches = command().try_get_matches_from(line.split(' ')).unwrap();
        assert!(Cli::from_arg_matches(&matches).unwrap().json(), "{line}");
    }
}

#[test]
fn verbs_of_ldb_are_aliases() {
    let parsed = |line: &str| {
        let words = translated(line.split(' ').map(OsString::from).collect());
        let matches =
            command().try_get_matches_from(words).unwrap_or_else(|e| panic!("{line}: {e}"));
        format!("{:?}", Cli::from_arg_matches(&matches).unwrap())
    };
    for (ldb, own) in [
        ("sateen db idump library --max_keys 3", "sateen db scan library --limit 3"),
        ("sateen db dump library --hex", "sateen db scan library --hex"),
        ("sateen db get library k --column_family users", "sateen db get library k --cf users"),
        ("sateen db checkconsistency library", "sateen db check library"),
        ("sateen db list_column_families library", "sateen db families library"),
        ("sateen db create_column_family library a", "sateen db create-family library a"),
        ("sateen db drop_column_family library a", "sateen db drop-family library a"),
        ("sateen db get_property library p", "sateen db properties library p"),
        ("sateen db deleterange library a b", "sateen db delete-range library a b"),
        ("sateen db approxsize library a b", "sateen db size library a b"),
        ("sateen db list_live_files_metadata library", "sateen db stats library"),
        ("sateen db dump_live_files library", "sateen db stats library"),
        ("sateen db manifest_dump file --json", "sateen manifest dump file --json"),
        ("sateen db dump_wal file --limit 3", "sateen wal dump file --limit 3"),
        ("sateen db compaction_progress_dump library", "sateen top --once library"),
    ] {
        assert_eq!(parsed(ldb), parsed(own));
        assert_ne!(parsed(ldb), parsed("sateen db get library k"));
    }
}
