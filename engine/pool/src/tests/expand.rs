//! Devices that grow, and those that are new in the place of others.

use super::devices::{device, made_whole, shape};
use super::reshape::open_all;
use super::resilver::GONE;
use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Offline, Pool};
use sim::{Disks, Fault, Model};
use std::time::Duration;
use units::{Kind, VdevId};
use vdev::Layout;

const SMALL: u64 = 96 << 20;
const LARGE: u64 = 320 << 20;

fn resize(disks: &Disks, i: usize, size: u64) {
    disks.get(format!("/sim/disk{i}")).unwrap().resize(size);
}

/// Every label there is, from the ends that the device has now.
async fn labels(i: usize) -> usize {
    let disk = vdev::Device::whole(format!("/sim/disk{i}")).open(world::OpenMode::ReadOnly).await.unwrap();
    vdev::label::read::read_labels(&disk).await.valid.len()
}

async fn reopened(pool: Pool) -> Pool {
    pool.export().await.unwrap();
    drop(pool);
    open_all(false).await
}

/// Writes more than the small devices had room for.
async fn fill_more(pool: &Pool, width: u64) {
    let size = (width * 110) << 20;
    make_volume(pool, "tank/large", size).await;
    fill(pool, "tank/large", 5).await;
    assert!(read_all(pool, "tank/large").await.unwrap() == noise(5, size as usize));
    verify(pool).await;
}

#[test]
fn a_vdev_grows_when_all_its_devices_have_and_not_before() {
    let layouts = [(Layout::Stripe, 1), (Layout::Mirror, 2), (Layout::Raidz { parity: 1 }, 3)];
    for (seed, (layout, count)) in (1..).zip(layouts) {
        let rig = Rig::new(layout, count, SMALL);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, 64 * BLOCK).await;
            fill(&pool, VOLUME, 1).await;
            let (before, guid) = (pool.report().size, device(&pool, "disk0"));
            assert_eq!(pool.expand(guid).await.unwrap(), 0, "nothing has grown");
            for i in 0..count {
                assert_eq!((pool.expandable(), pool.expand(guid).await.unwrap()), (0, 0), "{i} of {count}");
                resize(&own.disks, i, LARGE);
            }
            let could = pool.expandable();
            assert!(could > count as u64 * (90 << 20), "{could}");
            assert!(pool.expand(guid).await.unwrap() > 90 << 20);
            assert_eq!((pool.expandable(), pool.report().size), (0, before + could));
            pool.sync().await.unwrap();
            assert_eq!(labels(0).await, 4, "the last two are at the new end");
            fill_more(&pool, own.width()).await;
            let pool = reopened(pool).await;
            assert_eq!(pool.report().size, before + could);
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, (64 * BLOCK) as usize));
            verify(&pool).await;
        });
    }
}

#[test]
fn a_device_that_is_away_keeps_its_vdev_as_small_as_it_was() {
    let rig = Rig::new(Layout::Mirror, 2, SMALL);
    let own = rig.clone();
    rig.run(7, async move {
        let pool = own.create().await;
        let away = device(&pool, "disk1");
        pool.offline(away, Offline::Lasting).await.unwrap();
        (0..2).for_each(|i| resize(&own.disks, i, LARGE));
        assert_eq!(pool.expand(away).await.unwrap(), 0, "it may come back as small as it was");
        pool.online(away).await.unwrap();
        made_whole(&pool).await;
        assert!(pool.expand(away).await.unwrap() > 90 << 20);
        assert_eq!(pool.expand(units::Guid(5)).await.unwrap_err().kind(), Kind::NotFound);
        verify(&pool).await;
    });
}

#[test]
fn a_power_cut_while_a_vdev_grows_leaves_it_small_or_large_and_whole() {
    let rig = Rig::new(Layout::Mirror, 2, SMALL);
    let own = rig.clone();
    rig.run(8, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, 32 * BLOCK).await;
        fill(&pool, VOLUME, 7).await;
        pool.close().await.unwrap();
    });
    (0..2).for_each(|i| resize(&rig.disks, i, LARGE));
    let before = rig.disks.fork();
    let grow = |disks: &Disks| {
        sim::run_until_cut(disks, 7, Default::default(), async {
            let pool = open_all(false).await;
            pool.expand(device(&pool, "disk0")).await.unwrap();
            fill(&pool, VOLUME, 8).await;
        })
    };
    let whole = before.fork();
    let start = whole.flushes();
    grow(&whole);
    let flushes = whole.flushes() - start;
    let (mut small, mut large) = (0, 0);
    for cut in 1..=flushes {
        let disks = before.fork();
        disks.cut_at_flush(cut);
        grow(&disks);
        disks.power_cut(cut);
        let is_large = sim::run_with(&disks, cut, Default::default(), async move {
            let pool = open_all(false).await;
            let is_large = pool.expandable() == 0;
            assert!(pool.tree().leaves().iter().all(|leaf| leaf.is_usable()));
            pool.expand(device(&pool, "disk1")).await.unwrap();
            fill_more(&pool, 1).await;
            pool.export().await.unwrap();
            verify(&open_all(true).await).await;
            is_large
        });
        if is_large { large += 1 } else { small += 1 }
    }
    assert!(small > 0 && large > 0, "{small} {large}");
}

#[test]
fn with_autoexpand_a_vdev_grows_by_itself_and_also_when_its_pool_is_opened() {
    let rig = Rig::new(Layout::Mirror, 2, SMALL);
    let own = rig.clone();
    rig.run(9, async move {
        let pool = own.create().await;
        pool.set_property("autoexpand", "on").await.unwrap();
        let small = pool.tree().top(VdevId(0)).unwrap().asize();
        (0..2).for_each(|i| resize(&own.disks, i, LARGE));
        world::sleep(Duration::from_secs(12)).await;
        let large = pool.tree().top(VdevId(0)).unwrap().asize();
        assert!(large > small + (90 << 20), "{small} {large}");
        pool.export().await.unwrap();
        drop(pool);
        (0..2).for_each(|i| resize(&own.disks, i, 2 * LARGE));
        let pool = open_all(false).await;
        world::sleep(Duration::from_secs(12)).await;
        let larger = pool.tree().top(VdevId(0)).unwrap().asize();
        assert!(larger > large + (190 << 20), "{large} {larger}");
        pool.set_property("autoexpand", "off").await.unwrap();
        (0..2).for_each(|i| resize(&own.disks, i, 3 * LARGE));
        world::sleep(Duration::from_secs(12)).await;
        assert_eq!(pool.tree().top(VdevId(0)).unwrap().asize(), larger);
        assert!(pool.expandable() > 190 << 20);
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn with_autoreplace_a_blank_device_takes_the_place_of_one_that_is_gone_and_no_other_does() {
    let rig = Rig::new(Layout::Mirror, 2, SMALL);
    let own = rig.clone();
    rig.run(10, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, 64 * BLOCK).await;
        fill(&pool, VOLUME, 1).await;
        let old = device(&pool, "disk1");
        own.disks.get("/sim/disk1").unwrap().set_fault(GONE);
        fill(&pool, VOLUME, 2).await;
        pool.reopen().await.unwrap();
        // Another pool's: it may be the wrong one.
        own.disks.remove("/sim/disk1");
        own.disks.add("/sim/disk1", SMALL, Model::NVME);
        let single = Rig { disks: own.disks.clone(), layout: Layout::Stripe, count: 2 };
        let foreign = single.create_on("other", 1..2, super::cache(), |_| true).await;
        foreign.export().await.unwrap();
        pool.set_property("autoreplace", "on").await.unwrap();
        world::sleep(Duration::from_secs(12)).await;
        assert_eq!(shape(&pool), "mirror(disk0 disk1)");
        assert_eq!(device(&pool, "disk1"), old, "it is left alone");
        own.disks.remove("/sim/disk1");
        let blank = own.disks.add("/sim/disk1", SMALL, Model::NVME);
        blank.set_fault(Fault { read_errors_ppm: 1_000_000, ..Fault::default() });
        world::sleep(Duration::from_secs(12)).await;
        assert_eq!(device(&pool, "disk1"), old, "what cannot be read may have labels");
        blank.set_fault(Fault::default());
        world::sleep(Duration::from_secs(12)).await;
        made_whole(&pool).await;
        assert_ne!(device(&pool, "disk1"), old);
        assert_eq!(shape(&pool), "mirror(disk0 disk1)");
        own.disks.get("/sim/disk0").unwrap().set_fault(GONE);
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, (64 * BLOCK) as usize));
        verify(&pool).await;
    });
}
