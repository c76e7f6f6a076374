//! Hosts that fill up, in the simulated world.

use torture::seeds::{Kept, kept};
use torture::{FullHostFigures, FullHosts};

#[test]
fn pools_whose_host_fills_up_go_on_when_there_is_room_and_keep_what_was_flushed_through_kills() {
    let mut total = FullHostFigures::default();
    for seed in 0..8 {
        let case = FullHosts { seed, steps: 300 };
        total += case.run().unwrap_or_else(|e| panic!("{case}: {e}"));
    }
    let FullHostFigures { refused, suspended, kills, flushes, reads, .. } = total;
    assert!(refused > 20 && suspended > 4 && kills > 8 && flushes > 100 && reads > 1000, "only {total}");
}

#[test]
fn what_failed_once_does_not_fail_again() {
    for case in kept().unwrap() {
        if let Kept::Host(case) = case {
            case.run().unwrap_or_else(|e| panic!("{case}: {e}"));
        }
    }
}
