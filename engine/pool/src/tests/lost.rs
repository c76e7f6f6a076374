//! Resilvers that meet blocks which no device has any more: they end, say how many, and are not begun anew for them.

use super::devices::{device, look_at, made_whole, shape};
use super::heal::{block, place};
use super::{BLOCK, Rig, VOLUME, fill, make_volume};
use crate::Pool;
use ondisk::dsl::{ScanFunc, ScanState};
use sim::Model;
use std::time::Duration;
use vdev::Layout;

const DISK: u64 = 96 << 20;
const SIZE: u64 = 2 << 20;
/// More than make a device count as one that fails too often.
const LOST: u64 = 100;
/// Longer than devices that still miss something wait for the next resilver.
const LONG: Duration = Duration::from_secs(1000);

fn rig() -> Rig {
    let rig = Rig::new(Layout::Stripe, 1, DISK);
    rig.disks.add("/sim/new", DISK, Model::NVME);
    rig
}

/// A volume of which blocks at random are damaged, as a scrub has found.
async fn prepare(rig: &Rig, seed: u64) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE).await;
    fill(&pool, VOLUME, 1).await;
    pool.sync().await.unwrap();
    let mut rng = sim::Rng::new(seed);
    let mut blocks: Vec<u64> = (0..SIZE / BLOCK).collect();
    for n in 0..LOST as usize {
        let other = n + rng.below((blocks.len() - n) as u64) as usize;
        blocks.swap(n, other);
        rig.spoil(0, place(&block(&pool, blocks[n]).await.1), 4096, seed + n as u64);
    }
    pool.scrub().await.unwrap();
    pool.scrub_wait().await;
    assert_eq!(pool.scan_status().unwrap().errors, LOST);
    assert!(pool.tree().leaves()[0].errors().checksum >= LOST);
    pool
}

#[test]
fn a_resilver_ends_with_what_is_lost_and_the_device_is_whole() {
    for replaces in [false, true] {
        let rig = rig();
        let own = rig.clone();
        rig.run(1, async move {
            let pool = prepare(&own, 7).await;
            pool.attach(device(&pool, "disk0"), look_at("new"), replaces, 12).await.unwrap();
            let start = world::now();
            made_whole(&pool).await;
            assert!(world::now().since(start) < Duration::from_secs(60));
            let scan = pool.scan_status().unwrap();
            assert_eq!((scan.func, scan.state, scan.errors), (ScanFunc::Resilver, ScanState::Finished, LOST));
            assert_eq!(shape(&pool), if replaces { "new" } else { "mirror(disk0 new)" });
            world::sleep(LONG).await;
            assert_eq!(pool.scan_status().unwrap().begun, scan.begun, "it is not begun anew");
            pool.export().await.unwrap();
        });
    }
}

/// A device that cannot be read may be read another time: what was not to be had of it is tried once more.
#[test]
fn what_could_not_be_read_is_tried_once_more_and_a_device_that_goes_on_failing_ends_the_resilver() {
    for heals in [false, true] {
        let rig = rig();
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            fill(&pool, VOLUME, 1).await;
            pool.sync().await.unwrap();
            let place = place(&block(&pool, 5).await.1);
            let disk = own.disks.get(own.path(0)).unwrap();
            disk.break_sectors(place..place + BLOCK);
            pool.attach(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
            pool.scrub_wait().await;
            let first = pool.scan_status().unwrap();
            assert_eq!((first.func, first.state, first.errors), (ScanFunc::Resilver, ScanState::Finished, 1));
            assert!(is_behind(&pool), "it is not known yet to be lost for good");
            if heals {
                disk.mend_sectors();
            }
            made_whole(&pool).await;
            let second = pool.scan_status().unwrap();
            assert_ne!(second.begun, first.begun);
            assert_eq!((second.state, second.errors), (ScanState::Finished, u64::from(!heals)));
            world::sleep(LONG).await;
            assert_eq!(pool.scan_status().unwrap().begun, second.begun, "it is not begun a third time");
            pool.export().await.unwrap();
        });
    }
}

fn is_behind(pool: &Pool) -> bool {
    pool.tree().status().children.iter().flat_map(|top| &top.children).any(|leaf| leaf.is_behind)
}
