use super::*;
use vdev::{Aux, Bias, Snapshot, State, VdevType};

fn vdev(vdev_type: VdevType, guid: u64, children: Vec<VdevStatus>) -> VdevStatus {
    VdevStatus {
        name: format!("/d/{guid}"),
        vdev_type,
        guid: Guid(guid),
        id: None,
        path: None,
        parity: 0,
        bias: Bias::Normal,
        health: Health::ONLINE,
        detail: None,
        errors: Errors::default(),
        slow_operations: 0,
        is_behind: false,
        is_avoided: false,
        stats: Snapshot::default(),
        asize: 0,
        expandable: 0,
        ashift: None,
        physical_block: None,
        children,
        spares: Vec::new(),
        caches: Vec::new(),
    }
}

fn report() -> PoolReport {
    let leaves = vec![vdev(VdevType::File, 1, Vec::new()), vdev(VdevType::File, 2, Vec::new())];
    PoolReport {
        name: "tank".into(),
        guid: Guid(9),
        txg: units::Txg(4),
        health: Health::ONLINE,
        size: 0,
        allocated: 0,
        free: 0,
        fragmentation: None,
        capacity: 0,
        dedup_ratio: 100,
        vdevs: vdev(VdevType::Root, 9, leaves),
        space: BTreeMap::new(),
        scan: None,
        error_scrub: None,
        rebuilds: Vec::new(),
        suspended: None,
        data_errors: 0,
        problems: Vec::new(),
        clock_ns: 0,
    }
}

fn errors() -> DataErrors {
    DataErrors::default()
}

fn at(seconds: u64) -> Instant {
    Instant(seconds * 1_000_000_000)
}

/// 10,582 checksum errors and a degraded pool left no line in the log.
#[test]
fn ten_thousand_errors_are_a_few_lines_that_add_up() {
    let (mut journal, mut report) = (Journal::default(), report());
    assert!(journal.note(at(0), &report, &errors()).is_empty(), "all is well");
    let mut lines = Vec::new();
    for second in 1..=120 {
        report.vdevs.children[0].errors.checksum += 100;
        lines.extend(journal.note(at(second), &report, &errors()).into_iter().map(|(_, line)| line));
    }
    assert_eq!(
        lines,
        [
            "pool tank: /d/1: 100 checksum errors, 100 since they were cleared",
            "pool tank: /d/1: 6000 checksum errors, 6100 since they were cleared"
        ]
    );
    // The end of it is told as well, and what is new after they were cleared.
    assert_eq!(journal.note(at(200), &report, &errors()).len(), 1);
    assert!(journal.note(at(300), &report, &errors()).is_empty());
    report.vdevs.children[0].errors = Errors { read: 1, write: 2, checksum: 0 };
    let lines = journal.note(at(400), &report, &errors());
    assert_eq!(
        lines[0].1,
        "pool tank: /d/1: 1 read errors, 1 since they were cleared; 2 write errors, 2 since they were cleared"
    );
}

#[test]
fn a_device_that_is_lost_and_comes_back_is_told_with_its_pool() {
    let (mut journal, mut report) = (Journal::default(), report());
    journal.note(at(0), &report, &errors());
    report.health = Health::new(State::Degraded, Aux::None);
    report.vdevs.children[1].health = Health::new(State::Faulted, Aux::ErrorsExceeded);
    let lines = journal.note(at(1), &report, &errors());
    let told: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("pool tank: /d/2 was given up after too many errors"), "{told:?}");
    assert_eq!(told[1], "pool tank is DEGRADED; 'zpool status tank' says why");
    assert!(journal.note(at(2), &report, &errors()).is_empty(), "told once");
    report.health = Health::ONLINE;
    report.vdevs.children[1].health = Health::ONLINE;
    let lines = journal.note(at(3), &report, &errors());
    assert_eq!(lines[0].1, "pool tank: /d/2 is ONLINE again");
    assert_eq!(lines[1].1, "pool tank is ONLINE again");
    // A pool that is opened degraded is told of as well.
    report.health = Health::new(State::Degraded, Aux::None);
    assert_eq!(Journal::default().note(at(4), &report, &errors()).len(), 1);
}

#[test]
fn data_errors_are_told_each_up_to_a_bound_and_then_counted() {
    let (mut journal, mut report) = (Journal::default(), report());
    let mut lost = DataErrors { blocks: 1, names: vec!["tank/fs:/f".into()], ..DataErrors::default() };
    assert_eq!(journal.note(at(0), &report, &lost)[0].1, "pool tank: data error: tank/fs:/f");
    lost.names.extend((2..=500).map(|i| format!("tank/fs:/f{i}")));
    (lost.blocks, lost.more) = (507, 7);
    let lines = journal.note(at(1), &report, &lost);
    assert_eq!(lines.len(), TOLD_MAX, "{lines:?}");
    let last = "pool tank: 487 more data errors, 507 in all; 'zpool status -v tank' lists them";
    assert_eq!(lines.last().unwrap().1, last);
    assert!(journal.note(at(2), &report, &lost).is_empty());
    // A file that was restored, and is damaged again, is told of again.
    let whole = lost.names.remove(0);
    assert!(journal.note(at(2), &report, &lost).is_empty());
    lost.names.push(whole);
    assert_eq!(journal.note(at(2), &report, &lost).len(), 1);
    report.suspended = Some("no room".into());
    assert_eq!(
        journal.note(at(3), &report, &errors())[0],
        (Level::ERROR, "pool tank is suspended: no room".into())
    );
    report.suspended = None;
    assert_eq!(journal.note(at(4), &report, &errors())[0].1, "pool tank is not suspended any more");
}
