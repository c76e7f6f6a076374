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
