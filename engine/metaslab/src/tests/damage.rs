//! What stands on disks may be anything: errors, never a panic.

use super::{Dice, MemoryLog, run, spec};
use crate::{Class, MapInfo, Request, Space};
use ondisk::{Dva, SpaceAction, SpaceMapLog, SpaceMapPhys, SpaceRun};
use std::sync::Arc;
use units::{Endian, Kind, ObjectId, Psize, Sectors, Txg, VdevId};

fn log_with(header: SpaceMapPhys, bytes: Vec<u8>) -> Arc<MemoryLog> {
    let log = MemoryLog::default();
    {
        let mut maps = log.maps.lock().unwrap();
        let info = MapInfo { object: ObjectId(100), block_size: 4096, header };
        maps.objects.insert(100, (info, bytes));
        maps.arrays.entry(0).or_default().insert(0, 100);
    }
    Arc::new(log)
}

fn map_of(runs: &[(SpaceAction, u64, u64)]) -> (SpaceMapPhys, Vec<u8>) {
    let mut log = SpaceMapLog::new(0, 4096, true);
    let mut allocated = 0;
    for &(action, offset, len) in runs {
        log.run(SpaceRun { action, offset, len, vdev: None });
        allocated += if action == SpaceAction::Alloc { len as i64 } else { -(len as i64) } << 12;
    }
    let histogram = Some([1; SpaceMapPhys::BUCKETS]);
    let header = SpaceMapPhys { object: ObjectId(100), length: log.length(), allocated, histogram };
    (header, log.to_bytes(Endian::NATIVE))
}

#[test]
fn random_maps_never_panic() {
    let mut dice = Dice(17);
    let mut opened = 0;
    for _ in 0..300 {
        let words = dice.roll(40);
        let mut bytes = Vec::new();
        for _ in 0..words {
            let word = dice.roll(u64::MAX) << 31 ^ dice.roll(u64::MAX);
            // Mostly plausible: small offsets, all prefixes.
            let masked = if dice.roll(3) == 0 { word } else { word & 0xc000_0000_0fff_ffff };
            bytes.extend(masked.to_ne_bytes());
        }
        let histogram = Some(std::array::from_fn(|_| dice.roll(u64::MAX) << dice.roll(33)));
        let allocated = (dice.roll(1 << 25) as i64) - (1 << 20);
        let length = if dice.roll(10) == 0 { dice.roll(u64::MAX) } else { words * 8 };
        let header = SpaceMapPhys { object: ObjectId(100), length, allocated, histogram };
        let specs = vec![spec(0, Class::Normal, 64 << 20, 25)];
        let Ok(space) = run(Space::open(log_with(header, bytes), specs, true)) else { continue };
        opened += 1;
        space.fragmentation(Class::Normal);
        run(space.preload());
        let got = run(space.allocate(&Request::new(Class::Normal, Psize(8192), 1, Txg(5)))).unwrap();
        let _ = space.free(&got[0], Txg(5));
        let mut pass = 1;
        while run(space.sync(Txg(5), pass)).unwrap() {
            pass += 1;
        }
        run(space.sync_done(Txg(5))).unwrap();
    }
    assert!(opened > 200);
}

#[test]
fn a_map_that_contradicts_itself_closes_its_metaslab_and_names_it() {
    use SpaceAction::{Alloc, Free};
    for (runs, says) in [
        (&[(Alloc, 0, 8), (Alloc, 4, 8)][..], "is allocated, but not all of it was free"),
        (&[(Alloc, 0, 8), (Free, 0, 9)][..], "is freed, but"),
        (&[(Free, 0, 1)][..], "is freed, but"),
    ] {
        let (mut header, bytes) = map_of(runs);
        header.allocated = header.allocated.max(0);
        let log = log_with(header, bytes);
        let space = run(Space::open(log, vec![spec(0, Class::Normal, 64 << 20, 25)], true)).unwrap();
        run(space.preload());
        let problems = space.take_problems();
        assert_eq!(problems.len(), 1);
        let text = problems[0].to_string();
        assert!(text.contains("vdev 0 metaslab 0") && text.contains(says), "{text}");
        // The other metaslab serves on.
        let got = run(space.allocate(&Request::new(Class::Normal, Psize(8192), 1, Txg(5)))).unwrap();
        assert!(got[0].offset.bytes() >= 1 << 25);
    }
}

#[test]
fn impossible_headers_are_refused_when_the_pool_is_opened() {
    for (allocated, length) in [(-1, 0), ((1 << 25) + 1, 0), (0, 7), (i64::MIN, 0)] {
        let header = SpaceMapPhys { object: ObjectId(100), length, allocated, histogram: None };
        let specs = vec![spec(0, Class::Normal, 64 << 20, 25)];
        let e = run(Space::open(log_with(header, Vec::new()), specs, true)).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
    }
    for (asize, shift) in
        [(0, 25), (1 << 20, 25), (u64::MAX, 25), (1 << 61, 20), (64 << 20, 60), (64 << 20, 3)]
    {
        let specs = vec![spec(0, Class::Normal, asize, shift)];
        assert!(run(Space::open(Arc::new(MemoryLog::default()), specs, true)).is_err(), "{asize} {shift}");
    }
}

#[test]
fn block_pointers_to_nowhere_are_refused() {
    let specs = vec![spec(0, Class::Normal, 64 << 20, 25)];
    let space = run(Space::open(Arc::new(MemoryLog::default()), specs, true)).unwrap();
    run(space.preload());
    let at = |vdev, offset, asize| Dva {
        vdev: VdevId(vdev),
        offset: Sectors(offset),
        asize: Sectors(asize),
        gang: false,
    };
    for dva in [
        at(1, 0, 8),
        at(0, 1 << 17, 8),
        at(0, (1 << 17) - 8, 16),
        at(0, (1 << 16) - 8, 16),
        at(0, 4, 8),
        at(0, 0, 4),
        at(0, 0, 0),
        at(0, (1 << 63) - 1, 8),
        at(0, 0, 8), // free already
    ] {
        assert_eq!(space.free(&dva, Txg(5)).unwrap_err().kind(), Kind::Corrupt, "{dva}");
    }
    assert!(space.unallocate(&at(0, 0, 8), Txg(5)).is_err());
    assert!(run(space.claim(&at(0, 0, 8), Txg(5))).is_ok());
    assert_eq!(run(space.claim(&at(0, 0, 8), Txg(5))).unwrap_err().kind(), Kind::Corrupt);
}
