//! Writes the man pages and shell completions of `sateen`: `cargo xtask man DIR` runs it.
//!
//! All files are in DIR itself: `sateen.1`, `sateen-db-get.1`, …; `sateen.bash`, `_sateen` (zsh)
//! and `sateen.fish`. `scripts/release` packages them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_complete::Shell;
use clap_mangen::Man;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: cargo xtask man DIR");
        return ExitCode::from(2);
    };
    match generate(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn generate(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut sateen_cli::command(), "sateen", directory)?;
    }
    // The command `help` would get pages of its own for all commands.
    let mut command = sateen_cli::command().disable_help_subcommand(true);
    command.build();
    pages(command, directory)
}

/// Writes the page of a command and those of the commands below it.
fn pages(command: clap::Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below.clone(), directory)?;
    }
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    // clap_mangen names the section of notes and examples EXTRA.
    let page = String::from_utf8_lossy(&page).replace(".SH EXTRA\n", ".SH NOTES\n");
    std::fs::write(directory.join(man.get_filename()), page)
}
