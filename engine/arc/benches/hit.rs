//! What a hit costs, alone and with two threads: `cargo bench -p arc`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark measures real time, and prints it"
)]

use arc::{Access, BlockId, Cache, Kind, Opening, Request};
use std::hint::black_box;
use std::time::Instant;
use units::{Sectors, Txg, VdevId};
use world::Buf;

const BLOCKS: u64 = 16 << 10;
const HITS: u64 = 16 << 10;

fn id(n: u64) -> BlockId {
    BlockId { opening: Opening::default(), vdev: VdevId(0), offset: Sectors(n * 32), birth: Txg(7) }
}

fn hits(cache: &Cache, seed: u64) -> f64 {
    let mut n = seed;
    // The best of many short rounds: on a shared machine the others tell of its neighbours.
    let round = |_| {
        let start = Instant::now();
        for _ in 0..HITS {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            black_box(cache.get(&id((n >> 33) % BLOCKS), Access::Demand));
        }
        start.elapsed().as_nanos() as f64 / HITS as f64
    };
    (0..200).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let cache = Cache::new(1 << 30);
    let start = Instant::now();
    for n in 0..BLOCKS {
        cache.insert(Request::demand(id(n), Kind::Data), Buf::zeroed(512));
    }
    println!("insert       {:6.1} ns", start.elapsed().as_nanos() as f64 / BLOCKS as f64);
    println!("hit          {:6.1} ns", hits(&cache, 1));
    let both = std::thread::scope(|s| {
        let other = s.spawn(|| hits(&cache, 2));
        (hits(&cache, 3), other.join().expect("the other thread counts hits"))
    });
    println!("hit, 2 cores {:6.1} ns, {:.1} ns", both.0, both.1);
    let one = Buf::zeroed(4096);
    let small = Cache::new(32 << 20);
    let start = Instant::now();
    for n in 0..1 << 20 {
        small.insert(Request::demand(id(n), Kind::Data), one.clone());
    }
    println!("insert+evict {:6.1} ns", start.elapsed().as_nanos() as f64 / (1 << 20) as f64);
}
