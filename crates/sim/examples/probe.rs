fn main() {
    let a: Vec<String> = std::env::args().collect();
    let rate: f64 = a[2].parse().unwrap();
    let mut c = sateen_sim::SimConfig::standard(&a[1], rate).unwrap();
    if let Some(s) = a.get(3) { c.duration_ns = (s.parse::<f64>().unwrap() * 1e9) as u64; }
    if let Ok(b) = std::env::var("BURST") { c.device.burst_ns = b.parse::<u64>().unwrap() * 1_000_000; }
    if let Ok(b) = std::env::var("REQ") { c.policy.read_request_bytes = b.parse::<u64>().unwrap() << 10; }
    if let Ok(b) = std::env::var("THREADS") { c.load.threads = b.parse().unwrap(); }
    if let Ok(b) = std::env::var("SET") { for s in b.split(",") { let (k, v) = s.split_once("=").unwrap(); c.policy.set(k, v).unwrap(); } }
    let t = std::time::Instant::now();
    let r = sateen_sim::Simulation::run(c).unwrap();
    print!("{}", sateen_sim::table(std::slice::from_ref(&r)));
    if std::env::var("V").is_ok() { println!("{:?} {:?}", r.counts, r.level_bytes);
    for c in &r.classes { println!("{c:?}"); } }
    if a.get(4).is_some() { for (i, s) in r.series.iter().enumerate().filter(|x| x.1.p99_ns > 10_000_000 || a.get(5).is_some()) { let m = |x: [u64; 7]| x.map(|b| b / 1000000); println!("R{:?} W{:?}", m(s.read_bytes), m(s.write_bytes)); println!("{i} off {} done {} p50 {} p99 {} max {} L0 {} sealed {} debt {} st {}ms", s.offered, s.done, s.p50_ns/1000, s.p99_ns/1000, s.max_ns/1000, s.level0_runs, s.sealed, s.debt_bytes>>20, s.stalled_ns/1000000); } }
    println!("{:?}", t.elapsed());
}
