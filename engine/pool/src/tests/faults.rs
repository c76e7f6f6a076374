//! Devices that are gone or lie.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use units::Kind;
use vdev::{Layout, State};

const SIZE: usize = 2 << 20;

async fn prepared(rig: &Rig) {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    fill(&pool, VOLUME, 1).await;
    pool.export().await.unwrap();
}

#[test]
fn a_pool_serves_without_the_devices_it_can_do_without() {
    for rig in Rig::all().into_iter().filter(|r| r.redundancy() > 0) {
        let own = rig.clone();
        rig.run(1, async move { prepared(&own).await });
        (0..rig.redundancy()).for_each(|i| rig.disks.remove(rig.path(i)));
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            assert_eq!(pool.report().health.state, State::Degraded);
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
            fill(&pool, VOLUME, 2).await;
            verify(&pool).await;
            pool.export().await.unwrap();
            drop(pool);
            let pool = own.open(false).await.unwrap();
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE));
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_pool_that_lacks_too_much_names_what_is_missing() {
    let rig = Rig::new(Layout::Raidz { parity: 1 }, 3, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move { prepared(&own).await });
    rig.disks.remove(rig.path(0));
    rig.disks.remove(rig.path(2));
    let own = rig.clone();
    rig.run(2, async move {
        let error = own.open(false).await.unwrap_err().to_string();
        assert!(error.contains("/sim/disk0") && error.contains("/sim/disk2"), "{error}");
    });
}

#[test]
fn what_a_device_has_wrong_is_read_from_the_others_and_healed() {
    for rig in Rig::all().into_iter().filter(|r| r.redundancy() > 0) {
        let own = rig.clone();
        rig.run(1, async move { prepared(&own).await });
        rig.spoil(0, 4 << 20, 80 << 20, 3);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
            let errors = pool.report().vdevs.children[0].children[0].errors;
            assert!(errors.checksum > 0 && errors.read == 0, "{errors:?}");
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_block_that_is_lost_is_named_and_the_others_can_be_read() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move { prepared(&own).await });
    let own = rig.clone();
    let place = rig.run(2, async move {
        let pool = own.open(true).await.unwrap();
        let volume = pool.dsl().open_by_name(VOLUME).await.unwrap();
        let at =
            zio::Bookmark { objset: volume.objset().id(), object: units::ObjectId(1), level: 0, blkid: 5 };
        let store: std::sync::Arc<dyn zio::BlockStore> = std::sync::Arc::new(pool.pipeline().clone());
        let bp = dmu::locate(&store, &volume.objset().root(), at).await.unwrap();
        bp.dvas()[0].offset.bytes()
    });
    // Addresses of blocks begin behind the first two labels and the boot area.
    rig.spoil(0, place + (4 << 20), 4096, 4);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.open(true).await.unwrap();
        assert_eq!(read_all(&pool, VOLUME).await.unwrap_err().kind(), Kind::Checksum);
        let report = pool.verify(|_| ()).await.unwrap();
        assert_eq!((report.lost, report.damage.len()), (1, 1));
        assert_eq!((report.damage[0].dataset.as_str(), report.damage[0].at.blkid), (VOLUME, 5));
        let volume = pool.open_volume(VOLUME).await.unwrap();
        let other = volume.read(6 * super::BLOCK, super::BLOCK).await.unwrap();
        assert_eq!(other[0][..], noise(1, SIZE)[6 * super::BLOCK as usize..7 * super::BLOCK as usize]);
    });
}

/// Clients met 10,582 checksum errors, devices counted them, and yet there were "no known data errors": a read that found
/// no good copy told only its caller. What is lost is known from then on; what was only freed meanwhile, or is repaired,
/// is no loss.
#[test]
fn a_block_that_a_client_could_not_read_is_a_known_data_error() {
    for (read_only, redundant) in [(false, false), (true, false), (false, true)] {
        let rig = Rig::new(
            if redundant { Layout::Mirror } else { Layout::Stripe },
            1 + usize::from(redundant),
            96 << 20,
        );
        let own = rig.clone();
        rig.run(1, async move { prepared(&own).await });
        let own = rig.clone();
        let place = rig.run(2, async move {
            let pool = own.open(true).await.unwrap();
            super::heal::place(&super::heal::block(&pool, 5).await.1)
        });
        rig.spoil(0, place, 4096, 3);
        let own = rig.clone();
        rig.run(3, async move {
            let pool = own.open(read_only).await.unwrap();
            let volume = pool.open_volume(VOLUME).await.unwrap();
            assert!(pool.complaints().is_empty());
            let read = volume.read(5 * BLOCK, BLOCK).await;
            world::sleep(std::time::Duration::from_secs(30)).await;
            let told = pool.complaints();
            if redundant {
                read.unwrap();
                assert_eq!(told, Vec::<String>::new(), "it was repaired");
                return;
            }
            assert_eq!(read.unwrap_err().kind(), Kind::Checksum);
            assert_eq!(told, ["1 blocks cannot be read"]);
            assert!(pool.tree().leaves()[0].errors().checksum > 0);
            assert!(volume.read(5 * BLOCK, BLOCK).await.is_err());
            assert_eq!(pool.complaints(), told, "it is told once");
        });
    }
}
