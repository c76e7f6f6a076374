//! Devices that fail and come back, in the simulated world.

use torture::seeds::{Kept, kept};
use torture::{SuspensionFigures, Suspensions};

#[test]
fn a_pool_that_was_cleared_has_all_that_was_flushed_and_never_showed_the_past() {
    let mut total = SuspensionFigures::default();
    for seed in 0..24 {
        let case = Suspensions { seed, steps: 250 };
        total += case.run().unwrap_or_else(|e| panic!("{case}: {e}"));
    }
    assert!(total.suspended > 12 && total.flushes > 100 && total.reads > 100, "only {total}");
}

#[test]
fn what_failed_once_does_not_fail_again() {
    for case in kept().unwrap() {
        if let Kept::Suspended(case) = case {
            case.run().unwrap_or_else(|e| panic!("{case}: {e}"));
        }
    }
}
