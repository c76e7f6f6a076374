//! Log space maps: what a pool of OpenZFS that was not exported left.

use super::{MemoryLog, run, spec};
use crate::{Class, Request, Space};
use ondisk::{SpaceAction, SpaceMapLog, SpaceRun};
use std::sync::Arc;
use units::{Endian, Kind, Psize, Txg, VdevId};

fn log_bytes(runs: &[(SpaceAction, u32, u64, u64)]) -> Vec<u8> {
    let mut log = SpaceMapLog::new(0, 131_072, true);
    for &(action, vdev, offset, len) in runs {
        let run = SpaceRun { action, offset: offset >> 9, len: len >> 9, vdev: Some(VdevId(vdev)) };
        log.run(run);
    }
    log.to_bytes(Endian::NATIVE)
}

fn open(log: Arc<MemoryLog>) -> Space {
    run(Space::open(log, vec![spec(0, Class::Normal, 64 << 20, 25)], true)).unwrap()
}

use SpaceAction::{Alloc, Free};

#[test]
fn logs_are_added_to_the_maps_and_flushed_by_the_first_txg() {
    let maps = Arc::new(MemoryLog::default());
    let space = open(maps.clone());
    space.apply_log(Txg(8), &log_bytes(&[(Alloc, 0, 0, 65536), (Alloc, 0, 1 << 25, 8192)])).unwrap();
    space.apply_log(Txg(9), &log_bytes(&[(Free, 0, 4096, 8192), (Alloc, 0, 8192, 4096)])).unwrap();
    assert_eq!(space.usage(Class::Normal).allocated, 65536 + 8192 - 4096);
    run(space.preload());
    let first = run(space.allocate(&Request::new(Class::Normal, Psize(4096), 1, Txg(10)))).unwrap()[0];
    assert_ne!(first.offset.bytes(), 0, "what the log allocated is not free");
    let mut pass = 1;
    while run(space.sync(Txg(10), pass)).unwrap() {
        pass += 1;
    }
    run(space.sync_done(Txg(10))).unwrap();

    let again = open(maps);
    run(again.preload());
    assert_eq!(again.usage(Class::Normal).allocated, 65536 + 8192);
    let top = again.vdev(VdevId(0)).unwrap();
    let used = |start: u64| {
        let state = top.metaslabs[(start >> 25) as usize].lock();
        state.allocatable().unwrap().ranges().overlapping(crate::Segment::new(start, 4096)).is_none()
    };
    let expected = |at: u64| at == first.offset.bytes() || at != 4096;
    for at in (0..65536).step_by(4096) {
        assert_eq!(used(at), expected(at), "{at:#x}");
    }
    assert!(used(1 << 25) && used((1 << 25) + 4096) && !used((1 << 25) + 8192));
}

#[test]
fn entries_that_were_flushed_before_are_passed_over() {
    let space = open(Arc::new(MemoryLog::default()));
    space.set_unflushed_txgs(VdevId(0), &[Txg(9), Txg(0)]);
    space.apply_log(Txg(8), &log_bytes(&[(Alloc, 0, 0, 4096), (Alloc, 0, 1 << 25, 8192)])).unwrap();
    assert_eq!(space.usage(Class::Normal).allocated, 8192);
    space.apply_log(Txg(9), &log_bytes(&[(Alloc, 0, 0, 4096), (Alloc, 7, 0, 4096)])).unwrap();
    assert_eq!(space.usage(Class::Normal).allocated, 12288, "a vdev that is gone is passed over too");
}

#[test]
fn a_log_that_contradicts_itself_is_an_error() {
    for runs in [
        &[(Alloc, 0, 0, 8192), (Alloc, 0, 4096, 4096)][..],
        &[(Free, 0, 0, 4096)][..],
        &[(Alloc, 0, 512, 4096)][..],
        &[(Alloc, 0, (1 << 25) - 4096, 8192)][..],
        &[(Alloc, 0, 1 << 40, 4096)][..],
    ] {
        let space = open(Arc::new(MemoryLog::default()));
        let e = space.apply_log(Txg(8), &log_bytes(runs)).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
        assert!(e.to_string().contains("log space map of txg 8"), "{e}");
    }
}
