use sateen_bench::*;
fn main() {
    let c = StoreConfig {
        memtable_bytes: 16 << 20,
        memtables: 2,
        block_cache_bytes: 64 << 20,
        bloom_bits: 10.0,
        compression: Compression::None,
        wal: Wal::Buffered,
        direct: true,
        jobs: 4,
        profile: None,
        set: vec![],
        peer_options: None,
        peer_cache: PeerCache::HyperClock,
    };
    let dir = std::path::Path::new("/tmp/m/db");
    let _ = std::fs::remove_dir_all(dir);
    let s = Engine::RocksDb { library: "/tmp/m/so/librocksdbjni-linux64.so".into() }
        .open(dir, &c)
        .unwrap();
    let mut cl = s.client();
    let v = vec![7u8; 1000];
    let t = std::time::Instant::now();
    for i in 0..400_000u64 {
        cl.put(&(i.wrapping_mul(0x9e3779b97f4a7c15)).to_be_bytes(), &v).unwrap();
    }
    println!("{:?}", t.elapsed());
    let mut out = Vec::new();
    println!("{:?} {}", cl.get(&0u64.to_be_bytes(), &mut out), out.len());
    println!(
        "{:?} {:?} {:?}",
        cl.get(b"nope", &mut out),
        cl.scan(b"", 50),
        cl.multi_get(&[&0u64.to_be_bytes(), b"x"])
    );
    cl.write_batch(&[(b"a", Some(b"b")), (b"c", None)]).unwrap();
    println!("{:?}", cl.get(b"a", &mut out));
    println!("{:?}", s.counters());
    s.flush().unwrap();
    s.wait_idle().unwrap();
    println!("{:?}", s.counters());
}
