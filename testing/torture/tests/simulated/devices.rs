//! Devices that come and go under a client, in the simulated world.

use torture::seeds::{Kept, kept};
use torture::{DeviceCase, DeviceDeeds, DeviceFigures};

#[test]
fn whatever_is_done_to_the_devices_a_client_never_notices_and_all_is_whole_in_the_end() {
    let mut total = DeviceFigures::default();
    let all = [DeviceDeeds::Devices, DeviceDeeds::Sweeps, DeviceDeeds::Splits];
    for (seed, deeds) in (0..8).flat_map(|seed| all.map(|deeds| (seed, deeds))) {
        let case = DeviceCase { seed, steps: 300, deeds };
        let (figures, _) = case.run(false).unwrap_or_else(|e| panic!("{case}: {e}"));
        total += figures;
    }
    assert!(total.changes > 100 && total.hurt > 5 && total.cuts > 5 && total.kills > 3, "only {total}");
}

#[test]
fn what_failed_once_does_not_fail_again() {
    for case in kept().unwrap() {
        if let Kept::Devices(case) = case {
            case.run(false).unwrap_or_else(|e| panic!("{case}: {e}"));
        }
    }
}
