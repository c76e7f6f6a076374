//! Random work on real files, judged by OpenZFS's own `zdb`.

use interop::harness::{Need, Trial, trial};
use interop::{Scratch, zdb};
use torture::{Bench, Mix, Shape};

pub fn trials() -> Vec<Trial> {
    // One trial for each shape: they run side by side.
    let trials = Shape::all().into_iter().map(|shape| {
        let Shape { layout, ashift, .. } = shape;
        let name =
            format!("zdb_finds_no_leak_and_no_error_in_a_pool_worked_over_by_cenote: {layout:?}, {ashift}");
        trial(name, &[Need::Program("zdb")], move || is_clean(shape))
    });
    trials.collect()
}

fn is_clean(shape: Shape) {
    let ops = std::env::var("TORTURE_OPS").ok().and_then(|v| v.parse().ok()).unwrap_or(500);
    let scratch = Scratch::new();
    let name = scratch.path().to_string_lossy().into_owned();
    for path in shape.paths(&name) {
        std::fs::File::create(path).unwrap().set_len(256 << 20).unwrap();
    }
    linux::block_on(async move {
        let mix = Mix { volumes: 9, branch_every: 15, ..Mix::default() };
        let mut bench = Bench::create(&name, &shape, mix, Default::default()).await.unwrap();
        for _ in 0..ops {
            bench.step().await.unwrap();
        }
        bench.finish().await.unwrap();
    });
    zdb::assert_clean(scratch.path(), "tank");
}
