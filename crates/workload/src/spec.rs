//! Workloads by name: db_bench's, YCSB's, and those of SILK's evaluation.

use crate::{ArrivalSpec, KeyChoice, Rng, ValueSize};

/// The share of each operation in a mix. Only the ratios of the numbers matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Point reads.
    pub read: u32,
    /// Writes to keys of the loaded range.
    pub update: u32,
    /// Writes of new keys after the loaded range.
    pub insert: u32,
    /// Range scans.
    pub scan: u32,
    /// Reads followed by a write of the same key.
    pub read_modify_write: u32,
    /// Deletions.
    pub delete: u32,
}

impl Mix {
    pub(crate) fn parts(&self) -> [u32; 6] {
        [self.read, self.update, self.insert, self.scan, self.read_modify_write, self.delete]
    }

    /// True if some operation changes the database.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.update + self.insert + self.read_modify_write + self.delete > 0
    }
}

/// How many entries a scan reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScanLength {
    /// Always the same.
    Fixed(u32),
    /// Uniform between the two, both included.
    Uniform(u32, u32),
    /// Mixgraph's published generalized Pareto (k = 2.517, sigma = 14.236), at most 10 000.
    Mixgraph,
}

impl ScanLength {
    /// Draws one length.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match *self {
            ScanLength::Fixed(entries) => entries,
            ScanLength::Uniform(low, high) => ValueSize::Uniform(low, high).draw(rng),
            ScanLength::Mixgraph => {
                (crate::values::pareto(rng.unit_open(), 2.517, 14.236) as u32).clamp(1, 10_000)
            }
        }
    }
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name, in lower case.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The operations.
    pub mix: Mix,
    /// The keys.
    pub keys: KeyChoice,
    /// The sizes of values, if the workload prescribes them.
    pub sizes: Option<ValueSize>,
    /// The lengths of scans, if the workload prescribes them.
    pub scan: Option<ScanLength>,
    /// Keys that a read asks for in one call.
    pub reads_together: u32,
    /// When operations arrive.
    pub arrivals: ArrivalSpec,
    /// True if reads look for missing keys, which lie between existing ones.
    pub missing: bool,
    /// True if one more thread writes all the time while the others work.
    pub extra_writer: bool,
    /// True if the workload starts on an empty database. The others start on a loaded one.
    pub fills: bool,
}

/// An error: no workload has this name.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownWorkload(pub String);

impl std::fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no workload is named {:?}; there are: {}", self.0, WORKLOAD_NAMES.join(", "))
    }
}

impl std::error::Error for UnknownWorkload {}

/// The names that [`Spec::named`] knows. (`replay` is not among them: it needs a file.)
pub const WORKLOAD_NAMES: &[&str] = &[
    "fillseq",
    "fillrandom",
    "overwrite",
    "readrandom",
    "readmissing",
    "seekrandom",
    "readwhilewriting",
    "mixgraph",
    "ycsb-load",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "bursts",
    "nutanix",
];

const ZIPFIAN: KeyChoice = KeyChoice::Zipfian { theta: 0.99 };
const LATEST: KeyChoice = KeyChoice::Latest { theta: 0.99 };

impl Spec {
    /// Returns the workload with this name, in upper or lower case.
    ///
    /// # Errors
    /// If no workload has this name.
    pub fn named(name: &str) -> Result<Spec, UnknownWorkload> {
        let lower = name.to_ascii_lowercase();
        let known = WORKLOAD_NAMES.iter().find(|known| **known == lower);
        let known = *known.ok_or_else(|| UnknownWorkload(name.to_owned()))?;
        Ok(match known {
            "mixgraph" | "bursts" | "nutanix" => Spec::composite(known),
            _ if known.starts_with("ycsb") => Spec::ycsb(known),
            _ => Spec::db_bench(known),
        })
    }

    fn plain(name: &'static str, about: &'static str, mix: Mix, keys: KeyChoice) -> Spec {
        Spec {
            name,
            about,
            mix,
            keys,
            sizes: None,
            scan: None,
            reads_together: 1,
            arrivals: ArrivalSpec::Closed,
            missing: false,
            extra_writer: false,
            fills: false,
        }
    }

    fn db_bench(name: &'static str) -> Spec {
        let read = Mix { read: 1, ..Mix::default() };
        let update = Mix { update: 1, ..Mix::default() };
        let scan = Mix { scan: 1, ..Mix::default() };
        let plain = Spec::plain;
        match name {
            "fillseq" => Spec {
                fills: true,
                ..plain(name, "write keys in order", update, KeyChoice::Sequential)
            },
            "fillrandom" => Spec {
                fills: true,
                ..plain(name, "write keys at random", update, KeyChoice::Uniform)
            },
            "overwrite" => {
                plain(name, "overwrite loaded keys at random", update, KeyChoice::Uniform)
            }
            "readmissing" => Spec {
                missing: true,
                ..plain(name, "read keys that do not exist", read, KeyChoice::Uniform)
            },
            "seekrandom" => plain(name, "seek, then read the next", scan, KeyChoice::Uniform),
            "readwhilewriting" => Spec {
                extra_writer: true,
                ..plain(name, "read while one more thread writes", read, KeyChoice::Uniform)
            },
            _ => plain(name, "read keys at random", read, KeyChoice::Uniform),
        }
    }

    fn ycsb(name: &'static str) -> Spec {
        let mix = |read, update, insert, scan, read_modify_write| Mix {
            read,
            update,
            insert,
            scan,
            read_modify_write,
            delete: 0,
        };
        let plain = Spec::plain;
        match name {
            "ycsb-load" => Spec {
                fills: true,
                ..plain(name, "insert every key once", mix(0, 1, 0, 0, 0), KeyChoice::Shuffled)
            },
            "ycsb-a" => plain(name, "half reads, half updates", mix(50, 50, 0, 0, 0), ZIPFIAN),
            "ycsb-b" => plain(name, "95 % reads, 5 % updates", mix(95, 5, 0, 0, 0), ZIPFIAN),
            "ycsb-d" => {
                plain(name, "reads of the latest, 5 % inserts", mix(95, 0, 5, 0, 0), LATEST)
            }
            "ycsb-e" => Spec {
                scan: Some(ScanLength::Uniform(1, 100)),
                ..plain(name, "95 % short scans, 5 % inserts", mix(0, 0, 5, 95, 0), ZIPFIAN)
            },
            "ycsb-f" => {
                plain(name, "half reads, half read-modify-writes", mix(50, 0, 0, 0, 50), ZIPFIAN)
            }
            _ => plain(name, "reads only", mix(1, 0, 0, 0, 0), ZIPFIAN),
        }
    }

    fn composite(name: &'static str) -> Spec {
        let mix = |read, update, scan| Mix { read, update, scan, ..Mix::default() };
        let plain = Spec::plain;
        match name {
            "mixgraph" => Spec {
                sizes: Some(ValueSize::MIXGRAPH),
                scan: Some(ScanLength::Mixgraph),
                arrivals: ArrivalSpec::Sine {
                    mean: 4_500.0,
                    amplitude: 1_000.0,
                    angular: 0.000_073,
                },
                ..plain(name, "a social graph's metadata", mix(85, 14, 1), KeyChoice::Mixgraph)
            },
            "nutanix" => Spec {
                sizes: Some(ValueSize::Nutanix),
                scan: Some(ScanLength::Uniform(10, 90)),
                arrivals: ArrivalSpec::Nutanix { peak_rate: 20_000.0, valley_rate: 500.0 },
                ..plain(name, "a metadata store's bursts", mix(41, 57, 2), KeyChoice::Uniform)
            },
            _ => Spec {
                arrivals: ArrivalSpec::Bursts {
                    peak_rate: 40_000.0,
                    valley_rate: 10_000.0,
                    peak_seconds: 10.0,
                    valley_seconds: 10.0,
                },
                ..plain(name, "peaks and valleys", mix(50, 50, 0), KeyChoice::Uniform)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_the_workload_of_that_name() {
        for name in WORKLOAD_NAMES {
            assert_eq!(Spec::named(&name.to_uppercase()).unwrap().name, *name);
        }
        let error = Spec::named("fillrandm").unwrap_err().to_string();
        assert!(error.contains("fillrandm") && error.contains("fillrandom"), "{error}");
    }

    #[test]
    fn the_published_parameters_stand() {
        let nutanix = Spec::named("nutanix").unwrap();
        assert_eq!((nutanix.mix.update, nutanix.mix.read, nutanix.mix.scan), (57, 41, 2));
        let mixgraph = Spec::named("mixgraph").unwrap();
        assert_eq!((mixgraph.mix.read, mixgraph.mix.update, mixgraph.mix.scan), (85, 14, 1));
        assert!(!Spec::named("ycsb-c").unwrap().mix.writes());
        assert!(Spec::named("ycsb-d").unwrap().mix.writes());
        assert!(Spec::named("fillseq").unwrap().fills && !Spec::named("overwrite").unwrap().fills);
    }
}
