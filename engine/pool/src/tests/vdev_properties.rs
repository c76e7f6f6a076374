//! What is said of a single device, and what it does.

use super::{Rig, VOLUME, fill, make_volume};
use crate::{NO_CACHE_FLUSH, Pool};
use units::Guid;
use vdev::Layout;

/// The flushes that each device was asked for.
fn flushes(pool: &Pool) -> Vec<u64> {
    pool.tree().leaves().iter().map(|l| l.stats.snapshot().flushes).collect()
}

/// The vdev of the tree, and its leaves.
fn guids(pool: &Pool) -> (Guid, Vec<Guid>) {
    let top = pool.tree().spec().children[0].clone();
    (top.guid, top.children.iter().map(|leaf| leaf.guid).collect())
}

#[test]
fn a_device_whose_cache_is_said_to_be_safe_is_not_flushed_also_after_import() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let made = rig.clone();
    rig.run(1, async move {
        let pool = made.create().await;
        let (top, leaves) = guids(&pool);
        make_volume(&pool, VOLUME, 1 << 20).await;
        for (vdev, name, value) in [(leaves[0], NO_CACHE_FLUSH, "yes"), (leaves[0], "nocolon", "on")] {
            assert!(pool.set_vdev_property(vdev, name, value).await.is_err(), "{name}={value}");
        }
        assert!(pool.set_vdev_property(Guid(1), NO_CACHE_FLUSH, "on").await.is_err());
        // The group is safe, but for its second device.
        pool.set_vdev_property(top, NO_CACHE_FLUSH, "on").await.unwrap();
        pool.set_vdev_property(leaves[1], NO_CACHE_FLUSH, "off").await.unwrap();
        pool.set_vdev_property(leaves[1], "org.example:bay", "7").await.unwrap();
        let before = flushes(&pool);
        fill(&pool, VOLUME, 1).await;
        let after = flushes(&pool);
        assert_eq!(after[0], before[0]);
        assert!(after[1] > before[1]);
        pool.close().await.unwrap();
    });
    let again = rig.clone();
    rig.run(2, async move {
        let pool = again.open(false).await.unwrap();
        let (top, leaves) = guids(&pool);
        let all = pool.vdev_properties();
        assert_eq!(all[&top][NO_CACHE_FLUSH], "on");
        assert_eq!(all[&leaves[1]]["org.example:bay"], "7");
        fill(&pool, VOLUME, 2).await;
        let [first, second] = flushes(&pool)[..] else { panic!("two devices") };
        assert!(first == 0 && second > 0);
        pool.set_vdev_property(top, NO_CACHE_FLUSH, "").await.unwrap();
        assert!(!pool.vdev_properties().contains_key(&top));
        fill(&pool, VOLUME, 3).await;
        assert!(flushes(&pool)[0] > 0, "nobody says so any more");
        super::verify(&pool).await;
        pool.close().await.unwrap();
    });
}

/// Reads all of the volume from the devices, several times.
async fn read_some(pool: &Pool, times: usize) {
    for _ in 0..times {
        pool.pipeline().cache().clear();
        super::read_all(pool, VOLUME).await.unwrap();
        world::sleep(std::time::Duration::from_secs(1)).await;
    }
}

#[test]
fn how_many_errors_are_too_many_is_as_it_was_set_also_after_import() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.create().await;
        let (top, leaves) = guids(&pool);
        make_volume(&pool, VOLUME, 1 << 20).await;
        fill(&pool, VOLUME, 1).await;
        for (name, value) in [("io_n", "many"), ("io_n", "100001"), ("checksum_t", "-1"), ("slow_io_x", "1")]
        {
            assert!(pool.set_vdev_property(top, name, value).await.is_err(), "{name}={value}");
        }
        // 0 of the group is never; the second device has its own.
        pool.set_vdev_property(top, "checksum_n", "0").await.unwrap();
        pool.set_vdev_property(leaves[1], "checksum_n", "2").await.unwrap();
        pool.set_vdev_property(leaves[1], "checksum_t", "3600").await.unwrap();
        pool.export().await.unwrap();
        drop(pool);
        let pool = own.open(false).await.unwrap();
        assert_eq!(pool.vdev_properties()[&leaves[1]]["checksum_n"], "2");
        let rotten = sim::Fault { rot_ppm: 500_000, ..Default::default() };
        for (i, expected) in [(0, vdev::State::Online), (1, vdev::State::Degraded)] {
            own.disks.get(own.path(i)).unwrap().set_fault(rotten);
            read_some(&pool, 20).await;
            own.disks.get(own.path(i)).unwrap().set_fault(sim::Fault::default());
            let (_, leaf) = pool.tree().find_leaf(leaves[i]).unwrap();
            assert!(leaf.errors().checksum >= 10, "{i}");
            assert_eq!(leaf.health().state, expected, "{i}");
        }
        super::verify(&pool).await;
    });
}

#[test]
fn a_device_that_is_slow_too_often_is_marked_when_that_was_asked_for() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.create().await;
        let (_, leaves) = guids(&pool);
        make_volume(&pool, VOLUME, 1 << 20).await;
        let slow = sim::Fault { delay: std::time::Duration::from_secs(31), ..Default::default() };
        let leaf = |i: usize| pool.tree().find_leaf(leaves[i]).unwrap().1;
        pool.set_vdev_property(leaves[1], "slow_io_n", "3").await.unwrap();
        pool.set_vdev_property(leaves[1], "slow_io_t", "600").await.unwrap();
        (0..2).for_each(|i| own.disks.get(own.path(i)).unwrap().set_fault(slow));
        fill(&pool, VOLUME, 1).await;
        (0..2).for_each(|i| own.disks.get(own.path(i)).unwrap().set_fault(sim::Fault::default()));
        pool.sync().await.unwrap();
        assert!(leaf(0).slow_operations() > 3 && leaf(1).slow_operations() > 3);
        assert_eq!([0, 1].map(|i| leaf(i).health().state), [vdev::State::Online, vdev::State::Degraded]);
        pool.clear(None).await.unwrap();
        assert_eq!((leaf(1).slow_operations(), leaf(1).health().state), (0, vdev::State::Online));
    });
}
