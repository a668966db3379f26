//! What a question of `sateen top` does inside the process that answers it: how long each call into
//! the engine takes. Each call gives back the locks that it takes, so its time is a bound on how
//! long it holds one of them.
//!
//! ```sh
//! cargo run --release -p sateen-inspect --example poll
//! ```
//!
//! The database has tables in several levels, and a thread reads and writes 1000 times a second. A
//! second passes between two questions, as with `top`, so that the calls find as much to copy as
//! with it. `poll N KEYS` asks N times (30) a database of KEYS records of 400 bytes (200000).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sateen::explain::History;
use sateen::timeline::Timeline;
use sateen::{Db, Options};

const PERIOD: Duration = Duration::from_secs(1);

fn key(number: u64, keys: u64) -> [u8; 8] {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys).to_be_bytes()
}

/// Reads and writes until `ended`.
fn work(db: &Db, keys: u64, ended: &AtomicBool) -> sateen::Result<()> {
    let mut number = 0;
    while !ended.load(Ordering::Relaxed) {
        number += 1;
        db.put(key(number, keys), [7; 400])?;
        db.get(key(number / 2, keys))?;
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The times of one call.
struct Call {
    name: &'static str,
    nanos: Vec<u128>,
}

impl Call {
    fn new(name: &'static str) -> Call {
        Call { name, nanos: Vec::new() }
    }

    fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let value = call();
        self.nanos.push(began.elapsed().as_nanos());
        value
    }

    fn print(&mut self) {
        self.nanos.sort_unstable();
        let at = |share: usize| {
            let place = self.nanos.len().saturating_sub(1) * share / 100;
            self.nanos.get(place).map_or(0.0, |nanos| *nanos as f64 / 1000.0)
        };
        println!("{:42}{:>10.1}{:>10.1}", self.name, at(50), at(100));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u64>());
    let questions = arguments.next().unwrap_or(Ok(30))?;
    let keys = arguments.next().unwrap_or(Ok(200_000))?.max(1);
    let directory = tempfile::tempdir()?;
    let mut options = Options::default();
    options.column_family.memtable_bytes = 4 << 20;
    let db = Db::open(directory.path(), options)?;
    for number in 0..keys {
        db.put(key(number, keys), [7; 400])?;
    }
    let ended = AtomicBool::new(false);
    let mut calls = [
        Call::new("Db::metrics"),
        Call::new("Db::extend_timeline"),
        Call::new("Db::time_to_stall, sustainable_write_rate"),
        Call::new("History::take (no lock of the engine)"),
    ];
    let [metrics, extend, outlook, take] = &mut calls;
    let (mut timeline, mut history) = (Timeline::default(), History::new(3600));
    let worked = std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(&db, keys, &ended));
        for _ in 0..questions {
            std::thread::sleep(PERIOD);
            std::hint::black_box(metrics.time(|| db.metrics()));
            extend.time(|| db.extend_timeline(&mut timeline));
            take.time(|| history.take(&mut timeline));
            let seconds_kept = timeline.until_ns.saturating_sub(3_000_000_000);
            timeline.forget_before(seconds_kept);
            outlook.time(|| (db.time_to_stall(), db.sustainable_write_rate()));
        }
        ended.store(true, Ordering::Relaxed);
        worker.join()
    });
    worked.map_err(|_| "the worker panicked")??;
    println!("{:42}{:>10}{:>10}", "microseconds", "median", "longest");
    calls.iter_mut().for_each(Call::print);
    Ok(db.close()?)
}
