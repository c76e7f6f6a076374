//! Devices that fail and come back, in the simulated world.

use torture::Suspensions;

#[test]
fn a_pool_that_was_cleared_has_all_that_was_flushed_and_never_showed_the_past() {
    let mut suspended = 0;
    for seed in 0..24 {
        let figures = Suspensions { seed, steps: 250 }.run().unwrap_or_else(|e| panic!("{e}"));
        suspended += figures.suspended;
    }
    assert!(suspended > 12, "only {suspended} suspensions");
}
