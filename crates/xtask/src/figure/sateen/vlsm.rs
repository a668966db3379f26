//! vLSM on its own terms: each store at parts of the rate that it holds itself, on a larger
//! database than the paper's, in virtual time.

use crate::figure::model::{
    Axis, Check, Figure, Job, Means, Mode, ONE, Panel, Paper, Plan, X, at_number, greatest,
};
use crate::figure::read;

const IO: &str = "RocksDB-IO 64 MB";
const VLSM: &str = "vLSM 8 MB";
const NARROW: &str = "vLSM 4 MB";

/// Percent of the greatest rate.
const PARTS: [u32; 3] = [60, 80, 95];

const PART: Axis = Axis::linear("rate, % of the greatest");

pub(super) static FIGURES: &[Figure] = &[Figure::measured(
    Paper::Sateen,
    "vlsm-rates",
    "vLSM and RocksDB-IO at rates of their own",
    Plan {
        claim: "At 60, 80 and 95 % of what each holds, vLSM's p99 is at most 1/4.8 of RocksDB's \
                without debt, it stalls 60 % less, and its chains are 1/20 as wide.",
        setting: "Virtual time: 350 million records of 1 KB are overwritten in four regions, \
                  behind 500 MB/s each way, with 16 background threads and one client. As fast as \
                  it goes RocksDB-IO serves 28.5 K/s, vLSM 13.2, and with tables of 4 MB 16.8.",
        means: Means::Virtual,
        minutes: 1,
        jobs,
        panels: &[
            Panel::points(PART, Axis::log("p99, ms"), read::p99).titled("p99").checks(&[
                Check::at_least(at_number(IO, 60.0), 4.8, at_number(VLSM, 60.0)).paper(4.8),
                Check::at_least(at_number(IO, 80.0), 4.8, at_number(VLSM, 80.0)).paper(4.8),
                Check::at_least(at_number(IO, 95.0), 4.8, at_number(VLSM, 95.0)).paper(4.8),
            ]),
            Panel::points(PART, Axis::linear("time stalled, %"), read::stalled_percent)
                .titled("stalls")
                .checks(&[
                    Check::at_most(greatest(VLSM), 0.4, greatest(IO)).paper(0.4),
                    Check::at_least(greatest(IO), 10.0, ONE),
                ]),
            Panel::points(PART, Axis::log("widest chain, GB"), read::widest_chain_gb)
                .titled("chains")
                .checks(&[
                    Check::at_least(at_number(IO, 80.0), 20.0, at_number(VLSM, 80.0)).paper(20.0),
                    Check::at_least(at_number(IO, 80.0), 20.0, at_number(NARROW, 80.0))
                        .paper(320.0),
                ]),
            Panel::points(PART, Axis::linear("I/O amplification"), read::io_amplification)
                .titled("I/O amplification"),
        ],
        because: "The widest chain of tables of 8 MB is 1/17 of RocksDB-IO's here, and 1/24 with \
                  records of 200 bytes (vLSM 9)",
    },
)];

fn jobs(mode: Mode) -> Vec<Job> {
    let tables = |policy: &str, megabytes: u32, base: u32| {
        format!(
            "--policy {policy} --set memtable_bytes={megabytes}MiB \
             --set table_bytes={megabytes}MiB --set level_base_bytes={base}MiB"
        )
    };
    // Operations a second that they serve as fast as they go.
    let stores = [
        (IO, tables("rocksdb-io", 64, 256), 28_500),
        (VLSM, tables("vlsm", 8, 64), 13_200),
        (NARROW, tables("vlsm", 4, 32), 16_800),
    ];
    let one = |(series, options, most): (&'static str, String, u32)| {
        PARTS.map(|part| {
            let words = format!(
                "-w ycsb-load --value-size 1000 --db-size 350G --device-bandwidth 500M \
                 --wal buffered --cache 256M -t 1 --set regions=4 --set background_threads=16 \
                 --workers 16 {options} --rate {} -d {}",
                most / 100 * part,
                mode.pick(60, 900)
            );
            Job::sim(series, &words).at(X::At(part.into()))
        })
    };
    stores.into_iter().flat_map(one).collect()
}
