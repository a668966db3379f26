//! Fetches RocksDB and Speedb as shared libraries for comparisons. The Java artifact of each
//! contains one with RocksDB's C functions. Maven downloads it from Maven Central.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::chore::Outcome;

const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

/// A store whose library is in a Java artifact.
pub(crate) struct Artifact {
    /// The name of the store in the names of files and commands.
    name: &'static str,
    group: &'static str,
    artifact: &'static str,
    /// The library in the artifact, without its platform.
    library: &'static str,
    /// The usual version.
    version: &'static str,
}

pub(crate) const ROCKSDB: Artifact = Artifact {
    name: "rocksdb",
    group: "org.rocksdb",
    artifact: "rocksdbjni",
    library: "librocksdbjni",
    version: "11.8.1",
};

pub(crate) const SPEEDB: Artifact = Artifact {
    name: "speedb",
    group: "io.github.speedb-io",
    artifact: "speedbjni",
    library: "libspeedbjni",
    version: "2.8.0",
};

/// Puts the library into `target/peers`, unless it exists there, and prints its path.
pub(crate) fn run(root: &Path, artifact: &Artifact, arguments: &[String]) -> Outcome {
    let version = arguments.first().map_or(artifact.version, String::as_str);
    if !is_version(version) {
        let (name, usual) = (artifact.name, artifact.version);
        return Err(vec![format!("fetch-{name}: {version:?} is no version, such as {usual}")]);
    }
    println!("{}", library(root, artifact, version)?.display());
    Ok(())
}

/// Returns the path of RocksDB's library of the usual version, and fetches it if it is not there.
pub(crate) fn usual_library(root: &Path) -> Result<PathBuf, Vec<String>> {
    library(root, &ROCKSDB, ROCKSDB.version)
}

fn library(root: &Path, artifact: &Artifact, version: &str) -> Result<PathBuf, Vec<String>> {
    let peers = root.join("target/peers");
    let platform = platform(artifact, std::env::consts::ARCH)?;
    let library = peers.join(format!("{}-{version}-{platform}.so", artifact.name));
    if !library.is_file() {
        fetch(artifact, version, platform, &peers, &library)?;
    }
    Ok(library)
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

/// Returns the artifact's name of this machine.
fn platform(artifact: &Artifact, architecture: &str) -> Result<&'static str, Vec<String>> {
    match architecture {
        "x86_64" => Ok("linux64"),
        "aarch64" => Ok("linux-aarch64"),
        other => Err(vec![format!("fetch-{}: there is no library for {other}", artifact.name)]),
    }
}

fn fetch(
    artifact: &Artifact,
    version: &str,
    platform: &str,
    peers: &Path,
    library: &Path,
) -> Outcome {
    let failed = |what: &str, why: &dyn std::fmt::Display| vec![format!("{what}: {why}")];
    std::fs::create_dir_all(peers).map_err(|error| failed("target/peers", &error))?;
    let maven = Command::new("mvn")
        .args(["-q", "-B", PLUGIN])
        .arg(format!("-Dartifact={}:{}:{version}", artifact.group, artifact.artifact))
        .arg(format!("-DoutputDirectory={}", peers.display()))
        // Only the path of the library goes to standard output.
        .stdout(Stdio::null())
        .status();
    check("mvn", maven)?;
    let jar = peers.join(format!("{}-{version}.jar", artifact.artifact));
    let part = PathBuf::from(format!("{}.part", library.display()));
    let file = std::fs::File::create(&part).map_err(|error| failed("target/peers", &error))?;
    let member = format!("{}-{platform}.so", artifact.library);
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
        assert_eq!(platform(&ROCKSDB, "x86_64"), Ok("linux64"));
        assert!(platform(&SPEEDB, "riscv64").unwrap_err()[0].contains("speedb: there"));
        let missing = check("mvn", Err(std::io::ErrorKind::NotFound.into())).unwrap_err();
        assert!(missing[0].contains("SATEEN_ROCKSDB_LIB"), "{missing:?}");
    }

    #[test]
    fn a_library_that_is_there_is_not_fetched_again() {
        let root = std::env::temp_dir().join(format!("sateen-fetch-{}", std::process::id()));
        let peers = root.join("target/peers");
        std::fs::create_dir_all(&peers).unwrap();
        let platform = platform(&ROCKSDB, std::env::consts::ARCH).unwrap();
        std::fs::write(peers.join(format!("rocksdb-0.0.1-{platform}.so")), "library").unwrap();
        let done = run(&root, &ROCKSDB, &["0.0.1".to_owned()]);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(done, Ok(()));
    }
}
