//! The chores of the repository, run as `cargo xtask <chore>`. Every commit must pass them. A chore
//! prints each problem and its place, and exits with 1 if there is one.

mod aarch64;
mod book;
mod chore;
mod deny;
mod fetch;
mod figure;
mod markdown;
mod models;
mod pages;
mod rel;
mod sbom;
mod semver;
mod source;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use chore::{Outcome, cargo, root, step};

const HELP: &str = "\
The chores of the Sateen repository.

Usage: cargo xtask <chore>

Chores:
  test    everything a change must pass: tidy, deny, packages, fmt, clippy, all tests and
          models, and the docs
  ci      the same
  tidy    the rules of the source that no compiler checks (ARCHITECTURE.md, STYLE.md), that the
          patches of the planted bugs apply, and that the tables of figures are up to date
          --fix breaks comments that are too long
  deny    licences, sources and banned crates of the dependencies (deny.toml)
  package pack each crate that is published, without building it from its package
  sbom [FILE]
          write what the command and the C library are made of (CycloneDX)
  semver  compare the public API with its baseline, if cargo-semver-checks is installed
  lint    fmt and clippy
  man DIR write the man pages of the command and its completions for bash, zsh and fish;
          words after DIR go to cargo, for instance --release
  figure  every figure of the papers: `cargo xtask figure help`
  fetch-rocksdb [VERSION]
          fetch RocksDB's library (11.8.1) into target/peers, and print its path
  fetch-speedb [VERSION]
          the same for Speedb's (2.8.0), which has RocksDB's C functions
  models  the interleavings that loom tries on the memtable
  pages   write the pages with charts of bench, sim and demo by short runs, load each in Chromium
          as wide as a phone and as a desktop, and expect no error and no overflow;
          pages FILE … loads these
  book    check the links of all Markdown pages and build the book of docs/ into target/book, if
          mdbook is installed
  aarch64 clippy for aarch64, some tests there under QEMU, and the error of unsupported systems
  rel     the suites of the reliability programme: `cargo xtask rel help`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let done = match arguments.first().map(String::as_str) {
        Some("test" | "ci") => test(&root),
        Some("tidy") if arguments.iter().any(|word| word == "--fix") => {
            step("tidy --fix", || tidy(&root, tidy::fix))
        }
        Some("tidy") => step("tidy", || tidy(&root, tidy::run)),
        Some("deny") => step("deny", || deny::run(&root)),
        Some("package") => package(&root),
        Some("sbom") => sbom::run(&root, arguments.get(1..).unwrap_or_default()),
        Some("semver") => semver::run(&root),
        Some("lint") => lint(&root),
        Some("fetch-rocksdb") => {
            fetch::run(&root, &fetch::ROCKSDB, arguments.get(1..).unwrap_or_default())
        }
        Some("fetch-speedb") => {
            fetch::run(&root, &fetch::SPEEDB, arguments.get(1..).unwrap_or_default())
        }
        Some("figure") => figure::run(&root, arguments.get(1..).unwrap_or_default()),
        Some("models") => models::run(&root),
        Some("man") => man(&root, arguments.get(1..).unwrap_or_default()),
        Some("pages") => pages::run(&root, arguments.get(1..).unwrap_or_default()),
        Some("book") => book::run(&root, arguments.get(1..).unwrap_or_default()),
        Some("aarch64") => aarch64::run(&root),
        Some("rel") => rel::run(&root, arguments.get(1..).unwrap_or_default()),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => {
            eprintln!("unknown chore {other:?}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            eprintln!("{} problem(s)", problems.len());
            ExitCode::FAILURE
        }
    }
}

/// Checks the rules of the source with `rules`, that the planted bugs can be planted in it, and
/// that the tables of figures are those of the catalogue.
fn tidy(root: &Path, rules: fn(&Path) -> Outcome) -> Outcome {
    let outcomes = [rules(root), rel::planted_bugs(root), figure::check_tables(root)];
    let problems: Vec<_> = outcomes.into_iter().filter_map(Result::err).flatten().collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn test(root: &Path) -> Outcome {
    step("tidy", || tidy(root, tidy::run))?;
    step("deny", || deny::run(root))?;
    package(root)?;
    lint(root)?;
    cargo(root, &["test", "--workspace", "--quiet"], &[])?;
    models::run(root)?;
    cargo(root, &["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", "-Dwarnings")])
}

/// Writes man pages and completions. An example of the command's crate does it, so that neither the
/// command nor this crate is built with what generates them.
fn man(root: &Path, arguments: &[String]) -> Outcome {
    let Some((directory, options)) = arguments.split_first() else {
        return Err(vec!["man: which directory? cargo xtask man DIR".to_owned()]);
    };
    let directory = std::path::absolute(directory).map_err(|error| vec![error.to_string()])?;
    let directory = directory.to_string_lossy();
    let mut words = vec!["run", "--quiet", "--package", "sateen-cli", "--example", "man"];
    words.extend(options.iter().map(String::as_str));
    words.extend(["--", &*directory]);
    cargo(root, &words, &[])
}

/// Packs the crates. A crate that lacks something for publication is an error. The registry is not
/// asked.
fn package(root: &Path) -> Outcome {
    let words = "package --workspace --exclude xtask --no-verify --allow-dirty --offline --quiet";
    cargo(root, &words.split(' ').collect::<Vec<_>>(), &[])
}

fn lint(root: &Path) -> Outcome {
    cargo(root, &["fmt", "--all", "--check"], &[])?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-Dwarnings"];
    cargo(root, &clippy, &[])
}
