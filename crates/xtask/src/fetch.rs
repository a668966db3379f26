//! Fetches RocksDB as a shared library for comparisons. The Java artifact `org.rocksdb:rocksdbjni`
//! contains one with the C functions. Maven downloads it from Maven Central.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::chore::Outcome;

const VERSION: &str = "11.8.1";
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

/// Puts the library into `target/peers`, unless it exists there, and prints its path.
pub(crate) fn rocksdb(root: &Path, arguments: &[String]) -> Outcome {
    let version = arguments.first().map_or(VERSION, String::as_str);
    if !is_version(version) {
        return Err(vec![format!("fetch-rocksdb: {version:?} is no version, such as {VERSION}")]);
    }
    println!("{}", library(root, version)?.display());
    Ok(())
}

/// Returns the path of the library of the usual version, and fetches it if it is not there.
pub(crate) fn usual_library(root: &Path) -> Result<PathBuf, Vec<String>> {
    library(root, VERSION)
}

fn library(root: &Path, version: &str) -> Result<PathBuf, Vec<String>> {
    let peers = root.join("target/peers");
    let platform = platform(std::env::consts::ARCH)?;
    let library = peers.join(format!("rocksdb-{version}-{platform}.so"));
    if !library.is_file() {
        fetch(version, platform, &peers, &library)?;
    }
    Ok(library)
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

/// Returns the artifact's name of this machine.
fn platform(architecture: &str) -> Result<&'static str, Vec<String>> {
    match architecture {
        "x86_64" => Ok("linux64"),
        "aarch64" => Ok("linux-aarch64"),
        other => Err(vec![format!("fetch-rocksdb: there is no library for {other}")]),
    }
}

fn fetch(version: &str, platform: &str, peers: &Path, library: &Path) -> Outcome {
    let failed = |what: &str, why: &dyn std::fmt::Display| vec![format!("{what}: {why}")];
    std::fs::create_dir_all(peers).map_err(|error| failed("target/peers", &error))?;
    let maven = Command::new("mvn")
        .args(["-q", "-B", PLUGIN])
        .arg(format!("-Dartifact=org.rocksdb:rocksdbjni:{version}"))
        .arg(format!("-DoutputDirectory={}", peers.display()))
        // Only the path of the library goes to standard output.
        .stdout(Stdio::null())
        .status();
    check("mvn", maven)?;
    let jar = peers.join(format!("rocksdbjni-{version}.jar"));
    let part = PathBuf::from(format!("{}.part", library.display()));
    let file = std::fs::File::create(&part).map_err(|error| failed("target/peers", &error))?;
    let member = format!("librocksdbjni-{platform}.so");
    let unzip = Command::new("unzip").arg("-p").arg(&jar).arg(member).stdout(file).status();
    check("unzip", unzip)?;
    std::fs::rename(&part, library).map_err(|error| failed("target/peers", &error))?;
    std::fs::remove_file(&jar).map_err(|error| failed("target/peers", &error))
}

/// Returns the problem of a program that is not installed or has failed.
fn check(program: &str, status: std::io::Result<std::process::ExitStatus>) -> Outcome {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(vec![format!("{program}: {status}")]),
        Err(error) => Err(vec![format!(
            "{program}: {error}. Install mvn and unzip, or set SATEEN_ROCKSDB_LIB to a library of \
             RocksDB that you have"
        )]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_fetched_is_refused_by_name() {
        assert!(is_version("11.8.1") && !is_version("11.8") && !is_version("../x.y"));
        assert_eq!(platform("x86_64"), Ok("linux64"));
        assert!(platform("riscv64").unwrap_err()[0].contains("riscv64"));
        let missing = check("mvn", Err(std::io::ErrorKind::NotFound.into())).unwrap_err();
        assert!(missing[0].contains("SATEEN_ROCKSDB_LIB"), "{missing:?}");
    }

    #[test]
    fn a_library_that_is_there_is_not_fetched_again() {
        let root = std::env::temp_dir().join(format!("sateen-fetch-{}", std::process::id()));
        let peers = root.join("target/peers");
        std::fs::create_dir_all(&peers).unwrap();
        let platform = platform(std::env::consts::ARCH).unwrap();
        std::fs::write(peers.join(format!("rocksdb-0.0.1-{platform}.so")), "library").unwrap();
        let done = rocksdb(&root, &["0.0.1".to_owned()]);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(done, Ok(()));
    }
}
