//! Random work in the simulated world, with power cuts. `TORTURE_SEED` and `TORTURE_OPS` choose another run.

use sim::{Config, Disks, Model as DiskModel, run_until_cut};
use std::sync::{Arc, Mutex};
use torture::{Bench, Mix, Model, Shape};

const DIR: &str = "/sim";
const DISK: u64 = 96 << 20;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn disks(shape: &Shape) -> Disks {
    let disks = Disks::new();
    for path in shape.paths(DIR) {
        disks.add(path, DISK, DiskModel::NVME);
    }
    disks
}

/// What outlives the world whose power is cut.
#[derive(Clone, Default)]
struct Known {
    model: Arc<Mutex<Model>>,
    error: Arc<Mutex<Option<String>>>,
}

impl Known {
    fn error(&self) -> Option<String> {
        self.error.lock().expect("no thread dies holding it").clone()
    }
}

/// Works until the power is cut or `ops` are done.
fn work(
    disks: &Disks,
    seed: u64,
    shape: Shape,
    mix: Mix,
    known: &Known,
    fresh: bool,
    ops: u64,
) -> Option<()> {
    let known = known.clone();
    run_until_cut(disks, seed, Config::default(), async move {
        if let Err(e) = work_inside(shape, mix, known.model.clone(), fresh, ops).await {
            *known.error.lock().expect("no thread dies holding it") = Some(e.to_string());
        }
    })
}

async fn work_inside(
    shape: Shape,
    mix: Mix,
    model: Arc<Mutex<Model>>,
    fresh: bool,
    ops: u64,
) -> units::Result<()> {
    let mut bench = if fresh {
        Bench::create(DIR, &shape, mix, model).await?
    } else {
        Bench::recover(DIR, model, mix).await?
    };
    for _ in 0..ops {
        bench.step().await?;
    }
    bench.finish().await
}

#[test]
fn a_pool_holds_what_its_model_says_through_any_work_and_reopening() {
    let ops = setting("TORTURE_OPS", 1500);
    for (i, shape) in Shape::all().into_iter().enumerate() {
        let seed = setting("TORTURE_SEED", 1) + i as u64;
        let known = Known::default();
        work(&disks(&shape), seed, shape, Mix::default(), &known, true, ops);
        assert_eq!(known.error(), None, "{shape:?}, seed {seed}");
    }
}

#[test]
fn after_a_power_cut_the_pool_is_some_state_not_older_than_what_was_acknowledged() {
    let cuts = setting("TORTURE_CUTS", 12);
    for (i, shape) in Shape::all().into_iter().enumerate() {
        let seed = setting("TORTURE_SEED", 1) * 1000 + i as u64;
        let mix = Mix { size: 512 << 10, volumes: 2, flush_every: 12, admin_every: 40, reopen_every: 100 };
        let disks = disks(&shape);
        let known = Known::default();
        // The first state of a pool is no promise yet: make it in peace.
        work(&disks, seed, shape, mix, &known, true, 30);
        for cut in 0..cuts {
            let seed = seed * 100 + cut;
            disks.cut_at_flush(1 + seed % 37);
            let outcome = work(&disks, seed, shape, mix, &known, false, 400);
            if outcome.is_none() {
                disks.power_cut(seed);
            }
            assert_eq!(known.error(), None, "{shape:?}, seed {seed}, cut {cut}");
        }
    }
}
