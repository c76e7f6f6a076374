//! Random work in the simulated world, with reopening and power cuts: short runs of what `cargo xtask torture` does for
//! hours, and the cases that failed once.

use sim::{Config, Disks, Model as DiskModel, run_with};
use torture::power::files::FileRunner;
use torture::power::{Effort, Runner};
use torture::seeds::{Kept, kept};
use torture::{Bench, Mix, Shape, Work};

#[test]
fn a_pool_holds_what_its_model_says_through_any_work_and_reopening() {
    for (seed, shape) in (1..).zip(Shape::all()) {
        let disks = Disks::new();
        for path in shape.paths("/sim") {
            disks.add(path, 96 << 20, DiskModel::NVME);
        }
        run_with(&disks, seed, Config::default(), async move {
            let mut bench = Bench::create("/sim", &shape, Mix::default(), Default::default()).await?;
            for _ in 0..800 {
                bench.step().await?;
            }
            bench.finish().await
        })
        .unwrap_or_else(|e| panic!("{shape:?}, seed {seed}: {e}"));
    }
}

#[test]
fn after_a_power_cut_the_pool_is_some_state_not_older_than_what_was_acknowledged() {
    let mut cuts = 0;
    for seed in 10..20 {
        let work = Work { seed, ops: 600, is_loud: false };
        let figures = work.run(|_| ()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        cuts += figures.cuts;
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

#[test]
fn snapshots_clones_and_rollbacks_hold_what_they_should_through_power_cuts() {
    let mut cuts = 0;
    for seed in [20, 26, 31] {
        let work = Work { seed, ops: 500, is_loud: false };
        let figures = work.run(|_| ()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        cuts += figures.cuts;
    }
    assert!(cuts > 5, "only {cuts} cuts");
}

#[test]
fn what_failed_once_does_not_fail_again() {
    // A spot is no more when what is made before it has changed; not all of them may go.
    let mut cuts = 0;
    for case in kept().unwrap() {
        match case {
            Kept::Work(work) => _ = work.run(|_| ()).unwrap_or_else(|e| panic!("{work:?}: {e}")),
            Kept::Power(case) => {
                let figures = Runner::default().run(&case, Effort::FULL);
                assert_eq!(figures.failures, [], "{case}");
                assert!(figures.cuts > 0, "{case}: the spot is no more");
            }
            // `forged.rs` replays these.
            Kept::Forged(_) | Kept::Suspended(_) | Kept::Devices(_) | Kept::Host(_) => {}
            Kept::Files(case) => {
                let figures = FileRunner::default().run(&case, Effort::FULL);
                assert_eq!(figures.failures, [], "{case}");
                cuts += figures.cuts;
            }
        }
    }
    assert!(cuts > 5, "only {cuts} cuts");
}
