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
