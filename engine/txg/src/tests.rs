use crate::throttle::{Admission, Limits};

#[test]
fn writers_go_freely_then_wait_longer_and_longer_then_stop() {
    let limits = Limits { dirty_max: 1000, ..Limits::default() };
    assert_eq!(limits.admit(0), Admission::Go);
    assert_eq!(limits.admit(600), Admission::Go);
    assert_eq!(limits.admit(1000), Admission::Wall);
    let waits: Vec<u64> = (601..1000)
        .map(|dirty| match limits.admit(dirty) {
            Admission::Delay(d) => d.as_nanos() as u64,
            other => panic!("{dirty}: {other:?}"),
        })
        .collect();
    assert!(waits.windows(2).all(|w| w[0] <= w[1]));
    assert_eq!(
        limits.admit(800),
        Admission::Delay(std::time::Duration::from_micros(500)),
        "the scale, at the middle"
    );
}

/// At `zfs_dirty_data_sync_percent=0` an empty txg was full, so that the sync loop synced nothing, one txg after the other,
/// for ever; and the setting was kept.
#[test]
fn an_empty_txg_is_full_at_no_percentage() {
    for sync_percent in [0, 1, 20, 100] {
        let limits = Limits { dirty_max: 1000, sync_percent, ..Limits::default() };
        assert!(!limits.is_full(0), "at {sync_percent} %");
        assert!(limits.is_full(1000), "at {sync_percent} %");
    }
    assert!(Limits { sync_percent: 0, ..Limits::default() }.is_full(1));
}
