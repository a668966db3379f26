//! Writes what the shipped programs are made of (CycloneDX 1.5, JSON), from `cargo metadata` and
//! the checksums of Cargo.lock.
//!
//! 1. [`reached`] walks from the shipped crates through dependencies that are built into them or
//!    run at their build. What only tests use is absent.
//! 2. [`document`] makes a component of each crate that was reached.
//!
//! What must stay true: the same sources give the same bytes. There is no time and no random number
//! in the document.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::chore::Outcome;
use crate::deny;

/// The crates whose programs and libraries are given to others.
const SHIPPED: [&str; 2] = ["sateen-cli", "sateen-capi"];

/// Writes the document to the file that `arguments` name, or prints it.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Outcome {
    let lock = fs::read_to_string(root.join("Cargo.lock"));
    let lock = lock.map_err(|error| vec![format!("Cargo.lock: {error}")])?;
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = deny::metadata(root, &["--filter-platform", &host])?;
    let document = document(&metadata, &checksums(&lock))?;
    let text = format!("{document:#}\n");
    match arguments {
        [] => print!("{text}"),
        [file] => {
            fs::write(file, text).map_err(|error| vec![format!("{file}: {error}")])?;
        }
        _ => return Err(vec!["sbom: one file at most".to_owned()]),
    }
    Ok(())
}

/// Returns the SHA-256 of each crate of the registry, by its name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |part: &str, name: &str| {
        let mut lines = part.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    let checksum = |part: &str| {
        Some(((field(part, "name")?, field(part, "version")?), field(part, "checksum")?))
    };
    packages.filter_map(checksum).collect()
}

fn document(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Value, Vec<String>> {
    let packages = list(&metadata["packages"]);
    let by_id: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let roots: Vec<&str> = by_id
        .iter()
        .filter(|(_, package)| SHIPPED.iter().any(|name| package["name"] == *name))
        .map(|(id, _)| *id)
        .collect();
    if roots.len() != SHIPPED.len() {
        return Err(vec![format!("cargo metadata does not list {SHIPPED:?}")]);
    }
    let version = roots.iter().find_map(|id| by_id.get(id)?["version"].as_str()).unwrap_or("0");
    let needed = reached(metadata, &roots);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (id, below) in &needed {
        let Some(package) = by_id.get(id.as_str()) else { continue };
        components.push(component(package, checksums));
        let below = below.iter().filter_map(|id| Some(purl(by_id.get(id.as_str())?)));
        dependencies.push(json!({ "ref": purl(package), "dependsOn": below.collect::<Vec<_>>() }));
    }
    let shipped: Vec<_> = roots.iter().filter_map(|id| Some(purl(by_id.get(id)?))).collect();
    dependencies.push(json!({ "ref": "sateen", "dependsOn": shipped }));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": "sateen", "name": "sateen", "version": version,
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Returns the crates that `roots` need, with those that each needs itself.
fn reached(metadata: &Value, roots: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let nodes = list(&metadata["resolve"]["nodes"]);
    let below = |id: &str| -> BTreeSet<String> {
        let node = nodes.iter().find(|node| node["id"] == id);
        let all = node.map(|node| list(&node["deps"])).unwrap_or_default();
        let shipped = all.iter().filter(|dependency| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev")
        });
        shipped.filter_map(|dependency| Some(dependency["pkg"].as_str()?.to_owned())).collect()
    };
    let mut found = BTreeMap::new();
    let mut left: Vec<String> = roots.iter().map(|id| (*id).to_owned()).collect();
    while let Some(id) = left.pop() {
        if found.contains_key(&id) {
            continue;
        }
        let needs = below(&id);
        left.extend(needs.iter().cloned());
        found.insert(id, needs);
    }
    found
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
        // An old way to write OR is no SPDX expression.
        "licenses": [{ "expression": text("license").replace('/', " OR ") }],
    });
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Returns the name of a crate that is the same everywhere.
fn purl(package: &Value) -> String {
    let text = |name: &str| package[name].as_str().unwrap_or_default();
    // A plus would be read as a space.
    format!("pkg:cargo/{}@{}", text("name"), text("version").replace('+', "%2B"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_is_listed_with_its_hash_and_what_only_tests_use_is_not() {
        let root = crate::chore::root();
        let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
        let metadata = deny::metadata(&root, &["--filter-platform", "x86_64-unknown-linux-gnu"]);
        let document = document(&metadata.unwrap(), &checksums(&lock)).unwrap();
        let components = list(&document["components"]);
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        for ours in ["sateen", "sateen-control", "sateen-store", "sateen-inspect", "sateen-capi"] {
            assert!(named(ours).unwrap()["hashes"].is_null(), "{ours} comes from here");
        }
        let theirs = named("zstd-sys").unwrap();
        assert_eq!(theirs["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert!(theirs["purl"].as_str().unwrap().contains("%2B"), "{theirs}");
        for test in ["proptest", "criterion", "loom", "xtask"] {
            assert!(named(test).is_none(), "{test}");
        }
        // Each reference is to a component.
        let known: BTreeSet<_> =
            components.iter().filter_map(|component| component["bom-ref"].as_str()).collect();
        assert_eq!(known.len(), components.len());
        for dependency in list(&document["dependencies"]) {
            for below in list(&dependency["dependsOn"]) {
                assert!(known.contains(below.as_str().unwrap()), "{below}");
            }
        }
    }
}
