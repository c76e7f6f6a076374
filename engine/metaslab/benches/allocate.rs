//! What allocating and freeing cost: `cargo bench -p metaslab`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark measures real time, and prints it"
)]

use metaslab::{Class, MapInfo, MapWrite, Placement, Request, Space, SpaceLog, VdevSpec};
use ondisk::{Dva, SpaceMapPhys};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use units::{Asize, ObjectId, Psize, Result, Txg, VdevId};
use world::Pending;

/// Takes everything and keeps nothing.
struct Nowhere;

fn ready<T: Send + 'static>(value: T) -> Pending<T> {
    Box::pin(std::future::ready(value))
}

impl SpaceLog for Nowhere {
    fn array(&self, _: VdevId) -> Pending<Result<Vec<ObjectId>>> {
        ready(Ok(Vec::new()))
    }

    fn info(&self, map: ObjectId) -> Pending<Result<MapInfo>> {
        self.create(VdevId(0), map.0, Txg(0))
    }

    fn read(&self, _: ObjectId, length: u64) -> Pending<Result<Vec<u8>>> {
        ready(Ok(vec![0; length as usize]))
    }

    fn create(&self, _: VdevId, index: u64, _: Txg) -> Pending<Result<MapInfo>> {
        let header = SpaceMapPhys { histogram: Some([0; 32]), ..SpaceMapPhys::default() };
        ready(Ok(MapInfo { object: ObjectId(index + 1), block_size: 131_072, header }))
    }

    fn write(&self, _: ObjectId, _: MapWrite, _: Txg) -> Pending<Result<()>> {
        ready(Ok(()))
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        if let Poll::Ready(value) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

fn vdev(n: u32) -> VdevSpec {
    VdevSpec {
        vdev: VdevId(n),
        class: Class::Normal,
        ashift: 12,
        asize: 1 << 40,
        metaslab_shift: 33,
        data_disks: 1,
        deflate_ratio: 512,
        geometry: Arc::new(|psize: Psize| Asize(psize.0.next_multiple_of(4096))),
    }
}

fn main() {
    let space = run(Space::open(Arc::new(Nowhere), vec![vdev(0), vdev(1)], true)).expect("nothing can fail");
    run(space.preload());
    let mut dvas: Vec<Dva> = Vec::new();
    let mut txg = Txg(10);
    for (what, sizes) in [("8K", &[8192u64][..]), ("mixed", &[4096, 16384, 8192, 131_072, 4096, 20480])] {
        const COUNT: usize = 1 << 20;
        let start = Instant::now();
        for i in 0..COUNT {
            let request = Request::new(Class::Normal, Psize(sizes[i % sizes.len()]), 1, txg);
            match space.try_allocate(&request).expect("there is room") {
                Placement::Placed(placed) => dvas.push(placed[0]),
                Placement::Load(metaslab) => run(space.load(&metaslab)),
            }
        }
        println!("allocate {what:6} {:6.1} ns", start.elapsed().as_nanos() as f64 / COUNT as f64);
        // Free every other block, in random order: the hard case for the trees.
        let mut n = 1u64;
        for i in (1..dvas.len()).rev() {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            dvas.swap(i, (n >> 33) as usize % (i + 1));
        }
        let half = dvas.split_off(dvas.len() / 2);
        txg = txg.next();
        let start = Instant::now();
        for dva in &half {
            space.free(dva, txg.back(1)).expect("it was allocated");
        }
        println!("free, random     {:6.1} ns", start.elapsed().as_nanos() as f64 / half.len() as f64);
        let start = Instant::now();
        for done in 0..3 {
            run(space.sync(txg.back(1), 1)).expect("nothing can fail");
            run(space.sync_done(txg.back(1))).expect("nothing can fail");
            if done == 0 {
                println!("sync of that     {:6.1} ms", start.elapsed().as_secs_f64() * 1e3);
            }
            txg = txg.next();
        }
        println!("until allocatable{:6.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    let start = Instant::now();
    const COUNT: usize = 1 << 18;
    for _ in 0..COUNT {
        let request = Request::new(Class::Normal, Psize(8192), 1, txg);
        let _ = space.try_allocate(&request).expect("there is room");
    }
    println!("allocate 8K among the holes {:6.1} ns", start.elapsed().as_nanos() as f64 / COUNT as f64);
}
