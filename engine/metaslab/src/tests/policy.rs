//! Where blocks go: turns, copies, classes, hints.

use super::{MemoryLog, run, spec};
use crate::{Class, Placement, Request, Space};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Kind, Psize, Txg, VdevId};

const MIB: u64 = 1 << 20;

fn open(specs: Vec<crate::VdevSpec>) -> Space {
    let space = run(Space::open(Arc::new(MemoryLog::default()), specs, true)).unwrap();
    run(space.preload());
    space
}

fn allocate(space: &Space, request: Request) -> Vec<ondisk::Dva> {
    let dvas = run(space.allocate(&request)).unwrap();
    dvas[..usize::from(request.copies)].to_vec()
}

fn normal(psize: u64, copies: u8) -> Request {
    Request::new(Class::Normal, Psize(psize), copies, Txg(5))
}

#[test]
fn vdevs_take_turns_and_a_larger_one_takes_more() {
    let space = open(vec![
        spec(0, Class::Normal, 512 * MIB, 25),
        spec(1, Class::Normal, 512 * MIB, 25),
        spec(2, Class::Normal, 1024 * MIB, 25),
    ]);
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut runs = 0;
    let mut last = None;
    for i in 0..4096 {
        if i % 512 == 0 {
            run(space.preload());
        }
        let dva = allocate(&space, normal(131_072, 1))[0];
        *bytes.entry(dva.vdev.0).or_default() += 131_072;
        runs += u64::from(last.replace(dva.vdev) != Some(dva.vdev));
    }
    let share = |v: u32| bytes[&v] as f64 / (512.0 * MIB as f64);
    assert!((share(0) - 0.25).abs() < 0.03 && (share(2) - 0.5).abs() < 0.05, "{bytes:?}");
    assert!((200..500).contains(&runs), "{runs} turns of about 2 MiB");
}

#[test]
fn copies_go_to_different_vdevs_or_else_to_different_metaslabs() {
    let space = open((0..3).map(|v| spec(v, Class::Normal, 128 * MIB, 25)).collect());
    for _ in 0..50 {
        let dvas = allocate(&space, normal(16384, 3));
        let vdevs: std::collections::BTreeSet<_> = dvas.iter().map(|d| d.vdev).collect();
        assert_eq!(vdevs.len(), 3);
    }
    let space = open(vec![spec(0, Class::Normal, 128 * MIB, 25)]);
    for _ in 0..50 {
        let dvas = allocate(&space, normal(16384, 3));
        let metaslabs: std::collections::BTreeSet<_> = dvas.iter().map(|d| d.offset.bytes() >> 25).collect();
        assert_eq!(metaslabs.len(), 3);
    }
    let space = open(vec![spec(0, Class::Normal, 32 * MIB, 25)]);
    assert_eq!(allocate(&space, normal(16384, 3)).len(), 3, "with one metaslab, copies share it");
}

#[test]
fn a_class_that_is_missing_or_full_is_followed_by_the_next() {
    let special = |psize| Request { class: Class::Special, ..normal(psize, 1) };
    let space = open(vec![spec(0, Class::Normal, 64 * MIB, 25)]);
    assert_eq!(allocate(&space, special(4096))[0].vdev, VdevId(0));
    assert_eq!(allocate(&space, Request { class: Class::Log, ..normal(4096, 1) })[0].vdev, VdevId(0));
    let space = open(vec![spec(0, Class::Normal, 64 * MIB, 25), spec(1, Class::Special, 32 * MIB, 25)]);
    assert_eq!(allocate(&space, Request { class: Class::Dedup, ..normal(4096, 1) })[0].vdev, VdevId(1));
    for _ in 0..1023 {
        allocate(&space, special(32768));
    }
    assert_eq!(allocate(&space, special(131_072))[0].vdev, VdevId(0));
    assert!(space.has_class(Class::Special) && !space.has_class(Class::Log));
}

#[test]
fn what_fits_nowhere_is_no_space_and_leaves_nothing_allocated() {
    let space = open(vec![spec(0, Class::Normal, 64 * MIB, 25)]);
    let e = run(space.allocate(&normal(40 * MIB, 1))).unwrap_err();
    assert_eq!(e.kind(), Kind::NoSpace);
    // The first copy finds room, the third does not.
    let e = run(space.allocate(&normal(25 * MIB, 3))).unwrap_err();
    assert_eq!(e.kind(), Kind::NoSpace);
    assert!(!run(space.sync(Txg(5), 1)).unwrap(), "nothing is dirty");
    assert_eq!(allocate(&space, normal(32 * MIB, 2)).len(), 2);
}

#[test]
fn hints_gangs_and_closed_vdevs_are_respected() {
    let space = open((0..2).map(|v| spec(v, Class::Normal, 64 * MIB, 25)).collect());
    for _ in 0..10 {
        let request = Request { hint: Some(VdevId(1)), gang_header: true, ..normal(512, 1) };
        let dva = allocate(&space, request)[0];
        assert!(dva.vdev == VdevId(1) && dva.gang && dva.asize.bytes() == 4096);
        space.unallocate(&dva, Txg(5)).unwrap();
    }
    space.set_allocatable(VdevId(1), false);
    assert_eq!(allocate(&space, Request { hint: Some(VdevId(1)), ..normal(512, 1) })[0].vdev, VdevId(0));
    space.set_allocatable(VdevId(1), true);
    assert_eq!(allocate(&space, Request { hint: Some(VdevId(1)), ..normal(512, 1) })[0].vdev, VdevId(1));
}

#[test]
fn only_what_is_not_loaded_has_to_be_waited_for() {
    let log = Arc::new(MemoryLog::default());
    let space = run(Space::open(log, vec![spec(0, Class::Normal, 64 * MIB, 25)], true)).unwrap();
    let Placement::Load(unloaded) = space.try_allocate(&normal(4096, 1)).unwrap() else {
        panic!("nothing is loaded yet");
    };
    run(space.load(&unloaded));
    assert!(matches!(space.try_allocate(&normal(4096, 1)).unwrap(), Placement::Placed(_)));
}

#[test]
fn a_vdev_that_grew_keeps_what_it_holds() {
    let space = open(vec![spec(0, Class::Normal, 64 * MIB, 25)]);
    allocate(&space, normal(MIB, 1));
    run(space.sync(Txg(5), 1)).unwrap();
    run(space.sync_done(Txg(5))).unwrap();
    let before = allocate(&space, Request { txg: Txg(6), ..normal(MIB, 1) })[0];
    run(space.grow_vdev(VdevId(0), 128 * MIB)).unwrap();
    let usage = space.usage(Class::Normal);
    assert_eq!((usage.space, usage.allocated), (128 * MIB, MIB));
    assert!(run(space.sync(Txg(6), 1)).unwrap(), "what was dirty stays dirty");
    run(space.sync_done(Txg(6))).unwrap();
    assert_eq!(space.usage(Class::Normal).allocated, 2 * MIB);
    space.free(&before, Txg(7)).unwrap();
    assert_eq!(space.metaslabs(VdevId(0)).len(), 4);
}

#[test]
fn a_larger_vdev_keeps_a_metaslab_for_the_log() {
    let space = open(vec![spec(0, Class::Normal, 65 * 16 * MIB, 24)]);
    assert_eq!(space.usage(Class::EmbeddedLog).space, 16 * MIB);
    assert_eq!(space.usage(Class::Normal).space, 64 * 16 * MIB);
    let log = allocate(&space, Request { class: Class::Log, ..normal(4096, 1) })[0];
    let data = allocate(&space, normal(4096, 1))[0];
    assert_ne!(log.offset.bytes() >> 24, data.offset.bytes() >> 24);
}

#[test]
fn what_is_being_discarded_is_not_allocated_and_comes_back() {
    let log = Arc::new(MemoryLog::default());
    let specs = vec![spec(0, Class::Normal, 64 * MIB, 25)];
    let space = run(Space::open(log.clone(), specs.clone(), true)).unwrap();
    run(space.preload());
    space.remember_freed(true);
    let kept = allocate(&space, normal(MIB, 1))[0];
    let dva = allocate(&space, normal(MIB, 1))[0];
    let small = allocate(&space, normal(4096, 1))[0];
    for (txg, free) in [(5, None), (6, Some([dva, small])), (7, None), (8, None)] {
        free.iter().flatten().for_each(|dva| space.free(dva, Txg(txg)).unwrap());
        run(space.sync(Txg(txg), 1)).unwrap();
        assert!(txg == 8 || space.trim_freed(VdevId(0), 4096).is_empty());
        run(space.sync_done(Txg(txg))).unwrap();
    }
    // Both became one segment.
    let batch = space.trim_freed(VdevId(0), 32 << 10);
    assert_eq!(batch.len(), 1);
    assert_eq!(batch[0].segments(), [crate::Segment::new(dva.offset.bytes(), MIB + 4096)]);
    assert!(space.trim_freed(VdevId(0), 0).is_empty());
    assert_eq!(space.free(&dva, Txg(9)).unwrap_err().kind(), Kind::Corrupt, "it is free all the time");

    // With everything being discarded, there is no room; on disk it is free.
    let all: Vec<_> = (0..2).filter_map(|i| run(space.trim_metaslab(VdevId(0), i, 0)).unwrap()).collect();
    assert_eq!(run(space.allocate(&normal(4096, 1))).unwrap_err().kind(), Kind::NoSpace);
    space.free(&kept, Txg(9)).unwrap();
    run(space.sync(Txg(9), 1)).unwrap();
    run(space.sync_done(Txg(9))).unwrap();
    let again = run(Space::open(log.copy(), specs, true)).unwrap();
    assert_eq!(run(again.allocate(&normal(32 * MIB, 2))).unwrap().len(), 3, "nothing is allocated there");
    drop((batch, all));
    assert!(run(space.allocate(&normal(4096, 1))).is_ok());
}

#[test]
fn requests_may_be_spawned() {
    fn spawnable<T: Send>(_: T) {}
    let space = Space::new(Arc::new(MemoryLog::default()), true);
    let request = normal(512, 1);
    spawnable(space.allocate(&request));
    spawnable(space.sync(Txg(1), 1));
    spawnable(space.preload());
    spawnable(space.grow_vdev(VdevId(0), 0));
}
